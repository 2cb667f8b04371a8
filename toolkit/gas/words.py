"""Steps in plain words: which call, at which version, by how much, why. Frame in, lines out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.frames.build import plain_columns

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["step_words"]

_MOST_PER_CALL = 6


def step_words(steps: pd.DataFrame) -> list[str]:
    """Return one line per step; of a call with many, the largest are told and the rest is counted.

    Parameters
    ----------
    steps : DataFrame
        As `Run.steps`.

    Returns
    -------
    list of str
        By call in the order of the frame, then by version.
    """
    lines: list[str] = []
    for label, rows in steps.groupby("label", sort=False):
        told = rows
        if len(rows) > _MOST_PER_CALL:
            largest = rows["change"].abs().fillna(0).sort_values(ascending=False, kind="stable").index
            told = rows.loc[sorted(largest[:_MOST_PER_CALL])]
        columns = plain_columns(told, list(told.columns))
        lines += [_line(dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]
        if len(rows) > len(told):
            lines.append(f"{label}: {len(rows) - len(told)} smaller steps more")
    return lines or ["no call changed its gas, success or error"]


def _line(row: dict[str, Any]) -> str:
    if row["exact"]:
        where = f"at version {row['version_after']}"
    else:
        where = f"between versions {row['version_before']} and {row['version_after']}"
    return f"{row['label']}: {_outcome(row)} {where}; {row['cause']}: {row['explanation']}"


def _outcome(row: dict[str, Any]) -> str:
    before, after = (_side(row, side) for side in ("before", "after"))
    percent = row["change_percent"]
    share = "" if percent is None else f" ({percent:+.1f} %)"
    return f"{before} to {after}{share}"


def _side(row: dict[str, Any], side: str) -> str:
    gas, error = row[f"gas_{side}"], row[f"error_{side}"]
    if error is not None:
        return str(error)
    return "no gas told" if gas is None else f"{gas} gas unit{'' if gas == 1 else 's'}"
