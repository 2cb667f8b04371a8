"""Notebooks of a class as files: what they contain, and running them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import msgspec

from toolkit._present.files import read_file
from toolkit.errors import InputError
from toolkit.teaching._answers import RECORD, Checked, read_lines
from toolkit.teaching._copy import FAILED, NOTEBOOK, FailedCell
from toolkit.teaching._exercises import CLASS_FILE

if TYPE_CHECKING:
    from toolkit.teaching._answers import GivenAnswer

_MAX_NOTEBOOK = 20_000_000  # bytes; figures are in it
_ANSWERS = "checked.jsonl"  # the record of `check`, in the folder of the run
_STDERR = "stderr.txt"
_MAX_ERROR = 500  # characters
_GRADE_ID = re.compile(r"exercise-(\d\d)-(\d+)")
_CHECKED = re.compile(r"""\bcheck\([^()]*?["'](\d\d\.\d+)["']""")


class Cell(msgspec.Struct, frozen=True):
    """A cell of a notebook."""

    cell_type: str
    source: str | list[str] = ""
    metadata: dict[str, Any] = {}

    @property
    def exercises(self) -> list[str]:
        """Numbers of the exercises that the cell answers: from its calls to `check`, or else from its nbgrader id."""
        if self.cell_type != "code":
            return []
        text = self.source if isinstance(self.source, str) else "".join(self.source)
        grader = self.metadata.get("nbgrader")
        named = _GRADE_ID.fullmatch(str(grader.get("grade_id"))) if isinstance(grader, dict) else None
        return list(dict.fromkeys(_CHECKED.findall(text))) or ([f"{named[1]}.{named[2]}"] if named else [])


class Notebook(msgspec.Struct, frozen=True):
    """The cells of a notebook."""

    cells: list[Cell]


@dataclass
class NotebookRun:
    """What was found by running a notebook.

    Attributes
    ----------
    answers : dict of str to (GivenAnswer or None)
        The last answer to each exercise that `check` received, or None if it received only dots.
    reasons : dict of str to str
        Why `check` received no answer to an exercise of the notebook.
    problem : str
        Why the notebook did not run to its end; empty if it did.
    """

    answers: dict[str, GivenAnswer | None] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    problem: str = ""


def run_notebook(path: Path, exercises: Path | None, numbers: list[str], seconds: float) -> NotebookRun:
    """Run a notebook in an empty folder, next to the exercises of its class.

    Parameters
    ----------
    path : Path
    exercises : Path or None
        File with the exercises of the class; None for those of the package.
    numbers : list of str
        The exercises that the notebook should contain if it cannot be read.
    seconds : float
        Time limit.
    """
    try:
        content = read_file(path, limit=_MAX_NOTEBOOK + 1)
        if len(content) > _MAX_NOTEBOOK:
            raise InputError(f"it is larger than {_MAX_NOTEBOOK // 1_000_000} MB")
        cells = msgspec.json.decode(content, type=Notebook).cells
    except (OSError, ValueError, msgspec.DecodeError, RecursionError) as error:  # a ValueError if it is not UTF-8
        problem = f"the notebook cannot be read: {error}"
        return NotebookRun(reasons=dict.fromkeys(numbers, problem), problem=problem)
    with TemporaryDirectory(prefix="ledger-toolkit-grade-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / NOTEBOOK).write_bytes(content)
        if exercises is not None:
            (folder / CLASS_FILE).write_bytes(read_file(exercises))
        problem = _run(folder, seconds)
        ran = NotebookRun(problem=problem)
        failed = {one.cell: one.error for one in read_lines(folder / FAILED, FailedCell)}
        for one in read_lines(folder / _ANSWERS, Checked):
            if one.answer is not None or one.exercise not in ran.answers:
                ran.answers[one.exercise] = one.answer
    for number, cell in enumerate(cells, start=1):
        for exercise in cell.exercises:
            if exercise not in ran.answers:
                ran.reasons[exercise] = _reason(number, failed, problem)
    return ran


def _run(folder: Path, seconds: float) -> str:
    """Run the notebook in a folder; return why it did not run to its end, or an empty string.

    Nothing is read from a pipe, because a process that the notebook leaves behind would keep it open.
    """
    own = {RECORD: str(folder / _ANSWERS), "IPYTHONDIR": str(folder), "JUPYTER_PREFER_ENV_PATH": "1"}
    command = [sys.executable, "-m", "toolkit.teaching._copy", str(folder), str(seconds)]
    nothing = subprocess.DEVNULL
    with (folder / _STDERR).open("wb") as errors:
        try:
            done = subprocess.run(  # noqa: S603 - this interpreter
                command,
                env=environment() | own,
                stdin=nothing,
                stdout=nothing,
                stderr=errors,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"stopped at the time limit of {seconds:g} s"
    if not done.returncode:
        return ""
    lines = (folder / _STDERR).read_text("utf-8", "replace").strip().splitlines()
    return f"the notebook cannot be run: {lines[-1][:_MAX_ERROR] if lines else 'its process died'}"


def environment() -> dict[str, str]:
    """Return the environment of a process that imports this package, wherever it is."""
    place = str(Path(__file__).parents[2])
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [place, os.environ.get("PYTHONPATH")]))}


def _reason(number: int, failed: dict[int, str], problem: str) -> str:
    """Return why `check` received no answer in a cell."""
    own = f"cell {number}: {failed[number]}" if number in failed else problem or "check received no answer"
    first = min(failed, default=number)
    return own if first == number else f"{own}; the first cell to fail was cell {first}: {failed[first]}"
