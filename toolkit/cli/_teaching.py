"""The command ``grade``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli._console import JsonOption, QuietOption, print_done, print_frame


def grade(  # noqa: PLR0917 - typer makes options of them
    folder: Annotated[Path, typer.Argument(help="Folder that has a folder per student, with notebooks.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder for grades.csv, grades.html and a page of feedback per student.")
    ] = None,
    exercises: Annotated[
        Path | None, typer.Option(help="Exercises of the class, from make class SEED=...; the package's by default.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Notebooks at a time; one per processor by default.")] = None,
    seconds: Annotated[float, typer.Option(min=1, help="Time for a notebook.")] = 120.0,
    memory: Annotated[int, typer.Option(min=64, help="Memory for a notebook, in MB.")] = 1_024,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Grade the notebooks of a class: each runs in a process of its own, and its answers are judged outside.

    A copy that is broken, or never ends, has a row that says so. Not on Windows.

    Examples
    --------
    ledger-toolkit grade submitted --out grades
    ledger-toolkit grade submitted --exercises build/class/exercises.json --json
    """
    from toolkit.teaching import grade as graded

    frame = graded(
        folder, out=out, exercises=exercises, jobs=jobs, seconds=seconds, memory_mb=memory, progress=not quiet
    )
    if out is None or as_json:
        print_frame(frame, as_json=as_json, whole=True)
    else:
        print_done(f"{len(frame)} students: {out / 'grades.html'}", as_json=False)
