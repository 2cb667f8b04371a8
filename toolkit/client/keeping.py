"""Pinned reads that are kept: which answers, under which key, and what offline means."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit

from toolkit.client.cache import AnswerCache, CachedAnswer, key
from toolkit.client.transport import Answer
from toolkit.errors import OfflineMiss, SchemaError
from toolkit.wire.node import decode_node_info

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolkit.client.transport import Request

__all__ = ["Keeper"]


_INDEX = "versions"
"""Stands where a media type would: an index of ours beside the answers of the node."""


@dataclass(frozen=True, slots=True)
class _Identity:
    """What tells answers of different chains, and gas of different builds, apart."""

    chain_id: int
    build: str | None


class Keeper:
    """The kept answers of one node.

    Parameters
    ----------
    url : str
        Base URL.
    cache : AnswerCache or None
        None keeps nothing.
    offline : bool
        Never ask the node: what is not kept raises OfflineMiss.
    """

    def __init__(self, url: str, cache: AnswerCache | None, *, offline: bool = False) -> None:
        self._url = url
        self.cache = cache
        self.offline = offline
        self._identity: _Identity | None = None
        self._index_lock = threading.Lock()
        # The node's own description, kept by its URL, is what an offline session knows the chain and the head from.
        self._description = key(0, 0, "GET", url)

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
        """Return the description last seen; OfflineMiss where there is none."""
        found = None if self.cache is None else self.cache.get(self._description)
        if found is None:
            raise OfflineMiss(
                f"offline, and nothing is kept of the node at {self._url}; connect once without offline=True"
            )
        return found

    def key(self, request: Request, pinned: int | None, *, gas: bool, describe: Callable[[], Answer]) -> bytes | None:
        """Return the key of a pinned read, None where it is not kept."""
        if self.cache is None or pinned is None:
            return None
        if self._identity is None:
            info = decode_node_info(describe().body)
            self._identity = _Identity(info.ledger.chain_id, info.git_hash)
        parts = urlsplit(request.url.removeprefix(self._url))
        query = [(name, value) for name, value in parse_qsl(parts.query) if name != "ledger_version"]
        return key(
            self._identity.chain_id,
            pinned,
            request.method,
            f"{parts.path}?{urlencode(query)}" if query else parts.path,
            request.body,
            content_type=request.headers.get("Content-Type"),
            build=self._identity.build if gas else None,
            accept=request.headers.get("Accept"),
        )

    def find(self, keys: Sequence[bytes]) -> dict[bytes, Answer]:
        """Return what is kept of these keys."""
        return {} if self.cache is None or not keys else dict(self.cache.get_many(keys))

    def keep(self, at: bytes | None, answer: Answer) -> None:
        """Keep an answer, if it is one that never changes and is not kept already."""
        if self.cache is not None and at is not None and not isinstance(answer, CachedAnswer):
            self.cache.put(at, answer)

    def note_looked_up(self, where: str, version: int) -> None:
        """Remember at which versions a path was read, so that an offline session knows what it may build on."""
        if self.cache is None or self.offline or self._identity is None:
            return
        with self._index_lock:  # read, add, write: another thread's version must not get lost between
            known = self.looked_up(where)
            found = self.cache.get(self._description)
            if version not in known and found is not None:
                answer = Answer(200, found.headers, json.dumps(sorted([*known, version])).encode())
                self.cache.put(key(self._identity.chain_id, 0, "GET", where, accept=_INDEX), answer)

    def looked_up(self, where: str) -> list[int]:
        """Return the versions at which a path was read and kept."""
        if self.cache is None or self._identity is None:
            return []
        found = self.cache.get(key(self._identity.chain_id, 0, "GET", where, accept=_INDEX))
        return [] if found is None else list(json.loads(found.body))

    def close(self) -> None:
        """Write what is waiting, and close the cache."""
        if self.cache is not None:
            self.cache.close()
