"""Where a progress bar is shown: on terminals and in notebooks, never in a log file."""

from __future__ import annotations

import io
import subprocess
import sys
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace

import pytest

from toolkit.client import _progress as batch

SCRIPT = """
import ipykernel.kernelbase  # a kernel that is imported runs nothing here
from toolkit.client._progress import progress_bar
with progress_bar(3, "views", show=True) as bar:
    bar.advance(3)
"""


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(monkeypatch, *, shell=None, stream=None, show=True):
    """Return what a bar of three calls writes, and whether it would be drawn at all."""
    ipython = ModuleType("IPython")
    ipython.get_ipython = lambda: shell
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setattr(sys, "stderr", stream or io.StringIO())
    drawn = []
    for name in ("tqdm", "_InNotebook"):
        monkeypatch.setattr(batch, name, lambda **options: drawn.append(options) or _Bar())
    with batch.progress_bar(3, "views", show=show) as bar:
        bar.advance(3)
    (options,) = drawn
    return not options["disable"]


class _Bar:
    total = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def update(self, _):
        pass


def test_the_rate_is_true_of_whatever_is_counted(monkeypatch):
    """A bar of pages, transactions or students does not speak of calls."""
    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    with batch.progress_bar(3, "pages", show=True) as bar:
        bar.advance(3)
    assert "pages" in stream.getvalue()
    assert "call" not in stream.getvalue()


KERNEL, TERMINAL_SHELL = SimpleNamespace(kernel=object()), SimpleNamespace()


@pytest.mark.parametrize(
    ("shell", "stream", "expected"),
    [
        (KERNEL, None, True),
        (None, None, False),
        (TERMINAL_SHELL, None, False),
        (None, Terminal(), True),
        (TERMINAL_SHELL, Terminal(), True),
    ],
    ids=["notebook", "log file", "ipython into a file", "terminal", "ipython on a terminal"],
)
def test_a_bar_is_for_eyes(monkeypatch, shell, stream, expected):
    """A kernel that runs this, or a terminal; nothing else."""
    assert shown(monkeypatch, shell=shell, stream=stream) is expected


def test_nobody_gets_a_bar_who_wants_none(monkeypatch):
    """progress=False holds everywhere."""
    assert shown(monkeypatch, shell=KERNEL, stream=Terminal(), show=False) is False


def test_a_script_that_imports_a_kernel_is_no_notebook():
    """Its output goes to a pipe here, so nothing is drawn."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=60)
    assert (done.stdout, done.stderr) == ("", "")


BAR = """
from toolkit.client._progress import progress_bar
with progress_bar(0, 'views', show=True) as bar:
    bar.expect(4, found=1)
    bar.advance(2, failed=1)
    bar._bar.refresh()
'done'
"""


def test_a_bar_in_a_notebook_is_one_output_that_is_replaced_and_emptied():
    """Without a widget, whose model a saved notebook does not have; what the cell returns stays."""
    import nbformat
    from nbclient import NotebookClient

    seen = []

    class Client(NotebookClient):
        def process_message(self, message, cell, index):
            if message["msg_type"] in {"display_data", "update_display_data", "comm_open"}:
                seen.append((message["msg_type"], message["content"]["data"]))
            return super().process_message(message, cell, index)

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(BAR)])
    Client(notebook, timeout=60, kernel_name="python3").execute()
    assert [output["data"] for output in notebook.cells[0].outputs] == [{"text/plain": ""}, {"text/plain": "'done'"}]
    assert [kind for kind, _ in seen] == ["display_data"] + ["update_display_data"] * (len(seen) - 1)
    shown = [data["text/html"] for _, data in seen if "text/html" in data]
    assert "max=" not in shown[0]  # the end is not known yet
    assert '<progress max="5" value="3" ' in shown[-1]
    assert "views: 3 of 5 [" in shown[-1]
    assert "1 without a result" in shown[-1]


def test_marimo_draws_its_own_bar(monkeypatch):
    """Its total can grow, and the number of failures is shown next to it."""
    drawn = []
    bar = SimpleNamespace(total=0, update=lambda done, subtitle: drawn.append((done, subtitle)))
    marimo = ModuleType("marimo")
    marimo.running_in_notebook = lambda: True
    marimo.status = SimpleNamespace(progress_bar=lambda **_: nullcontext(bar))
    monkeypatch.setitem(sys.modules, "marimo", marimo)
    with batch.progress_bar(0, "views", show=True) as shown:
        shown.expect(4, found=1)
        shown.advance(2, failed=1)
    assert (bar.total, drawn) == (5, [(1, None), (2, "1 without a result")])
