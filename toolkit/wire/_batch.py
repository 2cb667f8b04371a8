"""Arguments that only calls in a batch can have: signers of the transaction, and results of earlier calls."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from toolkit._present.messages import shorten
from toolkit.errors import InputError


class Use(StrEnum):
    """How a call takes a result of an earlier call."""

    DEFAULT = ""  # a copy if the type has copy and drop, else a move
    MOVE = "move"
    COPY = "copy"
    BORROW = "borrow"
    BORROW_MUT = "borrow_mut"


@dataclass(frozen=True, slots=True)
class BatchArgument:
    """Base class of arguments that only calls in a batch can have."""

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form, from which fingerprints are made."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, repr=False)
class BatchSigner(BatchArgument):
    """A signer of the transaction: 0 is the sender, 1 the first secondary signer."""

    index: int

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form, from which fingerprints are made."""
        return {"signer": self.index}

    def __repr__(self) -> str:
        return f"toolkit.Batch.signer({self.index})"


@dataclass(frozen=True, slots=True, repr=False)
class BatchResult(BatchArgument):
    """A result of an earlier call of a batch.

    Attributes
    ----------
    call, value : int
        Position of the call in the batch, and of the value among its results; both count from 0.
    use : Use
    """

    call: int
    value: int = 0
    use: Use = Use.DEFAULT

    def copy(self) -> BatchResult:
        """Return the argument that copies the result; its type must have the ability copy."""
        return replace(self, use=Use.COPY)

    def move(self) -> BatchResult:
        """Return the argument that moves the result, although its type could be copied."""
        return replace(self, use=Use.MOVE)

    def borrow(self) -> BatchResult:
        """Return the argument for a parameter ``&T``."""
        return replace(self, use=Use.BORROW)

    def borrow_mut(self) -> BatchResult:
        """Return the argument for a parameter ``&mut T``."""
        return replace(self, use=Use.BORROW_MUT)

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form, from which fingerprints are made."""
        return {"result": [self.call, self.value]} | ({"use": str(self.use)} if self.use else {})

    def __repr__(self) -> str:
        value = f", {self.value}" if self.value else ""
        return f"toolkit.Batch.result({self.call}{value})" + (f".{self.use}()" if self.use else "")


def check_position(name: str, value: object) -> int:
    """Return a position that counts from 0.

    Raises
    ------
    InputError
        If it is not one.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(f"{name} must be a whole number from 0, got {shorten(value)}")
    return value
