"""`make test` runs every part, whatever fails, and ends with what each part said last."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# In the place of the environment's Python: says what it runs, and fails if told to.
PYTHON = """#!/bin/sh
echo "ran $*"
case "$*" in *"$FAILS"*) echo "1 failed in 0.01s"; exit 1 ;; esac
echo "2 passed in 0.01s"
"""
pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


@pytest.fixture
def make(tmp_path):
    """Return a function that makes a target in a folder with a space in its name, whose Python only says what it runs."""
    folder = tmp_path / "a b"
    (folder / ".venv" / "bin").mkdir(parents=True)
    shutil.copy(ROOT / "Makefile", folder)
    (folder / "pyproject.toml").write_text("")
    python = folder / ".venv" / "bin" / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "CONSTRAINTS"))}

    def run(target, *stamps, fails="nothing"):
        for age, stamp in enumerate((*stamps, ".made")):
            (folder / ".venv" / stamp).touch()
            os.utime(folder / ".venv" / stamp, (2e9 - age, 2e9 - age))
        given = environment | {"FAILS": fails}
        return subprocess.run(["make", target], cwd=folder, env=given, capture_output=True, text=True, check=False)

    return run


def last_ran(done):
    assert done.returncode == 0, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith("ran ")][-1]


@pytest.mark.parametrize(
    ("fails", "failed"),
    [("nothing", []), ("mypy", ["lint"]), ("--nbval", ["notebooks"]), ("loadgroup", ["browser"])],
)
def test_later_parts_run_although_an_earlier_one_failed(make, fails, failed):
    """The exit code is that of the worst part."""
    done = make("test", ".for-tests", ".for-docs", ".for-all", fails=fails)
    assert (done.returncode != 0) is bool(failed), done.stdout + done.stderr
    for part in ("mypy", "--nbval", "tests/browser", "docs/build.py"):
        assert f"{part}" in done.stdout
    lines = done.stdout.splitlines()[-5:]
    for part, line in zip(("unit", "browser", "lint", "notebooks", "docs"), lines, strict=True):
        verdict, said = ("FAILED", "1 failed in 0.01s") if part in failed else ("passed", "2 passed in 0.01s")
        assert line.split(maxsplit=2) == [part, f"{verdict}:", said]


def test_lab_opens_the_notebooks(make):
    """`make lab` installs the extra for notebooks and starts JupyterLab in their folder, as the README says."""
    done = make("lab")
    assert last_ran(done) == "ran -m jupyterlab notebooks"
    assert "--editable .[notebook]" in done.stdout
    assert "make lab" in (ROOT / "README.md").read_text("utf-8")


def test_the_wheelhouse_has_what_the_guide_installs_from_it(make):
    """`make wheelhouse` collects the toolkit with its extra for notebooks, which the guide installs without a network."""
    ran = last_ran(make("wheelhouse"))
    assert ran.startswith("ran -m pip wheel ")
    assert ran.endswith("--wheel-dir wheelhouse .[notebook]")
    guide = (ROOT / "notebooks" / "README.md").read_text("utf-8")
    assert "make wheelhouse" in guide
    assert "--no-index --find-links wheelhouse 'ledger-toolkit[notebook]'" in guide
