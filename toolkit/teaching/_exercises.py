"""The exercises of the course as data: how each is judged, known mistakes, hints and a worked solution.

``python notebooks/make_course.py`` generates the data from the embedded ledger and stores it in ``exercises.json``. A
class can have its own variant of the exercises, in a file next to its notebooks.
"""

from __future__ import annotations

import hashlib
import os
import re
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from toolkit._present.files import read_text_file
from toolkit.errors import InputError
from toolkit.move import parse_address

_ROUNDS = 200_000  # about 0.1 s for an answer
_CODE = re.compile(r"0x[0-9a-f]{1,8}", re.IGNORECASE)
CLASS_FILE = "exercises.json"  # name of the file with a class's own exercises, next to its notebooks
PACKAGED = Path(__file__).with_name(CLASS_FILE)  # the exercises in the package, used if a class has none of its own


class AnswerKind(StrEnum):
    """The kind of an answer, such as a number or a contract."""

    NUMBER = "number"
    TEXT = "text"
    RULES = "rules"
    CALLS = "calls"
    CONTRACT = "contract"
    FRACTION = "fraction"
    OTHER = "other"


class Relation(StrEnum):
    """How a value must compare with the expected value."""

    EQUAL = "is"
    AT_LEAST = "is at least"
    AT_MOST = "is at most"


class Ending(StrEnum):
    """How a call must end; `EITHER` allows both."""

    SUCCESS = "success"
    ABORT = "abort"
    EITHER = "either"


class PublishStep(msgspec.Struct, frozen=True, tag="publish"):
    """Publish the contract in `source`, or the contract in the answer if `source` is empty."""

    source: str = ""
    says: str = ""


class FreshStep(msgspec.Struct, frozen=True, tag="fresh"):
    """Continue on a fresh ledger."""


class CallStep(msgspec.Struct, frozen=True, tag="call", omit_defaults=True):
    """Commit a call, which must end as `ending` says; an abort must be with the error constant `abort_code`, if given.

    `amount` is a view function that takes the sender; its value, minus `spared`, becomes the last argument.
    """

    function: str
    arguments: tuple[Any, ...] = ()
    sender: str = ""
    ending: Ending = Ending.SUCCESS
    abort_code: str = ""
    says: str = ""
    amount: str = ""
    spared: int = 0


class PlayStep(msgspec.Struct, frozen=True, tag="play"):
    """Commit the calls in the answer; only these senders may sign them."""

    senders: tuple[str, ...]


class ValueStep(msgspec.Struct, frozen=True, tag="value", omit_defaults=True):
    """Compare the result of a view function, or one item of the result, with the expected value.

    With an `abort_code`, the function must abort with it instead of returning a value.
    """

    function: str
    expected: int | str | bool = 0
    arguments: tuple[Any, ...] = ()
    type_arguments: tuple[str, ...] = ()
    item: str = ""
    relation: Relation = Relation.EQUAL
    abort_code: str = ""
    says: str = ""


class GasStep(msgspec.Struct, frozen=True, tag="gas"):
    """Limit the gas units that a view function uses, or an entry function if there is a sender."""

    function: str
    at_most: int
    arguments: tuple[Any, ...] = ()
    sender: str = ""
    says: str = ""


class MarkStep(msgspec.Struct, frozen=True, tag="mark"):
    """Mark the current ledger version as the one that later gates compare with."""


class GateStep(msgspec.Struct, frozen=True, tag="gate"):
    """Compare view functions at the mark and at the head. By the answer's rules, the gate must pass, or must fail."""

    calls: dict[str, tuple[str, tuple[Any, ...]]]
    passes: bool
    says: str = ""


Step = PublishStep | FreshStep | CallStep | PlayStep | ValueStep | GasStep | MarkStep | GateStep


class Exercise(msgspec.Struct, frozen=True, omit_defaults=True):
    """An exercise: the right answer, mistakes with their own feedback, hints and a worked solution.

    An answer that is a number or text is compared with `solution`, a number or the longest form of a name. Each of the
    `mistakes` is a wrong answer with feedback on its likely reason; `slips` is the feedback on all other wrong answers.
    `unit` is what the answer counts or names, such as "octas" or "the name of a function".

    Other answers are tried in a story: a series of `steps` on a fresh ledger, each with an expected outcome.

    In an exam, there are neither mistakes, hints nor worked solutions, and instead of the solution there are `digests`:
    a hash of each of its forms with a `salt`.
    """

    answer: AnswerKind
    hints: tuple[str, ...]
    solution: int | str | None = None
    mistakes: tuple[tuple[int | str, str], ...] = ()
    unit: str = ""
    slips: str = ""
    steps: tuple[Step, ...] = ()
    worked: str = ""
    points: int = 1
    salt: str = ""
    digests: tuple[str, ...] = ()

    @property
    def expected(self) -> str:
        """Description of the expected answer: its type and its unit."""
        noted = f" ({self.unit})" if self.unit else ""
        return {
            AnswerKind.NUMBER: f"a whole number{noted}",
            AnswerKind.TEXT: f"text in quotes{noted}",
            AnswerKind.RULES: f"the rules of a gate, such as {self.unit}",
            AnswerKind.CALLS: f"a list of requests from {self.unit}, each made with function.request(..., sender=...)",
            AnswerKind.CONTRACT: f"the class defined in a %%contract cell{noted}",
        }[self.answer]


def plain(value: int | str) -> str:
    """Return a value in the form in which answers are compared.

    Text is lowercase, without surrounding whitespace or quotes or a trailing ``()``; a leading address has all its
    digits.
    """
    text = str(value).strip().strip("`'\"").casefold().removesuffix("()")
    first, mark, rest = text.partition("::")
    try:
        return parse_address(first) + mark + rest if first.startswith("0x") else text
    except InputError:
        return text


def forms(value: int | str) -> set[str]:
    """Return the forms in which a value is right: a qualified name also without its address and module."""
    text = plain(value)
    names = text.split("::")
    found = {"::".join(names[start:]) for start in range(len(names))}
    if _CODE.fullmatch(str(value)):  # such as an abort code
        found.add(str(int(str(value), 16)))
    return found


def is_solution(exercise: Exercise, given: set[str]) -> bool:
    """Return whether one of the readings of an answer is the solution."""
    if exercise.solution is not None:
        return not given.isdisjoint(forms(exercise.solution))
    return any(digest(exercise.salt, text) in exercise.digests for text in given)


def digest(salt: str, text: str) -> str:
    """Return the hash of a text. It is slow to compute, because an answer has few digits."""
    return hashlib.pbkdf2_hmac("sha256", text.encode(), salt.encode(), _ROUNDS).hex()


def exercises() -> dict[str, Exercise]:
    """Return the exercises of the class, or else those of the package, by number in course order."""
    path = Path(CLASS_FILE)
    return read_exercises(path) if path.is_file() else _packaged(PACKAGED)


def read_exercises(path: str | os.PathLike[str]) -> dict[str, Exercise]:
    """Return the exercises in a file.

    Raises
    ------
    InputError
        If the file cannot be read or does not contain exercises.
    """
    try:
        return msgspec.json.decode(read_text_file(path), type=dict[str, Exercise])
    except (OSError, msgspec.DecodeError) as error:
        raise InputError(
            f"cannot read exercises from {path} ({error}); expected a file written by notebooks/make_course.py"
        ) from None


_packaged = cache(read_exercises)
