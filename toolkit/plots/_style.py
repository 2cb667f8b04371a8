"""Colours, markers and axes shared by all figures. Global settings of matplotlib are not changed."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import matplotlib as mpl
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from toolkit._present.numbers import number
from toolkit.gas._observations import Cause

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from matplotlib.axes import Axes

__all__ = [
    "CAUSE_MARKS",
    "GAS_NUMBERS",
    "MODEL_NOTE",
    "PALETTE",
    "PART_COLOURS",
    "VERSION_NUMBERS",
    "CauseMark",
    "call_colour",
    "call_dashes",
    "drawing",
    "gas_axis_is_log",
]

INK = "#1f2328"
MUTED = "#656d76"
GRID = "#d8dee4"
PAPER = "#ffffff"
ON_DARK, ON_LIGHT = "#fffffe", "#1f2329"  # on a coloured background, light and dark pages alike

# Okabe and Ito (2008), https://jfly.uni-koeln.de/color, without yellow, which is not visible as a thin line on white.
BLUE, VERMILLION, GREEN, PURPLE = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
ORANGE, SKY = "#e69f00", "#56b4e9"
BLACK = "#010101"  # not #000000: SVG omits its default colour, so a dark page could not replace it
GREY = "#8c959f"
PALETTE = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK)
DASHES = ("solid", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.2, 1.5, 1.2)))

PART_COLOURS = {"execution": BLUE, "io": ORANGE, "storage": GREEN}
"""Colour of each part of a transaction's gas."""

MIN_LOG_RATIO = 20
"""Minimum ratio of largest to smallest gas for a logarithmic axis."""
MODEL_NOTE = "model gas: embedded node, not a Move VM"


class CauseMark(NamedTuple):
    """Colour and, for readers who cannot distinguish colours, shape of a cause."""

    colour: str
    marker: str


CAUSE_MARKS: Mapping[Cause, CauseMark] = {
    Cause.SCHEDULE: CauseMark(VERMILLION, "s"),
    Cause.CODE: CauseMark(BLUE, "D"),
    Cause.CONFIG: CauseMark(PURPLE, "p"),
    Cause.STATE: CauseMark(GREEN, "o"),
    Cause.MIXED: CauseMark(ORANGE, "P"),
    Cause.NODE: CauseMark(SKY, "^"),
    Cause.UNEXPLAINED: CauseMark(BLACK, "X"),
    Cause.UNKNOWN: CauseMark(GREY, "v"),
}


def call_colour(position: int) -> str:
    """Return the colour of the call at `position` in call order."""
    return PALETTE[position % len(PALETTE)]


def call_dashes(position: int) -> str | tuple[int, tuple[float, ...]]:
    """Return the line style of the call at `position`: when the colours repeat, the dashes differ."""
    return DASHES[position // len(PALETTE) % len(DASHES)]


GAS_NUMBERS = FuncFormatter(lambda value, _: number(value) if value >= 0 else "")
VERSION_NUMBERS = FuncFormatter(lambda value, _: f"{value:.0f}" if value >= 0 else "")

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
    """Yield the Axes to draw on; the style applies while drawing only.

    Parameters
    ----------
    ax : Axes or None
        Axes to draw on; None creates a figure.
    width, height : float
        Size of a figure that is created, in inches.

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
    """Apply the spines and ticks of the style to Axes that were created elsewhere."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GRID)
    ax.tick_params(which="both", color=GRID, labelcolor=MUTED, labelsize=8)
    for label in (ax.xaxis.label, ax.yaxis.label):
        label.set(color=INK, size=9)
    ax.set_axisbelow(True)


def grid(ax: Axes, axis: Literal["x", "y"]) -> None:
    """Draw thin grid lines across `axis`."""
    ax.grid(visible=True, axis=axis, color=GRID, linewidth=0.6)


def nothing(ax: Axes, text: str) -> None:
    """Write a text, such as the reason why a figure is empty, in the middle of the axes."""
    ax.set_yticks([])
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", color=MUTED)


def beside(ax: Axes, text: str, at: tuple[float, float], *, points: float, gid: str, colour: str = INK) -> None:
    """Write `text` at the height of a mark, `points` right of it."""
    ax.annotate(
        text,
        xy=at,
        xytext=(points, 0),
        textcoords="offset points",
        va="center_baseline",
        fontsize=8,
        color=colour,
        gid=gid,
    )


def gas_axis_is_log(ax: Axes, low: float, high: float) -> bool:
    """Make the x axis logarithmic for a wide range of gas, otherwise linear with whole units.

    Returns
    -------
    bool
        True if the axis is logarithmic.
    """
    log = low > 0 and high / low >= MIN_LOG_RATIO
    if log:
        ax.set_xscale("log")
        few = 1000
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < few else (1,)))
        ax.xaxis.set_minor_formatter(NullFormatter())
    else:
        ax.xaxis.set_major_locator(MaxNLocator(nbins=7, integer=True, min_n_ticks=1))
    ax.xaxis.set_major_formatter(GAS_NUMBERS)  # after the scale, which sets a formatter
    return log


def note(ax: Axes, text: str, *, below_pt: float) -> None:
    """Write a footnote `below_pt` points below the axes."""
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
