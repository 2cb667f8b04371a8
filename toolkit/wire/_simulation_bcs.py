"""Answers of simulations in BCS, as the JSON that nodes print for the same transaction.

BCS has values without types, which come from the modules' ABIs, and no rendered text: decoded table data is null, a
written module has no ABI but its name, and the text of a failed instruction has the function's number, not its name.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec

from toolkit.errors import SchemaError
from toolkit.move import StructTag, decode_bcs, encode_json
from toolkit.move._bcs import Reader, read_type_tag
from toolkit.move._codecs import is_closed
from toolkit.move._ids import wire_address
from toolkit.move._type_tags import wire_type
from toolkit.wire._bcs_forms import ADDRESS, STRING, TYPE_TAG, read_index, record, sequence
from toolkit.wire._bcs_payloads import (
    EncodedEntryFunction,
    EncodedMultisig,
    EncodedPayloadV2,
    EncodedScript,
    ScriptArgument,
)
from toolkit.wire._bcs_requests import RAW_TRANSACTION
from toolkit.wire._gas import FEE_STATEMENT, FeeStatementTexts
from toolkit.wire._signatures import SIGNATURE
from toolkit.wire._transaction_decoding import decode_simulation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolkit.move import Layout, TypeTag
    from toolkit.wire._transactions import UserTransaction

    ArgumentLayouts = Callable[[EncodedEntryFunction], Sequence[Layout] | None]


_STRUCT_TAG = record(StructTag, address=ADDRESS, module=STRING, name=STRING, type_arguments=sequence(TYPE_TAG))
_STATE_KEY_SALT = hashlib.sha3_256(b"APTOS::StateKey").digest()
_SINGLE_SENDER = 4  # index of the transaction authenticator
_HASH_BYTES = 32  # of SHA3-256
# VM status numbers by name, the values of ``vm_error_code``; others are printed as a number.
VM_STATUS_CODES = {
    "INVALID_SIGNATURE": 1,
    "INVALID_AUTH_KEY": 2,
    "SEQUENCE_NUMBER_TOO_OLD": 3,
    "SEQUENCE_NUMBER_TOO_NEW": 4,
    "INSUFFICIENT_BALANCE_FOR_TRANSACTION_FEE": 5,
    "TRANSACTION_EXPIRED": 6,
    "SENDING_ACCOUNT_DOES_NOT_EXIST": 7,
    "EXCEEDED_MAX_TRANSACTION_SIZE": 10,
    "MAX_GAS_UNITS_EXCEEDS_MAX_GAS_UNITS_BOUND": 13,
    "MAX_GAS_UNITS_BELOW_MIN_TRANSACTION_GAS_UNITS": 14,
    "GAS_UNIT_PRICE_BELOW_MIN_BOUND": 15,
    "GAS_UNIT_PRICE_ABOVE_MAX_BOUND": 16,
    "BAD_CHAIN_ID": 23,
    "SEQUENCE_NUMBER_TOO_BIG": 24,
    "MULTISIG_TRANSACTION_NOT_FOUND": 33,
    "MULTISIG_TRANSACTION_INSUFFICIENT_APPROVALS": 34,
    "MULTISIG_TRANSACTION_PAYLOAD_DOES_NOT_MATCH_HASH": 35,
    "GAS_PAYER_ACCOUNT_MISSING": 36,
    "MULTISIG_TRANSACTION_PAYLOAD_DOES_NOT_MATCH": 40,
    "NONCE_ALREADY_USED": 42,
    "INVALID_MAIN_FUNCTION_SIGNATURE": 1011,
    "CONSTRAINT_NOT_SATISFIED": 1075,
    "NUMBER_OF_TYPE_ARGUMENTS_MISMATCH": 1076,
    "LINKER_ERROR": 1081,
    "FUNCTION_RESOLUTION_FAILURE": 1091,
    "NUMBER_OF_ARGUMENTS_MISMATCH": 1098,
    "NUMBER_OF_SIGNER_ARGUMENTS_MISMATCH": 1099,
    "FAILED_TO_DESERIALIZE_ARGUMENT": 1100,
    "TYPE_RESOLUTION_FAILURE": 2021,
    "OUT_OF_GAS": 4002,
    "RESOURCE_ALREADY_EXISTS": 4004,
    "MISSING_DATA": 4008,
    "ABORTED": 4016,
    "ARITHMETIC_ERROR": 4017,
    "VECTOR_OPERATION_ERROR": 4018,
    "EXECUTION_STACK_OVERFLOW": 4020,
    "EXECUTION_LIMIT_REACHED": 4030,
    "IO_LIMIT_REACHED": 4031,
    "STORAGE_LIMIT_REACHED": 4032,
}

_STATUS_NAMES = {code: name for name, code in VM_STATUS_CODES.items()}


def decode_simulation_bcs(
    data: bytes,
    *,
    layout_of: Callable[[TypeTag], Layout],
    argument_layouts: ArgumentLayouts,
    timestamp_us: int | None = None,
) -> UserTransaction:
    """Decode the answer of a simulation in BCS, one ``TransactionOnChainData``.

    Parameters
    ----------
    data : bytes
    layout_of : callable
        Returns the layout of an event or resource type at the version of the simulation. ``data`` is null if the layout
        of its type is only partly known.
    argument_layouts : callable
        Returns the layouts of the parameters of a call, or None if they are not known; arguments are then BCS bytes as
        hex.
    timestamp_us : int, optional
        Time of the version in microseconds; the BCS form does not contain it.

    Returns
    -------
    UserTransaction
        As `decode_simulation` returns it for the JSON answer.

    Raises
    ------
    SchemaError
        If the data is not a simulated transaction, or a value does not fit its type.
    """
    reader, types = Reader(data), _Values(layout_of)
    version = reader.u64()
    read_index(reader, 1, "transaction")
    fields = {"version": str(version)} | _submitted(reader, argument_layouts)
    fields |= _info(reader)
    fields["events"] = [_event(reader, types) for _ in range(reader.length())]
    reader.fixed(_HASH_BYTES)  # root hash of the accumulator
    read_index(reader, 1, "write set")
    fields["changes"] = [change for _ in range(reader.length()) for change in _changes(reader, types)]
    reader.end()
    fields["timestamp"] = None if timestamp_us is None else str(timestamp_us)
    (transaction,) = decode_simulation(msgspec.json.encode(fields))
    return transaction


class _Values:
    """Values in BCS as JSON."""

    def __init__(self, layout_of: Callable[[TypeTag], Layout]) -> None:
        self._layout_of = layout_of

    def json(self, tag: TypeTag, data: bytes) -> Any:
        """Return a value as JSON; None if its type is not known entirely."""
        name = wire_type(tag)
        if name == FEE_STATEMENT:  # known also if the node does not offer modules
            reader = Reader(data)
            fees = {field: str(reader.u64()) for field in FeeStatementTexts.__struct_fields__}
            reader.end()
            return fees
        layout = self._layout_of(tag)
        return encode_json(layout, decode_bcs(layout, data, where=name)) if is_closed(layout) else None


def _submitted(reader: Reader, argument_layouts: ArgumentLayouts) -> dict[str, Any]:
    raw = RAW_TRANSACTION.read(reader)
    single = reader.data[reader.position : reader.position + 1] == bytes((_SINGLE_SENDER,))
    signature = SIGNATURE.read(reader).to_wire()
    if single:  # the JSON of nodes has one `type` for this signature and the account's in it
        signature["type"] = "single_sender"
    payload, nonce = _payload(raw.payload, argument_layouts)
    return {
        "sender": wire_address(raw.sender),
        "sequence_number": str(raw.sequence_number),
        "max_gas_amount": str(raw.max_gas_amount),
        "gas_unit_price": str(raw.gas_unit_price),
        "expiration_timestamp_secs": str(raw.expiration_timestamp_secs),
        "payload": payload,
        "signature": signature,
        "replay_protection_nonce": nonce,
    }


def _payload(payload: Any, argument_layouts: ArgumentLayouts) -> tuple[dict[str, Any], str | None]:
    """Return a payload as JSON, and its nonce."""
    match payload:
        case EncodedPayloadV2(executable, address, nonce):
            inner = executable if address is None else EncodedMultisig(address, executable)
            return _payload(inner, argument_layouts)[0], None if nonce is None else str(nonce)
        case EncodedMultisig(address, inner):
            ran = None if inner is None else _payload(inner, argument_layouts)[0]
            multisig = {"type": "multisig_payload", "multisig_address": wire_address(address)}
            return multisig | {"transaction_payload": ran}, None
        case EncodedEntryFunction(function, tags, arguments):
            layouts = argument_layouts(payload)
            if layouts is None or len(layouts) != len(arguments) or not all(map(is_closed, layouts)):
                shown = ["0x" + one.hex() for one in arguments]
            else:
                pairs = zip(layouts, arguments, strict=True)
                shown = [encode_json(layout, decode_bcs(layout, data)) for layout, data in pairs]
            called = {"type": "entry_function_payload", "function": function.wire}
            return called | {"type_arguments": [wire_type(tag) for tag in tags], "arguments": shown}, None
        case EncodedScript(code, tags, arguments):
            script = {"type": "script_payload", "code": {"bytecode": "0x" + code.hex(), "abi": None}}
            shown = [script_argument_json(one) for one in arguments]
            return script | {"type_arguments": [wire_type(tag) for tag in tags], "arguments": shown}, None
    raise SchemaError(f"a simulated transaction cannot have the payload {type(payload).__name__}")


def script_argument_json(argument: ScriptArgument) -> Any:
    """Return a script's argument, by its own kind because a script has no ABI."""
    value = argument.value
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if argument.kind == "address":
        return wire_address(value)
    return str(value) if argument.kind not in {"u8", "u16", "u32", "i8", "i16", "i32", "bool"} else value


def _info(reader: Reader) -> dict[str, Any]:
    read_index(reader, 1, "transaction info")
    gas_used = reader.u64()
    success, status = _status(reader)
    transaction_hash = reader.fixed(_HASH_BYTES)
    reader.fixed(2 * _HASH_BYTES)  # event root and state change
    for _ in ("state checkpoint", "auxiliary info"):
        if reader.bool():
            reader.fixed(_HASH_BYTES)
    return {
        "hash": "0x" + transaction_hash.hex(),
        "gas_used": str(gas_used),
        "success": success,
        "vm_status": status,
    }


def _status(reader: Reader) -> tuple[bool, str]:  # noqa: PLR0911  # one case per kind of status
    """Return whether execution succeeded, and the status in the words of the JSON answer."""
    match read_index(reader, 5, "execution status"):
        case 0:
            return True, "Executed successfully"
        case 1:
            return False, "Out of gas"
        case 2:
            module, code = _location(reader), reader.u64()
            where = f"Move abort in {module}: " if module else "Move abort: code "
            if not reader.bool():
                return False, f"{where}{code:#x}"
            name, description = reader.string(), reader.string()
            return False, f"{where}{name}({code:#x}): {description}"
        case 3:
            module, function, offset = _location(reader), reader.u16(), reader.u16()
            where = f"{module} (function {function})" if module else "script"
            return False, f"Execution failed in {where} at code offset {offset}"
    if not reader.bool():
        return False, "Execution failed with miscellaneous error and no status code"
    code = reader.u64()
    return False, _STATUS_NAMES.get(code, f"status code {code}")


def _location(reader: Reader) -> str | None:
    """Return the module of a failure; None for a script."""
    script = read_index(reader, 2, "abort location")
    return None if script else f"{wire_address(reader.address())}::{reader.string()}"


def _event(reader: Reader, types: _Values) -> dict[str, Any]:
    number, address, place = 0, "0x0", 0
    if read_index(reader, 2, "event version") == 0:
        number, address, place = reader.u64(), wire_address(reader.address()), reader.u64()
    tag = read_type_tag(reader)
    return {
        "guid": {"creation_number": str(number), "account_address": address},
        "sequence_number": str(place),
        "type": wire_type(tag),
        "data": types.json(tag, reader.bytes()),
    }


def _changes(reader: Reader, types: _Values) -> list[dict[str, Any]]:
    """Return what one write of the write set changes: several resources if it is a group."""
    start = reader.position
    variant = read_index(reader, 3, "state key")
    if variant == 0:
        address, path = reader.address(), reader.bytes()
        key_hash = _key_hash(reader.data[start : reader.position])
        return _account_changes(wire_address(address), key_hash, path, _written(reader), types)
    if variant == 1:
        handle, key = reader.fixed(32), reader.bytes()
        change: dict[str, Any] = {"state_key_hash": _key_hash(b"\x01" + handle + key), "handle": "0x" + handle.hex()}
        change |= {"key": "0x" + key.hex(), "data": None}
        value = _written(reader)
        if value is None:
            return [change | {"type": "delete_table_item"}]
        return [change | {"type": "write_table_item", "value": "0x" + value.hex()}]
    reader.bytes()  # a raw key, which the JSON answer leaves out
    _written(reader)
    return []


def _account_changes(
    address: str, key_hash: str, path: bytes, value: bytes | None, types: _Values
) -> list[dict[str, Any]]:
    inner = Reader(path)
    place = {"address": address, "state_key_hash": key_hash}
    variant = inner.uleb128()
    if variant == 0:
        module = f"{wire_address(inner.address())}::{inner.string()}"
        inner.end()
        if value is None:
            return [place | {"type": "delete_module", "module": module}]
        code = {"bytecode": "0x" + value.hex(), "abi": {"name": module.partition("::")[2]}}
        return [place | {"type": "write_module", "data": code}]
    if variant not in {1, 2}:
        raise SchemaError(f"unknown path {variant} of a state key")
    tag = _STRUCT_TAG.read(inner)
    inner.end()
    if value is None:
        return [place | {"type": "delete_resource", "resource": wire_type(tag)}]
    if variant == 1:
        members = [(tag, value)]
    else:
        group = Reader(value)
        members = [(_STRUCT_TAG.read(group), group.bytes()) for _ in range(group.length())]
        group.end()
        members.sort(key=lambda member: _order(member[0]))
    return [
        place | {"type": "write_resource", "data": {"type": wire_type(one), "data": types.json(one, data)}}
        for one, data in members
    ]


def _order(tag: StructTag) -> tuple[str, ...]:
    """Return the key by which JSON sorts the members of a group; BCS sorts them by their bytes."""
    return tag.address, tag.module, tag.name, str(tag)


def _written(reader: Reader) -> bytes | None:
    """Return what a write operation writes; None if it deletes."""
    variant = read_index(reader, 6, "write operation")
    data = None if variant in {2, 5} else reader.bytes()
    if variant > 2:  # noqa: PLR2004  # with metadata
        metadata = read_index(reader, 2, "metadata of a state value")
        reader.fixed(8 * (2 + metadata))  # deposits and time of creation
    return data


def _key_hash(key: bytes) -> str:
    return "0x" + hashlib.sha3_256(_STATE_KEY_SALT + key).hexdigest()
