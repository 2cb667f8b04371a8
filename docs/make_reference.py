"""Write ``docs/reference.md``: every public name of the toolkit with its signature and the first line of its docstring.

Run from the repository's root after changing a public name or docstring: ``python docs/make_reference.py``.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated, get_origin

PACKAGES = ["", ".embedded", ".plots", ".reports", ".widgets", ".wire", ".move", ".dtypes"]
PLACE = Path(__file__).with_name("reference.md")
HEAD = """# Reference

All public names: what each package lists in `__all__`. Everything else is internal and may change without notice.
`help(toolkit.connect)` shows the parameters, units and errors of a name. `docs/make_reference.py` generates this page.
"""


def summary(value: object) -> str:
    """Return the first paragraph of a docstring on one line; of a value without one, its type."""
    if get_origin(value) is Annotated:
        return "a Move type for annotations"
    documented = inspect.isroutine(value) or inspect.isclass(value) or inspect.ismodule(value)
    text = inspect.getdoc(value) if documented else None
    if not text:
        return f"a `{type(value).__name__}`"
    return " ".join(text.split("\n\n", 1)[0].split()).replace("|", "\\|")


def kind(value: object) -> str:
    """Return what a public name is: module, class, function or constant."""
    if isinstance(value, ModuleType):
        return "module"
    if inspect.isclass(value):
        return "exception" if issubclass(value, BaseException) else "class"
    if get_origin(value) is Annotated:
        return "type"
    return "function" if callable(value) else "constant"


def section(package: str) -> str:
    """Return the table of one package."""
    module = import_module(f"toolkit{package}")
    rows = [(name, getattr(module, name)) for name in sorted(module.__all__, key=str.lower)]
    lines = [f"\n## `toolkit{package}`\n", (summary(module)), "\n| name | kind | summary |\n|---|---|---|"]
    lines += [f"| `{name}` | {kind(value)} | {summary(value)} |" for name, value in rows]
    return "\n".join(lines) + "\n"


def reference() -> str:
    """Return the page as text."""
    return HEAD + "".join(section(package) for package in PACKAGES)


if __name__ == "__main__":
    PLACE.write_text(reference(), "utf-8")
