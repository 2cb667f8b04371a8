"""Reads everything one node has to answer for a study, as far as it is not in the run already.

Views go where the executor puts them. Simulations and pages of committed transactions are read in this process:
there are few of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from toolkit.client.bulk import run_many
from toolkit.errors import ClosedError, ToolkitError
from toolkit.gas.observing import COMMITTED, SIMULATE, VIEW, Origin
from toolkit.gas.planning import committed_pages, committed_range, planned_versions
from toolkit.gas.runs.observers import learn_module, observe_elsewhere, observe_views
from toolkit.gas.runs.scan import Outcome, outcome_of, outcomes_read, versions_read
from toolkit.gas.runs.shards import WHOLE, Shard
from toolkit.gas.runs.silence import heard
from toolkit.gas.search import next_round
from toolkit.gas.steps import OUTCOME_COLUMNS
from toolkit.move.ids import FunctionId
from toolkit.wire.requests import SimulationRequest
from toolkit.wire.rows import transaction_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Executor

    import pyarrow as pa
    from numpy.typing import NDArray

    from toolkit.client.node import Node
    from toolkit.gas.runs.collecting import Collector
    from toolkit.gas.runs.store import RunStore
    from toolkit.gas.study import Call, Study

__all__ = ["NodeReader", "Where", "committed_so_far", "next_versions", "planned_of", "shard_calls", "shard_range"]

_BLOCK = 10_000
"""Calls that are listed at once: what bounds the memory of a long plan."""
_PAGES = 50
"""Pages of committed transactions after which the run notes how far it has come."""

Task = tuple["Call", int]


@dataclass(frozen=True, slots=True)
class Where:
    """Which part of a study is read, and where."""

    executor: Executor | None = None
    max_tasks: int = 8
    shard: Shard = WHOLE


def shard_calls(study: Study, shard: Shard, source: str) -> list[Call]:
    """Return the calls of a source that a shard reads whole."""
    return [call for place, call in enumerate(study.calls) if call.source == source and shard.has(place)]


def planned_of(plan: Mapping[str, Any], shard: Shard) -> Sequence[int]:
    """Return the versions of a resolved plan that a shard reads of each view, sorted, each once."""
    versions = planned_versions(plan)
    return shard.slice(versions if isinstance(versions, range) and versions.step > 0 else sorted(set(versions)))


def shard_range(plan: Mapping[str, Any], shard: Shard) -> Sequence[int]:
    """Return the versions among which a shard reads committed transactions."""
    first, last = plan.get("committed_span") or (plan["first"], plan["last"])
    return shard.slice(range(first, last + 1))


class NodeReader:
    """Reads what is missing of every call on one node.

    Parameters
    ----------
    study : Study
    node : Node
    plan : mapping
        The study as resolved on that node.
    store : RunStore
        Where earlier attempts of the run have written.
    collector : Collector
        Takes the observations.
    where : Where
    note : callable
        Given how far committed transactions are read (``to``) and how many were found (``rows``), once written.
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
        note: Callable[[dict[str, int]], None],
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
        """Read what is missing of every call."""
        shard = self._where.shard
        if self._study.versions.search is None:
            self._read_plan([call for call in self._study.calls if call.source == VIEW])
        else:
            self._read_searches(shard_calls(self._study, shard, VIEW))
        self._read_simulations(shard_calls(self._study, shard, SIMULATE))
        self._read_committed([call for call in self._study.calls if call.source == COMMITTED])

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
        """Return the planned versions of a call that are not read yet, listed block by block."""
        found = self._found(call)
        for start in range(0, len(versions), _BLOCK):
            block = np.array(versions[start : start + _BLOCK], np.uint64)
            low, high = np.searchsorted(found, block[[0, -1]])  # both are sorted: little is looked through
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
        """Learn the called modules by bisection: a dozen looks, not one a version. Elsewhere each range does so."""
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
        missing = [call for call in calls if not len(self._found(call))]
        self._collector.bar.expect(len(missing), found=len(calls) - len(missing))
        rows = (row for _, row in run_many(missing, self._simulation_row, in_flight=self._node.max_in_flight))
        for row in heard(rows, self._node):
            self._collector.take(row)

    def _simulation_row(self, call: Call) -> dict[str, Any]:
        request = call.request
        assert isinstance(request, SimulationRequest)  # noqa: S101 - the source says so
        try:
            result = self._node.simulate(request)
        except ClosedError:
            raise
        except ToolkitError as error:
            version = self._node.ledger().version
            now = datetime.now(UTC)
            return self._origin.failed(call.name, call.fingerprint, SIMULATE, version, error=error, observed_at=now)
        return self._origin.simulation(call.name, call.fingerprint, result, datetime.now(UTC))

    # committed transactions -----------------------------------------------------------------------------------

    def _read_committed(self, calls: Sequence[Call]) -> None:
        """Read the transactions of each call's range page by page and keep those of the wanted functions."""
        versions = shard_range(self._plan, self._where.shard)
        if not calls or not versions:
            return
        first, last = max(versions[0], committed_so_far(self._plan, calls, self._known) + 1), versions[-1]
        ranges = {call.fingerprint: committed_range(self._plan, call) for call in calls}
        pages = committed_pages((max(one, first), min(other, last)) for one, other in ranges.values())
        self._collector.bar.expect(len(pages))
        known = {call.fingerprint: set(self._found(call).tolist()) for call in calls}
        for place in range(0, len(pages), _PAGES):
            some = pages[place : place + _PAGES]
            self._read_pages(calls, ranges, known, some)
            self._collector.flush()
            read_to = last if place + _PAGES >= len(pages) else sum(some[-1]) - 1
            self._note({"to": read_to, "rows": sum(map(len, known.values()))})
        if not pages:
            self._note({"to": last, "rows": sum(map(len, known.values()))})

    def _read_pages(
        self,
        calls: Sequence[Call],
        ranges: Mapping[str, tuple[int, int]],
        known: Mapping[str, set[int]],
        pages: Sequence[tuple[int, int]],
    ) -> None:
        by_function = {str(FunctionId.parse(call.function)): call for call in calls}

        def wanted(call: Call, version: int) -> bool:
            first, last = ranges[call.fingerprint]
            return first <= version <= last and version not in known[call.fingerprint]

        def rows_of(page: tuple[int, int]) -> list[dict[str, Any]]:
            try:
                transactions, head = self._node.transaction_page(*page)
            except ClosedError:
                raise
            except ToolkitError as error:  # a page that fails is a row of every call that it may have held
                starts = ((call, max(page[0], ranges[call.fingerprint][0])) for call in calls)
                return [self._failed_page(*start, error) for start in starts if start[1] < sum(page) and wanted(*start)]
            functions = transaction_rows(transactions).transactions["function"]
            found = ((by_function.get(name), one) for name, one in zip(functions, transactions, strict=True))
            return [
                self._origin.committed(call.name, call.fingerprint, one, datetime.now(UTC), head=head)
                for call, one in found
                if call is not None and wanted(call, one.version)
            ]

        def read() -> Iterator[dict[str, Any]]:
            bar = self._collector.bar
            for _, rows in run_many(pages, rows_of, in_flight=self._node.max_in_flight, advance=bar.advance):
                bar.expect(len(rows))
                yield from rows

        for row in heard(read(), self._node):
            known[row["fingerprint"]].add(row["ledger_version"])
            self._collector.take(row)

    def _failed_page(self, call: Call, version: int, error: ToolkitError) -> dict[str, Any]:
        now = datetime.now(UTC)
        return self._origin.failed(call.name, call.fingerprint, COMMITTED, version, error=error, observed_at=now)


def committed_so_far(plan: Mapping[str, Any], calls: Iterable[Call], known: Mapping[str, NDArray[np.uint64]]) -> int:
    """Return the version up to which committed transactions are in the run, -1 where none are.

    A page may hold none of the wanted ones, so how far it has come is noted, with how many were found. Where fewer
    are there, a part was lost, and the pages are read again.
    """
    noted = plan.get("committed_read")
    if noted is None:
        return -1
    there = sum(int((known[call.fingerprint] <= noted["to"]).sum()) for call in calls if call.fingerprint in known)
    return int(noted["to"]) if there == noted["rows"] else -1


def next_versions(study: Study, plan: Mapping[str, Any], outcomes: Mapping[int, Outcome | None]) -> list[int]:
    """Return the versions that a step search reads next of one call, none where it is over."""
    search = study.versions.search
    assert search is not None  # noqa: S101 - our own mistake if not
    return next_round(
        outcomes, first=plan["first"], last=plan["last"], initial=search.initial, limit=search.max_requests
    )
