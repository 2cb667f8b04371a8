"""Compares the committed transactions of a call on two sides, such as before and after an upgrade."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from toolkit._present.text import plural
from toolkit.gas._findings import Change
from toolkit.gas._observations import Cause, Part
from toolkit.gas._steps import ALL_TRANSACTIONS
from toolkit.gas.committed._analysis import MIN_RELATIVE_STEP, MIN_STEP_UNITS
from toolkit.gas.committed._levels import BOUNDS_95, MAX_CORRELATION, MIN_SIDE
from toolkit.gas.committed._steps import stratum_words
from toolkit.gas.committed._strata import Observations, Stratum, chance_of_counts, octas_per_unit
from toolkit.gas.committed._ways import find_ways

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# A way with a smaller share on both sides is compared if possible, and ignored otherwise: if a way of average cost
# doubles, the mean moves by less than 5 %.
MIN_SHARE = 0.05
# Standard errors of a difference of means that chance exceeds in 1 of 1,000 cases.
SURE = 3.3
# Chance below which different shares of the ways are part of what people pay. Above it the shares of the before
# side hold for both: with two ways, one eight times the other, the mean of 60 transactions is off by 14 % for that
# alone.
SURE_OF_MIX = 0.01
# Standard errors of the bounds of what people pay: shares that differ by less than `SURE_OF_MIX` are within them.
AROUND_MIX = 2.58
# Chance below which more transactions fail than before, and not only at other times of day.
SURE_OF_FAILURES = 1e-4


@dataclass(frozen=True)
class WaySide:
    """Transactions of one stratum, or of all strata, on one side.

    Attributes
    ----------
    rows : DataFrame
        Observations, sorted by version.
    mean : float
        Mean gas in gas units. For all strata together, the after mean is weighted by the shares of the before side,
        unless both the shares and the code have changed.
    success : bool or None
    """

    rows: pd.DataFrame = field(compare=False, repr=False)
    mean: float
    success: bool | None


@dataclass(frozen=True, slots=True)
class WayDifference:
    """The difference of one stratum, or of all strata, between two sides.

    Attributes
    ----------
    stratum : str
        The stratum in words.
    before, after : WaySide or None
    changed : bool
        Whether the gas differs by more than chance and rounding can explain.
    low, high : float or None
        95 % confidence bounds on the difference, including rounding.
    failing : tuple of (float, float) or None
        The share of transactions that fail on each side, if more of them fail on the after side.
    not_judged : str
        Why the stratum cannot be compared; empty if it can be, or is on one side only.
    """

    stratum: str
    before: WaySide | None
    after: WaySide | None
    changed: bool = False
    low: float | None = None
    high: float | None = None
    failing: tuple[float, float] | None = None
    not_judged: str = ""


def compare_sides(before: pd.DataFrame, after: pd.DataFrame, *, same_code: bool = False) -> list[WayDifference]:
    """Compare the transactions of a call on two sides.

    Parameters
    ----------
    before, after : DataFrame
        Frames from `series_frame`. No transaction is on both sides.
    same_code : bool, default False
        Whether nothing that determines gas changed between the sides. Shares that differ are then due to usage
        and excluded from the difference in means; after an upgrade, the code may be the cause.

    Returns
    -------
    list of WayDifference
        If several strata succeed, first all of them together; then each stratum, those with the most transactions
        first. Rare strata without enough transactions on a side are ignored, also in the mean, because the first
        transaction of an account can cost as much as a hundred others.
    """
    every = pd.concat([before, after], ignore_index=True)
    # The sides may be of two ledgers, so that their versions say nothing; their order does.
    placed = every.assign(ledger_version=np.arange(len(every)))
    strata = find_ways(Observations(placed), [Change(len(before), Cause.CODE)])
    sides = [(_side(every, one, one.rows < len(before)), _side(every, one, one.rows >= len(before))) for one in strata]
    paid = {
        stratum_words(one, strata): pair
        for one, pair in zip(strata, sides, strict=True)
        if not _fails(one) and not _is_rare(pair, (len(before), len(after)))
    }
    failed = [pair for one, pair in zip(strata, sides, strict=True) if _fails(one)]
    pairs, ways = list(paid.values()), [_of_way(words, pair) for words, pair in paid.items()]
    mean = _mean_of(pairs, same_code=same_code) if len(pairs) > 1 else []
    if same_code and len(pairs) > 1:  # a way that is hardly taken any longer is what people do, and no reason for doubt
        ways = [way for way in ways if not way.not_judged]
    return [*mean, *_failing(pairs, failed), *ways]


def _fails(stratum: Stratum) -> bool:
    return stratum.value("success") is not None and not stratum.value("success")


def _is_rare(pair: tuple[WaySide | None, WaySide | None], totals: tuple[int, int]) -> bool:
    """Return whether a stratum has too few transactions to be compared, and too few to matter."""
    counts = [0 if side is None else len(side.rows) for side in pair]
    if min(counts) >= MIN_SIDE:
        return False
    return max(counts) < MIN_SIDE or max(a / b for a, b in zip(counts, totals, strict=True)) < MIN_SHARE


def _side(every: pd.DataFrame, stratum: Stratum, there: NDArray[np.bool_]) -> WaySide | None:
    rows = every.iloc[stratum.rows[there]]
    success = stratum.value("success")
    return WaySide(rows, float(_gas(rows).mean()), None if success is None else bool(success)) if len(rows) else None


def _gas(rows: pd.DataFrame) -> Floats:
    return rows["gas_used"].to_numpy(np.float64)


def _of_way(words: str, pair: tuple[WaySide | None, WaySide | None]) -> WayDifference:
    """Compare a stratum between the sides; it has changed if its gas, or a part of its gas, has."""
    one, two = pair
    if one is None or two is None:
        return WayDifference(words, one, two)
    if few := _too_few(one.rows, two.rows):
        return WayDifference(words, one, two, not_judged=few)
    changed, low, high = _difference(_gas(one.rows), _gas(two.rows), 1.0)
    for part in (part for part in Part if part.column in one.rows):
        unit = octas_per_unit(one.rows) if part.in_octas else 1.0
        first, last = (side.rows[part.column].to_numpy(np.float64) for side in (one, two))
        changed |= _difference(first, last, unit)[0]
    return WayDifference(words, one, two, changed, low, high)


def _too_few(one: pd.DataFrame, two: pd.DataFrame) -> str:
    if min(len(one), len(two)) >= MIN_SIDE:
        return ""
    return f"{plural(len(one), 'transaction')} before and {len(two):,} after, but {MIN_SIDE} are needed"


def _mean_of(pairs: Sequence[tuple[WaySide | None, WaySide | None]], *, same_code: bool) -> list[WayDifference]:
    """Return the difference in mean gas over all strata that succeed."""
    whole = [[side for pair in pairs if (side := pair[place]) is not None] for place in (0, 1)]
    if not all(whole):
        return []
    frames = [pd.concat([side.rows for side in sides]).sort_index() for sides in whole]
    if few := _too_few(*frames):
        one, two = (WaySide(rows, float(_gas(rows).mean()), success=True) for rows in frames)
        return [WayDifference(ALL_TRANSACTIONS, one, two, not_judged=few)]
    both = [(one, two) for one, two in pairs if one is not None and two is not None]
    counts = np.array([[0 if side is None else len(side.rows) for side in pair] for pair in pairs])
    gas = [_gas(rows) for rows in frames]
    means = [float(values.mean()) for values in gas]
    around = max(AROUND_MIX * math.sqrt(sum(map(_variance_of_mean, gas))), 1.0)
    moved = chance_of_counts(*counts.T) < SURE_OF_MIX
    paid = means[1] - means[0]
    if (moved and not same_code) or not both:
        changed, change = True, paid
    else:
        shares = np.array([len(one.rows) for one, _ in both]) / sum(len(one.rows) for one, _ in both)
        change = float(sum(s * (two.mean - one.mean) for s, (one, two) in zip(shares, both, strict=True)))
        variance = sum(
            s * s * (_variance_of_mean(_gas(one.rows)) + _variance_of_mean(_gas(two.rows)))
            for s, (one, two) in zip(shares, both, strict=True)
        )
        changed = abs(change) >= _least(math.sqrt(variance), means)
    one, two = WaySide(frames[0], means[0], success=True), WaySide(frames[1], means[0] + change, success=True)
    # Wherever use changed, the bounds hold for what was paid, too.
    low, high = min(change, paid if moved else change) - around, max(change, paid if moved else change) + around
    return [WayDifference(ALL_TRANSACTIONS, one, two, changed, low, high)]


def _failing(
    paid: Sequence[tuple[WaySide | None, WaySide | None]], failed: Sequence[tuple[WaySide | None, WaySide | None]]
) -> list[WayDifference]:
    """Return the difference in failures, if a larger share of transactions fails on the after side."""
    there = [[[way.rows for pair in pairs if (way := pair[n]) is not None] for pairs in (failed, paid)] for n in (0, 1)]
    counts = np.array([[sum(map(len, frames)) for frames in side] for side in there])
    shares = counts[:, 0] / np.maximum(counts.sum(axis=1), 1)
    if not counts[1, 0] or shares[1] <= shares[0] or chance_of_counts(*counts) >= SURE_OF_FAILURES:
        return []
    rows = pd.concat(there[0][1] or there[0][0]), pd.concat(there[1][0])
    one, two = (WaySide(those, float(_gas(those).mean()), ok) for those, ok in zip(rows, (True, False), strict=True))
    return [WayDifference("failing", one, two, changed=True, failing=(float(shares[0]), float(shares[1])))]


def _difference(one: Floats, two: Floats, width: float) -> tuple[bool, float, float]:
    """Return whether two means differ, and the bounds of the difference; `width` is one gas unit."""
    change = float(two.mean() - one.mean())
    error = math.sqrt(_variance_of_mean(one) + _variance_of_mean(two))
    around = max(BOUNDS_95 * error, width)
    return abs(change) >= _least(error, (one.mean(), two.mean()), width), change - around, change + around


def _least(error: float, means: Sequence[float], width: float = 1.0) -> float:
    """Return the smallest difference in means that chance does not explain; without noise, a quarter of a unit."""
    return max(SURE * error, MIN_RELATIVE_STEP * max(means) if error else 0.0, MIN_STEP_UNITS * width)


def _variance_of_mean(values: Floats) -> float:
    """Return the variance of a mean, for values that may grow and whose neighbours may be correlated."""
    residual, place = values - values.mean(), np.arange(len(values)) - (len(values) - 1) / 2
    if len(values) > MIN_SIDE:
        residual = residual - float(place @ residual) / float(place @ place) * place
    power = float(residual @ residual)
    if power <= 1e-9 * len(values):  # what float arithmetic leaves of equal values
        return 0.0
    alike = min(MAX_CORRELATION, max(0.0, float(residual[1:] @ residual[:-1]) / power))
    return power / (len(values) - 1) / len(values) * (1 + alike) / (1 - alike)
