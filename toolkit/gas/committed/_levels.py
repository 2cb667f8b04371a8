"""Levels of committed gas, and the one test of whether they differ between two runs of calls.

A function takes ways through its code that no recorded column names, and each way has its own level of gas. The test
compares the calls before a place with those after it, level by level.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import scipy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Flags = NDArray[np.bool_]

# Fewer calls on a side are never compared: four against four differ completely in 1 of 35 cases by chance.
MIN_CALLS = 5
# Fewer calls of a side leave a doubt, since their spread is uncertain by more than a quarter, and no gate judges them.
MIN_SURE_CALLS = 8
# Calls on each side that are compared, the nearest ones: what is further away has had more time to move by itself.
WINDOW = 200
# Chance of a sure finding. A run with a thousand comparisons reports one of them by chance in a hundred runs.
SURE = 1e-5
# Chance of a doubtful finding: the smallest that eight calls on each side can reach, which is 1 in 6,435.
POSSIBLE = 2e-4
# Chance of what is described and blamed on nothing: other shares, and where. It is the usual evidence.
DESCRIBED = 0.01
# Values that are further apart than this share, and this number of gas units, are different levels. Growth and noise
# within 200 calls leave narrower gaps; two rounded values of one constant are at most a unit apart.
GAP = 0.08
GAP_UNITS = 2.5
# More levels are a quantity that varies, such as the length of a list, and are compared as one noisy level.
MAX_LEVELS = 6
# Share of a side up to which a level counts as absent there: the first call of an account may be the only one.
ABSENT = 0.01
# Shares that differ by less are the same: two moves of levels, a level and what a line leaves of uneven growth.
ALIKE = 0.02
# Gas units by which means of rounded values are off: a step of one unit between them may look smaller or larger.
ROUNDED = 0.25
# Each bound of a mean holds with this probability.
BOUND = 0.975


@dataclass(frozen=True, slots=True)
class Calls:
    """Consecutive calls of one stratum: one part of their gas, where they are, and the size of their payloads.

    Attributes
    ----------
    values : ndarray of float64
        Gas units or octas.
    places : ndarray of float64
        Number of earlier calls of the function; growth is a share of the level per call.
    sizes : ndarray of float64
        Bytes of each payload; zeros if they are not known.
    unit : float
        One gas unit, in the unit of the values.
    width : float
        Maximum amount by which values are rounded up: 1 for gas units, 0 for octas.
    """

    values: Floats
    places: Floats
    sizes: Floats
    unit: float
    width: float = 1.0

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice | Ints) -> Calls:
        return replace(self, values=self.values[rows], places=self.places[rows], sizes=self.sizes[rows])

    def growth(self) -> tuple[float, float, float]:
        """Return growth per call as a share of the level, with its 99.98 % bounds: Theil-Sen on logarithms.

        Zeros if the values do not grow significantly, or one of them is not positive.
        """
        if len(self) < 2 * MIN_SURE_CALLS or self.values.min() <= 0:
            return 0.0, 0.0, 0.0
        ways = level_numbers(self.values, self.unit)
        most = np.flatnonzero(ways == np.bincount(ways).argmax())
        some = most[np.linspace(0, len(most) - 1, min(len(most), WINDOW)).astype(int)]
        if np.ptp(self.values[some]) == 0:
            return 0.0, 0.0, 0.0
        slope, _, low, high = scipy.stats.theilslopes(np.log(self.values[some]), self.places[some], 1 - POSSIBLE)
        return (float(slope), float(low), float(high)) if low * high > 0 else (0.0, 0.0, 0.0)

    def at(self, place: float, size: float) -> tuple[Floats, float]:
        """Return the values that the calls would have at a place and with a payload of a size.

        The second result is the relative error of that: what is not known of a slope is not known of the level there.
        """
        calls = self
        # Ways may have payloads of their own, so what a size costs is what it costs within a way.
        ways = level_numbers(self.values, self.unit)
        sizes, values = (one - (np.bincount(ways, one) / np.bincount(ways))[ways] for one in (self.sizes, self.values))
        if np.ptp(sizes) and np.ptp(values):
            line = scipy.stats.linregress(sizes, values)
            if line.pvalue <= SURE:
                calls = replace(self, values=self.values - line.slope * (self.sizes - size))
        rate, low, high = calls.growth()
        away = calls.places - place
        error = abs(float(away.mean())) * (high - low) / (2 * scipy.stats.norm.isf(POSSIBLE / 2))
        return calls.values * np.exp(-rate * away), error


@dataclass(frozen=True, slots=True)
class Difference:
    """How one level differs between two sides.

    Attributes
    ----------
    before, after : float
        Means at the place, at the same payload size; None if the level exists on the other side only.
    low, high : float
        95 % confidence bounds on the difference, including rounding. NaN unless both sides have the level.
    count_before, count_after : int
        Calls compared.
    chance : float
        Probability of so large a difference if nothing changed.
    way : int or None
        Number of the level among those of the function, from the lowest; None if there is one level.
    share : float or None
        Share of the calls that take the way, on the side where it exists, if it exists on one side only.
    late : int
        Calls from the place to another at which the difference certainly begins; 0 if it may begin at the place.
    """

    before: float | None
    after: float | None
    low: float
    high: float
    count_before: int
    count_after: int
    chance: float
    way: int | None = None
    share: float | None = None
    late: int = 0

    @property
    def change(self) -> float:
        """After minus before; NaN if the level exists on one side only."""
        return np.nan if self.before is None or self.after is None else self.after - self.before

    @property
    def size(self) -> float:
        """The absolute change; infinite if the level exists on one side only."""
        return np.inf if self.share is not None else abs(self.change)


@dataclass(frozen=True, slots=True)
class Test:
    """The ways of two sides as differences, and the way and the two shares of levels whose shares differ."""

    compared: tuple[Difference, ...] = ()
    shares: tuple[tuple[int, float, float], ...] = ()

    @property
    def found(self) -> list[Difference]:
        """The differences that chance does not explain."""
        return [one for one in self.compared if one.chance <= POSSIBLE]

    @property
    def size(self) -> float:
        """The largest difference; 0 if nothing differs."""
        return max((one.size for one in self.found), default=0.0)


def level_numbers(values: Floats, unit: float) -> Ints:
    """Return the number of the level of each value; all are 0 if there are too many levels to be ways."""
    distinct = np.unique(values)
    apart = np.diff(distinct) > np.maximum(GAP_UNITS * unit, GAP * np.abs(distinct[:-1]))
    if apart.sum() >= MAX_LEVELS:
        return np.zeros(len(values), np.int64)
    return np.digitize(values, distinct[1:][apart])


def chance_of_shares(before: int, after: int, totals: Ints) -> float:
    """Return the chance that so many of all calls on each side differ as much if their shares are equal (Fisher)."""
    return float(scipy.stats.fisher_exact([(before, after), totals - (before, after)]).pvalue)


def can_tell(before: int, after: int) -> bool:
    """Return whether so many calls in two sets could show any difference: they do if no value is in both."""
    return 1 / math.comb(before + after, before) <= POSSIBLE


def inflation(before: Floats, after: Floats) -> float:
    """Return how many calls are worth one independent call, at least 1, judging by how alike neighbours are."""
    residual = np.concatenate([side - side.mean() for side in (before, after)])
    power, size = float(residual @ residual), len(residual)
    if size < 2 * MIN_SURE_CALLS or power <= 1e-9 * size:
        return 1.0
    alike = min(float(residual[1:] @ residual[:-1]) / power, 1 - 2 / size)  # all of them are worth one at least
    return (1 + alike) / (1 - alike) if alike > 2 / np.sqrt(size) else 1.0


def kinds_of(values: Floats, unit: float) -> Ints:
    """Return a number for each value by its level, and by its quarter of a level that varies."""
    levels = level_numbers(values, unit)
    ends = [np.quantile(values[levels == one], np.arange(5) / 4, method="lower") for one in np.unique(levels)]
    return np.digitize(values, np.unique(ends), right=True)


def gains(kinds: Ints) -> Floats:
    """Return how well each place divides calls, from after the first on: a G-test of the shares of kinds there."""
    size = len(kinds)
    places = np.arange(1, size)
    gained = np.zeros(size - 1)
    for kind in np.unique(kinds):
        left = np.cumsum(kinds == kind)
        for part, base in ((left[:-1], places), (left[-1] - left[:-1], size - places)):
            gained += 2 * scipy.special.xlogy(part, np.maximum(part, 1) * size / (base * left[-1]))
    return gained


def split(kinds: Ints) -> int | None:
    """Return the number of calls before the place that divides them best, 8 or more a side; None if none stands out."""
    size, count = len(kinds), len(np.unique(kinds))
    if size < 2 * MIN_SURE_CALLS or count < 2:  # noqa: PLR2004  # one kind has no shares
        return None
    gained = gains(kinds)
    best = int(gained.argmax()) + 1
    certain = scipy.stats.chi2.sf(gained[best - 1], count - 1) * gained.size < DESCRIBED
    # What is nearer to an end is judged with the change there.
    return best if certain and MIN_SURE_CALLS <= best <= size - MIN_SURE_CALLS else None


def test(before: Calls, after: Calls) -> Test:
    """Compare the calls before and after a place, level by level; nothing is found with fewer than 5 on a side."""
    sides = before[-WINDOW:], after[:WINDOW]
    if min(map(len, sides)) < MIN_CALLS:
        return Test()
    place = float(sides[1].places[0]) - 0.5
    size = float(np.concatenate([side.sizes for side in sides]).mean())
    flat, errors = zip(*(side.at(place, size) for side in sides), strict=True)
    values = np.concatenate(flat)
    later = np.arange(len(values)) >= len(flat[0])
    levels = level_numbers(values, before.unit)
    count = int(levels.max()) + 1
    counts = np.array([np.bincount(levels[later == side], minlength=count) for side in (False, True)])
    totals = counts.sum(axis=1)
    chances = np.array([chance_of_shares(one, two, totals) for one, two in counts.T])
    there = (counts > ABSENT * totals[:, None]) | ((counts > 0) & (chances > POSSIBLE))
    several = there.sum(axis=1).max() > 1
    repeated = inflation(values[~later], values[later])
    compared = []
    for one, two in _pairs(values, levels, later, counts, there):
        sides_of = values[~later & (levels == one)], values[later & (levels == two)]
        mine = np.isin(levels, [level for level in (one, two) if level is not None])
        if one is None or two is None:
            level, side = (one, 0) if two is None else (two, 1)
            mean = float(sides_of[side].mean())
            old, new = (mean, None) if two is None else (None, mean)
            # Callers that repeat a call are worth fewer independent ones.
            chance = 2 * float(scipy.stats.norm.sf(scipy.stats.norm.isf(chances[level] / 2) / math.sqrt(repeated)))
            share = float(counts[side, level] / totals[side])
            difference = Difference(old, new, np.nan, np.nan, len(sides_of[0]), len(sides_of[1]), chance, level, share)
            late = _late(mine.astype(np.int64), np.arange(len(values)), len(flat[0]))
        else:
            difference = _compare(*sides_of, (before.unit, before.width), errors, separate=one != two)
            late = _late(kinds_of(values[mine], before.unit), np.flatnonzero(mine), len(flat[0]))
        way = one if difference.share is None and several else difference.way
        compared.append(replace(difference, way=way, late=late))
    moved_shares = several and chances.min() <= DESCRIBED
    shares = (counts / totals[:, None]).T.tolist() if moved_shares else []
    return Test(tuple(compared), tuple((way, *pair) for way, pair in enumerate(shares)))


def _pairs(
    values: Floats, levels: Ints, later: Flags, counts: Ints, there: Flags
) -> Iterator[tuple[int | None, int | None]]:
    """Yield the levels of the two sides that are one way: a level that stays, or one that ends and one that begins."""
    olds, news = (np.flatnonzero(side).tolist() for side in there)
    totals = counts.sum(axis=1)
    if len(olds) == len(news) > 1 and olds != news:
        # One factor for all ways is one reason, even if a level is then where another was.
        ratios = [
            values[later & (levels == b)].mean() / max(values[~later & (levels == a)].mean(), 1e-9)
            for a, b in zip(olds, news, strict=True)
        ]
        alike = [
            chance_of_shares(counts[0, a], counts[1, b], totals) > POSSIBLE for a, b in zip(olds, news, strict=True)
        ]
        if np.ptp(ratios) < ALIKE * max(ratios) and all(alike):
            yield from zip(olds, news, strict=True)
            return
    both = [level for level in olds if level in news]
    yield from zip(both, both, strict=True)
    begun = [level for level in news if level not in both]
    for one in (level for level in olds if level not in both):
        # A way that begins is the one that ends, at another cost, if as many calls take it.
        two = max(begun, key=lambda level: chance_of_shares(counts[0, one], counts[1, level], totals), default=None)
        if two is not None and chance_of_shares(counts[0, one], counts[1, two], totals) > POSSIBLE:
            begun.remove(two)
            yield one, two
        else:
            yield one, None
    yield from ((None, level) for level in begun)


def _compare(
    before: Floats, after: Floats, units: tuple[float, float], errors: tuple[float, ...], *, separate: bool
) -> Difference:
    """Compare the values of one way on both sides, whose growth leaves relative errors."""
    counts = len(before), len(after)
    one, two = float(before.mean()), float(after.mean())
    apart = before.max() < after.min() or after.max() < before.min()
    repeated = inflation(before, after)
    spread = sum(float(side.var(ddof=1)) / len(side) for side in (before, after) if len(side) > 1)
    error = math.hypot(math.sqrt(spread * repeated), errors[0] * one, errors[1] * two)
    moved, unit = abs(two - one), units[0]
    if (
        moved < (1 - ROUNDED) * unit
        or (any(errors) and moved < ALIKE * max(abs(one), abs(two)))
        or (min(counts) < MIN_CALLS and not separate)
    ):
        chance = 1.0
    elif apart and (not error or separate):
        chance = 1 / math.comb(sum(counts), counts[0])
    else:
        chance = 2 * float(scipy.special.stdtr((sum(counts) - 2) / repeated, -moved / max(error, 1e-9)))
    around = max(float(scipy.stats.norm.ppf(BOUND)) * error, units[1])
    return Difference(one, two, two - one - around, two - one + around, *counts, chance)


def _late(kinds: Ints, places: Ints, place: int) -> int:
    """Return how many calls after a place the one is that certainly divides calls better; 0 if there is none."""
    gained = gains(kinds)
    best, at = int(gained.argmax()) + 1, int(np.searchsorted(places, place))
    constant = np.ptp(kinds[:best]) == np.ptp(kinds[best:]) == 0  # where nothing varies, one call is enough
    certain = scipy.stats.chi2.sf(gained[best - 1], len(np.unique(kinds)) - 1) * len(kinds) <= POSSIBLE
    better = scipy.stats.chi2.sf(gained[best - 1] - gained[at - 1], 1) <= POSSIBLE
    return int(places[best]) - place if best != at and certain and (constant or better) else 0
