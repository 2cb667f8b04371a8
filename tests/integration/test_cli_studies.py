"""The commands around study files as a user runs them: new, plan, schema, run."""

from __future__ import annotations

import json

import pytest

from tests.integration.test_cli import one_clear_line
from toolkit import Run


def test_the_starter_plans_and_runs_as_it_is(command, tmp_path):
    """`study new`, `study plan`, `study run`: three commands, no network, and the plan tells what the run reads."""
    written = command("study", "new", "study.toml", cwd=tmp_path)
    assert written.stdout.splitlines() == ["Study: study.toml", "Next: ledger-toolkit study plan study.toml"]
    planned = command("study", "plan", "study.toml", "--json", cwd=tmp_path)
    plan = json.loads(planned.stdout)
    assert plan["format"] == 1
    calls = {call["label"]: call for call in plan["nodes"][0]["calls"]}
    assert set(calls) == {
        "APT supply",
        "record of alice",
        "record of bob",
        "order book depth",
        "transfer 100 octas",
        "registrations",
    }
    done = command("study", "run", "study.toml", "--out", "run", "--quiet", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    views = sum(call["requests"] for call in calls.values() if call["source"] != "committed")
    assert json.loads(done.stdout)["counts"]["observations"] >= views
    again = one_clear_line(command("study", "new", "study.toml", cwd=tmp_path), 2)
    assert "already exists" in again


def test_a_plan_in_words_sends_nothing_and_ends_well(command):
    """`study plan demo` prints a table and what it rests on."""
    done = command("study", "plan", "demo")
    assert done.returncode == 0, done.stderr
    assert "nothing has been sent yet" in done.stdout
    assert "33 to " in done.stdout
    assert "time: " in done.stdout


def test_a_plan_of_a_dead_node_is_one_line(command, tmp_path):
    """Exit 4, as for every command that gets no answer."""
    study = '[versions]\nplan = "0:9"\n[[call]]\nview = "0x1::m::f"\n'
    (tmp_path / "study.toml").write_text('node = "http://127.0.0.1:9"\n' + study)
    one_clear_line(command("study", "plan", str(tmp_path / "study.toml")), 4)


def test_the_schema_is_printed_or_written(command, tmp_path):
    """The same JSON either way."""
    printed = command("study", "schema")
    written = command("study", "schema", "--out", "s.json", cwd=tmp_path)
    assert written.stdout.strip() == "Schema: s.json"
    assert json.loads(printed.stdout) == json.loads((tmp_path / "s.json").read_text())


@pytest.mark.parametrize("name", ["plan", "run"])
def test_a_mistake_in_a_study_is_one_line(command, tmp_path, name):
    """The place, the key, the key that was meant."""
    study = tmp_path / "typo.toml"
    study.write_text('[versions]\nplan = "0:9"\n[[call]]\nlabel = "size"\nview = "0x1::m::f"\nargumets = []\n')
    more = ["--out", str(tmp_path / "run")] if name == "run" else []
    line = one_clear_line(command("study", name, str(study), *more), 2)
    assert "call 1 ('size'): `argumets`" in line


def test_every_mistake_in_a_call_is_a_line(command, tmp_path):
    """All wrong keys are named at once."""
    (tmp_path / "typos.toml").write_text(
        '[versions]\nplan = "0:9"\n[[call]]\nview = "0x1::m::f"\nargumets = []\nsendr = 1\n'
    )
    done = command("study", "plan", "typos.toml", cwd=tmp_path)
    assert (done.returncode, [line.split("`")[1] for line in done.stderr.splitlines()]) == (2, ["argumets", "sendr"])


def test_versions_that_do_not_exist_are_a_note_of_the_run(command, tmp_path):
    """A plan that is clipped says so, and the last line has the versions that were read."""
    call = '[[call]]\nlabel = "size"\nview = "0xcafe::registry::size"\n'
    (tmp_path / "study.toml").write_text(f'[versions]\nplan = "3000:99999/3"\n{call}')
    done = command("study", "run", "study.toml", "--out", "run", "--quiet", cwd=tmp_path)
    assert "at versions 3,000 to 4,999: run" in done.stdout
    again = command("study", "run", "study.toml", "--out", "run", "--quiet", "--json", cwd=tmp_path)
    (note,) = json.loads(again.stdout)["notes"]
    assert "99,999" in note


def test_the_last_line_has_the_versions_observed(command, tmp_path):
    """A committed call with versions of its own has transactions at some of them only."""
    call = '[[call]]\ncommitted = "0xcafe::registry::register"\nversions = "3000:3200"\n'
    (tmp_path / "study.toml").write_text(f'[versions]\nplan = "3100:3101"\n{call}')
    done = command("study", "run", "study.toml", "--out", "run", "--quiet", cwd=tmp_path)
    observed = Run.load(tmp_path / "run").observations["ledger_version"]
    assert (observed.min(), observed.max()) != (3_000, 3_200)
    assert f"at versions {observed.min():,} to {observed.max():,}: run" in done.stdout


def test_calls_that_cannot_be_made_are_named_before_anything_is_read(command, tmp_path):
    """Plan and run exit 2 with the message of the study, whatever it names; no folder is made."""
    calls = '[[call]]\nlabel = "typo"\nview = "0xcafe::registry::sice"\n'
    calls += '[[call]]\nlabel = "log"\ncommitted = "0xcafe::registri::register"\n'
    (tmp_path / "study.toml").write_text(f'[versions]\nplan = "0:-1/5"\n{calls}')
    for done in (
        command("study", "plan", "study.toml", cwd=tmp_path),
        command("study", "run", "study.toml", "--out", "run", "--quiet", cwd=tmp_path),
    ):
        assert done.returncode == 2
        first, *lines = done.stderr.splitlines()
        assert "2 of 2 calls cannot be made" in first
        places = [line.split(": ")[:2] for line in lines]
        assert places == [["  call 'typo'", "0xcafe::registry::sice"], ["  call 'log'", "0xcafe::registri::register"]]
    assert not (tmp_path / "run").exists()


def test_a_dead_call_is_a_note_after_the_run(command, tmp_path):
    """A view that always aborts is rows that failed; what is printed names the call, in words and in JSON."""
    call = '[[call]]\nlabel = "size"\nview = "0xcafe::registry::record_of"\narguments = ["nobody"]\n'
    (tmp_path / "study.toml").write_text(f'[versions]\nplan = "0:-1/5"\n{call}')
    done = command("study", "run", "study.toml", "--out", "run", "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "every read of 'size' failed (5 invalid_input)" in done.stdout
    again = command("study", "run", "study.toml", "--out", "run", "--quiet", "--json", cwd=tmp_path)
    (note,) = json.loads(again.stdout)["notes"]
    assert note.startswith("every read of 'size' failed")
