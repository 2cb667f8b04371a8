"""One writer per run folder: a lock that dies with its process, and that a second run in this process meets too."""

from __future__ import annotations

import os
import socket
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from toolkit.errors import StudyError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["locked"]

_NAME = "run.lock"
_MOST_TEXT = 200
_held: set[Path] = set()
_guard = threading.Lock()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a run folder while the block runs.

    Parameters
    ----------
    folder : Path
        An existing folder.

    Raises
    ------
    StudyError
        At once, if another run holds it; or if the file system gives no locks.
    """
    place = folder.resolve() / _NAME
    with _guard:
        if place in _held:
            raise _refusal(folder, "of this process")
        _held.add(place)
    try:
        handle = _taken(place, folder)
        try:
            with suppress(OSError):  # for people to read; a full disk is told of where it matters
                os.ftruncate(handle, 0)
                os.write(handle, f"process {os.getpid()} on {socket.gethostname()}".encode())
            yield
        finally:
            # Removed while it is held, so that nobody can be left with the lock of a file that is gone.
            with suppress(OSError):
                place.unlink()
            os.close(handle)
    finally:
        with _guard:
            _held.discard(place)


def _taken(place: Path, folder: Path) -> int:
    """Open and lock the file; the lock of a file that was removed meanwhile counts for nothing, so it is tried anew."""
    while True:
        try:
            handle = os.open(place, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise StudyError(f"run folder {folder} cannot be written: {_NAME}: {error.strerror}") from None
        try:
            _lock(handle)
            if os.path.samestat(os.fstat(handle), place.stat()):
                return handle
        except FileNotFoundError:
            pass
        except (BlockingIOError, PermissionError):
            holder = os.read(handle, _MOST_TEXT).decode("utf-8", "replace")
            os.close(handle)
            raise _refusal(folder, f"({holder})" if holder else "") from None
        except OSError as error:
            os.close(handle)
            raise StudyError(
                f"run folder {folder}: its file system gives no locks ({error.strerror}), so two runs could mix; "
                "run into a folder on a local disk, and copy it when it is complete"
            ) from None
        os.close(handle)


def _refusal(folder: Path, who: str) -> StudyError:
    return StudyError(
        f"{folder} is in use by another run {who}".rstrip() + "; wait until it ends, stop it, or choose another folder"
    )


if sys.platform == "win32":

    def _lock(handle: int) -> None:
        import msvcrt

        # Far behind the text, for what is locked cannot be read by others.
        os.lseek(handle, 1 << 20, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        os.lseek(handle, 0, os.SEEK_SET)

else:

    def _lock(handle: int) -> None:
        import fcntl

        # Of the process, not of the open file: worker processes that were forked do not keep it when this one dies.
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
