"""Checks of connections: the hosts and origins that are answered, and limits on the size, time and number of requests.

A page of another site can let its host name resolve to 127.0.0.1 (DNS rebinding); the browser then sends that name in
`Host`. Other requests of such a page carry the site in `Origin`. `Hosts` rejects both.

uvicorn parses HTTP with httptools, which limits neither the size of a request head nor its time, or with h11, which
limits the size only. `Bounds` adds the same limits to both.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from toolkit.embedded.http._dispatch import header_problem
from toolkit.embedded.http._messages import framework_error

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from ipaddress import IPv4Address, IPv6Address

    from toolkit.embedded.http._messages import ApiError
    from toolkit.embedded.http._node import Limits


# A node is asked by few names; a hostile client must not fill the memory with others.
_CACHED = 64
# Longer names are cut in messages, so that a hostile request is not answered with as many bytes.
_SHOWN = 80
# After an error, further data from the client is read and dropped for this long: closing a socket with unread data
# resets the connection, and the client might lose the answer.
_LINGER_S = 1.0
_LINGER_BYTES = 64 * 1024 * 1024
# Requests of one connection that wait while another is answered; browsers and HTTP libraries do not pipeline at all.
_MAX_PIPELINED = 64
IDLE_TIMEOUT_S = 75
"""Seconds after which a connection without a request is closed, the default of nginx."""


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
        self._knows = lru_cache(_CACHED)(self._is_known)

    def check(self, headers: Sequence[tuple[bytes, bytes]], http_version: str) -> None:
        """Raise `ApiError` if a request must be refused: 400 without exactly one `Host`, 403 for another site's name.

        Parameters
        ----------
        headers : sequence of (bytes, bytes)
            Names in lower case and values, as in ASGI.
        http_version : str
            ``1.0`` does not require `Host`.
        """
        hosts = [value for name, value in headers if name == b"host"]
        if len(hosts) != 1 and (hosts or http_version != "1.0"):
            raise framework_error("expected one `Host` header")
        for host in hosts:
            if not self._knows(b"//" + host):
                raise _refused("Host", host, "requests for loopback addresses, localhost and the names it was given")
        for name, value in headers:
            if name == b"origin" and not (value.startswith((b"http://", b"https://")) and self._knows(value)):
                raise _refused("Origin", value, "pages of this machine")

    def _is_known(self, url: bytes) -> bool:
        """Return True if the host of a URL is answered."""
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
    shown = value[:_SHOWN].decode("latin-1")
    message = f"`{name}: {shown}` is refused: this embedded node answers {answered} only"
    return framework_error(message, status=403)


class Bounds(asyncio.Protocol):
    """Limits of one connection, to be combined with a protocol class of uvicorn; see `bounded_protocol`."""

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
        """Wait for a request; if too many connections are open, close the oldest one that waits for its client."""
        super().connection_made(transport)
        self.open[self] = None
        self._expect_within(self.limits.header_timeout_s)
        if len(self.open) > self.limits.connections:
            # The new connection waits too, so there is always one to close; an answer in progress is not interrupted.
            next(one for one in self.open if one.waits())._abort()  # noqa: SLF001 - of this class

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection."""
        self.open.pop(self, None)
        self._expect_within(None)
        super().connection_lost(exc)

    def waits(self) -> bool:
        """Return True if the client must act next: send a request or read its answer."""
        return self._deadline is not None or not self._is_answering() or bool(self.cycle.more_body)

    def data_received(self, data: bytes) -> None:
        """Pass the data to the parser; reject a head that does not end within its limit."""
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
        """Wait for the next request, or close the connection if the answer preceded the end of the request."""
        answered, self._head_bytes = self.cycle, 0
        super().on_response_complete()  # type: ignore[misc]  # a method of uvicorn's classes
        is_last = self.cycle is answered and answered.response_complete
        if is_last and answered.more_body and not self.transport.is_closing():
            self._linger()

    def pause_writing(self) -> None:
        """Limit the time in which the client must read its answer."""
        self._expect_within(self.limits.body_timeout_s)
        super().pause_writing()

    def resume_writing(self) -> None:
        """Continue to send."""
        self._expect_within(None)
        super().resume_writing()

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _expect_within(self, seconds: float | None) -> None:
        """Close the connection if the client does not act within some seconds; None if it is the node's turn."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self._abort)

    def _abort(self) -> None:
        """Close immediately, without sending the rest of the answer."""
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
        """Stop sending, drop received data, and close when the client does or after `_LINGER_S`."""
        self._lingers = True
        self._unset_keepalive_if_required()  # type: ignore[attr-defined]  # a method of uvicorn's classes
        self._expect_within(_LINGER_S)
        with suppress(OSError, RuntimeError):  # the client may have closed the connection
            self.transport.write_eof()


def bounded_protocol(base: type[asyncio.Protocol], limits: Limits) -> type[Bounds]:
    """Return uvicorn's protocol class `base` with the limits of a node."""
    return type(f"Bounded{base.__name__}", (Bounds, base), {"limits": limits, "open": {}})
