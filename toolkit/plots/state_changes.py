"""The figure of what transactions write: which resources, table items and modules, and how often."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator

from toolkit._present.text import short_addresses
from toolkit.plots import style
from toolkit.plots.series import require
from toolkit.plots.text import figure_text
from toolkit.wire import ChangeKind

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["state_changes"]

MOST_ROWS = 24
KINDS: dict[str, str] = {
    ChangeKind.WRITE_RESOURCE: style.BLUE,
    ChangeKind.WRITE_TABLE_ITEM: style.GREEN,
    ChangeKind.WRITE_MODULE: style.ORANGE,
    ChangeKind.DELETE_RESOURCE: style.VERMILLION,
    ChangeKind.DELETE_TABLE_ITEM: style.PURPLE,
    ChangeKind.DELETE_MODULE: style.BLACK,
}
"""Colour of each kind of state change, in the order they are stacked."""
COLUMNS = ("type", "resource_type", "module", "handle")


def state_changes(changes: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw how many state changes were made to what, stacked by kind.

    Parameters
    ----------
    changes : DataFrame
        As `Simulation.changes`, or the changes of `fetch_simulations` and `fetch_transactions`. Reads ``type``,
        ``resource_type``, ``module`` and ``handle``.
    ax : Axes, optional
        Axes to draw on; by default a figure of its own.

    Returns
    -------
    Axes
        x in state changes; one row per resource type, table or module, the most written first.

    Raises
    ------
    SchemaError
        If a column read is missing.
    """
    require(changes, COLUMNS, what="figures of state changes")
    counts = _counts(changes)
    shown = counts.head(MOST_ROWS)
    with style.drawing(ax, width=9, height=1.5 + 0.3 * max(len(shown), 2)) as axes:
        axes.set_xlabel("state changes")
        axes.set_title("What is written")
        style.grid(axes, "x")
        if shown.empty:
            style.nothing(axes, "no state changes")
            return axes
        _draw(axes, shown)
        rest = counts.iloc[MOST_ROWS:]
        if len(rest):
            words = (
                f"the {len(shown)} most written of {len(counts):,}; the others: {int(rest.to_numpy().sum()):,} changes"
            )
            style.note(axes, words, below_pt=36)
    return axes


def _counts(changes: pd.DataFrame) -> pd.DataFrame:
    """Count changes by what was changed (rows, the most changed first) and kind (columns)."""
    if changes.empty:
        return pd.DataFrame()
    columns = [changes[name].astype(object).where(changes[name].notna(), None).tolist() for name in COLUMNS]
    rows = [(kind, _what(*rest)) for kind, *rest in zip(*columns, strict=True)]
    counts = pd.crosstab(pd.Series([what for _, what in rows]), pd.Series([kind for kind, _ in rows]))
    kinds = [*(kind for kind in KINDS if kind in counts), *(kind for kind in counts if kind not in KINDS)]
    order = np.argsort(-counts.sum(axis=1).to_numpy(), kind="stable")
    return counts[kinds].iloc[order]


def _what(resource: Any, module: Any, handle: Any) -> str:
    if resource is not None:
        return short_addresses(str(resource))
    if module is not None:
        return f"module {short_addresses(str(module))}"
    return f"table {short_addresses(str(handle))}" if handle is not None else "something else"


def _draw(ax: Axes, counts: pd.DataFrame) -> None:
    places, left = np.arange(len(counts)), np.zeros(len(counts))
    for kind in counts.columns:
        width = counts[kind].to_numpy(dtype=np.float64)
        name = figure_text(str(kind).replace("_", " "), 24)
        colour = KINDS.get(str(kind), style.MUTED)
        ax.barh(places, width, left=left, height=0.56, color=colour, label=name, gid=f"kind-{kind}")
        left += width
    for place, total in zip(places, left, strict=True):
        style.beside(ax, style.number(float(total)), (float(total), float(place)), points=5, gid="total")
    ax.set_yticks(places, [figure_text(what, 52) for what in counts.index], color=style.INK)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(counts) - 0.5, -0.5)
    ax.set_xlim(0, 1.1 * float(left.max()))
    ax.xaxis.set_major_locator(MaxNLocator(nbins=7, integer=True, min_n_ticks=1))
    ax.xaxis.set_major_formatter(style.NUMBERS)
    ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, borderaxespad=0.2, handlelength=1.0)
