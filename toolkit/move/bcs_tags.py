"""Type tags in BCS, with the nesting limit of the network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.errors import InputError, SchemaError
from toolkit.move.tags import (
    ABILITIES,
    MAX_TYPE_DEPTH,
    FunctionType,
    Primitive,
    Reference,
    StructTag,
    TypeParameter,
    TypeTag,
    Vector,
)

if TYPE_CHECKING:
    from toolkit.move.bcs_primitives import Reader, Writer

__all__ = ["read_type_tag", "write_type_tag"]

_PRIMITIVES = {
    0: "bool",
    1: "u8",
    2: "u64",
    3: "u128",
    4: "address",
    5: "signer",
    8: "u16",
    9: "u32",
    10: "u256",
    12: "i8",
    13: "i16",
    14: "i32",
    15: "i64",
    16: "i128",
    17: "i256",
}
_INDEX = {name: index for index, name in _PRIMITIVES.items()}
_VECTOR, _STRUCT, _FUNCTION = 6, 7, 11
_REFERENCE, _MUTABLE_REFERENCE, _VALUE = 0, 1, 2


def read_type_tag(reader: Reader) -> TypeTag:
    """Read a type tag where `reader` stands.

    Raises
    ------
    SchemaError
        If the bytes are no type tag, or nest deeper than `MAX_TYPE_DEPTH`.
    """
    return _read(reader, 0)


def _read(reader: Reader, depth: int) -> TypeTag:
    start = reader.position
    if depth > MAX_TYPE_DEPTH:
        raise SchemaError(f"byte {start}: type nests deeper than the limit of {MAX_TYPE_DEPTH} types")
    index = reader.uleb128()
    if index in _PRIMITIVES:
        return Primitive(_PRIMITIVES[index])
    if index == _VECTOR:
        return Vector(_read(reader, depth + 1))
    if index == _STRUCT:
        return _read_struct(reader, depth)
    if index == _FUNCTION:
        arguments = tuple(_read_parameter(reader, depth) for _ in range(reader.length()))
        results = tuple(_read_parameter(reader, depth) for _ in range(reader.length()))
        return FunctionType(arguments, results, _read_abilities(reader))
    raise SchemaError(f"byte {start}: unknown type tag {index}")


def _read_struct(reader: Reader, depth: int) -> StructTag:
    start = reader.position
    address, module, name = reader.address(), reader.string(), reader.string()
    arguments = tuple(_read(reader, depth + 1) for _ in range(reader.length()))
    try:
        return StructTag(address, module, name, arguments)
    except InputError as error:
        raise SchemaError(f"byte {start}: {error}") from None


def _read_parameter(reader: Reader, depth: int) -> TypeTag:
    start = reader.position
    kind = reader.uleb128()
    if kind > _VALUE:
        raise SchemaError(f"byte {start}: unknown kind {kind} of a function type's parameter")
    tag = _read(reader, depth + 1)
    return tag if kind == _VALUE else Reference(tag, kind == _MUTABLE_REFERENCE)


def _read_abilities(reader: Reader) -> tuple[str, ...]:
    start = reader.position
    bits = reader.u8()
    if bits >= 1 << len(ABILITIES):
        raise SchemaError(f"byte {start}: unknown abilities {bits:#x}")
    return tuple(ability for bit, ability in enumerate(ABILITIES) if bits >> bit & 1)


def write_type_tag(writer: Writer, tag: TypeTag) -> None:
    """Append a type tag.

    Raises
    ------
    InputError
        If it has what only ABIs have (a type parameter, a reference outside a function type), or nests deeper
        than `MAX_TYPE_DEPTH`.
    """
    _write(writer, tag, 0)


def _write(writer: Writer, tag: TypeTag, depth: int) -> None:
    if depth > MAX_TYPE_DEPTH:
        raise InputError(f"type nests deeper than the limit of {MAX_TYPE_DEPTH} types")
    match tag:
        case Primitive(name):
            writer.uleb128(_INDEX[name])
        case Vector(element):
            writer.uleb128(_VECTOR)
            _write(writer, element, depth + 1)
        case StructTag(address, module, name, arguments):
            writer.uleb128(_STRUCT)
            writer.address(address)
            writer.string(module)
            writer.string(name)
            writer.uleb128(len(arguments))
            for argument in arguments:
                _write(writer, argument, depth + 1)
        case FunctionType(arguments, results, abilities):
            writer.uleb128(_FUNCTION)
            for parameters in (arguments, results):
                writer.uleb128(len(parameters))
                for parameter in parameters:
                    _write_parameter(writer, parameter, depth)
            writer.u8(sum(1 << ABILITIES.index(ability) for ability in abilities))
        case TypeParameter() | Reference():
            raise InputError(f"type {tag} stands in ABIs only, it cannot be sent")


def _write_parameter(writer: Writer, tag: TypeTag, depth: int) -> None:
    if isinstance(tag, Reference):
        writer.uleb128(_MUTABLE_REFERENCE if tag.mutable else _REFERENCE)
        _write(writer, tag.target, depth + 1)
    else:
        writer.uleb128(_VALUE)
        _write(writer, tag, depth + 1)
