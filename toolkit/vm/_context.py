"""What natives report about the transaction that calls them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.vm._types import ModuleId, Type


@dataclass(frozen=True)
class CalledFunction:
    """An entry function with its arguments."""

    module: ModuleId
    name: str
    types: tuple[Type, ...]
    arguments: tuple[bytes, ...]


@dataclass(frozen=True)
class TransactionContext:
    """Facts of a user transaction."""

    sender: bytes
    secondary_signers: tuple[bytes, ...]
    gas_payer: bytes
    max_gas_amount: int
    gas_unit_price: int
    chain_id: int
    script_hash: bytes = b""
    entry_function: CalledFunction | None = None
    multisig_address: bytes | None = None
    multisig_function: CalledFunction | None = None
    transaction_index: int | None = None


@dataclass(frozen=True)
class PublishRequest:
    """Modules that a transaction asks to publish.

    Attributes
    ----------
    address : bytes
        Where they go.
    names : set of str
        Names that the package has registered.
    codes : list of bytes
    policy : int
    allowed : dict of bytes to set of str, or None
        Modules that they may depend on by account; an empty name allows all of the account. None allows everything.
    """

    address: bytes
    names: set[str]
    codes: list[bytes]
    policy: int
    allowed: dict[bytes, set[str]] | None
