"""Observation frames split by call: one `CallSeries` per call, source and node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from toolkit._present.text import visible
from toolkit.errors import InputError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = [
    "MODEL_NOTICE",
    "CallSeries",
    "call_order",
    "columns_of",
    "is_model",
    "records",
    "require",
    "series_of",
]

MODEL_NOTICE = (
    "Gas of the embedded node is a documented cost model, not a Move VM. "
    "For 33 calls recorded on a real node at gas schedule version 43, its execution gas is within a factor of 1.25 of "
    "the real figure, input and output 1.17, storage 1.03, the gas of views 1.50 (1.80, 1.25, 1.18 and 1.67 for "
    "47 calls when that node charged tenfold for instructions); refunds are equal."
)
"""What reports and notebooks say of the embedded node's gas; ``tests.conformance.model_gas`` measures its figures."""

MAX_COLUMNS = 1_500
"""Assumed width of a figure in pixels; more than four vertices in one pixel column show nothing more."""

_MAX_NAMED = 12


@dataclass(frozen=True)
class CallSeries:
    """The observations of one call from one source on one node, ordered by ledger version.

    Attributes
    ----------
    label, source, node : str
        As in the observation frame; `node` is empty if all rows come from one node.
    position : int
        Position of the call among all calls of the frame; it determines the colour.
    versions, gas : ndarray of float64, shape (n,)
        Ledger versions; gas units, NaN if the node reported none.
    success : ndarray of bool, shape (n,)
        False if the call, or its execution, failed.
    error : str
        Error code of the last failed observation; empty if none failed.
    """

    label: str
    source: str
    node: str
    position: int
    versions: NDArray[np.float64]
    gas: NDArray[np.float64]
    success: NDArray[np.bool_]
    error: str

    @property
    def answered(self) -> NDArray[np.bool_]:
        """True for observations whose gas is known."""
        return ~np.isnan(self.gas)

    def line(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the vertices of the gas line.

        Between adjacent versions the change is at the later one, and the line steps there. Between observations
        further apart the version of the change is not known, and the line is a slope. Observations equal to both
        neighbours are left out, and so are those that a line much denser than a screen would hide. NaN interrupts
        the line.

        Returns
        -------
        versions, gas : ndarray of float64
        """
        versions, gas = self.versions, self.gas
        if len(gas) < 2:  # noqa: PLR2004 - a line needs two ends
            return versions, gas
        same = (gas[1:] == gas[:-1]) | (np.isnan(gas[1:]) & np.isnan(gas[:-1]))
        keep = ~np.append(False, same) | ~np.append(same, False)
        versions, gas = versions[keep], gas[keep]
        keep = _outline(versions, gas)
        versions, gas = versions[keep], gas[keep]
        corner = np.flatnonzero((np.diff(versions) == 1) & (np.abs(np.diff(gas)) > 0)) + 1
        return np.insert(versions, corner, versions[corner]), np.insert(gas, corner, gas[corner - 1])

    def failures(self) -> list[tuple[float, float]]:
        """Return the first and last version of each sequence of neighbouring observations without gas."""
        missing = np.concatenate(([False], ~self.answered, [False])).astype(np.int8)
        starts, ends = np.flatnonzero(np.diff(missing) == 1), np.flatnonzero(np.diff(missing) == -1)
        return [(self.versions[a], self.versions[b - 1]) for a, b in zip(starts, ends, strict=True)]


def _outline(versions: NDArray[np.float64], gas: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return positions that draw the same picture: the ends, extremes and a gap of each pixel column."""
    if len(gas) <= 4 * MAX_COLUMNS:
        return np.arange(len(gas))
    column = columns_of(versions, MAX_COLUMNS)
    gap = np.isnan(gas)
    in_order, gaps, by_size = np.arange(len(gas)), np.flatnonzero(gap), np.lexsort((gas, column))
    by_size = by_size[~gap[by_size]]
    kept = [_ends(in_order, column), _ends(by_size, column[by_size]), _ends(gaps, column[gaps])]
    return np.unique(np.concatenate(kept))


def columns_of(versions: NDArray[np.float64], count: int) -> NDArray[np.intp]:
    """Return the column of each version if their range is divided into `count` columns of equal width."""
    width = (versions.max() - versions.min()) or 1.0
    share = (versions - versions.min()) / width
    columns: NDArray[np.intp] = np.floor(share * (count - 1)).astype(np.intp)
    return columns


def _ends(positions: NDArray[np.intp], groups: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the first and last position of each sequence of equal groups."""
    edge = np.flatnonzero(np.diff(groups))
    return positions[np.unique(np.concatenate(([0], edge, edge + 1, [len(groups) - 1])))] if len(groups) else positions


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a small frame as dicts of Python values; missing values are None."""
    columns = {str(name): [None if _is_missing(x) else x for x in frame[name].tolist()] for name in frame.columns}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def require(frame: pd.DataFrame, columns: Sequence[str], *, what: str) -> None:
    """Check that a frame has columns.

    Parameters
    ----------
    frame : DataFrame
    columns : sequence of str
    what : str
        What needs them, in the plural, for the message.

    Raises
    ------
    SchemaError
        Names the first missing column and the columns of the frame.
    """
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        got = visible(", ".join(map(str, frame.columns)) or "none")
        raise SchemaError(
            f"{what} need the column {missing[0]!r}; this frame has: {got}. Pass the frame as the toolkit made it.",
            column=missing[0],
        )


def call_order(frame: pd.DataFrame, calls: Sequence[str] | None) -> dict[str, int]:
    """Return the requested labels in order, each with its position among all calls of a frame.

    Parameters
    ----------
    frame : DataFrame
    calls : sequence of str, optional
        All calls by default.

    Raises
    ------
    InputError
        If `calls` contains a label that the frame does not have.
    """
    positions = {str(label): place for place, label in enumerate(frame["label"].unique())}
    if calls is None:
        return positions
    wanted = [calls] if isinstance(calls, str) else list(calls)
    for label in wanted:
        if label not in positions:
            known = ", ".join(repr(visible(one, 40)) for one in list(positions)[:_MAX_NAMED]) or "none"
            raise InputError(f"calls: {visible(repr(label), 60)} is not the label of a call; there are: {known}")
    return {label: positions[label] for label in wanted}


def is_model(frame: pd.DataFrame) -> bool:
    """Return whether the gas of any row is a model's, as that of the embedded node is."""
    return "model" in frame.columns and bool(frame["model"].fillna(value=False).astype(bool).any())


def series_of(observations: pd.DataFrame, calls: Sequence[str] | None = None) -> list[CallSeries]:
    """Split an observation frame into one series per call, source and node.

    Parameters
    ----------
    observations : DataFrame
        Columns ``label``, ``source``, ``ledger_version`` and ``gas_used``; ``success``, ``error_code`` and ``node`` if
        present.
    calls : sequence of str, optional
        Labels, in order; all calls by default.

    Returns
    -------
    list of CallSeries
        Ordered by call, then by source and node.

    Raises
    ------
    SchemaError
        If a column is missing.
    InputError
        If `calls` contains a label that the frame does not have.
    """
    require(observations, ("label", "source", "ledger_version", "gas_used"), what="figures of gas by version")
    order = call_order(observations, calls)
    rows = observations[observations["label"].isin(list(order))]
    several = "node" in rows.columns and len(rows["node"].unique()) > 1
    keys = ["label", "source", "node"] if several else ["label", "source"]
    found = [
        _series(group.sort_values("ledger_version", kind="stable"), *map(str, key), position=order[str(key[0])])
        for key, group in rows.groupby(keys, sort=True)
    ]
    rank = {label: place for place, label in enumerate(order)}
    return sorted(found, key=lambda series: rank[series.label])


def _series(rows: pd.DataFrame, label: str, source: str, node: str = "", *, position: int) -> CallSeries:
    success = rows["success"] if "success" in rows.columns else rows["gas_used"].notna()
    errors = rows["error_code"].dropna() if "error_code" in rows.columns else pd.Series(dtype=object)
    return CallSeries(
        label=label,
        source=source,
        node=node,
        position=position,
        versions=rows["ledger_version"].to_numpy(dtype=np.float64),
        gas=rows["gas_used"].to_numpy(dtype=np.float64, na_value=np.nan),
        success=success.fillna(value=False).to_numpy(dtype=np.bool_),
        error=str(errors.iloc[-1]) if len(errors) else "",
    )


def _is_missing(value: Any) -> bool:
    """Return whether a cell is empty; a list is not."""
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))
