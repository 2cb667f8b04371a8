"""A run made up: observation and step frames shaped like those of a study of the seeded history.

201 readings of versions 0..4999 plus the versions a step search adds; steady, stepping, growing and
upgraded views, one that starts to exist at 1,800, two simulations at the head, committed transactions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from toolkit.dtypes import to_arrow
from toolkit.frames._columns import plain_rows, rows_frame
from toolkit.frames._schema import OBSERVATIONS, RUN_TIMELINE, STEPS
from toolkit.gas._steps import COVERAGE_COLUMNS, Coverage, coverage_of
from toolkit.gas.runs._manifest import Manifest

HEAD = 4_999
GRID = range(0, HEAD + 1, 25)
TENFOLD, CHEAPER, BORN, UPGRADE = 2_503, 3_901, 1_807, 3_204
ABORT = "Move abort in 0xcafe::registry: ENAME_TAKEN(0x80001): the name is taken"
EPOCH = pd.Timestamp("2026-05-01T12:00:00Z")

U64 = pa.int64()
OBSERVATION_TYPES = {field.name: field.type for field in OBSERVATIONS.arrow}
STEP_TYPES: dict[str, pa.DataType] = {
    "label": pa.string(), "fingerprint": pa.string(), "source": pa.string(), "version_before": U64,
    "version_after": U64, "exact": pa.bool_(), "gas_before": U64, "gas_after": U64, "change": pa.int64(),
    "change_percent": pa.float64(), "success_before": pa.bool_(), "success_after": pa.bool_(),
    "error_before": pa.string(), "error_after": pa.string(), "cause": pa.string(), "explanation": pa.string(),
    "transaction_hash": pa.string(),
}  # fmt: skip


def frame(rows: list[dict[str, Any]], types: dict[str, pa.DataType]) -> pd.DataFrame:
    """Arrow-backed frame of `rows`, with every column of `types` in order."""
    return _table(rows, types).to_pandas(types_mapper=pd.ArrowDtype)


def _table(rows: list[dict[str, Any]], types: dict[str, pa.DataType]) -> pa.Table:
    return pa.table({name: pa.array([row.get(name) for row in rows], kind) for name, kind in types.items()})


def _renamed(table: pa.Table, rename: dict[str, str] | None) -> pd.DataFrame:
    """Return a frame of its own of a table that is made once, with other labels in place of some."""
    labels = pa.array([(rename or {}).get(label, label) for label in table["label"].to_pylist()])
    place = table.column_names.index("label")
    return table.set_column(place, "label", labels).to_pandas(types_mapper=pd.ArrowDtype)


def schedule_factor(version: int) -> int:
    """What the gas schedule multiplies costs by at `version`: tenfold once, then a fifth less."""
    return 1 if version < TENFOLD else 10 if version < CHEAPER else 8


def gas_of(label: str, version: int) -> int | None:
    """Gas units of a view of the made-up ledger; None where it does not exist."""
    units = {
        "chain id": 2,
        "ledger time": 2,
        "APT supply": 3 * schedule_factor(version),
        "balance of 0xb0b": 4 * schedule_factor(version),
        "names registered": (4 + version // 150) * schedule_factor(version),
        "vault total": (14 if version < UPGRADE else 6) * schedule_factor(version),
        "order book depth": None if version < BORN else 7 * schedule_factor(version),
    }
    return units[label]


VIEWS = (
    "chain id",
    "ledger time",
    "APT supply",
    "balance of 0xb0b",
    "names registered",
    "vault total",
    "order book depth",
)


def observations(*, resolved: bool = True, rename: dict[str, str] | None = None) -> pd.DataFrame:
    """The observation frame; `rename` puts other labels in place of some."""
    return _renamed(_observed(resolved=resolved), rename)


@cache
def _observed(*, resolved: bool) -> pa.Table:
    near = {v for at in (TENFOLD, CHEAPER, BORN, UPGRADE) for v in (at - 1, at)} if resolved else set()
    versions = sorted({*GRID, HEAD, *near})
    rows = [_view(label, version) for label in VIEWS for version in versions]
    rows += [_simulation("transfer 100", 998), _simulation("register a taken name", 93, ABORT)]
    rows += [_committed(version) for version in range(40, HEAD, 97)]
    return _table(rows, OBSERVATION_TYPES)


def _row(label: str, source: str, version: int) -> dict[str, Any]:
    return {
        "label": label, "fingerprint": f"fp-{len(label):04d}",
        "source": source, "node": "embedded", "node_build": "embedded-1", "model": True, "chain_id": 4,
        "ledger_version": version, "head_version": HEAD, "observed_at": EPOCH, "toolkit_version": "0.1.0",
    }  # fmt: skip


def _view(label: str, version: int) -> dict[str, Any]:
    row, gas = _row(label, "view@version", version), gas_of(label, version)
    if gas is None:
        message = "Failed to execute function: LINKER_ERROR, module 0xcafe::book not found"
        return row | {"success": False, "status": 400, "error_code": "invalid_input", "error_message": message}
    return row | {"gas_used": gas, "success": True, "status": 200, "value_digest": f"{gas:08x}"}


def _simulation(label: str, gas: int, failure: str = "") -> dict[str, Any]:
    storage = 0 if failure else 40_000
    return _row(label, "simulate@now", HEAD) | {
        "gas_used": gas, "execution_gas_units": gas * 6 // 10 - (400 if storage else 0) // 2, "gas_unit_price": 100,
        "io_gas_units": gas * 4 // 10 - (400 if storage else 0) // 2, "storage_fee_octas": storage,
        "storage_fee_refund_octas": 5_600 if storage else 0, "success": not failure, "status": 200,
        "vm_status": failure or "Executed successfully",
    }  # fmt: skip


def _committed(version: int) -> dict[str, Any]:
    gas = 60 * schedule_factor(version) + version % 7
    failed = version % 5 == 0
    return _row("registrations", "committed", version) | {
        "gas_used": gas, "execution_gas_units": gas // 2, "io_gas_units": gas // 4, "gas_unit_price": 100,
        "storage_fee_octas": (gas // 4) * 100, "storage_fee_refund_octas": 0, "success": not failed, "status": 200,
        "vm_status": ABORT if failed else "Executed successfully",
        "ledger_timestamp": EPOCH + pd.Timedelta(seconds=version),
    }  # fmt: skip


def steps(*, resolved: bool = True, rename: dict[str, str] | None = None) -> pd.DataFrame:
    """The steps of the views, read off neighbouring observations, with the causes the history has."""
    return _renamed(_stepped(resolved=resolved), rename)


@cache
def _stepped(*, resolved: bool) -> pa.Table:
    frame_ = observations(resolved=resolved)
    views = frame_[frame_["source"] == "view@version"]
    rows = []
    for label, group in views.groupby("label", sort=False):
        seen = group.sort_values("ledger_version").to_dict("records")
        rows += [_step(label, a, b) for a, b in pairwise(seen) if _outcome(a) != _outcome(b)]
    return _table(rows, STEP_TYPES)


def _outcome(row: dict[str, Any]) -> tuple[Any, ...]:
    return (None if pd.isna(row["gas_used"]) else row["gas_used"], row["success"], row["error_code"] is pd.NA)


def _step(label: str, a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    before, after = (None if pd.isna(x["gas_used"]) else int(x["gas_used"]) for x in (a, b))
    old, new = int(a["ledger_version"]), int(b["ledger_version"])
    cause, why = _cause(label, old, new)
    both = before is not None and after is not None
    return {
        "label": label, "fingerprint": a["fingerprint"], "source": a["source"], "version_before": old, "version_after": new,
        "exact": new - old == 1, "gas_before": before, "gas_after": after, "change": after - before if both else None,
        "change_percent": 100 * (after - before) / before if both else None, "success_before": bool(a["success"]),
        "success_after": bool(b["success"]), "error_before": None if a["error_code"] is pd.NA else a["error_code"],
        "error_after": None if b["error_code"] is pd.NA else b["error_code"], "cause": cause, "explanation": why,
        "transaction_hash": f"0x{new:064x}" if new - old == 1 else None,
    }  # fmt: skip


def _cause(label: str, old: int, new: int) -> tuple[str, str]:
    if old < TENFOLD <= new:
        return "schedule", "the gas schedule changed: 38 parameters tenfold (feature version 30 to 31)"
    if old < CHEAPER <= new:
        return "schedule", "the gas schedule changed: 38 parameters, each to 4/5"
    if old < BORN <= new:
        return "code", "module 0xcafe::book was published; the view did not exist before"
    if label == "vault total" and old < UPGRADE <= new:
        return "code", "module 0xcafe::vault was upgraded (revision 1 to 2); no function added or removed"
    return "state", "table items were written by 0xcafe::registry::register; the view walks over every name"


@dataclass(frozen=True)
class Call:
    """A call of the made-up study."""

    name: str
    function: str = "0xcafe::vault::total"
    thresholds: None = None


@dataclass(frozen=True)
class Study:
    """A made-up study."""

    title: str = "Demo"
    calls: tuple[Call, ...] = ()
    thresholds: None = None


def record(**more: Any) -> Manifest:
    """The manifest of the made-up run."""
    known = {"study": {}, "study_digest": "", "fingerprints": (), "nodes": (), "complete": True}
    return Manifest(**known | more)


@dataclass(frozen=True)
class Run:
    """A made-up run, with the attributes a report reads."""

    observations: pd.DataFrame
    steps: pd.DataFrame
    study: Study = field(default_factory=Study)
    record: Manifest = field(default_factory=record)
    path: Path = Path("runs/demo")
    timeline: pd.DataFrame = field(default_factory=lambda: rows_frame(RUN_TIMELINE, {}))

    def __post_init__(self) -> None:
        """Give the steps all columns that the steps of a run have."""
        rows = [{"node": "embedded"} | row for row in plain_rows(self.steps)]
        whole = rows_frame(STEPS, {name: [row.get(name) for row in rows] for name in STEPS.names})
        object.__setattr__(self, "steps", whole)

    @property
    def complete(self) -> bool:
        """Whether the run has every planned observation."""
        return self.record.complete

    @property
    def coverage(self) -> Coverage:
        """Which calls were judged for steps."""
        return coverage_of([to_arrow(self.observations[list(COVERAGE_COLUMNS)])])
