"""The ASGI application (checks of every request, faults, sending of answers), and the server that runs it.

`start` and `serve` run a node in a thread, served by uvicorn on loopback.
"""

from __future__ import annotations

import asyncio
import atexit
import socket
import threading
import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from toolkit.embedded.http._connections import IDLE_TIMEOUT_S, Hosts, bounded_protocol
from toolkit.embedded.http._dispatch import body_bytes, response, routed
from toolkit.embedded.http._faults import Faults
from toolkit.embedded.http._messages import ApiError, framework_error
from toolkit.embedded.http._node import Access, EmbeddedNode, Limits, Postponed
from toolkit.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, MutableMapping
    from types import TracebackType

    from toolkit.embedded._ledger import Ledger
    from toolkit.embedded.http._messages import HttpAnswer

    # As ASGI defines them.
    Scope = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
    Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


# Number of pieces of a slow answer.
_PIECES = 10


class NodeApp:
    """The ASGI application of a node under ``/v1``, with latency and faults.

    A body is read completely before it is answered, so that the connection can be reused.

    Parameters
    ----------
    node : EmbeddedNode
        The node.
    faults : Faults
        Latency and faults.
    hosts : Hosts
        Hosts and origins that are answered.
    """

    def __init__(self, node: EmbeddedNode, faults: Faults, hosts: Hosts) -> None:
        self._node = node
        self._faults = faults
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or let it meet a fault."""
        kind = None
        try:
            body = await self._checked_body(scope, receive)
        except TimeoutError:
            answer = framework_error("the request body did not arrive in time", status=408).answer()
        except ApiError as error:
            answer = error.answer()
        else:
            await self._faults.wait()
            fault = self._faults.take(scope["path"].removeprefix("/v1"))
            kind, refusal = (None, None) if fault is None else (fault.kind, self._faults.answer(fault))
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
            size = max(1, -(-len(body) // _PIECES))
            for start in range(0, len(body), size):
                await asyncio.sleep(1 / _PIECES)
                await send({"type": "http.response.body", "body": body[start : start + size], "more_body": True})
            body = b""
        await send({"type": "http.response.body", "body": body})

    async def _checked_body(self, scope: Scope, receive: Receive) -> bytes:
        """Return the body of a request, or raise `ApiError` if the request must be refused."""
        target_bytes = len(scope["raw_path"]) + len(scope["query_string"])
        length = body_bytes(self._node.limits, target_bytes, scope["headers"])
        self._hosts.check(scope["headers"], scope["http_version"])
        pieces, more = [], length > 0
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
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._node.workers, partial(answer, in_worker=True))


_LOOPBACK = "127.0.0.1"
_START_TIMEOUT_S = 10.0
_START_CHECK_S = 0.005
_STOP_TIMEOUT_S = 5.0
_BACKLOG = 2048


class Server:
    """A running node; it stops on `stop`, at the end of a ``with`` block, or when the interpreter exits.

    Servers are created by `start`.

    Attributes
    ----------
    url : str
        Base URL, which ends in ``/v1``.
    faults : Faults
        Latency and faults; can be changed while the node runs.
    node : EmbeddedNode
        The node that is served.

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
        self._protocol = bounded_protocol(AutoHTTPProtocol, node.limits)
        config = uvicorn.Config(
            NodeApp(node, faults, Hosts(host, node.access.host_names)),
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
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="embedded-node", daemon=True
        )
        self._thread.start()
        self._wait_until_started()
        atexit.register(self.stop)

    def __repr__(self) -> str:
        return f"<Server {self.url} of {self.node.ledger!r}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop the node and free the port; has no effect on a stopped node."""
        atexit.unregister(self.stop)
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join(_STOP_TIMEOUT_S)
        self.node.workers.shutdown(wait=False, cancel_futures=True)
        self._socket.close()

    def _wait_until_started(self) -> None:
        end = time.monotonic() + _START_TIMEOUT_S
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > end:
                self._socket.close()
                raise InputError(f"the embedded node did not start on {self.url} within {_START_TIMEOUT_S:g} s")
            time.sleep(_START_CHECK_S)


def start(
    ledger: Ledger,
    *,
    port: int = 0,
    host: str = _LOOPBACK,
    brand: str = "APTOS",
    limits: Limits | None = None,
    faults: Faults | None = None,
    access: Access | None = None,
) -> Server:
    """Serve a ledger over HTTP, in a separate thread.

    Parameters
    ----------
    ledger : Ledger
        The ledger; it may grow while it is served.
    port : int, default 0
        Port to listen on; 0 selects a free one.
    host : str, default "127.0.0.1"
        Address to listen on. Any address other than loopback exposes the node to the network.
    brand : str, default "APTOS"
        Part of the names of ledger headers.
    limits : Limits, optional
        Limits on requests.
    faults : Faults, optional
        Latency and faults, for tests and courses.
    access : Access, optional
        Access rules.

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
    node = EmbeddedNode(ledger, brand=brand, limits=limits, access=access)
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
    access: Access | None = None,
) -> Iterator[str]:
    """Serve a ledger over HTTP during a ``with`` block.

    Parameters
    ----------
    ledger, port, host, brand, limits, faults, access
        As for `start`.

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
    with start(ledger, port=port, host=host, brand=brand, limits=limits, faults=faults, access=access) as server:
        yield server.url


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise InputError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
    listener.set_inheritable(False)
    return listener
