"""What gives no answer is remembered for a while, so that not every call that needs it pays for the repeats."""

from __future__ import annotations

import time
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Generic, TypeVar

from toolkit.errors import NodeError, NodeUnreachable, OfflineMiss, VersionPruned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Outages", "is_outage"]

K = TypeVar("K")

_REST_S = 30.0
"""Seconds for which something that failed is not asked again, at the least."""
_REST_PER_WAIT = 10.0
"""The rest as a multiple of what the failure took, so that asking again costs a tenth of a sweep's time at most."""


def is_outage(error: Exception) -> bool:
    """Return whether an error says that something cannot answer now, rather than what the answer is."""
    if isinstance(error, NodeError):
        if isinstance(error, VersionPruned):
            return False
        return error.status >= HTTPStatus.INTERNAL_SERVER_ERROR or error.status == HTTPStatus.TOO_MANY_REQUESTS
    return isinstance(error, NodeUnreachable) and not isinstance(error, OfflineMiss)


class Outages(Generic[K]):
    """What failed when it was last asked, by key.

    Parameters
    ----------
    clock : callable, optional
        Seconds; replaced in tests.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failed: dict[K, tuple[NodeError | NodeUnreachable, float]] = {}

    @contextmanager
    def noted(self, key: K) -> Iterator[None]:
        """Remember an outage that the block raises; a block that does not ends the one before."""
        began = self._clock()
        try:
            yield
        except (NodeError, NodeUnreachable) as error:
            if is_outage(error):
                self.note(key, error, took_s=self._clock() - began)
            raise
        self._failed.pop(key, None)

    def note(self, key: K, error: NodeError | NodeUnreachable, *, took_s: float = 0.0) -> None:
        """Remember an outage from now on."""
        self._failed[key] = error, self._clock() + max(_REST_S, _REST_PER_WAIT * took_s)

    def resting(self, key: K) -> NodeError | NodeUnreachable | None:
        """Return why `key` is not to be asked now, None if it may be."""
        error, until = self._failed.get(key, (None, 0.0))
        return error if error is not None and self._clock() < until else None

    def all_resting(self) -> list[NodeError | NodeUnreachable]:
        """Return why each of the keys that are not to be asked now failed."""
        return [error for key in list(self._failed) if (error := self.resting(key)) is not None]

    def last(self, key: K) -> NodeError | NodeUnreachable | None:
        """Return the outage of `key` that no answer has ended yet, whether or not it may be asked again."""
        found = self._failed.get(key)
        return None if found is None else found[0]

    def ask_again(self) -> list[K]:
        """End every rest, so that each key may be asked once more; return the keys."""
        self._failed = {key: (error, float("-inf")) for key, (error, _) in self._failed.items()}
        return list(self._failed)
