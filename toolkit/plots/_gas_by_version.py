"""The figure of gas by ledger version, which also shows steps, their causes and failed calls."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.transforms import blended_transform_factory

from toolkit._present.text import change_place, number, plural
from toolkit.errors import InputError
from toolkit.frames._columns import plain_columns
from toolkit.gas._observations import READ_AT_VERSIONS, Cause, Source
from toolkit.gas._sentences import stratum_text
from toolkit.gas._series import CallSeries, as_observations, is_model, require, series_of
from toolkit.gas._steps import STEP_COLUMNS, merge_drift
from toolkit.plots import _labels as texts
from toolkit.plots import _style as style
from toolkit.plots import _time as time

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.lines import Line2D
    from numpy.typing import NDArray

    from toolkit.plots._style import Colors, Floats

    _Looks = Mapping[tuple[str, str], dict[str, Any]]  # colour and line style of each call, by label and node
    _Names = list[tuple[Line2D, str]]


MAX_ROWS = 24  # fit two screens
MAX_ROWS_BY_DEFAULT = 16  # fit one
ROW_HEIGHT = 0.7  # share of a row for its line
FAILED_ROW = 0.45  # share of a row from its middle to the bars of reads without a result
CAPTIONS_PT = 28  # points, of two rows of captions
MIN_FAILED = 0.02  # of the width; shorter stretches without a result would be specks
RUG_STRIP = 0.02  # share of the height of the axes for each failing call
RUG_GAP = 0.05  # share of the height of the axes above it, so that no bar looks like the lowest gas
HIGH_STRIP = 0.1  # share of the height of the axes for all marks below them
MAX_RUG_ROWS = 4  # they take a fifth of the height; further calls share the last row
BAR: dict[str, Any] = {"linewidth": 2.2, "alpha": 0.55, "solid_capstyle": "projecting"}
LEVEL_COLUMNS = ("label", "stratum", "version_first", "version_last", "gas_first", "gas_last", "count")
MAX_LEVELS = 6  # strata of one call; more lines cannot be distinguished
MAX_SHARE_AFTER = 0.25  # of the width, between the last transaction of a stratum and its name at the edge
MAX_RATIO = 100  # of gas in one figure of a report; beyond it, steps are too small to see on a logarithmic scale
MAX_SCALES = 3
MAX_LARGE_DOTS = 150  # more transactions are drawn as smaller dots, which do not merge into a bar


def gas_by_version(
    observations: Any,
    *,
    steps: pd.DataFrame | None = None,
    levels: pd.DataFrame | None = None,
    timeline: pd.DataFrame | None = None,
    x: Literal["version", "time", "both"] = "version",
    calls: Sequence[str] | None = None,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
    title: str | None = None,
    colors: Colors = None,
    legend: bool = True,
) -> Axes:
    """Draw the gas of calls against the ledger version.

    Views, and simulations made at several versions, are lines that step where gas changes between adjacent versions.
    Between different observations further apart, the version of the change is not known, and the line is interrupted. A
    line is wider where others lie on it. Other simulations are diamonds, and committed transactions are dots. Failed
    executions are crosses; of a line, only the first and last of each stretch of equal gas. Reads without a result
    are bars below the axes, unless they are too short to see. The y axis is logarithmic if the most gas is at least 20
    times the least.

    Each line is named at its end; beside other axes, or if space is short, names are in the legend instead, with
    numbers if lines have the same colour. If there are more than 7 calls, each has a row with its own logarithmic
    scale, from its least to its most gas, which are written beside it; reads without a result are grey bars below it.
    Calls from the 13th on are grey. By default, only the 16 calls whose gas varies most are drawn; `calls` selects
    others, and `gas_heatmap` draws all calls. Axes too low to name them all have fewer, as the title says.

    If all observations are at one version, or the frame is one of `Run.at`, each call has a row, and gas is on the x
    axis, unless `ax` shares it.

    Parameters
    ----------
    observations : DataFrame, TransactionFrames, Simulation, or several of them
        `Run.observations`; a frame of `fetch_views`, or a mapping of names to frames; the result of
        `fetch_transactions` or `fetch_simulations`, or its frame ``transactions``; or simulations. Gas is in gas units.
        Calls are named after their functions; names of simulations include the arguments in which they differ. System
        transactions, such as block metadata, are omitted.
    steps : DataFrame, optional
        A frame from `Run.steps`. Each step is marked with the colour and shape of its cause, which is named above the
        axes if there is room, else in the legend; a stretch of a drift, which is one row in `gas_change`, is only a
        line. Marks of uncertain steps are hollow. A step that was only narrowed to an interval is a band with a hollow
        mark in the middle. Known steps are
        in the lines of views, whichever versions were read. Marks for committed transactions are at the mean gas of the
        transactions compared.
    levels : DataFrame, optional
        A frame from `Run.levels`. Draws the level of each stratum of committed transactions as a line that steps where
        `steps` has a change of the stratum, and is interrupted where the change is unknown; if transactions take
        several ways, each way is a line, from its first to its last transaction. The transactions become small dots.
        For a call with more than 6 strata, only the 6 most frequent are drawn. If there are more than 7 lines, or
        space is short, only the most frequent stratum of each call is named, by its call. Lines that end long before
        the others have no name.
    timeline : DataFrame, optional
        A frame from `toolkit.timeline`. Its changes are marked at the bottom, in the colour and shape of each cause.
    x : {"version", "time", "both"}, default "version"
        With "time", the axis is scaled by time and ticks show dates; with "both", it is scaled by version and ticks
        show versions and dates. Times are known for committed transactions, for steps, and for the changes and both
        ends of the timeline; other times are interpolated.
    calls : sequence of str, optional
        Calls to draw, by label or by the name shown in the figure. A call has the same colour whichever others
        are drawn, unless one of them has it already.
    ax : Axes, optional
        Axes to draw on; by default, a new figure.
    figsize : (float, float), optional
        Size of a new figure in inches; by default, 7 inches wide and as high as the content requires.
    title : str, optional
        Title of the figure. By default, a description of what is drawn; an empty string removes it.
    colors : color, sequence or mapping of str to color, optional
        Colours of the calls, in call order or by name. By default, the colours of the active style, if it sets any.
    legend : bool, default True
        Whether to draw a legend and the names at the ends of lines. If the legend would take up about half the height
        of the axes, it lists only the calls; if that is not enough, names are cut, or it is omitted. `Axes.legend`
        draws one with all entries.

    Returns
    -------
    Axes
        The x axis is in ledger versions, even if it is scaled by time; the y axis is in gas units. If calls have rows,
        the figure has no y axis; if all observations are at one version, the x axis is in gas units.

    Raises
    ------
    InputError
        If `observations` is not one of these, a frame lacks a column, `calls` or `colors` contains an unknown name,
        dates are requested and fewer than two times are known, or both `ax` and `figsize` are given.

    Examples
    --------
    >>> import toolkit
    >>> from matplotlib.figure import Figure
    >>> call = toolkit.ViewFunction("0x1::coin::supply", type_arguments=["0x1::aptos_coin::AptosCoin"])
    >>> frame = toolkit.fetch_views(toolkit.connect(), call, "0:-1/20", progress=False)
    >>> toolkit.plots.gas_by_version(frame, ax=Figure().subplots()).get_title()
    'Gas of coin::supply by ledger version'
    """
    if x not in {"version", "time", "both"}:
        raise InputError(f'x: expected "version", "time" or "both", got {x!r:.40}')
    observations = as_observations(observations, figure="gas_by_version")
    found = series_of(observations, calls)
    steps = pd.DataFrame(columns=list(STEP_COLUMNS)) if steps is None else steps
    require(steps, STEP_COLUMNS, what="marks of steps", source="run.steps")
    if levels is not None:
        require(levels, LEVEL_COLUMNS, what="level lines", source="run.levels")
    gas_label = style.gas_label(model=is_model(observations))
    first, last = _span(found)
    alone = (
        not isinstance(ax, Axes) or len(ax.get_shared_x_axes().get_siblings(ax)) == 1
    )  # otherwise, x is the version for all
    at = observations.attrs.get("ledger_version", first if first == last else None)
    if at is not None and alone and any(series.answered.any() for series in found):
        return _draw_at_version(found, at, title, colors, ax=ax, figsize=figsize, xlabel=gas_label)
    every, looks = _labels(found), _looks(found, colors)
    most = style.row_limit(ax, figsize, MAX_ROWS_BY_DEFAULT if calls is None else len(every))
    found = most_moved(found, max(most, style.MAX_NAMED))
    named = _labels(found)
    drawn = steps[steps["label"].isin(named)]
    found = [_with_steps(series, _marks(drawn)) for series in found]
    merged = merge_drift(drawn)
    marks = _marks(merged[merged["count"] == 1])  # those of a stretch would cover the line, which shows it
    lines = [] if levels is None else _level_lines(levels, found, marks)
    changes = [] if timeline is None else time.timeline_marks(timeline, first, last)
    times = None if x == "version" else time.axis_times(observations, steps, timeline)
    cut = f": the {len(named)} of {len(every):,} calls that vary most" if len(named) < len(every) else ""
    title = _title(found, x) + cut if title is None else title
    shape: dict[str, Any] = {"figsize": figsize, "height": max(4.0, 1.8 + 0.24 * len(named)), "across": "y"}
    with style.drawing(ax, title=title, xlabel=time.axis_label(found, times, x), **shape) as axes:
        if not any(series.answered.any() for series in found):
            read = any(len(series.versions) for series in found)
            return style.nothing(axes, "no call returned gas" if read else "no observations")
        _set_versions(axes, times, x=x)
        captions = _captions(marks)
        above = 0.15 if captions else 0.05  # room for two rows of captions
        each = style.least_height(axes) / len(named)
        names: _Names = []
        if in_rows := len(named) > style.MAX_NAMED:
            place = _draw_in_rows(
                axes,
                found,
                lines,
                looks,
                above=min(above * len(named), CAPTIONS_PT / each),
                what=f"{gas_label.partition(' (')[0]}, log",
            )
            marks = marks.assign(**{one: [*map(place, marks["label"], marks[one])] for one in ("before", "after", "y")})
        else:
            names = _draw_readings(axes, found, lines, looks)
            axes.set_ylabel(gas_label)
            _set_gas(axes, found, above=above)
        strip = _draw_strip(axes, [] if in_rows else found, changes, looks)
        _draw_steps(axes, marks, size=min(4, 0.45 * each) if in_rows else 6.5)
        _explain_marks(axes, found, marks, in_rows=in_rows)
        _name_lines(axes, names, captions, changes, legend=legend, lines=1 + (x == "both"), strip=strip)
    return axes


def _name_lines(
    ax: Axes,
    names: _Names,
    captions: Sequence[texts.Caption],
    changes: Sequence[time.TimelineMark],
    *,
    legend: bool,
    lines: int,
    strip: float,
) -> None:
    """Name lines at their ends or in the legend, and causes above the axes or in the legend."""
    beside = [texts.in_lines(name.replace("\n", ", ")) for _, name in names]
    longest = max((len(line) for name in beside for line in name.split("\n")), default=0)
    at_ends = legend and len(names) > 1 and style.is_wide(ax) and longest <= style.end_limit(ax)
    captioned = texts.caption_versions(ax, captions, texts.least_width(ax, longest if at_ends else 0))
    captioned -= {one.kind.label for one in changes if one.x not in {x for x, *_ in captions}}
    if not {label for *_, label in captions} <= captioned:  # some causes in the legend look like all causes
        captioned = set()
    if at_ends:
        texts.name_ends(ax, [line for line, _ in names], beside, offset=24)
    elif legend and len({to_hex(line.get_color()) for line, _ in names[: style.MAX_NAMED]}) < len(names):
        texts.name_ends(ax, [line for line, _ in names], [str(n + 1) for n in range(len(names))], offset=14)
        for n, (line, name) in enumerate(names, 1):
            line.set_label(f"{n}  {name}")
    named_lines = [line for line, _ in names]
    needed = [] if at_ends or len(names) == 1 else named_lines
    rest = [*zip(*ax.get_legend_handles_labels(), strict=True)]
    entries = needed + [one for one, label in rest if one not in named_lines and label not in captioned]
    texts.legend_below(ax, entries, wanted=legend, lines=lines, needed=len(needed), strip=strip)
    layout = style.figure_of(ax).get_layout_engine()
    if strip > HIGH_STRIP and layout is not None:  # it shrinks with the axes: one pass leaves too little room
        layout.execute(style.figure_of(ax))


def _draw_at_version(found: Sequence[CallSeries], at: float, title: str | None, colors: Colors, **shape: Any) -> Axes:
    """Draw the gas of calls at one version, each in a row; `shape` is that of `drawing`."""
    every = [series for series in found if series.answered.any()]
    looks = _looks(found, colors)
    most = style.row_limit(shape["ax"], shape["figsize"], MAX_ROWS, [_name(series) for series in every])
    largest = sorted(every, key=lambda series: -float(series.gas[series.answered].max()))
    rows = every if len(every) <= most else largest[:most]
    if title is None:
        cut = f": the {len(rows)} largest of {len(every):,} calls" if len(rows) < len(every) else ""
        title = f"Gas at ledger version {at:,.0f}{cut}"
    with style.drawing(title=title, height=1.2 + 0.3 * max(len(rows), 2), **shape) as axes:
        style.name_rows(axes, [_name(series) for series in rows], below=0.6, above=0.6)
        ends, said = [], []
        for place, series in enumerate(rows):
            end, good = max(zip(series.gas[series.answered], series.success[series.answered], strict=True))
            colour = looks[series.label, series.node]["color"] if colors else style.tone(style.BLUE)
            look: dict[str, Any] = {"color": colour, "clip_on": False, "gid": "gas-point"}
            [mark] = axes.plot(end, place, "o" if good else "x", markersize=6, **look)
            ends.append(end)
            said.append(f"{number(end)}{'' if good else ' · failed'}")
            style.tip(mark, f"{_name(series)}: {plural(round(end), 'gas unit')}")
        style.gas_rows(axes, np.array(ends))
        style.write_ends(axes, said, gid="gas")
    return axes


def _labels(found: Sequence[CallSeries]) -> list[str]:
    return list(dict.fromkeys(series.label for series in found))


def moved(found: Sequence[CallSeries]) -> dict[str, float]:
    """Return the factor between the least and the most gas of each call; 0 if it has none."""
    factors: dict[str, float] = {}
    for series in found:
        known = np.maximum(series.gas[series.answered], 1)
        factor = float(known.max() / known.min()) if len(known) else 0.0
        factors[series.label] = max(factor, factors.get(series.label, 0.0))
    return factors


def most_moved(found: Sequence[CallSeries], most: int) -> list[CallSeries]:
    """Return the calls whose gas differs by the largest factors, at most so many."""
    factors = moved(found)
    kept = sorted(factors, key=lambda label: -factors[label])[:most]
    return [series for series in found if series.label in kept]


def _looks(found: Sequence[CallSeries], colors: Colors) -> _Looks:
    """Return colour and line style of each call."""
    colours, dashes = style.call_colours(found, colors), style.call_dashes(found)
    return {key: {"color": colour, "linestyle": dashes[key]} for key, colour in colours.items()}


def by_scale(found: Sequence[CallSeries]) -> list[list[CallSeries]]:
    """Return at most `MAX_SCALES` groups of calls whose gas is within a factor of `MAX_RATIO`, the most gas first."""
    spans = _spans(found)
    groups: list[list[str]] = []
    top = 0.0
    for label in sorted(spans, key=lambda one: (-spans[one][1], -spans[one][0])):
        low, high = spans[label]
        if not groups or (high > 0 and top > MAX_RATIO * min(low, high) and len(groups) < MAX_SCALES):
            groups.append([])
            top = high
        groups[-1].append(label)
    return [[series for series in found if series.label in group] for group in groups] or [list(found)]


def _spans(found: Sequence[CallSeries]) -> dict[str, tuple[float, float]]:
    """Return the least gas of each call, without 0, and the most; infinity and 0 if it has none."""
    spans: dict[str, tuple[float, float]] = {}
    for series in found:
        known = series.gas[series.answered & (series.gas > 0)]
        low, high = spans.get(series.label, (np.inf, 0.0))
        spans[series.label] = min([low, *known]), max([high, *known])
    return spans


def _draw_in_rows(
    ax: Axes, found: Sequence[CallSeries], lines: Sequence[_Level], looks: _Looks, *, above: float, what: str
) -> Callable[[str, float], float]:
    """Draw each call in a row, on a logarithmic scale from its least to its most gas; return where a call's gas is.

    `above` is the space above the rows, in rows.
    """
    spans = _spans(found)
    rows = {label: row for row, label in enumerate(spans)}

    def place(label: str, gas: Any) -> Any:
        low, high = spans[label]
        share = np.log(np.clip(gas, low, high) / low) / np.log(high / low) if high > low else 0.5 + 0 * gas
        return rows[label] + ROW_HEIGHT * (0.5 - share)

    names = {series.label: _name(series) for series in found}
    style.name_rows(ax, [*names.values()], below=0.6, above=0.6 + above, beside=True)
    style.write(ax, what, (1, -1), gid="range-name", offset=(5, 0), size="x-small", **style.BESIDE)
    for label, span in spans.items():
        text = " to ".join(number(gas) for gas in dict.fromkeys(span) if 0 < gas < np.inf)
        style.write(ax, text, (1, rows[label]), gid="range", offset=(5, 0), size="x-small", **style.BESIDE)
    placed = [replace(series, gas=place(series.label, series.gas)) for series in found]
    levels = [line._replace(gas=place(line.series.label, line.gas)) for line in lines]
    for line, _ in _draw_readings(ax, placed, levels, looks):
        line.set_label("_nolegend_")
    for series in found:  # below the lowest gas of the row
        _draw_failures(ax, _failures(series, found, inside=True), rows[series.label] + FAILED_ROW, style.muted(ax))
    return place


def _draw_strip(ax: Axes, found: Sequence[CallSeries], changes: Sequence[time.TimelineMark], looks: _Looks) -> float:
    """Draw failures and marks of a timeline below the axes, which end at their smallest gas; return the strip's height.

    The height is a share of the axes' height.
    """
    failing = [(series, failures) for series in found if (failures := _failures(series, found, inside=False))]
    share = time.TIMELINE_ROW * time.timeline_rows(changes)
    rug = min(len(failing), MAX_RUG_ROWS) * RUG_STRIP
    strip = rug + RUG_GAP * bool(failing) + share
    if strip:
        ax.spines["bottom"].set_position(("axes", -strip - 0.01))
    time.draw_timeline(ax, changes, foot=-strip, share=share)
    foot = share - strip
    place: dict[str, Any] = {"transform": blended_transform_factory(ax.transData, ax.transAxes), "clip_on": False}
    for row, (series, failures) in enumerate(failing):
        colour = looks[series.label, series.node]["color"]
        _draw_failures(ax, failures, foot + RUG_STRIP * (min(row, MAX_RUG_ROWS - 1) + 0.6), colour, **place)
    if failing and style.is_wide(ax):  # in others, the name of the axis has no room next to it
        look = {"xycoords": "axes fraction", "annotation_clip": False, "ha": "right", "color": style.muted(ax)}
        style.write(ax, "no result", (0, foot + rug / 2), gid="failures-name", offset=(-6, 0), **look)
    return strip


def _draw_readings(ax: Axes, found: Sequence[CallSeries], lines: Sequence[_Level], looks: _Looks) -> _Names:
    """Draw the observations and levels of calls; return the lines with their names."""
    names = []
    levelled = {(line.series.label, line.series.node) for line in lines}
    taken: set[tuple[str, str]] = set()
    for series in found:
        key = series.label, series.node
        line = _draw_series(ax, series, looks, faint=key in levelled)
        if line is not None and key not in levelled | taken:
            taken.add(key)
            names.append((line, _name(series)))
    _draw_hidden(ax, [line for line, _ in names if line.get_gid() == "gas-line"])
    several = len({label for label, _ in levelled | taken}) > 1
    first, last = _span([series for series in found if (series.label, series.node) in levelled])
    latest = last - MAX_SHARE_AFTER * (last - first)
    ends: dict[tuple[str, str], float] = {}  # every call has a name: if all its lines end early, the last one
    for level in lines:
        key = level.series.label, level.series.node
        ends[key] = max(ends.get(key, 0.0), level.versions[-1])
    named = [
        place
        for place, level in enumerate(lines)
        if level.versions[-1] >= min(latest, ends[level.series.label, level.series.node])
    ]
    once = several and (len(names) + len(named) > style.MAX_NAMED or not style.is_wide(ax))
    if once:  # each call, at its most frequent stratum
        named = [*{(lines[place].series.label, lines[place].series.node): place for place in reversed(named)}.values()]
    for place, level in enumerate(lines):
        line = _draw_line(ax, level.series, (level.versions, level.gas), looks, gid="level-line", zorder=3)
        name = _level_name(level, named=several)
        said = _level_name(level, named=True).replace("\n", ", ")
        style.tip_segments(ax, level.versions, level.gas, f"mean of {said}")
        if place in named:
            names.append((line, _name(level.series) if once else name))
    for line, name in names:
        line.set_label(style.legend_label(name))
    return names


def _title(found: Sequence[CallSeries], x: str) -> str:
    of = f" of {texts.figure_text(found[0].name, 48)}" if len({series.label for series in found}) == 1 else ""
    return f"Gas{of} by ledger {'time' if x == 'time' else 'version'}"


def _span(found: Sequence[CallSeries]) -> tuple[float, float]:
    """Return the first and last version of all series."""
    versions = np.concatenate([series.versions for series in found] or [np.zeros(1)])
    return (float(versions.min()), float(versions.max())) if len(versions) else (0.0, 0.0)


class _Level(NamedTuple):
    """The level of one stratum of a call's committed transactions, as the corners of a line that NaN interrupts."""

    series: CallSeries
    stratum: str
    versions: Floats
    gas: Floats


def _level_lines(levels: pd.DataFrame, found: Sequence[CallSeries], marks: pd.DataFrame) -> list[_Level]:
    """Return one line per stratum of committed transactions, for each call's most frequent strata."""
    lines = []
    exact = marks[marks["exact"]].groupby(["label", "stratum"])["end"]
    known: dict[Any, list[float]] = {key: sorted(set(ends)) for key, ends in exact}
    for series in found:
        mine = levels[(levels["label"] == series.label) & (series.source == Source.COMMITTED)]
        if series.node and "node" in levels.columns:
            mine = mine[mine["node"] == series.node]
        counts = mine.groupby("stratum")["count"].sum().sort_values(ascending=False, kind="stable")
        for stratum in counts.index[:MAX_LEVELS]:
            rows = mine[mine["stratum"] == stratum].sort_values("version_first", kind="stable")
            late = rows["version_last"] >= rows["version_first"].iloc[-1]  # the line's name is beside the last of these
            rows = pd.concat([rows[~late], rows[late].sort_values("count", kind="stable")])
            ends = rows[["version_first", "version_last"]].to_numpy(dtype=np.float64)
            gas = rows[["gas_first", "gas_last"]].to_numpy(dtype=np.float64)
            lines.append(_Level(series, str(stratum), *_joined(ends, gas, known.get((series.label, stratum), []))))
    return lines


def _joined(ends: Floats, gas: Floats, changes: Sequence[float]) -> tuple[Floats, Floats]:
    """Return levels as the corners of a line: flat to the change between two of them, or interrupted if it is unknown.

    Parameters
    ----------
    ends, gas : ndarray of float64, shape (n, 2)
        First and last version of each level, and the gas there.
    changes : sequence of float
        Versions at which the stratum steps.
    """
    corners: list[tuple[float, float]] = []
    # Which way after a change is which way before it is not known.
    alone = ((ends[:, :1] <= ends[:, 1]) & (ends[:, 1:] >= ends[:, :1].T)).sum(axis=1) == 1
    for place, ((first, last), (low, high)) in enumerate(zip(ends.tolist(), gas.tolist(), strict=True)):
        if corners and not alone[place - 1 : place + 1].all():
            corners.append((first, np.nan))
        elif corners and corners[-1][1] != low:
            at, before = corners[-1]
            known = [first] if first - at == 1 else [change for change in changes if at < change <= first]
            corners += [(known[0], before), (known[0], low)] if len(known) == 1 else [(first, np.nan)]
        corners += [(first, low), (last, high)]
    versions, heights = np.array(corners, dtype=np.float64).reshape(-1, 2).T
    return versions, heights


def _draw_line(ax: Axes, series: CallSeries, points: tuple[Any, Any], looks: _Looks, **look: Any) -> Line2D:
    """Draw a line in the colour and line style of a call."""
    usual: dict[str, Any] = {"linewidth": 1.6, "solid_joinstyle": "miter"}
    [line] = ax.plot(*points, **usual | look | looks[series.label, series.node])
    return line


def _draw_hidden(ax: Axes, lines: Sequence[Line2D]) -> None:
    """Draw each line wider where later ones lie on it, so that it is seen on both sides of them."""
    look: dict[str, Any] = {"zorder": 1.95, "solid_capstyle": "butt", "label": "_nolegend_", "gid": "hidden-line"}
    pairs = [np.asarray(line.get_xydata(), dtype=np.float64).T for line in lines]
    edges = np.unique(np.concatenate([x[~np.isnan(x)] for x, _ in pairs] or [np.zeros(1)]))
    middles = (edges[1:] + edges[:-1]) / 2
    heights = []
    for x, y in pairs:
        at = np.clip(np.searchsorted(x, middles, side="right"), 1, len(x) - 1)
        flat = (x[at - 1] <= middles) & (middles <= x[at]) & (y[at - 1] == y[at])
        heights.append(np.where(flat, y[at], np.nan))
    for place, (line, height) in enumerate(zip(lines, heights, strict=True)):
        colour, later = line.get_color(), zip(lines[place + 1 :], heights[place + 1 :], strict=True)
        above = sum((at == height for one, at in later if one.get_color() != colour), start=np.zeros(len(middles)))
        for count in range(1, int(above.max(initial=0)) + 1):
            y = np.where(above == count, height, np.nan)
            ends = np.where(y == np.append(y[1:], np.nan), y, np.nan)  # no line from one level to another
            x = np.column_stack((edges[:-1], edges[1:], edges[1:]))
            width = (1 + 1.2 * min(count, 3)) * line.get_linewidth()
            ax.plot(x.ravel(), np.column_stack((y, y, ends)).ravel(), color=colour, linewidth=width, **look)


def _draw_series(ax: Axes, series: CallSeries, looks: _Looks, *, faint: bool) -> Line2D | None:
    """Draw the observations of a call; return its line for the legend, or None if it has no observation."""
    colour = looks[series.label, series.node]["color"]
    look: dict[str, Any]
    if series.source in READ_AT_VERSIONS:
        points = series.line()
        line = _draw_line(ax, series, points, looks, gid="gas-line", zorder=2)
        style.tip_segments(ax, *points, _name(series))
        # A line through one point is invisible, and a cross for each of many failed executions would hide it.
        failed = series.answered & ~series.success
        like_next = (np.diff(series.gas) == 0) & failed[1:] & failed[:-1]
        ends = failed & ~(np.append(False, like_next) & np.append(like_next, False))
        for marker, chosen in (("o", series.alone & series.success), ("x", ends)):
            if chosen.any():
                size = (4 if chosen.sum() <= MAX_LARGE_DOTS else 2.5) + (marker == "x")
                look = {"linestyle": "none", "marker": marker, "markersize": size, "color": colour, "clip_on": False}
                look |= {"markeredgewidth": 1.2 * (marker == "x"), "gid": "gas-point"}
                [marks] = ax.plot(series.versions[chosen], series.gas[chosen], **look)
                style.tip(marks, _tips(series, chosen))
        return line if series.answered.any() else None
    committed, drawn = series.source == Source.COMMITTED, None
    for good in (False, True):
        chosen = (series.success == good) & series.answered
        if chosen.any():
            size = 7 if good and not committed else 4 if faint else 5 if chosen.sum() <= MAX_LARGE_DOTS else 3
            look = {"marker": "x" if not good else "." if committed else "d", "markersize": size}
            look |= {"alpha": 0.4 if faint else 0.75 if committed else 1}
            look |= {"zorder": looks[series.label, series.node].get("zorder", 1.9 if committed else 4)}
            look |= {"gid": f"gas-{'committed' if committed else 'simulated'}", "clip_on": False}
            [drawn] = ax.plot(series.versions[chosen], series.gas[chosen], color=colour, linestyle="none", **look)
            style.tip(drawn, _tips(series, chosen))
    return drawn


def _tips(series: CallSeries, chosen: NDArray[np.bool_]) -> list[str]:
    """Return what a page shows on hover over each of the chosen observations."""
    pairs = zip(series.versions[chosen].tolist(), series.gas[chosen].tolist(), strict=True)
    return [f"{_name(series)}: {plural(round(gas), 'gas unit')} at version {version:,.0f}" for version, gas in pairs]


def _set_versions(ax: Axes, times: tuple[Floats, Floats] | None, *, x: str) -> None:
    """Set the scale, the ticks and the margins of the x axis."""
    ax.margins(x=0.015)
    style.lowest(ax, "x", 0.0)
    if times is None:
        style.whole_ticks(ax.xaxis)
    elif x == "time":
        time.date_axis(ax, *times)
    else:
        time.add_dates(ax, *times)


def _set_gas(ax: Axes, found: Sequence[CallSeries], *, above: float) -> None:
    """Set the scale, the ticks and the margins of the y axis; `above` is the share left free above the data.

    The limits are left to matplotlib's autoscaling, so that they still fit if the user changes the scale.
    """
    values = np.concatenate([series.gas[series.answered] for series in found])
    log = style.gas_scale(ax, "y", values)
    style.lowest(ax, "y", float(ax.get_yscale() == "log"))
    if not log:  # without 0, a small change of a large gas fills half of the height
        low, high = float(values.min()), float(values.max())
        base = 0.0 if low == high or high >= 1.5 * low else max(low - 2 * (high - low), 0.0)
        ax.update_datalim([(end, base) for end in _span(found)])
    ax.update_datalim([(end, values[0]) for end in _span(found)])
    ax.margins(y=above / (1 - 2 * above))


def _failures(series: CallSeries, found: Sequence[CallSeries], *, inside: bool) -> list[tuple[float, float]]:
    """Return the stretches in which a call has no result, except those too short to be seen.

    Inside the axes, a reading at the first version is under the y axis.
    """
    first, last = _span(found)
    known = series.versions[series.answered]

    def reach(start: float, end: float) -> float:
        return float(min(known[known > end], default=end) - max(known[known < start], default=start))

    least, start = MIN_FAILED * (last - first), first if inside else -np.inf
    return [one for one in series.failures() if one[1] > start and (not len(known) or reach(*one) > least)]


def _draw_failures(ax: Axes, failures: Sequence[tuple[float, float]], y: float, colour: Any, **place: Any) -> None:
    """Draw bars where reads of a call have no result."""
    bar = BAR | {"color": colour} | place
    for first, last in failures:
        marker = "s" if first == last else ""  # a line from a point to itself is not drawn
        ax.plot([first, last], [y, y], marker=marker, markersize=3, markeredgewidth=0, gid="failures", **bar)


def _draw_steps(ax: Axes, marks: pd.DataFrame, *, size: float) -> None:
    """Draw a mark for every step, and a band for each that was only narrowed to an interval."""
    for cause, group in marks[~marks["exact"]].groupby("cause"):
        x, y = group[["start", "start", "end", "end"]], group[["before", "after", "after", "before"]]
        bands = list(np.dstack([x.to_numpy(), y.to_numpy()]))
        look: dict[str, Any] = {"facecolors": style.cause_colour(Cause.of(cause)), "edgecolors": "none"}
        ax.add_collection(PolyCollection(bands, alpha=0.18, gid="unresolved", zorder=1.5, **look), autolim=False)
    for key, group in marks.groupby([marks["exact"] & marks["sure"], "cause"]):
        filled, kind = bool(key[0]), Cause.of(key[1])
        place: dict[str, Any] = {"gid": f"change-{kind}", "zorder": 5 + filled / 2, "clip_on": False}
        style.draw_marks(ax, group["x"], group["y"], kind, filled=filled, size=size, edge=size / 8, **place)


def _marks(steps: pd.DataFrame) -> pd.DataFrame:
    """Return the marks of steps: ``x, y``, interval ``start..end``, gas ``before, after``, cause, stratum, ``sure``."""
    doubts = plain_columns(steps, ["uncertain"])["uncertain"] if "uncertain" in steps else [()] * len(steps)
    steps = steps.assign(_uncertain=[bool(some) for some in doubts])
    if "part" in steps.columns:  # the parts of one stratum share a mark, at the total gas used, sure if one of them is
        steps = steps.sort_values("_uncertain", kind="stable")
        keys = ["label", "node", "stratum", "way_gas", "version_before", "version_after", "cause"]
        again = steps.duplicated([name for name in keys if name in steps])
        steps = steps[~(steps["part"].notna() & again)]
    before, after = _side(steps, "before"), _side(steps, "after")
    before, after = before.fillna(after), after.fillna(before)
    start, end = (steps[f"version_{side}"].astype(np.float64) for side in ("before", "after"))
    exact = steps["exact"].fillna(value=False).astype(bool)
    marks = pd.DataFrame({"label": steps["label"], "start": start, "end": end, "before": before, "after": after})
    marks = marks.assign(
        exact=exact, sure=~steps["_uncertain"], cause=[str(Cause.of(cause)) for cause in steps["cause"]]
    )
    marks["stratum"] = steps.get("stratum", "")
    marks["x"], marks["y"] = end.where(exact, (start + end) / 2), after.where(exact, (before + after) / 2)
    return marks[marks["y"].notna()]


def _with_steps(series: CallSeries, marks: pd.DataFrame) -> CallSeries:
    """Return a series with the gas on both sides of its known steps, which a plan of versions need not contain."""
    known = (marks["label"] == series.label) & marks["exact"] & (marks["end"] - marks["start"] == 1)
    mine = marks[known & (marks["before"] != marks["after"])]
    if mine.empty or series.node or series.source not in READ_AT_VERSIONS:
        return series
    there, new = np.append(mine["start"], mine["end"]), np.append(mine["before"], mine["after"])
    versions, places = np.unique(np.append(series.versions, there), return_index=True)  # of equal ones, the reading
    gas = np.append(series.gas, new)[places]
    return replace(series, versions=versions, gas=gas, success=np.append(series.success, new > 0)[places])


def _side(steps: pd.DataFrame, side: str) -> pd.Series[float]:
    """Return the gas before or after each step; for committed transactions, the mean of those compared."""
    gas = pd.Series(steps[f"gas_{side}"].to_numpy(np.float64, na_value=np.nan), index=steps.index)
    total = steps.get(f"total_{side}")
    return gas if total is None else pd.Series(total.to_numpy(np.float64, na_value=np.nan), steps.index).fillna(gas)


def _explain_marks(ax: Axes, found: Sequence[CallSeries], marks: pd.DataFrame, *, in_rows: bool) -> None:
    """Add legend entries that explain the marks."""
    grey = style.muted(ax)
    plain: dict[str, Any] = {"linestyle": "none", "color": grey, "markersize": 6}
    hollow = plain | {"marker": "o", "markerfacecolor": style.paper(ax), "markeredgecolor": grey}
    sources = {series.source for series in found}
    unnamed = in_rows or not style.is_wide(ax)
    failed = any((series.answered & ~series.success).any() for series in found)
    entries: list[tuple[str, bool, dict[str, Any]]] = [
        ("between readings" + ", or uncertain" * (not marks["sure"].all()), not marks["exact"].all(), hollow),
        ("uncertain", bool(marks["exact"].all() and not marks["sure"].all()), hollow),
        ("simulated", Source.SIMULATE in sources and len(sources) > 1, plain | {"marker": "d"}),
        ("committed", Source.COMMITTED in sources and len(sources) > 1, plain | {"marker": "."}),
        ("execution failed", failed, plain | {"marker": "x"}),
        ("no result", unnamed and any(_failures(one, found, inside=in_rows) for one in found), BAR | {"color": grey}),
    ]
    for text, there, look in entries:
        if there:
            ax.plot([], [], label=style.once(ax, text), **look)


def _level_name(line: _Level, *, named: bool) -> str:
    """Return the stratum on two lines: if several calls are drawn, below the name of its call."""
    kind = texts.figure_text(stratum_text(line.stratum), 60)
    name = _name(line.series) if named or not kind else ""
    # Of two lines, a legend cuts the end, and not the abort code in the middle.
    return "\n".join(filter(None, [name, kind] if name else kind.split(", ", 1)))


def _name(series: CallSeries) -> str:
    label = texts.figure_text(series.name, 44)
    return f"{label} · {texts.figure_text(series.node, 20)}" if series.node else label


def _captions(marks: pd.DataFrame) -> list[texts.Caption]:
    """Return one caption per interval, ordered by the number of calls, then by the size of the change."""
    size = np.abs(np.log(np.maximum(marks["after"], 1) / np.maximum(marks["before"], 1)))
    captions: list[tuple[float, texts.Caption]] = []
    at: Any  # in the stubs a group key is any hashable
    for at, rows in marks.assign(size=size).groupby("x"):
        cause = next(cause for cause in style.CAUSE_MARKS if cause in set(rows["cause"]))
        text = f"{change_place(int(rows['start'].min()), int(rows['end'].max()))} {cause.label}"
        rank = -rows["label"].nunique() - float(rows["size"].max())
        captions.append((rank, (at, text, style.cause_colour(cause), cause.label)))
    return [caption for _, caption in sorted(captions)]
