"""Wide integers (u128, u256, i128, i256) for Arrow and pandas, exact sums, and frames in Arrow and Parquet.

Importing the package imports neither pandas nor pyarrow. Names are imported on first use, and the dtypes and Arrow
types are registered as soon as pandas and pyarrow are imported.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from toolkit._present.names import imported_on_use as _imported_on_use

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from toolkit.dtypes._arithmetic import exact_diff as exact_diff
    from toolkit.dtypes._arithmetic import exact_sum as exact_sum
    from toolkit.dtypes._arithmetic import scaled as scaled
    from toolkit.dtypes._arrow import WideIntType as WideIntType
    from toolkit.dtypes._arrow import i128 as i128
    from toolkit.dtypes._arrow import i256 as i256
    from toolkit.dtypes._arrow import u128 as u128
    from toolkit.dtypes._arrow import u256 as u256
    from toolkit.dtypes._arrow import wide_from_ints as wide_from_ints
    from toolkit.dtypes._arrow import wide_from_text as wide_from_text
    from toolkit.dtypes._extension import WideIntArray as WideIntArray
    from toolkit.dtypes._extension import WideIntDtype as WideIntDtype
    from toolkit.dtypes._tables import describe as describe
    from toolkit.dtypes._tables import read_parquet as read_parquet
    from toolkit.dtypes._tables import to_arrow as to_arrow
    from toolkit.dtypes._tables import to_pandas as to_pandas
    from toolkit.dtypes._tables import write_parquet as write_parquet

# Public names by module, separated by spaces.
_HOMES = {
    "_arithmetic": "exact_diff exact_sum scaled",
    "_arrow": "WideIntType i128 i256 u128 u256 wide_from_ints wide_from_text",
    "_extension": "WideIntArray WideIntDtype",
    "_tables": "describe read_parquet to_arrow to_pandas write_parquet",
}
__getattr__, __dir__, __all__ = _imported_on_use(__name__, _HOMES)


# registration with pandas and Arrow, which may be imported before or after this package -----------------------------


def _with_pyarrow() -> None:
    import_module("toolkit.dtypes._arrow")  # registers its types on import


def _with_pandas() -> None:
    import_module("toolkit.dtypes._extension")  # registers its dtype on import


class _ImportHook:
    """An import hook that runs an action once a library has been imported; other finders find the library.

    An action imports modules of this package, so it waits until those that are being imported are complete: the first
    import of a module can be the one that imports the library.
    """

    def __init__(self) -> None:
        self.actions: dict[str, Callable[[], None]] = {}
        self._due: list[Callable[[], None]] = []
        self._incomplete = 0  # modules of this package

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the other finders, with a loader that runs the actions after the module."""
        if name not in self.actions and not name.startswith(f"{__name__}."):
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                self._call_after(spec.loader, name)
                return spec
        return None

    def _call_after(self, loader: Any, name: str) -> None:
        """Run the actions that are due after the loader has executed the module."""
        run = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module  # restores the method of the class
            is_own = name.startswith(f"{__name__}.")
            self._incomplete += is_own
            try:
                run(module)
            finally:
                self._incomplete -= is_own
            action = self.actions.pop(name, None)
            if action is not None:
                self._due.append(action)
            while self._due and not self._incomplete:
                self._due.pop(0)()

        loader.exec_module = exec_module


_hook = _ImportHook()


def _install() -> None:
    """Register with the libraries that are imported, and later with the others; a second call has no effect."""
    for name, action in {"pyarrow": _with_pyarrow, "pandas": _with_pandas}.items():
        if name in sys.modules:
            action()
        else:
            _hook.actions[name] = action
    if _hook.actions and _hook not in sys.meta_path:
        sys.meta_path.insert(0, _hook)


_install()
