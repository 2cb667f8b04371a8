"""Text from users and the chain cannot hide, reorder or be read as markup by matplotlib."""

from __future__ import annotations

import unicodedata

import matplotlib as mpl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.cbook import is_math_text

from tests.unit.plots.synthetic_hostile import HOSTILE
from toolkit._present.text import HIDDEN, visible
from toolkit.plots.text import figure_text


@given(st.text(max_size=400), st.integers(2, 300))
def test_visible_shows_everything_on_one_line_within_the_limit(text: str, limit: int) -> None:
    """No hidden character survives, and the limit holds, whatever the text."""
    shown = visible(text, limit)
    assert len(shown) <= limit
    assert not {unicodedata.category(char) for char in shown} & HIDDEN


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain 0x1::coin", "plain 0x1::coin"),
        ("a\nb\tc", r"a\nb\tc"),
        ("\u202egpj.exe", r"\u202egpj.exe"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("zero\u200bwidth", r"zero\u200bwidth"),
        (None, "None"),
    ],
)
def test_visible_writes_hidden_characters_as_escapes(text: object, shown: str) -> None:
    """Controls, bidirectional overrides and zero-width characters are spelt out."""
    assert visible(text) == shown


def test_visible_cuts_long_text_with_an_ellipsis() -> None:
    """What does not fit is marked as cut."""
    assert visible("a" * 500, 10) == "a" * 9 + "…"
    assert visible("a" * 10, 10) == "a" * 10


def test_visible_keeps_towers_of_marks_low() -> None:
    """A letter keeps at most a few combining marks."""
    assert sum(map(unicodedata.combining, visible("z" + "\u0316" * 90))) <= 2 * 220


@given(st.text(max_size=80))
def test_figure_text_is_never_mathtext(text: str) -> None:
    """Dollar signs never start mathtext, and every character has a glyph."""
    assert not is_math_text(figure_text(text)) or "$" not in text


@pytest.mark.parametrize("label", HOSTILE.values())
def test_figure_text_restores_dollars_when_shown(label: str) -> None:
    """What matplotlib shows for it has the dollars of the visible text."""
    shown = figure_text(label, 80).replace(r"\$", "$")
    assert shown.count("$") == visible(label, 80).count("$")


def test_figure_text_uses_the_fonts_that_are_set() -> None:
    """A character is a box only where no set font has it."""
    assert figure_text("🚀 é Ж") == "□ é Ж"
    with mpl.rc_context({"font.family": ["STIXNonUnicode"]}):
        assert "Ж" not in figure_text("Ж")
