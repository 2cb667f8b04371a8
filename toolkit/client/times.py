"""Times of many ledger versions: one block read per block, many at once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from toolkit.client.bulk import progress_bar
from toolkit.wire import BlockInfo

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from toolkit.client.node import Node

__all__ = ["block_times"]

_STRIDE = 32
"""Of this many versions one is read first: neighbours are often of one block, and a block is to be read once."""


def block_times(node: Node, versions: Sequence[int], *, show: bool) -> dict[int, datetime]:
    """Date versions by their blocks.

    Parameters
    ----------
    node : Node
    versions : sequence of int
        Sorted, each once.
    show : bool
        Show a progress bar.

    Returns
    -------
    dict of int to datetime
        Without the versions whose block the node does not give.
    """
    times: dict[int, datetime] = {}
    left, stride = list(versions), _STRIDE
    with progress_bar(len(left), "times", show=show) as bar:
        while left:
            asked = left[::stride]
            unknown = set(left).difference(asked)
            for place, block in node.many([node.prepare_block(version) for version in asked]):
                version = asked[place]
                if isinstance(block, BlockInfo) and block.first_version <= version <= block.last_version:
                    covered = left[bisect_left(left, block.first_version) : bisect_right(left, block.last_version)]
                    unknown.difference_update(covered)
                    if block.block_timestamp is not None:
                        times |= dict.fromkeys(covered, block.block_timestamp)
            bar.advance(len(left) - len(unknown))
            left, stride = sorted(unknown), max(1, stride // 2)
    return times
