"""Many calls at once: bounded in flight, in order at the end, cancellable, with a progress bar."""

from __future__ import annotations

import sys
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from tqdm.auto import tqdm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["Progress", "progress_bar", "run_many"]

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")

_MOST_THREADS = 32
"""More threads than this make `requests` slower, not faster."""


def run_many(
    tasks: Iterable[_Task],
    do: Callable[[_Task], _Result],
    *,
    in_flight: int,
    advance: Callable[[int], Any] = lambda _: None,
) -> Iterator[tuple[int, _Result]]:
    """Run `do` over tasks in threads and yield (position, result) as they come.

    Parameters
    ----------
    tasks : iterable
        Read only as fast as results are taken, so it may be long.
    do : callable
        Called in worker threads; what it raises is raised here and ends the run.
    in_flight : int
        Most tasks at once.
    advance : callable, optional
        Called with 1 after each result.

    Yields
    ------
    tuple of (int, result)
        In the order of completion.
    """
    numbered = enumerate(tasks)
    threads = min(in_flight, _MOST_THREADS)
    pending: dict[Future[_Result], int] = {}
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
            for future in done:
                yield pending.pop(future), future.result()
                advance(1)
    except KeyboardInterrupt:
        patient = False  # whoever presses Ctrl-C does not wait for what is in flight
        raise
    finally:
        # An interrupt, an error or an abandoned iteration: what has not begun never begins.
        pool.shutdown(wait=patient, cancel_futures=True)


class Progress:
    """A progress bar whose end may move while it runs."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._failed = 0

    def expect(self, more: int, *, found: int = 0) -> None:
        """Move the end; what was `found` done already counts as done, but not for the rate."""
        bar = self._bar
        if bar.disable:  # it has no end to move
            return
        done, began = bar.n, bar.start_t
        # In a notebook `reset` alone moves the end that is drawn; it also starts from nothing, which is taken back.
        bar.reset(total=(bar.total or 0) + more + found)
        bar.initial += found
        bar.n, bar.start_t = done + found, began
        bar.refresh()

    def advance(self, done: int, *, failed: int = 0) -> None:
        """Move on; how many failed so far is told beside the rate."""
        if failed:
            self._failed += failed
            self._bar.set_postfix_str(f"{self._failed:,} failed", refresh=False)
        self._bar.update(done)


@contextmanager
def progress_bar(total: int, what: str, *, show: bool) -> Iterator[Progress]:
    """Show a progress bar while the block runs: in notebooks, and on terminals, but not in a log file."""
    hidden = not show or not (_in_notebook() or sys.stderr.isatty())
    with tqdm(total=total, desc=what, unit="call", disable=hidden, leave=False) as bar:
        yield Progress(bar)


def _in_notebook() -> bool:
    """Tell whether a kernel runs this; that one is merely imported says nothing."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")
