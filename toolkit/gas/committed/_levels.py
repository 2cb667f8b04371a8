"""Levels of one part within one stratum: noise, growth, the difference at a place, and where a level shifts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# Observations on each side that are compared first: the nearest ones, since state that grows moves what is far away.
FIRST_WINDOW = 20
# Reading 1,000 calls next to a change names 90 % of the steps that all of them name, so wider windows add little.
MAX_WINDOW = 320
# A window is doubled until the standard error is at most this share of the level: a seventh of a step of 10 %.
PRECISE = 0.015
# Levels are taken at the mean payload size of this many observations on each side.
SIZES_NEAR = 200
# With fewer the standard deviation of a side is uncertain by more than a quarter, and so are the bounds.
MIN_SIDE = 8
# Observations on each side that a shift needs if it is not large beside the noise; 8 are enough if it is.
MIN_SIDE_OF_SHIFT = 15
# Values that lie within this many rounding widths of a line follow the line without noise.
STEADY_BAND = 1.25
# A split elsewhere is better if its log likelihood ratio is larger by this, in units of independent values. Without a
# search for the place 2.6 % of the steps are at a wrong change, with it 0.6 %.
BETTER_SPLIT = 7.0
# Splits whose log likelihood ratio is smaller cannot be distinguished, in units of independent values: of 1,000 pairs
# of changes so close, at most 10 are then named wrongly.
TOLD_APART = 6.0
# Price of a shift that no change explains, times the logarithm of the observations: every place is tried, so it has to
# be dearer than what pure noise offers at the best of them.
SHIFT_PENALTY = 8.0
# Neighbours that are more alike leave less than one independent value in 60, and no bound is worth stating.
MAX_CORRELATION = 0.97
# Standard deviation of a rounded value, in rounding widths.
ROUNDING = 0.3
# Standard errors on both sides of a value that hold 95 % of a normal distribution.
BOUNDS_95 = 1.96
# Standard deviation of the error of rounding alone, in rounding widths, as of a uniform distribution. Without it a
# level that rounding makes look constant would have no noise, and each unit more would be a step.
ROUNDING_ERROR = 12**-0.5
# What rounding up leaves of the mean of noisy values is 0.05 widths at most on each side (Widrow et al. 1996).
LEFT_BY_ROUNDING = 0.1
# Median distance of neighbours of a normal distribution, in standard deviations: it is not moved by a few shifts.
MEDIAN_DISTANCE = 0.954
# Noise below which no split is better than another, in grains: rounded values that follow a line have about that.
SPLIT_NOISE = 0.2
# Width of octas that follow a line, in gas units: they are exact, but a price that does not divide them rounds them.
EXACT_OCTAS = 0.011
# Observations at the ends of a window at which no split is looked for: one or two outliers are not a level.
SPLIT_EDGE = 3
# Independent values behind a deviation at least: with fewer, Student's t has bounds that say nothing.
MIN_FREEDOM = 4.0
# Windows that are tried until no better split is left in one: each is cut at the better split.
MAX_CUTS = 8
# Smallest chance that is stated, so that its logarithm exists; and what is left of equal values by float arithmetic.
_TINY = 1e-300
_FUZZ = 1e-9


@dataclass(frozen=True, slots=True)
class Series:
    """The values of one part in one stratum.

    Attributes
    ----------
    clock : ndarray of float64
        Ledger versions in thousands, ascending.
    values : ndarray of float64
        Gas units, or octas.
    sizes : ndarray of float64 or None
        Bytes of each payload, if they differ.
    width : float
        Maximum amount by which values are rounded up: 1 for gas units, 0 for octas.
    unit : float
        One gas unit, in the unit of the values.
    """

    clock: Floats
    values: Floats
    sizes: Floats | None
    width: float
    unit: float

    @property
    def grain(self) -> float:
        """The rounding width, or a hundredth of a gas unit if values are not rounded."""
        return max(self.width, 0.01 * self.unit)

    def rows(self, rows: NDArray[np.int64] | slice) -> Series:
        """Return the series of the selected observations only."""
        sizes = None if self.sizes is None else self.sizes[rows]
        return Series(self.clock[rows], self.values[rows], sizes, self.width, self.unit)


@dataclass(frozen=True, slots=True)
class Model:
    """Properties shared by the segments of a series.

    Attributes
    ----------
    edges : ndarray of int64
        First observation of each segment, and the number of observations.
    growth, growth_variance : ndarray of float64
        Relative slope per 1,000 versions of each segment, shrunk towards the common slope, and its variance.
    common_growth, common_error : float
        Relative slope per 1,000 versions of all segments, and its standard error.
    deviation : float
        Relative standard deviation within segments.
    correlation : float
        Correlation of neighbours within segments, not below 0.
    freedom : float
        Number of independent values behind the deviation.
    rises, falls : int
        How often the value changes by one rounding width or less from one observation to the next, within segments.
    """

    edges: NDArray[np.int64]
    growth: Floats
    growth_variance: Floats
    common_growth: float
    common_error: float
    deviation: float
    correlation: float
    freedom: float
    rises: int
    falls: int

    @property
    def inflation(self) -> float:
        """Factor by which the correlation of neighbours increases the variance of a mean."""
        return (1 + self.correlation) / (1 - self.correlation)


def fit_model(series: Series, cuts: Sequence[int]) -> Model:
    """Fit one mean per segment, and the growth, noise and correlation common to the segments.

    Parameters
    ----------
    series : Series
    cuts : sequence of int
        Number of observations before each segment except the first.

    Returns
    -------
    Model
    """
    size = len(series.values)
    edges = np.array([0, *sorted({cut for cut in cuts if 0 < cut < size}), size], np.int64)
    counts = np.diff(edges)
    segment = np.repeat(np.arange(len(counts)), counts)

    def mean(values: Floats) -> Floats:
        return np.bincount(segment, values, len(counts)) / counts

    means = mean(series.values)
    scale = np.maximum(means, series.unit)[segment]
    relative = (series.values - means[segment]) / scale
    lost = float(len(counts))
    time = series.clock - mean(series.clock)[segment]
    if series.sizes is not None:
        sizes = series.sizes - mean(series.sizes)[segment]
        # Growth and payload size are removed together, so that neither replaces the other.
        ss, st, tt = (np.bincount(segment, v, len(counts)) for v in (sizes * sizes, sizes * time, time * time))
        sz, tz = (np.bincount(segment, v, len(counts)) for v in (sizes * relative, time * relative))
        determinant = ss * tt - st * st
        usable = (counts >= MIN_SIDE) & (determinant > _FUZZ * np.maximum(ss * tt, _TINY))
        slope = np.where(usable, (tt * sz - st * tz) / np.where(usable, determinant, 1), 0)
        relative = relative - slope[segment] * sizes
        lost += float(usable.sum())
    tt = np.bincount(segment, time * time, len(counts))
    tz = np.bincount(segment, time * relative, len(counts))
    every = float(tt.sum())
    common_growth = float(tz.sum()) / every if every > 0 else 0.0
    own = np.divide(tz, tt, out=np.full(len(counts), common_growth), where=tt > 0)
    residual = relative - common_growth * time
    residual[np.abs(residual) < _FUZZ] = 0
    freedom = max(1.0, size - lost - 1)
    correlation = _correlation(residual, segment, freedom)
    inflation = (1 + correlation) / (1 - correlation)
    floor = (ROUNDING_ERROR * series.width / max(series.unit, float(np.mean(scale)))) ** 2 if residual.any() else 0.0
    variance = max(float(residual @ residual) / freedom, floor)
    unequal = 0.0
    solid = (counts >= MIN_SIDE) & (tt > 0)
    if solid.sum() > 1 and variance > 0:
        weight = tt[solid] / (variance * inflation)
        excess = float((weight * (own[solid] - common_growth) ** 2).sum()) - (solid.sum() - 1)
        unequal = max(0.0, excess / (weight.sum() - (weight**2).sum() / weight.sum()))
    error = variance * inflation / every if every > 0 else 0.0
    growth = np.full(len(counts), common_growth)
    growth_variance = np.full(len(counts), error)
    if unequal > 0:
        sampling = np.where(tt > 0, variance * inflation / np.maximum(tt, _TINY), np.inf)
        share = unequal / (unequal + sampling)
        growth = common_growth + share * (own - common_growth)
        growth_variance = error * (1 - share) ** 2 + unequal * (1 - share)
    moves = np.diff(series.values)[np.diff(segment) == 0]
    small = np.abs(moves) <= max(series.width, _FUZZ)
    return Model(
        edges=edges,
        growth=growth,
        growth_variance=growth_variance,
        common_growth=common_growth,
        common_error=math.sqrt(error + unequal / max(1, int(solid.sum()))),
        deviation=math.sqrt(variance),
        correlation=correlation,
        freedom=max(MIN_FREEDOM, freedom / inflation),
        rises=int((small & (moves > 0)).sum()),
        falls=int((small & (moves < 0)).sum()),
    )


def _correlation(residual: Floats, segment: NDArray[np.int64], freedom: float) -> float:
    """Return the correlation of neighbours within segments, between 0 and `MAX_CORRELATION`."""
    total = float(residual @ residual)
    if len(residual) < MIN_SIDE or total <= 0:
        return 0.0
    inside = np.diff(segment) == 0
    if not inside.any():
        return 0.0
    product = float((residual[1:] * residual[:-1])[inside].mean())
    return min(MAX_CORRELATION, max(0.0, product / (total / len(residual)) + 1 / freedom))


@dataclass(frozen=True, slots=True)
class Levels:
    """The levels on both sides of a place.

    Attributes
    ----------
    before, after : float
        The levels at the place, at the same payload size on both sides: gas units, or octas for storage and refund.
    low, high : float
        95 % confidence bounds on the difference, including rounding.
    count_before, count_after : int
        Observations compared.
    chance : float
        Probability of a difference this large if the level does not change, before correction for all comparisons.
    """

    before: float
    after: float
    low: float
    high: float
    count_before: int
    count_after: int
    chance: float

    @property
    def change(self) -> float:
        """After minus before."""
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class Difference(Levels):
    """The difference of two levels at a place.

    Attributes
    ----------
    error : float
        Standard error of the difference, without rounding.
    steady : bool
        Whether both sides follow a line without noise.
    first, last : int
        Window of the observations compared.
    splits : tuple of (int, float)
        Each place and the best split, with how much lower its log likelihood is than that of the best split, treating
        values as independent.
    earliest, latest : int
        First and last of the splits that are nearly as good as the best one.
    """

    error: float
    steady: bool
    first: int
    last: int
    splits: tuple[tuple[int, float], ...]
    earliest: int
    latest: int

    @property
    def level(self) -> float:
        """The larger of the two levels."""
        return max(abs(self.before), abs(self.after))


@dataclass(frozen=True, slots=True)
class _Side:
    level: float
    count: int
    spread: float
    leverage: float
    reach: float
    band: float
    adjusted: Floats
    per_size: float = 0.0


def _side(series: Series, rows: slice, place: float, size: float, growth: float) -> _Side:
    """Return the level of one side at a place and payload size."""
    values, time = series.values[rows], series.clock[rows] - place
    count = len(values)
    mean = float(values.mean())
    away = float(time.mean())
    if np.ptp(values) == 0:
        return _Side(mean - growth * mean * away, count, 0.0, 0.0, mean * away, 0.0, values - growth * mean * time)
    slope, leverage, sizes = 0.0, 0.0, None
    if series.sizes is not None and count >= MIN_SIDE:
        sizes = series.sizes[rows] - size
        centred = sizes - sizes.mean()
        power = float(centred @ centred)
        if power > 0:
            detrended = values - growth * mean * time
            slope = float(centred @ detrended) / power
            leverage = float(sizes.mean()) ** 2 / power
    flat = values if sizes is None else values - slope * sizes
    adjusted = flat - growth * mean * time
    level = float(adjusted.mean())
    residual = adjusted - level
    band = float(np.ptp(residual))
    if band > STEADY_BAND * series.width and count >= MIN_SIDE:
        # The slope of all segments may not fit here; a line of this side alone shows whether it is steady.
        centred = time - away
        power = float(centred @ centred)
        tilt = float(centred @ residual) / power if power > 0 else 0.0
        own = residual - tilt * centred
        if float(np.ptp(own)) <= STEADY_BAND * series.width:
            level -= tilt * away
            adjusted = flat - (growth * mean + tilt) * time
            residual, band = own, float(np.ptp(own))
    lost = 1 + (sizes is not None)
    spread = math.sqrt(float(residual @ residual) / max(1, count - lost))
    return _Side(level, count, spread, leverage, mean * away, band, adjusted, slope)


def compare(series: Series, model: Model, first: int, places: Sequence[int], last: int) -> Difference | None:
    """Compare the levels on both sides of one or more neighbouring places.

    Parameters
    ----------
    series : Series
    model : Model
        Model of the whole series.
    first, last : int
        The observations that may be used: from `first` up to, not including, `last`.
    places : sequence of int
        Number of observations before each place, ascending. Those between places only help to choose a place.

    Returns
    -------
    Difference or None
        None if a side has no observation. Unless both sides are steady, also None if a side has fewer than 8
        observations, or if the level shifts so close to a place, but not at it, that fewer than 8 are left.
    """
    for _ in range(MAX_CUTS):
        found = _compare_once(series, model, first, places, last)
        if found is None:
            return None
        split, loss = min(found.splits, key=lambda s: s[1])
        best_place = min(loss for at, loss in found.splits if at in places)
        if split in places or best_place - loss <= BETTER_SPLIT:
            return found
        if split < places[0]:
            first = split
        elif split > places[-1]:
            last = split
        else:
            return found
    return None


def _compare_once(series: Series, model: Model, first: int, places: Sequence[int], last: int) -> Difference | None:
    left, right = places[0], places[-1]
    room = max(left - first, last - right)
    if left <= first or right >= last:
        return None
    at = float(series.clock[left - 1] + series.clock[right]) / 2
    window = FIRST_WINDOW
    size = 0.0
    if series.sizes is not None:
        size = float(series.sizes[max(0, left - SIZES_NEAR) : right + SIZES_NEAR].mean())
    segments = (np.searchsorted(model.edges, [left - 1, right], side="right") - 1).tolist()
    growth = [float(model.growth[s]) for s in segments]
    while True:
        a, b = max(first, left - window), min(last, right + window)
        one = _side(series, slice(a, left), at, size, growth[0])
        two = _side(series, slice(right, b), at, size, growth[1])
        error = _error(model, one, two, segments)
        level = max(abs(one.level), abs(two.level), series.unit)
        if error <= PRECISE * level or window >= MAX_WINDOW or window >= room:
            break
        window *= 2
    exact = max(series.width, EXACT_OCTAS * series.unit)
    steady = max(one.band, two.band) <= STEADY_BAND * exact
    change = two.level - one.level
    count = one.count + two.count
    between = series.values[left:right]
    if series.sizes is not None and len(between):
        between = between - (one.per_size + two.per_size) / 2 * (series.sizes[left:right] - size)
    adjusted = np.concatenate([one.adjusted, between, two.adjusted])
    splits, earliest, latest = _splits(series, model, adjusted, a, places)
    if one.spread == 0 and two.spread == 0 and abs(series.values[right] - series.values[left - 1]) == 0:
        chance, change = 1.0, 0.0
    elif steady and (abs(change) > STEADY_BAND * exact or (one.spread == 0 and two.spread == 0)):
        chance = 1 / math.comb(count, one.count)  # of all orders of the values one is so divided
    elif min(one.count, two.count) < MIN_SIDE:
        return None
    else:
        chance = student_tail(abs(change) / error if error > 0 else math.inf, model.freedom + count - 2)
    half = BOUNDS_95 * error
    if series.width:
        fine = min(one.spread, two.spread) >= ROUNDING * series.width and not steady  # then rounding averages out
        half = half + LEFT_BY_ROUNDING if fine else max(half, series.width)
    return Difference(
        before=one.level,
        after=one.level + change,
        error=error,
        low=change - half,
        high=change + half,
        count_before=one.count,
        count_after=two.count,
        chance=max(chance, _TINY),
        steady=steady,
        first=a,
        last=b,
        splits=splits,
        earliest=earliest,
        latest=latest,
    )


def _error(model: Model, one: _Side, two: _Side, segments: Sequence[int]) -> float:
    """Return the standard error of the difference of two sides."""
    welch = sum(side.spread**2 * (1 / side.count + side.leverage) for side in (one, two))
    noise = model.deviation**2
    pooled = sum(noise * side.level**2 * (min(1, model.inflation / side.count) + side.leverage) for side in (one, two))
    variances = [float(model.growth_variance[s]) for s in segments]
    if variances[0] == variances[1]:
        growth = variances[0] * (one.reach - two.reach) ** 2
    else:
        growth = variances[0] * one.reach**2 + variances[1] * two.reach**2
    return math.sqrt(max(welch, pooled + growth))


def _splits(
    series: Series, model: Model, values: Floats, a: int, places: Sequence[int]
) -> tuple[tuple[tuple[int, float], ...], int, int]:
    """Return how much worse each place is than the best split of a window from `a` on, and where good splits lie."""
    size = len(values)
    total, running = float(values.sum()), np.cumsum(values)[:-1]
    counts = np.arange(1, size)
    centre = total / size
    gain = (running - counts * centre) ** 2 * size / (counts * (size - counts))
    whole = float(((values - centre) ** 2).sum())
    left_over = np.maximum(whole - gain, 0.0) + size * (SPLIT_NOISE * series.grain) ** 2
    allowed = np.ones(size - 1, bool)
    edge = min(SPLIT_EDGE, places[0] - a, a + size - places[-1])
    allowed[: edge - 1] = False
    allowed[size - edge :] = False
    score = size * np.log(left_over) / model.inflation
    best = int(np.argmin(np.where(allowed, score, np.inf)))
    lowest = float(score[best])
    tried = {best + a + 1: 0.0}
    for place in places:
        tried[place] = max(0.0, float(score[place - a - 1]) - lowest)
    good = np.flatnonzero(allowed & (score <= lowest + TOLD_APART)) + a + 1
    return tuple(sorted(tried.items())), int(good[0]), int(good[-1])


def find_shift(series: Series, model: Model, first: int, last: int) -> int | None:
    """Return the place within a segment at which the level shifts.

    Parameters
    ----------
    series : Series
    model : Model
        Model whose growth is subtracted before the search.
    first, last : int
        The segment, from `first` up to, not including, `last`.

    Returns
    -------
    int or None
        Number of observations before the shift, with at least 8 on each side; None if no shift stands out.
    """
    size = last - first
    values, time = series.values[first:last], series.clock[first:last]
    if size < 2 * MIN_SIDE or np.ptp(values) == 0:
        return None
    level = max(float(values.mean()), series.unit)
    z = values - level
    if series.sizes is not None:
        sizes = series.sizes[first:last] - series.sizes[first:last].mean()
        # Differences of neighbours give the slope on size without being misled by the shift itself.
        steps = np.diff(sizes)
        if float(steps @ steps) > 0:
            z = z - float(steps @ np.diff(z)) / float(steps @ steps) * sizes
    time = time - time.mean()
    noise = max(float(np.median(np.abs(np.diff(z)))) / MEDIAN_DISTANCE, ROUNDING * series.grain)
    # The shift itself may be what the slope of all segments comes from, so that slope binds only loosely.
    spread = max(math.hypot(model.common_error, model.common_growth), 1e-6) * level
    z = z - model.common_growth * level * time
    z -= z.mean()
    # Least squares of a line with one shift, at all places at once: what each takes off the sum of squares.
    stiffness = float(time @ time) + (noise / spread) ** 2
    slope = float(time @ z)
    after = np.arange(size, -1, -1.0)
    times = np.concatenate([[0.0], -np.cumsum(time)])
    moved = np.concatenate([[0.0], -np.cumsum(z)]) - times * slope / stiffness
    power = np.maximum(after * (size - after) / size - times**2 / stiffness, _FUZZ)
    places = np.arange(MIN_SIDE, size - MIN_SIDE + 1)
    best = int(places[np.argmax(moved[places] ** 2 / power[places])])
    later = (np.arange(size) >= best).astype(np.int64)
    height = moved[best] / power[best]
    residual = z - height * later - (slope - height * times[best]) / stiffness * time
    residual -= (np.bincount(later, residual) / np.bincount(later))[later]
    residual[np.abs(residual) < _FUZZ * level] = 0
    left = float(residual @ residual) / (size - 3)
    rounding = (ROUNDING * series.grain) ** 2
    # What is left of a value that is only rounded is alike in neighbours, and says nothing about their noise.
    correlation = _correlation(residual, later, size - 3) * left / (left + rounding)
    penalty = SHIFT_PENALTY * math.log(size) * (1 + correlation) / (1 - correlation)
    stands_out = moved[best] ** 2 / power[best] > penalty * max(left, rounding)
    return first + best if stands_out else None


def student_tail(score: float, freedom: float) -> float:
    """Return the probability that a variable with Student's t distribution is at least this far from 0."""
    from scipy import special  # scipy.stats has the same function, and takes half a second to import

    return max(_TINY, 2 * float(special.stdtr(freedom, -abs(score))))
