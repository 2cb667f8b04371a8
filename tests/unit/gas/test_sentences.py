"""Sentences about steps: the cause first, then each call with its change; drifts are merged."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.unit.gas.observed import row, table
from toolkit.gas._cause_sentences import step_row, steps_frame
from toolkit.gas._findings import ChangingTransaction, Explanation
from toolkit.gas._observations import Cause, ReadAt, Source
from toolkit.gas._sentences import _UNJUDGED, _explains, run_lines, step_lines
from toolkit.gas._steps import (
    PartChange,
    coverage_of,
    step_groups,
    steps_of,
)
from toolkit.gas.causes._facts import ScheduleChange
from toolkit.wire import GasSchedule


def words(*rows, why=None):
    """Return the lines for observations; `why` gives the cause by version."""
    steps = steps_of(table(*rows))
    causes = {step: (why or {}).get(step.version_after, Explanation(Cause.STATE, "it was written")) for step in steps}
    return step_lines(steps_frame([step_row(step, causes[step]) for step in steps]))


def test_calls_that_step_together_are_one_group():
    """One line for the cause; its calls below it, largest change first."""
    rows = [row(1, 10), row(2, 15), row(1, 1, label="b"), row(2, 2, label="b")]
    assert words(*rows, why={2: Explanation(Cause.SCHEDULE, "prices rose")}) == [
        "at version 2, gas schedule: prices rose",
        "  b: from 1 to 2 gas units (×2)",
        "  a: from 10 to 15 gas units (+50 %)",
    ]


def test_rounding_is_noted_once():
    """Only some of the calls are small enough for it."""
    steps = steps_of(table(row(1, 10), row(2, 100), row(1, 1, label="b"), row(2, 2, label="b")))
    by = ChangingTransaction(2, None, "user_transaction", None, None)
    schedules = GasSchedule(1, {"a": 1, "b": 2}), GasSchedule(1, {"a": 10, "b": 20})
    found = [
        step_row(step, Explanation(Cause.SCHEDULE, found={Cause.SCHEDULE: (change,)}, transaction=by))
        for step, change in zip(
            steps, (ScheduleChange(*schedules), ScheduleChange(*schedules, rounded=True)), strict=True
        )
    ]
    assert [(row["price_ratio"], row["rounded"]) for row in found] == [(10, False), (10, True)]
    [group] = step_groups(steps_frame(found))
    assert (group.price_ratio, group.rounded, len(group.changes)) == (10, True, 2)
    assert step_lines(steps_frame(found))[0].count("rounded up") == 1


@pytest.mark.parametrize(
    ("time", "place"),
    [
        (datetime(2026, 3, 23, 17, tzinfo=UTC), "at version 2 (2026-03-23)"),
        (datetime(1970, 1, 1, tzinfo=UTC), "at version 2"),
        (None, "at version 2"),
    ],
)
def test_an_exact_step_has_the_date_of_its_transaction(time, place):
    """A time of 1970, of a test ledger, is not a date."""
    by = ChangingTransaction(2, "0x7", "user_transaction", None, None, time=time)
    told = words(row(1, 10), row(2, 15), why={2: Explanation(Cause.CODE, transaction=by)})
    assert told[0].startswith(f"{place}, code: transaction 2")


def test_an_interval_is_told_as_one():
    """No version is claimed."""
    assert words(row(1, 10), row(9, 5))[0] == "between versions 1 and 9, state: it was written"


def test_events_come_by_version_whatever_the_order_of_calls():
    """As history went."""
    lines = words(row(7, 1), row(8, 2), row(1, 1, label="b"), row(2, 2, label="b"))
    assert [line for line in lines if not line.startswith(" ")] == [
        "at version 2, state: it was written",
        "at version 8, state: it was written",
    ]


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (row(1, error="invalid_input"), row(2, 6), "available from here, at 6 gas units"),
        (
            row(1, 6),
            row(2, error="invalid_input"),
            "cannot be called from here (invalid_input); before, it took 6 gas units",
        ),
        (
            row(1, 6),
            row(2, error="vm_error", success=False),
            "fails from here (vm_error); before, it took 6 gas units",
        ),
        (
            row(1, error="invalid_input"),
            row(2, error="invalid_input", success=False),
            "can be called from here, but fails (invalid_input)",
        ),
        (row(1, 73), row(2, 29, success=False), "fails from here, after 29 gas units; before, it took 73"),
        (row(1, 29, success=False), row(2, 73), "succeeds from here, after 73 gas units; before, it failed after 29"),
        (row(1, None), row(2, 1), "no gas reported, then 1 gas unit"),
        (row(1, 0), row(2, 1), "from 0 to 1 gas unit (+1)"),
    ],
)
def test_what_changed_is_said_as_a_reader_knows_it(before, after, told):
    """Available from a version on, or until then; fails differently, or costs more."""
    assert words(before, after)[1] == f"  a: {told}"


def test_many_small_steps_of_one_call_are_one_line():
    """A drift is one line from its first step to its last; larger steps are lines of their own."""
    gas = [10, 11, 12, 13, 50, 51, 52, 53, 90]
    lines = words(row(0, error="invalid_input"), *(row(version, units) for version, units in enumerate(gas, start=1)))
    assert [line for line in lines if line.startswith("  ")] == [
        "  a: available from here, at 10 gas units",
        "  a: from 10 to 13 gas units (+30 % in 3 steps)",
        "  a: from 13 to 50 gas units (×3.8)",
        "  a: from 50 to 53 gas units (+6 % in 3 steps)",
        "  a: from 53 to 90 gas units (+69.8 %)",
    ]
    assert lines[2] == "over versions 2 to 4, state: largest step: it was written"


def test_small_steps_that_end_where_they_began_are_one_line():
    """A drift whose gas is the same on both sides is described, and has its number of steps."""
    lines = words(*(row(version, units) for version, units in enumerate([10, 11, 10, 11, 10, 90, 91, 90], start=1)))
    assert [line for line in lines if line.startswith("  ")] == [
        "  a: 10 to 11 gas units in 4 steps, back to 10",
        "  a: from 10 to 90 gas units (×9)",
        "  a: 90 to 91 gas units in 2 steps, back to 90",
    ]


def test_of_very_many_groups_the_largest_are_listed():
    """At most 60 groups are listed, by version; the last line has the number of the others."""
    gas = [1 if version % 2 else 100 + version for version in range(101)]
    lines = words(*(row(version, units) for version, units in enumerate(gas)))
    assert len(lines) == 2 * 60 + 1
    assert lines[-1] == "... and 40 more (see `run.steps`)"
    versions = [int(line.split()[2].rstrip(",")) for line in lines[:-1:2]]
    assert versions == sorted(versions)


def test_every_cause_and_source_has_a_label():
    """The labels are complete, so that no cause is shown by its value in one place and by its label in another."""
    assert all(one.label for one in (*Cause, *Source))


def test_several_nodes_are_told_apart():
    """The node is named where there is more than one."""
    other = {"node": "http://other.test/v1"}
    lines = words(row(1, 1), row(2, 2), row(1, 1, **other), row(2, 2, **other))
    assert lines[0] == "at version 2 on http://node.test/v1, state: it was written"
    assert lines[2] == "at version 2 on http://other.test/v1, state: it was written"


def test_no_steps_are_a_sentence():
    """Nothing moved is worth saying."""
    observations = [row(1, 1), row(2, 1)]
    assert words(*observations) == []
    covered = coverage_of([table(*observations)])
    assert run_lines(steps_frame([]), covered) == ["no view's gas, success or error changed"]


@pytest.mark.fault("committed transactions and simulations in one run", "reported as observed but not judged")
def test_what_was_not_judged_is_said():
    """Only calls that were compared are reported as unchanged."""
    paid = [row(version, gas, label="pay", source="committed") for version, gas in ((1, 5), (2, 900))]
    alone = run_lines(steps_frame([]), coverage_of([table(*paid)]))
    committed = (
        "Committed transactions were observed but not compared, because the run is not complete; run its study into its "
        "folder to have them judged: 2 of pay (gas from 5 to 900)."
    )
    assert alone == ["no call was judged, so no step can be found", committed]
    views = [row(1), row(2), row(1, label="once"), row(1, label="silent"), row(2, error="http_503", label="silent")]
    simulated = row(9, 41, label="s", source="simulate@now")
    mixed = coverage_of([table(*paid[:1], *views[:2]), table(*paid[1:], *views[2:], simulated)])
    assert mixed.judged == 1
    assert run_lines(steps_frame([]), mixed) == [
        "no view's gas, success or error changed",
        committed,
        "Simulations run only at the latest version, so they have no history: s (gas 41).",
        "Views with results at fewer than two ledger versions show no change: once (gas 10); silent (gas 10).",
    ]


def test_a_simulation_that_fails_is_told_from_one_that_works():
    """The gas of a failure is not what the call costs."""
    runs = [row(9, 68, label=label, source="simulate@now", success=good) for label, good in (("a", False), ("b", True))]
    covered = coverage_of([table(*runs)])
    assert [one.succeeded for one in covered.unjudged] == [False, True]
    assert run_lines(steps_frame([]), covered)[-1].endswith(": a (gas 68, would fail); b (gas 68).")


@pytest.mark.parametrize(
    ("change", "parts", "whole"),
    [
        (3_953, [("io", 29, 31)], False),
        (3_953, [("io", 29, 31), ("execution", 60, 64), ("storage", 3_858, 3_860)], True),
        (-30, [("io", -31, -29), ("refund", -500, -500)], True),
        (-90, [("io", -31, -29)], False),
    ],
)
def test_parts_that_are_not_the_whole_change_are_told_from_those_that_are(change, parts, whole):
    """The other parts may be judged with other transactions of the call."""
    assert _explains([PartChange(part, 1, 1, low, high) for part, low, high in parts], change) is whole


def test_every_cause_and_source_has_its_words():
    """A sentence about a new member cannot fail in the one report that needs it."""
    assert [one for one in Cause if not one.because] == [Cause.UNKNOWN]
    assert set(_UNJUDGED) == set(ReadAt)
