"""Move values in JSON as nodes print them. The codec of a layout is compiled once, into closures, and cached.

Python values are bool, int, str (canonical addresses, strings), bytes, list, and dict with the fields in declared
order. An Option is None or its element; an Option of an Option is None or ``{"vec": [element]}``, whose element may be
None. The value of an enum is a dict that starts with ``__variant__``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, assert_never

from toolkit._present.messages import describe
from toolkit.errors import InputError
from toolkit.move._codecs import (
    CODEC_CACHE_SIZE,
    MAX_NUMBER_BITS,
    VARIANT,
    Codec,
    Mismatch,
    hex_bytes,
    integer_range,
    option_items,
    preview,
    raise_schema_error,
    some_element,
    type_words,
    unknown_fields,
)
from toolkit.move._ids import parse_address, parse_table_handle, wire_address
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
    from collections.abc import Iterator

    from toolkit.move._type_tags import StructTag


_TABLE = ("0x1", "table", "Table")
"""Every table of the framework is one, or has one inside."""


def decode_json(layout: Layout, value: Any, *, where: str = "value") -> Any:
    """Decode a Python value from the JSON that nodes print.

    Parameters
    ----------
    layout : Layout
        Layout of the value.
    value : JSON value
        The parsed JSON, integers as int.
    where : str, default "value"
        Name of the value in messages.

    Returns
    -------
    object
        The Python value; see the description of the module.

    Raises
    ------
    SchemaError
        If the JSON does not fit the layout; the message names the path, which is also ``.column``.

    Examples
    --------
    >>> from toolkit.move import OptionOf, UInt
    >>> decode_json(OptionOf(UInt(64)), {"vec": ["18446744073709551615"]})
    18446744073709551615
    """
    try:
        return json_decoder(layout)(value)
    except Mismatch as mismatch:
        raise_schema_error(mismatch, where)


def encode_json(layout: Layout, value: Any, *, where: str = "value") -> Any:
    """Encode a Python value as the JSON that nodes print: addresses without leading zeros, fields sorted by name.

    Parameters
    ----------
    layout : Layout
        Layout of the value.
    value : object
        The value in the form that `decode_json` and `decode_bcs` return.
    where : str, default "value"
        Name of the value in messages.

    Returns
    -------
    JSON value

    Raises
    ------
    SchemaError
        If the value does not fit the layout; the message names the path.

    Examples
    --------
    >>> from toolkit.move import UInt, VectorOf
    >>> encode_json(VectorOf(UInt(64)), [1, 2])
    ['1', '2']
    """
    try:
        return json_encoder(layout)(value)
    except Mismatch as mismatch:
        raise_schema_error(mismatch, where)


@lru_cache(maxsize=CODEC_CACHE_SIZE)
def json_decoder(layout: Layout) -> Codec:  # noqa: C901, PLR0911  # one case per kind of layout
    """Return the function from JSON to the Python value of a layout."""
    match layout:
        case Bool():
            return _decode_bool
        case UInt() | Int():
            return _decode_number(layout) if layout.bits <= MAX_NUMBER_BITS else _decode_digits(layout)
        case Address():
            return _decode_address
        case ObjectOf():
            return _decode_object
        case Bytes():
            return hex_bytes
        case String():
            return _decode_string
        case VectorOf(element):
            return _decode_array(json_decoder(element))
        case OptionOf(element):
            return _decode_option(element)
        case StructOf(tag, fields):
            return _decode_struct(tag, fields)
        case EnumOf(tag, variants):
            return _decode_enum(tag, variants)
        case Untyped() | FunctionValue():
            return _unchanged


def _decode_bool(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise Mismatch(f"expected boolean, got {describe(value)}")


def _decode_number(layout: UInt | Int) -> Codec:
    low, high = integer_range(layout)
    words = type_words(layout)

    def decode(value: Any) -> int:
        if type(value) is int and low <= value <= high:
            return value
        raise Mismatch(_integer_problem(value, words, low, high, int))

    return decode


def _decode_digits(layout: UInt | Int) -> Codec:
    low, high = integer_range(layout)
    words = type_words(layout)
    longest = max(len(str(low)), len(str(high)))

    def decode(value: Any) -> int:
        # The length is checked first, because int() is slow for long texts.
        if type(value) is str and len(value) <= longest and _is_plain(value):
            number = int(value)
            if low <= number <= high:
                return number
        raise Mismatch(_integer_problem(value, words, low, high, str))

    return decode


_is_plain = re.compile(r"0|-?[1-9][0-9]*").fullmatch
"""Canonical digits; int() also accepts "+1", "1_0", spaces and the digits of other scripts."""


def _integer_problem(value: Any, words: str, low: int, high: int, form: Any) -> str:
    """Return what is wrong with an integer: its JSON kind, its digits or its range."""
    if type(value) is not form:
        return f"expected {words}, got {describe(value)}"
    if form is str and not _is_plain(value):
        return f"expected {words}, got {describe(value)}, which is not a canonical decimal number"
    return f"expected {words}, got {describe(value)}, outside {low}..{high}"


def _decode_address(value: Any) -> str:
    if type(value) is str:
        try:
            return parse_address(value)
        except InputError:
            pass
    raise Mismatch(f"expected string<address>, got {describe(value)}")


def _decode_object(value: Any) -> str:
    if type(value) is dict and len(value) == 1 and "inner" in value:
        try:
            return _decode_address(value["inner"])
        except Mismatch as mismatch:
            raise mismatch.at("inner") from None
    if type(value) is str:
        return _decode_address(value)
    raise Mismatch(f'expected an object address, as {{"inner": string<address>}}, got {describe(value)}')


def _decode_string(value: Any) -> str:
    if type(value) is str:
        return value
    raise Mismatch(f"expected a string, got {describe(value)}")


def _unchanged(value: Any) -> Any:
    return value


def _decode_array(element: Codec) -> Codec:
    def decode(value: Any) -> list[Any]:
        if type(value) is not list:
            raise Mismatch(f"expected array, got {describe(value)}")
        out: list[Any] = []
        append = out.append
        try:
            for item in value:
                append(element(item))
        except Mismatch as mismatch:
            raise mismatch.at(len(out)) from None
        return out

    return decode


def _decode_option(layout: Layout) -> Codec:
    element, nested = json_decoder(layout), isinstance(layout, OptionOf)

    def decode(value: Any) -> Any:
        items = option_items(value, layout)
        if not items:
            return None
        try:
            inner = element(items[0])
        except Mismatch as mismatch:
            raise mismatch.at("vec[0]") from None
        if nested:
            return {"vec": [inner]}
        if inner is None:
            # Only an untyped element can be null; the result would equal an empty Option.
            raise Mismatch(f"expected {type_words(layout)}, got null").at("vec[0]")
        return inner

    return decode


def _decode_struct(tag: StructTag, fields: Fields) -> Codec:
    plan = tuple((name, json_decoder(layout)) for name, layout in fields)
    count = len(plan)

    def decode(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise Mismatch(f"expected an object of {tag.base}, got {describe(value)}")
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


def _decode_enum(tag: StructTag, variants: tuple[tuple[str, Fields], ...]) -> Codec:
    plans = {name: _decode_struct(tag, fields) for name, fields in variants}

    def decode(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise Mismatch(f"expected an object of {tag.base}, got {describe(value)}")
        rest = dict(value)
        name = rest.pop(VARIANT, None)
        plan = plans.get(name) if type(name) is str else None
        if plan is None:
            raise Mismatch(f"expected {VARIANT} one of {', '.join(plans)}, got {_variant(value)}")
        return {VARIANT: name, **plan(rest)}

    return decode


def _variant(value: dict[Any, Any]) -> str:
    """Return text that shows the variant's name, or the value if there is none."""
    return describe(value[VARIANT]) if VARIANT in value else preview(value)


@lru_cache(maxsize=CODEC_CACHE_SIZE)
def json_encoder(layout: Layout) -> Codec:  # noqa: PLR0911  # one case per kind of layout
    """Return the function from a Python value of a layout to the JSON that nodes print."""
    match layout:
        case UInt() | Int():
            return _encode_integer(layout)
        case Address():
            return _encode_address
        case ObjectOf():
            return _encode_object
        case Bytes():
            return _encode_bytes
        case VectorOf(element):
            return _encode_array(json_encoder(element))
        case OptionOf(element):
            return _encode_option(element)
        case StructOf(tag, fields):
            return _encode_struct(tag, fields)
        case EnumOf(tag, variants):
            return _encode_enum(tag, variants)
        case Bool() | String() | FunctionValue() | Untyped():
            return json_decoder(layout)  # the same in JSON and in Python
        case _:
            assert_never(layout)


def _encode_integer(layout: UInt | Int) -> Codec:
    low, high = integer_range(layout)
    words = type_words(layout)
    as_text = layout.bits > MAX_NUMBER_BITS

    def encode(value: Any) -> int | str:
        if type(value) is int and low <= value <= high:
            return str(value) if as_text else value
        raise Mismatch(f"expected {words} as an int in {low}..{high}, got {describe(value)}")

    return encode


def _encode_address(value: Any) -> str:
    if type(value) is str:
        try:
            return wire_address(value)
        except InputError:
            pass
    raise Mismatch(f"expected string<address>, got {describe(value)}")


def _encode_object(value: Any) -> dict[str, str]:
    return {"inner": _encode_address(value)}


def _encode_bytes(value: Any) -> str:
    if isinstance(value, (bytes, bytearray)):
        return f"0x{value.hex()}"
    raise Mismatch(f"expected bytes, got {describe(value)}")


def _encode_array(element: Codec) -> Codec:
    def encode(value: Any) -> list[Any]:
        if not isinstance(value, (list, tuple)):
            raise Mismatch(f"expected a list, got {describe(value)}")
        out: list[Any] = []
        append = out.append
        try:
            for item in value:
                append(element(item))
        except Mismatch as mismatch:
            raise mismatch.at(len(out)) from None
        return out

    return encode


def _encode_option(layout: Layout) -> Codec:
    element = json_encoder(layout)

    def encode(value: Any) -> dict[str, list[Any]]:
        return {"vec": []} if value is None else {"vec": [element(some_element(value, layout))]}

    return encode


def _encode_struct(tag: StructTag, fields: Fields) -> Codec:
    # Nodes print fields sorted by name, not in declared order.
    plan = tuple(sorted((name, json_encoder(layout)) for name, layout in fields))
    count = len(plan)

    def encode(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise Mismatch(f"expected a dict of {tag.base}, got {describe(value)}")
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


def _encode_enum(tag: StructTag, variants: tuple[tuple[str, Fields], ...]) -> Codec:
    plans = {name: _encode_struct(tag, fields) for name, fields in variants}

    def encode(value: Any) -> dict[str, Any]:
        rest = dict(value) if type(value) is dict else {}
        name = rest.pop(VARIANT, None)
        plan = plans.get(name) if type(name) is str else None
        if plan is None:
            raise Mismatch(f"expected a dict with {VARIANT} one of {', '.join(plans)}, got {preview(value)}")
        return {VARIANT: name, **plan(rest)}

    return encode


# tables --------------------------------------------------------------------------------------------------------------


class DeclaredTable(NamedTuple):
    """A table that a value holds.

    Attributes
    ----------
    handle : str
        0x and 64 hex digits.
    key_type, value_type : str
        Move types of its declaration.
    field : str
        Fields that lead to it, such as ``records`` or ``pools[0].orders``.
    """

    handle: str
    key_type: str
    value_type: str
    field: str


def tables_in(layout: Layout, value: Any, field: str = "") -> Iterator[DeclaredTable]:
    """Yield the tables that a value in JSON holds, in declared order; what does not fit the layout is left out."""
    inner: list[tuple[Layout, Any, str]] = []
    dot = f"{field}." if field else ""
    match layout:
        case StructOf(tag, fields) if isinstance(value, dict):
            if (tag.address, tag.module, tag.name) == _TABLE and len(tag.type_arguments) == 2:  # noqa: PLR2004
                if (handle := _handle(value.get("handle"))) is not None:
                    key, item = tag.type_arguments
                    yield DeclaredTable(handle, str(key), str(item), field)
                return
            inner = [(kind, value.get(name), f"{dot}{name}") for name, kind in fields]
        case EnumOf(_, variants) if isinstance(value, dict):
            chosen = dict(variants).get(str(value.get(VARIANT)), ())
            inner = [(kind, value.get(name), f"{dot}{name}") for name, kind in chosen]
        case OptionOf(element) if isinstance(value, dict) and isinstance(value.get("vec"), list):
            inner = [(element, item, field) for item in value["vec"]]
        case VectorOf(element) if isinstance(value, list):
            inner = [(element, item, f"{field}[{place}]") for place, item in enumerate(value)]
    for kind, item, name in inner:
        yield from tables_in(kind, item, name)


def _handle(text: Any) -> str | None:
    try:
        return parse_table_handle(text) if isinstance(text, str) else None
    except InputError:
        return None
