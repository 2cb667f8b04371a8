"""Figures that compare calls: a gas histogram for each call, and a heat map of calls by ledger version."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.colors import Colormap, LinearSegmentedColormap, TwoSlopeNorm
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter

from toolkit._present.text import number, plural, times, visible
from toolkit.errors import InputError
from toolkit.gas._observations import READ_AT_VERSIONS, Source
from toolkit.gas._series import CallSeries, as_observations, is_model, series_of
from toolkit.plots import _style as style
from toolkit.plots import _time as time
from toolkit.plots._gas_by_version import MIN_FAILED, most_moved, moved
from toolkit.plots._labels import figure_text, legend_below

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from numpy.typing import NDArray

    from toolkit.plots._style import Colors, Floats


MAX_ROWS = 24  # fit two screens
BINS = 90  # fine enough to show two ways of a call as two peaks, each bin still some pixels wide
HEIGHT, NARROW_HEIGHT = 0.78, 0.4  # share of the height of a row for its tallest bar; below the row's name
FAILED_SHARE = 0.5, 0.7  # of the colour of a call, in the bars of failed executions, light and dark
LONE = 3  # columns of an observation that differs from both of its neighbours
COLUMNS = 85  # of a row, for each inch: about one for every pixel
SAME, FAILED = (0.05, 0.2), (0.25, 0.4)  # shares of the ink in cells of equal gas and without a result, light and dark
MAX_TICKS = 8  # of the colour bar, at factors of 2
MIN_POWER = 1e-9  # a smaller power of 2 is rounding of the tick's place, not a change
MIN_RANGE = float(np.log2(1.1))  # otherwise a change of 0.1 % would be drawn in the strongest colour


def gas_distribution(
    observations: Any,
    *,
    source: str | None = None,
    timeline: pd.DataFrame | None = None,
    calls: Sequence[str] | None = None,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
    title: str | None = None,
    colors: Colors = None,
    legend: bool = True,
) -> Axes:
    """Draw a histogram of gas for each call, one call per row.

    Each row has its own height scale: the tallest bar fills the row, and its share of the observations is beside the
    row if there is room. A bar may hold several neighbouring values of gas. A tick marks the median. A row says how
    many observations it has. A reading of a view stands for the versions from it to the next reading, the last one for
    its own, so that bars and median do not depend on where the readings are dense, as they are near steps.
    Simulations of one function share a row, whatever their arguments. Failed executions, which also cost gas, are drawn
    paler, as the legend explains. The axis is logarithmic if the most gas is at least 20 times the least.

    Parameters
    ----------
    observations : DataFrame, TransactionFrames, Simulation, or several of them
        As in `gas_by_version`.
    source : str, optional
        The source to draw; sources are never mixed. By default, the only source in the data, or ``committed`` if there
        are several.
    timeline : DataFrame, optional
        A frame from `Run.timeline` or `toolkit.timeline`. Each change of the gas schedule starts a new row, so that no
        median mixes gas under different schedules.
    calls : sequence of str, optional
        Calls to draw, by label or by the name shown in the figure; all by default.
    ax : Axes, optional
        Axes to draw on; by default, a new figure.
    figsize, title, colors, legend
        As in `gas_by_version`.

    Returns
    -------
    Axes
        The x axis is in gas units. There is one row per call, in call order, or several with `timeline`. Calls with
        more than 24 rows together are not all drawn: of views, those whose gas varies most; of others, those with the
        most observations. The title says so.

    Raises
    ------
    InputError
        If `observations` is not one of these, a frame lacks a column, `calls` or `colors` contains an unknown name,
        or no observation has `source`.

    Examples
    --------
    >>> import toolkit
    >>> from matplotlib.figure import Figure
    >>> paid = toolkit.fetch_transactions(toolkit.connect(), "-300:", progress=False)
    >>> toolkit.plots.gas_distribution(paid, ax=Figure().subplots()).get_xlabel()
    'model gas (gas units), logarithmic'
    """
    observations = as_observations(observations, figure="gas_distribution", by_function=True)
    every = series_of(observations, calls)
    sources = {series.source for series in every if series.answered.any()}
    if source is not None and source not in (there := {series.source for series in every}):
        raise InputError(f"source: got {source!r:.60}; the data has {', '.join(sorted(there)) or 'none'}")
    source = source or (sources.pop() if len(sources) == 1 else Source.COMMITTED.value)
    found = [series for series in every if series.source == source and series.answered.any()]
    by_call: dict[str, list[_Stretch]] = {}
    for series in found:
        by_call.setdefault(series.label, []).extend(_stretches(series, timeline))
    read = source in READ_AT_VERSIONS  # whoever reads versions chooses how many
    weights = moved(found) if read else {call: sum(len(row.gas) for row in rows) for call, rows in by_call.items()}
    ranked = sorted(by_call, key=lambda call: -weights[call])
    names = [_row_name(row, counted=False) for those in by_call.values() for row in those]
    most = style.row_limit(ax, figsize, MAX_ROWS, names)
    fitting = np.cumsum([len(by_call[call]) for call in ranked]) <= most
    kept = ranked[: max(int(fitting.sum()), 1)]
    rows = [row for call, those in by_call.items() if call in kept for row in those]
    colours = style.call_colours(found, colors)
    which = ("", " that vary most") if read else (" most frequent", "")
    cut = f": the {len(kept)}{which[0]} of {len(by_call):,} calls{which[1]}" if len(kept) < len(by_call) else ""
    over = " over ledger versions" if read else ""
    title = f"Distribution of gas{over}{cut}" if title is None else title
    xlabel = style.gas_label(model=is_model(observations))
    height = 1.2 + 0.6 * max(len(rows), 1)
    with style.drawing(ax, figsize=figsize, height=height, title=title, xlabel=xlabel) as axes:
        if not rows:
            return style.nothing(axes, f"no observations with the source {figure_text(source)}")
        _draw_rows(axes, rows, colours)
        if not all(row.success.all() for row in rows):
            [colour] = kinds if len(kinds := {*colours.values()}) == 1 else [style.muted(axes)]
            for name, shown in (("succeeded", colour), ("execution failed", _failed(axes, colour))):
                axes.bar([0], [0], color=shown, label=name)
        legend_below(axes, axes.get_legend_handles_labels()[0], wanted=legend)
    return axes


class _Stretch(NamedTuple):
    """The observations of a call between two changes of the gas schedule.

    Each has a weight: the number of versions for which a reading stands, and 1 for a transaction.
    """

    series: CallSeries
    where: str
    gas: Floats
    weights: Floats
    success: NDArray[np.bool_]


def _stretches(series: CallSeries, timeline: pd.DataFrame | None) -> list[_Stretch]:
    versions, gas, success = series.versions[series.answered], series.gas[series.answered], series.success
    starts = [] if timeline is None else time.schedule_versions(timeline, versions.min(), versions.max())
    ends = [0, *np.searchsorted(versions, starts), len(versions)]
    weights = np.ones(len(versions))
    if series.source in READ_AT_VERSIONS:  # up to the next reading, also one without gas, or the next schedule
        bounds = np.unique([*series.versions, *starts, series.versions.max() + 1])
        weights = bounds[np.searchsorted(bounds, versions, side="right")] - versions
    wheres = [f"before {starts[0]:,.0f}"] if starts else [""]
    wheres += [f"{start:,.0f} to {end - 1:,.0f}" for start, end in pairwise(starts)]
    wheres += [f"from {start:,.0f}" for start in starts[-1:]]
    return [
        _Stretch(series, where, gas[first:end], weights[first:end], success[series.answered][first:end])
        for where, (first, end) in zip(wheres, pairwise(ends), strict=True)
        if end > first
    ]


def _draw_rows(ax: Axes, rows: Sequence[_Stretch], colours: Mapping[tuple[str, str], Any]) -> None:
    roomy = style.is_wide(ax) and style.row_space(ax) / len(rows) >= style.MIN_ROW_WITH_TWO_LINES
    named_above = style.name_rows(ax, [_row_name(row, counted=roomy) for row in rows], shift=0.2, below=0.75)
    edges = _edges(ax, np.concatenate([row.gas for row in rows]))
    scale = ax.xaxis.get_transform()
    tallest = NARROW_HEIGHT if named_above else HEIGHT
    shares = []
    for place, row in enumerate(rows):
        placed = scale.transform(row.gas)
        good, failed = (
            np.histogram(placed, edges, weights=row.weights * one)[0] for one in (row.success, ~row.success)
        )
        unit = tallest / (good + failed).max()
        drawn = good + failed > 0  # the other bars have no height, but take most of the time
        # A bar is at the mean of its values: that of a single value is at the value, wherever the bins begin.
        middle = np.histogram(placed, edges, weights=row.weights * placed)[0][drawn] / (good + failed)[drawn]
        left, right = (scale.inverted().transform(middle + side * (edges[1] - edges[0])) for side in (-0.5, 0.5))
        foot = place + (0.45 if tallest == HEIGHT else 0.2)
        for part, count, bottom in (("succeeded", good, foot), ("failed", failed, foot - good[drawn] * unit)):
            if count.any():
                colour = colours[row.series.label, row.series.node]
                look: dict[str, Any] = {"color": _failed(ax, colour) if part == "failed" else colour, "gid": part}
                look |= {"align": "edge", "linewidth": 0, "width": right - left, "bottom": bottom, "clip_on": False}
                ax.bar(left, -count[drawn] * unit, **look)
        ax.hlines(foot, *ax.get_xlim(), colors=style.faint(ax), linewidth=0.8)
        median = _median(row)
        name = "_nolegend_" if roomy else style.once(ax, "median")
        look = {"color": style.ink(), "markersize": 5, "markeredgewidth": 1.6, "clip_on": False, "label": name}
        ax.plot([median], [foot + 0.06 * (not named_above)], "|", gid="median", **look)
        shares.append(f"{100 * (good + failed).max() / row.weights.sum():.0f} %")
    if roomy:
        style.write_ends(ax, shares, gid="share")
        header: dict[str, Any] = {"xycoords": "axes fraction", "va": "top", "size": "x-small"}
        style.write(ax, "tallest bar", (1, 1), gid="share-name", offset=(6, 0), annotation_clip=False, **header)


def _failed(ax: Axes, colour: Any) -> str:
    """Return the colour of failed executions of a call."""
    return style.mixed(colour, style.paper(ax), FAILED_SHARE[style.is_dark()])


def _median(row: _Stretch) -> float:
    """Return the weighted median: the mean of the middle two values if half of the weight is below each."""
    order = np.argsort(row.gas, kind="stable")
    below = 2 * np.cumsum(row.weights[order])
    middle = (int(np.searchsorted(below, below[-1] / 2, side=side)) for side in ("left", "right"))
    return float(np.mean([row.gas[order][place] for place in middle]))


def _row_name(row: _Stretch, *, counted: bool) -> str:
    series = row.series
    node = f" · {figure_text(series.node, 24)}" if series.node else ""
    unit = "transaction" if series.source == Source.COMMITTED else "reading"
    count = plural(len(row.gas), unit)
    if not counted:
        return " · ".join(filter(None, [figure_text(series.name, 44), row.where + node, count]))
    about = ", ".join(filter(None, [count, f"median {number(_median(row))}", row.where])) + node
    return f"{figure_text(series.name, 44)}\n{about}"


def _edges(ax: Axes, values: Floats) -> Floats:
    """Set the gas axis and return its bin edges on its scale: equally spaced, at least a gas unit apart if linear."""
    log = style.gas_scale(ax, "x", values)
    scale = ax.xaxis.get_transform()
    low, high = scale.transform(np.array([values.min(), values.max()]))
    width = max((high - low) * 1.1 / BINS, 0.0 if log else 1.0)
    edges: Floats = low + width * (np.arange(int(np.ceil((high - low) / width)) + 4) - 1.5)
    first, last = scale.inverted().transform(edges[[0, -1]])
    ax.set_xlim(max(first, float(ax.get_xscale() == "log")), last)
    return edges


def gas_heatmap(
    observations: Any,
    *,
    timeline: pd.DataFrame | None = None,
    x: Literal["version", "both"] = "version",
    calls: Sequence[str] | None = None,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
    title: str | None = None,
    colors: str | Colormap | Sequence[Any] | None = None,
    legend: bool = True,
) -> Axes:
    """Draw each call as a row, coloured by its gas relative to the call's first observation.

    Useful for many calls, whose lines would hide each other. In axes too low to name them all, those whose gas varies
    most are drawn, as the title says. The row is coloured between two equal observations.
    Between two different observations, the gas is not known, and the row is blank unless the two are next to each other
    in the figure. An observation that differs from both neighbours is a thin tick.

    Parameters
    ----------
    observations : DataFrame, or several of them
        As in `gas_by_version`; only views, and simulations that were made at several versions, are drawn. A note below
        has the number of the other calls.
    timeline : DataFrame, optional
        A frame from `toolkit.timeline`. Its changes are marked below the rows, in the colour and shape of each cause.
    x : {"version", "both"}, default "version"
        With "both", ticks show versions and dates, as in `gas_by_version`.
    calls : sequence of str, optional
        Calls to draw, by label or by the name shown in the figure; all by default.
    ax : Axes, optional
        Axes to draw on; by default, a new figure.
    figsize, title, colors, legend
        As in `gas_by_version`. `colors` is a colormap, its name, or a sequence of colours from less to more gas. The
        colour bar takes some of the width of `ax`; ``legend=False`` removes it.

    Returns
    -------
    Axes
        The x axis is in ledger versions. There is one row per call, in call order.

    Raises
    ------
    InputError
        If `observations` is not one of these, a frame lacks a column, `calls` contains an unknown name, or dates are
        requested and fewer than two times are known.

    Examples
    --------
    >>> import toolkit
    >>> from matplotlib.figure import Figure
    >>> calls = ["0x1::chain_id::get", "0x1::timestamp::now_seconds"]
    >>> frame = toolkit.fetch_views(toolkit.connect(), calls, "0:-1/20", typed=False, progress=False)
    >>> axes = toolkit.plots.gas_heatmap(frame, ax=Figure().subplots())
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['chain_id::get', 'timestamp::now_seconds']
    """
    if x not in {"version", "both"}:
        raise InputError(f'x: expected "version" or "both", got {x!r:.40}')
    observations = as_observations(observations, figure="gas_heatmap")
    asked = series_of(observations, calls)
    found = [series for series in asked if series.source in READ_AT_VERSIONS]
    if not found and len(observations):
        raise InputError("gas_heatmap: expected views, or simulations made at several versions, got other transactions")
    times = None if x == "version" else time.axis_times(observations, None, timeline)
    every = len({series.label for series in found})
    found = most_moved(found, style.row_limit(ax, figsize, every))
    drawn = len({series.label for series in found})
    cut = f": the {drawn} of {every:,} calls that vary most" if drawn < every else ""
    title = f"Gas of each call relative to its first observation{cut}" if title is None else title
    xlabel = time.axis_label(found, times, x)
    shape: dict[str, Any] = {"figsize": figsize, "height": 1.5 + 0.3 * max(len(found), 2), "across": None}
    with style.drawing(ax, title=title, xlabel=xlabel, **shape) as axes:
        if not any(series.answered.any() for series in found):
            return style.nothing(axes, "no call returned gas" if found else "no observations")
        first = min(float(series.versions[0]) for series in found)
        last = max(float(series.versions[-1]) for series in found)
        read = len(np.unique(np.concatenate([series.versions for series in found])))
        half = 0.5 * (first == last)  # of the only column
        columns = 1 if half else min(int(COLUMNS * style.room(axes)), 20 * read)  # few are seen if they are wide
        edges = np.linspace(first - half, last + half, columns + 1)
        changes = [] if timeline is None else time.timeline_marks(timeline, first, last)
        mesh, low, high = _draw(axes, found, edges, changes, colors)
        if times is None:
            margin = 0.015 * (edges[-1] - edges[0])  # as in `gas_by_version`: the last tick is often just beyond
            axes.set_xlim(max(edges[0] - margin, min(edges[0], 0)), edges[-1] + margin)
            style.whole_ticks(axes.xaxis)
        else:
            time.add_dates(axes, *times)
        others = {(series.source, series.label) for series in asked if series.source not in READ_AT_VERSIONS}
        counts = Counter(
            "committed call" if source == Source.COMMITTED else "simulation" for source, _ in sorted(others)
        )
        left_out = " and ".join(plural(count, noun) for noun, count in counts.items())
        note = f"not drawn: {left_out}" if left_out else ""
        legend_below(axes, axes.get_legend_handles_labels()[0], wanted=legend, lines=1 + (x == "both"), note=note)
        if legend and first < last:  # at one version, all is the first observation
            label = f"{'model gas' if is_model(observations) else 'gas'}\n/ first gas"
            bar = style.figure_of(axes).colorbar(mesh, ax=axes, pad=0.02, fraction=0.05, aspect=14, label=label)
            bar.ax.set_ylim(low, high)  # of the symmetric scale, what is drawn
            step = max(np.ceil((high - low) / MAX_TICKS), 1)
            powers = step * np.arange(np.ceil(low / step), np.floor(high / step) + 1)
            bar.set_ticks(powers if len(powers) > 1 else [low, 0, high])
            bar.ax.yaxis.set_major_formatter(FuncFormatter(_factor))
            bar.ax.minorticks_off()
            bar.outline.set_visible(False)
    return axes


def _cells(series: CallSeries, edges: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Return, for each column, log2 of a call's gas relative to its first value (NaN if unknown), and if it failed.

    Gas is known between equal observations; different ones are as wide as `LONE` columns.
    """
    known = series.gas[series.answered]
    with np.errstate(divide="ignore"):
        gas = np.log2(np.maximum(series.gas, 1) / max(float(known[0]), 1) if len(known) else series.gas)
    at = np.clip(np.searchsorted(series.versions, edges[1:], side="right") - 1, 0, None)
    after = np.clip(at + 1, None, len(gas) - 1)
    since = edges[1:] - series.versions[at]
    same = (gas[at] == gas[after]) | (np.isnan(gas[at]) & np.isnan(gas[after]))
    lone = LONE * (edges[1] - edges[0])
    between = (after > at) & (same | (series.versions[after] - series.versions[at] <= lone))
    known_at = (since >= 0) & (between | (since < lone))
    return np.where(known_at, gas[at], np.nan), known_at & np.isnan(gas[at])


def _draw(
    ax: Axes, found: Sequence[CallSeries], edges: Floats, changes: Sequence[time.TimelineMark], colors: Any
) -> tuple[QuadMesh, float, float]:
    """Draw one row per call; return the cells, and the range of the changes as powers of 2, which includes 0."""
    change, failed = map(np.array, zip(*(_cells(series, edges) for series in found), strict=True))
    finite = change[np.isfinite(change)]
    low, high = float(finite.min(initial=0.0)), float(finite.max(initial=0.0))
    reach = max(-low, high, MIN_RANGE)
    heights = np.arange(len(found) + 1) - 0.5
    if isinstance(colors, str) and colors not in mpl.colormaps:
        raise InputError(f'colors: expected a colormap such as "viridis", got {visible(repr(colors), 60)}')
    named = isinstance(colors, str | Colormap) and colors
    same, no_result = (style.mixed(style.ink(), style.paper(ax), shares[style.is_dark()]) for shares in (SAME, FAILED))
    usual = [style.tone(style.BLUE), same, style.tone(style.VERMILLION)]  # less, equal and more gas
    shown = named or LinearSegmentedColormap.from_list(
        "ledger-toolkit gas", style.checked(usual if colors is None else colors)
    )
    look: dict[str, Any] = {"rasterized": True, "norm": TwoSlopeNorm(0, -reach, reach)}
    mesh = ax.pcolormesh(edges, heights, change, cmap=shown, gid="gas-cells", **look)
    if failed.any():
        grey = LinearSegmentedColormap.from_list("failed", [no_result, no_result])
        cells = np.ma.masked_where(~failed, np.ones_like(change))
        ax.pcolormesh(edges, heights, cells, cmap=grey, rasterized=True, gid="failed-cells")
        if failed.mean(axis=1).max() > MIN_FAILED:  # otherwise, there are only specks
            ax.add_patch(Rectangle((edges[0], 0), 0, 0, color=no_result, label="no result"))
    ax.hlines(heights[1:-1], edges[0], edges[-1], colors=style.paper(ax), linewidth=2.5)
    strip = 0.5 * time.timeline_rows(changes)  # a row of marks is half as high as a row of a call
    nodes = [f"\n({figure_text(series.node, 44)})" if series.node else "" for series in found]
    names = [figure_text(series.name, 44) + node for series, node in zip(found, nodes, strict=True)]
    style.name_rows(ax, names, below=0.5 + strip, beside=True)
    time.draw_timeline(ax, changes, share=strip / (len(found) + strip))
    return (mesh, -reach, reach) if max(-low, high) < MIN_RANGE else (mesh, low, high)


def _factor(power: float, _: object) -> str:
    """Return the tick label of the colour bar for a power of 2: the factor, or "same"."""
    return "same" if abs(power) < MIN_POWER else times(2**power)
