"""The shapes of what nodes answer: transactions, state changes and events; `toolkit.wire.answers` decodes them.

``data``, payloads and signatures are kept as the wire's own bytes and parsed on demand. Numbers are kept as the
wire's text and become ints, digit by digit checked, where they are read. A kind of transaction or change that is
not known becomes a generic one that keeps its JSON: a row, never an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw, Struct

from toolkit.wire.u64 import parse_u64

if TYPE_CHECKING:
    from toolkit.wire.gas import FeeStatement, GasBreakdown
    from toolkit.wire.payloads import Payload
    from toolkit.wire.transaction_signatures import TransactionSignature

__all__ = [
    "BlockEpilogueTransaction",
    "BlockMetadataTransaction",
    "Change",
    "CommittedTransaction",
    "DeleteModule",
    "DeleteResource",
    "DeleteTableItem",
    "Event",
    "GenericChange",
    "GenericTransaction",
    "GenesisTransaction",
    "MalformedTransaction",
    "PendingTransaction",
    "StateCheckpointTransaction",
    "Transaction",
    "UserTransaction",
    "ValidatorTransaction",
    "WriteModule",
    "WriteResource",
    "WriteTableItem",
]

_NULL = Raw(b"null")


class _Change(Struct, tag_field="type", gc=False, frozen=True):
    state_key_hash: str = ""


class ResourceData(Struct, gc=False, frozen=True):
    """Type and content of a written resource.

    Parameters
    ----------
    type : str
        Struct tag as the node prints it.
    data : msgspec.Raw
        JSON object of the fields.
    """

    type: str
    data: Raw


class WriteResource(_Change, tag="write_resource", kw_only=True, frozen=True):
    """A resource was written; the members of a resource group share one `state_key_hash`."""

    address: str
    data: ResourceData


class DeleteResource(_Change, tag="delete_resource", kw_only=True, frozen=True):
    """A resource, or a whole resource group, was deleted."""

    address: str
    resource: str


class WriteModule(_Change, tag="write_module", kw_only=True, frozen=True):
    """A module was published; `data` is ``{"bytecode", "abi"}``."""

    address: str
    data: Raw


class DeleteModule(_Change, tag="delete_module", kw_only=True, frozen=True):
    """A module was deleted; `module` is ``address::name``."""

    address: str
    module: str


class WriteTableItem(_Change, tag="write_table_item", kw_only=True, frozen=True):
    """A table item was written; `data` is null unless the node indexes tables."""

    handle: str
    key: str
    value: str
    data: Raw = _NULL


class DeleteTableItem(_Change, tag="delete_table_item", kw_only=True, frozen=True):
    """A table item was deleted; `data` is null unless the node indexes tables."""

    handle: str
    key: str
    data: Raw = _NULL


class GenericChange(Struct, gc=False, frozen=True):
    """A change of a kind this package does not know.

    Parameters
    ----------
    type : str or None
        Its type, where it names one.
    raw : bytes
        The JSON as it came.
    """

    type: str | None
    raw: bytes


KnownChange = WriteResource | DeleteResource | WriteModule | DeleteModule | WriteTableItem | DeleteTableItem
Change = KnownChange | GenericChange
if TYPE_CHECKING:
    _DecodedChange = Change
else:  # msgspec tells the union apart by tag, and a generic change has none; it is put in by hand
    _DecodedChange = KnownChange


class EventGuid(Struct, gc=False, frozen=True):
    """The handle of an event; 0 and 0x0 for module (v2) events."""

    creation_number: str
    account_address: str


class Event(Struct, gc=False, frozen=True):
    """An event as the wire has it.

    Parameters
    ----------
    type : str
        Type tag as the node prints it.
    data : msgspec.Raw
        JSON of the payload, an object mostly.
    sequence_number_text : str
        Digits; see `sequence_number`.
    guid : EventGuid or None
        Handle; None in answers of 2022, which have `key` instead.
    key : str or None
        Hex of creation number (8 bytes, little-endian) and address.
    version_text : str or None
        Digits of the ledger version, where an answer of the events endpoints says it.
    """

    type: str
    data: Raw
    sequence_number_text: str = msgspec.field(name="sequence_number")
    guid: EventGuid | None = None
    key: str | None = None
    version_text: str | None = msgspec.field(name="version", default=None)

    @property
    def sequence_number(self) -> int:
        """Number of the event on its handle; 0 for module (v2) events."""
        return parse_u64(self.sequence_number_text, "sequence_number")

    @property
    def version(self) -> int | None:
        """Ledger version of the event, where the answer says it."""
        return None if self.version_text is None else parse_u64(self.version_text, "version")


class _Transaction(Struct, tag_field="type", kw_only=True):
    """What every executed transaction has."""

    version_text: str = msgspec.field(name="version")
    hash: str
    gas_used_text: str = msgspec.field(name="gas_used")
    success: bool
    vm_status: str
    changes: list[_DecodedChange] = []
    events: list[Event] = []
    timestamp_text: str | None = msgspec.field(name="timestamp", default=None)

    @property
    def version(self) -> int:
        """Ledger version; of a simulation, the latest at that moment."""
        return parse_u64(self.version_text, "version")

    @property
    def gas_used(self) -> int:
        """Gas units used."""
        return parse_u64(self.gas_used_text, "gas_used")

    @property
    def timestamp_us(self) -> int | None:
        """Microseconds since 1970-01-01 UTC; genesis has none."""
        return None if self.timestamp_text is None else parse_u64(self.timestamp_text, "timestamp")


class _Submitted:
    """What a user's transaction says, executed or pending: the wire's text as numbers, the raw parts parsed."""

    __slots__ = ()

    if TYPE_CHECKING:
        sequence_number_text: str
        max_gas_amount_text: str
        gas_unit_price_text: str
        expiration_timestamp_secs_text: str
        replay_protection_nonce_text: str | None
        payload_raw: Raw
        signature_raw: Raw

    @property
    def sequence_number(self) -> int:
        """Sequence number of the sender; 2^64 - 1 for an orderless transaction."""
        return parse_u64(self.sequence_number_text, "sequence_number")

    @property
    def max_gas_amount(self) -> int:
        """Gas units at most."""
        return parse_u64(self.max_gas_amount_text, "max_gas_amount")

    @property
    def gas_unit_price(self) -> int:
        """Octas per gas unit."""
        return parse_u64(self.gas_unit_price_text, "gas_unit_price")

    @property
    def expiration_timestamp_secs(self) -> int:
        """Seconds since 1970-01-01 UTC."""
        return parse_u64(self.expiration_timestamp_secs_text, "expiration_timestamp_secs")

    @property
    def replay_protection_nonce(self) -> int | None:
        """Nonce of an orderless transaction."""
        text = self.replay_protection_nonce_text
        return None if text is None else parse_u64(text, "replay_protection_nonce")

    @property
    def payload(self) -> Payload:
        """The payload, parsed now.

        Raises
        ------
        SchemaError
            If it does not have a documented shape.
        """
        from toolkit.wire.payloads import parse_payload

        return parse_payload(self.payload_raw)

    @property
    def signature(self) -> TransactionSignature | None:
        """The signature, parsed now; None where the answer has none.

        Raises
        ------
        SchemaError
            If it does not have a documented shape.
        """
        from toolkit.wire.transaction_signatures import parse_signature

        return None if bytes(self.signature_raw) == b"null" else parse_signature(self.signature_raw)


class UserTransaction(_Transaction, _Submitted, tag="user_transaction", kw_only=True):
    """A transaction of a user, committed or simulated."""

    sender: str
    sequence_number_text: str = msgspec.field(name="sequence_number")
    max_gas_amount_text: str = msgspec.field(name="max_gas_amount")
    gas_unit_price_text: str = msgspec.field(name="gas_unit_price")
    expiration_timestamp_secs_text: str = msgspec.field(name="expiration_timestamp_secs")
    payload_raw: Raw = msgspec.field(name="payload")
    signature_raw: Raw = msgspec.field(name="signature", default=_NULL)
    replay_protection_nonce_text: str | None = msgspec.field(name="replay_protection_nonce", default=None)

    def fee_statement(self) -> FeeStatement | None:
        """Return the split of the gas; None where there is none (before 2023, or discarded before it ran).

        Raises
        ------
        SchemaError
            If the event does not have the documented shape.
        """
        from toolkit.wire.gas import find_fee_statement

        return find_fee_statement(self.events)

    def gas_breakdown(self) -> GasBreakdown | None:
        """Return the split of the gas with the price it was charged at; None where there is none.

        Raises
        ------
        SchemaError
            If the event does not have the documented shape.
        """
        from toolkit.wire.gas import GasBreakdown

        statement = self.fee_statement()
        return None if statement is None else GasBreakdown.from_statement(statement, gas_unit_price=self.gas_unit_price)


class GenesisTransaction(_Transaction, tag="genesis_transaction", kw_only=True):
    """The first transaction of a ledger; its payload is a write set."""

    payload_raw: Raw = msgspec.field(name="payload", default=_NULL)


class BlockMetadataTransaction(_Transaction, tag="block_metadata_transaction", kw_only=True):
    """The first transaction of a block."""

    epoch_text: str = msgspec.field(name="epoch")

    @property
    def epoch(self) -> int:
        """Epoch of the block."""
        return parse_u64(self.epoch_text, "epoch")


class StateCheckpointTransaction(_Transaction, tag="state_checkpoint_transaction", kw_only=True):
    """The last transaction of a block, on older ledgers."""


class BlockEpilogueTransaction(_Transaction, tag="block_epilogue_transaction", kw_only=True):
    """The last transaction of a block."""


class ValidatorTransaction(_Transaction, tag="validator_transaction", kw_only=True):
    """A transaction that validators made among themselves."""


class PendingTransaction(Struct, _Submitted, tag_field="type", tag="pending_transaction", kw_only=True):
    """A transaction that waits to be executed."""

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
    """A transaction of a kind this package does not know.

    Parameters
    ----------
    type : str or None
        Its type, where it names one.
    version_text : str or None
        Digits of its ledger version, where it has one.
    hash : str or None
        Its hash, where it has one.
    raw : bytes
        The JSON as it came.
    """

    type: str | None
    version_text: str | None
    hash: str | None
    raw: bytes


class MalformedTransaction(Struct, kw_only=True):
    """A transaction of a page that does not have the documented shape; the others of the page are not affected.

    Parameters
    ----------
    type, hash, function : str or None
        What can still be read of it.
    version_text : str or None
        Digits of its ledger version, None if it has none that can be read.
    raw : bytes
        The JSON as it came.
    problem : str
        What is wrong with it.
    """

    type: str | None
    version_text: str | None
    hash: str | None
    function: str | None
    raw: bytes
    problem: str


CommittedTransaction = (
    UserTransaction
    | GenesisTransaction
    | BlockMetadataTransaction
    | StateCheckpointTransaction
    | BlockEpilogueTransaction
    | ValidatorTransaction
)
KnownTransaction = CommittedTransaction | PendingTransaction
Transaction = KnownTransaction | GenericTransaction | MalformedTransaction
