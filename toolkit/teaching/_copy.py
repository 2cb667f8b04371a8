"""Run one notebook. `grade` starts this module in a process of its own for each notebook of a class.

It writes a line of JSON, a `FailedCell`, for each cell that fails. The kernel of the notebook is another process, which
ends with this one.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from nbclient import NotebookClient

NOTEBOOK, FAILED = "notebook.ipynb", "failed.jsonl"  # files in the folder of the run
_MAX_ERROR = 500  # characters of an error message
_STARTS = 5  # of a kernel; on a machine that takes 2,000 ports a second, one start in seven fails


class FailedCell(msgspec.Struct, frozen=True):
    """A cell that failed, by its number from 1, with the error."""

    cell: int
    error: str


def run(folder: Path, seconds: float) -> None:
    """Run the notebook in a folder.

    A cell may take a quarter of the time limit, so that the cells after an endless one count too.
    """
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, DeadKernelError

    class Client(NotebookClient):
        """Keeps no outputs, of which a notebook may write any amount."""

        def output(self, *_: Any) -> None:
            """Drop an output."""

    notebook = nbformat.read(folder / NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    client = Client(
        notebook,
        kernel_name="python3",
        timeout=max(1, int(seconds / 4)),
        interrupt_on_timeout=True,
        error_on_timeout={"ename": "timed out", "evalue": "a cell may take a quarter of the limit", "traceback": []},
        force_raise_errors=True,
        resources={"metadata": {"path": str(folder)}},
    )
    _start(client)
    with client.setup_kernel():
        for index, cell in enumerate(notebook.cells):
            try:
                client.execute_cell(cell, index)
            except CellExecutionError as error:
                report(folder, index, f"{error.ename}: {error.evalue}")
            except DeadKernelError:
                report(folder, index, "the kernel died")
                break


def _start(client: NotebookClient) -> None:
    """Start the kernel.

    Jupyter looks for free ports, and the kernel takes them a second later. If another process was faster, the kernel
    dies before it replies; the next one gets other ports.
    """
    for attempt in range(1, _STARTS + 1):
        client.create_kernel_manager()
        try:
            client.start_new_kernel()
            client.start_new_kernel_client()
        except RuntimeError:
            if attempt == _STARTS:
                raise
        else:
            return


def report(folder: Path, index: int, error: str) -> None:
    """Append the failure of the cell with this index."""
    with (folder / FAILED).open("ab") as file:
        file.write(msgspec.json.encode(FailedCell(index + 1, error[:_MAX_ERROR])) + b"\n")


if __name__ == "__main__":
    run(Path(sys.argv[1]), float(sys.argv[2]))
