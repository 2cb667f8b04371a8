"""Flame graphs: where a transaction spends its gas, and what another execution of it spends more or less."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from toolkit._present.text import number, short_addresses
from toolkit.errors import InputError
from toolkit.plots import _boxes as boxes
from toolkit.plots import _style as style
from toolkit.plots._labels import figure_text, name_boxes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from toolkit.vm._results import Call, Profile

_GAS = ("execution", "io")
_SIDES = "before", "after"
_TONE = 0.35, 0.7  # share of a module's colour in its boxes, light and dark: the contrast of their texts is 4.5 or more


def flame(
    before: Profile | Any,
    after: Profile | Any | None = None,
    *,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
    title: str | None = None,
) -> Axes:
    """Draw the functions in which a transaction spends its gas, with callers above the functions they call.

    The width of a box is the gas of the function and of what it calls, execution and io, and its colour that of the
    module. With two profiles, the width is that of the larger side, and the colour says which side spends more: orange
    if `after` does, blue if `before` does, grey if both spend the same. Functions with less than 1 % of the gas are
    omitted. The legend explains the numbers of narrow boxes.

    Parameters
    ----------
    before : Profile
        Profile of a simulation on a fork, of a replay or of `toolkit.embedded.Ledger.profile`; with `after`, the one to
        compare with.
    after : Profile, optional
        Profile of the other execution.
    ax : Axes, optional
        Axes to draw on; by default, a new figure.
    figsize : (float, float), optional
        Size in inches.
    title : str, optional

    Returns
    -------
    Axes
        The x axis is in gas units. There is one row per level of the call stack.

    Raises
    ------
    InputError
        If an argument is not a profile.

    Examples
    --------
    >>> import toolkit
    >>> from matplotlib.figure import Figure
    >>> from toolkit.vm._results import Call, Profile
    >>> inner = Call("0xcafe::shop::price", 1, own=2_000_000)
    >>> profile = Profile(Call("transaction", 1, own=1_000_000, children={inner.function: inner}))
    >>> toolkit.plots.flame(profile, ax=Figure().subplots()).get_title()
    'Execution and io gas of shop::price: 3 gas units'
    """
    root = boxes.Box()
    _add(root, before, "after" if after is None else "before")
    if after is not None:
        _add(root, after, "after")
    whole = _width(root)
    functions = [boxes.short_name(name) for name in root.callees if "::" in name]  # of a script, there may be several
    root.omit(boxes.MIN_SHARE * whole, _width)
    compared = after is not None
    model = hasattr(before, "charges") or hasattr(after, "charges")
    if title is None:
        of = f"of {figure_text(functions[0], 60)}" if len(functions) == 1 else "by function"
        title = f"Execution and io gas {of}: {_total(root, compared=compared)}"
    shape: dict[str, Any] = {"figsize": figsize, "height": boxes.height(root.levels), "across": None}
    xlabel = style.gas_label(model=model) + (", the larger side" if compared else "")
    with style.drawing(ax, title=title, xlabel=xlabel, **shape) as axes:
        if boxes.set_axes(axes, whole, root.levels):
            name_boxes(axes, _draw(axes, "transaction", root, (0, 0), None if compared else {}))
    return axes


def _add(root: boxes.Box, profile: Any, side: str) -> None:
    """Add the gas of one side; of the embedded node's, storage and rounding are not gas of a function."""
    if hasattr(profile, "tree"):
        _add_call(root, profile.tree, side)
    elif hasattr(profile, "charges"):
        for charge in profile.charges:
            if charge.category in _GAS:  # the first of a stack is the whole transaction or view
                root.add(charge.stack[1:], side, charge.internal_gas * boxes.GAS_UNIT // profile.scaling)
    else:
        raise InputError(f"flame: expected a profile, {boxes.PROFILES}, got {type(profile).__name__}")


def _add_call(box: boxes.Box, call: Call, side: str) -> None:
    box.own[side] += call.own
    for name, callee in call.children.items():
        _add_call(box.callees.setdefault(name, boxes.Box()), callee, side)


def _width(box: boxes.Box) -> int:
    """Return the gas of the side that is larger, or of the callees if they take more together."""
    return max(*map(box.gas, _SIDES), sum(map(_width, box.callees.values())))


def _total(box: boxes.Box, *, compared: bool) -> str:
    before, after = (number(box.gas(side) / boxes.GAS_UNIT) for side in _SIDES)
    return f"{before} before, {after} after" if compared else boxes.units_text(box.gas("after"))


def _draw(ax: Axes, name: str, box: boxes.Box, at: boxes.At, modules: dict[str, int] | None) -> list[boxes.Named]:
    """Draw a box and the boxes of what it calls, starting at a left edge and level; return the boxes with names.

    `modules` has the place in the palette of each module drawn so far; None if two profiles are compared.
    """
    (left, level), compared = at, modules is None
    before, after = map(box.gas, _SIDES)
    moved = after - before if compared else 0
    side = int(np.sign(moved))
    look: dict[str, Any] = {"facecolor": (style.faint(ax), style.tone(style.ORANGE), style.tone(style.BLUE))[side]}
    if compared:
        look["label"] = style.once(ax, ("equal", "more gas after (+)", "less gas after (\N{MINUS SIGN})")[side])
    if modules is not None and (module := name.partition("<")[0].rpartition("::")[0]):
        place = modules.setdefault(module, len(modules)) % len(style.PALETTE)
        look["facecolor"] = style.mixed(style.tone(style.PALETTE[place]), style.paper(ax), _TONE[style.is_dark()])
        look["label"] = style.once(ax, figure_text(short_addresses(module)))
    gas = "" if compared else number(after / boxes.GAS_UNIT)
    if moved:
        gas = ("+" if moved > 0 else "\N{MINUS SIGN}") + number(abs(moved) / boxes.GAS_UNIT)
    named = [boxes.draw_function(ax, at, _width(box), name, gas_text=gas, **look)]
    style.tip(named[0][0], f"{short_addresses(name)}: {_total(box, compared=compared)}")
    for callee, one in sorted(box.callees.items(), key=lambda item: -_width(item[1])):
        named += _draw(ax, callee, one, (left, level + 1), modules)
        left += _width(one)
    return named
