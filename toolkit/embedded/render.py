"""Ledger records as the JSON of the wire: transactions, changes, events, blocks, resources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.embedded.state import state_key_hash
from toolkit.errors import ToolkitError
from toolkit.move import address_to_bytes, parse_type_tag, wire_address, wire_type
from toolkit.move.bcs import decode_bcs
from toolkit.move.values import encode_json

if TYPE_CHECKING:
    from toolkit.embedded.chain import Chain
    from toolkit.embedded.code import CodeSet
    from toolkit.embedded.session import EmittedEvent
    from toolkit.embedded.state import StateKey
    from toolkit.embedded.transaction import Block, CommittedTransaction, EntryCall, Output, Transaction

__all__ = [
    "block_json",
    "changes_json",
    "events_json",
    "module_json",
    "payload_json",
    "resource_json",
    "simulation_json",
    "transaction_json",
    "value_json",
]

_ZERO_HASH = f"0x{'0' * 64}"
_U64_MAX = 2**64 - 1
# What the accumulator holds where nothing was emitted, as public networks show it.
_NO_EVENTS = "0x414343554d554c41544f525f504c414345484f4c4445525f4841534800000000"


def value_json(code: CodeSet, type_text: str, data: bytes) -> Any:
    """Return a stored value as JSON."""
    layout = code.layout(type_text)
    return encode_json(layout, decode_bcs(layout, data))


def resource_json(code: CodeSet, tag: str, data: bytes) -> dict[str, Any]:
    """Return a resource as ``{"type", "data"}``."""
    return {"type": wire_type(parse_type_tag(tag)), "data": value_json(code, tag, data)}


def module_json(code: CodeSet, address: str, name: str) -> dict[str, Any] | None:
    """Return a module as ``{"bytecode", "abi"}``, or None where it is not published."""
    definition = code.modules.get((address, name))
    if definition is None:
        return None
    return {"bytecode": f"0x{definition.bytecode.hex()}", "abi": definition.abi_json}


def changes_json(code: CodeSet, output: Output) -> list[dict[str, Any]]:
    """Return an output's writes as state changes; one that cannot be rendered is left out, as a node does."""
    changes = []
    for key, value in output.writes.items():
        try:
            changes.append(_change_json(code, key, None if value is None else value.data))
        except ToolkitError:
            continue
    return changes


def _change_json(code: CodeSet, key: StateKey, data: bytes | None) -> dict[str, Any]:
    verb = "delete" if data is None else "write"
    key_hash = state_key_hash(key)
    if key.kind == "table":
        change: dict[str, Any] = {
            "state_key_hash": key_hash,
            "handle": f"0x{address_to_bytes(key.owner).hex()}",
            "key": f"0x{key.name.hex()}",  # type: ignore[union-attr]  # a table key is bytes
        }
        if data is not None:
            change["value"] = f"0x{data.hex()}"
        return change | {"data": None, "type": f"{verb}_table_item"}
    change = {"address": wire_address(key.owner), "state_key_hash": key_hash}
    name = str(key.name)
    if key.kind == "module":
        if data is None:
            change["module"] = f"{wire_address(key.owner)}::{name}"
        else:
            change["data"] = {**(module_json(code, key.owner, name) or {}), "bytecode": f"0x{data.hex()}"}
        return change | {"type": f"{verb}_module"}
    if data is None:
        change["resource"] = wire_type(parse_type_tag(name))
    else:
        change["data"] = resource_json(code, name, data)
    return change | {"type": f"{verb}_resource"}


def events_json(code: CodeSet, events: tuple[EmittedEvent, ...]) -> list[dict[str, Any]]:
    """Return events; all are of the newer kind, which has no handle."""
    return [
        {
            "guid": {"creation_number": "0", "account_address": "0x0"},
            "sequence_number": "0",
            "type": event.type,
            "data": value_json(code, event.type, event.data),
        }
        for event in events
    ]


def payload_json(code: CodeSet, call: EntryCall) -> dict[str, Any]:
    """Return a call; arguments that do not fit the function are shown as BCS."""
    return {
        "function": f"{wire_address(call.address)}::{call.module}::{call.function}",
        "type_arguments": [wire_type(argument) for argument in call.type_arguments],
        "arguments": _arguments_json(code, call),
        "type": "entry_function_payload",
    }


def _arguments_json(code: CodeSet, call: EntryCall) -> list[Any]:
    try:
        function = code.function(call.address, call.module, call.function, call.type_arguments)
        return [
            encode_json(layout, decode_bcs(layout, data))
            for layout, data in zip(function.parameters, call.arguments, strict=True)
        ]
    except Exception:  # noqa: BLE001 - a node prints the bytes whatever the reason
        return [f"0x{data.hex()}" for data in call.arguments]


def simulation_json(
    code: CodeSet, request: Transaction, output: Output, *, version: int, hash_: str, timestamp_us: int
) -> dict[str, Any]:
    """Return a simulated transaction: what a committed one has, without hashes of state and without ``type``."""
    return {
        "version": str(version),
        "hash": hash_,
        "state_change_hash": _ZERO_HASH,
        "event_root_hash": _ZERO_HASH,
        "state_checkpoint_hash": None,
        **_outcome_json(code, output, _ZERO_HASH),
        **_request_json(code, request),
        "events": events_json(code, output.events),
        "timestamp": str(timestamp_us),
    }


def transaction_json(chain: Chain, transaction: CommittedTransaction) -> dict[str, Any]:
    """Return a committed transaction."""
    version = transaction.version
    code = chain.code_at(version)
    checkpoint = transaction.kind in {
        "state_checkpoint_transaction",
        "block_epilogue_transaction",
        "genesis_transaction",
    }
    events = transaction.output.events
    answer = {
        "version": str(version),
        "hash": transaction.hash,
        "state_change_hash": _hash(chain, "changes", version),
        "event_root_hash": _hash(chain, "events", version) if events else _NO_EVENTS,
        "state_checkpoint_hash": _hash(chain, "state", version) if checkpoint else None,
        **_outcome_json(code, transaction.output, _hash(chain, "accumulator", version)),
    }
    if transaction.request is not None:
        answer |= _request_json(code, transaction.request)
        answer["events"] = events_json(code, events)
    elif transaction.kind == "block_metadata_transaction":
        answer |= _metadata_json(chain.block_of(version))
        answer["events"] = events_json(code, events)
        answer |= {
            "previous_block_votes_bitvec": [128],
            "proposer": wire_address(f"0x{chain.digest('proposer', chain.block_of(version).height % 4).hex()}"),
            "failed_proposer_indices": [],
        }
    elif transaction.kind == "genesis_transaction":
        write_set = {"changes": answer["changes"], "events": events_json(code, events), "type": "direct_write_set"}
        answer["payload"] = {"write_set": write_set, "type": "write_set_payload"}
        answer["events"] = events_json(code, events)
    if transaction.kind != "genesis_transaction":
        answer["timestamp"] = str(transaction.timestamp_us)
    if transaction.kind == "block_epilogue_transaction":
        answer["block_end_info"] = {
            "block_gas_limit_reached": False,
            "block_output_limit_reached": False,
            "block_effective_block_gas_units": 0,
            "block_approx_output_size": 0,
        }
    answer["type"] = transaction.kind
    return answer


def block_json(chain: Chain, block: Block, *, with_transactions: bool) -> dict[str, Any]:
    """Return a block."""
    transactions = None
    if with_transactions:
        versions = range(block.first_version, block.last_version + 1)
        transactions = [transaction_json(chain, chain.transaction(version)) for version in versions]
    return {
        "block_height": str(block.height),
        "block_hash": block.hash,
        "block_timestamp": str(block.timestamp_us),
        "first_version": str(block.first_version),
        "last_version": str(block.last_version),
        "transactions": transactions,
    }


def _outcome_json(code: CodeSet, output: Output, accumulator_root_hash: str) -> dict[str, Any]:
    return {
        "gas_used": str(output.charges.total_charge_gas_units),
        "success": output.success,
        "vm_status": output.vm_status,
        "accumulator_root_hash": accumulator_root_hash,
        "changes": changes_json(code, output),
    }


def _request_json(code: CodeSet, request: Transaction) -> dict[str, Any]:
    nonce = request.replay_protection_nonce
    return {
        "sender": wire_address(request.sender),
        "sequence_number": str(request.sequence_number if nonce is None else _U64_MAX),
        "max_gas_amount": str(request.max_gas_amount),
        "gas_unit_price": str(request.gas_unit_price),
        "expiration_timestamp_secs": str(request.expiration_timestamp_secs),
        "payload": request.payload_json or payload_json(code, request.payload),
        "signature": request.signature,
        "replay_protection_nonce": None if nonce is None else str(nonce),
    }


def _metadata_json(block: Block) -> dict[str, Any]:
    return {"id": block.hash, "epoch": str(block.epoch), "round": str(block.height)}


def _hash(chain: Chain, label: str, version: int) -> str:
    return f"0x{chain.digest(label, version).hex()}"
