"""The four wide integer types: how their values are stored, and exact arithmetic on columns of them in numpy.

Values are stored in Arrow as fixed-size bytes: big-endian, sign bit flipped for signed kinds, so that byte order is
number order. Arithmetic uses five 64-bit words per number in two's complement, of shape (5, n), the least significant
word first. 320 bits hold every sum and difference of two 256-bit numbers, so the range is checked only when words are
packed.
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

    Words = NDArray[np.uint64]


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


def from_matrix(matrix: NDArray[np.uint8], valid: pa.BooleanArray | None) -> pa.FixedSizeBinaryArray:
    """Return an array of shape (n, width) as Arrow storage; rows that are false in `valid` (not a slice) are null."""
    count, width = matrix.shape
    bitmap = None if valid is None else valid.buffers()[1]
    data = pa.py_buffer(np.ascontiguousarray(matrix))
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), count, [bitmap, data])


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


WORDS = 5
_ONES = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
_TOP = np.uint64(63)
_HALF = np.uint64(32)
_LOW_HALF = np.uint64(0xFFFF_FFFF)


def unpack(storage: pa.FixedSizeBinaryArray, kind: WideKind) -> Words:
    """Return the words of stored values; null rows become 0."""
    matrix = byte_matrix(storage)
    count, used = len(storage), kind.width // 8
    words = np.zeros((WORDS, count), np.uint64)
    words[:used] = np.ascontiguousarray(matrix).view(">u8").reshape(count, used)[:, ::-1].T
    if kind.signed:
        words[used - 1] ^= np.uint64(1) << _TOP
        words[used:] = _sign(words[used - 1])
    if storage.null_count:
        words[:, storage.is_null().to_numpy(zero_copy_only=False)] = 0
    return words


def words_of(values: NDArray[np.integer]) -> Words:
    """Return the words of a numpy integer array of up to 64 bits."""
    words = np.zeros((WORDS, len(values)), np.uint64)
    if values.dtype.kind == "u":
        words[0] = values
    else:
        words[0] = values.astype(np.int64).view(np.uint64)
        words[1:] = _sign(words[0])
    return words


def _sign(word: Words) -> Words:
    """Return a word of ones or zeros, by the top bit of each word."""
    return np.where(word >> _TOP, _ONES, np.uint64(0))


def negative(words: Words) -> NDArray[np.bool_]:
    """Return which numbers are negative."""
    return np.asarray(words[-1] >> _TOP, dtype=bool)


def fits(words: Words, kind: WideKind) -> NDArray[np.bool_]:
    """Return which numbers are in the range of `kind`."""
    used = kind.width // 8
    rest = _sign(words[used - 1]) if kind.signed else np.uint64(0)
    return np.asarray((words[used:] == rest).all(axis=0))


def pack(words: Words, kind: WideKind, valid: pa.BooleanArray | None) -> pa.FixedSizeBinaryArray:
    """Store numbers that are known to fit `kind`."""
    used = kind.width // 8
    matrix = words[:used][::-1].T.astype(">u8")
    if kind.signed:
        matrix[:, 0] ^= np.uint64(1) << _TOP
    return from_matrix(np.ascontiguousarray(matrix).view(np.uint8).reshape(len(matrix), kind.width), valid)


def pack_checked(words: NDArray[np.uint64], kind: WideKind, valid: pa.BooleanArray | None) -> pa.FixedSizeBinaryArray:
    """Store numbers as `kind`; raise SchemaError with the first row that does not fit."""
    bad = ~fits(words, kind)
    if valid is not None:
        bad &= valid.to_numpy(zero_copy_only=False)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise misfit(total(words[:, row : row + 1]), kind, row=row)
    return pack(words, kind, valid)


def add(first: Words, second: Words, *, carry: int = 0) -> Words:
    """Return first + second + carry, modulo 2**320."""
    result = np.empty_like(first)
    up = np.full(first.shape[1], carry, np.uint64)
    for place in range(WORDS):
        part = first[place] + second[place]
        summed = part + up
        up = ((part < first[place]) | (summed < part)).astype(np.uint64)
        result[place] = summed
    return result


def subtract(first: Words, second: Words) -> Words:
    """Return first - second, modulo 2**320."""
    return add(first, ~second, carry=1)


def _halves(words: Words) -> Words:
    """Split words into 32-bit halves in 64-bit words, so that up to 2**32 of them can be added without overflow."""
    halves = np.empty((2 * WORDS, words.shape[1]), np.uint64)
    halves[0::2] = words & _LOW_HALF
    halves[1::2] = words >> _HALF
    return halves


def _joined(halves: list[int], below: int) -> int:
    """Combine the sums of the ten halves; each negative number was added as itself plus 2**320."""
    return sum(half << (32 * place) for place, half in enumerate(halves)) - (below << (64 * WORDS))


def total(words: Words) -> int:
    """Return the exact sum."""
    return _joined(_halves(words).sum(axis=1).tolist(), int(negative(words).sum()))


def group_sums(words: Words, ids: NDArray[np.intp], groups: int) -> list[int]:
    """Return the exact sum of each group; rows with a negative id are in no group."""
    grouped = ids >= 0
    words, ids = words[:, grouped], ids[grouped]
    sums = np.zeros((2 * WORDS, groups), np.uint64)
    for row, half in zip(sums, _halves(words), strict=True):
        np.add.at(row, ids, half)
    below = np.bincount(ids[negative(words)], minlength=groups)
    return [_joined(halves, under) for halves, under in zip(sums.T.tolist(), below.tolist(), strict=True)]
