"""Typed frames, gas studies and an embedded node for the REST interface of a Move ledger.

Names are imported on first use, so that ``import toolkit`` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Imports neither pandas nor pyarrow; registers the wide integer types with them as soon as they are imported.
from toolkit import dtypes as dtypes
from toolkit._present.notebook import show_frames_literally as _show_frames_literally

__version__ = "0.1.0"

_HOME = {
    "EntryFunction": "toolkit.wire",
    "FindSteps": "toolkit.client.versions",
    "InputError": "toolkit.errors",
    "Node": "toolkit.client.node",
    "NodeError": "toolkit.errors",
    "NodeUnreachable": "toolkit.errors",
    "NotAtPast": "toolkit.errors",
    "NotFound": "toolkit.errors",
    "Run": "toolkit.gas.run",
    "RunStopped": "toolkit.errors",
    "SchemaError": "toolkit.errors",
    "SimulationRequest": "toolkit.wire",
    "Snapshot": "toolkit.client.node",
    "Study": "toolkit.gas.study",
    "StudyError": "toolkit.errors",
    "TableItemRequest": "toolkit.wire",
    "Threshold": "toolkit.gas.thresholds",
    "ToolkitError": "toolkit.errors",
    "VersionPruned": "toolkit.errors",
    "ViewFunction": "toolkit.wire",
    "Waiver": "toolkit.gas.thresholds",
    "compare": "toolkit.gas.comparison",
    "connect": "toolkit.client.connect",
    "describe": "toolkit.dtypes",
    "exact_sum": "toolkit.dtypes",
    "fetch_simulations": "toolkit.client.fetch",
    "fetch_table_items": "toolkit.client.fetch",
    "fetch_transactions": "toolkit.client.fetch",
    "fetch_views": "toolkit.client.fetch",
    "read_parquet": "toolkit.dtypes",
    "scaled": "toolkit.dtypes",
    "schedule_diff": "toolkit.gas.schedules",
    "table_keys": "toolkit.frames.keys",
    "write_parquet": "toolkit.dtypes",
}
_SUBMODULES = frozenset({"embedded", "errors", "plots", "reports", "widgets", "wire"})

__all__ = [
    "EntryFunction",
    "FindSteps",
    "InputError",
    "Node",
    "NodeError",
    "NodeUnreachable",
    "NotAtPast",
    "NotFound",
    "Run",
    "RunStopped",
    "SchemaError",
    "SimulationRequest",
    "Snapshot",
    "Study",
    "StudyError",
    "TableItemRequest",
    "Threshold",
    "ToolkitError",
    "VersionPruned",
    "ViewFunction",
    "Waiver",
    "__version__",
    "compare",
    "connect",
    "describe",
    "embedded",
    "errors",
    "exact_sum",
    "fetch_simulations",
    "fetch_table_items",
    "fetch_transactions",
    "fetch_views",
    "plots",
    "read_parquet",
    "reports",
    "scaled",
    "schedule_diff",
    "table_keys",
    "widgets",
    "wire",
    "write_parquet",
]

if TYPE_CHECKING:
    from toolkit import embedded, errors, plots, reports, widgets, wire
    from toolkit.client.connect import connect
    from toolkit.client.fetch import fetch_simulations, fetch_table_items, fetch_transactions, fetch_views
    from toolkit.client.node import Node, Snapshot
    from toolkit.client.versions import FindSteps
    from toolkit.dtypes import describe, exact_sum, read_parquet, scaled, write_parquet
    from toolkit.errors import (
        InputError,
        NodeError,
        NodeUnreachable,
        NotAtPast,
        NotFound,
        RunStopped,
        SchemaError,
        StudyError,
        ToolkitError,
        VersionPruned,
    )
    from toolkit.frames.keys import table_keys
    from toolkit.gas.comparison import compare
    from toolkit.gas.run import Run
    from toolkit.gas.schedules import schedule_diff
    from toolkit.gas.study import Study
    from toolkit.gas.thresholds import Threshold, Waiver
    from toolkit.wire import EntryFunction, SimulationRequest, TableItemRequest, ViewFunction


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name in _SUBMODULES:
        return import_module(f"toolkit.{name}")
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'toolkit' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


_show_frames_literally()
