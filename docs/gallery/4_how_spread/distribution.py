"""
What people paid
================

One function has several levels of gas: a row shows how often each was paid, and failed transactions are paler.
With a timeline, each gas schedule has a row of its own.
"""

import toolkit

run = toolkit.Run.open("../../../data/samples/demo")
toolkit.plots.gas_distribution(run.observations, source="committed", timeline=run.timeline)
