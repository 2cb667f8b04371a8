"""What all figures share: colours, marks, axes and their scales, timelines, and figures inside pages.

Global settings of matplotlib are not changed.
"""

from __future__ import annotations

import io
import re
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import matplotlib as mpl
import numpy as np
from matplotlib import style as mpl_style
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, Formatter, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from toolkit._present.text import number, visible
from toolkit.gas._observations import Cause
from toolkit.gas._series import is_model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.patches import Rectangle
    from matplotlib.text import Annotation
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


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
# Colours of calls, none of them the colour of a cause. On white their contrast is 3.2 or more. Their least distance is
# 12.9 (Euclidean, in OKLab times 100) for normal vision, protanopia, deuteranopia and tritanopia (Machado et al. 2009);
# from the causes' colours it is 9 for normal vision.
PALETTE = ("#4138ce", "#a38137", "#eb47a9", "#4f1236", "#7783fe", "#a50c1f", "#734377", "#210784")
DASHES = ("solid", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.2, 1.5, 1.2)))
DOTS = (0, (1, 2.5))

PART_COLOURS = {"execution": BLUE, "io": ORANGE, "storage": GREEN}
MIN_LOG_RATIO = 20  # of largest to smallest gas, for a logarithmic axis
MAX_FINE_RATIO = 1000  # up to three decades have ticks at 1, 2 and 5; of more these would touch
WIDTH = 9.0  # inches, of a figure that is created
GAS_LABEL = "gas used (gas units)"
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


def draw_marks(ax: Axes, x: Any, y: Any, cause: Cause, *, exact: bool, size: float, edge: float, **where: Any) -> None:
    """Draw marks of a cause: filled if the version of the change is known, otherwise hollow."""
    colour, marker = CAUSE_MARKS[cause]
    face, line = (colour, PAPER) if exact else (PAPER, colour)
    sizes: dict[str, Any] = {"markersize": size, "markeredgewidth": edge}
    ax.plot(x, y, linestyle="none", marker=marker, markerfacecolor=face, markeredgecolor=line, **sizes, **where)


GAS_NUMBERS = FuncFormatter(lambda value, _: number(value) if value >= 0 else "")
VERSION_NUMBERS = FuncFormatter(lambda value, _: f"{value:.0f}" if value >= 0 else "")

# What `dress` does not set, for the axes or for the colour bar beside them.
STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "font.size": 9,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "text.color": INK,
    "text.usetex": False,
}


@contextmanager
def drawing(
    ax: Axes | None, *, height: float, title: str, xlabel: str = GAS_LABEL, across: Literal["x", "y"] | None = "x"
) -> Iterator[Axes]:
    """Yield the Axes to draw on, with title, label and grid lines; the style applies while drawing only.

    Parameters
    ----------
    ax : Axes or None
        Axes to draw on; None creates a figure.
    height : float
        Height of a figure that is created, in inches.
    title, xlabel : str
    across : {"x", "y"} or None
        The axis whose ticks have grid lines.

    Yields
    ------
    Axes
    """
    with _style():
        if ax is None:
            from matplotlib import pyplot as plt

            _, ax = plt.subplots(figsize=(WIDTH, height), layout="constrained")
        dress(ax)
        ax.set_title(title)
        ax.set_xlabel(xlabel)
        if across is not None:
            grid(ax, across)
        yield ax


@contextmanager
def _style() -> Iterator[None]:
    """Set the parameters of the style, and restore these alone.

    `matplotlib.rc_context` would restore all, also what the first figure of a notebook sets when it loads the backend:
    figures of pyplot would not be shown after it.
    """
    before = {name: mpl.rcParams[name] for name in STYLE}
    mpl.rcParams.update(STYLE)
    try:
        yield
    finally:
        mpl.rcParams.update(before)


def figure_of(ax: Axes) -> Figure:
    """Return the figure that axes are drawn on, the outermost of nested ones."""
    return cast("Figure", ax.get_figure(root=True))


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


def name_rows(ax: Axes, names: Sequence[str], *, shift: float = 0.0, below: float = 0.5, above: float = 0.5) -> None:
    """Name the rows of a figure, the first at the top; names are `shift` below the middle of their rows."""
    ax.set_yticks(np.arange(len(names)) + shift, names, color=INK)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(names) - 1 + below, -above)


def write(
    ax: Axes,
    text: str,
    at: tuple[float, float],
    *,
    gid: str,
    offset: tuple[float, float] = (0, 0),
    size: float = 8,
    colour: str = INK,
    **options: Any,
) -> Annotation:
    """Write a text at a place of the axes, moved by `offset` points; `options` are those of `Axes.annotate`."""
    options = {"xytext": offset, "textcoords": "offset points", "va": "center_baseline"} | options
    return ax.annotate(text, xy=at, fontsize=size, color=colour, gid=gid, **options)


def model_note(frame: pd.DataFrame) -> list[str]:
    """Return a note if the gas of any row is a model's."""
    return [MODEL_NOTE] if is_model(frame) else []


def stacked_bars(ax: Axes, bars: Sequence[tuple[str, Floats, str]]) -> tuple[list[Rectangle], Floats]:
    """Draw horizontal bars of several parts, each with gid, widths and colour; return the parts and the bars' ends."""
    parts: list[Rectangle] = []
    left = np.zeros(len(bars[0][1]))
    for gid, width, colour in bars:
        parts += ax.barh(np.arange(len(width)), width, left=left, height=0.56, color=colour, gid=gid)
        left += width
    return parts, left


def largest(frame: pd.DataFrame, weights: Floats, limit: int) -> pd.DataFrame:
    """Return the rows of most weight, in the order of the frame."""
    return frame if len(frame) <= limit else frame.iloc[np.sort(np.argsort(-weights, kind="stable")[:limit])]


def gas_scale(
    ax: Axes, side: Literal["x", "y"], low: float, high: float, *, least: float | None = None, ticks: int = 7
) -> bool:
    """Make an axis logarithmic for a wide range of gas, otherwise linear with whole units.

    Parameters
    ----------
    ax : Axes
    side : {"x", "y"}
    low, high : float
        Range of gas.
    least : float, optional
        The smallest gas above 0, for an axis that may be logarithmic although it has 0; `low` by default.
    ticks : int, default 7
        Maximum number of ticks of a linear axis.

    Returns
    -------
    bool
        True if the axis is logarithmic.
    """
    least = low if least is None else least
    axis, log = getattr(ax, f"{side}axis"), least > 0 and high / least >= MIN_LOG_RATIO
    if log:
        set_scale = getattr(ax, f"set_{side}scale")
        set_scale("log") if low > 0 else set_scale("symlog", linthresh=1)
        decades = LogLocator(subs=(1, 2, 5) if high / least < MAX_FINE_RATIO else (1,)).tick_values(1, 10 * high)
        axis.set_major_locator(FixedLocator([0.0] * (low == 0) + [tick for tick in decades if tick >= 1]))
        axis.set_minor_locator(NullLocator())
    else:
        whole_ticks(axis, ticks)
    axis.set_major_formatter(GAS_NUMBERS)  # after the scale, which sets a formatter
    return log


def whole_ticks(axis: Axis, most: int = 7, numbers: Formatter = GAS_NUMBERS) -> None:
    """Set at most so many ticks at whole numbers."""
    axis.set_major_locator(MaxNLocator(nbins=most, integer=True, min_n_ticks=1))
    axis.set_major_formatter(numbers)


# figures in pages ----------------------------------------------------------------------------------------------------

# The CSS variable that replaces each colour in `inline_svg`.
_CALL_COLOURS = ("indigo", "ochre", "pink", "plum", "periwinkle", "crimson", "mauve", "navy")
CSS_NAMES = {
    INK: "ink",
    MUTED: "muted",
    GRID: "grid",
    PAPER: "paper",
    BLUE: "blue",
    VERMILLION: "vermillion",
    GREEN: "green",
    PURPLE: "purple",
    ORANGE: "orange",
    SKY: "sky",
    BLACK: "black",
    GREY: "grey",
    ON_DARK: "on-bar",
    **dict(zip(PALETTE, _CALL_COLOURS, strict=True)),
}

_SVG_RC: dict[Any, Any] = {
    "svg.fonttype": "none",  # text can be searched, copied and read aloud
    "svg.hashsalt": "ledger-toolkit",  # equal input gives equal bytes
    "font.family": ["DejaVu Sans"],
}
_NO_METADATA = {"Creator": None, "Date": None, "Format": None, "Type": None}


def inline_svg(
    name: str,
    size: tuple[float, float],
    alt: str,
    draw: Callable[[Axes], object],
    layout: Literal["constrained"] | None = "constrained",
) -> str:
    """Draw a figure and return it as one ``<svg>`` element, whose colours are CSS variables of the page.

    Parameters
    ----------
    name : str
        Makes its ids unique in the page.
    size : (float, float)
        Width and height in inches.
    alt : str
        What the figure shows, for readers who do not see it.
    draw : callable
        Draws on the Axes that it is called with. Their transforms are final when this returns.
    layout : {"constrained"} or None
        Layout of the figure.

    Returns
    -------
    str
        Equal for equal input, byte for byte.
    """
    text = io.StringIO()
    with mpl_style.context(["default", _SVG_RC]):
        figure = Figure(figsize=size, layout=layout)
        axes = figure.subplots()
        draw(axes)
        for patch in (figure.patch, axes.patch):
            patch.set_visible(False)
        canvas: Any = FigureCanvasSVG(figure)  # its methods have no annotations
        canvas.print_svg(text, metadata=_NO_METADATA)  # Figure.savefig draws twice
    return _inline(text.getvalue(), name, alt)


def _inline(svg: str, name: str, alt: str) -> str:
    """Remove the parts that only a separate file needs, make ids unique, and replace colours by CSS variables."""
    body = svg[svg.index(">", svg.index("<svg")) + 1 : svg.rindex("</svg>")]
    box = re.search(r'viewBox="([\d. ]+)"', svg)
    body = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", body, flags=re.DOTALL)
    body = re.sub(r"<[^<>]+>", lambda tag: _tag(tag[0], name), body)
    return f'<svg viewBox="{box[1] if box else ""}" role="img" aria-label="{escape(visible(alt))}">{body.strip()}</svg>'


def _tag(tag: str, name: str) -> str:
    """Rewrite one tag; text between tags is not changed."""
    if tag.startswith("<!--"):
        return ""
    keep = tag.startswith(("<clipPath", "<path"))  # these are referenced; matplotlib does not use the other ids
    tag = re.sub(r' id="([^"]*)"', rf' id="{name}-\1"' if keep else "", tag)
    tag = re.sub(r'xlink:href="#', f'href="#{name}-', tag)
    tag = re.sub(r"url\(#", f"url(#{name}-", tag)
    if "style=" not in tag:
        return tag
    return re.sub(r"#[0-9a-f]{6}\b", lambda at: f"var(--{CSS_NAMES[at[0]]})" if at[0] in CSS_NAMES else at[0], tag)
