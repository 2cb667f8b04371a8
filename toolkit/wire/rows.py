"""Decoded transactions to columns: three dicts of plain Python lists, ready for Arrow.

Nothing is lost on the way: what has no column of its own stays in the JSON text of ``data``, ``payload`` or ``raw``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from toolkit.errors import InputError, SchemaError
from toolkit.move.address import parse_address
from toolkit.wire.answers import collector_paused
from toolkit.wire.gas import find_fee_statement
from toolkit.wire.integers import parse_u64, parse_u64_column, shorten
from toolkit.wire.structs import (
    BlockMetadataTransaction,
    DeleteModule,
    DeleteResource,
    DeleteTableItem,
    GenericChange,
    GenericTransaction,
    GenesisTransaction,
    PendingTransaction,
    UserTransaction,
    WriteModule,
    WriteResource,
    WriteTableItem,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from toolkit.wire.structs import Event, Transaction

__all__ = ["CHANGE_COLUMNS", "EVENT_COLUMNS", "TRANSACTION_COLUMNS", "Rows", "transaction_rows"]

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
)
_HANDLE_DIGITS = 64
_CREATION_NUMBER_BYTES = 8
# An address inside a type or function text that is not spelled canonically: 2 to 63 digits after its zeros.
_SHORT_ADDRESS = re.compile(r"0x[0-9a-fA-F]+(?=::)")


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


class _AbiHead(msgspec.Struct, gc=False):
    name: str


class _ModuleHead(msgspec.Struct, gc=False):
    abi: _AbiHead | None = None


class _ItemTypes(msgspec.Struct, gc=False):
    key_type: str | None = None
    value_type: str | None = None


_decode_kind = msgspec.json.Decoder(_Kind).decode
_decode_payload_head = msgspec.json.Decoder(_PayloadHead).decode
_decode_module_head = msgspec.json.Decoder(_ModuleHead).decode
_decode_item_types = msgspec.json.Decoder(_ItemTypes).decode
_NO_FEE = (None, None, None, None, None)


def transaction_rows(transactions: Iterable[Transaction]) -> Rows:
    """Turn decoded transactions into the columns of three tables.

    Parameters
    ----------
    transactions : iterable of Transaction
        As `decode_transactions`, `decode_simulation` or `iterate_transactions` give them. An iterator is read one
        by one, so that only one of its transactions is alive at a time.

    Returns
    -------
    Rows
        Transactions, changes and events, each a dict of column name to list. `function` of a multisig transaction
        is that of its inner payload.

    Raises
    ------
    SchemaError
        If a number, an address or a hex text in them is none.
    """
    builder = _Builder()
    try:
        with collector_paused():
            for transaction in transactions:
                builder.add(transaction)
            return builder.finish()
    except (InputError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise SchemaError(f"a transaction does not have the documented shape: {error}") from error


class _Builder:
    """Row tuples of one batch, with the spellings met so far (addresses and types repeat a lot)."""

    def __init__(self) -> None:
        self._transactions: list[tuple[Any, ...]] = []
        self._changes: list[tuple[Any, ...]] = []
        self._events: list[tuple[Any, ...]] = []
        self._addresses: dict[str, str] = {}
        self._handles: dict[str, str] = {}
        self._type_texts: dict[str, str] = {}
        self._change_rows: dict[type, Callable[[Any], tuple[Any, ...]]] = {
            WriteResource: self._write_resource,
            DeleteResource: self._delete_resource,
            WriteModule: self._write_module,
            DeleteModule: self._delete_module,
            WriteTableItem: self._write_table_item,
            DeleteTableItem: self._delete_table_item,
            GenericChange: self._generic_change,
        }

    def add(self, transaction: Transaction) -> None:
        """Append the rows of one transaction."""
        position = len(self._transactions)
        if isinstance(transaction, GenericTransaction):
            self._transactions.append(self._generic_row(transaction))
            return
        if isinstance(transaction, PendingTransaction):
            self._transactions.append(self._pending_row(transaction))
            return
        changes, events = transaction.changes, transaction.events
        self._transactions.append(self._executed_row(transaction, events))
        rows = self._change_rows
        self._changes += [(position, index, *rows[type(change)](change)) for index, change in enumerate(changes)]
        self._events += [(position, index, *self._event(event)) for index, event in enumerate(events)]

    def finish(self) -> Rows:
        """Turn the row tuples into columns; text becomes numbers a whole column at a time."""
        transactions = _columns(TRANSACTION_COLUMNS, self._transactions)
        for name in _U64_TRANSACTION_COLUMNS:
            transactions[name] = _numbers(transactions[name], name)
        versions = transactions["version"]
        changes = _indexed_columns(CHANGE_COLUMNS, self._changes, versions)
        events = _indexed_columns(EVENT_COLUMNS, self._events, versions)
        for name in ("creation_number", "sequence_number"):
            events[name] = _numbers(events[name], name)
        return Rows(transactions, changes, events)

    def _generic_row(self, transaction: GenericTransaction) -> tuple[Any, ...]:
        head = (transaction.version_text, transaction.hash, transaction.type)
        raw = transaction.raw.decode()
        return (*head, *(None,) * (len(TRANSACTION_COLUMNS) - len(head) - 1), raw)

    def _pending_row(self, transaction: PendingTransaction) -> tuple[Any, ...]:
        head = (None, transaction.hash, "pending_transaction", None, None, None)
        return (*head, *self._submitted(transaction), None, None, 0, 0, *_NO_FEE, None)

    def _executed_row(self, transaction: Any, events: Sequence[Event]) -> tuple[Any, ...]:
        submitted: tuple[Any, ...]
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
            *_fee_numbers(events),
            None,
        )

    def _submitted(self, transaction: UserTransaction | PendingTransaction) -> tuple[Any, ...]:
        payload = transaction.payload_raw
        head = _decode_payload_head(payload)
        function = head.function
        if function is None and head.transaction_payload is not None:
            function = head.transaction_payload.function
        signature = transaction.signature_raw
        return (
            self._address(transaction.sender),
            transaction.sequence_number_text,
            transaction.max_gas_amount_text,
            transaction.gas_unit_price_text,
            transaction.expiration_timestamp_secs_text,
            transaction.replay_protection_nonce_text,
            None if function is None else self._type_text(function),
            head.type,
            str(payload, "utf-8"),
            None if bytes(signature) == b"null" else _decode_kind(signature).type,
        )

    def _write_resource(self, change: WriteResource) -> tuple[Any, ...]:
        resource = change.data
        return (
            "write_resource",
            self._address(change.address),
            change.state_key_hash,
            self._type_text(resource.type),
            *(None,) * 6,
            str(resource.data, "utf-8"),
        )

    def _delete_resource(self, change: DeleteResource) -> tuple[Any, ...]:
        resource_type = self._type_text(change.resource)
        address = self._address(change.address)
        return ("delete_resource", address, change.state_key_hash, resource_type, *(None,) * 7)

    def _write_module(self, change: WriteModule) -> tuple[Any, ...]:
        address = self._address(change.address)
        abi = _decode_module_head(change.data).abi
        module = None if abi is None else f"{address}::{abi.name}"
        head = ("write_module", address, change.state_key_hash, None, module)
        return (*head, *(None,) * 5, str(change.data, "utf-8"))

    def _delete_module(self, change: DeleteModule) -> tuple[Any, ...]:
        address = self._address(change.address)
        head = ("delete_module", address, change.state_key_hash, None, self._type_text(change.module))
        return (*head, *(None,) * 6)

    def _write_table_item(self, change: WriteTableItem) -> tuple[Any, ...]:
        head = ("write_table_item", None, change.state_key_hash, None, None, self._handle(change.handle))
        return (*head, _bytes(change.key), _bytes(change.value), *self._item_data(change.data))

    def _delete_table_item(self, change: DeleteTableItem) -> tuple[Any, ...]:
        head = ("delete_table_item", None, change.state_key_hash, None, None, self._handle(change.handle))
        return (*head, _bytes(change.key), None, *self._item_data(change.data))

    def _item_data(self, data: msgspec.Raw) -> tuple[str | None, str | None, str | None]:
        text = str(data, "utf-8")
        if text == "null":
            return (None, None, None)
        types = _decode_item_types(data)
        key_type, value_type = types.key_type, types.value_type
        return (
            None if key_type is None else self._type_text(key_type),
            None if value_type is None else self._type_text(value_type),
            text,
        )

    def _generic_change(self, change: GenericChange) -> tuple[Any, ...]:
        return (change.type, *(None,) * 9, change.raw.decode())

    def _event(self, event: Event) -> tuple[Any, ...]:
        guid = event.guid
        if guid is not None:
            address, creation_number = guid.account_address, guid.creation_number
        else:
            address, creation_number = _split_event_key(event.key)
        return (
            self._type_text(event.type),
            self._address(address),
            creation_number,
            event.sequence_number_text,
            str(event.data, "utf-8"),
        )

    def _address(self, text: str) -> str:
        known = self._addresses.get(text)
        if known is None:
            known = self._addresses[text] = parse_address(text)
        return known

    def _handle(self, text: str) -> str:
        known = self._handles.get(text)
        if known is None:
            digits = self._address(text)[2:]
            known = self._handles[text] = "0x" + digits.rjust(_HANDLE_DIGITS, "0")
        return known

    def _type_text(self, text: str) -> str:
        """Return a type, module or function text with its addresses spelled canonically, all else as it came."""
        known = self._type_texts.get(text)
        if known is None:
            known = _SHORT_ADDRESS.sub(lambda match: self._address(match[0]), text)
            self._type_texts[text] = known
        return known


def _columns(names: Sequence[str], rows: list[tuple[Any, ...]]) -> dict[str, list[Any]]:
    if not rows:
        return {name: [] for name in names}
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def _indexed_columns(
    names: Sequence[str], rows: list[tuple[Any, ...]], versions: list[int | None]
) -> dict[str, list[Any]]:
    """Return the columns of rows that start with their transaction's position; its version becomes the second."""
    position, version, *others = names
    columns = _columns((position, *others), rows)
    return {position: columns[position], version: [versions[row] for row in columns[position]], **columns}


def _numbers(texts: list[str | None], name: str) -> list[int | None]:
    if None not in texts:
        return list(parse_u64_column(texts, name))  # type: ignore[arg-type]  # no None, just looked
    return [None if text is None else parse_u64(text, name) for text in texts]


def _fee_numbers(events: Sequence[Event]) -> tuple[int | None, ...]:
    statement = find_fee_statement(events)
    if statement is None:
        return _NO_FEE
    return (
        statement.total_charge_gas_units,
        statement.execution_gas_units,
        statement.io_gas_units,
        statement.storage_fee_octas,
        statement.storage_fee_refund_octas,
    )


def _bytes(text: str) -> bytes:
    """Return the bytes of wire hex; `bytes.fromhex` alone would skip white space."""
    try:
        data = bytes.fromhex(text[2:])
    except ValueError:
        data = None
    if data is None or text[:2] != "0x" or 2 * len(data) != len(text) - 2:
        raise SchemaError(f"expected hex of a table key or value, got {shorten(text)}")
    return data


def _split_event_key(key: str | None) -> tuple[str, str]:
    """Return address and creation number of an event key of 2022: 8 bytes little-endian, then the address."""
    if key is None:
        raise SchemaError("an event has neither a guid nor a key")
    data = _bytes(key)
    number = int.from_bytes(data[:_CREATION_NUMBER_BYTES], "little")
    return "0x" + data[_CREATION_NUMBER_BYTES:].hex(), str(number)
