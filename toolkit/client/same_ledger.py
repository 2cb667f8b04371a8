"""Whether a node still serves the ledger that it served before.

The chain id of every answer is compared where answers are finished (`Connection`). It does not tell two ledgers of one
chain id apart, such as a test network before and after a reset. That is what the anchor is for: the hash of one
transaction, read at the start and again later, with the head and the oldest version, neither of which goes back.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolkit.client.cache_file import warn_caller
from toolkit.errors import LedgerChanged, NodeError, NodeUnreachable, NotFound, SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.client.node import Node
    from toolkit.wire import LedgerState

__all__ = ["LedgerAnchor", "LedgerGuard"]

_EVERY_S = 60.0
"""Longest time between two checks of a fetch."""
_PAUSES_S = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Waits between looks at a node that seems to have gone back: a backend of a load balancer may lag for a while."""
_NOT_THERE = frozenset({"transaction_not_found", "version_not_found"})
_UNREAD = (NodeError, NodeUnreachable, SchemaError)


@dataclass(frozen=True, slots=True)
class LedgerAnchor:
    """What a ledger is recognised by.

    Attributes
    ----------
    chain_id : int
    head : int
        Head when the anchor was taken; later heads are not below it.
    oldest : int or None
        Oldest version then; later ones are not below it.
    version : int or None
        Version of the anchor transaction.
    transaction_hash : str or None
        Its hash; None if the node did not answer it. Then the numbers above are all there is.
    taken_s : float
        Unix time before it was taken, in s.
    """

    chain_id: int
    head: int
    oldest: int | None = None
    version: int | None = None
    transaction_hash: str | None = None
    taken_s: float = field(default_factory=time.time, compare=False)

    @classmethod
    def taken(cls, node: Node, version: int, *, ledger: LedgerState | None = None) -> LedgerAnchor:
        """Read the transaction of a version from the node itself, never from the cache.

        The anchor that was taken of this `Node` before is checked first, since answers in its cache are of that ledger.
        It is returned again if its transaction is that of `version`, or if the node does not answer.

        Parameters
        ----------
        node : Node
        version : int
            Version of the anchor transaction.
        ledger : LedgerState, optional
            State of the ledger as read before, used if the node does not answer now.

        Raises
        ------
        LedgerChanged
            If the node serves another ledger than when an anchor was taken before.
        NodeError, NodeUnreachable
            If the node does not answer, no anchor was taken before, and `ledger` is None.
        """
        earlier = node.anchor
        if earlier is not None:
            try:
                LedgerGuard(node, earlier).check()
            except _UNREAD:
                return earlier
            if earlier.version == version:
                return earlier
        node.anchor = cls._read(node, version, ledger)
        return node.anchor

    @classmethod
    def _read(cls, node: Node, version: int, ledger: LedgerState | None) -> LedgerAnchor:
        taken_s = time.time()
        found = None
        with node.fresh():
            try:
                transaction, newest = node.transaction_and_head(version)
                found = transaction.hash
            except NodeError as error:
                newest = error.ledger
            except (NodeUnreachable, SchemaError):
                newest = None
            ledger = newest or ledger or node.ledger()
        at = version if found else None
        return cls(ledger.chain_id, ledger.version, ledger.oldest_version, at, found, taken_s)


class LedgerGuard:
    """Compares a node with an anchor, as often as it is asked to.

    Parameters
    ----------
    node : Node
        Also an attribute.
    anchor : LedgerAnchor
    clock : callable, optional
        Seconds that only grow; replaced in tests.
    sleep : callable, optional
        Replaced in tests.
    """

    def __init__(
        self,
        node: Node,
        anchor: LedgerAnchor,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        self.node = node
        self._anchor = anchor
        self._clock = clock
        self._sleep = sleep or time.sleep
        self._checked_at = clock()
        self._confirmed_s = anchor.taken_s

    def check(self) -> None:
        """Check that the node serves the ledger of the anchor.

        A head or an oldest version that went back counts if it stays so over several looks, about eight seconds.

        Raises
        ------
        LedgerChanged
            If it serves another one.
        NodeError, NodeUnreachable, SchemaError
            If the node does not say what it serves.
        """
        began_s = time.time()
        with self.node.fresh():
            for pause_s in (*_PAUSES_S, None):
                doubt = self._doubt()
                if doubt is None:
                    break
                if pause_s is None:
                    raise self._changed(doubt)
                self._sleep(pause_s)
        self._checked_at, self._confirmed_s = self._clock(), began_s

    def confirms(self) -> bool:
        """Look once, without repeats: True if the ledger is the same, False if that cannot be said now.

        Raises
        ------
        LedgerChanged
            If it is another one.
        """
        try:
            with self.node.fresh(repeats=False):
                return self._doubt() is None
        except _UNREAD:
            return False

    def check_if_due(self) -> None:
        """Check if the last check is a minute ago; a node that does not answer is checked again later."""
        if self._clock() - self._checked_at >= _EVERY_S:
            try:
                self.check()
            except _UNREAD:
                self._checked_at = self._clock()

    def check_at_end(self) -> None:
        """Check; warn if the node does not answer, since what was read before it went away is not lost for that."""
        try:
            self.check()
        except _UNREAD as error:
            warn_caller(
                f"{self.node.name} could not be asked whether it still serves the ledger that was read: {error}"
            )

    def _doubt(self) -> str | None:
        """Look once; return what speaks for another ledger without proving it, None if nothing does.

        Raises
        ------
        LedgerChanged
            If the chain id or the anchor transaction differs.
        """
        anchor = self._anchor
        ledger, doubt = self._look()
        if ledger.chain_id != anchor.chain_id:
            raise self._changed(f"expected chain id {anchor.chain_id}, got {ledger.chain_id}")
        if doubt is None and ledger.version < anchor.head:
            doubt = f"expected a head of {anchor.head} or later, got {ledger.version}"
        if doubt is None and anchor.oldest is not None and ledger.oldest_version < anchor.oldest:
            doubt = f"expected an oldest version of {anchor.oldest} or later, got {ledger.oldest_version}"
        return doubt

    def _look(self) -> tuple[LedgerState, str | None]:
        """Return the state of the node's ledger, and whether the anchor transaction is not there."""
        anchor, node = self._anchor, self.node
        if anchor.version is None:
            return node.ledger(), None
        expected = f"expected transaction {anchor.version} to be {anchor.transaction_hash}"
        try:
            transaction, ledger = node.transaction_and_head(anchor.version)
        except NotFound as error:
            ledger = error.ledger or node.ledger()
            return ledger, f"{expected}, it is not there" if error.error_code in _NOT_THERE else None
        except _UNREAD:  # pruned meanwhile, not offered any more, or no answer: the description says the rest
            return node.ledger(), None
        if transaction.hash != anchor.transaction_hash:
            raise self._changed(f"{expected}, got {transaction.hash}")
        return ledger or node.ledger(), None

    def _changed(self, why: str) -> LedgerChanged:
        """Return the error to raise; answers cached since the last good check may be of the other ledger: they go."""
        if self.node.cache is not None:
            self.node.cache.forget_since(self._confirmed_s)
        return LedgerChanged(f"{self.node.name} serves another ledger than before: {why}")
