"""A study resolved on a node: which versions it reads there, and whether its arguments fit the called functions.

Asks the node for its head, horizon, dates and the called modules only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.client.arguments import encode_arguments, parameter_layouts
from toolkit.client.connect import connect
from toolkit.client.context import function_abi
from toolkit.client.transaction_pages import PAGE
from toolkit.client.versions import Versions, resolve_versions
from toolkit.errors import InputError, NodeError, NodeUnreachable, SchemaError, StudyError
from toolkit.gas.observing import Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from contextlib import ExitStack
    from datetime import datetime

    from toolkit.client.node import Node
    from toolkit.gas.calls import Call
    from toolkit.gas.study import Study

__all__ = ["committed_pages", "committed_range", "connected", "planned_versions", "resolve_study"]


def resolve_study(study: Study, node: Node) -> dict[str, Any]:
    """Resolve a study's versions on one node.

    Parameters
    ----------
    study : Study
    node : Node

    Returns
    -------
    dict
        ``node``, ``node_build``, ``model``, ``chain_id``, ``head``, ``oldest``, ``oldest_claimed`` (without what
        a probe found), ``first``, ``last``, ``versions``
        (listed ones), ``step`` (of a range), ``notes`` (what was clipped or cannot be read), ``committed`` (the ranges
        of calls that have one of their own, by fingerprint) and ``committed_span`` (first and last version of them
        all). What was resolved holds for the whole run, also when it is resumed.

    Raises
    ------
    InputError
        If the versions cannot be read on this node.
    StudyError
        If the arguments of a call do not fit its function at the last version that is read, naming the call.
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
    listed = not isinstance(wanted, str)  # a range is clipped, listed versions are kept
    notes = [*plan.notes, *(_out_of_reach(versions, head=head, oldest=oldest) if listed else ())]
    committed = {}
    for call in study.calls:
        if call.versions is not None:
            own = resolve_versions(call.versions, head=head, oldest=claimed, version_at=version_at)
            committed[call.fingerprint] = [own.versions[0], own.versions[-1]]
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
        "notes": notes,
    }
    for call in study.calls:
        if call.source != Source.COMMITTED:
            _check_arguments(call, node, head if call.source == Source.SIMULATE else min(last, head))
    ranges = [committed_range(resolved, call) for call in study.calls if call.source == Source.COMMITTED]
    span = [min(first for first, _ in ranges), max(last for _, last in ranges)] if ranges else None
    return resolved | {"committed_span": span}


def connected(study: Study, stack: ExitStack) -> list[Node]:
    """Connect to the nodes that a study names, at its pace; they are closed with the stack."""
    pace = study.requests_per_second
    return [stack.enter_context(connect(**one, requests_per_second=pace)) for one in study.connections()]


def planned_versions(plan: Mapping[str, Any]) -> Sequence[int]:
    """Return the versions that a resolved plan reads of each view."""
    if plan["versions"] is not None:
        return list(plan["versions"])
    return range(plan["first"], plan["last"] + 1, plan["step"])


def committed_range(plan: Mapping[str, Any], call: Call) -> tuple[int, int]:
    """Return the first and last version whose transactions a committed call looks at."""
    first, last = plan.get("committed", {}).get(call.fingerprint, (plan["first"], plan["last"]))
    return first, last


def committed_pages(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the pages (first version, number of versions) that hold every version of some ranges, each once."""
    pages: list[tuple[int, int]] = []
    reached = -1
    for first, last in sorted(ranges):
        starts = range(max(first, reached + 1), last + 1, PAGE)
        pages += [(start, min(PAGE, last + 1 - start)) for start in starts]
        reached = max(reached, last)
    return pages


def _check_arguments(call: Call, node: Node, version: int) -> None:
    """Refuse arguments that do not fit the function; if its ABI cannot be read, the rows of the call say so."""
    abis = node.abis.at(version)
    try:
        function = function_abi(call.function, abis)
        if function is None:
            return
        parameter_layouts(function, call.type_arguments, abis)  # reads the modules that the parameters' types are of
    except (NodeError, NodeUnreachable, SchemaError):
        return
    except InputError as error:
        raise _misfit(call, version, error) from None
    try:
        encode_arguments(function, call.type_arguments, call.arguments, abis, where=call.function)
    except (InputError, SchemaError) as error:
        raise _misfit(call, version, error) from None


def _misfit(call: Call, version: int, error: Exception) -> StudyError:
    return StudyError(f"call {call.name!r}, by the code at version {version}: {error}")


def _out_of_reach(versions: Sequence[int], *, head: int, oldest: int) -> list[str]:
    """Say which versions that were listed one by one cannot be read: they become rows with the node's error."""
    pruned = sum(version < oldest for version in versions)
    beyond = sum(version > head for version in versions)
    gone = f"{pruned} of {len(versions)} listed versions: pruned, the oldest is {oldest}; their rows say so"
    early = f"{beyond} of {len(versions)} listed versions: above the head {head}; their rows say so"
    return [text for count, text in ((pruned, gone), (beyond, early)) if count]
