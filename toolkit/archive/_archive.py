"""`Archive`: what a sync stored, as typed frames, as datasets, and in SQL."""

from __future__ import annotations

import re
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from toolkit._present.text import visible
from toolkit.archive._folder import UNREADABLE, Folder, stored
from toolkit.archive._rows import IDENTITY, as_frame_tables
from toolkit.archive._transport import ArchiveTransport
from toolkit.client._arguments import check_struct, event_tag
from toolkit.client._fetch import typed_payload_frame
from toolkit.client._node import Node
from toolkit.client._reads import Reads, TransactionStore
from toolkit.client._transaction_data import TransactionFrames
from toolkit.client._versions import Versions, resolve_versions
from toolkit.client._warnings import warn_caller, warn_of_similar
from toolkit.dtypes import to_pandas
from toolkit.dtypes._arrow import wide_from_text, wide_type
from toolkit.errors import InputError
from toolkit.frames._addresses import address, warn_of_short_literals
from toolkit.frames._schema import ARCHIVE, described_field
from toolkit.frames._transactions import rows_of_events

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    import pandas as pd
    import pyarrow.dataset as ds
    from duckdb import DuckDBPyConnection

    from toolkit.archive._manifest import ArchiveManifest

# DuckDB's types of 128 bits, which become floats or wrong numbers in Arrow, and the dtypes that hold them exactly.
_WIDE = {"HUGEINT": "i128", "UHUGEINT": "u128"}
# Types that pandas cannot show, or that lose digits in Arrow: columns of these, and of lists of them, become text.
_AS_TEXT = re.compile(r"UHUGEINT|BIGNUM|UNION|INTERVAL.")
_US_PER_DAY = 86_400_000_000


class Archive(TransactionStore):
    """A folder of committed transactions and tables derived from them, written by `sync`.

    The fetch functions for committed transactions, and studies of them, accept an archive in place of a node. Each
    method also reads what other processes have since added to the folder.

    Parameters
    ----------
    folder : path-like
    node : Node, optional
        Answers requests that the archive cannot, such as for resources written before the archive's first version.
    files : str, optional
        The URL at which `sync` stored the files, if they are not in the folder. A URL that is written in the folder is
        not used, because someone else may have written it.

    Raises
    ------
    InputError
        If the folder is not an archive, or its files are at another URL.

    See Also
    --------
    sync : Fills the folder.

    Examples
    --------
    >>> import tempfile
    >>> import toolkit
    >>> archive = toolkit.sync(toolkit.connect(), tempfile.mkdtemp(), "0:149", progress=False)
    >>> archive.transactions("100:109").transactions["ledger_version"].tolist()[:3]
    [100, 101, 102]
    """

    def __init__(self, folder: str | os.PathLike[str], *, node: Reads | None = None, files: str | None = None) -> None:
        self._folder = Folder(Path(folder), files)
        self._live = node
        self._folder.manifest()
        self._served: tuple[ArchiveManifest, Node] | None = None

    @property
    def path(self) -> Path:
        """The folder of the archive."""
        return self._folder.path

    def __repr__(self) -> str:
        manifest = self._folder.manifest()
        if manifest.last < manifest.first:
            return f"Archive: no versions of chain {manifest.chain_id} yet"
        rows = ", ".join(f"{table.name} {table.rows:,}" for table in manifest.tables)
        return f"Archive: versions {manifest.first:,} to {manifest.last:,} of chain {manifest.chain_id}; rows: {rows}"

    # what is in it --------------------------------------------------------------------------------------------------

    def state(self) -> pd.DataFrame:
        """Return the contents of the archive, one row per table.

        Returns
        -------
        DataFrame, shape (tables, 8)
            ``table``, ``content``, ``rows``, the first and last stored version, ``files``, their size in ``bytes``, and
            the time of the last sync.

        Raises
        ------
        InputError
            If a file is missing.

        Examples
        --------
        >>> import tempfile
        >>> import toolkit
        >>> archive = toolkit.sync(toolkit.connect(), tempfile.mkdtemp(), "0:149", progress=False)
        >>> archive.state()[["table", "rows", "files"]].head(1).to_numpy().tolist()
        [['transactions', 150, 1]]
        """
        manifest = self._folder.manifest()
        rows = []
        for table in manifest.tables:
            sizes = self._folder.sizes(manifest, table.name)
            rows.append(
                {
                    "table": table.name,
                    "content": table.content,
                    "rows": table.rows,
                    "first_version": manifest.first,
                    "last_version": manifest.last if sizes else None,
                    "files": len(sizes),
                    "bytes": sum(sizes),
                    "synced_at": manifest.synced_at,
                }
            )
        return to_pandas(ARCHIVE.table_of_rows(rows))

    def scan(self, table: str) -> ds.Dataset:
        """Return a table as a lazy Arrow dataset, which Polars and DuckDB can read.

        Parameters
        ----------
        table : str
            Name of the table, as listed by `state`.

        Returns
        -------
        pyarrow.dataset.Dataset
            Includes the columns of all files. Integers wider than 64 bits are decimals in ``balances``, and decimal
            text in the tables of event types and views.

        Raises
        ------
        InputError
            If the archive does not have the table, or a file is missing, damaged, or not the one that was stored.

        Examples
        --------
        >>> import tempfile
        >>> import toolkit
        >>> archive = toolkit.sync(toolkit.connect(), tempfile.mkdtemp(), "0:149", progress=False)
        >>> archive.scan("transactions").to_table(columns=["gas_used"]).num_rows
        150
        """
        manifest = self._folder.manifest()
        return self._folder.dataset(manifest, table, manifest.first, manifest.last)

    def sql(self, query: str, *, connection: DuckDBPyConnection | None = None) -> pd.DataFrame:
        """Run a DuckDB query over the tables; requires the extra ``archive``.

        Parameters
        ----------
        query : str
            DuckDB SQL that refers to the archive's tables by name. Addresses, including those inside types and
            functions, are stored with 64 digits. In SQL, ``address('0xcafe::shop')`` converts to this form, as
            `toolkit.address` does.
        connection : duckdb.DuckDBPyConnection, optional
            Connection to run the query on, for example to join the tables with files or a database. During the query it
            also has the tables of the archive. By default, a query sees nothing but the archive: it cannot read or
            write files, attach databases or load extensions.

        Returns
        -------
        DataFrame
            Typed like the frames of the fetch functions. 128-bit integers, such as a ``sum`` of integers, are exact. A
            difference of times is a duration. Unions, and lists of intervals or of unsigned 128-bit integers, are text.

        Raises
        ------
        InputError
            If DuckDB is not installed, or rejects the query; if an interval includes months, which vary in length; or
            if a file is missing, damaged, or not the one that was stored.

        Warns
        -----
        UserWarning
            If the query compares with an address in a form that never occurs in the tables, such as ``'0xcafe'``; or if
            the names of columns differ only in case, which SQL ignores: the second one is then ``name_1``.

        Examples
        --------
        >>> import tempfile
        >>> import toolkit
        >>> archive = toolkit.sync(toolkit.connect(), tempfile.mkdtemp(), "0:149", progress=False)
        >>> archive.sql("select count(*) as n, sum(gas_used) as gas from transactions where success")["n"].tolist()
        [143]
        """
        try:
            import duckdb
        except ImportError:
            text = "sql requires DuckDB (pip install 'ledger-toolkit[archive]'); scan does not"
            raise InputError(text) from None
        if not isinstance(query, str):
            raise InputError(f"query must be a string, got {type(query).__name__}")
        warn_of_short_literals(query)
        manifest = self._folder.manifest()
        tables = {table.name: self.scan(table.name) for table in manifest.tables}
        for name, table in tables.items():
            lower = [column.lower() for column in table.schema.names]
            if alike := [column for column in table.schema.names if lower.count(column.lower()) > 1]:
                warn_caller(
                    f"columns {', '.join(alike)} of {name} differ in case only; in SQL, all but the first have a number"
                )
        try:
            if connection is not None:
                return _queried(connection, tables, query)
            # A variable of the caller is not a table of the query.
            with duckdb.connect(config={"enable_external_access": False, "python_enable_replacements": False}) as own:
                own.execute("SET TimeZone = 'UTC'")
                own.execute("SET lock_configuration = true")
                return _queried(own, tables, query)
        except InputError:
            raise
        except (duckdb.Error, *UNREADABLE) as error:
            words = " ".join(str(error).split()).rstrip(" ^")  # one line, without the caret below
            known = f"; the archive's tables: {', '.join(tables)}" if isinstance(error, duckdb.CatalogException) else ""
            raise InputError(f"DuckDB rejects the query: {visible(words, 2_000)}{known}") from None

    # typed frames ---------------------------------------------------------------------------------------------------

    def transactions(self, versions: Versions) -> TransactionFrames:
        """Return transactions, their state changes and their events, as `fetch_transactions` does.

        Parameters
        ----------
        versions : version plan
            As in `fetch_views`; -1 is the last version of the archive. A plan by time uses transaction times.

        Returns
        -------
        TransactionFrames

        Raises
        ------
        InputError
            If the plan cannot be parsed or includes versions outside the archive, or if the archive lacks the tables
            ``events`` and ``changes``.

        Examples
        --------
        >>> import tempfile
        >>> import toolkit
        >>> archive = toolkit.sync(toolkit.connect(), tempfile.mkdtemp(), "0:149", progress=False)
        >>> archive.transactions("100:109").balance_changes.shape[0] > 0
        True
        """
        manifest = self._folder.manifest()
        wanted = self._planned(manifest, versions)
        tables = {name: self._rows(manifest, name, wanted) for name in ("transactions", "events", "changes")}
        return TransactionFrames(*map(to_pandas, as_frame_tables(tables)), _node=self.node)

    def events_of(self, event_type: str, versions: Versions | None = None) -> pd.DataFrame:
        """Return the events of one type as a typed frame, as `fetch_events` does.

        Parameters
        ----------
        event_type : str
            Type of the event, such as ``0x1::transaction_fee::FeeStatement``.
        versions : version plan, optional
            As in `transactions`; the whole archive by default.

        Returns
        -------
        DataFrame, shape (events + malformed transactions, 7 + fields + 4)

        Raises
        ------
        InputError
            As for `transactions`, or if the type cannot be parsed or does not exist at any of the versions.
        VersionPruned
            If the module of the type was published before the first version of the archive, and no node was given.

        Examples
        --------
        >>> import tempfile
        >>> import toolkit
        >>> archive = toolkit.sync(toolkit.connect(), tempfile.mkdtemp(), "0:149", progress=False)
        >>> str(archive.events_of("0x1::transaction_fee::FeeStatement")["total_charge_gas_units"].dtype)
        'uint64[pyarrow]'
        """
        tag = event_tag(event_type)
        manifest = self._folder.manifest()
        wanted = self._planned(manifest, versions)
        events = self._rows(manifest, "events", wanted, pc.field("type") == str(tag))
        of_them = pc.field("ledger_version").isin(pc.unique(events["ledger_version"]))
        unread = pc.field("raw").is_valid()
        columns = ["ledger_version", "timestamp", "hash", "raw", "error_message"]
        heads = self._rows(manifest, "transactions", wanted, of_them | unread, columns=columns)
        rows = rows_of_events(heads, events, str(tag), failures={})
        if not len(events):
            check_struct(self.node, "event_type", tag, wanted)
            types = pc.unique(self._rows(manifest, "events", wanted, columns=["type"])["type"]).to_pylist()
            warn_of_similar(event_type, types, f"these transactions have no {event_type}")
        return typed_payload_frame(self.node, tag, rows, IDENTITY, "events")

    @property
    def node(self) -> Node:
        """A node that reads the archive as it is now, for functions that do not accept an archive."""
        manifest = self._folder.manifest()
        if self._served is not None and self._served[0] == manifest:
            return self._served[1]
        last = self._rows(manifest, "transactions", self._planned(manifest, -1), columns=["timestamp"])
        if self._live is not None:
            self._live.expect_chain(manifest.chain_id)
        transport = ArchiveTransport(self._folder, manifest, manifest.head(last["timestamp"][0].as_py()), self._live)
        self._served = manifest, Node("http://archive.invalid", transport=transport, name=manifest.node)
        return self._served[1]

    def _planned(self, manifest: ArchiveManifest, versions: Versions | None) -> Sequence[int]:
        """Return a plan's versions, all of which the archive contains; without a plan, return all its versions."""
        first, last = manifest.first, manifest.last
        if last < first:
            raise InputError(f"{self.path}: {stored(manifest)} Sync it first")
        if versions is None:
            return range(first, last + 1)
        plan = resolve_versions(versions, head=last, oldest=first, version_at=partial(self._first_from, manifest))
        if plan.notes:
            warn_caller(f"{stored(manifest)} Other versions in the plan are skipped")
        ends = (min(plan.versions), max(plan.versions)) if plan.versions else ()
        if absent := [version for version in ends if not first <= version <= last]:
            raise InputError(f"version {absent[0]:,} is not in the archive. {stored(manifest)}")
        return plan.versions

    def _first_from(self, manifest: ArchiveManifest, times: Sequence[datetime]) -> list[int]:
        """Return the first version at or after each time: -1 if it may precede the archive, last + 1 if it follows."""
        every, columns = range(manifest.first, manifest.last + 1), ["ledger_version", "timestamp"]
        rows = self._rows(manifest, "transactions", every, pc.field("timestamp").is_valid(), columns=columns)
        micros = rows["timestamp"].cast(pa.int64()).to_numpy()
        versions = [*rows["ledger_version"].to_pylist(), manifest.last + 1]
        wanted = pa.array(times, pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_numpy()
        places = zip(wanted, np.searchsorted(micros, wanted), strict=True)
        return [-1 if manifest.first > 0 and time < micros[0] else versions[place] for time, place in places]

    def _rows(
        self, manifest: ArchiveManifest, name: str, versions: Sequence[int], condition: Any = None, **options: Any
    ) -> pa.Table:
        """Return a table's rows at the given versions that satisfy a condition."""
        first, last = (min(versions), max(versions)) if versions else (manifest.first, manifest.first - 1)
        if len(versions) < last + 1 - first:
            among = pc.field("ledger_version").isin(pa.array(versions, pa.int64()))
            condition = among if condition is None else condition & among
        return self._folder.rows(manifest, name, first, last, filter=condition, **options)


def _queried(connection: DuckDBPyConnection, tables: Mapping[str, ds.Dataset], query: str) -> pd.DataFrame:
    """Return the result of a query on a connection that has these tables while it runs."""
    varchar = connection.sqltype("VARCHAR")
    with ExitStack() as stack:
        for name, table in tables.items():
            connection.register(name, table)
            stack.callback(connection.unregister, name)
        connection.create_function("address", address, [varchar], varchar)
        stack.callback(connection.remove_function, "address")
        if (found := connection.sql(query)) is None:
            raise InputError(f"expected a query that returns a result, got {query!r:.80}")
        names, kinds = found.columns, list(map(str, found.types))
        # By position, because names may occur twice, and no name becomes SQL.
        columns = [
            f"cast(#{at} as varchar)" if kind in _WIDE or _AS_TEXT.search(kind) else f"#{at}"
            for at, kind in enumerate(kinds, start=1)
        ]
        result = found.project(", ".join(columns)).to_arrow_table()
    arrays = list(map(_array, names, kinds, result.columns))
    named = zip(names, arrays, strict=True)
    fields = [described_field(name, array.type, source="query") for name, array in named]
    return to_pandas(pa.Table.from_arrays(arrays, schema=pa.schema(fields)))


def _array(name: str, kind: str, column: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return a column of a result: wide integers from their text, and intervals, which pandas cannot show, in us."""
    if kind in _WIDE:
        return wide_from_text(column.combine_chunks(), wide_type(_WIDE[kind]))
    if not pa.types.is_interval(column.type):
        return column
    intervals = column.to_pylist()
    if any(one is not None and one.months for one in intervals):
        raise InputError(f"column {name!r:.80} has intervals of months, which vary in length; cast it to varchar")
    micros = [None if one is None else one.days * _US_PER_DAY + one.nanoseconds // 1_000 for one in intervals]
    return pa.array(micros, pa.duration("us"))
