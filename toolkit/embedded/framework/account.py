"""``0x1::account`` and the checks that frame every transaction."""

from __future__ import annotations

from typing import Generic

from toolkit.embedded import (
    T0,
    AbortCode,
    Module,
    Option,
    Resource,
    Struct,
    Table,
    address,
    already_exists,
    public,
    signer,
    u64,
    view,
)
from toolkit.embedded.framework.values import EventModule, event_handle
from toolkit.move import address_to_bytes

__all__ = ["Account", "NonceValidation", "TransactionValidation"]


class Account(Module, address="0x1"):
    """Accounts: who may sign, and how many transactions they sent."""

    class CoinRegisterEvent(Struct, abilities="drop store"):
        """A coin was registered."""

        account: address

    class KeyRotationEvent(Struct, abilities="drop store"):
        """An authentication key was replaced."""

        old_authentication_key: bytes
        new_authentication_key: bytes

    class RotationCapability(Struct, abilities="drop store"):
        """The right to rotate an account's key."""

        account: address

    class SignerCapability(Struct, abilities="drop store"):
        """The right to sign as an account."""

        account: address

    class CapabilityOffer(Struct, Generic[T0], abilities="store"):
        """Who was offered a capability, if anybody."""

        # `for` is a keyword of Python: the annotation is added below.

    class Account(Resource, abilities="key store"):
        """One account."""

        authentication_key: bytes
        sequence_number: u64
        guid_creation_num: u64
        coin_register_events: EventModule.EventHandle[Account.CoinRegisterEvent]
        key_rotation_events: EventModule.EventHandle[Account.KeyRotationEvent]
        rotation_capability_offer: Account.CapabilityOffer[Account.RotationCapability]
        signer_capability_offer: Account.CapabilityOffer[Account.SignerCapability]

    EACCOUNT_ALREADY_EXISTS: AbortCode = already_exists(1, "Account already exists")

    CapabilityOffer.__annotations__["for"] = Option[address]  # type: ignore[misc]  # an annotation, built by hand

    @view
    def exists_at(self, addr: address) -> bool:
        """Tell whether an account exists."""
        return self.exists(Account.Account, addr)

    @view
    def get_sequence_number(self, addr: address) -> u64:
        """Return how many transactions an account sent; 0 where there is none yet."""
        return self.borrow(Account.Account, addr).sequence_number if self.exists(Account.Account, addr) else 0

    @view
    def get_authentication_key(self, addr: address) -> bytes:
        """Return an account's authentication key."""
        if not self.exists(Account.Account, addr):
            return address_to_bytes(addr)
        return self.borrow(Account.Account, addr).authentication_key

    @public
    def create_account_if_does_not_exist(self, account_address: address) -> None:
        """Create an account unless it exists."""
        if not self.exists(Account.Account, account_address):
            self.create_account(account_address)

    def create_account(self, new_address: address) -> signer:
        """Create an account."""
        self.require(not self.exists(Account.Account, new_address), self.EACCOUNT_ALREADY_EXISTS)
        account = Account.Account(
            authentication_key=address_to_bytes(new_address),
            sequence_number=0,
            guid_creation_num=2,
            coin_register_events=event_handle(new_address, 0),
            key_rotation_events=event_handle(new_address, 1),
            rotation_capability_offer=Account.CapabilityOffer(**{"for": None}),
            signer_capability_offer=Account.CapabilityOffer(**{"for": None}),
        )
        self.move_to(new_address, account)
        return new_address

    def increment_sequence_number(self, addr: address) -> None:
        """Count one more transaction of an account."""
        with self.borrow_mut(Account.Account, addr) as account:
            account.sequence_number += 1


class NonceValidation(Module, address="0x1"):
    """Nonces of orderless transactions, kept until they expire.

    The chain keeps them in buckets; one table item per nonce is enough here.
    """

    class NonceKey(Struct, abilities="copy drop store"):
        """Whose nonce."""

        sender_address: address
        nonce: u64

    class NonceHistory(Resource):
        """Nonces, with when each expires (seconds)."""

        nonce_table: Table[NonceValidation.NonceKey, u64]

    def initialize(self) -> None:
        """Start without nonces."""
        self.move_to("0x1", NonceValidation.NonceHistory(nonce_table=self.new_table()))

    def is_used(self, sender: address, nonce: u64, now: u64) -> bool:
        """Tell whether an account used a nonce that has not expired."""
        key = NonceValidation.NonceKey(sender_address=sender, nonce=nonce)
        table = self.borrow(NonceValidation.NonceHistory, "0x1").nonce_table
        return table.borrow_with_default(key, 0) > now

    def use_nonce(self, sender: address, nonce: u64, expires_at: u64) -> None:
        """Record a nonce."""
        key = NonceValidation.NonceKey(sender_address=sender, nonce=nonce)
        self.borrow(NonceValidation.NonceHistory, "0x1").nonce_table.upsert(key, expires_at)


class TransactionValidation(Module, address="0x1"):
    """What the VM runs before and after a transaction; the ledger calls it without charging."""

    def count(self, sender: address, nonce: int | None, expires_at: int) -> None:
        """Record that an account sent a transaction: its number goes up, or its nonce is used."""
        if nonce is not None:
            self.use(NonceValidation).use_nonce(sender, nonce, expires_at)
            return
        accounts = self.use(Account)
        accounts.create_account_if_does_not_exist(sender)
        accounts.increment_sequence_number(sender)
