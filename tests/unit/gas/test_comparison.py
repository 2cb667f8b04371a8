"""Two sides of observations: kinds, numbers, warnings."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import pytest

from tests.unit.gas.observed import change_manifest, frame, manifest, plan, row, table
from toolkit._present.text import number
from toolkit.client._versions import FindSteps
from toolkit.embedded import Ledger, serve
from toolkit.errors import InputError, StudyError
from toolkit.frames._schema import COMPARISON
from toolkit.gas._compare import compare, compared
from toolkit.gas._observations import last_observations
from toolkit.gas._study import Run, Study
from toolkit.gas._verdict_sentences import Why
from toolkit.gas.runs._store import RunStore


def kinds(comparison):
    return dict(zip(comparison.calls["label"].tolist(), comparison.calls["kind"].tolist(), strict=True))


def only(comparison):
    assert len(comparison.calls) == 1
    return comparison.calls.iloc[0]


def test_each_call_has_its_kind():
    """Added, removed, changed, unchanged, not compared: by fingerprint and source."""
    before = frame(
        row(1, label="gone"), row(1, label="same"), row(1, label="dearer"), row(1, label="lost"), row(1, label="broken")
    )
    after = frame(
        row(2, label="new"),
        row(2, label="same"),
        row(2, 12, label="dearer"),
        row(2, label="lost", error="unreachable"),
        row(2, label="broken", error="invalid_input"),
    )
    found = compare(before, after)
    assert kinds(found) == {
        "broken": "changed",
        "dearer": "changed",
        "gone": "removed",
        "lost": "not compared",
        "new": "added",
        "same": "unchanged",
    }
    sizes = [len(side) for side in (found.added, found.removed, found.changed, found.unchanged, found.not_compared)]
    assert sizes == [1, 1, 2, 1, 1]
    assert list(found.calls.columns) == COMPARISON.names


@pytest.mark.parametrize("code", ["unreachable", "rate_limited", "http_429", "http_502", "http_503", "http_504"])
def test_no_answer_says_nothing_about_gas(code):
    """Whichever side got none."""
    assert kinds(compare(frame(row(1)), frame(row(2, error=code)))) == {"a": "not compared"}
    assert kinds(compare(frame(row(1, error=code)), frame(row(2)))) == {"a": "not compared"}


@pytest.mark.parametrize(
    ("before", "after", "change", "percent"),
    [(10, 12, 2, 20.0), (12, 9, -3, -25.0), (8, 8, 0, 0.0), (0, 5, 5, None), (2**52, 2**52 + 1, 1, pytest.approx(0))],
)
def test_changes_are_in_units_and_percent_of_the_baseline(before, after, change, percent):
    """The baseline is the before side; a rise from zero does not have a percentage."""
    found = only(compare(frame(row(1, before)), frame(row(2, after))))
    assert (found["gas_before"], found["gas_after"], found["change"]) == (before, after, change)
    assert pd.isna(found["change_percent"]) if percent is None else found["change_percent"] == percent


def test_a_gate_is_exact_beyond_the_integers_of_a_float():
    """A rise by one gas unit is over a limit of none, and not over a limit of one."""
    found = compare(frame(row(1, 2**62)), frame(row(2, 2**62 + 1)))
    assert only(found)["change"] == 1
    assert (found.gate(0).passed, found.gate(1).passed) == (False, True)


def test_a_failed_side_has_no_change():
    """An error has no gas: the codes stand there instead."""
    found = only(compare(frame(row(1, 10)), frame(row(2, error="invalid_input"))))
    assert pd.isna(found["change"])
    assert pd.isna(found["gas_after"])
    assert (found["error_after"], found["version_before"], found["version_after"]) == ("invalid_input", 1, 2)
    assert pd.isna(found["error_before"])


def test_two_failures_of_a_kind_are_unchanged():
    """It failed before and fails the same way."""
    assert kinds(compare(frame(row(1, error="x")), frame(row(2, error="x")))) == {"a": "unchanged"}
    assert kinds(compare(frame(row(1, error="x")), frame(row(2, error="y")))) == {"a": "changed"}


def test_success_counts_as_well_as_gas():
    """The same gas, but now aborted."""
    before, after = row(1, source="simulate@now"), row(2, source="simulate@now", success=False)
    assert kinds(compare(frame(before), frame(after))) == {"a": "changed"}


def test_a_change_of_result_is_seen_where_gas_is_the_same():
    """Digests are compared; unknown on a side says unknown."""
    one, two = row(1, value_digest="x"), row(2, value_digest="y")
    found = only(compare(frame(one), frame(two)))
    assert (found["kind"], found["value_changed"]) == ("unchanged", True)
    assert not only(compare(frame(one), frame(one)))["value_changed"]
    assert pd.isna(only(compare(frame(one), frame(row(2))))["value_changed"])


def test_the_split_is_carried_on_both_sides():
    """Execution, io and storage of either side."""
    split = {"execution_gas_units": 5, "io_gas_units": 3, "storage_fee_octas": 100, "storage_fee_refund_octas": 0}
    found = only(compare(frame(row(1, **split)), frame(row(2, **(split | {"io_gas_units": 4})))))
    assert (found["io_gas_units_before"], found["io_gas_units_after"]) == (3, 4)
    assert (found["storage_fee_octas_before"], found["storage_fee_refund_octas_after"]) == (100, 0)


def test_sources_are_never_mixed():
    """The same call observed by view and by simulation is two rows."""
    sides = frame(row(1, 10), row(1, 99, source="simulate@now"))
    found = compare(sides, frame(row(2, 11), row(2, 99, source="simulate@now")))
    assert found.calls["source"].tolist() == ["simulate@now", "view@version"]
    assert found.calls["kind"].tolist() == ["unchanged", "changed"]


def test_a_renamed_call_is_the_same_call():
    """Calls are matched by fingerprint; the later name stands."""
    found = compare(frame(row(1)), frame(row(2) | {"label": "renamed"}))
    assert kinds(found) == {"renamed": "unchanged"}


def test_the_last_observation_of_each_call_counts():
    """By version, in any order of the rows; up to a version if one is given."""
    observed = frame(row(5, 50), row(1, 10), row(9, 90), row(3, 30, label="b"))
    assert last_observations(observed)["gas_used"].tolist() == [90, 30]
    assert last_observations(observed, version=8)["gas_used"].tolist() == [50, 30]
    assert last_observations(observed, version=5)["gas_used"].tolist() == [50, 30]
    assert last_observations(observed, version=2)["gas_used"].tolist() == [10]
    assert len(last_observations(observed, version=0)) == 0


def test_comparing_changes_no_frame():
    """Both sides are as they were."""
    side = frame(row(1), row(2, 11))
    copy = side.copy(deep=True)
    compare(side, side)
    pd.testing.assert_frame_equal(side, copy)


def test_empty_sides_compare_to_nothing():
    """No calls, no rows, the schema whole."""
    found = compare(frame(), frame())
    assert len(found.calls) == 0
    assert list(found.calls.columns) == COMPARISON.names
    assert found.warnings == ()


@pytest.mark.parametrize(
    ("column", "value", "words"), [("node_build", "def", "node builds .abc; def."), ("chain_id", 2, "chains .4; 2.")]
)
def test_sides_that_are_hard_to_compare_are_warned_about(column, value, words):
    """Another build or chain explains gas by itself; the warning points at the caller."""
    with pytest.warns(UserWarning, match=words) as caught:
        found = compare(frame(row(1)), frame(row(2, **{column: value})))
    assert len(found.warnings) == 1
    assert caught[0].filename == __file__


def test_a_node_that_was_added_keeps_no_other_from_being_judged():
    """Its calls have no baseline; those of a node that is gone cannot be judged, as from different nodes."""
    one, both = frame(row(1, 10)), frame(row(1, 10), row(1, 10, node="testnet"))
    gate = compared(one, both).gate("2%")
    assert (gate.verdict, gate.judged, gate.not_judged) == ("passed", 1, ())
    gate = compared(both, one).gate("2%")
    assert (gate.verdict, [one.node for one in gate.not_judged]) == ("could not judge", ["testnet"])


def test_an_unknown_build_is_not_warned_about():
    """Where a side does not say its build there is nothing to compare."""
    assert compare(frame(row(1)), frame(row(2, node_build=None))).warnings == ()


@pytest.mark.parametrize(
    ("side", "words"),
    [
        (None, "two runs, run folders or frames"),
        (5, "two runs, run folders or frames"),
        ([1], "two runs, run folders or frames"),
        (pd.DataFrame({"label": ["a"]}), "missing columns: fingerprint"),
        (Path("none"), "is not a run folder"),
    ],
    ids=["None", "a number", "a list", "another frame", "a folder without a run"],
)
def test_what_is_no_side_is_refused(side, words):
    """Frames of observations, runs and run folders are sides; the message says what is wrong with others."""
    with pytest.raises(InputError, match=words):
        compare(frame(row(1)), side)


@pytest.mark.parametrize("source", ["view", "", 5, ("view@version",), ("view@version", "x"), ["committed"] * 3])
def test_what_is_no_source_is_refused(source):
    """Those there are, are named."""
    with pytest.raises(
        InputError, match="source must be one of view@version, simulate@now, simulate@version, committed"
    ):
        compare(frame(row(1)), frame(row(2)), source=source)


# sources, asked for by name -------------------------------------------------------------------------------------


SIM = {"source": "simulate@now", "fingerprint": "sim-print"}


def test_one_source_can_be_asked_for():
    """Rows of the others are left out of both sides."""
    before, after = frame(row(1, 10), row(1, 99, **SIM)), frame(row(2, 11), row(2, 99, **SIM))
    found = only(compare(before, after, source="view@version"))
    assert (found["source"], found["change"]) == ("view@version", 1)


def test_two_sources_are_mixed_only_when_asked_for_by_name():
    """They are then matched by label, named in the row, and warned about."""
    before, after = frame(row(1, 10, **SIM)), frame(row(2, 12, source="committed", fingerprint="other"))
    apart = compare(before, after)
    assert sorted(apart.calls["kind"]) == ["added", "removed"]
    with pytest.warns(UserWarning, match="simulate@now is compared with committed, as requested"):
        mixed = compare(before, after, source=("simulate@now", "committed"))
    found = only(mixed)
    assert (found["kind"], found["change"], found["source"]) == ("changed", 2, "simulate@now to committed")


def test_a_pair_of_one_source_mixes_nothing():
    """It is that source, by fingerprint, without a warning."""
    found = compare(frame(row(1)), frame(row(2)), source=("view@version", "view@version"))
    assert found.warnings == ()
    assert kinds(found) == {"a": "unchanged"}


def test_the_embedded_node_and_a_real_one_cannot_be_compared():
    """One side's gas is a model."""
    with pytest.warns(UserWarning, match="whose gas is a model"):
        compare(frame(row(1)), frame(row(2, model=True)))


# runs and paths -------------------------------------------------------------------------------------------------


SIMULATED = row(3_010, 99, label="s", source="simulate@now", head_version=3_010)


@pytest.fixture
def run_folder(tmp_path):
    """Write a run of two versions."""
    return written_run(tmp_path)


def written_run(tmp_path, *more):
    study = Study(calls=[{"label": "a", "view": "0x1::m::f"}], thresholds="2%")
    store = RunStore(tmp_path / "x")
    store.make_folder()
    known = {"fingerprints": ("a-print", "s-print"), "nodes": (plan(head=3_000, first=1_000, last=2_000),)}
    store.create(manifest(**known, study=study.document(), complete=True))
    store.add(table(row(1_000, 10), row(2_000, 20), *more))
    return tmp_path / "x"


def test_a_side_is_a_run_at_a_version(run_folder):
    """`x@1000` is the run as it stood there; the plain folder is its end."""
    found = compare(f"{run_folder}@1000", run_folder)
    assert (only(found)["gas_before"], only(found)["gas_after"]) == (10, 20)
    assert (only(found)["version_before"], only(found)["version_after"]) == (1_000, 2_000)
    assert found.names == (f"{run_folder}@1000", str(run_folder))
    assert found.study.thresholds.percent == 2


def test_a_version_between_two_readings_that_differ_is_warned_about(run_folder):
    """Version 1500 was not read and the gas changed around it: it is not judged, and the result says so."""
    with pytest.warns(UserWarning, match="version 1,500 was not read"):
        found = compare(f"{run_folder}@1500", run_folder)
    assert only(found)["error_before"] == "not_read"
    assert compare(f"{run_folder}@2000", run_folder).warnings == ()


def test_a_folder_whose_own_name_has_an_at_is_opened_as_such(run_folder):
    """What is there goes before what it could mean."""
    named = run_folder.with_name("x@1000")
    run_folder.rename(named)
    assert only(compare(f"{named}@1000", named))["gas_before"] == 10


@pytest.mark.parametrize(
    ("version", "error", "words"),
    [
        ("999", StudyError, "no observation at or before version 999; its first version is 1,000"),
        ("2001", StudyError, "read nothing after version 2,000"),
        *(
            (text, InputError, f"a ledger version after the @.*@1000, got '{text}'")
            for text in ("x", "-1", "", "1000 ")
        ),
    ],
)
def test_a_version_of_which_a_run_knows_nothing_is_refused(run_folder, version, error, words):
    """Before its first, or after its last, where everything would pass; and what is not a version."""
    assert only(compare(run_folder, f"{run_folder}@2000"))["gas_after"] == 20
    with pytest.raises(error, match=words):
        compare(run_folder, f"{run_folder}@{version}")


def test_simulations_are_not_added_by_looking_at_an_earlier_version(tmp_path):
    """Simulations run at the head, so a side before it cannot have them: they are left out with a note."""
    folder = written_run(tmp_path, SIMULATED)
    with pytest.warns(UserWarning, match="not compared: s: simulations run at the head"):
        found = compare(f"{folder}@1000", folder)
    assert kinds(found) == {"a": "changed"}
    assert kinds(compare(folder, folder)) == {"a": "unchanged", "s": "unchanged"}
    assert kinds(compare(f"{folder}@1000", f"{folder}@2000", source="view@version")) == {"a": "changed"}


def test_a_version_that_only_simulations_have_is_refused(tmp_path):
    """The views were last read before the head, so nothing is known of them there; the end of the run has both."""
    folder = written_run(tmp_path, SIMULATED)
    with pytest.raises(StudyError, match="read nothing after version 2,000"):
        compare(folder, f"{folder}@3010")
    assert kinds(compare(folder, Run.load(folder).at(3_010))) == {"a": "unchanged", "s": "unchanged"}


@pytest.mark.filterwarnings("ignore:after .* is older")
def test_simulations_are_not_missing_from_an_earlier_version_either(tmp_path):
    """Frames of a run are compared as the run at their versions, in both orders; calls that both lack are left out."""
    run = Run.load(written_run(tmp_path, SIMULATED))
    early, end = run.at(1_000), run.at(3_010)
    for sides in ((early, end), (end, early)):
        with pytest.warns(UserWarning, match="not compared: s: simulations run at the head"):
            gate = compare(*sides).gate("200%")
        assert (gate.verdict, gate.regressions) == ("could not judge", ())
        assert [(one.label, one.why) for one in gate.not_judged] == [("s", Why.AT_THE_HEAD)]
    assert compare(early, end[end["label"] == "a"]).gate("200%").passed
    assert compare(early, run.at(2_000)).gate("200%").passed


def test_a_call_that_an_interrupted_run_has_not_read_yet_is_not_missing(run_folder, tmp_path):
    """It cannot be judged: nothing was removed."""
    (tmp_path / "other").mkdir()
    begun = RunStore(tmp_path / "other" / "x")
    begun.make_folder()
    begun.create(RunStore(run_folder).manifest())
    change_manifest(begun.path, complete=False)
    with pytest.warns(UserWarning, match="the after side is not complete"):
        gate = compare(run_folder, begun.path).gate("2%")
    assert (gate.verdict, gate.regressions, [one.label for one in gate.not_judged]) == ("could not judge", (), ["a"])


def test_a_run_that_is_not_complete_is_warned_about(run_folder):
    """Calls may be missing from it."""
    change_manifest(run_folder, complete=False)
    with pytest.warns(UserWarning, match="the after side is not complete"):
        compare(frame(row(1)), run_folder)


def register(versions):
    return {"register": {"committed": "0xcafe::registry::register", "versions": versions}}


def test_a_view_is_not_judged_above_the_last_version_at_which_it_was_read():
    """Committed transactions were read further; the schedule in between made the view dearer, which nobody has seen."""
    calls = {"size": {"view": "0xcafe::registry::size"}, **register("3000:4900")}
    run = Study(calls=calls, versions="3400:3450/10").run(progress=False)
    for before, after, unread in ((3400, 4800, 4800), (3460, 4800, 3460), (4000, run.last_version, 4000)):
        gate = compare(run.at(before), run.at(after)).gate("2000%")
        [one] = gate.not_judged
        assert (one.label, one.why, gate.judged) == ("size", Why.NOT_COMPARED, 1)
        assert f"up to version 3,450, not {unread:,}" in one.reason
    assert compare(run.at(3400), run).gate("2000%").passed


@pytest.mark.parametrize(("versions", "verdict"), [([27, 39], "could not judge"), (FindSteps("27:39"), "passed")])
def test_a_reading_is_not_compared_with_itself(versions, verdict):
    """A plan does not cover the versions that it leaves out; a search for steps does."""
    run = Study(calls={"size": "0xcafe::registry::size"}, versions=versions).run(progress=False)
    assert compare(run.at(27), run.at(33)).gate("2%").verdict == verdict
    assert compare(run.at(27), run.at(39)).gate("2%").passed
    assert compare(run.at(39), run).gate("2%").passed  # one place, as asked


def test_transactions_are_not_new_because_a_run_has_another_node():
    """Both runs have the same ones of the node that they share; a node that one of them lacks changes nothing."""
    calls = register("0:900")
    with serve(Ledger.with_history(versions=400, cache=True), port=0) as url:
        both = Study(calls=calls, nodes=["embedded", url], versions="300:310").run(progress=False)
    alone = Study(calls=calls, node="embedded", versions="300:310").run(progress=False)
    for before, after in ((alone, both), (both, alone)):
        shared = compared(before, after).calls.set_index("node").loc["embedded"]
        assert shared["kind"] == "not compared"
        assert "both sides end at version 900" in shared["not_judged"]


def test_text_fits_the_terminal(monkeypatch):
    """Sentences are wrapped, and names shortened; numbers are whole, and a file has everything."""
    calls = {
        "the price of one share of the vault": "0xfa17::vault::share_price",
        "registrations": {"committed": "0xcafe::registry::register", "versions": "2990:3600"},
    }
    run = Study(calls=calls, versions="2990:3600/60").run(progress=False)
    comparison = compare(run.at(3400), run.at(3590))
    full = repr(comparison)
    monkeypatch.setattr("sys.stdout", sys.__stdout__)
    monkeypatch.setenv("COLUMNS", "80")
    shown = repr(comparison)
    assert max(map(len, full.splitlines())) > 80
    assert max(map(len, shown.splitlines())) <= 80
    assert max(map(len, repr(comparison.gate("5%")).splitlines())) <= 80
    gas = comparison.calls.set_index("label").loc[next(iter(calls)), ["gas_before", "gas_after"]]
    [line] = [line for line in shown.splitlines() if line.startswith("  the price of")]
    assert {number(one) for one in gas} <= {*line.split()}
