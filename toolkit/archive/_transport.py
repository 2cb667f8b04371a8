"""Serve requests from an archive as a node would: for transactions, and for the state that they wrote.

Studies and fetch functions can therefore read an archive in the same way as a node.
"""

from __future__ import annotations

import threading
from functools import lru_cache, partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Raw

from toolkit.client._http import Answer, PreparedCall, Request
from toolkit.errors import NodeError
from toolkit.move import parse_address, parse_type_tag
from toolkit.wire._headers import ledger_headers
from toolkit.wire._responses import encode_node_info
from toolkit.wire._transactions import ChangeKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from toolkit.archive._folder import Folder
    from toolkit.archive._manifest import ArchiveManifest
    from toolkit.client._reads import Reads
    from toolkit.wire import LedgerState

_TABLES = ("transactions", "events", "changes")
# Fields of transactions that nodes return as text, by column.
_NUMBERS = (
    *("gas_used", "sequence_number", "max_gas_amount", "gas_unit_price"),
    *("expiration_timestamp_secs", "replay_protection_nonce", "epoch", "round", "timestamp"),
)


class _Partition(NamedTuple):
    """The rows of a partition by table, and the ledger version of each row."""

    rows: dict[str, pa.Table]
    versions: dict[str, NDArray[np.int64]]

    def between(self, name: str, first: int, last: int) -> list[dict[str, Any]]:
        """Return a table's rows in a range of versions, both ends included."""
        low, high = np.searchsorted(self.versions[name], np.array([first, last + 1], np.int64))
        found: list[dict[str, Any]] = self.rows[name].slice(low, high - low).to_pylist()
        return found


class _Written(NamedTuple):
    """The versions and JSON texts of all writes of a resource or module, and the versions at which it was deleted."""

    versions: NDArray[np.int64]
    data: pa.ChunkedArray
    gone: NDArray[np.int64]


class ArchiveTransport:
    """A transport that serves requests from an archive.

    Parameters
    ----------
    folder : Folder
    manifest : ArchiveManifest
        Content of the archive; versions added later are not served.
    head : LedgerState
    live : Node, optional
        Receives the requests that the archive cannot answer. Without a node, they are rejected.
    """

    def __init__(self, folder: Folder, manifest: ArchiveManifest, head: LedgerState, live: Reads | None) -> None:
        self._folder, self._manifest, self._head, self._live = folder, manifest, head, live
        self._lock = threading.Lock()
        # Pages are read in order, by several threads at once; a study asks for the same resources at many versions.
        self._partition = lru_cache(2)(self._read_partition)
        self._written = lru_cache(256)(self._read_written)

    def close(self) -> None:
        """Release all cached rows."""
        self._partition.cache_clear()
        self._written.cache_clear()

    def send(self, request: Request) -> Answer:
        """Respond to a request as a node would."""
        parts = urlsplit(request.url)
        where = [unquote(part) for part in parts.path.split("/")[2:] if part]
        answer = self._answer(request.method, where, dict(parse_qsl(parts.query)))
        unknown = answer.status in {HTTPStatus.FORBIDDEN, HTTPStatus.GONE}
        return self._from_live(self._live, request) if unknown and self._live is not None else answer

    def _answer(self, method: str, where: list[str], query: Mapping[str, str]) -> Answer:
        match (method, where):
            case ("GET", []):
                return self._found(encode_node_info(self._head, git_hash=self._manifest.build))
            case ("GET", ["transactions"]):
                first = int(query["start"])
                return self._transactions(first, first + int(query["limit"]) - 1)
            case ("GET", ["transactions", "by_version", version]):
                answer = self._transactions(int(version), int(version))
                return self._found(answer.body[1:-1]) if answer.status == HTTPStatus.OK else answer
            case ("GET", ["accounts", address, "resource", tag]):
                return self._state("resource_type", str(parse_type_tag(tag)), parse_address(address), query)
            case ("GET", ["accounts", address, "module", name]):
                return self._state("module", f"{parse_address(address)}::{name}", None, query)
        return self._refused(403, "api_disabled", "an archive serves only transactions and the state that they wrote")

    def _found(self, body: bytes) -> Answer:
        return Answer(200, {"content-type": "application/json"} | ledger_headers(self._head), body)

    def _refused(self, status: int, code: str, message: str, vm_error_code: int | None = None) -> Answer:
        body = msgspec.json.encode({"message": message, "error_code": code, "vm_error_code": vm_error_code})
        return Answer(status, ledger_headers(self._head), body)

    def _from_live(self, live: Reads, request: Request) -> Answer:
        """Return the node's response; a request without a version is sent with the version of the archive's head."""
        where = request.url.split("/v1", 1)[1]
        # Without a version, these paths would mean the node's head instead of the archive's.
        if where.startswith(("/accounts/", "/view", "/tables/")) and "ledger_version=" not in where:
            where += f"{'&' if '?' in where else '?'}ledger_version={self._head.version}"
        there = Request(request.method, live.url + where, request.body, request.headers)
        try:
            answer = live.one(PreparedCall(there, where, lambda found: found))
        except NodeError as error:
            return self._refused(error.status, error.error_code or "", error.message, error.vm_error_code)
        return Answer(answer.status, dict(answer.headers) | ledger_headers(self._head), answer.body)

    # transactions ---------------------------------------------------------------------------------------------------

    def _read_partition(self, start: int) -> _Partition:
        last = start + self._manifest.partition - 1
        rows = {name: self._folder.rows(self._manifest, name, start, last) for name in _TABLES}
        heads = rows["transactions"]
        place = heads.schema.get_field_index("timestamp")
        rows["transactions"] = heads.set_column(place, "timestamp", heads["timestamp"].cast(pa.int64()))
        return _Partition(rows, {name: table["ledger_version"].to_numpy() for name, table in rows.items()})

    def _transactions(self, first: int, last: int) -> Answer:
        manifest = self._manifest
        if lacking := set(_TABLES) - {table.name for table in manifest.tables}:
            return self._refused(403, "api_disabled", f"the archive does not store {', '.join(sorted(lacking))}")
        if first < manifest.first:
            return self._refused(410, "version_pruned", f"the archive begins at version {manifest.first:,}")
        if first > manifest.last:
            return self._refused(404, "version_not_found", f"the archive ends at version {manifest.last:,}")
        found = []
        for start in manifest.starts(first, min(last, manifest.last)):
            with self._lock:  # threads that ask for neighbouring pages need the same partition
                partition = self._partition(start)
            made: dict[str, dict[int, list[Any]]] = {"events": {}, "changes": {}}
            for name, grouped in made.items():
                for row in partition.between(name, first, last):
                    grouped.setdefault(row["ledger_version"], []).append(_PARTS[name](row))
            for row in partition.between("transactions", first, last):
                parts = {name: grouped.get(row["ledger_version"], []) for name, grouped in made.items()}
                found.append(_transaction(row, parts))
        return self._found(msgspec.json.encode(found))

    # state ----------------------------------------------------------------------------------------------------------

    def _read_written(self, column: str, name: str, address: str | None) -> _Written:
        """Return the writes of a resource or module, in version order."""
        manifest = self._manifest
        changes = partial(self._folder.rows, manifest, "changes", manifest.first, manifest.last)
        wanted = pc.field(column) == name
        if address is not None:
            wanted &= pc.field("address") == address
        mine = changes(columns=["ledger_version", "state_key_hash", "data"], filter=wanted)
        # A node lists all members of a group in each write of the group: one that is not listed was deleted.
        keys = pc.field("state_key_hash").isin(pc.unique(mine["state_key_hash"]))
        group = changes(columns=["ledger_version"], filter=keys)["ledger_version"].to_numpy()
        versions = mine["ledger_version"].to_numpy()
        return _Written(versions, mine["data"], np.setdiff1d(group, versions))

    def _state(self, column: str, name: str, address: str | None, query: Mapping[str, str]) -> Answer:
        """Answer a request for a resource, or a module if `address` is None, with its last write."""
        manifest, version = self._manifest, int(query.get("ledger_version", self._head.version))
        if version > manifest.last:
            return self._refused(404, "version_not_found", f"the archive ends at version {manifest.last:,}")
        if version < manifest.first or all(table.name != "changes" for table in manifest.tables):
            return self._refused(403, "api_disabled", f"the archive does not store the changes of version {version:,}")
        with self._lock:
            written = self._written(column, name, address)
        place = int(np.searchsorted(written.versions, version, side="right")) - 1
        if place < 0 and manifest.first > 0:
            text = (
                f"{name} was not written between version {manifest.first:,}, where the archive begins, and {version:,}"
            )
            return self._refused(410, "version_pruned", f"{text}; pass node= to toolkit.Archive to read it from a node")
        gone = written.gone[written.gone <= version]
        deleted = place < 0 or (len(gone) and gone[-1] > written.versions[place])
        found = None if deleted else written.data[place].as_py()
        if found is None:
            what = "module" if address is None else "resource"
            return self._refused(404, f"{what}_not_found", f"{name} does not exist at version {version:,}")
        return self._found(found.encode() if address is None else b'{"type": "", "data": %s}' % found.encode())


def _transaction(row: dict[str, Any], parts: Mapping[str, list[Any]]) -> Any:
    """Return a transaction's fields for frames and studies, as returned by nodes; other kinds are unchanged."""
    if row["raw"] is not None:
        return Raw(row["raw"])
    content: dict[str, Any] = {name: row[name] for name in ("type", "hash", "vm_status", "sender", "proposer")}
    content["success"] = row["chain_success"]
    content |= {name: None if row[name] is None else str(row[name]) for name in _NUMBERS}
    content["version"] = str(row["ledger_version"])
    texts = ("payload", "signature", "block_end_info")
    content |= {name: None if row[name] is None else Raw(row[name]) for name in texts}
    content |= {} if row["details"] is None else _decode_fields(row["details"])
    return {name: value for name, value in content.items() if value is not None} | dict(parts)


def _event(row: dict[str, Any]) -> Any:
    guid = {"creation_number": str(row["creation_number"]), "account_address": row["account_address"]}
    return {"guid": guid, "sequence_number": str(row["sequence_number"]), "type": row["type"], "data": Raw(row["data"])}


def _change(row: dict[str, Any]) -> Any:
    """Return a state change as returned by nodes; a change of an unknown kind is returned as stored."""
    kind, data = row["type"], None if row["data"] is None else Raw(row["data"])
    if kind not in list(ChangeKind):
        return data
    content: dict[str, Any] = {"type": kind, "state_key_hash": row["state_key_hash"]}
    match kind:
        case ChangeKind.WRITE_RESOURCE:
            return content | {"address": row["address"], "data": {"type": row["resource_type"], "data": data}}
        case ChangeKind.DELETE_RESOURCE:
            return content | {"address": row["address"], "resource": row["resource_type"]}
        case ChangeKind.WRITE_MODULE:
            return content | {"address": row["address"], "data": data}
        case ChangeKind.DELETE_MODULE:
            return content | {"address": row["address"], "module": row["module"]}
    content |= {"handle": row["handle"], "key": f"0x{row['key'].hex()}", "data": data}
    return content if row["value"] is None else content | {"value": f"0x{row['value'].hex()}"}


_decode_fields = msgspec.json.Decoder(dict[str, Raw]).decode
_PARTS = {"events": _event, "changes": _change}
