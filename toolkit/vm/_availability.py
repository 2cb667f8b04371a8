"""Which locals are set where: the one check of the node's verifier that running relies on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.vm._instructions import Instruction

_READS = {"CopyLoc", "MoveLoc", "MutBorrowLoc", "ImmBorrowLoc"}
_BRANCHES = {"Branch", "BrTrue", "BrFalse"}
_ENDS = {"Branch", "Ret", "Abort"}


def unset_local(code: Sequence[Instruction], parameters: int) -> tuple[int, int] | None:
    """Return the first instruction that may read a local that is not set.

    Parameters
    ----------
    code : sequence of Instruction
    parameters : int
        Number of parameters: they are set at the start.

    Returns
    -------
    (int, int) or None
        Offset of the instruction, and the local.
    """
    starts = {0} | {one.operand for one in code if one.name in _BRANCHES}
    starts |= {at + 1 for at, one in enumerate(code) if one.name in _BRANCHES}
    # Bits of the locals that are set whenever a block starts; a block is visited again when a bit is lost.
    at_start = {0: (1 << parameters) - 1}
    waiting = [0]
    while waiting:
        at = start = waiting.pop()
        held = at_start[start]
        followers: list[int] = []
        while at < len(code):
            name, operand = code[at]
            if name in _READS and not held >> operand & 1:
                return at, operand
            if name == "MoveLoc":
                held &= ~(1 << operand)
            elif name == "StLoc":
                held |= 1 << operand
            elif name in _BRANCHES:
                followers.append(operand)
            at += 1
            if name in _ENDS:
                break
            if at in starts:
                followers.append(at)
                break
        for follower in followers:
            known = at_start.get(follower)
            kept = held if known is None else known & held
            if kept != known:
                at_start[follower] = kept
                waiting.append(follower)
    return None
