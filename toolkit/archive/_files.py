"""The Parquet files of an archive, in a local folder or in a store that fsspec can reach, such as an object store.

Files appear atomically: each is written under a temporary name in the same place, then moved. In object stores, a move
is a server-side copy, which is also atomic, followed by a delete.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow.fs import FSSpecHandler, LocalFileSystem, PyFileSystem

from toolkit._present.files import move, open_descriptor, part_of
from toolkit._present.text import visible
from toolkit.archive._manifest import StoredFile
from toolkit.dtypes._tables import write_table
from toolkit.errors import InputError

# The last bytes of a Parquet file: the length of the footer in four bytes, and "PAR1".
_END = 8


class Staged(NamedTuple):
    """A temporary file with the rows of one partition of a table, which readers do not see yet.

    Attributes
    ----------
    name : str
    stored : StoredFile
    schema : pyarrow.Schema
    """

    name: str
    stored: StoredFile
    schema: pa.Schema


class LocalFiles:
    """Files in a folder. Once a method returns, its changes survive a power failure.

    Parameters
    ----------
    root : Path
    """

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()
        self.filesystem: Any = LocalFileSystem()

    def path(self, name: str) -> str:
        """Return the path of a file for pyarrow."""
        return str(self._root / name)

    url = path

    def is_empty(self) -> bool:
        """Return whether no file is stored yet. The folder of a new archive has been checked when it was locked."""
        return True

    def make_folder(self, table: str) -> None:
        """Create the folder of a table; raise OSError if it is a link, whose target belongs to somebody else."""
        place = self._root / table
        place.mkdir(exist_ok=True)
        if place.resolve() != self._root.resolve() / table:
            raise OSError(f"{place} is a link")

    def sizes(self, table: str) -> dict[str, int]:
        """Return the size in bytes of each file in the folder of a table, by name."""
        with suppress(FileNotFoundError), os.scandir(self._root / table) as entries:
            return {f"{table}/{entry.name}": entry.stat().st_size for entry in entries if entry.is_file()}
        return {}

    def stage(self, name: str, rows: pa.Table) -> Staged:
        """Write rows to a temporary file next to the final one."""
        staged = _staged_name(name)
        place = self._root / staged
        # Created by this call (O_EXCL), so that no file or link that was there already is written into.
        descriptor = open_descriptor(place, os.O_RDWR | os.O_CREAT | os.O_EXCL, follow=False)
        try:
            with os.fdopen(descriptor, "w+b") as file:
                write_table(rows, file)
                file.flush()
                os.fsync(file.fileno())
            with self.filesystem.open_input_file(str(place)) as written:
                return Staged(staged, _described(rows, written), rows.schema)
        except BaseException:
            self.remove(staged)
            raise

    def put(self, staged: Staged, name: str) -> None:
        """Rename a staged file to its final name."""
        move(self._root / staged.name, self._root / name, durable=True)

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""
        with suppress(OSError):
            (self._root / name).unlink(missing_ok=True)


class StoredFiles:
    """Files in a store that fsspec can reach.

    Parameters
    ----------
    url : str
        A URL that fsspec understands, such as ``s3://bucket/ledger``.

    Raises
    ------
    InputError
        If fsspec or a package that it needs for the URL is not installed, if fsspec does not understand the URL, or if
        the URL contains credentials.
    """

    def __init__(self, url: str) -> None:
        shown = visible(url)
        try:
            secret = "@" in urlsplit(url).netloc  # it would be stored in archive.json
        except ValueError as error:
            raise InputError(f"files {shown}: {visible(error)}") from None
        if secret:
            raise InputError(
                "files: expected a URL without credentials; fsspec reads credentials from its configuration"
            )
        try:
            import fsspec

            self.fsspec, self._root = fsspec.core.url_to_fs(url)
            self.filesystem: Any = PyFileSystem(FSSpecHandler(self.fsspec))
            self.url("")
        except ImportError as error:
            text = f"files {shown}: {error}; pip install 'ledger-toolkit[archive]' installs fsspec"
            raise InputError(text) from None
        except Exception as error:  # noqa: BLE001 - each file system of fsspec has its own errors for a URL
            raise InputError(f"files {shown}: {visible(error)}") from None

    def path(self, name: str) -> str:
        """Return the path of a file for pyarrow."""
        return f"{self._root.rstrip('/')}/{name}"

    def url(self, name: str) -> str:
        """Return the URL of a file."""
        return str(self.fsspec.unstrip_protocol(self.path(name)))

    def is_empty(self) -> bool:
        """Return whether no file is stored yet."""
        return not self._listed("")

    def make_folder(self, table: str) -> None:
        """Create the folder of a table, in stores that have folders."""
        with _as_os_error():
            self.fsspec.makedirs(self.path(table), exist_ok=True)

    def sizes(self, table: str) -> dict[str, int]:
        """Return the size in bytes of each file of a table, by name."""
        files = [entry for entry in self._listed(table) if entry["type"] == "file"]
        return {f"{table}/{Path(entry['name']).name}": entry["size"] for entry in files}

    def stage(self, name: str, rows: pa.Table) -> Staged:
        """Write rows to a temporary file next to the final one."""
        staged = _staged_name(name)
        # Made in memory: an fsspec file object that is closed after an error leaves the bytes written so far.
        write_table(rows, buffer := BytesIO())
        with _as_os_error():
            self.fsspec.pipe_file(self.path(staged), buffer.getvalue())
        return Staged(staged, _described(rows, pa.BufferReader(buffer.getbuffer())), rows.schema)

    def put(self, staged: Staged, name: str) -> None:
        """Rename a staged file to its final name."""
        from fsspec.implementations.local import LocalFileSystem as LocalStore

        places = self.path(staged.name), self.path(name)
        with _as_os_error():
            if isinstance(self.fsspec, LocalStore):  # there a copy is not atomic
                self.fsspec.mv(*places)
            else:  # `mv` would take the characters [ ] * ? in a path for a pattern
                self.fsspec.cp_file(*places)
                self.fsspec.rm_file(places[0])

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""
        with suppress(OSError), _as_os_error():
            self.fsspec.rm_file(self.path(name))

    def _listed(self, folder: str) -> list[dict[str, Any]]:
        with _as_os_error():
            self.fsspec.invalidate_cache()  # other processes write too
            try:
                return list(self.fsspec.ls(self.path(folder), detail=True))
            except FileNotFoundError:
                return []


def files_at(folder: Path, url: str | None) -> LocalFiles | StoredFiles:
    """Return the files of an archive: at a URL if one is given, otherwise in its folder."""
    return LocalFiles(folder) if url is None else StoredFiles(url)


def read_footer(file: pa.NativeFile) -> bytes:
    """Return the footer of a Parquet file, up to the end of the file.

    Raises
    ------
    OSError
        If the file is too short.
    """
    size = file.size()
    end = file.read_at(_END, max(size - _END, 0))
    length = int.from_bytes(end[:4], "little") + _END
    if length > size:
        raise OSError("it is not a Parquet file")
    return bytes(file.read_at(length, size - length))


def _staged_name(name: str) -> str:
    return f"{Path(name).parent}/{part_of(Path(name)).name}"


def _described(rows: pa.Table, file: pa.NativeFile) -> StoredFile:
    """Return how the manifest describes a file with these rows."""
    return StoredFile(rows.num_rows, zlib.crc32(read_footer(file)))


@contextmanager
def _as_os_error() -> Iterator[None]:
    """Raise any error from a store as an OSError, since each service has its own exceptions."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OSError(f"{type(error).__name__}: {error}") from error
