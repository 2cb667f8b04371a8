"""The gate: which calls of a comparison regressed, by which limit, and which of them are waived until when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from toolkit.errors import InputError
from toolkit.frames.build import plain_columns
from toolkit.gas.observing import COMMITTED
from toolkit.gas.thresholds import Threshold, Waiver, read_waivers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from toolkit.gas.study import Study

__all__ = ["Gate", "Regression", "Rules", "judge"]

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
        The limit that the rise is over; None where the call regressed in another way.
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


@dataclass(frozen=True, slots=True, repr=False)
class Gate:
    """What a comparison was judged to be.

    Attributes
    ----------
    rules : Rules
    judged : int
        Calls that were judged.
    regressions : tuple of Regression
        What fails the gate.
    waived : tuple of Regression
        What would, but for a waiver.
    notes : tuple of str
        What was not judged, and waivers that no longer count.
    """

    rules: Rules
    judged: int
    regressions: tuple[Regression, ...]
    waived: tuple[Regression, ...]
    notes: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """True where nothing regressed that is not waived."""
        return not self.regressions

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


def judge(calls: pd.DataFrame, rules: Rules, *, today: date | None = None) -> Gate:
    """Judge the calls of a comparison; see `Comparison.gate`."""
    day = today or datetime.now(UTC).date()
    columns = plain_columns(calls, _READ)
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    judged = [row for row in rows if _is_judged(row, rules)]
    if not judged:
        raise InputError("no call is on both sides and can be judged, so the gate has nothing to check")
    holding = {waiver.call: waiver for waiver in rules.waivers if waiver.holds(day)}
    found = [one for row in judged if (one := _regression(row, rules, holding)) is not None]
    return Gate(
        rules=rules,
        judged=len(judged),
        regressions=tuple(one for one in found if one.waiver is None),
        waived=tuple(one for one in found if one.waiver is not None),
        notes=tuple(_notes(rows, rules, day)),
    )


def _is_judged(row: Mapping[str, Any], rules: Rules) -> bool:
    if row["kind"] in {"added", "removed"} or (row["kind"] != "unreachable" and not _succeeded(row, "before")):
        return False
    return COMMITTED not in row["source"] or row["label"] in rules.own


def _regression(row: Mapping[str, Any], rules: Rules, waivers: Mapping[str, Waiver]) -> Regression | None:
    reason, limit = _complaint(row, rules.own.get(row["label"], rules.threshold))
    if reason is None:
        return None
    names = ("label", "source", "node", "gas_before", "gas_after")
    return Regression(
        **{name: row[name] for name in names}, reason=reason, limit=limit, waiver=waivers.get(row["label"])
    )


def _complaint(row: Mapping[str, Any], threshold: Threshold | None) -> tuple[str | None, str | None]:
    """Return what is wrong with a call, and the limit it is over where that is what is wrong."""
    if row["kind"] == "unreachable":
        sides = [f"the {side} side: {code}" for side in ("before", "after") if (code := row[f"error_{side}"])]
        return f"no answer on {', '.join(sides)}; nothing can be said", None
    if not _succeeded(row, "after"):
        why = row["error_after"] or row["vm_status_after"] or "no reason told"
        return f"succeeded before and now fails: {why}", None
    before, after = row["gas_before"], row["gas_after"]
    if threshold is None:
        return None, None
    if before is None or after is None:
        return f"no gas was told on the {'before' if before is None else 'after'} side; nothing can be said", None
    limit = threshold.exceeded(before, after)
    if limit is None:
        return None, None
    percent = f", {row['change_percent']:+.1f} %" if row["change_percent"] is not None else ""
    return f"{before:,} to {after:,} gas units ({row['change']:+,}{percent}) is over {limit}", limit


def _succeeded(row: Mapping[str, Any], side: str) -> bool:
    return row[f"error_{side}"] is None and row[f"success_{side}"] is not False


def _notes(rows: Sequence[Mapping[str, Any]], rules: Rules, day: date) -> list[str]:
    """Say what was not judged and why, and which waivers and limits are for nothing."""
    notes = [
        f"the waiver of {waiver.call!r} expired on {waiver.expires} and no longer counts: {waiver.reason}"
        for waiver in rules.waivers
        if not waiver.holds(day)
    ]
    labels = {row["label"] for row in rows}
    strange = sorted({*rules.own, *(waiver.call for waiver in rules.waivers)} - labels)
    if strange:
        notes.append(f"a threshold or waiver is of no call of this comparison: {_named(strange)}")
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if not _is_judged(row, rules):
            reasons.setdefault(_why_not(row), []).append(row["label"])
    return [*notes, *(f"not judged: {_named(told)}: {why}" for why, told in reasons.items())]


def _why_not(row: Mapping[str, Any]) -> str:
    if row["kind"] in {"added", "removed"}:
        return f"only on the {'after' if row['kind'] == 'added' else 'before'} side"
    if COMMITTED in row["source"]:
        return "committed transactions differ in their arguments; thresholds of the call's own have them judged"
    return "failed before, so there is no baseline"


def _named(labels: Sequence[str]) -> str:
    return ", ".join(repr(label) for label in dict.fromkeys(labels))
