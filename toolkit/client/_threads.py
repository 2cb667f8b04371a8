"""Runs a function over many tasks, on an executor or in threads, and yields results as they arrive."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from itertools import islice
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from threading import Thread

Task = TypeVar("Task")
Result = TypeVar("Result")

# More threads make `requests` slower, not faster.
_MAX_THREADS = 32
# Seconds after which a wait begins again: an interrupt that arrives just before Python blocks on a lock does not end
# the wait, so an endless one would miss Ctrl-C.
MAX_WAIT_S = 1.0


def as_completed(
    pool: Executor,
    function: Callable[..., Result],
    tasks: Iterable[tuple[Any, ...]],
    at_once: int,
    *,
    ahead: int | None = None,
) -> Generator[tuple[int, Result], None, None]:
    """Call a function on an executor for each task, and yield (position of the task, result) as the calls end.

    Results that arrived together with a failure are yielded before the failure is raised. Calls that have not started
    are then cancelled.

    Parameters
    ----------
    pool : concurrent.futures.Executor
    function : callable
    tasks : iterable of tuple
        The arguments of each call; consumed as calls end.
    at_once : int
        Maximum number of calls in flight.
    ahead : int, optional
        Maximum number of tasks, counted from the first unfinished task, whose calls may be started.
    """
    waiting, begun = enumerate(tasks), 0
    pending: dict[Future[Result], int] = {}
    # `concurrent.futures.wait` locks all futures: an interrupt meanwhile would leave them locked, their workers would
    # wait for ever, and the process would not end.
    ended: SimpleQueue[Future[Result]] = SimpleQueue()

    def failed_then_place(future: Future[Result]) -> tuple[bool, int]:
        return future.cancelled() or future.exception() is not None, pending[future]

    try:
        while True:
            room = at_once - len(pending)
            if ahead is not None:
                room = min(room, min(pending.values(), default=begun) + ahead - begun)
            for place, task in islice(waiting, room):
                future = pool.submit(function, *task)
                pending[future], begun = place, place + 1
                future.add_done_callback(ended.put)
            if not pending:
                return
            try:
                done = [ended.get(timeout=MAX_WAIT_S)]
                while not ended.empty():
                    done.append(ended.get())
            except Empty:
                continue
            for future in sorted(done, key=failed_then_place):
                yield pending.pop(future), future.result()
    finally:
        for future in pending:
            future.cancel()


def run_in_threads(
    tasks: Iterable[Task],
    do: Callable[[Task], Result],
    *,
    in_flight: int,
) -> Iterator[tuple[int, Result]]:
    """Run a function over tasks in threads, and yield (position, result) as the results arrive.

    Parameters
    ----------
    tasks : iterable
        Consumed lazily, as results are taken.
    do : callable
        Called in worker threads. An error that it raises is raised here and ends the run.
    in_flight : int
        Maximum number of tasks at once.

    Yields
    ------
    tuple of (int, result)
        In the order of completion; results that complete at the same time are in the order of the tasks.
    """
    threads = min(in_flight, _MAX_THREADS)
    pool = ThreadPoolExecutor(threads, thread_name_prefix="toolkit-fetch")
    patient = True
    try:
        yield from as_completed(pool, do, ((task,) for task in tasks), 2 * threads)
    except KeyboardInterrupt:
        patient = False  # Ctrl-C does not wait for the tasks in progress
        raise
    finally:
        # After an interrupt, an error or an abandoned iteration no further task begins.
        pool.shutdown(wait=patient, cancel_futures=True)


def join_begun(thread: Thread, timeout_s: float | None = None) -> None:
    """Wait for a thread that is to end, unless it is only just starting.

    Another thread may be amid `Thread.start`, or an interrupt may have ended it there. Python does not join such a
    thread, and to wait until it has begun could take for ever; once it runs, it sees that it is to end.
    """
    with contextlib.suppress(RuntimeError):
        thread.join(timeout_s)
