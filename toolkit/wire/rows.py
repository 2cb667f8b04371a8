"""Decoded transactions to columns: three dicts of plain Python lists, ready for Arrow.

Nothing is lost on the way: what has no column of its own stays in the JSON text of ``data``, ``payload`` or ``raw``.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec.structs import astuple

from toolkit._present.messages import escape
from toolkit.errors import InputError, SchemaError
from toolkit.wire.answers import collector_paused, malformed
from toolkit.wire.change_rows import CHANGE_ROWS
from toolkit.wire.gas import FEE_STATEMENT, FeeStatementTexts
from toolkit.wire.headers import timestamp_from_us
from toolkit.wire.spellings import Spellings, split_event_key
from toolkit.wire.structs import (
    BlockMetadataTransaction,
    GenericTransaction,
    GenesisTransaction,
    MalformedTransaction,
    PendingTransaction,
    UserTransaction,
)
from toolkit.wire.u64 import parse_u64_column

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from toolkit.wire.change_rows import Row
    from toolkit.wire.structs import Event, Transaction

__all__ = [
    "CHANGE_COLUMNS",
    "EVENT_COLUMNS",
    "TRANSACTION_COLUMNS",
    "Rows",
    "check_transaction",
    "checked_rows",
    "transaction_batches",
    "transaction_rows",
]

#: Columns of the transactions, in order. u64 columns hold ints, `success` bools, all else text.
TRANSACTION_COLUMNS: tuple[str, ...] = (
    "version",
    "hash",
    "type",
    "success",
    "vm_status",
    "gas_used",
    "sender",
    "sequence_number",
    "max_gas_amount",
    "gas_unit_price",
    "expiration_timestamp_secs",
    "replay_protection_nonce",
    "function",
    "payload_type",
    "payload",
    "signature_type",
    "timestamp_us",
    "epoch",
    "changes",
    "events",
    "total_charge_gas_units",
    "execution_gas_units",
    "io_gas_units",
    "storage_fee_octas",
    "storage_fee_refund_octas",
    "raw",
    "problem",
)
#: Columns of the changes, in order: `transaction_index` (position of the transaction in the batch), `version` and
#: `change_index` are ints, `key` and `value` bytes, all else text.
CHANGE_COLUMNS: tuple[str, ...] = (
    "transaction_index",
    "version",
    "change_index",
    "type",
    "address",
    "state_key_hash",
    "resource_type",
    "module",
    "handle",
    "key",
    "value",
    "key_type",
    "value_type",
    "data",
)
#: Columns of the events, in order: the first three and the two numbers are ints, all else text.
EVENT_COLUMNS: tuple[str, ...] = (
    "transaction_index",
    "version",
    "event_index",
    "type",
    "account_address",
    "creation_number",
    "sequence_number",
    "data",
)

_COLUMNS = (TRANSACTION_COLUMNS, CHANGE_COLUMNS, EVENT_COLUMNS)
_U64_TRANSACTION_COLUMNS = (
    "version",
    "gas_used",
    "sequence_number",
    "max_gas_amount",
    "gas_unit_price",
    "expiration_timestamp_secs",
    "replay_protection_nonce",
    "timestamp_us",
    "epoch",
    "total_charge_gas_units",
    "execution_gas_units",
    "io_gas_units",
    "storage_fee_octas",
    "storage_fee_refund_octas",
)


class Rows(NamedTuple):
    """Columns of the three tables; the lists of one dict have one length."""

    transactions: dict[str, list[Any]]
    changes: dict[str, list[Any]]
    events: dict[str, list[Any]]


class _Kind(msgspec.Struct, gc=False):
    type: str | None = None


class _Function(msgspec.Struct, gc=False):
    function: str | None = None


class _PayloadHead(msgspec.Struct, gc=False):
    type: str | None = None
    function: str | None = None
    transaction_payload: _Function | None = None


_decode_kind = msgspec.json.Decoder(_Kind).decode
_decode_payload_head = msgspec.json.Decoder(_PayloadHead).decode
_decode_fee_texts = msgspec.json.Decoder(FeeStatementTexts).decode
_NO_FEE = (None, None, None, None, None)


def transaction_rows(transactions: Iterable[Transaction]) -> Rows:
    """Turn decoded transactions into the columns of three tables.

    Parameters
    ----------
    transactions : iterable of Transaction
        As `decode_transactions`, `decode_simulation` or `iterate_transactions` give them.

    Returns
    -------
    Rows
        Transactions, changes and events, each a dict of column name to list. `function` of a multisig transaction
        is that of its inner payload; `problem` says what is wrong with a `MalformedTransaction`, null elsewhere.

    Raises
    ------
    SchemaError
        If one has a malformed number, address or hex text; `checked_rows` marks such a one instead.
    """
    rows = _rows(transactions, 0)
    return Rows(*({name: [] for name in names} for names in _COLUMNS)) if rows is None else rows


def checked_rows(transactions: Iterable[Transaction]) -> tuple[list[Transaction], Rows]:
    """Turn transactions into columns, one that does not fit being marked rather than raised.

    Parameters
    ----------
    transactions : iterable of Transaction
        As `decode_page` returns them.

    Returns
    -------
    tuple of (list of Transaction, Rows)
        Each transaction, or a `MalformedTransaction` in its place; and their columns, as `transaction_rows`
        returns them. Every number, address and time of what is not marked can be read.
    """
    found = list(transactions)
    try:
        rows = transaction_rows(found)
        _check_times(rows)
    except SchemaError:
        found = [_checked(one) for one in found]
        rows = transaction_rows(found)
    return found, rows


def check_transaction(transaction: Transaction) -> None:
    """Raise SchemaError if a number, an address, a hex text or a time of a transaction is malformed."""
    _check_times(transaction_rows([transaction]))


def _checked(transaction: Transaction) -> Transaction:
    try:
        check_transaction(transaction)
    except SchemaError as error:
        return malformed(transaction, str(error))
    return transaction


def _check_times(rows: Rows) -> None:
    latest = max((stamp for stamp in rows.transactions["timestamp_us"] if stamp is not None), default=0)
    if timestamp_from_us(latest) is None:
        raise SchemaError(f"timestamp: expected microseconds up to the year 9999, got {latest}", column="timestamp")


def transaction_batches(transactions: Iterable[Transaction], *, size: int = 1_000) -> Iterator[Rows]:
    """Turn decoded transactions into columns a batch at a time: the way to many of them, in little memory.

    Parameters
    ----------
    transactions : iterable of Transaction
        Best an iterator, as `iterate_transactions` gives it.
    size : int, default 1000
        Transactions in a batch.

    Yields
    ------
    Rows
        As `transaction_rows` gives them; `transaction_index` counts on from batch to batch.

    Raises
    ------
    SchemaError
        If a number, an address or a hex text in them is none.
    """
    remaining = iter(transactions)
    first = 0
    while batch := _rows(islice(remaining, size), first):
        yield batch
        first += len(batch.transactions["version"])
        del batch  # while the next one is made, this one need not stay


def _rows(transactions: Iterable[Transaction], first: int) -> Rows | None:
    """Return the columns of transactions, the first of which has the position `first`; None where there are none."""
    builder = _Builder(first)
    try:
        with collector_paused():
            for transaction in transactions:
                builder.add(transaction)
            rows = builder.finish()
            del builder  # its row tuples would all be looked at when the collector comes back
            return rows
    except (InputError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise SchemaError(f"a transaction does not have the documented shape: {escape(error)}") from error


class _Builder:
    """Row tuples of one batch."""

    def __init__(self, first: int) -> None:
        self._first = first
        self._transactions: list[Row] = []
        self._changes: list[Row] = []
        self._events: list[Row] = []
        self._known = Spellings()

    def add(self, transaction: Transaction) -> None:
        """Append the rows of one transaction."""
        position = self._first + len(self._transactions)
        if isinstance(transaction, GenericTransaction):
            self._transactions.append(self._generic_row(transaction))
            return
        if isinstance(transaction, MalformedTransaction):
            self._transactions.append(self._malformed_row(transaction))
            return
        if isinstance(transaction, PendingTransaction):
            self._transactions.append(self._pending_row(transaction))
            return
        changes, events = transaction.changes, transaction.events
        known, rows = self._known, CHANGE_ROWS
        self._transactions.append(self._executed_row(transaction, events))
        self._changes += [rows[type(item)](known, position, index, item) for index, item in enumerate(changes)]
        self._events += [_event_row(known, position, index, event) for index, event in enumerate(events)]

    def finish(self) -> Rows | None:
        """Turn the row tuples into columns; text becomes numbers a whole column at a time."""
        if not self._transactions:
            return None
        transactions = _columns(TRANSACTION_COLUMNS, self._transactions)
        for name in _U64_TRANSACTION_COLUMNS:
            transactions[name] = _numbers(transactions[name], name)
        changes = self._indexed(CHANGE_COLUMNS, self._changes, transactions["version"])
        events = self._indexed(EVENT_COLUMNS, self._events, transactions["version"])
        for name in ("creation_number", "sequence_number"):
            events[name] = _numbers(events[name], name)
        return Rows(transactions, changes, events)

    def _indexed(self, names: Sequence[str], rows: list[Row], versions: list[int | None]) -> dict[str, list[Any]]:
        """Return the columns of rows that start with their transaction's position; its version becomes the second."""
        position, version, *others = names
        columns = _columns((position, *others), rows)
        found = [versions[index - self._first] for index in columns[position]]
        return {position: columns[position], version: found, **columns}

    def _generic_row(self, transaction: GenericTransaction) -> Row:
        head = (transaction.version_text, transaction.hash, transaction.type)
        raw = transaction.raw.decode()
        return (*head, *(None,) * (len(TRANSACTION_COLUMNS) - len(head) - 2), raw, None)

    def _malformed_row(self, transaction: MalformedTransaction) -> Row:
        function = transaction.function
        with suppress(InputError):
            function = None if function is None else self._known.types[function]
        known = {
            "version": transaction.version_text,
            "hash": transaction.hash,
            "type": transaction.type,
            "function": function,
            "raw": transaction.raw.decode("utf-8", "replace"),
            "problem": transaction.problem,
        }
        return tuple(known.get(name) for name in TRANSACTION_COLUMNS)

    def _pending_row(self, transaction: PendingTransaction) -> Row:
        head = (None, transaction.hash, "pending_transaction", None, None, None)
        return (*head, *self._submitted(transaction), None, None, 0, 0, *_NO_FEE, None, None)

    def _executed_row(self, transaction: Any, events: Sequence[Event]) -> Row:
        submitted: Row
        if isinstance(transaction, UserTransaction):
            submitted = self._submitted(transaction)
        elif isinstance(transaction, GenesisTransaction):
            payload = transaction.payload_raw
            submitted = (*(None,) * 7, _decode_kind(payload).type, str(payload, "utf-8"), None)
        else:
            submitted = (None,) * 10
        return (
            transaction.version_text,
            transaction.hash,
            transaction.__struct_config__.tag,
            transaction.success,
            transaction.vm_status,
            transaction.gas_used_text,
            *submitted,
            transaction.timestamp_text,
            transaction.epoch_text if isinstance(transaction, BlockMetadataTransaction) else None,
            len(transaction.changes),
            len(events),
            *_fee_texts(events),
            None,
            None,
        )

    def _submitted(self, transaction: UserTransaction | PendingTransaction) -> Row:
        payload = transaction.payload_raw
        head = _decode_payload_head(payload)
        function = head.function
        if function is None and head.transaction_payload is not None:
            function = head.transaction_payload.function
        signature = transaction.signature_raw
        return (
            self._known.addresses[transaction.sender],
            transaction.sequence_number_text,
            transaction.max_gas_amount_text,
            transaction.gas_unit_price_text,
            transaction.expiration_timestamp_secs_text,
            transaction.replay_protection_nonce_text,
            None if function is None else self._known.types[function],
            head.type,
            str(payload, "utf-8"),
            None if bytes(signature) == b"null" else _decode_kind(signature).type,
        )


def _event_row(known: Spellings, position: int, index: int, event: Event) -> Row:
    guid = event.guid
    if guid is not None:
        address, creation_number = guid.account_address, guid.creation_number
    else:
        address, creation_number = split_event_key(event.key)
    return (
        position,
        index,
        known.types[event.type],
        known.addresses[address],
        creation_number,
        event.sequence_number_text,
        str(event.data, "utf-8"),
    )


def _columns(names: Sequence[str], rows: list[Row]) -> dict[str, list[Any]]:
    if not rows:
        return {name: [] for name in names}
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def _numbers(texts: list[str | None], name: str) -> list[int | None]:
    numbers = parse_u64_column([text for text in texts if text is not None], name)
    if len(numbers) == len(texts):
        return list(numbers)
    present = iter(numbers)
    return [None if text is None else next(present) for text in texts]


def _fee_texts(events: Sequence[Event]) -> tuple[str | None, ...]:
    for event in reversed(events):  # it is the last one
        if event.type == FEE_STATEMENT:
            return astuple(_decode_fee_texts(event.data))
    return _NO_FEE
