"""From type tags to layouts: generics substituted, modules looked up, cycles and monsters refused.

What has no ABI becomes `Untyped`, with the reason. The layout classes are re-exported here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit._present.messages import shorten
from toolkit.errors import InputError, SchemaError
from toolkit.move.layout_types import (
    AbiMap,
    AbiSource,
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
    is_closed,
)
from toolkit.move.tags import (
    FunctionType,
    Primitive,
    Reference,
    StructTag,
    TypeParameter,
    TypeTag,
    Vector,
    parse_type_tag,
    substitute,
)

if TYPE_CHECKING:
    from toolkit.move.abi import FieldAbi, StructAbi

__all__ = [
    "MAX_DEPTH",
    "MAX_NODES",
    "AbiMap",
    "AbiSource",
    "Address",
    "Bool",
    "Bytes",
    "EnumOf",
    "FunctionValue",
    "Int",
    "Layout",
    "ObjectOf",
    "OptionOf",
    "String",
    "StructOf",
    "UInt",
    "Untyped",
    "VectorOf",
    "is_closed",
    "resolve_layout",
]

MAX_DEPTH = 64
"""Deepest layout resolved; the deepest of the frameworks recorded is 9."""
MAX_NODES = 20_000
"""Most types a layout may spell out, counted with repetition: it bounds memory against hostile ABIs."""

_STRING = StructTag("0x1", "string", "String")


def resolve_layout(tag: TypeTag, abis: AbiSource) -> Layout:
    """Resolve a type into a closed layout.

    Generic parameters are substituted and nested structs are looked up across modules. ``String``, ``Option`` and
    ``Object`` of ``0x1`` are built in. References resolve to what they refer to.

    Parameters
    ----------
    tag : TypeTag
        The type.
    abis : AbiSource
        Where module ABIs come from.

    Returns
    -------
    Layout
        `Untyped`, there or deeper inside, wherever an ABI is missing.

    Raises
    ------
    SchemaError
        If the ABIs describe a type that contains itself, or one too deep or too large to be real.
    """
    return _Resolver(abis).sized(tag)[0]


def _primitive(name: str) -> Layout:
    """Return the layout of a built-in type."""
    if name == "bool":
        return Bool()
    if name in {"address", "signer"}:
        return Address()
    bits = int(name[1:])
    return UInt(bits) if name[0] == "u" else Int(bits)


class _Resolver:
    """Resolves tags against one source of ABIs; equal tags share one layout."""

    def __init__(self, abis: AbiSource) -> None:
        self.abis = abis
        self._done: dict[TypeTag, tuple[Layout, int]] = {}
        self._open: list[TypeTag] = []

    def sized(self, tag: TypeTag) -> tuple[Layout, int]:
        """Return the layout and how many types it spells out."""
        if tag in self._done:
            return self._done[tag]
        self._check(tag)
        self._open.append(tag)
        layout, size = self._build(tag)
        self._open.pop()
        if size > MAX_NODES or len(self._done) > MAX_NODES:
            raise SchemaError(f"type {shorten(str(tag))} spells out more than {MAX_NODES} types")
        self._done[tag] = layout, size
        return layout, size

    def _check(self, tag: TypeTag) -> None:
        """Refuse a type that contains itself, or that never ends."""
        if tag in self._open:
            chain = [shorten(str(step), 120) for step in self._open[self._open.index(tag) :]]
            raise SchemaError(f"type contains itself: {' -> '.join([*chain, chain[0]][:6])}")
        if len(self._open) >= MAX_DEPTH:
            raise SchemaError(f"type {shorten(str(self._open[0]))} nests deeper than {MAX_DEPTH} types")

    def _build(self, tag: TypeTag) -> tuple[Layout, int]:  # noqa: PLR0911  # one return per kind of type
        match tag:
            case Primitive(name):
                return _primitive(name), 1
            case Vector(Primitive("u8")):
                return Bytes(), 1
            case Vector(element):
                inner, size = self.sized(element)
                return VectorOf(inner), size + 1
            case Reference(target, _):
                return self.sized(target)
            case StructTag():
                return self._struct(tag)
            case FunctionType():
                return FunctionValue(tag), 1
            case TypeParameter():
                return Untyped(tag, f"type parameter {tag} has no type here"), 1

    def _struct(self, tag: StructTag) -> tuple[Layout, int]:
        if tag == _STRING:
            return String(), 1
        if tag.address == "0x1" and len(tag.type_arguments) == 1:
            if (tag.module, tag.name) == ("object", "Object"):
                return ObjectOf(), 1
            if (tag.module, tag.name) == ("option", "Option"):
                inner, size = self.sized(tag.type_arguments[0])
                return OptionOf(inner), size + 1
        module = self.abis.module_abi(tag.address, tag.module)
        if module is None:
            return Untyped(tag, f"no ABI of module {tag.address}::{tag.module}"), 1
        struct = module.struct(tag.name)
        if struct is None:
            return Untyped(tag, f"module {tag.address}::{tag.module} has no struct {tag.name}"), 1
        return self._declared(tag, struct)

    def _declared(self, tag: StructTag, struct: StructAbi) -> tuple[Layout, int]:
        """Build a struct or enum from its declaration."""
        wanted, given = len(struct.generic_type_params), len(tag.type_arguments)
        if wanted != given:
            return Untyped(tag, f"{tag.base} takes {wanted} type arguments, got {given}"), 1
        if struct.is_enum and not struct.variants:
            return Untyped(tag, f"the ABI of {tag.base} does not list the enum's variants"), 1
        if struct.is_native:
            return Untyped(tag, f"{tag.base} is native"), 1
        if not struct.is_enum:
            fields, size = self._fields(tag, struct.fields)
            return StructOf(tag, fields), size + 1
        variants = []
        total = 1
        for variant in struct.variants:
            fields, size = self._fields(tag, variant.fields)
            variants.append((variant.name, fields))
            total += size + 1
        return EnumOf(tag, tuple(variants)), total

    def _fields(self, tag: StructTag, fields: tuple[FieldAbi, ...]) -> tuple[tuple[tuple[str, Layout], ...], int]:
        resolved = []
        total = 0
        for field in fields:
            try:
                declared = parse_type_tag(field.type, abi=True)
            except InputError as error:
                # A node prints what it cannot name as "unparsable<..>"; the rest of the struct stays typed.
                layout: Layout = Untyped(tag, f"type of field {shorten(field.name)} is not readable: {error}")
                size = 1
            else:
                layout, size = self.sized(substitute(declared, tag.type_arguments))
            resolved.append((field.name, layout))
            total += size
        return tuple(resolved), total
