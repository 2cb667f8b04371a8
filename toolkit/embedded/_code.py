"""The modules published at a ledger version, with their layouts, struct types, functions and upgrades.

A `CodeSet` is immutable: publishing creates a new one, so its caches are never invalidated.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from toolkit._present.text import plural
from toolkit.embedded._state import StateKey, VersionedState, resource_key
from toolkit.embedded._vm_status import VmError
from toolkit.embedded.types import ABILITIES, argument_type_of, is_framework, option_of, vector_of
from toolkit.errors import InputError
from toolkit.move import StructTag, Vector, decode_bcs, parse_type_tag, resolve_layout
from toolkit.move._bcs import Reader, read_struct_tag, uleb128
from toolkit.move._ids import address_to_bytes
from toolkit.move._type_tags import substitute, wire_type
from toolkit.wire._state_keys import struct_tag_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from toolkit.embedded._definitions import Definition, Function
    from toolkit.embedded.types import MoveType, Struct
    from toolkit.move import Layout, ModuleAbi, TypeTag


OPTION = "0x1::option::Option"


def struct_constraints(struct: type[Struct]) -> tuple[tuple[str, ...], ...]:
    """Return the abilities that a struct declares for each of its type arguments."""
    declared = struct.move_declared()
    parameters = getattr(declared, "__parameters__", ())
    return tuple(declared.move_constraints.get(parameter.__name__, ()) for parameter in parameters)


# Bounds the caches of a set, because requests can name any number of types.
_CACHE_SIZE = 4096

# Each transaction reads the same few resources of the framework several times.
_CACHED_VALUES = 256

# Codecs are found by layout, and comparing equal layouts of two sets of modules takes longer than decoding a value.
_shared_layout: Callable[[Layout], Layout] = lru_cache(_CACHE_SIZE)(lambda layout: layout)


class StructType(NamedTuple):
    """A struct with its type arguments: canonical tag, conversions, layout, and resource group or None."""

    tag: str
    kind: MoveType
    layout: Layout
    group: str | None


class BoundFunction(NamedTuple):
    """A function with its type arguments: module, function, and layouts and types of parameters and returned values."""

    definition: Any  # Definition; None for a script
    function: Function
    type_arguments: tuple[TypeTag, ...]
    parameters: tuple[Layout, ...]
    returns: tuple[Layout, ...]
    parameter_kinds: tuple[MoveType, ...]
    return_kinds: tuple[MoveType, ...]


class CodeSet:
    """The modules published at a ledger version.

    Parameters
    ----------
    modules : dict of (canonical address, name) to Definition
        The published modules; the dict must not be changed afterwards.
    enum_variants : bool, default False
        Whether ABIs list the variants of enums.
    """

    def __init__(self, modules: dict[tuple[str, str], Definition], *, enum_variants: bool = False) -> None:
        self.modules = modules
        self._enum_variants = enum_variants
        cached = lru_cache(_CACHE_SIZE)
        # The layout of a type that is given as text.
        self.layout: Callable[[str], Layout]
        self.layout = cached(lambda text: _shared_layout(resolve_layout(parse_type_tag(text), self)))
        # A decoded value of a framework struct; it is shared, so it must not be changed.
        self.decoded: Callable[[str, bytes], Any]
        self.decoded = lru_cache(_CACHED_VALUES)(lambda text, data: decode_bcs(self.layout(text), data))
        self.struct: Callable[[type[Struct], tuple[TypeTag, ...]], StructType]
        self.struct = cached(self._struct)  # type: ignore[assignment]  # classes are hashable
        self.function: Callable[[str, str, str, tuple[TypeTag, ...]], BoundFunction] = cached(self._function)

    def with_modules(self, definitions: Iterable[Definition]) -> CodeSet:
        """Return a new set in which `definitions` are added or replaced."""
        added = {(item.address, item.name): item for item in definitions}
        return CodeSet(self.modules | added, enum_variants=self._enum_variants)

    def without_module(self, address: str, name: str) -> CodeSet:
        """Return a new set without a module."""
        kept = {key: item for key, item in self.modules.items() if key != (address, name)}
        return CodeSet(kept, enum_variants=self._enum_variants)

    def module_abi(self, address: str, name: str) -> ModuleAbi | None:
        """Return a module's ABI, or None if the module is not published; layouts use the set as an `AbiSource`."""
        definition = self.modules.get((address, name))
        return None if definition is None else definition.abi

    def struct_class(self, tag: StructTag) -> type[Struct] | None:
        """Return the class of a struct, or None if the struct is not published."""
        definition = self.modules.get((tag.address, tag.module))
        return None if definition is None else definition.structs.get(tag.name)

    def abi_json(self, definition: Definition) -> dict[str, Any]:
        """Return the ABI of a module as returned by a node.

        Abilities are in a fixed order. The variants of enums are included if the set has `enum_variants`.
        """
        structs = []
        for declared in definition.abi_json["structs"]:
            struct = declared | {"abilities": [one for one in ABILITIES if one in declared["abilities"]]}
            if not self._enum_variants:
                del struct["variants"]
            structs.append(struct)
        return definition.abi_json | {"structs": structs}

    def _struct(self, struct: type[Struct], arguments: tuple[TypeTag, ...]) -> StructType:
        """Return a struct with its type arguments."""
        constraints = struct_constraints(struct)
        if len(constraints) != len(arguments):
            expected = plural(len(constraints), "type argument")
            raise InputError(f"{struct.__name__}: expected {expected}, got {len(arguments)}")
        kind = struct.move_type(tuple(map(self.kind, arguments)))
        try:
            parsed = parse_type_tag(kind.text)
        except InputError as error:  # a type argument at the depth limit, nested one level deeper here
            raise VmError("TYPE_RESOLUTION_FAILURE", str(error)) from None
        group = None if struct.move_group is None else str(parse_type_tag(struct.move_group))
        return StructType(str(parsed), kind, self.layout(kind.text), group)

    def _function(self, address: str, module: str, name: str, arguments: tuple[TypeTag, ...]) -> BoundFunction:
        """Return a function with its type arguments.

        Raises
        ------
        VmError
            If the module or function is not published, the number of type arguments is wrong, or a type argument is a
            struct that does not exist.
        """
        definition = self.modules.get((address, module))
        if definition is None:
            raise _not_linked(address, module)
        function = definition.functions.get(name)
        if function is None:
            full = address_to_bytes(address).hex()
            raise VmError("FUNCTION_RESOLUTION_FAILURE", f"Function {full}::{module}::{name} does not exist")
        self._check_arguments(function, arguments)
        return self.substituted(definition, function, arguments)

    def script(self, function: Function, arguments: tuple[TypeTag, ...]) -> BoundFunction:
        """Return a script's signature with its type arguments.

        Raises
        ------
        VmError
            If the number of type arguments is wrong, or a type argument does not exist.
        """
        self._check_arguments(function, arguments)
        return self.substituted(None, function, arguments)

    def substituted(
        self, definition: Definition | None, function: Function, arguments: tuple[TypeTag, ...]
    ) -> BoundFunction:
        """Return a function with its type arguments, without checking them."""
        checked = definition is None or not is_framework(definition.contract)
        parameters, returns = (
            tuple(self._substituted(kind, arguments, checked=checked) for kind in kinds)
            for kinds in (function.parameters, function.returns)
        )
        taken, given = (tuple(self.layout(kind.text) for kind in kinds) for kinds in (parameters, returns))
        return BoundFunction(definition, function, arguments, taken, given, parameters, returns)

    def kind(self, tag: TypeTag) -> MoveType:
        """Return a type argument as a Move type; values of a contract's struct are instances of its class."""
        if isinstance(tag, Vector):
            return vector_of(self.kind(tag.element))
        if isinstance(tag, StructTag):
            if tag.base == OPTION:
                return option_of(self.kind(tag.type_arguments[0]))
            struct = self.struct_class(tag)
            if struct is not None and not is_framework(struct):
                return struct.move_type(tuple(map(self.kind, tag.type_arguments)))
        return argument_type_of(wire_type(tag))

    def _substituted(self, kind: MoveType, arguments: tuple[TypeTag, ...], *, checked: bool) -> MoveType:
        """Return the type of a parameter or result with the function's type arguments filled in."""
        if not arguments:
            return kind
        declared = parse_type_tag(kind.text, abi=True)
        tag = substitute(declared, arguments)
        of_node = isinstance(declared, StructTag) and declared.address == "0x1" and declared.base != OPTION
        if tag == declared or of_node or not checked:
            return replace(kind, text=wire_type(tag))
        return self.kind(tag)

    def _check_arguments(self, function: Function, arguments: tuple[TypeTag, ...]) -> None:
        """Raise the VM's error if a function does not accept the type arguments."""
        if len(arguments) != function.type_parameters:
            raise VmError(
                "NUMBER_OF_TYPE_ARGUMENTS_MISMATCH",
                f"expected {plural(function.type_parameters, 'type argument')}, got {len(arguments)}",
            )
        for argument in arguments:
            self._check_exists(argument)

    def _check_exists(self, tag: TypeTag) -> None:
        """Raise the VM's error if a struct that a type argument names is not published."""
        if isinstance(tag, Vector):
            self._check_exists(tag.element)
        elif isinstance(tag, StructTag):
            definition = self.modules.get((tag.address, tag.module))
            if definition is None:
                raise _not_linked(tag.address, tag.module)
            if tag.name not in definition.structs:
                text = wire_type(StructTag(tag.address, tag.module, tag.name))
                raise VmError("TYPE_RESOLUTION_FAILURE", f"Struct {text} does not exist")
            for inner in tag.type_arguments:
                self._check_exists(inner)


def _not_linked(address: str, module: str) -> VmError:
    return VmError("LINKER_ERROR", f"Linker Error: Module {address_to_bytes(address).hex()}::{module} doesn't exist")


def check_upgrade(before: Definition, after: Definition) -> None:
    """Check that an upgrade is compatible with its callers and with stored values.

    Raises
    ------
    InputError
        If a public or entry function is missing or has a different signature, or a struct is missing or has different
        fields. An enum may gain variants.
    """
    for function in before.abi.exposed_functions:
        if function.visibility != "public" and not function.is_entry:
            continue
        found = after.abi.function(function.name)
        if found != function:
            problem = "is missing"
            if found is not None:
                problem = f"has a different signature (published: {function!r}; now: {found!r})"
            raise InputError(
                f"{before.wire_id} cannot be upgraded: function {function.name} {problem}. Its callers rely on it: "
                "keep it and add a function with another name, or publish the contract under another name"
            )
    for struct in before.abi.structs:
        changed = after.abi.struct(struct.name)
        if changed is not None:
            changed = msgspec.structs.replace(changed, variants=changed.variants[: len(struct.variants)])
        if changed != struct:
            raise InputError(
                f"{before.wire_id} cannot be upgraded: struct {struct.name} is missing or has different fields, but "
                "stored values have the old fields. Keep the struct and add a new one; an enum may gain variants"
            )


# -- resource groups: resources of one address that are stored, read and charged together ----------------------------


def read_resource(state: VersionedState, code: CodeSet, address: str, tag: StructTag, version: int) -> bytes | None:
    """Return a resource's bytes at a version, or None; the resource may be stored separately or in a group."""
    struct = code.struct_class(tag)
    if struct is None or struct.move_group is None:
        value = state.read(resource_key(address, str(tag)), version)
        return None if value is None else value.data
    value = state.read(StateKey("group", address, str(parse_type_tag(struct.move_group))), version)
    return None if value is None else decode_group(value.data).get(str(tag))


def decode_group(data: bytes | None) -> dict[str, bytes]:
    """Return the members of a resource group as a dict of canonical struct tag to bytes.

    A group is stored under its own tag as a BCS map from struct tag to bytes.
    """
    return {} if data is None else dict(_members(data))


def encode_group(members: Mapping[str, bytes]) -> bytes | None:
    """Return the bytes of a resource group, or None if it has no members."""
    if not members:
        return None
    items = sorted((struct_tag_bytes(tag), data) for tag, data in members.items())
    return uleb128(len(items)) + b"".join(tag + uleb128(len(data)) + data for tag, data in items)


@lru_cache(maxsize=4096)
def _members(data: bytes) -> tuple[tuple[str, bytes], ...]:
    reader = Reader(data)
    return tuple((str(read_struct_tag(reader)), reader.bytes()) for _ in range(reader.length()))
