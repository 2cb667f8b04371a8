"""When to try again, and how long to wait: pure decisions, no clock and no sleep."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["RetryPolicy", "node_pause_s", "resume_time", "retry_after_s"]

_ALWAYS = frozenset({429, 502, 503, 504})
_SERVER_ERROR = 500
_ASKS_ALL_TO_WAIT = frozenset({429, 503})
_DIGITS = 9
MAX_RETRY_AFTER_S = 366 * 86_400
"""Longest wait that a ``Retry-After`` counts as, in seconds."""


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
