"""How much dearer a call may become before a build fails, and which calls are excused until when."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime
from fractions import Fraction
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from toolkit._present.messages import shorten
from toolkit.errors import InputError, StudyError
from toolkit.gas.file_model import FileModel, named_place, placed

if TYPE_CHECKING:
    from typing import Self

__all__ = ["Threshold", "Waiver", "read_waivers"]

_PERCENT = re.compile(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*%\s*")
_UNITS = re.compile(r"\s*(\d{1,20})\s*")


def _day(value: Any) -> Any:
    """Take a date of TOML or ISO text only: pydantic would read a number as seconds since 1970."""
    if isinstance(value, str | date) and not isinstance(value, datetime):
        return value
    raise ValueError(f"expected a date such as 2026-12-31, got {shorten(value)}")


class Threshold(FileModel):
    """How much dearer a call may become: a rise over any limit that is given is a regression."""

    gas_units: Annotated[int, Field(ge=0, strict=True)] | None = None
    """Most gas units that may be added."""
    percent: Annotated[float, Field(ge=0)] | None = None
    """Most percent of the baseline that may be added. Any rise from 0 is over it."""

    @field_validator("percent")
    @classmethod
    def _finite(cls, percent: float | None) -> float | None:
        if percent is not None and not isfinite(percent):
            raise ValueError(f"expected a finite number, got {percent}")
        return percent

    @model_validator(mode="after")
    def _one_at_least(self) -> Self:
        if self.gas_units is None and self.percent is None:
            raise ValueError("a threshold has gas_units, percent, or both")
        return self

    @classmethod
    def of(cls, threshold: Any) -> Threshold:
        """Take a threshold in any of its forms.

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
            If it is none of these.
        """
        if isinstance(threshold, cls):
            return threshold
        if isinstance(threshold, Mapping):
            return placed("threshold", cls.model_validate, dict(threshold), of=cls)
        limits: dict[str, Any] = {}
        for one in threshold if isinstance(threshold, list | tuple) else [threshold]:
            name, limit = _limit(one)
            if name in limits:
                raise InputError(f"threshold: {name} is given twice")
            limits[name] = limit
        return placed("threshold", cls.model_validate, limits, of=cls)

    def exceeded(self, before: int, after: int) -> str | None:
        """Return the limit that a rise from `before` to `after` gas units is over, in words; None where it is not."""
        rise = after - before
        if self.gas_units is not None and rise > self.gas_units:
            return f"{self.gas_units} gas unit{'' if self.gas_units == 1 else 's'}"
        # Exact: a float of 100 * rise / before may fall on the wrong side of the limit.
        if self.percent is not None and 100 * rise > Fraction(str(self.percent)) * before and rise > 0:
            return f"{self.percent:g} %"
        return None

    def __str__(self) -> str:
        units = None if self.gas_units is None else f"{self.gas_units} gas units"
        percent = None if self.percent is None else f"{self.percent:g} %"
        return " or ".join(limit for limit in (units, percent) if limit)


class Waiver(FileModel):
    """A call whose regressions do not fail a build, or a source that need not be judged, until a day."""

    call: Annotated[str, Field(min_length=1)] | None = None
    """Label of the call. Either this or `source` is needed."""
    source: Literal["view@version", "simulate@now", "committed"] | None = None
    """Source whose calls may stay without a judgement, such as committed; regressions of its calls still count."""
    reason: Annotated[str, Field(min_length=1)]
    """Why; it is shown wherever the waiver counts."""
    expires: Annotated[date, BeforeValidator(_day)]
    """Last day on which the waiver counts, such as 2026-12-31 (UTC)."""

    @model_validator(mode="after")
    def _of_one(self) -> Self:
        if (self.call is None) == (self.source is None):
            raise ValueError("a waiver has either `call` or `source`")
        return self

    @property
    def name(self) -> str:
        """The call or the source that is waived."""
        return self.call or self.source or ""

    def holds(self, today: date) -> bool:
        """Return whether the waiver still counts."""
        return today <= self.expires


def read_waivers(waivers: Any) -> tuple[Waiver, ...]:
    """Read a list of waivers, as objects or as tables of a file.

    Raises
    ------
    StudyError
        If one cannot be used, naming it.
    """
    if not isinstance(waivers, list | tuple):
        raise StudyError(f"waivers: expected a list, got {shorten(waivers)}")
    read: dict[tuple[str | None, str | None], Waiver] = {}
    for number, given in enumerate(waivers, start=1):
        named = (given.get("call") or given.get("source")) if isinstance(given, Mapping) else None
        place = named_place("waiver", number, named)
        waiver = placed(place, Waiver.model_validate, given, of=Waiver)
        if (waiver.call, waiver.source) in read:
            raise StudyError(f"{place}: there is an earlier waiver of the same {'call' if waiver.call else 'source'}")
        read[waiver.call, waiver.source] = waiver
    return tuple(read.values())


def _limit(one: Any) -> tuple[str, int | float]:
    if isinstance(one, int) and not isinstance(one, bool) and one >= 0:
        return "gas_units", one
    if isinstance(one, str) and (found := _PERCENT.fullmatch(one)):
        return "percent", float(found[1])
    if isinstance(one, str) and (found := _UNITS.fullmatch(one)):
        return "gas_units", int(found[1])
    raise InputError(f"a threshold is a percentage such as 2% or a number of gas units such as 50, got {shorten(one)}")
