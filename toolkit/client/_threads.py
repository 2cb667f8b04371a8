"""A function over many tasks in threads, with results as they come."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Task = TypeVar("Task")
Result = TypeVar("Result")

# More threads make `requests` slower, not faster.
_MAX_THREADS = 32


def run_in_threads(
    tasks: Iterable[Task],
    do: Callable[[Task], Result],
    *,
    in_flight: int,
    advance: Callable[[int], Any] = lambda _: None,
) -> Iterator[tuple[int, Result]]:
    """Run a function over tasks in threads and yield (position, result) as they come.

    Parameters
    ----------
    tasks : iterable
        Read only as fast as results are taken, so it may be long.
    do : callable
        Called in worker threads. An error that it raises is raised here and ends the run.
    in_flight : int
        Maximum number of tasks at once.
    advance : callable, optional
        Called with 1 after each result.

    Yields
    ------
    tuple of (int, result)
        In the order of completion; those that are complete at the same time in the order of the tasks.
    """
    numbered = enumerate(tasks)
    threads = min(in_flight, _MAX_THREADS)
    pending: dict[Future[Result], int] = {}
    pool = ThreadPoolExecutor(threads, thread_name_prefix="toolkit-fetch")
    patient = True
    try:
        while True:
            for number, task in numbered:
                pending[pool.submit(do, task)] = number
                if len(pending) >= 2 * threads:
                    break
            if not pending:
                return
            done, _ = wait(pending, return_when=FIRST_COMPLETED)
            for future in sorted(done, key=pending.__getitem__):
                yield pending.pop(future), future.result()
                advance(1)
    except KeyboardInterrupt:
        patient = False  # Ctrl-C does not wait for the tasks in progress
        raise
    finally:
        # After an interrupt, an error or an abandoned iteration no further task begins.
        pool.shutdown(wait=patient, cancel_futures=True)
