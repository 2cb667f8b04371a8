"""Runs a study: plans, reads what is missing, writes it part by part, finds steps and their causes."""

from __future__ import annotations

import platform
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit import __version__
from toolkit.client.bulk import Progress, progress_bar, run_many
from toolkit.client.connect import connect
from toolkit.client.fetch import PAGE
from toolkit.errors import ClosedError, InputError, StudyError, ToolkitError
from toolkit.frames.build import plain_columns
from toolkit.gas.cause import causes_of
from toolkit.gas.observers import observe_elsewhere, observe_views
from toolkit.gas.observing import COMMITTED, SIMULATE, VIEW, Origin, is_no_answer, row_columns
from toolkit.gas.planning import planned_versions, resolve_study
from toolkit.gas.search import next_round
from toolkit.gas.steps import OUTCOME_COLUMNS, Cause, Step, step_columns, steps_of
from toolkit.gas.store import RunStore
from toolkit.move.ids import FunctionId
from toolkit.wire.requests import SimulationRequest
from toolkit.wire.rows import transaction_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Executor

    import pandas as pd

    from toolkit.client.node import Node
    from toolkit.gas.run import Run
    from toolkit.gas.study import Call, Study

__all__ = ["run_study"]

_BATCH = 1_000
"""Observations per part: what a run that is killed has to read again at most."""

Row = dict[str, Any]
Outcome = tuple[Any, ...]


class _Where(NamedTuple):
    """Where views are read: here, or over an executor."""

    executor: Executor | None
    max_tasks: int


def run_study(
    study: Study,
    out: str | Path | None,
    *,
    node: Node | None,
    progress: bool,
    executor: Executor | None = None,
    max_tasks: int = 8,
) -> Run:
    """Run a study; see `Study.run`."""
    from toolkit.gas.run import Run

    if max_tasks < 1:
        raise InputError(f"max_tasks is 1 or more, got {max_tasks}")
    where = _Where(executor, max_tasks)
    path = Path(mkdtemp(prefix="ledger-toolkit-run-") if out is None else out)
    store = RunStore(path)
    with ExitStack() as stack:
        nodes = [node] if node is not None else [stack.enter_context(connect(name)) for name in study.nodes]
        manifest = _opened(store, study, nodes)
        if not manifest["complete"]:
            planned = list(zip(nodes, manifest["nodes"], strict=True))
            for reached, plan in planned:
                with progress_bar(0, "observing", show=progress) as bar:
                    _NodeRun(study, reached, plan, store, bar, where).read_all()
            observations = store.observations()
            steps = steps_of(observations)
            causes: dict[Step, Cause] = {}
            for reached, plan in planned:
                causes |= _causes(study, reached, [step for step in steps if step.node == plan["node"]])
            store.write_steps(step_columns(steps, causes))
            store.write_manifest(manifest | _closing(observations))
    return Run(path, temporary=out is None)


def _opened(store: RunStore, study: Study, nodes: Sequence[Node]) -> dict[str, Any]:
    """Start a run, or take up the one that is there if it is of the same study and chains."""
    plans = [resolve_study(study, node) for node in nodes]
    if not store.exists():
        manifest: dict[str, Any] = {
            "study": study.document(),
            "study_digest": study.digest,
            "nodes": plans,
            "started_at": datetime.now(UTC).isoformat(),
            "environment": {"ledger-toolkit": __version__, "python": platform.python_version()},
            "complete": False,
        }
        store.create(manifest)
        return manifest
    manifest = store.manifest()
    if manifest["study_digest"] != study.digest:
        raise StudyError(f"{store.path} holds a run of another study; choose another folder, or go on with that study")
    chains = [[plan["chain_id"] for plan in side] for side in (manifest["nodes"], plans)]
    if chains[0] != chains[1]:
        raise StudyError(f"{store.path} holds a run on chain {chains[0]}, the nodes are now on {chains[1]}")
    return manifest


class _NodeRun:
    """Reads everything one node has to answer for a study, and writes it part by part."""

    def __init__(  # noqa: PLR0917 - made in one place
        self, study: Study, node: Node, plan: Mapping[str, Any], store: RunStore, bar: Progress, where: _Where
    ) -> None:
        self._study = study
        self._node = node
        self._plan = plan
        self._store = store
        self._bar = bar
        self._where = where
        self._origin = Origin(plan["node"], plan["node_build"], plan["model"], plan["chain_id"])
        self._known = self._already_read()

    def read_all(self) -> None:
        """Read what is missing of every call."""
        views = [call for call in self._study.calls if call.source == VIEW]
        self._prepare(views)
        search = self._study.versions.search
        if search is None:
            self._read_views([(call, version) for call in views for version in planned_versions(self._plan)])
        else:
            while tasks := [(call, version) for call in views for version in self._next_round(call)]:
                self._read_views(tasks)
        self._read_simulations([call for call in self._study.calls if call.source == SIMULATE])
        self._read_committed([call for call in self._study.calls if call.source == COMMITTED])

    def _already_read(self) -> dict[str, dict[int, Outcome | None]]:
        """Return the outcomes that earlier attempts of this run have written, by fingerprint and version."""
        known: dict[str, dict[int, Outcome | None]] = {call.fingerprint: {} for call in self._study.calls}
        for part in self._store.each_part():
            mine = part[part["node"] == self._origin.node]
            columns = plain_columns(mine, ["fingerprint", "ledger_version", *OUTCOME_COLUMNS])
            for mark, version, *outcome in zip(*columns.values(), strict=True):
                known[mark][version] = _outcome(outcome)
        return known

    def _next_round(self, call: Call) -> list[int]:
        search = self._study.versions.search
        assert search is not None  # noqa: S101 - our own mistake if not
        return next_round(
            self._known[call.fingerprint],
            first=self._plan["first"],
            last=self._plan["last"],
            initial=search.initial,
            limit=search.max_requests,
        )

    def _prepare(self, views: Sequence[Call]) -> None:
        """Learn the called modules over the range, so that the reads need not ask for an ABI at each version."""
        versions = range(self._plan["first"], self._plan["last"] + 1)  # bisected: a dozen looks, not one a version
        for call in views:
            function = FunctionId.parse(call.function)
            self._node.abis.prepare(function.address, function.module, versions)

    def _read_views(self, tasks: Sequence[tuple[Call, int]]) -> None:
        missing = [
            (call, version) for call, version in dict.fromkeys(tasks) if version not in self._known[call.fingerprint]
        ]
        self._bar.expect(len(missing))
        if self._where.executor is not None:
            self._read_elsewhere(missing, self._where.executor)
            return
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            self._keep(observe_views(self._node, self._origin, batch, advance=self._bar.advance))

    def _read_elsewhere(self, missing: Sequence[tuple[Call, int]], executor: Executor) -> None:
        waiting: list[Row] = []
        for rows in observe_elsewhere(executor, self._node, self._origin, missing, max_tasks=self._where.max_tasks):
            waiting += rows
            self._bar.advance(len(rows))
            if len(waiting) >= _BATCH:
                self._keep(waiting)
                waiting = []
        self._keep(waiting)

    def _read_simulations(self, calls: Sequence[Call]) -> None:
        missing = [call for call in calls if not self._known[call.fingerprint]]
        self._read_and_write(missing, self._simulation_row)

    def _simulation_row(self, call: Call) -> Row:
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

    def _read_committed(self, calls: Sequence[Call]) -> None:
        """Read the transactions of the plan's range page by page and keep those of the wanted functions."""
        if not calls:
            return
        by_function = {str(FunctionId.parse(call.function)): call for call in calls}
        first, last = self._plan["first"], self._plan["last"]
        pages = [(start, min(PAGE, last + 1 - start)) for start in range(first, last + 1, PAGE)]

        def rows_of(page: tuple[int, int]) -> list[Row]:
            rows = []
            transactions = self._node.transactions(*page)
            functions = transaction_rows(transactions).transactions["function"]
            for transaction, function in zip(transactions, functions, strict=True):
                call = by_function.get(function)
                if call and transaction.version not in self._known[call.fingerprint]:
                    row = self._origin.committed(call.name, call.fingerprint, transaction, datetime.now(UTC))
                    rows.append(row)
            return rows

        for results in self._batches(pages, rows_of):
            self._keep([row for rows in results for row in rows])

    def _read_and_write(self, tasks: Sequence[Any], read: Callable[[Any], Row]) -> None:
        for rows in self._batches(tasks, read):
            self._keep(rows)

    def _batches(self, tasks: Sequence[Any], read: Callable[[Any], Any]) -> Iterator[list[Any]]:
        """Run the tasks batch by batch; the results of a batch come in the order of its tasks."""
        self._bar.expect(len(tasks))
        for start in range(0, len(tasks), _BATCH):
            batch = tasks[start : start + _BATCH]
            found = dict(run_many(batch, read, in_flight=self._node.max_in_flight, advance=self._bar.advance))
            yield [found[place] for place in range(len(batch))]

    def _keep(self, rows: list[Row]) -> None:
        self._store.add_part(row_columns(rows))
        for row in rows:
            outcome = _outcome([row[name] for name in OUTCOME_COLUMNS])
            self._known[row["fingerprint"]][row["ledger_version"]] = outcome


def _outcome(values: Sequence[Any]) -> Outcome | None:
    """Return what two observations are compared by, None where no answer came."""
    return None if is_no_answer(values[-1]) else tuple(values)


def _causes(study: Study, node: Node, steps: Sequence[Step]) -> dict[Step, Cause]:
    """Find the cause of every step on one node."""
    functions = {call.fingerprint: call.function for call in study.calls}
    return causes_of(steps, node, functions)


def _closing(observations: pd.DataFrame) -> dict[str, Any]:
    """Return what the manifest of a complete run says beyond its beginning."""
    failed = observations["error_code"].notna()
    counts = {"observations": len(observations), "failures": int(failed.sum())}
    return {"counts": counts, "finished_at": datetime.now(UTC).isoformat(), "complete": True}
