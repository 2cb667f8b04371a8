"""An error in a notebook is one traceback, which begins with the cell and ends with the message."""

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
from tests.faults import FaultyNode
server = embedded.start(embedded.Ledger())
silent = FaultyNode(server.url)
silent.schedule(["hang"] * 1_000)
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
    "read(silent.node_url)": ("NodeUnreachable", "no response within 0.5 s"),
    'node.view("0x1::coin::suply")': ("InvalidRequest", "0x1::coin::suply"),
    'node.table_item("0x5", "a", key_type="u8", value_type="u8")': ("InputError", "table key: expected u8"),
    'node.view("nonsense")': ("InputError", "expected address::module::function"),
    "node.view(supply, ledger_version=99)": ("NotFound", "version 99"),
    'toolkit.EntryFunction("0x1", 5)': ("InputError", "EntryFunction.arguments: expected a list"),
    'toolkit.fetch_views(node, supply, "9:1")': ("InputError", "version 9 does not exist yet"),
    'pd.Series([1, 2], dtype="u128") * 1.5': ("TypeError", "the other operand must be an integer"),
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
def test_an_error_begins_with_the_cell_and_ends_with_the_message(run, source):
    """Errors that led to it are not shown."""
    kind, text = CELLS[source]
    lines = run(source)
    assert lines[-1].startswith(f"{kind}: ")
    assert text in lines[-1]
    assert f"----> 1 {source}" in lines
    for hidden in ("During handling", "direct cause"):
        assert hidden not in "\n".join(lines[:-1])


def test_outside_of_a_notebook_an_error_has_the_usual_traceback(tmp_path):
    """In a script, the traceback is one chain that ends in the message, without the chains of libraries."""
    code = "import toolkit\ntoolkit.connect('http://127.0.0.1:9/v1').ledger()\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr.count("Traceback") == 1
    assert done.stderr.splitlines()[-1].startswith("toolkit.errors.NodeUnreachable: GET http://127.0.0.1:9/v1")
