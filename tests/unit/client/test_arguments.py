"""What people hand to the fetch functions by mistake, and what they are told."""

from __future__ import annotations

import numpy as np
import pytest

import toolkit
from tests.unit.client.fakes import URL, FakeNode, answer, refused
from toolkit.client._node import Node
from toolkit.errors import InputError
from toolkit.wire import EntryFunction, SimulationRequest, ViewFunction

VIEW = ViewFunction("0x1::m::supply")
TRIED = SimulationRequest(EntryFunction("0x1::m::pay"), sender="0xa")
HANDLE = "0x5"


@pytest.fixture
def node():
    """A node of which nothing should be asked."""
    fake = FakeNode()
    made = Node(URL, transport=fake)
    yield made
    assert fake.asked == []


def fetched(node, keys=(1,)):
    return toolkit.fetch_table_items(node, HANDLE, keys=keys, key_type="u8", value_type="u8", progress=False)


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        ("0x1::m::supply", "calls: expected toolkit.ViewFunction.*got '0x1::m::supply'"),
        (None, "calls: expected toolkit.ViewFunction.*got None"),
        (5, "calls: expected toolkit.ViewFunction.*got 5"),
        ([VIEW, "0x1::m::supply"], "call 1: expected toolkit.ViewFunction"),
        ({"a": "0x1::m::supply"}, "call 'a': expected toolkit.ViewFunction"),
        ({5: VIEW}, "the name of a call must be a str, got 5"),
        ([], "needs at least one call"),
        ({}, "needs at least one call"),
    ],
)
def test_what_is_no_view_call_is_refused(node, calls, words):
    """The text says which call, and what a call looks like."""
    with pytest.raises(InputError, match=words):
        toolkit.fetch_views(node, calls, progress=False)


@pytest.mark.parametrize("keys", ["alice", b"alice", {"alice": 1}, None, 5])
def test_one_key_is_no_list_of_keys(node, keys):
    """The letters of a name are not its keys."""
    with pytest.raises(InputError, match=r"keys must be a list of keys, got .*write one key as keys=\[...\]"):
        fetched(node, keys)


@pytest.mark.parametrize(
    ("requests", "words"),
    [
        (None, "requests must be a list of toolkit.SimulationRequest, got None"),
        ("0x1::m::pay", "requests must be a list of toolkit.SimulationRequest"),
        (EntryFunction("0x1::m::pay"), "requests must be a list of toolkit.SimulationRequest"),
        ([TRIED, EntryFunction("0x1::m::pay")], "request 1: expected toolkit.SimulationRequest.*got EntryFunction"),
    ],
)
def test_what_is_no_simulation_is_refused(node, requests, words):
    """The text says which request, and what one looks like."""
    with pytest.raises(InputError, match=words):
        toolkit.fetch_simulations(node, requests, progress=False)


@pytest.mark.parametrize("given", ["mainnet", None, 5])
def test_what_is_no_node_is_refused(given):
    """A name is connected to first."""
    for fetch in (
        lambda: toolkit.fetch_views(given, VIEW),
        lambda: fetched(given),
        lambda: toolkit.fetch_simulations(given, [TRIED]),
        lambda: toolkit.fetch_transactions(given, versions="0:5"),
    ):
        with pytest.raises(InputError, match=r"expected a Node, as toolkit.connect returns it, got"):
            fetch()


def test_a_snapshot_is_no_node(node):
    """The fetch functions take versions instead."""
    with pytest.raises(InputError, match=r"use its .node and versions=7"):
        toolkit.fetch_views(node.at(7), VIEW)


def test_one_simulation_is_a_batch_of_one():
    """As one view call is: a single request need not be put into a list."""
    fake = FakeNode({"POST /transactions/simulate": refused(400, "invalid_input"), "GET /accounts/0xa": answer({})})
    with Node(URL, transport=fake) as node:
        single = toolkit.fetch_simulations(node, TRIED, progress=False)
        listed = toolkit.fetch_simulations(node, [TRIED], progress=False)
    assert len(single.results) == len(single.transactions) == 1
    assert single.transactions.equals(listed.transactions)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ViewFunction("0x1::a::b", arguments=[np.array([1, 2])]), r"expected a JSON-like.*\.tolist\(\)"),
        (lambda: EntryFunction("0x1::a::b", arguments=[[np.array([1, 2])]]), r"expected a JSON-like.*\.tolist\(\)"),
        (lambda: TRIED.replace(max_gas_amount=np.array([1, 2])), "max_gas_amount: expected an integer"),
        (lambda: TRIED.replace(signature={"type": "x"}), "SimulationRequest.signature: expected an instance of"),
    ],
)
def test_parts_of_requests_that_cannot_be_read_are_named(make, words):
    """Arrays and dicts where they do not belong are the caller's mistakes, told as such."""
    with pytest.raises(InputError, match=words):
        make()
