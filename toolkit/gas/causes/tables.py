"""Which resource a table belongs to: an item is written by its table's handle, which tells a reader nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit._present.text import visible
from toolkit.errors import InputError
from toolkit.gas.causes.evidence import UNREAD
from toolkit.gas.causes.writes import struct_of
from toolkit.move import ModuleId, StructTag, decode_bcs, parse_table_handle, parse_type_tag

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.gas.causes.evidence import Evidence
    from toolkit.gas.causes.writes import Write, Written

__all__ = ["Table", "key_words", "tables_of"]

_DEEPEST = 8
_WRAPPERS = frozenset({"inner", "buckets"})
"""Fields inside the library's own table types: of no use to a reader."""
_PLAIN = frozenset({("0x1", "table"), ("0x1", "table_with_length")})
"""Modules of tables whose items are under the keys that users gave; others hash them into buckets."""
_MOST_RESOURCES = 8


class Table(NamedTuple):
    """A table by the resource and the field that hold it; `key_type` where the module's ABI tells it."""

    resource: str
    field: str
    key_type: str | None


def tables_of(called: ModuleId, written: Written, evidence: Evidence, version: int) -> dict[str, Table]:
    """Find the tables that the called module keeps at its own address, and those in resources just written.

    Parameters
    ----------
    called : ModuleId
    written : Written
        The transaction's writes.
    evidence : Evidence
    version : int
        Version of that transaction.

    Returns
    -------
    dict of str to Table
        By canonical handle; what cannot be read is left out.
    """
    found: dict[str, Table] = {}
    for write in written.writes:
        if write.resource is not None:
            found |= _tables_in(write.resource, write.document, evidence, version)
    for tag in _own_resources(called, evidence, version):
        try:
            document = evidence.resource(called.address, tag, version)
        except UNREAD:
            continue
        found |= _tables_in(tag, document, evidence, version)
    return found


def key_words(write: Write, table: Table | None, evidence: Evidence, version: int) -> str:
    """Say which item of a table was written: its key decoded where its type is known, else as hex."""
    key = write.key or b""
    if table is not None and table.key_type is not None:
        try:
            layout = evidence.layout(table.key_type, version)
            return visible(repr(decode_bcs(layout, key)), 60)
        except (*UNREAD, InputError):
            pass
    return f"0x{key.hex()}" if len(key) <= _DEEPEST else f"0x{key[:_DEEPEST].hex()}…"


def _own_resources(called: ModuleId, evidence: Evidence, version: int) -> list[str]:
    """Return the resource types of a module that need no type arguments."""
    try:
        abi = evidence.module(called, version).abi
    except UNREAD:
        return []
    structs = [] if abi is None else [s for s in abi.structs if "key" in s.abilities and not s.generic_type_params]
    return [f"{called}::{struct.name}" for struct in structs[:_MOST_RESOURCES]]


def _tables_in(tag: str, document: Any, evidence: Evidence, version: int) -> dict[str, Table]:
    found = {}
    for handle, path in _handles(document, ()):
        field = ".".join(name for name in path if name not in _WRAPPERS)
        found[handle] = Table(tag.partition("<")[0], field, _key_type(tag, path, evidence, version))
    return found


def _handles(document: Any, path: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Walk a document and yield the handles in it, each with its path."""
    if len(path) > _DEEPEST or not isinstance(document, dict):
        return
    for name, value in document.items():
        if name == "handle" and isinstance(value, str):
            try:
                yield parse_table_handle(value), path
            except InputError:
                continue
        else:
            yield from _handles(value, (*path, str(name)))


def _key_type(tag: str, path: tuple[str, ...], evidence: Evidence, version: int) -> str | None:
    """Return the key type of a table that is a field of a resource itself, as its module's ABI declares it."""
    module, struct = struct_of(tag)
    try:
        abi = evidence.module(ModuleId.parse(module), version).abi
        declared = None if abi is None else abi.struct(struct)
        texts = [field.type for field in declared.fields if field.name == path[0]] if declared and path else []
        kind = parse_type_tag(texts[0], abi=True) if texts else None
    except (*UNREAD, InputError):
        return None
    if not isinstance(kind, StructTag) or (kind.address, kind.module) not in _PLAIN:
        return None
    return str(kind.type_arguments[0])
