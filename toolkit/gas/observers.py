"""What runs where an executor puts it: a range of view calls on one node, to rows. Importable, so it can be sent."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from toolkit.client.sweep import sweep
from toolkit.errors import InputError, ToolkitError
from toolkit.gas.observing import VIEW, Origin
from toolkit.wire.requests import ViewFunction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from toolkit.client.node import Node
    from toolkit.client.prepared import Prepared
    from toolkit.client.results import ViewResult
    from toolkit.gas.study import Call

__all__ = ["RANGE", "observe_elsewhere", "observe_views"]

RANGE = 250
"""View calls of one task; a task costs a scheduler milliseconds, so single calls would be lost in overhead."""

Row = dict[str, Any]
Task = tuple["Call", int]


def observe_views(
    node: Node, origin: Origin, tasks: Sequence[Task], *, advance: Callable[[int], Any] = lambda _: None
) -> list[Row]:
    """Run view calls at their versions, all at once; a call that fails is a row like any other.

    Parameters
    ----------
    node : Node
    origin : Origin
        What the rows share.
    tasks : sequence of (Call, int)
        Calls with the ledger version to read.
    advance : callable, optional
        Called with 1 after each.

    Returns
    -------
    list of dict
        Rows of the observation frame in the order of the tasks.
    """
    ready = {call.fingerprint: node.prepare_views(_view(call)) for call, _ in tasks}

    def prepare(task: Task) -> Prepared[ViewResult]:
        call, version = task
        return ready[call.fingerprint].at(version)

    rows: list[Row] = [{}] * len(tasks)
    for place, outcome in sweep(node, tasks, prepare):
        call, version = tasks[place]
        now = datetime.now(UTC)
        if isinstance(outcome, ToolkitError):
            rows[place] = origin.failed(call.name, call.fingerprint, VIEW, version, error=outcome, observed_at=now)
        else:
            rows[place] = origin.view(call.name, call.fingerprint, outcome, now)
        advance(1)
    return rows


def _view(call: Call) -> ViewFunction:
    request = call.request
    if not isinstance(request, ViewFunction):
        raise InputError(f"call {call.name!r} is no view, so it cannot be read at past versions")
    return request


def observe_elsewhere(
    executor: Executor, node: Node, origin: Origin, tasks: Sequence[Task], *, max_tasks: int
) -> Iterator[list[Row]]:
    """Run view calls over an executor in ranges, and yield the rows of each as it ends.

    Each range runs its own bulk engine over a copy of `node` with its share of the rate.

    Parameters
    ----------
    executor : concurrent.futures.Executor
        Threads, processes, a cluster: `node`, `origin` and the calls are picklable.
    node : Node
    origin : Origin
    tasks : sequence of (Call, int)
    max_tasks : int
        Most ranges in flight.

    Yields
    ------
    list of dict
        Rows of one range.
    """
    ranges = [tasks[start : start + RANGE] for start in range(0, len(tasks), RANGE)]
    share = node.with_share(min(max_tasks, max(1, len(ranges))))
    pending: set[Future[list[Row]]] = set()
    waiting = iter(ranges)
    try:
        while True:
            for some in waiting:
                pending.add(executor.submit(_observe_range, share, origin, list(some)))
                if len(pending) >= max_tasks:
                    break
            if not pending:
                return
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
    finally:
        for future in pending:
            future.cancel()


def _observe_range(node: Node, origin: Origin, tasks: list[Task]) -> list[Row]:
    copy = node.with_share(1)  # in threads nothing was pickled: each range needs sockets of its own
    with copy:
        return observe_views(copy, origin, tasks)
