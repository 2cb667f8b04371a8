"""Runs a study from start to end: opens the run, reads what is missing, then completes it."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from toolkit.client._executors import max_ranges, opened_executor
from toolkit.client._progress import ProgressHook, progress_bar
from toolkit.errors import InputError, LedgerChanged, RunStopped, StudyError
from toolkit.gas.plan._resolve import ledger_guard
from toolkit.gas.runs._collector import Collector
from toolkit.gas.runs._committed import with_timelines
from toolkit.gas.runs._completion import complete
from toolkit.gas.runs._job import Job, Reading
from toolkit.gas.runs._opening import begun, opened
from toolkit.gas.runs._reader import NodeReader
from toolkit.gas.runs._store import Journal, RunStore

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from toolkit.gas.plan._plan import StudySpec
    from toolkit.gas.runs._manifest import EarlierRun


def run_study(
    spec: StudySpec,
    out: str | Path | None,
    *,
    progress: bool | ProgressHook,
    executor: Executor | str | None = None,
    max_tasks: int = 8,
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
    tasks = max_ranges(executor, max_tasks)
    path = Path(mkdtemp(prefix="ledger-toolkit-run-") if out is None else out)
    store = RunStore(path)
    made = store.make_folder() or out is None
    try:
        with store.locked(), ExitStack() as stack:
            pool = stack.enter_context(opened_executor(executor))
            job = Job(spec, store, tuple(spec.connect(stack)), pool, tasks, progress)
            job, manifest, earlier = opened(job, fresh=fresh)
            if manifest.complete:
                return path, earlier
            try:
                journal = Journal(store, with_timelines(job, begun(job, manifest)))
                for node, plan in job.plans_of(journal.manifest):
                    with (
                        progress_bar(0, "observing", show=progress) as bar,
                        Collector(store, bar, guard=ledger_guard(node, plan)) as collector,
                    ):
                        NodeReader(Reading(job, node, plan, collector, journal)).read_all()
                complete(job, journal.manifest)
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
