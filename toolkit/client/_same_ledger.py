"""Checks that a node still serves the same ledger.

`Connection` compares the chain id of every answer. The chain id does not change if a test network is reset, so a fetch
also compares an anchor: the hash of one transaction, read at the start and again later, and the head and the oldest
version, neither of which can decrease.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from toolkit.client._warnings import warn_caller
from toolkit.errors import LedgerChanged, NodeError, NodeUnreachable, NotFound, SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from toolkit.client._cache import AnswerCache
    from toolkit.wire import LedgerState


# Time between two checks of a fetch, in seconds.
_INTERVAL_S = 60.0
# Waits between attempts if the head seems to have decreased: a backend of a load balancer may lag for a while.
_PAUSES_S = (0.25, 0.5, 1.0, 2.0, 4.0)
_MISSING_CODES = frozenset({"transaction_not_found", "version_not_found"})
_NO_ANSWER = (NodeError, NodeUnreachable, SchemaError)


@dataclass(frozen=True, slots=True)
class LedgerAnchor:
    """What identifies a ledger.

    Attributes
    ----------
    chain_id : int
    head : int
        Head when the anchor was taken; the head of the same ledger is never below it.
    oldest : int or None
        Oldest version then; that of the same ledger is never below it.
    version : int or None
        Version of the anchor transaction.
    transaction_hash : str or None
        Hash of the anchor transaction; None if the node did not return it.
    taken_s : float
        Unix time just before the anchor was taken, in seconds.
    """

    chain_id: int
    head: int
    oldest: int | None = None
    version: int | None = None
    transaction_hash: str | None = None
    taken_s: float = field(default_factory=time.time, compare=False)

    @classmethod
    def taken(cls, node: Served, version: int, *, ledger: LedgerState | None = None) -> LedgerAnchor:
        """Return an anchor: the transaction of a version, read from the node and not from the cache.

        An earlier anchor of this `Node` is checked first, because the answers in its cache come from that ledger.
        It is returned if it is an anchor of `version`, or if the node does not answer.

        Parameters
        ----------
        node : Node
        version : int
            Version of the anchor transaction.
        ledger : LedgerState, optional
            State of the ledger that was read before, used if the node does not answer now.

        Raises
        ------
        LedgerChanged
            If the node serves a ledger other than that of the earlier anchor.
        NodeError, NodeUnreachable
            If the node does not answer, no anchor was taken before, and `ledger` is None.
        """
        earlier = node.anchor
        if earlier is not None:
            try:
                LedgerGuard(node, earlier).check()
            except _NO_ANSWER:
                return earlier
            if earlier.version == version:
                return earlier
        node.anchor = cls._read(node, version, ledger)
        return node.anchor

    @classmethod
    def _read(cls, node: Served, version: int, ledger: LedgerState | None) -> LedgerAnchor:
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


class Served(Protocol):
    """What is read of a node to compare its ledger; `Reads` is one."""

    name: str
    anchor: LedgerAnchor | None

    @property
    def cache(self) -> AnswerCache | None: ...

    def fresh(self, *, repeats: bool = True) -> AbstractContextManager[None]: ...

    def ledger(self) -> LedgerState: ...

    def transaction_and_head(self, ledger_version: int) -> tuple[Any, LedgerState | None]: ...


class LedgerGuard:
    """Compares the ledger of a node with an anchor.

    Parameters
    ----------
    node : Node
        Also an attribute.
    anchor : LedgerAnchor
    clock : callable, optional
        Monotonic time in seconds; tests pass their own.
    sleep : callable, optional
        Waits for a number of seconds; tests pass their own.
    """

    def __init__(
        self,
        node: Served,
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

        A head or oldest version below that of the anchor is an error only if it persists for about eight seconds.

        Raises
        ------
        LedgerChanged
            If it serves another ledger.
        NodeError, NodeUnreachable, SchemaError
            If the node does not answer.
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
        """Check once, without repeats; return False if the node does not answer or is in doubt.

        Raises
        ------
        LedgerChanged
            If the node serves another ledger.
        """
        try:
            with self.node.fresh(repeats=False):
                return self._doubt() is None
        except _NO_ANSWER:
            return False

    def check_if_due(self) -> None:
        """Check if the last check was at least a minute ago; if the node does not answer, try again later."""
        if self._clock() - self._checked_at >= _INTERVAL_S:
            try:
                self.check()
            except _NO_ANSWER:
                self._checked_at = self._clock()

    def check_at_end(self) -> None:
        """Check; only warn if the node does not answer, so that what was read before is not lost."""
        try:
            self.check()
        except _NO_ANSWER as error:
            warn_caller(f"could not check that {self.node.name} still serves the ledger that was read: {error}")

    def _doubt(self) -> str | None:
        """Compare once; return a difference that a lagging backend may cause too, or None if there is none.

        Raises
        ------
        LedgerChanged
            If the chain id or the anchor transaction differs.
        """
        anchor = self._anchor
        ledger, doubt = self._read_ledger()
        if ledger.chain_id != anchor.chain_id:
            raise self._changed(f"expected chain id {anchor.chain_id}, got {ledger.chain_id}")
        if doubt is None and ledger.version < anchor.head:
            doubt = f"expected a head of {anchor.head} or later, got {ledger.version}"
        if doubt is None and anchor.oldest is not None and ledger.oldest_version < anchor.oldest:
            doubt = f"expected an oldest version of {anchor.oldest} or later, got {ledger.oldest_version}"
        return doubt

    def _read_ledger(self) -> tuple[LedgerState, str | None]:
        """Return the state of the node's ledger, and a message if the anchor transaction is missing."""
        anchor, node = self._anchor, self.node
        if anchor.version is None:
            return node.ledger(), None
        expected = f"expected transaction {anchor.version} to be {anchor.transaction_hash}"
        try:
            transaction, ledger = node.transaction_and_head(anchor.version)
        except NotFound as error:
            ledger = error.ledger or node.ledger()
            return ledger, f"{expected}, but it is missing" if error.error_code in _MISSING_CODES else None
        except _NO_ANSWER:  # pruned meanwhile, not offered, or no answer: compare the description only
            return node.ledger(), None
        if transaction.hash != anchor.transaction_hash:
            raise self._changed(f"{expected}, got {transaction.hash}")
        return ledger or node.ledger(), None

    def _changed(self, why: str) -> LedgerChanged:
        """Return the error to raise, after deleting the answers cached since the last successful check."""
        if self.node.cache is not None:
            self.node.cache.forget_since(self._confirmed_s)
        return LedgerChanged(f"{self.node.name} now serves another ledger: {why}")
