"""Arrow extension types of wide integers (``toolkit.u128 u256 i128 i256``), and columns of ints and of number text.

Digits and range are checked before any cast. Arrow's own casts from text to decimal wrap silently (the largest u256
becomes -1, https://github.com/apache/arrow/issues/49817), and those to uint64 accept "0x10" and "007".
"""

from __future__ import annotations

import contextlib
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.dtypes._storage import KINDS, WideKind, byte_matrix, from_ints, from_matrix, shown, to_int, whole
from toolkit.errors import InputError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray
    from pandas.api.extensions import ExtensionDtype

    Texts: TypeAlias = pa.Array | pa.ChunkedArray | Sequence[str | None]


_UNSIGNED = r"^(0|[1-9][0-9]*)$"
_SIGNED = r"^(0|-?[1-9][0-9]*)$"
_DECIMAL_DIGITS = 76  # the widest Arrow decimal
_PADDED = {128: 40, 256: 80}  # multiples of eight that hold the longest numbers, of 39 and 78 digits
_BYTES = 32


class WideIntScalar(pa.ExtensionScalar):  # type: ignore[misc]  # pyarrow has no types
    """One wide integer of an Arrow array."""

    def as_py(self, **_options: Any) -> int | None:
        """Return the Python int, or None."""
        return None if self.value is None else to_int(self.value.as_py(), self.type.wide)


class WideIntType(pa.ExtensionType):  # type: ignore[misc]  # pyarrow has no types
    """A wide integer over fixed-size bytes: big-endian, sign bit flipped for signed ones.

    Bytes have the order of the numbers, so Arrow's sorting, Parquet's statistics and filters work without the type.

    Parameters
    ----------
    name : {'u128', 'u256', 'i128', 'i256'}

    Raises
    ------
    InputError
        If `name` is another name.

    Examples
    --------
    >>> WideIntType("u256").wide.bits
    256
    """

    def __init__(self, name: str) -> None:
        if name not in KINDS:
            raise InputError(f"unknown wide integer type {shown(name)}: expected one of {', '.join(KINDS)}")
        self._wide = KINDS[name]
        super().__init__(pa.binary(self._wide.width), f"toolkit.{name}")

    @property
    def wide(self) -> WideKind:
        """Name, range and width of the type."""
        return self._wide

    def __arrow_ext_serialize__(self) -> bytes:
        return self._wide.name.encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> WideIntType:
        name = serialized.decode("ascii", "replace")
        if name not in KINDS or storage_type != pa.binary(KINDS[name].width):
            raise SchemaError(
                f"column of extension type toolkit.{shown(name)} over {storage_type}: expected one of "
                f"{', '.join(KINDS)} over 16 or 32 bytes; the file was not written by this toolkit"
            )
        return cls(name)

    def __arrow_ext_scalar_class__(self) -> type[WideIntScalar]:
        return WideIntScalar

    def to_pandas_dtype(self) -> ExtensionDtype:
        """Return the pandas dtype of such a column, by the name under which it is registered with pandas."""
        from pandas.api.types import pandas_dtype

        return cast("ExtensionDtype", pandas_dtype(self._wide.name))


@cache
def wide_type(name: str) -> WideIntType:
    """Return the Arrow type with a name such as ``"u128"``, always the same object.

    Examples
    --------
    >>> from toolkit import dtypes
    >>> wide_type("u128") is dtypes.u128()
    True
    """
    return WideIntType(name)


def u128() -> WideIntType:
    """Return the Arrow type of unsigned 128-bit integers.

    Examples
    --------
    >>> from toolkit import dtypes
    >>> dtypes.wide_from_ints([2**128 - 1, None], dtypes.u128()).to_pylist() == [2**128 - 1, None]
    True
    """
    return wide_type("u128")


def u256() -> WideIntType:
    """Return the Arrow type of unsigned 256-bit integers.

    Examples
    --------
    >>> from toolkit import dtypes
    >>> dtypes.wide_from_ints([2**256 - 1, None], dtypes.u256()).to_pylist() == [2**256 - 1, None]
    True
    """
    return wide_type("u256")


def i128() -> WideIntType:
    """Return the Arrow type of signed 128-bit integers.

    Examples
    --------
    >>> from toolkit import dtypes
    >>> dtypes.wide_from_ints([-(2**127), None], dtypes.i128()).to_pylist() == [-(2**127), None]
    True
    """
    return wide_type("i128")


def i256() -> WideIntType:
    """Return the Arrow type of signed 256-bit integers.

    Examples
    --------
    >>> from toolkit import dtypes
    >>> dtypes.wide_from_ints([-(2**255), None], dtypes.i256()).to_pylist() == [-(2**255), None]
    True
    """
    return wide_type("i256")


def wide_from_ints(values: Iterable[int | None], wide: WideIntType, *, column: str | None = None) -> pa.ExtensionArray:
    """Build a wide column from Python ints.

    Parameters
    ----------
    values : iterable of int or None
        None becomes null.
    wide : WideIntType
        ``u128()``, ``u256()``, ``i128()`` or ``i256()``.
    column : str, optional
        Name of the column in errors.

    Returns
    -------
    pyarrow.ExtensionArray, length n

    Raises
    ------
    SchemaError
        If a value is not an integer (bools and floats are not), or out of range.

    Examples
    --------
    >>> wide_from_ints([2**200, None], u256()).to_pylist() == [2**200, None]
    True
    """
    return pa.ExtensionArray.from_storage(wide, from_ints(values, wide.wide, column=column))


def kind_of(array: pa.Array | pa.ChunkedArray) -> WideKind:
    """Return the kind of a wide column; raise InputError for another array."""
    if not isinstance(array.type, WideIntType):
        raise InputError(f"expected a wide integer column (u128, u256, i128, i256), got {array.type}")
    return array.type.wide


def wide_from_text(texts: Texts, wide: WideIntType, *, column: str | None = None) -> pa.ExtensionArray:
    """Convert decimal text to a wide column, exactly.

    Parameters
    ----------
    texts : pyarrow string array, or sequence of str or None
        Canonical decimal text: digits, no leading zero, no ``+``; a ``-`` for signed types only.
    wide : WideIntType
        ``u128()``, ``u256()``, ``i128()`` or ``i256()``.
    column : str, optional
        Name of the column in errors.

    Returns
    -------
    pyarrow.ExtensionArray, length n
        Null for null text.

    Raises
    ------
    SchemaError
        If a text is not a canonical number, or out of range; with the first such row.

    Examples
    --------
    >>> wide_to_text(wide_from_text(["-1", None], i128())).to_pylist()
    ['-1', None]
    """
    kind = wide.wide
    strings = _strings(texts, kind.name, column)
    _check(strings, kind.name, kind.low, kind.high, column)
    matrix = _limb_matrix(strings, kind.bits)
    if kind.signed:
        matrix[:, 0] ^= 0x80
    return pa.ExtensionArray.from_storage(wide, from_matrix(matrix, _valid(strings)))


def _strings(texts: Texts, name: str, column: str | None) -> pa.StringArray:
    """Return texts as one string array; raise SchemaError for numbers and other objects."""
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
    """Return the start of a message, with the column if it is known."""
    return f"column {shown(column)}, " if column is not None else ""


def _refused(text: object, name: str, row: int, column: str | None) -> SchemaError:
    """Return the error for a text that is not a canonical number."""
    sign = "an optional '-', " if name.startswith("i") else ""
    return SchemaError(
        f"{_where(column)}row {row}: {shown(text)} is not {name} text: expected {sign}decimal digits "
        "without leading zeros, in a string",
        column=column,
        rows=(row,),
    )


def _check(texts: pa.StringArray, name: str, low: int, high: int, column: str | None) -> None:
    """Raise SchemaError unless all texts are canonical numbers in range."""
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
    """Return which canonical numbers of the sign of `limit` are larger in size: by length, then as text."""
    length = pc.binary_length(texts)
    longer = pc.greater(length, len(limit))
    if not pc.any(pc.greater_equal(length, len(limit))).as_py():
        return longer
    return pc.or_(longer, pc.and_(pc.equal(length, len(limit)), pc.greater(texts, limit)))


def _valid(array: pa.Array) -> pa.BooleanArray | None:
    """Return the validity of an array, or None if it has no nulls."""
    return pc.is_valid(array) if array.null_count else None


def _limb_matrix(texts: pa.StringArray, bits: int, block: int = 8192) -> NDArray[np.uint8]:
    """Return checked numbers in two's complement, big-endian, shape (n, bits / 8); 0 for null.

    Converts eight digits at a time to 32-bit limbs in numpy: Arrow's casts support 76 digits only, and `int` is slower.
    """
    texts = pc.fill_null(texts, "0") if texts.null_count else texts
    width, count = _PADDED[bits], bits // 32
    below = pc.starts_with(texts, "-").to_numpy(zero_copy_only=False)
    padded = pc.ascii_lpad(pc.ascii_ltrim(texts, "-"), width, "0")
    result = np.zeros((len(texts), count), ">u4")
    if len(texts):
        start = padded.offset * width  # all rows have the same length
        digits = np.frombuffer(padded.buffers()[2], np.uint8, len(texts) * width, start).reshape(-1, width)
        for at in range(0, len(texts), block):  # blocks that fit the processor's cache
            for place, limb in enumerate(_limbs(_eights(digits[at : at + block]), count)):
                result[at : at + block, count - 1 - place] = limb
    if below.any():
        result[below] = _negated(result[below])
    return result.view(np.uint8)


def _eights(digits: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return digits of shape (n, 8 * k) as k numbers of eight digits each, shape (k, n), most significant first.

    Converts the eight characters of a 64-bit word at once: to pairs of digits, then fours, then eights.
    """
    word = digits.view("<u8")
    word = (word & np.uint64(0x0F0F_0F0F_0F0F_0F0F)) * np.uint64(10 * 2**8 + 1) >> np.uint64(8)
    word = (word & np.uint64(0x00FF_00FF_00FF_00FF)) * np.uint64(100 * 2**16 + 1) >> np.uint64(16)
    word = (word & np.uint64(0x0000_FFFF_0000_FFFF)) * np.uint64(10**4 * 2**32 + 1) >> np.uint64(32)
    return np.ascontiguousarray(word.T)


def _limbs(eights: NDArray[np.uint64], count: int) -> list[NDArray[np.uint64]]:
    """Return `count` limbs of 32 bits, least significant first: value = value * 10**8 + the next eight digits."""
    limbs = [eights[0]]
    for carry in eights[1:]:
        up = carry
        for place, limb in enumerate(limbs):
            value = limb * np.uint64(10**8) + up
            limbs[place] = value & np.uint64(0xFFFF_FFFF)
            up = value >> np.uint64(32)
        if len(limbs) < count:
            limbs.append(up)
    return limbs


def _negated(limbs: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return two's complement of rows of limbs, most significant first."""
    wide = (~limbs.astype(np.uint32)).astype(np.uint64)
    carry = np.ones(len(wide), np.uint64)
    for place in reversed(range(wide.shape[1])):
        wide[:, place] += carry
        carry = wide[:, place] >> np.uint64(32)
    return wide.astype(np.uint32)


def wide_to_text(array: pa.ExtensionArray | pa.ChunkedArray) -> pa.StringArray:
    """Return a wide column as canonical decimal text.

    Parameters
    ----------
    array : pyarrow.ExtensionArray or ChunkedArray
        A wide column.

    Returns
    -------
    pyarrow.StringArray, length n
        Null for null numbers.

    Raises
    ------
    InputError
        If `array` is not a wide column.

    Examples
    --------
    >>> from toolkit import dtypes
    >>> wide_to_text(dtypes.wide_from_ints([2**100, None], dtypes.u256())).to_pylist()
    ['1267650600228229401496703205376', None]
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
    """Return which 32-byte numbers may have more than 76 digits, by their top 64 bits."""
    limit = 10**_DECIMAL_DIGITS >> 192
    top = np.ascontiguousarray(little[:, 24:])
    if signed:
        high = top.view("<i8").ravel()
        return np.asarray((high >= limit) | (high < -limit))
    return np.asarray(top.view("<u8").ravel() >= limit)


# pyarrow restores the types from files once they are registered
for _name in KINDS:
    with contextlib.suppress(pa.ArrowKeyError):  # already registered
        pa.register_extension_type(wide_type(_name))
