"""Contracts written in Python: ABIs from annotations, access to state, aborts, upgrades."""

from __future__ import annotations

from typing import Generic

import pytest

from toolkit import embedded
from toolkit.embedded import (
    T0,
    AbortCode,
    Event,
    Module,
    Object,
    Option,
    Resource,
    String,
    Struct,
    Table,
    TypeArgument,
    address,
    already_exists,
    entry,
    i64,
    invalid_state,
    not_found,
    public,
    signer,
    u8,
    u64,
    u128,
    vector,
    view,
)
from toolkit.embedded.framework._configuration import Timestamp
from toolkit.embedded.teaching import CheaperVault, Registry, Vault
from toolkit.errors import InputError
from toolkit.move import decode_module_abi


def test_an_abort_code_is_a_u64():
    """What a transaction's status could not hold is refused where it is written."""
    assert already_exists(2**16 - 1, "").code == 0x8FFFF
    for code in (-1, 2**64):
        with pytest.raises(InputError, match="must be a u64"):
            AbortCode(code, "")


@pytest.mark.parametrize("reason", [0x10000, -1, True, "1"])
@pytest.mark.parametrize("category", [already_exists, embedded.invalid_argument, embedded.resource_exhausted])
def test_a_reason_has_16_bits(category, reason):
    """A larger one would be added to the category: invalid_argument(0x10000) would be an out_of_range."""
    with pytest.raises(InputError, match=r"\b0 to 65,535"):
        category(reason, "")


class Shapes(Module, address="0xca11"):
    """Every kind of type a contract can name."""

    class Point(Struct):
        x: i64
        y: i64

    class Box(Struct, Generic[T0]):
        content: T0

    class Drawing(Resource):
        points: vector[Shapes.Point]
        label: Option[String]
        boxed: Shapes.Box[u128]
        seen: Table[address, vector[u8]]
        raw: bytes

    class Drawn(Event):
        by: address
        points: u64

    E_DRAWN = already_exists(7, "There is a drawing already")

    @entry
    def draw(self, account: signer, label: Option[String], raw: bytes) -> None:
        self.require(not self.exists(Shapes.Drawing, account), self.E_DRAWN)
        drawing = Shapes.Drawing(
            points=[Shapes.Point(x=-1, y=2)],
            label=label,
            boxed=Shapes.Box(content=2**100),
            seen=self.new_table(),
            raw=raw,
        )
        self.move_to(account, drawing)
        self.borrow(Shapes.Drawing, account).seen.add(account, [1, 2])
        self.emit(Shapes.Drawn(by=account, points=1))

    @entry
    def erase(self, account: signer) -> None:
        drawing = self.move_from(Shapes.Drawing, account)
        drawing.seen.remove(account)

    @entry
    def overflow(self, account: signer) -> None:
        with self.borrow_mut(Shapes.Drawing, account) as drawing:
            drawing.boxed.content = 2**128

    @entry
    def half_done(self, account: signer) -> None:
        with self.borrow_mut(Shapes.Drawing, account) as drawing:
            drawing.raw = b"changed"
        self.abort(42)

    @view
    def points(self, owner: address) -> tuple[vector[Point], Option[String]]:
        drawing = self.borrow(Shapes.Drawing, owner)
        return drawing.points, drawing.label

    @view
    def seen_by(self, owner: address, who: address) -> vector[u8]:
        return self.borrow(Shapes.Drawing, owner).seen.borrow_with_default(who, [])

    @view
    def name_of(self, kind: TypeArgument) -> String:
        return self.type_name(kind)

    @view
    def same(self, kind: TypeArgument, thing: Object[T0]) -> Object[T0]:
        return thing

    @view
    def clock(self) -> u64:
        return self.use(Timestamp).now_seconds()

    @public
    def helper(self, amount: u64) -> u64:
        return amount + 1


@pytest.fixture
def ledger() -> embedded.Ledger:
    fresh = embedded.Ledger()
    fresh.publish(Shapes)
    return fresh


def _function(contract: type[Module], name: str) -> dict:
    return next(f for f in contract.definition.abi_json["exposed_functions"] if f["name"] == name)


def test_abi_states_signers_generics_and_types_as_the_wire_does():
    """An entry function's signer, options, bytes and a view's several results show in the ABI."""
    assert _function(Shapes, "draw") == {
        "name": "draw",
        "visibility": "public",
        "is_entry": True,
        "is_view": False,
        "generic_type_params": [],
        "params": ["&signer", "0x1::option::Option<0x1::string::String>", "vector<u8>"],
        "return": [],
    }
    assert _function(Shapes, "points")["return"] == [
        "vector<0xca11::shapes::Point>",
        "0x1::option::Option<0x1::string::String>",
    ]
    same = _function(Shapes, "same")
    assert same["generic_type_params"] == [{"constraints": []}]
    assert same["params"] == ["0x1::object::Object<T0>"]
    structs = {struct["name"]: struct for struct in Shapes.definition.abi_json["structs"]}
    assert structs["Drawing"]["fields"][2] == {"name": "boxed", "type": "0xca11::shapes::Box<u128>"}
    assert structs["Drawing"]["fields"][3]["type"] == "0x1::table::Table<address, vector<u8>>"
    assert structs["Drawing"]["abilities"] == ["key"]
    assert structs["Drawn"]["is_event"] is True


def test_values_come_back_as_they_were_stored(ledger):
    """Structs, options, wide integers, tables and bytes survive being stored as BCS."""
    assert ledger.commit("0xca11::shapes::draw", "hello", b"\x00\xff", sender="0xa11ce").success
    stored = ledger.resource("0xa11ce", "0xca11::shapes::Drawing")
    assert stored["points"] == [{"x": -1, "y": 2}]
    assert stored["label"] == "hello"
    assert stored["boxed"] == {"content": 2**100}
    assert stored["raw"] == b"\x00\xff"
    assert ledger.view("0xca11::shapes::points", ["0xa11ce"])[0] == [[{"x": -1, "y": 2}], "hello"]
    assert ledger.view("0xca11::shapes::seen_by", ["0xa11ce", "0xa11ce"])[0] == [b"\x01\x02"]


def test_an_abort_keeps_nothing_and_names_its_reason(ledger):
    """An aborted transaction is committed with its status, and leaves the contract's state alone."""
    ledger.commit("0xca11::shapes::draw", None, b"first", sender="0xa11ce")
    again = ledger.commit("0xca11::shapes::draw", None, b"second", sender="0xa11ce")
    assert not again.success
    assert again.vm_status == "Move abort in 0xca11::shapes: E_DRAWN(0x80007): There is a drawing already"
    half = ledger.commit("0xca11::shapes::half_done", sender="0xa11ce")
    assert half.vm_status == "Move abort in 0xca11::shapes: 0x2a"
    assert ledger.resource("0xa11ce", "0xca11::shapes::Drawing")["raw"] == b"first"


def test_a_number_outside_its_type_fails_the_transaction(ledger):
    """A u128 past its range is an arithmetic error, never a wrapped number."""
    ledger.commit("0xca11::shapes::draw", None, b"", sender="0xa11ce")
    done = ledger.commit("0xca11::shapes::overflow", sender="0xa11ce")
    assert not done.success
    assert done.vm_status.startswith("Execution failed in")
    assert ledger.resource("0xa11ce", "0xca11::shapes::Drawing")["boxed"] == {"content": 2**100}


def test_move_from_deletes_the_resource_and_remove_the_item(ledger):
    """Deleted state is gone at the head and still readable before."""
    drawn = ledger.commit("0xca11::shapes::draw", None, b"", sender="0xa11ce").version
    erased = ledger.commit("0xca11::shapes::erase", sender="0xa11ce")
    assert ledger.resource("0xa11ce", "0xca11::shapes::Drawing") is None
    assert ledger.resource("0xa11ce", "0xca11::shapes::Drawing", version=drawn) is not None
    assert sum(value is None for value in erased.output.writes.values()) == 2


def test_type_arguments_reach_the_contract(ledger):
    """A generic view sees its type argument, and needs exactly as many as it declares."""
    assert ledger.view("0xca11::shapes::name_of", [], ["vector<u8>"])[0] == ["vector<u8>"]
    with pytest.raises(InputError, match=r"\b1 type argument\b.*\b0$"):
        ledger.view("0xca11::shapes::name_of")


def test_contracts_call_each_other_through_use(ledger):
    """The clock of the framework is read through `use`."""
    assert ledger.view("0xca11::shapes::clock")[0] == [ledger.state.timestamp_us // 1_000_000]


def test_a_contract_may_be_defined_inside_a_function():
    """A notebook cell or a test can define, publish and use a contract in one place."""

    class Counter(Module, address="0xc0de"):
        class Counter(Resource):
            count: u64

        def init_module(self, account: signer) -> None:
            self.move_to(account, Counter.Counter(count=0))

        @entry
        def increment(self, account: signer) -> None:
            with self.borrow_mut(Counter.Counter, "0xc0de") as counter:
                counter.count += 1

        @view
        def count(self) -> u64:
            return self.borrow(Counter.Counter, "0xc0de").count

    ledger = embedded.Ledger()
    published = ledger.publish(Counter)
    for _ in range(3):
        ledger.commit("0xc0de::counter::increment", sender="0xb0b")
    assert ledger.view("0xc0de::counter::count")[0] == [3]
    assert ledger.view("0xc0de::counter::count", version=published.version)[0] == [0]


def test_an_annotation_that_is_no_move_type_is_refused_by_name():
    """The message names the method and the types there are."""
    with pytest.raises(InputError, match=r"Wrong\.price, returned value: float"):

        class Wrong(Module, address="0x5"):
            @view
            def price(self) -> float:
                return 1.0


def test_a_parameter_without_annotation_is_refused():
    """Every parameter needs a type, as the ABI is made from them."""
    with pytest.raises(InputError, match="parameter amount"):

        class Wrong(Module, address="0x5"):
            @view
            def price(self, amount) -> u8:
                return amount


def test_a_struct_takes_exactly_its_fields():
    """A missing or unknown field is named."""
    with pytest.raises(InputError, match=r"\by\b.*\bz\b"):
        Shapes.Point(x=1, z=2)


def test_only_the_defining_module_reaches_a_resource():
    """The error tells a contract that borrows another module's resource to call that module."""

    class Thief(Module, address="0x7e1f"):
        @view
        def peek(self, owner: address) -> bytes:
            return self.borrow(Shapes.Drawing, owner).raw

    ledger = embedded.Ledger()
    ledger.publish(Shapes)
    ledger.publish(Thief)
    with pytest.raises(InputError, match="only the module that defines a resource can"):
        ledger.view("0x7e1f::thief::peek", ["0xa11ce"])


def test_an_upgrade_keeps_what_was_there_and_old_versions_run_old_code():
    """After the upgrade a new function exists; at versions before it, it does not."""
    ledger = embedded.Ledger()
    before = ledger.publish(Vault).version
    after = ledger.publish(CheaperVault).version
    assert ledger.view("0xfa17::vault::preview", [5], version=after)[0] == [5]
    with pytest.raises(InputError, match="preview does not exist"):
        ledger.view("0xfa17::vault::preview", [5], version=before)
    registry = ledger.resource("0xfa17", "0x1::code::PackageRegistry")
    assert registry["packages"][0]["upgrade_number"] == 1


def test_an_upgrade_that_breaks_callers_is_refused():
    """Dropping a function or changing a struct is refused with the reason."""

    class Shrunk(Module, address="0xcafe", name="registry"):
        @view
        def size(self) -> u64:
            return 0

    ledger = embedded.Ledger()
    ledger.publish(Registry)
    with pytest.raises(InputError, match="function handle is missing"):
        ledger.publish(Shrunk)


def test_bytecode_names_the_error_constants():
    """They are in its metadata by the value of the constant, within the declared size; a contract without any has none."""

    class Shop(Module, address="0x5407", code_bytes=600):
        E_SOLD_OUT = not_found(2, "The item is sold out")
        E_CLOSED = invalid_state(1, "The shop is closed")

    class Stall(Module, address="0x5407"):
        E_RAIN = AbortCode(7, "It rains")

    class Closed(Module, address="0x5407"):
        pass

    def errors(contract):
        made = {"abi": contract.definition.abi_json, "bytecode": "0x" + contract.definition.bytecode.hex()}
        return [(one.code, one.name, one.description) for one in decode_module_abi(made).errors]

    assert errors(Shop) == [(1, "E_CLOSED", "The shop is closed"), (2, "E_SOLD_OUT", "The item is sold out")]
    assert len(Shop.definition.bytecode) == 600
    assert errors(Stall) == [(7, "E_RAIN", "It rains")]
    assert errors(Closed) == []


def test_bytecode_depends_on_abi_and_revision_only():
    """Two revisions of one ABI differ; the same class gives the same bytes."""

    class One(Module, address="0x5", name="same"):
        @view
        def value(self) -> u64:
            return 1

    class Two(Module, address="0x5", name="same"):
        @view
        def value(self) -> u64:
            return 2

    class Three(Two, revision=2):
        pass

    assert One.definition.bytecode == Two.definition.bytecode
    assert Three.definition.bytecode != Two.definition.bytecode


def test_annotations_may_be_in_quotes():
    """A name that is defined further down is written in quotes, whether annotations are evaluated or not."""

    class Quoted(Module, address="0xca11"):
        class Outer(Struct):
            inner: "vector[Quoted.Inner]"  # noqa: UP037 - the quotes are what is tested

        class Inner(Struct):
            n: u64

    assert Quoted.definition.abi.struct("Outer").fields[0].type == "vector<0xca11::quoted::Inner>"
