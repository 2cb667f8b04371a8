"""The example project of the how-to page: a contract, its tests and its gate, run as its author would."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

_PROJECT = Path(__file__).parents[2] / "docs" / "how-to" / "shop"


def _tests(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", folder, folder]
    command += ["-p", "ledger-toolkit"]
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # some plugins take seconds to import
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)


def test_the_project_passes_and_its_gate_fails_a_costlier_upgrade(tmp_path):
    """As it is; then with an upgrade that adds up all sales twice."""
    folder = shutil.copytree(_PROJECT, tmp_path / "shop", ignore=shutil.ignore_patterns("__pycache__"))
    passed = _tests(folder)
    assert passed.returncode == 0, passed.stdout
    assert "4 passed" in passed.stdout
    source = folder / "shop.py"
    text = source.read_text(encoding="utf-8")
    dearer = text.replace(
        "return len(till.sales) * till.price", "return sum(self.each([*till.sales, *till.sales])) // 2"
    )
    assert dearer != text
    source.write_text(dearer, encoding="utf-8")
    failed = _tests(folder)
    assert failed.returncode == 1
    assert "1 failed, 3 passed" in failed.stdout
    assert "test_the_upgrade_costs_no_more" in failed.stdout
