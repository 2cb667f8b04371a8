"""A study of the recorded series of a real node: its steps, growth and mix are those of the table in the INDEX."""

from __future__ import annotations

import pytest

import toolkit
from tests.conformance.recorded_node import RecordedNode
from toolkit.frames._columns import plain_columns
from toolkit.gas._verdict_sentences import Why

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
    assert [(*one[:-2], *map(round, one[-2:])) for one in found] == [
        ("bump", "succeeding", "execution", UPGRADE, True, "code", 4, 21),
        ("bump", "succeeding", "execution", SCHEDULE, True, "schedule", 21, 5),
        ("put", "3 new slots", "execution", SCHEDULE, True, "schedule", 30, 7),
        ("put", "no new slots", "execution", SCHEDULE, True, "schedule", 11, 7),
        ("walk", "all transactions", "execution", SCHEDULE, True, "schedule", 13, 5),
        ("transfer", "1 new slot", "execution", SCHEDULE, True, "schedule", 12, 4),
        ("transfer", "no new slots", "execution", SCHEDULE, True, "schedule", 9, 4),
    ]


def test_steps_have_their_bounds_and_the_gas_of_the_whole_transaction(run):
    """4 to 21 of 5 to 22, as the node charged; the bounds are those of two rounded numbers."""
    bump = run.steps.iloc[0]
    assert (bump["change_low"], bump["change_high"]) == (16, 18)
    assert (bump["total_before"], bump["total_after"]) == (5, 22)
    assert min(bump["count_before"], bump["count_after"]) >= 20
    assert run.steps["change_high"].sub(run.steps["change_low"]).ge(1).all()


def test_growth_and_the_mix_are_no_steps(run):
    """`put` and `walk` grow; the mix of `put` and `transfer` changes before 897, where no step is.

    Nobody puts a key that is known already until 370.
    """
    assert {name for name, _ in rows(run.growth, "label", "stratum")} == {"put", "walk"}
    assert run.growth["per_1000_versions"].gt(0).all()
    assert set(run.mix["label"]) == {"put", "transfer"}
    mixes = sorted(set(rows(run.mix, "label", "version_after")))
    assert mixes[0] == ("put", 370)
    assert [(name, 850 < version < 900) for name, version in mixes[1:]] == [("put", True), ("transfer", True)]
    assert not run.steps["version_after"].between(850, 900).any()


def test_every_call_is_judged_and_explain_says_what_happened(run):
    """No call is left out; the lines name transaction, cause, size, bounds and counts, and what is not a step."""
    assert (run.coverage.judged, run.coverage.unjudged, run.coverage.views) == (4, (), 0)
    text = run.explain()
    lines = text.splitlines()
    assert lines[0].startswith("at version 503, code: transaction 503 (0x1::code::publish_package_txn by ")
    assert lines[0].endswith("::lab (added walk)")
    assert lines[1] == (
        "  bump (succeeding): from 5 to 22 gas units (×4.4: execution +16 to +18; nearest 65 transactions before, 64 after)"
    )
    assert lines[2].startswith("at version 707, gas schedule: transaction 707 ")
    assert "117 of 508 parameters changed, every one ×0.1" in lines[2]
    assert "put: execution (3 new slots) grows gradually, +77 % over 21 transactions from version 333 to 489 " in text
    assert "(56 gas units per 1,000 versions); no change explains it" in text  # and not across the upgrade at 503
    assert "transfer: usage changed between versions 891 and 892, not a step: 1 new slot from 61 to 100 %" in text
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
    """Return (label, gas before, gas after, cause) of the changed rows, with two decimals of the means."""
    changed = comparison.changed
    return set(
        rows(
            changed.assign(**changed[["gas_before", "gas_after"]].round(2)), "label", "gas_before", "gas_after", "cause"
        )
    )


def test_compare_sees_the_upgrade_with_its_cause(run):
    """Before and after 503 `bump` changed, from 5 to 22, and the cause is named; nothing else certainly did.

    `put` and `transfer` have few transactions that create slots, which cost a hundred times as much: the bounds of their
    means are wide. `walk` exists after the upgrade only.
    """
    found = compared(run, 500, 700)
    assert changes_of(found) == {("bump", 5, 22, "code")}
    [explanation] = found.changed["explanation"]
    assert "(added walk)" in explanation
    gate = found.gate("2%")
    assert [(one.label, one.gas_before, one.gas_after) for one in gate.regressions] == [("bump", 5, 22)]
    assert {one.label for one in gate.not_judged} == {"put", "transfer", "walk"}
    assert [one.why for one in gate.not_judged if one.label == "walk"] == [Why.NOT_COMPARED]


def test_compare_sees_the_schedule(run):
    """Around 707 every kind became cheaper; the mean of `transfer` rose, because more of them pay for a new slot.

    Of 79 transfers before 32 pay for one, of 37 after 23: that may be chance, and the gate says so.
    """
    found = compared(run, 700, 890)
    assert changes_of(found) == {
        ("bump", 22, 6, "schedule"),
        ("walk", 12.28, 6, "schedule"),
        ("transfer", 229.92, 339.57, None),
    }
    gate = found.gate("2%")
    assert not gate.regressions
    assert {one.label for one in gate.not_judged} == {"put", "transfer"}


def test_a_gate_judges_the_mean_fee_also_if_only_the_mix_moved(run):
    """After 897 every transfer and put pays for new slots: people pay more on average, and no change is blamed.

    From there, `bump` and `walk` are charged 7 units instead of 6, though their parts, each rounded up, stay the same.
    """
    found = compared(run, 890, 1_071)
    assert changes_of(found) == {
        ("put", 809.05, 1_309.12, None),
        ("transfer", 339.57, 529.56, None),
        ("bump", 6, 6.97, None),
        ("walk", 6, 7, None),
    }
    assert {one.label for one in found.gate("2%").regressions} == {"put", "transfer", "bump", "walk"}
    assert not run.steps["version_after"].between(890, 1_071).any()
