"""The exercises of the course as data: how each is judged, known mistakes, hints and a worked solution.

``python notebooks/make_course.py`` computes them from the embedded ledger and stores them in ``exercises.json``. Copies
for a class have their own exercises in a file next to the notebooks.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from toolkit._present.files import read_file
from toolkit.errors import InputError

if TYPE_CHECKING:
    import os

CLASS_FILE = "exercises.json"
"""Exercises of a class, in the folder of its notebooks."""
PACKAGED = Path(__file__).with_name(CLASS_FILE)
"""Exercises that are used without such a file."""


class AnswerKind(StrEnum):
    """What an answer is."""

    NUMBER = "number"
    TEXT = "text"
    RULES = "rules"
    CALLS = "calls"
    CONTRACT = "contract"
    FRACTION = "fraction"
    OTHER = "other"


class Relation(StrEnum):
    """How a value must compare with the expected one."""

    EQUAL = "is"
    AT_LEAST = "is at least"
    AT_MOST = "is at most"


class Publish(msgspec.Struct, frozen=True, tag="publish"):
    """Publish the contract in `source`, or in the answer if `source` is empty."""

    source: str = ""
    says: str = ""


class Call(msgspec.Struct, frozen=True, tag="call"):
    """Commit a call, which must succeed, must abort, must abort with a code, or may do either (None)."""

    function: str
    arguments: tuple[Any, ...] = ()
    sender: str = ""
    aborts: bool | str | None = False
    says: str = ""


class Play(msgspec.Struct, frozen=True, tag="play"):
    """Commit the calls of the answer, which only these senders may sign."""

    senders: tuple[str, ...]


class Value(msgspec.Struct, frozen=True, tag="value"):
    """Compare the result of a view, or one item of the result."""

    function: str
    expected: int | str | bool
    arguments: tuple[Any, ...] = ()
    type_arguments: tuple[str, ...] = ()
    item: str = ""
    relation: Relation = Relation.EQUAL
    says: str = ""


class Gas(msgspec.Struct, frozen=True, tag="gas"):
    """Compare the gas units of a view, or of a call if there is a sender."""

    function: str
    at_most: int
    arguments: tuple[Any, ...] = ()
    sender: str = ""
    says: str = ""


class Mark(msgspec.Struct, frozen=True, tag="mark"):
    """Use the current ledger as the before side of gates."""


class Gate(msgspec.Struct, frozen=True, tag="gate"):
    """Judge views at the mark and now by the rules of the answer, which must pass or fail them."""

    calls: dict[str, tuple[str, tuple[Any, ...]]]
    passes: bool
    says: str = ""


Step = Publish | Call | Play | Value | Gas | Mark | Gate


class Exercise(msgspec.Struct, frozen=True):
    """The right answer, the mistakes that have their own message, two hints and the worked solution.

    An answer that is a number or text is compared with the solution. Text is compared case-insensitively, and an
    address in it may be written in any form. A mistake is a wrong answer with a likely reason, and a sentence about
    that reason; `slips` names the likeliest reasons for all other wrong answers. The unit states what is counted or
    named: "octas", "gas units", "the name of a function".

    Other answers are used in the steps of a story on a fresh ledger, each of which must end as it says.
    """

    answer: AnswerKind
    hints: tuple[str, str]
    solution: int | str | None = None
    mistakes: tuple[tuple[int | str, str], ...] = ()
    unit: str = ""
    slips: str = ""
    steps: tuple[Step, ...] = ()
    worked: str = ""
    points: int = 1

    @property
    def expected(self) -> str:
        """What an answer must be: its type and its unit."""
        noted = f" ({self.unit})" if self.unit else ""
        return {
            AnswerKind.NUMBER: f"a whole number{noted}",
            AnswerKind.TEXT: f"text in quotes{noted}",
            AnswerKind.RULES: f"the rules of a gate, such as {self.unit}",
            AnswerKind.CALLS: f"a list of requests of {self.unit}, as function.request(..., sender=...) returns them",
            AnswerKind.CONTRACT: f"the class of a %%contract cell{noted}",
        }[self.answer]


def exercises() -> dict[str, Exercise]:
    """Return the exercises of the class, or else of the package, by number, in course order."""
    path = Path(CLASS_FILE)
    return read_exercises(path) if path.is_file() else _packaged(PACKAGED)


def read_exercises(path: str | os.PathLike[str]) -> dict[str, Exercise]:
    """Return the exercises of a file.

    Raises
    ------
    InputError
        If the file cannot be read, or does not have exercises.
    """
    try:
        return msgspec.json.decode(read_file(path), type=dict[str, Exercise])
    except (OSError, msgspec.DecodeError) as error:
        raise InputError(
            f"{path}: expected the exercises of a class, written by notebooks/make_course.py; {error}"
        ) from None


_packaged = cache(read_exercises)
