"""Simulations at many versions: each request runs on the state of its version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.client._http import served_ledger
from toolkit.errors import ToolkitError
from toolkit.fork._embedded import fork_of
from toolkit.fork._fork import Fork
from toolkit.fork._state import NO_RESULT, LearnedKeys, NodeState, StateSource, prefetch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolkit.fork._fork import ForkSimulation
    from toolkit.wire import SimulationRequest

_BLOCK = 25  # versions whose state is read ahead together; the memory of a block is some megabytes


def simulate_at_versions(
    node: Any, tasks: Sequence[tuple[SimulationRequest, int]]
) -> Iterator[tuple[int, ForkSimulation | ToolkitError]]:
    """Simulate each request on the state of a version, and yield (position, result or error) by version.

    The keys that earlier executions read are read ahead, many versions at once.
    """
    places: dict[int, list[int]] = {}
    for place, (_, version) in enumerate(tasks):
        places.setdefault(version, []).append(place)
    for fork, version in _forks(node, sorted(places)):
        for place in places[version]:
            try:
                if isinstance(fork, ToolkitError):
                    raise fork
                yield place, fork.simulate(tasks[place][0])
            except NO_RESULT as error:
                yield place, error


def _forks(node: Any, versions: Sequence[int]) -> Iterator[tuple[Fork | ToolkitError, int]]:
    """Yield a fork of each version, or why there is none; its state is read ahead."""
    if served_ledger(node.url) is not None:
        for version in versions:
            try:
                yield fork_of(node, version), version
            except NO_RESULT as error:
                yield error, version
        return
    source, learned = StateSource(node), LearnedKeys()
    at = 0
    while at < len(versions):
        # The first version alone: what it reads is read ahead for the others.
        block = versions[at : at + (_BLOCK if at else 1)]
        at += len(block)
        states = [NodeState(source, version) for version in block]
        prefetch((state, learned) for state in states)
        for state in states:
            yield Fork(node, state.version, state=state), state.version
            learned.learn(state.asked)
