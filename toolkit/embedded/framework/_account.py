"""``0x1::account``, nonces of orderless transactions, ``0x1::transaction_validation`` and ``0x1::object``.

Objects have their own address; their resources are stored as one resource group.
"""

from __future__ import annotations

import hashlib
from typing import Any, Generic

from toolkit.embedded import (
    T0,
    AbortCode,
    Event,
    Module,
    Object,
    Option,
    Resource,
    Struct,
    Table,
    address,
    already_exists,
    entry,
    not_found,
    permission_denied,
    public,
    signer,
    u64,
    view,
)
from toolkit.embedded.framework._configuration import DEFAULT_ACCOUNT_RESOURCE, Features
from toolkit.embedded.framework._values import EventHandle, EventModule, ResourceType, event_handle
from toolkit.move._ids import address_from_bytes, address_to_bytes


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
        """The address that a capability is offered to, if any."""

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
        """Return True if an account exists; every address is one if `DEFAULT_ACCOUNT_RESOURCE` is on."""
        return self.use(Features).is_enabled(DEFAULT_ACCOUNT_RESOURCE) or self.exists(Account.Account, addr)

    @view
    def get_sequence_number(self, addr: address) -> u64:
        """Return the sequence number of an account, 0 if it does not exist."""
        return self.borrow(Account.Account, addr).sequence_number if self.exists(Account.Account, addr) else 0

    @view
    def get_authentication_key(self, addr: address) -> bytes:
        """Return the authentication key of an account."""
        if not self.exists(Account.Account, addr):
            return address_to_bytes(addr)
        return self.borrow(Account.Account, addr).authentication_key

    @public
    def create_account_if_does_not_exist(self, account_address: address) -> None:
        """Store the resource of an account unless it exists."""
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
        """Return a new event handle of an account, which is created if it does not exist."""
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
    """Nonces of orderless transactions, stored until they expire.

    Public networks store them in buckets; the embedded ledger stores one table item per nonce.
    """

    class NonceKey(Struct, abilities="copy drop store"):
        """A nonce and its sender."""

        sender_address: address
        nonce: u64

    class NonceHistory(Resource):
        """Expiration time (seconds) by nonce."""

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
        """Record a nonce."""
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


OBJECT_GROUP = "0x1::object::ObjectGroup"
"""The resource group of an object's resources."""

_FROM_SEED, _FROM_OWNER = b"\xfe", b"\xfc"
_FIRST_CREATION_NUM = 0x4000000000000


class ObjectModule(Module, address="0x1", name="object"):
    """Objects and their owners.

    Contracts create objects and event handles of objects through ``self.use(ObjectModule)``.

    Examples
    --------
    >>> from toolkit.embedded import Ledger, Module, ObjectModule, Resource, String, signer
    >>> class Shelf(Module, address="0x5e1f"):
    ...     class Label(Resource, group="0x1::object::ObjectGroup"):
    ...         text: String
    ...
    ...     def init_module(self, account: signer) -> None:
    ...         label = self.use(ObjectModule).create_named_object(account, b"LABEL")
    ...         self.move_to(label, Shelf.Label(text="books"))
    >>> Ledger().publish(Shelf).success
    True
    """

    class ObjectGroup(Struct, abilities=""):
        """The resource group of an object's resources."""

    class TransferEvent(Struct, abilities="drop store"):
        """An object was transferred (event with a handle)."""

        object: address
        # `from` is a keyword in Python, so its annotation and the following one are added below.

    class ObjectCore(Resource, group=OBJECT_GROUP):
        """The resource that every object has."""

        guid_creation_num: u64
        owner: address
        allow_ungated_transfer: bool
        transfer_events: EventModule.EventHandle[ObjectModule.TransferEvent]

    class DeriveRef(Struct, abilities="drop store"):
        """The right to create objects at addresses derived from an object."""

        self: address

    class Transfer(Event):
        """An object was transferred."""

        object: address
        # As in `TransferEvent`.

    TransferEvent.__annotations__.update({"from": address, "to": address})
    Transfer.__annotations__.update({"from": address, "to": address})

    EOBJECT_DOES_NOT_EXIST = not_found(2, "An object does not exist at this address")
    ENOT_OBJECT_OWNER = permission_denied(4, "The caller does not own the object")
    ERESOURCE_DOES_NOT_EXIST = not_found(7, "The resource is not stored at the specified address.")
    ENO_UNGATED_TRANSFERS = permission_denied(3, "The object does not have ungated transfers enabled")

    @view
    def owner(self, kind: ResourceType, object: Object[T0]) -> address:  # noqa: A002 - the name in the ABI
        """Return the owner of an object."""
        del kind
        self.require(self.exists(ObjectModule.ObjectCore, object), self.EOBJECT_DOES_NOT_EXIST)
        return self.borrow(ObjectModule.ObjectCore, object).owner

    @view
    def is_owner(self, kind: ResourceType, object: Object[T0], owner: address) -> bool:  # noqa: A002 - as above
        """Return True if an account owns an object."""
        return self.owner(kind, object) == owner

    @entry
    def transfer(self, kind: ResourceType, owner: signer, object: Object[T0], to: address) -> None:  # noqa: A002 - as above
        """Transfer an object to another account."""
        del kind
        self.require(self.exists(ObjectModule.ObjectCore, object), self.EOBJECT_DOES_NOT_EXIST)
        with self.borrow_mut(ObjectModule.ObjectCore, object) as core:
            self.require(core.owner == owner, self.ENOT_OBJECT_OWNER)
            self.require(core.allow_ungated_transfer, self.ENO_UNGATED_TRANSFERS)
            core.owner = to
        self.emit(ObjectModule.Transfer(**{"object": object, "from": owner, "to": to}))

    def create_named_object(self, creator: signer, seed: bytes) -> signer:
        """Create an object at an address derived from its creator and a seed, and return the object's signer."""
        return self.create(named_object_address(creator, seed), creator, transferable=True)

    def new_event_handle(self, object: signer) -> EventHandle[Any]:  # noqa: A002 - as above
        """Return a new event handle of an object."""
        self.require(self.exists(ObjectModule.ObjectCore, object), self.EOBJECT_DOES_NOT_EXIST)
        with self.borrow_mut(ObjectModule.ObjectCore, object) as core:
            number = core.guid_creation_num
            core.guid_creation_num += 1
        handle: EventHandle[Any] = self.session.add_handle(event_handle(object, number))
        return handle

    def is_object(self, at: address) -> bool:
        """Return True if there is an object at an address."""
        return self.exists(ObjectModule.ObjectCore, at)

    def create(self, at: address, owner: address, *, transferable: bool) -> str:
        """Create an object at an address and return the address, which is its signer."""
        core = ObjectModule.ObjectCore(
            guid_creation_num=_FIRST_CREATION_NUM + 1,
            owner=owner,
            allow_ungated_transfer=transferable,
            transfer_events=event_handle(at, _FIRST_CREATION_NUM),
        )
        self.move_to(at, core)
        return at


def named_object_address(creator: str, seed: bytes) -> str:
    """Return the address of an object that a creator creates from a seed."""
    return address_from_bytes(hashlib.sha3_256(address_to_bytes(creator) + seed + _FROM_SEED).digest())


def derived_object_address(owner: str, source: str) -> str:
    """Return the address of an object derived from an owner and another object."""
    data = address_to_bytes(owner) + address_to_bytes(source) + _FROM_OWNER
    return address_from_bytes(hashlib.sha3_256(data).digest())
