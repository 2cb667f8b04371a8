"""The client against a node that misbehaves: it recovers, or says what is missing; nothing is lost or doubled."""

from __future__ import annotations

import pytest

import toolkit
from tests.faults import STATUSES, faulty
from toolkit import embedded
from toolkit.client._http import RetryPolicy
from toolkit.client._reads import send_all
from toolkit.errors import (
    Forbidden,
    InsufficientStorage,
    InvalidRequest,
    NodeError,
    NotFound,
    RateLimited,
    Unavailable,
    VersionPruned,
)
from toolkit.wire._responses import ErrorCode

SIZE = toolkit.ViewFunction("0xcafe::registry::size")
VERSIONS = list(range(200, 300))
RECORD = {"key_type": "0x1::string::String", "value_type": "0xcafe::registry::Record"}


@pytest.fixture(scope="module")
def history():
    return embedded.Ledger.with_history(seed=7, versions=400, cache=True)


@pytest.fixture(scope="module")
def server(history):
    with embedded.serve(history) as url, faulty(url) as node:
        yield node


@pytest.fixture
def faults(server):
    server.clear()
    yield server
    server.clear()


@pytest.fixture
def client(faults):
    """Return a client that keeps nothing, with the ABIs it needs already read."""
    with toolkit.connect(faults.node_url, cache=None, timeout_s=30) as node:
        node.view(SIZE, ledger_version=VERSIONS[0])
        node.abis.prepare("0xcafe", "registry", VERSIONS)
        yield node


@pytest.fixture(scope="module")
def sizes(history):
    """Return what the ledger itself says."""
    return [history.view("0xcafe::registry::size", version=version)[0][0] for version in VERSIONS]


def fetched(node):
    return toolkit.fetch_views(node, SIZE, versions=VERSIONS, progress=False)


@pytest.mark.parametrize("kind", ["429", "500", "503", "html", "cut"])
def test_a_sweep_recovers_from_a_burst(client, faults, sizes, kind):
    """Ten faults once the head is read: every version answered once, in order, exact."""
    faults.schedule([None, *[kind] * 10])
    frame = fetched(client)
    assert frame["ledger_version"].tolist() == VERSIONS
    assert frame["error_code"].isna().all()
    assert frame["value"].tolist() == sizes


def test_a_sweep_under_a_rain_of_faults_loses_nothing(client, faults, sizes):
    """A tenth of requests each limited, refused and cut: rows in order, values exact, failures with their code."""
    faults.rates = dict.fromkeys(("429", "503", "cut", "html", "500"), 0.05)
    frame = fetched(client)
    assert frame["ledger_version"].tolist() == VERSIONS
    answered = frame["error_code"].isna()
    assert answered.sum() >= 90
    for value, size, there in zip(frame["value"].tolist(), sizes, answered.tolist(), strict=True):
        assert not there or value == size
    assert set(frame["error_code"].dropna()) <= {"internal_error", "unreachable", "rate_limited"}


def test_rows_of_a_node_that_goes_down_in_the_middle(client, faults, sizes):
    """Rows before the outage have values, rows after it have errors, and they keep the order of the plan."""
    faults.schedule([None] * 42)  # the head, the anchor of the ledger, and 40 views
    faults.rates = {"500": 1.0}
    with pytest.warns(UserWarning, match="could not check that .* still serves the ledger"):
        frame = fetched(client)
    assert frame["ledger_version"].tolist() == VERSIONS
    answered = frame["error_code"].isna().tolist()
    assert answered.count(True) == 40
    assert [value for value, there in zip(frame["value"].tolist(), answered, strict=True) if there] == [
        size for size, there in zip(sizes, answered, strict=True) if there
    ]
    assert set(frame["error_code"].dropna()) == {"internal_error"}
    assert set(frame["status"].dropna()) == {500}


def test_requests_in_flight_share_their_latency(client, faults):
    """A hundred views do not wait one after the other: both sides hold many requests at once."""
    faults.latency_s = 0.5
    assert fetched(client)["error_code"].isna().all()
    assert faults.max_in_flight > 10


def test_table_items_recover_too(client, faults):
    """Items are retried too, and a missing one is a row of its own kind."""
    handle = client.view("0xcafe::registry::handle").value
    faults.schedule([None, "429", "cut", "503", "html"])
    frame = toolkit.fetch_table_items(
        client, handle, keys=["alice", "nobody"], **RECORD, versions=VERSIONS[:20], progress=False
    )
    assert frame["key"].tolist() == ["alice"] * 20 + ["nobody"] * 20
    assert frame["error_code"].isna().tolist() == [True] * 20 + [False] * 20
    assert set(frame["error_code"].dropna()) == {"table_item_not_found"}


def test_simulations_recover_too(client, faults):
    """Simulations may be sent again: nothing is stored."""
    call = toolkit.EntryFunction("0x1::aptos_account::transfer", arguments=["0xb0b", 100])
    faults.schedule(["503", None, "429", None, "cut"])
    batch = toolkit.fetch_simulations(
        client, [toolkit.SimulationRequest(call, sender="0xa11ce") for _ in range(5)], progress=False
    )
    assert batch.transactions["success"].tolist() == [True] * 5
    assert batch.transactions["request"].tolist() == list(range(5))


def test_transactions_recover_too(client, faults):
    """Pages come whole."""
    faults.schedule([None, "cut", "503"])
    frames = toolkit.fetch_transactions(client, versions="0:-1", progress=False)
    assert frames.transactions["ledger_version"].tolist() == list(range(400))


def test_an_interrupted_sweep_goes_on_where_it_was(faults, sizes, tmp_path):
    """Ctrl-C interrupts the sweep, and the next try requests only what is missing."""
    place = tmp_path / "answers.sqlite3"
    faults.latency_s = 0.02

    def interrupted():
        with toolkit.connect(faults.node_url, cache=place, max_in_flight=4) as node:
            node.abis.prepare("0xcafe", "registry", VERSIONS)
            outcomes = send_all(node, VERSIONS, lambda version: node.prepare_view(SIZE, version))
            for seen, _ in enumerate(outcomes, 1):
                if seen == 30:
                    raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    faults.clear()
    before = len(faults.requests)
    with toolkit.connect(faults.node_url, cache=place) as node:
        frame = fetched(node)
    asked = len(faults.requests) - before
    assert frame["value"].tolist() == sizes
    assert asked <= 90


ERRORS = {
    400: InvalidRequest,
    403: Forbidden,
    404: NotFound,
    410: VersionPruned,
    429: RateLimited,
    500: NodeError,
    503: Unavailable,
    507: InsufficientStorage,
}


@pytest.mark.parametrize("code", ErrorCode)
@pytest.mark.parametrize("operation", ["view", "table item", "simulation"])
def test_each_documented_error_code_raises_its_class(faults, code, operation):
    """Each of the 23 codes comes with the status of a node, and the client raises the class of the status."""
    with toolkit.Node(faults.node_url, cache=None, retry=RetryPolicy(attempts=1)) as node:
        node.ledger()
        transfer = toolkit.EntryFunction("0x1::aptos_account::transfer", arguments=["0xa11ce", 1])
        node.simulate(transfer, sender="0xb0b")
        request = toolkit.SimulationRequest(transfer, sender="0xb0b", sequence_number=0, max_gas_amount=9, gas_unit_price=100, expiration_timestamp_secs=9)  # fmt: skip
        calls = {
            "view": lambda: node.view(toolkit.ViewFunction("0x1::chain_id::get")),
            "table item": lambda: node.table_item("0x1", key="1", key_type="u64", value_type="u64"),
            "simulation": lambda: node.simulate(request),
        }
        faults.schedule([code.value] * 20)
        with pytest.raises(ERRORS[STATUSES[code]]) as caught:
            calls[operation]()
        faults.clear()
    assert type(caught.value) is ERRORS[STATUSES[code]]
    assert (caught.value.status, caught.value.error_code) == (STATUSES[code], code.value)
    assert caught.value.vm_error_code == (5 if code == ErrorCode.VM_ERROR else None)
