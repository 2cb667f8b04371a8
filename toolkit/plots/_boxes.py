"""Boxes of functions in figures of profiles: as wide as their gas, one level below their caller, as code is read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from matplotlib.patches import Rectangle

from toolkit._present.text import number, plural, short_addresses
from toolkit.plots import _style as style
from toolkit.plots._labels import BOX_MARGIN, figure_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.text import Annotation

    Named = tuple[Rectangle, Annotation, Sequence[str]]
    At = tuple[int, int]  # left edge in internal gas, and level


GAS_UNIT = 1_000_000  # internal gas units in a gas unit on all public networks
MIN_LEVELS = 3
MIN_SHARE = 0.01  # of the width: narrower boxes are lines without a name
PROFILES = "such as fork.simulate(...).profile"  # for messages
_LEVEL = 0.34  # inches of a level


@dataclass
class Box:
    """A function: its own gas by kind of charge, or by side of a comparison, and the functions that it calls."""

    own: Counter[str] = field(default_factory=Counter)
    callees: dict[str, Box] = field(default_factory=dict)

    def add(self, stack: Iterable[str], kind: str, gas: int) -> None:
        """Add own gas of the function at the end of a stack of callees."""
        box = self
        for name in stack:
            box = box.callees.setdefault(name, Box())
        box.own[kind] += gas

    def gas(self, *kinds: str) -> int:
        """Return the gas of these kinds, or of all, with that of the callees."""
        return sum(self.own[kind] for kind in kinds or self.own) + sum(one.gas(*kinds) for one in self.callees.values())

    def omit(self, least: float, width: Callable[[Box], int]) -> None:
        """Make the gas of callees narrower than that their caller's own."""
        for name, callee in list(self.callees.items()):
            narrow = width(callee) < least
            callee.omit(least, width)
            if narrow:
                self.own.update(callee.own)
                del self.callees[name]

    @property
    def levels(self) -> int:
        return 1 + max((one.levels for one in self.callees.values()), default=0)


def units_text(gas: int, unit: int = GAS_UNIT) -> str:
    """Return internal gas as gas units."""
    return plural(gas // unit, "gas unit") if gas % unit == 0 else f"{number(gas / unit)} gas units"


def height(levels: int) -> float:
    """Return the height in inches of a figure with so many levels."""
    return 1.2 + _LEVEL * max(levels, MIN_LEVELS)


def set_axes(ax: Axes, gas: int, levels: int, unit: int = GAS_UNIT) -> bool:
    """Set the limits of axes; without gas, say so and return False."""
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    if not gas:
        style.nothing(ax, "no gas was charged")
        return False
    ax.set_xlim(0, gas / unit)
    ax.set_ylim(levels, 0)
    style.whole_ticks(ax.xaxis)
    return True


def draw_box(ax: Axes, at: At, gas: int, names: Sequence[str], unit: int = GAS_UNIT, **look: Any) -> Named:
    """Draw a box; return it with its text and the names that it may have."""
    left, level = at
    box = Rectangle((left / unit, level), gas / unit, 0.94, edgecolor=style.paper(ax), linewidth=0.8, **look)
    ax.add_patch(box)
    text = style.write(ax, names[0], (left / unit, level + 0.47), gid="name", offset=(BOX_MARGIN / 2, 0))
    text.set_in_layout(False)
    text.set_color(style.on(look["facecolor"]))
    return box, text, names


def short_name(function: str) -> str:
    """Return the module and the name of a function."""
    return "::".join(short_addresses(function.partition("<")[0]).split("::")[-2:])


def draw_function(
    ax: Axes, at: At, gas: int, name: str, *, unit: int = GAS_UNIT, gas_text: str = "", **look: Any
) -> Named:
    """Draw the box of a function; return it with its text and the names that it may have, the longest first."""
    short = short_name(name)
    names = [figure_text(text, 80) for text in (f"{short} {gas_text}".rstrip(), short, short.rpartition("::")[2])]
    return draw_box(ax, at, gas, names, unit, gid=f"function-{name}", **look)
