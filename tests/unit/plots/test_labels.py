"""Labels keep their distance and their order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.plots.labels import spread


@given(st.lists(st.floats(0, 300), max_size=30))
def test_spread_positions_keep_distance_order_and_room(wanted: list[float]) -> None:
    """Neighbours are apart by the gap (or all there is room for), inside the room, in order."""
    placed = spread(wanted, 12, 0, 300)
    assert len(placed) == len(wanted)
    order = np.argsort(wanted, kind="stable")
    ordered = np.asarray(placed)[order] if placed else np.array([])
    gap = min(12, 300 / max(len(wanted) - 1, 1))
    assert (np.diff(ordered) >= gap - 1e-6).all()
    assert all(-1e-6 <= place <= 300 + 1e-6 for place in placed)


def test_spread_leaves_alone_what_does_not_collide() -> None:
    """Positions far enough apart stay."""
    assert spread([100, 20, 60], 12, 0, 300) == [100, 20, 60]


def test_spread_moves_colliding_ones_evenly() -> None:
    """Three at one place end up around it."""
    assert spread([50, 50, 50], 10, 0, 300) == pytest.approx([40, 50, 60])
