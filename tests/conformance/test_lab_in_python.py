"""The recorded contract `lab`, written in Python: the embedded node shows it as the real node showed the Move one."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
import requests

import toolkit
from tests.conformance.lab import ALICE, BOB, Lab, LaterLab, Weights
from toolkit import embedded

STEPS = {
    113: ("ping", [3], ALICE),
    116: ("note", ["<b>hello</b> $x$ =1+1"], BOB),
    119: ("note", ["again"], BOB),
    122: ("forget", [], BOB),
    125: ("mode", [1], ALICE),
    128: ("mode", [2], ALICE),
    202: ("drop_item", [3], ALICE),
}
"""Recorded versions and the calls that were committed there."""
LEFT_OUT = {"Gold", "Lab"}
"""Structs with a type that the embedded framework does not have: `MintRef`, `SimpleMap`."""
LEFT_OUT_FUNCTIONS = {"gold", "gold_of", "mint", "pay", "map", "handles"}


@pytest.fixture(scope="module")
def played() -> tuple[embedded.Ledger, dict[int, int], int]:
    """Return a ledger on which the recorded calls were committed, their versions, and that of the publication."""
    ledger = embedded.Ledger(decoded_tables=False)
    for account in (ALICE, BOB):
        ledger.fund(account)
    ledger.publish(Weights)
    published = ledger.publish(Lab).version
    ledger.publish(LaterLab)
    for k in range(6):
        ledger.commit(f"{ALICE}::lab::put", k, f"name{k}", sender=ALICE)
    versions = {}
    for recorded, (name, arguments, sender) in STEPS.items():
        committed = ledger.commit(f"{ALICE}::lab::{name}", *arguments, sender=sender)
        assert committed.success, committed.vm_status
        versions[recorded] = committed.version
    return ledger, versions, published


@pytest.fixture(scope="module")
def get(played):
    with embedded.serve(played[0]) as url, requests.Session() as session:
        yield lambda path, **options: session.get(url + path, timeout=10, **options)


def _of_lab(transaction: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the changes of the contract's resources and deleted items; ledger times and handles differ."""
    changes = []
    for change in copy.deepcopy(transaction["changes"]):  # the recording is shared by all tests
        if change["type"] in {"write_resource", "delete_resource"} and "::lab::" in json.dumps(change):
            change.get("data", {}).get("data", {}).pop("at", None)
            changes.append(change)
        elif change["type"] == "delete_table_item":
            changes.append({name: change.get(name) for name in ("key", "value", "data", "type")})
    return changes


@pytest.mark.parametrize("version", STEPS)
def test_events_and_changes_are_those_of_the_recording(played, get, recordings, version):
    """Guid, sequence number, type and data; address, state key hash and value, or the deleted resource."""
    real = recordings.history.transactions[version]
    ours = get(f"/transactions/by_version/{played[1][version]}").json()
    assert ours["success"] == real["success"]
    assert ours["events"][:-1] == real["events"][:-1]  # the last one is the fee statement
    assert ours["events"][-1]["type"] == real["events"][-1]["type"]
    assert _of_lab(ours) == _of_lab(real) != []
    assert ours["payload"]["arguments"] == real["payload"]["arguments"]


def test_a_deleted_resource_is_refunded(played):
    """What the slot was charged, to the octa, for the first note."""
    ledger, versions, _ = played
    charged, _, forgotten, *_ = (ledger.transaction(versions[one]).output.charges for one in (116, 119, 122))
    assert charged.storage_fee_octas == forgotten.storage_fee_refund_octas > 0
    assert forgotten.storage_fee_octas == 0


def test_a_resource_in_a_group_is_one_slot_of_the_object(played, get, recordings):
    """The object's address, the hash of the group's key, and both members as in the recorded publication."""
    real, ours = (
        sorted(
            (
                change
                for change in transaction["changes"]
                if change["type"] == "write_resource" and change["address"] == extra
            ),
            key=lambda change: change["data"]["type"],
        )
        for extra in ["0xf076f13313b6800e6e4e2ed5fdc9d6a7a4455925ff6f3bb9d6d6c21b001b9c7"]
        for transaction in (recordings.history.transactions[56], get(f"/transactions/by_version/{played[2]}").json())
    )
    assert ours == real
    assert {change["data"]["type"] for change in real} == {"0x1::object::ObjectCore", f"{ALICE}::lab::Extra"}
    assert len({change["state_key_hash"] for change in ours}) == 1
    address = real[0]["address"]
    listed = get(f"/accounts/{address}/resources").json()
    assert sorted(listed, key=lambda one: one["type"]) == [change["data"] for change in real]
    assert get(f"/accounts/{address}/resource/{ALICE}::lab::Extra").json() == real[-1]["data"]


@pytest.mark.parametrize("encoding", ["json", "bcs"])
def test_simulations_show_deletions_groups_and_enums_in_both_forms(played, encoding):
    """The client's frame of changes is the same from JSON and from BCS."""
    ledger, _, _ = played
    ledger.commit(f"{ALICE}::lab::note", "kept", sender="0xb0b")
    with embedded.serve(ledger) as url, toolkit.connect(url, encoding=encoding) as node:
        forgotten = node.simulate(toolkit.EntryFunction(f"{ALICE}::lab::forget"), sender="0xb0b")
        switched = node.simulate(toolkit.EntryFunction(f"{ALICE}::lab::mode", arguments=[0]), sender="0xb0b")
    changes = forgotten.changes
    deleted = changes[changes["type"] == "delete_resource"]
    assert deleted["resource_type"].tolist() == [f"{ALICE}::lab::Note"]
    assert forgotten.gas.storage_fee_refund_octas > 0
    written = switched.changes
    assert f"{ALICE}::lab::Mode" in written["resource_type"].tolist()


def test_events_of_the_handle_are_those_of_the_recording(get, recordings):
    """Those of the transactions, equal but for the version."""
    path = f"/v1/accounts/{ALICE}/events/{ALICE}::lab::Legacy/pings"
    real = next(exchange for exchange in recordings.of("history") if exchange.path == path).json
    without = [{name: value for name, value in event.items() if name != "version"} for event in real]
    committed = [event for one in get("/transactions?start=0&limit=100").json() for event in one.get("events", [])]
    assert [event for event in committed if event["guid"] == real[0]["guid"]] == without


@pytest.mark.parametrize("name", ["Legacy", "Mode", "Note"])
def test_resources_are_answered_as_recorded(get, recordings, name):
    """The value, or the text of a resource that is deleted, but for the ledger version."""
    path = f"/accounts/{ALICE}/resource/{ALICE}::lab::{name}"
    real = next(one for one in recordings.of("history") if one.path == f"/v1{path}?ledger_version=315")
    ours = get(path)
    assert ours.status_code == real.status
    if real.status == 200:
        assert ours.json() == real.json
    else:
        assert ours.json()["message"].split(" and ")[0] == real.json["message"].split(" and ")[0]


def test_the_abi_is_that_of_the_recording(get, recordings):
    """Every function and struct, item by item; the order of functions is that of the bytecode there."""
    path = f"/accounts/{ALICE}/module/lab"
    real = next(one for one in recordings.of("history") if one.path == f"/v1{path}?ledger_version=315").json["abi"]
    ours = get(path).json()["abi"]
    for part, left_out in (("exposed_functions", LEFT_OUT_FUNCTIONS), ("structs", LEFT_OUT)):
        there = {one["name"]: one for one in real[part] if one["name"] not in left_out}
        assert {one["name"]: one for one in ours[part] if one["name"] not in left_out} == there
    assert ours.keys() == real.keys()
    assert ours["friends"] == real["friends"]


def test_the_framework_prints_the_recorded_constraints(get, recordings):
    """Tables, event handles and functions of objects require what they require on the recorded node."""
    for module in ("table", "event", "object", "primary_fungible_store", "coin"):
        ours = get(f"/accounts/0x1/module/{module}").json()["abi"]
        real = recordings.longer_history.module("0x1", module, 315)["abi"]
        for part in ("exposed_functions", "structs"):
            there = {one["name"]: one["generic_type_params"] for one in real[part]}
            for one in ours[part]:
                assert one["generic_type_params"] == there[one["name"]], (module, one["name"])


def test_views_of_enums_are_answered_as_recorded(played, recordings):
    """In JSON and in BCS, byte for byte."""
    with embedded.serve(played[0]) as url:
        for exchange in recordings.of("views"):
            if b"lab::shapes" in exchange.body or b"lab::mode_now" in exchange.body:
                headers = {name: value for name, value in exchange.headers.items() if name != "content-length"}
                ours = requests.post(f"{url}/view", data=exchange.body, headers=headers, timeout=10)
                if "accept" in exchange.headers:
                    assert ours.content == exchange.answer
                else:
                    assert ours.json() == exchange.json
