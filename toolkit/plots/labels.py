"""Labels that do not collide: names at the right end of lines, and captions over changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from toolkit.plots.style import BLACK, INK, MUTED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.text import Annotation

__all__ = ["Caption", "EndLabel", "place_captions", "place_end_labels", "spread"]


class EndLabel(NamedTuple):
    """A name to stand right of the axes, level with `y` (data units)."""

    y: float
    text: str
    colour: str


class Caption(NamedTuple):
    """A text to stand over the axes at `x` (data units); the weightier ones get room first."""

    x: float
    text: str
    colour: str
    weight: float


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move positions apart so that neighbours are `gap` apart, staying near where they were wanted.

    Parameters
    ----------
    wanted : sequence of float
        Positions wanted, any order.
    gap : float
        Least distance; made smaller where the room between `low` and `high` is not enough.
    low, high : float
        Room there is, in the same unit.

    Returns
    -------
    list of float
        One position per wanted one, in the order given, with the order of positions kept.
    """
    if not wanted:
        return []
    gap = min(gap, (high - low) / max(len(wanted) - 1, 1))
    order = np.argsort(np.asarray(wanted), kind="stable")
    # Each block of touching labels sits where its members wanted to be on average; blocks that
    # come to overlap become one. This is the least-squares answer, in one pass.
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
    """Write names right of the axes, each with a short line of its colour from the end of its line.

    Parameters
    ----------
    ax : Axes
        Its limits and scale must be final.
    labels : sequence of EndLabel
        Names; any order.
    size : float, default 8
        Font size, points.
    """
    texts = [_end_label(ax, label, size) for label in labels]
    pt = _settle(ax)
    box = ax.get_window_extent()
    level = [float(ax.transData.transform((0, label.y))[1]) for label in labels]
    placed = spread(level, 1.35 * size / pt, box.y0 + size / 2 / pt, box.y1 - size / 2 / pt)
    for text, was, now in zip(texts, level, placed, strict=True):
        text.set_position((24, (now - was) * pt))


def _settle(ax: Axes) -> float:
    """Lay the figure out, as where things are is known only then; return points per pixel."""
    figure = ax.get_figure(root=True)
    if figure is None:  # Axes taken out of their figure: nothing will be drawn
        return 1.0
    figure.draw_without_rendering()
    return 72 / figure.dpi


def _end_label(ax: Axes, label: EndLabel, size: float) -> Annotation:
    return ax.annotate(
        label.text,
        xy=(1, label.y),
        xycoords=("axes fraction", "data"),
        xytext=(24, 0),
        textcoords="offset points",
        va="center",
        fontsize=size,
        color=INK,
        gid="end-label",
        annotation_clip=False,
        arrowprops={
            "arrowstyle": "-",
            "color": label.colour,
            "lw": 1.6,
            "shrinkA": 1,
            "shrinkB": 2,
            "relpos": (0, 0.5),
        },
    )


def place_captions(
    ax: Axes, captions: Sequence[Caption], *, rows: int = 2, size: float = 7.5
) -> list[tuple[int, Caption]]:
    """Write captions over the axes in at most `rows` rows, and leave out those there is no room for.

    Parameters
    ----------
    ax : Axes
        Its limits must be final.
    captions : sequence of Caption
        What to say, any order.
    rows : int, default 2
        Rows of text over the axes.
    size : float, default 7.5
        Font size, points.

    Returns
    -------
    list of (int, Caption)
        Those written, each with its row, counted from the axes.
    """
    if not captions:
        return []
    pt = _settle(ax)
    box = ax.get_window_extent()
    taken: list[list[tuple[float, float]]] = [[] for _ in range(rows)]
    written: list[tuple[int, Caption]] = []
    for caption in sorted(captions, key=lambda one: (-one.weight, one.x)):
        text = ax.annotate(
            caption.text,
            xy=(caption.x, 1),
            xycoords=("data", "axes fraction"),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=size,
            color=MUTED if caption.colour == BLACK else caption.colour,
            gid="caption",
            annotation_clip=False,
        )
        extent = text.get_window_extent()
        shift = max(box.x0 - extent.x0, 0) - max(extent.x1 - box.x1, 0)
        span = (extent.x0 + shift - size, extent.x1 + shift + size)
        row = next((row for row in range(rows) if _free(taken[row], span)), None)
        if row is None:
            text.remove()
            continue
        taken[row].append(span)
        text.set_position((shift * pt, 3 + row * 1.3 * size))
        written.append((row, caption))
    return written


def _free(taken: Sequence[tuple[float, float]], span: tuple[float, float]) -> bool:
    return all(span[1] <= low or span[0] >= high for low, high in taken)
