"""Flame graphs: where a transaction spends its gas, and what another execution of it spends more or less."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from toolkit._present.text import number, short_addresses, signed
from toolkit.errors import InputError
from toolkit.plots import _boxes as boxes
from toolkit.plots import _style as style
from toolkit.plots._labels import legend_below, name_boxes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from toolkit.vm._results import Call, Profile

_GAS = ("execution", "io")
_MIN_SHARE = 0.01  # of the width: narrower boxes are lines without a name


class ModelProfile(Protocol):
    """A profile of the embedded node, which the package that draws does not import."""

    @property
    def charges(self) -> Sequence[Any]: ...

    @property
    def scaling(self) -> int: ...


@dataclass
class _Box:
    """A function in a stack, with the gas of both sides; `after` only, if there is one side."""

    name: str
    before: int = 0
    after: int = 0
    callees: dict[str, _Box] = field(default_factory=dict)

    def add(self, call: Call, side: str) -> None:
        """Add the calls of one side."""
        self.spend(call.total, side)
        for name, callee in call.children.items():
            self.callees.setdefault(name, _Box(name)).add(callee, side)

    def add_model(self, profile: ModelProfile, side: str) -> None:
        """Add the charges of one side, on the embedded node; storage and rounding are not gas of a function."""
        for charge in profile.charges:
            if charge.category not in _GAS:
                continue
            gas, box = charge.internal_gas * boxes.GAS_UNIT // profile.scaling, self
            box.spend(gas, side)
            for name in charge.stack[1:]:  # the first is the whole transaction or view
                box = box.callees.setdefault(name, _Box(name))
                box.spend(gas, side)

    def spend(self, gas: int, side: str) -> None:
        """Add gas to one side."""
        setattr(self, side, getattr(self, side) + gas)

    @property
    def width(self) -> int:
        """Gas of the side that is larger, or of the callees if they take more together."""
        return max(self.before, self.after, sum(one.width for one in self.callees.values()))

    def levels(self, least: float) -> int:
        """Return the number of levels of functions with at least so much gas."""
        return 1 + max((one.levels(least) for one in self.callees.values() if one.width >= least), default=0)


def flame(
    before: Profile | ModelProfile,
    after: Profile | ModelProfile | None = None,
    *,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
    title: str | None = None,
) -> Axes:
    """Draw the functions in which a transaction spends its gas, with callers above the functions they call.

    The width of a box is the gas of the function and of what it calls, execution and io. With two profiles, the width
    is that of the larger side, and the colour says which side spends more: orange if `after` does, blue if `before`
    does, grey if both spend the same. Functions with less than 1 % of the gas are omitted. The legend explains the
    numbers of narrow boxes.

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
    'Execution and io gas by function: 3 gas units'
    """
    root = _Box("transaction")
    _add(root, before, "after" if after is None else "before")
    if after is not None:
        _add(root, after, "after")
    compared = after is not None
    model = hasattr(before, "charges") or hasattr(after, "charges")
    title = f"Execution and io gas by function: {_total(root, compared=compared)}" if title is None else title
    least = _MIN_SHARE * root.width
    levels = root.levels(least)
    shape: dict[str, Any] = {"figsize": figsize, "height": boxes.height(levels), "across": None}
    xlabel = style.gas_label(model=model) + (", the larger side" if compared else "")
    with style.drawing(ax, title=title, xlabel=xlabel, **shape) as axes:
        if boxes.set_axes(axes, root.width, levels):
            name_boxes(axes, _draw(axes, root, (0, 0), least, compared=compared))
            legend_below(axes, axes.get_legend_handles_labels()[0])
    return axes


def _add(root: _Box, profile: Any, side: str) -> None:
    if hasattr(profile, "tree"):
        root.add(profile.tree, side)
    elif hasattr(profile, "charges"):
        root.add_model(profile, side)
    else:
        raise InputError(f"flame: expected a profile, such as that of a replay, got {type(profile).__name__}")


def _total(root: _Box, *, compared: bool) -> str:
    before, after = (number(gas / boxes.GAS_UNIT) for gas in (root.before, root.after))
    return f"{before} before, {after} after" if compared else boxes.units_text(root.after)


def _draw(ax: Axes, box: _Box, at: boxes.At, least: float, *, compared: bool) -> list[boxes.Named]:
    """Draw a box and the boxes of what it calls, starting at a left edge and level; return the boxes with names."""
    left, level = at
    moved = box.after - box.before if compared else 0
    side = int(np.sign(moved))
    look: dict[str, Any] = {"facecolor": (style.faint(ax), style.tone(style.ORANGE), style.tone(style.BLUE))[side]}
    if compared:
        look["label"] = style.once(ax, ("equal", "more gas after (+)", "less gas after (\N{MINUS SIGN})")[side])
    gas = signed(moved / boxes.GAS_UNIT, ",.2f") if moved else "" if compared else number(box.after / boxes.GAS_UNIT)
    named = [boxes.draw_function(ax, at, box.width, box.name, gas_text=gas, **look)]
    style.tip(named[0][0], f"{short_addresses(box.name)}: {_total(box, compared=compared)}")
    for callee in sorted(box.callees.values(), key=lambda one: -one.width):
        if callee.width >= least:
            named += _draw(ax, callee, (left, level + 1), least, compared=compared)
        left += callee.width
    return named
