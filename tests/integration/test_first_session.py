"""The first session of the design, line by line, against the embedded node over real HTTP."""

from __future__ import annotations

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
    assert str(frame["ledger_version"].dtype) == "int64[pyarrow]"
    for row in (0, 17, 49):
        version = int(frame["ledger_version"].iloc[row])
        assert frame["value"].iloc[row] == ledger.view("0x1::coin::supply", [], [APT], version=version)[0][0]
