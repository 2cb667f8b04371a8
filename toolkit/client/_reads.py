"""Reads beside the three operations: the node itself, accounts, modules, resources, blocks, transactions, prices.

A node may offer some of them only; `probe` finds out which.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit._present.messages import shorten
from toolkit._present.notebook import facts_html
from toolkit._present.text import visible
from toolkit.client._abis import abi_of
from toolkit.client._accounts import prepare_page
from toolkit.client._calls import PreparedCall
from toolkit.client._connection import bcs_body, json_body, path, pinned
from toolkit.client._node_errors import ABSENT
from toolkit.client._versions import as_version, as_version_or_head
from toolkit.errors import InputError, NodeError, NotFound, SchemaError
from toolkit.move import decode_json, parse_address, parse_type_tag
from toolkit.move._ids import wire_address
from toolkit.move._json_text import parse_json
from toolkit.move._type_tags import wire_type
from toolkit.wire import GasSchedule, decode_account, decode_block, decode_node_info, decode_transactions
from toolkit.wire._responses import decode_gas_price_estimate
from toolkit.wire._rows import check_transaction
from toolkit.wire._transaction_decoding import decode_page
from toolkit.wire._transactions import GenericTransaction, MalformedTransaction

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.client._abis import AbiStore
    from toolkit.client._connection import Connection
    from toolkit.client._credentials import Credentials
    from toolkit.client._http import Answer
    from toolkit.client._node import Node  # for typing only: a Node makes these reads
    from toolkit.move import ModuleAbi
    from toolkit.wire import AccountInfo, BlockInfo, GasPriceEstimate, LedgerState, NodeInfo


_GAS_SCHEDULE = "0x1::gas_schedule::GasScheduleV2"
_VIEW = "0x1::timestamp::now_microseconds"
"""A view of the framework without arguments: it answers at every version that can be read."""
_HASH_DIGITS = 64
_REPEATS = 3
_MAX_HALVINGS = 10
"""Bisection steps for the oldest version; the answer is then within a thousandth of the range."""


class Reads:
    """The reads of a node beside the three operations; `Node` inherits them."""

    _connection: Connection
    _credentials: Credentials
    abis: AbiStore

    def prepare_account(self, address: str) -> PreparedCall[AccountInfo]:
        """Prepare the read of an account's sequence number and authentication key at the head."""
        call = _account(self._connection, address)
        return PreparedCall(call.request, call.asked, lambda answer: call.finish(answer)[0])

    def sequence_number(self, address: str) -> int:
        """Return the sequence number of an account at the head.

        Raises
        ------
        NotFound
            If the account does not exist.
        NodeError, NodeUnreachable
            If the node refuses otherwise, or does not answer.
        """
        return self._connection.perform(self.prepare_account(address)).sequence_number

    def prepare_block(self, ledger_version: int) -> PreparedCall[BlockInfo]:
        """Prepare the read of the block that holds a version."""
        return _block(self._connection, as_version(ledger_version))

    def prepare_transactions(self, start: int, limit: int) -> PreparedCall[tuple[list[Any], LedgerState | None]]:
        """Prepare the read of a page of committed transactions; its result has the node's head too."""
        return _transaction_page(self._connection, as_version(start), limit)

    def info(self) -> NodeInfo:
        """Return the node's own description, of ``GET /v1``.

        If the node does not offer that, the ledger's state is from the headers of a view or table item, and
        ``node_role`` is empty.

        Returns
        -------
        NodeInfo

        Raises
        ------
        NodeError, NodeUnreachable, SchemaError
            If the node refuses, does not answer, or its answer cannot be decoded.
        """
        return self._connection.perform(_node_info(self._connection))

    def ledger(self) -> LedgerState:
        """Return the state of the ledger at the node's head, of ``GET /v1`` or, without that, of a POST's headers.

        Returns
        -------
        LedgerState

        Raises
        ------
        NodeError, NodeUnreachable, SchemaError
            If the node refuses, does not answer, or its answer cannot be decoded.

        Examples
        --------
        >>> import toolkit
        >>> toolkit.connect().ledger().oldest_version
        0
        """
        return self.info().ledger

    def module(self, address: str, name: str, *, ledger_version: int | None = None) -> ModuleAbi | None:
        """Return the ABI of a module.

        Parameters
        ----------
        address, name : str
        ledger_version : int, optional
            Version whose state is read; the head by default.

        Returns
        -------
        ModuleAbi or None
            None if the module does not exist at that version.

        Raises
        ------
        NodeError, NodeUnreachable
            If the look-up fails.
        """
        given = as_version_or_head(ledger_version)
        version = self.ledger().version if given is None else given
        return self.abis.at(version).module_abi(address, name)

    def resource(self, address: str, tag: str, *, ledger_version: int | None = None) -> Any:
        """Return a resource of an account.

        Parameters
        ----------
        address : str
        tag : str
            Struct tag, such as ``0x1::account::Account``.
        ledger_version : int, optional
            Version whose state is read; the head by default.

        Returns
        -------
        dict
            Python values by field; as in the node's JSON if its answer does not say at which version the head is.

        Raises
        ------
        NotFound
            If the account has no such resource.
        InputError, SchemaError
            If `tag` cannot be parsed, or the resource does not fit its type.
        NodeError, NodeUnreachable
            If the node refuses otherwise, or does not answer.

        Notes
        -----
        Source: ``GET /v1/accounts/{address}/resource/{type}``.

        Examples
        --------
        >>> import toolkit
        >>> toolkit.connect().resource("0x1", "0x1::chain_id::ChainId")
        {'id': 4}
        """
        parsed, version = parse_type_tag(tag), as_version_or_head(ledger_version)
        data, head = self._connection.perform(_resource(self._connection, address, wire_type(parsed), version))
        if version is None:
            if head is None:
                return data
            version = head.version
        try:
            return decode_json(self.abis.at(version).layout(parsed), data, where=tag)
        except SchemaError as error:
            self._credentials.mask_error(error)
            raise

    def resource_json(self, address: str, tag: str, ledger_version: int) -> Any:
        """Return the JSON of a resource at a version, None if it does not exist."""
        try:
            return self._connection.perform(self.prepare_resource(address, tag, ledger_version))[0]
        except NotFound as error:
            if error.error_code not in ABSENT:
                raise
            return None

    def prepare_resource(
        self, address: str, tag: str, ledger_version: int
    ) -> PreparedCall[tuple[Any, LedgerState | None]]:
        """Prepare the read of a resource at a version; its result has the data as JSON, and the node's head too."""
        return _resource(self._connection, address, wire_type(parse_type_tag(tag)), ledger_version)

    def prepare_raw_item(self, handle: str, key: bytes, ledger_version: int) -> PreparedCall[bytes]:
        """Prepare the read of a table item by the BCS bytes of its key; its result is BCS too."""
        return _raw_item(self._connection, handle, key, ledger_version)

    def mask_error(self, error: SchemaError) -> None:
        """Mask the credentials of this node in an error that quotes an answer."""
        self._credentials.mask_error(error)

    def table_item_bytes(self, handle: str, key: bytes, ledger_version: int) -> bytes | None:
        """Return the BCS bytes of a table item by those of its key, None if it does not exist."""
        try:
            return self._connection.perform(self.prepare_raw_item(handle, key, ledger_version))
        except NotFound as error:
            if error.error_code != "table_item_not_found":
                raise
            return None

    def account_and_head(
        self, address: str, ledger_version: int | None = None
    ) -> tuple[AccountInfo, LedgerState | None]:
        """Return the sequence number and authentication key of an account, and the node's head when it answered.

        Raises
        ------
        NotFound
            If the account does not exist.
        NodeError, NodeUnreachable
            If the node refuses otherwise, or does not answer.
        """
        return self._connection.perform(_account(self._connection, address, ledger_version))

    def account_page(
        self, address: str, what: str, ledger_version: int, start: str | None = None
    ) -> tuple[list[Any], str | None]:
        """Return a page of the ``modules`` or ``resources`` of an account, and the start of the next page."""
        return self._connection.perform(prepare_page(self._connection, address, what, ledger_version, start))

    def module_names(self, address: str, *, ledger_version: int) -> list[str]:
        """Return the names of an account's modules: those of the first page that the node gives, for messages.

        Raises
        ------
        NodeError, NodeUnreachable, SchemaError
            If the node refuses, does not answer, or its answer cannot be decoded.
        """
        modules, _ = self.account_page(address, "modules", ledger_version)
        return [module.abi.name for module in modules if module.abi is not None]

    def block(self, ledger_version: int) -> BlockInfo:
        """Return the block that holds a version, without its transactions.

        Raises
        ------
        NodeError, NodeUnreachable
            If the node refuses or does not answer.

        Notes
        -----
        Source: ``GET /v1/blocks/by_version/{version}``.
        """
        return self._connection.perform(self.prepare_block(ledger_version))

    def transaction(self, ledger_version: int | str) -> Any:
        """Return a committed transaction, decoded.

        Parameters
        ----------
        ledger_version : int or str
            Its version, or its hash: 0x and 64 hex digits. A hash may also be that of a pending transaction.

        Raises
        ------
        InputError
            If it is neither a version nor a hash.
        NotFound
            If it does not exist, or not yet.
        NodeError, NodeUnreachable, SchemaError
            If the node refuses otherwise, does not answer, or its answer cannot be decoded.

        Notes
        -----
        Source: ``GET /v1/transactions/by_version/{version}`` or ``/by_hash/{hash}``.
        """
        if isinstance(ledger_version, str):
            return self._connection.perform(_transaction_by_hash(self._connection, ledger_version))
        return self.transaction_and_head(ledger_version)[0]

    def transaction_and_head(self, ledger_version: int) -> tuple[Any, LedgerState | None]:
        """Return a committed transaction, and the node's head when it answered, if the answer has it."""
        return self._connection.perform(_transaction(self._connection, as_version(ledger_version)))

    def transactions(self, start: int, limit: int = 100) -> list[Any]:
        """Return a page of committed transactions, decoded.

        Parameters
        ----------
        start : int
            First ledger version.
        limit : int, default 100
            Maximum number of transactions. The node may give fewer; `fetch_transactions` reads on.

        Returns
        -------
        list

        Raises
        ------
        NodeError, NodeUnreachable
            If the node refuses or does not answer.
        SchemaError
            If the answer, or one of its transactions, cannot be decoded.

        Notes
        -----
        Source: ``GET /v1/transactions?start=&limit=``.
        """
        found, _ = self._connection.perform(self.prepare_transactions(start, limit))
        for one in found:
            if isinstance(one, MalformedTransaction):
                raise SchemaError(f"transactions {start} to {start + limit - 1}: {one.problem}")
        return found

    def gas_price(self) -> GasPriceEstimate:
        """Return the node's price estimates, in octas per gas unit, of ``GET /v1/estimate_gas_price``.

        Raises
        ------
        NodeError, NodeUnreachable
            If the node refuses or does not answer.
        """
        return self._connection.perform(_gas_price(self._connection))

    def gas_schedule(self, ledger_version: int | None = None) -> GasSchedule:
        """Return the on-chain gas schedule.

        Parameters
        ----------
        ledger_version : int, optional
            Version whose state is read; the head by default.

        Returns
        -------
        GasSchedule
            With ``feature_version`` and ``entries``, each parameter's value by name.

        Raises
        ------
        NodeError, NodeUnreachable
            If the node refuses or does not answer.

        See Also
        --------
        toolkit.schedule_diff : Compares two of them.

        Notes
        -----
        Source: resource ``0x1::gas_schedule::GasScheduleV2`` of ``0x1``.

        Examples
        --------
        >>> import toolkit
        >>> toolkit.connect().gas_schedule(100).feature_version > 0
        True
        """
        version = as_version_or_head(ledger_version)
        data, _ = self._connection.perform(_resource(self._connection, "0x1", _GAS_SCHEDULE, version))
        return GasSchedule.from_resource(data)

    def _module_answer(self, address: str, name: str, version: int) -> bytes | None:
        """Return the answer of a module, None if it does not exist; its version is noted for offline sessions."""
        found, where = None, _module_path(address, name)
        try:
            found = self._connection.perform(_module(self._connection, where, f"{address}::{name}", version))
        except NotFound as error:
            if error.error_code not in ABSENT:
                raise
        self._connection.cache.note_looked_up(where, version)
        return found

    def _module_versions(self, address: str, name: str) -> list[int]:
        """Return the versions at which a module is stored, by this session or an earlier one."""
        return self._connection.cache.looked_up(_module_path(address, name))


# how each read is sent and decoded ---------------------------------------------------------------------------------


def _node_info(connection: Connection) -> PreparedCall[NodeInfo]:
    """Prepare ``GET /v1``."""
    return PreparedCall(connection.request("GET", ""), "node info", lambda answer: decode_node_info(answer.body))


def _account(
    connection: Connection, address: str, version: int | None = None
) -> PreparedCall[tuple[AccountInfo, LedgerState | None]]:
    """Prepare the read of an account's sequence number and authentication key; its answer is never stored.

    The result has the node's head too.
    """
    address = wire_address(parse_address(address))
    request = pinned(connection.request("GET", path("accounts", address)), version)
    return PreparedCall(
        request, f"account {address}", lambda answer: (decode_account(answer.body), answer.parsed.ledger)
    )


def _module_path(address: str, name: str) -> str:
    """Return the path of a module."""
    return path("accounts", wire_address(address), "module", name)


def _module(connection: Connection, where: str, name: str, version: int) -> PreparedCall[bytes]:
    """Prepare the read of a module by its path; the result is the body of the answer, whose ABI can be decoded."""

    def read(answer: Answer) -> bytes:
        abi_of(answer.body)
        return answer.body

    request = pinned(connection.request("GET", where), version)
    return PreparedCall(request, f"module {name} at version {version}", read, version)


def _resource(
    connection: Connection, address: str, tag: str, version: int | None
) -> PreparedCall[tuple[Any, LedgerState | None]]:
    """Prepare the read of a resource; the result is its data as JSON, and the head of the answer."""
    address = wire_address(parse_address(address))

    def read(answer: Answer) -> tuple[Any, LedgerState | None]:
        document = parse_json(answer.body, f"resource {tag}")
        if not isinstance(document, dict) or "data" not in document:
            got = repr(answer.body[:60])
            raise SchemaError(f"resource {tag}: expected an object with `type` and `data`, got {got}")
        return document["data"], answer.parsed.ledger

    request = pinned(connection.request("GET", path("accounts", address, "resource", tag)), version)
    at = "" if version is None else f" at version {version}"
    return PreparedCall(request, f"resource {tag} of {address}{at}", read, version)


def _raw_item(connection: Connection, handle: str, key: bytes, version: int) -> PreparedCall[bytes]:
    """Prepare the read of a table item by the BCS bytes of its key; the result is BCS too."""
    asked = f"raw item {key.hex()[:20]} of table {handle} at version {version}"
    body = json_body({"key": "0x" + key.hex()})
    where = path("tables", handle, "raw_item")
    request = pinned(connection.request("POST", where, body=body, accept="application/x-bcs"), version)
    return PreparedCall(request, asked, lambda answer: bcs_body(answer, asked), version)


def _block(connection: Connection, version: int) -> PreparedCall[BlockInfo]:
    """Prepare the read of the block that holds a version, without its transactions."""
    request = connection.request("GET", path("blocks", "by_version", version))
    return PreparedCall(request, f"block of version {version}", lambda answer: decode_block(answer.body), version)


def _transaction(connection: Connection, version: int) -> PreparedCall[tuple[Any, LedgerState | None]]:
    """Prepare the read of a committed transaction; the result is the transaction, and the head of the answer."""
    asked = f"transaction of version {version}"

    def read(answer: Answer) -> tuple[Any, LedgerState | None]:
        return _only_transaction(answer, asked), answer.parsed.ledger

    request = connection.request("GET", path("transactions", "by_version", version))
    return PreparedCall(request, asked, read, version)


def _transaction_by_hash(connection: Connection, text: str) -> PreparedCall[Any]:
    """Prepare the read of a transaction by its hash; the answer is not stored, since it may be pending."""
    digits = text.lower().removeprefix("0x")
    if len(digits) != _HASH_DIGITS or not set(digits) <= set("0123456789abcdef"):
        raise InputError(
            f"{shorten(text)} is not a ledger version: expected a whole number, or a transaction hash of 64 hex digits"
        )
    asked = f"transaction 0x{digits}"
    request = connection.request("GET", path("transactions", "by_hash", f"0x{digits}"))
    return PreparedCall(request, asked, lambda answer: _only_transaction(answer, asked))


def _transaction_page(
    connection: Connection, start: int, limit: int
) -> PreparedCall[tuple[list[Any], LedgerState | None]]:
    """Prepare the read of a page of committed transactions; the result is the transactions, and the head.

    A transaction that cannot be decoded is a `MalformedTransaction`.
    """
    asked = f"transactions {start} to {start + limit - 1}"

    def read(answer: Answer) -> tuple[list[Any], LedgerState | None]:
        found = _page(answer, asked)
        for one in found:
            if isinstance(one, MalformedTransaction):
                one.problem = connection.mask(one.problem)
        return found, answer.parsed.ledger

    request = connection.request("GET", "/transactions", query={"start": start, "limit": limit})
    return PreparedCall(request, asked, read)


def _gas_price(connection: Connection) -> PreparedCall[GasPriceEstimate]:
    """Prepare the read of the price estimates."""
    request = connection.request("GET", "/estimate_gas_price")
    return PreparedCall(request, "gas price estimate", lambda answer: decode_gas_price_estimate(answer.body))


def _only_transaction(answer: Answer, asked: str) -> Any:
    """Decode an answer that is one transaction, and check all of its numbers, addresses and times."""
    try:
        found = decode_transactions(answer.body)
        for one in found:
            check_transaction(one)
    except SchemaError as error:
        raise SchemaError(f"{asked}: {error}") from None
    if len(found) != 1:
        raise SchemaError(f"{asked}: expected one transaction, the answer has {len(found)}")
    if isinstance(found[0], GenericTransaction) and found[0].type is None and found[0].version_text is None:
        raise SchemaError(f"{asked}: expected a transaction with `type` and `version`, got {answer.body[:60]!r}")
    return found[0]


def _page(answer: Answer, asked: str) -> list[Any]:
    """Decode transactions; an answer of which every one is malformed is not a page of transactions."""
    try:
        found = decode_page(answer.body)
    except SchemaError as error:
        raise SchemaError(f"{asked}: {error}") from None
    malformed = [one for one in found if isinstance(one, MalformedTransaction)]
    if malformed and len(malformed) == len(found):
        raise SchemaError(f"{asked}: {malformed[0].problem}")
    return found


# what a node offers --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class Probe:
    """What a node answers, as `Node.probe` found out.

    Attributes
    ----------
    node : str
    chain_id : int
    head, claimed_oldest : int
        As the node says.
    oldest_readable : int or None
        Lowest version at which a view answered; None if none did.
    oldest_is_exact : bool or None
        True if the version before it did not answer, or is not claimed to be readable. If False, versions up to a
        thousandth of the range below it may answer too. None if no view answered.
    gas_header : bool
        Whether the answers of views have the gas used.
    gas_stable : bool or None
        Whether repeated reads at one version have the same gas; None without the header.
    offers : dict of str to bool
        Reads beside the three operations, by name.
    requests : int
        Number of requests that were sent.
    """

    node: str
    chain_id: int
    head: int
    claimed_oldest: int
    oldest_readable: int | None
    gas_header: bool
    gas_stable: bool | None
    offers: dict[str, bool]
    requests: int = 0
    oldest_is_exact: bool | None = None

    def facts(self) -> dict[str, Any]:
        """Return the attributes by name; the reads as two lists, ``offers`` and ``does_not_offer``."""
        names = (
            "node",
            "chain_id",
            "head",
            "claimed_oldest",
            "oldest_readable",
            "oldest_is_exact",
            "gas_header",
            "gas_stable",
            "requests",
        )
        return {name: getattr(self, name) for name in names} | {
            "offers": [name for name, there in self.offers.items() if there],
            "does_not_offer": [name for name, there in self.offers.items() if not there],
        }

    def __repr__(self) -> str:
        there = [name for name, offered in self.offers.items() if offered]
        oldest = "no version" if self.oldest_readable is None else f"{self.oldest_readable} to {self.head}"
        gas = "no gas" if not self.gas_header else "stable gas" if self.gas_stable else "gas that varies"
        text = f"chain {self.chain_id}, views answer at {oldest} with {gas}, {len(there)} of {len(self.offers)} reads"
        return visible(f"<Probe of {self.node}: {text}>", 300)

    def _repr_html_(self) -> str:
        facts = {name: ", ".join(value) if isinstance(value, list) else value for name, value in self.facts().items()}
        return facts_html(f"probe of {self.node}", [(name, value) for name, value in facts.items() if value != ""])


def probe(node: Node) -> Probe:
    """Probe a node; see `Node.probe`."""

    def answers(ask: Callable[[], Any]) -> Any:
        """Return the answer, None if the node refuses."""
        try:
            return ask()
        except NodeError:
            return None

    ledger = node.ledger()
    seen = [answers(lambda: node.view(_VIEW, ledger_version=ledger.version)) for _ in range(_REPEATS)]
    gas = [result.gas_used if result else None for result in seen]
    found = _oldest(node, answers, ledger.oldest_version, ledger.version) if seen[0] else (None, None)
    offers = {name: answers(ask) is not None for name, ask in _further_reads(node, ledger.version).items()}
    known = None not in gas
    return Probe(
        node=node.name,
        chain_id=ledger.chain_id,
        head=ledger.version,
        claimed_oldest=ledger.oldest_version,
        oldest_readable=found[0],
        oldest_is_exact=found[1],
        gas_header=known,
        gas_stable=len(set(gas)) == 1 if known else None,
        offers=offers,
    )


def _oldest(node: Node, answers: Callable[[Callable[[], Any]], Any], claimed: int, head: int) -> tuple[int, bool]:
    """Return the oldest readable version and whether it is exact, by bisection between the claimed one and the head."""

    def readable(version: int) -> bool:
        return answers(lambda: node.view(_VIEW, ledger_version=version)) is not None

    if readable(claimed):
        return claimed, True
    low, high = claimed, head
    for _ in range(_MAX_HALVINGS):
        if high - low <= 1:
            break
        middle = (low + high) // 2
        low, high = (low, middle) if readable(middle) else (middle, high)
    return high, high - low <= 1


def _further_reads(node: Node, head: int) -> dict[str, Callable[[], Any]]:
    return {
        "node info": lambda: node.info().node_role or None,  # the role is not in the headers of POST operations
        "module": lambda: node.module("0x1", "timestamp", ledger_version=head),
        "resource": lambda: node.resource("0x1", "0x1::timestamp::CurrentTimeMicroseconds", ledger_version=head),
        "account": lambda: node.account_and_head("0x1"),
        "block by version": lambda: node.block(head),
        "transaction by version": lambda: node.transaction(head),
        "transactions by page": lambda: node.transactions(head, 1),
        "gas price estimate": node.gas_price,
    }
