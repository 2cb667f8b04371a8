"""The figure of gas against ledger version: where it steps, why, and where a call fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullFormatter
from matplotlib.transforms import blended_transform_factory

from toolkit.plots import style
from toolkit.plots.changes import STEP_COLUMNS, drifting
from toolkit.plots.labels import Caption, EndLabel, place_captions, place_end_labels
from toolkit.plots.legend import legend_below
from toolkit.plots.series import Series, call_order, columns_of, is_model, require, series_of
from toolkit.plots.text import figure_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

__all__ = ["gas_by_version"]

RUG_STRIP = 0.045
"""Share of the axes' height given to each failing call."""
MOST_RUG_ROWS = 6
MARK_COLUMNS = 400
FEW_DOTS = 150
"""More transactions than this are drawn as smaller dots: they would run into a bar."""


def gas_by_version(
    observations: pd.DataFrame,
    *,
    steps: pd.DataFrame | None = None,
    ax: Axes | None = None,
    calls: Sequence[str] | None = None,
) -> Axes:
    """Draw the gas of calls against the ledger version they were read at.

    Views are lines that step at the version of the change where adjacent versions were read, and
    slope between readings further apart, where nobody knows. Simulations are diamonds, committed
    transactions dots; a cross is an execution that failed. Readings without an answer are bars at
    the foot. Calls of very different gas make the axis logarithmic.

    Parameters
    ----------
    observations : DataFrame
        One row per reading, as `Run.observations`. Reads ``label``, ``source``, ``ledger_version``
        and ``gas_used`` (gas units); ``success``, ``error_code``, ``node``, ``model`` where present.
    steps : DataFrame, optional
        As `Run.steps`: each change gets a mark whose colour and shape say its cause. An unresolved
        interval is a band with a hollow mark in its middle.
    ax : Axes, optional
        Axes to draw on; by default a figure of its own.
    calls : sequence of str, optional
        Labels to draw; all by default. A call keeps its colour whichever are drawn.

    Returns
    -------
    Axes
        x in ledger versions, y in gas units.

    Raises
    ------
    SchemaError
        If a column read is missing.
    InputError
        If `calls` names a label that is not there.
    """
    found = series_of(observations, calls)
    if steps is not None:
        require(steps, STEP_COLUMNS, what="marks of changes")
        steps = steps[steps["label"].isin(list(call_order(observations, calls)))]
    with style.drawing(ax, width=9, height=max(4.4, 1.8 + 0.24 * len(found))) as axes:
        for series in found:
            _draw_series(axes, series)
        failing = [series for series in found if series.failures()]
        _set_axes(axes, found, rug_rows=min(len(failing), MOST_RUG_ROWS))
        _draw_rug(axes, failing, named=len(found) > 1)
        marks = None if steps is None or steps.empty else _marks(steps)
        if marks is not None:
            _draw_steps(axes, marks)
        legend_rows = _add_legend(axes, found, marks)
        axes.set_title(_title(found))
        if is_model(observations):
            style.note(axes, style.MODEL_NOTE, below_pt=36 + 14 * legend_rows)
        if len(found) > 1:
            place_end_labels(axes, _end_labels(found))
        if marks is not None:
            _add_captions(axes, marks)
    return axes


def _title(found: Sequence[Series]) -> str:
    if len({series.label for series in found}) == 1:
        return f"Gas of {figure_text(found[0].label, 48)} by ledger version"
    return "Gas by ledger version"


def _draw_series(ax: Axes, series: Series) -> None:
    colour = style.call_colour(series.position)
    if series.source == "view@version":
        x, y = series.line()
        ax.plot(
            x,
            y,
            color=colour,
            linestyle=style.call_dashes(series.position),
            linewidth=1.6,
            solid_joinstyle="miter",
            gid="gas-line",
        )
        _draw_lonely(ax, series, colour)
        return
    committed = series.source == "committed"
    for good, marker in ((True, "." if committed else "d"), (False, "x")):
        chosen = (series.success == good) & series.answered
        if chosen.any():
            ax.plot(
                series.versions[chosen],
                series.gas[chosen],
                linestyle="none",
                marker=marker,
                markersize=7 if not committed and good else 5 if chosen.sum() <= FEW_DOTS else 3,
                markeredgecolor=colour if committed or not good else style.PAPER,
                markerfacecolor=colour,
                alpha=0.75 if committed else 1,
                gid=f"gas-{'committed' if committed else 'simulated'}",
                clip_on=False,
                zorder=4,
            )


def _draw_lonely(ax: Axes, series: Series, colour: str) -> None:
    """Draw readings that have no answered neighbour: a line through one point shows nothing."""
    gap = np.concatenate(([True], ~series.answered, [True]))
    lonely = gap[:-2] & gap[2:] & ~gap[1:-1]
    if lonely.any():
        ax.plot(
            series.versions[lonely],
            series.gas[lonely],
            linestyle="none",
            marker="o",
            markersize=4,
            color=colour,
            gid="gas-point",
        )


def _set_axes(ax: Axes, found: Sequence[Series], *, rug_rows: int) -> None:
    values = np.concatenate([series.gas[series.answered] for series in found] or [np.array([])])
    versions = np.concatenate([series.versions for series in found] or [np.array([])])
    ax.set_xlabel("ledger version")
    ax.set_ylabel("gas used (gas units)")
    style.grid(ax, "y")
    ax.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, min_n_ticks=1))
    ax.xaxis.set_major_formatter(style.NUMBERS)
    if len(versions) == 0:
        ax.text(0.5, 0.5, "no observations", transform=ax.transAxes, ha="center", color=style.MUTED)
        return
    width = versions.max() - versions.min() or 1.0
    ax.set_xlim(versions.min() - 0.015 * width, versions.max() + 0.015 * width)
    _set_gas_scale(ax, values, share=rug_rows * RUG_STRIP + 0.02 * (rug_rows > 0))


def _set_gas_scale(ax: Axes, values: NDArray[np.float64], *, share: float) -> None:
    """Choose linear or logarithmic; keep `share` of the height free at the foot."""
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    positive = values[values > 0]
    if len(positive) and high / positive.min() >= style.LOG_RATIO:
        if low > 0:
            ax.set_yscale("log")
        else:
            ax.set_yscale("symlog", linthresh=1)
        decades = np.log10(high / positive.min())
        few = 3
        ticks = np.asarray(LogLocator(subs=(1, 2, 5) if decades < few else (1,)).tick_values(1, 10 * high))
        ax.yaxis.set_major_locator(FixedLocator([0.0] * (low == 0) + ticks[ticks >= 1].tolist()))
        ax.yaxis.set_minor_formatter(NullFormatter())
    else:
        constant = low == high
        low = 0.0 if constant or high >= 1.5 * low else max(low - 2 * (high - low), 0.0)
        high = 1.6 * high or 1.0 if constant else high
        ax.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, min_n_ticks=1))
    ax.yaxis.set_major_formatter(style.NUMBERS)
    # Limits are set where the scale is straight, so that shares of the height are what they say.
    scale = ax.yaxis.get_transform()
    bottom, top = (float(end) for end in scale.transform(np.array([low, high])))
    room = (top - bottom) or 1.0
    top += 0.08 * room
    bottom -= (0.0 if low == 0 else 0.06 * room) + share / (1 - share) * room
    ax.set_ylim(*(float(end) for end in scale.inverted().transform(np.array([bottom, top]))))


def _draw_rug(ax: Axes, failing: Sequence[Series], *, named: bool) -> None:
    """Draw, for each failing call, a row of bars at the foot over the readings without an answer."""
    foot = blended_transform_factory(ax.transData, ax.transAxes)
    for row, series in enumerate(failing):
        y = RUG_STRIP * (min(row, MOST_RUG_ROWS - 1) + 0.6)
        runs = series.failures()
        for first, last in runs:
            ax.plot(
                [first, last],
                [y, y],
                transform=foot,
                color=style.call_colour(series.position),
                linewidth=4,
                marker="s" if first == last else "",  # a line from a point to itself is not drawn
                markersize=4,
                markeredgewidth=0,
                alpha=0.55,
                solid_capstyle="projecting",
                gid="failures",
            )
        if row < MOST_RUG_ROWS - 1 or len(failing) == MOST_RUG_ROWS:
            _name_rug(ax, series, runs, y, named=named)


def _name_rug(ax: Axes, series: Series, runs: Sequence[tuple[float, float]], y: float, *, named: bool) -> None:
    """Say, beside its bars, how a call failed; and which, where there are several."""
    left, right = ax.get_xlim()
    at_right = right - runs[-1][1] > 0.4 * (right - left)
    error = figure_text(series.error or "no gas in the answer", 28)
    ax.annotate(
        f"{figure_text(series.label, 24)}: {error}" if named else error,
        xy=(runs[-1][1] if at_right else runs[0][0], y),
        xycoords=("data", "axes fraction"),
        xytext=(7 if at_right else -7, 0),
        textcoords="offset points",
        ha="left" if at_right else "right",
        va="center_baseline",
        fontsize=7,
        color=style.MUTED,
        gid="failure-name",
    )


def _draw_steps(ax: Axes, marks: pd.DataFrame) -> None:
    """Mark every change; give every unresolved interval a band."""
    for cause, group in marks[~marks["exact"]].groupby("cause"):
        x, y = group[["start", "start", "end", "end"]], group[["before", "after", "after", "before"]]
        ax.add_collection(
            PolyCollection(
                list(np.dstack([x.to_numpy(), y.to_numpy()])),
                facecolors=style.CAUSES[str(cause)].colour,
                edgecolors="none",
                alpha=0.18,
                gid="unresolved",
                zorder=1.5,
            ),
            autolim=False,
        )
    for key, group in marks.groupby(["cause", "exact", "drift"]):
        kind, exact, drift = (str(key[0]), bool(key[1]), bool(key[2]))
        colour, marker = style.CAUSES[kind]
        size = 3.2 if drift else 6.5
        ax.plot(
            group["x"],
            group["y"],
            linestyle="none",
            marker=marker,
            markersize=size,
            markerfacecolor=colour if exact else style.PAPER,
            markeredgecolor=style.PAPER if exact else colour,
            markeredgewidth=0.4 if drift else 0.8,
            gid=f"change-{kind}",
            zorder=5,
        )


def _marks(steps: pd.DataFrame) -> pd.DataFrame:
    """Where the marks stand: ``x, y``, the interval ``start..end``, gas ``before, after``, and how."""
    start = steps["version_before"].to_numpy(dtype=np.float64)
    end = steps["version_after"].to_numpy(dtype=np.float64)
    before = steps["gas_before"].to_numpy(dtype=np.float64, na_value=np.nan)
    after = steps["gas_after"].to_numpy(dtype=np.float64, na_value=np.nan)
    before, after = np.where(np.isnan(before), after, before), np.where(np.isnan(after), before, after)
    exact = steps["exact"].fillna(False).to_numpy(dtype=np.bool_)  # noqa: FBT003 - pandas' own signature
    cause = steps["cause"].astype(object).where(steps["cause"].isin(list(style.CAUSES)), "unknown")
    marks = pd.DataFrame(
        {
            "label": steps["label"].to_numpy(dtype=object),
            "x": np.where(exact, end, (start + end) / 2),
            "y": np.where(exact, after, (before + after) / 2),
            "start": start,
            "end": end,
            "before": before,
            "after": after,
            "exact": exact,
            "cause": cause.to_numpy(dtype=object),
            "drift": drifting(steps).to_numpy(dtype=np.bool_),
        }
    )
    marks = marks[marks["y"].notna()]
    if marks.empty:
        return marks
    # A drift of thousands of steps is a band of marks; one a column draws the same band.
    column = columns_of(marks["x"].to_numpy(dtype=np.float64), MARK_COLUMNS)
    hidden = marks.assign(column=column).duplicated(["label", "cause", "column"]) & marks["drift"]
    return marks[~hidden]


def _add_legend(ax: Axes, found: Sequence[Series], marks: pd.DataFrame | None) -> int:
    """Explain under the axes the marks that are in the figure; return the rows that takes."""
    causes = set() if marks is None else set(marks["cause"])
    handles = [
        Line2D([], [], linestyle="none", marker=mark.marker, color=mark.colour, markersize=6, label=cause)
        for cause, mark in style.CAUSES.items()
        if cause in causes
    ]
    plain: dict[str, Any] = {"linestyle": "none", "color": style.MUTED, "markersize": 6}
    if marks is not None and not marks["exact"].all():
        hollow: dict[str, Any] = {"markerfacecolor": style.PAPER, "markeredgecolor": style.MUTED}
        handles.append(Line2D([], [], marker="o", label="between two readings", **plain | hollow))
    sources = {series.source for series in found}
    if "simulate@now" in sources:
        handles.append(Line2D([], [], marker="d", label="simulated at the head", **plain))
    if "committed" in sources:
        handles.append(Line2D([], [], marker=".", label="committed", **plain))
    if any((series.answered & ~series.success).any() for series in found):
        handles.append(Line2D([], [], marker="x", label="execution failed", **plain))
    if any(series.failures() for series in found):
        handles.append(Line2D([], [], color=style.MUTED, alpha=0.55, linewidth=4, label="no result"))
    return legend_below(ax, handles)


def _end_labels(found: Sequence[Series]) -> list[EndLabel]:
    """Name each series level with its last answered reading; those never answered have their rug."""
    last: dict[tuple[str, str], tuple[float, Series]] = {}
    for series in found:
        if series.answered.any():
            last[series.label, series.node] = (float(series.gas[series.answered][-1]), series)
    return [EndLabel(y, _name(series), style.call_colour(series.position)) for y, series in last.values()]


def _name(series: Series) -> str:
    label = figure_text(series.label, 34)
    return f"{label} · {figure_text(series.node, 20)}" if series.node else label


def _add_captions(ax: Axes, marks: pd.DataFrame) -> None:
    """Write version and cause over the changes that matter most, each with a hairline down the axes."""
    versions = marks.loc[~marks["drift"], "end"]
    written = place_captions(ax, _captions(marks[marks["end"].isin(versions)]))
    for _, caption in written:
        ax.axvline(caption.x, color=caption.colour, linewidth=0.7, alpha=0.5, zorder=1, gid="caption-line")
    if written:
        rows = 1 + max(row for row, _ in written)
        ax.set_title(ax.get_title(loc="left"), loc="left", pad=8 + 10 * rows)


def _captions(marks: pd.DataFrame) -> list[Caption]:
    """One caption per interval; weight is the number of calls, then the size of the largest change."""
    size = np.abs(np.log(np.maximum(marks["after"], 1) / np.maximum(marks["before"], 1)))
    captions = []
    for x, rows in marks.assign(size=size).groupby("x"):
        cause = next(cause for cause in style.CAUSES if cause in set(rows["cause"]))
        calls = rows["label"].nunique()
        where = style.interval(rows["start"].min(), rows["end"].max())
        captions.append(
            Caption(
                x=float(x),  # type: ignore[arg-type]  # a group key is any hashable to the stubs
                text=f"{where} {cause}" + (f" · {calls} calls" if calls > 1 else ""),
                colour=style.CAUSES[cause].colour,
                weight=calls - 1 + float(rows["size"].max()),
            )
        )
    return captions
