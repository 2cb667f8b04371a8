"""Where views are read: an executor of the caller's, or one that a text names; and what its failures mean."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import threading
from concurrent.futures import BrokenExecutor, CancelledError, Executor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from toolkit.errors import InputError, RunStopped, StudyError, ToolkitError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["executor_failure", "executor_name", "most_tasks", "opened_executor"]

_POOL = re.compile(r"(threads|processes):([1-9]\d{0,3})")
_SCHEDULER = re.compile(r"(tcp|tls|ucx|ws|wss)://\S+")
_FORMS = "threads:8, processes:4, or the address of a Dask scheduler such as tcp://host:8786"
_CONNECT_S = 10


@contextmanager
def opened_executor(given: Executor | str | None) -> Iterator[Executor | None]:
    """Open the executor that a text names, and close it when the block ends; one that is given is left open.

    Parameters
    ----------
    given : Executor, str, Dask client or None
        ``"threads:8"``, ``"processes:4"``, ``"tcp://host:8786"`` (a Dask scheduler), or any executor.

    Raises
    ------
    InputError
        If the text has none of the forms, or Dask is not installed.
    StudyError
        If no scheduler answers.
    """
    if given is None or isinstance(given, Executor):
        yield given
        return
    if hasattr(given, "get_executor"):  # a Dask client, as people have it at hand
        yield given.get_executor()
        return
    text = str(given)
    if match := _POOL.fullmatch(text):
        pool = _pool(match[1], int(match[2]))
        try:
            yield pool
        except BaseException:
            _end_at_once(pool)
            raise
        else:
            pool.shutdown()
    elif _SCHEDULER.fullmatch(text):
        with _cluster(text) as client:
            yield client.get_executor()
    else:
        raise InputError(f"executor {text!r} is not understood; the forms are {_FORMS}")


def _pool(kind: str, size: int) -> ThreadPoolExecutor | ProcessPoolExecutor:
    if kind == "threads":
        return ThreadPoolExecutor(size, thread_name_prefix="toolkit-study")
    # Not forked: this process has threads and sockets that a copy would share.
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(size, mp_context=context, initializer=_begin_worker)


def _begin_worker() -> None:
    """Leave interrupts to the parent process, and end with it: a killed parent cannot end its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, name="toolkit-parent", daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _end_at_once(pool: ThreadPoolExecutor | ProcessPoolExecutor) -> None:
    """End a pool after an interrupt or an error: what has not begun never begins, and worker processes are stopped.

    Threads cannot be stopped; the nodes that they read from are closed by then, which ends their reads.
    """
    workers = list((getattr(pool, "_processes", None) or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for worker in workers:
        worker.terminate()


def _cluster(address: str) -> Any:
    try:
        from distributed import Client
    except ImportError:
        raise InputError(
            f"executor {address}: Dask is not installed here; pip install 'ledger-toolkit[dask]', on the workers too"
        ) from None
    try:
        return Client(address, timeout=_CONNECT_S, set_as_default=False)  # type: ignore[no-untyped-call] # Dask has no types
    except (OSError, ValueError) as error:
        raise StudyError(f"executor {address}: no Dask scheduler answers there ({error})") from None


def most_tasks(given: Executor | str | None, max_tasks: int) -> int:
    """Return the ranges in flight: no more than a named pool has workers, for each takes its share of the pace."""
    match = _POOL.fullmatch(given) if isinstance(given, str) else None
    return min(max_tasks, int(match[2])) if match else max_tasks


def executor_name(executor: Executor | None, max_tasks: int) -> str:
    """Say in a few words where views are read."""
    if executor is None:
        return "in this process"
    return f"{type(executor).__module__}.{type(executor).__qualname__}, at most {max_tasks} ranges at once"


def executor_failure(error: BaseException) -> RunStopped | None:
    """Return what to tell where the executor failed and not the reading; None for any other error."""
    if isinstance(error, ToolkitError):
        return None
    lost = isinstance(error, BrokenExecutor | CancelledError) or type(error).__module__.startswith("distributed")
    if not lost and not isinstance(error, ImportError | OSError):
        return None
    if isinstance(error, ImportError):
        why = "a worker needs the same ledger-toolkit and Python as here"
    elif isinstance(error, BrokenProcessPool):
        why = 'a worker died; in a script, what starts processes stands under `if __name__ == "__main__":`'
    else:
        why = "a worker died or the cluster went away"
    return RunStopped(
        f"the executor failed: {type(error).__name__}: {str(error)[:300]} ({why}). What came until then is kept; "
        "run the same study into the same folder, with a new executor, and it goes on from there"
    )
