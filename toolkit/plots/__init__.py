"""Figures of gas and state. Each function draws a frame on ``ax``, or on a new figure, and returns the Axes."""

from toolkit.plots._flame import flame
from toolkit.plots._gas_breakdown import gas_breakdown
from toolkit.plots._gas_by_call import gas_distribution, gas_heatmap
from toolkit.plots._gas_by_function import gas_by_function
from toolkit.plots._gas_by_version import gas_by_version
from toolkit.plots._gas_change import gas_change
from toolkit.plots._ledger_changes import schedule_changes, state_changes

__all__ = [
    "flame",
    "gas_breakdown",
    "gas_by_function",
    "gas_by_version",
    "gas_change",
    "gas_distribution",
    "gas_heatmap",
    "schedule_changes",
    "state_changes",
]


def __dir__() -> list[str]:
    return sorted(__all__)
