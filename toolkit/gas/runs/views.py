"""View calls at versions, to observations: here, or in ranges wherever an executor puts them."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from toolkit.client.sweep import sweep
from toolkit.errors import InputError, SchemaError, ToolkitError
from toolkit.frames.schema import OBSERVATIONS
from toolkit.gas.observing import Origin, Source, row_columns
from toolkit.gas.runs.executors import executor_failure
from toolkit.gas.runs.silence import check_there, heard
from toolkit.move import FunctionId
from toolkit.wire import ViewFunction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

    from toolkit.client.node import Node
    from toolkit.client.prepared import Prepared
    from toolkit.client.results import ViewResult
    from toolkit.gas.study import Call

__all__ = ["FEWEST", "learn_module", "observe_elsewhere", "observe_views"]

FEWEST = 100
"""View calls of one task, at the least: a task costs a scheduler milliseconds, and a worker a connection."""
_MOST = 1_000
_RANGES_PER_TASK = 4

Row = dict[str, Any]
Task = tuple["Call", int]


def observe_views(node: Node, origin: Origin, tasks: Sequence[Task]) -> Iterator[Row]:
    """Run view calls at their versions, all at once; a call that fails is a row like any other.

    Parameters
    ----------
    node : Node
    origin : Origin
        What the rows share.
    tasks : sequence of (Call, int)
        Calls with the ledger version to read.

    Yields
    ------
    dict
        Rows of the observation frame, as they come.
    """
    ready = {call.fingerprint: node.prepare_views(_view(call)) for call, _ in tasks}

    def prepare(task: Task) -> Prepared[ViewResult] | ToolkitError:
        call, version = task
        try:
            return ready[call.fingerprint].at(version)
        except (
            InputError,
            SchemaError,
        ) as error:  # they fit the last version's code, so the function was another one here
            return error

    for place, outcome in sweep(node, tasks, prepare):
        call, version = tasks[place]
        now = datetime.now(UTC)
        if isinstance(outcome, ToolkitError):
            yield origin.failed(call.name, call.fingerprint, Source.VIEW, version, error=outcome, observed_at=now)
        else:
            yield origin.view(call.name, call.fingerprint, outcome, now)


def _view(call: Call) -> ViewFunction:
    request = call.request
    if not isinstance(request, ViewFunction):
        raise InputError(f"call {call.name!r} is no view, so it cannot be read at past versions")
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
    """Run view calls over an executor in ranges of 100 to 1,000.

    Each range runs its own bulk engine over a copy of `node` with its share of the rate and of the requests in
    flight. It answers with a table, so workers need no disk and no folder in common.

    Parameters
    ----------
    executor : concurrent.futures.Executor
        Threads, processes, a cluster: `node`, `origin` and the calls are picklable.
    node : Node
    origin : Origin
    tasks : iterable of (Call, int)
        Read only as fast as ranges end.
    count : int
        Number of tasks.
    max_tasks : int
        Most ranges in flight.
    take : callable
        Given the observations of each range, here, as they end.

    Raises
    ------
    RunStopped
        If the executor fails, such as when its workers die.
    LedgerChanged
        If an answer is of another chain.
    NodeUnreachable
        If the node is gone: what a range had read until then is to be read again.
    """
    size = min(_MOST, max(FEWEST, -(-count // (_RANGES_PER_TASK * max_tasks))))
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
                    future.result()  # raises, once what came beside it is taken
        except Exception as error:
            failure = executor_failure(error)
            if failure is None:
                raise
            raise failure from error
        finally:
            # An interrupt or an error: what has not begun never begins.
            for future in pending:
                future.cancel()


def _observe_range(node: Node, origin: Origin, tasks: list[Task]) -> pa.Table:
    with node.with_share(1) as copy:  # in threads nothing was pickled: each range needs sockets of its own
        copy.expect_chain(origin.chain_id)
        for call in {call.fingerprint: call for call, _ in tasks}.values():
            learn_module(copy, call, sorted(version for other, version in tasks if other is call))
        # Else each call waits for its ABI, one after the other, or each row is a 401 of its own.
        check_there(copy, "a range of calls was about to be read", admitted=True)
        return OBSERVATIONS.table(row_columns(list(heard(observe_views(copy, origin, tasks), copy))))


def learn_module(node: Node, call: Call, versions: Sequence[int]) -> None:
    """Learn the called module over sorted versions by bisection, so that the reads need not ask for an ABI at each."""
    function = FunctionId.parse(call.function)
    node.abis.prepare(function.address, function.module, versions)
