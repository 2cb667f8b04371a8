"""Timelines of the embedded node, against what its history and its state say; and of nodes that offer less."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from math import ceil, log2

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toolkit
from tests.integration.test_step_causes_on_nodes import Gate, closed
from toolkit import embedded
from toolkit.client._versions import evenly
from toolkit.embedded import Module, u64, view
from toolkit.errors import InputError, NotFound
from toolkit.frames._columns import plain_columns
from toolkit.gas._cause_sentences import not_seen_text
from toolkit.gas._findings import Unread
from toolkit.gas._observations import Cause, Part
from toolkit.gas._timeline import find_timeline, found_timeline
from toolkit.gas.causes._facts import CONFIGURATION

CONTRACTS = [
    "0xcafe::registry",
    "0xcafe::trial",
    "0xb00c::order_book",
    "0xfa17::vault",
    "0x901d::gold",
    "0xfeed::price_feed",
    "0xde5c::desk",
]
SCHEDULE, FEATURES = "0x1::gas_schedule::GasScheduleV2", "0x1::features::Features"


class Base(Module, address="0xba5e", name="base"):
    """A module that others call."""

    @view
    def one(self) -> u64:
        """Return 1."""
        return 1


class OtherBase(Base, revision=2, code_bytes=9_000):
    """The same, other code."""


class Spare(Module, address="0x5a4e", name="spare"):
    """A module that only a later version of the caller calls."""

    @view
    def two(self) -> u64:
        """Return 2."""
        return 2


class OtherSpare(Spare, revision=2, code_bytes=9_000):
    """The same, other code."""


class Caller(Module, address="0xca11", name="caller", uses=[Base]):
    """A module that calls another."""

    @view
    def sum(self) -> u64:
        """Return what the other returns."""
        return self.use(Base).one()


class WiderCaller(Caller, revision=2, uses=[Base, Spare]):
    """An upgrade that calls one more."""

    @view
    def sum(self) -> u64:
        """Return the sum of both."""
        return self.use(Base).one() + self.use(Spare).two()


def marked(ledger):
    """Return (version, kind) of the milestones that are not of state; a mixed one is of code and schedule."""
    kinds = {"mixed": ["code", "schedule"], "state": []}
    return [(mark.version, kind) for mark in ledger.milestones for kind in kinds.get(mark.kind, [mark.kind])]


def rows_of(frame):
    """Return (version, kind) of a timeline's rows."""
    columns = plain_columns(frame, ["ledger_version", "kind"])
    return list(zip(*columns.values(), strict=True))


@pytest.fixture(scope="module")
def whole(url):
    """Return the timeline of the seeded ledger and all of its contracts."""
    with toolkit.connect(url, cache=None) as node:
        return toolkit.timeline(node, modules=CONTRACTS)


def test_the_timeline_is_the_history(whole, ledger):
    """Every milestone of schedule, code and configuration, at its version, and nothing else."""
    assert rows_of(whole) == marked(ledger)
    assert whole["exact"].all()
    assert whole.attrs["unread"] == []


def test_each_row_has_the_facts_of_its_transaction(whole, ledger):
    """Hash and time equal the ledger's, and the wording equals that of steps."""
    names = ["ledger_version", "transaction_hash", "time", "transaction_type"]
    for version, digest, time, kind in zip(*plain_columns(whole, names).values(), strict=True):
        done = ledger.transaction(version)
        assert (digest, kind) == (done.hash, "user_transaction")
        assert time.timestamp() * 1e6 == done.timestamp_us
    words = dict(zip(rows_of(whole), whole["what"], strict=True))
    assert words[2252, "code"] == "upgraded module 0xfa17::vault (added preview)"
    assert words[3502, "schedule"] == "changed the gas schedule: 459 of 512 parameters changed, every one ×10"
    assert words[1752, "config"] == "switched on feature flag 60 COIN_TO_FUNGIBLE_ASSET_MIGRATION"
    assert words[4652, "code"].startswith("upgraded module 0x1::coin, a dependency of 0x901d::gold, 0xb00c::order_book")


def test_reads_are_few_and_counted(whole):
    """Six grids, two reads of each registry, and for each change a bisection, its transaction and its modules."""
    registries = len({module.split("::")[0] for module in CONTRACTS}) + 1
    changes = len(whole)
    assert whole.attrs["requests"] <= 6 * 17 + 2 * registries + changes * (ceil(log2(5_000)) + 3)


def test_of_a_function_are_its_own_changes(url):
    """Schedule and configuration move every function; code moves those that are it or depend on it."""
    with toolkit.connect(url, cache=None) as node:
        found = found_timeline(node, modules=CONTRACTS)
    versions = {name: [c.ledger_version for c in found.for_function(name)] for name in ("0xde5c::desk::quote",)}
    assert versions == {"0xde5c::desk::quote": [26, 1252, 1752, 2902, 3502, 4652, 4652]}


def test_a_pruned_ledger_is_clipped_and_said():
    """The range begins at the oldest version, whose own change cannot be seen."""
    pruned = embedded.Ledger.with_history(seed=7, versions=400, window=100, cache=True)
    oldest = pruned.oldest_version
    said = pytest.warns(UserWarning, match=f"are pruned; reading from {oldest}")
    with embedded.serve(pruned, port=0) as url, toolkit.connect(url) as node, said:
        frame = toolkit.timeline(node, "0:-1", modules=["0xfa17::vault"])
    expected = [row for row in marked(pruned) if row[0] > oldest and row[1] != "state"]
    assert rows_of(frame) == expected
    assert len(expected) > 1
    assert (frame.attrs["first"], frame.attrs["last"]) == (oldest, 399)


def test_the_ends_are_included(node):
    """A change by the first or the last transaction of the range is in it."""
    assert rows_of(toolkit.timeline(node, "3502:3502")) == [(3_502, "schedule")]
    assert rows_of(toolkit.timeline(node, "3000:3502")) == [(3_502, "schedule")]
    assert rows_of(toolkit.timeline(node, "3503:3600")) == []


@pytest.mark.parametrize("versions", ["0:-1/5", "0:100:2", "7:3", "x", [1, 2], None])
def test_only_plain_ranges_are_taken(node, versions):
    """Others are refused before anything is compared."""
    with pytest.raises(InputError):
        toolkit.timeline(node, versions)


@pytest.mark.parametrize("options", [{"modules": ["coin"]}, {"modules": [7]}, {"initial": 1}, {"initial": "9"}])
def test_names_and_numbers_are_checked(node, options):
    """Before anything is read."""
    with pytest.raises(InputError):
        toolkit.timeline(node, "0:9", **options)


# nodes that offer less -----------------------------------------------------------------------------------------------


@pytest.fixture
def gated(url):
    """Return the timeline that a gate lets through, with its warnings expected by the caller."""

    def found(refuse, versions="2000:4000", modules=("0xfa17::vault",)):
        with toolkit.Node(url, transport=Gate(refuse), cache=None) as node:
            return toolkit.timeline(node, versions, modules=modules)

    return found


def test_what_is_refused_is_unread_and_the_rest_is_found(gated):
    """A schedule that cannot be read is not said to be unchanged."""
    with pytest.warns(UserWarning, match="the gas schedule: .* 403"):
        frame = gated(closed("GasScheduleV2"))
    assert rows_of(frame) == [(2_252, "code")]
    assert [text.split(":")[0] for text in frame.attrs["unread"]] == ["the gas schedule"]


def test_without_registries_the_code_is_unread(gated):
    """For each address: nothing is known about its code."""
    with pytest.warns(UserWarning, match="the packages of 0xfa17: the node answered 403"):
        frame = gated(closed("PackageRegistry"))
    assert rows_of(frame) == [(3_502, "schedule")]


def test_without_transactions_changes_are_found_without_their_facts(gated):
    """The version is exact nevertheless, and the modules are those of the package."""
    frame = gated(closed("/transactions/"))
    assert rows_of(frame) == [(2_252, "code"), (3_502, "schedule")]
    assert frame["exact"].all()
    assert frame["transaction_hash"].isna().all()
    assert frame["modules"].tolist()[0] == ["0xfa17::vault"]


def test_without_modules_the_change_is_said_without_its_content(gated):
    """The package was upgraded; what is other in it is not known."""
    frame = gated(closed("/module/"))
    assert "the node does not offer modules" in frame["what"].tolist()[0]
    assert rows_of(frame) == [(2_252, "code"), (3_502, "schedule")]


def test_a_version_that_cannot_be_read_is_replaced_by_one_beside_it(gated):
    """One refused version in the middle of a bisection does not hide the transaction."""

    def refuse(path, query):
        return (500, "internal_error") if "GasScheduleV2" in path and query["ledger_version"] == ["3489"] else None

    frame = gated(refuse, "3480:3520", ())
    assert rows_of(frame) == [(3_502, "schedule")]
    assert frame["exact"].all()


def test_a_stretch_that_cannot_be_read_leaves_an_interval(gated):
    """The change is between the versions that were read, and the interval is unread."""

    def refuse(path, query):
        gone = "GasScheduleV2" in path and 3_499 <= int(query["ledger_version"][0]) <= 3_504
        return (403, "api_disabled") if gone else None

    with pytest.warns(UserWarning, match="the gas schedule between versions 3,498 and 3,505"):
        frame = gated(refuse, "3000:4000", ())
    columns = plain_columns(frame, ["version_before", "ledger_version", "exact", "transaction_hash"])
    assert list(zip(*columns.values(), strict=True)) == [(3_498, 3_505, False, None)]


# other histories -----------------------------------------------------------------------------------------------------


def found_in(ledger, modules, **options):
    """Return the timeline of a ledger over HTTP."""
    with embedded.serve(ledger, port=0) as url, toolkit.connect(url) as node:
        return find_timeline(node, 0, ledger.head, modules, **options)


def filled(ledger, until):
    """Commit payments up to a version."""
    while ledger.head < until:
        ledger.commit("0x1::aptos_account::transfer", "0xb0b", 1, sender="0xa11ce")


def test_a_dependency_that_begins_at_an_upgrade_counts_from_there():
    """`spare` is needed from the upgrade of `caller` on, so its own earlier upgrade could not move anything."""
    ledger = embedded.Ledger()
    versions = [ledger.publish(contract).version for contract in (Base, Spare, Caller, OtherSpare, WiderCaller)]
    versions += [ledger.publish(Spare).version, ledger.publish(OtherBase).version]
    found = found_in(ledger, ["0xca11::caller"])
    assert [change.ledger_version for change in found.changes] == [versions[n] for n in (2, 4, 5, 6)]
    assert [change.modules for change in found.changes][2:] == [{"0x5a4e::spare"}, {"0xba5e::base"}]
    assert all(change.affects == {"0xca11::caller"} for change in found.changes)


def test_code_that_is_upgraded_and_reverted_is_seen_and_a_schedule_is_not():
    """The upgrade number only rises; a schedule that is back to what it was has no such number."""
    ledger = embedded.Ledger()
    ledger.publish(Base)
    filled(ledger, 30)
    upgrades = [ledger.publish(OtherBase).version, ledger.publish(Base).version]
    for release in ("v1.38.1", "v1.41.1"):
        ledger.set_gas_schedule(release)
    filled(ledger, 120)
    found = found_in(ledger, ["0xba5e::base"])
    assert [change.ledger_version for change in found.changes][1:] == upgrades
    assert found.initial == 17
    assert str(found.initial) in not_seen_text(found.initial)
    finer = found_in(ledger, ["0xba5e::base"], initial=ledger.head + 1)
    assert [change.kind for change in finer.changes][3:] == [Cause.SCHEDULE, Cause.SCHEDULE]


def test_an_upgrade_without_other_code_is_no_change():
    """The package has a higher number, but no module of it is other than before."""
    ledger = embedded.Ledger()
    ledger.publish(Base)
    ledger.publish(Base)
    assert len(found_in(ledger, ["0xba5e::base"]).changes) == 1


def test_a_misspelt_module_raises():
    """As a view of it does, with the name that may be meant; a study of it reports what is unread."""
    with pytest.raises(NotFound, match="did you mean `vault`") as caught:
        toolkit.timeline(toolkit.connect(), modules="0xfa17::valt")
    assert caught.value.error_code == "module_not_found"


def test_a_module_that_nobody_has_is_unread():
    """A name that is wrong is not reported as unchanged code."""
    found = found_in(embedded.Ledger(), ["0xba5e::bass"])
    assert found.changes == ()
    assert found.unread == (
        Unread("the code of 0xba5e::bass", "no package at its address contains it at the versions read"),
    )


CONFIGURING = {
    "v1.38.1": lambda ledger: ledger.set_gas_schedule("v1.38.1"),
    "v1.41.1": lambda ledger: ledger.set_gas_schedule("v1.41.1"),
    "v1.45.1": lambda ledger: ledger.set_gas_schedule("v1.45.1"),
    "on": lambda ledger: ledger.set_features(enable=[61]),
    "off": lambda ledger: ledger.set_features(disable=[61]),
}
PUBLISHED = {"base": Base, "base 2": OtherBase, "spare": Spare, "spare 2": OtherSpare, "caller 2": WiderCaller}


def with_events(events):
    """Return a ledger with these events, and the versions at which code that the caller then needs changed."""
    ledger = embedded.Ledger()
    for contract in (Base, Spare):
        ledger.publish(contract)
    now, versions = {"base": "base", "spare": "spare", "caller": "caller"}, [ledger.publish(Caller).version]
    for name, pause in events:
        if name in CONFIGURING:
            CONFIGURING[name](ledger)
        else:
            version, module = ledger.publish(PUBLISHED[name]).version, name.split()[0]
            needed = module != "spare" or now["caller"] == "caller 2"
            if needed and now[module] != name:
                versions.append(version)
            now[module] = name
        filled(ledger, ledger.head + pause)
    return ledger, versions


@settings(max_examples=6)
@given(
    st.lists(st.tuples(st.sampled_from([*CONFIGURING, *PUBLISHED]), st.integers(1, 12)), max_size=10), st.integers(2, 9)
)
def test_on_random_histories_all_is_true_and_nothing_unreverted_is_missing(events, initial):
    """What is found is a change of the state; code is complete; the rest is, but for what a cell of the grid reverts."""
    ledger, code = with_events(events)
    found = found_in(ledger, ["0xca11::caller"], initial=initial)
    assert all(change.exact for change in found.changes)
    at = {kind: [c.ledger_version for c in found.changes if c.kind is kind] for kind in Cause}
    assert at[Cause.CODE] == code
    for tag, kind in ((SCHEDULE, Cause.SCHEDULE), (FEATURES, Cause.CONFIG)):
        states = [json.dumps(ledger.resource("0x1", tag, v), default=bytes.hex) for v in range(ledger.head + 1)]
        true = [version for version in range(1, len(states)) if states[version] != states[version - 1]]
        assert set(at[kind]) <= set(true)
        for low, high in pairwise(evenly(0, ledger.head, initial)):
            within = [version for version in true if low < version <= high]
            seen = Counter(states[version] for version in [low, *within])
            if max(seen.values()) == 1:
                assert set(within) <= set(at[kind])


def test_the_configuration_is_named():
    """Every compared resource has a kind and a name; its parts are parts of gas."""
    assert {kind for kind, _ in CONFIGURATION.values()} == {Cause.SCHEDULE, Cause.CONFIG}
    assert len(Part) == 4
