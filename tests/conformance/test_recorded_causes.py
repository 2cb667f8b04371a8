"""What real transactions wrote, sorted as causes; and the published gas schedules, compared release by release."""

from __future__ import annotations

import csv
import json

import pytest

from toolkit.frames._columns import plain_columns
from toolkit.gas._schedules import schedule_diff
from toolkit.gas.causes._evidence import Written
from toolkit.wire import GasSchedule
from toolkit.wire._transactions import decode_transactions


def transactions(folder):
    """Yield (name, transaction) of every recording that is one committed transaction."""
    for place in sorted(folder.rglob("*.json")):
        found = json.loads(place.read_text("utf-8"))
        if isinstance(found, dict) and {"version", "changes", "vm_status", "type"} <= found.keys():
            yield place.name, decode_transactions(json.dumps(found).encode())[0]


def recorded(shared_data, name):
    """Return what one recorded transaction wrote."""
    return Written.of(dict(transactions(shared_data / "node" / "recorded"))[name])


def test_every_write_of_every_recording_has_one_place(shared_data):
    """Modules, schedule, configuration, upkeep and state: each change is in exactly one of them."""
    seen = 0
    for name, transaction in transactions(shared_data / "node"):
        written = Written.of(transaction)
        framework = [
            w for w in written.writes if w.address == "0x1" and w.resource in {*written.schedule, *written.config}
        ]
        places = [*[w for w in written.writes if w.module], *framework, *written.upkeep, *written.state]
        assert sorted(map(str, places)) == sorted(map(str, written.writes)), name
        seen += len(places)
    assert seen > 100


def test_a_transfer_on_the_main_network_pays_by_the_way(shared_data):
    """The gas coin's object, its supply and the payer's own store are upkeep; the receiver's store is state."""
    written = recorded(shared_data, "gosdk.transactions.Transaction_WithReplayNonce.7.json")
    assert {write.address for write in written.upkeep if write.resource} == {
        "0xa",
        "0xa66d5588e5e71987999dea776e5798be8926470f012e4a4f320e0737903ecba1",
    }
    stores = [write.address for write in written.state if write.resource == "0x1::fungible_asset::FungibleStore"]
    assert stores == ["0x4f8733c98d484ea506fcfd7ecdec17c4b27f7489fb0c8962975bf0cf213b6242"]
    assert len([write for write in written.upkeep if write.handle]) == 1


def test_a_block_on_a_real_network_is_upkeep(shared_data):
    """Its metadata transaction writes nothing that anybody wanted."""
    written = recorded(shared_data, "gosdk.transactions.Transaction_BlockMetadataTransaction.3.json")
    assert written.state == ()
    assert written.upkeep


@pytest.fixture
def releases(shared_data):
    """Return the rows of changes by release, oldest first, with the gas feature version."""
    found: dict[str, list[dict[str, str]]] = {}
    with (shared_data / "gas_schedules" / "changes.csv").open(newline="") as lines:
        for row in csv.DictReader(lines):
            found.setdefault(row["release"], []).append(row)
    return found


def test_the_diff_of_two_releases_is_what_was_published(releases):
    """For each release that changed something: the same parameters, the same values, nothing else."""
    entries: dict[str, int] = {}
    for rows in releases.values():
        before = GasSchedule(0, dict(entries))
        for row in rows:
            if row["new"]:
                entries[row["parameter"]] = int(row["new"])
            else:
                del entries[row["parameter"]]
        frame = schedule_diff(before, GasSchedule(0, dict(entries)))
        columns = plain_columns(frame, ["name", "before", "after"])
        told = {
            name: tuple("" if value is None else str(value) for value in sides)
            for name, *sides in zip(*columns.values(), strict=True)
        }
        assert told == {row["parameter"]: (row["old"], row["new"]) for row in rows}
    assert len(releases) > 10
