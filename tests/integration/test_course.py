"""The course: lessons have one form, copies for students are generated, and every solution is right.

`make notebooks` runs the lessons with their solutions and compares what they show with the outputs that are stored.
"""

from __future__ import annotations

import ast
import json
import os
import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from itertools import pairwise
from pathlib import Path

import pytest

from toolkit.teaching import Verdict, check
from toolkit.teaching._exercises import exercises, read_exercises

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
SOLUTIONS = sorted((NOTEBOOKS / "solutions").glob("*.ipynb"))
LESSONS = {path.stem: json.loads(path.read_text("utf-8")) for path in SOLUTIONS}


@pytest.fixture(scope="module")
def script():
    spec = spec_from_file_location("make_course", NOTEBOOKS / "make_course.py")
    module = module_from_spec(spec)
    sys.path.insert(0, str(NOTEBOOKS))
    sys.modules["make_course"] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    yield module
    sys.path[:] = [path for path in sys.path if Path(path) not in {NOTEBOOKS, NOTEBOOKS / "solutions"}]


def source(cell):
    return "".join(cell["source"])


def code(notebook, *, exercises=True):
    """Return the sources of the code cells without the lines of magics."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    kept = [source(cell) for cell in cells if exercises or "exercise" not in cell["metadata"].get("tags", [])]
    return ["\n".join(line for line in text.splitlines() if not line.startswith("%")) for text in kept]


def test_copies_for_students_and_the_timetable_are_generated(script):
    """`python notebooks/make_course.py` would change nothing, and no lesson exists in one folder only."""
    written = script.files()
    assert [path for path, text in written.items() if path.read_text("utf-8") != text] == []
    assert {path.name for path in (NOTEBOOKS / "course").glob("*.ipynb")} == {path.name for path in SOLUTIONS}


@pytest.mark.parametrize("name", LESSONS)
def test_solutions_are_right(name, script):
    """Every exercise of a lesson with solutions shows that the answer is right."""
    cells = [cell for cell in LESSONS[name]["cells"] if "exercise" in cell["metadata"].get("tags", [])]
    shown = ["".join(cell["outputs"][-1]["data"]["text/plain"]) for cell in cells]
    assert shown == [f"{number}: right." for number in script.exercises(LESSONS[name])]


@pytest.mark.parametrize("name", LESSONS)
def test_lessons_have_one_form(name):
    """Heading with questions, objectives, prerequisites and minutes; the story and a diagram; what it says; a question; key points."""
    notebook, about = LESSONS[name], LESSONS[name]["metadata"]["course"]
    texts = [source(cell) for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
    head = texts[0]
    assert head.startswith(f"# {about['id']} ")
    assert name.startswith(about["id"] + "_")
    assert "**Question" in head
    assert "**After this lesson, you can**" in head
    needs = "none" if not about["needs"] else " and ".join(about["needs"])
    assert re.search(rf"Prerequisites?: (lessons? )?{needs}", head), head
    assert f"Time: {about['teaching']} minutes, plus {about['exercises']} for the exercises." in head
    assert 10 <= about["teaching"] <= 20
    whole = "\n".join(texts)
    assert "**What it shows:**" in whole
    assert "redict" in whole
    assert "**Hands up.**" in whole
    assert texts[1].startswith("> ")
    assert re.search(rf"!\[.+\]\(\.\./course/figures/{about['id']}\.svg\)$", texts[1])
    notes = [source(cell) for cell in notebook["cells"] if "notes" in cell["metadata"].get("tags", [])]
    assert ["Hands up, " in text or "Hands up" not in whole for text in notes] == [True]
    points = texts[-1].splitlines()
    assert points[0] == "## Key points"
    assert 3 <= sum(line.startswith("- ") for line in points) <= 5
    figures = [
        output
        for cell in notebook["cells"]
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]
    assert figures
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", [])]
    assert [output for output in outputs if output["output_type"] == "error" or output.get("name") == "stderr"] == []
    assert len(LESSONS[name]["cells"]) <= 45


@pytest.mark.parametrize("name", LESSONS)
def test_a_question_does_not_part_a_text_from_its_cell(name):
    """The text before a cell says what the cell does; a question to the class comes before it or after the cell."""
    cells = LESSONS[name]["cells"]
    kinds = [(source(cell), after["cell_type"]) for cell, after in pairwise(cells)]
    assert [text for text, after in kinds if text.startswith("**Hands up.**") and after == "code"] == []


def test_each_exercise_is_in_one_lesson_and_the_other_way_round(script):
    """The exercises of the notebooks are those that `check` knows, two to six in a lesson, in order."""
    found = [script.exercises(lesson) for lesson in LESSONS.values()]
    assert [one for each in found for one in each] == list(exercises())
    assert all(
        2 <= len(each) <= 6 and {one[:2] for one in each} == {name[:2]}
        for name, each in zip(LESSONS, found, strict=True)
    )


def test_no_file_of_a_student_has_an_answer(script):
    """Copies for students have neither solutions nor what they compute, nor notes, nor outputs to predict."""
    for path in (NOTEBOOKS / "course").glob("*.ipynb"):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        assert [cell for cell in cells if {"solution", "notes"} & set(cell["metadata"].get("tags", []))] == []
        hidden = script.predicted({"cells": cells})
        assert hidden
        assert [cells[place]["outputs"] for place in hidden if cells[place]["outputs"]] == []
        starts = {source(cell) for cell in cells if "start" in cell["metadata"].get("tags", [])}
        lesson = json.loads((NOTEBOOKS / "solutions" / path.name).read_text("utf-8"))
        assert not starts & {source(cell) for cell in lesson["cells"] if "start" in cell["metadata"].get("tags", [])}
        blanks = [source(cell) for cell in cells if "exercise" in cell["metadata"].get("tags", [])]
        assert all(re.fullmatch(r'answer = \.\.\.\ncheck\("\d\d\.\d", answer\)', blank) for blank in blanks)


@pytest.mark.parametrize("name", LESSONS)
def test_lessons_run_without_the_answers(name):
    """No cell outside of the exercises uses a name that only a solution assigns."""
    tree = [ast.parse(text) for text in code(LESSONS[name], exercises=False)]
    names = [node for part in tree for node in ast.walk(part) if isinstance(node, ast.Name)]
    assigned = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    solved = [ast.parse(text) for text in code(LESSONS[name])]
    only = {
        node.id
        for part in solved
        for node in ast.walk(part)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    } - assigned
    assert only & {node.id for node in names} == set()


def test_no_helper_is_defined_twice():
    """A function or class that two lessons would need belongs to the toolkit."""
    defined = [
        node.name
        for lesson in LESSONS.values()
        for text in code(lesson)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.col_offset == 0
    ]
    assert len(defined) == len(set(defined))


def test_needs_name_earlier_lessons():
    """A lesson needs lessons that come before it."""
    for lesson in LESSONS.values():
        about = lesson["metadata"]["course"]
        assert all(need < about["id"] for need in about["needs"])


def test_exercises_have_the_metadata_of_nbgrader():
    """A cell for the answer, and after it a locked cell, the autograder test, with the points of the exercise."""
    for path in sorted((NOTEBOOKS / "course").glob("*.ipynb")):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        marked = [(cell["metadata"]["nbgrader"], source(cell)) for cell in cells if "nbgrader" in cell["metadata"]]
        assert all(re.fullmatch(r"[\w-]+", one["grade_id"]) and one["schema_version"] == 3 for one, _ in marked)
        for (answer, blank), (test, code) in zip(marked[::2], marked[1::2], strict=True):
            (name,) = re.findall(r'check\("(\d\d\.\d)"', blank)
            number = name.replace(".", "-")
            assert (answer["grade_id"], test["grade_id"]) == (f"exercise-{number}", f"points-{number}")
            assert (answer["solution"], answer["grade"], answer["locked"]) == (True, False, False)
            assert (test["solution"], test["grade"], test["locked"]) == (False, True, True)
            assert test["points"] == exercises()[name].points
            assert f'points("{name}")' in code


@pytest.mark.filterwarnings("ignore")  # nbgrader's own
def test_nbgrader_grades_a_copy(tmp_path, monkeypatch):
    """`nbgrader autograde` gives the points of a right answer, and none for a wrong or missing one, without marking by hand."""
    from nbgrader.api import Gradebook
    from nbgrader.apps import NbGraderAPI
    from traitlets.config import PyFileConfigLoader

    (lesson,) = (NOTEBOOKS / "course").glob("04_*.ipynb")
    (tmp_path / "source" / "lesson").mkdir(parents=True)
    whole = json.loads(lesson.read_text("utf-8"))
    first, *others = [cell for cell in whole["cells"] if cell["cell_type"] == "code"]
    shown = [cell for cell in others if "nbgrader" not in cell["metadata"]]  # `make notebooks` runs these
    assert "from toolkit.teaching import check" in source(first)
    whole["cells"] = [cell for cell in whole["cells"] if cell not in shown]
    (tmp_path / "source" / "lesson" / lesson.name).write_text(json.dumps(whole), "utf-8")
    scripts = Path(sys.executable).parent  # nbgrader runs alembic
    monkeypatch.setenv("PATH", os.pathsep.join([str(scripts), os.environ["PATH"]]))
    monkeypatch.setenv("PYTHONPATH", str(NOTEBOOKS.parent))
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "1")
    config = PyFileConfigLoader("nbgrader_config.py", path=str(NOTEBOOKS)).load_config()
    config.CourseDirectory.root = str(tmp_path)
    nbgrader = NbGraderAPI(config=config)
    assert nbgrader.generate_assignment("lesson")["success"]
    notebook = json.loads((tmp_path / "release" / "lesson" / lesson.name).read_text("utf-8"))
    answers = {
        "exercise-04-1": 'answer = 2**53 + 1\ncheck("04.1", answer)\nanswer = 0',
        "exercise-04-2": 'answer = 18_446_744_073_709_554_615\ncheck("04.2", answer)\ncheck("04.2", 7)',
    }
    for cell in notebook["cells"]:
        name = cell["metadata"].get("nbgrader", {}).get("grade_id")
        cell["source"] = answers.get(name, cell["source"])
    copy = tmp_path / "submitted" / "ana" / "lesson" / lesson.name
    copy.parent.mkdir(parents=True)
    copy.write_text(json.dumps(notebook), "utf-8")
    assert nbgrader.autograde("lesson", "ana")["success"]
    with Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}") as book:
        (graded,) = book.assignment_submissions("lesson")
        assert not graded.needs_manual_grade
        found = {one.name: (one.score, one.max_score) for one in graded.notebooks[0].grades}
    assert found == {"points-04-1": (1, 1), "points-04-2": (0, 1), "points-04-3": (0, 1)}


def test_a_class_has_exercises_of_its_own(script, tmp_path):
    """With a seed, texts and solutions have other numbers, the same in both; the rest of a lesson stays as it is."""
    script.write(script.class_files(tmp_path, 2027))
    students = tmp_path / "students" / "notebooks" / "course"
    assert {path.name for path in students.glob("*.ipynb")} == {path.name for path in SOLUTIONS}
    own, usual = read_exercises(tmp_path / "exercises.json"), exercises()
    assert read_exercises(students / "exercises.json") == own
    assert own.keys() == usual.keys()
    changed = {name for name in own if own[name] != usual[name]}
    assert len(changed) >= 15
    for path in students.glob("*.ipynb"):
        text, before = path.read_text("utf-8"), (NOTEBOOKS / "course" / path.name).read_text("utf-8")
        names = {name for name, draw in script.course(2027).draws.items() if draw.words and name[:2] == path.name[:2]}
        assert (text != before) == bool(names), path.name
    (version,) = re.findall(r"fall\*\* from version ([\d,]+) to", (students / "01_first_look.ipynb").read_text("utf-8"))
    assert f"version {version}" in own["01.2"].mistakes[2][1]
    assert version != "1,000"
    assert f"({version.replace(',', '_')})" in own["01.2"].worked


def test_a_class_has_an_exam(script, tmp_path, monkeypatch):
    """Its exercises contain no solutions, mistakes or hints, and judge as those for grading do."""
    monkeypatch.setattr("toolkit.teaching._exercises._ROUNDS", 1)  # thousands make a hash slow, and none another kind
    script.write(script.class_files(tmp_path, 2027, exam=True))
    students = tmp_path / "students" / "notebooks" / "course"
    own, whole = read_exercises(students / "exercises.json"), read_exercises(tmp_path / "exercises.json")
    assert {name: bool(one.steps) for name, one in own.items()} == {
        name: bool(one.steps) for name, one in whole.items()
    }
    assert [one for one in own.values() if one.worked or one.hints or one.mistakes or one.solution is not None] == []
    assert len({one.salt for one in own.values() if not one.steps}) == sum(not one.steps for one in own.values())
    monkeypatch.chdir(students)
    names = ["01.1", "03.1", "04.2", "06.1", "10.2", "12.1"]
    assert {check(name, whole[name].solution).verdict for name in names} == {Verdict.RIGHT}
    assert check("06.1", whole["06.1"].solution.rpartition("::")[2]).verdict is Verdict.RIGHT
    wrong = check("01.1", whole["01.1"].solution + 1)
    assert (wrong.verdict, wrong.worked) == (Verdict.NOT_YET, "")
    assert str(whole["01.2"].solution) not in (students / "exercises.json").read_text("utf-8")


def test_the_module_of_lesson_18_is_the_one_that_the_script_writes(script):
    """The bytes in the lesson, and what they do: interest that is rounded down, and 15 instructions for each year."""
    from club_module import CODE, club_module, grown

    import toolkit

    (listing,) = [text for text in code(LESSONS["18_inside_the_machine"]) if "bytes.fromhex(" in text]
    assert "".join(re.findall(r'"([0-9a-f]+)"', listing)) == club_module().hex()
    module = toolkit.vm.Module.from_bytes(club_module())
    assert len(module.disassemble("grown").splitlines()) == len(CODE) + 1
    with toolkit.connect() as node:
        runs = [grown(node, 1_000, years) for years in (0, 3)]
    assert [int.from_bytes(run.values[0], "little") for run in runs] == [1_000, 1_157]
    assert [len(run.trace.rows) for run in runs] == [6, 51]


def test_the_script_refuses_an_exercise_without_a_check(script):
    """An exercise that does not end in `check` cannot be blanked, so the script stops."""
    with pytest.raises(ValueError, match="must end with check"):
        script.number_of({"source": ["answer = 5"], "metadata": {}})
    assert "toolkit" in sys.modules
