"""
Which functions the gas is spent in
===================================

Callers are above the functions they call; without storage, which costs a hundred times as much. A model's gas.
"""

import toolkit

profile = toolkit.read_parquet("../../../data/samples/profile.parquet")
toolkit.plots.gas_by_function(profile, categories=["execution", "io"])
