"""Write the notebooks of students from those with solutions, and the timetable of the lecturer's guide.

A lesson is edited in ``notebooks/solutions``, which has the answers. In the copy for students, in ``notebooks/course``,
an exercise is blank, and cells tagged ``solution`` are missing. What is right, known mistakes and hints are edited in
``notebooks/solutions/exercises.py``, and stored as data in the package. Run from the repository's root after a change:

    python notebooks/make_course.py          # writes the copies and the timetable
    python notebooks/make_course.py --run    # runs the lessons first, and stores their outputs; names select lessons
"""

from __future__ import annotations

import argparse
import copy
import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

import toolkit
from toolkit.teaching import check

NOTEBOOKS = Path(__file__).parent
SOLUTIONS, COURSE, GUIDE = NOTEBOOKS / "solutions", NOTEBOOKS / "course", NOTEBOOKS / "README.md"
STORED = Path(toolkit.__file__).parent / "teaching" / "exercises.json"
MARKS = ("<!-- timetable: written by make_course.py -->", "<!-- end of timetable -->")
EXERCISE = re.compile(r'^check\("(\d\d\.\d)", answer\)$', re.MULTILINE)
WIDGET = "application/vnd.jupyter.widget-view+json"
BREAK_AFTER = 60
"""Minutes after which the timetable has a break."""


def tagged(cell: dict[str, Any], tag: str) -> bool:
    """Return whether a cell has a tag."""
    return tag in cell["metadata"].get("tags", [])


def blank(cell: dict[str, Any]) -> dict[str, Any]:
    """Return an exercise without its answer, and with what checking it says then."""
    found = EXERCISE.search("".join(cell["source"]))
    if found is None:
        raise ValueError(f'an exercise must end in check("NN.N", answer): {"".join(cell["source"])}')
    verdict = check(found[1], ...)
    cell = copy.deepcopy(cell)
    cell["source"] = ["answer = ...\n", found[0]]
    data = {"text/html": [verdict._repr_html_()], "text/plain": [repr(verdict)]}
    output = {"data": data, "execution_count": None, "metadata": {}, "output_type": "execute_result"}
    return cell | {"outputs": [output]}


def for_students(notebook: dict[str, Any]) -> dict[str, Any]:
    """Return the notebook without answers."""
    cells = [cell for cell in notebook["cells"] if not tagged(cell, "solution")]
    return notebook | {"cells": [blank(cell) if tagged(cell, "exercise") else cell for cell in cells]}


def written(notebook: dict[str, Any]) -> str:
    """Return a notebook as the text of its file, without what differs between two runs."""
    notebook = copy.deepcopy(notebook)
    notebook["metadata"] = {
        "course": notebook["metadata"].get("course", {}),
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    number = 0
    for cell in notebook["cells"]:
        cell["metadata"] = {"tags": cell["metadata"]["tags"]} if cell["metadata"].get("tags") else {}
        if cell["cell_type"] == "code":
            number += 1
            cell["execution_count"] = number
            for output in cell["outputs"]:
                if "execution_count" in output:
                    output["execution_count"] = number
                output.get("data", {}).pop(WIDGET, None)  # a page shows the picture of a form
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def title(notebook: dict[str, Any]) -> str:
    """Return the heading of a lesson without its number."""
    return "".join(notebook["cells"][0]["source"]).splitlines()[0].removeprefix("# ").split(" ", 1)[1]


def exercises(notebook: dict[str, Any]) -> list[str]:
    """Return the numbers of the exercises of a lesson."""
    return [found[1] for cell in notebook["cells"] if (found := EXERCISE.search("".join(cell["source"])))]


def timetable(lessons: dict[str, dict[str, Any]]) -> str:
    """Return the timetable as Markdown: a table a day, with minutes and breaks."""
    lines: list[str] = []
    for day in sorted({lesson["metadata"]["course"]["day"] for lesson in lessons.values()}):
        lines += [f"\n**Day {day}**\n", "| from | lesson | teaching | exercises | needs |", "|---|---|---|---|---|"]
        minute, since_break = 9 * 60, 0
        for file, lesson in lessons.items():
            about = lesson["metadata"]["course"]
            if about["day"] != day:
                continue
            if since_break >= BREAK_AFTER:
                lines.append(f"| {_clock(minute)} | *break* | 15 min | | |")
                minute, since_break = minute + 15, 0
            number = len(exercises(lesson))
            lines.append(
                f"| {_clock(minute)} | [{about['id']} {title(lesson)}](course/{file}) | {about['teaching']} min "
                f"| {number}, {about['exercises']} min | {', '.join(about['needs']) or 'nothing'} |"
            )
            minute += about["teaching"] + about["exercises"]
            since_break += about["teaching"] + about["exercises"]
        lines.append(f"| {_clock(minute)} | end | | | |")
    return "\n".join(lines) + "\n"


def _clock(minute: int) -> str:
    return f"{minute // 60}:{minute % 60:02}"


def run(path: Path) -> None:
    """Run a notebook from top to bottom and store its outputs."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(path.parent)}}).execute()
    nbformat.write(notebook, path)


def read(path: Path) -> dict[str, Any]:
    """Return a notebook as it is in its file."""
    notebook: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return notebook


@cache
def stored_exercises() -> str:
    """Return the exercises, computed from the embedded ledger, as the text of the file that `check` reads."""
    sys.path.insert(0, str(SOLUTIONS))
    from exercises import exercises as computed

    return msgspec.json.format(msgspec.json.encode(computed()), indent=1).decode() + "\n"


def files() -> dict[Path, str]:
    """Return the text of each file that this script writes."""
    lessons = {path.name: read(path) for path in sorted(SOLUTIONS.glob("*.ipynb"))}
    found = {STORED: stored_exercises()}
    found |= {SOLUTIONS / name: written(lesson) for name, lesson in lessons.items()}
    found |= {COURSE / name: written(for_students(lesson)) for name, lesson in lessons.items()}
    guide = GUIDE.read_text("utf-8")
    head, rest = guide.split(MARKS[0])
    found[GUIDE] = f"{head}{MARKS[0]}\n{timetable(lessons)}\n{MARKS[1]}{rest.split(MARKS[1])[1]}"
    return found


def main() -> None:
    """Write the files, after running the lessons if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="numbers of lessons to run, such as 08; all by default")
    parser.add_argument("--run", action="store_true", help="run the lessons and store their outputs first")
    asked = parser.parse_args()
    STORED.write_text(stored_exercises(), "utf-8")  # before the first `check`
    for path in sorted(SOLUTIONS.glob("*.ipynb")) if asked.run else []:
        if not asked.names or path.name[:2] in asked.names:
            run(path)
    COURSE.mkdir(exist_ok=True)
    for path in COURSE.glob("*.ipynb"):
        path.unlink()
    for path, text in files().items():
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
