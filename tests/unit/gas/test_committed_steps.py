"""Committed calls of a run as rows and notes: what is judged, what is not and why, and kinds in words."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import numpy as np
import pandas as pd
import pytest

from toolkit._present.text import visible
from toolkit.gas._cause_sentences import causes_text, steps_frame
from toolkit.gas._findings import Change, Transaction
from toolkit.gas._observations import Cause
from toolkit.gas._sentences import change_text
from toolkit.gas._steps import is_drift, step_groups
from toolkit.gas.committed._sides import compare_sides
from toolkit.gas.committed._steps import CommittedCall, StoragePrices, judge_call

CALL = CommittedCall("node", "pay", "mark")
BY = Transaction(100, "0x7", "user_transaction", None, None)
UPGRADE = Change(100, Cause.CODE, "upgraded module 0x1::m", transaction=BY)


def frame_of(execution, **columns):
    """Return transactions at the versions from 0 on."""
    execution = np.asarray(execution)
    made = {
        "ledger_version": np.arange(len(execution)),
        "gas_used": execution + 2,
        "execution_gas_units": execution,
        "io_gas_units": 2,
        "storage_fee_octas": 0,
        "gas_unit_price": 100,
        "success": True,
        "authenticator": "ed25519_signature",
        "slots_created": 0,
    }
    return pd.DataFrame(made | columns)


def timeline(*changes, unread=()):
    """Return a timeline with these changes."""
    return SimpleNamespace(unread=unread, for_function=lambda _: changes)


def judged(frame, *changes, unread=()):
    """Return the notes and the rows of a call."""
    notes, found = judge_call(frame, CALL, timeline(*changes, unread=unread), "0x1::m::pay")
    return notes, [row | {"explanation": causes_text(causes)} for causes, row in found]


def test_a_change_that_moves_a_level_is_a_row():
    """The row has cause, transaction, place, levels, bounds and counts, and the gas of whole transactions."""
    notes, [row] = judged(frame_of([4] * 100 + [21] * 100), UPGRADE)
    assert notes.judged
    assert notes.all_compared
    assert (row["version_before"], row["version_after"], row["exact"], row["cause"]) == (99, 100, True, Cause.CODE)
    assert (row["gas_before"], row["gas_after"], row["change_low"], row["change_high"]) == (4, 21, 16, 18)
    assert (row["total_before"], row["total_after"], row["stratum"]) == (6, 23, "all transactions")
    assert row["explanation"] == "transaction 100 (user_transaction) upgraded module 0x1::m"


def test_changes_that_cannot_be_distinguished_are_a_set():
    """Two changes with one transaction between: the cause is mixed, its parts are both, and both are named."""
    other = Change(101, Cause.SCHEDULE, "changed the gas schedule")
    _, [row] = judged(
        frame_of([9, 9, 9, 9] * 25 + [9, 9] * 50, execution_gas_units=[4] * 101 + [21] * 99)[
            lambda frame: frame["ledger_version"] != 100
        ].reset_index(drop=True),
        UPGRADE,
        other,
    )
    assert (row["cause"], set(row["cause_parts"])) == (Cause.MIXED, {Cause.CODE, Cause.SCHEDULE})
    assert (row["version_before"], row["version_after"], row["exact"]) == (99, 101, False)
    assert "one of 2 changes that these transactions cannot distinguish" in row["explanation"]
    assert "it may be any of 2 changes" in row["uncertain"]


@pytest.mark.fault(
    "a study whose timeline cannot be read", "its committed transactions are reported as not judged, with the reason"
)
def test_nothing_is_judged_against_a_timeline_that_is_not_complete():
    """Without the timeline a shift has no cause and a constant level no meaning."""
    notes, rows = judged(frame_of([4] * 200), unread=("the gas schedule: 403",))
    assert rows == []
    assert not notes.judged
    assert notes.read_failed
    assert notes.not_judged == "the timeline is not complete: the gas schedule: 403"
    assert judge_call(frame_of([4] * 200), CALL, None, "0x1::m::pay")[1] == []


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (frame_of([]), "no transaction of the function was read"),
        (frame_of([4] * 15), "there are fewer than 16 transactions of each kind"),
        (frame_of([4] * 40).drop(columns="authenticator"), "an earlier version of the toolkit read the transactions"),
    ],
)
def test_what_cannot_be_judged_says_why(frame, why):
    """No transactions, too few of them, or a run that lacks what distinguishes them."""
    notes, rows = judged(frame)
    assert rows == []
    assert notes.not_judged.startswith(why)


def test_few_transactions_next_to_a_change_are_not_compared():
    """Three after the change do not show that it moved nothing."""
    notes, rows = judged(frame_of([4] * 103), UPGRADE)
    assert rows == []
    assert [(one.version, one.strata) for one in notes.not_compared] == [(100, ("all transactions",))]
    assert not notes.all_compared


def test_notes_survive_the_manifest():
    """What a manifest stores is what was found."""
    mixed = frame_of([4] * 300, success=[n % 3 > 0 or n > 200 for n in range(300)], abort_code=None)
    notes, _ = judged(mixed, UPGRADE)
    assert notes.mix
    assert msgspec.convert(msgspec.to_builtins(notes), CommittedCall) == notes


def test_prices_hold_until_the_next_schedule():
    """Before the first schedule its prices hold; a schedule without the price of a slot gives none."""
    slot, byte = "txn.storage_fee_per_state_slot", "txn.storage_fee_per_state_byte"
    prices = StoragePrices.of({10: {slot: 40_000, byte: 40}, 20: {slot: 400_000, byte: 400}})
    assert prices.at(np.array([0, 10, 19, 20, 30])).tolist() == [40_000, 40_000, 40_000, 400_000, 400_000]
    assert StoragePrices.of({10: {byte: 40}}) is None


def compared(before, after):
    """Return (gas before, gas after, changed, bounds, not judged) of the mean and of each way on two sides."""
    return {
        one.stratum: (
            one.before and one.before.mean,
            one.after and one.after.mean,
            one.changed,
            (one.low, one.high),
            one.not_judged,
        )
        for one in compare_sides(before, after)
    }


def test_kinds_are_compared_with_themselves():
    """A level that differs is a change with its bounds; the mean is judged beside it, and the other kind stays."""
    kinds = [0, 1] * 50
    found = compared(frame_of([4, 9] * 50, slots_created=kinds), frame_of([4, 19] * 50, slots_created=kinds))
    assert found["no new slots"] == (6, 6, False, (-1, 1), "")
    assert found["1 new slot"] == (11, 21, True, (9, 11), "")
    before, after, changed, (low, high), _ = found["all transactions"]
    assert (before, after, changed) == (8.5, 13.5, True)
    assert low < 5 < high


def test_ways_that_no_column_has_are_compared_with_themselves():
    """Way B doubles and way A stays; the mean is that of the same use on both sides, whatever the sample has."""
    before, after = frame_of([30, 90] * 50), frame_of([30, 180, 180] * 20)
    found = compared(before, after)
    assert found["way A"][:3] == (32, 32, False)
    assert found["way B"][:3] == (92, 182, True)
    assert found["all transactions"][:3] == (62, 107, True)


def test_use_that_differs_is_part_of_what_people_pay():
    """No way costs more, but three quarters take the dear one instead of a quarter: the mean rises, the ways do not."""
    sides = frame_of([30, 30, 30, 90] * 50), frame_of([30, 90, 90, 90] * 50)
    found = compared(*sides)
    assert found["all transactions"][:3] == (47, 77, True)
    mean = compare_sides(*sides, same_code=True)[0]  # without an upgrade between, it is what people do
    assert (mean.before.mean, mean.after.mean, mean.changed) == (47, 47, False)
    assert mean.high > 77 - 47
    assert not found["way A"][2]
    assert not found["way B"][2]


def test_a_rare_way_is_left_out_also_of_the_mean():
    """The first transaction of an account takes a slot for 5,000 gas units and is not what people pay."""
    first = frame_of([5_000] + [30] * 99, slots_created=[1] + [0] * 99)
    assert compared(first, frame_of([30] * 100))["all transactions"][:3] == (32, 32, False)


def test_more_failures_are_a_difference():
    """After the upgrade every other transaction aborts; those that succeed cost the same."""
    success = np.arange(100) % 2 == 0
    [failing, paid] = compare_sides(frame_of([30] * 100), frame_of([30] * 100, success=success))
    assert (paid.stratum, paid.changed) == ("succeeding", False)
    assert (failing.stratum, failing.changed, failing.failing) == ("failing", True, (0.0, 0.5))


def test_few_transactions_on_a_side_are_not_judged():
    """Five transactions after an upgrade show no mean, and it is said how many are needed."""
    [one] = compare_sides(frame_of([30] * 100), frame_of([60] * 5))
    assert one.not_judged == "100 transactions before and 5 after, but 8 are needed"


def test_parts_and_kinds_of_one_change_are_one_group():
    """The parts of a kind are one change of it, with the gas in all; other kinds are changes of the same group."""
    kinds = np.arange(200) % 2
    dear = np.arange(200) >= 100
    frame = frame_of(np.where(dear, 21, 4), io_gas_units=np.where(dear, 9, 2), slots_created=kinds)
    _, rows = judged(frame.assign(gas_used=frame["execution_gas_units"] + frame["io_gas_units"]), UPGRADE)
    assert len(rows) == 4
    [group] = step_groups(steps_frame(rows))
    assert [[part.part for part in change.parts] for change in group.changes] == [["execution", "io"]] * 2
    assert {(change.gas_before, change.gas_after) for change in group.changes} == {(6, 30)}
    assert change_text(group.changes[0], visible) == (
        "from 6 to 30 gas units (x5; execution from 4 to 21, +16 to +18; io from 2 to 9, +6 to +8; "
        "20 transactions before and 20 after)"
    )


def test_steps_of_committed_transactions_are_never_a_drift():
    """Five small steps of a view are a drift; of committed transactions growth was removed before, so each counts."""
    _, [row] = judged(frame_of([100] * 100 + [110] * 100), UPGRADE)
    steps = [row | {"version_before": place, "version_after": place + 1} for place in range(0, 60, 10)]
    frame = steps_frame(steps)
    assert not is_drift(frame).any()
    assert len(step_groups(frame)) == len(steps)
    assert is_drift(frame.drop(columns="part")).all()
