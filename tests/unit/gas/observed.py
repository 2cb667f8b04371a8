"""Observation frames made by hand, and the cause of one step."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from toolkit.frames._columns import rows_frame
from toolkit.frames._schema import OBSERVATIONS
from toolkit.gas._calls import Call
from toolkit.gas.causes._finding import causes_of
from toolkit.gas.runs._manifest import Manifest, NodeRun
from toolkit.gas.runs._store import RunStore

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    import pyarrow as pa

    from toolkit.client._node import Node
    from toolkit.gas._findings import Explanation
    from toolkit.gas._steps import Step

VIEW = "view@version"
NOW = datetime(2026, 5, 1, tzinfo=UTC)


def row(
    version: int, gas: int | None = 10, *, label: str = "a", error: str | None = None, **more: Any
) -> dict[str, Any]:
    """Return one observation: gas of a call at a version, or the error code it ended with."""
    known = {
        "label": label,
        "fingerprint": f"{label}-print",
        "source": VIEW,
        "node": "http://node.test/v1",
        "node_build": "abc",
        "model": False,
        "chain_id": 4,
        "ledger_version": version,
        "gas_used": None if error else gas,
        "success": None if error else True,
        "status": 400 if error else None,
        "error_code": error,
        "observed_at": NOW,
        "toolkit_version": "0",
    }
    return dict.fromkeys(OBSERVATIONS.names) | known | more


def columns(*rows: dict[str, Any]) -> dict[str, list[Any]]:
    """Turn rows into columns."""
    return {name: [one[name] for one in rows] for name in OBSERVATIONS.names}


def plan(**more: Any) -> NodeRun:
    """Return what a run has resolved of a study on a node."""
    known = {"node": "http://node.test/v1", "node_build": None, "model": False, "chain_id": 4, "head": 99, "oldest": 0}
    versions = {"first": 0, "last": 9, "versions": None, "step": 1, "committed": {}, "notes": (), "anchor": None}
    return NodeRun(**known | versions | more)


def manifest(*, title: str = "mine", calls: tuple[str, ...] = ("a",), **more: Any) -> Manifest:
    """Return the manifest of a run that has begun."""
    known = {"study": {"title": title}, "study_digest": "d", "nodes": (plan(),), "complete": False}
    return Manifest(**known | {"fingerprints": tuple(f"{label}-print" for label in calls)} | more)


def change_manifest(folder: Path, **changes: Any) -> None:
    """Change entries of a run's ``run.json``, as whoever writes it does."""
    store = RunStore(folder)
    store.write_manifest(Manifest.of_text(json.dumps(json.loads(store.manifest().text()) | changes).encode()))


def table(*rows: dict[str, Any]) -> pa.Table:
    """Turn rows into the table that is written to a run."""
    return OBSERVATIONS.table(columns(*rows))


def frame(*rows: dict[str, Any]) -> pd.DataFrame:
    """Turn rows into an observation frame."""
    return rows_frame(OBSERVATIONS, columns(*rows))


def cause_of(step: Step, node: Node, function: str) -> Explanation:
    """Return the cause of one step."""
    return causes_of([step], node, {step.fingerprint: Call.of(function)})[step]
