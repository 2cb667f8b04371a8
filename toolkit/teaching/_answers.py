"""Answers as plain data, which a separate process can judge, and the records that the processes of `grade` exchange."""

from __future__ import annotations

import os
from contextlib import suppress
from decimal import Decimal
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from toolkit.client._contracts import Contract
from toolkit.teaching._exercises import AnswerKind, Step
from toolkit.wire import EntryFunction, SimulationRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

Line = TypeVar("Line")

RECORD = "LEDGER_TOOLKIT_CHECKED"  # environment variable that names the file; only `grade` sets it
# Attribute of a contract class that stores the source of its ``%%contract`` cell.
CELL_SOURCE = "__contract_cell__"


class GivenAnswer(msgspec.Struct, frozen=True):
    """A student's answer as plain data.

    Attributes
    ----------
    kind : AnswerKind
    name : str
        Description of the answer, such as "a value of type int".
    value : str
        The answer as text: digits, the text itself, JSON, or the source of a cell.
    advice : str
        Advice for the student if the exercise expects another kind of answer.
    """

    kind: AnswerKind
    name: str
    value: str = ""
    advice: str = ""


class PlannedCall(msgspec.Struct, frozen=True):
    """A call in an answer, with the account that signs it."""

    sender: str
    function: str
    type_arguments: tuple[str, ...] = ()
    arguments: tuple[Any, ...] = ()


def answer_of(value: Any) -> GivenAnswer:  # noqa: PLR0911 - one per kind
    """Return an answer as plain data.

    The type comes from ``type``, because ``__class__`` can be faked or raise an error.
    """
    kind = type(value)
    name = "nothing (None)" if value is None else f"a value of type {kind.__name__}"
    if (calls := _calls(value)) is not None:
        return GivenAnswer(AnswerKind.CALLS, "a list of requests", msgspec.json.encode(calls).decode())
    if issubclass(kind, type) and CELL_SOURCE in vars(value):
        return GivenAnswer(AnswerKind.CONTRACT, "a contract", vars(value)[CELL_SOURCE])
    if issubclass(kind, str):
        return GivenAnswer(AnswerKind.TEXT, name, str.__str__(value), " (write numbers without quotes)")
    if kind is bool:
        return GivenAnswer(AnswerKind.OTHER, name)
    if issubclass(kind, Integral) and abs(int(value)) < 10**400:
        return GivenAnswer(AnswerKind.NUMBER, name, str(int(value)))
    if issubclass(kind, Real | Decimal):
        return GivenAnswer(AnswerKind.FRACTION, name, advice=_advice_on_fractions(value))
    if kind in (dict, list):
        with suppress(TypeError, ValueError, RecursionError):  # it contains something that JSON cannot express
            return GivenAnswer(AnswerKind.RULES, name, msgspec.json.encode(value).decode(), _advice(value))
    return GivenAnswer(AnswerKind.OTHER, name, advice=_advice(value))


def calls_of(answer: GivenAnswer) -> list[PlannedCall]:
    """Return the calls in an answer of kind `AnswerKind.CALLS`."""
    return msgspec.json.decode(answer.value, type=list[PlannedCall])


def _calls(value: Any) -> list[PlannedCall] | None:
    """Return the calls of a request or a list of requests, or None if the value is neither."""
    requests = [value] if type(value) is SimulationRequest else value
    if type(requests) not in (list, tuple) or not requests:
        return None
    found = []
    for one in requests:
        if type(one) is not SimulationRequest or not isinstance(call := one.payload, EntryFunction):
            return None
        found.append(PlannedCall(one.sender, call.function, call.type_arguments, call.arguments))
    return found


def _advice(answer: Any) -> str:
    """Return advice for an answer of an unexpected type, or an empty string."""
    # Here, since `grade` starts a process for each story, which takes most of its time to import them.
    from numpy import ndarray
    from pandas import DataFrame, Series

    kind = type(answer)
    if kind is Contract:
        return " (pass the class defined in the cell; its name begins with a capital letter)"
    if kind is EntryFunction or (kind in (list, tuple) and answer and type(answer[0]) is EntryFunction):
        return " (name the signer: function.request(..., sender=...))"
    if kind in (list, tuple) and len(answer) == 1:
        return " (take its only element with [0])"
    if kind in (Series, ndarray) and answer.size == 1:
        return " (take its only element with .item())"
    several = (list, tuple, dict, DataFrame, Series, ndarray)
    if kind in several or kind.__module__.partition(".")[0] == "toolkit":  # such as a result of a view
        return " (pass only the value that answers the question)"
    return " (write the whole contract in a %%contract cell)" if issubclass(kind, type) else ""


def _advice_on_fractions(answer: Any) -> str:
    """Return advice for a number whose type allows fractions."""
    with suppress(ValueError, ArithmeticError):  # not a number, or infinite
        if int(answer) == answer:
            return " (compute it with whole numbers, or convert it with int(...))"
    return ", which is not a whole number"


# -- records -----------------------------------------------------------------------------------------------------------


class Checked(msgspec.Struct, frozen=True):
    """An exercise and the answer that `check` received, or None for the dots."""

    exercise: str
    answer: GivenAnswer | None


class StoryTrial(msgspec.Struct, frozen=True):
    """An answer and the story in which it is tried."""

    steps: tuple[Step, ...]
    answer: GivenAnswer


def record(exercise: str, answer: GivenAnswer | None) -> None:
    """Append a call of `check` to the record, if there is one."""
    if path := os.environ.get(RECORD):
        with Path(path).open("ab") as file:
            file.write(msgspec.json.encode(Checked(exercise, answer)) + b"\n")


def read_lines(path: Path, kind: type[Line]) -> Iterator[Line]:
    """Yield the records in a file, if it exists. A process that was stopped may have left an incomplete line."""
    if path.is_file():
        with path.open("rb") as file:
            for line in file:
                with suppress(msgspec.DecodeError, RecursionError):
                    yield msgspec.json.decode(line, type=kind)
