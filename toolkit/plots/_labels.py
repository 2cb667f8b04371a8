"""Text in figures: literal text, labels that are placed when the figure is drawn, and legends below the axes."""

from __future__ import annotations

import re
from functools import lru_cache, partial
from itertools import product
from textwrap import wrap
from typing import TYPE_CHECKING, Any, cast

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.transforms import ScaledTranslation

from toolkit._present.text import visible
from toolkit.plots._style import (
    CHARACTER,
    as_text,
    beside,
    figure_of,
    free_width,
    in_one_line,
    is_alone,
    is_wide,
    least_height,
    room,
    size_of,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle
    from matplotlib.text import Annotation


MAX_LINE = 30  # characters of a line of a name beside the axes


def figure_text(text: object, limit: int = 36) -> str:
    """Return text that matplotlib draws literally, with the current fonts.

    Dollar signs are escaped, so that nothing is read as mathtext. Characters that none of the fonts has become a box,
    so that drawing never warns about missing glyphs.

    Parameters
    ----------
    text : object
        Converted with ``str``.
    limit : int, default 36
        Maximum number of characters, not counting the backslashes that escape dollar signs.

    Returns
    -------
    str
    """
    known = _characters(tuple(mpl.rcParams["font.family"]))
    box = "□" if ord("□") in known else "?"
    shown = "".join(char if ord(char) in known else box for char in visible(text, limit))
    return shown.replace("$", r"\$")


def in_lines(text: str, width: int = MAX_LINE) -> str:
    """Return text for a narrow column beside the axes, on several lines."""
    return "\n".join(wrap(text, width, break_long_words=False))


@lru_cache(maxsize=8)
def _characters(families: tuple[str, ...]) -> frozenset[int]:
    """Return the code points in the fonts of `families`, which matplotlib tries in turn."""
    paths = {findfont(FontProperties(family=[family])) for family in families}
    return frozenset().union(*(get_font(path).get_charmap() for path in paths))


HANDLE = 3.3  # width of what stands beside a name in a legend, as a multiple of the font size
MIN_TWO_ROWS = 150  # points, of axes with two rows of captions: they take up 0.15 of the height
BOX_MARGIN = 4  # points left and right of a name in a box
DIGIT = 1.3  # width of a box for one, as a multiple of the mean width of a character
MAX_NUMBERED = 9  # boxes with a number
MIN_CUT = 8  # characters of a name in a legend that is cut
_LONG_NAMES_PT = 70  # what is wider beside the axes leaves a margin which a legend can use


class Placed(Artist):
    """Labels that are placed again whenever their axes are drawn, to match their limits, scale, size and colours."""

    def __init__(self, ax: Axes, place: Callable[[], None]) -> None:
        super().__init__()
        self._place = place
        self.set_in_layout(False)
        self.set_zorder(-1)  # drawn before the texts, which then have their positions
        ax.add_artist(self)

    def draw(self, renderer: object) -> None:
        """Place the labels; the axes draw them."""
        del renderer
        self._place()


Caption = tuple[float, str, str, str]  # x in data units, text, colour, and what it names


def spread(wanted: Sequence[float], sizes: Sequence[float], low: float, high: float) -> list[float]:
    """Move the middles of labels apart until no two overlap, each as near as possible to its target.

    Parameters
    ----------
    wanted : sequence of float
        Target positions, in any order.
    sizes : sequence of float
        Size of each label; smaller if the range from `low` to `high` is too short.
    low, high : float
        Available range, in the same unit.

    Returns
    -------
    list of float
        One position for each target, in the same order; positions are ordered like their targets.
    """
    if not wanted:
        return []
    order = np.argsort(np.asarray(wanted), kind="stable")
    half = np.asarray(sizes)[order] / 2
    steps = np.cumsum(np.append(0, half[1:] + half[:-1]))
    steps *= min(1.0, (high - low) / max(steps[-1], 1e-9))
    free = np.asarray(wanted)[order] - steps  # equal or ascending if neighbours are far enough apart
    # Half way between moving each up, away from those below, and down, so that labels of one target are around it.
    up, down = np.maximum.accumulate(free), np.minimum.accumulate(free[::-1])[::-1]
    placed = np.empty(len(wanted))
    placed[order] = steps + np.clip((up + down) / 2, low, high - steps[-1])
    return [float(place) for place in placed]


def name_ends(ax: Axes, lines: Sequence[Line2D], names: Sequence[str], *, offset: float) -> None:
    """Label lines to the right of the axes, each at its last point, with a line `offset` points long in its colour."""
    arrow = {"arrowstyle": "-", "lw": 1.2, "shrinkA": 1, "shrinkB": 2, "relpos": (0, 0.5)}
    outside: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "va": "center", "annotation_clip": False}
    outside |= {"arrowprops": arrow, "gid": "end-label"}
    texts = [write(ax, name, (1, _last(line)), **outside) for name, line in zip(names, lines, strict=True)]
    for text in texts:
        text.set_position((offset, 0))
    Placed(ax, partial(_place_ends, ax, lines, texts, offset))


def _last(line: Line2D) -> float:
    """Return the last known height of a line."""
    heights = np.asarray(line.get_ydata(), dtype=np.float64)
    return float(known[-1]) if len(known := heights[~np.isnan(heights)]) else 0.0


def _place_ends(ax: Axes, lines: Sequence[Line2D], texts: Sequence[Annotation], offset: float) -> None:
    box, pt = ax.get_window_extent(), 72 / figure_of(ax).dpi
    last = [_last(line) for line in lines]
    size = float(texts[0].get_fontsize())
    level = [float(np.clip(ax.transData.transform((0, y))[1], box.y0, box.y1)) for y in last]
    # Half a line between names, or several lines of two names would read as one.
    sizes = [(1.35 + 1.5 * text.get_text().count("\n")) * size / pt for text in texts]
    placed = spread(level, sizes, box.y0 + size / 2 / pt, box.y1 - size / 2 / pt)
    for line, text, y, was, now in zip(lines, texts, last, level, placed, strict=True):
        text.xy = (1, y)
        text.set_position((offset, (now - was) * pt))
        text.set_visible(line.get_visible())
        cast("Any", text.arrow_patch).set_color(line.get_color())


def least_width(ax: Axes, longest: int = 0) -> float:
    """Return how many points wide axes are at least when drawn; names of up to `longest` characters are beside them."""
    names = longest * CHARACTER * size_of("font.") * 0.833 + 24 * bool(longest)
    return min(free_width(ax) - names, 72 * room(ax))  # without a layout engine, the axes have their room


def caption_versions(ax: Axes, captions: Sequence[Caption], width: float) -> set[str]:
    """Draw captions in two rows at the top of the axes, each with a thin vertical line.

    Captions are placed in order; those without room are hidden.

    Parameters
    ----------
    ax : Axes
        Axes with their final limits.
    captions : sequence of Caption
    width : float
        Points that the axes have at least when they are drawn.

    Returns
    -------
    set of str
        What is named by captions that all have room in any case.
    """
    top: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "ha": "center", "va": "top"}
    drawn = []
    for x, caption, colour, _ in captions:
        look: dict[str, Any] = {"color": as_text(colour), "annotation_clip": False} | top
        text = write(ax, caption, (x, 1), gid="caption", **look)
        text.set_in_layout(False)
        drawn.append((text, ax.axvline(x, color=colour, linewidth=0.7, alpha=0.5, zorder=1, gid="caption-line")))
    Placed(ax, partial(_place_captions, ax, drawn))
    _place_captions(ax, drawn, (0, width, least_height(ax)))
    hidden = {what for (*_, what), (text, _) in zip(captions, drawn, strict=True) if not text.get_visible()}
    drawn.sort(key=lambda one: not one[0].get_visible())  # in wider axes, others must not take their room
    return {what for *_, what in captions} - hidden


def _place_captions(
    ax: Axes, drawn: Sequence[tuple[Annotation, Line2D]], place: tuple[float, float, float] | None = None
) -> None:
    """Place captions in axes with a left edge, width and height in points; by default, those that they have now."""
    box, pt = ax.get_window_extent(), 72 / figure_of(ax).dpi
    low, width, height = place or (box.x0 * pt, box.width * pt, box.height * pt)
    taken: list[list[tuple[float, float]]] = [[] for _ in range(2 if height > MIN_TWO_ROWS else 1)]
    rows: dict[int, float] = {}  # where each ends, in points below the top

    def across(x: float) -> float:
        return low + width * float((ax.transScale + ax.transLimits).transform((x, 1))[0])

    for text, line in drawn:
        text.set_visible(True)  # a hidden text has no extent
        half, size = text.get_window_extent().width * pt / 2, float(text.get_fontsize())
        middle = across(text.xy[0])
        # At an edge, it is beside its line, which would otherwise cross it.
        beside, shift = half + size / 2, 0.0
        if middle - half < low + size / 2 or middle + half > low + width:
            shift = beside if middle - half < low + size / 2 else -beside
        span = (middle + shift - half - size, middle + shift + half + size)
        free = (row for row, there in enumerate(taken) if all(span[1] <= one or span[0] >= end for one, end in there))
        row = next(free, None) if 2 * half <= width else None
        for artist in (text, line):
            artist.set_visible(row is not None)
        if row is not None:
            taken[row].append(span)
            text.set_position((shift, -1.3 * size * row))
            rows[row] = 1.3 * size * (row + 1)
    # Lines end below the captions that they would cross: a page's ground behind them is not known.
    timeline = [one for one in ax.lines if one.get_gid() == "timeline-line"]
    for line in [*(line for _, line in drawn), *timeline]:
        middle, foot = across(np.asarray(line.get_xdata())[0]), np.asarray(line.get_ydata())[0]
        crossed = [rows[row] for row, spans in enumerate(taken) if any(one < middle < end for one, end in spans)]
        line.set_ydata([foot, 1 - max(crossed, default=0) / height])


def name_boxes(ax: Axes, boxes: Sequence[tuple[Rectangle, Annotation, Sequence[str]]], *, wanted: bool = True) -> None:
    """Label each box with the first of its names that fits, on one line or two, and draw the legend.

    The widest of the boxes in which none fits have a number, which the legend explains, unless a name is empty.
    """
    pt, size = least_width(ax) / float(np.ptp(ax.get_xlim())), CHARACTER * 0.833 * size_of("font.")
    two = least_height(ax) / float(np.ptp(ax.get_ylim())) > 2.4 * 0.833 * size_of("font.")
    numbered = []
    for place, (box, _, names) in enumerate(boxes):
        shown = [name for one in names for name in ([one, _two_lines(one)] if two else [one])]
        least = min(max(map(len, name.split("\n"))) for name in shown)
        if DIGIT * size < box.get_width() * pt < size * least + BOX_MARGIN:
            numbered.append(place)
    numbered = sorted(sorted(numbered, key=lambda place: -boxes[place][0].get_width())[:MAX_NUMBERED])
    named, rest = list(boxes), ax.get_legend_handles_labels()[0]
    numbers: list[Line2D] = []
    for n, place in enumerate(numbered, 1):
        box, text, names = boxes[place]
        named[place] = box, text, [str(n)]
        text.xy, text.xyann = (box.get_x() + box.get_width() / 2, text.xy[1]), (0, 0)
        text.set_horizontalalignment("center")  # in the narrowest boxes, a digit has no margin
        # The shortest name that no other number has; calls of one function differ in their gas.
        others = [name for other in numbered if other != place for name in boxes[other][2]]
        label = names[0] if is_wide(ax) else next((name for name in names[::-1] if name not in others), names[0])
        numbers += ax.plot([], [], " ", label=f"{n}  {label}")
    Placed(ax, partial(_place_names, ax, named))
    legend_below(ax, [*numbers, *rest], wanted=wanted, needed=len(numbers))


def _place_names(ax: Axes, boxes: Sequence[tuple[Rectangle, Annotation, Sequence[str]]]) -> None:
    for box, text, names in boxes:
        place = box.get_window_extent()
        margin = 0 if text.get_horizontalalignment() == "center" else BOX_MARGIN * figure_of(ax).dpi / 72
        for name in [*names, *map(_two_lines, names)]:
            text.set(text=name, va="center" if "\n" in name else "center_baseline", visible=True)
            extent = text.get_window_extent()
            fits = extent.width <= place.width - margin and extent.height <= place.height - 2 * ("\n" in name)
            if fits or not name:
                break
        else:
            text.set_visible(False)


def _two_lines(name: str) -> str:
    """Return a name on two lines, split between words near its middle."""
    ends = [word.end() for word in re.finditer(r"_+|::| ", name)]
    at = min(ends, key=lambda end: abs(end - len(name) / 2), default=len(name))
    return f"{name[:at].rstrip()}\n{name[at:]}"


def legend_below(
    ax: Axes,
    handles: Sequence[Any],
    *,
    wanted: bool = True,
    lines: int = 1,
    needed: int = 0,
    strip: float = 0.0,
    width: float | None = None,
    note: str = "",
) -> None:
    """Draw a legend below the axes and the x label, in as few rows as possible.

    Parameters
    ----------
    ax : Axes
    handles : sequence of Artist
        Entries of the legend, with their labels.
    wanted : bool
        Whether a legend was requested.
    lines : int
        Number of lines in a tick label.
    needed : int
        Number of leading entries. The legend has only these if all entries would take up about half the height of the
        axes, even in small type; if it is still as tall, their names are cut.
    strip : float
        Height of a strip of marks between the axes and their ticks, as a share of the axes' height.
    width : float, optional
        Points from the left edge of the axes that the legend may have; by default, their `free_width`.
    note : str
        Text below the legend, also without one.
    """
    ticks, label, usual = size_of("xtick.label"), size_of("axes.label"), size_of("legend.font") * 0.85
    figure, alone, names_width = figure_of(ax), is_alone(ax), beside(ax)
    # Below long names, and below narrow axes, a legend also has the width of what is beside the axes.
    left = 0.9 * names_width if names_width > _LONG_NAMES_PT or not is_wide(ax) else 0.0
    width = (width or free_width(ax)) + (1 + alone) / 2 * left
    height = 72 * ax.get_position(original=True).height * figure.get_figheight()
    names = [str(one.get_label()) for one in handles]
    whole = [name.replace("\n", ", ") for name in names]
    counts = [len(handles), needed] if wanted and handles else []
    sizes = [(count, *how) for count in counts for how in ((1, 1, 0.3), (1, 2, 0.3), (0.8, 1, 0.5), (0.8, 2, 0.5))]
    below = 1.25 * (ticks * lines + label) + 14

    def write_note(size: float, rows: int) -> None:
        look: dict[str, Any] = {"xycoords": "axes fraction", "va": "top", "annotation_clip": False, "size": size}
        if note:
            write(ax, note, (0, -strip), gid="note", offset=(-left, -below - 1.6 * size * rows), **look)

    # Names that are cut look alike, so other entries go before names are cut, and those that are cut are small.
    for cut, (count, smaller, most, share) in product((False, True), sizes):
        size = usual * smaller
        columns = max(np.ceil(count * 1.4 * size / (0.5 * height)), 1)
        limit = max(int((width / (columns if cut else 1) / size - HANDLE) / CHARACTER) - 1, MIN_CUT)
        shown = [in_one_line(name, limit) for name in names[:count]]
        if most > 1:  # one below the other, of which at least one has several lines
            shown = [in_lines(name, limit) for name in whole[:count]]
        if not (cut and smaller < 1) and (shown == whole[:count]) == (most > 1):
            continue
        lengths = [max(map(len, name.split("\n"))) for name in shown]
        widths = [size * (CHARACTER * length + HANDLE) for length in lengths]
        fitting = (rows for rows in range(1 if most == 1 else count, count + 1) if sum(_columns(widths, rows)) <= width)
        rows = next(fitting, count if cut else 0)
        tall = rows + sum(name.count("\n") for name in shown)
        if rows and tall * 1.4 * size < share * height:  # a taller legend would leave too little of the axes
            under = ScaledTranslation(-left / 72, -below / 72, figure.dpi_scale_trans)
            place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0, -strip), "frameon": False}
            place |= {"bbox_transform": ax.transAxes + under, "borderaxespad": 0, "borderpad": 0}
            place |= {"fontsize": size, "handlelength": 1.2, "handletextpad": 0.4, "columnspacing": 1.3}
            ax.legend(handles[:count], shown, ncols=-(-count // rows), **place)
            write_note(size, tall)
            return
    write_note(usual, 0)


def _columns(widths: Sequence[float], rows: int) -> list[float]:
    """Return the widths of the columns of a legend with a number of rows."""
    return [max(widths[at : at + rows]) for at in range(0, len(widths), rows)]
