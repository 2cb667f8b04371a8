"""Reading of the observations of a study that a run does not have yet, on one node.

Views are read on the executor, if there is one. Simulations and pages of committed transactions are few, and are
always read in this process.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from toolkit.client._simulation import simulate_all
from toolkit.errors import ClosedError, LedgerChanged, ToolkitError
from toolkit.frames._columns import plain_columns, rows_frame
from toolkit.frames._schema import OBSERVATIONS
from toolkit.gas._observations import Origin, Source, row_columns
from toolkit.gas._plan import (
    MAX_FURTHER_READS,
    WHOLE,
    Shard,
    further_versions,
    next_versions,
    planned_of,
    shard_calls,
    shard_range,
)
from toolkit.gas._steps import OUTCOME_COLUMNS
from toolkit.gas.runs._collector import heard
from toolkit.gas.runs._committed import CommittedReader, committed_calls
from toolkit.gas.runs._rows import outcome_of, outcomes_read, versions_read
from toolkit.gas.runs._views import learn_module, observe_elsewhere, observe_views

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Executor

    import pandas as pd
    import pyarrow as pa
    from numpy.typing import NDArray

    from toolkit.client._node import Node
    from toolkit.client._progress import Progress
    from toolkit.client._simulation import Simulation
    from toolkit.gas._calls import Call
    from toolkit.gas._study import Study
    from toolkit.gas.runs._collector import Collector
    from toolkit.gas.runs._store import RunStore
    from toolkit.wire import SimulationRequest


_BLOCK = 10_000
"""Number of calls that are listed at once, to bound the memory of a long plan."""

Task = tuple["Call", int]


@dataclass(frozen=True, slots=True)
class Where:
    """Which part of a study is read, and where.

    Attributes
    ----------
    executor : Executor or None
        None reads views in this process.
    max_tasks : int
        Maximum number of ranges in flight on the executor.
    shard : Shard
    """

    executor: Executor | None = None
    max_tasks: int = 8
    shard: Shard = WHOLE


class NodeReader:
    """Reads the missing observations of every call on one node.

    Parameters
    ----------
    study : Study
    node : Node
    plan : mapping
        The study as resolved on that node.
    store : RunStore
        Contains the observations of earlier attempts.
    collector : Collector
        Stores the observations.
    where : Where
    note : callable
        Called with the entry of `CommittedRead` after the rows of some pages were written.
    """

    def __init__(
        self,
        study: Study,
        node: Node,
        plan: Mapping[str, Any],
        *,
        store: RunStore,
        collector: Collector,
        where: Where,
        note: Callable[[dict[str, Any]], None],
    ) -> None:
        self._study = study
        self._node = node
        self._plan = plan
        self._store = store
        self._collector = collector
        self._where = where
        self._note = note
        self._origin = Origin(plan["node"], plan["node_build"], plan["model"], plan["chain_id"])
        self._known = versions_read(store, self._origin.node)

    def read_all(self) -> None:
        """Read the missing observations of every call."""
        shard = self._where.shard
        if self._study.versions.search is None:
            self._read_plan([call for call in self._study.calls if call.source == Source.VIEW])
        else:
            self._read_searches(shard_calls(self._study, shard, Source.VIEW))
        self._read_simulations(shard_calls(self._study, shard, Source.SIMULATE))
        self._read_committed(committed_calls(self._study))

    def _found(self, call: Call) -> NDArray[np.uint64]:
        return self._known.get(call.fingerprint, np.empty(0, np.uint64))

    # views ----------------------------------------------------------------------------------------------------

    def _read_plan(self, calls: Sequence[Call]) -> None:
        versions = planned_of(self._plan, self._where.shard)
        found = sum(len(self._found(call)) for call in calls)
        missing = len(calls) * len(versions) - found
        self._collector.bar.expect(missing, found=found)
        if missing:
            self._learn(calls, versions)
            self._read_views((task for call in calls for task in self._missing(call, versions)), missing)

    def _missing(self, call: Call, versions: Sequence[int]) -> Iterator[Task]:
        """Yield the planned versions of a call that have not been read yet, listed block by block."""
        found = self._found(call)
        for start in range(0, len(versions), _BLOCK):
            block = np.array(versions[start : start + _BLOCK], np.uint64)
            low, high = np.searchsorted(found, block[[0, -1]])  # both are sorted, so a slice is enough
            yield from ((call, version) for version in block[~np.isin(block, found[low : high + 1])].tolist())

    def _read_searches(self, calls: Sequence[Call]) -> None:
        marks = [call.fingerprint for call in calls]
        outcomes = outcomes_read(self._store, self._origin.node, marks)

        def learn(row: Mapping[str, Any]) -> None:
            outcome = outcome_of(row[name] for name in OUTCOME_COLUMNS)
            outcomes[row["fingerprint"]][row["ledger_version"]] = outcome

        self._collector.bar.expect(0, found=sum(map(len, outcomes.values())))
        self._learn(calls, range(self._plan["first"], self._plan["last"] + 1))
        while tasks := [
            (call, version)
            for call in calls
            for version in next_versions(self._study, self._plan, outcomes[call.fingerprint])
        ]:
            self._collector.bar.expect(len(tasks))
            self._read_views(iter(tasks), len(tasks), learn)

    def _learn(self, calls: Sequence[Call], versions: Sequence[int]) -> None:
        """Read the called modules by bisection, which takes about a dozen requests and not one per version.

        On an executor, the workers do this for each range.
        """
        if self._where.executor is None:
            for call in calls:
                learn_module(self._node, call, versions)

    def _read_views(
        self, tasks: Iterator[Task], count: int, learn: Callable[[Mapping[str, Any]], None] | None = None
    ) -> None:
        if self._where.executor is not None:
            self._read_elsewhere(self._where.executor, tasks, count, learn)
            return
        while block := list(islice(tasks, _BLOCK)):
            for row in heard(observe_views(self._node, self._origin, block), self._node):
                self._collector.take(row)
                if learn is not None:
                    learn(row)

    def _read_elsewhere(
        self,
        executor: Executor,
        tasks: Iterable[Task],
        count: int,
        learn: Callable[[Mapping[str, Any]], None] | None,
    ) -> None:
        def take(table: pa.Table) -> None:
            self._collector.take_table(table)
            if learn is not None:
                for row in table.select(["fingerprint", "ledger_version", *OUTCOME_COLUMNS]).to_pylist():
                    learn(row)

        most = self._where.max_tasks
        observe_elsewhere(executor, self._node, self._origin, tasks, count=count, max_tasks=most, take=take)

    # simulations ----------------------------------------------------------------------------------------------

    def _read_simulations(self, calls: Sequence[Call]) -> None:
        # A simulation is of the head, so an extended run makes it again at the head of today.
        since = self._plan.get("extended_from", -1)
        missing = [call for call in calls if not (self._found(call) > since).any()]
        self._collector.bar.expect(len(missing), found=len(calls) - len(missing))
        if not missing:
            return
        ledger = self._node.ledger()
        requests = [cast("SimulationRequest", call.request) for call in missing]
        found = simulate_all(self._node, requests, ledger)
        rows = (self._simulation_row(missing[place], outcome, ledger.version) for place, outcome in found)
        for row in heard(rows, self._node):
            if row["ledger_version"] not in self._known.get(row["fingerprint"], ()):  # a lagging backend may repeat it
                self._collector.take(row)

    def _simulation_row(self, call: Call, outcome: Simulation | ToolkitError, head: int) -> dict[str, Any]:
        now = datetime.now(UTC)
        if isinstance(outcome, (ClosedError, LedgerChanged)):
            raise outcome
        if isinstance(outcome, ToolkitError):
            return self._origin.failed(
                call.name, call.fingerprint, Source.SIMULATE, head, error=outcome, observed_at=now
            )
        return self._origin.simulation(call.name, call.fingerprint, outcome, now)

    # committed transactions -----------------------------------------------------------------------------------

    def _read_committed(self, calls: Sequence[Call]) -> None:
        if calls and shard_range(self._plan, self._where.shard):
            CommittedReader(
                calls,
                self._node,
                self._origin,
                self._plan,
                store=self._store,
                collector=self._collector,
                shard=self._where.shard,
                known=self._known,
                note=self._note,
            ).read()


def further_observations(
    study: Study, node: Node, plan: Mapping[str, Any], observed: pd.DataFrame, *, bar: Progress
) -> pd.DataFrame:
    """Read views between neighbouring observations that differ, down to the transactions that made the steps.

    They are not observations of the run: its rows are those of the version plan, whatever they show, so that means and
    quantiles over them are not weighted by the steps.

    Parameters
    ----------
    study : Study
        With a version plan; a step search has read what its limit allows.
    node : Node
    plan : mapping
        The study as resolved on that node.
    observed : DataFrame
        The observations on both sides of every step of all nodes, as `turning_points` returns them.
    bar : Progress

    Returns
    -------
    DataFrame
        Observations of at most 400 further versions of each call; empty if none are needed.
    """
    origin = Origin(plan["node"], plan["node_build"], plan["model"], plan["chain_id"])
    calls = {call.fingerprint: call for call in study.calls if call.source == Source.VIEW}
    outcomes: dict[str, dict[int, Any]] = {mark: {} for mark in calls}
    columns = plain_columns(
        observed[observed["node"] == origin.node], ["fingerprint", "ledger_version", *OUTCOME_COLUMNS]
    )
    for mark, version, *outcome in zip(*columns.values(), strict=True):
        outcomes[mark][version] = outcome_of(outcome)
    planned = {mark: sorted(known) for mark, known in outcomes.items()}
    rows: list[dict[str, Any]] = []
    while wanted := {
        mark: versions
        for mark, known in outcomes.items()
        if (versions := further_versions(known, planned[mark], len(planned[mark]) + MAX_FURTHER_READS - len(known)))
    }:
        tasks = [(calls[mark], version) for mark, versions in wanted.items() for version in versions]
        bar.expect(len(tasks))
        for mark, versions in wanted.items():
            learn_module(node, calls[mark], versions)
        for row in heard(observe_views(node, origin, tasks), node):
            outcomes[row["fingerprint"]][row["ledger_version"]] = outcome_of(row[name] for name in OUTCOME_COLUMNS)
            rows.append(row)
            bar.advance(1)
    return rows_frame(OBSERVATIONS, row_columns(rows))
