"""Committed calls of a run as rows and notes: what is judged, what is not and why, and kinds in words."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import msgspec
import numpy as np
import pandas as pd
import pytest

from toolkit._present.text import times, visible
from toolkit.gas._cause_sentences import causes_text, steps_frame
from toolkit.gas._findings import Change, ChangingTransaction, Unread
from toolkit.gas._observations import Cause
from toolkit.gas._rules import Threshold
from toolkit.gas._sentences import change_name, change_names, change_text, gas_text, kind_texts, short_change
from toolkit.gas._steps import is_drift, step_groups
from toolkit.gas.committed._analysis import Doubt
from toolkit.gas.committed._fees import FeeChange, Fees, Reason, Verdict
from toolkit.gas.committed._steps import CommittedCall, StoragePrices, judge_call

CALL = CommittedCall("node", "pay", "mark")
BY = ChangingTransaction(100, "0x7", "user_transaction", None, None)
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
    frame = pd.DataFrame(made | columns)
    if "gas_used" not in columns:
        frame["gas_used"] += -(-frame["storage_fee_octas"] // frame["gas_unit_price"])
    return frame


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


def test_the_means_of_a_part_in_octas_are_fractions_of_gas_units():
    """A fee of octas is a fraction of gas units: the means are not rounded, and the bounds include whole units."""
    _, rows = judged(frame_of([4] * 200, storage_fee_octas=[4_330] * 100 + [393_620] * 100), UPGRADE)
    row = next(row for row in rows if row["part"] == "storage")
    assert (row["gas_before"], row["gas_after"]) == (43.3, 3_936.2)
    assert row["change"] == row["gas_after"] - row["gas_before"] == pytest.approx(3_892.9)
    assert row["change_percent"] == pytest.approx(100 * row["change"] / row["gas_before"])
    assert row["change_low"] <= row["change"] <= row["change_high"] < row["change"] + 1


def test_steps_and_levels_of_ways_have_the_stratum_of_both_and_their_own_gas():
    """They join on the stratum, whatever a way costs at a step; a stratum with one way leaves the gas of a way empty."""
    notes, rows = judged(frame_of([30, 60, 60] * 40 + [40, 80, 80] * 40), replace(UPGRADE, ledger_version=120))
    assert {(row["stratum"], row["way_gas"]) for row in rows} == {("all transactions", 32), ("all transactions", 62)}
    levels = {(one.stratum, one.way_gas, one.gas_first, one.gas_last) for one in notes.levels}
    assert levels == {("all transactions", gas, gas, gas) for gas in (32, 62, 42, 82)}
    [text, *_] = [one for one in map(change_name_of, rows) if "32" in one]
    assert text == "pay (at 32 gas)"
    notes, [row] = judged(frame_of([4] * 100 + [21] * 100), UPGRADE)
    assert {row["way_gas"], *(one.way_gas for one in notes.levels)} == {None}


def change_name_of(row):
    """Return the name of the change of a row."""
    [group] = step_groups(steps_frame([row]))
    return change_name(group.changes[0], visible)


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
    assert row["uncertain"] == [Doubt.SET]


@pytest.mark.fault(
    "a study whose timeline cannot be read", "its committed transactions are reported as not judged, with the reason"
)
def test_nothing_is_judged_against_a_timeline_that_is_not_complete():
    """Without the timeline, a shift is not explained and a constant level does not mean anything."""
    notes, rows = judged(frame_of([4] * 200), unread=(Unread("the gas schedule", "403"),))
    assert rows == []
    assert not notes.judged
    assert notes.read_failed
    assert notes.not_judged == "the timeline is not complete: the gas schedule: 403"
    assert judge_call(frame_of([4] * 200), CALL, None, "0x1::m::pay")[1] == []


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (frame_of([]), "no transaction of the function was read"),
        (frame_of([4] * 9), "there are fewer than 16 transactions of each kind"),
    ],
)
def test_what_cannot_be_judged_says_why(frame, why):
    """No transactions, or too few of them."""
    notes, rows = judged(frame)
    assert rows == []
    assert notes.not_judged.startswith(why)


def test_few_transactions_next_to_a_change_are_not_compared():
    """Three after the change do not show that it moved nothing."""
    notes, rows = judged(frame_of([4] * 103), UPGRADE)
    assert rows == []
    assert [(one.changes, one.stratum, one.count) for one in notes.few] == [((100,), "all transactions", 3)]
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


def fees_of(before, after):
    """Return what two sides pay, at 100 octas per gas unit."""
    return FeeChange.of(Fees.of(before, 100), Fees.of(after, 100), 100)


def verdicts(before, after, *percents):
    """Return the verdict and the reason under each limit."""
    fees = fees_of(before, after)
    judged = [fees.judged(Threshold(percent=percent)) for percent in percents]
    return [(one.verdict.value, one.reason.value) for one in judged]


def test_the_price_that_people_choose_does_not_count():
    """Storage is charged in octas, execution in gas units: the fee is counted at one price."""
    before = frame_of([10] * 20, storage_fee_octas=40_000, gas_unit_price=200)
    after = frame_of([10] * 20, storage_fee_octas=40_000, gas_unit_price=100)
    free = frame_of([10] * 20, storage_fee_octas=40_000, gas_unit_price=0, gas_used=12)
    fees = fees_of(before, after)
    assert (fees.before.mean, fees.after.mean, fees.low, fees.high) == (41_200, 41_200, 0, 0)
    assert Fees.of(free, 100).mean == 41_200


def test_a_fee_at_the_price_that_was_paid_is_what_was_paid():
    """Execution and io are rounded up apart: their sum may be more than the gas used."""
    frame = frame_of([4] * 20, storage_fee_octas=43_224, gas_used=438)
    assert Fees.of(frame, 100).mean == 43_800
    assert Fees.of(frame, 200).mean == 44_376  # 5.76 units that are not storage


@pytest.mark.parametrize(("failed", "more"), [(3, False), (12, True)])
def test_more_failures_by_chance_are_not_more(failed, more):
    """With 40 on each side, 3 failures after 2 are within chance; 12 are not."""
    sides = (Fees(np.full(40 - count, 600), count) for count in (2, failed))
    assert FeeChange.of(*sides, 100).fails_more == more


def test_a_refund_that_is_gone_is_a_rise():
    """What people pay is net of refunds."""
    before = frame_of([10] * 20, storage_fee_octas=40_000, storage_fee_refund_octas=40_000)
    after = frame_of([10] * 20, storage_fee_octas=40_000, storage_fee_refund_octas=0)
    assert verdicts(before, after, 5) == [("failed", "rise")]


@pytest.mark.parametrize(("rise", "verdict"), [(104, "passed"), (105, "passed"), (106, "failed")])
def test_without_noise_a_verdict_is_exact(rise, verdict):
    """Eight calls on a side are enough, and a rise of exactly the limit passes."""
    assert verdicts(frame_of([98] * 8), frame_of([rise - 2] * 8), 5) == [
        (verdict, "rise" if verdict == "failed" else "below")
    ]


@pytest.mark.parametrize(("counts", "wrong"), [((8, 60), Verdict.FAILED), ((60, 8), Verdict.PASSED)])
def test_few_calls_may_miss_the_dear_ones_by_chance(counts, wrong):
    """A fifth of the calls costs three times as much; what is true of the means is not known from 8 calls without one."""
    errors = 0
    for seed in range(100):
        random = np.random.default_rng([9, seed])
        dear = [random.random(count) < 0.2 for count in counts]
        factor = 1.0501 if wrong is Verdict.PASSED else 1.0
        one, two = (np.where(some, 1500, 500) * np.exp(0.1 * random.normal(size=len(some))) for some in dear)
        sides = (Fees(np.sort(np.round(100 * costs).astype(np.int64)), 0) for costs in (one, factor * two))
        errors += FeeChange.of(*sides, 100).judged(Threshold.of("5%")).verdict is wrong
    assert errors <= 7  # 4 % of 100, and as much more as chance explains in 1 of 10 cases


@pytest.mark.parametrize(
    ("dear_before", "dear_after", "verdict"),
    [(0, 3, "not judged"), (0, 31, "failed"), (5, 16, "not judged"), (1, 0, "not judged")],
)
def test_calls_that_may_have_none_of_the_dear_ones_by_chance_prove_nothing(dear_before, dear_after, verdict):
    """Of ten calls without a dear one, and 31 with three, chance explains the rise in 43 of 100 cases."""
    one, two = (
        Fees(np.sort([1_000] * (count - dear) + [997_000] * dear), 0)
        for count, dear in ((10, dear_before), (31, dear_after))
    )
    change = FeeChange.of(one, two, 100)
    assert change.judged(Threshold.of("5%")).verdict == verdict
    assert change.changed is (verdict == "failed")


def test_a_rise_within_its_bounds_is_not_judged():
    """Noise of 30 % and 20 calls on a side: a limit of 5 % is neither proved nor excluded."""
    random = np.random.default_rng(8)
    sides = [frame_of(np.ceil(200 * np.exp(0.3 * random.normal(size=20)))) for _ in range(2)]
    fees = fees_of(*sides)
    assert fees.low < 0.05 < fees.high
    judgement = fees.judged(Threshold(percent=5))
    assert (judgement.verdict, judgement.reason) == (Verdict.NOT_JUDGED, Reason.WIDE)
    assert judgement.more is None  # what 20 calls before leave open, more after cannot close


def test_more_calls_after_do_if_the_side_before_has_enough():
    """Only the after side grows: with so many more of its kind, the range ends below the limit."""

    def side(count):
        """Return calls that cost 2,000 gas units on average, evenly spread with a standard deviation of 30 %."""
        return frame_of(np.round(2_000 + 2_000 * 0.3 * 3**0.5 * np.linspace(-1, 1, count)).astype(int))

    fees = fees_of(side(1_000), side(30))
    judgement = fees.judged(Threshold(percent=10))
    assert (fees.high > 0.1, judgement.reason) == (True, Reason.WIDE)
    assert judgement.more > 0
    assert 0.08 < fees_of(side(1_000), side(30 + judgement.more)).high < 0.1
    assert fees_of(side(40), side(30)).judged(Threshold(percent=10)).more is None
    assert replace(fees, high=1e200).judged(Threshold(percent=10)).more is None  # nobody can wait for so many


def test_a_way_that_rises_fails_although_the_mean_hides_it():
    """Every other call costs three times as much, and the dear ones cost less: the tenth percentile rose."""
    before, after = frame_of([30, 300] * 800), frame_of([90, 240] * 800)
    assert fees_of(before, after).high < 0.05
    assert verdicts(before, after, 5) == [("failed", "way")]
    assert [side.quantile("p10") for side in (fees_of(before, after).before, fees_of(before, after).after)] == [
        3_200,
        9_200,
    ]


def test_what_chance_may_explain_is_not_changed():
    """The means differ, but their bounds include no change; a tenfold mean is changed."""
    dear, cheap = frame_of([30, 300] * 10), frame_of([30, 240] * 10)
    fees = fees_of(dear, cheap)
    assert fees.low < 0 < fees.high
    assert not fees.changed
    assert fees_of(frame_of([30, 31] * 10), frame_of([300, 310] * 10)).changed


@pytest.mark.parametrize(("failed", "verdict"), [(0, "passed"), (4, "not judged"), (8, "failed")])
def test_failures_are_judged_by_their_share(failed, verdict):
    """None of 20 calls failed before; Fisher's exact test decides whether 4 or 8 failures are more."""
    after = frame_of([30] * 20, success=np.arange(20) >= failed)
    assert verdicts(frame_of([30] * 20), after, 5)[0][0] == verdict


def test_few_transactions_on_a_side_are_not_judged():
    """Five transactions after an upgrade show no mean; three more would do."""
    judgement = fees_of(frame_of([30] * 100), frame_of([60] * 5)).judged(Threshold(percent=5))
    assert (judgement.verdict, judgement.reason, judgement.more) == (Verdict.NOT_JUDGED, Reason.FEW, 3)


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
        "from 6 to 30 gas units (×5: execution +16 to +18, io +6 to +8; nearest 50 transactions before, 50 after)"
    )


def test_changes_of_one_kind_are_named_by_their_parts():
    """Parts that were compared in different transactions have a line each, and no two lines begin alike."""
    dear = np.arange(200) >= 100
    frame = frame_of(np.where(dear, 21, 4), io_gas_units=np.where(dear, 9, 2), slots_created=1)
    _, rows = judged(frame.assign(gas_used=frame["execution_gas_units"] + frame["io_gas_units"]), UPGRADE)
    apart = [row | {"count_before": 50} if row["part"] == "io" else row for row in rows]
    for found, kinds in ((rows, [""]), (apart, ["execution", "io"])):
        [group] = step_groups(steps_frame(found))
        assert sorted(kind_texts(group.changes)) == kinds
        assert len(set(change_names(group.changes, visible))) == len(kinds)


def test_the_factor_of_means_is_computed_before_they_are_rounded():
    """From 10.4 to 103.6 gas units is ×10, not 104 / 10; a mean below 100 is shown with one decimal."""
    gas = [
        (10, 11, 10, 11, 10)[place % 5] if place < 100 else (103, 104, 104, 103, 104)[place % 5] for place in range(200)
    ]
    _, rows = judged(frame_of(gas), UPGRADE)
    [group] = step_groups(steps_frame(rows))
    [change] = group.changes
    assert (change.gas_before, change.gas_after) == (rows[0]["total_before"], rows[0]["total_after"])
    assert change.gas_before != round(change.gas_before)
    assert short_change(change, visible).partition(":")[0] == times(round(change.gas_after / change.gas_before, 1))
    assert [gas_text(one) for one in (7.0, 7, 10.3333, 99.97, 102.25, 4389.45)] == [
        "7",
        "7",
        "10.3",
        "100",
        "102",
        "4,389",
    ]
    same = replace(change, gas_before=439.6, gas_after=439.9)  # both read 440
    assert change_text(same, visible).startswith("440 gas units in total on both sides (execution ")


def test_steps_of_committed_transactions_are_never_a_drift():
    """Five small steps of a view are a drift; of committed transactions growth was removed before, so each counts."""
    _, [row] = judged(frame_of([100] * 100 + [110] * 100), UPGRADE)
    steps = [row | {"version_before": place, "version_after": place + 1} for place in range(0, 60, 10)]
    frame = steps_frame(steps)
    assert not is_drift(frame).any()
    assert len(step_groups(frame)) == len(steps)
    assert is_drift(frame.drop(columns="part")).all()


def test_fees_that_hardly_differ_have_bounds_as_narrow_as_rounding():
    """Some samples of eleven equal fees and two others have no spread, which does not make the mean certain."""
    before, after = (Fees.from_counts(pairs, 0) for pairs in ([(3_280, 11), (3_380, 2)], [(32_600, 12)]))
    change = FeeChange.of(before, after, 100)
    assert 8.5 < change.low < after.mean / before.mean - 1 < change.high < 9.5
    judged = change.judged(Threshold.of("5%"))
    assert (judged.verdict, judged.reason) == (Verdict.FAILED, Reason.RISE)
