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
        ("supply", "calls: .*function.*'supply'"),
        (None, "calls: expected '0x1::module::function' or toolkit.ViewFunction.*got None"),
        (5, "calls: expected '0x1::module::function' or toolkit.ViewFunction.*got 5"),
        ([VIEW, 7], "call 1: expected '0x1::module::function' or toolkit.ViewFunction"),
        ({"a": "0x1::m"}, "call 'a': .*'0x1::m'"),
        ({"a": {"view": "0x1::m::f"}}, "call 'a': .*Study"),
        ({5: VIEW}, "call names must be strings, got 5"),
        ([], "needs at least one call"),
        ({}, "needs at least one call"),
    ],
)
def test_what_is_no_view_call_is_refused(node, calls, words):
    """The text says which call, and what a call looks like."""
    with pytest.raises(InputError, match=words):
        toolkit.fetch_views(node, calls, progress=False)


@pytest.mark.parametrize("name", ["Account", "u64"])
def test_what_is_no_resource_type_is_refused(node, name):
    """With a resource type, not with the types of values."""
    with pytest.raises(InputError, match=f"resource type .*0x1::account::Account.*'{name}'"):
        toolkit.fetch_resources(node, "0x1", name, "0:1", progress=False)


@pytest.mark.parametrize("keys", ["alice", b"alice", {"alice": 1}, None, 5])
def test_one_key_is_no_list_of_keys(node, keys):
    """The letters of a name are not its keys."""
    with pytest.raises(InputError, match=r"^keys .*\[key\]"):
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
        with pytest.raises(InputError, match=r"toolkit\.connect"):
            fetch()


def test_a_snapshot_is_no_node(node):
    """The fetch functions take versions instead."""
    with pytest.raises(InputError, match=r"\.node .*versions=7"):
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
    """Arrays and dicts in the wrong place are reported as the caller's mistakes."""
    with pytest.raises(InputError, match=words):
        make()


def test_natural_arguments_are_positional():
    """Arguments, keys and versions follow what they belong to; a call without arguments may be text."""
    with toolkit.connect() as node:
        alice = node.view("0xcafe::registry::record_of", ["alice"]).value
        assert node.at(node.ledger().version).view("0xcafe::registry::record_of", ["alice"]).value == alice
        call = ViewFunction("0xcafe::registry::record_of", ["alice"])
        assert call == ViewFunction("0xcafe::registry::record_of", arguments=["alice"])
        handle = node.view("0xcafe::registry::handle").value
        types = {"key_type": "0x1::string::String", "value_type": "0xcafe::registry::Record"}
        assert node.table_item(handle, "alice", **types).value == alice
        items = toolkit.fetch_table_items(node, handle, ["alice", "nobody"], progress=False, **types)
        assert items["presence"].tolist() == ["present", "missing"]
        frame = toolkit.fetch_views(node, "0xcafe::registry::size", "100:300:100", progress=False)
        assert frame["ledger_version"].tolist() == [100, 200, 300]
        assert "call" not in frame.columns
        both = toolkit.fetch_views(
            node, {"size": "0xcafe::registry::size", "again": call}, [300], typed=False, progress=False
        )
        assert len(both) == 2
        assert len(toolkit.fetch_transactions(node, "0:4", progress=False).transactions) == 5


@pytest.mark.parametrize("arguments", ["alice", 5])
def test_a_single_argument_is_not_a_list_of_its_characters(arguments):
    """The message shows the list to write."""
    with toolkit.connect() as node:
        for read in (
            lambda: node.view("0xcafe::registry::record_of", arguments),
            lambda: ViewFunction("0x1::m::f", arguments),
        ):
            with pytest.raises(InputError, match=rf"arguments: .*\[{arguments!r}\]"):
                read()
