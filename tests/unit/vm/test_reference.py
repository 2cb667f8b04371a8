"""The page of the reference is true: its example runs, and its table is what the code says."""

from __future__ import annotations

import re
from pathlib import Path

from toolkit.vm._supported import supported_table

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "vm.md"


def test_the_table_of_the_page_is_made_from_the_code():
    assert supported_table() in PAGE.read_text("utf-8"), f"docs/reference/vm.md must contain:\n{supported_table()}"


def test_the_example_of_the_page_runs(capsys):
    (code, output) = re.findall(r"```(?:python|text)\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    exec(code, {})  # noqa: S102 - the page's own code
    assert capsys.readouterr().out == output
