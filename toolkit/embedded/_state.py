"""Versioned state: BCS bytes by state key, readable at every version that is not pruned.

Values are bytes, so no reference to a value can change a past version.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from toolkit.move._bcs import uleb128
from toolkit.move._ids import address_to_bytes
from toolkit.wire._state_keys import GROUP, MODULE, RESOURCE, access_key, item_key, key_hash, key_size, struct_tag_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

StateKind = Literal["module", "resource", "group", "table"]


class StateKey(NamedTuple):
    """The key of a stored value.

    Parameters
    ----------
    kind : {"module", "resource", "group", "table"}
        StateKind of the value. It is a plain string for speed, because every access creates a key.
    owner : str
        Canonical address; for a table item, the handle of the table (0x and 64 hex digits).
    name : str or bytes
        Module name, canonical struct tag of the resource or group, or BCS bytes of a table key.
    """

    kind: StateKind
    owner: str
    name: str | bytes

    @property
    def item(self) -> bytes:
        """The name as bytes: UTF-8 text, or the BCS bytes of a table key."""
        return self.name.encode() if isinstance(self.name, str) else self.name


@lru_cache(maxsize=16_384)
def resource_key(address: str, tag: str) -> StateKey:
    """Return the key of the resource `tag` (canonical text) under `address`."""
    return StateKey("resource", address, tag)


def state_key_bytes(key: StateKey) -> bytes:
    """Return a state key in BCS.

    Notes
    -----
    ``StateKeyInner``: variant 0 is an access path (address, then path bytes with a module id or a struct tag), variant
    1 is a table item (handle, key bytes).
    """
    owner = address_to_bytes(key.owner)
    if key.kind == "table":
        return item_key(owner, key.item)
    if key.kind == "module":
        return access_key(owner, MODULE + owner + uleb128(len(key.item)) + key.item)
    return access_key(owner, (RESOURCE if key.kind == "resource" else GROUP) + struct_tag_bytes(key.item.decode()))


@lru_cache(maxsize=16_384)
def state_key_size(key: StateKey) -> int:
    """Return the size for which a state key is charged: address and path, or table handle and key."""
    return key_size(state_key_bytes(key))


@lru_cache(maxsize=16_384)
def state_key_hash(key: StateKey) -> str:
    """Return the hash of a state key, as in state changes: 0x and 64 hex digits."""
    return key_hash(state_key_bytes(key))


class StateValue(NamedTuple):
    """Stored bytes, with the storage deposit in octas that deletion refunds."""

    data: bytes
    slot_deposit: int
    byte_deposit: int


_NEVER: tuple[list[int], list[StateValue | None]] = ([], [])


class VersionedState:
    """The values of all keys at all versions that are not pruned.

    A server thread may read while another thread commits. A write becomes visible when its version is appended, and
    pruning replaces both lists of a key in one step.
    """

    def __init__(self) -> None:
        # Versions and values of the writes to each key, oldest first; None is a deletion.
        self._writes: dict[StateKey, tuple[list[int], list[StateValue | None]]] = {}
        self._owned: dict[str, dict[StateKey, None]] = {}
        self._superseded: deque[tuple[int, StateKey]] = deque()

    def __len__(self) -> int:
        """Return the number of stored values for all keys and versions."""
        return sum(len(versions) for versions, _ in self._writes.values())

    def write(self, version: int, writes: Mapping[StateKey, StateValue | None]) -> None:
        """Store the writes of one ledger version (None deletes a value); each call must have a higher version."""
        for key, value in writes.items():
            if key in self._writes:
                self._superseded.append((version, key))
            else:
                self._writes[key] = [], []
                self._owned.setdefault(key.owner, {})[key] = None
            versions, values = self._writes[key]
            values.append(value)
            versions.append(version)

    def read(self, key: StateKey, version: int) -> StateValue | None:
        """Return the value of `key` at `version`, or None."""
        return self.read_stamped(key, version)[1]

    def read_stamped(self, key: StateKey, version: int) -> tuple[int, StateValue | None]:
        """Return the version of the last write to `key` at or before `version` and its value, or -1 and None."""
        versions, values = self._writes.get(key, _NEVER)
        index = bisect_right(versions, version) - 1
        return (-1, None) if index < 0 else (versions[index], values[index])

    def keys_of(self, owner: str, version: int) -> Iterator[StateKey]:
        """Yield the keys under an address or table handle that have a value at `version`, sorted by kind and name."""
        owned = tuple(self._owned.get(owner, ()))  # copied at once, because another thread may add keys
        for key in sorted(owned, key=lambda key: (key.kind, str(key.name))):
            if self.read(key, version) is not None:
                yield key

    def owners(self) -> tuple[str, ...]:
        """Return the addresses and table handles that have keys."""
        return tuple(self._owned)

    def written_before(self, oldest: int) -> Iterator[tuple[int, StateKey, StateValue | None]]:
        """Yield (version, key, value) for each stored write before the version `oldest`, key by key."""
        for key, writes in self._writes.items():
            for version, value in zip(*writes, strict=True):
                if version >= oldest:
                    break
                yield version, key, value

    def prune(self, oldest: int) -> None:
        """Drop values that only versions below `oldest` can read."""
        while self._superseded and self._superseded[0][0] <= oldest:
            _, key = self._superseded.popleft()
            if key not in self._writes:
                continue
            versions, values = self._writes[key]
            first = max(0, bisect_right(versions, oldest) - 1)
            self._writes[key] = versions[first:], values[first:]
            if versions[-1] <= oldest and values[-1] is None:
                del self._writes[key], self._owned[key.owner][key]
                if not self._owned[key.owner]:
                    del self._owned[key.owner]
