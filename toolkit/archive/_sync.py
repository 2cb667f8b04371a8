"""Read the versions that an archive lacks, and store them partition by partition."""

from __future__ import annotations

from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from toolkit.archive._archive import Archive
from toolkit.archive._files import Staged, files_at
from toolkit.archive._folder import Folder, Partition, stored, unwritten
from toolkit.archive._manifest import BASIC, MAX_PARTITION, MIN_PARTITION, ArchiveManifest, StoredTable, check_names
from toolkit.archive._rows import Collected, balance_rows, typed_event_rows, view_rows
from toolkit.client._arguments import event_tag, named_calls
from toolkit.client._executors import max_ranges, opened_executor, results
from toolkit.client._fetch import checked_node, resolved_plan
from toolkit.client._progress import Progress, ProgressHook, progress_bar
from toolkit.client._reads import PAGE, Anchor, LedgerAnchor, LedgerGuard, Reads, read_transactions
from toolkit.client._warnings import warn_caller
from toolkit.errors import InputError, LedgerChanged, NodeError, NodeUnreachable, RunStopped, SchemaError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    from toolkit.client._node import Node
    from toolkit.client._versions import Versions
    from toolkit.wire import ViewFunction


def sync(
    node: Node,
    folder: str | os.PathLike[str],
    versions: Versions | None = None,
    *,
    tables: Sequence[str] | None = None,
    events: Mapping[str, str] | None = None,
    views: Mapping[str, str | ViewFunction] | None = None,
    every: int | None = None,
    partition: int | None = None,
    files: str | None = None,
    executor: Executor | str | None = None,
    max_tasks: int = 8,
    progress: bool | ProgressHook = True,
) -> Archive:
    """Store committed transactions in a folder of Parquet files, or add the versions that the folder lacks.

    Parameters
    ----------
    node : Node
    folder : path-like
        Folder of the archive: a new or empty folder, or that of an earlier sync.
    versions : version plan, optional
        A range without gaps, such as ``"0:-1"``; by default, from the node's oldest version to its head. Versions
        already in the archive are not read again; new versions must follow them without a gap.
    tables : sequence of str, default ("transactions", "events", "changes")
        Tables to store: ``transactions`` (always stored), ``events``, ``changes`` and ``balances``.
    events : mapping of str to str, optional
        Additional tables with the events of one type and a typed column per field, as a mapping from table name, such
        as ``fees``, to event type.
    views : mapping of str to str or ViewFunction, optional
        Additional tables of view results, as a mapping from table name to call.
    every : int, default 100
        Read views at ledger versions that are multiples of this number.
    partition : int, default 10000
        Number of versions per file; all versions of a file are held in memory at once.
    files : str, optional
        fsspec URL (requires the extra ``archive``) at which to store the Parquet files, such as ``s3://bucket/ledger``.
        `folder` then contains only the archive's manifest and lock file. Pass it at each sync, and to `Archive`: a URL
        that is only written in the folder is not used.
    executor : concurrent.futures.Executor, str or Dask client, optional
        Workers that read partitions and write the files: ``"processes:4"``, ``"threads:8"``, ``"tcp://host:8786"`` (a
        Dask scheduler), or an executor. Workers share the node's limits on the request rate and on requests in flight.
        They need `folder` at the same path, or access to `files`.
    max_tasks : int, default 8
        Maximum number of partitions in progress on the executor. A pool given by name has at most one per worker.
    progress : bool or callable, default True
        Show a progress bar, or call a function with the current activity, the number of pages done and the total.

    Returns
    -------
    Archive

    Raises
    ------
    InputError
        If the folder is neither empty nor an archive of these tables, is in use by another sync, or belongs to another
        ledger; or if the versions have gaps, or would leave a gap after the versions in the archive.
    RunStopped
        If the files cannot be written (for example, because the disk is full), or the executor fails (for example,
        because a worker dies). Repeat the call to continue.
    NodeError, NodeUnreachable, SchemaError
        If the node returns an error, stops responding, or omits versions. This includes errors that may pass, such as
        401, 403 or 404 for a view or module that exists: they are never stored. Stored data is not affected: repeat the
        call to continue.
    LedgerChanged
        If the node starts serving another ledger. Versions read since the last file are not stored.

    Warns
    -----
    UserWarning
        If a new archive starts later than requested because the node has pruned the first versions.

    See Also
    --------
    Archive : Reads the stored tables.

    Notes
    -----
    The tables, ``every`` and ``partition`` of an archive are set by its first sync; later calls can omit them. A sync
    that is interrupted, even by a power failure, loses at most the versions read since it last wrote a file.

    Examples
    --------
    >>> import tempfile
    >>> import toolkit
    >>> node, folder = toolkit.connect(), tempfile.mkdtemp()
    >>> toolkit.sync(node, folder, "0:499", progress=False)
    Archive: versions 0 to 499 of chain 4; rows: transactions 500, events 792, changes 1,740
    >>> toolkit.sync(node, folder, "0:599", progress=False).state()["rows"].tolist()[0]
    600
    """
    node = checked_node(node)
    held = Folder(Path(folder), files)
    asked = _tables(tables, events, views)
    with held.locked():
        if held.exists():
            manifest = held.manifest()
            _check_same(manifest, asked, tables, every=every, partition=partition)
        else:
            if not held.files.is_empty():
                raise InputError(f"files: {files} is not empty; choose another URL, or sync into its archive's folder")
            new = _new(node, versions, asked, every=every, partition=partition)
            manifest = held.write_manifest(structs.replace(new, files=held.url))
        held.make_folders(manifest)
        held.clean(manifest)
        guard = _guard_of(node, manifest)
        try:
            guard.check()
        except LedgerChanged as error:
            raise InputError(f"the archive {held.path} does not match the node ({error}); use another folder") from None
        syncing = _Sync(node, held, structs.replace(manifest, node=node.name, build=node.info().git_hash), guard)
        try:
            last = _last(node, versions, manifest)
            with opened_executor(executor) as pool:
                syncing.run(last, pool, max_ranges(executor, max_tasks), show=progress)
        except (NodeError, NodeUnreachable, SchemaError, RunStopped) as error:
            error.add_note(f"{stored(held.manifest())} Repeat the call to continue.")
            raise
    return Archive(held.path, node=node, files=files)


def _tables(
    tables: Sequence[str] | None, events: Mapping[str, str] | None, views: Mapping[str, str | ViewFunction] | None
) -> tuple[StoredTable, ...]:
    """Check and return the tables that a caller names."""
    names = {"transactions", *(("events", "changes") if tables is None else tables)}
    if isinstance(tables, str) or not names <= set(BASIC):
        raise InputError(f"tables: expected one or more of {', '.join(BASIC)}, got {tables!r:.80}")
    found = [StoredTable(name) for name in BASIC if name in names]
    found += [StoredTable(name, event_type=str(event_tag(text))) for name, text in (events or {}).items()]
    found += [StoredTable(name, view=call.to_wire()) for name, call in (named_calls(views) if views else {}).items()]
    check_names(found)
    return tuple(found)


def _check_same(
    manifest: ArchiveManifest, asked: tuple[StoredTable, ...], tables: Sequence[str] | None, **options: int | None
) -> None:
    """Raise InputError if the caller names tables or options that differ from those of the archive."""
    there = {table.name: (table.event_type, table.view) for table in manifest.tables}
    named = [table for table in asked if tables is not None or table.name not in BASIC]
    differ = [f"table {table.name}" for table in named if there.get(table.name) != (table.event_type, table.view)]
    given = {name: value for name, value in options.items() if value is not None}
    differ += [f"{name} (stored: {has})" for name, value in given.items() if (has := getattr(manifest, name)) != value]
    if differ:
        contents = {table.name: table.content for table in manifest.tables}
        own = ", ".join(name if name == content else f"{name} ({content})" for name, content in contents.items())
        raise InputError(
            f"the tables and options of an archive cannot change, but these differ: {', '.join(differ)}. Its tables "
            f"are {own}. Omit the arguments that differ, or use another folder"
        )


def _new(
    node: Reads, versions: Versions | None, tables: tuple[StoredTable, ...], *, every: int | None, partition: int | None
) -> ArchiveManifest:
    """Return the manifest of a new archive, without rows."""
    # At 5 kB each, the JSON of 10,000 versions is 50 MB of memory, and 10^7 versions are 1,000 files of a table.
    # One read of a view per page of transactions about doubles the number of requests.
    partition, every = 10_000 if partition is None else partition, PAGE if every is None else every
    if {type(partition), type(every)} != {int} or not MIN_PARTITION <= partition <= MAX_PARTITION or every < 1:
        raise InputError(
            f"partition must be from {MIN_PARTITION:,} to {MAX_PARTITION:,} versions, and every must be at least 1, "
            f"got partition={partition!r} and every={every!r}"
        )
    plan, ledger = resolved_plan(node, "0:-1" if versions is None else versions, state=False)
    for note in plan.notes:
        warn_caller(note)
    first, _ = _range(plan.versions)
    return ArchiveManifest(
        chain_id=ledger.chain_id,
        first=first,
        last=first - 1,
        partition=partition,
        every=every,
        tables=tables,
        node=node.name,
    )


def _range(versions: Sequence[int]) -> tuple[int, int]:
    if versions:
        first, last = versions[0], versions[-1]
        if list(versions[:2]) == [first, first + 1][: last + 1 - first] and len(versions) == last + 1 - first:
            return first, last
    raise InputError(f"versions: an archive has no gaps; expected a range such as '0:-1', got {versions!r:.80}")


def _last(node: Reads, versions: Versions | None, manifest: ArchiveManifest) -> int:
    """Return the last version to store. The first is the one after the archive's last version."""
    if versions is None:
        versions = range(manifest.last + 1, node.ledger().version + 1) or manifest.last
    plan, _ = resolved_plan(node, versions, state=False)
    first, last = _range(plan.versions)
    if first > manifest.last + 1:
        raise InputError(
            f"versions {manifest.last + 1:,} to {first - 1:,} would be missing. {stored(manifest)} Start at version "
            f"{manifest.last + 1:,}, with a node that has not pruned it, or use another folder"
        )
    if first < manifest.first:
        raise InputError(
            f"versions from {first:,} were requested. {stored(manifest)} An archive can only grow at its end: begin at "
            f"{manifest.first:,}, or use another folder"
        )
    return last


def _guard_of(node: Reads, manifest: ArchiveManifest) -> LedgerGuard:
    """Return a guard that checks a transaction in the archive against the node, to detect another ledger."""
    last, last_hash = manifest.last, manifest.last_hash
    if last_hash is None:  # none is stored yet, or the last one is malformed
        return LedgerGuard(node, LedgerAnchor.taken(node, manifest.first))
    return LedgerGuard(node, LedgerAnchor(manifest.chain_id, last, anchor=Anchor(last, last_hash)))


class _Sync:
    """One sync in progress."""

    def __init__(self, node: Node, files: Folder, manifest: ArchiveManifest, guard: LedgerGuard) -> None:
        self._node, self._files, self._manifest, self._guard = node, files, manifest, guard

    def run(self, last: int, pool: Executor | None, max_tasks: int, *, show: bool | ProgressHook) -> None:
        """Read and store all versions up to `last`, in this process or in an executor's workers."""
        first = self._manifest.last + 1
        size = self._manifest.partition
        starts = self._manifest.starts(first, last)
        parts = [range(max(first, start), min(last, start + size - 1) + 1) for start in starts]
        if not parts:
            return
        with progress_bar(sum(len(_pages(part)) for part in parts), "pages", show=show) as bar:
            if pool is None:
                self._run_here(parts, bar)
            else:
                self._run_elsewhere(parts, bar, pool, min(max_tasks, len(parts)))

    def _run_here(self, parts: Sequence[range], bar: Progress) -> None:
        """Read each partition while the previous one is being written."""
        writing: Future[None] | None = None
        with ThreadPoolExecutor(1) as writer:
            for part in parts:
                found = _read(self._node, self._manifest, part, bar.advance)
                if writing is not None:
                    writing.result()
                writing = writer.submit(self._store, part, found)
                del found  # at most one partition waits while another one is read
            if writing is not None:
                writing.result()

    def _run_elsewhere(self, parts: Sequence[range], bar: Progress, pool: Executor, max_tasks: int) -> None:
        """Let workers read partitions and write files, and add the files to the archive in order."""
        folder, manifest = self._files.path.resolve(), self._manifest
        early: dict[int, Partition] = {}  # what was read before the partitions that precede it
        stored = 0
        with self._node.with_share(max_tasks) as share:
            tasks = ((share, folder, manifest, part) for part in parts)
            # Workers read ahead of the first partition that is missing; what they have read waits for its place.
            with closing(results(pool, _read_to_files, tasks, max_tasks, ahead=2 * max_tasks)) as found:
                for place, read in found:
                    early[place] = read
                    while stored in early:
                        self._store(parts[stored], early.pop(stored))
                        bar.advance(len(_pages(parts[stored])))
                        stored += 1

    def _store(self, part: range, found: Partition) -> None:
        """Store a partition if the node still serves the ledger of the archive."""
        self._guard.check()
        self._manifest = self._files.add(self._manifest, found, part[-1])
        self._guard = _guard_of(self._node, self._manifest)


def _read(node: Reads, manifest: ArchiveManifest, part: range, advance: Callable[[int], object]) -> Partition:
    """Read one partition and return its rows by table; `advance` is called after each page."""
    collected = Collected(part[0])
    for answer in read_transactions(node, _pages(part)):
        collected.add(answer.found)
        for missing in answer.missing:
            if missing.malformed is None:
                raise missing.error
            # Reading it again would not help, and its text is stored.
            collected.add([(missing.first, missing.malformed)])
        advance(int(answer.ended))
    rows = collected.tables()
    tables = {}
    for table in manifest.tables:
        if table.event_type is not None:
            tables[table.name] = typed_event_rows(node, rows, table)
        elif table.view is not None:
            step = manifest.every
            tables[table.name] = view_rows(node, table, range(-(-part[0] // step) * step, part[-1] + 1, step))
        elif table.name == "balances":
            tables[table.name] = balance_rows(node, rows)
        else:
            tables[table.name] = rows[table.name]
    return Partition(tables, rows["transactions"]["hash"][-1].as_py(), node.newest or node.ledger())


def _read_to_files(node: Node, folder: Path, manifest: ArchiveManifest, part: range) -> Partition:
    """Read a partition in a worker, and write its rows to temporary files next to the final files."""
    with node.with_share(1) as copy:  # in threads nothing is pickled, and each partition needs its own sockets
        copy.expect_chain(manifest.chain_id)
        found = _read(copy, manifest, part, lambda _: None)
    start, files = part[-1] // manifest.partition * manifest.partition, files_at(folder, manifest.files)
    staged: dict[str, Staged] = {}
    for name, rows in found.tables.items():
        place = manifest.file_name(name, start)
        try:
            staged[name] = files.stage(place, rows)
        except OSError as error:
            raise unwritten(files.url(place), error) from error
    return found._replace(tables=staged)


def _pages(part: range) -> list[range]:
    return [part[place : place + PAGE] for place in range(0, len(part), PAGE)]
