"""Flame graphs: where a transaction spends its gas, and what another execution of it spends more or less."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from matplotlib.patches import Rectangle

from toolkit._present.text import plural, short_addresses, signed
from toolkit.errors import InputError
from toolkit.plots import _style as style
from toolkit.plots._labels import figure_text, legend_below, name_boxes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.text import Annotation

    from toolkit.vm._trace import Call, Profile

_GAS = ("execution", "io")
GAS_UNIT = 1_000_000  # internal gas units in a gas unit on all public networks
_MEANING = {1: "more gas after", -1: "less gas after", 0: "equal"}
_LEVEL = 0.34  # inches of a level
_MIN_SHARE = 0.0005  # of the width: narrower boxes are not seen


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
            gas, box = charge.internal_gas * GAS_UNIT // profile.scaling, self
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

    @property
    def levels(self) -> int:
        return 1 + max((one.levels for one in self.callees.values()), default=0)


def flame(
    before: Profile | ModelProfile,
    after: Profile | ModelProfile | None = None,
    *,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
    title: str | None = None,
) -> Axes:
    """Draw the functions in which a transaction spends its gas, with callers below the functions they call.

    The width of a box is the gas of the function and of what it calls, execution and io. With two profiles, the width
    is that of the larger side, and the colour says which side spends more: orange if `after` does, blue if `before`
    does, grey if both spend the same.

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
    >>> from toolkit.vm._trace import Call, Profile
    >>> inner = Call("0xcafe::shop::price", 1, own=2_000_000)
    >>> profile = Profile(Call("transaction", 1, own=1_000_000, children={inner.function: inner}))
    >>> toolkit.plots.flame(profile, ax=Figure().subplots()).get_title()
    'Gas by function: 3 gas units'
    """
    root = _Box("transaction")
    _add(root, before, "after" if after is None else "before")
    if after is not None:
        _add(root, after, "after")
    shape: dict[str, Any] = {"figsize": figsize, "height": 1.2 + _LEVEL * max(root.levels, 3), "across": None}
    model = hasattr(before, "charges") or hasattr(after, "charges")
    if title is None:
        title = f"Gas by function: {_total(root, compared=after is not None)}"
    with style.drawing(ax, title=title, xlabel=style.gas_label(model=model), **shape) as axes:
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        if not root.width:
            return style.nothing(axes, "no gas was charged")
        axes.set_xlim(0, root.width / GAS_UNIT)
        axes.set_ylim(0, root.levels)
        name_boxes(axes, _draw(axes, root, (0, 0), compared=after is not None))
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
    return f"{_units(root.before)} before, {_units(root.after)} after" if compared else _units(root.after)


def _units(gas: int) -> str:
    return plural(gas // GAS_UNIT, "gas unit") if gas % GAS_UNIT == 0 else f"{gas / GAS_UNIT:,.2f} gas units"


def _draw(
    ax: Axes, box: _Box, at: tuple[int, int], *, compared: bool
) -> list[tuple[Rectangle, Annotation, Sequence[str]]]:
    """Draw a box and the boxes of what it calls, starting at a left edge and level; return the boxes with names."""
    left, level = at
    colour = _colour(ax, box, compared=compared)
    look = {"facecolor": colour, "edgecolor": style.paper(ax), "linewidth": 0.8}
    if compared:
        look["label"] = style.once(ax, _MEANING[int(np.sign(box.after - box.before))])
    drawn = Rectangle((left / GAS_UNIT, level), box.width / GAS_UNIT, 0.94, gid=f"function-{box.name}", **look)
    ax.add_patch(drawn)
    style.tip(drawn, f"{short_addresses(box.name)}: {_total(box, compared=compared)}")
    short = "::".join(short_addresses(box.name.partition("<")[0]).split("::")[-2:])
    change = ""
    if compared and box.before != box.after:
        change = f" {signed((box.after - box.before) / GAS_UNIT, ',.2f')}"
    names = [figure_text(text, 80) for text in (f"{short}{change}", short, short.rpartition("::")[2])]
    text = style.write(ax, names[0], (left / GAS_UNIT, level + 0.47), gid="name", offset=(3, 0))
    text.set_in_layout(False)
    text.set_color(style.on(colour))
    named: list[tuple[Rectangle, Annotation, Sequence[str]]] = [(drawn, text, names)]
    whole = ax.get_xlim()[1] * GAS_UNIT
    for callee in sorted(box.callees.values(), key=lambda one: -one.width):
        if callee.width >= _MIN_SHARE * whole:
            named += _draw(ax, callee, (left, level + 1), compared=compared)
        left += callee.width
    return named


def _colour(ax: Axes, box: _Box, *, compared: bool) -> Any:
    if not compared or box.before == box.after:
        return style.faint(ax)
    return style.ORANGE if box.after > box.before else style.BLUE
