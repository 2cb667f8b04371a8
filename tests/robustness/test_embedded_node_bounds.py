"""What one client may cost the embedded node: memory, time, connections; with each of uvicorn's two HTTP parsers."""

from __future__ import annotations

import json
import socket
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from urllib.parse import urlsplit

import pytest
import requests
from conftest import node_process
from uvicorn.protocols.http.h11_impl import H11Protocol

from toolkit import embedded
from toolkit.embedded.http import _server as server_module

try:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
except ImportError:  # on Windows
    PARSERS = [H11Protocol]
else:
    PARSERS = [HttpToolsProtocol, H11Protocol]

GET = b"GET /v1 HTTP/1.1\r\nHost: localhost\r\n"
PATIENCE_S = 30


@pytest.fixture(params=PARSERS, ids=lambda parser: parser.__name__)
def serve(request, monkeypatch):
    """Return a function that starts a node over a small ledger with one of the parsers."""
    monkeypatch.setattr(server_module, "AutoHTTPProtocol", request.param)
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(embedded.start(embedded.Ledger(), **options))


@contextmanager
def connected(server):
    parts = urlsplit(server.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=PATIENCE_S) as connection:
        yield connection


def received(connection):
    """Return all that comes until the node closes the connection."""
    pieces = []
    try:
        while piece := connection.recv(65_536):
            pieces.append(piece)
    except ConnectionError:
        pass
    return b"".join(pieces)


def flood(connection, piece, size):
    """Send `piece` until `size` bytes are sent or the node hangs up; returns the bytes sent."""
    sent = 0
    try:
        while sent < size:
            connection.sendall(piece)
            sent += len(piece)
    except ConnectionError:
        pass
    return sent


def serves(server):
    return requests.get(server.url, timeout=PATIENCE_S).status_code == 200


def eventually(condition):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.01)


@pytest.mark.fault("a 1 GB request head", "431, the connection is closed, memory stays constant")
def test_endless_header_lines_cost_no_memory():
    """Each of ten connections that send header lines without end is hung up on, and the process does not grow."""
    process_of = pytest.importorskip("psutil", reason="needs psutil, of the test extra").Process
    with node_process(seed=7, versions=300) as (place, process):
        requests.get(f"http://{place[0]}:{place[1]}/v1", timeout=PATIENCE_S)
        before = process_of(process.pid).memory_info().rss
        for _ in range(10):
            with socket.create_connection(place, timeout=PATIENCE_S) as connection:
                connection.sendall(GET)
                flood(connection, b"".join(b"X-%d: %s\r\n" % (line, b"a" * 8_000) for line in range(100)), 1 << 30)
        assert process_of(process.pid).memory_info().rss - before < 32 << 20
        assert requests.get(f"http://{place[0]}:{place[1]}/v1", timeout=PATIENCE_S).status_code == 200


@pytest.mark.fault("a request head with too many lines or bytes", "431, and the connection is closed")
@pytest.mark.parametrize(
    "lines",
    [b"X: y\r\n" * 101 + b"\r\n", b"X: %s\r\n\r\n" % (b"y" * 70_000), b"X: " + b"y" * 70_000, b"X: y\r\n" * 12_000],
    ids=["many lines", "long", "long and unfinished", "many and unfinished"],
)
def test_a_head_that_is_too_long_is_refused(serve, lines):
    """More than 100 lines or 64 KiB, finished or not: 431 with the limits in the text."""
    server = serve()
    with connected(server) as connection:
        connection.sendall(GET + lines)
        head, _, body = received(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 431 ")
    assert json.loads(body)["message"] == "the request head is too long: at most 65,536 bytes and 100 lines"
    assert serves(server)


def test_a_head_that_is_too_long_by_its_last_bytes_is_refused(serve):
    """70,000 bytes of which the last 8,000 come by themselves, with the end of the head among them."""
    server = serve()
    with connected(server) as connection:
        connection.sendall(GET + b"X: " + b"y" * 62_000)
        time.sleep(0.1)
        connection.sendall(b"y" * 8_000 + b"\r\n\r\n")
        assert received(connection).startswith(b"HTTP/1.1 431 ")


def test_a_head_within_its_bounds_is_answered(serve):
    """99 lines of 600 bytes beside `Host`, in one piece and byte by byte."""
    server = serve()
    lines = b"".join(b"X-%d: %s\r\n" % (line, b"a" * 600) for line in range(99)) + b"\r\n"
    small = b"Connection: close\r\n\r\n"
    with connected(server) as connection:
        connection.sendall(GET + lines + GET)
        for position in range(len(small)):
            connection.sendall(small[position : position + 1])
        assert received(connection).count(b"HTTP/1.1 200 OK") == 2


@pytest.mark.fault("a client whose request head never ends (slowloris)", "the connection is closed after a timeout")
@pytest.mark.parametrize("begun", [b"G", GET])
@pytest.mark.parametrize("used", [False, True])
def test_a_head_that_does_not_end_in_time_is_hung_up_on(serve, begun, used):
    """On a new connection and on one that was used before."""
    server = serve(limits=embedded.Limits(header_timeout_s=0.2))
    with connected(server) as connection:
        if used:
            connection.sendall(GET + b"\r\n")
            answer = b""
            while not answer.endswith(b"}"):
                answer += connection.recv(65_536)
        connection.sendall(begun)
        assert received(connection) == b""
    assert serves(server)


@pytest.mark.fault("a client whose body never ends", "408")
def test_a_body_that_does_not_end_in_time_is_408(serve):
    """The answer says so, and the connection is closed."""
    server = serve(limits=embedded.Limits(body_timeout_s=0.2))
    with connected(server) as connection:
        connection.sendall(b"POST /v1/view HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
        assert b" 408 " in received(connection)[:20]
    assert serves(server)


@pytest.mark.fault("a client that does not read its answer", "the connection is closed after a timeout")
def test_a_client_that_does_not_read_is_hung_up_on(serve):
    """What it asked for does not stay in memory."""
    server = serve(limits=embedded.Limits(body_timeout_s=0.2))
    path = b"GET /v1/accounts/0x1/modules HTTP/1.1\r\nHost: localhost\r\n\r\n"
    parts = urlsplit(server.url)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        connection.settimeout(PATIENCE_S)
        connection.connect((parts.hostname, parts.port))
        connection.sendall(path)
        eventually(lambda: len(server._protocol.open) == 1)
        for _ in range(2_000):
            try:
                connection.sendall(path * 10)
            except ConnectionError:
                break
        eventually(lambda: len(server._protocol.open) == 0)
    assert serves(server)


@pytest.mark.fault("more connections than the node allows", "the oldest idle one is closed; honest clients are served")
def test_idle_connections_leave_room_for_others(serve):
    """60 idle and half-sent connections where 20 may be open: each honest request is answered."""
    server = serve(limits=embedded.Limits(connections=20))
    with ExitStack() as stack:
        held = [stack.enter_context(connected(server)) for _ in range(60)]
        for number, connection in enumerate(held):
            connection_begins = (
                b"",
                GET,
                GET + b"\r\n",
                b"POST /v1/view HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{",
            )
            with suppress(ConnectionError):  # closed to make room
                connection.sendall(connection_begins[number % 4])
        for _ in range(20):
            assert serves(server)
        assert len(server._protocol.open) <= 20


def test_a_request_that_is_being_answered_is_not_cut_off_to_make_room(serve):
    """Only connections that wait for their client are closed."""
    server = serve(limits=embedded.Limits(connections=5), faults=embedded.Faults(latency_s=0.5))
    with ExitStack() as stack:
        busy = stack.enter_context(connected(server))
        busy.sendall(GET + b"Connection: close\r\n\r\n")
        eventually(lambda: len(server._protocol.open) == 1)
        for _ in range(30):
            stack.enter_context(connected(server))
        assert received(busy).startswith(b"HTTP/1.1 200 OK")


def test_200_idle_connections_do_not_hinder_honest_clients(serve):
    """With the default limits too, from many threads."""
    server = serve()
    answered = []
    with ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(connected(server)).sendall(GET)
        threads = [threading.Thread(target=lambda: answered.append(serves(server))) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answered == [True] * 20


def test_pipelined_requests_are_answered_in_turn(serve):
    """Some requests in one write are answered in their order."""
    server = serve()
    paths = [b"/v1", b"/v1/nothing", b"/v1/estimate_gas_price"] * 5
    with connected(server) as connection:
        requested = [b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path for path in paths]
        connection.sendall(b"".join(requested) + GET + b"Connection: close\r\n\r\n")
        answers = received(connection).split(b"HTTP/1.1 ")[1:]
    assert [answer[:3] for answer in answers] == [b"200", b"404", b"200"] * 5 + [b"200"]


@pytest.mark.fault("pipelined requests without end", "the connection is closed, or no longer read")
def test_endless_pipelining_does_not_pile_up(serve):
    """A client that sends requests and reads no answer."""
    server = serve(faults=embedded.Faults(latency_s=0.5))
    with connected(server) as connection:
        connection.settimeout(2)
        with suppress(TimeoutError):  # h11 reads the next request when the previous one is answered
            assert flood(connection, (GET + b"\r\n") * 1_000, 256 << 20) < 256 << 20
    server.faults.clear()
    assert serves(server)


@pytest.mark.fault("a chunked body that never ends", "411 or 431, and the connection is closed")
@pytest.mark.parametrize("path", [b"POST /v1/view", b"GET /v1", b"POST /v1/nothing"])
def test_a_chunked_body_is_refused_and_not_read(serve, path):
    """Neither chunks nor trailers are held in memory."""
    server = serve()
    for endless in (b"1\r\n{\r\n" * 1_000, b"0\r\n" + b"X: y\r\n" * 1_000):
        with connected(server) as connection:
            connection.sendall(path + b" HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
            connection.sendall(endless)
            assert connection.recv(65_536)[9:12] in {b"411", b"431"}  # the latter if the trailers were there before
            flood(connection, endless[3:], 256 << 20)
    assert serves(server)


def test_a_large_body_is_refused_while_the_client_still_sends(serve):
    """The client gets its 413 although 20 MB are on their way."""
    server = serve()
    headers = {"Content-Type": "application/json"}
    for _ in range(5):
        answer = requests.post(f"{server.url}/view", data=b"x" * 20_000_000, headers=headers, timeout=PATIENCE_S)
        assert (answer.status_code, answer.json()["message"]) == (413, "payload too large")
    assert serves(server)


@pytest.mark.parametrize(
    "data",
    [
        GET
        + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==\r\n\r\n",
        b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\r\n" * 100_000,
    ],
    ids=["websocket", "tunnel", "http2", "empty lines"],
)
def test_other_protocols_are_no_way_around_the_bounds(serve, data):
    """Whatever follows an upgrade or a tunnel is not read without end either."""
    server = serve(limits=embedded.Limits(header_timeout_s=0.2))
    with connected(server) as connection:
        flood(connection, data, len(data))
        assert flood(connection, b"z" * 65_536, 256 << 20) < 256 << 20
    assert serves(server)


HOSTS = {
    "localhost": 200,
    "LOCALHOST:1": 200,
    "127.0.0.1": 200,
    "127.0.0.1:8080": 200,
    "127.8.8.8": 200,
    "[::1]:99": 200,
    "demo.localhost": 200,
    "localhost.": 200,
    "evil.example": 403,
    "evil.example:80": 403,
    "127.0.0.1.evil.example": 403,
    "localhost.evil.example": 403,
    "10.0.0.1": 403,
    "[fe80::1]": 403,
    "localhost@evil.example": 403,
    "": 403,
}


@pytest.mark.fault("DNS rebinding: another site's name in `Host`", "403")
@pytest.mark.parametrize(("host", "status"), HOSTS.items())
def test_only_names_of_this_machine_are_answered(serve, host, status):
    """Loopback addresses and localhost with any port; every other name is refused, with the name in the text."""
    server = serve()
    answer = requests.get(server.url, headers={"Host": host}, timeout=PATIENCE_S)
    assert answer.status_code == status
    if status == 403:
        assert answer.json()["message"].startswith(f"`Host: {host}` is refused")


ORIGINS = {
    "http://localhost:8888": 200,
    "https://127.0.0.1": 200,
    "http://[::1]:1": 200,
    "http://evil.example": 403,
    "http://localhost.evil.example": 403,
    "null": 403,
    "file://": 403,
}


@pytest.mark.fault("a request from another site's web page", "403")
@pytest.mark.parametrize(("origin", "status"), ORIGINS.items())
def test_pages_of_other_sites_are_refused(serve, origin, status):
    """By their `Origin`; no answer allows a page to read it."""
    answer = requests.post(f"{serve().url}/view", json={}, headers={"Origin": origin}, timeout=PATIENCE_S)
    assert answer.status_code == (400 if status == 200 else 403)
    assert not [name for name in answer.headers if name.lower().startswith("access-control")]


def test_a_request_names_one_host(serve):
    """None and two are 400; HTTP/1.0 needs none."""
    server = serve()
    cases = {
        b"GET /v1 HTTP/1.1\r\n\r\n": b"400",
        GET + b"Host: localhost\r\n\r\n": b"400",
        b"GET /v1 HTTP/1.0\r\n\r\n": b"200",
    }
    for data, status in cases.items():
        with connected(server) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            assert received(connection)[9:12] == status


def test_a_node_answers_the_names_it_is_given(serve):
    """A name listed for it, and any address if it listens on all of them."""

    def status(server, host):
        url = f"http://127.0.0.1:{urlsplit(server.url).port}/v1"
        return requests.get(url, headers={"Host": host}, timeout=PATIENCE_S).status_code

    named = serve(host_names=["Ledger"])
    assert [status(named, host) for host in ("ledger:80", "127.0.0.1", "10.0.0.1", "other")] == [200, 200, 403, 403]
    everywhere = serve(host="0.0.0.0")
    assert [status(everywhere, host) for host in ("10.0.0.1", "[fe80::1]", "evil.example")] == [200, 200, 403]
