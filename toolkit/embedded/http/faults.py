"""Faults on demand: what a network and a busy node do to a client, for tests and classes.

A `Faults` object sits in front of a node; change it while the node runs. Which request meets which fault follows
from a seed and the request's number, so a test can rely on it.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from toolkit.embedded.http.messages import HttpAnswer, encode
from toolkit.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["FAULTS", "Fault", "Faults", "parse_fault", "parse_latency", "parse_schedule"]

FaultKind = Literal["429", "500", "503", "507", "cut", "hang", "html", "slow"]

#: What each kind does.
FAULTS: dict[FaultKind, str] = {
    "429": "rate limited, with Retry-After",
    "500": "internal error",
    "503": "ledger info not available",
    "507": "mempool is full",
    "cut": "the connection ends in the middle of the answer",
    "hang": "no answer ever comes",
    "html": "a gateway's HTML page with status 502",
    "slow": "the body comes in small pieces, a second in all",
}
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
_MOST_TURNS = 100_000
_SCALE = 1 << 32


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Parameters
    ----------
    kind : str
        A key of `FAULTS`.
    rate : float, default 1
        Share of requests that meet it, 0 to 1.
    """

    kind: FaultKind
    rate: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in FAULTS:
            raise InputError(f"unknown fault {self.kind!r}; there are {', '.join(FAULTS)}")
        if not 0 <= self.rate <= 1:
            raise InputError(f"fault {self.kind}: the rate is a share from 0 to 1, got {self.rate}")


@dataclass
class Faults:
    """What goes wrong, and how often.

    Parameters
    ----------
    latency_s : float, default 0
        Seconds every answer waits.
    rates : sequence of Fault, optional
        Faults that meet a share of requests.
    retry_after_s : int, default 1
        What a 429 asks to wait, seconds.
    seed : int, default 0
        Which requests are met.

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
        """Let the next requests meet a fault, whatever the rates; None lets them pass."""
        if kind is not None:
            Fault(kind)
        with self._lock:
            self._queue += [kind] * times

    def schedule(self, kinds: Sequence[FaultKind | None]) -> None:
        """Let the next requests meet these faults in turn; None lets one pass."""
        for kind in kinds:
            self.next(kind)

    def clear(self) -> None:
        """End all faults and the latency."""
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
        """Wait out the latency."""
        if self.latency_s:
            await asyncio.sleep(self.latency_s)

    def answer(self, kind: FaultKind) -> HttpAnswer | None:
        """Return the answer of a fault that replaces the node's own, or None for one that spoils it."""
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
    """Read a fault as the command line takes it.

    Parameters
    ----------
    text : str
        ``429:0.05`` (5 % of requests) or ``cut`` (all).

    Raises
    ------
    InputError
        If it is neither.
    """
    kind, _, rate = text.partition(":")
    try:
        share = float(rate) if rate else 1.0
    except ValueError:
        raise InputError(f"fault {text!r}: expected KIND or KIND:RATE with a rate from 0 to 1") from None
    return Fault(kind, share)  # type: ignore[arg-type]  # checked by the class


def parse_schedule(text: str) -> list[FaultKind | None]:
    """Read faults of the first requests in turn, as the command line takes them.

    Parameters
    ----------
    text : str
        ``503*3,ok,cut``: kinds by commas, each as often as its ``*N`` says; ``ok`` lets a request pass.

    Raises
    ------
    InputError
        If a part is none.

    Examples
    --------
    >>> parse_schedule("503*2,ok,cut")
    ['503', '503', None, 'cut']
    """
    kinds: list[FaultKind | None] = []
    for part in text.split(","):
        match = _TURN.fullmatch(part.strip())
        if match is None or int(match["times"] or 1) > _MOST_TURNS:
            raise InputError(
                f"first faults: {part.strip()[:40]!r} is not KIND or KIND*N with N up to {_MOST_TURNS}; write "
                "them like 503*3,ok,cut"
            )
        kind = None if match["kind"] == "ok" else Fault(match["kind"]).kind  # type: ignore[arg-type]  # checked by the class
        kinds += [kind] * int(match["times"] or 1)
    return kinds


def parse_latency(text: str) -> float:
    """Read a time as the command line takes it, ``20ms`` or ``1.5s``; returns seconds.

    Raises
    ------
    InputError
        If it is no such time.
    """
    match = _LATENCY.fullmatch(text.strip())
    if match is None:
        raise InputError(f"latency {text!r}: expected a number with ms or s, such as 20ms")
    return float(match[1]) / (1000 if match[2] == "ms" else 1)
