"""The Arrow extension types ``toolkit.u128 u256 i128 i256``, and Python ints in and out of them."""

from __future__ import annotations

import contextlib
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from toolkit.dtypes.kinds import KINDS, WideKind, shown
from toolkit.dtypes.storage import from_ints, to_int, to_ints, whole
from toolkit.errors import InputError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.dtypes.extension import WideIntDtype

__all__ = [
    "WideIntScalar",
    "WideIntType",
    "i128",
    "i256",
    "register_arrow_types",
    "u128",
    "u256",
    "wide_from_ints",
    "wide_to_ints",
    "wide_type",
]


class WideIntScalar(pa.ExtensionScalar):  # type: ignore[misc]  # pyarrow has no types
    """One wide integer of an Arrow array."""

    def as_py(self, **_options: Any) -> int | None:
        """Return the Python int, or None."""
        return None if self.value is None else to_int(self.value.as_py(), self.type.wide)


class WideIntType(pa.ExtensionType):  # type: ignore[misc]  # pyarrow has no types
    """A wide integer over fixed-size bytes: big-endian, sign bit flipped for signed ones.

    Byte order is number order, so Arrow sorts, Parquet statistics and filters need not know the type.

    Parameters
    ----------
    name : {'u128', 'u256', 'i128', 'i256'}
        Which one.

    Raises
    ------
    InputError
        If `name` is none of the four.
    """

    def __init__(self, name: str) -> None:
        if name not in KINDS:
            raise InputError(f"no wide integer type {shown(name)}: expected one of {', '.join(KINDS)}")
        self._wide = KINDS[name]
        super().__init__(pa.binary(self._wide.width), f"toolkit.{name}")

    @property
    def wide(self) -> WideKind:
        """Name, range and width of the numbers."""
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

    def to_pandas_dtype(self) -> WideIntDtype:
        """Return the pandas dtype of such a column."""
        from toolkit.dtypes.extension import WideIntDtype

        return WideIntDtype(self._wide.name)


@cache
def wide_type(name: str) -> WideIntType:
    """Return the Arrow type of that name (``"u128"``); the same object each time."""
    return WideIntType(name)


def u128() -> WideIntType:
    """Return the Arrow type of unsigned 128-bit integers."""
    return wide_type("u128")


def u256() -> WideIntType:
    """Return the Arrow type of unsigned 256-bit integers."""
    return wide_type("u256")


def i128() -> WideIntType:
    """Return the Arrow type of signed 128-bit integers."""
    return wide_type("i128")


def i256() -> WideIntType:
    """Return the Arrow type of signed 256-bit integers."""
    return wide_type("i256")


def register_arrow_types() -> None:
    """Make pyarrow restore the four types from files and messages; a second call changes nothing."""
    for name in KINDS:
        with contextlib.suppress(pa.ArrowKeyError):  # already registered
            pa.register_extension_type(wide_type(name))


def wide_from_ints(values: Iterable[int | None], wide: WideIntType, *, column: str | None = None) -> pa.ExtensionArray:
    """Build a wide column from Python ints.

    Parameters
    ----------
    values : iterable of int or None
        The numbers; None becomes null.
    wide : WideIntType
        ``u128()``, ``u256()``, ``i128()`` or ``i256()``.
    column : str, optional
        Name to give in errors.

    Returns
    -------
    pyarrow.ExtensionArray, length n

    Raises
    ------
    SchemaError
        If a value is no integer (bool and float included) or out of range.
    """
    return pa.ExtensionArray.from_storage(wide, from_ints(values, wide.wide, column=column))


def wide_to_ints(array: pa.ExtensionArray | pa.ChunkedArray) -> list[int | None]:
    """Return the numbers of a wide column as Python ints, None where null.

    Raises
    ------
    InputError
        If `array` is no wide column.
    """
    kind = kind_of(array)
    return to_ints(whole(array).storage, kind)


def kind_of(array: pa.Array | pa.ChunkedArray) -> WideKind:
    """Return the kind of a wide column, or refuse another array."""
    if not isinstance(array.type, WideIntType):
        raise InputError(f"expected a wide integer column (u128, u256, i128, i256), got {array.type}")
    return array.type.wide
