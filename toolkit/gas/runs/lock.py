"""One writer per run folder: a lock that ends with its process, and that a second run in this process meets too."""

from __future__ import annotations

import os
import re
import socket
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from toolkit._present.files import open_descriptor
from toolkit.errors import RunStopped, StudyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["locked"]

_NAME = "run.lock"
_MAX_TEXT = 300
_OURS = re.compile(rb"(process \d+ on [^\r\n]*)?")
_held: set[Path] = set()
_guard = threading.Lock()


@contextmanager
def locked(folder: Path) -> Iterator[Callable[[], None]]:
    """Hold the lock of a run folder while the block runs.

    Parameters
    ----------
    folder : Path
        An existing folder.

    Yields
    ------
    callable
        Raises `RunStopped` if the folder, or the lock in it, is no longer the one that was locked.

    Raises
    ------
    StudyError
        If another run holds the lock; if ``run.lock`` is a link, a pipe or a file of someone else, which is left as
        it is; or if the file system has no locks.
    """
    place = folder.resolve() / _NAME
    with _guard:
        if place in _held:
            raise _refusal(folder, "of this process")
        _held.add(place)
    try:
        handle = _taken(place, folder)

        def check() -> None:
            if not _is_at(handle, place):
                raise RunStopped(
                    f"run folder {folder} was moved or removed, or its {_NAME} was, while the run was writing to it; "
                    "nothing is written elsewhere. Put the folder back and run the same study into it to go on, or "
                    "run the study into the folder's new place"
                )

        try:
            with suppress(OSError):  # for people to read; a full disk is reported by the files that matter
                os.ftruncate(handle, 0)
                os.write(handle, f"process {os.getpid()} on {socket.gethostname()}".encode())
            yield check
        finally:
            # Removed while it is held, so that nobody is left with the lock of a removed file. Another file that is
            # there by now belongs to someone else.
            with suppress(OSError):
                if _is_at(handle, place):
                    place.unlink()
            os.close(handle)
    finally:
        with _guard:
            _held.discard(place)


def _taken(place: Path, folder: Path) -> int:
    """Open and lock the file. The lock of a file that was removed meanwhile is worth nothing, so this tries again."""
    while True:
        try:
            handle = open_descriptor(place, os.O_RDWR | os.O_CREAT, mode=0o644, follow=False)
        except OSError as error:
            raise StudyError(f"run folder {folder} cannot be written: {_NAME}: {error.strerror}") from None
        try:
            _lock(handle)
            if _is_at(handle, place):
                _check_ours(handle, place)
                return handle
        except StudyError:
            os.close(handle)
            raise
        except (BlockingIOError, PermissionError):
            holder = os.read(handle, _MAX_TEXT).decode("utf-8", "replace")
            os.close(handle)
            raise _refusal(folder, f"({holder})" if holder else "") from None
        except OSError as error:
            os.close(handle)
            raise StudyError(
                f"run folder {folder}: its file system has no locks ({error.strerror}), so two runs could mix; "
                "run into a folder on a local disk, and copy it when it is complete"
            ) from None
        os.close(handle)


def _is_at(handle: int, place: Path) -> bool:
    """Return whether an open file is the one at a path."""
    try:
        return os.path.samestat(os.fstat(handle), place.lstat())
    except OSError:
        return False


def _check_ours(handle: int, place: Path) -> None:
    """Refuse a file that no run wrote: it would be overwritten, then removed."""
    text = os.pread(handle, _MAX_TEXT + 1, 0) if hasattr(os, "pread") else os.read(handle, _MAX_TEXT + 1)
    if os.fstat(handle).st_nlink > 1 or len(text) > _MAX_TEXT or not _OURS.fullmatch(text):
        raise StudyError(
            f"{place} is not a lock of this toolkit, and is left as it is; rename the file, or choose another folder"
        )


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
