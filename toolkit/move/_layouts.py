"""Layouts: Move types in which every struct is resolved. A layout is all that is needed to read and write a value.

`resolve_layout` creates the layout of a type from module ABIs: it substitutes generic parameters, looks structs up
across modules, and rejects types that contain themselves or are too large. A type without an ABI becomes `Untyped`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from toolkit._present.messages import shorten
from toolkit._present.text import plural
from toolkit.errors import InputError, SchemaError
from toolkit.move import _type_tags as tags
from toolkit.move._containers import EnumOf, Fields, FunctionValue, Layout, OptionOf, StructOf, Untyped, VectorOf
from toolkit.move._scalars import Address, Bool, Bytes, Int, ObjectOf, String, UInt

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.move._abi import FieldAbi, ModuleAbi, StructAbi


MAX_DEPTH = 64  # deepest nesting of a layout; the deepest in the recorded frameworks is 9
MAX_NODES = 20_000  # types in a layout, counted with repetition; it bounds memory against hostile ABIs

_STRING = tags.StructTag("0x1", "string", "String")


class AbiSource(Protocol):
    """A source of module ABIs: a client's ABI store, the embedded ledger, or an `AbiMap`.

    Examples
    --------
    >>> from toolkit.move import AbiMap, AbiSource
    >>> source: AbiSource = AbiMap()
    >>> source.module_abi("0x1", "coin") is None
    True
    """

    def module_abi(self, address: str, name: str) -> ModuleAbi | None:
        """Return the ABI of a module, given its canonical address and name, or None if it is not available."""
        ...


class AbiMap(dict[tuple[str, str], "ModuleAbi"]):
    """Module ABIs in memory, keyed by canonical address and name.

    Examples
    --------
    >>> from toolkit.move import AbiMap, ModuleAbi
    >>> abis = AbiMap.of([ModuleAbi("0xcafe", "shop")])
    >>> abis.module_abi("0xcafe", "shop").name
    'shop'
    """

    @classmethod
    def of(cls, modules: Iterable[ModuleAbi]) -> AbiMap:
        """Create a map of the given ABIs."""
        return cls({(module.address, module.name): module for module in modules})

    def module_abi(self, address: str, name: str) -> ModuleAbi | None:
        """Return the ABI of a module, given its canonical address and name, or None if it is not in the map."""
        return self.get((address, name))


def resolve_layout(tag: tags.TypeTag, abis: AbiSource) -> Layout:
    """Resolve a type to its layout.

    Generic parameters are substituted and nested structs are looked up across modules. ``String``, ``Option`` and
    ``Object`` of ``0x1`` are built in. A reference resolves to the layout of its target.

    Parameters
    ----------
    tag : TypeTag
        The type.
    abis : AbiSource
        Source of the module ABIs.

    Returns
    -------
    Layout
        Parts whose ABI is not available are `Untyped`.

    Raises
    ------
    SchemaError
        If the ABIs describe a type that contains itself, that nests deeper than `MAX_DEPTH`, or that has more than
        `MAX_NODES` parts.

    Examples
    --------
    >>> from toolkit.move import parse_type_tag
    >>> resolve_layout(parse_type_tag("vector<0x1::option::Option<u64>>"), AbiMap())
    VectorOf(element=OptionOf(element=UInt(bits=64)))
    """
    return _Resolver(abis).sized(tag)[0]


_PRIMITIVES: dict[str, Layout] = {"bool": Bool(), "address": Address(), "signer": Address()}
_PRIMITIVES |= {name: UInt(int(name[1:])) for name in tags.UNSIGNED}
_PRIMITIVES |= {name: Int(int(name[1:])) for name in tags.SIGNED}


class _Resolver:
    """Resolves types against one source of ABIs; equal types share one layout."""

    def __init__(self, abis: AbiSource) -> None:
        self.abis = abis
        self._done: dict[tags.TypeTag, tuple[Layout, int]] = {}
        self._open: list[tags.TypeTag] = []

    def sized(self, tag: tags.TypeTag) -> tuple[Layout, int]:
        """Return the layout of a type and the number of types in it."""
        if tag in self._done:
            return self._done[tag]
        if tag in self._open:
            chain = [shorten(str(step), 120) for step in self._open[self._open.index(tag) :]]
            raise SchemaError(f"the type contains itself: {' -> '.join([*chain, chain[0]][:6])}")
        if len(self._open) >= MAX_DEPTH:
            raise SchemaError(f"type {shorten(str(self._open[0]))} nests deeper than {MAX_DEPTH} types")
        self._open.append(tag)
        layout, size = self._build(tag)
        self._open.pop()
        if size > MAX_NODES or len(self._done) > MAX_NODES:
            raise SchemaError(f"type {shorten(str(tag))} has more than {MAX_NODES:,} parts")
        self._done[tag] = layout, size
        return layout, size

    def _build(self, tag: tags.TypeTag) -> tuple[Layout, int]:  # noqa: PLR0911  # one return per kind of type
        match tag:
            case tags.Primitive(name):
                return _PRIMITIVES[name], 1
            case tags.Vector(tags.Primitive("u8")):
                return Bytes(), 1
            case tags.Vector(element):
                inner, size = self.sized(element)
                return VectorOf(inner), size + 1
            case tags.Reference(target, _):
                return self.sized(target)
            case tags.StructTag():
                return self._struct(tag)
            case tags.FunctionType():
                return FunctionValue(tag), 1
            case tags.TypeParameter():
                return Untyped(tag, f"type parameter {tag} is not bound to a type"), 1

    def _struct(self, tag: tags.StructTag) -> tuple[Layout, int]:
        if tag == _STRING:
            return String(), 1
        if tag.address == "0x1" and len(tag.type_arguments) == 1:
            if (tag.module, tag.name) == ("object", "Object"):
                return ObjectOf(), 1
            if (tag.module, tag.name) == ("option", "Option"):
                inner, size = self.sized(tag.type_arguments[0])
                return OptionOf(inner), size + 1
        if (module := self.abis.module_abi(tag.address, tag.module)) is None:
            return Untyped(tag, f"no ABI of module {tag.address}::{tag.module}"), 1
        if (struct := module.struct(tag.name)) is None:
            return Untyped(tag, f"module {tag.address}::{tag.module} has no struct {tag.name}"), 1
        return self._declared(tag, struct)

    def _declared(self, tag: tags.StructTag, struct: StructAbi) -> tuple[Layout, int]:
        """Resolve a struct or enum from its declaration."""
        wanted, given = len(struct.generic_type_params), len(tag.type_arguments)
        if wanted != given:
            return Untyped(tag, f"{tag.base} takes {plural(wanted, 'type argument')}, got {given}"), 1
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

    def _fields(self, tag: tags.StructTag, fields: tuple[FieldAbi, ...]) -> tuple[Fields, int]:
        resolved = []
        total = 0
        for field in fields:
            try:
                declared = tags.parse_type_tag(field.type, abi=True)
            except InputError as error:
                # Nodes print a type that they cannot name as "unparsable<..>"; the other fields keep their types.
                layout: Layout = Untyped(tag, f"the type of field {shorten(field.name)} cannot be parsed: {error}")
                size = 1
            else:
                layout, size = self.sized(tags.substitute(declared, tag.type_arguments))
            resolved.append((field.name, layout))
            total += size
        return tuple(resolved), total
