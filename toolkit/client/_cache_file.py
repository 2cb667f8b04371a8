"""The file of the answer cache: one SQLite table of rows, written in batches and trimmed to a maximum size.

Errors of the file never end a session: reads miss, writes are dropped, and one warning is given. A damaged file is
renamed.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING, TypeVar

from toolkit._present.files import read_file, special_kind
from toolkit.client._warnings import warn_caller
from toolkit.errors import ClosedError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


# key, status, headers, body, packed (0 or 1), checksum, created and last used (Unix time, s)
Row = tuple[bytes, int, bytes, bytes, int, int, int, int]

BATCH_ROWS = 100
BATCH_BYTES = 8 * 1024 * 1024
FLUSH_AFTER_S = 1.0
TOUCH_AFTER_S = 3600
"""A row's time of use is updated only if it is older than this, so that reading a warm cache writes nothing."""

BUSY_S = 10.0
APPLICATION_ID = 0x4C544143  # "LTAC", which identifies the cache among SQLite files
FORMAT = 1
_CHUNK = 500  # keys per query; SQLite before 3.32 accepts at most 999
_ROW_OVERHEAD = 100  # bytes of key, index entries and numbers, besides headers and body
_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}

# Rows are in the order of writing, so that those of one fetch are adjacent; only the index of keys is in random order.
_SCHEMA = """
create table if not exists answers (
    id integer primary key, key blob not null unique, status integer not null, headers blob not null,
    body blob not null, packed integer not null, checksum integer not null,
    created integer not null, used integer not null)
"""
_INSERT = (
    "insert or replace into answers (key, status, headers, body, packed, checksum, created, used)"
    " values (?, ?, ?, ?, ?, ?, ?, ?)"
)

_log = logging.getLogger("toolkit.client._cache")
_Result = TypeVar("_Result")


class _ForeignFileError(Exception):
    """The file is a SQLite file, but not a cache of this format; `ours` is True if it is a cache of another format."""

    def __init__(self, text: str, *, ours: bool) -> None:
        super().__init__(text)
        self.ours = ours


class Store:
    """Rows by key, in a file shared with other processes, or in memory.

    Parameters
    ----------
    path : Path or None
        The file, which is created with its folders if it does not exist; None for memory.
    max_bytes : int
        Maximum size of the file in bytes; least recently used rows are deleted first.
    clock : callable, optional
        Unix time in seconds; tests pass their own.
    only_ours : bool, default False
        Raise for a file that is not a cache instead of renaming it.

    Raises
    ------
    InputError
        If `only_ours` is True and the file is not a cache. The file is not changed.

    Warns
    -----
    UserWarning
        If the file is damaged or not a cache, in which case it is renamed and a new one created, or if it cannot be
        used at all, in which case nothing is stored.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        max_bytes: int,
        clock: Callable[[], float] = time.time,
        only_ours: bool = False,
    ) -> None:
        self.path = path
        self.max_bytes = max_bytes
        self.clock = clock
        self._pid = os.getpid()
        # Code that needs both locks acquires them in this order. Rows leave `_pending` only under `_db_lock`, so that a
        # reader that looks there first and into the file second never misses a row.
        self._db_lock = threading.RLock()
        self._pending_lock = threading.RLock()
        self._pending: dict[bytes, Row] = {}
        self._pending_bytes = 0
        self._touched: dict[bytes, int] = {}
        self._timer: threading.Timer | None = None
        self._closed = False
        self._warned = False
        self._identity: tuple[int, int] | None = None
        self._db = self._open_file(only_ours=only_ours)

    @property
    def usable(self) -> bool:
        """Whether rows can be stored. Not in a forked child: SQLite connections must not be used across a fork."""
        if self._closed:
            raise ClosedError("this cache is closed; open it again")
        return self._db is not None and self._pid == os.getpid()

    def read(self, keys: Sequence[bytes]) -> list[Row]:
        """Return the rows with these keys that exist, in any order."""
        if not self.usable:
            return []
        with self._pending_lock:
            rows = [self._pending[key] for key in keys if key in self._pending]
        if rows:
            found = {row[0] for row in rows}
            keys = [key for key in keys if key not in found]
        for start in range(0, len(keys), _CHUNK):
            rows += self._guarded(partial(_select, keys=keys[start : start + _CHUNK])) or []
        self._touch(rows)
        return rows

    def add(self, row: Row) -> None:
        """Store a row. It can be read at once and is in the file after the next flush."""
        if not self.usable:
            return
        with self._pending_lock:
            self._pending[row[0]] = row
            self._pending_bytes += len(row[2]) + len(row[3])
            full = len(self._pending) >= BATCH_ROWS or self._pending_bytes >= BATCH_BYTES
            if not full:
                self._flush_later()
        if full:
            self.flush()

    def flush(self) -> None:
        """Write the pending rows in one transaction. If it is interrupted, the rows stay pending."""
        if not self.usable:
            return
        rows: dict[bytes, Row] = {}
        touched: dict[bytes, int] = {}
        with self._db_lock:
            try:
                with self._pending_lock:
                    rows, touched = self._pending, self._touched
                    self._drop_pending()
                if rows or touched:
                    self._guarded(lambda db: self._write(db, list(rows.values()), [*touched.items()]))
            except (KeyboardInterrupt, SystemExit):
                # A user stops a sweep at any moment; a write is a large part of its time if answers are few bytes.
                with self._pending_lock:
                    self._pending, self._touched = {**rows, **self._pending}, {**touched, **self._touched}
                    self._pending_bytes = sum(len(row[2]) + len(row[3]) for row in self._pending.values())
                    self._flush_later()
                raise

    def clear(self) -> None:
        """Delete every row and free the space."""
        if not self.usable:
            return
        with self._db_lock:
            with self._pending_lock:
                self._drop_pending()
            self._guarded(_delete_all)

    def forget_since(self, time_s: int) -> None:
        """Delete the rows created at or after a Unix time in seconds."""
        if not self.usable:
            return
        with self._db_lock:
            self.flush()
            self._guarded(lambda db: db.execute("delete from answers where created >= ?", (time_s,)).rowcount)

    def close(self) -> None:
        """Flush and close the file; it may be called again."""
        if self._closed:
            return
        if self._pid != os.getpid():
            self._closed = True
            return
        with self._db_lock:
            self.flush()
            self._closed = True
            if self._db is not None:
                with suppress(sqlite3.Error):
                    self._db.close()
                self._db = None

    def count(self) -> int:
        """Return the number of rows."""
        if not self.usable:
            return 0
        self.flush()
        return self._guarded(lambda db: int(db.execute("select count(*) from answers").fetchone()[0])) or 0

    def size(self) -> int:
        """Return the number of bytes in use in the file, without its write-ahead log."""
        return self._guarded(_bytes_in_use) or 0 if self.usable else 0

    def _touch(self, rows: list[Row]) -> None:
        now = int(self.clock())
        stale = [row[0] for row in rows if row[7] < now - TOUCH_AFTER_S]
        if stale:
            with self._pending_lock:
                self._touched.update(dict.fromkeys(stale, now))
                self._flush_later()

    def _flush_later(self) -> None:
        if self._timer is None:
            self._timer = threading.Timer(FLUSH_AFTER_S, self._flush_now)
            self._timer.daemon = True
            self._timer.start()

    def _flush_now(self) -> None:
        with suppress(ClosedError):
            self.flush()

    def _drop_pending(self) -> None:
        self._pending, self._pending_bytes, self._touched = {}, 0, {}
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _guarded(self, work: Callable[[sqlite3.Connection], _Result]) -> _Result | None:
        """Return the result of `work` on the file, or None if the file cannot be used."""
        with self._db_lock:
            if self._db is None:
                return None
            try:
                return work(self._db)
            except (sqlite3.DatabaseError, UnicodeError) as error:
                # If names in a damaged file are not valid text, SQLite's message cannot be decoded either.
                if isinstance(error, UnicodeError) or _code(error) in _DAMAGE:
                    self._reopen(self._db, error)
                    return None
                if not isinstance(error, sqlite3.OperationalError | sqlite3.IntegrityError):
                    raise  # a bug of this module
                failure = error
        self._warn_once(f"the answer cache {self.path} could not be used ({failure}); continuing without it")
        return None

    def _warn_once(self, text: str) -> None:
        _log.info("%s", text)
        if not self._warned:
            self._warned = True
            warn_caller(text)

    def _write(self, db: sqlite3.Connection, rows: list[Row], touched: list[tuple[bytes, int]]) -> None:
        try:
            db.execute("begin immediate")  # here, since an interrupt may come right behind it
            db.executemany(_INSERT, rows)
            db.executemany("update answers set used = ? where key = ?", [(used, key) for key, used in touched])
            self._trim(db)
            db.execute("commit")
            if _pragma(db, "page_count") * _pragma(db, "page_size") > self.max_bytes:
                _free_pages(db)
        except BaseException:
            with suppress(sqlite3.Error):
                db.execute("rollback")
            raise

    def _trim(self, db: sqlite3.Connection) -> None:
        """Delete least recently used rows until the limit is met, and some more so that this is rarely necessary."""
        slack = self.max_bytes // 64
        while (excess := _bytes_in_use(db) - self.max_bytes) > 0:
            doomed, freed = [], 0
            oldest = db.execute("select id, length(headers) + length(body) from answers order by used, id")
            for number, size in oldest:
                doomed.append((number,))
                freed += size + _ROW_OVERHEAD
                if freed >= excess + slack:
                    break
            oldest.close()
            if not doomed:
                return
            db.executemany("delete from answers where id = ?", doomed)

    def _open_file(self, *, only_ours: bool = False) -> sqlite3.Connection | None:
        """Open the file, after renaming it if it is damaged; return None if it cannot be used."""
        kind = special_kind(self.path) if self.path is not None else None
        if kind and only_ours:
            raise InputError(f"cache={str(self.path)!r}: expected a regular file, got {kind}; pass another file")
        if kind:
            warn_caller(f"answers are not cached: {self.path} must be a regular file, got {kind}")
            return None
        for last in (False, True):
            self._identity = _identity(self.path)
            try:
                if self.path is not None:
                    self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                db = _open(self.path)
                self._identity = _identity(self.path)
            except (OSError, ValueError, sqlite3.Error, _ForeignFileError) as error:
                damaged = isinstance(error, _ForeignFileError | UnicodeError) or _code(error) in _DAMAGE
                if damaged and only_ours and self.path is not None and not _was_ours(self.path, error):
                    raise InputError(
                        f"cache={str(self.path)!r}: this file is not a cache of answers ({error}) and is not changed; "
                        f"pass another file, or delete this one if it is not needed"
                    ) from None
                if damaged and not last and self._rename_damaged(error):
                    continue
                warn_caller(f"answers are not cached: {self.path} cannot be used ({error})")
                return None
            return db
        return None

    def _reopen(self, db: sqlite3.Connection, error: Exception) -> None:
        self._db = None  # if the warning below is raised as an error, no closed connection is left
        with suppress(sqlite3.Error):
            db.close()
        self._db = self._open_file() if self._rename_damaged(error) else None

    def _rename_damaged(self, error: Exception) -> bool:
        """Rename the damaged file, unless another process has done so; return whether a new one can be created."""
        if self.path is None:
            return True
        if _identity(self.path) != self._identity:
            return True
        try:
            place = _renamed(self.path)
        except OSError as refused:
            warn_caller(f"answers are not cached: {self.path} is damaged ({error}) and cannot be renamed ({refused})")
            return False
        warn_caller(f"{self.path} is not a usable cache ({error}); it is renamed to {place.name} and replaced")
        return True


def _open(path: Path | None) -> sqlite3.Connection:
    """Open a cache file, initialized if it is new; retry while another process initializes it."""
    deadline = time.monotonic() + BUSY_S
    while True:
        db = sqlite3.connect(
            ":memory:" if path is None else path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
        )
        try:
            _prepare(db)
        except BaseException as error:
            db.close()
            # SQLite ignores the busy timeout if two processes switch to WAL at the same time.
            if isinstance(error, sqlite3.Error) and _code(error) in _BUSY and time.monotonic() < deadline:
                time.sleep(0.02)
                continue
            raise
        return db


def _prepare(db: sqlite3.Connection) -> None:
    db.execute("pragma trusted_schema = off")
    known = _pragma(db, "application_id") == APPLICATION_ID and _pragma(db, "user_version") == FORMAT
    if known:
        _check_damaged(db)
    else:
        _check_foreign(db)
        db.execute("pragma auto_vacuum = incremental")  # has no effect once the file has content
    db.execute("pragma journal_mode = wal")
    db.execute("pragma synchronous = normal")
    db.execute(f"pragma journal_size_limit = {4 * 1024 * 1024}")
    db.execute("pragma cache_size = -16384")
    if known:
        return
    try:
        db.execute("begin immediate")
        _check_foreign(db)
        db.execute(_SCHEMA)
        db.execute("create index if not exists answers_used on answers (used)")
        db.execute(f"pragma application_id = {APPLICATION_ID}")
        db.execute(f"pragma user_version = {FORMAT}")
        db.execute("commit")
    except BaseException:
        with suppress(sqlite3.Error):
            db.execute("rollback")
        raise


def _check_foreign(db: sqlite3.Connection) -> None:
    """Raise if the file has content that is not a cache of this format."""
    owner, version = _pragma(db, "application_id"), _pragma(db, "user_version")
    if (owner, version) == (APPLICATION_ID, FORMAT):
        return  # another process has initialized it meanwhile
    if owner or version or db.execute("select 1 from sqlite_master").fetchone():
        raise _ForeignFileError(
            f"expected cache format {FORMAT}, got application id {owner:#x}, format {version}",
            ours=owner == APPLICATION_ID,
        )


def _check_damaged(db: sqlite3.Connection) -> None:
    """Raise if the table is not that of a cache, although the file is labelled as one."""
    try:
        db.execute(_SELECT_NOTHING)
    except sqlite3.OperationalError as error:
        if _code(error) == sqlite3.SQLITE_ERROR:
            raise _ForeignFileError(f"its table cannot be read: {error}", ours=True) from None
        raise


# The checksum of a row does not include its time of use, which may be any value in a damaged file.
_COLUMNS = "key, status, headers, body, packed, checksum, created, ifnull(cast(used as integer), 0)"
_SELECT_NOTHING = f"select {_COLUMNS} from answers limit 0"  # noqa: S608 - constants only  # nosec B608


@cache
def _select_text(number: int) -> str:
    marks = ", ".join("?" * number)
    return f"select {_COLUMNS} from answers where key in ({marks})"  # noqa: S608 - constants and question marks only  # nosec B608


def _select(db: sqlite3.Connection, keys: Sequence[bytes]) -> list[Row]:
    return db.execute(_select_text(len(keys)), keys).fetchall()


def _delete_all(db: sqlite3.Connection) -> None:
    db.execute("delete from answers")
    _free_pages(db)
    db.execute("pragma wal_checkpoint(truncate)").fetchall()


def _free_pages(db: sqlite3.Connection) -> None:
    """Truncate the free pages of the file. `execute` would step this pragma only once, which frees one page."""
    db.executescript("pragma incremental_vacuum")


def _bytes_in_use(db: sqlite3.Connection) -> int:
    return (_pragma(db, "page_count") - _pragma(db, "freelist_count")) * _pragma(db, "page_size")


def _pragma(db: sqlite3.Connection, name: str) -> int:
    return int(db.execute(f"pragma {name}").fetchone()[0])


def _code(error: BaseException) -> int:
    """Return the primary error code of a SQLite error; 0 for other errors."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _identity(path: Path | None) -> tuple[int, int] | None:
    try:
        found = path.stat() if path is not None else None
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino) if found else None


def _was_ours(path: Path, error: BaseException) -> bool:
    """Return whether a file that cannot be used was a cache, by what SQLite read, else by its first bytes."""
    if isinstance(error, _ForeignFileError):
        return error.ours
    try:
        return read_file(path, limit=72)[68:] == APPLICATION_ID.to_bytes(4, "big")
    except OSError:
        return False


def _renamed(path: Path) -> Path:
    """Rename the file and its log, which would be replayed into the new file; return the new path."""
    number = 1
    while (place := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    path.replace(place)
    with suppress(FileNotFoundError):
        path.with_name(f"{path.name}-wal").replace(f"{place}-wal")
    path.with_name(f"{path.name}-shm").unlink(missing_ok=True)
    return place
