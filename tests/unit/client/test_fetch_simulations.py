"""Simulations in bulk: few requests, over the engine, which follows what the node says of its load."""

from __future__ import annotations

import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import toolkit
from tests.unit.client.fakes import URL, FakeNode, answer, info, ledger, refused, user_transaction
from toolkit import EntryFunction, SimulationRequest
from toolkit.client._engine import Window
from toolkit.client._http import RetryPolicy
from toolkit.client._node import Node
from toolkit.errors import Forbidden, SchemaError, Unavailable
from toolkit.wire._headers import ledger_headers

PAY = EntryFunction("0x1::m::pay")
ACCOUNT = {"sequence_number": "7", "authentication_key": "0x01"}
SIMULATE = "POST /transactions/simulate"


def requests_of(*senders, **more):
    return [SimulationRequest(PAY, sender=sender, **more) for sender in senders]


def node_with(sleep=None, **routes):
    """Return a node in memory that simulates, and its transport."""
    transport = FakeNode({SIMULATE: answer([user_transaction()]), "GET /accounts/0xa": answer(ACCOUNT)} | routes)
    return Node("http://node.test", transport=transport, sleep=sleep), transport


class Busy(BaseHTTPRequestHandler):
    """A node that answers 429 to every simulation beyond a number in flight."""

    protocol_version = "HTTP/1.1"
    allowed, in_flight, refused, seen = 4, 0, 0, Counter()
    lock = threading.Lock()
    hold = threading.Event()

    def do_GET(self):
        type(self).seen[self.path] += 1
        found = {"/v1": info(ledger()), "/v1/accounts/0xa": ACCOUNT}.get(self.path)
        self.reply(answer(found) if found else refused(403, "api_disabled", head=ledger()))

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        kind = type(self)
        with kind.lock:
            kind.in_flight += 1
            busy = kind.in_flight > kind.allowed
            kind.refused += busy
            kind.seen[self.path.partition("?")[0]] += 1
        kind.hold.wait(0.02)
        with kind.lock:
            kind.in_flight -= 1
        self.reply(refused(429, "rate_limited") if busy else answer([user_transaction()]))

    def reply(self, found):
        self.send_response(found.status)
        for name, value in found.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(found.body)))
        self.end_headers()
        self.wfile.write(found.body)

    def log_message(self, *_):
        pass


@pytest.fixture
def busy():
    """Return the URL of a node that refuses more than four simulations at once, and its counters."""
    kind = type("Counted", (Busy,), {"seen": Counter(), "refused": 0, "in_flight": 0})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", kind
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_batch_reads_the_head_and_each_sender_once():
    """Twenty simulations of two senders: two accounts, twenty posts, and the head once for all."""
    node, there = node_with(**{"GET /accounts/0xb": answer(ACCOUNT | {"sequence_number": "9"})})
    frames = toolkit.fetch_simulations(node, requests_of(*["0xa", "0xb"] * 10), progress=False)
    assert len(frames.transactions) == 20
    sent = Counter(where for where, _, _ in there.asked)
    assert (sent[SIMULATE], sent["GET /accounts/0xa"], sent["GET /accounts/0xb"]) == (20, 1, 1)
    assert sent["GET /accounts/0x1/module/m"] == 1
    assert sent["GET "] <= 3  # the head once; the ledger's anchor, which this node has no transaction for, twice
    numbers = [body["sequence_number"] for _, body in there.sent(SIMULATE)]
    assert sorted(numbers) == ["7"] * 10 + ["9"] * 10


def test_a_batch_goes_over_the_engine(busy, monkeypatch):
    """The window shrinks on 429: every simulation gets its answer, although the node allows four at once."""
    url, counted = busy
    windows, shrink = set(), Window.refused

    def noted(window, **times):
        shrink(window, **times)
        windows.add(window)

    monkeypatch.setattr(Window, "refused", noted)
    with toolkit.Node(url, cache=None, max_in_flight=16, retry=RetryPolicy(attempts=20, base_s=0.01)) as node:
        frames = toolkit.fetch_simulations(node, requests_of(*["0xa"] * 40), progress=False)
        assert [window.limit < 16 for window in windows] == [True]
    assert [type(result).__name__ for result in frames.results] == ["Simulation"] * 40
    assert counted.refused > 0
    assert counted.seen["/v1/accounts/0xa"] == 1


def test_senders_whose_number_cannot_be_read_fail_alone():
    """A temporary refusal is the outcome of the sender's requests; an account that does not exist yet has 0."""
    node, there = node_with(lambda _: None, **{"GET /accounts/0xb": refused(403, "web_framework_error")})
    there.routes["GET /accounts/0xd"] = refused(503, "internal_error")
    results = toolkit.fetch_simulations(node, requests_of("0xa", "0xb", "0xc", "0xd"), progress=False).results
    assert isinstance(results[3], Unavailable)
    assert [body["sequence_number"] for _, body in there.sent(SIMULATE)] == ["7", "0", "0"]
    assert not any(isinstance(result, Forbidden) for result in results)


@pytest.mark.parametrize(
    ("field", "value"), [("gas_used", "9x"), ("gas_used", str(2**63)), ("timestamp", str(2**64 - 1)), ("sender", "0xz")]
)
def test_a_malformed_simulation_fails_alone(field, value):
    """All are checked at once; only the one that does not fit is an error, for a single simulation too."""

    def simulated(_, body):
        wrong = {field: value} if body["sequence_number"] == "1" else {}
        return answer([user_transaction() | wrong])

    node, _ = node_with(**{SIMULATE: simulated})
    numbered = [*requests_of("0xa", sequence_number=0), *requests_of("0xa", sequence_number=1)]
    frames = toolkit.fetch_simulations(node, [*numbered, numbered[0]], progress=False)
    assert [type(result).__name__ for result in frames.results] == ["Simulation", "SchemaError", "Simulation"]
    codes = frames.transactions["error_code"]
    assert codes.isna().tolist() == [True, False, True]
    assert codes[1] == "schema_error"
    with pytest.raises(SchemaError, match=value):
        node.simulate(numbered[1])


def test_accounts_are_not_read_if_every_request_has_its_number():
    """It is not read for a given sequence number or for a nonce."""
    node, there = node_with()
    toolkit.fetch_simulations(
        node, [*requests_of("0xa", sequence_number=3), *requests_of("0xa", replay_protection_nonce=5)], progress=False
    )
    assert there.sent("GET /accounts/0xa") == []


def test_an_empty_batch_sends_nothing():
    """Three empty frames."""
    node, there = node_with()
    frames = toolkit.fetch_simulations(node, [], progress=False)
    assert (len(frames.transactions), len(frames.results), there.asked) == (0, 0, [])


def test_expirations_follow_the_newest_head():
    """A batch that takes long does not expire: each request counts from the newest head that was seen."""
    later = ledger(2_000)
    later = type(later)(4, 2_000, 0, later.timestamp.replace(year=2027), 7, 200, 0)
    body = answer([user_transaction()])
    transport = FakeNode({"GET /accounts/0xa": answer(ACCOUNT)})
    transport.routes[SIMULATE] = type(body)(200, ledger_headers(later), body.body)
    node = Node("http://node.test", transport=transport, max_in_flight=1)
    toolkit.fetch_simulations(node, requests_of(*["0xa"] * 4), progress=False)
    expirations = [int(body["expiration_timestamp_secs"]) for _, body in transport.sent(SIMULATE)]
    assert expirations[0] == int(ledger().timestamp.timestamp()) + 600
    assert expirations[-1] == int(later.timestamp.timestamp()) + 600


def test_an_account_that_may_not_be_read_does_not_stop_a_simulation():
    """Companion reads that answer 403 are done without."""
    fake = FakeNode(
        {
            "GET /accounts/0xa11ce": refused(403, "api_disabled"),
            "GET /accounts/0x1/module/m": refused(403, "api_disabled"),
            "POST /transactions/simulate": answer([user_transaction()]),
        }
    )
    assert Node(URL, transport=fake).simulate(EntryFunction("0x1::m::pay", arguments=[]), sender="0xa11ce").success
