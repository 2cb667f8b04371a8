"""Many replays: executors, hostile nodes, and values that are shared only where nothing wrote them."""

from __future__ import annotations

import pytest

import toolkit
from tests.conformance.state_node import stored_value
from tests.unit.fork import small_node
from tests.unit.vm import small_ledger as small
from toolkit.errors import SchemaError
from toolkit.fork._committed import Committed, read_state_value
from toolkit.fork._sweep import Timeline, _hash_of


@pytest.fixture
def served():
    with small_node.node().serving() as one:
        yield one


def test_an_executor_gives_the_same_rows(served):
    with toolkit.connect(served.url) as node:
        alone = toolkit.replay(node, "0:-1", progress=False)
        done = []
        shared = toolkit.replay(node, "0:-1", executor="threads:2", progress=lambda *told: done.append(told[1]))
    assert shared.equals(alone)
    assert done[-1] == served.head + 1


def test_a_value_is_shared_until_it_is_written():
    """Not across a write, and not across versions that nobody has seen."""
    key, timeline = b"\0key", Timeline()
    for version, written in [(10, []), (11, [_hash_of(key)]), (12, []), (20, [])]:
        timeline.see(version, written)
    before = timeline.mark(key, 9)
    assert timeline.mark(key, 10) == before
    assert timeline.mark(key, 11) != before
    assert timeline.mark(key, 19) not in {before, timeline.mark(key, 11)}
    timeline[before] = (b"1", None)
    timeline.forget()
    timeline.see(21, [])
    assert timeline.mark(key, 20) == timeline.mark(key, 20)


@pytest.mark.parametrize("cut", [0, 1, 9, 60, 200, -40, -1])
def test_a_transaction_that_is_cut_off_is_refused(served, cut):
    data = served.sent[1].to_bcs(4)
    with pytest.raises(SchemaError):
        Committed.from_bcs(data[:cut])


@pytest.mark.parametrize("data", [b"", b"\x02\x00", b"\x00\x05abc", b"\x00\x01a\x00", b"\x01\x00\x02"])
def test_a_value_that_no_node_stores_is_refused(data):
    with pytest.raises(SchemaError):
        read_state_value(data)


def test_values_have_the_metadata_of_their_slots():
    for metadata in (None, (5, 0, 7), (5, 6, 7)):
        assert read_state_value(stored_value(b"abc", metadata)) == (b"abc", metadata)


def test_a_node_that_lies_about_state_gives_rows_not_errors(served):
    """Bytes that are not a module: the transactions that need them are rows that say so, the others are verified."""
    lied = dict(served.sent[1].state)
    lied[small_node.module_key(small.COUNTER)] = (b"\xa1\x1c\xeb\x0bnonsense", None)
    served.sent[1].state = lied
    with toolkit.connect(served.url) as node:
        found = toolkit.replay(node, "0:-1", progress=False).set_index("ledger_version")
    assert len(found) == len(served.sent)
    assert not bool(found["verified"].fillna(value=False).loc[4])
    assert found["verified"].drop([4, 6]).fillna(value=False).sum() >= 1
