"""Move values in BCS. The codec of a layout is compiled once, into closures, and cached."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from toolkit._present.messages import describe
from toolkit.errors import InputError, SchemaError
from toolkit.move._bcs import MAX_LENGTH, uleb128, uleb128_at
from toolkit.move._codecs import (
    CODEC_CACHE_SIZE,
    VARIANT,
    Mismatch,
    integer_name,
    integer_range,
    preview,
    raise_schema_error,
    some_element,
    unknown_fields,
)
from toolkit.move._ids import ADDRESS_LENGTH, address_from_bytes, address_to_bytes
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
    from toolkit.move._bcs import Reader
    from toolkit.move._type_tags import StructTag


_Decoder: TypeAlias = Callable[[bytes, int], tuple[Any, int]]
"""From the data and a position to the value and the position after it; raises `Mismatch`."""
_Encoder: TypeAlias = Callable[[Any, bytearray], None]
"""Appends a value to the data; raises `Mismatch`."""

_FORMATS = {8: "B", 16: "H", 32: "I", 64: "Q"}


def encode_bcs(layout: Layout, value: Any, *, where: str = "value") -> bytes:
    """Encode a Python value as BCS.

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
    bytes

    Raises
    ------
    SchemaError
        If the value does not fit the layout, or a part of the layout has no BCS form; the message names the path.

    Examples
    --------
    >>> from toolkit.move import String, VectorOf
    >>> encode_bcs(VectorOf(String()), ["ab"]).hex()
    '01026162'
    """
    out = bytearray()
    try:
        _encoder(layout)(value, out)
    except Mismatch as mismatch:
        raise_schema_error(mismatch, where)
    return bytes(out)


def decode_bcs(layout: Layout, data: bytes, *, where: str = "value") -> Any:
    """Decode a Python value from BCS.

    Parameters
    ----------
    layout : Layout
        Layout of the value.
    data : bytes
        The BCS of one value.
    where : str, default "value"
        Name of the value in messages.

    Returns
    -------
    object
        Equal to what `decode_json` returns for the same value.

    Raises
    ------
    SchemaError
        If the data does not fit the layout, ends early, is not canonical, or continues after the value.

    Examples
    --------
    >>> from toolkit.move import OptionOf, UInt
    >>> decode_bcs(OptionOf(UInt(16)), bytes.fromhex("010500"))
    5
    """
    data = bytes(data)
    try:
        value, position = _decoder(layout)(data, 0)
    except Mismatch as mismatch:
        raise_schema_error(mismatch, where)
    if position != len(data):
        raise SchemaError(f"{where}: byte {position}: expected the end of the data, {len(data) - position} bytes left")
    return value


def read_value(reader: Reader, layout: Layout, *, where: str = "value") -> Any:
    """Decode one value at the position of `reader`, which is advanced past it; more data may follow.

    Parameters
    ----------
    reader : Reader
        The data.
    layout : Layout
        Layout of the value.
    where : str, default "value"
        Name of the value in messages.

    Returns
    -------
    object

    Raises
    ------
    SchemaError
        If the data does not fit the layout, ends early, or is not canonical.

    Examples
    --------
    >>> from toolkit.move import Reader, UInt, read_value
    >>> reader = Reader(bytes([5, 1, 0]))
    >>> read_value(reader, UInt(8)), read_value(reader, UInt(16))
    (5, 1)
    """
    try:
        value, reader.position = _decoder(layout)(reader.data, reader.position)
    except Mismatch as mismatch:
        raise_schema_error(mismatch, where)
    return value


@lru_cache(maxsize=CODEC_CACHE_SIZE)
def _decoder(layout: Layout) -> _Decoder:  # noqa: C901, PLR0911  # one case per kind of layout
    """Return the function that reads values of a layout."""
    match layout:
        case Bool():
            return _decode_bool
        case UInt(bits) | Int(bits):
            signed = isinstance(layout, Int)
            return (
                _decode_small_integer(bits, signed=signed)
                if bits in _FORMATS
                else _decode_wide_integer(bits, signed=signed)
            )
        case Address() | ObjectOf():
            return _decode_address
        case Bytes():
            return _decode_bytes
        case String():
            return _decode_string
        case VectorOf(element):
            return _decode_vector(_decoder(element))
        case OptionOf(element):
            return _decode_option(element)
        case StructOf(_, fields):
            return _decode_struct(fields)
        case EnumOf(tag, variants):
            return _decode_enum(tag, variants)
        case Untyped(tag, reason):
            return _decode_unsupported(f"{tag} cannot be read from BCS: {reason}")
        case FunctionValue(tag):
            return _decode_unsupported(f"function values ({tag}) cannot be read from BCS")


def _ended(data: bytes, position: int, wanted: str) -> Mismatch:
    return Mismatch(f"byte {position}: expected {wanted}, {max(len(data) - position, 0)} left")


def _length(data: bytes, position: int) -> tuple[int, int]:
    """Read a length. An element takes at least one byte, so the bytes left are an upper bound."""
    try:
        length, after = uleb128_at(data, position)
    except SchemaError as error:
        raise Mismatch(str(error)) from None
    if length > len(data) - after:
        raise Mismatch(f"byte {position}: length {length} is larger than the {len(data) - after} bytes left")
    return length, after


def _decode_bool(data: bytes, position: int) -> tuple[bool, int]:
    try:
        byte = data[position]
    except IndexError:
        raise _ended(data, position, "a byte of bool") from None
    if byte > 1:
        raise Mismatch(f"byte {position}: expected a bool, 0 or 1, got {byte}")
    return byte == 1, position + 1


def _decode_small_integer(bits: int, *, signed: bool) -> _Decoder:
    letter = _FORMATS[bits].lower() if signed else _FORMATS[bits]
    unpack = struct.Struct(f"<{letter}").unpack_from
    size = bits // 8
    name = f"{'i' if signed else 'u'}{bits}"

    def decode(data: bytes, position: int) -> tuple[int, int]:
        try:
            return unpack(data, position)[0], position + size
        except struct.error:
            raise _ended(data, position, f"{size} bytes of {name}") from None

    return decode


def _decode_wide_integer(bits: int, *, signed: bool) -> _Decoder:
    size = bits // 8
    name = f"{'i' if signed else 'u'}{bits}"

    def decode(data: bytes, position: int) -> tuple[int, int]:
        end = position + size
        if end > len(data):
            raise _ended(data, position, f"{size} bytes of {name}")
        return int.from_bytes(data[position:end], "little", signed=signed), end

    return decode


def _decode_address(data: bytes, position: int) -> tuple[str, int]:
    end = position + ADDRESS_LENGTH
    if end > len(data):
        raise _ended(data, position, f"{ADDRESS_LENGTH} bytes of an address")
    return address_from_bytes(data[position:end]), end


def _decode_bytes(data: bytes, position: int) -> tuple[bytes, int]:
    length, start = _length(data, position)
    end = start + length
    return data[start:end], end


def _decode_string(data: bytes, position: int) -> tuple[str, int]:
    raw, end = _decode_bytes(data, position)
    try:
        return raw.decode(), end
    except UnicodeDecodeError:
        # Nodes print this text in JSON, so JSON and BCS give equal values.
        return f"Unparsable utf-8 0x{raw.hex()}", end


def _decode_vector(element: _Decoder) -> _Decoder:
    def decode(data: bytes, position: int) -> tuple[list[Any], int]:
        length, position = _length(data, position)
        out: list[Any] = []
        append = out.append
        try:
            for _ in range(length):
                value, position = element(data, position)
                append(value)
        except Mismatch as mismatch:
            raise mismatch.at(len(out)) from None
        return out, position

    return decode


def _is_some(data: bytes, position: int) -> bool:
    """Read the byte before the element of an Option; the length of a vector and the index of a variant coincide."""
    try:
        byte = data[position]
    except IndexError:
        raise _ended(data, position, "a byte of Option") from None
    if byte > 1:
        raise Mismatch(f"byte {position}: expected an Option, which starts with 0 or 1, got {byte}")
    return byte == 1


def _decode_option(layout: Layout) -> _Decoder:
    element, nested = _decoder(layout), isinstance(layout, OptionOf)

    def decode(data: bytes, position: int) -> tuple[Any, int]:
        if not _is_some(data, position):
            return None, position + 1
        try:
            value, position = element(data, position + 1)
        except Mismatch as mismatch:
            raise mismatch.at("vec[0]") from None
        return ({"vec": [value]} if nested else value), position

    return decode


def _decode_struct(fields: Fields) -> _Decoder:
    plan = tuple((name, _decoder(layout)) for name, layout in fields)

    def decode(data: bytes, position: int) -> tuple[dict[str, Any], int]:
        out: dict[str, Any] = {}
        name = ""
        try:
            for name, codec in plan:
                out[name], position = codec(data, position)
        except Mismatch as mismatch:
            raise mismatch.at(name) from None
        return out, position

    return decode


def _decode_enum(tag: StructTag, variants: tuple[tuple[str, Fields], ...]) -> _Decoder:
    plans = tuple((name, _decode_struct(fields)) for name, fields in variants)

    def decode(data: bytes, position: int) -> tuple[dict[str, Any], int]:
        try:
            index, after = uleb128_at(data, position)
        except SchemaError as error:
            raise Mismatch(str(error)) from None
        if index >= len(plans):
            raise Mismatch(
                f"byte {position}: expected the index of one of {len(plans)} variants of {tag.base}, got {index}"
            )
        name, codec = plans[index]
        fields, after = codec(data, after)
        return {VARIANT: name, **fields}, after

    return decode


def _decode_unsupported(text: str) -> _Decoder:
    def decode(_data: bytes, _position: int) -> tuple[Any, int]:
        raise Mismatch(text)

    return decode


@lru_cache(maxsize=CODEC_CACHE_SIZE)
def _encoder(layout: Layout) -> _Encoder:  # noqa: C901, PLR0911  # one case per kind of layout
    """Return the function that writes values of a layout."""
    match layout:
        case Bool():
            return _encode_bool
        case UInt() | Int():
            return _encode_small_integer(layout) if layout.bits in _FORMATS else _encode_wide_integer(layout)
        case Address() | ObjectOf():
            return _encode_address
        case Bytes():
            return _encode_bytes
        case String():
            return _encode_string
        case VectorOf(element):
            return _encode_vector(_encoder(element))
        case OptionOf(element):
            return _encode_option(element)
        case StructOf(tag, fields):
            return _encode_struct(tag, fields)
        case EnumOf(tag, variants):
            return _encode_enum(tag, variants)
        case Untyped(tag, reason):
            return _encode_unsupported(f"{tag} cannot be written as BCS: {reason}")
        case FunctionValue(tag):
            return _encode_unsupported(f"function values ({tag}) cannot be written as BCS")


def _encode_bool(value: Any, out: bytearray) -> None:
    if value is True:
        out.append(1)
    elif value is False:
        out.append(0)
    else:
        raise Mismatch(f"expected a bool, got {describe(value)}")


def _wrong_integer(layout: UInt | Int, value: Any) -> Mismatch:
    low, high = integer_range(layout)
    return Mismatch(f"expected {integer_name(layout)} as an int in {low}..{high}, got {describe(value)}")


def _encode_small_integer(layout: UInt | Int) -> _Encoder:
    letter = _FORMATS[layout.bits]
    pack = struct.Struct(f"<{letter.lower() if isinstance(layout, Int) else letter}").pack

    def encode(value: Any, out: bytearray) -> None:
        # struct.pack() also accepts a bool and any object with __index__.
        if type(value) is not int:
            raise _wrong_integer(layout, value)
        try:
            out += pack(value)
        except struct.error:
            raise _wrong_integer(layout, value) from None

    return encode


def _encode_wide_integer(layout: UInt | Int) -> _Encoder:
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


def _encode_address(value: Any, out: bytearray) -> None:
    try:
        out += address_to_bytes(value)
    except InputError:
        raise Mismatch(f"expected an address, got {describe(value)}") from None


def _append(data: bytes | bytearray, out: bytearray) -> None:
    if len(data) > MAX_LENGTH:
        raise Mismatch(f"expected at most {MAX_LENGTH} bytes, the limit of BCS, got {len(data)}")
    out += uleb128(len(data))
    out += data


def _encode_bytes(value: Any, out: bytearray) -> None:
    if not isinstance(value, (bytes, bytearray)):
        raise Mismatch(f"expected bytes, got {describe(value)}")
    _append(value, out)


def _encode_string(value: Any, out: bytearray) -> None:
    if type(value) is not str:
        raise Mismatch(f"expected a string, got {describe(value)}")
    try:
        data = value.encode()
    except UnicodeEncodeError:
        raise Mismatch("a string with a lone surrogate cannot be encoded as UTF-8") from None
    _append(data, out)


def _encode_vector(element: _Encoder) -> _Encoder:
    def encode(value: Any, out: bytearray) -> None:
        if not isinstance(value, (list, tuple)):
            raise Mismatch(f"expected a list, got {describe(value)}")
        out += uleb128(len(value))
        index = 0
        try:
            for index, item in enumerate(value):  # noqa: B007  # the handler below reads it
                element(item, out)
        except Mismatch as mismatch:
            raise mismatch.at(index) from None

    return encode


def _encode_option(layout: Layout) -> _Encoder:
    element = _encoder(layout)

    def encode(value: Any, out: bytearray) -> None:
        if value is None:
            out.append(0)
        else:
            out.append(1)
            element(some_element(value, layout), out)

    return encode


def _encode_struct(tag: StructTag, fields: Fields) -> _Encoder:
    plan = tuple((name, _encoder(layout)) for name, layout in fields)
    count = len(plan)

    def encode(value: Any, out: bytearray) -> None:
        if not isinstance(value, dict):
            raise Mismatch(f"expected a dict of {tag.base}, got {describe(value)}")
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


def _encode_enum(tag: StructTag, variants: tuple[tuple[str, Fields], ...]) -> _Encoder:
    plans = {name: (uleb128(index), _encode_struct(tag, fields)) for index, (name, fields) in enumerate(variants)}

    def encode(value: Any, out: bytearray) -> None:
        rest = dict(value) if isinstance(value, dict) else {}
        name = rest.pop(VARIANT, None)
        plan = plans.get(name) if isinstance(name, str) else None
        if plan is None:
            raise Mismatch(f"expected a dict with {VARIANT} one of {', '.join(plans)}, got {preview(value)}")
        index, codec = plan
        out += index
        codec(rest, out)

    return encode


def _encode_unsupported(text: str) -> _Encoder:
    def encode(_value: Any, _out: bytearray) -> None:
        raise Mismatch(text)

    return encode
