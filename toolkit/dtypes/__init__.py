"""Wide integers (u128, u256, i128, i256) for Arrow and pandas, exact sums, and frames in Arrow and Parquet.

Importing the package imports neither pandas nor pyarrow. The dtypes and Arrow types are registered as soon as pandas is
imported, or a name of the package is used, and with Dask as soon as it is imported.
"""

from __future__ import annotations

import sys as _sys
from importlib import import_module as _import_module
from importlib.util import find_spec as _find_spec
from typing import TYPE_CHECKING, Any

from toolkit._present.names import imported_on_use as _imported_on_use

if TYPE_CHECKING:
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
    from toolkit.dtypes._tables import write_excel as write_excel
    from toolkit.dtypes._tables import write_parquet as write_parquet

# Public names by module, separated by spaces.
_HOMES = {
    "_arrow": "WideIntType i128 i256 u128 u256 wide_from_ints wide_from_text",
    # Also those of `_arithmetic`: whoever uses a name of the package finds the dtypes registered.
    "_extension": "WideIntArray WideIntDtype exact_diff exact_sum scaled",
    "_tables": "describe read_parquet to_arrow to_pandas write_excel write_parquet",
}
__getattr__, __dir__, __all__ = _imported_on_use(__name__, _HOMES)


class _AfterImport:
    """An import hook that registers the dtypes when a library is imported after this package."""

    def __init__(self, library: str, own: str) -> None:
        self._library, self._own = library, f"{__name__}.{own}"

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the spec of the library, with a loader that registers the dtypes after it."""
        del path, target
        if name != self._library:
            return None
        _sys.meta_path.remove(self)
        spec = _find_spec(name)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                run(module)
                # If a module of this package is what imports pandas, it is only half imported. It is then used through
                # `_extension`, which is imported after it.
                own = [module for name, module in _sys.modules.items() if name.startswith(f"{__name__}._")]
                if not any(getattr(module.__spec__, "_initializing", False) for module in own):
                    _import_module(self._own)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


for _library, _own in (("pandas", "_extension"), ("dask.dataframe.extensions", "_dask")):
    if _library in _sys.modules:
        _import_module(f"{__name__}.{_own}")
    else:
        _sys.meta_path.insert(0, _AfterImport(_library, _own))
