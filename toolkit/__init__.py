"""Typed frames, gas studies and an embedded node for the REST interface of a Move ledger.

Names are imported on first use, which keeps ``import toolkit`` fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from lazy_loader import attach_stub as _attach_stub

# Imports neither pandas nor pyarrow; registers the wide integer types with them as soon as they are imported.
from toolkit import dtypes as dtypes
from toolkit._present.notebook import set_display as set_display
from toolkit._present.notebook import show_frames_as_tables as _show_frames_as_tables

__version__ = "0.1.0"

_imported, _, _lazy = _attach_stub(__name__, __file__)
__all__ = sorted(["__version__", *_lazy])  # noqa: PLE0605 - a list


def __getattr__(name: str) -> Any:
    if name in _lazy or name.startswith("_"):
        return _imported(name)
    from toolkit._present.messages import did_you_mean

    # With a name but no object: Python would suggest names of the object once more.
    raise AttributeError(f"No toolkit attribute {name}; {did_you_mean(name, __all__)}".removesuffix("; "), name=name)


def __dir__() -> list[str]:
    return sorted(__all__)


def load_ipython_extension(shell: Any) -> None:
    """Register the cell magic ``%%contract``; IPython calls this for ``%load_ext toolkit``."""
    import_module(f"{__name__}.teaching._contract_cell").add_contract_cell(shell)


_show_frames_as_tables(lambda frame, rows: __getattr__("show")(frame, rows=max(rows, 2)))
