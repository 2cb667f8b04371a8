"""Scores of analyses of generated histories: which steps are resolvable, and what was reported of them."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from toolkit.gas._observations import Part

BARS = {
    "resolvable steps named": (0.97, 1.0),
    "new slots named": (0.90, 1.0),
    "wrong change": (0.0, 0.02),
    "wrong part": (0.0, 0.03),
    "histories without effect that report": (0.0, 0.03),
    "unexplained found": (0.80, 1.0),
    "unexplained false": (0.0, 0.10),
}
MOST_COMPARED = 320
FEWEST = 20


def rates(tally: Counter) -> dict[str, tuple[int, int]]:
    """Return each measured rate as (cases, of how many)."""
    pairs = {
        "resolvable steps named": ("named", "resolvable"),
        "new slots named": ("slots named", "slots"),
        "wrong change": ("wrong change", "reported"),
        "wrong part": ("wrong part", "reported"),
        "histories without effect that report": ("null reports", "null histories"),
        "unexplained found": ("hidden found", "hidden"),
        "unexplained found or listed as weak": ("hidden listed", "hidden"),
        "unexplained false": ("shifts false", "shifts"),
        "sets of changes": ("sets", "reported"),
        "wrong change without a doubt": ("sure and wrong", "sure"),
        "intervals that hold the truth": ("inside", "intervals"),
        "the same without a doubt": ("sure inside", "sure intervals"),
    }
    return {name: (tally[a], tally[b]) for name, (a, b) in pairs.items()}


def _bounds(history, at):
    """Return the range of observations around a position without another change or shift."""
    places = {history.position(n) for n in range(len(history.changes))} | {row["position"] for row in history.truth}
    first = max([0, *(p for p in places if p < at)])
    return first, min([len(history.kinds), *(p for p in places if p > at)])


def _sides(history, row):
    first, last = _bounds(history, row["position"])
    mine = np.flatnonzero(history.kinds == row["kind"])
    left = mine[(mine >= first) & (mine < row["position"])][-MOST_COMPARED:]
    right = mine[(mine >= row["position"]) & (mine < last)][:MOST_COMPARED]
    return left, right


def resolvable(history, row):
    """Return whether a row of the truth can be found.

    It moves by 10 % and a gas unit, 20 observations are on each side before the next change, and the kind is constant
    or the step is 7 standard errors: ``7 sd sqrt(2 (1 + r) / ((1 - r) n))``, n at most 320.
    """
    moved = abs(row["after"] - row["before"])
    unit = 100 if row["part"].in_octas else 1
    if moved < unit or moved < 0.1 * min(row["before"], row["after"]):
        return False
    if row["change"] is not None and _twin(history, row["change"]):
        return False
    left, right = _sides(history, row)
    count = min(len(left), len(right))
    if count < FEWEST:
        return False
    values = history.frame[row["part"].column].to_numpy(float)
    centred = [values[side] - values[side].mean() for side in (left, right)]
    freedom = len(left) + len(right) - 2
    variance = sum(float(c @ c) for c in centred) / freedom
    if variance == 0:
        return True
    r = min(0.97, max(0.0, sum(float(c[1:] @ c[:-1]) for c in centred) / (variance * freedom)))
    return moved >= 7 * math.sqrt(variance * 2 * (1 + r) / ((1 - r) * count))


def _twin(history, change):
    """Return whether no transaction is between a change and another: nothing can tell them apart."""
    at = history.position(change)
    return sum(history.position(n) == at for n in range(len(history.changes))) > 1


def score(history, analysis, tally):
    """Add the analysis of one history to a tally, and return what it got wrong, in words."""
    notes = []
    announced = [row for row in history.truth if row["change"] is not None]
    effective = {row["change"] for row in announced}
    moved = {(row["change"], row["part"]) for row in announced}
    reported = {}
    for step in analysis.steps:
        reported.setdefault((frozenset(int(c.what) for c in step.causes), step.part), []).append(step)
    for change, part in {(row["change"], row["part"]) for row in announced if resolvable(history, row)}:
        named = (frozenset([change]), part) in reported
        tally["resolvable"] += 1
        tally["named"] += named
        if not named:
            notes.append(f"missed: change {change}, {part}")
    turned = [row for row in announced if row["writes"] and row["part"] is Part.STORAGE]
    for change in {row["change"] for row in turned if min(map(len, _sides(history, row))) >= FEWEST}:
        if not _twin(history, change):
            tally["slots"] += 1
            tally["slots named"] += (frozenset([change]), Part.STORAGE) in reported
    for (causes, part), steps in reported.items():
        wrong = not causes & effective
        tally["reported"] += 1
        tally["sets"] += len(causes) > 1
        tally["wrong change"] += wrong
        tally["wrong part"] += not wrong and not any((change, part) in moved for change in causes)
        sure = any(not step.doubts for step in steps)
        tally["sure"] += sure
        tally["sure and wrong"] += sure and wrong
        if wrong:
            notes.append(f"wrong change: {steps[0]}")
        for step in steps:
            _score_interval(history, step, causes, tally)
    if not effective:
        tally["null histories"] += 1
        tally["null reports"] += bool(reported)
    notes += _score_unexplained(history, analysis, tally)
    tally["histories"] += 1
    return notes


def _score_interval(history, step, causes, tally):
    kind = history.kinds[int(np.searchsorted(history.frame["ledger_version"], step.version_before))]
    rows = [r for r in history.truth if {r["change"]} == causes and r["part"] is step.part and r["kind"] == kind]
    slots_changed = step.part in {Part.STORAGE, Part.REFUND} and " or " in step.stratum
    if not rows or slots_changed:
        return
    # The truth is the mean of 400 transactions, whose payload sizes are not exactly those of the ones compared.
    sizes = history.frame["payload_bytes"].nunique() > 1
    slack = 0.005 * max(rows[0]["before"], rows[0]["after"]) if sizes else 1e-6
    inside = step.low - slack <= rows[0]["after"] - rows[0]["before"] <= step.high + slack
    tally["intervals"] += 1
    tally["inside"] += inside
    tally["sure intervals"] += not step.doubts
    tally["sure inside"] += inside and not step.doubts


def _score_unexplained(history, analysis, tally):
    hidden = [row for row in history.truth if row["change"] is None]
    versions = history.frame["ledger_version"].to_numpy()
    slack = max(20, 0.02 * len(versions))

    def near(step, rows):
        a, b = np.searchsorted(versions, [step.version_before, step.version_after])
        return any(a - slack <= row["position"] <= b + slack and row["part"] is step.part for row in rows)

    notes = []
    strong = [step for step in analysis.unexplained if not step.weak]
    clear = [row for row in hidden if resolvable(history, row)]
    for place in {row["position"] for row in clear}:
        rows = [row for row in hidden if row["position"] == place]
        tally["hidden"] += 1
        tally["hidden found"] += any(near(step, rows) for step in strong)
        tally["hidden listed"] += any(near(step, rows) for step in analysis.unexplained)
        if not any(near(step, rows) for step in strong):
            notes.append(f"shift missed: {[row for row in clear if row['position'] == place]}")
    places = []  # shifts of several strata and parts at one place are one shift
    for step in strong:
        middle = float(np.searchsorted(versions, [step.version_before, step.version_after]).mean())
        right = near(step, hidden)
        if not right:
            notes.append(f"shift false: {step}")
        for known in places:
            if abs(known[0] - middle) < FEWEST:
                known[1] |= right
                break
        else:
            places.append([middle, right])
    tally["shifts"] += len(places)
    tally["shifts false"] += sum(not right for _, right in places)
    return notes
