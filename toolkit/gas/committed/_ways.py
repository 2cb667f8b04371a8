"""Paths through one function's code that no column distinguishes, recognised by their levels of gas.

A function branches on an argument or on the state of its caller, and each branch has its own cost. Transactions that
are equal in all columns of the key are divided into levels between one change in the timeline and the next, and the
levels before and after are linked: a path keeps its level, or moves from one to another.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import ascii_uppercase
from typing import TYPE_CHECKING

import numpy as np

from toolkit.gas._observations import Cause, Part
from toolkit.gas.committed._levels import MIN_SIDE, STEADY_BAND
from toolkit.gas.committed._strata import KEY_COLUMNS, OTHER, SLOTS, Key, Observations, Stratum, named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from toolkit.gas._findings import Change

    Floats = NDArray[np.float64]
    Rows = NDArray[np.int64]

# Changes with fewer observations between them do not divide a series: too few to show two levels of 5 or more.
MIN_SEGMENT = 16
# Fewer observations are not a level but outliers, such as the first call of an account.
MIN_OF_LEVEL = 5
# More levels are a quantity that varies, such as the length of a list, and are compared as one noisy level.
MAX_LEVELS = 6
# More values than these, each apart from the others, are not constants with outliers, so that only the gaps of
# noisy levels are looked at; trying each of the gaps of 10,000 storage fees would take minutes.
MAX_CONSTANTS = 40
# Two rounded values further apart, in gas units, cannot come from one constant.
MIN_GAP = 1.5
# Noisy levels are apart by this share of the lower one as well; growth leaves narrower gaps.
MIN_NOISY_GAP = 0.08
# The gap between noisy levels, in standard deviations of the wider one. Gaps between values of one bell-shaped
# level of five observations or more are narrower.
GAP_TO_SPREAD = 3.0
# If more of the observations are outliers, the values have a long tail and no levels.
MAX_OUTLIERS = 0.1
# Levels on both sides of a change that differ by a smaller share are one way, whatever their shares are.
SAME_LEVEL = 0.03
# Distances, in observations, of the pairs that show growth: far enough for rounding to average out, and near enough
# for growth to stay within a level.
LAGS = (8, 13, 21, 34)
# Pairs of a level whose median slope is taken; all pairs of 10,000 observations would be 50 million.
PAIRS = 600
# Growth by less than this share over the whole series is not removed: it cannot join two levels.
MIN_GROWTH = 0.004
# Observations of a level expected between its end and the beginning of the next, none of which is there: chance of
# e^-9. Beyond that the second level does not continue the first.
MAX_ABSENT = 9.0
# The same within a level, whose longest gap is looked at.
LONG_ABSENT = 12.0
# The same if no change of code is there that could alter what a call writes: one kind of call may have ended and
# another begun, so they have to meet more closely.
MAX_ABSENT_UNANNOUNCED = 3.0
# Prices of links between levels: of a level that moves (so that most levels stay), per square of the logarithm of
# the move (so that levels keep their order), and the most that different shares cost. If a move cost nothing, two
# ways would swap where the mix does; if order cost nothing, two ways that double would cross if one costs twice the
# other.
MOVED, SAME_ORDER, MAX_SHARE = 6.0, 8.0, 10.0
# Part of the price of different shares if the level stays: it is the same way then, although use has changed.
STAYS = 0.4
# Least variance of a share, as of a share of 1 %: a way that is taken always, or never, would forbid all others.
MIN_SHARE_VARIANCE = 0.01
# What a link is worth, far above each price: a way goes on if it can.
WORTH = 1_000
# Slots that a change may add to what a way creates, or to what it deletes; more, or both at once, is another way.
MAX_SLOTS_MORE = 3
# A way that writes a slot more executes about the same: with other work, it is another way that became frequent.
SAME_WORK = 0.3


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Observations of one kind divided into pieces: one level each, between neighbouring changes of the timeline.

    Attributes
    ----------
    rows : list of ndarray
        Positions in the kind, ascending, of each piece.
    slots : ndarray of int64
        Slots created and deleted, two for each piece.
    levels, spreads : ndarray of float64
        Mean and standard deviation in each part, without growth, one row for each piece.
    grains : ndarray of float64
        The resolution of the values of each part.
    """

    rows: list[Rows]
    slots: NDArray[np.int64]
    levels: Floats
    spreads: Floats
    grains: Floats


def find_ways(observations: Observations, timeline: Sequence[Change]) -> list[Stratum]:
    """Return the paths that the transactions of a function take, those with the most transactions first.

    Parameters
    ----------
    observations : Observations
    timeline : sequence of Change
        Changes, sorted by version.

    Returns
    -------
    list of Stratum
        The key of a path contains the columns of its kind; ``slots_created`` and ``slots_deleted`` are pairs of
        values if they differ before and after a change. If several paths share all of these, ``way`` is a
        letter, in the order of their first levels. Outliers are strata whose ``way`` is ``other``.
    """
    keyed: list[tuple[Key, Rows]] = []
    versions = [change.ledger_version for change in timeline]
    code = [change.ledger_version for change in timeline if change.kind is not Cause.SCHEDULE]
    slots = [name for name in SLOTS if name in observations.frame.columns]
    for kind in observations.strata([name for name in KEY_COLUMNS if name not in SLOTS]):
        there = observations.of(observations.versions, kind.rows)
        pieces, outliers = _divided(observations, kind.rows, np.searchsorted(there, versions))
        chains = _chains(pieces, np.searchsorted(there, code))
        chains.sort(key=lambda chain: float(pieces.levels[chain[0]].sum()))
        keys = [_key(kind, slots, pieces.slots[chain[0]], pieces.slots[chain[-1]]) for chain in chains]
        letters = {key: iter(ascii_uppercase) for key in keys if keys.count(key) > 1}
        for key, chain in zip(keys, chains, strict=True):
            way = (("way", next(letters[key], OTHER)),) if key in letters else ()
            rows = np.sort(np.concatenate([pieces.rows[n] for n in chain]))
            keyed.append((key + way, kind.rows[rows]))
        if len(outliers):
            keyed.append(((*kind.key, ("way", OTHER)), kind.rows[outliers]))
    return named(keyed)


def _key(kind: Stratum, names: Sequence[str], first: NDArray[np.int64], last: NDArray[np.int64]) -> Key:
    """Return the key of a path: the key of its kind, with its slots as pairs if they change."""
    pairs = zip(names, first.tolist(), last.tolist(), strict=False)
    return (*kind.key, *((name, one if one == two else (one, two)) for name, one, two in pairs))


# levels ---------------------------------------------------------------------------------------------------------------


def _divided(observations: Observations, rows: Rows, places: Rows) -> tuple[_Pieces, Rows]:
    """Return the pieces of a kind, and the positions of its outliers."""
    size, edges = len(rows), [0]
    for place in sorted(set(places.tolist())):
        if place - edges[-1] >= MIN_SEGMENT and size - place >= MIN_SEGMENT:
            edges.append(place)
    segment = np.searchsorted(edges, np.arange(size), side="right") - 1
    slots = np.zeros((size, len(SLOTS)), np.int64)
    for n, name in enumerate(name for name in SLOTS if name in observations.frame.columns):
        slots[:, n] = observations.frame[name].to_numpy()[rows]
    groups = np.unique(np.column_stack([segment, slots]), axis=0, return_inverse=True)[1].reshape(-1)
    written = np.unique(slots, axis=0, return_inverse=True)[1].reshape(-1)
    clock, parts, grains = observations.clock(rows), [], []
    outlier = np.zeros(size, bool)
    for part in (one for one in (Part.EXECUTION, Part.IO, Part.STORAGE) if one in observations.parts):
        values = observations.of(observations.parts[part], rows)
        # Bytes differ from call to call and are charged exactly, so that levels of storage are far apart or none.
        grain = MIN_NOISY_GAP / MIN_GAP * max(1.0, float(values.max())) if part.in_octas else 1.0
        flat, levels = _levels_in(np.maximum(values, grain), clock, groups, (segment, written), grain)
        parts.append(flat)
        grains.append(grain)
        outlier |= levels < 0
        groups = np.unique(np.column_stack([groups, levels]), axis=0, return_inverse=True)[1].reshape(-1)
    values = np.column_stack(parts)
    of_levels = (np.flatnonzero((groups == number) & ~outlier) for number in np.unique(groups[~outlier]))
    pieces = [piece for level in of_levels for piece in _without_gaps(level)]
    means = np.array([values[piece].mean(axis=0) for piece in pieces])
    if outlier.any():
        # An outlier that has the level of a piece before or after, with its slots, is one of that way.
        lost = np.flatnonzero(outlier)
        allowed = np.maximum(MIN_GAP * np.array(grains), SAME_LEVEL * means)
        first = slots[[piece[0] for piece in pieces]]
        away = (np.abs(values[lost][:, None] - means) / allowed).max(axis=2)
        away[(slots[lost][:, None] != first).any(axis=2)] = np.inf
        best = away.argmin(axis=1)
        found = away[np.arange(len(lost)), best] <= 1
        pieces = [np.union1d(piece, lost[found & (best == n)]) for n, piece in enumerate(pieces)]
        outlier[lost[found]] = False
    spreads = np.array([values[piece].std(axis=0) for piece in pieces])
    firsts = slots[[piece[0] for piece in pieces]]
    return _Pieces(pieces, firsts, means, spreads, np.array(grains)), np.flatnonzero(outlier)


def _without_gaps(rows: Rows) -> list[Rows]:
    """Divide the rows of a level where it is absent for a long time and the path may have had another level."""
    gaps = np.diff(rows)
    place = int(gaps.argmax()) + 1 if len(gaps) else 0
    if min(place, len(rows) - place) < MIN_OF_LEVEL:
        return [rows]
    share = len(rows) / (rows[-1] - rows[0] + 1 - gaps[place - 1])
    if share * gaps[place - 1] <= LONG_ABSENT:
        return [rows]
    return [*_without_gaps(rows[:place]), *_without_gaps(rows[place:])]


def _levels_in(
    values: Floats, clock: Floats, groups: Rows, place: tuple[Rows, Rows], grain: float
) -> tuple[Floats, Rows]:
    """Return values without growth, and the number of the level of each within its group; -1 for outliers."""
    whole = np.zeros(len(values), np.int64)
    if len(values) < MIN_SEGMENT or np.ptp(values) <= MIN_GAP * grain:
        return values, whole
    rate, levels = _drift(values, clock, groups, grain), whole
    flat = values
    for _ in range(3):  # levels show growth better than neighbours do, and growth removed shows levels better
        rate = 0.0 if abs(rate) * float(np.ptp(clock)) < MIN_GROWTH else rate
        flat = values * np.exp(-rate * (clock - clock.mean()))
        levels = whole.copy()
        for group in np.unique(groups):
            mine = np.flatnonzero(groups == group)
            levels[mine] = _levels(flat[mine], grain)
        last, rate = rate, _growth(values, clock, groups * (MAX_LEVELS + 2) + levels)
        if rate == last:
            break
    return flat, whole if _divided_in_part(flat, levels, groups, *place) else levels


def _divided_in_part(flat: Floats, levels: Rows, groups: Rows, segment: Rows, written: Rows) -> bool:
    """Return whether a segment has one level but its neighbour has several, some of which noise hides."""
    there: dict[tuple[int, int], list[Floats]] = {}
    for number in np.unique((pairs := groups * (MAX_LEVELS + 1) + levels)[levels >= 0]):
        rows = np.flatnonzero((pairs == number) & (levels >= 0))
        there.setdefault((int(segment[rows[0]]), int(written[rows[0]])), []).append(flat[rows])
    for (place, slots), mine in there.items():
        means = [[float(one.mean()) for one in there.get((other, slots), ())] for other in (place - 1, place + 1)]
        for one in mine:
            low, high = float(one.min()), float(one.max())
            if any(sum(low < mean < high for mean in side) > 1 for side in means):
                return True
    return False


def _drift(values: Floats, clock: Floats, groups: Rows, grain: float) -> float:
    """Return the relative growth between nearby observations of about the same value, before levels are known."""
    logs, up, time = np.log(values), 0.0, 0.0
    for lag in (lag for lag in LAGS if lag < len(values)):
        moved = logs[lag:] - logs[:-lag]
        alike = np.abs(moved) <= np.maximum(MIN_NOISY_GAP, MIN_GAP * grain / values[:-lag])
        alike &= groups[lag:] == groups[:-lag]
        up += float(moved[alike].sum())
        time += float((clock[lag:] - clock[:-lag])[alike].sum())
    return up / time if time > 0 else 0.0


def _growth(values: Floats, clock: Floats, levels: Rows) -> float:
    """Return the relative growth: the median slope of the logarithms of pairs of one level."""
    logs, slopes = np.log(values), []
    random = np.random.default_rng(0)  # the same pairs each time, so that the same history has the same ways
    for level in np.unique(levels):
        rows = np.flatnonzero(levels == level)
        if len(rows) >= MIN_SEGMENT:
            one, two = rows[random.integers(0, len(rows), (2, PAIRS))]
            apart = clock[one] != clock[two]
            slopes.append((logs[two] - logs[one])[apart] / (clock[two] - clock[one])[apart])
    every = np.concatenate(slopes) if slopes else np.empty(0)
    return float(np.median(every)) if len(every) else 0.0


def _levels(values: Floats, grain: float) -> Rows:
    """Return the number of the level of each value, by gaps between the sorted values; -1 for outliers."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    gaps = np.diff(ordered)
    cuts = (np.flatnonzero(gaps > MIN_GAP * grain) + 1).tolist()
    if len(cuts) > MAX_CONSTANTS:
        noisy = np.maximum(MIN_GAP * grain, MIN_NOISY_GAP * ordered[:-1])
        cuts = (np.flatnonzero(gaps > noisy) + 1).tolist()
    while cuts:
        edges = [0, *cuts, len(ordered)]
        clear = [_clearness(ordered[edges[n] : cut], ordered[cut : edges[n + 2]], grain) for n, cut in enumerate(cuts)]
        worst = int(np.argmin(clear))
        if clear[worst] >= GAP_TO_SPREAD:
            break
        cuts.pop(worst)
    sizes = np.diff([0, *cuts, len(ordered)])
    large = sizes >= MIN_OF_LEVEL
    if large.sum() > MAX_LEVELS or not large.any() or sizes[~large].sum() > MAX_OUTLIERS * len(values):
        return np.zeros(len(values), np.int64)
    numbers = np.where(large, np.cumsum(large) - 1, -1)
    found = np.empty(len(values), np.int64)
    found[order] = np.repeat(numbers, sizes)
    return found


def _clearness(low: Floats, high: Floats, grain: float) -> float:
    """Return how clearly neighbouring clusters are separated: the gap in standard deviations, 0 if it is too small."""
    gap = float(high[0] - low[-1])
    if max(len(low), len(high)) >= MIN_OF_LEVEL and max(np.ptp(low), np.ptp(high)) <= STEADY_BAND * grain:
        return np.inf  # two constants
    if gap <= max(MIN_GAP * grain, MIN_NOISY_GAP * float(low[-1])):
        return 0.0
    return gap / max(float(low.std()), float(high.std()), 1e-9)


# links ----------------------------------------------------------------------------------------------------------------


def _chains(pieces: _Pieces, code: Rows) -> list[list[int]]:
    """Return the pieces of each path in order of time, linking levels at the lowest total cost.

    Parameters
    ----------
    pieces : _Pieces
    code : ndarray of int64
        Places of the changes that can alter what a call writes: changes to code and configuration.
    """
    from scipy.optimize import linear_sum_assignment

    first, last = (np.array([rows[n] for rows in pieces.rows]) for n in (0, -1))
    span, count = last - first + 1, np.array([len(rows) for rows in pieces.rows])
    share, levels, grains = count / span, pieces.levels, pieces.grains
    moved = np.abs(levels[:, None] - levels)
    spread = np.maximum(pieces.spreads[:, None], pieces.spreads)
    stays = (moved <= np.maximum(np.maximum(MIN_GAP * grains, SAME_LEVEL * levels)[:, None], 2 * spread)).all(axis=2)
    more = np.abs(pieces.slots[:, None] - pieces.slots)
    same_slots, few_slots = (more == 0).all(axis=2), more.sum(axis=2) <= MAX_SLOTS_MORE
    few_slots &= (more > 0).sum(axis=2) <= 1
    stays &= same_slots
    between = first - last[:, None] - 1
    meets = between * np.maximum(share[:, None], share) <= MAX_ABSENT
    work = moved[:, :, 0] <= grains[0] + SAME_WORK * np.minimum(levels[:, None, 0], levels[:, 0])
    coded = np.searchsorted(code, first, side="right") > np.searchsorted(code, last[:, None], side="right")
    sharp = between * np.maximum(share[:, None], share) <= MAX_ABSENT_UNANNOUNCED
    many = np.minimum(count[:, None], count) >= MIN_SIDE
    able = (between >= 0) & (stays | (meets & same_slots) | (many & work & few_slots & np.where(coded, meets, sharp)))
    pooled = (count[:, None] + count) / (span[:, None] + span)
    variance = np.maximum(pooled * (1 - pooled), MIN_SHARE_VARIANCE) * (1 / span[:, None] + 1 / span)
    # A quarter of the squared difference in standard deviations; the log likelihood of independent calls is half of it.
    other_share = np.minimum((share[:, None] - share) ** 2 / variance / 4, MAX_SHARE)
    order = SAME_ORDER * (np.log(levels[:, None] / levels) ** 2).sum(axis=2)
    price = np.where(stays, STAYS * other_share, MOVED + other_share) + order
    worth = np.where(able, price - WORTH, 0.0)
    following = {int(a): int(b) for a, b in zip(*linear_sum_assignment(worth), strict=True) if able[a, b]}
    chains = [[n] for n in range(len(count)) if n not in following.values()]
    for chain in chains:
        while chain[-1] in following:
            chain.append(following[chain[-1]])
    return chains
