"""The two servers with fixed answers: nginx without latency, and asyncio with it; each in processes of its own.

``python servers.py DELAY_MS`` serves with latency and prints its port.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from answers import ANSWERS, LEDGER

_NGINX = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
  access_log off; default_type application/json; keepalive_requests 100000000; server_tokens off;
  client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{
    listen 127.0.0.1:{port} backlog=512;
{headers}
{locations}
  }}
}}
"""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _configuration(folder: str, port: int) -> str:
    headers = "\n".join(f"    add_header {name} {value};" for name, value in LEDGER.items())
    locations = "\n".join(f"    location = {path} {{ return 200 '{body}'; }}" for path, body in ANSWERS.items())
    return _NGINX.format(folder=folder, port=port, headers=headers, locations=locations)


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


@contextlib.contextmanager
def nginx():
    """Run nginx with a configuration of its own and give its port."""
    with tempfile.TemporaryDirectory() as folder:
        port = _free_port()
        path = Path(folder) / "nginx.conf"
        path.write_text(_configuration(folder, port))
        with subprocess.Popen(["nginx", "-p", folder, "-c", path, "-e", f"{folder}/error.log"]) as server:
            try:
                for _ in range(100):
                    if server.poll() is not None or _answers(port):
                        break
                    time.sleep(0.05)
                if server.poll() is not None:
                    raise SystemExit("nginx did not start: " + (Path(folder) / "error.log").read_text()[-500:])
                yield port
            finally:
                server.terminate()


@contextlib.contextmanager
def slow(delay_ms: int):
    """Run the server with latency and give its port."""
    command = [sys.executable, __file__, str(delay_ms)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield int(server.stdout.readline())
        finally:
            server.terminate()


def _whole(body: str) -> bytes:
    headers = {"Content-Type": "application/json", "Content-Length": str(len(body))} | LEDGER
    head = "HTTP/1.1 200 OK\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{head}\r\n{body}".encode()


class _Fixed(asyncio.Protocol):
    """Reads a request as far as its path and length, and answers after the delay; unknown paths get 404."""

    def __init__(self, delay_s: float) -> None:
        self.delay_s, self.buffer = delay_s, b""
        self.answers = {path.encode(): _whole(body) for path, body in ANSWERS.items()}

    def connection_made(self, transport):
        self.transport = transport
        self.call_later = asyncio.get_running_loop().call_later

    def data_received(self, data):
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end]
            _, found, tail = head.lower().partition(b"content-length:")
            whole = end + 4 + (int(tail.split(b"\r\n", 1)[0]) if found else 0)
            if len(self.buffer) < whole:
                return
            self.buffer = self.buffer[whole:]
            path = head.split(b" ", 2)[1].partition(b"?")[0]
            answer = self.answers.get(path, b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            self.call_later(self.delay_s, self.answer, answer)

    def answer(self, answer):
        if not self.transport.is_closing():
            self.transport.write(answer)


async def _serve(delay_s: float) -> None:
    server = await asyncio.get_running_loop().create_server(partial(_Fixed, delay_s), "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    try:
        from uvloop import run
    except ImportError:
        from asyncio import run
    run(_serve(float(sys.argv[1]) / 1000))
