"""Ranges of ledger versions, both ends included, and the pages of transactions that cover them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.client._reads import PAGE

if TYPE_CHECKING:
    from collections.abc import Iterable

Range = tuple[int, int]


def joined_ranges(ranges: Iterable[Range]) -> list[Range]:
    """Return ranges of versions sorted, with those that overlap or touch joined."""
    joined: list[Range] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(joined[-1][1], last)
        else:
            joined.append((first, last))
    return joined


def without(ranges: Iterable[Range], others: Iterable[Range]) -> list[Range]:
    """Return what is in `ranges` and not in `others`, as joined ranges."""
    taken = joined_ranges(others)
    found: list[Range] = []
    for first, last in joined_ranges(ranges):
        start = first
        for low, high in taken:
            if high < start or low > last:
                continue
            if low > start:
                found.append((start, low - 1))
            start = high + 1
        if start <= last:
            found.append((start, last))
    return found


def within(ranges: Iterable[Range], first: int, last: int) -> list[Range]:
    """Return the parts of ranges that are between two versions."""
    clipped = ((max(low, first), min(high, last)) for low, high in ranges)
    return [one for one in clipped if one[0] <= one[1]]


def count_versions(ranges: Iterable[Range]) -> int:
    """Return the number of versions in ranges that do not overlap."""
    return sum(last + 1 - first for first, last in ranges)


def page_numbers(first: int, last: int) -> range:
    """Return the numbers of the pages that contain a range; pages begin at multiples of 100."""
    return range(first // PAGE, last // PAGE + 1)


def pages_of(ranges: Iterable[Range]) -> list[tuple[int, int]]:
    """Return the pages (first version, number of versions) that contain every version of some ranges, each once."""
    pages: list[tuple[int, int]] = []
    reached = -1
    for first, last in sorted(ranges):
        starts = range(max(first, reached + 1), last + 1, PAGE)
        pages += [(start, min(PAGE, last + 1 - start)) for start in starts]
        reached = max(reached, last)
    return pages
