"""
Gas by ledger version
=====================

When did a call's gas change, and why? The marks show the causes of the large steps.
"""

import toolkit

calls = {
    "vault share price": "0xfa17::vault::share_price",
    "desk quote": {"view": "0xde5c::desk::quote", "arguments": [10]},
    "order book depth": "0xb00c::order_book::depth",
    "names registered": "0xcafe::registry::size",
}
run = toolkit.Study(calls=calls, versions=toolkit.FindSteps("0:-1")).run(progress=False)
toolkit.plots.gas_by_version(run.observations, steps=run.steps)
