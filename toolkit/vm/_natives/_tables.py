"""Natives of ``table`` and ``event``. Loads of items cost execution gas, at the prices of resources."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from toolkit.vm._environment import FIX_MEMORY_TRACKING, FIX_TABLE_MEMORY
from toolkit.vm._errors import MoveError
from toolkit.vm._natives._registry import NativeCall, native
from toolkit.vm._state import Event
from toolkit.vm._types import Struct
from toolkit.vm._values import Global, Ref, Value, read_ref

if TYPE_CHECKING:
    from toolkit.vm._layouts import Layout

_ALREADY_EXISTS, _NOT_FOUND = 0x6407, 0x6507


class Tables:
    """Tables of a session: how many were made, and the layouts at the first use of each."""

    def __init__(self) -> None:
        self.made = 0
        self.layouts: dict[bytes, tuple[Layout, Layout]] = {}


@native("0x1::table::new_table_handle", price="table.new_table_handle")
def new_table_handle(call: NativeCall) -> tuple[Value]:
    """Handle of a new table."""
    tables = call.context(Tables)
    handle = hashlib.sha3_256(call.machine.session.hash + tables.made.to_bytes(4, "big")).digest()
    tables.made += 1
    return (handle,)


def _item(call: NativeCall, table: Ref | Value, key: Value, name: str) -> Global:
    """Charge the key, and the load if this is the first use, and return the item."""
    call.charge_base(f"table.{name}")
    value = read_ref(table) if isinstance(table, tuple) else table
    handle = value[0]
    layouts = call.context(Tables).layouts
    if handle not in layouts:
        layouts[handle] = call.layout(call.types[0]), call.layout(call.types[2])
    key_layout, value_layout = layouts[handle]
    raw = key_layout.encode(key)
    call.charge(call.price(f"table.{name}.per_byte_serialized") * len(raw))
    cell, loaded = call.machine.session.load_item(handle, raw, value_layout)
    _take_memory(call, cell, loaded)
    call.charge(0)  # the legacy base price, which is not read
    if loaded is not None:
        call.charge(call.machine.read_price(loaded))
    return cell


def _take_memory(call: NativeCall, cell: Global, loaded: int | None) -> None:
    environment = call.machine.environment
    if cell[0] is None or not environment.timed(FIX_MEMORY_TRACKING):
        return
    if loaded is None and environment.timed(FIX_TABLE_MEMORY):
        return
    layout = call.machine.layouts[call.types[2]]
    call.machine.meter.use_memory(layout.measure(cell[0]) - layout.stack, "heap")


@native("0x1::table::add_box")
def add_box(call: NativeCall, table: Ref, key: Value, box: Value) -> None:
    """Add an item."""
    cell = _item(call, table, key, "add_box")
    if cell[0] is not None:
        raise call.abort(_ALREADY_EXISTS)
    cell[0] = box
    cell.dirty = True


@native("0x1::table::borrow_box", "0x1::table::borrow_box_mut")
def borrow_box(call: NativeCall, table: Ref, key: Value) -> tuple[Ref]:
    """Return a reference to an item."""
    cell = _item(call, table, key, "borrow_box")
    if cell[0] is None:
        raise call.abort(_NOT_FOUND)
    return ((cell, 0, cell),)


@native("0x1::table::contains_box")
def contains_box(call: NativeCall, table: Ref, key: Value) -> tuple[Value]:
    """Whether an item is there."""
    return (_item(call, table, key, "contains_box")[0] is not None,)


@native("0x1::table::remove_box")
def remove_box(call: NativeCall, table: Ref, key: Value) -> tuple[Value]:
    """Take an item out."""
    cell = _item(call, table, key, "remove_box")
    if cell[0] is None:
        raise call.abort(_NOT_FOUND)
    box, cell[0] = cell[0], None
    return (box,)


@native("0x1::table::destroy_empty_box", price="table.destroy_empty_box")
@native("0x1::table::drop_unchecked_box", price="table.drop_unchecked_box")
def drop_box(*_: Value) -> None:
    """Nothing: a table itself is not stored."""


_KEY_LENGTH = 40  # bytes: a u64 and an address


def _charge(call: NativeCall, message: Value) -> None:
    size = call.machine.layouts[call.types[0]].measure(message)
    call.charge_base("aptos_framework.event.write_to_event_store", "per_abstract_memory_unit", size)


@native("0x1::event::write_to_event_store")
def write_to_event_store(call: NativeCall, guid: bytearray, count: int, message: Value) -> None:
    """Emit an event of a handle."""
    _charge(call, message)
    kind = call.types[0]
    call.machine.loader.check_tag(kind)
    data = call.layout(kind).encode(message)
    if len(guid) != _KEY_LENGTH:
        raise MoveError("EVENT_KEY_MISMATCH")
    call.machine.session.events.append(Event(kind, bytes(guid), count, data))


@native("0x1::event::write_module_event_to_store")
def write_module_event_to_store(call: NativeCall, message: Value) -> None:
    """Emit an event of a module: only the module that defines its type may."""
    _charge(call, message)
    kind = call.types[0]
    # The frame that runs is that of event::emit.
    emitting = call.machine.frames[-2].module if len(call.machine.frames) > 1 else None
    if emitting is None:
        raise MoveError("UNKNOWN_INVARIANT_VIOLATION_ERROR", "a script emits an event")
    if not isinstance(kind, Struct) or kind.module != emitting:
        raise MoveError("INTERNAL_TYPE_ERROR", f"{emitting} emits an event of another module")
    call.machine.loader.check_tag(kind)
    data = call.layout(kind).encode(message)
    call.machine.session.events.append(Event(kind, None, 0, data))
