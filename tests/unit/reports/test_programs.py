"""Verdicts for build systems: annotations and JUnit XML, of which no text of a label or of the chain can get out."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import date
from itertools import pairwise

import pytest

import toolkit
from tests.unit.gas.observed import frame, row
from toolkit._present.text import PERCENT, visible
from toolkit.gas._compare import compare
from toolkit.gas._observations import Cause
from toolkit.gas._steps import StepChange, StepGroup, step_groups
from toolkit.gas._verdict_sentences import cause_lines
from toolkit.reports._to_programs import comparison_annotations, comparison_junit
from toolkit.reports._verdict import causes_of, verdict_content, verdict_html, verdict_markdown

TODAY = date(2026, 6, 1)
WAIVER = {"call": "waived", "reason": "known", "expires": "2026-06-01"}
HOSTILE = "::error::x\r\n::stop-commands::y ##[group] 100%,a:b <&>\"'\x00\x1b[31m\ufffe\u202e]]>"
COMMAND = re.compile(r"::(error|warning|notice)( [^:\n]*)?::[^\n]*")


@pytest.fixture
def judged():
    """Compare calls that rise, rise by a waiver, fail, disappear, do not answer, stay the same, and are new."""
    before = [row(1, 100, label=label) for label in ("rises", "waived", "fails", "gone", "silent", "same", HOSTILE)]
    after = [
        row(2, 150, label="rises"),
        row(2, 150, label="waived"),
        row(2, label="fails", error=HOSTILE),
        row(2, label="silent", error="http_503"),
        row(2, 100, label="same"),
        row(2, 900, label=HOSTILE),
        row(2, 1, label="new"),
    ]
    comparison = compare(frame(*before), frame(*after))
    return comparison, comparison.gate("2%", waivers=[WAIVER, WAIVER | {"call": "gone"}], today=TODAY)


def test_annotations_are_commands_and_one_verdict(judged):
    """Errors of what fails the gate, warnings of what is excused, notices of the rest."""
    lines = comparison_annotations(*judged).splitlines()
    assert lines[-1] == "gate FAILED: 3 regressions; 5 calls judged; 1 without a baseline; 2 waived"
    kinds = [COMMAND.fullmatch(line)[1] for line in lines[:-1]]
    assert (kinds.count("error"), kinds.count("warning")) == (4, 2)
    assert any("rises: from 100 to 150 gas units (+50, +50 %25) is over 2 %25" in line for line in lines)
    assert any(line.startswith("::error title=Gas not judged::silent: no response") for line in lines)
    assert [line.partition("::")[2].split("::")[0] for line in lines[:-1] if "waived" in line] == [
        "warning title=Excused"
    ] * 2


def test_a_verdict_has_each_call_once(judged):
    """By verdict, the largest rise first, and then the others that changed; the lead counts them all."""
    comparison, gate = judged
    shown = verdict_content(comparison, gate)
    found = {title: [rows[0].call[0] for _, rows in calls] for title, _, calls in shown["sections"]}
    assert found == {
        "Regressed": ["fails", HOSTILE, "rises"],
        "Not judged": ["silent"],
        "Waived": ["waived", "gone"],
    }
    for count in ("3 of 8 calls regressed (+50 % to ×9)", "silent</bdi> not judged", "2 waived"):
        assert count.replace(" %", PERCENT) in shown["lead"]
    page = verdict_html(comparison, gate)
    assert page.count("no response on the after side") == 1
    assert "is over" not in page
    assert f"5 calls, on {TODAY}" in page


def test_a_cause_of_several_calls_is_listed_once(tmp_path):
    """Both sides are named with their version, and each step has the calls that it moved."""
    calls = {"size": "0xcafe::registry::size", "price": "0xfa17::vault::share_price"}
    run = toolkit.Study(calls=calls, versions=[2251, 2252, 3501, 3502]).run(tmp_path / "run", progress=False)
    comparison = toolkit.compare(run.at(2251), run.at(3502))
    gate = comparison.gate("2%")
    places = [(step.version_after, {change.label for change in step.changes}) for step in comparison.steps]
    assert places == [(2252, {"price"}), (3502, {"price", "size"})]
    for text in (verdict_html(comparison, gate), verdict_markdown(comparison, gate)):
        assert text.count("set_gas_schedule") == text.count("publish_package_txn") == 1
        assert ": embedded, version 2,251, read " in text
        assert ": embedded, version 3,502, read " in text


def test_a_cause_is_in_the_annotation_and_the_body_of_the_failure(tmp_path):
    """Below the reason, which is the message; and Markdown has its notes above the causes."""
    study = toolkit.Study(calls={"size": "0xcafe::registry::size"}, versions=[3_501, 3_502], thresholds="2%")
    run = study.run(tmp_path / "run", progress=False)
    comparison = toolkit.compare(run.at(3_501), run.at(3_502))
    gate = comparison.gate("2%", waivers=[WAIVER], today=TODAY)
    [cause] = [one.explanation for one in gate.regressions]
    failure = ET.fromstring(comparison_junit(comparison, gate)).find(".//failure")
    assert "set_gas_schedule" in cause
    assert cause in failure.text
    assert cause not in failure.get("message")
    assert "set_gas_schedule" in comparison_annotations(comparison, gate).splitlines()[0]
    text = verdict_markdown(comparison, gate)
    assert -1 < text.index("- note: ") < text.index("Causes:")


def test_a_call_is_explained_by_the_step_since_which_it_succeeds(tmp_path):
    """Not by the code with which it still fails, nor by a later rise alone; what is left out is counted."""
    record = toolkit.ViewFunction("0xcafe::registry::record_of", arguments=["alice"])
    run = toolkit.Study(calls={"record": record}, versions=[0, 2, 3, 28, 29, 3501, 3502]).run(
        tmp_path / "run", progress=False
    )
    steps = [(one.version_after, *one.changes[0].fails) for one in step_groups(run.steps)]
    first = run.steps.set_index("version_after").loc[3]  # the node's words for an abort are those of the contract
    assert (first["error_after"], "E_UNKNOWN(0x60002)" in first["error_message_after"]) == ("invalid_input", True)
    assert first["error_message_before"] != first["error_message_after"]
    assert steps == [(3, True, True), (29, True, False), (3502, False, False)]
    comparison = toolkit.compare(run.at(0), run.at(3502))
    assert causes_of(("record", "view@version", "embedded"), comparison.steps) == (
        [(Cause.STATE, "29"), (Cause.SCHEDULE, "3,502")],
        1,
    )
    assert comparison.calls["explanation"].item().startswith("at version 29 ")
    assert "at version 29 " in cause_lines(comparison.shown(visible), visible)[0]


def test_a_page_that_passes_lists_what_is_unchanged():
    """With its gas; text and Markdown name it only."""
    comparison = compare(frame(row(1, 100)), frame(row(2, 100)))
    shown = verdict_content(comparison, comparison.gate("2%"))
    assert [one.cells[1:4] for one in shown["shown"].unchanged] == [("100", "100", "")]
    assert '<td class="n" data-name="after">100</td>' in verdict_html(comparison, comparison.gate("2%"))


def test_calls_that_are_allowed_although_not_judged_are_named(judged):
    """The gate passes if another call was judged, and never on nothing; what regressed is never allowed."""
    assert replace(judged[1], unjudged_allowed=True).verdict == "failed"
    silent = compare(frame(row(1, label="a"), row(1, label="b")), frame(row(2, label="a", error="http_503")))
    one = silent.gate("2%", waivers=[WAIVER | {"call": "b"}], today=TODAY)
    nothing = replace(one, unjudged_allowed=True)
    assert (nothing.judged, nothing.verdict) == (0, "could not judge")
    both = compare(
        frame(row(1, label="a"), row(1, label="b")), frame(row(2, label="a", error="http_503"), row(2, label="b"))
    )
    allowed = replace(both.gate("2%", today=TODAY), unjudged_allowed=True)
    assert (allowed.passed, allowed.verdict, [one.label for one in allowed.not_judged]) == (True, "passed", ["a"])
    suite = ET.fromstring(comparison_junit(both, allowed)).find("testsuite")
    assert [suite.get(name) for name in ("failures", "errors", "skipped")] == ["0", "0", "1"]
    assert "::warning title=Gas not judged::a: " in comparison_annotations(both, allowed)
    assert verdict_markdown(both, allowed).startswith("**PASSED (1 not judged, allowed)**")
    assert "PASSED (1 not judged, allowed)" in verdict_html(both, allowed)


def test_annotations_are_attached_to_a_line(judged):
    """The file and the line of a call, escaped as properties are; a call without a line has only the file."""
    of_another = {("", "rises"): 7, ("another node", "rises"): 8}
    lines = comparison_annotations(*judged, file="a,b:c%.toml", lines=of_another).splitlines()
    start = "::error file=a%2Cb%3Ac%25.toml"
    assert any(line.startswith(f"{start},line=7,title=Gas regression::rises: ") for line in lines)
    assert any(line.startswith(f"{start},title=Gas regression::fails: ") for line in lines)


@pytest.mark.fault("workflow commands and XML in labels and error codes", "they stay text: no command, no element")
def test_hostile_text_is_no_command_and_no_element(judged):
    """A runner reads a line as a command if it starts with ``::`` after spaces, or has ``##[`` in a line without one."""
    text = comparison_annotations(*judged)
    for line in text.splitlines():
        assert COMMAND.fullmatch(line) or ("::" not in line and "##[" not in line)
    assert not set("\x00\x1b\r\ufffe\u202e") & set(text)
    root = ET.fromstring(comparison_junit(*judged))
    assert {element.tag for element in root.iter()} == {
        "testsuites",
        "testsuite",
        "testcase",
        "failure",
        "error",
        "skipped",
        "system-out",
    }


def test_junit_has_a_case_for_each_call(judged):
    """Its counts are those of its elements, and equal verdicts give equal bytes."""
    comparison, gate = judged
    content = comparison_junit(comparison, gate)
    assert content == comparison_junit(comparison, gate)
    suite = ET.fromstring(content).find("testsuite")
    cases = suite.findall("testcase")
    assert len(cases) == len(comparison.calls) == int(suite.get("tests"))
    outcomes = {case.get("name"): [element.tag for element in case] for case in cases}
    assert outcomes["rises"] == outcomes["fails"] == ["failure"]
    assert outcomes["silent"] == ["error"]
    assert outcomes["waived"] == outcomes["gone"] == outcomes["new"] == ["skipped"]
    assert outcomes["same"] == []
    assert [suite.get(name) for name in ("failures", "errors", "skipped", "time")] == ["3", "1", "3", "0"]
    skipped = next(case for case in cases if case.get("name") == "waived").find("skipped")
    assert skipped.get("message").startswith('waived: "known" until 2026-06-01: from 100')
    assert suite.find("system-out").text.startswith("gate FAILED: 3 regressions")


def test_simulations_that_are_left_out_are_cases_too():
    """The gate could not judge them, so they are not missing from the count."""
    comparison = replace(compare(frame(row(1)), frame(row(2))), left_out=(("sim", "simulate@now", "n"),))
    gate = comparison.gate("2%", today=TODAY)
    suite = ET.fromstring(comparison_junit(comparison, gate)).find("testsuite")
    assert [suite.get("tests"), suite.get("errors")] == ["2", "1"]


def test_without_a_gate_there_are_notices_alone():
    """A comparison without limits has no verdict."""
    comparison = compare(frame(row(1)), frame(row(2, 20)))
    assert comparison_annotations(comparison) == "1 changed\n"


@pytest.mark.parametrize(
    ("gas", "words"), [([64, 65, 66, 67], "3 steps, versions 2 to 4"), ([1, 2, 9, 10], "mostly at version 3")]
)
def test_a_step_is_most_of_a_rise_only_if_it_is_more_than_half(gas, words):
    """Else the lead counts the steps and says between which versions they are; steps of other calls do not count."""
    changes = [(at, "a", *pair) for at, pair in enumerate(pairwise(gas), 2)] + [(3, "b", 1, 1_000_000)]
    steps = tuple(
        StepGroup(at - 1, at, True, Cause.STATE, "", None, (StepChange(label, "view@version", 1, one, two),))
        for at, label, one, two in changes
    )
    comparison = replace(compare(frame(row(1, gas[0], label="a")), frame(row(9, gas[-1], label="a"))), steps=steps)
    assert words in verdict_content(comparison, comparison.gate("2%"))["lead"]
