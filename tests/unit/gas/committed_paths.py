"""Scores of analyses and gates of generated histories whose transactions take ways that no column has."""

from __future__ import annotations

import numpy as np
import pandas as pd

from toolkit.gas._findings import Change
from toolkit.gas._observations import Cause, Part
from toolkit.gas._rules import Threshold
from toolkit.gas.committed._analysis import analyse
from toolkit.gas.committed._fees import FeeChange, Fees

# Observations between a true shift or mix and what is reported of it.
NEAR = 20
STEPS = ("one way", "tiny", "slope step")
PATH_BARS = {
    **{f"{kind}: a step of the right way": (0.97, 1.0) for kind in STEPS},
    **{f"{kind}: a change blamed without a doubt": (0.0, 0.02) for kind in ("mix", "null", "slope", "late")},
    "mix: said": (0.60, 1.0),
    "late: a shift or a doubt": (0.80, 1.0),
    "cost of the moved way within its bounds": (0.93, 1.0),
    "gate at half the true rise passes": (0.0, 0.01),
    "gate at half the true rise fails": (0.70, 1.0),
    "gate at 1.5 times the true rise fails": (0.0, 0.01),
    "gate at 1.5 times the true rise passes": (0.70, 1.0),
    "gate without effect fails at 5 %": (0.0, 0.04),
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
        blamed = any(not step.doubts for step in found.steps)
        count(f"{kind}: a change blamed without a doubt", blamed)
    versions = made.data["version"]
    if kind == "mix":
        count("mix: said", any(abs(np.searchsorted(versions, one.version_after) - at) <= NEAR for one in found.mix))
    if kind == "late":
        count("late: a shift or a doubt", _late(made, found))
    _score_gates(made, frame, count)


def _way_of(made, step):
    """Return the way whose true cost before the change is nearest to a step's."""
    truth = made.truth["before"]
    known = {way: cost for way, cost in truth.items() if cost is not None}
    if step.before is None:
        return None
    return min(known, key=lambda way: abs(known[way] - step.before))


def _score_steps(made, found, count):
    truth = made.truth
    right = [
        step
        for step in found.steps
        if step.part is Part.EXECUTION
        and (step.before is None or step.after is None or (step.change > 0) == (truth["factor"] > 1))
        and truth["way"] in {None, _way_of(made, step)}
    ]
    count(f"{made.kind}: a step of the right way", right)
    if made.kind == "slope step":
        return  # the truth has means of whole sides, and growth moves those
    for step in right:
        if step.before is None or step.after is None:
            continue
        before, after = (truth[side][_way_of(made, step)] for side in ("before", "after"))
        if before is not None and after is not None:
            inside = step.low - 1e-6 <= after - before <= step.high + 1e-6
            count("cost of the moved way within its bounds", inside)


def _late(made, found):
    """Return whether the shift after the change is reported at its place, or the change is blamed with a doubt."""
    versions, shift = made.data["version"], made.truth["shift"]
    places = (np.searchsorted(versions, [one.version_before, one.version_after]) for one in found.unexplained)
    shown = any(first - NEAR <= shift <= last + NEAR for first, last in places)
    return shown or any(step.doubts for step in found.steps)


def true_rises(made):
    """Return by how much the same use costs more after the change, and each way, in per cent."""
    taken = made.notes["share"] if made.data["way"].any() else 0.0
    costs = [[made.truth[side][way] or 0.0 for way in "AB"] for side in ("before", "after")]
    means = [(1 - taken) * a + taken * b for a, b in costs]
    return [100 * (b / a - 1) for a, b in zip(means[:1] + costs[0], means[1:] + costs[1], strict=True) if a and b]


def _score_gates(made, frame, count):
    at = made.change["position"]
    fees = FeeChange.of(Fees.of(frame.iloc[:at], 100), Fees.of(frame.iloc[at:], 100), 100)

    def verdict(percent):
        return fees.judged(Threshold(percent=percent)).verdict.value

    if made.kind == "null":
        count("gate without effect fails at 5 %", verdict(5) == "failed")
    rise, *ways = true_rises(made)
    if made.kind in STEPS and rise >= 1:
        count("gate at half the true rise passes", verdict(rise / 2) == "passed")
        count("gate at half the true rise fails", verdict(rise / 2) == "failed")
        # A quantile fails a gate, too, so that the largest rise of a way is what has to fit.
        most = 1.5 * max(rise, *ways)
        count("gate at 1.5 times the true rise fails", verdict(most) == "failed")
        count("gate at 1.5 times the true rise passes", verdict(most) == "passed")
