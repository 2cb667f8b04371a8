"""The last committed transactions of functions, found by reading pages backwards from the head."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit.client._reads import PAGE, read_transactions
from toolkit.wire import UserTransaction
from toolkit.wire._state_keys import key_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from toolkit.client._reads import Reads

_PAGES = 10  # that are read at once


@dataclass(frozen=True, slots=True)
class Recent:
    """The last transactions of some calls.

    Attributes
    ----------
    versions : dict of str to list of int
        By label, ascending.
    first, last : int
        The versions that were searched; fewer than planned if all were found or code was published.
    published_at : int or None
        The version at which the search ended, because a watched state key was written there: what ran before ran under
        other code or another schedule.
    unread : int
        Versions that could not be read.
    """

    versions: dict[str, list[int]]
    first: int
    last: int
    published_at: int | None
    unread: int


def recent_calls(
    node: Reads,
    wanted: Mapping[str, Callable[[UserTransaction], bool]],
    *,
    first: int,
    last: int,
    count: int,
    watched: Collection[bytes] = (),
) -> Recent:
    """Find the last `count` transactions of each call between two versions.

    Parameters
    ----------
    node : Node
    wanted : mapping of str to callable
        Whether a transaction belongs to a call, by label.
    first, last : int
        Both ends included.
    count : int
    watched : collection of bytes
        State keys; the search ends at the last transaction that writes one of them.
    """
    hashes = {key_hash(key) for key in watched}
    versions: dict[str, list[int]] = {label: [] for label in wanted}
    unread, searched, published_at = 0, last + 1, None
    while published_at is None and searched > first and any(len(one) < count for one in versions.values()):
        start = max(first, searched - _PAGES * PAGE)
        transactions: dict[int, Any] = {}
        for answer in read_transactions(
            node, [range(at, min(at + PAGE, searched)) for at in range(start, searched, PAGE)]
        ):
            transactions |= dict(answer.found)
            unread += sum(one.last + 1 - one.first for one in answer.missing)
        searched = start
        for version in sorted(transactions, reverse=True):
            transaction = transactions[version]
            if any(change.state_key_hash in hashes for change in getattr(transaction, "changes", ())):
                published_at, searched = version, version + 1
                break
            for label, belongs in wanted.items():
                if len(versions[label]) < count and isinstance(transaction, UserTransaction) and belongs(transaction):
                    versions[label].append(version)
    ascending = {label: found[::-1] for label, found in versions.items()}
    return Recent(ascending, searched, last, published_at, unread)
