"""Text made harmless: what cannot be seen is spelt out, lines stay one line, lengths are bounded."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit._present.text import HIDDEN, MAX_MARKS, cleaned, csv_text, short_addresses, visible


@given(st.text(st.characters(codec=None)), st.integers(1, 60))
def test_nothing_hidden_is_left_and_the_limit_holds(text, limit):
    """Whatever the text: no control, format or surrogate character, at most `limit` characters."""
    shown = visible(text, limit)
    assert len(shown) <= limit
    assert not {unicodedata.category(char) for char in shown} & HIDDEN


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=200))
def test_plain_text_is_as_it_was(text):
    """Printable ASCII within the limit passes unchanged."""
    assert visible(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain 0x1::coin", "plain 0x1::coin"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("safe\u202eexe.txt", "safe\\u202eexe.txt"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("line\u2028end", "line\\u2028end"),
        ("lone \ud800", "lone \\ud800"),
        ("e\u0301", "é"),
        (None, "None"),
        (2**200, str(2**200)),
    ],
)
def test_what_cannot_be_seen_is_spelt_out(text, shown):
    """Escapes as Python writes them; letters with an accent stay letters."""
    assert visible(text) == shown


def test_what_is_cut_ends_in_an_ellipsis():
    """An escape is never cut in the middle."""
    assert visible("x" * 50, 10) == "x" * 9 + "…"
    assert visible("abcdefg\u202ehij", 10) == "abcdefg…"


def test_towers_of_marks_are_levelled():
    """A letter keeps two marks: more would run over the lines around it."""
    shown = visible("q" + "\u0323" * 500 + "z")
    assert sum(map(bool, map(unicodedata.combining, shown))) == MAX_MARKS
    assert shown.endswith("z")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("0x" + "0" * 59 + "a11ce::m::f", "0xa11ce::m::f"),
        ("0x" + "0" * 64, "0x0"),
        ("0x" + "ab" * 32, "0xababab…abab"),
        ("0x1::m<0x" + "0" * 63 + "2::n::T>", "0x1::m<0x2::n::T>"),
        ("0x0" + "ab" * 31 + "c", "0x0ababa…babc"),
        ("0x" + "ab" * 31, "0xababab…abab"),
        *((f"0x0{digits}", f"0x0{digits}") for digits in ("37a6f65", "0" * 15 + "1", "962697263682d373638", "1" * 39)),
        ("0xABC and 0xzz", "0xABC and 0xzz"),
        ("0x" + "a" * 65, "0x" + "a" * 65),
    ],
)
def test_addresses_are_spelt_as_people_do(text, shown):
    """Without leading zeros, long ones by both ends; other text stays."""
    assert short_addresses(text) == shown


@given(st.text(st.characters(codec=None)))
def test_a_cleaned_text_has_its_lines_and_nothing_hidden(text):
    """Newlines stay; cleaning again changes nothing; no length is lost."""
    shown = cleaned(text)
    assert shown.count("\n") == text.count("\n")
    assert not {unicodedata.category(char) for char in shown.replace("\n", "")} & HIDDEN
    assert cleaned(shown) == shown
    assert len(shown) >= len(text)


@pytest.mark.parametrize("char", ["\u3164", "\uffa0", "\u115f", "\u034f"])
def test_letters_that_are_drawn_as_nothing_are_shown(char):
    """Fillers are letters to Unicode, and invisible."""
    assert cleaned(f"a{char}b") == visible(f"a{char}b") == f"a{char.encode('unicode_escape').decode()}b"


@pytest.mark.parametrize(
    "text",
    [
        "=1+1", "+1", "-A1", "@SUM(A1)", "|cmd", "%PATH%", "\t=1", "\r=1", "\n=1", " =1", "\u3000=1", "\xa0=1", "\x00=1",
        "\ufeff=1", "\u200b=1", "\u202e=1", "\uff1d1", "\uff0b1", "\uff0d1", "\uff20SUM", "\uff5ccmd", "\uff05x",
        "\ufe66 1", "  \n\t =1", "-1+cmd|' /C calc'!A0", "--1", "-", "-1e5", "-5", "\tplain", "\nplain",
    ],
)  # fmt: skip
def test_what_a_spreadsheet_may_run_is_text(text):
    """An apostrophe in front makes it text."""
    assert csv_text(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", " ", "0x1::coin", "a=b", "5", "'=1", '{"a": 1}', "\u2212 5", "x|y"])
def test_other_cells_stay_as_they_are(text):
    """The guard changes nothing else."""
    assert csv_text(text) == text


def test_ids_of_modules_are_those_of_move() -> None:
    """Nodes quote what Rust prints of them; messages and frames show the name."""
    text = f'Module ModuleId {{ address: {"0" * 60}cafe, name: Identifier("registry") }} at code offset 3'
    assert visible(text) == cleaned(text) == "0xcafe::registry at code offset 3"
