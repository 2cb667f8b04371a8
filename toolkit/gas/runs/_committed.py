"""Committed transactions of a run: the timeline, which pages are read, what has been read, and the steps.

A whole range is read page by page. A sample consists of evenly spaced pages and of pages around each change of the
timeline.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import structs

from toolkit.client._reads import PAGE, Missing, PageAnswer, read_transactions
from toolkit.errors import SchemaError
from toolkit.gas._cause_sentences import causes_text
from toolkit.gas._findings import Unread
from toolkit.gas._observations import Cause, ReadAt
from toolkit.gas._steps import ALL_TRANSACTIONS
from toolkit.gas._timeline import find_timeline
from toolkit.gas.causes._evidence import UNREAD, Evidence, reason
from toolkit.gas.committed import _steps as committed
from toolkit.gas.committed._steps import CommittedCall, StoragePrices
from toolkit.gas.committed._strata import octas_per_unit
from toolkit.gas.plan._estimate import MAX_PAGES_AROUND
from toolkit.gas.plan._plan import Range, calls_read, joined_ranges, pages_of, within, without
from toolkit.gas.runs._collector import check_there, heard
from toolkit.gas.runs._manifest import CommittedRead, Manifest, NodeRun
from toolkit.gas.runs._scan import versions_read
from toolkit.move import FunctionId
from toolkit.wire import UserTransaction
from toolkit.wire._rows import checked_rows
from toolkit.wire._transactions import MalformedTransaction

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from toolkit.client._node import Node
    from toolkit.gas._calls import Call
    from toolkit.gas._findings import Timeline
    from toolkit.gas.runs._collector import Collector
    from toolkit.gas.runs._store import Job


# Number of pages after which the progress is stored in the manifest; of a long list of pages, a hundredth of it.
_PAGES = 50


def _among(versions: NDArray[np.int64], first: int, last: int) -> NDArray[np.int64]:
    """Return the versions in a sorted array that lie between `first` and `last`, both included."""
    low, high = np.searchsorted(versions, [first, last + 1])
    return versions[low:high]


def noted(plan: NodeRun, calls: Iterable[Call], known: Mapping[str, NDArray[np.int64]]) -> CommittedRead:
    """Return which transactions were read according to the manifest, or none if rows that it counts are missing.

    Parameters
    ----------
    plan : NodeRun
    calls : iterable of Call
    known : mapping of str to array
        The sorted versions of the rows without an error, by fingerprint.
    """
    found = plan.committed_read or _NOTHING
    return found if count_rows(calls, known, found.ranges) == found.rows else _NOTHING


_NOTHING = CommittedRead((), 0)


def count_rows(calls: Iterable[Call], known: Mapping[str, NDArray[np.int64]], ranges: Iterable[Range]) -> int:
    """Return the number of rows of calls in ranges, from the sorted versions of each call."""
    arrays = [known[call.fingerprint] for call in calls if call.fingerprint in known]
    return sum(len(_among(versions, *one)) for one in ranges for versions in arrays)


def sample_size(plan: NodeRun, call: Call) -> tuple[int, int, int]:
    """Return how many versions of a committed call's range were read, how many it has, and how many ranges failed."""
    first, last = plan.range_of(call)
    read = plan.committed_read or CommittedRead(((first, last),), 0)
    missing = [(low, high) for low, high in read.missing if low <= last and high >= first]
    there = within(without(read.ranges, missing), first, last)
    return sum(high + 1 - low for low, high in there), last + 1 - first, len(missing)


# the timeline ---------------------------------------------------------------------------------------------------------


def find_timelines(job: Job) -> None:
    """Find and store the timelines of a study with committed transactions, unless the run has them.

    Raises
    ------
    NodeUnreachable, RunStopped
        If something could not be read because the node no longer responds, or asks for a long wait.
    """
    functions = [call.function for call in calls_read(job.study, ReadAt.TRANSACTIONS)]
    if not functions or has_timeline(job.manifest):
        return
    plans = []
    for node, plan in job.plans():
        first, last = plan.committed_span or (plan.first, plan.last)
        evidence = Evidence(node)
        timeline = find_timeline(node, first, last, functions, evidence=evidence, oldest=plan.oldest)
        prices, unread = _storage_prices(evidence, timeline)
        timeline = structs.replace(timeline, unread=(*timeline.unread, *unread), requests=evidence.reads)
        if timeline.unread:
            check_there(node, "the timeline cannot be read")
        plans.append(structs.replace(plan, timeline=timeline, storage_prices=prices))
    job.write(nodes=tuple(plans))


def _storage_prices(evidence: Evidence, timeline: Timeline) -> tuple[StoragePrices | None, tuple[Unread, ...]]:
    """Return the prices of state in the gas schedules of a timeline, and why they are not known if they are not."""
    name = "the price of a state slot"
    changed = {change.ledger_version for change in timeline.changes if change.kind is Cause.SCHEDULE}
    try:
        found = StoragePrices.of({at: evidence.schedule(at).entries for at in {timeline.first, *changed}})
    except UNREAD as error:
        return None, (Unread(name, reason(error)),)
    return found, () if found else (Unread(name, "a gas schedule does not state it"),)


def has_timeline(manifest: Manifest) -> bool:
    """Return whether a run has complete timelines for all nodes, with the prices of state."""
    return all(plan.timeline and not plan.timeline.unread and plan.storage_prices for plan in manifest.nodes)


# steps ----------------------------------------------------------------------------------------------------------------


def judge_committed(job: Job, node: Node, plan: NodeRun) -> tuple[NodeRun, list[dict[str, Any]]]:
    """Find the steps of committed transactions on a node.

    Returns
    -------
    NodeRun
        The plan, with the other results of the analysis added.
    list of dict
        Rows of the step frame.
    """
    calls = calls_read(job.study, ReadAt.TRANSACTIONS)
    if not calls:
        return plan, []
    rows, notes = [], []
    for call in calls:
        about = CommittedCall(plan.node, call.name, call.fingerprint)
        tables = job.store.tables(committed.COLUMNS_READ, coded=committed.COLUMNS_CODED)
        frame = committed.series_frame(tables, plan.node, call.fingerprint, plan.storage_prices)
        note, found = committed.judge_call(frame, about, plan.timeline, call.function)
        if plan.model or not found:  # the contracts of an embedded node are not bytecode
            rows += [row | {"explanation": causes_text(causes)} for causes, row in found]
        else:
            # As the analysis divided them: what a change makes of each other is one stratum.
            changes = plan.timeline.for_function(call.function) if plan.timeline else ()
            strata = committed.kinds_of(frame, changes)
            kinds = {name or ALL_TRANSACTIONS: mine["ledger_version"].tolist() for name, mine in strata}
            # Imported on use: most studies execute nothing, and the machine takes as long as pydantic to import.
            from toolkit.gas.causes._executed import proved_rows

            rows += proved_rows(node, found, kinds, unit=octas_per_unit(frame))
        read, versions, missing = sample_size(plan, call)
        notes.append(replace(note, versions=versions, versions_read=read, missing=missing))
    return structs.replace(plan, committed_series=tuple(notes)), rows


# pages around the changes of the timeline -----------------------------------------------------------------------------


def around_changes(plan: NodeRun, calls: Sequence[Call]) -> list[Range]:
    """Return the versions around the changes of the timeline that are read for calls with a sample.

    They depend only on the ledger, the timeline and the study, not on what an earlier attempt has read.
    """
    if plan.timeline is None:
        return []
    places = {
        (plan.range_of(call), change.start, change.ledger_version)
        for call in calls
        if plan.is_sampled(call)
        for change in plan.timeline.for_function(call.function)
        if plan.range_of(call)[0] < change.ledger_version <= plan.range_of(call)[1]
    }
    # At most 16 pages on each side of a change: 1,600 transactions, in which a function with a share of 1 % has twice
    # the 8 observations that a comparison needs.
    pages = max(1, min(16, MAX_PAGES_AROUND // (2 * len(places) or 1)))
    ranges = []
    for (first, last), before, after in places:
        ranges.append((max(first, (before // PAGE - pages + 1) * PAGE), before))
        ranges.append((after, min(last, (after // PAGE + pages) * PAGE - 1)))
    return joined_ranges((low, high) for low, high in ranges if low <= high)


# reading --------------------------------------------------------------------------------------------------------------


def wanted_ranges(plan: NodeRun, calls: Sequence[Call]) -> list[Range]:
    """Return the versions that are read for all calls together."""
    planned = [one for call in calls for one in plan.ranges_of(call)]
    return joined_ranges([*planned, *around_changes(plan, calls)])


def missing_transactions(job: Job, plan: NodeRun) -> Iterator[tuple[Call, list[int]]]:
    """Yield the first versions of ranges that were not read and have no row that reports the failed read."""
    calls = calls_read(job.study, ReadAt.TRANSACTIONS)
    if not calls:
        return
    good, failed = (versions_read(job.store, plan.node, failed=failed) for failed in (False, True))
    read = noted(plan, calls, good)
    unread = without(wanted_ranges(plan, calls), read.ranges)
    nothing = np.empty(0, np.int64)
    for call in calls:
        first, last = plan.range_of(call)
        missing = [low for low, _ in within(unread, first, last)]
        for low, high in within(read.missing, first, last):
            said, there = (_among(rows.get(call.fingerprint, nothing), low, high) for rows in (failed, good))
            if not len(said) and len(there) <= high - low:
                missing.append(low)
        yield call, missing


class CommittedReader:
    """Reads the committed transactions that the calls of a study observe on one node, page by page.

    Parameters
    ----------
    job : Job
        Of a study with at least one committed call.
    node : Node
    plan : NodeRun
    collector : Collector
    known : mapping of str to array
        The sorted versions that earlier attempts have read, by fingerprint.
    """

    def __init__(
        self, job: Job, node: Node, plan: NodeRun, collector: Collector, known: Mapping[str, NDArray[np.int64]]
    ) -> None:
        self._job, self._node, self._plan, self._collector, self._known = job, node, plan, collector, known
        self._calls = calls_read(job.study, ReadAt.TRANSACTIONS)
        self._by_function: dict[str, list[Call]] = {}
        for call in self._calls:
            self._by_function.setdefault(str(FunctionId.parse(call.function)), []).append(call)
        before = noted(self._plan, self._calls, known)
        self._covered = without(before.ranges, before.missing)
        self._rows = count_rows(self._calls, known, self._covered)
        self._missing: list[Range] = []

    def read(self) -> None:
        """Read the pages of every call."""
        pages = pages_of(without(wanted_ranges(self._plan, self._calls), self._covered))
        self._collector.bar.expect(len(pages))
        size = max(_PAGES, len(pages) // 100)
        for place in range(0, len(pages), size):
            some = pages[place : place + size]
            found = self._read_pages(some)
            self._collector.flush()
            read = [(start, start + count - 1) for start, count in some]
            self._covered = joined_ranges([*self._covered, *read])
            self._rows += found + count_rows(self._calls, self._known, joined_ranges(read))
            self._note()
        self._note()

    def _note(self) -> None:
        read = CommittedRead(tuple(self._covered), self._rows, tuple(sorted(self._missing)))
        self._job.note(self._plan.node, committed_read=read)

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
        """Return the new observations of a response, and rows for the versions in it that could not be read."""
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
                first, last = self._plan.range_of(call)
                if first <= version <= last and not self._has(call, version) and call.selects(sender, one):
                    rows.append(self._plan.origin.committed(call, one, datetime.now(UTC), head=answer.head))
        self._missing += [(lost.first, lost.last) for lost in missing]
        for lost, call in product(missing, self._calls):
            first, last = self._plan.range_of(call)
            versions = range(max(first, lost.first), min(last, lost.last) + 1)
            start = next((version for version in versions if not self._has(call, version)), None)
            if start is not None:
                rows.append(self._plan.origin.missing(call, start, versions[-1], lost.error, datetime.now(UTC)))
        return rows

    def _has(self, call: Call, version: int) -> bool:
        """Return whether an earlier attempt has read a transaction of a call."""
        known = self._known.get(call.fingerprint)
        return known is not None and len(_among(known, version, version)) > 0
