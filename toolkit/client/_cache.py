"""The cache of responses to pinned reads: reads at a given ledger version, whose result never changes.

Responses are stored in one SQLite table, which is written in batches and limited in size. A file error does not end the
session: reads miss, writes are dropped, and a warning is issued once. A damaged file is renamed and replaced.

A ledger can be reset and keep its chain id. Keys therefore contain the number of the ledger in the file, and a second
table stores for each ledger one version with its fingerprint, such as the hash of the transaction. A session compares
the fingerprint with the node's before it uses the first response; if they differ, the node has a new ledger, with a new
number.
"""

from __future__ import annotations

import atexit
import os
import secrets
import sqlite3
import threading
import time
import weakref
import zlib
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar
from urllib.parse import urlsplit

import msgspec

from toolkit._present.files import cache_folder, checked_path, read_file
from toolkit.client._http import Answer, PreparedCall, is_nearby
from toolkit.client._warnings import warn_caller
from toolkit.errors import ClosedError, InputError, OfflineMiss
from toolkit.wire._headers import ledger_headers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from toolkit.wire import NodeInfo

DISK_BYTES = 2 * 1024**3  # some million answers of views; more would crowd a laptop's disk
MEMORY_BYTES = 128 * 1024**2  # for nearby nodes, whose answers are cheap to read again
BATCH_ROWS = 100  # a commit costs about as much as storing this many small answers
BATCH_BYTES = 8 * 1024 * 1024  # bounds the memory of large answers that wait
FLUSH_AFTER_S = 1.0  # what a process that is killed may lose
BUSY_S = 10.0  # another process may write a batch or evict meanwhile
APPLICATION_ID = 0x4C544143  # "LTAC", which identifies the cache among SQLite files
FORMAT = 1  # of the tables and of the keys; stored in the file, and part of the name of the default file

_STORED_TYPES = frozenset({"application/json", "application/x-bcs", "application/octet-stream", "text/plain"})
_STORED_404 = frozenset({"table_item_not_found", "resource_not_found", "module_not_found", "state_value_not_found"})
_MIN_COMPRESSED = 256  # bytes; compressing shorter bodies costs more than it saves
_MAX_SHARE = 8  # answers above this part of the cache are not stored: they would evict too many others
_FILE_NAME = f"answers-{FORMAT}.sqlite3"
_DIGEST_BYTES = 20  # two keys never collide by chance
_CHUNK = 500  # keys per query; SQLite before 3.32 accepts at most 999
# SQLITE_ERROR: the statements below are correct, so the table does not belong to a cache.
_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_ERROR}

# Rows are in the order of writing, so that the rows of one fetch are adjacent; only the index of keys is in random
# order.
_SCHEMA = """
create table if not exists answers (
    id integer primary key, key blob not null unique, status integer not null, headers blob not null,
    body blob not null, packed integer not null, checksum integer not null, created integer not null);
create table if not exists ledgers (
    owner text not null, chain_id integer not null, number text not null, version integer not null,
    fingerprint text, primary key (owner, chain_id));
"""
# A row is: key, status, headers, body, packed (0 or 1), checksum, and the Unix time at which it was stored.
_COLUMNS = "key, status, headers, body, packed, checksum, created"
_INSERT = f"insert or replace into answers ({_COLUMNS}) values (?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - constants
_LEDGER = "select number, version, fingerprint from ledgers where owner = ? and chain_id = ?"
_SET_LEDGER = "insert or replace into ledgers values (?, ?, ?, ?, ?)"
# A 64th at a time, so that eviction is rarely necessary.
_EVICT = (
    "delete from answers where id in (select id from answers order by id limit 1 + (select count(*) from answers) / 64)"
)

_Row: TypeAlias = tuple[bytes, int, bytes, bytes, int, int, int]
_Result = TypeVar("_Result")
_read_headers = msgspec.json.Decoder(dict[str, str]).decode
_write_headers = msgspec.json.Encoder().encode


class _ForeignFileError(sqlite3.DatabaseError):
    """The file is a SQLite database, but not a cache of this format."""


@dataclass(frozen=True, slots=True)
class StoredLedger:
    """A ledger whose responses are in a file.

    Attributes
    ----------
    number : str
        Part of the keys of its responses.
    version : int
    fingerprint : str or None
        What the node answered for `version`, such as the hash of the transaction. None if it did not say: only an
        offline session can then read the responses.
    """

    number: str
    version: int
    fingerprint: str | None


class CachedAnswer(Answer):
    """A response from the cache, with only the documented headers."""


@dataclass(frozen=True, slots=True)
class CacheStats:
    """Size and use of a cache.

    Attributes
    ----------
    place : str
        Path of the file, ``memory``, or ``nowhere`` if the file cannot be used.
    entries : int
        Number of responses.
    size_bytes, max_bytes : int
        Bytes in use, and their limit.
    hits, misses, kept : int
        Number of responses that this object found, did not find and stored, respectively.
    """

    place: str
    entries: int
    size_bytes: int
    max_bytes: int
    hits: int
    misses: int
    kept: int


def key(
    chain_id: int,
    version: int,
    method: str,
    path: str,
    body: bytes | None = None,
    *,
    content_type: str | None = None,
    build: str | None = None,
    accept: str | None = None,
    owner: str | None = None,
    ledger: str | None = None,
) -> bytes:
    """Return the key of a pinned read.

    Parameters
    ----------
    chain_id : int
    version : int
        Ledger version that is read. Reads of the head have no key.
    method : str
        ``GET`` or ``POST``.
    path : str
        Path below the base URL with its query, but without ``ledger_version``.
    body : bytes, optional
        As it is sent: equal calls have equal bodies, because arguments are encoded by their types.
    content_type : str, optional
        Media type of the body.
    build : str, optional
        The node's build, for responses that report gas, which depends on the build.
    accept : str, optional
        Media type that the request accepts.
    owner : str, optional
        The host that sent the response, or the name under which several hosts share responses.
    ledger : str, optional
        Number of the ledger in the file.

    Returns
    -------
    bytes
        A digest, from which the request cannot be recovered.

    Examples
    --------
    >>> key(1, 100, "POST", "/view", b"{}") == key(1, 101, "POST", "/view", b"{}")
    False
    """
    parts = chain_id, version, method, path, body, content_type, build, accept, owner, ledger
    return blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()


def open_cache(url: str, cache: str | os.PathLike[str] | None = "default") -> AnswerCache | None:
    """Open the cache of a node's responses.

    Parameters
    ----------
    url : str
        The node's base URL.
    cache : "default", path or None
        A file, or an existing folder; None stores nothing.

    Returns
    -------
    AnswerCache or None
        None if nothing is stored. By default, the cache of a node on this machine or its local network is in memory,
        because such a ledger may be reset and reuse its chain id; that of any other node is a file in `cache_folder`.

    Raises
    ------
    InputError
        If `cache` has another type, or names a file that is not a cache.
    """
    if cache is None:
        return None
    if cache != "default":
        return AnswerCache(_named_place(cache))
    if is_nearby(url):
        return AnswerCache(None)
    try:
        return AnswerCache(cache_folder() / _FILE_NAME)
    except RuntimeError as error:
        warn_caller(f"responses are not cached: {error}; set LEDGER_TOOLKIT_CACHE to a writable folder")
        return None


def _named_place(cache: object) -> Path:
    if not isinstance(cache, str | os.PathLike) or not str(cache):
        raise InputError(f'cache={cache!r:.80}: expected "default", a path, or None for no cache')
    try:
        place = checked_path(Path(cache).expanduser())
        if place.is_dir():
            return place / _FILE_NAME
    except RuntimeError as error:  # the home folder of an unknown user
        raise InputError(f"cache={str(cache)!r:.80}: {error}; pass an absolute path") from None
    except OSError as error:
        raise InputError(f"cache={str(cache)!r:.80}: {error.strerror}; pass another path") from None
    # A file that the caller names may be any file, for example because of a typing error.
    if place.exists() and not place.is_file():  # a named pipe would be waited for
        raise InputError(f"cache={str(place)!r}: expected a regular file; pass another file")
    with suppress(OSError):  # reported when the file is opened
        start = read_file(place, limit=72)
        if start and start[68:] != APPLICATION_ID.to_bytes(4, "big") and place.name != _FILE_NAME:
            raise InputError(
                f"cache={str(place)!r}: this file is not a response cache and was left unchanged; pass another file, "
                "or delete this one if it is not needed"
            )
    return place


class AnswerCache:
    """Responses by `key`, on disk or in memory. Threads may share an object, and processes may share a file.

    Stores responses with status 200, and responses with status 404 for a missing table item, resource or module. A
    response is stored only if it has the ledger headers, which a captive portal's page lacks, and if the head in these
    headers has reached the version that was read. The caller decides which reads are pinned: a page of transactions
    that reaches the head, for example, is not. A damaged row counts as a miss. A damaged file is renamed, with the
    suffix ``.damaged``, and replaced by a new file. If the file cannot be opened, nothing is stored. In both cases, a
    warning is issued and no error is raised.

    Parameters
    ----------
    path : Path or None
        The file. None keeps the responses in memory.
    max_bytes : int, optional
        Maximum size in bytes, by default 2 GiB on disk and 128 MiB in memory. The oldest responses are evicted first.
    clock : callable, optional
        Returns the Unix time in seconds; replaced in tests.

    Examples
    --------
    >>> with AnswerCache(None) as cache:
    ...     cache.get(key(1, 100, "GET", "/accounts/0x1")) is None
    True
    """

    def __init__(self, path: Path | None, *, max_bytes: int = 0, clock: Callable[[], float] = time.time) -> None:
        self._path, self._clock = path, clock
        self._max_bytes = max_bytes or (MEMORY_BYTES if path is None else DISK_BYTES)
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._pending: dict[bytes, _Row] = {}
        self._pending_bytes, self._pending_since = 0, 0.0
        self._warned = False
        # SQLite also creates files next to the file that it writes.
        places = [] if path is None or not path.is_file() else [path, path.parent]
        self._read_only = not all(os.access(place, os.W_OK) for place in places)
        self._hits = self._misses = self._stored = 0
        self._closed = True  # until the file is open
        self._db = self._opened()
        if self._read_only and self._db is not None:
            warn_caller(f"responses are read from {path}, and not stored: the file cannot be written")
        self._closed = False
        _open_caches.add(self)

    def __del__(self) -> None:
        """Write pending responses when the object is freed; at interpreter exit, `_close_all` writes them."""
        self.close()

    def get(self, key: bytes) -> CachedAnswer | None:
        """Return the response with this key, or None."""
        return self.get_many([key]).get(key)

    def get_many(self, keys: Iterable[bytes]) -> dict[bytes, CachedAnswer]:
        """Return the responses to these keys as a dict; keys without a response are omitted."""
        wanted = list(dict.fromkeys(keys))
        rows: list[_Row] = []
        with self._lock:
            if self._usable:
                rows = [self._pending[key] for key in wanted if key in self._pending]
                stored = [key for key in wanted if key not in self._pending]
                for start in range(0, len(stored), _CHUNK):
                    rows += self._guarded(partial(_select, keys=stored[start : start + _CHUNK])) or []
            found = {row[0]: answer for row in rows if (answer := _answer(row)) is not None}
            self._hits += len(found)
            self._misses += len(wanted) - len(found)
        return found

    def put(self, key: bytes, answer: Answer, *, version: int = 0) -> bool:
        """Store a response if it can never change; return whether it was stored.

        Parameters
        ----------
        key : bytes
        answer : Answer
        version : int, default 0
            Ledger version that was read.
        """
        read = answer.parsed
        if not self._usable or self._read_only or read.ledger is None or read.ledger.version < version:
            return False
        absent = answer.status == HTTPStatus.NOT_FOUND and answer.error.error_code in _STORED_404
        if answer.status != HTTPStatus.OK and not absent:
            return False
        now = self._clock()
        row = _row(key, answer, int(now))
        size = len(row[2]) + len(row[3])
        if size > self._max_bytes // _MAX_SHARE:
            return False
        with self._lock:
            self._stored += 1
            if not self._pending:
                self._pending_since = now
            self._pending[key] = row
            self._pending_bytes += size
            is_full = len(self._pending) >= BATCH_ROWS or self._pending_bytes >= BATCH_BYTES
            if is_full or now - self._pending_since >= FLUSH_AFTER_S:
                self.flush()
        return True

    def flush(self) -> None:
        """Write pending responses in one transaction; if it is interrupted, they stay pending.

        The cache also flushes when 100 responses or 8 MiB are pending, when a response is stored a second or more after
        the first pending one, when it is closed, and when the interpreter exits.
        """
        with self._lock:
            if self._usable and self._pending:
                # A user stops a sweep at any moment; a write is a large part of its time if answers are few bytes.
                self._guarded(self._write)
                self._pending, self._pending_bytes = {}, 0

    def clear(self) -> None:
        """Delete every response, including those that other processes stored in the same file."""
        with self._lock:
            if self._usable and not self._read_only:
                self._pending, self._pending_bytes = {}, 0
                self._guarded(lambda db: db.execute("delete from answers").rowcount)
                self._guarded(lambda db: db.execute("vacuum"))

    def forget_since(self, time_s: float) -> None:
        """Delete the responses stored at or after a Unix time, because they may come from another ledger."""
        self.flush()
        if not self._read_only:
            self._guarded(lambda db: db.execute("delete from answers where created >= ?", (int(time_s),)).rowcount)

    @property
    def is_in_memory(self) -> bool:
        """Whether nothing is left of the cache when it is closed."""
        return self._path is None

    def ledger(self, owner: str, chain_id: int) -> StoredLedger | None:
        """Return the ledger that was last read from an owner's nodes, or None."""
        row = self._guarded(lambda db: db.execute(_LEDGER, (owner, chain_id)).fetchone())
        return None if row is None else StoredLedger(*row)

    def set_ledger(self, owner: str, chain_id: int, ledger: StoredLedger) -> None:
        """Store the ledger that is read from an owner's nodes."""
        if not self._read_only:
            row = owner, chain_id, ledger.number, ledger.version, ledger.fingerprint
            self._guarded(lambda db: db.execute(_SET_LEDGER, row).rowcount)

    def close(self) -> None:
        """Flush and close the file. Later calls raise ClosedError, except `close`, which may be called again."""
        # An interrupt closes the cache of a node that a worker thread closes too: the second one must find it closed.
        if self._pid != os.getpid():  # in a forked child another thread may hold the lock for ever
            return
        with self._lock:
            if not self._closed and self._usable:
                self.flush()
                if self._db is not None:
                    self._db.close()
            self._closed = True

    def stats(self) -> CacheStats:
        """Return the size of the cache and counts of its use."""
        self.flush()
        entries = self._guarded(lambda db: int(db.execute("select count(*) from answers").fetchone()[0])) or 0
        size = self._guarded(_bytes_in_use) or 0
        place = str(self._path or "memory") if self._usable else "nowhere"
        return CacheStats(place, entries, size, self._max_bytes, self._hits, self._misses, self._stored)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # the file ----------------------------------------------------------------------------------------------------

    @property
    def _usable(self) -> bool:
        """Whether rows can be stored; False in a forked child, because SQLite connections must not cross a fork."""
        if self._closed:
            raise ClosedError("this cache is closed; open it again")
        return self._db is not None and self._pid == os.getpid()

    def _opened(self) -> sqlite3.Connection | None:
        """Open the file, replacing it if it is damaged; warn and return None if that is not possible."""
        for last in (False, True):
            try:
                return _open(self._path, read_only=self._read_only)
            except (OSError, ValueError, sqlite3.Error) as error:
                if last or not _is_damage(error) or not self._set_aside(error):
                    place = "the cache in memory" if self._path is None else f"the file {self._path}"
                    warn_caller(f"responses are not cached: {place} cannot be used ({error})")
                    break
        return None

    def _set_aside(self, error: Exception) -> bool:
        """Rename a damaged file, overwriting any file that was renamed earlier; return whether this succeeded."""
        if self._path is None:
            return True
        aside = self._path.with_name(f"{self._path.name}.damaged")
        try:
            self._path.replace(aside)
        except OSError:
            return False
        # SQLite would roll the new file back to it.
        self._path.with_name(f"{self._path.name}-journal").unlink(missing_ok=True)
        warn_caller(f"{self._path} is not a usable cache ({error}); it has been renamed to {aside.name} and replaced")
        return True

    def _guarded(self, work: Callable[[sqlite3.Connection], _Result]) -> _Result | None:
        """Return the result of `work` on the database, or None if the database cannot be used."""
        with self._lock:
            if not self._usable or self._db is None:
                return None
            try:
                return work(self._db)
            except (sqlite3.DatabaseError, UnicodeError) as error:
                if _is_damage(error):
                    db, self._db = self._db, None  # if the warning is raised as an error, the cache has no file
                    db.close()
                    self._db = self._opened() if self._set_aside(error) else None
                elif not self._warned:
                    self._warned = True
                    place = "in memory" if self._path is None else self._path
                    warn_caller(f"the response cache {place} could not be used ({error}); continuing without it")
        return None

    def _write(self, db: sqlite3.Connection) -> None:
        try:
            db.execute("begin immediate")  # here, since an interrupt may come right behind it
            db.executemany(_INSERT, list(self._pending.values()))
            while _bytes_in_use(db) > self._max_bytes and db.execute(_EVICT).rowcount:
                pass
            db.execute("commit")
        except BaseException:
            with suppress(sqlite3.Error):
                db.execute("rollback")
            raise


_open_caches: weakref.WeakSet[AnswerCache] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Write pending responses before the interpreter exits."""
    for one in list(_open_caches):
        one.close()


@dataclass(frozen=True, slots=True)
class _Identity:
    """The chain of a node, its build, which determines gas, and the number of its ledger in the file."""

    chain_id: int
    build: str | None
    ledger: str | None


class NodeCache:
    """The cached responses of one node, and the node's description for offline sessions.

    Parameters
    ----------
    url : str
        Base URL.
    answers : AnswerCache or None
        Where responses are stored; None stores nothing.
    offline : bool, default False
        Never send requests; reads without a stored response raise OfflineMiss.
    shared : str, optional
        Name under which several hosts share responses; by default, each host (scheme, host and port) has its own.
    """

    def __init__(
        self, url: str, answers: AnswerCache | None, *, offline: bool = False, shared: str | None = None
    ) -> None:
        self._url = url
        self.answers = answers
        self.offline = offline
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.hostname}:{parts.port or {'http': 80, 'https': 443}[parts.scheme]}"
        self._owner = f"shared {shared}" if shared is not None else f"host {origin}"
        # What the keys of the node's responses contain; None until the first pinned read.
        self._identity: _Identity | None = None
        self._lock = threading.Lock()
        # An offline session reads the chain and the head from the node's description, which is stored by URL.
        self._description = key(0, 0, "GET", url, owner=self._owner)

    def note_description(self, answer: Answer) -> None:
        """Store a node's description for offline sessions."""
        if self.answers is not None:
            self.answers.put(self._description, answer)

    def description(self) -> Answer:
        """Return the node's last stored description; raise OfflineMiss if there is none."""
        found = None if self.answers is None else self.answers.get(self._description)
        if found is None:
            raise OfflineMiss(
                f"offline, and the cache has no response from {self._url}; connect once without offline=True"
            )
        return found

    def key_of(
        self, call: PreparedCall[Any], describe: Callable[[], NodeInfo], fingerprint: Callable[[int], str | None]
    ) -> bytes | None:
        """Return the key of a pinned read, or None if its response must not be stored.

        It contains the chain id from the node's description; `store` compares that with the chain id in the headers of
        the response.

        Parameters
        ----------
        call : PreparedCall
        describe : callable
            Returns the description of the node.
        fingerprint : callable (version) -> str or None
            Returns a text that another ledger does not have at a version; None if the node does not have the version.
        """
        request, pinned = call.request, call.pinned
        if self.answers is None or pinned is None:
            return None
        if (identity := self._identity) is None:
            with self._lock:
                identity = self._identity = self._identity or self._identified(self.answers, describe(), fingerprint)
        return key(
            identity.chain_id,
            pinned,
            request.method,
            request.url.removeprefix(self._url).removesuffix(f"?ledger_version={pinned}"),
            request.body,
            content_type=request.headers.get("Content-Type"),
            build=identity.build if call.gas else None,
            accept=request.headers.get("Accept"),
            owner=self._owner,
            ledger=identity.ledger,
        )

    def ledger_changed(self, since_s: float) -> None:
        """Forget the responses stored at or after a Unix time, and compare fingerprints again before the next read."""
        if self.answers is not None:
            self.answers.forget_since(0 if self.answers.is_in_memory else since_s)
            self._identity = None

    def _identified(self, answers: AnswerCache, info: NodeInfo, fingerprint: Callable[[int], str | None]) -> _Identity:
        chain_id, head = info.ledger.chain_id, info.ledger.version
        if answers.is_in_memory:  # it has no responses of an earlier session
            return _Identity(chain_id, info.git_hash, None)
        known = answers.ledger(self._owner, chain_id)
        if not self.offline:
            is_same = known is not None and fingerprint(known.version) == known.fingerprint
            # As late as possible: a node prunes old versions, and what begins alike may differ later.
            latest = fingerprint(head)
            if known is None or known.fingerprint is None or not is_same:
                known = StoredLedger(secrets.token_hex(8), head, latest)
            elif latest is not None:
                known = StoredLedger(known.number, head, latest)
            answers.set_ledger(self._owner, chain_id, known)
        return _Identity(chain_id, info.git_hash, None if known is None else known.number)

    def find(self, keys: Iterable[bytes | None]) -> dict[bytes, Answer]:
        """Return the stored responses by key."""
        wanted = [one for one in keys if one is not None]
        return {} if self.answers is None or not wanted else dict(self.answers.get_many(wanted))

    def store(self, key: bytes | None, answer: Answer, *, version: int | None) -> None:
        """Store the response to a read at a version, if the chain id in its headers is that of the node."""
        if self.answers is None or key is None or version is None or isinstance(answer, CachedAnswer):
            return
        identity, ledger = self._identity, answer.parsed.ledger
        if ledger is not None and identity is not None and ledger.chain_id == identity.chain_id:
            self.answers.put(key, answer, version=version)


# rows -----------------------------------------------------------------------------------------------------------------


def _row(key: bytes, answer: Answer, now: int) -> _Row:
    # The documented headers, rebuilt from their parsed values, so that no other content is stored.
    read, kind = answer.parsed, answer.content_type.partition(";")[0].strip().lower()
    documented = {"Content-Type": kind if kind in _STORED_TYPES else ""}
    if read.ledger is not None and read.brand is not None:
        documented |= ledger_headers(read.ledger, brand=read.brand, gas_used=read.gas_used)
        if read.cursor is not None:  # without its cursor, a page would be read as the last one
            documented[f"X-{read.brand}-CURSOR"] = read.cursor
    headers = _write_headers(documented)
    body, packed = answer.body, 0
    if len(body) >= _MIN_COMPRESSED:
        smaller = zlib.compress(body, 1)
        if len(smaller) < len(body):
            body, packed = smaller, 1
    checksum = _checksum(key, answer.status, headers, body, packed=packed, created=now)
    return key, answer.status, headers, body, packed, checksum, now


def _answer(row: _Row) -> CachedAnswer | None:
    """Decode a row; return None if its checksum is wrong, since SQLite does not detect changed bits."""
    key, status, headers, body, packed, checksum, created = row
    try:
        if checksum != _checksum(key, status, headers, body, packed=packed, created=created):
            return None
        return CachedAnswer(status, _read_headers(headers), zlib.decompress(body) if packed else body)
    except (TypeError, ValueError, OverflowError, zlib.error):
        return None


def _checksum(key: bytes, status: int, headers: bytes, body: bytes, *, packed: int, created: int) -> int:
    return zlib.crc32(body, zlib.crc32(headers, zlib.crc32(b"%b %d %d %d" % (key, status, packed, created))))


def _open(path: Path | None, *, read_only: bool) -> sqlite3.Connection:
    """Open a cache file, initialized if it is new; `read_only` for one that cannot be written, as on such a disk."""
    place = ":memory:" if path is None else str(path)
    if path is not None and read_only:
        place = f"{path.absolute().as_uri()}?mode=ro"
    elif path is not None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    db = sqlite3.connect(place, timeout=BUSY_S, isolation_level=None, check_same_thread=False, uri=read_only)
    try:
        db.execute("pragma trusted_schema = off")
        (_check if read_only else _prepare)(db)
    except BaseException:
        db.close()
        raise
    return db


def _check(db: sqlite3.Connection) -> None:
    """Check that a file is a cache of this format."""
    if _pragma(db, "application_id") != APPLICATION_ID:
        raise _ForeignFileError("it belongs to another program")
    if (found := _pragma(db, "user_version")) != FORMAT:
        raise _ForeignFileError(f"its format is {found}, and this release reads format {FORMAT}")
    _select(db, [b""])  # raises if the tables do not belong to a cache
    db.execute(_LEDGER, ("", 0))


def _prepare(db: sqlite3.Connection) -> None:
    if _pragma(db, "application_id") != APPLICATION_ID:
        # One transaction, so that another process never sees a file with content but without the label.
        db.execute("begin immediate")
        unlabelled = _pragma(db, "application_id") != APPLICATION_ID  # by another process meanwhile
        if unlabelled and db.execute("select 1 from sqlite_master").fetchone():
            raise _ForeignFileError("it belongs to another program")
        for statement in _SCHEMA.split(";"):  # `executescript` would end the transaction
            db.execute(statement)
        db.execute(f"pragma application_id = {APPLICATION_ID}")
        db.execute(f"pragma user_version = {FORMAT}")
        db.execute("commit")
    _check(db)
    # Nothing waits for the disk: a file that a power failure damages is set aside, and only costs its responses.
    db.execute("pragma journal_mode = truncate")
    db.execute("pragma synchronous = off")
    db.execute("pragma cache_size = -16384")


def _select(db: sqlite3.Connection, keys: Sequence[bytes]) -> list[_Row]:
    marks = ", ".join("?" * len(keys))
    query = f"select {_COLUMNS} from answers where key in ({marks})"  # noqa: S608 - constants and question marks only
    return db.execute(query, keys).fetchall()


def _bytes_in_use(db: sqlite3.Connection) -> int:
    return (_pragma(db, "page_count") - _pragma(db, "freelist_count")) * _pragma(db, "page_size")


def _pragma(db: sqlite3.Connection, name: str) -> int:
    return int(db.execute(f"pragma {name}").fetchone()[0])


def _is_damage(error: BaseException) -> bool:
    """Return whether an error means that a file is damaged, or contains names that are not valid text."""
    primary_code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return isinstance(error, UnicodeError | _ForeignFileError) or primary_code in _DAMAGE
