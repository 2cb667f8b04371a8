"""The public names of `toolkit.wire` and `toolkit.move`."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from toolkit import move, wire

PACKAGES = [wire, move]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_every_public_name_can_be_imported(package) -> None:
    """`__all__`, `__dir__`, the lazy table, what type checkers see and the modules agree."""
    assert dir(package) == sorted(package.__all__) == sorted(set(package.__all__))
    tree = ast.parse(Path(package.__file__).read_text("utf-8"))
    imports = [
        node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module.startswith("toolkit.")
    ]
    for_checkers = {alias.asname: node.module for node in imports for alias in node.names}
    assert sorted(for_checkers) == sorted(package.__all__)
    for name, home in for_checkers.items():
        value = getattr(package, name)
        module = __import__(home, fromlist=[name])
        assert getattr(module, name) is value
        assert name in module.__all__
        assert home.rpartition(".")[2] == package._MODULE_OF[name]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_an_unknown_name_is_an_attribute_error(package) -> None:
    """As of any module."""
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = package.nonsense


def test_importing_the_packages_imports_no_heavy_library() -> None:
    """Neither package imports pydantic, msgspec or pyarrow before a name that uses it."""
    code = (
        "import sys, toolkit.wire, toolkit.move; from toolkit.wire import parse_headers; "
        "from toolkit.move import parse_type_tag; "
        "assert not {'pydantic', 'msgspec', 'pyarrow', 'pandas'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
