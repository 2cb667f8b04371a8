"""The result that a form shows, and whether it is older than the entries."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Shown(Struct, frozen=True):
    """A result, and what it answers; it stays while a later run is refused, cancelled or in progress.

    Attributes
    ----------
    result : object or None
    asked : object
        What the form asked for to get it.
    unfinished : bool
        Whether a later run has not ended with a result.
    """

    result: Any = None
    asked: Any = None
    unfinished: bool = False

    def is_older(self, wanted: Any, *, good: bool) -> bool:
        """Return whether the result is not that of the entries: `wanted` is what they ask for if they are good."""
        return self.result is not None and (self.unfinished or not good or self.asked != wanted)
