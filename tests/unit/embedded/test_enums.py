"""Enums of contracts: variants as Python classes, their values, ABI and upgrades."""

from __future__ import annotations

from typing import Generic

import pytest

from toolkit import embedded
from toolkit.embedded import (
    T0,
    Enum,
    Event,
    Module,
    Option,
    Resource,
    Struct,
    Table,
    TypeArgument,
    entry,
    signer,
    u8,
    u64,
    vector,
    view,
)
from toolkit.errors import InputError
from toolkit.move import encode_bcs, parse_address


class Lamps(Module, address="0x1a4b"):
    """Enums as a resource, in fields, in a table, in vectors and options, generic and nested."""

    class Color(Enum):
        class White: ...

        class Mixed:
            red: u8
            green: u8

    class Mode(Enum, abilities="copy drop store key"):
        class Off: ...

        class On:
            level: u8
            color: Lamps.Color

        class Pair:
            _0: u64
            _1: bool

    class Maybe(Enum, Generic[T0]):
        class Nothing: ...

        class Just:
            value: T0

    class Lamp(Resource):
        mode: Lamps.Mode
        past: vector[Lamps.Mode]
        named: Table[u64, Lamps.Color]
        spare: Option[Lamps.Color]
        kept: Lamps.Maybe[u64]

    class Plain(Struct):
        n: u64

    def init_module(self, account: signer) -> None:
        self.move_to(account, Lamps.Mode.Off())
        lamp = Lamps.Lamp(
            mode=Lamps.Mode.Pair(_0=3, _1=True),
            past=[],
            named=self.new_table(),
            spare=None,
            kept=Lamps.Maybe.Just(value=4),
        )
        self.move_to(account, lamp)
        self.borrow(Lamps.Lamp, account).named.add(1, Lamps.Color.White())

    @entry
    def switch(self, account: signer, level: u8) -> None:
        with self.borrow_mut(Lamps.Mode, "0x1a4b") as mode:
            mode.assign(Lamps.Mode.On(level=level, color=Lamps.Color.Mixed(red=1, green=2)))
        with self.borrow_mut(Lamps.Lamp, "0x1a4b") as lamp:
            lamp.past.append(lamp.mode)
            lamp.mode = self.borrow(Lamps.Mode, "0x1a4b")
            lamp.spare = Lamps.Color.White()
            lamp.kept = Lamps.Maybe.Nothing()
            with lamp.named.borrow_mut(1) as color:
                color.assign(Lamps.Color.Mixed(red=level, green=0))

    @entry
    def dim(self, account: signer) -> None:
        with self.borrow_mut(Lamps.Mode, "0x1a4b") as mode:
            match mode:
                case Lamps.Mode.On():
                    mode.level -= 1
                case _:
                    self.abort(7)

    @entry
    def take(self, account: signer) -> None:
        self.move_from(Lamps.Mode, account)

    @view
    def mode(self) -> Lamps.Mode:
        return self.borrow(Lamps.Mode, "0x1a4b")

    @view
    def color(self) -> Lamps.Color:
        return self.borrow(Lamps.Lamp, "0x1a4b").named.borrow(1)

    @view
    def describe(self, mode: Lamps.Mode) -> u64:
        return u64(mode.level) if isinstance(mode, Lamps.Mode.On) else 0

    @view
    def wrap(self, kind: TypeArgument, value: T0) -> Lamps.Maybe[T0]:
        return Lamps.Maybe.Just(value=value)

    @view
    def wrong(self) -> Lamps.Mode:
        return Lamps.Color.White()


@pytest.fixture
def ledger():
    ledger = embedded.Ledger()
    ledger.publish(Lamps)
    return ledger


def test_a_value_of_an_enum_is_a_variant_with_its_fields(ledger):
    """As a resource, in fields, vectors, options, tables and other enums."""
    color = {"__variant__": "Mixed", "red": 1, "green": 2}
    on = {"__variant__": "On", "level": 9, "color": color}
    pair = {"__variant__": "Pair", "_0": 3, "_1": True}
    assert ledger.view("0x1a4b::lamps::mode")[0] == [{"__variant__": "Off"}]
    assert ledger.commit("0x1a4b::lamps::switch", 9, sender="0xb0b").success
    assert ledger.view("0x1a4b::lamps::mode")[0] == [on]
    assert ledger.resource("0x1a4b", "0x1a4b::lamps::Mode") == on
    assert ledger.view("0x1a4b::lamps::color")[0] == [color | {"red": 9, "green": 0}]
    lamp = ledger.resource("0x1a4b", "0x1a4b::lamps::Lamp")
    assert (lamp["mode"], lamp["past"], lamp["spare"]) == (on, [pair], {"__variant__": "White"})
    assert lamp["kept"] == {"__variant__": "Nothing"}


def test_contracts_tell_variants_apart(ledger):
    """`match` and `isinstance` work on values from the ledger and on arguments; fields can be changed in place."""
    assert "0x7" in ledger.commit("0x1a4b::lamps::dim", sender="0xb0b").vm_status
    ledger.commit("0x1a4b::lamps::switch", 9, sender="0xb0b")
    assert ledger.commit("0x1a4b::lamps::dim", sender="0xb0b").success
    assert ledger.view("0x1a4b::lamps::mode")[0][0]["level"] == 8
    on = {"__variant__": "On", "level": 5, "color": {"__variant__": "White"}}
    assert ledger.view("0x1a4b::lamps::describe", [on])[0] == [5]
    assert ledger.view("0x1a4b::lamps::describe", [{"__variant__": "Off"}])[0] == [0]
    assert ledger.view("0x1a4b::lamps::wrap", [3], ["u64"])[0] == [{"__variant__": "Just", "value": 3}]


def test_an_enum_resource_can_be_taken_back(ledger):
    """`move_from` deletes it, `move_to` needs the place to be free."""
    assert ledger.commit("0x1a4b::lamps::take", sender="0x1a4b").success
    assert ledger.resource("0x1a4b", "0x1a4b::lamps::Mode") is None


def test_bcs_starts_with_the_index_of_the_variant(ledger):
    """The bytes of the recorded ``Pair(3, true)`` and ``Off``."""
    layout = ledger.chain.code_at(ledger.head).layout("0x1a4b::lamps::Mode")
    assert encode_bcs(layout, {"__variant__": "Pair", "_0": 3, "_1": True}).hex() == "02030000000000000001"
    assert encode_bcs(layout, {"__variant__": "Off"}).hex() == "00"


def test_values_compare_and_print_with_the_name_of_the_enum():
    """Equal variants with equal fields are equal."""
    mixed = Lamps.Color.Mixed(red=1, green=2)
    assert repr(mixed) == "Color.Mixed(red=1, green=2)"
    assert mixed == Lamps.Color.Mixed(red=1, green=2)
    assert mixed != Lamps.Color.White()
    assert isinstance(mixed, Lamps.Color)


def test_a_wrong_value_is_refused(ledger):
    """A value of another enum, the enum itself, a missing field."""
    with pytest.raises(InputError, match=r"expected Mode, got Color\.White\(\)"):
        ledger.view("0x1a4b::lamps::wrong")
    with pytest.raises(InputError, match="expected Mode, got Color"):
        Lamps.Mode.Off().assign(Lamps.Color.White())
    with pytest.raises(InputError, match=r"\(Off, On, Pair\)"):
        Lamps.Mode()
    with pytest.raises(InputError, match="missing fields: green"):
        Lamps.Color.Mixed(red=1)


def test_an_enum_needs_variants_and_has_no_fields_of_its_own():
    """Both are mistakes that Python would accept."""
    with pytest.raises(InputError, match="has no variants"):

        class Empty(Enum):
            pass

    with pytest.raises(InputError, match="fields of its own"):

        class Mixed(Enum):
            n: u64

            class One: ...


def _struct(ledger, name):
    code = ledger.chain.code_at(ledger.head)
    structs = code.abi_json(code.modules[parse_address("0x1a4b"), "lamps"])["structs"]
    return next(struct for struct in structs if struct["name"] == name)


def test_the_abi_lists_variants_only_if_chosen(ledger):
    """By default as on the recorded node: no fields and no variants; abilities in the node's order."""
    recorded = {
        "name": "Mode",
        "is_native": False,
        "is_event": False,
        "is_enum": True,
        "abilities": ["copy", "drop", "store", "key"],
        "generic_type_params": [],
        "fields": [],
    }
    assert _struct(ledger, "Mode") == recorded
    assert "variants" not in _struct(ledger, "Plain")
    newer = embedded.Ledger(enum_variants=True)
    newer.publish(Lamps)
    assert _struct(newer, "Plain")["variants"] == []
    assert _struct(newer, "Mode") == recorded | {
        "variants": [
            {"name": "Off", "fields": []},
            {
                "name": "On",
                "fields": [{"name": "level", "type": "u8"}, {"name": "color", "type": "0x1a4b::lamps::Color"}],
            },
            {"name": "Pair", "fields": [{"name": "_0", "type": "u64"}, {"name": "_1", "type": "bool"}]},
        ]
    }


def test_an_upgrade_may_add_variants_at_the_end():
    """A variant that is missing, changed or added before others breaks stored values."""

    class First(Module, address="0x1a4b", name="first"):
        class Mode(Enum):
            class Off: ...

            class On:
                level: u8

    class More(First):
        class Mode(Enum):
            class Off: ...

            class On:
                level: u8

            class Blinking: ...

    class Other(First):
        class Mode(Enum):
            class Blinking: ...

            class Off: ...

            class On:
                level: u8

    ledger = embedded.Ledger()
    ledger.publish(First)
    with pytest.raises(InputError, match=r"struct Mode\b"):
        ledger.publish(Other)
    ledger.publish(More)
    with pytest.raises(InputError, match="variants"):
        ledger.publish(First)


def test_a_variant_is_not_a_type():
    """A field or parameter has the type of the enum."""
    with pytest.raises(InputError, match=r"^.*\bOn\b.*\bMode$"):

        class Wrong(Module, address="0x1a4c"):
            @view
            def level(self, mode: Lamps.Mode.On) -> u8:
                return mode.level


def test_an_event_may_be_an_enum():
    """As `#[event] enum`; every variant is an event of one type."""

    class Doors(Module, address="0x1a4d"):
        class Moved(Event, Enum):
            class Opened: ...

            class Closed:
                times: u64

        @entry
        def move(self, account: signer) -> None:
            self.emit(Doors.Moved.Opened())
            self.emit(Doors.Moved.Closed(times=2))

    struct = Doors.definition.abi.struct("Moved")
    assert (struct.is_event, struct.is_enum, struct.abilities) == (True, True, ("drop", "store"))
    ledger = embedded.Ledger()
    ledger.publish(Doors)
    events = ledger.commit("0x1a4d::doors::move", sender="0xb0b").output.events
    assert [(event.type, event.data.hex()) for event in events[:2]] == [
        ("0x1a4d::doors::Moved", "00"),
        ("0x1a4d::doors::Moved", "010200000000000000"),
    ]
