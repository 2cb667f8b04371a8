"""``0x1::account``, ``0x1::nonce_validation`` and ``0x1::transaction_validation``."""

from __future__ import annotations

from typing import Any, Generic

from toolkit.embedded._contract import Module, public, view
from toolkit.embedded._vm_status import AbortCode, already_exists
from toolkit.embedded.framework._configuration import Features
from toolkit.embedded.framework._values import EventHandle, EventModule, event_handle
from toolkit.embedded.types import *
from toolkit.move._ids import address_to_bytes


class Account(Module, address="0x1"):
    """Accounts: authentication keys and sequence numbers."""

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
        """The address to which a capability is offered, if any."""

        # `for` is a keyword in Python, so the annotation is added below.

    class Account(Resource, abilities="key store"):
        """An account."""

        authentication_key: bytes
        sequence_number: u64
        guid_creation_num: u64
        coin_register_events: EventModule.EventHandle[Account.CoinRegisterEvent]
        key_rotation_events: EventModule.EventHandle[Account.KeyRotationEvent]
        rotation_capability_offer: Account.CapabilityOffer[Account.RotationCapability]
        signer_capability_offer: Account.CapabilityOffer[Account.SignerCapability]

    EACCOUNT_ALREADY_EXISTS: AbortCode = already_exists(1, "Account already exists")

    CapabilityOffer.__annotations__["for"] = Option[address]  # type: ignore[misc]  # an annotation set at run time

    @view
    def exists_at(self, addr: address) -> bool:
        """Return True if an account exists; if `DEFAULT_ACCOUNT_RESOURCE` is on, every address is an account."""
        return self.use(Features).is_enabled(Features.DEFAULT_ACCOUNT_RESOURCE) or self.exists(Account.Account, addr)

    @view
    def get_sequence_number(self, addr: address) -> u64:
        """Return the sequence number of an account, or 0 if the account does not exist."""
        return self.borrow(Account.Account, addr).sequence_number if self.exists(Account.Account, addr) else 0

    @view
    def get_authentication_key(self, addr: address) -> bytes:
        """Return the authentication key of an account."""
        if not self.exists(Account.Account, addr):
            return address_to_bytes(addr)
        return self.borrow(Account.Account, addr).authentication_key

    @public
    def create_account_if_does_not_exist(self, account_address: address) -> None:
        """Create the resource of an account if it does not exist."""
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

    def new_event_handle(self, owner: signer) -> EventHandle[Any]:
        """Return a new event handle for an account; create the account if it does not exist."""
        self.create_account_if_does_not_exist(owner)
        with self.borrow_mut(Account.Account, owner) as account:
            number = account.guid_creation_num
            account.guid_creation_num += 1
        return event_handle(owner, number)

    def increment_sequence_number(self, addr: address) -> None:
        """Increment the sequence number of an account."""
        with self.borrow_mut(Account.Account, addr) as account:
            account.sequence_number += 1


class NonceValidation(Module, address="0x1"):
    """Nonces of orderless transactions, with their expiration times.

    Public networks store them in buckets; the embedded ledger stores one table item per nonce.
    """

    class NonceKey(Struct, abilities="copy drop store"):
        """A nonce and its sender."""

        sender_address: address
        nonce: u64

    class NonceHistory(Resource):
        """Expiration times by nonce, in seconds since 1970."""

        nonce_table: Table[NonceValidation.NonceKey, u64]

    def initialize(self) -> None:
        """Store an empty table of nonces."""
        self.move_to("0x1", NonceValidation.NonceHistory(nonce_table=self.new_table()))

    def is_used(self, sender: address, nonce: u64, now: u64) -> bool:
        """Return True if an account has used a nonce that has not expired."""
        key = NonceValidation.NonceKey(sender_address=sender, nonce=nonce)
        table = self.borrow(NonceValidation.NonceHistory, "0x1").nonce_table
        return table.borrow_with_default(key, 0) > now

    def use_nonce(self, sender: address, nonce: u64, expires_at: u64) -> None:
        """Record that an account has used a nonce."""
        key = NonceValidation.NonceKey(sender_address=sender, nonce=nonce)
        self.borrow(NonceValidation.NonceHistory, "0x1").nonce_table.upsert(key, expires_at)


class TransactionValidation(Module, address="0x1"):
    """Functions that the VM runs before and after a transaction, without charges."""

    def count(self, sender: address, nonce: int | None, expires_at: int) -> None:
        """Record a transaction of an account: increment its sequence number, or store its nonce."""
        if nonce is not None:
            self.use(NonceValidation).use_nonce(sender, nonce, expires_at)
            return
        accounts = self.use(Account)
        accounts.create_account_if_does_not_exist(sender)
        accounts.increment_sequence_number(sender)
