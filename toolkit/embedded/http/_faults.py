"""Faults on demand: failures of a network or a busy node, for tests and courses.

A `Faults` object can be changed while the node runs. Which request meets which fault depends only on a seed and the
number of the request, so tests are reproducible.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from toolkit._present.messages import shorten
from toolkit.embedded.http._messages import HttpAnswer, encode
from toolkit.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["FAULTS", "Fault", "Faults", "parse_fault", "parse_latency", "parse_schedule"]

FaultKind = Literal["429", "500", "503", "507", "cut", "hang", "html", "slow"]

FAULTS: dict[FaultKind, str] = {
    "429": "rate limited, with Retry-After",
    "500": "internal error",
    "503": "ledger info not available",
    "507": "mempool is full",
    "cut": "the connection closes in the middle of the answer",
    "hang": "the request is never answered",
    "html": "an HTML page of a gateway with status 502",
    "slow": "the body is sent in small pieces, within one second",
}
"""Effect of each kind of fault."""

_ERRORS: dict[FaultKind, tuple[str, str]] = {
    "500": ("internal_error", "Internal error, asked for by the embedded node's faults"),
    "503": ("internal_error", "Failed to retrieve latest ledger info"),
    "507": ("mempool_is_full", "Mempool is full"),
}
_HTML = (
    b"<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad Gateway</h1></center></body></html>"
)
_LATENCY = re.compile(r"(\d+(?:\.\d+)?)(ms|s)")
_TURN = re.compile(r"(?P<kind>\w+)(?:\*(?P<times>\d{1,6}))?", re.ASCII)
_MAX_TURNS = 100_000
_SCALE = 1 << 32


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault and the share of requests that meet it.

    Parameters
    ----------
    kind : {"429", "500", "503", "507", "cut", "hang", "html", "slow"}
        An error status; ``cut``: the connection closes in the middle of the answer; ``hang``: the request is never
        answered; ``html``: an HTML page with status 502; ``slow``: the body is sent in small pieces.
    rate : float, default 1
        Share of requests that meet the fault, 0 to 1.

    Raises
    ------
    InputError
        If the kind is unknown, or the rate is not a share.

    Examples
    --------
    >>> Fault("429", rate=0.05)
    Fault(kind='429', rate=0.05)
    """

    kind: FaultKind
    rate: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in FAULTS:
            raise InputError(f"unknown fault {self.kind!r}: expected one of {', '.join(FAULTS)}")
        if not 0 <= self.rate <= 1:
            raise InputError(f"fault {self.kind}: rate must be 0 to 1, got {self.rate}")


@dataclass
class Faults:
    """The faults of a node, and its latency.

    Parameters
    ----------
    latency_s : float, default 0
        Delay of every answer, seconds.
    rates : sequence of Fault, optional
        Faults that a share of requests meets.
    retry_after_s : int, default 1
        ``Retry-After`` of a 429, seconds.
    seed : int, default 0
        Decides which requests meet the faults of `rates`.

    Examples
    --------
    >>> faults = Faults(latency_s=0.02, rates=[Fault("429", rate=0.05)])
    >>> faults.next("503", times=3)
    >>> [faults.draw() for _ in range(4)]
    ['503', '503', '503', None]
    """

    latency_s: float = 0.0
    rates: Sequence[Fault] = ()
    retry_after_s: int = 1
    seed: int = 0
    _queue: list[FaultKind | None] = field(default_factory=list)
    _count: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def next(self, kind: FaultKind | None, *, times: int = 1) -> None:
        """Let the next requests meet a fault, regardless of the rates.

        Parameters
        ----------
        kind : str or None
            Kind of the fault; None lets the requests pass.
        times : int, default 1
            Number of requests.

        Raises
        ------
        InputError
            If the kind is unknown.
        """
        if kind is not None:
            Fault(kind)
        with self._lock:
            self._queue += [kind] * times

    def schedule(self, kinds: Sequence[FaultKind | None]) -> None:
        """Let the next requests meet these faults in order; None lets a request pass.

        Raises
        ------
        InputError
            If a kind is unknown.
        """
        for kind in kinds:
            self.next(kind)

    @property
    def scheduled(self) -> int:
        """Number of scheduled requests that the node has not received yet."""
        with self._lock:
            return len(self._queue)

    def clear(self) -> None:
        """Remove all faults and the latency."""
        with self._lock:
            self._queue.clear()
            self.rates, self.latency_s = (), 0.0

    def draw(self) -> FaultKind | None:
        """Return the fault the next request meets, or None."""
        with self._lock:
            if self._queue:
                return self._queue.pop(0)
            if not self.rates:
                return None
            self._count += 1
            number = f"{self.seed}:{self._count}".encode()
        share = int.from_bytes(hashlib.blake2b(number, digest_size=4).digest(), "big") / _SCALE
        for fault in self.rates:
            if share < fault.rate:
                return fault.kind
            share -= fault.rate
        return None

    async def wait(self) -> None:
        """Wait for the latency."""
        if self.latency_s:
            await asyncio.sleep(self.latency_s)

    def answer(self, kind: FaultKind) -> HttpAnswer | None:
        """Return the answer that replaces the node's, or None for a fault that changes how the answer is sent."""
        if kind == "429":
            body = {"message": "Rate limit exceeded", "error_code": "rate_limited", "vm_error_code": None}
            headers = {"retry-after": str(self.retry_after_s)}
            return HttpAnswer(encode(body), 429, with_ledger=False, headers=headers)
        if kind == "html":
            return HttpAnswer(_HTML, 502, media_type="text/html", with_ledger=False)
        if kind not in _ERRORS:
            return None
        code, message = _ERRORS[kind]
        body = {"message": message, "error_code": code, "vm_error_code": None}
        return HttpAnswer(encode(body), int(kind), with_ledger=False)


def parse_fault(text: str) -> Fault:
    """Parse a fault in the form of the command line.

    Parameters
    ----------
    text : str
        ``KIND:RATE`` or ``KIND``, such as ``429:0.05`` (5 % of requests) or ``cut`` (all requests).

    Returns
    -------
    Fault

    Raises
    ------
    InputError
        If the kind is unknown, or the rate is not a share.

    Examples
    --------
    >>> parse_fault("429:0.05")
    Fault(kind='429', rate=0.05)
    """
    kind, _, rate = text.partition(":")
    try:
        share = float(rate) if rate else 1.0
    except ValueError:
        raise InputError(f"fault {text!r}: expected KIND or KIND:RATE with a rate from 0 to 1") from None
    return Fault(kind, share)  # type: ignore[arg-type]  # checked by the class


def parse_schedule(text: str) -> list[FaultKind | None]:
    """Parse the faults of the first requests, in the form of the command line.

    Parameters
    ----------
    text : str
        Kinds separated by commas, each optionally repeated by ``*N``; ``ok`` lets a request pass: ``503*3,ok,cut``.

    Returns
    -------
    list of str or None
        One item per request, for `Faults.schedule`.

    Raises
    ------
    InputError
        If a part is not a kind, or N is above 100,000.

    Examples
    --------
    >>> parse_schedule("503*2,ok,cut")
    ['503', '503', None, 'cut']
    """
    kinds: list[FaultKind | None] = []
    for part in text.split(","):
        match = _TURN.fullmatch(part.strip())
        if match is None or int(match["times"] or 1) > _MAX_TURNS:
            raise InputError(
                f"first faults: expected KIND or KIND*N with N up to {_MAX_TURNS}, such as 503*3,ok,cut; "
                f"got {shorten(part.strip(), 40)}"
            )
        kind = None if match["kind"] == "ok" else Fault(match["kind"]).kind  # type: ignore[arg-type]  # checked by the class
        kinds += [kind] * int(match["times"] or 1)
    return kinds


def parse_latency(text: str) -> float:
    """Parse a latency in the form of the command line.

    Parameters
    ----------
    text : str
        A number with a unit, such as ``20ms`` or ``1.5s``.

    Returns
    -------
    float
        Seconds.

    Raises
    ------
    InputError
        If the text is not a number with ``ms`` or ``s``.

    Examples
    --------
    >>> parse_latency("20ms")
    0.02
    """
    match = _LATENCY.fullmatch(text.strip())
    if match is None:
        raise InputError(f"latency {text!r}: expected a number with ms or s, such as 20ms")
    return float(match[1]) / (1000 if match[2] == "ms" else 1)
