"""The figure of gas before and after: one dumbbell per change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.lines import Line2D

from toolkit.plots import style
from toolkit.plots.changes import STEP_COLUMNS, told
from toolkit.plots.series import is_model, records, require
from toolkit.plots.text import figure_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["change_text", "gas_change"]

MOST_ROWS = 24


def gas_change(changes: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw gas before (hollow) and after (filled) each change, largest relative changes if there are many.

    The steps of a call that drifts (see `toolkit.plots.changes.told`) are one row for each stretch.

    Parameters
    ----------
    changes : DataFrame
        As `Run.steps`, or a comparison. Reads ``label``, ``gas_before``, ``gas_after`` (gas units);
        ``version_before``, ``version_after``, ``cause`` and ``model`` where present. Rows where either gas is
        missing (the call failed) have nothing to compare and are left out.
    ax : Axes, optional
        Axes to draw on; by default a figure of its own.

    Returns
    -------
    Axes
        x in gas units; one row per change, in the order of the frame.

    Raises
    ------
    SchemaError
        If a column read is missing.
    """
    require(changes, ("label", "gas_before", "gas_after"), what="figures of changes")
    if set(STEP_COLUMNS) <= set(changes.columns):
        changes = told(changes)
    known = changes[changes["gas_before"].notna() & changes["gas_after"].notna()]
    rows = _largest(known)
    with style.drawing(ax, width=9, height=1.5 + 0.27 * max(len(rows), 2)) as axes:
        axes.set_xlabel("gas used (gas units)")
        axes.set_title("Gas before and after")
        style.grid(axes, "x")
        if rows.empty:
            style.nothing(axes, "no changes")
            return axes
        _draw_rows(axes, rows)
        left_out = len(known) - len(rows)
        notes = [f"the {len(rows)} largest of {len(known):,} changes"] if left_out else []
        notes += [style.MODEL_NOTE] if is_model(changes) else []
        if notes:
            style.note(axes, " · ".join(notes), below_pt=36)
    return axes


def change_text(before: int | None, after: int | None) -> str:
    """Say a change of gas in words a reader compares at a glance.

    Parameters
    ----------
    before, after : int or None
        Gas units; None where the call gave none.

    Returns
    -------
    str
        Times ten, say, from the double on, else a percentage of `before` (``"+3.1 %"``); a difference in
        units where there is no percentage; empty where either is missing.
    """
    if before is None or after is None:
        return ""
    if before == 0:
        return f"{after - before:+,}"
    double = 2
    if after >= double * before:
        return f"{style.TIMES}{style.number(round(after / before, 1))}"
    return f"{100 * (after - before) / before:+.3g} %".replace("-", style.MINUS)


def _largest(known: pd.DataFrame) -> pd.DataFrame:
    if len(known) <= MOST_ROWS:
        return known
    before = np.maximum(known["gas_before"].to_numpy(dtype=np.float64), 1)
    after = np.maximum(known["gas_after"].to_numpy(dtype=np.float64), 1)
    chosen = np.argsort(-np.abs(np.log(after / before)), kind="stable")[:MOST_ROWS]
    return known.iloc[np.sort(chosen)]


def _draw_rows(ax: Axes, rows: pd.DataFrame) -> None:
    before, after = (rows[name].to_numpy(dtype=np.float64) for name in ("gas_before", "gas_after"))
    places = np.arange(len(rows))
    causes = rows["cause"].fillna("unknown").tolist() if "cause" in rows.columns else [None] * len(rows)
    colours = [style.CAUSES[c].colour if c in style.CAUSES else style.BLUE for c in causes]
    ax.hlines(places, before, after, colors=colours, linewidth=2.2, alpha=0.55, gid="span")
    ax.scatter(before, places, s=34, facecolors=style.PAPER, edgecolors=colours, zorder=3, gid="before")
    ax.scatter(after, places, s=38, color=colours, zorder=3, gid="after")
    for place, old, new in zip(places, before, after, strict=True):
        style.beside(ax, change_text(int(old), int(new)), (max(old, new), float(place)), points=8, gid="change")
    ax.set_yticks(places, [_row_name(row) for row in records(rows)], color=style.INK)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    _set_gas_axis(ax, np.concatenate([before, after]))
    _add_legend(ax, [cause for cause in style.CAUSES if cause in causes])


def _row_name(row: dict[str, Any]) -> str:
    label, before, after = figure_text(row["label"], 30), row.get("version_before"), row.get("version_after")
    if before is None or after is None:
        return label
    count = f" ({row['count']} steps)" if row.get("count", 1) != 1 else ""
    return f"{label}  ·  {style.interval(before, after)}{count}"


def _set_gas_axis(ax: Axes, values: np.ndarray) -> None:
    low, high = float(values.min()), float(values.max())
    if style.gas_axis_is_log(ax, low, high):
        ax.set_xlim(low / 1.3, high * (high / low) ** 0.12)
    else:
        ax.set_xlim(0, 1.14 * high or 1.0)


def _add_legend(ax: Axes, causes: list[str]) -> None:
    plain: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 5.5}
    grey = style.MUTED
    handles = [
        Line2D([], [], markerfacecolor=style.PAPER, markeredgecolor=grey, label="before", **plain),
        Line2D([], [], color=grey, label="after", **plain),
        *(Line2D([], [], color=style.CAUSES[cause].colour, lw=2.2, alpha=0.7, label=cause) for cause in causes),
    ]
    ax.legend(
        handles=handles,
        loc="lower right",
        bbox_to_anchor=(1, 1),
        ncols=len(handles),
        borderaxespad=0.2,
        handlelength=1.0,
    )
