"""Verdicts for build systems: annotations and JUnit XML, of which no text of a label or of the chain can get out."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import date

import pytest

from tests.unit.gas.observed import frame, row
from toolkit._present.text import PERCENT
from toolkit.gas._compare import compare
from toolkit.gas._verdict_sentences import cost_texts
from toolkit.reports._to_programs import comparison_annotations, comparison_junit
from toolkit.reports._verdict import verdict_content, verdict_html

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
    assert lines[-1] == "gate FAILED: 3 regressions; 5 calls judged"
    kinds = [COMMAND.fullmatch(line)[1] for line in lines[:-1]]
    assert (kinds.count("error"), kinds.count("warning")) == (4, 2)
    assert any("rises: from 100 to 150 gas units (+50, +50 %25) is over 2 %25" in line for line in lines)
    assert "::error title=Gas not judged::silent: no response on the after side: http_503" in lines


def test_a_verdict_names_causes_and_reasons_once(judged):
    """The largest rise is first; calls of one reason share a card, and the lead counts them all."""
    comparison, gate = judged
    shown = verdict_content(gate)
    cards = {title: [[one.label for one in card] for card in found] for title, _, found in shown["groups"]}
    assert cards == {
        "Regressed": [["fails"], [HOSTILE, "rises"]],
        "Could not be judged": [["silent"]],
        "Waived": [["gone"], ["waived"]],
    }
    for count in ("8 calls", "3 regressed (+50 % to ×9)", "1 could not be judged", "2 waived"):
        assert count.replace(" %", PERCENT) in shown["lead"]
    page = verdict_html(comparison, gate)
    assert page.count("no response on the after side") == 1
    assert "is over" not in page


def test_costs_have_the_units_of_the_table_and_a_failure_is_no_fall(judged):
    """Fees in octas, which are judged, are followed by gas units; gas of a call that fails now is not compared."""
    _, gate = judged
    fails, rises = (next(one for one in gate.regressions if one.label == label) for label in ("fails", "rises"))
    assert (cost_texts(fails)[2], cost_texts(rises)[2]) == ("", "+50 %".replace(" %", PERCENT))
    fees = {"fee_before": 44_058.0, "fee_after": 438_945.0, "gas_before": 440, "gas_after": 4_389}
    paid = replace(rises, **fees, fee_change_low=895.6, fee_change_high=897.1)
    told = [text.replace("\xa0", " ") for text in cost_texts(paid)]
    assert told == ["44,058 octas (440 gas units)", "438,945 octas (4,389 gas units)", "×9.96 to ×9.97"]


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
    assert outcomes["waived"] == outcomes["gone"] == ["skipped"]
    assert outcomes["same"] == outcomes["new"] == []
    assert [suite.get(name) for name in ("failures", "errors", "skipped", "time")] == ["3", "1", "2", "0"]
    skipped = next(case for case in cases if case.get("name") == "waived").find("skipped")
    assert skipped.get("message").endswith("(waived until 2026-06-01: known)")
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
