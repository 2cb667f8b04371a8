"""The command `snapshot` as a build runs it, and the workflow of the documentation in a pretend CI: its commands and exit codes."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from tests.integration.test_cli import one_clear_line
from tests.unit.gas.observed import change_manifest
from toolkit.embedded import Ledger, Module, serve, view
from toolkit.embedded.types import u64

ROOT = Path(__file__).resolve().parents[2]
STUDY = """
title = "Guarded"
[versions]
plan = "3490:3510/3"
[[call]]
label = "size"
view = "0xcafe::registry::size"
[[call]]
label = "price"
view = "0xfa17::vault::share_price"
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return an empty folder, for a study and its committed snapshot."""
    return tmp_path_factory.mktemp("snapshot")


@pytest.fixture
def project(written, command, tmp_path):
    """Return a copy of a folder with a study and its snapshot, which the test may change."""
    if not (written / "study.toml").exists():
        (written / "study.toml").write_text(STUDY)
        done = command("snapshot", "study.toml", "--quiet", cwd=written)
        assert (done.returncode, done.stdout.strip()) == (0, "Snapshot: gas-snapshot.toml (2 calls)"), done.stderr
    shutil.copytree(written, tmp_path, dirs_exist_ok=True)
    return tmp_path


def edit(path, old, new):
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def workflow():
    """Return the steps of the workflow in the documentation that run a command."""
    found = re.search(
        r"```yaml\n# [^\n]*\n(name: gas\n.*?)```",
        (ROOT / "docs" / "how-to" / "gate-in-ci.md").read_text("utf-8"),
        flags=re.DOTALL,
    )
    steps = yaml.safe_load(found[1])["jobs"]["gas"]["steps"]
    return [step for step in steps if "run" in step]


def pretend_ci(folder, command):
    """Run the workflow as a code-hosting service does; return the exit codes and the output of each command."""
    failed, codes, output = False, {}, {}
    for step in workflow():
        words = shlex.split(step["run"])
        if words[0] == "pip" or (failed and step.get("if") not in {"failure()", "always()"}):
            continue
        if not failed and step.get("if") == "failure()":
            continue
        assert words[0] == "ledger-toolkit"
        done = command(*words[1:], cwd=folder)
        codes[step["run"]], output[step["run"]] = done.returncode, done.stdout
        failed = failed or done.returncode != 0
        assert "Traceback" not in done.stderr
    return codes, output


def test_the_workflow_of_the_documentation_passes_and_fails(project, command):
    """Nothing changed: it passes. A call became dearer: it fails, with an annotation, a test case and the cause."""
    codes, output = pretend_ci(project, command)
    assert list(codes.values()) == [0, 0]
    assert list(output.values())[-1].splitlines()[-1].startswith("gate passed")
    edit(project / "gas-snapshot.toml", '"size" = 21', '"size" = 3')
    edit(project / "gas-snapshot.toml", "ledger_version = 3510", "ledger_version = 3490")
    codes, output = pretend_ci(project, command)
    assert list(codes.values()) == [0, 1, 0]
    number = (project / "gas-snapshot.toml").read_text().splitlines().index('"size" = 3') + 1
    check, diff = list(output.values())[1:]
    start = f"::error file=gas-snapshot.toml,line={number},title=Gas regression::size: from 3 to 21 gas units"
    assert check.startswith(start)
    assert "gas schedule: " in diff
    suite = ET.parse(project / "gas.xml").getroot().find("testsuite")
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")


def test_a_snapshot_is_checked_from_the_study_or_from_a_run(project, command):
    """Both are the same; `--diff` never fails a build, and a fall passes with the advice to write the file again."""
    assert command("study", "run", "study.toml", "--out", "x", "--quiet", cwd=project).returncode == 0
    edit(project / "gas-snapshot.toml", '"size" = 21', '"size" = 30')
    for source in ("study.toml", "x"):
        done = command("snapshot", source, "--check", "--quiet", cwd=project)
        assert done.returncode == 0
        assert done.stdout.split("\n  size ")[1].split()[:3] == ["30", "21", "−9"]
        assert "gas-snapshot.toml is out of date: 1 call changed" in done.stdout
    edit(project / "gas-snapshot.toml", '"size" = 30', '"size" = 3')
    assert command("snapshot", "x", "--check", cwd=project).returncode == 1
    assert command("snapshot", "x", "--diff", cwd=project).returncode == 0
    assert command("snapshot", "x", cwd=project).returncode == 0
    assert command("snapshot", "x", "--check", cwd=project).returncode == 0


class Shop(Module, address="0x5407", name="shop"):
    """A contract whose next release costs more."""

    @view
    def price(self) -> u64:
        """Return a price."""
        self.charge("instr.mul", 300)
        return 1


class Dearer(Shop, revision=2, name="shop"):
    """The next release."""

    @view
    def price(self) -> u64:
        """Return a price."""
        self.charge("instr.mul", 300_000)
        return 1


SHOP = """
title = "Shop"
node = "{url}"
[versions]
plan = "-1"
[[call]]
label = "price"
view = "0x5407::shop::price"
"""


@pytest.mark.fault(
    "a gate on a run that was read before the last upgrade", "the run is extended, or its age is reported"
)
def test_a_gate_never_passes_on_what_was_read_before_an_upgrade(tmp_path, command):
    """`study run` into the complete run says what it is and reads on; an old run that is not read on is not judged."""
    ledger = Ledger()
    ledger.publish(Shop)
    ledger.advance()
    with serve(ledger, port=0) as url:
        (tmp_path / "study.toml").write_text(SHOP.format(url=url))

        def lines(*arguments, code=0):
            done = command(*arguments, "--quiet", cwd=tmp_path)
            assert done.returncode == code, done.stderr
            return done.stdout.splitlines()

        lines("snapshot", "study.toml")
        lines("study", "run", "study.toml", "--out", "x")
        again = lines("study", "run", "study.toml", "--out", "x")[0]
        assert re.match(
            rf"The run was complete to version {ledger.head:,}, read .* UTC, less than a minute ago; the head", again
        )
        assert again.endswith(f"the head is still {ledger.head}. Nothing new was read.")
        passed = lines("snapshot", "x", "--check")
        assert passed[1] == "gate passed; 1 call judged"
        assert passed[3].startswith(f"note: run complete to version {ledger.head:,}, read 20")
        old = (datetime.now(UTC) - timedelta(days=3)).isoformat()
        change_manifest(tmp_path / "x", checked_at=old)
        stale = lines("snapshot", "x", "--check", code=6)
        assert "not judged: price: it was read more than 1 day ago and its versions end at the head" in stale[3]
        assert "3 days ago" in stale[4]
        lines("snapshot", "x", "--check", "--max-age", "4")
        ledger.publish(Dearer)
        ledger.advance()
        read = lines("study", "run", "study.toml", "--out", "x")[0]
        assert read.endswith(f"the head is now {ledger.head}. Read 1 new observation.")
        assert "3 days ago" in read
        assert lines("snapshot", "x", "--check", code=1)[1] == "gate FAILED: 1 regression; 1 call judged"
        fresh = lines("study", "run", "study.toml", "--out", "x", "--fresh", "--json")
        told = json.loads("\n".join(fresh))
        assert (told["earlier"], told["counts"]["observations"]) == (None, 1)


def test_a_run_of_fixed_versions_says_so(project, command):
    """Its age does not matter, and it is complete: nothing is read unless it is started over."""
    command("study", "run", "study.toml", "--out", "x", "--quiet", cwd=project)
    change_manifest(project / "x", finished_at="2026-01-01T00:00:00+00:00")
    done = command("study", "run", "study.toml", "--out", "x", "--quiet", cwd=project)
    first = done.stdout.splitlines()[0]
    assert first.startswith("The run was complete to version 3,510, read ")
    assert first.endswith(
        "read 2026-01-01 00:00 UTC; the head is now 4,999. Its versions are fixed, so nothing was read; --fresh (fresh=True "
        "in Python) reads them again."
    )
    checked = command("snapshot", "x", "--check", cwd=project)
    assert checked.returncode == 0
    assert "note: run complete to version 3,510, read 2026-01-01 00:00 UTC\n" in checked.stdout


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("chain_id = 4", "chain_id = 1", "not judged: price: the two sides come from different chains (1; 4)"),
        ("model = true", "model = false", "one side is from the embedded node, whose gas is a model and cannot be"),
        ('node = "embedded"', 'node = "mainnet"', "the two sides come from different nodes (https://api.mainnet."),
        (
            "ledger_version = 3510",
            "ledger_version = 9000000",
            "the snapshot was taken at version 9,000,000, above the run",
        ),
        ('"price" = 36\n', "", "not judged: price: new, so not in the snapshot"),
        ('"price" = 36', '"price" = { fails = "x" }', "not judged: price: failed before, so it has no baseline"),
        ('"size" = 21', '"size" = 21\n"old" = 5', "regression: old: no longer in the study; write the snapshot again"),
    ],
)
def test_a_snapshot_of_something_else_is_not_judged(project, command, old, new, found):
    """Another chain, node or gas model, a later version, a call without a line: exit code 6, and the reason."""
    edit(project / "gas-snapshot.toml", old, new)
    done = command("snapshot", "study.toml", "--check", "--quiet", cwd=project)
    assert done.returncode == (1 if found.startswith("regression") else 6), done.stdout
    assert found in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["study.toml", "--check", "--out", "none.toml"], "No such file"),
        (["study.toml", "--check", "--out", "other.toml"], "`plan` is not a key here"),
        (["study.toml", "--check", "--diff"], "not both"),
        (["study.toml", "--check", "--out", "page.html"], "--format html > page.html"),
        (["study.toml", "--junit", "x.xml"], "require --check"),
        (["study.toml", "--format", "github"], "require --check"),
        (["none.toml"], "No such file"),
        ([".", "--check"], "is not a run folder"),
    ],
)
def test_bad_input_is_exit_2_and_one_line(project, command, arguments, words):
    """Before anything is read from a node."""
    (project / "other.toml").write_text("plan = 1\n")
    assert words in one_clear_line(command("snapshot", *arguments, cwd=project), 2)


def test_compare_prints_annotations_and_junit(project, command):
    """Attached to the call in the study file; without limits there is nothing to write."""
    edit(project / "study.toml", "[versions]", "[thresholds]\npercent = 1\n[versions]")
    assert command("study", "run", "study.toml", "--out", "x", "--quiet", cwd=project).returncode == 0
    options = ["--study", "study.toml", "--format", "github", "--junit", "out/gas.xml"]
    done = command("compare", "x@3490", "x", *options, cwd=project)
    assert done.returncode == 1
    number = (project / "study.toml").read_text().splitlines().index('label = "size"') + 1
    assert f"::error file=study.toml,line={number},title=Gas regression::size: from 3 to 21" in done.stdout
    assert ET.parse(project / "out" / "gas.xml").getroot().find("testsuite").get("failures") == "2"
    edit(project / "study.toml", "[thresholds]\npercent = 1\n", "")
    done = command("compare", "x@3490", "x", "--study", "study.toml", "--junit", "gas.xml", cwd=project)
    assert "--junit requires limits" in one_clear_line(done, 2)


@pytest.mark.parametrize(
    ("function", "versions", "needed"),
    [
        ("0xcafe::registry::register", "4000:-1", "until 8 new transactions"),
        ("0xb00c::order_book::place", "4900:-1", "only 6 succeeded in versions 4,900 to 4,999, at least 8 are needed"),
        ("0xcafe::registry::register", "2000:3600", "give it an open end, such as 2000:-1"),
    ],
)
def test_a_snapshot_names_what_a_check_cannot_judge_at_once(function, versions, needed, tmp_path, command):
    """Checked at once, a committed call cannot be judged: exit code 6, which the snapshot foretold, with what to do."""
    call = f'[[call]]\nlabel = "paid"\ncommitted = "{function}"\nversions = "{versions}"\n'
    (tmp_path / "study.toml").write_text(f'[versions]\nplan = "-1"\n{call}')
    written = command("snapshot", "study.toml", "--quiet", cwd=tmp_path)
    assert written.returncode == 0, written.stderr
    assert "--check cannot judge paid" in written.stdout
    assert needed in " ".join(written.stdout.split())
    assert command("snapshot", "study.toml", "--check", "--quiet", cwd=tmp_path).returncode == 6
