"""Widgets that build and run requests in a notebook. All state is traits; constructing a widget makes no request."""

from toolkit._present.messages import not_installed

try:
    from toolkit.widgets._gas_explorer import GasExplorer
    from toolkit.widgets._simulation_builder import SimulationBuilder
    from toolkit.widgets._table_item_builder import TableItemBuilder
    from toolkit.widgets._view_builder import ViewBuilder
    from toolkit.widgets._workbench import Workbench
except ModuleNotFoundError as error:
    if error.name not in {"anywidget", "ipywidgets", "traitlets"}:
        raise
    raise ModuleNotFoundError(not_installed("toolkit.widgets", error.name, "widgets"), name=error.name) from None

__all__ = ["GasExplorer", "SimulationBuilder", "TableItemBuilder", "ViewBuilder", "Workbench"]


def __dir__() -> list[str]:
    return sorted(__all__)
