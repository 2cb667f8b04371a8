"""Figures of gas: take a frame, draw on ``ax=`` (or make one), return the Axes. One file per figure."""

from toolkit.plots.gas_breakdown import gas_breakdown
from toolkit.plots.gas_by_version import gas_by_version
from toolkit.plots.gas_change import gas_change
from toolkit.plots.gas_distribution import gas_distribution
from toolkit.plots.gas_heatmap import gas_heatmap
from toolkit.plots.schedule_changes import schedule_changes
from toolkit.plots.state_changes import state_changes

__all__ = [
    "gas_breakdown",
    "gas_by_version",
    "gas_change",
    "gas_distribution",
    "gas_heatmap",
    "schedule_changes",
    "state_changes",
]
