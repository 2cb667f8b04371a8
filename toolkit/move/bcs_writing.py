"""From Python values to BCS bytes: one function per layout, compiled once into closures."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from toolkit._present.messages import describe
from toolkit.errors import InputError
from toolkit.move._mismatch import Mismatch
from toolkit.move.address import address_to_bytes
from toolkit.move.bcs_primitives import MAX_LENGTH, uleb128
from toolkit.move.json_reading import VARIANT, integer_range, option_items, preview, unknown_fields
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

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.move.tags import StructTag

    Fields: TypeAlias = tuple[tuple[str, Layout], ...]

__all__ = ["BcsEncoder", "bcs_encoder"]

BcsEncoder: TypeAlias = "Callable[[Any, bytearray], None]"
"""Takes the value and the bytes so far, appends to them; raises `Mismatch`."""

_FORMATS = {8: "B", 16: "H", 32: "I", 64: "Q"}


@lru_cache(maxsize=8192)
def bcs_encoder(layout: Layout) -> BcsEncoder:  # noqa: C901, PLR0911  # one case per kind of layout
    """Return the function that writes a layout."""
    match layout:
        case Bool():
            return _bool
        case UInt() | Int():
            return _small(layout) if layout.bits in _FORMATS else _wide(layout)
        case Address() | ObjectOf():
            return _address
        case Bytes():
            return _bytes
        case String():
            return _string
        case VectorOf(element):
            return _vector(bcs_encoder(element))
        case OptionOf(OptionOf() as element):
            return _option(_kept(element))
        case OptionOf(element):
            return _option(bcs_encoder(element))
        case StructOf(tag, fields):
            return _struct(tag, fields)
        case EnumOf(tag, variants):
            return _enum(tag, variants)
        case Untyped(tag, reason):
            return _refuse(f"{tag} cannot be written as BCS: {reason}")
        case FunctionValue(tag):
            return _refuse(f"function values ({tag}) cannot be written as BCS")


def _bool(value: Any, out: bytearray) -> None:
    if value is True:
        out.append(1)
    elif value is False:
        out.append(0)
    else:
        raise Mismatch(f"expect bool, got {describe(value)}")


def _wrong_integer(layout: UInt | Int, value: Any) -> Mismatch:
    name = f"{'u' if isinstance(layout, UInt) else 'i'}{layout.bits}"
    low, high = integer_range(layout)
    return Mismatch(f"expect {name} as an int in {low}..{high}, got {describe(value)}")


def _small(layout: UInt | Int) -> BcsEncoder:
    letter = _FORMATS[layout.bits]
    pack = struct.Struct(f"<{letter.lower() if isinstance(layout, Int) else letter}").pack

    def encode(value: Any, out: bytearray) -> None:
        # struct would take a bool, and anything with __index__, for an int.
        if type(value) is not int:
            raise _wrong_integer(layout, value)
        try:
            out += pack(value)
        except struct.error:
            raise _wrong_integer(layout, value) from None

    return encode


def _wide(layout: UInt | Int) -> BcsEncoder:
    size = layout.bits // 8
    signed = isinstance(layout, Int)

    def encode(value: Any, out: bytearray) -> None:
        if type(value) is not int:
            raise _wrong_integer(layout, value)
        try:
            out += value.to_bytes(size, "little", signed=signed)
        except OverflowError:
            raise _wrong_integer(layout, value) from None

    return encode


def _address(value: Any, out: bytearray) -> None:
    try:
        out += address_to_bytes(value)
    except InputError:
        raise Mismatch(f"expect an address, got {describe(value)}") from None


def _append(data: bytes | bytearray, out: bytearray) -> None:
    if len(data) > MAX_LENGTH:
        raise Mismatch(f"{len(data)} bytes are more than BCS allows ({MAX_LENGTH})")
    out += uleb128(len(data))
    out += data


def _bytes(value: Any, out: bytearray) -> None:
    if not isinstance(value, (bytes, bytearray)):
        raise Mismatch(f"expect bytes, got {describe(value)}")
    _append(value, out)


def _string(value: Any, out: bytearray) -> None:
    if type(value) is not str:
        raise Mismatch(f"expect a text, got {describe(value)}")
    try:
        data = value.encode()
    except UnicodeEncodeError:
        raise Mismatch("a text with a lone surrogate has no UTF-8") from None
    _append(data, out)


def _vector(element: BcsEncoder) -> BcsEncoder:
    def encode(value: Any, out: bytearray) -> None:
        if not isinstance(value, (list, tuple)):
            raise Mismatch(f"expect a list, got {describe(value)}")
        out += uleb128(len(value))
        index = 0
        try:
            for index, item in enumerate(value):  # noqa: B007  # read where it fails
                element(item, out)
        except Mismatch as mismatch:
            raise mismatch.at(index) from None

    return encode


def _option(element: BcsEncoder) -> BcsEncoder:
    def encode(value: Any, out: bytearray) -> None:
        if value is None:
            out.append(0)
        else:
            out.append(1)
            element(value, out)

    return encode


def _kept(layout: OptionOf) -> BcsEncoder:
    """Return the encoder of an Option inside an Option, which comes as ``{"vec": ..}``."""
    inner = layout.element
    element = _kept(inner) if isinstance(inner, OptionOf) else bcs_encoder(inner)

    def encode(value: Any, out: bytearray) -> None:
        items = option_items(value, inner)
        out.append(len(items))
        for item in items:
            element(item, out)

    return encode


def _struct(tag: StructTag, fields: Fields) -> BcsEncoder:
    plan = tuple((name, bcs_encoder(layout)) for name, layout in fields)
    count = len(plan)

    def encode(value: Any, out: bytearray) -> None:
        if not isinstance(value, dict):
            raise Mismatch(f"expect a dict of {tag.base}, got {describe(value)}")
        name = ""
        try:
            for name, codec in plan:
                codec(value[name], out)
        except Mismatch as mismatch:
            raise mismatch.at(name) from None
        except KeyError:
            raise Mismatch(f"field {name} not found (in {tag.base}, got {preview(value)})") from None
        if len(value) != count:
            raise Mismatch(unknown_fields(tag, value, dict(fields)))

    return encode


def _enum(tag: StructTag, variants: tuple[tuple[str, Fields], ...]) -> BcsEncoder:
    plans = {name: (uleb128(index), _struct(tag, fields)) for index, (name, fields) in enumerate(variants)}

    def encode(value: Any, out: bytearray) -> None:
        rest = dict(value) if isinstance(value, dict) else {}
        name = rest.pop(VARIANT, None)
        plan = plans.get(name) if isinstance(name, str) else None
        if plan is None:
            raise Mismatch(f"expect a dict with {VARIANT} one of {', '.join(plans)}, got {preview(value)}")
        index, codec = plan
        out += index
        codec(rest, out)

    return encode


def _refuse(text: str) -> BcsEncoder:
    def encode(_value: Any, _out: bytearray) -> None:
        raise Mismatch(text)

    return encode
