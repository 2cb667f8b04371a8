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
    from collections.abc import Hashable, Mapping

__all__ = ["next_round", "open_pairs"]


def open_pairs(outcomes: Mapping[int, Hashable | None]) -> list[tuple[int, int]]:
    """Return neighbouring versions whose outcomes differ and that are not adjacent, widest first.

    An outcome of None is a read that got no answer: it tells nothing, and its version is not read again.
    """
    versions = sorted(version for version, outcome in outcomes.items() if outcome is not None)
    pairs = [
        (before, after)
        for before, after in pairwise(versions)
        if after - before > 1 and outcomes[before] != outcomes[after] and (before + after) // 2 not in outcomes
    ]
    return sorted(pairs, key=lambda pair: (pair[0] - pair[1], pair))


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
    """
    missing = [version for version in evenly(first, last, min(initial, limit)) if version not in outcomes]
    if missing:
        return missing
    room = max(0, limit - len(outcomes))
    # Widest first: where the limit ends the search, what stays open is narrow everywhere.
    return sorted((before + after) // 2 for before, after in open_pairs(outcomes)[:room])
