"""What a call costs on two sides, in octas at one reference price, and the three verdicts on its rise.

A rise beyond a limit is proved if its lower bound is above the limit, and excluded if its upper bound is not. In
between nobody can tell. The same holds for the share of calls that fail.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import scipy

from toolkit.gas._observations import Part
from toolkit.gas.committed._levels import BOUND, MIN_SURE_CALLS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from toolkit.gas._rules import Threshold

    Floats = NDArray[np.float64]

# Resamples of a bootstrap: its bounds then vary by less than a tenth of their distance from the mean.
DRAWS = 2_000
# Calls up to which bounds are bootstrapped. The mean of more is normal enough, and resampling them takes seconds.
MAX_BOOTSTRAPPED = 1_000
# Calls that somebody may wait for. Of more, an extrapolation from a few with a long tail says nothing.
MAX_AWAITED = 1_000_000
# An upper bound of a rise, as a share, above which it says nothing: of a few calls with a long tail.
_MAX_RISE = 100.0
# Chance that a bound of a quantile is wrong. A quantile fails a gate only if the bounds of both sides are.
QUANTILE_CHANCE = 0.005
QUANTILES = {"p10": 0.1, "p50": 0.5, "p95": 0.95}
# Chance of so many more failures by chance, below which they fail a gate, and up to which they keep it from passing.
MAX_FAILING_CHANCE = 0.01
MAX_DOUBTFUL_FAILING_CHANCE = 0.1


class Verdict(StrEnum):
    """What a gate says of a call; only `PASSED` and `FAILED` are judgements of what it costs."""

    PASSED = "passed"
    FAILED = "failed"
    MISSING = "missing"
    NOT_JUDGED = "not judged"
    NO_BASELINE = "no baseline"
    FAILS_AS_LISTED = "fails as listed"


class Reason(StrEnum):
    """What a verdict on committed calls rests on."""

    RISE = "rise"
    WAY = "way"
    FAILURES = "failures"
    FEW = "few"
    WIDE = "wide"
    BELOW = "below"


class More(StrEnum):
    """What adds calls to a side that has too few; the value is the advice. Waiting adds them to the after side only."""

    WAIT = "read later versions for the after side"
    LATER = "choose a later version for the after side"
    OTHER = "choose other versions for the before side"
    EARLIER = "read earlier versions"
    SNAPSHOT = "write the snapshot again when more calls have succeeded"


@dataclass(frozen=True, slots=True)
class Fees:
    """What the calls of one side paid.

    Attributes
    ----------
    octas : ndarray of int64
        Fee of each call that succeeded, net of its refund, at the reference price; ascending.
    failed : int
        Number of calls that failed.
    means : mapping of str to float
        Mean gas and mean of each part of the calls that succeeded, by column; empty if none did, or from a snapshot.
    more : More
    """

    octas: NDArray[np.int64]
    failed: int
    means: Mapping[str, float] = field(default_factory=dict)
    more: More = More.WAIT

    @classmethod
    def of(cls, frame: pd.DataFrame, price: int) -> Fees:
        """Return the fees of transactions whose gas is split into parts, at a price in octas per gas unit.

        What a sender paid includes the storage fee, which is fixed in octas: only the rest depends on the price.
        Execution and io are each rounded up to a unit, so their sum may be more than what was paid for both.
        """
        good = frame["success"].fillna(value=False).to_numpy(bool) if "success" in frame else np.ones(len(frame), bool)
        storage = frame["storage_fee_octas"].to_numpy(np.int64)
        prices = frame["gas_unit_price"].to_numpy(np.int64) if "gas_unit_price" in frame else np.int64(price)
        # At a price of 0, the gas units contain no storage.
        in_units = np.where(prices > 0, storage * price // np.maximum(prices, 1), 0)
        octas = frame["gas_used"].to_numpy(np.int64) * price - in_units + storage
        if "storage_fee_refund_octas" in frame:
            octas = octas - frame["storage_fee_refund_octas"].to_numpy(np.int64)
        columns = [name for name in ("gas_used", *(part.column for part in Part)) if name in frame and good.any()]
        means = {name: float(frame.loc[good, name].mean()) for name in columns}
        return cls(np.sort(octas[good]), int((~good).sum()), means)

    @classmethod
    def from_counts(cls, pairs: Iterable[tuple[int, int]], failed: int) -> Fees:
        """Return fees from pairs of a fee and the number of calls that paid it."""
        octas, counts = np.array([*pairs], np.int64).reshape(-1, 2).T
        return cls(np.sort(np.repeat(octas, counts)), failed, more=More.SNAPSHOT)

    def counted(self) -> list[tuple[int, int]]:
        """Return each fee and the number of calls that paid it, ascending."""
        octas, counts = np.unique(self.octas, return_counts=True)
        return list(zip(octas.tolist(), counts.tolist(), strict=True))

    def binned(self, most: int) -> Fees:
        """Return the fees with at most so many different values: neighbours have their mean."""
        if len(np.unique(self.octas)) <= most:
            return self
        means = [np.full(len(some), round(float(some.mean()))) for some in np.array_split(self.octas, most)]
        return Fees(np.concatenate(means).astype(np.int64), self.failed)

    @property
    def count(self) -> int:
        """Number of calls, with those that failed."""
        return len(self.octas) + self.failed

    @property
    def mean(self) -> float:
        """Mean fee in octas of the calls that succeeded; NaN without any."""
        return float(self.octas.mean()) if len(self.octas) else math.nan

    def quantile(self, name: str) -> int:
        """Return a fee of `QUANTILES`, which a call has paid."""
        return int(np.quantile(self.octas, QUANTILES[name], method="inverted_cdf"))

    @property
    def failing(self) -> float:
        """Share of the calls that fail."""
        return self.failed / self.count if self.count else math.nan


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on one call.

    Attributes
    ----------
    verdict : Verdict
    reason : Reason
    more : int or None
        How many more calls would do on the after side, or on the side with fewer if the reason is `Reason.FEW`; None if
        no number of them is known to.
    quantile : str
        The quantile that rose, for `Reason.WAY`.
    """

    verdict: Verdict
    reason: Reason
    more: int | None = None
    quantile: str = ""

    @property
    def over_limit(self) -> bool:
        """Whether what the call costs is over the limit, rather than how often it fails."""
        return self.reason in {Reason.RISE, Reason.WAY}


@dataclass(frozen=True, slots=True)
class FeeChange:
    """What calls pay on two sides.

    Attributes
    ----------
    before, after : Fees
    price : int
        Reference price, in octas per gas unit.
    low, high : float
        97.5 % bounds on the rise of the mean, as a share of the mean before; NaN with fewer than 8 calls on a side. The
        upper one is infinite if a few calls with a long tail leave none.
    failing_chance : float
        Probability of at least so many failures after if as many failed before (Fisher's exact test, one-sided).
    """

    before: Fees
    after: Fees
    price: int
    low: float
    high: float
    failing_chance: float

    @classmethod
    def of(cls, before: Fees, after: Fees, price: int) -> FeeChange:
        """Compare two sides."""
        low = high = math.nan
        if min(len(before.octas), len(after.octas)) >= MIN_SURE_CALLS:
            low, high = _bounds(before.octas.astype(float), after.octas.astype(float), price)
        counts = [[side.failed, len(side.octas)] for side in (after, before)]
        chance = scipy.stats.fisher_exact(counts, alternative="greater").pvalue if after.failed else 1.0
        return cls(before, after, price, low, high, float(chance))

    @property
    def changed(self) -> bool:
        """Whether the mean fee, or the share of failures, differs by more than chance explains."""
        differs = self.low > 0 or self.high < 0
        return bool(differs) or self.failing_chance < MAX_FAILING_CHANCE

    @property
    def moved(self) -> bool:
        """Whether the mean fee in octas differs, or the mean gas in hundredths of a unit, if both sides have it."""
        one, two = self.before, self.after
        gas = [round(side.means["gas_used"], 2) for side in (one, two) if side.means]
        return len(set(gas)) > 1 or round(one.mean, 0) != round(two.mean, 0)

    @property
    def fails_more(self) -> bool:
        """Whether a larger share fails than before, and not merely by chance."""
        return self.failing_chance < MAX_DOUBTFUL_FAILING_CHANCE and self.after.failing > self.before.failing

    def judged(self, limit: Threshold | None) -> Judgement:
        """Return the verdict on the rise under a limit; without one, on failures alone."""
        if self.failing_chance < MAX_FAILING_CHANCE:
            return Judgement(Verdict.FAILED, Reason.FAILURES)
        few = MIN_SURE_CALLS - min(len(self.before.octas), len(self.after.octas))
        if few > 0:
            return Judgement(Verdict.NOT_JUDGED, Reason.FEW, few)
        if limit is not None:
            over = self._over(limit)
            if over is not None:
                return over
        if self.fails_more:
            return Judgement(Verdict.NOT_JUDGED, Reason.FAILURES)
        return Judgement(Verdict.PASSED, Reason.BELOW)

    def _over(self, limit: Threshold) -> Judgement | None:
        """Return the verdict if the rise is over the limit, or may be."""
        one, two = self.before, self.after
        exact = len(set(one.octas[[0, -1]])) == len(set(two.octas[[0, -1]])) == 1
        if exact:
            over = limit.exceeded(int(one.octas[0]), int(two.octas[0]), unit=self.price)
            return Judgement(Verdict.FAILED, Reason.RISE) if over else None
        most = _share(limit, one.mean, self.price)
        if self.low > most:
            return Judgement(Verdict.FAILED, Reason.RISE)
        sure = 1 - QUANTILE_CHANCE
        for name, share in QUANTILES.items():
            # By order statistics; not a number with too few calls for one.
            top = scipy.stats.quantile_test(one.octas, p=share, alternative="less").confidence_interval(sure).high
            bottom = scipy.stats.quantile_test(two.octas, p=share, alternative="greater").confidence_interval(sure).low
            if math.isfinite(bottom - top) and limit.exceeded(int(top), int(bottom), unit=self.price):
                return Judgement(Verdict.FAILED, Reason.WAY, quantile=name)
        if self.high <= most:
            return None
        return Judgement(Verdict.NOT_JUDGED, Reason.WIDE, self._needed(most))

    def _needed(self, most: float) -> int | None:
        """Return how many more calls on the after side would do; the before side is over, and what it lacks remains."""
        one, two = self.before, self.after
        if one.mean <= 0:
            return None
        gap, half = abs(most + 1 - two.mean / one.mean), (self.high - self.low) / 2
        # The square of half the range is a part that remains and one that shrinks with the count of the after side.
        remains, shrinks = two.mean**2 * float(one.octas.var()) / len(one.octas), one.mean**2 * float(two.octas.var())
        left = gap * gap * (remains + shrinks / len(two.octas)) - half * half * remains
        needed = half * half * shrinks / left if left > 0 else math.inf
        return max(1, math.ceil(needed) - len(two.octas)) if needed < MAX_AWAITED else None


def _share(limit: Threshold, mean: float, price: int) -> float:
    """Return a limit as a share of the mean fee before."""
    shares = []
    if limit.percent is not None:
        shares.append(float(Fraction(str(limit.percent)) / 100))
    if limit.gas_units is not None:
        shares.append(limit.gas_units * price / abs(mean) if mean else math.inf)
    return min(shares)


def _bounds(before: Floats, after: Floats, unit: int) -> tuple[float, float]:
    """Return the bounds of the rise of a mean, as a share of the mean before. Gas is rounded up to a unit.

    A bootstrap of Student's t on the logarithms of the means holds for skewed costs and few calls. Means that are not
    positive, as with refunds, have no logarithm; their difference is taken.
    """
    one, two = before.mean(), after.mean()
    logs = bool(min(one, two) > 0)
    scale = (one, two) if logs else (1.0, 1.0)
    spreads = [float(side.std(ddof=1)) for side in (before, after)]
    # Rounding alone varies that much. Without it, samples in which all calls happen to cost the same have no error.
    least = unit / math.sqrt(12)
    errors = [
        max(spread, least) / by / math.sqrt(len(side))
        for spread, by, side in zip(spreads, scale, (before, after), strict=True)
    ]
    error, centre = math.hypot(*errors) if any(spreads) else 0.0, math.log(two / one) if logs else two - one
    low, high = _student_bounds(before, after, centre, least, logs=logs) if error else (0.0, 0.0)
    ends = centre - high * error, centre - low * error
    if logs:
        with np.errstate(over="ignore"):
            first, last = (float(end) for end in np.expm1(ends))
    elif one:
        first, last = ends[0] / abs(one), ends[1] / abs(one)
    else:
        first, last = (-math.inf, math.inf) if error or two else (0.0, 0.0)
    # Neither way to resample gives dear calls to a side that by chance has none: a gate would judge without proof.
    if first > 0 and _is_chance(before, after):
        first = 0.0
    if last < 0 and _is_chance(after, before):
        last = math.inf
    return first, math.inf if last > _MAX_RISE else last


def _is_chance(low: Floats, high: Floats) -> bool:
    """Return whether dealing the calls to two sides at random makes the second as expensive too often."""
    if max(len(low), len(high)) > MAX_BOOTSTRAPPED:
        return False
    dealt = np.random.default_rng(0).permuted(np.tile(np.concatenate([low, high]), (DRAWS, 1)), axis=1)
    return bool((dealt[:, : len(high)].sum(axis=1) >= high.sum()).mean() > 1 - BOUND)


def _student_bounds(before: Floats, after: Floats, centre: float, least: float, *, logs: bool) -> tuple[float, float]:
    """Return the quantiles of Student's t of resampled sides: the wider ones of two ways to resample.

    Each side is resampled from itself, which allows for sides that vary differently; and from both sides at one mean,
    because few calls may by chance have none of the dear ones that the other side shows.
    """
    if max(len(before), len(after)) > MAX_BOOTSTRAPPED:
        high = float(scipy.stats.t.ppf(BOUND, min(len(before), len(after)) - 1))
        return -high, high
    random = np.random.default_rng(0)  # the same runs give the same verdict

    def drawn(side: Floats, count: int, least: float) -> tuple[Floats, Floats]:
        some = side[random.integers(0, len(side), (DRAWS, count))]
        means, spreads = some.mean(axis=1), np.maximum(some.std(axis=1), least)
        if not logs:
            return means, spreads**2 / count
        means = np.maximum(means, 1e-9)  # a sample of refunds alone may be below 0
        return np.log(means), (spreads / means) ** 2 / count

    def quantiles(sides: Sequence[Floats], least: Sequence[float], centre: float) -> Floats:
        drawings = zip(sides, (len(before), len(after)), least, strict=True)
        (one, first), (two, second) = (drawn(*drawing) for drawing in drawings)
        return np.quantile(((two - one) - centre) / np.sqrt(np.maximum(first + second, 1e-18)), [1 - BOUND, BOUND])

    scale = (before.mean(), after.mean()) if logs else (1.0, 1.0)
    both = np.concatenate(
        [before / scale[0], after / scale[1]] if logs else [before - before.mean(), after - after.mean()]
    )
    own = quantiles((before, after), (least, least), centre)
    pooled = quantiles((both, both), [least / by for by in scale], 0.0)
    return float(min(own[0], pooled[0])), float(max(own[1], pooled[1]))
