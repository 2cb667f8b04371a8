"""Registration of the dtypes when pandas or Dask is imported after the toolkit."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType


# Libraries that take dtypes, each with the module that registers them.
_LIBRARIES = {"pandas": "toolkit.dtypes._extension", "dask.dataframe.extensions": "toolkit.dtypes._dask"}


class _AfterImport:
    """An import hook that registers the dtypes when a library is imported after this package."""

    def __init__(self, library: str) -> None:
        self._library = library

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the spec of the library, with a loader that registers the dtypes after it."""
        del path, target
        if name != self._library:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and (loader := spec.loader) is not None:
            run = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                del loader.exec_module  # the library keeps nothing of this hook
                run(module)
                # If a module of this package is what imports pandas, it is only half imported. It is then used through
                # `_extension`, which is imported after it.
                own = [module for name, module in sys.modules.items() if name.startswith("toolkit.dtypes._")]
                if not any(getattr(module.__spec__, "_initializing", False) for module in own):
                    import_module(_LIBRARIES[self._library])

            loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def register() -> None:
    """Register the dtypes now with what has been imported, and with the others as soon as they are."""
    for library, module in _LIBRARIES.items():
        if library in sys.modules:
            import_module(module)
        else:
            sys.meta_path.insert(0, _AfterImport(library))
