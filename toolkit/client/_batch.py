"""Many calls at once: prepared, sent, with results as they come; what was sent without types is decoded again."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from toolkit.client._warnings import warn_caller
from toolkit.errors import InputError, InvalidRequest, NodeError, NodeUnreachable, SchemaError, ToolkitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from toolkit.client._http import PreparedCall
    from toolkit.client._reads import Reads


Task = TypeVar("Task")
VersionTask = TypeVar("VersionTask", bound=tuple[Any, int])
Result = TypeVar("Result")

# Errors that are the outcome of one call. Any other, such as that of a closed node, ends all calls.
_OUTCOMES = (InputError, NodeError, NodeUnreachable, SchemaError)


def send_all(
    node: Reads, tasks: Iterable[Task], prepare: Callable[[Task], PreparedCall[Result] | ToolkitError]
) -> Iterator[tuple[int, Result | ToolkitError]]:
    """Prepare tasks, send them at once, and yield (position, result or error) as they come.

    Parameters
    ----------
    node : Reads
    tasks : iterable
        Read only as fast as results are taken, so it may be long.
    prepare : callable
        Returns the call of a task, or the error that is its outcome. Errors that it raises because the task cannot be
        sent or a module cannot be looked up are the outcome too.

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
            except _OUTCOMES as error:
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
    node: Reads, tasks: Sequence[VersionTask], prepare: Callable[[VersionTask], PreparedCall[Result]]
) -> Iterator[tuple[int, Result | ToolkitError]]:
    """Send tasks as `send_all` does, and look up the types again of those that were sent without them.

    A call whose module cannot be looked up is sent without types. After all others the module is looked up once more,
    and the call is sent again with its types; the answer to a pinned read is then in the cache.

    Parameters
    ----------
    node : Reads
    tasks : sequence of tuple
        The second item of each is the ledger version that it reads.
    prepare : callable
        Returns the call of a task.

    Yields
    ------
    tuple of (int, result or error)
        As `send_all` does; a call that is sent again is yielded again.

    Warns
    -----
    UserWarning
        If modules still cannot be looked up at the end.
    """
    untyped: dict[int, ToolkitError] = {}

    def noted(place: int) -> PreparedCall[Result]:
        call = prepare(tasks[place])
        if call.untyped is not None:
            untyped[place] = call.untyped
        return call

    for place, outcome in send_all(node, range(len(tasks)), noted):
        if isinstance(outcome, ToolkitError) and outcome is not untyped.get(place):
            untyped.pop(place, None)  # the call failed for another reason
        yield place, outcome
    if not untyped:
        return
    node.abis.ask_again(sorted({tasks[place][1] for place in untyped}))
    again: list[int] = []
    for place in sorted(untyped):
        failure = None
        with suppress(*_OUTCOMES):  # which is then the outcome of the call
            failure = prepare(tasks[place]).untyped
        if failure is None:
            del untyped[place]
            again.append(place)
    for number, outcome in send_all(node, again, lambda place: prepare(tasks[place])):
        yield again[number], outcome
    if untyped:
        warn_caller(
            f"{len(untyped):,} calls have no types, since a module could not be looked up "
            f"({next(iter(untyped.values()))}): their values are as in the node's JSON; fetch them again once the node "
            "offers modules"
        )
