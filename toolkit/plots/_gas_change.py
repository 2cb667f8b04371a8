"""The figure of gas before and after each change: one dumbbell per change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from toolkit._present.text import change_place, number, plural, relative_change
from toolkit.errors import InputError
from toolkit.frames._columns import plain_rows
from toolkit.gas._findings import Kind
from toolkit.gas._labels import function_names
from toolkit.gas._observations import Cause
from toolkit.gas._sentences import short_change, stratum_text
from toolkit.gas._series import described, is_model
from toolkit.gas._steps import STEP_COLUMNS, StepChange, merge_drift
from toolkit.plots import _style as style
from toolkit.plots._labels import figure_text, in_lines, legend_below

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from toolkit.plots._style import Colors


MAX_ROWS = 30  # of more changes, the largest are drawn


def gas_change(
    changes: pd.DataFrame,
    *,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
    title: str | None = None,
    colors: Colors = None,
    legend: bool = True,
) -> Axes:
    """Draw gas before (hollow) and after (filled) each change, for at most the 30 largest changes.

    A drift (many small steps of one call with one cause) is merged into one row per stretch, whose line spans its least
    and most gas. Steps of committed transactions have a row for each stratum and part of the gas: execution, io,
    storage and refund. Uncertain steps are dashed, and last.

    Parameters
    ----------
    changes : DataFrame
        A frame from `Run.steps` or `Comparison.calls`. Uses the columns ``label``, ``gas_before`` and ``gas_after``
        (gas units), and ``version_before``, ``version_after``, ``cause`` and ``model`` if present. Rows that lack the
        gas before or after the change, because the call failed or was not compared, are omitted, and a note
        below has their number. Colours show causes; changes without
        causes are drawn in one colour.
    ax : Axes, optional
        Axes to draw on; by default, a new figure.
    figsize, title, colors, legend
        As in `gas_by_version`; `colors` sets the colours of the causes, by their names in the legend.

    Returns
    -------
    Axes
        The x axis is in gas units. There is one row per change, in the order of the frame, or the largest
        changes first if not all are drawn; uncertain ones come after the others.

    Raises
    ------
    InputError
        If `changes` is not a frame of changes or lacks a column, or `colors` contains an unknown name.

    Examples
    --------
    >>> import pandas as pd, toolkit
    >>> from matplotlib.figure import Figure
    >>> frame = pd.DataFrame({"label": ["supply"], "gas_before": [3], "gas_after": [30]})
    >>> axes = toolkit.plots.gas_change(frame, ax=Figure().subplots())
    >>> [text.get_text() for text in axes.texts]
    ['×10']
    """
    given: Any = changes
    if not isinstance(given, pd.DataFrame) or not {"label", "gas_before", "gas_after"} <= set(given.columns):
        raise InputError(f"gas_change: expected run.steps or comparison.calls, got {described(given)}")
    xlabel = style.gas_label(model=is_model(changes))
    if set(STEP_COLUMNS) <= set(changes.columns):
        changes = merge_drift(changes)
    known = changes[changes["gas_before"].notna() & changes["gas_after"].notna()]
    names = dict(zip(labels := list(known["label"].unique()), function_names(labels), strict=True))
    known = known.assign(label=known["label"].map(names))
    placed = bool(known.duplicated(["label"]).any()) or "part" in known  # a call with one row needs no version
    named = [_row_name(row, placed=placed) for row in plain_rows(known)]
    doubts = [bool(row.get("uncertain")) or row.get("kind") == Kind.UNCERTAIN for row in plain_rows(known)]
    known = known.assign(_name=named, _uncertain=doubts)
    most = style.row_limit(ax, figsize, MAX_ROWS, [*known["_name"]])
    moved = np.maximum([_sides(row) for row in plain_rows(known)] or np.ones((0, 2)), 1)
    rows = style.largest(known, np.abs(np.log(moved[:, 1] / moved[:, 0])), most)
    if title is None:
        all_drawn = len(rows) == len(known)
        title = "Gas before and after" if all_drawn else f"The {len(rows)} largest of {len(known):,} gas changes"
    rows = rows.sort_values("_uncertain", kind="stable")
    causes = [Cause.of(cause) for cause in rows["cause"]] if "cause" in rows.columns else [None] * len(rows)
    there = [cause for cause in style.CAUSE_MARKS if cause in causes]
    colours = style.chosen({cause.label: style.cause_colour(cause) for cause in there}, colors)
    height = 1.5 + max(1.2 * style.full_row([*rows["_name"]]), 0.25) * max(len(rows), 2)
    with style.drawing(ax, figsize=figsize, height=height, title=title, xlabel=xlabel) as axes:
        if rows.empty:
            return style.nothing(axes, "no changes" if changes.empty else "no gas to compare")
        _draw_rows(axes, rows, [colours[cause.label] if cause else style.tone(style.BLUE) for cause in causes])
        if set(causes) - {None, Cause.UNKNOWN}:  # otherwise all changes have one colour, which needs no name
            for name, colour in colours.items():
                axes.plot([], [], color=colour, linewidth=2.2, alpha=0.7, label=name)
        left_out, noun = len(changes) - len(known), "call" if "kind" in changes else "change"
        note = f"not drawn: {left_out:,} of {plural(len(changes), noun)}, without gas to compare" if left_out else ""
        legend_below(axes, axes.get_legend_handles_labels()[0], wanted=legend, note=note)
    return axes


def _draw_rows(ax: Axes, rows: pd.DataFrame, colours: list[Any]) -> None:
    before, after = (rows[name].to_numpy(dtype=np.float64) for name in ("gas_before", "gas_after"))
    places, grey = np.arange(len(rows)), style.muted(ax)
    style.name_rows(ax, [*rows["_name"]], below=0.6, above=0.6)
    low, high = (rows.get(name, rows["gas_before"]).to_numpy(np.float64) for name in ("lowest", "highest"))
    low, high = np.fmin(np.minimum(before, after), low), np.fmax(np.maximum(before, after), high)
    for name, chosen in (("solid", ~rows["_uncertain"].to_numpy()), ("dashed", rows["_uncertain"].to_numpy())):
        colors = [colour for colour, one in zip(colours, chosen, strict=True) if one]
        line: dict[str, Any] = {"colors": colors, "linewidth": 2.2, "alpha": 0.55, "linestyles": name}
        ax.hlines(places[chosen], low[chosen], high[chosen], **line, gid="span")
    look: dict[str, Any] = {"zorder": 3, "clip_on": False}
    ax.scatter(before, places, s=34, facecolors=style.paper(ax), edgecolors=colours, **look, gid="before")
    ax.scatter(after, places, s=38, color=colours, **look, gid="after")
    for name, face in (("before", style.paper(ax)), ("after", grey)):
        ax.plot([], [], "o", markersize=5.5, markerfacecolor=face, markeredgecolor=grey, label=name)
    texts = [_change_text(row) for row in plain_rows(rows)]
    style.gas_rows(ax, low, high)
    style.write_ends(ax, texts, gid="change")


def _sides(row: dict[str, Any]) -> tuple[float, float]:
    """Return the gas before and after a change; of a mean, as far apart as before both were rounded."""
    before, percent = max(row["gas_before"], 1), row.get("change_percent")
    if row.get("stratum") is not None and percent is not None:
        return before, before * (1 + percent / 100)
    return row["gas_before"], row["gas_after"]


def _change_text(row: dict[str, Any]) -> str:
    """Return how gas changed, worded as in the report and in `Run.explain`."""
    before, after, count = row["gas_before"], row["gas_after"], int(row.get("count", 1))
    doubt = ", uncertain" * row["_uncertain"]
    if row.get("stratum") is not None and row.get("change_percent"):
        return f"{relative_change(*_sides(row))}{doubt}"
    if before == after:  # a row has no room for the sentence about equal gas
        low, high = row.get("lowest"), row.get("highest")
        return f"same gas{doubt}" if count == 1 else f"{low:,} to {high:,} in {count:,} steps, back to {number(after)}"
    change = StepChange(row["label"], row.get("source") or "", count, before, after)
    return f"{short_change(change, figure_text)}{doubt}"


def _row_name(row: dict[str, Any], *, placed: bool) -> str:
    before, after = row.get("version_before"), row.get("version_after")
    place = ""
    if placed and before is not None and after is not None:
        place = f" · {change_place(int(before), int(after), several=row.get('count', 1) > 1)}"
    if not row.get("part"):
        return f"{figure_text(row['label'], 44)}{place}"
    kind = stratum_text(row["stratum"], row.get("way_gas"))
    return f"{figure_text(row['label'], 44)} · {row['part']}{place}\n{in_lines(figure_text(kind, 64))}".rstrip()
