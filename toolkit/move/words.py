"""How a node names types in its texts: ``string<u64>``, ``integer<u8>``, ``array<string<address>>``."""

from __future__ import annotations

from toolkit.move.layout import (
    Address,
    Bool,
    Bytes,
    FunctionValue,
    Int,
    Layout,
    UInt,
    Untyped,
    VectorOf,
)
from toolkit.move.tags import FunctionType, Primitive, Reference, TypeTag, Vector

__all__ = ["MAX_NUMBER_BITS", "type_words"]

MAX_NUMBER_BITS = 32
"""Integers up to this width are JSON numbers; wider ones are strings."""


def type_words(of: Layout | TypeTag) -> str:  # noqa: PLR0911  # one case per kind of type
    """Return the node's words for the JSON a type is written in.

    Parameters
    ----------
    of : Layout or TypeTag
        A resolved layout, or a parameter type as the ABI has it.

    Returns
    -------
    str
        ``boolean``, ``integer<u8>``, ``string<u64>``, ``string<address>``, ``string<hex>``, ``array<..>``,
        ``string<move_function_id>``, or for every struct ``string<move_struct_tag_id>``.
    """
    match of:
        case Bool() | Primitive("bool"):
            return "boolean"
        case UInt(bits):
            return f"{'integer' if bits <= MAX_NUMBER_BITS else 'string'}<u{bits}>"
        case Int(bits):
            return f"{'integer' if bits <= MAX_NUMBER_BITS else 'string'}<i{bits}>"
        case Primitive(name) if name[1:].isdigit():
            return f"{'integer' if int(name[1:]) <= MAX_NUMBER_BITS else 'string'}<{name}>"
        case Address() | Primitive():
            return "string<address>"
        case Bytes() | Vector(Primitive("u8")):
            return "string<hex>"
        case _:
            return _container_words(of)


def _container_words(of: Layout | TypeTag) -> str:
    match of:
        case VectorOf(element):
            return f"array<{type_words(element)}>"
        case Vector(tag) | Reference(tag, _):
            inner = type_words(tag)
            return inner if isinstance(of, Reference) else f"array<{inner}>"
        case Untyped(tag, _) if not isinstance(tag, FunctionType):
            # What could not be resolved keeps its own words: a vector stays an array.
            return type_words(tag)
        case FunctionValue() | FunctionType():
            return "string<move_function_id>"
        case _:
            return "string<move_struct_tag_id>"
