"""Steps of a committed series at the changes of a timeline, by three rules: near, placebo, and few calls are said.

*Near*: a change is judged by the calls nearest to it, never across another change, each part of the gas by itself.
*Placebo*: what the test finds at the change, it must not find at places where nothing changed; there the series moves
by itself. *Few calls are said*: changes with fewer than five calls between them are one set.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

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

T = TypeVar("T")

# Places on each side of a change where nothing changed. Waves and queues move at most of them, true constants at none.
PLACEBOS = 6
# A step of one unit between means, with a quarter of a unit by which means of rounded values are off.
ONE_UNIT = 1.25
# Smaller shifts that no change explains are ignored: their places are searched for, and uneven growth offers many.
MIN_UNEXPLAINED = 0.1
# Shifts and shares that are searched for between two changes. A series with more of them moves all the time.
MAX_SPLITS = 4


class Doubt(StrEnum):
    """Why a step is not sure; the values of the column ``uncertain``."""

    SET = "fewer than five calls lie between the changes"
    BETWEEN = "only the calls between the changes differ"
    FEW = "one side has fewer than 8 calls"
    CHANCE = "calls that are so few, or vary so much, may differ by chance"
    MOVES = "the series also moves where nothing changed"
    LATE = "the difference begins a few calls before or after the change"
    ROUNDING = "rounding can make a change of one gas unit"
    OPTION = "an option may have been added or removed instead"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesStep(levels.Difference):
    """A step of one part of one stratum: a difference at a place, in gas units, or in octas for storage and refund.

    A way that exists on one side only is an option that was added or removed.

    Attributes
    ----------
    part : Part
    stratum : str
        Name of the stratum.
    version_before, version_after : int
        Versions of the calls next to the place.
    causes : tuple of Change
        The change, or the set of changes with fewer than five calls between them; empty if no change explains the step.
    doubts : tuple of Doubt
        Reasons why the step is not sure; empty if it is.
    weak : bool
        For a step without a cause, whether rounding of gradual growth looks the same.
    """

    part: Part
    stratum: str
    version_before: int
    version_after: int
    causes: tuple[Change, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    weak: bool = False

    @property
    def sure(self) -> bool:
        """Whether there is no reason for doubt."""
        return not self.doubts


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


@dataclass(frozen=True, slots=True)
class _Place:
    """A place of a line: the numbers of calls before its first and its last change, which are equal for one change.

    Without changes, it is a place at which the line shifts and that nobody announced.
    """

    first: int
    last: int
    changes: tuple[Change, ...] = ()


@dataclass(slots=True)
class _Line:
    """One part of the gas of one stratum, and the places at which it is judged, ascending."""

    part: Part
    stratum: Stratum
    versions: NDArray[np.int64]
    calls: levels.Calls
    places: list[_Place]

    def add(self, position: int) -> None:
        """Add a place that nobody announced."""
        self.places = sorted([*self.places, _Place(position, position)], key=lambda place: place.first)

    def near(self, place: _Place, *, known: bool = False) -> tuple[slice, slice]:
        """Return the calls before and after a place, up to the next place, or up to the next change."""
        others = [one for one in self.places if one != place and (one.changes or not known)]
        first = max((one.last for one in others if one.last <= place.first), default=0)
        last = min((one.first for one in others if one.first >= place.last), default=len(self.calls))
        return slice(first, place.first), slice(place.last, last)

    def test(self, place: _Place) -> levels.Test:
        """Return what differs at a place."""
        before, after = self.near(place)
        return levels.test(self.calls[before], self.calls[after])


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
    findings: list[object] = [*_mix_of_strata(observations, large, timeline)]
    for line in lines:
        for place in [place for place in line.places if place.changes]:
            findings += _judge_change(line, place)
        shifts = [found for place in line.places if not place.changes for found in _judge_split(line, place)]
        findings += [*shifts, *_growth(line, shifts)]
    steps = _of(findings, SeriesStep)
    return Analysis(
        steps=_in_order(step for step in steps if step.causes),
        unexplained=_in_order(step for step in steps if not step.causes),
        growth=tuple(_of(findings, Growth)),
        mix=tuple(sorted(_of(findings, MixShift), key=lambda shift: shift.version_before)),
        strata=tuple(strata),
        few=tuple(_of(findings, Few)),
    )


def _of(findings: Iterable[object], kind: type[T]) -> list[T]:
    return [found for found in findings if isinstance(found, kind)]


def _line(observations: Observations, stratum: Stratum, part: Part, timeline: Sequence[Change]) -> _Line:
    versions = observations.versions[stratum.rows]
    line = _Line(part, stratum, versions, observations.calls(stratum.rows, part), [])
    for change in timeline:
        at = int(np.searchsorted(versions, change.ledger_version))
        if part not in change.parts or not at:
            continue
        if line.places and at - line.places[-1].last < levels.MIN_CALLS:
            last = line.places.pop()
            line.places.append(_Place(last.first, at, (*last.changes, change)))
        else:
            line.places.append(_Place(at, at, (change,)))
    ends = [0, *(place.last for place in line.places)]
    begins = [*(place.first for place in line.places), len(versions)]
    for end, begin in zip(ends, begins, strict=True):
        for at in _splits(line.calls, end, begin):
            line.add(at)
    return line


def _splits(calls: levels.Calls, first: int, last: int) -> list[int]:
    """Return the places between two changes at which the levels or their shares differ."""
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
    return found


def _judge_change(line: _Line, place: _Place) -> Iterator[SeriesStep | Few | MixShift]:
    """Judge a line at a change, or at a set of changes."""
    tested = line.test(place)
    found = [one for one in tested.differences if one.chance <= levels.POSSIBLE]
    late = min(found, key=lambda one: one.chance).late if found else 0
    if abs(late) >= levels.MIN_SURE_CALLS:  # the calls nearest to the change do not differ: what moves is elsewhere
        line.add(late + (place.last if late > 0 else place.first))
        yield from _judge_change(line, place)
        return
    sides = line.near(place)
    before, after = (line.calls[rows] for rows in sides)
    # Whatever so few calls cost, chance explains it: that nothing is found does not mean that nothing moved.
    least = levels.MIN_CALLS if levels.can_tell(len(before), len(after)) else levels.MIN_SURE_CALLS
    for rows in sides:
        if rows.stop - rows.start < least:
            yield _few(line, place.changes, rows)
    middle = slice(place.first, place.last)
    odd = _fitting_neither(before, line.calls[middle], after)
    if len(odd):
        yield _few(line, place.changes, middle, between=True)
    alone = _moved_alone(line, place) if found else 0.0
    for one in found:
        rounded = not line.part.in_octas and abs(one.change) <= ONE_UNIT
        by_chance, late = one.chance > levels.SURE, one.late != 0 or not one.near
        if rounded + by_chance + (alone >= abs(one.change) / 2) > 1 or (rounded and late):
            continue  # such as a unit more or less that is also found where nothing changed
        doubts = {
            Doubt.SET: len(place.changes) > 1,
            Doubt.FEW: min(len(before), len(after)) < levels.MIN_SURE_CALLS,
            Doubt.CHANCE: by_chance,
            Doubt.MOVES: alone > 0,
            Doubt.LATE: late,
            Doubt.ROUNDING: rounded,
            Doubt.OPTION: one.before is None or one.after is None,
        }
        yield _step(line, one, place, tuple(doubt for doubt, holds in doubts.items() if holds))
    beside = np.concatenate([before.values[-levels.WINDOW :], after.values[: levels.WINDOW]])
    # Of calls that vary, one may be the dearest by chance; if the others are alike, it is not.
    clear = len(beside) > 0 and (levels.can_tell(len(beside), len(odd)) or np.ptp(beside) <= line.calls.unit)
    if len(odd) and clear and not found and min(len(before), len(after)) >= levels.MIN_CALLS:
        level = float(before.values[-levels.WINDOW :].mean())
        around = max(line.calls.unit, float(np.ptp(odd)))
        moved = float(odd.mean()) - level
        one = levels.Difference(level, level + moved, moved - around, moved + around, len(before), len(odd), 1.0)
        yield _step(line, one, place, (Doubt.SET, Doubt.BETWEEN))
    if tested.shares and not found:
        yield _mix(line, place, tested)


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


def _moved_alone(line: _Line, place: _Place) -> float:
    """Return the largest difference that the test finds at places near a change where nothing changed; 0 if none."""
    moved = [0.0]
    for rows in line.near(place, known=True):
        shifts = [one for one in line.places if not one.changes and rows.start < one.first < rows.stop]
        moved += [_moved(line.calls[rows]), *(line.test(one).moved for one in shifts)]
    return max(moved)


def _moved(side: levels.Calls) -> float:
    """Return the largest difference that the test finds within calls among which nothing changed; 0 if none."""
    first, last = levels.MIN_SURE_CALLS, len(side) - levels.MIN_SURE_CALLS  # nearer to an end, nothing is found
    places = np.unique(np.linspace(first, last, PLACEBOS).astype(int)) if first <= last else ()
    return max((levels.test(side[:at], side[at:]).moved for at in places), default=0.0)


def _judge_split(line: _Line, place: _Place) -> Iterator[SeriesStep | MixShift]:
    """Judge a place that nobody announced."""
    before, after = line.near(place)
    tested = line.test(place)
    if tested.shares:
        yield _mix(line, place, tested)
    found = [one for one in tested.differences if one.chance <= levels.SURE and one.share is None]
    # The place was chosen among all calls, so the chance of the clearest difference is corrected for them.
    if min((one.chance for one in found), default=1.0) * (after.stop - before.start) > levels.SURE:
        return
    large = [one for one in found if abs(one.change) >= MIN_UNEXPLAINED * max(one.before or 0, one.after or 0)]
    half = max((abs(one.change) for one in large), default=0.0) / 2
    if large and max(_moved(line.calls[before]), _moved(line.calls[after])) < half:
        for one in large:  # state grows: what falls by itself is not growth that crosses a whole unit
            weak = not line.part.in_octas and 0 < one.change <= ONE_UNIT
            yield replace(_step(line, one, place), weak=weak)


def _step(line: _Line, one: levels.Difference, place: _Place, doubts: tuple[Doubt, ...] = ()) -> SeriesStep:
    """Return a difference as a step between two calls of a line."""
    return SeriesStep(
        **asdict(one),
        part=line.part,
        stratum=line.stratum.name,
        version_before=int(line.versions[place.first - 1]),
        version_after=int(line.versions[min(place.last, len(line.calls) - 1)]),
        causes=place.changes,
        doubts=doubts,
    )


def _mix(line: _Line, place: _Place, tested: levels.Test) -> MixShift:
    shares = tuple((line.stratum.name, way, before, after) for way, before, after in tested.shares)
    return MixShift(int(line.versions[place.first - 1]), int(line.versions[place.last]), shares)


def _in_order(steps: Iterable[SeriesStep]) -> tuple[SeriesStep, ...]:
    def place(step: SeriesStep) -> tuple[int, int, str, int]:
        version = step.causes[0].ledger_version if step.causes else step.version_before
        return version, list(Part).index(step.part), step.stratum, step.way or 0

    return tuple(sorted(steps, key=place))


def _mix_of_strata(
    observations: Observations, strata: Sequence[Stratum], timeline: Sequence[Change]
) -> Iterator[MixShift]:
    """Yield the places at which the shares of the strata change: at changes, and once between two changes."""
    member = np.full(len(observations), len(strata), np.int64)  # the small ones are one more together
    for number, stratum in enumerate(strata):
        member[stratum.rows] = number
    versions = observations.versions
    known = sorted({*np.searchsorted(versions, [one.ledger_version for one in timeline]).tolist()} - {0, len(versions)})
    edges = [0, *known, len(versions)]
    found = {first + place for first, last in pairwise(edges) if (place := levels.split_of_kinds(member[first:last]))}
    edges = sorted({*edges, *found})
    for first, place, last in zip(edges, edges[1:], edges[2:], strict=False):
        sides = member[max(first, place - levels.WINDOW) : place], member[place : min(last, place + levels.WINDOW)]
        counts = np.array([np.bincount(side, minlength=len(strata) + 1) for side in sides])
        there = counts[:, counts.sum(axis=0) > 0]
        if place in found or (there.shape[1] > 1 and scipy.stats.chi2_contingency(there).pvalue < levels.USE):
            shares = (counts / counts.sum(axis=1, keepdims=True)).T.tolist()
            moved = tuple((one.name, None, *pair) for one, pair in zip(strata, shares, strict=False))
            yield MixShift(int(versions[place - 1]), int(versions[place]), moved)


def _growth(line: _Line, found: Sequence[object]) -> Iterator[Growth]:
    """Yield the gradual growth of a line between its changes and the shifts that growth does not make."""
    shifts = [shift.version_after for shift in _of(found, SeriesStep) if not shift.weak]
    known = [end for place in line.places if place.changes for end in (place.first, place.last)]
    edges = sorted({0, *np.searchsorted(line.versions, shifts).tolist(), *known, len(line.calls)})
    for first, last in pairwise(edges):
        calls = line.calls[first:last]
        rate, low, high = levels.growth_rate(calls)
        span = float(np.ptp(calls.places)) if len(calls) else 0.0
        if abs(rate) * span < levels.ALIKE:
            continue
        ends = int(line.versions[first]), int(line.versions[last - 1])
        level = float(calls.values.mean())
        yield Growth(line.part, line.stratum.name, *ends, rate, low, high, level, len(calls), span)
