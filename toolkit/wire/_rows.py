"""Columns of decoded transactions, state changes and events: three dicts of Python lists, ready for Arrow.

No data is lost: fields without a column remain in the JSON text of ``data``, ``payload`` or ``raw``.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import astuple

from toolkit._present.messages import escape, shorten
from toolkit.errors import InputError, SchemaError
from toolkit.move import parse_address
from toolkit.move._ids import parse_table_handle
from toolkit.move._json_text import parse_u64_column
from toolkit.wire import _transactions as wire
from toolkit.wire._gas import FEE_STATEMENT, FeeStatementTexts
from toolkit.wire._headers import timestamp_from_us
from toolkit.wire._transactions import collector_paused, malformed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from toolkit.wire._transactions import Event, Transaction


_Row: TypeAlias = tuple[Any, ...]

#: Columns of the transactions: `_NUMBERS` contain u64 numbers, `success` bools, all others text.
TRANSACTION_COLUMNS = tuple(
    """
    version hash type success vm_status gas_used sender fee_payer sequence_number max_gas_amount gas_unit_price
    expiration_timestamp_secs replay_protection_nonce function payload_type payload signature_type timestamp_us epoch
    changes events total_charge_gas_units execution_gas_units io_gas_units storage_fee_octas storage_fee_refund_octas
    raw problem
    """.split()  # noqa: SIM905 - names read better in rows
)
_NUMBERS = frozenset(
    """
    version gas_used sequence_number max_gas_amount gas_unit_price expiration_timestamp_secs replay_protection_nonce
    timestamp_us epoch total_charge_gas_units execution_gas_units io_gas_units storage_fee_octas
    storage_fee_refund_octas
    """.split()  # noqa: SIM905
)
#: Columns of the changes. `transaction_index` (position of the transaction), `version` and `change_index` contain ints,
#: `key` and `value` bytes, all others text.
CHANGE_COLUMNS = tuple(
    """
    transaction_index version change_index type address state_key_hash resource_type module handle key value key_type
    value_type data
    """.split()  # noqa: SIM905
)
#: Columns of the events. The first three and the two numbers contain ints, all others text.
EVENT_COLUMNS = tuple(
    "transaction_index version event_index type account_address creation_number sequence_number data".split()  # noqa: SIM905
)


class Rows(NamedTuple):
    """Columns of three tables, each a dict of column name to list; the lists of a table have the same length.

    Parameters
    ----------
    transactions, changes, events : dict of str to list
        Columns `TRANSACTION_COLUMNS`, `CHANGE_COLUMNS` and `EVENT_COLUMNS`.

    Examples
    --------
    >>> from toolkit.wire._rows import transaction_rows
    >>> rows = transaction_rows([])
    >>> sorted(rows.events)[:3], rows.events["type"]
    (['account_address', 'creation_number', 'data'], [])
    """

    transactions: dict[str, list[Any]]
    changes: dict[str, list[Any]]
    events: dict[str, list[Any]]


class _Kind(msgspec.Struct, gc=False):
    type: str | None = None


class _Signature(msgspec.Struct, gc=False):
    type: str | None = None
    fee_payer_address: str | None = None


class _Function(msgspec.Struct, gc=False):
    function: str | None = None


class _PayloadHead(msgspec.Struct, gc=False):
    type: str | None = None
    function: str | None = None
    transaction_payload: _Function | None = None


_decode_kind = msgspec.json.Decoder(_Kind).decode
_decode_signature = msgspec.json.Decoder(_Signature).decode
_decode_payload_head = msgspec.json.Decoder(_PayloadHead).decode
_decode_fee_texts = msgspec.json.Decoder(FeeStatementTexts).decode
_NO_FEE = (None, None, None, None, None)
_FEE_PAYER_SIGNATURE = "fee_payer_signature"


def transaction_rows(transactions: Iterable[Transaction]) -> Rows:
    """Return the columns of decoded transactions, of their changes and of their events.

    Parameters
    ----------
    transactions : iterable of Transaction
        As `decode_transactions`, `decode_page` or `decode_simulation` return them.

    Returns
    -------
    Rows
        Transactions, changes and events, each a dict of column name to list. `function` of a multisig transaction is
        that of its inner payload; `problem` says what is wrong with a `MalformedTransaction` and is None for others.

    Raises
    ------
    SchemaError
        If a transaction contains a malformed number, address or hex text; `checked_rows` returns a
        `MalformedTransaction` instead.

    Examples
    --------
    >>> from toolkit.wire._transactions import decode_transactions
    >>> rows = transaction_rows(decode_transactions(b'[{"type": "a_future_transaction", "version": "7"}]'))
    >>> rows.transactions["version"], rows.transactions["type"], rows.changes["type"]
    ([7], ['a_future_transaction'], [])
    """
    builder = _Builder()
    try:
        with collector_paused():
            for transaction in transactions:
                builder.add(transaction)
            rows = builder.finish()
            del builder  # the garbage collector would visit all its row tuples when it is enabled again
            return rows
    except (InputError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise SchemaError(f"a transaction does not have the documented shape: {escape(error)}") from None


def checked_rows(transactions: Iterable[Transaction]) -> tuple[list[Transaction], Rows]:
    """Return decoded transactions and their columns, with a `MalformedTransaction` in place of each malformed one.

    Parameters
    ----------
    transactions : iterable of Transaction
        As `decode_page` returns them.

    Returns
    -------
    tuple of (list of Transaction, Rows)
        The transactions, and their columns as `transaction_rows` returns them. Every number, address and time of the
        transactions that are not malformed can be read.

    Examples
    --------
    >>> from toolkit.wire._transactions import decode_page
    >>> transactions, rows = checked_rows(decode_page(b'[{"type": "user_transaction", "version": "500"}]'))
    >>> rows.transactions["version"], rows.transactions["problem"][0][:20]
    ([500], 'transactions[0]: the')
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
    """Check the numbers, addresses, hex texts and the time of a transaction.

    Raises
    ------
    SchemaError
        If one of them is malformed.
    """
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


class _Builder:
    """Collects row tuples, which are fast to make, and turns them into columns at the end."""

    def __init__(self) -> None:
        self._transactions: list[_Row] = []
        self._changes: list[_Row] = []
        self._events: list[_Row] = []
        self._known = _CanonicalForms()

    def add(self, transaction: Transaction) -> None:
        """Append the rows of one transaction."""
        position = len(self._transactions)
        if isinstance(transaction, wire.GenericTransaction):
            self._transactions.append(self._generic_row(transaction))
            return
        if isinstance(transaction, wire.MalformedTransaction):
            self._transactions.append(self._malformed_row(transaction))
            return
        if isinstance(transaction, wire.PendingTransaction):
            self._transactions.append(self._pending_row(transaction))
            return
        changes, events = transaction.changes, transaction.events
        known, rows = self._known, _CHANGE_ROWS
        self._transactions.append(self._executed_row(transaction, events))
        self._changes += [rows[type(item)](known, position, index, item) for index, item in enumerate(changes)]
        self._events += [_event_row(known, position, index, event) for index, event in enumerate(events)]

    def finish(self) -> Rows:
        """Return the columns; numbers are converted a whole column at a time."""
        transactions = _columns(TRANSACTION_COLUMNS, self._transactions)
        for name in _NUMBERS:
            transactions[name] = _numbers(transactions[name], name)
        changes = self._indexed(CHANGE_COLUMNS, self._changes, transactions["version"])
        events = self._indexed(EVENT_COLUMNS, self._events, transactions["version"])
        for name in ("creation_number", "sequence_number"):
            events[name] = _numbers(events[name], name)
        return Rows(transactions, changes, events)

    def _indexed(self, names: Sequence[str], rows: list[_Row], versions: list[int | None]) -> dict[str, list[Any]]:
        """Return the columns of rows that start with the position of their transaction; its version is added second."""
        position, version, *others = names
        columns = _columns((position, *others), rows)
        found = [versions[index] for index in columns[position]]
        return {position: columns[position], version: found, **columns}

    def _generic_row(self, transaction: wire.GenericTransaction) -> _Row:
        head = (transaction.version_text, transaction.hash, transaction.type)
        raw = transaction.raw.decode()
        return (*head, *(None,) * (len(TRANSACTION_COLUMNS) - len(head) - 2), raw, None)

    def _malformed_row(self, transaction: wire.MalformedTransaction) -> _Row:
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

    def _pending_row(self, transaction: wire.PendingTransaction) -> _Row:
        head = (None, transaction.hash, "pending_transaction", None, None, None)
        return (*head, *self._submitted(transaction), None, None, 0, 0, *_NO_FEE, None, None)

    def _executed_row(self, transaction: Any, events: Sequence[Event]) -> _Row:
        submitted: _Row
        if isinstance(transaction, wire.UserTransaction):
            submitted = self._submitted(transaction)
        elif isinstance(transaction, wire.GenesisTransaction):
            payload = transaction.payload_raw
            submitted = (*(None,) * 8, _decode_kind(payload).type, str(payload, "utf-8"), None)
        else:
            submitted = (None,) * 11
        return (
            transaction.version_text,
            transaction.hash,
            transaction.__struct_config__.tag,
            transaction.success,
            transaction.vm_status,
            transaction.gas_used_text,
            *submitted,
            transaction.timestamp_text,
            transaction.epoch_text if isinstance(transaction, wire.BlockMetadataTransaction) else None,
            len(transaction.changes),
            len(events),
            *_fee_texts(events),
            None,
            None,
        )

    def _submitted(self, transaction: wire.UserTransaction | wire.PendingTransaction) -> _Row:
        payload = transaction.payload_raw
        head = _decode_payload_head(payload)
        function = head.function
        if function is None and head.transaction_payload is not None:
            function = head.transaction_payload.function
        raw = transaction.signature_raw
        signature = _Signature() if bytes(raw) == b"null" else _decode_signature(raw)
        payer = signature.fee_payer_address if signature.type == _FEE_PAYER_SIGNATURE else None
        return (
            self._known.addresses[transaction.sender],
            None if payer is None else self._known.addresses[payer],
            transaction.sequence_number_text,
            transaction.max_gas_amount_text,
            transaction.gas_unit_price_text,
            transaction.expiration_timestamp_secs_text,
            transaction.replay_protection_nonce_text,
            None if function is None else self._known.types[function],
            head.type,
            str(payload, "utf-8"),
            signature.type,
        )


def _event_row(known: _CanonicalForms, position: int, index: int, event: Event) -> _Row:
    guid = event.guid
    if guid is not None:
        address, creation_number = guid.account_address, guid.creation_number
    else:
        address, creation_number = _split_event_key(event.key)
    return (
        position,
        index,
        known.types[event.type],
        known.addresses[address],
        creation_number,
        event.sequence_number_text,
        str(event.data, "utf-8"),
    )


def _columns(names: Sequence[str], rows: list[_Row]) -> dict[str, list[Any]]:
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
    for event in reversed(events):  # it is the last event
        if event.type == FEE_STATEMENT:
            return astuple(_decode_fee_texts(event.data))
    return _NO_FEE


class _AbiHead(msgspec.Struct, gc=False):
    name: str


class _ModuleHead(msgspec.Struct, gc=False):
    abi: _AbiHead | None = None


class _ItemTypes(msgspec.Struct, gc=False):
    key_type: str | None = None
    value_type: str | None = None


_decode_module_head = msgspec.json.Decoder(_ModuleHead).decode
_decode_item_types = msgspec.json.Decoder(_ItemTypes).decode

# Plain strings, because attribute access on an enum is slow and these are used for every change.
_WRITE_RESOURCE = wire.ChangeKind.WRITE_RESOURCE.value
_DELETE_RESOURCE = wire.ChangeKind.DELETE_RESOURCE.value
_WRITE_MODULE = wire.ChangeKind.WRITE_MODULE.value
_DELETE_MODULE = wire.ChangeKind.DELETE_MODULE.value
_WRITE_TABLE_ITEM = wire.ChangeKind.WRITE_TABLE_ITEM.value
_DELETE_TABLE_ITEM = wire.ChangeKind.DELETE_TABLE_ITEM.value

# The following functions return the row of one kind of change: transaction_index, change_index, type, address,
# state_key_hash, resource_type, module, handle, key, value, key_type, value_type, data. The version is added later. The
# tuples are written out, because they are made by the hundred thousand.


def _write_resource(known: _CanonicalForms, position: int, index: int, change: wire.WriteResource) -> _Row:
    address, resource = known.addresses[change.address], change.data
    resource_type, data = known.types[resource.type], str(resource.data, "utf-8")
    head = (position, index, _WRITE_RESOURCE, address, change.state_key_hash, resource_type)
    return (*head, None, None, None, None, None, None, data)


def _delete_resource(known: _CanonicalForms, position: int, index: int, change: wire.DeleteResource) -> _Row:
    address, resource_type = known.addresses[change.address], known.types[change.resource]
    head = (position, index, _DELETE_RESOURCE, address, change.state_key_hash, resource_type)
    return (*head, None, None, None, None, None, None, None)


def _write_module(known: _CanonicalForms, position: int, index: int, change: wire.WriteModule) -> _Row:
    address = known.addresses[change.address]
    abi = _decode_module_head(change.data).abi
    module = None if abi is None else f"{address}::{abi.name}"
    head = (position, index, _WRITE_MODULE, address, change.state_key_hash, None, module)
    return (*head, None, None, None, None, None, str(change.data, "utf-8"))


def _delete_module(known: _CanonicalForms, position: int, index: int, change: wire.DeleteModule) -> _Row:
    address, module = known.addresses[change.address], known.types[change.module]
    head = (position, index, _DELETE_MODULE, address, change.state_key_hash, None, module)
    return (*head, None, None, None, None, None, None)


def _write_table_item(known: _CanonicalForms, position: int, index: int, change: wire.WriteTableItem) -> _Row:
    key, value = _hex_bytes(change.key), _hex_bytes(change.value)
    handle = known.handles[change.handle]
    head = (position, index, _WRITE_TABLE_ITEM, None, change.state_key_hash, None, None, handle, key, value)
    return head + _item_data(known, change.data)


def _delete_table_item(known: _CanonicalForms, position: int, index: int, change: wire.DeleteTableItem) -> _Row:
    handle, key = known.handles[change.handle], _hex_bytes(change.key)
    head = (position, index, _DELETE_TABLE_ITEM, None, change.state_key_hash, None, None, handle, key, None)
    return head + _item_data(known, change.data)


def _item_data(known: _CanonicalForms, data: msgspec.Raw) -> tuple[str | None, str | None, str | None]:
    text = str(data, "utf-8")
    if text == "null":
        return (None, None, None)
    found = _decode_item_types(data)
    key_type, value_type = (None if one is None else known.types[one] for one in (found.key_type, found.value_type))
    return key_type, value_type, text


def _generic_change(known: _CanonicalForms, position: int, index: int, change: wire.GenericChange) -> _Row:
    del known  # the fields of an unknown kind are unknown, so none is converted
    head = (position, index, change.type)
    return (*head, None, None, None, None, None, None, None, None, None, change.raw.decode())


_CHANGE_ROWS: dict[type, Callable[[_CanonicalForms, int, int, Any], _Row]] = {
    wire.WriteResource: _write_resource,
    wire.DeleteResource: _delete_resource,
    wire.WriteModule: _write_module,
    wire.DeleteModule: _delete_module,
    wire.WriteTableItem: _write_table_item,
    wire.DeleteTableItem: _delete_table_item,
    wire.GenericChange: _generic_change,
}


_CREATION_NUMBER_BYTES = 8  # a u64
# Most texts are canonical already, which these patterns find quickly: an address of full length without leading zero,
# and an address inside the text of a type, module or function that is neither that nor one digit.
_FULL_ADDRESS = re.compile("0x[1-9a-f][0-9a-f]{63}")
_FULL_HANDLE = re.compile("0x[0-9a-f]{64}")
_OTHER_ADDRESS = re.compile("0x(?![1-9a-f][0-9a-f]{63}::|[0-9a-f]::)[0-9a-fA-F]+(?=::)")


class _Known(dict[str, str]):
    """Canonical forms of texts, each found once: most of them repeat thousands of times."""

    def __init__(self, convert: Callable[[str], str]) -> None:
        super().__init__()
        self._convert = convert

    def __missing__(self, text: str) -> str:
        self[text] = known = self._convert(text)
        return known


class _CanonicalForms:
    """Canonical forms of the addresses, table handles and types of one response."""

    __slots__ = ("addresses", "handles", "types")

    def __init__(self) -> None:
        self.addresses = found = _Known(lambda text: text if _FULL_ADDRESS.fullmatch(text) else parse_address(text))
        self.handles = _Known(lambda text: text if _FULL_HANDLE.fullmatch(text) else parse_table_handle(text))
        self.types = _Known(lambda text: _OTHER_ADDRESS.sub(lambda match: found[match[0]], text))


def _hex_bytes(text: str) -> bytes:
    """Return the bytes of 0x hex; `bytes.fromhex` also accepts white space."""
    try:  # not `suppress`, which takes longer than the conversion
        data = bytes.fromhex(text[2:])
        if text[:2] == "0x" and 2 * len(data) == len(text) - 2:
            return data
    except ValueError:
        pass
    raise SchemaError(f"expected 0x hex of a table key or value, got {shorten(text)}")


def _split_event_key(key: str | None) -> tuple[str, str]:
    """Return address and creation number of an event key, as nodes of 2022 print it: 8 bytes number, then address."""
    if key is None:
        raise SchemaError("an event has neither a guid nor a key")
    data = _hex_bytes(key)
    number = int.from_bytes(data[:_CREATION_NUMBER_BYTES], "little")
    return "0x" + data[_CREATION_NUMBER_BYTES:].hex(), str(number)
