"""Profiles: charges by function and kind, whose sum is the gas of the simulation or view, exactly."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

import toolkit
from toolkit.embedded import (
    Event,
    GasProfile,
    Ledger,
    Module,
    Resource,
    String,
    Struct,
    Table,
    TypeArgument,
    address,
    entry,
    invalid_argument,
    public,
    script,
    signer,
    u64,
    vector,
    view,
)
from toolkit.embedded.framework._coin import APTOS_COIN, Coin
from toolkit.errors import InputError


class Prices(Module, address="0x9a1c"):
    """What another module calls."""

    @public
    def of(self, number: u64) -> u64:
        return self._scaled(number)

    def _scaled(self, number: int) -> int:
        self.charge("instr.mul", 3)
        return number * 2


class Shop(Module, address="0x5407", uses=[Prices]):
    """Calls, loops, tables, events, natives, new and deleted state, recursion."""

    class Item(Struct):
        price: u64

    class Stock(Resource):
        items: Table[u64, Shop.Item]
        sold: vector[u64]

    class Visit(Resource):
        count: u64

    class Receipt(Resource):
        count: u64

    class Sold(Event):
        number: u64

    E_NOTHING = invalid_argument(1, "Nothing to sell")

    def init_module(self, account: signer) -> None:
        self.move_to(account, Shop.Stock(items=self.new_table(), sold=[]))

    @entry
    def sell(self, account: signer, numbers: vector[u64]) -> None:
        self.require(len(numbers) > 0, self.E_NOTHING)
        with self.borrow_mut(Shop.Stock, "0x5407") as stock:
            for number in self.each(numbers):
                stock.items.upsert(number, Shop.Item(price=self.use(Prices).of(number)))
                stock.sold.append(number)
        self.use(Coin).transfer(APTOS_COIN, account, "0x5407", 1)
        for number in self.each(numbers):
            self._told(number)

    @entry
    def visit(self, account: signer) -> None:
        self.move_to(account, Shop.Visit(count=1))

    @entry
    def visit_and_pay(self, account: signer) -> None:
        self._enter(account)
        self.move_to(account, Shop.Receipt(count=1))
        with self.borrow_mut(Shop.Visit, account) as visit:
            visit.count += 1

    def _enter(self, account: str) -> None:
        self.move_to(account, Shop.Visit(count=1))

    @entry
    def leave(self, account: signer) -> None:
        self.move_from(Shop.Visit, account)

    def _told(self, number: int) -> None:
        self.emit(Shop.Sold(number=number))

    @view
    def total(self, down: u64) -> u64:
        return self.total(down - 1) + 1 if down > 0 else sum(self.each(self.borrow(Shop.Stock, "0x5407").sold))

    @view
    def named(self, kind: TypeArgument, owner: address) -> String:
        return self.type_name(kind)


@script
def both(run, account: signer, number: u64) -> None:
    for _ in run.each(range(2)):
        run.use(Prices).of(number)


@pytest.fixture(scope="module")
def ledger() -> Ledger:
    ledger = Ledger()
    ledger.publish(Prices)
    ledger.publish(Shop)
    ledger.commit("0x5407::shop::sell", [7], sender="0xa11ce")
    return ledger


def sell(*numbers: int) -> toolkit.EntryFunction:
    return toolkit.EntryFunction("0x5407::shop::sell", [list(numbers)])


CALLS = {
    "nested calls, tables, events": (sell(1, 2), {}),
    "an abort": (sell(), {}),
    "out of gas in execution": (sell(*range(40)), {"max_gas_amount": 60}),
    "out of gas for storage": (toolkit.EntryFunction("0x5407::shop::visit"), {"max_gas_amount": 70}),
    "out of gas for the second of two": (
        toolkit.EntryFunction("0x5407::shop::visit_and_pay"),
        {"max_gas_amount": 6_000},
    ),
    "new storage at a price": (toolkit.EntryFunction("0x5407::shop::visit"), {"gas_unit_price": 150}),
    "a framework function": (toolkit.EntryFunction("0x1::aptos_account::transfer", ["0x77", 5]), {}),
    "a new account": (toolkit.EntryFunction("0x1::aptos_account::create_account", ["0x78"]), {}),
    "a script": (toolkit.Script(both.bytecode, arguments=["3"]), {}),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_profile_adds_up_to_the_simulation(ledger, call):
    """Total and parts, for success, abort and each way to run out of gas; nothing is committed."""
    digest = ledger.digest()
    payload, options = CALLS[call]
    profile = ledger.profile(toolkit.SimulationRequest(payload, sender="0xb0b", **options))
    simulation = toolkit.connect(ledger).simulate(payload, sender="0xb0b", **options)
    assert (profile.success, profile.vm_status) == (simulation.success, simulation.vm_status)
    assert profile.gas_used == simulation.gas_used
    frame = profile.to_frame()
    assert int(frame["internal_gas"].sum()) == profile.gas_used * profile.scaling
    assert frame["internal_gas"].dtype == pd.ArrowDtype(pa.int64())
    parts = frame.groupby("category")["internal_gas"].sum()
    assert simulation.gas is not None
    assert -(-int(parts.get("execution", 0)) // profile.scaling) == simulation.gas.execution_gas_units
    assert -(-int(parts.get("io", 0)) // profile.scaling) == simulation.gas.io_gas_units
    price = options.get("gas_unit_price", 100)
    storage = int(parts.get("storage", 0))
    assert storage == -(-simulation.gas.storage_fee_octas * profile.scaling // price)
    assert int(parts.get("rounding", 0)) < profile.scaling
    assert ledger.digest() == digest


def test_the_cases_are_what_they_are_called(ledger):
    """Otherwise the sums would be compared for other paths than the names say."""
    outcomes = {
        name: ledger.profile(toolkit.SimulationRequest(call, sender="0xb0b", **options))
        for name, (call, options) in CALLS.items()
    }
    assert outcomes["an abort"].vm_status.startswith("Move abort")
    assert outcomes["out of gas in execution"].vm_status == "Out of gas"
    assert outcomes["out of gas for storage"].vm_status == "Out of gas"
    assert "out of gas" in {charge.operation for charge in outcomes["out of gas for storage"].charges}
    assert "storage" not in {charge.category for charge in outcomes["out of gas for storage"].charges}
    second = outcomes["out of gas for the second of two"]
    assert second.vm_status == "Out of gas"
    assert {"storage fee", "out of gas"} <= {charge.operation for charge in second.charges}
    assert {charge.category for charge in second.charges} == {"execution", "io"}
    assert outcomes["a script"].success
    assert ("transaction", "script both", "0x9a1c::prices::of") in {c.stack for c in outcomes["a script"].charges}


@pytest.mark.parametrize(
    "call",
    [
        toolkit.ViewFunction("0x5407::shop::total", [3]),
        toolkit.ViewFunction("0x5407::shop::named", ["0x1"], type_arguments=["u64"]),
        toolkit.ViewFunction("0x1::coin::balance", ["0xb0b"], type_arguments=["0x1::aptos_coin::AptosCoin"]),
    ],
)
def test_a_profile_of_a_view_adds_up_to_its_gas(ledger, call):
    """At the head and at another version."""
    for version in (None, ledger.head - 1):
        profile = ledger.profile(call, version=version)
        node = toolkit.connect(ledger)
        read = node.view(call) if version is None else node.view(call, ledger_version=version)
        assert profile.gas_used == read.gas_used
        assert int(profile.to_frame()["internal_gas"].sum()) == profile.gas_used * profile.scaling
        assert profile.charges[0].stack[0] == "view"


def stacks(profile: GasProfile) -> set[tuple[str, ...]]:
    return {charge.stack for charge in profile.charges}


def test_charges_belong_to_the_function_that_makes_them(ledger):
    """Private helpers, functions of other modules, natives and the framework; each call under its caller."""
    found = stacks(ledger.profile(sell(1, 2), sender="0xb0b"))
    top = ("transaction", "0x5407::shop::sell")
    assert (*top, "0x9a1c::prices::of", "0x9a1c::prices::_scaled") in found
    assert (*top, "0x5407::shop::_told", "0x1::event::write_to_event_store") in found
    assert (*top, "0x1::table::add") in found
    assert (*top, "0x1::coin::transfer", "0x1::coin::withdraw") in found
    assert {("transaction", "intrinsic gas"), ("transaction", "loading code")} < found


def test_a_write_belongs_to_the_function_that_made_it_first(ledger):
    """Writes, events and storage are charged at the end, when no function runs."""
    profile = ledger.profile(sell(1, 2), sender="0xb0b")
    writers = {c.stack[-1] for c in profile.charges if "write" in c.operation}
    assert {"0x5407::shop::_told", "0x5407::shop::sell"} <= writers
    profile = ledger.profile(toolkit.EntryFunction("0x5407::shop::visit_and_pay"), sender="0xb0b")
    stored = {charge.stack[-1] for charge in profile.charges if charge.category == "storage"}
    assert stored == {"0x5407::shop::_enter", "0x5407::shop::visit_and_pay"}


def test_folded_stacks_are_lines_of_functions_and_gas(ledger):
    """The form that speedscope reads: frames joined by semicolons, the last space before the number."""
    profile = ledger.profile(sell(1), sender="0xb0b")
    lines = [line.rpartition(" ") for line in profile.to_folded().splitlines()]
    assert sum(int(gas) for _, _, gas in lines) == profile.gas_used * profile.scaling
    names = [stack for stack, _, _ in lines]
    assert len(set(names)) == len(names)
    assert "transaction;0x5407::shop::sell;io" in names


def test_a_profile_is_shown_by_function(ledger):
    """The first lines answer what it costs and where."""
    shown = repr(ledger.profile(sell(1, 2), sender="0xb0b")).splitlines()
    assert shown[0].startswith("gas of 0x5407::shop::sell: ")
    assert shown[1].split() == ["gas", "units", "execution", "io", "storage", "rounding"]
    assert "<strong>gas of 0x5407::shop::sell" in ledger.profile(sell(1), sender="0xb0b")._repr_html_()


@pytest.mark.parametrize(
    ("call", "options", "message"),
    [
        (sell(1), {}, "pass sender="),
        (sell(1), {"sender": "0xb0b", "version": 1}, "version applies to view functions only"),
        (toolkit.ViewFunction("0x5407::shop::total", [1]), {"sender": "0xb0b"}, "has no sender"),
        (toolkit.ViewFunction("0x5407::shop::sell", [[]]), {}, "is not a view function"),
        (toolkit.ViewFunction("0x5407::shop::total"), {}, "expected 1 argument"),
        (sell(1), {"sender": "0x1234"}, r"ledger\.fund\('0x1234'\)"),
    ],
)
def test_what_cannot_be_profiled_is_an_error(ledger, call, options, message):
    """The same errors as of a call that is committed."""
    with pytest.raises(InputError, match=message):
        ledger.profile(call, **options)
