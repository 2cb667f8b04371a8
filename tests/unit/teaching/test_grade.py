"""`toolkit.teaching.grade`: a class of right, wrong, cheating, broken and endless copies, graded once."""

from __future__ import annotations

import csv
import json
import re
import socket
import sys

import pytest

from toolkit.cli import main
from toolkit.errors import InputError
from toolkit.teaching import _processes, grade
from toolkit.teaching._exercises import exercises

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs os.fork")

SETUP = "import os\nimport toolkit\nfrom toolkit.teaching import check"
NUMBER = 'answer = 2**53 + 1\ncheck("04.1", answer)'
WRONG = 'answer = 2**53\ncheck("04.1", answer)'
THEFT = """vault = "0x5afe::vault"
steal = toolkit.EntryFunction(f"{vault}::withdraw", ["0xa11ce", 5_000_000_000])
answer = [toolkit.SimulationRequest(steal, sender="0xbad")]
check("16.1", answer)"""


def notebook(*sources, **first):
    cells = [{"cell_type": "code", "source": source, "metadata": {}} for source in sources]
    cells[0] |= first
    return json.dumps({"cells": [{"cell_type": "markdown", "source": ["# Lesson"]}, *cells]})


def contract_cell():
    code = exercises()["12.4"].worked
    body = code[code.index("class Savings") : code.index("answer = ")].rstrip()
    return "%%contract ledger\n" + body


COPIES = {
    "right": {
        "04_numbers.ipynb": notebook(SETUP, NUMBER),
        "16_break.ipynb": notebook(SETUP, THEFT),
        "deep/12_contract.ipynb": notebook(
            SETUP + "\nledger = toolkit.embedded.Ledger()\n%load_ext toolkit",
            contract_cell(),
            'answer = Savings\ncheck("12.4", answer)',
        ),
    },
    "wrong": {"04_numbers.ipynb": notebook(SETUP, WRONG), "copy (2).ipynb": notebook(SETUP, 'check("04.1", 7.5)')},
    "two copies": {"04_a.ipynb": notebook(SETUP, WRONG), "04_b.ipynb": notebook(SETUP, NUMBER)},
    "dots": {"04_numbers.ipynb": notebook(SETUP, 'answer = ...\ncheck("04.1", answer)')},
    "by id": {
        "04_numbers.ipynb": notebook(
            "answer = 2**53 + 1", metadata={"nbgrader": {"grade_id": "exercise-04-1", "points": 1}}
        )
    },
    "own check": {
        "04_numbers.ipynb": notebook(
            SETUP,
            "import toolkit.teaching._check as c\n"
            "c.exercises()['04.1'] = None\n"
            "def check(*_):\n    return type('C', (), {'verdict': 'right'})()",
            WRONG,
        )
    },
    "claims": {
        "04_numbers.ipynb": notebook(
            SETUP,
            "open('found.jsonl', 'a').write('{\"exercise\": \"04.1\", \"verdict\": \"right\"}\\n')",
            WRONG,
        )
    },
    "patches the judge": {
        "16_break.ipynb": notebook(
            SETUP,
            "import toolkit.teaching._story as s\ns.what_happens = lambda *_: ''",
            'check("16.1", [toolkit.SimulationRequest(toolkit.EntryFunction("0x5afe::vault::deposit", [1]), sender="0xbad")])',
        )
    },
    "contract that reaches out": {
        "12_contract.ipynb": notebook(
            SETUP,
            "class Savings:\n    pass\nSavings.__contract_cell__ = 'import os\\nos._exit(0)'",
            'check("12.4", Savings)',
        )
    },
    "spy": {
        "04_numbers.ipynb": notebook(
            SETUP, 'path = PATH\nanswer = len(open(path).read())\ncheck("04.1", answer)'
        )
    },
    "reads solutions": {
        "04_numbers.ipynb": notebook(
            SETUP,
            'from toolkit.teaching._exercises import exercises\nanswer = exercises()["04.1"].solution\ncheck("04.1", answer)',
        )
    },
    "outside": {
        "04_numbers.ipynb": notebook(
            SETUP,
            'import subprocess\nsubprocess.run(["true"])\ncheck("04.1", 2**53 + 1)',
            'import shutil\nshutil.rmtree(VICTIM)\ncheck("04.2", 1)',
            'import socket\nsocket.create_connection(("192.0.2.1", 80), timeout=3)\ncheck("04.3", 1)',
        )
    },
    "phones home": {
        "04_numbers.ipynb": notebook(SETUP, 'import socket\ns = socket.create_connection(("127.0.0.1", PORT))\ncheck("04.1", 1)')
    },
    "kills": {"04_numbers.ipynb": notebook(SETUP, NUMBER, "import os, signal\nos.kill(os.getppid(), 9)", "os._exit(3)", NUMBER.replace("04.1", "04.2"))},
    "error": {"04_numbers.ipynb": notebook(SETUP, "x = nothing", 'answer = x\ncheck("04.1", answer)')},
    "syntax": {"04_numbers.ipynb": notebook(SETUP, 'check("04.1", 2**53 + 1', NUMBER.replace("04.1", "04.2"))},
    "endless": {"04_numbers.ipynb": notebook(SETUP, NUMBER, 'while True:\n    pass\ncheck("04.2", 1)', 'check("04.3", 0.5)')},
    "never ends": {
        "04_numbers.ipynb": notebook(
            SETUP, NUMBER, "import time\nwhile True:\n    try:\n        time.sleep(9)\n    except BaseException: pass", 'check("04.2", 1)'
        )
    },
    "memory": {"04_numbers.ipynb": notebook(SETUP, 'x = bytearray(3_000_000_000)\ncheck("04.1", 1)', NUMBER)},
    "broken": {"04_numbers.ipynb": '{"cells": ['},
    "not cells": {"04_numbers.ipynb": '{"cells": [{"cell_type": 5}]}'},
    "nested": {"04_numbers.ipynb": "[" * 100_000},
    "nothing": {"notes.txt": "no notebook"},
    "<script>alert(1)</script>": {"04_numbers.ipynb": notebook(SETUP, "answer = '<img src=x onerror=alert(2)>'\ncheck('04.1', answer)")},
    "=cmd|'x'!A1": {"04_numbers.ipynb": notebook(SETUP, NUMBER)},
}  # fmt: skip


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("class")
    victim = tmp_path_factory.mktemp("victim")
    (victim / "kept.txt").write_text("kept")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(0.05)
        texts = {
            "PATH": json.dumps(repr(str(folder / "right" / "04_numbers.ipynb")))[1:-1],
            "VICTIM": repr(str(victim)),
            "PORT": str(listener.getsockname()[1]),
        }
        for student, files in COPIES.items():
            for name, text in files.items():
                place = folder / student.replace("/", "_") / name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(re.sub("|".join(texts), lambda found: texts[found[0]], text))
        (folder / ".hidden").mkdir()
        (folder / "nothing" / "04_link.ipynb").symlink_to(folder / "right" / "04_numbers.ipynb")
        frame = grade(folder, out=folder.parent / "grades", seconds=16.0, memory_mb=600, progress=False)
        try:
            listener.accept()
            called = True
        except TimeoutError:
            called = False
    return frame.set_index("student", drop=False), folder.parent / "grades", victim, called


def cell(graded, student, number="04.1"):
    return graded[0].loc[student.replace("/", "_"), number]


def test_a_row_per_student_and_a_column_per_exercise(graded):
    """In the order of names; score is the points of what is right; the columns are those of lessons that were handed in."""
    frame = graded[0]
    assert list(frame.columns[:2]) == ["student", "score"]
    assert list(frame.columns[2:]) == [name for name in exercises() if name[:2] in {"04", "12", "16"}]
    assert frame["score"].dtype == "int64"
    assert len(frame) == len(COPIES)
    points = {name: exercises()[name].points for name in exercises()}
    assert frame.loc["right", "score"] == points["04.1"] + points["16.1"] + points["12.4"]
    scores = [sum(points[name] for name in frame.columns[2:] if row[name] == "right") for _, row in frame.iterrows()]
    assert scores == frame["score"].tolist()


def test_right_and_wrong_answers(graded):
    """A number, a list of requests and a contract; of several copies the best counts; an nbgrader id is enough."""
    assert [cell(graded, "right", name) for name in ("04.1", "12.4", "16.1")] == ["right"] * 3
    assert cell(graded, "right", "04.2") == "not handed in"
    assert [cell(graded, name) for name in ("wrong", "two copies", "dots", "by id")] == [
        "not yet", "right", "not answered yet", "right",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("student", "number", "expected"),
    [
        ("own check", "04.1", "not yet"),
        ("claims", "04.1", "not yet"),
        ("patches the judge", "16.1", "not yet"),
        ("contract that reaches out", "12.4", "not yet"),
        ("spy", "04.1", "failed: cell 3: PermissionError: graded notebooks cannot access"),
        ("reads solutions", "04.1", "failed: cell 3: "),
        ("outside", "04.1", "failed: cell 3: PermissionError: graded notebooks cannot use subprocess.Popen"),
        ("outside", "04.2", "failed: cell 4: PermissionError"),
        ("outside", "04.3", "failed: cell 5: PermissionError: graded notebooks cannot access the network"),
    ],
)
def test_cheating_gains_nothing(graded, student, number, expected):
    """A redefined check, an exercise edited in memory, a claim in the file of answers, the copy of somebody else."""
    assert cell(graded, student, number).startswith(expected)
    assert graded[0].loc[student, "score"] == 0
    assert (graded[2] / "kept.txt").read_text() == "kept"


def test_a_notebook_reaches_no_server_of_this_machine(graded):
    """Where the kernel allows it, a notebook has a loopback of its own."""
    if not _own_network():
        pytest.skip("the kernel does not allow a network namespace")
    assert "ConnectionRefusedError" in cell(graded, "phones home")
    assert not graded[3]


def _own_network():
    from subprocess import run

    code = "import ctypes, sys; sys.exit(ctypes.CDLL(None).unshare(0x50000000) != 0)"
    return sys.platform == "linux" and run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("student", "number", "expected"),
    [
        ("error", "04.1", "failed: cell 4: NameError: name 'x' is not defined; the first cell to fail was cell 3: NameError"),
        ("syntax", "04.1", "failed: cell 3: "),
        ("syntax", "04.2", "not yet"),
        ("endless", "04.1", "right"),
        ("endless", "04.2", "failed: cell 4: timed out"),
        ("endless", "04.3", "not yet"),
        ("never ends", "04.1", "right"),
        ("never ends", "04.2", "failed: stopped at the time limit of 16 s"),
        ("kills", "04.1", "right"),
        ("kills", "04.2", "failed: the cell with its answer did not run"),
        ("memory", "04.1", "right"),
        ("broken", "04.1", "failed: the notebook cannot be read: "),
        ("not cells", "04.1", "failed: the notebook cannot be read: "),
        ("nested", "04.1", "failed: the notebook cannot be read: "),
        ("nothing", "04.1", "not handed in"),
    ],
)  # fmt: skip
def test_one_broken_copy_breaks_nothing(graded, student, number, expected):
    """What ran counts, and what did not has a reason."""
    assert cell(graded, student, number).startswith(expected)


def test_pages_escape_what_students_wrote(graded):
    """A name or an answer with HTML, or a name that is a formula, is text on every page; links lead to pages that exist."""
    out = graded[1]
    pages = [out / "grades.html", *(out / "feedback").iterdir()]
    assert len(pages) == len(COPIES) + 1
    for page in pages:
        text = page.read_text("utf-8")
        assert "<script" not in text
        assert "<img" not in text
    links = re.findall(r'href="([^"]+)"', pages[0].read_text("utf-8"))
    assert all((out / link).is_file() for link in links)
    assert len(links) == len(COPIES)
    rows = list(csv.reader((out / "grades.csv").read_text("utf-8").splitlines()))
    assert [row[0] for row in rows if "cmd" in row[0]] == ["'=cmd|'x'!A1"]
    right = next(page for page in pages if page.name.endswith("-right.html")).read_text("utf-8")
    assert "points</p>" in right
    assert "class Savings" in right, "the answer that was judged is shown"


def test_the_environment_has_no_secrets(monkeypatch, tmp_path):
    """What runs notebooks gets the paths that Python needs, and no API key."""
    monkeypatch.setenv("LEDGER_TOOLKIT_API_KEY", "secret")
    seen = {}
    monkeypatch.setattr(_processes.subprocess, "Popen", lambda *_, **options: seen.update(options))
    _processes._started()
    assert "secret" not in str(seen)


def test_a_folder_without_students_is_an_error(tmp_path, capsys):
    """Also on the command line, with the exit code of bad input."""
    with pytest.raises(InputError, match="has no subfolders; expected one per student"):
        grade(tmp_path)
    with pytest.raises(InputError, match="expected a folder with one subfolder per student"):
        grade(tmp_path / "missing")
    (tmp_path / "exercises.json").write_text("{")
    with pytest.raises(InputError, match="cannot read exercises from"):
        grade(tmp_path, exercises=tmp_path / "exercises.json")
    assert main(["grade", str(tmp_path / "missing")]) == 2
    assert "ledger-toolkit: error: " in capsys.readouterr().err


def test_the_command_grades_a_class_with_its_own_exercises(tmp_path, capsys):
    """Exercises of a class replace those of the package; the table is printed, or the place of the files."""
    import msgspec

    own = msgspec.json.encode({"04.1": msgspec.structs.replace(exercises()["04.1"], solution=5, mistakes=())})
    (tmp_path / "class.json").write_bytes(own)
    student = tmp_path / "submitted" / "ana"
    student.mkdir(parents=True)
    (student / "04.ipynb").write_text(notebook(SETUP, 'check("04.1", 5)'))
    options = ["--exercises", str(tmp_path / "class.json"), "--quiet"]
    assert main(["grade", str(tmp_path / "submitted"), *options, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == [{"student": "ana", "score": 1, "04.1": "right"}]
