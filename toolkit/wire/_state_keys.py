"""Hashes of the state keys of resources and resource groups, which differ in state changes."""

from __future__ import annotations

import hashlib
from functools import lru_cache

from toolkit.move import parse_type_tag
from toolkit.move._bcs import Writer, write_type_tag
from toolkit.move._ids import address_to_bytes

_SALT = hashlib.sha3_256(b"APTOS::StateKey").digest()
_ACCESS_PATH = b"\0"
_RESOURCE, _GROUP = b"\1", b"\2"  # kinds of paths


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
    path, key = Writer(), Writer()
    write_type_tag(path, parse_type_tag(tag))
    key.fixed(_ACCESS_PATH + address_to_bytes(address))
    key.bytes((_GROUP if group else _RESOURCE) + path.getvalue()[1:])  # a struct tag has no variant byte
    return f"0x{hashlib.sha3_256(_SALT + key.getvalue()).hexdigest()}"
