"""A base for immutable trees used as dictionary keys: the hash is computed once per object."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

__all__ = ["HashOnce"]


class HashOnce:
    """Keeps its hash; a layout of hundreds of nodes is looked up thousands of times a second.

    The hash is left out of pickles: string hashes differ between processes. Subclasses are frozen
    dataclasses and name ``__hash__ = HashOnce.__hash__``, or the dataclass would write its own.
    """

    __slots__ = ("_hash",)
    _hash: int

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            value = hash((type(self).__name__, self._values()))
            object.__setattr__(self, "_hash", value)
            return value

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._values()

    def _values(self) -> tuple[Any, ...]:
        """Return the field values in order."""
        return tuple(getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]  # subclasses are dataclasses
