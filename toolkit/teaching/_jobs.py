"""What `grade` and the process that runs notebooks send to each other."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from toolkit.teaching._answers import Answer
from toolkit.teaching._exercises import Step

FOUND = "found.jsonl"
"""File of what a fork found, in the folder of its job."""
_GRADE_ID = re.compile(r"exercise-(\d\d)-(\d+)")
_CHECKED = re.compile(r"""\bcheck\(\s*["'](\d\d\.\d+)["']""")


class Cell(msgspec.Struct, frozen=True):
    """A cell of a notebook."""

    cell_type: str
    source: str | list[str] = ""
    metadata: dict[str, Any] = {}

    @property
    def text(self) -> str:
        """Its source."""
        return self.source if isinstance(self.source, str) else "".join(self.source)

    @property
    def exercises(self) -> list[str]:
        """Numbers of the exercises that it answers: from its calls to `check`, or else from its nbgrader id."""
        if self.cell_type != "code":
            return []
        grader = self.metadata.get("nbgrader")
        named = _GRADE_ID.fullmatch(str(grader.get("grade_id"))) if isinstance(grader, dict) else None
        return list(dict.fromkeys(_CHECKED.findall(self.text))) or ([f"{named[1]}.{named[2]}"] if named else [])


class Notebook(msgspec.Struct, frozen=True):
    """The cells of a notebook."""

    cells: list[Cell]


class Job(msgspec.Struct, frozen=True):
    """A notebook to run, or an answer to use in the steps of a story."""

    folder: str
    """A folder of its own, in which the file of `Found` is written."""
    seconds: float
    memory_mb: int
    hidden: tuple[str, ...] = ()
    """Folders and files that the fork must not read."""
    notebook: str = ""
    steps: tuple[Step, ...] = ()
    answer: Answer | None = None


class Found(msgspec.Struct, frozen=True):
    """What a fork found: an answer, why a cell has none, or what is wrong in a story."""

    exercise: str = ""
    answer: Answer | None = None
    problem: str = ""
