"""The figures of a report as inline SVG whose colours follow the page, light or dark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pandas as pd
from markupsafe import Markup

from toolkit.gas._steps import merge_drift
from toolkit.plots import _style as style
from toolkit.plots import gas_breakdown, gas_by_version, gas_change
from toolkit.plots._gas_breakdown import MAX_BARS, breakdown
from toolkit.plots._gas_by_version import MAX_LINES
from toolkit.plots._gas_change import MAX_ROWS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes

    from toolkit.reports._data import ReportData


MAX_CALLS = 40  # with a separate figure: browsers cannot open a page with hundreds of figures

_SMALL = (5.4, 3.0)


def overview_calls(data: ReportData) -> tuple[str, ...]:
    """Return the calls that one figure can show together: all, or of many those that changed most."""
    labels = tuple(dict.fromkeys(call.label for call in data.calls))
    if len(labels) <= MAX_LINES:
        return labels
    weights: dict[str, float] = {}
    for group in data.events:
        for change in group.changes:
            weights[change.label] = weights.get(change.label, 0.0) + group.weight
    chosen = set(sorted(weights, key=lambda label: -weights[label])[:MAX_LINES]) or set(labels[:MAX_LINES])
    return tuple(label for label in labels if label in chosen)


def overview(data: ReportData) -> Markup:
    """Draw the gas of the calls of `overview_calls` by version."""
    labels = overview_calls(data)
    height = max(4.6, 2.0 + 0.24 * sum(call.label in labels for call in data.calls))
    changes = [data.timelines[label] for label in labels if label in data.timelines]
    timeline = pd.concat(changes).drop_duplicates(["ledger_version", "kind"]) if changes else None
    return _svg("overview", (9.4, height), "Gas of the calls by ledger version", _drawing(data, labels, timeline))


def _drawing(data: ReportData, labels: Sequence[str], timeline: pd.DataFrame | None) -> Callable[[Axes], object]:
    """Return what draws calls by version, with steps, levels of committed transactions and the timeline."""
    levels = data.levels if data.committed else None

    def draw(ax: Axes) -> None:
        gas_by_version(data.observations, steps=data.steps, levels=levels, timeline=timeline, ax=ax, calls=labels)

    return draw


def one_call(data: ReportData, label: str, place: int) -> Markup:
    """Draw the gas of one call by version; `place` makes its ids unique in the page."""
    name, alt = f"call{place}", f"Gas of {label} by ledger version"
    series = [call for call in data.calls if call.label == label]
    draw = _drawing(data, [label], data.timelines.get(label))
    if len(series) > 1:  # their names are right of the axes
        return _svg(name, _SMALL, alt, draw)
    return _svg(name, _SMALL, alt, lambda ax: _with_margins(ax, draw, series[0].max_gas or 0), layout=None)


def _with_margins(ax: Axes, draw: Callable[[Axes], object], max_gas: int) -> None:
    """Draw on axes with margins that fit one series; laying out each of many small figures takes most of the time."""
    figure = style.figure_of(ax)
    width, height = (72 * size for size in _SMALL)
    figure.subplots_adjust(left=(28 + 6 * len(f"{max_gas:,}"[:9])) / width, right=1 - 8 / width)
    draw(ax)
    legend, captions = ax.get_legend(), [text for text in ax.texts if text.get_gid() == "caption"]
    below = 34 + (legend.get_window_extent().height * 72 / figure.dpi if legend else 0)
    above = max((text.get_position()[1] for text in captions), default=0) + 12
    figure.subplots_adjust(bottom=(below + 3) / height, top=1 - above / height)


def before_after(data: ReportData) -> Markup:
    """Draw gas before and after each change."""
    rows = min(len(merge_drift(data.steps)), MAX_ROWS)
    return _svg(
        "change",
        (9.4, 1.7 + 0.27 * max(rows, 2)),
        "Gas before and after each change",
        lambda ax: gas_change(data.steps, ax=ax),
    )


def spent_on(data: ReportData) -> Markup:
    """Draw what the gas of simulations and committed transactions was spent on."""
    bars = min(len(breakdown(data.paid)), MAX_BARS)
    return _svg(
        "split",
        (9.4, 1.4 + 0.42 * max(bars, 1)),
        "Execution, io and storage gas of simulations and committed transactions",
        lambda ax: gas_breakdown(data.paid, ax=ax),
    )


def _svg(
    name: str,
    size: tuple[float, float],
    alt: str,
    draw: Callable[[Axes], object],
    layout: Literal["constrained"] | None = "constrained",
) -> Markup:
    """Draw a figure as one ``<svg>`` element; the page has its own headings and its own note about model gas."""

    def bare(axes: Axes) -> None:
        draw(axes)
        axes.set_title("", loc="left")
        for note in [text for text in axes.texts if text.get_gid() == "note"]:
            note.remove()

    svg = style.inline_svg(name, size, alt, bare, layout)
    return Markup(svg)  # noqa: S704 - matplotlib escapes text, and tests check that  # nosec B704
