"""Faults on demand, and what the embedded node survives."""

from __future__ import annotations

import socket
import time
from urllib.parse import urlsplit

import pytest
import requests

import toolkit
from toolkit import embedded
from toolkit.client._http import RetryPolicy
from toolkit.embedded import Module, u64, view
from toolkit.embedded.http._faults import FAULTS
from toolkit.errors import (
    Forbidden,
    InputError,
    InsufficientStorage,
    InvalidRequest,
    NodeError,
    NotFound,
    RateLimited,
    Unavailable,
    VersionPruned,
)
from toolkit.wire._responses import ErrorCode

VIEW = {"function": "0x1::coin::supply", "type_arguments": ["0x1::aptos_coin::AptosCoin"], "arguments": []}


@pytest.fixture(scope="module")
def server():
    with embedded.start(embedded.Ledger()) as running:
        yield running


@pytest.fixture
def faults(server):
    yield server.faults
    server.faults.clear()


@pytest.mark.parametrize(
    ("kind", "status", "code"),
    [
        ("429", 429, "rate_limited"),
        ("500", 500, "internal_error"),
        ("503", 503, "internal_error"),
        ("507", 507, "mempool_is_full"),
    ],
)
def test_an_error_is_answered_as_often_as_asked(server, faults, kind, status, code):
    """The next requests meet the documented error, the one after is answered."""
    faults.next(kind, times=2)
    answers = [requests.get(server.url, timeout=10) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [status, status, 200]
    assert answers[0].json()["error_code"] == code
    assert ("retry-after" in answers[0].headers) is (status == 429)


STATUSES = {
    **{code: 404 for code in ErrorCode if code.value.endswith("_not_found")},
    ErrorCode.VERSION_PRUNED: 410,
    ErrorCode.BLOCK_PRUNED: 410,
    ErrorCode.INVALID_INPUT: 400,
    ErrorCode.INVALID_TRANSACTION_UPDATE: 400,
    ErrorCode.SEQUENCE_NUMBER_TOO_OLD: 400,
    ErrorCode.VM_ERROR: 400,
    ErrorCode.REJECTED_BY_FILTER: 500,
    ErrorCode.HEALTH_CHECK_FAILED: 503,
    ErrorCode.MEMPOOL_IS_FULL: 507,
    ErrorCode.RATE_LIMITED: 429,
    ErrorCode.INTERNAL_ERROR: 500,
    ErrorCode.WEB_FRAMEWORK_ERROR: 400,
    ErrorCode.BCS_NOT_SUPPORTED: 400,
    ErrorCode.API_DISABLED: 403,
}
"""Status of each documented error code."""

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
def test_each_documented_error_code_raises_its_class(server, faults, code, operation):
    """Each of the 23 codes comes with the status of a node, and the client raises the class of the status."""
    with toolkit.Node(server.url, cache=None, retry=RetryPolicy(attempts=1)) as node:
        node.ledger()
        transfer = toolkit.EntryFunction("0x1::aptos_account::transfer", arguments=["0xa11ce", 1])
        node.simulate(transfer, sender="0xb0b")
        request = toolkit.SimulationRequest(transfer, sender="0xb0b", sequence_number=0, max_gas_amount=9, gas_unit_price=100, expiration_timestamp_secs=9)  # fmt: skip
        calls = {
            "view": lambda: node.view(toolkit.ViewFunction("0x1::chain_id::get")),
            "table item": lambda: node.table_item("0x1", key="1", key_type="u64", value_type="u64"),
            "simulation": lambda: node.simulate(request),
        }
        faults.next(code.value, times=20)
        with pytest.raises(ERRORS[STATUSES[code]]) as caught:
            calls[operation]()
        faults.clear()
    assert type(caught.value) is ERRORS[STATUSES[code]]
    assert (caught.value.status, caught.value.error_code) == (STATUSES[code], code.value)
    assert caught.value.vm_error_code == (5 if code == ErrorCode.VM_ERROR else None)


def test_every_error_code_is_a_kind_of_fault():
    """The kinds are the error codes and eight others; the statuses above name each code."""
    others = {"429", "500", "503", "507", "cut", "hang", "html", "slow"}
    assert set(FAULTS) == {code.value for code in ErrorCode} | others
    assert set(STATUSES) == set(ErrorCode)


def test_a_fault_waits_for_its_endpoint(server, faults):
    """Requests to other paths pass; a path must start with a slash."""
    faults.next(embedded.Fault("invalid_input", path="/view"))
    assert requests.get(server.url, timeout=10).status_code == 200
    body = {"function": "0x1::chain_id::get", "type_arguments": [], "arguments": []}
    refused = requests.post(f"{server.url}/view", json=body, timeout=10)
    assert (refused.status_code, refused.json()["vm_error_code"]) == (400, None)
    assert "x-aptos-ledger-version" in refused.headers
    assert requests.post(f"{server.url}/view", json=body, timeout=10).status_code == 200
    faults.rates = [embedded.Fault("version_pruned", path="/tables")]
    assert requests.post(f"{server.url}/view", json=body, timeout=10).status_code == 200
    assert requests.post(f"{server.url}/tables/0x1/item", json={}, timeout=10).status_code == 410
    faults.clear()
    with pytest.raises(InputError, match="fault cut"):
        embedded.Fault("cut", path="view")


def test_a_gateways_page_is_html(server, faults):
    """It is no documented error, as a proxy in front of a node would send."""
    faults.next("html")
    answer = requests.get(server.url, timeout=10)
    assert (answer.status_code, answer.headers["content-type"]) == (502, "text/html")


def test_a_cut_connection_ends_in_the_middle_of_the_answer(server, faults):
    """The client sees a broken body, and the next request is answered."""
    faults.next("cut")
    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        requests.get(server.url, timeout=10)
    assert requests.get(server.url, timeout=10).status_code == 200


def test_a_slow_body_arrives_whole(server, faults):
    """In pieces over a second, and complete."""
    faults.next("slow")
    started = time.monotonic()
    answer = requests.get(server.url, timeout=10)
    assert answer.json()["chain_id"] == 4
    assert time.monotonic() - started > 0.5


def test_faults_follow_a_schedule(server, faults):
    """One after another, None letting a request pass."""
    faults.schedule([None, "503", None, "500"])
    assert [requests.get(server.url, timeout=10).status_code for _ in range(5)] == [200, 503, 200, 500, 200]


def test_latency_delays_every_answer(server, faults):
    """Twenty milliseconds each."""
    faults.latency_s = 0.02
    started = time.monotonic()
    for _ in range(5):
        requests.get(server.url, timeout=10)
    assert time.monotonic() - started > 0.1


def test_rates_meet_their_share_and_equal_seeds_the_same_requests():
    """A fifth of requests, the same ones for a seed."""
    drawn = [
        [embedded.Faults(rates=[embedded.Fault("429", rate=0.2), embedded.Fault("cut", rate=0.1)], seed=seed)]
        for seed in (1, 1, 2)
    ]
    series = [[getattr(faults.draw(), "kind", None) for _ in range(2_000)] for (faults,) in drawn]
    assert series[0] == series[1] != series[2]
    assert 300 < series[0].count("429") < 500
    assert 130 < series[0].count("cut") < 270


@pytest.mark.parametrize(("text", "kind", "rate"), [("429:0.05", "429", 0.05), ("cut", "cut", 1.0)])
def test_faults_are_read_from_the_command_line(text, kind, rate):
    """KIND or KIND:RATE."""
    assert embedded.parse_fault(text) == embedded.Fault(kind, rate)


@pytest.mark.parametrize("text", ["418", "429:x", "429:2", ""])
def test_what_is_no_fault_is_refused(text):
    """The message says what there is."""
    with pytest.raises(InputError, match="fault"):
        embedded.parse_fault(text)


def test_faults_in_turn_are_read_from_the_command_line():
    """Kinds by commas, each as often as it says; the message names the part that is none."""
    assert embedded.parse_schedule("429, ok*2,cut") == ["429", None, None, "cut"]
    for text, part in (("503*x", "503\\*x"), ("503,,cut", "''"), ("ok*999999", "ok\\*999999"), ("418", "418")):
        with pytest.raises(InputError, match=part):
            embedded.parse_schedule(text)


def test_latencies_are_read_from_the_command_line():
    """Milliseconds and seconds; anything else is refused."""
    assert (embedded.parse_latency("20ms"), embedded.parse_latency("1.5s")) == (0.02, 1.5)
    with pytest.raises(InputError, match="such as 20ms"):
        embedded.parse_latency("20")


def test_a_request_that_hangs_is_forgotten_when_its_client_leaves(server):
    """No answer comes, others are answered meanwhile, and nothing stays behind."""
    server.faults.next("hang")
    parts = urlsplit(server.url)
    with socket.create_connection((parts.hostname, parts.port)) as connection:
        connection.sendall(b"POST /v1/view HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}")
        connection.settimeout(0.3)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        assert requests.get(server.url, timeout=10).status_code == 200
    assert server.faults.draw() is None


# -- what it survives --------------------------------------------------------------------------------------------


def test_nothing_over_http_changes_the_ledger(server):
    """No method on any path commits anything."""
    digest = server.node.ledger.digest()
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        for path in ("/transactions", "/transactions/batch", "/view", "/accounts/0x1", ""):
            answer = requests.request(method, server.url + path, json={}, timeout=10)
            assert answer.status_code in {400, 403, 404, 405}, (method, path)
    assert server.node.ledger.digest() == digest


def test_a_view_is_bounded_and_a_broken_contract_is_its_own_error():
    """An endless loop ends with its gas; a mistake in Python is an error of the contract, and the node serves on."""

    class Broken(Module, address="0xbad"):
        move_compiled = True  # the mistakes would be refused

        @view
        def forever(self) -> u64:
            for _ in self.each(iter(int, 1)):
                pass
            return 0

        @view
        def mistake(self) -> u64:
            return {}["nothing"]

    ledger = embedded.Ledger()
    ledger.publish(Broken)
    call = {"type_arguments": [], "arguments": []}
    with embedded.serve(ledger, limits=embedded.Limits(view_gas=10_000)) as url:
        endless = requests.post(f"{url}/view", json=call | {"function": "0xbad::broken::forever"}, timeout=60)
        mistake = requests.post(f"{url}/view", json=call | {"function": "0xbad::broken::mistake"}, timeout=10)
        assert requests.get(url, timeout=10).status_code == 200
    assert (endless.status_code, endless.json()["vm_error_code"]) == (400, 4002)
    assert (mistake.status_code, mistake.json()["error_code"]) == (400, "invalid_input")
    assert "KeyError: 'nothing' (test_node_faults.py, line" in mistake.json()["message"]
