"""The command `compare` as a build runs it: what it prints and writes, and its exit codes."""

from __future__ import annotations

import json

import pytest

import toolkit
from tests.integration.test_cli import one_clear_line

SIZE, DEPTH = "0xcafe::registry::size", "0xb00c::order_book::depth"


@pytest.fixture(scope="module")
def runs(url, tmp_path_factory):
    """Make a run over all versions, whose study has a threshold and a waiver."""
    folder = tmp_path_factory.mktemp("compare")
    study = f"""
title = "Guarded"
node = "{url}"
[versions]
plan = "0:-1/11"
[thresholds]
percent = 1
[[call]]
label = "size"
view = "{SIZE}"
[[call]]
label = "depth"
view = "{DEPTH}"
[[waiver]]
call = "depth"
reason = "it grows by design"
expires = 2999-12-31
"""
    (folder / "study.toml").write_text(study)
    toolkit.Study.load(folder / "study.toml").run(folder / "x", progress=False)
    return folder


@pytest.fixture
def compare(runs, command):
    return lambda *arguments: command("compare", *arguments, cwd=runs)


def test_the_study_of_the_run_is_the_gate(compare):
    """Its limits fail the build, its waiver excuses, and the verdict stands first."""
    done = compare("x@1400", "x@4999")
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "x@1400 compared with x@4999"
    assert lines[1].startswith("gate FAILED: 1 regression; 2 calls judged")
    assert any(line.startswith("regression: size: ") for line in lines)
    assert any(line.startswith("waived: depth: ") and "it grows by design" in line for line in lines)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["x@999", "x@999"], 0),
        (["x@999", "x", "--fail-over", "1000000%"], 0),
        (["x@999", "x", "--fail-over", "1000000%", "--fail-over", "1"], 1),
        (["x", "x@999", "--fail-over", "0%"], 0),
    ],
)
def test_exit_codes_of_the_gate(compare, arguments, code):
    """0 where nothing regressed, 1 where something did; either of two limits counts."""
    assert compare(*arguments).returncode == code


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["x", "none"], "none is not a run folder"),
        (["x", "x", "--fail-over", "two"], "a threshold must be a percentage such as 2%"),
        (["x", "x", "--study", "none.toml"], "No such file"),
        (["x", "x", "--waivers", "study.toml"], "is not a key of a waiver file"),
        (["x", "x", "--source", "view"], "source must be one of view@version"),
        (["x", "x", "--out", "x.docx"], "expected a name that ends in one of .md, .html, .json, .txt"),
        (["x", "x", "--json", "--format", "text"], "not both"),
        (["x", "x", "--format", "pdf"], "pdf"),
    ],
)
def test_bad_input_is_exit_2_and_one_line(compare, arguments, words):
    """A build tells a broken gate from a failed one."""
    assert words in one_clear_line(compare(*arguments), 2)


def test_a_waivers_file_stands_in_place_of_the_study_s(compare, runs):
    """An expired waiver no longer excuses, and the output says so."""
    (runs / "waivers.toml").write_text('[[waiver]]\ncall = "size"\nreason = "old"\nexpires = 2001-01-01\n')
    done = compare("x@999", "x", "--waivers", "waivers.toml")
    assert done.returncode == 1
    assert "gate FAILED: 2 regressions" in done.stdout
    assert "'size' expired on 2001-01-01" in done.stdout


def test_a_study_file_of_today_may_judge_an_older_run(compare, runs):
    """Limits and waivers change; what was observed does not."""
    text = (runs / "study.toml").read_text().replace("percent = 1\n", "percent = 1e6\n")
    (runs / "loose.toml").write_text(text)
    done = compare("x@999", "x", "--study", "loose.toml")
    assert done.returncode == 0
    assert "gate passed" in done.stdout


@pytest.mark.parametrize(
    ("name", "start"),
    [("c.md", "**FAILED**"), ("c.html", "<!DOCTYPE html>"), ("c.json", "{"), ("c.txt", "x@999 compared")],
)
def test_it_is_written_by_the_ending_of_the_file(compare, runs, name, start):
    """Markdown, JSON or text; the log says where, what the verdict is, and on which calls; the exit code is the gate's."""
    done = compare("x@999", "x", "--out", name)
    assert done.returncode == 1
    written, verdict, _, *why = done.stdout.splitlines()
    assert (written, verdict.partition(":")[0]) == (f"Comparison: {name}", "gate FAILED")
    assert {line.partition(":")[0] for line in why} == {"regression", "waived"}
    assert (runs / name).read_text().startswith(start)


def test_json_on_stdout_is_whole(compare):
    """For programs, with a format number."""
    told = json.loads(compare("x@999", "x", "--json").stdout)
    assert told["format"] == 1
    assert told["gate"]["passed"] is False
    assert [call["label"] for call in told["calls"]] == ["depth", "size"]


def test_without_any_limit_there_is_no_gate(compare, runs):
    """The comparison is printed and nothing fails; each format says that nothing was judged."""
    bare = (runs / "study.toml").read_text().replace("[thresholds]\npercent = 1\n", "")
    (runs / "bare.toml").write_text(bare)
    done = compare("x@999", "x", "--study", "bare.toml")
    assert done.returncode == 0
    assert "gate " not in done.stdout
    assert "not judged: no limit was given; --fail-over 5% makes it a gate" in done.stdout
    assert "2 changed" in done.stdout
    assert "not judged: no limit" in compare("x@999", "x", "--study", "bare.toml", "--format", "markdown").stdout
