"""The figure that splits the gas of simulations and committed transactions into execution, io and storage."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from toolkit._present.text import number, plural
from toolkit.errors import InputError
from toolkit.frames._columns import plain_rows
from toolkit.gas._labels import function_names
from toolkit.gas._observations import Source
from toolkit.gas._series import as_observations, is_model
from toolkit.gas.committed._steps import kinds_of
from toolkit.plots import _style as style
from toolkit.plots._labels import Placed, figure_text, in_lines, legend_below

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.patches import Rectangle
    from matplotlib.text import Annotation

    from toolkit.plots._style import Colors, Floats


COLUMNS = ("label", "source", "gas_used", "execution_gas_units", "io_gas_units", "storage_fee_octas", "gas_unit_price")
STORAGE_BESIDE = (3, 2)  # widths of the other parts and of storage, if it has its own scale
SHARE = STORAGE_BESIDE[0] / sum(STORAGE_BESIDE)
MAX_BARS = 40  # fill two screens
MAX_ROUNDING = 2  # gas units: each of the parts is rounded


def gas_breakdown(
    transactions: Any,
    *,
    parts: Sequence[str] | None = None,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
    title: str | None = None,
    colors: Colors = None,
    legend: bool = True,
) -> Axes:
    """Draw what each transaction spent its gas on, as stacked bars.

    Storage is charged in octas but drawn in gas units, converted at the transaction's gas unit price. The number beside
    a bar is the total gas used, or "65 of 4,385" for a bar of some parts. The node rounds each part, so their sum may
    be up to 2 gas units more or less; a note below says so if that is the case. Parts have their number where it fits.
    If storage costs more than five times the other parts, which would be too narrow to see, it is drawn beside them on
    its own scale.

    Parameters
    ----------
    transactions : DataFrame, TransactionFrames, Simulation, Run.observations, or several of them
        Simulations (one, a list, or a mapping of names to simulations), the result of `fetch_simulations` or
        `fetch_transactions`, its frame ``transactions``, or ``run.observations``. Views are omitted, since their gas is
        not split. If a call was simulated several times, only the last simulation is drawn. Committed transactions of a
        call have one bar for each of the 6 most frequent strata, such as those that fail or pay for storage; it shows
        the last transaction of the stratum. Only the 40 bars with the most gas are drawn.
    parts : list of {"execution", "io", "storage"}, optional
        Parts to draw; all by default. Transactions that spent nothing on these parts have no bar.
    ax : Axes, optional
        Axes to draw on; by default, a new figure.
    figsize, title, colors, legend
        As in `gas_by_version`; `colors` sets the colours of the parts.

    Returns
    -------
    Axes
        The x axis is in gas units. Bars are in call order: one per source, and one per stratum of committed
        transactions. Storage on its own scale is on the last of the figure's Axes, in part of the width of `ax`.

    Raises
    ------
    InputError
        If `transactions` is not one of these, lacks a column or has only views, or `parts` or `colors` contains an
        unknown name.

    Examples
    --------
    >>> import toolkit
    >>> from matplotlib.figure import Figure
    >>> call = toolkit.EntryFunction("0x1::aptos_account::transfer", arguments=["0xb0b", 100])
    >>> simulation = toolkit.connect().simulate(call, sender="0xa11ce")
    >>> axes = toolkit.plots.gas_breakdown(simulation, ax=Figure().subplots())
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['aptos_account::transfer']
    """
    observations = as_observations(transactions, figure="gas_breakdown", columns=COLUMNS)
    if isinstance(parts, str) or not set(parts or ()) <= style.PART_COLOURS.keys():
        raise InputError(f"parts: expected a list of names from {', '.join(style.PART_COLOURS)}, got {parts!r:.80}")
    if len(observations) and (observations["source"] == Source.VIEW).all():
        raise InputError(
            "gas_breakdown: expected simulations or committed transactions, got views: their gas has no parts"
        )
    every = breakdown(observations)
    drawn = style.chosen({name: style.PART_COLOURS[name] for name in parts or style.PART_COLOURS}, colors)
    every = every[every[list(drawn)].sum(axis=1) > 0] if parts else every
    apart = not parts and dwarfed(every) and (ax is None or ax.get_subplotspec() is not None)
    names = [_bar_name(row) for row in plain_rows(every)]
    most = style.row_limit(ax, figsize, MAX_BARS, names, SHARE if apart else 1)
    rows = style.largest(every, every["total"].to_numpy(), most)
    if title is None:
        cut = f": the {len(rows)} largest of {len(every):,} bars" if len(rows) < len(every) else ""
        title = f"What the gas was spent on{cut}"
    xlabel = style.gas_label(model=is_model(observations))
    each = 0.48 if apart else max(1.2 * style.full_row(names), 0.36)  # beside storage, names are above their rows
    height = 1.3 + each * max(len(rows), 1)
    with style.drawing(ax, figsize=figsize, height=height, title=title, xlabel=xlabel) as axes:
        if rows.empty:
            return style.nothing(axes, "no simulations or committed transactions")
        width, storage = style.free_width(axes), drawn.pop("storage") if apart else None
        _draw_bars(axes, rows, drawn, storage, xlabel.partition(" (")[0])
        rest = rows[[name for name in style.PART_COLOURS if name not in (parts or style.PART_COLOURS)]].sum(axis=1)
        off = (rows["total"] - rows[list(style.PART_COLOURS)].round().sum(axis=1)).abs()[rest.round() == 0]
        off = off[off.between(1, MAX_ROUNDING)]
        note = "" if off.empty else f"parts are rounded: sums may differ by {off.max():.0f}"
        lines, width = axes.get_xlabel().count("\n") + 1, width - style.beside(axes)
        legend_below(axes, axes.get_legend_handles_labels()[0], wanted=legend, lines=lines, width=width, note=note)
    return axes


def dwarfed(split: pd.DataFrame) -> bool:
    """Return whether storage dwarfs the other parts of a `breakdown`."""
    return bool(split["storage"].max() > style.DWARFS * (split["execution"] + split["io"]).max())


def breakdown(observations: pd.DataFrame) -> pd.DataFrame:
    """Return the gas split of each call and source, in gas units. Committed transactions are split by stratum.

    Parameters
    ----------
    observations : DataFrame
        A frame like `Run.observations`. If it has the column ``slots_created``, strata also depend on that column; if
        not, on whether a transaction pays for storage, since the price of a slot is not known.

    Returns
    -------
    DataFrame
        ``label``, ``source``, ``kind`` (the stratum; empty if the call has only one) and ``count`` (number of
        transactions in the stratum), and from the last of these transactions: ``success`` (bool), ``total``,
        ``execution``, ``io`` and ``storage`` (float64, gas units). Storage is 0 if the gas unit price is 0, since
        nothing is charged then.
    """
    rows = observations[observations["execution_gas_units"].notna()]
    if "ledger_version" in rows.columns:
        rows = rows.sort_values("ledger_version", kind="stable")
    if "slots_created" not in rows.columns:
        rows = rows.assign(pays_storage=rows["storage_fee_octas"].fillna(0) > 0)
    committed = rows["source"] == Source.COMMITTED
    keys = ["label", "source"]
    alone = rows[~committed]
    counts = alone.groupby(keys, sort=False)["label"].transform("size")
    last = alone.assign(count=counts).drop_duplicates(keys, keep="last")
    found = [_parts(last).assign(kind="", count=last["count"].to_numpy(dtype=np.int64))]
    for _, mine in rows[committed].groupby("label", sort=False):
        for kind, those in kinds_of(mine)[:6]:  # the most frequent
            found.append(_parts(those.tail(1)).assign(kind=kind, count=len(those)))
    labels = list(observations["label"].unique())
    every = pd.concat(found, ignore_index=True)
    place = every["label"].map({label: place for place, label in enumerate(labels)})
    order = every.assign(place=place).sort_values(["place", "source"], kind="stable").index
    names = dict(zip(labels, function_names(labels), strict=True))
    return every.loc[order].assign(label=every["label"].map(names)).reset_index(drop=True)


def _parts(rows: pd.DataFrame) -> pd.DataFrame:
    """Return each row's label, source and success, and the parts of its gas in gas units."""
    price = rows["gas_unit_price"].to_numpy(dtype=np.float64, na_value=0)
    octas = rows["storage_fee_octas"].to_numpy(dtype=np.float64, na_value=0)
    success = rows["success"] if "success" in rows.columns else pd.Series(data=True, index=rows.index)
    return pd.DataFrame(
        {
            "label": rows["label"].to_numpy(dtype=object),
            "source": rows["source"].to_numpy(dtype=object),
            "success": success.fillna(value=False).to_numpy(dtype=np.bool_),
            "total": rows["gas_used"].to_numpy(dtype=np.float64, na_value=0),
            "execution": rows["execution_gas_units"].to_numpy(dtype=np.float64),
            "io": rows["io_gas_units"].to_numpy(dtype=np.float64, na_value=0),
            "storage": np.divide(octas, price, out=np.zeros_like(octas), where=price > 0),
        }
    )


def _draw_bars(ax: Axes, rows: pd.DataFrame, colours: Mapping[str, Any], storage: Any | None, gas: str) -> None:
    """Draw the parts in `colours`, and beside them storage in its colour, unless it is None."""
    width = 0.0
    if storage is not None:
        width = style.free_width(ax) / 72
        _draw_storage(ax, rows, storage, gas)
    ends = _draw_parts(ax, rows, colours, names=[_bar_name(row) for row in plain_rows(rows)], width=width)
    inside = []
    for container, name in zip(ax.containers[-len(colours) :], colours, strict=True):
        for place, (bar, value) in enumerate(zip(container, rows[name], strict=True)):
            look: dict[str, Any] = {"size": "x-small", "color": style.on(colours[name]), "ha": "center"}
            text = style.write(ax, number(round(value)), (bar.get_x() + value / 2, place), gid="part", **look)
            text.set_in_layout(False)
            inside.append((bar, text))
    Placed(ax, partial(_place_numbers, inside))
    rest = rows[[name for name in style.PART_COLOURS if name not in colours]].sum(axis=1)
    totals = [f"{number(round(end))} of " if round(more) else "" for end, more in zip(ends, rest, strict=True)]
    for place, row in enumerate(plain_rows(rows)):
        totals[place] += f"{number(row['total'])}{'' if row['success'] else ' · failed'}"
    style.write_ends(ax, totals, gid="total")


def _place_numbers(inside: Sequence[tuple[Rectangle, Annotation]]) -> None:
    """Show the numbers that fit in their bars."""
    for bar, text in inside:
        text.set_visible(True)  # a hidden text has no extent
        there, free = text.get_window_extent(), bar.get_window_extent()
        text.set_visible(there.width < free.width and there.height < free.height)


def _draw_parts(
    ax: Axes, rows: pd.DataFrame, colours: Mapping[str, Any], *, names: Sequence[str], width: float = 0.0
) -> Floats:
    """Draw named rows of bars, whose values a page shows on hover; return their ends."""
    above = style.name_rows(ax, names, width=width)
    for text in ax.get_yticklabels() if above else ():
        text.set_in_layout(False)  # it may be over the axes beside
    style.whole_ticks(ax.xaxis)
    bars = [(f"part-{name}", rows[name].to_numpy(np.float64), colour, name) for name, colour in colours.items()]
    ends, drawn = style.stacked_bars(ax, bars, named_above=above)
    for name, bar in zip(colours, drawn, strict=True):
        for row, part in zip(plain_rows(rows), bar, strict=True):
            style.tip(part, f"{row['label']}: {name} {plural(round(row[name]), 'gas unit')}")
    return ends


def _draw_storage(ax: Axes, rows: pd.DataFrame, colour: Any, gas: str) -> None:
    """Give part of the width of axes to other axes, and draw storage on them."""
    place: Any = ax.get_subplotspec()
    label = f"storage ({gas})"
    if style.room(ax) < style.MIN_WIDE:  # on two lines, or the labels would be wider than the axes
        label = label.replace(" (", "\n(")
        ax.set_xlabel(ax.get_xlabel().replace(" (", "\n("))
    left, right = place.subgridspec(1, 2, width_ratios=STORAGE_BESIDE)
    ax.set_subplotspec(left)
    beside = ax.figure.add_subplot(right)
    ax.set_zorder(beside.get_zorder() + 1)  # names of rows may be over both
    with style.drawing(beside, title="", xlabel=label):
        beside.spines["left"].set_visible(False)
        ends = _draw_parts(beside, rows, {"storage": colour}, names=[""] * len(rows))
        style.write_ends(beside, [number(round(end)) if round(end) else "" for end in ends], gid="total")


def _bar_name(row: dict[str, Any]) -> str:
    label, source = figure_text(row["label"], 44), row["source"]
    if source in {Source.SIMULATE, Source.SIMULATE_AT_VERSION}:
        return label
    if source != Source.COMMITTED:
        return f"{label}\n({figure_text(source)})"
    count = row["count"]
    which = f"last of {count:,}".replace(" ", "\N{NO-BREAK SPACE}") if count > 1 else "one transaction"
    stratum = in_lines(f"{figure_text(row['kind'], 64)} ({which})", 40)  # on two lines
    return f"{label}\n{stratum}" if row["kind"] else f"{label} ({which})"
