"""Exercises that are judged by state: what an answer does on a fresh ledger, answered wrongly in several ways, then rightly.

The right answers are those of the notebooks with solutions.
"""

from __future__ import annotations

import sys

import pytest

from tests.unit.teaching.right_answers import NOTEBOOKS, RIGHT, contract, requests, solved
from toolkit import EntryFunction, SimulationRequest
from toolkit.teaching import Verdict
from toolkit.teaching._answers import GivenAnswer, answer_of
from toolkit.teaching._check import judge
from toolkit.teaching._exercises import AnswerKind, CallStep, Ending, exercises
from toolkit.teaching._story import what_happens

STATED = [name for name, one in exercises().items() if one.solution is None]


@pytest.fixture(scope="module")
def starts():
    sys.path.insert(0, str(NOTEBOOKS / "solutions"))
    try:
        from stories import STARTS
    finally:
        sys.path.pop(0)
    return STARTS


@pytest.mark.parametrize("name", STATED)
def test_the_right_answer_is_right(name):
    """As the lessons with solutions have it, or another answer that does the same."""
    checked = judge(name, exercises()[name], RIGHT[name] if name in RIGHT else solved(name))
    assert (checked.verdict, checked.message) == (Verdict.RIGHT, "")


def replaced(source, *pairs):
    for before, after in pairs:
        assert before in source, before
        source = source.replace(before, after)
    return contract(source)


WRONG = [
    ("06.4", answer_of([EntryFunction("0xcafe::registry::size")]), "name the signer"),
    ("06.4", answer_of("alice"), "Expected a list of requests"),
    ("06.4", requests(*[("0xa11ce", "0xcafe::registry::register", str(n)) for n in range(41)]), "at most 40"),
    ("12.4", ("12.4", ("def saved_by(self, owner: address) -> u64", "def saved(self, owner: address) -> u64"), ("self.saved_by(", "self.saved(")), "saved_by"),
    ("12.4", ("12.4", ("def saved_by(self, owner: address) -> u64:", "def saved_by(self, owner: address) -> tuple[u64, u64]:"), ("return 0", "return 0, 0"), (").amount", ").amount, 0"), ("self.saved_by(account)", "self.saved_by(account)[0]")), "The call returned an unexpected value"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "answer", "said"), WRONG, ids=[f"{row[0]} {row[2][:24]}" for row in WRONG])
def test_a_wrong_answer_is_told_what_goes_wrong(name, answer, said):
    """An answer of the wrong kind, or one that cannot be called, has its sentence; `test_mutants` has the likely mistakes."""
    given = answer if isinstance(answer, GivenAnswer) else replaced(solved(answer[0]).value, *answer[1:])
    checked = judge(name, exercises()[name], given)
    assert checked.verdict is Verdict.NOT_YET
    assert said in checked.message


def test_the_code_to_start_from_is_published_and_not_right(starts):
    """Unchanged, it is a wrong answer with a sentence, not an error."""
    for name, source in starts.items():
        checked = judge(name, exercises()[name], contract(source))
        assert checked.verdict is Verdict.NOT_YET
        assert "expected" in checked.message, (name, checked.message)


@pytest.mark.parametrize(
    ("ending", "code", "end"),
    [(Ending.SUCCESS, "", ""), (Ending.ABORT, "E_OTHER", ", but was expected to abort with E_OTHER")],
)
def test_what_the_ledger_says_is_a_part_of_the_sentence(ending, code, end):
    """Without its full stop; a text of an exercise is not changed."""
    pay = CallStep("0x1::aptos_account::transfer", ("0xcafe", 10**18), "0xb0b", ending, code, says="Save .. then pay.")
    said = what_happens([pay], answer_of(1))
    assert said.endswith(f"Insufficient balance to withdraw or transfer{end}. Save .. then pay.")


def test_every_class_can_be_answered():
    """With the numbers that are drawn for a class, right answers are right, and no exercise is the same as the mistakes."""
    sys.path[:0] = [str(NOTEBOOKS), str(NOTEBOOKS / "solutions")]
    try:
        from exercises import Draw
        from stories import STORIES
    finally:
        del sys.path[:2]
    for name, story in STORIES.items():
        exercise = story(Draw(name, 1))
        right = RIGHT[name] if name in RIGHT else solved(name)
        if name == "16.1":  # the amount is stored in the story
            octas = next(step.arguments[0] for step in exercise.steps if getattr(step, "sender", "") == "0xa11ce")
            right = requests(("0xbad", "0x5afe::vault::withdraw", "0xa11ce", octas))
        assert what_happens(exercise.steps, right) == "", name
    assert STORIES["12.4"](Draw("12.4", 1)) != exercises()["12.4"]


def test_kinds_of_answers_are_data():
    """What is sent to the process that judges: never a value of a student."""
    assert answer_of([SimulationRequest(EntryFunction("0x1::m::f"), sender="0x1")]).kind is AnswerKind.CALLS
    assert answer_of(10**500).kind is AnswerKind.FRACTION
    assert answer_of({"a": object()}).kind is AnswerKind.OTHER
    nested: list = []
    nested.append(nested)
    assert answer_of(nested).kind is AnswerKind.OTHER
