"""The routes, and the thin layer between an HTTP server and the handlers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.routing import Route

from toolkit.embedded.http.answers import Answer, ApiError, Call
from toolkit.embedded.http.operations import raw_table_item, table_item, view
from toolkit.embedded.http.reads import GETS
from toolkit.embedded.http.simulation import simulate

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from toolkit.embedded.http.node import Node

    Handler = Callable[[Node, Call], Answer]
    Endpoint = Callable[[Request], Awaitable["WireResponse"]]

__all__ = ["create_app"]

_POSTS: dict[str, Handler] = {
    "/view": view,
    "/tables/{table_handle}/item": table_item,
    "/tables/{table_handle}/raw_item": raw_table_item,
    "/transactions/simulate": simulate,
}


class WireResponse:
    """An answer on its way out."""

    __slots__ = ("_answer", "_headers")

    def __init__(self, node: Node, answer: Answer) -> None:
        body = answer.body
        headers = [
            (b"content-type", answer.media_type.encode()),
            (b"content-length", str(len(body)).encode()),
            *((name.lower().encode(), value.encode()) for name, value in answer.headers.items()),
        ]
        if answer.with_ledger:
            headers += node.headers(answer.gas_used)
        self._answer = answer
        self._headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        del scope, receive
        await send({"type": "http.response.start", "status": self._answer.status, "headers": self._headers})
        await send({"type": "http.response.body", "body": self._answer.body})


def create_app(node: Node) -> Starlette:
    """Return the ASGI application that serves a node under ``/v1``."""
    routes = [Route(f"/v1{path}", _post(node, handler), methods=["POST"]) for path, handler in _POSTS.items()]
    routes += [Route(f"/v1{path}", _get(node, handler), methods=["GET"]) for path, handler in GETS.items()]

    async def not_routed(request: Request, error: HTTPException) -> WireResponse:
        del request
        message = "not found" if error.status_code == 404 else "method not allowed"  # noqa: PLR2004 - HTTP
        refused = ApiError(error.status_code, "web_framework_error", message, with_ledger=False)
        return WireResponse(node, refused.answer())

    handlers = {404: not_routed, 405: not_routed}
    return Starlette(routes=routes, exception_handlers=handlers)  # type: ignore[arg-type]  # a response by shape


def _get(node: Node, handler: Handler) -> Endpoint:
    async def endpoint(request: Request) -> WireResponse:
        return WireResponse(node, _answer(node, handler, request, b""))

    return endpoint


def _post(node: Node, handler: Handler) -> Endpoint:
    async def endpoint(request: Request) -> WireResponse:
        refused = _length_problem(node, request)
        if refused is not None:
            return WireResponse(node, refused.answer())
        return WireResponse(node, _answer(node, handler, request, await request.body()))

    return endpoint


def _answer(node: Node, handler: Handler, request: Request, body: bytes) -> Answer:
    call = Call(request.path_params, request.query_params, request.headers, body)
    try:
        return handler(node, call)
    except ApiError as error:
        return error.answer()


def _length_problem(node: Node, request: Request) -> ApiError | None:
    """Refuse a body whose length is not said beforehand, or is too large."""
    length = request.headers.get("content-length")
    if length is None:
        return ApiError(411, "web_framework_error", "missing `Content-Length` header", with_ledger=False)
    if not length.isdigit() or int(length) > node.limits.body_bytes:
        return ApiError(413, "web_framework_error", "payload too large", with_ledger=False)
    return None
