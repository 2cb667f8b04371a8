"""The figure of the gas split of simulations and committed transactions: execution, io and storage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator

from toolkit._present.numbers import number
from toolkit.gas._observations import Source
from toolkit.gas._series import is_model, records, require
from toolkit.plots import _style as style
from toolkit.plots._labels import figure_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Rectangle

__all__ = ["breakdown", "gas_breakdown"]

COLUMNS = (
    "label",
    "source",
    "ledger_version",
    "gas_used",
    "execution_gas_units",
    "io_gas_units",
    "storage_fee_octas",
    "gas_unit_price",
)
MIN_NAMED_SHARE = 0.06
"""A part narrower than this share of the axis has no room for its number."""


def gas_breakdown(observations: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw what the gas of each transaction was spent on, as stacked bars.

    Storage is paid in octas; it is drawn in gas units at the gas unit price of the transaction. The number at the end
    of a bar is the total gas used, which may differ from the sum of the parts by up to 2 gas units, since the node
    rounds each part.

    Parameters
    ----------
    observations : DataFrame
        As `Run.observations`. Columns ``label``, ``source``, ``ledger_version``, ``gas_used``, ``execution_gas_units``,
        ``io_gas_units`` (gas units), ``storage_fee_octas`` (octas) and ``gas_unit_price`` (octas per gas unit);
        ``success`` and ``model`` if present. Rows without a split (views) are left out. Of several rows of one call
        and source the one of the last version is drawn.
    ax : Axes, optional
        Axes to draw on; by default a new figure.

    Returns
    -------
    Axes
        x in gas units; one bar per call and source, in order of calls.

    Raises
    ------
    SchemaError
        If a column is missing.
    """
    parts = breakdown(observations)
    with style.drawing(ax, width=9, height=1.5 + 0.42 * max(len(parts), 1)) as axes:
        axes.set_xlabel("gas used (gas units)")
        axes.set_title("What the gas was spent on")
        style.grid(axes, "x")
        axes.xaxis.set_major_locator(MaxNLocator(nbins=7, integer=True, min_n_ticks=1))
        axes.xaxis.set_major_formatter(style.GAS_NUMBERS)
        if parts.empty:
            style.nothing(axes, "no simulations")
            return axes
        _draw_bars(axes, parts)
        if is_model(observations):
            style.note(axes, style.MODEL_NOTE, below_pt=36)
    return axes


def breakdown(observations: pd.DataFrame) -> pd.DataFrame:
    """Return the last gas split of each call and source, with all parts in gas units.

    Parameters
    ----------
    observations : DataFrame
        As `gas_breakdown` takes.

    Returns
    -------
    DataFrame
        ``label``, ``source``, ``count`` (rows of that call and source with a split), ``success`` (bool), ``total``,
        ``execution``, ``io`` and ``storage`` (float64, gas units). Storage is 0 if the gas unit price is 0, since
        nothing is charged then.

    Raises
    ------
    SchemaError
        If a column is missing.
    """
    require(observations, COLUMNS, what="figures of the gas split")
    rows = observations[observations["execution_gas_units"].notna()]
    rows = rows.sort_values("ledger_version", kind="stable")
    keys = ["label", "source"]
    count = rows.groupby(keys, sort=False)["label"].transform("size")
    last = rows.assign(count=count).drop_duplicates(keys, keep="last")
    order = {label: place for place, label in enumerate(observations["label"].unique())}
    last = last.assign(_order=last["label"].map(order)).sort_values(["_order", "source"], kind="stable")
    price = last["gas_unit_price"].to_numpy(dtype=np.float64, na_value=0)
    octas = last["storage_fee_octas"].to_numpy(dtype=np.float64, na_value=0)
    success = last["success"] if "success" in last.columns else pd.Series(data=True, index=last.index)
    return pd.DataFrame(
        {
            "label": last["label"].to_numpy(dtype=object),
            "source": last["source"].to_numpy(dtype=object),
            "count": last["count"].to_numpy(dtype=np.int64),
            "success": success.fillna(value=False).to_numpy(dtype=np.bool_),
            "total": last["gas_used"].to_numpy(dtype=np.float64, na_value=0),
            "execution": last["execution_gas_units"].to_numpy(dtype=np.float64),
            "io": last["io_gas_units"].to_numpy(dtype=np.float64, na_value=0),
            "storage": np.divide(octas, price, out=np.zeros_like(octas), where=price > 0),
        }
    )


def _draw_bars(ax: Axes, parts: pd.DataFrame) -> None:
    places = np.arange(len(parts))
    left = np.zeros(len(parts))
    widest = float(parts[["total", *style.PART_COLOURS]].assign(total=parts["total"]).max().max()) or 1.0
    widest = max(widest, float(parts[list(style.PART_COLOURS)].sum(axis=1).max()))
    for name, colour in style.PART_COLOURS.items():
        width = parts[name].to_numpy(dtype=np.float64)
        bars = ax.barh(places, width, left=left, height=0.56, color=colour, label=name, gid=f"part-{name}")
        for bar, value in zip(bars, width, strict=True):
            if value >= MIN_NAMED_SHARE * widest:
                _name_part(ax, bar, float(value), dark=name == "execution")
        left += width
    for place, row, end in zip(places, records(parts), left, strict=True):
        failed = "" if row["success"] else " · execution failed"
        text = f"{number(row['total'])}{failed}"
        style.beside(ax, text, (float(end), float(place)), points=5, gid="total")
    ax.set_yticks(places, [_bar_name(row) for row in records(parts)], color=style.INK)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(parts) - 0.5, -0.5)
    ax.set_xlim(0, 1.16 * widest)
    ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, borderaxespad=0.2, handlelength=1.0)


def _name_part(ax: Axes, bar: Rectangle, value: float, *, dark: bool) -> None:
    ax.annotate(
        number(round(value)),
        xy=(bar.get_x() + bar.get_width() / 2, bar.get_y() + bar.get_height() / 2),
        ha="center",
        va="center_baseline",
        fontsize=7.5,
        color=style.ON_DARK if dark else style.ON_LIGHT,
        gid="part",
    )


def _bar_name(row: dict[str, Any]) -> str:
    label, source = figure_text(row["label"], 34), row["source"]
    if source == Source.SIMULATE:
        return label
    return (
        f"{label}\n(last of {row['count']:,} committed)"
        if source == Source.COMMITTED
        else f"{label}\n({figure_text(source)})"
    )
