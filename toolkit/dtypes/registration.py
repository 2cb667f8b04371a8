"""Register the wide dtypes with pandas and Arrow, whichever of them is imported before or after this package.

Imports neither: a library that is not loaded yet is waited for with an import hook.
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
    from toolkit.dtypes.arrow import register_arrow_types

    register_arrow_types()


def _with_pandas() -> None:
    import toolkit.dtypes.extension  # noqa: F401  # registers its dtype on import


class _Waiting:
    """A finder that finds nothing itself: it runs an action once a library has been imported."""

    def __init__(self) -> None:
        self.actions: dict[str, Callable[[], None]] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Let the other finders look, and have the loader call back."""
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
        """Wrap one loader's one run."""
        run = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module  # the instance's, so that the loader is as it was
            run(module)
            self.actions.pop(name, None)
            action()

        loader.exec_module = exec_module


_waiting = _Waiting()


def install() -> None:
    """Register now with what is loaded, later with the rest; a second call changes nothing."""
    for name, action in {"pyarrow": _with_pyarrow, "pandas": _with_pandas}.items():
        if name in sys.modules:
            action()
        else:
            _waiting.actions[name] = action
    if _waiting.actions and _waiting not in sys.meta_path:
        sys.meta_path.insert(0, _waiting)
