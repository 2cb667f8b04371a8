"""The examples in docstrings run and print what they show."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def modules_with_examples() -> list[str]:
    files = sorted((ROOT / "toolkit").rglob("*.py"))
    found = [file.relative_to(ROOT).with_suffix("") for file in files if ">>> " in file.read_text("utf-8")]
    return [".".join(path.parts).removesuffix(".__init__") for path in found]


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_print_what_they_show(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each example of a module prints the output shown below it."""
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted, "the module is listed, but none of its examples was found"
    assert not results.failed, capsys.readouterr().out
