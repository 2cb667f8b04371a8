"""
A new gas schedule
==================

By what factor did each parameter of the gas schedule change? Here, 459 of 512 rose tenfold.
"""

import toolkit

node = toolkit.connect()
schedules = toolkit.schedule_diff(node.gas_schedule(3501), node.gas_schedule(3502))
toolkit.plots.schedule_changes(schedules)
