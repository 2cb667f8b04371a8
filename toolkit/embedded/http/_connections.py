"""Checks of connections: the hosts and origins that are answered, and limits on the size, time and number of requests.

A page of another site can let its host name resolve to 127.0.0.1 (DNS rebinding); the browser then sends that name in
`Host`. Other requests of such a page carry the site in `Origin`. `Hosts` rejects both.

uvicorn parses HTTP with httptools, which limits neither the size of a request head nor its time, or with h11, which
limits the size only. `Bounds` precedes either parser, so that both have the same limits.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from toolkit.embedded.http._messages import framework_error

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from ipaddress import IPv4Address, IPv6Address

    from toolkit.embedded.http._messages import ApiError
    from toolkit.embedded.http._node import Limits


_AUTHORITY = re.compile(r"(?:\[(?P<v6>[0-9a-f:.]{2,45})\]|(?P<name>[a-z0-9._-]{1,253}))(?::\d{0,5})?", re.ASCII)
_ORIGIN = re.compile(r"https?://(?P<authority>[^/]+)")
_CACHED = 64
_SHOWN = 80


# Bytes passed to the parser at once, so that limits are checked between the requests of a long read.
_PIECE = 8 * 1024
# Maximum number of requests that wait while another is answered.
_MAX_PIPELINED = 64
# After an error, further data from the client is read and dropped for this long: closing a socket with unread data
# resets the connection, and the client might lose the answer.
_LINGER_S = 1.0
_LINGER_BYTES = 64 * 1024 * 1024
IDLE_TIMEOUT_S = 75
"""Seconds after which a connection without a request is closed."""
_CHECKS_PER_TIMEOUT = 4


class Hosts:
    """The `Host` and `Origin` headers that a node answers.

    Loopback addresses, ``localhost`` and the address that the node listens on are always answered. A node that listens
    on all addresses also answers any IP address, because no DNS is involved.

    Parameters
    ----------
    bound : str
        Address or name that the node listens on.
    names : collection of str, optional
        Further host names to answer, without a port.
    """

    def __init__(self, bound: str, names: Collection[str] = ()) -> None:
        self._names = {"localhost", bound.lower(), *(name.lower() for name in names)}
        address = _address(bound)
        self._any_address = address is not None and address.is_unspecified
        self.knows = lru_cache(_CACHED)(self._knows)

    def problem(self, headers: Sequence[tuple[bytes, bytes]], http_version: str) -> ApiError | None:
        """Return the error of a request that is refused, or None.

        Parameters
        ----------
        headers : sequence of (bytes, bytes)
            Names in lower case and values, as in ASGI.
        http_version : str
            ``1.0`` does not require `Host`.

        Returns
        -------
        ApiError or None
            400 without exactly one `Host`; 403 for the name of another site.
        """
        hosts = [value for name, value in headers if name == b"host"]
        if len(hosts) != 1 and (hosts or http_version != "1.0"):
            return framework_error("expected one `Host` header")
        for host in hosts:
            if not self.knows(host):
                return _refused("Host", host, "requests for loopback addresses, localhost and the names it was given")
        for name, value in headers:
            if name == b"origin" and not self._is_own_origin(value):
                return _refused("Origin", value, "pages of this machine")
        return None

    def _is_own_origin(self, value: bytes) -> bool:
        match = _ORIGIN.fullmatch(value.decode("latin-1").lower())
        return match is not None and self.knows(match["authority"].encode("latin-1"))

    def _knows(self, authority: bytes) -> bool:
        match = _AUTHORITY.fullmatch(authority.decode("latin-1").strip().lower())
        if match is None:
            return False
        host = match["v6"] or match["name"].removesuffix(".")
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
    shown = value[:_SHOWN].decode("latin-1")
    message = f"`{name}: {shown}` is refused: this embedded node answers {answered} only"
    return framework_error(message, status=403)


class Connections:
    """The open connections of a node; closes those that time out, and the longest waiting one if there are too many.

    Parameters
    ----------
    limits : Limits
        Maximum number of connections and their timeouts.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._max_open = min(limits.connections, _max_descriptors() // 2)
        self._open: set[Bounds] = set()
        self._interval = min(limits.header_timeout_s, limits.body_timeout_s, _LINGER_S) / _CHECKS_PER_TIMEOUT
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._open)

    def opened(self, connection: Bounds) -> None:
        """Add a connection; if there are too many, close the one that has waited longest for its client."""
        self._open.add(connection)
        if len(self._open) > self._max_open:
            # The new connection waits too, so there is always one to close; an answer in progress is not interrupted.
            min((one for one in self._open if one.waits()), key=lambda one: one.waiting_since).abort()
        if self._timer is None:
            self._timer = connection.loop.call_later(self._interval, self._close_overdue, connection.loop)

    def closed(self, connection: Bounds) -> None:
        """Remove a connection."""
        self._open.discard(connection)

    def _close_overdue(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for connection in [one for one in self._open if one.is_overdue(now)]:
            connection.abort()
        self._timer = loop.call_later(self._interval, self._close_overdue, loop) if self._open else None


class Bounds(asyncio.Protocol):
    """Limits of one connection, to be combined with a protocol class of uvicorn; see `bounded_protocol`."""

    registry: Connections
    # Attributes of both protocol classes of uvicorn.
    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    cycle: Any
    waiting_since = 0.0
    _head_bytes = 0
    _head_since: float | None = None
    _blocked_since: float | None = None
    _lingers_since: float | None = None
    _dropped_bytes = 0

    def waits(self) -> bool:
        """Return True if the client must act next: send a request or read its answer."""
        return not self._is_answering() or self.cycle.more_body or self._blocked_since is not None

    def is_overdue(self, now: float) -> bool:
        """Return True if the client has exceeded a time limit."""
        limits = self.registry.limits
        if self._lingers_since is not None:
            return now - self._lingers_since > _LINGER_S
        if self._blocked_since is not None and now - self._blocked_since > limits.body_timeout_s:
            return True
        if self._is_answering():
            return False  # the application limits the time of a body
        if self._head_since is not None:
            return now - max(self._head_since, self.waiting_since) > limits.header_timeout_s
        return self.cycle is None and now - self.waiting_since > IDLE_TIMEOUT_S

    def abort(self) -> None:
        """Close immediately, without sending the rest of the answer."""
        self.registry.closed(self)
        self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start waiting for a request."""
        super().connection_made(transport)
        self.waiting_since = self.loop.time()
        self.registry.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection."""
        self.registry.closed(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Pass the data to the parser in small pieces; reject a head that is too long."""
        if self._lingers_since is not None:
            self._dropped_bytes += len(data)
            if self._dropped_bytes > _LINGER_BYTES:
                self.abort()
            return
        start = 0
        while start < len(data) and not self.transport.is_closing() and self._lingers_since is None:
            # Never past the limit: a head that ends beyond it would be complete, and answered.
            end = start + min(_PIECE, self.registry.limits.header_bytes - self._head_bytes)
            self._parse(data[start:end])
            start = end

    def on_response_complete(self) -> None:
        """Wait for the next request, or close the connection if the answer preceded the end of the request."""
        answered, self._head_bytes = self.cycle, 0
        self.waiting_since = self.loop.time()
        super().on_response_complete()  # type: ignore[misc]  # a method of uvicorn's classes
        if self.cycle is not answered:  # h11 began a request it had buffered
            self._head_since = None
        elif answered.response_complete and answered.more_body and not self.transport.is_closing():
            self._linger()

    def pause_writing(self) -> None:
        """Record the time since when the client does not read."""
        self._blocked_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Record that the client reads again."""
        self._blocked_since = None
        super().resume_writing()

    def shutdown(self) -> None:
        """Close the connection when the server stops."""
        if self._lingers_since is not None:
            self.abort()
        else:
            super().shutdown()  # type: ignore[misc]  # a method of uvicorn's classes

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _parse(self, piece: bytes) -> None:
        before = self.cycle
        in_body = self._is_answering() and before.more_body
        super().data_received(piece)
        if in_body or self.cycle is not before:
            self._head_bytes, self._head_since = 0, None
        else:
            self._head_bytes += len(piece)
            if self._head_since is None:
                self._head_since = self.loop.time()
        too_long = self._head_bytes >= self.registry.limits.header_bytes
        if too_long and not self._is_answering():
            if not self.transport.is_closing():
                self._refuse_head()
        elif too_long or len(getattr(self, "pipeline", ())) > _MAX_PIPELINED:
            self.abort()  # an error cannot be sent in the middle of another answer

    def _refuse_head(self) -> None:
        answer = header_problem(self.registry.limits).answer()
        head = (
            "HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n"
            f"content-type: {answer.media_type}\r\ncontent-length: {len(answer.body)}\r\n\r\n"
        )
        self.transport.write(head.encode() + answer.body)
        self._linger()

    def _linger(self) -> None:
        """Stop sending, drop received data, and close when the client does or after `_LINGER_S`."""
        self._lingers_since = self.loop.time()
        self._unset_keepalive_if_required()  # type: ignore[attr-defined]  # a method of uvicorn's classes
        with suppress(OSError, RuntimeError):  # the client may have closed the connection
            self.transport.write_eof()


def bounded_protocol(base: type[asyncio.Protocol], connections: Connections) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol class `base` with the limits of `connections`."""
    return type(f"Bounded{base.__name__}", (Bounds, base), {"registry": connections})


def header_problem(limits: Limits) -> ApiError:
    """Return the error of a request head that is too long."""
    message = f"the request's head is too long: at most {limits.header_bytes} bytes and {limits.header_lines} lines"
    return framework_error(message, status=431)


def _max_descriptors() -> int:
    """Return the maximum number of open files and sockets of this process."""
    try:
        import resource
    except ImportError:  # Windows, where sockets do not count as files
        return 1 << 16
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 16 if soft == resource.RLIM_INFINITY else soft
