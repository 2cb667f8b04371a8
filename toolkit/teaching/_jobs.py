"""Messages between `grade` and the process that runs notebooks."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from toolkit.teaching._answers import Answer
from toolkit.teaching._exercises import Step

FOUND = "found.jsonl"  # name of the file to which a fork writes its findings, in the folder of its job
_GRADE_ID = re.compile(r"exercise-(\d\d)-(\d+)")
_CHECKED = re.compile(r"""\bcheck\(\s*["'](\d\d\.\d+)["']""")


class Cell(msgspec.Struct, frozen=True):
    """A cell of a notebook."""

    cell_type: str
    source: str | list[str] = ""
    metadata: dict[str, Any] = {}

    @property
    def text(self) -> str:
        """Source of the cell."""
        return self.source if isinstance(self.source, str) else "".join(self.source)

    @property
    def exercises(self) -> list[str]:
        """Numbers of the exercises that the cell answers: from its calls to `check`, or else from its nbgrader id."""
        if self.cell_type != "code":
            return []
        grader = self.metadata.get("nbgrader")
        named = _GRADE_ID.fullmatch(str(grader.get("grade_id"))) if isinstance(grader, dict) else None
        return list(dict.fromkeys(_CHECKED.findall(self.text))) or ([f"{named[1]}.{named[2]}"] if named else [])


class Notebook(msgspec.Struct, frozen=True):
    """The cells of a notebook."""

    cells: list[Cell]


class Job(msgspec.Struct, frozen=True):
    """A notebook to run, or an answer to try in a story."""

    folder: str  # for this job only; the fork writes its `Found` records in it
    seconds: float
    memory_mb: int
    hidden: tuple[str, ...] = ()  # folders and files that the fork must not read
    notebook: str = ""
    steps: tuple[Step, ...] = ()
    answer: Answer | None = None


class Found(msgspec.Struct, frozen=True):
    """A finding of a fork: an answer, the reason why a cell has no answer, or what goes wrong in a story."""

    exercise: str = ""
    answer: Answer | None = None
    problem: str = ""
