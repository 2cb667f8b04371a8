"""
An exact amount over versions
=============================

The supply of a coin is a ``u128``: exact in the frame, scaled to whole coins for the axis.
The supply falls because fees are burned.
"""

import matplotlib.pyplot as plt

import toolkit

call = toolkit.ViewFunction("0x1::coin::supply", type_arguments=["0x1::aptos_coin::AptosCoin"])
supply = toolkit.fetch_views(toolkit.connect(), call, "251:-1/200", progress=False)
burnt = supply["value"].iloc[0] - supply["value"].astype("i128")

figure, axes = plt.subplots(figsize=(9, 4))
axes.plot(supply["ledger_version"], toolkit.scaled(burnt, 8))
axes.set(xlabel="ledger version", ylabel="APT", title="Fees burnt since version 251")
