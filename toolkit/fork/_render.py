"""Modules, values and executions in the JSON form of a node, typed by the bytecode of the state."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from toolkit.errors import InputError, SchemaError
from toolkit.fork._state import KeyKind, parse_key
from toolkit.move import decode_bcs, decode_module_abi, encode_json, parse_type_tag, resolve_layout
from toolkit.move._bcs import Reader
from toolkit.move._ids import address_from_bytes, address_to_bytes
from toolkit.move._type_tags import substitute
from toolkit.vm._bcs import read_struct_tag
from toolkit.vm._code import FRIEND, PRIVATE, PUBLIC
from toolkit.vm._errors import MoveError
from toolkit.vm._module import EVENT, VIEW_KINDS, read_module
from toolkit.vm._state import Group, module_key
from toolkit.vm._types import ABILITIES, ModuleId
from toolkit.wire._bcs_requests import EncodedEntryFunction
from toolkit.wire._on_chain import request_json
from toolkit.wire._state_keys import key_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolkit.move import Layout, ModuleAbi, TypeTag
    from toolkit.vm import Execution, Module, Status
    from toolkit.vm._code import Field, FunctionDefinition, StructDefinition
    from toolkit.vm._state import Read, StateValue
    from toolkit.wire import SignedTransaction
    from toolkit.wire._bcs_requests import EncodedScript
    from toolkit.wire._on_chain import Write

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
        found = self._code(address, name)
        return None if found is None else module_json(found[0], f"{address}::{name}")

    def _code(self, address: str, name: str) -> StateValue | None:
        return self._read(module_key(ModuleId(address_to_bytes(address), name)))

    def function(self, location: str, index: int) -> str:
        """Return the id of a function by its index in a module, as a node names it."""
        address, _, name = location.partition("::")
        found = self._code(address, name)
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
            f"the code of {name} is not bytecode that the machine reads ({error.message}); the contracts of an "
            "embedded node are a Python model, which only the process that has its Ledger can fork"
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


def transaction_json(
    signed: SignedTransaction, execution: Execution, abis: StateAbis, *, version: int, timestamp_us: int
) -> dict[str, Any]:
    """Return an execution as a node answers a simulation."""
    status = execution.status
    digest = hashlib.sha3_256(version.to_bytes(8, "little") + signed.to_bcs()).hexdigest()
    return {
        "type": "user_transaction",
        "version": str(version),
        "hash": f"0x{digest}",
        "gas_used": str(execution.gas_used),
        "success": status.success,
        "vm_status": status_text(status, abis),
        "timestamp": str(timestamp_us),
        **request_json(signed, lambda called: _arguments(called, abis)),
        "events": [one.to_json(value_json(one.data, parse_type_tag(one.type), abis)) for one in execution.events],
        "changes": [change for key, write in execution.writes.items() for change in _changes(key, write, abis)],
    }


def _arguments(called: EncodedEntryFunction | EncodedScript, abis: StateAbis) -> list[Any] | None:
    if not isinstance(called, EncodedEntryFunction):
        return None
    name = called.function
    module = abis.module_abi(name.address, name.module)
    function = None if module is None else module.function(name.name)
    if function is None or len(function.parameters) != len(called.arguments):
        return None
    tags = [substitute(tag, called.type_arguments) for tag in function.parameters]
    return [value_json(one, tag, abis) for one, tag in zip(called.arguments, tags, strict=True)]


def status_text(status: Status, abis: StateAbis) -> str:
    """Return a status in the words of a node."""
    match status.kind:
        case "success":
            return "Executed successfully"
        case "out_of_gas":
            return "Out of gas"
        case "abort":
            where = "Move abort" if status.location == "script" else f"Move abort in {status.location}"
            code = f"{status.code:#x}" if isinstance(status.code, int) else str(status.code)
            if status.reason is not None:
                return f"{where}: {status.reason}({code}): {status.description}"
            return f"{where}: code {code}" if status.location == "script" else f"{where}: {code}"
        case "execution_failure":
            where = status.location or "script"
            name = where if where == "script" else abis.function(where, status.function or 0)
            return f"Execution failed in {name} at code offset {status.offset}"
    return str(status.code)


def value_json(data: bytes, tag: TypeTag, abis: StateAbis) -> Any:
    """Return a value as JSON; its BCS in hex if it does not decode."""
    try:
        layout = abis.layout(tag)
        return encode_json(layout, decode_bcs(layout, data))
    except (InputError, SchemaError):
        return f"0x{data.hex()}"


def _changes(key: bytes, write: Write, abis: StateAbis) -> Iterator[dict[str, Any]]:
    """Yield the changes that a node lists for a write; a group has one for each of its members."""
    about = {"state_key_hash": key_hash(key)}
    kind, address, what = parse_key(key)
    verb = "delete" if write.value is None else "write"
    if kind is KeyKind.ITEM:
        item = {"handle": f"0x{address.hex()}", "key": f"0x{what.hex()}", "data": None}
        value = {} if write.value is None else {"value": f"0x{write.value.hex()}"}
        yield about | item | {"type": f"{verb}_table_item"} | value
        return
    about["address"] = address_from_bytes(address)
    about["type"] = f"{verb}_{'module' if kind is KeyKind.MODULE else 'resource'}"
    name = f"{about['address']}::{what}" if kind is KeyKind.MODULE else str(what)
    if write.value is None:
        yield about | {"module" if kind is KeyKind.MODULE else "resource": name}
        return
    if kind is KeyKind.MODULE:
        yield about | {"data": module_json(write.value, name)}
        return
    members = {name: write.value}
    if kind is KeyKind.GROUP:
        members = {str(read_struct_tag(Reader(tag))): data for tag, data in Group(write.value).members.items()}
    for tag, data in members.items():
        yield about | {"data": {"type": tag, "data": value_json(data, parse_type_tag(tag), abis)}}
