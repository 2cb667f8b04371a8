"""Figures that compare calls: the distribution of the gas of each, and a heat map of calls by ledger version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from toolkit._present.text import number, plural, times
from toolkit.gas._observations import Source
from toolkit.gas._series import as_observations, series_of
from toolkit.plots import _style as style
from toolkit.plots import _time as time
from toolkit.plots._labels import cause_handles, figure_text, finish

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from toolkit.gas._series import CallSeries


BINS = 90
HEIGHT = 0.78  # share of the height of a row for its tallest bar
FAILED_ALPHA = 0.4
STRIP_ROW = 0.5  # height of a row of marks of a timeline, in rows of calls
COLUMNS = 480  # of a row: about one for two pixels of the width of a figure
FAILED_COLOUR = "#c6ccd2"
COLOURS = LinearSegmentedColormap.from_list("ledger-toolkit gas", [style.BLUE, "#f4f4f2", style.VERMILLION])
MIN_POWER = 1e-9
MIN_RANGE = float(np.log2(1.1))  # otherwise a change of 0.1 % would be drawn in the strongest colour


def gas_distribution(
    observations: Any,
    *,
    source: str | None = None,
    ax: Axes | None = None,
    calls: Sequence[str] | None = None,
) -> Axes:
    """Draw a histogram of gas for each call, as a row of bars.

    Each row has its own height scale, on which the most frequent gas is as tall as the row. A tick marks the median.
    Simulations of one function share a row, whatever their arguments. Failed executions, which cost gas too, are paler;
    a legend says so if there are any.
    The axis is logarithmic if gas differs by a factor of 20 or more.

    Parameters
    ----------
    observations : DataFrame, TransactionFrames, Simulation, or several of them
        As in `gas_by_version`.
    source : str, optional
        The source that is drawn, since sources are never mixed: by default ``committed``, or the only one there is. The
        distribution of views (``view@version``) depends on the versions that were chosen.
    ax : Axes, optional
        Axes to draw on; by default a new figure.
    calls : sequence of str, optional
        Labels, or names as the figure shows them; all by default.

    Returns
    -------
    Axes
        x in gas units; one row per call, in order of calls.

    Raises
    ------
    InputError
        If `observations` is something else or lacks a column, or `calls` contains a label that it does not have.

    Examples
    --------
    >>> import toolkit
    >>> from matplotlib.figure import Figure
    >>> paid = toolkit.fetch_transactions(toolkit.connect(), "-300:", progress=False)
    >>> toolkit.plots.gas_distribution(paid, ax=Figure().subplots()).get_xlabel()
    'gas used (gas units)'
    """
    observations = as_observations(observations, figure="gas_distribution", by_function=True)
    every = series_of(observations, calls)
    source = source or _only_source(every)
    found = [series for series in every if series.source == source and series.answered.any()]
    with style.drawing(ax, height=1.5 + 0.62 * max(len(found), 1), title="Distribution of gas") as axes:
        if not found:
            style.nothing(axes, f"no readings of {figure_text(source)}")
            return axes
        _draw_rows(axes, found)
        finish(axes, _outcome_handles(found), style.model_note(observations))
    return axes


def _only_source(every: Sequence[CallSeries]) -> str:
    """Return the source of all series; committed transactions if there are several."""
    sources = {series.source for series in every if series.answered.any()}
    return sources.pop() if len(sources) == 1 else Source.COMMITTED.value


def _draw_rows(ax: Axes, found: Sequence[CallSeries]) -> None:
    edges = _edges(ax, np.concatenate([series.gas[series.answered] for series in found]))
    for place, series in enumerate(found):
        gas, success = series.gas[series.answered], series.success[series.answered]
        good, failed = (np.histogram(gas[chosen], edges)[0] for chosen in (success, ~success))
        unit = HEIGHT / max(int((good + failed).max()), 1)
        drawn = good + failed > 0  # the other bars have no height, but take most of the time
        foot, colour = place + 0.45, style.call_colour(series.position)
        for count, below, alpha in ((good, np.zeros_like(good), 1.0), (failed, good, FAILED_ALPHA)):
            ax.bar(
                edges[:-1][drawn],
                -count[drawn] * unit,
                width=np.diff(edges)[drawn],
                bottom=foot - below[drawn] * unit,
                align="edge",
                color=colour,
                alpha=alpha,
                linewidth=0,
                gid="failed" if alpha < 1 else "succeeded",
            )
        ax.hlines(foot, edges[0], edges[-1], colors=style.GRID, linewidth=0.8)
        median = float(np.median(gas))
        ax.plot([median, median], [foot, foot + 0.1], color=style.INK, linewidth=1.6, gid="median")
        at, name = (median, foot + 0.1), f"median {number(median)}"
        options: dict[str, Any] = {"colour": style.MUTED, "va": "center", "annotation_clip": False}
        style.write(ax, name, at, gid="median-name", offset=(4, -1), size=7.5, **options)
    style.name_rows(ax, [_row_name(series) for series in found], shift=0.2, below=0.75)


def _outcome_handles(found: Sequence[CallSeries]) -> list[Patch]:
    """Return the entries of a legend of outcomes, if an execution failed."""
    if not any((~series.success & series.answered).any() for series in found):
        return []
    colour = style.call_colour(found[0].position) if len(found) == 1 else style.MUTED
    names = {"succeeded": 1.0, "execution failed": FAILED_ALPHA}
    return [Patch(color=colour, alpha=alpha, label=name) for name, alpha in names.items()]


def _row_name(series: CallSeries) -> str:
    where = f" · {figure_text(series.node, 24)}" if series.node else ""
    return f"{figure_text(series.name, 30)}\n{plural(int(series.answered.sum()), 'reading')}{where}"


def _edges(ax: Axes, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Set the gas axis and return the edges of its bins: of equal width in the figure, at least one gas unit."""
    low, high = float(values.min()), float(values.max())
    if style.gas_scale(ax, "x", low, high):
        edges = np.geomspace(low / 1.15, high * 1.15, BINS + 1).astype(np.float64)
    else:
        width = max((high - low) * 1.1 / BINS, 1.0)
        count = int(np.ceil((high - low) / width)) + 3
        edges = low - 1.5 * width + width * np.arange(count + 1, dtype=np.float64)
    ax.set_xlim(edges[0], edges[-1])
    return edges


class _Row(NamedTuple):
    """One call over the columns: log2 of gas relative to its first reading (NaN if unknown), and where it failed."""

    name: str
    change: NDArray[np.float64]
    failed: NDArray[np.bool_]


def gas_heatmap(
    observations: Any,
    *,
    timeline: pd.DataFrame | None = None,
    ax: Axes | None = None,
    calls: Sequence[str] | None = None,
) -> Axes:
    """Draw each call as a row whose colour is its gas relative to its first reading.

    For many calls, whose lines would hide each other. Between two equal readings the row has their colour. Between two
    different readings the gas is not known, and the row is blank unless they are neighbours in the figure.

    Parameters
    ----------
    observations : DataFrame, or several of them
        As in `gas_by_version`; rows of ``view@version`` are drawn.
    timeline : DataFrame, optional
        As `toolkit.timeline` returns it. Its changes are marked below the rows, with the colours and shapes of causes.
    ax : Axes, optional
        Axes to draw on; by default a new figure. The colour bar uses some of its width.
    calls : sequence of str, optional
        Labels, or names as the figure shows them; all by default.

    Returns
    -------
    Axes
        x in ledger versions; one row per call, in order of calls.

    Raises
    ------
    SchemaError
        If `timeline` lacks a column.
    InputError
        If `observations` is something else or lacks a column, or `calls` contains a label that it does not have.

    Examples
    --------
    >>> import toolkit
    >>> from matplotlib.figure import Figure
    >>> calls = ["0x1::chain_id::get", "0x1::timestamp::now_seconds"]
    >>> frame = toolkit.fetch_views(toolkit.connect(), calls, "0:-1/20", typed=False, progress=False)
    >>> axes = toolkit.plots.gas_heatmap(frame, ax=Figure().subplots())
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['chain_id::get', 'timestamp::now_seconds']
    """
    observations = as_observations(observations, figure="gas_heatmap")
    found = [series for series in series_of(observations, calls) if series.source == Source.VIEW]
    title, height = "Gas of each call against its first reading", 1.7 + 0.3 * max(len(found), 2)
    with style.drawing(ax, height=height, title=title, xlabel="ledger version", across=None) as axes:
        if not found:
            style.nothing(axes, "no views")
            return axes
        first = min(float(series.versions[0]) for series in found)
        last = max(float(series.versions[-1]) for series in found)
        edges = np.linspace(first, max(last, first + 1), COLUMNS + 1)
        changes = [] if timeline is None else time.timeline_marks(timeline, first, last)
        rows = [_row(series, edges) for series in found]
        _draw(axes, rows, edges, changes)
        failed = [Patch(color=FAILED_COLOUR, label="no result")] if any(row.failed.any() for row in rows) else []
        handles = [*cause_handles({change.kind for change in changes}), *failed]
        finish(axes, handles, style.model_note(observations))
    return axes


def _row(series: CallSeries, edges: NDArray[np.float64]) -> _Row:
    name = figure_text(series.name, 44) + (f"\n({figure_text(series.node, 34)})" if series.node else "")
    known = series.gas[series.answered]
    with np.errstate(divide="ignore"):
        gas = np.log2(np.maximum(series.gas, 1) / max(float(known[0]), 1) if len(known) else series.gas)
    at = np.clip(np.searchsorted(series.versions, edges[1:], side="right") - 1, 0, None)
    after = np.clip(at + 1, None, len(gas) - 1)
    before_first = edges[1:] < series.versions[0]
    same = (gas[at] == gas[after]) | (np.isnan(gas[at]) & np.isnan(gas[after]))
    near = series.versions[after] - series.versions[at] <= 2 * (edges[1] - edges[0])
    known_at = ~before_first & (same | near)
    return _Row(name, np.where(known_at, gas[at], np.nan), known_at & np.isnan(gas[at]))


def _draw(ax: Axes, rows: Sequence[_Row], edges: NDArray[np.float64], changes: Sequence[time.TimelineMark]) -> None:
    change = np.array([row.change for row in rows])
    failed = np.array([row.failed for row in rows])
    reach = max(float(np.nanmax(np.abs(change))) if np.isfinite(change).any() else 0.0, MIN_RANGE)
    heights = np.arange(len(rows) + 1) - 0.5
    mesh = ax.pcolormesh(
        edges, heights, change, cmap=COLOURS, norm=TwoSlopeNorm(0, -reach, reach), rasterized=True, gid="gas-cells"
    )
    if failed.any():
        grey = LinearSegmentedColormap.from_list("failed", [FAILED_COLOUR, FAILED_COLOUR])
        cells = np.ma.masked_where(~failed, np.ones_like(change))
        ax.pcolormesh(edges, heights, cells, cmap=grey, rasterized=True, gid="failed-cells")
    ax.hlines(heights[1:-1], edges[0], edges[-1], colors=style.PAPER, linewidth=2.5)
    strip = STRIP_ROW * time.timeline_rows(changes)
    style.name_rows(ax, [row.name for row in rows], below=0.5 + strip)
    time.draw_timeline(ax, changes, share=strip / (len(rows) + strip))
    style.whole_ticks(ax.xaxis, 6, style.VERSION_NUMBERS)
    _add_scale(ax, mesh, reach)


def _add_scale(ax: Axes, mesh: object, reach: float) -> None:
    """Add the colour bar, with factors instead of logarithms."""
    bar = style.figure_of(ax).colorbar(mesh, ax=ax, pad=0.02, fraction=0.05, aspect=14)  # type: ignore[arg-type]  # a QuadMesh
    whole = float(np.floor(reach))
    bar.set_ticks([-reach, 0, reach] if whole < 1 else [-whole, 0, whole])
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _factor(value)))
    bar.ax.tick_params(labelsize=8, labelcolor=style.MUTED, color=style.GRID)
    bar.ax.minorticks_off()
    bar.outline.set_visible(False)


def _factor(power: float) -> str:
    return "same" if abs(power) < MIN_POWER else times(2**power)
