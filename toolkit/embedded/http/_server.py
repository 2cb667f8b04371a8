"""The server of a node, which checks the origin and the size of requests and sends responses.

`start` and `serve` run a node in a thread, served by uvicorn on loopback.

A page from another site can make its host name resolve to 127.0.0.1 (DNS rebinding); the browser then sends that name
in `Host`. Other requests from such a page name the site in `Origin`. `Hosts` rejects both.
"""

from __future__ import annotations

import asyncio
import atexit
import socket
import time
from contextlib import contextmanager
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address
from threading import Thread
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import uvicorn

from toolkit.embedded.http._messages import ApiError, HttpAnswer, framework_error
from toolkit.embedded.http._node import EmbeddedNode, Limits, Postponed
from toolkit.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterator, MutableMapping, Sequence

    from toolkit.embedded._ledger import Ledger

    Scope = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
    Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


# Characters of a name in a message; longer names are truncated, so that a hostile request does not cause a large
# response.
_MAX_SHOWN = 80
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

    def _knows(self, url: bytes) -> bool:
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


class NodeApp:
    """The ASGI application of a node under ``/v1``.

    The body of a request is read completely before the request is answered, so that the connection can be reused.

    Parameters
    ----------
    node : EmbeddedNode
        The node.
    hosts : Hosts
        The hosts and origins that the node accepts.
    """

    def __init__(self, node: EmbeddedNode, hosts: Hosts) -> None:
        self._node = node
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        try:
            more = self._node.body_bytes(scope["headers"]) > 0
            self._hosts.check(scope["headers"], scope["http_version"])
        except ApiError as error:
            answer = error.answer
        else:
            pieces: list[bytes] = []
            while more:
                message = await receive()
                pieces.append(message.get("body", b""))
                more = message.get("more_body", False)
            answer = await self._answer(scope, b"".join(pieces))
        status, headers, body = self._node.response(answer)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, scope: Scope, body: bytes) -> HttpAnswer:
        query = scope["query_string"].decode("latin-1")
        answer = partial(self._node.answer, scope["method"], scope["path"], query, scope["headers"], body)
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

    def __init__(self, node: EmbeddedNode, *, host: str, port: int) -> None:
        self.node = node
        self._socket = _listen(host, port)
        bound_port = self._socket.getsockname()[1]
        shown_host = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown_host}:{bound_port}/v1"
        config = uvicorn.Config(
            NodeApp(node, Hosts(host, node.host_names)),
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
    return Server(node, host=host, port=port)


@contextmanager
def serve(
    ledger: Ledger,
    *,
    port: int = 0,
    host: str = _LOOPBACK,
    brand: str = "APTOS",
    limits: Limits | None = None,
    host_names: Collection[str] = (),
) -> Iterator[str]:
    """Serve a ledger over HTTP during a ``with`` block.

    Parameters
    ----------
    ledger, port, host, brand, limits, host_names
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
    with start(ledger, port=port, host=host, brand=brand, limits=limits, host_names=host_names) as node:
        yield node.url


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise InputError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
    listener.set_inheritable(False)
    return listener
