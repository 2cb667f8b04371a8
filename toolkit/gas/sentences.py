"""Steps in plain words: at which version, why, which calls, by how much; and what was not judged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit._present.text import visible
from toolkit.frames.columns import plain_columns
from toolkit.gas.causes.words import ROUNDED
from toolkit.gas.judged import unjudged_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from toolkit.gas.judged import Coverage

__all__ = ["run_words", "step_words"]

_MOST_PER_CALL = 6
_MAX_LINE = 2_000

Row = dict[str, Any]


def run_words(steps: pd.DataFrame, coverage: Coverage) -> list[str]:
    """Return what a run found, in lines: the steps, or that there are none, and the calls that were not judged.

    Parameters
    ----------
    steps : DataFrame
        As `Run.steps`.
    coverage : Coverage
        As `Run.coverage`.

    Returns
    -------
    list of str
    """
    none = "no view changed its gas, success or error"
    if not coverage.judged:
        none = "no view was answered at two ledger versions or more, so no step can be found"
    return [*(step_words(steps) or [none]), *unjudged_words(coverage.unjudged, visible)]


def step_words(steps: pd.DataFrame) -> list[str]:
    """Return the steps in lines: the cause, then the calls that stepped by it, indented.

    Parameters
    ----------
    steps : DataFrame
        As `Run.steps`.

    Returns
    -------
    list of str
        By version, empty without steps; labels and names in them carry no control or bidirectional characters. Of a
        call with many steps the largest are listed, and the rest is counted at the end.
    """
    told, counted = _told(steps)
    several = len(set(steps["node"])) > 1
    lines: list[str] = []
    for rows in _events(told):
        node = f" on {rows[0]['node']}" if several else ""
        note = ROUNDED if any(row["explanation"].endswith(ROUNDED) for row in rows) else ""
        lines.append(f"{_place(rows[0])}{node}, {rows[0]['cause']}: {_explanation(rows[0])}{note}")
        lines += [f"  {row['label']}: {_change(row)}" for row in rows]
    return [visible(line, _MAX_LINE) for line in [*lines, *counted]]


def _told(steps: pd.DataFrame) -> tuple[list[Row], list[str]]:
    """Return the rows that are told one by one, and a line for each call of which some are not."""
    told: list[Row] = []
    counted: list[str] = []
    for (_, label), rows in steps.groupby(["node", "label"], sort=False):
        kept = rows
        if len(rows) > _MOST_PER_CALL:
            # A call that starts or stops answering changes by more than any number.
            size = rows["change"].abs().astype("float64").fillna(float("inf"))
            kept = rows.loc[sorted(size.sort_values(ascending=False, kind="stable").index[:_MOST_PER_CALL])]
            rest = rows.drop(kept.index)
            span = f"from version {rest['version_before'].min()} to {rest['version_after'].max()}"
            counted.append(f"{label}: {len(rest)} smaller steps more, {span}")
        columns = plain_columns(kept, list(kept.columns))
        told += [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return told, counted


def _events(rows: Sequence[Row]) -> list[list[Row]]:
    """Group the steps that one cause made."""
    events: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        place = (row["version_after"], row["version_before"], row["node"])
        events.setdefault((*place, row["cause"], _explanation(row)), []).append(row)
    return [events[key] for key in sorted(events)]


def _explanation(row: Row) -> str:
    return str(row["explanation"]).removesuffix(ROUNDED)


def _place(row: Row) -> str:
    if row["exact"]:
        return f"at version {row['version_after']}"
    return f"between versions {row['version_before']} and {row['version_after']}"


def _change(row: Row) -> str:
    """Say how a call's outcome changed."""
    before, after = row["gas_before"], row["gas_after"]
    errors = [_error(row, side) for side in ("before", "after")]
    if errors[0] and errors[1]:
        return f"{errors[0]}, then {errors[1]}"
    if errors[0]:
        return f"starts to answer, with {_units(after)}"
    if errors[1]:
        return f"{errors[1]}; it took {_units(before)}"
    if before is None or after is None:
        return f"{_units(before)}, then {_units(after)}"
    percent = row["change_percent"]
    share = "" if percent is None else f" ({percent:+.1f} %)"
    return f"{before} to {_units(after)}{share}"


def _error(row: Row, side: str) -> str:
    """Say how a call failed; empty where it did not."""
    code = row[f"error_{side}"]
    if code is None:
        return ""
    # Only a failed execution has a success at all; a call that was refused never ran.
    return f"{'cannot be called' if row[f'success_{side}'] is None else 'fails when it runs'} ({code})"


def _units(gas: int | None) -> str:
    return "no gas told" if gas is None else f"{gas} gas unit{'' if gas == 1 else 's'}"
