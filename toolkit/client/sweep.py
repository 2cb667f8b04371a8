"""Many tasks, each made ready and sent, all at once: results as they come, failures as results."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from toolkit.errors import NodeError, NodeUnreachable, SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from toolkit.client.node import Node
    from toolkit.client.prepared import Prepared
    from toolkit.errors import ToolkitError

__all__ = ["sweep"]

Task = TypeVar("Task")
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
        One per task, in the order of completion.
    """

    def ready() -> Iterator[Prepared[Result] | ToolkitError]:
        for task in tasks:
            try:
                call = prepare(task)
            except (NodeError, NodeUnreachable, SchemaError) as error:
                yield error
            else:
                yield call

    yield from node.many(ready())
