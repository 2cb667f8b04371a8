"""The four wide integers as plain facts: names, ranges, widths. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["KINDS", "WideKind", "WideName", "common_kind", "shown"]

WideName = Literal["u128", "u256", "i128", "i256"]

_SHOWN_CHARACTERS = 90  # a whole u256 with its quotes fits; hostile text does not flood a message


@dataclass(frozen=True, slots=True)
class WideKind:
    """One wide integer type.

    Parameters
    ----------
    name : {'u128', 'u256', 'i128', 'i256'}
        Its name in Move, in pandas, and (after ``toolkit.``) in Arrow.
    bits : int
        128 or 256.
    signed : bool
        Whether it holds negative numbers.
    """

    name: str
    bits: int
    signed: bool

    @property
    def width(self) -> int:
        """Bytes per value."""
        return self.bits // 8

    @property
    def low(self) -> int:
        """Smallest value."""
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def high(self) -> int:
        """Largest value."""
        return (1 << (self.bits - self.signed)) - 1


KINDS: dict[str, WideKind] = {
    name: WideKind(name, int(name[1:]), name[0] == "i") for name in ("u128", "u256", "i128", "i256")
}


def common_kind(first: WideKind, second: WideKind) -> WideKind:
    """Return the kind that holds both, or i256 where only that comes close (u256 with a signed one)."""
    if first.signed == second.signed:
        return max(first, second, key=lambda kind: kind.bits)
    return KINDS["i256"]


def shown(value: object) -> str:
    """Return `value` as a message may show it: escaped, and short whatever was sent."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
