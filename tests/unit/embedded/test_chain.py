"""The chain: its log of transactions and blocks, compared with a plain list."""

from __future__ import annotations

from weakref import WeakSet

from hypothesis import given
from hypothesis import strategies as st

from toolkit.embedded import _chain as chain


class Item:
    pass


@given(st.lists(st.none() | st.integers(), max_size=200))
def test_a_log_reads_like_a_list(steps):
    """Appending and dropping give the items of a plain list, at every index."""
    log, plain = chain.Log(), []
    for step in steps:
        if step is not None:
            log.append(step)
            plain.append(step)
        elif plain:
            assert log.drop_first() == plain.pop(0)
    assert [log[index] for index in range(len(log))] == plain
    assert [log[-index - 1] for index in range(len(log))] == plain[::-1]


def test_a_log_frees_dropped_items(monkeypatch):
    """Dropped items are freed, except for a limited number."""
    monkeypatch.setattr(chain, "_SLACK", 10)
    log, alive = chain.Log(), WeakSet()
    for number in range(1_000):
        log.append(Item())
        alive.add(log[-1])
        if number >= 20:
            log.drop_first()
    assert len(log) == 20
    assert len(alive) <= 62
