"""
What people paid
================

A function's gas often has several levels. Each row shows how often each level was paid, with failed transactions paler.
With a timeline, each gas schedule has its own row.
"""

import toolkit

calls = {"registrations": {"committed": "0xcafe::registry::register", "versions": "3000:4000"}}
run = toolkit.Study(calls=calls, versions=[4_000]).run(progress=False)
toolkit.plots.gas_distribution(run.observations, source="committed", timeline=run.timeline)
