"""Layouts: Move types with every struct resolved, which is all that reading and writing a value requires.

`resolve_layout` makes the layout of a type from module ABIs: it substitutes generic parameters, looks structs up across
modules, and rejects types that contain themselves or are too large. A type without an ABI becomes `Untyped`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from toolkit._present.messages import shorten
from toolkit.errors import InputError, SchemaError
from toolkit.move import _type_tags as tags
from toolkit.move._containers import EnumOf, Fields, FunctionValue, Layout, OptionOf, StructOf, Untyped, VectorOf
from toolkit.move._scalars import Address, Bool, Bytes, Int, ObjectOf, String, UInt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolkit.move._abi import FieldAbi, ModuleAbi, StructAbi


MAX_DEPTH = 64  # deepest nesting of a layout; the deepest in the recorded frameworks is 9
MAX_NODES = 20_000  # types in a layout, counted with repetition; it bounds memory against hostile ABIs
NO_ABI = "no ABI of module"  # start of the reason of an `Untyped` layout whose module is not known

_STRING = tags.StructTag("0x1", "string", "String")


class AbiSource(Protocol):
    """A source of module ABIs: the store of a client, the embedded ledger, or an `AbiMap`.

    Examples
    --------
    >>> from toolkit.move import AbiMap, AbiSource
    >>> source: AbiSource = AbiMap()
    >>> source.module_abi("0x1", "coin") is None
    True
    """

    def module_abi(self, address: str, name: str) -> ModuleAbi | None:
        """Return the ABI of a module (canonical address), or None if there is none."""
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
        """Return a map of the given ABIs."""
        return cls({(module.address, module.name): module for module in modules})

    def module_abi(self, address: str, name: str) -> ModuleAbi | None:
        """Return the ABI of a module (canonical address), or None if it is not in the map."""
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
        A part without an ABI is `Untyped`.

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
        """Return the layout and its number of types."""
        if tag in self._done:
            return self._done[tag]
        self._check(tag)
        self._open.append(tag)
        layout, size = self._build(tag)
        self._open.pop()
        if size > MAX_NODES or len(self._done) > MAX_NODES:
            raise SchemaError(f"type {shorten(str(tag))} has more than {MAX_NODES} parts")
        self._done[tag] = layout, size
        return layout, size

    def _check(self, tag: tags.TypeTag) -> None:
        """Reject a type that contains itself or nests too deeply."""
        if tag in self._open:
            chain = [shorten(str(step), 120) for step in self._open[self._open.index(tag) :]]
            raise SchemaError(f"type contains itself: {' -> '.join([*chain, chain[0]][:6])}")
        if len(self._open) >= MAX_DEPTH:
            raise SchemaError(f"type {shorten(str(self._open[0]))} nests deeper than {MAX_DEPTH} types")

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
        module = self.abis.module_abi(tag.address, tag.module)
        if module is None:
            return Untyped(tag, f"{NO_ABI} {tag.address}::{tag.module}"), 1
        struct = module.struct(tag.name)
        if struct is None:
            return Untyped(tag, f"module {tag.address}::{tag.module} has no struct {tag.name}"), 1
        return self._declared(tag, struct)

    def _declared(self, tag: tags.StructTag, struct: StructAbi) -> tuple[Layout, int]:
        """Resolve a struct or enum from its declaration."""
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

    def _fields(self, tag: tags.StructTag, fields: tuple[FieldAbi, ...]) -> tuple[Fields, int]:
        resolved = []
        total = 0
        for field in fields:
            try:
                declared = tags.parse_type_tag(field.type, abi=True)
            except InputError as error:
                # Nodes print a type that they cannot name as "unparsable<..>"; the other fields keep their types.
                layout: Layout = Untyped(tag, f"type of field {shorten(field.name)} cannot be parsed: {error}")
                size = 1
            else:
                layout, size = self.sized(tags.substitute(declared, tag.type_arguments))
            resolved.append((field.name, layout))
            total += size
        return tuple(resolved), total


# layouts in files ----------------------------------------------------------------------------------------------------

_NAMED = _PRIMITIVES | {"bytes": Bytes(), "string": String(), "object": ObjectOf()}
del _NAMED["signer"]
_NAMES = {layout: name for name, layout in _NAMED.items()}


def layout_to_json(layout: Layout) -> Any:  # noqa: PLR0911  # one return per kind of layout
    """Return a layout as JSON, which `layout_from_json` reads.

    Parameters
    ----------
    layout : Layout
        The layout.

    Returns
    -------
    str or dict

    Examples
    --------
    >>> layout_to_json(VectorOf(UInt(64)))
    {'vector': 'u64'}
    """
    match layout:
        case VectorOf(element):
            return {"vector": layout_to_json(element)}
        case OptionOf(element):
            return {"option": layout_to_json(element)}
        case StructOf(tag, fields):
            return {"struct": str(tag), "fields": _fields_to_json(fields)}
        case EnumOf(tag, variants):
            return {"enum": str(tag), "variants": [[name, _fields_to_json(fields)] for name, fields in variants]}
        case FunctionValue(tag):
            return {"function": str(tag)}
        case Untyped(tag, reason):
            return {"untyped": str(tag), "reason": reason}
    return _NAMES[layout]


def _fields_to_json(fields: Fields) -> list[list[Any]]:
    return [[name, layout_to_json(layout)] for name, layout in fields]


def layout_from_json(value: Any) -> Layout:
    """Return the layout of what `layout_to_json` returned, from an untrusted source.

    Parameters
    ----------
    value : object
        Parsed JSON.

    Returns
    -------
    Layout

    Raises
    ------
    SchemaError
        If it is not a layout, or deeper than `MAX_DEPTH`.

    Examples
    --------
    >>> layout_from_json({"option": "address"})
    OptionOf(element=Address())
    """
    return _read(value, 0)


def _read(value: Any, depth: int) -> Layout:  # noqa: PLR0911  # one return per kind of layout
    """Return a layout at a depth."""
    if depth > MAX_DEPTH:
        raise SchemaError(f"a layout is deeper than {MAX_DEPTH}")
    match value:
        case str() if value in _NAMED:
            return _NAMED[value]
        case {"vector": element}:
            return VectorOf(_read(element, depth + 1))
        case {"option": element}:
            return OptionOf(_read(element, depth + 1))
        case {"struct": str(tag), "fields": fields}:
            return StructOf(_struct_tag(tag), _read_fields(fields, depth))
        case {"enum": str(tag), "variants": variants}:
            found = tuple((name, _read_fields(fields, depth)) for name, fields in _pairs(variants))
            return EnumOf(_struct_tag(tag), found)
        case {"function": str(tag)}:
            return FunctionValue(_tag(tag))
        case {"untyped": str(tag), "reason": str(reason)}:
            return Untyped(_tag(tag), reason)
    raise SchemaError(f"expected a layout, got {shorten(value)}")


def _read_fields(fields: Any, depth: int) -> Fields:
    found = tuple((name, _read(value, depth + 1)) for name, value in _pairs(fields))
    if len({name for name, _ in found}) < len(found):
        raise SchemaError("a layout has two fields with the same name")
    return found


def _pairs(value: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, list):
        raise SchemaError(f"expected a list of pairs, got {shorten(value)}")
    for pair in value:
        match pair:
            case [str(name), inner]:
                yield name, inner
            case _:
                raise SchemaError(f"expected a name and a layout, got {shorten(pair)}")


def _tag(text: str) -> tags.TypeTag:
    try:
        return tags.parse_type_tag(text, abi=True)
    except InputError as error:
        raise SchemaError(f"a layout has a type that cannot be parsed: {error}") from None


def _struct_tag(text: str) -> tags.StructTag:
    tag = _tag(text)
    if not isinstance(tag, tags.StructTag):
        raise SchemaError(f"a struct layout has the type {shorten(text)}")
    return tag
