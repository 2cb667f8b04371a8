"""A study of the recorded series of a real node: its steps, growth and mix are those of the table in the INDEX."""

from __future__ import annotations

import pytest

import toolkit
from tests.conformance.recorded_node import RecordedNode
from toolkit.frames._columns import plain_columns

UPGRADE, SCHEDULE = 503, 707


@pytest.fixture(scope="module")
def run(recordings, tmp_path_factory):
    """Return the run of a study of the four functions over the whole series."""
    history = recordings.longer_history
    lab = next(f"{address:#x}::{name}" for _, address, name in history.places("module") if name == "lab")
    calls = {name: {"committed": f"{lab}::{name}"} for name in ("bump", "put", "walk")}
    calls["transfer"] = {"committed": "0x1::aptos_account::transfer"}
    with (
        RecordedNode(recordings.of("series"), history).serving() as served,
        toolkit.connect(served.url, cache=None) as node,
    ):
        study = toolkit.Study(title="series", node=node, calls=calls, versions="326:1071")
        return study.run(tmp_path_factory.mktemp("series") / "run", progress=False)


def rows(frame, *names):
    """Return columns of a frame as tuples."""
    return list(zip(*plain_columns(frame, names).values(), strict=True))


def test_every_step_of_the_table_and_no_other(run):
    """`bump` at 503 by code and at 707 by the schedule; the others at 707 alone, each kind of them; none unexplained."""
    found = rows(run.steps, "label", "stratum", "part", "version_after", "exact", "cause", "gas_before", "gas_after")
    assert found == [
        ("bump", "succeeding", "execution", UPGRADE, True, "code", 4, 21),
        ("bump", "succeeding", "execution", SCHEDULE, True, "schedule", 21, 5),
        ("put", "no new slots", "execution", SCHEDULE, True, "schedule", 11, 7),
        ("put", "3 new slots", "execution", SCHEDULE, True, "schedule", 29, 7),
        ("walk", "all transactions", "execution", SCHEDULE, True, "schedule", 13, 5),
        ("transfer", "no new slots", "execution", SCHEDULE, True, "schedule", 9, 4),
        ("transfer", "1 new slot", "execution", SCHEDULE, True, "schedule", 12, 4),
    ]


def test_steps_have_their_bounds_and_the_gas_of_the_whole_transaction(run):
    """4 to 21 of 5 to 22, as the node charged; the bounds are those of two rounded numbers."""
    bump = run.steps.iloc[0]
    assert (bump["change_low"], bump["change_high"]) == (16, 18)
    assert (bump["total_before"], bump["total_after"]) == (5, 22)
    assert min(bump["count_before"], bump["count_after"]) >= 20
    assert run.steps["change_high"].sub(run.steps["change_low"]).ge(1).all()


def test_growth_and_the_mix_are_no_steps(run):
    """`put` and `walk` grow; the mix of `put` and `transfer` changes before 897, where no step is."""
    assert {name for name, _ in rows(run.growth, "label", "stratum")} == {"put", "walk"}
    assert run.growth["per_1000_versions"].gt(0).all()
    assert set(run.mix["label"]) == {"put", "transfer"}
    assert run.mix["version_after"].between(850, 900).all()
    assert not run.steps["version_after"].between(850, 900).any()


def test_every_call_is_judged_and_explain_says_what_happened(run):
    """No call is left out; the lines name transaction, cause, size, bounds and counts, and what is not a step."""
    assert (run.coverage.judged, run.coverage.unjudged, run.coverage.views) == (4, (), 0)
    text = run.explain()
    lines = text.splitlines()
    assert lines[0].startswith("at version 503, code: transaction 503 (0x1::code::publish_package_txn by ")
    assert lines[0].endswith("::lab (added walk)")
    assert lines[1] == (
        "  bump (succeeding): from 5 to 22 gas units (x4.4; execution from 4 to 21, +16 to +18; "
        "20 transactions before and 20 after)"
    )
    assert lines[2].startswith("at version 707, gas schedule: transaction 707 ")
    assert "117 of 508 parameters changed, every one x0.1" in lines[2]
    assert "put: execution (3 new slots) grows with state by 57.7 gas units per 1,000 versions (54.2 to 61.2) " in text
    assert "from version 333 to 489; that is not a step" in text  # and not across the upgrade at 503
    assert "that is not a step" in text
    assert (
        "transfer: usage changed between versions 891 and 892, which is not a step: 1 new slot from 47 to 100 %" in text
    )
    assert "unexplained" not in text


def test_the_run_opens_again_with_the_same_sentences(run):
    """What the analysis found is stored, not computed again."""
    again = toolkit.Run.open(run.path)
    assert again.explain() == run.explain()
    assert again.steps.equals(run.steps)
    assert again.growth.equals(run.growth)
    assert again.mix.equals(run.mix)


def compared(run, before, after):
    """Return the comparison of the run at two versions."""
    return toolkit.compare(f"{run.path}@{before}", f"{run.path}@{after}")


def changes_of(comparison):
    """Return (label, kind of transaction, gas before, gas after) of the changed rows."""
    return set(rows(comparison.changed, "label", "stratum", "gas_before", "gas_after"))


def test_compare_sees_the_upgrade_with_its_cause(run):
    """Before and after 503 `bump` changed, from 5 to 22, and the cause is named; `put` grew, the others are the same.

    The growth of `put` is no cause of its difference, since the code changed between the two sides.

    `walk` exists after the upgrade only, so the gate could not judge it.
    """
    found = compared(run, 500, 700)
    bump, put = rows(found.changed, "label", "stratum", "cause", "explanation", "change_low", "change_high")
    assert bump[:3] == ("bump", "succeeding", "code")
    assert "(added walk)" in bump[3]
    assert bump[4:] == (16, 18)
    assert put[:4] == ("put", "3 new slots", None, None)
    assert ("transfer", "1 new slot") in rows(found.unchanged, "label", "stratum")
    gate = found.gate("2%")
    assert [(one.label, one.gas_before, one.gas_after) for one in gate.regressions] == [("bump", 5, 22)]
    assert [(one.label, one.reason) for one in gate.not_judged] == [("walk", "only on the after side")]


def test_compare_sees_each_kind_fall_at_the_schedule(run):
    """Around 707 every kind became cheaper, also those whose storage is a hundred times their execution."""
    found = compared(run, 700, 890)
    assert changes_of(found) == {
        ("bump", "succeeding", 22, 6),
        ("put", "no new slots", 16, 11),
        ("put", "3 new slots", 1_325, 1_308),
        ("walk", "all transactions", 12, 6),
        ("transfer", "all transactions", 230, 224),
        ("transfer", "no new slots", 12, 7),
        ("transfer", "1 new slot", 550, 542),
    }
    assert set(found.changed["cause"]) == {"schedule"}
    assert found.gate("2%").passed


def test_a_shift_of_the_mix_is_no_regression(run):
    """After 897 every transfer and put pays for new slots, and its mean jumps; the gate passes, since no kind rose."""
    found = compared(run, 890, 1_071)
    gate = found.gate("2%")
    assert gate.passed
    assert {change[0] for change in changes_of(found)} <= {"bump", "walk", "put"}  # by 1 or 2 units: growth
    assert found.changed["change"].abs().max() <= 2
    assert "a change of 1 gas unit may be rounding and is not a regression" in str(gate)
