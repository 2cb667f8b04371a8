"""Companion reads: the node itself, accounts, modules, blocks, transactions, prices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from toolkit.client.abis import abi_of
from toolkit.client.connection import Connection, bcs_body, json_body, path
from toolkit.client.context import BCS
from toolkit.client.prepared import Prepared
from toolkit.errors import Forbidden, NotFound, SchemaError
from toolkit.move import parse_address, wire_address
from toolkit.move._json_text import parse_json
from toolkit.wire import (
    GasSchedule,
    GenericTransaction,
    MalformedTransaction,
    decode_account,
    decode_block,
    decode_gas_price_estimate,
    decode_node_info,
    decode_page,
    decode_transactions,
    parse_headers,
)
from toolkit.wire._rows import check_transaction

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from toolkit.client.http import Answer
    from toolkit.wire import AccountInfo, BlockInfo, GasPriceEstimate, LedgerState, NodeInfo

__all__ = ["ABSENT", "Companion"]

T = TypeVar("T")
_GAS_SCHEDULE = "0x1::gas_schedule::GasScheduleV2"
ABSENT = frozenset({"module_not_found", "account_not_found", "resource_not_found", "state_value_not_found"})
"""Error codes that say that what was asked for is not there at that version, and nothing else."""


class Companion:
    """Reads beside the three operations. A node may offer some of them only."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._modules_refused: Forbidden | None = None

    def info(self) -> NodeInfo:
        """Read ``GET /v1``."""
        return self._connection.read("", lambda answer: decode_node_info(answer.body), asked="node info")

    def account(self, address: str, version: int | None = None) -> AccountInfo:
        """Read an account's sequence number and authentication key."""
        address = wire_address(parse_address(address))
        where, query = path("accounts", address), {"ledger_version": version}
        return self._connection.read(
            where, lambda answer: decode_account(answer.body), asked=f"account {address}", query=query
        )

    def module_answer(self, address: str, name: str, version: int) -> bytes | None:
        """Read a module at a version; None where it is not there.

        Raises
        ------
        Forbidden
            If the node does not offer modules; having said so once it is not asked again.
        NotFound
            If something else is not there, such as the version, or a gateway answers.
        """
        if self._modules_refused is not None:
            raise self._modules_refused
        where = path("accounts", wire_address(address), "module", name)
        asked = f"module {wire_address(address)}::{name} at version {version}"
        try:
            body = self._pinned("GET", where, asked, _module_body, version)
        except Forbidden as error:
            self._modules_refused = error
            raise
        except NotFound as error:
            if error.error_code in ABSENT:
                self._connection.keeper.note_looked_up(where, version)
                return None
            raise
        self._connection.keeper.note_looked_up(where, version)
        return body

    def module_versions(self, address: str, name: str) -> list[int]:
        """Return the versions at which a module was read and kept, by this session or an earlier one."""
        return self._connection.keeper.looked_up(path("accounts", wire_address(address), "module", name))

    def resource_document(self, address: str, tag: str, version: int | None) -> tuple[Any, int | None]:
        """Read a resource's data as JSON, and the head when it answered."""
        address = wire_address(parse_address(address))

        def read(answer: Answer) -> tuple[Any, int | None]:
            document = parse_json(answer.body, f"resource {tag}")
            if not isinstance(document, dict) or "data" not in document:
                got = repr(answer.body[:60])
                raise SchemaError(f"resource {tag}: expected an object with `type` and `data`, got {got}")
            ledger = parse_headers(answer.headers).ledger
            return document["data"], ledger.version if ledger else None

        where, asked = path("accounts", address, "resource", tag), f"resource {tag} of {address}{_at(version)}"
        return self._pinned("GET", where, asked, read, version)

    def raw_item(self, handle: str, key: bytes, version: int) -> bytes | None:
        """Read a table item's BCS bytes by its key's; None where it is not there."""
        asked = f"raw item {key.hex()[:20]} of table {handle} at version {version}"
        try:
            return self._pinned(
                "POST",
                path("tables", handle, "raw_item"),
                asked,
                lambda answer: bcs_body(answer, asked),
                version,
                body=json_body({"key": "0x" + key.hex()}),
                accept=BCS,
            )
        except NotFound as error:
            if error.error_code != "table_item_not_found":
                raise
            return None

    def gas_schedule(self, version: int | None) -> GasSchedule:
        """Read the on-chain gas schedule."""
        data, _ = self.resource_document("0x1", _GAS_SCHEDULE, version)
        return GasSchedule.from_resource(data)

    def block(self, version: int) -> BlockInfo:
        """Read the block that holds a version, without its transactions."""
        return self._connection.perform(self.prepare_block(version))

    def prepare_block(self, version: int) -> Prepared[BlockInfo]:
        """Make the read of a block ready to be sent, alone or with many others."""
        request = self._connection.request("GET", path("blocks", "by_version", version))
        return Prepared(request, f"block of version {version}", lambda answer: decode_block(answer.body), version)

    def transaction(self, version: int) -> tuple[Any, LedgerState | None]:
        """Read and decode the committed transaction of a version; with it the node's head when it answered."""
        asked = f"transaction of version {version}"

        def read(answer: Answer) -> tuple[Any, LedgerState | None]:
            return _only(answer, asked), parse_headers(answer.headers).ledger

        request = self._connection.request("GET", path("transactions", "by_version", version))
        return self._connection.perform(Prepared(request, asked, read, version))

    def transactions(self, start: int, limit: int) -> list[Any]:
        """Read and decode one page of committed transactions.

        Raises
        ------
        SchemaError
            If the answer, or one of its transactions, cannot be decoded.
        """
        found, _ = self._connection.perform(self.prepare_transactions(start, limit))
        for one in found:
            if isinstance(one, MalformedTransaction):
                raise SchemaError(f"transactions {start} to {start + limit - 1}: {one.problem}")
        return found

    def prepare_transactions(self, start: int, limit: int) -> Prepared[tuple[list[Any], LedgerState | None]]:
        """Make the read of one page ready to be sent, alone or with many others.

        Its result has the node's head when it answered, if the answer says so; a transaction that cannot be decoded is
        a `MalformedTransaction`.
        """
        asked = f"transactions {start} to {start + limit - 1}"

        def read(answer: Answer) -> tuple[list[Any], LedgerState | None]:
            found = _page(answer, asked)
            for one in found:
                if isinstance(one, MalformedTransaction):
                    one.problem = self._connection.mask(one.problem)
            return found, parse_headers(answer.headers).ledger

        request = self._connection.request("GET", "/transactions", query={"start": start, "limit": limit})
        return Prepared(request, asked, read)

    def gas_price(self) -> GasPriceEstimate:
        """Read the price estimates."""
        asked = "gas price estimate"
        return self._connection.read(
            "/estimate_gas_price", lambda answer: decode_gas_price_estimate(answer.body), asked=asked
        )

    def _pinned(
        self, method: str, where: str, asked: str, read: Callable[[Answer], T], version: int | None, **sent: Any
    ) -> T:
        """Read at a version; None is the head."""
        request = self._connection.request(method, where, query={"ledger_version": version}, **sent)
        return self._connection.perform(Prepared(request, asked, read, version))

    def first_from(self, time: datetime, ledger: LedgerState) -> int:
        """Find the first version at or after a time: O(log n) block reads between a ledger's oldest version and head.

        Returns
        -------
        int
            -1 where that version is pruned, or may be; head + 1 where there is none yet.
        """
        if time > ledger.timestamp:
            return ledger.version + 1
        low, high = ledger.oldest_version, ledger.version
        while low < high:  # every version of a block has the block's time, so each look skips whole blocks
            middle = (low + high) // 2
            block = self._block_of(middle)
            stamp = block.block_timestamp
            if stamp is not None and stamp >= time:
                high = max(low, block.first_version)
            else:
                low = min(high, block.last_version + 1)
        if high == ledger.oldest_version > 0:
            oldest = self._block_of(high)
            if oldest.first_version < high or oldest.block_timestamp != time:
                return -1  # what came before the oldest version may have been at or after the time as well
        return high

    def _block_of(self, version: int) -> BlockInfo:
        block = self.block(version)
        if not block.first_version <= version <= block.last_version:
            held = f"{block.first_version} to {block.last_version}"
            raise SchemaError(f"asked for the block of version {version}, the node answered the one of {held}")
        return block


def _module_body(answer: Answer) -> bytes:
    """Return the answer of a module as it came, once it is known to be one."""
    abi_of(answer.body)
    return answer.body


def _only(answer: Answer, asked: str) -> Any:
    """Decode the answer that is one transaction, all of whose numbers, addresses and times can be read."""
    try:
        found = decode_transactions(answer.body)
        for one in found:
            check_transaction(one)
    except SchemaError as error:
        raise SchemaError(f"{asked}: {error}") from error
    if len(found) != 1:
        raise SchemaError(f"{asked}: expected one transaction, the answer has {len(found)}")
    if isinstance(found[0], GenericTransaction) and found[0].type is None and found[0].version_text is None:
        raise SchemaError(f"{asked}: expected a transaction with `type` and `version`, got {answer.body[:60]!r}")
    return found[0]


def _page(answer: Answer, asked: str) -> list[Any]:
    """Decode transactions, malformed ones being marked; an answer with no other is not a page of transactions."""
    try:
        found = decode_page(answer.body)
    except SchemaError as error:
        raise SchemaError(f"{asked}: {error}") from error
    marked = [one for one in found if isinstance(one, MalformedTransaction)]
    if marked and len(marked) == len(found):
        raise SchemaError(f"{asked}: {marked[0].problem}")
    return found


def _at(version: int | None) -> str:
    return "" if version is None else f" at version {version}"
