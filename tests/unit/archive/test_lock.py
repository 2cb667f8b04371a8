"""One writer per run folder."""

from __future__ import annotations

import subprocess
import sys

import pytest

from toolkit.archive._lock import locked
from toolkit.errors import StudyError

HOLD = """
import sys
from pathlib import Path
from toolkit.archive._lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_run_of_this_process_is_refused(tmp_path):
    """Two cells of a notebook cannot write to one folder; when the first is done, the second may."""
    with locked(tmp_path):
        with (
            pytest.raises(StudyError, match="in use by another run of this process"),
            locked(tmp_path),
        ):
            pass
        with pytest.raises(StudyError), locked(tmp_path / "." / ".." / tmp_path.name):
            pass
    with locked(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_lock_dies_with_its_process(tmp_path):
    """Another process holds it and is named; killed, it leaves a file and no lock."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StudyError, match=rf"in use by another run \(process {holder.pid} on "), locked(tmp_path):
            pass
        holder.kill()
    assert (tmp_path / "run.lock").exists()
    with locked(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_lock_file_of_a_dead_run_is_taken_over(tmp_path):
    """The file alone says nothing."""
    (tmp_path / "run.lock").write_text("process 1 on elsewhere")
    with locked(tmp_path):
        assert "process 1 " not in (tmp_path / "run.lock").read_text()


def test_a_folder_without_locks_is_said_so(tmp_path, monkeypatch):
    """A file system that knows no locks, as stores mounted as folders may not, is refused with the way out."""

    def no_locks(_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr("toolkit.archive._lock._lock", no_locks)
    with (
        pytest.raises(StudyError, match=r"\(No locks available\).*local disk"),
        locked(tmp_path),
    ):
        pass
    monkeypatch.undo()
    with locked(tmp_path):
        pass


def test_a_missing_folder_is_a_study_error(tmp_path):
    """What cannot be opened is said by name."""
    with pytest.raises(StudyError, match="cannot be written"), locked(tmp_path / "none"):
        pass
