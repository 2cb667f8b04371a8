"""Which failed requests are sent again and when: retries, pace, and rests after outages. Pure, without I/O."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Generic, TypeVar

from toolkit.errors import HopelessError, NodeError, NodeUnreachable, OfflineMiss, RateLimited, VersionPruned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from toolkit.client._http import Answer


ALWAYS = frozenset({429, 502, 503, 504})
_PAUSES_ALL = frozenset({429, 503})
# Number of bytes of an error's body that are searched for reasons not to send the request again.
_MAX_TEXT_BYTES = 4096
K = TypeVar("K")
# Minimum time for which something that failed is not tried again, in seconds.
_MIN_REST_S = 30.0
# The rest as a multiple of the duration of the failure, so that trying again costs at most a tenth of the time.
_REST_PER_WAIT = 10.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Which failed requests are sent again, and after which wait.

    The wait before repeat n (counted from 1) is uniform in [0.5, 1] times ``min(cap_s, base_s * 2**(n - 1))``, or the
    node's ``Retry-After`` if that is longer. The ``Retry-After`` of a 429 or 503 applies to all requests to the node:
    up to `budget_s` they wait, above it none is sent until that time.

    Parameters
    ----------
    attempts : int
        Maximum number of times that a request is sent.
    base_s, cap_s : float
        First and largest wait, in seconds.
    budget_s : float
        Maximum sum of the waits of one request, in seconds.

    Examples
    --------
    >>> retry = RetryPolicy()
    >>> retry.may_repeat(503, repeat=1), retry.may_repeat(404, repeat=1)
    (True, False)
    """

    attempts: int = 5
    base_s: float = 0.25
    cap_s: float = 8.0
    budget_s: float = 60.0

    def may_repeat(self, status: int | None, *, repeat: int, text: str = "") -> bool:
        """Return whether a failed request may be sent again.

        Parameters
        ----------
        status : int or None
            HTTP status; None without an answer.
        repeat : int
            Number of the repeat, counted from 1.
        text : str
            The node's message. A 500 about deserialization fails the same way each time.

        Returns
        -------
        bool
        """
        if repeat >= self.attempts:
            return False
        if status is None or status in ALWAYS:
            return True
        return status == HTTPStatus.INTERNAL_SERVER_ERROR and repeat == 1 and "deseriali" not in text.lower()

    def wait_s(self, *, repeat: int, chance: float, asked_s: float | None = None) -> float:
        """Return the wait before repeat number `repeat`, in seconds.

        Parameters
        ----------
        repeat : int
            Counted from 1.
        chance : float
            A random number in [0, 1), for the jitter.
        asked_s : float or None
            Seconds of the node's ``Retry-After``.

        Returns
        -------
        float
        """
        backoff = min(self.cap_s, self.base_s * 2.0 ** (repeat - 1)) * (0.5 + 0.5 * chance)
        return backoff if asked_s is None else max(backoff, asked_s)

    def pause_s(
        self,
        outcome: Answer | NodeUnreachable,
        *,
        repeat: int,
        waited_s: float,
        chance: float,
        also_repeat: Callable[[Answer], bool] | None = None,
    ) -> float | None:
        """Return the wait before a failed request is sent again, or None if it is not sent again.

        Parameters
        ----------
        outcome : Answer or NodeUnreachable
            An error answer, or why none was received.
        repeat : int
            Number of the repeat, counted from 1.
        waited_s : float
            Sum of the waits of this request so far, in seconds.
        chance : float
            A random number in [0, 1), for the jitter.
        also_repeat : callable (Answer) -> bool, optional
            Error answers that are repeated besides those of `may_repeat`, within the same attempts and budget.

        Returns
        -------
        float or None
            In seconds.
        """
        asked_s = None
        if isinstance(outcome, NodeUnreachable):
            again = not isinstance(outcome, HopelessError) and self.may_repeat(None, repeat=repeat)
        else:
            text = outcome.body[:_MAX_TEXT_BYTES].decode("utf-8", "replace")
            again = self.may_repeat(outcome.status, repeat=repeat, text=text)
            if not again and also_repeat is not None and repeat < self.attempts:
                again = also_repeat(outcome)
            asked_s = outcome.retry_after_s
        pause_s = self.wait_s(repeat=repeat, chance=chance, asked_s=asked_s)
        return pause_s if again and waited_s + pause_s <= self.budget_s else None


def node_pause_s(answer: Answer) -> float | None:
    """Return the seconds for which a node asks all clients to pause: the ``Retry-After`` of a 429 or 503, else None."""
    return (answer.retry_after_s or None) if answer.status in _PAUSES_ALL else None


def resume_time(wait_s: float, *, now: datetime | None = None) -> str:
    """Return when a wait ends, for messages: ``2026-05-01 12:00:07 UTC``."""
    return f"{(now or datetime.now(UTC)) + timedelta(seconds=wait_s + 1):%Y-%m-%d %H:%M:%S} UTC"


class Pace:
    """The times at which requests to one node are sent: evenly spaced, with the pauses that the node asks for.

    Several threads may share it.

    Parameters
    ----------
    per_second : float, optional
        Maximum number of requests per second; None for no limit.
    clock : callable, optional
        Monotonic time in seconds; tests pass their own.

    Attributes
    ----------
    held : bool
        Whether the node has ever asked for a pause. If not, `paused_s` and `refused_s` are 0.
    """

    def __init__(self, per_second: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._gap_s = 1.0 / per_second if per_second else 0.0
        self._clock = clock
        self._next = 0.0
        self.held = False
        self._paused_until = self._refused_until = float("-inf")
        self._asked_since: float | None = None
        self._lock = threading.Lock()

    def turn_s(self) -> float:
        """Take the next turn to send a request; return the seconds until then, pauses included."""
        if not self._gap_s:
            return self.paused_s() if self.held else 0.0
        with self._lock:
            now = self._clock()
            turn = max(self._next, now, self._paused_until)
            self._next = turn + self._gap_s
            return turn - now

    def hold(self, seconds: float, *, budget_s: float) -> None:
        """Hold back all requests, because the node asked for a pause.

        Parameters
        ----------
        seconds : float
            Length of the pause.
        budget_s : float
            Maximum total length of successive pauses without an answer in between. Up to it requests wait; above it
            they are refused until the pause ends, see `refused_s`.
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
        """Record an answer that does not ask for a pause."""
        self._asked_since = None

    def note_answer(self, answer: Answer, *, budget_s: float) -> None:
        """Record an answer, and `hold` if it asks for a pause."""
        node_s = node_pause_s(answer)
        if node_s is None:
            self.answered()
        else:
            self.hold(node_s, budget_s=budget_s)

    def paused_s(self) -> float:
        """Return the seconds for which requests have to wait."""
        return self._left_s(self._paused_until)

    def refused_s(self) -> float:
        """Return the seconds for which requests are neither sent nor wait, because the pause is too long; else 0."""
        return self._left_s(self._refused_until)

    def _left_s(self, until: float) -> float:
        return max(0.0, until - self._clock()) if self.held else 0.0


def is_outage(error: Exception) -> bool:
    """Return whether an error means that the node cannot answer now: 429, 5xx or no answer."""
    if isinstance(error, NodeError):
        if isinstance(error, VersionPruned):
            return False
        return error.status >= HTTPStatus.INTERNAL_SERVER_ERROR or error.status == HTTPStatus.TOO_MANY_REQUESTS
    return isinstance(error, NodeUnreachable) and not isinstance(error, OfflineMiss)


class Outages(Generic[K]):
    """Remembers what failed, by key, so that not every call that depends on it waits for its retries.

    Parameters
    ----------
    clock : callable, optional
        Monotonic time in seconds; tests pass their own.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failed: dict[K, tuple[NodeError | NodeUnreachable, float]] = {}

    @contextmanager
    def noted(self, key: K) -> Iterator[None]:
        """Record an outage that the block raises; if it raises none, the outage of `key` has ended."""
        started = self._clock()
        try:
            yield
        except (NodeError, NodeUnreachable) as error:
            if is_outage(error):
                self.note(key, error, took_s=self._clock() - started)
            raise
        self._failed.pop(key, None)

    def note(self, key: K, error: NodeError | NodeUnreachable, *, took_s: float = 0.0) -> None:
        """Record an outage that begins now."""
        self._failed[key] = error, self._clock() + max(_MIN_REST_S, _REST_PER_WAIT * took_s)

    def resting(self, key: K) -> NodeError | NodeUnreachable | None:
        """Return the outage because of which `key` is not tried now, or None if it may be tried."""
        error, until = self._failed.get(key, (None, 0.0))
        return error if error is not None and self._clock() < until else None

    def all_resting(self) -> list[NodeError | NodeUnreachable]:
        """Return the outages of all keys that are not tried now."""
        return [error for key in list(self._failed) if (error := self.resting(key)) is not None]

    def last(self, key: K) -> NodeError | NodeUnreachable | None:
        """Return the outage of `key` that no answer has ended yet, whether or not it may be tried again."""
        found = self._failed.get(key)
        return None if found is None else found[0]

    def ask_again(self) -> list[K]:
        """End every rest, so that each key may be tried again; return the keys."""
        self._failed = {key: (error, float("-inf")) for key, (error, _) in self._failed.items()}
        return list(self._failed)


def not_sent(what: str, wait_s: float) -> RateLimited:
    """Return the exception for a call that was not sent, because the node asked for a long wait.

    Parameters
    ----------
    what : str
        The call or its address, for the message.
    wait_s : float
        Remaining seconds of the wait.
    """
    message = f"the node asked clients to back off until {resume_time(wait_s)} (Retry-After)"
    return RateLimited(
        f"{what}: not sent, {message}; go on then, or connect() again to ask it sooner",
        status=HTTPStatus.TOO_MANY_REQUESTS,
        error_code="rate_limited",
        message=f"not sent: {message}",
        retry_after_s=wait_s,
    )
