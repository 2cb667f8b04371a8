"""Why gas moved. Nothing is guessed: without the reads that tell, a cause is ``unknown``.

The transaction at an exact step is read and judged by what it wrote; an unresolved interval is judged by what differs
between its ends.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from toolkit.client.batch import run_in_threads
from toolkit.gas.causes.between import cause_between
from toolkit.gas.causes.evidence import UNREAD, Evidence, reason
from toolkit.gas.causes.exact import cause_at
from toolkit.gas.steps import Cause
from toolkit.move import FunctionId, ModuleId

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from toolkit.client.node import Node
    from toolkit.gas.steps import Step

__all__ = ["MOST_STEPS", "causes_of"]

MOST_STEPS = 500
"""Steps of a node that are looked into."""
_PRUNED = frozenset({"version_pruned", "block_pruned"})
_RULES = frozenset({"api_disabled", "rejected_by_filter", "version_not_found"})
"""Errors that tell of the node's own rules, not of the ledger."""


def causes_of(
    steps: Sequence[Step],
    node: Node,
    functions: Mapping[str, str],
    *,
    advance: Callable[[int], Any] = lambda _: None,
) -> dict[Step, Cause]:
    """Find out why steps happened.

    Parameters
    ----------
    steps : sequence of Step
        Of one node.
    node : Node
        The node they were read from.
    functions : mapping of str to str
        The function that each step's call calls, by fingerprint.
    advance : callable, optional
        Called with 1 after each step.

    Returns
    -------
    dict of Step to Cause
        One for every step: ``unknown``, with the reason, where the node does not offer the reads. Of more than 500
        steps only the largest are looked into, and the others are ``unknown`` for that reason.

    Notes
    -----
    An exact step costs one transaction, and what that touches at its version and the one before: the schedule, the
    feature flags, modules and package registries. An interval costs the schedule, the flags and the registries of the
    called package and its dependencies, at both ends. Nothing is read twice.
    """
    evidence = Evidence(node)

    def find(step: Step) -> Cause:
        return _cause_of(step, evidence, functions[step.fingerprint])

    looked, left = _largest(steps)
    found = run_in_threads(looked, find, in_flight=node.max_in_flight, advance=advance)
    causes = {looked[place]: cause for place, cause in found}
    if left:
        why = f"not looked for: there are {len(steps):,} steps, and causes are found for the {len(looked):,} largest"
        causes |= dict.fromkeys(left, Cause("unknown", why))
    return causes


def _largest(steps: Sequence[Step]) -> tuple[list[Step], list[Step]]:
    """Split steps into those worth several requests each, and the rest of a call that changes all the time."""
    if len(steps) <= MOST_STEPS:
        return list(steps), []
    # A call that starts or stops answering changes by more than any number.
    by_size = sorted(steps, key=lambda step: -math.inf if step.change is None else -abs(step.change))
    return by_size[:MOST_STEPS], by_size[MOST_STEPS:]


def _cause_of(step: Step, evidence: Evidence, function: str) -> Cause:
    told = _of_the_node(step)
    if told is not None:
        return Cause("node", told)
    at = FunctionId.parse(function)
    called = ModuleId(at.address, at.module)
    try:
        return cause_at(step, evidence, called) if step.exact else cause_between(step, evidence, called)
    except UNREAD as error:
        return Cause("unknown", f"the reads that would tell are not to be had: {reason(error)}")


def _of_the_node(step: Step) -> str | None:
    """Say what about the node itself makes two readings differ; None where nothing does."""
    if step.build_before != step.build_after:
        builds = f"from {step.build_before or 'an unnamed one'} to {step.build_after or 'an unnamed one'}"
        return f"the node's build changed {builds} between the two readings, so they do not compare"
    if step.error_before in _PRUNED:
        return (
            f"the node no longer holds version {step.version_before}: its history begins later, the ledger's does not"
        )
    refused = _RULES & {step.error_before, step.error_after}
    if refused:
        return f"the node itself refused one of the two readings ({', '.join(sorted(str(code) for code in refused))})"
    return None
