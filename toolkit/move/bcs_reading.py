"""From BCS bytes to Python values: one function per layout, compiled once into closures."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from toolkit.errors import SchemaError
from toolkit.move._mismatch import Mismatch
from toolkit.move.address import ADDRESS_LENGTH, address_from_bytes
from toolkit.move.bcs_primitives import uleb128_at
from toolkit.move.json_reading import VARIANT
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

__all__ = ["BcsDecoder", "bcs_decoder"]

BcsDecoder: TypeAlias = "Callable[[bytes, int], tuple[Any, int]]"
"""Takes the data and a position, returns the value and the position after it; raises `Mismatch`."""

_FORMATS = {8: "B", 16: "H", 32: "I", 64: "Q"}
_MANY = 0x80


@lru_cache(maxsize=8192)
def bcs_decoder(layout: Layout) -> BcsDecoder:  # noqa: C901, PLR0911  # one case per kind of layout
    """Return the function that reads a layout."""
    match layout:
        case Bool():
            return _bool
        case UInt(bits) | Int(bits):
            signed = isinstance(layout, Int)
            return _small(bits, signed=signed) if bits in _FORMATS else _wide(bits, signed=signed)
        case Address() | ObjectOf():
            return _address
        case Bytes():
            return _bytes
        case String():
            return _string
        case VectorOf(element):
            return _vector(bcs_decoder(element))
        case OptionOf(OptionOf() as element):
            return _option(_kept(element))
        case OptionOf(element):
            return _option(bcs_decoder(element))
        case StructOf(_, fields):
            return _struct(fields)
        case EnumOf(tag, variants):
            return _enum(tag, variants)
        case Untyped(tag, reason):
            return _refuse(f"{tag} cannot be read from BCS: {reason}")
        case FunctionValue(tag):
            return _refuse(f"function values ({tag}) cannot be read from BCS")


def _ended(data: bytes, position: int, wanted: str) -> Mismatch:
    return Mismatch(f"byte {position}: expected {wanted}, {max(len(data) - position, 0)} left")


def _length(data: bytes, position: int) -> tuple[int, int]:
    """Read a length; every element takes at least a byte, so it is bounded by what follows."""
    try:
        length, after = uleb128_at(data, position)
    except SchemaError as error:
        raise Mismatch(str(error)) from None
    if length > len(data) - after:
        raise Mismatch(f"byte {position}: a length of {length}, but {len(data) - after} bytes left")
    return length, after


def _bool(data: bytes, position: int) -> tuple[bool, int]:
    try:
        byte = data[position]
    except IndexError:
        raise _ended(data, position, "a byte of bool") from None
    if byte > 1:
        raise Mismatch(f"byte {position}: a bool is 0 or 1, got {byte}")
    return byte == 1, position + 1


def _small(bits: int, *, signed: bool) -> BcsDecoder:
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


def _wide(bits: int, *, signed: bool) -> BcsDecoder:
    size = bits // 8
    name = f"{'i' if signed else 'u'}{bits}"

    def decode(data: bytes, position: int) -> tuple[int, int]:
        end = position + size
        if end > len(data):
            raise _ended(data, position, f"{size} bytes of {name}")
        return int.from_bytes(data[position:end], "little", signed=signed), end

    return decode


def _address(data: bytes, position: int) -> tuple[str, int]:
    end = position + ADDRESS_LENGTH
    if end > len(data):
        raise _ended(data, position, f"{ADDRESS_LENGTH} bytes of an address")
    return address_from_bytes(data[position:end]), end


def _bytes(data: bytes, position: int) -> tuple[bytes, int]:
    length, start = _length(data, position)
    end = start + length
    return data[start:end], end


def _string(data: bytes, position: int) -> tuple[str, int]:
    raw, end = _bytes(data, position)
    try:
        return raw.decode(), end
    except UnicodeDecodeError:
        # The node's JSON says it the same way, so both roads give equal values.
        return f"Unparsable utf-8 0x{raw.hex()}", end


def _vector(element: BcsDecoder) -> BcsDecoder:
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
    """Read the one byte before an Option's element: as a vector's length or a variant's index it is the same."""
    try:
        byte = data[position]
    except IndexError:
        raise _ended(data, position, "a byte of Option") from None
    if byte > 1:
        raise Mismatch(f"byte {position}: an Option starts with 0 or 1, got {byte}")
    return byte == 1


def _option(element: BcsDecoder) -> BcsDecoder:
    def decode(data: bytes, position: int) -> tuple[Any, int]:
        if not _is_some(data, position):
            return None, position + 1
        try:
            return element(data, position + 1)
        except Mismatch as mismatch:
            raise mismatch.at("vec[0]") from None

    return decode


def _kept(layout: OptionOf) -> BcsDecoder:
    """Return the decoder of an Option inside an Option, which keeps its ``{"vec": ..}``."""
    inner = layout.element
    element = _kept(inner) if isinstance(inner, OptionOf) else bcs_decoder(inner)

    def decode(data: bytes, position: int) -> tuple[dict[str, list[Any]], int]:
        if not _is_some(data, position):
            return {"vec": []}, position + 1
        try:
            value, position = element(data, position + 1)
        except Mismatch as mismatch:
            raise mismatch.at("vec[0]") from None
        return {"vec": [value]}, position

    return decode


def _struct(fields: Fields) -> BcsDecoder:
    plan = tuple((name, bcs_decoder(layout)) for name, layout in fields)

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


def _enum(tag: StructTag, variants: tuple[tuple[str, Fields], ...]) -> BcsDecoder:
    plans = tuple((name, _struct(fields)) for name, fields in variants)

    def decode(data: bytes, position: int) -> tuple[dict[str, Any], int]:
        try:
            index, after = uleb128_at(data, position)
        except SchemaError as error:
            raise Mismatch(str(error)) from None
        if index >= len(plans):
            raise Mismatch(f"byte {position}: {tag.base} has {len(plans)} variants, got index {index}")
        name, codec = plans[index]
        fields, after = codec(data, after)
        return {VARIANT: name, **fields}, after

    return decode


def _refuse(text: str) -> BcsDecoder:
    def decode(_data: bytes, _position: int) -> tuple[Any, int]:
        raise Mismatch(text)

    return decode
