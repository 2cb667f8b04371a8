"""CONTRIBUTING.md is true: every path, make target and name that it has in code font exists, in the file it names."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = re.sub(r"```.*?```", "", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), flags=re.DOTALL)
ENTRIES = re.split(r"^- ", PAGE[PAGE.index("## To add") :], flags=re.MULTILINE)[1:]
PLACES = [path for top in ("toolkit", "tests", "docs", "data") for path in (ROOT / top).rglob("*")]
PATH = re.compile(r"[\w.]+/[\w./]*|[\w./]+\.(py|md|txt|j2)")
NAME = re.compile(r"\.?([A-Za-z_]\w*(?:\.\w+)*)(?:=|\(.*\))?", re.DOTALL)


def paths_in(text: str) -> list[str]:
    """Return the paths that a text has in code font, also those of a command."""
    found = [word for span in re.findall(r"`([^`]+)`", text) for word in span.split()]
    return [word.rstrip("/") for word in found if PATH.fullmatch(word)]


def files_of(path: str) -> list[Path]:
    """Return the files and folders of a path from the root, or that end in it: a module may lack its package."""
    there = ROOT / path
    return [there] if there.exists() else [place for place in PLACES if place.as_posix().endswith(f"/{path}")]


def names_in(text: str) -> set[str]:
    """Return the parts of the names that a text has in code font."""
    found = [NAME.fullmatch(span) for span in re.findall(r"`([^`]+)`", text) if not PATH.fullmatch(span)]
    return {part for one in found if one for part in one[1].split(".")}


def test_every_path_and_make_target_exists():
    """Paths of files and folders, also of benchmarks in a command; `make test` and the others are in the Makefile."""
    paths = paths_in(PAGE)
    assert len(paths) > 30
    assert [path for path in paths if not files_of(path)] == []
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = re.findall(r"`make (\w+)`", PAGE)
    assert [target for target in targets if not re.search(rf"^{target}:", makefile, re.MULTILINE)] == []


@cache
def defined_in(file: Path) -> frozenset[str]:
    """Return the names that a file defines: classes, functions, variables, attributes, parameters; other files, words."""
    text = file.read_text("utf-8")
    if file.suffix != ".py":
        return frozenset(re.findall(r"\w+", text))
    found = {file.stem, file.parent.name}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.id if isinstance(node, ast.Name) else node.attr)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
    return frozenset(found)


def test_every_name_exists():
    """Each part of a dotted name is a module, or is defined in one: a function, class, variable, attribute, parameter."""
    modules = [path for path in PLACES if path.suffix == ".py" and "toolkit" in path.relative_to(ROOT).parts]
    modules += (ROOT / "notebooks" / "solutions").glob("*.py")
    names = names_in(PAGE)
    assert len(names) > 100
    assert names - {"toolkit"}.union(*map(defined_in, modules)) == set()


def test_a_name_is_defined_in_the_module_that_the_page_puts_it_in():
    """The module is in the dotted name or follows the name, as in "`send_all` in `x.py`" and "`send_all` (`x.py`)"."""
    placed = re.findall(r"`([\w.]*\w)`\s+(?:in\s+|\()`([\w./]+\.py)`", PAGE)
    for span in re.findall(r"`([^`]+)`", PAGE):
        module, _, name = span.rpartition(".")
        if "._" in f".{module}" and re.fullmatch(r"[\w.]+", span) and not PATH.fullmatch(span):
            placed.append((name, f"{module.replace('.', '/')}.py"))
    assert len(placed) > 40
    names = [(name, path, {*name.split(".")}) for name, path in placed]
    assert [
        (name, path) for name, path, parts in names if not any(parts <= defined_in(file) for file in files_of(path))
    ] == []


@pytest.mark.parametrize(
    "row", re.findall(r"^\| .*`.*\|$", PAGE, re.MULTILINE), ids=lambda row: row.split("|")[1].strip()
)
def test_what_a_row_of_the_map_names_is_in_its_modules(row):
    """A row names modules, or a package, in which each of its names is defined."""
    places = [place for span in re.findall(r"`([\w./]+)`", row) for place in files_of(span)]
    modules = [module for place in places for module in ([place] if place.is_file() else place.glob("*.py"))]
    assert names_in(row) - frozenset().union(*map(defined_in, modules)) == set()


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.split("**")[1])
def test_what_an_entry_names_is_in_its_files(entry):
    """What has to change to add something is in one of the files that its entry names."""
    files = [file for path in paths_in(entry) for file in files_of(path) if file.is_file()]
    text = "".join(file.read_text("utf-8") for file in files) + " ".join(file.stem for file in files)
    assert {name for name in names_in(entry) if not re.search(rf"\b{name}\b|{name.removesuffix('_')}_", text)} == set()
