"""What a study reads on one node: its plan, the versions and calls that exist there, and what is new when it grows."""

from __future__ import annotations

import json
from bisect import bisect_right
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import structs

from toolkit.client._arguments import call_problem, problem_lines, readable
from toolkit.client._reads import PAGE, Anchor, LedgerAnchor, LedgerGuard
from toolkit.client._versions import ResolvedPlan, VersionPlan, evenly, next_round, resolve_versions
from toolkit.errors import StudyError
from toolkit.gas._calls import KINDS
from toolkit.gas._observations import ReadAt, digest_of
from toolkit.gas._origin import Origin
from toolkit.move import FunctionId
from toolkit.move._ids import wire_address
from toolkit.wire import EntryFunction, SimulationRequest, ViewFunction

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from toolkit.client._node import Node
    from toolkit.client._versions import FindSteps
    from toolkit.gas._calls import Call
    from toolkit.gas._steps import Outcome
    from toolkit.gas._study import Study


Range = tuple[int, int]
MAX_VERSION = 2**63 - 1


def joined_ranges(ranges: Iterable[Range]) -> list[Range]:
    """Return ranges of versions sorted, with those that overlap or touch joined."""
    joined: list[Range] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(joined[-1][1], last)
        else:
            joined.append((first, last))
    return joined


def without(ranges: Iterable[Range], others: Iterable[Range]) -> list[Range]:
    """Return the versions in `ranges` that are not in `others`, as joined ranges."""
    taken = joined_ranges(others)
    starts = [0, *(high + 1 for _, high in taken)]
    ends = [*(low - 1 for low, _ in taken), MAX_VERSION]
    free = list(zip(starts, ends, strict=True))
    return [one for first, last in joined_ranges(ranges) for one in within(free, first, last)]


def within(ranges: Iterable[Range], first: int, last: int) -> list[Range]:
    """Return the parts of ranges that are between two versions."""
    clipped = ((max(low, first), min(high, last)) for low, high in ranges)
    return [one for one in clipped if one[0] <= one[1]]


def page_numbers(first: int, last: int) -> range:
    """Return the numbers of the pages that contain a range; pages begin at multiples of 100."""
    return range(first // PAGE, last // PAGE + 1)


def pages_of(ranges: Iterable[Range]) -> list[tuple[int, int]]:
    """Return the pages (first version, number of versions) that contain every version of some ranges, each once."""
    pages: list[tuple[int, int]] = []
    reached = -1
    for first, last in sorted(ranges):
        pages += [(start, min(PAGE, last + 1 - start)) for start in range(max(first, reached + 1), last + 1, PAGE)]
        reached = max(reached, last)
    return pages


# Keys that do not change what is observed: the title, the rules of the gate and the pace may change while a run is
# resumed.
# Labels do not either; an unlabelled call has the label that its run has, which depends on the toolkit's version.
_NOT_OBSERVED = frozenset({"title", "thresholds", "waiver", "allow", "requests_per_second", "label"})


def study_digest(document: Mapping[str, Any]) -> str:
    """Return the digest of what a study observes, from its document: 32 hex digits."""

    def observed(table: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in table.items() if name not in _NOT_OBSERVED}

    calls = [observed(call) | _short_names(call) for call in document.get("call", ())]
    text = json.dumps(observed(document) | {"call": calls}, sort_keys=True, separators=(",", ":"))
    return digest_of(text)


def _short_names(call: Mapping[str, Any]) -> dict[str, str]:
    """Return the function and the accounts of a call without leading zeros, which people may write or leave out."""
    names = {name: FunctionId.parse(call[name]).wire for name in KINDS if name in call}
    return names | {name: wire_address(call[name]) for name in ("sender", "fee_payer") if name in call}


def calls_read(study: Study, at: ReadAt) -> list[Call]:
    """Return the calls that are read at versions, at the head, or in committed transactions."""
    return [call for call in study.calls if call.source.read_at is at]


class NodePlan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A study resolved on one node: what is read there. The plan stays the same when the run is resumed.

    Attributes
    ----------
    node : str
    node_build : str or None
    model : bool
        True for the embedded node, whose gas is a model.
    chain_id, head, oldest : int
        Chain id, and newest and oldest ledger version of the node.
    oldest_claimed : int or None
        The oldest version that the node reports; a probe may have found a later one.
    first, last : int
        First and last version at which views are read.
    versions : tuple of int or None
        The versions at which views are read, if the study lists them. Otherwise, a range with a `step` or a step search
        determines them.
    step : int or None
    searches : tuple of (int, int)
        The ranges of an extended step search, one for each extension.
    committed : dict of str to (int, int)
        The ranges of committed calls that have their own, by fingerprint.
    committed_sample : dict of str to int
        The number of pages of each call of which a sample is read, by fingerprint.
    committed_span : (int, int) or None
        The first and the last version of all these ranges; None without any.
    notes : tuple of str
        Which versions were clipped, and which cannot be read.
    anchor : Anchor or None
        None if the transaction could not be read.
    extended_from : int or None
        The head up to which the run was complete before it was extended.
    gone : dict of str to str
        Why calls that are known to have existed no longer fit the code, by fingerprint.
    """

    node: str
    node_build: str | None
    model: bool
    chain_id: int
    head: int
    oldest: int
    first: int
    last: int
    versions: tuple[int, ...] | None
    step: int | None
    committed: dict[str, Range]
    notes: tuple[str, ...]
    anchor: Anchor | None
    oldest_claimed: int | None = None
    searches: tuple[Range, ...] = ()
    committed_sample: dict[str, int] = {}
    committed_span: Range | None = None
    extended_from: int | None = None
    gone: dict[str, str] = {}

    @property
    def origin(self) -> Origin:
        """What all observations of the node share."""
        return Origin(self.node, self.node_build, self.model, self.chain_id)

    @property
    def whole(self) -> range:
        """All versions between the first and the last at which views are read."""
        return range(self.first, self.last + 1)

    def planned(self) -> Sequence[int]:
        """Return the versions of a version plan, at which each view is read, sorted and without duplicates."""
        if self.versions is not None:
            return sorted(set(self.versions))
        return self.whole[:: self.step]

    def next_versions(self, search: FindSteps, outcomes: Mapping[int, Outcome | None]) -> list[int]:
        """Return the versions that the step search of a call reads next; an empty list if the search is complete."""
        for first, last in self.searches or [(self.first, self.last)]:
            inside = {version: outcome for version, outcome in outcomes.items() if first <= version <= last}
            if found := next_round(inside, first=first, last=last, initial=search.initial, limit=search.max_requests):
                return found
        return []

    def range_of(self, call: Call) -> Range:
        """Return the first and last version at which a run reads a call, or of the transactions that it observes."""
        if call.source.read_at is ReadAt.HEAD:
            return self.head, self.head
        return self.committed.get(call.fingerprint, (self.first, self.last))

    def only_version(self, call: Call) -> int | None:
        """Return the only version that is read of a committed call, such as the head; None if there are more."""
        first, last = self.range_of(call)
        return first if first == last and call.source.read_at is ReadAt.TRANSACTIONS else None

    def span_of(self, calls: Sequence[Call]) -> Range | None:
        """Return the first and last version of the ranges of committed calls; None if there are none."""
        ranges = [self.range_of(call) for call in calls]
        return (min(first for first, _ in ranges), max(last for _, last in ranges)) if ranges else None

    def is_sampled(self, call: Call) -> bool:
        """Return whether only a sample of the transactions of a committed call's range is read."""
        count = self.committed_sample.get(call.fingerprint)
        return count is not None and count < len(page_numbers(*self.range_of(call)))

    def ranges_of(self, call: Call) -> list[Range]:
        """Return the versions that a committed call always reads: its range, or the evenly spaced pages of a sample.

        The pages of samples begin at multiples of 100, so that all calls share them.
        """
        first, last = self.range_of(call)
        if not self.is_sampled(call):
            return [(first, last)]
        numbers = page_numbers(first, last)
        chosen = evenly(numbers[0], numbers[-1], self.committed_sample[call.fingerprint])
        return [(max(first, number * PAGE), min(last, number * PAGE + PAGE - 1)) for number in chosen]


def one_version_text(version: int) -> str:
    """Return why the committed transactions of a call show nothing: its plan reads a single version."""
    return (
        f'the plan reads only the transaction at version {version:,}; give the call a range of versions, such as "0:-1"'
    )


# on a node -----------------------------------------------------------------------------------------------------------


P = TypeVar("P", bound=NodePlan)


def resolve(study: Study, node: Node, *, existed: Collection[str] = ()) -> NodePlan:
    """Resolve a study's versions on one node.

    Parameters
    ----------
    study : Study
    node : Node
    existed : collection of str, default ()
        Labels of calls that are known to have existed: if they are gone, the plan says so instead of raising.

    Returns
    -------
    NodePlan
        The plan, without an anchor.

    Raises
    ------
    InputError
        If the versions cannot be read on this node.
    StudyError
        If calls fit the code at none of the versions at which they are read; the message names all of them.
    """
    info = node.info()
    head, claimed = info.ledger.version, info.ledger.oldest_version
    oldest = node.oldest_readable(info.ledger)

    def resolved(wanted: VersionPlan | Sequence[int | datetime], oldest: int) -> ResolvedPlan:
        at = partial(node.first_from, ledger=info.ledger)
        return resolve_versions(wanted, head=head, oldest=oldest, claimed=claimed, version_at=at)

    wanted = study.versions.parsed
    found = resolved(wanted, oldest)
    versions = found.versions
    notes = [*found.notes]
    if not isinstance(wanted, VersionPlan):  # ranges are clipped; listed versions become rows with the node's error
        pruned, beyond = sum(at < oldest for at in versions), sum(at > head for at in versions)
        for count, why in ((pruned, f"pruned, the oldest is {oldest:,}"), (beyond, f"above the head {head:,}")):
            if count:
                notes.append(f"{count:,} of {len(versions):,} listed versions: {why}; each becomes a row with an error")
    committed, sample = {}, {}
    for call in study.calls:
        if (given := call.own_range) is not None:
            own = resolved(replace(given, count=None), claimed)
            committed[call.fingerprint] = own.versions[0], own.versions[-1]
            if given.count is not None:
                sample[call.fingerprint] = given.count
            notes += [f"{call.name}: {note}" for note in own.notes]
    plan = NodePlan(
        node=node.name,
        node_build=info.git_hash,
        model=(info.git_hash or "").startswith("embedded"),
        chain_id=info.ledger.chain_id,
        head=head,
        oldest=oldest,
        oldest_claimed=claimed,
        first=min(versions, default=head),
        last=max(versions, default=head),
        versions=None if study.versions.search or isinstance(versions, range) else tuple(versions),
        step=versions.step if isinstance(versions, range) else None,
        committed=committed,
        committed_sample=sample,
        notes=tuple(notes),
        anchor=None,
    )
    gone, paid = _check_calls(study, node, plan, existed), calls_read(study, ReadAt.TRANSACTIONS)
    alone = ((call.name, plan.only_version(call)) for call in paid if call.own_range is None)
    notes += [f"{name}: {one_version_text(version)}" for name, version in alone if version is not None]
    return structs.replace(plan, notes=tuple(notes), gone=gone, committed_span=plan.span_of(paid))


def _check_calls(study: Study, node: Node, plan: NodePlan, existed: Collection[str]) -> dict[str, str]:
    """Raise StudyError for all calls that fit the code at none of the versions at which they are read.

    Returns the problems of those that existed, by fingerprint.
    """
    problems: dict[str, str] = {}
    gone: dict[str, str] = {}
    for call in study.calls:
        request = call.request.payload if isinstance(call.request, SimulationRequest) else call.request
        if isinstance(request, ViewFunction | EntryFunction):
            there = readable(_versions_of(call, study, plan), oldest=plan.oldest, head=plan.head)
            executed = call.source.read_at is not ReadAt.TRANSACTIONS  # by this run, with the arguments of the call
            if (problem := call_problem(node, request, there, arguments=executed)) is not None:
                known, key = (gone, call.fingerprint) if call.name in existed else (problems, call.name)
                known[key] = problem
    if problems:
        head, *lines = problem_lines(problems, len(study.calls))
        raise StudyError(f"{node.name}: {head}" if len(study.nodes) > 1 else head, *lines)
    return gone


def _versions_of(call: Call, study: Study, plan: NodePlan) -> Sequence[int]:
    """Return the versions at which a call may fit the code: a whole range for searches and committed transactions."""
    if call.source.read_at is ReadAt.VERSIONS and study.versions.search is None:
        return plan.planned()
    first, last = plan.range_of(call)
    return range(first, last + 1)


def anchored(node: Node, plan: P) -> P:
    """Return a plan with the transaction by which its ledger is recognised: the last one in the range that is read."""
    version = min(max(plan.last, *(plan.committed_span or [0])), plan.head)
    if (found := LedgerAnchor.taken(node, version).anchor) is not None:
        return structs.replace(plan, anchor=found)
    note = (
        f"transaction {version:,} could not be read, so only the chain id, the head and the oldest version show "
        "whether the node serves the same ledger during the whole run"
    )
    return structs.replace(plan, anchor=None, notes=(*plan.notes, note))


def ledger_guard(node: Node, plan: NodePlan) -> LedgerGuard:
    """Return the guard that compares a node's ledger with the ledger on which a plan was resolved."""
    return LedgerGuard(node, LedgerAnchor(plan.chain_id, plan.head, plan.oldest_claimed, plan.anchor))


def calls_at_head(study: Study, plan: NodePlan) -> list[Call]:
    """Return the calls that a run reads up to the head, so that there is more to read when the head moves."""
    of_plan = _ends_at_head(study.versions.parsed, plan.last, plan.head)
    return [
        call
        for call in study.calls
        if call.source.read_at is ReadAt.HEAD
        or (of_plan if call.own_range is None else _ends_at_head(call.own_range, plan.range_of(call)[1], plan.head))
    ]


def _ends_at_head(wanted: VersionPlan | Sequence[int | datetime], last: int, head: int) -> bool:
    """Return whether versions that were resolved to `last` end at the head, or were clipped to it."""
    if not isinstance(wanted, VersionPlan):
        return any(isinstance(version, int) and version < 0 for version in wanted)
    end = wanted.last
    return end < 0 or end > head if isinstance(end, int) else last == head


def extended(study: Study, node: Node, plan: P) -> P:
    """Extend the plan of a complete run with what is new on the node; returns the same plan if nothing is new.

    Versions that were read stay in the plan. The study is resolved again, and the versions above the last version of
    the run are added. A step search gets a further range each time. Simulations are made again, at the new head.

    Raises
    ------
    InputError, StudyError
        As in `resolve`; also if committed transactions between the run and the new range would be skipped, or
        transactions in the range of the run have been pruned.
    """
    moving = calls_at_head(study, plan)
    if not moving or node.info().ledger.version <= plan.head:
        return plan
    now = resolve(study, node)
    ends = [(call, _further_range(call, plan, now)) for call in moving if call.source.read_at is ReadAt.TRANSACTIONS]
    own = {call.fingerprint: span for call, span in ends if call.own_range is not None}
    follow = any(call.own_range is None and call.source.read_at is not ReadAt.HEAD for call in moving)
    seen = {name: getattr(now, name) for name in ("head", "oldest", "oldest_claimed", "node_build")}
    new = _further(study, plan, now) if follow else {}
    grown = structs.replace(plan, **seen, extended_from=plan.head, committed=plan.committed | own, **new)
    grown = structs.replace(grown, committed_span=grown.span_of(calls_read(study, ReadAt.TRANSACTIONS)))
    read = ("first", "last", "versions", "step", "searches", "committed")
    simulated = any(call.source.read_at is ReadAt.HEAD for call in moving)
    if not simulated and all(getattr(grown, name) == getattr(plan, name) for name in read):
        return plan
    found = anchored(node, grown)
    return found if found.anchor else grown


def _further_range(call: Call, plan: NodePlan, now: NodePlan) -> Range:
    """Return the range of a committed call, from its start in the run to its new end."""
    (first, last), (start, end) = plan.range_of(call), now.range_of(call)
    if start > last + 1 or now.oldest > max(first, plan.oldest):
        raise StudyError(
            f"call {call.name!r}: the run has transactions {first:,} to {last:,}, but the node now offers "
            f"{start:,} to {end:,}, and the two cannot be judged together. Start over with --fresh (fresh=True in "
            "Python), or choose another folder"
        )
    return first, end


def _further(study: Study, plan: NodePlan, now: NodePlan) -> dict[str, Any]:
    """Return the fields of a plan that covers the versions already read and the new versions."""
    notes = now.notes if now.first == plan.first else plan.notes
    if study.versions.search is not None:
        searches = (*(plan.searches or [(plan.first, plan.last)]), (plan.last, now.last))
        return {"searches": searches, "last": now.last, "notes": notes} if now.last > plan.last else {}
    before, wanted = plan.planned(), now.planned()
    reached = max((version for version in before if version <= plan.head), default=plan.head)
    new = wanted[bisect_right(wanted, reached) :]
    if not new:
        return {}
    if isinstance(before, range) and isinstance(new, range) and (new[0] - before[-1], new.step) == (before.step,) * 2:
        return {"last": new[-1], "notes": notes}
    versions = tuple(sorted({*before, *new}))
    return {"first": versions[0], "last": versions[-1], "versions": versions, "step": None, "notes": notes}
