"""The figure of a gas profile: an icicle of the functions in which a call spends its gas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from toolkit._present.text import number
from toolkit.errors import InputError
from toolkit.gas._series import described
from toolkit.plots import _boxes as boxes
from toolkit.plots import _style as style
from toolkit.plots._labels import figure_text, name_boxes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from toolkit.plots._style import Colors


COLUMNS = ("stack", "category", "internal_gas")
COLOURS = {**style.PART_COLOURS, "rounding": style.GREY}
MIN_WHOLE = 10  # gas units, which lose little without decimals if there is no room for them
MAX_OPERATIONS, OTHERS = 6, "other operations"


def gas_by_function(
    profile: Any,
    *,
    categories: Sequence[str] | None = None,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
    title: str | None = None,
    colors: Colors = None,
    legend: bool = True,
) -> Axes:
    """Draw the functions in which a call spends its gas as an icicle, with callers above the functions they call.

    The width of a box is the function's gas, including the functions it calls. The coloured boxes below a function are
    its own charges, with their gas: by category, or by operation if all are of one category. Functions that use more
    gas are further to the left; those with less than 1 % of it are part of their callers. Names are drawn where they
    fit; the legend explains the numbers of narrow functions.

    Parameters
    ----------
    profile : GasProfile or DataFrame
        A profile from `toolkit.embedded.Ledger.profile`, or its ``to_frame()``.
    categories : sequence of {"execution", "io", "storage", "rounding"}, optional
        Kinds of charges to draw. By default all, or all but storage if it costs more than five times the rest, whose
        boxes would be too narrow to see; the title then states how much storage costs.
    ax : Axes, optional
        Axes to draw on; by default, a new figure.
    figsize, title, colors, legend
        As in `gas_by_version`; `colors` sets the colours of the categories.

    Returns
    -------
    Axes
        The x axis is in gas units. There is one row per level of the call stack.

    Raises
    ------
    InputError
        If `profile` is neither of these, or `categories` or `colors` contains an unknown name.

    Examples
    --------
    >>> import toolkit
    >>> from matplotlib.figure import Figure
    >>> from toolkit.embedded import Ledger
    >>> profile = Ledger.with_history(versions=200).profile(toolkit.ViewFunction("0xb00c::order_book::depth"))
    >>> axes = toolkit.plots.gas_by_function(profile, ax=Figure().subplots())
    >>> axes.get_title()
    'Gas of order_book::depth by function: 28 gas units'
    """
    frame = profile.to_frame() if hasattr(profile, "scaling") else profile
    if not isinstance(frame, pd.DataFrame) or not {*COLUMNS} <= {*frame.columns}:
        raise InputError(
            f"gas_by_function: expected a GasProfile or its to_frame(), {boxes.PROFILES}, got {described(profile)}"
        )
    unknown = [name for name in categories or () if name not in COLOURS]
    if unknown or isinstance(categories, str):
        raise InputError(f"categories: expected a list of names from {', '.join(COLOURS)}, got {categories!r:.80}")
    chosen = list(COLOURS if categories is None else categories)
    storage = int(frame.loc[frame["category"] == "storage", "internal_gas"].sum())
    dwarfed = categories is None and storage > style.DWARFS * (frame["internal_gas"].sum() - storage) > 0
    drawn = frame[frame["category"].isin(set(chosen) - ({"storage"} if dwarfed else set()))]
    there = {name: colour for name, colour in COLOURS.items() if (drawn["category"] == name).any()}
    kind = "category" if len(there) > 1 or "operation" not in drawn else "operation"
    if kind == "operation":
        there = _operations(drawn)
    root = boxes.Box()  # not drawn, but the charges below the last level are
    for stack, name, gas in zip(drawn["stack"], drawn[kind], drawn["internal_gas"], strict=True):
        root.add(str(stack).split(";"), str(name) if name in there else OTHERS, int(gas))
    root.omit(boxes.MIN_SHARE * root.gas(), boxes.Box.gas)
    unit = int(getattr(profile, "scaling", boxes.GAS_UNIT))
    colours = style.chosen(there, colors)
    if title is None:
        which = f" without storage ({number(round(storage / unit))})" if dwarfed else ""
        if categories is not None and len(drawn) < len(frame):
            which = f", {' and '.join(', '.join(categories).rsplit(', ', 1))} only"
        title = f"{_title(profile)}: {boxes.units_text(root.gas(), unit)}{which}"
    shape: dict[str, Any] = {"figsize": figsize, "height": boxes.height(root.levels), "across": None}
    with style.drawing(ax, title=title, xlabel=style.gas_label(model=True), **shape) as axes:
        if boxes.set_axes(axes, root.gas(), root.levels, unit):
            name_boxes(axes, _draw(axes, root, (0, 0), unit, colours), wanted=legend)
    return axes


def _operations(drawn: pd.DataFrame) -> dict[str, Any]:
    """Return the operations with the most gas and their colours; the others are grey."""
    gas = drawn.groupby("operation")["internal_gas"].sum().sort_values(ascending=False, kind="stable")
    names = [str(name) for name in gas.index[: MAX_OPERATIONS if len(gas) > MAX_OPERATIONS + 1 else len(gas)]]
    colours = dict(zip(names, style.cycle_colours(range(len(names))), strict=True))
    return colours if len(names) == len(gas) else colours | {OTHERS: style.GREY}


def _title(profile: Any) -> str:
    call = "::".join(str(getattr(profile, "call", "")).split("::")[-2:])
    return f"Gas{f' of {figure_text(call, 60)}' if call else ''} by function"


def _draw(ax: Axes, box: boxes.Box, at: boxes.At, unit: int, colours: Mapping[str, Any]) -> list[boxes.Named]:
    """Draw a box's callees and then its own gas, starting at a left edge and level; return the boxes with names."""
    left, level = at
    named: list[boxes.Named] = []
    for name, callee in sorted(box.callees.items(), key=lambda item: -item[1].gas()):
        gas = callee.gas()
        look = {"gas_text": number(gas / unit), "facecolor": style.faint(ax)}
        named.append(boxes.draw_function(ax, (left, level), gas, name, unit=unit, **look))
        named += _draw(ax, callee, (left, level + 1), unit, colours)
        left += gas
    for category, colour in colours.items():
        if gas := box.own[category]:
            look = {"facecolor": colour, "gid": "own", "label": style.once(ax, category)}
            whole = [number(round(gas / unit))] if gas >= MIN_WHOLE * unit else []
            names = [f"{figure_text(category)} {(text := number(gas / unit))}", text, *whole, ""]
            named.append(boxes.draw_box(ax, (left, level), gas, names, unit, **look))
            left += gas
    return named
