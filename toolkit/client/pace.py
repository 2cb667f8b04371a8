"""The pace of one node: evenly spaced turns, shared by everyone who asks it."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

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
    """

    def __init__(self, per_second: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._gap_s = 1.0 / per_second if per_second else 0.0
        self._clock = clock
        self._next = 0.0
        self._lock = threading.Lock()

    def turn_s(self) -> float:
        """Take the next turn and return the seconds until it."""
        if not self._gap_s:
            return 0.0
        with self._lock:
            now = self._clock()
            turn = max(self._next, now)
            self._next = turn + self._gap_s
            return turn - now
