"""
An exact amount over versions
=============================

The supply of a coin is a ``u128``: exact in the frame, scaled to whole coins for the axis.
"""

import matplotlib.pyplot as plt

import toolkit

supply = toolkit.read_parquet("../../data/samples/supply.parquet")
issued = supply["value"].astype("i128") - supply["value"].iloc[0]

figure, axes = plt.subplots()
axes.plot(supply["ledger_version"], toolkit.scaled(issued, 8))
axes.set(xlabel="ledger version", ylabel="APT", title="Change of the supply since version 0")
