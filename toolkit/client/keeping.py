"""Pinned reads that are stored: which answers, under which key, and what offline means."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit

from toolkit.client import forking
from toolkit.client.cache import AnswerCache, CachedAnswer, key
from toolkit.client.transport import Answer
from toolkit.errors import OfflineMiss, SchemaError
from toolkit.wire import decode_node_info, parse_headers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from toolkit.client.transport import Request

__all__ = ["Keeper", "Place"]


_INDEX = "versions"
"""Stands where a media type would: an index of ours beside the answers of the node."""


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
        """Remember a node's description for offline sessions, if it is one."""
        if self.cache is not None:
            with suppress(SchemaError):  # whoever asked is told by its own reading
                decode_node_info(answer.body)
                self.cache.put(self._description, answer)

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
        headers = parse_headers(answer.headers)
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


def _origin(url: str) -> str:
    """Return scheme, host and port of a URL, the port always spelled out."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}:{parts.port or {'http': 80, 'https': 443}[parts.scheme]}"
