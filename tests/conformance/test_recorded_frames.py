"""Everything that real nodes answered, through the decoder and the frames: nothing raises, nothing is lost, u64 exact."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from toolkit.frames._transactions import transaction_frames
from toolkit.wire._transactions import decode_transactions

pytestmark = pytest.mark.filterwarnings("error")

U64_OF_TRANSACTION = ("gas_used", "sequence_number", "max_gas_amount", "gas_unit_price")
CHANGE_KINDS = {
    "write_resource",
    "delete_resource",
    "write_module",
    "delete_module",
    "write_table_item",
    "delete_table_item",
}


def documents(folder: Path):
    """Yield (name, parsed JSON) of every recording, golden and history file."""
    for place in sorted(folder.rglob("*.json")):
        if place.name != "openapi.json" and "abi" not in place.parts:
            yield str(place.relative_to(folder)), json.loads(place.read_text("utf-8"))


def walk(value):
    """Yield every object inside a JSON value."""
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from walk(item)
    elif isinstance(value, list):
        for item in value:
            yield from walk(item)


def is_transaction(item: dict) -> bool:
    """Tell a transaction that ran by what all of them have."""
    return {"version", "hash", "vm_status", "success", "changes"} <= item.keys()


def as_on_the_wire(transaction: dict) -> dict:
    """Undo what the recorder of goldens did to table changes, whose `data` it wrapped once more."""
    transaction = copy.deepcopy(transaction)
    for change in transaction["changes"]:
        if change.get("type", "").endswith("table_item") and change.get("data") == {"data": None}:
            change["data"] = None
    transaction.setdefault("type", "user_transaction")  # a simulation has none
    return transaction


@pytest.fixture(scope="module")
def recorded(shared_data):
    """Return every transaction, and every change and event that stands alone."""
    transactions, changes, events = [], [], []
    for name, document in documents(shared_data / "node"):
        whole = [as_on_the_wire(item) for item in walk(document) if is_transaction(item)]
        transactions += [(name, item) for item in whole]
        if not whole:
            changes += [(name, item) for item in walk(document) if item.get("type") in CHANGE_KINDS]
            events += [(name, item) for item in walk(document) if {"guid", "sequence_number", "data"} <= item.keys()]
    return transactions, changes, events


def frames_of(items: list[dict]):
    return transaction_frames(decode_transactions(json.dumps(items).encode()))


def carrier(changes=(), events=()) -> dict:
    """Return a plain transaction that carries changes and events recorded on their own."""
    return {
        "version": "1",
        "hash": "0x" + "00" * 32,
        "state_change_hash": "",
        "event_root_hash": "",
        "state_checkpoint_hash": None,
        "gas_used": "0",
        "success": True,
        "vm_status": "Executed successfully",
        "accumulator_root_hash": "",
        "changes": list(changes),
        "events": list(events),
        "timestamp": "0",
        "type": "block_epilogue_transaction",
    }


def test_every_recorded_transaction_becomes_rows(recorded, capsys):
    """Each transaction gives one row, each of its changes and events one more; numbers are the recording's digits."""
    transactions, changes, events = recorded
    counted = {"transactions": 0, "changes": 0, "events": 0}
    for name, item in transactions:
        head, change_rows, event_rows = frames_of([item])
        assert len(head) == 1, name
        assert len(change_rows) == len(item["changes"]), name
        assert len(event_rows) == len(item.get("events", [])), name
        assert str(head["ledger_version"].iloc[0]) == item["version"], name
        for field in U64_OF_TRANSACTION:
            if field in item:
                assert str(head[field].iloc[0]) == item[field], (name, field)
        assert [str(n) for n in event_rows["sequence_number"]] == [e["sequence_number"] for e in item.get("events", [])]
        assert list(change_rows["type"]) == [change["type"] for change in item["changes"]], name
        counted["transactions"] += 1
        counted["changes"] += len(change_rows)
        counted["events"] += len(event_rows)
    assert counted["transactions"] > 150
    with capsys.disabled():
        print(f"\nrecorded: {counted}, alone: {len(changes)} changes, {len(events)} events")


def test_payloads_of_changes_and_events_keep_every_digit(recorded):
    """The JSON text of each payload parses to what was recorded, big integers included."""
    transactions, _, _ = recorded
    for name, item in transactions:
        _, change_rows, event_rows = frames_of([item])
        for text, event in zip(event_rows["data"], item.get("events", []), strict=True):
            assert json.loads(text) == event["data"], name
        written = [c for c in item["changes"] if c["type"] == "write_resource"]
        texts = change_rows.loc[change_rows["type"] == "write_resource", "data"]
        for text, change in zip(texts, written, strict=True):
            assert json.loads(text) == change["data"]["data"], name


def test_changes_and_events_recorded_alone_become_rows(recorded):
    """Single changes and events, as other clients' tests have them, are read the same way."""
    _, changes, events = recorded
    assert changes
    assert events
    _, change_rows, event_rows = frames_of([carrier([item for _, item in changes], [item for _, item in events])])
    assert list(change_rows["type"]) == [item["type"] for _, item in changes]
    assert list(event_rows["type"]) == [item["type"] for _, item in events]


def test_unknown_kinds_become_rows(recorded):
    """A transaction or change of a type nobody knows yet is a row that keeps its JSON, never an error."""
    transactions, _, _ = recorded
    known = next(item for _, item in transactions if item["type"] == "user_transaction")
    strange = copy.deepcopy(known) | {"type": "quantum_transaction"}
    changed = copy.deepcopy(known)
    changed["changes"] = [{"type": "fold_space", "where": "here"}]
    head, change_rows, _ = frames_of([known, strange, changed])
    assert list(head["type"]) == ["user_transaction", "quantum_transaction", "user_transaction"]
    assert json.loads(head["raw"].iloc[1])["type"] == "quantum_transaction"
    last = change_rows.iloc[-1]
    assert last["type"] == "fold_space"
    assert json.loads(last["data"]) == {"type": "fold_space", "where": "here"}
