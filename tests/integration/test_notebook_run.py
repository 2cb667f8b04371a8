"""A study run in a real kernel: its bar, the stop button, and the same cell again."""

from __future__ import annotations

import pytest

from tests.faults import faulty
from tests.integration import test_notebook_sweep
from toolkit import embedded

kernel = test_notebook_sweep.kernel

PLANNED = 800
# The node answers so many requests and then none, so the run cannot end before the button is pressed.
ANSWERED = 700
SETUP = """
import toolkit
node = toolkit.connect({url!r})
calls = {{"depth": toolkit.ViewFunction("0xb00c::order_book::depth")}}
study = toolkit.Study(node=node, calls=calls, versions="0:-1/{planned}")
"""
RUN = """
try:
    run = study.run({out!r})
except KeyboardInterrupt as stop:
    print(stop)
else:
    print(run.complete, len(run.observations), run.manifest["resumed_rows"])
"""


@pytest.fixture
def server(ledger):
    """Return a node of its own, whose faults concern no other test."""
    with embedded.serve(ledger) as url, faulty(url) as one:
        yield one


def test_a_run_is_stopped_and_the_same_cell_goes_on(kernel, server, tmp_path):
    """The bar moves; stopped half-way, the cell says what is kept and how to go on; run again, it does."""
    cell = RUN.format(out=str(tmp_path / "run"))
    assert kernel.run(SETUP.format(url=server.node_url, planned=PLANNED)) == "ok"
    server.schedule([None] * ANSWERED + ["hang"] * 10 * PLANNED)
    assert kernel.run(cell, stop_at=PLANNED // 2) == "ok"
    assert PLANNED // 2 <= kernel.bar < PLANNED
    words = kernel.text.split()
    assert words[0] == "stopped;"
    kept = int(words[1].replace(",", ""))
    assert 0 < kept <= kernel.bar  # rows since the last check of the ledger are read again
    assert f"are stored in {tmp_path / 'run'}" in kernel.text
    server.clear()
    assert kernel.run(cell) == "ok"
    assert kernel.bar > kept
    assert kernel.text.split() == ["True", str(PLANNED), str(kept)]
