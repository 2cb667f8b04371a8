"""Reads the observations that a run still lacks on one node, and finds out which are missing.

Views are read over the bulk engine in this process, or in ranges on the executor, if there is one, and so are
simulations at versions, which run on forks. Simulations at the head and pages of committed transactions are few, and
are always read in this process.
"""

from __future__ import annotations

from bisect import bisect_right
from contextlib import closing
from datetime import UTC, datetime
from itertools import islice
from math import ceil, inf, log2
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from toolkit.client._calls import PreparedView
from toolkit.client._executors import results
from toolkit.client._http import served_ledger
from toolkit.client._reads import send_all
from toolkit.client._simulation import simulate_all
from toolkit.client._versions import FindSteps, open_pairs
from toolkit.errors import ClosedError, LedgerChanged, ToolkitError
from toolkit.fork import simulate_at_versions
from toolkit.frames._columns import frame_of_rows, plain_columns
from toolkit.frames._schema import OBSERVATIONS
from toolkit.gas._observations import MADE_BY_NODE, ReadAt, Source
from toolkit.gas._steps import OUTCOME_COLUMNS
from toolkit.gas.plan._estimate import MAX_FURTHER_READS
from toolkit.gas.runs._collector import check_there, heard
from toolkit.gas.runs._committed import CommittedReader, missing_transactions
from toolkit.gas.runs._rows import Outcome, outcome_of
from toolkit.gas.runs._scan import outcomes_read, versions_read
from toolkit.move import FunctionId

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Executor

    import pandas as pd
    import pyarrow as pa
    from numpy.typing import NDArray

    from toolkit.client._node import Node
    from toolkit.client._progress import Progress
    from toolkit.gas._calls import Call
    from toolkit.gas._origin import Origin
    from toolkit.gas.plan._plan import StudySpec
    from toolkit.gas.runs._job import Job, Reading
    from toolkit.gas.runs._manifest import NodeRun
    from toolkit.wire import SimulationRequest, ViewFunction

    Versions = NDArray[np.int64]


# Minimum number of view calls in a range: a range costs a scheduler milliseconds, and a worker a connection.
MIN_RANGE = 100
# Apart, because of an embedded node only views can be read by other processes.
_AT_VERSIONS = (Source.VIEW, Source.SIMULATE_AT_VERSION)

Row = dict[str, Any]
Task = tuple["Call", int]


def observe_at_versions(node: Node, origin: Origin, tasks: Sequence[Task]) -> Iterator[Row]:
    """Run views at their versions with the bulk engine, and simulations on forks.

    Parameters
    ----------
    node : Node
    origin : Origin
        The values that all rows share.
    tasks : sequence of (Call, int)
        Calls with the ledger version to read.

    Yields
    ------
    dict
        Rows of the observation frame, in the order of the responses. A call that fails is a row with its error.
    """
    views = [task for task in tasks if task[0].source is Source.VIEW]
    ready = {call.fingerprint: PreparedView(node, cast("ViewFunction", call.request), typed=False) for call, _ in views}
    for place, outcome in send_all(node, views, lambda task: ready[task[0].fingerprint].at(task[1])):
        call, version = views[place]
        now = datetime.now(UTC)
        if isinstance(outcome, ToolkitError):
            yield origin.failed(call, version, outcome, now)
        else:
            yield origin.view(call, outcome, now)
    simulated = [task for task in tasks if task[0].source is not Source.VIEW]
    requests = [(cast("SimulationRequest", call.request), version) for call, version in simulated]
    for place, done in simulate_at_versions(node, requests):
        call, version = simulated[place]
        now = datetime.now(UTC)
        if isinstance(done, ToolkitError):
            yield origin.failed(call, version, done, now)
        else:
            yield origin.simulation(call, done, now)


def observe_elsewhere(
    executor: Executor,
    node: Node,
    origin: Origin,
    tasks: Iterable[Task],
    *,
    count: int,
    max_tasks: int,
    take: Callable[[pa.Table], Any],
) -> None:
    """Run view calls on an executor, in ranges of 100 to 1,000 calls.

    Each range runs its own bulk engine over a copy of `node` with its share of the rate and of the requests in flight.
    It returns a table, so workers need no disk and no shared folder.

    Parameters
    ----------
    executor : concurrent.futures.Executor
        Threads, processes or a cluster. `node`, `origin` and the calls are pickled, except for threads.
    node : Node
    origin : Origin
    tasks : iterable of (Call, int)
        Consumed as ranges end.
    count : int
        Number of tasks.
    max_tasks : int
        Maximum number of ranges in flight.
    take : callable
        Called in this process with the observations of each range, when it ends.

    Raises
    ------
    RunStopped
        If the executor fails, such as when a worker dies.
    LedgerChanged
        If a response comes from another chain.
    NodeUnreachable
        If the node no longer responds. The rows of the affected ranges are read again by the next attempt.
    """
    # A range that fails is read again whole, and workers end at about the same time if each has several ranges.
    size = min(1_000, max(MIN_RANGE, -(-count // (4 * max_tasks))))
    with node.with_share(max(1, min(max_tasks, -(-count // size)))) as share:
        ranges = ((share, origin, some) for some in _batches(tasks, size))
        with closing(results(executor, _observe_range, ranges, max_tasks)) as found:
            for _, table in found:
                take(table)


def _batches(tasks: Iterable[Task], size: int) -> Iterator[list[Task]]:
    waiting = iter(tasks)
    return iter(lambda: list(islice(waiting, size)), [])


def _observe_range(node: Node, origin: Origin, tasks: list[Task]) -> pa.Table:
    with node.with_share(1) as copy:  # in threads nothing is pickled, and each range needs its own sockets
        copy.expect_chain(origin.chain_id)
        for call in {call.fingerprint: call for call, _ in tasks if call.source is Source.VIEW}.values():
            learn_module(copy, call, sorted(version for other, version in tasks if other is call))
        # Otherwise calls would wait for their ABI one after the other, or every row would be a 401.
        check_there(copy, "before reading a range of calls", admitted=True)
        return OBSERVATIONS.table_of_rows(list(heard(observe_at_versions(copy, origin, tasks), copy)))


def learn_module(node: Node, call: Call, versions: Sequence[int]) -> None:
    """Read the called module over sorted versions by bisection, so that no ABI is requested at each version."""
    function = FunctionId.parse(call.function)
    node.abis.prepare(function.address, function.module, versions)


class NodeReader:
    """Reads the missing observations of every call on one node."""

    def __init__(self, reading: Reading) -> None:
        self._reading, self._job = reading, reading.job
        self._node, self._plan, self._collector = reading.node, reading.plan, reading.collector
        self._origin = reading.plan.origin
        self._read = versions_read(reading.job.store, self._origin.node)

    def read_all(self) -> None:
        """Read the missing observations of every call."""
        spec = self._job.spec
        for calls in ([call for call in spec.calls if call.source is source] for source in _AT_VERSIONS):
            if not calls:
                continue
            if spec.search is None:
                self._read_plan(calls)
            else:
                self._read_searches(calls, spec.search)
        self._read_simulations(spec.calls_read(ReadAt.HEAD))
        if spec.committed:
            CommittedReader(self._reading, self._read).read()

    # views ----------------------------------------------------------------------------------------------------

    def _read_plan(self, calls: Sequence[Call]) -> None:
        versions = self._plan.planned()
        found = sum(len(_of(call, self._read)) for call in calls)
        missing = len(calls) * len(versions) - found
        self._collector.bar.expect(missing, found=found)
        if missing:
            self._learn(calls, versions)
            planned = np.array(versions, np.int64)
            unread = ((call, planned[~np.isin(planned, _of(call, self._read))]) for call in calls)
            tasks = ((call, int(version)) for call, those in unread for version in those)
            self._read_at_versions(tasks, missing, simulated=_simulated(calls))

    def _read_searches(self, calls: Sequence[Call], search: FindSteps) -> None:
        plan = self._plan
        outcomes = outcomes_read(self._job.store, self._origin.node, [call.fingerprint for call in calls])

        def learn(row: Mapping[str, Any]) -> None:
            outcomes[row["fingerprint"]][row["ledger_version"]] = outcome_of(row[name] for name in OUTCOME_COLUMNS)

        self._collector.bar.expect(0, found=sum(map(len, outcomes.values())))
        self._learn(calls, range(plan.first, plan.last + 1))
        while tasks := [(call, at) for call in calls for at in plan.next_versions(search, outcomes[call.fingerprint])]:
            self._collector.bar.expect(len(tasks))
            self._read_at_versions(iter(tasks), len(tasks), learn, simulated=_simulated(calls))

    def _learn(self, calls: Sequence[Call], versions: Sequence[int]) -> None:
        """Read the called modules by bisection, which takes about a dozen requests and not one per version.

        On an executor, the workers do this for each range. A fork has the bytecode, and needs no module of the node.
        """
        if self._job.executor is None:
            for call in calls:
                if call.source is Source.VIEW:
                    learn_module(self._node, call, versions)

    def _read_at_versions(
        self,
        tasks: Iterator[Task],
        count: int,
        learn: Callable[[Mapping[str, Any]], None] | None = None,
        *,
        simulated: bool,
    ) -> None:
        def take(table: pa.Table) -> None:
            self._collector.take_table(table)
            if learn is not None:
                for row in table.select(["fingerprint", "ledger_version", *OUTCOME_COLUMNS]).to_pylist():
                    learn(row)

        executor = self._job.executor
        if executor is not None and not (simulated and served_ledger(self._node.url) is not None):
            most = self._job.max_tasks
            observe_elsewhere(executor, self._node, self._origin, tasks, count=count, max_tasks=most, take=take)
            return
        for block in _batches(tasks, 10_000):  # so that a long plan needs a bounded amount of memory
            for row in heard(observe_at_versions(self._node, self._origin, block), self._node):
                self._collector.take(row)
                if learn is not None:
                    learn(row)

    # simulations ----------------------------------------------------------------------------------------------

    def _read_simulations(self, calls: Sequence[Call]) -> None:
        # A simulation is of the head, so an extended run makes it again at the head of today.
        since = -1 if self._plan.extended_from is None else self._plan.extended_from
        missing = [call for call in calls if not (_of(call, self._read) > since).any()]
        self._collector.bar.expect(len(missing), found=len(calls) - len(missing))
        if not missing:
            return
        ledger = self._node.ledger()
        found = simulate_all(self._node, [cast("SimulationRequest", call.request) for call in missing], ledger)

        def rows() -> Iterator[Row]:
            for place, outcome in found:
                if isinstance(outcome, (ClosedError, LedgerChanged)):
                    raise outcome
                now = datetime.now(UTC)
                if isinstance(outcome, ToolkitError):
                    yield self._origin.failed(missing[place], ledger.version, outcome, now)
                else:
                    yield self._origin.simulation(missing[place], outcome, now)

        for row in heard(rows(), self._node):
            if row["ledger_version"] not in self._read.get(row["fingerprint"], ()):  # a lagging backend may repeat it
                self._collector.take(row)


def _simulated(calls: Sequence[Call]) -> bool:
    """Return whether calls run on forks; those of an embedded node only in the process that has its ledger."""
    return calls[0].source is not Source.VIEW


def _of(call: Call, read: Mapping[str, Versions]) -> Versions:
    return read.get(call.fingerprint, np.empty(0, np.int64))


def unread(
    job: Job, plan: NodeRun, read: Mapping[str, Versions]
) -> Iterator[tuple[Call, str, Sequence[int] | Versions]]:
    """Yield what a run lacks, or has in addition to its plan: a call, "missing" or "not in its plan", and its versions.

    Parameters
    ----------
    job : Job
    plan : NodeRun
    read : mapping of str to array
        The versions that were read, by fingerprint.
    """
    spec = job.spec
    if spec.search is None:
        planned = np.array(plan.planned(), np.int64)
        for call in spec.calls_read(ReadAt.VERSIONS):
            found = _of(call, read)
            yield call, "not in its plan", found[~np.isin(found, planned)]
            yield call, "missing", planned[~np.isin(planned, found)]
    else:
        views = spec.calls_read(ReadAt.VERSIONS)
        outcomes = outcomes_read(job.store, plan.node, [call.fingerprint for call in views])
        for call in views:
            yield call, "missing", plan.next_versions(spec.search, outcomes[call.fingerprint])
    for call in spec.calls_read(ReadAt.HEAD):
        yield call, "missing", [] if call.fingerprint in read else [plan.head]
    if spec.committed:
        for call, missing in missing_transactions(job, plan):
            yield call, "missing", missing


def further_observations(
    spec: StudySpec, node: Node, plan: NodeRun, observed: pd.DataFrame, *, bar: Progress
) -> pd.DataFrame:
    """Read views between neighbouring observations that differ, down to the transactions that caused the steps.

    The results are not observations of the run, whose rows always follow the version plan. Means and quantiles over the
    rows are therefore not biased towards steps.

    Parameters
    ----------
    spec : StudySpec
        A study with a version plan. (A step search has already read what its limit allows.)
    node : Node
    plan : NodeRun
    observed : DataFrame
        The observations on both sides of every step of all nodes, as returned by `turning_points`.
    bar : Progress

    Returns
    -------
    DataFrame
        Observations of at most 400 further versions of each call; empty if none are needed.
    """
    calls = {call.fingerprint: call for call in spec.calls_read(ReadAt.VERSIONS)}
    outcomes: dict[str, dict[int, Any]] = {mark: {} for mark in calls}
    mine = observed[observed["node"] == plan.node]
    columns = plain_columns(mine, ["fingerprint", "ledger_version", *OUTCOME_COLUMNS])
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
            if calls[mark].source is Source.VIEW:
                learn_module(node, calls[mark], versions)
        for row in heard(observe_at_versions(node, plan.origin, tasks), node):
            outcomes[row["fingerprint"]][row["ledger_version"]] = outcome_of(row[name] for name in OUTCOME_COLUMNS)
            rows.append(row)
            bar.advance(1)
    return frame_of_rows(OBSERVATIONS, rows)


def further_versions(outcomes: Mapping[int, Outcome | None], planned: Sequence[int], room: int) -> list[int]:
    """Return the versions to read next to locate the steps of a call that was read by a version plan.

    Parameters
    ----------
    outcomes : mapping of version to outcome
        The outcomes so far; None for a read without a response.
    planned : sequence of int
        The versions of the plan among them, sorted.
    room : int
        Number of further reads that are allowed.

    Returns
    -------
    list of int
        Sorted; empty if every step is located, or no further step can be located.

    Notes
    -----
    A narrower interval explains no more than a wide one, so a pair of versions is halved only if the budget allows
    halving down to adjacent versions. The narrowest pair between two versions of the plan comes first, so that a
    bisection that has begun is finished; among these, the largest changes come first. The remaining budget goes to the
    other pairs, if a call changes more than once between two versions of the plan.
    """
    waiting: dict[int, list[tuple[int, float, int]]] = {}
    for (low, high), middle in open_pairs(outcomes):
        ends = outcomes[low], outcomes[high]
        if not any(outcome and outcome[-1] in MADE_BY_NODE for outcome in ends):
            waiting.setdefault(bisect_right(planned, low), []).append((high - low, -_change_size(*ends), middle))
    first: list[tuple[float, tuple[int, float, int]]] = []
    others: list[tuple[int, float, int]] = []
    for place, pairs in waiting.items():
        # The halves of a pair differ in width by at most 1: the half that changes more is continued.
        narrow = [pair for pair in pairs if pair[0] <= min(pairs)[0] + 1]
        best = min(narrow, key=lambda pair: pair[1:])
        first.append((-_change_size(outcomes[planned[place - 1]], outcomes[planned[place]]), best))
        others += [pair for pair in pairs if pair is not best]
    chosen: list[int] = []
    for width, _, middle in [*(pair for _, pair in sorted(first)), *sorted(others)]:
        needed = ceil(log2(width))
        if needed <= room:
            chosen.append(middle)
            room -= needed
    return sorted(chosen)


def _change_size(before: Outcome | None, after: Outcome | None) -> float:
    """Return by how many gas units two outcomes differ; infinity if only one of them has gas."""
    if before is None or after is None or before[0] is None or after[0] is None:
        return inf
    return float(abs(before[0] - after[0]))
