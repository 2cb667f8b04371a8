"""Another distribution that installs a package named `toolkit` is detected and named."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import toolkit
from toolkit._present import same_name

_ROOT = Path(__file__).parents[2]


def test_connect_warns_of_a_distribution_that_shares_the_package(tmp_path, monkeypatch):
    """The warning names the distribution, the folder, and the commands that repair the environment."""
    (tmp_path / "toolkit-0.0.3.dist-info").mkdir()
    monkeypatch.setattr(same_name, "_PACKAGE", tmp_path / "toolkit")
    with pytest.warns(UserWarning, match=r"toolkit 0\.0\.3 is installed too.*pip uninstall toolkit"):
        toolkit.connect("local").close()


def test_the_command_says_so_where_the_package_was_replaced(tmp_path):
    """With the other distribution's `toolkit/__init__.py`, the command ends with the reason in one line."""
    shutil.copytree(
        _ROOT / "toolkit", tmp_path / "toolkit", ignore=shutil.ignore_patterns("__pycache__", "data", "*.js")
    )
    (tmp_path / "toolkit" / "__init__.py").write_text("")
    (tmp_path / "toolkit-0.0.3.dist-info").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", "from toolkit.cli import main; main(['info'])"],
        cwd=tmp_path, env={"PATH": "", "HOME": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("ledger-toolkit: error: the distribution toolkit 0.0.3 is installed too")
    assert len(done.stderr.splitlines()) == 1
