"""
Gas by ledger version
=====================

When did the gas of a call change, and what changed it? Lines step where gas does; marks name the cause.
"""

import toolkit

run = toolkit.Run.open("../../../data/samples/demo")
toolkit.plots.gas_by_version(run.observations, steps=run.steps)
