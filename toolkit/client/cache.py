"""The cache of answers to pinned reads, which never change: which answers, under which key, in which file.

`cache_file` reads and writes the file. Nothing here sends a request.
"""

from __future__ import annotations

import json
import os
import sys
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

from toolkit.client import forking
from toolkit.client.cache_file import Row, Store, warn_caller
from toolkit.client.http import Answer, is_nearby
from toolkit.errors import InputError, OfflineMiss, SchemaError
from toolkit.wire import decode_error_body, decode_node_info, ledger_headers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType

    from toolkit.client.http import Request
    from toolkit.wire import AnswerHeaders

__all__ = ["AnswerCache", "CacheStats", "CachedAnswer", "Keeper", "Place", "default_path", "key", "place_for"]

DISK_BYTES = 2 * 1024**3
MEMORY_BYTES = 128 * 1024**2
LEAST_BYTES = 1024**2

_KEPT_TYPES = frozenset({"application/json", "application/x-bcs", "application/octet-stream", "text/plain"})
_KEPT_404 = frozenset({"table_item_not_found", "resource_not_found", "module_not_found"})
_PACK_FROM = 256  # bytes; shorter bodies gain less than they cost
_LARGEST_SHARE = 8  # an answer above this part of the bound would push out too much
_FILE_NAME = "answers-2.sqlite3"  # the number is that of the keys, so that no release reads entries of another one's
_DIGEST_BYTES = 20

_INDEX = "versions"
"""Stands where a media type would: an index of ours beside the answers of the node."""

_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode
_read_headers = msgspec.json.Decoder(dict[str, str]).decode
_write_headers = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class CachedAnswer(Answer):
    """An answer from the cache: status and body as they came, of the headers only the documented ones.

    Attributes
    ----------
    created : int
        When it was kept, in Unix time, s.
    """

    created: int


@dataclass(frozen=True, slots=True)
class CacheStats:
    """What a cache holds, and what it did since it was opened.

    Attributes
    ----------
    place : str
        The file, ``memory``, or ``nowhere`` where the file cannot be used.
    entries : int
        Answers held.
    size_bytes, max_bytes : int
        Bytes in use, and their bound.
    hits, misses, kept : int
        Answers found, not found and taken in by this object.
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
    """Return the key of a pinned read. Equal requests have equal keys, whatever the order of names in their JSON.

    Parameters
    ----------
    chain_id : int
        Of the answer's own headers, when it is stored.
    version : int
        The ledger version that is read, resolved: the head has no key.
    method : str
        ``GET`` or ``POST``.
    path : str
        Path below the base URL, with its query but for ``ledger_version``.
    body : JSON value or bytes, optional
        A JSON value is made canonical; bytes count as they are, unless `content_type` says that they are JSON.
    content_type : str, optional
        Media type of a body of bytes.
    build : str, optional
        The node's build, for answers that depend on it: gas figures.
    accept : str, optional
        Media type asked for.
    owner : str, optional
        Whose answers they are: the host that gave them, or the name under which hosts share them.

    Returns
    -------
    bytes
        A digest; nothing of the request can be read from it.

    Raises
    ------
    InputError
        If the chain id or version is not a whole number, or the body is not a JSON value.
    """
    given: tuple[tuple[str, object], ...] = (("chain_id", chain_id), ("version", version))
    for name, number in given:
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise InputError(f"{name} of a cached read must be a whole number, got {number!r:.80}; the head has no key")
    try:
        if isinstance(body, bytes) and _is_json(content_type):
            body = json.loads(body)
        exact = isinstance(body, bytes)
        text = _canonical([chain_id, version, method, path, build, accept, owner, exact, body.hex() if exact else body])
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"the body of {method} {path:.120} is neither bytes nor a JSON value: {error}") from None
    return blake2b(text.encode(), digest_size=_DIGEST_BYTES).digest()


def default_path() -> Path:
    """Return where the cache lies when nobody says otherwise.

    Returns
    -------
    Path
        A file in the folder ``LEDGER_TOOLKIT_CACHE`` names; else in ``ledger-toolkit`` below ``XDG_CACHE_HOME`` or
        the platform's place for caches.

    Raises
    ------
    RuntimeError
        If there is no home folder.
    """
    own = os.environ.get("LEDGER_TOOLKIT_CACHE")
    return (Path(own).expanduser() if own else _user_caches() / "ledger-toolkit") / _FILE_NAME


def place_for(url: str, cache: str | os.PathLike[str] | None = "default") -> Path | Literal["memory"] | None:
    """Decide where the answers of a node are kept.

    Parameters
    ----------
    url : str
        The node's base URL.
    cache : "default", path or None
        A file, or a folder that is there; None for no cache at all.

    Returns
    -------
    Path, "memory" or None
        By default answers of a node on this machine or its network stay in memory: ledgers that are thrown away
        reuse their ids.

    Raises
    ------
    InputError
        If `cache` is something else.
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
        warn_caller(f"no answers are cached: {error}; set LEDGER_TOOLKIT_CACHE to a folder")
        return None


class AnswerCache:
    """Answers by `key`, on disk or in memory. Threads may share one; processes may share a file.

    Stored are 200s, and 404s that say that a table item, resource or module is missing, if they carry the ledger
    headers (a captive portal's page does not) and these show a head that has reached the version read (that of a
    backend that lags behind has not). Which reads are pinned is the caller's to know: a page of transactions
    that reaches the head, for example, is not. A damaged entry is a miss; a damaged or foreign file is renamed
    ``.damaged-<n>`` and a new one begun; a place that cannot be written leaves the cache empty. Both warn, neither
    raises.

    Parameters
    ----------
    path : Path or None
        The file; None for memory.
    max_bytes : int, optional
        Bound in bytes, by default 2 GiB on disk and 128 MiB in memory; the answers unused for longest go first
        (times of use are kept to the hour). SQLite's log beside the file adds a few MB.
    clock : callable, optional
        Unix time in s; replaced in tests.
    only_ours : bool, default False
        Refuse a file that never was a cache, rather than set it aside.

    Raises
    ------
    InputError
        If `max_bytes` is below 1 MiB, or `only_ours` is True and the file never was a cache.
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
        if bound < LEAST_BYTES:
            raise InputError(f"max_bytes={max_bytes!r:.80}: expected at least {LEAST_BYTES:,}; use cache=None for none")
        self._store = Store(path, max_bytes=bound, clock=clock, only_ours=only_ours)
        self._lock = forking.lock()
        self._hits = self._misses = self._kept = 0
        # What is waiting is written when this object goes, at the latest at the interpreter's exit.
        self._finalizer = weakref.finalize(self, self._store.close)

    @classmethod
    def for_node(cls, url: str, cache: str | os.PathLike[str] | None = "default") -> Self | None:
        """Open the cache `place_for` decides on; None where there is to be none."""
        place = place_for(url, cache)
        if place is None:
            return None
        # A file of our own name was made by us; one that the caller names may be anything, a slip of the pen included.
        return cls(None) if place == "memory" else cls(place, only_ours=place.name != _FILE_NAME)

    def get(self, key: bytes) -> CachedAnswer | None:
        """Return the answer kept under a key; None where there is none."""
        return self.get_many([key]).get(key)

    def get_many(self, keys: Iterable[bytes]) -> dict[bytes, CachedAnswer]:
        """Return the answers kept under the keys; keys without one are absent. All are held in memory at once."""
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
        """Store an answer if it is one that does not change; return whether it was stored.

        Parameters
        ----------
        key : bytes
        answer : Answer
        version : int, default 0
            The ledger version that was read.
        headers : AnswerHeaders, optional
            The answer's headers, if they are parsed already.
        """
        read = headers or answer.parsed
        if not self._store.usable or not _may_be_kept(answer, read, version):
            return False
        row = _row(key, answer, read, int(self._store.clock()))
        if len(row[3]) > self._store.max_bytes // _LARGEST_SHARE:
            return False
        self._store.add(row)
        with self._lock:
            self._kept += 1
        return True

    def flush(self) -> None:
        """Write what is waiting; happens by itself at 100 answers, after a second, and on close."""
        self._store.flush()

    def clear(self) -> None:
        """Forget every answer, those of other processes in the same file too."""
        self._store.clear()

    def forget_since(self, time_s: float) -> None:
        """Forget the answers stored at or after a Unix time: they may be of another ledger."""
        self._store.forget_since(int(time_s))

    def close(self) -> None:
        """Flush and let go of the file; using the cache afterwards raises ClosedError. Closing twice is fine."""
        self._finalizer()

    def stats(self) -> CacheStats:
        """Count what is held and what was done."""
        store = self._store
        entries = store.count()
        place = str(store.path or "memory") if store.usable else "nowhere"
        with self._lock:
            return CacheStats(place, entries, store.size(), store.max_bytes, self._hits, self._misses, self._kept)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("an AnswerCache cannot be pickled; pass its path and open it there")

    def __repr__(self) -> str:
        return f"AnswerCache({str(self._store.path or 'memory')!r}, max_bytes={self._store.max_bytes})"


@dataclass(frozen=True, slots=True)
class _Identity:
    """What tells answers of different chains, and gas of different builds, apart."""

    chain_id: int
    build: str | None


@dataclass(frozen=True, slots=True)
class Place:
    """Where the answer to a pinned read is looked up and stored.

    Attributes
    ----------
    key : bytes
    chain_id : int
        The chain of the key: the one that the node says it is of.
    version : int
        The ledger version that is read.
    """

    key: bytes
    chain_id: int
    version: int


class Keeper:
    """The stored answers of one node.

    Parameters
    ----------
    url : str
        Base URL.
    cache : AnswerCache or None
        None stores nothing.
    offline : bool, default False
        Never ask the node: what is not stored raises OfflineMiss.
    shared : str, optional
        Name under which several hosts share their answers; by default each host (scheme, host and port) has its own.
    """

    def __init__(
        self, url: str, cache: AnswerCache | None, *, offline: bool = False, shared: str | None = None
    ) -> None:
        self._url = url
        self.cache = cache
        self.offline = offline
        self._owner = f"shared {shared}" if shared is not None else f"host {_origin(url)}"
        self._identity: _Identity | None = None
        self._index_lock = forking.lock()
        # The node's own description, stored by its URL, is what an offline session knows the chain and the head from.
        self._description = key(0, 0, "GET", url, owner=self._owner)

    def is_description(self, request: Request) -> bool:
        """Tell whether a request asks for the node's own description."""
        return request.method == "GET" and request.url == self._url

    def note_description(self, answer: Answer) -> None:
        """Store a node's description for offline sessions; its chain and build identify the answers stored later."""
        if self.cache is not None:
            with suppress(SchemaError):  # the caller's own decoding raises it
                info = decode_node_info(answer.body)
                self.cache.put(self._description, answer)
                self._identity = self._identity or _Identity(info.ledger.chain_id, info.git_hash)

    def description(self) -> Answer:
        """Return the description last seen; raise OfflineMiss if there is none."""
        found = None if self.cache is None else self.cache.get(self._description)
        if found is None:
            raise OfflineMiss(
                f"offline, and nothing is kept of the node at {self._url}; connect once without offline=True"
            )
        return found

    def place(self, request: Request, pinned: int | None, *, gas: bool, describe: Callable[[], Answer]) -> Place | None:
        """Return the place of a pinned read, None if its answer is not stored.

        It is of the chain of earlier answers; `store` compares it with the chain of the answer's own headers.
        """
        if self.cache is None or pinned is None:
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

    def _known_identity(self, describe: Callable[[], Answer]) -> _Identity:
        identity = self._identity
        if identity is None:
            info = decode_node_info(describe().body)
            identity = self._identity = _Identity(info.ledger.chain_id, info.git_hash)
        return identity

    def find(self, places: Iterable[Place | None]) -> dict[bytes, Answer]:
        """Return what is stored at these places, by key."""
        keys = [place.key for place in places if place is not None]
        return {} if self.cache is None or not keys else dict(self.cache.get_many(keys))

    def store(self, place: Place | None, answer: Answer) -> None:
        """Store an answer that never changes, if its own headers are of the chain of its place."""
        if self.cache is None or place is None or isinstance(answer, CachedAnswer):
            return
        headers = answer.parsed
        if headers.ledger is not None and headers.ledger.chain_id == place.chain_id:
            self.cache.put(place.key, answer, version=place.version, headers=headers)

    def note_looked_up(self, where: str, version: int) -> None:
        """Remember at which versions a path was read, so that an offline session knows what it may build on."""
        if self.cache is None or self.offline or self._identity is None:
            return
        with self._index_lock:  # read, add, write: another thread's version must not get lost between
            known = self.looked_up(where)
            index, found = self._index(where), self.cache.get(self._description)
            if version not in known and found is not None and index is not None:
                self.cache.put(index, Answer(200, found.headers, json.dumps(sorted([*known, version])).encode()))

    def looked_up(self, where: str) -> list[int]:
        """Return the versions at which a path was read and stored."""
        index = self._index(where)
        found = None if self.cache is None or index is None else self.cache.get(index)
        return [] if found is None else list(json.loads(found.body))

    def _index(self, where: str) -> bytes | None:
        identity = self._identity
        if identity is None:
            return None
        return key(identity.chain_id, 0, "GET", where, accept=_INDEX, owner=self._owner)

    def close(self) -> None:
        """Write what is waiting, and close the cache."""
        if self.cache is not None:
            self.cache.close()


def _is_json(content_type: str | None) -> bool:
    return content_type is not None and content_type.partition(";")[0].strip().lower() == "application/json"


def _named_place(cache: object) -> Path:
    if not isinstance(cache, str | os.PathLike) or not str(cache) or "\0" in str(cache):
        raise InputError(f'cache={cache!r:.80}: expected "default", a path, or None for no cache')
    try:
        place = Path(cache).expanduser()
        return place / _FILE_NAME if place.is_dir() else place
    except RuntimeError as error:  # no such user's home
        raise InputError(f"cache={str(cache)!r:.80}: {error}; give a full path") from None


def _user_caches() -> Path:
    xdg = os.environ.get("XDG_CACHE_HOME")
    if xdg and Path(xdg).is_absolute():  # the XDG specification has relative ones ignored
        return Path(xdg)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path.home() / ".cache"


def _may_be_kept(answer: Answer, read: AnswerHeaders, version: int) -> bool:
    if read.ledger is None or read.ledger.version < version:
        return False
    if answer.status == HTTPStatus.OK:
        return True
    if answer.status == HTTPStatus.NOT_FOUND:
        return decode_error_body(answer.body, _content_type(answer.headers)).error_code in _KEPT_404
    return False


def _row(key: bytes, answer: Answer, read: AnswerHeaders, now: int) -> Row:
    headers = _write_headers(_kept_headers(answer.headers, read))
    body, packed = answer.body, 0
    if len(body) >= _PACK_FROM:
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
    """Decode a row; None where a bit of it has changed, which SQLite alone would not notice."""
    key, status, headers, body, packed, checksum, created, _ = row
    try:
        if checksum != _checksum(key, status, headers, body, packed=packed, created=created):
            return None
        return CachedAnswer(status, _read_headers(headers), zlib.decompress(body) if packed else body, created)
    except (TypeError, ValueError, OverflowError, zlib.error):
        return None


def _checksum(key: bytes, status: int, headers: bytes, body: bytes, *, packed: int, created: int) -> int:
    return zlib.crc32(body, zlib.crc32(headers, zlib.crc32(b"%b %d %d %d" % (key, status, packed, created))))


def _kept_headers(headers: Mapping[str, str], read: AnswerHeaders) -> dict[str, str]:
    """Rebuild the documented headers from what was read in them, so that nothing else can slip through."""
    kind = _content_type(headers).partition(";")[0].strip().lower()
    kept = {"Content-Type": kind if kind in _KEPT_TYPES else ""}
    if read.ledger is not None and read.brand is not None:
        kept |= ledger_headers(read.ledger, brand=read.brand, gas_used=read.gas_used)
        if read.cursor is not None:  # a page without its cursor would read as the last one
            kept[f"X-{read.brand}-CURSOR"] = read.cursor
    return kept


def _content_type(headers: Mapping[str, str]) -> str:
    return next((value for name, value in headers.items() if name.lower() == "content-type"), "")


def _origin(url: str) -> str:
    """Return scheme, host and port of a URL, the port always spelled out."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}:{parts.port or {'http': 80, 'https': 443}[parts.scheme]}"
