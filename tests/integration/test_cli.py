"""The command line as a user runs it: what it prints, its exit codes, one clear line for an error.

A process takes seconds to start, so most commands run in this process; one of each kind has a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest


def one_clear_line(done: subprocess.CompletedProcess, code: int) -> str:
    """Check that a command failed as promised, and return its line."""
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("ledger-toolkit: error: ")
    return lines[0]


def test_view_on_the_embedded_node_needs_nothing_running():
    """Without --node the embedded node is started and stopped again."""
    words = [sys.executable, "-m", "toolkit", "view", "0xcafe::registry::size"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0
    assert "gas_used" in done.stdout


def test_wrong_options_are_one_line(command):
    """A wrong command line is one line too."""
    assert "No such option" in one_clear_line(command("info", "--nod", "x"), 2)
    assert "No such command" in one_clear_line(command("dance"), 2)
    assert "compare" in one_clear_line(command("gate"), 2)


def test_study_run_and_report(command, url, tmp_path):
    """A study file runs, and its run becomes a report in each form."""
    study = tmp_path / "study.toml"
    study.write_text(
        f'title = "Small"\nnode = "{url}"\n[versions]\nplan = "0:-1/20"\n[[call]]\nlabel = "size"\nview = "0xcafe::registry::size"\n'
    )
    done = command("study", "run", "study.toml", "--out", "run", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["counts"]["observations"] == 20
    for name in ("report.html", "report.md", "report.json"):
        written = command("report", "run", "--out", name, cwd=tmp_path)
        assert written.stdout.strip() == f"Report: {name}"
        assert (tmp_path / name).stat().st_size > 500


@pytest.mark.skipif(os.name != "posix", reason="pipes end otherwise there")
@pytest.mark.parametrize("option", ["--help", "--version"])
def test_a_reader_that_went_away_is_no_regression(option):
    """As under `| head`: code 141, as of other commands, and no traceback; 1 is left to `compare`."""
    read, write = os.pipe()
    os.close(read)
    try:
        command = [sys.executable, "-m", "toolkit", option]
        done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (141, "")
