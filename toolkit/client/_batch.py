"""Many calls at once: prepared, sent, with results as they come; what was sent without types is decoded again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from toolkit.client._warnings import warn_caller
from toolkit.errors import InputError, InvalidRequest, NodeError, NodeUnreachable, SchemaError, ToolkitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from toolkit.client._http import Answer, PreparedCall
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
    and the answer is decoded again with its types.

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
        As `send_all` does; a call that is decoded again is yielded again.

    Warns
    -----
    UserWarning
        If modules still cannot be looked up at the end.
    """
    untyped: dict[int, tuple[PreparedCall[Result], list[Answer]]] = {}

    def noted(place: int) -> PreparedCall[Result]:
        call = prepare(tasks[place])
        if call.untyped is None:
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
        node.abis.ask_again(sorted({tasks[place][1] for place in untyped}))
        yield from _decoded_again(node, tasks, prepare, untyped)


def _decoded_again(
    node: Reads,
    tasks: Sequence[VersionTask],
    prepare: Callable[[VersionTask], PreparedCall[Result]],
    untyped: Mapping[int, tuple[PreparedCall[Result], list[Answer]]],
) -> Iterator[tuple[int, Result | ToolkitError]]:
    to_send: list[int] = []
    failures: list[ToolkitError] = []
    for place, (before, answers) in untyped.items():
        outcome: Result | ToolkitError
        try:
            call = prepare(tasks[place])
            if call.untyped is not None:
                failures.append(call.untyped)
                continue
            if not answers or call.request.headers != before.request.headers:
                to_send.append(place)  # refused without types, or to be sent in another encoding
                continue
            outcome = call.finish(answers[0])
        except _OUTCOMES as error:
            outcome = error
        yield place, outcome
    for number, outcome in send_all(node, to_send, lambda place: prepare(tasks[place])):
        yield to_send[number], outcome
    if failures:
        warn_caller(
            f"{len(failures):,} calls have no types, since a module could not be looked up ({failures[0]}): their "
            "values are as in the node's JSON; fetch them again once the node offers modules"
        )
