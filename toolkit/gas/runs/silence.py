"""Tells a node that is gone from a call that fails: observations without an answer wait until the node is heard of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from toolkit.client.retry import resume_time
from toolkit.errors import Forbidden, NodeError, NodeUnreachable, RateLimited, RunStopped
from toolkit.frames.calls import Failure
from toolkit.gas.observing import is_no_answer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolkit.client.node import Node

__all__ = ["check_there", "heard", "raise_unconfirmed"]

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
    RunStopped
        If the node asks for a longer wait than calls have patience for; what waits is dropped likewise.
    """
    waiting: list[Row] = []
    for row in _until_refused(rows, node):
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


def _until_refused(rows: Iterable[Row], node: Node) -> Iterator[Row]:
    """Pass observations on until a read that is not a row of its own is refused by the node's wish for a long wait."""
    try:
        yield from rows
    except RateLimited as error:
        _stop_if_told_to_wait(error, node)
        raise


def check_there(node: Node, why: str, *, admitted: bool = False) -> None:
    """Ask a node for what every node answers, its own description.

    Raises
    ------
    NodeUnreachable
        If it does not answer that either.
    Forbidden
        If the node asks for an API key or a login, as of a worker process; with `admitted` only.
    RunStopped
        If it asks for a longer wait than calls have patience for.
    """
    try:
        node.info()
    except Forbidden:
        if admitted:
            raise
    except (NodeError, NodeUnreachable) as error:
        _stop_if_told_to_wait(error, node)
        if is_no_answer(Failure.of(error).error_code):
            raise NodeUnreachable(
                f"{node.name} is gone: {why}, nor does it say what it is ({error}). What was answered is kept; once "
                "it is back, run the same study into the same folder and it goes on from there"
            ) from error


def raise_unconfirmed(node: Node, error: Exception) -> NoReturn:
    """Raise what to do after a node did not say which ledger it serves.

    Parameters
    ----------
    node : Node
    error : Exception
        What it said instead.

    Raises
    ------
    RunStopped
        If it asks for a longer wait than calls have patience for.
    NodeUnreachable
        In any other case.
    """
    _stop_if_told_to_wait(error, node)
    raise NodeUnreachable(
        f"{node.name} is gone: it does not say which ledger it serves ({error}). What was answered is kept; once it is "
        "back, run the same study into the same folder and it goes on from there"
    ) from error


def _stop_if_told_to_wait(error: Exception, node: Node) -> None:
    """Raise RunStopped if the node said when to go on."""
    if isinstance(error, RateLimited) and error.retry_after_s:
        raise RunStopped(
            f"{node.name} asks to be sent nothing until {resume_time(error.retry_after_s)} (Retry-After). What was "
            "answered is kept; after that, run the same study into the same folder and it goes on from there"
        ) from error
