"""Code that all figures share: axes, colours, ticks, and figures embedded in pages.

Fonts, text, background and grid follow the active style (`matplotlib.rcParams`), which figures do not change.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import matplotlib as mpl
import numpy as np
from matplotlib import style as mpl_style
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import is_color_like, to_hex, to_rgb, to_rgba
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.ticker import Formatter, FuncFormatter, Locator, MaxNLocator, NullLocator
from matplotlib.transforms import blended_transform_factory

from toolkit._present.text import ELLIPSIS, counted, listed, number, version_span, visible
from toolkit.errors import InputError
from toolkit.gas._observations import Cause

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.container import BarContainer
    from matplotlib.text import Annotation
    from numpy.typing import NDArray

    from toolkit.gas._series import CallSeries

    Floats = NDArray[np.float64]
    Colors = str | Sequence[Any] | Mapping[str, Any] | None


def mixed(one: Any, other: Any, share: float) -> str:
    """Return a mixture of two colours; `share` is the proportion of the first."""
    red, green, blue = (share * a + (1 - share) * b for a, b in zip(to_rgb(one), to_rgb(other), strict=True))
    return to_hex((red, green, blue))


INK, PAPER = "#1f2328", "#ffffff"  # text and background of a page
_MUTED_SHARE, _FAINT_SHARE = 0.7, 0.18  # of the ink in secondary text, and in areas behind text
MUTED, GRID = mixed(INK, PAPER, _MUTED_SHARE), mixed(INK, PAPER, _FAINT_SHARE)
ON_DARK, ON_LIGHT = "#fffffe", "#1f2329"  # on a coloured background, light and dark pages alike

# Okabe and Ito (2008), https://jfly.uni-koeln.de/color, without yellow, which is not visible as a thin line on white.
BLUE, VERMILLION, GREEN, PURPLE = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
ORANGE, SKY = "#e69f00", "#56b4e9"
GREY = "#8c959f"
# Colours of calls, none of them the colour of a cause. On white their contrast is 3.2 or more. The least distance of
# the first seven (Euclidean, in OKLab times 100) is 22 for normal vision and 11 for protanopia, deuteranopia and
# tritanopia (Machado et al. 2009), with the other five 15 and 7; from the causes' colours it is 8 for normal vision.
PALETTE = (
    *("#8038c4", "#b58310", "#e43e85", "#00218e", "#056907", "#611400", "#0793f8"),
    *("#238a91", "#c30c06", "#9f79c3", "#834666", "#551462"),
)
MAX_NAMED = 7  # calls with a name and a colour by default; more cannot be told apart at a glance
DASHES = ("solid", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.2, 1.5, 1.2)))
DOTS = (0, (1, 2.5))

PART_COLOURS = {"execution": BLUE, "io": ORANGE, "storage": GREEN}
MIN_LOG_RATIO = 20  # of largest to smallest gas, for a logarithmic axis
DWARFS = 5  # times the other parts of the gas, which then cannot be seen next to storage
MAX_TIPS = 40  # pieces of a line of which a page shows the values
MIN_WIDE = 4.5  # inches, of axes that have room for names beside and inside them
# Inches of a row: with a small name beside it, above it, and on two lines beside it; of a line of usual and small size.
MIN_ROW, MIN_ROW_NAMED_ABOVE, MIN_ROW_WITH_TWO_LINES = 0.15, 0.3, 0.38
LINE, SMALL_LINE = 0.13, 0.11
# Characters of a name before its version, of a module before its function, and of the second line of a name.
MIN_HEAD, MIN_MODULE, MIN_REST = 5, 2, 8
WIDE_NAMES, NARROW_NAMES = 0.67, 0.5  # share of axes for the names beside their rows
BESIDE: Mapping[str, Any] = {"xycoords": ("axes fraction", "data"), "annotation_clip": False}
HALF_MARK = 6  # points that clear the axis of a mark at the least gas
CHARACTER = 0.58  # mean width of a character, as a share of the font size


class CauseMark(NamedTuple):
    """The colour of a cause (None for the text colour), and its shape for readers who cannot distinguish colours."""

    colour: str | None
    marker: str
    scale: float = 1.0  # of its size: thin shapes are larger


CAUSE_MARKS: Mapping[Cause, CauseMark] = {
    Cause.SCHEDULE: CauseMark(VERMILLION, "s"),
    Cause.CODE: CauseMark(BLUE, "D"),
    Cause.CONFIG: CauseMark(PURPLE, "p"),
    Cause.STATE: CauseMark(GREEN, "o"),
    Cause.MIXED: CauseMark(ORANGE, "P", 1.4),
    Cause.NODE: CauseMark(SKY, "^"),
    Cause.UNEXPLAINED: CauseMark(None, "X"),
    Cause.UNKNOWN: CauseMark(GREY, "v"),
}


# tones and colours ----------------------------------------------------------------------------------------------------


def ink() -> str:
    """Return the colour of text."""
    return to_hex(mpl.rcParams["text.color"])


def paper(ax: Axes) -> str:
    """Return the background of axes, or of their figure if they are transparent."""
    face = to_rgba(ax.get_facecolor())
    return to_hex(face if face[-1] else figure_of(ax).get_facecolor())


def muted(ax: Axes) -> str:
    """Return the colour of secondary text."""
    return mixed(ink(), paper(ax), _MUTED_SHARE)


def faint(ax: Axes) -> str:
    """Return the colour of areas behind text, and of lines that only guide the eye."""
    return mixed(ink(), paper(ax), _FAINT_SHARE)


def _light(colour: Any) -> float:
    return float(np.dot(to_rgb(colour), (0.299, 0.587, 0.114)))


def is_dark() -> bool:
    """Return whether the active style is dark, which is when its text is light."""
    return _light(ink()) > 0.5  # noqa: PLR2004 - the middle


def tone(colour: str) -> str:
    """Return a default colour as the active style needs it: in dark styles lighter, and of the same hue."""
    known = PAGE_COLOURS.get(colour)
    return known.dark or colour if known and is_dark() else colour


def on(colour: Any) -> str:
    """Return the colour of text on a coloured area."""
    return ON_LIGHT if _light(colour) > 0.45 else ON_DARK  # noqa: PLR2004 - the contrast of both is about equal there


def as_text(colour: Any) -> str:
    """Return the colour of a mark for text, which is thinner: nearer to that of other text, except in pages."""
    return to_hex(colour) if in_page() else mixed(colour, ink(), 0.8)


def cause_colour(cause: Cause) -> str:
    """Return the colour of a cause."""
    return tone(CAUSE_MARKS[cause].colour or ink())


def chosen(defaults: Mapping[str, Any], colors: Colors) -> dict[str, Any]:
    """Return the colours of a figure by name: the requested colours, or the defaults where none is requested.

    Parameters
    ----------
    defaults : mapping of str to color
        Default colours, in the order of the figure.
    colors : color, sequence of colors, mapping of str to color, or None
        A sequence is applied in the order of the figure, and repeated if it is too short.

    Raises
    ------
    InputError
        If `colors` contains a name that is not in the figure, or something that is not a colour.
    """
    defaults = {name: tone(colour) for name, colour in defaults.items()}
    if not isinstance(colors, Mapping):
        given = checked([colors] if isinstance(colors, str) else () if colors is None else colors)
        return {name: given[n % len(given)] for n, name in enumerate(defaults)} if given else defaults
    if unknown := [name for name in colors if name not in defaults]:
        there = listed((visible(repr(name), 60) for name in defaults), 8)
        raise InputError(f"colors: {visible(repr(unknown[0]), 60)} is not in this figure; expected {there or 'none'}")
    checked(colors.values())
    return defaults | dict(colors)


def checked(colours: Any) -> list[Any]:
    """Return colours as a list; raise InputError if one is not a colour."""
    found = list(colours) if isinstance(colours, Iterable) else [colours]
    if wrong := [one for one in found if not is_color_like(one)]:
        raise InputError(f'colors: expected colours such as "red" or "#0072b2", got {visible(repr(wrong[0]), 60)}')
    return found


def cycle_colours(positions: Sequence[int]) -> list[Any]:
    """Return the colours of the calls at `positions`: from the active style if it sets colours, else from `PALETTE`.

    The colours of ``dark_background`` are not used, so that a call has one hue in light and dark figures. A call has
    the colour of its position, one of those that are far apart; if another call has it already, the first that is free;
    grey if none is.
    """
    own = mpl.rcParams["axes.prop_cycle"]
    usual = own in (one["axes.prop_cycle"] for one in (mpl.rcParamsDefault, mpl_style.library["dark_background"]))
    cycle = list(dict.fromkeys((not usual and own.by_key().get("color")) or PALETTE))
    apart = min(len(cycle), MAX_NAMED)
    taken: dict[int, int] = {}  # position of a call by place of its colour
    for position in positions:
        taken.setdefault(position % apart, position)
    free = (place for place in range(len(cycle)) if place not in taken)
    places = [place if taken[place := one % apart] == one else next(free, None) for one in positions]
    return [GREY if place is None else cycle[place] for place in places]


def call_colours(found: Sequence[CallSeries], colors: Colors) -> dict[tuple[str, str], Any]:
    """Return the colour of each call by label and node; the names in `colors` are labels, or names in the figure.

    A single call on several nodes has a colour for each node. With several calls, nodes differ only in line style.
    """
    keys = list(dict.fromkeys((series.label, series.node) for series in found))
    if len(keys) > 1 and len({label for label, _ in keys}) == 1:
        by_node = chosen(dict(zip([node for _, node in keys], cycle_colours(range(len(keys))), strict=True)), colors)
        return {key: by_node[key[1]] for key in keys}
    names = {series.label: series.name for series in found}
    given = {names.get(key, key): one for key, one in colors.items()} if isinstance(colors, Mapping) else colors
    positions = {series.name: series.position for series in found}
    by_name = chosen(dict(zip(positions, cycle_colours(list(positions.values())), strict=True)), given)
    return {key: by_name[names[key[0]]] for key in keys}


def call_dashes(found: Sequence[CallSeries]) -> dict[tuple[str, str], Any]:
    """Return the line style of each call by label and node. Styles differ by node."""
    nodes = {node: place for place, node in enumerate(dict.fromkeys(series.node for series in found))}
    return {(one.label, one.node): DASHES[nodes[one.node] % len(DASHES)] for one in found}


def draw_marks(ax: Axes, x: Any, y: Any, cause: Cause, *, filled: bool, size: float, edge: float, **where: Any) -> None:
    """Draw marks of a cause: filled if the change and its version are known, otherwise hollow."""
    colour, back = cause_colour(cause), paper(ax)
    face, line = (colour, back) if filled else (back, colour)
    mark = CAUSE_MARKS[cause]
    look: dict[str, Any] = {"markersize": size * mark.scale, "markeredgewidth": edge, "markerfacecolor": face}
    look |= {"ls": "none", "marker": mark.marker, "markeredgecolor": line}
    ax.plot(x, y, **look, **where)
    ax.plot([], [], label=once(ax, cause.label), **look | {"markersize": 6 * mark.scale})  # in the legend, usual size


def legend_label(name: str) -> str:
    """Return the label of an artist with a name in the legend; matplotlib leaves out labels that start with ``_``."""
    return f" {name}" if name.startswith("_") else name


def once(ax: Axes, label: str) -> str:
    """Return `label` if no artist of the axes has it yet, otherwise a label that the legend omits."""
    return "_nolegend_" if label in ax.get_legend_handles_labels()[1] else label


# axes -----------------------------------------------------------------------------------------------------------------


@contextmanager
def drawing(
    ax: Axes | None,
    *,
    figsize: tuple[float, float] | None = None,
    height: float = 4.0,
    title: str,
    xlabel: str,
    across: Literal["x", "y"] | None = "x",
) -> Iterator[Axes]:
    """Yield the Axes to draw on, with title, label and grid lines.

    Parameters
    ----------
    ax : Axes or None
        Axes to draw on; None creates a figure.
    figsize : (float, float), optional
        Width and height of a new figure, in inches.
    height : float
        Height of a new figure in inches if `figsize` is not given.
    title, xlabel : str
    across : {"x", "y"} or None
        The axis whose ticks have grid lines.

    Yields
    ------
    Axes

    Raises
    ------
    InputError
        If `ax` is not Axes, `figsize` is not a width and a height, or both are given.
    """
    _check_place(ax, figsize)
    # Text from users and the chain is never drawn by TeX, which can read files. `matplotlib.rc_context` would restore
    # all settings, including those that a notebook's first figure makes when it loads the backend, and hide the figure.
    before = mpl.rcParams["text.usetex"]
    mpl.rcParams["text.usetex"] = False
    try:
        if ax is None:
            from matplotlib import pyplot as plt

            # 7 inches: the text can be read in a column of a page, and as a thumbnail.
            _, ax = plt.subplots(figsize=figsize or (7.0, height), layout="constrained")
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_axisbelow(True)
        heading = ax.set_title(title, wrap=True)
        if room(ax) < MIN_WIDE:
            heading.set_fontsize("medium")
            if len(title) > name_limit(figure_of(ax).get_figwidth(), 1, float(heading.get_fontsize())):
                heading.set_text(title.replace(": ", ":\n", 1))
        if is_alone(ax):  # over names beside the axes, too
            offset = cast("Any", ax).titleOffsetTrans  # public, but without a type
            heading.set_transform(blended_transform_factory(figure_of(ax).transFigure, ax.transAxes + offset))
        ax.set_xlabel(xlabel)
        if across is not None:
            # Some styles have grid lines as bright as text, which would cross out the words in a figure.
            ax.grid(visible=True, axis=across, linewidth=0.5, alpha=None if in_page() else 0.18 if is_dark() else 0.45)
        yield ax
    finally:
        mpl.rcParams["text.usetex"] = before


def _check_place(ax: Any, figsize: Any) -> None:
    """Raise InputError unless a figure can be drawn on Axes, or in a size; at most one is given."""
    if ax is not None and not isinstance(ax, Axes):
        raise InputError(f"ax: expected Axes, such as plt.figure().subplots(), got {type(ax).__name__}")
    if ax is not None and figsize is not None:
        raise InputError(
            "figsize applies only to a new figure; to resize the figure of ax, use "
            "ax.figure.set_size_inches(width, height)"
        )
    sides = [1, 1] if figsize is None else np.ravel(np.asarray(figsize, dtype=object)).tolist()
    if len(sides) != 2 or not all(isinstance(side, int | float) and 0 < side < np.inf for side in sides):  # noqa: PLR2004
        raise InputError(f"figsize: expected a width and a height in inches, such as (7, 4), got {figsize!r:.60}")


def figure_of(ax: Axes) -> Figure:
    """Return the figure on which axes are drawn, the outermost if figures are nested."""
    return cast("Figure", ax.get_figure(root=True))


def room(ax: Axes) -> float:
    """Return the width of axes in inches before the figure is laid out; labels will take up some of it."""
    return float(ax.get_position(original=True).width * figure_of(ax).get_figwidth())


def row_limit(
    ax: Axes | None, figsize: tuple[float, float] | None, most: int, names: Sequence[str] = (), share: float = 1
) -> int:
    """Return how many rows a figure has room for in a `share` of its width: `most` unless its size is given.

    In narrow axes, rows are fewer and higher if most of their `names` would be cut beside the rows, or some look alike.
    """
    _check_place(ax, figsize)
    if ax is not None:
        width, height = room(ax), row_space(ax)
    elif figsize is not None:
        width, height = 0.775 * figsize[0], figsize[1] - 1.2  # as wide as `room` by default
    else:
        return most
    height -= 2 * LINE * (share < 1)  # two axes side by side have labels on two lines
    limit = name_limit(width * share, NARROW_NAMES, 0.75 * size_of("ytick.label"))
    shown = _in_one_line_alike(names, limit)
    unclear = len({*shown}) < len({*names}) or 2 * sum(ELLIPSIS in name for name in shown) > len(shown)
    return int(min(most, max(height / (MIN_ROW_NAMED_ABOVE if unclear and width < MIN_WIDE else MIN_ROW), 3)))


def full_row(names: Sequence[str]) -> float:
    """Return the height in inches of a row that has room for any of the names in the usual size."""
    return 0.06 + LINE * (1 + max((name.count("\n") for name in names), default=0))


def row_space(ax: Axes) -> float:
    """Return the height in inches that axes have for rows, before the figure is laid out."""
    return figure_of(ax).get_figheight() * float(ax.get_position(original=True).height) - 0.3


def least_height(ax: Axes) -> float:
    """Return how many points high axes with a legend below them are at least when they are drawn."""
    return (0.8 if is_wide(ax) else 0.65) * 72 * row_space(ax)  # a wide legend has fewer rows


def is_alone(ax: Axes) -> bool:
    """Return whether axes have the width of their figure to themselves, alone or in a column."""
    figure, place = figure_of(ax), ax.get_subplotspec()
    in_column = place is not None and place.get_gridspec().ncols == 1 and ax.figure is figure
    return len(figure.axes) == 1 or in_column


def is_wide(ax: Axes) -> bool:
    """Return whether axes have room for names beside and inside them."""
    return is_alone(ax) and room(ax) >= MIN_WIDE


def end_limit(ax: Axes) -> int:
    """Return how many characters names at the ends of lines may have, so that most of the width is the axes'."""
    return name_limit(room(ax), 0.42, size_of("font.") * 0.833)


def name_limit(width: float, share: float, size: float) -> int:
    """Return how many characters of a size in points fit in a share of a width in inches, but at least 8."""
    return max(int(share * 72 * width / (CHARACTER * size)), 8)


def size_of(what: str) -> float:
    """Return the font size of one kind of text, such as ``xtick.label``, in points."""
    settings: Any = mpl.rcParams
    return float(FontProperties(size=settings[f"{what}size"]).get_size_in_points())


def lowest(ax: Axes, side: Literal["x", "y"], limit: float) -> None:
    """Keep the margins of an axis from going below a limit, also after its scale is changed."""
    [line] = ax.lines[:1] or ax.plot([], [], label="_nolegend_")
    getattr(line.sticky_edges, side).append(limit)


def nothing(ax: Axes, text: str) -> Axes:
    """Write text, such as the reason why the figure is empty, in the middle of the axes; return the axes."""
    ax.set_xticks([])
    ax.set_yticks([])
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", color=muted(ax))
    return ax


def name_rows(
    ax: Axes,
    names: Sequence[str],
    *,
    shift: float = 0.0,
    below: float = 0.5,
    above: float = 0.5,
    beside: bool = False,
    width: float = 0.0,
) -> bool:
    """Name the rows of a figure from top to bottom; names are `shift` below the middle of their rows.

    In narrow axes with high rows, each name is above its row instead, unless `beside` is true: long names beside the
    rows would leave no room for the axes. They have `width` inches there, or those of the axes, and two lines if some
    need them and the rows have room for them. Names that are too long are `shortened`.

    Returns
    -------
    bool
        Whether the names are above their rows.
    """
    each, wide = row_space(ax) / max(len(names), 1), is_wide(ax)
    inside = not (beside or wide) and each >= MIN_ROW_NAMED_ABOVE
    share = 0.95 if inside else WIDE_NAMES if wide else NARROW_NAMES
    most = 1 + max((name.count("\n") for name in names), default=0)
    stacked = each >= SMALL_LINE * most if wide else each >= MIN_ROW_WITH_TWO_LINES and not inside
    lines = [name.split("\n") if stacked else [name] for name in names]
    longest = max((len(line.replace("\n", ", ")) for name in lines for line in name), default=0)
    full, width = size_of("ytick.label"), (inside and width) or max(room(ax), inside * free_width(ax) / 72)
    fits = each >= (full_row(names) if stacked else full_row(())) and longest <= name_limit(width, share, full)
    size = full if fits else 0.75 * full
    limit = name_limit(width, share, size)
    ax.tick_params(axis="y", length=0, labelsize=size, pad=6)  # clear of marks at the left edge
    ax.grid(visible=False, axis="y")  # of some styles; a line would cross each name
    # The title, labels and legend of narrow axes may have a line more each.
    if inside and longest > limit and each - 3 * LINE / len(names) >= MIN_ROW_NAMED_ABOVE + SMALL_LINE:
        whole = [name.replace("\n", ", ", 1).replace("\n", " ") for name in names]
        names = ["\n".join(wrap(name, limit, max_lines=2, placeholder=ELLIPSIS)) for name in whole]
    else:
        shown = iter(_in_one_line_alike([line for name in lines for line in name], limit))
        names = ["\n".join(next(shown) for _ in name) for name in lines]
    place: dict[str, Any] = {"ha": "left", "va": "bottom"} if inside else {}
    ax.set_yticks(np.arange(len(names)) + (-0.22 if inside else shift), names, **place)
    if inside:
        ax.tick_params(axis="y", pad=-2)
    ax.set_ylim(len(names) - 1 + below, -max(above, 0.8 * inside))
    return inside


def _in_one_line_alike(names: Sequence[str], limit: int) -> list[str]:
    """Return names `in_one_line`; those that differ only in what follows a middle dot are shortened alike."""
    parts = [name.partition("\n")[0].partition(" · ") for name in names]
    ends: dict[str, int] = {}  # the longest
    for head, dot, end in parts:
        ends[head] = max(ends.get(head, 0), len(dot + end))
    spare = [ends[head] - len(dot + end) for head, dot, end in parts]
    return [in_one_line(name, limit - less) for name, less in zip(names, spare, strict=True)]


def in_one_line(name: str, limit: int) -> str:
    """Return the lines of a name as one; if it is too long, without its end, and then with the first `shortened`."""
    first, _, rest = name.partition("\n")
    rest = rest.replace("\n", " ")
    if not rest or len(name) < limit:
        return shortened(f"{first}, {rest}" if rest else first, limit)
    _, dot, end = first.partition(" · ")
    first = shortened(first, max(limit - min(len(rest), MIN_REST) - 2, min(MIN_HEAD + len(dot + end), limit)))
    free = limit - len(first) - 2
    if len(rest) > free > 1:  # without its last options: half of an abort code says nothing
        kept = rest[: free - 1]
        rest = f"{kept[: kept.rfind(', ')] if ', ' in kept else kept}{ELLIPSIS}"
    return f"{first}, {rest}" if free > 1 else first


def shortened(name: str, limit: int) -> str:
    """Return a name without the end of its module if it is too long; if it still is, with its middle cut out.

    Names often differ at their ends. What follows a middle dot, such as a part of the gas and a version, is whole.
    """
    if len(name) <= limit:
        return name
    head, dot, end = name.partition(" · ")
    head, end = (head, dot + end) if len(dot + end) <= limit - MIN_HEAD else (name, "")
    limit -= len(end)
    if found := re.match(r"((?:\w+::)*\w+)(::\w.*)", head):
        module, head = found.groups()
        free = limit - len(head) - 1
        head = f"{module[:free]}{ELLIPSIS}{head}" if free >= MIN_MODULE else head.removeprefix("::")
    if len(head) > limit:
        start = head[: limit // 2].rstrip("\\ ")  # half of an escaped dollar sign would be drawn as a backslash
        head = f"{start}{ELLIPSIS}{head[len(head) - (limit - 1) // 2 :]}"
    return head + end


def longest_name(ax: Axes) -> int:
    """Return the length in characters of the longest tick label to the left of the axes."""
    beside = [name.get_text() for name in ax.get_yticklabels() if name.get_horizontalalignment() != "left"]
    return max((len(line) for name in beside for line in name.split("\n")), default=0)


def free_width(ax: Axes) -> float:
    """Return the points from the left edge of axes to the right edge of their figure, or of their place in it."""
    return 72 * (0.97 * figure_of(ax).get_figwidth() if is_alone(ax) else room(ax)) - beside(ax)


def beside(ax: Axes) -> float:
    """Return the points that names and a label to the left of the axes take up."""
    tick_size = ax.yaxis.get_tick_params().get("labelsize") or size_of("ytick.label")
    label = ax.get_ylabel()
    upright = (2 + 1.2 * label.count("\n")) * size_of("axes.label") if label else 0.0
    return CHARACTER * tick_size * longest_name(ax) + upright


def write_ends(ax: Axes, texts: Sequence[str], *, gid: str) -> None:
    """Write a text to the right of each row, outside the axes: inside, it would take up width or lie on marks."""
    size = "small" if row_space(ax) / len(texts) >= full_row(()) else "x-small"
    for place, text in enumerate(texts):
        write(ax, text, (1, place), gid=gid, offset=(6, 0), size=size, **BESIDE)
    ax.margins(x=max(0.02, HALF_MARK / (72 * room(ax))))


def write(
    ax: Axes, text: str, at: tuple[float, float], *, gid: str, offset: tuple[float, float] = (0, 0), **options: Any
) -> Annotation:
    """Write text at a position in the axes, shifted by `offset` points; `options` are passed to `Axes.annotate`."""
    usual = {"textcoords": "offset points", "va": "center_baseline", "size": "small", "color": ink()}
    return ax.annotate(text, xy=at, xytext=offset, gid=gid, **usual | options)


def gas_label(*, model: bool) -> str:
    """Return the label of a gas axis, which states whether the gas comes from a model."""
    return f"{'model gas' if model else 'gas used'} (gas units)"


def stacked_bars(
    ax: Axes, bars: Sequence[tuple[str, Floats, Any, str]], *, named_above: bool
) -> tuple[Floats, list[BarContainer]]:
    """Draw stacked bars, each part with a gid, widths, a colour and a label; return the ends of the bars, and parts."""
    drawn = []
    left, height = np.zeros(len(bars[0][1])), 0.4 if named_above else 0.56
    for gid, width, colour, label in bars:
        look: dict[str, Any] = {"color": colour, "gid": gid, "label": once(ax, label) if width.any() else "_nolegend_"}
        drawn.append(ax.barh(np.arange(len(width)), width, left=left, height=height, **look))
        left = left + width
    return left, drawn


def largest(frame: pd.DataFrame, weights: Floats, limit: int) -> pd.DataFrame:
    """Return the frame; if it has more than `limit` rows, those with the largest weights, the largest first."""
    return frame if len(frame) <= limit else frame.iloc[np.argsort(-weights, kind="stable")[:limit]]


# ticks ----------------------------------------------------------------------------------------------------------------


def _quantity(value: float, _: object) -> str:  # a function with a name, so that figures can be pickled
    return number(value)


NUMBERS = FuncFormatter(_quantity)


def _label_room(axis: Any, characters: int) -> float:
    """Return how many labels of so many characters an axis has room for, as it is drawn."""
    across = isinstance(axis, XAxis)
    box, size = axis.axes.bbox, size_of("xtick.label" if across else "ytick.label")
    length = 72 * (box.width if across else box.height) / figure_of(axis.axes).dpi
    return float(length / (size * (CHARACTER * characters + 2 if across else 2.4)))


class WholeTicks(MaxNLocator):
    """Ticks at whole numbers from 0 up, as many as there is room to label when the figure is drawn."""

    def __init__(self, axis: Axis, characters: int) -> None:
        super().__init__(integer=True, min_n_ticks=1, steps=(1, 2, 2.5, 5, 10))
        self._axis, self._characters = axis, characters

    def tick_values(self, vmin: float, vmax: float) -> Any:
        long = self._characters or len(f"{max(abs(vmin), abs(vmax)):,.0f}")
        most = _label_room(self._axis, long)
        self.set_params(nbins=int(np.clip(most, 2, 6)))
        margin = 0.02 * (vmax - vmin)  # ticks at both ends of the data are as many as without margins
        ticks = np.asarray(super().tick_values(vmin + margin, vmax - margin))
        ticks = ticks[(ticks >= max(vmin, 0)) & (ticks <= vmax) & (ticks == np.round(ticks))]
        return ticks[:: int(np.ceil(len(ticks) / (int(most) + 1))) or 1]


def gas_scale(ax: Axes, side: Literal["x", "y"], values: Floats) -> bool:
    """Make an axis logarithmic if gas has a wide range, otherwise linear; return whether it is logarithmic."""
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    least = float(values[values > 0].min(initial=np.inf)) if high > 0 else 0.0
    axis, log = getattr(ax, f"{side}axis"), least > 0 and high / least >= MIN_LOG_RATIO
    if log:
        set_scale = getattr(ax, f"set_{side}scale")
        set_scale("log") if low > 0 else set_scale("symlog", linthresh=1)
        axis.set_major_locator(LogTicks(least=1))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(NUMBERS)  # after the scale, which sets a formatter
        label, upright = axis.get_label_text(), side == "y"  # upright, a line has the height of the axes only
        axis.set_label_text(f"{label},{chr(10) if upright else ' '}logarithmic" if label else "")
    else:
        whole_ticks(axis)
    return log


class LogTicks(Locator):
    """Ticks of a logarithmic axis: powers of ten, and 2 and 5 between them if there is room when the figure is drawn.

    Those below `least` are left out, except 0 if the axis shows it.
    """

    def __init__(self, least: float = 0.0) -> None:
        self._least = least

    def __call__(self) -> Any:
        return [] if self.axis is None else self.tick_values(*self.axis.get_view_interval())

    def tick_values(self, vmin: float, vmax: float) -> Any:
        room = _label_room(self.axis, len(f"{vmax:,.0f}"))
        first, last = np.log10(max(vmin, self._least)), np.log10(vmax)
        inside = np.floor(last) - np.ceil(first)  # decades between the powers of ten, one less than there are
        every = max(int(np.ceil(inside / room)), 1)
        powers = 10.0 ** (every * np.arange(np.floor(first / every), np.ceil(last / every) + 1))
        each = 2.2 if isinstance(self.axis, XAxis) else 1.7  # labels in a decade; those of 1 and 2 are the nearest
        fine = each * (last - first) < room or inside < 1  # one label is not a scale
        ticks = np.outer(powers, (1, 2, 5) if fine else (1,)).ravel()
        return [0.0] * bool(vmin <= 0) + [float(tick) for tick in ticks if tick >= self._least]


def gas_rows(ax: Axes, *values: Floats) -> None:
    """Scale the x axis of a figure with a row for each call: from 0, or logarithmic if gas has a wide range."""
    if not gas_scale(ax, "x", np.concatenate(values)):
        ax.update_datalim([(0, 0)])
        lowest(ax, "x", 0.0)


def whole_ticks(axis: Axis, numbers: Formatter = NUMBERS, characters: int = 0) -> None:
    """Set ticks at whole numbers; `characters` is the length of the longest label if labels are not just numbers."""
    axis.set_major_locator(WholeTicks(axis, characters))
    axis.set_major_formatter(numbers)


# figures in pages ----------------------------------------------------------------------------------------------------


class PageColour(NamedTuple):
    """The CSS variable that replaces a colour in `inline_svg`, and its value on dark pages; None if a page sets it."""

    variable: str
    dark: str | None = None


# Of `PALETTE` on dark backgrounds: of nearly the same hues, with the least distances 20 and 10, and 13 and 6.
_PALETTE_DARK = (
    *("#a251b7", "#f6d621", "#ff7899", "#1875f5", "#82a730", "#bb5601", "#6bb2d9"),
    *("#80fdef", "#e2365f", "#d8c3fd", "#a47989", "#bc84fe"),
)
PAGE_COLOURS: Mapping[str, PageColour] = {
    INK: PageColour("ink"),
    MUTED: PageColour("muted"),
    GRID: PageColour("grid"),
    PAPER: PageColour("paper"),
    ON_DARK: PageColour("on-bar"),
    GREY: PageColour("grey", dark="#818b95"),
    BLUE: PageColour("blue", dark="#3f9fdd"),
    VERMILLION: PageColour("vermillion", dark="#f0803c"),
    GREEN: PageColour("green", dark="#26b98e"),
    PURPLE: PageColour("purple", dark="#dc92bb"),
    ORANGE: PageColour("orange", dark="#edb02f"),
    SKY: PageColour("sky", dark="#7cc8f5"),
    **{
        light: PageColour(f"call-{place}", dark)
        for place, (light, dark) in enumerate(zip(PALETTE, _PALETTE_DARK, strict=True))
    },
}

_SVG_RC: dict[Any, Any] = {
    "svg.fonttype": "none",  # text can be searched, copied and read aloud
    "svg.hashsalt": "ledger-toolkit",  # equal input gives equal bytes
    "font.family": ["DejaVu Sans"],
    "font.size": 10,
    "axes.titlelocation": "left",
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "axes.titlesize", "axes.labelsize"), 9),
    **dict.fromkeys(("text.color", "axes.labelcolor", "ytick.labelcolor"), INK),
    **dict.fromkeys(("grid.color", "axes.edgecolor", "xtick.color", "ytick.color"), GRID),
    "xtick.labelcolor": MUTED,
}


# What a page shows when the pointer is on an artist: one text, or one for each of its markers.
_tips: ContextVar[dict[Artist, str | Sequence[str]] | None] = ContextVar("tips", default=None)


def in_page() -> bool:
    """Return whether the figure is drawn for a page, which shows values on hover."""
    return _tips.get() is not None


def tip(artist: Artist, text: str | Sequence[str]) -> None:
    """Set what a page shows when the pointer is on an artist; other figures are not changed."""
    if (tips := _tips.get()) is not None:
        tips[artist] = text


def tip_segments(ax: Axes, x: Floats, y: Floats, name: str) -> None:
    """Let a page show the values of a line: along each flat piece, its versions and gas.

    Neighbouring pieces of a line with many are taken together, so that a page stays small.
    """
    if not in_page():
        return
    flat = np.flatnonzero((y[1:] == y[:-1]) & (x[1:] > x[:-1]))
    stepped = np.append((x[2:] == x[1:-1]) & (y[2:] != y[1:-1]), False)  # there, the later gas begins
    for part in np.array_split(flat, min(len(flat), MAX_TIPS) or 1):
        if len(part):
            first, last, gas = x[part[0]], x[part[-1] + 1], y[part]
            versions = version_span(int(first), int(last - stepped[part[-1]]))
            values = number(gas[0]) if gas.min() == gas.max() else f"{number(gas.min())} to {number(gas.max())}"
            [line] = ax.plot(
                [first, last], [gas[0], gas[-1]], linewidth=9, alpha=0, zorder=6, color=GREY, label="_nolegend_"
            )
            tip(line, f"{name}: {counted(values, 'gas unit')}, {versions}")


def page_colours(*, dark: bool) -> str:
    """Return CSS declarations of the variables in `PAGE_COLOURS` that a page does not set."""
    values = {one.variable: one.dark if dark else light for light, one in PAGE_COLOURS.items() if one.dark}
    return " ".join(f"--{variable}: {value};" for variable, value in values.items())


def inline_svg(name: str, size: tuple[float, float], alt: str, draw: Callable[[Axes], object]) -> str:
    """Draw a figure and return it as one ``<svg>`` element, whose colours are CSS variables of the page.

    Parameters
    ----------
    name : str
        Prefix of the figure's ids, which makes them unique in the page.
    size : (float, float)
        Width and height in inches.
    alt : str
        What the figure shows, for readers who cannot see it.
    draw : callable
        Draws on the Axes passed to it. Their transforms are final when `inline_svg` returns.

    Returns
    -------
    str
        The element; identical input gives identical text.
    """
    text = io.StringIO()
    with mpl_style.context(["default", _SVG_RC]):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots()
        token = _tips.set({})
        try:
            draw(axes)
            tips = list((_tips.get() or {}).items())
            for place, (artist, _) in enumerate(tips):
                artist.set_gid(f"tip-{place}")
            for patch in (figure.patch, axes.patch):
                patch.set_visible(False)
            canvas: Any = FigureCanvasSVG(figure)  # its methods have no annotations
            nothing_more = dict.fromkeys(("Creator", "Date", "Format", "Type"))
            canvas.print_svg(text, metadata=nothing_more)  # Figure.savefig draws twice
        finally:
            _tips.reset(token)
    svg = text.getvalue()
    box = re.search(r'viewBox="([\d. ]+)"', svg)
    body = svg[svg.index(">", svg.index("<svg")) + 1 : svg.rindex("</svg>")]
    # The metadata and styles are useful only in a separate file.
    body = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", body, flags=re.DOTALL)
    start, *pieces = re.split(r'(?=<g id="tip-\d+">)', body)
    body = start + "".join(_with_tip(piece, tips) for piece in pieces)
    body = re.sub(r"<[^<>]+>", lambda tag: _tag(tag[0], name), body)
    return f'<svg viewBox="{box[1] if box else ""}" role="img" aria-label="{escape(visible(alt))}">{body.strip()}</svg>'


def _with_tip(piece: str, tips: Sequence[tuple[Artist, str | Sequence[str]]]) -> str:
    """Add what is shown on hover to the element at the beginning of a piece of SVG, or to its markers."""
    place, end = int(piece[len('<g id="tip-') : piece.index('">')]), piece.index(">") + 1
    text = tips[place][1]
    if isinstance(text, str):
        return f"{piece[:end]}<title>{escape(visible(text))}</title>{piece[end:]}"
    titles = iter(text)
    return re.sub(r"(<use [^<>]*)/>", lambda use: _titled(use, next(titles, "")), piece)


def _titled(use: re.Match[str], text: str) -> str:
    return f"{use[1]}><title>{escape(visible(text))}</title></use>" if text else use[0]


def _tag(tag: str, name: str) -> str:
    """Make the ids of one tag unique, and replace its colours with CSS variables; text between tags is unchanged."""
    if tag.startswith("<!--"):
        return ""
    keep = tag.startswith(("<clipPath", "<path"))  # these are referenced; matplotlib does not use the other ids
    tag = re.sub(r' id="([^"]*)"', rf' id="{name}-\1"' if keep else "", tag)
    tag = re.sub(r'xlink:href="#', f'href="#{name}-', tag)
    tag = re.sub(r"url\(#", f"url(#{name}-", tag)
    if "style=" not in tag:
        return tag
    return re.sub("|".join(PAGE_COLOURS), lambda at: f"var(--{PAGE_COLOURS[at[0]].variable})", tag)
