"""The public names: `__all__`, tab completion, what type checkers see, and the reference agree."""

from __future__ import annotations

import ast
import inspect
import pkgutil
import re
import subprocess
import sys
from collections import Counter
from importlib import import_module
from itertools import combinations
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ["", ".embedded", ".plots", ".reports", ".widgets", ".wire", ".move", ".dtypes", ".teaching", ".vm"]
NAMES = [f"toolkit{package}" for package in PACKAGES]
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
    """Each public name is imported by the package's `__init__`, or by its stub, where names are imported on first use."""
    package = import_module(name)
    source = Path(package.__file__)
    stub = source.with_suffix(".pyi")
    imported = {}
    for node in ast.walk(ast.parse((stub if stub.exists() else source).read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            home = ".".join(filter(None, [name if node.level else "", node.module]))
            imported |= {alias.asname or alias.name: (home, alias.name) for alias in node.names}
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute):  # from outside the package
            imported[ast.unparse(node.targets[0])] = (ast.unparse(node.value.value), node.value.attr)
    for public in set(package.__all__) - {"__version__"}:
        value = getattr(package, public)
        home, original = imported[public]
        if isinstance(value, ModuleType):
            assert value.__name__ == f"{home}.{original}"
            continue
        assert getattr(import_module(home), original) is value
    internal = {each for each in imported if not each.startswith("_")} - set(package.__all__)
    assert internal == set(), "imported under a public name, but not in __all__"


@packages
def test_an_unknown_name_is_an_attribute_error(name):
    """As of any module."""
    with pytest.raises(AttributeError, match="nonsense"):
        _ = import_module(name).nonsense


def entries() -> list[tuple[str, object]]:
    """Return the names that the pages of the reference describe, with what they are."""
    directive = re.compile(
        r"^\.\. (automodule|autosummary|autoclass|autofunction|py:data|py:module|currentmodule):: ?(\S*)"
    )
    found = []
    for page in sorted((ROOT / "docs" / "reference").glob("*.md")):
        module, listing = "", False
        for line in page.read_text("utf-8").splitlines():
            if match := directive.match(line):
                kind, name = match.groups()
                listing = kind == "autosummary"
                if kind in {"automodule", "currentmodule"}:
                    module = name
                if kind in {"automodule", "py:module"}:
                    found.append(name)
                elif name and kind != "currentmodule":
                    found.append(name if name.startswith("toolkit.") else f"{module}.{name}")
            elif listing and re.fullmatch(r"   [\w.]+", line):
                found.append(line.strip() if line.strip().startswith("toolkit.") else f"{module}.{line.strip()}")
    return [(name, pkgutil.resolve_name(name)) for name in found]


def test_the_reference_describes_every_public_name_once():
    """Names that two packages export are described with one of them; what is described is public."""
    described = entries()
    twice = [name for name, count in Counter(name for name, _ in described).items() if count > 1]
    public = {
        f"{name}.{each}": getattr(import_module(name), each) for name in NAMES for each in import_module(name).__all__
    }
    errors = import_module("toolkit.errors")
    public |= {f"toolkit.errors.{each}": getattr(errors, each) for each in errors.__all__}
    listed = dict(described)
    packages = {name for name in NAMES if name != "toolkit"} | {"toolkit.errors"}
    missing = [
        name for name, value in public.items() if name not in listed and not any(value is one for _, one in described)
    ]
    again = [
        f"{one} and {other}"
        for one, other in combinations([name for name, _ in described], 2)
        if inspect.isclass(listed[one]) and listed[one] is listed[other]
    ]
    assert (missing, [*twice, *again], set(listed) - set(public) - packages) == ([], [], set())


NO_EXAMPLE = {
    "a type in annotations, which examples of contracts use": """
        toolkit.embedded: Option String T0 T1 TypeArgument address i8 i16 i32 i64 i128 i256 signer
        toolkit.embedded: u8 u16 u32 u64 u128 u256 vector
        toolkit.move: Layout TypeTag
        toolkit.wire: AccountSignature TransactionSignature""",
    "a constant": """
        toolkit: __version__
        toolkit.embedded: OBJECT_GROUP""",
}
"""Public names without an example, by reason."""


def example_in(value: object) -> bool:
    """Return whether a docstring has an example: that of the object, or for a class that of one of its own members."""
    own = [member for name, member in vars(value).items() if name[0] != "_"] if inspect.isclass(value) else []
    return any(">>> " in (getattr(one, "__doc__", None) or "") for one in [value, *own])


def test_every_public_name_has_an_example():
    """What the reference describes is shown in use; `test_doctests` runs the examples."""
    excepted = set()
    for names in NO_EXAMPLE.values():
        for line in names.split("\n")[1:]:
            package, _, each = line.strip().partition(": ")
            excepted |= {f"{package}.{name}" for name in each.split()}
    public = {
        f"{name}.{each}": getattr(import_module(name), each)
        for name in [*NAMES, "toolkit.errors"]
        for each in import_module(name).__all__
    }
    without = {name for name, value in public.items() if not isinstance(value, ModuleType) and not example_in(value)}
    assert sorted(without) == sorted(excepted)


def test_importing_wire_and_move_imports_no_heavy_library():
    """Neither package imports pydantic or pyarrow before a name that uses it."""
    code = (
        "import sys, toolkit.wire, toolkit.move; from toolkit.wire import LedgerState; "
        "from toolkit.move import parse_type_tag; "
        "assert not {'pydantic', 'pyarrow', 'pandas'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
