"""The how-to page of the gate for pull requests: its files and its workflow, run by bash as a code-hosting service does."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.integration.documents import NAMED, ROOT, blocks

PAGE = ROOT / "docs" / "how-to" / "gate-before-deploying.md"
WORKFLOW = ".github/workflows/gas.yml"

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="runs the workflow's commands with bash")


class Service:
    """A code-hosting service with a clone of the project; `gh` writes what it is asked to publish to a file."""

    def __init__(self, folder: Path) -> None:
        self.folder, tools = folder / "clone", folder / "tools"
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = str(free.getsockname()[1])
        for block in blocks(PAGE.read_text("utf-8")):
            if named := NAMED.match(block.body):
                place = self.folder / named[1]
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(block.body.replace("18080", port).replace("18_080", port), "utf-8")
        tools.mkdir()
        for name, does in {"pip": "exit 0", "gh": 'echo "$@" > ../said'}.items():
            (tools / name).write_text(f"#!/bin/sh\n{does}\n")
            (tools / name).chmod(0o755)
        path = os.pathsep.join([str(tools), str(Path(sys.executable).parent), os.environ["PATH"]])
        self.environment = os.environ | {"PATH": path, "NUMBER": "7", "GITHUB_STEP_SUMMARY": str(folder / "summary")}

    def run(self, command: str) -> int:
        return subprocess.run(
            ["bash", "-e", "-c", command], cwd=self.folder, env=self.environment, check=False
        ).returncode

    def job(self) -> list[int]:
        """Run the steps of the workflow that a service would run, and return their exit codes."""
        job = yaml.safe_load((self.folder / WORKFLOW).read_text("utf-8"))["jobs"]["gas"]
        codes: list[int] = []
        for step in job["steps"]:
            if "run" in step and (not any(codes) or step.get("if") == "always()"):
                codes.append(self.run(step["run"]))
        return codes


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return a service whose clone has the snapshot, which takes seconds to write."""
    service = Service(tmp_path_factory.mktemp("service"))
    assert service.run("python ledger.py ledger-toolkit snapshot study.toml --quiet") == 0
    return service


@pytest.fixture
def service(written):
    """Return the service; what a test changes in the clone is undone."""
    texts = {path: path.read_bytes() for path in written.folder.rglob("*") if path.is_file()}
    yield written
    for path, text in texts.items():
        path.write_bytes(text)


def test_a_pull_request_that_costs_more_fails_and_its_verdict_is_a_comment(service):
    """As it is, it passes; with the change of the page, the check fails, and the verdict is published all the same."""
    published = service.folder.parent
    assert service.job() == [0, 0, 0, 0]
    assert (published / "summary").read_text("utf-8").startswith("**PASSED**")
    package, once = service.folder / "shop.py", "sum(self.each(sales))"
    package.write_text(package.read_text("utf-8").replace(once, f"({once} + {once}) // 2"), "utf-8")
    (published / "summary").unlink()
    assert service.job() == [0, 1, 0, 0]
    verdict = (service.folder / "verdict.md").read_text("utf-8")
    assert verdict.startswith("**FAILED**")
    assert "`income`" in verdict
    assert (published / "summary").read_text("utf-8") == verdict
    assert (published / "said").read_text().split()[:5] == ["pr", "comment", "7", "--body-file", "verdict.md"]
    assert 'failures="1"' in (service.folder / "gas.xml").read_text("utf-8")


def test_what_cannot_be_judged_is_neither_a_pass_nor_a_regression(service):
    """Exit code 6 for a call that the snapshot does not have, 2 if the package does not have it either."""
    study = service.folder / "study.toml"
    text = study.read_text("utf-8")
    study.write_text(text + '\n[[call]]\nsimulate = "0x5407::shop::buy"\nsender = "0xc057"\narguments = [7]\n', "utf-8")
    assert service.job()[1] == 6
    study.write_text(text.replace("income", "incomes"), "utf-8")
    assert service.job() == [0, 2, 0, 0]
    assert (service.folder / "verdict.md").read_text("utf-8").startswith("Not judged")


def test_a_function_of_the_snapshot_that_is_gone_is_a_regression(service):
    """The most dangerous upgrade, of a view and of an entry function, fails the gate, and every file is written."""
    package, ledger = service.folder / "shop.py", service.folder / "ledger.py"
    for gone in ("income", "buy"):
        package.write_text(package.read_text("utf-8").replace(f"def {gone}(", f"def {gone}_of("), "utf-8")
        ledger.write_text(ledger.read_text("utf-8").replace(f"::{gone}", f"::{gone}_of"), "utf-8")
    assert service.job() == [0, 1, 0, 0]
    assert (service.folder / "verdict.md").read_text("utf-8").startswith("**FAILED**")
    assert 'failures="2" errors="0"' in (service.folder / "gas.xml").read_text("utf-8")


@pytest.mark.parametrize(("file", "added"), [("shop.py", "def"), ("ledger.py", "assert False")])
def test_a_python_error_ends_with_1_but_is_not_judged(service, file, added):
    """Python's own exit code is that of a regression; the verdict says which it is."""
    path = service.folder / file
    path.write_text(f"{added}\n{path.read_text('utf-8')}", "utf-8")
    assert service.job() == [0, 1, 0, 0]
    assert (service.folder / "verdict.md").read_text("utf-8").startswith("Not judged")
