"""Committed series: what moved the gas of one function's committed transactions, by stratum and part."""
