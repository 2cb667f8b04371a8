"""Labels keep their distance and their order; text in figures is drawn literally."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot as plt
from matplotlib.cbook import is_math_text

from tests.unit.plots.synthetic_hostile import HOSTILE
from toolkit._present.text import visible
from toolkit.plots._labels import figure_text, spread
from toolkit.plots._style import in_one_line, shortened


@given(st.lists(st.floats(0, 300), max_size=30))
def test_spread_positions_keep_distance_order_and_room(wanted: list[float]) -> None:
    """Neighbours are apart by their size (or all there is room for), inside the room, in order."""
    placed = spread(wanted, [12] * len(wanted), 0, 300)
    assert len(placed) == len(wanted)
    order = np.argsort(wanted, kind="stable")
    ordered = np.asarray(placed)[order] if placed else np.array([])
    gap = min(12, 300 / max(len(wanted) - 1, 1))
    assert (np.diff(ordered) >= gap - 1e-6).all()
    assert all(-1e-6 <= place <= 300 + 1e-6 for place in placed)


def test_spread_moves_only_what_collides() -> None:
    """Positions far enough apart stay; three at one place end up around it."""
    assert spread([100, 20, 60], [12, 12, 12], 0, 300) == [100, 20, 60]
    assert spread([50, 50, 50], [10, 10, 10], 0, 300) == pytest.approx([40, 50, 60])
    assert np.diff(spread([50, 50, 50], [10, 30, 10], 0, 300)) == pytest.approx([20, 20])


@given(st.text(max_size=80))
def test_figure_text_is_never_mathtext(text: str) -> None:
    """Dollar signs never start mathtext, and every character has a glyph."""
    assert not is_math_text(figure_text(text)) or "$" not in text


@pytest.mark.parametrize("label", [*HOSTILE.values(), "$x^2$ $\\frac{ \\$", "$x^2$", r"\\alpha", "_a_", "%"])
def test_figure_text_is_drawn_literally(label: str) -> None:
    """The text that matplotlib draws is the visible text: without mathtext, and with its dollar signs."""
    figure = plt.figure()
    artist = figure.text(0, 0, figure_text(label, 80))
    drawn, is_math = artist._preprocess_math(artist.get_text())
    plt.close(figure)
    assert not is_math
    shown = visible(label, 80)
    assert len(drawn) == len(shown)
    assert all(one in {other, "□"} for one, other in zip(drawn, shown, strict=True))


def test_figure_text_uses_the_fonts_that_are_set() -> None:
    """A character is a box only where no set font has it."""
    assert figure_text("🚀 é Ж") == "□ é Ж"
    with mpl.rc_context({"font.family": ["STIXNonUnicode"]}):
        assert "Ж" not in figure_text("Ж")


@pytest.mark.parametrize(
    ("name", "limit", "shown"),
    [
        ("order book depth · 3,561 to 4,136", 25, "orde…pth · 3,561 to 4,136"),
        ("aptos_account::transfer", 20, "aptos_acc…::transfer"),
        ("registry::register(zoe)", 14, "register(zoe)"),
        ("order_book::place(true, 100)", 14, "place(t…, 100)"),
        ("transfer", 8, "transfer"),
        ("registrations · execution · 3,502", 25, "re…ns · execution · 3,502"),
    ],
)
def test_a_name_loses_its_module_before_its_function_and_never_its_version(name: str, limit: int, shown: str) -> None:
    """A version that is cut would be another version."""
    assert shortened(name, limit) == shown
    assert len(shown) <= limit


@pytest.mark.parametrize("limit", [25, 32, 40, 50])
def test_of_two_lines_in_one_the_second_is_cut_before_the_part_and_the_version(limit: int) -> None:
    """What a row is about is never cut: not its part of the gas, and not its version."""
    shown = in_one_line("registrations · execution · 3,502\nfailing, abort code 0x80001\n(already exists)", limit)
    assert " · execution · 3,502" in shown
    assert len(shown) <= limit
    assert (", fail" in shown) == (limit >= 32)
