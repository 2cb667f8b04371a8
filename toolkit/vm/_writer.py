"""Writes scripts that are composed, and modules in tests, in the binary format; `_module` reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.vm import _binary as binary
from toolkit.vm._code import StructHandle
from toolkit.vm._instructions import MAX_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.vm._code import FunctionDefinition, StructDefinition
    from toolkit.vm._types import ModuleId


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
