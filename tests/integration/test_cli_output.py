"""Output of the command line: files that cannot be written, and terminals of other encodings."""

from __future__ import annotations

import io
import sys

import pandas as pd
import pytest

from toolkit import embedded
from toolkit.cli import main
from toolkit.cli._console import write_frame
from toolkit.errors import InputError


def test_a_file_where_a_folder_has_to_be_is_one_error(tmp_path):
    """The clean-up does not fail in its turn."""
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        write_frame(pd.DataFrame({"a": [1]}), tmp_path / "file" / "x.csv")


def test_a_terminal_of_another_encoding_is_no_traceback(monkeypatch):
    """What it cannot show is spelt out; the command still goes well."""
    raw = io.BytesIO()
    with embedded.serve(embedded.Ledger(), port=0) as url:
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii", write_through=True))
        sender = "0x" + "ab" * 32
        code = main(["simulate", "0x1::aptos_account::transfer", "0xb0b", "1", "--sender", sender, "--node", url])
    assert code == 0
    assert b"0xababab" in raw.getvalue()
