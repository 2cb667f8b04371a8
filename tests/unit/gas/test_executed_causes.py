"""Causes of committed steps are proved by executing transactions with and without what a change wrote."""

from __future__ import annotations

import pytest

import toolkit
from tests.unit.fork import small_node
from tests.unit.vm import small_ledger as small
from toolkit.fork._ledger import GAS_SCHEDULE
from toolkit.gas._findings import Change
from toolkit.gas._observations import Cause
from toolkit.gas._steps import ALL_TRANSACTIONS
from toolkit.gas.causes import _finding as finding
from toolkit.gas.causes._evidence import Evidence
from toolkit.gas.causes._executed import executed, proved_rows
from toolkit.gas.causes._facts import RelatedModule, Role
from toolkit.move._ids import ModuleId

CALLS = [("start",), *[("bump", small.ALICE)] * 5, ("loop", small.u64(1)), *[("bump", small.ALICE)] * 5]
AT = 6  # the place of the call in whose transaction the change is


def ledger(change):
    """Return the served node of a ledger on which the transaction at `AT` also changes state, by key."""
    before, now = small_node.committed(CALLS[: AT + 1])
    place = before[AT]
    place.writes += [(key, "modify", value, None) for key, value in change.items()]
    now |= {key: (value, None) for key, value in change.items()}
    return small_node.StateNode(sent=[*before, *small_node.continued(now, CALLS[AT + 1 :], len(CALLS[: AT + 1]))])


DEARER = {GAS_SCHEDULE: small.schedule_bcs(**(small_node.SCHEDULE | {"instr.add": 900_000}))}
OTHER_CODE = {small_node.module_key(small.COUNTER): small_node.counter_with(5)}
NO_PART = {small_node.module_key(small.framework("option")): small.option_code()}


def served(change):
    node = ledger(change)
    return node, node.serving()


def around(node):
    bumps = [version for version, sent in zip(node.versions, node.sent, strict=True) if sent.function.endswith("bump")]
    at = node.versions[AT]
    return at, [version for version in bumps if version < at], [version for version in bumps if version > at]


@pytest.mark.parametrize(("change", "kind"), [(DEARER, Cause.SCHEDULE), (OTHER_CODE, Cause.CODE)])
def test_both_sides_are_executed_with_the_other_sides_state(change, kind):
    made, serving = served(change)
    at, before, after = around(made)
    with serving as one, toolkit.connect(one.url, cache=None) as node:
        found = executed(node, at, kind, before=before, after=after)
        assert (len(found.pairs), found.sides) == (10, {False, True})
        replayed = toolkit.replay(node, [*before, *after], progress=False)
    assert replayed["verified"].all()
    old, new = (int(replayed["gas_used"].iloc[place]) for place in (0, -1))
    moved = new - old
    assert found.functions == (("0xcafe::counter::bump",) if kind is Cause.CODE else ())
    assert {pair["gas_used"][1] - pair["gas_used"][0] for pair in found.pairs} == {moved}
    if kind is Cause.SCHEDULE:
        assert moved > 100
        assert found.proves("gas_used", moved - 1, moved + 1, unit=1) is True
        assert found.proves("gas_used", 10 * moved, 11 * moved, unit=1) is None
        assert found.proves("gas_used", None, None, unit=1) is None
        assert f"{new:,}" in found.words("gas_used")
    assert found.proves("storage_fee_octas", moved, moved, unit=1) is None  # this ledger has no fee statements


def test_a_module_that_cannot_be_read_does_not_undo_a_proof():
    """The package has a module with bytecode of the future, which no transaction runs."""
    odd = bytearray(small_node.strings()[1])
    odd[4:8] = (12).to_bytes(4, "little")
    made, serving = served(OTHER_CODE | {small_node.module_key(small.framework("string")): bytes(odd)})
    at, before, after = around(made)
    with serving as one, toolkit.connect(one.url, cache=None) as node:
        found = executed(node, at, Cause.CODE, before=before, after=after)
    assert (len(found.pairs), found.sides) == (10, {False, True})
    assert found.functions == ("0xcafe::counter::bump",)


def test_functions_are_those_of_the_nearest_transactions_that_count():
    made, serving = served(OTHER_CODE)
    at, before, after = around(made)
    for sent in (made.sent[AT - 1], made.sent[AT + 1]):
        sent.gas_used += 1
    with serving as one, toolkit.connect(one.url, cache=None) as node:
        found = executed(node, at, Cause.CODE, before=before, after=after)
    assert (len(found.pairs), found.sides) == (8, {False, True})
    assert found.functions == ("0xcafe::counter::bump",)


def test_what_moves_nothing_is_not_the_cause():
    made, serving = served(NO_PART)
    at, before, after = around(made)
    with serving as one, toolkit.connect(one.url, cache=None) as node:
        found = executed(node, at, Cause.CODE, before=before, after=after)
    assert found.sides == {False, True}
    assert found.functions == ()
    assert found.proves("gas_used", 5, 6, unit=1) is False


def test_what_is_not_verified_or_not_served_proves_nothing():
    made, serving = served(DEARER)
    at, before, after = around(made)
    for sent in made.sent[AT + 1 :]:
        sent.gas_used += 1
    with serving as one, toolkit.connect(one.url, cache=None) as node:
        found = executed(node, at, Cause.SCHEDULE, before=before, after=after)
        assert found.sides == {False}
        assert found.proves("gas_used", 0, 10**6, unit=1) is None
        made.only_json = True
        change = Change(at, Cause.SCHEDULE, "changed the gas schedule")
        row = {
            "part": "execution",
            "stratum": ALL_TRANSACTIONS,
            "change_low": 1.0,
            "change_high": 2.0,
            "cause": "schedule",
        }
        [told] = proved_rows(node, [((change,), row)], {ALL_TRANSACTIONS: [*before, *after]}, unit=1)
    assert told["cause"] == Cause.SCHEDULE
    assert "proved" not in told
    assert told["explanation"]


def test_steps_of_a_way_are_not_excluded_by_transactions_of_all_ways():
    """Those nearest to the change may take other ways, which it does not move: nothing is executed."""
    change = Change(500, Cause.CODE, "upgraded a module")
    row = {"part": "execution", "stratum": "succeeding", "change_low": 49.0, "change_high": 51.0, "cause": "code"}
    [way] = proved_rows(None, [((change,), row | {"way_gas": 5_000.0})], {"succeeding": range(1_000)}, unit=1)
    assert (way["cause"], way.get("proved"), way.get("executed")) == ("code", None, None)


def test_code_evidence_names_the_functions_whose_bytecode_changed():
    made, serving = served(OTHER_CODE)
    at, _, _ = around(made)
    module = RelatedModule(ModuleId.parse("0xcafe::counter"), Role.CALLED)
    with serving as one, toolkit.connect(one.url, cache=None) as node:
        fact = finding.module_fact(module, (at - 1, at), Evidence(node))
        assert fact.code.changed == ("bump",)
        assert "bump" in fact.clause()
        assert finding.module_fact(module, (at, at + 2), Evidence(node)) is None
