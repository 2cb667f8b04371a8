"""Pages of committed transactions, read until every version is found or known to be missing.

A node may answer fewer transactions than were asked for: its page limit is a setting, and answers can be cut. So the
versions of the transactions in an answer count, never their number.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from toolkit.errors import NodeError, SchemaError, ToolkitError, VersionPruned
from toolkit.move._json_text import is_u64
from toolkit.wire._transactions import GenericTransaction, MalformedTransaction

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from toolkit.client._reads import Reads
    from toolkit.wire import LedgerState


# Committed transactions per page: the service's default limit.
PAGE = 100


# The decoded transactions of one answer, and the node's head when it answered.
Page: TypeAlias = "tuple[list[Any], LedgerState | None]"
# Why a transaction cannot be used, and the transaction if it is malformed.
_Unusable: TypeAlias = "tuple[SchemaError, MalformedTransaction | None]"


class Missing(NamedTuple):
    """Neighbouring versions that were not read, both ends included, and why.

    `malformed` is the transaction of a single version, if the node has one that cannot be decoded.
    """

    first: int
    last: int
    error: ToolkitError
    malformed: MalformedTransaction | None = None


@dataclass(frozen=True, slots=True)
class PageAnswer:
    """What one answer adds to a page.

    Attributes
    ----------
    found : list of (int, transaction)
        Wanted versions that no earlier answer held, sorted, with their transactions.
    missing : list of Missing
        Wanted versions that are not asked for again.
    head : LedgerState or None
        The node's head when it answered, if the answer has it.
    ended : bool
        Whether the page is complete: each of its versions was found or is missing.
    """

    found: list[tuple[int, Any]] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    head: LedgerState | None = None
    ended: bool = False


@dataclass(frozen=True, slots=True)
class _Task:
    """Versions of a page to ask for.

    Attributes
    ----------
    page : int
    versions : sequence of int
        Sorted, each once, within `PAGE` versions.
    again : bool
        Whether an answer left them out before; if that happens again, they are missing.
    """

    page: int
    versions: Sequence[int]
    again: bool = False


def pages_of(versions: Iterable[int]) -> list[list[int]]:
    """Group sorted versions into pages that span at most 100 versions each."""
    pages: list[list[int]] = []
    for version in versions:
        if pages and version < pages[-1][0] + PAGE:
            pages[-1].append(version)
        else:
            pages.append([version])
    return pages


def read_transactions(node: Reads, pages: Iterable[Sequence[int]]) -> Iterator[PageAnswer]:
    """Read committed transactions in pages, many pages at once.

    Parameters
    ----------
    node : Node
    pages : iterable of sequence of int
        The versions of each page: sorted, each once, spanning at most 100.

    Yields
    ------
    PageAnswer
        In the order of the answers. Each version of `pages` is found once or missing once.

    Notes
    -----
    After a short answer the next request starts behind the last version received. Versions that an answer leaves out
    are asked for once more, then they are missing, as are those of a request that fails. Transactions that were not
    asked for are ignored, as are those of a version that an answer has twice with different contents. Each request
    brings a version or is the last one for its versions, so reading ends whatever the node answers.
    """
    tasks = [_Task(number, versions) for number, versions in enumerate(pages)]
    unsettled = Counter(task.page for task in tasks)
    while tasks:
        further: list[_Task] = []
        ends = [(task.versions[0], task.versions[-1]) for task in tasks]
        outcomes = node.many(node.prepare_transactions(first, last - first + 1) for first, last in ends)
        with closing(outcomes):
            for place, outcome in outcomes:
                task = tasks[place]
                taken = _failed(task, outcome) if isinstance(outcome, ToolkitError) else _answered(task, *outcome)
                further += taken[1]
                unsettled[task.page] += len(taken[1]) - 1
                yield replace(taken[0], ended=not unsettled[task.page])
        tasks = further


def _answered(task: _Task, answer: Sequence[Any], head: LedgerState | None) -> tuple[PageAnswer, list[_Task]]:
    """Return the wanted versions of an answer, and what to ask for next: what it left out, once more, and the rest."""
    held, unusable = _by_version(answer, task.versions[0], task.versions[-1])
    reached = max((*held, *unusable), default=None)
    found = [(version, held[version]) for version in task.versions if version in held]
    if reached is None:  # no version that was asked for: all of them are left out
        reached = task.versions[-1]
    left_out = [version for version in task.versions if version <= reached and version not in held]
    behind = [version for version in task.versions if version > reached]
    further = [_Task(task.page, left_out, again=True)] if left_out and not task.again else []
    if behind:
        further.append(_Task(task.page, behind, task.again))
    return PageAnswer(found, _missing(left_out, unusable) if task.again else [], head), further


def _failed(task: _Task, error: ToolkitError) -> tuple[PageAnswer, list[_Task]]:
    """Return the versions of a failed request as missing, except those that the error is not about."""
    versions = task.versions
    ledger = error.ledger if isinstance(error, NodeError) else None
    if isinstance(error, VersionPruned) and ledger is not None:
        readable = [version for version in versions if version >= ledger.oldest_version]
        if readable and len(readable) < len(versions):  # the request began below the oldest version that the node has
            pruned = Missing(versions[0], versions[len(versions) - len(readable) - 1], error)
            return PageAnswer(missing=[pruned], head=ledger), [_Task(task.page, readable, task.again)]
    if (
        ledger is not None and ledger.version < versions[0] and not task.again
    ):  # a backend behind the others of a load balancer
        return PageAnswer(head=ledger), [_Task(task.page, versions, again=True)]
    return PageAnswer(missing=[Missing(first, last, error) for first, last in _ranges(versions)], head=ledger), []


def _by_version(answer: Sequence[Any], first: int, last: int) -> tuple[dict[int, Any], dict[int, _Unusable]]:
    """Return the transactions of an answer by version, and the errors of those that cannot be used.

    A transaction of an unknown kind, or one that cannot be decoded, may have no version. Then its place in the answer
    counts, if every other transaction is at the place of its version.
    """
    versions = [_version_of(one) for one in answer]
    in_place = all(version in {None, first + place} for place, version in enumerate(versions))
    held: dict[int, Any] = {}
    unusable: dict[int, _Unusable] = {}
    for place, (version, one) in enumerate(zip(versions, answer, strict=True)):
        at = first + place if version is None and in_place else version
        if at is None or not first <= at <= last:
            continue
        if isinstance(one, MalformedTransaction):
            unusable[at] = SchemaError(f"transaction {at}: {one.problem}"), one
        elif version is None and not isinstance(one, GenericTransaction):
            unusable[at] = SchemaError(f"transaction {at}: its version is not a u64 in decimal digits"), None
        elif at in held and held[at] != one:
            unusable[at] = SchemaError(f"transaction {at}: the answer has it twice, with different contents"), None
        else:
            held[at] = one
    return {version: one for version, one in held.items() if version not in unusable}, unusable


def _version_of(one: Any) -> int | None:
    """Return the version of a transaction, None if it has none that can be read."""
    text = getattr(one, "version_text", None)
    return int(text) if is_u64(text) else None


def _missing(versions: Sequence[int], unusable: Mapping[int, _Unusable]) -> list[Missing]:
    """Return versions that an answer left out as ranges; one that it has in an unusable form is a range of its own."""
    left_out = [version for version in versions if version not in unusable]
    ranges = [
        Missing(first, last, SchemaError("the node's answer leaves this version out"))
        for first, last in _ranges(left_out)
    ]
    singles = [Missing(version, version, *unusable[version]) for version in versions if version in unusable]
    return sorted(ranges + singles, key=lambda missing: missing.first)


def _ranges(versions: Sequence[int]) -> list[tuple[int, int]]:
    """Return sorted versions as ranges of neighbours, both ends included."""
    runs = groupby(enumerate(versions), key=lambda numbered: numbered[1] - numbered[0])
    return [(run[0][1], run[-1][1]) for run in (list(group) for _, group in runs)]
