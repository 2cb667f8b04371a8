"""Time in figures: the changes of a timeline as marks, and an axis of ledger versions that has dates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import pandas as pd
from matplotlib import dates
from matplotlib.ticker import FuncFormatter

from toolkit.errors import InputError
from toolkit.frames._columns import plain_rows
from toolkit.gas._observations import Cause
from toolkit.gas._series import require
from toolkit.plots._style import DOTS, cause_colour, draw_marks, once, whole_ticks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from toolkit.gas._series import CallSeries
    from toolkit.plots._style import Floats


TIMELINE_ROW = 0.045  # share of the height of the axes for a row of marks of a timeline
_MAX_TIMELINE_ROWS = 3  # so that the strip takes at most a seventh of the height
_MAX_TIMELINE_LINES = 60  # lines of more changes would hide the gas
_TIMELINE_GAP = 0.015  # least distance of marks in one row, as a share of the width
_DAY_S = 86_400.0
_MIN_DAYS = 3.0  # of a range whose ticks have dates; labels of a shorter range have hours
_NEAR = 0.01  # of the span of known times: a version beyond them has the date of the next known one


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
    rows = sorted(plain_rows(timeline), key=lambda row: int(row["ledger_version"]))
    for row in rows:
        start, end = float(row["version_before"]), float(row["ledger_version"])
        x = end if row["exact"] else (start + end) / 2
        if first <= x <= last:
            gap = _TIMELINE_GAP * (last - first)
            place = next((place for place, used in enumerate(ends) if x - used >= gap), _MAX_TIMELINE_ROWS - 1)
            ends[place] = x
            found.append(TimelineMark(x, start, end, Cause.of(row["kind"]), bool(row["exact"]), place))
    return found


def schedule_versions(timeline: pd.DataFrame, first: float, last: float) -> list[float]:
    """Return the versions between two at which a gas schedule came into force, ascending; of intervals their ends."""
    require(timeline, ("ledger_version", "kind"), what="changes of the gas schedule")
    changes = timeline.loc[timeline["kind"] == Cause.SCHEDULE, "ledger_version"].to_numpy(dtype=np.float64)
    return sorted({float(version) for version in changes if first < version <= last})


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
        colour, y = cause_colour(mark.kind), share * (mark.row + 0.5) / rows
        if not mark.exact:
            ax.axvspan(mark.start, mark.end, color=colour, alpha=0.12, linewidth=0, zorder=0.5, gid="timeline-interval")
        elif len(marks) <= _MAX_TIMELINE_LINES:
            line: dict[str, Any] = {"color": colour, "linewidth": 0.9, "linestyle": DOTS, "zorder": 0.9}
            line["label"] = once(ax, "ledger change")
            ax.plot([mark.x, mark.x], [y, 1], transform=foot, gid="timeline-line", **line)
        place = {"transform": foot, "gid": f"timeline-{mark.kind}", "clip_on": False, "zorder": 4}
        draw_marks(ax, [mark.x], [y], mark.kind, exact=mark.exact, size=5.5, edge=0.6, **place)


def known_times(
    observations: pd.DataFrame, steps: pd.DataFrame | None, timeline: pd.DataFrame | None
) -> tuple[Floats, Floats]:
    """Return the versions whose times are known, ascending, and the times in seconds since 1970.

    Both are empty if fewer than two different times are known, since a scale needs two.
    """
    known: dict[float, float] = {}
    for frame, version, time in (
        (observations, "ledger_version", "ledger_timestamp"),
        (steps, "version_after", "time"),
        (timeline, "ledger_version", "time"),
    ):
        if frame is not None and time in frame.columns:
            rows = frame[frame[time].notna()]
            stamps = pd.to_datetime(rows[time], utc=True).dt.tz_localize(None).to_numpy(dtype="datetime64[us]")
            seconds = stamps.astype(np.int64).astype(np.float64) / 1e6
            known.update(zip(rows[version].to_numpy(dtype=np.float64).tolist(), seconds.tolist(), strict=True))
    about = {} if timeline is None else timeline.attrs
    for version, time in (("first", "first_time"), ("last", "last_time")):
        if about.get(time) is not None:
            known[float(about[version])] = pd.Timestamp(about[time]).timestamp()
    versions = np.array(sorted(known), dtype=np.float64)
    if len(set(known.values())) < 2:  # noqa: PLR2004
        versions = versions[:0]
    return versions, np.array([known[version] for version in versions], dtype=np.float64)


def axis_times(
    observations: pd.DataFrame, steps: pd.DataFrame | None, timeline: pd.DataFrame | None
) -> tuple[Floats, Floats]:
    """Return the known times for an axis with dates; raise InputError if there are fewer than two."""
    versions, seconds = known_times(observations, steps, timeline)
    if not len(versions):
        raise InputError(
            "dates on the axis need the times of two versions or more: pass timeline=toolkit.timeline(node, versions), "
            "which has the times of both ends, or steps=run.steps"
        )
    return versions, seconds


def axis_label(found: Sequence[CallSeries], times: tuple[Floats, Floats] | None, x: str) -> str:
    """Return the label of a version axis, which says so if its dates are interpolated from other versions."""
    if times is None:
        return "ledger version"
    if x == "time":
        exact, what = all(np.isin(series.versions, times[0]).all() for series in found), "ledger time"
    else:  # ticks are at round versions
        exact, what = len(times[0]) > times[0][-1] - times[0][0], "ledger version, date"
    return f"{what} (UTC)" if exact else f"{what} (UTC, interpolated)"


def date_ticks(ax: Axes, versions: Floats, seconds: Floats, *, alone: bool) -> None:
    """Write dates at the ticks of an x axis of ledger versions: `alone`, or below the versions.

    Parameters
    ----------
    ax : Axes
    versions, seconds : ndarray of float64
        Ledger versions, ascending and each once, and their times since 1970; at least two different times. Between
        known times, times are interpolated.
    alone : bool
    """
    days, num2date = seconds / _DAY_S, cast("Any", dates).num2date  # matplotlib.dates has no types
    form = "%Y-%m-%d" if days[-1] - days[0] > _MIN_DAYS else "%m-%d %H:%M"

    def text(version: float, _: object) -> str:
        known = float(np.clip(version, versions[0], versions[-1]))
        if version < 0:
            return ""
        near = abs(version - known) <= _NEAR * (versions[-1] - versions[0])  # otherwise the date would be a guess
        date = f"{num2date(np.interp(known, versions, days)):{form}}" if near else ""
        return date if alone else f"{version:.0f}\n{date}"

    whole_ticks(ax.xaxis, FuncFormatter(text), characters=len("2026-05-01"))
