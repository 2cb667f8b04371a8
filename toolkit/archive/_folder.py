"""The folder of an archive: Parquet files by table and partition, and the manifest, each written atomically.

The files of a partition are written before the manifest counts their rows. A killed sync therefore leaves only
uncounted rows, which readers ignore and the next sync writes again. Each sync extends the files of the last partition
until they contain all its versions, so that many short syncs do not leave many small files.
"""

from __future__ import annotations

import re
import zlib
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from msgspec import structs

from toolkit._present.files import checked_path, other_file, read_file, replacing
from toolkit._present.text import visible
from toolkit.archive._columns import in_columns, with_columns_of
from toolkit.archive._files import Staged, files_at, read_footer
from toolkit.archive._lock import locked
from toolkit.archive._manifest import NAME, ArchiveManifest, StoredFile
from toolkit.errors import InputError, RunStopped, ToolkitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from toolkit.wire import LedgerState

# Names of unfinished files of killed writers, as `part_of` makes them: of the manifest, and of a table's file.
_PART_OF_MANIFEST = re.compile(rf"\.{re.escape(NAME)}\.\d+-[0-9a-f]{{8}}\.part")
_PART_OF_FILE = re.compile(r"(\w+/)\.(\w+__(\d{12,})_to_\d{12,}\.parquet)\.\d+-[0-9a-f]{8}\.part")
# Errors of pyarrow for a file that is damaged or not Parquet.
UNREADABLE = (OSError, ValueError, pa.ArrowException)


class Partition(NamedTuple):
    """A partition as read from a node: rows or staged files by table, the last transaction hash, the newest head."""

    tables: Mapping[str, pa.Table | Staged]
    last_hash: str | None
    head: LedgerState


class Folder:
    """The folder of one archive.

    Parameters
    ----------
    path : Path
    url : str, optional
        Where the files are, if they are not in the folder: a URL of the caller, never one that was read from a file.
    """

    def __init__(self, path: Path, url: str | None = None) -> None:
        self.path = path
        self.files = files_at(path, url)
        self.url = None if url is None else self.files.url("")
        self._check_lock: Callable[[], None] = lambda: None

    # the manifest ---------------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        """Return whether the folder contains an archive."""
        return (self.path / NAME).is_file()

    def manifest(self) -> ArchiveManifest:
        """Return the content of ``archive.json``.

        Raises
        ------
        InputError
            If it is missing, damaged, or was written by another program; or if the files are at another URL.
        """
        try:
            found = ArchiveManifest.of_text(read_file(checked_path(self.path) / NAME))
        except OSError as error:
            raise InputError(
                f"{self.path} is not an archive: cannot read {NAME} ({error.strerror}); toolkit.sync or "
                "`ledger-toolkit sync` makes one"
            ) from None
        except ValueError as error:
            raise InputError(f"{self.path / NAME} {visible(error, 600)}") from None
        if found.files != self.url:
            there = "in the folder; omit files=" if found.files is None else f"at {visible(found.files)!r}"
            trust = "" if found.files is None else "; pass this URL as files= if you trust it"
            raise InputError(f"the files of the archive {self.path} are {there}{trust}")
        return found

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder for one sync, and create it if it does not exist.

        Raises
        ------
        InputError
            If another sync holds the lock, the folder cannot be created, or it contains anything but an archive.
        """
        try:
            checked_path(self.path).mkdir(parents=True, exist_ok=True)
            other = other_file(self.path, NAME, "sync.lock")
        except OSError as error:
            raise InputError(f"archive folder {self.path} cannot be created: {error.strerror}") from None
        if self.exists():
            self.manifest()
        elif other is not None:
            raise InputError(
                f"{self.path} contains {visible(other)!r} but no {NAME}; restore it, or choose an empty folder"
            )
        with locked(self.path, "sync") as check:
            self._check_lock = check
            yield

    def clean(self, manifest: ArchiveManifest) -> None:
        """Remove the unfinished files of killed syncs. The folder is locked, so nobody else is writing them."""
        for place in self.path.iterdir():
            if _PART_OF_MANIFEST.fullmatch(place.name):
                with suppress(OSError):
                    place.unlink()
        for table in manifest.tables:
            for name in self.files.sizes(table.name):
                part = _PART_OF_FILE.fullmatch(name)
                if part and part[1] + part[2] == manifest.file_name(table.name, int(part[3])):
                    self.files.remove(name)

    # writing --------------------------------------------------------------------------------------------------------

    def write_manifest(self, manifest: ArchiveManifest) -> ArchiveManifest:
        """Write ``archive.json``; return the manifest."""
        with self._writing(str(self.path / NAME)), replacing(self.path / NAME, durable=True) as file:
            file.write(manifest.text())
        return manifest

    def make_folders(self, manifest: ArchiveManifest) -> None:
        """Create the folder of each table. Requires the lock, so that a moved archive is not recreated."""
        for table in manifest.tables:
            with self._writing(self.files.url(table.name)):
                self.files.make_folder(table.name)

    def add(self, manifest: ArchiveManifest, found: Partition, last: int) -> ArchiveManifest:
        """Store the rows of the next versions, up to `last`, all of which are in one partition.

        Once this returns, the rows survive the end of the process and a power failure.

        Raises
        ------
        RunStopped
            If the rows cannot be written, for example because the disk is full. Rows stored earlier are not affected.
        """
        start = last // manifest.partition * manifest.partition
        staged: dict[str, Staged] = {}
        try:
            for table in manifest.tables:
                staged[table.name] = self._staged(manifest, table.name, found.tables[table.name], start)
            if replaces := start <= manifest.last:
                tables = [structs.replace(table, following=staged[table.name].stored) for table in manifest.tables]
                manifest = self.write_manifest(structs.replace(manifest, tables=tuple(tables)))
            for table in manifest.tables:
                name = manifest.file_name(table.name, start)
                with self._writing(self.files.url(name)):
                    self.files.put(staged[table.name], name)
        except BaseException:
            for one in staged.values():
                self.files.remove(one.name)
            raise
        counted = []
        for table in manifest.tables:
            files = (*(table.files[:-1] if replaces else table.files), staged[table.name].stored)
            rows = sum(file.rows for file in files)
            counted.append(structs.replace(table, rows=rows, files=files, following=None))
        state = {"epoch": found.head.epoch, "block_height": found.head.block_height, "synced_at": datetime.now(UTC)}
        manifest = structs.replace(manifest, last=last, last_hash=found.last_hash, tables=tuple(counted), **state)
        return self.write_manifest(manifest)

    def _staged(self, manifest: ArchiveManifest, name: str, added: pa.Table | Staged, start: int) -> Staged:
        """Return a temporary file with the new content of a partition: its current rows, then the added rows.

        A file that a worker staged is used as is if its partition is new and it has all earlier columns. Workers do not
        know the columns of the partitions that other workers are reading.
        """
        new, empty = start > manifest.last, manifest.last < manifest.first
        if isinstance(added, Staged):
            if empty or (
                new and with_columns_of(self.schema(manifest, name), added.schema).names == added.schema.names
            ):
                return added
            with self._writing(self.files.url(added.name)):
                rows = pq.read_table(self.files.path(added.name), filesystem=self.files.filesystem)
            self.files.remove(added.name)
            added = rows
        if not empty:
            schema = with_columns_of(self.schema(manifest, name), added.schema)
            parts = [added] if new else [self.rows(manifest, name, start, manifest.last), added]
            added = pa.concat_tables([in_columns(schema, part) for part in parts])
        place = manifest.file_name(name, start)
        with self._writing(self.files.url(place)):
            return self.files.stage(place, added)

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

    def sizes(self, manifest: ArchiveManifest, name: str) -> list[int]:
        """Return the sizes in bytes of a table's files.

        Raises
        ------
        InputError
            If a file is missing.
        """
        there = self.files.sizes(name)
        wanted = [manifest.file_name(name, start) for start in manifest.starts(manifest.first, manifest.last)]
        if missing := [name for name in wanted if name not in there]:
            raise self._lost(missing[0], "is missing")
        return [there[name] for name in wanted]

    def schema(self, manifest: ArchiveManifest, name: str) -> pa.Schema:
        """Return the columns of a table, from its last file, which has the columns of all earlier files."""
        [last] = manifest.stored_files(name, manifest.last, manifest.last)
        return self._checked(manifest, name, *last)

    def dataset(self, manifest: ArchiveManifest, name: str, first: int, last: int) -> ds.Dataset:
        """Return a table's rows in a range of versions, lazily. If the archive is empty, there is only one column.

        Raises
        ------
        InputError
            If a file is missing, or is not the one that the manifest describes.
        """
        manifest.table(name)
        if manifest.last < manifest.first:
            return ds.dataset(pa.table({"ledger_version": pa.array([], pa.int64())}))
        options = ds.ParquetFragmentScanOptions(page_checksum_verification=True)
        form = ds.ParquetFileFormat(default_fragment_scan_options=options)
        # Each file by its path: values in the names of folders and patterns in paths mean nothing.
        fragments = []
        for start, stored in manifest.stored_files(name, first, last):
            self._checked(manifest, name, start, stored)
            path = self.files.path(manifest.file_name(name, start))
            fragments.append(form.make_fragment(path, self.files.filesystem))
        found = ds.FileSystemDataset(fragments, self.schema(manifest, name), form, self.files.filesystem)
        version = pc.field("ledger_version")
        # Rows beyond the last version were written by a killed sync and do not count.
        return found.filter((version >= first) & (version <= min(last, manifest.last)))

    def _checked(self, manifest: ArchiveManifest, name: str, start: int, stored: StoredFile) -> pa.Schema:
        """Return the columns of a file, after comparing its footer and its number of rows with the manifest."""
        place = manifest.file_name(name, start)
        try:
            with self.files.filesystem.open_input_file(self.files.path(place)) as file:
                footer = read_footer(file)
            found = pq.ParquetFile(pa.BufferReader(footer))
            read = StoredFile(found.metadata.num_rows, zlib.crc32(footer))
        except FileNotFoundError:
            raise self._lost(place, "is missing") from None
        except UNREADABLE as error:
            raise self._lost(place, f"cannot be read ({visible(error)})") from None
        # A sync may have replaced the last file since the manifest was read.
        if read != stored and read not in _expected(manifest, name, start) | _expected(self.manifest(), name, start):
            raise self._lost(place, f"is not the file that {NAME} describes: it was changed, replaced or restored")
        return found.schema_arrow.remove_metadata()

    def _lost(self, place: str, what: str) -> InputError:
        return InputError(
            f"{self.files.url(place)} {what}; restore the archive from one copy, or sync into another folder"
        )

    def rows(self, manifest: ArchiveManifest, name: str, first: int, last: int, **options: Any) -> pa.Table:
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
        except UNREADABLE as error:
            raise InputError(
                f"{self.path / name} cannot be read between versions {first:,} and {last:,}: {error}. Restore its "
                "files, or sync into another folder"
            ) from None


def unwritten(place: str, error: OSError) -> RunStopped:
    """Return the error for a file that could not be written."""
    return RunStopped(f"{place} could not be written: {error.strerror or error}")


def stored(manifest: ArchiveManifest) -> str:
    """Return a sentence that states which versions an archive contains."""
    if manifest.last < manifest.first:
        return "The archive is empty."
    return f"The archive contains versions {manifest.first:,} to {manifest.last:,}."


def _expected(manifest: ArchiveManifest, name: str, start: int) -> set[StoredFile]:
    """Return what a manifest accepts as the file of a partition."""
    table = manifest.table(name)
    found = {stored for at, stored in manifest.stored_files(name, start, start + manifest.partition - 1) if at == start}
    if table.following is not None and start == manifest.starts(manifest.first, manifest.last)[-1]:
        found.add(table.following)
    return found
