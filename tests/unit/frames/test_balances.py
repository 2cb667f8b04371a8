"""What a transaction does to balances: deposits, withdrawals and the fee, per owner and asset, from recorded ones too."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from tests.unit.client.fakes import FEE_STATEMENT, V2_EVENT, user_transaction
from tests.unit.frames.balances import balance_frame
from toolkit.embedded.framework._object import named_object_address
from toolkit.frames import _balances
from toolkit.frames._balances import primary_store
from toolkit.frames._schema import BALANCES
from toolkit.frames._transactions import transaction_frames
from toolkit.move import parse_type_tag
from toolkit.move._type_tags import wire_type
from toolkit.wire._transactions import decode_simulation, decode_transactions

APT = "0x1::aptos_coin::AptosCoin"
USD = f"0x{0xBEEF:064x}::usd::USD"
ALICE, BOB, PAYER = "0xa11ce", "0xb0b", "0xfee"
# Primary stores: of Alice and Bob for the gas asset, and of Bob for another one.
ALICES, BOBS, BOBS_BEEF = primary_store(ALICE, "0xa"), primary_store(BOB, "0xa"), primary_store(BOB, "0xbeef")
NET = 9 * 100
"""Octas: 9 gas units at the price of 100, as the fake transaction has it."""


def long(address: str) -> str:
    """Return an address as frames spell it."""
    number = int(address, 16)
    return f"0x{number:x}" if number < 16 else f"0x{number:064x}"


def fee(*, refund: int = 0) -> dict:
    """Return a fee statement event."""
    data = {
        "total_charge_gas_units": "9",
        "execution_gas_units": "5",
        "io_gas_units": "3",
        "storage_fee_octas": "100",
        "storage_fee_refund_octas": str(refund),
    }
    return v2(FEE_STATEMENT, data)


def v2(kind: str, data: dict) -> dict:
    """Return a module event."""
    return {"guid": V2_EVENT, "sequence_number": "0", "type": kind, "data": data}


def v1(kind: str, owner: str, number: int, amount: int) -> dict:
    """Return an event of a handle, known by its owner and creation number."""
    guid = {"creation_number": str(number), "account_address": owner}
    return {"guid": guid, "sequence_number": "0", "type": f"0x1::coin::{kind}", "data": {"amount": str(amount)}}


def coin(kind: str, owner: str, amount: int, asset: str = APT) -> dict:
    """Return a coin event of the second kind."""
    return v2(f"0x1::coin::{kind}", {"account": owner, "amount": str(amount), "coin_type": asset})


def asset(kind: str, store: str, amount: int) -> dict:
    """Return a fungible asset event."""
    return v2(f"0x1::fungible_asset::{kind}", {"store": store, "amount": str(amount)})


def write(address: str, kind: str, data: dict) -> dict:
    """Return the write of a resource."""
    return {
        "address": address,
        "state_key_hash": "0x01",
        "data": {"type": kind, "data": data},
        "type": "write_resource",
    }


def coin_store(owner: str, value: int, asset: str = APT, *, deposits: int = 2, withdrawals: int = 3) -> dict:
    """Return the write of a coin store with its two event handles."""

    def handle(number: int) -> dict:
        return {"counter": "1", "guid": {"id": {"addr": owner, "creation_num": str(number)}}}

    data = {"coin": {"value": str(value)}, "frozen": False}
    data |= {"deposit_events": handle(deposits), "withdraw_events": handle(withdrawals)}
    return write(owner, f"0x1::coin::CoinStore<{asset}>", data)


def asset_store(store: str, owner: str, value: int, metadata: str = "0xa") -> list[dict]:
    """Return the writes of a fungible store and the object it is."""
    data = {"balance": str(value), "frozen": False, "metadata": {"inner": metadata}}
    core = {"owner": owner, "allow_ungated_transfer": False, "guid_creation_num": "1125899906842625"}
    return [write(store, "0x1::fungible_asset::FungibleStore", data), write(store, "0x1::object::ObjectCore", core)]


def balances(events: list[dict], changes: list[dict], **more) -> dict[tuple[str, str], dict]:
    """Return the rows by owner and asset."""
    document = user_transaction(events=events, changes=changes, sender=ALICE, **more)
    (transaction,) = decode_simulation(json.dumps([document]).encode())
    frame = balance_frame(transaction)
    assert frame.columns.tolist() == BALANCES.names
    return {(row["owner"], row["asset"]): row for row in frame.to_dict("records")}


def told(row: dict) -> tuple[int, int, int, int, int]:
    """Return the figures of a row."""
    return tuple(row[name] for name in ("deposited", "withdrawn", "fee_octas", "change", "balance_after"))


def test_coins_move_by_module_events():
    """Both sides of a transfer, the sender with the fee; balances are those written."""
    rows = balances(
        [coin("CoinWithdraw", ALICE, 100), coin("CoinDeposit", BOB, 100), fee()],
        [coin_store(ALICE, 5_000), coin_store(BOB, 100)],
    )
    assert told(rows[long(ALICE), APT]) == (0, 100, NET, -100 - NET, 5_000)
    assert told(rows[long(BOB), APT]) == (100, 0, 0, 100, 100)
    assert {row["standard"] for row in rows.values()} == {"coin"}


def test_coins_move_by_handles_of_their_stores():
    """Events of the first kind name no coin: the creation number of the store's handle does."""
    rows = balances(
        [v1("WithdrawEvent", ALICE, 5, 70), v1("DepositEvent", ALICE, 2, 30), v1("DepositEvent", BOB, 4, 70), fee()],
        [
            coin_store(ALICE, 900),
            coin_store(ALICE, 11, USD, deposits=4, withdrawals=5),
            coin_store(BOB, 77, USD, deposits=4, withdrawals=5),
        ],
    )
    assert told(rows[long(ALICE), USD])[:2] == (0, 70)
    assert told(rows[long(ALICE), APT]) == (30, 0, NET, 30 - NET, 900)
    assert told(rows[long(BOB), USD]) == (70, 0, 0, 70, 77)


def test_an_event_of_an_unwritten_store_is_unknown_never_guessed():
    """Without the store's write, the asset is unknown."""
    rows = balances([v1("DepositEvent", BOB, 4, 70), fee()], [])
    assert told(rows[long(BOB), "unknown"])[:4] == (70, 0, 0, 70)


def test_fungible_assets_move_by_stores():
    """A store's owner and asset come from its writes; APT as fungible asset pays the fee."""
    rows = balances(
        [asset("Withdraw", ALICES, 20), asset("Deposit", BOBS, 20), fee()],
        [*asset_store(ALICES, ALICE, 80), *asset_store(BOBS, BOB, 20)],
    )
    assert told(rows[long(ALICE), "0xa"]) == (0, 20, NET, -20 - NET, 80)
    assert told(rows[long(BOB), "0xa"]) == (20, 0, 0, 20, 20)
    assert {row["standard"] for row in rows.values()} == {"fungible asset"}


def test_a_store_whose_owner_is_not_written_stands_for_itself():
    """Its address is shown, so nothing is lost and nobody is blamed."""
    store = asset_store("0x52", BOB, 20, metadata="0xbeef")[:1]
    rows = balances([asset("Deposit", "0x52", 20), fee()], store)
    assert told(rows[long("0x52"), long("0xbeef")]) == (20, 0, 0, 20, 20)


def test_movements_of_two_stores_add_up():
    """The balance after would be a sum of some stores only, so it is null."""
    rows = balances(
        [asset("Deposit", "0x51", 1), asset("Deposit", "0x52", 2), fee()],
        [*asset_store("0x51", BOB, 10, "0xbeef"), *asset_store("0x52", BOB, 20, "0xbeef")],
    )
    row = rows[long(BOB), long("0xbeef")]
    assert (row["deposited"], row["change"]) == (3, 3)
    assert pd.isna(row["balance_after"])


def test_a_fee_payer_pays_and_the_sender_does_not():
    """The fee stands with who pays it."""
    signature = {
        "type": "fee_payer_signature",
        "sender": {"type": "no_account_signature"},
        "secondary_signer_addresses": [],
        "secondary_signers": [],
        "fee_payer_address": PAYER,
        "fee_payer_signer": {"type": "no_account_signature"},
    }
    rows = balances(
        [coin("CoinWithdraw", ALICE, 100), coin("CoinDeposit", BOB, 100), fee()],
        [coin_store(ALICE, 5_000), coin_store(BOB, 100), coin_store(PAYER, 1)],
        signature=signature,
    )
    assert told(rows[long(ALICE), APT])[2:4] == (0, -100)
    assert told(rows[long(PAYER), APT]) == (0, 0, NET, -NET, 1)


def test_a_failed_transaction_pays_its_fee_only():
    """What it would have moved it did not."""
    rows = balances([fee()], [coin_store(ALICE, 5_000)], success=False, vm_status="Out of gas")
    assert list(rows) == [(long(ALICE), APT)]
    assert told(rows[long(ALICE), APT]) == (0, 0, NET, -NET, 5_000)


def test_a_refund_above_the_fee_is_a_gain():
    """Freed storage may pay more than the gas costs."""
    rows = balances([fee(refund=5_000)], [coin_store(ALICE, 9_000)])
    assert told(rows[long(ALICE), APT]) == (0, 0, NET - 5_000, 5_000 - NET, 9_000)


def test_a_fee_that_no_account_can_pay_spoils_no_other_row():
    """From a broken node: its octas do not fit the column, but the change does."""
    rows = balances([coin("CoinDeposit", BOB, 7), fee()], [coin_store(ALICE, 1)], gas_unit_price=str(2**63))
    assert pd.isna(rows[long(ALICE), APT]["fee_octas"])
    assert rows[long(ALICE), APT]["change"] == -9 * 2**63
    assert rows[long(BOB), APT]["change"] == 7


def test_a_discarded_simulation_moves_nothing():
    """No fee statement, no events: an empty frame with its columns."""
    assert balances([], [], success=False, vm_status="SEQUENCE_NUMBER_TOO_OLD", gas=0) == {}


def test_amounts_are_exact_and_add_up_past_64_bits():
    """Many deposits of the largest amount are one exact sum."""
    most = 2**64 - 1
    rows = balances([*[coin("CoinDeposit", BOB, most, USD)] * 5, fee()], [coin_store(BOB, most, USD)])
    assert told(rows[long(BOB), USD]) == (5 * most, 0, 0, 5 * most, most)
    rows = balances([*[coin("CoinWithdraw", BOB, most, USD)] * 5, fee()], [])
    assert rows[long(BOB), USD]["change"] == -5 * most


def test_rows_are_sorted_by_owner_then_asset():
    """The order does not depend on that of the events."""
    events = [coin("CoinDeposit", BOB, 1, USD), coin("CoinDeposit", ALICE, 1, USD), coin("CoinDeposit", BOB, 1), fee()]
    rows = balances(events, [coin_store(ALICE, 1)])
    assert list(rows) == sorted(rows)
    assert len(rows) == 4


def test_events_of_other_modules_do_not_count():
    """A lookalike of another address moves nothing."""
    fake = v2("0xbad::coin::CoinDeposit", {"account": BOB, "amount": "1000000", "coin_type": APT})
    assert list(balances([fake, fee()], [coin_store(ALICE, 1)])) == [(long(ALICE), APT)]


RECORDED = {
    "gosdk.transactions.Transaction_WithReplayNonce.7.json": 2,
    "wormhole.aptos_tx.1.json": 2,
}


@pytest.mark.parametrize(("name", "rows"), RECORDED.items())
def test_recorded_transactions_add_up(shared_data, name, rows):
    """For real transactions, the change is deposits minus withdrawals minus the fee, and the fee is gas used times price."""
    document = json.loads((shared_data / "node" / "recorded" / name).read_text("utf-8"))
    (transaction,) = decode_transactions(json.dumps([document]).encode())
    frame = balance_frame(transaction)
    assert len(frame) == rows
    for row in frame.to_dict("records"):
        assert row["change"] == row["deposited"] - row["withdrawn"] - row["fee_octas"]
    assert sum(frame["fee_octas"].tolist()) == int(document["gas_used"]) * int(document["gas_unit_price"])


def test_a_recorded_transfer_of_fungible_apt(shared_data):
    """20,000 octas from one store to another, and 57 gas units at 100 octas."""
    place = shared_data / "node" / "recorded" / "gosdk.transactions.Transaction_WithReplayNonce.7.json"
    (transaction,) = decode_transactions(b"[" + place.read_bytes() + b"]")
    rows = {row["owner"][:6]: told(row) for row in balance_frame(transaction).to_dict("records")}
    assert rows == {
        "0x49ff": (20_000, 0, 0, 20_000, 1_994_000),
        "0xa5b2": (0, 20_000, 5_700, -25_700, 29_999_948_600),
    }


def test_recorded_user_transactions_have_a_frame(shared_data):
    """Three years of recorded answers, none trips; what they move adds up."""
    users = []
    for place in sorted((shared_data / "node").rglob("*.json")):
        document = json.loads(place.read_text("utf-8"))
        several = document if isinstance(document, list) else [document]
        users += [one for one in several if isinstance(one, dict) and one.get("type") == "user_transaction"]
    assert len(users) > 100
    for row in balance_frame(*decode_transactions(json.dumps(users).encode())).to_dict("records"):
        assert row["change"] == row["deposited"] - row["withdrawn"] - row["fee_octas"]


class TestNames:
    """One asset has one name, and every fee counts."""

    def test_a_coin_type_has_one_spelling(self):
        """Events spell a coin as the chain does, stores in canonical form: one row, with its balance."""
        owner, kind = "0xb0b", "0xbeef::usd::USD"
        deposit = {
            "guid": V2_EVENT,
            "sequence_number": "0",
            "type": "0x1::coin::CoinDeposit",
            "data": {"account": owner, "amount": "5", "coin_type": kind},
        }
        handle = {"counter": "1", "guid": {"id": {"addr": owner, "creation_num": "4"}}}
        old = {
            "guid": {"creation_number": "4", "account_address": owner},
            "sequence_number": "0",
            "type": "0x1::coin::DepositEvent",
            "data": {"amount": "2"},
        }
        data = {"coin": {"value": "7"}, "frozen": False, "deposit_events": handle, "withdraw_events": handle}
        store = {
            "address": owner,
            "state_key_hash": "0x01",
            "type": "write_resource",
            "data": {"type": f"0x1::coin::CoinStore<{kind}>", "data": data},
        }
        document = user_transaction(events=[deposit, old], changes=[store])
        (transaction,) = decode_simulation(json.dumps([document]).encode())
        rows = balance_frame(transaction).to_dict("records")
        held = [row for row in rows if row["owner"].endswith("b0b")]
        assert [(row["deposited"], row["balance_after"]) for row in held] == [(7, 7)]

    def test_a_transaction_from_before_fee_statements_paid_too(self):
        """Committed ones of 2022 have no such event: the fee is gas used times price."""
        document = user_transaction(
            type="user_transaction",
            events=[],
            state_change_hash="0x01",
            event_root_hash="0x01",
            accumulator_root_hash="0x01",
            state_checkpoint_hash=None,
        )
        (transaction,) = decode_transactions(json.dumps([document]).encode())
        assert balance_frame(transaction)["fee_octas"].tolist() == [900]


def test_a_movement_that_is_reported_twice_counts_once():
    """A migrated account: the coin event beside the asset's, and the fee as a withdrawal, add nothing."""
    store, changes = ALICES, asset_store(ALICES, ALICE, 5_000)
    once = balances([asset("Withdraw", store, 400), fee()], changes)
    twice = [asset("Withdraw", store, 400), coin("CoinWithdraw", ALICE, 400), asset("Withdraw", store, NET), fee()]
    assert balances(twice, changes) == once
    assert told(once[long(ALICE), "0xa"]) == (0, 400, NET, -400 - NET, 5_000)


def test_coins_and_the_asset_of_one_owner_both_count():
    """A payment of equal parts from both stores is two movements, since the coin store was written."""
    changes = [*asset_store("0x5a", ALICE, 0), coin_store(ALICE, 0)]
    rows = balances([asset("Withdraw", "0x5a", 50), coin("CoinWithdraw", ALICE, 50), fee()], changes)
    assert rows[long(ALICE), "0xa"]["withdrawn"] == rows[long(ALICE), APT]["withdrawn"] == 50


COIN_STORE = f"0x1::coin::CoinStore<{APT}>"


def delete(address: str, kind: str) -> dict:
    """Return the deletion of a resource."""
    return {"address": address, "state_key_hash": "0x02", "resource": kind, "type": "delete_resource"}


def held(changes: list[dict]):
    """Return a reader of the state before, which is that of some writes."""
    there = {(long(one["address"]), one["data"]["type"]): json.dumps(one["data"]["data"]) for one in changes}
    return lambda slots: [there.get((address, kind)) for _, address, kind in slots]


def rows_of(events: list[dict], changes: list[dict], before: list[dict]) -> dict[tuple[str, str], tuple]:
    """Return the rows by owner and asset, with a state before."""
    document = user_transaction(events=events, changes=changes, sender=ALICE)
    (transaction,) = decode_simulation(json.dumps([document]).encode())
    frame = balance_frame(transaction, read=held(before))
    found = {(row["owner"][-5:], row["asset"][-6:]): row for row in frame.to_dict("records")}
    assert len(found) == len(frame)
    return {
        key: tuple(None if pd.isna(row[name]) else int(row[name]) for name in ("fee_octas", "change", "balance_after"))
        for key, row in found.items()
    }


COINS = APT[-6:]
ENDS = {
    "a migration ends the coins and begins the asset": (
        [fee()],
        [delete(ALICE, COIN_STORE), *asset_store(ALICES, ALICE, 5_000 - NET)],
        [coin_store(ALICE, 5_000)],
        {("a11ce", COINS): (0, -5_000, 0), ("a11ce", "0xa"): (NET, 5_000 - NET, 5_000 - NET)},
    ),
    "coins that arrive before the migration are converted too": (
        [coin("CoinDeposit", ALICE, 70), v1("WithdrawEvent", ALICE, 3, 20), fee()],
        [delete(ALICE, COIN_STORE), *asset_store(ALICES, ALICE, 5_050 - NET)],
        [coin_store(ALICE, 5_000)],
        {("a11ce", COINS): (0, -5_000, 0), ("a11ce", "0xa"): (NET, 5_050 - NET, 5_050 - NET)},
    ),
    "an empty store ends with nothing": (
        [fee()],
        [delete(ALICE, COIN_STORE), *asset_store(ALICES, ALICE, 100)],
        [coin_store(ALICE, 0)],
        {("a11ce", COINS): (0, 0, 0), ("a11ce", "0xa"): (NET, -NET, 100)},
    ),
    "without the state before, the change is not known": (
        [fee()],
        [delete(ALICE, COIN_STORE), *asset_store(ALICES, ALICE, 100)],
        [],
        {("a11ce", COINS): (0, None, 0), ("a11ce", "0xa"): (NET, None, 100)},
    ),
    "a fee is paid from the coins first": (
        [coin("CoinDeposit", ALICE, 30), fee()],
        [coin_store(ALICE, 0), *asset_store(ALICES, ALICE, 500)],
        [coin_store(ALICE, 10)],
        {("a11ce", COINS): (40, -10, 0), ("a11ce", "0xa"): (NET - 40, 40 - NET, 500)},
    ),
    "the fee of an account with both stores, without the state before": (
        [fee()],
        [coin_store(ALICE, 0), *asset_store(ALICES, ALICE, 500)],
        [],
        {("a11ce", COINS): (NET, None, 0), ("a11ce", "0xa"): (0, None, 500)},
    ),
    "a fungible store that is deleted says whose it was": (
        [
            asset("Withdraw", BOBS_BEEF, 7),
            v2("0x1::fungible_asset::FungibleStoreDeletion", {"store": BOBS_BEEF, "owner": BOB, "metadata": "0xbeef"}),
            fee(),
        ],
        [delete(BOBS_BEEF, "0x1::object::ObjectGroup"), *asset_store(ALICES, ALICE, 9)],
        [],
        {("00b0b", "00beef"): (0, -7, 0), ("a11ce", "0xa"): (NET, -NET, 9)},
    ),
    "an older node does not say it, the state before does": (
        [asset("Withdraw", BOBS_BEEF, 7), fee()],
        [delete(BOBS_BEEF, "0x1::object::ObjectGroup"), *asset_store(ALICES, ALICE, 9)],
        asset_store(BOBS_BEEF, BOB, 7, "0xbeef"),
        {("00b0b", "00beef"): (0, -7, 0), ("a11ce", "0xa"): (NET, -NET, 9)},
    ),
    "a store that changes hands moves its balance": (
        [
            asset("Deposit", BOBS_BEEF, 5),
            v2("0x1::object::Transfer", {"object": BOBS_BEEF, "from": ALICE, "to": BOB}),
            fee(),
        ],
        [*asset_store(BOBS_BEEF, BOB, 25, "0xbeef"), *asset_store(ALICES, ALICE, 9)],
        [],
        {("00b0b", "00beef"): (0, 25, 25), ("a11ce", "00beef"): (0, -20, None), ("a11ce", "0xa"): (NET, -NET, 9)},
    ),
    "an event of nothing is no row": (
        [asset("Deposit", BOBS_BEEF, 0), fee()],
        asset_store(ALICES, ALICE, 9),
        [],
        {("a11ce", "0xa"): (NET, -NET, 9)},
    ),
}


@pytest.mark.parametrize("case", ENDS)
def test_what_no_event_reports(case):
    """The fee, the change and the balance of each owner and asset, where stores end or the fee has two sources."""
    events, changes, before, expected = ENDS[case]
    assert rows_of(events, changes, before) == expected


def test_other_coins_become_the_asset_that_is_derived_from_them():
    """The address of the paired asset follows from the coin's type; another asset of the owner is not taken for it."""
    derived = named_object_address("0xa", wire_type(parse_type_tag(USD)).encode())
    other = asset_store("0x53", ALICE, 1, "0xbad")
    for paired, metadata in (("asset", derived), ("unknown", "0xbad2")):
        changes = [delete(ALICE, f"0x1::coin::CoinStore<{USD}>"), *asset_store("0x52", ALICE, 40, metadata), *other]
        rows = rows_of([fee()], changes, [coin_store(ALICE, 40, USD)])
        place = "nknown" if paired == "unknown" else derived[-6:]
        assert rows["a11ce", place][1] == 40
        assert rows["a11ce", USD[-6:]] == (0, -40, 0)


FA = "0x1::fungible_asset::"


def older(kind: str, store: str, amount: int) -> dict:
    """Return a fungible asset event from before module events: its guid is the store."""
    guid = {"creation_number": "1125899906842626", "account_address": store}
    return {"guid": guid, "sequence_number": "0", "type": FA + kind, "data": {"amount": str(amount)}}


def transfer(store: str, giver: str, receiver: str) -> dict:
    return v2("0x1::object::Transfer", {"object": store, "from": giver, "to": receiver})


OLD_EVENTS = {
    "a transfer": (
        [older("WithdrawEvent", "0x5a", 70), older("DepositEvent", "0x5b", 70), fee()],
        [*asset_store("0x5a", ALICE, 430, "0xfa"), *asset_store("0x5b", BOB, 70, "0xfa"), coin_store(ALICE, 1)],
        {("a11ce", "0000fa"): -70, ("00b0b", "0000fa"): 70},
    ),
    "a store that is made, filled and handed over": (
        [
            older("WithdrawEvent", "0x5a", 500),
            older("DepositEvent", "0x5b", 500),
            transfer("0x5b", "0xc0", ALICE),
            fee(),
        ],
        [*asset_store("0x5a", ALICE, 0, "0xfa"), *asset_store("0x5b", ALICE, 500, "0xfa"), coin_store(ALICE, 1)],
        {("a11ce", "0000fa"): 0},
    ),
    "a store with 25 that gets 5 and is handed over": (
        [older("DepositEvent", "0x5b", 5), transfer("0x5b", ALICE, BOB), fee()],
        [*asset_store("0x5b", BOB, 30, "0xfa"), coin_store(ALICE, 1)],
        {("a11ce", "0000fa"): -25, ("00b0b", "0000fa"): 30},
    ),
}


@pytest.mark.parametrize("case", OLD_EVENTS)
def test_older_asset_events_are_of_the_store_of_their_guid(case):
    """Owner and asset come from the store; no transfer is made up."""
    events, changes, expected = OLD_EVENTS[case]
    found = rows_of(events, changes, [])
    assert {key: row[1] for key, row in found.items() if key[1] != COINS} == expected


@pytest.mark.parametrize(
    ("events", "owner"),
    [
        ([], "00b0b"),
        ([transfer("0x5b", BOB, "0xca401")], "ca401"),
    ],
    ids=["as before", "handed over first"],
)
def test_a_store_without_its_object_belongs_to_the_last_owner(events, owner):
    """The object core went in this transaction, and the store that it named lives on."""
    store, core = asset_store("0x5b", BOB, 20, "0xfa")
    movement = [asset("Withdraw", "0x5b", 20), fee()]
    found = rows_of([*events, *movement], [store, coin_store(ALICE, 1)], [store, core])
    assert found[owner, "0000fa"][1] is not None
    assert sum(row[1] for key, row in found.items() if key[1] == "0000fa") == -20


def test_an_earlier_transaction_names_the_owner_of_a_store():
    """The core went in an earlier transaction of the frame: its last owner is still known; later ones do not matter."""
    store, core = asset_store("0x5b", BOB, 20, "0xfa")
    documents = [
        user_transaction(version=at, events=events, changes=changes, sender=ALICE, **COMMITTED)
        for at, events, changes in (
            (7, [fee()], [store, core]),
            (8, [fee()], [store]),
            (9, [asset("Withdraw", "0x5b", 20), fee()], [store]),
        )
    ]
    frames = transaction_frames(decode_transactions(json.dumps(documents).encode()))
    rows = _balances.balance_frame(*frames, by="ledger_version", identity=["ledger_version"])
    moved = rows[rows["asset"] == long("0xfa")].to_dict("records")
    assert [(row["ledger_version"], row["owner"], row["change"]) for row in moved] == [(9, long(BOB), -20)]


COMMITTED = {
    "type": "user_transaction",
    "state_change_hash": "0x01",
    "event_root_hash": "0x01",
    "accumulator_root_hash": "0x01",
    "state_checkpoint_hash": None,
}


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        ([(BOBS_BEEF, 20)], 20),
        ([(BOBS_BEEF, 20), ("0x52", 5)], 25),
        ([("0x52", 5)], None),
        ([("0x51", 7), ("0x52", 5)], None),
        ([(BOBS_BEEF, 2**64 - 1), ("0x52", 5)], None),
    ],
    ids=["primary", "primary and another", "another", "others", "more than a u64"],
)
def test_a_balance_is_that_of_the_owner(held, expected):
    """Never that of one of several stores: without the primary store, the balance of the owner is not known."""
    stores = [one for store, balance in held for one in asset_store(store, BOB, balance, "0xbeef")]
    rows = balances([*[asset("Deposit", store, 1) for store, _ in held], fee()], [*stores, coin_store(ALICE, 1)])
    after = rows[long(BOB), long("0xbeef")]["balance_after"]
    assert (None if pd.isna(after) else after) == expected


def test_a_store_that_another_transaction_wrote_counts_for_the_balance():
    """Two transactions that write one store each do not show the owner's balance."""
    documents = [
        user_transaction(
            version=at,
            events=[asset("Deposit", store, 1), fee()],
            changes=asset_store(store, BOB, 9, "0xbeef"),
            sender=ALICE,
            **COMMITTED,
        )
        for at, store in ((7, BOBS_BEEF), (8, "0x52"))
    ]
    frames = transaction_frames(decode_transactions(json.dumps(documents).encode()))
    rows = _balances.balance_frame(*frames, by="ledger_version")
    assert rows[rows["owner"] == long(BOB)]["balance_after"].isna().tolist() == [True, True]
