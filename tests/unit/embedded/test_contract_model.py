"""What a contract in Python does to a ledger: typed values, borrowed values, signers, aborts and charges."""

from __future__ import annotations

import copy
from contextlib import suppress

import pytest

import toolkit
from toolkit.embedded import (
    APTOS_COIN,
    Account,
    Coin,
    Enum,
    Ledger,
    Module,
    ObjectModule,
    Option,
    Resource,
    String,
    Struct,
    Table,
    address,
    entry,
    invalid_argument,
    public,
    signer,
    u8,
    u64,
    vector,
    view,
)
from toolkit.embedded._primitives import Address
from toolkit.errors import Aborted, ContractError
from toolkit.move import parse_address

AT = "0x1ab"


class Lab(Module, address=AT):
    """State of every kind, and functions that do with it what a contract should and should not do."""

    class Point(Struct):
        x: u64

    class Mode(Enum):
        class On:
            level: u8

        class Off: ...

    class Box(Resource):
        n: u64
        small: u8
        items: vector[u64]
        raw: vector[u8]
        points: vector[Lab.Point]
        best: Lab.Point
        mode: Lab.Mode
        maybe: Option[u64]
        table: Table[u64, Lab.Point]
        counts: Table[u64, u64]
        lists: Table[u64, vector[u64]]

    E_NO = invalid_argument(1, "No")

    def init_module(self, account: signer) -> None:
        point = Lab.Point(x=1)
        box = Lab.Box(
            n=5,
            small=250,
            items=[1, 2, 3],
            raw=[1],
            points=[point],
            best=point,
            mode=Lab.Mode.On(level=1),
            maybe=None,
            table=self.new_table(),
            counts=self.new_table(),
            lists=self.new_table(),
        )
        self.move_to(account, box)
        stored = self.borrow(Lab.Box, AT)
        stored.table.add(7, point)
        stored.counts.add(7, 0)
        stored.lists.add(7, [1])

    @entry
    def change(self, account: signer, what: String) -> None:
        with self.borrow_mut(Lab.Box, AT) as box:
            CHANGES[what][0](self, box)

    @entry
    def do(self, account: signer, what: String) -> None:
        ACTIONS[what][0](self, account)

    @public
    def typed(self, n: u64) -> u64:
        return n

    @view
    def read(self, what: String) -> u64:
        box = self.borrow(Lab.Box, AT)
        READS[what](box)
        return 1

    @view
    def numbers(self) -> tuple[u64, u8, vector[u64], vector[Lab.Point], Option[u64]]:
        box = self.borrow(Lab.Box, AT)
        return box.n, box.small, box.items, box.points, box.maybe

    @view
    def point(self) -> u64:
        return self.borrow(Lab.Box, AT).table.borrow(7).x

    @view
    def listed(self) -> vector[u64]:
        return self.borrow(Lab.Box, AT).lists.borrow(7)

    @view
    def turns(self, count: u64) -> u64:
        done = u64(0)
        for _ in self.each(range(count)):
            done += 1
        return done

    @view
    def free_turns(self, count: u64) -> u64:
        done = u64(0)
        for _ in range(count):
            done += 1
        return done


class Caller(Module, address="0xca11", uses=[Lab]):
    """Calls another module with what it must not take."""

    @view
    def pass_on(self, n: u64) -> u64:
        return self.use(Lab).typed(n - 5 if n > 4 else -5)

    @view
    def wrong_type(self) -> u64:
        return self.use(Lab).typed("5")

    @view
    def private(self) -> u64:
        return self.use(Lab).init_module("0x1")


def _overflow_and_back(_, box):
    box.small += 10
    box.small -= 10


def _nested(self, box):
    with self.borrow_mut(Lab.Box, AT) as other:
        other.n += 1
    box.n += 1


def _item_twice(_, box):
    with box.table.borrow_mut(7) as point:
        box.table.upsert(7, Lab.Point(x=9))
        point.x += 1


def _swallow(self, box):
    box.n = 777
    with suppress(Exception):
        self.abort(self.E_NO)


def _swallow_all(self, box):
    box.n = 777
    with suppress(BaseException):
        self.abort(self.E_NO)


def _swallow_arithmetic(_, box):
    try:
        box.n = box.n - 6
    except Exception:  # noqa: BLE001 - what must not work
        box.n = 0


def _set(name, value):
    return lambda _, box: setattr(box, name, value)


CHANGES = {
    "a field": (lambda _, box: setattr(box, "n", box.n + 1), {0: 6}),
    "a number fits": (_set("small", 255), {1: 255}),
    "a list in a field": (lambda _, box: box.items.append(4), {2: [1, 2, 3, 4]}),
    "a struct in a list": (lambda _, box: setattr(box.points[0], "x", 9), {3: [{"x": 9}]}),
    "an option": (_set("maybe", 3), {4: 3}),
    "a number that does not fit": (_set("small", 256), "256 is not a u8"),
    "an intermediate result": (_overflow_and_back, "Addition overflow"),
    "an element that does not fit": (lambda _, box: box.items.append(-1), "-1 is not a u64"),
    "an element of another type": (lambda _, box: box.items.append("x"), "expected u64, got 'x'"),
    "a bool as a number": (_set("n", True), "expected u64, got True"),
    "a fraction": (_set("n", 1.5), "expected u64, got 1.5"),
    "another width": (lambda _, box: setattr(box, "small", box.n), "expected u8, got u64 5"),
    "another struct": (_set("best", 5), "expected Point, got 5"),
    "a field that does not exist": (_set("nn", 1), "Box has no field nn; did you mean `n`?"),
    "the resource twice": (_nested, "already borrowed mutably"),
    "the resource again": (lambda self, box: setattr(box, "n", self.borrow(Lab.Box, AT).n), "already borrowed mutably"),
    "the resource taken away": (lambda self, _: self.move_from(Lab.Box, AT), "already borrowed mutably"),
    "an item twice": (_item_twice, "already borrowed mutably"),
    "a swallowed abort": (_swallow, "E_NO(0x10001)"),
    "an abort that a bare except swallows": (_swallow_all, "E_NO(0x10001)"),
    "a swallowed underflow": (_swallow_arithmetic, "Subtraction overflow"),
    "an index out of range": (lambda _, box: box.items[3], "VECTOR_OPERATION_ERROR"),
    "a division by zero": (lambda _, box: box.n // 0, "Division by zero"),
    "an item of numbers in place": (lambda _, box: box.counts.borrow_mut(7).__enter__(), "use upsert"),
    "a Python error": (lambda _, __: {}["a"], "KeyError"),
    "an attribute of the contract": (lambda self, _: setattr(self, "total", 1), "self.total cannot be set"),
}


@pytest.fixture
def ledger():
    ledger = Ledger()
    ledger.publish(Lab)
    ledger.publish(Caller)
    return ledger


def outcome(ledger, function, what):
    """Return why a transaction failed, or an empty string."""
    try:
        ledger.commit(f"{AT}::lab::{function}", what, sender="0xb0b", check=True)
    except (Aborted, ContractError) as error:
        return str(error)
    return ""


@pytest.mark.parametrize("what", CHANGES)
def test_what_a_transaction_stores(ledger, what):
    """What it stores; nothing if it aborts or breaks a rule."""
    _, expected = CHANGES[what]
    before = ledger.view(f"{AT}::lab::numbers")[0]
    error = outcome(ledger, "change", what)
    after = ledger.view(f"{AT}::lab::numbers")[0]
    if isinstance(expected, dict):
        assert not error
        assert {place: after[place] for place in expected} == expected
    else:
        assert expected in error
        assert after == before


def _after_the_block(self, _):
    with self.borrow_mut(Lab.Box, AT) as box:
        box.n += 1
    box.n += 100


def _forged(self, _):
    self.move_to("0xa11ce", Lab.Box.__new__(Lab.Box))


def _pay_from(self, _):
    self.use(Coin).transfer(APTOS_COIN, "0xa11ce", "0xb0b", 5)


def _pay_from_by_name(self, _):
    self.use(ObjectModule).new_event_handle(object="0xa11ce")


def _own_signer(self, _):
    self.use(ObjectModule).create_named_object(self.own_signer(), b"SEED")


def _item(self, _):
    with self.borrow(Lab.Box, AT).table.borrow_mut(7) as point:
        point.x += 8


def _list_item(self, _):
    with self.borrow(Lab.Box, AT).lists.borrow_mut(7) as values:
        values.append(2)


ACTIONS = {
    "an item": (_item, ""),
    "a list as an item": (_list_item, ""),
    "own signer": (_own_signer, ""),
    "after the block": (_after_the_block, "Box.n cannot be changed"),
    "a forged signer": (_forged, "must be a signer, got '0xa11ce'"),
    "a forged signer for the framework": (_pay_from, "must be a signer"),
    "a forged signer by name": (_pay_from_by_name, "must be a signer"),
    "a signer of one's own making": (lambda _, account: type(account)("0xa11ce"), "cannot create a signer"),
    "a mutable borrow without a block": (
        lambda self, _: setattr(self.borrow_mut(Lab.Box, AT), "n", 1),
        "AttributeError",
    ),
    "a struct without a field": (lambda _, __: Lab.Point(), "Point: missing fields: x"),
    "a resource of the framework": (
        lambda self, account: self.use(Account).borrow_mut(Account.Account, account),
        "which is private",
    ),
    "an undeclared module": (lambda self, _: self.use(Caller), "without declaring it"),
}


@pytest.mark.parametrize("what", ACTIONS)
def test_what_a_contract_can_do(ledger, what):
    _, expected = ACTIONS[what]
    coins = ledger.view("0x1::coin::balance", ["0xa11ce"], ["0x1::aptos_coin::AptosCoin"])[0]
    error = outcome(ledger, "do", what)
    assert bool(error) is bool(expected)
    assert expected in error
    assert ledger.view("0x1::coin::balance", ["0xa11ce"], ["0x1::aptos_coin::AptosCoin"])[0] == coins


def test_items_of_tables_are_changed_in_place(ledger):
    assert outcome(ledger, "do", "an item") == outcome(ledger, "do", "a list as an item") == ""
    assert ledger.view(f"{AT}::lab::point")[0] == [9]
    assert ledger.view(f"{AT}::lab::listed")[0] == [[1, 2]]


def _copies(box):
    own, points, items = copy.copy(box.best), copy.deepcopy(box.points), list(box.items)
    own.x += 1
    points[0].x += 1
    points.append(own)
    items.append(4)


READS = {
    "a field": lambda box: setattr(box, "n", 1),
    "a field of a struct": lambda box: setattr(box.best, "x", 1),
    "a field of an element": lambda box: setattr(box.points[0], "x", 1),
    "a field of an item": lambda box: setattr(box.table.borrow(7), "x", 1),
    "an enum": lambda box: box.mode.assign(Lab.Mode.Off()),
    "a field of an enum": lambda box: setattr(box.mode, "level", 2),
    "append": lambda box: box.points.append(Lab.Point(x=3)),
    "an element": lambda box: box.items.__setitem__(0, 3),
    "extend": lambda box: box.raw.extend([3]),
    "sort": lambda box: box.items.sort(),
    "copies": _copies,
}


@pytest.mark.parametrize("what", [one for one in READS if one != "copies"])
def test_what_borrow_returns_cannot_be_changed(ledger, what):
    """The change would be lost without a word."""
    with pytest.raises(ContractError, match="cannot be changed"):
        ledger.view(f"{AT}::lab::read", [what])


def test_copies_of_what_borrow_returns_can_be_changed(ledger):
    before = ledger.view(f"{AT}::lab::numbers")[0]
    assert ledger.view(f"{AT}::lab::read", ["copies"])[0] == [1]
    assert ledger.view(f"{AT}::lab::numbers")[0] == before


def test_arguments_of_other_modules_are_typed(ledger):
    """A number that does not fit aborts where one module calls another; other types and private functions are errors."""
    assert ledger.view("0xca11::caller::pass_on", [7])[0] == [2]
    with pytest.raises(Aborted) as caught:
        ledger.view("0xca11::caller::pass_on", [1])
    assert "ARITHMETIC_ERROR" in caught.value.vm_status or "-5 is not a u64" in caught.value.vm_status
    with pytest.raises(ContractError, match="expected u64, got '5'"):
        ledger.view("0xca11::caller::wrong_type")
    with pytest.raises(ContractError, match="which is private"):
        ledger.view("0xca11::caller::private")


def test_each_charges_and_a_plain_loop_does_not(ledger):
    """Charged loops end by gas."""
    charged = [ledger.view(f"{AT}::lab::turns", [count])[1] for count in (0, 1_000)]
    free = [ledger.view(f"{AT}::lab::free_turns", [count])[1] for count in (0, 1_000)]
    assert charged[1] > charged[0] == free[0] == free[1]
    done = ledger.commit(f"{AT}::lab::do", "endless", sender="0xb0b", max_gas_amount=3_000)
    assert (done.success, done.vm_status, done.gas_used) == (False, "Out of gas", 3_000)


def _endless(self, _):
    while True:
        self.charge("instr.mul", 1_000)


ACTIONS["endless"] = (_endless, "Out of gas")


def test_a_write_that_changes_nothing_is_charged_only_if_a_field_is_assigned(ledger):
    """Borrowing mutably without an assignment writes nothing."""
    same = ledger.commit(f"{AT}::lab::change", "same value", sender="0xb0b")
    untouched = ledger.commit(f"{AT}::lab::change", "nothing", sender="0xb0b")
    names = [[change.name for change in done.changes] for done in (same, untouched)]
    assert [f"{AT}::lab::Box" in one for one in names] == [True, False]


CHANGES["same value"] = (lambda _, box: setattr(box, "n", box.n), {})
CHANGES["nothing"] = (lambda _, __: None, {})


def test_addresses_are_compared_by_what_they_mean(ledger):
    """`account == "0x5407"` is true for that account, however many zeros the text has."""

    class W(Module, address="0x5407"):
        class R(Resource):
            owner: address
            others: vector[address]
            by_owner: Table[address, u64]

        def init_module(self, account: signer) -> None:
            self.require(account == "0x5407" and account == "0x05407" and account != "0x5408", 1)
            self.move_to(account, W.R(owner=account, others=["0x7", account], by_owner=self.new_table()))
            self.borrow(W.R, account).by_owner.add(account, 3)

        @view
        def g(self, who: address, thing: Option[address]) -> tuple[bool, bool, bool, u64, address]:
            r = self.borrow(W.R, "0x5407")
            return who == "0x5407", r.owner == thing, "0x5407" in r.others, r.by_owner.borrow(who), who

    ledger.publish(W)
    values = ledger.view("0x5407::w::g", ["0x5407", "0x5407"])[0]
    assert values == [True, True, True, 3, "0x" + "5407".zfill(64)]
    assert type(values[-1]) is str
    assert list(toolkit.connect(ledger).contract("0x5407::w").g("0x5407", "0x5407")) == values


def test_the_framework_gets_plain_values(ledger):
    """A u64 of a contract does not bound the sums of the framework, such as a supply."""

    class Payer(Module, address="0x9a4"):
        @entry
        def pay(self, account: signer, amount: u64) -> None:
            self.use(Coin).transfer(APTOS_COIN, account, "0xb0b", amount)
            self.require(self.use(Account).exists_at("0xb0b") is True, 1)

    ledger.publish(Payer)
    assert ledger.commit("0x9a4::payer::pay", 5, sender="0xa11ce").success


def test_an_assertion_with_a_code_aborts():
    """``assert condition, self.E_CODE`` is an abort with the code, whose writes are discarded."""

    class Door(Module, address="0xd00e", name="door"):
        E_CLOSED = 7

        @entry
        def enter(self, account: signer, key: u64) -> None:
            if key != 1:  # pytest rewrites assert statements of test modules, so that the code becomes text
                raise AssertionError(self.E_CLOSED)

    ledger = Ledger()
    ledger.fund("0xa11ce")
    ledger.publish(Door)
    assert ledger.commit("0xd00e::door::enter", 1, sender="0xa11ce").success
    refused = ledger.commit("0xd00e::door::enter", 2, sender="0xa11ce")
    assert not refused.success
    assert refused.vm_status == "Move abort in 0xd00e::door: 0x7"


def test_an_address_of_a_contract_is_found_by_its_text():
    """Equal texts are compared without parsing them, because the cache of parsed addresses compares its keys, too."""
    text = "0x" + "1b" * 20
    assert {Address(text): 1}[text] == 1
    assert parse_address(Address(text)) == parse_address(text)
