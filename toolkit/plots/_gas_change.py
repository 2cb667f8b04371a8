"""The figure of gas before and after each change: one dumbbell per change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from toolkit._present.text import change_place
from toolkit.errors import InputError
from toolkit.gas._observations import Cause
from toolkit.gas._sentences import short_change
from toolkit.gas._series import call_names, described, is_model, records
from toolkit.gas._steps import ALL_TRANSACTIONS, STEP_COLUMNS, StepChange, merge_drift
from toolkit.plots import _style as style
from toolkit.plots._labels import figure_text, legend_below

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MAX_ROWS = 24
"""Changes that are drawn; of more the largest are."""


def gas_change(changes: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw gas before (hollow) and after (filled) each change; of more than 24 changes the largest.

    Many small steps of one call by one cause, a drift, are merged into one row for each stretch. Steps of committed
    transactions have a row for each kind of transaction and part of the gas: execution, io, storage and refund.

    Parameters
    ----------
    changes : DataFrame
        As `Run.steps` or `Comparison.calls`. Columns ``label``, ``gas_before`` and ``gas_after`` (gas units);
        ``version_before``, ``version_after``, ``cause`` and ``model`` if present. Rows without gas on a side (the call
        failed) are left out. Colours are causes; a comparison without causes is grey.
    ax : Axes, optional
        Axes to draw on; by default a new figure.

    Returns
    -------
    Axes
        x in gas units; one row per change, in the order of the frame.

    Raises
    ------
    InputError
        If `changes` is not a frame of changes, or lacks a column.

    Examples
    --------
    >>> import pandas as pd, toolkit
    >>> from matplotlib.figure import Figure
    >>> frame = pd.DataFrame({"label": ["supply"], "gas_before": [3], "gas_after": [30]})
    >>> axes = toolkit.plots.gas_change(frame, ax=Figure().subplots())
    >>> [text.get_text() for text in axes.texts]
    ['x10']
    """
    given: Any = changes
    if not isinstance(given, pd.DataFrame) or not {"label", "gas_before", "gas_after"} <= set(given.columns):
        raise InputError(f"gas_change: expected run.steps or the calls of toolkit.compare, got {described(given)}")
    if set(STEP_COLUMNS) <= set(changes.columns):
        changes = merge_drift(changes)
    known = changes[changes["gas_before"].notna() & changes["gas_after"].notna()]
    names = dict(zip(labels := list(known["label"].unique()), call_names(labels), strict=True))
    rows = _largest(known.assign(label=known["label"].map(names)))
    with style.drawing(ax, width=9, height=1.8 + 0.27 * max(len(rows), 2)) as axes:
        axes.set_xlabel("gas used (gas units)")
        axes.set_title("Gas before and after")
        style.grid(axes, "x")
        if rows.empty:
            style.nothing(axes, "no changes")
            return axes
        legend_rows = _draw_rows(axes, rows)
        left_out = len(known) - len(rows)
        notes = [f"the {len(rows)} largest of {len(known):,} changes"] if left_out else []
        notes += [style.MODEL_NOTE] if is_model(changes) else []
        if notes:
            style.note(axes, " · ".join(notes), below_pt=36 + 14 * legend_rows)
    return axes


def _largest(known: pd.DataFrame) -> pd.DataFrame:
    if len(known) <= MAX_ROWS:
        return known
    before = np.maximum(known["gas_before"].to_numpy(dtype=np.float64), 1)
    after = np.maximum(known["gas_after"].to_numpy(dtype=np.float64), 1)
    chosen = np.argsort(-np.abs(np.log(after / before)), kind="stable")[:MAX_ROWS]
    return known.iloc[np.sort(chosen)]


def _draw_rows(ax: Axes, rows: pd.DataFrame) -> int:
    """Draw the changes; return the number of rows of the legend."""
    before, after = (rows[name].to_numpy(dtype=np.float64) for name in ("gas_before", "gas_after"))
    places = np.arange(len(rows))
    causes = [Cause.of(cause) for cause in rows["cause"]] if "cause" in rows.columns else []
    colours = [style.CAUSE_MARKS[cause].colour for cause in causes] or [style.BLUE] * len(rows)
    ax.hlines(places, before, after, colors=colours, linewidth=2.2, alpha=0.55, gid="span")
    ax.scatter(before, places, s=34, facecolors=style.PAPER, edgecolors=colours, zorder=3, gid="before")
    ax.scatter(after, places, s=38, color=colours, zorder=3, gid="after")
    for place, row in zip(places, records(rows), strict=True):
        right = float(max(row["gas_before"], row["gas_after"]))
        style.beside(ax, _size(row), (right, float(place)), points=8, gid="change")
    ax.set_yticks(places, [_row_name(row) for row in records(rows)], color=style.INK)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    _set_gas_axis(ax, np.concatenate([before, after]))
    found = [cause for cause in style.CAUSE_MARKS if cause in causes]
    return _add_legend(ax, [] if found == [Cause.UNKNOWN] else found)  # nobody looked for causes


def _size(row: dict[str, Any]) -> str:
    """Return the change as the report and `Run.explain` have it."""
    before, after = int(row["gas_before"]), int(row["gas_after"])
    change = StepChange(row["label"], row.get("source") or "", row.get("count", 1), before, after, None, None)
    return short_change(change, figure_text)


def _row_name(row: dict[str, Any]) -> str:
    label, before, after = figure_text(row["label"], 30), row.get("version_before"), row.get("version_after")
    if row.get("part"):
        kind = "" if row["stratum"] == ALL_TRANSACTIONS else f", {figure_text(row['stratum'], 30)}"
        label = f"{figure_text(row['label'], 22)}{kind}: {row['part']}"
    if before is None or after is None:
        return label
    return f"{label}  ·  {change_place(int(before), int(after))}"


def _set_gas_axis(ax: Axes, values: np.ndarray) -> None:
    low, high = float(values.min()), float(values.max())
    if style.gas_axis_is_log(ax, low, high):
        ax.set_xlim(low / 1.3, high * (high / low) ** 0.12)
    else:
        ax.set_xlim(0, 1.14 * high or 1.0)


def _add_legend(ax: Axes, causes: list[Cause]) -> int:
    """Draw a legend below the axes, where it cannot overlap the title; return its number of rows."""
    plain: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 5.5}
    grey = style.MUTED
    handles = [
        Line2D([], [], markerfacecolor=style.PAPER, markeredgecolor=grey, label="before", **plain),
        Line2D([], [], color=grey, label="after", **plain),
        *(
            Line2D([], [], color=style.CAUSE_MARKS[cause].colour, lw=2.2, alpha=0.7, label=cause.label)
            for cause in causes
        ),
    ]
    return legend_below(ax, handles)
