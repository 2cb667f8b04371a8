"""A study run in a real kernel: its bar, the stop button, and the same cell again."""

from __future__ import annotations

from tests.integration import test_notebook_sweep

kernel = test_notebook_sweep.kernel

PLANNED = 2_000
SETUP = """
import toolkit
node = toolkit.connect({url!r}, requests_per_second=800)
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


def test_a_run_is_stopped_and_the_same_cell_goes_on(kernel, url, tmp_path):
    """The bar moves; stopped half-way, the cell says what is kept and how to go on; run again, it does."""
    cell = RUN.format(out=str(tmp_path / "run"))
    assert kernel.run(SETUP.format(url=url, planned=PLANNED)) == "ok"
    assert kernel.run(cell, stop_at=PLANNED // 2) == "ok"
    assert PLANNED // 2 <= kernel.bar < PLANNED
    words = kernel.text.split()
    assert words[0] == "stopped;"
    kept = int(words[1].replace(",", ""))
    assert kept >= PLANNED // 2
    assert f"are kept in {tmp_path / 'run'}; the same call or command goes on from there" in kernel.text
    assert kernel.run(cell) == "ok"
    assert kernel.bar > kept
    assert kernel.text.split() == ["True", str(PLANNED), str(kept)]
