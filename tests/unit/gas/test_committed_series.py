"""Committed series: what is a step, what is not, and how often the analysis is right on generated histories."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from tests.unit.gas.committed_histories import history
from tests.unit.gas.committed_scores import BARS, rates, score
from toolkit.errors import InputError
from toolkit.gas._findings import Change, parts_of_parameters
from toolkit.gas._observations import Cause, Part
from toolkit.gas.committed._analysis import Doubt, analyse
from toolkit.gas.committed._levels import level_numbers
from toolkit.gas.committed._strata import WORDS, Observations, slots_created

CODE, SCHEDULE = Cause.CODE, Cause.SCHEDULE
EXECUTION = frozenset({Part.EXECUTION})


def frame_of(execution, *, io=2, storage=0, every=10, **columns):
    """Return observations with these gas units of execution, one every few versions from 1,000 on."""
    count = len(execution)
    versions = 1_000 + every * np.arange(count)
    paid = {"execution_gas_units": execution, "io_gas_units": io, "storage_fee_octas": storage}
    used = np.asarray(execution) + io + np.asarray(storage) / 100
    return pd.DataFrame({"ledger_version": versions, "gas_unit_price": 100, "gas_used": used, **paid, **columns})


def at(position, kind=CODE, parts=frozenset(Part), what="upgrade"):
    """Return a change before the observation of a position."""
    return Change(1_000 + 10 * position - 5, kind, what, parts)


def misses(names, count, **options):
    """Return the rates of generated histories that miss their bar, what went wrong, and all rates."""
    tally, wrong = Counter(), []
    for seed in range(1_000_000, 1_000_000 + count):
        made = history(seed, **options)
        wrong += [f"{seed}: {note}" for note in score(made, analyse(made.frame, made.changes), tally)]
    measured = rates(tally)
    within = {name: BARS[name][0] <= measured[name][0] / max(1, measured[name][1]) <= BARS[name][1] for name in names}
    return [name for name in names if not within[name]], wrong, measured


def test_the_bars_of_steps_hold_on_generated_histories():
    """Named steps, new slots, wrong changes, wrong parts, histories without effect: each in its bar.

    `tests/benchmarks/series` measures the rates, on hundreds of histories.
    """
    missed, wrong, measured = misses([name for name in BARS if "unexplained" not in name], 60)
    assert not missed, "\n".join([*missed, *wrong])
    assert measured["resolvable steps named"][1] > 20
    inside, of = measured["intervals that hold the truth"]
    assert inside / of > 0.93


def test_unexplained_shifts_are_found_or_listed_on_generated_histories():
    """In histories that each have a shift nobody announced, most are found, nearly all are listed, few are false."""
    missed, wrong, measured = misses(["unexplained false"], 50, hidden=1.0)
    assert not missed, "\n".join([*missed, *wrong])
    # Most of the others rise by one gas unit, which rounding of gradual growth would do as well; they are listed as
    # weak instead.
    found, of = measured["unexplained found"]
    listed, _ = measured["unexplained found or listed as weak"]
    assert of > 20
    assert found / of > 0.75, "\n".join(wrong)
    assert listed / of > 0.8, "\n".join(wrong)


def test_the_same_history_gives_the_same_analysis():
    """Nothing is drawn at random, and the order of the rows does not matter."""
    made = history(3)
    again = made.frame.sample(frac=1, random_state=1)
    assert analyse(made.frame, made.changes).steps == analyse(again, made.changes[::-1]).steps


def test_constant_levels_give_a_step_with_the_interval_of_rounding():
    """4 to 21 is a step of 17, more than 16 and less than 18, with its counts and its cause."""
    change = at(50)
    [step] = analyse(frame_of([4] * 50 + [21] * 50), [change]).steps
    assert (step.part, step.before, step.after, step.low, step.high) == (Part.EXECUTION, 4, 21, 16, 18)
    assert (step.version_before, step.version_after) == (1_490, 1_500)
    assert (step.count_before, step.count_after) == (50, 50)
    assert step.causes == (change,)
    assert step.sure
    assert step.change == 17


def test_storage_is_exact():
    """Storage is charged in octas and not rounded, so its interval has no width."""
    [step] = analyse(frame_of([4] * 60, storage=[53_240] * 30 + [60_000] * 30), [at(30)]).steps
    assert (step.part, step.low, step.high) == (Part.STORAGE, 6_760, 6_760)


def test_a_part_that_the_change_cannot_touch_is_not_compared():
    """A schedule that moves prices of instructions is not the cause of a step of io; the shift is not explained."""
    frame = frame_of([4] * 80, io=[3] * 40 + [8] * 40)
    found = analyse(frame, [at(40, SCHEDULE, EXECUTION)])
    assert found.steps == ()
    [shift] = found.unexplained
    assert (shift.part, shift.change, shift.causes, shift.weak) == (Part.IO, 5, (), False)
    assert (shift.version_before, shift.version_after) == (1_390, 1_400)


def test_a_jump_of_the_mix_is_reported_and_is_no_step():
    """Half of the calls create a slot, then all: every mean moves, no level does."""
    slots = np.array([0, 1] * 60 + [1] * 80)
    found = analyse(frame_of(4 + 3 * slots, storage=50_000 * slots, slots_created=slots), [at(120)])
    assert found.steps == found.unexplained == ()
    [mix] = {(one.version_before, one.version_after) for one in found.mix}
    assert mix[0] < 1_000 + 10 * 120 <= mix[1] + 10
    assert [one.stratum for one in found.mix] == ["1 new slot", "no new slots"]


def test_growth_is_a_slope_and_no_step():
    """A level that rises by a unit in 5 observations grows by the same amount on both sides, and has no step at 100.

    No growth spans the change of code.
    """
    found = analyse(frame_of(10 + np.arange(200) // 5), [at(100)])
    assert found.steps == found.unexplained == ()
    assert all(17 < growth.per_1000_versions < 23 for growth in found.growth)
    spans = [(growth.version_first, growth.version_last, growth.count) for growth in found.growth]
    assert spans == [(1_000, 1_990, 100), (2_000, 2_990, 100)]


def test_growth_over_a_border_at_a_change_is_no_step():
    """A unit more just at the change is what growth does there, if it crosses borders elsewhere too."""
    found = analyse(frame_of(4 + np.arange(400) // 100), [at(200)])
    assert found.steps == ()
    assert all(shift.weak for shift in found.unexplained)


def test_a_step_on_top_of_growth_has_its_size():
    """Growth of 20 units per 1,000 versions is not counted into a step of 12."""
    values = 100 + np.arange(200) // 5 + 12 * (np.arange(200) >= 100)
    [step] = analyse(frame_of(values), [at(100)]).steps
    assert step.low <= 12 <= step.high
    assert step.high - step.low < 5


def test_changes_with_nothing_between_are_a_set():
    """Two changes between the same two transactions cannot be told apart, and the step says so."""
    changes = [at(50, what="one"), at(50, SCHEDULE, EXECUTION, "two")]
    [step] = analyse(frame_of([4] * 50 + [9] * 50), changes).steps
    assert sorted(cause.what for cause in step.causes) == ["one", "two"]
    assert step.doubts == (Doubt.SET,)


def test_close_changes_are_a_set():
    """Three transactions between two changes are too few to say which of them the step belongs to."""
    [step] = analyse(frame_of([4] * 53 + [9] * 50), [at(50, what="no effect"), at(53, what="effect")]).steps
    assert [cause.what for cause in step.causes] == ["no effect", "effect"]
    assert step.doubts == (Doubt.SET,)


@pytest.mark.parametrize("count", [3, 6, 12])
def test_an_upgrade_that_is_rolled_back_is_never_silent(count):
    """Few dear calls between two changes are shown, and more are a step up and a step down."""
    found = analyse(frame_of([100] * 60 + [800] * count + [100] * 60), [at(60, what="up"), at(60 + count, what="back")])
    assert {cause.what for step in found.steps for cause in step.causes} == {"up", "back"}
    if count < 5:
        [step] = found.steps
        assert (step.before, step.after, step.doubts) == (100, 800, (Doubt.SET, Doubt.BETWEEN))
        assert [(few.count, few.between) for few in found.few] == [(count, True)]
    else:
        assert [(step.before, step.after) for step in found.steps] == [(100, 800), (800, 100)]


def test_one_transaction_between_an_upgrade_and_its_rollback_is_a_step_with_doubts():
    """The others vary by 2 %, and it costs a quarter more than any of them."""
    costs = np.random.default_rng(5).integers(98, 103, 81)
    costs[40] = 130
    [step] = analyse(frame_of(costs), [at(40), at(41)]).steps
    assert (step.after, len(step.causes), step.doubts) == (130, 2, (Doubt.SET, Doubt.BETWEEN))


def test_each_part_has_its_own_cause():
    """Execution steps at the upgrade; io at one of the upgrade and the schedule that follow each other at once."""
    changes = [at(50, what="code"), at(50, SCHEDULE, frozenset({Part.IO}), "schedule")]
    steps = analyse(frame_of([4] * 50 + [9] * 50, io=[2] * 50 + [7] * 50), changes).steps
    assert [(step.part, len(step.causes), step.sure) for step in steps] == [
        (Part.EXECUTION, 1, True),
        (Part.IO, 2, False),
    ]


def test_a_series_that_moves_by_itself_leaves_a_doubt():
    """Costs follow a wave; what is found at the change is found elsewhere, too, so no step is sure."""
    values = np.ceil(200 * (1 + 0.3 * np.sin(np.arange(600) / 12)))
    assert not any(step.sure for step in analyse(frame_of(values), [at(295)]).steps)


def test_an_option_that_an_upgrade_adds_is_not_a_rise():
    """A quarter of the calls take a dear way that did not exist before; the others cost the same."""
    new = (np.arange(300) >= 150) & (np.random.default_rng(4).random(300) < 0.25)
    [step] = analyse(frame_of(np.where(new, 340, 100)), [at(150)]).steps
    assert (step.before, step.after, step.way, step.doubts) == (None, 340, True, (Doubt.OPTION,))
    assert 0.15 < step.share < 0.35


def test_a_shift_beside_a_change_is_not_put_on_the_change():
    """The level shifts 30 transactions after the change: not a step, but an unexplained shift at its own place."""
    found = analyse(frame_of([4] * 130 + [9] * 100), [at(100)])
    assert found.steps == ()
    [shift] = found.unexplained
    assert (shift.version_before, shift.version_after) == (2_290, 2_300)


@pytest.mark.parametrize("more", [3, 5])
def test_calls_that_cost_as_before_prove_that_a_shift_is_not_the_changes(more):
    """The first transactions under the new code cost exactly what all before it did."""
    found = analyse(frame_of([9] * (20 + more) + [11] * 45), [at(20)])
    assert found.steps == ()
    [shift] = found.unexplained
    assert (shift.before, shift.after, shift.causes, shift.doubts) == (9, 11, (), ())


@pytest.mark.parametrize("more", [3, 5])
def test_a_shift_a_few_transactions_after_a_change_leaves_a_doubt(more):
    """The first transactions under the new code cost about as before, and are too few to be a stretch of their own."""
    noise = np.random.default_rng(3).normal(1, 0.01, 100)
    [step] = analyse(frame_of(np.round(noise * np.where(np.arange(100) < 50 + more, 1000, 1070))), [at(50)]).steps
    assert Doubt.LATE in step.doubts


@pytest.mark.parametrize("more", [8, 10])
def test_the_nearest_transactions_decide(more):
    """Eight transactions under the new code that cost as before: the shift after them is not the change's."""
    found = analyse(frame_of([9] * (20 + more) + [14] * 45), [at(20)])
    assert found.steps == ()
    assert [(shift.before, shift.after, shift.version_after) for shift in found.unexplained] == [
        (9, 14, 1_000 + 10 * (20 + more))
    ]


def test_a_walk_that_passes_a_change_is_no_sure_step():
    """A cost that drifts differs between the two sides, but not between the transactions next to the change."""
    costs = [200 * np.exp(np.cumsum(np.random.default_rng(seed).normal(size=400)) * 0.02) for seed in range(8)]
    assert not any(step.sure for cost in costs for step in analyse(frame_of(np.ceil(cost)), [at(200)]).steps)


def test_a_way_is_the_same_way_only_if_as_many_take_it():
    """A way that 60 % take ends, and another that 15 % take begins: an option is gone, and another is new."""
    rng = np.random.default_rng(8)
    before, after = np.where(rng.random(200) < 0.6, 278, 72), np.where(rng.random(200) < 0.15, 106, 72)
    steps = analyse(frame_of(np.concatenate([before, after])), [at(200)]).steps
    assert {(step.before, step.after) for step in steps} == {(278, None), (None, 106)}
    assert all(Doubt.OPTION in step.doubts for step in steps)


def test_a_shift_from_zero_is_reported():
    """Storage that was free costs something from a place on that no change explains."""
    [shift] = analyse(frame_of([4] * 120, storage=[0] * 60 + [54_680] * 60), []).unexplained
    assert (shift.part, shift.before, shift.after) == (Part.STORAGE, 0, 54_680)


def test_a_new_slot_is_a_step_of_storage_though_the_strata_change():
    """Each kind of call writes a slot more from an upgrade on: strata end and begin, storage steps by a slot."""
    slots = np.tile([0, 3, 3], 60) + (np.arange(180) >= 90)
    found = analyse(frame_of(4 + slots * 0, storage=40_000 * slots, slots_created=slots), [at(90)])
    assert {(step.before, step.change) for step in found.steps} == {(0, 40_000), (120_000, 40_000)}
    assert {step.part for step in found.steps} == {Part.STORAGE}


def test_a_slot_no_longer_deleted_is_a_step_of_refund():
    """A call that deleted a slot and got its price back does so no longer."""
    deleted = (np.arange(120) < 60).astype(int)
    frame = frame_of([5] * 120, storage_fee_refund_octas=43_960 * deleted, slots_deleted=deleted)
    [step] = analyse(frame, [at(60)]).steps
    assert (step.part, step.change) == (Part.REFUND, -43_960)


def test_payload_sizes_do_not_make_steps():
    """Gas follows the payload; payloads three times as large from the change on are not a step."""
    rng = np.random.default_rng(5)
    size = rng.integers(50, 90, 200) * np.where(np.arange(200) < 100, 1, 3)
    found = analyse(frame_of(np.ceil(3 + 0.1 * size), payload_bytes=size), [at(100)])
    assert found.steps == found.unexplained == ()


def test_noise_without_an_effect_makes_no_step():
    """30 % noise, 10 histories with 3 changes each: no step."""
    rng = np.random.default_rng(6)
    for _ in range(10):
        frame = frame_of(np.ceil(40 * np.exp(0.3 * rng.normal(size=150))))
        assert analyse(frame, [at(40), at(80), at(120)]).steps == ()


def test_few_observations_beside_a_change_are_reported():
    """A stratum with 4 observations after the change is not compared there, and the result says so."""
    rng = np.random.default_rng(7)
    change = at(96)
    found = analyse(frame_of(np.ceil(50 + 10 * rng.normal(size=100))), [change])
    assert found.steps == ()
    assert {(one.stratum, one.changes, one.count) for one in found.few} == {
        ("all transactions", (change.ledger_version,), 4)
    }


def test_a_part_whose_neighbours_are_alike_is_not_judged_by_few_observations():
    """Execution moves for the 6 calls after the change; of io, which is alike in runs, they are worth 2."""
    io = [4] * 20 + [5] * 72 + [6] * 2 + [51] * 6
    change = at(94)
    found = analyse(frame_of([5] * 94 + [47] * 6, io=np.array(io)), [change])
    assert [(one.part, one.doubts) for one in found.steps] == [(Part.EXECUTION, (Doubt.FEW,))]
    assert [(one.part, one.changes, one.count) for one in found.few] == [(Part.IO, (change.ledger_version,), 6)]
    longer = analyse(frame_of([5] * 94 + [47] * 12, io=np.array(io + [51] * 6)), [change])
    assert {one.part for one in longer.steps} == {Part.EXECUTION, Part.IO}
    assert longer.few == ()


RANDOM = np.random.default_rng(11)
WAY = RANDOM.random(400) < 0.5  # the argument that no column has: every other transaction costs B


def two_ways(before, after, *, at_row=200, more=0):
    """Return transactions that cost one of two levels, with others from a row on, or some rows later."""
    later = np.arange(400) >= at_row + more
    return frame_of(np.where(later, np.where(WAY, after[1], after[0]), np.where(WAY, before[1], before[0])))


@pytest.mark.parametrize(
    ("before", "after", "moved"),
    [
        ((32, 87), (32, 180), {(87, 180)}),  # one way doubles
        ((32, 87), (33, 90), {(32, 33), (87, 90)}),  # both by a unit or three
        ((50, 100), (100, 200), {(50, 100), (100, 200)}),  # a level takes the place of another
        ((50, 100), (90, 140), {(50, 90), (100, 140)}),  # both by 40, such as a slot more
        ((30, 60), (90, 60), {(30, 90)}),  # a way becomes the dearer one
    ],
)
def test_a_way_that_moves_is_a_step_of_that_way(before, after, moved):
    """Levels before and after a change are linked: a way keeps its level or moves to another, and the other stays."""
    found = analyse(two_ways(before, after), [at(200)])
    assert {(step.before, step.after) for step in found.steps} == moved
    assert all(step.way for step in found.steps)
    assert all(step.causes and step.low <= step.change <= step.high for step in found.steps)
    assert found.unexplained == found.growth == found.mix == ()


def test_a_way_that_comes_to_cost_what_another_does_is_a_step_with_a_doubt():
    """From 30 and 60 to 60 for all: the cheap way has no level of its own any longer, or nobody takes it."""
    [step] = analyse(two_ways((30, 60), (60, 60)), [at(200)]).steps
    assert (step.way, step.before, step.after) == (True, 30, None)
    assert step.doubts == (Doubt.OPTION,)


def test_what_became_of_ways_of_which_some_end_and_others_begin_is_in_doubt():
    """Costs of 95 and 142 become 137 and 185 while the shares move, too: 137 may be either of the former."""
    rng = np.random.default_rng(9)
    before, after = np.where(rng.random(200) < 0.4, 95, 142), np.where(rng.random(200) < 0.1, 137, 185)
    steps = analyse(frame_of(np.concatenate([before, after])), [at(200)]).steps
    assert {step.before for step in steps} == {95, 142, None}
    assert all(Doubt.OPTION in step.doubts for step in steps)


def test_each_side_may_have_six_ways():
    """All six cost a quarter more: none of the twelve levels is on both sides."""
    costs = [40, 60, 90, 130, 200, 300]
    dearer = [cost * 5 // 4 for cost in costs]
    steps = analyse(frame_of(costs * 20 + dearer * 20), [at(120)]).steps
    assert [(step.before, step.after) for step in steps] == list(zip(costs, dearer, strict=True))
    assert all(step.sure for step in steps)


def test_ways_of_which_none_stays_keep_their_order():
    """Callers in runs take the ways more or less often; which became which is then in doubt."""
    rng = np.random.default_rng(9)
    before, after = np.where(rng.random(200) < 0.4, 30, 60), np.where(rng.random(200) < 0.1, 100, 150)
    steps = analyse(frame_of(np.concatenate([before, after])), [at(200)]).steps
    assert [(step.before, step.after) for step in steps] == [(30, 100), (60, 150)]
    assert all(step.doubts == (Doubt.OPTION,) for step in steps)


def test_a_step_that_decays_is_not_silent():
    """Costs double and return slowly, without noise: the step is found, although neighbours are alike."""
    gone = np.exp(-np.arange(100) / 100)
    [step] = analyse(frame_of(np.ceil(np.append([300.0] * 100, 300 * (1 + gone)))), [at(100)]).steps
    assert step.before == 300
    assert step.low <= 300 <= step.high
    assert not step.sure


def test_growth_that_begins_a_few_transactions_after_a_change_is_no_sure_step():
    """A line through the growth ends below what the first transactions cost."""
    grown = np.maximum(0, np.arange(60) - 5)
    noise = np.random.default_rng(3).integers(0, 2, 260)
    found = analyse(frame_of(100 + noise + np.append([0] * 200, grown)), [at(200)])
    assert not any(step.sure for step in found.steps)


def test_a_level_that_held_two_ways_is_compared_with_both():
    """Ways of 8 and 10 look like one level, and times ten they are two: only all calls together are comparable."""
    before, after = [8, 8, 8, 10, 8, 8, 8, 8, 10, 8, 8], [92, 78] * 6 + [92]
    [step] = analyse(frame_of(np.array(before + after)), [at(len(before))]).steps
    assert (step.before, step.after) == (pytest.approx(92 / 11), pytest.approx(1112 / 13))
    assert (step.count_before, step.count_after, step.way, step.doubts) == (11, 13, False, (Doubt.LEVELS,))
    assert step.total_after - step.total_before == pytest.approx(step.change)


def test_a_level_is_not_divided_by_a_few_calls_of_another_kind():
    """Two dear calls among many do not make the level of the others uncertain."""
    after = [100] * 98 + [240] * 2
    [step] = analyse(frame_of(np.array([30] * 100 + after)), [at(100)]).steps
    assert (step.before, step.after, step.count_after, step.doubts) == (30, 100, 98, ())


def test_use_that_differs_from_a_change_on_is_a_mix_and_no_step():
    """The shares of two ways move at a change of code from 25 to 75 %, and no cost does."""
    way = np.random.default_rng(3).random(300) < np.where(np.arange(300) < 150, 0.25, 0.75)
    found = analyse(frame_of(np.where(way, 87, 32)), [at(150)])
    assert found.steps == found.unexplained == found.growth == ()
    assert {(mix.version_before, mix.version_after) for mix in found.mix} == {(2_490, 2_500)}
    assert {(mix.stratum, mix.way_gas) for mix in found.mix} == {("all transactions", 34), ("all transactions", 89)}


@pytest.mark.parametrize("more", [12, 40])
def test_a_shift_of_both_ways_after_a_change_is_unexplained(more):
    """The change does nothing; 12 or 40 transactions later both ways cost half as much again."""
    found = analyse(two_ways((32, 87), (48, 130), more=more), [at(200)])
    assert found.steps == ()
    assert {(shift.before, shift.after) for shift in found.unexplained} == {(32, 48), (87, 130)}


@pytest.mark.parametrize(("before", "after"), [(300, 303), (1_000, 1_010), (4, 5)])
def test_without_noise_there_is_no_floor(before, after):
    """One per cent more, or one gas unit more, is a step if every transaction pays it."""
    [step] = analyse(frame_of([before] * 40 + [after] * 40), [at(40)]).steps
    assert (step.before, step.after) == (before, after)


def test_a_quantity_that_varies_is_not_divided_into_ways():
    """30 % noise, a uniform quantity and payload sizes are one level each; two noisy levels far apart are two."""
    random = np.random.default_rng(12)
    noise = np.exp(0.3 * random.normal(size=400))
    values = {
        "noise": 60 * noise,
        "uniform": random.integers(20, 200, 400),
        "levels": np.where(WAY, 600, 60) * noise**0.1,
    }
    ways = {name: 1 + level_numbers(np.ceil(one), 1.0).max() for name, one in values.items()}
    assert ways["levels"] == 2
    assert ways["noise"] < 4
    assert ways["uniform"] == 1


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (524_289, "abort code 0x80001 (already exists)"),
        (65_540, "abort code 0x10004 (invalid argument)"),
        (7, "abort code 7"),
        (100_001, "abort code 100001"),  # a number of the module's own, although it is 0x186a1
        (0xE0001, "abort code 917505"),
    ],
)
def test_an_abort_code_has_its_category_if_it_is_one(code, words):
    """Codes of `0x1::error` are shown as nodes show them; others are only numbers."""
    assert WORDS["abort_code"](code) == words


def test_nulls_are_values_of_the_key():
    """Calls without an abort code are a stratum of their own."""
    codes = pd.array([None, 7] * 20, dtype="Int64")
    strata = Observations(frame_of([4] * 40, success=[True, False] * 20, abort_code=codes)).strata()
    assert [stratum.name for stratum in strata] == ["failing, abort code 7", "succeeding"]
    assert [len(stratum.rows) for stratum in strata] == [20, 20]


def test_a_frame_without_rows_has_no_findings():
    """No transactions: no strata, no steps."""
    found = analyse(frame_of([]), [at(1)])
    assert (found.steps, found.unexplained, found.strata) == ((), (), ())


def test_a_missing_column_is_named():
    """The error names a missing required column."""
    with pytest.raises(InputError, match="must have the column io_gas_units"):
        analyse(frame_of([4] * 3).drop(columns="io_gas_units"), [])


@pytest.mark.parametrize(
    ("names", "parts"),
    [
        (["instr.add", "instr.call.base"], {Part.EXECUTION}),
        (["txn.storage_io_per_state_slot_read"], {Part.IO}),
        (["txn.storage_fee_per_state_slot"], {Part.STORAGE, Part.REFUND}),
        (["instr.add", "txn.min_transaction_gas_units"], set(Part)),
        ([], set()),
    ],
)
def test_parameters_say_which_parts_they_move(names, parts):
    """Prices of instructions move execution, those of storage move io or storage; others could move all."""
    assert parts_of_parameters(names) == parts


def test_slots_follow_from_the_fee_and_the_price_in_force():
    """Bytes come on top of slots: 129,880 octas are three slots of 40,000."""
    assert slots_created(np.array([0, 320, 53_240, 129_880]), np.full(4, 40_000)).tolist() == [0, 0, 1, 3]
