"""Results are data: they can be pickled, are equal afterwards, and do the same as before."""

from __future__ import annotations

import pickle

import pandas as pd
import pytest

import toolkit
from tests.unit.client.fakes import FakeNode, answer, function, module, user_transaction
from toolkit import EntryFunction, SimulationRequest
from toolkit.client._node import Node
from toolkit.errors import InputError

TRANSFER = EntryFunction("0x1::aptos_account::transfer", arguments=["0x2", 100])
FEE = "0x1::transaction_fee::FeeStatement"
ACCOUNT = "0x1::account::Account"


def again(value):
    """Return a value after a pickle round trip."""
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - our own bytes


@pytest.fixture(scope="module")
def node():
    with toolkit.connect(cache=None) as node:
        yield node


@pytest.fixture(scope="module")
def sender(node):
    """Return an account of the embedded ledger that can pay."""
    sent = toolkit.fetch_transactions(node, versions="0:200", progress=False).transactions
    return sent.loc[sent["success"] & sent["sender"].notna(), "sender"].iloc[-1]


@pytest.fixture
def simulation(node, sender):
    found = node.simulate(TRANSFER, sender=sender)
    assert found.success
    return found


def test_a_view_result_survives_a_pickle(node):
    """Equal, with the same frame."""
    result = node.at(100).view("0x1::coin::supply", type_arguments=["0x1::aptos_coin::AptosCoin"])
    assert again(result) == result
    pd.testing.assert_frame_equal(again(result).to_frame(), result.to_frame())


def test_a_table_item_survives_a_pickle():
    """Equal, with the same frame."""
    handle = "0x" + "ab" * 32
    there = FakeNode({f"POST /tables/{handle}/item": answer("7")})
    item = Node("http://node.test", transport=there).table_item(handle, key=1, key_type="u64", value_type="u128")
    assert again(item) == item
    pd.testing.assert_frame_equal(again(item).to_frame(), item.to_frame())


def test_a_read_at_the_head_has_its_time(node):
    """As a sweep has; the response does not have the time of an earlier version."""
    now, head = "0x1::timestamp::now_seconds", node.ledger()
    handle = node.view("0xcafe::registry::handle").value
    for one in (node.view(now), node.table_item(handle, "alice", owner="0xcafe")):
        assert one.to_frame()["ledger_timestamp"].tolist() == [head.timestamp]
    assert node.at(head.version - 100).view(now).to_frame()["ledger_timestamp"].isna().all()


def test_a_simulation_survives_a_pickle(simulation):
    """Equal; frames, typed payloads, balances, the state before and the explanation are the same."""
    copy = again(simulation)
    assert again(copy).transactions.attrs == simulation.transactions.attrs  # such as that the gas is a model's
    assert copy == simulation
    assert repr(copy) == repr(simulation)
    assert copy.explain() == simulation.explain()
    assert copy.gas == simulation.gas
    for name in ("transactions", "changes", "events", "balance_changes"):
        pd.testing.assert_frame_equal(getattr(copy, name), getattr(simulation, name))
    pd.testing.assert_frame_equal(copy.resources(ACCOUNT), simulation.resources(ACCOUNT))
    pd.testing.assert_frame_equal(copy.events_of(FEE), simulation.events_of(FEE))
    pd.testing.assert_frame_equal(copy.diff(), simulation.diff())
    assert again(copy) == simulation


def test_batches_survive_a_pickle(node, sender):
    """The frames are equal, and so are results and errors."""
    requests = [SimulationRequest(TRANSFER, sender=sender), SimulationRequest(EntryFunction(FEE), sender=sender)]
    frames = toolkit.fetch_simulations(node, requests, progress=False)
    copy = again(frames)
    assert copy.results[0] == frames.results[0]
    assert [type(one) for one in copy.results] == [type(one) for one in frames.results]
    for name in ("transactions", "changes", "events"):
        pd.testing.assert_frame_equal(getattr(copy, name), getattr(frames, name))


def test_probes_and_snapshots_survive_a_pickle(node):
    """A probe is equal; a snapshot reads the same."""
    assert again(node.probe()) == node.probed
    with again(node.at(50)).node as there:
        assert there.at(50).view("0x1::chain_id::get").value == 4


def simulated(**more):
    """Return a node over a transport of its own, and a simulation."""
    routes = {
        "POST /transactions/simulate": answer([user_transaction()]),
        "GET /accounts/0xa11ce": answer({"sequence_number": "7", "authentication_key": "0x01"}),
        "GET /accounts/0x1/module/m": answer(
            module("m", functions=[function("pay", is_entry=True, is_view=False)], structs=[], code="0x01") | more
        ),
    }
    transport = FakeNode(routes)
    node = Node("http://node.test", transport=transport)
    return transport, node.simulate(EntryFunction("0x1::m::pay"), sender="0xa11ce")


def test_a_pickle_without_a_way_back_says_so():
    """A node over a transport of the caller's cannot be connected to again: its simulation is data all the same."""
    _, simulation = simulated()
    copy = again(simulation)
    assert copy == simulation
    assert copy.explain() == simulation.explain()
    with pytest.raises(InputError, match=r"was unpickled.*call diff\(\)"):
        copy.diff()


def test_types_that_were_used_travel_with_a_pickle():
    """No request is made for them again."""
    transport, simulation = simulated()
    before = simulation.events_of("0x1::transaction_fee::FeeStatement")
    sent = len(transport.asked)
    pd.testing.assert_frame_equal(again(simulation).events_of("0x1::transaction_fee::FeeStatement"), before)
    assert len(transport.asked) == sent
