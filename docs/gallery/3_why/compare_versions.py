"""
Two versions of the ledger
==========================

What does each call cost after an upgrade, compared with before it?
"""

import toolkit

run = toolkit.Run.open("../../../data/samples/demo")
toolkit.plots.gas_change(toolkit.compare(run.at(3_000), run.at(4_000)).calls)
