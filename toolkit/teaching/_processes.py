"""Start and stop the processes that run students' code, from the judging process."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from toolkit._present.files import read_file
from toolkit.teaching._jobs import FOUND, Found, Job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.teaching._answers import Answer
    from toolkit.teaching._exercises import Step


_MAX_FOUND = 5_000_000  # bytes of what a notebook found, which a student can write


class Runner:
    """A process that runs notebooks and stories. It is restarted if one of them kills it."""

    def __init__(self, seconds: float, memory_mb: int, hidden: tuple[str, ...]) -> None:
        self._limits: dict[str, Any] = {"seconds": seconds, "memory_mb": memory_mb, "hidden": hidden}
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, notebook: bytes) -> tuple[list[Found], str]:
        """Run a notebook; return its findings and, if it was stopped, the reason."""
        with tempfile.TemporaryDirectory(prefix="ledger-toolkit-grade-") as folder:
            path = Path(folder, "notebook.ipynb")
            path.write_bytes(notebook)
            return self._do(Job(folder, **self._limits, notebook=str(path)))

    def story(self, steps: Sequence[Step], answer: Answer) -> str:
        """Run a story with an answer; return what goes wrong."""
        with tempfile.TemporaryDirectory(prefix="ledger-toolkit-grade-") as folder:
            found, problem = self._do(Job(folder, **self._limits, steps=tuple(steps), answer=answer))
        return found[0].problem if found else f"The answer could not be judged: {problem or 'its process ended'}"

    def close(self) -> None:
        """Kill the process if it is running."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _do(self, job: Job) -> tuple[list[Found], str]:
        process = self._process = self._process or _started()
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 - for mypy
        try:
            process.stdin.write(msgspec.json.encode(job) + b"\n")
            process.stdin.flush()
            problem = msgspec.json.decode(process.stdout.readline(), type=str)
        except (OSError, msgspec.DecodeError):
            self.close()
            problem = "its process ended unexpectedly"
        return _found_in(Path(job.folder, FOUND)), problem


def _started() -> subprocess.Popen[bytes]:
    """Start a process that runs students' code, without environment variables that may hold secrets."""
    kept = ("HOME", "LANG", "LC_ALL", "LEDGER_TOOLKIT_CACHE", "PATH", "TMPDIR", "XDG_CACHE_HOME")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    command = [sys.executable, "-P", "-c", "from toolkit.teaching._runner import main; main()"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment)  # noqa: S603 - the interpreter itself


def _found_in(path: Path) -> list[Found]:
    """Return the findings that a fork wrote, without incomplete or malformed lines."""
    found, content = [], b""
    with suppress(OSError):
        content = read_file(path, limit=_MAX_FOUND)
    for line in content.splitlines():
        with suppress(msgspec.DecodeError, RecursionError):
            found.append(msgspec.json.decode(line, type=Found))
    return found
