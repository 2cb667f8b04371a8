"""The figures of a report as inline SVG whose colours follow the page, light or dark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from toolkit.gas._observations import Source
from toolkit.plots import _style as style
from toolkit.plots import gas_breakdown, gas_by_version
from toolkit.plots._gas_breakdown import MAX_BARS, breakdown
from toolkit.plots._gas_by_version import MAX_LINES
from toolkit.plots._time import known_times

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes

    from toolkit.reports._data import ReportData


MAX_CALLS = 40  # with a separate figure: browsers cannot open a page with hundreds of figures

DWARFS = 5  # times the other parts: then their bars are shorter than their numbers
_SMALL = (5.4, 2.8)


def overview_calls(data: ReportData) -> tuple[str, ...]:
    """Return the calls that one figure can show together: all, or of many those that changed most."""
    if len(data.labels) <= MAX_LINES:
        return data.labels
    by_weight = list(dict.fromkeys(change.label for group in data.largest for change in group.changes)) or data.labels
    return tuple(label for label in data.labels if label in by_weight[:MAX_LINES])


def overview(data: ReportData) -> Markup:
    """Draw the gas of the calls of `overview_calls` by version."""
    labels = overview_calls(data)
    height = max(3.7, 1.6 + 0.2 * sum(call.label in labels for call in data.calls))
    return _svg("overview", (9.4, height), "Gas of the calls by ledger version", _drawing(data, labels))


def _drawing(data: ReportData, labels: Sequence[str]) -> Callable[[Axes], object]:
    """Return what draws calls by version, with steps, levels of committed transactions and the timeline."""
    levels = data.levels if data.committed else None
    committed = any(call.source == Source.COMMITTED for call in data.calls if call.label in labels)
    timeline = data.timeline if committed else None
    # The steps of these calls may have no two times, although the run has.
    observations, steps = (one[one["label"].isin(labels)] for one in (data.observations, data.steps))
    times, _ = known_times(observations, steps, timeline)

    def draw(ax: Axes) -> None:
        shown: dict[str, Any] = {
            "levels": levels,
            "timeline": timeline,
            "x": "both" if len(data.dates.versions) and len(times) else "version",
        }
        gas_by_version(data.observations, steps=data.steps, calls=labels, ax=ax, title="", **shown)

    return draw


def one_call(data: ReportData, label: str, place: int) -> Markup:
    """Draw the gas of one call by version; `place` makes its ids unique in the page."""
    return _svg(f"call{place}", _SMALL, f"Gas of {label} by ledger version", _drawing(data, [label]))


def spent_on(data: ReportData) -> list[Markup]:
    """Draw what the gas was spent on: storage alone if it dwarfs the other parts, which have their own scale then."""
    split = breakdown(data.paid)
    if split["storage"].max() > DWARFS * (split["execution"] + split["io"]).max():
        return [_spent_on(data, len(split), ["execution", "io"]), _spent_on(data, len(split), ["storage"])]
    return [_spent_on(data, len(split), None)]


def _spent_on(data: ReportData, bars: int, parts: list[str] | None) -> Markup:
    what = " and ".join(parts or style.PART_COLOURS)
    size = (9.4, 1.3 + 0.4 * min(bars, MAX_BARS))
    alt = f"Gas of simulations and committed transactions: {what}"
    name = f"split{parts[0] if parts else ''}"
    return _svg(name, size, alt, lambda ax: gas_breakdown(data.paid, parts=parts, ax=ax, title=""))


def _svg(name: str, size: tuple[float, float], alt: str, draw: Callable[[Axes], object]) -> Markup:
    """Draw a figure as one ``<svg>`` element."""
    return Markup(style.inline_svg(name, size, alt, draw))  # noqa: S704 - matplotlib escapes text  # nosec B704
