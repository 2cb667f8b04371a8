"""
Figures of your own
===================

Each function draws on ``ax=`` and takes ``title=``, ``colors=`` and ``legend=``; the style that is set applies.
Here two figures are side by side: versions with their dates, and what was paid under each gas schedule.
"""

import matplotlib.pyplot as plt

import toolkit

run = toolkit.Run.open("../../../data/samples/demo")
colors = {"vault share price": "tab:blue", "desk quote": "tab:red"}

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
toolkit.plots.gas_by_version(
    run.observations, steps=run.steps, calls=list(colors), colors=colors, x="both", title="Two views", ax=left
)
toolkit.plots.gas_distribution(run.observations, timeline=run.timeline, title="What senders paid", ax=right)
