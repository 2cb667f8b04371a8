"""The modules published at one ledger version, and everything worth keeping that follows from them.

A set is replaced, never changed, when something is published; so its caches need no invalidation.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from toolkit.embedded.state import group_key, resource_key
from toolkit.embedded.types import MoveType, Struct
from toolkit.embedded.vm_status import VmError
from toolkit.errors import InputError
from toolkit.move import (
    Reader,
    StructTag,
    Vector,
    Writer,
    address_to_bytes,
    parse_type_tag,
    read_type_tag,
    resolve_layout,
    substitute,
    wire_type,
    write_type_tag,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolkit.embedded.contract import Definition, Function
    from toolkit.embedded.state import VersionedState
    from toolkit.move import Layout, ModuleAbi, TypeTag

__all__ = [
    "BoundFunction",
    "CodeSet",
    "StructType",
    "check_upgrade",
    "decode_group",
    "encode_group",
    "group_of",
    "read_resource",
]

_K = TypeVar("_K")
_V = TypeVar("_V")
_CACHE_SIZE = 4096


class StructType(NamedTuple):
    """A struct with its type arguments, ready to be stored: canonical tag, converters, layout, group if any."""

    tag: str
    kind: MoveType
    layout: Layout
    group: str | None


class BoundFunction(NamedTuple):
    """A function with its type arguments: the module, the function, and layouts of what crosses the wire."""

    definition: Definition
    function: Function
    parameters: tuple[Layout, ...]
    returns: tuple[Layout, ...]
    parameter_kinds: tuple[MoveType, ...]
    return_kinds: tuple[MoveType, ...]


class _Cache(dict[_K, _V]):
    """A cache that starts afresh when it is full: requests name any types they like."""

    def keep(self, key: _K, value: _V) -> _V:
        """Remember and return a value."""
        if len(self) >= _CACHE_SIZE:
            self.clear()
        self[key] = value
        return value


class CodeSet:
    """The modules published at one time, by (canonical address, name).

    Parameters
    ----------
    modules : dict
        Definitions by (address, name); not to be changed afterwards.
    """

    def __init__(self, modules: dict[tuple[str, str], Definition]) -> None:
        self.modules = modules
        self._layouts: _Cache[str, Layout] = _Cache()
        self._structs: _Cache[tuple[type[Struct], tuple[TypeTag, ...]], StructType] = _Cache()
        self._functions: _Cache[tuple[str, str, str, tuple[TypeTag, ...]], BoundFunction] = _Cache()

    def with_modules(self, definitions: Iterable[Definition]) -> CodeSet:
        """Return a new set in which `definitions` are published too."""
        return CodeSet(self.modules | {(item.address, item.name): item for item in definitions})

    def without_module(self, address: str, name: str) -> CodeSet:
        """Return a new set in which a module is no longer published."""
        return CodeSet({key: item for key, item in self.modules.items() if key != (address, name)})

    def module_abi(self, address: str, name: str) -> ModuleAbi | None:
        """Return a module's ABI, or None (this makes the set a source of layouts)."""
        definition = self.modules.get((address, name))
        return None if definition is None else definition.abi

    @cached_property
    def by_contract(self) -> dict[type, Definition]:
        """Definitions by the class that runs."""
        return {definition.contract: definition for definition in self.modules.values()}

    def layout(self, text: str) -> Layout:
        """Return the layout of a type given as text."""
        layout = self._layouts.get(text)
        if layout is None:
            layout = self._layouts.keep(text, resolve_layout(parse_type_tag(text), self))
        return layout

    def struct(self, struct: type[Struct], arguments: tuple[TypeTag, ...]) -> StructType:
        """Return a struct with its type arguments filled in."""
        known = self._structs.get((struct, arguments))
        if known is None:
            wanted = len(getattr(struct, "__parameters__", ()))
            if wanted != len(arguments):
                raise InputError(f"{struct.__name__} takes {wanted} type arguments, got {len(arguments)}")
            kind = struct.move_type(tuple(MoveType(wire_type(argument)) for argument in arguments))
            try:
                tag = str(parse_type_tag(kind.text))
            except InputError as error:  # a type argument at the limit, and now one type around it
                raise VmError("TYPE_RESOLUTION_FAILURE", str(error)) from None
            group = None if struct.move_group is None else str(parse_type_tag(struct.move_group))
            known = self._structs.keep((struct, arguments), StructType(tag, kind, self.layout(kind.text), group))
        return known

    def find(self, address: str, module: str, name: str) -> tuple[Definition | None, Function | None]:
        """Return a module's definition and one of its functions, each None where there is none."""
        definition = self.modules.get((address, module))
        return definition, None if definition is None else definition.functions.get(name)

    def function(self, address: str, module: str, name: str, arguments: tuple[TypeTag, ...]) -> BoundFunction:
        """Return a function with its type arguments filled in.

        Raises
        ------
        VmError
            If there is no such module or function, the number of type arguments is wrong, or one names a
            struct that does not exist.
        """
        known = self._functions.get((address, module, name, arguments))
        if known is None:
            known = self._functions.keep(
                (address, module, name, arguments), self._bind(address, module, name, arguments)
            )
        return known

    def _bind(self, address: str, module: str, name: str, arguments: tuple[TypeTag, ...]) -> BoundFunction:
        definition, function = self.find(address, module, name)
        full = address_to_bytes(address).hex()
        if definition is None:
            raise VmError("LINKER_ERROR", f"Linker Error: Module {full}::{module} doesn't exist")
        if function is None:
            raise VmError("FUNCTION_RESOLUTION_FAILURE", f"Function {full}::{module}::{name} does not exist")
        if len(arguments) != function.type_parameters:
            raise VmError(
                "NUMBER_OF_TYPE_ARGUMENTS_MISMATCH",
                f"expected {function.type_parameters} type arguments, got {len(arguments)}",
            )
        for argument in arguments:
            self._check_exists(argument)
        parameters = [_substituted(kind, arguments) for kind in function.parameters]
        returns = [_substituted(kind, arguments) for kind in function.returns]
        return BoundFunction(
            definition,
            function,
            tuple(self.layout(kind.text) for kind in parameters),
            tuple(self.layout(kind.text) for kind in returns),
            tuple(parameters),
            tuple(returns),
        )

    def _check_exists(self, tag: TypeTag) -> None:
        """Refuse a type argument whose struct is not published, with the VM's text."""
        if isinstance(tag, Vector):
            self._check_exists(tag.element)
        elif isinstance(tag, StructTag):
            definition = self.modules.get((tag.address, tag.module))
            if definition is None or tag.name not in definition.structs:
                text = wire_type(StructTag(tag.address, tag.module, tag.name))
                raise VmError("TYPE_RESOLUTION_FAILURE", f"Struct {text} does not exist")
            for inner in tag.type_arguments:
                self._check_exists(inner)


def _substituted(kind: MoveType, arguments: tuple[TypeTag, ...]) -> MoveType:
    """Fill ``T0``, ``T1`` of a parameter's type with the type arguments."""
    if not arguments:
        return kind
    tag = substitute(parse_type_tag(kind.text, abi=True), arguments)
    return MoveType(wire_type(tag), kind.lift, kind.lower)


def check_upgrade(before: Definition, after: Definition) -> None:
    """Refuse an upgrade that would break what other modules or stored values rely on.

    Raises
    ------
    InputError
        If a public or entry function is gone or takes or returns something else, or a struct is gone or its
        fields differ.
    """
    for name, function in before.functions.items():
        changed = after.functions.get(name)
        if changed is None or changed.to_abi() != function.to_abi():
            verb = "is gone" if changed is None else "has another signature"
            raise InputError(
                f"{before.wire_id} cannot be upgraded: function {name} {verb}. An upgrade keeps every exposed function "
                "and struct as it is and may add more; publish under a new name instead"
            )
    new_structs = {struct["name"]: struct for struct in after.abi_json["structs"]}
    for struct in before.abi_json["structs"]:
        if new_structs.get(struct["name"]) != struct:
            raise InputError(
                f"{before.wire_id} cannot be upgraded: struct {struct['name']} is gone or has other fields, and stored "
                "values have the old ones. Keep it and add a new struct instead"
            )


# -- resource groups: resources of one address that are stored, read and charged together ----------------------------

# The variant byte of a struct in a type tag; maps hold bare struct tags, without it.
_STRUCT = b"\x07"


def group_of(code: CodeSet, tag: StructTag) -> str | None:
    """Return the canonical tag of the group a struct belongs to, or None."""
    definition = code.modules.get((tag.address, tag.module))
    struct = None if definition is None else definition.structs.get(tag.name)
    return None if struct is None or struct.move_group is None else str(parse_type_tag(struct.move_group))


def read_resource(state: VersionedState, code: CodeSet, address: str, tag: StructTag, version: int) -> bytes | None:
    """Return a resource's bytes at a version, whether it is stored alone or in a group."""
    group = group_of(code, tag)
    if group is None:
        value = state.read(resource_key(address, str(tag)), version)
        return None if value is None else value.data
    value = state.read(group_key(address, group), version)
    return None if value is None else decode_group(value.data).get(str(tag))


def decode_group(data: bytes | None) -> dict[str, bytes]:
    """Return a group's members: bytes by canonical struct tag."""
    return {} if data is None else dict(_members(data))


def encode_group(members: Mapping[str, bytes]) -> bytes | None:
    """Return a group's bytes, or None where it has no members left."""
    if not members:
        return None
    writer = Writer()
    writer.uleb128(len(members))
    for tag, data in sorted((_tag_bytes(tag), data) for tag, data in members.items()):
        writer.fixed(tag)
        writer.bytes(data)
    return bytes(writer.getvalue())


@lru_cache(maxsize=1024)
def _tag_bytes(tag: str) -> bytes:
    writer = Writer()
    write_type_tag(writer, parse_type_tag(tag))
    return bytes(writer.getvalue())[1:]


@lru_cache(maxsize=4096)
def _members(data: bytes) -> tuple[tuple[str, bytes], ...]:
    members = []
    reader = Reader(data)
    count = reader.uleb128()
    position = reader.position
    for _ in range(count):
        inner = Reader(_STRUCT + data[position:])
        tag = read_type_tag(inner)
        members.append((str(tag), inner.bytes()))
        position += inner.position - len(_STRUCT)
    return tuple(members)
