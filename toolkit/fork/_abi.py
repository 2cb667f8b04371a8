"""Module ABIs from bytecode, so that a fork types its values by the code that it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.errors import SchemaError
from toolkit.move import decode_module_abi, resolve_layout
from toolkit.move._ids import address_to_bytes
from toolkit.vm._code import FRIEND, PRIVATE, PUBLIC
from toolkit.vm._errors import MoveError
from toolkit.vm._metadata import EVENT, VIEW_KINDS
from toolkit.vm._module import read_module
from toolkit.vm._state import module_key
from toolkit.vm._types import ABILITIES, ModuleId

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.move import Layout, ModuleAbi, TypeTag
    from toolkit.vm import Module
    from toolkit.vm._code import Field, FunctionDefinition, StructDefinition
    from toolkit.vm._state import Read

_VISIBILITY = {PRIVATE: "private", PUBLIC: "public", FRIEND: "friend"}


class StateAbis:
    """The ABIs of the modules of a state, from their bytecode.

    Parameters
    ----------
    read : callable
        Returns value and metadata of a state key, as for `toolkit.vm.execute`.
    """

    def __init__(self, read: Read) -> None:
        self._read = read
        self._known: dict[tuple[str, str], ModuleAbi | None] = {}

    def module_abi(self, address: str, name: str) -> ModuleAbi | None:
        """Return the ABI of a module, or None if it does not exist."""
        if (address, name) not in self._known:
            found = self.answer(address, name)
            self._known[address, name] = None if found is None else decode_module_abi(found)
        return self._known[address, name]

    def answer(self, address: str, name: str) -> dict[str, Any] | None:
        """Return a module as a node answers it: its bytecode and its ABI."""
        found = self._read(module_key(ModuleId(address_to_bytes(address), name)))
        return None if found is None else module_json(found[0], f"{address}::{name}")

    def function(self, location: str, index: int) -> str:
        """Return the id of a function by its index in a module, as a node names it."""
        address, _, name = location.partition("::")
        found = self._read(module_key(ModuleId(address_to_bytes(address), name)))
        names = [] if found is None else list(parsed_module(found[0], location).functions)
        return f"{location}::{names[index] if index < len(names) else f'<#{index} function>'}"

    def layout(self, tag: TypeTag) -> Layout:
        """Return the layout of a type."""
        return resolve_layout(tag, self)


def parsed_module(code: bytes, name: str) -> Module:
    """Return a module of a state.

    Raises
    ------
    SchemaError
        If its code is not bytecode.
    """
    try:
        return read_module(bytes(code))
    except MoveError as error:
        raise SchemaError(
            f"the code of {name} is not bytecode that the machine reads ({error.message}). The contracts of an "
            "embedded node are Python: fork it in the process that has its Ledger"
        ) from None


def module_json(code: bytes, name: str) -> dict[str, Any]:
    """Return a module as a node answers it: its bytecode and its ABI."""
    return {"bytecode": f"0x{bytes(code).hex()}", "abi": abi_json(parsed_module(code, name))}


def abi_json(module: Module) -> dict[str, Any]:
    """Return the ABI of a module in the JSON form of a node."""
    address, _, name = str(module.id).partition("::")
    functions = (
        one for one in module.functions.values() if one.visibility != PRIVATE or one.is_entry or _is_view(module, one)
    )
    return {
        "address": address,
        "name": name,
        "friends": list(map(str, module.friends)),
        "exposed_functions": [_function(module, one) for one in functions],
        "structs": [_struct(module, one) for one in module.structs.values()],
    }


def _abilities(bits: int) -> list[str]:
    return [name for name, bit in ABILITIES.items() if bits & bit]


def _is_view(module: Module, function: FunctionDefinition) -> bool:
    return module.attributes.of_function(function.name, *VIEW_KINDS) is not None


def _function(module: Module, function: FunctionDefinition) -> dict[str, Any]:
    return {
        "name": function.name,
        "visibility": _VISIBILITY[function.visibility],
        "is_entry": function.is_entry,
        "is_view": _is_view(module, function),
        "generic_type_params": [{"constraints": _abilities(bits)} for bits in function.type_parameters],
        "params": list(map(str, function.parameters)),
        "return": list(map(str, function.results)),
    }


def _struct(module: Module, struct: StructDefinition) -> dict[str, Any]:
    parameters = struct.type_parameters
    variants = struct.variants or ()
    return {
        "name": struct.name,
        "is_native": False,
        "is_event": module.attributes.of_struct(struct.name, EVENT) is not None,
        "is_enum": struct.variants is not None,
        "abilities": _abilities(struct.abilities),
        "generic_type_params": [
            {"constraints": _abilities(one.abilities), "is_phantom": one.phantom} for one in parameters
        ],
        "fields": _fields(struct.fields),
        "variants": [{"name": one.name, "fields": _fields(one.fields)} for one in variants],
    }


def _fields(fields: Iterable[Field]) -> list[dict[str, str]]:
    return [{"name": one.name, "type": str(one.type)} for one in fields]
