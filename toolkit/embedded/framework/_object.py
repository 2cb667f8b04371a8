"""``0x1::object``: objects, each with its own address; their resources are stored as one resource group."""

from __future__ import annotations

import hashlib
from typing import Any

from toolkit.embedded._contract import Module, entry, view
from toolkit.embedded._vm_status import not_found, permission_denied
from toolkit.embedded.framework._values import EventHandle, EventModule, ResourceType, event_handle
from toolkit.embedded.types import *
from toolkit.move._ids import address_from_bytes, address_to_bytes

OBJECT_GROUP = "0x1::object::ObjectGroup"
"""The resource group of an object's resources."""

_FROM_SEED, _FROM_OWNER = b"\xfe", b"\xfc"
_FIRST_CREATION_NUM = 0x4000000000000  # INIT_GUID_CREATION_NUM of 0x1::object


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
        """The resource group that contains an object's resources."""

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
        self.require(self.exists(ObjectModule.ObjectCore, object), self.EOBJECT_DOES_NOT_EXIST)
        return self.borrow(ObjectModule.ObjectCore, object).owner

    @view
    def is_owner(self, kind: ResourceType, object: Object[T0], owner: address) -> bool:  # noqa: A002 - as above
        """Return True if an account owns an object."""
        return self.owner(kind, object) == owner

    @entry
    def transfer(self, kind: ResourceType, owner: signer, object: Object[T0], to: address) -> None:  # noqa: A002 - as above
        """Transfer an object to another account."""
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
        """Return a new event handle for an object."""
        self.require(self.exists(ObjectModule.ObjectCore, object), self.EOBJECT_DOES_NOT_EXIST)
        with self.borrow_mut(ObjectModule.ObjectCore, object) as core:
            number = core.guid_creation_num
            core.guid_creation_num += 1
        return event_handle(object, number)

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
    """Return the address of an object, derived from its creator and a seed."""
    return address_from_bytes(hashlib.sha3_256(address_to_bytes(creator) + seed + _FROM_SEED).digest())


def derived_object_address(owner: str, source: str) -> str:
    """Return the address of an object derived from an owner and another object."""
    data = address_to_bytes(owner) + address_to_bytes(source) + _FROM_OWNER
    return address_from_bytes(hashlib.sha3_256(data).digest())
