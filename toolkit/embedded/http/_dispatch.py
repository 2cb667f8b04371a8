"""Turn requests into responses without a web server: limits on requests, routes, and contract errors.

`answer_request` answers a request from this process without a socket. The server uses the same functions.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl, unquote

from toolkit._present.messages import raised_at
from toolkit.embedded._vm_status import VmError
from toolkit.embedded.http._messages import ApiError, HttpAnswer, HttpCall, framework_error, shown
from toolkit.embedded.http._operations import POSTS
from toolkit.embedded.http._reads import GETS
from toolkit.errors import ContractError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from toolkit.embedded.http._node import EmbeddedNode, Limits

    Handler = Callable[[EmbeddedNode, HttpCall], HttpAnswer]
    _Route = tuple[tuple[str, ...], re.Pattern[str], Handler]
    Headers = Sequence[tuple[bytes, bytes]]


_LENGTH_DIGITS = 20  # of a u64; int() raises for thousands of digits
_PARAMETER = re.compile(r"\{(\w+)\}")


def _routes(methods: tuple[str, ...], handlers: Mapping[str, Handler]) -> Iterator[_Route]:
    for path, handler in handlers.items():
        yield methods, re.compile("/v1" + _PARAMETER.sub(r"(?P<\1>[^/]+)", path)), handler


_ROUTES = [*_routes(("POST",), POSTS), *_routes(("GET", "HEAD"), GETS)]


class HttpResponse(NamedTuple):
    """A response as sent: status, header lines with names in lower case, and body."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


def answer_request(
    node: EmbeddedNode, method: str, target: str, headers: Mapping[str, str], body: bytes | None = None
) -> HttpResponse:
    """Answer a request in this thread, without a socket and without a web server.

    Several threads may call this function at once, because contract code runs without the ledger's lock. The rules for
    `Host` and `Origin` do not apply, because no other program can send such a request. The size limits apply.

    Parameters
    ----------
    node : EmbeddedNode
        The node.
    method : str
        ``GET`` or ``POST``.
    target : str
        Path and query, percent-encoded, such as ``/v1/view?ledger_version=7``.
    headers : mapping of str to str
        Request headers, with names in any case. ``Content-Length`` is added if there is a body.
    body : bytes, optional
        Body of a POST request.

    Returns
    -------
    HttpResponse
        Status, headers and body, also for a request that fails.

    Examples
    --------
    >>> from toolkit.embedded import Ledger
    >>> from toolkit.embedded.http._node import EmbeddedNode
    >>> status, headers, body = answer_request(EmbeddedNode(Ledger()), "GET", "/v1/-/healthy", {})
    >>> status, body
    (200, b'{"message":"aptos-node:ok"}')
    """
    lines = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    if body is not None:
        lines.append((b"content-length", str(len(body)).encode()))
    path, _, query = target.partition("?")
    try:
        body_bytes(node.limits, lines)
    except ApiError as error:
        return response(node, error.answer())
    return response(node, routed(node, method, (unquote(path), query), lines, body or b"", in_worker=True))


def body_bytes(limits: Limits, headers: Headers) -> int:
    """Return the size of a request's body, or raise `ApiError` if it is too large or unknown."""
    length = 0
    for name, value in headers:
        if name == b"transfer-encoding":
            raise _length_required()
        if name == b"content-length":
            length = int(value) if value.isdigit() and len(value) <= _LENGTH_DIGITS else limits.body_bytes + 1
    if length > limits.body_bytes:
        raise framework_error("payload too large", status=413)
    return length


def _length_required() -> ApiError:
    return framework_error("missing `Content-Length` header", status=411)


def routed(
    node: EmbeddedNode, method: str, target: tuple[str, str], headers: Headers, body: bytes, *, in_worker: bool = False
) -> HttpAnswer:
    """Return the handler's response for a target, which consists of a decoded path and a query.

    Raises
    ------
    Postponed
        If contract code takes too long and the request is not `in_worker`.
    """
    path, query = target
    # If a header is repeated, the first one counts; if a parameter is repeated, the last one.
    named = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(headers)}
    parameters = dict(parse_qsl(query, keep_blank_values=True))
    try:
        handler, parts = _route(method, path, named)
        with node.chain.lock:  # the ledger does not grow during a request
            return handler(node, HttpCall(parts, parameters, named, body, in_worker))
    except ApiError as error:
        return error.answer()
    except VmError as error:
        refused = ApiError(400, "invalid_input", error.view_message, vm_error_code=error.vm_error_code)
    except ContractError as error:
        refused = ApiError(400, "invalid_input", f"the contract failed: {shown(error)}")
    except Exception as error:  # noqa: BLE001 - an error of the node must not end it
        message = f"Internal error: {type(error).__name__}: {shown(error)}{raised_at(error)}"
        refused = ApiError(500, "internal_error", message)
    return refused.answer()


def _route(method: str, path: str, headers: Mapping[str, str]) -> tuple[Handler, dict[str, str]]:
    """Return the handler for a path, and the path's parameters."""
    allowed: tuple[str, ...] = ()
    for methods, pattern, handler in _ROUTES:
        if (match := pattern.fullmatch(path)) is not None:
            if method in methods:
                if method == "POST" and "content-length" not in headers:
                    raise _length_required()
                return handler, match.groupdict()
            allowed = methods
    if allowed:
        raise framework_error("method not allowed", status=405, headers={"allow": ", ".join(allowed)})
    raise framework_error("not found", status=404)


def response(node: EmbeddedNode, answer: HttpAnswer) -> HttpResponse:
    """Return a response with all its header lines."""
    lines = [
        (b"content-type", answer.media_type.encode()),
        (b"content-length", str(len(answer.body)).encode()),
        *((name.encode(), value.encode()) for name, value in answer.headers.items()),
    ]
    if answer.with_ledger:
        lines += node.headers(answer.gas_used, answer.cursor)
    return HttpResponse(answer.status, lines, answer.body)
