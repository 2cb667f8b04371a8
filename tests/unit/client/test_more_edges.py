"""Edges of offline sessions and of the command line."""

from __future__ import annotations

import io
import sys

import pandas as pd
import pytest

from tests.unit.client.fakes import URL, FakeNode, answer, function, ledger, module, refused
from toolkit import embedded
from toolkit.cli import main
from toolkit.cli.output import write_frame
from toolkit.client.fetch import fetch_views
from toolkit.client.node import Node
from toolkit.errors import InputError
from toolkit.wire import ViewFunction

CLOCK = ViewFunction("0x1::timestamp::now_microseconds")
TIMESTAMP = module("timestamp", functions=[function("now_microseconds", [], ["u64"])])
MODULE = "GET /accounts/0x1/module/timestamp"


class TestOffline:
    """One module answer that is not in the file does not spoil the others."""

    def node(self, place, *, born: int = 0):
        """Return a node whose account is there from a version on."""

        def code(query, _):
            there = int(query["ledger_version"]) >= born
            return answer(TIMESTAMP) if there else refused(404, "account_not_found", "no account", head=ledger())

        def view(query, _):
            there = int(query["ledger_version"]) >= born
            return answer([query["ledger_version"]], gas=1) if there else refused(400, "invalid_input", head=ledger())

        return Node(URL, transport=FakeNode({MODULE: code, "POST /view": view}), cache=place)

    def values(self, place, versions: str) -> list:
        with Node(URL, transport=FakeNode(), cache=place, offline=True) as node:
            return fetch_views(node, CLOCK, versions=versions, progress=False)["value"].dropna().tolist()

    def test_a_sweep_from_before_the_account_was_there(self, tmp_path):
        """404 account_not_found is not kept, but noted as looked up: the versions after it are still answered."""
        with self.node(tmp_path / "a.sqlite3", born=105) as node:
            fetch_views(node, CLOCK, versions="100:119", progress=False)
        assert self.values(tmp_path / "a.sqlite3", "111:117") == list(range(111, 118))

    def test_a_probe_in_between(self, tmp_path):
        """A probe reads modules afresh and keeps nothing: what it noted must not be taken for kept."""
        with self.node(tmp_path / "a.sqlite3") as node:
            fetch_views(node, CLOCK, versions="100:119", progress=False)
            node.probe()
        assert self.values(tmp_path / "a.sqlite3", "111:117") == list(range(111, 118))


class TestCommandLine:
    """Mistakes and terminals."""

    def test_a_file_where_a_folder_has_to_be_is_one_error(self, tmp_path):
        """The clean-up does not fail in its turn."""
        (tmp_path / "file").write_text("")
        with pytest.raises(InputError, match="cannot be written"):
            write_frame(pd.DataFrame({"a": [1]}), tmp_path / "file" / "x.csv")

    def test_a_terminal_of_another_encoding_is_no_traceback(self, monkeypatch):
        """What it cannot show is spelt out; the command still goes well."""
        raw = io.BytesIO()
        with embedded.serve(embedded.Ledger(), port=0) as url:
            monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii", write_through=True))
            sender = "0x" + "ab" * 32
            code = main(["simulate", "0x1::aptos_account::transfer", "0xb0b", "1", "--sender", sender, "--node", url])
        assert code == 0
        assert b"0xababab" in raw.getvalue()
