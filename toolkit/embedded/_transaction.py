"""Transactions before and after execution, and blocks."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec

from toolkit._present.tables import Listing
from toolkit._present.text import listed, plural, short_addresses, visible
from toolkit.embedded._code import CodeSet, decode_group
from toolkit.errors import InputError
from toolkit.move import decode_bcs, parse_type_tag
from toolkit.move._ids import wire_address
from toolkit.move._type_tags import wire_type
from toolkit.wire import Ed25519Signature, FeePayerSignature, MultiAgentSignature
from toolkit.wire._bcs_forms import encoded
from toolkit.wire._bcs_requests import MULTISIG_PAYLOAD, payload_parts
from toolkit.wire._signers import signers_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from toolkit.embedded._meter import Charges
    from toolkit.embedded._session import TableTypes
    from toolkit.embedded._state import StateKey, StateValue
    from toolkit.wire import SignedTransaction, TransactionSignature
    from toolkit.wire._bcs_requests import EncodedEntryFunction, EncodedScript
    from toolkit.wire._on_chain import EmittedEvent, Status

    Executable = EncodedEntryFunction | EncodedScript


_MAX_NAMED = 5  # published modules in a repr

# Prefix of the hashed bytes of a transaction, as on chain; 0 is the variant of user transactions.
_HASH_SALT = hashlib.sha3_256(b"APTOS::Transaction").digest() + b"\x00"


class TransactionKind(StrEnum):
    """Kinds of committed transactions; the values are the names in the REST API."""

    GENESIS = "genesis_transaction"
    BLOCK_METADATA = "block_metadata_transaction"
    USER = "user_transaction"
    STATE_CHECKPOINT = "state_checkpoint_transaction"
    BLOCK_EPILOGUE = "block_epilogue_transaction"


class Transaction:
    """A signed transaction with its hash, size, signers and payload.

    Parameters
    ----------
    signed : SignedTransaction
        The transaction as it is encoded in BCS.
    """

    __slots__ = ("executable", "hash", "multisig_address", "nonce", "raw", "signed", "size", "who")

    def __init__(self, signed: SignedTransaction) -> None:
        data = signed.to_bcs()
        self.signed = signed
        self.raw = signed.raw
        self.size = len(data)
        self.hash = f"0x{hashlib.sha3_256(_HASH_SALT + data).hexdigest()}"
        self.who = signers_of(signed.signature)
        # `executable` is None for a payload that a multisig account has stored on chain.
        self.executable, self.multisig_address, self.nonce = payload_parts(signed.raw.payload)

    @property
    def signers(self) -> tuple[str, ...]:
        """Addresses of the sender and the secondary signers."""
        return (self.raw.sender, *self.who.addresses)

    @property
    def payer(self) -> str:
        """Address that pays the fee."""
        return self.who.payer_address or self.raw.sender


def encode_stored(executable: Executable) -> bytes:
    """Return a payload in the encoding that multisig accounts store."""
    return encoded(MULTISIG_PAYLOAD, executable)


class Output(NamedTuple):
    """The output of an execution: status, charges, writes, events, and the types of the written tables."""

    status: Status
    vm_status: str
    charges: Charges
    writes: dict[StateKey, StateValue | None]
    events: tuple[EmittedEvent, ...]
    discarded: bool = False
    tables: Mapping[str, TableTypes] = MappingProxyType({})  # by handle

    @property
    def success(self) -> bool:
        """Whether the execution succeeded."""
        return self.status.success


@dataclass(frozen=True, slots=True)
class LedgerEvent:
    """An event of a committed transaction, decoded.

    Parameters
    ----------
    type : str
        Move type of the event, such as ``0xcafe::registry::Registered``.
    data : dict
        Fields by name, as Python values.

    Examples
    --------
    >>> from toolkit.embedded import Ledger
    >>> done = Ledger().commit("0x1::aptos_account::transfer", "0xcafe", 5, sender="0xb0b")
    >>> event = done.events[0]
    >>> event.type, event.data["amount"]
    ('0x1::fungible_asset::Withdraw', 5)
    """

    type: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class LedgerChange:
    """A state change of a committed transaction, decoded.

    Parameters
    ----------
    kind : {"resource", "table item", "module"}
        Kind of state that was written or deleted.
    address : str
        Address under which the state is stored; for a table item, the handle of the table.
    name : str
        Type of the resource, name of the module, or key and item types of the table.
    key : object
        Key of the table item; None for other kinds.
    value : object
        Value after the transaction, as Python values; None for a deletion or a module.
    deleted : bool
        Whether the state was deleted.

    Examples
    --------
    >>> from toolkit.embedded import Ledger
    >>> done = Ledger().commit("0x1::aptos_account::transfer", "0xcafe", 5, sender="0xb0b")
    >>> change = next(each for each in done.changes if each.name == "0x1::fungible_asset::FungibleStore")
    >>> change.kind, change.deleted, sorted(change.value)
    ('resource', False, ['balance', 'frozen', 'metadata'])
    """

    kind: str
    address: str
    name: str
    key: Any
    value: Any
    deleted: bool


@dataclass(frozen=True, slots=True, repr=False)
class CommittedTransaction:
    """A committed transaction; each transaction is one ledger version.

    `Ledger.execute`, `Ledger.publish` and `Ledger.transaction` return committed transactions. To read transactions
    from any node as typed frames, use ``toolkit.fetch_transactions``.

    Parameters
    ----------
    version : int
        Ledger version.
    kind : TransactionKind
        Kind of transaction. Each kind equals its name in the REST API, such as ``"user_transaction"``.
    hash : str
        Transaction hash: 0x and 64 hex digits.
    output : Output
        Status, charges, writes and events.
    timestamp_us : int
        Ledger time in microseconds.
    request : Transaction, optional
        The signed transaction; None for a transaction that the ledger makes, such as block metadata.
    code : CodeSet, optional
        The modules published at the version, needed to decode `events` and `changes`.

    Examples
    --------
    >>> import toolkit
    >>> from toolkit import embedded
    >>> call = toolkit.EntryFunction("0x1::aptos_account::transfer", ["0xb0b", 100])
    >>> done = embedded.Ledger().execute(call, sender="0xa11ce")
    >>> done.success, done.version, done.gas_used
    (True, 2, 65)
    >>> done.events[0].data["amount"]
    100
    """

    version: int
    kind: TransactionKind
    hash: str
    output: Output
    timestamp_us: int
    request: Transaction | None = None
    code: CodeSet | None = field(default=None, compare=False)

    @property
    def success(self) -> bool:
        """Whether execution succeeded."""
        return self.output.success

    @property
    def vm_status(self) -> str:
        """VM status, such as ``Executed successfully``."""
        return self.output.vm_status

    @property
    def gas_used(self) -> int:
        """Gas units charged, according to the gas model."""
        return self.output.charges.total_charge_gas_units

    @property
    def events(self) -> Listing[LedgerEvent]:
        """The events, decoded: tuple of LedgerEvent. Notebooks and ``print`` show them as a table."""
        return Listing(LedgerEvent(one.type, self._decoded(one.type, one.data)) for one in self.output.events)

    @property
    def changes(self) -> Listing[LedgerChange]:
        """The state changes, decoded: tuple of LedgerChange. Notebooks and ``print`` show them as a table."""
        return Listing(change for key, value in self.output.writes.items() for change in self._changes(key, value))

    def _changes(self, key: StateKey, value: StateValue | None) -> list[LedgerChange]:
        at, name, data = wire_address(key.owner), str(key.name), None if value is None else value.data
        gone = data is None
        if key.kind == "table":
            types = self.output.tables.get(key.owner)
            if types is None:  # known only to the contract that deleted it
                return [LedgerChange("table item", at, "", key.item, data, gone)]
            item = None if data is None else self._decoded(types.value, data)
            name = f"{types.key} -> {types.value}"
            return [LedgerChange("table item", at, name, self._decoded(types.key, key.item), item, gone)]
        if key.kind == "module":
            return [LedgerChange("module", at, name, None, None, gone)]
        if data is None:
            return [LedgerChange("resource", at, wire_type(parse_type_tag(name)), None, None, gone)]
        members = decode_group(data) if key.kind == "group" else {name: data}
        values = {wire_type(parse_type_tag(tag)): self._decoded(tag, one) for tag, one in members.items()}
        return [LedgerChange("resource", at, tag, None, value, gone) for tag, value in values.items()]

    def _decoded(self, type_text: str, data: bytes) -> Any:
        if self.code is None:
            raise InputError("cannot decode a transaction without `code`, the modules published at its version")
        return decode_bcs(self.code.layout(type_text), data)

    def __repr__(self) -> str:
        modules = [key for key in self.output.writes if key.kind == "module"]
        published = [f"{wire_address(key.owner)}::{key.name!s}" for key in modules]
        call = self.request.executable if self.request is not None else None
        what = f"published {listed(published, _MAX_NAMED)}" if published else getattr(call, "function", self.kind)
        how = "succeeded" if self.success else f"failed ({self.vm_status})"
        text = f"<CommittedTransaction version {self.version:,}: {what}, {how}, {plural(self.gas_used, 'gas unit')}>"
        return visible(short_addresses(text), 300)


class LedgerBlock(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A block: consecutive versions with the same timestamp, in microseconds.

    Examples
    --------
    >>> from toolkit.embedded import Ledger
    >>> block = Ledger().block_of(0)
    >>> block.first_version, block.last_version
    (0, 0)
    """

    height: int
    hash: str
    timestamp_us: Annotated[int, msgspec.Meta(ge=0)]
    epoch: int
    first_version: int
    last_version: int


def placeholder_signature(
    digest: Callable[..., bytes], sender: str, sequence_number: int, *, others: Sequence[str], fee_payer: str | None
) -> TransactionSignature:
    """Return placeholder signatures for a sender, secondary signers and a fee payer (canonical addresses).

    The embedded ledger has no keys; keys and signatures are hashes from `digest`.
    """

    def sign(address: str) -> Ed25519Signature:
        first = digest("signature", address, sequence_number)
        signature, key = first + digest("signature", first), digest("key", address)
        # Not validated, because it is valid and every transaction has one.
        return Ed25519Signature.model_construct(public_key=f"0x{key.hex()}", signature=f"0x{signature.hex()}")

    agents: dict[str, Any]
    agents = {"secondary_signer_addresses": tuple(others), "secondary_signers": tuple(map(sign, others))}
    if fee_payer is not None:
        return FeePayerSignature(sign(sender), **agents, fee_payer_address=fee_payer, fee_payer_signer=sign(fee_payer))
    return MultiAgentSignature(sign(sender), **agents) if others else sign(sender)
