"""The four wide integer types, and how their values are stored.

Values are stored in Arrow as fixed-size bytes: big-endian, sign bit flipped for signed kinds, so that byte order is
number order. Sorting, grouping and comparing use the bytes; arithmetic uses Python ints.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from toolkit.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

_SHOWN_CHARACTERS = 90  # enough for a u256 with its quotes


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

    Examples
    --------
    >>> kind = KINDS["i128"]
    >>> kind.bits, kind.signed, kind.high == 2**127 - 1
    (128, True, True)
    """

    name: str
    bits: int
    signed: bool

    @property
    def width(self) -> int:
        """Number of bytes per value."""
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
    """Return the kind that holds the values of both; i256 for u256 and a signed kind, which no kind holds."""
    if first.signed == second.signed:
        return max(first, second, key=lambda kind: kind.bits)
    return KINDS["i256"]


def shown(value: object) -> str:
    """Return the repr of a value, cut to a length that fits a message."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


def whole(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return `array` as one chunk, without a copy if it has one chunk."""
    if not isinstance(array, pa.ChunkedArray):
        return array
    return array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()


def byte_matrix(storage: pa.FixedSizeBinaryArray) -> NDArray[np.uint8]:
    """Return the bytes as a view of shape (n, width); the content of null rows is undefined."""
    width, count = storage.type.byte_width, len(storage)
    data = storage.buffers()[1]
    if data is None or not count:
        return np.zeros((count, width), np.uint8)
    return np.frombuffer(data, np.uint8, count * width, storage.offset * width).reshape(count, width)


def to_int(data: bytes, kind: WideKind) -> int:
    """Return the number in one stored value."""
    return int.from_bytes(data, "big") + kind.low


def to_ints(storage: pa.FixedSizeBinaryArray, kind: WideKind) -> list[int | None]:
    """Return Python ints, None for null."""
    low, read = kind.low, int.from_bytes
    if not storage.null_count:
        return [read(data) + low for data in storage.to_pylist()]
    return [None if data is None else read(data) + low for data in storage.to_pylist()]


def from_ints(values: Iterable[Any], kind: WideKind, *, column: str | None = None) -> pa.FixedSizeBinaryArray:
    """Store integers of Python or numpy, None as null; raise SchemaError for other values and numbers out of range."""
    values = values if isinstance(values, list) else list(values)
    low, high, width = kind.low, kind.high, kind.width
    rows: list[bytes | None] = []
    for row, value in enumerate(values):
        if value is None:
            rows.append(None)
            continue
        if isinstance(value, (bool, np.bool_)):
            raise misfit(value, kind, row=row, column=column)
        try:
            number = index(value)
        except TypeError:
            raise misfit(value, kind, row=row, column=column) from None
        if not low <= number <= high:
            raise misfit(number, kind, row=row, column=column)
        rows.append((number - low).to_bytes(width, "big"))
    return pa.array(rows, pa.binary(width))


def misfit(value: object, kind: WideKind, *, row: int | None = None, column: str | None = None) -> SchemaError:
    """Return the error for a value that is not a number of this kind."""
    where = f"column {shown(column)}, " if column is not None else ""
    where += f"row {row}: " if row is not None else ""
    text = f"{where}{shown(value)} does not fit {kind.name}: expected an integer {kind.low}..{kind.high}"
    rows: Sequence[int] = () if row is None else (row,)
    return SchemaError(text, column=column, rows=rows)
