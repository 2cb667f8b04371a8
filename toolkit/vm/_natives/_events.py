"""Natives of ``event``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.vm._errors import MoveError
from toolkit.vm._natives._registry import NativeCall, native
from toolkit.vm._state import Event
from toolkit.vm._types import Struct

if TYPE_CHECKING:
    from toolkit.vm._values import Value

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
    emitting = call.machine.frame.parent if call.machine.frame else None
    if emitting is None or emitting.module is None:
        raise MoveError("UNKNOWN_INVARIANT_VIOLATION_ERROR", "a script emits an event")
    if not isinstance(kind, Struct) or kind.module != emitting.module:
        raise MoveError("INTERNAL_TYPE_ERROR", f"{emitting.module} emits an event of another module")
    call.machine.loader.check_tag(kind)
    data = call.layout(kind).encode(message)
    call.machine.session.events.append(Event(kind, None, 0, data))
