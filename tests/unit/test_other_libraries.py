"""Importing the toolkit registers its dtypes, and changes nothing else of any other library."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# The libraries are imported first, with every module of theirs that the toolkit uses; then all modules of the toolkit.
PROGRAM = """
import contextlib, importlib, logging, pkgutil, sys, types
import toolkit

CACHE = "__slotnames__"  # of copyreg
OTHERS = {"numpy", "pandas", "pyarrow", "requests", "urllib3", "matplotlib", "IPython", "ipywidgets", "traitlets"}
OTHERS |= {"jupyter_client", "msgspec", "pydantic", "tqdm", "uvicorn", "duckdb", "anywidget"}

def everything():
    names = [one.name for one in pkgutil.walk_packages(toolkit.__path__, "toolkit.")]
    for name in names:
        if not name.endswith(("__main__", "_pytest_plugin")):
            importlib.import_module(name)
    return names

def of_others():
    return sorted(name for name, module in sys.modules.items() if module and name.partition(".")[0] in OTHERS)

def state():
    found = {}
    for name in of_others():
        for key, value in list(vars(sys.modules[name]).items()):
            if isinstance(value, types.FunctionType | type):
                found[name, key] = value
            if isinstance(value, type) and value.__module__.partition(".")[0] in OTHERS:
                found |= {(name, key, attribute): one for attribute, one in vars(value).items() if attribute != CACHE}
    loggers = {name: list(logging.getLogger(name).filters) for name in OTHERS}
    return found, loggers, {name for name, module in sys.modules.items() if module is None}

if "list" in sys.argv:
    everything()
    print(*of_others())
else:
    for name in sys.argv[1:]:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    before, loggers, absent = state()
    assert len(before) > 10_000 and len(everything()) > 100
    after, loggers_after, absent_after = state()
    changed = [key for key, value in before.items() if after.get(key) is not value]
    added = [key for key in after.keys() - before.keys() if len(key) == 3 and key[:2] in before]
    assert not changed and not added, (changed, added)
    assert (loggers, absent) == (loggers_after, absent_after)
"""


def run(*arguments):
    """Run the program in a fresh interpreter."""
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_no_class_function_or_logger_of_others_changes():
    """Attributes of classes and functions of modules are the same objects after everything was imported."""
    run(*run("list").split())


def test_the_library_of_a_curve_leaves_the_recursion_limit():
    """py_ecc raises it; JSON that is nested too deeply then ends the process."""
    if (
        importlib.util.find_spec("py_ecc") is None
    ):  # to import it here would raise the limit of all tests after this one
        pytest.skip("the extra `curves` is not installed")
    program = """
import json, sys
from toolkit.vm._natives import _bls12381
limit = sys.getrecursionlimit()
_bls12381._library()
assert "py_ecc" in sys.modules and sys.getrecursionlimit() == limit
try:
    json.loads("[" * 100_000)
except RecursionError:
    print("refused")
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "refused\n"), done.stderr
