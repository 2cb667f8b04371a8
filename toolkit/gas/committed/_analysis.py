"""Steps of a committed series at the changes of a timeline, shifts that no change explains, growth and mix."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from toolkit.gas._observations import Cause, Part
from toolkit.gas.committed import _levels as levels
from toolkit.gas.committed._strata import SLOTS, MixShift, Observations, Stratum, chance_of_counts, mix_shifts
from toolkit.gas.committed._ways import MAX_ABSENT, find_ways

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from toolkit.gas._findings import Change

# Chance of a false step over all comparisons of a function (Holm): a thousand functions without a change report one.
# Bootstrapped 95 % intervals of medians, the usual choice, blame a wrong change for a quarter of their steps.
ALPHA = 0.001
# Smaller steps of noisy levels are ignored: growth that is not quite even makes such differences. Levels without noise
# have no such floor; there one gas unit is a step.
MIN_RELATIVE_STEP = 0.02
# Rounding up to whole units moves the mean of noisy values by 0.05 on each side; a quarter of a unit is clearly more.
MIN_STEP_UNITS = 0.25
# A step of one unit between means, with the quarter of a unit by which they are uncertain.
ONE_UNIT = 1.25
# A step of one unit is believed if borders of whole units are crossed less often than this per observation.
BORDER_RATE = 0.005
# Smaller shifts that no change explains are ignored: places are searched for, and uneven growth offers many.
MIN_RELATIVE_SHIFT = 0.1
# Neighbours that are more alike than this are runs of one kind of call: of 285 shifts among such, 221 are only growth
# that crosses a whole unit.
CORRELATED = 0.3
# A difference of so many standard deviations of single observations is clear however alike neighbours are.
CLEAR = 5.0
# Growth whose single observations differ from the line by a larger share may also come from different arguments.
CLOSE_TO_LINE = 0.05
# Growth by less than this share of a unit does not cross the border of a whole unit.
MAX_FLAT = 0.02
# Chance below which the shares of the strata differ on both sides of a step: a kind of call that the key misses may
# be what moved. It is tried at every step, so the usual 5 % would doubt them all.
CHANGED_MIX = 1e-4
# A gap in which 12 transactions were to be expected (chance e^-12) is a reason for doubt: more than the change may
# have happened in it.
LONG_GAP = 12.0
# Observations of a kind on each side of a change that show the shares of its ways: as many as a level is taken from.
WINDOW_OF_SHARES = 320


@dataclass(frozen=True, slots=True)
class SeriesStep(levels.Levels):
    """A step of one part of one stratum.

    Attributes
    ----------
    part : Part
    stratum : str
        Name of the stratum.
    version_before, version_after : int
        Versions of the observations on both sides of the step. They are next to its causes or, without a cause, next to
        the range of places that explain the observations about as well as the best one.
    causes : tuple of Change
        The change, or all changes that cannot be distinguished; empty if no change explains the step.
    uncertain : tuple of str
        Reasons for caution; empty if there are none.
    weak : bool
        For a step without a cause, whether rounding of gradual growth looks the same.
    """

    part: Part
    stratum: str
    version_before: int
    version_after: int
    causes: tuple[Change, ...] = ()
    uncertain: tuple[str, ...] = ()
    weak: bool = False


@dataclass(frozen=True, slots=True)
class Growth:
    """Growth of one part of one stratum from one observation to another, with no step between them.

    The slope is in gas units, or octas, per 1,000 ledger versions; `low` and `high` are its 95 % confidence
    bounds. `level` is the mean of the observations, and `count` is their number. `with_state` is true if the
    observations follow the line so closely that only growing state explains it.
    """

    part: Part
    stratum: str
    version_first: int
    version_last: int
    per_1000_versions: float
    low: float
    high: float
    level: float
    count: int
    with_state: bool


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
        Slopes, none of which spans a change to the code or the schedule.
    mix : tuple of MixShift
        Places where the shares of the strata change. These are not steps.
    strata : tuple of Stratum
        The strata of the transactions, one for each path through the code.
    not_compared : tuple of (str, Part, Change)
        Stratum, part and change with too few observations next to the change. Strata of fewer than 8 observations are
        not compared at all and not listed.
    """

    steps: tuple[SeriesStep, ...] = ()
    unexplained: tuple[SeriesStep, ...] = ()
    growth: tuple[Growth, ...] = ()
    mix: tuple[MixShift, ...] = ()
    strata: tuple[Stratum, ...] = ()
    not_compared: tuple[tuple[str, Part, Change], ...] = ()


@dataclass(slots=True)
class _Line:
    """One part of the gas of one stratum.

    `groups` holds the changes that can affect the part, with their places; changes with fewer than 8 observations
    between them form one group. `edges` are the places of all changes to the code and the schedule.
    """

    part: Part
    stratum: Stratum
    versions: NDArray[np.int64]
    series: levels.Series
    groups: list[tuple[tuple[int, ...], tuple[Change, ...]]]
    edges: list[int]
    shifts: list[int]
    model: levels.Model


@dataclass(slots=True)
class _Test:
    """A comparison that has yet to be tested for significance."""

    line: _Line
    changes: tuple[Change, ...]
    places: tuple[int, ...]
    found: levels.Difference
    crowded: bool = False
    border: bool = False
    joined: bool = False


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
    strata = find_ways(observations, timeline)
    lines = [line for stratum in strata for line in _lines(observations, stratum, timeline)]
    joins = list(_joins(observations, strata, lines, timeline))
    taken = {(partner.name, change.ledger_version) for test, partner in joins for change in test.changes}
    tests = [test for test, _ in joins]
    missed: list[tuple[str, Part, Change]] = []
    for line in lines:
        for number, (_, there) in enumerate(line.groups):
            test = _test(line, number)
            if test is None:
                missed += [(line.stratum.name, line.part, change) for change in there]
            elif not any((line.stratum.name, change.ledger_version) in taken for change in test.changes):
                tests.append(test)
    accepted = _border_guard(filter(_is_large, _holm(tests)))
    more, shifts = _left_over(lines, accepted)
    accepted += _border_guard(filter(_is_large, more), searched=True)
    # A shift that no growth can make is not weak.
    growth = _largest_growth(lines)
    unexplained = _in_order(replace(one, weak=one.weak and growth * abs(one.before) >= MAX_FLAT) for one in shifts)
    return Analysis(
        steps=_in_order(_steps(accepted, observations.members(strata), len(strata))),
        unexplained=unexplained,
        growth=tuple(growth for line in lines for growth in _growth(line, accepted, unexplained)),
        mix=tuple(mix_shifts(observations, strata, [change.ledger_version for change in timeline])),
        strata=tuple(strata),
        not_compared=tuple(missed),
    )


def _lines(observations: Observations, stratum: Stratum, timeline: Sequence[Change]) -> Iterator[_Line]:
    """Yield a line for each part of the gas that a stratum pays; the lines share versions and clock."""
    rows = stratum.rows
    if len(rows) < levels.MIN_SIDE or stratum.is_other:
        return
    versions, clock = observations.of(observations.versions, rows), observations.clock(rows)
    changed = [change.ledger_version for change in timeline if change.kind is not Cause.CONFIG]
    edges = sorted(set(np.searchsorted(versions, changed).tolist()) - {0, len(rows)})
    sizes = None if observations.payload_bytes is None else observations.payload_bytes[rows]
    if sizes is not None and np.ptp(sizes) == 0:
        sizes = None
    for part, every in observations.parts.items():
        values = observations.of(every, rows)
        if values.any():
            able = [change for change in timeline if part in change.parts]
            width, unit = (0.0, observations.octas_per_unit) if part.in_octas else (1.0, 1.0)
            series = levels.Series(clock, values, sizes, width, unit)
            yield _Line(part, stratum, versions, series, *_fitted(series, versions, able, edges))


def _fitted(
    series: levels.Series, versions: NDArray[np.int64], able: Sequence[Change], edges: list[int]
) -> tuple[list[tuple[tuple[int, ...], tuple[Change, ...]]], list[int], list[int], levels.Model]:
    """Return the groups of changes that can affect a series, the edges, its other shifts, and its model."""
    places = np.searchsorted(versions, [change.ledger_version for change in able]).tolist()
    groups: list[tuple[tuple[int, ...], tuple[Change, ...]]] = []
    for place, change in zip(places, able, strict=True):
        if not 0 < place < len(versions):
            continue
        if groups and place - groups[-1][0][-1] < levels.MIN_SIDE:
            groups[-1] = (*groups[-1][0], place), (*groups[-1][1], change)
        else:
            groups.append(((place,), (change,)))
    cuts = sorted({place for group, _ in groups for place in group})
    model = levels.fit_model(series, cuts)
    segments = itertools.pairwise([0, *cuts, len(versions)])
    shifts = [place for first, last in segments for place in _search(series, model, first, last)]
    if shifts:  # a shift of one unit is a border crossed as well
        model = replace(levels.fit_model(series, [*cuts, *shifts]), rises=model.rises, falls=model.falls)
    return groups, edges, shifts, model


def _search(series: levels.Series, model: levels.Model, first: int, last: int) -> list[int]:
    """Return the places of at most three shifts within a segment, ascending."""
    place = levels.find_shift(series, model, first, last)
    # A level that shifts and comes back shows no single shift, but its halves do.
    cut = (first + last) // 2 if place is None else place
    more = (levels.find_shift(series, model, a, b) for a, b in ((first, cut), (cut, last)))
    return sorted(one for one in (place, *more) if one is not None)


def _test(line: _Line, number: int) -> _Test | None:
    """Compare a line on both sides of a group of changes."""
    places, changes = line.groups[number]
    first = line.groups[number - 1][0][-1] if number else 0
    last = line.groups[number + 1][0][0] if number + 1 < len(line.groups) else len(line.stratum.rows)
    first = max([first, *(shift for shift in line.shifts if shift < places[0])])
    last = min([last, *(shift for shift in line.shifts if shift > places[-1])])
    crowded = len(set(places)) > 1
    found = levels.compare(line.series, line.model, first, places, last)
    if found is None and crowded:
        # Too few observations outside of the group: compare at each place, and take those between as they are.
        alone = [levels.compare(line.series, line.model, first, [place], last) for place in sorted(set(places))]
        usable = [one for one in alone if one is not None]
        found = min(usable, key=lambda one: one.splits[0][1] if len(one.splits) == 1 else 0.0, default=None)
        if found is not None:
            near = [i for i, place in enumerate(places) if found.earliest <= place <= found.latest]
            changes, places = tuple(changes[i] for i in near), tuple(places[i] for i in near)
    return None if found is None or not places else _Test(line, changes, places, found, crowded=crowded)


def _joins(
    observations: Observations, strata: Sequence[Stratum], lines: Sequence[_Line], timeline: Sequence[Change]
) -> Iterator[tuple[_Test, Stratum]]:
    """Yield the steps of strata that end or begin at a change, each with the stratum that replaces it there."""
    for line in lines:
        others = [one for one in strata if one is not line.stratum and _is_of_kind(one, line.stratum)]
        if line.part is not Part.EXECUTION or not others:
            continue
        kind = np.sort(np.concatenate([line.stratum.rows, *(one.rows for one in others)]))
        for ends in (True, False):
            # Seen from its own side: a way that begins is one that ends with time turned round.
            mine, every = (line.stratum.rows, kind) if ends else (-line.stratum.rows[::-1], -kind[::-1])
            edge = int(np.searchsorted(every, mine[-1], side="right"))
            share = len(mine) / (edge - int(np.searchsorted(every, mine[0])))
            if (len(every) - edge) * share < MAX_ABSENT:
                continue
            places = np.searchsorted(observations.versions, [change.ledger_version for change in timeline])
            after = np.searchsorted(every, places if ends else -places, side="left" if ends else "right")
            pairs = zip(timeline, after.tolist(), strict=True)
            near = [change for change, place in pairs if edge <= place and (place - edge) * share <= MAX_ABSENT]
            able = [change for change in near if Part.EXECUTION in change.parts]
            if able:
                sides = every[max(0, edge - WINDOW_OF_SHARES) : edge], every[edge : edge + WINDOW_OF_SHARES]
                if (joined := _joined(observations, line, others, sides, ends=ends)) is not None:
                    found, partner = joined
                    at = len(line.stratum.rows) if ends else 0
                    yield _Test(line, tuple(able), (at,) * len(able), found, joined=True), partner


def _is_of_kind(one: Stratum, two: Stratum) -> bool:
    """Return whether two strata differ only in their path through the code."""
    slots = [[stratum.value(name) for name in SLOTS] for stratum in (one, two)]
    return one.kind == two.kind and slots[0] == slots[1] and not (one.is_other or two.is_other)


def _joined(
    observations: Observations,
    line: _Line,
    others: Sequence[Stratum],
    sides: Sequence[NDArray[np.int64]],
    *,
    ends: bool,
) -> tuple[levels.Difference, Stratum] | None:
    """Return the step from a stratum that ends to the stratum whose share grows there, if one grows by enough."""
    here, there = (np.abs(side) for side in sides)
    counts = [(int(np.isin(here, one.rows).sum()), int(np.isin(there, one.rows).sum())) for one in others]
    gained = [two / len(there) - one / len(here) for one, two in counts]
    best = int(np.argmax(gained))
    mine = int(np.isin(here, line.stratum.rows).sum())
    partner, (before, after) = others[best], counts[best]
    if not mine or not before or not after or gained[best] < mine / len(here) / 2:
        return None
    values = observations.parts[Part.EXECUTION]
    own = values[here[np.isin(here, line.stratum.rows)]]
    one, two = (values[side[np.isin(side, partner.rows)]] for side in (here, there))
    # The partner's level is a mean of its own transactions and the transactions that joined it, weighted by share.
    shift = before / mine * float(two.mean() - one.mean())
    level, start = float(two.mean()) + shift, float(own.mean())
    error = math.sqrt(sum(float(values.var()) / len(values) for values in (own, two)))
    half = max(levels.BOUNDS_95 * error + abs(shift), line.series.width)
    if abs(level - start) <= half:
        return None  # the levels cannot be distinguished, so only the shares have moved
    chance = chance_of_counts(np.array([mine, len(here) - mine]), np.array([0, len(there)]))
    (low, high), counted = ((start, level), (mine, after)) if ends else ((level, start), (after, mine))
    bounds = high - low - half, high - low + half
    found = levels.Difference(
        low, high, *bounds, *counted, chance, error, steady=False, first=0, last=0, splits=(), earliest=0, latest=0
    )
    return found, partner


def _holm(tests: list[_Test]) -> list[_Test]:
    """Return the comparisons that are significant after Holm's correction over all of them."""
    ordered = sorted(tests, key=lambda test: test.found.chance)
    failed = (n for n, test in enumerate(ordered) if test.found.chance > ALPHA / (len(ordered) - n))
    return ordered[: next(failed, len(ordered))]


def _is_large(test: _Test) -> bool:
    """Return whether a difference is large enough to matter."""
    level = 0.0 if test.found.steady else test.found.level
    return abs(test.found.change) >= max(MIN_RELATIVE_STEP * level, MIN_STEP_UNITS * test.line.series.unit)


def _border_guard(large: Iterable[_Test], *, searched: bool = False) -> list[_Test]:
    """Remove one-unit steps that rounding of gradual growth can make, unless strata agree.

    With `searched`, growth need not be seen elsewhere, since a place found by a search may be at a change by chance.
    """
    kept, accepted = [], list(large)
    for test in accepted:
        series, model = test.line.series, test.line.model
        if (searched or test.found.steady) and abs(test.found.change) <= ONE_UNIT * series.width:
            crossings = model.rises if test.found.change > 0 else model.falls
            gap = float(series.clock[test.places[-1]] - series.clock[test.places[0] - 1])
            rate = (1 + crossings) * max(1 / len(series.values), gap / float(np.ptp(series.clock)))
            alike = [one for one in accepted if one.line.part == test.line.part and {*one.changes} & {*test.changes}]
            agree = {one.line.stratum.name for one in alike if one.found.change * test.found.change > 0}
            if len(agree) == 1 and (searched or (crossings and rate >= BORDER_RATE)):
                continue
            test.border = True
        kept.append(test)
    return kept


def _candidates(test: _Test) -> tuple[Change, ...]:
    """Return the changes of a group that the place of the step does not rule out."""
    loss = dict(test.found.splits)
    if not all(place in loss for place in test.places):
        return test.changes  # compared at one of them: the others are as good
    best = min(loss[place] for place in test.places)
    pairs = zip(test.changes, test.places, strict=True)
    return tuple(change for change, place in pairs if loss[place] - best <= levels.TOLD_APART)


def _steps(accepted: list[_Test], member: NDArray[np.int64], count: int) -> list[SeriesStep]:
    sets = [_candidates(test) for test in accepted]
    alone = {causes[0] for causes in sets if len(causes) == 1}
    steps = []
    for test, candidates in zip(accepted, sets, strict=True):
        # Another stratum, or another part, may name one change of the set by itself.
        known = tuple(change for change in candidates if change in alone)
        causes = known if len(known) == 1 else candidates
        found, line = test.found, test.line
        at = [place for place, change in zip(test.places, test.changes, strict=True) if change in causes]
        between = max(at[0] - 1, 0), min(at[-1], len(line.stratum.rows) - 1)
        mixed = not test.joined and _mix_changed(line, found, test.places[-1], member, count)
        doubts = {
            f"it may be any of {len(causes)} changes": len(causes) > 1,
            "another change is fewer than 8 observations away": test.crowded and len(causes) == 1,
            "one side has fewer than 8 observations": min(found.count_before, found.count_after) < levels.MIN_SIDE,
            "rounding can make a change of one gas unit": test.border,
            "neighbouring observations are correlated": _is_alike(line.model, found),
            "another kind of transaction has the same gas on one side; this kind may have stopped instead": test.joined,
            "the mix of transactions changes there too": mixed,
            "other changes may have happened in the gap between transactions": _is_long_gap(line.versions, *between),
        }
        uncertain = tuple(text for text, applies in doubts.items() if applies)
        steps.append(replace(_step(line, found, between), causes=causes, uncertain=uncertain))
    return steps


def _step(line: _Line, found: levels.Difference, between: tuple[int, int]) -> SeriesStep:
    return SeriesStep(
        part=line.part,
        stratum=line.stratum.name,
        version_before=int(line.versions[between[0]]),
        version_after=int(line.versions[between[1]]),
        **{name: getattr(found, name) for name in _LEVELS},
    )


_LEVELS = [entry.name for entry in fields(levels.Levels)]


def _is_alike(model: levels.Model, found: levels.Difference) -> bool:
    """Return whether neighbours are so similar, and the difference so small, that its bounds may be too narrow."""
    noise = model.deviation * found.level
    return model.correlation > CORRELATED and not found.steady and abs(found.change) < CLEAR * noise


def _is_long_gap(versions: NDArray[np.int64], before: int, after: int) -> bool:
    """Return whether the transactions next to a step are unusually far apart, given their density around it."""
    first, last = max(0, before - levels.MIN_SIDE_OF_SHIFT), min(len(versions) - 1, after + levels.MIN_SIDE_OF_SHIFT)
    gap = versions[after] - versions[before]
    usual = (versions[last] - versions[first] - gap) / max(1, last - first - (after - before))
    return bool(gap > LONG_GAP * max(usual, 1))


def _in_order(steps: Iterable[SeriesStep]) -> tuple[SeriesStep, ...]:
    def place(step: SeriesStep) -> tuple[int, int, str]:
        version = step.causes[0].ledger_version if step.causes else step.version_before
        return version, list(Part).index(step.part), step.stratum

    return tuple(sorted(steps, key=place))


def _mix_changed(line: _Line, found: levels.Difference, place: int, member: NDArray[np.int64], count: int) -> bool:
    first, middle, last = (int(line.stratum.rows[row]) for row in (found.first, place, found.last - 1))
    sides = (np.bincount(member[a:b], minlength=count) for a, b in ((first, middle), (middle, last + 1)))
    return chance_of_counts(*sides) < CHANGED_MIX


def _left_over(lines: list[_Line], accepted: list[_Test]) -> tuple[list[_Test], list[SeriesStep]]:
    """Look for shifts between the steps. Shifts at a change are steps as well; no change explains the others."""
    steps: list[_Test] = []
    shifts: list[SeriesStep] = []
    for line in lines:
        used = _places_used(line, accepted)
        for first, last in itertools.pairwise([0, *used, len(line.stratum.rows)]):
            places = _search(line.series, line.model, first, last)
            if not places:
                continue
            model = levels.fit_model(line.series, [*used, *(s for s in line.shifts if not first < s < last), *places])
            edges = [first, *places, last]
            for a, place, b in zip(edges, places, edges[2:], strict=False):
                found = levels.compare(line.series, model, a, [place], b)
                # A place was chosen, so all of them are what the chance is corrected for.
                if found is None or found.chance * len(line.stratum.rows) >= ALPHA:
                    continue
                if abs(found.change) <= levels.BOUNDS_95 * found.error:
                    continue
                pairs = (pair for group in line.groups for pair in zip(*group, strict=False))
                there = [(p, change) for p, change in pairs if found.earliest <= p <= found.latest]
                if there:
                    at, causes = zip(*there, strict=True)
                    steps.append(_Test(line, causes, at, found))
                elif (shift := _shift(line, model, found)) is not None:
                    shifts.append(shift)
    return steps, shifts


def _places_used(line: _Line, accepted: list[_Test]) -> list[int]:
    """Return the places of a line's steps, ascending."""
    return sorted({place for test in accepted if test.line is line and not test.joined for place in test.places})


def _shift(line: _Line, model: levels.Model, found: levels.Difference) -> SeriesStep | None:
    if abs(found.change) < MIN_RELATIVE_SHIFT * max(found.level, line.series.unit):
        return None
    noise = CLEAR * model.deviation * found.level
    if min(found.count_before, found.count_after) < levels.MIN_SIDE_OF_SHIFT and abs(found.change) < noise:
        return None
    doubts = []
    weak = abs(found.change) <= ONE_UNIT * line.series.width
    if weak:
        doubts.append("rounding can make a change of one gas unit")
        weak = found.change > 0 or model.falls > 0  # state grows: what falls by itself is not growth
    if _is_alike(model, found):
        doubts.append("neighbouring observations are correlated")
    return replace(_step(line, found, (found.earliest - 1, found.latest)), uncertain=tuple(doubts), weak=weak)


def _largest_growth(lines: list[_Line]) -> float:
    """Return the largest relative growth of execution, over all observations, that the best line allows."""
    bounds = [math.inf]
    for line in lines:
        model, values = line.model, line.series.values
        if line.part is Part.EXECUTION and len(values) >= 2 * levels.MIN_SIDE_OF_SHIFT:
            rate = abs(model.common_growth) + levels.BOUNDS_95 * model.common_error
            bounds.append(max(float(np.ptp(line.series.clock)) * rate, line.series.width / float(values.max())))
    return min(bounds)


def _growth(line: _Line, accepted: list[_Test], unexplained: Sequence[SeriesStep]) -> list[Growth]:
    """Return the slopes of a line between its steps and shifts, if they differ significantly from zero."""
    mine = [one for one in unexplained if not one.weak and (one.part, one.stratum) == (line.part, line.stratum.name)]
    cuts = {int(np.searchsorted(line.versions, step.version_after)) for step in mine}
    found = []
    cuts |= {*line.edges, *_places_used(line, accepted)}
    for first, last in itertools.pairwise([0, *sorted(cuts), len(line.stratum.rows)]):
        if last - first < levels.MIN_SIDE_OF_SHIFT:
            continue
        series = line.series.rows(slice(first, last))
        model = levels.fit_model(series, [])
        level = float(series.values.mean())
        scale = max(level, series.unit)
        slope, error = model.common_growth * scale, model.common_error * scale
        moved = abs(slope) * float(np.ptp(series.clock))
        if error == 0 or moved < max(MIN_RELATIVE_STEP * level, series.unit / 2):
            continue
        if levels.student_tail(slope / error, model.freedom) < ALPHA:
            ends = int(line.versions[first]), int(line.versions[last - 1])
            bounds = slope - levels.BOUNDS_95 * error, slope + levels.BOUNDS_95 * error
            close = model.deviation <= CLOSE_TO_LINE
            found.append(Growth(line.part, line.stratum.name, *ends, slope, *bounds, level, last - first, close))
    return found
