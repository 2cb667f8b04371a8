"""Steps of a committed series at the changes of a timeline, by three rules: near, placebo, and few calls are said.

*Near*: a change is judged by the calls nearest to it, never across another change, each part of the gas by itself.
*Placebo*: what the test finds at the change, it must not find at places where nothing changed; there the series moves
by itself. *Few calls are said*: changes with fewer than five calls between them are one set.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import scipy

from toolkit.gas._observations import Part
from toolkit.gas.committed import _levels as levels
from toolkit.gas.committed._strata import Observations, Stratum

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from toolkit.gas._findings import Change

# Places on each side of a change where nothing changed. Waves and queues move at most of them, true constants at none.
PLACEBOS = 6
# Calls between such a place and an end of its side, so that the test can find there what it finds at the change.
PLACEBO_EDGE = 12
# A step of one unit between means, with a quarter of a unit by which means of rounded values are off.
ONE_UNIT = 1.25
# Smaller shifts that no change explains are ignored: their places are searched for, and uneven growth offers many.
MIN_UNEXPLAINED = 0.1
# Shifts and shares that are searched for between two changes. A series with more of them moves all the time.
MAX_SPLITS = 4
# Growth by less than this share over a stretch is not worth a sentence.
MIN_GROWTH = 0.02
# Strata whose shares are compared; the others are one more together.
MAX_STRATA_OF_MIX = 12


class Doubt(StrEnum):
    """Why a step is not sure; the values of the column ``uncertain``."""

    SET = "fewer than five calls lie between the changes"
    BETWEEN = "only the calls between the changes differ"
    FEW = "one side has fewer than 8 calls"
    CHANCE = "calls that are so few, or vary so much, may differ by chance"
    MOVES = "the same difference is found where nothing changed"
    ROUNDING = "rounding can make a change of one gas unit"
    OPTION = "an option may have been added or removed instead"


@dataclass(frozen=True, slots=True)
class SeriesStep:
    """A step of one part of one stratum.

    Attributes
    ----------
    part : Part
    stratum : str
        Name of the stratum.
    way : int or None
        Number of the level among those of the stratum, from the lowest; None if it has one level.
    before, after : float or None
        The levels at the place, at the same payload size: gas units, or octas for storage and refund. None if the way
        exists on the other side only, because an option was added or removed.
    low, high : float
        95 % confidence bounds on the difference, including rounding; NaN without a difference.
    count_before, count_after : int
        Calls compared.
    chance : float
        Probability of so large a difference if the level does not change.
    version_before, version_after : int
        Versions of the calls next to the place.
    causes : tuple of Change
        The change, or the set of changes with fewer than five calls between them; empty if no change explains the step.
    doubts : tuple of Doubt
        Reasons why the step is not sure; empty if it is.
    share : float or None
        Share of the calls that take the way, on the side where it exists.
    weak : bool
        For a step without a cause, whether rounding of gradual growth looks the same.
    """

    part: Part
    stratum: str
    way: int | None
    before: float | None
    after: float | None
    low: float
    high: float
    count_before: int
    count_after: int
    chance: float
    version_before: int
    version_after: int
    causes: tuple[Change, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    share: float | None = None
    weak: bool = False

    @property
    def sure(self) -> bool:
        """Whether there is no reason for doubt."""
        return not self.doubts

    @property
    def change(self) -> float:
        """After minus before; NaN if the way exists on one side only."""
        return np.nan if self.before is None or self.after is None else self.after - self.before


@dataclass(frozen=True, slots=True)
class Growth:
    """Gradual growth of one part of one stratum between two changes.

    `per_call` is the share of the level by which it grows per call of the function; `low` and `high` are its 99.9 %
    bounds. `level` is the mean in gas units or octas, and `count` the number of calls.
    """

    part: Part
    stratum: str
    version_first: int
    version_last: int
    per_call: float
    low: float
    high: float
    level: float
    count: int
    places: float


@dataclass(frozen=True, slots=True)
class MixShift:
    """A place at which the shares of strata, or of the ways of one stratum, change: not a step.

    Attributes
    ----------
    version_before, version_after : int
        The calls next to the place.
    shares : tuple of (str, int or None, float, float)
        Stratum and way, and their share before and after.
    """

    version_before: int
    version_after: int
    shares: tuple[tuple[str, int | None, float, float], ...]


@dataclass(frozen=True, slots=True)
class Few:
    """Calls too few to be judged: those of a stratum next to a change, or between two changes.

    Attributes
    ----------
    stratum : str
    changes : tuple of Change
    count : int
        Number of calls on the side, or between the changes.
    version_first, version_last : int
        Versions of the first and the last of them.
    between : bool
        Whether they lie between the changes and are like those of neither side.
    """

    stratum: str
    changes: tuple[Change, ...]
    count: int
    version_first: int = 0
    version_last: int = 0
    between: bool = False


@dataclass(frozen=True, slots=True)
class Analysis:
    """The findings in the committed transactions of one function.

    Attributes
    ----------
    steps : tuple of SeriesStep
        Steps at changes, by version, part and stratum.
    unexplained : tuple of SeriesStep
        Shifts that no change explains, including weak ones.
    growth : tuple of Growth
    mix : tuple of MixShift
    strata : tuple of Stratum
    few : tuple of Few
        Strata and changes that could not be judged because there are too few calls.
    """

    steps: tuple[SeriesStep, ...] = ()
    unexplained: tuple[SeriesStep, ...] = ()
    growth: tuple[Growth, ...] = ()
    mix: tuple[MixShift, ...] = ()
    strata: tuple[Stratum, ...] = ()
    few: tuple[Few, ...] = ()


@dataclass(slots=True)
class _Line:
    """One part of the gas of one stratum.

    `groups` holds the changes that can affect the part, with their places; `splits` the other places at which the
    series shifts, ascending.
    """

    part: Part
    stratum: Stratum
    versions: NDArray[np.int64]
    calls: levels.Calls
    groups: list[tuple[tuple[int, ...], tuple[Change, ...]]]
    splits: list[int] = field(default_factory=list)

    def near(self, number: int, *, splits: bool) -> tuple[slice, slice]:
        """Return the calls before and after a group, up to the next group, and up to the next split if asked for."""
        places = self.groups[number][0]
        first = self.groups[number - 1][0][-1] if number else 0
        last = self.groups[number + 1][0][0] if number + 1 < len(self.groups) else len(self.calls)
        if splits:
            first = max([first, *(one for one in self.splits if one < places[0])])
            last = min([last, *(one for one in self.splits if one > places[-1])])
        return slice(first, places[0]), slice(places[-1], last)


def analyse(frame: pd.DataFrame, changes: Sequence[Change]) -> Analysis:
    """Find the steps of one function's committed transactions, and their causes.

    Parameters
    ----------
    frame : DataFrame
        One row per transaction; see `Observations`.
    changes : sequence of Change
        The timeline.

    Returns
    -------
    Analysis

    Raises
    ------
    InputError
        If a required column is missing.

    Examples
    --------
    >>> import pandas as pd
    >>> from toolkit.gas._findings import Change
    >>> from toolkit.gas._observations import Cause
    >>> frame = pd.DataFrame({"ledger_version": range(100), "execution_gas_units": [4] * 50 + [21] * 50})
    >>> frame = frame.assign(io_gas_units=2, storage_fee_octas=0)
    >>> [step] = analyse(frame, [Change(50, Cause.CODE, "upgrade")]).steps
    >>> step.part, step.before, step.after, step.low, step.high
    (<Part.EXECUTION: 'execution'>, 4.0, 21.0, 16.0, 18.0)
    """
    observations = Observations(frame)
    if not len(observations):
        return Analysis()
    timeline = tuple(sorted(changes, key=lambda change: change.ledger_version))
    strata = observations.strata(timeline)
    large = [stratum for stratum in strata if len(stratum.rows) >= 2 * levels.MIN_SURE_CALLS]
    lines = [_line(observations, stratum, part, timeline) for stratum in large for part in observations.parts]
    steps: list[SeriesStep] = []
    shifts: list[SeriesStep] = []
    few: list[Few] = []
    mix = list(_mix_of_strata(observations, strata, timeline))
    for line in lines:
        for number in range(len(line.groups)):
            _judge(line, number, steps, few, mix)
        _judge_splits(line, shifts, mix)
    growth = tuple(growth for line in lines for growth in _growth(line, shifts))
    return Analysis(
        steps=_in_order(steps),
        unexplained=_in_order(shifts),
        growth=growth,
        mix=tuple(sorted(mix, key=lambda shift: shift.version_before)),
        strata=tuple(strata),
        few=tuple(few),
    )


def _line(observations: Observations, stratum: Stratum, part: Part, timeline: Sequence[Change]) -> _Line:
    versions = observations.versions[stratum.rows]
    groups: list[tuple[tuple[int, ...], tuple[Change, ...]]] = []
    for change in timeline:
        place = int(np.searchsorted(versions, change.ledger_version))
        if part not in change.parts or not place:
            continue
        if groups and place - groups[-1][0][-1] < levels.MIN_CALLS:
            groups[-1] = (*groups[-1][0], place), (*groups[-1][1], change)
        else:
            groups.append(((place,), (change,)))
    line = _Line(part, stratum, versions, observations.calls(stratum.rows, part), groups)
    edges = [0, *sorted({place for places, _ in groups for place in places}), len(versions)]
    line.splits = [place for first, last in pairwise(edges) for place in _splits(line.calls, first, last)]
    return line


def _splits(calls: levels.Calls, first: int, last: int) -> list[int]:
    """Return the places between two changes at which the levels or their shares differ, ascending."""
    found: list[int] = []
    pieces = [(first, last, True)]
    while pieces and len(found) < MAX_SPLITS:
        first, last, whole = pieces.pop(0)
        place = levels.best_split(calls[first:last])
        if place is not None:
            found.append(first + place)
            pieces += [(first, first + place, True), (first + place, last, True)]
        elif whole:  # a level that shifts and comes back shows no single shift, but its halves do
            middle = (first + last) // 2
            pieces += [(first, middle, False), (middle, last, False)]
    return sorted(found)


def _judge(line: _Line, number: int, steps: list[SeriesStep], few: list[Few], mix: list[MixShift]) -> None:
    """Judge a line at a group of changes, and add what is found."""
    places, changes = line.groups[number]
    sides = line.near(number, splits=True)
    before, after = (line.calls[rows] for rows in sides)
    middle = slice(places[0], places[-1])
    odd = _fitting_neither(before, line.calls[middle], after)
    counts = [rows.stop - rows.start for rows in sides]
    # Whatever so few calls cost, chance explains it: that nothing is found does not mean that nothing moved.
    least = levels.MIN_CALLS if levels.can_tell(*counts) else levels.MIN_SURE_CALLS
    few += [_few(line, changes, rows) for rows, count in zip(sides, counts, strict=True) if count < least]
    if len(odd):
        few.append(_few(line, changes, middle, between=True))
    tested = levels.test(before, after)
    found = [one for one in tested.differences if one.chance <= levels.POSSIBLE]
    alone = bool(found) and _moves_alone(line, number)
    here = (places[0] - 1, min(places[-1], len(line.calls) - 1))
    for one in found:
        rounded = not line.part.in_octas and abs(one.change) <= ONE_UNIT
        if alone and (rounded or one.chance > levels.SURE):
            continue  # as small, or as likely by chance, as what is found where nothing changed
        doubts = {
            Doubt.SET: len(changes) > 1,
            Doubt.FEW: min(len(before), len(after)) < levels.MIN_SURE_CALLS,
            Doubt.CHANCE: one.chance > levels.SURE,
            Doubt.MOVES: alone,
            Doubt.ROUNDING: rounded,
            Doubt.OPTION: one.before is None or one.after is None,
        }
        step = _step(line, one, here, tested)
        steps.append(replace(step, causes=changes, doubts=tuple(doubt for doubt, holds in doubts.items() if holds)))
    if len(odd) and not found and len(before) >= levels.MIN_CALLS <= len(after):
        level = float(before.values[-levels.WINDOW :].mean())
        around = max(line.calls.unit, float(np.ptp(odd)))
        moved = float(odd.mean()) - level
        one = levels.Difference(level, level + moved, moved - around, moved + around, len(before), len(odd), 1.0)
        steps.append(replace(_step(line, one, here), causes=changes, doubts=(Doubt.SET, Doubt.BETWEEN)))
    if tested.shares and not found:
        mix.append(_mix(line, here, tested))


def _few(line: _Line, changes: tuple[Change, ...], rows: slice, *, between: bool = False) -> Few:
    versions = line.versions[rows]
    ends = (int(versions[0]), int(versions[-1])) if len(versions) else (0, 0)
    return Few(line.stratum.name, changes, len(versions), *ends, between)


def _fitting_neither(before: levels.Calls, between: levels.Calls, after: levels.Calls) -> NDArray[np.float64]:
    """Return the values between two changes that are levels of neither side."""
    sides = np.concatenate([before.values[-levels.WINDOW :], after.values[: levels.WINDOW]])
    if not len(between) or not len(sides):
        return between.values
    apart = np.abs(between.values[:, None] - sides).min(axis=1)
    beyond = np.maximum(sides.min() - between.values, between.values - sides.max()) >= between.unit
    far = apart > np.maximum(levels.GAP_UNITS * between.unit, levels.GAP * np.abs(between.values))
    odd: NDArray[np.float64] = between.values[beyond | far]
    return odd


def _moves_alone(line: _Line, number: int) -> bool:
    """Return whether the test finds a difference at places near a group where nothing changed."""
    for rows in line.near(number, splits=False):
        side = line.calls[rows]
        places = _placebos(len(side))
        places += [one - rows.start for one in line.splits if rows.start < one < rows.stop]
        if any(levels.test(side[:place], side[place:]).moves() for place in places):
            return True
    return False


def _placebos(count: int) -> list[int]:
    """Return places within so many calls at which nothing changed."""
    if count < 2 * PLACEBO_EDGE:
        return []
    return sorted({*np.linspace(PLACEBO_EDGE, count - PLACEBO_EDGE, PLACEBOS).astype(int).tolist()})


def _judge_splits(line: _Line, shifts: list[SeriesStep], mix: list[MixShift]) -> None:
    """Judge the places between changes at which a line shifts, and add what is found."""
    edges = sorted({0, *line.splits, *(place for places, _ in line.groups for place in places), len(line.calls)})
    for first, place, last in zip(edges, edges[1:], edges[2:], strict=False):
        if place not in line.splits:
            continue
        before, after = line.calls[first:place], line.calls[place:last]
        tested = levels.test(before, after)
        if tested.shares:
            mix.append(_mix(line, (place - 1, place), tested))
        found = [one for one in tested.differences if one.chance <= levels.SURE and one.before and one.after]
        # The place was chosen among all calls, so the chance of the clearest difference is corrected for them.
        if min((one.chance for one in found), default=1.0) * (last - first) > levels.SURE:
            continue
        large = [one for one in found if abs(one.change) >= MIN_UNEXPLAINED * max(one.before or 0, one.after or 0)]
        if large and not any(
            levels.test(side[:at], side[at:]).moves() for side in (before, after) for at in _placebos(len(side))
        ):
            # State grows: what falls by itself is not growth that crosses a whole unit.
            weak = [not line.part.in_octas and 0 < one.change <= ONE_UNIT for one in large]
            shifts += [
                replace(_step(line, one, (place - 1, place), tested), weak=is_weak)
                for one, is_weak in zip(large, weak, strict=True)
            ]


def _step(line: _Line, one: levels.Difference, here: tuple[int, int], tested: levels.Test | None = None) -> SeriesStep:
    """Return a difference as a step between two calls of a line."""
    share = None
    if tested is not None and (one.before is None or one.after is None):
        there = sum(other.count_after if one.before is None else other.count_before for other in tested.differences)
        share = max(one.count_before, one.count_after) / max(there, 1)
    return SeriesStep(
        part=line.part,
        stratum=line.stratum.name,
        version_before=int(line.versions[here[0]]),
        version_after=int(line.versions[here[1]]),
        share=share,
        **{name: getattr(one, name) for name in _OF_DIFFERENCE},
    )


_OF_DIFFERENCE = ("way", "before", "after", "low", "high", "count_before", "count_after", "chance")


def _mix(line: _Line, here: tuple[int, int], tested: levels.Test) -> MixShift:
    shares = tuple((line.stratum.name, way, before, after) for way, before, after in tested.shares)
    return MixShift(int(line.versions[here[0]]), int(line.versions[here[1]]), shares)


def _in_order(steps: Iterable[SeriesStep]) -> tuple[SeriesStep, ...]:
    def place(step: SeriesStep) -> tuple[int, int, str, int]:
        version = step.causes[0].ledger_version if step.causes else step.version_before
        return version, list(Part).index(step.part), step.stratum, step.way or 0

    return tuple(sorted(steps, key=place))


def _mix_of_strata(
    observations: Observations, strata: Sequence[Stratum], timeline: Sequence[Change]
) -> Iterator[MixShift]:
    """Yield the places at which the shares of the strata change: at changes, and once between two changes."""
    count = min(len(strata), MAX_STRATA_OF_MIX)
    member = np.zeros(len(observations), np.int64)
    for number, stratum in enumerate(strata):
        member[stratum.rows] = min(number, count - 1)
    versions = observations.versions
    known = sorted({*np.searchsorted(versions, [one.ledger_version for one in timeline]).tolist()} - {0, len(versions)})
    edges = [0, *known, len(versions)]
    found = {first + place for first, last in pairwise(edges) if (place := levels.split_of_kinds(member[first:last]))}
    edges = sorted({*edges, *found})
    for first, place, last in zip(edges, edges[1:], edges[2:], strict=False):
        sides = member[max(first, place - levels.WINDOW) : place], member[place : min(last, place + levels.WINDOW)]
        counts = np.array([np.bincount(side, minlength=count) for side in sides])
        counts = counts[:, counts.sum(axis=0) > 0]
        if place in found or (counts.shape[1] > 1 and scipy.stats.chi2_contingency(counts).pvalue < levels.USE):
            shares = [np.bincount(side, minlength=count) / len(side) for side in sides]
            pairs = zip(strata[:count], *(one.tolist() for one in shares), strict=True)
            moved = tuple((stratum.name, None, before, after) for stratum, before, after in pairs)
            yield MixShift(int(versions[place - 1]), int(versions[place]), moved)


def _growth(line: _Line, shifts: Sequence[SeriesStep]) -> Iterator[Growth]:
    """Yield the gradual growth of a line between its changes and the shifts that growth does not make."""
    mine = [one for one in shifts if (one.part, one.stratum) == (line.part, line.stratum.name) and not one.weak]
    shifted = np.searchsorted(line.versions, [one.version_after for one in mine]).tolist()
    edges = sorted({0, *shifted, *(place for places, _ in line.groups for place in places), len(line.calls)})
    for first, last in pairwise(edges):
        calls = line.calls[first:last]
        rate, low, high = levels.growth_rate(calls)
        span = float(np.ptp(calls.places)) if len(calls) else 0.0
        if abs(rate) * span < MIN_GROWTH:
            continue
        ends = int(line.versions[first]), int(line.versions[last - 1])
        level = float(calls.values.mean())
        yield Growth(line.part, line.stratum.name, *ends, rate, low, high, level, len(calls), span)
