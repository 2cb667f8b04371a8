"""One node behind a transport: paths, retries and pace. Every request of the client passes here."""

from __future__ import annotations

import logging
import random
import threading
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from toolkit import __version__
from toolkit.client.refusals import refusal
from toolkit.client.retry import RetryPolicy
from toolkit.client.transport import Answer, Request
from toolkit.errors import InputError, NodeError, NodeUnreachable, SchemaError
from toolkit.wire.headers import parse_headers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolkit.client.prepared import Prepared
    from toolkit.client.transport import Transport

__all__ = ["Connection", "json_body", "parsed_json", "path"]

_log = logging.getLogger("toolkit.client")
T = TypeVar("T")


def path(*parts: str | int) -> str:
    """Join path segments, each percent-encoded whole, so that no value can change the path."""
    texts = [str(part) for part in parts]
    for text in texts:
        if text in {".", "..", ""}:
            raise InputError(f"{text!r} cannot be a name here: it would lead to another path")
    return "/" + "/".join(quote(text, safe="") for text in texts)


class Connection:
    """Sends requests to one node, repeats what may be repeated, and raises what the node refuses.

    Parameters
    ----------
    url : str
        Base URL that ends in ``/v1``.
    transport : Transport
    retry : RetryPolicy
    requests_per_second : float or None
        Most requests started per second, over all threads.
    sleep, clock : callable, optional
        Replaced in tests.
    """

    def __init__(
        self,
        url: str,
        transport: Transport,
        *,
        retry: RetryPolicy | None = None,
        requests_per_second: float | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.url = url
        self._transport = transport
        self._retry = retry or RetryPolicy()
        self._pace = _Pace(requests_per_second, clock)
        self._sleep = sleep
        self._highest_head = 0

    def request(
        self,
        method: str,
        where: str,
        *,
        body: bytes | None = None,
        query: Mapping[str, Any] | None = None,
        content: str = "application/json",
        accept: str = "application/json",
    ) -> Request:
        """Return a request to a path below the base URL; query entries that are None are left out."""
        given = {name: value for name, value in (query or {}).items() if value is not None}
        headers = {"Accept": accept, "x-aptos-client": f"ledger-toolkit/{__version__}"}
        if body is not None:
            headers["Content-Type"] = content
        return Request(method, f"{self.url}{where}?{urlencode(given)}" if given else self.url + where, body, headers)

    def get(self, where: str, *, asked: str, query: Mapping[str, Any] | None = None) -> Answer:
        """GET a path below the base URL."""
        return self.send(self.request("GET", where, query=query), asked)

    def perform(self, prepared: Prepared[T]) -> T:
        """Send a prepared call and return its result."""
        return prepared.finish(self.send(prepared.request, prepared.asked))

    def close(self) -> None:
        """Release the transport."""
        self._transport.close()

    def send(self, request: Request, asked: str) -> Answer:
        """Send until a 2xx answer is there, the policy gives up, or the time budget is used up.

        Parameters
        ----------
        request : Request
        asked : str
            What is asked, for texts.

        Raises
        ------
        NodeError
            Of the class the status means.
        NodeUnreachable
            If no answer came.
        """
        repeat, waited = 0, 0.0
        while True:
            self._sleep_for(self._pace.turn_s())
            error, status, text = self._attempt(request, asked)
            if isinstance(error, Answer):
                return error
            repeat += 1
            again = self._retry.may_repeat(status, repeat=repeat, text=text) or self._lags(error, request, repeat)
            asked_s = error.retry_after_s if isinstance(error, NodeError) else None
            pause = self._retry.wait_s(repeat=repeat, chance=random.random(), asked_s=asked_s)  # noqa: S311 - jitter
            if not again or waited + pause > self._retry.budget_s:
                raise error
            _log.info("%s: attempt %d failed (%s); again in %.2f s", asked, repeat, status or "no answer", pause)
            waited += pause
            self._sleep_for(pause)

    def _attempt(self, request: Request, asked: str) -> tuple[Answer | NodeError | NodeUnreachable, int | None, str]:
        """Send once; an error is returned rather than raised, since it may be repeated."""
        try:
            answer = self._transport.send(request)
        except NodeUnreachable as unreachable:
            return unreachable, None, ""
        ledger = parse_headers(answer.headers).ledger
        if ledger is not None:
            self._highest_head = max(self._highest_head, ledger.version)
        if HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
            return answer, answer.status, ""
        error = refusal(asked, answer)
        return error, answer.status, error.message

    def _lags(self, error: Exception, request: Request, repeat: int) -> bool:
        """Tell whether a 404 comes from a backend behind the head that this host has shown before."""
        if not isinstance(error, NodeError) or error.error_code != "version_not_found" or error.ledger is None:
            return False
        behind = error.ledger.version < self._highest_head
        return behind and repeat < self._retry.attempts and _version_asked(request.url) <= self._highest_head

    def _sleep_for(self, seconds: float) -> None:
        if seconds > 0:
            self._sleep(seconds)


def _version_asked(url: str) -> int:
    """Return the ledger version in a URL's query; one that is missing or unreadable counts as beyond every head."""
    _, _, tail = url.partition("ledger_version=")
    digits = tail.partition("&")[0]
    return int(digits) if digits.isascii() and digits.isdigit() else 2**64


def json_body(value: Any) -> bytes:
    """Return a JSON body; text that has no UTF-8 form is the caller's mistake."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError as error:
        raise InputError(f"text {error.object[:40]!r} has no UTF-8 form, so it cannot be sent") from None


def parsed_json(body: bytes, what: str) -> Any:
    """Parse a JSON answer; what is none raises SchemaError with its beginning."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SchemaError(f"{what}: the answer is not JSON ({error}); it starts {body[:60]!r}") from None


class _Pace:
    """Evenly spaced turns, shared by all threads of a connection."""

    def __init__(self, per_second: float | None, clock: Callable[[], float]) -> None:
        self._gap = 1.0 / per_second if per_second else 0.0
        self._clock = clock
        self._next = 0.0
        self._lock = threading.Lock()

    def turn_s(self) -> float:
        """Take the next turn and return the seconds until it."""
        if not self._gap:
            return 0.0
        with self._lock:
            now = self._clock()
            turn = max(self._next, now)
            self._next = turn + self._gap
            return turn - now
