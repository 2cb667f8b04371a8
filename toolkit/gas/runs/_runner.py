"""Runs a study from start to end: starts or resumes the run, reads what is missing, finds steps and their causes."""

from __future__ import annotations

import hashlib
import platform
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import version as installed
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

import pandas as pd

from toolkit import __version__
from toolkit.client._batch import progress_bar
from toolkit.client._same_ledger import LedgerAnchor, LedgerGuard
from toolkit.errors import InputError, LedgerChanged, NodeError, NodeUnreachable, RunStopped, SchemaError, StudyError
from toolkit.frames._columns import plain_columns, rows_frame
from toolkit.frames._schema import STEPS
from toolkit.gas._observations import Cause
from toolkit.gas._plan import (
    WHOLE,
    Shard,
    calls_at_head,
    check_shardable,
    connected,
    extended_plan,
    last_version,
    resolve_study,
)
from toolkit.gas._steps import Explanation, Step, rows_columns, steps_of
from toolkit.gas.causes._evidence import UNREAD, Evidence
from toolkit.gas.causes._finding import MAX_STEPS, causes_of
from toolkit.gas.committed._steps import CommittedCall
from toolkit.gas.runs._collector import Collector, check_there, raise_unconfirmed
from toolkit.gas.runs._committed import committed_calls, found_timeline, has_timeline, judge_committed, timelines_frame
from toolkit.gas.runs._completeness import STEP_KEY, closing, prove_whole, summary
from toolkit.gas.runs._reader import NodeReader, Where, further_observations
from toolkit.gas.runs._rows import count_unanswered, turning_points
from toolkit.gas.runs._store import RunStore
from toolkit.gas.runs._views import executor_name, max_ranges, opened_executor
from toolkit.move import FunctionId
from toolkit.move._ids import ModuleId

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from concurrent.futures import Executor

    from toolkit.client._batch import ProgressHook
    from toolkit.client._node import Node
    from toolkit.gas._study import Study


def run_study(
    study: Study,
    out: str | Path | None,
    *,
    node: Node | None,
    progress: bool | ProgressHook,
    executor: Executor | str | None = None,
    max_tasks: int = 8,
    shard: Any = None,
    fresh: bool = False,
) -> tuple[Path, EarlierRun | None]:
    """Run a study; see `Study.run`.

    Returns
    -------
    Path
        The folder of the run.
    EarlierRun or None
        The complete run that was in the folder, if there was one.
    """
    if max_tasks < 1:
        raise InputError(f"max_tasks must be 1 or more, got {max_tasks}")
    part, tasks = Shard.parse(shard), max_ranges(executor, max_tasks)
    path = Path(mkdtemp(prefix="ledger-toolkit-run-") if out is None else out)
    store = RunStore(path)
    made = store.make_folder() or out is None
    try:
        with store.locked(), ExitStack() as stack:
            pool = stack.enter_context(opened_executor(executor))
            nodes = [node] if node is not None else connected(study, stack)
            name = executor_name(pool, tasks)
            manifest, earlier = open_run(store, study, nodes, shard=part, executor=name, fresh=fresh)
            if not manifest["complete"]:
                try:
                    _find_timelines(study, nodes, manifest, store)
                    _read_rows(study, nodes, manifest, store, Where(pool, tasks, part), progress=progress)
                    _complete(store, study, manifest, nodes=nodes, shard=part, progress=progress)
                except LedgerChanged as error:
                    raise RunStopped(_stopped_by(error, store)) from None
                except KeyboardInterrupt:
                    raise KeyboardInterrupt(_stopped(store, named=out is not None)) from None
                except Exception as error:
                    if out is None:  # the caller does not know the folder yet
                        error.add_note(_stopped(store, named=False))
                    raise
    finally:
        if made:
            with suppress(OSError):  # not empty: a run is in it
                path.rmdir()
    return path, earlier


@dataclass(frozen=True, slots=True)
class RunAge:
    """When a complete run was read.

    Attributes
    ----------
    read_at : datetime
        When its reading ended, or the head was last seen to be the same.
    reached : mapping of str to int
        The last version that was read, by node.
    labels : tuple of str
        The calls that are read up to the head. The others have fixed versions, so their age does not matter.
    """

    read_at: datetime
    reached: Mapping[str, int]
    labels: tuple[str, ...]

    @classmethod
    def of(cls, study: Study, manifest: Mapping[str, Any]) -> RunAge:
        """Return the age of a complete run from its manifest; of a merged run that of its oldest shard."""
        plans = manifest["nodes"]
        extended = any("extended_from" in plan for plan in plans)
        shards = [] if extended else [part["finished_at"] for part in manifest.get("shards", ())]
        times = [manifest["checked_at"]] if "checked_at" in manifest else shards or [manifest["finished_at"]]
        moving = {call.name for plan in plans for call in calls_at_head(study, plan)}
        return cls(
            min(map(datetime.fromisoformat, times)),
            {plan["node"]: max(last_version(plan, call) for call in study.calls) for plan in plans},
            tuple(call.name for call in study.calls if call.name in moving),
        )

    def since(self) -> timedelta:
        """Return the time since then."""
        return datetime.now(UTC) - self.read_at


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """A complete run that was in the folder when its study was run again.

    Attributes
    ----------
    age : RunAge
    heads : tuple of int
        The head of each node when the study was run again.
    rows : int
        Number of observations before.
    """

    age: RunAge
    heads: tuple[int, ...]
    rows: int


def _find_timelines(study: Study, nodes: Sequence[Node], manifest: dict[str, Any], store: RunStore) -> None:
    """Find and store the timelines of a study with committed transactions, unless the run has them."""
    calls = committed_calls(study)
    if not calls or has_timeline(store, manifest):
        return
    timelines = {}
    for node, plan in zip(nodes, manifest["nodes"], strict=True):
        timelines[plan["node"]], about = found_timeline(node, plan, calls)
        plan.update(about)
    if manifest.pop("timeline_checksum", None) is not None:  # of a file that was lost or damaged
        store.write_manifest(manifest)
    store.write_timeline(timelines_frame(timelines))
    manifest["timeline_checksum"] = store.timeline_checksum()
    store.write_manifest(manifest)


def _read_rows(
    study: Study,
    nodes: Sequence[Node],
    manifest: dict[str, Any],
    store: RunStore,
    where: Where,
    *,
    progress: bool | ProgressHook,
) -> None:
    """Read the missing observations on every node."""
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
    """Return the message of an interrupted run: what is stored, and how to continue."""
    again = "the same call or command" if named else f"the same call with out={str(store.path)!r}"
    try:
        count = f"{store.rows():,} observations are stored in {store.path}"
    except StudyError as error:  # the folder was removed, or a part is damaged
        return f"stopped; {error}"
    return f"stopped; {count}; {again} continues the run"


def _stopped_by(error: LedgerChanged, store: RunStore) -> str:
    """Return the message of a run that stopped because the node serves another ledger."""
    return (
        f"the run was stopped: {error}. {store.rows():,} observations of the first ledger are stored in {store.path}; "
        "those read since its last check are dropped. To continue, run the same study into the same folder when the "
        "node serves the first ledger again; for the other ledger choose another folder"
    )


def _complete(
    store: RunStore,
    study: Study,
    manifest: Mapping[str, Any],
    *,
    nodes: Sequence[Node],
    shard: Shard,
    progress: bool | ProgressHook,
) -> None:
    """Check that a run has every observation, find its steps and their causes, and mark it as complete.

    Raises
    ------
    StudyError
        If an observation is missing or duplicated.
    LedgerChanged
        If a node serves another ledger, so that the causes may be wrong; nothing is written.
    NodeUnreachable
        If causes cannot be found because the node no longer answers.
    """
    prove_whole(store, study, manifest["nodes"], shard)
    steps = _located_steps(study, nodes, manifest, turning_points(store), progress=progress)
    causes: dict[Step, Explanation] = {}
    functions = {call.fingerprint: call.function for call in study.calls}
    with progress_bar(len(steps), "finding causes", show=progress) as bar:
        for node, plan in zip(nodes, manifest["nodes"], strict=True):
            mine = [step for step in steps if step.node == plan["node"]]
            found = causes_of(mine, node, functions, advance=bar.advance)
            if any(one.cause == Cause.UNKNOWN for one in found.values()):
                check_there(node, "causes of steps cannot be found")
            causes |= found
            plan["provenance"] = provenance(node, first=plan["first"], last=plan["last"], functions=functions.values())
            try:
                ledger_guard(node, plan).check()
            except (NodeError, NodeUnreachable, SchemaError) as error:
                raise_unconfirmed(node, error)
    known = _known_causes(store, manifest)
    rows = [_step_row(step, causes.get(step), known) for step in steps]
    read = summary(store)  # before transactions are judged: what judging occupies would add to the peak of memory
    for plan in manifest["nodes"]:
        rows += judge_committed(store, study, plan, shard)
    store.write_steps(rows_frame(STEPS, rows_columns(rows)))
    kept = {name: entry for name, entry in manifest.items() if name != "steps_between_shards"}
    store.write_manifest(kept | read | closing(store))


def _known_causes(store: RunStore, manifest: Mapping[str, Any]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return the steps of a run that is extended by their place: what explains an early step may be pruned by now."""
    stored = store.steps() if any("extended_from" in plan for plan in manifest["nodes"]) else None
    if stored is None:
        return {}
    columns = plain_columns(stored, list(stored.columns))
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return {tuple(row[name] for name in STEP_KEY): row for row in rows}


def _step_row(
    step: Step, explanation: Explanation | None, known: Mapping[tuple[Any, ...], dict[str, Any]]
) -> dict[str, Any]:
    lost = explanation is None or explanation.cause == Cause.UNKNOWN
    before = known.get(tuple(getattr(step, name) for name in STEP_KEY)) if lost else None
    return before or step.row(explanation)


def _located_steps(
    study: Study,
    nodes: Sequence[Node],
    manifest: Mapping[str, Any],
    observed: pd.DataFrame,
    *,
    progress: bool | ProgressHook,
) -> list[Step]:
    """Return the steps between observations; those of a version plan are bisected first, on the nodes.

    Otherwise a step would have one cause if its transaction happens to be read, and another if it is one of many
    between two readings.
    """
    steps = steps_of(observed)
    if study.versions.search is not None or all(step.exact for step in steps):
        return steps
    with progress_bar(0, "locating steps", show=progress) as bar:
        for node, plan in zip(nodes, manifest["nodes"], strict=True):
            further = further_observations(study, node, plan, observed, bar=bar)
            plan["further_requests"] = len(further)
            if len(further):
                observed = pd.concat([observed, further], ignore_index=True)
    return steps_of(observed)


_PACKAGES = ("pandas", "pyarrow", "pycurl")


def open_run(
    store: RunStore, study: Study, nodes: Sequence[Node], *, shard: Shard, executor: str, fresh: bool = False
) -> tuple[dict[str, Any], EarlierRun | None]:
    """Start a run, or resume the one in the folder, or extend it if it is complete and its study ends at the head.

    Parameters
    ----------
    store : RunStore
    study : Study
    nodes : sequence of Node
        One per node of the study.
    shard : Shard
    executor : str
        Where views are read, for the manifest.
    fresh : bool, default False
        Start again, and remove the run of the study that is in the folder.

    Returns
    -------
    dict
        The manifest, as written. The versions that were resolved at the start hold until the run is complete.
    EarlierRun or None
        The complete run that was in the folder, if there was one.

    Raises
    ------
    StudyError
        If the folder has a run of another study, shard, chain or history, or one whose ``run.json`` and its copy are
        both damaged.

    Warns
    -----
    UserWarning
        If ``run.json`` was restored from its copy, or other files were damaged.
    """
    if not fresh:
        store.restore_manifest()
    taken_up = not fresh and store.exists() and not _never_began(store, study)
    manifest = _taken_up(store, study, nodes, shard) if taken_up else _started(study, nodes, shard)
    if fresh:  # after the versions were resolved: a node that does not answer leaves the run as it is
        store.discard(study.title)
    document = study.document()  # thresholds, waivers and the pace may differ from the first attempt
    earlier = None
    if manifest["complete"]:
        heads = tuple(node.info().ledger.version for node in nodes)
        earlier = EarlierRun(RunAge.of(study, manifest), heads, manifest["counts"]["observations"])
        plans = manifest["nodes"]
        if shard == WHOLE:
            plans = [_extended(study, node, plan) for node, plan in zip(nodes, plans, strict=True)]
        if plans == manifest["nodes"] and _needs_nothing(store, manifest, study):
            seen = {"checked_at": datetime.now(UTC).isoformat()} if earlier.age.labels and shard == WHOLE else {}
            if seen or manifest["study"] != document:
                manifest |= {"study": document} | seen
                store.write_manifest(manifest)
            return manifest, earlier
        manifest |= {"complete": False, "nodes": plans}
        manifest.pop("checked_at", None)
        manifest.pop("steps_checksum", None)  # the steps are written again
        store.write_manifest(manifest)
    if store.exists():
        unconfirmed = {plan["node"]: plan.pop("unconfirmed_since", None) for plan in manifest["nodes"]}
        store.drop_unanswered({node: datetime.fromisoformat(since) for node, since in unconfirmed.items() if since})
    manifest |= {
        "study": document,
        "executor": executor,
        "environment": _environment(),
        "attempts": manifest.get("attempts", 0) + 1,
        "resumed_rows": store.rows() if store.exists() else 0,
    }
    if store.exists():
        store.write_manifest(manifest)
    else:
        store.create(manifest)
    return manifest, earlier


def _extended(study: Study, node: Node, plan: dict[str, Any]) -> dict[str, Any]:
    """Return the plan of a complete run with what is new on the node, or unchanged."""
    further = extended_plan(study, node, plan)
    if further is None:
        return plan
    anchored = _anchored(node, further)
    return anchored if anchored["anchor"] else further


def _never_began(store: RunStore, study: Study) -> bool:
    """Return whether the run in the folder is of another study and has no observations: it is started again."""
    manifest = store.manifest()
    return manifest["study_digest"] != study.digest and not manifest["complete"] and not store.part_files()


def _started(study: Study, nodes: Sequence[Node], shard: Shard) -> dict[str, Any]:
    plans = [resolve_study(study, node) for node in nodes]
    if shard != WHOLE:
        check_shardable(study, plans)
    return {
        "study": study.document(),
        "study_digest": study.digest,
        "fingerprints": [call.fingerprint for call in study.calls],
        "nodes": [_anchored(node, plan) for node, plan in zip(nodes, plans, strict=True)],
        "shard": None if shard == WHOLE else str(shard),
        "started_at": datetime.now(UTC).isoformat(),
        "complete": False,
    }


def _needs_nothing(store: RunStore, manifest: Mapping[str, Any], study: Study) -> bool:
    """Return whether a complete run has its rows with an answer in each, the cause of every step, and the analysis."""
    if committed_calls(study) and not has_timeline(store, manifest):
        return False
    steps = store.steps()
    if store.steps_checksum() != manifest.get("steps_checksum") or steps is None:
        return False
    if store.rows() != manifest["counts"]["observations"] or count_unanswered(store):
        return False
    if committed_calls(study):
        analysed = all("committed_series" in plan for plan in manifest["nodes"])
        if not analysed or any(call.read_failed for call in CommittedCall.of_manifest(manifest)):
            return False
    by_node = steps.groupby("node")["cause"]
    return all((causes == "unknown").sum() <= max(0, len(causes) - MAX_STEPS) for _, causes in by_node)


def _taken_up(store: RunStore, study: Study, nodes: Sequence[Node], shard: Shard) -> dict[str, Any]:
    manifest = store.manifest()
    if manifest["study_digest"] != study.digest:
        now, then = study.document(), manifest["study"]
        differ = [name for name in now if now[name] != then.get(name)]
        raise StudyError(
            f"{store.path} has a run of another study ({', '.join(differ)} differ); choose another folder, or run "
            "that study"
        )
    held = manifest.get("shard")
    if Shard.parse(held) != shard:
        raise StudyError(
            f"{store.path} has {f'shard {held}' if held else 'a run of the whole study'}, not shard {shard}; "
            "choose another folder"
        )
    for node, plan in zip(nodes, manifest["nodes"], strict=True):
        _check_ledger(store, node, plan)
    store.mend()
    for node, plan in zip(nodes, manifest["nodes"], strict=True):
        plan["node_build"] = node.info().git_hash  # each row has the build of the node that answered
    return manifest


def _anchored(node: Node, plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return a plan with the transaction by which its ledger is recognised: the last one in the range that is read."""
    version = min(max(plan["last"], *(plan["committed_span"] or [0])), plan["head"])
    anchor = LedgerAnchor.taken(node, version)
    if anchor.transaction_hash is not None:
        return {**plan, "anchor": {"version": version, "transaction_hash": anchor.transaction_hash}}
    note = (
        f"transaction {version} could not be read, so only the chain id, the head and the oldest version show whether "
        "the node serves the same ledger during the whole run"
    )
    return {**plan, "anchor": None, "notes": [*plan["notes"], note]}


def ledger_guard(node: Node, plan: Mapping[str, Any]) -> LedgerGuard:
    """Return the guard that compares a node's ledger with the one that a plan was resolved on."""
    noted = plan.get("anchor") or {}
    version, found = noted.get("version"), noted.get("transaction_hash")
    anchor = LedgerAnchor(plan["chain_id"], plan["head"], plan.get("oldest_claimed"), version, found)
    return LedgerGuard(node, anchor)


def _check_ledger(store: RunStore, node: Node, plan: Mapping[str, Any]) -> None:
    """Raise StudyError if the node serves another ledger than before, such as a test network after a reset."""
    try:
        ledger_guard(node, plan).check()
    except LedgerChanged as error:
        raise StudyError(
            f"{store.path} has a run of another ledger: {error}. Choose another folder for the ledger that the node "
            "serves now, or run the study on a node of the first ledger"
        ) from None


def _environment() -> dict[str, str]:
    packages = {name: installed(name) for name in _PACKAGES}
    return {
        "ledger-toolkit": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
    } | packages


def provenance(node: Node, *, first: int, last: int, functions: Iterable[str]) -> dict[str, Any]:
    """Return the gas schedule and the called modules at the first and the last version of a run.

    Parameters
    ----------
    node : Node
    first, last : int
        Ledger versions.
    functions : iterable of str
        The functions that are called.

    Returns
    -------
    dict
        ``gas_schedule`` and ``modules`` (by module id), each with ``first`` and ``last``. A schedule has its
        ``feature_version``, number of ``parameters`` and ``digest``; a module has the digest of its bytecode and ABI.
        None if the node does not have it.
    """
    evidence = Evidence(node)
    called = sorted({_module(function) for function in functions}, key=str)
    ends = {"first": first, "last": last}
    return {
        "gas_schedule": {end: _schedule(evidence, version) for end, version in ends.items()},
        "modules": {
            module.wire: {end: _digest(evidence, module, version) for end, version in ends.items()} for module in called
        },
    }


def _module(function: str) -> ModuleId:
    at = FunctionId.parse(function)
    return ModuleId(at.address, at.module)


def _schedule(evidence: Evidence, version: int) -> dict[str, Any] | None:
    try:
        schedule = evidence.schedule(version)
    except UNREAD:
        return None
    text = "\n".join(f"{name} {value}" for name, value in sorted(schedule.entries.items()))
    digest = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    return {"feature_version": schedule.feature_version, "parameters": len(schedule.entries), "digest": digest}


def _digest(evidence: Evidence, module: ModuleId, version: int) -> str | None:
    try:
        known = evidence.module(module, version)
    except UNREAD:
        return None
    return known.digest.hex() if known.digest is not None else None
