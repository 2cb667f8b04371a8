"""Many calls at once: sent over the bulk engine, or run in threads, with results as they come and a progress bar."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from tqdm.auto import tqdm

from toolkit.client._cache_file import warn_caller
from toolkit.errors import InvalidRequest, NodeError, NodeUnreachable, SchemaError, ToolkitError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from toolkit.client._calls import PreparedCall
    from toolkit.client._http import Answer
    from toolkit.client._node import Node  # for typing only: a Node sends the calls


Task = TypeVar("Task")
VersionTask = TypeVar("VersionTask", bound=tuple[Any, int])
Result = TypeVar("Result")

ProgressHook = Callable[[str, int, int], object]
"""Called with what is done, such as "observing", the number of calls done, and the number expected so far."""

_MAX_THREADS = 32
"""More threads make `requests` slower, not faster."""


def send_all(
    node: Node, tasks: Iterable[Task], prepare: Callable[[Task], PreparedCall[Result] | ToolkitError]
) -> Iterator[tuple[int, Result | ToolkitError]]:
    """Prepare tasks, send them at once, and yield (position, result or error) as they come.

    Parameters
    ----------
    node : Node
    tasks : iterable
        Read only as fast as results are taken, so it may be long.
    prepare : callable
        Returns the call of a task, or the error that is its outcome. NodeError, NodeUnreachable and SchemaError that
        it raises are the outcome too.

    Yields
    ------
    tuple of (int, result or error)
        One per task, in the order of completion. If a module could not be looked up and the node refuses the form of
        a call that was encoded without types (400), the outcome is the failure of the look-up.
    """
    untyped: dict[int, ToolkitError] = {}

    def prepared() -> Iterator[PreparedCall[Result] | ToolkitError]:
        for place, task in enumerate(tasks):
            try:
                call = prepare(task)
            except (NodeError, NodeUnreachable, SchemaError) as error:
                yield error
            else:
                if not isinstance(call, ToolkitError) and call.untyped is not None:
                    untyped[place] = call.untyped
                yield call

    for place, outcome in node.many(prepared()):
        failure = untyped.pop(place, None)
        refused = isinstance(outcome, InvalidRequest) and outcome.vm_error_code is None
        yield place, failure if failure is not None and refused else outcome


def send_all_typed(
    node: Node, tasks: Sequence[VersionTask], prepare: Callable[[VersionTask], PreparedCall[Result] | ToolkitError]
) -> Iterator[tuple[int, Result | ToolkitError]]:
    """Send tasks as `send_all` does, and look up the types again of those that were sent without them.

    A call whose module cannot be looked up is sent without types. After all others the module is looked up once more,
    and the answer is decoded again with its types.

    Parameters
    ----------
    node : Node
    tasks : sequence of tuple
        The second item of each is the ledger version that it reads.
    prepare : callable
        Returns the call of a task, or the error that is its outcome.

    Yields
    ------
    tuple of (int, result or error)
        As `send_all` does; a call that is decoded again is yielded again.

    Warns
    -----
    UserWarning
        If modules still cannot be looked up at the end.
    """
    untyped: dict[int, tuple[PreparedCall[Result], list[Answer]]] = {}

    def noted(place: int) -> PreparedCall[Result] | ToolkitError:
        call = prepare(tasks[place])
        if isinstance(call, ToolkitError) or call.untyped is None:
            return call
        answers: list[Answer] = []
        untyped[place] = call, answers

        def finish(answer: Answer) -> Result:
            answers.append(answer)
            return call.finish(answer)

        return replace(call, finish=finish)

    for place, outcome in send_all(node, range(len(tasks)), noted):
        if place in untyped and isinstance(outcome, ToolkitError) and outcome is not untyped[place][0].untyped:
            del untyped[place]  # the call failed for another reason
        yield place, outcome
    if untyped:
        yield from _decoded_again(node, tasks, prepare, untyped)


def _decoded_again(
    node: Node,
    tasks: Sequence[VersionTask],
    prepare: Callable[[VersionTask], PreparedCall[Result] | ToolkitError],
    untyped: Mapping[int, tuple[PreparedCall[Result], list[Answer]]],
) -> Iterator[tuple[int, Result | ToolkitError]]:
    node.abis.ask_again(sorted({tasks[place][1] for place in untyped}))
    to_send: list[int] = []
    failures: list[ToolkitError] = []
    for place, (before, answers) in untyped.items():
        outcome: Result | ToolkitError
        try:
            call = prepare(tasks[place])
            if isinstance(call, ToolkitError):
                yield place, call
                continue
            if call.untyped is not None:
                failures.append(call.untyped)
                continue
            if not answers or call.request.headers != before.request.headers:
                to_send.append(place)  # refused without types, or to be sent in another encoding
                continue
            outcome = call.finish(answers[0])
        except (NodeError, NodeUnreachable, SchemaError) as error:
            outcome = error
        yield place, outcome
    for number, outcome in send_all(node, to_send, lambda place: prepare(tasks[place])):
        yield to_send[number], outcome
    if failures:
        warn_caller(
            f"{len(failures):,} calls have no types, since a module could not be looked up ({failures[0]}): their "
            "values are as in the node's JSON; fetch them again once the node offers modules"
        )


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


class Progress:
    """A progress bar whose end may move while it runs."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._failed = 0

    def expect(self, more: int, *, found: int = 0) -> None:
        """Move the end; calls that were `found` done count as done, but not for the rate."""
        bar = self._bar
        if bar.disable:  # it has no end to move
            return
        done, began = bar.n, bar.start_t
        # In a notebook only `reset` moves the end that is drawn; it also sets the bar to 0, which is undone here.
        bar.reset(total=(bar.total or 0) + more + found)
        bar.initial += found
        bar.n, bar.start_t = done + found, began
        bar.refresh()

    def advance(self, done: int, *, failed: int = 0) -> None:
        """Move on; the number of failed calls is shown beside the rate."""
        if failed:
            self._failed += failed
            self._bar.set_postfix_str(f"{self._failed:,} failed", refresh=False)
        self._bar.update(done)


class _Reported(Progress):
    """Progress that a function is called with, instead of a bar."""

    def __init__(self, hook: ProgressHook, what: str, total: int) -> None:
        super().__init__(None)
        self._hook, self._what = hook, what
        self._done, self._total = 0, total
        hook(what, 0, total)

    def expect(self, more: int, *, found: int = 0) -> None:
        self._total += more + found
        self.advance(found)

    def advance(self, done: int, *, failed: int = 0) -> None:
        self._failed += failed
        self._done += done
        self._hook(self._what, self._done, self._total)


@contextmanager
def progress_bar(total: int, what: str, *, show: bool | ProgressHook) -> Iterator[Progress]:
    """Show a progress bar while the block runs, in notebooks and on terminals, but not in a log file.

    A function as `show` is called instead, first with nothing done. Errors that it raises are raised here.
    """
    if callable(show):
        yield _Reported(show, what, total)
        return
    hidden = not show or not (_in_notebook() or sys.stderr.isatty())
    with tqdm(total=total, desc=what, unit="call", disable=hidden, leave=False) as bar:
        yield Progress(bar)


def _in_notebook() -> bool:
    """Return whether a kernel runs this process; one that is only imported does not count."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")
