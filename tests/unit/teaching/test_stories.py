"""Exercises that are judged by state: what an answer does on a fresh ledger, answered wrongly in several ways, then rightly.

The right answers are those of the notebooks with solutions.
"""

from __future__ import annotations

import sys

import pytest

from tests.unit.teaching.right_answers import APT, NOTEBOOKS, RIGHT, contract, requests, solved
from toolkit import EntryFunction, SimulationRequest
from toolkit.teaching import Verdict
from toolkit.teaching._answers import Answer, answer_of
from toolkit.teaching._check import judge
from toolkit.teaching._exercises import AnswerKind, exercises
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
    ("06.4", requests(("0xa11ce", "0xcafe::registry::transfer", "alice", "0xb0b")), "Who must sign to give 'bob' away"),
    ("06.4", requests(("0xb0b", "0xcafe::registry::transfer", "alice", "0xb0b")), "E_NOT_OWNER"),
    ("06.4", requests(("0xca401", "0xcafe::registry::register", "x")), "only 0xa11ce and 0xb0b may sign"),
    ("06.4", answer_of([EntryFunction("0xcafe::registry::size")]), "name the signer"),
    ("06.4", answer_of("alice"), "Expected a list of requests"),
    ("06.4", requests(*[("0xa11ce", "0xcafe::registry::register", str(n)) for n in range(41)]), "at most 40"),
    ("06.4", requests(("0xa11ce", "0xcafe::registry::tranfer", "alice")), "tranfer"),
    ("08.4", requests(("0xa11ce", "0xcafe::registry::register", "more")), "more octas than before"),
    ("08.4", requests(("0xa11ce", "0xcafe::registry::release", "alice-1")), "All three of Alice's names must be gone"),
    ("08.4", requests(("0xa11ce", "0xcafe::registry::release", "bob")), "E_NOT_OWNER"),
    ("12.4", ("12.4", ("saved.amount += amount", "saved.amount = amount")), "A second deposit is added to the first"),
    ("12.4", ("12.4", ("self.require(amount <= self.saved_by(account), self.E_TOO_MUCH)", "pass"), ("saved.amount -= amount", "saved.amount = 0")), "A withdrawal is subtracted"),
    ("12.4", ("12.4", ("if not self.exists(Savings.Saved, account):", "if True:")), "move_to fails if the account already has"),
    ("12.4", ("12.4", ("if not self.exists(Savings.Saved, owner):", "if False:")), "Carol has never saved"),
    ("12.4", ("12.4", ("def saved_by(self, owner: address) -> u64", "def saved(self, owner: address) -> u64"), ("self.saved_by(", "self.saved(")), "saved_by"),
    ("12.4", ("12.4", ("self.require(amount <= self.saved_by(account), self.E_TOO_MUCH)", "pass")), "was expected to abort with E_TOO_MUCH"),
    ("12.4", ("12.4", ("def saved_by(self, owner: address) -> u64:", "def saved_by(self, owner: address) -> tuple[u64, u64]:"), ("return 0", "return 0, 0"), (").amount", ").amount, 0"), ("self.saved_by(account)", "self.saved_by(account)[0]")), "The call returned an unexpected value"),
    ("12.5", ("12.5", ("known.value += amount", "known.value += 1")), "Does every tip change the stored sum"),
    ("12.5", ("12.5", ("    class Tips(Resource):\n", "    class Tips(Resource):\n        sum: u64\n"), ("Jar.Tips(amounts=[])", "Jar.Tips(sum=0, amounts=[])")), "An upgrade keeps every struct"),
    ("14.4", answer_of("1%"), "must let it pass"),
    ("14.4", answer_of(1_000), "the gate must stop it"),
    ("14.4", answer_of({"percentage": 5}), "percentage"),
    ("14.4", answer_of(None), "got nothing (None)"),
    ("16.1", requests(("0xbad", "0x5afe::vault::withdraw", "0xbad", APT)), "withdrawing your own coins is not theft"),
    ("16.1", requests(("0xa11ce", "0x5afe::vault::withdraw", "0xa11ce", APT)), "only 0xbad may sign"),
    ("16.1", requests(("0xbad", "0x5afe::vault::withdraw", "0xa11ce", 51 * APT)), "E_TOO_MUCH"),
    ("16.2", ("16.2", ("self.require(account == owner, self.E_NOT_OWNER)", "self.abort(self.E_NOT_OWNER)")), "Alice must be able to withdraw"),
    ("16.2", ("16.2", ("account: signer, owner: address, amount", "account: signer, amount"), ("self.require(account == owner, self.E_NOT_OWNER)", "owner = account")), "keep the signature of every entry function"),
    ("16.3", requests(("0xbad", "0x9001::pool::deposit", 1)), "make a share expensive first"),
    ("16.3", requests(("0xbad", "0x9001::pool::reward", APT)), "make a share expensive first"),
    ("16.4", ("16.4", ("self.require(new > 0, self.E_NO_SHARES)", "self.abort(self.E_NO_SHARES)")), "An honest deposit, large enough"),
    ("16.5", ("16.5", ("bonus = min(amount // 20, books.held - books.all_owed)", "bonus = u64(0)")), "The bonus is 5%"),
    ("16.6", ("16.6", ("members.before.add(account, members.paid)", "members.before.add(account, 0)")), "earned what was paid since"),
    ("17.1", ("17.1", ("for _ in range(count):\n                tickets", "if True:\n                tickets")), "Bob has bought tickets twice"),
    ("17.1", ("17.1", ("self.require(count > 0, self.E_NONE)", "pass")), "Buying 0 tickets must abort"),
    ("17.2", ("17.2", ("self.counted_up(account) - count", "0")), "before and after the upgrade must count"),
    ("17.3", answer_of({"calls": {"Carol": ["0x4aff1e::raffle::tickets_of", ["0xca401"]]}, "thresholds": "5%"}), "Which call shows it"),
    ("17.3", answer_of("5%"), '"calls"'),
]  # fmt: skip


@pytest.mark.parametrize(("name", "answer", "said"), WRONG, ids=[f"{row[0]} {row[2][:24]}" for row in WRONG])
def test_a_wrong_answer_is_told_what_goes_wrong(name, answer, said):
    """Each likely mistake has its sentence, with what happened and what was expected."""
    given = answer if isinstance(answer, Answer) else replaced(solved(answer[0]).value, *answer[1:])
    checked = judge(name, exercises()[name], given)
    assert checked.verdict is Verdict.NOT_YET
    assert said in checked.message


def test_the_code_to_start_from_is_published_and_not_right(starts):
    """Unchanged, it is a wrong answer with a sentence, not an error."""
    for name, source in starts.items():
        checked = judge(name, exercises()[name], contract(source))
        assert checked.verdict is Verdict.NOT_YET
        assert "expected" in checked.message, (name, checked.message)


def test_every_class_can_be_answered():
    """With the numbers that are drawn for a class, right answers are right, and no exercise is the same as the mistakes."""
    sys.path.insert(0, str(NOTEBOOKS / "solutions"))
    try:
        from exercises import Draw
        from stories import STORIES
    finally:
        sys.path.pop(0)
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
