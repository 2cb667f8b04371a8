"""Registration of the wide integer types with pandas and Arrow, which may be imported before or after this package.

This module imports neither: an import hook registers the types once a library has been imported.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

__all__ = ["install"]


def _with_pyarrow() -> None:
    from toolkit.dtypes._arrow import register_arrow_types

    register_arrow_types()


def _with_pandas() -> None:
    import toolkit.dtypes._extension  # noqa: F401  # registers its dtype on import


class _ImportHook:
    """An import hook that runs an action once a library has been imported; other finders find the library."""

    def __init__(self) -> None:
        self.actions: dict[str, Callable[[], None]] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the other finders, with a loader that runs the action after the module."""
        action = self.actions.get(name)
        if action is None:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                self._call_after(spec.loader, name, action)
                return spec
        return None

    def _call_after(self, loader: Any, name: str, action: Callable[[], None]) -> None:
        """Run `action` after the loader has executed the module."""
        run = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module  # restores the method of the class
            run(module)
            self.actions.pop(name, None)
            action()

        loader.exec_module = exec_module


_hook = _ImportHook()


def install() -> None:
    """Register with the libraries that are imported, and later with the others; a second call has no effect."""
    for name, action in {"pyarrow": _with_pyarrow, "pandas": _with_pandas}.items():
        if name in sys.modules:
            action()
        else:
            _hook.actions[name] = action
    if _hook.actions and _hook not in sys.meta_path:
        sys.meta_path.insert(0, _hook)
