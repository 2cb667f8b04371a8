"""
Before and after each step
==========================

By how much did each step change a call's gas, and why? Hollow marks show the gas before the step, filled marks the gas
after it. The colour shows the cause.
"""

import toolkit

calls = {
    "vault share price": "0xfa17::vault::share_price",
    "desk quote": {"view": "0xde5c::desk::quote", "arguments": [10]},
    "APT supply": toolkit.ViewFunction("0x1::coin::supply", type_arguments=["0x1::aptos_coin::AptosCoin"]),
}
run = toolkit.Study(calls=calls, versions=toolkit.FindSteps("0:-1")).run(progress=False)
toolkit.plots.gas_change(run.steps)
