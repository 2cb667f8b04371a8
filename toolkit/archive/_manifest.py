"""The manifest of an archive, which is stored in ``archive.json``."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from toolkit._present.text import short_addresses
from toolkit.errors import InputError
from toolkit.wire import LedgerState, ViewFunction

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMAT = 1
NAME = "archive.json"
#: Tables of the rows of transactions, in the order in which they are listed.
BASIC = ("transactions", "events", "changes", "balances")


class Table(msgspec.Struct, frozen=True, omit_defaults=True):
    """A table of an archive.

    Attributes
    ----------
    name : str
        One of `BASIC`, or the user's name for a table of one event type or of view results.
    event_type : str or None
    view : dict or None
        The call, in the form of a node's request body.
    rows : int
    """

    name: str
    event_type: str | None = None
    view: dict[str, Any] | None = None
    rows: int = 0

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


class Manifest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
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
    tables : tuple of Table
    node, build : str
        Name and build of the node at the last sync. The build shows whether the node's gas comes from a model.
    epoch, block_height : int
        Epoch and block height of the node's head at the last sync.
    synced_at : datetime or None
    """

    format: int = FORMAT
    chain_id: int
    first: int
    last: int
    partition: int
    every: int
    tables: tuple[Table, ...]
    files: str | None = None
    node: str
    build: str | None = None
    last_hash: str | None = None
    epoch: int = 0
    block_height: int = 0
    synced_at: datetime | None = None

    def table(self, name: str) -> Table:
        """Return the table with this name."""
        found = next((table for table in self.tables if table.name == name), None)
        if found is None:
            names = ", ".join(table.name for table in self.tables)
            raise InputError(f"the archive has no table {name!r:.80}; its tables are {names}")
        return found

    def starts(self, first: int, last: int) -> Iterator[int]:
        """Yield the first version of each partition that overlaps a range of versions."""
        start = first // self.partition * self.partition
        return iter(range(start, last + 1, self.partition) if first <= last else ())

    def file_name(self, table: str, start: int) -> str:
        """Return the path of a file relative to the folder. Its name includes the versions of the whole partition."""
        # Twelve digits, so that names sort like versions: a public ledger passed 10^9 in three years.
        return f"{table}/{table}__{start:012}_to_{start + self.partition - 1:012}.parquet"

    def head(self, timestamp: datetime) -> LedgerState:
        """Return the ledger state at the last stored version; `timestamp` is the time of its transaction."""
        return LedgerState(self.chain_id, self.last, self.first, timestamp, self.epoch, self.block_height, 0)

    def text(self) -> bytes:
        """Return the content of ``archive.json`` for this manifest."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"

    @classmethod
    def of_text(cls, text: bytes) -> Manifest:
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
