"""From Python values to the JSON a node prints: one function per layout, compiled once into closures."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from toolkit._present.messages import describe
from toolkit.errors import InputError
from toolkit.move._mismatch import Mismatch
from toolkit.move.address import wire_address
from toolkit.move.json_reading import (
    VARIANT,
    Codec,
    integer_range,
    json_decoder,
    option_items,
    preview,
    unknown_fields,
)
from toolkit.move.layout import (
    Address,
    Bytes,
    EnumOf,
    Int,
    Layout,
    ObjectOf,
    OptionOf,
    StructOf,
    UInt,
    VectorOf,
)
from toolkit.move.words import MAX_NUMBER_BITS, type_words

if TYPE_CHECKING:
    from toolkit.move.tags import StructTag

    Fields: TypeAlias = tuple[tuple[str, Layout], ...]

__all__ = ["json_encoder"]

_CACHE = 8192


@lru_cache(maxsize=_CACHE)
def json_encoder(layout: Layout) -> Codec:  # noqa: PLR0911  # one case per kind of layout
    """Return the function from a Python value to the node's output JSON; it raises `Mismatch`."""
    match layout:
        case UInt() | Int():
            return _write_integer(layout)
        case Address():
            return _write_address
        case ObjectOf():
            return _write_object
        case Bytes():
            return _write_bytes
        case VectorOf(element):
            return _write_array(json_encoder(element))
        case OptionOf(element):
            return _write_option(_write_kept(element) if isinstance(element, OptionOf) else json_encoder(element))
        case StructOf(tag, fields):
            return _write_struct(tag, fields)
        case EnumOf(tag, variants):
            return _write_enum(tag, variants)
        case _:
            # bool, String, function values and untyped values look alike on both sides.
            return json_decoder(layout)


def _write_integer(layout: UInt | Int) -> Codec:
    low, high = integer_range(layout)
    words = type_words(layout)
    as_text = layout.bits > MAX_NUMBER_BITS

    def encode(value: Any) -> int | str:
        if type(value) is int and low <= value <= high:
            return str(value) if as_text else value
        raise Mismatch(f"expect {words} as an int in {low}..{high}, got {describe(value)}")

    return encode


def _write_address(value: Any) -> str:
    if type(value) is str:
        try:
            return wire_address(value)
        except InputError:
            pass
    raise Mismatch(f"expect string<address>, got {describe(value)}")


def _write_object(value: Any) -> dict[str, str]:
    return {"inner": _write_address(value)}


def _write_bytes(value: Any) -> str:
    if isinstance(value, (bytes, bytearray)):
        return f"0x{value.hex()}"
    raise Mismatch(f"expect bytes, got {describe(value)}")


def _write_array(element: Codec) -> Codec:
    def encode(value: Any) -> list[Any]:
        if not isinstance(value, (list, tuple)):
            raise Mismatch(f"expect a list, got {describe(value)}")
        out: list[Any] = []
        append = out.append
        try:
            for item in value:
                append(element(item))
        except Mismatch as mismatch:
            raise mismatch.at(len(out)) from None
        return out

    return encode


def _write_option(element: Codec) -> Codec:
    def encode(value: Any) -> dict[str, list[Any]]:
        return {"vec": []} if value is None else {"vec": [element(value)]}

    return encode


def _write_kept(layout: OptionOf) -> Codec:
    element = layout.element
    inner = _write_kept(element) if isinstance(element, OptionOf) else json_encoder(element)

    def encode(value: Any) -> dict[str, list[Any]]:
        return {"vec": [inner(item) for item in option_items(value, element)]}

    return encode


def _write_struct(tag: StructTag, fields: Fields) -> Codec:
    # A node prints fields sorted by name, whatever their declared order.
    plan = tuple(sorted((name, json_encoder(layout)) for name, layout in fields))
    count = len(plan)

    def encode(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise Mismatch(f"expect a dict of {tag.base}, got {describe(value)}")
        out: dict[str, Any] = {}
        name = ""
        try:
            for name, codec in plan:
                out[name] = codec(value[name])
        except Mismatch as mismatch:
            raise mismatch.at(name) from None
        except KeyError:
            raise Mismatch(f"field {name} not found (in {tag.base}, got {preview(value)})") from None
        if len(value) != count:
            raise Mismatch(unknown_fields(tag, value, out))
        return out

    return encode


def _write_enum(tag: StructTag, variants: tuple[tuple[str, Fields], ...]) -> Codec:
    plans = {name: _write_struct(tag, fields) for name, fields in variants}

    def encode(value: Any) -> dict[str, Any]:
        rest = dict(value) if type(value) is dict else {}
        name = rest.pop(VARIANT, None)
        plan = plans.get(name) if type(name) is str else None
        if plan is None:
            raise Mismatch(f"expect a dict with {VARIANT} one of {', '.join(plans)}, got {preview(value)}")
        return {VARIANT: name, **plan(rest)}

    return encode
