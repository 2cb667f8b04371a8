"""Parameter grids: one call of a study times lists of arguments, type arguments and senders."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from functools import partial
from itertools import product
from math import prod
from typing import Any

from pydantic import model_validator

from toolkit.errors import InputError
from toolkit.gas.calls import Call, CallFields
from toolkit.gas.placing import FileModel, placed

__all__ = ["CallEntry", "Grid", "expanded"]

_MOST_CALLS = 1_000
_LONGEST_VALUE = 40
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_NAMED = re.compile(r"(arguments|type_arguments|sender)(?:\.(\d{1,3}))?")


class Grid(FileModel):
    """Lists whose every combination becomes a call of its own."""

    arguments: tuple[tuple[Any, ...], ...] | None = None
    """A list of argument lists, such as [["alice"], ["bob"]]."""
    type_arguments: tuple[tuple[str, ...], ...] | None = None
    """A list of lists of Move types."""
    sender: tuple[str, ...] | None = None
    """A list of accounts that a simulation is sent by."""

    @model_validator(mode="after")
    def _not_empty_and_bounded(self) -> Grid:
        axes = self.axes
        if not axes or not all(axes.values()):
            raise ValueError("a grid has arguments, type_arguments or sender, each a list of one or more")
        size = prod(len(values) for values in axes.values())
        if size > _MOST_CALLS:
            raise ValueError(f"this grid makes {size:,} calls; the most is {_MOST_CALLS:,}")
        return self

    @property
    def axes(self) -> dict[str, tuple[Any, ...]]:
        """The lists that are given, by the key of a call that they fill."""
        given = ((name, getattr(self, name)) for name in Grid.model_fields)
        return {name: values for name, values in given if values is not None}


class CallEntry(CallFields):
    """One ``[[call]]`` of a study file: a call, or a grid of them."""

    grid: Grid | None = None
    """Lists of arguments, type arguments and senders; every combination is a call of its own. The label may hold
    {arguments}, {arguments.0}, {type_arguments}, {sender}; without them what differs is put behind it."""


def expanded(place: str, entry: Any, label: str = "") -> tuple[Call, ...]:
    """Return the calls of an entry: one, or one for each combination of its grid.

    Parameters
    ----------
    place : str
        Where the entry stands, for texts.
    entry : Call, ViewFunction, SimulationRequest or mapping
    label : str, optional
        Its label, where the entry has none.

    Returns
    -------
    tuple of Call
        The last list of the grid varies fastest.

    Raises
    ------
    StudyError
        If something cannot be used, naming the place.
    """
    if not isinstance(entry, Mapping) or entry.get("grid") is None:
        return (placed(place, Call.of, entry, label, of=CallEntry),)
    given = {**({"label": label} if label else {}), **entry}
    checked = placed(place, CallEntry.model_validate, given, of=CallEntry)
    return placed(place, _combined, checked)


def _combined(entry: CallEntry) -> tuple[Call, ...]:
    axes = entry.grid.axes if entry.grid else {}
    fields = {name: getattr(entry, name) for name in entry.model_fields_set - {"grid"}}
    if twice := sorted(axes.keys() & fields.keys()):
        raise InputError(f"`{twice[0]}` stands in the call and in its grid; give it once")
    points = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    labelled = zip(points, _labels(entry.name, points), strict=True)
    return tuple(
        placed(f"grid entry {number}", Call.model_validate, fields | point | {"label": name}, of=Call)
        for number, (point, name) in enumerate(labelled, start=1)
    )


def _labels(label: str, points: list[dict[str, Any]]) -> list[str]:
    """Name every combination: by the placeholders of the label, else by the values that make it."""
    if _PLACEHOLDER.search(label):
        return [_PLACEHOLDER.sub(partial(_filled, point), label) for point in points]
    labels = [f"{label} [{'; '.join(_spelt(value) for value in point.values())}]" for point in points]
    often = Counter(labels)  # values that are cut short may look the same
    return [name if often[name] == 1 else f"{name} #{number}" for number, name in enumerate(labels, start=1)]


def _filled(point: Mapping[str, Any], found: re.Match[str]) -> str:
    named = _NAMED.fullmatch(found[1])
    if not named or named[1] not in point:
        choices = ", ".join(f"{{{name}}}" for name in point)
        raise InputError(f"`label`: {found[0]} is filled by no list of the grid; there are {choices} and {{name.0}}")
    values = point[named[1]]
    if named[2] is None:
        return _spelt(values)
    if isinstance(values, str) or int(named[2]) >= len(values):
        raise InputError(f"`label`: {found[0]} is past the end of {_spelt(values)!r}")
    return _spelt(values[int(named[2])])


def _spelt(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(_spelt(item) for item in value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"
