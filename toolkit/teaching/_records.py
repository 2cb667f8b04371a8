"""Records that the processes of `grade` exchange: what `check` received in a notebook, and answers to try."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from toolkit.teaching._answers import Answer
from toolkit.teaching._exercises import Step

if TYPE_CHECKING:
    from collections.abc import Iterator

Line = TypeVar("Line")

RECORD = "LEDGER_TOOLKIT_CHECKED"  # environment variable that names the file; only `grade` sets it


class Checked(msgspec.Struct, frozen=True):
    """An exercise and the answer that `check` received, or None for the dots."""

    exercise: str
    answer: Answer | None


class Trial(msgspec.Struct, frozen=True):
    """An answer and the story in which it is tried."""

    steps: tuple[Step, ...]
    answer: Answer


def record(exercise: str, answer: Answer | None) -> None:
    """Append a call of `check` to the record, if there is one."""
    if path := os.environ.get(RECORD):
        with Path(path).open("ab") as file:
            file.write(msgspec.json.encode(Checked(exercise, answer)) + b"\n")


def read_lines(path: Path, kind: type[Line]) -> Iterator[Line]:
    """Yield the records in a file, if it exists. A process that was stopped may have left an incomplete line."""
    if path.is_file():
        with path.open("rb") as file:
            for line in file:
                with suppress(msgspec.DecodeError, RecursionError):
                    yield msgspec.json.decode(line, type=kind)
