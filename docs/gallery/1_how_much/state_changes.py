"""
What a transaction writes
=========================

Storage fees pay for state. The figure lists the resources and table items that a registration would write.
"""

import toolkit

node = toolkit.connect()
register = node.simulate(toolkit.EntryFunction("0xcafe::registry::register", ["zoe"]), sender="0xb0b")
toolkit.plots.state_changes(register)
