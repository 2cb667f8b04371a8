"""Times and versions as people have them: what a read and a plan make of them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.client.fakes import URL, FakeNode, answer, function, ledger, module
from toolkit.client._fetch import plan_versions
from toolkit.client._node import Node
from toolkit.errors import InputError, SchemaError

M = module("m", functions=[function("supply", [], ["u64"])])
M_PATH = "GET /accounts/0x1/module/m"


def block(version):
    """Return the block of a version: ten versions each, one a second."""
    first = version // 10 * 10
    return {
        "block_height": str(first // 10),
        "block_hash": "0x0",
        "block_timestamp": str(1_767_225_600_000_000 + first // 10 * 1_000_000),
        "first_version": str(first),
        "last_version": str(first + 9),
        "transactions": None,
    }


BLOCKS = {f"GET /blocks/by_version/{n}": answer(block(n)) for n in range(1_001)}


def node_with(routes=None, *, head=None):
    """Return a node and its transport."""
    fake = FakeNode(routes, head=head)
    return Node(URL, transport=fake), fake


@pytest.mark.parametrize(
    ("time", "version"),
    [
        ("2026-01-01T00:00:00Z", 0),
        ("2026-01-01T00:00:10Z", 100),
        ("2026-01-01T00:00:10.5Z", 110),
        ("2026-01-01T00:01:39Z", 990),
    ],
)
def test_a_time_is_found_by_bisection(time, version):
    """Blocks of ten versions, one a second: the first version at or after the time, in few reads."""
    node, fake = node_with(BLOCKS)
    assert node.version_at(time) == version
    assert len(fake.asked) <= 1 + 11


def test_a_time_after_the_head_is_refused():
    """The error gives the time of the head, because a version at that time does not exist yet."""
    with pytest.raises(InputError, match="is after the time of the head"):
        node_with()[0].version_at("2099-01-01")


@pytest.mark.parametrize("time", ["2025-01-01", "2026-01-01T00:00:49.9Z"])
@pytest.mark.parametrize("oldest", [500, 503])
def test_a_time_before_the_oldest_version_is_refused(time, oldest):
    """A pruned node does not give another time for the one that was asked for."""
    node, _ = node_with(BLOCKS, head=ledger(1_000, oldest=oldest))
    with pytest.raises(InputError, match=f"is before version {oldest:,} of 2026-01-01 00:00:50 UTC, the oldest"):
        node.version_at(time)
    assert node.version_at("2026-01-01T00:00:50.5Z") == 510


def test_the_time_of_the_oldest_version_is_its_own():
    """A block that is held whole is the first of its time; of one that is pruned in its midst the first is gone."""
    assert node_with(BLOCKS, head=ledger(1_000, oldest=500))[0].version_at("2026-01-01T00:00:50Z") == 500
    with pytest.raises(InputError, match="is before version 505"):
        node_with(BLOCKS, head=ledger(1_000, oldest=505))[0].version_at("2026-01-01T00:00:50Z")


def test_a_plan_by_dates_on_a_pruned_node_is_clipped_and_said_so():
    """Where nothing of the plan is held it is refused; where some is, the rest is warned of."""
    node, _ = node_with(BLOCKS, head=ledger(1_000, oldest=500))
    with pytest.raises(InputError, match=r"\b500\b"):
        plan_versions(node, "2020-01-01..2020-02-01/3")
    with pytest.warns(UserWarning, match="is before version 500"):
        plan, _ = plan_versions(node, "2020-01-01..2026-01-01T00:01:00Z/2")
    assert list(plan.versions) == [500, 609]


@pytest.mark.parametrize("version", ["5", 1.5, True, -1, 2**64])
def test_what_is_no_version_is_refused_by_every_read(version):
    """One text for all, before anything is sent."""
    node, fake = node_with()
    reads = [
        lambda: node.view("0x1::m::supply", ledger_version=version),
        lambda: node.table_item("0x5", key=1, key_type="u8", value_type="u8", ledger_version=version),
        lambda: node.module("0x1", "m", ledger_version=version),
        lambda: node.resource("0x1", "0x1::m::R", ledger_version=version),
        lambda: node.account("0x1", ledger_version=version),
        lambda: node.block(version),
        lambda: node.transaction(version),
        lambda: node.transactions(version),
        lambda: node.gas_schedule(version),
    ]
    for read in reads:
        with pytest.raises(InputError, match="is not a ledger version: expected a whole number"):
            read()
    assert fake.asked == []


@pytest.mark.parametrize("version", ["5", 1.5, True, None, 2**64])
def test_a_snapshot_of_no_version_is_refused(version):
    """`at` takes whole numbers only, negative ones included."""
    with pytest.raises(InputError, match="is not a ledger version: expected a whole number"):
        node_with()[0].at(version)


def test_a_version_of_a_frame_is_a_version(tmp_path):
    """numpy integers are read as such, also where answers are kept."""
    fake = FakeNode({M_PATH: answer(M), "POST /view": answer(["5"])})
    with Node(URL, transport=fake, cache=tmp_path / "a.sqlite3") as node:
        snapshot = node.at(np.int64(50))
        assert type(snapshot.ledger_version) is int
        assert snapshot.view("0x1::m::supply").ledger_version == 50


def test_version_at_ends_where_a_node_answers_other_blocks():
    """A node that answers other blocks than those asked for ends in an error, not in a loop."""
    other = block(0) | {"block_timestamp": "1", "last_version": "0"}
    fake = FakeNode(head=ledger())

    class Endless(Exception):  # noqa: N818 - it only ends the test
        pass

    def blocks(*_):
        if len(fake.asked) > 100:
            raise Endless
        return answer(other)

    fake.routes |= {f"GET /blocks/by_version/{n}": blocks for n in range(1_001)}
    with pytest.raises(SchemaError):
        Node(URL, transport=fake).version_at("2026-01-01")
