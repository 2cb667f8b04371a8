"""Exercises judged by state tell right from wrong: six or more wrong answers each are refused, three right forms pass."""

from __future__ import annotations

import re
import sys

import pytest

from tests.unit.teaching.right_answers import NOTEBOOKS, contract, requests, solved
from toolkit.teaching._answers import answer_of
from toolkit.teaching._check import Verdict, judge
from toolkit.teaching._exercises import exercises

sys.path.insert(0, str(NOTEBOOKS / "solutions"))
try:
    import mutants
finally:
    sys.path.pop(0)


def changed(name, changes):
    source = solved(name).value
    for before, after in changes:
        assert before in source, before
        source = source.replace(before, after)
    return contract(source)


def asked(calls):
    return requests(*((sender, function, *arguments) for sender, function, arguments in calls))


WRONG = [
    *((name, what, changed, *rest) for name, sets in mutants.CONTRACTS.items() for what, rest in sets.items()),
    *(
        (name, what, lambda _, calls: asked(calls), *rest)
        for name, sets in mutants.REQUESTS.items()
        for what, rest in sets.items()
    ),
    *(
        (name, what, lambda _, rules: answer_of(rules), *rest)
        for name, sets in mutants.RULES.items()
        for what, rest in sets.items()
    ),
]
RIGHT = [
    *((name, what, changed, rest) for name, sets in mutants.FORMS.items() for what, rest in sets.items()),
    *((name, str(number), lambda _, calls: asked(calls), one) for name, sets in mutants.RIGHT_REQUESTS.items() for number, one in enumerate(sets)),
    *((name, str(number), lambda _, rules: answer_of(rules), one) for name, sets in mutants.RIGHT_RULES.items() for number, one in enumerate(sets)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "what", "made", "given", "said"), WRONG, ids=[f"{row[0]} {row[1]}" for row in WRONG])
def test_a_wrong_answer_is_refused_with_feedback_that_fits(name, what, made, given, said):
    """Each guarantee that an answer breaks has a step that notices it."""
    checked = judge(name, exercises()[name], made(name, given))
    assert checked.verdict is Verdict.NOT_YET
    assert re.search(said, checked.message), checked.message


@pytest.mark.parametrize(("name", "what", "made", "given"), RIGHT, ids=[f"{row[0]} {row[1]}" for row in RIGHT])
def test_a_right_answer_in_another_form_passes(name, what, made, given):
    """There is more than one way."""
    checked = judge(name, exercises()[name], made(name, given))
    assert (checked.verdict, checked.message) == (Verdict.RIGHT, "")


def test_every_exercise_judged_by_state_has_its_sets():
    """Six wrong answers and three right ones at least."""
    stated = {name for name, one in exercises().items() if one.steps}
    wrong = {name: sum(row[0] == name for row in WRONG) for name in stated}
    right = {name: sum(row[0] == name for row in RIGHT) for name in stated}
    assert {name: number for name, number in wrong.items() if number < 6} == {}
    assert {name: number for name, number in right.items() if number < 3} == {}
