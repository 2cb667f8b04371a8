"""Calls that are committed, empty blocks, and what a committed transaction says of itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import toolkit
from toolkit.embedded import (
    Event,
    Ledger,
    Module,
    Resource,
    String,
    Table,
    address,
    entry,
    invalid_argument,
    script,
    signer,
    u64,
    u128,
    vector,
    view,
)
from toolkit.errors import InputError


class Notes(Module, address="0x707e"):
    """A resource, a table, an event and an abort."""

    class Book(Resource):
        notes: Table[address, vector[u128]]
        count: u64

    class Noted(Event):
        by: address
        text: String

    E_EMPTY = invalid_argument(1, "The text is empty")

    def init_module(self, account: signer) -> None:
        self.move_to(account, Notes.Book(notes=self.new_table(), count=0))

    @entry
    def note(self, account: signer, text: String, numbers: vector[u128]) -> None:
        self.require(len(text) > 0, self.E_EMPTY)
        with self.borrow_mut(Notes.Book, "0x707e") as book:
            book.notes.upsert(account, numbers)
            book.count += 1
        self.emit(Notes.Noted(by=account, text=text))

    @entry
    def forget(self, account: signer) -> None:
        self.borrow(Notes.Book, "0x707e").notes.remove(account)

    @view
    def count(self) -> u64:
        return self.borrow(Notes.Book, "0x707e").count


@script
def pay(run, account: signer, numbers: vector[u64]) -> None:
    run.require(sum(numbers) == 6, 7)


NOTE = toolkit.EntryFunction("0x707e::notes::note", ["hello", [1, 2**100]])


@pytest.fixture
def ledger() -> Ledger:
    ledger = Ledger()
    ledger.publish(Notes)
    return ledger


def test_a_call_is_committed_with_the_gas_that_its_simulation_costs(ledger):
    """One call for both: what is simulated over HTTP is what is committed afterwards."""
    node = toolkit.connect(ledger)
    simulated = node.simulate(NOTE, sender="0xb0b")
    done = ledger.execute(NOTE, sender="0xb0b")
    assert (done.success, done.vm_status) == (simulated.success, simulated.vm_status) == (True, "Executed successfully")
    assert done.gas_used == simulated.gas_used
    assert ledger.transaction(done.version) == done
    assert node.contract("0x707e::notes").count() == 1


def test_events_and_changes_of_a_transaction_are_decoded(ledger):
    """Tables have keys and items, resources their fields; a deleted item has no value."""
    done = ledger.execute(NOTE, sender="0xb0b")
    assert done.events[0].type == "0x707e::notes::Noted"
    assert done.events[0].data["text"] == "hello"
    found = {change.name: change for change in done.changes}
    item = found["address -> vector<u128>"]
    assert (item.kind, item.value, item.deleted) == ("table item", [1, 2**100], False)
    assert item.key.endswith("b0b")
    book = found["0x707e::notes::Book"]
    assert (book.kind, book.address, book.value["count"]) == ("resource", "0x707e", 1)
    deleted = ledger.execute(toolkit.EntryFunction("0x707e::notes::forget"), sender="0xb0b").changes[0]
    assert (deleted.kind, deleted.value, deleted.deleted) == ("table item", None, True)
    published = ledger.transaction(ledger.contracts[0].version)
    assert [one.name for one in published.changes if one.kind == "module"] == ["notes"]


def test_arguments_may_have_every_form_that_a_simulation_takes(ledger):
    """Digits for integers, as JSON has them; the form of the builders and of study files."""
    done = ledger.execute(toolkit.EntryFunction("0x707e::notes::note", ["x", ["7"]]), sender="0xb0b")
    assert done.changes[-1].value is not None
    assert [7] in [change.value for change in done.changes]


def test_a_request_is_committed_with_its_own_options(ledger):
    """Sender, signers, payer and price come from the request; options beside it are refused."""
    ledger.fund("0xfee")
    request = toolkit.SimulationRequest(NOTE, sender="0xb0b", fee_payer="0xfee", gas_unit_price=150)
    done = ledger.execute(request)
    assert done.request is not None
    assert done.request.raw.gas_unit_price == 150
    assert toolkit.address(done.request.payer) == toolkit.address("0xfee")
    for option in ({"sender": "0xb0b"}, {"secondary_signers": []}, {"max_gas_amount": 0}, {"gas_unit_price": 0}):
        with pytest.raises(InputError, match="request"):
            ledger.execute(request, **option)


def test_a_declared_script_is_committed(ledger):
    """Its bytecode stands for it, as in a simulation."""
    call = toolkit.Script(pay.bytecode, arguments=[["1", "2", "3"]])
    assert ledger.execute(call, sender="0xb0b").success
    assert not ledger.execute(toolkit.Script(pay.bytecode, arguments=[[]]), sender="0xb0b").success
    with pytest.raises(InputError, match="bytecode"):
        ledger.execute(toolkit.Script("0xa11ceb0b"), sender="0xb0b")


def test_an_abort_is_a_committed_failure(ledger):
    """It costs gas and changes nothing but the sender's account."""
    done = ledger.execute(toolkit.EntryFunction("0x707e::notes::note", ["", []]), sender="0xb0b")
    assert not done.success
    assert done.vm_status == "Move abort in 0x707e::notes: E_EMPTY(0x10001): The text is empty"
    assert [one.type for one in done.events] == ["0x1::transaction_fee::FeeStatement"]


@pytest.mark.parametrize(
    ("call", "options", "message"),
    [
        (NOTE, {}, "pass sender="),
        ("0x707e::notes::note", {"sender": "0x9e3"}, "ledger.commit takes a function and its arguments"),
        (toolkit.ViewFunction("0x707e::notes::count"), {"sender": "0x9e3"}, "0x707e::notes::count is a view function"),
        (toolkit.EntryFunction("0x707e::notes::count"), {"sender": "0x9e3"}, "is not an entry function"),
        (toolkit.EntryFunction("0x707e::notes::note", ["x"]), {"sender": "0x9e3"}, "expected 2 arguments"),
        (toolkit.EntryFunction("0x707e::notes::gone"), {"sender": "0x9e3"}, "does not exist"),
        (NOTE, {"sender": "0x9e3", "fee_payer": "0x0"}, "works in simulations only"),
    ],
)
def test_what_cannot_be_committed_is_an_error_and_nothing_is_committed(ledger, call, options, message):
    """The ledger is as it was, even if it funds new senders."""
    ledger.fund_new_senders = True
    digest = ledger.digest()
    with pytest.raises(InputError, match=message):
        ledger.execute(call, **options)
    assert ledger.digest() == digest


def test_empty_blocks_move_time_versions_and_epochs():
    """Each is a block time and two versions; the first can be at a given time."""
    ledger = Ledger()
    assert ledger.advance().version == 2
    state = ledger.advance(3, time=datetime(2026, 1, 1, 2, 30, tzinfo=UTC))
    assert (state.version, state.epoch, f"{state.timestamp:%H:%M:%S}") == (8, 2, "02:30:02")
    for wrong in (0, -1, True, 1.5, "2"):
        with pytest.raises(InputError, match=r"^blocks .*\b1\b"):
            ledger.advance(wrong)  # type: ignore[arg-type]
    assert ledger.head == 8


def test_a_saved_ledger_has_what_was_published_executed_and_advanced(ledger, tmp_path):
    """The loaded one says the same of each transaction and continues alike."""
    done = ledger.execute(NOTE, sender="0xb0b")
    ledger.advance(2)
    again = Ledger.load(ledger.save(tmp_path / "notes.ledger"), contracts=[Notes])
    assert again.digest() == ledger.digest()
    assert again.transaction(done.version).events == done.events
    assert again.transaction(done.version).changes == done.changes
    assert again.execute(NOTE, sender="0xa11ce").hash == ledger.execute(NOTE, sender="0xa11ce").hash


def test_a_ledger_is_connected_to_as_it_is(ledger):
    """No server to start and stop; the same ledger has one node, another ledger another."""
    node = toolkit.connect(ledger)
    assert node.name == "embedded ledger"
    assert toolkit.connect(ledger).url == node.url != toolkit.connect(Ledger()).url
    ledger.advance()
    assert node.ledger().version == ledger.head
    with pytest.raises(InputError, match=r"toolkit\.embedded\.Ledger\b.*\bint\b"):
        toolkit.connect(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("features", [(), None])
def test_a_transaction_that_spends_its_fee_fails_and_pays_it(features):
    """As in the framework's epilogue: the transfer is undone, the fee is charged."""
    ledger = Ledger() if features is None else Ledger(features=features)
    ledger.fund("0xf00d", 10**8)
    done = ledger.commit("0x1::aptos_account::transfer", "0xb0b", 10**8, sender="0xf00d", max_gas_amount=20_000)
    assert not done.success
    assert "0x1::transaction_validation: PROLOGUE_ECANT_PAY_GAS_DEPOSIT(0x203ed)" in done.vm_status
    [held], _ = ledger.view("0x1::coin::balance", ["0xf00d"], ["0x1::aptos_coin::AptosCoin"])
    assert held == 10**8 - 100 * done.gas_used


@pytest.mark.parametrize(("seconds", "expected"), [(5, "00:00:05"), (0.5, "00:00:00.500000"), (3600, "01:00:00")])
def test_a_new_ledger_advances_by_seconds(seconds, expected):
    """From the time of its first block, because it has none yet; the next seconds are added to that."""
    ledger = Ledger()
    assert ledger.advance(seconds=seconds).timestamp.time().isoformat() == expected
    before = ledger.state.timestamp
    assert ledger.advance(seconds=seconds).timestamp - before == timedelta(seconds=seconds)


def test_a_nonce_in_a_request_is_used_up():
    """The transaction is orderless, as its simulation: no sequence number moves, and the nonce works once."""
    ledger = Ledger()
    call = toolkit.EntryFunction("0x1::aptos_account::transfer", ["0xb0b", 5])
    request = toolkit.SimulationRequest(call, sender="0xa11ce", replay_protection_nonce=7)
    done = ledger.execute(request)
    assert (done.success, done.request.nonce, done.request.raw.sequence_number) == (True, 7, 2**64 - 1)
    assert ledger.resource("0xa11ce", "0x1::account::Account")["sequence_number"] == 0
    with pytest.raises(InputError, match="NONCE_ALREADY_USED"):
        ledger.execute(request)
