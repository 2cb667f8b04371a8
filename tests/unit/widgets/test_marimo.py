"""In marimo, which creates widgets only while a cell runs."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

import toolkit
from toolkit.errors import InputError
from toolkit.widgets import Workbench


@pytest.fixture
def marimo(monkeypatch):
    module = ModuleType("marimo")
    module.running_in_notebook = lambda: True
    monkeypatch.setitem(sys.modules, "marimo", module)


@pytest.mark.usefixtures("marimo")
def test_the_workbench_has_all_its_forms_at_once():
    """None is created when its tab is opened; so it needs the node."""
    with pytest.raises(InputError, match="Workbench"):
        Workbench()
    with toolkit.connect() as node:
        bench = Workbench(node)
        assert set(bench._children) == {name for name, _ in bench._tabs}
        bench.close()


def test_elsewhere_forms_are_created_when_they_are_needed():
    """Opening the workbench is fast."""
    with toolkit.connect() as node:
        bench = Workbench(node)
        assert bench._children == {}
        bench.close()
