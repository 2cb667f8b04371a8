"""The lock of a run or archive. It allows one writer at a time, even within a process, and ends with the process."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from toolkit._present.files import check_regular
from toolkit.errors import RunStopped, StudyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@contextmanager
def locked(folder: Path, what: str = "run") -> Iterator[Callable[[], None]]:
    """Hold the lock of a folder while the block runs.

    Parameters
    ----------
    folder : Path
        An existing folder.
    what : {"run", "sync", "replay"}
        The kind of writer. The lock is the file ``run.lock``, ``sync.lock`` or ``replay.lock`` in the folder.

    Yields
    ------
    callable
        When called, raises `RunStopped` if the locked folder was moved or removed.

    Raises
    ------
    StudyError
        If another writer holds the lock; if the lock file is a link, a pipe or another program's file, which is left
        unchanged; or if the file system does not support locks.
    """
    folder = folder.resolve()
    place = folder / f"{what}.lock"
    try:
        found = check_regular(place, follow=False)
        if found is not None and found.st_size:
            raise StudyError(f"{place} is not a lock file of this toolkit; rename it, or choose another folder")
        here = folder.stat()  # filelock would create a folder that is missing
        # Where a file system has no locks, filelock's substitute would outlive a killed process.
        lock = FileLock(place, blocking=False, thread_local=False, fallback_to_soft=False)
        lock.acquire()
        mine = place.lstat()
    except Timeout:
        raise StudyError(
            f"{folder} is in use by another {what}; wait until it ends, stop it, or choose another folder"
        ) from None
    except (OSError, NotImplementedError) as error:
        raise StudyError(
            f"{place} cannot be locked ({getattr(error, 'strerror', None) or error}); use a folder on a local disk"
        ) from None

    def check() -> None:
        try:
            unmoved = os.path.samestat(here, folder.stat())
        except OSError:
            unmoved = False
        if not unmoved:
            raise RunStopped(
                f"{folder}: the folder was moved or removed while in use. Writing has stopped. Move the folder back, "
                "or use its new path, and repeat the call to continue"
            )

    try:
        yield check
    finally:
        # Removed while locked: filelock does not hold a lock of a file that is gone. If another file has taken its
        # place, that file belongs to another process.
        with suppress(OSError):
            if os.path.samestat(mine, place.lstat()):
                place.unlink()
        lock.release()
