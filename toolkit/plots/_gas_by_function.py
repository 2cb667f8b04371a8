"""The figure of a profile: which functions the gas of a call is spent in, as an icicle."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pandas as pd
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from toolkit._present.text import number, plural, short_addresses
from toolkit.errors import InputError
from toolkit.gas._series import require
from toolkit.plots import _style as style
from toolkit.plots._labels import figure_text, finish

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes


COLUMNS = ("stack", "category", "internal_gas")
COLOURS = {**style.PART_COLOURS, "rounding": style.GREY}
GAS_UNIT = 1_000_000  # internal gas units in a gas unit, if a frame is drawn: all public networks have this number
_CHARACTER_PT, _MIN_CHARACTERS = 4.9, 4
_GAP_PT = 0.8


@dataclass
class _Box:
    """A function in the icicle: its own gas by category, and the functions it calls."""

    own: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    callees: dict[str, _Box] = field(default_factory=dict)

    @property
    def gas(self) -> int:
        return sum(self.own.values()) + sum(box.gas for box in self.callees.values())

    @property
    def depth(self) -> int:
        return 1 + max([box.depth for box in self.callees.values()], default=1)


def gas_by_function(profile: Any, *, categories: Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
    """Draw which functions the gas of a call is spent in: an icicle, with callers above the functions they call.

    The width of a box is its gas with that of the functions it calls; the coloured boxes below a function are what it
    was charged itself, by kind. Functions of more gas are further left.

    Parameters
    ----------
    profile : GasProfile or DataFrame
        As `toolkit.embedded.Ledger.profile` returns it, or its ``to_frame()``.
    categories : sequence of {"execution", "io", "storage", "rounding"}, optional
        Kinds of charges that are drawn; all by default. New storage often costs far more than all the rest.
    ax : Axes, optional
        Axes to draw on; by default a new figure.

    Returns
    -------
    Axes
        x in gas units; one row per level of calls.

    Raises
    ------
    InputError
        If `profile` is something else, or a category does not exist.
    SchemaError
        If a frame lacks a column.

    Examples
    --------
    >>> import toolkit
    >>> from matplotlib.figure import Figure
    >>> from toolkit.embedded import Ledger
    >>> profile = Ledger.with_history(versions=200).profile(toolkit.ViewFunction("0xb00c::order_book::depth"))
    >>> axes = toolkit.plots.gas_by_function(profile, ax=Figure().subplots())
    >>> axes.get_title(loc="left")
    'Gas of order_book::depth by function: 28 gas units'
    """
    frame = profile.to_frame() if hasattr(profile, "to_folded") else profile
    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"gas_by_function draws a GasProfile or its to_frame(), got {type(profile).__name__}")
    require(frame, COLUMNS, what="figures of gas by function")
    unknown = [name for name in categories or () if name not in COLOURS]
    if unknown or isinstance(categories, str):
        raise InputError(f"categories must be a list of {', '.join(COLOURS)}, got {categories!r:.80}")
    drawn = frame if categories is None else frame[frame["category"].isin(list(categories))]
    boxes = _Box()
    for stack, category, gas in zip(drawn["stack"], drawn["category"], drawn["internal_gas"], strict=True):
        box = boxes
        for name in str(stack).split(";"):
            box = box.callees.setdefault(name, _Box())
        box.own[str(category)] += int(gas)
    levels = boxes.depth - 1
    unit = int(getattr(profile, "scaling", GAS_UNIT))
    title, height = _title(profile, boxes.gas, unit, categories), 1.35 + 0.34 * max(levels, 3)
    with style.drawing(ax, height=height, title=title, across=None) as axes:
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        if not boxes.gas:
            style.nothing(axes, "nothing was charged")
            return axes
        axes.set_xlim(0, boxes.gas / unit)
        axes.set_ylim(levels, 0)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=7, min_n_ticks=1))
        axes.xaxis.set_major_formatter(style.GAS_NUMBERS)
        unnamed = _draw(axes, boxes, 0, 0, unit)
        there = [name for name in COLOURS if (drawn["category"] == name).any()]
        notes = [style.MODEL_NOTE] + ([f"{plural(unnamed, 'function')} too narrow for a name"] if unnamed else [])
        finish(axes, [Patch(color=COLOURS[name], label=name) for name in there], notes)
    return axes


def _title(profile: Any, gas: int, unit: int, categories: Sequence[str] | None) -> str:
    call = "::".join(str(getattr(profile, "call", "")).split("::")[-2:])
    of = f" of {figure_text(call, 60)}" if call else ""
    which = "" if categories is None else f", {' and '.join(categories)} only"
    whole = f"{number(gas // unit)} gas units" if gas % unit == 0 else f"{gas / unit:,.1f} gas units"
    return f"Gas{of} by function{which}: {whole}"


def _draw(ax: Axes, box: _Box, left: int, level: int, unit: int) -> int:
    """Draw the functions that a box calls, then its own gas; return how many functions have no room for a name."""
    unnamed = 0
    for name, callee in sorted(box.callees.items(), key=lambda item: -item[1].gas):
        unnamed += not _rectangle(ax, name, (left, level, callee.gas), unit, colour=style.GRID)
        unnamed += _draw(ax, callee, left, level + 1, unit)
        left += callee.gas
    for category, colour in COLOURS.items():
        gas = box.own.get(category, 0)
        if gas:
            _rectangle(ax, "", (left, level, gas), unit, colour=colour)
            left += gas
    return unnamed


def _rectangle(ax: Axes, name: str, at: tuple[int, int, int], unit: int, *, colour: str) -> bool:
    """Draw a box of a given left edge, level and gas; return whether its name fits."""
    left, level, gas = at
    box = Rectangle((left / unit, level), gas / unit, 0.94, facecolor=colour, edgecolor=style.PAPER, linewidth=_GAP_PT)
    box.set_gid(f"function-{name}" if name else "own")
    ax.add_patch(box)
    if not name:
        return True
    first, last = ax.get_xlim()
    points = gas / unit / (last - first) * ax.get_window_extent().width * 72 / ax.figure.dpi
    room = int(points / _CHARACTER_PT)
    short = "::".join(short_addresses(name).split("::")[-2:])
    shown = short if len(short) <= room else short.rpartition("::")[2]
    if room < _MIN_CHARACTERS:
        return False
    style.write(ax, figure_text(shown, room), (left / unit, level + 0.47), gid="name", offset=(3, 0))
    return True
