"""Number text to integer columns and back; digits and range are checked before any cast.

Arrow's own casts cannot be trusted with text: to decimal they wrap silently (apache/arrow issue 49817:
the largest u256 becomes -1), and to uint64 they take "0x10" and "007".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.dtypes.arrow_types import WideIntType, kind_of
from toolkit.dtypes.kinds import shown
from toolkit.dtypes.storage import byte_matrix, from_matrix, to_int, whole
from toolkit.errors import InputError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Texts: TypeAlias = pa.Array | pa.ChunkedArray | Sequence[str | None]

__all__ = ["int_from_text", "uint_from_text", "wide_from_text", "wide_to_text"]

_UNSIGNED = r"^(0|[1-9][0-9]*)$"
_SIGNED = r"^(0|-?[1-9][0-9]*)$"
_DECIMAL_DIGITS = 76  # the widest Arrow decimal
_U256_DIGITS = 78
_BYTES = 32
_LIMBS = 8  # of 32 bits


def wide_from_text(texts: Texts, wide: WideIntType, *, column: str | None = None) -> pa.ExtensionArray:
    """Read decimal text into a wide column, exactly.

    Parameters
    ----------
    texts : pyarrow string array, or sequence of str or None
        Canonical decimal text: digits, no leading zero, no ``+``; a ``-`` for signed types only.
    wide : WideIntType
        ``u128()``, ``u256()``, ``i128()`` or ``i256()``.
    column : str, optional
        Name to give in errors.

    Returns
    -------
    pyarrow.ExtensionArray, length n
        Null where the text was null.

    Raises
    ------
    SchemaError
        If a text is no canonical number or out of range; names the first such row.
    """
    kind = wide.wide
    strings = _strings(texts, kind.name, column)
    _check(strings, kind.name, kind.low, kind.high, column)
    matrix = _big_endian(strings)[:, _BYTES - kind.width :]
    if kind.signed:
        matrix[:, 0] ^= 0x80
    return pa.ExtensionArray.from_storage(wide, from_matrix(matrix, _valid(strings)))


def uint_from_text(texts: Texts, bits: int = 64, *, column: str | None = None) -> pa.Array:
    """Read decimal text into uint8, uint16, uint32 or uint64, exactly.

    Parameters
    ----------
    texts : pyarrow string array, or sequence of str or None
        Canonical decimal text; ``"0x10"``, ``"007"``, ``"+1"`` and ``"1e3"`` are refused.
    bits : {8, 16, 32, 64}, default 64
        Width of the result.
    column : str, optional
        Name to give in errors.

    Returns
    -------
    pyarrow.Array, length n
        Null where the text was null.

    Raises
    ------
    SchemaError
        If a text is no canonical number or out of range; names the first such row.
    InputError
        If `bits` is another number.
    """
    return _native(texts, f"u{_width(bits)}", 0, (1 << bits) - 1, column)


def int_from_text(texts: Texts, bits: int = 64, *, column: str | None = None) -> pa.Array:
    """Read decimal text into int8, int16, int32 or int64, exactly; otherwise as `uint_from_text`."""
    high = (1 << (_width(bits) - 1)) - 1
    return _native(texts, f"i{bits}", -high - 1, high, column)


def _width(bits: int) -> int:
    """Check a native width."""
    if bits not in {8, 16, 32, 64}:
        raise InputError(f"no native integer of {shown(bits)} bits: expected 8, 16, 32 or 64")
    return bits


def _native(texts: Texts, name: str, low: int, high: int, column: str | None) -> pa.Array:
    """Check text, then let Arrow cast it."""
    strings = _strings(texts, name, column)
    _check(strings, name, low, high, column)
    return strings.cast(pa.type_for_alias(f"{'int' if low else 'uint'}{name[1:]}"))


def _strings(texts: Texts, name: str, column: str | None) -> pa.StringArray:
    """Return one string array; numbers and other objects in `texts` are refused."""
    if isinstance(texts, (pa.Array, pa.ChunkedArray)):
        array = whole(texts)
        if pa.types.is_null(array.type) or pa.types.is_large_string(array.type):
            array = array.cast(pa.string())
        if pa.types.is_string(array.type):
            return array
        raise SchemaError(f"{_where(column)}expected text to read {name} from, got Arrow {array.type}", column=column)
    try:
        return whole(pa.array(texts, pa.string()))
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError):
        for row, text in enumerate(texts):
            if text is not None and not (isinstance(text, str) and text.isascii()):
                raise _refused(text, name, row, column) from None
        raise


def _where(column: str | None) -> str:
    """Start of a message that may know its column."""
    return f"column {shown(column)}, " if column is not None else ""


def _refused(text: object, name: str, row: int, column: str | None) -> SchemaError:
    """Error for a text that is no canonical number."""
    sign = "an optional '-', " if name.startswith("i") else ""
    return SchemaError(
        f"{_where(column)}row {row}: {shown(text)} is not {name} text: expected {sign}decimal digits "
        "without leading zeros, in a string",
        column=column,
        rows=(row,),
    )


def _check(texts: pa.StringArray, name: str, low: int, high: int, column: str | None) -> None:
    """Refuse anything but canonical numbers in range."""
    good = pc.match_substring_regex(texts, _SIGNED if low < 0 else _UNSIGNED)
    if pc.all(good).as_py() is False:
        row = pc.index(good, False).as_py()
        raise _refused(texts[row].as_py(), name, row, column)
    over = _beyond(texts, str(high))
    if low < 0:
        over = pc.if_else(pc.starts_with(texts, "-"), _beyond(texts, str(low)), over)
    if pc.any(over).as_py():
        row = pc.index(over, True).as_py()
        raise SchemaError(
            f"{_where(column)}row {row}: {shown(texts[row].as_py())} does not fit {name}: expected {low}..{high}",
            column=column,
            rows=(row,),
        )


def _beyond(texts: pa.StringArray, limit: str) -> pa.BooleanArray:
    """Tell which canonical numbers of the limit's sign are larger in size than it: by length, then by text."""
    length = pc.binary_length(texts)
    longer = pc.greater(length, len(limit))
    if not pc.any(pc.greater_equal(length, len(limit))).as_py():
        return longer
    return pc.or_(longer, pc.and_(pc.equal(length, len(limit)), pc.greater(texts, limit)))


def _valid(array: pa.Array) -> pa.BooleanArray | None:
    """Return the validity of an array, None where nothing is null."""
    return pc.is_valid(array) if array.null_count else None


def _big_endian(texts: pa.StringArray) -> NDArray[np.uint8]:
    """Return checked numbers as two's complement, big-endian, shape (n, 32).

    Up to 76 digits Arrow's decimal cast does it (5 M/s); longer ones go by limbs (3 M/s; `int` 1.5 M/s).
    """
    long = pc.fill_null(pc.greater(pc.binary_length(texts), _DECIMAL_DIGITS), False)  # noqa: FBT003  # Arrow's signature
    if not pc.any(long).as_py():
        return _by_decimal(texts)
    rows = np.flatnonzero(long.to_numpy(zero_copy_only=False))
    if len(rows) == len(texts):
        return _by_limbs(texts)
    result = _by_decimal(pc.if_else(long, pa.scalar("0"), texts))
    result[rows] = _by_limbs(texts.take(pa.array(rows)))
    return result


def _by_decimal(texts: pa.StringArray) -> NDArray[np.uint8]:
    """Cast up to 76 digits to decimal256, which is 32 little-endian bytes, and turn them round."""
    decimals = texts.cast(pa.decimal256(_DECIMAL_DIGITS, 0))
    count = len(decimals)
    if not count:
        return np.zeros((0, _BYTES), np.uint8)
    data = np.frombuffer(decimals.buffers()[1], np.uint8, count * _BYTES, decimals.offset * _BYTES)
    return np.ascontiguousarray(data.reshape(count, _BYTES)[:, ::-1])


def _by_limbs(texts: pa.StringArray, block: int = 8192) -> NDArray[np.uint8]:
    """Convert any length without nulls: nine digits at a time into 32-bit limbs, in numpy."""
    below = pc.starts_with(texts, "-").to_numpy(zero_copy_only=False)
    padded = pc.utf8_lpad(pc.utf8_ltrim(texts, "-"), _U256_DIGITS, "0")
    start = padded.offset * _U256_DIGITS  # every row has the same length now
    digits = np.frombuffer(padded.buffers()[2], np.uint8, len(texts) * _U256_DIGITS, start)
    digits = digits.reshape(-1, _U256_DIGITS)
    result = np.empty((len(texts), 8), ">u4")
    for at in range(0, len(texts), block):
        result[at : at + block] = _limbs(digits[at : at + block])
    if below.any():
        result[below] = _negated(result[below])
    return result.view(np.uint8)


def _limbs(digits: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Return 78-digit rows as 8 limbs each, most significant first: value = value * 10**9 + next nine digits."""
    count, chunks = len(digits), 9
    spread = np.zeros((count, chunks * 9))
    spread[:, chunks * 9 - _U256_DIGITS :] = digits & 15
    nines = (spread.reshape(-1, 9) @ 10.0 ** np.arange(8, -1, -1)).reshape(count, chunks)
    parts = np.ascontiguousarray(nines.T).astype(np.uint64)  # floats below 10**9 are whole numbers
    limbs = [parts[0]]
    for carry in parts[1:]:
        up = carry
        for place, limb in enumerate(limbs):
            value = limb * np.uint64(10**9) + up
            limbs[place] = value & np.uint64(0xFFFF_FFFF)
            up = value >> np.uint64(32)
        if len(limbs) < _LIMBS:
            limbs.append(up)
    return np.stack(limbs[::-1], axis=1).astype(np.uint32)


def _negated(limbs: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return two's complement of rows of 8 limbs, most significant first."""
    wide = (~limbs.astype(np.uint32)).astype(np.uint64)
    carry = np.ones(len(wide), np.uint64)
    for place in range(7, -1, -1):
        wide[:, place] += carry
        carry = wide[:, place] >> np.uint64(32)
    return wide.astype(np.uint32)


def wide_to_text(array: pa.ExtensionArray | pa.ChunkedArray) -> pa.StringArray:
    """Write a wide column as canonical decimal text.

    Parameters
    ----------
    array : pyarrow.ExtensionArray or ChunkedArray
        A wide column.

    Returns
    -------
    pyarrow.StringArray, length n
        Null where the number was null.

    Raises
    ------
    InputError
        If `array` is no wide column.
    """
    kind = kind_of(array)
    storage = whole(array).storage
    matrix = byte_matrix(storage)
    little = np.zeros((len(matrix), _BYTES), np.uint8)
    little[:, : kind.width] = matrix[:, ::-1]
    if kind.signed:
        little[:, kind.width - 1] ^= 0x80
        little[:, kind.width :] = np.where(little[:, kind.width - 1] & 0x80, 0xFF, 0)[:, None]
    beyond = _beyond_decimal(little, signed=kind.signed)
    little[beyond] = 0
    valid = _valid(storage)
    buffers = [valid.buffers()[1] if valid is not None else None, pa.py_buffer(little)]
    decimals = pa.Array.from_buffers(pa.decimal256(_DECIMAL_DIGITS, 0), len(little), buffers)
    texts = decimals.cast(pa.string())
    if beyond.any():
        rows = storage.filter(pa.array(beyond)).to_pylist()
        long = pa.array([None if row is None else str(to_int(row, kind)) for row in rows], pa.string())
        texts = pc.replace_with_mask(texts, pa.array(beyond), long)
    return texts


def _beyond_decimal(little: NDArray[np.uint8], *, signed: bool) -> NDArray[np.bool_]:
    """Tell which 32-byte numbers may need more than 76 digits, by their top 64 bits."""
    limit = 10**_DECIMAL_DIGITS >> 192
    top = np.ascontiguousarray(little[:, 24:])
    if signed:
        high = top.view("<i8").ravel()
        return np.asarray((high >= limit) | (high < -limit))
    return np.asarray(top.view("<u8").ravel() >= limit)
