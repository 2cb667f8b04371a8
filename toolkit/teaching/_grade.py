"""Grade a class: run each notebook in its own process, judge its answers, write a table and a page per student."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

import msgspec
import pandas as pd
from tqdm.auto import tqdm

from toolkit._present.files import read_file
from toolkit._present.text import visible
from toolkit.errors import InputError
from toolkit.teaching._check import CheckedAnswer, Verdict, judge, not_answered
from toolkit.teaching._exercises import PACKAGED, Exercise, read_exercises
from toolkit.teaching._jobs import Found, Notebook
from toolkit.teaching._pages import Copy, write_pages
from toolkit.teaching._processes import Runner

_MAX_NOTEBOOK = 20_000_000  # bytes; figures are in it


def grade(
    folder: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    exercises: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    seconds: float = 120.0,
    memory_mb: int = 1_024,
    progress: bool = True,
) -> pd.DataFrame:
    """Grade the notebooks of a class.

    Each notebook runs in its own process, with resource limits and without network access. If a cell fails or never
    ends, the other cells still count. Answers are judged outside that process, so a notebook gains nothing by modifying
    `check` or the exercises in memory. The limits guard against mistakes and block what no lesson needs, but they are
    not a sandbox: use a container to grade notebooks from people you do not trust.

    Parameters
    ----------
    folder : path
        Folder with one subfolder per student. Notebooks may be at any depth in a subfolder; other files are ignored.
    out : path, optional
        Folder for ``grades.csv``, ``grades.html`` and a page per student, ``feedback/NAME.html``.
    exercises : path, optional
        File with the exercises of the class, as written by ``make class SEED=...``; by default, the exercises in the
        package.
    jobs : int, optional
        Maximum number of notebooks to run at the same time; by default, the number of processors.
    seconds : float, default 120
        Time limit per notebook; a single cell may take up to a quarter of it.
    memory_mb : int, default 1024
        Memory in MB that a notebook may use in addition to what the toolkit needs; not enforced on macOS.
    progress : bool, default True
        Whether to show a progress bar.

    Returns
    -------
    DataFrame, shape (n_students, 2 + n_exercises)
        ``student``, ``score`` (int64, points), then a verdict column for each exercise in the lessons that were handed
        in: ``right``, ``not yet``, ``not answered yet``, ``not handed in``, or ``failed:`` followed by the reason.

    Raises
    ------
    InputError
        If `folder` has no subfolders, a file cannot be read or written, or the system lacks `os.fork` (Windows).

    Examples
    --------
    >>> from toolkit import teaching
    >>> teaching.grade("submitted/lesson-08", out="grades")  # doctest: +SKIP
      student  score  08.1     08.2   08.3
    0     ana      3  right    right  right
    1     ben      1  right  not yet  failed: cell 14: NameError: name 'regisrty' is not defined
    """
    if not hasattr(os, "fork"):
        raise InputError("grade requires os.fork; use Linux, macOS, or the Windows Subsystem for Linux")
    place = Path(folder)
    known = read_exercises(PACKAGED if exercises is None else exercises)
    try:
        students = sorted(one.name for one in place.iterdir() if one.is_dir() and not one.name.startswith("."))
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}; expected a folder with one subfolder per student") from None
    if not students:
        raise InputError(f"{folder} has no subfolders; expected one per student")
    count = min(jobs or os.cpu_count() or 1, len(students))
    runners: SimpleQueue[Runner] = SimpleQueue()
    for _ in range(count):
        runners.put(Runner(seconds, memory_mb, tuple(str(one) for one in (place, exercises, PACKAGED) if one)))
    try:
        with ThreadPoolExecutor(count) as pool:
            graded = pool.map(lambda name: _grade_copy(place / name, known, runners), students)
            bar = tqdm(graded, total=len(students), desc="grade", unit="copy", disable=not progress, leave=False)
            copies = list(bar)
    finally:
        while not runners.empty():
            runners.get().close()
    return _written(copies, known, out)


def _grade_copy(folder: Path, known: Mapping[str, Exercise], runners: SimpleQueue[Runner]) -> Copy:
    """Grade a student's notebooks, one after another."""
    copy = Copy(folder.name)
    for path in sorted(folder.rglob("*.ipynb")):
        # A link may lead to another student's copy.
        if ".ipynb_checkpoints" not in path.parts and not path.is_symlink():
            runner = runners.get()
            try:
                _grade_notebook(copy, path, known, runner)
            finally:
                runners.put(runner)
    return copy


def _grade_notebook(copy: Copy, path: Path, known: Mapping[str, Exercise], runner: Runner) -> None:
    """Run a notebook and judge its answers."""
    named = re.match(r"\d\d(?=[_ -])", path.name)
    try:
        content = read_file(path, limit=_MAX_NOTEBOOK)
        cells = msgspec.json.decode(content, type=Notebook).cells
        numbers = [number for cell in cells for number in cell.exercises]
        found, problem = runner.run(content)
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        numbers = [number for number in known if named and number.startswith(named[0])]
        found, problem = [], f"the notebook cannot be read: {error}"
    if problem:
        copy.problems.append(f"{visible(path.name)}: {problem}")
    for one in found:
        if one.exercise in known:
            answer = one.answer.value or one.answer.name if one.answer else ""
            copy.add(_judged(one, known[one.exercise], runner), answer)
    for number in numbers:
        if number in known and number not in copy.checked:
            copy.add(CheckedAnswer(number, Verdict.FAILED, problem or "the cell with its answer did not run"))


def _judged(found: Found, exercise: Exercise, runner: Runner) -> CheckedAnswer:
    if found.problem:
        return CheckedAnswer(found.exercise, Verdict.FAILED, found.problem)
    if found.answer is None:
        return not_answered(found.exercise, exercise)
    return judge(found.exercise, exercise, found.answer, happens=runner.story)


def _written(copies: Sequence[Copy], known: Mapping[str, Exercise], out: str | os.PathLike[str] | None) -> pd.DataFrame:
    """Return the table of a class; given `out`, also write the table and a page per student."""
    lessons = {number[:2] for copy in copies for number in copy.checked}
    numbers = [number for number in known if number[:2] in lessons]
    for copy in copies:
        for number in numbers:
            if number not in copy.checked:
                copy.add(CheckedAnswer(number, Verdict.MISSING, "; ".join(copy.problems)))
    rows = [[_cell(copy.checked[number]) for number in numbers] for copy in copies]
    frame = pd.DataFrame(rows, columns=numbers, dtype="str")
    frame.insert(0, "score", pd.Series([copy.score(known) for copy in copies], dtype="int64"))
    frame.insert(0, "student", pd.Series([copy.student for copy in copies], dtype="str"))
    if out is not None:
        write_pages(Path(out), frame, copies, {number: known[number] for number in numbers})
    return frame


def _cell(checked: CheckedAnswer) -> str:
    """Return the text of a verdict for the table, with the reason if no answer was judged."""
    named = checked.verdict in {Verdict.FAILED, Verdict.MISSING} and checked.message
    return f"{checked.verdict}: {checked.message}" if named else str(checked.verdict)
