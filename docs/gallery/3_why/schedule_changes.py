"""
A new gas schedule
==================

By which factor did the parameters of a gas schedule change? Here 459 of 512 rose tenfold at once.
"""

import toolkit

schedules = toolkit.read_parquet("../../../data/samples/schedules.parquet")
toolkit.plots.schedule_changes(schedules)
