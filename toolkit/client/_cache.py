"""The cache of answers to pinned reads, which never change: which answers are stored, by which key, and where.

`toolkit.client._cache_file` reads and writes the file. Nothing here sends a request.
"""

from __future__ import annotations

import json
import os
import time
import weakref
import zlib
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec

from toolkit._present.files import cache_folder, checked_path
from toolkit.client._cache_file import Row, Store, warn_caller
from toolkit.client._http import Answer, is_nearby
from toolkit.client._transport import fork_safe_lock
from toolkit.errors import InputError, OfflineMiss, SchemaError
from toolkit.wire import decode_error_body, decode_node_info
from toolkit.wire._headers import ledger_headers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType

    from toolkit.client._http import Request
    from toolkit.wire import AnswerHeaders, NodeInfo

DISK_BYTES = 2 * 1024**3
MEMORY_BYTES = 128 * 1024**2
MIN_BYTES = 1024**2

_STORED_TYPES = frozenset({"application/json", "application/x-bcs", "application/octet-stream", "text/plain"})
_STORED_404 = frozenset({"table_item_not_found", "resource_not_found", "module_not_found"})
_MIN_COMPRESSED = 256  # bytes; compressing shorter bodies costs more than it saves
_MAX_SHARE = 8  # answers above this part of the cache are not stored: they would evict too many others
_FILE_NAME = "answers-2.sqlite3"  # a change of the keys changes the number, so that no release reads entries of another
_DIGEST_BYTES = 20

_INDEX = "versions"
"""Used in place of a media type, in keys of indexes that are stored beside the answers of the node."""

_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode
_read_headers = msgspec.json.Decoder(dict[str, str]).decode
_write_headers = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class CachedAnswer(Answer):
    """An answer from the cache, with the documented headers only.

    Attributes
    ----------
    created : int
        Unix time at which it was stored, in seconds.
    """

    created: int


@dataclass(frozen=True, slots=True)
class CacheStats:
    """Size and use of a cache.

    Attributes
    ----------
    place : str
        Path of the file, ``memory``, or ``nowhere`` if the file cannot be used.
    entries : int
        Number of answers.
    size_bytes, max_bytes : int
        Bytes in use, and their limit.
    hits, misses, kept : int
        Number of answers that this object found, did not find, and stored.
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
    body: Any = None,
    *,
    content_type: str | None = None,
    build: str | None = None,
    accept: str | None = None,
    owner: str | None = None,
) -> bytes:
    """Return the key of a pinned read. The order of names in JSON bodies does not matter.

    Parameters
    ----------
    chain_id : int
    version : int
        Ledger version that is read. Reads of the head have no key.
    method : str
        ``GET`` or ``POST``.
    path : str
        Path below the base URL with its query, but without ``ledger_version``.
    body : JSON value or bytes, optional
        Bytes are used as they are unless `content_type` is JSON.
    content_type : str, optional
        Media type of a body of bytes.
    build : str, optional
        The node's build, for answers that depend on it, which are those with gas.
    accept : str, optional
        Media type that the request accepts.
    owner : str, optional
        The host that gave the answer, or the name under which several hosts share answers.

    Returns
    -------
    bytes
        A digest, from which the request cannot be recovered.

    Raises
    ------
    InputError
        If the chain id or version is not a non-negative integer, or the body is neither bytes nor a JSON value.

    Examples
    --------
    >>> key(1, 100, "POST", "/view", {"a": 1, "b": 2}) == key(1, 100, "POST", "/view", {"b": 2, "a": 1})
    True
    """
    given: tuple[tuple[str, object], ...] = (("chain_id", chain_id), ("version", version))
    for name, number in given:
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise InputError(
                f"{name} of a cached read must be a non-negative integer, got {number!r:.80}; the head has no key"
            )
    try:
        if isinstance(body, bytes) and _is_json(content_type):
            body = json.loads(body)
        exact = isinstance(body, bytes)
        text = _canonical([chain_id, version, method, path, build, accept, owner, exact, body.hex() if exact else body])
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"the body of {method} {path:.120} must be bytes or a JSON value: {error}") from None
    return blake2b(text.encode(), digest_size=_DIGEST_BYTES).digest()


def default_path() -> Path:
    """Return the path of the default cache.

    Returns
    -------
    Path
        A file in `cache_folder`.

    Raises
    ------
    RuntimeError
        If the user has no home folder.
    """
    return cache_folder() / _FILE_NAME


def place_for(url: str, cache: str | os.PathLike[str] | None = "default") -> Path | Literal["memory"] | None:
    """Return where the answers of a node are stored.

    Parameters
    ----------
    url : str
        The node's base URL.
    cache : "default", path or None
        A file, or an existing folder; None stores nothing.

    Returns
    -------
    Path, "memory" or None
        By default "memory" for a node on this machine or its local network, whose ledger may be reset and reuse its
        ids, else `default_path`.

    Raises
    ------
    InputError
        If `cache` is another value.
    """
    if cache is None:
        return None
    if cache != "default":
        return _named_place(cache)
    if is_nearby(url):
        return "memory"
    try:
        return default_path()
    except RuntimeError as error:
        warn_caller(f"answers are not cached: {error}; set LEDGER_TOOLKIT_CACHE to a folder")
        return None


class AnswerCache:
    """Answers by `key`, on disk or in memory. Threads may share one object, processes may share a file.

    Stores answers with status 200, and those with status 404 that report a missing table item, resource or module. They
    must have the ledger headers, which the page of a captive portal does not have, and their head must have reached the
    version that is read, which it has not at a backend that lags. The caller decides which reads are pinned; a page of
    transactions that reaches the head, for example, is not. A damaged entry is a miss. A damaged or foreign file is
    renamed to ``.damaged-<n>`` and replaced by a new one. If the file cannot be written, the cache stays empty. Both
    cases warn, and do not raise.

    Parameters
    ----------
    path : Path or None
        The file; None for memory.
    max_bytes : int, optional
        Maximum size in bytes, by default 2 GiB on disk and 128 MiB in memory. Least recently used answers are evicted
        first; times of use have a resolution of an hour. SQLite's log beside the file takes a few MB more.
    clock : callable, optional
        Unix time in seconds; tests pass their own.
    only_ours : bool, default False
        Raise for a file that is not a cache instead of renaming it.

    Raises
    ------
    InputError
        If `max_bytes` is below 1 MiB, or if `only_ours` is True and the file is not a cache.

    Examples
    --------
    >>> with AnswerCache(None) as cache:
    ...     cache.get(key(1, 100, "GET", "/accounts/0x1")) is None
    True
    """

    def __init__(
        self,
        path: Path | None,
        *,
        max_bytes: int | None = None,
        clock: Callable[[], float] = time.time,
        only_ours: bool = False,
    ) -> None:
        bound = max_bytes if max_bytes is not None else MEMORY_BYTES if path is None else DISK_BYTES
        if bound < MIN_BYTES:
            raise InputError(f"max_bytes={max_bytes!r:.80}: expected at least {MIN_BYTES:,}; cache=None stores nothing")
        self._store = Store(path, max_bytes=bound, clock=clock, only_ours=only_ours)
        self._lock = fork_safe_lock()
        self._hits = self._misses = self._stored = 0
        # Pending answers are written when this object is freed, at the latest when the interpreter exits.
        self._finalizer = weakref.finalize(self, self._store.close)

    @classmethod
    def for_node(cls, url: str, cache: str | os.PathLike[str] | None = "default") -> Self | None:
        """Open the cache that `place_for` returns; None if nothing is to be stored.

        Raises
        ------
        InputError
            If `cache` is not a valid value, or names a file that is not a cache.
        """
        place = place_for(url, cache)
        if place is None:
            return None
        # A file that the caller names may be any file, for example because of a typing error.
        return cls(None) if place == "memory" else cls(place, only_ours=place.name != _FILE_NAME)

    def get(self, key: bytes) -> CachedAnswer | None:
        """Return the answer with this key, or None."""
        return self.get_many([key]).get(key)

    def get_many(self, keys: Iterable[bytes]) -> dict[bytes, CachedAnswer]:
        """Return the answers with these keys, by key, all in memory; keys without an answer are absent."""
        wanted = list(dict.fromkeys(keys))
        found = {}
        for row in self._store.read(wanted):
            answer = _answer(row)
            if answer is not None:
                found[row[0]] = answer
        with self._lock:
            self._hits += len(found)
            self._misses += len(wanted) - len(found)
        return found

    def put(self, key: bytes, answer: Answer, *, version: int = 0, headers: AnswerHeaders | None = None) -> bool:
        """Store an answer if it can never change; return whether it was stored.

        Parameters
        ----------
        key : bytes
        answer : Answer
        version : int, default 0
            Ledger version that was read.
        headers : AnswerHeaders, optional
            The parsed headers of the answer, if the caller has them.
        """
        read = headers or answer.parsed
        if not self._store.usable or not _may_be_stored(answer, read, version):
            return False
        row = _row(key, answer, read, int(self._store.clock()))
        if len(row[3]) > self._store.max_bytes // _MAX_SHARE:
            return False
        self._store.add(row)
        with self._lock:
            self._stored += 1
        return True

    def flush(self) -> None:
        """Write pending answers. This also happens at 100 answers, after a second, and on close."""
        self._store.flush()

    def clear(self) -> None:
        """Delete every answer, also those that other processes stored in the same file."""
        self._store.clear()

    def forget_since(self, time_s: float) -> None:
        """Delete the answers stored at or after a Unix time, which may be of another ledger."""
        self._store.forget_since(int(time_s))

    def close(self) -> None:
        """Flush and close the file. Later calls raise ClosedError, except `close`, which may be called again."""
        self._finalizer()

    def stats(self) -> CacheStats:
        """Return the size of the cache and counts of its use."""
        store = self._store
        entries = store.count()
        place = str(store.path or "memory") if store.usable else "nowhere"
        with self._lock:
            return CacheStats(place, entries, store.size(), store.max_bytes, self._hits, self._misses, self._stored)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("an AnswerCache cannot be pickled; pass its path and open it in the other process")

    def __repr__(self) -> str:
        return f"AnswerCache({str(self._store.path or 'memory')!r}, max_bytes={self._store.max_bytes})"


@dataclass(frozen=True, slots=True)
class _Identity:
    """The chain and build of a node, which are part of the keys of its answers."""

    chain_id: int
    build: str | None


@dataclass(frozen=True, slots=True)
class Place:
    """Where the answer to a pinned read is looked up and stored.

    Attributes
    ----------
    key : bytes
    chain_id : int
        Chain id that is part of the key, as the node's description has it.
    version : int
        Ledger version that is read.
    """

    key: bytes
    chain_id: int
    version: int


class NodeCache:
    """The cached answers of one node, and the node's description for offline sessions.

    Parameters
    ----------
    url : str
        Base URL.
    answers : AnswerCache or None
        None stores nothing.
    offline : bool, default False
        Whether requests are never sent, so that reads without a stored answer raise OfflineMiss.
    shared : str, optional
        Name under which several hosts share answers; by default each host (scheme, host and port) has its own.
    """

    def __init__(
        self, url: str, answers: AnswerCache | None, *, offline: bool = False, shared: str | None = None
    ) -> None:
        self._url = url
        self.answers = answers
        self.offline = offline
        self._owner = f"shared {shared}" if shared is not None else f"host {_origin(url)}"
        self._identity: _Identity | None = None
        self._index_lock = fork_safe_lock()
        # An offline session reads the chain and the head from the node's description, which is stored by URL.
        self._description = key(0, 0, "GET", url, owner=self._owner)

    def is_description(self, request: Request) -> bool:
        """Return whether a request reads the node's description, ``GET /v1``."""
        return request.method == "GET" and request.url == self._url

    def note_description(self, answer: Answer) -> None:
        """Store a node's description for offline sessions; its chain and build identify the answers stored later."""
        if self.answers is not None:
            with suppress(SchemaError):  # the caller decodes it too, and raises
                info = decode_node_info(answer.body)
                self.answers.put(self._description, answer)
                self._identity = self._identity or _Identity(info.ledger.chain_id, info.git_hash)

    def description(self) -> Answer:
        """Return the node's last stored description; raise OfflineMiss if there is none."""
        found = None if self.answers is None else self.answers.get(self._description)
        if found is None:
            raise OfflineMiss(
                f"offline, and the cache has nothing of the node at {self._url}; connect once without offline=True"
            )
        return found

    def place(
        self, request: Request, pinned: int | None, *, gas: bool, describe: Callable[[], NodeInfo]
    ) -> Place | None:
        """Return the place of a pinned read, or None if its answer is not to be stored.

        The key has the chain id of the node's description; `store` compares it with that of the answer's headers.
        """
        if self.answers is None or pinned is None:
            return None
        identity = self._known_identity(describe)
        parts = urlsplit(request.url.removeprefix(self._url))
        query = [(name, value) for name, value in parse_qsl(parts.query) if name != "ledger_version"]
        made = key(
            identity.chain_id,
            pinned,
            request.method,
            f"{parts.path}?{urlencode(query)}" if query else parts.path,
            request.body,
            content_type=request.headers.get("Content-Type"),
            build=identity.build if gas else None,
            accept=request.headers.get("Accept"),
            owner=self._owner,
        )
        return Place(made, identity.chain_id, pinned)

    def _known_identity(self, describe: Callable[[], NodeInfo]) -> _Identity:
        identity = self._identity
        if identity is None:
            info = describe()
            identity = self._identity = _Identity(info.ledger.chain_id, info.git_hash)
        return identity

    def find(self, places: Iterable[Place | None]) -> dict[bytes, Answer]:
        """Return the answers that are stored at these places, by key."""
        keys = [place.key for place in places if place is not None]
        return {} if self.answers is None or not keys else dict(self.answers.get_many(keys))

    def store(self, place: Place | None, answer: Answer) -> None:
        """Store an answer at its place, if the chain id of its headers is that of the place."""
        if self.answers is None or place is None or isinstance(answer, CachedAnswer):
            return
        headers = answer.parsed
        if headers.ledger is not None and headers.ledger.chain_id == place.chain_id:
            self.answers.put(place.key, answer, version=place.version, headers=headers)

    def note_looked_up(self, where: str, version: int) -> None:
        """Record that a path was read at a version, for offline sessions."""
        if self.answers is None or self.offline or self._identity is None:
            return
        with self._index_lock:  # no other thread may write between this thread's read and write
            known = self.looked_up(where)
            index, found = self._index(where), self.answers.get(self._description)
            if version not in known and found is not None and index is not None:
                self.answers.put(index, Answer(200, found.headers, json.dumps(sorted([*known, version])).encode()))

    def looked_up(self, where: str) -> list[int]:
        """Return the versions at which a path was read and its answer stored."""
        index = self._index(where)
        found = None if self.answers is None or index is None else self.answers.get(index)
        return [] if found is None else list(json.loads(found.body))

    def _index(self, where: str) -> bytes | None:
        identity = self._identity
        if identity is None:
            return None
        return key(identity.chain_id, 0, "GET", where, accept=_INDEX, owner=self._owner)

    def close(self) -> None:
        """Write pending answers and close the cache."""
        if self.answers is not None:
            self.answers.close()


def _is_json(content_type: str | None) -> bool:
    return content_type is not None and content_type.partition(";")[0].strip().lower() == "application/json"


def _named_place(cache: object) -> Path:
    if not isinstance(cache, str | os.PathLike) or not str(cache):
        raise InputError(f'cache={cache!r:.80}: expected "default", a path, or None for no cache')
    try:
        place = checked_path(Path(cache).expanduser())
        return place / _FILE_NAME if place.is_dir() else place
    except RuntimeError as error:  # the home folder of an unknown user
        raise InputError(f"cache={str(cache)!r:.80}: {error}; pass an absolute path") from None
    except OSError as error:
        raise InputError(f"cache={str(cache)!r:.80}: {error.strerror}; pass another path") from None


def _may_be_stored(answer: Answer, read: AnswerHeaders, version: int) -> bool:
    if read.ledger is None or read.ledger.version < version:
        return False
    if answer.status == HTTPStatus.OK:
        return True
    if answer.status == HTTPStatus.NOT_FOUND:
        return decode_error_body(answer.body, _content_type(answer.headers)).error_code in _STORED_404
    return False


def _row(key: bytes, answer: Answer, read: AnswerHeaders, now: int) -> Row:
    headers = _write_headers(_documented_headers(answer.headers, read))
    body, packed = answer.body, 0
    if len(body) >= _MIN_COMPRESSED:
        smaller = zlib.compress(body, 1)
        if len(smaller) < len(body):
            body, packed = smaller, 1
    return (
        key,
        answer.status,
        headers,
        body,
        packed,
        _checksum(key, answer.status, headers, body, packed=packed, created=now),
        now,
        now,
    )


def _answer(row: Row) -> CachedAnswer | None:
    """Decode a row; return None if its checksum is wrong, since SQLite does not detect changed bits."""
    key, status, headers, body, packed, checksum, created, _ = row
    try:
        if checksum != _checksum(key, status, headers, body, packed=packed, created=created):
            return None
        return CachedAnswer(status, _read_headers(headers), zlib.decompress(body) if packed else body, created)
    except (TypeError, ValueError, OverflowError, zlib.error):
        return None


def _checksum(key: bytes, status: int, headers: bytes, body: bytes, *, packed: int, created: int) -> int:
    return zlib.crc32(body, zlib.crc32(headers, zlib.crc32(b"%b %d %d %d" % (key, status, packed, created))))


def _documented_headers(headers: Mapping[str, str], read: AnswerHeaders) -> dict[str, str]:
    """Return the documented headers, rebuilt from their parsed values, so that no other content is stored."""
    kind = _content_type(headers).partition(";")[0].strip().lower()
    stored = {"Content-Type": kind if kind in _STORED_TYPES else ""}
    if read.ledger is not None and read.brand is not None:
        stored |= ledger_headers(read.ledger, brand=read.brand, gas_used=read.gas_used)
        if read.cursor is not None:  # without its cursor, a page would be read as the last one
            stored[f"X-{read.brand}-CURSOR"] = read.cursor
    return stored


def _content_type(headers: Mapping[str, str]) -> str:
    return next((value for name, value in headers.items() if name.lower() == "content-type"), "")


def _origin(url: str) -> str:
    """Return scheme, host and port of a URL, always with the port."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}:{parts.port or {'http': 80, 'https': 443}[parts.scheme]}"
