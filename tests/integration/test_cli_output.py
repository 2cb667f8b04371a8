"""Output of the command line: files that cannot be written, and terminals of other encodings."""

from __future__ import annotations

import io
import sys

from toolkit import embedded
from toolkit.cli import main


def test_a_terminal_of_another_encoding_is_no_traceback(monkeypatch):
    """What it cannot show is spelt out; the command still goes well."""
    raw = io.BytesIO()
    with embedded.serve(embedded.Ledger(), port=0) as url:
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii", write_through=True))
        sender = "0x" + "ab" * 32
        code = main(["simulate", "0x1::aptos_account::transfer", "0xb0b", "1", "--sender", sender, "--node", url])
    assert code == 0
    assert b"0xababab" in raw.getvalue()
