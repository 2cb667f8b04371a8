"""Reads the observations that a run still lacks on one node, and finds out which are missing.

Views are read over the bulk engine in this process, or in ranges on the executor, if there is one, and so are
simulations at versions, which run on forks. Simulations at the head and pages of committed transactions are few, and
are always read in this process.
"""

from __future__ import annotations

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
from toolkit.client._versions import open_pairs
from toolkit.errors import ClosedError, LedgerChanged, ToolkitError
from toolkit.frames._schema import OBSERVATIONS
from toolkit.gas._observations import MADE_BY_NODE, ReadAt, Source
from toolkit.gas._steps import OUTCOME_COLUMNS, Outcome, outcome_of
from toolkit.gas.plan._estimate import MAX_FURTHER_READS
from toolkit.gas.plan._plan import calls_read
from toolkit.gas.runs._collector import check_there, heard
from toolkit.gas.runs._committed import CommittedReader, missing_transactions
from toolkit.gas.runs._scan import outcomes_read, versions_read
from toolkit.move import FunctionId

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Executor

    import pyarrow as pa
    from numpy.typing import NDArray

    from toolkit.client._node import Node
    from toolkit.client._progress import Progress
    from toolkit.gas._calls import Call
    from toolkit.gas._origin import Origin
    from toolkit.gas._steps import Step
    from toolkit.gas._study import Study
    from toolkit.gas.runs._collector import Collector
    from toolkit.gas.runs._manifest import NodeRun
    from toolkit.gas.runs._store import Job
    from toolkit.wire import SimulationRequest, ViewFunction

    Outcomes = dict[str, dict[int, Outcome | None]]
    Versions = NDArray[np.int64]


# Minimum number of view calls in a range: a range costs a scheduler milliseconds, and a worker a connection.
MIN_RANGE = 100
# Calls that are read together in this process, so that a long plan needs a bounded amount of memory.
_MAX_BLOCK = 10_000

Row = dict[str, Any]
Task = tuple["Call", int]


# one call at one version ----------------------------------------------------------------------------------------------


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
    simulated = [task for task in tasks if task[0].source is not Source.VIEW]
    ready = {call.fingerprint: PreparedView(node, cast("ViewFunction", call.request), typed=False) for call, _ in views}
    answers = send_all(node, views, lambda task: ready[task[0].fingerprint].at(task[1]))
    yield from _rows_of(origin, views, answers, origin.view)
    if not simulated:  # forks import the machine
        return
    requests = [(cast("SimulationRequest", call.request), version) for call, version in simulated]
    yield from _rows_of(origin, simulated, node.simulations_at(requests), origin.simulation)


def _rows_of(
    origin: Origin,
    tasks: Sequence[Task],
    outcomes: Iterable[tuple[int, Any]],
    row_of: Callable[[Call, Any, datetime], Row],
) -> Iterator[Row]:
    """Yield the row of each outcome, which names its task by position."""
    for place, outcome in outcomes:
        call, version = tasks[place]
        if isinstance(outcome, ClosedError | LedgerChanged):
            raise outcome
        if isinstance(outcome, ToolkitError):
            yield origin.failed(call, version, outcome, datetime.now(UTC))
        else:
            yield row_of(call, outcome, datetime.now(UTC))


def learn_module(node: Node, call: Call, versions: Sequence[int]) -> None:
    """Read the module of a view over sorted versions by bisection, so that no ABI is requested at each version.

    A fork has the bytecode, so a simulation needs no module of the node.
    """
    if versions and call.source is Source.VIEW:
        function = FunctionId.parse(call.function)
        node.abis.prepare(function.address, function.module, versions)


# on an executor -------------------------------------------------------------------------------------------------------


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
        for call in {call.fingerprint: call for call, _ in tasks}.values():
            learn_module(copy, call, sorted(version for other, version in tasks if other is call))
        # Otherwise calls would wait for their ABI one after the other, or every row would be a 401.
        check_there(copy, "before reading a range of calls", admitted=True)
        return OBSERVATIONS.table_of_rows(list(heard(observe_at_versions(copy, origin, tasks), copy)))


# what a run lacks -----------------------------------------------------------------------------------------------------


class NodeReader:
    """Reads the missing observations of every call on one node."""

    def __init__(self, job: Job, node: Node, plan: NodeRun, collector: Collector) -> None:
        self._job, self._node, self._plan, self._collector = job, node, plan, collector
        self._read = versions_read(job.store, plan.node)

    def read_all(self) -> None:
        """Read the missing observations of every call."""
        study = self._job.study
        for source in (Source.VIEW, Source.SIMULATE_AT_VERSION):
            self._read_at_versions([call for call in study.calls if call.source is source])
        self._read_simulations(calls_read(study, ReadAt.HEAD))
        if calls_read(study, ReadAt.TRANSACTIONS):
            CommittedReader(self._job, self._node, self._plan, self._collector, self._read).read()

    def _read_at_versions(self, calls: Sequence[Call]) -> None:
        """Read calls of one source at the versions of the plan, or of one round of their step search after another."""
        job, plan, bar = self._job, self._plan, self._collector.bar
        bar.expect(0, found=sum(len(self._read.get(call.fingerprint, ())) for call in calls))
        searching = job.study.versions.search is not None
        outcomes = search_outcomes(job, plan, calls)
        missing = versions_unread(job, plan, calls, self._read, outcomes)
        if job.executor is None:  # on an executor, the workers read the modules of each range
            for call, _ in missing:
                learn_module(self._node, call, plan.whole if searching else plan.planned())
        while missing:
            count = sum(len(versions) for _, versions in missing)
            bar.expect(count)
            tasks = ((call, int(version)) for call, versions in missing for version in versions)
            self._read_tasks(calls[0].source, tasks, count, outcomes)
            missing = versions_unread(job, plan, calls, self._read, outcomes) if searching else []

    def _read_tasks(self, source: Source, tasks: Iterator[Task], count: int, outcomes: Outcomes) -> None:
        """Read calls of one source at versions, and add what they return to the `outcomes` of a step search."""
        searching = self._job.study.versions.search is not None

        def take(table: pa.Table) -> None:
            self._collector.take_table(table)
            if searching:
                _add(outcomes, table.select(["fingerprint", "ledger_version", *OUTCOME_COLUMNS]).to_pylist())

        executor, origin = self._job.executor, self._plan.origin
        # A fork of an embedded node needs its ledger, which is in this process only.
        if executor is not None and (source is Source.VIEW or served_ledger(self._node.url) is None):
            most = self._job.max_tasks
            observe_elsewhere(executor, self._node, origin, tasks, count=count, max_tasks=most, take=take)
            return
        for block in _batches(tasks, _MAX_BLOCK):
            for row in heard(observe_at_versions(self._node, origin, block), self._node):
                self._collector.take(row)
                if searching:
                    _add(outcomes, [row])

    def _read_simulations(self, calls: Sequence[Call]) -> None:
        # A simulation is of the head, so an extended run makes it again at the head of today.
        since = -1 if self._plan.extended_from is None else self._plan.extended_from
        missing = [call for call in calls if not (_versions_of(call, self._read) > since).any()]
        self._collector.bar.expect(len(missing), found=len(calls) - len(missing))
        if not missing:
            return
        ledger = self._node.ledger()
        requests = [cast("SimulationRequest", call.request) for call in missing]
        found = simulate_all(self._node, requests, ledger)
        origin = self._plan.origin
        rows = _rows_of(origin, [(call, ledger.version) for call in missing], found, origin.simulation)
        for row in heard(rows, self._node):
            if row["ledger_version"] not in self._read.get(row["fingerprint"], ()):  # a lagging backend may repeat it
                self._collector.take(row)


def _versions_of(call: Call, read: Mapping[str, Versions]) -> Versions:
    return read.get(call.fingerprint, np.empty(0, np.int64))


def search_outcomes(job: Job, plan: NodeRun, calls: Sequence[Call]) -> Outcomes:
    """Return the stored results of the step search of each call; empty for a version plan."""
    marks = [call.fingerprint for call in calls]
    return outcomes_read(job.store, plan.node, marks) if job.study.versions.search is not None and marks else {}


def versions_unread(
    job: Job, plan: NodeRun, calls: Sequence[Call], read: Mapping[str, Versions], outcomes: Outcomes
) -> list[tuple[Call, Sequence[int] | Versions]]:
    """Return the calls that lack versions of the plan, or of the next round of their step search, with these."""
    missing: list[tuple[Call, Sequence[int] | Versions]]
    if (search := job.study.versions.search) is not None:
        missing = [(call, plan.next_versions(search, outcomes[call.fingerprint])) for call in calls]
    else:
        planned = np.array(plan.planned(), np.int64)
        missing = [(call, planned[~np.isin(planned, _versions_of(call, read))]) for call in calls]
    return [(call, versions) for call, versions in missing if len(versions)]


def _add(outcomes: Outcomes, rows: Iterable[Row]) -> None:
    for row in rows:
        outcomes[row["fingerprint"]][row["ledger_version"]] = outcome_of(row[name] for name in OUTCOME_COLUMNS)


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
    calls = calls_read(job.study, ReadAt.VERSIONS)
    outcomes = search_outcomes(job, plan, calls)
    for call, missing in versions_unread(job, plan, calls, read, outcomes):
        yield call, "missing", missing
    for call in calls if job.study.versions.search is None else ():
        found = _versions_of(call, read)
        yield call, "not in its plan", found[~np.isin(found, plan.planned())]
    for call in calls_read(job.study, ReadAt.HEAD):
        yield call, "missing", [] if call.fingerprint in read else [plan.head]
    for call, missing in missing_transactions(job, plan):
        yield call, "missing", missing


# between the versions of a plan ---------------------------------------------------------------------------------------


def further_observations(study: Study, node: Node, plan: NodeRun, steps: Iterable[Step], *, bar: Progress) -> list[Row]:
    """Read views between the ends of steps, down to the transactions that caused the steps.

    The results are not observations of the run, whose rows always follow the version plan. Means and quantiles over the
    rows are therefore not biased towards steps.

    Parameters
    ----------
    study : Study
        A study with a version plan. (A step search has already read what its limit allows.)
    node : Node
    plan : NodeRun
    steps : iterable of Step
        The steps between the observations of all nodes.
    bar : Progress

    Returns
    -------
    list of dict
        Observations of at most 400 further versions of each call; empty if none are needed.
    """
    calls = {call.fingerprint: call for call in calls_read(study, ReadAt.VERSIONS)}
    outcomes: Outcomes = {mark: {} for mark in calls}
    for step in steps:
        if step.node == plan.node:
            outcomes[step.fingerprint] |= step.outcomes
    most = {mark: len(known) + MAX_FURTHER_READS for mark, known in outcomes.items()}
    rows: list[Row] = []
    while True:
        tasks: list[Task] = []
        for mark, known in outcomes.items():
            versions = further_versions(known, most[mark] - len(known))
            learn_module(node, calls[mark], versions)
            tasks += [(calls[mark], version) for version in versions]
        if not tasks:
            return rows
        bar.expect(len(tasks))
        for row in heard(observe_at_versions(node, plan.origin, tasks), node):
            _add(outcomes, [row])
            rows.append(row)
            bar.advance(1)


def further_versions(outcomes: Mapping[int, Outcome | None], room: int) -> list[int]:
    """Return the versions to read next to locate the steps of a call that was read by a version plan.

    Parameters
    ----------
    outcomes : mapping of version to outcome
        The outcomes so far; None for a read without a response.
    room : int
        Number of further reads that are allowed.

    Returns
    -------
    list of int
        Sorted; empty if every step is located, or no further step can be located.

    Notes
    -----
    A narrower interval explains no more than a wide one, so a pair of versions is halved only if the budget allows
    halving down to adjacent versions. The narrowest pairs come first, so that a bisection that has begun is finished;
    among pairs that take as many reads, the largest changes come first.
    """
    waiting: list[tuple[int, float, int]] = []
    for (low, high), middle in open_pairs(outcomes):
        before, after = outcomes[low], outcomes[high]
        if not any(outcome and outcome[-1] in MADE_BY_NODE for outcome in (before, after)):
            waiting.append((ceil(log2(high - low)), -_change_size(before, after), middle))
    chosen: list[int] = []
    for needed, _, middle in sorted(waiting):
        if needed <= room:
            chosen.append(middle)
            room -= needed
    return sorted(chosen)


def _change_size(before: Outcome | None, after: Outcome | None) -> float:
    """Return by how many gas units two outcomes differ; infinity if only one of them has gas."""
    if before is None or after is None or before[0] is None or after[0] is None:
        return inf
    return float(abs(before[0] - after[0]))
