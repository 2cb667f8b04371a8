"""The server of a node, which checks connections and requests, injects faults, and sends responses.

`start` and `serve` run a node in a thread, served by uvicorn on loopback.

A page from another site can make its host name resolve to 127.0.0.1 (DNS rebinding); the browser then sends that name
in `Host`. Other requests from such a page name the site in `Origin`. `Hosts` rejects both.

uvicorn parses HTTP with httptools, which limits neither the size of a request head nor its time, or with h11, which
limits only the size. `Bounds` adds the same limits to both.
"""

from __future__ import annotations

import asyncio
import atexit
import math
import socket
import time
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from ipaddress import IPv4Address, IPv6Address, ip_address
from threading import Thread
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from toolkit.embedded.http._dispatch import body_bytes, header_problem, response, routed
from toolkit.embedded.http._faults import Faults
from toolkit.embedded.http._messages import ApiError, HttpAnswer, framework_error
from toolkit.embedded.http._node import EmbeddedNode, Limits, Postponed
from toolkit.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterator, MutableMapping, Sequence

    from toolkit.embedded._ledger import Ledger

    Scope = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
    Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


# Requests use few host names; a hostile client must not fill the memory with others.
_MAX_KNOWN_HOSTS = 64
# Characters of a name in a message; longer names are truncated, so that a hostile request does not cause a large
# response.
_MAX_SHOWN = 80
# After an error, further data from the client is read and dropped for this long: closing a socket with unread data
# resets the connection, and the client might lose the answer.
_LINGER_S = 1.0
_LINGER_BYTES = 64 * 1024 * 1024
# Requests of one connection that wait while another is answered; browsers and HTTP libraries do not pipeline at all.
_MAX_PIPELINED = 64
IDLE_TIMEOUT_S = 75
"""Seconds after which an idle connection is closed; this is the default of nginx."""


class Hosts:
    """The `Host` and `Origin` headers that a node accepts.

    Loopback addresses, ``localhost`` and the address that the node listens on are always accepted. A node that listens
    on all addresses also accepts any IP address, because no DNS is involved.

    Parameters
    ----------
    bound : str
        Address or name that the node listens on.
    names : collection of str, optional
        Other host names to accept, without a port.
    """

    def __init__(self, bound: str, names: Collection[str] = ()) -> None:
        self._names = {"localhost", bound.lower(), *(name.lower() for name in names)}
        address = _address(bound)
        self._any_address = address is not None and address.is_unspecified
        self._knows = lru_cache(_MAX_KNOWN_HOSTS)(self._is_known)

    def check(self, headers: Sequence[tuple[bytes, bytes]], http_version: str) -> None:
        """Raise `ApiError` if a request must be rejected: 400 without exactly one `Host`, 403 for another site's name.

        Parameters
        ----------
        headers : sequence of (bytes, bytes)
            Names in lower case and values, as in ASGI.
        http_version : str
            ``1.0`` does not require `Host`.
        """
        hosts = [value for name, value in headers if name == b"host"]
        if len(hosts) > 1 or (not hosts and http_version != "1.0"):
            raise framework_error("expected one `Host` header")
        for host in hosts:
            if not self._knows(b"//" + host):
                raise _refused("Host", host, "requests for loopback addresses, localhost and the names in host_names")
        for name, value in headers:
            if name == b"origin" and not (value.startswith((b"http://", b"https://")) and self._knows(value)):
                raise _refused("Origin", value, "pages from this machine")

    def _is_known(self, url: bytes) -> bool:
        """Return True if requests for the host of a URL are accepted."""
        try:
            host = (urlsplit(url.decode("latin-1")).hostname or "").removesuffix(".")
        except ValueError:  # such as a bracket that is not closed
            return False
        if host in self._names or host.endswith(".localhost"):
            return True
        address = _address(host)
        return address is not None and (address.is_loopback or self._any_address)


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _refused(name: str, value: bytes, answered: str) -> ApiError:
    shown = value[:_MAX_SHOWN].decode("latin-1")
    return framework_error(f"`{name}: {shown}` is refused: this embedded node accepts only {answered}", status=403)


class Bounds(asyncio.Protocol):
    """Limits of one connection, to be combined with a protocol class of uvicorn; see `Server`."""

    limits: Limits
    # The open connections of the node, oldest first.
    open: dict[Bounds, None]
    # Attributes of both protocol classes of uvicorn.
    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    cycle: Any
    _head_bytes = 0
    _deadline: asyncio.TimerHandle | None = None
    _lingers = False
    _dropped_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for a request; above the connection limit, close the oldest connection that waits for its client."""
        super().connection_made(transport)
        self.open[self] = None
        self._expect_within(self.limits.header_timeout_s)
        if len(self.open) > self.limits.connections:
            # The new connection waits too, so there is always one to close; an answer in progress is not interrupted.
            next(one for one in self.open if one.waits())._abort()  # noqa: SLF001 - of this class

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self.open.pop(self, None)
        self._expect_within(None)
        super().connection_lost(exc)

    def waits(self) -> bool:
        """Return True if the client must act next: send a request or read its response."""
        return self._deadline is not None or not self._is_answering() or bool(self.cycle.more_body)

    def data_received(self, data: bytes) -> None:
        """Pass the data to the parser; reject a head that is longer than its limit."""
        if self._lingers:
            self._dropped_bytes += len(data)
            if self._dropped_bytes > _LINGER_BYTES:
                self._abort()
            return
        before = self.cycle
        in_body = self._is_answering() and before.more_body
        super().data_received(data)
        if len(getattr(self, "pipeline", ())) > _MAX_PIPELINED:
            self._abort()
            return
        if in_body or self.cycle is not before:
            self._head_bytes = 0
            self._expect_within(None)
            return
        if not self._head_bytes and not self._is_answering():
            self._expect_within(self.limits.header_timeout_s)
        self._head_bytes += len(data)
        if self._head_bytes < self.limits.header_bytes or self.transport.is_closing():
            return
        if self._is_answering():
            self._abort()  # an error cannot be sent in the middle of another answer
        else:
            self._refuse_head()

    def on_response_complete(self) -> None:
        """Wait for the next request, or close the connection if the response preceded the end of the request."""
        answered = self.cycle
        self._head_bytes = 0
        super().on_response_complete()  # type: ignore[misc]  # a method of uvicorn's classes
        is_last = self.cycle is answered and answered.response_complete
        if is_last and answered.more_body and not self.transport.is_closing():
            self._linger()

    def pause_writing(self) -> None:
        """Limit the time in which the client must read its response."""
        self._expect_within(self.limits.body_timeout_s)
        super().pause_writing()

    def resume_writing(self) -> None:
        """Continue to send."""
        self._expect_within(None)
        super().resume_writing()

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _expect_within(self, seconds: float | None) -> None:
        """Close the connection if the client does not act within a number of seconds; None cancels the deadline."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self._abort)

    def _abort(self) -> None:
        """Close immediately, without sending the rest of the response."""
        self.open.pop(self, None)
        self.transport.abort()

    def _refuse_head(self) -> None:
        answer = header_problem(self.limits).answer()
        head = (
            "HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n"
            f"content-type: {answer.media_type}\r\ncontent-length: {len(answer.body)}\r\n\r\n"
        )
        self.transport.write(head.encode() + answer.body)
        self._linger()

    def _linger(self) -> None:
        """Stop sending, drop received data, and close when the client closes or after `_LINGER_S` seconds."""
        self._lingers = True
        self._unset_keepalive_if_required()  # type: ignore[attr-defined]  # a method of uvicorn's classes
        self._expect_within(_LINGER_S)
        with suppress(OSError, RuntimeError):  # the client may have closed the connection
            self.transport.write_eof()


# Number of pieces of a slow answer.
_PIECES = 10


class NodeApp:
    """The ASGI application of a node under ``/v1``, with latency and faults.

    The body of a request is read completely before the request is answered, so that the connection can be reused.

    Parameters
    ----------
    node : EmbeddedNode
        The node.
    faults : Faults
        Latency and faults.
    hosts : Hosts
        The hosts and origins that the node accepts.
    """

    def __init__(self, node: EmbeddedNode, faults: Faults, hosts: Hosts) -> None:
        self._node = node
        self._faults = faults
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or inject a fault."""
        kind = None
        try:
            body = await self._checked_body(scope, receive)
        except TimeoutError:
            waited = f"within {self._node.limits.body_timeout_s:g} s"
            answer = framework_error(f"the request body did not arrive {waited}", status=408).answer()
        except ApiError as error:
            answer = error.answer()
        else:
            await self._faults.wait()
            fault = self._faults.draw(scope["path"].removeprefix("/v1"))
            refusal = None
            if fault is not None:
                kind = fault.kind
                refusal = self._faults.answer(fault)
            if kind == "hang":
                while (await receive())["type"] != "http.disconnect":
                    pass
                return
            answer = refusal or await self._answer(scope, body)
        status, headers, body = response(self._node, answer)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        if kind == "cut":  # the server closes the connection, because the end is missing
            await send({"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True})
            return
        if kind == "slow":
            size = max(1, math.ceil(len(body) / _PIECES))
            for start in range(0, len(body), size):
                await asyncio.sleep(1 / _PIECES)
                await send({"type": "http.response.body", "body": body[start : start + size], "more_body": True})
            body = b""
        await send({"type": "http.response.body", "body": body})

    async def _checked_body(self, scope: Scope, receive: Receive) -> bytes:
        """Return the body of a request, or raise `ApiError` if the request must be rejected."""
        length = body_bytes(self._node.limits, len(scope["raw_path"]) + len(scope["query_string"]), scope["headers"])
        self._hosts.check(scope["headers"], scope["http_version"])
        pieces: list[bytes] = []
        more = length > 0
        async with asyncio.timeout(self._node.limits.body_timeout_s):
            while more:
                message = await receive()
                pieces.append(message.get("body", b""))
                more = message.get("more_body", False)
        return b"".join(pieces)

    async def _answer(self, scope: Scope, body: bytes) -> HttpAnswer:
        target = scope["path"], scope["query_string"].decode("latin-1")
        answer = partial(routed, self._node, scope["method"], target, scope["headers"], body)
        try:
            return answer()
        except Postponed:
            return await asyncio.get_running_loop().run_in_executor(self._node.workers, partial(answer, in_worker=True))


_LOOPBACK = "127.0.0.1"
_START_TIMEOUT_S = 10.0  # a start takes some 10 ms; a busy machine may need seconds
_START_CHECK_S = 0.005
# Requests in progress are cut off, so only a blocked handler takes longer; its thread ends with the process.
_STOP_TIMEOUT_S = 5.0


class Server:
    """A running node; it stops on `stop`, at the end of a ``with`` block, or when the interpreter exits.

    Servers are created by `start`.

    Attributes
    ----------
    url : str
        Base URL, which ends in ``/v1``.
    faults : Faults
        Latency and faults, which can be changed while the node runs.
    node : EmbeddedNode
        The running node.

    Raises
    ------
    InputError
        If the node cannot listen on the address and port.

    Examples
    --------
    >>> from toolkit import embedded
    >>> with embedded.start(embedded.Ledger()) as server:
    ...     server.url.endswith("/v1")
    True
    """

    def __init__(self, node: EmbeddedNode, *, faults: Faults, host: str, port: int) -> None:
        self.node = node
        self.faults = faults
        self._socket = _listen(host, port)
        bound_port = self._socket.getsockname()[1]
        shown_host = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown_host}:{bound_port}/v1"
        bounds = {"limits": node.limits, "open": {}}
        self._protocol: type[Bounds] = type("BoundedProtocol", (Bounds, AutoHTTPProtocol), bounds)
        config = uvicorn.Config(
            NodeApp(node, faults, Hosts(host, node.host_names)),
            http=self._protocol,
            # Larger than the node's own limit, which must apply first.
            h11_max_incomplete_event_size=2 * node.limits.header_bytes,
            ws="none",
            log_config=None,  # the program configures logging, and stdout may be missing
            log_level="critical",
            access_log=False,
            lifespan="off",
            timeout_keep_alive=IDLE_TIMEOUT_S,
        )
        self._server = uvicorn.Server(config)
        self._thread = Thread(target=self._server.run, args=([self._socket],), name="embedded-node", daemon=True)
        self._thread.start()
        end = time.monotonic() + _START_TIMEOUT_S
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > end:
                self._socket.close()
                raise InputError(f"the embedded node did not start on {self.url} within {_START_TIMEOUT_S:g} s")
            time.sleep(_START_CHECK_S)
        atexit.register(self.stop)

    def __repr__(self) -> str:
        return f"<Server {self.url} of {self.node.ledger!r}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop the node and free the port; does nothing if the node has stopped."""
        atexit.unregister(self.stop)
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join(_STOP_TIMEOUT_S)
        self.node.workers.shutdown(wait=False, cancel_futures=True)
        self._socket.close()


def start(
    ledger: Ledger,
    *,
    port: int = 0,
    host: str = _LOOPBACK,
    brand: str = "APTOS",
    limits: Limits | None = None,
    faults: Faults | None = None,
    host_names: Collection[str] = (),
) -> Server:
    """Serve a ledger over HTTP, in a separate thread.

    Parameters
    ----------
    ledger : Ledger
        The ledger; it may grow while it is served.
    port : int, default 0
        Port to listen on; 0 selects a free port.
    host : str, default "127.0.0.1"
        Address to listen on. Any address other than loopback exposes the node to the network.
    brand : str, default "APTOS"
        Part of the names of ledger headers.
    limits : Limits, optional
        Limits on requests.
    faults : Faults, optional
        Latency and faults, for tests and courses.
    host_names : collection of str, optional
        Host names, without a port, to accept in addition to ``localhost``, loopback addresses and `host`; for example
        the name of a container. Requests for other names are rejected with status 403.

    Returns
    -------
    Server
        Stop it with ``stop()``; it also stops when the interpreter exits.

    Raises
    ------
    InputError
        If the node cannot listen on the address and port, or the brand is not valid.

    Examples
    --------
    >>> from toolkit import embedded
    >>> with embedded.start(embedded.Ledger()) as server:
    ...     server.url.endswith("/v1")
    True
    """
    node = EmbeddedNode(ledger, brand=brand, limits=limits, host_names=host_names)
    return Server(node, faults=faults or Faults(), host=host, port=port)


@contextmanager
def serve(
    ledger: Ledger,
    *,
    port: int = 0,
    host: str = _LOOPBACK,
    brand: str = "APTOS",
    limits: Limits | None = None,
    faults: Faults | None = None,
    host_names: Collection[str] = (),
) -> Iterator[str]:
    """Serve a ledger over HTTP during a ``with`` block.

    Parameters
    ----------
    ledger, port, host, brand, limits, faults, host_names
        See `start`.

    Yields
    ------
    str
        Base URL, which ends in ``/v1``.

    Raises
    ------
    InputError
        If the node cannot listen on the address and port, or the brand is not valid.

    Examples
    --------
    >>> from toolkit import embedded
    >>> with embedded.serve(embedded.Ledger()) as url:
    ...     url.startswith("http://127.0.0.1:")
    True
    """
    with start(ledger, port=port, host=host, brand=brand, limits=limits, faults=faults, host_names=host_names) as node:
        yield node.url


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise InputError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
    listener.set_inheritable(False)
    return listener
