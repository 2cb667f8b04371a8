"""Plans: the versions that a study reads on a node, what a run would send, and what each shard of a run reads."""

from __future__ import annotations

import re
from bisect import bisect_right
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from math import ceil, inf, log2
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from toolkit.client._arguments import call_problem, problem_list, readable
from toolkit.client._connect import connect
from toolkit.client._transaction_pages import PAGE
from toolkit.client._versions import VersionPlan, Versions, evenly, next_round, open_pairs, resolve_versions
from toolkit.errors import InputError, StudyError
from toolkit.frames._columns import rows_frame
from toolkit.frames._schema import PLAN
from toolkit.gas._observations import MADE_BY_NODE, Source
from toolkit.gas._plan_sentences import plan_html, plan_text
from toolkit.wire import EntryFunction, SimulationRequest, ViewFunction

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    import pandas as pd

    from toolkit.client._node import Node
    from toolkit.gas._calls import Call
    from toolkit.gas._study import Study
    from toolkit.gas.runs._rows import Outcome


T = TypeVar("T")
_FORM = re.compile(r"\s*(\d{1,6})\s*/\s*(\d{1,6})\s*")


def resolve_study(study: Study, node: Node) -> dict[str, Any]:
    """Resolve a study's versions on one node. They hold for the whole run, also when it is resumed.

    Parameters
    ----------
    study : Study
    node : Node

    Returns
    -------
    dict
        ``node``, ``node_build``, ``model``, ``chain_id``, ``head``, ``oldest``, ``oldest_claimed`` (as the node says,
        without what a probe found), ``first``, ``last``, ``versions`` (if they are listed), ``step`` (of a range),
        ``notes`` (what was clipped or cannot be read), ``committed`` (the ranges of calls that have their own, by
        fingerprint), ``committed_sample`` (the number of pages of calls of which a sample is read, by fingerprint) and
        ``committed_span`` (the first and the last version of all these ranges).

    Raises
    ------
    InputError
        If the versions cannot be read on this node.
    StudyError
        If calls fit the code at none of the versions at which they are read; the message names all of them.
    """
    info = node.info()
    head, oldest = info.ledger.version, node.oldest_readable(info.ledger)
    search = study.versions.search

    def version_at(time: datetime) -> int:
        return node.first_from(time, info.ledger)

    wanted: Versions = search.versions if search else (study.versions.plan or -1)
    claimed = info.ledger.oldest_version
    plan = resolve_versions(wanted, head=head, oldest=oldest, version_at=version_at, claimed=claimed)
    versions = plan.versions
    listed = not isinstance(wanted, str)  # only ranges are clipped
    notes = [*plan.notes, *(_out_of_reach(versions, head=head, oldest=oldest) if listed else ())]
    committed, sample = {}, {}
    for call in study.calls:
        if call.versions is not None:
            given = VersionPlan.parse(call.versions)
            own = resolve_versions(replace(given, count=None), head=head, oldest=claimed, version_at=version_at)
            committed[call.fingerprint] = [own.versions[0], own.versions[-1]]
            if given.count is not None:
                sample[call.fingerprint] = given.count
            notes += [f"{call.name}: {note}" for note in own.notes]
    last = max(versions, default=head)
    resolved = {
        "node": node.name,
        "node_build": info.git_hash,
        "model": (info.git_hash or "").startswith("embedded"),
        "chain_id": info.ledger.chain_id,
        "head": head,
        "oldest": oldest,
        "oldest_claimed": claimed,
        "first": min(versions, default=head),
        "last": last,
        "versions": None if search or isinstance(versions, range) else list(versions),
        "step": versions.step if isinstance(versions, range) else None,
        "committed": committed,
        "committed_sample": sample,
        "notes": notes,
    }
    _check_calls(study, node, resolved)
    return resolved | {"committed_span": _committed_span(study, resolved)}


def _committed_span(study: Study, plan: Mapping[str, Any]) -> list[int] | None:
    ranges = [committed_range(plan, call) for call in study.calls if call.source == Source.COMMITTED]
    return [min(first for first, _ in ranges), max(last for _, last in ranges)] if ranges else None


def connected(study: Study, stack: ExitStack) -> list[Node]:
    """Connect to the nodes that a study names, at its pace; they are closed with the stack."""
    pace = study.requests_per_second
    return [stack.enter_context(connect(**one, requests_per_second=pace)) for one in study.connections()]


def calls_at_head(study: Study, plan: Mapping[str, Any]) -> list[Call]:
    """Return the calls that a run reads up to the head, so that there is more to read when the head moves.

    Parameters
    ----------
    study : Study
    plan : mapping
        The study as resolved on a node.
    """
    of_plan = _ends_at_head(study.versions.find_steps or study.versions.plan, plan["last"], plan["head"])
    return [
        call
        for call in study.calls
        if call.source == Source.SIMULATE
        or (call.versions is None and of_plan)
        or (call.versions is not None and _ends_at_head(call.versions, committed_range(plan, call)[1], plan["head"]))
    ]


def _ends_at_head(wanted: str | Sequence[int] | None, last: int, head: int) -> bool:
    """Return whether versions that were resolved to `last` end at the head, or were clipped to it."""
    if not isinstance(wanted, str):
        return any(version < 0 for version in wanted or ())
    end = VersionPlan.parse(wanted).last
    return end < 0 or end > head if isinstance(end, int) else last == head


def extended_plan(study: Study, node: Node, plan: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the plan of a complete run with what the node has beyond it; None if that is nothing.

    Versions that were read stay in the plan. New ones are those of the study, resolved again, above the last of them. A
    step search has one range for each time. Simulations are made again, at the new head.

    Parameters
    ----------
    study : Study
    node : Node
    plan : mapping
        The study as resolved on the node before.

    Raises
    ------
    InputError, StudyError
        As `resolve_study`; and if committed transactions between those of the run and those of today would be left out,
        or the first of them have been pruned.
    """
    moving = calls_at_head(study, plan)
    if not moving or node.info().ledger.version <= plan["head"]:
        return None
    now = resolve_study(study, node)
    same = {name: now[name] for name in ("head", "oldest", "oldest_claimed", "node_build")}
    grown = {**plan, **same, "extended_from": plan["head"], "committed": dict(plan.get("committed", {}))}
    if any(call.versions is None and call.source != Source.SIMULATE for call in moving):
        grown |= _further(study, plan, now)
    for call in moving:
        if call.source == Source.COMMITTED:
            (first, last), (start, end) = committed_range(plan, call), committed_range(now, call)
            if start > last + 1 or now["oldest"] > max(first, plan["oldest"]):
                raise StudyError(
                    f"call {call.name!r}: the run has transactions {first} to {last}, and the node now has {start} to "
                    f"{end} of its versions: they cannot be judged together. Read them from the start with --fresh "
                    "(fresh=True in Python), or choose another folder"
                )
            if call.versions is not None:
                grown["committed"][call.fingerprint] = [first, end]
    grown["committed_span"] = _committed_span(study, grown)
    if grown["committed_span"] != plan.get("committed_span"):
        for name in ("timeline", "storage_prices", "committed_series"):
            grown.pop(name, None)
    read = ("first", "last", "versions", "step", "searches", "committed")
    if any(call.source == Source.SIMULATE for call in moving) or any(grown.get(one) != plan.get(one) for one in read):
        return grown
    return None


def _further(study: Study, plan: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a plan for the versions that were read and those that are new."""
    notes = now["notes"] if now["first"] == plan["first"] else plan["notes"]
    if study.versions.search is not None:
        searches = [*plan.get("searches", [[plan["first"], plan["last"]]]), [plan["last"], now["last"]]]
        return {"searches": searches, "last": now["last"], "notes": notes} if now["last"] > plan["last"] else {}
    before, wanted = planned_versions(plan), planned_versions(now)
    reached = max((version for version in before if version <= plan["head"]), default=plan["head"])
    new = (
        wanted[bisect_right(wanted, reached) :]
        if isinstance(wanted, range)
        else [version for version in wanted if version > reached]
    )
    if not new:
        return {}
    if isinstance(before, range) and isinstance(new, range) and (new[0] - before[-1], new.step) == (before.step,) * 2:
        return {"last": new[-1], "notes": notes}
    versions = sorted({*before, *new})
    return {"first": versions[0], "last": versions[-1], "versions": versions, "step": None, "notes": notes}


def planned_versions(plan: Mapping[str, Any]) -> Sequence[int]:
    """Return the versions of a resolved plan at which each view is read."""
    if plan["versions"] is not None:
        return list(plan["versions"])
    return range(plan["first"], plan["last"] + 1, plan["step"])


def committed_range(plan: Mapping[str, Any], call: Call) -> tuple[int, int]:
    """Return the first and last version of the transactions that a committed call reads."""
    first, last = plan.get("committed", {}).get(call.fingerprint) or (plan["first"], plan["last"])
    return first, last


def last_version(plan: Mapping[str, Any], call: Call) -> int:
    """Return the last version at which a run reads a call."""
    if call.source == Source.COMMITTED:
        return committed_range(plan, call)[1]
    return int(plan["head" if call.source == Source.SIMULATE else "last"])


def is_sampled(plan: Mapping[str, Any], call: Call) -> bool:
    """Return whether only a sample of the transactions of a committed call's range is read."""
    count = plan.get("committed_sample", {}).get(call.fingerprint)
    return count is not None and count < len(_pages_in(*committed_range(plan, call)))


def committed_ranges(plan: Mapping[str, Any], call: Call) -> list[tuple[int, int]]:
    """Return the versions that a committed call reads in any case: its range, or the evenly spaced pages of a sample.

    The pages of samples begin at multiples of 100, so that all calls share them.
    """
    first, last = committed_range(plan, call)
    if not is_sampled(plan, call):
        return [(first, last)]
    numbers = _pages_in(first, last)
    chosen = evenly(numbers[0], numbers[-1], plan["committed_sample"][call.fingerprint])
    return [(max(first, number * PAGE), min(last, number * PAGE + PAGE - 1)) for number in chosen]


def _pages_in(first: int, last: int) -> range:
    return range(first // PAGE, last // PAGE + 1)


def joined_ranges(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ranges of versions sorted, with those that overlap or touch joined; both ends are included."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(joined[-1][1], last)
        else:
            joined.append((first, last))
    return joined


def committed_pages(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the pages (first version, number of versions) that contain every version of some ranges, each once."""
    pages: list[tuple[int, int]] = []
    reached = -1
    for first, last in sorted(ranges):
        starts = range(max(first, reached + 1), last + 1, PAGE)
        pages += [(start, min(PAGE, last + 1 - start)) for start in starts]
        reached = max(reached, last)
    return pages


def _check_calls(study: Study, node: Node, resolved: Mapping[str, Any]) -> None:
    """Raise StudyError for all calls that fit the code at none of the versions at which they are read."""
    head, oldest = resolved["head"], resolved["oldest"]
    problems: dict[str, str] = {}
    for call in study.calls:
        versions = _versions_of(call, study, resolved)
        request = call.request.payload if isinstance(call.request, SimulationRequest) else call.request
        if isinstance(request, ViewFunction | EntryFunction):
            there = readable(versions, oldest=oldest, head=head)
            problem = call_problem(node, request, there, arguments=not call.reads_committed)
            if problem is not None:
                problems[call.name] = problem
    if problems:
        on = f"{node.name}: " if len(study.nodes) > 1 else ""
        raise StudyError(on + problem_list(problems, len(study.calls)))


def _versions_of(call: Call, study: Study, resolved: Mapping[str, Any]) -> Sequence[int]:
    """Return the versions of whose code a call is part: of a search, and of committed transactions, a whole range."""
    if call.source == Source.SIMULATE:
        return [resolved["head"]]
    if call.source == Source.COMMITTED:
        first, last = committed_range(resolved, call)
        return range(first, last + 1)
    if study.versions.search is not None:
        return range(resolved["first"], resolved["last"] + 1)
    return planned_versions(resolved)


def _out_of_reach(versions: Sequence[int], *, head: int, oldest: int) -> list[str]:
    """Return notes about listed versions that cannot be read: they become rows with the node's error."""
    pruned = sum(version < oldest for version in versions)
    beyond = sum(version > head for version in versions)
    gone = f"{pruned} of {len(versions)} listed versions: pruned, the oldest is {oldest}; their rows have an error"
    early = f"{beyond} of {len(versions)} listed versions: above the head {head}; their rows have an error"
    return [text for count, text in ((pruned, gone), (beyond, early)) if count]


MAX_OUTWARD_PAGES = 4_096
"""Pages that the calls of which a sample is read are read around the changes of the timeline at most, all together."""
MAX_FURTHER_READS = 400
"""Readings of a view, beside those of its version plan, that locate its steps.

A step between two readings a million versions apart takes 20 of them. A call that drifts has a step between nearly all
its readings, so without a limit it would be read at nearly every version.
"""
BYTES: dict[str, int] = {Source.VIEW: 1_000, Source.SIMULATE: 10_000, Source.COMMITTED: 5_400 * PAGE}
"""Assumed bytes of one request and its answer with headers; 5.4 kB is the mean of 10,000 committed transactions."""
MAX_CALLS_PER_SECOND = 2_000.0
"""Maximum rate at which one machine turns answers into rows; a distant node is slower, due to its latency."""


@dataclass(frozen=True, slots=True)
class CallPlan:
    """One call of a study on one node.

    Attributes
    ----------
    label, source : str
    first, last : int
        Ledger versions between which it is read, both included.
    requests, requests_most : int
        Minimum and maximum number of requests; they differ for a step search, and for a sample of committed
        transactions, since it is not known how many changes there are to read around.
    bytes, bytes_most : int
        Bytes sent and received, from an assumed size of each request and answer.
    further_requests : int
        Maximum number of further requests, which locate the steps between two versions of a plan. They are not part of
        the other numbers, since a call without steps needs none.
    """

    label: str
    source: str
    first: int
    last: int
    requests: int
    requests_most: int
    bytes: int
    bytes_most: int
    further_requests: int = 0


@dataclass(frozen=True, slots=True)
class NodePlan:
    """A study on one node.

    Attributes
    ----------
    node : str
    node_build : str or None
    model : bool
        True for the embedded node, whose gas is a model.
    chain_id, head, oldest : int
        The chain; the newest and the oldest version of the node.
    latency_s : float
        Measured time of one ``GET /v1`` in seconds.
    in_flight : int
        Maximum number of requests in flight.
    pace : float or None
        Maximum requests per second, as configured.
    rounds : int
        Maximum number of rounds of a step search, each of which needs the answers of the one before; 0 without a
        search.
    pages, pages_most : int
        Minimum and maximum number of pages of committed transactions, which all calls of them share.
    calls : tuple of CallPlan
    notes : tuple of str
        What is pruned, or does not exist yet.
    """

    node: str
    node_build: str | None
    model: bool
    chain_id: int
    head: int
    oldest: int
    latency_s: float
    in_flight: int
    pace: float | None
    rounds: int
    pages: int
    pages_most: int
    calls: tuple[CallPlan, ...]
    notes: tuple[str, ...]

    @property
    def per_second(self) -> float:
        """Expected requests per second: limited by the pace, by the latency, or by this machine."""
        return min(self.pace or MAX_CALLS_PER_SECOND, self.in_flight / max(self.latency_s, 1e-6), MAX_CALLS_PER_SECOND)

    @property
    def requests(self) -> tuple[int, int]:
        """Minimum and maximum number of requests; calls of committed transactions share their pages."""
        pages = (self.pages, self.pages_most)
        return _summed([*((call.requests, call.requests_most) for call in self._own()), pages])

    @property
    def further_requests(self) -> int:
        """Maximum number of requests that locate the steps between two versions of a plan, beside `requests`."""
        return sum(call.further_requests for call in self.calls)

    @property
    def bytes(self) -> tuple[int, int]:
        """Minimum and maximum number of bytes."""
        size = BYTES[Source.COMMITTED]
        pages = (self.pages * size, self.pages_most * size)
        return _summed([*((call.bytes, call.bytes_most) for call in self._own()), pages])

    def _own(self) -> list[CallPlan]:
        return [call for call in self.calls if call.source != Source.COMMITTED]

    @property
    def seconds(self) -> tuple[float, float]:
        """Minimum and maximum number of seconds."""
        least, most = (count / self.per_second for count in self.requests)
        return least, most + self.rounds * self.latency_s


@dataclass(frozen=True, repr=False)
class Plan:
    """What a study would send to each node.

    Attributes
    ----------
    title : str
    nodes : tuple of NodePlan

    Examples
    --------
    >>> from toolkit import Study, ViewFunction
    >>> supply = ViewFunction("0x1::coin::supply", type_arguments=["0x1::aptos_coin::AptosCoin"])
    >>> plan = Study(calls=[supply], versions="0:-1/50").plan()
    >>> plan.requests, plan.further_requests
    ((50, 50), 400)
    """

    title: str
    nodes: tuple[NodePlan, ...]

    @property
    def requests(self) -> tuple[int, int]:
        """Minimum and maximum number of requests, over all nodes."""
        return _summed([node.requests for node in self.nodes])

    @property
    def further_requests(self) -> int:
        """Maximum number of requests that locate the steps between two versions of a plan, beside `requests`."""
        return sum(node.further_requests for node in self.nodes)

    @property
    def bytes(self) -> tuple[int, int]:
        """Minimum and maximum number of bytes, over all nodes."""
        return _summed([node.bytes for node in self.nodes])

    @property
    def seconds(self) -> tuple[float, float]:
        """Minimum and maximum number of seconds; nodes are read one after another."""
        both = [node.seconds for node in self.nodes]
        return sum(least for least, _ in both), sum(most for _, most in both)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is pruned or does not exist yet, by node."""
        return tuple(f"{node.node}: {note}" for node in self.nodes for note in node.notes)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per node and call: versions, minimum and maximum number of requests and bytes."""
        rows = [{"node": node.node, **asdict(call)} for node in self.nodes for call in node.calls]
        return rows_frame(PLAN, {name: [row[name] for row in rows] for name in PLAN.names})

    def document(self) -> dict[str, Any]:
        """Return the plan as values that JSON can represent."""
        nodes = [
            asdict(node)
            | {"requests": list(node.requests), "further_requests": node.further_requests}
            | {"bytes": list(node.bytes), "seconds": [*map(_rounded, node.seconds)]}
            for node in self.nodes
        ]
        return {
            "title": self.title,
            "requests": list(self.requests),
            "further_requests": self.further_requests,
            "bytes": list(self.bytes),
            "seconds": [*map(_rounded, self.seconds)],
            "assumed_bytes_per_request": dict(BYTES),
            "nodes": nodes,
        }

    def __repr__(self) -> str:
        return plan_text(self)

    def _repr_html_(self) -> str:
        return plan_html(self)


def plan_study(study: Study, node: Node | None) -> Plan:
    """Return the plan of a study; see `Study.plan`."""
    with ExitStack() as stack:
        nodes = [node] if node is not None else connected(study, stack)
        return Plan(study.title, tuple(_node_plan(study, reached) for reached in nodes))


def _node_plan(study: Study, node: Node) -> NodePlan:
    latency_s = _latency_s(node)
    resolved = resolve_study(study, node)
    search = study.versions.search
    span = resolved["last"] - resolved["first"] + 1
    cell = span / max(1, search.initial - 1) if search else 1
    pages, pages_most = _page_counts(resolved, [call for call in study.calls if call.source == Source.COMMITTED])
    return NodePlan(
        node=resolved["node"],
        node_build=resolved["node_build"],
        model=resolved["model"],
        chain_id=resolved["chain_id"],
        head=resolved["head"],
        oldest=resolved["oldest"],
        latency_s=latency_s,
        in_flight=node.max_in_flight,
        pace=node.requests_per_second,
        rounds=1 + ceil(log2(max(1, cell))) if search else 0,
        pages=pages,
        pages_most=pages_most,
        calls=tuple(_call_plan(study, call, resolved) for call in study.calls),
        notes=tuple(resolved["notes"]),
    )


def _page_counts(resolved: Mapping[str, Any], calls: Sequence[Call]) -> tuple[int, int]:
    """Return the minimum and maximum number of pages that some calls of committed transactions read together."""
    least = len(committed_pages(joined_ranges(one for call in calls for one in committed_ranges(resolved, call))))
    if not any(is_sampled(resolved, call) for call in calls):
        return least, least
    whole = joined_ranges(committed_range(resolved, call) for call in calls)
    return least, max(least, min(sum(len(_pages_in(*one)) for one in whole), least + MAX_OUTWARD_PAGES))


def _latency_s(node: Node) -> float:
    """Measure the time of one answer; a node with a pace is asked once, since further times would include the pace."""
    times = []
    for _ in range(1 if node.requests_per_second else 3):
        began = perf_counter()
        node.info()
        times.append(perf_counter() - began)
    return min(times)


def _call_plan(study: Study, call: Call, resolved: Mapping[str, Any]) -> CallPlan:
    first, last = resolved["first"], resolved["last"]
    search = study.versions.search
    if call.source == Source.SIMULATE:
        first = last = resolved["head"]
        least = most = 1
    elif call.source == Source.COMMITTED:
        first, last = committed_range(resolved, call)
        least, most = _page_counts(resolved, [call])
    elif search is not None:
        least = len(evenly(first, last, search.initial))
        most = min(search.max_requests, last + 1 - first)
    else:
        least = most = len(planned_versions(resolved))
    size, further = BYTES[call.source], 0
    if call.source == Source.VIEW and search is None:
        further = min(MAX_FURTHER_READS, last + 1 - first - len(set(planned_versions(resolved))))
    return CallPlan(call.name, call.source, first, last, least, most, least * size, most * size, further)


def _summed(pairs: Sequence[tuple[int, int]]) -> tuple[int, int]:
    return sum(least for least, _ in pairs), sum(most for _, most in pairs)


def _rounded(seconds: float) -> float:
    return round(seconds, 3)


class Shard(NamedTuple):
    """The part of a study that a run reads.

    Views of a version plan and committed transactions are split into contiguous ranges of versions. Each step search
    and each simulation belongs to one shard.

    Attributes
    ----------
    number : int
        From 1 to `of`.
    of : int
        Number of shards.
    """

    number: int
    of: int

    @classmethod
    def parse(cls, given: Any) -> Shard:
        """Return a shard from ``(2, 5)`` or ``"2/5"``; None is the whole study.

        Raises
        ------
        InputError
            If it has neither form, or its number is not between 1 and the number of shards.
        """
        if given is None:
            return WHOLE
        if isinstance(given, str) and (match := _FORM.fullmatch(given)):
            given = (int(match[1]), int(match[2]))
        if not isinstance(given, list | tuple) or [type(one) for one in given] != [int, int]:
            raise InputError(f"shard: expected a form such as (2, 5) or 2/5, the second of five, got {given!r}")
        shard = cls(*given)
        if not 1 <= shard.number <= shard.of:
            raise InputError(f"shard {shard}: the first number must be from 1 to {max(shard.of, 1)}")
        return shard

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def slice(self, versions: Sequence[T]) -> Sequence[T]:
        """Return the part of sorted versions that the shard reads; each version belongs to exactly one shard."""
        return versions[len(versions) * (self.number - 1) // self.of : len(versions) * self.number // self.of]

    def has(self, place: int) -> bool:
        """Return whether the call at a position of the study belongs to this shard."""
        return place % self.of == self.number - 1


WHOLE = Shard(1, 1)


def check_shardable(study: Study, plans: Sequence[Mapping[str, Any]]) -> None:
    """Check that every machine resolves the study to the same versions.

    Parameters
    ----------
    study : Study
    plans : sequence of mapping
        The study as resolved on each of its nodes.

    Raises
    ------
    StudyError
        If the versions depend on the head, or a bound was clipped: shards would then read different ranges. If a sample
        of committed transactions is read, since what is read around a change depends on what was found there.
    """
    if all(call.source == Source.SIMULATE for call in study.calls):
        return
    for call in study.calls:
        if any(is_sampled(plan, call) for plan in plans):
            raise StudyError(
                f"call {call.name!r} reads a sample of its transactions, {call.versions!r}, which cannot be divided "
                "into shards: a sample is small, so run the study whole, or give the call a range without /N"
            )
    ranges = [call.versions for call in study.calls if call.versions is not None]
    choices = [study.versions.find_steps or study.versions.plan, *ranges]
    wanted = next((choice for choice in choices if _counts_from_head(choice)), None)
    for plan in plans:
        held = f"{plan['node']} has versions {plan['oldest']} to {plan['head']} now"
        if wanted is not None:
            raise StudyError(
                f"all shards must read the same versions, but {wanted!r} counts from the head, which moves; write "
                f"both bounds as numbers, such as {plan['first']}:{plan['last']} ({held})"
            )
        if plan["notes"]:
            raise StudyError(
                f"all shards must read the same versions, but {'; '.join(plan['notes'])}; write bounds that every "
                f"machine can read ({held})"
            )


def _counts_from_head(wanted: str | Sequence[int] | None) -> bool:
    if isinstance(wanted, str):
        parsed = VersionPlan.parse(wanted)
        return any(isinstance(bound, int) and bound < 0 for bound in (parsed.first, parsed.last))
    return wanted is not None and any(version < 0 for version in wanted)


def shard_calls(study: Study, shard: Shard, source: str) -> list[Call]:
    """Return the calls of a source that belong to a shard as a whole."""
    return [call for place, call in enumerate(study.calls) if call.source == source and shard.has(place)]


def planned_of(plan: Mapping[str, Any], shard: Shard) -> Sequence[int]:
    """Return the versions of a resolved plan that a shard reads for each view, sorted and without duplicates."""
    versions = planned_versions(plan)
    return shard.slice(versions if isinstance(versions, range) and versions.step > 0 else sorted(set(versions)))


def shard_range(plan: Mapping[str, Any], shard: Shard) -> Sequence[int]:
    """Return the range of versions in which a shard reads committed transactions."""
    first, last = plan.get("committed_span") or (plan["first"], plan["last"])
    return shard.slice(range(first, last + 1))


def next_versions(study: Study, plan: Mapping[str, Any], outcomes: Mapping[int, Outcome | None]) -> list[int]:
    """Return the versions that the step search of a call reads next; an empty list if the search is complete."""
    search = study.versions.search
    assert search is not None  # noqa: S101 - only called for studies with a step search  # nosec B101
    for first, last in plan.get("searches") or [[plan["first"], plan["last"]]]:
        inside = {version: outcome for version, outcome in outcomes.items() if first <= version <= last}
        if found := next_round(inside, first=first, last=last, initial=search.initial, limit=search.max_requests):
            return found
    return []


def further_versions(outcomes: Mapping[int, Outcome | None], planned: Sequence[int], room: int) -> list[int]:
    """Return the versions to read next to locate the steps of a call that was read by a version plan.

    Parameters
    ----------
    outcomes : mapping of version to outcome
        The outcomes so far; None is a read without an answer.
    planned : sequence of int
        The versions of the plan among them, sorted.
    room : int
        Number of further readings that are allowed.

    Returns
    -------
    list of int
        Sorted; empty if every step is located, or no other one can be.

    Notes
    -----
    A narrower interval explains no more, so a pair of versions is halved only if there is room to halve it down to
    adjacent ones. The narrowest pair between two versions of the plan comes first, so that what was begun is ended; the
    largest changes of the plan first. The other pairs, of calls that change more than once between two versions of the
    plan, get what room is left.
    """
    waiting: dict[int, list[tuple[int, float, int]]] = {}
    for (low, high), middle in open_pairs(outcomes):
        ends = outcomes[low], outcomes[high]
        if not any(outcome and outcome[-1] in MADE_BY_NODE for outcome in ends):
            waiting.setdefault(bisect_right(planned, low), []).append((high - low, -_change_size(*ends), middle))
    first: list[tuple[float, tuple[int, float, int]]] = []
    others: list[tuple[int, float, int]] = []
    for place, pairs in waiting.items():
        # The halves of a pair differ in width by at most 1: the one that changes more goes on.
        narrow = [pair for pair in pairs if pair[0] <= min(pairs)[0] + 1]
        best = min(narrow, key=lambda pair: pair[1:])
        first.append((-_change_size(outcomes[planned[place - 1]], outcomes[planned[place]]), best))
        others += [pair for pair in pairs if pair is not best]
    chosen: list[int] = []
    for width, _, middle in [*(pair for _, pair in sorted(first)), *sorted(others)]:
        needed = ceil(log2(width))
        if needed <= room:
            chosen.append(middle)
            room -= needed
    return sorted(chosen)


def _change_size(before: Outcome | None, after: Outcome | None) -> float:
    """Return by how many gas units two outcomes differ; infinity if only one of them has gas."""
    if before is None or after is None or before[0] is None or after[0] is None:
        return inf
    return float(abs(before[0] - after[0]))
