"""A call made ready: the request to send, and what turns its answer into a result. Sending is another matter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.client.http import Answer, Request
    from toolkit.errors import NodeError, NodeUnreachable

__all__ = ["Prepared"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Prepared(Generic[T]):
    """A request, ready to be sent alone or with thousands of others.

    Attributes
    ----------
    request : Request
        Credentials are the transport's business.
    asked : str
        What is asked, for texts: ``view 0x1::coin::supply at version 12``.
    finish : callable
        Takes a 2xx answer and returns the result.
    pinned : int or None
        The ledger version that is read, if it is given: then the answer never changes and may be stored.
    gas : bool
        Whether the answer has gas, which depends on the node's build too.
    untyped : NodeError, NodeUnreachable or None
        Why types are not known, if the look-up of a module failed: the call was encoded and is read without them.
    """

    request: Request
    asked: str
    finish: Callable[[Answer], T]
    pinned: int | None = None
    gas: bool = False
    untyped: NodeError | NodeUnreachable | None = None
