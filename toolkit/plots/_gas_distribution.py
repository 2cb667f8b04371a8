"""The figure of the distribution of gas over the committed transactions, or the readings, of each call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.patches import Patch

from toolkit._present.text import number, plural
from toolkit.gas._observations import Source
from toolkit.gas._series import as_observations, is_model, series_of
from toolkit.plots import _style as style
from toolkit.plots._labels import figure_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from toolkit.gas._series import CallSeries

__all__ = ["gas_distribution"]

BINS = 90
HEIGHT = 0.78
"""Share of the height of a row for its tallest bar."""
FAILED_ALPHA = 0.4


def gas_distribution(
    observations: Any,
    *,
    source: str | None = None,
    ax: Axes | None = None,
    calls: Sequence[str] | None = None,
) -> Axes:
    """Draw a histogram of gas for each call, as a row of bars.

    Each row has its own height scale, on which the most frequent gas is as tall as the row. A tick marks the median.
    Simulations of one function share a row, whatever their arguments. Failed executions, which cost gas too, are paler.
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
    with style.drawing(ax, width=9, height=1.5 + 0.62 * max(len(found), 1)) as axes:
        axes.set_xlabel("gas used (gas units)")
        axes.set_title("Distribution of gas")
        style.grid(axes, "x")
        if not found:
            style.nothing(axes, f"no readings of {figure_text(source)}")
            return axes
        _draw_rows(axes, found)
        if is_model(observations):
            style.note(axes, style.MODEL_NOTE, below_pt=36)
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
        _name_median(ax, median, foot)
    ax.set_yticks(np.arange(len(found)) + 0.2, [_row_name(series) for series in found], color=style.INK)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(found) - 0.25, -0.5)
    handles = [Patch(color=style.MUTED, label="succeeded")]
    if any((~series.success & series.answered).any() for series in found):
        handles.append(Patch(color=style.MUTED, alpha=FAILED_ALPHA, label="execution failed"))
    ax.legend(
        handles=handles,
        loc="lower right",
        bbox_to_anchor=(1, 1),
        ncols=2,
        borderaxespad=0.2,
        handlelength=1.0,
    )


def _name_median(ax: Axes, median: float, foot: float) -> None:
    ax.annotate(
        f"median {number(median)}",
        xy=(median, foot + 0.1),
        xytext=(4, -1),
        textcoords="offset points",
        va="center",
        fontsize=7.5,
        color=style.MUTED,
        gid="median-name",
        annotation_clip=False,
    )


def _row_name(series: CallSeries) -> str:
    where = f" · {figure_text(series.node, 24)}" if series.node else ""
    return f"{figure_text(series.name, 30)}\n{plural(int(series.answered.sum()), 'reading')}{where}"


def _edges(ax: Axes, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Set the gas axis and return the edges of its bins: of equal width in the figure, at least one gas unit."""
    low, high = float(values.min()), float(values.max())
    if style.gas_axis_is_log(ax, low, high):
        edges = np.geomspace(low / 1.15, high * 1.15, BINS + 1).astype(np.float64)
    else:
        width = max((high - low) * 1.1 / BINS, 1.0)
        count = int(np.ceil((high - low) / width)) + 3
        edges = low - 1.5 * width + width * np.arange(count + 1, dtype=np.float64)
    ax.set_xlim(edges[0], edges[-1])
    return edges
