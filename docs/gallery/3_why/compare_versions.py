"""
Two versions of the ledger
==========================

What did each call cost before and after an upgrade?
"""

import toolkit

calls = {
    "vault share price": "0xfa17::vault::share_price",
    "desk quote": {"view": "0xde5c::desk::quote", "arguments": [10]},
    "order book depth": "0xb00c::order_book::depth",
    "names registered": "0xcafe::registry::size",
}
run = toolkit.Study(calls=calls, versions=[3_000, 4_000]).run(progress=False)
toolkit.plots.gas_change(toolkit.compare(run.at(3_000), run.at(4_000)).calls)
