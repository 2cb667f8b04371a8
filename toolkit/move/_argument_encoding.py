"""Encode what a caller passes as the JSON that a node accepts: lenient about the Python form, exact about the value."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, assert_never

from toolkit._present.messages import describe, shorten
from toolkit.errors import InputError
from toolkit.move._codecs import MAX_NUMBER_BITS, VARIANT, Mismatch, integer_range, move_type, option_items, preview
from toolkit.move._ids import format_hex, parse_address, parse_hex
from toolkit.move._layouts import (
    Address,
    Bool,
    Bytes,
    EnumOf,
    Fields,
    FunctionValue,
    Int,
    Layout,
    ObjectOf,
    OptionOf,
    String,
    StructOf,
    UInt,
    Untyped,
    VectorOf,
)

if TYPE_CHECKING:
    from toolkit.move._type_tags import StructTag


_MAX_PLAIN_NUMBER = (1 << 32) - 1
_MAX_DIGITS = 78 + 1  # digits of the largest u256, and a sign


def encode_argument(layout: Layout, value: Any, *, where: str = "arguments[0]") -> Any:
    """Encode an argument or a table key as the JSON that a node accepts.

    Parameters
    ----------
    layout : Layout
        Layout of the parameter's type.
    value : object
        A Python value, or the JSON that a node accepts or prints: an int or its digits, bytes or 0x-hex; for an Option
        None, the element or ``{"vec": [...]}``, also for an Option of an Option; for an enum
        ``{"__variant__": "Name", ...}`` or ``{"Name": {...}}``.
    where : str, default "arguments[0]"
        Name of the argument in messages.

    Returns
    -------
    JSON value
        Integers of up to 32 bits as numbers, wider ones as strings; an Object as its address, inside other types as
        ``{"inner": address}``; an enum as ``{"Name": {...}}``.

    Raises
    ------
    InputError
        If the value does not fit the layout; the message names the path.

    Examples
    --------
    >>> from toolkit.move import UInt
    >>> encode_argument(UInt(64), 5), encode_argument(UInt(8), 5)
    ('5', 5)
    """
    try:
        # Only an Object that is the argument itself is written as its address.
        return _address(value) if isinstance(layout, ObjectOf) else _encode(layout, value)
    except Mismatch as mismatch:
        raise mismatch.error(InputError, where) from None
    except RecursionError:
        raise InputError(f"{where}: the value is nested too deeply") from None


def _encode(layout: Layout, value: Any) -> Any:  # noqa: C901, PLR0911, PLR0912  # one case per kind of layout
    match layout:
        case Bool():
            return _bool(value)
        case UInt() | Int():
            return _integer(layout, value)
        case Address():
            return _address(value)
        case ObjectOf():
            return {"inner": _address(value)}
        case Bytes():
            return _bytes(value)
        case String():
            return _string(value)
        case VectorOf(element):
            return _array(element, value)
        case OptionOf(element):
            return _option(element, value)
        case StructOf(tag, fields):
            return _fields(tag, fields, value)
        case EnumOf(tag, variants):
            return _enum(tag, dict(variants), value)
        case Untyped():
            return _as_given(value)
        case FunctionValue():
            raise Mismatch("a function value cannot be an argument")
        case _:
            assert_never(layout)


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise Mismatch(f"expected bool, got {describe(value)}")


def _integer(layout: UInt | Int, value: Any) -> int | str:
    low, high = integer_range(layout)
    number = value
    if isinstance(value, str) and len(value) <= _MAX_DIGITS and value.isascii():
        digits = value.removeprefix("-")
        number = int(value) if digits.isdigit() else None
    elif not isinstance(value, int) and hasattr(value, "__index__"):
        number = value.__index__()  # integers of NumPy
    if isinstance(number, bool) or not isinstance(number, int):
        raise Mismatch(f"expected {move_type(layout)}, got {describe(value)}; pass an int or its decimal digits")
    if not low <= number <= high:
        raise Mismatch(f"expected {move_type(layout)}, got {describe(value)}, outside {low}..{high}")
    return number if layout.bits <= MAX_NUMBER_BITS else str(number)


def _address(value: Any) -> str:
    given = value["inner"] if isinstance(value, Mapping) and set(value) == {"inner"} else value
    if isinstance(given, str):
        try:
            return parse_address(given)
        except InputError:
            pass
    raise Mismatch(f"expected address, got {describe(value)}; pass 0x and 1 to 64 hex digits")


def _bytes(value: Any) -> str:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return format_hex(bytes(value))
    if isinstance(value, str) and value.startswith("0x"):
        try:
            return format_hex(parse_hex(value))
        except InputError:
            pass
    raise Mismatch(f"expected vector<u8>, got {describe(value)}; pass bytes, or 0x and two hex digits per byte")


def _string(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise Mismatch(f"expected 0x1::string::String, got {describe(value)}; pass a str")


def _array(element: Layout, value: Any) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        raise Mismatch(f"expected {move_type(VectorOf(element))}, got {describe(value)}; pass a list")
    out: list[Any] = []
    try:
        for item in value:
            out.append(_encode(element, item))  # noqa: PERF401  # len(out) is the index of the item that fails
    except Mismatch as mismatch:
        raise mismatch.at(len(out)) from None
    return out


def _option(element: Layout, value: Any) -> dict[str, Any]:
    """Encode an Option given as None, as the element, or as ``{"vec": [...]}``.

    ``vec`` is a vector of the element's type for nodes, and they accept a ``vector<u8>`` as hex only.
    """
    if value is None:
        items = []
    elif isinstance(value, Mapping) and set(value) == {"vec"} and not _fits_itself(element, value):
        items = option_items(dict(value), element)
    else:
        items = [value]
    encoded = [_encode(element, item) for item in items]
    return {"vec": format_hex(bytes(encoded)) if element == UInt(8) else encoded}


def _fits_itself(element: Layout, value: Any) -> bool:
    """Return whether ``{"vec": ..}`` is a struct that is the element, and so not the Option around it."""
    if not isinstance(element, StructOf) or [name for name, _ in element.fields] != ["vec"]:
        return False
    with suppress(Mismatch):
        _encode(element, value)
        return True
    return False


def _fields(tag: StructTag, fields: Fields, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise Mismatch(f"expected an object of {tag.base}, got {describe(value)}; pass a dict of its fields")
    names = [name for name, _ in fields]
    unknown = [key for key in value if key not in names]
    if unknown:
        known = ", ".join(names) or "none"
        raise Mismatch(f"{tag.base} has no field {shorten(unknown[0])}; its fields: {known}")
    out = {}
    for name, layout in fields:
        if name not in value:
            raise Mismatch(f"field {name} not found; {tag.base} has {', '.join(names)}")
        try:
            out[name] = _encode(layout, value[name])
        except Mismatch as mismatch:
            raise mismatch.at(name) from None
    return out


def _enum(tag: StructTag, variants: dict[str, Fields], value: Any) -> dict[str, Any]:
    """Encode an enum given in the form that nodes print or in the form that nodes accept."""
    rest = dict(value) if isinstance(value, Mapping) else {}
    if VARIANT in rest:
        name = rest.pop(VARIANT)
    elif len(rest) == 1:
        name, rest = next(iter(rest.items()))
    else:
        name = None
    if not isinstance(name, str) or name not in variants:
        raise Mismatch(
            f"expected a variant of {tag.base}, as {{{VARIANT!r}: name, ...}} with a name of "
            f"{', '.join(variants)}, got {preview(value)}"
        )
    try:
        return {name: _fields(tag, variants[name], rest)}
    except Mismatch as mismatch:
        raise mismatch.at(name) from None


def _as_given(value: Any) -> Any:
    """Encode a value of unknown type: bytes become hex, negative and large integers become text."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return format_hex(bytes(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 0 <= value <= _MAX_PLAIN_NUMBER else str(value)
    if isinstance(value, (list, tuple)):
        return [_as_given(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _as_given(item) for key, item in value.items()}
    if value is None or isinstance(value, (bool, str)):
        return value
    raise Mismatch(f"expected a JSON value, got {describe(value)}")
