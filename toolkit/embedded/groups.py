"""Resource groups: resources of one address that are stored, read and paid for together.

A group is stored under its own tag as a BCS map from struct tag to bytes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from toolkit.embedded.state import group_key, resource_key
from toolkit.move import Reader, StructTag, Writer, parse_type_tag, read_type_tag, write_type_tag

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit.embedded.code import CodeSet
    from toolkit.embedded.state import VersionedState

__all__ = ["decode_group", "encode_group", "group_of", "read_resource"]

# The variant byte of a struct in a type tag; maps hold bare struct tags, without it.
_STRUCT = b"\x07"


def group_of(code: CodeSet, tag: StructTag) -> str | None:
    """Return the canonical tag of the group a struct belongs to, or None."""
    definition = code.modules.get((tag.address, tag.module))
    struct = None if definition is None else definition.structs.get(tag.name)
    return None if struct is None or struct.move_group is None else str(parse_type_tag(struct.move_group))


def read_resource(state: VersionedState, code: CodeSet, address: str, tag: StructTag, version: int) -> bytes | None:
    """Return a resource's bytes at a version, whether it is stored alone or in a group."""
    group = group_of(code, tag)
    if group is None:
        value = state.read(resource_key(address, str(tag)), version)
        return None if value is None else value.data
    value = state.read(group_key(address, group), version)
    return None if value is None else decode_group(value.data).get(str(tag))


def decode_group(data: bytes | None) -> dict[str, bytes]:
    """Return a group's members: bytes by canonical struct tag."""
    return {} if data is None else dict(_members(data))


def encode_group(members: Mapping[str, bytes]) -> bytes | None:
    """Return a group's bytes, or None where it has no members left."""
    if not members:
        return None
    writer = Writer()
    writer.uleb128(len(members))
    for tag, data in sorted((_tag_bytes(tag), data) for tag, data in members.items()):
        writer.fixed(tag)
        writer.bytes(data)
    return bytes(writer.getvalue())


@lru_cache(maxsize=1024)
def _tag_bytes(tag: str) -> bytes:
    writer = Writer()
    write_type_tag(writer, parse_type_tag(tag))
    return bytes(writer.getvalue())[1:]


@lru_cache(maxsize=4096)
def _members(data: bytes) -> tuple[tuple[str, bytes], ...]:
    members = []
    reader = Reader(data)
    count = reader.uleb128()
    position = reader.position
    for _ in range(count):
        inner = Reader(_STRUCT + data[position:])
        tag = read_type_tag(inner)
        members.append((str(tag), inner.bytes()))
        position += inner.position - len(_STRUCT)
    return tuple(members)
