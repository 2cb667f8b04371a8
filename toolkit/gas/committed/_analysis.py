"""Steps of a committed series at the changes of a timeline, by three rules: near, placebo, and few calls are said.

*Near*: a change is judged by the calls nearest to it, never across another change, each part of the gas by itself.
*Placebo*: what the test finds at the change, it must not find at places where nothing changed; there the series moves
by itself. *Few calls are said*: changes with fewer than five calls between them are one set.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
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

    from toolkit.gas._findings import Change

# Places on each side of a change where nothing changed. Waves and queues move at most of them, true constants at none.
PLACEBOS = 6
# Smaller shifts that no change explains are ignored: their places are searched for, and uneven growth offers many.
MIN_UNEXPLAINED = 0.1


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
    LEVELS = "which level of gas became which is not known"


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
        """Whether nothing casts doubt on it."""
        return not self.doubts

    @property
    def way_gas(self) -> float | None:
        """The mean gas of the way before, or after if it is new; None if the stratum is not divided into ways."""
        gas = self.total_after if self.total_before is None else self.total_before
        return gas if self.way else None


@dataclass(frozen=True, slots=True)
class Slope:
    """Gradual growth of one part of one stratum, in gas units per 1,000 versions, with its 99.98 % bounds."""

    stratum: str
    part: str
    version_first: int
    version_last: int
    per_1000_versions: float
    low: float
    high: float
    level: float
    count: int


@dataclass(frozen=True, slots=True)
class ShareChange:
    """The share of a stratum, or of one of its ways, before and after a place at which shares change."""

    version_before: int
    version_after: int
    stratum: str
    share_before: float
    share_after: float
    way_gas: float | None = None


@dataclass(frozen=True, slots=True)
class FewCalls:
    """Transactions that are too few to be judged: next to a change, or between changes.

    Attributes
    ----------
    changes : tuple of int
        Ledger versions of the changes, ascending.
    stratum : str
    count : int
        Number of transactions; 0 if nobody called the function since the change.
    mean : float or None
        Their mean gas in gas units.
    between : bool
        Whether they lie between the changes, and are like those of neither side.
    part : str
        The only part of their gas that cannot be judged, because it is alike among neighbours; empty for all parts.
    """

    changes: tuple[int, ...]
    stratum: str
    count: int
    mean: float | None
    between: bool
    part: str = ""


@dataclass(frozen=True, slots=True)
class Analysis:
    """The findings in the committed transactions of one function.

    Attributes
    ----------
    steps : tuple of SeriesStep
        Steps at changes, by version, part and stratum.
    unexplained : tuple of SeriesStep
        Shifts that no change explains, including weak ones.
    growth : tuple of Slope
    mix : tuple of ShareChange
    strata : tuple of Stratum
    few : tuple of FewCalls
        What could not be judged because there are too few calls, once for all parts, or for one part alone.
    shifts : tuple of (str, int)
        Strata and versions from which a part of theirs, or how often callers take its ways, shifts without a change.
    """

    steps: tuple[SeriesStep, ...] = ()
    unexplained: tuple[SeriesStep, ...] = ()
    growth: tuple[Slope, ...] = ()
    mix: tuple[ShareChange, ...] = ()
    strata: tuple[Stratum, ...] = ()
    few: tuple[FewCalls, ...] = ()
    shifts: tuple[tuple[str, int], ...] = ()


def analyse(frame: pd.DataFrame, changes: Iterable[Change]) -> Analysis:
    """Find the steps of one function's committed transactions, and their causes.

    Parameters
    ----------
    frame : DataFrame
        One row per transaction; see `Observations`.
    changes : iterable of Change
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
    timeline = sorted(changes, key=lambda change: change.ledger_version)
    strata = observations.strata(timeline)
    large = [stratum for stratum in strata if len(stratum.rows) >= 2 * levels.MIN_SURE_CALLS]
    lines = [_Line(observations, stratum, part, timeline) for stratum in large for part in observations.parts]
    found = [one for line in lines for one in line.judged()]
    steps = sorted((one for one in found if isinstance(one, SeriesStep)), key=_order)
    few = [one for one in found if isinstance(one, FewCalls)]
    mix = [one for one in found if isinstance(one, ShareChange)]
    return Analysis(
        steps=tuple(step for step in steps if step.causes),
        unexplained=tuple(step for step in steps if not step.causes),
        growth=tuple(one for one in found if isinstance(one, Slope)),
        mix=tuple(sorted([*_mix_of_strata(observations, large, timeline), *mix], key=lambda one: one.version_before)),
        strata=tuple(strata),
        few=tuple({(one.changes, one.stratum, one.between, one.part): one for one in reversed(few)}.values())[::-1],
        shifts=tuple((line.stratum, version) for line in lines for version in line.shifts()),
    )


def _order(step: SeriesStep) -> tuple[int, int, str, float]:
    version = step.causes[0].ledger_version if step.causes else step.version_before
    return version, list(Part).index(step.part), step.stratum, step.before or step.after or 0


@dataclass(frozen=True, slots=True)
class _Place:
    """A place of a line: the numbers of calls before its first and its last change, which are equal for one change.

    Without changes, it is a place at which the line shifts and that nobody announced. If the difference begins a few
    calls before or after the change, it is late, and reaches from the one to the other.
    """

    first: int
    last: int
    changes: tuple[Change, ...] = ()
    late: bool = False
    elsewhere: bool = False


class _Line:
    """One part of the gas of one stratum, and the places at which it is judged."""

    def __init__(self, observations: Observations, stratum: Stratum, part: Part, timeline: Sequence[Change]) -> None:
        self.part, self.stratum = part, stratum.name
        self.versions = observations.versions[stratum.rows]
        self.calls = observations.calls(stratum.rows, part)
        self.places: list[_Place] = []
        for change in timeline:
            at = int(np.searchsorted(self.versions, change.ledger_version))
            if part not in change.parts or not at:
                continue
            if self.places and at - self.places[-1].last < levels.MIN_CALLS:
                last = self.places.pop()
                self.places.append(_Place(last.first, at, (*last.changes, change)))
            else:
                self.places.append(_Place(at, at, (change,)))
        ends = [0, *(place.last for place in self.places)]
        begins = [*(place.first for place in self.places), len(self.calls)]
        self.habits = levels.Habits()  # known once the places are
        for end, begin in zip(ends, begins, strict=True):
            self._search(end, begin, 2)
        for place in [one for one in self.places if one.changes]:
            self._find_late(place)
        known = self._edges(place for place in self.places if place.changes)
        between = ((self.calls[first:last] for first, last in pairwise(edges)) for edges in (self._edges(), known))
        self.habits = levels.habits(*between)

    def _edges(self, places: Iterable[_Place] | None = None) -> list[int]:
        """Return where stretches begin and end, between all places or some of them."""
        chosen = self.places if places is None else places
        return sorted({0, len(self.calls), *(end for place in chosen for end in (place.first, place.last))})

    def _search(self, first: int, last: int, depth: int) -> None:
        """Add the places between two others at which levels or their shares differ: one, and one on its either side.

        A series with more of them moves all the time.
        """
        calls = self.calls[first:last]
        if len(calls) < 2 * levels.MIN_SURE_CALLS or not np.ptp(calls.values):
            return
        flat = levels.Flat.of(calls, float(calls.places[0])).values
        # A shift looks like growth, and growth like a shift: the test tells them apart. Levels that end or begin are
        # tried first, because growth within them divides calls better at other places.
        for kinds in (
            levels.level_numbers(calls.values, calls.unit),
            levels.kinds_of(calls.values, calls.unit),
            levels.kinds_of(flat, calls.unit),
        ):
            at = first + (levels.split(kinds) or 0)
            tested = levels.test(self.calls, slice(first, at), slice(at, last), self.habits)
            if tested.found or tested.shares:
                self.places.append(_Place(at, at))
                if depth > 1:
                    self._search(first, at, depth - 1)
                    self._search(at, last, depth - 1)
                return

    def _find_late(self, place: _Place) -> None:
        """Move a change to where the difference begins, if the calls nearest to it do not differ yet, or any longer."""
        tested = self.test(place)
        first = min(tested.compared, key=lambda one: (one.chance, not one.late), default=None)
        late = first.late if first else 0
        at = late + (place.last if late > 0 else place.first)
        if abs(late) >= levels.MIN_SURE_CALLS and tested.found:  # another shift, and the change is judged without it
            self.places.append(_Place(at, at))
            self._find_late(place)
        elif 0 < abs(late) < levels.MIN_SURE_CALLS:  # these can hide that anything differs
            self.places.remove(place)
            ends = min(at, place.first), max(at, place.last)
            self.places.append(_Place(*ends, place.changes, late=True, elsewhere=first is not None and first.elsewhere))

    def shifts(self) -> list[int]:
        """Return the versions of the first calls after the places that nobody announced."""
        return [int(self.versions[place.first]) for place in self.places if not place.changes]

    def near(self, place: _Place, *, known: bool = False) -> tuple[slice, slice]:
        """Return the calls before and after a place, up to the next place, or up to the next change."""
        others = [one for one in self.places if one != place and (one.changes or not known)]
        first = max((one.last for one in others if one.last <= place.first), default=0)
        last = min((one.first for one in others if one.first >= place.last), default=len(self.calls))
        return slice(first, place.first), slice(place.last, last)

    def test(self, place: _Place) -> levels.Test:
        """Return what differs at a place."""
        return levels.test(self.calls, *self.near(place), self.habits)

    def judged(self) -> Iterator[SeriesStep | FewCalls | ShareChange | Slope]:
        """Yield what is found at changes, at places that nobody announced, and between them."""
        for place in [place for place in self.places if place.changes]:
            yield from self._judge_change(place)
        shifts = [one for place in self.places if not place.changes for one in self._judge_split(place)]
        yield from shifts
        strong = {one.version_after for one in shifts if isinstance(one, SeriesStep) and not one.weak}
        yield from self._growth(sorted(strong))

    def _judge_change(self, place: _Place) -> Iterator[SeriesStep | FewCalls | ShareChange]:
        """Judge a change, or a set of changes."""
        tested = self.test(place)
        sides = self.near(place)
        before, after = (self.calls[rows] for rows in sides)
        # Whatever so few calls cost, chance explains it: that nothing is found does not mean that nothing moved.
        least = levels.MIN_CALLS if levels.can_tell(len(before), len(after)) else levels.MIN_SURE_CALLS
        yield from (self._few(place, rows) for rows in sides if rows.stop - rows.start < least)
        if len(place.changes) > 1:
            yield from self._between(place, before, after, alike=not tested.found)
        alone = self._moves_alone(place) if tested.found else 0.0
        # Where ways end and others begin, which of them became which is not certain.
        turned = {one.before is None for one in tested.found if one.share is not None} == {True, False}
        for one in tested.found:
            doubts = {
                Doubt.SET: len(place.changes) > 1,
                Doubt.FEW: min(len(before), len(after)) < levels.MIN_SURE_CALLS,
                Doubt.CHANCE: one.chance > levels.SURE,
                Doubt.MOVES: alone > 0,
                Doubt.LATE: place.late,
                Doubt.ROUNDING: not self.part.in_octas and one.size <= 1 + levels.ROUNDED,
                Doubt.OPTION: one.share is not None or one.turned or turned,
                Doubt.LEVELS: one.joined,
            }
            if doubts[Doubt.ROUNDING] + doubts[Doubt.CHANCE] + (alone >= one.size / 2) > 1:
                continue  # such as a unit more or less that is also found where nothing changed
            step = self._step(one, place, tuple(doubt for doubt, holds in doubts.items() if holds))
            if place.elsewhere:
                step = replace(step, causes=(), doubts=tuple(doubt for doubt in step.doubts if doubt is not Doubt.LATE))
            yield replace(step, causes=(), weak=True) if doubts[Doubt.ROUNDING] and place.late else step
        if not tested.found:
            yield from self._mix(place, tested)
            if any(one.undecided for one in tested.compared):
                fewest = min(sides, key=lambda rows: rows.stop - rows.start)
                yield replace(self._few(place, fewest), part=self.part.value)

    def _few(self, place: _Place, rows: slice, *, between: bool = False) -> FewCalls:
        changes = tuple(change.ledger_version for change in place.changes)
        paid = self.calls.paid[rows]
        return FewCalls(changes, self.stratum, len(paid), float(paid.mean()) if len(paid) else None, between)

    def _between(
        self, place: _Place, before: levels.Calls, after: levels.Calls, *, alike: bool
    ) -> Iterator[SeriesStep | FewCalls]:
        """Yield the calls between two changes if they cost what none of those beside them does, and as a step."""
        rows = slice(place.first, place.last)
        between, beside = (
            self.calls.values[rows],
            np.concatenate([before.values[-levels.WINDOW :], after.values[: levels.WINDOW]]),
        )
        if not len(between) or min(len(before), len(after)) < levels.MIN_CALLS:
            return
        unit = self.calls.unit
        # Of calls that vary, one may be the dearest by chance; if the others are alike, it is not.
        least = unit if np.ptp(beside) <= unit else np.maximum(levels.GAP_UNITS * unit, levels.GAP * between)
        chosen = np.abs(between[:, None] - beside).min(axis=1) >= least
        odd, paid = between[chosen], self.calls.paid[rows][chosen]
        if not len(odd):
            return
        yield self._few(place, rows, between=True)
        if alike:
            before = before[slice(-levels.WINDOW, None)]
            level, moved = float(before.values.mean()), float(odd.mean())
            around = max(unit, float(np.ptp(odd)))
            ends = level, moved, moved - level - around, moved - level + around
            totals = float(before.paid.mean()), float(paid.mean())
            one = levels.Difference(*ends, len(before), len(odd), 1.0, *totals)
            yield self._step(one, place, (Doubt.SET, Doubt.BETWEEN))

    def _moves_alone(self, place: _Place) -> float:
        """Return the largest difference that the test finds near a change where nothing changed; 0 if none."""
        sizes = []
        for rows in self.near(place, known=True):
            shifts = [one for one in self.places if not one.changes and rows.start < one.first < rows.stop]
            sizes += [self._moves(rows), *(self.test(one).size for one in shifts)]
        return max(sizes)

    def _moves(self, rows: slice) -> float:
        """Return the largest difference that the test finds within calls among which nothing changed; 0 if none."""
        # Nearer to an end, nothing is found.
        first, last = rows.start + levels.MIN_SURE_CALLS, rows.stop - levels.MIN_SURE_CALLS
        places = np.unique(np.linspace(first, last, PLACEBOS).astype(int)).tolist() if first <= last else []
        sides = [(slice(rows.start, at), slice(at, rows.stop)) for at in places]
        return max((levels.test(self.calls, *pair, self.habits).size for pair in sides), default=0.0)

    def _judge_split(self, place: _Place) -> Iterator[SeriesStep | ShareChange]:
        """Judge a place that nobody announced."""
        before, after = self.near(place)
        tested = self.test(place)
        yield from self._mix(place, tested)
        # The place was chosen among all calls, so the chance of a difference is corrected for them.
        tried = after.stop - before.start
        found = [one for one in tested.found if one.chance * tried <= levels.POSSIBLE and one.share is None]
        large = [one for one in found if one.size >= MIN_UNEXPLAINED * min(one.before or 0, one.after or 0)]
        certain = any(one.chance * tried <= levels.SURE for one in large)
        if certain and max(self._moves(rows) for rows in (before, after)) < max(one.size for one in large) / 2:
            # Growth that crosses a whole unit, or noise that does, looks like a shift by one; state does not shrink.
            exact = not any(np.ptp(self.calls.values[rows]) for rows in (before, after))
            for one in large:
                unit = not self.part.in_octas and one.size <= 1 + levels.ROUNDED
                weak = unit and not (exact and one.change < 0)
                yield replace(self._step(one, place), weak=weak)

    def _step(self, one: levels.Difference, place: _Place, doubts: tuple[Doubt, ...] = ()) -> SeriesStep:
        """Return a difference as a step between two calls."""
        return SeriesStep(
            **asdict(one),
            part=self.part,
            stratum=self.stratum,
            version_before=int(self.versions[place.first - 1]),
            version_after=int(self.versions[min(place.last, len(self.calls) - 1)]),
            causes=place.changes,
            doubts=doubts,
        )

    def _mix(self, place: _Place, tested: levels.Test) -> Iterator[ShareChange]:
        for gas, before, after in tested.shares:
            ends = int(self.versions[place.first - 1]), int(self.versions[place.last])
            yield ShareChange(*ends, self.stratum, before, after, gas)

    def _growth(self, shifts: Sequence[int]) -> Iterator[Slope]:
        """Yield the gradual growth between changes and the shifts that growth does not make."""
        known = self._edges(place for place in self.places if place.changes)
        for first, last in pairwise(sorted({*known, *np.searchsorted(self.versions, shifts).tolist()})):
            calls = self.calls[first:last]
            if len(calls) < 2 * levels.MIN_SURE_CALLS:
                continue
            flat = levels.Flat.of(calls, float(calls.places[0]))
            score = float(scipy.special.stdtrit(flat.freedom, 1 - levels.POSSIBLE / 2))
            rates = flat.rates[0] + np.array([0, -score, score]) * np.sqrt(flat.covariance[0, 0])
            grown = float(np.ptp(calls.places))
            if rates[1] * rates[2] <= 0 or abs(rates[0]) * grown < levels.ALIKE:
                continue
            ends = int(self.versions[first]), int(self.versions[last - 1])
            level = float(calls.values.mean()) / (calls.unit if self.part.in_octas else 1)
            rate, low, high = (1_000 * level * rates * grown / max(ends[1] - ends[0], 1)).tolist()
            yield Slope(self.stratum, self.part.value, *ends, rate, low, high, level, len(calls))


def _mix_of_strata(
    observations: Observations, strata: Sequence[Stratum], timeline: Sequence[Change]
) -> Iterator[ShareChange]:
    """Yield the shares of the strata where they change: at changes, and once between two changes."""
    versions = observations.versions
    member = np.full(len(versions), len(strata))  # the small ones are one more together
    for number, stratum in enumerate(strata):
        member[stratum.rows] = number
    known = np.searchsorted(versions, [one.ledger_version for one in timeline]).tolist()
    edges = sorted({0, *known, len(versions)})
    searched = {first + (levels.split(member[first:last]) or 0) for first, last in pairwise(edges)}
    for first, place, last in zip(edges := sorted({*edges, *searched}), edges[1:], edges[2:], strict=False):
        sides = member[max(first, place - levels.WINDOW) : place], member[place : min(last, place + levels.WINDOW)]
        totals = np.array([len(side) for side in sides])
        counts = np.array([np.bincount(side, minlength=len(strata) + 1) for side in sides])
        if min(levels.chance_of_shares(one, two, totals) for one, two in counts.T) * len(strata) <= levels.DESCRIBED:
            for one, pair in zip(strata, (counts / totals[:, None]).T.tolist(), strict=False):
                yield ShareChange(int(versions[place - 1]), int(versions[place]), one.name, *pair)
