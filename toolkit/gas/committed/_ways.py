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
    Ints = NDArray[np.int64]

# Observations between two changes that divide a series. Fewer are too few to show two levels of 5 or more.
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
# Observations that a level would have between its end and the beginning of the next level, if it were as frequent as
# before. If more are missing (a chance of e^-9), the second level does not continue the first.
MAX_ABSENT = 9.0
# The same within a level, whose longest gap is looked at.
LONG_ABSENT = 12.0
# The same if no change of code is there that could alter what a call writes: one kind of call may have ended and
# another begun, so they have to meet more closely.
MAX_ABSENT_UNANNOUNCED = 3.0
# Price of a link to a level of different gas. If a move cost nothing, two ways would swap where the mix does.
MOVED = 6.0
# Price per square of the logarithm of the move. If order cost nothing, two ways that double would cross if one costs
# twice the other.
SAME_ORDER = 8.0
# Maximum price of different shares.
MAX_SHARE = 10.0
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
    slots : ndarray of int64, shape (pieces, 2)
        Slots created and deleted.
    levels, spreads : ndarray of float64, shape (pieces, parts)
        Mean and standard deviation in each part, without growth.
    grains : ndarray of float64, shape (parts,)
        The resolution of the values of each part.
    """

    rows: list[Ints]
    slots: Ints
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
    keyed: list[tuple[Key, Ints]] = []
    versions = [change.ledger_version for change in timeline]
    code_versions = [change.ledger_version for change in timeline if change.kind is not Cause.SCHEDULE]
    slot_columns = _slot_columns(observations)
    for kind in observations.strata([name for name in KEY_COLUMNS if name not in SLOTS]):
        read = observations.of(observations.versions, kind.rows)
        pieces, outliers = _divided(observations, kind.rows, np.searchsorted(read, versions))
        chains = _chains(pieces, np.searchsorted(read, code_versions))
        chains.sort(key=lambda chain: float(pieces.levels[chain[0]].sum()))
        keys = [_key(kind, slot_columns, pieces.slots[chain[0]], pieces.slots[chain[-1]]) for chain in chains]
        for place, (key, chain) in enumerate(zip(keys, chains, strict=True)):
            if keys.count(key) > 1:
                number = keys[:place].count(key)
                letter = ascii_uppercase[number] if number < len(ascii_uppercase) else OTHER
                key = (*key, ("way", letter))  # noqa: PLW2901
            rows = np.sort(np.concatenate([pieces.rows[piece] for piece in chain]))
            keyed.append((key, kind.rows[rows]))
        if len(outliers):
            keyed.append(((*kind.key, ("way", OTHER)), kind.rows[outliers]))
    return named(keyed)


def _slot_columns(observations: Observations) -> list[str]:
    return [name for name in SLOTS if name in observations.frame.columns]


def _key(kind: Stratum, slot_columns: Sequence[str], first: Ints, last: Ints) -> Key:
    """Return the key of a path: the key of its kind, and its slots, as pairs if they change."""
    slots: list[tuple[str, object]] = []
    for place, name in enumerate(slot_columns):
        before, after = int(first[place]), int(last[place])
        slots.append((name, before if before == after else (before, after)))
    return (*kind.key, *slots)


# levels ---------------------------------------------------------------------------------------------------------------


def _numbered(*columns: Ints) -> Ints:
    """Return a number for each row, which rows with the same values share; the numbers are in the order of the values.

    For example, two columns ``[5, 5, 7]`` and ``[1, 2, 1]`` give ``[0, 1, 2]``.
    """
    table = np.column_stack(columns)
    order = np.lexsort(table.T[::-1])  # several times as fast as np.unique(axis=0), which sorts rows as bytes
    differs = (np.diff(table[order], axis=0) != 0).any(axis=1)
    numbers = np.empty(len(table), np.int64)
    numbers[order] = np.concatenate([[0], np.cumsum(differs)])
    return numbers


def _divided(observations: Observations, rows: Ints, places: Ints) -> tuple[_Pieces, Ints]:
    """Return the pieces of a kind, and the positions of its outliers.

    Parameters
    ----------
    observations : Observations
    rows : ndarray of int64
        Positions of the kind in the observations.
    places : ndarray of int64
        Position in the kind of the first observation after each change.
    """
    slots = np.zeros((len(rows), len(SLOTS)), np.int64)
    for column, name in enumerate(_slot_columns(observations)):
        slots[:, column] = observations.frame[name].to_numpy()[rows]
    segment = _segments(len(rows), places)
    same_slots = _numbered(slots)
    groups = _numbered(segment, slots)
    clock = observations.clock(rows)
    outlier = np.zeros(len(rows), bool)
    without_growth: list[Floats] = []
    grains: list[float] = []
    for part in (Part.EXECUTION, Part.IO, Part.STORAGE):
        if part not in observations.parts:
            continue
        values = observations.of(observations.parts[part], rows)
        # Bytes differ from call to call and are charged exactly, so levels of storage are far apart or none: with this
        # grain, `MIN_GAP` is the share `MIN_NOISY_GAP` of the largest value.
        grain = MIN_NOISY_GAP / MIN_GAP * max(1.0, float(values.max())) if part.in_octas else 1.0
        flat, levels = _levels_in(np.maximum(values, grain), clock, groups, grain)
        if _noise_hides_levels(flat, levels, groups, segment, same_slots):
            levels = np.zeros_like(levels)
        without_growth.append(flat)
        grains.append(grain)
        outlier |= levels < 0
        groups = _numbered(groups, levels)
    values = np.column_stack(without_growth)
    pieces: list[Ints] = []
    for group in np.unique(groups[~outlier]):
        pieces += _without_gaps(np.flatnonzero((groups == group) & ~outlier))
    means = np.array([values[piece].mean(axis=0) for piece in pieces])
    slots_of_pieces = slots[[piece[0] for piece in pieces]]
    if outlier.any():
        # An outlier with the level and the slots of a piece belongs to that path, whichever segment it is in.
        lost = np.flatnonzero(outlier)
        allowed = np.maximum(MIN_GAP * np.array(grains), SAME_LEVEL * means)
        distances = (np.abs(values[lost][:, None] - means) / allowed).max(axis=2)
        distances[(slots[lost][:, None] != slots_of_pieces).any(axis=2)] = np.inf
        nearest = distances.argmin(axis=1)
        found = distances.min(axis=1) <= 1
        pieces = [np.union1d(piece, lost[found & (nearest == number)]) for number, piece in enumerate(pieces)]
        outlier[lost[found]] = False
    spreads = np.array([values[piece].std(axis=0) for piece in pieces])
    return _Pieces(pieces, slots_of_pieces, means, spreads, np.array(grains)), np.flatnonzero(outlier)


def _segments(count: int, places: Ints) -> Ints:
    """Return the number of the segment of each of `count` observations; changes too near to each other are ignored."""
    starts = [0]
    for place in sorted(set(places.tolist())):
        if place - starts[-1] >= MIN_SEGMENT and count - place >= MIN_SEGMENT:
            starts.append(place)
    return np.searchsorted(starts, np.arange(count), side="right") - 1


def _without_gaps(rows: Ints) -> list[Ints]:
    """Divide the rows of a level where it is absent for a long time and the path may have had another level."""
    gaps = np.diff(rows)
    place = int(gaps.argmax()) + 1 if len(gaps) else 0
    if min(place, len(rows) - place) < MIN_OF_LEVEL:
        return [rows]
    share = len(rows) / (rows[-1] - rows[0] + 1 - gaps[place - 1])
    if share * gaps[place - 1] <= LONG_ABSENT:
        return [rows]
    return [*_without_gaps(rows[:place]), *_without_gaps(rows[place:])]


def _levels_in(values: Floats, clock: Floats, groups: Ints, grain: float) -> tuple[Floats, Ints]:
    """Return values without growth, and the number of the level of each within its group; -1 for outliers."""
    one_level = np.zeros(len(values), np.int64)
    if len(values) < MIN_SEGMENT or np.ptp(values) <= MIN_GAP * grain:
        return values, one_level
    rate = _drift(values, clock, groups, grain)
    for _ in range(3):  # levels show growth better than neighbours do, and growth removed shows levels better
        if abs(rate) * float(np.ptp(clock)) < MIN_GROWTH:
            rate = 0.0
        flat = values * np.exp(-rate * (clock - clock.mean()))
        levels = one_level.copy()
        for group in np.unique(groups):
            members = np.flatnonzero(groups == group)
            levels[members] = _levels(flat[members], grain)
        previous, rate = rate, _growth(values, clock, _numbered(groups, levels))
        if rate == previous:
            break
    return flat, levels


def _noise_hides_levels(flat: Floats, levels: Ints, groups: Ints, segment: Ints, same_slots: Ints) -> bool:
    """Return whether one level spans several levels of the same slots in the segment before or after it."""
    values_of: dict[tuple[int, int], list[Floats]] = {}  # of each level, by segment and slots
    inside = levels >= 0
    numbers = _numbered(groups, levels)
    for number in np.unique(numbers[inside]):
        rows = np.flatnonzero(numbers == number)
        values_of.setdefault((int(segment[rows[0]]), int(same_slots[rows[0]])), []).append(flat[rows])
    for (place, slots), own_levels in values_of.items():
        for neighbour in (place - 1, place + 1):
            means = np.array([values.mean() for values in values_of.get((neighbour, slots), ())])
            for values in own_levels:
                if ((values.min() < means) & (means < values.max())).sum() > 1:
                    return True
    return False


def _drift(values: Floats, clock: Floats, groups: Ints, grain: float) -> float:
    """Return the relative growth between nearby observations of about the same value, before levels are known."""
    logs = np.log(values)
    growth = time = 0.0
    for lag in LAGS:
        moved = logs[lag:] - logs[:-lag]
        alike = np.abs(moved) <= np.maximum(MIN_NOISY_GAP, MIN_GAP * grain / values[:-lag])
        alike &= groups[lag:] == groups[:-lag]
        growth += float(moved[alike].sum())
        time += float((clock[lag:] - clock[:-lag])[alike].sum())
    return growth / time if time > 0 else 0.0


def _growth(values: Floats, clock: Floats, levels: Ints) -> float:
    """Return the relative growth: the median slope of the logarithms of pairs of one level."""
    logs = np.log(values)
    slopes = []
    random = np.random.default_rng(0)  # the same pairs each time, so that the same history has the same ways
    for level in np.unique(levels):
        rows = np.flatnonzero(levels == level)
        if len(rows) >= MIN_SEGMENT:
            one, other = rows[random.integers(0, len(rows), (2, PAIRS))]
            apart = clock[one] != clock[other]
            slopes.append((logs[other] - logs[one])[apart] / (clock[other] - clock[one])[apart])
    every = np.concatenate(slopes) if slopes else np.empty(0)
    return float(np.median(every)) if len(every) else 0.0


def _levels(values: Floats, grain: float) -> Ints:
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


def _chains(pieces: _Pieces, code: Ints) -> list[list[int]]:
    """Return the pieces of each path in order of time, linking levels at the lowest total price.

    Parameters
    ----------
    pieces : _Pieces
    code : ndarray of int64
        Places of the changes that can alter what a call writes: changes to code and configuration.
    """
    from scipy.optimize import linear_sum_assignment

    prices = _link_prices(pieces, code)
    possible = np.isfinite(prices)
    cost = np.where(possible, prices - WORTH, 0.0)
    following = {
        int(piece): int(next_piece)
        for piece, next_piece in zip(*linear_sum_assignment(cost), strict=True)
        if possible[piece, next_piece]
    }
    chains = [[piece] for piece in range(len(pieces.rows)) if piece not in following.values()]
    for chain in chains:
        while chain[-1] in following:
            chain.append(following[chain[-1]])
    return chains


def _link_prices(pieces: _Pieces, code: Ints) -> Floats:
    """Return the price at which the piece of each column continues the piece of each row; inf if it cannot."""
    first = np.array([rows[0] for rows in pieces.rows])
    last = np.array([rows[-1] for rows in pieces.rows])
    count = np.array([len(rows) for rows in pieces.rows])
    span = last - first + 1
    share = count / span
    levels, grains = pieces.levels, pieces.grains

    between = first - last[:, None] - 1
    absent = between * np.maximum(share[:, None], share)
    meets = absent <= MAX_ABSENT
    code_changed = np.searchsorted(code, first, side="right") > np.searchsorted(code, last[:, None], side="right")
    meets_closely = np.where(code_changed, meets, absent <= MAX_ABSENT_UNANNOUNCED)

    more_slots = np.abs(pieces.slots[:, None] - pieces.slots)
    same_slots = (more_slots == 0).all(axis=2)
    few_more_slots = (more_slots.sum(axis=2) <= MAX_SLOTS_MORE) & ((more_slots > 0).sum(axis=2) <= 1)

    moved = np.abs(levels[:, None] - levels)
    spread = np.maximum(pieces.spreads[:, None], pieces.spreads)
    tolerance = np.maximum(MIN_GAP * grains, SAME_LEVEL * levels)[:, None]
    stays = (moved <= np.maximum(tolerance, 2 * spread)).all(axis=2) & same_slots
    # Execution is the first part.
    same_work = moved[:, :, 0] <= grains[0] + SAME_WORK * np.minimum(levels[:, None, 0], levels[:, 0])
    enough = np.minimum(count[:, None], count) >= MIN_SIDE
    writes_more = enough & same_work & few_more_slots & meets_closely
    possible = (between >= 0) & (stays | (meets & same_slots) | writes_more)

    pooled = (count[:, None] + count) / (span[:, None] + span)
    variance = np.maximum(pooled * (1 - pooled), MIN_SHARE_VARIANCE) * (1 / span[:, None] + 1 / span)
    # A quarter of the squared difference in standard deviations; the log likelihood of independent calls is half of it.
    other_share = np.minimum((share[:, None] - share) ** 2 / variance / 4, MAX_SHARE)
    order = SAME_ORDER * (np.log(levels[:, None] / levels) ** 2).sum(axis=2)
    return np.where(possible, np.where(stays, STAYS * other_share, MOVED + other_share) + order, np.inf)
