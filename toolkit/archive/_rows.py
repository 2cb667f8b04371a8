"""Build the tables of an archive: transactions, events, state changes, balances, typed events and view results.

The tables have the columns of the fetch functions, and all text from which typed frames are built, so that the same
frames can be rebuilt.
"""

from __future__ import annotations

from contextlib import nullcontext
from http import HTTPStatus
from itertools import count, groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from toolkit.archive._columns import with_all_columns
from toolkit.client._fetch import fetch_views
from toolkit.client._node_errors import ABSENT, NO_ITEM
from toolkit.client._reads import Reads, send_all
from toolkit.client._transaction_data import EVENT_IDENTITY, typed_at
from toolkit.dtypes import to_arrow, to_pandas
from toolkit.errors import NodeUnreachable, NotFound, VersionPruned
from toolkit.frames._balances import Slot, balance_frame
from toolkit.frames._calls import Failure
from toolkit.frames._columns import compact_json
from toolkit.frames._schema import CHANGES, EVENTS, TRANSACTIONS, described_field
from toolkit.frames._transactions import payload_frame, rows_of_events, transaction_tables, with_versions
from toolkit.move import TypeTag, parse_type_tag
from toolkit.wire._responses import ERROR_CODES
from toolkit.wire._transactions import UserTransaction

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from toolkit.archive._manifest import StoredTable

#: The frames of the three tables, with the position of a request, which committed transactions do not have.
FRAMES = {"transactions": TRANSACTIONS, "events": EVENTS, "changes": CHANGES}
_SIGNATURE = described_field(
    "signature", pa.string(), source="signature", typing="schema", meaning="signature as JSON text"
)
_TRANSACTION = ("ledger_version", "ledger_timestamp", "hash")
#: Columns of the events of a type that precede their fields.
IDENTITY = (*_TRANSACTION, *EVENT_IDENTITY)
# Transactions that become Arrow tables together: fewer cost more per row, more are held as objects for longer.
_BATCH = 1_000
# Reads of a view whose answer may pass; two equal ones are enough for what does not exist.
_ATTEMPTS = 3
_LASTING = ABSENT | {NO_ITEM, "input_error"}


class Collected:
    """Collects transactions that are read page by page, as Arrow tables.

    Pages arrive in any order. Transactions that continue the converted ones are converted in batches, so that few
    transactions are held as objects and no table needs sorting.

    Parameters
    ----------
    first : int
        The first version to collect.
    """

    def __init__(self, first: int) -> None:
        self._first = first  # the first version that is not converted yet
        self._ready: list[Any] = []
        self._waiting: dict[int, Any] = {}
        self._tables: dict[str, list[pa.Table]] = {name: [] for name in FRAMES}

    def add(self, found: Iterable[tuple[int, Any]]) -> None:
        """Add transactions, each with its version."""
        self._waiting.update(found)
        while (version := self._first + len(self._ready)) in self._waiting:
            self._ready.append(self._waiting.pop(version))
        if len(self._ready) >= _BATCH:
            self._convert()

    def _convert(self) -> None:
        found, self._ready = self._ready, []
        heads, changes, events = (table.drop_columns("request") for table in transaction_tables(found))
        heads = with_versions(heads, range(self._first, self._first + len(found)))
        signatures = [str(one.signature_raw, "utf-8") if isinstance(one, UserTransaction) else None for one in found]
        heads = heads.append_column(_SIGNATURE, pa.array(signatures, pa.string()))
        for name, table in (("transactions", heads), ("events", events), ("changes", changes)):
            self._tables[name].append(table)
        self._first += len(found)

    def tables(self) -> dict[str, pa.Table]:
        """Return the tables of all transactions, sorted by version."""
        if self._ready:
            self._convert()
        return {name: pa.concat_tables(parts) for name, parts in self._tables.items()}


def as_frame_tables(tables: Mapping[str, pa.Table]) -> list[pa.Table]:
    """Return the tables of transactions, state changes and events, with the columns of their frames."""
    return [FRAMES[name].completed(tables[name]) for name in ("transactions", "changes", "events")]


def balance_rows(node: Reads, tables: dict[str, pa.Table]) -> pa.Table:
    """Return the balance changes of transactions. Earlier state that no event reports is read from the node."""

    def before(slots: Sequence[Slot]) -> list[str | None]:
        wanted = [(address, kind, max(0, version - 1)) for version, address, kind in slots]
        found: dict[int, str | None] = {}
        for context in (nullcontext(), node.fresh()):
            # What does not exist is asked for again: one backend of the node may not have it yet.
            doubtful = [place for place in range(len(wanted)) if found.get(place) is None]
            asked = [wanted[place] for place in doubtful]
            with context:
                for number, outcome in send_all(node, asked, lambda slot: node.prepare_resource(*slot)):
                    absent = isinstance(outcome, NotFound) and outcome.error_code in ABSENT
                    if absent or isinstance(outcome, VersionPruned):
                        continue
                    if isinstance(outcome, Exception):
                        raise outcome
                    data, _ledger = outcome
                    found[doubtful[number]] = compact_json(data)
        return [found.get(place) for place in range(len(wanted))]

    frames = [to_pandas(table) for table in as_frame_tables(tables)]
    frame = balance_frame(*frames, by="ledger_version", identity=_TRANSACTION, read=before)
    return plain(to_arrow(frame, wide="decimal"))  # sums of a few u64 fit 38 digits, and every tool adds decimals up


def typed_event_rows(node: Reads, tables: dict[str, pa.Table], table: StoredTable) -> pa.Table:
    """Return the events of a type with one column per field, decoded with the ABI at the version of each event.

    Raises
    ------
    NodeUnreachable
        If the node does not return a module of the type.
    """
    tag = parse_type_tag(table.event_type or "")
    rows = rows_of_events(tables["transactions"], tables["events"], str(tag))
    versions = rows["ledger_version"].to_pylist()
    if not versions:
        return rows.select(IDENTITY)  # the other columns follow with the first rows
    if _absent_modules(node, tag, versions):
        # There are events of the type, so that the module exists: one backend of the node may not have it yet.
        node.abis.forget_absent()
        with node.fresh():
            if absent := _absent_modules(node, tag, versions):
                text = f"table {table.name}: the node returns events of {tag}, but not the module {', '.join(absent)}"
                raise NodeUnreachable(text)
    known = typed_at(node, tag, versions)
    # Each layout for itself: where a type changes, the columns do not depend on where a partition or a sync ends.
    parts = []
    for layout, group in groupby(zip(versions, count(), strict=False), key=lambda numbered: known[numbered[0]]):
        places = [place for _, place in group]
        mine = rows.slice(places[0], len(places))
        layouts = [layout] * len(places)
        frame = payload_frame(mine, str(tag), layouts, identity=IDENTITY, default=layout, failed=Failure.of)
        parts.append(plain(to_arrow(frame, wide="text")))
    return with_all_columns(parts)


def _absent_modules(node: Reads, tag: TypeTag, versions: Sequence[int]) -> list[str]:
    """Return the modules of a type that the node does not return at some of the versions."""
    found = [entry for entry in node.abis.layouts_at(tag, versions).values() if isinstance(entry, tuple)]
    absent = {key for modules, _ in found for key, digest in modules.items() if digest is None}
    return sorted("::".join(key) for key in absent)


def view_rows(node: Reads, table: StoredTable, versions: Sequence[int]) -> pa.Table:
    """Return the results of a view at the given versions.

    Raises
    ------
    NodeUnreachable
        If the node does not answer a call, or answers in a way that may pass: such a row would contain no information
        about the ledger.
    """
    if not versions:
        return pa.table({"ledger_version": pa.array([], pa.int64())})  # the other columns follow with the first rows
    before: dict[int, Any] = {}
    for attempt in range(_ATTEMPTS):
        with node.fresh() if attempt else nullcontext():
            frame = fetch_views(node, table.call, versions, progress=False)
        rows = plain(to_arrow(frame, wide="text"))
        doubtful = _doubtful(rows)
        untyped = [field.name for field in rows.schema if (field.metadata or {}).get(b"typing") == b"inferred"]
        known = not untyped or all(rows[name].null_count == len(rows) for name in untyped)
        if known and all(lasts and before.get(version) == code for version, (code, lasts) in doubtful.items()):
            return rows.drop_columns(untyped)  # without a value; the columns follow with the first values
        before = {version: code for version, (code, _) in doubtful.items()}
        node.abis.forget_absent()
    why = "its types cannot be looked up"
    for message in rows["error_message"].drop_null().slice(0, 1).to_pylist() if doubtful else ():
        why = message
    raise NodeUnreachable(f"table {table.name}: the view cannot be read: {why}")


def _doubtful(rows: pa.Table) -> dict[int, tuple[str, bool]]:
    """Return the failures of a view that may pass, by version: the error code, and whether it is true if repeated.

    An aborted call (400) has the same result whenever it is read. That something does not exist or has been pruned may
    be due to one backend of the node, but not twice. Anything else says nothing about the ledger.
    """
    columns = (rows[name].to_pylist() for name in ("ledger_version", "status", "error_code"))
    return {
        version: (code, status == HTTPStatus.GONE or code in _LASTING)
        for version, status, code in zip(*columns, strict=True)
        if code is not None and not (status == HTTPStatus.BAD_REQUEST and code in ERROR_CODES)
    }


def plain(table: pa.Table) -> pa.Table:
    """Return a table without pandas metadata, and with 32-bit text offsets, as in the other tables."""
    fields = [field.with_type(pa.string()) if pa.types.is_large_string(field.type) else field for field in table.schema]
    return table.cast(pa.schema(fields))
