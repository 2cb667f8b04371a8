from ._gas_explorer import GasExplorer as GasExplorer
from ._readings import ViewBuilder as ViewBuilder
from ._simulation_builder import SimulationBuilder as SimulationBuilder
from ._table_item_builder import TableItemBuilder as TableItemBuilder
from ._workbench import Workbench as Workbench
