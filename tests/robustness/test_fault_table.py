"""The table of faults lists every marked test."""

from __future__ import annotations

from fault_table import README, with_table


def test_the_table_in_the_readme_is_current():
    """`tests/README.md` holds the table that the marks give."""
    text = README.read_text("utf-8")
    assert text.count("::test_") > 50
    assert with_table(text) == text, "run: python tests/robustness/fault_table.py"
