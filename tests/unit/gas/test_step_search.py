"""Step search: every step that shows is found, with few reads."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from math import ceil, log2
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.client._versions import evenly, next_round, open_pairs
from toolkit.gas.runs._reader import further_versions


def search(outcome, *, first, last, initial=33, limit=2_000):
    """Run a search to its end; return what is known and the reads of each round."""
    known, rounds = {}, []
    while versions := next_round(known, first=first, last=last, initial=initial, limit=limit):
        assert versions == sorted(set(versions))
        assert not known.keys() & set(versions)
        assert all(first <= version <= last for version in versions)
        known |= {version: outcome(version) for version in versions}
        rounds.append(len(versions))
        assert len(rounds) < 200
    return known, rounds


def steps_in(known):
    """Return the pairs of neighbouring reads with different outcomes."""
    return [(a, b) for a, b in pairwise(sorted(known)) if known[a] != known[b]]


@st.composite
def step_functions(draw):
    """Draw a range, a grid, and where the outcome changes to what; levels may return."""
    first = draw(st.integers(0, 2**40))
    last = first + draw(st.integers(1, 200_000))
    breaks = sorted(draw(st.sets(st.integers(first + 1, last), max_size=12)))
    levels = draw(st.lists(st.integers(0, 4), min_size=len(breaks) + 1, max_size=len(breaks) + 1))
    return first, last, draw(st.integers(2, 60)), breaks, levels


def true_steps(breaks, levels):
    """Return the versions at which the outcome really changes."""
    return [at for at, (before, after) in zip(breaks, pairwise(levels), strict=True) if before != after]


@given(step_functions())
def test_every_step_found_is_a_step_and_exact(case):
    """With room enough, each step found lies between adjacent versions and is one of the function's."""
    first, last, initial, breaks, levels = case
    known, _ = search(lambda v: levels[bisect_right(breaks, v)], first=first, last=last, initial=initial, limit=10**6)
    found = steps_in(known)
    assert all(after - before == 1 for before, after in found)
    assert {after for _, after in found} <= set(true_steps(breaks, levels))
    assert open_pairs(known) == []


@given(step_functions())
def test_every_step_that_is_not_hidden_in_a_cell_is_found(case):
    """Steps whose cell of the grid sees different levels only once each are all found, and no others are missed."""
    first, last, initial, breaks, _ = case
    known, _ = search(lambda v: bisect_right(breaks, v), first=first, last=last, initial=initial, limit=10**6)
    assert [after for _, after in steps_in(known)] == breaks


@given(step_functions())
def test_a_step_is_missed_only_where_its_cell_ends_as_it_began(case):
    """Whatever is missed reverts within one cell: the ends of every pair of the first grid agree with what was found."""
    first, last, initial, breaks, levels = case
    known, _ = search(lambda v: levels[bisect_right(breaks, v)], first=first, last=last, initial=initial, limit=10**6)
    found = {after for _, after in steps_in(known)}
    for before, after in pairwise(evenly(first, last, initial)):
        inside = [at for at in true_steps(breaks, levels) if before < at <= after]
        if len(inside) == 1:
            assert inside[0] in found
        elif known[before] != known[after]:
            assert found & set(inside)


@given(step_functions())
def test_requests_are_the_grid_and_a_logarithm_per_step(case):
    """Reads are bounded by grid + steps * ceil(log2(cell)); rounds by one and that logarithm."""
    first, last, initial, breaks, levels = case
    known, rounds = search(
        lambda v: levels[bisect_right(breaks, v)], first=first, last=last, initial=initial, limit=10**6
    )
    grid = list(evenly(first, last, initial))
    depth = ceil(log2(max(b - a for a, b in pairwise(grid))))
    assert len(known) <= len(grid) + len(true_steps(breaks, levels)) * depth
    assert len(rounds) <= 1 + depth


@given(first=st.integers(0, 10**6), span=st.integers(1, 10**6), initial=st.integers(2, 50), room=st.integers(0, 100))
def test_an_oscillating_outcome_is_bounded_by_the_limit(first, span, initial, room):
    """Where every version differs from its neighbour the search ends at its limit, never above it."""
    limit = initial + room
    known, _ = search(lambda v: v, first=first, last=first + span, initial=initial, limit=limit)
    assert len(known) == min(limit, span + 1)


def test_what_the_limit_leaves_open_is_narrow_everywhere():
    """The widest intervals are halved first, so no large one is left beside small ones."""
    known, _ = search(lambda v: v, first=0, last=1_000_000, initial=5, limit=65)
    widths = [after - before for (before, after), _ in open_pairs(known)]
    assert max(widths) <= 2 * min(widths) + 2


def test_a_constant_outcome_costs_the_grid():
    """Nothing differs: the first grid is all there is."""
    known, rounds = search(lambda _: 1, first=0, last=10**9, initial=33)
    assert rounds == [33]
    assert sorted(known) == list(evenly(0, 10**9, 33))


@pytest.mark.parametrize(("first", "last", "reads"), [(5, 5, 1), (5, 6, 2), (0, 32, 33)])
def test_a_short_range_is_read_whole(first, last, reads):
    """Fewer versions than the grid has: each is read once."""
    known, _ = search(lambda v: v % 2, first=first, last=last, initial=33)
    assert len(known) == reads


def test_a_search_that_was_broken_off_goes_on():
    """With part of the grid and more known, only what is missing is asked for, and the end is the same."""
    outcome = lambda v: v >= 777_777  # noqa: E731 - one comparison
    whole, _ = search(outcome, first=0, last=10**6)
    part = dict(list(whole.items())[:20])
    while versions := next_round(part, first=0, last=10**6, initial=33, limit=2_000):
        assert not part.keys() & set(versions)
        part |= {version: outcome(version) for version in versions}
    assert part == whole


def test_pairs_are_open_where_outcomes_differ_and_versions_are_apart():
    """Widest first, each with its middle; adjacent and equal pairs are closed."""
    assert open_pairs({0: "a", 1: "b", 5: "b", 8: "c", 100: "d"}) == [((8, 100), 54), ((5, 8), 6)]
    assert open_pairs({}) == open_pairs({3: 1}) == []


class TestOutages:
    """Reads without an answer tell nothing, and do not end a search."""

    def test_a_silent_middle_is_gone_round(self):
        """The versions beside it are read instead, and the step is found."""
        silent = {500_000, 250_000, 125_000}
        known, _ = search(lambda v: None if v in silent else v >= 333_333, first=0, last=1_000_000, initial=2)
        answered = {version: outcome for version, outcome in known.items() if outcome is not None}
        assert steps_in(answered) == [(333_332, 333_333)]
        assert len(known) <= 2 + 20 + 2 * len(silent)

    @given(st.integers(1, 10**6), st.sets(st.integers(0, 10**6), max_size=7))
    def test_any_few_silent_versions_only_widen_a_step_by_themselves(self, at, silent):
        """The step lies between answered neighbours; if it is not exact, all between them was silent."""
        silent -= {0, 10**6}
        known, _ = search(lambda v: None if v in silent else v >= at, first=0, last=10**6)
        answered = {version: outcome for version, outcome in known.items() if outcome is not None}
        ((before, after),) = steps_in(answered)
        assert before < at <= after
        assert set(range(before + 1, after)) <= silent

    def test_a_node_that_is_out_is_not_asked_for_ever(self):
        """After eight reads without an answer the interval stays as it is."""
        alive = set(evenly(0, 10**6, 33))
        known, _ = search(lambda v: v >= 333_333 if v in alive else None, first=0, last=10**6)
        assert len(known) == 33 + 8
        assert open_pairs(known, alive) == []

    def test_a_grid_that_got_no_answer_is_searched_behind_the_outage(self):
        """Silence in the first grid was a moment's: what lies between is tried later."""
        grid = list(evenly(0, 10**6, 33))
        silent = set(grid[3:30])
        known, _ = search(lambda v: None if v in silent else v >= 333_333, first=0, last=10**6)
        answered = {version: outcome for version, outcome in known.items() if outcome is not None}
        assert steps_in(answered) == [(333_332, 333_333)]


def test_a_million_versions_and_five_steps_cost_few_reads():
    """The bar of the design: at most 250 requests, each step exact."""
    breaks = [3, 250_001, 500_000, 777_777, 999_998]
    known, _ = search(lambda v: bisect_right(breaks, v), first=0, last=999_999)
    assert [after for _, after in steps_in(known)] == breaks
    assert len(known) <= 250


def test_a_long_search_costs_little_besides_its_reads():
    """Each round looks at everything known, so rounds are few however many versions are read."""
    known, rounds = search(lambda v: v, first=0, last=10**9, limit=50_000)
    assert len(known) == 50_000
    assert len(rounds) <= 1 + ceil(log2(10**9 / 32))


def ok(gas):
    return (gas, True, None)


@pytest.mark.parametrize(
    ("outcomes", "room", "versions"),
    [
        pytest.param({0: ok(1), 64: ok(2)}, 6, [32], id="room for six halvings"),
        pytest.param({0: ok(1), 64: ok(2)}, 5, [], id="a narrower interval explains no more"),
        pytest.param({0: ok(1), 64: ok(2), 128: ok(9)}, 6, [96], id="the larger change first"),
        pytest.param({0: ok(1), 64: ok(90), 128: (None, None, "invalid_input")}, 6, [96], id="a failure is largest"),
        pytest.param({0: ok(1), 64: ok(2), 128: ok(9)}, 12, [32, 96], id="both"),
        pytest.param({0: ok(1), 64: ok(9), 68: ok(10)}, 3, [66], id="what fits, if a larger one does not"),
        pytest.param({0: ok(1), 32: ok(5), 64: ok(9), 128: ok(14)}, 6, [16], id="what was begun, of the larger change"),
        pytest.param({5: ok(1), 6: ok(2)}, 400, [], id="located"),
        pytest.param({5: ok(1), 9: ok(1)}, 400, [], id="no step"),
        pytest.param({0: (None, None, "version_pruned"), 64: ok(2)}, 400, [], id="the node's history"),
        pytest.param({0: ok(2), 10**9: (None, None, "version_not_found")}, 400, [], id="above the head"),
        pytest.param({0: ok(1), 4: None, 64: ok(2)}, 6, [34], id="beside a read without an answer"),
    ],
)
def test_steps_of_a_plan_are_halved_if_they_can_be_located(outcomes, room, versions):
    """Further readings are spent where they end at a transaction, on the largest changes first."""
    assert further_versions(outcomes, room) == versions


@pytest.mark.parametrize("seed", range(3))
def test_further_readings_end_at_steps_within_their_limit(seed):
    """A call that moves everywhere: 400 readings locate at least 40 steps, and the one large step among them."""
    large = Random(seed).randrange(10_000)

    def gas(version):
        return ok(version // 3 + 500 * (version >= large))

    known = {version: gas(version) for version in range(0, 10_001, 100)}
    planned = sorted(known)
    while versions := further_versions(known, len(planned) + 400 - len(known)):
        assert not known.keys() & set(versions)
        known |= {version: gas(version) for version in versions}
    assert len(known) - len(planned) <= 400
    located = [
        after for before, after in pairwise(sorted(known)) if after - before == 1 and known[before] != known[after]
    ]
    assert len(located) >= 40
    assert large in located
