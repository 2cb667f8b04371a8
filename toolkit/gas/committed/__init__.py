"""Committed series: what changed the gas of one function's committed transactions, by stratum and part."""
