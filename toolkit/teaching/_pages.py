"""Write the table of a class and a page per student. The templates escape text from students."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined

from toolkit._present.files import replacing
from toolkit._present.tables import csv_table
from toolkit._present.text import visible
from toolkit.dtypes import to_arrow
from toolkit.errors import InputError
from toolkit.teaching._check import CheckedAnswer, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pandas as pd

    from toolkit.teaching._exercises import Exercise

_MAX_SHOWN = 2_000  # characters of one line of a student's output; a page holds a whole class
_MARKS = {
    Verdict.RIGHT: "✓",
    Verdict.NOT_YET: "✗",
    Verdict.NOT_ANSWERED: "…",
    Verdict.FAILED: "!",
    Verdict.MISSING: "–",  # noqa: RUF001
}


@dataclass
class Copy:
    """What a student handed in, with the verdicts on it."""

    student: str
    checked: dict[str, CheckedAnswer] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def score(self, known: Mapping[str, Exercise]) -> int:
        """Return the sum of the points for right answers."""
        return sum(known[number].points for number, one in self.checked.items() if one.verdict is Verdict.RIGHT)

    def verdict(self, number: str) -> CheckedAnswer:
        """Return the verdict on an exercise, which may not have been handed in."""
        reason = "" if self.checked else "; ".join(self.problems)  # of notebooks whose lesson is not known
        return self.checked.get(number) or CheckedAnswer(number, Verdict.MISSING, reason)


def write_pages(out: Path, frame: pd.DataFrame, copies: Mapping[int, Copy], known: Mapping[str, Exercise]) -> None:
    """Write the table of a class as CSV and HTML, and a page per student, whose number is in the name of the page.

    The CSV has the maximum of points. It starts with a byte order mark, without which Excel misreads names
    that are not ASCII.

    Raises
    ------
    InputError
        If a file cannot be written.
    """

    def lines(text: str) -> str:
        return "\n".join(visible(line, _MAX_SHOWN) for line in text[:20_000].splitlines())

    loader = PackageLoader("toolkit.teaching", "")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters |= {"shown": lambda text: visible(text, _MAX_SHOWN), "lines": lines}
    total = sum(one.points for one in known.values())
    environment.globals |= {"known": known, "marks": _MARKS, "total": total}
    lessons: dict[str, list[str]] = {}
    for number in known:
        lessons.setdefault(number[:2], []).append(number)
    environment.globals["lessons"] = lessons
    safe = {number: re.sub(r"[^\w-]", "_", copy.student)[:80] for number, copy in copies.items()}
    pages = [(copy, f"{number}-{safe[number]}.html") for number, copy in copies.items()]
    page = environment.get_template("feedback.html.j2")
    table = frame.copy()
    table.insert(2, "max_score", total)
    files = {"grades.csv": "\ufeff" + csv_table(to_arrow(table))}
    files["grades.html"] = environment.get_template("grades.html.j2").render(copies=pages)
    files |= {f"feedback/{name}": page.render(copy=copy) for copy, name in pages}
    for name, text in files.items():
        try:
            with replacing(out / name, parents=True) as file:
                file.write(text.encode())
        except OSError as error:
            raise InputError(f"{out / name} cannot be written ({error.strerror or error})") from None
