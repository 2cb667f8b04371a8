"""Colours, markers, axes and timelines shared by all figures. Global settings of matplotlib are not changed."""

from __future__ import annotations

import io
import re
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib import dates
from matplotlib import style as mpl_style
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import Formatter, FuncFormatter, Locator, LogLocator, MaxNLocator, NullLocator

from toolkit._present.text import number, visible
from toolkit.gas._observations import Cause
from toolkit.gas._series import records, require

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pandas as pd
    from matplotlib.axes import Axes
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
PALETTE = ("#4138ce", "#a38137", "#eb47a9", "#4f1236", "#7783fe", "#a50c1f", "#734377", "#210784")
"""Colours of calls, none of them the colour of a cause.

On white their contrast is 3.2 or more. Their least distance is 12.9 (Euclidean, in OKLab times 100) for normal vision,
protanopia, deuteranopia and tritanopia (Machado et al. 2009); from the causes' colours it is 9 for normal vision.
"""
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


TIMELINE_ROW = 0.045
"""Share of the height of the axes for a row of marks of a timeline."""
_MAX_TIMELINE_ROWS = 3
_MAX_TIMELINE_LINES = 60
_TIMELINE_GAP = 0.015
"""Least distance of marks in one row, as a share of the width."""
_BEYOND = 1_000.0
_DAY_S = 86_400.0
_dates: Any = dates  # it has no types


class TimelineMark(NamedTuple):
    """A change of a timeline in a figure: its place, the versions that it lies between, and its row in the strip."""

    x: float
    start: float
    end: float
    kind: Cause
    exact: bool
    row: int


def timeline_marks(timeline: pd.DataFrame, first: float, last: float) -> list[TimelineMark]:
    """Return the marks of a timeline's changes between two versions, in rows so that neighbours do not overlap.

    Raises
    ------
    SchemaError
        If a column is missing.
    """
    require(timeline, ("ledger_version", "version_before", "exact", "kind"), what="marks of a timeline")
    found: list[TimelineMark] = []
    ends = [-np.inf] * _MAX_TIMELINE_ROWS
    rows = sorted(records(timeline), key=lambda row: int(row["ledger_version"]))
    for row in rows:
        start, end = float(row["version_before"]), float(row["ledger_version"])
        x = end if row["exact"] else (start + end) / 2
        if first <= x <= last:
            gap = _TIMELINE_GAP * (last - first)
            place = next((place for place, used in enumerate(ends) if x - used >= gap), _MAX_TIMELINE_ROWS - 1)
            ends[place] = x
            found.append(TimelineMark(x, start, end, Cause.of(row["kind"]), bool(row["exact"]), place))
    return found


def timeline_rows(marks: Sequence[TimelineMark]) -> int:
    """Return the number of rows of the strip of marks."""
    return 1 + max((mark.row for mark in marks), default=-1)


def draw_timeline(ax: Axes, marks: Sequence[TimelineMark], *, share: float) -> None:
    """Draw the marks of a timeline in a strip at the bottom of the axes, each with a thin line up.

    Parameters
    ----------
    ax : Axes
    marks : sequence of TimelineMark
    share : float
        Share of the height of the axes that the strip has.
    """
    foot, rows = ax.get_xaxis_transform(), timeline_rows(marks)
    for mark in marks:
        colour, marker = CAUSE_MARKS[mark.kind]
        y = share * (mark.row + 0.5) / rows
        if not mark.exact:
            ax.axvspan(mark.start, mark.end, color=colour, alpha=0.12, linewidth=0, zorder=0.5, gid="timeline-interval")
        elif len(marks) <= _MAX_TIMELINE_LINES:
            ax.plot(
                [mark.x, mark.x],
                [y, 1],
                transform=foot,
                color=colour,
                linewidth=0.9,
                linestyle=(0, (1, 2.5)),
                zorder=0.9,
                gid="timeline-line",
            )
        ax.plot(
            mark.x,
            y,
            transform=foot,
            linestyle="none",
            marker=marker,
            markersize=5.5,
            markerfacecolor=colour if mark.exact else PAPER,
            markeredgecolor=PAPER if mark.exact else colour,
            markeredgewidth=0.6,
            gid=f"timeline-{mark.kind}",
            clip_on=False,
            zorder=4,
        )


class _VersionDates(Locator):
    """Ticks of an axis of ledger versions at round dates."""

    def __init__(self, versions: Floats, days: Floats) -> None:
        self._versions, self._days = versions, days

    def dates(self, versions: Any) -> Any:
        """Return the times of versions, in days since 1970."""
        return np.interp(versions, self._versions, self._days)

    def versions(self, days: Any) -> Any:
        """Return the versions of times."""
        return np.interp(days, self._days, self._versions)

    def __call__(self) -> Any:
        if self.axis is None:
            return []
        return self.tick_values(*self.axis.get_view_interval())

    def tick_values(self, vmin: float, vmax: float) -> Any:
        first, last = (_dates.num2date(day) for day in self.dates(np.array(sorted((vmin, vmax)))))
        return self.versions(_dates.AutoDateLocator(minticks=3, maxticks=7).tick_values(first, last))


class _DateTexts(Formatter):
    """Texts of the ticks of `_VersionDates`: short dates, with the year or day beside the axis."""

    def __init__(self, ticks: _VersionDates) -> None:
        self._ticks = ticks
        self._texts = _dates.ConciseDateFormatter(_dates.AutoDateLocator(), show_offset=True)

    def __call__(self, x: float, pos: int | None = None) -> str:
        del pos
        return f"{_dates.num2date(self._ticks.dates(x)):%Y-%m-%d %H:%M:%S}"

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        return list(self._texts.format_ticks(list(self._ticks.dates(np.asarray(values)))))

    def get_offset(self) -> str:
        return str(self._texts.get_offset())


def date_axis(ax: Axes, versions: Floats, seconds: Floats) -> None:
    """Scale an x axis of ledger versions by time, with ticks at dates; its limits stay in versions.

    Between known times the versions are spread evenly, and beyond them at the mean pace.

    Parameters
    ----------
    ax : Axes
        Its x limits must be set.
    versions, seconds : ndarray of float64
        Ledger versions, ascending and each once, and their times since 1970; at least two different times.
    """
    days = np.maximum.accumulate(seconds) / _DAY_S
    pace = (days[-1] - days[0]) / (versions[-1] - versions[0])
    days = days + np.arange(len(days)) * (days[-1] - days[0]) * 1e-9  # versions of one block have one time
    reach = _BEYOND + versions[-1] - versions[0]
    ticks = _VersionDates(
        np.concatenate(([versions[0] - reach], versions, [versions[-1] + reach])),
        np.concatenate(([days[0] - reach * pace], days, [days[-1] + reach * pace])),
    )
    limits = ax.get_xlim()
    ax.set_xscale("function", functions=(ticks.dates, ticks.versions))
    ax.set_xlim(limits)
    ax.xaxis.set_major_locator(ticks)
    ax.xaxis.set_major_formatter(_DateTexts(ticks))


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
    with _style():
        if ax is None:
            from matplotlib import pyplot as plt

            _, ax = plt.subplots(figsize=(width, height), layout="constrained")
        dress(ax)
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
        ax.xaxis.set_minor_locator(NullLocator())
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


# figures in pages ----------------------------------------------------------------------------------------------------

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
"""Name of the CSS variable that replaces each colour in `inline_svg`."""

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
    return re.sub(r"#[0-9a-f]{6}\b", lambda colour: _variable(colour[0]), tag) if "style=" in tag else tag


def _variable(colour: str) -> str:
    return f"var(--{CSS_NAMES[colour]})" if colour in CSS_NAMES else colour
