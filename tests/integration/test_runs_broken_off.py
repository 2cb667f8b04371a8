"""Runs killed, interrupted and locked out for real, from the command line: resumed, never restarted, never mixed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

import toolkit
from tests.faults import faulty
from toolkit import embedded

ROOT = Path(__file__).resolve().parents[2]
STUDY = """
title = "Broken off"
node = "{url}"
requests_per_second = {pace}
[versions]
plan = "0:{last}"
[[call]]
label = "size"
view = "0xcafe::registry::size"
[[call]]
label = "transfer 100"
simulate = "0x1::aptos_account::transfer"
sender = "0xa11ce"
arguments = ["0xb0b", 100]
[[call]]
label = "registrations"
committed = "0xcafe::registry::register"
versions = "0:499"
"""


@pytest.fixture(scope="module")
def server(ledger):
    """Return a node whose faults concern these tests alone."""
    with embedded.serve(ledger) as url, faulty(url) as one:
        yield one


@pytest.fixture(scope="module")
def study_file(server, tmp_path_factory):
    """Return a study of 750 readings and more."""
    place = tmp_path_factory.mktemp("study") / "study.toml"
    place.write_text(STUDY.format(url=server.node_url, pace=1_500, last=749))
    return place


@pytest.fixture
def silent_after(server):
    """Return a function that lets the node answer so many requests and then none: a run cannot end before it is hit."""

    def silent(requests):
        server.clear()
        server.schedule([None] * requests + ["hang"] * 20_000)

    yield silent
    server.clear()


@pytest.fixture(scope="module")
def whole(study_file, tmp_path_factory):
    """Return the run that nobody disturbed."""
    return toolkit.Study.load(study_file).run(tmp_path_factory.mktemp("whole") / "run", progress=False)


@contextmanager
def command(study_file, out, *options, under=()):
    """Run ``study run`` as a process of its own, perhaps under another command."""
    words = [*under, sys.executable, "-m", "toolkit", "study", "run", str(study_file), "--out", str(out), *options]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        words,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def rows_in(out):
    """Count the rows that are in the parts now."""
    from toolkit.gas.runs._store import RunStore

    return RunStore(Path(out)).rows()


def wait_for(out, rows):
    """Wait until so many rows are written."""
    deadline = time.monotonic() + 120
    while rows_in(out) < rows:
        assert time.monotonic() < deadline, "the run writes nothing"
        time.sleep(0.1)  # counting takes a millisecond


def test_a_run_killed_twice_ends_with_the_rows_of_an_undisturbed_one(study_file, whole, server, silent_after, tmp_path):
    """kill -9 in the midst of reading: what was written stays, the same command goes on, and the digests are equal."""
    out, kept = tmp_path / "run", 0
    for wanted in (100, 250):
        silent_after(450)
        with command(study_file, out) as process:
            wait_for(out, wanted)
            process.send_signal(signal.SIGKILL)
            assert process.wait(30) == -signal.SIGKILL
        assert not toolkit.Run.open(out).complete
        assert rows_in(out) >= wanted > kept
        kept = rows_in(out)
    server.clear()
    run = toolkit.Study.load(study_file).run(out, progress=False)
    assert run.manifest["resumed_rows"] == kept
    assert run.digest == whole.digest
    assert run.manifest["attempts"] == 3
    assert run.observations.drop(columns="observed_at").equals(whole.observations.drop(columns="observed_at"))
    assert run.steps.equals(whole.steps)
    assert not list(out.rglob("*.part"))
    assert not (out / "run.lock").exists()


def test_an_interrupt_keeps_what_came_and_says_how_to_go_on(study_file, whole, server, silent_after, tmp_path):
    """Ctrl-C: one line, code 130; meanwhile a second run into the folder is refused at once; then it goes on."""
    out = tmp_path / "run"
    silent_after(450)
    with command(study_file, out) as process:
        wait_for(out, 100)
        with pytest.raises(toolkit.StudyError, match="in use by another run"):
            toolkit.Study.load(study_file).run(out, progress=False)
        process.send_signal(signal.SIGINT)
        _, words = process.communicate(timeout=60)
        assert process.returncode == 130
    server.clear()
    kept = rows_in(out)
    assert f"stopped; {kept:,} observations are stored in {out}; the same call or command continues" in words
    assert "Traceback" not in words
    assert toolkit.Study.load(study_file).run(out, progress=False).digest == whole.digest


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash, whose ulimit stands for a full disk")
def test_a_full_disk_loses_nothing_that_was_written(study_file, whole, tmp_path):
    """The system refuses a write amid the run: one line that says so and code 5; with room again, the run goes on."""
    out = tmp_path / "run"
    # A part of 10 rows has 34 kB, one of 640 has 38 kB.
    with command(study_file, out, under=["bash", "-c", 'ulimit -f 36; exec "$@"', "bash"]) as process:
        _, words = process.communicate(timeout=60)
    assert process.returncode == 5
    assert "could not be written: " in words
    assert "File too large" in words
    assert "The observations written earlier are kept" in words
    assert "Traceback" not in words
    kept = rows_in(out)
    assert 0 < kept < 640
    names = sorted(place.name for place in out.rglob("*") if place.is_file())
    assert names == ["part-00000000.parquet", "run.json"]
    run = toolkit.Study.load(study_file).run(out, progress=False)
    assert run.manifest["resumed_rows"] == kept
    assert run.digest == whole.digest
