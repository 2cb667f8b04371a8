"""The figure of gas by ledger version: where it steps, why, and where a call fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D
from matplotlib.transforms import blended_transform_factory

from toolkit._present.text import change_place, number, plural
from toolkit.errors import InputError
from toolkit.gas._observations import Cause, Source
from toolkit.gas._series import CallSeries, as_observations, call_order, columns_of, require, series_of
from toolkit.gas._steps import ALL_TRANSACTIONS, STEP_COLUMNS, is_drift
from toolkit.plots import _labels as texts
from toolkit.plots import _style as style
from toolkit.plots import _time as time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from numpy.typing import NDArray


RUG_STRIP = 0.045  # share of the height of the axes for each failing call
MAX_RUG_ROWS = 6  # they take a quarter of the height; further calls share the last row
BAR: dict[str, Any] = {"linewidth": 4, "alpha": 0.55, "solid_capstyle": "projecting"}
MIN_BESIDE = 0.4  # share of the width beside the bars of a failing call that its words need
RUG_CHARACTER = 3.9  # width of a character of these words, in points
MARK_COLUMNS = 400
LEVEL_COLUMNS = ("label", "stratum", "version_first", "version_last", "gas_first", "gas_last", "count")
MAX_LEVELS = 6  # kinds of one call; more lines cannot be distinguished
FAINT = 0.4  # opacity of transactions whose levels are drawn as lines
MAX_LINES = 12  # calls in one pair of axes; more calls have small axes of their own
MAX_IN_THREE_COLUMNS = 24  # small axes; more have four columns, so that the figure is not taller than two screens
PANEL_HEIGHT = 1.15  # of a row of small axes, in inches
TITLE_LENGTH = 108  # characters that fit above a row of small axes
MAX_LARGE_DOTS = 150  # more transactions are drawn as smaller dots, which do not merge into a bar


def gas_by_version(
    observations: Any,
    *,
    steps: pd.DataFrame | None = None,
    levels: pd.DataFrame | None = None,
    timeline: pd.DataFrame | None = None,
    x: Literal["version", "time"] = "version",
    ax: Axes | None = None,
    calls: Sequence[str] | None = None,
) -> Axes:
    """Draw the gas of calls by the ledger version at which they were read.

    Views are lines, which step at a change between adjacent versions. Between readings further apart the version of
    the change is not known, and the line is a slope. Simulations are diamonds, committed transactions dots; a cross is
    a failed execution. Readings without a result are bars at the bottom. The axis is logarithmic if gas differs by a
    factor of 20 or more. A name at the end of each line says which call it is. More than 12 calls have small axes of
    their own, `Axes.child_axes`, each with the first and last gas of the call.

    Parameters
    ----------
    observations : DataFrame, TransactionFrames, Simulation, or several of them
        `Run.observations`; a frame of `fetch_views`, or a mapping of names to frames; what `fetch_transactions` or
        `fetch_simulations` returns, or its frame ``transactions``; simulations. Gas is in gas units. Functions are
        shown by their name, simulations with the arguments that differ. Transactions of the chain itself are left out.
    steps : DataFrame, optional
        As `Run.steps`. Each step is marked with the colour and shape of its cause. An interval is a band with a hollow
        mark in the middle. Marks of committed transactions are at the mean gas of the transactions compared.
    levels : DataFrame, optional
        As `Run.levels`. Draws the level of each kind of committed transactions as a line, which steps where the kind
        does; the transactions are small dots then. Of a call with more than 6 kinds the most frequent are drawn.
    timeline : DataFrame, optional
        As `toolkit.timeline` returns it. Its changes are marked at the bottom, with the colours and shapes of causes.
    x : {"version", "time"}, default "version"
        With "time" the versions are drawn at their times, and the axis has dates. Known are the times of committed
        transactions, of the transactions of steps and timeline, and of the ends of the timeline; the versions between
        them are spread evenly.
    ax : Axes, optional
        Axes to draw on; by default a new figure.
    calls : sequence of str, optional
        Labels, or names as the figure shows them; all by default. The colour of a call does not depend on the others
        drawn.

    Returns
    -------
    Axes
        x in ledger versions, also if it is scaled by time; y in gas units.

    Raises
    ------
    SchemaError
        If `steps`, `levels` or `timeline` lacks a column.
    InputError
        If `observations` is something else or lacks a column, `calls` contains a label that it does not have, or `x` is
        "time" and fewer than two times are known.

    Examples
    --------
    >>> import toolkit
    >>> from matplotlib.figure import Figure
    >>> call = toolkit.ViewFunction("0x1::coin::supply", type_arguments=["0x1::aptos_coin::AptosCoin"])
    >>> frame = toolkit.fetch_views(toolkit.connect(), call, "0:-1/20", progress=False)
    >>> toolkit.plots.gas_by_version(frame, ax=Figure().subplots()).get_title(loc="left")
    'Gas of coin::supply by ledger version'
    """
    if x not in {"version", "time"}:
        raise InputError(f'x: expected "version" or "time", got {x!r:.40}')
    observations = as_observations(observations, figure="gas_by_version")
    found = series_of(observations, calls)
    if steps is not None:
        require(steps, STEP_COLUMNS, what="marks of changes")
        steps = steps[steps["label"].isin(list(call_order(observations, calls)))]
    lines = [] if levels is None else _level_lines(levels, found)
    times = time.known_times(observations, steps, timeline) if x == "time" else None
    marks = None if steps is None or steps.empty else _marks(steps)
    changes = [] if timeline is None else time.timeline_marks(timeline, *_span(found))
    chart = _Chart(found, lines, marks, changes, times)
    with style.drawing(ax, height=chart.height, title=_title(found, x), across=None) as axes:
        if chart.panels:
            axes.set_title(axes.get_title(loc="left"), pad=20)
            _draw_panels(axes, chart)
        else:
            _draw_chart(axes, chart, _span(found))
        texts.finish(axes, _handles(chart), style.model_note(observations))
        if not chart.panels and (len(found) > 1 or len(lines) > 1):
            texts.place_end_labels(axes, _end_labels(found, lines))
        if not chart.panels and marks is not None:
            _add_captions(axes, marks)
    return axes


class _Chart(NamedTuple):
    """What is drawn."""

    found: Sequence[CallSeries]
    lines: Sequence[_Level]
    marks: pd.DataFrame | None
    changes: Sequence[time.TimelineMark]
    times: tuple[NDArray[np.float64], NDArray[np.float64]] | None
    panel: bool = False

    @property
    def labels(self) -> list[str]:
        return list(dict.fromkeys(series.label for series in self.found))

    @property
    def panels(self) -> bool:
        """Whether there are too many calls for one pair of axes."""
        return len(self.labels) > MAX_LINES

    @property
    def columns(self) -> int:
        return 3 if len(self.labels) <= MAX_IN_THREE_COLUMNS else 4

    @property
    def height(self) -> float:
        if self.panels:
            return 1.2 + PANEL_HEIGHT * -(-len(self.labels) // self.columns)
        return max(4.4, 1.8 + 0.24 * len(self.found))

    def of(self, label: str) -> _Chart:
        """Return what is drawn of one call."""
        marks = None if self.marks is None else self.marks[self.marks["label"] == label]
        return self._replace(
            found=[series for series in self.found if series.label == label],
            lines=[line for line in self.lines if line.series.label == label],
            marks=None if marks is None or marks.empty else marks,
            panel=True,
        )


def _draw_chart(ax: Axes, chart: _Chart, span: tuple[float, float]) -> None:
    """Draw readings, levels, failures, steps and the timeline on one pair of axes."""
    for series in chart.found:
        _draw_series(ax, series, faint=any(line.series is series for line in chart.lines), dashed=not chart.panel)
    for line in chart.lines:
        _draw_line(ax, line.series, (line.versions, line.gas), dashed=not chart.panel, gid="level-line", zorder=3)
    failing = [series for series in chart.found if series.failures()]
    strip = time.TIMELINE_ROW * time.timeline_rows(chart.changes)
    _set_axes(ax, chart.found, span, rug_rows=min(len(failing), MAX_RUG_ROWS), strip=strip)
    if chart.times is not None:
        time.date_axis(ax, *chart.times)
        ax.set_xlabel(time.time_label(chart.found, chart.times[0]))
    _draw_rug(ax, failing, named=len(chart.found) > 1, above=strip)
    time.draw_timeline(ax, chart.changes, share=strip)
    if chart.marks is not None:
        _draw_steps(ax, chart.marks)


def _draw_panels(host: Axes, chart: _Chart) -> None:
    """Draw each call on small axes of its own inside `host`, with its name, and its first and last gas."""
    columns, count = chart.columns, len(chart.labels)
    rows = -(-count // columns)
    across, down = 0.065, 0.34 / rows
    width, height = (1 - across * (columns - 1)) / columns, (1 - down * (rows - 1)) / rows
    host.set(xticks=[], yticks=[])
    host.spines[:].set_visible(False)
    for place, label in enumerate(chart.labels):
        row, column = divmod(place, columns)
        ax = host.inset_axes((column * (width + across), 1 - height - row * (height + down), width, height))
        style.dress(ax)
        ax.set_gid("panel")
        mine = chart.of(label)
        _draw_chart(ax, mine, _span(chart.found))
        ax.set(xlabel="", ylabel="")
        if place + columns < count:
            ax.tick_params(labelbottom=False)
        ax.tick_params(labelsize=7, length=2)
        name, gas = texts.figure_text(mine.found[0].name, TITLE_LENGTH // columns), _ends(mine.found[0])
        ax.set_title(name, loc="left", fontsize=8, fontweight="normal", color=style.INK, pad=3)
        if len(name) + len(gas) < TITLE_LENGTH // columns:
            ax.set_title(gas, loc="right", fontsize=7.5, fontweight="normal", color=style.MUTED, pad=3)
    host.set_xlabel(
        "ledger version" if chart.times is None else time.time_label(chart.found, chart.times[0]), labelpad=18
    )
    host.set_ylabel(style.GAS_LABEL, labelpad=30)


def _ends(series: CallSeries) -> str:
    """Return the first and last gas of a view; committed transactions differ by what they do."""
    known = series.gas[series.answered]
    if not len(known) or series.source == Source.COMMITTED:
        return ""
    first, last = number(float(known[0])), number(float(known[-1]))
    return first if first == last else f"{first} → {last}"


def _title(found: Sequence[CallSeries], x: str) -> str:
    if len({series.label for series in found}) == 1:
        return f"Gas of {texts.figure_text(found[0].name, 48)} by ledger {x}"
    return f"Gas by ledger {x}"


def _span(found: Sequence[CallSeries]) -> tuple[float, float]:
    """Return the first and last version of all series."""
    versions = np.concatenate([series.versions for series in found] or [np.zeros(1)])
    return (float(versions.min()), float(versions.max())) if len(versions) else (0.0, 0.0)


class _Level(NamedTuple):
    """The level of one kind of a call's committed transactions: the corners of its line; NaN interrupts it."""

    series: CallSeries
    stratum: str
    versions: NDArray[np.float64]
    gas: NDArray[np.float64]


def _level_lines(levels: pd.DataFrame, found: Sequence[CallSeries]) -> list[_Level]:
    """Return one line per kind of committed transactions, the most frequent of each call."""
    require(levels, LEVEL_COLUMNS, what="lines of levels")
    lines = []
    for series in found:
        mine = levels[(levels["label"] == series.label) & (series.source == Source.COMMITTED)]
        if series.node and "node" in levels.columns:
            mine = mine[mine["node"] == series.node]
        counts = mine.groupby("stratum")["count"].sum().sort_values(ascending=False, kind="stable")
        for stratum in counts.index[:MAX_LEVELS]:
            rows = mine[mine["stratum"] == stratum].sort_values("version_first", kind="stable")
            ends = rows[["version_first", "version_last"]].to_numpy(dtype=np.float64)
            gas = rows[["gas_first", "gas_last"]].to_numpy(dtype=np.float64)
            versions, heights = ends.ravel(), gas.ravel()
            corner = np.flatnonzero((np.diff(versions) == 1) & (np.diff(heights) != 0)) + 1
            corners = np.insert(versions, corner, versions[corner]), np.insert(heights, corner, heights[corner - 1])
            lines.append(_Level(series, str(stratum), *corners))
    return lines


def _draw_line(ax: Axes, series: CallSeries, points: tuple[Any, Any], *, dashed: bool, gid: str, zorder: int) -> None:
    """Draw a line in the colour of a call, and with its dashes if several calls share the axes."""
    drawn: dict[str, Any] = {"color": style.call_colour(series.position), "linewidth": 1.6, "solid_joinstyle": "miter"}
    ax.plot(*points, linestyle=style.call_dashes(series.position if dashed else 0), gid=gid, zorder=zorder, **drawn)


def _draw_series(ax: Axes, series: CallSeries, *, faint: bool, dashed: bool) -> None:
    colour = style.call_colour(series.position)
    if series.source == Source.VIEW:
        _draw_line(ax, series, series.line(), dashed=dashed, gid="gas-line", zorder=2)
        _draw_lonely(ax, series, colour)
        return
    committed = series.source == Source.COMMITTED
    for good, marker in ((True, "." if committed else "d"), (False, "x")):
        chosen = (series.success == good) & series.answered
        if chosen.any():
            ax.plot(
                series.versions[chosen],
                series.gas[chosen],
                linestyle="none",
                marker=marker,
                markersize=_dot_size(series, good=good, faint=faint, count=int(chosen.sum())),
                markeredgecolor=colour if committed or not good else style.PAPER,
                markerfacecolor=colour,
                alpha=FAINT if faint else 0.75 if committed else 1,
                gid=f"gas-{'committed' if committed else 'simulated'}",
                clip_on=False,
                zorder=2 if faint else 4,
            )


def _dot_size(series: CallSeries, *, good: bool, faint: bool, count: int) -> float:
    if series.source != Source.COMMITTED and good:
        return 7
    if faint:
        return 4
    return 5 if count <= MAX_LARGE_DOTS else 3


def _draw_lonely(ax: Axes, series: CallSeries, colour: str) -> None:
    """Draw readings without an answered neighbour as points, since a line through one point is not visible."""
    gap = np.concatenate(([True], ~series.answered, [True]))
    lonely = gap[:-2] & gap[2:] & ~gap[1:-1]
    if lonely.any():
        dots: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 4, "color": colour}
        ax.plot(series.versions[lonely], series.gas[lonely], gid="gas-point", **dots)


def _set_axes(ax: Axes, found: Sequence[CallSeries], span: tuple[float, float], *, rug_rows: int, strip: float) -> None:
    values = np.concatenate([series.gas[series.answered] for series in found] or [np.array([])])
    ax.set_xlabel("ledger version")
    ax.set_ylabel(style.GAS_LABEL)
    style.grid(ax, "y")
    style.whole_ticks(ax.xaxis, _ticks(ax, "width"), style.VERSION_NUMBERS)
    if not any(len(series.versions) for series in found):
        style.nothing(ax, "no observations")
        return
    width = span[1] - span[0] or 1.0
    ax.set_xlim(span[0] - 0.015 * width, span[1] + 0.015 * width)
    _set_gas_scale(ax, values, share=rug_rows * RUG_STRIP + strip + 0.02 * (rug_rows > 0 or strip > 0))


def _set_gas_scale(ax: Axes, values: NDArray[np.float64], *, share: float) -> None:
    """Choose a linear or logarithmic axis; leave `share` of the height free at the bottom."""
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    least = float(values[values > 0].min(initial=np.inf)) if high > 0 else 0.0
    if not style.gas_scale(ax, "y", low, high, least=least, ticks=_ticks(ax, "height")):
        constant = low == high
        low = 0.0 if constant or high >= 1.5 * low else max(low - 2 * (high - low), 0.0)
        high = 1.6 * high or 1.0 if constant else high
    # Limits are computed in the coordinates of the scale, in which shares of the height are linear.
    scale = ax.yaxis.get_transform()
    bottom, top = (float(end) for end in scale.transform(np.array([low, high])))
    room = (top - bottom) or 1.0
    top += 0.08 * room
    bottom -= (0.0 if low == 0 else 0.06 * room) + share / (1 - share) * room
    ax.set_ylim(*(float(end) for end in scale.inverted().transform(np.array([bottom, top]))))


def _ticks(ax: Axes, side: Literal["width", "height"]) -> int:
    """Return how many ticks a side of the axes has room for; each costs time in a report of many figures."""
    inches = getattr(ax.bbox, side) / style.figure_of(ax).dpi
    return int(np.clip(inches if side == "width" else 2 * inches, 3, 6))


def _draw_rug(ax: Axes, failing: Sequence[CallSeries], *, named: bool, above: float) -> None:
    """Draw for each failing call a row of bars at the bottom, at the readings without a result."""
    foot = blended_transform_factory(ax.transData, ax.transAxes)
    for row, series in enumerate(failing):
        y = above + RUG_STRIP * (min(row, MAX_RUG_ROWS - 1) + 0.6)
        runs, bar = series.failures(), BAR | {"color": style.call_colour(series.position), "transform": foot}
        for first, last in runs:
            marker = "s" if first == last else ""  # a line from a point to itself is not drawn
            ax.plot([first, last], [y, y], marker=marker, markersize=4, markeredgewidth=0, gid="failures", **bar)
        if row < MAX_RUG_ROWS - 1 or len(failing) == MAX_RUG_ROWS:
            _name_rug(ax, series, runs, y, named=named)


def _name_rug(ax: Axes, series: CallSeries, runs: Sequence[tuple[float, float]], y: float, *, named: bool) -> None:
    """Write beside its bars how a call failed, and which call if there are several; over them if they are long."""
    left, right = ax.get_xlim()
    before, after = ((end / (right - left)) for end in (runs[0][0] - left, right - runs[-1][1]))
    at_right = after > MIN_BESIDE
    beside = at_right or before > MIN_BESIDE
    share = max(after if at_right else before, MIN_BESIDE) if beside else 1.0
    room = int(share * ax.bbox.width * 72 / style.figure_of(ax).dpi / RUG_CHARACTER)
    name = f"{texts.figure_text(series.name, min(24, room // 2))}: " if named else ""
    error = texts.figure_text(series.error or "no gas in the answer", max(min(28, room - len(name)), 4))
    at = (runs[-1][1] if at_right else runs[0][0], y) if beside else (0.5, y)
    options: dict[str, Any] = {"xycoords": ("data" if beside else "axes fraction", "axes fraction")}
    options["ha"] = "center" if not beside else "left" if at_right else "right"
    options["bbox"] = None if beside else {"facecolor": style.PAPER, "edgecolor": "none", "pad": 0.8}
    shift = 0 if not beside else 7 if at_right else -7
    text = f"{name}{error}"
    style.write(ax, text, at, gid="failure-name", offset=(shift, 0), size=7, colour=style.MUTED, **options)


def _draw_steps(ax: Axes, marks: pd.DataFrame) -> None:
    """Draw a mark for every step and a band for every interval."""
    for cause, group in marks[~marks["exact"]].groupby("cause"):
        x, y = group[["start", "start", "end", "end"]], group[["before", "after", "after", "before"]]
        bands = list(np.dstack([x.to_numpy(), y.to_numpy()]))
        look: dict[str, Any] = {"facecolors": style.CAUSE_MARKS[Cause.of(cause)].colour, "edgecolors": "none"}
        ax.add_collection(PolyCollection(bands, alpha=0.18, gid="unresolved", zorder=1.5, **look), autolim=False)
    for key, group in marks.groupby(["cause", "exact", "drift"]):
        kind, exact, drift = Cause.of(key[0]), bool(key[1]), bool(key[2])
        size, edge = (3.2, 0.4) if drift else (6.5, 0.8)
        place: dict[str, Any] = {"gid": f"change-{kind}", "zorder": 5}
        style.draw_marks(ax, group["x"], group["y"], kind, exact=exact, size=size, edge=edge, **place)


def _marks(steps: pd.DataFrame) -> pd.DataFrame:
    """Return the marks: ``x, y``, the interval ``start..end``, gas ``before, after``, and their kind."""
    if "part" in steps.columns:  # the parts of one kind of transactions are one mark, at the gas used in all
        keys = ["label", "node", "stratum", "version_before", "version_after", "cause"]
        again = steps.duplicated([name for name in keys if name in steps])
        steps = steps[~(steps["part"].notna() & again)]
    start = steps["version_before"].to_numpy(dtype=np.float64)
    end = steps["version_after"].to_numpy(dtype=np.float64)
    before, after = _side(steps, "before"), _side(steps, "after")
    before, after = np.where(np.isnan(before), after, before), np.where(np.isnan(after), before, after)
    exact = steps["exact"].fillna(value=False).to_numpy(dtype=np.bool_)
    marks = pd.DataFrame(
        {
            "label": steps["label"].to_numpy(dtype=object),
            "x": np.where(exact, end, (start + end) / 2),
            "y": np.where(exact, after, (before + after) / 2),
            "start": start,
            "end": end,
            "before": before,
            "after": after,
            "exact": exact,
            "cause": [str(Cause.of(cause)) for cause in steps["cause"]],
            "drift": is_drift(steps).to_numpy(dtype=np.bool_),
        }
    )
    marks = marks[marks["y"].notna()]
    if marks.empty:
        return marks
    # A drift of thousands of steps is a band of marks; one mark per column draws the same band.
    column = columns_of(marks["x"].to_numpy(dtype=np.float64), MARK_COLUMNS)
    hidden = marks.assign(column=column).duplicated(["label", "cause", "column"]) & marks["drift"]
    return marks[~hidden]


def _side(steps: pd.DataFrame, side: str) -> NDArray[np.float64]:
    """Return the gas of a side: of views as it is, of committed transactions the mean of those compared."""
    gas, total = steps[f"gas_{side}"], steps.get(f"total_{side}")
    known = gas if total is None else total.where(total.notna(), gas)
    return known.to_numpy(dtype=np.float64, na_value=np.nan)


def _handles(chart: _Chart) -> list[Artist]:
    """Return the entries of the legend: the causes and kinds of marks in the figure."""
    marks, found = chart.marks, chart.found
    causes = {change.kind for change in chart.changes} | (set() if marks is None else set(marks["cause"]))
    plain: dict[str, Any] = {"linestyle": "none", "color": style.MUTED, "markersize": 6}
    hollow = plain | {"marker": "o", "markerfacecolor": style.PAPER, "markeredgecolor": style.MUTED}
    dotted = {"color": style.MUTED, "linestyle": style.DOTS, "linewidth": 0.9}
    sources = {series.source for series in found}
    failed = any((series.answered & ~series.success).any() for series in found)
    entries: list[tuple[str, bool, dict[str, Any]]] = [
        ("between two readings", marks is not None and not marks["exact"].all(), hollow),
        ("a change that could have moved gas", bool(chart.changes), dotted),
        ("simulated at the head", Source.SIMULATE in sources, plain | {"marker": "d"}),
        ("committed", Source.COMMITTED in sources, plain | {"marker": "."}),
        ("execution failed", failed, plain | {"marker": "x"}),
        ("no result", any(series.failures() for series in found), BAR | {"color": style.MUTED}),
    ]
    shown = [Line2D([], [], label=text, **look) for text, there, look in entries if there]
    return [*texts.cause_handles(causes), *shown]


def _end_labels(found: Sequence[CallSeries], lines: Sequence[_Level]) -> list[texts.EndLabel]:
    """Return a name for each series at the height of its last answered reading, and for each level at its end."""
    last: dict[tuple[str, str], tuple[float, CallSeries]] = {}
    levelled = {(line.series.label, line.series.node) for line in lines}
    for series in found:
        if series.answered.any() and (series.label, series.node) not in levelled:
            last[series.label, series.node] = (float(series.gas[series.answered][-1]), series)
    labels = [texts.EndLabel(y, _name(series), style.call_colour(series.position)) for y, series in last.values()]
    several = len({line.series.label for line in lines} | {label for label, _ in last}) > 1
    return labels + [
        texts.EndLabel(float(line.gas[-1]), _level_name(line, named=several), style.call_colour(line.series.position))
        for line in lines
    ]


def _level_name(line: _Level, *, named: bool) -> str:
    """Return the kind of transaction, and the label of its call if there are several."""
    kind = "" if line.stratum == ALL_TRANSACTIONS else texts.figure_text(line.stratum, 30 if named else 44)
    if not named and kind:
        return kind
    name = _name(line.series)
    return f"{name}, {kind}" if kind else name


def _name(series: CallSeries) -> str:
    label = texts.figure_text(series.name, 44)
    return f"{label} · {texts.figure_text(series.node, 20)}" if series.node else label


def _add_captions(ax: Axes, marks: pd.DataFrame) -> None:
    """Draw version and cause above the largest changes, each with a thin line down the axes."""
    versions = marks.loc[~marks["drift"], "end"]
    written = texts.place_captions(ax, _captions(marks[marks["end"].isin(versions)]))
    for _, caption in written:
        ax.axvline(caption.x, color=caption.colour, linewidth=0.7, alpha=0.5, zorder=1, gid="caption-line")
    if written:
        rows = 1 + max(row for row, _ in written)
        ax.set_title(ax.get_title(loc="left"), loc="left", pad=8 + 10 * rows)


def _captions(marks: pd.DataFrame) -> list[texts.Caption]:
    """Return one caption per interval; its weight is the number of calls, then the size of the largest change."""
    size = np.abs(np.log(np.maximum(marks["after"], 1) / np.maximum(marks["before"], 1)))
    captions = []
    for x, rows in marks.assign(size=size).groupby("x"):
        cause = next(cause for cause in style.CAUSE_MARKS if cause in set(rows["cause"]))
        calls = rows["label"].nunique()
        where = change_place(int(rows["start"].min()), int(rows["end"].max()))
        captions.append(
            texts.Caption(
                x=float(x),  # type: ignore[arg-type]  # in the stubs a group key is any hashable
                text=f"{where} {cause.label}" + (f" · {plural(calls, 'call')}" if calls > 1 else ""),
                colour=style.CAUSE_MARKS[cause].colour,
                weight=calls - 1 + float(rows["size"].max()),
            )
        )
    return captions
