"""Inject failures of a network or of a busy node, for tests and courses.

A `Faults` object can be changed while the node runs. The fault of a request depends only on a seed and on the request's
number, which makes tests reproducible.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolkit._present.messages import shorten
from toolkit.embedded.http._messages import ApiError, HttpAnswer
from toolkit.errors import InputError
from toolkit.wire._aborts import VM_STATUS_CODES
from toolkit.wire._responses import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Sequence


# Error codes by the status with which a node sends them; all other codes report a missing item, with status 404.
_CODES = {
    400: (
        "bcs_not_supported invalid_input invalid_transaction_update sequence_number_too_old vm_error "
        "web_framework_error"
    ),
    403: "api_disabled",
    410: "version_pruned block_pruned",
    429: "rate_limited",
    500: "rejected_by_filter internal_error",
    503: "health_check_failed",
    507: "mempool_is_full",
}
_STATUS = {ErrorCode(code): status for status, codes in _CODES.items() for code in codes.split()}
# Errors that a node finds without its ledger have no ledger headers.
_WITHOUT_LEDGER = {
    *(ErrorCode.MEMPOOL_IS_FULL, ErrorCode.RATE_LIMITED, ErrorCode.INTERNAL_ERROR, ErrorCode.WEB_FRAMEWORK_ERROR),
    *(ErrorCode.BCS_NOT_SUPPORTED, ErrorCode.API_DISABLED),
}
# Error code and status by kind of fault.
_REFUSALS = {code.value: (code, _STATUS.get(code, 404)) for code in ErrorCode} | {
    "429": (ErrorCode.RATE_LIMITED, 429),
    "500": (ErrorCode.INTERNAL_ERROR, 500),
    "503": (ErrorCode.INTERNAL_ERROR, 503),
    "507": (ErrorCode.MEMPOOL_IS_FULL, 507),
}
_NO_BALANCE = "INSUFFICIENT_BALANCE_FOR_TRANSACTION_FEE"

FAULTS: dict[str, str] = {
    "429": "rate limited, with Retry-After",
    "500": "internal error",
    "503": "ledger info not available",
    "507": "mempool is full",
    "cut": "the connection closes in the middle of the response",
    "hang": "the request is never answered",
    "html": "an HTML page from a gateway, with status 502",
    "slow": "the body is sent in small pieces, within one second",
    **{code.value: f"status {_REFUSALS[code.value][1]} with this error code" for code in ErrorCode},
}
"""Effect of each kind of fault."""

_HTML = (
    b"<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad Gateway</h1></center></body></html>"
)
_LATENCY = re.compile(r"(\d+(?:\.\d+)?)(ms|s)")
_TURN = re.compile(r"(?P<kind>\w+)(?:\*(?P<times>\d{1,6}))?", re.ASCII)
_MAX_TURNS = 100_000  # each turn is an entry of a list
_SCALE = 1 << 32  # of the four bytes of a digest, which become a share in [0, 1)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault to inject, the share of requests that it affects, and the endpoint.

    Parameters
    ----------
    kind : str
        An error code of the REST API such as ``version_pruned``, which is sent with the status that a node uses; an
        error status (``429``, ``500``, ``503``, ``507``); ``cut`` (the connection closes in the middle of the
        response); ``hang`` (the request is never answered); ``html`` (an HTML page with status 502); or ``slow`` (the
        body is sent in small pieces).
    rate : float, default 1
        Share of requests that are affected, from 0 to 1.
    path : str, default ""
        Prefix of the affected paths below ``/v1``, such as ``/view``; by default, all paths.

    Raises
    ------
    InputError
        If the kind is unknown, the rate is not between 0 and 1, or the path does not start with a slash.

    Examples
    --------
    >>> Fault("429", rate=0.05).rate
    0.05
    >>> Fault("invalid_input", path="/view").kind
    'invalid_input'
    """

    kind: str
    rate: float = 1.0
    path: str = ""

    def __post_init__(self) -> None:
        if self.kind not in FAULTS:
            raise InputError(f"unknown fault {self.kind!r}: expected one of {', '.join(FAULTS)}")
        if not 0 <= self.rate <= 1:
            raise InputError(f"fault {self.kind}: rate must be from 0 to 1, got {self.rate}")
        if self.path and not self.path.startswith("/"):
            raise InputError(f"fault {self.kind}: path must start with a slash, such as /view; got {self.path!r}")


@dataclass
class Faults:
    """The faults and the latency that a node injects.

    Parameters
    ----------
    latency_s : float, default 0
        Delay of every response, in seconds.
    rates : sequence of Fault, optional
        Faults that affect a share of the requests.
    retry_after_s : int, default 1
        ``Retry-After`` of a 429 response, in seconds.
    seed : int, default 0
        Determines which requests the faults in `rates` affect.

    Examples
    --------
    >>> faults = Faults(latency_s=0.02, rates=[Fault("429", rate=0.05)])
    >>> faults.next("503", times=3)
    >>> [faults.draw().kind for _ in range(3)], faults.draw()
    (['503', '503', '503'], None)
    """

    latency_s: float = 0.0
    rates: Sequence[Fault] = ()
    retry_after_s: int = 1
    seed: int = 0
    _queue: list[Fault | None] = field(default_factory=list)
    _count: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def next(self, kind: str | Fault | None, *, times: int = 1) -> None:
        """Inject a fault into the next requests, regardless of the rates.

        Parameters
        ----------
        kind : str, Fault or None
            The fault; a fault with a path affects the next requests to that path. None lets the requests pass.
        times : int, default 1
            Number of requests.

        Raises
        ------
        InputError
            If the kind is unknown.
        """
        fault = kind if kind is None or isinstance(kind, Fault) else Fault(kind)
        with self._lock:
            self._queue += [fault] * times

    def schedule(self, kinds: Sequence[str | Fault | None]) -> None:
        """Inject these faults into the next requests, in order; None lets a request pass.

        Raises
        ------
        InputError
            If a kind is unknown.
        """
        for kind in kinds:
            self.next(kind)

    def clear(self) -> None:
        """Remove all faults and the latency."""
        with self._lock:
            self._queue.clear()
            self.rates, self.latency_s = (), 0.0

    def draw(self, path: str = "") -> Fault | None:
        """Return the fault for the next request, or None.

        Parameters
        ----------
        path : str, default ""
            Path of the request below ``/v1``.

        Returns
        -------
        Fault or None
        """
        with self._lock:
            for place, scheduled in enumerate(self._queue):
                if scheduled is None or path.startswith(scheduled.path):
                    return self._queue.pop(place)
            if not self.rates:
                return None
            self._count += 1
            number = f"{self.seed}:{self._count}".encode()
        share = int.from_bytes(hashlib.blake2b(number, digest_size=4).digest(), "big") / _SCALE
        for fault in self.rates:
            if share < fault.rate:
                return fault if path.startswith(fault.path) else None
            share -= fault.rate
        return None

    async def wait(self) -> None:
        """Wait for the latency, if any; a client that has half-closed would miss the response after ``sleep(0)``."""
        if self.latency_s:
            await asyncio.sleep(self.latency_s)

    def answer(self, fault: Fault) -> HttpAnswer | None:
        """Return the response of a fault, or None if the fault only changes how the node's response is sent."""
        if fault.kind == "html":
            return HttpAnswer(_HTML, 502, media_type="text/html", with_ledger=False)
        if fault.kind not in _REFUSALS:
            return None
        code, status = _REFUSALS[fault.kind]
        message, vm_error_code = f"{code.value}: a fault injected by the embedded node", None
        if code == ErrorCode.VM_ERROR:
            message = f"Invalid transaction: Type: Validation Code: {_NO_BALANCE}"
            vm_error_code = VM_STATUS_CODES[_NO_BALANCE]
        headers = {"retry-after": str(self.retry_after_s)} if code == ErrorCode.RATE_LIMITED else {}
        has_ledger = code not in _WITHOUT_LEDGER
        error = ApiError(status, code, message, vm_error_code=vm_error_code, with_ledger=has_ledger, headers=headers)
        return error.answer()


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
        If the kind is unknown, or the rate is not between 0 and 1.

    Examples
    --------
    >>> parse_fault("429:0.05").rate
    0.05
    """
    kind, _, rate = text.partition(":")
    try:
        share = float(rate) if rate else 1.0
    except ValueError:
        raise InputError(f"fault {text!r}: expected KIND or KIND:RATE with a rate from 0 to 1") from None
    return Fault(kind, share)


def parse_schedule(text: str) -> list[str | None]:
    """Parse the faults of the first requests, in the form of the command line.

    Parameters
    ----------
    text : str
        Kinds separated by commas, such as ``503*3,ok,cut``. ``*N`` repeats a kind, and ``ok`` lets a request pass.

    Returns
    -------
    list of str or None
        One item per request, for `Faults.schedule`.

    Raises
    ------
    InputError
        If a kind is unknown, or N is above 100,000.

    Examples
    --------
    >>> parse_schedule("503*2,ok,cut")
    ['503', '503', None, 'cut']
    """
    kinds: list[str | None] = []
    for part in text.split(","):
        match = _TURN.fullmatch(part.strip())
        if match is None or int(match["times"] or 1) > _MAX_TURNS:
            raise InputError(
                f"first faults: expected KIND or KIND*N with N up to {_MAX_TURNS:,}, such as 503*3,ok,cut; "
                f"got {shorten(part.strip(), 40)}"
            )
        kind = None if match["kind"] == "ok" else Fault(match["kind"]).kind
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
