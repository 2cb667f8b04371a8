"""Colours, marks and number formats shared by all figures. Nothing here changes a global setting."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import matplotlib as mpl
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes

__all__ = ["CAUSES", "PALETTE", "PARTS", "CauseMark", "call_colour", "call_dashes", "drawing", "interval", "number"]

INK = "#1f2328"
MUTED = "#656d76"
GRID = "#d8dee4"
PAPER = "#ffffff"
ON_DARK, ON_LIGHT = "#fffffe", "#1f2329"  # on a coloured ground, whatever the page's ground is

# Okabe and Ito (2008), without yellow: a thin yellow line on white cannot be seen.
BLUE, VERMILLION, GREEN, PURPLE = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
ORANGE, SKY = "#e69f00", "#56b4e9"
BLACK = "#010101"  # not #000000: SVG leaves its own default out, and a dark page could not turn it light
PALETTE = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK)
DASHES = ("solid", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.2, 1.5, 1.2)))

PARTS = {"execution": BLUE, "io": ORANGE, "storage": GREEN}
"""Colour of each part of a transaction's gas."""

DASH, TIMES, MINUS = "\u2013", "\u00d7", "\u2212"  # written as readers know them; look-alikes in code
LOG_RATIO = 20
"""From this ratio of most to least gas on, an axis is logarithmic: below, a mark would hide another."""
MODEL_NOTE = "model gas: embedded node, not a Move VM"


class CauseMark(NamedTuple):
    """How a cause of change is drawn: by colour and, for who cannot tell colours, by shape."""

    colour: str
    marker: str


CAUSES = {
    "schedule": CauseMark(VERMILLION, "s"),
    "code": CauseMark(BLUE, "D"),
    "config": CauseMark(PURPLE, "p"),
    "state": CauseMark(GREEN, "o"),
    "mixed": CauseMark(ORANGE, "P"),
    "node": CauseMark(SKY, "^"),
    "unexplained": CauseMark(BLACK, "X"),
    "unknown": CauseMark("#8c959f", "v"),
}


def call_colour(position: int) -> str:
    """Return the colour of the call at `position` in call order."""
    return PALETTE[position % len(PALETTE)]


def call_dashes(position: int) -> str | tuple[int, tuple[float, ...]]:
    """Return the line style of the call at `position`: colours come round again with other dashes."""
    return DASHES[position // len(PALETTE) % len(DASHES)]


def number(value: float) -> str:
    """Write `value` with thousands separators and no more decimals than it needs (at most two)."""
    if value == round(value):
        return f"{round(value):,}"
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def interval(start: float, end: float) -> str:
    """Write where a change is: the version itself where `start` is the one before, else the interval."""
    return number(end) if end - start == 1 else f"{number(start)}{DASH}{number(end)}"


NUMBERS = FuncFormatter(lambda value, _: number(value) if value >= 0 else "")

STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": GRID,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.labelsize": 9,
    "font.size": 9,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "text.color": INK,
    "text.usetex": False,
    "xtick.color": GRID,
    "xtick.labelcolor": MUTED,
    "xtick.labelsize": 8,
    "ytick.color": GRID,
    "ytick.labelcolor": MUTED,
    "ytick.labelsize": 8,
}


@contextmanager
def drawing(ax: Axes | None, *, width: float, height: float) -> Iterator[Axes]:
    """Give the Axes to draw on, with the house style while drawing only.

    Parameters
    ----------
    ax : Axes or None
        Axes to draw on; None makes a figure of its own.
    width, height : float
        Size of the figure made, inches.

    Yields
    ------
    Axes
    """
    with mpl.rc_context(STYLE):
        if ax is None:
            from matplotlib import pyplot as plt

            _, ax = plt.subplots(figsize=(width, height), layout="constrained")
        dress(ax)
        yield ax


def dress(ax: Axes) -> None:
    """Give an Axes made elsewhere the same spines and ticks."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GRID)
    ax.tick_params(which="both", color=GRID, labelcolor=MUTED, labelsize=8)
    for label in (ax.xaxis.label, ax.yaxis.label):
        label.set(color=INK, size=9)
    ax.set_axisbelow(True)


def grid(ax: Axes, axis: Literal["x", "y"]) -> None:
    """Draw thin grid lines across `axis`."""
    ax.grid(visible=True, axis=axis, color=GRID, linewidth=0.6)


def nothing(ax: Axes, words: str) -> None:
    """Say in the middle of an empty figure what there is nothing of."""
    ax.set_yticks([])
    ax.text(0.5, 0.5, words, transform=ax.transAxes, ha="center", color=MUTED)


def beside(ax: Axes, words: str, at: tuple[float, float], *, points: float, gid: str, colour: str = INK) -> None:
    """Write `words` at the height of a mark, `points` right of it."""
    ax.annotate(
        words,
        xy=at,
        xytext=(points, 0),
        textcoords="offset points",
        va="center_baseline",
        fontsize=8,
        color=colour,
        gid=gid,
    )


def gas_axis_is_log(ax: Axes, low: float, high: float) -> bool:
    """Make the x axis logarithmic where gas from `low` to `high` asks for it, else ready it for whole units."""
    log = low > 0 and high / low >= LOG_RATIO
    if log:
        ax.set_xscale("log")
        few = 1000
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < few else (1,)))
        ax.xaxis.set_minor_formatter(NullFormatter())
    else:
        ax.xaxis.set_major_locator(MaxNLocator(nbins=7, integer=True, min_n_ticks=1))
    ax.xaxis.set_major_formatter(NUMBERS)  # after the scale, which brings its own
    return log


def note(ax: Axes, text: str, *, below_pt: float) -> None:
    """Write a footnote `below_pt` points under the axes."""
    ax.annotate(
        text,
        xy=(0, 0),
        xycoords="axes fraction",
        xytext=(0, -below_pt),
        textcoords="offset points",
        ha="left",
        va="top",
        fontsize=7.5,
        color=MUTED,
        gid="note",
        annotation_clip=False,
    )
