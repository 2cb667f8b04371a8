"""Tells a node that is gone from a call that fails: observations without an answer wait until the node is heard of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.errors import Forbidden, NodeError, NodeUnreachable
from toolkit.frames.records import Failure
from toolkit.gas.observing import is_no_answer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolkit.client.node import Node

__all__ = ["check_there", "heard"]

_MOST_SILENT = 20
"""Calls in a row without an answer after which the node is asked whether it is there."""

Row = dict[str, Any]


def heard(rows: Iterable[Row], node: Node) -> Iterator[Row]:
    """Pass observations on; those that got no answer wait for one that did, or for the node's own word.

    Parameters
    ----------
    rows : iterable of dict
        Rows of the observation frame, as they come.
    node : Node

    Yields
    ------
    dict
        The same rows. An outage of single calls is a row like any other.

    Raises
    ------
    NodeUnreachable
        If many in a row, or the last, got no answer and the node is not there: what waits is dropped, to be read again.
    """
    waiting: list[Row] = []
    for row in rows:
        waiting.append(row)
        if is_no_answer(row["error_code"]):
            if len(waiting) < _MOST_SILENT:
                continue
            check_there(node, f"{len(waiting)} calls in a row got no answer")
        yield from waiting
        waiting = []
    if waiting:
        check_there(node, f"the last {len(waiting):,} calls got no answer")
        yield from waiting


def check_there(node: Node, why: str, *, admitted: bool = False) -> None:
    """Raise `NodeUnreachable` if a node does not answer what every node answers: its own description.

    With `admitted`, also raise `Forbidden` if the node asks for an API key or a login, as of a worker process.
    """
    try:
        node.info()
    except Forbidden:
        if admitted:
            raise
    except (NodeError, NodeUnreachable) as error:
        if is_no_answer(Failure.of(error).error_code):
            raise NodeUnreachable(
                f"{node.name} is gone: {why}, nor does it say what it is ({error}). What was answered is kept; once "
                "it is back, run the same study into the same folder and it goes on from there"
            ) from error
