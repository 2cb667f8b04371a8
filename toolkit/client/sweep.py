"""Many tasks, each prepared and sent, all at once: results as they come, failures as results."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from toolkit.client.cache_file import warn_caller
from toolkit.errors import InvalidRequest, NodeError, NodeUnreachable, SchemaError, ToolkitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from toolkit.client.http import Answer
    from toolkit.client.node import Node
    from toolkit.client.prepared import Prepared

__all__ = ["sweep", "typed_sweep"]

Task = TypeVar("Task")
VersionTask = TypeVar("VersionTask", bound=tuple[Any, int])
Result = TypeVar("Result")


def sweep(
    node: Node, tasks: Iterable[Task], prepare: Callable[[Task], Prepared[Result] | ToolkitError]
) -> Iterator[tuple[int, Result | ToolkitError]]:
    """Prepare tasks, send them at once, and yield (position, result or error) as they come.

    Parameters
    ----------
    node : Node
    tasks : iterable
        Pulled as answers are taken, so it may be long.
    prepare : callable
        Makes a task ready to be sent, or returns the error that it ends with. A task whose version turns out to
        be pruned meanwhile, or whose module answer cannot be read, ends with that error.

    Yields
    ------
    tuple of (int, result or error)
        One per task, in the order of completion. A call that was encoded without types because a module could not be
        looked up, and that the node refuses for its form (400), ends with the failure of that look-up.
    """
    untyped: dict[int, ToolkitError] = {}

    def ready() -> Iterator[Prepared[Result] | ToolkitError]:
        for place, task in enumerate(tasks):
            try:
                call = prepare(task)
            except (NodeError, NodeUnreachable, SchemaError) as error:
                yield error
            else:
                if not isinstance(call, ToolkitError) and call.untyped is not None:
                    untyped[place] = call.untyped
                yield call

    for place, outcome in node.many(ready()):
        failure = untyped.pop(place, None)
        refused = isinstance(outcome, InvalidRequest) and outcome.vm_error_code is None
        yield place, failure if failure is not None and refused else outcome


def typed_sweep(
    node: Node, tasks: Sequence[VersionTask], prepare: Callable[[VersionTask], Prepared[Result]]
) -> Iterator[tuple[int, Result | ToolkitError]]:
    """Sweep tasks whose results are to have types.

    A call whose module cannot be looked up is sent without types. At the end of the sweep the module is looked up once
    more, and the answer is read again with its types.

    Parameters
    ----------
    node : Node
    tasks : sequence of tuple
        Each with the ledger version that it reads in second place.
    prepare : callable
        Makes a task ready to be sent.

    Yields
    ------
    tuple of (int, result or error)
        As `sweep` does; a call that is read again is yielded again.

    Warns
    -----
    UserWarning
        If modules still cannot be looked up at the end: how many calls have no types, and why.
    """
    untyped: dict[int, tuple[Prepared[Result], list[Answer]]] = {}

    def noted(place: int) -> Prepared[Result]:
        call = prepare(tasks[place])
        if call.untyped is None:
            return call
        answers: list[Answer] = []
        untyped[place] = call, answers

        def finish(answer: Answer) -> Result:
            answers.append(answer)
            return call.finish(answer)

        return replace(call, finish=finish)

    for place, outcome in sweep(node, range(len(tasks)), noted):
        if place in untyped and isinstance(outcome, ToolkitError) and outcome is not untyped[place][0].untyped:
            del untyped[place]  # the call failed for another reason
        yield place, outcome
    if untyped:
        yield from _read_again(node, tasks, prepare, untyped)


def _read_again(
    node: Node,
    tasks: Sequence[VersionTask],
    prepare: Callable[[VersionTask], Prepared[Result]],
    untyped: Mapping[int, tuple[Prepared[Result], list[Answer]]],
) -> Iterator[tuple[int, Result | ToolkitError]]:
    node.abis.ask_again(sorted({tasks[place][1] for place in untyped}))
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
                to_send.append(place)  # refused without types, or to be asked for in another encoding
                continue
            outcome = call.finish(answers[0])
        except (NodeError, NodeUnreachable, SchemaError) as error:
            outcome = error
        yield place, outcome
    for number, outcome in sweep(node, to_send, lambda place: prepare(tasks[place])):
        yield to_send[number], outcome
    if failures:
        warn_caller(
            f"{len(failures):,} calls have no types, since a module could not be looked up ({failures[0]}): their "
            "values are as the node's JSON has them; fetch them again once the node offers modules"
        )
