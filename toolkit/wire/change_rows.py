"""Rows of state changes: one function per kind, each a plain tuple in the order of `CHANGE_COLUMNS`.

The version is left out: a row has the position of its transaction, whose version is a number by then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from toolkit.wire.spellings import hex_bytes
from toolkit.wire.structs import (
    DeleteModule,
    DeleteResource,
    DeleteTableItem,
    GenericChange,
    WriteModule,
    WriteResource,
    WriteTableItem,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.wire.spellings import Spellings

__all__ = ["CHANGE_ROWS", "Row"]

Row = tuple[Any, ...]


class _AbiHead(msgspec.Struct, gc=False):
    name: str


class _ModuleHead(msgspec.Struct, gc=False):
    abi: _AbiHead | None = None


class _ItemTypes(msgspec.Struct, gc=False):
    key_type: str | None = None
    value_type: str | None = None


_decode_module_head = msgspec.json.Decoder(_ModuleHead).decode
_decode_item_types = msgspec.json.Decoder(_ItemTypes).decode

# Columns: transaction_index, change_index, type, address, state_key_hash, resource_type, module, handle, key, value,
# key_type, value_type, data. Tuples are written out in full, since they are made by the hundred thousand.


def _write_resource(known: Spellings, position: int, index: int, change: WriteResource) -> Row:
    address, resource = known.addresses[change.address], change.data
    resource_type, data = known.types[resource.type], str(resource.data, "utf-8")
    head = (position, index, "write_resource", address, change.state_key_hash, resource_type)
    return (*head, None, None, None, None, None, None, data)


def _delete_resource(known: Spellings, position: int, index: int, change: DeleteResource) -> Row:
    address, resource_type = known.addresses[change.address], known.types[change.resource]
    head = (position, index, "delete_resource", address, change.state_key_hash, resource_type)
    return (*head, None, None, None, None, None, None, None)


def _write_module(known: Spellings, position: int, index: int, change: WriteModule) -> Row:
    address = known.addresses[change.address]
    abi = _decode_module_head(change.data).abi
    module = None if abi is None else f"{address}::{abi.name}"
    head = (position, index, "write_module", address, change.state_key_hash, None, module)
    return (*head, None, None, None, None, None, str(change.data, "utf-8"))


def _delete_module(known: Spellings, position: int, index: int, change: DeleteModule) -> Row:
    address, module = known.addresses[change.address], known.types[change.module]
    head = (position, index, "delete_module", address, change.state_key_hash, None, module)
    return (*head, None, None, None, None, None, None)


def _write_table_item(known: Spellings, position: int, index: int, change: WriteTableItem) -> Row:
    key, value = hex_bytes(change.key), hex_bytes(change.value)
    handle = known.handles[change.handle]
    head = (position, index, "write_table_item", None, change.state_key_hash, None, None, handle, key, value)
    return head + _item_data(known, change.data)


def _delete_table_item(known: Spellings, position: int, index: int, change: DeleteTableItem) -> Row:
    handle, key = known.handles[change.handle], hex_bytes(change.key)
    head = (position, index, "delete_table_item", None, change.state_key_hash, None, None, handle, key, None)
    return head + _item_data(known, change.data)


def _item_data(known: Spellings, data: msgspec.Raw) -> tuple[str | None, str | None, str | None]:
    text = str(data, "utf-8")
    if text == "null":
        return (None, None, None)
    types = _decode_item_types(data)
    key_type, value_type = types.key_type, types.value_type
    return (
        None if key_type is None else known.types[key_type],
        None if value_type is None else known.types[value_type],
        text,
    )


def _generic_change(known: Spellings, position: int, index: int, change: GenericChange) -> Row:
    del known  # an unknown kind may hold anything, so nothing in it is spelled anew
    head = (position, index, change.type)
    return (*head, None, None, None, None, None, None, None, None, None, change.raw.decode())


#: How to make the row of each kind of change.
CHANGE_ROWS: dict[type, Callable[[Spellings, int, int, Any], Row]] = {
    WriteResource: _write_resource,
    DeleteResource: _delete_resource,
    WriteModule: _write_module,
    DeleteModule: _delete_module,
    WriteTableItem: _write_table_item,
    DeleteTableItem: _delete_table_item,
    GenericChange: _generic_change,
}
