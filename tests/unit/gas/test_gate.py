"""The gate: what regresses, what is waived until when, what cannot be judged and is not passed over in silence."""

from __future__ import annotations

import json
import math
import shutil
import warnings
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest

from tests.unit.gas.observed import change_manifest, frame, row
from toolkit import EntryFunction, FindSteps, SimulationRequest
from toolkit._present.text import visible
from toolkit.errors import StudyError
from toolkit.frames._columns import plain_rows
from toolkit.frames._schema import COMPARISON
from toolkit.gas._compare import compare, verdict_within
from toolkit.gas._observations import Cause
from toolkit.gas._sentences import label_text
from toolkit.gas._sides import read_side
from toolkit.gas._steps import StepChange, StepGroup
from toolkit.gas._study import Study
from toolkit.gas._verdict_sentences import MAX_CAUSES, ShownRow, Why, _rows, bounds_text, cause_lines, comparison_text
from toolkit.gas.committed._fees import FeeChange, Fees, More, Verdict
from toolkit.reports._to_html import COMPARISON_FORMATS
from toolkit.reports._to_programs import comparison_json
from toolkit.reports._verdict import verdict_markdown

TODAY = date(2026, 6, 1)
WAIVER = {"call": "a", "reason": "known", "expires": "2026-06-01"}


def gate(before, after, threshold="2%", **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        comparison = compare(frame(*before), frame(*after))
    return comparison.gate(threshold, today=TODAY, **options)


def reasons(findings):
    return [(one.why, one.figures) for one in findings]


def study_with(**keys):
    return Study(calls=[{"label": "a", "view": "0x1::m::f", **keys.pop("call", {})}], **keys)


@pytest.mark.parametrize(
    ("before", "after", "threshold", "over"),
    [
        (100, 102, "2%", None),
        (100, 103, "2%", "2 %"),
        (1_000, 1_060, 50, "50 gas units"),
        (100, 50, "0%", None),
        (0, 1, "2%", "2 %"),
        (100, 10_000, None, None),
    ],
)
def test_a_rise_over_the_limit_is_a_regression(before, after, threshold, over):
    """The limit itself is not; without a limit no rise is."""
    found = gate([row(1, before)], [row(2, after)], threshold)
    assert found.passed == (over is None)
    assert found.judged == 1
    [one] = found.findings
    assert (one.why, one.limit and str(one.limit)) == (Why.RISE if over else None, over)


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (100, 103, "from 100 to 103 gas units (+3, +3 %) is over 2 %"),
        (0, 1, "from 0 to 1 gas unit (+1) is over 2 %"),
    ],
)
def test_a_reason_is_written_from_its_figures(before, after, reason):
    """Thousands, signs and one gas unit, as in all other sentences."""
    assert gate([row(1, before)], [row(2, after)], "2%").regressions[0].reason == reason


@pytest.mark.parametrize("threshold", ["2%", "9%", None])
def test_a_success_that_becomes_a_failure_is_a_regression(threshold):
    """Whatever the limits: an error of a view, an abort of a simulation with its reason."""
    error = gate([row(1)], [row(2, error="invalid_input")], threshold)
    assert reasons(error.regressions) == [(Why.FAILS, {"code": "invalid_input"})]
    source = {"source": "simulate@now"}
    abort = gate([row(1, **source)], [row(2, success=False, vm_status="Move abort E_TAKEN", **source)], threshold)
    assert reasons(abort.regressions) == [(Why.FAILS, {"code": "Move abort E_TAKEN"})]


def test_a_failure_that_ends_is_no_regression():
    """Without a baseline nothing got worse; the result says that the call was not judged."""
    found = gate([row(1, error="x"), row(1, label="b")], [row(2, 900), row(2, label="b")])
    assert found.passed
    assert [(one.verdict, one.why) for one in found.findings if one.label == "a"] == [
        ("no baseline", Why.FAILED_BEFORE)
    ]
    assert len(found.notes) == 1


@pytest.mark.parametrize("side", ["before", "after"])
def test_no_answer_is_not_passed_over(side):
    """Nothing says that the call is as cheap as before."""
    rows = {"before": [row(1)], "after": [row(2)]}
    rows[side] = [row(1, error="http_503")]
    found = gate(rows["before"], rows["after"])
    assert (found.passed, found.verdict, found.regressions) == (False, "could not judge", ())
    assert reasons(found.not_judged) == [(Why.NO_RESPONSE, {"before": None, "after": None} | {side: "http_503"})]


def test_a_node_that_tells_no_gas_is_not_passed_over():
    """A missing figure is not a small figure."""
    found = gate([row(1)], [row(2, None)])
    assert found.verdict == "could not judge"
    assert reasons(found.not_judged) == [(Why.NO_GAS, {"before": 10, "after": None})]
    assert gate([row(1)], [row(2, None)], None).passed


def test_a_new_call_is_not_judged():
    """A call on the after side only has no baseline, and the gate says so."""
    found = gate([row(1)], [row(2), row(2, label="new")])
    assert (found.passed, found.judged) == (True, 1)
    assert [(one.verdict, one.why) for one in found.findings if one.label == "new"] == [("no baseline", Why.ADDED)]
    assert len(found.notes) == 1


@pytest.mark.fault("a call that disappeared between two runs", "the gate fails unless a waiver names the call")
def test_a_call_that_disappeared_fails_the_gate():
    """It passes if a waiver excuses it by label or pattern."""
    sides = [row(1), row(1, label="old view")], [row(2)]
    found = gate(*sides)
    assert (found.passed, found.verdict, found.judged) == (False, "failed", 2)
    assert found.regressions[0].why is Why.REMOVED
    for name in ("old view", "old *"):
        held = gate(*sides, waivers=[WAIVER | {"call": name}])
        assert (held.passed, held.judged) == (True, 1)
        assert held.waived[0].why is Why.REMOVED
    assert not gate(*sides, waivers=[WAIVER | {"call": "new *"}]).passed


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ([], [], "could not judge"),
        ([row(1)], [], "failed"),
        ([], [row(1)], "could not judge"),
        ([row(1, label="x")], [row(1, label="y")], "failed"),
    ],
)
def test_a_gate_that_checked_nothing_does_not_pass(before, after, verdict):
    """A call that disappeared is a regression, unless it is waived; without one, nothing was judged."""
    found = gate(before, after)
    assert (found.judged, found.passed, found.verdict) == (verdict == "failed", False, verdict)
    waived = gate(before, after, waivers=[WAIVER | {"call": "*"}])
    assert (waived.judged, waived.passed, waived.verdict) == (0, False, "could not judge")


def test_a_gate_without_a_judged_call_could_not_judge():
    """Calls that fail on both sides are there, but say nothing; a waiver of all of them is not a verdict either."""
    sides = [row(1, error="x"), row(1, label="b", error="x")], [row(2, error="x"), row(2, label="b")]
    found = gate(*sides)
    assert (found.verdict, found.passed, found.judged) == ("could not judge", False, 0)
    assert [one.why for one in found.not_judged] == [Why.FAILED_ON_BOTH, Why.FAILED_BEFORE]
    waived = gate(*sides, waivers=[WAIVER | {"call": "?"}])
    assert (waived.verdict, waived.not_judged, len(waived.waived)) == ("could not judge", (), 2)
    assert "every call is waived" in repr(waived)


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ([row(1, error="x")], [row(2)], Why.FAILED_BEFORE),
        ([], [row(2)], Why.ADDED),
        ([], [], Why.NOT_OBSERVED),
    ],
)
def test_each_call_that_the_study_names_is_judged_or_waived(before, after, why):
    """Without a study it is a note: nobody has asked for its verdict. A source that is not compared is not asked for."""
    sides = [*before, row(1, label="b")], [*after, row(2, label="b")]
    found = gate(*sides, study=study_with())
    assert (found.verdict, found.judged) == ("could not judge", 1)
    assert [(one.label, one.why) for one in found.not_judged] == [("a", why)]
    assert gate(*sides, study=study_with(waivers=[WAIVER])).passed
    assert gate(*sides).passed
    simulated = Study(calls=[{"label": "a", "simulate": "0x1::m::f", "sender": "0x1"}])
    named = compare(frame(*sides[0]), frame(*sides[1]), source="view@version").gate("2%", study=simulated)
    assert named.passed


def test_the_study_of_the_after_run_names_its_calls(run):
    """Also in Python, where its limits hold only if they are given."""
    at = int(run.steps["version_after"].max())
    comparison = between(run, at, at)
    assert comparison.gate("2%").passed
    lost = replace(comparison, calls=comparison.calls[comparison.calls["label"] != "size"])
    assert [one.label for one in lost.gate("2%").not_judged] == ["size"]


LOCAL = "http://127.0.0.1:8080/v1"


@pytest.mark.fault(
    "a gate whose sides have different chains, nodes or gas models", "the gate cannot judge: exit code 6"
)
@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        ({"chain_id": 1}, {"chain_id": 2}, "the two sides come from different chains (1; 2), which may explain"),
        ({"node": "mainnet"}, {"node": LOCAL}, "different nodes (https://api.mainnet.aptoslabs.com/v1; this machine)"),
        (
            {"node": "http://a.test/v1"},
            {"node": "http://b.test/v1"},
            "different nodes (http://a.test/v1; http://b",
        ),
        ({}, {"model": True}, "one side is from the embedded node, whose gas is a model"),
        ({"node": "mainnet"}, {"node": "https://api.mainnet.aptoslabs.com/v1"}, None),
        ({"node": "embedded"}, {"node": "http://localhost:41481/v1"}, None),
        ({"node": LOCAL}, {"node": "http://[::1]:9/v1"}, None),
    ],
)
def test_sides_of_different_chains_nodes_or_gas_models_are_not_judged(one, other, reason):
    """Whether gas rose or not. Names on this machine do not identify a node: its ledger begins again at a free port."""
    for gas in (10, 99):
        found = gate([row(1, **one)], [row(2, gas, **other)])
        if reason is None:
            assert found.verdict == ("passed" if gas == 10 else "failed")
        else:
            assert (found.verdict, found.judged) == ("could not judge", 0)
            assert reason in found.not_judged[0].reason


def test_a_node_of_one_side_only_is_not_judged():
    """Its calls have not disappeared: the after side has not read them."""
    other = {"node": "http://other.test/v1"}
    found = gate([row(1), row(1, **other)], [row(2)])
    assert (found.verdict, found.judged, found.regressions) == ("could not judge", 1, ())
    assert "different nodes (http://other.test/v1; none)" in found.not_judged[0].reason


def test_a_run_that_is_not_complete_is_not_judged(run, tmp_path):
    """Its last observation of a call may be far from the end of its plan."""
    shutil.copytree(run.path, tmp_path / "x")
    change_manifest(tmp_path / "x", complete=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = compare(run, tmp_path / "x").gate("2%")
    assert (found.verdict, found.judged) == ("could not judge", 0)
    assert found.not_judged[0].reason.startswith("the run on the after side is not complete")


def test_a_ledger_that_began_again_is_judged_and_named(run, tmp_path):
    """The same name and chain id, another transaction at the same version: the usual way to try an upgrade locally."""
    shutil.copytree(run.path, tmp_path / "x")
    nodes = [one | {"anchor": one["anchor"] | {"transaction_hash": "0x1"}} for one in run.manifest["nodes"]]
    change_manifest(tmp_path / "x", nodes=nodes)
    with pytest.warns(UserWarning, match="embedded served a different ledger on each side"):
        assert compare(run, tmp_path / "x").gate("2%").passed


def test_the_age_of_a_run_is_said(run, tmp_path):
    """A gate on what was read up to the head days ago says so; fixed versions have no age."""
    shutil.copytree(run.path, tmp_path / "x")
    now = datetime.now(UTC)
    change_manifest(tmp_path / "x", finished_at=(now - timedelta(days=3, hours=1)).isoformat())
    assert compare(run, run).gate("2%").notes == ()
    (note,) = compare(run, tmp_path / "x").gate("2%").notes
    assert note.startswith("run complete to version 4,999, read 20")
    assert note.endswith("3 days ago")
    change_manifest(tmp_path / "x", checked_at=now.isoformat())  # the head was seen to be the same
    assert compare(run, tmp_path / "x").gate("2%").notes == ()


@pytest.mark.fault("a gate over committed transactions without steps", "the gate cannot judge: exit code 6")
@pytest.mark.parametrize("others", [([], []), ([row(1, label="b")], [row(2, label="b")])], ids=["alone", "among views"])
def test_a_gate_over_committed_transactions_could_not_judge(others):
    """It never passes in silence, whether they cost the same or not; a waiver of the call or of the source excuses."""
    for gas in (10, 20):
        before, after = row(1, 10, source="committed"), row(2, gas, source="committed")
        sides = [before, *others[0]], [after, *others[1]]
        found = gate(*sides)
        assert (found.passed, found.verdict, found.judged) == (False, "could not judge", len(others[0]))
        assert found.not_judged[0].why in {Why.NO_FEES, Why.NOT_COMPARED}
        assert "gate COULD NOT JUDGE 1 call; " in repr(found)
        for waiver in (WAIVER, WAIVER | {"call": None, "source": "committed"}):
            held = gate(*sides, waivers=[waiver])
            assert held.verdict == ("passed" if others[0] else "could not judge")  # alone there is nothing to pass
            assert held.waived[0].waiver.reason == "known"
        other = gate(*sides, waivers=[WAIVER | {"call": None, "source": "simulate@now"}])
        assert other.verdict == "could not judge"


def test_a_regression_outweighs_what_could_not_be_judged():
    """Both are reported, and the verdict is the one that is certain."""
    rows = [row(1, source="committed"), row(1, 100, label="b")], [row(2, source="committed"), row(2, 200, label="b")]
    found = gate(*rows)
    assert (found.verdict, len(found.regressions), len(found.not_judged)) == ("failed", 1, 1)
    waived = gate(*rows, waivers=[WAIVER | {"call": None, "source": "view@version"}])
    assert waived.verdict == "failed"  # a waiver of a source says that it need not be judged, not that it may rise


def test_a_call_may_have_limits_of_its_own():
    """They stand in place of the general one, looser or tighter."""
    own = study_with(call={"thresholds": {"percent": 50}}, thresholds={"percent": 2})
    before, after = [row(1, 100), row(1, 100, label="b")], [row(2, 140), row(2, 101, label="b")]
    assert gate(before, after, None, study=own).passed
    assert not gate(before, after, "0.5%", study=own).passed
    assert [one.label for one in gate(before, after, "0.5%", study=own).regressions] == ["b"]


def test_a_waiver_excuses_until_its_day_has_passed():
    """The last day is included; afterwards the gate fails again and says why."""
    before, after = [row(1, 100)], [row(2, 200)]
    held = gate(before, after, waivers=[WAIVER])
    assert held.passed
    assert held.waived[0].waiver.reason == "known"
    over = gate(before, after, waivers=[WAIVER | {"expires": "2026-05-31"}])
    assert not over.passed
    assert over.notes == ("the waiver for 'a' expired on 2026-05-31 and no longer applies: known",)


def test_a_waiver_may_be_a_pattern():
    """It excuses each call with a matching label; a waiver of the label itself goes first; one without effect is named."""
    before = [row(1, 100, label="balance of 0x1"), row(1, 100, label="balance of 0x2"), row(1, 100, label="size")]
    after = [row(2, 200, label="balance of 0x1"), row(2, 200, label="balance of 0x2"), row(2, 200, label="size")]
    wide, own = WAIVER | {"call": "balance of *"}, WAIVER | {"call": "balance of 0x2", "reason": "its own"}
    found = gate(before, after, waivers=[wide, own])
    assert [one.label for one in found.regressions] == ["size"]
    assert {one.label: one.waiver.reason for one in found.waived} == {
        "balance of 0x1": "known",
        "balance of 0x2": "its own",
    }
    none = gate(before, after, waivers=[WAIVER | {"call": "Balance of *"}])
    assert len(none.regressions) == 3
    assert none.notes == ("waivers for 'Balance of *' match no call of this comparison",)


def test_a_label_with_the_characters_of_a_pattern_is_itself():
    """Grids write labels such as ``depth [0x1; 3]``, and one of them is named like any other."""
    label, other = "depth [0x1; *]", "depth 0"
    before, after = [row(1, label=label), row(1, label=other)], [row(2, 900, label=label), row(2, 900, label=other)]
    assert gate(before[:1], after[:1], waivers=[WAIVER | {"call": label}]).passed
    found = gate(before, after, waivers=[WAIVER | {"call": label}])
    assert ([one.label for one in found.waived], [one.label for one in found.regressions]) == ([label], [other])


def test_a_pattern_of_a_study_that_matches_no_call_is_refused():
    """Like a label that is misspelt: it would excuse nothing."""
    with pytest.raises(StudyError, match=r"waiver 1 \('b\*'\): it matches no call of the study"):
        study_with(waivers=[WAIVER | {"call": "b*"}])
    assert study_with(waivers=[WAIVER | {"call": "?"}]).waivers[0].call == "?"


# runs ---------------------------------------------------------------------------------------------------------

NAMES = {"size": "0xcafe::registry::size", "depth": "0xb00c::order_book::depth", "price": "0xfa17::vault::share_price"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run three views over the whole history: their gas moves by every cause, alone and together."""
    calls = {label: {"view": function} for label, function in NAMES.items()}
    return Study(calls=calls, versions=FindSteps("0:-1")).run(tmp_path_factory.mktemp("run") / "x", progress=False)


def between(run, first, last):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compare(f"{run.path}@{first}", f"{run.path}@{last}")


def test_waivers_of_the_study_count_unless_others_are_given():
    """What is given goes first."""
    study = study_with(waivers=[WAIVER])
    before, after = [row(1, 100)], [row(2, 200)]
    assert gate(before, after, study=study).passed
    assert not gate(before, after, study=study, waivers=[]).passed


def test_a_waiver_for_nothing_is_told():
    """A misspelt label excuses nobody."""
    found = gate([row(1)], [row(2)], waivers=[WAIVER | {"call": "typo"}])
    assert found.notes == ("waivers for 'typo' match no call of this comparison",)


def test_regressions_of_several_nodes_are_told_apart():
    """A call that got dearer on one of two nodes regresses there."""
    other = {"node": "http://other.test/v1"}
    found = gate([row(1, 10), row(1, 10, **other)], [row(2, 10), row(2, 20, **other)])
    assert [one.node for one in found.regressions] == ["http://other.test/v1"]
    assert found.judged == 2


def test_each_call_has_a_finding():
    """The largest rise first, with what they cost on both sides; a reason only if there is one to give."""
    found = gate([row(1, 10), row(1, 10, label="b"), row(1, label="c")], [row(2, 10), row(2, 20, label="b")])
    assert [(one.label, one.verdict, one.gas_before, one.gas_after) for one in found.findings] == [
        ("b", "failed", 10, 20),
        ("a", "passed", 10, 10),
        ("c", "missing", 10, None),
    ]
    assert [bool(one.reason) for one in found.findings] == [True, False, True]


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (2.04, 3.06, "+2.04 to +3.06"),
        (2.0, math.inf, "at least +2\u202f%"),
        (2.0, None, "at least +2\u202f%"),
        (5.0, 5.0, "+5\u202f%"),
        (-0.123, 0.0012, "−0.12 to 0\u202f%"),
        (-97.99, 7_472.8, "−98 to +7,473\u202f%"),
        (898.1, 899.4, "×10"),
    ],
)
def test_an_upper_bound_that_says_nothing_is_left_out(low, high, text):
    """The mean of a few calls with a long tail has no useful upper bound."""
    assert bounds_text(low, high).startswith(text)
    assert bounds_text(None, high) == bounds_text(-math.inf, high) == ""


# what is written ----------------------------------------------------------------------------------------------


@pytest.fixture
def written():
    split = {"execution_gas_units": 5, "io_gas_units": 3, "storage_fee_octas": 100}
    before = [
        row(1, 100, label="dearer", **split),
        row(1, 100, label="cheaper"),
        row(1, label="breaks"),
        row(1, label="same"),
        row(1, label="gone"),
        row(1, label="lost"),
    ]
    after = [
        row(2, 150, label="dearer", **(split | {"io_gas_units": 53})),
        row(2, 50, label="cheaper"),
        row(2, label="breaks", error="invalid_input"),
        row(2, label="same", value_digest="x"),
        row(2, label="new"),
        row(2, label="lost", error="unreachable"),
    ]
    comparison = compare(frame(*before), frame(*after))
    return comparison, comparison.gate("2%", waivers=[WAIVER | {"call": "dearer"}], today=TODAY)


def test_a_gate_shows_itself_in_words(written):
    """At a prompt: the verdict, the rules, the reasons."""
    lines = repr(written[1]).splitlines()
    assert lines[:2] == [
        "gate FAILED: 2 regressions; 5 calls judged; 1 without a baseline; 1 waived",
        "rules: a rise over 2 % or a new failure is a regression",
    ]


def test_the_text_opens_with_the_verdict(written):
    """Then what regressed, what is waived, and the table, the worst first."""
    lines = comparison_text(*written).splitlines()
    assert lines[1] == "gate FAILED: 2 regressions; 5 calls judged; 1 without a baseline; 1 waived"
    assert "regression: breaks: succeeded before and now fails: invalid_input" in lines
    assert any(line.startswith("not judged: lost: no response on the after side: ") for line in lines)
    assert any(line.startswith('waived: dearer: "known" until 2026-06-01: from 100 to 150 gas units') for line in lines)
    assert "3 changed, 1 not compared, 1 added, 1 removed, 1 unchanged" in lines
    table = [line.split()[0] for line in lines if line.startswith("  ")]
    assert table[1:] == ["breaks", "dearer", "io,", "gone", "cheaper", "lost"]
    assert lines[-2:] == ["added: new", "unchanged: same"]


def test_a_new_failure_is_no_saving():
    """The gas that a failure used is shown, without a difference, a share or parts."""
    parts = {"io_gas_units": 3}
    found = compare(frame(row(1, 73, **parts)), frame(row(2, 29, success=False, vm_status="x", io_gas_units=1)))
    assert found.calls[["change", "change_percent"]].isna().all(axis=None)
    [shown] = found.shown(label_text).rows
    assert shown.cells[1:5] == ("73", "29 (fails)", "", "")


def test_only_calls_are_listed_as_unchanged():
    """Not the parts of their gas; and a change of fees is the difference of what is shown."""
    calls = ("a", "committed", "n"), ("b", "view@version", "n")
    rows = [ShownRow(call, (call[0], "1", "1", "", "", "")) for call in calls]
    rows.insert(1, ShownRow(calls[0], ("fee", "1", "2", "", "", ""), is_part=True))
    shown = replace(compare(frame(row(1)), frame(row(2))).shown(label_text), unchanged=tuple(rows))
    assert shown.all_lines[-1] == "unchanged: a, b"
    named = [rows[0]._replace(is_named=True), *rows[1:]]
    assert replace(shown, unchanged=tuple(named)).all_lines[-1] == "unchanged: b"


def test_a_gate_that_passes_names_what_it_judged(paid, tmp_path):
    """A committed call whose mean is uncertain has a row; of one with equal means, a line says what was compared."""
    found = between(paid, 2_000, 3_400)
    judged = found.gate("5%")
    assert judged.passed
    assert [row.is_uncertain for row in found.shown(label_text, judged).rows if not row.is_part] == [True]
    calls = {"given": {"committed": "0xcafe::registry::transfer", "versions": "0:3400"}}
    same = between(Study(calls=calls, versions="0:3400").run(tmp_path / "run", progress=False), 2_000, 3_400)
    one, two = same.calls.loc[0, ["count_before", "count_after"]]
    judged = same.gate("5%")
    assert judged.passed
    assert not same.shown(label_text, judged).rows
    for form in ("text", "markdown"):
        last = COMPARISON_FORMATS[form](same, judged).splitlines()[-1]
        assert "given" in last
        assert last.endswith(f"; {one} and {two} transactions")


def test_the_note_on_parts_needs_a_part(paid):
    """The row of the fee does not count: without a row that names a part, the note would not explain anything."""
    shown = between(paid, 1_000, 3_000).shown(label_text)
    assert [str(row.part) for row in shown.rows if row.part] == ["storage"]
    notes = shown.table_notes  # on means, parts and versions
    assert replace(shown, rows=shown.rows[:2]).table_notes == [notes[0], notes[2]]
    assert replace(shown, head=shown.head[:-1]).table_notes == notes[:2]
    assert replace(shown, rows=[]).table_notes == []


def test_simulations_at_the_head_do_not_move_the_end_of_a_side():
    """A side ends where the study does, unless it has nothing else."""
    simulated = row(4_999, label="s", source="simulate@now")
    assert read_side(frame(row(3_300), row(3_700), simulated)).version == 3_700
    assert read_side(frame(simulated)).version == 4_999


def test_causes_of_regressions_come_first():
    """With many steps, it lists those that matter for a failed gate; the page has all."""
    steps = tuple(
        StepGroup(at - 1, at, True, Cause.STATE, "", None, (StepChange(label, "view@version", 1, 10, gas),))
        for at, label, gas in [(number, "same", 1_000) for number in range(1, 9)] + [(20, "rises", 11)]
    )
    comparison = replace(compare(frame(row(1, 100, label="rises")), frame(row(20, 150, label="rises"))), steps=steps)
    shown = comparison.shown(label_text, comparison.gate("2%"))
    assert cause_lines(shown, label_text)[0].startswith("rises: ")
    assert (len(cause_lines(shown, label_text)), len(cause_lines(shown, label_text, None))) == (
        MAX_CAUSES + 1,
        len(steps),
    )


def test_the_markdown_is_one_table(written):
    """Each row has the columns of the head."""
    text = verdict_markdown(*written)
    assert text.startswith("**FAILED**")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in rows} == {8}
    dearer = '`dearer` | waived: "known" until 2026-06-01 | 100 | 150 | +50 | +50\u202f%'
    assert any(dearer in line for line in rows)


def test_the_json_holds_every_call_and_the_verdict(written):
    """With the limits and each regression's reason."""
    told = json.loads(comparison_json(*written))
    assert (told["format"], told["gate"]["passed"], told["gate"]["judged"]) == (1, False, 5)
    assert told["gate"]["verdict"] == "failed"
    assert {call["label"]: call["kind"] for call in told["calls"]} == {
        "breaks": "changed",
        "cheaper": "changed",
        "dearer": "changed",
        "gone": "removed",
        "lost": "not compared",
        "new": "added",
        "same": "unchanged",
    }
    assert {one["label"] for one in told["gate"]["regressions"]} == {"breaks", "gone"}
    assert [(one["label"], one["waiver"]) for one in told["gate"]["not_judged"]] == [("lost", None)]
    assert told["gate"]["waived"][0]["waiver"] == {"call": "dearer", "reason": "known", "expires": "2026-06-01"}


def test_integers_beyond_what_readers_hold_are_text_in_json():
    """2^53 and more."""
    told = json.loads(comparison_json(compare(frame(row(1)), frame(row(2**60 + 1)))))
    assert told["calls"][0]["version_after"] == str(2**60 + 1)


HOSTILE = "<script>alert(1)</script>|`x`\x1b[31m\u202e\n# head"


@pytest.mark.parametrize("form", COMPARISON_FORMATS)
def test_hostile_text_is_harmless_everywhere(form):
    """Labels, error codes, VM status, reasons of waivers, names of sides, nodes."""
    before = [row(1, 10, label=HOSTILE), row(1, 10, label="b", node=HOSTILE)]
    after = [
        row(2, label=HOSTILE, error=HOSTILE, node_build=HOSTILE),
        row(2, 90, label="b", node=HOSTILE, vm_status=HOSTILE, success=False),
    ]
    with pytest.warns(UserWarning, match="node builds"):
        comparison = compare(frame(*before), frame(*after))
    waiver = {"call": HOSTILE, "reason": HOSTILE, "expires": "2026-06-01"}
    for rules in ([], [waiver]):
        text = COMPARISON_FORMATS[form](comparison, comparison.gate("2%", waivers=rules, today=TODAY))
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "\n# head" not in text
        if form == "markdown":
            assert "|`x`" not in text
            assert {line.count("|") for line in text.splitlines() if line.startswith("|")} == {8}
    assert "<script>" not in comparison._repr_html_()
    assert "\x1b" not in repr(comparison)


def registrations(folder, versions="0:-1"):
    calls = {"registrations": {"committed": "0xcafe::registry::register", "versions": versions}}
    return Study(calls=calls, versions="0:-1", thresholds="5%").run(folder, progress=False)


@pytest.fixture(scope="module")
def paid(tmp_path_factory):
    return registrations(tmp_path_factory.mktemp("paid") / "x")


def test_means_are_not_rounded_before_they_are_compared(paid):
    """In whole gas units, 0.39 more of 439.25 would be 1 of 439, 0.228 %; and gas and fee rose by the same share."""
    found = between(paid, 1_000, 3_000)
    shown = found.shown(label_text)
    assert shown.rows[0].cells[1:5] == ("439.25", "439.64", "+0.39", "+0.0892\u202f%")
    assert shown.rows[1].cells[4].startswith("+0.0892\u202f% (")
    assert [round(percent, 3) for percent in found.calls["change_percent"]] == [0.089]
    assert len(shown.table_notes) == 3
    for form in ("text", "markdown", "html"):
        text = COMPARISON_FORMATS[form](found, None).lower()
        assert [text.count(note) for note in shown.table_notes] == [1, 1, 1]
    table = [line for line in comparison_text(found).splitlines() if line.startswith("  ")]
    indents = [len(line) - len(line.lstrip()) for line in table]
    assert indents == [2, *(4 if row.is_part else 2 for row in shown.rows)]
    assert [row.is_part for row in shown.rows] == [False, True, True]


def test_a_table_of_80_columns_has_every_figure(paid):
    """Versions are left out, and what a row is about and the interval of its fee have lines of their own."""
    found = between(paid, 1_000, 3_000)
    assert found.calls["stratum"].tolist() == ["all that succeeded"]
    text = comparison_text(found, width=80).splitlines()
    lines = text[next(place for place, line in enumerate(text) if line.startswith("  call")) :][:6]
    one, two = found.calls.loc[0, ["count_before", "count_after"]]
    assert max(map(len, lines)) <= 80
    assert not any("…" in line for line in lines)
    assert lines[0].split()[-1] == "relative"
    assert lines[1].split() == ["registrations", "439.25", "439.64", "+0.39", "+0.0892", "%"]
    assert lines[2].strip() == f"committed, mean of {one} and {two}"
    assert [line.split()[0] for line in lines[3:6]] == ["fee,", "interval", "storage,"]
    wide = comparison_text(found, width=140)
    assert "versions" in wide
    assert "interval" not in wide


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A run whose transfers store little or much: their mean moves with their mix, and with the gas schedule."""
    functions = {"registrations": "0xcafe::registry::register", "transfers": "0x1::aptos_account::transfer"}
    calls = {name: {"committed": function, "versions": "3300:3700"} for name, function in functions.items()}
    return Study(calls=calls, versions="3300:3700").run(tmp_path_factory.mktemp("mixed") / "x", progress=False)


def test_lines_below_rows_are_whole_beside_wide_numbers(mixed):
    """A first column without room cuts neither what the means are of nor the interval of the fee."""
    found = compare(mixed.at(3_400), mixed.at(3_700))
    lines = comparison_text(found, width=80).splitlines()
    assert max(map(len, lines)) <= 80
    assert not any("…" in line for line in lines)
    below = [text for row in found.shown(label_text).rows for text in row.below]
    assert len(below) > len(found.calls)
    assert {*below} <= {line.strip() for line in lines}


@pytest.mark.parametrize(("last", "rises", "cause"), [(3_700, True, "schedule"), (3_600, False, None)])
def test_an_uncertain_mean_has_the_cause_of_steps_in_its_direction(mixed, last, rises, cause):
    """The schedule at version 3,502 made transfers dearer, so that it did not make their mean fall."""
    found = compare(mixed.at(3_400), mixed.at(last))
    [row] = plain_rows(found.uncertain)
    assert (row["label"], row["change"] > 0, row["cause"]) == ("transfers", rises, cause)
    assert ("transfers" in {change.label for step in found.steps for change in step.changes}) == rises


def test_means_and_counts_are_of_the_transactions_that_succeeded(paid):
    """The frame and JSON have them unrounded, as the text shows them: a row that changed has a change."""
    found = between(paid, 1_000, 3_000)
    good = paid.observations[paid.observations["success"]]
    # The configuration changed at version 1,752.
    sides = good[good["ledger_version"] <= 1_000], good[good["ledger_version"].between(1_752, 3_000)]
    gas, counts = [side["gas_used"].mean() for side in sides], [len(side) for side in sides]
    [told] = json.loads(comparison_json(found))["calls"]
    for one in (found.calls.iloc[0], told):
        assert [one["gas_before"], one["gas_after"]] == pytest.approx(gas)
        assert one["change"] == pytest.approx(gas[1] - gas[0])
        assert one["change_percent"] == pytest.approx(100 * one["change"] / one["gas_before"])
        assert [one["count_before"], one["count_after"]] == counts
    assert one["failing_after"] > 0
    exact = compare(frame(row(1, 10)), frame(row(2, 12))).calls
    assert exact.dtypes.equals(found.calls.dtypes)


def test_what_waiting_cannot_add_is_not_waited_for(paid, tmp_path):
    """A requested version and a run compared with itself stay as they are, and so does the beginning of a run."""
    [one] = between(paid, 3_490, 3_500).gate("5%").not_judged
    assert one.reason.endswith(f"(291 before and 3 after); {More.LATER}")
    few = between(paid, 3_490, 3_500)
    [cells] = [row.cells for row in few.shown(label_text).rows]
    assert cells[1:3] == ("291 succeeded", "3 succeeded")
    assert few.calls[["gas_before", "gas_after", *few.calls.filter(like="fee_")]].isna().all(axis=None)
    [same] = compare(paid, paid).gate("5%").not_judged
    assert same.reason == f"both sides end at version 4,999, so they have the same transactions; {More.LATER}"
    [few] = verdict_within(registrations(tmp_path / "few", "3480:4200"))[1].not_judged
    assert few.reason.endswith(More.EARLIER)
    before, after = registrations(tmp_path / "old", "3480:3500"), registrations(tmp_path / "new", "3503:3510")
    [fees] = compare(before, after).fees.values()
    assert (fees.before.more, fees.after.more) == (More.OTHER, More.WAIT)


def test_a_call_that_was_first_read_after_both_sides_says_where(tmp_path):
    """Running the study again would not change that; a call that no run has read needs a run."""
    paid = {"committed": "0xcafe::registry::register", "versions": "0:-1"}
    calls = {"size": "0xcafe::registry::size", "paid": paid}
    study = Study(calls=calls, versions=[4_000, 4_200], thresholds="2%")
    run = study.run(tmp_path / "run", progress=False)
    for sides in ((f"{run.path}@3000", f"{run.path}@3300"), (run.at(3_000), run.at(3_300))):
        [found] = compare(*sides).gate(study=study).not_judged
        assert (found.label, found.why, found.figures) == ("size", Why.READ_LATER, {"version": 4_000})
    more = Study(calls=calls | {"price": "0xfa17::vault::share_price"}, versions=[4_000, 4_200], thresholds="2%")
    [found] = compare(f"{run.path}@4100", run).gate(study=more).not_judged
    assert (found.label, found.why) == ("price", Why.NOT_OBSERVED)


def test_a_run_without_a_change_says_what_to_do(tmp_path):
    """A run at one version does not have two sides."""
    [one] = verdict_within(registrations(tmp_path / "calm", "3600:4200"))[1].not_judged
    assert one.reason.endswith("; read a range with a change, or waive the source committed")


def test_a_call_that_regressed_is_not_counted_as_unchanged():
    """Its row shows that it moved: a median may fail a gate although the mean moved within chance."""
    found = compare(frame(row(1)), frame(row(2)))
    judged = found.gate("2%")
    failed = [replace(one, verdict=Verdict.FAILED, why=Why.GONE, figures={"problem": "x"}) for one in judged.findings]
    assert found.shown(label_text, judged).counts == "1 unchanged"
    shown = found.shown(label_text, replace(judged, findings=tuple(failed)))
    assert (shown.counts, len(shown.rows), shown.unchanged) == ("1 changed", 1, ())


def test_a_waiver_is_part_of_the_headline():
    """What passed is counted, not what did not regress, and the line of the terminal says it too."""
    sides = [row(1), row(1, label="b")], [row(2), row(2, 90, label="b")]
    held = gate(*sides, waivers=[WAIVER | {"call": "b"}])
    comparison = compare(frame(*sides[0]), frame(*sides[1]))
    assert repr(held).splitlines()[0] == "gate passed; 2 calls judged; 1 waived"
    assert verdict_markdown(comparison, held).startswith("**PASSED**: 1 of 2 calls passed; 1 waived.")


def test_a_call_that_was_read_once_has_nothing_to_be_compared_with():
    """In the verdict of a report, which compares the beginning of a run with its end; one version has no verdict."""
    transfer = EntryFunction("0x1::aptos_account::transfer", ["0xb0b", 1])
    calls = {"a": "0xcafe::registry::size", "s": SimulationRequest(transfer, sender="0xa11ce")}
    run = Study(calls=calls, versions=[3_400, 3_500], thresholds="2%").run(progress=False)
    found, gate = verdict_within(run)
    assert (gate.verdict, [one.why for one in gate.not_judged]) == ("could not judge", [Why.READ_ONCE])
    assert found.counts["added"] == 0
    assert verdict_within(Study(calls=calls, versions=[3_500], thresholds="2%").run(progress=False)) is None


@pytest.mark.parametrize(
    ("versions", "why", "gas"),
    [
        ([0, 3, 3_501, 3_502], Why.RISE, 3),
        ([0, 2, 3], Why.SUCCEEDED_AT_THE_END, None),
        ([0, 2], Why.FAILED_ON_BOTH, None),
    ],
)
def test_the_beginning_of_a_run_is_the_first_success(versions, why, gas):
    """A view that was published later is compared neither with the first version nor with itself at the end."""
    study = Study(calls={"a": "0xcafe::registry::size"}, versions=versions, thresholds="2%")
    _, gate = verdict_within(study.run(progress=False))
    [found] = gate.findings
    assert (found.why, found.gas_before) == (why, gas)


def test_a_waived_call_has_no_advice():
    """It is what was advised."""
    found = gate([], [row(2, label="new")], waivers=[WAIVER | {"call": "new"}]).findings[0]
    assert (found.why, found.waiver.call) == (Why.ADDED, "new")
    assert found.reason == "not in the baseline"


def test_a_baseline_that_is_newer_is_noted():
    """The sides may be swapped; each is what was read at or before the requested version."""
    run = Study(calls={"a": "0xcafe::registry::size"}, versions=[3_400, 3_500], thresholds="2%").run(progress=False)
    assert compare(f"{run.path}@3400", run).notes == ()
    with pytest.warns(UserWarning, match="is older than before"):
        swapped = compare(run, f"{run.path}@3450")
    assert swapped.notes == ("after (3,400) is older than before (3,500)",)
    assert "3,400 (the last read at or before 3,450)" in swapped.about[1]


def test_a_function_names_its_call_however_the_study_was_written():
    """A waiver may name the function: as text, with or without the zeros that a request has."""
    study = Study(calls={"a": "0xcafe::registry::size"}, versions=[3501, 3502], thresholds="2%")
    run = study.run(progress=False)
    waiver = {"call": "0xcafe::registry::size", "reason": "reviewed", "expires": "2999-01-01"}
    gate = compare(f"{run.path}@3501", f"{run.path}@3502").gate("2%", waivers=[waiver])
    assert [one.label for one in gate.waived] == ["a"]


def test_how_much_a_mean_rose_is_not_computed_from_rounded_means():
    """From 10.3 to 102.2 gas units is ×9.9: 10 and 102 are shown, with the factor of the fee."""
    row = dict.fromkeys(COMPARISON.names) | {"label": "pay", "source": "committed", "node": "n", "kind": "changed"}
    row |= {"gas_before": 10, "gas_after": 102, "change": 92, "success_before": True, "success_after": True}
    row |= {"fee_before": 1033.3, "fee_after": 10_225.0, "fee_price": 100, "fee_change_low": 700.0}
    relative = [shown.cells[4] for shown in _rows(row | {"fee_change_high": 1_100.0}, None, visible, several=False)]
    assert relative == ["×9.9", "×9.9 (×8 to ×12)"]
    equal = _rows(row | {"fee_change_low": 890.0, "fee_change_high": 890.0}, None, visible, several=False)
    assert [shown.cells[4] for shown in equal] == ["×9.9", "×9.9"]


@pytest.mark.parametrize(
    ("gas", "octas", "moved"),
    [(31, 3_100, False), (31.001, 3_100.1, False), (31, 3_101, True), (31.01, 3_100, True)],
)
def test_a_mean_that_reads_the_same_has_not_moved(gas, octas, moved):
    """Of means on both sides: a snapshot stores fees alone."""
    one, two = (Fees(np.full(20, fee), 0, {"gas_used": mean}) for fee, mean in ((3_100.0, 31.0), (octas, gas)))
    assert FeeChange.of(one, two, 100).moved is moved
    assert FeeChange.of(replace(one, means={}), two, 100).moved is (octas == 3_101)
