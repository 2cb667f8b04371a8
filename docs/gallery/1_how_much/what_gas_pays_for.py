"""
What gas pays for
=================

A transfer pays mostly for computation, a registration mostly for storage.
Each bar splits a transaction's gas into execution, io and storage, which has its own scale.
"""

import toolkit

node = toolkit.connect()
calls = {
    "transfer": (toolkit.EntryFunction("0x1::aptos_account::transfer", ["0xb0b", 100]), "0xa11ce"),
    "register": (toolkit.EntryFunction("0xcafe::registry::register", ["zoe"]), "0xb0b"),
    "release": (toolkit.EntryFunction("0xcafe::registry::release", ["alice"]), "0xa11ce"),
}
simulations = {name: node.simulate(call, sender=sender) for name, (call, sender) in calls.items()}
toolkit.plots.gas_breakdown(simulations)
