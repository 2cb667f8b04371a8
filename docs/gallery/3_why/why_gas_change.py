"""
Before and after each step
==========================

By how much did each step change a call, and why? Hollow is before, filled is after, the colour is the cause.
"""

import toolkit

run = toolkit.Run.open("../../../data/samples/demo")
steps = run.steps[run.steps["source"] == "view@version"]
toolkit.plots.gas_change(steps)
