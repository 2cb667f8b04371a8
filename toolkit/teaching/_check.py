"""How an answer to an exercise is judged, and the feedback on it: type, unit, known mistakes, hints."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from html import escape
from typing import TYPE_CHECKING

from toolkit._present.messages import did_you_mean
from toolkit.errors import InputError
from toolkit.frames._addresses import address
from toolkit.teaching._answers import Answer, answer_of
from toolkit.teaching._exercises import AnswerKind, exercises

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.teaching._exercises import Exercise, Step

    Happens = Callable[[tuple[Step, ...], Answer], str]

_FAILURES: Counter[str] = Counter()  # wrong answers to each exercise since the last right one


class Verdict(StrEnum):
    """The verdicts of `check` and `grade` on an answer.

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


_COLORS = {Verdict.NOT_ANSWERED: "#8a8f98", Verdict.RIGHT: "#2e8b57", Verdict.NOT_YET: "#c77700"}


@dataclass(frozen=True)
class CheckedAnswer:
    """The verdict of `check` on an answer, with a message. Notebooks display it as text with a coloured bar.

    Examples
    --------
    >>> from toolkit import teaching
    >>> teaching.check("01.1", ...)
    01.1: not answered yet. Replace the dots with a whole number (names).
    """

    exercise: str
    verdict: Verdict
    message: str
    """One sentence or more about the answer; never the solution."""
    worked: str = ""
    """The worked solution, from the third wrong answer on."""

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

    A wrong answer never raises an error. The message says what is wrong without giving away the solution; the second
    wrong answer adds a hint, the third another hint and a worked solution.

    Parameters
    ----------
    exercise : str
        Number of the exercise as printed in the lesson: lesson number, dot, exercise number, such as ``"08.1"``.
    answer : object
        The answer, or ``...`` if you do not have one yet. Numbers must be ints; floats and bools are not accepted. Text
        is compared case-insensitively. Some exercises ask for the class of a ``%%contract`` cell, a list of requests,
        or the rules of a gate. These are run on a fresh ledger, whose resulting state is judged.

    Returns
    -------
    CheckedAnswer
        Has `verdict` and `message`; notebooks display it.

    Raises
    ------
    InputError
        If the exercise does not exist in the course.

    Examples
    --------
    >>> from toolkit.teaching import check
    >>> check("01.1", ...)
    01.1: not answered yet. Replace the dots with a whole number (names).
    >>> check("15.2", 200)
    15.2: not yet. 5,000 requests are needed this many times. How long does each round take?
    """
    known = exercises()
    if exercise not in known:
        meant = did_you_mean(str(exercise).zfill(len("08.1")), known)
        raise InputError(f"exercise must be a number such as '08.1', got {exercise!r}{'; ' if meant else ''}{meant}")
    if answer is ...:
        return not_answered(exercise, known[exercise])
    checked = judge(exercise, known[exercise], answer_of(answer), _FAILURES[exercise])
    if checked.verdict is Verdict.RIGHT:
        del _FAILURES[exercise]
    else:
        _FAILURES[exercise] += 1
    return checked


def not_answered(name: str, exercise: Exercise) -> CheckedAnswer:
    """Return the verdict on an exercise that still has its dots."""
    return CheckedAnswer(name, Verdict.NOT_ANSWERED, f"Replace the dots with {exercise.expected}.")


def judge(
    name: str, exercise: Exercise, answer: Answer, failures: int = 0, happens: Happens | None = None
) -> CheckedAnswer:
    """Return the verdict on an answer to an exercise that was answered wrongly `failures` times before.

    `happens` uses an answer in the steps of a story and returns what goes wrong; by default, in this process.
    """
    message = _what_is_wrong(exercise, answer, happens)
    if not message:
        return CheckedAnswer(name, Verdict.RIGHT, "")
    message += "".join(f" Hint: {hint}" for hint in exercise.hints[:failures])
    return CheckedAnswer(name, Verdict.NOT_YET, message, exercise.worked if failures >= len(exercise.hints) else "")


def _what_is_wrong(exercise: Exercise, answer: Answer, happens: Happens | None) -> str:
    """Return a sentence about a wrong answer; an empty text if it is right."""
    wanted, got = exercise.answer, answer.kind
    if got is not wanted and not (wanted is AnswerKind.RULES and got in {AnswerKind.NUMBER, AnswerKind.TEXT}):
        is_value = wanted is AnswerKind.NUMBER or (wanted is AnswerKind.TEXT and got is AnswerKind.RULES)
        advice = answer.advice if is_value or got is AnswerKind.OTHER else ""
        return f"Expected {exercise.expected}, got {answer.name}{advice}."
    if exercise.solution is None:
        if happens is not None:
            return happens(exercise.steps, answer)
        from toolkit.teaching._story import what_happens  # on use: it imports the embedded ledger

        return what_happens(exercise.steps, answer)
    given = _plain(answer.value)
    if given == _plain(exercise.solution):
        return ""
    found = [text for value, text in exercise.mistakes if given == _plain(value)]
    noun = "number" if wanted is AnswerKind.NUMBER else "text"
    return found[0] if found else f"This is not the right {noun} ({exercise.unit}). {exercise.slips}".rstrip()


def _plain(value: int | str) -> str:
    """Return a value in the form in which it is compared.

    Text is in lower case, without outer blanks and the brackets of a call; an address is in its long form.
    """
    text = str(value).strip().casefold().removesuffix("()")
    first, mark, rest = text.partition("::")
    try:
        return address(first) + mark + rest if first.startswith("0x") else text
    except InputError:
        return text
