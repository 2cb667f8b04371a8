"""Resolves a study on a node: which versions exist there, which calls do not fit the code, which versions are new."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import structs

from toolkit.client._arguments import call_problem, problem_list, readable
from toolkit.client._reads import LedgerAnchor, LedgerGuard
from toolkit.client._versions import ResolvedPlan, VersionPlan, resolve_versions
from toolkit.errors import StudyError
from toolkit.gas._observations import ReadAt
from toolkit.gas.plan._plan import NodePlan, Range, StudySpec
from toolkit.wire import EntryFunction, SimulationRequest, ViewFunction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.client._node import Node
    from toolkit.gas._calls import Call


P = TypeVar("P", bound=NodePlan)


def resolve(spec: StudySpec, node: Node) -> NodePlan:
    """Resolve a study's versions on one node.

    Parameters
    ----------
    spec : StudySpec
    node : Node

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

    def resolved(wanted: VersionPlan | Sequence[int], oldest: int) -> ResolvedPlan:
        at = partial(node.first_from, ledger=info.ledger)
        return resolve_versions(wanted, head=head, oldest=oldest, claimed=claimed, version_at=at)

    wanted = spec.versions.parsed
    found = resolved(wanted, oldest)
    versions = found.versions
    notes = [*found.notes]
    if not isinstance(wanted, VersionPlan):  # ranges are clipped; listed versions become rows with the node's error
        pruned, beyond = sum(at < oldest for at in versions), sum(at > head for at in versions)
        for count, why in ((pruned, f"pruned, the oldest is {oldest:,}"), (beyond, f"above the head {head:,}")):
            if count:
                notes.append(f"{count:,} of {len(versions):,} listed versions: {why}; each becomes a row with an error")
    committed, sample = {}, {}
    for call in spec.calls:
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
        versions=None if spec.search or isinstance(versions, range) else tuple(versions),
        step=versions.step if isinstance(versions, range) else None,
        committed=committed,
        committed_sample=sample,
        notes=tuple(notes),
        anchor=None,
    )
    _check_calls(spec, node, plan)
    return structs.replace(plan, committed_span=plan.span_of(spec.committed))


def _check_calls(spec: StudySpec, node: Node, plan: NodePlan) -> None:
    """Raise StudyError for all calls that fit the code at none of the versions at which they are read."""
    problems: dict[str, str] = {}
    for call in spec.calls:
        request = call.request.payload if isinstance(call.request, SimulationRequest) else call.request
        if isinstance(request, ViewFunction | EntryFunction):
            there = readable(_versions_of(call, spec, plan), oldest=plan.oldest, head=plan.head)
            executed = call.source.read_at is not ReadAt.TRANSACTIONS  # by this run, with the arguments of the call
            if (problem := call_problem(node, request, there, arguments=executed)) is not None:
                problems[call.name] = problem
    if problems:
        on = f"{node.name}: " if len(spec.connections) > 1 else ""
        raise StudyError(on + problem_list(problems, len(spec.calls)))


def _versions_of(call: Call, spec: StudySpec, plan: NodePlan) -> Sequence[int]:
    """Return the versions at which a call may fit the code: a whole range for searches and committed transactions."""
    if call.source.read_at is ReadAt.VERSIONS and spec.search is None:
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


def calls_at_head(spec: StudySpec, plan: NodePlan) -> list[Call]:
    """Return the calls that a run reads up to the head, so that there is more to read when the head moves."""
    of_plan = _ends_at_head(spec.versions.parsed, plan.last, plan.head)
    return [
        call
        for call in spec.calls
        if call.source.read_at is ReadAt.HEAD
        or (of_plan if call.own_range is None else _ends_at_head(call.own_range, plan.range_of(call)[1], plan.head))
    ]


def _ends_at_head(wanted: VersionPlan | Sequence[int], last: int, head: int) -> bool:
    """Return whether versions that were resolved to `last` end at the head, or were clipped to it."""
    if not isinstance(wanted, VersionPlan):
        return any(version < 0 for version in wanted)
    end = wanted.last
    return end < 0 or end > head if isinstance(end, int) else last == head


def extended(spec: StudySpec, node: Node, plan: P) -> P:
    """Extend the plan of a complete run with what is new on the node; returns the same plan if nothing is new.

    Versions that were read stay in the plan. The study is resolved again, and the versions above the last version of
    the run are added. A step search gets a further range each time. Simulations are made again, at the new head.

    Raises
    ------
    InputError, StudyError
        As in `resolve`; also if committed transactions between the run and the new range would be skipped, or
        transactions in the range of the run have been pruned.
    """
    moving = calls_at_head(spec, plan)
    if not moving or node.info().ledger.version <= plan.head:
        return plan
    now = resolve(spec, node)
    ends = [(call, _further_range(call, plan, now)) for call in moving if call.source.read_at is ReadAt.TRANSACTIONS]
    own = {call.fingerprint: span for call, span in ends if call.own_range is not None}
    follow = any(call.own_range is None and call.source.read_at is not ReadAt.HEAD for call in moving)
    seen = {name: getattr(now, name) for name in ("head", "oldest", "oldest_claimed", "node_build")}
    new = _further(spec, plan, now) if follow else {}
    grown = structs.replace(plan, **seen, extended_from=plan.head, committed=plan.committed | own, **new)
    grown = structs.replace(grown, committed_span=grown.span_of(spec.committed))
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


def _further(spec: StudySpec, plan: NodePlan, now: NodePlan) -> dict[str, Any]:
    """Return the fields of a plan that covers the versions already read and the new versions."""
    notes = now.notes if now.first == plan.first else plan.notes
    if spec.search is not None:
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
