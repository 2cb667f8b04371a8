"""A transaction before and after execution, and the blocks they come in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from toolkit.embedded.meter import Charges
    from toolkit.embedded.session import EmittedEvent
    from toolkit.embedded.state import StateKey, StateValue
    from toolkit.move import TypeTag

__all__ = ["Block", "CommittedTransaction", "EntryCall", "Output", "Transaction"]

TransactionKind = Literal[
    "genesis_transaction",
    "block_metadata_transaction",
    "user_transaction",
    "state_checkpoint_transaction",
    "block_epilogue_transaction",
]


@dataclass(frozen=True, slots=True)
class EntryCall:
    """A call of an entry function, its arguments encoded.

    Parameters
    ----------
    address, module, function : str
        Canonical address and names.
    type_arguments : tuple of TypeTag
        Type arguments.
    arguments : tuple of bytes
        BCS bytes of each argument, signers left out.
    """

    address: str
    module: str
    function: str
    type_arguments: tuple[TypeTag, ...] = ()
    arguments: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Transaction:
    """What a user asks to run.

    Parameters
    ----------
    sender : str
        Canonical address.
    sequence_number : int
        Number of the sender's transactions before this one; ignored where there is a nonce.
    payload : EntryCall
        What to run.
    max_gas_amount : int
        Gas units.
    gas_unit_price : int
        Octas per gas unit.
    expiration_timestamp_secs : int
        Ledger time after which it is too late, seconds.
    chain_id : int
        Chain it is meant for.
    replay_protection_nonce : int, optional
        Nonce of an orderless transaction.
    secondary_signers : tuple of str
        Canonical addresses of further signers.
    fee_payer : str, optional
        Canonical address of who pays, where it is not the sender.
    signature : dict
        The signature as the wire prints it.
    payload_json : dict, optional
        The payload as the wire prints it, where it is no plain call of an entry function.
    """

    sender: str
    sequence_number: int
    payload: EntryCall
    max_gas_amount: int
    gas_unit_price: int
    expiration_timestamp_secs: int
    chain_id: int
    replay_protection_nonce: int | None = None
    secondary_signers: tuple[str, ...] = ()
    fee_payer: str | None = None
    signature: dict[str, Any] = field(default_factory=lambda: {"type": "no_account_signature"})
    payload_json: dict[str, Any] | None = None


class Output(NamedTuple):
    """What an execution did."""

    success: bool
    vm_status: str
    charges: Charges
    writes: dict[StateKey, StateValue | None]
    events: tuple[EmittedEvent, ...]
    discarded: bool = False


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
class Block:
    """Consecutive versions that share a time."""

    height: int
    hash: str
    timestamp_us: int
    epoch: int
    first_version: int
    last_version: int
