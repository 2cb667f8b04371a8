"""Answers that never stall and never end: a request has a time limit as a whole, over both transports."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

import pytest

from toolkit.client._engine import BulkEngine
from toolkit.client._http import Request
from toolkit.client._transport import SessionTransport
from toolkit.errors import HopelessError, NodeUnreachable, ToolkitError

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
ENDLESS = {  # what is sent at once, what is then sent again and again, and what ends it in the end
    "continue": (b"", b"HTTP/1.1 100 Continue\r\n\r\n", HEAD + b"Content-Length: 2\r\n\r\n[]"),
    "status line": (b"HTTP/1.1 200 ", b"K", b"\r\nContent-Length: 2\r\n\r\n[]"),
    "header": (HEAD + b"X-Long: ", b"x", b"\r\nContent-Length: 2\r\n\r\n[]"),
    "body": (HEAD + b"Content-Length: 100000\r\n\r\n", b" ", b" " * 100_000),
    "chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n", b"0\r\n\r\n"),
    "trailers": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n0\r\n", b"X-T: 1\r\n", b"\r\n"),
}
PATIENCE_S = 0.25
GIVES_IN_S = 20
"""After so long the server ends its answer properly: a client without a limit would take it."""


class Dripping:
    """A server that sends a beginning and then a bit every 10 ms."""

    def __init__(self, begin, more, end):
        self._parts = begin, more, end
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"
        self.requests = 0

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                self._threads.append(threading.Thread(target=self._serve, args=(connection,), daemon=True))
                self._threads[-1].start()

    def _serve(self, connection):
        begin, more, end = self._parts
        with connection, contextlib.suppress(OSError):
            connection.recv(65536)
            self.requests += 1
            connection.sendall(begin)
            ends_at = time.monotonic() + GIVES_IN_S
            while time.monotonic() < ends_at:
                connection.sendall(more)
                time.sleep(0.01)
            connection.sendall(end)

    def close(self):
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for thread in self._threads:
            thread.join(30)


@pytest.fixture(params=ENDLESS)
def dripping(request):
    server = Dripping(*ENDLESS[request.param])
    yield server
    server.close()


@pytest.mark.fault(
    "an answer that trickles in without end (100 Continue, status line, headers, body, trailers)",
    "the request is abandoned after ten times `timeout_s`, and not retried",
)
def test_an_endless_answer_is_given_up(dripping):
    """No single wait for bytes is too long, yet the request ends and says what to do. libcurl does not count part of a line as progress."""
    given_up(dripping, BulkEngine)


@pytest.mark.parametrize("dripping", ["body", "chunks"], indirect=True)
def test_an_endless_body_is_given_up_without_pycurl(dripping):
    """Over `requests` the time of the body is limited, and that of the head is not."""
    given_up(dripping, SessionTransport)


def given_up(dripping, kind):
    transport = kind(timeout_s=PATIENCE_S)
    with pytest.raises(
        NodeUnreachable,
        match=r"(took longer than 2.5 s, ten times timeout_s|no response within 0.25 s); raise timeout_s",
    ):
        transport.send(Request("GET", dripping.url))
    transport.close()


@pytest.mark.parametrize("dripping", ["body", "chunks"], indirect=True)
def test_endless_answers_among_many_cost_one_request_each(dripping, monkeypatch):
    """Over the engine too, and no second attempt is made: it would take as long."""
    # On a busy machine an answer may begin late, and is rightly asked for again: long patience for its beginning.
    monkeypatch.setattr("toolkit.client._http.TOTAL_TIMEOUTS", 2)
    engine = BulkEngine(timeout_s=12 * PATIENCE_S, max_in_flight=4)
    outcomes = [outcome for _, outcome in engine.run([(n, Request("GET", dripping.url)) for n in range(4)])]
    engine.close()
    assert [type(outcome) for outcome in outcomes] == [HopelessError] * 4
    assert dripping.requests == 4


def test_closing_ends_a_request_that_waits(dripping):
    """A thread in the midst of an answer hears at once that its transport was closed."""
    transport, errors = BulkEngine(timeout_s=100), []

    def send():
        try:
            transport.send(Request("GET", dripping.url))
        except ToolkitError as error:
            errors.append(type(error).__name__)

    thread = threading.Thread(target=send)
    thread.start()
    deadline = time.monotonic() + 30
    while not dripping.requests and time.monotonic() < deadline:
        time.sleep(0.01)
    transport.close()
    thread.join(30)
    assert errors == ["ClosedError"]
