"""The content of a report as frozen data built from a run, independent of the output format."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pandas as pd

from toolkit._present.messages import shorten
from toolkit._present.text import plural
from toolkit.errors import InputError
from toolkit.frames._columns import frame_of_rows, plain_rows
from toolkit.frames._schema import LEVELS
from toolkit.gas import _sentences as sentences
from toolkit.gas._compare import verdict_within
from toolkit.gas._observations import Failure, Source, failed, failures_of
from toolkit.gas._series import is_model
from toolkit.gas._steps import StepGroup, Unjudged, step_groups
from toolkit.gas.committed._strata import slots_created
from toolkit.plots._time import known_times

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from toolkit.gas._compare import Comparison
    from toolkit.gas._gate import Gate
    from toolkit.gas._sentences import Renderer
    from toolkit.gas._study import Run
    from toolkit.gas.committed._steps import CommittedCall
    from toolkit.gas.runs._manifest import Manifest, NodeRun


@dataclass(frozen=True)
class Provenance:
    """The origin of the observations, with entries from the manifest of the run.

    `schedules` describes the gas schedule of each node at the first and the last version of its plan; calls with
    versions of their own may have been observed beyond these.
    """

    nodes: tuple[str, ...]
    node_builds: tuple[str, ...]
    chain_ids: tuple[int, ...]
    toolkit_versions: tuple[str, ...]
    sources: tuple[str, ...]
    model: bool
    readings: int
    versions: int
    first_version: int | None
    last_version: int | None
    head_version: int | None
    schedules: tuple[tuple[str, str], ...]
    manifest: tuple[tuple[str, str], ...]


def provenance_of(observations: pd.DataFrame, record: Manifest, rows_digest: str | None) -> Provenance:
    """Collect the provenance of a run.

    Parameters
    ----------
    observations : DataFrame
        As `Run.observations`.
    record : Manifest
        As `Run.record`.
    rows_digest : str or None
        Text to show as the digest of the rows.

    Returns
    -------
    Provenance
    """
    versions, heads = observations["ledger_version"], observations["head_version"]
    return Provenance(
        nodes=tuple(_unique(observations, "node")),
        node_builds=tuple(_unique(observations, "node_build")),
        chain_ids=tuple(int(chain) for chain in _unique(observations, "chain_id")),
        toolkit_versions=tuple(_unique(observations, "toolkit_version")),
        sources=tuple(_unique(observations, "source")),
        model=is_model(observations),
        readings=len(observations),
        versions=len(versions.unique()),
        first_version=_known(versions.min()),
        last_version=_known(versions.max()),
        head_version=_known(heads.max()),
        schedules=tuple(found for plan in record.nodes for found in _schedule(plan)),
        manifest=tuple(_about(record, rows_digest)),
    )


def _schedule(plan: NodeRun) -> Iterator[tuple[str, str]]:
    """Yield a node and its gas schedule at the first and the last version, if the schedule is known."""
    found = plan.provenance.gas_schedule if plan.provenance else None
    if found and (found.first or found.last):
        one, two = (
            f"feature version {end.feature_version}, digest {end.digest}" if end else "not reported"
            for end in (found.first, found.last)
        )
        ends = f"version {plan.first:,}" if plan.first == plan.last else f"versions {plan.first:,} and {plan.last:,}"
        same = f"{one}, at {ends}"
        yield plan.node, same if one == two else f"at version {plan.first:,}, {one}; at version {plan.last:,}, {two}"


def _known(version: Any) -> int | None:
    return None if pd.isna(version) else int(version)


def _unique(frame: pd.DataFrame, column: str) -> list[str]:
    return sorted(map(str, frame[column].dropna().unique()))


def _about(record: Manifest, rows_digest: str | None) -> Iterator[tuple[str, str]]:
    """Yield notes on a clipped plan, and entries that identify the ledger's history and the run."""
    for plan in record.nodes:
        yield from (("plan", note) for note in plan.notes)
        if plan.anchor:
            yield f"hash of transaction {plan.anchor.version:,}", plan.anchor.transaction_hash
    yield "study digest", record.study_digest
    if rows_digest:
        yield "rows digest", rows_digest
    if record.started_at and record.finished_at:
        times = (f"{time:%Y-%m-%d %H:%M}" for time in (record.started_at, record.finished_at))
        yield "read", f"{' to '.join(dict.fromkeys(times))} UTC"


MAX_FAILURE_GROUPS = 50  # rows that people still read; a node can put anything into a message
_MAX_MESSAGES = 12  # of one error code
_NUMBER = re.compile(r"\b\d+\b")  # not hexadecimal: codes and addresses differ by what failed
_SIMULATED = (Source.SIMULATE, Source.SIMULATE_AT_VERSION)
MAX_SPLITS = 200  # the last simulations; more would dominate the page


@dataclass(frozen=True)
class CallSummary:
    """One call from one source: its gas (gas units; None if it never returned a result), steps and failures.

    Gas is that of the calls that succeeded, or of all if none did.
    `judged` is False if the call was not searched for steps; `steps` is then 0.
    """

    label: str
    source: str
    node: str
    readings: int
    first_version: int
    last_version: int
    first_gas: int | None
    last_gas: int | None
    min_gas: int | None
    max_gas: int | None
    steps: int
    failures: int
    judged: bool


@dataclass(frozen=True)
class GasSplit:
    """What the gas of one transaction was spent on, in gas units and octas, as in its FeeStatement."""

    label: str
    source: str
    ledger_version: int
    success: bool
    vm_status: str
    gas_used: int
    execution_gas_units: int
    io_gas_units: int
    storage_fee_octas: int
    storage_fee_refund_octas: int
    gas_unit_price: int

    @property
    def storage_gas_units(self) -> float:
        """Storage fee in gas units at the price of the transaction; 0 if the price is 0."""
        return self.storage_fee_octas / self.gas_unit_price if self.gas_unit_price else 0.0

    @property
    def net_octas(self) -> int:
        """Fee minus the storage refund, in octas; negative if more is refunded than was paid."""
        return self.gas_used * self.gas_unit_price - self.storage_fee_refund_octas


@dataclass(frozen=True)
class FailureGroup:
    """Observations that failed in the same way: with the same code, and messages that differ only in numbers.

    Attributes
    ----------
    error_code : str
        Error code of the node; the VM status of a failed execution.
    failure : Failure
        How they failed.
    status : int or None
        HTTP status.
    labels : tuple of str
        Labels of the calls that failed.
    count, first_version, last_version : int
        Number of observations, and the range of their ledger versions.
    example : str
        The last error message.
    """

    error_code: str
    failure: Failure
    status: int | None
    labels: tuple[str, ...]
    count: int
    first_version: int
    last_version: int
    example: str

    @property
    def kind(self) -> str:
        """How the calls failed; of reads, also with which HTTP status, or without a response."""
        if self.failure in {Failure.SIMULATION, Failure.TRANSACTION}:
            return self.failure.value
        return f"{self.failure} ({'no response' if self.status is None else f'HTTP {self.status}'})"


@dataclass(frozen=True)
class Dates:
    """Dates of ledger versions. A date between two known dates is interpolated."""

    versions: NDArray[np.float64]
    seconds: NDArray[np.float64]

    def of(self, version: int) -> str:
        """Return the date of a version, marked if it is interpolated, or an empty string if it is unknown."""
        return self.between(version, version)

    def between(self, first: int, last: int) -> str:
        """Return the dates of two versions, or their common date; an empty string if they are unknown."""
        if len(self.versions) and first < self.versions[0] <= last:  # version 0 has no time
            return f"until {until}" if (until := self.of(last)) else ""
        if not len(self.versions) or not self.versions[0] <= first <= last <= self.versions[-1]:
            return ""
        times = [datetime.fromtimestamp(np.interp(end, self.versions, self.seconds), UTC) for end in (first, last)]
        mark = "" if np.isin([first, last], self.versions).all() else "≈ "
        return mark + " to ".join(dict.fromkeys(f"{time:%Y-%m-%d}" for time in times))


@dataclass(frozen=True)
class ReportData:
    """The content of a report.

    `observations` and `steps` are the frames for figures and CSV. `paid` contains the observations whose gas is split
    into parts and, if storage prices are known, the number of state slots created. `verdict` compares the beginning of
    the run with its end, or is None if the study has no limits. `events` is sorted by version, `largest` by weight.

    Examples
    --------
    >>> import toolkit
    >>> from toolkit import reports
    >>> study = toolkit.Study(calls={"count": "0xcafe::registry::size"}, versions="3000:3001")
    >>> run = study.run(progress=False)
    >>> data = reports.build(run)
    >>> len(data.observations), data.swept
    (2, ('count',))
    """

    title: str
    run: str
    complete: bool
    events: tuple[StepGroup, ...]
    calls: tuple[CallSummary, ...]
    splits: tuple[GasSplit, ...]
    failures: tuple[FailureGroup, ...]
    unjudged: tuple[Unjudged, ...]
    committed: tuple[CommittedCall, ...]
    warnings: tuple[str, ...]
    provenance: Provenance
    observations: pd.DataFrame = field(compare=False, repr=False)
    steps: pd.DataFrame = field(compare=False, repr=False)
    paid: pd.DataFrame = field(compare=False, repr=False)
    dates: Dates = field(compare=False, repr=False)
    verdict: tuple[Comparison, Gate] | None = field(default=None, compare=False, repr=False)

    @property
    def swept(self) -> tuple[str, ...]:
        """Labels of the calls that were searched for steps or have steps."""
        changed = set(self.changed)
        judged = {call.label for call in self.calls if call.judged}
        return tuple(dict.fromkeys(call.label for call in self.calls if call.label in judged | changed))

    @property
    def largest(self) -> tuple[StepGroup, ...]:
        """The changes, sure ones first, then by decreasing weight."""
        return tuple(sorted(self.events, key=lambda group: (not group.sure, -group.weight)))

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of all calls, in call order."""
        return tuple(dict.fromkeys(call.label for call in self.calls))

    @property
    def span(self) -> tuple[int, int] | None:
        """First and last ledger version of the judged calls; None if no call was judged."""
        judged = [call for call in self.calls if call.judged]
        if not judged:
            return None
        return min(call.first_version for call in judged), max(call.last_version for call in judged)

    @property
    def levels(self) -> pd.DataFrame:
        """Levels of committed gas, as in `toolkit.Run.levels`."""
        return frame_of_rows(LEVELS, [row for call in self.committed for row in call.rows(call.levels)])

    @property
    def changed(self) -> tuple[str, ...]:
        """Labels of the calls that changed, in call order."""
        found = {change.label for event in self.events for change in event.changes}
        return tuple(label for label in self.labels if label in found)


def build(run: Run) -> ReportData:
    """Collect the content of a report on a run.

    Parameters
    ----------
    run : Run
        The run, which may be incomplete.

    Returns
    -------
    ReportData

    Raises
    ------
    InputError
        If `run` is not a run.
    StudyError
        If a file of the run is damaged.

    Examples
    --------
    >>> import toolkit
    >>> from toolkit import reports
    >>> study = toolkit.Study(calls={"count": "0xcafe::registry::size"}, versions="3000:3001")
    >>> run = study.run(progress=False)
    >>> data = reports.build(run)
    >>> [call.label for call in data.calls], data.complete
    (['count'], True)
    """
    if not hasattr(run, "observations"):
        raise InputError(f"expected a Run, as returned by study.run() or toolkit.Run.load(folder), got {shorten(run)}")
    labels = [call.name for call in run.study.calls]
    order = {label: place for place, label in enumerate(dict.fromkeys([*labels, *run.observations["label"]]))}
    observations = _in_order(run.observations, order, "ledger_version")
    steps = _in_order(run.steps, order, "version_after")
    unjudged = run.coverage.unjudged
    rows_digest, warnings = _verified(run)
    return ReportData(
        title=run.study.title,
        run=run.path.name,
        complete=run.complete,
        events=step_groups(steps),
        calls=_calls(observations, steps, {(one.label, one.source, one.node) for one in unjudged}),
        splits=_splits(observations),
        failures=_failures(observations, steps),
        unjudged=unjudged,
        committed=run.record.committed_series if run.complete else (),
        warnings=warnings,
        provenance=provenance_of(observations, run.record, rows_digest),
        observations=observations,
        steps=steps,
        paid=_paid(observations, run.record.nodes),
        dates=_dates(observations, steps, run),
        verdict=verdict_within(run),
    )


def headline(data: ReportData, name: Renderer, prose: Renderer | None = None) -> list[str]:
    """Return the first sentences of a report: the largest change, and how many calls changed.

    Parameters
    ----------
    data : ReportData
    name : Renderer
        Escapes text from users and the chain for the output format. All other text in the sentences is safe.
    prose : Renderer, optional
        Escapes sentences that may quote such text; by default, as `name` does.

    Returns
    -------
    list of str
    """
    swept, changed, span = data.swept, data.changed, data.span
    if not swept or span is None:
        if any(one.source == Source.COMMITTED for one in data.unjudged):
            return ["Nothing was judged, so the report cannot show a gas change."]
        return ["No view returned a result at two or more ledger versions, so the report cannot show a gas change."]
    until = data.dates.of(span[1])
    dates = data.dates.between(*span) or (until and f"until {until}")
    versions = f"ledger versions {span[0]:,} to {span[1]:,}{f' ({dates})' if dates else ''}"
    if not changed:
        partly = any(call.judged and not call.all_compared for call in data.committed)
        limit = ", as far as it can be compared" if partly else ""
        calls = plural(len(swept), "call")
        return [f"No gas change was found{limit}: {calls} read at {versions}{_unjudged(data)}."]
    total, same = len(data.labels), len(swept) - len(changed)
    rest = f"; {same:,} without a change" if same else ""
    sure = {change.label for event in data.events for change in event.changes if not change.uncertain}
    unsure = f" ({len(changed) - len(sure):,} of them uncertain)" if len(sure) < len(changed) else ""
    count = f"Gas changed for {len(changed):,} of {plural(total, 'call')}{unsure} read at {versions}"
    return [sentences.lead_sentence(data.largest[0], total, name, prose), f"{count}{rest}{_unjudged(data)}."]


def _unjudged(data: ReportData) -> str:
    """Return a clause on how many calls were not searched for steps, or an empty string."""
    rest = set(data.labels).difference(data.swept)
    once = {one.label for one in data.unjudged if one.source != Source.COMMITTED} & rest
    counts = {"read only once (no history)": len(once), "not compared": len(rest - once)}
    return "".join(f"; {count:,} {what}" for what, count in counts.items() if count)


def notes(data: ReportData, name: Renderer, prose: Renderer | None = None) -> list[str]:
    """Return sentences on a report's limits: steps that are intervals, transactions not compared, calls not judged."""
    about = sentences.not_located_sentences(data.steps) + sentences.not_compared_sentences(data.committed, name)
    told = {one.label for one in data.verdict[1].not_judged} if data.verdict else set()  # the verdict has the reason
    unjudged = [one for one in data.unjudged if one.source == Source.COMMITTED or one.label not in told]
    return about + sentences.unjudged_sentences(unjudged, name, prose)


def _dates(observations: pd.DataFrame, steps: pd.DataFrame, run: Run) -> Dates:
    """Return the dates of a run's versions, or none if there are several nodes, whose dates would differ."""
    timeline = run.timeline.copy()
    for plan in run.record.nodes:
        timeline.attrs |= msgspec.to_builtins(plan.timeline or {})
    versions, seconds = known_times(observations, steps, timeline)
    alone = len(observations["node"].unique()) == 1
    real = alone and len(seconds) > 0 and sentences.date_text(datetime.fromtimestamp(seconds.min(), UTC))
    return Dates(versions, seconds) if real else Dates(versions[:0], seconds[:0])


def _verified(run: Run) -> tuple[str | None, tuple[str, ...]]:
    """Return the text to show as the digest of the rows, and a warning if the recorded digest differs."""
    stated = run.record.rows_digest
    if stated is None:
        return None, ()
    found = run.digest
    if found == stated:
        return f"{found} (computed from the rows for this report)", ()
    warning = (
        "The rows have changed since the run was completed: files of the run were added, removed or edited. Run the "
        "same study into the folder again, or do not rely on this report."
    )
    return f"{found} (run.json has {stated})", (warning,)


def _in_order(frame: pd.DataFrame, order: Mapping[str, int], version: str) -> pd.DataFrame:
    """Return rows in the order of the study's calls, then by source and version, so that equal runs look equal."""
    placed = frame.assign(_place=frame["label"].map(order))
    ordered = placed.sort_values(["_place", "source", "node", version], kind="stable", ignore_index=True)
    return ordered.drop(columns="_place")


def _calls(
    observations: pd.DataFrame, steps: pd.DataFrame, unjudged: Collection[tuple[str, str, str]]
) -> tuple[CallSummary, ...]:
    counted = steps.groupby(["label", "source"]).size().to_dict()
    several = len(observations["node"].unique()) > 1
    key = ["label", "source", "node"]
    missed = failed(observations)
    # What a failure uses says nothing of what the call costs, unless it always fails.
    always = missed.groupby([observations[name] for name in key], sort=False).transform("all")
    gas = observations["gas_used"].where(~missed | always)
    rows = observations.assign(failed=missed, gas_used=gas).groupby(key, sort=False)
    found = rows.agg(
        readings=("label", "size"),
        first_version=("ledger_version", "min"),
        last_version=("ledger_version", "max"),
        **{f"{which}_gas": ("gas_used", which) for which in ("first", "last", "min", "max")},  # the gas that is known
        failures=("failed", "sum"),
    )
    steps_of_calls = [counted.get(key[:2], 0) for key in found.index]
    found = found.assign(steps=steps_of_calls, judged=[key not in unjudged for key in found.index]).reset_index()
    return tuple(CallSummary(**row) for row in plain_rows(found if several else found.assign(node="")))


def _paid(observations: pd.DataFrame, nodes: Sequence[NodeRun]) -> pd.DataFrame:
    """Return the observations whose gas is split into parts, with ``slots_created`` if all storage prices are known."""
    paid = observations[observations["execution_gas_units"].notna()]
    committed = paid[paid["source"] == Source.COMMITTED]
    prices = {plan.node: plan.storage_prices for plan in nodes if plan.storage_prices}
    if committed.empty or not set(committed["node"]) <= prices.keys():
        return paid
    slots = pd.Series(0, index=paid.index, dtype="int64")
    for node, mine in committed.groupby("node"):
        fees = mine["storage_fee_octas"].to_numpy(np.int64)
        slots[mine.index] = slots_created(fees, prices[str(node)].at(mine["ledger_version"].to_numpy(np.int64)))
    return paid.assign(slots_created=slots)


def _splits(observations: pd.DataFrame) -> tuple[GasSplit, ...]:
    """Return the gas splits of the last simulations, up to `MAX_SPLITS`."""
    simulated = observations["execution_gas_units"].notna() & observations["source"].isin(_SIMULATED)
    rows = observations[simulated].tail(MAX_SPLITS)
    names = [entry.name for entry in fields(GasSplit)]
    absent: dict[str, Any] = {"success": False, "vm_status": ""}
    return tuple(
        GasSplit(**{name: absent.get(name, 0) if value is None else value for name, value in row.items()})
        for row in plain_rows(rows[names])
    )


def _failures(observations: pd.DataFrame, steps: pd.DataFrame) -> tuple[FailureGroup, ...]:
    lost = failures_of(observations, steps).rows
    if not lost:
        return ()
    missed = pd.concat([rows.assign(_failure=kind.value) for kind, rows in lost.items()]).sort_index(kind="stable")
    code = missed["error_code"].fillna(missed["vm_status"]).fillna("no error code")
    # Messages name what failed, so calls with different messages have separate rows; a message that differs only in
    # numbers, such as the ledger version, is the same.
    masked = {text: _NUMBER.sub("#", text) for text in missed["error_message"].dropna().unique()}
    messages = [masked.get(text, "") for text in missed["error_message"]]
    # Labels as objects: pandas 2 would turn the tuples of labels into text.
    kinds = missed.assign(_code=code, _message=messages, _label=missed["label"].astype(object))
    by = ["_failure", "_code", "_message"]
    sizes = kinds.groupby(by).size().sort_values(ascending=False, kind="stable")
    # A node can put anything into a message, so the rarer ones of a code share a row, which quotes none.
    frequent = sizes.groupby(level=[0, 1]).head(_MAX_MESSAGES).index
    rare = ~pd.MultiIndex.from_frame(kinds[by]).isin(frequent)
    kinds.loc[rare, ["_message", "error_message"]] = ["", None]
    groups = kinds.groupby(by, sort=True).agg(
        labels=("_label", lambda labels: tuple(map(str, labels.unique()))),
        status=("status", "last"),
        count=("label", "size"),
        first_version=("ledger_version", "min"),
        last_version=("ledger_version", "max"),
        example=("error_message", "last"),
    )
    names = {"_failure": "failure", "_code": "error_code"}
    rows = plain_rows(groups.reset_index().rename(columns=names).drop(columns="_message"))
    for row in rows:
        row |= {"failure": Failure(row["failure"]), "labels": tuple(row["labels"]), "example": row["example"] or ""}
    found = [FailureGroup(**row) for row in rows]
    return tuple(sorted(found, key=lambda group: (-group.count, group.error_code))[:MAX_FAILURE_GROUPS])
