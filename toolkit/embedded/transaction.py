"""A transaction before and after execution, and the blocks they come in."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from toolkit.embedded.vm_status import SUCCESS
from toolkit.errors import InputError
from toolkit.move import Writer, parse_address
from toolkit.wire import (
    Ed25519Signature,
    EncodedModuleBundle,
    EncodedMultisig,
    EncodedPayloadV2,
    EncodedScript,
    FeePayerSignature,
    MultiAgentSignature,
)
from toolkit.wire._bcs_payloads import write_function_call

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.embedded.chain import Chain
    from toolkit.embedded.meter import Charges
    from toolkit.embedded.session import EmittedEvent
    from toolkit.embedded.state import StateKey, StateValue
    from toolkit.wire import AccountSignature, EncodedEntryFunction, SignedTransaction, TransactionSignature

    Executable = EncodedEntryFunction | EncodedScript

__all__ = ["CommittedTransaction", "LedgerBlock", "Output", "Transaction", "encode_stored", "stand_in_signature"]

TransactionKind = Literal[
    "genesis_transaction",
    "block_metadata_transaction",
    "user_transaction",
    "state_checkpoint_transaction",
    "block_epilogue_transaction",
]


# What the chain puts before a transaction's bytes when it hashes it; 0 says that a user sent it.
_HASH_SALT = hashlib.sha3_256(b"APTOS::Transaction").digest() + b"\x00"


class Transaction:
    """What a user asks to run: a signed transaction, and what follows from it.

    Parameters
    ----------
    signed : SignedTransaction
        As it crosses the wire.
    """

    __slots__ = ("executable", "fee_payer", "hash", "multisig_address", "nonce", "raw", "signed", "signers", "size")

    def __init__(self, signed: SignedTransaction) -> None:
        data = signed.to_bcs()
        signature, payload = signed.signature, signed.raw.payload
        self.signed = signed
        self.raw = signed.raw
        self.size = len(data)
        self.hash = f"0x{hashlib.sha3_256(_HASH_SALT + data).hexdigest()}"
        #: Everybody who signs, the sender first; the fee payer does not count.
        self.signers: tuple[str, ...] = (self.raw.sender,)
        self.fee_payer: str | None = None
        if isinstance(signature, MultiAgentSignature | FeePayerSignature):
            self.signers += tuple(map(parse_address, signature.secondary_signer_addresses))
        if isinstance(signature, FeePayerSignature):
            self.fee_payer = parse_address(signature.fee_payer_address)
        self.multisig_address: str | None = None
        self.nonce: int | None = None
        #: What runs; None runs what a multisig account has stored.
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
        """Return everybody who authenticates the transaction, the fee payer last, each with its signature."""
        signature = self.signed.signature
        if not isinstance(signature, MultiAgentSignature | FeePayerSignature):
            return [(self.raw.sender, signature)]
        found: list[tuple[str, AccountSignature | TransactionSignature]] = [(self.raw.sender, signature.sender)]
        found += zip(self.signers[1:], signature.secondary_signers, strict=True)
        if isinstance(signature, FeePayerSignature):
            found.append((parse_address(signature.fee_payer_address), signature.fee_payer_signer))
        return found

    @property
    def payer(self) -> str:
        """Who pays the fee."""
        return self.fee_payer or self.raw.sender


def encode_stored(executable: Executable) -> bytes:
    """Return a payload as multisig accounts store it; scripts, which cannot run here, match no stored payload."""
    if isinstance(executable, EncodedScript):
        return b""
    writer = Writer()
    writer.uleb128(0)
    write_function_call(writer, executable)
    return writer.getvalue()


class Output(NamedTuple):
    """What an execution did."""

    success: bool
    vm_status: str
    charges: Charges
    writes: dict[StateKey, StateValue | None]
    events: tuple[EmittedEvent, ...]
    discarded: bool = False
    execution_status: bytes = SUCCESS  # BCS


@dataclass(frozen=True, slots=True)
class CommittedTransaction:
    """One ledger version.

    Parameters
    ----------
    version : int
        Its ledger version.
    kind : str
        ``user_transaction``, ``block_metadata_transaction`` and so on.
    hash : str
        0x and 64 digits.
    output : Output
        What it did.
    timestamp_us : int
        Ledger time, microseconds.
    request : Transaction, optional
        What a user asked for; None for the ledger's own transactions.
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
        """How execution ended."""
        return self.output.vm_status

    @property
    def gas_used(self) -> int:
        """Gas units charged; a model's, not a Move VM's."""
        return self.output.charges.total_charge_gas_units


@dataclass(frozen=True, slots=True)
class LedgerBlock:
    """Consecutive versions that share a time."""

    height: int
    hash: str
    timestamp_us: int
    epoch: int
    first_version: int
    last_version: int


def stand_in_signature(
    chain: Chain, sender: str, sequence_number: int, *, others: Sequence[str], fee_payer: str | None
) -> TransactionSignature:
    """Return a signature for a sender, secondary signers and a fee payer (canonical addresses)."""

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
