"""The scripts of the gallery are short and show every figure; building the documentation runs them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import toolkit

ROOT = Path(__file__).resolve().parents[2]
GALLERY = ROOT / "docs" / "gallery"
SCRIPTS = sorted(GALLERY.glob("*/*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_is_short_and_says_what_it_draws(script):
    """Under 28 lines, with a title and a sentence."""
    text = script.read_text("utf-8")
    assert len(text.splitlines()) < 28
    title, line, *rest = ast.get_docstring(ast.parse(text)).splitlines()
    assert set(line) == {"="}
    assert len(line) >= len(title)
    assert any(rest)


def test_every_figure_has_an_example():
    """Each function of `toolkit.plots` is in a script."""
    text = "\n".join(script.read_text("utf-8") for script in SCRIPTS)
    assert [name for name in toolkit.plots.__all__ if f"plots.{name}(" not in text] == []


def test_every_sample_is_documented():
    """README of the folder names each file, and the script that makes it again."""
    folder = ROOT / "data" / "samples"
    text = (folder / "README.md").read_text("utf-8")
    assert [path.name for path in folder.iterdir() if path.name != "README.md" and f"{path.name}" not in text] == []


def test_the_sample_run_is_complete():
    """Its rows are those of the demo study on the embedded ledger, whose digest is known."""
    run = toolkit.Run.open(ROOT / "data" / "samples" / "demo")
    assert (len(run.observations), len(run.steps)) == (1468, 36)
    assert run.digest == "e91c86ba88da0593d58e6f648f4a3dec"
