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
    origin : str
        Where the result is from, in words: the node, the ledger version and its time.
    """

    result: Any = None
    asked: Any = None
    unfinished: bool = False
    origin: str = ""

    def stale(self, wanted: Any, *, good: bool) -> str:
        """Return why the result is not that of the entries; empty if it is.

        `wanted` is what the entries ask for if they are good.
        """
        if self.result is None:
            return ""
        if not good or self.asked != wanted:
            return "From before your last change"
        return "From an earlier run" if self.unfinished else ""
