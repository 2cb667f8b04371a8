"""How an answer to an exercise is judged: its type, its unit, known mistakes, hints.

The exercises are data: ``notebooks/solutions/exercises.py`` computes them from the embedded ledger, and
``python notebooks/make_course.py`` stores them in ``exercises.json``, so that `check` reads nothing from a ledger.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from html import escape
from importlib import resources
from numbers import Integral, Real
from typing import Any

import msgspec
from numpy import ndarray
from pandas import DataFrame, Series

from toolkit.errors import InputError
from toolkit.frames._addresses import address

_COLORS = {"not answered yet": "#8a8f98", "right": "#2e8b57", "not yet": "#c77700"}
_EXACT = 2**53  # a float cannot hold every whole number that is larger
_FAILURES: Counter[str] = Counter()  # wrong answers to each exercise since the last right one


class Verdict(StrEnum):
    """What `check` says about an answer.

    Examples
    --------
    >>> from toolkit import teaching
    >>> teaching.Verdict("right") is teaching.Verdict.RIGHT
    True
    """

    NOT_ANSWERED = "not answered yet"
    RIGHT = "right"
    NOT_YET = "not yet"


class Exercise(msgspec.Struct, frozen=True):
    """The solution of an exercise, the mistakes that have a sentence of their own, and two hints.

    The type of the solution is the type of an answer: a whole number, or text. Text is compared without regard to
    capital letters, and an address in it may be written in any form. A mistake is a wrong answer that somebody may
    give for a reason, with a sentence about that reason. The unit is what is counted or named: "octas", "gas units",
    "the name of a function".
    """

    solution: int | str
    hints: tuple[str, str]
    mistakes: tuple[tuple[int | str, str], ...] = ()
    unit: str = ""

    @property
    def expected(self) -> str:
        """What an answer must be: its type and its unit."""
        return f"{'a whole number' if isinstance(self.solution, int) else 'text in quotes'}: {self.unit}"


@dataclass(frozen=True)
class CheckedAnswer:
    """What `check` returns: a verdict and a sentence; in a notebook it is shown as text with a coloured bar.

    Examples
    --------
    >>> from toolkit import teaching
    >>> teaching.check("01.1", ...)
    01.1: not answered yet. Replace the dots by a whole number: names.
    """

    exercise: str
    verdict: Verdict
    message: str
    """One sentence or more about the answer; never the solution."""

    def __repr__(self) -> str:
        return f"{self.exercise}: {self.verdict}. {self.message}".rstrip()

    def _repr_html_(self) -> str:
        color = _COLORS[self.verdict]
        return (
            f'<div style="border-left: 4px solid {color}; padding: 2px 10px">'
            f"<b>{escape(self.exercise)}: {escape(self.verdict)}.</b> {escape(self.message)}</div>"
        )


def check(exercise: str, answer: object) -> CheckedAnswer:
    """Say whether an answer to an exercise of the course is right.

    A wrong answer never raises an error: the message says what is wrong without giving the solution away. The second
    wrong answer adds a hint, the third another one.

    Parameters
    ----------
    exercise : str
        Number of the exercise as in the lesson: lesson, a dot, and the exercise, such as ``"08.1"``.
    answer : object
        The answer; ``...`` means that there is none yet. Numbers are whole numbers (int); a float or a bool is not.
        Text is compared without regard to capital letters.

    Returns
    -------
    CheckedAnswer
        With `verdict` and `message`; a notebook shows it.

    Raises
    ------
    InputError
        If the course does not have this exercise.

    Examples
    --------
    >>> from toolkit.teaching import check
    >>> check("01.1", ...)
    01.1: not answered yet. Replace the dots by a whole number: names.
    >>> check("15.2", 200)
    15.2: not yet. So many times 5,000 requests are needed. How long does each take?
    """
    known = exercises()
    if exercise not in known:
        padded = str(exercise).zfill(len("08.1"))
        meant = [padded] if padded in known else get_close_matches(padded, known, n=1)
        raise InputError(
            f"exercise must be a number such as '08.1', got {exercise!r}"
            + "".join(f"; did you mean {one!r}?" for one in meant)
        )
    if answer is ...:
        message = f"Replace the dots by {known[exercise].expected}."
        return CheckedAnswer(exercise, Verdict.NOT_ANSWERED, message)
    checked = judge(exercise, known[exercise], answer, _FAILURES[exercise])
    if checked.verdict is Verdict.RIGHT:
        del _FAILURES[exercise]
    else:
        _FAILURES[exercise] += 1
    return checked


@cache
def exercises() -> dict[str, Exercise]:
    """Return every exercise by its number, in the order of the course."""
    content = resources.files("toolkit.teaching").joinpath("exercises.json").read_bytes()
    return msgspec.json.decode(content, type=dict[str, Exercise])


def judge(name: str, exercise: Exercise, answer: object, failures: int) -> CheckedAnswer:
    """Return the verdict on an answer to an exercise that was answered wrongly `failures` times before."""
    try:
        plain = _plain(answer, exercise.solution)
    except TypeError as error:
        message = f"Expected {exercise.expected}, got {error}."
    else:
        if plain == _plain(exercise.solution, exercise.solution):
            return CheckedAnswer(name, Verdict.RIGHT, "")
        found = [text for value, text in exercise.mistakes if plain == _plain(value, exercise.solution)]
        noun = "number" if isinstance(exercise.solution, int) else "text"
        message = found[0] if found else f"The answer has the right type; it is another {noun} ({exercise.unit})."
    if failures:
        message += "".join(f" Hint: {hint}" for hint in exercise.hints[:failures])
    return CheckedAnswer(name, Verdict.NOT_YET, message)


def _plain(answer: Any, solution: int | str) -> int | str:
    """Return an answer in the form in which it is compared; a TypeError says what it is instead."""
    kind = Integral if isinstance(solution, int) else str
    if type(answer) is bool or not issubclass(type(answer), kind):
        raise TypeError(_named(answer) + _advice(answer, solution))
    return int(answer) if kind is Integral else _text(str.__str__(answer))


def _text(text: str) -> str:
    """Return text in lower case, without outer blanks and the brackets of a call; an address is in its long form."""
    text = text.strip().casefold().removesuffix("()")
    first, mark, rest = text.partition("::")
    try:
        return address(first) + mark + rest if first.startswith("0x") else text
    except InputError:
        return text


def _named(answer: object) -> str:
    name = type(answer).__name__
    return "nothing (None)" if answer is None else f"a value of type {name}"


def _advice(answer: Any, solution: int | str) -> str:
    """Return what to do about an answer of another type, or an empty text."""
    several = type(answer) in (list, tuple, dict, DataFrame, Series, ndarray)
    if several or type(answer).__module__.partition(".")[0] == "toolkit":  # such as a result of a view
        return _advice_on_several(answer, Integral if isinstance(solution, int) else str)
    if isinstance(solution, int) and issubclass(type(answer), str):
        return " (write a number without quotes)"
    if isinstance(solution, int) and issubclass(type(answer), Real | Decimal) and type(answer) is not bool:
        return _advice_on_fractions(answer)
    return ""


def _advice_on_several(answer: Any, kind: type) -> str:
    """Return what to do about an answer that has other values in it."""
    if type(answer) in (list, tuple) and len(answer) == 1 and isinstance(answer[0], kind):
        return " (take the one value out: [0])"
    if type(answer) in (Series, ndarray) and answer.size == 1:
        return " (take the one value out with .item())"
    return " (the answer is one value; take it out)"


def _advice_on_fractions(answer: Any) -> str:
    """Return what to do about a number whose type can have a fraction."""
    try:
        whole = int(answer) == answer
    except (ValueError, ArithmeticError):  # not a number, or infinite
        whole = False
    if not whole:
        return ", which is not a whole number"
    if issubclass(type(answer), Real) and abs(answer) >= _EXACT:
        return ", which is not exact at this size (compute it with whole numbers)"
    return " (write int(...) of it)"
