"""`toolkit.teaching.grade`: a class of right, wrong, broken and endless copies, graded once; and what `check` says of all exercises."""

from __future__ import annotations

import csv
import json
import os
import re
import socket
import sys
import time
from pathlib import Path
from urllib.parse import unquote

import msgspec
import pytest
from jupyter_client.connect import LocalPortCache

from tests.unit.teaching.right_answers import RIGHT, solved
from toolkit.cli import main
from toolkit.errors import InputError
from toolkit.teaching import Verdict, _grade, grade
from toolkit.teaching._answers import calls_of
from toolkit.teaching._copy import NOTEBOOK, run
from toolkit.teaching._exercises import AnswerKind, exercises
from toolkit.teaching._story import what_happens

SETUP = "from toolkit.teaching import check"
NUMBER = 'answer = 2**53 + 1\ncheck("04.1", answer)'
WRONG = 'answer = 2**53\ncheck("04.1", answer)'
LIMIT_S = 60.0  # a cell may take a quarter of it; many times what a copy needs on a machine that does nothing else


def notebook(*sources, **first):
    cells = [{"cell_type": "code", "source": source, "metadata": {}, "outputs": []} for source in sources]
    cells[0] |= first
    return json.dumps(
        {"cells": [{"cell_type": "markdown", "source": ["# Lesson"], "metadata": {}}, *cells], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    )  # fmt: skip


def nb(*sources):
    """Return a copy that contains one notebook of lesson 04."""
    return {"04_numbers.ipynb": notebook(SETUP, *sources)}


UNUSUAL = '%matplotlib inline\nget_ipython().run_line_magic("matplotlib", "inline")\ndef mine():\n    return check(exercise="04.1", answer=2**53 + 1)\nassert mine().verdict == "right"'
NEXT = 'check("04.2", 18_446_744_073_709_554_615)'
LAST = 'check("04.3", -9773)'
BLANK = "check('04.3', ...)"
HOSTILE = "<script>alert(1)</script>"
# A copy takes a process and a kernel, so what does not disturb the others is in one copy.
COPIES = {
    HOSTILE: nb(  # in its name, in the record of its answers, and in an answer
        UNUSUAL,
        "import os\nopen(os.environ['LEDGER_TOOLKIT_CHECKED'], 'a').write('{\"exercise\": \\n')",
        NEXT,
        "answer = '<img src=x onerror=alert(2)>'\ncheck('04.2', answer)",
        *('check("04.3", 7)', LAST, BLANK),
    ),
    "two copies": {
        "04_a.ipynb": notebook(SETUP, WRONG, NEXT),
        "04_b.ipynb": notebook(SETUP, NUMBER, 'check("04.2", ...)', BLANK),
    },
    "error": {
        "04_numbers.ipynb": notebook(
            f"{SETUP}\nanswer = -9773",  # which exercise it is for says the id alone
            *("x = nothing", 'answer = x\ncheck("04.1", answer)', 'check("04.2", 1)'),
            metadata={"nbgrader": {"grade_id": "exercise-04-3"}},
        )
    },
    "endless": nb(
        NUMBER,
        'import time\nwhile True:\n    print("x" * 10_000)\n    time.sleep(0.1)\ncheck("04.2", 1)',
        'check("04.3", 0.5)',
    ),
    "kills": nb(NUMBER, "import os, signal\nos.kill(os.getppid(), 9)", "os._exit(3)", 'check("04.2", 1)'),
    "dies": nb(NUMBER, "import os\nos._exit(3)", 'check("04.2", 1)'),
    "broken": {"04_numbers.ipynb": '{"cells": ['},
    "not cells": {"04_numbers.ipynb": '{"cells": [{"cell_type": 5}]}'},
    "nested": {"04_numbers.ipynb": "[" * 100_000},
    "huge": {"04_numbers.ipynb": " " * 20_000_001},
    "nothing": {"notes.txt": "no notebook"},
    "=cmd|'x'!A1": {"notes.txt": ""},
    "Zoë Šťastná 王": {"notes.txt": ""},
}
LATIN = os.fsdecode("Jérôme".encode("latin-1"))


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("class")
    pid = f"import os\nopen({str(folder.parent / 'pid')!r}, 'w').write(str(os.getpid()))"
    deaf = "import time\nwhile True:\n    try:\n        time.sleep(9)\n    except BaseException:\n        pass"
    copies = COPIES | {"deaf": nb(NUMBER, pid, deaf, 'check("04.2", 1)')}
    for student, files in copies.items():
        for name, text in files.items():
            place = folder / student.replace("/", "_") / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, "utf-8")
    (folder / ".hidden").mkdir()
    (folder / "nothing" / "04_link.ipynb").symlink_to(folder / "two copies" / "04_b.ipynb")
    if sys.platform == "linux":  # other systems name files in Unicode
        (folder / LATIN).mkdir()
        (folder / LATIN / "04_numbers.ipynb").write_bytes(
            nb('check("04.1", "?")')["04_numbers.ipynb"].replace("?", "é").encode("latin-1")
        )
    frame = grade(folder, out=folder.parent / "grades", jobs=3, seconds=LIMIT_S, progress=False)
    return frame.set_index("student", drop=False), folder.parent / "grades"


def cell(graded, student, number="04.1"):
    return graded[0].loc[student.replace("/", "_"), number]


def test_a_row_per_student_and_a_column_per_exercise(graded):
    """In the order of names; score is the points of what is right; the columns are those of lessons that were handed in."""
    frame = graded[0]
    assert list(frame.columns) == ["student", "score", "04.1", "04.2", "04.3"]
    assert frame["score"].dtype == "int64"
    assert len(frame) == len(COPIES) + 1 + (sys.platform == "linux")
    scores = [
        sum(exercises()[name].points for name in frame.columns[2:] if row[name] == "right")
        for _, row in frame.iterrows()
    ]
    assert scores == frame["score"].tolist()


@pytest.mark.parametrize(
    ("student", "number", "expected"),
    [
        (HOSTILE, "04.1", "right"),
        (HOSTILE, "04.2", "not yet"),
        (HOSTILE, "04.3", "right"),
        ("two copies", "04.1", "right"),
        ("two copies", "04.2", "right"),
        ("two copies", "04.3", "not answered yet"),
        ("error", "04.1", "failed: cell 4: NameError: name 'x' is not defined; the first cell to fail was cell 3: NameError"),
        ("error", "04.2", "not yet"),
        ("error", "04.3", "failed: check received no answer"),
        ("endless", "04.1", "right"),
        ("endless", "04.2", "failed: cell 4: timed out"),
        ("endless", "04.3", "not yet"),
        ("kills", "04.1", "right"),
        ("kills", "04.2", "failed: the notebook cannot be run"),
        ("dies", "04.1", "right"),
        ("dies", "04.3", "not handed in"),
        ("dies", "04.2", "failed: check received no answer; the first cell to fail was cell 4: the kernel died"),
        ("broken", "04.1", "failed: the notebook cannot be read: "),
        ("not cells", "04.1", "failed: the notebook cannot be read: "),
        ("nested", "04.1", "failed: the notebook cannot be read: "),
        ("huge", "04.1", "failed: the notebook cannot be read: it is larger than 20 MB"),
        ("nothing", "04.1", "not handed in"),
    ],
)  # fmt: skip
def test_the_last_answer_counts_and_what_did_not_run_has_a_reason(graded, student, number, expected):
    """However `check` was called; dots are not an answer; one broken copy breaks nothing."""
    assert cell(graded, student, number).startswith(expected)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems name files in Unicode")
def test_names_and_files_in_latin_1(graded):
    """The name is right, and a notebook that is not UTF-8 has a reason."""
    assert cell(graded, "Jérôme").startswith("failed: the notebook cannot be read: ")


def test_pages_escape_what_students_wrote(graded):
    """A name or an answer with HTML, or a name that is a formula, is text on every page; links lead to pages that exist."""
    frame, out = graded
    pages = [out / "grades.html", *(out / "feedback").iterdir()]
    assert len(pages) == len(frame) + 1
    for page in pages:
        text = page.read_text("utf-8")
        assert "<script" not in text
        assert "<img" not in text
    links = re.findall(r'href="([^"]+)"', pages[0].read_text("utf-8"))
    assert all((out / unquote(link)).is_file() for link in links)
    assert len(links) == len(frame)


def test_a_spreadsheet_reads_every_name(graded):
    """The table starts with a byte order mark; a name that is a formula is text."""
    frame, out = graded
    content = (out / "grades.csv").read_bytes()
    assert content.startswith(b"\xef\xbb\xbf")
    rows = list(csv.DictReader(content.decode("utf-8-sig").splitlines()))
    assert [row["student"].removeprefix("'") for row in rows] == frame["student"].tolist()
    assert [row["student"] for row in rows if "cmd" in row["student"]] == ["'=cmd|'x'!A1"]
    assert [int(row["score"]) for row in rows] == frame["score"].tolist()
    assert {int(row["max_score"]) for row in rows} == {sum(exercises()[name].points for name in frame.columns[2:])}
    assert "Zoë Šťastná 王" in frame.index


def sources():
    """Return the source of cells with a right answer to each exercise, and the answers that are values."""
    found = {}
    for name, exercise in exercises().items():
        if exercise.solution is not None:
            found[name] = [f"answer = {exercise.solution!r}"]
        elif exercise.answer is AnswerKind.CONTRACT:
            source = solved(name).value
            (contract,) = re.findall(r"^class (\w+)\(Module", source, re.MULTILINE)
            found[name] = ["ledger = toolkit.embedded.Ledger()", f"%%contract ledger\n{source}", f"answer = {contract}"]
        elif exercise.answer is AnswerKind.CALLS:
            calls = [(one.sender, one.function, list(one.arguments)) for one in calls_of(RIGHT[name])]
            made = "[toolkit.SimulationRequest(toolkit.EntryFunction(f, a), sender=s) for s, f, a in calls]"
            found[name] = [f"calls = {calls!r}\nanswer = {made}"]
        else:
            answer = RIGHT[name]
            found[name] = [f"answer = {answer.value if answer.kind is AnswerKind.RULES else repr(answer.value)}"]
    return found


def test_check_and_grade_agree_on_every_exercise(tmp_path, monkeypatch):
    """One notebook answers all exercises rightly, the other wrongly; `check` says in it what `grade` says of it.

    A story takes a process, which takes seconds: one of each kind of answer has it, the others run here.
    """
    in_process, kinds = _grade._tried, set()

    def tried(trial, seconds):
        if trial.answer.kind in kinds:
            return what_happens(trial.steps, trial.answer)
        kinds.add(trial.answer.kind)
        return in_process(trial, seconds)

    monkeypatch.setattr(_grade, "_tried", tried)
    right, wrong = ["import json, toolkit\n%load_ext toolkit\nseen = {}"], ["import json\nseen = {}"]
    for name, cells in sources().items():
        right += [*cells[:-1], f'{cells[-1]}\nseen["{name}"] = check("{name}", answer).verdict']
        one = exercises()[name]
        answer = one.mistakes[0][0] if one.mistakes else "no"
        wrong.append(f'seen["{name}"] = check("{name}", {answer!r}).verdict')
    for student, cells in {"right": right, "wrong": wrong}.items():
        (tmp_path / "class" / student).mkdir(parents=True)
        seen = tmp_path / f"{student}.json"
        text = notebook(SETUP, *cells, f"open({str(seen)!r}, 'w').write(json.dumps(seen))")
        (tmp_path / "class" / student / "all.ipynb").write_text(text)
    frame = grade(tmp_path / "class", seconds=1200.0, progress=False).set_index("student")
    for student, verdict in {"right": Verdict.RIGHT, "wrong": Verdict.NOT_YET}.items():
        assert (tmp_path / f"{student}.json").exists(), frame.loc[student].to_dict()
        checked = json.loads((tmp_path / f"{student}.json").read_text())
        assert frame.loc[student, list(exercises())].to_dict() == checked
        assert set(checked.values()) == {verdict}
    assert frame.loc["right", "score"] == sum(one.points for one in exercises().values())
    assert kinds >= {AnswerKind.CONTRACT, AnswerKind.CALLS, AnswerKind.RULES}


def test_a_kernel_whose_port_another_process_took_is_started_again(tmp_path, monkeypatch):
    """The first kernel gets a port that is in use, and dies; the notebook runs in the second."""
    (tmp_path / NOTEBOOK).write_text(notebook(f"open({str(tmp_path / 'ran')!r}, 'w').close()", execution_count=None))
    found, find = [], LocalPortCache.find_available_port

    def one_is_taken(ports, ip):
        found.append(find(ports, ip) if found else taken.getsockname()[1])
        return found[-1]

    monkeypatch.setattr(LocalPortCache, "find_available_port", one_is_taken)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        run(tmp_path, LIMIT_S)
    assert len(found) == 2 * 5  # a kernel has five ports
    assert (tmp_path / "ran").exists()


def test_results_are_written_as_they_come(tmp_path, monkeypatch):
    """A class whose grading ends early has the rows, and the pages, of the students graded so far."""
    for student in ("ana", "ben"):
        (tmp_path / "class" / student).mkdir(parents=True)
        (tmp_path / "class" / student / "04_numbers.ipynb").write_text("{")

    def interrupted(folder, *rest):
        if folder.name == "ben":
            while not list((tmp_path / "grades").glob("feedback/*ana*")):
                time.sleep(0.01)
            raise KeyboardInterrupt
        return whole(folder, *rest)

    whole = _grade._grade_copy
    monkeypatch.setattr(_grade, "_grade_copy", interrupted)
    with pytest.raises(KeyboardInterrupt):
        grade(tmp_path / "class", out=tmp_path / "grades", jobs=2, progress=False)
    rows = list(csv.DictReader((tmp_path / "grades" / "grades.csv").read_text("utf-8-sig").splitlines()))
    assert [row["student"] for row in rows] == ["ana"]
    assert [page.name for page in (tmp_path / "grades" / "feedback").iterdir()] == ["1-ana.html"]


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="reads processes from /proc")
def test_a_copy_that_cannot_be_interrupted_leaves_no_process(graded):
    """The kernel ends with the process that runs the notebook; the answers before count."""
    assert cell(graded, "deaf") == "right"
    assert cell(graded, "deaf", "04.2").startswith("failed: ")  # its cell's limit or the notebook's
    process = Path("/proc", (graded[1].parent / "pid").read_text())
    for _ in range(300):
        if not process.exists():
            break
        time.sleep(0.1)
    assert not process.exists()


def test_a_contract_that_never_ends_is_judged_in_time(tmp_path):
    """The story of an answer has the time limit of a notebook."""
    steps = exercises()["12.4"].steps
    trial = _grade.StoryTrial(steps, msgspec.structs.replace(solved("12.4"), value="while True:\n    pass"))
    assert _grade._tried(trial, 3.0) == "The answer could not be judged within 3 s"


def test_a_folder_without_students_is_an_error(tmp_path, capsys):
    """Also on the command line, with the exit code of bad input."""
    with pytest.raises(InputError, match="has no subfolders"):
        grade(tmp_path)
    with pytest.raises(InputError, match="one subfolder per student"):
        grade(tmp_path / "missing")
    (tmp_path / "exercises.json").write_text("{")
    with pytest.raises(InputError, match="cannot read exercises from"):
        grade(tmp_path, exercises=tmp_path / "exercises.json")
    (tmp_path / "class" / "ana").mkdir(parents=True)
    with pytest.raises(InputError, match="has no subfolders with notebooks"):
        grade(tmp_path / "class")
    (tmp_path / "class" / "ana" / "04.ipynb").write_text("{")
    with pytest.raises(InputError, match="cannot be written"):
        grade(tmp_path / "class", out=tmp_path / "exercises.json")
    assert main(["grade", str(tmp_path / "missing")]) == 2
    assert "ledger-toolkit: error: " in capsys.readouterr().err


def test_without_nbclient_it_says_what_to_install(tmp_path, monkeypatch):
    """The extra is named."""
    monkeypatch.setattr(_grade, "find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"ledger-toolkit\[notebook\]"):
        grade(tmp_path)


def test_the_command_grades_a_class_with_its_own_exercises(tmp_path, capsys):
    """Exercises of a class replace those of the package, also for `check` in the notebook; the table is printed."""
    own = msgspec.json.encode({"04.1": msgspec.structs.replace(exercises()["04.1"], solution=5, mistakes=())})
    (tmp_path / "class.json").write_bytes(own)
    student = tmp_path / "submitted" / "ana"
    student.mkdir(parents=True)
    (student / "04.ipynb").write_text(notebook(SETUP, 'assert check("04.1", 5).verdict == "right"\ncheck("04.1", 5)'))
    options = ["--exercises", str(tmp_path / "class.json"), "--quiet"]
    assert main(["grade", str(tmp_path / "submitted"), *options, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == [{"student": "ana", "score": 1, "04.1": "right"}]
