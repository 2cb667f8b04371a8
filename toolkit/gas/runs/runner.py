"""Runs a study: reads what is missing, writes it part by part, finds steps and their causes."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from toolkit.client.bulk import progress_bar
from toolkit.errors import InputError, LedgerChanged, NodeError, NodeUnreachable, RunStopped, SchemaError, StudyError
from toolkit.frames.columns import rows_frame
from toolkit.frames.schema import STEPS
from toolkit.gas.causes.finding import causes_of
from toolkit.gas.planning import connected
from toolkit.gas.runs.collecting import Collector
from toolkit.gas.runs.executors import executor_name, most_tasks, opened_executor
from toolkit.gas.runs.opening import ledger_guard, open_run
from toolkit.gas.runs.proof import closing, prove_whole
from toolkit.gas.runs.provenance import provenance
from toolkit.gas.runs.reading import NodeReader, Where
from toolkit.gas.runs.scan import turning_points
from toolkit.gas.runs.shards import Shard
from toolkit.gas.runs.silence import check_there, raise_unconfirmed
from toolkit.gas.runs.store import RunStore
from toolkit.gas.steps import Cause, Step, step_columns, steps_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from concurrent.futures import Executor
    from datetime import datetime

    from toolkit.client.node import Node
    from toolkit.gas.run import Run
    from toolkit.gas.study import Study

__all__ = ["run_study"]


def run_study(
    study: Study,
    out: str | Path | None,
    *,
    node: Node | None,
    progress: bool,
    executor: Executor | str | None = None,
    max_tasks: int = 8,
    shard: Any = None,
) -> Run:
    """Run a study; see `Study.run`."""
    from toolkit.gas.run import Run

    if max_tasks < 1:
        raise InputError(f"max_tasks is 1 or more, got {max_tasks}")
    part, tasks = Shard.parse(shard), most_tasks(executor, max_tasks)
    path = Path(mkdtemp(prefix="ledger-toolkit-run-") if out is None else out)
    store = RunStore(path)
    made = store.make_folder() or out is None
    try:
        with store.locked(), ExitStack() as stack:
            pool = stack.enter_context(opened_executor(executor))
            nodes = [node] if node is not None else connected(study, stack)
            manifest = open_run(store, study, nodes, shard=part, executor=executor_name(pool, tasks))
            if not manifest["complete"]:
                try:
                    _read_rows(study, nodes, manifest, store, Where(pool, tasks, part), progress=progress)
                    _complete(store, study, manifest, nodes=nodes, shard=part, progress=progress)
                except LedgerChanged as error:
                    raise RunStopped(_stopped_by(error, store)) from error
                except KeyboardInterrupt:
                    raise KeyboardInterrupt(_stopped(store, named=out is not None)) from None
                except Exception as error:
                    if out is None:  # nobody knows the folder yet
                        error.add_note(_stopped(store, named=False))
                    raise
    finally:
        if made:
            with suppress(OSError):  # a run is in it
                path.rmdir()
    return Run(path, temporary=out is None)


def _read_rows(
    study: Study, nodes: Sequence[Node], manifest: dict[str, Any], store: RunStore, where: Where, *, progress: bool
) -> None:
    """Read what is missing on every node."""
    for node, plan in zip(nodes, manifest["nodes"], strict=True):

        def note(committed: dict[str, Any], plan: dict[str, Any] = plan) -> None:
            plan["committed_read"] = committed
            store.write_manifest(manifest)

        def unconfirmed(since: datetime, plan: dict[str, Any] = plan) -> None:
            plan["unconfirmed_since"] = since.isoformat()
            store.write_manifest(manifest)

        guard = ledger_guard(node, plan)
        with (
            progress_bar(0, "observing", show=progress) as bar,
            Collector(store, bar, guard=guard, unconfirmed=unconfirmed) as collector,
        ):
            NodeReader(study, node, plan, store=store, collector=collector, where=where, note=note).read_all()


def _stopped(store: RunStore, *, named: bool) -> str:
    """Say what a run that was broken off has kept and how to go on."""
    again = "the same call or command" if named else f"the same call with out={str(store.path)!r}"
    try:
        count = f"{store.rows():,} observations are kept in {store.path}"
    except StudyError as error:  # the folder is gone, or a part is damaged
        return f"stopped; {error}"
    return f"stopped; {count}; {again} goes on from there"


def _stopped_by(error: LedgerChanged, store: RunStore) -> str:
    """Say that the node serves another ledger, what is kept, and what to do."""
    return (
        f"the run was stopped: {error}. {store.rows():,} observations of the first ledger are kept in {store.path}; "
        "those read since it was last seen are dropped. If the node serves the first ledger again, run the same study "
        "into the same folder and it goes on; for the other ledger choose another folder"
    )


def _complete(
    store: RunStore,
    study: Study,
    manifest: Mapping[str, Any],
    *,
    nodes: Sequence[Node],
    shard: Shard,
    progress: bool,
) -> None:
    """Prove that a run is whole, find its steps and their causes, and write that it is complete.

    Raises
    ------
    StudyError
        If a reading is missing, or there twice.
    LedgerChanged
        If a node serves another ledger now, which causes may be of; nothing is written.
    NodeUnreachable
        If causes are not to be had because the node is gone.
    """
    prove_whole(store, study, manifest["nodes"], shard)
    steps = steps_of(turning_points(store))
    causes: dict[Step, Cause] = {}
    functions = {call.fingerprint: call.function for call in study.calls}
    with progress_bar(len(steps), "finding causes", show=progress) as bar:
        for node, plan in zip(nodes, manifest["nodes"], strict=True):
            mine = [step for step in steps if step.node == plan["node"]]
            found = causes_of(mine, node, functions, advance=bar.advance)
            if any(cause.kind == "unknown" for cause in found.values()):
                check_there(node, "causes of steps are not to be had")
            causes |= found
            plan["provenance"] = provenance(node, first=plan["first"], last=plan["last"], functions=functions.values())
            try:
                ledger_guard(node, plan).check()
            except (NodeError, NodeUnreachable, SchemaError) as error:
                raise_unconfirmed(node, error)
    store.write_steps(rows_frame(STEPS, step_columns(steps, causes)))
    kept = {name: entry for name, entry in manifest.items() if name != "steps_between_shards"}
    store.write_manifest(kept | closing(store))
