"""The embedded node without a socket: what it answers, and a session on a machine without a web server."""

from __future__ import annotations

import pickle
import subprocess
import sys
import textwrap

import pytest
import requests

import toolkit
from toolkit import embedded
from toolkit.client._ledger_transport import LedgerTransport
from toolkit.embedded.http._dispatch import answer_request
from toolkit.embedded.http._node import EmbeddedNode, Limits
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


SESSION = """
    import builtins, sys

    real = builtins.__import__

    def blocked(name, *rest, **options):
        if name.partition(".")[0] in {"uvicorn", "httptools", "starlette", "uvloop", "h11"}:
            raise ImportError(f"No module named {name!r}")
        return real(name, *rest, **options)

    builtins.__import__ = blocked
    import toolkit
    from toolkit.embedded import Ledger, Module, u64, view

    class Loops(Module, address="0x1009"):
        @view
        def count(self, to: u64) -> u64:
            done = u64(0)
            for _ in self.each(range(to)):
                done += 1
            return done

    ledger = Ledger.with_history(seed=7, versions=300, cache=True)
    ledger.publish(Loops)
    node = toolkit.connect(ledger)
    supply = toolkit.ViewFunction("0x1::coin::supply", type_arguments=["0x1::aptos_coin::AptosCoin"])
    frame = toolkit.fetch_views(node, supply, "100:199")
    assert len(frame) == 100 and frame["error_code"].isna().all() and str(frame["value"].dtype) == "u128"
    assert node.simulate(
        toolkit.EntryFunction("0x1::aptos_account::transfer", arguments=["0xb0b", 100]), sender="0xa11ce"
    ).success
    # More gas than a served node lets contract code use in the thread that answers all requests.
    assert node.view("0x1009::loops::count", [200_000]).value == 200_000
    assert len(toolkit.fetch_transactions(node, "0:-1").transactions) == ledger.head + 1
    try:
        node.view("0x1::coin::nothing")
    except toolkit.errors.InvalidRequest as error:
        print(type(error).__name__)
    node.close()
    try:
        node.ledger()
    except toolkit.errors.ClosedError as error:
        print(type(error).__name__)
    assert not {"uvicorn", "httptools", "starlette"} & set(sys.modules)
"""


def test_a_session_without_a_web_server(tmp_path):
    """Without uvicorn and what it needs, `connect` answers inside of the process: views, simulations, bulk, errors."""
    script = tmp_path / "session.py"
    script.write_text(textwrap.dedent(SESSION), "utf-8")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["InvalidRequest", "ClosedError"]


def test_a_node_of_another_process_names_the_remedy(monkeypatch):
    """A node without a socket can be pickled for this process; another one learns how to reach it."""
    monkeypatch.setitem(sys.modules, "toolkit.embedded.http._server", None)
    monkeypatch.delattr(embedded, "start", raising=False)
    with toolkit.connect(embedded.Ledger(chain_id=9)) as node:
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(LedgerTransport(LEDGER))
        with pickle.loads(pickle.dumps(node)) as again:  # noqa: S301 - our own bytes
            assert again.ledger().chain_id == 9
        monkeypatch.setattr("toolkit.client._http._served", {})
        with pytest.raises(toolkit.InputError, match="install uvicorn"):
            pickle.loads(pickle.dumps(node))  # noqa: S301 - our own bytes
