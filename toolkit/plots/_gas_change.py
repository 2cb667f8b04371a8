"""The figure of gas before and after each change: one dumbbell per change."""

from __future__ import annotations

from collections import Counter
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
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from toolkit.plots._style import Colors


MAX_HEIGHT = 6.5  # inches of the rows, which fit one screen; of more changes, the largest are drawn


def gas_change(
    changes: pd.DataFrame,
    *,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
    title: str | None = None,
    colors: Colors = None,
    legend: bool = True,
) -> Axes:
    """Draw gas before (hollow) and after (filled) each change, for the largest changes that fit one screen.

    A drift (many small steps of one call with one cause) is merged into one row per stretch, whose line spans its least
    and most gas. Steps of committed transactions have a row for each stratum and part of the gas: execution, io,
    storage and refund; the stratum is named where a call has several. Uncertain steps are dashed, and last. The thin
    line below a row is the 95 % interval of the change, added to the gas before; it ends in an arrow if there is no
    upper bound. There is room for 26 changes if names have one line, and for at least 12 otherwise.

    Parameters
    ----------
    changes : DataFrame
        A frame from `Run.steps` or `Comparison.calls`. Uses the columns ``label``, ``gas_before`` and ``gas_after``
        (gas units), and ``version_before``, ``version_after``, ``cause``, ``model`` and the bounds if present; bounds
        of a fee are drawn where nothing was refunded, so that it is gas times a price. Rows that lack the gas before or
        after the change, because the call failed or was not compared, are omitted, and a note below has their number.
        Colours show causes; changes without causes are drawn in one colour.
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
    steps = len(changes)
    if set(STEP_COLUMNS) <= set(changes.columns):
        changes = merge_drift(changes)
    compared = changes["kind"] != Kind.NOT_COMPARED if "kind" in changes else True
    known = changes[changes["gas_before"].notna() & changes["gas_after"].notna() & compared]
    names = dict(zip(labels := list(known["label"].unique()), function_names(labels), strict=True))
    known = known.assign(label=known["label"].map(names))
    placed = bool(known.duplicated(["label"]).any()) or "part" in known  # a call with one row needs no version
    named = _row_names(plain_rows(known), placed=placed)
    doubts = [bool(row.get("uncertain")) or row.get("kind") == Kind.UNCERTAIN for row in plain_rows(known)]
    known = known.assign(_name=named, _uncertain=doubts)
    each = style.full_row(named) + 0.06
    most = style.row_limit(ax, figsize, int(MAX_HEIGHT / each), named)
    moved = np.maximum([_sides(row) for row in plain_rows(known)] or np.ones((0, 2)), 1)
    rows = style.largest(known, np.abs(np.log(moved[:, 1] / moved[:, 0])), most)
    if title is None:
        all_drawn = len(rows) == len(known)
        title = "Gas before and after" if all_drawn else f"The {len(rows)} largest of {len(known):,} gas changes"
        first, last = changes.attrs.get("versions", (0, 0))  # of the sides of a comparison; those of steps are in rows
        title += f": ledger versions {first:,} and {last:,}" if first != last else ""
    rows = rows.sort_values("_uncertain", kind="stable")
    causes = [Cause.of(cause) for cause in rows["cause"]] if "cause" in rows.columns else [None] * len(rows)
    there = [cause for cause in style.CAUSE_MARKS if cause in causes]
    colours = style.chosen({cause.label: style.cause_colour(cause) for cause in there}, colors)
    height = 1.5 + each * max(len(rows), 2)
    with style.drawing(ax, figsize=figsize, height=height, title=title, xlabel=xlabel) as axes:
        if rows.empty:
            return style.nothing(axes, "no changes" if changes.empty else "no gas to compare")
        _draw_rows(axes, rows, [colours[cause.label] if cause else style.tone(style.BLUE) for cause in causes])
        if set(causes) - {None, Cause.UNKNOWN}:  # otherwise all changes have one colour, which needs no name
            for name, colour in colours.items():
                axes.plot([], [], color=colour, linewidth=2.2, alpha=0.7, label=name)
        note = _note(changes, len(known), steps)
        legend_below(axes, axes.get_legend_handles_labels()[0], wanted=legend, note=note)
    return axes


def _note(changes: pd.DataFrame, drawn: int, steps: int) -> str:
    """Return which of the changes are not drawn, and why; steps of a drift are one change."""
    if not (left_out := len(changes) - drawn):
        return ""
    if "kind" not in changes:
        of = f"{plural(len(changes), 'change')}{f' ({steps:,} steps)' if steps > len(changes) else ''}"
        return f"not drawn: {left_out:,} of {of}, without gas"
    not_compared = int((changes["kind"] == Kind.NOT_COMPARED).sum())
    why = " or ".join(["not compared"] * bool(not_compared) + ["without gas"] * (left_out > not_compared))
    return f"not drawn: {left_out:,} of {plural(len(changes), 'call')}, {why}"


def _draw_rows(ax: Axes, rows: pd.DataFrame, colours: list[Any]) -> None:
    before, after = (rows[name].to_numpy(dtype=np.float64) for name in ("gas_before", "gas_after"))
    places, below, grey = np.arange(len(rows)), np.arange(len(rows)) + 0.28, style.muted(ax)
    style.name_rows(ax, [*rows["_name"]], below=0.6, above=0.6)
    low, high = (rows.get(name, rows["gas_before"]).to_numpy(np.float64) for name in ("lowest", "highest"))
    low, high = np.fmin(np.minimum(before, after), low), np.fmax(np.maximum(before, after), high)
    for name, chosen in (("solid", ~rows["_uncertain"].to_numpy()), ("dashed", rows["_uncertain"].to_numpy())):
        colors = [colour for colour, one in zip(colours, chosen, strict=True) if one]
        line: dict[str, Any] = {"colors": colors, "linewidth": 2.2, "alpha": 0.55, "linestyles": name}
        ax.hlines(places[chosen], low[chosen], high[chosen], **line, gid="span")
    bounds = np.array([_bounds(row) for row in plain_rows(rows)])
    look: dict[str, Any] = {"zorder": 3, "clip_on": False}
    ax.scatter(before, places, s=34, facecolors=style.paper(ax), edgecolors=colours, **look, gid="before")
    ax.scatter(after, places, s=38, color=colours, **look, gid="after")
    for name, face in (("before", style.paper(ax)), ("after", grey)):
        ax.plot([], [], "o", markersize=5.5, markerfacecolor=face, markeredgecolor=grey, label=name)
    texts = [_change_text(row) for row in plain_rows(rows)]
    style.gas_rows(ax, low, high, bounds[np.isfinite(bounds)])
    style.write_ends(ax, texts, gid="change")
    if (known := np.isfinite(bounds[:, 0])).any():
        thin: dict[str, Any] = {"color": style.ink(), "linewidth": 1, "zorder": 2.5}
        ends = np.where(np.isinf(bounds), max(high.max(), bounds[np.isfinite(bounds)].max()), bounds)
        ax.hlines(below[known], *ends[known].T, **thin, gid="bounds")
        for marker, there in (("|", np.isfinite(bounds)), (">", np.isinf(bounds))):
            if there.any():  # the layout makes room for markers of an empty line at the edge of the figure
                ax.plot(
                    ends[there], np.column_stack((below, below))[there], marker, markersize=4, clip_on=False, **thin
                )
        ax.plot([], [], label="95 % interval of after", **thin)


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
        low, high, end = map(number, (row.get("lowest"), row.get("highest"), after))
        return f"same gas{doubt}" if count == 1 else f"{low} to {high} in {count:,} steps, back to {end}"
    change = StepChange(row["label"], row.get("source") or "", count, before, after)
    return f"{short_change(change, figure_text)}{doubt}"


def _bounds(row: dict[str, Any]) -> tuple[float, float]:
    """Return the bounds of the gas after a change; NaN if they are not known, and infinity if there is no upper one."""
    before, low, high = float(row["gas_before"]), row.get("change_low"), row.get("change_high")
    if low is None:
        refunds = any(row.get(f"storage_fee_refund_octas_{side}") for side in ("before", "after"))
        fees = [None if refunds else row.get(f"fee_change_{side}") for side in ("low", "high")]
        low, high = (None if share is None else before * share / 100 for share in fees)
    if low is None:
        return np.nan, np.nan
    return max(before + low, 0.0), np.inf if high is None else before + high


def _row_names(rows: Sequence[dict[str, Any]], *, placed: bool) -> list[str]:
    """Return the call, part and place of each row; where several strata share them, also the stratum."""
    names = []
    for row in rows:
        before, after = row.get("version_before"), row.get("version_after")
        parts = [figure_text(row["label"], 44), row.get("part")]
        if placed and before is not None and after is not None:
            parts.append(change_place(int(before), int(after), several=row.get("count", 1) > 1))
        names.append(" · ".join(filter(None, parts)))
    shared = Counter(names)
    kinds = [figure_text(stratum_text(row.get("stratum") or "", row.get("way_gas")), 64) for row in rows]
    return [
        f"{one}\n{in_lines(kind)}" if shared[one] > 1 and kind else one for one, kind in zip(names, kinds, strict=True)
    ]
