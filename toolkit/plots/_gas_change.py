"""The figure of gas before and after each change: one dumbbell per change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from toolkit._present.text import change_place
from toolkit.errors import InputError
from toolkit.gas._labels import function_names
from toolkit.gas._observations import Cause
from toolkit.gas._sentences import short_change
from toolkit.gas._series import described, records
from toolkit.gas._steps import ALL_TRANSACTIONS, STEP_COLUMNS, StepChange, merge_drift
from toolkit.plots import _style as style
from toolkit.plots._labels import figure_text, finish

if TYPE_CHECKING:
    from collections.abc import Collection

    from matplotlib.axes import Axes


MAX_ROWS = 24  # changes that are drawn; of more the largest are


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
    names = dict(zip(labels := list(known["label"].unique()), function_names(labels), strict=True))
    before, after = (np.maximum(known[name].to_numpy(np.float64), 1) for name in ("gas_before", "gas_after"))
    rows = style.largest(known.assign(label=known["label"].map(names)), np.abs(np.log(after / before)), MAX_ROWS)
    with style.drawing(ax, height=1.8 + 0.27 * max(len(rows), 2), title="Gas before and after") as axes:
        if rows.empty:
            style.nothing(axes, "no changes")
            return axes
        causes = [Cause.of(cause) for cause in rows["cause"]] if "cause" in rows.columns else []
        _draw_rows(axes, rows, [style.CAUSE_MARKS[cause].colour for cause in causes] or [style.BLUE] * len(rows))
        notes = [f"the {len(rows)} largest of {len(known):,} changes"] if len(rows) < len(known) else []
        looked_for = set(causes) != {Cause.UNKNOWN}  # otherwise the grey of all changes needs no name
        finish(axes, _handles(causes if looked_for else []), [*notes, *style.model_note(changes)])
    return axes


def _draw_rows(ax: Axes, rows: pd.DataFrame, colours: list[str]) -> None:
    before, after = (rows[name].to_numpy(dtype=np.float64) for name in ("gas_before", "gas_after"))
    places = np.arange(len(rows))
    ax.hlines(places, before, after, colors=colours, linewidth=2.2, alpha=0.55, gid="span")
    ax.scatter(before, places, s=34, facecolors=style.PAPER, edgecolors=colours, zorder=3, gid="before")
    ax.scatter(after, places, s=38, color=colours, zorder=3, gid="after")
    for place, row in zip(places, records(rows), strict=True):
        right = float(max(row["gas_before"], row["gas_after"]))
        style.write(ax, _size(row), (right, float(place)), gid="change", offset=(8, 0))
    style.name_rows(ax, [_row_name(row) for row in records(rows)], below=0.6, above=0.6)
    low, high = float(min(before.min(), after.min())), float(max(before.max(), after.max()))
    if style.gas_scale(ax, "x", low, high):
        ax.set_xlim(low / 1.3, high * (high / low) ** 0.12)
    else:
        ax.set_xlim(0, 1.14 * high or 1.0)


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


def _handles(causes: Collection[Cause]) -> list[Line2D]:
    """Return the entries of the legend: hollow and filled, and the colours of causes."""
    plain: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 5.5}
    return [
        Line2D([], [], markerfacecolor=style.PAPER, markeredgecolor=style.MUTED, label="before", **plain),
        Line2D([], [], color=style.MUTED, label="after", **plain),
        *(
            Line2D([], [], color=mark.colour, lw=2.2, alpha=0.7, label=cause.label)
            for cause, mark in style.CAUSE_MARKS.items()
            if cause in causes
        ),
    ]
