"""Widgets that build requests in a notebook. All state is traits; constructing a widget makes no request."""

from toolkit.widgets._simulation_builder import SimulationBuilder

__all__ = ["SimulationBuilder"]


def __dir__() -> list[str]:
    return sorted(__all__)
