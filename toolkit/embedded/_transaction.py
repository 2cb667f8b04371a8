"""Transactions before and after execution, and blocks."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from toolkit._present.text import listed, short_addresses, visible
from toolkit.embedded._vm_status import SUCCESS
from toolkit.errors import InputError
from toolkit.move import Writer, parse_address, wire_address
from toolkit.wire import (
    Ed25519Signature,
    EncodedModuleBundle,
    EncodedMultisig,
    EncodedPayloadV2,
    EncodedScript,
    FeePayerSignature,
    MultiAgentSignature,
)
from toolkit.wire._bcs_payloads import write_multisig_payload

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolkit.embedded._chain import Chain
    from toolkit.embedded._meter import Charges
    from toolkit.embedded._session import EmittedEvent, TableTypes
    from toolkit.embedded._state import StateKey, StateValue
    from toolkit.wire import AccountSignature, EncodedEntryFunction, SignedTransaction, TransactionSignature

    Executable = EncodedEntryFunction | EncodedScript

__all__ = [
    "CommittedTransaction",
    "LedgerBlock",
    "Output",
    "Transaction",
    "TransactionKind",
    "encode_stored",
    "placeholder_signature",
]


_MAX_NAMED = 5

# Prefix of the hashed bytes of a transaction, as on chain; 0 is the variant of user transactions.
_HASH_SALT = hashlib.sha3_256(b"APTOS::Transaction").digest() + b"\x00"


class TransactionKind(StrEnum):
    """Kinds of committed transactions; the texts are those of the REST API."""

    GENESIS = "genesis_transaction"
    BLOCK_METADATA = "block_metadata_transaction"
    USER = "user_transaction"
    STATE_CHECKPOINT = "state_checkpoint_transaction"
    BLOCK_EPILOGUE = "block_epilogue_transaction"


class Transaction:
    """A signed transaction and what follows from it: hash, size, signers, payload.

    Parameters
    ----------
    signed : SignedTransaction
        The BCS form.

    Raises
    ------
    InputError
        If the payload is a module bundle, which chains no longer run.
    """

    __slots__ = ("executable", "fee_payer", "hash", "multisig_address", "nonce", "raw", "signed", "signers", "size")

    def __init__(self, signed: SignedTransaction) -> None:
        data = signed.to_bcs()
        signature, payload = signed.signature, signed.raw.payload
        self.signed = signed
        self.raw = signed.raw
        self.size = len(data)
        self.hash = f"0x{hashlib.sha3_256(_HASH_SALT + data).hexdigest()}"
        # The sender, then the secondary signers; without the fee payer.
        self.signers: tuple[str, ...] = (self.raw.sender,)
        self.fee_payer: str | None = None
        if isinstance(signature, MultiAgentSignature | FeePayerSignature):
            self.signers += tuple(map(parse_address, signature.secondary_signer_addresses))
        if isinstance(signature, FeePayerSignature):
            self.fee_payer = parse_address(signature.fee_payer_address)
        self.multisig_address: str | None = None
        self.nonce: int | None = None
        # None for a payload that a multisig account has stored on chain.
        self.executable: Executable | None
        match payload:
            case EncodedPayloadV2(executable, address, nonce):
                self.executable, self.multisig_address, self.nonce = executable, address, nonce
            case EncodedMultisig(address, inner):
                self.executable, self.multisig_address = inner, address
            case EncodedModuleBundle():
                raise InputError("Module bundle payload has been removed")
            case _:
                self.executable = payload

    def authenticators(self) -> list[tuple[str, AccountSignature | TransactionSignature]]:
        """Return (address, signature) of the sender, the secondary signers and the fee payer, in this order."""
        signature = self.signed.signature
        if not isinstance(signature, MultiAgentSignature | FeePayerSignature):
            return [(self.raw.sender, signature)]
        found: list[tuple[str, AccountSignature | TransactionSignature]] = [(self.raw.sender, signature.sender)]
        # Execution refuses signatures that are not one per address, in `_execution`.
        found += zip(self.signers[1:], signature.secondary_signers, strict=False)
        if isinstance(signature, FeePayerSignature):
            found.append((parse_address(signature.fee_payer_address), signature.fee_payer_signer))
        return found

    @property
    def payer(self) -> str:
        """Address that pays the fee."""
        return self.fee_payer or self.raw.sender


def encode_stored(executable: Executable) -> bytes:
    """Return a payload as multisig accounts store it."""
    writer = Writer()
    write_multisig_payload(writer, executable)
    return writer.getvalue()


class Output(NamedTuple):
    """The output of an execution: status, charges, writes, events, and the types of the tables written."""

    success: bool
    vm_status: str
    charges: Charges
    writes: dict[StateKey, StateValue | None]
    events: tuple[EmittedEvent, ...]
    discarded: bool = False
    execution_status: bytes = SUCCESS  # BCS
    tables: Mapping[str, TableTypes] = MappingProxyType({})  # by handle


@dataclass(frozen=True, slots=True, repr=False)
class CommittedTransaction:
    """A committed transaction; each is one ledger version.

    Parameters
    ----------
    version : int
        Ledger version.
    kind : TransactionKind
        Equal to its text, such as ``"user_transaction"``.
    hash : str
        0x and 64 digits.
    output : Output
        Status, charges, writes and events.
    timestamp_us : int
        Ledger time, microseconds.
    request : Transaction, optional
        The signed transaction; None for transactions of the ledger itself.
    """

    version: int
    kind: TransactionKind
    hash: str
    output: Output
    timestamp_us: int
    request: Transaction | None = None

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
        """Gas units charged, from the gas model."""
        return self.output.charges.total_charge_gas_units

    def __repr__(self) -> str:
        modules = [key for key in self.output.writes if key.kind == "module"]
        published = [f"{wire_address(key.owner)}::{key.name!s}" for key in modules]
        call = self.request.executable if self.request is not None else None
        what = f"published {listed(published, _MAX_NAMED)}" if published else getattr(call, "function", self.kind)
        how = "succeeded" if self.success else f"failed ({self.vm_status})"
        text = f"<CommittedTransaction version {self.version}: {what}, {how}, {self.gas_used:,} gas units>"
        return visible(short_addresses(text), 300)


@dataclass(frozen=True, slots=True)
class LedgerBlock:
    """A block: consecutive versions with one timestamp (microseconds)."""

    height: int
    hash: str
    timestamp_us: int
    epoch: int
    first_version: int
    last_version: int


def placeholder_signature(
    chain: Chain, sender: str, sequence_number: int, *, others: Sequence[str], fee_payer: str | None
) -> TransactionSignature:
    """Return placeholder signatures of a sender, secondary signers and a fee payer (canonical addresses).

    The embedded ledger has no keys, so keys and signatures are hashes.
    """

    def sign(address: str) -> Ed25519Signature:
        first = chain.digest("signature", address, sequence_number)
        return Ed25519Signature(chain.digest("key", address), signature=first + chain.digest("signature", first))

    if fee_payer is not None:
        return FeePayerSignature(
            sign(sender),
            secondary_signer_addresses=others,
            secondary_signers=[sign(address) for address in others],
            fee_payer_address=fee_payer,
            fee_payer_signer=sign(fee_payer),
        )
    if others:
        signers = [sign(address) for address in others]
        return MultiAgentSignature(sign(sender), secondary_signer_addresses=others, secondary_signers=signers)
    return sign(sender)
