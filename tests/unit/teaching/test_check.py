"""Exercises that check themselves: what `toolkit.teaching.check` says of right, wrong and odd answers."""

from __future__ import annotations

import itertools
import re
from decimal import Decimal
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
import pytest

import toolkit
from toolkit.errors import InputError
from toolkit.teaching import Verdict, _check, check
from toolkit.teaching._answers import answer_of
from toolkit.teaching._check import judge
from toolkit.teaching._exercises import AnswerKind, Exercise, exercises

EVERY = list(exercises())
NAMES = [name for name, one in exercises().items() if one.solution is not None]


def value(solution, hints=("", ""), unit="", slips=""):
    kind = AnswerKind.NUMBER if isinstance(solution, int) else AnswerKind.TEXT
    return Exercise(kind, hints, solution=solution, unit=unit, slips=slips)


class Hostile:
    """An object whose every method raises an error."""

    def __getattribute__(self, name):
        raise RuntimeError(name)

    def __eq__(self, other):
        raise RuntimeError("==")

    def __repr__(self):
        raise RuntimeError("repr")

    __hash__ = None


ODD = {
    "None": None,
    "True": True,
    "float": 1.5,
    "text": "forty-two",
    "list": [1, "two"],
    "frame": pd.DataFrame({"a": [1]}),
    "object": Hostile(),
    "nan": float("nan"),
}


@pytest.fixture(autouse=True)
def no_failures(monkeypatch):
    """Hints depend on earlier failures: each test begins without any."""
    monkeypatch.setattr(_check, "_FAILURES", type(_check._FAILURES)())


def shows(message, solution):
    """Return whether a message contains the solution as a word, with or without separators of thousands."""
    texts = {str(solution), f"{solution:,}"} if isinstance(solution, int) else {solution}
    return any(re.search(rf"(?<![\w,.]){re.escape(text)}(?![\w]|[,.]\d)", message) for text in texts)


@pytest.mark.parametrize("name", NAMES)
def test_the_solution_is_right_and_each_mistake_has_its_sentence(name):
    """For each exercise: the stored solution is right; a known mistake is not, and its sentence names it."""
    exercise = exercises()[name]
    assert check(name, exercise.solution).verdict is Verdict.RIGHT
    values = [value for value, _ in exercise.mistakes]
    assert exercise.solution not in values
    assert all(one != other for one, other in itertools.combinations(values, 2)), "two mistakes have the same value"
    for value, sentence in exercise.mistakes:
        said = judge(name, exercise, answer_of(value), failures=0)
        assert (said.verdict, said.message) == (Verdict.NOT_YET, sentence)


@pytest.mark.parametrize("name", NAMES)
def test_no_message_gives_the_solution_away(name):
    """No message about odd answers or mistakes and no hint contains the solution; nothing raises an error."""
    exercise = exercises()[name]
    for what, value in ODD.items():
        said = judge(name, exercise, answer_of(value), failures=2)
        assert said.verdict is Verdict.NOT_YET, what
        assert not shows(said.message, exercise.solution), (what, said.message)
        assert "<" not in said._repr_html_().removeprefix("<div").split(">", 1)[0]
    for value, _ in exercise.mistakes:
        said = judge(name, exercise, answer_of(value), failures=2)
        assert not shows(said.message, exercise.solution), said.message
    said = check(name, ...)
    assert said.verdict is Verdict.NOT_ANSWERED
    assert said.message == f"Replace the dots with {exercise.expected}."


@pytest.mark.parametrize("name", NAMES)
def test_the_sentence_on_a_neighbour_does_not_say_which_way_to_go(name):
    """An answer that is one too many or too few is not corrected by a sentence that says so."""
    exercise = exercises()[name]
    if isinstance(exercise.solution, int):
        said = [text for value, text in exercise.mistakes if abs(value - exercise.solution) == 1]
        assert [text for text in said if re.search(r"too (many|few)|one more|missing", text, re.IGNORECASE)] == []


@pytest.mark.parametrize(
    ("name", "answers"),
    [
        ("01.1", [652, "652", " 652 names", "0x28c", np.uint16(652)]),
        ("01.2", ["153,575,560 octas", "153_575_560", "153 575 560", "+153'575'560"]),
        ("04.3", ["-9,773", "-9773 units", "\N{MINUS SIGN}9,773"]),
        ("03.1", ["preview", "vault::preview", "0xfa17::vault::preview", "0xFA17::vault::preview()"]),
        ("03.2", ["0x7ade0", "0x" + "7ade0".zfill(64), "0x7ADE0"]),
        ("06.1", ["EINSUFFICIENT_BALANCE", "0x1::coin::EINSUFFICIENT_BALANCE", "coin::einsufficient_balance"]),
        ("10.2", ["close_day", "order_book::close_day", "0xb00c::order_book::close_day"]),
        ("12.1", ["0x10001", 65537, "65537", "0x010001", 0x10001]),
        ("12.3", ["16,000 octas", 16_000]),
        ("14.3", ["book depth", "Book depth"]),
        ("10.1", ["state", "State", "`state`", "'state'"]),
        ("17.4", ["800 %", "800%", "800 percent", "+800 %"]),
        ("10.3", ["1252", "version 1,252", "ledger version 1252", "v1252"]),
    ],
)
def test_every_reasonable_form_of_a_right_answer_is_right(name, answers):
    """Digits with separators and the unit, hexadecimal numbers, names with and without address and module."""
    given = {str(answer): judge(name, exercises()[name], answer_of(answer)).verdict for answer in answers}
    assert set(given.values()) == {Verdict.RIGHT}, given


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("01.1", "652 octas"),
        ("01.1", "6.52"),
        ("01.1", "65,2"),
        ("01.1", "652 or 653"),
        ("01.2", "153.575560 octas"),
        ("03.1", "0xfa18::vault::preview"),
        ("06.1", "0x1::account::EINSUFFICIENT_BALANCE"),
        ("10.2", "close"),
        ("12.1", 10001),
        ("01.1", "652 %"),
        ("01.1", "version 652"),
    ],
)
def test_what_only_looks_like_a_right_answer_is_not(name, answer):
    """Another unit, a decimal point, another address or module."""
    assert judge(name, exercises()[name], answer_of(answer)).verdict is Verdict.NOT_YET


def test_a_value_that_the_lesson_shows_for_something_else_is_not_right():
    """The owner and the second of "alice", and the bars of the figure of lesson 05, answer no exercise."""
    registry = toolkit.connect().contract("0xcafe::registry")
    alice = registry.record_of("alice")
    assert check("03.2", alice["owner"]).message == 'This is the owner of "alice".'
    assert "alice" in check("05.1", alice["registered_at"]).message
    assert "figure" in check("05.2", 15).message


def test_hints_come_with_the_second_and_the_third_failure():
    """The first wrong answer gets a sentence, the second one a hint in addition, the third both; a right one begins again."""
    first, second, third, fourth = (check("01.1", answer).message for answer in (1, 1.0, "two", 3))
    hints = exercises()["01.1"].hints
    assert [hints[0] in said for said in (first, second, third, fourth)] == [False, True, True, True]
    assert [hints[1] in said for said in (first, second, third, fourth)] == [False, False, True, True]
    check("01.1", ...)
    assert hints[0] in check("01.1", 4).message, "a cell that is not answered is not a failure, and forgives none"
    check("01.1", 652)
    assert "Hint" not in check("01.1", 1).message


@pytest.mark.parametrize(
    ("solution", "answer", "verdict", "said"),
    [
        (5, np.int64(5), Verdict.RIGHT, ""),
        (1, True, Verdict.NOT_YET, "Expected a whole number (octas), got a value of type bool."),
        (
            5,
            5.0,
            Verdict.NOT_YET,
            "got a value of type float (compute it with whole numbers, or convert it with int(...)).",
        ),
        (
            5,
            np.float64(5),
            Verdict.NOT_YET,
            "got a value of type float64 (compute it with whole numbers, or convert it with int(...)).",
        ),
        (
            5,
            Decimal(5),
            Verdict.NOT_YET,
            "got a value of type Decimal (compute it with whole numbers, or convert it with int(...)).",
        ),
        (5, 5.5, Verdict.NOT_YET, "got a value of type float, which is not a whole number."),
        (5, Decimal("Infinity"), Verdict.NOT_YET, "got a value of type Decimal, which is not a whole number."),
        (5, [5], Verdict.NOT_YET, "got a value of type list (take its only element with [0])."),
        (5, pd.Series([5]), Verdict.NOT_YET, "got a value of type Series (take its only element with .item())."),
        (5, np.bool_(True), Verdict.NOT_YET, "got a value of type bool."),
        (5, "5", Verdict.RIGHT, ""),
        (5, "five", Verdict.NOT_YET, "type str (write numbers without quotes)."),
        ("E_X", 1.5, Verdict.NOT_YET, "got a value of type float."),
        (5, None, Verdict.NOT_YET, "got nothing (None)."),
        (5, 6, Verdict.NOT_YET, "This is not the right number (octas)."),
        ("E_X", " E_X ", Verdict.RIGHT, ""),
        ("E_X", "e_x", Verdict.RIGHT, ""),
        ("code", "CODE", Verdict.RIGHT, ""),
        ("E_X", np.str_("E_X"), Verdict.RIGHT, ""),
        ("E_X", "E_Y", Verdict.NOT_YET, "This is not the right text (octas)."),
        ("E_X", ("E_X",), Verdict.NOT_YET, "got a value of type tuple (take its only element with [0])."),
        ("0xfeed::x", "0x" + "0" * 60 + "FEED::x", Verdict.RIGHT, ""),
        ("E_X", 5, Verdict.NOT_YET, "Expected text in quotes (octas), got a value of type int."),
        ("0x" + "0" * 61 + "b0b", "0xb0b", Verdict.RIGHT, ""),
        ("0x" + "0" * 61 + "b0b", "0xzz", Verdict.NOT_YET, "not the right text"),
        ("depth", "depth()", Verdict.RIGHT, ""),
        (5, ("book depth",), Verdict.NOT_YET, "got a value of type tuple (take its only element with [0])."),
        (5, value(5), Verdict.NOT_YET, "got a value of type Exercise (pass only the value that answers the question)."),
        (5, [5, 6], Verdict.NOT_YET, "got a value of type list (pass only the value that answers the question)."),
        (
            5,
            pd.Series([5, 6]),
            Verdict.NOT_YET,
            "got a value of type Series (pass only the value that answers the question).",
        ),
        (5, {"a": 5}, Verdict.NOT_YET, "got a value of type dict (pass only the value that answers the question)."),
    ],
)
def test_types_are_exact_and_units_are_named(solution, answer, verdict, said):
    """A float, a bool or text is not a whole number; the message has the type that is expected, its unit and what came."""
    checked = judge("01.1", value(solution, unit="octas"), answer_of(answer))
    assert checked.verdict is verdict
    assert said in checked.message
    assert repr(checked).startswith(f"01.1: {verdict}.")


def test_an_unknown_exercise_is_an_error():
    """A wrong number of an exercise is a mistake in the notebook, not an answer: it raises an error with what is meant."""
    for given in ("8.1", "3.1", "1.2", 3.1):
        with pytest.raises(InputError, match=rf"got {re.escape(repr(given))}; did you mean `0{given}`\?"):
            check(given, 5)


def test_html_escapes_what_it_shows():
    """The verdict is shown as HTML; signs of the messages stay text."""
    checked = judge("01.1", value("a", unit="x < y"), answer_of("b"))
    assert "(x &lt; y)" in checked._repr_html_()
    tried = judge("01.1", msgspec.structs.replace(value("a"), worked="x < y"), answer_of("b"), failures=2)
    assert "<pre>x &lt; y</pre>" in tried._repr_html_()


def test_a_worked_solution_comes_with_the_third_failure():
    """Every exercise has one; it is not part of the message, and comes with the third wrong answer."""
    assert [name for name in EVERY if 'check("' in exercises()[name].worked or not exercises()[name].worked] == []
    assert [bool(check("01.1", answer).worked) for answer in (1, 2, 3)] == [False, False, True]
    assert "worked solution" in repr(check("01.1", 4))


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_without_a_sentence_of_its_own_gets_the_likeliest_mistakes(name):
    """The message for any other answer names what often goes wrong in this exercise."""
    answer = 123_456_789_123 if exercises()[name].answer is AnswerKind.NUMBER else "a text of nobody"
    assert check(name, answer).message.endswith(exercises()[name].slips)
    assert len(exercises()[name].slips) > 20


def test_exercises_of_a_class_are_those_beside_the_notebook(tmp_path, monkeypatch):
    """The file replaces the exercises of the package; one that is damaged is an error."""
    monkeypatch.chdir(tmp_path)
    own = {"01.1": value(5, unit="apples")}
    Path("exercises.json").write_bytes(msgspec.json.encode(own))
    assert "apples" in check("01.1", ...).message
    assert check("01.1", 5).verdict is Verdict.RIGHT
    Path("exercises.json").write_text('{"01.1": 5}')
    with pytest.raises(InputError, match="cannot read exercises from"):
        check("01.1", 5)
