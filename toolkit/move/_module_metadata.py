"""The metadata in the bytecode of a module, which its ABI does not include: error constants and resource groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.errors import SchemaError
from toolkit.move._bcs import Reader

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAGIC = bytes.fromhex("a11ceb0b")
METADATA_TABLE = 0x10  # kind of this table in Move's binary format
METADATA_KEY = b"aptos::metadata_v1"
GROUP_MEMBER = 3  # kind of this attribute of a struct; its argument is the struct tag of the group


def named_errors(bytecode: bytes) -> list[tuple[int, str, str]]:
    """Return the error constants of a module: value, name and description.

    Raises
    ------
    SchemaError
        If the bytecode is not a compiled module.
    """
    for key, value in _metadata(bytecode):
        if key in {b"aptos::metadata_v0", METADATA_KEY}:
            return _errors(Reader(value))
    return []


def resource_groups(bytecode: bytes) -> dict[str, str]:
    """Return the resource groups of a module's resources, as struct tags by struct name.

    Parameters
    ----------
    bytecode : bytes
        Compiled module.

    Raises
    ------
    SchemaError
        If the bytecode is not a compiled module.
    """
    for key, value in _metadata(bytecode):
        if key == METADATA_KEY:
            return _members(Reader(value))
    return {}


def _metadata(bytecode: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the entries of the metadata table: magic, version, table headers (kind, offset, size), tables."""
    reader = Reader(bytecode)
    if not bytecode.startswith(_MAGIC):
        raise SchemaError("expected the bytecode of a module")
    reader.fixed(len(_MAGIC) + 4)
    tables = [(reader.u8(), reader.uleb128(), reader.uleb128()) for _ in range(reader.uleb128())]
    for kind, offset, size in tables:
        start = reader.position + offset
        table = Reader(bytecode[start : start + size] if kind == METADATA_TABLE else b"")
        while table.remaining:
            yield table.bytes(), table.bytes()


def _errors(metadata: Reader) -> list[tuple[int, str, str]]:
    return [(metadata.u64(), metadata.string(), metadata.string()) for _ in range(metadata.length())]


def _members(metadata: Reader) -> dict[str, str]:
    """Read ``RuntimeModuleMetadataV1``: a map of errors, then a map of the attributes of each struct."""
    _errors(metadata)
    found = {}
    for _ in range(metadata.length()):
        name = metadata.string()
        for _ in range(metadata.length()):
            kind, arguments = metadata.u8(), [metadata.string() for _ in range(metadata.length())]
            if kind == GROUP_MEMBER and arguments:
                found[name] = arguments[0]
    return found
