"""The house itself: imports point one way and in no circle, names are what they are said to be, the two package lists agree."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "toolkit"

# Each layer with the layers it may import. Order of design section 3; `errors`, `_present` and the version are for all.
ALLOWED = {
    "_present": set(),
    "dtypes": set(),
    "move": {"dtypes"},
    "wire": {"dtypes", "move"},
    "vm": {"move", "wire"},
    "frames": {"dtypes", "move", "wire"},
    "client": {"dtypes", "move", "wire", "vm", "frames"},
    "archive": {"dtypes", "move", "wire", "frames", "client"},
    "fork": {"dtypes", "move", "wire", "vm", "frames", "client", "archive"},
    "gas": {"dtypes", "move", "wire", "vm", "frames", "client", "archive", "fork"},
    "plots": {"dtypes", "move", "wire", "vm", "frames", "client", "fork", "gas"},
    "reports": {"dtypes", "move", "wire", "vm", "frames", "client", "fork", "gas", "plots"},
    "widgets": {"dtypes", "move", "wire", "vm", "frames", "client", "fork", "gas", "plots"},
    "embedded": {"dtypes", "move", "wire", "vm"},
    "teaching": {"dtypes", "move", "wire", "frames", "client", "gas", "embedded"},
    "cli": {
        "dtypes",
        "move",
        "wire",
        "vm",
        "frames",
        "client",
        "fork",
        "archive",
        "gas",
        "plots",
        "reports",
        "widgets",
        "teaching",
    },
}
# The exceptions: connect() and the command line start or ask the embedded node, and a node makes forks, inside a function.
LAZY_EXCEPTION = {
    ("client", "_http.py", "embedded"),
    ("client", "_ledger_transport.py", "embedded"),
    ("cli", "_studies.py", "embedded"),
    ("client", "_node.py", "fork"),
}


@cache
def parsed(source: str) -> ast.Module:
    return ast.parse(source)


def imported_names(source: str, *, run: bool = False) -> list[tuple[str, bool]]:
    """Return (dotted name, at module level) for each name that a module imports; with `run`, not those for typing."""
    tree = parsed(source)
    top = {id(node) for node in tree.body}
    typing = [one for one in tree.body if isinstance(one, ast.If) and ast.unparse(one.test) == "TYPE_CHECKING"]
    left_out = {id(node) for block in typing if run for node in ast.walk(block)}
    found = []
    for node in ast.walk(tree):
        if id(node) in left_out:
            continue
        if isinstance(node, ast.Import):
            found += [(alias.name, id(node) in top) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found += [(f"{node.module}.{alias.name}", id(node) in top) for alias in node.names]
    return found


@pytest.mark.parametrize("layer", ALLOWED)
def test_imports_point_one_way(layer):
    """No layer imports from a layer on its right, not even inside a function, but for the one exception."""
    place = PACKAGE / layer
    files = sorted(place.rglob("*.py")) if place.is_dir() else [PACKAGE / f"{layer}.py"]
    assert files
    for file in files:
        for name, at_top in imported_names(file.read_text("utf-8")):
            if not name.startswith("toolkit."):
                continue
            found = name.split(".")[1]
            if layer != "_present" and found in {"errors", "_present", "__version__"}:
                continue
            if found == layer or found in ALLOWED[layer]:
                continue
            lazy = not at_top and (layer, file.name, found) in LAZY_EXCEPTION
            assert lazy, f"{file.relative_to(ROOT)} imports toolkit.{found}"


def import_circle(sources: dict[str, str]) -> list[str]:
    """Return modules that import each other in a circle; empty if there are none.

    An import counts at the top and inside a function. Under ``TYPE_CHECKING`` it is never run, and saves a protocol
    with one implementation. ``from package import name`` is an import of the module ``package.name`` if there is one,
    and otherwise of the package.
    """
    imports = {}
    for module, source in sources.items():
        names = [name for name, _ in imported_names(source, run=True)]
        found = {name if name in sources else name.rpartition(".")[0] for name in names}
        imports[module] = (found & sources.keys()) - {module}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


@pytest.mark.parametrize(
    "back",
    [
        "from toolkit.gas._one import Record",
        "from toolkit.gas import _one as one",
        "import toolkit.gas._one",
        "def late():\n    from toolkit.gas._one import Record",
    ],
)
def test_a_circle_is_found_wherever_its_imports_are(back):
    """The check itself: a circle counts if one of its imports is late, but not if it serves annotations only."""
    sources = {"toolkit.gas._one": "from toolkit.gas._two import words", "toolkit.gas._two": "from toolkit import wire"}
    assert import_circle(sources) == []
    circle = import_circle(sources | {"toolkit.gas._two": back})
    assert set(circle) == set(sources)
    typing = "if TYPE_CHECKING:\n    from toolkit.gas._one import Record"
    assert import_circle(sources | {"toolkit.gas._two": typing}) == []


def test_no_modules_import_each_other_in_a_circle():
    """What two modules need of each other when they run is in a module below both.

    Packages are modules, too, except for `toolkit` itself: it defines the version, and lists names imported on use.
    """
    sources = {}
    for file in PACKAGE.rglob("*.py"):
        place = file.parent if file.name == "__init__.py" else file.with_suffix("")
        sources[".".join(place.relative_to(ROOT).parts)] = file.read_text("utf-8")
    del sources["toolkit"]
    circle = import_circle(sources)
    assert not circle, f"import circle: {' -> '.join(circle)}"


def test_every_layer_is_under_the_rule():
    """A new package or module cannot slip past the rule by having no entry in it."""
    there = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert there - {"__init__", "__main__", "errors"} == set(ALLOWED)


def test_import_toolkit_loads_no_heavy_library():
    """`import toolkit` stays cheap: none of the libraries it uses later is loaded by it."""
    heavy = [
        "pycurl",
        "pandas",
        "pyarrow",
        "numpy",
        "requests",
        "matplotlib",
        "pydantic",
        "msgspec",
        "uvicorn",
        "ipywidgets",
        "typer",
    ]
    code = f"import sys, toolkit; print([name for name in {heavy!r} if name in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert out.stdout.strip() == "[]"


def test_a_study_loads_the_machine_only_to_execute():
    """Studies read modules and state keys, which takes a small part of the machine; a run of views executes nothing."""
    code = "import sys, toolkit; toolkit.Study; print('toolkit.vm._interpreter' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert out.stdout.strip() == "False"


def test_every_file_of_the_package_is_in_the_wheel():
    """Files that are not Python, such as the stubs from which names are imported on use, match the package data."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    shipped = {path for pattern in settings["package-data"]["toolkit"] for path in PACKAGE.glob(pattern)}
    files = {path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix not in {".py", ".pyc"}}
    assert files == {path for path in shipped if path.suffix != ".pyc"}
    assert len({path for path in files if path.suffix == ".pyi"}) == 9


def test_environment_and_pyproject_name_the_same_packages_and_floors():
    """`environment.yml` and `pyproject.toml` cannot drift apart; pip installs packages that not every platform has."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = {"python" + project["requires-python"]}
    parts = [dependency.partition(";") for dependency in project["dependencies"]]
    everywhere = [package for package, _, marker in parts if "win32" not in marker]
    wanted |= {dependency.replace("matplotlib>", "matplotlib-base>") for dependency in everywhere}
    extras = project["optional-dependencies"]
    by_pip = ("aptos-sdk", "axe-core-python", "duckdb", "playwright")
    wanted |= {one.lower() for one in extras["notebook"] + extras["test"] if not one.startswith(by_pip)}
    text = (ROOT / "environment.yml").read_text("utf-8")
    listed = re.findall(r"^  - ([a-z][\w-]*[><=][^\s]+)$", text, re.MULTILINE)
    assert set(listed) == wanted
    assert len(listed) == len(wanted)
    assert "- --editable .[test]\n" in text


def test_a_lean_install_names_all_packages_but_the_optional_ones():
    """What the how-to installs by name, and what it calls optional, are together what `pyproject.toml` requires."""
    page = (ROOT / "docs" / "how-to" / "install.md").read_text("utf-8").partition("## A lean install")[2]
    optional = set(re.findall(r"`([\w-]+)`", page.partition("Without them")[0]))
    named = re.search(r"^pip install ((?:[\w-]+(?: \\\n)? *)+)$", page, re.MULTILINE)[1].replace("\\\n", "").split()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    required = [re.match(r"[\w-]+", dependency)[0] for dependency in project["dependencies"]]
    assert sorted([*named, *optional]) == sorted(required)


def test_the_version_is_told_once():
    """The package tells the version that the changelog opens with."""
    import toolkit

    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert re.search(rf"^## \[?(Unreleased|{re.escape(toolkit.__version__)})", changelog, re.MULTILINE)


def _section(frame):
    """Return the section of a frame in the data dictionary: its columns with type, unit, meaning and source."""
    rows = [f"| `{one.name}` | {one.type} | {one.unit} | {one.meaning} | {one.source} |" for one in frame]
    head = ["| column | Arrow type | unit | meaning | source |", "|---|---|---|---|---|"]
    return "\n".join([f"## {frame.name.capitalize()}", "", *head, *rows, ""])


def test_the_data_dictionary_on_paper_is_the_one_in_code():
    """`data/README.md` lists exactly the columns of the schemas."""
    from toolkit.frames._schema import FRAMES

    paper = (ROOT / "data" / "README.md").read_text("utf-8")
    parts = {"outcome of a call", "version read", "kind of transaction", "state diffs", "timeline of a run"}
    sections = "\n".join(_section(frame) for name, frame in FRAMES.items() if name not in parts)
    assert sections in paper, f"data/README.md must contain:\n{sections}"


def test_errors_of_the_package_are_in_one_file():
    """No class outside of `toolkit/errors.py` belongs to its tree, and the tree in its docstring names every class."""
    tree = ast.parse((PACKAGE / "errors.py").read_text("utf-8"))
    names = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    told = ast.get_docstring(tree) or ""
    assert [name for name in names if not re.search(rf"^\W*{name}\b", told, re.MULTILINE)] == []
    elsewhere = [
        f"{place.relative_to(PACKAGE)}: {node.name}"
        for place in PACKAGE.rglob("*.py")
        if place.name != "errors.py" or place.parent != PACKAGE
        for node in ast.walk(parsed(place.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
        and any(isinstance(base, ast.Name) and base.id in names for base in node.bases)
    ]
    assert elsewhere == []
