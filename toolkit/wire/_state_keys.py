"""State keys, under which the ledger stores modules, resources and table items, and the hashes that stand for them."""

from __future__ import annotations

import hashlib
from functools import lru_cache

from toolkit.move import parse_type_tag
from toolkit.move._bcs import Writer, uleb128, uleb128_at, write_type_tag
from toolkit.move._ids import ADDRESS_LENGTH, address_to_bytes

# Prefix of the hashed bytes, as on chain: hashes of different types cannot collide.
_HASH_SALT = hashlib.sha3_256(b"APTOS::StateKey").digest()
_ACCESS_PATH, _TABLE_ITEM = b"\0", b"\1"
_OWNER_END = 1 + ADDRESS_LENGTH  # after the kind of key come the address or the handle, then path or key
MODULE, RESOURCE, GROUP = b"\0", b"\1", b"\2"  # first byte of a path; a module id or a struct tag follows


def access_key(address: bytes, path: bytes) -> bytes:
    """Return the state key, as BCS, of a module, a resource or a resource group: what a path leads to."""
    return _ACCESS_PATH + address + uleb128(len(path)) + path


def item_key(handle: bytes, key: bytes) -> bytes:
    """Return the state key, as BCS, of a table item."""
    return _TABLE_ITEM + handle + uleb128(len(key)) + key


def storage_form(key: bytes) -> bytes:
    """Return a state key without the length of its path or key: the form that is charged."""
    length, start = uleb128_at(key, _OWNER_END)
    return key[:_OWNER_END] + key[start : start + length]


def key_size(key: bytes) -> int:
    """Return the size for which a state key is charged: all but the byte of its kind."""
    return len(storage_form(key)) - 1


def key_hash(key: bytes) -> str:
    """Return the hash of a state key, as in state changes: 0x and 64 hex digits."""
    # Unlike its BCS, the hashed bytes of a table item have no length before the key.
    hashed = storage_form(key) if key[:1] == _TABLE_ITEM else key
    return f"0x{hashlib.sha3_256(_HASH_SALT + hashed).hexdigest()}"


@lru_cache(maxsize=4096)
def struct_tag_bytes(text: str) -> bytes:
    """Return a struct tag in BCS: a type tag without the leading variant byte (7, struct)."""
    writer = Writer()
    write_type_tag(writer, parse_type_tag(text))
    return writer.getvalue()[1:]


@lru_cache(maxsize=16_384)
def resource_key_hash(address: str, tag: str, *, group: bool = False) -> str:
    """Return the hash of the state key of a resource, or of a resource group, as in state changes.

    Parameters
    ----------
    address, tag : str
        Address, and struct tag of the resource or the group.
    group : bool, default False
        Whether `tag` is a resource group.
    """
    path = (GROUP if group else RESOURCE) + struct_tag_bytes(tag)
    return key_hash(access_key(address_to_bytes(address), path))
