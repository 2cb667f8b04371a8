"""A name registry in a table, whose views cost the same for any number of names; and a module that is deleted later."""

from __future__ import annotations

from toolkit.embedded import (
    Event,
    Module,
    Resource,
    String,
    Struct,
    Table,
    address,
    already_exists,
    entry,
    not_found,
    permission_denied,
    signer,
    u64,
    view,
)
from toolkit.embedded.framework._chain import Timestamp

__all__ = ["Registry", "Trial"]


class Registry(Module, address="0xcafe", code_bytes=24_000):
    """Names and their owners."""

    class Record(Struct):
        """The owner of a name and the time of registration (seconds)."""

        owner: address
        registered_at: u64

    class Registry(Resource):
        """All names."""

        records: Table[String, Registry.Record]
        size: u64

    class Registered(Event):
        """A name was registered or transferred."""

        name: String
        owner: address

    class Released(Event):
        """A name was released."""

        name: String

    E_TAKEN = already_exists(1, "The name is registered already")
    E_UNKNOWN = not_found(2, "Nobody registered this name")
    E_NOT_OWNER = permission_denied(3, "The name belongs to somebody else")

    def init_module(self, account: signer) -> None:
        """Store an empty registry."""
        self.move_to(account, Registry.Registry(records=self.new_table(), size=0))

    @entry
    def register(self, account: signer, name: String) -> None:
        """Register a name that is not taken."""
        now = self.use(Timestamp).now_seconds()
        with self.borrow_mut(Registry.Registry, "0xcafe") as registry:
            self.require(not registry.records.contains(name), self.E_TAKEN)
            registry.records.add(name, Registry.Record(owner=account, registered_at=now))
            registry.size += 1
        self.emit(Registry.Registered(name=name, owner=account))

    @entry
    def transfer(self, account: signer, name: String, to: address) -> None:
        """Transfer a name to another account."""
        records = self.borrow(Registry.Registry, "0xcafe").records
        self.require(records.contains(name), self.E_UNKNOWN)
        with records.borrow_mut(name) as record:
            self.require(record.owner == account, self.E_NOT_OWNER)
            record.owner = to
        self.emit(Registry.Registered(name=name, owner=to))

    @entry
    def release(self, account: signer, name: String) -> None:
        """Release a name."""
        with self.borrow_mut(Registry.Registry, "0xcafe") as registry:
            self.require(registry.records.contains(name), self.E_UNKNOWN)
            self.require(registry.records.remove(name).owner == account, self.E_NOT_OWNER)
            registry.size -= 1
        self.emit(Registry.Released(name=name))

    @view
    def size(self) -> u64:
        """Return the number of registered names."""
        return self.borrow(Registry.Registry, "0xcafe").size

    @view
    def record_of(self, name: String) -> Record:
        """Return the record of a name."""
        records = self.borrow(Registry.Registry, "0xcafe").records
        self.require(records.contains(name), self.E_UNKNOWN)
        return records.borrow(name)

    @view
    def handle(self) -> address:
        """Return the handle of the table of records."""
        return self.borrow(Registry.Registry, "0xcafe").records.handle


class Trial(Module, address="0xcafe"):
    """A module that the seeded history deletes: its functions stop existing at one version."""

    @view
    def greeting(self) -> String:
        """Return a greeting."""
        return "hello"
