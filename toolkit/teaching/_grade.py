"""Grade a class: run each notebook, judge its answers, write a table and a page per student."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import unicodedata
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import msgspec
import pandas as pd

from toolkit._present.messages import not_installed
from toolkit._present.text import visible
from toolkit.client._progress import progress_bar
from toolkit.client._threads import as_completed
from toolkit.errors import InputError
from toolkit.teaching._answers import GivenAnswer, StoryTrial
from toolkit.teaching._check import CheckedAnswer, Verdict, judge, not_answered
from toolkit.teaching._exercises import PACKAGED, Exercise, read_exercises
from toolkit.teaching._notebooks import environment, run_notebook
from toolkit.teaching._pages import Copy, write_pages


def grade(
    folder: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    exercises: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    seconds: float = 120.0,
    progress: bool = True,
) -> pd.DataFrame:
    """Grade the notebooks of a class by the answers that `check` receives in them.

    Each notebook runs from top to bottom in its own process. If a cell fails or never ends, the other cells still
    count. Of several answers to an exercise, the last one counts, in the order of the cells and then of the notebooks'
    names. An answer is judged as `check` judges it.

    Notebooks run with your rights: they can read your files and use the network. Use a container to grade notebooks
    from people you do not trust.

    Parameters
    ----------
    folder : path
        Folder with one subfolder per student. Notebooks may be at any depth in a subfolder. Each runs in an empty
        folder, so other files are ignored.
    out : path, optional
        Folder for ``grades.csv``, ``grades.html`` and a page per student in ``feedback``. They are written after each
        student, and contain the students graded so far.
    exercises : path, optional
        File with the exercises of the class, as written by ``make class SEED=...``; by default, the exercises in the
        package.
    jobs : int, optional
        Maximum number of notebooks to run at the same time; by default, the number of processors.
    seconds : float, default 120
        Time limit per notebook; a single cell may take up to a quarter of it. It also limits the judging of an answer.
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
        If no subfolder of `folder` has a notebook, a file cannot be read or written, or nbclient is not installed.

    Examples
    --------
    >>> from toolkit import teaching
    >>> teaching.grade("submitted/lesson-08", out="grades")  # doctest: +SKIP
      student  score  08.1     08.2   08.3
    0     ana      3  right    right  right
    1     ben      1  right  not yet  failed: cell 14: NameError: name 'regisrty' is not defined
    """
    for package in ("nbclient", "ipykernel"):
        if find_spec(package) is None:
            raise InputError(not_installed("grade", package, "notebook"))
    root, own = Path(folder), None if exercises is None else Path(exercises)
    known = read_exercises(own or PACKAGED)
    try:
        students = sorted(one for one in root.iterdir() if one.is_dir() and not one.name.startswith("."))
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}; expected a folder with one subfolder per student") from None
    if not any(root.glob("*/**/*.ipynb")):
        raise InputError(f"{folder} has no subfolders with notebooks; expected one subfolder per student")
    copies: dict[int, Copy] = {}
    frame = _written(copies, known, out)  # so that a folder that cannot be written is an error now
    workers = min(jobs or os.cpu_count() or 1, len(students))
    with ThreadPoolExecutor(workers) as pool, progress_bar(len(students), "grading", show=progress) as bar:
        tasks = ((one, known, own, seconds) for one in students)
        try:
            for place, copy in as_completed(pool, _grade_copy, tasks, workers):
                copies[place + 1] = copy
                frame = _written(copies, known, out)
                bar.advance(1)
        finally:
            pool.shutdown(cancel_futures=True)
    return frame


def _grade_copy(folder: Path, known: Mapping[str, Exercise], own: Path | None, seconds: float) -> Copy:
    """Run a student's notebooks, one after another, and judge their answers."""
    copy, answers, reasons = Copy(_name(folder)), dict[str, GivenAnswer | None](), dict[str, str]()
    for path in sorted(folder.rglob("*.ipynb")):
        # A link may lead to another student's copy.
        if ".ipynb_checkpoints" in path.parts or path.is_symlink():
            continue
        lesson = re.match(r"\d\d(?=[_ -])", path.name)
        expected = [number for number in known if lesson and number.startswith(lesson[0])]
        ran = run_notebook(path, own, expected, seconds)
        if ran.problem:
            copy.problems.append(f"{visible(path.name)}: {ran.problem}")
        answers |= {name: one for name, one in ran.answers.items() if one is not None or name not in answers}
        reasons |= ran.reasons
    for name, exercise in known.items():
        answer = answers.get(name)
        if answer is not None:
            copy.answers[name] = answer.value or answer.name
            copy.checked[name] = judge(
                name, exercise, answer, happens=lambda *trial: _tried(StoryTrial(*trial), seconds)
            )
        elif name in reasons:
            copy.checked[name] = CheckedAnswer(name, Verdict.FAILED, reasons[name])
        elif name in answers:
            copy.checked[name] = not_answered(name, exercise)
    return copy


def _name(folder: Path) -> str:
    """Return the name of a student's folder. Names that are not UTF-8 come from archives made with Latin-1."""
    name = os.fsencode(folder.name)
    try:
        return unicodedata.normalize("NFC", name.decode("utf-8"))
    except UnicodeDecodeError:
        return name.decode("latin-1")


def _tried(trial: StoryTrial, seconds: float) -> str:
    """Return what goes wrong in a story, which runs in its own process: a contract may never end."""
    command = [sys.executable, "-m", "toolkit.teaching._story"]
    try:
        done = subprocess.run(  # noqa: S603 - this interpreter
            command,
            env=environment(),
            input=msgspec.json.encode(trial),
            capture_output=True,
            timeout=seconds,
            check=True,
        )
        return msgspec.json.decode(done.stdout, type=str)
    except subprocess.TimeoutExpired:
        return f"The answer could not be judged within {seconds:g} s"
    except (subprocess.CalledProcessError, msgspec.DecodeError):
        return "The answer could not be judged: its process ended"


def _written(
    copies: Mapping[int, Copy], known: Mapping[str, Exercise], out: str | os.PathLike[str] | None
) -> pd.DataFrame:
    """Return the table of the students graded so far; given `out`, also write the table and a page per student."""
    ordered = dict(sorted(copies.items()))
    lessons = {number[:2] for copy in copies.values() for number in copy.checked}
    numbers = [number for number in known if number[:2] in lessons]
    rows = [[_cell(copy.verdict(number)) for number in numbers] for copy in ordered.values()]
    frame = pd.DataFrame(rows, columns=numbers, dtype="str")
    frame.insert(0, "score", pd.Series([copy.score(known) for copy in ordered.values()], dtype="int64"))
    frame.insert(0, "student", pd.Series([copy.student for copy in ordered.values()], dtype="str"))
    if out is not None:
        write_pages(Path(out), frame, ordered, {number: known[number] for number in numbers})
    return frame


def _cell(checked: CheckedAnswer) -> str:
    """Return the text of a verdict for the table, with the reason if no answer was judged."""
    named = checked.verdict in {Verdict.FAILED, Verdict.MISSING} and checked.message
    return f"{checked.verdict}: {checked.message}" if named else str(checked.verdict)
