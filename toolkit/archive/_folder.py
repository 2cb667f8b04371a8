"""The folder of an archive: Parquet files by table and partition, and the manifest, each written atomically.

The files of a partition are written before the manifest counts their rows. A killed sync therefore leaves only
uncounted rows, which readers ignore and the next sync writes again. Each sync extends the files of the last partition
until they contain all its versions, so that many short syncs do not leave many small files.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from msgspec import structs

from toolkit._present.files import checked_path, read_file, remove_left_overs, replacing
from toolkit.archive._files import LocalFiles, Staged, StoredFiles, files_at
from toolkit.archive._lock import locked
from toolkit.archive._manifest import NAME, Manifest
from toolkit.errors import InputError, RunStopped, ToolkitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from toolkit.wire import LedgerState

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")
# Errors of pyarrow for a file that is damaged or not Parquet.
_UNREADABLE = (OSError, ValueError, pa.ArrowException)


def check_name(name: Any) -> str:
    """Return the name of a table if it is valid, both as the name of a folder and in SQL; raise InputError if not."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InputError(
            f"a table name must be a letter, then up to 62 letters, digits or underscores, got {name!r:.80}"
        )
    return name


class Partition(NamedTuple):
    """A partition as read from a node: rows or staged files by table, the last transaction hash, the newest head."""

    tables: Mapping[str, Any]
    last_hash: str | None
    head: LedgerState


class Folder:
    """The folder of one archive.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._files: tuple[str | None, LocalFiles | StoredFiles] = None, LocalFiles(path)
        self._check_lock: Callable[[], None] = lambda: None

    # the manifest ---------------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        """Return whether the folder contains an archive."""
        return (self.path / NAME).is_file()

    def manifest(self) -> Manifest:
        """Return the content of ``archive.json``.

        Raises
        ------
        InputError
            If it is missing, damaged, or was written by another program.
        """
        try:
            return Manifest.of_text(read_file(checked_path(self.path) / NAME))
        except OSError as error:
            raise InputError(f"{self.path} is not an archive: cannot read {NAME} ({error.strerror})") from None
        except ValueError as error:
            raise InputError(f"{self.path / NAME} {error}") from None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder for one sync, and create it if it does not exist.

        Raises
        ------
        InputError
            If another sync holds the lock, the folder cannot be created, or it contains archive files but not its
            manifest.
        """
        try:
            checked_path(self.path).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"archive folder {self.path} cannot be created: {error.strerror}") from None
        if not self.exists() and any(self.path.glob("*/*__*_to_*.parquet")):
            raise InputError(f"{self.path} contains archive files but no {NAME}; restore it, or choose another folder")
        with locked(self.path, "sync") as check:
            self._check_lock = check
            yield

    def clean(self, manifest: Manifest) -> None:
        """Remove what killed syncs left behind: unfinished files, and partitions that the manifest does not count."""
        remove_left_overs(self.path, age_s=0)  # the folder is locked: nobody else writes into it
        files = self.files(manifest)
        for table in manifest.tables:
            files.remove_left_overs(table.name)
            starts = manifest.starts(manifest.first, manifest.last)
            counted = {manifest.file_name(table.name, start) for start in starts}
            for name in files.sizes(table.name).keys() - counted:
                files.remove(name)

    # writing --------------------------------------------------------------------------------------------------------

    def write_manifest(self, manifest: Manifest) -> Manifest:
        """Write ``archive.json``; return the manifest."""
        with self._writing(str(self.path / NAME)), replacing(self.path / NAME, durable=True) as file:
            file.write(manifest.text())
        return manifest

    def make_folders(self, manifest: Manifest) -> None:
        """Create the folder of each table. Requires the lock, so that a moved archive is not recreated."""
        files = self.files(manifest)
        for table in manifest.tables:
            with self._writing(files.url(table.name)):
                files.make_folder(table.name)

    def add(self, manifest: Manifest, found: Partition, last: int) -> Manifest:
        """Store the rows of the next versions, up to `last`, all of which are in one partition.

        Once this returns, the rows survive the end of the process and a power failure.

        Raises
        ------
        RunStopped
            If the rows cannot be written, for example because the disk is full. Rows stored earlier are not affected.
        """
        start = last // manifest.partition * manifest.partition
        files, counted = self.files(manifest), []
        for table in manifest.tables:
            name, added = manifest.file_name(table.name, start), found.tables[table.name]
            with self._writing(files.url(name)):
                if isinstance(added, Staged) and self._fits(manifest, table.name, added, start):
                    files.put(added, name)
                else:
                    new = self._staged_rows(files, added) if isinstance(added, Staged) else added
                    files.write(name, self._continued(manifest, table.name, new, start))
                    if isinstance(added, Staged):
                        files.remove(added.name)
            counted.append(structs.replace(table, rows=table.rows + added.num_rows))
        state = {"epoch": found.head.epoch, "block_height": found.head.block_height, "synced_at": datetime.now(UTC)}
        manifest = structs.replace(manifest, last=last, last_hash=found.last_hash, tables=tuple(counted), **state)
        return self.write_manifest(manifest)

    def _fits(self, manifest: Manifest, name: str, added: Staged, start: int) -> bool:
        """Return whether a staged file can be used as is: its partition is new, and it has all earlier columns.

        Workers do not know the columns of the partitions that other workers are reading.
        """
        if manifest.last < manifest.first:
            return True
        columns = with_columns_of(self.schema(manifest, name), added.schema.empty_table()).column_names
        return start > manifest.last and columns == added.schema.names

    def _continued(self, manifest: Manifest, name: str, added: pa.Table, start: int) -> pa.Table:
        """Return a file's new content: its current rows, then the added rows, with the columns of earlier files."""
        if manifest.last < manifest.first:
            return added
        added = with_columns_of(self.schema(manifest, name), added)
        if start > manifest.last:
            return added
        rows = self.rows(manifest, name, start, manifest.last)
        return pa.concat_tables([with_columns_of(added.schema, rows), added])

    @staticmethod
    def _staged_rows(files: LocalFiles | StoredFiles, staged: Staged) -> pa.Table:
        path = files.path(staged.name)
        try:
            return pq.read_table(path, filesystem=files.filesystem, page_checksum_verification=True)
        except _UNREADABLE as error:
            raise RunStopped(f"{path} cannot be read: {error}") from None

    @contextmanager
    def _writing(self, place: str) -> Iterator[None]:
        """Check the lock, then raise RunStopped if the block fails to write."""
        self._check_lock()
        try:
            yield
        except OSError as error:
            self._check_lock()  # a removed folder is the cause to report
            raise unwritten(place, error) from error

    # reading --------------------------------------------------------------------------------------------------------

    def files(self, manifest: Manifest) -> LocalFiles | StoredFiles:
        """Return the store of the Parquet files: the folder itself, or the manifest's URL."""
        if self._files[0] != manifest.files:
            self._files = manifest.files, files_at(self.path, manifest.files)
        return self._files[1]

    def sizes(self, manifest: Manifest, name: str, first: int, last: int) -> dict[str, int]:
        """Return the sizes in bytes, by name, of a table's files for a range of versions.

        Raises
        ------
        InputError
            If a file is missing.
        """
        files = self.files(manifest)
        there = files.sizes(name)
        wanted = [manifest.file_name(name, start) for start in manifest.starts(first, last)]
        if missing := [name for name in wanted if name not in there]:
            raise InputError(
                f"{files.url(missing[0])} is missing, but the archive counts its rows; restore it, or sync into "
                "another folder"
            )
        return {name: there[name] for name in wanted}

    def schema(self, manifest: Manifest, name: str) -> pa.Schema:
        """Return the columns of a table, from its last file, which has the columns of all earlier files."""
        [last] = self.sizes(manifest, name, manifest.last, manifest.last)
        files = self.files(manifest)
        try:
            return pq.read_schema(files.path(last), filesystem=files.filesystem)
        except _UNREADABLE as error:
            raise InputError(f"{files.url(last)} cannot be read: {error}") from None

    def dataset(self, manifest: Manifest, name: str, first: int, last: int) -> ds.Dataset:
        """Return a table's rows in a range of versions, lazily. If the archive is empty, there is only one column."""
        manifest.table(name)
        if manifest.last < manifest.first:
            return ds.dataset(pa.table({"ledger_version": pa.array([], pa.uint64())}))
        options = ds.ParquetFragmentScanOptions(page_checksum_verification=True)
        form = ds.ParquetFileFormat(default_fragment_scan_options=options)
        files, schema = self.files(manifest), self.schema(manifest, name)
        paths = list(map(files.path, self.sizes(manifest, name, first, last)))
        found = ds.dataset(paths, schema=schema, format=form, filesystem=files.filesystem)
        version = pc.field("ledger_version")
        # Rows beyond the last version were written by a killed sync and do not count.
        return found.filter((version >= first) & (version <= min(last, manifest.last)))

    def rows(self, manifest: Manifest, name: str, first: int, last: int, **options: Any) -> pa.Table:
        """Return a table's rows in a range of versions; `options` are passed to `pyarrow.dataset.Dataset.to_table`.

        Raises
        ------
        InputError
            If a file is missing or damaged.
        """
        try:
            return self.dataset(manifest, name, first, last).to_table(**options)
        except ToolkitError:
            raise
        except _UNREADABLE as error:
            raise InputError(
                f"{self.path / name} cannot be read between versions {first} and {last}: {error}. Restore its "
                "files, or sync into another folder"
            ) from None


def unwritten(place: str, error: OSError) -> RunStopped:
    """Return the error for a file that could not be written."""
    return RunStopped(f"{place} could not be written: {error.strerror or error}")


def stored(manifest: Manifest) -> str:
    """Return a sentence that states which versions an archive contains."""
    if manifest.last < manifest.first:
        return "The archive is empty."
    return f"The archive contains versions {manifest.first} to {manifest.last}."


def with_columns_of(before: pa.Schema, table: pa.Table) -> pa.Table:
    """Return a table with the columns of an earlier table first; columns that it lacks are null.

    A column whose type has changed is added under another name, such as ``name[type]``, so that each column has the
    same type in all files.
    """
    names = list(before.names)
    columns = {name: table[name] for name in table.column_names}
    fields = {field.name: field for field in before}
    for field in table.schema:
        known = before.field(field.name) if field.name in names else None
        if known is None:
            fields[field.name] = field
        elif _kind(known) != _kind(field):
            name = next(name for name in _labels(field) if _kind(fields.get(name, field)) == _kind(field))
            fields.setdefault(name, field.with_name(name))
            columns[name] = columns.pop(field.name)
    arrays = [columns.get(name, pa.nulls(table.num_rows, field.type)) for name, field in fields.items()]
    return pa.Table.from_arrays(arrays, schema=pa.schema(list(fields.values())))


def _labels(field: pa.Field) -> Iterator[str]:
    """Yield possible names for a column whose type has changed, in order of preference."""
    kind = _kind(field)
    if not pa.types.is_nested(field.type):
        yield f"{field.name}[{kind}]"
    yield from (f"{field.name}[#{number}]" for number in count(2))  # the text of a struct is as long as its fields


def _kind(field: pa.Field) -> str:
    """Return the name of a column's type; for wide integers stored as text, the integer type."""
    wide = (field.metadata or {}).get(b"wide")
    return str(field.type) if wide is None else wide.decode()
