"""View calls at ledger versions, to observations: over the bulk engine here, or in ranges over an executor."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import threading
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from toolkit.client._batch import send_all
from toolkit.errors import InputError, RunStopped, StudyError, ToolkitError
from toolkit.frames._schema import OBSERVATIONS
from toolkit.gas.runs._collector import check_there, heard
from toolkit.move import FunctionId
from toolkit.wire import ViewFunction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

    from toolkit.client._node import Node
    from toolkit.gas._calls import Call
    from toolkit.gas._observations import Origin


# Minimum number of view calls in a range: a range costs a scheduler milliseconds, and a worker a connection.
MIN_RANGE = 100
# A range that fails is read again whole, and workers end at about the same time if each has several ranges.
_MAX_RANGE = 1_000
_RANGES_PER_TASK = 4
_POOL = re.compile(r"(threads|processes):([1-9]\d{0,3})")
_SCHEDULER = re.compile(r"(tcp|tls|ucx|ws|wss)://\S+")
_FORMS = "threads:8, processes:4, or the address of a Dask scheduler such as tcp://host:8786"
# Seconds to wait for a scheduler; a wrong address should not take the 30 seconds of Dask to be reported.
_CONNECT_S = 10

Row = dict[str, Any]
Task = tuple["Call", int]


@contextmanager
def opened_executor(given: Executor | str | None) -> Iterator[Executor | None]:
    """Open the executor that a text names, and close it when the block ends; an executor object is not closed.

    Parameters
    ----------
    given : Executor, str, Dask client or None
        ``"threads:8"``, ``"processes:4"``, ``"tcp://host:8786"`` (a Dask scheduler), or any executor.

    Yields
    ------
    Executor or None

    Raises
    ------
    InputError
        If the text has none of these forms, or Dask is not installed.
    StudyError
        If no scheduler answers.
    """
    if given is None or isinstance(given, Executor):
        yield given
        return
    if hasattr(given, "get_executor"):  # a Dask client
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
        raise InputError(f"executor: expected {_FORMS}, got {text!r}")


def _pool(kind: str, size: int) -> ThreadPoolExecutor | ProcessPoolExecutor:
    if kind == "threads":
        return ThreadPoolExecutor(size, thread_name_prefix="toolkit-study")
    # Not forked: a copy would share the threads' locks and the sockets of this process.
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(size, mp_context=context, initializer=_begin_worker)


def _begin_worker() -> None:
    """Ignore interrupts, which the parent process handles, and end with the parent even if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, name="toolkit-parent", daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _end_at_once(pool: ThreadPoolExecutor | ProcessPoolExecutor) -> None:
    """End a pool after an interrupt or an error: cancel what has not started, and stop worker processes.

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
            f"executor {address}: Dask is not installed; pip install 'ledger-toolkit[dask]' here and on the workers"
        ) from None
    try:
        return Client(address, timeout=_CONNECT_S, set_as_default=False)  # type: ignore[no-untyped-call] # Dask has no types
    except (OSError, ValueError) as error:
        raise StudyError(f"executor {address}: no Dask scheduler answers at this address ({error})") from None


def max_ranges(given: Executor | str | None, max_tasks: int) -> int:
    """Return the number of ranges in flight: at most the workers of a named pool, as each has a share of the pace."""
    match = _POOL.fullmatch(given) if isinstance(given, str) else None
    return min(max_tasks, int(match[2])) if match else max_tasks


def executor_name(executor: Executor | None, max_tasks: int) -> str:
    """Return a short description of where views are read, for the manifest."""
    if executor is None:
        return "in this process"
    return f"{type(executor).__module__}.{type(executor).__qualname__}, at most {max_tasks} ranges at once"


def executor_failure(error: BaseException) -> RunStopped | None:
    """Return the error to raise if the executor failed, not the read; None for any other error."""
    if isinstance(error, ToolkitError):
        return None
    lost = isinstance(error, BrokenExecutor | CancelledError) or type(error).__module__.startswith("distributed")
    if not lost and not isinstance(error, ImportError | OSError):
        return None
    if isinstance(error, ImportError):
        why = "workers must have the same versions of ledger-toolkit and Python as this process"
    elif isinstance(error, BrokenProcessPool):
        why = 'a worker died; in a script, start processes under `if __name__ == "__main__":`'
    else:
        why = "a worker died or the cluster is unreachable"
    return RunStopped(
        f"the executor failed: {type(error).__name__}: {str(error)[:300]} ({why}). The observations until then are "
        "stored. To continue, run the same study into the same folder with a new executor"
    )


def observe_views(node: Node, origin: Origin, tasks: Sequence[Task]) -> Iterator[Row]:
    """Run view calls at their versions over the bulk engine.

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
        Rows of the observation frame, in the order of the answers. A call that fails is a row with its error.
    """
    ready = {call.fingerprint: node.prepare_views(_view(call)) for call, _ in tasks}

    for place, outcome in send_all(node, tasks, lambda task: ready[task[0].fingerprint].at(task[1])):
        call, version = tasks[place]
        now = datetime.now(UTC)
        if isinstance(outcome, ToolkitError):
            yield origin.failed(call, version, outcome, now)
        else:
            yield origin.view(call, outcome, now)


def _view(call: Call) -> ViewFunction:
    request = call.request
    if not isinstance(request, ViewFunction):
        raise InputError(f"call {call.name!r} is not a view, so it cannot be read at past versions")
    return request


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
    """Run view calls over an executor, in ranges of 100 to 1,000.

    Each range runs its own bulk engine over a copy of `node` with its share of the rate and of the requests in flight.
    It returns a table, so workers need no disk and no shared folder.

    Parameters
    ----------
    executor : concurrent.futures.Executor
        Threads, processes or a cluster. `node`, `origin` and the calls are pickled.
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
        If an answer is of another chain.
    NodeUnreachable
        If the node no longer answers. The rows of the affected ranges are read again by the next attempt.
    """
    size = min(_MAX_RANGE, max(MIN_RANGE, -(-count // (_RANGES_PER_TASK * max_tasks))))
    waiting = iter(tasks)
    pending: set[Future[pa.Table]] = set()
    with node.with_share(max(1, min(max_tasks, -(-count // size)))) as share:
        try:
            while True:
                while len(pending) < max_tasks and (some := list(islice(waiting, size))):
                    pending.add(executor.submit(_observe_range, share, origin, some))
                if not pending:
                    return
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                ended = [future for future in done if not future.cancelled() and future.exception() is None]
                for future in ended:
                    take(future.result())
                for future in done.difference(ended):
                    future.result()  # raises, after the tables of other ranges were taken
        except Exception as error:
            failure = executor_failure(error)
            if failure is None:
                raise
            raise failure from error
        finally:
            # After an interrupt or an error, ranges that have not started are cancelled.
            for future in pending:
                future.cancel()


def _observe_range(node: Node, origin: Origin, tasks: list[Task]) -> pa.Table:
    with node.with_share(1) as copy:  # in threads nothing is pickled, and each range needs its own sockets
        copy.expect_chain(origin.chain_id)
        for call in {call.fingerprint: call for call, _ in tasks}.values():
            learn_module(copy, call, sorted(version for other, version in tasks if other is call))
        # Otherwise calls would wait for their ABI one after the other, or every row would be a 401.
        check_there(copy, "before reading a range of calls", admitted=True)
        return OBSERVATIONS.table_of_rows(list(heard(observe_views(copy, origin, tasks), copy)))


def learn_module(node: Node, call: Call, versions: Sequence[int]) -> None:
    """Read the called module over sorted versions by bisection, so that no ABI is requested at each version."""
    function = FunctionId.parse(call.function)
    node.abis.prepare(function.address, function.module, versions)
