"""Figures of gas: take a frame, draw on ``ax=`` (or make one), return the Axes. One file per figure."""

from toolkit.plots.gas_breakdown import gas_breakdown
from toolkit.plots.gas_by_version import gas_by_version
from toolkit.plots.gas_change import gas_change

__all__ = ["gas_breakdown", "gas_by_version", "gas_change"]
