"""The figure of how a gas schedule changed: every changed parameter by its factor, a row per part of the schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from toolkit.plots import style
from toolkit.plots.series import require
from toolkit.plots.text import figure_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

__all__ = ["schedule_changes"]

MOST_ROWS = 24
FACTORS = (2, 5, 10, 100, 1_000, 10_000, 100_000, 1_000_000)
"""Factors a tick may stand at, both ways."""


def schedule_changes(diff: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the parameters that differ between two gas schedules by the factor they changed by.

    One row per part of the schedule (``instr``, ``txn``, ...); a circle's area grows with the number of parameters
    that changed by that very factor. Parameters that were added or removed, and those that were or
    became zero, have no factor: they are counted at the end of their row.

    Parameters
    ----------
    diff : DataFrame
        As `schedule_diff`. Reads ``name``, ``kind``, ``before`` and ``after``.
    ax : Axes, optional
        Axes to draw on; by default a figure of its own.

    Returns
    -------
    Axes
        x the factor (new value by old), logarithmic; one row per part of the schedule.

    Raises
    ------
    SchemaError
        If a column read is missing.
    """
    require(diff, ("name", "kind", "before", "after"), what="figures of schedule changes")
    groups = _groups(diff)
    shown = groups[:MOST_ROWS]
    with style.drawing(ax, width=9, height=1.6 + 0.38 * max(len(shown), 2)) as axes:
        axes.set_xlabel("new value as a multiple of the old one")
        axes.set_title("Gas schedule: parameters changed")
        style.grid(axes, "x")
        if not shown:
            axes.set_xticks([])
            style.nothing(axes, "no parameter differs")
            return axes
        _draw(axes, shown)
        if len(groups) > len(shown):
            style.note(axes, f"the first {len(shown)} of {len(groups)} parts of the schedule", below_pt=36)
    return axes


def _groups(diff: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Split a diff by the part of the schedule, the part with most changes first."""
    changed = diff[diff["kind"] != "unchanged"]
    part = np.array([str(name).partition(".")[0] for name in changed["name"]], dtype=object)
    groups = [(str(name), rows) for name, rows in changed.groupby(part, sort=True)]
    return sorted(groups, key=lambda group: -len(group[1]))


def _draw(ax: Axes, groups: Sequence[tuple[str, pd.DataFrame]]) -> None:
    reach = 1.0
    most = max(len(rows) for _, rows in groups)
    for place, (_, rows) in enumerate(groups):
        factors, counts = _factors(rows)
        reach = max([reach, *np.abs(np.log10(factors))])
        colours = [style.VERMILLION if factor > 1 else style.BLUE for factor in factors]
        area = 24 + 320 * counts / most
        where = np.full(len(factors), place)
        ax.scatter(factors, where, s=area, color=colours, alpha=0.8, linewidth=0, gid="factor")
        if len(factors) == 1:
            style.beside(ax, f"{style.TIMES}{factors[0]:.4g}", (float(factors[0]), place), points=14, gid="factor-name")
        _say_others(ax, rows, place)
    ax.set_xscale("log")
    ax.axvline(1, color=style.MUTED, linewidth=0.8)
    ticks = [
        1.0,
        *(float(f) for f in FACTORS if np.log10(f) <= reach),
        *(1 / f for f in FACTORS if np.log10(f) <= reach),
    ]
    ax.xaxis.set_major_locator(FixedLocator(sorted(ticks)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _factor(value)))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlim(10 ** (-1.25 * reach), 10 ** (1.25 * reach))
    ax.set_yticks(
        range(len(groups)), [f"{figure_text(name, 30)}  ·  {len(rows):,}" for name, rows in groups], color=style.INK
    )
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(groups) - 0.4, -0.6)


def _factors(rows: pd.DataFrame) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the distinct factors of the parameters that have one, and how many parameters have each."""
    before, after = (rows[name].to_numpy(dtype=np.float64, na_value=0) for name in ("before", "after"))
    told = (before > 0) & (after > 0) & (rows["kind"] == "changed").to_numpy(dtype=bool)
    factors, counts = np.unique(np.round(after[told] / before[told], 9), return_counts=True)
    return factors, counts.astype(np.float64)


def _say_others(ax: Axes, rows: pd.DataFrame, place: int) -> None:
    """Count, right of the axes, what has no factor."""
    zero = (rows["kind"] == "changed") & ((rows["before"] == 0) | (rows["after"] == 0))
    counts = {"added": (rows["kind"] == "added"), "removed": (rows["kind"] == "removed"), "from or to zero": zero}
    words = ", ".join(f"{int(found.sum()):,} {what}" for what, found in counts.items() if found.any())
    if words:
        ax.annotate(
            words,
            xy=(1, place),
            xycoords=("axes fraction", "data"),
            xytext=(8, 0),
            textcoords="offset points",
            va="center_baseline",
            fontsize=8,
            color=style.MUTED,
            gid="without-factor",
            annotation_clip=False,
        )


def _factor(value: float) -> str:
    return f"{style.TIMES}{style.number(value)}" if value >= 1 else f"{style.TIMES}1/{style.number(round(1 / value))}"
