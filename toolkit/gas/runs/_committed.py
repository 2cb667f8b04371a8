"""Committed transactions of a run: the timeline, which pages are read in which rounds, what was read, and the steps.

A whole range is read page by page. Of a sample, evenly spaced pages are read first, then pages outward from each change
of the timeline, in rounds: a side of a change is read on until the strata of the call have enough observations there.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.client._transaction_pages import PAGE, Missing, PageAnswer, read_transactions
from toolkit.errors import SchemaError
from toolkit.frames._columns import plain_columns, rows_frame
from toolkit.frames._schema import RUN_TIMELINE, STRATUM, TIMELINE
from toolkit.gas._observations import Cause, Change, Origin, Part, Source
from toolkit.gas._plan import (
    MAX_OUTWARD_PAGES,
    WHOLE,
    Shard,
    committed_pages,
    committed_range,
    committed_ranges,
    is_sampled,
    joined_ranges,
    shard_range,
)
from toolkit.gas._sentences import causes_text
from toolkit.gas._timeline import Timeline, find_timeline
from toolkit.gas.causes._evidence import UNREAD, Evidence, reason
from toolkit.gas.committed._steps import (
    CommittedCall,
    StoragePrices,
    columns_coded,
    columns_read,
    judge_call,
    series_frame,
)
from toolkit.gas.runs._collector import check_there, heard
from toolkit.move import FunctionId
from toolkit.wire import UserTransaction
from toolkit.wire._rows import checked_rows
from toolkit.wire._transactions import MalformedTransaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from toolkit.client._node import Node
    from toolkit.gas._calls import Call
    from toolkit.gas._study import Study
    from toolkit.gas.runs._collector import Collector
    from toolkit.gas.runs._store import RunStore


Range = tuple[int, int]
"""First and last version, both included."""

_PAGES = 50
"""Number of pages after which the progress is stored in the manifest; of a long list of pages, a hundredth of it."""


def committed_calls(study: Study) -> list[Call]:
    """Return the calls of a study that observe committed transactions."""
    return [call for call in study.calls if call.source == Source.COMMITTED]


# ranges of versions ---------------------------------------------------------------------------------------------------


def _without(ranges: Iterable[Range], others: Iterable[Range]) -> list[Range]:
    """Return what is in `ranges` and not in `others`, as joined ranges."""
    taken = joined_ranges(others)
    found: list[Range] = []
    for first, last in joined_ranges(ranges):
        start = first
        for low, high in taken:
            if high < start or low > last:
                continue
            if low > start:
                found.append((start, low - 1))
            start = high + 1
        if start <= last:
            found.append((start, last))
    return found


def _within(ranges: Iterable[Range], first: int, last: int) -> list[Range]:
    """Return the parts of ranges that are between two versions, both included."""
    clipped = ((max(low, first), min(high, last)) for low, high in ranges)
    return [one for one in clipped if one[0] <= one[1]]


def _count(ranges: Iterable[Range]) -> int:
    return sum(last + 1 - first for first, last in ranges)


def _among(versions: NDArray[np.uint64], first: int, last: int) -> NDArray[np.uint64]:
    """Return the versions from first to last, of a sorted array."""
    low, high = np.searchsorted(versions, [first, last + 1])
    return versions[low:high]


# what was read --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CommittedRead:
    """The committed transactions that a run has read on a node.

    It is stored in the manifest, since a page of transactions may hold none of the study's functions.

    Attributes
    ----------
    ranges : list of (int, int)
        The versions that were read, or could not be, as sorted ranges with both ends included.
    rows : int
        Number of observations in these ranges.
    missing : list of (int, int)
        The ranges that could not be read.
    """

    ranges: list[Range] = field(default_factory=list)
    rows: int = 0
    missing: list[Range] = field(default_factory=list)

    @classmethod
    def noted(
        cls, plan: Mapping[str, Any], shard: Shard, calls: Iterable[Call], known: Mapping[str, NDArray[np.uint64]]
    ) -> CommittedRead:
        """Return the entry of the manifest, or an empty one if rows that it counts are missing.

        Parameters
        ----------
        plan : mapping
        shard : Shard
        calls : iterable of Call
        known : mapping of str to array
            The sorted versions of the rows without an error, by fingerprint.
        """
        found = cls.of_entry(plan, shard)
        return found if count_rows(calls, known, found.ranges) == found.rows else cls()

    @classmethod
    def of_entry(cls, plan: Mapping[str, Any], shard: Shard) -> CommittedRead:
        """Return the entry of the manifest; an empty one if there is none."""
        entry = plan.get("committed_read")
        if entry is None:
            return cls()
        ranges = [(first, last) for first, last in entry.get("ranges", ())]
        if "to" in entry:  # as earlier versions wrote it: the last version that was read
            ranges = _within([(shard_range(plan, shard)[0], entry["to"])], 0, entry["to"])
        return cls(ranges, entry["rows"], [(first, last) for first, last in entry.get("missing", ())])

    def entry(self) -> dict[str, Any]:
        """Return the manifest's ``committed_read``."""
        missing = {"missing": [list(pair) for pair in self.missing]} if self.missing else {}
        return {"ranges": [list(pair) for pair in self.ranges], "rows": self.rows} | missing

    @classmethod
    def joined(cls, parts: Sequence[CommittedRead]) -> CommittedRead:
        """Return what several shards have read together."""
        ranges = joined_ranges(one for part in parts for one in part.ranges)
        return cls(ranges, sum(part.rows for part in parts), sorted(one for part in parts for one in part.missing))


def count_rows(calls: Iterable[Call], known: Mapping[str, NDArray[np.uint64]], ranges: Iterable[Range]) -> int:
    """Return the number of rows of calls in ranges, from the sorted versions of each call."""
    arrays = [known[call.fingerprint] for call in calls if call.fingerprint in known]
    return sum(len(_among(versions, *one)) for one in ranges for versions in arrays)


def sample_size(plan: Mapping[str, Any], call: Call) -> tuple[int, int, int]:
    """Return how many versions of a committed call's range were read, how many it has, and how many ranges failed.

    Parameters
    ----------
    plan : mapping
        The entry of a node in the manifest.
    call : Call
    """
    first, last = committed_range(plan, call)
    entry = plan.get("committed_read", {})
    ranges = [(low, high) for low, high in entry.get("ranges", [(first, entry.get("to", last))])]
    missing = [(low, high) for low, high in entry.get("missing", ()) if low <= last and high >= first]
    return _count(_within(_without(ranges, missing), first, last)), last + 1 - first, len(missing)


# the timeline ---------------------------------------------------------------------------------------------------------


def found_timeline(node: Node, plan: Mapping[str, Any], calls: Sequence[Call]) -> tuple[Timeline, dict[str, Any]]:
    """Find the timeline of the committed calls of a study on a node, and the prices of state in its gas schedules.

    Parameters
    ----------
    node : Node
    plan : mapping
        The study as resolved on the node.
    calls : sequence of Call
        The calls of committed transactions; at least one.

    Returns
    -------
    Timeline
    dict
        Entries of the node in the manifest: ``timeline`` (what the frame of changes does not hold) and
        ``storage_prices``, which is a text if they are not known.

    Raises
    ------
    NodeUnreachable, RunStopped
        If something could not be read because the node does not answer any more, or asks for a long wait.
    """
    first, last = plan["committed_span"]
    evidence = Evidence(node)
    functions = [call.function for call in calls]
    timeline = find_timeline(node, first, last, functions, evidence=evidence, oldest=plan["oldest"])
    prices = _storage_prices(evidence, timeline)
    if timeline.unread or isinstance(prices, str):
        check_there(node, "the timeline cannot be read")
    attrs = timeline.to_frame().attrs
    about = {name: attrs[name] for name in _ABOUT} | {"requests": evidence.reads}
    return timeline, {"timeline": about, "storage_prices": prices}


_ABOUT = ("first", "last", "first_time", "last_time", "modules", "requests", "unread", "initial", "not_seen")


def _storage_prices(evidence: Evidence, timeline: Timeline) -> dict[str, Any] | str:
    """Return the prices of state in the gas schedules of a timeline, or why they are not known."""
    changed = {change.ledger_version for change in timeline.changes if change.kind is Cause.SCHEDULE}
    try:
        found = StoragePrices.of({at: evidence.schedule(at).entries for at in {timeline.first, *changed}})
    except UNREAD as error:
        return f"the gas schedule could not be read: {reason(error)}"
    return asdict(found) if found is not None else "the gas schedule does not state the price of a state slot"


def storage_prices(plan: Mapping[str, Any]) -> StoragePrices | None:
    """Return the prices of state of a node, from its entry in the manifest; None if they are not known."""
    given = plan.get("storage_prices")
    if given is None or isinstance(given, str):
        return None
    return StoragePrices(tuple(given["since"]), tuple(given["slot"]))


def has_timeline(store: RunStore, manifest: Mapping[str, Any]) -> bool:
    """Return whether a run has the timelines of all nodes, with the prices of state, and nothing in them is unread."""
    checksum = manifest.get("timeline_checksum")
    known = all(
        "timeline" in plan and not plan["timeline"]["unread"] and storage_prices(plan) is not None
        for plan in manifest["nodes"]
    )
    return known and checksum is not None and store.timeline_checksum() == checksum


def timelines_frame(timelines: Mapping[str, Timeline]) -> pd.DataFrame:
    """Return the timelines of a run's nodes as one frame with a column ``node``."""
    columns: dict[str, list[Any]] = {name: [] for name in RUN_TIMELINE.names}
    for node, timeline in timelines.items():
        frame = timeline.to_frame()
        for name, values in plain_columns(frame, TIMELINE.names).items():
            columns[name] += values
        columns["node"] += [node] * len(frame)
    return rows_frame(RUN_TIMELINE, columns)


def stored_timeline(store: RunStore, plan: Mapping[str, Any]) -> Timeline | None:
    """Return the timeline of a node as stored in a run; None if the run has none.

    Parameters
    ----------
    store : RunStore
    plan : mapping
        The entry of the node in the manifest.

    Raises
    ------
    StudyError
        If ``timeline.parquet`` is damaged.
    """
    about, frame = plan.get("timeline"), store.timeline()
    if about is None or frame is None:
        return None
    mine = frame[frame["node"] == plan["node"]].drop(columns="node").reset_index(drop=True)
    mine.attrs |= {name: about[name] for name in _ABOUT if name in about}
    return Timeline.from_frame(mine)


# steps ----------------------------------------------------------------------------------------------------------------


def judge_committed(store: RunStore, study: Study, plan: dict[str, Any], shard: Shard) -> list[dict[str, Any]]:
    """Find the steps of committed transactions on a node; what else was found is noted in the plan.

    Parameters
    ----------
    store : RunStore
    study : Study
    plan : dict
        The entry of the node in the manifest; it gets ``committed_series``.
    shard : Shard

    Returns
    -------
    list of dict
        Rows of the step frame.
    """
    calls = committed_calls(study)
    if not calls:
        return []
    timeline = stored_timeline(store, plan) if shard == WHOLE else None
    prices = storage_prices(plan) if timeline is not None else None
    given = plan.get("storage_prices")
    if shard != WHOLE:
        why = _OF_A_SHARD
    elif timeline is None:
        why = "the run has no timeline; run the study into this folder to find it"
    else:
        why = given if isinstance(given, str) else ""
    rows, notes = [], []
    for call in calls:
        about = CommittedCall(
            plan["node"], call.name, call.fingerprint, not_judged=why, read_failed=bool(why) and shard == WHOLE
        )
        tables = store.tables(columns_read(), coded=columns_coded())
        frame = series_frame(tables, plan["node"], call.fingerprint, prices)
        note, found = judge_call(frame, about, timeline, call.function, explain=causes_text)
        rows += found
        read, versions, missing = sample_size(plan, call)
        notes.append(replace(note, versions=versions, versions_read=read, missing=missing).entry())
    plan["committed_series"] = notes
    return rows


_OF_A_SHARD = "the run is one shard of a study; merge the runs of all shards"


# pages outward from the changes of the timeline -----------------------------------------------------------------------

MIN_CALLS = 20
"""Observations of a stratum on a side of a change that are enough if they are nearly alike."""
MAX_CALLS = 320
"""Observations of a stratum on a side that are enough in any case."""
MAX_ERROR = 0.015
"""Standard error of a mean, relative to it, from which on more observations are needed."""
MIN_SHARE = 0.02
"""Strata with a smaller share of the observations next to a change are not waited for."""
MAX_CALLS_PER_SIDE = 1_000
"""Observations of a call on a side of a change after which no more pages are read there.

Reading 1,000 calls next to the changes names 90 % of the steps that reading everything names 92 % of.
"""
MAX_PAGES_PER_SIDE = 64
"""Pages on a side of a change after which no more are read there, however few observations they have."""

_PARTS = tuple(Part)
_KEYS = tuple(column.name for column in STRATUM if column.name != "payload_bytes")
_PART_COLUMNS = tuple(part.column for part in _PARTS)
_WINDOW_COLUMNS = ("node", "fingerprint", "ledger_version", "success", "error_code", *_KEYS, *_PART_COLUMNS)
_NO_PRICE = 2**64
_Key = tuple[Any, ...]


class _Side(NamedTuple):
    """The versions before or after a change, up to the neighbouring changes and the ends of the call's range."""

    call: Call
    change: Change
    first: int
    last: int
    after: bool

    def nearest(self, pages: int) -> Range:
        """Return the versions of the nearest pages, which begin at multiples of 100."""
        if self.after:
            return self.first, min(self.last, (self.first // PAGE + pages) * PAGE - 1)
        return max(self.first, (self.last // PAGE - pages + 1) * PAGE), self.last


class Outward:
    """What is read around the changes of the timeline for calls of which only a sample is read.

    Which pages are read depends on the ledger, the timeline and the study alone: not on the evenly spaced pages, nor on
    what an earlier attempt has read.

    Parameters
    ----------
    store : RunStore
    plan : mapping
        The entry of the node in the manifest.
    calls : sequence of Call
        The calls of committed transactions.
    timeline : Timeline or None
        Without one nothing is read.
    """

    def __init__(
        self, store: RunStore, plan: Mapping[str, Any], calls: Sequence[Call], timeline: Timeline | None
    ) -> None:
        self._store = store
        self._plan = plan
        self._open: list[_Side] = []
        if timeline is not None:
            sampled = [call for call in calls if is_sampled(plan, call)]
            self._open += [
                side for call in sampled for side in _sides(plan, call, timeline.for_function(call.function))
            ]
        self._extents: dict[_Side, Range] = {}
        self._pages = 0

    def next(self, covered: Sequence[Range]) -> list[Range]:
        """Return the ranges to read next, apart from those that are covered; empty if nothing more is read."""
        while self._open:
            missing = self._to_read(covered)
            if missing:
                return missing
            self._open = self._still_open()
            if not self._open or not self._widen():
                self._open = []
        return []

    def _to_read(self, covered: Sequence[Range]) -> list[Range]:
        if not self._pages:
            self._widen()
        return _without(self._extents.values(), covered)

    def _widen(self) -> bool:
        """Double the number of pages of the open sides; return False if that would be too many pages in all."""
        pages = max(1, 2 * self._pages)
        extents = self._extents | {side: side.nearest(pages) for side in self._open}
        if pages > MAX_PAGES_PER_SIDE or _count_pages(extents.values()) > MAX_OUTWARD_PAGES:
            return False
        self._pages, self._extents = pages, extents
        return True

    def _still_open(self) -> list[_Side]:
        """Return the sides that need more observations, and have versions left."""
        found = self._observations()
        still = []
        for side in self._open:
            if self._extents[side] == (side.first, side.last):
                continue
            mine, other = found[side], [found[one] for one in found if one[:2] == side[:2] and one != side]
            if not _enough(mine, [mine, *other], side.change.parts):
                still.append(side)
        return still

    def _observations(self) -> dict[_Side, dict[_Key, NDArray[np.float64]]]:
        """Return the parts of the gas of the observations on each side by stratum, the nearest to the change first."""
        wanted: dict[str, list[_Side]] = {}
        for side in self._extents:
            wanted.setdefault(side.call.fingerprint, []).append(side)
        rows: dict[_Side, list[tuple[Any, ...]]] = {side: [] for side in self._extents}
        for table in self._store.tables(_WINDOW_COLUMNS, coded=("node", "fingerprint")):
            mine = table.filter(pc.and_(pc.equal(table["node"], self._plan["node"]), table["error_code"].is_null()))
            for mark, sides in wanted.items():
                of_call = mine.filter(pc.equal(mine["fingerprint"], mark))
                versions = of_call["ledger_version"].to_numpy()
                for side in sides:
                    low, high = self._extents[side]
                    inside = of_call.filter(pa.array((versions >= low) & (versions <= high)))
                    rows[side] += zip(*(inside[name].to_pylist() for name in _WINDOW_COLUMNS[2:]), strict=True)
        return {side: self._strata(side, found) for side, found in rows.items()}

    def _strata(self, side: _Side, rows: list[tuple[Any, ...]]) -> dict[_Key, NDArray[np.float64]]:
        rows.sort(reverse=not side.after)
        prices = _slot_price(self._plan, [row[0] for row in rows])
        strata: dict[_Key, list[tuple[Any, ...]]] = {}
        for row, price in zip(rows, prices, strict=True):
            keys, parts = row[1 : 3 + len(_KEYS)], row[3 + len(_KEYS) :]
            slots = (parts[_PARTS.index(Part.STORAGE)] or 0) // price
            strata.setdefault((*keys, slots), []).append(parts)
        return {key: np.array(values, np.float64) for key, values in strata.items()}


def _slot_price(plan: Mapping[str, Any], versions: Sequence[int]) -> list[int]:
    """Return the price of a state slot at each version; a fee that no storage costs if it is not known."""
    prices = storage_prices(plan)
    if prices is None:
        return [_NO_PRICE] * len(versions)
    return [int(price) for price in prices.at(np.array(versions, np.int64))]


def _sides(plan: Mapping[str, Any], call: Call, changes: Sequence[Change]) -> Iterator[_Side]:
    """Yield both sides of each change in a call's range; changes of one version are one."""
    first, last = committed_range(plan, call)
    by_version: dict[int, list[Change]] = {}
    for change in changes:
        if first < change.ledger_version <= last:
            by_version.setdefault(change.ledger_version, []).append(change)
    starts = [first, *sorted(by_version), last + 1]
    for (before, here), (_, after) in pairwise(pairwise(starts)):
        several = by_version[here]
        change = several[0] if len(several) == 1 else _together(several)
        reached = min(here - 1, *(one.version_before for one in several if one.version_before is not None), here - 1)
        if before <= reached:
            yield _Side(call, change, before, reached, after=False)
        yield _Side(call, change, here, after - 1, after=True)


def _together(changes: Sequence[Change]) -> Change:
    parts = frozenset(part for change in changes for part in change.parts)
    return Change(changes[0].ledger_version, Cause.MIXED, parts=parts)


def _enough(
    mine: Mapping[_Key, NDArray[np.float64]],
    both: Sequence[Mapping[_Key, NDArray[np.float64]]],
    parts: frozenset[Part],
) -> bool:
    """Return whether a side of a change has enough observations of each stratum that either side has."""
    count = sum(map(len, mine.values()))
    if count >= MAX_CALLS_PER_SIDE:
        return True
    total = sum(len(values) for side in both for values in side.values())
    keys = {key for side in both for key in side if sum(len(one.get(key, ())) for one in both) >= MIN_SHARE * total}
    columns = [place for place, part in enumerate(_PARTS) if part in parts]
    return count >= MIN_CALLS and all(key in mine and _settled(mine[key][:, columns]) for key in keys)


def _settled(values: NDArray[np.float64]) -> bool:
    """Return whether the observations of a stratum give its mean, as a step's size needs it."""
    size = MIN_CALLS
    while len(values) >= size:
        near = values[:size]
        error = near.std(axis=0, ddof=1) / size**0.5
        if size >= MAX_CALLS or bool((error <= MAX_ERROR * np.abs(near.mean(axis=0))).all()):
            return True
        size *= 2
    return False


def _count_pages(ranges: Iterable[Range]) -> int:
    return sum(last // PAGE - first // PAGE + 1 for first, last in joined_ranges(ranges))


# reading --------------------------------------------------------------------------------------------------------------


def base_ranges(plan: Mapping[str, Any], calls: Iterable[Call], shard: Shard) -> list[Range]:
    """Return the versions of a shard that are read whatever the timeline is, for all calls together."""
    versions = shard_range(plan, shard)
    if not versions:
        return []
    wanted = (one for call in calls for one in committed_ranges(plan, call))
    return joined_ranges(_within(wanted, versions[0], versions[-1]))


def missing_transactions(
    store: RunStore,
    plan: Mapping[str, Any],
    calls: Sequence[Call],
    shard: Shard,
    *,
    good: Mapping[str, NDArray[np.uint64]],
    failed: Mapping[str, NDArray[np.uint64]],
) -> dict[str, list[int]]:
    """Return versions that are neither read nor covered by a row with the error of a range that could not be read.

    Parameters
    ----------
    store : RunStore
    plan : mapping
    calls : sequence of Call
        The calls of committed transactions.
    shard : Shard
    good, failed : mapping of str to array
        The sorted versions of the rows without and with an error, by fingerprint.

    Returns
    -------
    dict of str to list of int
        The first version of each missing range, by fingerprint.
    """
    read = CommittedRead.noted(plan, shard, calls, good)
    unread = _without(base_ranges(plan, calls, shard), read.ranges)
    unread += Outward(store, plan, calls, stored_timeline(store, plan)).next(read.ranges)
    nothing = np.empty(0, np.uint64)
    missing: dict[str, list[int]] = {}
    for call in calls:
        first, last = committed_range(plan, call)
        mine = missing[call.fingerprint] = [low for low, _ in _within(unread, first, last)]
        for low, high in _within(read.missing, first, last):
            said, there = (_among(rows.get(call.fingerprint, nothing), low, high) for rows in (failed, good))
            if not len(said) and len(there) <= high - low:
                mine.append(low)
    return missing


class CommittedReader:
    """Reads the committed transactions that the calls of a study observe on one node, page by page.

    Parameters
    ----------
    calls : sequence of Call
        The calls of committed transactions; at least one.
    node : Node
    origin : Origin
    plan : mapping
        The study as resolved on the node.
    store : RunStore
    collector : Collector
    shard : Shard
    known : mapping of str to array
        The sorted versions that earlier attempts have read, by fingerprint.
    note : callable
        Called with the entry of `CommittedRead` after the rows of some pages were written.
    """

    def __init__(
        self,
        calls: Sequence[Call],
        node: Node,
        origin: Origin,
        plan: Mapping[str, Any],
        *,
        store: RunStore,
        collector: Collector,
        shard: Shard,
        known: Mapping[str, NDArray[np.uint64]],
        note: Callable[[dict[str, Any]], None],
    ) -> None:
        self._calls = calls
        self._node = node
        self._origin = origin
        self._plan = plan
        self._store = store
        self._collector = collector
        self._shard = shard
        self._known = known
        self._note = note
        self._by_function: dict[str, list[Call]] = {}
        for call in calls:
            self._by_function.setdefault(str(FunctionId.parse(call.function)), []).append(call)
        before = CommittedRead.noted(plan, shard, calls, known)
        self._covered = _without(before.ranges, before.missing)
        self._rows = count_rows(calls, known, self._covered)
        self._missing: list[Range] = []

    def read(self) -> None:
        """Read the pages of every call, then those around the changes of the timeline."""
        base = base_ranges(self._plan, self._calls, self._shard)
        self._read(_without(base, self._covered))
        outward = Outward(self._store, self._plan, self._calls, stored_timeline(self._store, self._plan))
        while ranges := outward.next(self._covered):
            self._read(ranges)
        self._note(self._entry())

    def _entry(self) -> dict[str, Any]:
        return CommittedRead(self._covered, self._rows, sorted(self._missing)).entry()

    def _read(self, ranges: Sequence[Range]) -> None:
        pages = committed_pages(ranges)
        self._collector.bar.expect(len(pages))
        size = max(_PAGES, len(pages) // 100)
        for place in range(0, len(pages), size):
            some = pages[place : place + size]
            found = self._read_pages(some)
            self._collector.flush()
            read = [(start, start + count - 1) for start, count in some]
            self._covered = joined_ranges([*self._covered, *read])
            self._rows += found + count_rows(self._calls, self._known, joined_ranges(read))
            self._note(self._entry())

    def _read_pages(self, pages: Sequence[tuple[int, int]]) -> int:
        """Read some pages; return the number of new observations without an error."""
        found = 0
        bar = self._collector.bar

        def read() -> Iterator[dict[str, Any]]:
            for answer in read_transactions(self._node, [range(start, start + size) for start, size in pages]):
                rows = self._page_rows(answer)
                bar.expect(len(rows))
                bar.advance(int(answer.ended))
                yield from rows

        for row in heard(read(), self._node):
            found += row["error_code"] is None
            self._collector.take(row)
        return found

    def _page_rows(self, answer: PageAnswer) -> list[dict[str, Any]]:
        """Return the new observations of an answer, and rows for the versions in it that could not be read."""
        missing = list(answer.missing)
        rows: list[dict[str, Any]] = []
        found, columns = checked_rows(one for _, one in answer.found)
        functions, senders = columns.transactions["function"], columns.transactions["sender"]
        for (version, _), one, name, sender in zip(answer.found, found, functions, senders, strict=True):
            calls = self._by_function.get(name, [])
            if isinstance(one, MalformedTransaction) and (calls or name is None):  # it is, or may be, one of a call
                missing.append(Missing(version, version, SchemaError(one.problem)))
            if not isinstance(one, UserTransaction):
                continue
            for call in calls:
                if self._covers(call, version) and not self._has(call, version) and call.selects(sender, one):
                    now = datetime.now(UTC)
                    rows.append(self._origin.committed(call.name, call.fingerprint, one, now, head=answer.head))
        self._missing += [(lost.first, lost.last) for lost in missing]
        return [*rows, *(row for lost in missing for row in self._missing_rows(lost))]

    def _missing_rows(self, missing: Missing) -> Iterator[dict[str, Any]]:
        """Yield one row for each call whose range includes versions that could not be read."""
        for call in self._calls:
            first, last = committed_range(self._plan, call)
            versions = range(max(first, missing.first), min(last, missing.last) + 1)
            start = next((version for version in versions if not self._has(call, version)), None)
            if start is not None:
                yield self._origin.missing(
                    call.name,
                    call.fingerprint,
                    start,
                    versions[-1],
                    error=missing.error,
                    observed_at=datetime.now(UTC),
                )

    def _has(self, call: Call, version: int) -> bool:
        """Return whether an earlier attempt has read a transaction of a call."""
        known = self._known.get(call.fingerprint)
        return known is not None and len(_among(known, version, version)) > 0

    def _covers(self, call: Call, version: int) -> bool:
        first, last = committed_range(self._plan, call)
        return first <= version <= last
