"""The gate of a comparison: its rules, which calls regressed, which cannot be judged, and which are waived."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from toolkit._present.text import plural, relative_change, signed
from toolkit.frames._columns import plain_rows
from toolkit.gas._observations import Source
from toolkit.gas._rules import NotJudged, Regression, Rules, Threshold, Waiver, matching, read_waivers
from toolkit.gas._sentences import MAX_NOTE, Renderer, label_text, proved_text, unsure_text
from toolkit.gas.committed._fees import Reason, Verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    import pandas as pd

    from toolkit.gas._study import Study
    from toolkit.gas.committed._fees import FeeChange

_AT_THE_HEAD = "simulations run at the head only, but an earlier version was requested"
_NOWHERE = "the study names this call, but neither side observed it"


@dataclass(frozen=True, slots=True, repr=False)
class Gate:
    """The verdict on a comparison; ``print`` shows the same text as ``ledger-toolkit compare``.

    Attributes
    ----------
    rules : Rules
        The rules that were applied.
    judged : int
        Number of calls that were judged. The gate does not pass if it is 0.
    regressions : tuple of Regression
        Calls that regressed, or disappeared, and are not waived.
    not_judged : tuple of NotJudged
        Calls that cannot be judged and are not waived. Any such call keeps the gate from passing.
    waived : tuple of Regression or NotJudged
        Calls excused by a waiver.
    notes : tuple of str
        The age of the run, calls that have no baseline and are not named in the study, limits that do not apply, and
        rules without effect.

    Examples
    --------
    >>> import toolkit
    >>> run = toolkit.Study(calls={"names": "0xcafe::registry::size"}, versions=[3501, 3502]).run(progress=False)
    >>> gate = toolkit.compare(run.at(3501), run.at(3502)).gate("2%")
    >>> gate.passed, gate.verdict, [one.label for one in gate.regressions]
    (False, 'failed', ['names'])
    """

    rules: Rules
    judged: int
    regressions: tuple[Regression, ...]
    not_judged: tuple[NotJudged, ...]
    waived: tuple[Regression | NotJudged, ...]
    notes: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether at least one call was judged, and every regression and every call that cannot be judged is waived."""
        return self.judged > 0 and not self.regressions and not self.not_judged

    @property
    def verdict(self) -> str:
        """``"passed"``, ``"failed"`` (a call regressed) or ``"could not judge"`` (no judged call regressed)."""
        if self.regressions:
            return "failed"
        return "passed" if self.passed else "could not judge"

    def __repr__(self) -> str:
        return "\n".join(gate_lines(self, label_text))


def gate_lines(gate: Gate, name: Renderer) -> list[str]:
    """Return whether a gate passed, its rules, and the calls that regressed, could not be judged, or are waived.

    Parameters
    ----------
    gate : Gate
    name : Renderer

    Returns
    -------
    list of str
    """
    verdict = {
        "passed": "passed",
        "failed": f"FAILED: {plural(len(gate.regressions), 'regression')}",
        "could not judge": f"COULD NOT JUDGE {plural(len(gate.not_judged) or len(gate.waived), 'call')}",
    }[gate.verdict]
    lines = [f"gate {verdict}; {plural(gate.judged, 'call')} judged"]
    lines.append(f"rules: {name(str(gate.rules), MAX_NOTE)}")
    lines += [f"regression: {_reason_text(one, name)}" for one in gate.regressions]
    lines += [f"could not judge: {_reason_text(one, name)}" for one in gate.not_judged]
    if not gate.judged and not gate.not_judged and not gate.regressions:
        why = "every call is waived" if gate.waived else "no call is on both sides"
        lines.append(f"{why}, but a gate needs at least one call to judge")
    if gate.not_judged and gate.judged:
        lines.append(
            "to judge the others alone, compare one source (--source view@version), or waive these calls or their "
            'source in the study ([[waiver]] with `call`, or with `source = "committed"`)'
        )
    for one in gate.waived:
        until = f"waived until {one.waiver.expires}: {name(one.waiver.reason, MAX_NOTE)}" if one.waiver else ""
        lines.append(f"waived: {_reason_text(one, name)} ({until})")
    return [*lines, *(f"note: {name(note, MAX_NOTE)}" for note in gate.notes)]


def _reason_text(one: Regression | NotJudged, name: Renderer) -> str:
    return f"{name(one.label)}: {name(one.reason, MAX_NOTE)}"


def rules_of(threshold: Any = None, study: Study | None = None, waivers: Sequence[Any] | None = None) -> Rules:
    """Return the rules of a study, in which `threshold` and `waivers` replace the study's own if they are given.

    Raises
    ------
    InputError
        If `threshold` is not valid.
    StudyError
        If a waiver is not valid.
    """
    calls = study.calls if study else ()
    general = study.thresholds if threshold is None and study else threshold
    return Rules(
        None if general is None else Threshold.of(general),
        {call.name: call.thresholds for call in calls if call.thresholds},
        (study.waivers if study else ()) if waivers is None else read_waivers(waivers),
        {call.name: Source(call.source) for call in calls},
    )


def judge(
    calls: pd.DataFrame,
    rules: Rules,
    *,
    fees: Mapping[tuple[str, str], FeeChange],
    left_out: Sequence[tuple[str, str]],
    unlike: Mapping[str, str],
    too_old: Mapping[str, str],
    today: date | None,
) -> Gate:
    """Judge the calls of a comparison; see `Comparison.gate`.

    Parameters
    ----------
    calls : DataFrame
        The calls of the comparison.
    rules : Rules
    fees : mapping of (str, str) to FeeChange
        What committed transactions paid, by fingerprint and node.
    left_out : sequence of (str, str)
        Label and node of each simulation that is excluded because it was made after a requested version.
    unlike : mapping of str to str
        Why the calls on a node cannot be judged, by node.
    too_old : mapping of str to str
        Why calls cannot be judged because they were read too long ago, by label.
    today : date or None
        None for today's date in UTC.
    """
    day = today or datetime.now(UTC).date()
    rows = [_Row(row, rules, fees.get((row["fingerprint"], row["node"]))) for row in plain_rows(calls)]
    for row in rows:
        row.why = unlike.get(row["node"]) or too_old.get(row["label"]) or row.why_not()
    judged = [row for row in rows if not row.why and not row.without_baseline]
    # A call without a baseline is only a note, unless the study asks for its verdict or nothing else was judged.
    for row in rows:
        if not row.why and (not judged or row.must_be_judged()):
            row.why = row.no_baseline()
    there = {row["label"] for row in rows} | {label for label, _ in left_out}
    nowhere = [(label, source.value) for label, source in rules.named.items() if label not in there]
    silent = [
        *(NotJudged(row["label"], row["source"], row["node"], row.why) for row in rows if row.why),
        *(NotJudged(label, Source.SIMULATE.value, node, _AT_THE_HEAD) for label, node in left_out),
        *(NotJudged(label, source, "", _NOWHERE) for label, source in nowhere),
    ]
    rest = [row for row in rows if not row.why]
    reasons: dict[str, list[str]] = {}
    for row in rest:
        if why := row.no_baseline():
            reasons.setdefault(why, []).append(row["label"])
    found = [row.regression() for row in judged]
    found += [row.regressed("missing from the after side") for row in rest if row["kind"] == "removed"]
    notes = [f"not judged: {_named(names)}: {why}" for why, names in reasons.items()]
    regressions = [one for one in found if one is not None]
    return gate_of(rules, regressions, silent, judged=len(judged), labels=there, notes=notes, day=day)


def gate_of(
    rules: Rules,
    regressions: Iterable[Regression],
    not_judged: Iterable[NotJudged],
    *,
    judged: int,
    labels: Collection[str],
    notes: Sequence[str],
    day: date,
) -> Gate:
    """Return the verdict on calls that were judged, after applying the waivers that hold on a day.

    Parameters
    ----------
    rules : Rules
    regressions : iterable of Regression
    not_judged : iterable of NotJudged
    judged : int
        Number of calls that were judged.
    labels : collection of str
        Calls of the comparison; those that the rules name are added.
    notes : sequence of str
        They follow the notes on rules without effect.
    day : date
    """
    labels = {*labels, *rules.named}
    holding = [(waiver, matching(waiver.call or "", labels)) for waiver in rules.waivers if waiver.holds(day)]
    regressed = [replace(one, waiver=_waiver_of(one, holding)) for one in regressions]
    silent = [replace(one, waiver=_waiver_of(one, holding, by_source=True)) for one in not_judged]
    return Gate(
        rules=rules,
        judged=judged,
        regressions=tuple(one for one in regressed if one.waiver is None),
        not_judged=tuple(one for one in silent if one.waiver is None),
        waived=(*(one for one in regressed if one.waiver), *(one for one in silent if one.waiver)),
        notes=(*_rule_notes(rules, labels, day), *notes),
    )


class _Row:
    """A row of a comparison and the rules that apply to it."""

    why: str | None = None
    """Why the row is not judged; None if it is judged, or if the reason is only worth a note."""

    def __init__(self, row: Mapping[str, Any], rules: Rules, fees: FeeChange | None) -> None:
        self._row, self._rules, self._fees = row, rules, fees
        self.limits = rules.limits_of(row)
        self.missing_side = {"added": "before", "removed": "after"}.get(row["kind"])
        self._judged = None if fees is None or row["not_judged"] else fees.judged(self.limits)

    def __getitem__(self, name: str) -> Any:
        return self._row[name]

    @property
    def without_baseline(self) -> bool:
        return bool(self.missing_side) or (self._judged is None and not self.succeeded("before"))

    def succeeded(self, side: str) -> bool:
        return self[f"error_{side}"] is None and self[f"success_{side}"] is not False

    def must_be_judged(self) -> bool:
        """Return whether the study names the call, unless the before side lists the same failure of the call."""
        if self["label"] not in self._rules.named:
            return False
        alike = all(self[f"{name}_before"] == self[f"{name}_after"] for name in ("error", "success", "vm_status"))
        return not (self._rules.failures_named and self["kind"] == "unchanged" and alike)

    def why_not(self) -> str | None:
        """Return why the row cannot be judged; None if it can be, has no baseline, or has disappeared."""
        if Source.COMMITTED in self["source"] and not self.missing_side:
            return self._why_not_committed()
        if self.missing_side:
            return None
        if self["kind"] == "unreachable":
            sides = [f"the {side} side: {code}" for side in ("before", "after") if (code := self[f"error_{side}"])]
            return f"no response on {', '.join(sides)}"
        if self.limits is None or self.without_baseline or not self.succeeded("after"):
            return None
        silent = [side for side in ("before", "after") if self[f"gas_{side}"] is None]
        return f"the node reported no gas on the {' and the '.join(silent)} side" if silent else None

    def _why_not_committed(self) -> str | None:
        if self._judged is None or self._fees is None:
            return str(self["not_judged"] or "committed transactions are compared between complete runs")
        return unsure_text(self._judged, self._fees) if self._judged.verdict is Verdict.NOT_JUDGED else None

    def no_baseline(self) -> str | None:
        """Return why the row has no baseline; None if it has one, or is a call that disappeared."""
        if not self.without_baseline or self["kind"] == "removed":
            return None
        if self.missing_side:
            return f"only on the {'after' if self.missing_side == 'before' else 'before'} side"
        return f"failed before{'' if self.succeeded('after') else ' and fails now'}, so it has no baseline"

    def regression(self) -> Regression | None:
        """Return the regression of the row, if there is one."""
        if self._judged is not None and self._fees is not None:
            failed = self._judged.verdict is Verdict.FAILED
            limit = None if self.limits is None or self._judged.reason is Reason.FAILURES else str(self.limits)
            return self.regressed(proved_text(self._judged, self._fees, limit or ""), limit) if failed else None
        if not self.succeeded("after"):
            code = self["error_after"] or self["vm_status_after"] or "no reason reported"
            return self.regressed(f"succeeded before and now fails: {code}")
        before, after, limits = self["gas_before"], self["gas_after"], self.limits
        if limits is None or before is None or after is None:
            return None
        limit = limits.exceeded(before, after)
        if limit is None:
            return None
        change = f"{signed(after - before)}{f', {relative_change(before, after)}' if before else ''}"
        return self.regressed(f"from {before:,} to {plural(after, 'gas unit')} ({change}) is over {limit}", limit)

    def regressed(self, reason: str, limit: str | None = None) -> Regression:
        known = {name: self[name] for name in ("label", "source", "node", "gas_before", "gas_after")}
        return Regression(**known, reason=reason, limit=limit)


def _waiver_of(
    one: Regression | NotJudged, holding: Sequence[tuple[Waiver, set[str]]], *, by_source: bool = False
) -> Waiver | None:
    """Return the waiver that applies to a call: one for its label, else for a matching pattern, else for its source."""
    of_call = [waiver for waiver, labels in holding if waiver.call and one.label in labels]
    exact = [waiver for waiver in of_call if waiver.call == one.label]
    of_source = [waiver for waiver, _ in holding if by_source and waiver.source == one.source]
    return next(iter([*exact, *of_call, *of_source]), None)


def _rule_notes(rules: Rules, labels: Collection[str], day: date) -> Iterator[str]:
    """Yield notes on the waivers and limits that have no effect."""
    for waiver in rules.waivers:
        if not waiver.holds(day):
            yield f"the waiver for {waiver.name!r} expired on {waiver.expires} and no longer applies: {waiver.reason}"
    named = {*rules.own, *(waiver.call for waiver in rules.waivers if waiver.call)}
    if strange := sorted(name for name in named if not matching(name, labels)):
        yield f"thresholds or waivers match no call of this comparison: {_named(strange)}"


def _named(labels: Sequence[str]) -> str:
    return ", ".join(repr(label) for label in dict.fromkeys(labels))
