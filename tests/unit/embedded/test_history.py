"""The seeded history: the same on every platform, true to its milestones, and full of every kind of record."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pytest

from toolkit import embedded
from toolkit.errors import InputError
from toolkit.move import parse_address
from toolkit.wire._bcs_requests import EncodedScript

APT = ["0x1::aptos_coin::AptosCoin"]

#: What histories must hash to, by seed and versions, on every platform and Python.
DIGESTS = {
    (7, 5_000): "ece8ad0d5413b6aa034c0cdd4ee7b1d89bc02677709a3698394637f06421fba4",
    (11, 300): "e48ebb13b13cf1c4baeb13b65522165ee0ac9fc38c67f8c0d01bc56d44c9283d",
}


@pytest.fixture(scope="module")
def ledger() -> embedded.Ledger:
    return embedded.Ledger.with_history(seed=7, versions=5_000)


#: Calls whose gas the milestones explain: function, arguments, type arguments.
CALLS = (
    ("0x1::coin::supply", [], APT),
    ("0xcafe::registry::size", [], []),
    ("0xcafe::registry::record_of", ["alice"], []),
    ("0xcafe::trial::greeting", [], []),
    ("0xb00c::order_book::depth", [], []),
    ("0xfa17::vault::share_price", [], []),
    ("0xfa17::vault::preview", [100_000_000], []),
    ("0xde5c::desk::quote", [10], []),
)


def _gas(ledger, function, arguments, types, version):
    try:
        return ledger.view(function, arguments, types, version=version)[1]
    except InputError:
        return None


def _milestone(ledger, kind, text):
    return next(m.version for m in ledger.milestones if m.kind == kind and text in m.text)


def test_it_ends_exactly_at_the_last_version(ledger):
    """Versions are 0 to versions - 1, whatever the number."""
    assert (ledger.oldest_version, ledger.head) == (0, 4_999)
    assert embedded.Ledger.with_history(versions=333).head == 332


def test_equal_seeds_give_equal_ledgers(ledger):
    """The digest over everything is pinned; another seed gives another ledger."""
    assert ledger.digest() == DIGESTS[7, 5_000]
    assert embedded.Ledger.with_history(11, 300).digest() == DIGESTS[11, 300]
    assert embedded.Ledger.with_history(12, 200).digest() != embedded.Ledger.with_history(11, 200).digest()


def test_too_few_versions_are_refused():
    """A history below the minimum size is an error that says so."""
    with pytest.raises(InputError, match=r"^versions .*\b200\b"):
        embedded.Ledger.with_history(versions=50)


def test_it_has_the_accounts_and_the_first_name(ledger):
    """Alice and Bob hold coins, and alice's name is hers from early on."""
    for account in ("0xa11ce", "0xb0b"):
        assert ledger.view("0x1::coin::balance", [account], APT)[0][0] > 0
    record = ledger.view("0xcafe::registry::record_of", ["alice"], version=100)[0][0]
    assert record["owner"].endswith("a11ce")
    assert ledger.view("0xcafe::registry::record_of", ["alice"])[0] == [record]


def test_each_step_of_the_schedule_happens_at_one_version(ledger):
    """The governance transaction writes GasScheduleV2; gas of a steady view changes there and nowhere else."""
    tenfold = _milestone(ledger, "schedule", "tenfold")
    done = ledger.transaction(tenfold)
    assert any("gas_schedule::GasScheduleV2" in str(key.name) for key in done.output.writes)
    gas = {version: ledger.view("0xcafe::registry::size", version=version)[1] for version in range(13, 5_000, 49)}
    exact = [ledger.view("0xcafe::registry::size", version=version)[1] for version in (tenfold - 1, tenfold)]
    assert {cost for version, cost in gas.items() if version < tenfold} == {exact[0]}
    assert {cost for version, cost in gas.items() if version >= tenfold} == {exact[1]}
    assert exact[1] >= 4 * exact[0]


def test_the_ordinary_release_changes_the_schedule_and_no_cost(ledger):
    """Most releases only add parameters: the schedule differs, a call costs the same."""
    release = _milestone(ledger, "schedule", "adds parameters")
    before, after = (
        ledger.resource("0x1", "0x1::gas_schedule::GasScheduleV2", version) for version in (release - 1, release)
    )
    assert before["feature_version"] < after["feature_version"]
    assert len(before["entries"]) < len(after["entries"])
    for function in ("0xcafe::registry::size", "0xfa17::vault::share_price"):
        assert ledger.view(function, version=release - 1)[1] == ledger.view(function, version=release)[1]


def test_the_vault_gets_cheaper_and_gains_a_function_at_one_version(ledger):
    """The upgrade writes the module; share_price keeps its answer and costs less; preview starts to exist."""
    upgrade = _milestone(ledger, "code", "vault upgraded")
    assert any(key.kind == "module" for key in ledger.transaction(upgrade).output.writes)
    before, after = (ledger.view("0xfa17::vault::share_price", version=v) for v in (upgrade - 1, upgrade))
    assert before[0] == after[0]
    assert after[1] < before[1]
    assert ledger.view("0xfa17::vault::preview", [1_000], version=upgrade)[0][0] > 0
    with pytest.raises(InputError, match="does not exist"):
        ledger.view("0xfa17::vault::preview", [1_000], version=upgrade - 1)


def test_the_order_book_grows_dearer_and_falls_when_its_day_closes(ledger):
    """Reading costs more with every order, and less at once when orders are dropped."""
    tenfold, closed = _milestone(ledger, "schedule", "tenfold"), _milestone(ledger, "state", "closed its day")
    cost = [ledger.view("0xb00c::order_book::depth", version=v)[1] for v in range(tenfold, closed, 100)]
    assert cost == sorted(cost)
    assert cost[-1] > cost[0]
    falls = [ledger.view("0xb00c::order_book::depth", version=v)[1] for v in (closed - 1, closed)]
    assert falls[1] < falls[0]


def test_a_feature_flag_moves_the_gas_of_the_supply_and_nothing_else(ledger):
    """From one version on, a coin's supply asks the fungible asset that is its pair; the amount is the same."""
    switched = _milestone(ledger, "config", "feature 60 on")
    writes = ledger.transaction(switched).output.writes
    assert any("features::Features" in str(key.name) for key in writes)
    assert not any("gas_schedule" in str(key.name) or key.kind == "module" for key in writes)
    before, after = (ledger.view("0x1::coin::supply", [], APT, version=v) for v in (switched - 1, switched))
    assert after[1] > before[1]
    fee = ledger.transaction(switched).output.charges
    octas = fee.total_charge_gas_units * 100 - fee.storage_fee_refund_octas
    assert before[0][0] - after[0][0] == octas
    assert ledger.resource("0x1", "0x1::features::Features", switched - 1) == {"features": b""}
    assert ledger.view("0x1::features::is_enabled", [60], version=switched)[0] == [True]


def test_the_desk_gets_cheaper_because_a_module_it_calls_was_upgraded(ledger):
    """The feed is written, the desk is not; the desk's package names the feed's as a dependency."""
    upgrade = _milestone(ledger, "code", "0xfeed::price_feed upgraded")
    written = [str(key.name) for key in ledger.transaction(upgrade).output.writes if key.kind == "module"]
    assert written == ["price_feed"]
    before, after = (ledger.view("0xde5c::desk::quote", [10], version=v) for v in (upgrade - 1, upgrade))
    assert before[0] == after[0]
    assert after[1] < before[1]
    (desk,) = ledger.resource("0xde5c", "0x1::code::PackageRegistry")["packages"]
    deps = [(dep["account"], dep["package_name"]) for dep in desk["deps"]]
    assert deps == [("0x1", "AptosFramework"), (parse_address("0xfeed"), "price_feed")]
    numbers = [
        ledger.resource("0xfeed", "0x1::code::PackageRegistry", version)["packages"][0]["upgrade_number"]
        for version in (upgrade - 1, upgrade)
    ]
    assert numbers == [0, 1]


def test_one_governance_script_upgrades_the_framework_and_sets_a_schedule(ledger):
    """Its transaction writes a module of 0x1, the package registry and the schedule; the supply costs less after."""
    done = ledger.transaction(_milestone(ledger, "mixed", "one governance script"))
    names = {str(key.name) for key in done.output.writes}
    assert {"coin", "0x1::gas_schedule::GasScheduleV2", "0x1::code::PackageRegistry"} <= names
    assert isinstance(done.request.executable, EncodedScript)
    before, after = (ledger.view("0x1::coin::supply", [], APT, version=v)[1] for v in (done.version - 1, done.version))
    assert after < before
    registries = [ledger.resource("0x1", "0x1::code::PackageRegistry", v) for v in (done.version - 1, done.version)]
    packages = [one["packages"][0] for one in registries]
    assert [package["upgrade_number"] for package in packages] == [0, 1]
    assert packages[0]["source_digest"] != packages[1]["source_digest"]
    module_names = [{module["name"] for module in package["modules"]} for package in packages]
    assert module_names[0] == module_names[1]
    assert "fungible_asset" in module_names[0]


def test_every_step_of_the_calls_worth_watching_has_one_true_cause():
    """A dense sweep: gas moves only at milestones, and (the order book's) at the version of each order."""
    chosen = embedded.Ledger.with_history(8, 400)
    marks = {mark.version: mark.kind for mark in chosen.milestones}
    kinds = Counter()
    for function, arguments, types in CALLS:
        costs = [_gas(chosen, function, arguments, types, version) for version in range(chosen.head + 1)]
        for version in range(1, len(costs)):
            if costs[version] == costs[version - 1]:
                continue
            if version in marks:
                kinds[marks[version]] += 1
            else:
                assert chosen.transaction(version).request.executable.function.wire == "0xb00c::order_book::place"
                assert function == "0xb00c::order_book::depth"
                assert costs[version] > costs[version - 1]
    assert set(kinds) == {"schedule", "code", "config", "state", "mixed"}


def test_every_transaction_kind_and_state_change_occurs(ledger):
    """Blocks begin and end with the ledger's own transactions; writes and deletions of every kind are there."""
    kinds, changes, outcomes = Counter(), Counter(), Counter()
    for version in range(ledger.head + 1):
        done = ledger.transaction(version)
        kinds[done.kind] += 1
        changes.update((key.kind, value is None) for key, value in done.output.writes.items())
        outcomes[done.success] += 1
    assert set(kinds) == {
        "genesis_transaction",
        "block_metadata_transaction",
        "user_transaction",
        "state_checkpoint_transaction",
        "block_epilogue_transaction",
    }
    assert {("resource", True), ("resource", False), ("table", True), ("table", False)} <= set(changes)
    assert {("module", True), ("module", False)} <= set(changes)
    assert outcomes[False] > 100


def test_blocks_are_whole_and_time_runs_forward(ledger):
    """Every version belongs to one block; a block starts with its metadata and ends with a checkpoint."""
    last_time = -1
    version = 0
    while version <= ledger.head:
        block = ledger.block_of(version)
        assert block.first_version == version
        assert block.timestamp_us > last_time
        last_time = block.timestamp_us
        if version:
            assert ledger.transaction(version).kind == "block_metadata_transaction"
            assert ledger.transaction(block.last_version).kind.endswith(
                ("checkpoint_transaction", "epilogue_transaction")
            )
        version = block.last_version + 1


def test_ledger_time_starts_with_2026_and_ends_in_july(ledger):
    """Any number of versions covers about half of 2026, before any wall clock that runs this."""
    small = embedded.Ledger.with_history(versions=300)
    for one in (ledger, small):
        assert one.block_of(1).timestamp_us == int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
        assert datetime(2026, 6, 20, tzinfo=UTC) < one.state.timestamp < datetime(2026, 7, 20, tzinfo=UTC)


def test_a_window_keeps_the_latest_versions_and_answers_the_same():
    """With a window, old versions are refused, and what is kept reads as in the full ledger."""
    whole, recent = (embedded.Ledger.with_history(versions=400, window=window) for window in (None, 100))
    assert recent.head == whole.head
    assert 300 <= recent.oldest_version < 320
    assert len(recent.chain.state) < len(whole.chain.state)
    for version in (recent.oldest_version, 350, 399):
        for function, arguments, types in CALLS:
            if "trial" not in function:
                kept, full = (one.view(function, arguments, types, version=version) for one in (recent, whole))
                assert kept == full
    with pytest.raises(InputError, match="version must be"):
        recent.view("0xb00c::order_book::depth", version=recent.oldest_version - 1)
