"""Opening and writing files by name: only regular files, each written atomically.

A name chosen by someone else may refer to a named pipe, which waits forever when it is opened, or to a device, which
never ends. Every file that the package reads or writes by name is opened here. Such a name raises `OSError` at once.
"""

from __future__ import annotations

import codecs
import errno
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from platformdirs import user_cache_path

# Not on every platform: without O_NONBLOCK the check before opening is what prevents waiting for a pipe.
_ALWAYS = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_PART = re.compile(r"\..+\.\d+-[0-9a-f]{8}\.part", re.DOTALL)  # names of unfinished files of `replacing`


def cache_folder() -> Path:
    """Return the folder for the package's caches; it need not exist.

    Returns
    -------
    Path
        The folder in the environment variable ``LEDGER_TOOLKIT_CACHE``, or else the folder ``ledger-toolkit`` where the
        platform has caches (`platformdirs.user_cache_path`).

    Raises
    ------
    RuntimeError
        If the user does not have a home folder.
    """
    own = os.environ.get("LEDGER_TOOLKIT_CACHE")
    folder = Path(own).expanduser() if own else user_cache_path("ledger-toolkit", appauthor=False)
    if not own and not folder.is_absolute():
        raise RuntimeError("the home folder is not known")
    return folder


def check_regular(path: str | os.PathLike[str], *, follow: bool = True) -> os.stat_result | None:
    """Raise an error if a path exists but is not a regular file.

    Parameters
    ----------
    path : path-like
    follow : bool, default True
        Whether to check the target of a symbolic link. If False, links are rejected.

    Returns
    -------
    os.stat_result or None
        None if the path does not exist.

    Raises
    ------
    IsADirectoryError
        If the path is a folder.
    OSError
        If the path is a named pipe, a socket, a device or, without `follow`, a symbolic link; or if it cannot be
        looked up.
    """
    try:
        found = checked_path(path).stat(follow_symlinks=follow)
    except FileNotFoundError:
        return None
    _refuse_special(found.st_mode, path)
    return found


def checked_path(path: str | os.PathLike[str]) -> Path:
    """Return a path given by a user, after checking that it can exist.

    Raises
    ------
    OSError
        If a file cannot have this path, because the path is too long, or contains a NUL character or a lone surrogate.
        For the latter two, Python raises a `ValueError` that does not state the path, and `Path.exists` does not raise.
    """
    place = Path(path)
    try:
        place.lstat()
    except ValueError:
        raise OSError(errno.EINVAL, "not a path: it contains a NUL character or a lone surrogate", str(place)) from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise
    return place


def open_descriptor(path: str | os.PathLike[str], flags: int, *, follow: bool = True) -> int:
    """Open a regular file and return its descriptor, without ever waiting for a pipe.

    Parameters
    ----------
    path : path-like
    flags : int
        As for `os.open`.
    follow : bool, default True
        Whether to follow a symbolic link. If False, links are rejected.

    Returns
    -------
    int

    Raises
    ------
    OSError
        If the file cannot be opened, or is not a regular file.
    """
    check_regular(path, follow=follow)
    try:
        descriptor = os.open(path, flags | _ALWAYS | (0 if follow else getattr(os, "O_NOFOLLOW", 0)), 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP and not follow:
            _refuse_special(stat.S_IFLNK, path)
        raise
    try:
        # Again, by the descriptor: the name may lead elsewhere since it was looked up.
        _refuse_special(os.fstat(descriptor).st_mode, path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def open_to_read(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file to read its bytes.

    Raises
    ------
    OSError
        If the file cannot be opened, or is not a regular file.
    """
    return os.fdopen(open_descriptor(path, os.O_RDONLY), "rb")


def read_file(path: str | os.PathLike[str], *, limit: int = -1) -> bytes:
    """Return the bytes of a regular file: at most `limit` bytes, or all if `limit` is negative.

    Raises
    ------
    OSError
        If the file cannot be read, or is not a regular file.
    """
    with open_to_read(path) as file:
        return file.read(limit)


def read_text_file(path: str | os.PathLike[str], *, limit: int = -1) -> bytes:
    """Return the bytes of a text file as `read_file` does, without the byte order mark that Windows editors write."""
    return read_file(path, limit=limit).removeprefix(codecs.BOM_UTF8)


@contextmanager
def replacing(path: Path, *, durable: bool = False, parents: bool = False) -> Iterator[BinaryIO]:
    """Write a file atomically: it is written next to `path` and moved there when the block ends without an error.

    A symbolic link at `path` is replaced; its target is unchanged. Unfinished files left in the folder by killed
    writers are removed after a day.

    Parameters
    ----------
    path : Path
        File to write. Its folder must exist, unless `parents` is set.
    durable : bool, default False
        Whether to wait until the file is on disk, so that it survives a power failure.
    parents : bool, default False
        Whether to create the folder and its parents.

    Yields
    ------
    file object
        The file, opened for writing bytes.

    Raises
    ------
    OSError
        If the file cannot be written, or `path` is a folder, a named pipe or a device.
    """
    check_regular(path)
    if parents:
        path.parent.mkdir(parents=True, exist_ok=True)
    remove_left_overs(path.parent)
    part = part_of(path)
    # Created here and by this call (O_EXCL), so that no file or link that was there already is written into.
    descriptor = open_descriptor(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, follow=False)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        move(part, path, durable=durable)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def move(part: Path, path: Path, *, durable: bool) -> None:
    """Move a completely written file to its destination; with `durable`, the move survives a power failure."""
    part.replace(path)
    if durable and os.name == "posix":  # Windows needs no wait for a rename, and offers none
        descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def other_file(folder: Path, marker: str, *own: str) -> str | None:
    """Return the name of a file that does not belong to the package; None if the folder is empty, or has `marker`.

    Parameters
    ----------
    folder : Path
    marker : str
        Name of the file that shows that a folder is the package's.
    *own : str
        Names of other files that the package may have left there, besides unfinished ones.
    """
    names = [place.name for place in folder.iterdir()]
    others = [name for name in names if name not in own and not _PART.fullmatch(name)]
    return None if marker in names else min(others, default=None)


def part_of(path: Path) -> Path:
    """Return a name for an unfinished file next to its destination, in the form that `remove_left_overs` recognises."""
    return path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.part")


def remove_left_overs(folder: Path, *, age_s: float = 86_400.0) -> None:
    """Remove unfinished files that are older than `age_s` seconds from a folder.

    Their writers must have ended, because the package does not take a day to write a file.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in [entry for entry in entries if _PART.fullmatch(entry.name)]:
            with suppress(OSError):
                found = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(found.st_mode) and time.time() - found.st_mtime >= age_s:
                    Path(entry.path).unlink()


def _refuse_special(mode: int, path: str | os.PathLike[str]) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(mode):
        what = "a symbolic link" if stat.S_ISLNK(mode) else "a pipe, a socket or a device"
        raise OSError(errno.EINVAL, f"expected a regular file, got {what}", os.fspath(path))
