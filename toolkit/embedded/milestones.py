"""What changed the cost or meaning of calls in a ledger's history: the truth that studies are tested against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Milestone", "MilestoneKind"]

MilestoneKind = Literal["schedule", "code", "config", "state", "mixed"]


@dataclass(frozen=True, slots=True)
class Milestone:
    """Something in a ledger's history that changed what calls cost or do.

    Parameters
    ----------
    version : int
        Ledger version of the one transaction that did it.
    kind : {"schedule", "code", "config", "state", "mixed"}
        What changed; ``mixed`` is several of them in one transaction.
    text : str
        One sentence.
    """

    version: int
    kind: MilestoneKind
    text: str
