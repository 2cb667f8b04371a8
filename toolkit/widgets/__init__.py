"""Widgets that build requests in a notebook. State is traits; nothing is fetched before somebody asks."""

from toolkit.widgets.simulation_builder import SimulationBuilder

__all__ = ["SimulationBuilder"]
