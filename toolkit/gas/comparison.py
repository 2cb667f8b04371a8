"""Two sets of observations side by side: what was added, removed, changed, and by how much."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from toolkit.errors import InputError
from toolkit.frames.build import plain_columns, rows_frame
from toolkit.frames.schema import COMPARISON, OBSERVATIONS
from toolkit.gas.observing import is_no_answer

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Comparison", "compare", "last_observations"]

_SPLIT = ("execution_gas_units", "io_gas_units", "storage_fee_octas", "storage_fee_refund_octas")


@dataclass(frozen=True, eq=False)
class Comparison:
    """The calls of two sides and how they differ.

    Attributes
    ----------
    calls : DataFrame
        One row per call and source, by label: ``kind``, gas on either side in gas units, the change in units and
        percent of the baseline, success, error codes, and the split where it is known.
    warnings : tuple of str
        What makes the two sides hard to compare, such as different node builds.
    """

    calls: pd.DataFrame
    warnings: tuple[str, ...] = ()

    def _of(self, kind: str) -> pd.DataFrame:
        return self.calls[self.calls["kind"] == kind].reset_index(drop=True)

    @property
    def added(self) -> pd.DataFrame:
        """Calls of the after side only."""
        return self._of("added")

    @property
    def removed(self) -> pd.DataFrame:
        """Calls of the before side only."""
        return self._of("removed")

    @property
    def changed(self) -> pd.DataFrame:
        """Calls whose gas, success or error differs."""
        return self._of("changed")

    @property
    def unchanged(self) -> pd.DataFrame:
        """Calls with the same gas, success and error on both sides."""
        return self._of("unchanged")

    @property
    def unreachable(self) -> pd.DataFrame:
        """Calls that got no answer on one side, so that nothing can be said."""
        return self._of("unreachable")


def compare(before: Any, after: Any) -> Comparison:
    """Compare the last observation of each call on two sides.

    Parameters
    ----------
    before, after : DataFrame, Run, str or Path
        Observations, a run, or the folder of one. Of several observations of a call the last one counts.

    Returns
    -------
    Comparison
        Calls are matched by fingerprint and source, so sources are never mixed.

    Raises
    ------
    InputError
        If a side is no observation frame.

    Warns
    -----
    UserWarning
        If the node's builds, or the chains, of the two sides differ.
    """
    one, two = (last_observations(_frame(side)) for side in (before, after))
    several = max(frame["node"].nunique() for frame in (one, two)) > 1
    first, second = _by_key(one, by_node=several), _by_key(two, by_node=several)
    rows = [_row(first.get(key), second.get(key)) for key in dict.fromkeys([*first, *second])]
    rows.sort(key=lambda row: (row["label"], row["source"]))
    notes = _notes(one, two)
    for note in notes:
        warnings.warn(note, UserWarning, stacklevel=2)
    return Comparison(rows_frame(COMPARISON, {name: [row[name] for row in rows] for name in COMPARISON.names}), notes)


def last_observations(observations: pd.DataFrame, *, version: int | None = None) -> pd.DataFrame:
    """Return the last observation of each call and source, at or before `version` where one is given."""
    if version is not None:
        observations = observations[observations["ledger_version"] <= version]
    ordered = observations.sort_values("ledger_version", kind="stable")
    return ordered.groupby(["node", "fingerprint", "source"], sort=False).tail(1).sort_index().reset_index(drop=True)


def _frame(side: Any) -> pd.DataFrame:
    if isinstance(side, str | Path):
        from toolkit.gas.run import Run

        side = Run.open(side)
    frame = side if isinstance(side, pd.DataFrame) else getattr(side, "observations", None)
    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"compare takes observation frames, runs or run folders, got {type(side).__name__}")
    missing = [name for name in OBSERVATIONS.names if name not in frame.columns]
    if missing:
        raise InputError(f"compare needs observation frames; columns {missing} are missing")
    return frame


def _by_key(frame: pd.DataFrame, *, by_node: bool) -> dict[tuple[str, ...], dict[str, Any]]:
    """Return the rows as plain values by call and source; of several nodes by node too."""
    names = ("fingerprint", "source", "node") if by_node else ("fingerprint", "source")
    columns = plain_columns(frame, OBSERVATIONS.names)
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return {tuple(row[name] for name in names): row for row in rows}


def _row(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> dict[str, Any]:
    known: Mapping[str, Any] = after or before or {}
    sides = {"before": before or {}, "after": after or {}}
    row = {name: known[name] for name in ("label", "fingerprint", "source")} | {"kind": _kind(before, after)}
    named = {"ledger_version": "version", "gas_used": "gas", "success": "success", "error_code": "error"}
    for column, name in (named | dict(zip(_SPLIT, _SPLIT, strict=True))).items():
        for side, values in sides.items():
            row[f"{name}_{side}"] = values.get(column)
    gas_before, gas_after = row["gas_before"], row["gas_after"]
    change = None if gas_before is None or gas_after is None else gas_after - gas_before
    row["change"] = change
    row["change_percent"] = 100.0 * change / gas_before if change is not None and gas_before else None
    digests = [values.get("value_digest") for values in sides.values()]
    row["value_changed"] = None if None in digests else digests[0] != digests[1]
    return row


def _kind(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> str:
    if before is None:
        return "added"
    if after is None:
        return "removed"
    if is_no_answer(before["error_code"]) or is_no_answer(after["error_code"]):
        return "unreachable"
    same = all(before[name] == after[name] for name in ("gas_used", "success", "error_code"))
    return "unchanged" if same else "changed"


def _notes(before: pd.DataFrame, after: pd.DataFrame) -> tuple[str, ...]:
    notes = []
    for column, what in (("chain_id", "chains"), ("node_build", "node builds")):
        sides = [sorted(frame[column].dropna().astype(str).unique()) for frame in (before, after)]
        if sides[0] and sides[1] and sides[0] != sides[1]:
            one, two = (", ".join(side) for side in sides)
            notes.append(f"the two sides come from different {what} ({one}; {two}): gas may differ for that alone")
    return tuple(notes)
