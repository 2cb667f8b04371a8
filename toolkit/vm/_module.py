"""Modules and scripts: read from the binary format and written in it, with their metadata, and as text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit._present.text import plural
from toolkit.errors import InputError, SchemaError
from toolkit.move._module_metadata import GROUP_MEMBER, ModuleMetadata
from toolkit.vm import _binary as binary
from toolkit.vm._code import (
    FRIEND,
    MAX_VERSION,
    PUBLIC,
    Constant,
    FieldUse,
    FunctionDefinition,
    FunctionUse,
    StructHandle,
    StructUse,
)
from toolkit.vm._errors import MoveError
from toolkit.vm._types import ABILITIES, Struct, parse, type_list

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from toolkit.vm._code import Field, FunctionHandle, Instruction, StructDefinition
    from toolkit.vm._types import ModuleId

MAX_CACHED_MODULES = 2_048
VIEW_KINDS = (0, 1)
GROUP, EVENT, RANDOMNESS = 2, 4, 5  # other kinds of attributes
_ABORT_CODE_BITS = 0xFFF  # of an abort code that hold the reason; the rest is the category


def is_unstable(metadata: Mapping[bytes, bytes]) -> bool:
    """Return whether the compiler says that its output is not stable."""
    return metadata.get(b"compilation_metadata", b"\0")[:1] == b"\1"


@dataclass(frozen=True, eq=False, repr=False)
class Module:
    """A module, read from its binary form.

    Attributes
    ----------
    id : ModuleId
        Address and name.
    version : int
        Version of the binary format.
    functions : dict of str to FunctionDefinition
    structs : dict of str to StructDefinition
        Structs and enums.
    dependencies, friends : tuple of ModuleId
    metadata : dict of bytes to bytes
    size : int
        Length of the code in bytes.

    Examples
    --------
    >>> from toolkit import vm
    >>> code = bytes.fromhex(
    ...     "a11ceb0b0600000006010002030205050703070a090813200c331300000001000000010300016d06646f75626c650000"
    ...     "00000000000000000000000000000000000000000000000000000000cafe0001000001040b0006020000000000000018"
    ...     "0200"
    ... )
    >>> print(vm.Module.from_bytes(code).disassemble("double"))
    public fun double(l0: u64): (u64)
        0: MoveLoc(0)
        1: LdU64(2)
        2: Mul
        3: Ret
    """

    id: ModuleId
    version: int
    functions: dict[str, FunctionDefinition]
    structs: dict[str, StructDefinition]
    dependencies: tuple[ModuleId, ...]
    friends: tuple[ModuleId, ...]
    metadata: dict[bytes, bytes]
    size: int
    handles: tuple[FunctionHandle, ...]
    struct_handles: tuple[StructHandle, ...]

    def __repr__(self) -> str:
        counts = f"{plural(len(self.functions), 'function')}, {plural(len(self.structs), 'struct')}"
        return f"<Module {self.id}: {counts}, {plural(self.size, 'byte')}, version {self.version}>"

    @classmethod
    def from_bytes(cls, code: bytes) -> Module:
        """Read a module.

        Parameters
        ----------
        code : bytes
            The module in the binary format, version 5 to 9.

        Returns
        -------
        Module

        Raises
        ------
        Unsupported
            If the version of the format is not 5 to 9.
        InputError
            If the bytes are not a module.
        """
        try:
            return read_module(bytes(code))
        except MoveError as error:
            raise InputError(f"not a module: {error.message}") from None

    def disassemble(self, name: str | None = None) -> str:
        """Return the code as text.

        Parameters
        ----------
        name : str, optional
            Name of a function; the whole module if omitted.

        Returns
        -------
        str

        Raises
        ------
        InputError
            If the module does not define a function of this name.
        """
        if name is None:
            return disassemble_module(self)
        if name not in self.functions:
            raise InputError(f"{self.id} does not define a function {name!r}")
        return disassemble_function(self.functions[name])

    def group(self, struct: str) -> Struct | None:
        """Return the resource group of which a struct is a member, or None."""
        member = self.attributes.of_struct(struct, GROUP_MEMBER)
        group = parse(member.arguments[0]) if member and member.arguments else None
        return group if isinstance(group, Struct) else None

    @cached_property
    def attributes(self) -> ModuleMetadata:
        """Attributes of structs and functions, and names of abort codes, from the metadata."""
        try:
            return ModuleMetadata.read(self.metadata)
        except SchemaError:
            return ModuleMetadata(valid=False)

    def named_abort(self, code: int) -> tuple[str, str] | None:
        """Return the name and the description of an abort code."""
        errors = self.attributes.errors
        return errors.get(code & _ABORT_CODE_BITS) or errors.get(code)


@dataclass(frozen=True, eq=False)
class ScriptCode:
    """A script: its main function, and the functions and modules that it uses."""

    main: FunctionDefinition
    version: int
    dependencies: tuple[ModuleId, ...]
    handles: tuple[FunctionHandle, ...]
    struct_handles: tuple[StructHandle, ...]
    metadata: dict[bytes, bytes]


@lru_cache(MAX_CACHED_MODULES)
def read_module(code: bytes) -> Module:
    """Read a module; the same bytes give the same object while it is in the cache.

    Raises
    ------
    MoveError
        If the bytes are not a module.
    Unsupported
        If the version of the format is not implemented.
    """
    file = binary.File(code)
    own: ModuleId = binary.MODULE.read(file.tail)
    file.own = own
    file.read_all()
    return Module(
        id=own,
        version=file.version,
        functions={one.name: one for one in file.table(binary.FUNCTION_DEFINITIONS)},
        structs={one.name: one for one in file.table(binary.STRUCT_DEFINITIONS)},
        dependencies=tuple(one for one in file.table(binary.MODULES) if one != own),
        friends=tuple(file.table(binary.FRIENDS)),
        metadata=dict(file.table(binary.METADATA)),
        size=len(code),
        handles=tuple(file.table(binary.FUNCTIONS)),
        struct_handles=tuple(file.table(binary.STRUCTS)),
    )


@lru_cache(64)
def read_script(code: bytes) -> ScriptCode:
    """Read a script.

    Raises
    ------
    MoveError
        If the bytes are not a script.
    Unsupported
        If the version of the format is not implemented.
    """
    file = binary.File(code, binary.SCRIPT_TABLES)
    file.read_all()
    type_parameters, parameters, access = binary.SCRIPT.read(file.tail)
    kinds, instructions = binary.read_code(file.tail, parameters)
    main = FunctionDefinition(
        None, "main", 0, parameters, (), type_parameters, locals=kinds, code=instructions, access=access
    )
    return ScriptCode(
        main,
        file.version,
        tuple(file.table(binary.MODULES)),
        tuple(file.table(binary.FUNCTIONS)),
        tuple(file.table(binary.STRUCTS)),
        dict(file.table(binary.METADATA)),
    )


def write_script(
    main: FunctionDefinition, struct_handles: Iterable[StructHandle] = (), *, version: int = MAX_VERSION
) -> bytes:
    """Return a script as bytes.

    Parameters
    ----------
    main : FunctionDefinition
        Its name and visibility are not written.
    struct_handles : iterable of StructHandle, optional
        The structs of modules that the script names.
    version : int, default 9
        Version of the binary format.
    """
    writer = binary.FileWriter(version, struct_handles)
    head = binary.SCRIPT.write(writer, (main.type_parameters, main.parameters, main.access))
    return writer.file(head + binary.write_code(writer, main))


def write_module(
    module: ModuleId,
    *,
    functions: Iterable[FunctionDefinition] = (),
    structs: Iterable[StructDefinition] = (),
    struct_handles: Iterable[StructHandle] = (),
    friends: Iterable[ModuleId] = (),
    metadata: dict[bytes, bytes] | None = None,
    version: int = MAX_VERSION,
) -> bytes:
    """Return a module as bytes.

    Parameters
    ----------
    module : ModuleId
    functions : iterable of FunctionDefinition
    structs : iterable of StructDefinition
    struct_handles : iterable of StructHandle, optional
        The structs of other modules that the module names.
    friends : iterable of ModuleId
    metadata : dict of bytes to bytes, optional
    version : int, default 9
        Version of the binary format.
    """
    structs = list(structs)
    own = [StructHandle(module, one.name, one.abilities, one.type_parameters) for one in structs]
    writer = binary.FileWriter(version, [*own, *struct_handles])
    tail = binary.MODULE.write(writer, module)
    tables = {
        binary.STRUCT_DEFINITIONS: structs,
        binary.FUNCTION_DEFINITIONS: functions,
        binary.FRIENDS: friends,
        binary.METADATA: (metadata or {}).items(),
    }
    for kind, entries in tables.items():
        for one in entries:
            writer.index(kind, one)
    return writer.file(tail)


# Code as text. Operands are written as names and types, not as indices, so that equal code gives equal text.


def operand_text(operand: Any) -> str:  # noqa: PLR0911 - a case per kind
    """Return the operand of an instruction as text."""
    match operand:
        case None:
            return ""
        case FunctionUse():
            function = operand.function
            return f"{function.module}::{function.name}{type_list(operand.arguments or ())}"
        case StructUse(struct, arguments, variant):
            of = "" if variant is None else f"::{struct.variant_names[variant]}"
            return f"{struct.name}{type_list(arguments)}{of}"
        case FieldUse(struct, arguments, offset, variants):
            of = "|".join(struct.variant_names[at] for at in variants)
            field = struct.fields_of(variants[0] if variants else None)[offset]
            return f"{struct.name}{type_list(arguments)}{'::' * bool(of)}{of}.{field.name}"
        case Constant():
            return f"{operand.type} {operand.data.hex()}"
        case tuple():
            return ", ".join(map(operand_text, operand))
    return str(operand)


def instruction_text(instruction: Instruction) -> str:
    """Return an instruction as text."""
    if instruction.operand is None:
        return instruction.name
    if "Closure" in instruction.name and isinstance(instruction.operand, tuple):
        use, mask = instruction.operand
        return f"{instruction.name}({operand_text(use)}, {mask:#b})"
    return f"{instruction.name}({operand_text(instruction.operand)})"


def disassemble_function(function: FunctionDefinition) -> str:
    """Return a function as text, one instruction a line with its offset."""
    words = {PUBLIC: "public ", FRIEND: "friend "}.get(function.visibility, "")
    words += "entry " * function.is_entry + "native " * function.is_native
    parameters = _type_parameters(function.type_parameters)
    count = len(function.parameters)
    arguments = ", ".join(f"l{at}: {kind}" for at, kind in enumerate(function.parameters))
    results = ", ".join(map(str, function.results))
    head = f"{words}fun {function.name}{parameters}({arguments})" + (f": ({results})" if results else "")
    if function.is_native:
        return head
    local_lines = [f"    l{at}: {kind}" for at, kind in enumerate(function.locals[count:], count)]
    lines = [f"{at:5}: {instruction_text(one)}" for at, one in enumerate(function.code)]
    return "\n".join([head, *local_lines, *lines])


def _type_parameters(abilities: Sequence[int]) -> str:
    parts = [f"T{at}" + _has(bits, ": ") for at, bits in enumerate(abilities)]
    return f"<{', '.join(parts)}>" if parts else ""


def _has(bits: int, before: str) -> str:
    names = " + ".join(name for name, bit in ABILITIES.items() if bits & bit)
    return before + names if names else ""


def struct_text(struct: StructDefinition) -> str:
    """Return the definition of a struct or enum as text."""
    parameters = [
        "phantom " * parameter.phantom + f"T{at}" + _has(parameter.abilities, ": ")
        for at, parameter in enumerate(struct.type_parameters)
    ]
    kind = "struct" if struct.variants is None else "enum"
    generic = f"<{', '.join(parameters)}>" if parameters else ""
    head = f"{kind} {struct.name}{generic}{_has(struct.abilities, ' has ')}"
    if struct.variants is None:
        return f"{head} {{ {_fields(struct.fields)} }}"
    lines = [f"    {variant.name} {{ {_fields(variant.fields)} }}" for variant in struct.variants]
    return "\n".join([head, *lines])


def _fields(fields: Sequence[Field]) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in fields)


class CodeChanges(NamedTuple):
    """Names of functions that differ between two versions of a module.

    Examples
    --------
    >>> from toolkit import vm
    >>> vm.CodeChanges(added=("mint",), removed=(), changed=()).added
    ('mint',)
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]


def code_changes(old: Module, new: Module) -> CodeChanges:
    """Compare the functions of two versions of a module.

    Parameters
    ----------
    old, new : Module

    Returns
    -------
    CodeChanges
        Functions that were added, removed and changed. A function whose code only refers to other places in the tables
        of the module has not changed.

    Examples
    --------
    >>> from toolkit import vm
    >>> product = bytes.fromhex(
    ...     "a11ceb0b0600000006010002030205050703070a090813200c331300000001000000010300016d06646f75626c650000"
    ...     "00000000000000000000000000000000000000000000000000000000cafe0001000001040b0006020000000000000018"
    ...     "0200"
    ... )
    >>> total = bytes.fromhex(
    ...     "a11ceb0b0600000006010002030205050703070a090813200c330c00000001000000010300016d06646f75626c650000"
    ...     "00000000000000000000000000000000000000000000000000000000cafe0001000001040a000b00160200"
    ... )
    >>> vm.code_changes(vm.Module.from_bytes(product), vm.Module.from_bytes(total))
    CodeChanges(added=(), removed=(), changed=('double',))
    """
    before = {name: disassemble_function(one) for name, one in old.functions.items()}
    after = {name: disassemble_function(one) for name, one in new.functions.items()}
    return CodeChanges(
        added=tuple(name for name in after if name not in before),
        removed=tuple(name for name in before if name not in after),
        changed=tuple(name for name in after if name in before and after[name] != before[name]),
    )


def disassemble_module(module: Module) -> str:
    """Return a module as text: its structs, then its functions."""
    head = f"module {module.id}  // version {module.version}, {module.size:,} bytes"
    structs = [struct_text(one) for one in module.structs.values()]
    functions = [disassemble_function(one) for one in module.functions.values()]
    return "\n\n".join([head, *structs, *functions])
