"""Event handles: keys, sequence numbers, and the events that a chain finds by them."""

from __future__ import annotations

import pytest

from toolkit import embedded
from toolkit.embedded import EventHandle, Module, ObjectModule, Resource, Struct, Table, entry, signer, u64
from toolkit.errors import InputError
from toolkit.move import parse_address
from toolkit.move._ids import address_to_bytes

BELL = "0xbe11"


class Bell(Module, address=BELL):
    """Two handles of an account, one of an object, and handles in a table."""

    class Ring(Struct, abilities="drop store"):
        n: u64

    class Rings(Resource):
        first: EventHandle[Bell.Ring]
        second: EventHandle[Bell.Ring]

    class Hung(Resource, group="0x1::object::ObjectGroup"):
        rings: EventHandle[Bell.Ring]

    class Tower(Resource):
        handles: Table[u64, EventHandle[Bell.Ring]]

    def init_module(self, account: signer) -> None:
        self.move_to(account, Bell.Rings(first=self.new_event_handle(account), second=self.new_event_handle(account)))
        bell = self.use(ObjectModule).create_named_object(account, b"BELL")
        self.move_to(bell, Bell.Hung(rings=self.use(ObjectModule).new_event_handle(bell)))
        self.move_to(account, Bell.Tower(handles=self.new_table()))
        self.borrow(Bell.Tower, account).handles.add(1, self.new_event_handle(account))

    @entry
    def ring(self, account: signer, times: u64) -> None:
        with self.borrow_mut(Bell.Rings, BELL) as rings:
            for n in range(times):
                self.emit_event(rings.second, Bell.Ring(n=n))

    @entry
    def ring_object(self, account: signer, bell: embedded.address) -> None:
        with self.borrow_mut(Bell.Hung, bell) as hung:
            self.emit_event(hung.rings, Bell.Ring(n=1))

    @entry
    def ring_tower(self, account: signer) -> None:
        with self.borrow(Bell.Tower, BELL).handles.borrow_mut(1) as handle:
            self.emit_event(handle, Bell.Ring(n=1))

    @entry
    def ring_and_abort(self, account: signer) -> None:
        with self.borrow_mut(Bell.Rings, BELL) as rings:
            self.emit_event(rings.second, Bell.Ring(n=1))
        self.abort(1)

    @entry
    def ring_copy(self, account: signer) -> None:
        self.emit_event(self.borrow(Bell.Rings, BELL).first, Bell.Ring(n=1))


@pytest.fixture
def ledger():
    ledger = embedded.Ledger(window=40)
    ledger.publish(Bell)
    return ledger


def _key(address, number):
    return number.to_bytes(8, "little") + address_to_bytes(address)


def _places(committed):
    return [(event.key, event.sequence_number) for event in committed.output.events]


def test_events_of_a_handle_have_its_key_and_count_on(ledger):
    """Handles of an account are numbered from 2; sequence numbers go on in the next transaction."""
    key = _key(parse_address(BELL), 3)
    none = (None, 0)  # the fee statement is a module event
    first, second = (ledger.commit(f"{BELL}::bell::ring", 2, sender="0xb0b") for _ in range(2))
    assert _places(first) == [(key, 0), (key, 1), none]
    assert _places(second) == [(key, 2), (key, 3), none]
    stored = ledger.resource(BELL, f"{BELL}::bell::Rings")
    assert (stored["first"]["counter"], stored["second"]["counter"]) == (0, 4)
    assert ledger.resource(BELL, "0x1::account::Account")["guid_creation_num"] == 5


def test_objects_and_table_items_hold_handles(ledger):
    """An object's handles are numbered after the one it is created with; a handle in a table counts on there."""
    bell = embedded.framework._object.named_object_address(parse_address(BELL), b"BELL")
    committed = ledger.commit(f"{BELL}::bell::ring_object", bell, sender="0xb0b")
    assert _places(committed)[0] == (_key(bell, 0x4000000000001), 0)
    for number in (0, 1):
        committed = ledger.commit(f"{BELL}::bell::ring_tower", sender="0xb0b")
        assert _places(committed)[0] == (_key(parse_address(BELL), 4), number)


def test_an_abort_takes_events_and_counter_back(ledger):
    """The next event has the number that the aborted one had."""
    assert not ledger.commit(f"{BELL}::bell::ring_and_abort", sender="0xb0b").success
    assert _places(ledger.commit(f"{BELL}::bell::ring", 1, sender="0xb0b"))[0] == (_key(parse_address(BELL), 3), 0)


def test_a_copy_of_a_handle_cannot_be_emitted_to(ledger):
    """Its counter is not stored, so two events would have one number."""
    with pytest.raises(InputError, match="borrow_mut"):
        ledger.commit(f"{BELL}::bell::ring_copy", sender="0xb0b")
