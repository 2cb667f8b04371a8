"""View calls at ledger versions, to observations: over the bulk engine here, or in ranges over an executor."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Future, wait
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from toolkit.client._executors import executor_failure
from toolkit.client._reads import send_all
from toolkit.errors import InputError, ToolkitError
from toolkit.frames._schema import OBSERVATIONS
from toolkit.gas.runs._collector import check_there, heard
from toolkit.move import FunctionId
from toolkit.wire import ViewFunction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Executor

    import pyarrow as pa

    from toolkit.client._node import Node
    from toolkit.gas._calls import Call
    from toolkit.gas._observations import Origin


# Minimum number of view calls in a range: a range costs a scheduler milliseconds, and a worker a connection.
MIN_RANGE = 100
# A range that fails is read again whole, and workers end at about the same time if each has several ranges.
_MAX_RANGE = 1_000
_RANGES_PER_TASK = 4

Row = dict[str, Any]
Task = tuple["Call", int]


def executor_name(executor: Executor | None, max_tasks: int) -> str:
    """Return a short description of where views are read, for the manifest."""
    if executor is None:
        return "in this process"
    return f"{type(executor).__module__}.{type(executor).__qualname__}, at most {max_tasks} ranges at once"


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
