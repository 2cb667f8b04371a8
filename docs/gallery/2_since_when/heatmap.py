"""
Many calls at once
==================

Which calls changed together? Each row is a call, coloured by its gas relative to the first observation.
"""

import toolkit

calls = {
    "vault share price": "0xfa17::vault::share_price",
    "vault preview": {"view": "0xfa17::vault::preview", "arguments": [100_000_000]},
    "desk quote": {"view": "0xde5c::desk::quote", "arguments": [10]},
    "order book depth": "0xb00c::order_book::depth",
    "names registered": "0xcafe::registry::size",
    "record of alice": {"view": "0xcafe::registry::record_of", "arguments": ["alice"]},
}
run = toolkit.Study(calls=calls, versions=toolkit.FindSteps("0:-1")).run(progress=False)
toolkit.plots.gas_heatmap(run.observations)
