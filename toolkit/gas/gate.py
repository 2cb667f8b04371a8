"""The gate: which calls of a comparison regressed or could not be judged, and which of them are waived until when."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from toolkit.errors import InputError
from toolkit.frames.columns import plain_columns
from toolkit.gas.observations import Source
from toolkit.gas.thresholds import Threshold, Waiver, read_waivers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from toolkit.gas.study import Study

__all__ = ["Gate", "NotJudged", "Regression", "Rules", "judge"]

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


@dataclass(frozen=True, slots=True)
class Regression:
    """A call that regressed.

    Attributes
    ----------
    label, source, node : str
    reason : str
        What happened, in words; it may quote the node.
    gas_before, gas_after : int or None
        Gas units.
    limit : str or None
        The limit that the rise is over; None if the call regressed in another way.
    waiver : Waiver or None
        What excuses it.
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
    """A call of which a gate cannot say whether it regressed.

    Attributes
    ----------
    label, source, node : str
    reason : str
        Why, in words; it may quote the node.
    waiver : Waiver or None
        What excuses it: a waiver of the call or of its source.
    """

    label: str
    source: str
    node: str
    reason: str
    waiver: Waiver | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Gate:
    """What a comparison was judged to be.

    Attributes
    ----------
    rules : Rules
    judged : int
        Number of calls that were judged.
    regressions : tuple of Regression
        What fails the gate.
    not_judged : tuple of NotJudged
        Calls of which nothing can be said. They fail the gate too: it could not judge.
    waived : tuple of Regression or NotJudged
        What would fail the gate, but for a waiver.
    notes : tuple of str
        Calls without a baseline, and waivers that no longer count.
    """

    rules: Rules
    judged: int
    regressions: tuple[Regression, ...]
    not_judged: tuple[NotJudged, ...]
    waived: tuple[Regression | NotJudged, ...]
    notes: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """True if each call was judged or waived, and none regressed that is not waived."""
        return not self.regressions and not self.not_judged

    @property
    def verdict(self) -> str:
        """``"passed"``, ``"failed"`` (a call regressed) or ``"could not judge"`` (none did, as far as was judged)."""
        if self.regressions:
            return "failed"
        return "could not judge" if self.not_judged else "passed"

    def __repr__(self) -> str:
        from toolkit.gas.comparison_words import gate_words, label_text

        return "\n".join(gate_words(self, label_text))


@dataclass(frozen=True, slots=True)
class Rules:
    """By what a comparison is judged.

    Attributes
    ----------
    threshold : Threshold or None
        Limit of calls without one of their own; None where only failures count.
    own : mapping of label to Threshold
        Limits of single calls, in place of the general one.
    waivers : tuple of Waiver
    """

    threshold: Threshold | None
    own: Mapping[str, Threshold]
    waivers: tuple[Waiver, ...]

    @classmethod
    def of(cls, threshold: Any = None, study: Study | None = None, waivers: Sequence[Any] | None = None) -> Rules:
        """Put together what is given with what a study says; what is given goes first."""
        own = {call.name: call.thresholds for call in study.calls if call.thresholds} if study else {}
        general = study.thresholds if threshold is None and study else threshold
        given = (study.waivers if study else ()) if waivers is None else waivers
        read = given if all(isinstance(one, Waiver) for one in given) else read_waivers(given)
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
        Label and node of simulations that are not in `calls`, because they stand at the head only.
    today : date, optional
        Today's date in UTC by default.

    Returns
    -------
    Gate

    Raises
    ------
    InputError
        If there is nothing to judge.
    """
    day = today or datetime.now(UTC).date()
    columns = plain_columns(calls, _READ)
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    reasons = [_why_not(row, rules) for row in rows]
    silent = [
        *(_not_judged(row, why) for row, why in zip(rows, reasons, strict=True) if why),
        *(NotJudged(label, Source.SIMULATE, node, _AT_THE_HEAD) for label, node in left_out),
    ]
    judged = [row for row, why in zip(rows, reasons, strict=True) if not why and not _without_baseline(row)]
    if not judged and not silent:
        raise InputError("no call is on both sides and can be judged, so the gate has nothing to check")
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
    """Return why nothing can be said of a call, None if it can be judged or has no baseline to be judged by."""
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
    """Return what is wrong with a call, and the limit it is over if that is what is wrong."""
    if not _succeeded(row, "after"):
        why = row["error_after"] or row["vm_status_after"] or "no reason told"
        return f"succeeded before and now fails: {why}", None
    before, after = row["gas_before"], row["gas_after"]
    if threshold is None or before is None or after is None:
        return None, None
    limit = threshold.exceeded(before, after)
    if limit is None:
        return None, None
    percent = f", {row['change_percent']:+.1f} %" if row["change_percent"] is not None else ""
    return f"{before:,} to {after:,} gas units ({row['change']:+,}{percent}) is over {limit}", limit


def _succeeded(row: Mapping[str, Any], side: str) -> bool:
    return row[f"error_{side}"] is None and row[f"success_{side}"] is not False


def _notes(
    rows: Sequence[Mapping[str, Any]], left_out: Sequence[tuple[str, str]], rules: Rules, day: date
) -> list[str]:
    """Say which calls have no baseline, and which waivers and limits are for nothing."""
    notes = [
        f"the waiver of {waiver.name!r} expired on {waiver.expires} and no longer counts: {waiver.reason}"
        for waiver in rules.waivers
        if not waiver.holds(day)
    ]
    labels = {row["label"] for row in rows} | {label for label, _ in left_out}
    strange = sorted({*rules.own, *(waiver.call for waiver in rules.waivers if waiver.call)} - labels)
    if strange:
        notes.append(f"a threshold or waiver is of no call of this comparison: {_named(strange)}")
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if _why_not(row, rules) is None and _without_baseline(row):
            one_side = f"only on the {'after' if row['kind'] == 'added' else 'before'} side"
            why = one_side if row["kind"] in {"added", "removed"} else "failed before, so there is no baseline"
            reasons.setdefault(why, []).append(row["label"])
    return [*notes, *(f"not judged: {_named(told)}: {why}" for why, told in reasons.items())]


def _named(labels: Sequence[str]) -> str:
    return ", ".join(repr(label) for label in dict.fromkeys(labels))
