"""
Which functions the gas is spent in
===================================

Callers are above the functions they call; without storage, which costs a hundred times as much. A model's gas.
"""

import toolkit

ledger = toolkit.embedded.Ledger.with_history(cache=True)
register = toolkit.EntryFunction("0xcafe::registry::register", ["zoe"])
profile = ledger.profile(register, sender="0xb0b")
toolkit.plots.gas_by_function(profile, categories=["execution", "io"])
