"""The first session of the design, line by line, against the embedded node over real HTTP."""

from __future__ import annotations

from datetime import UTC, datetime

import pandas as pd

import toolkit

APT = "0x1::aptos_coin::AptosCoin"
STORE = f"0x1::coin::CoinStore<{APT}>"
STATEMENT = "0x1::transaction_fee::FeeStatement"
SUPPLY = toolkit.ViewFunction("0x1::coin::supply", type_arguments=[APT])
TRANSFER = toolkit.EntryFunction("0x1::aptos_account::transfer", arguments=["0xb0b", 100])


def registry_handle(node) -> str:
    """Return the handle of the registry's table, as a view tells it."""
    return node.view("0xcafe::registry::handle").value


def test_connect_keeps_the_url(url):
    """A node's URL is the one it was connected to, with or without the slash."""
    assert toolkit.connect(url).url == url
    assert toolkit.connect(url + "/").url == url
    assert toolkit.connect(url.removesuffix("/v1")).url == url


def test_view_gives_value_types_gas_and_versions(node, ledger):
    """A view's value has the ABI's type; the version read and the head are kept apart."""
    supply = node.view("0x1::coin::supply", type_arguments=[APT])
    values, gas = ledger.view("0x1::coin::supply", [], [APT])
    assert (supply.value, supply.values, supply.gas_used) == (values[0], tuple(values), gas)
    assert supply.types == ("0x1::option::Option<u128>",)
    assert supply.typing == "abi"
    assert supply.ledger_version == supply.ledger.version == ledger.head
    frame = supply.to_frame()
    assert frame.shape[0] == 1
    assert str(frame["value"].dtype) == "u128"
    assert frame["value"].iloc[0] == values[0]


def test_a_snapshot_pins_every_read(node, ledger):
    """Reads at a past version answer from that version's state and say so."""
    past = node.at(1_000)
    read = past.view(SUPPLY)
    assert read.ledger_version == 1_000
    assert read.ledger.version == ledger.head
    assert read.value == ledger.view("0x1::coin::supply", [], [APT], version=1_000)[0][0]
    assert read.value != node.view(SUPPLY).value
    assert node.at(-1).ledger_version == ledger.head


def test_table_item_is_typed(node):
    """A table item comes as the struct its type says, fields typed."""
    item = node.table_item(
        registry_handle(node), key="alice", key_type="0x1::string::String", value_type="0xcafe::registry::Record"
    )
    assert item.value["owner"].endswith("a11ce")
    assert isinstance(item.value["registered_at"], int)
    frame = item.to_frame(flatten=True)
    assert str(frame["value.registered_at"].dtype) == "uint64[pyarrow]"
    assert frame["key"].tolist() == ["alice"]


def test_simulate_gives_gas_frames_and_typed_payloads(node):
    """A simulation's split reconciles, and its writes and events come as typed frames."""
    sim = node.simulate(TRANSFER, sender="0xa11ce")
    assert sim.success
    assert sim.vm_status == "Executed successfully"
    assert sim.gas.total_charge_gas_units == sim.gas_used
    assert sim.gas.reconciles
    assert sim.gas.fee_octas == sim.gas_used * sim.gas.gas_unit_price
    assert sim.gas.net_octas == sim.gas.fee_octas - sim.gas.storage_fee_refund_octas
    assert len(sim.transactions) == 1
    assert len(sim.changes) == int(sim.transactions["changes"].iloc[0]) > 0
    assert sim.events["type"].iloc[-1] == STATEMENT
    stores = sim.resources(STORE)
    assert set(stores["address"].str[-5:]) >= {"a11ce"}
    statement = sim.events_of(STATEMENT)
    assert statement["total_charge_gas_units"].tolist() == [sim.gas_used]
    assert str(statement["total_charge_gas_units"].dtype) == "uint64[pyarrow]"


def test_fetch_views_gives_one_typed_row_per_version(node, ledger):
    """A sweep over a plan is one frame, exact, in the order of the plan."""
    frame = toolkit.fetch_views(node, SUPPLY, versions="0:-1/50", progress=False)
    assert len(frame) == 50
    assert frame["ledger_version"].tolist()[::49] == [0, ledger.head]
    assert str(frame["ledger_version"].dtype) == "uint64[pyarrow]"
    for row in (0, 17, 49):
        version = int(frame["ledger_version"].iloc[row])
        assert frame["value"].iloc[row] == ledger.view("0x1::coin::supply", [], [APT], version=version)[0][0]


def test_failures_are_rows(node):
    """A function that is published mid-history fails before, as a row with its code, and answers after."""
    call = toolkit.ViewFunction("0xfa17::vault::preview", arguments=[100])
    frame = toolkit.fetch_views(node, call, versions=[1_000, 4_000], progress=False)
    assert frame["error_code"].fillna("").tolist() == ["invalid_input", ""]
    assert frame["status"].iloc[0] == 400
    assert pd.isna(frame["value"].iloc[0])
    assert frame["value"].iloc[1] > 0


def test_fetch_transactions_reads_the_committed_ones(node, ledger):
    """Committed transactions come whole and in order, across pages."""
    frames = toolkit.fetch_transactions(node, versions="100:349", progress=False)
    assert frames.transactions["ledger_version"].tolist() == list(range(100, 350))
    assert set(frames.transactions["type"]) >= {"user_transaction", "block_metadata_transaction"}
    users = frames.transactions[frames.transactions["type"] == "user_transaction"]
    assert (users["gas_used"] == users["total_charge_gas_units"]).all()


def test_version_at_is_the_first_version_of_its_time(node, ledger):
    """The version found is at or after the time, the one before it is earlier."""
    moment = datetime(2026, 3, 1, tzinfo=UTC)
    version = node.version_at("2026-03-01")
    assert node.block(version).block_timestamp >= moment > node.block(version - 1).block_timestamp


def test_times_are_filled_on_request_only(node):
    """`ledger_timestamp` is null unless asked for, then it is the block's time; that of the head is known anyway."""
    without = toolkit.fetch_views(node, SUPPLY, versions="-2:", progress=False)
    assert without["ledger_timestamp"].isna().tolist() == [True, False]
    dated = toolkit.fetch_views(node, SUPPLY, versions="-2:", times=True, progress=False)
    assert dated["ledger_timestamp"].tolist()[1] == pd.Timestamp(node.block(4_999).block_timestamp)
