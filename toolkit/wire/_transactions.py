"""Transactions, state changes and events as returned by nodes.

``data``, payloads and signatures are stored as JSON bytes and parsed on access. Numbers are stored as text and
converted on access. A transaction or change of an unknown kind is stored as JSON and does not raise an error.
"""

from __future__ import annotations

from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from toolkit._present.messages import MAX_TEXT, cut_text, shorten
from toolkit._present.text import counted, plural, short_addresses, visible
from toolkit.errors import SchemaError
from toolkit.move._json_text import decode_with, elements, is_u64, parse_u64
from toolkit.wire._aborts import Abort
from toolkit.wire._executed import FAILED, PayloadHead, call_that_ran, multisig_execution, payload_head
from toolkit.wire._gas import FeeStatement, GasBreakdown, find_fee_statement

if TYPE_CHECKING:
    from toolkit.wire._requests import Payload
    from toolkit.wire._signatures import TransactionSignature

_NULL = Raw(b"null")


class ChangeKind(StrEnum):
    """Kind of a state change, as in the ``type`` column of state changes.

    Examples
    --------
    >>> from toolkit.wire._transactions import ChangeKind
    >>> ChangeKind("write_resource") is ChangeKind.WRITE_RESOURCE
    True
    """

    WRITE_RESOURCE = "write_resource"
    DELETE_RESOURCE = "delete_resource"
    WRITE_MODULE = "write_module"
    DELETE_MODULE = "delete_module"
    WRITE_TABLE_ITEM = "write_table_item"
    DELETE_TABLE_ITEM = "delete_table_item"


class _Change(Struct, tag_field="type", gc=False, frozen=True):
    state_key_hash: str = ""


class ResourceData(Struct, gc=False, frozen=True):
    """Type and content of a written resource.

    Parameters
    ----------
    type : str
        Struct tag as returned by the node.
    data : msgspec.Raw
        The fields as a JSON object.
    """

    type: str
    data: Raw


class WriteResource(_Change, tag=ChangeKind.WRITE_RESOURCE.value, kw_only=True, frozen=True):
    """A written resource. The members of a resource group have the same `state_key_hash`."""

    address: str
    data: ResourceData


class DeleteResource(_Change, tag=ChangeKind.DELETE_RESOURCE.value, kw_only=True, frozen=True):
    """A deleted resource or resource group."""

    address: str
    resource: str


class WriteModule(_Change, tag=ChangeKind.WRITE_MODULE.value, kw_only=True, frozen=True):
    """A published module; `data` is ``{"bytecode", "abi"}``."""

    address: str
    data: Raw


class DeleteModule(_Change, tag=ChangeKind.DELETE_MODULE.value, kw_only=True, frozen=True):
    """A deleted module; `module` is ``address::name``."""

    address: str
    module: str


class WriteTableItem(_Change, tag=ChangeKind.WRITE_TABLE_ITEM.value, kw_only=True, frozen=True):
    """A written table item; `data` is null unless the node indexes tables."""

    handle: str
    key: str
    value: str
    data: Raw = _NULL


class DeleteTableItem(_Change, tag=ChangeKind.DELETE_TABLE_ITEM.value, kw_only=True, frozen=True):
    """A deleted table item; `data` is null unless the node indexes tables."""

    handle: str
    key: str
    data: Raw = _NULL


class GenericChange(Struct, gc=False, frozen=True):
    """A change of an unknown kind.

    Parameters
    ----------
    type : str or None
        The ``type`` in the JSON, or None if it is missing.
    raw : bytes
        The change as JSON.

    Examples
    --------
    >>> from toolkit.wire._transactions import GenericChange
    >>> GenericChange("a_future_change", b'{"type": "a_future_change"}').type
    'a_future_change'
    """

    type: str | None
    raw: bytes


KnownChange = WriteResource | DeleteResource | WriteModule | DeleteModule | WriteTableItem | DeleteTableItem
Change = KnownChange | GenericChange
if TYPE_CHECKING:
    _DecodedChange = Change
else:  # msgspec distinguishes the members of a union by their tags; a generic change has none and is added later
    _DecodedChange = KnownChange


class EventGuid(Struct, gc=False, frozen=True):
    """The handle of an event: creation number and address, which are 0 and 0x0 for module (v2) events."""

    creation_number: str
    account_address: str


class Event(Struct, gc=False, frozen=True):
    """An event of a transaction.

    Parameters
    ----------
    type : str
        Type tag as returned by the node.
    data : msgspec.Raw
        The event as JSON, usually an object.
    sequence_number_text : str
        `sequence_number` as a string of digits.
    guid : EventGuid or None
        Handle of the event; None in responses from 2022, which contain `key` instead.
    key : str or None
        Creation number (8 bytes, little-endian) and address, in hex.

    Examples
    --------
    >>> import msgspec
    >>> from toolkit.wire._transactions import Event
    >>> body = b'{"type": "0xcafe::shop::Sold", "data": {"price": "7"}, "sequence_number": "0"}'
    >>> event = msgspec.json.decode(body, type=Event)
    >>> event.sequence_number, msgspec.json.decode(event.data)
    (0, {'price': '7'})
    """

    type: str
    data: Raw
    sequence_number_text: str = msgspec.field(name="sequence_number")
    guid: EventGuid | None = None
    key: str | None = None

    @property
    def sequence_number(self) -> int:
        """Sequence number of the event on its handle; 0 for module (v2) events.

        Raises
        ------
        SchemaError
            If the text is not a u64.
        """
        return parse_u64(self.sequence_number_text, "sequence_number")


def _number(name: str, meaning: str) -> int:
    """Create a property that parses a field of digits, and raises SchemaError if the text is not a u64."""
    return property(lambda self: parse_u64(getattr(self, f"{name}_text"), name), doc=meaning)  # type: ignore[return-value]


class _Transaction(Struct, tag_field="type", kw_only=True):
    """Fields of every executed transaction. Accessing a number raises SchemaError if its text is not a u64.

    `chain_success` and `chain_vm_status` are the response's ``success`` and ``vm_status``.
    """

    version_text: str = msgspec.field(name="version")
    hash: str
    gas_used_text: str = msgspec.field(name="gas_used")
    chain_success: bool = msgspec.field(name="success")
    chain_vm_status: str = msgspec.field(name="vm_status")
    changes: list[_DecodedChange] = []
    events: list[Event] = []
    timestamp_text: str | None = msgspec.field(name="timestamp", default=None)

    def __post_init__(self) -> None:
        if len(self.chain_vm_status) > MAX_TEXT:
            self.chain_vm_status = cut_text(self.chain_vm_status)

    def __repr__(self) -> str:
        sender = getattr(self, "sender", None)
        how = "succeeded" if self.success else f"failed ({self.vm_status})"
        parts = [*([] if sender is None else [f"from {sender}"]), how, counted(self.gas_used_text, "gas unit")]
        parts += [plural(len(self.changes), "change"), plural(len(self.events), "event")]
        return visible(short_addresses(f"<{type(self).__name__} version {self.version_text}: {', '.join(parts)}>"), 300)

    version = _number("version", "Ledger version; for a simulation, the head when it ran.")
    gas_used = _number("gas_used", "Gas units used.")

    @property
    def success(self) -> bool:
        """Whether the transaction did what it was sent for."""
        return self.chain_success

    @property
    def vm_status(self) -> str:
        """How execution ended."""
        return self.chain_vm_status

    @property
    def timestamp_us(self) -> int | None:
        """Time in microseconds since 1970-01-01 UTC; None for genesis."""
        return None if self.timestamp_text is None else parse_u64(self.timestamp_text, "timestamp")


class _Submitted:
    """Properties of user transactions. Accessing a number raises SchemaError if its text is not a u64."""

    __slots__ = ()

    if TYPE_CHECKING:
        replay_protection_nonce_text: str | None
        payload_raw: Raw
        signature_raw: Raw

    sequence_number = _number("sequence_number", "Sequence number of the sender; 2^64 - 1 if orderless.")
    max_gas_amount = _number("max_gas_amount", "Maximum number of gas units.")
    gas_unit_price = _number("gas_unit_price", "Octas per gas unit.")
    expiration_timestamp_secs = _number("expiration_timestamp_secs", "Expiration time in seconds since 1970-01-01 UTC.")

    @property
    def replay_protection_nonce(self) -> int | None:
        """Nonce of an orderless transaction, or None."""
        text = self.replay_protection_nonce_text
        return None if text is None else parse_u64(text, "replay_protection_nonce")

    @property
    def payload(self) -> Payload:
        """The payload, parsed on each access.

        Raises
        ------
        SchemaError
            If it does not have the documented shape of its type.
        """
        from toolkit.wire._requests import parse_payload

        return parse_payload(self.payload_raw)

    @property
    def signature(self) -> TransactionSignature | None:
        """The signature, parsed on each access, or None if the response does not include one.

        Raises
        ------
        SchemaError
            If it does not have the documented shape of its type.
        """
        from toolkit.wire._signatures import parse_signature

        return None if bytes(self.signature_raw) == b"null" else parse_signature(self.signature_raw)


class UserTransaction(_Transaction, _Submitted, tag="user_transaction", kw_only=True):
    """A user transaction, committed or simulated.

    The attributes without the suffix ``_text`` (``version``, ``gas_used``, ``max_gas_amount``, ...) convert the text to
    a number on access. `payload` and `signature` are parsed on access. Instances are created by `decode_transactions`
    and `decode_simulation`.

    Examples
    --------
    >>> from toolkit.wire._transactions import decode_simulation
    >>> body = (
    ...     b'[{"version": "9", "hash": "0x0", "gas_used": "5", "success": true, "vm_status": "ok", "sender": "0x1"'
    ...     b', "sequence_number": "0", "max_gas_amount": "9", "gas_unit_price": "100"'
    ...     b', "expiration_timestamp_secs": "0", "payload": {"type": "entry_function_payload"'
    ...     b', "function": "0x1::m::f"}}]'
    ... )
    >>> [transaction] = decode_simulation(body)
    >>> transaction.gas_used, transaction.payload.function
    (5, '0x1::m::f')
    """

    sender: str
    sequence_number_text: str = msgspec.field(name="sequence_number")
    max_gas_amount_text: str = msgspec.field(name="max_gas_amount")
    gas_unit_price_text: str = msgspec.field(name="gas_unit_price")
    expiration_timestamp_secs_text: str = msgspec.field(name="expiration_timestamp_secs")
    payload_raw: Raw = msgspec.field(name="payload")
    signature_raw: Raw = msgspec.field(name="signature", default=_NULL)
    replay_protection_nonce_text: str | None = msgspec.field(name="replay_protection_nonce", default=None)

    @property
    def success(self) -> bool:
        """Whether the transaction succeeded, including the payload of a multisig account.

        The ledger commits a multisig transaction whose payload fails as a success, `chain_success`. Only an event
        reports the failure.
        """
        return self.chain_success and not any(event.type in FAILED for event in self.events)

    @property
    def vm_status(self) -> str:
        """How execution ended: the node's status, or why the payload of a multisig account failed."""
        if not self.chain_success or self.success:
            return self.chain_vm_status
        execution = multisig_execution(self.events)
        return (execution and execution.status) or self.chain_vm_status

    @property
    def abort(self) -> Abort | None:
        """The Move abort with which the transaction, or the payload of a multisig account, failed; None without one."""
        if not self.chain_success:
            return Abort.find(self.chain_vm_status)
        execution = None if self.success else multisig_execution(self.events)
        return None if execution is None or execution.error is None else execution.error.abort

    def call(self) -> PayloadHead:
        """Return the call that ran: that of a decrypted or multisig payload, also if it is stored on chain.

        Raises
        ------
        SchemaError
            If the payload is not a JSON object.
        """
        try:
            return call_that_ran(payload_head(self.payload_raw), self.events)
        except msgspec.DecodeError as error:
            raise SchemaError(f"payload: {error}") from None

    def fee_statement(self) -> FeeStatement | None:
        """Return the fee statement; None if the transaction is from before 2023 or was discarded before execution.

        Raises
        ------
        SchemaError
            If the event does not have the documented shape.
        """
        return find_fee_statement(self.events)

    def gas_breakdown(self) -> GasBreakdown | None:
        """Return the parts of the gas with the gas unit price, or None if the fee statement is missing.

        Raises
        ------
        SchemaError
            If the event does not have the documented shape.
        """
        statement = self.fee_statement()
        return None if statement is None else GasBreakdown.from_statement(statement, gas_unit_price=self.gas_unit_price)


class GenesisTransaction(_Transaction, tag="genesis_transaction", kw_only=True):
    """The first transaction of a ledger; its payload is a write set."""

    payload_raw: Raw = msgspec.field(name="payload", default=_NULL)


class BlockMetadataTransaction(_Transaction, tag="block_metadata_transaction", kw_only=True):
    """The first transaction of a block."""

    epoch_text: str = msgspec.field(name="epoch")
    round_text: str | None = msgspec.field(name="round", default=None)
    proposer: str | None = None
    id: Raw = _NULL
    previous_block_votes_bitvec: Raw = _NULL
    failed_proposer_indices: Raw = _NULL

    epoch = _number("epoch", "Epoch of the block.")


class StateCheckpointTransaction(_Transaction, tag="state_checkpoint_transaction", kw_only=True):
    """The last transaction of a block, on older ledgers."""


class BlockEpilogueTransaction(_Transaction, tag="block_epilogue_transaction", kw_only=True):
    """The last transaction of a block."""

    block_end_info: Raw = _NULL


class ValidatorTransaction(_Transaction, tag="validator_transaction", kw_only=True):
    """A transaction created by the validators; `contents` are the fields that only its own kind has, as JSON.

    Examples are the transcript of a key generation, and updates of the keys of identity providers.
    """

    contents: Raw = Raw(b"{}")


class PendingTransaction(Struct, _Submitted, tag_field="type", tag="pending_transaction", kw_only=True):
    """A transaction that has not been executed yet."""

    hash: str
    sender: str
    sequence_number_text: str = msgspec.field(name="sequence_number")
    max_gas_amount_text: str = msgspec.field(name="max_gas_amount")
    gas_unit_price_text: str = msgspec.field(name="gas_unit_price")
    expiration_timestamp_secs_text: str = msgspec.field(name="expiration_timestamp_secs")
    payload_raw: Raw = msgspec.field(name="payload")
    signature_raw: Raw = msgspec.field(name="signature", default=_NULL)
    replay_protection_nonce_text: str | None = msgspec.field(name="replay_protection_nonce", default=None)


class GenericTransaction(Struct, kw_only=True):
    """A transaction of an unknown kind.

    Parameters
    ----------
    type : str or None
        The ``type`` in the JSON, or None if it is missing.
    version_text : str or None
        Ledger version as a string of digits, or None if it is missing.
    hash : str or None
        Hash of the transaction, or None if it is missing.
    raw : bytes
        The transaction as JSON.

    Examples
    --------
    >>> from toolkit.wire._transactions import decode_transactions
    >>> from toolkit.wire._transactions import GenericTransaction
    >>> [transaction] = decode_transactions(b'[{"type": "a_future_transaction", "version": "7"}]')
    >>> isinstance(transaction, GenericTransaction), transaction.type
    (True, 'a_future_transaction')
    """

    type: str | None
    version_text: str | None
    hash: str | None
    raw: bytes


class MalformedTransaction(Struct, kw_only=True):
    """A transaction that does not have the documented shape. Other transactions in the same page are not affected.

    Parameters
    ----------
    type : str or None
        Type of the transaction, or None if it is missing or malformed.
    version_text : str or None
        Ledger version as a string of digits, or None if it is missing or malformed.
    hash, function : str or None
        Hash of the transaction and id of the function that it calls, or None if missing or malformed.
    raw : bytes
        The transaction as JSON.
    problem : str
        Description of the error.

    Examples
    --------
    >>> from toolkit.wire._transactions import decode_page
    >>> from toolkit.wire._transactions import MalformedTransaction
    >>> [transaction] = decode_page(b'[{"type": "user_transaction", "version": "500", "hash": "0x0"}]')
    >>> isinstance(transaction, MalformedTransaction), transaction.version_text
    (True, '500')
    """

    type: str | None
    version_text: str | None
    hash: str | None
    function: str | None
    raw: bytes
    problem: str


# Kinds with fixed fields. Each kind of validator transaction has its own, and msgspec drops unknown fields.
_FixedTransaction = (
    UserTransaction
    | GenesisTransaction
    | BlockMetadataTransaction
    | StateCheckpointTransaction
    | BlockEpilogueTransaction
    | PendingTransaction
)
KnownTransaction = _FixedTransaction | ValidatorTransaction
Transaction = KnownTransaction | GenericTransaction | MalformedTransaction


_T = TypeVar("_T")

_MANY: msgspec.json.Decoder[list[_FixedTransaction]] = msgspec.json.Decoder(list[_FixedTransaction])
_ONE: msgspec.json.Decoder[_FixedTransaction] = msgspec.json.Decoder(_FixedTransaction)
_OF_VALIDATORS: msgspec.json.Decoder[ValidatorTransaction] = msgspec.json.Decoder(ValidatorTransaction)
# The fields of a validator transaction that other kinds have, too.
_COMMON = frozenset(
    """
    type version hash success vm_status gas_used timestamp changes events state_change_hash event_root_hash
    state_checkpoint_hash accumulator_root_hash
    """.split()  # noqa: SIM905 - names read better in rows
)
# A simulated transaction does not have the key `type`; outside a union msgspec does not require it.
_SIMULATED: msgspec.json.Decoder[list[UserTransaction]] = msgspec.json.Decoder(list[UserTransaction])
_ONE_SIMULATED: msgspec.json.Decoder[UserTransaction] = msgspec.json.Decoder(UserTransaction)
_CHANGE: msgspec.json.Decoder[KnownChange] = msgspec.json.Decoder(KnownChange)
_RAW_OBJECT: msgspec.json.Decoder[dict[str, Raw]] = msgspec.json.Decoder(dict[str, Raw])
_TEXT: msgspec.json.Decoder[str] = msgspec.json.Decoder(str)
_KNOWN_TRANSACTIONS = frozenset(str(kind.__struct_config__.tag) for kind in KnownTransaction.__args__)
_KNOWN_CHANGES = frozenset(str(kind.__struct_config__.tag) for kind in KnownChange.__args__)


def decode_transactions(body: bytes | Raw) -> list[Transaction]:
    """Decode the transactions of a response.

    Parameters
    ----------
    body : bytes or msgspec.Raw
        JSON array of transactions, or one transaction.

    Returns
    -------
    list of Transaction
        Transactions in the order of the response. A transaction of an unknown ``type`` becomes a `GenericTransaction`,
        and a change of an unknown ``type`` a `GenericChange`.

    Raises
    ------
    SchemaError
        If the body is not JSON, or a transaction of a known type does not have the documented shape; `decode_page`
        returns a `MalformedTransaction` instead.

    Examples
    --------
    >>> [transaction] = decode_transactions(b'[{"type": "a_future_transaction", "version": "7"}]')
    >>> transaction.type, transaction.version_text
    ('a_future_transaction', '7')
    """
    if not _is_array(body):
        return [_decode_transaction(body)]
    if (found := _all_at_once(body)) is None:
        found = [_decode_transaction(raw, place) for place, raw in enumerate(_elements(body))]
    return found


def decode_page(body: bytes | Raw) -> list[Transaction]:
    """Decode a page of committed transactions; a malformed transaction does not affect the others.

    Parameters
    ----------
    body : bytes or msgspec.Raw
        JSON array of transactions.

    Returns
    -------
    list of Transaction
        Transactions in the order of the response. A transaction without the documented shape or without a version
        becomes a `MalformedTransaction`.

    Raises
    ------
    SchemaError
        If the body is not a JSON array.

    Examples
    --------
    >>> [transaction] = decode_page(b'[{"type": "user_transaction", "version": "500", "hash": "0x0"}]')
    >>> transaction.version_text, transaction.problem[:35]
    ('500', 'transactions[0]: the response does ')
    """
    found = _all_at_once(body) if _is_array(body) else None
    if found is None:
        found = [_decoded_or_marked(raw, place) for place, raw in enumerate(_elements(body))]
    return [one if is_u64(getattr(one, "version_text", None)) else _without_version(one) for one in found]


def _without_version(transaction: Transaction) -> Transaction:
    """Mark a transaction without a version as malformed, unless its kind is unknown and may not have a version."""
    if isinstance(transaction, MalformedTransaction):
        return transaction
    if isinstance(transaction, GenericTransaction) and transaction.type is not None:
        return transaction
    text = None if isinstance(transaction, PendingTransaction) else transaction.version_text
    return malformed(
        transaction, f"expected `version` as a string of digits, got {shorten(text) if text else 'nothing'}"
    )


def _decoded_or_marked(raw: Raw, place: int) -> Transaction:
    try:
        return _decode_transaction(raw, place)
    except SchemaError as error:
        return malformed(bytes(raw), str(error))


def malformed(transaction: bytes | Transaction, problem: str) -> MalformedTransaction:
    """Create a `MalformedTransaction` with the fields that are well-formed.

    Parameters
    ----------
    transaction : bytes or Transaction
        The transaction as JSON, or as it was decoded before the error was found.
    problem : str
        Description of the error.

    Returns
    -------
    MalformedTransaction
    """
    if isinstance(transaction, bytes):
        body = transaction
    else:
        body = transaction.raw if isinstance(transaction, GenericTransaction) else msgspec.json.encode(transaction)
    fields: dict[str, Raw] = {}
    payload: dict[str, Raw] = {}
    with suppress(SchemaError):
        fields = decode_with(_RAW_OBJECT, body)
    with suppress(SchemaError):
        payload = decode_with(_RAW_OBJECT, fields.get("payload", Raw(b"{}")))
        while inner := payload.get("decrypted_payload") or payload.get("transaction_payload"):
            payload = decode_with(_RAW_OBJECT, inner)
    version = _text(fields, "version")
    return MalformedTransaction(
        type=_text(fields, "type"),
        version_text=version if is_u64(version) else None,
        hash=_text(fields, "hash"),
        function=_text(payload, "function"),
        raw=body,
        problem=problem,
    )


def decode_simulation(body: bytes | Raw) -> list[UserTransaction]:
    """Decode the response of a simulation: an array of one transaction, which does not have the key ``type``.

    Parameters
    ----------
    body : bytes or msgspec.Raw
        JSON array, or one transaction.

    Returns
    -------
    list of UserTransaction
        Transactions in the order of the response.

    Raises
    ------
    SchemaError
        If the body is not JSON or does not have this shape.

    Examples
    --------
    >>> from toolkit.wire._transactions import decode_simulation
    >>> body = (
    ...     b'[{"version": "9", "hash": "0x0", "gas_used": "5", "success": true, "vm_status": "ok", "sender": "0x1"'
    ...     b', "sequence_number": "0", "max_gas_amount": "9", "gas_unit_price": "100"'
    ...     b', "expiration_timestamp_secs": "0", "payload": {"type": "entry_function_payload"}}]'
    ... )
    >>> decode_simulation(body)
    [<UserTransaction version 9: from 0x1, succeeded, 5 gas units, 0 changes, 0 events>]
    """
    with suppress(SchemaError):
        return decode_with(_SIMULATED, body) if _is_array(body) else [decode_with(_ONE_SIMULATED, body)]
    raws = _elements(body) if _is_array(body) else [body]
    return [_rebuild(_ONE_SIMULATED, _decode(_RAW_OBJECT, raw)) for raw in raws]


def _all_at_once(body: bytes | Raw) -> list[Transaction] | None:
    """Decode an array of kinds with fixed fields in one pass, or return None if a transaction is malformed or other."""
    try:
        return [*decode_with(_MANY, body)]
    except SchemaError:
        return None


def _elements(body: bytes | Raw) -> list[Raw]:
    try:
        return elements(body)
    except SchemaError as error:
        raise _shape_error(error) from None


def _is_array(body: bytes | Raw) -> bool:
    return bytes(memoryview(body)[:64]).lstrip()[:1] == b"["


def _decode(decoder: msgspec.json.Decoder[_T], body: bytes | Raw) -> _T:
    try:
        return decode_with(decoder, body)
    except SchemaError as error:
        raise _shape_error(error) from None


def _shape_error(error: SchemaError) -> SchemaError:
    return SchemaError(f"the response does not have the documented shape: {error}")


def _decode_transaction(body: bytes | Raw, place: int = 0) -> Transaction:
    with suppress(SchemaError):  # an unknown kind, a change of an unknown kind, or malformed
        return decode_with(_ONE, body)
    try:
        return _decode_other(body)
    except SchemaError as error:
        raise SchemaError(f"transactions[{place}]: {error}") from None


def _decode_other(body: bytes | Raw) -> Transaction:
    fields = _decode(_RAW_OBJECT, body)
    kind = _text(fields, "type")
    if kind == ValidatorTransaction.__struct_config__.tag:
        found = _rebuild(_OF_VALIDATORS, fields)
        own = {name: raw for name, raw in fields.items() if name not in _COMMON}
        found.contents = Raw(msgspec.json.encode(own))
        return found
    if kind in _KNOWN_TRANSACTIONS:
        return _rebuild(_ONE, fields)
    version = _text(fields, "version")
    return GenericTransaction(
        type=kind, version_text=version if is_u64(version) else None, hash=_text(fields, "hash"), raw=bytes(body)
    )


def _rebuild(decoder: msgspec.json.Decoder[_T], fields: dict[str, Raw]) -> _T:
    """Decode a transaction with changes of unknown kinds: first the changes one by one, then the rest."""
    changes = [_decode_change(raw) for raw in _elements(fields.get("changes", Raw(b"[]")))]
    transaction: Any = _decode(decoder, msgspec.json.encode(fields | {"changes": Raw(b"[]")}))
    if changes:
        transaction.changes = changes
    return transaction  # type: ignore[no-any-return]  # the result of the decoder


def _decode_change(body: Raw) -> Change:
    try:
        return decode_with(_CHANGE, body)
    except SchemaError as error:
        content = _decode(_RAW_OBJECT, body)
        kind = _text(content, "type")
        if kind in _KNOWN_CHANGES:
            raise _shape_error(error) from None
        return GenericChange(kind, bytes(body))


def _text(fields: dict[str, Raw], name: str) -> str | None:
    """Decode a field that is a JSON string; return None for any other value."""
    with suppress(KeyError, SchemaError):
        return decode_with(_TEXT, fields[name])
    return None
