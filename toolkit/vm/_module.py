"""Modules and scripts, read from the binary format, in which their names and types are resolved, and written in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from toolkit._present.text import plural
from toolkit.errors import InputError
from toolkit.vm import _binary as binary
from toolkit.vm._code import MAX_VERSION, FunctionDefinition, StructHandle
from toolkit.vm._disassembler import disassemble_function, disassemble_module
from toolkit.vm._errors import MoveError
from toolkit.vm._metadata import GROUP_MEMBER, Attributes, read_attributes
from toolkit.vm._types import Struct, parse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.vm._code import FunctionHandle, StructDefinition
    from toolkit.vm._types import ModuleId

MAX_CACHED_MODULES = 2_048


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
    def attributes(self) -> Attributes:
        """Attributes of structs and functions, and names of abort codes, from the metadata."""
        return read_attributes(self.metadata)


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
