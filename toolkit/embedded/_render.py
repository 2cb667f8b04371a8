"""Render ledger records as JSON for the REST API, and simulated transactions as BCS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from toolkit.embedded._code import CodeSet, decode_group
from toolkit.embedded._contract import find_script
from toolkit.embedded._state import StateKey, VersionedState, state_key_bytes, state_key_hash
from toolkit.embedded._transaction import TransactionKind
from toolkit.embedded._vm_status import VmError
from toolkit.errors import ToolkitError
from toolkit.move import StructTag, decode_bcs, encode_json, parse_type_tag
from toolkit.move._ids import address_to_bytes, wire_address
from toolkit.move._type_tags import wire_type
from toolkit.wire._bcs_forms import TYPE_TAG, converted, encoded
from toolkit.wire._bcs_requests import EncodedScript
from toolkit.wire._on_chain import ExecutedTransaction, Write, executed_transaction, request_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolkit.embedded._chain import Chain
    from toolkit.embedded._session import TableTypes
    from toolkit.embedded._transaction import CommittedTransaction, Executable, LedgerBlock, Output, Transaction
    from toolkit.wire._on_chain import EmittedEvent


_ZERO_HASH = f"0x{'0' * 64}"
# Event root of a transaction without events, as public networks show it.
_NO_EVENTS = "0x414343554d554c41544f525f504c414345484f4c4445525f4841534800000000"


# Kinds whose transactions end with a checkpoint of the state.
_CHECKPOINTS = {TransactionKind.STATE_CHECKPOINT, TransactionKind.BLOCK_EPILOGUE, TransactionKind.GENESIS}
_SIMULATED = executed_transaction(converted(TYPE_TAG, wire_type, parse_type_tag))


def value_json(code: CodeSet, type_text: str, data: bytes) -> Any:
    """Return a stored value as JSON."""
    layout = code.layout(type_text)
    return encode_json(layout, decode_bcs(layout, data))


def resource_json(code: CodeSet, tag: str, data: bytes) -> dict[str, Any]:
    """Return a resource as ``{"type", "data"}``."""
    return {"type": wire_type(parse_type_tag(tag)), "data": value_json(code, tag, data)}


def module_json(code: CodeSet, address: str, name: str) -> dict[str, Any] | None:
    """Return a module as ``{"bytecode", "abi"}``, or None if it is not published."""
    definition = code.modules.get((address, name))
    if definition is None:
        return None
    return {"bytecode": f"0x{definition.bytecode.hex()}", "abi": code.abi_json(definition)}


def changes_json(code: CodeSet, output: Output, tables: Mapping[str, TableTypes]) -> list[dict[str, Any]]:
    """Return an output's writes as state changes; changes that cannot be rendered are left out, as on a node.

    Changes to table items are decoded if `tables` contains the table.
    """
    changes = []
    for key, value in sorted(output.writes.items(), key=lambda item: state_key_bytes(item[0])):
        try:
            changes += _change_json(code, key, None if value is None else value.data, tables.get(key.owner))
        except ToolkitError:
            continue
    return changes


def _change_json(code: CodeSet, key: StateKey, data: bytes | None, table: TableTypes | None) -> list[dict[str, Any]]:
    """Return the changes for one key; a written group has a change per member, with the group's address and hash."""
    key_hash, name = state_key_hash(key), str(key.name)
    if key.kind == "table":
        raw = {"handle": f"0x{address_to_bytes(key.owner).hex()}", "key": f"0x{key.item.hex()}"}
        raw |= {} if data is None else {"value": f"0x{data.hex()}"}
        decoded = None
        if table is not None:
            decoded = {"key": value_json(code, table.key, key.item), "key_type": table.key}
            if data is not None:
                decoded |= {"value": value_json(code, table.value, data), "value_type": table.value}
        kind = "delete_table_item" if data is None else "write_table_item"
        return [{"state_key_hash": key_hash, **raw, "data": decoded, "type": kind}]
    shared = {"address": wire_address(key.owner), "state_key_hash": key_hash}
    if key.kind == "module":
        if data is None:
            return [shared | {"module": f"{wire_address(key.owner)}::{name}", "type": "delete_module"}]
        found = module_json(code, key.owner, name) or {}
        return [shared | {"data": {**found, "bytecode": f"0x{data.hex()}"}, "type": "write_module"}]
    if data is None:
        return [shared | {"resource": wire_type(parse_type_tag(name)), "type": "delete_resource"}]
    members = {name: data} if key.kind == "resource" else decode_group(data)
    tags = sorted(members, key=_member_order)
    return [shared | {"data": resource_json(code, tag, members[tag]), "type": "write_resource"} for tag in tags]


def _member_order(tag: str) -> tuple[bytes, str, str, str]:
    """Return the sort key for the members of a group in JSON; in BCS, members are sorted by their bytes."""
    parsed = parse_type_tag(tag)
    if not isinstance(parsed, StructTag):
        return b"", "", "", tag
    return address_to_bytes(parsed.address), parsed.module, parsed.name, tag


def events_json(code: CodeSet, events: Iterable[EmittedEvent]) -> list[dict[str, Any]]:
    """Return events."""
    return [event.to_json(value_json(code, event.type, event.data)) for event in events]


def _request_json(code: CodeSet, request: Transaction) -> dict[str, Any]:
    def arguments(executable: Executable) -> list[Any] | None:
        """Return arguments decoded with the call's signature, or None if they do not match it."""
        try:
            if not isinstance(executable, EncodedScript):
                wanted, given = executable.function, executable.arguments
                bound = code.function(wanted.address, wanted.module, wanted.name, executable.type_arguments)
            elif (known := find_script(executable.code)) is not None:
                bound = code.script(known.function, executable.type_arguments)
                given = tuple(argument.to_bcs() for argument in executable.arguments)
            else:
                return None
            pairs = zip(bound.parameters, given, strict=True)
            return [encode_json(layout, decode_bcs(layout, data)) for layout, data in pairs]
        except (VmError, ValueError):
            return None

    def script_abi(bytecode: bytes) -> dict[str, Any] | None:
        known = find_script(bytecode)
        return None if known is None else known.abi

    return request_json(request.signed, arguments, script_abi)


def simulation_json(chain: Chain, request: Transaction, output: Output, version: int) -> dict[str, Any]:
    """Return a simulated transaction: like a committed transaction, but without state hashes and ``type``.

    Changes are decoded only in tables that exist on the ledger, not in tables that the transaction creates.
    """
    code = chain.code_at(version)
    return {
        **_outcome_json(chain, version, request.hash, output),
        **_request_json(code, request),
        "events": events_json(code, output.events),
        "timestamp": str(chain.transaction(version).timestamp_us),
    }


def transaction_json(chain: Chain, transaction: CommittedTransaction) -> msgspec.Raw:
    """Return a committed transaction."""
    rendered = chain.rendered.get(transaction.version)
    if rendered is None:
        rendered = msgspec.Raw(msgspec.json.encode(_committed_json(chain, transaction)))
        chain.rendered[transaction.version] = rendered
    return rendered


def _committed_json(chain: Chain, transaction: CommittedTransaction) -> dict[str, Any]:
    version, kind = transaction.version, transaction.kind
    code = chain.code_at(version)
    events = events_json(code, transaction.output.events)

    def hash_of(label: str) -> str:
        return f"0x{chain.digest(label, version).hex()}"

    answer = _outcome_json(chain, version, transaction.hash, transaction.output)
    answer |= {
        "state_change_hash": hash_of("changes"),
        "event_root_hash": hash_of("events") if events else _NO_EVENTS,
        "state_checkpoint_hash": hash_of("state") if kind in _CHECKPOINTS else None,
        "accumulator_root_hash": hash_of("accumulator"),
    }
    if transaction.request is not None:
        answer |= {**_request_json(code, transaction.request), "events": events}
    elif kind == TransactionKind.BLOCK_METADATA:
        block = chain.block_of(version)
        answer |= {
            "id": block.hash,
            "epoch": str(block.epoch),
            "round": str(block.height),
            "events": events,
            "previous_block_votes_bitvec": [128],
            "proposer": wire_address(f"0x{chain.digest('proposer', block.height % 4).hex()}"),
            "failed_proposer_indices": [],
        }
    elif kind == TransactionKind.GENESIS:
        write_set = {"changes": answer["changes"], "events": events, "type": "direct_write_set"}
        answer |= {"payload": {"write_set": write_set, "type": "write_set_payload"}, "events": events}
    if kind != TransactionKind.GENESIS:
        answer["timestamp"] = str(transaction.timestamp_us)
    if kind == TransactionKind.BLOCK_EPILOGUE:
        answer["block_end_info"] = {
            "block_gas_limit_reached": False,
            "block_output_limit_reached": False,
            "block_effective_block_gas_units": 0,
            "block_approx_output_size": 0,
        }
    return answer | {"type": kind}


def block_json(chain: Chain, block: LedgerBlock, *, with_transactions: bool) -> dict[str, Any]:
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


def _outcome_json(chain: Chain, version: int, hash_: str, output: Output) -> dict[str, Any]:
    """Return the fields that all transactions have; hashes are zeros, as in a simulation."""
    return {
        "version": str(version),
        "hash": hash_,
        "state_change_hash": _ZERO_HASH,
        "event_root_hash": _ZERO_HASH,
        "state_checkpoint_hash": None,
        "gas_used": str(output.charges.total_charge_gas_units),
        "success": output.success,
        "vm_status": output.vm_status,
        "accumulator_root_hash": _ZERO_HASH,
        "changes": changes_json(chain.code_at(version), output, chain.tables),
    }


def simulation_bcs(request: Transaction, output: Output, *, state: VersionedState, version: int) -> bytes:
    """Return a simulated transaction in BCS: a single ``TransactionOnChainData``, not a vector.

    Parameters
    ----------
    request : Transaction
        The simulated transaction.
    output : Output
        Output of the simulation.
    state : VersionedState
        State before the simulation, which shows whether a write creates or modifies a value.
    version : int
        Ledger version of the simulation.

    Notes
    -----
    Written values have no metadata; public networks store there when a slot was created.
    """
    writes: dict[bytes, Write] = {}
    for key, value in output.writes.items():
        operation = "create" if state.read(key, version) is None else "modify"
        writes[state_key_bytes(key)] = Write("delete", None) if value is None else Write(operation, value.data)
    simulated = ExecutedTransaction(
        version=version,
        signed=request.signed,
        gas_used=output.charges.total_charge_gas_units,
        status=output.status,
        transaction_hash=bytes.fromhex(request.hash[2:]),
        events=output.events,
        writes=writes,
    )
    return encoded(_SIMULATED, simulated)
