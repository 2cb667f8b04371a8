"""Tables as text and HTML."""

from __future__ import annotations

import pytest

from toolkit._present.tables import html_table, text_table


def test_text_columns_are_as_wide_as_their_longest_cell():
    """Columns from `numbers_from` are aligned to the right; lines have no trailing spaces."""
    rows = [["a", "", "7"], ["bcd", "e", ""]]
    assert text_table(rows, numbers_from=2, indent="  ") == ["  a       7", "  bcd  e"]
    assert text_table([["x", "1"]], head=["name", "n"]) == ["name  n", "x     1"]


def test_a_table_without_rows():
    """Without rows a table is its head, or nothing."""
    assert text_table([]) == []
    assert text_table([], head=["a", "b"]) == ["a  b"]


def test_html_cells_are_aligned_by_column():
    """Text is left, numbers are right, in the head too."""
    html = html_table([["x", "1"]], head=["name", "n"], numbers_from=1)
    assert html.count("text-align:left") == html.count("text-align:right") == 2
    assert "<table><tr><th" in html
    assert html.endswith("</td></tr></table>")


def test_rows_of_unequal_length_are_refused():
    """A cell cannot get lost: rows must be equally long."""
    with pytest.raises(ValueError, match="zip"):
        text_table([["a"], ["b", "c"]])
