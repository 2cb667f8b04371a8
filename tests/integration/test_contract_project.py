"""The example project of the how-to page: a contract, its tests and its gate, run as its author would."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

_PROJECT = Path(__file__).parents[2] / "docs" / "how-to" / "shop"


def test_the_project_passes_and_its_gate_fails_a_costlier_upgrade(tmp_path):
    """As it is; and beside it with an upgrade that adds up all sales twice, in one run of pytest, which takes seconds to start."""
    folder = shutil.copytree(_PROJECT, tmp_path / "shop", ignore=shutil.ignore_patterns("__pycache__"))
    text = (folder / "shop.py").read_text(encoding="utf-8")
    dearer = text.replace(
        "return len(till.sales) * till.price", "return sum(self.each([*till.sales, *till.sales])) // 2"
    )
    assert dearer != text
    (folder / "dearer.py").write_text(dearer, encoding="utf-8")
    tests = (folder / "test_shop.py").read_text(encoding="utf-8").replace("from shop import", "from dearer import")
    (folder / "test_dearer.py").write_text(tests, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", folder, folder]
    command += ["-p", "ledger-toolkit"]
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # some plugins take seconds to import
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 1
    assert "1 failed, 7 passed" in done.stdout, done.stdout
    assert "FAILED test_dearer.py::test_the_upgrade_costs_no_more" in done.stdout
