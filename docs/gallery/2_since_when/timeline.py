"""
Ledger changes next to the gas
==============================

What else happened when the gas changed? ``timeline=`` draws every change to the gas schedule, configuration and code.
"""

import toolkit

node = toolkit.connect()
calls = {
    "vault share price": "0xfa17::vault::share_price",
    "vault preview": {"view": "0xfa17::vault::preview", "arguments": [100_000_000]},
    "desk quote": {"view": "0xde5c::desk::quote", "arguments": [10]},
}
run = toolkit.Study(calls=calls, versions=toolkit.FindSteps("0:-1")).run(progress=False)
timeline = toolkit.timeline(node, "0:-1", modules=["0xfa17::vault", "0xde5c::desk"])
toolkit.plots.gas_by_version(run.observations, timeline=timeline)
