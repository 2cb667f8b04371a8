"""A study resolved on a node: which versions it reads there. Asks the node for its head, horizon and dates only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.client.versions import Versions, resolve_versions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from toolkit.client.node import Node
    from toolkit.gas.study import Study

__all__ = ["planned_versions", "resolve_study"]


def resolve_study(study: Study, node: Node) -> dict[str, Any]:
    """Resolve a study's versions on one node.

    Parameters
    ----------
    study : Study
    node : Node

    Returns
    -------
    dict
        ``node``, ``node_build``, ``model``, ``chain_id``, ``head``, ``oldest``, ``first``, ``last``, ``versions``
        (listed ones), ``step`` (of a range) and ``notes`` (what was clipped). What was resolved holds for the whole
        run, also when it is resumed.

    Raises
    ------
    InputError
        If the versions cannot be read on this node.
    """
    info = node.info()
    head, oldest = info.ledger.version, node.oldest_readable(info.ledger)
    search = study.versions.search

    def version_at(time: datetime) -> int:
        return head + 1 if time > info.ledger.timestamp else node.version_at(time)

    wanted: Versions = search.versions if search else (study.versions.plan or -1)
    plan = resolve_versions(wanted, head=head, oldest=oldest, version_at=version_at)
    versions = plan.versions
    return {
        "node": node.name,
        "node_build": info.git_hash,
        "model": (info.git_hash or "").startswith("embedded"),
        "chain_id": info.ledger.chain_id,
        "head": head,
        "oldest": oldest,
        "first": min(versions, default=head),
        "last": max(versions, default=head),
        "versions": None if search or isinstance(versions, range) else list(versions),
        "step": versions.step if isinstance(versions, range) else None,
        "notes": list(plan.notes),
    }


def planned_versions(plan: Mapping[str, Any]) -> Sequence[int]:
    """Return the versions that a resolved plan reads of each view."""
    if plan["versions"] is not None:
        return list(plan["versions"])
    return range(plan["first"], plan["last"] + 1, plan["step"])
