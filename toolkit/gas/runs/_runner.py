"""Runs a study from start to end: opens the run, reads what is missing, then completes it.

The run is new, is continued from the folder, or is a complete run that is extended to the current head.
"""

from __future__ import annotations

import platform
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from msgspec import structs

from toolkit import __version__
from toolkit._present.text import plural
from toolkit.client._executors import max_ranges, opened_executor
from toolkit.client._progress import ProgressHook, progress_bar
from toolkit.errors import InputError, LedgerChanged, RunStopped, StudyError
from toolkit.gas._observations import ReadAt
from toolkit.gas.causes._finding import MAX_STEPS
from toolkit.gas.plan._plan import anchored, calls_read, extended, ledger_guard, resolve, study_digest
from toolkit.gas.runs._collector import Collector
from toolkit.gas.runs._committed import find_timelines, has_timeline
from toolkit.gas.runs._completion import complete
from toolkit.gas.runs._manifest import EarlierRun, Manifest, NodeRun, RunAge
from toolkit.gas.runs._reader import NodeReader
from toolkit.gas.runs._scan import count_unanswered
from toolkit.gas.runs._store import Job, RunStore

if TYPE_CHECKING:
    from collections.abc import Collection
    from concurrent.futures import Executor

    from toolkit.gas._study import Study


def run_study(
    study: Study,
    out: str | Path | None,
    *,
    progress: bool | ProgressHook,
    executor: Executor | str | None = None,
    max_tasks: int = 8,
    fresh: bool = False,
    existed: Collection[str] = (),
) -> tuple[Path, EarlierRun | None]:
    """Run a study; see `Study.run`, and `resolve` for `existed`.

    Returns
    -------
    Path
        The folder of the run.
    EarlierRun or None
        The complete run that was in the folder, if there was one.
    """
    if max_tasks < 1:
        raise InputError(f"max_tasks must be 1 or more, got {max_tasks}")
    tasks = max_ranges(executor, max_tasks)
    path = Path(mkdtemp(prefix="ledger-toolkit-run-") if out is None else out)
    store = RunStore(path)
    made = store.make_folder() or out is None
    try:
        with store.locked(), ExitStack() as stack:
            pool = stack.enter_context(opened_executor(executor))
            job = Job(study, store, tuple(study.connect(stack)), pool, tasks, progress)
            earlier = open_run(job, fresh=fresh, existed=existed)
            if job.manifest.complete:
                return path, earlier
            try:
                begin(job)
                find_timelines(job)
                for node, plan in job.plans():
                    with (
                        progress_bar(0, "observing", show=progress) as bar,
                        Collector(store, bar, guard=ledger_guard(node, plan)) as collector,
                    ):
                        NodeReader(job, node, plan, collector).read_all()
                complete(job)
            except LedgerChanged as error:
                raise RunStopped(
                    f"the run was stopped: {error}. {path} contains {plural(store.rows(), 'observation')} of the run's "
                    "ledger; observations read since the last check of the ledger were discarded. To continue, run the "
                    "same study into the same folder once the node serves the run's ledger again. To observe the new "
                    "ledger, choose another folder"
                ) from None
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
        rows = store.rows()
        count = f"{plural(rows, 'observation')} {'is' if rows == 1 else 'are'} stored in {store.path}"
    except StudyError as error:  # the folder was removed, or a part is damaged
        return f"stopped; {error}"
    return f"stopped; {count}; {again} continues the run"


def open_run(job: Job, *, fresh: bool, existed: Collection[str] = ()) -> EarlierRun | None:
    """Give a job the manifest of a new run, of the run in the folder, or of that run extended to the current head.

    Returns the earlier run if it was complete.

    Raises
    ------
    StudyError
        If the folder has other files, or a run of another study, chain or history, or one whose ``run.json`` is damaged
        or missing.

    Warns
    -----
    UserWarning
        If files were damaged.
    """
    store, study = job.store, job.study
    store.check_unused()
    if not fresh and store.exists():
        job.manifest = store.manifest()
        # A run of another study that has no observations is started again.
        if job.manifest.complete or store.part_files() or study_digest(job.manifest.study) == study.digest:
            _take_up(job)
            return _extend(job)
    plans = zip(job.nodes, [resolve(study, node, existed=existed) for node in job.nodes], strict=True)
    job.manifest = Manifest(
        study=study.document(),
        study_digest=study.digest,
        fingerprints=tuple(call.fingerprint for call in study.calls),
        nodes=tuple(NodeRun(**structs.asdict(anchored(node, plan))) for node, plan in plans),
        started_at=datetime.now(UTC),
        complete=False,
    )
    if fresh:  # after the versions were resolved: a node that does not answer leaves the run unchanged
        store.discard()
    return None


def _take_up(job: Job) -> None:
    """Prepare to continue the run in the folder, after checking that this study on these nodes can continue it."""
    store, study, known = job.store, job.study, job.manifest.study
    labels = [call.get("label") for call in known.get("call", ())]
    # A call without a label has the one in the run.
    renamed = [call.label for call, label in zip(study.calls, labels, strict=False) if call.label not in {"", label}]
    if renamed or study_digest(known) != study.digest:
        differ = [name for name, value in study.document().items() if value != known.get(name)]
        raise StudyError(
            f"{store.path} has a run of another study (different: {', '.join(differ)}); choose another folder, or "
            "replace the run with --fresh (fresh=True in Python)"
        )
    for node, plan in job.plans():
        try:
            ledger_guard(node, plan).check()
        except LedgerChanged as error:  # such as a test network after a reset
            raise StudyError(
                f"{store.path} has a run of another ledger: {error}. Choose another folder for the ledger that the "
                "node serves now, or run the study on a node that serves the run's ledger"
            ) from None
    store.mend()
    # Each row has the build of the node that answered.
    plans = [structs.replace(plan, node_build=node.info().git_hash) for node, plan in job.plans()]
    job.manifest = structs.replace(job.manifest, nodes=tuple(plans))
    job.study = study.labelled_as(known)


def _extend(job: Job) -> EarlierRun | None:
    """Continue the run in the folder; if it is complete, only if there is something to read. Returns it if it was."""
    manifest, study = job.manifest, job.study
    if not manifest.complete or manifest.counts is None:
        return None
    heads = tuple(node.info().ledger.version for node in job.nodes)
    earlier = EarlierRun(RunAge.of(study, manifest), heads, manifest.counts.observations)
    plans = []
    for node, plan in job.plans():
        grown = extended(study, node, plan)
        if grown.committed_span != plan.committed_span:
            grown = structs.replace(grown, timeline=None, storage_prices=None, committed_series=None)
        plans.append(grown)
    if plans != [*manifest.nodes] or not _needs_nothing(job):
        job.write(complete=False, nodes=tuple(plans), checked_at=None)
    elif earlier.age.labels:
        job.write(study=study.document(), checked_at=datetime.now(UTC))
    elif study.document() != manifest.study:
        job.write(study=study.document())
    return earlier


def _needs_nothing(job: Job) -> bool:
    """Return whether every row of a complete run has a response and every step a cause, and the analysis is stored."""
    store, manifest, steps = job.store, job.manifest, job.store.steps()
    committed = calls_read(job.study, ReadAt.TRANSACTIONS)
    if steps is None or (committed and not has_timeline(manifest)):
        return False
    if manifest.counts is None or store.rows() != manifest.counts.observations or count_unanswered(store):
        return False
    if committed:
        analysed = all(plan.committed_series is not None for plan in manifest.nodes)
        if not analysed or any(call.read_failed for call in manifest.committed_series):
            return False
    by_node = steps.groupby("node")["cause"]
    return all((causes == "unknown").sum() <= max(0, len(causes) - MAX_STEPS) for _, causes in by_node)


def executor_name(executor: Executor | None, max_tasks: int) -> str:
    """Return a short description of where views are read, for the manifest."""
    if executor is None:
        return "in this process"
    return f"{type(executor).__module__}.{type(executor).__qualname__}, at most {max_tasks} ranges at once"


def begin(job: Job) -> None:
    """Drop the rows that an attempt must read again, then write its manifest."""
    store = job.store
    if store.exists():
        store.drop_unanswered()
    else:
        store.create(job.manifest)
    environment = {"ledger-toolkit": __version__}
    for name in ("pandas", "pyarrow", "pycurl"):
        with suppress(PackageNotFoundError):  # pycurl is optional
            environment[name] = installed(name)
    job.write(
        study=job.study.document(),  # thresholds, waivers and the pace may differ from the first attempt
        executor=executor_name(job.executor, job.max_tasks),
        environment=environment | {"python": platform.python_version(), "platform": platform.platform()},
        attempts=job.manifest.attempts + 1,
        resumed_rows=store.rows(),
    )
