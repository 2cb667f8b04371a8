"""Version plans: every form, what is clipped, what is refused."""

from __future__ import annotations

import tracemalloc
from datetime import UTC, date, datetime, timedelta, timezone
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.client.fakes import URL, FakeNode, answer, refused
from toolkit.client._fetch import fetch_views
from toolkit.client._node import Node
from toolkit.client._versions import FindSteps, VersionPlan, as_version, evenly, moment, resolve_versions
from toolkit.errors import InputError
from toolkit.wire import ViewFunction

HEAD = 1_000
MAY, JUNE = datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)


def versions(plan, *, head=HEAD, oldest=0, version_at=None):
    return list(resolve_versions(plan, head=head, oldest=oldest, version_at=version_at).versions)


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        ("100:103", [100, 101, 102, 103]),
        (" 100 : 103 ", [100, 101, 102, 103]),
        ("997:", [997, 998, 999, 1000]),
        (":2", [0, 1, 2]),
        ("-3:", [998, 999, 1000]),
        ("-3:-2", [998, 999]),
        ("998:-1", [998, 999, 1000]),
        ("0:10:4", [0, 4, 8]),
        ("0:-1/3", [0, 500, 1000]),
        ("0:10 / 3", [0, 5, 10]),
        ("5:5", [5]),
        ("5:5/9", [5]),
        ("0:3/9", [0, 1, 2, 3]),
        ("0:9/1", [9]),
        ("7", [7]),
        ("-1", [1000]),
        ("::500", [0, 500, 1000]),
    ],
)
def test_text_plans_include_both_ends(plan, expected):
    """Ranges are labels, as in .loc: both ends belong to them, and -1 is the head."""
    assert versions(plan) == expected


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (7, [7]),
        (-1, [1000]),
        ([3, 1, 3], [3, 1, 3]),
        ((5, -1001), [5, 0]),
        (range(4, 10, 3), [4, 7]),
        (range(-2, 0), [999, 1000]),
        (range(3, 0, -1), [3, 2, 1]),
        ([], []),
        (range(0), []),
        (list(np.array([4, 5], dtype=np.uint64)), [4, 5]),
        (np.int64(9), [9]),
        (pd.Series([1, 2]), [1, 2]),
        (np.arange(0, 10, 4, dtype=np.uint64), [0, 4, 8]),
        ([2**63 - 1], [2**63 - 1]),
    ],
)
def test_listed_versions_keep_order_and_repetition(plan, expected):
    """What the caller lists is read as listed; negative numbers count from the head."""
    found = versions(plan)
    assert found == expected
    assert all(type(version) is int for version in found)


@pytest.mark.parametrize(
    ("plan", "head", "oldest", "expected", "notes"),
    [
        (":", 4, 0, [0, 1, 2, 3, 4], ()),
        ("-1000:", 3, 0, [0, 1, 2, 3], ()),
        ("100:103", 1_000, 100, [100, 101, 102, 103], ()),
        ("98:102", 1_000, 100, [100, 101, 102], ("versions 98 to 99 are pruned; reading from 100",)),
        (
            "998:2000",
            1_000,
            0,
            [998, 999, 1000],
            ("versions 1,001 to 2,000 do not exist yet; reading to 1,000, the latest",),
        ),
        ("0:-1/3", 1_000, 500, [500, 750, 1000], ("versions 0 to 499 are pruned; reading from 500",)),
        ([1, 5_000], 1_000, 100, [1, 5_000], ()),
    ],
)
def test_ranges_are_clipped_with_a_note_and_lists_are_not(plan, head, oldest, expected, notes):
    """A range is that part of it which can be read; a listed version stays, and the node's refusal becomes its row."""
    found = resolve_versions(plan, head=head, oldest=oldest)
    assert (list(found.versions), found.notes) == (expected, notes)


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ("200:100", "runs from 200 down to 100; write the older version first"),
        ("-1:5", "runs from 1,000 down to 5"),
        ("2000:3000", "this node has versions 100 to 1,000"),
        ("2000:", "version 2,000 does not exist yet: this node has versions 100 to 1,000"),
        ("0:50", "this node has versions 100 to 1,000"),
        ("50", "this node has versions 100 to 1,000"),
    ],
)
def test_a_range_that_cannot_be_read_is_refused(plan, words):
    """Backwards and out of reach are refused with the numbers that tell why."""
    with pytest.raises(InputError, match=words):
        resolve_versions(plan, head=HEAD, oldest=100)


@pytest.mark.parametrize("plan", ["20 to 30", "20 - 30"])
def test_two_versions_are_offered_as_a_range(plan):
    """With the sign that a plan has between them."""
    with pytest.raises(InputError, match='did you mean "20:30"'):
        VersionPlan.parse(plan)


@pytest.mark.parametrize(
    "plan", ["", "abc", "1-5", "1:2:3:4", "1:2//3", "1.5:2", "0x10:0x20", "1:2:x", "0:5x", "1..2/3/4", "1e3", "--5:"]
)
def test_text_that_is_no_plan_names_the_forms(plan):
    """A misspelt plan is refused with a list of all forms, or as an invalid date."""
    with pytest.raises(InputError, match=r"the forms are|is no date"):
        resolve_versions(plan, head=HEAD)


@pytest.mark.parametrize(
    ("plan", "head", "words"),
    [
        ("0:10:0", HEAD, "must be 1 or more"),
        ("0:10/0", HEAD, "must be 1 or more"),
        *((plan, HEAD, "the forms are") for plan in (None, 1.5, b"1:2", {"a": 1}, object())),
        ("0:", 10**9, r"1,000,000,001 versions.*use a/n or a step"),
        ("2026-05-01..2026-06-01", HEAD, "times of blocks"),
    ],
)
def test_what_cannot_be_a_plan_is_refused(plan, head, words):
    """Zero as a step or number, other types, more versions than memory is for, and dates without block times."""
    with pytest.raises(InputError, match=words):
        resolve_versions(plan, head=head)


@pytest.mark.parametrize("entry", [True, 1.0, "5", None, -1_002, 2**64])
def test_an_entry_that_is_no_version_is_named(entry):
    """One bad entry of a list is refused by name, with the range that would do."""
    with pytest.raises(InputError, match=r"-1001 to 2\^63 - 1") as caught:
        resolve_versions([1, entry], head=HEAD)
    assert repr(entry) in str(caught.value)


TICK = timedelta(microseconds=1)


def at(times, *, oldest=0):
    """Return the first version at or after a time of a ledger with these times of versions, from `oldest` to HEAD."""

    def version_at(time):
        if oldest and time < times[oldest]:
            return -1
        return next((version for version in sorted(times) if times[version] >= time), HEAD + 1)

    return lambda wanted: [version_at(time) for time in wanted]


@pytest.mark.parametrize(
    ("plan", "times", "expected"),
    [
        pytest.param(
            "2026-05-01..2026-06-01/3",
            {0: MAY - TICK, 100: MAY, 200: JUNE, 201: JUNE + TICK, HEAD: JUNE + timedelta(days=1)},
            [100, 150, 200],
            id="both ends included",
        ),
        pytest.param(
            "2026-05-01..2026-06-01/2",
            {0: MAY, 199: JUNE - TICK, 200: JUNE + timedelta(minutes=28), HEAD: JUNE + timedelta(days=1)},
            [0, 199],
            id="nothing of the last day",
        ),
        pytest.param(
            "2026-05-01..2026-06-01", {5: MAY, 7: JUNE, 8: JUNE + TICK}, [5, 6, 7], id="every version without a count"
        ),
    ],
)
def test_dates_are_resolved_by_the_node(plan, times, expected):
    """A plan by dates reads from the first version at or after its first time to the last at or before its last."""
    assert versions(plan, version_at=at(times)) == expected


def test_a_date_before_the_oldest_version_is_clipped_and_said_so():
    """What is pruned is not replaced in silence by what is there."""
    times = {500: MAY, 600: JUNE, 601: JUNE + TICK}
    plan = resolve_versions("2020-01-01..2026-06-01/2", head=HEAD, oldest=500, version_at=at(times, oldest=500))
    assert list(plan.versions) == [500, 600]
    assert plan.notes == (
        "2020-01-01 00:00:00 UTC is before version 500, the oldest that this node has; reading from it",
    )


def test_a_date_after_the_head_is_clipped_and_said_so():
    """The plan ends at the head; one that ends at the head's own time has no note."""
    version_at = at({0: MAY, HEAD: JUNE})
    plan = resolve_versions("2026-05-01..2030-01-01/2", head=HEAD, version_at=version_at)
    assert list(plan.versions) == [0, HEAD]
    assert plan.notes == (
        "2030-01-01 00:00:00 UTC is after the time of this node's head; reading to the head, version 1,000",
    )
    assert resolve_versions("2026-05-01..2026-06-01/2", head=HEAD, version_at=version_at).notes == ()


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ("2020-01-01..2020-02-01/3", "ends at 2020-02-01 00:00:00 UTC, before version 500, the oldest"),
        ("2030-01-01..2031-01-01", "begins at 2030-01-01 00:00:00 UTC, after this node's head, version 1,000"),
        ("2026-06-01..2026-05-01", "runs backwards.*write the older time first"),
        ("2026-05-02..2026-05-03", "has no ledger version; version 600 is the first after it"),
    ],
)
def test_dates_without_a_version_are_refused(plan, words):
    """Dates that name no readable version are refused with the reason."""
    times = {500: MAY, 600: JUNE, HEAD: JUNE + timedelta(days=1)}
    with pytest.raises(InputError, match=words):
        resolve_versions(plan, head=HEAD, oldest=500, version_at=at(times, oldest=500))


DAYS = {place * 10: MAY + timedelta(hours=6 * place) for place in range(101)}  # ten versions every six hours


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        ("2026-05-01..2026-05-03:1d", [39, 79, 119]),
        (" 2026-05-01 .. 2026-05-01T12:00 : 6h ", [9, 19, 29]),
        ("2026-05-01..2026-05-20:1w", [279, 559, 839]),
        ("2026-05-01T00:00Z..2026-05-01T06:00Z:180min", [9, 19]),
        ("2026-05-01..2026-05-20:1mo", [HEAD]),
        ("2026-03-31..2026-05-10:1mo", [HEAD]),
        ("2026-05-01..2026-05-02:999999w", [HEAD]),
        ("2026-05-01..2026-05-02:999999mo", [HEAD]),
        (pd.period_range("2026-05-01", periods=2, freq="D"), [39, 79]),
        (pd.period_range("2026-05-01", periods=2, freq="6h")[::-1], [19, 9]),
        (pd.period_range("2026-04", "2026-05", freq="M"), [HEAD]),
        (["2026-05-02", " 2026-05-01T06:00+02:00", "2026-05-01T13:00Z"], [49, 9, 29]),
        (pd.Series(["2026-05-02", "2026-05-03"]), [49, 89]),
        ([MAY + timedelta(hours=7), date(2026, 5, 2)], [19, 49]),
        (pd.DatetimeIndex(["2026-05-01", "2026-05-01 05:00", "2026-05-01 13:00"]), [9, 29]),
    ],
)
def test_periods_and_times_are_read_at_their_last_version(plan, expected):
    """Each version once: the last one of each day, hour or week, or at or before each time."""
    assert versions(plan, version_at=at(DAYS)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-05-02", [49]),
        (" 2026-05-02T13:00Z ", [69]),
        ("2026-05-02 07:00", [59]),
        ("2026-05-02, 1,000, -1", [49, 1000, HEAD]),
        ("100, 2026-05-02, 2026-05-03", [100, 49, 89]),
        ("2026-05-02,2026-05-03", [49, 89]),
        ("2026-05-02,300", [49, 300]),
        ("[2026-05-02, 7]", [49, 7]),
        (["2026-05-02", 7], [49, 7]),
        (date(2026, 5, 2), [49]),
    ],
)
def test_a_time_alone_is_its_last_version_also_among_versions(text, expected):
    """As in a list of times: the state then. The rows have times."""
    plan = resolve_versions(text, head=HEAD, version_at=at(DAYS))
    assert plan.versions == expected
    assert plan.by_time


@pytest.mark.parametrize("text", ["2020-01-01, 50", "2030-01-01, 50", "2030-01-01", "2026-02-30, 50", "2026-05-02/5"])
def test_a_time_that_has_no_version_is_refused(text):
    """It is before the oldest version, after the head, or not a time."""
    version_at = at({version: time for version, time in DAYS.items() if version >= 40}, oldest=40)
    with pytest.raises(InputError):
        resolve_versions(text, head=HEAD, oldest=40, version_at=version_at)


def test_months_are_those_of_the_calendar():
    """A month begins on the day of the first, or on its last day if it is shorter."""
    plan = VersionPlan.parse("2026-01-31..2026-04-30:1mo")
    assert [f"{end:%m-%d}" for end in plan.ends_of_periods(plan.first, plan.last)] == [
        "02-28",
        "03-31",
        "04-30",
        "05-31",
    ]
    plan = VersionPlan.parse("2025-11-15..2026-06-01:3mo")
    ends = plan.ends_of_periods(plan.first, plan.last)
    assert [f"{end:%Y-%m-%d}" for end in ends] == ["2026-02-15", "2026-05-15", "2026-08-15"]


@pytest.mark.parametrize(
    "times",
    [
        pd.date_range("2026-05-01", "2026-05-04", tz="UTC"),
        pd.date_range("2026-05-01", periods=6, freq="12h"),
        pd.date_range("2026-04-30", "2026-05-31", freq="ME", tz="Asia/Tokyo"),
        pd.date_range("2026-03-27", "2026-03-31", tz="Europe/Berlin"),  # the clocks change on the 29th
    ],
)
def test_a_datetime_index_is_the_times_that_it_contains(times):
    """For every frequency, also if pandas dropped it, and in any order."""
    begin = datetime(2026, 3, 27, tzinfo=UTC) - timedelta(days=1)
    version_at = at({place * 10: begin + timedelta(hours=6 * place) for place in range(301)})
    expected = [version_at([moment(time) + timedelta(microseconds=1)])[0] - 1 for time in times]
    for index in (times, times[list(range(len(times)))], times.rename("when"), list(times)):
        assert versions(index, head=3_000, version_at=version_at) == expected
    assert versions(times[::-1], head=3_000, version_at=version_at) == expected[::-1]
    assert versions(times[1:], head=3_000, version_at=version_at) == expected[1:]


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        ("2026-05-20..", (760, HEAD)),
        ("..2026-05-20", (0, 769)),
        (" .. 2026-05-01 ", (0, 9)),
        ("2026-05-20../3", (760, HEAD)),
    ],
)
def test_one_end_may_be_left_out(plan, expected):
    """It is the oldest version, or the head."""
    found = versions(plan, version_at=at(DAYS))
    assert (found[0], found[-1]) == expected
    assert len(found) == 3 if "/3" in plan else len(found) == expected[1] - expected[0] + 1


@pytest.mark.parametrize(
    "plan", ["..", "2026-05-01..:1d", "..2026-05-01:1mo", "....", ":1mo", "2026-05-01...2026-05-02"]
)
def test_periods_without_two_ends_are_refused(plan):
    """As is a plan without ends."""
    with pytest.raises(InputError):
        VersionPlan.parse(plan)


def test_periods_without_a_version_are_noted():
    """Before the oldest version, and without a version of their own; all of them before it is an error."""
    version_at = at({version: time for version, time in DAYS.items() if version >= 40}, oldest=40)
    plan = resolve_versions("2026-04-30..2026-05-02T06:00:6h", head=HEAD, oldest=40, version_at=version_at)
    assert list(plan.versions) == [49, 59]
    assert plan.notes == ("8 of 10 times are before version 40, the oldest that this node has",)
    plan = resolve_versions("2026-05-02..2026-05-02T06:00:3h", head=HEAD, version_at=at(DAYS))
    assert list(plan.versions) == [49, 59]
    assert plan.notes == ("no row for 1 of 3 times, because another time has the same version",)
    for text, words in [
        ("2026-04-01..2026-04-02:1d", "before version 40, the oldest"),
        ("2026-05-02..2026-05-01:1d", "runs backwards"),
        ("2026-05-01..2026-05-02:0d", "expected periods of 1 or more min, h, d, w, mo"),
        ("2026-05-01..2026-05-02:1month", "expected periods of 1 or more min, h, d, w"),
        ("2030-01-01..2030-02-02:1d", "2030-01-01 00:00:00 UTC is after this node's head"),
        ("2020-01-01..2026-05-02:1min", "more than 100,000 periods"),
    ]:
        with pytest.raises(InputError, match=words):
            resolve_versions(text, head=HEAD, oldest=40, version_at=version_at)


def test_dates_take_times_and_offsets():
    """Times of day, offsets and fractions of seconds are ISO 8601."""
    plan = VersionPlan.parse("2026-05-01T12:30:00.5+02:00 .. 2026-06-01T00:00Z")
    assert plan.first == datetime(2026, 5, 1, 10, 30, 0, 500_000, tzinfo=UTC)
    assert plan.last == JUNE


def test_moments_without_offset_are_utc():
    """A naive time is UTC; an aware one keeps its offset."""
    east = timezone(timedelta(hours=2))
    assert moment("2026-05-01") == MAY
    assert moment(datetime(2026, 5, 1)) == MAY  # noqa: DTZ001 - the naive form is the point
    assert moment(datetime(2026, 5, 1, 2, tzinfo=east)) == MAY
    assert moment(date(2026, 5, 1)) == MAY


@pytest.mark.parametrize("time", [None, 5, pd.NaT, np.datetime64("2026-05-01"), ["2026-05-01"]])
def test_what_is_no_time_is_refused(time):
    """Other types are refused with what would do."""
    with pytest.raises(InputError, match="ISO 8601"):
        moment(time)


def test_a_range_of_dates_with_the_mark_of_a_range_of_versions():
    """The message has what was meant, which can be read."""
    with pytest.raises(InputError, match="did you mean") as refused:
        VersionPlan.parse("2026-01-01:2026-06-01/10")
    meant = str(refused.value).split('"')[1]
    assert VersionPlan.parse(meant).count == 10


@pytest.mark.parametrize("value", [5, np.int64(5), np.uint64(5), pd.Series([5])[0]])
def test_a_version_may_be_any_integer(value):
    """Integers as frames hand them out count as versions, and become int."""
    assert as_version(value) == 5
    assert type(as_version(value)) is int


@pytest.mark.parametrize("value", ["5", None, 1.5, True, -1, 2**63, np.array([5]), np.float64(5), pd.NA])
def test_what_is_no_version_is_refused(value):
    """Anything but a whole number from 0 on is refused by name."""
    with pytest.raises(InputError, match=r"\b0 to 2\^63 - 1"):
        as_version(value)


@given(first=st.integers(0, 2**64 - 1), span=st.integers(0, 10**12), count=st.integers(2, 300))
def test_evenly_spaced_versions_include_both_ends_and_grow(first, span, count):
    """n evenly spaced versions: both ends, strictly increasing, n of them or all there are, gaps differ by at most 1."""
    last = first + span
    found = list(evenly(first, last, count))
    assert found[0] == first
    assert found[-1] == last
    assert all(before < after for before, after in pairwise(found))
    assert len(found) == min(count, span + 1)
    gaps = {after - before for before, after in pairwise(found)}
    assert not gaps or max(gaps) - min(gaps) <= 1


@given(
    first=st.integers(-1_500, 1_500),
    last=st.integers(-1_500, 1_500),
    step=st.integers(1, 700),
    oldest=st.integers(0, HEAD),
)
def test_a_resolved_range_is_readable_and_grows(first, last, step, oldest):
    """Whatever the bounds, a plan is refused or gives growing versions this node holds, with a note where it clipped."""
    try:
        plan = resolve_versions(f"{first}:{last}:{step}", head=HEAD, oldest=oldest)
    except InputError:
        return
    found = list(plan.versions)
    assert found == sorted(set(found))
    assert found
    assert oldest <= found[0] <= found[-1] <= HEAD
    absolute = first if first >= 0 else max(0, HEAD + 1 + first)
    assert (absolute < oldest) == any("pruned" in note for note in plan.notes)


@pytest.mark.parametrize(
    ("plan", "options", "words"),
    [
        ("0:-1/200", {}, "plain range"),
        ("0:-1:5", {}, "plain range"),
        *(("0:-1", {"initial": initial, "max_requests": most}, "2 <= initial <= max_requests")
          for initial, most in ((1, 10), (11, 10), (0, 0), (-3, 5))),
        (5, {}, "expected a range as a str, and two ints"),
        ("0:9", {"initial": "3"}, "expected a range as a str, and two ints"),
    ],
)  # fmt: skip
def test_a_search_that_cannot_be_is_refused(plan, options, words):
    """It has no step and no count of its own, and its first grid has two versions at least and fits the limit."""
    assert FindSteps("0:-1").initial == 33
    with pytest.raises(InputError, match=words):
        FindSteps(plan, **options)


def test_a_plan_of_too_many_versions_is_refused_before_it_is_made(monkeypatch):
    """The size of a plan is checked before its versions are spelled out."""
    monkeypatch.setattr("toolkit.client._versions._MAX_VERSIONS", 1_000)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="200,000 versions"):
            resolve_versions("0:1000000000/200000", head=10**9)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000


def test_a_plan_in_the_future_is_not_read_as_the_head():
    """Dates that lie after the head are refused, not read as the head."""
    fake = FakeNode({"POST /view": answer(["1"]), "GET /accounts/0x1/module/m": refused(403, "api_disabled")})
    node = Node(URL, transport=fake)
    with pytest.raises(InputError):
        fetch_views(node, ViewFunction("0x1::m::f"), versions="2099-01-01..2099-02-01", progress=False)


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("1,000, 4,000", [1000, 4000]),
        ("1000, 4000, 1000", [1000, 4000]),
        ("4 000", [4000]),
        ("100,200", [100_200]),
        ("1,000:1_003", [1000, 1001, 1002, 1003]),
        ("[5, -1]", [5, 999_999]),
        ("1000,4000,-1", [1000, 4000, 999_999]),
    ],
)
def test_a_comma_in_a_number_is_a_thousands_mark_and_one_with_a_space_separates(text, versions):
    """The same text means the same versions in Python, on the command line and in a form; none is read twice."""
    assert list(resolve_versions(text, head=999_999).versions) == versions


@pytest.mark.parametrize("text", ["100,200,300", "100,200,3000", "900,1000", "100,20"])
def test_versions_that_may_be_one_or_several_are_refused(text):
    """The message has the text with spaces, to be copied."""
    with pytest.raises(InputError, match=text.replace(",", ", ")):
        resolve_versions(text, head=10**9)


@pytest.mark.parametrize("text", ["1,0000", "1, 0000", "1,000,4,000", "0000", "0010:20"])
def test_zeros_before_a_number_are_a_slip(text):
    """None is read as another number, and no list with such a number is offered."""
    with pytest.raises(InputError) as refused:
        resolve_versions(text, head=10**9)
    assert "for several versions" not in str(refused.value)


def test_a_plan_that_is_not_understood_is_quoted_as_typed():
    """With its thousands marks, which were removed to read it; the list is one of the forms, which `reason` has not."""
    with pytest.raises(InputError, match=r"'1,000 4,000' is not understood.*100, 200, 300") as refused:
        VersionPlan.parse("1,000 4,000")
    assert refused.value.reason == "'1,000 4,000' is not understood"


def test_a_list_is_not_offered_where_a_range_is_expected():
    """The forms of a plan have the list, which calls and searches do not take."""
    with pytest.raises(InputError, match="expected a range"):
        VersionPlan.parse("100, 200")


@pytest.mark.parametrize("plan", ["0:99999999999999999999", "0:99999999999999999999/3"])
def test_a_range_of_more_versions_than_a_machine_counts_is_refused_or_thinned(plan):
    """The number of versions is exact for all that 20 digits can write."""
    if plan.endswith("/3"):
        assert list(resolve_versions(plan, head=10**20).versions)[-1] == 10**20 - 1
        return
    with pytest.raises(InputError, match="100,000,000,000,000,000,000 versions"):
        resolve_versions(plan, head=10**20)


@pytest.mark.parametrize(
    "text",
    [
        *("text", "0..-1", "100-200", "0 to 100/20", "0:head", "Latest", "all"),
        *(f"2026-05-01:{end}" for end in ("2026-06-01/200", "2026-13-01", "2026-06-01:1000", "2026-06-01:0d")),
    ],
)
def test_a_plan_as_it_is_written_elsewhere_is_refused(text):
    """The forms of other tools are not guessed at."""
    with pytest.raises(InputError):
        VersionPlan.parse(text)


@pytest.mark.parametrize(
    ("text", "date"), [("2026-05-01..2026-06-31", "2026-06-31"), ("2026-02-01..2026-03-01:1000", "2026-03-01:1000")]
)
def test_a_date_that_is_none_is_named(text, date):
    """The 31st of June; and a step in versions is not read as the time of a day."""
    with pytest.raises(InputError, match=f"'{date}'.*ISO 8601"):
        VersionPlan.parse(text)


@pytest.mark.parametrize("text", ["2026-05-01T00:00:00Z..2026-06-01T00:00:00Z", "2026-05-01..2026-06-01", " 1 : 2 "])
def test_a_plan_that_can_be_parsed_is_not_questioned(text):
    """Upper case and spaces are part of the forms."""
    VersionPlan.parse(text)
