"""Steps between observations of a call."""

from __future__ import annotations

import pytest

from tests.unit.gas.observed import row, table
from toolkit.frames._schema import STEPS
from toolkit.gas._cause_sentences import step_row, steps_frame
from toolkit.gas._findings import Explanation
from toolkit.gas._observations import Cause
from toolkit.gas._steps import steps_of


def test_neighbours_that_differ_are_a_step():
    """Between which versions, from what to what, by how much."""
    (step,) = steps_of(table(row(1, 10), row(5, 10), row(9, 12)))
    assert (step.version_before, step.version_after, step.gas_before, step.gas_after) == (5, 9, 10, 12)
    assert (step.change, step.change_percent, step.exact) == (2, 20.0, False)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param([], [], id="no observations"),
        pytest.param([row(1), row(2), row(30)], [], id="equal gas"),
        pytest.param([row(1, error="x"), row(2, error="x"), row(3, error="x")], [], id="the same error"),
        pytest.param([row(1, error="x"), row(2, error="y")], [(1, 2, None, None, True)], id="another error"),
        pytest.param([row(9, 12), row(1, 10), row(5, 10)], [(5, 9, 2, 20.0, False)], id="in any order"),
        pytest.param([row(4, 10), row(5, 15)], [(4, 5, 5, 50.0, True)], id="adjacent versions are exact"),
        pytest.param([row(1, 0), row(2, 5)], [(1, 2, 5, None, True)], id="no percentage of nothing"),
        pytest.param([row(1, 2**62), row(2, 2**62 + 1)], [(1, 2, 1, 100 / 2**62, True)], id="the last digit"),
    ],
)
def test_a_step_is_where_neighbours_differ(rows, expected):
    """Between which versions, by how much, and whether one transaction lies between them."""
    found = steps_of(table(*rows))
    assert [
        (one.version_before, one.version_after, one.change, one.change_percent, one.exact) for one in found
    ] == expected


def test_calls_nodes_and_sources_are_kept_apart():
    """A step is within one call on one node; simulations and committed transactions have none."""
    found = steps_of(
        table(
            row(1, 10),
            row(2, 20, label="b"),
            row(3, 30, node="http://other.test/v1"),
            row(4, 40, source="simulate@now"),
            row(5, 50, source="committed"),
            row(6, 60, source="committed"),
            row(7, 10),
        )
    )
    assert found == []


def test_a_call_that_begins_to_fail_is_a_step():
    """From gas to error and back: two steps without a change in units."""
    there, back = steps_of(table(row(1, 10), row(2, error="invalid_input"), row(3, 10)))
    assert (there.gas_before, there.gas_after, there.error_after, there.success_after) == (
        10,
        None,
        "invalid_input",
        None,
    )
    assert (back.error_before, back.gas_after) == ("invalid_input", 10)
    assert there.change is None
    assert back.change_percent is None


def test_each_steps_node_builds_are_kept():
    """A different build on either side is a cause of its own."""
    (step,) = steps_of(table(row(1, 10), row(2, 11, node_build="def")))
    assert (step.build_before, step.build_after) == ("abc", "def")


def test_steps_become_rows_with_their_causes():
    """A cause that was found is shown; one that was not looked for is `unknown`, with the reason."""
    one, two = steps_of(table(row(1, 10), row(2, 11), row(9, error="x")))
    steps = steps_frame([step_row(one, Explanation(Cause.SCHEDULE, "prices rose")), step_row(two, None)])
    assert steps["cause"].tolist() == ["schedule", "unknown"]
    assert steps["explanation"].tolist()[0] == "prices rose"
    assert "interrupted" in steps["explanation"].tolist()[1]
    assert steps["exact"].tolist() == [True, False]
    assert steps["change"].isna().tolist() == [False, True]


def test_no_steps_are_an_empty_frame():
    """A run in which nothing moved has its steps frame all the same."""
    steps = steps_frame([])
    assert len(steps) == 0
    assert list(steps.columns) == STEPS.names


def test_a_call_that_got_no_answer_is_no_step():
    """A call without an answer is not compared: an outage is not a step."""
    assert steps_of(table(row(1, 10), row(2, error="unreachable"), row(3, 10))) == []
    found = steps_of(table(row(1, 10), row(2, error="http_503"), row(3, 12)))
    assert [(one.version_before, one.version_after) for one in found] == [(1, 3)]
