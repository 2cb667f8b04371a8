"""A node on loopback over a state by state key: raw values, transactions in JSON and BCS, blocks, modules.

Each block has its metadata and one user transaction, after as many checkpoints as its index in the block wants.
Committed transactions are written by hand, so that nothing of the package decides what their form is.
"""

from __future__ import annotations

import json
import time
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.conformance.recorded_node import BCS, Received, RecordedNode, _wants_bcs
from toolkit.move._bcs import Reader
from toolkit.vm._bcs import tag_bytes
from toolkit.vm._state import Group
from toolkit.vm._types import parse
from toolkit.wire._state_keys import key_hash


def uleb(value: int) -> bytes:
    data = bytearray()
    while value > 127:
        data.append(value & 127 | 128)
        value >>= 7
    return bytes(data + bytes((value,)))


def u64(value: int) -> bytes:
    return value.to_bytes(8, "little")


def text(value: bytes | str) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return uleb(len(raw)) + raw


def metadata_bcs(metadata: Any) -> bytes:
    """Return slot metadata in the newer of its two forms; the older one has no deposit for bytes."""
    slot, of_bytes, created = metadata
    if of_bytes == 0:
        return b"\0" + u64(slot) + u64(created)
    return b"\1" + u64(slot) + u64(of_bytes) + u64(created)


def stored_value(value: bytes, metadata: Any) -> bytes:
    """Return a state value as a node stores it."""
    if metadata is None:
        return b"\0" + text(value)
    return b"\1" + text(value) + metadata_bcs(metadata)


def access_key(address: bytes, path: bytes) -> bytes:
    return b"\0" + address + text(path)


def address_of(where: str) -> bytes:
    return int(where, 16).to_bytes(32, "big")


def members_at(state: dict[bytes, Any], address: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the resources of an address, those in groups too: BCS of the struct tag, and value."""
    for key, found in state.items():
        if found is None or key[:33] != b"\0" + address:
            continue
        path = key[34:] if key[33] < 128 else key[35:]
        if path[0] == 1:
            yield path[1:], found[0]
        elif path[0] == 2:
            yield from Group(found[0]).members.items()


@dataclass
class Sent:
    """A user transaction with what the ledger says about it.

    Attributes
    ----------
    transaction : bytes
        BCS of the signed transaction.
    status : bytes
        BCS of the execution status.
    gas_used : int
    events : list of (BCS of the type or key and type, number, data)
        Each as (key or None, sequence number, BCS of the type tag, data).
    writes : list of (key, op, value, metadata)
    state : dict
        The state before: (value, metadata) or None by state key.
    """

    transaction: bytes
    status: bytes
    gas_used: int
    events: list[tuple[bytes | None, int, bytes, bytes]]
    writes: list[tuple[bytes, str, bytes | None, Any]]
    state: dict[bytes, Any]
    function: str | None = None
    sender: str = "0x1"
    index: int = 1

    def to_bcs(self, version: int) -> bytes:
        info = b"\0" + u64(self.gas_used) + self.status + bytes(3 * 32) + b"\0\0"
        events = [
            (b"\0" + key + u64(number) if key is not None else b"\1") + tag + text(data)
            for key, number, tag, data in self.events
        ]
        operations = ["create", "modify", "delete"]
        writes = []
        for key, op, value, metadata in self.writes:
            variant = operations.index(op) + (3 if metadata is not None else 0)
            writes.append(key + bytes((variant,)) + (b"" if value is None else text(value)))
            writes[-1] += b"" if metadata is None else metadata_bcs(metadata)
        write_set = b"\0" + uleb(len(writes)) + b"".join(writes)
        events_bcs = uleb(len(events)) + b"".join(events)
        return b"\0" + u64(version) + b"\0" + self.transaction + info + events_bcs + bytes(32) + write_set


def state_change(key: bytes) -> dict[str, Any]:
    """Return a change of the JSON form; only the hash of the state key matters."""
    about = {"type": "delete_table_item", "handle": "0x1", "key": "0x", "data": None}
    return about | {"state_key_hash": key_hash(key)}


FEE_STATEMENT = tag_bytes(parse("0x1::transaction_fee::FeeStatement"))
_FEES = (
    "total_charge_gas_units",
    "execution_gas_units",
    "io_gas_units",
    "storage_fee_octas",
    "storage_fee_refund_octas",
)


def fee_events(sent: Sent) -> list[dict[str, Any]]:
    """Return the fee statement of a transaction as JSON; other events are left out."""
    guid = {"creation_number": "0", "account_address": "0x0"}
    about = {"guid": guid, "sequence_number": "0", "type": "0x1::transaction_fee::FeeStatement"}
    return [
        about | {"data": {name: str(int.from_bytes(data[8 * at :][:8], "little")) for at, name in enumerate(_FEES)}}
        for _, _, tag, data in sent.events
        if tag == FEE_STATEMENT
    ]


def resource_json(tag: str, data: bytes) -> dict[str, Any]:
    """Return a configuration resource as JSON: gas schedule and features as nodes do, others as their bytes."""
    if tag.endswith("GasScheduleV2"):
        reader = Reader(data)
        version = reader.u64()
        entries = [{"key": reader.string(), "val": str(reader.u64())} for _ in range(reader.length())]
        return {"type": tag, "data": {"feature_version": str(version), "entries": entries}}
    if tag.endswith("Features"):
        return {"type": tag, "data": {"features": "0x" + Reader(data).bytes().hex()}}
    return {"type": tag, "data": {"bytes": data.hex()}}


@dataclass
class StateNode(RecordedNode):
    """A server over user transactions; `versions` has the version of each.

    Attributes
    ----------
    sent : list of Sent
    raw : bool
        Whether raw state values are offered.
    oldest : int
        Versions below are pruned.
    latency_s : float
        Wait before each response.
    only_json : bool
        Whether transactions are answered as JSON whatever is asked for.
    package : tuple of str
        Modules of 0x1 that its package registry lists, in a package of one upgrade; none by default.
    gone : bool
        Whether every request is refused as a node that is down refuses it.
    """

    exchanges: list[Any] = field(default_factory=list)
    history: Any = None
    sent: list[Sent] = field(default_factory=list)
    raw: bool = True
    oldest: int = 0
    latency_s: float = 0.0
    only_json: bool = False
    package: tuple[str, ...] = ()
    gone: bool = False
    reads: int = 0

    def __post_init__(self) -> None:
        """Index nothing: there is no recording, and version 0 is genesis."""
        self.versions = [*accumulate(one.index + 1 for one in self.sent)]

    @property
    def head(self) -> int:
        return self.versions[-1]

    def block(self, version: int) -> tuple[int, Sent]:
        """Return the first version of a block, and its user transaction."""
        place = bisect_left(self.versions, version)
        return self.versions[place] - self.sent[place].index, self.sent[place]

    @property
    def _headers(self) -> dict[str, str]:
        return {
            "x-aptos-chain-id": "4",
            "x-aptos-ledger-version": str(self.head),
            "x-aptos-ledger-oldest-version": str(self.oldest),
            "x-aptos-ledger-timestampusec": "1700000000000000",
            "x-aptos-epoch": "1",
            "x-aptos-block-height": str(len(self.sent)),
            "x-aptos-oldest-block-height": "0",
        }

    def at(self, version: int) -> dict[bytes, Any]:
        """Return the state after a version."""
        place = bisect_left(self.versions, version + 1)
        return self.sent[min(place, len(self.sent) - 1)].state

    def document(self, version: int) -> dict[str, Any]:
        """Return a transaction as JSON."""
        about = {"version": str(version), "hash": f"0x{version:064x}", "gas_used": "0", "success": True}
        about |= {"vm_status": "Executed successfully", "timestamp": "1700000000000000", "events": []}
        first, one = self.block(version)
        if version not in self.versions:
            if version != first or version == 0:
                return about | {"type": "state_checkpoint_transaction", "changes": []}
            before = self.at(version - 2) if version > 1 else {}
            keys = [key for key, value in one.state.items() if before.get(key, self) != value]
            more = {"id": "0x0", "epoch": "1", "round": "1", "proposer": "0x1", "previous_block_votes_bitvec": []}
            more |= {"type": "block_metadata_transaction", "failed_proposer_indices": []}
            return about | more | {"changes": [*map(state_change, keys)]}
        payload = {"type": "entry_function_payload", "function": one.function, "type_arguments": [], "arguments": []}
        if one.function is None:
            payload = {"type": "script_payload", "code": {"bytecode": "0x"}, "type_arguments": [], "arguments": []}
        about |= {"type": "user_transaction", "sender": one.sender, "sequence_number": "0", "payload": payload}
        about |= {"max_gas_amount": "1", "gas_unit_price": "1", "expiration_timestamp_secs": "1"}
        about |= {"gas_used": str(one.gas_used), "signature": None, "events": fee_events(one)}
        return about | {"changes": [state_change(key) for key, *_ in one.writes]}

    def answer(  # noqa: PLR0911  # one case per kind of answer
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        if self.latency_s:
            time.sleep(self.latency_s)
        parts = urlsplit(path)
        steps, query = unquote(parts.path).strip("/").split("/")[1:], dict(parse_qsl(parts.query))
        version = int(query.get("ledger_version", self.head))
        if self.gone:
            return self._refusal(503, "internal_error", "down")
        if version > self.head:
            return self._refusal(404, "version_not_found", "Ledger version not found")
        if version < self.oldest:
            return self._refusal(410, "version_pruned", "Ledger version has been pruned")
        match method, *steps:
            case ["GET"]:
                about = {"chain_id": 4, "epoch": "1", "ledger_version": str(self.head), "node_role": "full_node"}
                about |= {"oldest_ledger_version": str(self.oldest), "ledger_timestamp": "1700000000000000"}
                return self._json(about | {"oldest_block_height": "0", "block_height": "1", "git_hash": None})
            case "POST", "experimental", "state_values", "raw" if self.raw:
                self.reads += 1
                return self._state_value(bytes.fromhex(json.loads(body)["key"][2:]), version)
            case "GET", "transactions", "by_version", number if int(number) <= self.head:
                if not _wants_bcs(headers) or self.only_json:
                    return self._json(self.document(int(number)))
                if int(number) not in self.versions:
                    return self._bcs(b"\0" + u64(int(number)) + b"\3" + bytes(32))
                return self._bcs(self.block(int(number))[1].to_bcs(int(number)))
            case ["GET", "transactions"]:
                start, limit = int(query["start"]), int(query["limit"])
                return self._json([*map(self.document, range(start, min(start + limit, self.head + 1)))])
            case "GET", "accounts", "0x1", "resource", "0x1::code::PackageRegistry" if self.package:
                return self._json({"type": "0x1::code::PackageRegistry", "data": {"packages": [self.package_json()]}})
            case "GET", "accounts", where, "resource", tag if not _wants_bcs(headers):
                found = self.at(version).get(access_key(address_of(where), b"\1" + tag_bytes(parse(tag))[1:]))
                if found is None:
                    return self._refusal(404, "resource_not_found", "Resource not found")
                return self._json(resource_json(tag, found[0]))
            case "GET", "blocks", "by_version", number:
                first = self.block(int(number))[0]
                about = {"block_height": "1", "block_hash": "0x1", "block_timestamp": "1700000000000000"}
                return self._json(about | {"first_version": str(first), "last_version": number})
        made = (
            None
            if self.raw and steps[2:3] != ["module"]
            else self.by_parts(steps, version, body, in_bcs=_wants_bcs(headers))
        )
        if made is not None:
            return made
        self.received.append(Received(method, path, headers, body, None))
        return self._refusal(404, "not_recorded", f"not recorded: {method} {path}")

    def package_json(self) -> dict[str, Any]:
        modules = [{"name": name, "source": "0x", "source_map": "0x"} for name in self.package]
        about = {"name": "Framework", "upgrade_policy": {"policy": 1}, "upgrade_number": "0", "source_digest": ""}
        return about | {"manifest": "0x", "modules": modules, "deps": [], "extension": {"vec": []}}

    def by_parts(  # noqa: PLR0911  # one case per kind of read
        self, steps: list[str], version: int, body: bytes, *, in_bcs: bool
    ) -> tuple[int, dict[str, str], bytes] | None:
        """Answer reads of modules, resources and table items, as nodes without raw state values do."""
        state = self.at(version)
        match steps:
            case "accounts", where, "module", name:
                address = int(where, 16).to_bytes(32, "big")
                found = state.get(access_key(address, b"\0" + address + text(name)))
                if found is None:
                    return self._refusal(404, "module_not_found", "Module not found")
                return self._json({"bytecode": f"0x{found[0].hex()}", "abi": None})
            case "accounts", where, "resource", tag if in_bcs:
                found = state.get(access_key(int(where, 16).to_bytes(32, "big"), b"\1" + tag_bytes(parse(tag))[1:]))
                if found is None:
                    return self._refusal(404, "resource_not_found", "Resource not found")
                return self._bcs(found[0])
            case "accounts", where, "resources":
                found = [*members_at(state, int(where, 16).to_bytes(32, "big"))]
                return self._bcs(uleb(len(found)) + b"".join(tag + text(value) for tag, value in found))
            case "tables", handle, "raw_item":
                item = bytes.fromhex(json.loads(body)["key"][2:])
                found = state.get(b"\1" + int(handle, 16).to_bytes(32, "big") + text(item))
                if found is None:
                    return self._refusal(404, "table_item_not_found", "Table Item not found")
                return self._bcs(found[0])
        return None

    def _state_value(self, key: bytes, version: int) -> tuple[int, dict[str, str], bytes]:
        state = self.at(version)
        if key not in state:
            return self._refusal(404, "not_recorded", f"not recorded: {key.hex()}")
        if state[key] is None:
            return self._refusal(404, "state_value_not_found", "Raw State Value not found")
        return self._bcs(stored_value(*state[key]))

    def _bcs(self, data: bytes) -> tuple[int, dict[str, str], bytes]:
        return 200, self._headers | {"content-type": BCS}, data
