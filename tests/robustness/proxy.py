"""A proxy on loopback that changes the answers of an honest node.

The proxy understands just enough of HTTP to pass requests on one by one. What a test wants changed it says with a
function of the request and the honest answer; everything else passes through unchanged.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Change = Callable[
        ["ProxiedRequest", "ProxiedAnswer"], "ProxiedAnswer | bytes | Awaitable[ProxiedAnswer | bytes | None] | None"
    ]

_NOT_FORWARDED = {"host", "connection", "accept-encoding", "content-length", "authorization"}
_NOT_REPEATED = {"content-length", "transfer-encoding", "connection", "content-encoding"}
_MAX_LINE_BYTES = 2**26

DROP = b""
"""Returned by a change that closes the connection without an answer."""


class Last(bytes):
    """Raw bytes of an answer after which the connection is closed."""


@dataclass(frozen=True)
class ProxiedRequest:
    """One request as it arrived."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    number: int
    """1 for the first request that the proxy received."""

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(urlsplit(self.target).query).items()}


@dataclass(frozen=True)
class ProxiedAnswer:
    """One answer of the honest node; header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    def with_headers(self, **headers: str | None) -> ProxiedAnswer:
        """Return the answer with some headers replaced (``chain_id=...`` is ``x-aptos-chain-id``), None removes one."""
        changed = {**self.headers, **{f"x-aptos-{name.replace('_', '-')}": value for name, value in headers.items()}}
        return replace(self, headers={name: value for name, value in changed.items() if value is not None})

    def encoded(self) -> bytes:
        """Return the answer as it goes over the wire."""
        lines = [f"HTTP/1.1 {self.status} X"]
        lines += [f"{name}: {value}" for name, value in self.headers.items() if name not in _NOT_REPEATED]
        lines += [f"content-length: {len(self.body)}", "", ""]
        return "\r\n".join(lines).encode("latin-1", "replace") + self.body


@dataclass(eq=False)
class Proxy:
    """A server in a thread of its own that passes requests on to a node.

    Attributes
    ----------
    upstream : (str, int)
        Host and port of the node; a test may replace it at any time.
    change : callable or None
        Given the request and the honest answer, returns the answer to send, raw bytes to send as they are (`Last` if
        the connection ends with them), `DROP`, or None for the honest answer. It may be a coroutine function.
    requests : list of ProxiedRequest
        What arrived so far.
    """

    upstream: tuple[str, int]
    change: Change | None = None
    requests: list[ProxiedRequest] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        # asyncio refers to its tasks weakly: one that waits for ever, and whose client is gone, would be collected.
        self._serving: set[asyncio.Task[None] | None] = set()
        self._idle: dict[tuple[str, int], list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]] = {}
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="test-proxy", daemon=True)
        self._thread.start()
        self._ready.wait()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0, limit=_MAX_LINE_BYTES))
        self.port: int = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for _, writer in chain(*self._idle.values()):
            writer.close()
        # A connection that was being accepted makes a task more, and transports close some rounds after their task.
        while tasks := asyncio.all_tasks(self._loop):
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        for _ in range(5):
            self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._serving.add(task)
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
                while (answer := await self._answer(reader)) != DROP:
                    writer.write(answer)
                    await writer.drain()
                    if isinstance(answer, Last):
                        break
        finally:
            self._serving.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        line, headers = await _head(reader)
        method, target, _ = line.split(" ", 2)
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        request = ProxiedRequest(method, target, headers, body, len(self.requests) + 1)
        self.requests.append(request)
        honest = await self._ask(request)
        wanted = self.change(request, honest) if self.change else None
        if asyncio.iscoroutine(wanted):
            wanted = await wanted
        if wanted is None:
            wanted = honest
        return wanted.encoded() if isinstance(wanted, ProxiedAnswer) else wanted

    async def _ask(self, request: ProxiedRequest) -> ProxiedAnswer:
        host, port = place = self.upstream
        idle = self._idle.setdefault(place, [])
        lines = [f"{request.method} {request.target} HTTP/1.1", f"host: {host}:{port}"]
        lines += [f"{name}: {value}" for name, value in request.headers.items() if name not in _NOT_FORWARDED]
        if request.method == "POST":
            lines.append(f"content-length: {len(request.body)}")
        sent = "\r\n".join([*lines, "", ""]).encode("latin-1") + request.body
        while True:
            kept = bool(idle)
            reader, writer = idle.pop() if kept else await asyncio.open_connection(host, port, limit=_MAX_LINE_BYTES)
            try:
                writer.write(sent)
                await writer.drain()
                line, headers = await _head(reader)
                body = await _body(reader, headers)
            except (asyncio.IncompleteReadError, ConnectionError):
                writer.close()
                if not kept:
                    raise
                continue  # the node closed the connection, which was idle
            except BaseException:
                writer.close()
                raise
            if headers.get("connection") == "close":
                writer.close()
            else:
                idle.append((reader, writer))
            return ProxiedAnswer(int(line.split()[1]), headers, body)


async def _head(reader: asyncio.StreamReader) -> tuple[str, dict[str, str]]:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return first, {name.strip().lower(): value.strip() for name, _, value in pairs}


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding") != "chunked":
        return await reader.readexactly(int(headers.get("content-length", 0)))
    parts = []
    while size := int(await reader.readline(), 16):
        parts.append(await reader.readexactly(size))
        await reader.readline()
    await reader.readline()
    return b"".join(parts)
