"""Executors of studies and syncs: opens an executor by its name, and explains its failures."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent import futures
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

from toolkit.client._threads import as_completed, join_begun
from toolkit.errors import InputError, RunStopped, StudyError, ToolkitError

_POOL = re.compile(r"(threads|processes):([1-9]\d{0,3})")
_SCHEDULER = re.compile(r"(tcp|tls|ucx|ws|wss)://\S+")
_FORMS = "threads:8, processes:4, or the address of a Dask scheduler such as tcp://host:8786"
# Maximum seconds to wait for the thread of a pool whose workers have ended; it ends at once.
_END_S = 10
# Seconds to wait for a scheduler; a wrong address should not take the 30 seconds of Dask to be reported.
_CONNECT_S = 10


@contextmanager
def opened_executor(given: futures.Executor | str | None) -> Iterator[futures.Executor | None]:
    """Open an executor given by name, and close it when the block ends. An executor object is not closed.

    Parameters
    ----------
    given : Executor, str, Dask client or None
        ``"threads:8"``, ``"processes:4"``, ``"tcp://host:8786"`` (a Dask scheduler), a Dask client, or any executor.

    Yields
    ------
    Executor or None

    Raises
    ------
    InputError
        If a string has none of these forms, or if Dask is needed but not installed.
    StudyError
        If no Dask scheduler responds.
    """
    if given is None or isinstance(given, futures.Executor):
        yield given
        return
    if hasattr(given, "get_executor"):  # a Dask client
        yield given.get_executor()
        return
    text = str(given)
    if match := _POOL.fullmatch(text):
        pool: futures.ThreadPoolExecutor | futures.ProcessPoolExecutor
        if match[1] == "threads":
            pool = futures.ThreadPoolExecutor(int(match[2]), thread_name_prefix="toolkit-worker")
        else:  # not forked: a copy would share the threads' locks and the sockets of this process
            context = multiprocessing.get_context("spawn")
            pool = futures.ProcessPoolExecutor(int(match[2]), mp_context=context, initializer=_begin_worker)
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
        raise InputError(f"executor: expected {_FORMS}, got {text!r}")


def _begin_worker() -> None:
    """Ignore interrupts, which the parent process handles, and end with the parent even if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, name="toolkit-parent", daemon=True).start()


def _end_with_parent() -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)


def _end_at_once(pool: futures.Executor) -> None:
    """End a pool after an interrupt or an error: cancel calls that have not started, and stop worker processes.

    Threads cannot be stopped. Their reads end because the nodes that they read from have been closed.
    """
    workers = list((getattr(pool, "_processes", None) or {}).values())
    outcomes = getattr(pool, "_result_queue", None)
    manager = getattr(pool, "_executor_manager_thread", None)
    pool.shutdown(wait=False, cancel_futures=True)
    for worker in workers:
        worker.terminate()
    if workers and outcomes is not None:
        # A worker that ends while it sends a result leaves half of it in the pipe. The pool's thread would wait for the
        # rest for ever, and Python waits for that thread when it exits: this end of the pipe is the last that is open.
        for worker in workers:
            worker.join()
        outcomes._writer.close()  # noqa: SLF001 - multiprocessing has no public name for it
    if manager is not None:
        # While that thread ends, it closes the pipe by which Python wakes it at exit, which prints a traceback if the
        # program exits at the same moment.
        join_begun(manager, _END_S)


def _cluster(address: str) -> Any:
    try:
        from distributed import Client
    except ImportError:
        raise InputError(
            f"executor {address}: Dask is not installed; run pip install 'ledger-toolkit[dask]' here and on the workers"
        ) from None
    try:
        return Client(address, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise StudyError(f"executor {address}: no Dask scheduler responds at this address ({error})") from None


def max_ranges(given: futures.Executor | str | None, max_tasks: int) -> int:
    """Return the maximum number of ranges in flight, which for a named pool is at most its number of workers."""
    match = _POOL.fullmatch(given) if isinstance(given, str) else None
    return min(max_tasks, int(match[2])) if match else max_tasks


def results(
    pool: futures.Executor,
    function: Callable[..., Any],
    tasks: Iterable[tuple[Any, ...]],
    at_once: int,
    *,
    ahead: int | None = None,
) -> Generator[tuple[int, Any], None, None]:
    """Call a function on an executor for each task, and yield (position of the task, result) as the calls end.

    Parameters
    ----------
    pool : concurrent.futures.Executor
    function : callable
    tasks : iterable of tuple
        The arguments of each call; consumed as calls end.
    at_once : int
        Maximum number of calls in flight.
    ahead : int, optional
        Maximum number of tasks, counted from the first unfinished task, whose calls may be started. This limits the
        number of results that a caller has to keep to process them in order. Unlimited by default.

    Raises
    ------
    RunStopped
        If the executor fails, for example because a worker dies. Results that arrived together with the failure are
        yielded first.
    """
    try:
        yield from as_completed(pool, function, tasks, at_once, ahead=ahead)
    except Exception as error:
        if (failure := executor_failure(error)) is None:
            raise
        raise failure from error


def executor_failure(error: BaseException) -> RunStopped | None:
    """Return the error to raise if `error` means that the executor failed, rather than a read; otherwise None."""
    if isinstance(error, ToolkitError):
        return None
    ended = isinstance(error, futures.BrokenExecutor | futures.CancelledError)
    lost = ended or type(error).__module__.startswith("distributed")
    if not lost and not isinstance(error, ImportError | OSError):
        return None
    if isinstance(error, ImportError):
        why = "workers must have the same versions of ledger-toolkit and Python as this process"
    elif isinstance(error, BrokenProcessPool):
        why = 'a worker died; in a script, start processes under `if __name__ == "__main__":`'
    else:
        why = "a worker died or the cluster is unreachable"
    return RunStopped(
        f"the executor failed: {type(error).__name__}: {str(error)[:300]} ({why}). The data written earlier is "
        "kept. To continue, repeat the call with the same folder and a new executor"
    )
