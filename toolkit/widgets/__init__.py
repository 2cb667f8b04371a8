"""Widgets that build and run requests in a notebook. All state is in traits; constructing a widget makes no request.

Names are imported on first use, so that the first form opens without importing pandas and the gas study packages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import toolkit.widgets._requirements  # noqa: F401 - first, so that a missing package is an error that names its extra
from toolkit._present.names import imported_on_use as _imported_on_use

if TYPE_CHECKING:
    from toolkit.widgets._gas_explorer import GasExplorer as GasExplorer
    from toolkit.widgets._readings import ViewBuilder as ViewBuilder
    from toolkit.widgets._simulation_builder import SimulationBuilder as SimulationBuilder
    from toolkit.widgets._table_item_builder import TableItemBuilder as TableItemBuilder
    from toolkit.widgets._workbench import Workbench as Workbench

_HOMES = {
    "_gas_explorer": "GasExplorer",
    "_simulation_builder": "SimulationBuilder",
    "_table_item_builder": "TableItemBuilder",
    "_readings": "ViewBuilder",
    "_workbench": "Workbench",
}
__getattr__, __dir__, __all__ = _imported_on_use(__name__, _HOMES)
