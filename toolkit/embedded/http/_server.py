"""The ASGI application (routes, checks of every request, faults, sending of answers), and the server that runs it.

`start` and `serve` run a node in a thread, served by uvicorn on loopback.
"""

from __future__ import annotations

import asyncio
import atexit
import socket
import threading
import time
import traceback
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Route
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from toolkit.embedded._vm_status import VmError
from toolkit.embedded.http._connections import IDLE_TIMEOUT_S, Hosts, bounded_protocol, header_problem
from toolkit.embedded.http._faults import Faults
from toolkit.embedded.http._messages import ApiError, HttpAnswer, HttpCall, framework_error
from toolkit.embedded.http._node import Access, EmbeddedNode, Limits, Postponed
from toolkit.embedded.http._operations import POSTS
from toolkit.embedded.http._parsing import shown
from toolkit.embedded.http._reads import GETS
from toolkit.errors import ContractError, InputError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from types import TracebackType

    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from toolkit.embedded._ledger import Ledger

    Handler = Callable[[EmbeddedNode, HttpCall], HttpAnswer]
    Endpoint = Callable[[Request], Awaitable["HttpResponse"]]


# Number of pieces of a slow answer.
_PIECES = 10
_LENGTH_DIGITS = 20


class HttpResponse:
    """An ASGI response."""

    __slots__ = ("_answer", "_headers")

    def __init__(self, node: EmbeddedNode, answer: HttpAnswer) -> None:
        self._answer = answer
        self._headers = [
            (b"content-type", answer.media_type.encode()),
            (b"content-length", str(len(answer.body)).encode()),
            *((name.lower().encode(), value.encode()) for name, value in answer.headers.items()),
        ]
        if answer.with_ledger:
            self._headers += node.headers(answer.gas_used, answer.cursor)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        del scope, receive
        await send({"type": "http.response.start", "status": self._answer.status, "headers": self._headers})
        await send({"type": "http.response.body", "body": self._answer.body})


class CheckedApp:
    """An ASGI application that checks the host, header lines and body of a request before another application.

    The whole body is read first, so that every answer follows a complete request and the connection can be reused.
    Endpoints find it in the scope, as ``body``.

    Parameters
    ----------
    app : ASGI application
        Answers requests that pass the checks.
    node : EmbeddedNode
        The node, for its limits.
    hosts : Hosts
        Hosts and origins that are answered.
    """

    def __init__(self, app: ASGIApp, node: EmbeddedNode, hosts: Hosts) -> None:
        self._app = app
        self._node = node
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request and answer it."""
        try:
            if self._body_bytes(scope):
                async with asyncio.timeout(self._node.limits.body_timeout_s):
                    scope["body"] = await _whole_body(receive)
        except TimeoutError:
            refused = framework_error("the request body did not arrive in time", status=408).answer()
        except ApiError as error:
            refused = error.answer()
            if refused.status == 431:  # noqa: PLR2004 - HTTP
                refused = replace(refused, headers={"connection": "close"})
        else:
            await self._app(scope, receive, send)
            return
        await HttpResponse(self._node, refused)(scope, receive, send)

    def _body_bytes(self, scope: Scope) -> int:
        """Return the number of bytes of a request's body, or raise `ApiError` if the request must be refused."""
        headers, limits = scope["headers"], self._node.limits
        head_bytes = len(scope["raw_path"]) + len(scope["query_string"]) + sum(len(n) + len(v) for n, v in headers)
        if len(headers) > limits.header_lines or head_bytes > limits.header_bytes:
            raise header_problem(limits)
        self._hosts.check(headers, scope["http_version"])
        length = 0
        for name, value in headers:
            if name == b"transfer-encoding":
                raise _length_required()
            if name == b"content-length":
                length = int(value) if value.isdigit() and len(value) <= _LENGTH_DIGITS else limits.body_bytes + 1
        if length > limits.body_bytes:
            raise framework_error("payload too large", status=413)
        return length


async def _whole_body(receive: Receive) -> bytes:
    pieces, more = [], True
    while more:
        message = await receive()
        pieces.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(pieces)


def _length_required() -> ApiError:
    return framework_error("missing `Content-Length` header", status=411)


class FaultyApp:
    """An ASGI application that adds latency and faults to another application.

    Parameters
    ----------
    app : ASGI application
        Answers requests that meet no fault.
    node : EmbeddedNode
        The node, for headers.
    faults : Faults
        Latency and faults.
    """

    def __init__(self, app: ASGIApp, node: EmbeddedNode, faults: Faults) -> None:
        self._app = app
        self._node = node
        self._faults = faults

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or let it meet a fault."""
        await self._faults.wait()
        fault = self._faults.take(scope["path"].removeprefix("/v1"))
        kind, answer = (None, None) if fault is None else (fault.kind, self._faults.answer(fault))
        if answer is not None:
            await HttpResponse(self._node, answer)(scope, receive, send)
        elif kind == "hang":
            while (await receive())["type"] != "http.disconnect":
                pass
        elif kind == "cut":
            await self._app(scope, receive, _cut(send))
        elif kind == "slow":
            await self._app(scope, receive, _slow(send))
        else:
            await self._app(scope, receive, send)


def _cut(send: Send) -> Send:
    """Return a `send` that sends half a body and no end, so that the server closes the connection."""

    async def cut(message: Message) -> None:
        if message["type"] == "http.response.body":
            body = message["body"]
            message = {"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True}
        await send(message)

    return cut


def _slow(send: Send) -> Send:
    """Return a `send` that sends a body in pieces within one second."""

    async def slow(message: Message) -> None:
        if message["type"] != "http.response.body":
            await send(message)
            return
        body = message["body"]
        size = max(1, -(-len(body) // _PIECES))
        for start in range(0, len(body), size):
            await asyncio.sleep(1 / _PIECES)
            await send({"type": "http.response.body", "body": body[start : start + size], "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    return slow


def create_app(node: EmbeddedNode) -> Starlette:
    """Return the ASGI application that serves a node under ``/v1``."""
    routes = [
        Route(f"/v1{path}", _endpoint(node, handler), methods=[method])
        for method, handlers in (("POST", POSTS), ("GET", GETS))
        for path, handler in handlers.items()
    ]

    async def not_routed(request: Request, error: HTTPException) -> HttpResponse:
        del request
        message = "not found" if error.status_code == 404 else "method not allowed"  # noqa: PLR2004 - HTTP
        refused = framework_error(message, status=error.status_code)
        return HttpResponse(node, replace(refused.answer(), headers=error.headers or {}))  # includes `Allow` of a 405

    app = Starlette(routes=routes, exception_handlers={404: not_routed, 405: not_routed})  # type: ignore[dict-item]  # a response by shape
    app.router.redirect_slashes = False  # a node has no such path
    return app


def _endpoint(node: EmbeddedNode, handler: Handler) -> Endpoint:
    async def endpoint(request: Request) -> HttpResponse:
        if request.method == "POST" and "content-length" not in request.headers:
            return HttpResponse(node, _length_required().answer())
        body = request.scope.get("body", b"")
        call = HttpCall(request.path_params, request.query_params, request.headers, body)
        try:
            answer = _answer(node, handler, call)
        except Postponed:
            work = partial(_answer, node, handler, replace(call, in_worker=True))
            answer = await asyncio.get_running_loop().run_in_executor(node.workers, work)
        return HttpResponse(node, answer)

    return endpoint


def _answer(node: EmbeddedNode, handler: Handler, call: HttpCall) -> HttpAnswer:
    try:
        with node.chain.lock:  # the ledger does not grow during a request
            return handler(node, call)
    except ApiError as error:
        return error.answer()
    except VmError as error:
        return ApiError(400, "invalid_input", error.view_message, vm_error_code=error.vm_error_code).answer()
    except Postponed:
        raise
    except ContractError as error:
        return ApiError(400, "invalid_input", f"the contract fails: {shown(error)}").answer()
    except Exception as error:  # noqa: BLE001 - an error of the node must not end it
        message = f"Internal error: {type(error).__name__}: {shown(error)}{_raised_at(error)}"
        return ApiError(500, "internal_error", message).answer()


def _raised_at(error: Exception) -> str:
    """Return the line of a user's contract in which an error was raised, or empty text; without its folder."""
    lines = [
        (frame.f_code, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not str(frame.f_globals.get("__name__")).startswith("toolkit.")
    ]
    if not lines:
        return ""
    code, line = lines[-1]
    file = Path(code.co_filename)
    if f"line {line})" in str(error):
        return ""
    return f" (in {code.co_name}, {f'{file.name}, ' if file.is_file() else ''}line {line})"


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
        app = FaultyApp(create_app(node), node, faults)
        config = uvicorn.Config(
            CheckedApp(app, node, Hosts(host, node.access.host_names)),
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
        Limits of requests.
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
