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
    """Return every transaction, with the name of its file."""
    found = documents(shared_data / "node")
    return [(name, as_on_the_wire(item)) for name, document in found for item in walk(document) if is_transaction(item)]


def frames_of(items: list[dict]):
    return transaction_frames(decode_transactions(json.dumps(items).encode()))


def test_every_recorded_transaction_becomes_rows(recorded, capsys):
    """Each transaction gives one row, each of its changes and events one more; numbers are the recording's digits."""
    counted = {"transactions": 0, "changes": 0, "events": 0}
    for name, item in recorded:
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
        print(f"\nrecorded: {counted}")


def test_payloads_of_changes_and_events_keep_every_digit(recorded):
    """The JSON text of each payload parses to what was recorded, big integers included."""
    for name, item in recorded:
        _, change_rows, event_rows = frames_of([item])
        for text, event in zip(event_rows["data"], item.get("events", []), strict=True):
            assert json.loads(text) == event["data"], name
        written = [c for c in item["changes"] if c["type"] == "write_resource"]
        texts = change_rows.loc[change_rows["type"] == "write_resource", "data"]
        for text, change in zip(texts, written, strict=True):
            assert json.loads(text) == change["data"]["data"], name
