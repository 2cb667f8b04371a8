"""The last committed transactions of functions, found by reading pages backwards from the head."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toolkit.client._reads import PAGE, read_transactions
from toolkit.wire import UserTransaction
from toolkit.wire._state_keys import key_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from toolkit.client._reads import Reads

_PAGES = 10  # that are read at once


@dataclass(slots=True)
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
    published_at: int | None = None
    unread: int = field(default=0)


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
    found = Recent({label: [] for label in wanted}, last + 1, last)
    hashes = {key_hash(key) for key in watched}
    while found.first > first and any(len(versions) < count for versions in found.versions.values()):
        start = max(first, found.first - _PAGES * PAGE)
        pages = [range(at, min(at + PAGE, found.first)) for at in range(start, found.first, PAGE)]
        transactions: dict[int, Any] = {}
        for answer in read_transactions(node, pages):
            transactions |= dict(answer.found)
            found.unread += sum(one.last + 1 - one.first for one in answer.missing)
        for version in sorted(transactions, reverse=True):
            one = transactions[version]
            if any(change.state_key_hash in hashes for change in getattr(one, "changes", ())):
                found.published_at, found.first = version, version + 1
                return _ascending(found)
            if isinstance(one, UserTransaction):
                _take(found.versions, wanted, version, one, count)
        found.first = start
    return _ascending(found)


def _take(
    versions: Mapping[str, list[int]],
    wanted: Mapping[str, Callable[[UserTransaction], bool]],
    version: int,
    transaction: UserTransaction,
    count: int,
) -> None:
    for label, belongs in wanted.items():
        if len(versions[label]) < count and belongs(transaction):
            versions[label].append(version)


def _ascending(found: Recent) -> Recent:
    versions: Sequence[list[int]] = list(found.versions.values())
    for one in versions:
        one.reverse()
    return found
