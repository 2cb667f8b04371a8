"""Names of a package that are imported on first use, so that importing the package is fast."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def imported_on_use(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    Parameters
    ----------
    package : str
        ``__name__`` of the package.
    homes : mapping of str to str
        Public names by the module of the package that defines them, separated by spaces. Public modules are listed
        among their own names, or under an empty key.
    """
    module_of = {name: module for module, names in homes.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = module_of[name] or name
        module = import_module(f"{package}.{home}")
        value = module if name == home else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted(module_of), list(module_of)
