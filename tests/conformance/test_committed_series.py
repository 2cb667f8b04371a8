"""The recorded series of a real node: every step of the table in its INDEX comes out, with its cause, and no other."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pandas as pd
import pytest

from toolkit.gas._findings import Change, parts_of_parameters
from toolkit.gas._observations import Cause, Part
from toolkit.gas._origin import stratum_columns
from toolkit.gas.committed._analysis import analyse
from toolkit.gas.committed._strata import slots_created
from toolkit.wire._transactions import decode_page

UPGRADE, SCHEDULE, MIX = 503, 707, 897


@pytest.fixture(scope="module")
def recorded(shared_data):
    """Return the recorded exchanges of the series: transactions by version, and gas schedules by version read."""
    place = shared_data / "oracle" / "series.jsonl.gz"
    with gzip.open(place, "rt", encoding="utf-8") as lines:
        exchanges = [json.loads(line) for line in lines]
    transactions, schedules = {}, {}
    for exchange in exchanges:
        answer = json.loads(exchange["answer"]["text"])
        if exchange["path"].startswith("/v1/transactions"):
            transactions |= {int(one["version"]): one for one in answer}
        elif "GasSchedule" in exchange["path"]:
            version = int(exchange["path"].rsplit("=", 1)[1])
            schedules[version] = {entry["key"]: int(entry["val"]) for entry in answer["data"]["entries"]}
    return transactions, schedules


@pytest.fixture(scope="module")
def timeline(recorded):
    """Return the two changes, the schedule's with the parts that its differing parameters can move."""
    _, schedules = recorded
    before, after = schedules[SCHEDULE - 1], schedules[SCHEDULE]
    moved = [name for name in before if before[name] != after[name]]
    assert len(moved) == 117
    return [
        Change(UPGRADE, Cause.CODE, "lab upgraded"),
        Change(SCHEDULE, Cause.SCHEDULE, "instructions / 10", parts_of_parameters(moved)),
    ]


@pytest.fixture(scope="module")
def observations(recorded):
    """Return the user transactions from version 326 on as a frame."""
    transactions, schedules = recorded
    rows = []
    for version, one in sorted(transactions.items()):
        if one["type"] != "user_transaction" or version < 326:
            continue
        paid = next(e["data"] for e in one["events"] if e["type"] == "0x1::transaction_fee::FeeStatement")
        rows.append(
            {
                "function": one["payload"].get("function", "").split("::", 1)[-1],
                "ledger_version": version,
                "gas_unit_price": int(one["gas_unit_price"]),
                "success": one["success"],
                **stratum_columns(decode_page(json.dumps([one]).encode())[0]),
                **{part.column: int(paid[part.column]) for part in Part},
            }
        )
    frame = pd.DataFrame(rows)
    price = min(schedules.items())[1]["txn.storage_fee_per_state_slot"]
    frame["slots_created"] = slots_created(frame["storage_fee_octas"].to_numpy(), np.full(len(frame), price))
    assert len(frame) == 645 + 2  # calls of the four functions; the upgrade and the script
    return frame


def analysis_of(name, observations, timeline):
    """Return the analysis of one function."""
    return analyse(observations[observations["function"].str.endswith(name)], timeline)


def slopes(growth):
    """Return the bounds of a growth in gas units per 1,000 versions."""
    return growth.low, growth.high


def steps_of(analysis):
    """Return (change, part, slots created, level before, level after) of each step."""
    slots = {stratum.name: stratum.value("slots_created") for stratum in analysis.strata}
    return [
        ([cause.ledger_version for cause in step.causes], step.part, slots[step.stratum], step.before, step.after)
        for step in analysis.steps
    ]


def test_bump_steps_at_the_upgrade_and_at_the_schedule(observations, timeline):
    """4 to 21 at 503 by code, 21 to 5 at 707 by the schedule; aborting calls and io do not step."""
    analysis = analysis_of("::bump", observations, timeline)
    assert steps_of(analysis) == [
        ([UPGRADE], Part.EXECUTION, 0, 4, 21),
        ([SCHEDULE], Part.EXECUTION, 0, 21, 5),
    ]
    assert [(step.low, step.high) for step in analysis.steps] == [(16, 18), (-17, -15)]
    assert all("succeeding" in step.stratum and step.sure for step in analysis.steps)
    assert analysis.unexplained == ()
    assert analysis.growth == ()


def test_transfers_step_at_the_schedule_only_in_both_strata(observations, timeline):
    """Known receiver 9 to 4, new receiver 12 to 4; the jump of the mix at 897 is a shift of the mix and no step."""
    analysis = analysis_of("::transfer", observations, timeline)
    assert sorted(steps_of(analysis)) == [
        ([SCHEDULE], Part.EXECUTION, 0, 9, 4),
        ([SCHEDULE], Part.EXECUTION, 1, 12, 4),
    ]
    assert analysis.unexplained == ()
    [(before, after)] = {(mix.version_before, mix.version_after) for mix in analysis.mix}
    assert 880 < before < after <= 898
    assert {mix.stratum: mix.share_after for mix in analysis.mix} == {"no new slots": 0.0, "1 new slot": 1.0}


def test_put_steps_at_the_schedule_and_grows_with_state(observations, timeline):
    """New keys 30 to 7, known keys 11.5 to 7 at 707; growth on both sides of 503 is growth, and so is that in D."""
    analysis = analysis_of("::put", observations, timeline)
    assert sorted(step[:3] for step in steps_of(analysis)) == [
        ([SCHEDULE], Part.EXECUTION, 0),
        ([SCHEDULE], Part.EXECUTION, 3),
    ]
    new, known = analysis.steps
    assert known.low <= 7 - 11.5 <= known.high
    assert new.low <= 7 - 30 <= new.high
    assert analysis.unexplained == ()
    grown = [growth for growth in analysis.growth if growth.stratum == new.stratum]
    assert [(growth.version_first, growth.version_last) for growth in grown] == [(333, 489), (518, 701), (711, 1009)]
    # From 11 to 20 in the first 160 versions, then from 20 to 30 in the next 184.
    bounds = [slopes(growth) for growth in grown]
    assert bounds[0][0] <= (20 - 11) / 0.160 <= bounds[0][1] + 2
    assert bounds[1][0] - 2 <= (30 - 20) / 0.184 <= bounds[1][1] + 2
    assert 0 < bounds[2][0] <= (10 - 7) / 0.298 <= bounds[2][1] + 2
    assert {growth.stratum for growth in analysis.growth} == {new.stratum}
    # Nobody put known keys only at first, and at the end nobody does.
    jumps = {
        (mix.version_before, mix.version_after): mix.share_after for mix in analysis.mix if mix.stratum == known.stratum
    }
    assert [share for (before, _), share in jumps.items() if before < UPGRADE] == [pytest.approx(0.42, abs=0.01)]
    assert [share for (before, _), share in jumps.items() if MIX - 10 < before < MIX] == [0]


def test_walk_grows_until_the_schedule_changes(observations, timeline):
    """9 rising to 14, then 5: one step, one slope."""
    analysis = analysis_of("::walk", observations, timeline)
    [step] = analysis.steps
    assert [cause.ledger_version for cause in step.causes] == [SCHEDULE]
    assert step.low <= 5 - 14 <= step.high
    [growth] = analysis.growth
    assert growth.version_last < SCHEDULE
    low, high = slopes(growth)
    assert low - 2 <= 1000 * (14 - 9) / (692 - 512) <= high + 3
    assert analysis.unexplained == ()


@pytest.mark.parametrize("name", ["::bump", "::put", "::transfer", "::walk"])
def test_io_and_storage_never_step(name, observations, timeline):
    """No change of the timeline moved io or storage of any call, and nothing else did."""
    analysis = analysis_of(name, observations, timeline)
    assert {step.part for step in analysis.steps} == {Part.EXECUTION}


def test_without_the_timeline_the_shifts_are_unexplained(observations):
    """Without a change named, the shifts of `bump` are found between the observations next to them."""
    analysis = analysis_of("::bump", observations, [])
    assert analysis.steps == ()
    between = [(shift.version_before, shift.version_after, shift.weak) for shift in analysis.unexplained]
    assert between == [(500, 509, False), (697, 716, False)]


def test_the_recorded_ways_come_out_as_their_truth(shared_data):
    """Way B doubles at 359 and way A stays; at 691 people take B more often; at 902 both cost 3 % more."""
    with gzip.open(shared_data / "further-ledgers" / "ways.jsonl.gz", "rt", encoding="utf-8") as lines:
        pages = [json.loads(line) for line in lines if '"/v1/transactions' in line]
    rows = []
    for one in (one for page in pages for one in json.loads(page["answer"]["text"])):
        if one["type"] == "user_transaction" and one["payload"].get("function", "").endswith("::ways::buy"):
            paid = next(e["data"] for e in one["events"] if e["type"] == "0x1::transaction_fee::FeeStatement")
            kind = stratum_columns(decode_page(json.dumps([one]).encode())[0])
            charged = {part.column: int(paid[part.column]) for part in Part}
            rows.append(
                {"ledger_version": int(one["version"]), "gas_unit_price": 100, "success": True} | kind | charged
            )
    assert len(rows) == 360
    changes = [Change(359, Cause.CODE, "B x2.1"), Change(902, Cause.CODE, "both +3 %")]
    found = analyse(pd.DataFrame(rows), changes)
    assert [(s.causes[0].ledger_version, s.part, s.way, s.before, s.after) for s in found.steps] == [
        (359, Part.EXECUTION, True, 87, 179),
        (902, Part.EXECUTION, True, 31, 32),
        (902, Part.EXECUTION, True, 179, 184),
    ]
    assert found.unexplained == found.growth == ()
    [(before, after)] = {(mix.version_before, mix.version_after) for mix in found.mix}
    assert before < 691 + 10
    assert after > 691 - 10
    [_, dear] = found.mix
    assert dear.share_before < 0.6
    assert dear.share_after > 0.75
