"""
Many calls at once
==================

Which calls moved together? One row per call, coloured by its gas relative to its first reading.
"""

import toolkit

run = toolkit.Run.open("../../../data/samples/demo")
toolkit.plots.gas_heatmap(run.observations)
