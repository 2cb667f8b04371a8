"""The lock of a run or archive. It allows one writer at a time, even within a process, and ends with the process."""

from __future__ import annotations

import os
import re
import socket
import sys
import threading
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from toolkit._present.files import open_descriptor
from toolkit.errors import RunStopped, StudyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


# Maximum bytes read from a lock file; process and host take fewer.
_MAX_TEXT = 300
_OURS = re.compile(rb"(process \d+ on [^\r\n]*)?")
_held: set[Path] = set()
_guard = threading.Lock()


@contextmanager
def locked(folder: Path, what: str = "run") -> Iterator[Callable[[], None]]:
    """Hold the lock of a folder while the block runs.

    Parameters
    ----------
    folder : Path
        An existing folder.
    what : {"run", "sync"}
        The kind of writer. The lock is the file ``run.lock`` or ``sync.lock`` in the folder.

    Yields
    ------
    callable
        When called, raises `RunStopped` if the locked folder or its lock file was moved or removed.

    Raises
    ------
    StudyError
        If another writer holds the lock; if the lock file is a link, a pipe or another program's file, which is left
        unchanged; or if the file system does not support locks.
    """
    place = folder.resolve() / f"{what}.lock"
    with _guard:
        if place in _held:
            raise _refusal(place, "of this process")
        _held.add(place)
    try:
        handle = _taken(place)

        def check() -> None:
            if not _is_at(handle, place):
                raise RunStopped(
                    f"{folder}: the folder, or {place.name} in it, was moved or removed while in use. Writing has "
                    "stopped. Move the folder back, or use its new path, and repeat the call to continue"
                )

        try:
            with suppress(OSError):  # information for people; a full disk shows when observations are written
                os.ftruncate(handle, 0)
                os.write(handle, f"process {os.getpid()} on {socket.gethostname()}".encode())
            yield check
        finally:
            # Removed while locked, so that no other process holds the lock of a removed file. If another file has
            # taken its place, that file belongs to another process.
            with suppress(OSError):
                if _is_at(handle, place):
                    place.unlink()
            os.close(handle)
    finally:
        with _guard:
            _held.discard(place)


def _taken(place: Path) -> int:
    """Open and lock the lock file. Repeat if it was removed in between, because the lock then has no effect."""
    while True:
        try:
            handle = open_descriptor(place, os.O_RDWR | os.O_CREAT, mode=0o644, follow=False)
        except OSError as error:
            raise StudyError(f"{place} cannot be written: {error.strerror}") from None
        with ExitStack() as stack:
            stack.callback(os.close, handle)
            try:
                _lock(handle)
                if _is_at(handle, place):
                    _check_ours(handle, place)
                    stack.pop_all()  # the file stays open
                    return handle
            except (BlockingIOError, PermissionError):
                holder = os.read(handle, _MAX_TEXT).decode("utf-8", "replace")
                raise _refusal(place, f"({holder})" if holder else "") from None
            except OSError as error:
                raise StudyError(
                    f"{place}: the file system does not support locks ({error.strerror}), so two writers could use the "
                    "folder at once. Use a folder on a local disk, and copy it when it is complete"
                ) from None


def _is_at(handle: int, place: Path) -> bool:
    """Return whether an open file is still the file at a path."""
    try:
        return os.path.samestat(os.fstat(handle), place.lstat())
    except OSError:
        return False


def _check_ours(handle: int, place: Path) -> None:
    """Raise StudyError if the file is not a lock file, because it would be overwritten and then removed."""
    text = os.pread(handle, _MAX_TEXT + 1, 0) if hasattr(os, "pread") else os.read(handle, _MAX_TEXT + 1)
    if os.fstat(handle).st_nlink > 1 or len(text) > _MAX_TEXT or not _OURS.fullmatch(text):
        raise StudyError(
            f"{place} is not a lock file of this toolkit and was left unchanged; rename it, or choose another folder"
        )


def _refusal(place: Path, who: str) -> StudyError:
    return StudyError(
        f"{place.parent} is in use by another {place.stem} {who}".rstrip()
        + "; wait until it ends, stop it, or choose another folder"
    )


if sys.platform == "win32":

    def _lock(handle: int) -> None:
        import msvcrt

        # Far behind the text: other processes cannot read a locked range.
        os.lseek(handle, 1 << 20, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        os.lseek(handle, 0, os.SEEK_SET)

else:

    def _lock(handle: int) -> None:
        import fcntl

        # A lock of the process, not of the open file: forked workers do not hold it after this process has ended.
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
