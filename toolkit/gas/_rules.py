"""The rules of a gate: limits on the rise of calls, and waivers."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from toolkit._present.messages import shorten
from toolkit._present.text import percent, plural
from toolkit.errors import InputError, StudyError
from toolkit.gas._file_model import FileModel, named_place, placed
from toolkit.gas._observations import Source

# At most nine digits of a percentage on each side of the point, and at most the 20 digits of a u64.
_LIMIT = re.compile(r"\s*(?:(\d{1,9}(?:\.\d{1,9})?)\s*%|(\d{1,20}))\s*", re.ASCII)
_ISO_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def _day(value: Any) -> Any:
    """Accept only a TOML date or ISO text, because pydantic would read a number as seconds since 1970."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    if isinstance(value, str) and _ISO_DAY.fullmatch(value):
        with suppress(ValueError):
            return date.fromisoformat(value)
    raise ValueError(f"expected a date such as 2026-12-31, got {shorten(value)}")


class Threshold(FileModel):
    """How much more a call may cost; a rise above either limit is a regression.

    Examples
    --------
    >>> limit = Threshold.of(["2%", 50])
    >>> str(limit), str(limit.exceeded(1_000, 1_030))
    ('50 gas units or 2 %', '2 %')
    """

    gas_units: Annotated[int, Field(ge=0, strict=True)] | None = None
    """Maximum rise in gas units."""
    percent: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """Maximum rise in percent of the baseline. Any rise from 0 exceeds it."""

    @model_validator(mode="after")
    def _has_a_limit(self) -> Self:
        if self.gas_units is None and self.percent is None:
            raise ValueError("a threshold must have gas_units, percent, or both")
        return self

    def exceeded(self, before: int, after: int, *, unit: int = 1) -> Threshold | None:
        """Return the limit exceeded by a rise from `before` to `after`, or None.

        Both are in gas units, or in octas if `unit` is the price of a gas unit.
        """
        rise = after - before
        if self.gas_units is not None and rise > self.gas_units * unit:
            return Threshold(gas_units=self.gas_units)
        # Exact: a float of 100 * rise / before may fall on the wrong side of the limit.
        if self.percent is not None and 100 * rise > Fraction(str(self.percent)) * abs(before):
            return Threshold(percent=self.percent)
        return None

    def __str__(self) -> str:
        units = None if self.gas_units is None else plural(self.gas_units, "gas unit")
        share = None if self.percent is None else percent(self.percent, "g")
        return " or ".join(limit for limit in (units, share) if limit)

    @classmethod
    def of(cls, threshold: Any) -> Threshold:
        """Return a threshold from any of its forms.

        Parameters
        ----------
        threshold : Threshold, str, int, mapping, or list of str and int
            ``"2%"``, ``50`` or ``"50"`` (gas units), both in a list, or a table as in a study file.

        Returns
        -------
        Threshold

        Raises
        ------
        InputError
            If `threshold` has any other form, or sets a limit twice.
        """
        if isinstance(threshold, cls):
            return threshold
        if isinstance(threshold, Mapping):
            return placed("thresholds", cls.model_validate, dict(threshold))
        limits: dict[str, Any] = {}
        for one in threshold if isinstance(threshold, list | tuple) else [threshold]:
            name, limit = _limit(one)
            if name in limits:
                raise InputError(f"thresholds: {name} is given twice")
            limits[name] = limit
        return placed("thresholds", cls.model_validate, limits)


class Waiver(FileModel):
    """An exemption from the gate until an expiry date: calls may regress, or a source need not be judged.

    Examples
    --------
    >>> from datetime import date
    >>> waiver = Waiver(call="vault", reason="accepted in the review", expires="2026-12-31")
    >>> waiver.holds(date(2027, 1, 1))
    False
    """

    call: Annotated[str, Field(min_length=1)] | None = None
    """Label of the call, or else a pattern that matches the labels of several calls, such as ``"balance of *"``. Give
    either this or `source`.
    """
    source: Source | None = None
    """Source whose calls need not be judged, such as ``committed``. Regressions of its calls still fail the gate."""
    reason: Annotated[str, Field(min_length=1)]
    """The reason, which is shown wherever the waiver applies."""
    expires: Annotated[date, BeforeValidator(_day)]
    """Last day on which the waiver applies, such as 2026-12-31 (UTC)."""

    @model_validator(mode="after")
    def _has_one_subject(self) -> Self:
        if (self.call is None) == (self.source is None):
            raise ValueError("a waiver must have either `call` or `source`")
        return self

    @property
    def name(self) -> str:
        """The waived call or source."""
        return self.call or self.source or ""

    def holds(self, today: date) -> bool:
        """Return whether the waiver still applies."""
        return today <= self.expires


def read_waivers(waivers: Any) -> tuple[Waiver, ...]:
    """Read a list of waivers, as objects or as tables of a file.

    Raises
    ------
    StudyError
        If a waiver is not valid, or two waivers are for the same call or source; the message names the waiver.
    """
    if not isinstance(waivers, list | tuple):
        raise StudyError(f"waivers: expected a list, got {shorten(waivers)}")
    read: list[Waiver] = []
    for number, given in enumerate(waivers, start=1):
        named = (given.get("call") or given.get("source")) if isinstance(given, Mapping) else None
        place = named_place("waiver", number, named)
        waiver = placed(place, Waiver.model_validate, given)
        if any(waiver.call == earlier.call and waiver.source == earlier.source for earlier in read):
            raise StudyError(f"{place}: there is an earlier waiver for the same {'call' if waiver.call else 'source'}")
        read.append(waiver)
    return tuple(read)


def matching(name: str, labels: Collection[str]) -> set[str]:
    """Return the labels that a name in a waiver matches.

    A name that is a label means only that call, because labels may contain the characters of patterns. Any other name
    is a pattern with ``*``, ``?`` and ``[...]``.
    """
    return {name} if name in labels else {label for label in labels if fnmatchcase(label, name)}


def _limit(one: Any) -> tuple[str, int | float]:
    """Return the field of `Threshold` that a limit sets, and its value."""
    if isinstance(one, int) and not isinstance(one, bool) and one >= 0:
        return "gas_units", one
    found = _LIMIT.fullmatch(one) if isinstance(one, str) else None
    if found is None:
        raise InputError(f"a threshold must be a percentage such as 2%, or gas units such as 50, got {shorten(one)}")
    percent, units = found.groups()
    return ("gas_units", int(units)) if units else ("percent", float(percent))


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules that a gate applies to a comparison.

    Attributes
    ----------
    threshold : Threshold or None
        Limit for calls that do not set their own; None if only failures are regressions.
    own : mapping of label to Threshold
        Limits of individual calls, which replace the general limit.
    waivers : tuple of Waiver
    named : mapping of label to Source
        The calls of the study. Each must be judged or waived.
    of_snapshot : bool
        Whether the before side is a snapshot. It lists the calls that fail, which may fail again in the same way.
    """

    threshold: Threshold | None
    own: Mapping[str, Threshold]
    waivers: tuple[Waiver, ...]
    named: Mapping[str, Source] = field(default_factory=dict)
    of_snapshot: bool = False

    def renamed(self, labels: Mapping[str, str]) -> Rules:
        """Return the rules with alternative names of calls replaced by the labels that a comparison uses."""
        own = {labels.get(name, name): threshold for name, threshold in self.own.items()}
        named = {labels.get(name, name): source for name, source in self.named.items()}
        waivers = [
            waiver.model_copy(update={"call": labels[waiver.call]}) if waiver.call and waiver.call in labels else waiver
            for waiver in self.waivers
        ]
        return replace(self, own=own, named=named, waivers=tuple(waivers))

    def limits_of(self, row: Mapping[str, Any]) -> Threshold | None:
        """Return the limits that apply to a row; None if only its failure is a regression."""
        return self.own.get(row["label"], self.threshold)

    def __str__(self) -> str:
        rise = f"a rise over {self.threshold} or " if self.threshold else ""
        general = f"{rise}a new failure is a regression"
        own = [f"{label!r}: {threshold}" for label, threshold in self.own.items()]
        return f"{general} ({', '.join(own)})" if own else general
