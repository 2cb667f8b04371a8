"""From a node's JSON to Python values: one function per layout, compiled once into closures."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from toolkit._present.messages import describe, shorten
from toolkit.errors import InputError
from toolkit.move._mismatch import Mismatch
from toolkit.move.address import parse_address
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
    from collections.abc import Callable

    from toolkit.move.tags import StructTag

    Fields: TypeAlias = tuple[tuple[str, Layout], ...]

__all__ = ["VARIANT", "Codec", "integer_range", "json_decoder", "option_items", "preview", "unknown_fields"]

Codec: TypeAlias = "Callable[[Any], Any]"

VARIANT = "__variant__"
"""Key that names the variant of an enum value."""

_CACHE = 8192
_NAMES_SHOWN = 5  # enough to recognise an object by


def integer_range(layout: UInt | Int) -> tuple[int, int]:
    """Return the smallest and the largest value of an integer type."""
    if isinstance(layout, UInt):
        return 0, (1 << layout.bits) - 1
    half = 1 << (layout.bits - 1)
    return -half, half - 1


@lru_cache(maxsize=_CACHE)
def json_decoder(layout: Layout) -> Codec:  # noqa: C901, PLR0911  # one case per kind of layout
    """Return the function from a node's JSON to the Python value; it raises `Mismatch`."""
    match layout:
        case Bool():
            return _bool
        case UInt() | Int():
            return _number(layout) if layout.bits <= MAX_NUMBER_BITS else _digits(layout)
        case Address():
            return _address
        case ObjectOf():
            return _object
        case Bytes():
            return _bytes
        case String():
            return _string
        case VectorOf(element):
            return _array(json_decoder(element))
        case OptionOf(element):
            return _option(layout, _kept_option(element) if isinstance(element, OptionOf) else json_decoder(element))
        case StructOf(tag, fields):
            return _struct(tag, fields)
        case EnumOf(tag, variants):
            return _enum(tag, variants)
        case Untyped() | FunctionValue():
            return _as_it_came


def _bool(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise Mismatch(f"expect boolean, got {describe(value)}")


def _number(layout: UInt | Int) -> Codec:
    low, high = integer_range(layout)
    words = type_words(layout)

    def decode(value: Any) -> int:
        if type(value) is int and low <= value <= high:
            return value
        raise Mismatch(_integer_problem(value, words, low, high, int))

    return decode


def _digits(layout: UInt | Int) -> Codec:
    low, high = integer_range(layout)
    words = type_words(layout)
    longest = max(len(str(low)), len(str(high)))

    def decode(value: Any) -> int:
        # A length check first: int() takes its time over long texts.
        if type(value) is str and len(value) <= longest and _is_plain(value):
            number = int(value)
            if low <= number <= high:
                return number
        raise Mismatch(_integer_problem(value, words, low, high, str))

    return decode


_is_plain = re.compile(r"0|-?[1-9][0-9]*").fullmatch
"""Canonical digits only: int() alone would take "+1", "1_0", spaces and the digits of all scripts as well."""


def _integer_problem(value: Any, words: str, low: int, high: int, form: Any) -> str:
    """Say what is wrong with an integer: its JSON kind, its digits or its range."""
    if type(value) is not form:
        return f"expect {words}, got {describe(value)}"
    if form is str and not _is_plain(value):
        return f"expect {words}, got {describe(value)}, which is not a plain decimal number"
    return f"expect {words}, got {describe(value)}, outside {low}..{high}"


def _address(value: Any) -> str:
    if type(value) is str:
        try:
            return parse_address(value)
        except InputError:
            pass
    raise Mismatch(f"expect string<address>, got {describe(value)}")


def _object(value: Any) -> str:
    if type(value) is dict and len(value) == 1 and "inner" in value:
        try:
            return _address(value["inner"])
        except Mismatch as mismatch:
            raise mismatch.at("inner") from None
    if type(value) is str:
        return _address(value)
    raise Mismatch(f'expect an object address, as {{"inner": string<address>}}, got {describe(value)}')


def _bytes(value: Any) -> bytes:
    if type(value) is str and value[:2] == "0x":
        try:
            data = bytes.fromhex(value[2:])
        except ValueError:
            data = b""
        # fromhex() skips spaces; the length shows them, and an odd digit as well.
        if len(data) * 2 == len(value) - 2:
            return data
    raise Mismatch(f"expect string<hex>, got {describe(value)}")


def _string(value: Any) -> str:
    if type(value) is str:
        return value
    raise Mismatch(f"expect string, got {describe(value)}")


def _as_it_came(value: Any) -> Any:
    return value


def _array(element: Codec) -> Codec:
    def decode(value: Any) -> list[Any]:
        if type(value) is not list:
            raise Mismatch(f"expect array, got {describe(value)}")
        out: list[Any] = []
        append = out.append
        try:
            for item in value:
                append(element(item))
        except Mismatch as mismatch:
            raise mismatch.at(len(out)) from None
        return out

    return decode


def option_items(value: Any, element: Layout) -> list[Any]:
    """Return the list inside ``{"vec": [...]}``, of at most one element; raises `Mismatch`."""
    if type(value) is dict and len(value) == 1:
        items = value.get("vec")
        if type(items) is str and element == UInt(8):
            # A node that sees Option as a struct prints its vector<u8> as hex, even so short.
            items = list(_bytes(items))
        if type(items) is list and len(items) <= 1:
            return items
    raise Mismatch(f'expect an Option, as {{"vec": []}} or {{"vec": [x]}}, got {preview(value)}')


def preview(value: Any) -> str:
    """Show an object by its keys, anything else by its kind."""
    if isinstance(value, dict) and value:
        keys = ", ".join(shorten(key, 30) for key in list(value)[:_NAMES_SHOWN])
        return f"object with {keys}{', ...' if len(value) > _NAMES_SHOWN else ''}"
    return describe(value)


def _option(layout: OptionOf, element: Codec) -> Codec:
    def decode(value: Any) -> Any:
        items = option_items(value, layout.element)
        if not items:
            return None
        try:
            inner = element(items[0])
        except Mismatch as mismatch:
            raise mismatch.at("vec[0]") from None
        if inner is None:
            # Only an untyped element can be null; it would read as an empty Option.
            raise Mismatch(f"expect {type_words(layout.element)}, got null").at("vec[0]")
        return inner

    return decode


def _kept_option(layout: OptionOf) -> Codec:
    """Return the decoder of an Option inside an Option: the Python value keeps ``{"vec": ..}``."""
    element = layout.element
    inner = _kept_option(element) if isinstance(element, OptionOf) else json_decoder(element)

    def decode(value: Any) -> dict[str, list[Any]]:
        items = option_items(value, element)
        try:
            return {"vec": [inner(item) for item in items]}
        except Mismatch as mismatch:
            raise mismatch.at("vec[0]") from None

    return decode


def _struct(tag: StructTag, fields: Fields) -> Codec:
    plan = tuple((name, json_decoder(layout)) for name, layout in fields)
    count = len(plan)

    def decode(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise Mismatch(f"expect an object of {tag.base}, got {describe(value)}")
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

    return decode


def unknown_fields(tag: StructTag, value: dict[Any, Any], known: dict[str, Any]) -> str:
    """Say which fields of a value its struct does not have."""
    names = [shorten(key, 30) for key in value if key not in known]
    return f"{tag.base} has no field {', '.join(names[:_NAMES_SHOWN])}; it has {', '.join(known) or 'none'}"


def _enum(tag: StructTag, variants: tuple[tuple[str, Fields], ...]) -> Codec:
    plans = {name: _struct(tag, fields) for name, fields in variants}

    def decode(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise Mismatch(f"expect an object of {tag.base}, got {describe(value)}")
        rest = dict(value)
        name = rest.pop(VARIANT, None)
        plan = plans.get(name) if type(name) is str else None
        if plan is None:
            raise Mismatch(f"expect {VARIANT} one of {', '.join(plans)}, got {_variant(value)}")
        return {VARIANT: name, **plan(rest)}

    return decode


def _variant(value: dict[Any, Any]) -> str:
    """Show what names the variant, or what is there instead."""
    return describe(value[VARIANT]) if VARIANT in value else preview(value)
