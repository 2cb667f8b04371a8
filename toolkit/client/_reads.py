"""The reads of a node, sent one at a time or many at once, and the check that it still serves the same ledger.

A node may offer only some of the reads; `Node.probe` finds out which. Code built on reads, such as fetch functions and
results, takes a `Reads`; its subclass `Node` adds the methods that only users call. `LedgerGuard` checks that a node
still serves the same ledger. Comparing chain ids is not enough, because a test network keeps its chain id when it is
reset. A fetch therefore also reads the hash of one transaction, the anchor, at the start and again later, and checks
that neither the head nor the oldest version has decreased.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import msgspec

from toolkit import errors
from toolkit._present.messages import shorten
from toolkit.client._abis import Abis, AbiStore, ListedModule, abi_of
from toolkit.client._calls import Encoding, PreparedView, ViewResult
from toolkit.client._http import Answer, Outcomes, PreparedCall, Sendable, json_body, path
from toolkit.client._node_errors import ABSENT
from toolkit.client._versions import Versions, as_version, as_version_or_head, first_versions_from
from toolkit.client._warnings import warn_caller
from toolkit.move import ModuleAbi, decode_json, decode_module_abi, parse_address, parse_type_tag
from toolkit.move._ids import wire_address
from toolkit.move._json_text import is_u64, parse_json
from toolkit.move._type_tags import wire_type
from toolkit.wire import AccountInfo, BlockInfo, GasPriceEstimate, GasSchedule, LedgerState, NodeInfo, ViewFunction
from toolkit.wire._responses import decode_account, decode_block, decode_gas_price_estimate, decode_transaction_hash
from toolkit.wire._rows import check_transactions
from toolkit.wire._transactions import GenericTransaction, MalformedTransaction, decode_page, decode_transactions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    import pandas as pd

    from toolkit.client._cache import AnswerCache
    from toolkit.client._connection import Connection
    from toolkit.client._transaction_data import TransactionFrames

T = TypeVar("T")
# A result, and the node's head if the response reports it.
WithHead: TypeAlias = "tuple[T, LedgerState | None]"
# A function and its arguments that connect to a node again.
Reconnect: TypeAlias = "tuple[Callable[..., AbstractContextManager[Reads]], tuple[Any, ...]]"

_HASH_DIGITS = 64  # of 32 bytes


class Reads:
    """The reads of a node, except simulations, and the methods that prepare and send calls.

    Parameters
    ----------
    connection : Connection
    name : str
    encoding : {"json", "bcs"}
    abis : mapping of (address, module name) to ModuleAbi
        ABIs to use instead of the node's.
    clock : callable
        Returns the time in seconds; replaced in tests.
    """

    def __init__(
        self, connection: Connection, *, name: str, encoding: Encoding, abis: Abis, clock: Callable[[], float]
    ) -> None:
        self.url = connection.url
        self.name = name
        self.encoding = encoding
        self.abis = AbiStore(self.module_answer, overrides=abis, clock=clock)
        # Reconnects to the node, as a pickle does; None if the caller supplied the transport.
        self.reconnect: Reconnect | None = None
        # What identifies the ledger that the last fetch or run read, see `LedgerAnchor.taken`.
        self.anchor: LedgerAnchor | None = None
        # The oldest version at which a view answered a probe.
        self.probed_oldest: int | None = None
        self._connection = connection
        # Send one call, or many at once; return a request to a path below the base URL.
        self.one, self.many, self.request = connection.perform, connection.perform_many, connection.request
        self.fresh = connection.fresh  # bypasses the cache in this thread
        self.mask_error = connection.credentials.mask_error  # for errors that quote a response
        self.ledger_changed = connection.cache.ledger_changed  # forgets the responses cached since a Unix time

    @property
    def cache(self) -> AnswerCache | None:
        """Cache of responses to pinned reads, with ``stats()`` and ``clear()``; None if caching is off."""
        self._connection.check_open()
        return self._connection.cache.answers

    @property
    def newest(self) -> LedgerState | None:
        """The ledger state with the highest head seen so far; None before the first response."""
        return self._connection.newest

    def expect_chain(self, chain_id: int) -> None:
        """Expect this chain id in every response: a response with another one raises `LedgerChanged`."""
        self._connection.expect_chain(chain_id, "node")

    # sending ------------------------------------------------------------------------------------------------------

    def _get(
        self, asked: str, read: Callable[[Answer], T], *parts: str | int, pin: int | None = None, **query: Any
    ) -> PreparedCall[T]:
        """Prepare a GET request; `pin` is the version of a pinned read, and query parameters of None are omitted."""
        return PreparedCall(self.request("GET", path(*parts), query=query), asked, read, pin)

    # views and table items ----------------------------------------------------------------------------------------

    def prepare_view(self, call: ViewFunction, ledger_version: int | None = None) -> PreparedCall[ViewResult]:
        """Prepare a view at one version."""
        return PreparedView(self, call).at(as_version_or_head(ledger_version))

    def prepare_raw_item(self, handle: str, key: bytes, ledger_version: int) -> PreparedCall[bytes]:
        """Prepare the read of a table item by its BCS key; the result is also BCS."""
        asked = f"raw item {key.hex()[:20]} of table {handle}"
        return self._by_key(asked, key, ledger_version, "tables", handle, "raw_item")

    def prepare_state_value(self, key: bytes, ledger_version: int) -> PreparedCall[bytes]:
        """Prepare the read of a stored value with the metadata of its slot, by its state key; both are BCS."""
        asked = f"state value 0x{key.hex()[:40]}"
        return self._by_key(asked, key, ledger_version, "experimental", "state_values", "raw")

    def _by_key(self, what: str, key: bytes, ledger_version: int, *where: str) -> PreparedCall[bytes]:
        """Prepare the read of a value by a key; both are BCS."""
        asked, query = f"{what} at version {ledger_version:,}", {"ledger_version": ledger_version}
        body = json_body({"key": f"0x{key.hex()}"})
        request = self.request("POST", path(*where), body=body, query=query, accept="application/x-bcs")
        return PreparedCall(request, asked, lambda answer: answer.bcs(asked), ledger_version)

    def _if_present(self, call: PreparedCall[T]) -> T | None:
        """Send a call; return None if the node reports that the item does not exist."""
        try:
            return self.one(call)
        except errors.NotFound as error:
            if error.error_code not in ABSENT:
                raise
            return None

    # the node and its ledger --------------------------------------------------------------------------------------

    def info(self) -> NodeInfo:
        """Return the node's own description, from ``GET /v1``.

        If the node does not offer ``GET /v1``, the ledger's state is read from the headers of a view or table item, and
        ``node_role`` is empty.

        Returns
        -------
        NodeInfo

        Raises
        ------
        NodeError, NodeUnreachable, SchemaError
            If the node returns an error, does not respond, or sends a response that cannot be decoded.
        """
        return self._connection.describe()

    def ledger(self) -> LedgerState:
        """Return the state of the ledger at the node's head, from ``GET /v1`` or the headers of a POST.

        Returns
        -------
        LedgerState

        Raises
        ------
        NodeError, NodeUnreachable, SchemaError
            If the node returns an error, does not respond, or sends a response that cannot be decoded.

        Examples
        --------
        >>> import toolkit
        >>> toolkit.connect().ledger().oldest_version
        0
        """
        return self.info().ledger

    def oldest_readable(self, ledger: LedgerState) -> int:
        """Return the oldest version at which plans may start, as reported by the node or found by a probe."""
        return max(ledger.oldest_version, self.probed_oldest or 0)

    def first_from(self, times: Sequence[datetime], ledger: LedgerState) -> list[int]:
        """Return the first version at or after each time: -1 if it may be pruned, head + 1 if it does not exist yet."""

        def blocks_of(versions: Sequence[int]) -> list[BlockInfo]:
            found: dict[int, BlockInfo] = {}
            for place, block in self.many(map(self.prepare_block, versions)):
                if isinstance(block, errors.ToolkitError):
                    raise block
                found[place] = block
            return [found[place] for place in range(len(versions))]

        return first_versions_from(times, ledger, blocks_of)

    def past_version(self, ledger_version: int) -> int:
        """Return the version that a number denotes: negative numbers count from the head, and -1 is the head."""
        version = as_version(ledger_version, least=-(2**63))
        if version < 0:
            version += self.ledger().version + 1
        if version < 0:
            raise errors.InputError(
                f"version {ledger_version} does not exist: counting back from the head gives a version below 0"
            )
        return version

    def version_or_head(self, ledger_version: int | None) -> int:
        """Return the given version, or the head version if it is None."""
        given = as_version_or_head(ledger_version)
        return self.ledger().version if given is None else given

    def gas_price(self) -> GasPriceEstimate:
        """Return the node's price estimates, in octas per gas unit, from ``GET /v1/estimate_gas_price``.

        Raises
        ------
        NodeError, NodeUnreachable
            If the node returns an error or does not respond.
        """
        read = lambda answer: decode_gas_price_estimate(answer.body)  # noqa: E731
        return self.one(self._get("gas price estimate", read, "estimate_gas_price"))

    def gas_schedule(self, ledger_version: int | None = None) -> GasSchedule:
        """Return the on-chain gas schedule.

        Parameters
        ----------
        ledger_version : int, optional
            Version whose state is read; the head by default.

        Returns
        -------
        GasSchedule
            Has ``feature_version`` and ``entries``, the value of each parameter by name.

        Raises
        ------
        NodeError, NodeUnreachable
            If the node returns an error or does not respond.

        See Also
        --------
        toolkit.schedule_diff : Compares two gas schedules.

        Notes
        -----
        Source: the resource ``0x1::gas_schedule::GasScheduleV2`` at ``0x1``.

        Examples
        --------
        >>> import toolkit
        >>> toolkit.connect().gas_schedule(100).feature_version > 0
        True
        """
        version = as_version_or_head(ledger_version)
        data, _ = self.one(self.prepare_resource("0x1", "0x1::gas_schedule::GasScheduleV2", version))
        return GasSchedule.from_resource(data)

    # modules, resources and accounts ------------------------------------------------------------------------------

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
            If the lookup fails.
        """
        return self.abis.at(self.version_or_head(ledger_version)).module_abi(address, name)

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
            Python values by field. If the response does not report the head version, values have the form of the node's
            JSON.

        Raises
        ------
        NotFound
            If the account has no such resource.
        InputError, SchemaError
            If `tag` cannot be parsed, or the resource does not fit its type.
        NodeError, NodeUnreachable
            If the node returns another error or does not respond.

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
        data, head = self.one(self.prepare_resource(address, tag, version))
        read = head.version if version is None and head is not None else version
        if read is None:
            return data
        try:
            return decode_json(self.abis.at(read).layout(parsed), data, where=tag)
        except errors.SchemaError as error:
            self.mask_error(error)
            raise

    def resource_json(self, address: str, tag: str, ledger_version: int) -> Any:
        """Return the JSON of a resource at a version, or None if it does not exist."""
        found = self._if_present(self.prepare_resource(address, tag, ledger_version))
        return None if found is None else found[0]

    def prepare_resource(self, address: str, tag: str, ledger_version: int | None) -> PreparedCall[WithHead[Any]]:
        """Prepare the read of a resource; the result contains the data as JSON and the node's head."""
        address, tag = wire_address(parse_address(address)), wire_type(parse_type_tag(tag))

        def read(answer: Answer) -> WithHead[Any]:
            document = parse_json(answer.body, f"resource {tag}")
            if not isinstance(document, dict) or "data" not in document:
                got = repr(answer.body[:60])
                raise errors.SchemaError(f"resource {tag}: expected an object with `type` and `data`, got {got}")
            return document["data"], answer.parsed.ledger

        at = "" if ledger_version is None else f" at version {ledger_version:,}"
        where, pin = ("accounts", address, "resource", tag), ledger_version
        return self._get(f"resource {tag} of {address}{at}", read, *where, pin=pin, ledger_version=pin)

    def prepare_account(self, address: str, ledger_version: int | None = None) -> PreparedCall[WithHead[AccountInfo]]:
        """Prepare the read of an account's sequence number and authentication key, and of the node's head.

        The response is never stored.
        """
        address = wire_address(parse_address(address))
        read = lambda answer: (decode_account(answer.body), answer.parsed.ledger)  # noqa: E731
        return self._get(f"account {address}", read, "accounts", address, ledger_version=ledger_version)

    def prepare_sequence_number(self, address: str) -> PreparedCall[int]:
        """Prepare the view of an account's sequence number, for nodes that do not offer accounts."""
        view = self.prepare_view(ViewFunction("0x1::account::get_sequence_number", arguments=(address,)))

        def read(answer: Answer) -> int:
            result = view.finish(answer)
            try:
                return int(result.value)  # without an ABI it is text
            except (TypeError, ValueError):
                got = f"{result.value!r:.80}"
                raise errors.SchemaError(f"{result.call.function}: expected one u64, got {got}") from None

        return PreparedCall(view.request, view.asked, read)

    def module_answer(self, address: str, name: str, version: int) -> bytes | None:
        """Return the node's response for a module, or None if the module does not exist."""

        def read(answer: Answer) -> bytes:
            abi_of(answer.body)  # an answer that is not a module is not stored
            return answer.body

        asked, where = f"module {address}::{name} at version {version:,}", ("accounts", wire_address(address))
        return self._if_present(self._get(asked, read, *where, "module", name, pin=version, ledger_version=version))

    def account_page(
        self, address: str, what: str, ledger_version: int, start: str | None = None
    ) -> tuple[list[Any], str | None]:
        """Return a page of the ``modules`` or ``resources`` of an account, and the start of the next page.

        The response is never stored, because the cache does not support cursors.
        """
        asked = f"{what} of account {wire_address(address)} at version {ledger_version:,}"
        text, value, kind = ("type", "data", dict) if what == "resources" else ("bytecode", "bytecode", str)

        def fits(row: Any) -> bool:
            return isinstance(row, dict) and isinstance(row.get(text), str) and isinstance(row.get(value), kind)

        def read(answer: Answer) -> tuple[list[Any], str | None]:
            rows = parse_json(answer.body, asked)
            if not isinstance(rows, list) or not all(map(fits, rows)):
                got = f"{answer.body[:60]!r}"
                raise errors.SchemaError(f"{asked}: expected a list of objects with `{text}` and `{value}`, got {got}")
            if what == "resources":
                return rows, answer.parsed.cursor
            abis = [None if row.get("abi") is None else decode_module_abi(row) for row in rows]
            sizes = [len(row["bytecode"].removeprefix("0x")) // 2 for row in rows]
            return list(map(ListedModule, abis, sizes)), answer.parsed.cursor

        where = ("accounts", wire_address(address), what)
        return self.one(self._get(asked, read, *where, ledger_version=ledger_version, start=start))

    # blocks and transactions --------------------------------------------------------------------------------------

    def prepare_block(self, ledger_version: int) -> PreparedCall[BlockInfo]:
        """Prepare the read of the block that contains a version, without its transactions."""
        version = as_version(ledger_version)
        read = lambda answer: decode_block(answer.body)  # noqa: E731
        return self._get(f"block of version {version:,}", read, "blocks", "by_version", version, pin=version)

    def block(self, ledger_version: int) -> BlockInfo:
        """Return the block that contains a version, without its transactions.

        Raises
        ------
        NodeError, NodeUnreachable
            If the node returns an error or does not respond.

        Notes
        -----
        Source: ``GET /v1/blocks/by_version/{version}``.
        """
        return self.one(self.prepare_block(ledger_version))

    def transaction(self, ledger_version: int | str) -> Any:
        """Return a committed transaction, decoded.

        Parameters
        ----------
        ledger_version : int or str
            Version or hash (0x and 64 hex digits) of the transaction. A hash may also belong to a pending transaction.

        Raises
        ------
        InputError
            If `ledger_version` is neither a version nor a hash.
        NotFound
            If the transaction does not exist, or does not exist yet.
        NodeError, NodeUnreachable, SchemaError
            If the node returns another error, does not respond, or sends a response that cannot be decoded.

        Notes
        -----
        Source: ``GET /v1/transactions/by_version/{version}`` or ``/by_hash/{hash}``.
        """
        if isinstance(ledger_version, str):
            digits = ledger_version.lower().removeprefix("0x")
            if len(digits) != _HASH_DIGITS or not set(digits) <= set("0123456789abcdef"):
                raise errors.InputError(
                    f"{shorten(ledger_version)} is not a ledger version: expected a whole number, or a transaction "
                    "hash of 64 hex digits"
                )
            asked = f"transaction 0x{digits}"  # not stored, since it may be pending
            read = lambda answer: _only_transaction(answer, asked)  # noqa: E731
            return self.one(self._get(asked, read, "transactions", "by_hash", f"0x{digits}"))
        version = as_version(ledger_version)
        asked = f"transaction of version {version:,}"
        read = lambda answer: _only_transaction(answer, asked)  # noqa: E731
        return self.one(self._get(asked, read, "transactions", "by_version", version, pin=version))

    def transaction_hash(self, ledger_version: int) -> WithHead[str]:
        """Return the hash of a committed transaction, which identifies the ledger, and the node's head."""
        asked = f"transaction of version {ledger_version:,}"
        read = lambda answer: (decode_transaction_hash(answer.body), answer.parsed.ledger)  # noqa: E731
        return self.one(self._get(asked, read, "transactions", "by_version", ledger_version, pin=ledger_version))

    def prepare_transactions(self, start: int, limit: int) -> PreparedCall[WithHead[list[Any]]]:
        """Prepare the read of a page of committed transactions; the result also contains the node's head.

        A transaction that cannot be decoded is returned as a `MalformedTransaction`.
        """
        start = as_version(start)
        asked = f"transactions {start:,} to {start + limit - 1:,}"

        def read(answer: Answer) -> WithHead[list[Any]]:
            found = _page(answer, asked)
            for one in found:
                if isinstance(one, MalformedTransaction):
                    one.problem = self._connection.credentials.mask(one.problem)
            return found, answer.parsed.ledger

        return self._get(asked, read, "transactions", start=start, limit=limit)

    def transactions(self, start: int, limit: int = 100) -> list[Any]:
        """Return a page of committed transactions, decoded.

        Parameters
        ----------
        start : int
            First ledger version.
        limit : int, default 100
            Maximum number of transactions. The node may return fewer; `fetch_transactions` reads the rest.

        Returns
        -------
        list

        Raises
        ------
        NodeError, NodeUnreachable
            If the node returns an error or does not respond.
        SchemaError
            If the response, or one of its transactions, cannot be decoded.

        Notes
        -----
        Source: ``GET /v1/transactions?start=&limit=``.
        """
        found, _ = self.one(self.prepare_transactions(start, limit))
        for one in found:
            if isinstance(one, MalformedTransaction):
                raise errors.SchemaError(f"transactions {start:,} to {start + limit - 1:,}: {one.problem}")
        return found


class TransactionStore(ABC):
    """Committed transactions that were stored earlier; `toolkit.Archive` is one implementation."""

    @property
    @abstractmethod
    def node(self) -> Reads:
        """The node that reads from the store."""

    @abstractmethod
    def transactions(self, versions: Versions) -> TransactionFrames:
        """Return transactions, as `fetch_transactions` does."""

    @abstractmethod
    def events_of(self, event_type: str, versions: Versions) -> pd.DataFrame:
        """Return the events of a type, as `fetch_events` does."""


def _only_transaction(answer: Answer, asked: str) -> Any:
    """Decode a response that is one transaction, and check all of its numbers, addresses and times."""
    try:
        found = decode_transactions(answer.body)
        check_transactions(found)
    except errors.SchemaError as error:
        raise errors.SchemaError(f"{asked}: {error}") from None
    if len(found) != 1:
        raise errors.SchemaError(f"{asked}: expected one transaction, got {len(found)}")
    if isinstance(found[0], GenericTransaction) and found[0].type is None and found[0].version_text is None:
        raise errors.SchemaError(f"{asked}: expected a transaction with `type` and `version`, got {answer.body[:60]!r}")
    return found[0]


def _page(answer: Answer, asked: str) -> list[Any]:
    """Decode transactions; if all are malformed and no ledger is named, the response is not a page of transactions."""
    try:
        found = decode_page(answer.body)
    except errors.SchemaError as error:
        raise errors.SchemaError(f"{asked}: {error}") from None
    malformed = [one for one in found if isinstance(one, MalformedTransaction)]
    if malformed and len(malformed) == len(found) and answer.parsed.ledger is None:
        raise errors.SchemaError(f"{asked}: {malformed[0].problem}")
    return found


Task = TypeVar("Task")
VersionTask = TypeVar("VersionTask", bound=tuple[Any, int])

# Errors that are the outcome of one call. Any other error, such as from a closed node, ends all calls.
_OUTCOMES = (errors.InputError, errors.NodeError, errors.NodeUnreachable, errors.SchemaError)


def send_all(node: Reads, tasks: Sequence[Task], prepare: Callable[[Task], Sendable[T]]) -> Outcomes[T]:
    """Prepare tasks, send them at once, and yield (position, result or error) as responses arrive.

    A single task is sent in this thread, so that nobody waits for another one.

    Parameters
    ----------
    node : Reads
    tasks : sequence
    prepare : callable
        Returns the call of a task, or the error that is its outcome. If it raises an error because the task cannot be
        sent or a module cannot be looked up, that error is the outcome too.

    Yields
    ------
    tuple of (int, result or error)
        One per task, in the order of completion.
    """

    def prepared(task: Task) -> Sendable[T]:
        try:
            return prepare(task)
        except _OUTCOMES as error:
            return error

    if len(tasks) > 1:
        yield from node.many(map(prepared, tasks))
        return
    for task in tasks:
        outcome: T | errors.ToolkitError
        try:
            call = prepare(task)
            outcome = call if isinstance(call, errors.ToolkitError) else node.one(call)
        except _OUTCOMES as error:
            outcome = error
        yield 0, outcome


# Time between two checks of a fetch, in seconds.
_INTERVAL_S = 60.0
# Waits between attempts if the head seems to have decreased: a backend of a load balancer may lag for a while.
_PAUSES_S = (0.25, 0.5, 1.0, 2.0, 4.0)
_MISSING_CODES = frozenset({"transaction_not_found", "version_not_found"})
_NO_ANSWER = (errors.NodeError, errors.NodeUnreachable, errors.SchemaError)


class Anchor(msgspec.Struct, frozen=True):
    """The transaction by which a ledger is recognised."""

    version: int
    transaction_hash: str


@dataclass(frozen=True, slots=True)
class LedgerAnchor:
    """The facts that identify a ledger while it is read.

    Attributes
    ----------
    chain_id : int
    head : int
        Head when the anchor was taken; the head of the same ledger is never below it.
    oldest : int or None
        Oldest version when the anchor was taken; the oldest version of the same ledger is never below it.
    anchor : Anchor or None
        None if the node did not return the transaction.
    taken_s : float
        Unix time just before the anchor was taken, in seconds.
    """

    chain_id: int
    head: int
    oldest: int | None = None
    anchor: Anchor | None = None
    taken_s: float = field(default_factory=time.time, compare=False)

    @classmethod
    def taken(cls, node: Reads, version: int, *, ledger: LedgerState | None = None) -> LedgerAnchor:
        """Take an anchor: read the transaction at a version from the node, bypassing the cache.

        An earlier anchor of this `Node` is checked first, because the responses in its cache come from that ledger. It
        is returned if it is an anchor of `version`, or if the node does not respond.

        Parameters
        ----------
        node : Node
        version : int
            Version of the anchor transaction.
        ledger : LedgerState, optional
            State of the ledger that was read before, used if the node does not respond now.

        Raises
        ------
        LedgerChanged
            If the node serves a different ledger than at the earlier anchor.
        NodeError, NodeUnreachable
            If the node does not respond, and there is neither an earlier anchor nor `ledger`.
        """
        if (earlier := node.anchor) is not None:
            try:
                LedgerGuard(node, earlier).check()
            except _NO_ANSWER:
                return earlier
            if earlier.anchor is not None and earlier.anchor.version == version:
                return earlier
        taken_s, found = time.time(), None
        with node.fresh():
            try:
                transaction_hash, newest = node.transaction_hash(version)
                found = Anchor(version, transaction_hash)
            except _NO_ANSWER as error:
                newest = getattr(error, "ledger", None)
            ledger = newest or ledger or node.ledger()
        node.anchor = cls(ledger.chain_id, ledger.version, ledger.oldest_version, found, taken_s)
        return node.anchor


class LedgerGuard:
    """Compares the ledger of a node with an anchor.

    Parameters
    ----------
    node : Node
        Also an attribute.
    known : LedgerAnchor
    """

    def __init__(self, node: Reads, known: LedgerAnchor) -> None:
        self.node, self._known = node, known
        self._checked_at = time.monotonic()
        self._confirmed_s = known.taken_s

    def check(self) -> None:
        """Check that the node serves the ledger of the anchor.

        A head or oldest version lower than the anchor's is an error only if it persists for about eight seconds.

        Raises
        ------
        LedgerChanged
            If the node serves another ledger.
        NodeError, NodeUnreachable, SchemaError
            If the node does not respond.
        """
        began_s = time.time()
        with self.node.fresh():
            for pause_s in (*_PAUSES_S, None):
                if (doubt := self._doubt()) is None:
                    break
                if pause_s is None:
                    raise self._changed(doubt)
                time.sleep(pause_s)
        self._checked_at, self._confirmed_s = time.monotonic(), began_s

    def confirms(self) -> bool:
        """Check once, without retries; return False if the node does not respond or the result is in doubt.

        Raises
        ------
        LedgerChanged
            If the node serves another ledger.
        """
        try:
            with self.node.fresh(repeats=False):
                return self._doubt() is None
        except _NO_ANSWER:
            return False

    def check_if_due(self) -> None:
        """Check if the last check was at least a minute ago; if the node does not respond, try again later."""
        if time.monotonic() - self._checked_at >= _INTERVAL_S:
            try:
                self.check()
            except _NO_ANSWER:
                self._checked_at = time.monotonic()

    def check_at_end(self) -> None:
        """Check; if the node does not respond, only warn, so that earlier reads are not lost."""
        try:
            self.check()
        except _NO_ANSWER as error:
            warn_caller(f"could not check that {self.node.name} still serves the ledger that was read: {error}")

    def _doubt(self) -> str | None:
        """Compare once; return a difference that a lagging backend might also cause, or None.

        Raises
        ------
        LedgerChanged
            If the chain id or the anchor transaction differs.
        """
        known, anchor, node = self._known, self._known.anchor, self.node
        ledger: LedgerState | None = None
        doubt = None
        if anchor is not None:
            expected = f"expected transaction {anchor.version:,} to be {anchor.transaction_hash}"
            try:
                transaction_hash, ledger = node.transaction_hash(anchor.version)
                if transaction_hash != anchor.transaction_hash:
                    raise self._changed(f"{expected}, got {transaction_hash}")
            except errors.NotFound as error:
                ledger = error.ledger
                doubt = f"{expected}, but it is missing" if error.error_code in _MISSING_CODES else None
            except _NO_ANSWER:  # pruned meanwhile, not offered, or no answer: compare the description only
                ledger = None
        ledger = ledger or node.ledger()
        if ledger.chain_id != known.chain_id:
            raise self._changed(f"expected chain id {known.chain_id}, got {ledger.chain_id}")
        if doubt is None and ledger.version < known.head:
            doubt = f"expected a head of {known.head:,} or later, got {ledger.version:,}"
        if doubt is None and known.oldest is not None and ledger.oldest_version < known.oldest:
            doubt = f"expected an oldest version of {known.oldest:,} or later, got {ledger.oldest_version:,}"
        return doubt

    def _changed(self, why: str) -> errors.LedgerChanged:
        """Return the error to raise, after deleting the responses cached since the last successful check."""
        self.node.ledger_changed(self._confirmed_s)
        return errors.LedgerChanged(f"{self.node.name} now serves another ledger: {why}")


# Committed transactions per page: the service's default limit.
PAGE = 100


class Missing(NamedTuple):
    """A range of versions that were not read, both ends included, and why.

    `malformed` is the transaction of a range of one version, if the node returned it but it cannot be decoded.
    """

    first: int
    last: int
    error: errors.ToolkitError
    malformed: MalformedTransaction | None = None


@dataclass(frozen=True, slots=True)
class PageAnswer:
    """What one response contributes to a page.

    Attributes
    ----------
    found : list of (int, transaction)
        Requested versions that no earlier response contained, sorted, with their transactions.
    missing : list of Missing
        Requested versions that could not be read and are not requested again.
    head : LedgerState or None
        The node's head at the time of the response, if it is included.
    ended : bool
        Whether the page is complete: each of its versions was found or is missing.
    """

    found: list[tuple[int, Any]] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    head: LedgerState | None = None
    ended: bool = False


@dataclass(frozen=True, slots=True)
class _Task:
    """Versions of a page to request.

    Attributes
    ----------
    page : int
    versions : sequence of int
        Sorted, without duplicates, spanning at most `PAGE` versions.
    again : bool
        Whether a response has already omitted these versions; a version that is omitted twice is missing.
    """

    page: int
    versions: Sequence[int]
    again: bool = False


def pages_of(versions: Iterable[int]) -> list[list[int]]:
    """Group sorted versions into pages that span at most 100 versions each."""
    pages: list[list[int]] = []
    for version in versions:
        if pages and version < pages[-1][0] + PAGE:
            pages[-1].append(version)
        else:
            pages.append([version])
    return pages


def read_transactions(node: Reads, pages: Iterable[Sequence[int]]) -> Iterator[PageAnswer]:
    """Read committed transactions in pages, many pages at once.

    Parameters
    ----------
    node : Node
    pages : iterable of sequence of int
        The versions of each page: sorted, without duplicates, spanning at most 100.

    Yields
    ------
    PageAnswer
        In the order of the responses. Each version of `pages` is found once or missing once.

    Notes
    -----
    After a short response, the next request starts after the last version received. Versions that a response omits are
    requested once more. After that, they are missing, as are all versions of a request that fails. Transactions that
    were not requested are ignored, as is a version that a response contains twice with different contents. Each request
    returns a version or is the last request for its versions, so reading ends whatever the node returns.
    """
    tasks = [_Task(number, versions) for number, versions in enumerate(pages)]
    unsettled = Counter(task.page for task in tasks)
    while tasks:
        further: list[_Task] = []
        ends = [(task.versions[0], task.versions[-1]) for task in tasks]
        outcomes = node.many(node.prepare_transactions(first, last - first + 1) for first, last in ends)
        with closing(outcomes):
            for place, outcome in outcomes:
                task = tasks[place]
                failed = isinstance(outcome, errors.ToolkitError)
                taken, again = _failed(task, outcome) if failed else _answered(task, *outcome)  # type: ignore[arg-type, misc]
                further += again
                unsettled[task.page] += len(again) - 1
                yield replace(taken, ended=not unsettled[task.page])
        tasks = further


def _answered(task: _Task, answer: Sequence[Any], head: LedgerState | None) -> tuple[PageAnswer, list[_Task]]:
    """Return the wanted versions of a response, and what to request next: omitted versions once more, then the rest."""
    texts = [None if isinstance(one, MalformedTransaction) else one.version_text for one in answer]
    if texts == list(map(str, task.versions)):
        return PageAnswer(list(zip(task.versions, answer, strict=True)), head=head), []
    held, unusable = _by_version(answer, task.versions[0], task.versions[-1])
    reached = max((*held, *unusable), default=task.versions[-1])  # without any, all are left out
    found = [(version, held[version]) for version in task.versions if version in held]
    left_out = [version for version in task.versions if version <= reached and version not in held]
    behind = [version for version in task.versions if version > reached]
    further = [_Task(task.page, behind, task.again)] if behind else []
    if not task.again:
        return PageAnswer(found, head=head), [*([_Task(task.page, left_out, again=True)] if left_out else []), *further]
    missing = []
    for first, last in _ranges([version for version in left_out if version not in unusable]):
        which = f"version {first:,}" if first == last else f"versions {first:,} to {last:,}"
        missing.append(Missing(first, last, errors.SchemaError(f"the node's response omits {which}")))
    missing += [unusable[version] for version in left_out if version in unusable]
    return PageAnswer(found, sorted(missing, key=lambda one: one.first), head), further


def _failed(task: _Task, error: errors.ToolkitError) -> tuple[PageAnswer, list[_Task]]:
    """Return the versions of a failed request as missing, except versions that the error does not concern."""
    versions = task.versions
    ledger = error.ledger if isinstance(error, errors.NodeError) else None
    if isinstance(error, errors.VersionPruned) and ledger is not None:
        readable = [version for version in versions if version >= ledger.oldest_version]
        if readable and len(readable) < len(versions):  # the request began below the oldest version that the node has
            pruned = Missing(versions[0], versions[len(versions) - len(readable) - 1], error)
            return PageAnswer(missing=[pruned], head=ledger), [_Task(task.page, readable, task.again)]
    if ledger is not None and ledger.version < versions[0] and not task.again:  # a lagging backend of a load balancer
        return PageAnswer(head=ledger), [_Task(task.page, versions, again=True)]
    return PageAnswer(missing=[Missing(first, last, error) for first, last in _ranges(versions)], head=ledger), []


def _by_version(answer: Sequence[Any], first: int, last: int) -> tuple[dict[int, Any], dict[int, Missing]]:
    """Return the transactions of a response by version, and why others are unusable.

    A transaction of an unknown kind, or one that cannot be decoded, may have no version. Its version is then inferred
    from its position in the response, provided that all other transactions are at the positions of their versions.
    """
    texts = [getattr(one, "version_text", None) for one in answer]
    versions = [int(text) if is_u64(text) else None for text in texts]
    in_place = all(version in {None, first + place} for place, version in enumerate(versions))
    held: dict[int, Any] = {}
    unusable: dict[int, Missing] = {}
    for place, (version, one) in enumerate(zip(versions, answer, strict=True)):
        at = first + place if version is None and in_place else version
        if at is None or not first <= at <= last:
            continue
        malformed = one if isinstance(one, MalformedTransaction) else None
        if malformed is not None:
            problem = malformed.problem
        elif version is None and not isinstance(one, GenericTransaction):
            problem = "its version is not a decimal u64"
        elif at in held and held[at] != one:
            problem = "it occurs twice, with different contents"
        else:
            held[at] = one
            continue
        unusable[at] = Missing(at, at, errors.SchemaError(f"transaction {at}: {problem}"), malformed)
    return {version: one for version, one in held.items() if version not in unusable}, unusable


def _ranges(versions: Sequence[int]) -> list[tuple[int, int]]:
    """Group sorted versions into ranges of consecutive versions, both ends included."""
    runs = groupby(enumerate(versions), key=lambda numbered: numbered[1] - numbered[0])
    return [(run[0][1], run[-1][1]) for run in (list(group) for _, group in runs)]
