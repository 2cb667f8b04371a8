"""What stood on the ledger at both ends of a run: the gas schedule, and the code of the called modules."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from toolkit.gas.causes.evidence import UNREAD, Evidence
from toolkit.move import FunctionId, ModuleId

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.client.node import Node

__all__ = ["provenance"]


def provenance(node: Node, *, first: int, last: int, functions: Iterable[str]) -> dict[str, Any]:
    """Return the gas schedule and the called modules at the first and the last version of a run.

    Parameters
    ----------
    node : Node
    first, last : int
        Ledger versions.
    functions : iterable of str
        The functions that are called.

    Returns
    -------
    dict
        ``gas_schedule`` and ``modules`` (by module id), each with ``first`` and ``last``: of the schedule its
        ``feature_version``, number of ``parameters`` and ``digest``, of a module the digest of its bytecode and ABI.
        None where it was not there or the node does not say.
    """
    evidence = Evidence(node)
    called = sorted({_module(function) for function in functions}, key=str)
    ends = {"first": first, "last": last}
    return {
        "gas_schedule": {end: _schedule(evidence, version) for end, version in ends.items()},
        "modules": {
            module.wire: {end: _digest(evidence, module, version) for end, version in ends.items()} for module in called
        },
    }


def _module(function: str) -> ModuleId:
    at = FunctionId.parse(function)
    return ModuleId(at.address, at.module)


def _schedule(evidence: Evidence, version: int) -> dict[str, Any] | None:
    try:
        schedule = evidence.schedule(version)
    except UNREAD:
        return None
    text = "\n".join(f"{name} {value}" for name, value in sorted(schedule.entries.items()))
    digest = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    return {"feature_version": schedule.feature_version, "parameters": len(schedule.entries), "digest": digest}


def _digest(evidence: Evidence, module: ModuleId, version: int) -> str | None:
    try:
        known = evidence.module(module, version)
    except UNREAD:
        return None
    return known.digest.hex() if known.digest is not None else None
