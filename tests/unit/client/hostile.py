"""A small HTTP server on loopback that misbehaves on demand, one way per path."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

HTML = b"<html><head><title>503</title></head><body><h1>No server is available</h1></body></html>"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HostileServer

    def setup(self) -> None:
        super().setup()
        self.server.opened(1)

    def finish(self) -> None:
        super().finish()
        self.server.opened(-1)

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.seen.append((self.command, self.path, dict(self.headers), body))
        name = self.path.split("?")[0].strip("/").split("/")[-1]
        getattr(self, f"serve_{name}", self.serve_fine)()

    def _answer(self, body: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for header, value in headers.items():
            self.send_header(header.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def serve_fine(self) -> None:
        self._answer(b'{"fine": true}', Content_Type="application/json")

    def serve_page(self) -> None:
        self._answer(HTML, 503, Content_Type="text/html")

    def serve_gzip(self) -> None:
        self._answer(gzip.compress(b'{"fine": true}'), Content_Encoding="gzip")

    def serve_bomb(self) -> None:
        self._answer(gzip.compress(b"\0" * 5_000_000), Content_Encoding="gzip")

    def serve_notgzip(self) -> None:
        self._answer(b"this is not gzip", Content_Encoding="gzip")

    def serve_large(self) -> None:
        self._answer(b"x" * 300_000)

    def serve_exact(self) -> None:
        self._answer(b"x" * 100_000)

    def serve_short(self) -> None:
        """Promise more than is sent."""
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"only this")
        self.close_connection = True

    def serve_cut(self) -> None:
        """Hang up without a word."""
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def serve_garbage(self) -> None:
        self.wfile.write(b"\x16\x03\x01 no HTTP at all\r\n\r\n")
        self.close_connection = True

    def serve_slow(self) -> None:
        self.server.released.wait(3)
        self.serve_fine()

    def serve_pause(self) -> None:
        """Send half an answer, then nothing."""
        self.send_response(200)
        self.send_header("Content-Length", "10")
        self.end_headers()
        self.wfile.write(b"half.")
        self.wfile.flush()
        self.server.released.wait(3)
        self.close_connection = True

    def serve_away(self) -> None:
        """Redirect to where the server was told, with method and body kept."""
        self._answer(b"", 307, Location=self.server.redirect_to)

    def serve_loop(self) -> None:
        self._answer(b"", 307, Location=self.path)

    def log_message(self, *_: object) -> None:
        pass


class HostileServer(ThreadingHTTPServer):
    """Keeps what it saw, and how many connections are open."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen: list[tuple[str, str, dict[str, str], bytes]] = []
        self.redirect_to = ""
        self.released = threading.Event()
        self.open = 0
        self._lock = threading.Lock()

    @property
    def port(self) -> int:
        return self.server_address[1]

    def url(self, where: str, *, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}/v1/{where}"

    def opened(self, change: int) -> None:
        with self._lock:
            self.open += change

    def open_after_settling(self) -> int:
        """Return the number of open connections, once it has not changed for a moment."""
        before = -1
        for _ in range(50):
            if before == self.open:
                break
            before = self.open
            time.sleep(0.05)
        return self.open

    def handle_error(self, *_: object) -> None:
        """A client that hangs up is part of the game."""


@contextmanager
def hostile_server() -> Iterator[HostileServer]:
    """Serve in a thread while the block runs."""
    server = HostileServer()
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
