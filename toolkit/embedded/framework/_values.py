"""Modules that only define types: string, option, table, guid, event, type_info and optional_aggregator."""

from __future__ import annotations

from typing import Annotated, Any, Generic

from toolkit.embedded._contract import Module
from toolkit.embedded._vm_status import AbortCode
from toolkit.embedded.types import *

ResourceType = Annotated[TypeArgument, "key"]
"""A type argument that must be a resource, such as the type of an object."""


class StringModule(Module, address="0x1", name="string"):
    """UTF-8 strings."""

    class String(Struct):
        """A string's bytes."""

        bytes: bytes


class OptionModule(Module, address="0x1", name="option"):
    """Optional values."""

    class Option(Struct, Generic[T0]):
        """A vector with at most one element."""

        vec: vector[T0]


class TableModule(Module, address="0x1", name="table"):
    """Tables; their functions are native, so the module only defines the type."""

    class Table(Struct, Generic[T0, T1], abilities="store", constraints={"T0": "copy drop"}):
        """The handle under which a table's items are stored."""

        handle: address


class Guid(Module, address="0x1"):
    """Identifiers that consist of an address and a number."""

    class ID(Struct):
        """An identifier."""

        creation_num: u64
        addr: address

    class GUID(Struct, abilities="drop store"):
        """An identifier that cannot be copied."""

        id: Guid.ID


class EventModule(Module, address="0x1", name="event"):
    """Event handles, which count their events."""

    class EventHandle(Struct, Generic[T0], abilities="store", constraints={"T0": "drop store"}):
        """An event handle, stored in a field of a resource: its key, and the number of events emitted to it.

        Contracts create handles with ``self.new_event_handle(account)`` and emit to them with ``self.emit_event``.

        Parameters
        ----------
        counter : u64
            Number of events emitted so far: the sequence number of the next event.
        guid : GUID
            Address that created the handle, and its creation number.

        Examples
        --------
        >>> from toolkit.embedded import EventHandle, Ledger, Module, Resource, Struct, entry, signer, u64
        >>> class Bell(Module, address="0xbe11"):
        ...     class Ring(Struct, abilities="drop store"):
        ...         n: u64
        ...
        ...     class Rings(Resource):
        ...         events: "EventHandle[Bell.Ring]"
        ...
        ...     def init_module(self, account: signer) -> None:
        ...         self.move_to(account, Bell.Rings(events=self.new_event_handle(account)))
        ...
        ...     @entry
        ...     def ring(self, account: signer) -> None:
        ...         with self.borrow_mut(Bell.Rings, "0xbe11") as rings:
        ...             self.emit_event(rings.events, Bell.Ring(n=7))
        >>> ledger = Ledger()
        >>> published = ledger.publish(Bell)
        >>> done = ledger.commit("0xbe11::bell::ring", sender="0xb0b")
        >>> ledger.resource("0xbe11", "0xbe11::bell::Rings")["events"]["counter"]
        1
        """

        counter: u64
        guid: Guid.GUID


EventHandle = EventModule.EventHandle


def event_handle(owner: str, creation_num: int) -> EventModule.EventHandle[Any]:
    """Return a new event handle for an account."""
    identifier = Guid.ID(creation_num=creation_num, addr=owner)
    return EventModule.EventHandle(counter=0, guid=Guid.GUID(id=identifier))


class TypeInfoModule(Module, address="0x1", name="type_info"):
    """Descriptions of types."""

    class TypeInfo(Struct):
        """Address, module and name of a struct type."""

        account_address: address
        module_name: bytes
        struct_name: bytes

    E_NATIVE_FUN_NOT_AVAILABLE = AbortCode(1, "")


class OptionalAggregator(Module, address="0x1"):
    """Numbers that are aggregators or plain integers; on the embedded ledger, they are always plain integers."""

    class Aggregator(Struct, abilities="store"):
        """An aggregator, which the embedded ledger never creates."""

        handle: address
        key: address
        limit: u128

    class Integer(Struct, abilities="store"):
        """A plain integer with a limit."""

        value: u128
        limit: u128

    class OptionalAggregator(Struct, abilities="store"):
        """An aggregator or an integer."""

        aggregator: Option[OptionalAggregator.Aggregator]
        integer: Option[OptionalAggregator.Integer]
