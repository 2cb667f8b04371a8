"""One writer per run folder."""

from __future__ import annotations

import errno
import subprocess
import sys

import pytest

from toolkit.archive._lock import locked
from toolkit.errors import RunStopped, StudyError

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
        for place in (tmp_path, tmp_path / "." / ".." / tmp_path.name):
            with pytest.raises(StudyError, match="in use by another run"), locked(place):
                pass
        with locked(tmp_path, "sync"):
            pass
    with locked(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_lock_dies_with_its_process(tmp_path):
    """Killed, it leaves a file and no lock."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StudyError, match="in use by another run"), locked(tmp_path):
            pass
        holder.kill()
    assert (tmp_path / "run.lock").exists()
    with locked(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_locks_is_said_so(tmp_path, monkeypatch):
    """A file system that knows no locks, as stores mounted as folders may not, is refused with the way out."""
    fcntl = pytest.importorskip("fcntl", reason="Windows locks in another way")

    def no_locks(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with pytest.raises(StudyError, match="local disk"), locked(tmp_path):
        pass
    monkeypatch.undo()
    with locked(tmp_path):
        pass


def test_a_folder_that_was_moved_is_noticed(tmp_path):
    """By the folder itself, not by its path: another one may have taken its place."""
    folder = tmp_path / "run"
    folder.mkdir()
    with locked(folder) as check:
        check()
        folder.rename(tmp_path / "moved")
        for _ in range(2):
            with pytest.raises(RunStopped):
                check()
            folder.mkdir(exist_ok=True)


def test_a_missing_folder_is_a_study_error(tmp_path):
    """The error names the file that cannot be opened."""
    with pytest.raises(StudyError, match="cannot be locked"), locked(tmp_path / "none"):
        pass
