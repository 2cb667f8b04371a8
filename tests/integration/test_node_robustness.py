"""The node over real sockets under bytes nobody should send: it answers or hangs up, and goes on serving."""

from __future__ import annotations

import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest
import requests
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import toolkit
from toolkit import embedded
from toolkit.embedded import Module, entry, signer, u64, view
from toolkit.embedded.http._operations import SIGNED_TRANSACTION_BCS, VIEW_BCS
from toolkit.errors import InvalidRequest

APT = "0x1::aptos_coin::AptosCoin"
VIEW = {"function": "0x1::coin::balance", "type_arguments": [APT], "arguments": ["0xa11ce"]}
BOUNDED = settings(derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
PATHS = ["/v1/view", "/v1/tables/0x1/item", "/v1/tables/0x1/raw_item", "/v1/transactions/simulate"]
TYPES = ["application/json", VIEW_BCS, SIGNED_TRANSACTION_BCS]
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
FIELDS = ["function", "type_arguments", "arguments", "key_type", "value_type", "key", "sender", "payload", "signature"]


@pytest.fixture(scope="module")
def url():
    with embedded.serve(embedded.Ledger()) as served:
        yield served


def _exchange(url, data):
    """Send raw bytes, close the sending side, return what comes back until the node hangs up."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=30) as connection:
        received = b""
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(65_536):
                received += piece
        except ConnectionError:  # hung up on: an answer too
            pass
    return received


def _serves(url):
    answer = requests.post(f"{url}/view", json=VIEW, timeout=30)
    return answer.status_code == 200 and len(answer.json()) == 1


@BOUNDED
@given(st.binary(max_size=2_000))
def test_random_bytes_leave_the_node_serving(url, data):
    """Anything that is not HTTP is 400 or a closed connection, never a 500."""
    assert b" 500 " not in _exchange(url, data)[:20]
    assert _serves(url)


@BOUNDED
@given(st.sampled_from(PATHS), st.sampled_from(TYPES), st.binary(max_size=500))
def test_random_bodies_are_refused(url, path, media, body):
    """Bytes as a body of every operation, as JSON and as BCS: an error of the caller's."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {media}\r\nContent-Length: {len(body)}\r\n\r\n"
    status = int(_exchange(url, head.encode() + body).split(b" ", 2)[1])
    assert 400 <= status < 500


@BOUNDED
@given(st.sampled_from(PATHS), st.dictionaries(st.sampled_from(FIELDS), JSON_VALUES))
def test_random_json_objects_are_refused(url, path, body):
    """Right names, any values: an error of the caller's."""
    answer = requests.post(
        url.removesuffix("/v1") + path,
        data=json.dumps(body),
        headers={"Content-Type": "application/json"},
        timeout=30,
    )
    assert 400 <= answer.status_code < 500, answer.text


@pytest.mark.parametrize(
    "body",
    [
        "[" * 200_000,
        '{"a":' * 100_000,
        json.dumps(VIEW).replace('"0xa11ce"', "[" * 5_000 + "]" * 5_000),
        json.dumps(VIEW).replace('"0xa11ce"', "9" * 100_000),
        json.dumps(VIEW).replace('"0xa11ce"', "1e999999999"),
        json.dumps(VIEW).replace('"0xa11ce"', "-" + "9" * 5_000),
        json.dumps(VIEW).replace(APT, "vector<" * 50_000),
        json.dumps(VIEW).replace(APT, "0x1::a::B<" * 5_000 + ">" * 5_000),
        json.dumps(VIEW).replace("coin::balance", "c" * 1_000_000),
        '{"function": "\ud800"}'.encode("utf-8", "surrogatepass"),
    ],
    ids=["deep list", "deep object", "deep argument", "digits", "exponent", "negative", "open type", "deep type", "name", "surrogate"],
)  # fmt: skip
def test_huge_numbers_and_deep_nesting_are_refused_shortly(url, body):
    """A 400 with a message of modest length."""
    headers = {"Content-Type": "application/json"}
    answer = requests.post(f"{url}/view", data=body, headers=headers, timeout=30)
    assert answer.status_code == 400, answer.text[:300]
    assert len(answer.json()["message"]) < 2_000
    assert _serves(url)


RELEASED = threading.Event()


class Long(Module, address="0xe4d"):
    """Functions that use much gas, or none."""

    @view
    def waiting(self) -> u64:
        for _ in self.each(iter(RELEASED.is_set, True)):
            pass
        return 7

    @view
    def looping(self) -> u64:
        for _ in self.each(iter(int, 1)):
            pass
        return 0

    @entry
    def run(self, account: signer) -> None:
        self.looping()


def test_views_that_take_long_do_not_keep_others_waiting():
    """More views than there are workers run, and wait for something that happens after other requests are answered."""
    ledger = embedded.Ledger()
    ledger.publish(Long)
    RELEASED.clear()
    limits = embedded.Limits(view_gas=2**62)
    with embedded.serve(ledger, limits=limits) as url, ThreadPoolExecutor(6) as pool:
        node = toolkit.connect(url, cache=None, timeout_s=60)
        slow = [pool.submit(node.view, "0xe4d::long::waiting") for _ in range(6)]
        try:
            assert _serves(url)
            ledger.advance()  # the ledger grows meanwhile, too
            assert _serves(url)
        finally:
            RELEASED.set()
        assert [one.result().value for one in slow] == [7] * 6


@pytest.mark.parametrize("encoding", ["json", "bcs"])
def test_loops_that_are_charged_are_ended_by_gas(encoding):
    """A view is a 400 and a simulation a failed transaction that used all gas; the node goes on."""
    ledger = embedded.Ledger()
    ledger.publish(Long)
    with embedded.serve(ledger, limits=embedded.Limits(view_gas=20_000)) as url:
        node = toolkit.connect(url, cache=None, encoding=encoding)
        with pytest.raises(InvalidRequest) as refused:
            node.view("0xe4d::long::looping")
        assert refused.value.vm_error_code == 4002
        done = node.simulate(toolkit.EntryFunction("0xe4d::long::run"), sender="0xa11ce", max_gas_amount=3_000)
        assert (done.success, done.gas_used, done.vm_status) == (False, 3_000, "Out of gas")
        assert _serves(url)
