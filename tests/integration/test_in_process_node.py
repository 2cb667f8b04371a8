"""The embedded node without a socket answers as it does over HTTP."""

from __future__ import annotations

import pytest
import requests

from toolkit import embedded
from toolkit.embedded.http._node import EmbeddedNode, Limits, answer_request
from toolkit.embedded.http._operations import VIEW_BCS

JSON = {"Content-Type": "application/json"}
SUPPLY = b'{"function":"0x1::coin::supply","type_arguments":["0x1::aptos_coin::AptosCoin"],"arguments":[]}'
REQUESTS = [
    ("GET", "/v1", {}, None),
    ("GET", "/v1/accounts/0xa11ce/resources?limit=2", {}, None),
    ("GET", "/v1/accounts/0x1/resource/0x1%3A%3Achain_id%3A%3AChainId", {"Accept": "application/x-bcs"}, None),
    ("GET", "/v1/transactions/by_version/7?a=%zz&a=", {}, None),
    ("GET", "/v1/transactions?start=x", {}, None),
    ("GET", "/v1/view", {}, None),
    ("GET", "/v1/nothing", {}, None),
    ("DELETE", "/v1/transactions", {}, None),
    ("POST", "/v1/view?ledger_version=100", JSON, SUPPLY),
    ("POST", "/v1/view?ledger_version=999999999", JSON, SUPPLY),
    ("POST", "/v1/view", {"Content-Type": VIEW_BCS}, b"\x00" * 40),
    ("POST", "/v1/view", {"Content-Type": "text/html"}, SUPPLY),
    ("POST", "/v1/view", JSON, b" " * 2_000),
    ("POST", "/v1/view", JSON, b" " * 5_000),
]


LEDGER = embedded.Ledger.with_history(seed=7, versions=300, cache=True)
LIMITS = Limits(body_bytes=4_000)


@pytest.fixture(scope="module")
def host():
    with embedded.start(LEDGER, limits=LIMITS) as server:
        yield server.url.removesuffix("/v1")


@pytest.mark.parametrize(("method", "target", "headers", "body"), REQUESTS)
def test_answers_equal_those_over_http(host, method, target, headers, body):
    """Status, body and headers of a request are the same with and without a socket; limits of sizes hold too."""
    served = requests.request(method, host + target, headers=headers, data=body, timeout=30)
    status, lines, answered = answer_request(EmbeddedNode(LEDGER, limits=LIMITS), method, target, headers, body)
    assert status == served.status_code
    assert answered == served.content
    ours = {name.decode(): value.decode() for name, value in lines}
    sent = {name.lower(): value for name, value in served.headers.items()}
    assert ours == {name: value for name, value in sent.items() if name not in {"date", "server"}}
