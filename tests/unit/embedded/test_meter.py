"""The gas model: figures of the published schedules, rounding, limits, storage fees and refunds."""

from __future__ import annotations

import csv

import pytest

from toolkit import embedded
from toolkit.embedded import Module, Resource, entry, signer, u64
from toolkit.embedded._meter import Meter, Schedule, release_names, released_schedule
from toolkit.embedded._vm_status import VmError
from toolkit.errors import InputError
from toolkit.wire import GasBreakdown

APT = ["0x1::aptos_coin::AptosCoin"]


def _breakdown(done) -> GasBreakdown:
    return GasBreakdown(**done.output.charges._asdict(), gas_unit_price=done.request.raw.gas_unit_price)


class Keeper(Module, address="0x5afe"):
    """Keeps notes of any size."""

    class Note(Resource):
        text: bytes

    @entry
    def keep(self, account: signer, text: bytes) -> None:
        self.move_to(account, Keeper.Note(text=text))

    @entry
    def append(self, account: signer, text: bytes) -> None:
        with self.borrow_mut(Keeper.Note, account) as note:
            note.text += text

    @entry
    def drop(self, account: signer) -> None:
        self.move_from(Keeper.Note, account)

    @entry
    def keep_and_drop(self, account: signer, text: bytes) -> None:
        self.keep(account, text)
        self.drop(account)

    @entry
    def spin(self, account: signer, rounds: u64) -> None:
        del account
        for _ in self.each(range(rounds)):
            pass


@pytest.fixture
def ledger() -> embedded.Ledger:
    fresh = embedded.Ledger(release="v1.41.0")
    fresh.publish(Keeper)
    return fresh


def test_every_release_has_the_published_parameters(shared_data):
    """The packaged table rebuilds each release: number of parameters, feature version, every changed value."""
    folder = shared_data / "gas_schedules"
    with (folder / "releases.csv").open() as file:
        releases = list(csv.DictReader(file))
    assert release_names() == tuple(row["release"] for row in releases)
    for row in releases:
        schedule = released_schedule(row["release"])
        assert (schedule.feature_version, len(schedule.entries)) == (
            int(row["feature_version"]),
            int(row["parameters"]),
        )
    with (folder / "changes.csv").open() as file:
        for row in csv.DictReader(file):
            value = released_schedule(row["release"]).entries.get(row["parameter"])
            assert value == (int(row["new"]) if row["new"] else None)


def test_an_unknown_release_is_refused_with_the_known_ones():
    """The message lists what there is."""
    with pytest.raises(InputError, match=r"unknown release 'v9'.*v1\.41\.1"):
        released_schedule("v9")


def test_parts_are_rounded_up_each_by_itself_and_the_total_once():
    """1.5 and 2.5 units are shown as 2 and 3, and cost 4."""
    meter = Meter(Schedule(1, {"a": 1_500_000, "b": 2_500_000}), max_gas_units=10)
    meter.charge("a")
    meter.charge_io("b")
    assert tuple(meter.charges()) == (4, 2, 3, 0, 0)


def test_running_out_of_gas_costs_all_of_it():
    """The limit is charged in full, and the parts still add up."""
    meter = Meter(Schedule(1, {"a": 6_000_000}), max_gas_units=10)
    meter.charge("a")
    with pytest.raises(VmError, match="OUT_OF_GAS"):
        meter.charge("a")
    assert tuple(meter.charges()) == (10, 10, 0, 0, 0)


def test_storage_becomes_gas_at_the_price_of_the_transaction():
    """40,000 octas are 400 units at price 100 and 40 at price 1,000."""
    for price, units in ((100, 400), (1_000, 40), (0, 0)):
        meter = Meter(Schedule(1, {}), max_gas_units=1_000, gas_unit_price=price)
        meter.charge_storage(40_000)
        assert meter.charges().total_charge_gas_units == units


def test_fees_reconcile_for_every_kind_of_transaction(ledger):
    """Success, abort, growth, deletion and exhaustion all have parts that add up to the total."""
    done = [
        ledger.commit("0x1::aptos_account::transfer", "0xb0b", 1, sender="0xa11ce"),
        ledger.commit("0x1::aptos_account::transfer", "0x77", 1, sender="0xa11ce"),
        ledger.commit("0x1::aptos_account::transfer", "0x77", 10**18, sender="0xa11ce"),
        ledger.commit("0x5afe::keeper::keep", b"x" * 500, sender="0xa11ce", gas_unit_price=137),
        ledger.commit("0x5afe::keeper::append", b"x" * 500, sender="0xa11ce", gas_unit_price=137),
        ledger.commit("0x5afe::keeper::drop", sender="0xa11ce"),
        ledger.commit("0x5afe::keeper::spin", 10_000_000, sender="0xb0b", max_gas_amount=50),
    ]
    assert [one.success for one in done] == [True, True, False, True, True, True, False]
    assert done[-1].vm_status == "Out of gas"
    assert done[-1].gas_used == 50
    assert all(_breakdown(one).reconciles for one in done), [_breakdown(one) for one in done]


def test_new_state_is_paid_for_and_deleting_it_refunds_exactly_that(ledger):
    """A slot and its bytes are charged when made, grown bytes when grown, and all of it comes back."""
    kept = _breakdown(ledger.commit("0x5afe::keeper::keep", b"x" * 100, sender="0xa11ce"))
    grown = _breakdown(ledger.commit("0x5afe::keeper::append", b"x" * 50, sender="0xa11ce"))
    dropped = _breakdown(ledger.commit("0x5afe::keeper::drop", sender="0xa11ce"))
    schedule = released_schedule("v1.41.0")
    assert kept.storage_fee_octas > schedule["txn.storage_fee_per_state_slot"]
    # Fifty bytes more; the length prefix of 150 takes a second byte.
    assert grown.storage_fee_octas == 51 * schedule["txn.storage_fee_per_state_byte"]
    assert dropped.storage_fee_refund_octas == kept.storage_fee_octas + grown.storage_fee_octas
    assert dropped.net_octas < 0


def test_what_is_made_and_deleted_at_once_costs_no_storage(ledger):
    """State that never leaves the transaction is neither charged nor refunded nor written."""
    done = ledger.commit("0x5afe::keeper::keep_and_drop", b"x" * 100, sender="0xa11ce")
    assert (_breakdown(done).storage_fee_octas, _breakdown(done).storage_fee_refund_octas) == (0, 0)
    assert not any("keeper" in str(key.name) for key in done.output.writes)


def test_the_fee_leaves_the_payer_and_the_supply(ledger):
    """What a transaction costs is burned: the payer's balance and the supply fall by the net fee."""
    before = ledger.view("0x1::coin::balance", ["0xa11ce"], APT)[0][0], ledger.view("0x1::coin::supply", [], APT)[0][0]
    done = ledger.commit("0x5afe::keeper::keep", b"x", sender="0xa11ce")
    after = ledger.view("0x1::coin::balance", ["0xa11ce"], APT)[0][0], ledger.view("0x1::coin::supply", [], APT)[0][0]
    assert before[0] - after[0] == before[1] - after[1] == _breakdown(done).net_octas


def test_a_fee_payer_pays_in_the_senders_place(ledger):
    """The sender's balance stays, the payer's falls by the net fee."""
    balances = [ledger.view("0x1::coin::balance", [who], APT)[0][0] for who in ("0xa11ce", "0xb0b")]
    done = ledger.commit("0x5afe::keeper::keep", b"x", sender="0xa11ce", fee_payer="0xb0b")
    after = [ledger.view("0x1::coin::balance", [who], APT)[0][0] for who in ("0xa11ce", "0xb0b")]
    assert after == [balances[0], balances[1] - _breakdown(done).net_octas]


def test_a_view_costs_no_intrinsic_gas_and_is_bounded(ledger):
    """A view that reads one resource is cheaper than the cheapest transaction."""
    _, gas = ledger.view("0x1::chain_id::get")
    assert 0 < gas < released_schedule("v1.41.0")["txn.min_transaction_gas_units"] / 1_000_000


def test_the_same_view_costs_ten_times_as_much_under_a_tenfold_schedule():
    """Gas follows the schedule on chain at the version read, not the latest one."""
    ledger = embedded.Ledger(release="v1.41.0")
    ledger.publish(Keeper)
    before = ledger.head
    step = ledger.set_gas_schedule("v1.41.1")
    assert step.success
    cost = [
        ledger.view("0x1::coin::balance", ["0xb0b"], APT, version=version)[1]
        for version in (before, step.version - 1, step.version, ledger.head)
    ]
    assert cost[0] == cost[1]
    assert cost[2] == cost[3]
    assert cost[0] < cost[2] <= 10 * cost[0]  # whole units: 0.4 shows as 1, and 4 as 4


def test_a_transaction_that_fails_its_checks_is_not_committed(ledger):
    """Too low a balance is refused before anything runs, and the version stays."""
    head = ledger.head
    with pytest.raises(InputError, match="INSUFFICIENT_BALANCE_FOR_TRANSACTION_FEE"):
        ledger.commit("0x5afe::keeper::keep", b"x", sender="0x999")
    assert ledger.view("0x1::coin::balance", ["0x999"], APT)[0] == [0]
    assert ledger.head == head + 2  # the empty block's own two transactions
