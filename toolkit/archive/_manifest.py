"""The manifest of an archive, which is stored in ``archive.json``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from toolkit._present.text import short_addresses
from toolkit.errors import InputError
from toolkit.move import parse_type_tag
from toolkit.wire import LedgerState, ViewFunction

FORMAT = 1
NAME = "archive.json"
#: Tables of the rows of transactions, in the order in which they are listed.
BASIC = ("transactions", "events", "changes", "balances")
MIN_PARTITION = 100  # a page of transactions
MAX_PARTITION = 1_000_000

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")
# msgspec holds bounds of 64 bits with a sign; a ledger does not reach them.
_Count = Annotated[int, Meta(ge=0, lt=2**62)]


def check_name(name: Any) -> str:
    """Return the name of a table if it is valid, both as the name of a folder and in SQL; raise InputError if not."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InputError(
            f"a table name must be a letter, then up to 62 letters, digits or underscores, got {name!r:.80}"
        )
    return name


class StoredFile(msgspec.Struct, frozen=True, array_like=True):
    """A file of an archive.

    Attributes
    ----------
    rows : int
    footer : int
        CRC-32 of the Parquet footer. The footer describes every page, and each page has a checksum of its own, so that
        both together identify the content.
    """

    rows: _Count
    footer: _Count


class StoredTable(msgspec.Struct, frozen=True, omit_defaults=True):
    """A table of an archive.

    Attributes
    ----------
    name : str
        One of `BASIC`, or the user's name for a table of one event type or of view results.
    event_type : str or None
    view : dict or None
        The call, in the form of a node's request body.
    rows : int
    files : tuple of StoredFile
        One per partition.
    following : StoredFile or None
        What replaces the last file, from before the replacement until the next manifest: a sync that is killed in
        between leaves either.

    Raises
    ------
    InputError
        If the name is not valid, or does not fit the content; or if the event type or the call cannot be parsed.
    """

    name: str
    event_type: str | None = None
    view: dict[str, Any] | None = None
    rows: _Count = 0
    files: tuple[StoredFile, ...] = ()
    following: StoredFile | None = None

    def __post_init__(self) -> None:
        check_name(self.name)
        if (self.name in BASIC) + (self.event_type is not None) + (self.view is not None) != 1:
            raise InputError(f"table {self.name}: expected an event type or a view")
        if self.event_type is not None:
            parse_type_tag(self.event_type)
        if self.view is not None:
            ViewFunction(**self.view)
        if self.rows != sum(file.rows for file in self.files):
            raise InputError(f"table {self.name}: its files do not have {self.rows} rows")

    @property
    def call(self) -> ViewFunction:
        """The view call whose results the table stores."""
        return ViewFunction(**(self.view or {}))

    @property
    def content(self) -> str:
        """Description of the table's content."""
        if self.event_type is not None:
            return short_addresses(f"events of {self.event_type}")
        return self.name if self.view is None else short_addresses(f"values of {self.view['function']}")


def check_names(tables: Sequence[StoredTable]) -> None:
    """Raise InputError if two tables have one name in SQL, or on a file system that ignores case."""
    names = [table.name.lower() for table in tables]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"the table name {twice[0]!r} is used twice; table names must be unique")


class ArchiveManifest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The contents of an archive.

    The manifest determines the files: each table has one per partition of the versions `first` to `last`. Rows after
    `last` were written by a sync that was killed.

    Attributes
    ----------
    format : int
    chain_id : int
    first, last : int
        First and last stored version; in an empty archive `last` is ``first - 1``.
    last_hash : str or None
        Hash of the last transaction, if known. A different hash at that version shows that the ledger is another one.
    partition : int
        Number of versions per file; each file begins at a multiple of this number.
    every : int
        View results are read at multiples of this number.
    tables : tuple of StoredTable
    files : str or None
        URL of the files, if they are not in the folder. It is used only if the caller passes the same URL, because
        anybody may have written the manifest.
    node, build : str
        Name and build of the node at the last sync. The build shows whether the node's gas comes from a model.
    epoch, block_height : int
        Epoch and block height of the node's head at the last sync.
    synced_at : datetime or None

    Raises
    ------
    InputError
        If the values contradict each other.
    """

    format: int = FORMAT
    chain_id: Annotated[int, Meta(ge=0, lt=2**32)]
    first: _Count
    last: Annotated[int, Meta(ge=-1, lt=2**62)]
    partition: Annotated[int, Meta(ge=MIN_PARTITION, le=MAX_PARTITION)]
    every: Annotated[int, Meta(ge=1, lt=2**62)]
    tables: tuple[StoredTable, ...]
    files: str | None = None
    node: str
    build: str | None = None
    last_hash: str | None = None
    epoch: _Count = 0
    block_height: _Count = 0
    synced_at: datetime | None = None

    def __post_init__(self) -> None:
        check_names(self.tables)
        if self.last < self.first - 1:
            raise InputError(f"expected a last version of {self.first - 1} or later, got {self.last}")
        partitions = len(self.starts(self.first, self.last))
        if wrong := [table for table in self.tables if len(table.files) != partitions]:
            raise InputError(f"table {wrong[0].name}: expected {partitions} files, got {len(wrong[0].files)}")

    def table(self, name: str) -> StoredTable:
        """Return the table with this name."""
        found = next((table for table in self.tables if table.name == name), None)
        if found is None:
            names = ", ".join(table.name for table in self.tables)
            raise InputError(f"the archive has no table {name!r:.80}; its tables are {names}")
        return found

    def starts(self, first: int, last: int) -> range:
        """Return the first version of each partition that overlaps a range of versions."""
        return range(first // self.partition * self.partition, last + 1, self.partition) if first <= last else range(0)

    def file_name(self, table: str, start: int) -> str:
        """Return the path of a file relative to the folder. Its name includes the versions of the whole partition."""
        # Twelve digits, so that names sort like versions: a public ledger passed 10^9 in three years.
        return f"{table}/{table}__{start:012}_to_{start + self.partition - 1:012}.parquet"

    def stored_files(self, table: str, first: int, last: int) -> Iterator[tuple[int, StoredFile]]:
        """Yield the files of a table that overlap a range of stored versions, each with its first version."""
        starts = self.starts(self.first, self.last)
        for start, file in zip(starts, self.table(table).files, strict=True):
            if start <= last and first < start + self.partition:
                yield start, file

    def head(self, timestamp: datetime) -> LedgerState:
        """Return the ledger state at the last stored version; `timestamp` is the time of its transaction."""
        return LedgerState(self.chain_id, self.last, self.first, timestamp, self.epoch, self.block_height, 0)

    def text(self) -> bytes:
        """Return the content of ``archive.json`` for this manifest."""
        return msgspec.json.encode(self) + b"\n"  # on one line: 10^8 versions have 30,000 files

    @classmethod
    def of_text(cls, text: bytes) -> ArchiveManifest:
        """Return the manifest from the content of ``archive.json``.

        Raises
        ------
        ValueError
            If the content is not a manifest of this format.
        """
        try:
            found, why = msgspec.json.decode(text, type=cls), ""
        except msgspec.MsgspecError as error:
            found, why = None, f": {error}"
        if found is None or found.format != FORMAT:
            raise ValueError(f"is not an archive manifest of format {FORMAT}{why}")
        return found
