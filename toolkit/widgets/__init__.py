"""Widgets that build and run requests in a notebook. All state is in traits; constructing a widget makes no request."""

import toolkit.widgets._requirements  # noqa: F401 - first, so that a missing package is an error that names its extra
from toolkit.widgets._gas_explorer import GasExplorer
from toolkit.widgets._readings import ViewBuilder
from toolkit.widgets._simulation_builder import SimulationBuilder
from toolkit.widgets._table_item_builder import TableItemBuilder
from toolkit.widgets._workbench import Workbench

__all__ = ["GasExplorer", "SimulationBuilder", "TableItemBuilder", "ViewBuilder", "Workbench"]


def __dir__() -> list[str]:
    return sorted(__all__)
