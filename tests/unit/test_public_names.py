"""The public names: `__all__`, tab completion, what type checkers see, and the reference page agree."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs"))
import make_reference  # noqa: E402 - the script is not in a package

NAMES = [f"toolkit{package}" for package in make_reference.PACKAGES]
packages = pytest.mark.parametrize("name", NAMES)


@packages
def test_completion_offers_exactly_the_public_names(name):
    """`dir` of a package is its sorted `__all__`, also after its names have been used."""
    package = import_module(name)
    for public in package.__all__:
        assert getattr(package, public) is not None
    assert dir(package) == sorted(package.__all__) == sorted(set(package.__all__))


@packages
def test_type_checkers_see_the_public_names(name):
    """Each public name is imported by the package's `__init__`, at run time or for type checkers, from a module that lists it."""
    package = import_module(name)
    imported = {}
    for node in ast.walk(ast.parse(Path(package.__file__).read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "toolkit":
            imported |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
    for public in set(package.__all__) - {"__version__"}:
        value = getattr(package, public)
        home, original = imported[public]
        if isinstance(value, ModuleType):
            assert value.__name__ == f"{home}.{original}"
            continue
        module = import_module(home)
        assert getattr(module, original) is value
        assert original in module.__all__, f"{home}.__all__ does not list {original}"
    internal = {each for each in imported if not each.startswith("_")} - set(package.__all__)
    assert internal == set(), "imported under a public name, but not in __all__"


@packages
def test_an_unknown_name_is_an_attribute_error(name):
    """As of any module."""
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = import_module(name).nonsense


def test_the_reference_page_lists_the_public_names():
    """`docs/reference.md` is what `python docs/make_reference.py` writes."""
    assert make_reference.PLACE.read_text("utf-8") == make_reference.reference()


def test_importing_wire_and_move_imports_no_heavy_library():
    """Neither package imports pydantic, msgspec or pyarrow before a name that uses it."""
    code = (
        "import sys, toolkit.wire, toolkit.move; from toolkit.wire import parse_headers; "
        "from toolkit.move import parse_type_tag; "
        "assert not {'pydantic', 'msgspec', 'pyarrow', 'pandas'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
