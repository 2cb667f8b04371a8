"""
What gas pays for
=================

A transfer computes; a registration stores. Each bar splits one transaction into execution, io and storage.
"""

import toolkit

names = ["transfer", "register", "release"]
simulations = {name: toolkit.Simulation.load(f"../../../data/samples/{name}.json") for name in names}
toolkit.plots.gas_breakdown(simulations)
