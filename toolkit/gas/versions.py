"""Step search: which versions to read next so that every step is found with few reads. Pure; no I/O.

A call's outcome is taken as a step function of the version. From an even grid, every neighbouring pair whose
outcomes differ is halved, all pairs of a round at once, down to adjacent versions or the request limit. A change
that reverts between two versions of the grid is not seen.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from toolkit.client.versions import evenly

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Mapping

__all__ = ["next_round", "open_pairs"]

_MOST_SILENT = 8
"""Reads without an answer between two versions after which the interval is left as it is: the node is out there."""


def open_pairs(
    outcomes: Mapping[int, Hashable | None], grid: Collection[int] = ()
) -> list[tuple[tuple[int, int], int]]:
    """Return neighbouring answered versions whose outcomes differ, each with the version to read next between them.

    Parameters
    ----------
    outcomes : mapping of version to outcome
        An outcome of None is a read that got no answer: it tells nothing, and its version is not read again.
    grid : collection of int, optional
        Versions read whatever was known, so that silence there says nothing about the versions around.

    Returns
    -------
    list of ((int, int), int)
        Widest first. A pair is not among them where no version is left to read, or many reads got no answer.
    """
    found: list[tuple[tuple[int, int], int]] = []
    known = sorted(outcomes)
    answered = [place for place, version in enumerate(known) if outcomes[version] is not None]
    for low, high in pairwise(answered):
        between = known[low : high + 1]
        if outcomes[between[0]] == outcomes[between[-1]]:
            continue
        if sum(version not in grid for version in between[1:-1]) >= _MOST_SILENT:
            continue
        # Versions that gave no answer lie between: the widest gap among them is halved.
        left, right = max(pairwise(between), key=lambda gap: gap[1] - gap[0])
        if right - left > 1:
            found.append(((between[0], between[-1]), (left + right) // 2))
    return sorted(found, key=lambda pair: (pair[0][0] - pair[0][1], pair[0]))


def next_round(
    outcomes: Mapping[int, Hashable | None], *, first: int, last: int, initial: int, limit: int
) -> list[int]:
    """Return the versions to read next for one call; empty when the search is over.

    Parameters
    ----------
    outcomes : mapping of version to outcome
        What is known; outcomes are compared by equality, and None tells nothing.
    first, last : int
        The range searched, both included.
    initial : int
        Versions of the first grid.
    limit : int
        Most versions read in all.

    Returns
    -------
    list of int
        Sorted; never a version that is known.

    Notes
    -----
    For a function of s steps, none of them hidden in a cell of the grid, a search reads at most
    ``initial + s * ceil(log2(cell))`` versions, in ``1 + ceil(log2(cell))`` rounds, where every read is answered.
    """
    grid = dict.fromkeys(evenly(first, last, min(initial, limit)))
    missing = [version for version in grid if version not in outcomes]
    if missing:
        return missing
    room = max(0, limit - len(outcomes))
    # Widest first: where the limit ends the search, what stays open is narrow everywhere.
    return sorted(middle for _, middle in open_pairs(outcomes, grid)[:room])
