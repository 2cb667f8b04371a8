"""Tables as text and HTML."""

from __future__ import annotations

import pytest

from toolkit._present.tables import fitted_columns, html_table, text_table


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
    assert html.endswith("</td></tr></table></div>")
    assert '<div style="overflow-x:auto"><table>' in html  # outside Jupyter, a wide table does not widen the page


def test_rows_of_unequal_length_are_refused():
    """A cell cannot get lost: rows must be equally long."""
    with pytest.raises(ValueError, match="zip"):
        text_table([["a"], ["b", "c"]])


def test_long_json_has_one_line():
    """With an ellipsis; a long sentence is wrapped."""
    cells = html_table([['{"a":' + "9" * 50 + "}", "word " * 20]], head=["data", "why"]).split("<td")
    assert "text-overflow:ellipsis" in cells[1]
    assert "overflow-wrap" in cells[2]


def test_a_long_text_may_be_kept_to_one_line():
    """Cut by the browser, with all of it on hover; a short one needs neither."""
    long = "a &quot;b&quot; &lt;i&gt; " + "word " * 20
    cells = html_table([[long, long, "short"]], head=["a", "b", "c"], one_line={1, 2}).split("<td")
    assert f'title="{long}"' in cells[2]
    assert "text-overflow:ellipsis" in cells[2]
    assert "title" not in cells[1] + cells[3]


def test_a_sentence_keeps_half_of_the_line():
    """Rather than make room for columns after it; JSON and bytes lose their end, too."""
    columns = [["why", "word " * 30], ["key", "0x" + "ab" * 50], ["n" * 60, "7"], ["m" * 60, "8"]]
    kept = fitted_columns(columns, 160, right={2, 3})
    assert list(kept) == [0, 1, 2]
    assert len(kept[0][1]) >= 40  # the first column is a label
    assert kept[1][1].startswith("0xab")
    kept = fitted_columns([["n", "7"], *columns], 160, right={0, 3, 4})
    assert list(kept) == [0, 1, 2]
    assert len(kept[1][1]) >= 80


def test_sentences_share_half_of_the_line():
    """The second sentence gets room, too; a few words do not count as a sentence."""
    columns = [["label", "x" * 16], ["unit", "gas units"], ["stratum", "word " * 12], ["why", "word " * 30]]
    kept = fitted_columns(columns, 120)
    assert list(kept) == [0, 1, 2, 3]
    assert min(len(kept[2][1]), len(kept[3][1])) >= 28


def test_the_longest_sentence_keeps_half_of_the_line():
    """A shorter one after it goes first, such as the source of a column after its meaning."""
    columns = [["column", "x" * 16], ["meaning", "word " * 15], ["source", "a few words of its own"], ["n", "1"]]
    kept = fitted_columns(columns, 80)
    assert list(kept)[:2] == [0, 1]
    assert 2 not in kept
    assert len(kept[1][1]) >= 40


def test_later_columns_fill_the_line():
    """A wide column leaves room that narrower ones after it take, without shortening any."""
    columns = [["label", "x" * 16], ["gas", "7"], ["part", "y" * 60], ["change", "12"], ["what", "z" * 50], ["n", "1"]]
    kept = fitted_columns(columns, 40, right={1, 3, 5})
    assert {place: column[1] for place, column in kept.items()} == {0: "x" * 16, 1: "7", 3: "12", 5: "1"}
    assert max(map(len, text_table(zip(*kept.values(), strict=True)))) <= 40


def test_generic_types_keep_their_own_names():
    """Their arguments are shortened first; parts of a long name stay whole words."""
    types = [f"0x1::coin::{name}<0x1::aptos_coin::AptosCoin>" for name in ("CoinInfo", "CoinStore")]
    names = ["block_epilogue_transaction", "registrationsofallnames"]
    kept = fitted_columns([["resource_type", *types, *names]], 22)
    assert kept[0][1:] == [
        "…CoinInfo<…AptosCoin>",
        "…CoinStore<…AptosCoin>",
        "…epilogue_transaction",
        "registrationsofallnam…",
    ]


def test_chosen_columns_are_never_left_out():
    """Their texts are shortened; numbers are not."""
    columns = [["a", "x" * 70], ["b", "y" * 70], ["c", "z" * 70], ["gas", "123,456"]]
    assert list(fitted_columns(columns, 40, right={3})) == [0]
    kept = fitted_columns(columns, 40, right={3}, needed=len(columns))
    assert list(kept) == [0, 1, 2, 3]
    assert max(map(len, text_table(zip(*kept.values(), strict=True)))) <= 40
    assert kept[3][1] == "123,456"
