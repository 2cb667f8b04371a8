"""Frames made ready to draw: one `Series` per call, source and node. Draws nothing."""

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

__all__ = ["Series", "call_order", "columns_of", "is_model", "records", "require", "series_of"]


DENSEST = 1_500
"""Columns a figure is taken to have; more vertices than four a column show nothing more."""


@dataclass(frozen=True)
class Series:
    """The readings of one call from one source on one node, in order of ledger version.

    Attributes
    ----------
    label, source, node : str
        As in the observation frame; `node` is empty where all rows come from one node.
    position : int
        Place of the call in the order of calls of the whole frame; fixes its colour.
    versions, gas : ndarray of float64, shape (n,)
        Ledger versions; gas units, NaN where the node gave none.
    success : ndarray of bool, shape (n,)
        False where the call, or its execution, failed.
    error : str
        Error code of the last failed reading; empty where none failed.
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
        """True where gas is known."""
        return ~np.isnan(self.gas)

    def line(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Vertices of the gas line: a step where it is known to be one, a slope where it is not.

        Between adjacent versions the change is at the later one, and the line steps there. Between
        readings further apart nobody knows where it changed, and the line is a slope from one to the
        other. Readings equal to both neighbours are left out, and so are those that a line far denser
        than any screen would hide; NaN interrupts the line.
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
        """Return the runs of neighbouring readings without an answer: first and last version of each."""
        missing = np.concatenate(([False], ~self.answered, [False])).astype(np.int8)
        starts, ends = np.flatnonzero(np.diff(missing) == 1), np.flatnonzero(np.diff(missing) == -1)
        return [(self.versions[a], self.versions[b - 1]) for a, b in zip(starts, ends, strict=True)]


def _outline(versions: NDArray[np.float64], gas: NDArray[np.float64]) -> NDArray[np.intp]:
    """Positions that draw the same picture: of each of `DENSEST` columns the ends, extremes and a gap."""
    if len(gas) <= 4 * DENSEST:
        return np.arange(len(gas))
    column = columns_of(versions, DENSEST)
    gap = np.isnan(gas)
    in_order, gaps, by_size = np.arange(len(gas)), np.flatnonzero(gap), np.lexsort((gas, column))
    by_size = by_size[~gap[by_size]]
    kept = [_ends(in_order, column), _ends(by_size, column[by_size]), _ends(gaps, column[gaps])]
    return np.unique(np.concatenate(kept))


def columns_of(versions: NDArray[np.float64], count: int) -> NDArray[np.intp]:
    """Return which of `count` equally wide columns each version falls in."""
    width = (versions.max() - versions.min()) or 1.0
    share = (versions - versions.min()) / width
    columns: NDArray[np.intp] = np.floor(share * (count - 1)).astype(np.intp)
    return columns


def _ends(positions: NDArray[np.intp], groups: NDArray[np.intp]) -> NDArray[np.intp]:
    """First and last position of each run of equal groups."""
    edge = np.flatnonzero(np.diff(groups))
    return positions[np.unique(np.concatenate(([0], edge, edge + 1, [len(groups) - 1])))] if len(groups) else positions


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a small frame as dicts of Python values, missing ones None."""
    columns = {str(name): [None if _absent(x) else x for x in frame[name].tolist()] for name in frame.columns}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def require(frame: pd.DataFrame, columns: Sequence[str], *, what: str) -> None:
    """Check that `frame` has `columns`.

    Raises
    ------
    SchemaError
        Names the first missing column and those there are.
    """
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        there = visible(", ".join(map(str, frame.columns)) or "none")
        raise SchemaError(
            f"{what} need the column {missing[0]!r}; this frame has: {there}. Pass the frame as the toolkit made it.",
            column=missing[0],
        )


def call_order(frame: pd.DataFrame, calls: Sequence[str] | None) -> dict[str, int]:
    """Return the wanted labels in order, each with its position among all calls of `frame`.

    Raises
    ------
    InputError
        If `calls` names a label that is not there.
    """
    positions = {str(label): place for place, label in enumerate(frame["label"].unique())}
    if calls is None:
        return positions
    wanted = [calls] if isinstance(calls, str) else list(calls)
    for label in wanted:
        if label not in positions:
            there = ", ".join(repr(visible(known, 40)) for known in list(positions)[:12]) or "none"
            raise InputError(f"calls: no call is labelled {visible(repr(label), 60)}; there are: {there}")
    return {label: positions[label] for label in wanted}


def is_model(frame: pd.DataFrame) -> bool:
    """Return True where any row's gas is a model's (the embedded node)."""
    return "model" in frame.columns and bool(frame["model"].fillna(False).astype(bool).any())  # noqa: FBT003 - pandas' own signature


def series_of(observations: pd.DataFrame, calls: Sequence[str] | None = None) -> list[Series]:
    """Split an observation frame into one series per call, source and node.

    Parameters
    ----------
    observations : DataFrame
        Reads ``label``, ``source``, ``ledger_version``, ``gas_used``; ``success`` and
        ``error_code`` where present.
    calls : sequence of str, optional
        Labels wanted, in order; all by default.

    Returns
    -------
    list of Series
        In order of calls, then of sources and nodes.
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


def _series(rows: pd.DataFrame, label: str, source: str, node: str = "", *, position: int) -> Series:
    success = rows["success"] if "success" in rows.columns else rows["gas_used"].notna()
    errors = rows["error_code"].dropna() if "error_code" in rows.columns else pd.Series(dtype=object)
    return Series(
        label=label,
        source=source,
        node=node,
        position=position,
        versions=rows["ledger_version"].to_numpy(dtype=np.float64),
        gas=rows["gas_used"].to_numpy(dtype=np.float64, na_value=np.nan),
        success=success.fillna(False).to_numpy(dtype=np.bool_),  # noqa: FBT003 - pandas' own signature
        error=str(errors.iloc[-1]) if len(errors) else "",
    )


def _absent(value: Any) -> bool:
    """Tell whether a cell is empty; one that holds a list is not."""
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))
