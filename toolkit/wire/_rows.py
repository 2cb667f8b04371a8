"""Columns of decoded transactions, state changes and events: three dicts of Python lists, ready for Arrow.

No data is lost: fields without a column remain in the JSON text of ``data``, ``payload`` or ``raw``.
"""

from __future__ import annotations

import re
from itertools import chain, repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import astuple

from toolkit._present.messages import escape, shorten
from toolkit.errors import InputError, SchemaError
from toolkit.move import parse_address
from toolkit.move._ids import parse_table_handle
from toolkit.move._json_text import parse_u64_column
from toolkit.wire import _transactions as wire
from toolkit.wire._executed import WRAPPED, call_that_ran, payload_head
from toolkit.wire._gas import FEE_STATEMENT, FeeStatementTexts
from toolkit.wire._headers import timestamp_from_us
from toolkit.wire._transactions import Event, Transaction, malformed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    _Columns: TypeAlias = dict[str, list[Any]]
    # Returns the columns that items of one kind have.
    _Reader: TypeAlias = Callable[[Any, "_CanonicalForms"], _Columns]

#: Columns of the transactions: `_NUMBERS` contain u64 numbers, `success` and `chain_success` bools, `abort` instances
#: of `Abort`, all others text.
TRANSACTION_COLUMNS = tuple(
    """
    version hash type success chain_success vm_status abort gas_used sender fee_payer secondary_signers sequence_number
    max_gas_amount gas_unit_price expiration_timestamp_secs replay_protection_nonce function type_arguments arguments
    payload_type payload signature_type key_type timestamp_us epoch round proposer block_end_info details
    changes events total_charge_gas_units execution_gas_units io_gas_units storage_fee_octas storage_fee_refund_octas
    raw problem
    """.split()  # noqa: SIM905 - names read better in rows
)
_NUMBERS = """
version gas_used sequence_number max_gas_amount gas_unit_price expiration_timestamp_secs replay_protection_nonce
timestamp_us epoch round total_charge_gas_units execution_gas_units io_gas_units storage_fee_octas
storage_fee_refund_octas
""".split()  # noqa: SIM905
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
        The columns listed in `TRANSACTION_COLUMNS`, `CHANGE_COLUMNS` and `EVENT_COLUMNS`, respectively.

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
    sender: _Signature | None = None
    secondary_signer_addresses: list[str] | None = None
    fee_payer_address: str | None = None
    public_key: str | _Kind | None = None
    public_keys: msgspec.Raw = msgspec.Raw()
    function_info: str | None = None

    @property
    def key_type(self) -> str | None:
        """Kind of the sender's key, which nodes do not name for every kind of signature."""
        if self.sender is not None:
            return self.sender.key_type
        if self.function_info is not None:
            return "abstract"
        if bytes(self.public_keys):
            return "multi_ed25519" if self.type == "multi_ed25519_signature" else "multi_key"
        return self.public_key.type if isinstance(self.public_key, _Kind) else self.public_key and "ed25519"


_decode_kind = msgspec.json.Decoder(_Kind).decode
_decode_signature = msgspec.json.Decoder(_Signature | None).decode
_decode_fee_texts = msgspec.json.Decoder(FeeStatementTexts).decode
_FEES = FeeStatementTexts.__struct_fields__  # which are columns of the transactions, too
_NO_FEE = (None,) * len(_FEES)
# Numbers whose columns are int64 in frames, so that differences work.
_SIGNED = ("gas_used", "epoch", "round", *_FEES)


def transaction_rows(transactions: Iterable[Transaction]) -> Rows:
    """Return the columns of decoded transactions, their state changes and their events.

    Parameters
    ----------
    transactions : iterable of Transaction
        Transactions returned by `decode_transactions`, `decode_page` or `decode_simulation`.

    Returns
    -------
    Rows
        Transactions, changes and events, each a dict of column name to list. `function`, `type_arguments` and
        `arguments` are those of the call that ran, see `call_that_ran`. For a `MalformedTransaction`, `problem`
        describes the error; otherwise it is None.

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
    try:
        return _rows(list(transactions))
    except (InputError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise SchemaError(f"a transaction does not have the documented shape: {escape(error)}") from None


def checked_rows(transactions: Iterable[Transaction]) -> tuple[list[Transaction], Rows]:
    """Return decoded transactions and their columns, with a `MalformedTransaction` in place of each malformed one.

    Parameters
    ----------
    transactions : iterable of Transaction
        Transactions returned by `decode_page`.

    Returns
    -------
    tuple of (list of Transaction, Rows)
        The transactions, and their columns as returned by `transaction_rows`. In every transaction that is not a
        `MalformedTransaction`, all numbers, addresses and times are valid.

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
        _check_ranges(rows)
    except SchemaError:
        found = [_checked(one) for one in found]
        rows = transaction_rows(found)
    return found, rows


def check_transactions(transactions: Iterable[Transaction]) -> None:
    """Check the numbers, addresses, hex strings and times of transactions, which is fastest for many at once.

    Raises
    ------
    SchemaError
        If one of these values is malformed.
    """
    _check_ranges(transaction_rows(transactions))


def _checked(transaction: Transaction) -> Transaction:
    try:
        check_transactions([transaction])
    except SchemaError as error:
        return malformed(transaction, str(error))
    return transaction


def _check_ranges(rows: Rows) -> None:
    """Check what the columns of frames cannot hold, which would otherwise fail with all other transactions."""
    for name in _SIGNED:
        largest = max(filter(None, rows.transactions[name]), default=0)
        if largest >= 1 << 63:
            raise SchemaError(f"{name}: expected at most 2^63 - 1, got {largest}", column=name)
    latest = max((stamp for stamp in rows.transactions["timestamp_us"] if stamp is not None), default=0)
    if timestamp_from_us(latest) is None:
        raise SchemaError(f"timestamp: expected microseconds up to the year 9999, got {latest}", column="timestamp")


def _rows(transactions: list[Any]) -> Rows:
    """Build the columns one at a time, which is faster than building rows and transposing them."""
    forms = _CanonicalForms()
    heads = _columns(TRANSACTION_COLUMNS, transactions, _TRANSACTION_KINDS, forms)
    for name in _NUMBERS:
        heads[name] = _numbers(heads[name], name)
    # Kinds that did not run, such as pending transactions, have neither.
    changes_of = [getattr(one, "changes", ()) for one in transactions]
    events_of = [getattr(one, "events", ()) for one in transactions]
    changes = _columns(CHANGE_COLUMNS, list(chain.from_iterable(changes_of)), _CHANGE_KINDS, forms)
    events = _columns(EVENT_COLUMNS, list(chain.from_iterable(events_of)), {wire.Event: _events}, forms)
    for name in ("creation_number", "sequence_number"):
        events[name] = _numbers(events[name], name)
    for table, index, items in ((changes, "change_index", changes_of), (events, "event_index", events_of)):
        counts = list(map(len, items))
        table["transaction_index"] = list(chain.from_iterable(map(repeat, range(len(counts)), counts)))
        table["version"] = list(chain.from_iterable(map(repeat, heads["version"], counts)))
        table[index] = list(chain.from_iterable(map(range, counts)))
    return Rows(heads, changes, events)


def _columns(
    names: Sequence[str], items: list[Any], kinds: Mapping[type, _Reader], forms: _CanonicalForms
) -> dict[str, list[Any]]:
    """Return the columns of items of several kinds; a cell is None if the item's kind does not have the column."""
    places: dict[type, list[int]] = {}
    for place, kind in enumerate(map(type, items)):
        places.setdefault(kind, []).append(place)
    if len(places) == 1:
        found = kinds[kind](items, forms)
        return {name: found.get(name) or [None] * len(items) for name in names}
    parts = [kinds[kind]([items[place] for place in at], forms) for kind, at in places.items()]
    order = list(chain.from_iterable(places.values()))
    back = sorted(range(len(order)), key=order.__getitem__)  # from the order of kinds to the order of items
    columns = {}
    for name in names:
        column = list(chain.from_iterable(part.get(name) or repeat(None, len(part["type"])) for part in parts))
        columns[name] = [column[row] for row in back]
    return columns


def _texts(raws: Iterable[Any]) -> list[str]:
    return list(map(str, raws, repeat("utf-8")))


def _attributes(found: Sequence[Any], *names: str) -> _Columns:
    """Return the attributes of items as columns, which are named without the ``_text`` of numbers."""
    return {name.removesuffix("_text"): list(map(attrgetter(name), found)) for name in names}


# The columns of the transactions of one kind --------------------------------------------------------------------------


def _generic(found: list[wire.GenericTransaction], _: _CanonicalForms) -> _Columns:
    return _attributes(found, "version_text", "hash", "type") | {"raw": [one.raw.decode() for one in found]}


def _malformed(found: list[wire.MalformedTransaction], forms: _CanonicalForms) -> _Columns:
    functions = []
    for one in found:
        try:
            functions.append(one.function and forms.types[one.function])
        except InputError:
            functions.append(one.function)
    raws = [one.raw.decode("utf-8", "replace") for one in found]
    return _attributes(found, "version_text", "hash", "type", "problem") | {"function": functions, "raw": raws}


def _pending(found: list[wire.PendingTransaction], forms: _CanonicalForms) -> _Columns:
    head = {"type": ["pending_transaction"] * len(found)} | dict.fromkeys(("changes", "events"), [0] * len(found))
    return head | _attributes(found, "hash") | _submitted(found, forms)


def _genesis(found: list[wire.GenesisTransaction], forms: _CanonicalForms) -> _Columns:
    payloads = [one.payload_raw for one in found]
    types = [_decode_kind(payload).type for payload in payloads]
    return _executed(found, forms) | {"payload_type": types, "payload": _texts(payloads)}


def _executed(found: list[Any], _: _CanonicalForms) -> _Columns:
    fees = zip(*[_fee_texts(one.events) for one in found], strict=True)
    columns = _attributes(found, "version_text", "hash", "chain_success", "chain_vm_status", "gas_used_text")
    return columns | {
        "success": columns["chain_success"],
        "vm_status": columns["chain_vm_status"],
        "type": [found[0].__struct_config__.tag] * len(found),
        "timestamp_us": [one.timestamp_text for one in found],
        "changes": [len(one.changes) for one in found],
        "events": [len(one.events) for one in found],
        **dict(zip(_FEES, map(list, fees), strict=True)),
    }


def _submitted(found: Sequence[wire.UserTransaction | wire.PendingTransaction], forms: _CanonicalForms) -> _Columns:
    payloads = [payload_head(one.payload_raw) for one in found]
    events: list[Sequence[Event]] = [getattr(one, "events", ()) for one in found]
    calls = list(map(call_that_ran, payloads, events))
    signatures = [_decode_signature(one.signature_raw) or _Signature() for one in found]
    payers = [one.fee_payer_address if one.type == "fee_payer_signature" else None for one in signatures]
    others = [one.secondary_signer_addresses for one in signatures]
    kinds = [call.type_arguments for call in calls]
    numbers = ("sequence_number", "max_gas_amount", "gas_unit_price", "expiration_timestamp_secs")
    return _attributes(found, *(f"{name}_text" for name in (*numbers, "replay_protection_nonce"))) | {
        "sender": [forms.addresses[one.sender] for one in found],
        "fee_payer": [payer and forms.addresses[payer] for payer in payers],
        "secondary_signers": [_joined(forms.addresses, names or None) for names in others],
        "function": [call.function and forms.types[call.function] for call in calls],
        "type_arguments": [_joined(forms.types, types) for types in kinds],
        "arguments": [str(call.arguments, "utf-8") or None for call in calls],
        "payload_type": [head.type for head in payloads],
        "payload": _texts(one.payload_raw for one in found),
        "signature_type": [one.type for one in signatures],
        "key_type": [one.key_type for one in signatures],
    }


def _joined(forms: Mapping[str, str], texts: Sequence[str] | None) -> str | None:
    return None if texts is None else ", ".join(forms[text] for text in texts)


def _users(found: list[wire.UserTransaction], forms: _CanonicalForms) -> _Columns:
    columns = _executed(found, forms) | _submitted(found, forms)
    # Only a payload of a multisig account has an outcome of its own; reading it of all others would take longer.
    wrapped = [kind in WRAPPED for kind in columns["payload_type"]]
    for name in ("success", "vm_status"):
        plain = zip(found, columns[name], wrapped, strict=True)
        columns[name] = [getattr(one, name) if inner else value for one, value, inner in plain]
    ended = zip(found, columns["success"], strict=True)
    return columns | {"abort": [None if success else one.abort for one, success in ended]}


def _block_starts(found: list[wire.BlockMetadataTransaction], forms: _CanonicalForms) -> _Columns:
    proposers = [one.proposer and forms.addresses[one.proposer] for one in found]
    own = _attributes(found, "epoch_text", "round_text") | {"proposer": proposers}
    return _executed(found, forms) | own | {"details": list(map(_block_details, found))}


def _block_ends(found: list[wire.BlockEpilogueTransaction], forms: _CanonicalForms) -> _Columns:
    infos = [None if bytes(one.block_end_info) == b"null" else str(one.block_end_info, "utf-8") for one in found]
    return _executed(found, forms) | {"block_end_info": infos}


def _of_validators(found: list[wire.ValidatorTransaction], forms: _CanonicalForms) -> _Columns:
    return _executed(found, forms) | {"details": [str(one.contents, "utf-8") for one in found]}


def _block_details(block: wire.BlockMetadataTransaction) -> str | None:
    """Return the fields of a block that have no column, as JSON text."""
    raws = {name: getattr(block, name) for name in ("id", "previous_block_votes_bitvec", "failed_proposer_indices")}
    found = {name: raw for name, raw in raws.items() if bytes(raw) != b"null"}
    return msgspec.json.encode(found).decode() if found else None


_TRANSACTION_KINDS: dict[type, _Reader] = {
    wire.UserTransaction: _users,
    wire.GenesisTransaction: _genesis,
    wire.BlockMetadataTransaction: _block_starts,
    wire.StateCheckpointTransaction: _executed,
    wire.BlockEpilogueTransaction: _block_ends,
    wire.ValidatorTransaction: _of_validators,
    wire.PendingTransaction: _pending,
    wire.GenericTransaction: _generic,
    wire.MalformedTransaction: _malformed,
}


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


# The columns of events, and of the changes of one kind -------------------------------------------------------------


def _events(found: list[Event], forms: _CanonicalForms) -> _Columns:
    guids = [_guid_of_key(one.key) if one.guid is None else one.guid for one in found]
    columns = _attributes(guids, "creation_number") | _attributes(found, "sequence_number_text")
    return columns | {
        "type": [forms.types[one.type] for one in found],
        "account_address": [forms.addresses[guid.account_address] for guid in guids],
        "data": _texts(one.data for one in found),
    }


class _AbiHead(msgspec.Struct, gc=False):
    name: str


class _ModuleHead(msgspec.Struct, gc=False):
    abi: _AbiHead | None = None


class _ItemTypes(msgspec.Struct, gc=False):
    key_type: str | None = None
    value_type: str | None = None


_decode_module_head = msgspec.json.Decoder(_ModuleHead).decode
_decode_item_types = msgspec.json.Decoder(_ItemTypes | None).decode


def _changes(found: Sequence[Any]) -> _Columns:
    return {"type": [found[0].__struct_config__.tag] * len(found)} | _attributes(found, "state_key_hash")


def _account_changes(found: Sequence[Any], forms: _CanonicalForms) -> _Columns:
    return _changes(found) | {"address": [forms.addresses[one.address] for one in found]}


def _written_resources(found: list[wire.WriteResource], forms: _CanonicalForms) -> _Columns:
    return _account_changes(found, forms) | {
        "resource_type": [forms.types[one.data.type] for one in found],
        "data": _texts([one.data.data for one in found]),
    }


def _deleted_resources(found: list[wire.DeleteResource], forms: _CanonicalForms) -> _Columns:
    return _account_changes(found, forms) | {"resource_type": [forms.types[one.resource] for one in found]}


def _written_modules(found: list[wire.WriteModule], forms: _CanonicalForms) -> _Columns:
    columns, heads = _account_changes(found, forms), [_decode_module_head(one.data).abi for one in found]
    names = [abi and f"{address}::{abi.name}" for address, abi in zip(columns["address"], heads, strict=True)]
    return columns | {"module": names, "data": _texts(one.data for one in found)}


def _deleted_modules(found: list[wire.DeleteModule], forms: _CanonicalForms) -> _Columns:
    return _account_changes(found, forms) | {"module": [forms.types[one.module] for one in found]}


def _items(found: Sequence[wire.WriteTableItem | wire.DeleteTableItem], forms: _CanonicalForms) -> _Columns:
    types = [_decode_item_types(one.data) or _ItemTypes() for one in found]
    return _changes(found) | {
        "handle": [forms.handles[one.handle] for one in found],
        "key": [_hex_bytes(one.key) for one in found],
        "key_type": [one.key_type and forms.types[one.key_type] for one in types],
        "value_type": [one.value_type and forms.types[one.value_type] for one in types],
        "data": [None if text == "null" else text for text in _texts(one.data for one in found)],
    }


def _generic_changes(found: list[wire.GenericChange], _: _CanonicalForms) -> _Columns:
    return {"type": [one.type for one in found], "data": [one.raw.decode() for one in found]}


_CHANGE_KINDS: dict[type, _Reader] = {
    wire.WriteResource: _written_resources,
    wire.DeleteResource: _deleted_resources,
    wire.WriteModule: _written_modules,
    wire.DeleteModule: _deleted_modules,
    wire.WriteTableItem: lambda found, forms: (
        _items(found, forms) | {"value": [_hex_bytes(one.value) for one in found]}
    ),
    wire.DeleteTableItem: _items,
    wire.GenericChange: _generic_changes,
}


_CREATION_NUMBER_BYTES = 8  # a u64
# Most texts are canonical already, which the first two patterns find quickly. The third finds the other addresses in a
# type, module or function: neither of full length without a leading zero, nor of one digit.
_FULL_ADDRESS = re.compile("0x[1-9a-f][0-9a-f]{63}")
_FULL_HANDLE = re.compile("0x[0-9a-f]{64}")
_OTHER_ADDRESS = re.compile("0x(?![1-9a-f][0-9a-f]{63}::|[0-9a-f]::)[0-9a-fA-F]+(?=::)")


class _CachedForms(dict[str, str]):
    """A cache of the canonical forms of texts, most of which repeat thousands of times."""

    def __init__(self, convert: Callable[[str], str]) -> None:
        super().__init__()
        self._convert = convert

    def __missing__(self, text: str) -> str:
        self[text] = form = self._convert(text)
        return form


class _CanonicalForms:
    """Caches of the canonical addresses, table handles and types in one response."""

    __slots__ = ("addresses", "handles", "types")

    def __init__(self) -> None:
        self.addresses = found = _CachedForms(
            lambda text: text if _FULL_ADDRESS.fullmatch(text) else parse_address(text)
        )
        self.handles = _CachedForms(lambda text: text if _FULL_HANDLE.fullmatch(text) else parse_table_handle(text))
        self.types = _CachedForms(lambda text: _OTHER_ADDRESS.sub(lambda match: found[match[0]], text))


def _hex_bytes(text: str) -> bytes:
    """Decode 0x hex strictly; `bytes.fromhex` alone would accept white space."""
    try:  # not `suppress`, which takes longer than the conversion
        data = bytes.fromhex(text[2:])
        if text[:2] == "0x" and 2 * len(data) == len(text) - 2:
            return data
    except ValueError:
        pass
    raise SchemaError(f"expected 0x and two hex digits per byte, got {shorten(text)}")


def _guid_of_key(key: str | None) -> wire.EventGuid:
    """Decode the event key that nodes of 2022 print: 8 bytes of creation number, then the address."""
    if key is None:
        raise SchemaError("an event has neither a guid nor a key")
    data = _hex_bytes(key)
    number = int.from_bytes(data[:_CREATION_NUMBER_BYTES], "little")
    return wire.EventGuid(str(number), "0x" + data[_CREATION_NUMBER_BYTES:].hex())
