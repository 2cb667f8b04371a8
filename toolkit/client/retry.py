"""How often, how fast and when again: repeats of failed requests, the pace of one node, and rests after outages."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Generic, TypeVar

from toolkit.client import forking
from toolkit.errors import NodeError, NodeUnreachable, OfflineMiss, VersionPruned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["Outages", "Pace", "RetryPolicy", "is_outage", "node_pause_s", "resume_time", "retry_after_s"]

_ALWAYS = frozenset({429, 502, 503, 504})
_SERVER_ERROR = 500
_ASKS_ALL_TO_WAIT = frozenset({429, 503})
_DIGITS = 9
MAX_RETRY_AFTER_S = 366 * 86_400
"""Longest wait that a ``Retry-After`` counts as, in seconds."""
K = TypeVar("K")

_REST_S = 30.0
"""Seconds for which something that failed is not asked again, at the least."""
_REST_PER_WAIT = 10.0
"""The rest as a multiple of what the failure took, so that asking again costs a tenth of a sweep's time at most."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a failed request is repeated.

    The wait before repeat n (counted from 1) is uniform in [0.5, 1] of ``min(cap_s, base_s * 2**(n - 1))``,
    or what the node's ``Retry-After`` asks for if that is longer. The ``Retry-After`` of a 429 or 503 holds for all
    requests to the node: within `budget_s` they wait, beyond it none is sent until then.

    Attributes
    ----------
    attempts : int
        Requests in all, the first included.
    base_s, cap_s : float
        First and largest wait, in seconds.
    budget_s : float
        Longest sum of all waits of one request, in seconds.
    """

    attempts: int = 5
    base_s: float = 0.25
    cap_s: float = 8.0
    budget_s: float = 60.0

    def may_repeat(self, status: int | None, *, repeat: int, text: str = "") -> bool:
        """Tell whether a failed request may be sent again.

        Parameters
        ----------
        status : int or None
            HTTP status; None where no answer came.
        repeat : int
            Which repeat this would be, counted from 1.
        text : str
            The node's message. A 500 that speaks of deserialising fails the same way each time.

        Returns
        -------
        bool
        """
        if repeat >= self.attempts:
            return False
        if status is None or status in _ALWAYS:
            return True
        return status == _SERVER_ERROR and repeat == 1 and "deseriali" not in text.lower()

    def wait_s(self, *, repeat: int, chance: float, asked_s: float | None = None) -> float:
        """Return the wait before repeat number `repeat`, in seconds.

        Parameters
        ----------
        repeat : int
            Counted from 1.
        chance : float
            A random number in [0, 1): the jitter.
        asked_s : float or None
            What the node asked for by ``Retry-After``.

        Returns
        -------
        float
        """
        backoff = min(self.cap_s, self.base_s * 2.0 ** (repeat - 1)) * (0.5 + 0.5 * chance)
        return backoff if asked_s is None else max(backoff, asked_s)


def retry_after_s(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """Return the seconds a ``Retry-After`` header asks for, or None if there is none that can be read.

    Parameters
    ----------
    headers : mapping of str to str
        Names in any case.
    now : datetime, optional
        Reference for the date form; the present moment by default.

    Returns
    -------
    float or None
        From 0 to 366 days. A date that has passed is 0; a negative number is not a wait and counts as none.
    """
    text = next((value for name, value in headers.items() if name.lower() == "retry-after"), "").strip()
    if text.isascii() and text.isdigit():
        text = text.lstrip("0") or "0"  # int() refuses thousands of digits
        return float(min(int(text), MAX_RETRY_AFTER_S) if len(text) <= _DIGITS else MAX_RETRY_AFTER_S)
    try:
        when = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return min(max(0.0, (when - (now or datetime.now(UTC))).total_seconds()), MAX_RETRY_AFTER_S)


def node_pause_s(status: int, headers: Mapping[str, str]) -> float | None:
    """Return the seconds for which a node asks to be sent nothing: the ``Retry-After`` of a 429 or 503, else None."""
    return (retry_after_s(headers) or None) if status in _ASKS_ALL_TO_WAIT else None


def resume_time(wait_s: float, *, now: datetime | None = None) -> str:
    """Return when a wait is over, for texts: ``2026-05-01 12:00:07 UTC``."""
    return f"{(now or datetime.now(UTC)) + timedelta(seconds=wait_s + 1):%Y-%m-%d %H:%M:%S} UTC"


class Pace:
    """Turns to send a request. Usable from several threads.

    Parameters
    ----------
    per_second : float, optional
        Most turns per second; None is no limit.
    clock : callable, optional
        Seconds that only grow; replaced in tests.

    Attributes
    ----------
    held : bool
        Whether the node ever asked for a wait; if not, there is nothing to ask this object about pauses.
    """

    def __init__(self, per_second: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._gap_s = 1.0 / per_second if per_second else 0.0
        self._clock = clock
        self._next = 0.0
        self.held = False
        self._paused_until = self._refused_until = float("-inf")
        self._asked_since: float | None = None
        self._lock = forking.lock()

    def turn_s(self) -> float:
        """Take the next turn and return the seconds until it, pauses included."""
        if not self._gap_s:
            return self.paused_s() if self.held else 0.0
        with self._lock:
            now = self._clock()
            turn = max(self._next, now, self._paused_until)
            self._next = turn + self._gap_s
            return turn - now

    def hold(self, seconds: float, *, budget_s: float) -> None:
        """Hold back every request, because the node asked for it.

        Parameters
        ----------
        seconds : float
            The wait that the node asked for.
        budget_s : float
            Longest time of such waits without an answer between them. Within it requests wait; beyond it none is to be
            sent until the wait is over, see `refused_s`.
        """
        with self._lock:
            self.held = True
            now = self._clock()
            if self._asked_since is None:
                self._asked_since = now
            until = now + seconds
            if until - self._asked_since <= budget_s:
                self._paused_until = max(self._paused_until, until)
            else:
                self._refused_until = max(self._refused_until, until)

    def answered(self) -> None:
        """Note that the node answered without asking for a wait."""
        self._asked_since = None

    def paused_s(self) -> float:
        """Return the seconds until requests may be sent."""
        return self._left_s(self._paused_until)

    def refused_s(self) -> float:
        """Return the seconds in which no request is to be sent, nor waited for; 0 if there is no such limit."""
        return self._left_s(self._refused_until)

    def _left_s(self, until: float) -> float:
        return max(0.0, until - self._clock()) if self.held else 0.0


def is_outage(error: Exception) -> bool:
    """Return whether an error says that something cannot answer now, rather than what the answer is."""
    if isinstance(error, NodeError):
        if isinstance(error, VersionPruned):
            return False
        return error.status >= HTTPStatus.INTERNAL_SERVER_ERROR or error.status == HTTPStatus.TOO_MANY_REQUESTS
    return isinstance(error, NodeUnreachable) and not isinstance(error, OfflineMiss)


class Outages(Generic[K]):
    """What failed when it was last asked, by key.

    Parameters
    ----------
    clock : callable, optional
        Seconds; replaced in tests.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failed: dict[K, tuple[NodeError | NodeUnreachable, float]] = {}

    @contextmanager
    def noted(self, key: K) -> Iterator[None]:
        """Remember an outage that the block raises; a block that does not ends the one before."""
        began = self._clock()
        try:
            yield
        except (NodeError, NodeUnreachable) as error:
            if is_outage(error):
                self.note(key, error, took_s=self._clock() - began)
            raise
        self._failed.pop(key, None)

    def note(self, key: K, error: NodeError | NodeUnreachable, *, took_s: float = 0.0) -> None:
        """Remember an outage from now on."""
        self._failed[key] = error, self._clock() + max(_REST_S, _REST_PER_WAIT * took_s)

    def resting(self, key: K) -> NodeError | NodeUnreachable | None:
        """Return why `key` is not to be asked now, None if it may be."""
        error, until = self._failed.get(key, (None, 0.0))
        return error if error is not None and self._clock() < until else None

    def all_resting(self) -> list[NodeError | NodeUnreachable]:
        """Return why each of the keys that are not to be asked now failed."""
        return [error for key in list(self._failed) if (error := self.resting(key)) is not None]

    def last(self, key: K) -> NodeError | NodeUnreachable | None:
        """Return the outage of `key` that no answer has ended yet, whether or not it may be asked again."""
        found = self._failed.get(key)
        return None if found is None else found[0]

    def ask_again(self) -> list[K]:
        """End every rest, so that each key may be asked once more; return the keys."""
        self._failed = {key: (error, float("-inf")) for key, (error, _) in self._failed.items()}
        return list(self._failed)
