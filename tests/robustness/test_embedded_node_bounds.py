"""What the embedded node refuses: large bodies, other sites' requests; with each of uvicorn's two HTTP parsers."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import pytest
import requests
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from toolkit import embedded

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
    real = uvicorn.Config
    monkeypatch.setattr(uvicorn, "Config", lambda app, **options: real(app, http=request.param, **options))
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
            flood(connection, endless[3:], 8 << 20)
    assert serves(server)


def test_a_large_body_is_refused_while_the_client_still_sends(serve):
    """The client gets its 413 although 20 MB are on their way."""
    server = serve()
    headers = {"Content-Type": "application/json"}
    for _ in range(5):
        answer = requests.post(f"{server.url}/view", data=b"x" * 20_000_000, headers=headers, timeout=PATIENCE_S)
        assert (answer.status_code, answer.json()["message"]) == (413, "payload too large")
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
