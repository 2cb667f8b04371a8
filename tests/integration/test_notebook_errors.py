"""An error in a notebook is one short traceback: the cells that led to it, and the message."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

SETUP = """
import functools, pandas as pd, toolkit
from toolkit import embedded
from toolkit.client import _engine, _http
for module in (_http, _engine):
    module.RetryPolicy = functools.partial(module.RetryPolicy, base_s=0.01)  # waits between attempts take seconds
server = embedded.start(embedded.Ledger())
node = toolkit.connect(server.url)
supply = toolkit.ViewFunction("0x1::coin::supply", type_arguments=["0x1::aptos_coin::AptosCoin"])
def read(url):
    with toolkit.connect(url, timeout_s=0.5, cache=None) as one:
        return one.view(supply)
"""
REFUSED = 'read("http://127.0.0.1:9/v1")'
CELLS = {
    REFUSED: ("NodeUnreachable", "cannot connect"),
    'read("http://no-such-host.invalid/v1")': ("NodeUnreachable", "no-such-host.invalid/v1: cannot connect"),
    'read(server.url.replace("http:", "https:"))': ("NodeUnreachable", "the TLS handshake failed"),
    'toolkit.fetch_views(toolkit.connect("http://127.0.0.1:9/v1"), supply, [1, 2])': (
        "NodeUnreachable",
        "cannot connect",
    ),
    'read(server.faults.schedule(["hang"] * 9) or server.url)': ("NodeUnreachable", "no response within 0.5 s"),
    'server.faults.clear(); node.view("0x1::coin::suply")': ("InvalidRequest", "0x1::coin::suply"),
    'node.table_item("0x5", "a", key_type="u8", value_type="u8")': ("InputError", "table key: expected u8"),
    'node.view("nonsense")': ("InputError", "expected address::module::function"),
    "node.view(supply, ledger_version=99)": ("NotFound", "version 99"),
    'toolkit.EntryFunction("0x1", 5)': ("InputError", "EntryFunction.arguments: expected a list"),
    'toolkit.fetch_views(node, supply, "9:1")': ("InputError", "runs from 9 down to 1"),
    'pd.Series([1, 2], dtype="u128").rolling(2).sum()': ("InexactError", "To compute with floats"),
}


@pytest.fixture(scope="module")
def run():
    """Return a function that runs a cell in one kernel, and returns what its error shows, without colours."""
    import nbformat  # takes seconds
    from nbclient import NotebookClient

    notebook = nbformat.v4.new_notebook()
    client = NotebookClient(notebook, timeout=60, kernel_name="python3", allow_errors=True)
    with client.setup_kernel():

        def execute(source):
            cell = nbformat.v4.new_code_cell(source)
            notebook.cells = [cell]
            client.execute_cell(cell, 0)
            errors = [output for output in cell.outputs if output.output_type == "error"]
            text = "\n".join("\n".join(error.traceback) for error in errors)
            return re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()

        assert execute(SETUP) == []
        yield execute


@pytest.mark.parametrize("source", CELLS)
def test_an_error_is_the_cell_and_the_message(run, source):
    """Not the frames of the toolkit, of pandas and of libraries, and not the errors that led to it."""
    kind, text = CELLS[source]
    lines = run(source)
    assert lines[-1].startswith(f"{kind}: ")
    assert text in lines[-1]
    assert len(lines) < 15
    assert f"----> 1 {source}" in lines
    assert ("return one.view(supply)" in "\n".join(lines)) is source.startswith("read(")
    for hidden in ("toolkit/", "site-packages", "During handling", "direct cause"):
        assert hidden not in "\n".join(lines[:-1])


def test_everything_is_shown_on_request(run):
    """With LEDGER_TOOLKIT_DEBUG, and in the mode Verbose, all frames; also afterwards, by %tb."""
    run(REFUSED)
    run("import os; os.environ['LEDGER_TOOLKIT_DEBUG'] = '1'")
    for source in (REFUSED, "%tb"):
        whole = "\n".join(run(source))
        assert "_engine.py" in whole
    run("del os.environ['LEDGER_TOOLKIT_DEBUG']")
    run("%xmode Verbose")
    assert any("_engine.py" in line for line in run(REFUSED))
    run("%xmode Context")
    assert len(run(REFUSED)) < 15


def test_code_of_the_user_inside_of_the_toolkit_is_shown(run):
    """A contract's method that goes wrong is shown with its line, between the cell and the message."""
    run(
        "class Shop(embedded.Module, address='0x5407'):\n"
        "    @embedded.view\n"
        "    def price(self) -> embedded.u64:\n"
        "        return self.use(Other).price()\n"
        "class Other(embedded.Module, address='0x5408'):\n"
        "    @embedded.public\n"
        "    def price(self) -> embedded.u64:\n"
        "        return 3\n"
        "ledger = embedded.Ledger()\n"
        "done = ledger.publish(Shop)"
    )
    lines = run("ledger.view('0x5407::shop::price')")
    assert "----> 1 ledger.view('0x5407::shop::price')" in lines
    assert "----> 4         return self.use(Other).price()" in lines
    assert "without declaring it" in lines[-1]
    assert len(lines) < 20


def test_outside_of_a_notebook_an_error_has_the_usual_traceback(tmp_path):
    """In a script: one chain, which ends in the message, without those of libraries."""
    code = "import toolkit\ntoolkit.connect('http://127.0.0.1:9/v1').ledger()\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr.count("Traceback") == 1
    assert done.stderr.splitlines()[-1].startswith("toolkit.errors.NodeUnreachable: GET http://127.0.0.1:9/v1")
