"""Steps in plain words: the cause first, then each call by how much; drifts counted."""

from __future__ import annotations

import pytest

from tests.unit.gas.observed import frame, row, table
from toolkit.frames.columns import rows_frame
from toolkit.frames.schema import STEPS
from toolkit.gas.causes.words import ROUNDED
from toolkit.gas.judged import coverage_of
from toolkit.gas.steps import Cause, step_columns, steps_of
from toolkit.gas.words import run_words, step_words


def words(*rows, why=None):
    """Return the lines for observations; `why` gives the cause by version."""
    steps = steps_of(frame(*rows))
    causes = {step: (why or {}).get(step.version_after, Cause("state", "it was written")) for step in steps}
    return step_words(rows_frame(STEPS, step_columns(steps, causes)))


def test_calls_that_step_together_are_told_together():
    """One cause, one line; its calls below it, by how much."""
    rows = [row(1, 10), row(2, 15), row(1, 1, label="b"), row(2, 2, label="b")]
    assert words(*rows, why={2: Cause("schedule", "prices rose")}) == [
        "at version 2, schedule: prices rose",
        "  a: 10 to 15 gas units (+50.0 %)",
        "  b: 1 to 2 gas units (+100.0 %)",
    ]


def test_rounding_is_told_once():
    """Only some of the calls are small enough for it."""
    steps = steps_of(frame(row(1, 10), row(2, 100), row(1, 1, label="b"), row(2, 2, label="b")))
    causes = {steps[0]: Cause("schedule", "x10"), steps[1]: Cause("schedule", "x10" + ROUNDED)}
    lines = step_words(rows_frame(STEPS, step_columns(steps, causes)))
    assert lines[0] == f"at version 2, schedule: x10{ROUNDED}"
    assert len(lines) == 3


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
        (row(1, error="invalid_input"), row(2, 6), "starts to answer, with 6 gas units"),
        (row(1, 6), row(2, error="invalid_input"), "cannot be called (invalid_input); it took 6 gas units"),
        (row(1, 6), row(2, error="vm_error", success=False), "fails when it runs (vm_error); it took 6 gas units"),
        (
            row(1, error="invalid_input"),
            row(2, error="invalid_input", success=False),
            "cannot be called (invalid_input), then fails when it runs (invalid_input)",
        ),
        (row(1, None), row(2, 1), "no gas told, then 1 gas unit"),
        (row(1, 0), row(2, 1), "0 to 1 gas unit"),
    ],
)
def test_what_changed_is_said_as_a_reader_knows_it(before, after, told):
    """Starts and stops answering, fails in another way, or costs more."""
    assert words(before, after)[1] == f"  a: {told}"


def test_many_small_steps_of_one_call_are_counted():
    """The six largest are told, in order; the rest is a number and a range."""
    gas = [10, 11, 12, 13, 50, 51, 52, 53, 90]
    lines = words(row(0, error="invalid_input"), *(row(version, units) for version, units in enumerate(gas, start=1)))
    assert sum(line.startswith("  a:") for line in lines) == 6
    assert lines[1] == "  a: starts to answer, with 10 gas units"
    assert "  a: 13 to 50 gas units (+284.6 %)" in lines
    assert lines[-1] == "a: 3 smaller steps more, from version 5 to 8"


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
    assert run_words(rows_frame(STEPS, {}), covered) == ["no view changed its gas, success or error"]


@pytest.mark.fault("committed transactions and simulations in a run", "they are said to be observed but not judged")
def test_what_was_not_judged_is_said():
    """Nothing is said to be unchanged that was not looked at."""
    paid = [row(version, gas, label="pay", source="committed") for version, gas in ((1, 5), (2, 900))]
    alone = run_words(rows_frame(STEPS, {}), coverage_of([table(*paid)]))
    committed = (
        "Committed transactions were observed but not judged, because steps are found for views only: "
        "2 of pay (gas from 5 to 900)."
    )
    assert alone == ["no view was answered at two ledger versions or more, so no step can be found", committed]
    views = [row(1), row(2), row(1, label="once"), row(1, label="silent"), row(2, error="http_503", label="silent")]
    simulated = row(9, 41, label="s", source="simulate@now")
    mixed = coverage_of([table(*paid[:1], *views[:2]), table(*paid[1:], *views[2:], simulated)])
    assert mixed.judged == 1
    assert run_words(rows_frame(STEPS, {}), mixed) == [
        "no view changed its gas, success or error",
        committed,
        "Simulations are made at the head only, so they show no change: s (gas 41).",
        "Views that were answered at fewer than two ledger versions show no change: once (gas 10); silent (gas 10).",
    ]
