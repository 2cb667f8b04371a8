"""The observation frame is a contract: names, order, types and nullability, and what each source of rows fills in."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import toolkit
from tests.unit.client.fakes import FakeNode, answer, function, module, refused, user_transaction
from tests.unit.gas.observed import NOW, row, table
from toolkit.client._node import Node
from toolkit.errors import SchemaError
from toolkit.frames._schema import OBSERVATIONS, STRATUM
from toolkit.gas._observations import Source
from toolkit.gas._study import Study

TIME = pa.timestamp("us", tz="UTC")
CONTRACT = {  # name: (Arrow type, needed)
    "label": (pa.string(), True),
    "fingerprint": (pa.string(), True),
    "source": (pa.string(), True),
    "node": (pa.string(), True),
    "node_build": (pa.string(), False),
    "model": (pa.bool_(), True),
    "chain_id": (pa.uint8(), True),
    "ledger_version": (pa.int64(), True),
    "head_version": (pa.int64(), False),
    "ledger_timestamp": (TIME, False),
    "gas_used": (pa.int64(), False),
    "execution_gas_units": (pa.int64(), False),
    "io_gas_units": (pa.int64(), False),
    "storage_fee_octas": (pa.int64(), False),
    "storage_fee_refund_octas": (pa.int64(), False),
    "gas_unit_price": (pa.uint64(), False),
    "success": (pa.bool_(), False),
    "vm_status": (pa.string(), False),
    "status": (pa.uint16(), False),
    "error_code": (pa.string(), False),
    "error_message": (pa.string(), False),
    "value_digest": (pa.string(), False),
    "observed_at": (TIME, True),
    "toolkit_version": (pa.string(), True),
    "payload_bytes": (pa.uint32(), False),
    "slots_deleted": (pa.uint32(), False),
    "authenticator": (pa.string(), False),
    "orderless": (pa.bool_(), False),
    "type_arguments": (pa.string(), False),
    "abort_code": (pa.uint64(), False),
}
UNITS = {
    "gas_used": "gas units",
    "execution_gas_units": "gas units",
    "io_gas_units": "gas units",
    "storage_fee_octas": "octas",
    "storage_fee_refund_octas": "octas",
    "gas_unit_price": "octas per gas unit",
    "payload_bytes": "bytes",
}
VIEWED = module("m", functions=[function("f", returns=["u64"])])
TRANSFER = function("transfer", ["&signer", "address", "u64"], is_entry=True, is_view=False)
SUPPLY = {
    "GET /accounts/0x1/module/m": answer(VIEWED),
    "GET /accounts/0x1/module/aptos_account": answer(module("aptos_account", functions=[TRANSFER])),
    "POST /view": lambda *_: answer(["7"], gas=12),
    "POST /transactions/simulate": lambda *_: answer([user_transaction()]),
    "GET /transactions": lambda *_: answer(
        [user_transaction(version, type="user_transaction") for version in (10, 11)]
    ),
}
CALLS = {
    "view": {"view": "0x1::m::f"},
    "simulation": {"simulate": "0x1::aptos_account::transfer", "sender": "0xa11ce", "arguments": ["0xb0b", 100]},
    "log": {"committed": "0x1::aptos_account::transfer"},
}


def observed(routes=SUPPLY, **changes):
    node = Node("http://user:secret@node.test/v1", transport=FakeNode(routes | changes))
    return Study(node=node, calls=CALLS, versions="10:11").run(progress=False)


@pytest.fixture(scope="module")
def run():
    return observed()


def rows_of(run, label):
    rows = run.observations
    return rows[rows["label"] == label]


def test_names_order_and_types_are_the_contract():
    """Exactly these, in this order."""
    assert {field.name: field.type for field in OBSERVATIONS.arrow} == {
        name: kind for name, (kind, _) in CONTRACT.items()
    }
    assert OBSERVATIONS.names == list(CONTRACT)


@pytest.mark.parametrize("name", CONTRACT)
def test_a_needed_value_cannot_be_missing_and_the_others_can(name):
    """A row without what is always known is a mistake of ours."""
    needed = CONTRACT[name][1]
    if not needed:
        assert table(row(1) | {name: None})[name].null_count == 1
        return
    with pytest.raises(SchemaError, match=name):
        table(row(1) | {name: None})


def test_units_stand_on_the_columns(run):
    """In the schema and in the frame's data dictionary."""
    assert {column.name: column.unit for column in OBSERVATIONS if column.unit} == UNITS
    told = toolkit.describe(run.observations).set_index("column")["unit"]
    assert {name: told[name] for name in UNITS} == UNITS


def test_the_parts_on_disk_have_these_types(run):
    """Whoever reads them."""
    schema = pq.read_schema(next((run.path / "parts").glob("*.parquet")))
    for name, (kind, _) in CONTRACT.items():
        assert schema.field(name).type == kind


def test_an_empty_frame_has_the_columns_too():
    """With their types."""
    assert [field.type for field in table().schema] == [kind for kind, _ in CONTRACT.values()]


def test_every_row_says_where_it_comes_from(run):
    """Chain, version read, head, node without credentials, build, the mark of a model, source, when and by what."""
    rows = run.observations
    assert (
        set(rows["source"])
        == {Source.VIEW, Source.SIMULATE, Source.COMMITTED}
        == {"view@version", "simulate@now", "committed"}
    )
    assert set(rows["chain_id"]) == {4}
    assert set(rows["head_version"]) == {1_000}
    assert set(rows["node"]) == {"http://node.test/v1"}
    assert set(rows["node_build"]) == {"abc"}
    assert not rows["model"].any()
    assert set(rows["toolkit_version"]) == {toolkit.__version__}
    assert (rows["observed_at"] <= pd.Timestamp(datetime.now(UTC))).all()
    assert "secret" not in rows.to_csv()


def test_a_view_has_gas_and_a_digest_of_its_value(run):
    """Read at each version of the plan; the head is another column."""
    rows = rows_of(run, "view")
    assert rows["ledger_version"].tolist() == [10, 11]
    assert rows["head_version"].tolist() == [1_000, 1_000]
    assert rows["gas_used"].tolist() == [12, 12]
    assert rows["success"].all()
    assert len(set(rows["value_digest"])) == 1
    assert rows[["execution_gas_units", "status", "error_code", "vm_status"]].isna().all(axis=None)


def test_a_simulation_is_stamped_with_the_version_of_its_answer(run):
    """And carries the split and the price."""
    (found,) = rows_of(run, "simulation").to_dict("records")
    assert (found["ledger_version"], found["head_version"]) == (1_000, 1_000)
    names = (
        "gas_used",
        "execution_gas_units",
        "io_gas_units",
        "storage_fee_octas",
        "storage_fee_refund_octas",
        "gas_unit_price",
    )
    assert [found[name] for name in names] == [9, 5, 3, 100, 0, 100]
    assert found["vm_status"] == "Executed successfully"


def test_a_committed_transaction_has_its_own_version_and_time(run):
    """Its gas is what its sender was charged."""
    rows = rows_of(run, "log")
    assert rows["ledger_version"].tolist() == [10, 11]
    assert rows["gas_used"].tolist() == [9, 9]
    assert rows["ledger_timestamp"].dt.tz_convert(None).tolist() == [NOW.replace(tzinfo=None)] * 2
    assert rows["value_digest"].isna().all()
    compact = json.dumps(user_transaction()["payload"], separators=(",", ":"))
    assert rows["payload_bytes"].tolist() == [len(compact)] * 2
    assert rows["authenticator"].tolist() == ["no_account_signature"] * 2
    assert not rows["orderless"].any()


def test_other_sources_have_no_columns_of_committed_transactions(run):
    """What makes a stratum is null for views and simulations."""
    others = run.observations[run.observations["label"] != "log"]
    assert others[[column.name for column in STRATUM]].isna().all(axis=None)


@pytest.mark.parametrize(
    ("refusal", "code", "success"),
    [
        (refused(410, "version_pruned"), "version_pruned", None),
        (refused(404, "module_not_found"), "module_not_found", None),
        (answer({"message": "x", "error_code": "vm_error", "vm_error_code": 4016}, status=400), "vm_error", False),
    ],
)
def test_an_error_of_any_source_is_a_row(refusal, code, success):
    """With its status, code and message; only a VM status says that execution itself failed."""
    routes = dict.fromkeys(("POST /view", "POST /transactions/simulate", "GET /transactions"), refusal)
    rows = observed(**routes).observations
    assert rows.groupby("label").size().to_dict() == {"view": 2, "simulation": 1, "log": 1}
    assert set(rows["error_code"]) == {code}
    assert set(rows["status"]) == {refusal.status}
    assert rows["error_message"].notna().all()
    assert rows["gas_used"].isna().all()
    assert rows["success"].isna().all() if success is None else not rows["success"].any()


def test_steps_are_of_views_alone():
    """Other sources have steps of their own making: another sender, another argument."""
    from toolkit.gas._steps import steps_of

    mixed = [row(1, 10), row(2, 99, source=Source.SIMULATE), row(3, 10), row(4, 7, source=Source.COMMITTED), row(5, 10)]
    assert steps_of(table(*mixed)) == []
