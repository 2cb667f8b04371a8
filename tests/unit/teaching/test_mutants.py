"""Exercises judged by state tell right from wrong: six or more wrong answers each are refused, three right forms pass."""

from __future__ import annotations

import re

import pytest

from tests.unit.teaching.right_answers import mutants
from toolkit.teaching._check import Verdict, judge
from toolkit.teaching._exercises import exercises

WRONG = list(mutants.wrong())
RIGHT = list(mutants.right())


@pytest.mark.parametrize(("name", "what", "answer", "said"), WRONG, ids=[f"{row[0]} {row[1]}" for row in WRONG])
def test_a_wrong_answer_is_refused_with_feedback_that_fits(name, what, answer, said):
    """Each guarantee that an answer breaks has a step that notices it."""
    checked = judge(name, exercises()[name], answer)
    assert checked.verdict is Verdict.NOT_YET
    assert re.search(said, checked.message), checked.message


@pytest.mark.parametrize(("name", "what", "answer"), RIGHT, ids=[f"{row[0]} {row[1]}" for row in RIGHT])
def test_a_right_answer_in_another_form_passes(name, what, answer):
    """There is more than one way."""
    checked = judge(name, exercises()[name], answer)
    assert (checked.verdict, checked.message) == (Verdict.RIGHT, "")


def test_every_exercise_judged_by_state_has_its_sets():
    """Six wrong answers and three right ones at least."""
    stated = {name for name, one in exercises().items() if one.steps}
    wrong = {name: sum(row[0] == name for row in WRONG) for name in stated}
    right = {name: sum(row[0] == name for row in RIGHT) for name in stated}
    assert {name: number for name, number in wrong.items() if number < 6} == {}
    assert {name: number for name, number in right.items() if number < 3} == {}
