"""Scores of analyses and gates of generated histories whose transactions take ways that no column has."""

from __future__ import annotations

import numpy as np
import pandas as pd

from toolkit.frames._columns import rows_frame
from toolkit.frames._schema import COMPARISON
from toolkit.gas._compare import Comparison, _way_columns
from toolkit.gas._findings import Change
from toolkit.gas._observations import Cause, Part
from toolkit.gas.committed._analysis import analyse
from toolkit.gas.committed._sides import compare_sides

# Observations between a true shift or mix and what is reported of it.
NEAR = 20
STEPS = ("one way", "tiny", "slope step")
PATH_BARS = {
    **{f"{kind}: a step of the right way": (0.97, 1.0) for kind in STEPS},
    **{f"{kind}: a change blamed without a doubt": (0.0, 0.02) for kind in ("mix", "null", "slope", "late")},
    "mix: said": (0.80, 1.0),
    "late: a shift or a doubt": (0.80, 1.0),
    "cost of the moved way within its bounds": (0.93, 1.0),
    "gate at half the true rise fails": (0.97, 1.0),
    "gate at 1.5 times the true rise passes": (0.97, 1.0),
    "gate without effect passes at 5 %": (0.97, 1.0),
    "gate: the difference of the means within its bounds": (0.93, 1.0),
}


def path_rates(tally):
    """Return each measured rate as (cases, of how many)."""
    return {name: (tally[name], tally[f"{name} of"]) for name in PATH_BARS}


def path_frame(made):
    """Return the transactions of a history as observations."""
    data = made.data
    columns = {
        "ledger_version": data["version"],
        "gas_used": data["total"].astype(np.int64),
        "execution_gas_units": data["execution"].astype(np.int64),
        "io_gas_units": data["io"].astype(np.int64),
        "storage_fee_octas": 0,
        "gas_unit_price": data["price"],
        "success": data["success"],
        "slots_created": data["slots_created"],
        "payload_bytes": data["size"],
    }
    return pd.DataFrame(columns)


def score_path(made, tally):
    """Add the analysis and the gates of one history to a tally."""
    frame, at, kind = path_frame(made), made.change["position"], made.kind
    found = analyse(frame, [Change(made.change["version"], Cause.CODE, "upgrade")])

    def count(name, case):
        tally[f"{name} of"] += 1
        tally[name] += bool(case)

    if made.truth["step"]:
        _score_steps(made, found, count)
    else:
        blamed = any(not step.uncertain for step in found.steps)
        count(f"{kind}: a change blamed without a doubt", blamed)
    versions = made.data["version"]
    if kind == "mix":
        count("mix: said", any(abs(np.searchsorted(versions, one.version_after) - at) <= NEAR for one in found.mix))
    if kind == "late":
        count("late: a shift or a doubt", _late(made, found))
    _score_gates(made, frame, count)


def _way_of(made, found, step):
    """Return the way that most transactions of a step's stratum take."""
    [rows] = [stratum.rows for stratum in found.strata if stratum.name == step.stratum]
    return "B" if made.data["way"][rows].mean() > 0.5 else "A"


def _score_steps(made, found, count):
    truth = made.truth
    right = [
        step
        for step in found.steps
        if step.part is Part.EXECUTION
        and (step.change > 0) == (truth["factor"] > 1)
        and truth["way"] in {None, _way_of(made, found, step)}
    ]
    count(f"{made.kind}: a step of the right way", right)
    if made.kind == "slope step":
        return  # the truth has means of whole sides, and growth moves those
    for step in right:
        before, after = (truth[side][_way_of(made, found, step)] for side in ("before", "after"))
        if before is not None and after is not None:
            inside = step.low - 1e-6 <= after - before <= step.high + 1e-6
            count("cost of the moved way within its bounds", inside)


def _late(made, found):
    """Return whether the shift after the change is reported at its place, or the change is blamed with a doubt."""
    versions, shift = made.data["version"], made.truth["shift"]
    places = (np.searchsorted(versions, [one.version_before, one.version_after]) for one in found.unexplained)
    shown = any(first - NEAR <= shift <= last + NEAR for first, last in places)
    return shown or any(step.uncertain for step in found.steps)


def calls_of(frame, at):
    """Return the comparison of the transactions before and after a row."""
    row = {"label": "buy", "fingerprint": "f", "source": "committed", "node": "n", "model": False}
    rows = [row | _way_columns(way) for way in compare_sides(frame.iloc[:at], frame.iloc[at:])]
    return rows_frame(COMPARISON, {name: [one.get(name) for one in rows] for name in COMPARISON.names})


def true_rises(made):
    """Return by how much the same use costs more after the change, and each way, in per cent."""
    taken = made.notes["share"] if made.data["way"].any() else 0.0
    costs = [[made.truth[side][way] or 0.0 for way in "AB"] for side in ("before", "after")]
    means = [(1 - taken) * a + taken * b for a, b in costs]
    return [100 * (b / a - 1) for a, b in zip(means[:1] + costs[0], means[1:] + costs[1], strict=True) if a and b]


def _score_gates(made, frame, count):
    calls = calls_of(frame, made.change["position"])
    moved = made.truth["mean_after"] - made.truth["mean_before"]
    name = "gate: the difference of the means within its bounds"
    count(name, calls["change_low"][0] <= moved <= calls["change_high"][0])

    def verdict(percent):
        return Comparison(calls).gate(f"{percent:.6f}%").verdict

    if made.kind == "null":
        count("gate without effect passes at 5 %", verdict(5) == "passed")
    rise, *ways = true_rises(made)
    if made.kind in STEPS and rise >= 1:
        count("gate at half the true rise fails", verdict(rise / 2) == "failed")
        # The gate judges each way as well, so that the largest rise is what has to fit.
        count("gate at 1.5 times the true rise passes", verdict(1.5 * max(rise, *ways)) == "passed")
