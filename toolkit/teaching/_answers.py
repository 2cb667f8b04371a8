"""Answers as data, so that a process other than the one that computed them can judge them."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import msgspec
from numpy import ndarray
from pandas import DataFrame, Series

from toolkit.client._contracts import Contract
from toolkit.teaching._exercises import AnswerKind
from toolkit.wire import EntryFunction, SimulationRequest

CELL_SOURCE = "__contract_cell__"
"""Attribute of a contract class: the code of the ``%%contract`` cell that it is from."""


class Answer(msgspec.Struct, frozen=True):
    """An answer as data."""

    kind: AnswerKind
    name: str
    """What it is, such as "a value of type int"."""
    value: str = ""
    """Its value as text: digits, the text itself, JSON, or the code of a cell."""
    advice: str = ""
    """What to do about it if another kind is expected."""


class PlannedCall(msgspec.Struct, frozen=True):
    """A call of an answer, and who signs it."""

    sender: str
    function: str
    type_arguments: tuple[str, ...] = ()
    arguments: tuple[Any, ...] = ()


def answer_of(value: Any) -> Answer:  # noqa: PLR0911 - one per kind
    """Return an answer as data; never raises an error for a value.

    Types are compared with ``type``, because a value may fake its ``__class__``, or raise an error.
    """
    kind = type(value)
    name = "nothing (None)" if value is None else f"a value of type {kind.__name__}"
    if (calls := _calls(value)) is not None:
        return Answer(AnswerKind.CALLS, "a list of requests", msgspec.json.encode(calls).decode())
    if issubclass(kind, type) and CELL_SOURCE in vars(value):
        return Answer(AnswerKind.CONTRACT, "a contract", vars(value)[CELL_SOURCE])
    if issubclass(kind, str):
        return Answer(AnswerKind.TEXT, name, str.__str__(value), " (write a number without quotes)")
    if kind is bool:
        return Answer(AnswerKind.OTHER, name)
    if issubclass(kind, Integral) and abs(int(value)) < 10**400:
        return Answer(AnswerKind.NUMBER, name, str(int(value)))
    if issubclass(kind, Real | Decimal):
        return Answer(AnswerKind.FRACTION, name, advice=_advice_on_fractions(value))
    if kind in (dict, list):
        with suppress(TypeError, ValueError, RecursionError):  # something in it that is not data
            return Answer(AnswerKind.RULES, name, msgspec.json.encode(value).decode(), _advice(value))
    return Answer(AnswerKind.OTHER, name, advice=_advice(value))


def calls_of(answer: Answer) -> list[PlannedCall]:
    """Return the calls of an answer that has them."""
    return msgspec.json.decode(answer.value, type=list[PlannedCall])


def _calls(value: Any) -> list[PlannedCall] | None:
    """Return the requests of a list, or None if the answer is not a list of requests."""
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
    """Return what to do about an answer of another type, or an empty text."""
    kind = type(answer)
    if kind is Contract:
        return " (pass the class of the cell, whose name begins with a capital letter)"
    if kind is EntryFunction or (kind in (list, tuple) and answer and type(answer[0]) is EntryFunction):
        return " (say who signs: function.request(..., sender=...))"
    if kind in (list, tuple) and len(answer) == 1:
        return " (take the one value out: [0])"
    if kind in (Series, ndarray) and answer.size == 1:
        return " (take the one value out with .item())"
    several = (list, tuple, dict, DataFrame, Series, ndarray)
    if kind in several or kind.__module__.partition(".")[0] == "toolkit":  # such as a result of a view
        return " (the answer is one value; take it out)"
    return " (write the contract in a %%contract cell, all of it)" if issubclass(kind, type) else ""


def _advice_on_fractions(answer: Any) -> str:
    """Return what to do about a number whose type can have a fraction."""
    with suppress(ValueError, ArithmeticError):  # not a number, or infinite
        if int(answer) == answer:
            return " (compute it with whole numbers, or write int(...) of it)"
    return ", which is not a whole number"
