"""Generate files from the lessons: student copies, exercises, diagrams, the timetable and the lecturer's notes.

Edit the lessons in ``notebooks/solutions``, which include the answers. Student copies are written to
``notebooks/course``. In them, exercises are blank, a ``%%contract`` cell tagged ``start`` contains starting code, cells
tagged ``solution`` and ``notes`` are removed, and cells whose output students predict have no output. Solutions, known
mistakes and hints are defined in ``exercises.py`` and ``stories.py`` in the same folder, and stored as data in the
package. After a change, run this script from the root of the repository:

    python notebooks/make_course.py               # writes all files
    python notebooks/make_course.py --run 08      # first runs lesson 08 (without a number, all) and stores its outputs
    python notebooks/make_course.py --class DIR   # writes a folder for a class; --seed varies its exercises, and --exam
                                                  # leaves out solutions and hints
"""

from __future__ import annotations

import argparse
import copy
import json
import re
import secrets
import shutil
import sys
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from diagrams import diagrams

import toolkit
from toolkit.teaching._check import not_answered
from toolkit.teaching._exercises import CLASS_FILE, Exercise, digest, forms, read_exercises

NOTEBOOKS = Path(__file__).parent
SOLUTIONS, COURSE, GUIDE = NOTEBOOKS / "solutions", NOTEBOOKS / "course", NOTEBOOKS / "README.md"
NOTES = NOTEBOOKS / "NOTES.md"
STORED = Path(toolkit.__file__).parent / "teaching" / CLASS_FILE
MARKS = ("<!-- timetable: written by make_course.py -->", "<!-- end of timetable -->")
HEADING = re.compile(r"^##+ (\d\d\.\d|)", re.MULTILINE)
EXERCISE = re.compile(r'^check\("(\d\d\.\d)", answer\)$', re.MULTILINE)
WIDGET = "application/vnd.jupyter.widget-view+json"
BREAK_AFTER = 60
"""Minutes of work after which the timetable includes a break."""
NOON, LUNCH = 12 * 60, 60
NO_DAY = 0
"""The day of lessons that the timetable has no time for."""
HIDDEN = ("solution", "notes")
"""Tags of cells that are removed from student copies."""


def tagged(cell: dict[str, Any], tag: str) -> bool:
    """Return whether a cell has a tag."""
    return tag in cell["metadata"].get("tags", [])


def number_of(cell: dict[str, Any]) -> str:
    """Return the number of the exercise in a cell."""
    found = EXERCISE.search("".join(cell["source"]))
    if found is None:
        raise ValueError(f'an exercise must end with check("NN.N", answer), got: {"".join(cell["source"])}')
    return found[1]


def blank(cell: dict[str, Any], known: dict[str, Exercise]) -> dict[str, Any]:
    """Return an exercise cell without its answer, with the output of `check` for a blank answer."""
    number = number_of(cell)
    verdict = not_answered(number, known[number])
    cell = copy.deepcopy(cell)
    cell["source"] = ["answer = ...\n", f'check("{number}", answer)']
    data = {"text/html": [verdict._repr_html_()], "text/plain": [repr(verdict)]}
    output = {"data": data, "execution_count": None, "metadata": {}, "output_type": "execute_result"}
    return cell | {"outputs": [output]}


def points_of(number: str, after: str) -> dict[str, Any]:
    """Return the cell after an exercise: its value is what nbgrader's autograder gives for the answer."""
    output = {"data": {"text/plain": ["0"]}, "execution_count": None, "metadata": {}, "output_type": "execute_result"}
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": f"{after}-points",
        "metadata": {"tags": ["points", "remove-cell"]},
        "outputs": [output],
        "source": [f'toolkit.teaching.points("{number}")  # points for your last answer; nbgrader reads them'],
    }


def predicted(notebook: dict[str, Any]) -> set[int]:
    """Return the indices of code cells whose outputs students predict, up to the text that explains the outputs."""
    found, hidden = set(), False
    for place, cell in enumerate(notebook["cells"]):
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            hidden = "**Predict" in text or "## Predict" in text or (hidden and "**What it shows:**" not in text)
        elif hidden and not tagged(cell, "exercise") and not tagged(cell, "points"):
            found.add(place)
    return found


def sections(notebook: dict[str, Any]) -> list[str]:
    """Return, for each cell, the number of the exercise to whose section it belongs, or an empty string."""
    found, number = [], ""
    for cell in notebook["cells"]:
        headings = HEADING.findall("".join(cell["source"])) if cell["cell_type"] == "markdown" else []
        number = headings[-1] if headings else number
        found.append(number)
    return found


def for_students(notebook: dict[str, Any], course: Course, *, outputs: bool = False) -> dict[str, Any]:
    """Return the notebook without answers. With `outputs`, outputs to predict are collapsed instead of removed."""
    hidden, cells = predicted(notebook), []
    for place, (cell, number) in enumerate(zip(notebook["cells"], sections(notebook), strict=True)):
        if any(tagged(cell, tag) for tag in HIDDEN):
            continue
        shown = copy.deepcopy(cell)
        if tagged(cell, "exercise"):
            shown = blank(cell, course.exercises)
        elif tagged(cell, "start"):
            head = "".join(cell["source"]).splitlines()[0]
            shown |= {
                "source": f"{head}\n{course.starts[number]}".rstrip("\n").splitlines(keepends=True),
                "outputs": [],
            }
        elif place in hidden and outputs:
            shown["metadata"] = {"tags": [*cell["metadata"].get("tags", []), "hide-output"]}
        elif place in hidden:
            shown["outputs"] = []
        text = "".join(shown["source"]).replace("../course/figures/", "figures/")
        drawn = course.draws[number].text(text) if number in course.draws else text
        shown["source"] = drawn.splitlines(keepends=True)
        cells.append(shown)
        if tagged(cell, "exercise"):
            cells.append(points_of(number_of(cell), shown["id"]))
    return notebook | {"cells": cells}


def written(notebook: dict[str, Any], made: Course) -> str:
    """Return a notebook as JSON text, without anything that differs between two runs."""
    notebook = copy.deepcopy(notebook)
    notebook["metadata"] = {
        "course": notebook["metadata"].get("course", {}),
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    number, executed = "", 0
    for cell in notebook["cells"]:
        cell["metadata"] = {"tags": cell["metadata"]["tags"]} if cell["metadata"].get("tags") else {}
        if tagged(cell, "exercise"):
            number = number_of(cell)
            cell["metadata"]["nbgrader"] = nbgrader(f"exercise-{number.replace('.', '-')}")
        elif tagged(cell, "points"):
            cell["metadata"]["nbgrader"] = nbgrader(f"points-{number.replace('.', '-')}", made.exercises[number].points)
        if cell["cell_type"] == "code":
            executed += 1
            cell["execution_count"] = executed
            for output in cell["outputs"]:
                if "execution_count" in output:
                    output["execution_count"] = executed
                output.get("data", {}).pop(WIDGET, None)  # pages show the image of a form instead
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def nbgrader(name: str, points: int | None = None) -> dict[str, Any]:
    """Return nbgrader's metadata of a cell for an answer or, with points, of an autograder test."""
    tests = points is not None
    return {
        "grade": tests,
        "grade_id": name,
        "locked": tests,
        "schema_version": 3,
        "solution": not tests,
        "task": False,
    } | ({"points": points} if tests else {})


def title(notebook: dict[str, Any]) -> str:
    """Return the heading of a lesson without its number."""
    return "".join(notebook["cells"][0]["source"]).splitlines()[0].removeprefix("# ").split(" ", 1)[1]


def exercises(notebook: dict[str, Any]) -> list[str]:
    """Return the numbers of the exercises in a lesson."""
    return [found[1] for cell in notebook["cells"] if (found := EXERCISE.search("".join(cell["source"])))]


def timetable(lessons: dict[str, dict[str, Any]]) -> str:
    """Return the timetable as Markdown: one table per day, with times and breaks, and the lessons of no day."""
    lines: list[str] = []
    for day in sorted({lesson["metadata"]["course"]["day"] for lesson in lessons.values()} - {NO_DAY}):
        head = "| from | lesson | teaching | exercises | prerequisites |"
        lines += [f"\n**Day {day}**\n", head, "|---|---|---|---|---|"]
        minute, since_break = 9 * 60, 0
        for file, lesson in lessons.items():
            about = lesson["metadata"]["course"]
            if about["day"] != day:
                continue
            rest = LUNCH if NOON <= minute < NOON + LUNCH and since_break else 15 * (since_break >= BREAK_AFTER)
            if rest:
                lines.append(f"| {_clock(minute)} | *{'lunch' if rest == LUNCH else 'break'}* | {rest} min | | |")
                minute, since_break = minute + rest, 0
            number = len(exercises(lesson))
            lines.append(
                f"| {_clock(minute)} | [{about['id']} {title(lesson)}](course/{file}) | {about['teaching']} min "
                f"| {number}, {about['exercises']} min | {', '.join(about['needs']) or 'none'} |"
            )
            minute += about["teaching"] + about["exercises"]
            since_break += about["teaching"] + about["exercises"]
        lines.append(f"| {_clock(minute)} | end | | | |")
    lines += ["\n**Beyond the two days**\n"]
    for file, lesson in lessons.items():
        about = lesson["metadata"]["course"]
        if about["day"] == NO_DAY:
            what = f"{about['teaching']} min, {len(exercises(lesson))} exercises in {about['exercises']} min"
            lines.append(f"- [{about['id']} {title(lesson)}](course/{file}): {what}; needs {', '.join(about['needs'])}")
    return "\n".join(lines) + "\n"


def _clock(minute: int) -> str:
    return f"{minute // 60}:{minute % 60:02}"


def run(path: Path) -> None:
    """Run a notebook from top to bottom and store its outputs."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(path.parent)}}
    # What a cell prints arrives in parts that differ between two runs.
    NotebookClient(notebook, timeout=120, resources=resources, coalesce_streams=True).execute()
    nbformat.write(notebook, path)


def read(path: Path) -> dict[str, Any]:
    """Read a notebook from its file."""
    notebook: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return notebook


@dataclass(frozen=True)
class Course:
    """The exercises of a class, the values drawn for their texts, and their starting code."""

    exercises: dict[str, Exercise]
    draws: dict[str, Any]
    starts: dict[str, str]

    @property
    def stored(self) -> str:
        """Text of the exercise file that `check` reads."""
        return msgspec.json.format(msgspec.json.encode(self.exercises), indent=1).decode() + "\n"


@cache
def course(seed: int | None = None) -> Course:
    """Return the exercises of a class, computed on the embedded ledger, with the lessons' worked solutions."""
    sys.path.insert(0, str(SOLUTIONS))
    import exercises as computed
    from stories import STARTS

    found = computed.exercises(seed)
    worked = {
        number: text for path in sorted(SOLUTIONS.glob("*.ipynb")) for number, text in solutions(read(path)).items()
    }
    return Course(
        {
            name: msgspec.structs.replace(one, worked=draw.text(worked.get(name, "")))
            for name, (one, draw) in found.items()
        },
        {name: draw for name, (_, draw) in found.items()},
        STARTS,
    )


def solutions(notebook: dict[str, Any]) -> dict[str, str]:
    """Return the worked solution of each exercise in a lesson: its code cells and the explanation."""
    found: dict[str, list[str]] = {}
    for cell, number in zip(notebook["cells"], sections(notebook), strict=True):
        text = "".join(cell["source"])
        if number and tagged(cell, "solution"):
            text = re.sub(r"</?details>|<summary>.*?</summary>", "", text).strip()
        elif not number or cell["cell_type"] != "code":
            continue
        found.setdefault(number, []).append(EXERCISE.sub("", text).rstrip())
    return {number: "\n\n".join(filter(None, parts)) for number, parts in found.items()}


def notes(lessons: dict[str, dict[str, Any]]) -> str:
    """Return the lecturer's notes as Markdown: the cells tagged ``notes``, by lesson."""
    lines = [
        "# Notes for each lesson",
        "",
        "Written by `make_course.py` from the cells tagged `notes` in `notebooks/solutions`.",
    ]
    for file, lesson in lessons.items():
        about = lesson["metadata"]["course"]
        lines += ["", f"## [{about['id']} {title(lesson)}](course/{file})", ""]
        lines += ["".join(cell["source"]) for cell in lesson["cells"] if tagged(cell, "notes")]
    return "\n".join(lines) + "\n"


def read_lessons() -> dict[str, dict[str, Any]]:
    """Read the lessons with solutions, by file name."""
    return {path.name: read(path) for path in sorted(SOLUTIONS.glob("*.ipynb"))}


def files() -> dict[Path, str]:
    """Return the text of each file that this script writes."""
    lessons = read_lessons()
    found = {STORED: course().stored, NOTES: notes(lessons)} | diagrams()
    found |= {SOLUTIONS / name: written(lesson, course()) for name, lesson in lessons.items()}
    found |= {COURSE / name: written(for_students(lesson, course()), course()) for name, lesson in lessons.items()}
    guide = GUIDE.read_text("utf-8")
    head, rest = guide.split(MARKS[0])
    found[GUIDE] = f"{head}{MARKS[0]}\n{timetable(lessons)}\n{MARKS[1]}{rest.split(MARKS[1])[1]}"
    return found


def pages() -> dict[str, str]:
    """Return the lessons for the site: the student copies, with outputs to predict collapsed."""
    sys.path.insert(0, str(SOLUTIONS))
    from stories import STARTS

    made = Course(read_exercises(STORED), {}, STARTS)
    return {name: written(for_students(lesson, made, outputs=True), made) for name, lesson in read_lessons().items()}


def class_files(folder: Path, seed: int | None, *, exam: bool = False) -> dict[Path, str]:
    """Return the files for a class: student copies in the folder ``students``, and exercises for grading next to it.

    The students' exercises for an exam contain neither worked solutions nor hints, and only hashes of right answers.
    `main` also copies the stored run that lesson 09 opens.
    """
    made = course(seed)
    students = folder / "students" / "notebooks" / "course"
    found = {students / name: written(for_students(lesson, made), made) for name, lesson in read_lessons().items()}
    found |= {students / "figures" / path.name: text for path, text in diagrams().items()}
    if seed is not None or exam:
        own = {name: for_exam(one) if exam else one for name, one in made.exercises.items()}
        found |= {students / CLASS_FILE: replace(made, exercises=own).stored, folder / CLASS_FILE: made.stored}
    return found


def for_exam(exercise: Exercise) -> Exercise:
    """Return an exercise without its solution, mistakes and hints."""
    known = forms(exercise.solution) if exercise.solution is not None else set()
    salt = secrets.token_hex(16) if known else ""
    digests = tuple(sorted(digest(salt, text) for text in known))
    bare = {"hints": (), "mistakes": (), "slips": "", "worked": "", "solution": None}
    return msgspec.structs.replace(exercise, salt=salt, digests=digests, **bare)


def main() -> None:
    """Write the files; with ``--run``, run the lessons first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="numbers of the lessons to run, such as 08; by default, all lessons")
    parser.add_argument("--run", action="store_true", help="run the lessons and store their outputs first")
    parser.add_argument("--class", dest="folder", type=Path, help="write only a folder for a class")
    parser.add_argument(
        "--seed", type=int, help="seed for the class's exercise values; by default, those of the lessons"
    )
    parser.add_argument("--exam", action="store_true", help="for a class: leave out solutions and hints")
    asked = parser.parse_args()
    if asked.folder is not None:
        write(class_files(asked.folder, asked.seed, exam=asked.exam))
        demo = Path("data", "samples", "demo")
        shutil.copytree(NOTEBOOKS.parent / demo, asked.folder / "students" / demo, dirs_exist_ok=True)
        print(f"Folder for the students: {asked.folder / 'students'}")  # noqa: T201
        return
    STORED.write_text(course().stored, "utf-8")  # before the first `check`
    for path in sorted(SOLUTIONS.glob("*.ipynb")) if asked.run else []:
        if not asked.names or path.name[:2] in asked.names:
            run(path)
    for path in COURSE.glob("*.ipynb"):
        path.unlink()
    write(files())


def write(texts: dict[Path, str]) -> None:
    """Write files, creating their folders."""
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
