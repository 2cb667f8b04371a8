"""Where a progress bar is shown: on terminals and in notebooks, never in a log file."""

from __future__ import annotations

import io
import subprocess
import sys
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
    monkeypatch.setattr(batch, "tqdm", lambda **options: drawn.append(options) or _Bar())
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


def test_a_finished_bar_leaves_nothing_in_a_notebook():
    """Its output would be a text with 0 % in an exported notebook; what the cell returns stays."""
    import nbformat
    from nbclient import NotebookClient

    source = "from toolkit.client._progress import progress_bar\nwith progress_bar(3, 'views', show=True) as bar:\n    bar.advance(3)\n'done'"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    assert [output["data"] for output in notebook.cells[0].outputs] == [{"text/plain": ""}, {"text/plain": "'done'"}]
