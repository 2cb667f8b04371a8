"""
Compose your own figure
=======================

Each function draws on ``ax=``, accepts ``title=`` and uses the active style; all but ``flame`` accept ``colors=`` and
``legend=``.
The left figure has an axis of dates next to the versions; the right one shows what was paid under each gas schedule.
"""

import matplotlib.pyplot as plt

import toolkit

calls = {
    "vault share price": "0xfa17::vault::share_price",
    "desk quote": {"view": "0xde5c::desk::quote", "arguments": [10]},
    "deposits": {"committed": "0xfa17::vault::deposit", "versions": "3000:4000"},
}
run = toolkit.Study(calls=calls, versions=toolkit.FindSteps("0:-1")).run(progress=False)
colors = {"vault share price": "tab:blue", "desk quote": "tab:red"}

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
toolkit.plots.gas_by_version(
    run.observations, steps=run.steps, calls=list(colors), colors=colors, x="both", title="Two views", ax=left
)
toolkit.plots.gas_distribution(run.observations, timeline=run.timeline, title="What senders paid", ax=right)
