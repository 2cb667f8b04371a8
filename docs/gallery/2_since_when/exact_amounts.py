"""
An exact amount over versions
=============================

A coin's supply is a ``u128``: exact in the frame, and scaled to whole coins for the axis.
It falls because fees are burned.
"""

import matplotlib.pyplot as plt

import toolkit

call = toolkit.ViewFunction("0x1::coin::supply", type_arguments=["0x1::aptos_coin::AptosCoin"])
supply = toolkit.fetch_views(toolkit.connect(), call, "251:-1/200", progress=False)
burned = supply["value"].iloc[0] - supply["value"].astype("i128")

figure, axes = plt.subplots(figsize=(9, 4))
axes.plot(supply["ledger_version"], toolkit.scaled(burned, 8))
axes.set(xlabel="ledger version", ylabel="APT", title="Fees burned since version 251")
