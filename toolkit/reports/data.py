"""What a report says, as frozen data built from a run. Knows nothing of HTML, Markdown or JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log
from typing import TYPE_CHECKING, Any, Protocol

from toolkit.dtypes import to_arrow
from toolkit.gas.judged import COVERAGE_COLUMNS, Unjudged, coverage_of
from toolkit.plots.changes import told
from toolkit.plots.series import records, require
from toolkit.reports.provenance import Provenance, provenance_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    import pandas as pd

__all__ = [
    "CallSummary",
    "Change",
    "Event",
    "FailureGroup",
    "GasSplit",
    "ReportData",
    "RunLike",
    "build",
]

OBSERVATION_COLUMNS = (
    "label",
    "source",
    "node",
    "ledger_version",
    "gas_used",
    "success",
    "vm_status",
    "status",
    "error_code",
    "error_message",
)
MOST_FAILURE_GROUPS = 50
MOST_SPLITS = 200
NEW_CALL = 0.25
"""Size of a call that starts to answer: worth telling, but nothing got dearer by it."""


class CallLike(Protocol):
    """A call of a study."""

    @property
    def name(self) -> str:
        """The call as people name it: its label in the frames."""


class StudyLike(Protocol):
    """What a report reads of a study."""

    @property
    def title(self) -> str:
        """Title of the study."""

    @property
    def calls(self) -> Sequence[CallLike]:
        """Calls, in the order they are reported."""


class RunLike(Protocol):
    """What a report reads of a run; `toolkit.Run` is one."""

    @property
    def observations(self) -> pd.DataFrame:
        """The observation frame."""

    @property
    def steps(self) -> pd.DataFrame:
        """The step frame."""

    @property
    def study(self) -> StudyLike:
        """The study that was run."""

    @property
    def manifest(self) -> Mapping[str, Any]:
        """What ``run.json`` says: digests, counts, environment, times, ``complete``."""

    @property
    def path(self) -> Path:
        """Folder of the run."""

    @property
    def digest(self) -> str:
        """Digest of the rows, computed from the rows themselves."""


@dataclass(frozen=True)
class Change:
    """One change of one call, or one stretch of a drift.

    Attributes
    ----------
    label, source : str
        As in the observation frame.
    count : int
        Steps told as this one; more than 1 for a stretch of a drift.
    gas_before, gas_after : int or None
        Gas units; None where the call failed.
    error_before, error_after : str or None
        Error code where it failed.
    """

    label: str
    source: str
    count: int
    gas_before: int | None
    gas_after: int | None
    error_before: str | None
    error_after: str | None

    @property
    def size(self) -> float:
        """How much it is, to order changes by: log of the ratio; a call that stops answering counts as fourfold."""
        if self.gas_before is None:
            return NEW_CALL if self.gas_after is not None else 0.0
        if self.gas_after is None:
            return log(4)
        return abs(log(max(self.gas_after, 1) / max(self.gas_before, 1)))


@dataclass(frozen=True)
class Event:
    """Changes that happened at one place of the ledger for one cause.

    Attributes
    ----------
    version_before, version_after : int
        Last version with the old outcome and first with the new one, of those read.
    exact : bool
        True where the two are adjacent: the transaction at `version_after` is the cause.
    cause, explanation : str
        Kind of cause; plain words.
    transaction_hash : str or None
        Of the transaction at `version_after`, where it was read.
    changes : tuple of Change
        Largest first.
    """

    version_before: int
    version_after: int
    exact: bool
    cause: str
    explanation: str
    transaction_hash: str | None
    changes: tuple[Change, ...]

    @property
    def weight(self) -> float:
        """How much it matters, to choose what is told first: the sizes of its changes together."""
        return sum(change.size for change in self.changes)


@dataclass(frozen=True)
class CallSummary:
    """One call from one source: its gas (units; None if never answered), steps and failures.

    `judged` is False if steps of the call are not looked for, so that 0 steps says nothing about it.
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
    """What the gas of one transaction was spent on: units, octas, octas per unit, as the FeeStatement has them."""

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
        """Storage fee in gas units at the transaction's price; 0 at price 0, where nothing is charged."""
        return self.storage_fee_octas / self.gas_unit_price if self.gas_unit_price else 0.0

    @property
    def fee_octas(self) -> int:
        """Gas used times price, octas."""
        return self.gas_used * self.gas_unit_price

    @property
    def net_octas(self) -> int:
        """Fee less the storage refund, octas; negative where more comes back than was paid."""
        return self.fee_octas - self.storage_fee_refund_octas


@dataclass(frozen=True)
class FailureGroup:
    """Readings that failed the same way.

    Attributes
    ----------
    error_code : str
        The node's error code; for a failed execution its VM status.
    executed : bool
        True where the node ran the call and the execution failed.
    status : int or None
        HTTP status.
    labels : tuple of str
        Calls concerned.
    count, first_version, last_version : int
        Readings; ledger versions.
    example : str
        The last message.
    """

    error_code: str
    executed: bool
    status: int | None
    labels: tuple[str, ...]
    count: int
    first_version: int
    last_version: int
    example: str


@dataclass(frozen=True)
class ReportData:
    """All a report says. `observations` and `steps` are the frames themselves, for figures and CSV."""

    title: str
    run: str
    complete: bool
    events: tuple[Event, ...]
    calls: tuple[CallSummary, ...]
    splits: tuple[GasSplit, ...]
    failures: tuple[FailureGroup, ...]
    unjudged: tuple[Unjudged, ...]
    warnings: tuple[str, ...]
    provenance: Provenance
    observations: pd.DataFrame = field(compare=False, repr=False)
    steps: pd.DataFrame = field(compare=False, repr=False)

    @property
    def swept(self) -> tuple[str, ...]:
        """Labels of the calls that were judged for steps, and of those that have some."""
        changed = set(self.changed)
        judged = {call.label for call in self.calls if call.judged}
        return tuple(dict.fromkeys(call.label for call in self.calls if call.label in judged | changed))

    @property
    def span(self) -> tuple[int, int] | None:
        """First and last ledger version of the calls that were judged; None if none was."""
        judged = [call for call in self.calls if call.judged]
        if not judged:
            return None
        return min(call.first_version for call in judged), max(call.last_version for call in judged)

    def weightiest(self, most: int) -> tuple[Event, ...]:
        """Return at most `most` events, those that matter most, in order of versions."""
        chosen = sorted(self.events, key=lambda event: -event.weight)[:most]
        return tuple(sorted(chosen, key=lambda event: (event.version_before, event.version_after)))

    @property
    def changed(self) -> tuple[str, ...]:
        """Labels of the calls that changed, in order of calls."""
        found = {change.label for event in self.events for change in event.changes}
        return tuple(label for label in dict.fromkeys(c.label for c in self.calls) if label in found)


def build(run: RunLike) -> ReportData:
    """Gather what a report says from a run.

    Parameters
    ----------
    run : RunLike
        A `toolkit.Run`, complete or not.

    Returns
    -------
    ReportData

    Raises
    ------
    SchemaError
        If a frame of the run lacks a column.
    """
    require(run.observations, OBSERVATION_COLUMNS, what="reports")
    labels = [call.name for call in run.study.calls]
    order = {label: place for place, label in enumerate(dict.fromkeys([*labels, *run.observations["label"]]))}
    observations = _in_order(run.observations, order, "ledger_version")
    steps = _in_order(run.steps, order, "version_after")
    unjudged = coverage_of([to_arrow(observations[list(COVERAGE_COLUMNS)])]).unjudged
    manifest, warnings = _verified(run)
    return ReportData(
        title=str(run.study.title),
        run=run.path.name,
        complete=bool(run.manifest.get("complete", True)),
        events=_events(steps),
        calls=_calls(observations, steps, {(one.label, one.source, one.node) for one in unjudged}),
        splits=_splits(observations),
        failures=_failures(observations),
        unjudged=unjudged,
        warnings=warnings,
        provenance=provenance_of(observations, manifest),
        observations=observations,
        steps=steps,
    )


def _verified(run: RunLike) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Return the manifest with the digest of the rows as they are now, and what is wrong if it is another one."""
    stated = run.manifest.get("rows_digest")
    if stated is None:
        return run.manifest, ()
    found = run.digest
    if found == stated:
        return dict(run.manifest) | {"rows_digest": f"{found} (computed from the rows for this report)"}, ()
    warning = (
        "The rows are not those that the run was completed with: parts were added, removed or changed since. Run the "
        "same study into the folder again, or do not rely on this report."
    )
    return dict(run.manifest) | {"rows_digest": f"{found} (run.json has {stated})"}, (warning,)


def _in_order(frame: pd.DataFrame, order: Mapping[str, int], version: str) -> pd.DataFrame:
    """Rows by call of the study, source and version, so that equal runs give equal reports."""
    place = frame["label"].map(order).fillna(len(order)).astype("int64")
    by = [name for name in ("label", "source", "node", version) if name in frame.columns]
    ordered = frame.assign(_place=place).sort_values(["_place", *by], kind="stable")
    return ordered.drop(columns="_place").reset_index(drop=True)


def _events(steps: pd.DataFrame) -> tuple[Event, ...]:
    grouped: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in records(told(steps)):
        place = row["version_before"], row["version_after"], row["cause"] or "unknown"
        # Stretches of two drifts may share their ends without sharing anything else.
        own = row["label"] if row["count"] > 1 else ""
        grouped.setdefault((*place, own), []).append(row)
    events = [_event(rows) for rows in grouped.values()]
    return tuple(sorted(events, key=lambda event: (event.version_before, event.version_after, event.cause)))


def _event(rows: Sequence[Mapping[str, Any]]) -> Event:
    first = rows[0]
    changes = [
        Change(
            label=row["label"],
            source=row.get("source") or "view@version",
            count=row["count"],
            gas_before=row["gas_before"],
            gas_after=row["gas_after"],
            error_before=row.get("error_before"),
            error_after=row.get("error_after"),
        )
        for row in rows
    ]
    explanation = next((row["explanation"] for row in rows if row.get("explanation")), "")
    return Event(
        version_before=first["version_before"],
        version_after=first["version_after"],
        exact=bool(first["exact"]),
        cause=first["cause"] or "unknown",
        explanation=("largest step: " if first["count"] > 1 and explanation else "") + explanation,
        transaction_hash=first.get("transaction_hash"),
        changes=tuple(sorted(changes, key=lambda change: -change.size)),
    )


def _calls(
    observations: pd.DataFrame, steps: pd.DataFrame, unjudged: Collection[tuple[str, str, str]]
) -> tuple[CallSummary, ...]:
    counted = steps.groupby(["label", "source"]).size().to_dict() if len(steps) else {}
    several = len(observations["node"].unique()) > 1
    return tuple(
        _call(
            rows,
            str(label),
            str(source),
            str(node) if several else "",
            steps=counted.get((label, source), 0),
            judged=(label, source, node) not in unjudged,
        )
        for (label, source, node), rows in observations.groupby(["label", "source", "node"], sort=False)
    )


def _call(rows: pd.DataFrame, label: str, source: str, node: str, *, steps: int, judged: bool) -> CallSummary:
    gas = rows["gas_used"].dropna()
    known = len(gas) > 0
    failed = rows["gas_used"].isna() | ~rows["success"].fillna(value=False).astype(bool)
    return CallSummary(
        label=label,
        source=source,
        node=node,
        readings=len(rows),
        first_version=int(rows["ledger_version"].min()),
        last_version=int(rows["ledger_version"].max()),
        first_gas=int(gas.iloc[0]) if known else None,
        last_gas=int(gas.iloc[-1]) if known else None,
        min_gas=int(gas.min()) if known else None,
        max_gas=int(gas.max()) if known else None,
        steps=steps,
        failures=int(failed.sum()),
        judged=judged,
    )


def _splits(observations: pd.DataFrame) -> tuple[GasSplit, ...]:
    """Every simulation's split (of each call the last ones, should there be very many)."""
    if "execution_gas_units" not in observations.columns:
        return ()
    rows = observations[observations["execution_gas_units"].notna() & (observations["source"] == "simulate@now")]
    return tuple(
        GasSplit(
            label=row["label"],
            source=row["source"],
            ledger_version=row["ledger_version"],
            success=bool(row["success"]),
            vm_status=row["vm_status"] or "",
            gas_used=row["gas_used"] or 0,
            execution_gas_units=row["execution_gas_units"],
            io_gas_units=row["io_gas_units"] or 0,
            storage_fee_octas=row["storage_fee_octas"] or 0,
            storage_fee_refund_octas=row["storage_fee_refund_octas"] or 0,
            gas_unit_price=row["gas_unit_price"] or 0,
        )
        for row in records(rows.tail(MOST_SPLITS))
    )


def _failures(observations: pd.DataFrame) -> tuple[FailureGroup, ...]:
    failed = observations[observations["gas_used"].isna() | ~observations["success"].fillna(value=False).astype(bool)]
    if failed.empty:
        return ()
    executed = failed["error_code"].isna() & failed["gas_used"].notna()
    code = failed["error_code"].where(~executed, failed["vm_status"]).fillna("no error code")
    groups = failed.assign(_executed=executed, _code=code).groupby(["_executed", "_code"], sort=True)
    found = [_failure(rows, str(key[1]), executed=bool(key[0])) for key, rows in groups]
    return tuple(
        sorted(found, key=lambda group: (group.executed, -group.count, group.error_code))[:MOST_FAILURE_GROUPS]
    )


def _failure(rows: pd.DataFrame, code: str, *, executed: bool) -> FailureGroup:
    messages, statuses = rows["error_message"].dropna(), rows["status"].dropna()
    return FailureGroup(
        error_code=code,
        executed=executed,
        status=int(statuses.iloc[-1]) if len(statuses) else None,
        labels=tuple(str(label) for label in rows["label"].unique()),
        count=len(rows),
        first_version=int(rows["ledger_version"].min()),
        last_version=int(rows["ledger_version"].max()),
        example=str(messages.iloc[-1]) if len(messages) else "",
    )
