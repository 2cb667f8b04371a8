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
    from collections.abc import Iterable

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
# Chance of what is described and blamed on nothing: growth, what a byte costs, other shares. It is the usual evidence.
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
# Less is what floating-point numbers leave of equal ones.
NOTHING = 1e-9


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
    paid : ndarray of float64
        Gas used by each call, in gas units.
    unit : float
        One gas unit, in the unit of the values.
    width : float
        Maximum amount by which values are rounded up: 1 for gas units, 0 for octas.
    """

    values: Floats
    places: Floats
    sizes: Floats
    paid: Floats
    unit: float
    width: float = 1.0

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice | Ints) -> Calls:
        own = (self.values[rows], self.places[rows], self.sizes[rows], self.paid[rows])
        return Calls(*own, self.unit, self.width)


@dataclass(frozen=True, slots=True)
class Flat:
    """Calls as they would be at one place and with one size of payload.

    Attributes
    ----------
    values : ndarray of float64
    away : ndarray of float64
        How many calls and bytes each call is away from there, and the same again for later calls alone, of shape
        (number of calls, 4).
    rates : ndarray of float64
        Growth per call and what a byte costs, as shares of the level, and how these differ later; 0 where nothing
        speaks for it.
    covariance : ndarray of float64
        What is not known of the rates.
    freedom : int
        Degrees of freedom of that.
    """

    values: Floats
    away: Floats
    rates: Floats
    covariance: Floats
    freedom: int

    @classmethod
    def of(cls, calls: Calls, place: float, later: Flags | None = None) -> Flat:
        """Return calls at a place and with their mean size; `later` marks those after a change, which may move them."""
        sides = np.zeros(len(calls), np.int64) if later is None else later.astype(np.int64)
        ways = sides.copy()
        for side in np.unique(sides):
            ways[sides == side] += 2 * level_numbers(calls.values[sides == side], calls.unit)
        common = [calls.places - place, calls.sizes - calls.sizes.mean()]
        # What a change does to growth, or to the cost of a byte, is a rate of the later side alone.
        away = np.stack([*common, *(one * sides for one in common)], axis=1)
        accounts = []
        # Sizes that vary look like ways, and ways have sizes of their own: what leaves less explains more.
        for groups in (ways, sides):
            rates, covariance, freedom = _regression(calls.values, away, groups)
            values = calls.values - _means(calls.values, groups) * (away @ rates)
            left = float(np.square(values - _means(values, groups)).sum()) / freedom
            accounts.append((left, cls(values, away, rates, covariance, freedom)))
        return min(accounts, key=lambda account: account[0])[1]

    def unknown(self, one: Flags, two: Flags) -> float:
        """Return the variance of the difference of two means that is due to what is not known of the rates.

        Growth that differs later may have begun up to eight calls before or after the place.
        """
        first, second = (self.values[rows].mean() * self.away[rows].mean(axis=0) for rows in (one, two))
        begun = MIN_SURE_CALLS * float(self.rates[2]) * float(self.values[two].mean())
        return float((second - first) @ self.covariance @ (second - first)) + begun**2 / 3


@dataclass(frozen=True, slots=True)
class Habits:
    """How a series moves by itself, because callers repeat what they do, or because its growth is uneven.

    Attributes
    ----------
    repeated : float
        How many calls are worth one independent call, at least 1.
    jump : float
        How much the mean of eight calls usually differs from that of the eight before, where nothing changed.
    freedom : float
        How many independent such differences there are.
    """

    repeated: float = 1.0
    jump: float = 0.0
    freedom: float = 0.0


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
    total_before, total_after : float or None
        Mean gas used by the calls compared, in gas units; None if the level exists on the other side only.
    way : bool
        Whether the level is one of several.
    share : float or None
        Share of the calls that take the way, on the side where it exists, if it exists on one side only.
    turned : bool
        Whether another share of the calls takes the way after the place, at another level, so that it may be two ways.
    joined : bool
        Whether these are several levels in one, because which of them became which is not known.
    late : int
        Calls from the place to another at which the difference certainly begins; 0 if it may begin at the place.
    elsewhere : bool
        Whether nothing varies before and after that, so that it is proved and not only likely.
    undecided : bool
        Whether no call costs what one of the other side does, and chance explains it only because callers repeat calls.
    """

    before: float | None
    after: float | None
    low: float
    high: float
    count_before: int
    count_after: int
    chance: float
    total_before: float | None
    total_after: float | None
    way: bool = False
    share: float | None = None
    turned: bool = False
    joined: bool = False
    late: int = 0
    elsewhere: bool = False
    undecided: bool = False

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
    """The ways of two sides as differences; and each way's mean gas and two shares, if shares differ."""

    compared: tuple[Difference, ...] = ()
    shares: tuple[tuple[float, float, float], ...] = ()

    @property
    def found(self) -> list[Difference]:
        """The differences that chance does not explain."""
        return [one for one in self.compared if one.chance <= POSSIBLE]

    @property
    def size(self) -> float:
        """The largest difference; 0 if nothing differs."""
        return max((one.size for one in self.found), default=0.0)


def level_numbers(values: Floats, unit: float, later: Flags | None = None) -> Ints:
    """Return the number of the level of each value; all are 0 if there are too many levels to be ways.

    `later` marks the values after a change: it may move every way, so each side may have that many.
    """
    distinct = np.unique(values)
    apart = np.diff(distinct) > np.maximum(GAP_UNITS * unit, GAP * np.abs(distinct[:-1]))
    numbers = np.digitize(values, distinct[1:][apart])
    sides = [numbers] if later is None else [numbers[~later], numbers[later]]
    return numbers if max(len(np.unique(side)) for side in sides) <= MAX_LEVELS else np.zeros_like(numbers)


def _means(values: Floats, groups: Ints) -> Floats:
    """Return for each value the mean of its group."""
    return np.asarray((np.bincount(groups, values) / np.maximum(np.bincount(groups), 1))[groups])


def _regression(values: Floats, away: Floats, groups: Ints) -> tuple[Floats, Floats, int]:
    """Return the rates that groups of calls share, their covariance and its degrees of freedom.

    It is a linear regression of each call's share of the mean of its group. One serves both sides of a change: neither
    side alone would show growth that moves the difference of both.
    """
    number = away.shape[1]
    centred = np.stack([one - _means(one, groups) for one in away.T])
    means = _means(values, groups)
    shares = np.divide(values - means, means, out=np.zeros(len(values)), where=means > 0)
    rates, covariance = np.zeros(number), np.zeros((number, number))
    freedom = len(values) - len(np.unique(groups))
    kept = (np.ptp(centred, axis=1) > 0) & (np.abs(shares).max() > NOTHING)
    while kept.any() and freedom > kept.sum():
        columns = centred[kept]
        inverse = np.linalg.pinv(columns @ columns.T)
        found = inverse @ columns @ shares
        off = shares - found @ columns
        spread = inverse * float(off @ off) / (freedom - int(kept.sum()))
        scores = np.abs(found) / np.sqrt(np.maximum(np.diag(spread), NOTHING**2))
        if 2 * scipy.special.stdtr(freedom - kept.sum(), -scores.min()) <= DESCRIBED:
            rates[kept], covariance[np.ix_(kept, kept)] = found, spread
            break
        kept[np.flatnonzero(kept)[scores.argmin()]] = False
    return rates, covariance, max(1, freedom - int(kept.sum()))


def chance_of_shares(before: int, after: int, totals: Ints) -> float:
    """Return the chance that so many of all calls on each side differ as much if their shares are equal (Fisher)."""
    return float(scipy.stats.fisher_exact([(before, after), totals - (before, after)]).pvalue)


def can_tell(before: int, after: int) -> bool:
    """Return whether so many calls in two sets could show any difference: they do if no value is in both."""
    return 1 / math.comb(before + after, before) <= POSSIBLE


def habits(stretches: Iterable[Calls], known: Iterable[Calls]) -> Habits:
    """Return how a series moves by itself: how alike neighbours are in the stretches between all its places.

    If they are alike, a difference is also compared with those within `known`, the stretches between its changes.
    """
    residual = np.zeros(0)
    for calls in stretches:
        flat = Flat.of(calls, float(calls.places.mean())).values
        off = flat - _means(flat, level_numbers(flat, calls.unit))
        # What rounding leaves of growth is alike among neighbours, too, and no habit.
        residual = np.append(residual, np.where(np.abs(off) > (1 - ROUNDED) * calls.unit, off, 0.0))
    power, size = float(residual @ residual), len(residual)
    if size < 2 * MIN_SURE_CALLS or not power:
        return Habits()
    alike = min(float(residual[1:] @ residual[:-1]) / power, 1 - 2 / size)  # all of them are worth one at least
    if alike <= 2 / np.sqrt(size):
        return Habits()
    jumps = np.concatenate([_jumps(calls) for calls in known])
    freedom = len(jumps) / (2 * MIN_SURE_CALLS)
    jump = max(float(np.sqrt(np.square(jumps).mean())), ROUNDED * calls.unit) if freedom else 0.0
    return Habits((1 + alike) / (1 - alike), jump, freedom)


def _jumps(calls: Calls) -> Floats:
    """Return by how much the mean of eight calls differs from that of the eight before, at each place."""
    off = calls.values - _means(calls.values, level_numbers(calls.values, calls.unit))
    sums = np.cumsum(np.append(0.0, off))
    means = (sums[MIN_SURE_CALLS:] - sums[:-MIN_SURE_CALLS]) / MIN_SURE_CALLS
    return np.asarray(means[MIN_SURE_CALLS:] - means[:-MIN_SURE_CALLS])


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
    certain = scipy.special.chdtrc(count - 1, gained[best - 1]) * gained.size < DESCRIBED
    # What is nearer to an end is judged with the change there.
    return best if certain and MIN_SURE_CALLS <= best <= size - MIN_SURE_CALLS else None


def test(calls: Calls, before: slice, after: slice, habits: Habits) -> Test:
    """Compare the calls before and after a place, level by level; nothing is found with fewer than 5 on a side."""
    rows = np.arange(before.start, before.stop)[-WINDOW:], np.arange(after.start, after.stop)[:WINDOW]
    if min(map(len, rows)) < MIN_CALLS:
        return Test()
    sides = _Sides(calls[np.concatenate(rows)], len(rows[0]), habits)
    compared = tuple(map(sides.compared, sides.pairs()))
    return Test(compared, sides.shares() if sides.several and sides.chances.min() <= DESCRIBED else ())


class _Sides:
    """The calls before and after a place, and their levels once growth and sizes are taken out."""

    def __init__(self, calls: Calls, place: int, habits: Habits) -> None:
        self.calls, self.place = calls, place
        self.later = np.arange(len(calls)) >= place
        self.flat = Flat.of(calls, float(calls.places[place]) - 0.5, self.later)
        self.levels = level_numbers(self.flat.values, calls.unit, self.later)
        self.habits, self.repeated, self.joined = habits, habits.repeated, -1
        self._count()
        ended, begun = (np.setdiff1d(*sides) for sides in ((self.before, self.after), (self.after, self.before)))
        if len(ended) and len(begun) and not self._paired(ended, begun):
            self.joined = int(ended[0])
            self.levels[np.isin(self.levels, [*ended, *begun])] = self.joined
            self._count()

    def _count(self) -> None:
        size = int(self.levels.max()) + 1
        self.counts = np.array([np.bincount(self.levels[self.later == side], minlength=size) for side in (False, True)])
        self.totals = self.counts.sum(axis=1)
        self.chances = np.array([self.chance(level, level) for level in range(size)])
        # A level of few calls that is missing on one side may have got none there by chance.
        chosen = (self.counts > ABSENT * self.totals[:, None]) | ((self.counts > 0) & (self.chances > POSSIBLE))
        self.before, self.after = (np.flatnonzero(side).tolist() for side in chosen)
        self.several = max(len(self.before), len(self.after)) > 1

    def chance(self, before: int, after: int) -> float:
        """Return the chance that two levels have as different shares if the shares are equal."""
        return chance_of_shares(self.counts[0, before], self.counts[1, after], self.totals)

    def rows(self, level: int, *, later: bool) -> Flags:
        """Return which calls are those of a level on a side."""
        return np.asarray((self.levels == level) & (self.later == later))

    def shares(self) -> tuple[tuple[float, float, float], ...]:
        """Return the mean gas of each level, and its share of the calls of each side."""
        known = [(one, float(self.calls.paid[self.levels == one].mean())) for one in np.unique(self.levels).tolist()]
        return tuple((gas, *(self.counts[:, one] / self.totals).tolist()) for one, gas in known)

    def _ordered(self) -> bool:
        """Return whether the levels of both sides are the same ways in their order."""
        if len(self.before) != len(self.after) or len(self.before) == 1 or self.before == self.after:
            return False
        # One factor for all ways is one reason, even if a level is then where another was. If no level stays, what
        # moves all ways, such as a slot more, leaves them in their order, however often callers take them.
        matched = list(zip(self.before, self.after, strict=True))
        means = np.array([(self._mean(one, later=False), self._mean(two, later=True)) for one, two in matched])
        ratios = means[:, 1] / np.maximum(means[:, 0], NOTHING)
        alike = np.ptp(ratios) < ALIKE * max(ratios) and all(self.chance(*pair) > POSSIBLE for pair in matched)
        return alike or not set(self.before) & set(self.after)

    def pairs(self) -> list[tuple[int | None, int | None]]:
        """Return the levels of the two sides that are one way: one that stays, or one that ends and one that begins."""
        if self._ordered():
            return [*zip(self.before, self.after, strict=True)]
        both = [level for level in self.before if level in self.after]
        begun = [level for level in self.after if level not in both]
        found: list[tuple[int | None, int | None]] = [(level, level) for level in both]
        for one in (level for level in self.before if level not in both):
            two = next((level for level in begun if self.chance(one, level) > POSSIBLE), None)
            found.append((one, two))
            begun = [level for level in begun if level != two]
        return [*found, *((None, level) for level in begun)]

    def _paired(self, ended: Ints, begun: Ints) -> bool:
        """Return whether it is known which levels that end are the same ways as which that begin, or that none is.

        A way that begins is the one that ends, at another cost, if as many calls take it. If that holds for several, or
        one level divides into several, or several become one, only all of them together are comparable.
        """
        if self._ordered():
            return True
        alike = np.array([[self.chance(one, two) > POSSIBLE for two in begun] for one in ended])
        if max(*alike.sum(axis=0), *alike.sum(axis=1)) <= 1 and not self._divides(ended, begun):
            return True
        counts = self.counts[0, ended].sum(), self.counts[1, begun].sum()
        return chance_of_shares(*counts, self.totals) <= POSSIBLE

    def _divides(self, ended: Ints, begun: Ints) -> bool:
        """Return whether one factor, and rounding, could make the more levels of one side of the fewer of the other."""
        sides = [self.flat.values[np.isin(self.levels, ended) & ~self.later]]
        sides.append(self.flat.values[np.isin(self.levels, begun) & self.later])
        few, many = sides if len(ended) < len(begun) else sides[::-1]
        apart = few.max() * many.min() >= (few.min() - self.calls.width) * many.max()
        return bool(apart) and len(ended) != len(begun)

    def _mean(self, level: int, *, later: bool) -> float:
        return float(self.flat.values[self.rows(level, later=later)].mean())

    def compared(self, pair: tuple[int | None, int | None]) -> Difference:
        """Compare the two levels of a way."""
        mine = np.isin(self.levels, [level for level in pair if level is not None])
        one, two = pair
        if one is not None and two is not None:
            turned = one != two and self.chance(one, two) <= POSSIBLE
            joined = one == two == self.joined
            found = replace(self._both(one, two), way=self.several, turned=turned, joined=joined)
            rows = np.flatnonzero(mine)
            # A few calls of the other level next to the place look like growth, so levels are tried as they are, too.
            kinds = [kinds_of(values[mine], self.calls.unit) for values in (self.calls.values, self.flat.values)]
        else:
            found = self._option(one, later=False) if one is not None else self._option(two or 0, later=True)
            rows, kinds = np.arange(len(mine)), [mine.astype(np.int64)]
        proved = _late(kinds[0], rows, self.place, constant=True)
        return replace(found, late=proved or _late(kinds[-1], rows, self.place), elsewhere=bool(proved))

    def _option(self, level: int, *, later: bool) -> Difference:
        """Return a level that only one side has."""
        mean, number = self._mean(level, later=later), int(self.counts[int(later), level])
        total = float(self.calls.paid[self.rows(level, later=later)].mean())
        # Callers that repeat a call are worth fewer independent ones.
        score = -scipy.special.ndtri(self.chances[level] / 2) / math.sqrt(self.repeated)
        return Difference(
            before=None if later else mean,
            after=mean if later else None,
            low=np.nan,
            high=np.nan,
            count_before=0 if later else number,
            count_after=number if later else 0,
            chance=2 * float(scipy.special.ndtr(-score)),
            total_before=None if later else total,
            total_after=total if later else None,
            way=True,
            share=float(number / self.totals[int(later)]),
        )

    def _paid(self, sides: Iterable[Flags]) -> tuple[float, float]:
        one, two = (float(self.calls.paid[rows].mean()) for rows in sides)
        return one, two

    def _both(self, level_before: int, level_after: int) -> Difference:
        """Compare a level before the place with one after it."""
        rows = self.rows(level_before, later=False), self.rows(level_after, later=True)
        before, after = (self.flat.values[side] for side in rows)
        counts = len(before), len(after)
        one, two = float(before.mean()), float(after.mean())
        moved, separate = abs(two - one), level_before != level_after or level_before == self.joined
        undecided = False
        apart = before.max() < after.min() or after.max() < before.min()
        spread = sum(float(side.var(ddof=1)) / len(side) for side in (before, after) if len(side) > 1)
        error = math.sqrt((spread + self.flat.unknown(*rows)) * self.repeated)
        if (
            moved < (1 - ROUNDED) * self.calls.unit
            or (self.flat.rates.any() and moved < ALIKE * max(abs(one), abs(two)))
            or (min(counts) < MIN_CALLS and not separate)
        ):
            chance = 1.0
        elif apart and (not error or separate):
            worth = [max(1, round(count / self.repeated)) for count in counts]
            chance = 1 / math.comb(sum(worth), worth[0])
            undecided = chance > POSSIBLE and can_tell(*counts)
        else:
            score = moved / max(error, NOTHING)
            chance = 2 * float(scipy.special.stdtr((sum(counts) - 2) / self.repeated, -score))
        around = max(float(scipy.special.ndtri(BOUND)) * error, self.calls.width)
        found = Difference(one, two, two - one - around, two - one + around, *counts, chance, *self._paid(rows))
        if not self.habits.freedom or min(counts) < MIN_SURE_CALLS:
            return replace(found, undecided=undecided)
        # A series that moves slowly or rarely by itself shows in the calls next to the place that it does not there.
        nearest = (
            self.calls[np.flatnonzero(rows[0])[-MIN_SURE_CALLS:]],
            self.calls[np.flatnonzero(rows[1])[:MIN_SURE_CALLS]],
        )
        return min(found, self._jump(*nearest), key=lambda one: one.chance)

    def _jump(self, before: Calls, after: Calls) -> Difference:
        """Compare the calls next to the place, by how much such calls differ elsewhere in the series.

        One event of a series that moves by itself is never sure.
        """
        one, two = float(before.values.mean()), float(after.values.mean())
        moved, freedom = abs(two - one), self.habits.freedom
        chance = max(POSSIBLE, 2 * float(scipy.special.stdtr(freedom, -moved / self.habits.jump)))
        around = max(float(scipy.special.stdtrit(freedom, BOUND)) * self.habits.jump, self.calls.width)
        sides = len(before), len(after), chance, float(before.paid.mean()), float(after.paid.mean())
        return Difference(one, two, two - one - around, two - one + around, *sides)


def _late(kinds: Ints, places: Ints, place: int, *, constant: bool = False) -> int:
    """Return how many calls after a place the one is that certainly divides calls better; 0 if there is none.

    With `constant`, nothing may vary on its either side.
    """
    gained = gains(kinds)
    best, at = int(gained.argmax()) + 1, int(np.searchsorted(places, place))
    exact = np.ptp(kinds[:best]) == np.ptp(kinds[best:]) == 0  # where nothing varies, one call is enough
    certain = scipy.special.chdtrc(len(np.unique(kinds)) - 1, gained[best - 1]) * len(kinds) <= POSSIBLE
    better = scipy.special.chdtrc(1, gained[best - 1] - gained[at - 1]) <= POSSIBLE
    return int(places[best]) - place if best != at and certain and (exact or (better and not constant)) else 0
