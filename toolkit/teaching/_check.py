"""Judge an answer to an exercise, with feedback on its type, its unit and known mistakes, and with hints."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from html import escape

from toolkit._present.messages import did_you_mean
from toolkit.errors import InputError
from toolkit.teaching._answers import GivenAnswer, answer_of, record
from toolkit.teaching._exercises import AnswerKind, Exercise, Step, exercises, forms, is_solution, plain

Happens = Callable[[tuple[Step, ...], GivenAnswer], str]

_LAST: dict[str, CheckedAnswer] = {}  # the verdict on the last answer to each exercise
_FAILURES: Counter[str] = Counter()  # wrong answers to each exercise since the last right one


class Verdict(StrEnum):
    """A verdict on an answer, as reported by `check` and `grade`.

    Examples
    --------
    >>> from toolkit import teaching
    >>> teaching.Verdict("right") is teaching.Verdict.RIGHT
    True
    """

    NOT_ANSWERED = "not answered yet"
    RIGHT = "right"
    NOT_YET = "not yet"
    FAILED = "failed"
    MISSING = "not handed in"


# Digits in groups of three may be separated. A dot is not a separator, because it would be a decimal point elsewhere.
_NUMBER = re.compile(
    r"(?P<before>[^\W\d]*(?:\s+[^\W\d]+)*)\s*(?P<sign>[+-]?|\N{MINUS SIGN})\s*"
    r"(?P<digits>0x[0-9a-f]+|\d{1,3}(?:[,_'\s]\d{3})+|\d+)\s*(?P<unit>%|[^\W\d][\w\s]*|)"
)
_COLORS = {Verdict.NOT_ANSWERED: "#8a8f98", Verdict.RIGHT: "#2e8b57", Verdict.NOT_YET: "#c77700"}


@dataclass(frozen=True)
class CheckedAnswer:
    """A verdict on an answer, with a message. Notebooks display it with a coloured bar.

    Attributes
    ----------
    exercise : str
    verdict : Verdict
    message : str
        Feedback that does not give away the solution; empty if the answer is right.
    worked : str
        The worked solution; empty until the third wrong answer.

    Examples
    --------
    >>> from toolkit import teaching
    >>> teaching.check("01.1", ...)
    01.1: not answered yet. Replace the dots with a whole number (names).
    """

    exercise: str
    verdict: Verdict
    message: str
    worked: str = ""

    def __repr__(self) -> str:
        text = f"{self.exercise}: {self.verdict}. {self.message}".rstrip()
        return text + (f"\n\nA worked solution:\n\n{self.worked}" if self.worked else "")

    def _repr_html_(self) -> str:
        solution = f"<details><summary>A worked solution</summary><pre>{escape(self.worked)}</pre></details>"
        worked = solution if self.worked else ""
        return (
            f'<div style="border-left: 4px solid {_COLORS[self.verdict]}; padding: 2px 10px">'
            f"<b>{escape(self.exercise)}: {escape(self.verdict)}.</b> {escape(self.message)}{worked}</div>"
        )


def check(exercise: str, answer: object) -> CheckedAnswer:
    """Check whether an answer to a course exercise is right.

    A wrong answer raises no error. The message explains what is wrong without giving away the solution. The second
    wrong answer adds a hint; the third adds another hint and a worked solution.

    Parameters
    ----------
    exercise : str
        Number of the exercise as printed in the lesson: lesson number, dot, exercise number, such as ``"08.1"``.
    answer : object
        The answer, or ``...`` if you do not have one yet. Numbers must be integers; floats and bools are rejected. A
        number may also be text, such as ``"28,100 octas"`` or ``"0x6dc4"``. Text is compared case-insensitively; a name
        may be qualified, such as ``"0x1::coin::supply"``, or not. Some exercises ask for the class in a ``%%contract``
        cell, a list of requests, or the rules of a gate. Such an answer is tried on a fresh ledger, and the outcome is
        judged.

    Returns
    -------
    CheckedAnswer
        The verdict, with a message. Notebooks display it.

    Raises
    ------
    InputError
        If the course has no such exercise, or a class's own ``exercises.json`` cannot be read.

    Examples
    --------
    >>> from toolkit.teaching import check
    >>> check("01.1", ...)
    01.1: not answered yet. Replace the dots with a whole number (names).
    >>> check("15.2", 200)
    15.2: not yet. 5,000 requests are needed this many times. How long does each round take?
    """
    known = _known(exercise)
    given = None if answer is ... else answer_of(answer)
    record(exercise, given)
    if given is None:
        return not_answered(exercise, known)
    checked = _LAST[exercise] = judge(exercise, known, given, _FAILURES[exercise])
    if checked.verdict is Verdict.RIGHT:
        del _FAILURES[exercise]
    else:
        _FAILURES[exercise] += 1
    return checked


def points(exercise: str) -> int:
    """Return the points for the last answer to an exercise that `check` received in this session.

    Student notebooks call this in the cell after an exercise, which nbgrader reads as its autograder test.

    Parameters
    ----------
    exercise : str
        Number of the exercise, such as ``"08.1"``.

    Returns
    -------
    int
        The points of the exercise if that answer is right; otherwise 0.

    Raises
    ------
    InputError
        If the course has no such exercise.

    Examples
    --------
    >>> from toolkit import teaching
    >>> teaching.points("17.4")
    0
    """
    found = _known(exercise)
    last = _LAST.get(exercise)
    return found.points if last is not None and last.verdict is Verdict.RIGHT else 0


def _known(name: str) -> Exercise:
    known = exercises()
    if name not in known:
        meant = did_you_mean(str(name).zfill(len("08.1")), known)
        wanted = "exercise must be an exercise number as text, such as '08.1'"
        raise InputError(f"{wanted}, got {name!r}{'; ' if meant else ''}{meant}")
    return known[name]


def not_answered(name: str, exercise: Exercise) -> CheckedAnswer:
    """Return the verdict on an exercise whose dots have not been replaced."""
    return CheckedAnswer(name, Verdict.NOT_ANSWERED, f"Replace the dots with {exercise.expected}.")


def judge(
    name: str, exercise: Exercise, answer: GivenAnswer, failures: int = 0, happens: Happens | None = None
) -> CheckedAnswer:
    """Return the verdict on an answer after `failures` wrong answers to the same exercise.

    `happens` runs a story with the answer and returns what goes wrong; by default, the story runs in this process.
    """
    message = _what_is_wrong(exercise, answer, happens)
    if not message:
        return CheckedAnswer(name, Verdict.RIGHT, "")
    message += "".join(f" Hint: {hint}" for hint in exercise.hints[:failures])
    return CheckedAnswer(name, Verdict.NOT_YET, message, exercise.worked if failures >= len(exercise.hints) else "")


def _what_is_wrong(exercise: Exercise, answer: GivenAnswer, happens: Happens | None) -> str:
    """Return what is wrong with an answer, or an empty string if it is right."""
    wanted, got = exercise.answer, answer.kind
    given = _readings(answer, exercise.unit)
    if not exercise.steps and is_solution(exercise, given):
        return ""
    is_short = wanted is AnswerKind.RULES and got in {AnswerKind.NUMBER, AnswerKind.TEXT}  # a limit, such as "5%"
    is_written = wanted is AnswerKind.NUMBER and any(one.lstrip("-").isdecimal() for one in given)
    if got is not wanted and not is_short and not is_written:
        with_advice = wanted is AnswerKind.NUMBER or (wanted is AnswerKind.TEXT and got is AnswerKind.RULES)
        advice = answer.advice if with_advice or got is AnswerKind.OTHER else ""
        return f"Expected {exercise.expected}, got {answer.name}{advice}."
    if exercise.steps:
        if happens is not None:
            return happens(exercise.steps, answer)
        from toolkit.teaching._story import what_happens  # on use: it imports the embedded ledger

        return what_happens(exercise.steps, answer)
    found = [text for value, text in exercise.mistakes if not given.isdisjoint(forms(value))]
    noun = "number" if wanted is AnswerKind.NUMBER else "text"
    return found[0] if found else f"This is not the right {noun} ({exercise.unit}). {exercise.slips}".rstrip()


def _readings(answer: GivenAnswer, unit: str) -> set[str]:
    """Return the forms of a number or text: text as it is, and the number that it writes, if it does.

    A number may be hexadecimal, and may have separators and the unit of the exercise, or a part of it: "version 3,502",
    "800 %".
    """
    if answer.kind is AnswerKind.NUMBER:
        return {answer.value}
    if answer.kind is not AnswerKind.TEXT:
        return set()
    text = plain(answer.value)
    found = _NUMBER.fullmatch(answer.value.strip().casefold())
    if found is None or any(
        word not in unit.casefold() for word in (found["before"], found["unit"].replace("%", "percent").strip())
    ):
        return {text}
    sign, digits = found["sign"].replace("\N{MINUS SIGN}", "-"), re.sub(r"[^0-9a-fx]", "", found["digits"])
    number = int(digits, 16) if digits.startswith("0x") else int(digits)
    return {text, str(-number if sign == "-" else number)}
