"""Small servers on loopback for both roads: one that misbehaves by path, plain or TLS, and one that is a forward proxy."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import select
import socket
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

FINE = b'{"fine": true}'
HTML_429 = b"<html><head><title>429</title></head><body><h1>Slow down</h1></body></html>"
LATIN = '{"name": "caf\u00e9"}'.encode("latin-1")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def setup(self) -> None:
        super().setup()
        self.server.count(1)

    def finish(self) -> None:
        with contextlib.suppress(OSError):
            super().finish()
        self.server.count(-1)

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.seen.append((self.command, self.path, dict(self.headers), body))
        parts = urlsplit(self.path)
        name = parts.path.strip("/").split("/")[-1]
        self.query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        getattr(self, f"serve_{name}", self.serve_fine)()

    def answer(self, body: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for header, value in headers.items():
            self.send_header(header.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def serve_fine(self) -> None:
        self.answer(FINE, Content_Type="application/json")

    def serve_status(self) -> None:
        """Answer with the status asked for, for good or for the first times."""
        with self.server.lock:
            left = self.server.failures_left = self.server.failures_left - 1
        if left >= 0:
            headers = {"Retry_After": self.query["after"]} if "after" in self.query else {}
            self.answer(self.query.get("text", "no").encode(), int(self.query["code"]), **headers)
        else:
            self.serve_fine()

    def serve_redirect(self) -> None:
        self.answer(b"moved", int(self.query["code"]), Location=self.query["to"])

    def serve_gzip(self) -> None:
        self.answer(gzip.compress(FINE), Content_Encoding="gzip")

    def serve_encoded(self) -> None:
        """Answer with the encoding and the bytes that a test has set."""
        encoding, body = self.server.body
        self.answer(body, Content_Encoding=encoding)

    def serve_badgzip(self) -> None:
        self.answer(b"this is not gzip", Content_Encoding="gzip")

    def serve_brokengzip(self) -> None:
        """Gzip whose middle is damaged."""
        whole = bytearray(gzip.compress(bytes(range(256)) * 40))
        whole[20:60] = b"\xff" * 40
        self.answer(bytes(whole), Content_Encoding="gzip")

    def serve_bomb(self) -> None:
        self.answer(gzip.compress(b"\0" * 5_000_000), Content_Encoding="gzip")

    def serve_large(self) -> None:
        self.answer(b"x" * 300_000)

    def serve_exact(self) -> None:
        self.answer(b"x" * 100_000)

    def serve_endless(self) -> None:
        """Send chunks until the client has had enough (or 50 MB are out)."""
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with contextlib.suppress(OSError):
            for _ in range(500):
                self.wfile.write(b"186a0\r\n" + b"x" * 100_000 + b"\r\n")
        self.close_connection = True

    def serve_chunked(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in (FINE[:5], FINE[5:9], FINE[9:]):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.flush()
        self.wfile.write(b"0\r\nX-Trailer: late\r\n\r\n")

    def serve_cutchunk(self) -> None:
        """Stop amid a chunk."""
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"64\r\nonly this")
        self.close_connection = True

    def serve_short(self) -> None:
        """Promise more than is sent."""
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"only this")
        self.close_connection = True

    def serve_long(self) -> None:
        """Send more than promised, shaped like another answer."""
        extra = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(FINE)
        self.wfile.write(head + FINE + extra)

    def serve_cut(self) -> None:
        """Hang up without a word."""
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def serve_garbage(self) -> None:
        self.wfile.write(b"\x16\x03\x01 no HTTP at all\r\n\r\n")
        self.close_connection = True

    def serve_stall(self) -> None:
        """Take the request and say nothing."""
        self.server.released.wait(60)
        self.close_connection = True

    def serve_pause(self) -> None:
        """Send half an answer, then nothing."""
        self.send_response(200)
        self.send_header("Content-Length", "10")
        self.end_headers()
        self.wfile.write(b"half.")
        self.wfile.flush()
        self.server.released.wait(60)
        self.close_connection = True

    def serve_drip(self) -> None:
        """Send slowly, but never stop for long."""
        self.send_response(200)
        self.send_header("Content-Length", "12")
        self.end_headers()
        for _ in range(12):
            time.sleep(0.5)
            self.wfile.write(b"x")
            self.wfile.flush()

    def serve_wait(self) -> None:
        """Answer after as many seconds as the query says."""
        time.sleep(min(float(self.query["s"]), 1.0))
        self.serve_fine()

    def serve_page(self) -> None:
        self.answer(HTML_429, 429, Content_Type="text/html", Retry_After="7")

    def serve_charset(self) -> None:
        self.answer(LATIN, Content_Type="application/json; charset=utf-8")

    def serve_twice(self) -> None:
        """Send one header twice, names in odd case."""
        self.send_response(200)
        self.send_header("x-ODD", "one")
        self.send_header("X-odd", "two")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def serve_cookie(self) -> None:
        self.answer(FINE, Set_Cookie="tracker=1; Path=/")

    def serve_hangup(self) -> None:
        """Answer as if the connection were kept, and close it while it idles."""
        self.serve_fine()
        self.wfile.flush()
        self.close_connection = True

    def serve_echo(self) -> None:
        told = {"method": self.command, "headers": dict(self.headers), "path": self.path}
        self.answer(json.dumps(told).encode())

    def log_message(self, *_: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    """Keeps what it saw, how many connections are open and how many there ever were."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self,
        handler: type[BaseHTTPRequestHandler] = _Handler,
        tls: ssl.SSLContext | None = None,
        at: tuple[str, int] = ("127.0.0.1", 0),
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in at[0] else socket.AF_INET
        super().__init__(at, handler)
        self.tls = tls
        self.seen: list[tuple[str, str, dict[str, str], bytes]] = []
        self.released = threading.Event()
        self.lock = threading.Lock()
        self.open = self.connections = self.most_open = 0
        self.failures_left = 0
        self.body = "identity", b""

    @property
    def port(self) -> int:
        return self.server_address[1]

    def url(self, where: str, *, host: str = "127.0.0.1", **query: object) -> str:
        text = "&".join(f"{key}={quote(str(value), safe='')}" for key, value in query.items())
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}/v1/{where}" + (f"?{text}" if text else "")

    def authorizations(self) -> list[str | None]:
        return [headers.get("Authorization") for _, _, headers, _ in self.seen]

    def count(self, change: int) -> None:
        with self.lock:
            self.open += change
            self.connections += max(change, 0)
            self.most_open = max(self.most_open, self.open)

    def settled(self, most: int, seconds: float = 30.0) -> int:
        """Return the number of open connections once it is at most `most`, or after the time is up."""
        end = time.monotonic() + seconds
        while self.open > most and time.monotonic() < end:
            time.sleep(0.01)
        return self.open

    def finish_request(self, request: socket.socket, client_address: object) -> None:
        if not self.tls:
            super().finish_request(request, client_address)  # type: ignore[arg-type]
            return
        request.settimeout(30)
        with contextlib.suppress(OSError), self.tls.wrap_socket(request, server_side=True) as wrapped:
            super().finish_request(wrapped, client_address)  # type: ignore[arg-type]

    def handle_error(self, *_: object) -> None:
        """A client that hangs up is part of the game."""


class _ProxyHandler(_Handler):
    """Forwards absolute-form requests, and tunnels CONNECT."""

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.seen.append((self.command, self.path, dict(self.headers), body))
        parts = urlsplit(self.path)
        assert parts.hostname == "127.0.0.1"
        onward = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
        headers = {key: value for key, value in self.headers.items() if not key.lower().startswith("proxy-")}
        onward.request(self.command, f"{parts.path}?{parts.query}", body or None, headers)
        answer = onward.getresponse()
        self.answer(answer.read(), answer.status, Via="1.1 test")
        onward.close()

    def do_CONNECT(self) -> None:
        self.server.seen.append(("CONNECT", self.path, dict(self.headers), b""))
        host, _, port = self.path.partition(":")
        if host != "127.0.0.1" or self.server.refuses:
            self.send_error(403)
            return
        with socket.create_connection((host, int(port)), timeout=30) as onward:
            self.send_response(200)
            self.end_headers()
            pair = {self.connection: onward, onward: self.connection}
            while ready := select.select(list(pair), [], [], 5)[0]:
                for side in ready:
                    data = side.recv(65536)
                    while data and getattr(side, "pending", int)():  # of TLS: select does not see what is decrypted
                        data += side.recv(65536)
                    if not data:
                        self.close_connection = True
                        return
                    pair[side].sendall(data)


class Proxy(Server):
    """A forward proxy that reaches 127.0.0.1 only."""

    refuses = False

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(_ProxyHandler, tls)


@contextlib.contextmanager
def serving(server: Server) -> Iterator[Server]:
    """Serve in a thread while the block runs."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        thread.join()
        server.server_close()


def dead_port() -> int:
    """Return a loopback port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
