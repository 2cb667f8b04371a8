"""Starting a run, and taking up one that is there: the same study, the same shard, the same ledger, or not at all."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from importlib.metadata import version as installed
from typing import TYPE_CHECKING, Any

from toolkit import __version__
from toolkit.client.same_ledger import LedgerAnchor, LedgerGuard
from toolkit.errors import LedgerChanged, StudyError
from toolkit.gas.causes.finding import MOST_STEPS
from toolkit.gas.planning import resolve_study
from toolkit.gas.runs.scan import count_unanswered
from toolkit.gas.runs.shards import WHOLE, Shard, check_shardable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolkit.client.node import Node
    from toolkit.gas.runs.store import RunStore
    from toolkit.gas.study import Study

__all__ = ["ledger_guard", "open_run"]

_PACKAGES = ("pandas", "pyarrow", "pycurl")


def open_run(store: RunStore, study: Study, nodes: Sequence[Node], *, shard: Shard, executor: str) -> dict[str, Any]:
    """Start a run, or take up the one in the folder.

    Parameters
    ----------
    store : RunStore
    study : Study
    nodes : sequence of Node
        One per node of the study.
    shard : Shard
    executor : str
        Where views are read, in words.

    Returns
    -------
    dict
        The manifest, as written. What the versions meant at the start of the run holds to its end.

    Raises
    ------
    StudyError
        If the folder holds a run of another study, shard, chain or history, or one whose ``run.json`` and its copy
        are both damaged.

    Warns
    -----
    UserWarning
        If ``run.json`` was restored from its copy, or other files were damaged.
    """
    store.restore_manifest()
    taken_up = store.exists() and not _never_began(store, study)
    manifest = _taken_up(store, study, nodes, shard) if taken_up else _started(study, nodes, shard)
    document = study.document()  # thresholds, waivers and the pace may have changed since
    if manifest["complete"]:
        if _needs_nothing(store, manifest):
            if manifest["study"] != document:
                store.write_manifest(manifest | {"study": document})
            return manifest | {"study": document}
        manifest["complete"] = False
        manifest.pop("steps_checksum", None)  # its steps are written again
        store.write_manifest(manifest)
    if store.exists():
        unconfirmed = {plan["node"]: plan.pop("unconfirmed_since", None) for plan in manifest["nodes"]}
        store.drop_unanswered({node: datetime.fromisoformat(since) for node, since in unconfirmed.items() if since})
    manifest |= {
        "study": document,
        "executor": executor,
        "environment": _environment(),
        "attempts": manifest.get("attempts", 0) + 1,
        "resumed_rows": store.rows() if store.exists() else 0,
    }
    if store.exists():
        store.write_manifest(manifest)
    else:
        store.create(manifest)
    return manifest


def _never_began(store: RunStore, study: Study) -> bool:
    """Tell whether the run there is of another study, and was broken off before anything was read: it is begun anew."""
    manifest = store.manifest()
    return manifest["study_digest"] != study.digest and not manifest["complete"] and not store.part_files()


def _started(study: Study, nodes: Sequence[Node], shard: Shard) -> dict[str, Any]:
    plans = [resolve_study(study, node) for node in nodes]
    if shard != WHOLE:
        check_shardable(study, plans)
    return {
        "study": study.document(),
        "study_digest": study.digest,
        "fingerprints": [call.fingerprint for call in study.calls],
        "nodes": [_anchored(node, plan) for node, plan in zip(nodes, plans, strict=True)],
        "shard": None if shard == WHOLE else str(shard),
        "started_at": datetime.now(UTC).isoformat(),
        "complete": False,
    }


def _needs_nothing(store: RunStore, manifest: Mapping[str, Any]) -> bool:
    """Return whether a complete run has all of its rows, an answer in each, and the cause of every step."""
    steps = store.steps()
    if store.steps_checksum() != manifest.get("steps_checksum") or steps is None:
        return False
    if store.rows() != manifest["counts"]["observations"] or count_unanswered(store):
        return False
    by_node = steps.groupby("node")["cause"]
    return all((causes == "unknown").sum() <= max(0, len(causes) - MOST_STEPS) for _, causes in by_node)


def _taken_up(store: RunStore, study: Study, nodes: Sequence[Node], shard: Shard) -> dict[str, Any]:
    manifest = store.manifest()
    if manifest["study_digest"] != study.digest:
        now, then = study.document(), manifest["study"]
        differ = [name for name in now if now[name] != then.get(name)]
        raise StudyError(
            f"{store.path} holds a run of another study ({', '.join(differ)} differ); choose another folder, or go on "
            "with that study"
        )
    held = manifest.get("shard")
    if Shard.parse(held) != shard:
        raise StudyError(
            f"{store.path} holds {f'shard {held}' if held else 'a run of the whole study'}, not shard {shard}; "
            "choose another folder"
        )
    for node, plan in zip(nodes, manifest["nodes"], strict=True):
        _check_ledger(store, node, plan)
    store.mend()
    for node, plan in zip(nodes, manifest["nodes"], strict=True):
        plan["node_build"] = node.info().git_hash  # each row has the build that answered it
    return manifest


def _anchored(node: Node, plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return a plan with the transaction that its ledger is recognised by: the last one of what is read."""
    version = min(max(plan["last"], *(plan["committed_span"] or [0])), plan["head"])
    anchor = LedgerAnchor.taken(node, version)
    if anchor.transaction_hash is not None:
        return {**plan, "anchor": {"version": version, "transaction_hash": anchor.transaction_hash}}
    note = (
        f"transaction {version} could not be read, so whether the node serves one and the same ledger throughout is "
        "checked by chain id, head and oldest version only"
    )
    return {**plan, "anchor": None, "notes": [*plan["notes"], note]}


def ledger_guard(node: Node, plan: Mapping[str, Any]) -> LedgerGuard:
    """Return what compares a node with the ledger that a plan was resolved on."""
    noted = plan.get("anchor") or {}
    version, found = noted.get("version"), noted.get("transaction_hash")
    anchor = LedgerAnchor(plan["chain_id"], plan["head"], plan.get("oldest_claimed"), version, found)
    return LedgerGuard(node, anchor)


def _check_ledger(store: RunStore, node: Node, plan: Mapping[str, Any]) -> None:
    """Refuse to go on with a run if the node serves another ledger now, such as a test network after a reset."""
    try:
        ledger_guard(node, plan).check()
    except LedgerChanged as error:
        raise StudyError(
            f"{store.path} holds a run of another ledger: {error}. Choose another folder for the ledger that the node "
            "serves now, or run the study on a node of the first one"
        ) from None


def _environment() -> dict[str, str]:
    packages = {name: installed(name) for name in _PACKAGES}
    return {
        "ledger-toolkit": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
    } | packages
