"""A legend under the axes that stays in the figure, however many entries it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.transforms import ScaledTranslation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D

__all__ = ["legend_below"]

RIGHT_MARGIN = 6
"""Pixels kept free right of a legend."""


def legend_below(ax: Axes, handles: Sequence[Line2D]) -> int:
    """Write a legend under the axes and its label, in as few rows as fit.

    Parameters
    ----------
    ax : Axes
        Its limits and labels must be set.
    handles : sequence of Line2D
        Entries, by their labels.

    Returns
    -------
    int
        Rows it takes.
    """
    if not handles:
        return 0
    columns = _fitting_columns(ax, handles)
    _legend(ax, handles, columns)
    return -(-len(handles) // columns)


def _legend(ax: Axes, handles: Sequence[Line2D], columns: int) -> Legend:
    figure = ax.get_figure(root=True)
    under = ax.transAxes + ScaledTranslation(0, -34 / 72, figure.dpi_scale_trans) if figure else ax.transAxes
    return ax.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0, 0),
        bbox_transform=under,
        ncols=columns,
        borderaxespad=0,
        borderpad=0,
        handlelength=1.0,
        handletextpad=0.4,
        columnspacing=1.3,
    )


def _fitting_columns(ax: Axes, handles: Sequence[Line2D]) -> int:
    """Return the most columns with which a legend stays in the figure; a wider one is cut, or squeezes the axes."""
    figure = ax.get_figure(root=True)
    if figure is None:
        return len(handles)
    figure.draw_without_rendering()
    alone = len(figure.axes) == 1
    right = figure.bbox.x1 - RIGHT_MARGIN if alone else ax.get_window_extent().x1
    room = right - ax.get_window_extent().x0
    for columns in range(len(handles), 1, -1):
        legend = _legend(ax, handles, columns)
        width = legend.get_window_extent().width
        legend.remove()
        if width <= room:
            return columns
    return 1
