"""The list that forgets its beginning, against a plain list."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from toolkit.embedded import chain as log


@given(st.lists(st.none() | st.integers(), max_size=200))
def test_it_reads_as_the_list_it_stands_for(steps):
    """Numbers are appended, None drops the first; every index reads as in a plain list."""
    kept, plain = log.Log(), []
    for step in steps:
        if step is not None:
            kept.append(step)
            plain.append(step)
        elif plain:
            assert kept.drop_first() == plain.pop(0)
    assert [kept[index] for index in range(len(kept))] == plain
    assert [kept[-index - 1] for index in range(len(kept))] == plain[::-1]


def test_memory_is_given_back(monkeypatch):
    """What was dropped is not kept beyond the slack."""
    monkeypatch.setattr(log, "_SLACK", 10)
    kept = log.Log()
    for number in range(1_000):
        kept.append(number)
        if number >= 20:
            kept.drop_first()
    assert len(kept) == 20
    assert len(kept._items) <= 62
