"""A node that fails on request: the proxy of the robustness tests, with a queue of faults in front of an honest node."""

from __future__ import annotations

import asyncio
import json
import random
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tests.robustness.proxy import Last, ProxiedAnswer, ProxiedRequest, Proxy
from toolkit.wire._responses import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

STATUSES = {
    **{code.value: 404 for code in ErrorCode if code.value.endswith("_not_found")},
    "version_pruned": 410,
    "block_pruned": 410,
    "invalid_input": 400,
    "invalid_transaction_update": 400,
    "sequence_number_too_old": 400,
    "vm_error": 400,
    "rejected_by_filter": 500,
    "health_check_failed": 503,
    "mempool_is_full": 507,
    "rate_limited": 429,
    "internal_error": 500,
    "web_framework_error": 400,
    "bcs_not_supported": 400,
    "api_disabled": 403,
}
"""Status of each documented error code."""
_BY_STATUS = {"429": "rate_limited", "500": "internal_error", "503": "internal_error", "507": "mempool_is_full"}


class FaultyNode(Proxy):
    """A proxy whose next answers are faults.

    A fault is an error code (with its status), an error status, ``cut`` (the connection closes in the middle of the
    answer), ``hang`` (no answer comes) or ``html`` (a gateway's page); None is an honest answer.

    Attributes
    ----------
    latency_s : float
        Delay of every answer, in seconds.
    rates : mapping of str to float
        Share of the requests that meet a fault once the queue is empty.
    queue : list
        Faults of the next requests.
    in_flight, max_in_flight : int
        Number of requests that are being answered now, and the most so far.
    """

    def __init__(self, url: str, *, latency_s: float = 0.0) -> None:
        parts = urlsplit(url)
        self.latency_s = latency_s
        self.rates: Mapping[str, float] = {}
        self.queue: list[str | None] = []
        self.in_flight = self.max_in_flight = 0
        self._random = random.Random(7)
        super().__init__((parts.hostname, parts.port), self._faulty)

    @property
    def node_url(self) -> str:
        return f"{self.url}/v1"

    def schedule(self, faults: Sequence[str | None]) -> None:
        """Let the next requests meet these faults."""
        self.queue += faults

    def clear(self) -> None:
        """Answer honestly from now on."""
        self.queue, self.rates, self.latency_s = [], {}, 0.0

    def _drawn(self) -> str | None:
        if self.queue:
            return self.queue.pop(0)
        share = self._random.random()
        for fault, rate in self.rates.items():
            if share < rate:
                return fault
            share -= rate
        return None

    async def _faulty(self, _: ProxiedRequest, honest: ProxiedAnswer) -> ProxiedAnswer | bytes | None:
        fault = self._drawn()
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        try:
            if self.latency_s:
                await asyncio.sleep(self.latency_s)
            if fault == "hang":
                await asyncio.Event().wait()
        finally:
            self.in_flight -= 1
        if fault == "cut":
            whole = honest.encoded()
            return Last(whole[: len(whole) - len(honest.body) // 2 - 1])
        if fault == "html":
            return ProxiedAnswer(
                502, {"content-type": "text/html"}, b"<html><body><h1>502 Bad Gateway</h1></body></html>"
            )
        return None if fault is None else refusal(fault, honest)


def refusal(fault: str, honest: ProxiedAnswer) -> ProxiedAnswer:
    """Return the documented error of an error code or a status."""
    code = _BY_STATUS.get(fault, fault)
    status = int(fault) if fault.isdigit() else STATUSES[code]
    body = {
        "message": f"{code}: a fault of the test",
        "error_code": code,
        "vm_error_code": 5 if code == "vm_error" else None,
    }
    headers = {"content-type": "application/json"} | ({"retry-after": "0"} if status == 429 else {})
    headers |= {name: value for name, value in honest.headers.items() if name.startswith("x-aptos-") and status != 429}
    return ProxiedAnswer(status, headers, json.dumps(body).encode())


@contextmanager
def faulty(url: str, **options: float) -> Iterator[FaultyNode]:
    """Yield a faulty node in front of the node at a URL."""
    node = FaultyNode(url, **options)
    try:
        yield node
    finally:
        node.close()
