"""Figures of ledger changes: parameters of the gas schedule, and state written by transactions."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

from toolkit._present.text import distinct_addresses, number, plural, times
from toolkit.errors import InputError
from toolkit.gas._series import described
from toolkit.plots import _style as style
from toolkit.plots._labels import figure_text, legend_below
from toolkit.wire._transactions import ChangeKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from toolkit.plots._style import Colors, Floats


MAX_ROWS = 24  # fit a screen
# In the order of the stack.
KIND_COLOURS: Mapping[str, str] = {
    ChangeKind.WRITE_RESOURCE: style.BLUE,
    ChangeKind.WRITE_TABLE_ITEM: style.GREEN,
    ChangeKind.WRITE_MODULE: style.ORANGE,
    ChangeKind.DELETE_RESOURCE: style.VERMILLION,
    ChangeKind.DELETE_TABLE_ITEM: style.PURPLE,
    ChangeKind.DELETE_MODULE: style.SKY,
}
STATE_COLUMNS = ("type", "resource_type", "module", "handle")


def schedule_changes(
    diff: pd.DataFrame,
    *,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
    title: str | None = None,
    colors: Colors = None,
    legend: bool = True,
) -> Axes:
    """Draw the parameters that differ between two gas schedules, by the factor of change.

    There is one row per part of the schedule (``instr``, ``txn``, ...). The area of a circle grows with the number of
    parameters that changed by that factor. Parameters that were added or removed, or whose value was or became 0, have
    no factor and are counted beside their row. If all parameters changed by one factor, or none has a factor, it is
    said instead.

    Parameters
    ----------
    diff : DataFrame
        A frame from `toolkit.schedule_diff`. Uses the columns ``name``, ``kind``, ``before`` and ``after``.
    ax : Axes, optional
        Axes to draw on; by default, a new figure.
    figsize, title, colors, legend
        As in `gas_by_version`; `colors` sets the colours of ``rose`` and ``fell``.

    Returns
    -------
    Axes
        The x axis is the factor (new value divided by old value) and is logarithmic. There is one row per part of the
        schedule.

    Raises
    ------
    InputError
        If `diff` is not a frame from `toolkit.schedule_diff`, or `colors` contains an unknown name.

    Examples
    --------
    >>> import pandas as pd
    >>> from matplotlib.figure import Figure
    >>> from toolkit import plots
    >>> diff = pd.DataFrame({"name": ["txn.load"], "kind": ["changed"], "before": [2], "after": [20]})
    >>> axes = plots.schedule_changes(diff, ax=Figure().subplots())
    >>> axes.get_xlabel()
    'new value / old value'
    """
    diff = _frame(diff, ("name", "kind", "before", "after"), "schedule_changes: expected a toolkit.schedule_diff frame")
    diff = diff[(diff["kind"] != "unchanged") & ~(diff["before"] == diff["after"]).fillna(value=False)]
    groups = [(str(name), rows) for name, rows in diff.groupby(diff["name"].str.split(".").str[0])]
    groups.sort(key=lambda group: -len(group[1]))
    shown = groups[: style.row_limit(ax, figsize, MAX_ROWS)]
    colours = style.chosen({"rose": style.VERMILLION, "fell": style.BLUE}, colors)
    cut = f": the first {len(shown)} of {len(groups)} parts" if len(shown) < len(groups) else ""
    counts = [(int((diff["kind"] == kind).sum()), kind) for kind in ("changed", "added", "removed")]
    (count, kind), *more = [one for one in counts if one[0]] or counts[:1]
    kinds = ", ".join([f"{plural(count, 'parameter')} {kind}", *(f"{count:,} {kind}" for count, kind in more)])
    title = f"Gas schedule: {kinds}{cut}" if title is None else title
    label = "new value / old value"
    summary = _summary(diff)
    height = 1.3 + 0.36 * max(0 if summary else len(shown), 2)
    with style.drawing(ax, figsize=figsize, height=height, title=title, xlabel=label) as axes:
        if not shown:
            return style.nothing(axes, "no parameter differs")
        if summary:
            parts = ", ".join(f"{figure_text(name, 30)}\N{NO-BREAK SPACE}({len(rows):,})" for name, rows in groups)
            axes.set_xlabel("")
            axes.spines[:].set_visible(False)
            axes.text(0.5, 0.75, summary, ha="center", gid="summary")
            return style.nothing(axes, "\n".join(wrap(parts, int(10 * style.room(axes)))))
        _draw_schedule(axes, shown, colours)
        handles, _labels = axes.get_legend_handles_labels()
        # Colours need a legend only if some parameters rose and others fell.
        legend_below(axes, handles, wanted=legend and len(handles) > 1)
    return axes


def _summary(diff: pd.DataFrame) -> str:
    """Return what happened to all parameters, if that was the same or none has a factor, else an empty text."""
    factors, others = _factors(diff), _others(diff)
    if len(factors):
        same = len(diff) > 1 and not others and len(np.unique(factors)) == 1
        return f"all {plural(len(diff), 'changed parameter')} {times(float(factors[0]))}" if same else ""
    if len(others) == 1:
        return f"{'all ' * (len(diff) > 1)}{plural(len(diff), 'parameter')} {others[0].partition(' ')[2]}"
    return ", ".join(others)


def _factors(rows: pd.DataFrame) -> Floats:
    """Return the factors by which parameters changed, of those that have one."""
    before, after = (rows[side].to_numpy(dtype=np.float64, na_value=0) for side in ("before", "after"))
    changed = (before > 0) & (after > 0) & (rows["kind"] == "changed").to_numpy(dtype=bool)
    factors: Floats = np.round(after[changed] / before[changed], 9)
    return factors


def _others(rows: pd.DataFrame) -> list[str]:
    """Return how many parameters have no factor, by kind."""
    zero = (rows["kind"] == "changed") & ((rows["before"] == 0) | (rows["after"] == 0))
    counts = {"added": (rows["kind"] == "added"), "removed": (rows["kind"] == "removed"), "from or to zero": zero}
    return [f"{int(found.sum()):,} {what}" for what, found in counts.items() if found.any()]


def _frame(given: Any, columns: Sequence[str], expected: str) -> pd.DataFrame:
    """Return a frame with these columns, or an object's ``changes``; raise InputError for anything else."""
    frame = given if isinstance(given, pd.DataFrame) else getattr(given, "changes", None)
    if not isinstance(frame, pd.DataFrame) or not set(columns) <= set(frame.columns):
        raise InputError(f"{expected}, got {described(given)}")
    return frame


def _draw_schedule(ax: Axes, groups: Sequence[tuple[str, pd.DataFrame]], colours: Mapping[str, Any]) -> None:
    names = [f"{figure_text(name, 30)} ({len(rows):,})" for name, rows in groups]
    style.name_rows(ax, names, below=0.6, above=0.6, beside=True)
    powers, texts = np.zeros(1), []
    most = max(len(rows) for _, rows in groups)
    for place, (_, rows) in enumerate(groups):
        factors, counts = np.unique(_factors(rows), return_counts=True)
        powers = np.append(powers, np.log10(factors))
        area = 24 + 320 * counts.astype(np.float64) / most
        for name, chosen in (("rose", factors > 1), ("fell", factors < 1)):
            if chosen.any():
                look: dict[str, Any] = {"color": colours[name], "alpha": 0.8}
                ax.scatter(factors[chosen], [place] * chosen.sum(), s=area[chosen], linewidth=0, gid="factor", **look)
                ax.plot([], [], "o", label=style.once(ax, name), **look)  # in the legend, of the usual size
        texts.append(", ".join([*map(times, factors if len(factors) == 1 else ()), *_others(rows)]))
    style.write_ends(ax, texts, gid="change")
    ax.set_xscale("log")
    ax.axvline(1, color=style.muted(ax), linewidth=0.8)
    # A side without a parameter is a margin; the other reaches 10, so that a small change does not look large.
    fall, rise = (max(power, 1.0) if power > 0 else 0.1 for power in (-powers.min(), powers.max()))
    ends = 10 ** (-1.25 * fall), 10 ** (1.25 * rise)
    ax.xaxis.set_major_locator(style.LogTicks())
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: times(value)))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlim(*ends)


def state_changes(
    changes: Any,
    *,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
    title: str | None = None,
    colors: Colors = None,
    legend: bool = True,
) -> Axes:
    """Draw how many state changes each resource type, table and module has, stacked by kind.

    If each has one change, its kind is written instead.

    Parameters
    ----------
    changes : DataFrame, Simulation or TransactionFrames
        A simulation, the result of `fetch_simulations` or `fetch_transactions`, or the frame ``changes`` of any of
        these.
    ax : Axes, optional
        Axes to draw on; by default, a new figure.
    figsize, title, colors, legend
        As in `gas_by_version`; `colors` sets the colours of the kinds, such as ``write resource``.

    Returns
    -------
    Axes
        The x axis is the number of state changes. There is one row per resource type, table or module, with the most
        changes first.

    Raises
    ------
    InputError
        If `changes` is not one of these or lacks a column, or `colors` contains an unknown name.

    Examples
    --------
    >>> import toolkit
    >>> from matplotlib.figure import Figure
    >>> call = toolkit.EntryFunction("0x1::aptos_account::transfer", arguments=["0xb0b", 100])
    >>> simulation = toolkit.connect().simulate(call, sender="0xa11ce")
    >>> toolkit.plots.state_changes(simulation, ax=Figure().subplots()).get_title()
    'State changes'
    """
    expected = "a simulation, fetch_simulations(...), fetch_transactions(...) or their frame `changes`"
    changes = _frame(changes, STATE_COLUMNS, f"state_changes: expected {expected}")
    counts = _state_counts(changes)
    names = [figure_text(what, 52) for what in counts.index]
    shown = counts.head(style.row_limit(ax, figsize, MAX_ROWS, names))
    shown = shown.loc[:, shown.any()]
    kinds = [figure_text(str(kind).replace("_", " "), 24) for kind in shown]
    usual = [KIND_COLOURS.get(str(kind), style.GREY) for kind in shown]
    colours = style.chosen(dict(zip(kinds, usual, strict=True)), colors)
    if title is None:
        cut = f": the {len(shown)} largest of {len(counts):,} rows"
        title = f"State changes{cut if len(counts) > len(shown) else ''}"
    height = 1.3 + 0.3 * max(len(shown), 2)
    with style.drawing(ax, figsize=figsize, height=height, title=title, xlabel="state changes") as axes:
        if shown.empty:
            return style.nothing(axes, "no state changes")
        _draw_state(axes, shown, colours)
        legend_below(axes, axes.get_legend_handles_labels()[0], wanted=legend and bool(axes.containers))
    return axes


def _state_counts(changes: pd.DataFrame) -> pd.DataFrame:
    """Count changes by what was changed (rows, most changes first) and by kind (columns)."""
    if changes.empty:
        return pd.DataFrame()
    what = changes["resource_type"].fillna("module " + changes["module"]).fillna("table " + changes["handle"])
    what = what.fillna("something else")
    counts = pd.crosstab(what.map(distinct_addresses(what.unique())), changes["type"])
    kinds = [*(kind for kind in KIND_COLOURS if kind in counts), *(kind for kind in counts if kind not in KIND_COLOURS)]
    return counts[kinds].iloc[np.argsort(-counts.sum(axis=1).to_numpy(), kind="stable")]


def _draw_state(ax: Axes, counts: pd.DataFrame, colours: Mapping[str, Any]) -> None:
    named_above = style.name_rows(ax, [figure_text(what, 52) for what in counts.index])
    bars = [
        (f"kind-{kind}", counts[kind].to_numpy(dtype=np.float64), colour, name)
        for kind, (name, colour) in zip(counts, colours.items(), strict=True)
    ]
    if counts.to_numpy().sum(axis=1).max() == 1:  # bars of one length would show nothing
        for gid, width, colour, name in bars:
            ax.plot(np.zeros(int(width.sum())), rows := np.flatnonzero(width), "o", color=colour, gid=gid, label=name)
            for row in rows.tolist():
                style.write(ax, name, (0, row), gid="kind", offset=(9, 0))
        ax.set(xticks=[], xlabel="", xlim=(-0.03, 1))
        ax.spines[:].set_visible(False)
        return
    totals, _ = style.stacked_bars(ax, bars, named_above=named_above)
    style.write_ends(ax, [number(total) for total in totals.tolist()], gid="total")
    style.whole_ticks(ax.xaxis)
