"""The table of faults in `tests/README.md`, made from the `fault` marks of the tests.

Run ``python tests/robustness/fault_table.py`` after adding a test; `test_fault_table.py` compares.
"""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
README = TESTS / "README.md"
BEGIN, END = "<!-- faults: generated -->", "<!-- end of faults -->"


def marked_tests() -> list[tuple[str, str, str]]:
    """Return (kind of fault, outcome, test) for each marked test, sorted."""
    rows = []
    for file in TESTS.rglob("test_*.py"):
        text = file.read_text("utf-8")
        for node in ast.walk(ast.parse(text)) if "mark.fault(" in text else ():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                marks = [mark for mark in node.decorator_list if ast.unparse(mark).startswith("pytest.mark.fault(")]
                for mark in marks:
                    kind, outcome = (ast.literal_eval(argument) for argument in mark.args)
                    rows.append((kind, outcome, f"{file.relative_to(TESTS).as_posix()}::{node.name}"))
    return sorted(rows)


def table() -> str:
    """Return the table in Markdown, between its two marks."""
    rows = [" | ".join(["", kind, outcome, f"`{test}`", ""]).strip() for kind, outcome, test in marked_tests()]
    return "\n".join([BEGIN, "| fault | outcome | test |", "|---|---|---|", *rows, END])


def with_table(text: str) -> str:
    """Return the README's text with the table as it is now."""
    before, _, rest = text.partition(BEGIN)
    return before + table() + rest.partition(END)[2]


if __name__ == "__main__":
    README.write_text(with_table(README.read_text("utf-8")), "utf-8")
