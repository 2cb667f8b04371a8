"""Exact arithmetic on wide columns in numpy, with five 64-bit words per number in two's complement.

Words have shape (5, n), the least significant word first. 320 bits hold every sum and difference of two 256-bit
numbers, so the range is checked only when words are packed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from toolkit.dtypes._storage import byte_matrix, from_matrix, misfit

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from toolkit.dtypes._storage import WideKind

    Words = NDArray[np.uint64]

__all__ = [
    "add",
    "fits",
    "group_sums",
    "negative",
    "pack",
    "pack_checked",
    "subtract",
    "to_float",
    "total",
    "unpack",
    "words_of",
]

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


def to_float(words: Words) -> NDArray[np.float64]:
    """Return the numbers as floats, within one unit in the last place of the nearest ones."""
    below = negative(words)
    size = np.where(below, subtract(np.zeros_like(words), words), words)
    result = np.zeros(words.shape[1], np.float64)
    for word in size[::-1]:
        result = result * 2.0**64 + word
    return np.where(below, -result, result)


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
