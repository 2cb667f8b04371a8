"""Typed frames, gas studies and an embedded node for the REST interface of a Move ledger.

Names are imported on first use, which keeps ``import toolkit`` fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Imports neither pandas nor pyarrow; registers the wide integer types with them as soon as they are imported.
from toolkit import dtypes as dtypes
from toolkit._present.names import imported_on_use as _imported_on_use
from toolkit._present.notebook import set_display as set_display
from toolkit._present.notebook import show_frames_as_tables as _show_frames_as_tables

__version__ = "0.1.0"

# Public names by the module that defines them, separated by spaces. The names in the first line are modules.
_HOMES = {
    "": "dtypes embedded errors move plots reports teaching vm widgets wire",
    "archive._archive": "Archive",
    "archive._sync": "sync",
    "client._accounts": "Account",
    "client._assets": "Asset",
    "client._calls": "TableItem ViewResult",
    "client._contracts": "Contract",
    "client._fetch": (
        "fetch_events fetch_resources fetch_simulations fetch_table_items fetch_transactions fetch_views"
    ),
    "client._node": "Node Probe Snapshot connect",
    "client._resimulation": "Resimulation",
    "client._simulation": "Simulation",
    "client._transaction_data": "TransactionFrames",
    "client._versions": "FindSteps",
    "dtypes": "describe exact_diff exact_sum read_parquet scaled write_excel write_parquet",
    "errors": (
        "InputError NodeError NodeUnreachable NotAtPast NotFound RunStopped SchemaError StudyError ToolkitError "
        "VersionPruned"
    ),
    "fork": "Fork Replay replay",
    "frames._addresses": "address involving",
    "frames._display": "show",
    "frames._transactions": "table_keys",
    "gas._compare": "Comparison compare",
    "gas._forecast": "forecast",
    "gas._gate": "Gate",
    "gas._rules": "Threshold Waiver",
    "gas._schedules": "schedule_diff",
    "gas._study": "Run Study",
    "gas._timeline": "timeline",
    "gas.plan._estimate": "Plan",
    "wire": "EntryFunction Multisig Script SimulationRequest TableItemRequest ViewFunction",
}

__getattr__, _, _names = _imported_on_use(__name__, _HOMES)
__all__ = ["__version__", "set_display", *_names]  # noqa: PLE0604 - all are strings

if TYPE_CHECKING:
    from toolkit import embedded as embedded
    from toolkit import errors as errors
    from toolkit import move as move
    from toolkit import plots as plots
    from toolkit import reports as reports
    from toolkit import teaching as teaching
    from toolkit import vm as vm
    from toolkit import widgets as widgets
    from toolkit import wire as wire
    from toolkit.archive._archive import Archive as Archive
    from toolkit.archive._sync import sync as sync
    from toolkit.client._accounts import Account as Account
    from toolkit.client._assets import Asset as Asset
    from toolkit.client._calls import TableItem as TableItem
    from toolkit.client._calls import ViewResult as ViewResult
    from toolkit.client._contracts import Contract as Contract
    from toolkit.client._fetch import fetch_events as fetch_events
    from toolkit.client._fetch import fetch_resources as fetch_resources
    from toolkit.client._fetch import fetch_simulations as fetch_simulations
    from toolkit.client._fetch import fetch_table_items as fetch_table_items
    from toolkit.client._fetch import fetch_transactions as fetch_transactions
    from toolkit.client._fetch import fetch_views as fetch_views
    from toolkit.client._node import Node as Node
    from toolkit.client._node import Probe as Probe
    from toolkit.client._node import Snapshot as Snapshot
    from toolkit.client._node import connect as connect
    from toolkit.client._resimulation import Resimulation as Resimulation
    from toolkit.client._simulation import Simulation as Simulation
    from toolkit.client._transaction_data import TransactionFrames as TransactionFrames
    from toolkit.client._versions import FindSteps as FindSteps
    from toolkit.dtypes import describe as describe
    from toolkit.dtypes import exact_diff as exact_diff
    from toolkit.dtypes import exact_sum as exact_sum
    from toolkit.dtypes import read_parquet as read_parquet
    from toolkit.dtypes import scaled as scaled
    from toolkit.dtypes import write_excel as write_excel
    from toolkit.dtypes import write_parquet as write_parquet
    from toolkit.errors import InputError as InputError
    from toolkit.errors import NodeError as NodeError
    from toolkit.errors import NodeUnreachable as NodeUnreachable
    from toolkit.errors import NotAtPast as NotAtPast
    from toolkit.errors import NotFound as NotFound
    from toolkit.errors import RunStopped as RunStopped
    from toolkit.errors import SchemaError as SchemaError
    from toolkit.errors import StudyError as StudyError
    from toolkit.errors import ToolkitError as ToolkitError
    from toolkit.errors import VersionPruned as VersionPruned
    from toolkit.fork import Fork as Fork
    from toolkit.fork import Replay as Replay
    from toolkit.fork import replay as replay
    from toolkit.frames._addresses import address as address
    from toolkit.frames._addresses import involving as involving
    from toolkit.frames._display import show as show
    from toolkit.frames._transactions import table_keys as table_keys
    from toolkit.gas._compare import Comparison as Comparison
    from toolkit.gas._compare import compare as compare
    from toolkit.gas._forecast import forecast as forecast
    from toolkit.gas._gate import Gate as Gate
    from toolkit.gas._rules import Threshold as Threshold
    from toolkit.gas._rules import Waiver as Waiver
    from toolkit.gas._schedules import schedule_diff as schedule_diff
    from toolkit.gas._study import Run as Run
    from toolkit.gas._study import Study as Study
    from toolkit.gas._timeline import timeline as timeline
    from toolkit.gas.plan._estimate import Plan as Plan
    from toolkit.wire import EntryFunction as EntryFunction
    from toolkit.wire import Multisig as Multisig
    from toolkit.wire import Script as Script
    from toolkit.wire import SimulationRequest as SimulationRequest
    from toolkit.wire import TableItemRequest as TableItemRequest
    from toolkit.wire import ViewFunction as ViewFunction


def __dir__() -> list[str]:
    return sorted(__all__)


def load_ipython_extension(shell: Any) -> None:
    """Register the cell magic ``%%contract``; IPython calls this for ``%load_ext toolkit``."""
    import_module(f"{__name__}.teaching._contract_cell").add_contract_cell(shell)


_show_frames_as_tables(lambda frame, rows: str(__getattr__("show")(frame, rows=max(rows, 2))._repr_html_()))
