"""The seeded history: the same on every platform, true to its milestones, and full of every kind of record."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pytest

from toolkit import embedded
from toolkit.errors import InputError

APT = ["0x1::aptos_coin::AptosCoin"]

#: What `Ledger.with_history(7, 1_000)` must hash to, on every platform and Python.
DIGEST_7_1000 = "d2ba85c3211ca597dc74242ef288ab6de68771abc0a5be340586b8af0a22a0a7"


@pytest.fixture(scope="module")
def ledger() -> embedded.Ledger:
    return embedded.Ledger.with_history(seed=7, versions=5_000)


def _milestone(ledger, kind, text):
    return next(m.version for m in ledger.milestones if m.kind == kind and text in m.text)


def test_it_ends_exactly_at_the_last_version(ledger):
    """Versions are 0 to versions - 1, whatever the number."""
    assert (ledger.oldest_version, ledger.head) == (0, 4_999)
    for versions in (200, 333, 1_001):
        assert embedded.Ledger.with_history(versions=versions).head == versions - 1


def test_equal_seeds_give_equal_ledgers():
    """The digest over everything is pinned; another seed gives another ledger."""
    assert embedded.Ledger.with_history(7, 1_000).digest() == DIGEST_7_1000
    assert embedded.Ledger.with_history(8, 1_000).digest() != DIGEST_7_1000


def test_too_few_versions_are_refused():
    """A history has a least size, and says so."""
    with pytest.raises(InputError, match="at least 200 versions"):
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
    upgrade = _milestone(ledger, "code", "upgraded")
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
    version = ledger.version_at(datetime(2026, 5, 1, tzinfo=UTC))
    assert ledger.block_of(version).timestamp_us >= datetime(2026, 5, 1, tzinfo=UTC).timestamp() * 1_000_000
    assert ledger.block_of(version - 1).timestamp_us < datetime(2026, 5, 1, tzinfo=UTC).timestamp() * 1_000_000


def test_a_window_keeps_the_latest_versions_and_answers_the_same():
    """With a window, old versions are refused, and what is kept reads as in the full ledger."""
    whole, recent = (embedded.Ledger.with_history(versions=1_000, window=window) for window in (None, 200))
    assert recent.head == whole.head
    assert 800 <= recent.oldest_version < 820
    assert len(recent.chain.state) < len(whole.chain.state) / 2
    for version in (recent.oldest_version, 900, 999):
        assert recent.view("0xb00c::order_book::depth", version=version) == whole.view(
            "0xb00c::order_book::depth", version=version
        )
    with pytest.raises(InputError, match="is not readable: this ledger keeps"):
        recent.view("0xb00c::order_book::depth", version=recent.oldest_version - 1)
