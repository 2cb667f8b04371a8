"""BCS for the machine: output, and type tags."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.errors import SchemaError
from toolkit.move._bcs import Reader, uleb128
from toolkit.vm._errors import MoveError
from toolkit.vm._types import PRIMITIVES, Function, ModuleId, Primitive, Reference, Struct, Type, Vector

if TYPE_CHECKING:
    from collections.abc import Iterable


class LegacyOutput(bytearray):
    """BCS data that is being written, in which signers are bare addresses."""


def text_bytes(value: str) -> bytes:
    """Return a string as BCS."""
    raw = value.encode()
    return uleb128(len(raw)) + raw


def listed(items: Iterable[bytes]) -> bytes:
    """Return a sequence of values that are BCS as BCS."""
    parts = list(items)
    return uleb128(len(parts)) + b"".join(parts)


# Type tags as BCS.

_TAGS = {"bool": 0, "u8": 1, "u64": 2, "u128": 3, "address": 4, "signer": 5, "u16": 8, "u32": 9, "u256": 10}
_TAGS |= {"i8": 12, "i16": 13, "i32": 14, "i64": 15, "i128": 16, "i256": 17}
_TAG_NAMES = {index: name for name, index in _TAGS.items()}
_VECTOR_TAG, _STRUCT_TAG, _FUNCTION_TAG = 6, 7, 11
_REFERENCE, _MUTABLE_REFERENCE, _VALUE = 0, 1, 2  # forms of parameters and results of a function type
MAX_TAG_DEPTH = 128


def tag_bytes(kind: Type) -> bytes:
    """Return a type as the BCS of a type tag."""
    match kind:
        case Primitive():
            return bytes((_TAGS[kind.name],))
        case Vector():
            return bytes((_VECTOR_TAG,)) + tag_bytes(kind.element)
        case Struct():
            return bytes((_STRUCT_TAG,)) + struct_tag_bytes(kind)
        case Function():
            lists = (listed(map(_parameter_bytes, kinds)) for kinds in (kind.parameters, kind.results))
            return bytes((_FUNCTION_TAG,)) + b"".join(lists) + bytes((kind.abilities,))
    raise MoveError("UNKNOWN_INVARIANT_VIOLATION_ERROR", f"{kind} has no type tag")


def _parameter_bytes(kind: Type) -> bytes:
    if isinstance(kind, Reference):
        return bytes((_MUTABLE_REFERENCE if kind.mutable else _REFERENCE,)) + tag_bytes(kind.target)
    return bytes((_VALUE,)) + tag_bytes(kind)


def struct_tag_bytes(kind: Struct) -> bytes:
    """Return a struct type as the BCS of a struct tag."""
    names = text_bytes(kind.module.name) + text_bytes(kind.name)
    return kind.module.address + names + listed(map(tag_bytes, kind.arguments))


def read_tag(source: Reader, depth: int = 0) -> Type:
    """Read a type tag. It may nest deeper than those of `toolkit.move`, which people write.

    Raises
    ------
    SchemaError
        If the data is not a type tag.
    """
    if depth > MAX_TAG_DEPTH:
        raise SchemaError("a type tag is nested too deeply")
    index = source.uleb128()
    if index in _TAG_NAMES:
        return PRIMITIVES[_TAG_NAMES[index]]
    if index == _VECTOR_TAG:
        return Vector(read_tag(source, depth + 1))
    if index == _STRUCT_TAG:
        return read_struct_tag(source, depth)
    if index == _FUNCTION_TAG:
        lists = [tuple(_read_parameter(source, depth) for _ in range(source.length())) for _ in range(2)]
        return Function(*lists, source.u8())
    raise SchemaError("not a type tag")


def _read_parameter(source: Reader, depth: int) -> Type:
    form = source.uleb128()
    kind = read_tag(source, depth + 1)
    return kind if form == _VALUE else Reference(kind, form == _MUTABLE_REFERENCE)


def read_struct_tag(source: Reader, depth: int = 0) -> Struct:
    """Read a struct tag: a type tag without its variant."""
    module, name = ModuleId(source.fixed(32), source.string()), source.string()
    return Struct(module, name, tuple(read_tag(source, depth + 1) for _ in range(source.length())))
