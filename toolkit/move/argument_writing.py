"""From what a caller wrote to the JSON a node takes: lenient about the Python form, exact about the value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from toolkit._present.messages import describe, shorten
from toolkit.errors import InputError
from toolkit.move._mismatch import Mismatch
from toolkit.move.address import parse_address
from toolkit.move.ids import format_hex, parse_hex
from toolkit.move.json_reading import VARIANT, integer_range, option_items, preview
from toolkit.move.layout import (
    Address,
    Bool,
    Bytes,
    EnumOf,
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
from toolkit.move.words import MAX_NUMBER_BITS, type_words

if TYPE_CHECKING:
    from toolkit.move.tags import StructTag

__all__ = ["write_argument"]

_LARGEST_PLAIN_NUMBER = (1 << 32) - 1
_LONGEST_INTEGER = 78 + 1  # digits of u256, and a sign


def write_argument(layout: Layout, value: Any) -> Any:
    """Return the JSON of one argument; raises `Mismatch`."""
    # An Object is written as its address only where it is the argument itself.
    return _address(value) if isinstance(layout, ObjectOf) else _write(layout, value)


def _write(layout: Layout, value: Any) -> Any:  # noqa: C901, PLR0911  # one case per kind of layout
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
        case OptionOf():
            return _option(layout, value)
        case StructOf(tag, fields):
            return _fields(tag, fields, value)
        case EnumOf(tag, variants):
            return _enum(tag, dict(variants), value)
        case Untyped():
            return _as_given(value)
        case FunctionValue():
            raise Mismatch("a function value cannot be an argument")


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise Mismatch(f"expect boolean, got {describe(value)}")


def _integer(layout: UInt | Int, value: Any) -> int | str:
    low, high = integer_range(layout)
    number = value
    if isinstance(value, str) and len(value) <= _LONGEST_INTEGER and value.isascii():
        digits = value.removeprefix("-")
        number = int(value) if digits.isdigit() else None
    elif not isinstance(value, int) and hasattr(value, "__index__"):
        number = value.__index__()  # numpy's integers
    if isinstance(number, bool) or not isinstance(number, int):
        raise Mismatch(f"expect {type_words(layout)}, got {describe(value)}; write an int or its decimal digits")
    if not low <= number <= high:
        raise Mismatch(f"expect {type_words(layout)}, got {describe(value)}, outside {low}..{high}")
    return number if layout.bits <= MAX_NUMBER_BITS else str(number)


def _address(value: Any) -> str:
    given = value["inner"] if isinstance(value, Mapping) and set(value) == {"inner"} else value
    if isinstance(given, str):
        try:
            return parse_address(given)
        except InputError:
            pass
    raise Mismatch(f"expect string<address>, got {describe(value)}; write 0x and 1 to 64 hex digits")


def _bytes(value: Any) -> str:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return format_hex(bytes(value))
    if isinstance(value, str) and value.startswith("0x"):
        try:
            return format_hex(parse_hex(value))
        except InputError:
            pass
    raise Mismatch(f"expect string<hex>, got {describe(value)}; write bytes, or 0x and two hex digits a byte")


def _string(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise Mismatch(f"expect string, got {describe(value)}")


def _array(element: Layout, value: Any) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        raise Mismatch(f"expect {type_words(VectorOf(element))}, got {describe(value)}; write a list")
    out: list[Any] = []
    try:
        for item in value:
            out.append(_write(element, item))  # noqa: PERF401  # len(out) is the failing index
    except Mismatch as mismatch:
        raise mismatch.at(len(out)) from None
    return out


def _option(layout: OptionOf, value: Any) -> dict[str, list[Any]]:
    """Write an Option given as None, as the value, or as ``{"vec": [...]}``."""
    element = layout.element
    if value is None:
        return {"vec": []}
    if isinstance(value, Mapping) and set(value) == {"vec"} and not _has_vec_itself(element):
        items = option_items(dict(value), element)
    else:
        items = [value]
    return {"vec": [_write_kept(element, item) for item in items]}


def _has_vec_itself(element: Layout) -> bool:
    """Tell whether ``{"vec": ..}`` is the Python form of the element, and so not that of the Option around it."""
    if isinstance(element, OptionOf):
        return True
    return isinstance(element, StructOf) and [name for name, _ in element.fields] == ["vec"]


def _write_kept(element: Layout, value: Any) -> Any:
    """Write what an Option holds; an Option in there comes as ``{"vec": [...]}``."""
    if isinstance(element, OptionOf):
        return {"vec": [_write_kept(element.element, item) for item in option_items(value, element.element)]}
    return _write(element, value)


def _fields(tag: StructTag, fields: tuple[tuple[str, Layout], ...], value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise Mismatch(f"expect an object of {tag.base}, got {describe(value)}; write a dict of its fields")
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
            out[name] = _write(layout, value[name])
        except Mismatch as mismatch:
            raise mismatch.at(name) from None
    return out


def _enum(tag: StructTag, variants: dict[str, tuple[tuple[str, Layout], ...]], value: Any) -> dict[str, Any]:
    """Write an enum given in its output form or in its input form."""
    rest = dict(value) if isinstance(value, Mapping) else {}
    if VARIANT in rest:
        name = rest.pop(VARIANT)
    elif len(rest) == 1:
        name, rest = next(iter(rest.items()))
    else:
        name = None
    if not isinstance(name, str) or name not in variants:
        raise Mismatch(
            f"expect a variant of {tag.base}, as {{{VARIANT!r}: name, ...}} with a name of "
            f"{', '.join(variants)}, got {preview(value)}"
        )
    try:
        return {name: _fields(tag, variants[name], rest)}
    except Mismatch as mismatch:
        raise mismatch.at(name) from None


def _as_given(value: Any) -> Any:
    """Write a value of unknown type: as given, but for what JSON or the node could not hold."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return format_hex(bytes(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 0 <= value <= _LARGEST_PLAIN_NUMBER else str(value)
    if isinstance(value, (list, tuple)):
        return [_as_given(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _as_given(item) for key, item in value.items()}
    if value is None or isinstance(value, (bool, str)):
        return value
    raise Mismatch(f"expect a JSON value, got {describe(value)}")
