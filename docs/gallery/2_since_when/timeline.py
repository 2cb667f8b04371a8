"""
Changes of the ledger above the gas
===================================

What else happened while the gas moved? ``timeline=`` draws every change of schedule, configuration and code.
"""

import toolkit

run = toolkit.Run.open("../../../data/samples/demo")
calls = ["vault share price", "vault preview", "desk quote"]
toolkit.plots.gas_by_version(run.observations, timeline=run.timeline, calls=calls)
