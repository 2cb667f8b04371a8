"""Decode arguments and table keys as a node does: strictly, and with the node's error messages.

The messages are those of the node's JSON library for kinds (``invalid type: number, expected a string``) and of its
standard library for digits (``invalid digit found in string``).
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from toolkit.errors import SchemaError
from toolkit.move._codecs import (
    CODEC_CACHE_SIZE,
    MAX_NUMBER_BITS,
    VARIANT,
    Codec,
    Mismatch,
    integer_name,
    integer_range,
    type_words,
)
from toolkit.move._ids import parse_address
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


_HEX = re.compile("[0-9a-fA-F]*")
_ADDRESS_DIGITS = 64
_ADDRESS_LENGTH = "Invalid account address: Hex string is too {}, must be 1 to 64 chars long, excluding the leading 0x"
_INTEGER = re.compile(r"[+-]?[0-9]+")
_MAX_DEBUG = 2000
_MAX_DEBUG_DEPTH = 8
_MAX_DEBUG_ITEMS = 100
_MAX_QUOTED = 200
_MAX_PRINTED_BITS = 128  # as wide as the node's JSON library reads integers


def decode_argument(layout: Layout, value: Any, *, where: str = "arguments[0]") -> Any:
    """Decode the JSON of an argument or a table key as a node does.

    Parameters
    ----------
    layout : Layout
        Layout of the parameter's type.
    value : JSON value
        Value from the request.
    where : str, default "arguments[0]"
        Name of the argument in messages; empty for a table key, whose message is the cause alone.

    Returns
    -------
    object
        The Python value, as `decode_json` returns it.

    Raises
    ------
    SchemaError
        If a node refuses the value; the message is the node's.

    Examples
    --------
    >>> from toolkit.move import Address
    >>> decode_argument(Address(), 5)
    Traceback (most recent call last):
    ...
    toolkit.errors.SchemaError: parse arguments[0] failed, expect string<address>, caused by error: \
invalid type: number, expected a string
    """
    try:
        return _decoder(layout, top=True)(value)
    except Mismatch as mismatch:
        if not where:
            raise SchemaError(mismatch.text) from None
        text = f"parse {where} failed, expect {type_words(layout)}, caused by error: {mismatch.text}"
        raise SchemaError(text, column=where) from None


def json_debug(value: Any) -> str:
    """Return a JSON value as it appears in a node's messages.

    Examples
    --------
    >>> json_debug({"a": [1, "x", None]})
    'Object {"a": Array [Number(1), String("x"), Null]}'
    """
    text = _debug(value, 0)
    return text if len(text) <= _MAX_DEBUG else f"{text[:_MAX_DEBUG]}..."


def _debug(value: Any, depth: int) -> str:  # noqa: PLR0911  # one return per kind of JSON
    if value is None:
        return "Null"
    if isinstance(value, bool):
        return f"Bool({'true' if value else 'false'})"
    if isinstance(value, str):
        return f"String({json.dumps(value[:_MAX_DEBUG], ensure_ascii=False)})"
    if depth > _MAX_DEBUG_DEPTH:
        return ".."
    if isinstance(value, list):
        return f"Array [{', '.join(_debug(item, depth + 1) for item in value[:_MAX_DEBUG_ITEMS])}]"
    if isinstance(value, dict):
        items = list(value.items())[:_MAX_DEBUG_ITEMS]
        return f"Object {{{', '.join(f'{_quoted(key)}: {_debug(item, depth + 1)}' for key, item in items)}}}"
    return f"Number({_number_text(value)})"


def _number_text(value: float) -> str:
    """Return the text of a number; Python does not print integers of thousands of digits."""
    if isinstance(value, int) and value.bit_length() > _MAX_PRINTED_BITS:
        return "number"
    return repr(value)


def json_kind(value: Any) -> str:
    """Return the kind of a JSON value as the node's JSON library names it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return f"boolean `{'true' if value else 'false'}`"
    if isinstance(value, str):
        return f"string {_quoted(value)}"
    if isinstance(value, list):
        return "sequence"
    return "map" if isinstance(value, dict) else "number"


def _text(value: Any) -> str:
    """Return a JSON string; raise the node's message for another kind."""
    if type(value) is str:
        return value
    raise Mismatch(f"invalid type: {json_kind(value)}, expected a string")


@lru_cache(maxsize=CODEC_CACHE_SIZE)
def _decoder(layout: Layout, *, top: bool = False) -> Codec:  # noqa: C901, PLR0911  # one case per kind of layout
    """Return the function from JSON to the Python value; `top` is True for the argument itself."""
    match layout:
        case Bool():
            return _bool
        case UInt() | Int():
            return _number(layout) if layout.bits <= MAX_NUMBER_BITS else _digits(layout)
        case Address():
            return _address
        case ObjectOf():
            return _address if top else _object
        case Bytes():
            return _bytes
        case String():
            return _string
        case VectorOf(element):
            return _array(element)
        case OptionOf(element):
            return _option(element)
        case StructOf(_, fields):
            return _struct(fields)
        case EnumOf(tag, variants):
            return _enum(tag, variants)
        case Untyped() | FunctionValue():
            return _unsupported(layout)


def _bool(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise Mismatch(f"invalid type: {json_kind(value)}, expected a boolean")


def _number(layout: UInt | Int) -> Codec:
    low, high = integer_range(layout)
    name = integer_name(layout)

    def decode(value: Any) -> int:
        if type(value) is int:
            if low <= value <= high:
                return value
            raise Mismatch("invalid number")
        if isinstance(value, float):
            raise Mismatch("invalid number")
        raise Mismatch(f"invalid type: {json_kind(value)}, expected {name}")

    return decode


def _digits(layout: UInt | Int) -> Codec:
    low, high = integer_range(layout)
    name = integer_name(layout)

    def decode(value: Any) -> int:
        text = _text(value)
        problem = _digits_problem(text, signed=low < 0)
        if not problem:
            # Leading zeros are accepted; the length check avoids int() of very long texts.
            digits = text.lstrip("+-").lstrip("0") or "0"
            number = int(digits) if len(digits) <= len(str(high)) else high + 2
            number = -number if text.startswith("-") else number
            if low <= number <= high:
                return number
            problem = f"number too {'small' if number < 0 else 'large'} to fit in target type"
        raise Mismatch(f"Parsing {name} string {_quoted(text)} failed, caused by error: {problem}")

    return decode


def _digits_problem(text: str, *, signed: bool) -> str:
    """Return why a text is not an integer, in the words of the node's standard library; empty if it is one."""
    if not text:
        return "cannot parse integer from empty string"
    if _INTEGER.fullmatch(text) is None or (text.startswith("-") and not signed):
        return "invalid digit found in string"
    return ""


def _address(value: Any) -> str:
    text = _text(value).removeprefix("0x")
    if not text:
        raise Mismatch(
            "Invalid account address: Hex string is too short, must be 1 to 64 chars long, excluding the leading 0x"
        )
    if len(text) > _ADDRESS_DIGITS:
        raise Mismatch(
            "Invalid account address: Hex string is too long, must be 1 to 64 chars long, excluding the leading 0x"
        )
    # The node pads the text first, so positions count from the start of 64 digits.
    problem = _hex_problem(text.rjust(_ADDRESS_DIGITS, "0"))
    if problem:
        raise Mismatch(f"Invalid account address: Hex characters are invalid: {problem}")
    return parse_address(text)


def _hex_problem(text: str) -> str:
    """Return which character is not a hex digit, in the words of the node's hex library; empty if all are."""
    match = _HEX.match(text)
    end = match.end() if match else 0
    if end == len(text):
        return ""
    return f"Invalid character {text[end]!r} at position {end}"


def _object(value: Any) -> str:
    return _address(_member(_map(value), "inner"))


def _map(value: Any) -> dict[str, Any]:
    if type(value) is dict:
        return value
    raise Mismatch("Expecting a JSON Map for struct.")


def _member(fields: dict[str, Any], name: str) -> Any:
    if name in fields:
        return fields[name]
    raise Mismatch(f"field {name} not found.")


def _bytes(value: Any) -> bytes:
    text = _text(value)
    digits = text.removeprefix("0x")
    problem = "Odd number of digits" if len(digits) % 2 else _hex_problem(digits)
    if problem:
        raise Mismatch(f"decode hex-encoded string({_quoted(text)}) failed, caused by error: {problem}")
    return bytes.fromhex(digits)


def _string(value: Any) -> str:
    if type(value) is str:
        return value
    raise Mismatch("failed to parse string::String.")


def _array(element: Layout) -> Codec:
    inner = _decoder(element)
    name = _layout_name(element)

    def decode(value: Any) -> list[Any]:
        if type(value) is not list:
            raise Mismatch(f"expected vector<{name}>, but got: {json_debug(value)}")
        return [inner(item) for item in value]

    return decode


def _layout_name(layout: Layout) -> str:  # noqa: PLR0911  # one case per kind of layout
    """Return the name of a layout in a node's messages."""
    match layout:
        case UInt(bits):
            return f"U{bits}"
        case Int(bits):
            return f"I{bits}"
        case Bool():
            return "Bool"
        case Address():
            return "Address"
        case Bytes():
            return "Vector(U8)"
        case VectorOf(element):
            return f"Vector({_layout_name(element)})"
        case _:
            return "Struct"


def _items(value: Any, element: Layout) -> list[Any]:
    """Return the list in the ``{"vec": [...]}`` of an Option, of at most one element."""
    items = _member(_map(value), "vec")
    if element == UInt(8):  # a vector<u8>, which is hex
        items = list(_bytes(items))
    if type(items) is not list:
        raise Mismatch(f"expected vector<{_layout_name(element)}>, but got: {json_debug(items)}")
    if len(items) > 1:
        raise Mismatch("an Option has at most one element")
    return items


def _option(element: Layout) -> Codec:
    inner, nested = _decoder(element), isinstance(element, OptionOf)

    def decode(value: Any) -> Any:
        items = _items(value, element)
        found = inner(items[0]) if items else None
        return {"vec": [found]} if nested and items else found

    return decode


def _struct(fields: Fields) -> Codec:
    plan = tuple((name, _decoder(layout)) for name, layout in fields)

    def decode(value: Any) -> dict[str, Any]:
        given = _map(value)
        # Nodes ignore keys that are not fields of the struct.
        return {name: codec(_member(given, name)) for name, codec in plan}

    return decode


def _enum(tag: StructTag, variants: tuple[tuple[str, Fields], ...]) -> Codec:
    plans = {name: (_struct(fields), {field for field, _ in fields}) for name, fields in variants}

    def decode(value: Any) -> dict[str, Any]:
        given = _map(value)
        if len(given) != 1:
            raise Mismatch(f"expected one variant of {tag.base} as {{name: fields}}, got {len(given)} keys")
        name, inner = next(iter(given.items()))
        if name not in plans:
            raise Mismatch(f"{tag.base} has no variant {_quoted(name)}, it has {', '.join(plans)}")
        codec, known = plans[name]
        unknown = [key for key in _map(inner) if key not in known]
        if unknown:
            raise Mismatch(f"variant {name} has no field {_quoted(unknown[0])}")
        return {VARIANT: name, **codec(inner)}

    return decode


def _quoted(text: str) -> str:
    """Return text in quotes as a node prints it, shortened."""
    return json.dumps(text[:_MAX_QUOTED], ensure_ascii=False)


def _unsupported(layout: Untyped | FunctionValue) -> Codec:
    reason = layout.reason if isinstance(layout, Untyped) else "function values cannot be arguments"

    def decode(value: Any) -> Any:
        raise Mismatch(f"unexpected move type {layout.tag} for value {json_debug(value)} ({reason})")

    return decode
