"""The pace of one node: evenly spaced turns, and the pauses that it asks for, shared by everyone who asks it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from toolkit.client import forking

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Pace"]


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
