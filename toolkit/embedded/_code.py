"""The modules published at a ledger version, with their layouts, struct types, functions, abilities and upgrades.

A `CodeSet` is immutable: publishing creates a new one, so its caches are never invalidated.

A struct has an ability if it declares the ability and its type arguments have it too; phantom parameters do not count.
Contracts do not mark phantom parameters. A parameter is phantom if no field holds a value of its type.
"""

from __future__ import annotations

import re
import typing
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from toolkit._present.text import plural
from toolkit.embedded._state import StateKey, VersionedState, resource_key, struct_tag_bytes
from toolkit.embedded._vm_status import VmError
from toolkit.embedded.types import (
    ABILITIES,
    Enum,
    Event,
    Object,
    Resource,
    Struct,
    Table,
    argument_type_of,
    is_framework,
    is_signer,
    move_type,
    option_of,
    vector_of,
)
from toolkit.errors import InputError
from toolkit.move import Primitive, StructTag, Vector, decode_bcs, parse_type_tag, resolve_layout
from toolkit.move._bcs import Reader, Writer, read_type_tag
from toolkit.move._ids import address_to_bytes
from toolkit.move._type_tags import TypeParameter, substitute, wire_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from toolkit.embedded._definitions import Definition, Function
    from toolkit.embedded._values import MoveType
    from toolkit.move import Layout, ModuleAbi, TypeTag


_VALUES = frozenset({"copy", "drop", "store"})
_ALL = frozenset(ABILITIES)
OPTION = "0x1::option::Option"
_TABLE = "0x1::table::Table"
# Abilities of the types of annotations that are not struct classes; they do not depend on type arguments.
_BUILT_IN = {"0x1::object::Object": _VALUES, "0x1::string::String": _VALUES, _TABLE: frozenset({"store"})}
_SIGNER = re.compile(r"(?<![\w:])signer\b")
_NO_SIGNER = "a signer cannot be stored: write address"
# Abilities of the keys and items of tables; the type requires nothing of items, but ``table::new`` does.
_IN_TABLES = (("copy", "drop"), ("store",))


class DeclaredStructs:
    """Structs, including the structs in their fields, used to determine abilities before modules are published.

    Parameters
    ----------
    structs : iterable of type of Struct

    Attributes
    ----------
    recursive : (type of Struct, str) or None
        A struct that contains itself, and the field that contains it; None if no struct does.
    """

    def __init__(self, structs: Iterable[type[Struct]]) -> None:
        self.recursive: tuple[type[Struct], str] | None = None
        self._found: dict[str, type[Struct]] = {}
        for struct in structs:
            self.add(struct)

    def struct_class(self, tag: StructTag) -> type[Struct] | None:
        """Return the class of a struct, or None if the struct was not added."""
        return self._found.get(tag.base)

    def add(self, annotation: Any) -> None:
        """Add the structs that an annotation names, and the structs in their fields."""
        self._add(annotation, {})

    def _add(self, annotation: Any, inside: dict[type[Struct], str]) -> None:
        """Add the structs of an annotation; `inside` maps each struct around it to the field that leads there."""
        for argument in typing.get_args(annotation):
            self._add(argument, inside)
        origin = typing.get_origin(annotation) or annotation
        if not (isinstance(origin, type) and issubclass(origin, Struct) and origin.move_module):
            return
        struct = origin.move_declared()
        if struct in inside:
            self.recursive = self.recursive or (struct, inside[struct])
            return
        base = str(parse_type_tag(f"{struct.move_module}::{struct.__name__}"))
        if base not in self._found:
            self._found[base] = struct
            for field, kind in _annotations(struct):
                self._add(kind, {**inside, struct: field})


def abilities_of(
    code: CodeSet | DeclaredStructs, tag: TypeTag, parameters: Sequence[frozenset[str]] = ()
) -> frozenset[str]:
    """Return the abilities of a type.

    Parameters
    ----------
    code : CodeSet or DeclaredStructs
        Provides the classes of structs.
    tag : TypeTag
        The type whose abilities are determined.
    parameters : sequence of frozenset of str, optional
        Abilities of ``T0``, ``T1``; all abilities by default.
    """
    element = _element(tag)
    if element is not None:
        return _VALUES & abilities_of(code, element, parameters)
    match tag:
        case Primitive(name):
            return frozenset({"drop"}) if name == "signer" else _VALUES
        case TypeParameter(index):
            return parameters[index] if index < len(parameters) else _ALL
        case StructTag() if tag.base in _BUILT_IN:
            return _BUILT_IN[tag.base]
        case StructTag():
            struct = code.struct_class(tag)
            found = frozenset() if struct is None else frozenset(struct.move_declared().move_abilities)
            for index, argument in enumerate(tag.type_arguments):
                if struct is not None and not _is_phantom(code, struct, index):
                    had = abilities_of(code, argument, parameters)
                    found = frozenset(one for one in found if _needed_inside(one) in had)
            return found
    return frozenset()


def _lacks(
    code: CodeSet | DeclaredStructs, wanted: Iterable[str], tag: TypeTag, parameters: Sequence[frozenset[str]] = ()
) -> str | None:
    """Return the first ability that a type lacks, or None."""
    had = abilities_of(code, tag, parameters)
    return next((one for one in wanted if one not in had), None)


def wrong_field(code: CodeSet | DeclaredStructs, struct: type[Struct]) -> tuple[str, str] | None:
    """Return the first field whose type lacks an ability, with a text that names problem and remedy, or None."""
    name, had = struct.__name__, struct.move_abilities
    for field, tag in _fields(struct):
        allowed = [one for one in had if _lacks(code, [_needed_inside(one)], tag) is None]
        ability = next((one for one in had if one not in allowed), None)
        if ability is not None:
            instead = f"declare the struct with abilities='store', not as a Resource, to store it inside {name}"
            if _SIGNER.search(wire_type(tag)):
                instead = _NO_SIGNER
            elif issubclass(struct, Event):
                instead = "the fields of an event must be copyable: use types such as u64, address or String"
            elif allowed:
                instead = f"write class {name}({struct.__mro__[1].__name__}, abilities={' '.join(allowed)!r})"
            needed = _needed_inside(ability)
            text = f"{name} has the ability {ability}, so its fields must have {needed}: {wire_type(tag)} does not"
            return field, f"{text}; {instead}"
        problem = wrong_argument(code, tag, struct_constraints(struct))
        if problem is not None:
            return field, problem
    return None


def crossing_type(kind: Any, *, by: str, checked: bool = True) -> MoveType:
    """Return the Move type of a value that callers pass or receive.

    Messages start with `by`, such as ``a view cannot return``.

    Raises
    ------
    InputError
        If the annotation is not a Move type, or its values cannot be passed or returned.
    """
    found = move_type(kind, checked=checked)
    for one in _inside(kind):
        if is_signer(one):
            raise InputError(
                f"{by} a signer as a value: write address (signers are the first parameters of an entry function)"
            )
        if (typing.get_origin(one) or one) is Table:
            raise InputError(f"{by} a table, because its items are stored separately: use one of its items")
        if isinstance(one, type) and issubclass(one, Resource) and by.endswith("pass"):
            raise InputError(f"{by} the resource {one.__name__}: take its address, and borrow it")
    return found


def _inside(annotation: Any) -> Iterator[Any]:
    """Yield an annotation and the annotations inside it; an object counts as an address."""
    yield annotation
    origin = typing.get_origin(annotation) or annotation
    if isinstance(origin, type) and issubclass(origin, Struct):
        for _, kind in _annotations(origin):
            yield from _inside(kind)
    elif origin is not Object:
        for argument in typing.get_args(annotation.__origin__ if origin is Annotated else annotation):
            yield from _inside(argument)


def struct_constraints(struct: type[Struct]) -> tuple[tuple[str, ...], ...]:
    """Return the abilities that each type argument of a struct must have."""
    declared = struct.move_declared()
    parameters = getattr(declared, "__parameters__", ())
    return tuple(declared.move_constraints.get(parameter.__name__, ()) for parameter in parameters)


def wrong_argument(code: CodeSet | DeclaredStructs, tag: TypeTag, constraints: Sequence[Sequence[str]]) -> str | None:
    """Describe the first type argument inside a type that lacks an ability, or return None.

    ``T0`` and ``T1`` have the abilities that their constraints require.
    """
    if isinstance(tag, Vector):
        return wrong_argument(code, tag.element, constraints)
    if not isinstance(tag, StructTag):
        return None
    parameters = [frozenset(one) for one in constraints]
    struct = None if tag.base == _TABLE else code.struct_class(tag)
    required = _IN_TABLES if tag.base == _TABLE else () if struct is None else struct_constraints(struct)
    for index, (wanted, argument) in enumerate(zip(required, tag.type_arguments, strict=False)):
        missing = _lacks(code, wanted, argument, parameters)
        if missing is not None:
            text = wire_type(argument)
            instead = "; declare that struct with abilities='store', not as a Resource" if missing == "store" else ""
            instead = f"; {_NO_SIGNER}" if _SIGNER.search(text) else instead
            return f"type argument {index} of {tag.base} must have {', '.join(wanted)}; {text} lacks {missing}{instead}"
    problems = (wrong_argument(code, argument, constraints) for argument in tag.type_arguments)
    return next((problem for problem in problems if problem is not None), None)


def _element(tag: TypeTag) -> TypeTag | None:
    """Return the type of the elements of a vector or an Option, or None."""
    if isinstance(tag, Vector):
        return tag.element
    return tag.type_arguments[0] if isinstance(tag, StructTag) and tag.base == OPTION else None


def _needed_inside(ability: str) -> str:
    """Return the ability that the values inside a value must have for the outer value to have `ability`."""
    return "store" if ability == "key" else ability


def _annotations(struct: type[Struct]) -> Iterator[tuple[str, Any]]:
    """Yield names and annotations of all fields of a struct, or of the variants of an enum."""
    for one in struct.move_variants.values() if issubclass(struct, Enum) else (struct,):
        yield from one.move_fields().items()


def _fields(struct: type[Struct]) -> Iterator[tuple[str, TypeTag]]:
    """Yield names and types of all fields of a struct, or of the variants of an enum."""
    for name, annotation in _annotations(struct):
        yield name, parse_type_tag(move_type(annotation).text, abi=True)


def _is_phantom(code: CodeSet | DeclaredStructs, struct: type[Struct], index: int) -> bool:
    return not any(_holds(code, tag, index) for _, tag in _fields(struct))


def _holds(code: CodeSet | DeclaredStructs, tag: TypeTag, index: int) -> bool:
    """Return True if a value of a type holds a value of the type parameter `index`."""
    element = _element(tag)
    if element is not None:
        return _holds(code, element, index)
    match tag:
        case TypeParameter(found):
            return found == index
        case StructTag():
            struct = code.struct_class(tag)
            return struct is not None and any(
                _holds(code, argument, index) and not _is_phantom(code, struct, place)
                for place, argument in enumerate(tag.type_arguments)
            )
    return False


# Bounds the caches of a set, because requests can name any number of types.
_CACHE_SIZE = 4096

# Each transaction reads the same few resources of the framework several times.
_CACHED_VALUES = 256

# Codecs are found by layout, and comparing equal layouts of two sets of modules takes longer than decoding a value.
_shared_layout: Callable[[Layout], Layout] = lru_cache(_CACHE_SIZE)(lambda layout: layout)

# The variant byte of a struct in a type tag; group maps store struct tags without it.
_STRUCT = b"\x07"


class StructType(NamedTuple):
    """A struct with its type arguments: canonical tag, conversions, layout, abilities, and resource group or None."""

    tag: str
    kind: MoveType
    layout: Layout
    abilities: frozenset[str]
    group: str | None


class BoundFunction(NamedTuple):
    """A function with its type arguments: module, function, and layouts of parameters and returned values."""

    definition: Any  # Definition; None for a script
    function: Function
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
        # The layout and the abilities of a type that is given as text.
        self.layout: Callable[[str], Layout]
        self.layout = cached(lambda text: _shared_layout(resolve_layout(parse_type_tag(text), self)))
        self.abilities: Callable[[str], frozenset[str]]
        self.abilities = cached(lambda text: abilities_of(self, parse_type_tag(text)))
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
        self._check_constraints(constraints, arguments)
        kind = struct.move_type(tuple(map(self._kind, arguments)))
        try:
            parsed = parse_type_tag(kind.text)
        except InputError as error:  # a type argument at the depth limit, nested one level deeper here
            raise VmError("TYPE_RESOLUTION_FAILURE", str(error)) from None
        group = None if struct.move_group is None else str(parse_type_tag(struct.move_group))
        return StructType(str(parsed), kind, self.layout(kind.text), abilities_of(self, parsed), group)

    def _function(self, address: str, module: str, name: str, arguments: tuple[TypeTag, ...]) -> BoundFunction:
        """Return a function with its type arguments.

        Raises
        ------
        VmError
            If the module or function is not published, the number of type arguments is wrong, or a type argument is a
            struct that does not exist or lacks an ability that the function requires.
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
            If the number of type arguments is wrong, or a type argument does not exist or lacks an ability.
        """
        self._check_arguments(function, arguments)
        return self.substituted(None, function, arguments)

    def substituted(
        self, definition: Definition | None, function: Function, arguments: tuple[TypeTag, ...]
    ) -> BoundFunction:
        """Return a function with its type arguments, without checking them."""
        checked = definition is None or not is_framework(definition.contract)
        parameters = tuple(self._substituted(kind, arguments, checked=checked) for kind in function.parameters)
        returns = tuple(self._substituted(kind, arguments, checked=checked) for kind in function.returns)
        layouts, return_layouts = ([self.layout(kind.text) for kind in kinds] for kinds in (parameters, returns))
        return BoundFunction(definition, function, tuple(layouts), tuple(return_layouts), parameters, returns)

    def _kind(self, tag: TypeTag) -> MoveType:
        """Return a type argument as a Move type; values of a contract's struct are instances of its class."""
        if isinstance(tag, Vector):
            return vector_of(self._kind(tag.element))
        if isinstance(tag, StructTag):
            if tag.base == OPTION:
                return option_of(self._kind(tag.type_arguments[0]))
            struct = self.struct_class(tag)
            if struct is not None and not is_framework(struct):
                return struct.move_type(tuple(map(self._kind, tag.type_arguments)))
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
        return self._kind(tag)

    def _check_arguments(self, function: Function, arguments: tuple[TypeTag, ...]) -> None:
        """Raise the VM's error if a function does not accept the type arguments."""
        if len(arguments) != function.type_parameters:
            raise VmError(
                "NUMBER_OF_TYPE_ARGUMENTS_MISMATCH",
                f"expected {plural(function.type_parameters, 'type argument')}, got {len(arguments)}",
            )
        for argument in arguments:
            self._check_exists(argument)
        self._check_constraints(function.constraints, arguments)

    def _check_constraints(self, constraints: Sequence[Sequence[str]], arguments: tuple[TypeTag, ...]) -> None:
        """Raise the VM's error if a type argument lacks an ability."""
        for index, (wanted, argument) in enumerate(zip(constraints, arguments, strict=True)):
            missing = _lacks(self, wanted, argument)
            if missing is not None:
                text = f"type argument T{index} must have {', '.join(wanted)}; {wire_type(argument)} lacks {missing}"
                raise VmError("CONSTRAINT_NOT_SATISFIED", text)

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


def _signature(function: Function) -> str:
    """Return a function's visibility, marks and signature as text."""
    abi = function.to_abi()
    marks = [abi["visibility"], *(word for word in ("entry", "view") if abi[f"is_{word}"])]
    constraints = [" + ".join(one["constraints"]) for one in abi["generic_type_params"]]
    generic = ", ".join(f"T{place}{text and ': '}{text}" for place, text in enumerate(constraints))
    returned = ", ".join(abi["return"])
    text = f"{abi['name']}{generic and f'<{generic}>'}({', '.join(abi['params'])}){returned and ': '}{returned}"
    return " ".join([*marks, text]).replace("0x1::string::String", "String")


def check_upgrade(before: Definition, after: Definition) -> None:
    """Check that an upgrade is compatible with its callers and with stored values.

    Raises
    ------
    InputError
        If a public or entry function is missing or has a different signature, or a struct is missing or has different
        fields. An enum may gain variants.
    """
    for name, function in before.functions.items():
        if function.mark.visibility != "public" and not function.mark.is_entry:
            continue
        found = after.functions.get(name)
        if found is None or found.to_abi() != function.to_abi():
            problem = "is missing"
            if found is not None:
                problem = f"has a different signature (published: {_signature(function)}; now: {_signature(found)})"
            raise InputError(
                f"{before.wire_id} cannot be upgraded: function {name} {problem}. Its callers rely on it: keep it as "
                "published and add a function with another name, or publish the contract under another name"
            )
    new_structs = {struct["name"]: struct for struct in after.abi_json["structs"]}
    for struct in before.abi_json["structs"]:
        changed = new_structs.get(struct["name"])
        if changed is not None:
            changed = changed | {"variants": changed["variants"][: len(struct["variants"])]}
        if changed != struct:
            raise InputError(
                f"{before.wire_id} cannot be upgraded: struct {struct['name']} is missing or has different fields, but "
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
    writer = Writer()
    writer.uleb128(len(members))
    for tag, data in sorted((struct_tag_bytes(tag), data) for tag, data in members.items()):
        writer.fixed(tag)
        writer.bytes(data)
    return bytes(writer.getvalue())


@lru_cache(maxsize=4096)
def _members(data: bytes) -> tuple[tuple[str, bytes], ...]:
    members = []
    reader = Reader(data)
    count = reader.uleb128()
    position = reader.position
    for _ in range(count):
        inner = Reader(_STRUCT + data[position:])
        members.append((str(read_type_tag(inner)), inner.bytes()))
        position += inner.position - len(_STRUCT)
    return tuple(members)
