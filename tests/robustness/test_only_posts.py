"""A node that offers nothing but table item, view and simulate: everything else is 404."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import toolkit
from toolkit.errors import NotFound

OFFERED = re.compile(r"/v1/(view|transactions/simulate|tables/[^/]+/item)")
BALANCE = toolkit.ViewFunction("0x1::account::get_sequence_number", arguments=["0xa11ce"])
TRANSFER = toolkit.EntryFunction("0x1::aptos_account::transfer", arguments=["0xb0b", "100"])
"""Without modules a u64 is written as text, as the node expects it."""


def only_posts(status=404, body=b"404 page not found", **headers):
    """Return a change: other requests than the three are refused, and some headers of the three replaced."""

    def change(request, answer):
        if request.method == "POST" and OFFERED.fullmatch(request.path):
            return answer.with_headers(**headers)
        return replace(answer, status=status, headers={"content-type": "text/plain"}, body=body)

    return change


@pytest.fixture
def there(connect, honest):
    """Return a client of the honest node itself."""
    return connect(f"http://{honest[0]}:{honest[1]}")


@pytest.fixture
def node(connect, proxy):
    """Return a client of the node that offers the three operations only."""
    proxy.change = only_posts()
    return connect(proxy.url)


@pytest.mark.fault(
    "a gateway that offers only table items, views and simulations", "all three work; the head comes from headers"
)
@pytest.mark.parametrize("status", [403, 404, 405])
def test_the_ledger_is_that_of_the_headers(status, connect, proxy, there):
    """Chain id, head, oldest version and time equal those of GET /v1; the node's role is unknown."""
    proxy.change = only_posts(status)
    info = connect(proxy.url).info()
    assert info.ledger == there.ledger()
    assert (info.node_role, info.git_hash) == ("", None)


def test_views_and_items(node, there):
    """At the head, at past versions and as a frame, with the values of the whole node; types are inferred."""
    assert int(node.view(BALANCE).value) == there.view(BALANCE).value
    past = node.at(100).view("0x1::chain_id::get")
    assert (past.value, past.typing, past.ledger_version) == (4, "inferred", 100)
    where = there.resource("0xcafe", "0xcafe::registry::Registry")
    handle = next(value["handle"] for value in where.values() if isinstance(value, dict) and "handle" in value)
    with pytest.raises(NotFound, match="table_item_not_found"):
        node.table_item(handle, key="nobody", key_type="0x1::string::String", value_type="address")


def test_sweeps_by_numbers(node, there):
    """A plan counted from the head is resolved from the headers; gas and versions equal those of the complete node."""
    call = toolkit.ViewFunction("0x1::chain_id::get")
    frames = [toolkit.fetch_views(one, call, versions="-101:-1:50", progress=False) for one in (node, there)]
    columns = ["ledger_version", "value", "gas_used", "error_code"]
    assert frames[0][columns].astype(str).to_numpy().tolist() == frames[1][columns].astype(str).to_numpy().tolist()
    run = toolkit.Study(node=node.url, calls={"id": {"view": "0x1::chain_id::get"}}, versions="100:200:50").run(
        progress=False
    )
    assert run.observations["error_code"].isna().tolist() == [True] * 3


def test_simulations(node, there):
    """The sequence number is read by a view; alone and in a batch the outcome is that of the whole node."""
    request = toolkit.SimulationRequest(TRANSFER, sender="0xa11ce")
    ours, theirs = node.simulate(request), there.simulate(request)
    assert (ours.success, ours.gas_used) == (theirs.success, theirs.gas_used) == (True, theirs.gas_used)
    assert ours.transaction.sequence_number == theirs.transaction.sequence_number > 0
    batch = toolkit.fetch_simulations(node, [request, request.replace(sender="0x5a5a")], progress=False)
    assert batch.transactions["sequence_number"].tolist() == [theirs.transaction.sequence_number, 0]


def test_the_probe_says_so(node):
    """What is missing is named: the description of the node and every further read."""
    found = node.probe()
    assert not any(found.offers.values())
    assert "node info" in found.facts()["does_not_offer"]
    assert (found.chain_id, found.claimed_oldest, found.oldest_readable) == (4, 0, 0)


@pytest.mark.fault(
    "a gateway that offers these three operations and strips headers", "an error names the missing headers"
)
def test_without_headers_the_error_names_them(connect, proxy):
    """Views at given versions still work; what needs the head names the headers that it takes."""
    proxy.change = only_posts(epoch=None, ledger_version=None)
    node = connect(proxy.url)
    assert int(node.view(BALANCE, ledger_version=100).value) >= 0
    with pytest.raises(NotFound, match=r"neither GET /v1 nor .*: X-\*-CHAIN-ID,"):
        node.ledger()
