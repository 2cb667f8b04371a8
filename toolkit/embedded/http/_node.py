"""A node that serves a ledger: its limits, and how it turns requests into responses, without a web server.

`answer_request` answers a request from this process without a socket. The server uses the same node.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl, unquote

from toolkit._present.messages import raised_at
from toolkit.embedded._execution import MAX_VIEW_GAS
from toolkit.embedded._meter import Meter
from toolkit.embedded._vm_status import VmError
from toolkit.embedded.http._messages import ApiError, HttpAnswer, HttpCall, framework_error, query_value, shown, u64
from toolkit.embedded.http._operations import POSTS
from toolkit.embedded.http._reads import GETS
from toolkit.errors import ContractError, InputError
from toolkit.wire._headers import ledger_headers

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from toolkit.embedded._ledger import Ledger
    from toolkit.embedded._session import LedgerSnapshot

    Handler = Callable[["EmbeddedNode", HttpCall], HttpAnswer]
    Headers = Sequence[tuple[bytes, bytes]]

_LENGTH_DIGITS = 20  # of a u64; int() raises for thousands of digits
_PARAMETER = re.compile(r"\{(\w+)\}")
_ROUTES = [
    (methods, re.compile("/v1" + _PARAMETER.sub(r"(?P<\1>[^/]+)", path)), handler)
    for methods, handlers in ((("POST",), POSTS), (("GET", "HEAD"), GETS))
    for path, handler in handlers.items()
]
# Fewer than the requests that wait for them, because each takes time from the thread that answers the others.
_WORKERS = 4
# Gas units of execution that contract code may use in the thread that serves all requests: loops that use as much run
# for some 30 ms.
_MAX_INLINE_GAS = 1_000
# Part of a header's name: up to 64 letters, digits and inner hyphens.
_BRAND = re.compile(r"(?=.{1,64}\Z)[A-Za-z0-9]+(-[A-Za-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of an embedded node.

    Parameters
    ----------
    body_bytes : int, default 8 MiB
        Maximum size of a POST body, in bytes.
    view_gas : int, default 2_000_000
        Maximum number of gas units that a view may use.
    page : int, default 100
        Maximum number of transactions in one response.

    Examples
    --------
    >>> Limits(page=10).page
    10
    """

    body_bytes: int = 8 * 1024 * 1024
    view_gas: int = MAX_VIEW_GAS
    page: int = 100


class HttpResponse(NamedTuple):
    """A response as sent: status, header lines with names in lower case, and body."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class Postponed(BaseException):
    """Contract code takes too long for the thread that answers all requests.

    It is not an `Exception`, so that contracts do not catch it.
    """


class InlineMeter(Meter):
    """The meter of contract code in the thread that answers all requests; long executions raise `Postponed`."""

    __slots__ = ()

    def _spend(self, amount: int, operation: str) -> None:
        super()._spend(amount, operation)
        if self._execution > _MAX_INLINE_GAS * self.schedule.scaling:
            raise Postponed


class EmbeddedNode:
    """A node that serves a ledger.

    Parameters
    ----------
    ledger : Ledger
        The ledger.
    brand : str, default "APTOS"
        Part of the names of ledger headers.
    limits : Limits, optional
        Limits on requests.
    host_names : collection of str, optional
        Other host names to accept.

    Raises
    ------
    InputError
        If the brand cannot be part of a header name.
    """

    def __init__(
        self, ledger: Ledger, *, brand: str = "APTOS", limits: Limits | None = None, host_names: Collection[str] = ()
    ) -> None:
        if _BRAND.fullmatch(brand) is None:
            raise InputError(f"brand must be up to 64 letters, digits and inner hyphens, such as APTOS; got {brand!r}")
        self.ledger = ledger
        self.chain = ledger.chain
        self.brand = brand
        self.limits = limits or Limits()
        self.host_names = host_names
        # Threads start on use.
        self.workers = ThreadPoolExecutor(_WORKERS, thread_name_prefix="embedded-node-worker")
        self._headers: list[tuple[bytes, bytes]] = []
        self._headers_of = (-1, -1)  # head and oldest version for which `_headers` was made

    def headers(self, gas_used: int | None = None, cursor: str | None = None) -> list[tuple[bytes, bytes]]:
        """Return the ledger headers of the head, with names in lower case."""
        with self.chain.lock:
            versions = (self.chain.head, self.chain.oldest_version)
            if self._headers_of != versions:
                texts = ledger_headers(self.chain.ledger_state(), brand=self.brand)
                self._headers = [(name.lower().encode(), text.encode()) for name, text in texts.items()]
                self._headers_of = versions
            headers = list(self._headers)
        brand = self.brand.lower()
        for name, value in (("gas-used", gas_used), ("cursor", cursor)):
            if value is not None:
                headers.append((f"x-{brand}-{name}".encode(), str(value).encode()))
        return headers

    @contextmanager
    def execution(self, call: HttpCall, version: int) -> Iterator[tuple[LedgerSnapshot, type[Meter]]]:
        """Yield the snapshot on which contract code inside the ``with`` block runs, and the class of its meter.

        A call first runs in the thread that serves all requests, because passing it to another thread would take longer
        than most calls. If it uses much gas, `Postponed` is raised, and it runs again in a worker without the lock. The
        node can then answer other requests in the meantime. Contract code changes nothing here, so running it twice has
        no visible effect. Code that uses no gas is not interrupted.
        """
        snapshot = self.chain.snapshot(version)
        if not call.in_worker:
            yield snapshot, InlineMeter
            return
        self.chain.lock.release()
        try:
            yield snapshot, Meter
        finally:
            self.chain.lock.acquire()
            self.check_kept(version)  # if it was pruned meanwhile, the reads may have been incomplete

    def version(self, call: HttpCall) -> int:
        """Return the ledger version that a request reads: the version in its query, or the head.

        Raises
        ------
        ApiError
            404 if the version is above the head, 410 if it is pruned.
        """
        wanted = query_value(call, "ledger_version", u64)
        if wanted is None:
            return self.chain.head
        if wanted > self.chain.head:
            raise ApiError(404, "version_not_found", f"Ledger version not found by Ledger version({wanted})")
        self.check_kept(wanted)
        return wanted

    def check_kept(self, version: int) -> None:
        """Raise `ApiError` if a version is pruned."""
        if version < self.chain.oldest_version:
            raise ApiError(410, "version_pruned", f"Ledger version({version}) has been pruned")

    def body_bytes(self, headers: Headers) -> int:
        """Return the size of a request's body, or raise `ApiError` if it is too large or unknown."""
        length = 0
        for name, value in headers:
            if name == b"transfer-encoding":
                raise framework_error(_NO_LENGTH, status=411)
            if name == b"content-length":
                is_number = value.isdigit() and len(value) <= _LENGTH_DIGITS
                length = int(value) if is_number else self.limits.body_bytes + 1
        if length > self.limits.body_bytes:
            raise framework_error("payload too large", status=413)
        return length

    def answer(
        self, method: str, path: str, query: str, headers: Headers, body: bytes, *, in_worker: bool = False
    ) -> HttpAnswer:
        """Return the handler's response for a decoded path and a query.

        Raises
        ------
        Postponed
            If contract code takes too long and the request is not `in_worker`.
        """
        # If a header is repeated, the first one counts; if a parameter is repeated, the last one.
        named = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(headers)}
        parameters = dict(parse_qsl(query, keep_blank_values=True))
        try:
            handler, parts = _route(method, path, named)
            with self.chain.lock:  # the ledger does not grow during a request
                return handler(self, HttpCall(parts, parameters, named, body, in_worker))
        except ApiError as error:
            return error.answer
        except VmError as error:
            refused = ApiError(400, "invalid_input", error.view_message, vm_error_code=error.vm_error_code)
        except ContractError as error:
            refused = ApiError(400, "invalid_input", f"the contract failed: {shown(error)}")
        except Exception as error:  # noqa: BLE001 - an error of the node must not end it
            message = f"Internal error: {type(error).__name__}: {shown(error)}{raised_at(error)}"
            refused = ApiError(500, "internal_error", message)
        return refused.answer

    def response(self, answer: HttpAnswer) -> HttpResponse:
        """Return a response with all its header lines."""
        lines = [
            (b"content-type", answer.media_type.encode()),
            (b"content-length", str(len(answer.body)).encode()),
            *((name.encode(), value.encode()) for name, value in answer.headers.items()),
        ]
        if answer.with_ledger:
            lines += self.headers(answer.gas_used, answer.cursor)
        return HttpResponse(answer.status, lines, answer.body)


_NO_LENGTH = "missing `Content-Length` header"


def _route(method: str, path: str, headers: Mapping[str, str]) -> tuple[Handler, dict[str, str]]:
    """Return the handler for a path, and the path's parameters."""
    allowed: tuple[str, ...] = ()
    for methods, pattern, handler in _ROUTES:
        if (match := pattern.fullmatch(path)) is not None:
            if method in methods:
                if method == "POST" and "content-length" not in headers:
                    raise framework_error(_NO_LENGTH, status=411)
                return handler, match.groupdict()
            allowed = methods
    if allowed:
        raise framework_error("method not allowed", status=405, headers={"allow": ", ".join(allowed)})
    raise framework_error("not found", status=404)


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
        node.body_bytes(lines)
    except ApiError as error:
        return node.response(error.answer)
    return node.response(node.answer(method, unquote(path), query, lines, body or b"", in_worker=True))
