"""The gate of a comparison: one finding for each call, and the verdict on all of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from toolkit._present.tables import terminal_width, wrapped
from toolkit.gas import _verdict_sentences as sentences
from toolkit.gas._findings import Kind
from toolkit.gas._observations import Source
from toolkit.gas._rules import Rules, Threshold, Waiver, matching, read_waivers
from toolkit.gas._sentences import label_text
from toolkit.gas._verdict_sentences import Why
from toolkit.gas.committed._fees import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from toolkit.gas._study import Study
    from toolkit.gas.committed._fees import FeeChange

_JUDGED = (Verdict.PASSED, Verdict.FAILED)
_REGRESSED = (Verdict.FAILED, Verdict.MISSING)
_WITHOUT_BASELINE = (Verdict.NO_BASELINE, Verdict.FAILS_AS_LISTED)


@dataclass(frozen=True, slots=True)
class Finding:
    """What a gate found of one call.

    Attributes
    ----------
    label, source, node : str
    verdict : Verdict
    why : Why or None
        What happened, or why the call cannot be judged; None if the call passed.
    figures : mapping of str to object
        The figures that `reason` states.
    limit : Threshold or None
        The limit that the rise exceeds; None if the call fails or is missing.
    gas_before, gas_after : float or None
        Gas units; of committed transactions, means.
    fee_before, fee_after : float or None
        What committed transactions pay, in octas.
    fee_change_low, fee_change_high : float or None
        Bounds of the rise of the mean fee, in percent.
    cause, explanation : str or None
        Why the call changed, if a run explains it.
    waiver : Waiver or None
        The waiver that applies to the call or its source, if any.
    """

    label: str
    source: str
    node: str
    verdict: Verdict
    why: Why | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)
    limit: Threshold | None = None
    gas_before: float | None = None
    gas_after: float | None = None
    fee_before: float | None = None
    fee_after: float | None = None
    fee_change_low: float | None = None
    fee_change_high: float | None = None
    cause: str | None = None
    explanation: str | None = None
    waiver: Waiver | None = None

    @classmethod
    def of(cls, row: Mapping[str, Any], verdict: Verdict, why: Why | None = None, **figures: Any) -> Finding:
        """Return the finding on a row of a comparison."""
        known = {name: row[name] for name in cls.__slots__ if name in row}
        return cls(**known, verdict=verdict, why=why, figures=figures)

    @property
    def call(self) -> tuple[str, str, str]:
        """What identifies the call: its label, source and node."""
        return self.label, self.source, self.node

    @property
    def fell(self) -> bool:
        """Whether gas fell, or certainly the mean fee of committed transactions."""
        if self.fee_change_high is not None:
            return self.fee_change_high < 0
        return self.gas_before is not None and self.gas_after is not None and self.gas_after < self.gas_before

    @property
    def reason(self) -> str:
        """What happened, or why the call cannot be judged, in words; may quote the node. Empty if the call passed.

        Unless the call is waived, it ends with what to do.
        """
        return "" if self.why is None else self.why.text(self.figures, advised=self.waiver is None)


@dataclass(frozen=True, slots=True, repr=False)
class Gate:
    """The verdict on a comparison; ``print`` shows the same text as ``ledger-toolkit compare``.

    Attributes
    ----------
    rules : Rules
        The rules that were applied.
    findings : tuple of Finding
        The finding for each call, with the waiver that excuses it.
    notes : tuple of str
        The age of the run, calls that have no baseline and are not named in the study, limits that do not apply, and
        rules without effect.
    day : date
        The day on which the calls were judged, in UTC.
    unjudged_allowed : bool
        Whether the gate passes although calls could not be judged, as with ``--allow-unjudged``.

    Examples
    --------
    >>> import toolkit
    >>> run = toolkit.Study(calls={"names": "0xcafe::registry::size"}, versions=[3501, 3502]).run(progress=False)
    >>> gate = toolkit.compare(run.at(3501), run.at(3502)).gate("2%")
    >>> gate.passed, gate.verdict, [one.label for one in gate.regressions]
    (False, 'failed', ['names'])
    """

    rules: Rules
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    day: date
    unjudged_allowed: bool = False

    def _found(self, *verdicts: Verdict, waived: bool = False) -> tuple[Finding, ...]:
        return tuple(one for one in self.findings if one.verdict in verdicts and (one.waiver is not None) == waived)

    @property
    def judged(self) -> int:
        """Number of calls that were judged. The gate does not pass if it is 0."""
        missing = self._found(Verdict.MISSING)  # a regression; waived, it is a call that nobody looked at
        return sum(one.verdict in _JUDGED for one in self.findings) + len(missing)

    @property
    def regressions(self) -> tuple[Finding, ...]:
        """Calls that regressed, or disappeared, and are not waived."""
        return self._found(*_REGRESSED)

    @property
    def not_judged(self) -> tuple[Finding, ...]:
        """Calls that cannot be judged and are not waived. They keep the gate from passing, unless they are allowed."""
        return self._found(Verdict.NOT_JUDGED)

    @property
    def without_baseline(self) -> tuple[Finding, ...]:
        """Calls that were not judged, but do not keep the gate from passing: new, or failing before."""
        return tuple(one for one in self.findings if one.verdict in _WITHOUT_BASELINE)

    @property
    def waived(self) -> tuple[Finding, ...]:
        """Calls excused by a waiver."""
        return self._found(*_REGRESSED, waived=True) + self._found(Verdict.NOT_JUDGED, waived=True)

    @property
    def passed(self) -> bool:
        """Whether a call was judged, and every regression and every call that cannot be judged is waived or allowed."""
        return self.judged > 0 and not self.regressions and (self.unjudged_allowed or not self.not_judged)

    @property
    def verdict(self) -> str:
        """``"passed"``, ``"failed"`` (a call regressed) or ``"could not judge"`` (no judged call regressed)."""
        if self.regressions:
            return "failed"
        return "passed" if self.passed else "could not judge"

    def __repr__(self) -> str:
        return wrapped("\n".join(sentences.gate_lines(self, label_text)), terminal_width())


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


def found_in(row: Mapping[str, Any], rules: Rules, fees: FeeChange | None = None, gone: str | None = None) -> Finding:
    """Return the finding on a row of a comparison.

    `fees` is what its committed transactions paid, and `gone` why it no longer fits the code, if that is known.
    """
    limits = rules.limits_of(row)
    if row["kind"] == Kind.REMOVED:
        dropped = rules.of_snapshot and row["label"] not in rules.named
        return Finding.of(row, Verdict.MISSING, Why.NOT_IN_STUDY if dropped else Why.REMOVED)
    if row["kind"] == Kind.ADDED:
        return Finding.of(row, Verdict.NO_BASELINE, Why.NOT_IN_SNAPSHOT if rules.of_snapshot else Why.ADDED)
    if gone and row["error_before"] is None and row["success_before"] is not False:
        return Finding.of(row, Verdict.FAILED, Why.GONE, problem=gone)
    if row["not_judged"]:
        return Finding.of(row, Verdict.NOT_JUDGED, Why.NOT_COMPARED, text=row["not_judged"])
    if Source.COMMITTED in row["source"]:
        return _found_in_fees(row, limits, fees)
    return _found_exactly(row, limits, failures_listed=rules.of_snapshot)


def _found_in_fees(row: Mapping[str, Any], limits: Threshold | None, fees: FeeChange | None) -> Finding:
    """Return the finding on committed transactions."""
    if fees is None:
        return Finding.of(row, Verdict.NOT_JUDGED, Why.NO_FEES)
    judged = fees.judged(limits)
    if judged.verdict is Verdict.PASSED:
        return Finding.of(row, Verdict.PASSED)
    limit = limits if judged.over_limit else None
    return Finding.of({**row, "limit": limit}, judged.verdict, Why.FEES, judgement=judged, fees=fees, limit=limits)


def _found_exactly(row: Mapping[str, Any], limits: Threshold | None, *, failures_listed: bool) -> Finding:
    """Return the finding on a view or simulation, which was run on both sides."""
    if row["kind"] == Kind.NOT_COMPARED:
        return Finding.of(
            row, Verdict.NOT_JUDGED, Why.NO_RESPONSE, before=row["error_before"], after=row["error_after"]
        )
    failed, fails = (
        row[f"error_{side}"] is not None or row[f"success_{side}"] is False for side in ("before", "after")
    )
    if failed:
        alike = all(row[f"{name}_before"] == row[f"{name}_after"] for name in ("error", "success", "vm_status"))
        why = Why.FAILED_ON_BOTH if fails else Why.FAILED_BEFORE
        listed = failures_listed and row["kind"] == Kind.UNCHANGED and alike
        verdict, why = (Verdict.FAILS_AS_LISTED, Why.FAILS_AS_LISTED) if listed else (Verdict.NO_BASELINE, why)
        return Finding.of(row, verdict, why)
    if fails:
        code = row["error_after"] or row["vm_status_after"] or "no reason reported"
        return Finding.of(row, Verdict.FAILED, Why.FAILS, code=code)
    before, after = (None if gas is None else int(gas) for gas in (row["gas_before"], row["gas_after"]))
    if before is not None and row["change"] is not None:
        after = before + int(row["change"])  # the difference of integers, which the floats may have lost above 2**53
    if limits is not None and (before is None or after is None):
        return Finding.of(row, Verdict.NOT_JUDGED, Why.NO_GAS, before=before, after=after)
    if limits is None or before is None or after is None or (limit := limits.exceeded(before, after)) is None:
        return Finding.of(row, Verdict.PASSED)
    return Finding.of({**row, "limit": limit}, Verdict.FAILED, Why.RISE, before=before, after=after, limit=limit)


def judge(
    findings: Iterable[Finding],
    rules: Rules,
    *,
    notes: Sequence[str] = (),
    today: date | None = None,
    first_read: Mapping[str, int] = MappingProxyType({}),
) -> Gate:
    """Return the verdict on calls, after applying the waivers that hold on a day.

    Parameters
    ----------
    findings : iterable of Finding
    rules : Rules
        A call that the rules name, but that has no finding, cannot be judged.
    notes : sequence of str
        The first notes of the gate.
    today : date, optional
        Today in UTC by default.
    first_read : mapping of str to int, optional
        First version at which a run read a call, by label, if it is after both sides.
    """
    found = [*findings]
    day = today or datetime.now(UTC).date()
    judged = any(one.verdict in _JUDGED for one in found)
    there = {one.label for one in found}
    without_baseline: dict[str, list[str]] = {}
    for place, one in enumerate(found):
        if one.verdict not in _WITHOUT_BASELINE:
            continue
        # Only a note, unless the study asks for its verdict or nothing else was judged.
        if not judged or (one.verdict is Verdict.NO_BASELINE and one.label in rules.named):
            found[place] = replace(one, verdict=Verdict.NOT_JUDGED)
        elif one.verdict is Verdict.NO_BASELINE:
            without_baseline.setdefault(one.reason, []).append(one.label)
    silent = {label: source.value for label, source in rules.named.items() if label not in there}
    for label, source in silent.items():
        later = {"version": first_read[label]} if label in first_read else {}
        why = Why.READ_LATER if later else Why.NOT_OBSERVED
        found.append(Finding(label, source, "", Verdict.NOT_JUDGED, why, later))
    labels = {*there, *rules.named}
    holding = [(waiver, matching(waiver.call or "", labels)) for waiver in rules.waivers if waiver.holds(day)]
    notes = [*notes, *_rule_notes(rules, labels, day)]
    notes += [f"not judged: {sentences.quoted(names)}: {why}" for why, names in without_baseline.items()]
    if listed := [one.label for one in found if one.verdict is Verdict.FAILS_AS_LISTED]:
        notes.append(f"{sentences.quoted(listed)}: {Why.FAILS_AS_LISTED.text({}, advised=False)}")
    return Gate(rules, tuple(replace(one, waiver=_waiver_of(one, holding)) for one in found), tuple(notes), day)


def _waiver_of(one: Finding, holding: Sequence[tuple[Waiver, set[str]]]) -> Waiver | None:
    """Return the waiver that applies to a call: one for its label, else for a matching pattern, else for its source."""
    of_call = [waiver for waiver, labels in holding if waiver.call and one.label in labels]
    exact = [waiver for waiver in of_call if waiver.call == one.label]
    # A waiver of a source says that its calls need not be judged, not that they may regress.
    silent = one.verdict is Verdict.NOT_JUDGED
    of_source = [waiver for waiver, _ in holding if silent and waiver.source == one.source]
    return next(iter([*exact, *of_call, *of_source]), None)


def _rule_notes(rules: Rules, labels: set[str], day: date) -> Iterator[str]:
    """Yield notes on the waivers and limits that have no effect."""
    for waiver in rules.waivers:
        if not waiver.holds(day):
            yield f"the waiver for {waiver.name!r} expired on {waiver.expires} and no longer applies: {waiver.reason}"
    named = {"thresholds of": rules.own, "waivers for": [waiver.call for waiver in rules.waivers if waiver.call]}
    for what, names in named.items():
        if strange := sorted(name for name in names if not matching(name, labels)):
            yield f"{what} {sentences.quoted(strange)} match no call of this comparison"
