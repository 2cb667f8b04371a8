"""Levels of committed gas, and the one test of whether they differ between two runs of calls.

A function takes ways through its code that no recorded column names, and each way has its own level of gas. The test
compares the calls before a place with those after it, level by level.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

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
# Chance of other shares of the ways at a change. Nothing is blamed on them, so the usual evidence is enough.
USE = 0.01
# Chance of a place, corrected for the places tried, at which shares differ. It only says where, and blames nothing.
SPLIT = 1e-3
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
# Independent places for each doubling of the calls that a search for a place tries.
PLACES_PER_DOUBLING = 4
# A difference of so many standard deviations of single calls is clear however alike neighbours are: what a line leaves
# of growth makes them alike, too.
CLEAR = 5.0
# Confidence of a slope: growth that is only noise would be drawn on to the place.
SLOPE = 0.999
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
    sizes : ndarray of float64 or None
        Bytes of each payload; None if all are equal.
    unit : float
        One gas unit, in the unit of the values.
    width : float
        Maximum amount by which values are rounded up: 1 for gas units, 0 for octas.
    """

    values: Floats
    places: Floats
    sizes: Floats | None
    unit: float
    width: float = 1.0

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice | NDArray[np.bool_]) -> Calls:
        sizes = None if self.sizes is None else self.sizes[rows]
        return replace(self, values=self.values[rows], places=self.places[rows], sizes=sizes)


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
    near : bool
        Whether the 8 calls next to the place on each side differ by at least half as much.
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
    near: bool = True

    @property
    def change(self) -> float:
        """After minus before; NaN if the level exists on one side only."""
        return np.nan if self.before is None or self.after is None else self.after - self.before


@dataclass(frozen=True, slots=True)
class Test:
    """The differences between two sides, and whether the shares of levels that did not move differ."""

    differences: tuple[Difference, ...] = ()
    shares: tuple[tuple[int, float, float], ...] = ()

    @property
    def moved(self) -> float:
        """The largest difference; infinite if a level exists on one side only, 0 if nothing differs."""
        found = [abs(one.change) for one in self.differences if one.chance <= POSSIBLE]
        return max((np.inf if np.isnan(change) else change for change in found), default=0.0)


def level_numbers(values: Floats, unit: float) -> Ints:
    """Return the number of the level of each value; all are 0 if there are too many levels to be ways."""
    distinct = np.unique(values)
    apart = np.diff(distinct) > np.maximum(GAP_UNITS * unit, GAP * np.abs(distinct[:-1]))
    if apart.sum() >= MAX_LEVELS:
        return np.zeros(len(values), np.int64)
    return np.digitize(values, distinct[1:][apart])


def growth_rate(calls: Calls) -> tuple[float, float, float]:
    """Return growth per call as a share of the level, with its 99.9 % bounds: Theil-Sen on logarithms.

    Zeros if the values do not grow significantly, or a value is not positive.
    """
    if len(calls) < 2 * MIN_SURE_CALLS or calls.values.min() <= 0:
        return 0.0, 0.0, 0.0
    level = level_numbers(calls.values, calls.unit)
    most = np.flatnonzero(level == np.bincount(level).argmax())
    some = most[np.linspace(0, len(most) - 1, min(len(most), WINDOW)).astype(int)]
    if len(some) < 2 * MIN_SURE_CALLS or np.ptp(calls.values[some]) == 0:
        return 0.0, 0.0, 0.0
    slope, _, low, high = scipy.stats.theilslopes(np.log(calls.values[some]), calls.places[some], alpha=SLOPE)
    return (float(slope), float(low), float(high)) if low * high > 0 else (0.0, 0.0, 0.0)


def without_growth(calls: Calls, at: float) -> Calls:
    """Return calls with their growth removed: the values they would have at a place."""
    rate = growth_rate(calls)[0]
    return calls if not rate else replace(calls, values=calls.values * np.exp(-rate * (calls.places - at)))


def without_sizes(calls: Calls, size: float) -> Calls:
    """Return calls with what payload sizes explain removed: the values they would have at a size."""
    if calls.sizes is None or len(calls) < MIN_SURE_CALLS or np.ptp(calls.sizes) == 0 or np.ptp(calls.values) == 0:
        return calls
    if level_numbers(calls.values, calls.unit).any():
        return calls  # ways may have payloads of their own, and their levels are not what a size costs
    line = scipy.stats.linregress(calls.sizes, calls.values)
    if line.pvalue > SURE:
        return calls
    return replace(calls, values=calls.values - line.slope * (calls.sizes - size))


def inflation(before: Floats, after: Floats) -> float:
    """Return how many calls are worth one independent call, at least 1, judging by how alike neighbours are."""
    residual = np.concatenate([side - side.mean() for side in (before, after)])
    power, size = float(residual @ residual), len(residual)
    moved = abs(float(after.mean() - before.mean()))
    if size < 2 * MIN_SURE_CALLS or power <= 1e-9 * size or moved > CLEAR * np.sqrt(power / size):
        return 1.0
    alike = min(float(residual[1:] @ residual[:-1]) / power, 1 - 2 / size)  # all of them are worth one at least
    return (1 + alike) / (1 - alike) if alike > 2 / np.sqrt(size) else 1.0


def test(before: Calls, after: Calls) -> Test:
    """Compare the calls before and after a place, level by level.

    Parameters
    ----------
    before, after : Calls
        The nearest `WINDOW` calls of each are compared.

    Returns
    -------
    Test
        Without differences if a side has fewer than 5 calls.
    """
    sides = before[-WINDOW:], after[:WINDOW]
    if min(map(len, sides)) < MIN_CALLS:
        return Test()
    at = sides[1].places[0] - 0.5
    if before.sizes is not None:
        size = float(np.concatenate([side.sizes for side in sides if side.sizes is not None]).mean())
        sides = without_sizes(sides[0], size), without_sizes(sides[1], size)
    rates = [growth_rate(side) for side in sides]
    flat = [side.values * np.exp(-rate * (side.places - at)) for side, (rate, *_) in zip(sides, rates, strict=True)]
    # The line is drawn on to the place, so what is not known of its slope is not known of the level there.
    away = [abs(float(side.places.mean()) - at) for side in sides]
    wide = 2 * scipy.stats.norm.ppf((1 + SLOPE) / 2)
    errors = [far * (high - low) / wide for far, (_, low, high) in zip(away, rates, strict=True)]
    values = np.concatenate(flat)
    levels = level_numbers(values, before.unit)
    later = np.arange(len(values)) >= len(flat[0])
    return _test_levels(values, levels, later, (before.unit, before.width), errors)


def _test_levels(
    values: Floats, levels: Ints, later: NDArray[np.bool_], units: tuple[float, float], errors: list[float]
) -> Test:
    """Compare values without growth; `errors` are the relative errors that the growth of each side leaves."""
    count = int(levels.max()) + 1
    counts = np.array([np.bincount(levels[later == side], minlength=count) for side in (False, True)])
    totals = counts.sum(axis=1)
    fisher = np.array([chance_of_shares(before, after, totals) for before, after in counts.T])
    absent = (counts <= ABSENT * totals[:, None]) & (fisher <= POSSIBLE)
    # Callers that repeat a call are worth fewer independent ones.
    repeated = inflation(values[~later], values[later])
    chances = _of_repeated(fisher, repeated)
    several = max(int(((here > 0) & ~away).sum()) for here, away in zip(counts, absent, strict=True)) > 1
    pairs = [*_pairs(values, levels, later, counts, absent, exact=not units[1])]
    olds, news = zip(*pairs, strict=True)
    found = []
    shares = counts / totals[:, None]
    for one, two in pairs:
        sides = values[~later & (levels == one)], values[later & (levels == two)]
        if one is not None and two is not None:
            compared = _compare(*sides, *units, errors, separate=one != two)
            # A level that is another way's on the other side shows nothing of this way there.
            old = (levels == one) | ((levels == two) & (two not in olds))
            new = (levels == two) | ((levels == one) & (one not in news))
            mine = np.flatnonzero(np.where(later, new, old))
            at = int((~later[mine]).sum())
            best = _place_of(values[mine], at, units[0])
            late = int(mine[best] - np.flatnonzero(later)[0]) if best != at else 0
            beside = values[mine[at : at + MIN_SURE_CALLS]].mean() - values[mine[:at][-MIN_SURE_CALLS:]].mean()
            near = bool(beside * compared.change >= compared.change**2 / 2)
            found.append(replace(compared, way=one if several else None, late=late, near=near))
            continue
        level, side = (one, 0) if two is None else (two, 1)
        mean, chance, share = float(sides[side].mean()), float(chances[level]), float(shares[side, level])
        nothing = Difference(None, None, np.nan, np.nan, len(sides[0]), len(sides[1]), chance, level, share)
        found.append(replace(nothing, before=mean) if two is None else replace(nothing, after=mean))
    moved = several and bool((chances <= USE).any())
    mix = tuple((n, float(shares[0, n]), float(shares[1, n])) for n in range(count)) if moved else ()
    return Test(tuple(found), mix)


def _pairs(
    values: Floats, levels: Ints, later: NDArray[np.bool_], counts: Ints, absent: NDArray[np.bool_], *, exact: bool
) -> Iterator[tuple[int | None, int | None]]:
    """Yield the levels of the two sides that are one way: a level that stays, or one that ends and one that begins.

    If one factor explains all levels, or one amount of octas such as a slot's, each is paired with the level of the
    same order, whether or not another level happens to be there.
    """
    here = [[n for n in range(counts.shape[1]) if counts[side, n] and not absent[side, n]] for side in (0, 1)]
    if absent.any() and len(here[0]) == len(here[1]) > 1:
        means = [[values[(later == bool(side)) & (levels == n)].mean() for n in here[side]] for side in (0, 1)]
        ratios, moved = np.array(means[1]) / np.maximum(means[0], 1e-9), np.subtract(means[1], means[0])
        table = np.array([counts[side, here[side]] for side in (0, 1)])
        alike = np.ptp(ratios) < ALIKE * ratios.max()
        alike |= exact and np.ptp(moved) < ALIKE * np.abs(moved).max()
        if alike and scipy.stats.chi2_contingency(table).pvalue > SURE:
            yield from zip(*here, strict=True)
            return
    both = [n for n in here[0] if n in here[1]]
    yield from ((n, n) for n in both)
    ended, begun = ([n for n in here[side] if n not in both] for side in (0, 1))
    totals = counts.sum(axis=1)
    for one in ended:
        # A way that begins is the one that ends, at another cost, if as many calls take it.
        alike = {two: chance_of_shares(counts[0, one], counts[1, two], totals) for two in begun}
        two = max(begun, key=alike.__getitem__, default=None)
        if two is not None and alike[two] > POSSIBLE:
            begun.remove(two)
            yield one, two
        else:
            yield one, None
    yield from ((None, two) for two in begun)


def _of_repeated(chance: Any, repeated: float) -> Any:
    """Return the chance of a finding if so many calls are worth one."""
    return 2 * scipy.stats.norm.sf(scipy.stats.norm.isf(chance / 2) / np.sqrt(repeated))


def chance_of_shares(before: int, after: int, totals: Ints) -> float:
    """Return the chance that so many of all calls on each side differ as much if their shares are equal (Fisher)."""
    return float(scipy.stats.fisher_exact([(before, after), totals - (before, after)]).pvalue)


def _compare(
    before: Floats, after: Floats, unit: float, width: float, errors: list[float], *, separate: bool
) -> Difference:
    """Compare one level on both sides."""
    one, two = float(before.mean()), float(after.mean())
    counts = len(before), len(after)
    freedom = sum(counts) - 2
    moved = abs(two - one)
    if min(counts) < MIN_CALLS and not separate:
        return Difference(one, two, -np.inf, np.inf, *counts, 1.0)
    residual = np.concatenate([before - one, after - two])
    residual[np.abs(residual) < 1e-9 * max(abs(one), abs(two), unit)] = 0
    repeated = inflation(before, after)
    spreads = [float(values.var(ddof=1)) / len(values) if len(values) > 1 else 0.0 for values in (before, after)]
    error = float(np.sqrt(sum(spreads) * repeated)) if residual.any() else 0.0
    error = float(np.hypot(error, np.hypot(errors[0] * one, errors[1] * two)))
    if error and not separate:
        chance = 2 * float(scipy.special.stdtr(freedom / repeated, -moved / error))
    else:  # no value of one side is on the other
        chance = float(_of_repeated(chance_of_shares(counts[0], 0, np.array(counts)), repeated))
    if moved < unit - 1e-9 or (any(errors) and moved < ALIKE * max(abs(one), abs(two))):
        chance = 1.0
    around = max(float(scipy.stats.norm.ppf(BOUND)) * error, width)
    return Difference(one, two, two - one - around, two - one + around, *counts, chance)


def _place_of(values: Floats, at: int, unit: float) -> int:
    """Return the number of values before the place at which a shift divides them best; `at` if that may be it."""
    size = len(values)
    places = np.arange(1, size)
    sums, squares = np.cumsum(values - values.mean()), np.cumsum((values - values.mean()) ** 2)
    left = squares[-1] - sums[:-1] ** 2 / places - sums[:-1] ** 2 / (size - places) + size * unit**2 / 12
    best = int(np.argmin(left)) + 1
    # What the best place leaves is noise; what another place leaves makes neighbours alike, too.
    gain = size * np.log(left[at - 1] / left[best - 1]) / inflation(values[:best], values[best:])
    return best if scipy.stats.chi2.sf(gain, 1) <= POSSIBLE else at


def can_tell(before: int, after: int) -> bool:
    """Return whether so many calls in two sets could show any difference: they do if no value is in both."""
    return 1 / math.comb(before + after, before) <= POSSIBLE


def best_split(calls: Calls) -> int | None:
    """Return the place at which the levels of calls, or their shares, differ most on its two sides.

    Parameters
    ----------
    calls : Calls

    Returns
    -------
    int or None
        Number of calls before the place, at least 8 on each side; None if no place stands out from chance.
    """
    size = len(calls)
    if size < 2 * MIN_SURE_CALLS or np.ptp(calls.values) == 0:
        return None
    if calls.sizes is not None:
        calls = without_sizes(calls, float(calls.sizes.mean()))
    # A shift looks like growth, and growth like a shift: what leaves less of the values is what happened.
    both = [_split_of_values(one.values, calls.unit) for one in (calls, without_growth(calls, float(calls.places[0])))]
    return min(both, key=lambda found: found[1])[0]


def _split_of_values(values: Floats, unit: float) -> tuple[int | None, float]:
    """Return the best split of values, and the relative variance that it leaves."""
    kinds = level_numbers(values, unit)
    most = SPLIT
    for level in np.unique(kinds):  # levels that vary are divided, so that a shift within a level shows
        mine = kinds == level
        if mine.sum() >= 2 * MIN_SURE_CALLS and np.ptp(values[mine]) > 0:
            most = POSSIBLE  # noise is uneven, which looks like a shift more often than constants do
            quarters = np.unique(np.quantile(values[mine], [0.25, 0.5, 0.75]))
            kinds[mine] += MAX_LEVELS * (1 + np.digitize(values[mine], quarters, right=True))
    place = split_of_kinds(np.unique(kinds, return_inverse=True)[1], values, most=most)
    sides = (values,) if place is None else (values[:place], values[place:])
    left = sum(float(((side - side.mean()) ** 2).sum()) for side in sides)
    return place, left / (len(values) * max(float(values.mean()), unit) ** 2)


def split_of_kinds(kinds: Ints, values: Floats | None = None, *, most: float = SPLIT) -> int | None:
    """Return the place at which the shares of kinds differ most; see `best_split`. A G-test at every place.

    `most` is the largest chance of such a place where nothing differs.
    """
    size, count = len(kinds), int(kinds.max()) + 1 if len(kinds) else 0
    if size < 2 * MIN_SURE_CALLS or count < 2:  # noqa: PLR2004  # one kind has no shares
        return None
    step = max(1, size // 2_000)  # a place is not known to a single call of so many
    places = np.arange(MIN_SURE_CALLS, size - MIN_SURE_CALLS + 1, step)
    gain = np.zeros(len(places))
    for kind in range(count):
        running = np.concatenate([[0], np.cumsum(kinds == kind)])
        left, total = running[places], running[-1]
        for part, base in ((left, places), (total - left, size - places)):
            gain += 2 * scipy.special.xlogy(part, np.maximum(part, 1) * size / (base * max(total, 1)))
    best = int(places[np.argmax(gain)])
    repeated = 1.0 if values is None else inflation(values[:best], values[best:])
    # Neighbouring places share nearly all calls: all of them are worth about this many independent ones.
    tried = PLACES_PER_DOUBLING * (1 + np.log2(len(places)))
    chance = scipy.stats.chi2.sf(gain.max() / repeated, count - 1) * tried
    return best if chance < most else None
