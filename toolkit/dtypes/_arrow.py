"""Arrow extension types of wide integers (``toolkit.u128 u256 i128 i256``), and columns from ints and decimal text.

Digits and range are checked before any cast. Arrow's own casts from text to decimal wrap silently (the largest u256
becomes -1, https://github.com/apache/arrow/issues/49817), and those to uint64 accept "0x10" and "007".

Values are stored as fixed-size bytes: big-endian, sign bit flipped for signed kinds, so that byte order is number
order. Sorting, grouping and comparing use the bytes; arithmetic uses Python ints.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import cache
from operator import index
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.errors import InputError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pandas.api.extensions import ExtensionDtype

    Texts: TypeAlias = pa.Array | pa.ChunkedArray | Sequence[str | None]
    from numpy.typing import NDArray

_SHOWN_CHARACTERS = 90  # enough for a u256 with its quotes


@dataclass(frozen=True, slots=True)
class WideKind:
    """One wide integer type.

    Parameters
    ----------
    name : {'u128', 'u256', 'i128', 'i256'}
        Name of the type in Move, in pandas, and (after ``toolkit.``) in Arrow.
    bits : int
        128 or 256.
    signed : bool
        Whether the type can hold negative numbers.

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


KINDS = {name: WideKind(name, int(name[1:]), name[0] == "i") for name in ("u128", "u256", "i128", "i256")}


def common_kind(first: WideKind, second: WideKind) -> WideKind:
    """Return the kind that holds the values of both kinds; i256 for u256 and a signed kind, which no kind holds."""
    if first.signed == second.signed:
        return max(first, second, key=lambda kind: kind.bits)
    return KINDS["i256"]


def shown(value: object) -> str:
    """Return the repr of a value, truncated to fit a message."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


def whole(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return `array` as one chunk, without copying if it already has one chunk."""
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
    """Return Python ints, with None for null."""
    low, read = kind.low, int.from_bytes
    if not storage.null_count:
        return [read(data) + low for data in storage.to_pylist()]
    return [None if data is None else read(data) + low for data in storage.to_pylist()]


def from_ints(values: Iterable[Any], kind: WideKind, *, column: str | None = None) -> pa.FixedSizeBinaryArray:
    """Store Python or numpy integers, with None as null; raise SchemaError if a value does not fit."""
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


def misfit(value: object, kind: WideKind, *, row: int, column: str | None = None) -> SchemaError:
    """Return the error for a value that is not a number of this kind."""
    what = f"{_where(column)}row {row}: {shown(value)}"
    text = f"{what} does not fit {kind.name}: expected an integer in {kind.low}..{kind.high}"
    return SchemaError(text, column=column, rows=(row,))


# Python refuses to read numbers of thousands of digits; no number of 256 bits has more than 78.
_UNSIGNED = r"^(0|[1-9][0-9]{0,99})$"
_SIGNED = r"^(0|-?[1-9][0-9]{0,99})$"


class WideIntScalar(pa.ExtensionScalar):  # type: ignore[misc]  # pyarrow has no types
    """One wide integer of an Arrow array."""

    def as_py(self, **_options: Any) -> int | None:
        """Return the Python int, or None."""
        return None if self.value is None else to_int(self.value.as_py(), self.type.wide)


class WideIntType(pa.ExtensionType):  # type: ignore[misc]  # pyarrow has no types
    """Arrow type of wide integers: fixed-size bytes, big-endian, with the sign bit flipped if signed.

    The bytes sort like the numbers, so Arrow sorting and Parquet statistics and filters work even without this
    extension type.

    Parameters
    ----------
    name : {'u128', 'u256', 'i128', 'i256'}
        Name of the type.

    Raises
    ------
    InputError
        If `name` is not one of these names.

    Examples
    --------
    >>> WideIntType("u256").wide.bits
    256
    """

    def __init__(self, name: str) -> None:
        if name not in KINDS:
            raise InputError(f"unknown wide integer type {shown(name)}: expected one of {', '.join(KINDS)}")
        self._wide = KINDS[name]  # the name is in pickles
        super().__init__(pa.binary(self.wide.width), f"toolkit.{name}")

    @property
    def wide(self) -> WideKind:
        """Name, range and width of the type."""
        return self._wide

    def __arrow_ext_serialize__(self) -> bytes:
        return self.wide.name.encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> WideIntType:
        name = serialized.decode("ascii", "replace")
        if name not in KINDS or storage_type != pa.binary(KINDS[name].width):
            raise SchemaError(
                f"extension type toolkit.{shown(name)}, stored as {storage_type}: expected one of {', '.join(KINDS)}, "
                "stored as 16 or 32 bytes; the file was not written by this toolkit"
            )
        return cls(name)

    def __arrow_ext_scalar_class__(self) -> type[WideIntScalar]:
        return WideIntScalar

    def to_pandas_dtype(self) -> ExtensionDtype:
        """Return the pandas dtype for columns of this type."""
        from pandas.api.types import pandas_dtype

        return cast("ExtensionDtype", pandas_dtype(self.wide.name))


@cache
def wide_type(name: str) -> WideIntType:
    """Return the Arrow type with a name such as ``"u128"``, which is always the same object.

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
        Column name for error messages.

    Returns
    -------
    pyarrow.ExtensionArray, length n

    Raises
    ------
    SchemaError
        If a value is not an integer (bools and floats are rejected) or is out of range.

    Examples
    --------
    >>> wide_from_ints([2**200, None], u256()).to_pylist() == [2**200, None]
    True
    """
    return pa.ExtensionArray.from_storage(wide, from_ints(values, wide.wide, column=column))


def wide_from_text(texts: Texts, wide: WideIntType, *, column: str | None = None) -> pa.ExtensionArray:
    """Convert decimal text to a wide column without loss.

    Parameters
    ----------
    texts : pyarrow string array, or sequence of str or None
        Canonical decimal text: digits, no leading zero, no ``+``; a ``-`` for signed types only.
    wide : WideIntType
        ``u128()``, ``u256()``, ``i128()`` or ``i256()``.
    column : str, optional
        Column name for error messages.

    Returns
    -------
    pyarrow.ExtensionArray, length n
        The numbers, null where the text is null.

    Raises
    ------
    SchemaError
        If a string is not a canonical number or is out of range. The error states the first such row.

    Examples
    --------
    >>> wide_to_text(wide_from_text(["-1", None], i128())).to_pylist()
    ['-1', None]
    """
    kind = wide.wide
    strings = _strings(texts, kind.name, column)
    good = pc.match_substring_regex(strings, _SIGNED if kind.signed else _UNSIGNED)
    if pc.all(good).as_py() is False:
        row = pc.index(good, False).as_py()
        raise _refused(strings[row].as_py(), kind.name, row, column)
    numbers = [None if text is None else int(text) for text in strings.to_pylist()]
    return pa.ExtensionArray.from_storage(wide, from_ints(numbers, kind, column=column))


def _strings(texts: Texts, name: str, column: str | None) -> pa.StringArray:
    """Return texts as one string array; raise SchemaError for numbers and other objects."""
    if isinstance(texts, (pa.Array, pa.ChunkedArray)):
        array = whole(texts)
        if pa.types.is_null(array.type) or pa.types.is_large_string(array.type):
            array = array.cast(pa.string())
        if pa.types.is_string(array.type):
            return array
        raise SchemaError(f"{_where(column)}expected {name} values as text, got type {array.type}", column=column)
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
    expected = f"expected {sign}decimal digits without leading zeros, as text"
    text = f"{_where(column)}row {row}: {shown(text)} is not a valid {name}: {expected}"
    return SchemaError(text, column=column, rows=(row,))


def wide_to_text(array: pa.ExtensionArray | pa.ChunkedArray) -> pa.StringArray:
    """Return a wide column as canonical decimal text.

    Parameters
    ----------
    array : pyarrow.ExtensionArray or ChunkedArray
        A wide column.

    Returns
    -------
    pyarrow.StringArray, length n
        The text of each number, null for null.

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
    if not isinstance(array.type, WideIntType):
        raise InputError(f"expected a wide integer column (u128, u256, i128, i256), got {array.type}")
    numbers = to_ints(whole(array).storage, array.type.wide)
    return pa.array([None if number is None else str(number) for number in numbers], pa.string())


# pyarrow restores the types from files once they are registered
for _name in KINDS:
    with contextlib.suppress(pa.ArrowKeyError):  # already registered
        pa.register_extension_type(wide_type(_name))
