"""A node whose views misbehave in every way: by both roads each call ends as a row or an error, and soon."""

from __future__ import annotations

import json
import random
import socket
import threading
from datetime import UTC, datetime

import pytest

import toolkit
from tests.integration.transports.servers import HTML_429, Server, _Handler, serving
from tests.unit.client.fakes import function, info, module
from toolkit.client._engine import BulkEngine
from toolkit.client._http import Answer, Request, RetryPolicy
from toolkit.client._transport import SessionTransport
from toolkit.errors import NodeError, NodeUnreachable, SchemaError, ToolkitError
from toolkit.frames._calls import Failure
from toolkit.wire import LedgerState
from toolkit.wire._headers import ledger_headers

HEAD = LedgerState(4, 1_000, 0, datetime(2026, 5, 1, tzinfo=UTC), 7, 100, 0)
MODULE = module("m", functions=[function("f", [], ["u64"])])
CALL = toolkit.ViewFunction("0x1::m::f")
QUICK = RetryPolicy(attempts=2, base_s=0.01, cap_s=0.02)
KEY = "sesame-456"
HOSTILE = {  # what the node does, and the codes that a row of it may have
    "stall": {"unreachable"},
    "pause": {"unreachable"},
    "cut": {"unreachable"},
    "short": {"unreachable"},
    "cutchunk": {"unreachable"},
    "garbage": {"unreachable"},
    "badgzip": {"unreachable"},
    "brokengzip": {"unreachable"},
    "large": {"unreachable"},
    "bomb": {"unreachable"},
    "endless": {"unreachable"},
    "away": {"http_302"},
    "html": {"http_429"},
    "website": {"schema_error"},
    "lost": {"http_404"},
    "accepted": {"http_202"},
    "partial": {"http_206"},
    "charset": {"schema_error"},
    "badjson": {"schema_error"},
    "deepjson": {"schema_error"},
    "wrongtype": {"schema_error"},
    "nothing": {"schema_error"},
    "long": {"schema_error"},
}


class _Node(_Handler):
    """Describes itself as a node does; the server's `mode` decides how it answers a view."""

    def _told(self, value, **headers):
        head = {name.replace("-", "_"): text for name, text in ledger_headers(HEAD, gas_used=3).items()}
        self.answer(json.dumps(value).encode(), Content_Type="application/json", **head, **headers)

    def serve_v1(self):
        self._told(info(HEAD))

    def serve_m(self):
        self._told(MODULE)

    def serve_view(self):
        version = self.query.get("ledger_version", "")
        if self.server.mode is None or version.endswith("0"):
            self._told([version])
        else:
            getattr(self, f"serve_{self.server.mode}")()

    def serve_away(self):
        self.answer(b"moved", 302, Location="http://127.0.0.1:1/v1/view")

    def serve_html(self):
        """A page like `serve_page`, without a wait."""
        self.answer(HTML_429, 429, Content_Type="text/html")

    def serve_website(self):
        self.answer(b"<!doctype html><title>Welcome!</title>", Content_Type="text/html")

    def serve_lost(self):
        self.answer(b"<h1>No such page</h1>", 404, Content_Type="text/html")

    def serve_accepted(self):
        self.answer(b'["7"]', 202, Content_Type="application/json")

    def serve_partial(self):
        self.answer(b'["7"]', 206, Content_Type="application/json")

    def serve_badjson(self):
        self.answer(b'["12', Content_Type="application/json")

    def serve_deepjson(self):
        self.answer(b"[" * 100_000, Content_Type="application/json")

    def serve_wrongtype(self):
        self._told(["no number"])

    def serve_nothing(self):
        self.answer(b"")


class HostileServer(Server):
    mode: str | None = None

    def __init__(self) -> None:
        super().__init__(_Node)

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"


@pytest.fixture(scope="module")
def hostile():
    with serving(HostileServer()) as one:
        yield one


@pytest.fixture
def node(request, hostile, monkeypatch):
    """Return a node that takes no more than 100,000 bytes, with short patience if nothing comes."""
    monkeypatch.setattr("toolkit.client._http.MAX_ANSWER_BYTES", 100_000)
    silent = request.node.name.endswith(("[stall]", "[pause]"))
    if silent:
        monkeypatch.setattr("toolkit.client._http.TOTAL_TIMEOUTS", 2)
    options = {"timeout_s": 2 if silent else 30, "max_in_flight": 8, "retry": QUICK}
    with toolkit.Node(hostile.base, api_key=KEY, cache=None, **options) as one:
        one.view(CALL, ledger_version=10)
        one.abis.prepare("0x1", "m", [100, 120])
        yield one
    hostile.mode = None


@pytest.mark.parametrize("mode", HOSTILE)
def test_a_sweep_has_a_row_for_every_call(hostile, node, mode):
    """The hostile answers are rows that say how they failed; those in between are whole."""
    hostile.mode = mode
    outcomes = dict(node.many(node.prepare_view(CALL, version) for version in range(100, 121)))
    good = {place for place in range(21) if place % 10 == 0}
    assert sorted(outcomes) == list(range(21))
    assert {place: outcomes[place].value for place in good} == {place: 100 + place for place in good}
    failed = [outcome for place, outcome in outcomes.items() if place not in good]
    assert all(isinstance(outcome, ToolkitError) for outcome in failed)
    codes = {Failure.of(outcome).error_code for outcome in failed}
    assert codes == HOSTILE[mode]
    assert not [outcome for outcome in failed if KEY in str(outcome) or len(str(outcome)) > 1_200]


@pytest.mark.parametrize("mode", HOSTILE)
def test_a_single_call_raises_of_the_tree(hostile, node, mode):
    """A single call raises one error of the toolkit, whose text says what was asked or where."""
    hostile.mode = mode
    with pytest.raises((NodeError, NodeUnreachable, SchemaError)) as caught:
        node.view(CALL, ledger_version=101)
    assert "0x1::m::f" in str(caught.value) or "POST http://127.0.0.1" in str(caught.value)
    hostile.mode = None
    assert node.view(CALL, ledger_version=101).value == 101


@pytest.mark.parametrize("mode", ["website", "lost", "away"])
def test_a_website_is_asked_for_by_name(hostile, node, mode):
    """A page, or a redirect to one, names the URL and asks whether it is a node's, by both roads."""
    hostile.mode = mode
    with pytest.raises((NodeError, NodeUnreachable, SchemaError)) as single:
        node.view(CALL, ledger_version=101)
    (_, bulk), (_, _) = sorted(node.many(node.prepare_view(CALL, version) for version in (101, 110)))
    for error in (single.value, bulk):
        assert f"is {hostile.base} the URL of a node?" in str(error)


class Raw:
    """A server that answers each request with the next of given bytes, and hangs up."""

    def __init__(self, answers):
        self._answers = iter(answers)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        for answer in self._answers:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(2)
                try:
                    connection.recv(65536)
                    connection.sendall(answer)
                except OSError:
                    continue

    def close(self):
        self._socket.close()
        self._thread.join(timeout=5)


def mangled(seed: int) -> bytes:
    """Return an HTTP answer with some of it changed, cut or repeated; or bytes at random."""
    chance = random.Random(seed)
    if chance.random() < 0.2:
        return chance.randbytes(chance.randrange(300))
    whole = bytearray(
        b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 6\r\nX-APTOS-CHAIN-ID: 4\r\n\r\n["12"]'
    )
    for _ in range(chance.randrange(1, 6)):
        place = chance.randrange(len(whole))
        match chance.randrange(4):
            case 0:
                whole[place] = chance.randrange(256)
            case 1:
                del whole[place : place + chance.randrange(1, 20)]
            case 2:
                whole[place:place] = chance.choice(
                    [b"\r\n", b"\0", b"\xff" * 9, b"9" * 30, b"chunked", b"HTTP/1.1 100 \r\n"]
                )
            case _:
                whole += whole[:place]
        if not whole:
            break
    return bytes(whole)


@pytest.mark.parametrize("transport_class", [SessionTransport, BulkEngine])
def test_mangled_answers_are_an_answer_or_none(transport_class):
    """300 damaged or random answers: each is an answer with text headers or NodeUnreachable, nothing else."""
    server, transport = Raw(map(mangled, range(300))), transport_class(timeout_s=1.0)

    def outcome(number):
        try:
            return transport.send(Request("GET", f"{server.url}/{number}"))
        except NodeUnreachable as unreachable:
            return unreachable

    outcomes = [outcome(number) for number in range(300)]
    transport.close()
    server.close()
    answers = [one for one in outcomes if isinstance(one, Answer)]
    assert 0 < len(answers) < 300
    assert all(isinstance(text, str) for answer in answers for pair in answer.headers.items() for text in pair)
    assert max(len(str(one)) for one in outcomes if isinstance(one, NodeUnreachable)) < 600
