"""
What a transaction writes
=========================

State is what storage fees are paid for: resources and table items that a registration would write, by type.
"""

import toolkit

register = toolkit.Simulation.load("../../../data/samples/register.json")
toolkit.plots.state_changes(register)
