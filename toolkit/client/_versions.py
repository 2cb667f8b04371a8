"""Version plans: a short notation for the ledger versions to read. This module sends no requests.

A step search treats the outcome of a call as a step function of the version. It reads an even grid of versions, then
bisects between all neighbours whose outcomes differ, one round of reads after another, until they are adjacent or the
request limit is reached. A change that is reverted between two versions of the grid is not found.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NoReturn

from toolkit._present.text import utc
from toolkit.errors import InputError, SchemaError

if TYPE_CHECKING:
    from toolkit.wire import BlockInfo, LedgerState


_NUMBER = r"-?(?!0\d)\d{1,20}"  # 1,0000 is a slip, not the versions 1 and 0
_DAY = r"\d{4}-\d{2}-\d{2}"
_PLAN = re.compile(rf"\s*(?P<a>{_NUMBER})?\s*:\s*(?P<b>{_NUMBER})?\s*(?:(?P<kind>[:/])\s*(?P<n>\d{{1,20}})\s*)?")
_DATES = re.compile(
    r"\s*(?P<a>[^./][^/]*?)?\s*\.\.\s*(?P<b>[^/:.][^/]*?)?\s*"
    r"(?:/\s*(?P<n>\d{1,20})\s*|:\s*(?P<every>\d{1,6})\s*(?P<unit>(?![Zz]\b)[A-Za-z]+)\s*)?"
)
_PERIODS = {"min": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_MONTH = "mo"
_LAST_TIME = datetime.max.replace(tzinfo=UTC)
# `datetime.fromisoformat` takes any character before the time, so that a step would be read as one: 2026-05-01:1000.
_NO_TIME = re.compile(rf"{_DAY}[^T\s].*", re.IGNORECASE | re.DOTALL)
_TEXT_FORMS = (
    '"100:200", "-1000:", "0:-1/50" for 50 of all, "0:-1:100" for every 100th, "100, 200, 300", "2026-05-01" for '
    'the state then, "2026-05-01..2026-06-01/20", "2026-05-01..2026-06-01:1d"'
)
_FORMS = f"{_TEXT_FORMS}, one number, a list, a range, or times; -1 is the head"
# Digits in groups of three. A comma with a space after it separates versions; without one, it is a thousands mark, or
# separates them if neither number could be the start of a longer one.
_GROUPED = re.compile(r"(?<![\d,])(?<!\d-)\d{1,3}([, \u00a0\u202f])\d{3}(?:\1\d{3})*(?!,?\d)")
_COMMA, _MANY_GROUPS = re.compile(r"(?<!\d)(?<!\d-)\d{1,3},\d"), re.compile(r"\d{1,3}(?:,\d{3}){2,}")
_TIME = rf"{_DAY}(?:(?!\.\.)[^,\]])*"
_ENTRY = rf"(?:{_TIME}|{_NUMBER})"
_LISTED = re.compile(rf"\s*\[?\s*(?:{_ENTRY}(?:\s*,\s*{_ENTRY})+|{_TIME})\s*,?\s*\]?\s*")
_MAX_VERSION = 2**63 - 1  # of the columns of versions
_MAX_VERSIONS = 50_000_000  # a mistyped plan fails at once instead of filling the memory
_MAX_TIMES = 100_000  # each is found by bisection
# Number of reads without an answer between two versions after which the interval is not halved further.
_MAX_UNANSWERED = 8
# Ledger times are whole microseconds.
_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class FindSteps:
    """Find the steps in gas within a range of versions without reading all of them.

    An even grid of versions is read first. Wherever two neighbouring versions have different outcomes (gas, success or
    error code), the search bisects down to adjacent versions; each round reads all pairs at once. A change that is
    reverted between two neighbours of the first grid is missed; a finer grid finds more. If the read of a version gets
    no response, a neighbouring version is read instead. A step that cannot be resolved to adjacent versions is reported
    as an interval.

    Parameters
    ----------
    versions : str
        A range, ``"a:b"``.
    initial : int, default 33
        Number of versions in the first grid.
    max_requests : int, default 2000
        Maximum number of requests per call.

    Raises
    ------
    InputError
        If `versions` is not a plain range, or 2 <= `initial` <= `max_requests` does not hold.

    Examples
    --------
    >>> import toolkit
    >>> toolkit.FindSteps("0:-1", initial=9)
    FindSteps(versions='0:-1', initial=9, max_requests=2000)
    """

    versions: str
    initial: int = 33
    max_requests: int = 2000

    def __post_init__(self) -> None:
        given: tuple[object, ...] = (self.versions, self.initial, self.max_requests)
        if [type(value) for value in given] != [str, int, int]:
            got = f"{self.versions!r}, initial={self.initial!r}, max_requests={self.max_requests!r}"
            raise InputError(f"FindSteps: expected a range as a str, and two ints, got {got}")
        plan = VersionPlan.parse(self.versions)
        if not plan.is_range:
            raise InputError(f"FindSteps takes a plain range such as '0:-1', got {self.versions!r:.80}")
        if not 2 <= self.initial <= self.max_requests:  # noqa: PLR2004 - two ends make a range
            got = f"initial={self.initial}, max_requests={self.max_requests}"
            raise InputError(f"FindSteps: expected 2 <= initial <= max_requests, got {got}")


# The versions that the fetch functions accept; `numpy` and `pandas` integers count as int, a DatetimeIndex as times, a
# PeriodIndex as periods.
Versions = str | int | Sequence[int] | Sequence[datetime] | Sequence[int | datetime] | Sequence[str]
# Returns the first version at or after each of some times: -1 before the oldest version, head + 1 after the head.
VersionsAt = Callable[[Sequence[datetime]], list[int]]


@dataclass(frozen=True, slots=True)
class VersionPlan:
    """A range of versions that has not been resolved for a node yet.

    Attributes
    ----------
    first, last : int or datetime
        Both included. Negative numbers count from the head: -1 is the head.
    step : int
        Distance between successive versions.
    count : int or None
        Number of evenly spaced versions, used instead of `step`.
    every : timedelta or None
        Length of the periods between two times, used instead of `step`: the last version of each period is read. The
        first period begins at the first time; the last one begins at or before the last time.
    months : int
        The same in calendar months; 0 for other plans.
    """

    first: int | datetime
    last: int | datetime
    step: int = 1
    count: int | None = None
    every: timedelta | None = None
    months: int = 0

    @classmethod
    def parse(cls, text: str) -> VersionPlan:
        """Parse the text form of a plan.

        Raises
        ------
        InputError
            If `text` has none of the forms; the message lists them.
        """
        first: int | datetime
        last: int | datetime
        typed, text = text, plain_versions(text)
        if re.fullmatch(rf"\s*{_NUMBER}\s*", text):
            return cls(int(text), int(text))
        if match := _PLAN.fullmatch(text):
            first, last = int(match["a"] or 0), int(match["b"] or -1)
        else:
            match = _DATES.fullmatch(text)
            if not match or not (match["a"] or match["b"]):
                if listed_versions(text):  # raises if one of them is not a date
                    said = "expected a range, such as 0:-1 or 2026-05-01..2026-06-01, not versions one by one"
                    raise InputError(f"version plan {typed!r:.80}: {said}")
                between = re.fullmatch(r"\s*(-?\d+)\s*(?:to|\s-\s)\s*(-?\d+)\s*", text)
                meant = f'; did you mean "{between[1]}:{between[2]}"?' if between else ""
                reason = f"{typed!r:.80} is not understood{meant}"
                error = InputError(f"version plan {reason}; the forms are {_TEXT_FORMS}; -1 is the head")
                error.reason = reason
                raise error
            if match["every"] is not None:
                return cls._with_periods(text, match)
            first = moment(match["a"]) if match["a"] else 0
            last = moment(match["b"]) if match["b"] else -1
        if match["n"] is None:
            return cls(first, last)
        number = int(match["n"])
        if number < 1:
            raise InputError(f"version plan {text!r:.80}: step and number of versions must be 1 or more")
        if match.groupdict().get("kind") == ":":
            return cls(first, last, step=number)
        return cls(first, last, count=number)

    @classmethod
    def _with_periods(cls, text: str, match: re.Match[str]) -> VersionPlan:
        """Return a plan with periods, from the match of its text."""
        if not (match["a"] and match["b"]):
            raise InputError(f"version plan {text!r:.80}: periods require two dates, a first and a last one")
        first, last = moment(match["a"]), moment(match["b"])
        length, unit = int(match["every"]), match["unit"]
        if length >= 1 and unit == _MONTH:
            return cls(first, last, months=length)
        if length >= 1 and unit in _PERIODS:
            return cls(first, last, every=length * _PERIODS[unit])
        units = ", ".join([*_PERIODS, _MONTH])
        raise InputError(f"version plan {text!r:.80}: expected periods of 1 or more {units}, such as 1d")

    @property
    def is_range(self) -> bool:
        """Whether the plan has only a first and a last version, which select all versions between them."""
        return self == VersionPlan(self.first, self.last)

    def ends_of_periods(self, first: datetime, last: datetime) -> list[datetime]:
        """Return the end of each period of a plan with periods, given its first and last time."""
        ends: list[datetime] = []
        begin = first
        while begin <= last:
            if len(ends) == _MAX_TIMES:
                raise InputError(f"the version plan has more than {_MAX_TIMES:,} periods; use longer periods")
            begin = self._moved(first, len(ends) + 1)
            ends.append(begin)
        return ends

    def _moved(self, first: datetime, count: int) -> datetime:
        """Return the time of the period number `count`, of which the first begins at `first`."""
        months = 12 * first.year + first.month - 1 + count * self.months
        try:
            if self.every is not None:
                return first + count * self.every
            year, month = months // 12, months % 12 + 1
            return first.replace(year=year, month=month, day=min(first.day, monthrange(year, month)[1]))
        except (OverflowError, ValueError):  # after the year 9999
            return _LAST_TIME


@dataclass(frozen=True, slots=True)
class ResolvedPlan:
    """The versions of a plan for one node, in the order in which they are read.

    Attributes
    ----------
    versions : sequence of int
    notes : tuple of str
        What was clipped, as sentences for a warning.
    by_time : bool
        Whether the plan has times instead of ledger versions.
    """

    versions: Sequence[int]
    notes: tuple[str, ...] = ()
    by_time: bool = False


def _no_times(_: Sequence[datetime]) -> NoReturn:
    raise InputError("a plan by date requires a node, which knows the times of blocks; write ledger versions instead")


def resolve_versions(
    plan: Versions | VersionPlan,
    *,
    head: int,
    oldest: int = 0,
    version_at: VersionsAt = _no_times,
    claimed: int | None = None,
) -> ResolvedPlan:
    """Return the versions of a plan for one node.

    Parameters
    ----------
    plan : str, int, sequence of int, datetime, date text or Period, or VersionPlan
    head, oldest : int
        The node's newest and oldest readable version.
    version_at : callable, optional
        Returns the first version at or after each of some times; -1 for a time before the oldest version, head + 1 for
        one after the head. Required by plans with dates.
    claimed : int, optional
        The oldest version that the node reports, if `oldest` comes from a probe.

    Returns
    -------
    ResolvedPlan
        A range is clipped to the readable versions, and the notes say so. Individually listed versions are not clipped.
        A plan with dates has the versions from its first time to its last, both included; a plan with periods has the
        last version of each period, without duplicates. A time alone, or listed, stands for the last version at or
        before it; a listed period, such as those of a PeriodIndex, for its last version.

    Raises
    ------
    InputError
        If the plan cannot be parsed, runs backwards, or has no readable version.
    """
    if isinstance(plan, str | date):
        plan = listed_versions(str(plan)) or VersionPlan.parse(str(plan))
    if isinstance(plan, Iterator):  # which can be read once only
        plan = list(plan)
    if (periods := _periods(plan)) is not None:
        return _at_ends(*periods, head, oldest, version_at)
    if not isinstance(plan, VersionPlan):
        return _listed(plan, head, oldest, version_at)
    notes: list[str] = []
    first = _first(plan.first, head, oldest, version_at, notes)
    last = _last(plan.last, head, oldest, version_at, notes)
    if first > last and first <= head:
        raise InputError(_backwards(plan, first, last))
    if last < oldest or first > head:
        raise InputError(out_of_reach(first, max(first, last), oldest=oldest, head=head))
    if first < oldest:
        why = "are pruned" if claimed in {None, oldest} else "are below the oldest version that a probe could read"
        notes.append(f"versions {first:,} to {oldest - 1:,} {why}; reading from {oldest:,}")
        first = oldest
    if last > head:
        missing = f"versions {head + 1:,} to {last:,} do" if last > head + 1 else f"version {last:,} does"
        notes.append(f"{missing} not exist yet; reading to {head:,}, the latest")
        last = head
    stepped = range(first, last + 1, plan.step)
    size = 1 + (last - first) // plan.step  # len() overflows for what 20 digits can write
    size = size if plan.count is None else min(plan.count, size)
    if size > _MAX_VERSIONS:
        raise InputError(f"the plan has {size:,} versions, more than {_MAX_VERSIONS:,}; use a/n or a step")
    by_time = isinstance(plan.first, datetime) or isinstance(plan.last, datetime)
    return ResolvedPlan(stepped if plan.count is None else evenly(first, last, plan.count), tuple(notes), by_time)


def without_marks(text: str) -> str:
    """Return a text without the thousands marks of its numbers: commas, underscores or spaces.

    >>> without_marks("1,000, 4 000 and 100,20")
    '1000, 4000 and 100,20'
    """
    return _GROUPED.sub(lambda found: re.sub(r"\D", "", found[0]), re.sub(r"(?<=\d)_(?=\d)", "", text))


def plain_versions(text: str) -> str:
    """Return the text of versions without thousands marks.

    Raises
    ------
    InputError
        If it may be one version or a list, such as ``100,200,300``, or a comma without a space may be a misplaced mark.
    """
    plain = without_marks(text)
    if _MANY_GROUPS.fullmatch(text.strip()) or _COMMA.search(plain):
        several = re.sub(r",\s*", ", ", text.strip())
        meant = f"{several:.80} for several versions, or " if _LISTED.fullmatch(several) else ""
        raise InputError(f"versions {text!r:.80} are ambiguous: write {meant}digits without commas")
    return plain


def listed_versions(text: str) -> list[int | datetime] | None:
    """Return the versions and times that a text lists, each once; None if it is neither a list nor a time.

    Raises
    ------
    InputError
        If what begins as a date is none.

    Examples
    --------
    >>> listed_versions("1,000, 4,000")
    [1000, 4000]
    """
    text = plain_versions(text)
    entries = re.findall(_ENTRY, text) if _LISTED.fullmatch(text) else None
    return entries and list(dict.fromkeys(moment(one) if _is_date_text(one) else int(one) for one in entries))


def out_of_reach(first: int, last: int, *, oldest: int, head: int) -> str:
    """Return why none of the versions from first to last can be read."""
    one = first == last
    why = f"{'has' if one else 'have'} been pruned" if last < oldest else f"{'does' if one else 'do'} not exist yet"
    what = f"version {first:,}" if one else f"versions {first:,} to {last:,}"
    return f"{what} {why}: this node has versions {oldest:,} to {head:,}"


def _periods(plan: Any) -> tuple[datetime, list[datetime]] | None:
    """Return the first time and the end of each period of a plan; None for a plan without times or periods."""
    if isinstance(plan, VersionPlan):
        if plan.every is None and not plan.months:
            return None
        first, last = plan.first, plan.last
        if not isinstance(first, datetime) or not isinstance(last, datetime) or first > last:
            raise InputError(_backwards(plan, 0, 0))
        return first, plan.ends_of_periods(first, last)
    if isinstance(plan, int | range | str | bytes | dict) or not hasattr(plan, "__iter__"):
        return None
    times = list(plan)
    if times and all(hasattr(time, "start_time") for time in times):  # periods of pandas
        return min(moment(time.start_time) for time in times), [moment((time + time.freq).start_time) for time in times]
    if not times or not all(isinstance(time, date) or _is_date_text(time) for time in times):
        return None
    moments = [moment(time) for time in times]
    return min(moments), [time + _TICK for time in moments]


def _is_date_text(value: object) -> bool:
    return isinstance(value, str) and re.match(rf"\s*{_DAY}", value) is not None


def _at_ends(first: datetime, ends: Sequence[datetime], head: int, oldest: int, version_at: VersionsAt) -> ResolvedPlan:
    """Return the last version before each end, without duplicates; the notes report ends without a version."""
    begin, *afters = version_at([first, *ends])
    if begin > head:
        raise InputError(f"{utc(first)} is after this node's head, version {head:,}")
    found = [after - 1 for after in afters]
    versions = list(dict.fromkeys(version for version in found if version >= oldest))
    if not versions:
        raise InputError(f"{utc(ends[-1])} is before version {oldest:,}, the oldest that this node has")
    notes = []
    if early := sum(version < oldest for version in found):
        verb = "is" if early == 1 else "are"
        notes.append(
            f"{early:,} of {len(ends):,} times {verb} before version {oldest:,}, the oldest that this node has"
        )
    if empty := len(ends) - early - len(versions):
        notes.append(f"no row for {empty:,} of {len(ends):,} times, because another time has the same version")
    return ResolvedPlan(versions, tuple(notes), by_time=True)


def _listed(plan: int | Sequence[Any], head: int, oldest: int, version_at: VersionsAt) -> ResolvedPlan:
    """Return versions and times that are listed one by one; negative numbers count from the head."""
    if isinstance(plan, range) and plan and min(plan[0], plan[-1]) >= 0:
        return ResolvedPlan(plan)
    given: Any = [plan] if _is_integer(plan) else plan
    if isinstance(given, FindSteps):
        raise InputError(
            "FindSteps searches for steps in the gas of views: pass it to fetch_views or a Study. Here, give a plan: "
            f"{_FORMS}"
        )
    if isinstance(given, bytes | dict) or not hasattr(given, "__iter__"):
        raise InputError(f"versions {plan!r} are not understood; the forms are {_FORMS}")
    versions: list[int] = []
    by_time = False
    for version in given:  # the list is the caller's: short, and each entry needs its own check
        if isinstance(version, date) or _is_date_text(version):
            by_time, time = True, moment(version)
            versions += _at_ends(time, [time + _TICK], head, oldest, version_at).versions
            continue
        if not _is_integer(version) or not -head - 1 <= int(version) <= _MAX_VERSION:
            raise InputError(
                f"{version!r:.80} is not a ledger version: expected an integer from {-head - 1} to 2^63 - 1"
            )
        versions.append(int(version) if version >= 0 else head + 1 + int(version))
    return ResolvedPlan(versions, by_time=by_time)


def _is_integer(value: object) -> bool:
    # A numpy array has __index__ too, since an array of one element is an index.
    return hasattr(value, "__index__") and not hasattr(value, "__iter__") and not isinstance(value, bool)


def _first(bound: int | datetime, head: int, oldest: int, version_at: VersionsAt, notes: list[str]) -> int:
    """Return the first version of a plan."""
    if not isinstance(bound, datetime):
        return bound if bound >= 0 else max(0, head + 1 + bound)
    found = version_at([bound])[0]
    if found > head:
        raise InputError(f"the version plan begins at {utc(bound)}, after this node's head, version {head:,}")
    if found < 0:
        notes.append(f"{utc(bound)} is before version {oldest:,}, the oldest that this node has; reading from it")
        return oldest
    return found


def _last(bound: int | datetime, head: int, oldest: int, version_at: VersionsAt, notes: list[str]) -> int:
    """Return the last version of a plan; if the plan ends at a time, the last version at or before that time."""
    if not isinstance(bound, datetime):
        return bound if bound >= 0 else max(0, head + 1 + bound)
    after = version_at([bound + _TICK])[0]
    if after < 0:
        raise InputError(
            f"the version plan ends at {utc(bound)}, before version {oldest:,}, the oldest that this node has"
        )
    if after > head and version_at([bound])[0] > head:
        notes.append(f"{utc(bound)} is after the time of this node's head; reading to the head, version {head:,}")
    return after - 1


def _backwards(plan: VersionPlan, first: int, last: int) -> str:
    if not isinstance(plan.first, datetime) or not isinstance(plan.last, datetime):
        return f"the version plan runs from {first:,} down to {last:,}; write the older version first"
    span = f"{utc(plan.first)} to {utc(plan.last)}"
    if plan.first > plan.last:
        return f"the version plan runs backwards, {span}; write the older time first"
    return f"the version plan, {span}, has no ledger version; version {first:,} is the first after it"


def evenly(first: int, last: int, count: int) -> Sequence[int]:
    """Return `count` evenly spaced versions from first to last, both included; all versions if there are fewer."""
    if count > last - first:
        return range(first, last + 1)
    return [last] if count == 1 else [first + (last - first) * index // (count - 1) for index in range(count)]


def open_pairs(outcomes: Mapping[int, Hashable], grid: Collection[int] = ()) -> list[tuple[tuple[int, int], int]]:
    """Return neighbouring versions with different outcomes, each pair with the version to read next between them.

    Parameters
    ----------
    outcomes : mapping of version to outcome
        An outcome of None is a read without a response; its version is not read again.
    grid : collection of int, optional
        Versions of the first grid. Reads without a response there say nothing about the surrounding versions.

    Returns
    -------
    list of ((int, int), int)
        Widest first. A pair is skipped if every version between the two has been read, or many reads there got no
        response.
    """
    found: list[tuple[tuple[int, int], int]] = []
    known = sorted(outcomes)
    answered = [place for place, version in enumerate(known) if outcomes[version] is not None]
    for low, high in pairwise(answered):
        between = known[low : high + 1]
        if outcomes[between[0]] == outcomes[between[-1]]:
            continue
        if sum(version not in grid for version in between[1:-1]) >= _MAX_UNANSWERED:
            continue
        # Versions without an answer may be between the two: the widest gap is halved.
        left, right = max(pairwise(between), key=lambda gap: gap[1] - gap[0])
        if right - left > 1:
            found.append(((between[0], between[-1]), (left + right) // 2))
    return sorted(found, key=lambda pair: (pair[0][0] - pair[0][1], pair[0]))


def next_round(outcomes: Mapping[int, Hashable], *, first: int, last: int, initial: int, limit: int) -> list[int]:
    """Return the versions to read next for one call; an empty list if the search is complete.

    Parameters
    ----------
    outcomes : mapping of version to outcome
        The outcomes so far, compared by equality; None for a read without a response.
    first, last : int
        The range of the search, both ends included.
    initial : int
        Number of versions of the first grid.
    limit : int
        Maximum number of versions that are read.

    Returns
    -------
    list of int
        Sorted, without versions that are in `outcomes`.

    Notes
    -----
    For a function with s steps, none of them hidden within a cell of the grid, a search reads at most ``initial + s *
    ceil(log2(cell))`` versions, in ``1 + ceil(log2(cell))`` rounds, if every read gets a response.

    Examples
    --------
    >>> outcomes = {0: 10, 8: 10, 16: 25}
    >>> next_round(outcomes, first=0, last=16, initial=3, limit=100)
    [12]
    """
    grid = dict.fromkeys(evenly(first, last, min(initial, limit)))
    if missing := [version for version in grid if version not in outcomes]:
        return missing
    # Widest first, so that all intervals are narrow if the limit ends the search.
    return sorted(middle for _, middle in open_pairs(outcomes, grid)[: max(0, limit - len(outcomes))])


def as_version(value: object, *, least: int = 0) -> int:
    """Return a ledger version as an int; `numpy` and `pandas` integers are accepted.

    Raises
    ------
    InputError
        If `value` is not a whole number from `least` to 2^63 - 1.
    """
    given: Any = value
    if not _is_integer(given) or not least <= int(given) <= _MAX_VERSION:
        advice = (
            "; leave it out for the head, count from the head with node.at(-1), or find the version at a time with "
            "node.version_at(time)"
        )
        advice = "" if _is_integer(given) and given > _MAX_VERSION else advice
        raise InputError(f"{given!r:.80} is not a ledger version: expected a whole number from 0 to 2^63 - 1{advice}")
    return int(given)


def as_version_or_head(value: object) -> int | None:
    """Return a ledger version as `as_version` does, or None for None, the head."""
    return None if value is None else as_version(value)


def moment(time: str | date) -> datetime:
    """Return a time as an aware datetime.

    Parameters
    ----------
    time : str, datetime or date
        ISO 8601 text. A date means the start of that day. A time without an offset is UTC.

    Raises
    ------
    InputError
        If `time` cannot be parsed.
    """
    given: Any = time
    if isinstance(given, str):
        try:
            given = None if _NO_TIME.fullmatch(given.strip()) else datetime.fromisoformat(given.strip())
        except ValueError:
            raise InputError(
                f"{time!r:.80} is not a date: expected ISO 8601, such as 2026-05-01 or 2026-05-01T12:00Z"
            ) from None
    elif isinstance(given, date) and not isinstance(given, datetime):
        given = datetime(given.year, given.month, given.day, tzinfo=UTC)
    if not isinstance(given, datetime) or given != given:  # noqa: PLR0124 - pandas' NaT is a datetime, and unlike itself
        range_of = re.fullmatch(rf"\s*({_DAY})\s*:\s*({_DAY}.*)", time) if isinstance(time, str) else None
        meant = f'; did you mean "{range_of[1]}..{range_of[2]}"?' if range_of else ""
        said = f"{time!r:.80} is not a date: expected ISO 8601 text, such as 2026-05-01, or a datetime"
        raise InputError(f"{said}{meant}")
    return given.replace(tzinfo=UTC) if given.tzinfo is None else given


def first_versions_from(
    times: Sequence[datetime], ledger: LedgerState, blocks_of: Callable[[Sequence[int]], Sequence[BlockInfo]]
) -> list[int]:
    """Return the first version at or after each of some times, by bisection on block times.

    Parameters
    ----------
    times : sequence of datetime
    ledger : LedgerState
    blocks_of : callable
        Returns the blocks that contain versions; called O(log n) times for n versions of the ledger, for all times at
        once.

    Returns
    -------
    list of int
        -1 if that version is pruned, or may be; head + 1 if it does not exist yet.

    Raises
    ------
    SchemaError
        If a block does not contain the requested version.
    """

    def blocks_at(versions: set[int]) -> dict[int, BlockInfo]:
        ordered = sorted(versions)
        found = dict(zip(ordered, blocks_of(ordered) if ordered else (), strict=True))
        for version, block in found.items():
            if not block.first_version <= version <= block.last_version:
                got = f"{block.first_version:,} to {block.last_version:,}"
                raise SchemaError(f"expected the block of version {version:,}, got the block of versions {got}")
        return found

    oldest, head = ledger.oldest_version, ledger.version
    low = [head + 1 if time > ledger.timestamp else oldest for time in times]
    high = [max(head, one) for one in low]
    while open_ones := [place for place in range(len(times)) if low[place] < high[place]]:
        blocks = blocks_at({(low[place] + high[place]) // 2 for place in open_ones})
        for place in open_ones:  # all versions of a block have its time, so each step skips whole blocks
            block = blocks[(low[place] + high[place]) // 2]
            if block.block_timestamp is not None and block.block_timestamp >= times[place]:
                high[place] = max(low[place], block.first_version)
            else:
                low[place] = min(high[place], block.last_version + 1)
    at_oldest = {place for place, version in enumerate(high) if version == oldest > 0}
    for block in blocks_at({oldest} if at_oldest else set()).values():
        for place in at_oldest:
            if block.first_version < oldest or block.block_timestamp != times[place]:
                high[place] = -1  # pruned versions may have been at or after the time as well
    return high
