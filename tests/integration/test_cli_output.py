"""Output of the command line: files that cannot be written, and terminals of other encodings."""

from __future__ import annotations

import io
import sys

import pytest

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


@pytest.mark.parametrize("terminal", [True, False])
def test_an_error_ends_between_words_in_a_terminal(monkeypatch, capsys, terminal):
    """A pipe gets one line per error."""
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    assert main(["view", "0x1::coin::supply"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert (len(lines) == 1) != terminal
    assert (max(map(len, lines)) <= 60) == terminal
    assert "expected 1 type argument, got 0" in " ".join(" ".join(lines).split())


@pytest.mark.parametrize("terminal", [True, False])
def test_sentences_end_between_words_in_a_terminal(monkeypatch, capsys, terminal):
    """A pipe gets each sentence as one line; a terminal gets the same words in lines that fit."""
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    assert main(["simulate", "0xcafe::registry::register", "alice", "--sender", "0xb0b"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert (max(map(len, lines)) <= 60) == terminal
    assert any(line.startswith("  ") for line in lines) == terminal
    assert " ".join(" ".join(lines).split()).startswith(
        "0xcafe::registry::register from 0xb0b would fail. Why: The name"
    )
