"""Committed series: what is a step, what is not, and how often the analysis is right on generated histories."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from tests.unit.gas.committed_histories import history
from tests.unit.gas.committed_scores import BARS, rates, score
from toolkit.errors import InputError
from toolkit.gas._observations import Cause, Change, Part, parts_of_parameters
from toolkit.gas.committed._analysis import SeriesStep, analyse
from toolkit.gas.committed._strata import Observations, slots_created

CODE, SCHEDULE = Cause.CODE, Cause.SCHEDULE
EXECUTION = frozenset({Part.EXECUTION})


def frame_of(execution, *, io=2, storage=0, every=10, **columns):
    """Return observations with these gas units of execution, one every few versions from 1,000 on."""
    count = len(execution)
    versions = 1_000 + every * np.arange(count)
    paid = {"execution_gas_units": execution, "io_gas_units": io, "storage_fee_octas": storage}
    return pd.DataFrame({"ledger_version": versions, "gas_unit_price": 100, **paid, **columns})


def at(position, kind=CODE, parts=frozenset(Part), what="upgrade"):
    """Return a change before the observation of a position."""
    return Change(1_000 + 10 * position - 5, kind, what, parts)


def misses(names, **options):
    """Return the rates of 100 generated histories that miss their bar, what went wrong, and all rates."""
    tally, wrong = Counter(), []
    for seed in range(1_000_000, 1_000_100):
        made = history(seed, **options)
        wrong += [f"{seed}: {note}" for note in score(made, analyse(made.frame, made.changes), tally)]
    measured = rates(tally)
    within = {name: BARS[name][0] <= measured[name][0] / max(1, measured[name][1]) <= BARS[name][1] for name in names}
    return [name for name in names if not within[name]], wrong, measured


def test_the_bars_of_steps_hold_on_100_generated_histories():
    """Named steps, new slots, wrong changes, wrong parts, histories without effect: each in its bar."""
    missed, wrong, measured = misses([name for name in BARS if "unexplained" not in name])
    assert not missed, "\n".join([*missed, *wrong])
    assert measured["resolvable steps named"][1] > 50
    inside, of = measured["intervals that hold the truth"]
    assert inside / of > 0.93


def test_the_bars_of_unexplained_shifts_hold_on_100_generated_histories():
    """In histories that each have a shift nobody announced, enough of them are found and few others."""
    missed, wrong, measured = misses([name for name in BARS if "unexplained" in name], hidden=1.0)
    assert not missed, "\n".join([*missed, *wrong])
    assert measured["unexplained found"][1] > 40


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
    assert (step.count_before, step.count_after) == (20, 20)
    assert step.causes == (change,)
    assert step.uncertain == ()
    assert step.change == 17


def test_storage_is_exact():
    """Storage is charged in octas and not rounded, so its interval has no width."""
    [step] = analyse(frame_of([4] * 60, storage=[53_240] * 30 + [60_000] * 30), [at(30)]).steps
    assert (step.part, step.low, step.high) == (Part.STORAGE, 6_760, 6_760)


def test_a_part_that_the_change_cannot_touch_is_not_compared():
    """A schedule that moves prices of instructions is no cause of a step of io; the shift is not explained."""
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
    [mix] = found.mix
    assert mix.version_before < 1_000 + 10 * 120 <= mix.version_after + 10
    assert [name for name, _, _ in mix.shares] == ["slots_created=1", "slots_created=0"]


def test_growth_is_a_slope_and_no_step():
    """A level that rises by a unit in 5 observations has a slope of 20 units per 1,000 versions, and no step at 100."""
    found = analyse(frame_of(10 + np.arange(200) // 5), [at(100)])
    assert found.steps == found.unexplained == ()
    [growth] = found.growth
    assert growth.low <= 20 <= growth.high
    assert (growth.version_first, growth.version_last, growth.count) == (1_000, 2_990, 200)


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
    assert step.uncertain == ("one of 2 changes",)


def test_another_part_resolves_a_set():
    """Io steps at the code change by itself, as the schedule cannot move it; so it is named for execution too."""
    changes = [at(50, what="code"), at(50, SCHEDULE, EXECUTION, "schedule")]
    steps = analyse(frame_of([4] * 50 + [9] * 50, io=[2] * 50 + [7] * 50), changes).steps
    assert [[cause.what for cause in step.causes] for step in steps] == [["code"], ["code"]]


def test_close_changes_with_constant_levels_are_named_alone():
    """Three transactions between two changes are enough if the levels are constant; the other change is a caution."""
    [step] = analyse(frame_of([4] * 53 + [9] * 50), [at(50, what="no effect"), at(53, what="effect")]).steps
    assert [cause.what for cause in step.causes] == ["effect"]
    assert step.uncertain == ("other changes are fewer than 8 observations away",)


def test_a_shift_beside_a_change_is_not_put_on_the_change():
    """The level shifts 30 transactions after the change: not a step, but an unexplained shift at its own place."""
    found = analyse(frame_of([4] * 130 + [9] * 100), [at(100)])
    assert found.steps == ()
    [shift] = found.unexplained
    assert (shift.version_before, shift.version_after) == (2_290, 2_300)


def test_a_new_slot_is_a_step_of_storage_though_the_strata_change():
    """Each kind of call writes a slot more from an upgrade on: strata end and begin, storage steps by a slot."""
    slots = np.tile([0, 3, 3], 60) + (np.arange(180) >= 90)
    found = analyse(frame_of(4 + slots * 0, storage=40_000 * slots, slots_created=slots), [at(90)])
    assert {(step.stratum, step.change, step.writes_changed) for step in found.steps} == {
        ("slots_created=0 -> slots_created=1", 40_000, True),
        ("slots_created=3 -> slots_created=4", 40_000, True),
    }
    assert {step.part for step in found.steps} == {Part.STORAGE}


def test_a_slot_no_longer_deleted_is_a_step_of_refund():
    """A call that deleted a slot and got its price back does so no longer."""
    deleted = (np.arange(120) < 60).astype(int)
    frame = frame_of([5] * 120, storage_fee_refund_octas=43_960 * deleted, slots_deleted=deleted)
    [step] = analyse(frame, [at(60)]).steps
    assert (step.part, step.change, step.writes_changed) == (Part.REFUND, -43_960, True)


def test_payload_sizes_do_not_make_steps():
    """Gas follows the payload; payloads three times as large from the change on are no step."""
    rng = np.random.default_rng(5)
    size = rng.integers(50, 90, 200) * np.where(np.arange(200) < 100, 1, 3)
    found = analyse(frame_of(np.ceil(3 + 0.1 * size), payload_bytes=size), [at(100)])
    assert found.steps == found.unexplained == ()


def test_noise_without_an_effect_makes_no_step():
    """30 % noise, 100 histories with 3 changes each: no step."""
    rng = np.random.default_rng(6)
    for _ in range(100):
        frame = frame_of(np.ceil(40 * np.exp(0.3 * rng.normal(size=150))))
        assert analyse(frame, [at(40), at(80), at(120)]).steps == ()


def test_few_observations_beside_a_change_are_reported():
    """A stratum with noise and 5 observations after the change is not compared there, and that is said."""
    rng = np.random.default_rng(7)
    change = at(95)
    found = analyse(frame_of(np.ceil(50 + 10 * rng.normal(size=100))), [change])
    assert found.steps == ()
    assert found.not_compared == (("all", Part.EXECUTION, change),)


def test_a_stratum_is_divided_by_its_bytes_only_if_the_pieces_last():
    """Two levels of new bytes are strata; not if one of them begins at a change, as the change may be why."""
    size = np.tile([100, 300], 60)
    frame = frame_of(np.tile([4, 6], 60), new_bytes=size)
    assert [s.value("new_bytes") for s in Observations(frame).strata([1_595])] == [288, 96]
    later = frame.assign(new_bytes=np.where(np.arange(120) < 60, 100, 300))
    assert [s.name for s in Observations(later).strata([1_595])] == ["all"]


def test_nulls_are_values_of_the_key():
    """Calls without an abort code are a stratum of their own."""
    codes = pd.array([None, 7] * 20, dtype="Int64")
    strata = Observations(frame_of([4] * 40, success=[True, False] * 20, abort_code=codes)).strata()
    assert [stratum.name for stratum in strata] == ["success=False, abort_code=7", "success=True"]
    assert [len(stratum.rows) for stratum in strata] == [20, 20]


def test_a_frame_without_rows_has_no_findings():
    """No transactions: no strata, no steps."""
    found = analyse(frame_of([]), [at(1)])
    assert (found.steps, found.unexplained, found.strata) == ((), (), ())


def test_a_frame_lists_steps_and_unexplained_shifts():
    """`to_frame` has a row per step and per unexplained shift, and its columns also if there are none."""
    found = analyse(frame_of([4] * 50 + [21] * 60 + [9] * 50), [at(50)]).to_frame()
    assert found["after"].tolist() == [21, 9]
    assert [len(causes) for causes in found["causes"]] == [1, 0]
    empty = analyse(frame_of([4] * 50), []).to_frame()
    assert list(empty.columns) == list(SeriesStep.__dataclass_fields__)


def test_a_missing_column_is_named():
    """A required column that is not there is named."""
    with pytest.raises(InputError, match="must have the column io_gas_units"):
        analyse(frame_of([4] * 3).drop(columns="io_gas_units"), [])


def test_a_null_in_a_required_column_is_named_with_its_row():
    """A missing fee is refused with column and row."""
    frame = frame_of([4] * 3).astype("Int64")
    frame.loc[1, "storage_fee_octas"] = pd.NA
    with pytest.raises(InputError, match="storage_fee_octas must not be null, got null in row 1"):
        analyse(frame, [])


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
