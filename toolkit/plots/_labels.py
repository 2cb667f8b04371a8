"""Text in figures: literal text, labels that do not overlap, and legends that fit below the axes."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.lines import Line2D
from matplotlib.transforms import ScaledTranslation

from toolkit._present.text import visible
from toolkit.plots._style import BLACK, CAUSE_MARKS, MUTED, figure_of, write

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from toolkit.gas._observations import Cause


_RIGHT_MARGIN_PX = 6
_BELOW_AXES_PT, _LEGEND_ROW_PT = 36, 14  # where a footnote is: below the ticks and label of the axis, and the legend


def figure_text(text: object, limit: int = 36) -> str:
    """Return text that matplotlib draws literally, with the current fonts.

    Dollar signs are escaped, so that nothing is read as mathtext. Characters that are in none of the fonts become a
    box, so that drawing never warns about missing glyphs.

    Parameters
    ----------
    text : object
        Shown by ``str``.
    limit : int, default 36
        Maximum number of characters returned, without the escapes of dollar signs.

    Returns
    -------
    str
    """
    known = _characters(tuple(mpl.rcParams["font.family"]))
    box = "□" if ord("□") in known else "?"
    shown = "".join(char if ord(char) in known else box for char in visible(text, limit))
    return shown.replace("$", r"\$")


@lru_cache(maxsize=8)
def _characters(families: tuple[str, ...]) -> frozenset[int]:
    """Return the code points that the fonts of `families` have; matplotlib tries one font after the other."""
    paths = {findfont(FontProperties(family=[family])) for family in families}
    return frozenset().union(*(get_font(path).get_charmap() for path in paths))


class EndLabel(NamedTuple):
    """A name to draw right of the axes, at the height `y` (data units)."""

    y: float
    text: str
    colour: str


class Caption(NamedTuple):
    """A text to draw above the axes at `x` (data units); captions of more weight are placed first."""

    x: float
    text: str
    colour: str
    weight: float


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move positions apart until neighbours are `gap` apart, each as near as possible to its target.

    Parameters
    ----------
    wanted : sequence of float
        Target positions, in any order.
    gap : float
        Minimum distance; smaller if the range from `low` to `high` is too short.
    low, high : float
        Available range, in the same unit.

    Returns
    -------
    list of float
        One position for each target, in the order given; the order of positions does not change.
    """
    if not wanted:
        return []
    gap = min(gap, (high - low) / max(len(wanted) - 1, 1))
    order = np.argsort(np.asarray(wanted), kind="stable")
    # Each block of touching labels is placed at the mean of its targets; blocks that overlap are merged. This is the
    # least-squares solution (isotonic regression by pooling adjacent violators), in one pass; scipy has it too, but
    # importing scipy.optimize takes longer than drawing.
    blocks: list[tuple[float, int]] = []
    for place, index in enumerate(order):
        centre, count = float(wanted[index]) - place * gap, 1
        while blocks and blocks[-1][0] > centre:
            before, members = blocks.pop()
            centre = (before * members + centre * count) / (members + count)
            count += members
        blocks.append((centre, count))
    starts = np.clip(np.repeat([b[0] for b in blocks], [b[1] for b in blocks]), low, high - gap * (len(wanted) - 1))
    placed = [0.0] * len(wanted)
    for place, index in enumerate(order):
        placed[index] = float(starts[place] + place * gap)
    return placed


def place_end_labels(ax: Axes, labels: Sequence[EndLabel], *, size: float = 8.0) -> None:
    """Draw names right of the axes, each with a short line in its colour.

    Parameters
    ----------
    ax : Axes
        Its limits and scale must be final.
    labels : sequence of EndLabel
        Names; any order.
    size : float, default 8
        Font size, points.
    """
    line = {"arrowstyle": "-", "lw": 1.6, "shrinkA": 1, "shrinkB": 2, "relpos": (0, 0.5)}
    outside: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "va": "center", "annotation_clip": False}
    texts = [
        write(ax, text, (1, y), gid="end-label", size=size, arrowprops=line | {"color": colour}, **outside)
        for y, text, colour in labels
    ]
    pt = _settle(ax)
    box = ax.get_window_extent()
    level = [float(ax.transData.transform((0, label.y))[1]) for label in labels]
    placed = spread(level, 1.35 * size / pt, box.y0 + size / 2 / pt, box.y1 - size / 2 / pt)
    for text, was, now in zip(texts, level, placed, strict=True):
        text.set_position((24, (now - was) * pt))


def _settle(ax: Axes) -> float:
    """Lay out the figure, since positions are known only afterwards; return points per pixel."""
    figure = figure_of(ax)
    if (engine := figure.get_layout_engine()) is not None:
        engine.execute(figure)
    return 72 / figure.dpi


def place_captions(
    ax: Axes, captions: Sequence[Caption], *, rows: int = 2, size: float = 7.5
) -> list[tuple[int, Caption]]:
    """Draw captions above the axes in at most `rows` rows, and leave out those that do not fit.

    Parameters
    ----------
    ax : Axes
        Its limits must be final.
    captions : sequence of Caption
        In any order.
    rows : int, default 2
        Maximum number of rows of text.
    size : float, default 7.5
        Font size, points.

    Returns
    -------
    list of (int, Caption)
        The captions that were drawn, each with its row, counted from the axes.
    """
    if not captions:
        return []
    pt = _settle(ax)
    box = ax.get_window_extent()
    above: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "ha": "center", "va": "bottom"}
    above["annotation_clip"] = False
    taken: list[list[tuple[float, float]]] = [[] for _ in range(rows)]
    written: list[tuple[int, Caption]] = []
    for caption in sorted(captions, key=lambda one: (-one.weight, one.x)):
        colour = MUTED if caption.colour == BLACK else caption.colour
        text = write(ax, caption.text, (caption.x, 1), gid="caption", size=size, colour=colour, **above)
        extent = text.get_window_extent()
        shift = max(box.x0 - extent.x0, 0) - max(extent.x1 - box.x1, 0)
        span = (extent.x0 + shift - size, extent.x1 + shift + size)
        free = (row for row in range(rows) if all(span[1] <= low or span[0] >= high for low, high in taken[row]))
        row = next(free, None)
        if row is None:
            text.remove()
            continue
        taken[row].append(span)
        text.set_position((shift * pt, 3 + row * 1.3 * size))
        written.append((row, caption))
    return written


def cause_handles(causes: Collection[Cause], size: float = 6) -> list[Artist]:
    """Return the entries of a legend for causes, in the order of the causes."""
    return [
        Line2D([], [], linestyle="none", marker=mark.marker, color=mark.colour, markersize=size, label=one.label)
        for one, mark in CAUSE_MARKS.items()
        if one in causes
    ]


def finish(ax: Axes, handles: Sequence[Artist] = (), notes: Sequence[str] = ()) -> None:
    """Draw a legend and a footnote below the axes, whose limits and labels must be set; the last step of a figure."""
    rows = legend_below(ax, handles)
    if notes:
        below = (0.0, -float(_BELOW_AXES_PT + _LEGEND_ROW_PT * rows))
        outside = {"xycoords": "axes fraction", "va": "top", "annotation_clip": False}
        write(ax, " · ".join(notes), (0, 0), gid="note", offset=below, size=7.5, colour=MUTED, **outside)


def legend_below(ax: Axes, handles: Sequence[Artist]) -> int:
    """Draw a legend below the axes and its label, in as few rows as fit.

    Parameters
    ----------
    ax : Axes
        Its limits and labels must be set.
    handles : sequence of Artist
        Entries; their labels are the text.

    Returns
    -------
    int
        Number of rows.
    """
    if not handles:
        return 0
    under = ax.transAxes + ScaledTranslation(0, -34 / 72, figure_of(ax).dpi_scale_trans)
    place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0, 0), "bbox_transform": under}
    place |= {"borderaxespad": 0, "borderpad": 0, "handlelength": 1.0, "handletextpad": 0.4, "columnspacing": 1.3}
    room = _room_of_legend(ax)
    for columns in range(len(handles), 0, -1):
        legend = ax.legend(handles=handles, ncols=columns, **place)
        if columns == 1 or legend.get_window_extent().width <= room:
            break
        legend.remove()
    return -(-len(handles) // columns)


def _room_of_legend(ax: Axes) -> float:
    """Return the width that a legend may have, in pixels; a wider one is cut off, or shrinks the axes."""
    figure = figure_of(ax)
    _settle(ax)
    alone = len(figure.axes) == 1
    right = figure.bbox.x1 - _RIGHT_MARGIN_PX if alone else ax.get_window_extent().x1
    return float(right - ax.get_window_extent().x0)
