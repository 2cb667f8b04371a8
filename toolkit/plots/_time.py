"""Time in figures: marks for the changes in a timeline, and ledger version axes with dates.

Dates are UTC and English whatever the settings of matplotlib (``timezone``, ``date.epoch``) and the locale are, so each
call of `matplotlib.dates` states its time zone, and times are counted from 1970 except inside those calls.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib import dates
from matplotlib.ticker import Formatter, FuncFormatter, Locator

from toolkit.errors import InputError
from toolkit.frames._columns import plain_rows
from toolkit.gas._observations import Cause
from toolkit.gas._series import CallSeries, require
from toolkit.plots._style import DOTS, cause_colour, draw_marks, least_height, room, whole_ticks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from toolkit.plots._style import Floats


TIMELINE_ROW = 0.045  # share of the height of the axes for a row of marks of a timeline
_MAX_TIMELINE_ROWS = 3  # so that the strip takes at most a seventh of the height
_MAX_TIMELINE_LINES = 60  # lines of more changes would hide the gas
_DAY_S = 86_400.0
_TIMELINE = "the frame of toolkit.timeline or run.timeline"
_dates: Any = dates  # it has no types
_1970 = datetime(1970, 1, 1, tzinfo=UTC)


def _time(days: float) -> datetime:
    """Return the time of a number of days since 1970."""
    return _1970 + timedelta(days=float(days))


class TimelineMark(NamedTuple):
    """The mark of a timeline's change: its position, the versions that it lies between, and its row in the strip."""

    x: float
    start: float
    end: float
    kind: Cause
    exact: bool
    row: int


def timeline_marks(timeline: pd.DataFrame, first: float, last: float) -> list[TimelineMark]:
    """Return marks for a timeline's changes between two versions, assigned to rows so that neighbours do not overlap.

    Raises
    ------
    InputError
        If `timeline` lacks a column.
    """
    require(timeline, ("ledger_version", "version_before", "exact", "kind"), what="timeline marks", source=_TIMELINE)
    found: list[TimelineMark] = []
    ends = [-np.inf] * _MAX_TIMELINE_ROWS
    rows = sorted(plain_rows(timeline), key=lambda row: int(row["ledger_version"]))
    for row in rows:
        start, end = float(row["version_before"]), float(row["ledger_version"])
        x = end if row["exact"] else (start + end) / 2
        if first <= x <= last:
            gap = 0.015 * (last - first)  # minimum distance between marks in one row
            place = next((place for place, used in enumerate(ends) if x - used >= gap), _MAX_TIMELINE_ROWS - 1)
            ends[place] = x
            found.append(TimelineMark(x, start, end, Cause.of(row["kind"]), bool(row["exact"]), place))
    return found


def schedule_versions(timeline: pd.DataFrame, first: float, last: float) -> list[float]:
    """Return the versions between two at which a gas schedule took effect, ascending; for an interval, its end."""
    require(timeline, ("ledger_version", "kind"), what="changes of the gas schedule", source=_TIMELINE)
    changes = timeline.loc[timeline["kind"] == Cause.SCHEDULE, "ledger_version"].to_numpy(dtype=np.float64)
    return sorted({float(version) for version in changes if first < version <= last})


def timeline_rows(marks: Sequence[TimelineMark]) -> int:
    """Return the number of rows of the strip of marks."""
    return 1 + max((mark.row for mark in marks), default=-1)


def draw_timeline(ax: Axes, marks: Sequence[TimelineMark], *, share: float, foot: float = 0.0) -> None:
    """Draw the marks of a timeline in a strip at the bottom of the axes or below, each with a thin vertical line.

    Parameters
    ----------
    ax : Axes
    marks : sequence of TimelineMark
    share : float
        Share of the axes' height that the strip takes up.
    foot : float
        Where the strip begins, as a share of the axes' height; negative below the axes.
    """
    across, rows = ax.get_xaxis_transform(), timeline_rows(marks)
    size = min(5.5, 0.9 * least_height(ax) * share / max(rows, 1))  # in low axes, rows are as low as their marks
    for mark in marks:
        colour, y = cause_colour(mark.kind), foot + share * (mark.row + 0.5) / rows
        if not mark.exact:
            ax.axvspan(mark.start, mark.end, color=colour, alpha=0.12, linewidth=0, zorder=0.5, gid="timeline-interval")
        elif len(marks) <= _MAX_TIMELINE_LINES:
            line: dict[str, Any] = {"color": colour, "linewidth": 0.9, "linestyle": DOTS, "zorder": 0.9}
            ax.plot([mark.x, mark.x], [y, 1], transform=across, clip_on=False, gid="timeline-line", **line)
        place = {"transform": across, "gid": f"timeline-{mark.kind}", "clip_on": False, "zorder": 4}
        draw_marks(ax, [mark.x], [y], mark.kind, filled=mark.exact, size=size, edge=0.6, **place)


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
            "dates on the axis require the times of at least two versions, but fewer are known; pass "
            "timeline=toolkit.timeline(node, versions), which includes the times of the first and last version"
        )
    return versions, seconds


def axis_label(found: Sequence[CallSeries], times: tuple[Floats, Floats] | None, x: str) -> str:
    """Return the label of a version axis, which states whether its dates are interpolated."""
    if times is None:
        return "ledger version"
    if x == "time":
        exact, what = all(np.isin(series.versions, times[0]).all() for series in found), "ledger time"
    else:  # ticks are at round versions
        exact, what = len(times[0]) > times[0][-1] - times[0][0], "ledger version, date"
    return f"{what} (UTC)" if exact else f"{what} (UTC, interpolated)"


class _VersionDates(Locator):
    """Places the ticks of a ledger version axis at round dates."""

    def __init__(self, versions: Floats, days: Floats, width: float) -> None:
        self._versions, self._days, self._width = versions, days, width

    def dates(self, versions: Any) -> Any:
        """Return the times of ledger versions, in days since 1970."""
        return np.interp(versions, self._versions, self._days)

    def versions(self, days: Any) -> Any:
        """Return the ledger versions at times in days since 1970."""
        return np.interp(days, self._days, self._versions)

    def __call__(self) -> Any:
        return [] if self.axis is None else self.tick_values(*self.axis.get_view_interval())

    def tick_values(self, vmin: float, vmax: float) -> Any:
        first, last = map(_time, self.dates(np.array(sorted((vmin, vmax)))))
        most = int(np.clip(1.3 * self._width, 3, 7))
        ticks = _dates.AutoDateLocator(tz=UTC, minticks=min(3, most - 1), maxticks=most)
        times = _dates.num2date(ticks.tick_values(first, last), tz=UTC)
        return self.versions([(time - _1970) / timedelta(days=1) for time in times])


# matplotlib's own formats, from years to seconds, with ~%m for the name of a month: %b depends on the locale.
_TICKS = ("%Y", "~%m", "%d", "%H:%M", "%H:%M", "%S.%f")
_FIRST_TICKS = ("", "%Y", "~%m", "~%m-%d", "%H:%M", "%H:%M")
_SHARED = ("", "%Y", "%Y-~%m", "%Y-~%m-%d", "%Y-~%m-%d", "%Y-~%m-%d %H:%M")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _with_months(text: str) -> str:
    return re.sub(r"~(\d\d)", lambda month: _MONTHS[int(month[1]) - 1], text)


class _DateTexts(Formatter):
    """Formats the ticks of `_VersionDates` as short dates, with the year or day beside the axis."""

    def __init__(self, ticks: _VersionDates) -> None:
        self._ticks = ticks
        self._texts = _dates.ConciseDateFormatter(
            _dates.AutoDateLocator(tz=UTC),
            tz=UTC,
            formats=_TICKS,
            zero_formats=_FIRST_TICKS,
            offset_formats=_SHARED,
            show_offset=True,
        )

    def __call__(self, x: float, pos: int | None = None) -> str:
        del pos
        return f"{_time(self._ticks.dates(x)):%Y-%m-%d %H:%M:%S}"

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        times = map(_time, self._ticks.dates(np.asarray(values)))
        return list(map(_with_months, self._texts.format_ticks([_dates.date2num(time) for time in times])))

    def get_offset(self) -> str:
        return _with_months(self._texts.get_offset())


def _version_dates(ax: Axes, versions: Floats, seconds: Floats) -> _VersionDates:
    """Return a locator that interpolates between known times and extrapolates at the mean pace beyond them."""
    days = np.maximum.accumulate(seconds) / _DAY_S
    pace = (days[-1] - days[0]) / (versions[-1] - versions[0])
    days = days + np.arange(len(days)) * (days[-1] - days[0]) * 1e-9  # versions of one block have one time
    reach = 1_000.0 + versions[-1] - versions[0]  # versions beyond the known times that the axis can show
    versions = np.concatenate(([versions[0] - reach], versions, [versions[-1] + reach]))
    return _VersionDates(
        versions, np.concatenate(([days[0] - reach * pace], days, [days[-1] + reach * pace])), room(ax)
    )


def date_axis(ax: Axes, versions: Floats, seconds: Floats) -> None:
    """Scale an x axis of ledger versions by time, with ticks at dates; its limits are still in versions.

    Parameters
    ----------
    ax : Axes
    versions, seconds : ndarray of float64
        Ledger versions, ascending without duplicates, and their times in seconds since 1970, of which at least two
        differ.
    """
    ticks = _version_dates(ax, versions, seconds)
    ax.set_xscale("function", functions=(ticks.dates, ticks.versions))
    ax.xaxis.set_major_locator(ticks)
    ax.xaxis.set_major_formatter(_DateTexts(ticks))


def add_dates(ax: Axes, versions: Floats, seconds: Floats) -> None:
    """Write dates below the ledger versions of an x axis; the parameters are those of `date_axis`."""
    ticks = _version_dates(ax, versions, seconds)
    form = "%Y-%m-%d" if seconds[-1] - seconds[0] > 3 * _DAY_S else "%m-%d %H:%M"

    def text(version: float, _: object) -> str:
        if version < 0:
            return ""
        # A version before the known times has no date; the genesis of some ledgers has no time. One just after them,
        # which may not exist yet, has the date of the last known version.
        known = versions[0] <= version <= versions[-1] + 0.01 * (versions[-1] - versions[0])
        return f"{version:,.0f}\n{f'{_time(ticks.dates(min(version, versions[-1]))):{form}}' if known else ''}"

    whole_ticks(ax.xaxis, FuncFormatter(text), characters=len("2026-05-01"))
