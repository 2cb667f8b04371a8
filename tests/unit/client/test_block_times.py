"""Times of versions by their blocks: few reads, none trusted blindly."""

from __future__ import annotations

import pytest

from tests.unit.client.fakes import TIME, URL, FakeNode, answer, refused
from toolkit.client._fetch import block_times
from toolkit.client._node import Node


def block(first, last, *, stamp=None):
    """Return the answer of a block."""
    microseconds = int(TIME.timestamp()) * 1_000_000 + first if stamp is None else stamp
    told = {"block_height": "1", "block_hash": "0x0", "block_timestamp": str(microseconds), "transactions": None}
    return answer(told | {"first_version": str(first), "last_version": str(last)})


def chain(size, versions, **special):
    """Return a node whose blocks hold `size` versions each, and the fake behind it."""
    routes = {}
    for version in versions:
        first = version // size * size
        routes[f"GET /blocks/by_version/{version}"] = special.get(f"v{version}", block(first, first + size - 1))
    fake = FakeNode(routes)
    return Node(URL, transport=fake), fake


def reads(fake):
    return [where for where, _, _ in fake.asked if "blocks" in where]


@pytest.mark.parametrize(("size", "step"), [(1, 1), (5, 1), (10, 1), (100, 1), (7, 3), (10, 1000)])
def test_every_version_has_the_time_of_its_block(size, step):
    """Blocks short and long, versions near and far: times are exact, and few blocks are read twice."""
    versions = range(0, 400 * step, step)
    node, fake = chain(size, versions)
    times = block_times(node, versions, show=False)
    assert {version: times[version].microsecond for version in versions} == {
        version: version // size * size % 1_000_000 for version in versions
    }
    blocks = len({version // size for version in versions})
    assert len(reads(fake)) <= blocks + blocks // 2 + 13


def test_a_block_that_cannot_be_read_leaves_its_version_without_time():
    """Refused, or not the documented answer: the others are dated all the same."""
    special = {"v3": refused(404, "block_not_found", "no"), "v5": answer({"what": 1})}
    node, _ = chain(1, range(10), **special)
    assert sorted(block_times(node, range(10), show=False)) == [0, 1, 2, 4, 6, 7, 8, 9]


def test_a_block_that_does_not_hold_the_version_dates_nothing():
    """A node that answers another block, or one without end, is believed only of what was asked."""
    node, _ = chain(1, range(4), v1=block(100, 2**64 - 1), v2=block(0, 1))
    assert sorted(block_times(node, range(4), show=False)) == [0, 3]


def test_no_versions_ask_nothing():
    """An empty plan."""
    node, fake = chain(1, [])
    assert block_times(node, [], show=False) == {}
    assert fake.asked == []
