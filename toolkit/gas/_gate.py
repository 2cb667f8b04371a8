"""The gate: limits on how much more a call may cost, the calls that regressed or could not be judged, and waivers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from fractions import Fraction
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from toolkit._present.messages import shorten
from toolkit._present.numbers import plural, relative_change
from toolkit.errors import InputError, StudyError
from toolkit.frames._columns import plain_columns
from toolkit.gas._file_model import FileModel, named_place, placed
from toolkit.gas._observations import Source
from toolkit.gas._sentences import gate_lines, label_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    import pandas as pd

    from toolkit.gas._study import Study

__all__ = ["Gate", "NotJudged", "Regression", "Rules", "Threshold", "Waiver", "judge", "read_waivers"]

_PERCENT = re.compile(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*%\s*")
_UNITS = re.compile(r"\s*(\d{1,20})\s*")
_READ = (
    "label",
    "source",
    "node",
    "kind",
    "gas_before",
    "gas_after",
    "change",
    "change_percent",
    "success_before",
    "success_after",
    "error_before",
    "error_after",
    "vm_status_after",
)


_AT_THE_HEAD = "simulations are made at the head only, and the version asked for lies before it"
_BY_ARGUMENTS = (
    "committed transactions differ in their arguments, and steps are found for views only; thresholds of the call's "
    "own compare its last transaction on either side"
)


def _day(value: Any) -> Any:
    """Accept only a TOML date or ISO text, because pydantic would read a number as seconds since 1970."""
    if isinstance(value, str | date) and not isinstance(value, datetime):
        return value
    raise ValueError(f"expected a date such as 2026-12-31, got {shorten(value)}")


class Threshold(FileModel):
    """Limit on how much more a call may cost: a rise over any limit that is given is a regression.

    Examples
    --------
    >>> limit = Threshold.of(["2%", 50])
    >>> str(limit), limit.exceeded(1_000, 1_030)
    ('50 gas units or 2 %', '2 %')
    """

    gas_units: Annotated[int, Field(ge=0, strict=True)] | None = None
    """Maximum rise in gas units."""
    percent: Annotated[float, Field(ge=0)] | None = None
    """Maximum rise in percent of the baseline. Any rise from 0 exceeds it."""

    @field_validator("percent")
    @classmethod
    def _finite(cls, percent: float | None) -> float | None:
        if percent is not None and not isfinite(percent):
            raise ValueError(f"expected a finite number, got {percent}")
        return percent

    @model_validator(mode="after")
    def _one_at_least(self) -> Self:
        if self.gas_units is None and self.percent is None:
            raise ValueError("a threshold must have gas_units, percent, or both")
        return self

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
            If `threshold` has another form, or gives a limit twice.
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
        """Return the limit that a rise from `before` to `after` gas units exceeds, as text; None if it exceeds none."""
        rise = after - before
        if self.gas_units is not None and rise > self.gas_units:
            return plural(self.gas_units, "gas unit")
        # Exact: a float of 100 * rise / before may fall on the wrong side of the limit.
        if self.percent is not None and 100 * rise > Fraction(str(self.percent)) * before and rise > 0:
            return f"{self.percent:g} %"
        return None

    def __str__(self) -> str:
        units = None if self.gas_units is None else plural(self.gas_units, "gas unit")
        percent = None if self.percent is None else f"{self.percent:g} %"
        return " or ".join(limit for limit in (units, percent) if limit)


class Waiver(FileModel):
    """A call whose regressions do not fail the gate, or a source that need not be judged, until a day.

    Examples
    --------
    >>> from datetime import date
    >>> waiver = Waiver(call="vault", reason="accepted in the review", expires="2026-12-31")
    >>> waiver.holds(date(2027, 1, 1))
    False
    """

    call: Annotated[str, Field(min_length=1)] | None = None
    """Label of the call. Either this or `source` is needed."""
    source: Literal["view@version", "simulate@now", "committed"] | None = None
    """Source whose calls need not be judged, such as committed; regressions of its calls still count."""
    reason: Annotated[str, Field(min_length=1)]
    """Why; it is shown wherever the waiver applies."""
    expires: Annotated[date, BeforeValidator(_day)]
    """Last day on which the waiver applies, such as 2026-12-31 (UTC)."""

    @model_validator(mode="after")
    def _of_one(self) -> Self:
        if (self.call is None) == (self.source is None):
            raise ValueError("a waiver must have either `call` or `source`")
        return self

    @property
    def name(self) -> str:
        """The call or the source that is waived."""
        return self.call or self.source or ""

    def holds(self, today: date) -> bool:
        """Return whether the waiver still applies."""
        return today <= self.expires


def read_waivers(waivers: Any) -> tuple[Waiver, ...]:
    """Read a list of waivers, as objects or as tables of a file.

    Raises
    ------
    StudyError
        If a waiver is not valid, or a second one is for the same call or source; names the waiver.
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
    raise InputError(
        f"a threshold must be a percentage such as 2% or a number of gas units such as 50, got {shorten(one)}"
    )


@dataclass(frozen=True, slots=True)
class Regression:
    """A call that regressed.

    Attributes
    ----------
    label, source, node : str
    reason : str
        What happened; may quote the node.
    gas_before, gas_after : int or None
        Gas units.
    limit : str or None
        The limit that the rise exceeds; None if the call regressed in another way.
    waiver : Waiver or None
        The waiver that applies to the regression, if any.
    """

    label: str
    source: str
    node: str
    reason: str
    gas_before: int | None
    gas_after: int | None
    limit: str | None = None
    waiver: Waiver | None = None


@dataclass(frozen=True, slots=True)
class NotJudged:
    """A call that the gate cannot judge.

    Attributes
    ----------
    label, source, node : str
    reason : str
        Why; may quote the node.
    waiver : Waiver or None
        The waiver that applies to the call or its source, if any.
    """

    label: str
    source: str
    node: str
    reason: str
    waiver: Waiver | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Gate:
    """The verdict on a comparison.

    Attributes
    ----------
    rules : Rules
    judged : int
        Number of calls that were judged.
    regressions : tuple of Regression
        Calls that regressed and are not waived.
    not_judged : tuple of NotJudged
        Calls that cannot be judged and are not waived. The gate does not pass with any of them.
    waived : tuple of Regression or NotJudged
        Calls that a waiver excuses.
    notes : tuple of str
        Calls without a baseline, and waivers that no longer apply.
    """

    rules: Rules
    judged: int
    regressions: tuple[Regression, ...]
    not_judged: tuple[NotJudged, ...]
    waived: tuple[Regression | NotJudged, ...]
    notes: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether each call was judged or waived, and each regression is waived."""
        return not self.regressions and not self.not_judged

    @property
    def verdict(self) -> str:
        """``"passed"``, ``"failed"`` (a call regressed) or ``"could not judge"`` (no judged call regressed)."""
        if self.regressions:
            return "failed"
        return "could not judge" if self.not_judged else "passed"

    def __repr__(self) -> str:
        return "\n".join(gate_lines(self, label_text))


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules by which a comparison is judged.

    Attributes
    ----------
    threshold : Threshold or None
        Limit of calls without a limit of their own; None if only failures are regressions.
    own : mapping of label to Threshold
        Limits of single calls, which replace the general one.
    waivers : tuple of Waiver
    """

    threshold: Threshold | None
    own: Mapping[str, Threshold]
    waivers: tuple[Waiver, ...]

    @classmethod
    def of(cls, threshold: Any = None, study: Study | None = None, waivers: Sequence[Any] | None = None) -> Rules:
        """Return the rules of a study; a threshold or waivers that are given replace those of the study.

        Raises
        ------
        InputError
            If `threshold` is not valid.
        StudyError
            If a waiver is not valid.
        """
        own = {call.name: call.thresholds for call in study.calls if call.thresholds} if study else {}
        general = study.thresholds if threshold is None and study else threshold
        chosen = (study.waivers if study else ()) if waivers is None else waivers
        read = chosen if all(isinstance(one, Waiver) for one in chosen) else read_waivers(chosen)
        return cls(None if general is None else Threshold.of(general), own, tuple(read))

    @property
    def has_limits(self) -> bool:
        """Whether any rise can fail the gate."""
        return self.threshold is not None or bool(self.own)

    def __str__(self) -> str:
        general = f"a rise over {self.threshold} is a regression" if self.threshold else "a failure is a regression"
        own = [f"{label!r}: {threshold}" for label, threshold in self.own.items()]
        return f"{general} ({', '.join(own)})" if own else general


def judge(
    calls: pd.DataFrame, rules: Rules, *, left_out: Sequence[tuple[str, str]] = (), today: date | None = None
) -> Gate:
    """Judge the calls of a comparison; see `Comparison.gate`.

    Parameters
    ----------
    calls : DataFrame
        As `Comparison.calls`.
    rules : Rules
    left_out : sequence of (str, str)
        Label and node of simulations that are not in `calls`, because they are made at the head only.
    today : date, optional
        Today's date in UTC by default.

    Returns
    -------
    Gate

    Raises
    ------
    InputError
        If no call is on both sides, so that there is nothing to judge.
    """
    day = today or datetime.now(UTC).date()
    columns = plain_columns(calls, _READ)
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    reasons = [_why_not(row, rules) for row in rows]
    silent = [
        *(_not_judged(row, why) for row, why in zip(rows, reasons, strict=True) if why),
        *(NotJudged(label, Source.SIMULATE.value, node, _AT_THE_HEAD) for label, node in left_out),
    ]
    judged = [row for row, why in zip(rows, reasons, strict=True) if not why and not _without_baseline(row)]
    if not judged and not silent:
        raise InputError("no call is on both sides, so the gate has nothing to judge; compare runs of the same calls")
    holding = [waiver for waiver in rules.waivers if waiver.holds(day)]
    by_call = {waiver.call: waiver for waiver in holding if waiver.call is not None}
    by_source: dict[str, Waiver] = {waiver.source: waiver for waiver in holding if waiver.source is not None}
    silent = [replace(one, waiver=by_call.get(one.label) or by_source.get(one.source)) for one in silent]
    found = [one for row in judged if (one := _regression(row, rules, by_call)) is not None]
    return Gate(
        rules=rules,
        judged=len(judged),
        regressions=tuple(one for one in found if one.waiver is None),
        not_judged=tuple(one for one in silent if one.waiver is None),
        waived=(
            *(one for one in found if one.waiver is not None),
            *(one for one in silent if one.waiver is not None),
        ),
        notes=tuple(_notes(rows, left_out, rules, day)),
    )


def _why_not(row: Mapping[str, Any], rules: Rules) -> str | None:
    """Return why a call cannot be judged; None if it can be, or has no baseline."""
    if Source.COMMITTED in row["source"] and row["label"] not in rules.own:
        return _BY_ARGUMENTS
    if row["kind"] == "unreachable":
        sides = [f"the {side} side: {code}" for side in ("before", "after") if (code := row[f"error_{side}"])]
        return f"no answer on {', '.join(sides)}"
    if _without_baseline(row) or not _succeeded(row, "after"):
        return None
    limited = rules.own.get(row["label"], rules.threshold) is not None
    missing = [side for side in ("before", "after") if row[f"gas_{side}"] is None]
    return f"the node reported no gas on the {' and the '.join(missing)} side" if limited and missing else None


def _without_baseline(row: Mapping[str, Any]) -> bool:
    return row["kind"] in {"added", "removed"} or not _succeeded(row, "before")


def _not_judged(row: Mapping[str, Any], reason: str) -> NotJudged:
    return NotJudged(row["label"], row["source"], row["node"], reason)


def _regression(row: Mapping[str, Any], rules: Rules, waivers: Mapping[str, Waiver]) -> Regression | None:
    reason, limit = _complaint(row, rules.own.get(row["label"], rules.threshold))
    if reason is None:
        return None
    names = ("label", "source", "node", "gas_before", "gas_after")
    return Regression(
        **{name: row[name] for name in names}, reason=reason, limit=limit, waiver=waivers.get(row["label"])
    )


def _complaint(row: Mapping[str, Any], threshold: Threshold | None) -> tuple[str | None, str | None]:
    """Return why a call is a regression, and the limit that its rise exceeds."""
    if not _succeeded(row, "after"):
        why = row["error_after"] or row["vm_status_after"] or "no reason reported"
        return f"succeeded before and now fails: {why}", None
    before, after = row["gas_before"], row["gas_after"]
    if threshold is None or before is None or after is None:
        return None, None
    limit = threshold.exceeded(before, after)
    if limit is None:
        return None, None
    relative = f", {relative_change(before, after)}" if before else ""
    return f"from {before:,} to {plural(after, 'gas unit')} ({row['change']:+,}{relative}) is over {limit}", limit


def _succeeded(row: Mapping[str, Any], side: str) -> bool:
    return row[f"error_{side}"] is None and row[f"success_{side}"] is not False


def _notes(
    rows: Sequence[Mapping[str, Any]], left_out: Sequence[tuple[str, str]], rules: Rules, day: date
) -> list[str]:
    """Return which calls have no baseline, and which waivers and limits have no effect."""
    notes = [
        f"the waiver of {waiver.name!r} expired on {waiver.expires} and no longer applies: {waiver.reason}"
        for waiver in rules.waivers
        if not waiver.holds(day)
    ]
    labels = {row["label"] for row in rows} | {label for label, _ in left_out}
    strange = sorted({*rules.own, *(waiver.call for waiver in rules.waivers if waiver.call)} - labels)
    if strange:
        notes.append(f"thresholds or waivers of calls that this comparison does not have: {_named(strange)}")
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if _why_not(row, rules) is None and _without_baseline(row):
            one_side = f"only on the {'after' if row['kind'] == 'added' else 'before'} side"
            why = one_side if row["kind"] in {"added", "removed"} else "failed before, so it has no baseline"
            reasons.setdefault(why, []).append(row["label"])
    return [*notes, *(f"not judged: {_named(labels)}: {why}" for why, labels in reasons.items())]


def _named(labels: Sequence[str]) -> str:
    return ", ".join(repr(label) for label in dict.fromkeys(labels))
