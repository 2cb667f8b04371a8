"""A sweep in a real kernel: a bar that moves, the stop button half-way, and the second run from what was kept."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

VERSIONS, PLANNED = 1_000, 800
# The node answers so many requests and then none, so the sweep cannot end before the button is pressed.
ANSWERED = 700
SETUP = f"""
import toolkit
from tests.faults import FaultyNode
from toolkit import embedded
server = FaultyNode(embedded.start(embedded.Ledger.with_history(seed=7, versions={VERSIONS}, cache=True)).url)
node = toolkit.connect(server.node_url)
depth = toolkit.ViewFunction("0xb00c::order_book::depth")
server.schedule([None] * {ANSWERED} + ["hang"] * {10 * PLANNED})
"""
SWEEP = f"""
views = toolkit.fetch_views(node, depth, versions="0:-1/{PLANNED}")
"""
CHECK = """
kept = node.cache.stats().kept
server.clear()
"""
TOLD = """
print(len(views), views["error_code"].count(), views["value"].dtype, kept, node.cache.stats().kept, node.cache.stats().hits)
"""


class Kernel:
    """A kernel whose messages are watched."""

    def __init__(self):
        manager = pytest.importorskip("jupyter_client.manager", reason="needs jupyter_client, of the test extra")
        self.manager, self.client = manager.start_new_kernel(
            kernel_name="python3", extra_arguments=["--HistoryManager.enabled=False"]
        )
        self.bar = 0
        self.text = ""

    def run(self, code, *, stop_at=None):
        """Run a cell and return how it ended; press the stop button when the bar has come to `stop_at`."""
        self.text, self.bar = "", 0
        asked = self.client.execute(code)
        while True:
            message = self.client.get_iopub_msg(timeout=120)
            if message["parent_header"].get("msg_id") != asked:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "stream":
                self.text += content["text"]
            elif kind == "update_display_data":
                shown = re.search(r'<progress max="\d+" value="(\d+)"', content["data"].get("text/html", ""))
                self.bar = max(self.bar, int(shown[1])) if shown else self.bar
                if stop_at is not None and self.bar >= stop_at:
                    self.manager.interrupt_kernel()
                    stop_at = None
            elif kind == "status" and content["execution_state"] == "idle":
                reply = self._reply(asked)
                return reply.get("ename") or reply["status"]

    def _reply(self, asked):
        """Return the reply to a request; a kernel that was slow to start may have answered several questions before."""
        while (message := self.client.get_shell_msg(timeout=120))["parent_header"].get("msg_id") != asked:
            pass
        return message["content"]

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture
def kernel(monkeypatch):
    here = str(Path(__file__).resolve().parents[2])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]))
    one = Kernel()
    yield one
    one.close()


def test_a_sweep_is_stopped_half_way_and_goes_on_from_what_was_kept(kernel):
    """The bar moves, the stop button works at once, and the next run asks only for what is missing."""
    assert kernel.run(SETUP) == "ok"
    assert kernel.run(SWEEP, stop_at=PLANNED // 2) == "KeyboardInterrupt"
    assert PLANNED // 2 <= kernel.bar < PLANNED
    assert kernel.run(CHECK) == "ok"
    assert kernel.run(SWEEP) == "ok"
    assert kernel.bar >= PLANNED // 2
    assert kernel.run(TOLD) == "ok"
    rows, failed, dtype, before, after, hits = kernel.text.split()
    assert (int(rows), dtype) == (PLANNED, "uint64[pyarrow]")
    assert 0 < int(failed) < 10
    assert PLANNED // 2 <= int(before) < PLANNED
    # The bar counts the versions before the contract was published, too: that a call fails is not kept.
    assert int(hits) >= PLANNED // 2 - int(failed)
    assert int(after) - int(before) <= PLANNED // 2
