"""The slow and obvious way from JSON to the same columns, with nothing of the package in it: what rows are checked by."""

from __future__ import annotations

import json
import re
from typing import Any

FEE_PARTS = (
    "total_charge_gas_units",
    "execution_gas_units",
    "io_gas_units",
    "storage_fee_octas",
    "storage_fee_refund_octas",
)
JSON_COLUMNS = frozenset({"payload", "data", "raw", "arguments", "block_end_info", "details"})
"""Columns of JSON text: compared as values, since the wire's own spacing is kept."""


def walk(body: bytes | str) -> tuple[dict[str, list[Any]], dict[str, list[Any]], dict[str, list[Any]]]:
    """Return the columns of transactions, changes and events; JSON columns hold parsed values."""
    parsed = json.loads(body)
    transactions: dict[str, list[Any]] = {}
    changes: dict[str, list[Any]] = {}
    events: dict[str, list[Any]] = {}
    for index, transaction in enumerate(parsed if isinstance(parsed, list) else [parsed]):
        _add(transactions, _transaction(transaction))
        version = _number(transaction.get("version"))
        for place, change in enumerate(transaction.get("changes", [])):
            _add(changes, {"transaction_index": index, "version": version, "change_index": place} | _change(change))
        for place, event in enumerate(transaction.get("events", [])):
            _add(events, {"transaction_index": index, "version": version, "event_index": place} | _event(event))
    return transactions, changes, events


def _add(columns: dict[str, list[Any]], row: dict[str, Any]) -> None:
    for name, value in row.items():
        columns.setdefault(name, []).append(value)


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


def address(text: str | None) -> str | None:
    """Spell an address as AIP-40 does."""
    if text is None:
        return None
    value = int(text, 16)
    return f"0x{value:x}" if value < 16 else f"0x{value:064x}"


def type_text(text: str | None) -> str | None:
    """Spell every address in a type, module or function text as AIP-40 does."""
    if text is None:
        return None
    return re.sub(r"0x[0-9a-fA-F]+(?=::)", lambda match: str(address(match[0])), text)


def _transaction(transaction: dict[str, Any]) -> dict[str, Any]:
    kind = transaction.get("type", "user_transaction")
    submitted = kind in ("user_transaction", "pending_transaction")
    payload = transaction.get("payload") or {}
    events = transaction.get("events", [])
    fees = [event["data"] for event in events if event["type"] == "0x1::transaction_fee::FeeStatement"]
    fee = fees[-1] if fees and submitted else {}
    signature = transaction.get("signature") or {}
    others = signature.get("secondary_signer_addresses")
    call = payload
    while inner := call.get("decrypted_payload") or call.get("transaction_payload"):
        call = inner
    types = call.get("type_arguments") if submitted else None
    known = {"id", "previous_block_votes_bitvec", "failed_proposer_indices"} & transaction.keys()
    return {
        "version": _number(transaction.get("version")),
        "hash": transaction["hash"],
        "type": kind,
        "success": transaction.get("success"),
        "chain_success": transaction.get("success"),
        "vm_status": transaction.get("vm_status"),
        "abort": _abort_code(transaction.get("vm_status") if submitted else None),
        "gas_used": _number(transaction.get("gas_used")),
        "sender": address(transaction.get("sender")),
        "fee_payer": address((transaction.get("signature") or {}).get("fee_payer_address")),
        "secondary_signers": ", ".join(map(address, others)) if others else None,
        "sequence_number": _number(transaction.get("sequence_number")),
        "max_gas_amount": _number(transaction.get("max_gas_amount")),
        "gas_unit_price": _number(transaction.get("gas_unit_price")),
        "expiration_timestamp_secs": _number(transaction.get("expiration_timestamp_secs")),
        "replay_protection_nonce": _number(transaction.get("replay_protection_nonce")),
        "function": type_text(call.get("function")),
        "type_arguments": None if types is None else ", ".join(map(type_text, types)),
        "arguments": call.get("arguments") if submitted else None,
        "payload_type": payload.get("type"),
        "payload": transaction.get("payload"),
        "signature_type": signature.get("type"),
        "key_type": _key_type(signature),
        "timestamp_us": _number(transaction.get("timestamp")),
        "epoch": _number(transaction.get("epoch")),
        "round": _number(transaction.get("round")),
        "proposer": address(transaction.get("proposer")),
        "block_end_info": transaction.get("block_end_info"),
        "details": {name: transaction[name] for name in sorted(known)} or None,
        "changes": len(transaction.get("changes", [])),
        "events": len(events),
        **{part: _number(fee.get(part)) for part in FEE_PARTS},
        "raw": None,
        "problem": None,
    }


def _abort_code(status: str | None) -> int | None:
    found = re.search(r"Move abort[^\n]*?(?:\(|: |code )0x([0-9a-fA-F]+)", status or "")
    return found and int(found[1], 16)


def _key_type(signature: dict[str, Any]) -> str | None:
    """Return the kind of the sender's key."""
    sender = signature.get("sender") or signature
    if "function_info" in sender:
        return "abstract"
    if "public_keys" in sender:
        return "multi_ed25519" if sender["type"] == "multi_ed25519_signature" else "multi_key"
    key = sender.get("public_key")
    return key["type"] if isinstance(key, dict) else key and "ed25519"


def _change(change: dict[str, Any]) -> dict[str, Any]:
    data = change.get("data")
    kind = change["type"]
    resource = change.get("resource")
    module = type_text(change.get("module"))
    item = data if isinstance(data, dict) and kind.endswith("_table_item") else {}
    if kind == "write_resource":
        resource, data = data["type"], data["data"]
    if kind == "write_module" and data["abi"] is not None:
        module = f"{address(change['address'])}::{data['abi']['name']}"
    handle = change.get("handle")
    return {
        "type": kind,
        "address": address(change.get("address")),
        "state_key_hash": change["state_key_hash"],
        "resource_type": type_text(resource),
        "module": module,
        "handle": None if handle is None else f"0x{int(handle, 16):064x}",
        "key": bytes.fromhex(change["key"][2:]) if "key" in change else None,
        "value": bytes.fromhex(change["value"][2:]) if "value" in change else None,
        "key_type": type_text(item.get("key_type")),
        "value_type": type_text(item.get("value_type")),
        "data": data,
    }


def _event(event: dict[str, Any]) -> dict[str, Any]:
    if "guid" in event:
        owner, number = event["guid"]["account_address"], int(event["guid"]["creation_number"])
    else:
        key = bytes.fromhex(event["key"][2:])
        owner, number = "0x" + key[8:].hex(), int.from_bytes(key[:8], "little")
    return {
        "type": type_text(event["type"]),
        "account_address": address(owner),
        "creation_number": number,
        "sequence_number": int(event["sequence_number"]),
        "data": event["data"],
    }


def differences(rows: tuple[Any, ...], body: bytes | str) -> list[str]:
    """Return what differs between decoded rows and the walk, cell by cell; empty where all are equal."""
    found = []
    for name, columns, expected in zip(("transactions", "changes", "events"), rows, walk(body), strict=True):
        for column, values in columns.items():
            wanted = expected.get(column, [])
            if len(values) != len(wanted):
                found.append(f"{name}.{column}: {len(values)} rows, expected {len(wanted)}")
                continue
            for row, (value, want) in enumerate(zip(values, wanted, strict=True)):
                got = json.loads(value) if column in JSON_COLUMNS and value is not None else value
                got = got.code if column == "abort" and got is not None else got
                if got != want or type(got) is not type(want):
                    found.append(f"{name}.{column}[{row}]: {got!r}, expected {want!r}")
        missing = set(expected) - set(columns)
        found += [f"{name}: column {column} is missing" for column in missing]
    return found


def cells(rows: tuple[Any, ...]) -> int:
    """Return the number of cells in decoded rows."""
    return sum(len(values) for columns in rows for values in columns.values())
