"""The metadata in the bytecode of a module, which its ABI does not include: the resource groups of its structs."""

from __future__ import annotations

from toolkit.errors import SchemaError
from toolkit.move._bcs import Reader

_MAGIC = bytes.fromhex("a11ceb0b")
_METADATA_TABLE = 0x10  # kind of this table in Move's binary format
_METADATA_KEY = b"aptos::metadata_v1"
_GROUP_MEMBER = 3  # kind of this attribute; its argument is the struct tag of the group


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
    reader = Reader(bytecode)
    if reader.remaining < len(_MAGIC) or reader.fixed(len(_MAGIC)) != _MAGIC:
        raise SchemaError("expected the bytecode of a module")
    reader.fixed(4)  # format version
    tables = [(reader.u8(), reader.uleb128(), reader.uleb128()) for _ in range(reader.uleb128())]
    start = reader.position
    for kind, offset, size in tables:
        if kind == _METADATA_TABLE:
            return _groups(Reader(bytecode[start + offset : start + offset + size]))
    return {}


def _groups(table: Reader) -> dict[str, str]:
    while table.remaining:
        key, value = table.bytes(), table.bytes()
        if key == _METADATA_KEY:
            return _members(Reader(value))
    return {}


def _members(metadata: Reader) -> dict[str, str]:
    """Read ``RuntimeModuleMetadataV1``: a map of errors, then a map of the attributes of each struct."""
    for _ in range(metadata.length()):
        metadata.u64(), metadata.string(), metadata.string()
    found = {}
    for _ in range(metadata.length()):
        name = metadata.string()
        for _ in range(metadata.length()):
            kind, arguments = metadata.u8(), [metadata.string() for _ in range(metadata.length())]
            if kind == _GROUP_MEMBER and arguments:
                found[name] = arguments[0]
    return found
