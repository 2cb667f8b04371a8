"""Grade a class of 20 copies of lesson 08, good, empty, half, wrong, broken, endless and unusual, and print the time.

python -m tests.benchmarks.grading
"""

from __future__ import annotations

import copy
import json
import resource
import tempfile
import time
from pathlib import Path

from toolkit.teaching import grade
from toolkit.teaching._exercises import exercises

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
NAME = "08_what_gas_is_made_of.ipynb"
SOLVED, BLANK = (json.loads((NOTEBOOKS / folder / NAME).read_text("utf-8")) for folder in ("solutions", "course"))
ANSWERS = {
    source.rpartition('check("')[2][:4]: source
    for cell in SOLVED["cells"]
    if 'check("' in (source := "".join(cell["source"])) and "exercise" in cell["metadata"].get("tags", [])
}
MISTAKES = {
    name: f'answer = {exercises()[name].mistakes[0][0] if exercises()[name].mistakes else "[]"}\ncheck("{name}", answer)'
    for name in ANSWERS
}


def filled(answers):
    """Return the student copy with some cells answered."""
    made = copy.deepcopy(BLANK)
    for cell in made["cells"]:
        for name, source in answers.items():
            if "".join(cell["source"]).endswith(f'check("{name}", answer)'):
                cell["source"] = source
    return json.dumps(made)


def some(number):
    return dict(list(ANSWERS.items())[:number])


KEYWORDS = {name: source.replace('check("', 'check(exercise="').replace(", answer)", ", answer=answer)") for name, source in ANSWERS.items()}  # fmt: skip
IN_A_FUNCTION = {name: "def mine():\n    " + source.replace("\n", "\n    ").replace("    check(", "    return check(") + "\nmine().verdict" for name, source in ANSWERS.items()}  # fmt: skip
AS_TEXT = ANSWERS | {"08.1": 'check("08.1", "443,400 octas")', "08.3": 'check("08.3", "-37 020")'}
COPIES = {
    **{f"good {number}": filled(ANSWERS) for number in range(1, 5)},
    **{f"empty {number}": filled({}) for number in range(1, 4)},
    **{f"half {number}": filled(some(2)) for number in range(1, 4)},
    **{f"wrong {number}": filled(MISTAKES) for number in range(1, 4)},
    "broken file": filled(ANSWERS)[:5_000],
    "broken cell": filled(ANSWERS | {"08.2": "answer = (\n"}),
    "endless": filled(ANSWERS | {"08.2": "while True:\n    pass"}),
    "keywords": filled(KEYWORDS),
    "in a function": filled(IN_A_FUNCTION),
    "as text": filled(AS_TEXT),
    "nothing": None,
}


def main():
    with tempfile.TemporaryDirectory() as folder:
        for student, text in COPIES.items():
            place = Path(folder, "class", student)
            place.mkdir(parents=True)
            if text is not None:
                (place / NAME).write_text(text, "utf-8")
        start = time.perf_counter()
        graded = grade(Path(folder, "class"), out=Path(folder, "grades"), seconds=120)
        seconds = time.perf_counter() - start
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    short = graded.apply(lambda column: column.astype(str).str.slice(0, 40))
    print(short.to_string())
    print(f"{len(graded)} copies in {seconds:.0f} s; {used.ru_utime + used.ru_stime:.0f} s of processor time")


if __name__ == "__main__":
    main()
