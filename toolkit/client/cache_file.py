"""The file under the answer cache: rows in one SQLite table, written in batches and trimmed to a bound.

Knows rows, not answers. Trouble with the file costs entries, never a session: reads miss, writes are dropped, a
warning says so once; a damaged file is set aside.
"""

from __future__ import annotations

import inspect
import logging
import os
import sqlite3
import threading
import time
import warnings
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING, TypeVar

from toolkit._present.files import read_file, special_kind
from toolkit.errors import ClosedError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

__all__ = ["Row", "Store", "warn_caller"]

# key, status, headers, body, packed (0 or 1), checksum, created and last used (Unix time, s)
Row = tuple[bytes, int, bytes, bytes, int, int, int, int]

BATCH_ROWS = 100
BATCH_BYTES = 8 * 1024 * 1024
FLUSH_AFTER_S = 1.0
TOUCH_AFTER_S = 3600
"""A row's time of use is renewed only when older than this, so that reading a warm cache writes nothing."""

BUSY_S = 10.0
_APPLICATION_ID = 0x4C544143  # "LTAC": tells our file from any other SQLite file
_FORMAT = 1
_CHUNK = 500  # keys of one query; SQLite before 3.32 takes at most 999
_ROW_OVERHEAD = 100  # bytes of key, index entries and numbers beside headers and body
_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}

# Rows lie in the order of writing, so those of one sweep lie together; only the index of keys is at random.
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

_log = logging.getLogger("toolkit.client.cache")
_Result = TypeVar("_Result")


class _ForeignFileError(Exception):
    """The file is a SQLite file, but not a cache of this format; `ours` tells whether its label is a cache's."""

    def __init__(self, text: str, *, ours: bool) -> None:
        super().__init__(text)
        self.ours = ours


class Store:
    """Rows by key, in a file shared with other processes, or in memory.

    Parameters
    ----------
    path : Path or None
        File, made with its folders where it is not there; None for memory.
    max_bytes : int
        Bound of the file, in bytes; the rows unused for longest go first.
    clock : callable, optional
        Unix time in s; replaced in tests.
    only_ours : bool, default False
        Refuse a file that never was a cache rather than set it aside.

    Raises
    ------
    InputError
        If `only_ours` is True and the file never was a cache; it is left as it is.

    Warns
    -----
    UserWarning
        If the file was damaged or foreign (it is renamed, a new one is begun), or cannot be used at all
        (then nothing is kept and nothing is found).
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
        # Taken in this order where both are needed. A row leaves `_pending` only under `_db_lock`, so a reader that
        # looks there first and into the file second can never miss it.
        self._db_lock = threading.RLock()
        self._pending_lock = threading.RLock()
        self._pending: dict[bytes, Row] = {}
        self._pending_bytes = 0
        self._touched: dict[bytes, int] = {}
        self._timer: threading.Timer | None = None
        self._closed = False
        self._warned = False
        self._identity: tuple[int, int] | None = None
        self._db = self._begin(only_ours=only_ours)

    @property
    def usable(self) -> bool:
        """Whether rows are kept. A forked copy keeps none: SQLite forbids using a connection across a fork."""
        if self._closed:
            raise ClosedError("this cache is closed; open it again")
        return self._db is not None and self._pid == os.getpid()

    def read(self, keys: Sequence[bytes]) -> list[Row]:
        """Return the rows that are there, in no order."""
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
        """Keep a row; it is found at once, and is in the file after the next flush."""
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
        """Write what is waiting, in one transaction."""
        if not self.usable:
            return
        with self._db_lock:
            with self._pending_lock:
                rows, touched = list(self._pending.values()), list(self._touched.items())
                self._drop_pending()
            if rows or touched:
                self._guarded(lambda db: self._write(db, rows, touched))

    def clear(self) -> None:
        """Forget every row and give the space back."""
        if not self.usable:
            return
        with self._db_lock:
            with self._pending_lock:
                self._drop_pending()
            self._guarded(_delete_all)

    def forget_since(self, time_s: int) -> None:
        """Forget the rows created at or after a Unix time in s."""
        if not self.usable:
            return
        with self._db_lock:
            self.flush()
            self._guarded(lambda db: db.execute("delete from answers where created >= ?", (time_s,)).rowcount)

    def close(self) -> None:
        """Flush and let go of the file. Closing twice is fine."""
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
        """Count the rows."""
        if not self.usable:
            return 0
        self.flush()
        return self._guarded(lambda db: int(db.execute("select count(*) from answers").fetchone()[0])) or 0

    def size(self) -> int:
        """Return the bytes in use in the file, write-ahead log not counted."""
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
        """Do something with the file; None where the file cannot do it."""
        with self._db_lock:
            if self._db is None:
                return None
            try:
                return work(self._db)
            except (sqlite3.DatabaseError, UnicodeError) as error:
                # Names in a damaged file may be no text, and then not even SQLite's message can be read.
                if isinstance(error, UnicodeError) or _code(error) in _DAMAGE:
                    self._begin_again(self._db, error)
                    return None
                if not isinstance(error, sqlite3.OperationalError | sqlite3.IntegrityError):
                    raise  # our own mistake
                trouble = error
        self._say_once(f"the answer cache {self.path} could not be used this time ({trouble}); going on without it")
        return None

    def _say_once(self, text: str) -> None:
        _log.info("%s", text)
        if not self._warned:
            self._warned = True
            warn_caller(text)

    def _write(self, db: sqlite3.Connection, rows: list[Row], touched: list[tuple[bytes, int]]) -> None:
        db.execute("begin immediate")
        try:
            db.executemany(_INSERT, rows)
            db.executemany("update answers set used = ? where key = ?", [(used, key) for key, used in touched])
            self._trim(db)
            db.execute("commit")
            if _pragma(db, "page_count") * _pragma(db, "page_size") > self.max_bytes:
                _give_back(db)
        except BaseException:
            with suppress(sqlite3.Error):
                db.execute("rollback")
            raise

    def _trim(self, db: sqlite3.Connection) -> None:
        """Delete the rows unused for longest until the bound holds, and a little more so that this stays rare."""
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

    def _begin(self, *, only_ours: bool = False) -> sqlite3.Connection | None:
        """Open the file; set it aside and begin a new one if it is damaged; None if there is no way."""
        what = special_kind(self.path) if self.path is not None else None
        if what and only_ours:
            raise InputError(f"cache={str(self.path)!r}: it is {what}, expected a regular file; name another file")
        if what:
            warn_caller(f"no answers are cached: {self.path} is {what}, expected a regular file")
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
                        f"cache={str(self.path)!r}: this file is no cache of answers ({error}) and is left as it is; "
                        f"name another file, or remove this one if nobody needs it"
                    ) from None
                if damaged and not last and self._set_aside(error):
                    continue
                warn_caller(f"no answers are cached: {self.path} cannot be used ({error})")
                return None
            return db
        return None

    def _begin_again(self, db: sqlite3.Connection, error: Exception) -> None:
        self._db = None  # a warning made an error below leaves no closed connection behind
        with suppress(sqlite3.Error):
            db.close()
        self._db = self._begin() if self._set_aside(error) else None

    def _set_aside(self, error: Exception) -> bool:
        """Rename the damaged file, unless another process did so already; tell whether a new one can be begun."""
        if self.path is None:
            return True
        if _identity(self.path) != self._identity:
            return True
        try:
            place = _rename_away(self.path)
        except OSError as refused:
            warn_caller(f"no answers are cached: {self.path} is damaged ({error}) and cannot be renamed ({refused})")
            return False
        warn_caller(f"{self.path} is no usable cache ({error}); it is now {place.name}, and a new one is begun")
        return True


def warn_caller(text: str) -> None:
    """Warn, pointing at the first line outside this package."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith("toolkit."):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, UserWarning, stacklevel=level)


def _open(path: Path | None) -> sqlite3.Connection:
    """Open a cache file, made ready where it is new; retried while another process makes it ready."""
    deadline = time.monotonic() + BUSY_S
    while True:
        db = sqlite3.connect(
            ":memory:" if path is None else path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
        )
        try:
            _prepare(db)
        except BaseException as error:
            db.close()
            # Two processes switching to WAL at once are refused at once, whatever the busy timeout.
            if isinstance(error, sqlite3.Error) and _code(error) in _BUSY and time.monotonic() < deadline:
                time.sleep(0.02)
                continue
            raise
        return db


def _prepare(db: sqlite3.Connection) -> None:
    db.execute("pragma trusted_schema = off")
    known = _pragma(db, "application_id") == _APPLICATION_ID and _pragma(db, "user_version") == _FORMAT
    if known:
        _refuse_damaged(db)
    else:
        _refuse_foreign(db)
        db.execute("pragma auto_vacuum = incremental")  # has to come before anything is in the file
    db.execute("pragma journal_mode = wal")
    db.execute("pragma synchronous = normal")
    db.execute(f"pragma journal_size_limit = {4 * 1024 * 1024}")
    db.execute("pragma cache_size = -16384")
    if known:
        return
    db.execute("begin immediate")
    try:
        _refuse_foreign(db)
        db.execute(_SCHEMA)
        db.execute("create index if not exists answers_used on answers (used)")
        db.execute(f"pragma application_id = {_APPLICATION_ID}")
        db.execute(f"pragma user_version = {_FORMAT}")
        db.execute("commit")
    except BaseException:
        db.execute("rollback")
        raise


def _refuse_foreign(db: sqlite3.Connection) -> None:
    """Raise where the file holds anything that is not ours."""
    owner, version = _pragma(db, "application_id"), _pragma(db, "user_version")
    if (owner, version) == (_APPLICATION_ID, _FORMAT):
        return  # another process was quicker
    if owner or version or db.execute("select 1 from sqlite_master").fetchone():
        raise _ForeignFileError(
            f"expected cache format {_FORMAT}, got application id {owner:#x}, format {version}",
            ours=owner == _APPLICATION_ID,
        )


def _refuse_damaged(db: sqlite3.Connection) -> None:
    """Raise where the table is not the one that the file's own label promises."""
    try:
        db.execute(_SELECT_NOTHING)
    except sqlite3.OperationalError as error:
        if _code(error) == sqlite3.SQLITE_ERROR:
            raise _ForeignFileError(f"its table cannot be read: {error}", ours=True) from None
        raise


# Of a row only the time of use stands outside the checksum; in a damaged file it may be no number.
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
    _give_back(db)
    db.execute("pragma wal_checkpoint(truncate)").fetchall()


def _give_back(db: sqlite3.Connection) -> None:
    """Shorten the file by its free pages. `execute` would step this pragma once only, which frees one page."""
    db.executescript("pragma incremental_vacuum")


def _bytes_in_use(db: sqlite3.Connection) -> int:
    return (_pragma(db, "page_count") - _pragma(db, "freelist_count")) * _pragma(db, "page_size")


def _pragma(db: sqlite3.Connection, name: str) -> int:
    return int(db.execute(f"pragma {name}").fetchone()[0])


def _code(error: BaseException) -> int:
    """Return SQLite's primary error code; 0 for errors of anyone else."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _identity(path: Path | None) -> tuple[int, int] | None:
    try:
        found = path.stat() if path is not None else None
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino) if found else None


def _was_ours(path: Path, error: BaseException) -> bool:
    """Tell whether a file that cannot be used was a cache: by what SQLite read, else by its first bytes."""
    if isinstance(error, _ForeignFileError):
        return error.ours
    try:
        return read_file(path, limit=72)[68:] == _APPLICATION_ID.to_bytes(4, "big")
    except OSError:
        return False


def _rename_away(path: Path) -> Path:
    """Rename the file and its log: a log left behind would be played into the new file."""
    number = 1
    while (place := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    path.replace(place)
    with suppress(FileNotFoundError):
        path.with_name(f"{path.name}-wal").replace(f"{place}-wal")
    path.with_name(f"{path.name}-shm").unlink(missing_ok=True)
    return place
