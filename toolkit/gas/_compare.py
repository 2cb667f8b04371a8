"""Compare two sides: the observations of each call, the gas of committed transactions, and the steps in between.

The result, a `Comparison`, can be judged by a gate.
"""

from __future__ import annotations

import math
import re
import warnings
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, overload

from toolkit._present.messages import shorten
from toolkit._present.tables import terminal_width
from toolkit.client._http import NETWORKS
from toolkit.errors import InputError
from toolkit.frames._columns import frame_of_rows, plain_rows
from toolkit.frames._schema import COMPARISON, OBSERVATIONS
from toolkit.gas import _sentences as words
from toolkit.gas import _verdict_sentences as sentences
from toolkit.gas._calls import other_names
from toolkit.gas._findings import Kind
from toolkit.gas._gate import Finding, Gate, found_in, judge, rules_of
from toolkit.gas._observations import READ_AT_VERSIONS, Cause, Part, Source, failed, is_no_answer
from toolkit.gas._paired import DEFAULT_LAST, DEFAULT_VERSIONS, PairedComparison, compare_under
from toolkit.gas._sides import Ran, Side, read_side, side_of_run
from toolkit.gas._steps import OUTCOME_COLUMNS, StepGroup, step_groups
from toolkit.gas._verdict_sentences import Why
from toolkit.gas.committed._fees import FeeChange, Fees, More, Verdict
from toolkit.gas.plan._plan import one_version_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Executor

    import pandas as pd

    from toolkit.client._progress import ProgressHook
    from toolkit.client._versions import Versions
    from toolkit.gas._rules import Rules
    from toolkit.gas._study import Run, Study
    from toolkit.wire import GasSchedule


_MEANS = ("gas_used", *(part.column for part in Part))
# Columns of an observation that a comparison has for each side, with their names there.
_SIDED = {name: name for name in ("success", "vm_status", *(part.column for part in Part))}
_SIDED |= {"ledger_version": "version", "gas_used": "gas", "error_code": "error"}

_GAS = ("change", *(f"{_SIDED[part]}_{side}" for part in _MEANS for side in ("before", "after")))

# Columns of what committed transactions paid, and which of them the columns of a comparison are about.
_FEES = ("fee_price", "fee_before", "fee_after", "fee_change_low", "fee_change_high")
ALL_THAT_SUCCEEDED = "all that succeeded"

# Age from which on a run that reads up to the head is old: a nightly job that fails is seen the next day.
MAX_AGE = timedelta(days=1)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """The calls on two sides and how they differ.

    Attributes
    ----------
    calls : DataFrame
        One row per call and source, sorted by label: ``kind``, gas on each side in gas units, the change in gas units
        and in percent of the baseline, success, error codes, and the split of gas if it is known. Gas is a float,
        because the row of a committed call has means of the transactions that succeeded (``count_before``,
        ``count_after``): gas, and the fee in octas at one reference price with bounds on its rise. It also has the
        share of transactions that fail; if it is not compared, it has no gas and no fee, and ``not_judged`` says why.
        ``cause`` and ``explanation`` come from the steps between the two versions, if a run has them.
    notes : tuple of str
        Differences that make the two sides hard to compare, such as different gas schedules.
    names : tuple of str
        Names of the two sides.
    study : Study or None
        The study of the after side, if the side is a run; `gate` judges every call that the study names.
    left_out : tuple of (str, str, str)
        Label, source and node of each simulation that is excluded because it was made after a requested version.
    unlike : mapping of str to str
        Why the calls on a node cannot be judged, by node.
    sources : frozenset of str
        The sources compared.
    after : Run or None
        The run of the after side, if the side is a run at its end rather than at an earlier version.
    other_names : mapping of str to str
        Labels of calls by alternative names, such as their functions.
    fees : mapping of (str, str) to FeeChange
        What the committed transactions of a call paid on both sides, by fingerprint and node.
    first_read : mapping of str to int
        First version at which a run read a call, by label, if it is after the requested version of that run.
    steps : tuple of StepGroup
        The steps between the two sides, if a run has them, by version; each with the calls that it changed.
    about : (str, str)
        Node, version and time of reading of the two sides, to follow their names; empty if they are not known.

    Examples
    --------
    >>> import toolkit
    >>> run = toolkit.Study(calls={"names": "0xcafe::registry::size"}, versions=[3501, 3502]).run(progress=False)
    >>> comparison = toolkit.compare(run.at(3501), run.at(3502))
    >>> print(comparison.calls[["label", "gas_before", "gas_after"]].to_string(index=False))
    label  gas_before  gas_after
    names         3.0       21.0
    """

    calls: pd.DataFrame
    notes: tuple[str, ...] = ()
    names: tuple[str, str] = ("before", "after")
    study: Study | None = None
    left_out: tuple[tuple[str, str, str], ...] = ()
    unlike: Mapping[str, str] = field(default_factory=dict)
    sources: frozenset[str] = frozenset(Source)
    after: Run | None = None
    other_names: Mapping[str, str] = field(default_factory=dict)
    fees: Mapping[tuple[str, str], FeeChange] = field(default_factory=dict)
    first_read: Mapping[str, int] = field(default_factory=dict)
    steps: tuple[StepGroup, ...] = ()
    about: tuple[str, str] = ("", "")

    @property
    def warnings(self) -> tuple[str, ...]:
        """The notes, and what cannot be compared: nodes, and simulations made after a requested version."""
        later = (sentences.left_out_text(self.left_out),) if self.left_out else ()
        return (*dict.fromkeys(self.unlike.values()), *self.notes, *later)

    def _of(self, kind: Kind) -> pd.DataFrame:
        return self.calls[self.calls["kind"] == kind].reset_index(drop=True)

    @property
    def added(self) -> pd.DataFrame:
        """Calls that are only on the after side."""
        return self._of(Kind.ADDED)

    @property
    def removed(self) -> pd.DataFrame:
        """Calls that are only on the before side."""
        return self._of(Kind.REMOVED)

    @property
    def changed(self) -> pd.DataFrame:
        """Calls whose gas, success or error differs; of committed calls, by more than chance explains."""
        return self._of(Kind.CHANGED)

    @property
    def unchanged(self) -> pd.DataFrame:
        """Calls with the same gas, success and error on both sides."""
        return self._of(Kind.UNCHANGED)

    @property
    def uncertain(self) -> pd.DataFrame:
        """Committed calls whose mean differs by no more than chance explains: it may have risen, fallen or neither."""
        return self._of(Kind.UNCERTAIN)

    @property
    def not_compared(self) -> pd.DataFrame:
        """Calls that cannot be compared, because a side has no result or too few transactions."""
        return self._of(Kind.NOT_COMPARED)

    @property
    def counts(self) -> dict[str, int]:
        """Number of calls by kind of difference."""
        return {kind.value: int((self.calls["kind"] == kind).sum()) for kind in Kind}

    def gate(
        self,
        threshold: Any = None,
        *,
        study: Study | None = None,
        waivers: Sequence[Any] | None = None,
        today: date | None = None,
    ) -> Gate:
        """Judge which calls regressed.

        A call regresses if its gas rises above a limit, if it succeeded before and fails now, or if it disappeared. The
        gate also does not pass if no call was judged, or if a call without a waiver cannot be judged, because

        - the sides have different chains, nodes or gas models, or a run is not complete;
        - a side has no result or no gas for the call;
        - the study names the call, but the call failed before, is on the after side only, or is on neither side;
        - fewer than 8 committed transactions ran under the newest code, configuration and schedule of a side;
        - the rise of the mean fee of committed transactions may be above the limit or not;
        - its committed transactions do not come from two complete runs;
        - its simulations are excluded, since simulations run only at the head;
        - the run read views up to an earlier version than the requested one.

        To judge a single source, name it: ``compare(a, b, source="view@version")``.

        Local node names (``embedded`` and loopback URLs) do not identify a ledger: after a restart, a node is still
        judged if its chain id and gas model are the same. If it is known to serve a different ledger, `warnings` says
        so.

        Committed calls are judged by what each transaction pays: ``gas used x price - storage refund`` in
        octas, at one reference price. The gate fails if the lower bound of the rise of the mean is above the limit, and
        passes if the upper bound is not; in between it cannot judge. It also fails if a larger share of transactions
        fails, or if the 10th, 50th or 95th percentile certainly rose above the limit.

        Parameters
        ----------
        threshold : Threshold, str, int or list, optional
            Limit for calls that do not set their own: ``"2%"``, ``50`` gas units, or a list of both, in which case each
            limit applies. Defaults to the threshold of `study`.
        study : Study, optional
            Supplies the thresholds, and the waivers if `waivers` is None. Without a study, there are no
            thresholds and no waivers; the calls that the study of the after run names must still be judged.
        waivers : sequence of Waiver or mapping, optional
            Calls whose regressions are excused, and sources that need not be judged. Name a call by its label, or
            several calls by a pattern that matches their labels, such as ``"balance of *"``.
        today : date, optional
            Date for checking whether waivers have expired; by default, today's date in UTC.

        Returns
        -------
        Gate

        Raises
        ------
        InputError
            If the threshold is not valid.
        StudyError
            If a waiver is not valid.
        """
        rules = rules_of(threshold, study, waivers)
        return self.judged_by(rules if study else replace(rules, named=rules_of(study=self.study).named), today=today)

    def judged_by(self, rules: Rules, *, today: date | None = None, max_age: timedelta | None = None) -> Gate:
        """Return the verdict under `rules`; see `gate`.

        Parameters
        ----------
        rules : Rules
        today : date, optional
        max_age : timedelta, optional
            Maximum age of what the after run read up to the head. Unlimited by default, but an age of a day or more is
            noted.
        """
        age, limit = None if self.after is None else self.after.age, max_age or MAX_AGE
        old = age is not None and bool(age.labels) and age.since() >= limit
        notes = [words.age_text(age)] if age is not None and (old or max_age is not None) else []
        too_old = age.labels if age is not None and old and max_age is not None else ()
        rules = rules.renamed(self.other_names)
        rules = replace(rules, named={label: one for label, one in rules.named.items() if one in self.sources})
        plans = () if self.after is None else self.after.record.nodes
        gone = {(mark, plan.node): why for plan in plans for mark, why in plan.gone.items()}
        found = []
        for row in sentences.by_size(plain_rows(self.calls)):
            call = row["fingerprint"], row["node"]
            if row["node"] in self.unlike:
                one = Finding.of(row, Verdict.NOT_JUDGED, Why.NOT_COMPARED, text=self.unlike[row["node"]])
            elif row["label"] in too_old:
                one = Finding.of(row, Verdict.NOT_JUDGED, Why.TOO_OLD, max_age=limit)
            else:
                one = found_in(row, rules, self.fees.get(call), gone.get(call))
            found.append(one)
        found += [Finding(*one, Verdict.NOT_JUDGED, Why.AT_THE_HEAD) for one in self.left_out]
        return judge(found, rules, notes=notes, today=today, first_read=self.first_read)

    def shown(self, name: words.Renderer, gate: Gate | None = None) -> sentences.Shown:
        """Return what is shown of the comparison; `name` makes text from users and the chain safe for the format."""
        return sentences.shown_calls(self, name, gate)

    def __repr__(self) -> str:
        return sentences.comparison_text(self, width=terminal_width())

    def _repr_html_(self) -> str:
        return sentences.comparison_html(self)


@overload
def compare(before: Any, after: Any, *, source: str | tuple[str, str] | None = None) -> Comparison: ...


@overload
def compare(
    before: Any,
    *,
    code: Any = None,
    gas_schedule: GasSchedule | Mapping[str, int | str] | None = None,
    functions: str | Iterable[str] | None = None,
    last: int = DEFAULT_LAST,
    versions: Versions = DEFAULT_VERSIONS,
    executor: Executor | str | None = None,
    progress: bool | ProgressHook = True,
) -> PairedComparison: ...


def compare(
    before: Any, after: Any = None, *, source: str | tuple[str, str] | None = None, **change: Any
) -> Comparison | PairedComparison:
    """Compare two sides: the last observation of each call, and what committed transactions paid.

    With `code` or `gas_schedule`, compare the last transactions of some functions with the same transactions under code
    or prices that are not deployed: each is replayed as it was, which must give what the ledger says, and with the
    change, on the same state.

    For committed transactions of two runs, `compare` takes those that ran under the newest code, configuration and
    schedule of each side, and compares their mean fee. A transaction that both sides contain counts only for the side
    that ends earlier.

    Parameters
    ----------
    before, after : DataFrame, Run, str or Path
        Observations, a run, the folder of a run, or ``runs/x@1000``, which is the run at ledger version 1000. The last
        observation of each call is compared. A frame from `Run.at` is treated as the run at that version, and
        `Run.observations` as the run at its last version, provided that the folder of the run still exists and the
        observations in the frame are unmodified.
    source : str or (str, str), optional
        Compare observations of one source only: ``view@version``, ``simulate@now`` or ``committed``. A pair compares
        two different sources: the first on the before side with the second on the after side, matched by label.
    code : path, bytes or iterable of bytes, optional
        A compiled package, as for `Fork.publish`; there is then no `after`, and `before` is a node, a study or a run,
        whose committed calls are compared.
    gas_schedule : GasSchedule or mapping, optional
        A schedule, or parameters or patterns with new values or factors, such as ``{"instr.*": "x10"}``.
    functions : str or iterable of str, optional
        Functions whose transactions are replayed, instead of the calls of a study.
    last : int, default 100
        Number of transactions of each function.
    versions : version plan, default "-100000:"
        Where they are looked for, from the end. The search ends where the replaced code or schedule was last written.
    executor, progress
        As for `toolkit.replay`.

    Returns
    -------
    Comparison or PairedComparison
        Calls are matched by fingerprint and source, so sources are never mixed unless `source` is a pair. With `code`
        or `gas_schedule`, a `PairedComparison`.

    Raises
    ------
    InputError
        If a side is neither an observation frame, a run nor a folder, or `source` is not the name of a source.
    StudyError
        If a folder is not a run folder, the run has no observation at or before the version, or the version is above
        the last one at which the run read views or committed transactions.

    Warns
    -----
    UserWarning
        If the node builds or the chains of the two sides differ, if a run is not complete, if a requested version lies
        between two observations that differ, if simulations are excluded because they were made after a requested
        version, or if sources are mixed.

    Examples
    --------
    >>> import toolkit
    >>> study = toolkit.Study(
    ...     title="supply", versions="3501:3502", calls=[toolkit.ViewFunction("0xfa17::vault::share_price")]
    ... )
    >>> run = study.run(progress=False)
    >>> toolkit.compare(run.at(3501), run.at(3502)).changed[["gas_before", "gas_after", "cause"]].to_numpy().tolist()
    [[4.0, 36.0, 'schedule']]

    A package before it is deployed, on a node whose contracts are bytecode:

    >>> mainnet, place = toolkit.connect("mainnet"), "0xb00c::order_book::place"  # doctest: +SKIP
    >>> found = toolkit.compare(mainnet, code="build/OrderBook", functions=place)  # doctest: +SKIP
    >>> found.gate("2%").verdict  # doctest: +SKIP
    'passed'
    """
    if change:
        if after is not None or source is not None:
            raise InputError("compare takes either `after` and `source`, or `code` or `gas_schedule`")
        return compare_under(before, **change)
    found = compared(before, after, source=source)
    for note in found.warnings:
        warnings.warn(note, UserWarning, stacklevel=2)
    return found


def compared(before: Any, after: Any, *, source: str | tuple[str, str] | None = None) -> Comparison:
    """Like `compare`, but store the warnings without emitting them."""
    sides = first, last = read_side(before), read_side(after)
    sources = one, two = _sources(source)
    # Simulations are made at the head, so a side at a version has none; they are also excluded from the other side.
    simulated = {one, two} <= {None, Source.SIMULATE}
    later = first.made_later(last) | last.made_later(first) if simulated else frozenset()
    marks = {fingerprint for fingerprint, _, _ in later}
    frames = [_chosen(side.last, wanted, marks) for side, wanted in zip(sides, sources, strict=True)]
    several = max(frame["node"].nunique() for frame in frames) > 1
    unlike = dict(_unlike(sides, frames, several=several))
    notes = [*_notes(sides, frames)]
    left_out = tuple(sorted({(label, Source.SIMULATE.value, node) for _, label, node in later}))
    if one != two:
        notes.append(f"{one} is compared with {two}, as requested; the same work may cost different gas")
    key = [*(["label"] if one != two else ["fingerprint", "source"]), *(["node"] if several else [])]
    rows, fees = [], {}
    between: dict[tuple[Any, ...], StepGroup] = {}
    for row in _rows(frames, key):
        columns, paid = _paid(row, sides)
        columns |= _unread(row, sides)
        if paid is not None:
            fees[row["fingerprint"], row["node"]] = paid
        steps = () if row["node"] in unlike else _steps_between(row | columns, sides)
        for step in steps:
            place = step.version_before, step.version_after, row["node"], step.cause, step.explanation
            changes = (*between[place].changes, *step.changes) if place in between else step.changes
            between[place] = replace(step, changes=changes, node=row["node"] if several else "")
        rows.append(row | columns | (_explained(steps) or _not_explained(row | columns, sides)))
    studies = [side.study for side in sides if side.study]
    calls = frame_of_rows(COMPARISON, rows)
    calls.attrs["versions"] = tuple(side.version if side.until is None else side.until for side in sides)
    return Comparison(
        calls=calls,
        notes=tuple(notes),
        names=(first.name or "before", last.name or "after"),
        study=last.study,
        left_out=left_out,
        unlike=unlike,
        sources=frozenset(Source(name) for name in sources if name) or frozenset(Source),
        after=last.run if last.until is None else None,
        other_names={name: label for study in studies for name, label in other_names(study.calls).items()},
        fees=fees,
        first_read=dict(pair for side in sides for pair in side.first_read()),
        steps=tuple(between[place] for place in sorted(between)),
        about=(first.about, last.about),
    )


def verdict_within(run: Run) -> tuple[Comparison, Gate] | None:
    """Return what became of the calls of a run from its beginning to its end, and the verdict.

    None without limits, and of a run of one version. Views are compared at their first and last version, or from their
    first success on if they failed before, and committed transactions before the first change with those since the last
    one. Waivers hold as of the day on which the run was made, so that equal runs have equal reports.
    """
    study = run.study
    if study.thresholds is None and not any(call.thresholds for call in study.calls):
        return None
    key = ["node", "fingerprint", "source"]
    every = run.observations.sort_values("ledger_version", kind="stable")
    # What was read once has no second side. Of committed transactions, `Side.ran` takes those that count.
    several = every[every.duplicated(key, keep=False) | (every["source"] == Source.COMMITTED)]
    if len(set(several["ledger_version"])) <= 1:
        return None
    # A view that does not exist yet, or cannot succeed yet, begins with its first success before the end.
    fails = failed(several) | ~several.duplicated(key, keep="last")
    first = several.loc[fails.sort_values(kind="stable").index].drop_duplicates(key).reset_index(drop=True)
    beginning = Side("the beginning of the run", first, study, run=run, oldest=True)
    end = side_of_run(run, "the end of the run")
    found = compared(beginning, replace(end, last=end.last[end.last["fingerprint"].isin(several["fingerprint"])]))
    made = run.record.finished_at
    gate = replace(found, after=None).gate(study=study, today=None if made is None else made.date())
    within: dict[Why | None, Why] = {Why.ADDED: Why.READ_ONCE, Why.FAILED_BEFORE: Why.SUCCEEDED_AT_THE_END}
    once = within | {Why.NOT_OBSERVED: Why.READ_ONCE}
    seen = set(every["label"])
    findings = [
        replace(one, why=(once if one.label in seen else within).get(one.why, one.why)) for one in gate.findings
    ]
    return found, replace(gate, findings=tuple(findings))


def _sources(source: Any) -> tuple[str | None, str | None]:
    """Return the source to compare on each side; None for all sources."""
    if source is None:
        return None, None
    pair = (source, source) if isinstance(source, str) else source
    if not isinstance(pair, list | tuple) or len(pair) != 2 or not set(pair) <= set(Source):  # noqa: PLR2004 - a pair
        raise InputError(f"source must be one of {', '.join(Source)}, or two of them, got {shorten(source)}")
    return pair[0], pair[1]


def _chosen(last: pd.DataFrame, source: str | None, left_out: set[str]) -> pd.DataFrame:
    """Return the observations of a source, or of all, without the simulations that have no second side."""
    frame = last if source is None else last[last["source"] == source]
    return frame[~((frame["source"] == Source.SIMULATE) & frame["fingerprint"].isin(left_out))]


# what makes sides hard to compare -------------------------------------------------------------------------------------


def _unlike(sides: Sequence[Side], frames: Sequence[pd.DataFrame], *, several: bool) -> Iterator[tuple[str, str]]:
    """Yield ``(node, reason)`` for each node whose two sides cannot be judged."""
    incomplete = [
        f"the run on the {name} side is not complete; run its study into the folder again"
        for name, side in zip(("before", "after"), sides, strict=True)
        if side.run and not side.run.complete
    ]
    for node in dict.fromkeys(node for frame in frames for node in frame["node"]):
        both = [frame[frame["node"] == node] if several else frame for frame in frames]
        before, after = map(_identity, both)
        different = [why.format(before=before[why], after=after[why]) for why in before if before[why] != after[why]]
        if both[0].empty or (both[1].empty and not several):
            different = []  # its calls are added or missing, and the gate says so
        yield from ((node, why) for why in [*different, *incomplete][:1])


_APART = "the two sides come from different {what} ({{before}}; {{after}}), which may explain different gas"
_NODES, _CHAINS = (f"{_APART.format(what=what)}; run both on one network" for what in ("nodes", "chains"))
_MODELS = (
    "one side is from the embedded node, whose gas is a model and cannot be compared with a Move VM's; run both on one "
    "kind of node"
)


def _identity(side: pd.DataFrame) -> dict[str, str]:
    """Return what must be equal on both sides, keyed by the reason to give if it differs."""
    found = {
        _NODES: {"this machine" if is_local(node) else NETWORKS.get(node, node) for node in side["node"]},
        _CHAINS: set(side["chain_id"].dropna().astype(str)),
        _MODELS: set(side["model"].astype(str)),
    }
    return {why: ", ".join(sorted(texts)) or "none" for why, texts in found.items()}


def is_local(node: str) -> bool:
    """Return whether a node is the embedded node or has a URL on this machine.

    Such a name does not identify a ledger, because different ledgers may run there at different times.
    """
    return _LOCAL.fullmatch(NETWORKS.get(node, node)) is not None


_LOCAL = re.compile(r"https?://(localhost|127(\.\d+){3}|\[::1\])([:/].*)?|embedded( ledger)?")


def _one_ledger(before: Run | None, after: Run | None, node: str | None = None) -> bool:
    """Return whether two runs have the same nodes and chains and, judging by their anchors, the same history.

    With a `node`, only that node counts, whatever others the runs have.
    """
    if before is None or after is None:
        return False
    chains = [
        {plan.node: plan.chain_id for plan in run.record.nodes if node in {None, plan.node}} for run in (before, after)
    ]
    return chains[0] == chains[1] and not {*chains[0]}.intersection(_other_ledgers(before, after))


def _other_ledgers(before: Run, after: Run) -> list[str]:
    """Return the nodes known to have served two ledgers, with different transactions at the same version."""
    anchors = {plan.node: plan.anchor for plan in after.record.nodes}
    pairs = {plan.node: (plan.anchor, anchors.get(plan.node)) for plan in before.record.nodes}
    return sorted(node for node, (a, b) in pairs.items() if a and b and a.version == b.version and a != b)


def _notes(sides: Sequence[Side], frames: Sequence[pd.DataFrame]) -> Iterator[str]:
    builds = [", ".join(sorted(frame["node_build"].dropna().unique())) for frame in frames]
    if all(builds) and builds[0] != builds[1]:
        yield _APART.format(what="node builds").format(before=builds[0], after=builds[1])
    before, after = (side.run for side in sides)
    if before is not None and after is not None:
        for node in _other_ledgers(before, after):
            yield f"{node} served a different ledger on each side, so code and state may differ"
    if _one_ledger(before, after) and 0 < sides[1].version < sides[0].version:
        yield f"after ({sides[1].version:,}) is older than before ({sides[0].version:,})"
    yield from (f"{side.name}: {note}" for side in sides for note in side.notes)


# rows -----------------------------------------------------------------------------------------------------------------


def _rows(frames: Sequence[pd.DataFrame], key: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield one row for each call of either side, by label."""
    every = [plain_rows(frame, OBSERVATIONS.names) for frame in frames]
    before, after = ({tuple(row[name] for name in key): row for row in rows} for rows in every)
    rows = [_row(before.get(place), after.get(place)) for place in dict.fromkeys([*before, *after])]
    yield from sorted(rows, key=lambda row: (row["label"], row["source"], row["node"]))


def _row(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> dict[str, Any]:
    known: Mapping[str, Any] = after or before or {}
    sides = {"before": before or {}, "after": after or {}}
    row = {name: known[name] for name in ("label", "fingerprint", "source", "node", "model")}
    row["kind"] = _kind(before, after)
    if before and after and before["source"] != after["source"]:
        row["source"] = f"{before['source']} to {after['source']}"
    row |= {f"{name}_{side}": values.get(column) for column, name in _SIDED.items() for side, values in sides.items()}
    row |= _moved(row)
    row |= {name: float(row[name]) for name in _GAS if row[name] is not None}  # those of committed calls are means
    digests = [values.get("value_digest") for values in sides.values()]
    row["value_changed"] = None if None in digests else digests[0] != digests[1]
    return row


def _moved(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the change of gas of a row, in gas units and in percent of the before side."""
    before, after = row["gas_before"], row["gas_after"]
    turns = row["success_before"] != row["success_after"]  # what a failure uses is no price of what it does not do
    change = None if before is None or after is None or turns else after - before
    return {"change": change, "change_percent": 100.0 * change / before if change is not None and before else None}


def _kind(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> Kind:
    if before is None or after is None:
        return Kind.ADDED if before is None else Kind.REMOVED
    if is_no_answer(before["error_code"]) or is_no_answer(after["error_code"]):
        return Kind.NOT_COMPARED
    return Kind.UNCHANGED if all(before[name] == after[name] for name in OUTCOME_COLUMNS) else Kind.CHANGED


# committed transactions -----------------------------------------------------------------------------------------------


def _paid(row: Mapping[str, Any], sides: Sequence[Side]) -> tuple[dict[str, Any], FeeChange | None]:
    """Return the columns of a committed call, and what its transactions paid on both sides if that is known."""
    lacking = {Kind.ADDED: 0, Kind.REMOVED: 1}.get(row["kind"])
    if row["source"] != Source.COMMITTED or (lacking is not None and not sides[lacking].asked(row["fingerprint"])):
        return {}, None
    one, two = both = [side.ran(row["fingerprint"], row["node"]) for side in sides]
    if lacking is not None and len(both[lacking].frame):
        return {}, None  # left out of a frame on purpose
    alone = next((ran.only for ran in (two, one) if ran.only is not None), None)
    if why := one.why or two.why or ("" if alone is None else one_version_text(alone)):
        return _not_compared(why), None
    # A transaction that both sides have counts for the side that ends earlier, and for a snapshot.
    one_ledger = _one_ledger(sides[0].run, sides[1].run, row["node"])
    if one_ledger and one.last == two.last:
        same = f"both sides end at version {one.last:,}, so they have the same transactions"
        return _not_compared(f"{same}; {More.LATER}"), None
    if one.stored or (one_ledger and two.last >= one.last):
        two = two.beyond(one.last)
    elif one_ledger:
        one = one.beyond(two.last)
    price = one.typical_price
    before = one.fees(price, More.EARLIER if sides[0].oldest else More.OTHER)
    after = two.fees(price, More.WAIT if sides[1].until is None else More.LATER)
    fees = FeeChange.of(before, after, price)
    kind = Kind.CHANGED if fees.changed else Kind.UNCERTAIN if fees.moved else Kind.UNCHANGED
    found: dict[str, Any] = {"kind": kind, "stratum": ALL_THAT_SUCCEEDED, "value_changed": None}
    # If nobody called it on either side, the reason is that of the before side: a snapshot's must be written again.
    whole = one.stored is not None  # a snapshot has whole means, so both sides do
    found |= _side_of_row("after", two, fees.after, whole=whole)
    found |= _side_of_row("before", one, fees.before, whole=whole)
    found |= _moved({**row, **found})
    bounds = {"fee_change_low": fees.low, "fee_change_high": fees.high}
    if whole:
        bounds["change_percent"] = after.mean / before.mean - 1 if before.mean > 0 else math.nan
    found |= {"fee_price": price} | {name: _known(100 * share) for name, share in bounds.items()}
    if not fees.changed and math.isnan(fees.low):
        found |= _not_compared(found.get("not_judged") or sentences.few_text(fees))
    return found, fees


def _unread(row: Mapping[str, Any], sides: Sequence[Side]) -> dict[str, Any]:
    """Return the columns of a view that was not read up to, or between, two versions of a run; none of other calls.

    A search for steps holds that nothing moved between equal readings; a plan of versions holds nothing of the others.
    """
    if row["source"] not in READ_AT_VERSIONS or row["kind"] in {Kind.ADDED, Kind.REMOVED}:
        return {}
    why = next((why for side in sides if (why := side.unread(row["node"]))), "")
    one, two = sides
    if not why and one.run and two.run and one.run.path == two.run.path and two.run.study.versions.search is None:
        ends, at = {two.run.last_version if side.until is None else side.until for side in sides}, row["version_after"]
        if len(ends) > 1 and row["version_before"] == at and not _is_located(two.run, row, at):
            why = f"both sides are the reading at version {at:,}; choose versions that the run read"
    return _not_compared(why) if why else {}


def _is_located(run: Run, row: Mapping[str, Any], at: int) -> bool:
    """Return whether the step that ends the reading of a call at a version was located: up to it, the reading holds."""
    seen, steps = (
        rows[(rows["label"] == row["label"]) & (rows["node"] == row["node"])] for rows in (run.observations, run.steps)
    )
    later = seen["ledger_version"][seen["ledger_version"] > at]
    return later.empty or bool(steps["version_after"].between(at + 1, later.min()).any())


def _not_compared(why: str) -> dict[str, Any]:
    """Return the columns of a call that is not compared: no gas or fee, as two figures in a row look like a change."""
    return {"kind": Kind.NOT_COMPARED, "not_judged": why, "change_percent": None} | dict.fromkeys((*_GAS, *_FEES))


def _side_of_row(name: str, ran: Ran, fees: Fees, *, whole: bool) -> dict[str, Any]:
    """Return the columns of one side of a committed call: means of the transactions that succeeded."""
    found: dict[str, Any] = {f"count_{name}": len(fees.octas)}
    found |= {f"fee_{name}": _known(fees.mean), f"failing_{name}": _known(fees.failing)}
    if len(good := ran.good):
        found[f"version_{name}"] = int(good["ledger_version"].iloc[-1])
        found |= {f"{_SIDED[part]}_{name}": round(mean, 0) if whole else mean for part, mean in fees.means.items()}
        found |= {f"success_{name}": True, f"error_{name}": None, f"vm_status_{name}": None}
    if not fees.count:
        since = f" since the change at version {ran.since:,}" if ran.since else ""
        where = f"{since} on the {name} side"
        if ran.above > ran.since:
            where = f" after version {ran.above:,}, where the {'before' if name == 'after' else 'after'} side ends"
        why = f"nobody called it{where}" if ran.stored is None else "the snapshot has no transaction of it"
        if ran.stored is None and not (ran.since or ran.above):  # somebody may have called it before the study's range
            why = f"no transaction was read up to version {ran.last:,} on the {name} side"
        found |= {"not_judged": f"{why}; {fees.more}"}
        found |= {f"{column}_{name}": None for column in _SIDED.values()}  # of a transaction before that change
    return found


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


# causes ---------------------------------------------------------------------------------------------------------------


def _steps_between(row: Mapping[str, Any], sides: Sequence[Side]) -> tuple[StepGroup, ...]:
    """Return the steps that the runs found, between its two versions, of a call that changed or may have."""
    first, last = row["version_before"], row["version_after"]
    runs = [side.run for side in sides if side.run is not None]
    if row["kind"] not in {Kind.CHANGED, Kind.UNCERTAIN} or first is None or last is None or not runs:
        return ()
    if len(runs) == len(sides) and not _one_ledger(runs[0], runs[1], row["node"]):
        return ()
    groups: dict[tuple[Any, ...], StepGroup] = {}
    for run in {run.path.resolve(): run for run in runs}.values():
        steps = run.steps
        mine = (steps["fingerprint"] == row["fingerprint"]) & (steps["node"] == row["node"])
        there = mine & (steps["version_after"] > first) & (steps["version_after"] <= last)
        if row["source"] == Source.COMMITTED and row["change"]:
            # The mean of committed transactions also follows their mix: a step the other way did not cause its move.
            there &= (steps["change"].fillna(row["change"]) > 0) == (row["change"] > 0)
        groups |= {(one.version_before, one.version_after, one.cause): one for one in step_groups(steps[there])}
    return tuple(replace(groups[key], rounded=False) for key in sorted(groups))


def _explained(steps: Sequence[StepGroup]) -> dict[str, Any]:
    """Return the columns of a call that say why it changed; none if that is not known."""
    if not steps:
        return {}
    cause = steps[0].cause if len({group.cause for group in steps}) == 1 else Cause.MIXED
    return {"cause": cause, "explanation": words.between_text(steps)}


def _not_explained(row: Mapping[str, Any], sides: Sequence[Side]) -> dict[str, Any]:
    """Return why the cause of a changed committed call is not known, if no run could look for its steps."""
    if row["kind"] not in {Kind.CHANGED, Kind.UNCERTAIN} or row["source"] != Source.COMMITTED:
        return {}
    plans = (plan for side in sides if side.run is not None for plan in side.run.record.nodes)
    calls = [call for plan in plans if plan.node == row["node"] for call in plan.committed_series or ()]
    whys = [call.not_judged for call in calls if call.fingerprint == row["fingerprint"]]
    return {"explanation": f"cause not judged: {whys[-1]}"} if whys and all(whys) else {}
