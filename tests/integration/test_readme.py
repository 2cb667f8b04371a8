"""What the README says is true: blocks run, and what they show is what comes."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import toolkit
from toolkit.client._transport import SessionTransport

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
FRAMES = """
import pandas as pd
frame = pd.DataFrame({"octas": pd.array([5, 3, 2**63], "uint64[pyarrow]"), "owner": ["a", "b", "a"]})
before, after = frame["octas"], frame["octas"]
"""
"""Frames that a block takes from the reader."""


def shown(block, names):
    """Run a block and return the value of its last line."""
    tree = ast.parse(block)
    *rest, last = tree.body
    exec(compile(ast.Module(rest, []), "README.md", "exec"), names)  # noqa: S102 - of this repository
    if isinstance(last, ast.Expr):
        return eval(compile(ast.Expression(last.value), "README.md", "eval"), names)  # noqa: S307 - of this repository
    exec(compile(ast.Module([last], []), "README.md", "exec"), names)  # noqa: S102 - of this repository
    return None


def test_the_python_of_the_readme_runs_and_shows_the_table_there(tmp_path, monkeypatch):
    """In its order, in one session; each cell of the table under the first block is that of the frame."""
    monkeypatch.chdir(tmp_path)
    # The study of the package, which has tests of its own, takes longer.
    small = toolkit.Study(calls={"size": toolkit.ViewFunction("0xcafe::registry::size")}, versions="0:-1/5")
    monkeypatch.setattr(toolkit.Study, "load", lambda _: small)
    names: dict = {}
    exec(FRAMES, names)  # noqa: S102 - of this file
    first = shown(BLOCKS[0], names)
    table = README.split("```\n     ledger_version", 1)[1].split("```", 1)[0].splitlines()
    columns = ["ledger_version", *table[0].split()[:-1]]
    rows = [line.split() for line in table[1:] if line and not line.startswith("..")]
    assert len(rows) == 3
    for number, *cells in rows:
        for column, cell in zip(columns, cells, strict=True):
            assert str(first[column].iloc[int(number)]) == cell, (number, column)
    for block in BLOCKS[1:]:
        shown(block, names)
    assert (tmp_path / "report.html").stat().st_size > 10_000


def test_the_fetch_functions_send_over_the_engine(node, monkeypatch):
    """As the README says: the transport of single calls sends what a fetch needs to know, not its calls."""
    sent = []
    send = SessionTransport.send
    monkeypatch.setattr(SessionTransport, "send", lambda self, request: sent.append(request) or send(self, request))
    transfer = toolkit.SimulationRequest(
        toolkit.EntryFunction("0x1::aptos_account::transfer", ["0xb0b", 1]), sender="0xa11ce"
    )
    handle = node.view("0xcafe::registry::handle").value
    text, record = "0x1::string::String", "0xcafe::registry::Record"
    for fetch in (
        lambda: toolkit.fetch_views(node, toolkit.ViewFunction("0xcafe::registry::size"), "0:-1/60"),
        lambda: toolkit.fetch_transactions(node, "0:-1/60"),
        lambda: toolkit.fetch_simulations(node, [transfer] * 60),
        lambda: toolkit.fetch_table_items(node, handle, [f"k{n}" for n in range(60)], key_type=text, value_type=record),
    ):
        del sent[:]
        fetch()
        assert len(sent) < 30
