"""
Where a call spends its gas
===========================
Each function is a box below the one that called it, as wide as its gas with that of all functions that it calls. The
embedded node runs the call on its state at a ledger version; on a node with bytecode, the machine does.
"""

import toolkit

node = toolkit.connect("embedded")
call = toolkit.EntryFunction("0x1::aptos_account::transfer", ["0xb0b", 100])
simulation = node.fork(4_900).simulate(call, sender="0xa11ce")
toolkit.plots.flame(simulation.profile)
