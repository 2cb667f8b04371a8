"""One node behind a transport: paths, retries and pace. Every request of the client passes here."""

from __future__ import annotations

import json
import logging
import random
import threading
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from toolkit.client.refusals import refusal
from toolkit.client.retry import RetryPolicy
from toolkit.client.transport import Answer, Request
from toolkit.errors import NodeError, NodeUnreachable
from toolkit.wire.headers import parse_headers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolkit.client.transport import Transport

__all__ = ["Connection", "path"]

_log = logging.getLogger("toolkit.client")
_JSON = {"Accept": "application/json", "x-aptos-client": "ledger-toolkit"}


def path(*parts: str | int) -> str:
    """Join path segments, each percent-encoded whole, so that no value can change the path."""
    return "/" + "/".join(quote(str(part), safe="") for part in parts)


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

    def get(self, where: str, *, asked: str, query: Mapping[str, Any] | None = None) -> Answer:
        """GET a path below the base URL."""
        return self._send(Request("GET", self._full(where, query), None, _JSON), asked)

    def post(
        self,
        where: str,
        body: Any,
        *,
        asked: str,
        query: Mapping[str, Any] | None = None,
        accept: str = "application/json",
    ) -> Answer:
        """POST a JSON body to a path below the base URL."""
        data = json.dumps(body, separators=(",", ":"), allow_nan=False).encode()
        headers = {**_JSON, "Accept": accept, "Content-Type": "application/json"}
        return self._send(Request("POST", self._full(where, query), data, headers), asked)

    def close(self) -> None:
        """Release the transport."""
        self._transport.close()

    def _full(self, where: str, query: Mapping[str, Any] | None) -> str:
        given = {name: value for name, value in (query or {}).items() if value is not None}
        return f"{self.url}{where}?{urlencode(given)}" if given else self.url + where

    def _send(self, request: Request, asked: str) -> Answer:
        """Send until an answer is there, the policy gives up, or the time budget is used up."""
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
