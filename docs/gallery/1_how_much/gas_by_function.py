"""
Which functions use the gas
===========================

Callers appear above the functions they call. Storage would dwarf the rest, so it is left out. The gas comes from the
embedded node's model.
"""

import toolkit

ledger = toolkit.embedded.Ledger.with_history(cache=True)
register = toolkit.EntryFunction("0xcafe::registry::register", ["zoe"])
profile = ledger.profile(register, sender="0xb0b")
toolkit.plots.gas_by_function(profile, categories=["execution", "io"])
