"""Judging: which calls of a comparison regressed, which cannot be judged, and what is allowed or waived."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from toolkit._present.text import plural, relative_change
from toolkit.errors import InputError
from toolkit.frames._columns import plain_rows
from toolkit.gas._observations import Source
from toolkit.gas._rules import NotJudged, Regression, Rules, Threshold, Verdict, Waiver, matching
from toolkit.gas._steps import ALL_TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import pandas as pd

    Steps = Mapping[tuple[str, ...], Sequence[Mapping[str, Any]]]


class Why(StrEnum):
    """Why a call regressed, is allowed to, or is not judged; and how that is said."""

    # regressions
    FAILS = "succeeded before and now fails: {code}"
    DISAPPEARED = "missing from the after side"
    RISE = "from {before:,} to {after} ({change:+,}{relative}) is over {limit}"
    # allowed, or not
    MAY_DISAPPEAR = "allowed to disappear: {label!r}"
    BY_CAUSES = "by {causes} alone, {place}"
    CAUSE_NOT_ALLOWED = "the cause {causes} {place} is not allowed"
    NO_LEDGER = "its causes are not known: the sides are not runs of one ledger"
    NOT_BY_STEPS = "the steps of the run do not explain it"
    # not judged
    NOWHERE = "the study names it, but neither side has an observation of it"
    AT_THE_HEAD = "simulations are made at the head only, but an earlier version was requested"
    BY_ARGUMENTS = (
        "committed transactions differ in their arguments; compare two runs that judged them, "
        "or give the call its own thresholds to compare its last transaction on each side"
    )
    NO_ANSWER = "no answer on {sides}"
    NO_GAS = "the node reported no gas on the {sides} side"
    CHANCE = "a rise by {change:,} gas units ({low:+,.1f} to {high:+,.1f}) may be chance; read more transactions"
    ONE_SIDED = "only on the {side} side"
    FAILED_BEFORE = "failed before, so it has no baseline"
    FAILS_AS_BEFORE = "failed before and fails now, so it has no baseline"
    ROUNDED = "a change by 1 gas unit, which rounding can make, is not a regression"
    # rules without effect
    WAIVER_EXPIRED = "the waiver of {name!r} expired on {day} and no longer applies: {reason}"
    RULES_OF_NOTHING = "thresholds or waivers match no call of this comparison: {labels}"
    STILL_THERE = "allowed to disappear, but did not: {labels}"
    ROWS = "not judged: {labels}: {why}"


def judge(
    calls: pd.DataFrame,
    rules: Rules,
    *,
    left_out: Sequence[tuple[str, str]] = (),
    unlike: Mapping[str, str] | None = None,
    too_old: Mapping[str, str] | None = None,
    steps: pd.DataFrame | None = None,
    today: date | None = None,
) -> Verdict:
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
    today : date, optional
        Today's date in UTC by default.

    Returns
    -------
    Verdict

    Raises
    ------
    InputError
        If no call is on both sides, so that there is nothing to judge.
    """
    day = today or datetime.now(UTC).date()
    rows = [_Row(row, rules) for row in plain_rows(calls)]
    if not left_out and all(row.missing_side and not row.kind for row in rows):
        raise InputError("no call is on both sides, so the gate has nothing to judge; compare runs of the same calls")
    unlike, too_old = unlike or {}, too_old or {}
    for row in rows:
        row.why = unlike.get(row["node"]) or too_old.get(row["label"]) or row.why_not()
    judged = [row for row in rows if not row.why and not row.without_baseline]
    # A call without a baseline is only a note, unless the study asks for its verdict or nothing else was judged.
    for row in rows:
        if not row.why and (not judged or row.must_be_judged()):
            row.why = row.no_baseline()
    there = {row["label"] for row in rows} | {label for label, _ in left_out}
    labels = there | rules.named.keys()
    holding = [(waiver, matching(waiver.call or "", labels)) for waiver in rules.waivers if waiver.holds(day)]
    silent = [
        *(NotJudged(row["label"], row["source"], row["node"], row.why) for row in rows if row.why),
        *(NotJudged(label, Source.SIMULATE.value, node, Why.AT_THE_HEAD.format()) for label, node in left_out),
        *(
            NotJudged(label, source.value, "", Why.NOWHERE.format())
            for label, source in rules.named.items()
            if label not in there
        ),
    ]
    silent = [replace(one, waiver=_waiver_of(one, holding, by_source=True)) for one in silent]
    gone = {name: matching(name, labels) for name in rules.allowed.removed}
    known = None if steps is None else _by_call(steps)
    found = [one for row in judged if (one := row.regression(known)) is not None]
    noted = [row for row in rows if not row.why]
    found += [row.disappeared(gone) for row in noted if row["kind"] == "removed" and not row.kind]
    found = [one if one.allowed else replace(one, waiver=_waiver_of(one, holding)) for one in found]
    removed = {row["label"] for row in rows if row["kind"] == "removed"}
    return Verdict(
        rules=rules,
        judged=len(judged),
        regressions=tuple(one for one in found if one.waiver is None and one.allowed is None),
        not_judged=tuple(one for one in silent if one.waiver is None),
        waived=(*(one for one in found if one.waiver), *(one for one in silent if one.waiver)),
        notes=(*_rule_notes(rules, labels, gone, removed, day), *_row_notes(noted)),
        allowed=tuple(one for one in found if one.allowed is not None),
    )


class _Row:
    """A row of a comparison as the rules see it: one call, or one kind of its committed transactions."""

    why: str | None = None
    """Why it is not judged; None if it is, or if that is only a note."""

    def __init__(self, row: Mapping[str, Any], rules: Rules) -> None:
        self._row, self._rules = row, rules
        self.kind = f"{row['stratum']}: " if row["stratum"] else ""
        self.missing_side = {"added": "before", "removed": "after"}.get(row["kind"])

    def __getitem__(self, name: str) -> Any:
        return self._row[name]

    @cached_property
    def limits(self) -> Threshold | None:
        """The limits that apply; None if only a failure is a regression."""
        return self._rules.limits_of(self._row)

    @property
    def without_baseline(self) -> bool:
        return bool(self.missing_side) or not self.succeeded("before")

    @property
    def is_rounding(self) -> bool:
        """Whether a kind of committed transactions differs by one gas unit, which the rounding of parts can make."""
        low = self["change_low"]
        return low is not None and low <= 0 and abs(self["change"]) <= 1

    def succeeded(self, side: str) -> bool:
        return self[f"error_{side}"] is None and self[f"success_{side}"] is not False

    def must_be_judged(self) -> bool:
        """Return whether the study names it, and the before side does not say by name that it fails as it does now."""
        if self.kind or self["label"] not in self._rules.named:
            return False
        alike = all(self[f"{name}_before"] == self[f"{name}_after"] for name in ("error", "success", "vm_status"))
        return not (self._rules.failures_named and self["kind"] == "unchanged" and alike)

    def why_not(self) -> str | None:
        """Return why it cannot be judged; None if it can be, has no baseline, or has disappeared."""
        if self.kind or self.missing_side:
            return self._why_not_kind() if self.kind else None
        if Source.COMMITTED in self["source"] and self.limits is None:
            return Why.BY_ARGUMENTS.format()
        if self["kind"] == "unreachable":
            sides = [f"the {side} side: {code}" for side in ("before", "after") if (code := self[f"error_{side}"])]
            return Why.NO_ANSWER.format(sides=", ".join(sides))
        if self.limits is None or self.without_baseline or not self.succeeded("after"):
            return None
        silent = [side for side in ("before", "after") if self[f"gas_{side}"] is None]
        return Why.NO_GAS.format(sides=" and the ".join(silent)) if silent else None

    def _why_not_kind(self) -> str | None:
        if self["not_judged"]:
            return f"{self.kind}{self['not_judged']}"
        limits = self.limits
        if self.without_baseline or limits is None or self["kind"] == "changed":
            return None
        if not limits.exceeded(self["gas_before"], self["gas_after"]) or self.is_rounding:
            return None
        why = Why.CHANCE.format(change=self["change"], low=self["change_low"], high=self["change_high"])
        return f"{self.kind}{why}"

    def no_baseline(self) -> str | None:
        """Return why it has no baseline; None if it has one, or is a call that disappeared."""
        if not self.without_baseline or (self["kind"] == "removed" and not self.kind):
            return None
        if self.missing_side:
            why = Why.ONE_SIDED.format(side="after" if self.missing_side == "before" else "before")
        else:
            why = (Why.FAILED_BEFORE if self.succeeded("after") else Why.FAILS_AS_BEFORE).format()
        return f"{self.kind}{why}"

    def notes(self) -> Iterator[str]:
        """Yield what of it is not judged although nothing is missing: no baseline, too few observations, rounding."""
        if self.without_baseline:
            yield from filter(None, [self.no_baseline()])
            return
        if self.limits is not None and self.is_rounding and self["kind"] == "changed":
            yield f"{self.kind}{Why.ROUNDED.format()}"

    # regressions ------------------------------------------------------------------------------------------------------

    def regression(self, steps: Steps | None) -> Regression | None:
        """Return its regression, if there is one, and whether its causes are allowed."""
        if not self.succeeded("after"):
            code = self["error_after"] or self["vm_status_after"] or "no reason reported"
            return self._regressed(Why.FAILS.format(code=code))
        before, after, limits = self["gas_before"], self["gas_after"], self.limits
        if limits is None or self.is_rounding or before is None or after is None:
            return None
        limit = limits.exceeded(before, after)
        if limit is None:
            return None
        reason = _rise_text(before, after, limit)
        if not self._rules.allowed.causes:
            return self._regressed(reason, limit)
        allowed, text = self._causes(steps)
        return self._regressed(reason, limit, text) if allowed else self._regressed(f"{reason}; {text}", limit)

    def disappeared(self, gone: Mapping[str, set[str]]) -> Regression:
        """Return the regression of a call of the before side only."""
        label = next((name for name, labels in gone.items() if self["label"] in labels), None)
        allowed = None if label is None else Why.MAY_DISAPPEAR.format(label=label)
        return self._regressed(Why.DISAPPEARED.format(), allowed=allowed)

    def _regressed(self, reason: str, limit: str | None = None, allowed: str | None = None) -> Regression:
        known = {name: self[name] for name in ("label", "source", "node", "gas_before", "gas_after")}
        return Regression(**known, reason=f"{self.kind}{reason}", limit=limit, allowed=allowed)

    def _causes(self, steps: Steps | None) -> tuple[bool, str]:
        """Return whether allowed causes alone explain a rise, and the causes or what is not allowed, in words."""
        if steps is None:
            return False, Why.NO_LEDGER.format()
        first, end = self["version_before"], self["version_after"]
        mine = steps.get((self["node"], self["fingerprint"], self["source"]), ())
        between = [step for step in mine if first < step["version_after"] <= end]
        if self.kind:
            whole = self["stratum"] == ALL_TRANSACTIONS
            between = [s for s in between if s["part"] != "refund" and (whole or s["stratum"] == self["stratum"])]
        found: set[str] = set()
        for step in between:
            causes = step["cause_parts"] or [step["cause"]]
            if not set(causes) <= set(self._rules.allowed.causes):
                return False, Why.CAUSE_NOT_ALLOWED.format(causes=" and ".join(causes), place=_place(step))
            found.update(causes)
        if not between or not (self._add_up(between) if self.kind else self._lead(between)):
            return False, Why.NOT_BY_STEPS.format()
        places = {_place(step) for step in between}
        place = places.pop() if len(places) == 1 else f"in {len(between):,} steps up to version {end}"
        return True, Why.BY_CAUSES.format(causes=" and ".join(sorted(found)), place=place)

    def _lead(self, steps: Sequence[Mapping[str, Any]]) -> bool:
        """Return whether steps lead from the gas of the before side to that of the after side."""
        gas = [self["gas_before"], *(step["gas_after"] for step in steps)]
        return gas == [*(step["gas_before"] for step in steps), self["gas_after"]]

    def _add_up(self, steps: Sequence[Mapping[str, Any]]) -> bool:
        """Return whether the changes of the parts of a kind add up to its own, within their bounds."""
        around: float = sum(step["change_high"] - step["change_low"] for step in steps) / 2 + 1
        away: float = sum(step["change"] for step in steps) - self["change"]
        # The mean of all ways moves by a part of what each of them does, so at most by all of it.
        return away >= -around if self["stratum"] == ALL_TRANSACTIONS else abs(away) <= around


def _rise_text(before: int, after: int, limit: str) -> str:
    relative = f", {relative_change(before, after)}" if before else ""
    units = plural(after, "gas unit")
    return Why.RISE.format(before=before, after=units, change=after - before, relative=relative, limit=limit)


def _place(step: Mapping[str, Any]) -> str:
    if step["exact"]:
        return f"at version {step['version_after']}"
    return f"between versions {step['version_before']} and {step['version_after']}"


def _by_call(steps: pd.DataFrame) -> dict[tuple[str, ...], list[dict[str, Any]]]:
    """Return the steps of each call by version; the key is node, fingerprint and source."""
    found: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in plain_rows(steps.sort_values("version_after", kind="stable")):
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


def _rule_notes(
    rules: Rules, labels: Collection[str], gone: Mapping[str, set[str]], removed: set[str], day: date
) -> Iterator[str]:
    """Yield which waivers, limits and allowed calls have no effect."""
    for waiver in rules.waivers:
        if not waiver.holds(day):
            yield Why.WAIVER_EXPIRED.format(name=waiver.name, day=waiver.expires, reason=waiver.reason)
    named = {*rules.own, *(waiver.call for waiver in rules.waivers if waiver.call)}
    if strange := sorted(name for name in named if not matching(name, labels)):
        yield Why.RULES_OF_NOTHING.format(labels=_named(strange))
    if present := [name for name, meant in gone.items() if not meant & removed]:
        yield Why.STILL_THERE.format(labels=_named(present))


def _row_notes(rows: Sequence[_Row]) -> list[str]:
    """Return what of some rows is not judged although nothing is missing, with the labels."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        for why in row.notes():
            reasons.setdefault(why, []).append(row["label"])
    return [Why.ROWS.format(labels=_named(labels), why=why) for why, labels in reasons.items()]


def _named(labels: Sequence[str]) -> str:
    return ", ".join(repr(label) for label in dict.fromkeys(labels))
