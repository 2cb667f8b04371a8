"""Committed series: what moved the gas of one function's committed transactions, within strata and by part."""
