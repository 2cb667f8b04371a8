"""The Parquet files of an archive, in a local folder or in a store that fsspec can reach, such as an object store.

Files appear atomically: each is written under a temporary name in the same place, then moved. In object stores, a move
is a server-side copy, which is also atomic, followed by a delete.
"""

from __future__ import annotations

import secrets
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from toolkit._present.files import move, part_of, remove_left_overs, replacing
from toolkit.dtypes._tables import write_table
from toolkit.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa


class Staged(NamedTuple):
    """A temporary file with the rows of one partition of a table, which readers do not see yet.

    Attributes
    ----------
    name : str
    num_rows : int
    schema : pyarrow.Schema
    """

    name: str
    num_rows: int
    schema: pa.Schema


class LocalFiles:
    """Files in a folder. Once a method returns, its changes survive a power failure.

    Parameters
    ----------
    root : Path
    """

    filesystem: Any = None  # for pyarrow, whose default is the local one

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()

    def path(self, name: str) -> str:
        """Return the path of a file for pyarrow."""
        return str(self._root / name)

    url = path

    def make_folder(self, table: str) -> None:
        """Create the folder of a table."""
        (self._root / table).mkdir(exist_ok=True)

    def sizes(self, table: str) -> dict[str, int]:
        """Return the size in bytes of each file of a table, by name."""
        return {f"{table}/{place.name}": place.stat().st_size for place in (self._root / table).glob("*.parquet")}

    def write(self, name: str, rows: pa.Table) -> None:
        """Write a file, replacing an earlier one."""
        with replacing(self._root / name, durable=True) as file:
            write_table(rows, file)

    def stage(self, name: str, rows: pa.Table) -> Staged:
        """Write rows to a temporary file next to the final one."""
        place = part_of(self._root / name)
        self.write(staged := f"{Path(name).parent}/{place.name}", rows)
        return Staged(staged, rows.num_rows, rows.schema)

    def put(self, staged: Staged, name: str) -> None:
        """Rename a staged file to its final name."""
        move(self._root / staged.name, self._root / name, durable=True)

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""
        (self._root / name).unlink(missing_ok=True)

    def remove_left_overs(self, table: str) -> None:
        """Remove unfinished files of killed writers."""
        remove_left_overs(self._root / table, age_s=0)


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
        if "@" in urlsplit(url).netloc:  # it would be stored in archive.json
            raise InputError(
                "files: expected a URL without credentials; fsspec reads credentials from its configuration"
            )
        try:
            import fsspec
            from pyarrow.fs import FSSpecHandler, PyFileSystem

            self.fsspec, self._root = fsspec.core.url_to_fs(url)
        except ImportError as error:
            raise InputError(f"files {url}: {error}; pip install 'ledger-toolkit[archive]' installs fsspec") from None
        except (ValueError, OSError) as error:
            raise InputError(f"files {url}: {error}") from None
        self.filesystem = PyFileSystem(FSSpecHandler(self.fsspec))

    def path(self, name: str) -> str:
        """Return the path of a file for pyarrow."""
        return f"{self._root.rstrip('/')}/{name}"

    def url(self, name: str) -> str:
        """Return the URL of a file for DuckDB."""
        return str(self.fsspec.unstrip_protocol(self.path(name)))

    def make_folder(self, table: str) -> None:
        """Create the folder of a table, in stores that have folders."""
        with _as_os_error():
            self.fsspec.makedirs(self.path(table), exist_ok=True)

    def sizes(self, table: str) -> dict[str, int]:
        """Return the size in bytes of each file of a table, by name."""
        return {name: size for name, size in self._listed(table).items() if name.endswith(".parquet")}

    def write(self, name: str, rows: pa.Table) -> None:
        """Write a file, replacing an earlier one."""
        self.put(self.stage(name, rows), name)

    def stage(self, name: str, rows: pa.Table) -> Staged:
        """Write rows to a temporary file next to the final one."""
        staged = f"{name}.{secrets.token_hex(8)}.part"
        # Made in memory: an fsspec file object that is closed after an error leaves the bytes written so far.
        write_table(rows, buffer := BytesIO())
        with _as_os_error():
            self.fsspec.pipe_file(self.path(staged), buffer.getvalue())
        return Staged(staged, rows.num_rows, rows.schema)

    def put(self, staged: Staged, name: str) -> None:
        """Rename a staged file to its final name."""
        with _as_os_error():
            self.fsspec.mv(self.path(staged.name), self.path(name))

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""
        with _as_os_error(), suppress(FileNotFoundError):
            self.fsspec.rm_file(self.path(name))

    def remove_left_overs(self, table: str) -> None:
        """Remove unfinished files of killed writers."""
        for name in self._listed(table):
            if name.endswith(".part"):
                self.remove(name)

    def _listed(self, table: str) -> dict[str, int]:
        with _as_os_error():
            self.fsspec.invalidate_cache()  # other processes write too
            try:
                found = self.fsspec.ls(self.path(table), detail=True)
            except FileNotFoundError:
                return {}
            return {f"{table}/{Path(entry['name']).name}": entry["size"] for entry in found if entry["type"] == "file"}


def files_at(folder: Path, url: str | None) -> LocalFiles | StoredFiles:
    """Return the files of an archive: at a URL if one is given, otherwise in its folder."""
    return LocalFiles(folder) if url is None else StoredFiles(url)


@contextmanager
def _as_os_error() -> Iterator[None]:
    """Raise any error from a store as an OSError, since each service has its own exceptions."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OSError(f"{type(error).__name__}: {error}") from error
