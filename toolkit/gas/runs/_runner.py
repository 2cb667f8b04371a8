"""Runs a study from start to end: starts or resumes the run, reads what is missing, then completes it."""

from __future__ import annotations

import platform
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version as installed
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from msgspec import structs

from toolkit import __version__
from toolkit.client._batch import progress_bar
from toolkit.errors import InputError, LedgerChanged, RunStopped, StudyError
from toolkit.gas.causes._finding import MAX_STEPS
from toolkit.gas.plan._plan import WHOLE, Shard
from toolkit.gas.plan._resolve import anchored, check_shardable, extended, ledger_guard, resolve
from toolkit.gas.runs._collector import Collector, Reading
from toolkit.gas.runs._committed import has_timeline, with_timelines
from toolkit.gas.runs._completion import complete
from toolkit.gas.runs._manifest import EarlierRun, Manifest, NodeRun, RunAge
from toolkit.gas.runs._reader import NodeReader
from toolkit.gas.runs._rows import count_unanswered
from toolkit.gas.runs._store import Journal, RunStore
from toolkit.gas.runs._views import executor_name, max_ranges, opened_executor

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Executor

    from toolkit.client._batch import ProgressHook
    from toolkit.client._node import Node
    from toolkit.gas.plan._plan import StudySpec

_PACKAGES = ("pandas", "pyarrow", "pycurl")


def run_study(
    spec: StudySpec,
    out: str | Path | None,
    *,
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
            nodes = spec.connect(stack)
            manifest, earlier = _opened(store, spec, nodes, part, fresh=fresh)
            if manifest.complete:
                return path, earlier
            manifest = _begun(store, spec, manifest, executor_name(pool, tasks))
            try:
                journal = Journal(store, with_timelines(spec, nodes, manifest, store))
                for node, plan in zip(nodes, journal.manifest.nodes, strict=True):
                    unconfirmed = partial(journal.note_unconfirmed, plan.node)
                    with (
                        progress_bar(0, "observing", show=progress) as bar,
                        Collector(store, bar, guard=ledger_guard(node, plan), unconfirmed=unconfirmed) as collector,
                    ):
                        reading = Reading(spec, part, node, plan, store, collector, journal, pool, tasks)
                        NodeReader(reading).read_all()
                complete(store, spec, journal.manifest, nodes=nodes, shard=part, progress=progress)
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


def _opened(
    store: RunStore, spec: StudySpec, nodes: Sequence[Node], shard: Shard, *, fresh: bool
) -> tuple[Manifest, EarlierRun | None]:
    """Return the manifest of a new run, of the one in the folder, or of that one extended to the head of today.

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
        if store.exists() and not _never_began(store, spec):
            return _continued(store, spec, nodes, shard, _taken_up(store, spec, nodes, shard))
    manifest = _started(spec, nodes, shard)
    if fresh:  # after the versions were resolved: a node that does not answer leaves the run as it is
        store.discard(spec.title)
    return manifest, None


def _never_began(store: RunStore, spec: StudySpec) -> bool:
    """Return whether the run in the folder is of another study and has no observations: it is started again."""
    manifest = store.manifest()
    return manifest.study_digest != spec.digest and not manifest.complete and not store.part_files()


def _started(spec: StudySpec, nodes: Sequence[Node], shard: Shard) -> Manifest:
    plans = [resolve(spec, node) for node in nodes]
    if shard != WHOLE:
        check_shardable(spec, plans)
    return Manifest(
        study=dict(spec.document),
        study_digest=spec.digest,
        fingerprints=tuple(spec.functions),
        nodes=tuple(NodeRun(**structs.asdict(anchored(node, plan))) for node, plan in zip(nodes, plans, strict=True)),
        shard=None if shard == WHOLE else str(shard),
        started_at=datetime.now(UTC),
        complete=False,
    )


def _taken_up(store: RunStore, spec: StudySpec, nodes: Sequence[Node], shard: Shard) -> Manifest:
    manifest = store.manifest()
    if manifest.study_digest != spec.digest:
        differ = [name for name, value in spec.document.items() if value != manifest.study.get(name)]
        raise StudyError(
            f"{store.path} has a run of another study ({', '.join(differ)} differ); choose another folder, or run "
            "that study"
        )
    held = manifest.shard
    if Shard.parse(held) != shard:
        raise StudyError(
            f"{store.path} has {f'shard {held}' if held else 'a run of the whole study'}, not shard {shard}; "
            "choose another folder"
        )
    for node, plan in zip(nodes, manifest.nodes, strict=True):
        try:
            ledger_guard(node, plan).check()
        except LedgerChanged as error:  # such as a test network after a reset
            raise StudyError(
                f"{store.path} has a run of another ledger: {error}. Choose another folder for the ledger that the "
                "node serves now, or run the study on a node of the first ledger"
            ) from None
    store.mend()
    builds = [node.info().git_hash for node in nodes]  # each row has the build of the node that answered
    plans = [structs.replace(plan, node_build=build) for plan, build in zip(manifest.nodes, builds, strict=True)]
    return structs.replace(manifest, nodes=tuple(plans))


def _continued(
    store: RunStore, spec: StudySpec, nodes: Sequence[Node], shard: Shard, manifest: Manifest
) -> tuple[Manifest, EarlierRun | None]:
    """Return the manifest of the run in the folder; a complete run is continued if there is something to read."""
    if not manifest.complete or manifest.counts is None:
        return manifest, None
    heads = tuple(node.info().ledger.version for node in nodes)
    earlier = EarlierRun(RunAge.of(spec, manifest), heads, manifest.counts.observations)
    plans = manifest.nodes
    if shard == WHOLE:
        plans = tuple(extended(spec, node, plan) for node, plan in zip(nodes, plans, strict=True))
    if plans == manifest.nodes and _needs_nothing(store, spec, manifest):
        moves = bool(earlier.age.labels) and shard == WHOLE
        seen = structs.replace(
            manifest, study=dict(spec.document), checked_at=datetime.now(UTC) if moves else manifest.checked_at
        )
        return manifest if seen == manifest else store.write_manifest(seen), earlier
    return store.write_manifest(structs.replace(manifest, complete=False, nodes=plans, checked_at=None)), earlier


def _needs_nothing(store: RunStore, spec: StudySpec, manifest: Manifest) -> bool:
    """Return whether a complete run has its rows with an answer in each, the cause of every step, and the analysis."""
    steps = store.steps()
    if steps is None or (spec.committed and not has_timeline(store, manifest)):
        return False
    if manifest.counts is None or store.rows() != manifest.counts.observations or count_unanswered(store):
        return False
    if spec.committed:
        analysed = all(plan.committed_series is not None for plan in manifest.nodes)
        if not analysed or any(call.read_failed for call in manifest.committed_series):
            return False
    by_node = steps.groupby("node")["cause"]
    return all((causes == "unknown").sum() <= max(0, len(causes) - MAX_STEPS) for _, causes in by_node)


def _begun(store: RunStore, spec: StudySpec, manifest: Manifest, executor: str) -> Manifest:
    """Write the manifest of an attempt, after the rows that it must read again were dropped."""
    there = store.exists()
    if there:
        since = {plan.node: plan.unconfirmed_since for plan in manifest.nodes if plan.unconfirmed_since}
        store.drop_unanswered(since)
    manifest = structs.replace(
        manifest,
        study=dict(spec.document),  # thresholds, waivers and the pace may differ from the first attempt
        nodes=tuple(structs.replace(plan, unconfirmed_since=None) for plan in manifest.nodes),
        executor=executor,
        environment={
            "ledger-toolkit": __version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            **{name: installed(name) for name in _PACKAGES},
        },
        attempts=manifest.attempts + 1,
        resumed_rows=store.rows() if there else 0,
    )
    return store.write_manifest(manifest) if there else store.create(manifest)
