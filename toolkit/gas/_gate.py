"""The gate: limits on how much more a call may cost, what is allowed or waived, and the calls that regressed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from fnmatch import fnmatchcase
from fractions import Fraction
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from toolkit._present.messages import shorten
from toolkit._present.text import plural, relative_change
from toolkit.errors import InputError, StudyError
from toolkit.frames._columns import plain_columns
from toolkit.gas._file_model import FileModel, named_place, placed
from toolkit.gas._observations import Cause, Source
from toolkit.gas._sentences import gate_lines, label_text
from toolkit.gas._steps import ALL_TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Self

    import pandas as pd

    from toolkit.gas._study import Study


MAX_AGE = timedelta(days=1)
"""Age from which on a run that reads up to the head is old."""

QUANTILES = {"p50": 2, "p90": 10, "p99": 100}
"""Quantiles of gas that may have limits, and the number of observations that each requires on either side."""

_QUANTILE = re.compile(r"\s*(p\d{1,9})\s*:(.*)", re.DOTALL)
_PERCENT = re.compile(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*%\s*", re.ASCII)
_UNITS = re.compile(r"\s*(\d{1,20})\s*", re.ASCII)
_ISO_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
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
    "vm_status_before",
    "vm_status_after",
    "fingerprint",
    "version_before",
    "version_after",
    "count_before",
    "count_after",
    *(f"{quantile}_{side}" for quantile in QUANTILES for side in ("before", "after")),
    "stratum",
    "not_judged",
    "change_low",
    "change_high",
)

_STEP = (
    "node",
    "fingerprint",
    "source",
    "version_before",
    "version_after",
    "exact",
    "gas_before",
    "gas_after",
    "cause",
    "cause_parts",
    "part",
    "stratum",
    "change",
    "change_low",
    "change_high",
)
_ONE_SIDED = {"added": "after", "removed": "before"}
"""Kinds of rows that one side lacks, with the side that has them."""
_NOWHERE = "the study names it, but neither side has an observation of it"
_AT_THE_HEAD = "simulations are made at the head only, and the version asked for lies before it"
_BY_ARGUMENTS = (
    "committed transactions differ in their arguments; those of two runs that judged them are compared by kind, and "
    "thresholds of the call's own compare its last transaction on either side"
)


def _day(value: Any) -> Any:
    """Accept only a TOML date or ISO text, because pydantic would read a number as seconds since 1970."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    if isinstance(value, str) and _ISO_DAY.fullmatch(value):
        with suppress(ValueError):
            return date.fromisoformat(value)
    raise ValueError(f"expected a date such as 2026-12-31, got {shorten(value)}")


class Limits(FileModel):
    """How much gas may rise by: a rise over either limit is a regression."""

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


class Threshold(Limits):
    """Limits on how much more a call may cost: a rise over any limit that is given is a regression.

    Limits of a quantile apply to calls with several observations on either side: committed transactions, or views that
    were read at several versions. ``p90`` is the smallest observed gas that at least 90 % of the observations do not
    exceed; failed calls do not count.

    Examples
    --------
    >>> limit = Threshold.of(["2%", 50, "p90:5%"])
    >>> str(limit), limit.exceeded(1_000, 1_030)
    ('50 gas units or 2 %, or of p90 over 5 %', '2 %')
    """

    p50: Limits | None = None
    """Limits of the median; at least 2 observations on either side are required."""
    p90: Limits | None = None
    """Limits of the 90 % quantile; at least 10 observations on either side are required."""
    p99: Limits | None = None
    """Limits of the 99 % quantile; at least 100 observations on either side are required."""

    @model_validator(mode="after")
    def _one_at_least(self) -> Self:
        if not self.single and not self.quantiles:
            raise ValueError(f"a threshold must have gas_units, percent, {', '.join(QUANTILES)}, or several of them")
        return self

    @property
    def single(self) -> bool:
        """Whether there is a limit for the last observation of a call."""
        return self.gas_units is not None or self.percent is not None

    @property
    def quantiles(self) -> dict[str, Limits]:
        """The limits of quantiles, by name."""
        found = ((name, getattr(self, name)) for name in QUANTILES)
        return {name: limits for name, limits in found if limits is not None}

    @classmethod
    def of(cls, threshold: Any) -> Threshold:
        """Return a threshold from any of its forms.

        Parameters
        ----------
        threshold : Threshold, str, int, mapping, or list of str and int
            ``"2%"``, ``50`` or ``"50"`` (gas units), ``"p90:5%"`` (of a quantile), several in a list, or a table as in
            a study file.

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
            quantile, name, limit = _limit(one)
            place = limits.setdefault(quantile, {}) if quantile else limits
            if name in place:
                raise InputError(f"threshold: {name} is given twice{f' for {quantile}' if quantile else ''}")
            place[name] = limit
        return placed("threshold", cls.model_validate, limits, of=cls)

    def __str__(self) -> str:
        own = [super().__str__()] if self.single else []
        return ", or ".join([*own, *(f"of {name} over {limits}" for name, limits in self.quantiles.items())])


class Allowed(FileModel):
    """What never fails the gate: causes of a rise, and calls that may disappear."""

    causes: tuple[Literal["schedule", "state"], ...] = ()
    """A rise passes if every step between the two sides has one of these causes alone, and the steps explain all of
    it. Steps of other causes, or of unknown ones, are never allowed.
    """
    removed: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Labels of calls that may be on the before side only. A text that is not the label of a call is a pattern, such as
    ``"old *"``.
    """


class Waiver(FileModel):
    """Calls whose regressions do not fail the gate, or a source that need not be judged, until a day.

    Examples
    --------
    >>> from datetime import date
    >>> waiver = Waiver(call="vault", reason="accepted in the review", expires="2026-12-31")
    >>> waiver.holds(date(2027, 1, 1))
    False
    """

    call: Annotated[str, Field(min_length=1)] | None = None
    """Label of the call. A text that is not the label of a call is a pattern, such as ``"balance of *"``. Either this
    or `source` is needed.
    """
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


def matching(name: str, labels: Collection[str]) -> set[str]:
    """Return the labels that a name in a waiver or a list of allowed calls means.

    A name that is a label means that call only, because labels may contain the characters of patterns. Any other name
    is a pattern with ``*``, ``?`` and ``[...]``.
    """
    return {name} if name in labels else {label for label in labels if fnmatchcase(label, name)}


def _limit(one: Any) -> tuple[str | None, str, int | float]:
    """Return the quantile of a limit, if any, then its key and value."""
    quantile, text = None, one
    if isinstance(one, str) and (found := _QUANTILE.fullmatch(one)):
        quantile, text = found[1], found[2]
        if quantile not in QUANTILES:
            raise InputError(f"the quantile of a threshold must be {', '.join(QUANTILES)}, got {shorten(quantile)}")
    if isinstance(text, int) and not isinstance(text, bool) and text >= 0:
        return quantile, "gas_units", text
    if isinstance(text, str) and (found := _PERCENT.fullmatch(text)):
        return quantile, "percent", float(found[1])
    if isinstance(text, str) and (found := _UNITS.fullmatch(text)):
        return quantile, "gas_units", int(found[1])
    raise InputError(
        "a threshold must be a percentage such as 2%, a number of gas units such as 50, or one of these for a quantile "
        f"such as p90:5%, got {shorten(one)}"
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
    allowed : str or None
        Why the rules allow the regression, in words: its causes, or that the call may disappear. None if they do not.
    """

    label: str
    source: str
    node: str
    reason: str
    gas_before: int | None
    gas_after: int | None
    limit: str | None = None
    waiver: Waiver | None = None
    allowed: str | None = None


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
        Number of calls of both sides that were judged. The gate does not pass without one.
    regressions : tuple of Regression
        Calls that regressed, or disappeared, and are neither allowed nor waived.
    not_judged : tuple of NotJudged
        Calls that cannot be judged and are not waived. The gate does not pass with any of them.
    waived : tuple of Regression or NotJudged
        Calls that a waiver excuses.
    notes : tuple of str
        The age of the run, calls without a baseline that the study does not name, limits that do not apply, and rules
        without effect.
    allowed : tuple of Regression
        Calls that regressed by allowed causes alone, or may disappear.
    """

    rules: Rules
    judged: int
    regressions: tuple[Regression, ...]
    not_judged: tuple[NotJudged, ...]
    waived: tuple[Regression | NotJudged, ...]
    notes: tuple[str, ...]
    allowed: tuple[Regression, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether a call was judged, each other call is waived, and each regression is allowed or waived."""
        return self.judged > 0 and not self.regressions and not self.not_judged

    @property
    def verdict(self) -> str:
        """``"passed"``, ``"failed"`` (a call regressed) or ``"could not judge"`` (no judged call regressed)."""
        if self.regressions:
            return "failed"
        return "passed" if self.passed else "could not judge"

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
    allowed : Allowed
    named : mapping of label to Source
        The calls of the study. Each must be judged or waived.
    failures_named : bool
        Whether the before side says by name which calls fail, as a snapshot does: such a call may go on failing alike.
    """

    threshold: Threshold | None
    own: Mapping[str, Threshold]
    waivers: tuple[Waiver, ...]
    allowed: Allowed
    named: Mapping[str, Source] = field(default_factory=dict)
    failures_named: bool = False

    @classmethod
    def of(
        cls, threshold: Any = None, study: Study | None = None, waivers: Sequence[Any] | None = None, allow: Any = None
    ) -> Rules:
        """Return the rules of a study; what is given replaces that of the study, `allow` key by key.

        Raises
        ------
        InputError
            If `threshold` is not valid.
        StudyError
            If a waiver or `allow` is not valid.
        """
        own = {call.name: call.thresholds for call in study.calls if call.thresholds} if study else {}
        general = study.thresholds if threshold is None and study else threshold
        chosen = (study.waivers if study else ()) if waivers is None else waivers
        read = chosen if all(isinstance(one, Waiver) for one in chosen) else read_waivers(chosen)
        given = allow.model_dump(exclude_unset=True) if isinstance(allow, Allowed) else dict(allow or {})
        base = study.allow.model_dump(exclude_unset=True) if study and study.allow else {}
        allowed = placed("allow", Allowed.model_validate, base | given, of=Allowed)
        named = {call.name: Source(call.source) for call in study.calls} if study else {}
        return cls(None if general is None else Threshold.of(general), own, tuple(read), allowed, named)

    @property
    def has_limits(self) -> bool:
        """Whether any rise can fail the gate."""
        return self.threshold is not None or bool(self.own)

    def limits_of(self, row: Mapping[str, Any]) -> Threshold | None:
        """Return the limits that apply to a row; None if only its failure is a regression.

        Committed transactions differ in their arguments, so a general limit applies to their quantiles only, unless
        the row is of one kind of them.
        """
        own = self.own.get(row["label"])
        if own is not None or self.threshold is None or Source.COMMITTED not in row["source"] or row["stratum"]:
            return own or self.threshold
        alone = {"gas_units": None, "percent": None}
        return self.threshold.model_copy(update=alone) if self.threshold.quantiles else None

    def __str__(self) -> str:
        general = f"a rise over {self.threshold} is a regression" if self.threshold else "a failure is a regression"
        if self.threshold and not self.threshold.single:
            general = f"a rise {self.threshold} is a regression"
        own = [f"{label!r}: {threshold}" for label, threshold in self.own.items()]
        text = f"{general} ({', '.join(own)})" if own else general
        causes, removed = self.allowed.causes, [repr(label) for label in self.allowed.removed]
        text += f"; allowed causes: {', '.join(causes)}" if causes else ""
        return text + (f"; calls that may disappear: {', '.join(removed)}" if removed else "")


def judge(
    calls: pd.DataFrame,
    rules: Rules,
    *,
    left_out: Sequence[tuple[str, str]] = (),
    unlike: Mapping[str, str] | None = None,
    too_old: Mapping[str, str] | None = None,
    steps: pd.DataFrame | None = None,
    one_run: bool = False,
    today: date | None = None,
) -> Gate:
    """Judge the calls of a comparison; see `Comparison.gate`.

    Parameters
    ----------
    calls : DataFrame
        As `Comparison.calls`.
    rules : Rules
    left_out : sequence of (str, str)
        Label and node of simulations that are not in `calls`, because they are made at the head only.
    unlike : mapping of str to str, optional
        By node, why the sides cannot be judged: they are of different chains, nodes or gas models.
    too_old : mapping of str to str, optional
        By label, why a call cannot be judged: what was read is too old.
    steps : DataFrame, optional
        As `Run.steps`, of the ledger of both sides; None if the steps between the sides are not known.
    one_run : bool, default False
        Whether both sides are of one run, so that its steps are all that can explain a quantile.
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
    rows = _plain_rows(calls, _READ)
    if not left_out and all(row["kind"] in _ONE_SIDED and not row["stratum"] for row in rows):
        raise InputError("no call is on both sides, so the gate has nothing to judge; compare runs of the same calls")
    unlike, too_old = unlike or {}, too_old or {}
    reasons = [unlike.get(row["node"]) or too_old.get(row["label"]) or _why_not(row, rules) for row in rows]
    judged = [row for row, why in zip(rows, reasons, strict=True) if not why and not _without_baseline(row, rules)]
    # A call without a baseline is only a note, unless the study asks for its verdict or nothing else was judged.
    reasons = [
        why or (_no_baseline(row, rules) if not judged or _must_be_judged(row, rules) else None)
        for row, why in zip(rows, reasons, strict=True)
    ]
    there = {row["label"] for row in rows} | {label for label, _ in left_out}
    silent = [
        *(_not_judged(row, why) for row, why in zip(rows, reasons, strict=True) if why),
        *(NotJudged(label, Source.SIMULATE.value, node, _AT_THE_HEAD) for label, node in left_out),
        *(NotJudged(label, source.value, "", _NOWHERE) for label, source in rules.named.items() if label not in there),
    ]
    labels = there | rules.named.keys()
    holding = [(waiver, matching(waiver.call or "", labels)) for waiver in rules.waivers if waiver.holds(day)]
    silent = [replace(one, waiver=_waiver_of(one, holding, by_source=True)) for one in silent]
    known = None if steps is None else _by_call(steps)
    regressed = (_judged(row, rules, known, one_run=one_run) for row in judged)
    found = [one for one in regressed if one is not None]
    gone = {name: matching(name, labels) for name in rules.allowed.removed}
    found += [
        _disappeared(row, gone)
        for row, why in zip(rows, reasons, strict=True)
        if row["kind"] == "removed" and not row["stratum"] and not why
    ]
    found = [one if one.allowed else replace(one, waiver=_waiver_of(one, holding)) for one in found]
    noted = [row for row, why in zip(rows, reasons, strict=True) if not why]
    removed = {row["label"] for row in rows if row["kind"] == "removed"}
    return Gate(
        rules=rules,
        judged=len(judged),
        regressions=tuple(one for one in found if one.waiver is None and one.allowed is None),
        not_judged=tuple(one for one in silent if one.waiver is None),
        waived=(
            *(one for one in found if one.waiver is not None),
            *(one for one in silent if one.waiver is not None),
        ),
        notes=(*_rule_notes(rules, labels, gone, removed, day), *_row_notes(noted, rules)),
        allowed=tuple(one for one in found if one.allowed is not None),
    )


def _plain_rows(frame: pd.DataFrame, names: Sequence[str]) -> list[dict[str, Any]]:
    columns = plain_columns(frame, names)
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _by_call(steps: pd.DataFrame) -> dict[tuple[str, ...], list[dict[str, Any]]]:
    """Return the steps of each call by version; the key is node, fingerprint and source."""
    found: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in _plain_rows(steps.sort_values("version_after", kind="stable"), _STEP):
        found.setdefault((row["node"], row["fingerprint"], row["source"]), []).append(row)
    return found


def _waiver_of(
    one: Regression | NotJudged, holding: Sequence[tuple[Waiver, set[str]]], *, by_source: bool = False
) -> Waiver | None:
    """Return the waiver of a call: the one of its label, else the first with a matching pattern, or of its source."""
    of_call = [waiver for waiver, labels in holding if waiver.call and one.label in labels]
    exact = [waiver for waiver in of_call if waiver.call == one.label]
    of_source = [waiver for waiver, _ in holding if by_source and waiver.source == one.source]
    return next(iter([*exact, *of_call, *of_source]), None)


def _must_be_judged(row: Mapping[str, Any], rules: Rules) -> bool:
    """Return whether the study names a call, and the before side does not say by name that it fails as it does now."""
    if row["stratum"] or row["label"] not in rules.named:
        return False
    alike = all(row[f"{name}_before"] == row[f"{name}_after"] for name in ("error", "success", "vm_status"))
    return not (rules.failures_named and row["kind"] == "unchanged" and alike)


def _why_not(row: Mapping[str, Any], rules: Rules) -> str | None:
    """Return why a call cannot be judged; None if it can be, has no baseline, or has disappeared."""
    if row["stratum"] or row["kind"] in _ONE_SIDED:
        return _why_not_kind(row, rules) if row["stratum"] else None
    limits = rules.limits_of(row)
    if Source.COMMITTED in row["source"] and limits is None:
        return _BY_ARGUMENTS
    if row["kind"] == "unreachable":
        sides = [f"the {side} side: {code}" for side in ("before", "after") if (code := row[f"error_{side}"])]
        return f"no answer on {', '.join(sides)}"
    failed = not _succeeded(row, "after") and not _by_quantiles_alone(row, rules)
    if limits is None or _without_baseline(row, rules) or failed:
        return None
    if limits.single:
        missing = [side for side in ("before", "after") if row[f"gas_{side}"] is None]
        return f"the node reported no gas on the {' and the '.join(missing)} side" if missing else None
    short = _too_few(row, limits)
    return "; ".join(short.values()) if len(short) == len(limits.quantiles) else None


def _why_not_kind(row: Mapping[str, Any], rules: Rules) -> str | None:
    """Return why a kind of committed transactions cannot be judged; None if it can be, or has no baseline."""
    if row["not_judged"]:
        return f"{row['stratum']}: {row['not_judged']}"
    limits = rules.limits_of(row)
    if _without_baseline(row, rules) or limits is None or not limits.single or row["kind"] == "changed":
        return None
    if limits.exceeded(row["gas_before"], row["gas_after"]) and not _within_rounding(row):
        bounds = f"{row['change_low']:+,.1f} to {row['change_high']:+,.1f}"
        return (
            f"{row['stratum']}: a rise by {row['change']:,} gas units ({bounds}) may be chance; read more transactions"
        )
    return None


def _too_few(row: Mapping[str, Any], limits: Threshold) -> dict[str, str]:
    """Return the quantiles with limits for which a side has too few observations, with the reason."""
    counts = row["count_before"] or 0, row["count_after"] or 0
    return {
        name: f"{name} requires {least} observations on either side, got {counts[0]:,} and {counts[1]:,}"
        for name, least in QUANTILES.items()
        if name in limits.quantiles and min(counts) < least
    }


def _without_baseline(row: Mapping[str, Any], rules: Rules) -> bool:
    return row["kind"] in _ONE_SIDED or (not _by_quantiles_alone(row, rules) and not _succeeded(row, "before"))


def _no_baseline(row: Mapping[str, Any], rules: Rules) -> str | None:
    """Return why a row has no baseline; None if it has one, or is of a call that disappeared."""
    if not _without_baseline(row, rules) or (row["kind"] == "removed" and not row["stratum"]):
        return None
    kind = f"{row['stratum']}: " if row["stratum"] else ""
    if row["kind"] in _ONE_SIDED:
        return f"{kind}only on the {_ONE_SIDED[row['kind']]} side"
    now = "" if _succeeded(row, "after") else " and fails now"
    return f"{kind}failed before{now}, so it has no baseline"


def _by_quantiles_alone(row: Mapping[str, Any], rules: Rules) -> bool:
    """Return whether a row is of committed transactions without own limits: its last one says nothing of the call."""
    return Source.COMMITTED in row["source"] and row["label"] not in rules.own and not row["stratum"]


def _not_judged(row: Mapping[str, Any], reason: str) -> NotJudged:
    return NotJudged(row["label"], row["source"], row["node"], reason)


def _judged(
    row: Mapping[str, Any], rules: Rules, steps: Mapping[tuple[str, ...], Any] | None, *, one_run: bool
) -> Regression | None:
    """Return the regression of a call of both sides, if there is one, and whether its causes are allowed."""
    if not _succeeded(row, "after") and not _by_quantiles_alone(row, rules):
        why = row["error_after"] or row["vm_status_after"] or "no reason reported"
        return _regression(row, f"succeeded before and now fails: {why}")
    complaints = _rises(row, rules.limits_of(row))
    if not complaints:
        return None
    reason, limit = "; ".join(text for _, text, _ in complaints), complaints[0][2]
    if not rules.allowed.causes:
        return _regression(row, reason, limit)
    allowed, text = _causes(row, rules.allowed, steps, one_run=one_run, last=complaints[-1][0] is None)
    return _regression(row, f"{reason}; {text}", limit) if not allowed else _regression(row, reason, limit, text)


def _regression(
    row: Mapping[str, Any], reason: str, limit: str | None = None, allowed: str | None = None
) -> Regression:
    names = ("label", "source", "node", "gas_before", "gas_after")
    reason = f"{row['stratum']}: {reason}" if row["stratum"] else reason
    return Regression(**{name: row[name] for name in names}, reason=reason, limit=limit, allowed=allowed)


def _disappeared(row: Mapping[str, Any], gone: Mapping[str, set[str]]) -> Regression:
    """Return the regression of a call of the before side only."""
    label = next((name for name, labels in gone.items() if row["label"] in labels), None)
    why = None if label is None else f"a call that may disappear: {label!r}"
    return _regression(row, "the call disappeared: it is on the before side only", allowed=why)


def _rises(row: Mapping[str, Any], limits: Threshold | None) -> list[tuple[str | None, str, str]]:
    """Return the rises over a limit: the quantile, or None for the last observation; the sentence; the limit."""
    if limits is None or _within_rounding(row):
        return []
    found: list[tuple[str | None, str, str]] = []
    before, after = row["gas_before"], row["gas_after"]
    if limits.single and before is not None and after is not None and (limit := limits.exceeded(before, after)):
        found.append((None, _rise_text(before, after, limit), limit))
    short = _too_few(row, limits)
    for name, quantile in limits.quantiles.items():
        before, after = row[f"{name}_before"], row[f"{name}_after"]
        if name not in short and (limit := quantile.exceeded(before, after)):
            counts = f"{row['count_before']:,} and {row['count_after']:,} observations"
            found.append((name, f"{name} of {counts} {_rise_text(before, after, limit)}", limit))
    return found


def _within_rounding(row: Mapping[str, Any]) -> bool:
    """Return whether a kind of committed transactions differs by one gas unit, which the rounding of parts can make."""
    low = row["change_low"]
    return low is not None and low <= 0 and abs(row["change"]) <= 1


def _rise_text(before: int, after: int, limit: str) -> str:
    relative = f", {relative_change(before, after)}" if before else ""
    return f"from {before:,} to {plural(after, 'gas unit')} ({after - before:+,}{relative}) is over {limit}"


def _causes(
    row: Mapping[str, Any],
    allowed: Allowed,
    steps: Mapping[tuple[str, ...], Sequence[Mapping[str, Any]]] | None,
    *,
    one_run: bool,
    last: bool,
) -> tuple[bool, str]:
    """Return whether allowed causes alone explain a rise, and the causes or what is not allowed, in words.

    The steps must lead from the gas of the before side to that of the after side. A rise of a quantile (`last` is
    False) also depends on the readings before, so that all steps of the one run up to the after side count.
    """
    if steps is None:
        return False, "its causes are not known: the sides are not runs of one ledger"
    if not last and not one_run:
        return False, "its causes are not known: a quantile of two runs"
    if row["stratum"] and last:
        return _causes_of_kind(row, allowed, steps)
    first, end = row["version_before"], row["version_after"]
    of_call = steps.get((row["node"], row["fingerprint"], row["source"]), ())
    between = [step for step in of_call if (not last or first < step["version_after"]) and step["version_after"] <= end]
    gas = between[0]["gas_before"] if between and not last else row["gas_before"]
    found: set[str] = set()
    for step in between:
        kinds = (step["cause_parts"] if step["cause"] == Cause.MIXED else None) or [step["cause"]]
        if not set(kinds) <= set(allowed.causes):
            return False, f"the cause {' and '.join(kinds)} {_step_place(step)} is not allowed"
        if step["gas_before"] != gas:
            break
        gas = step["gas_after"]
        found.update(kinds)
    if not between or gas != row["gas_after"]:
        return False, "the steps of the run do not explain it"
    where = _step_place(between[0]) if len(between) == 1 else f"in {len(between):,} steps up to version {end}"
    return True, f"by {' and '.join(sorted(found))} alone, {where}"


def _causes_of_kind(
    row: Mapping[str, Any], allowed: Allowed, steps: Mapping[tuple[str, ...], Sequence[Mapping[str, Any]]]
) -> tuple[bool, str]:
    """Return whether allowed causes alone explain the rise of a kind of committed transactions.

    The changes of its parts must add up to its own, within their bounds.
    """
    first, end = row["version_before"], row["version_after"]
    whole = row["stratum"] == ALL_TRANSACTIONS
    between = [
        step
        for step in steps.get((row["node"], row["fingerprint"], row["source"]), ())
        if first < step["version_after"] <= end
        and (whole or step["stratum"] == row["stratum"])
        and step["part"] != "refund"
    ]
    for step in between:
        kinds = step["cause_parts"] or [step["cause"]]
        if not set(kinds) <= set(allowed.causes):
            return False, f"the cause {' and '.join(kinds)} {_step_place(step)} is not allowed"
    around = sum(step["change_high"] - step["change_low"] for step in between) / 2 + 1
    change = sum(step["change"] for step in between)
    # The mean of all ways moves by a part of what each of them does, so at most by all of it.
    if not between or (change - row["change"] < -around if whole else abs(change - row["change"]) > around):
        return False, "the steps of the run do not explain it"
    found = {kind for step in between for kind in step["cause_parts"] or [step["cause"]]}
    return True, f"by {' and '.join(sorted(found))} alone, {_step_place(between[-1])}"


def _step_place(step: Mapping[str, Any]) -> str:
    if step["exact"]:
        return f"at version {step['version_after']}"
    return f"between versions {step['version_before']} and {step['version_after']}"


def _succeeded(row: Mapping[str, Any], side: str) -> bool:
    return row[f"error_{side}"] is None and row[f"success_{side}"] is not False


def _rule_notes(
    rules: Rules, labels: Collection[str], gone: Mapping[str, set[str]], removed: set[str], day: date
) -> list[str]:
    """Return which waivers, limits and allowed calls have no effect."""
    notes = [
        f"the waiver of {waiver.name!r} expired on {waiver.expires} and no longer applies: {waiver.reason}"
        for waiver in rules.waivers
        if not waiver.holds(day)
    ]
    named = {*rules.own, *(waiver.call for waiver in rules.waivers if waiver.call)}
    if strange := sorted(name for name in named if not matching(name, labels)):
        notes.append(f"thresholds or waivers of calls that this comparison does not have: {_named(strange)}")
    if present := [name for name, meant in gone.items() if not meant & removed]:
        notes.append(f"calls that may disappear, but no call that disappeared has this label: {_named(present)}")
    return notes


def _row_notes(rows: Sequence[Mapping[str, Any]], rules: Rules) -> list[str]:
    """Return what of some rows is not judged although nothing is missing, with the labels."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        for why in _unjudged_texts(row, rules):
            reasons.setdefault(why, []).append(row["label"])
    return [f"not judged: {_named(labels)}: {why}" for why, labels in reasons.items()]


def _unjudged_texts(row: Mapping[str, Any], rules: Rules) -> list[str]:
    """Return what of a row is not judged although nothing is missing: no baseline, too few observations, rounding."""
    if _without_baseline(row, rules):
        return [text] if (text := _no_baseline(row, rules)) else []
    limits = rules.limits_of(row)
    if limits is None:
        return []
    kind = f"{row['stratum']}: " if row["stratum"] else ""
    rounded = _within_rounding(row) and row["kind"] == "changed"
    texts = [f"{kind}a change by 1 gas unit, which rounding can make, is not a regression"] if rounded else []
    return [*texts, *_too_few(row, limits).values()]


def _named(labels: Sequence[str]) -> str:
    return ", ".join(repr(label) for label in dict.fromkeys(labels))
