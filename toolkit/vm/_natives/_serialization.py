"""Natives of ``bcs``, ``from_bcs`` and ``util``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.vm._errors import MoveError
from toolkit.vm._natives._registry import NativeCall, native
from toolkit.vm._types import SIGNER, all_parts
from toolkit.vm._values import Ref, Value, read_ref

if TYPE_CHECKING:
    from toolkit.vm._layouts import Layout

_FAILS = 0x1C5
_NOT_A_VALUE = 0x10001


@native("0x1::bcs::to_bytes")
def to_bytes(call: NativeCall, value: Ref) -> tuple[Value]:
    """BCS of a value; signers are bare addresses."""
    layout = call.layout(call.types[0])
    try:
        data = layout.encode(read_ref(value), legacy=True)
    except MoveError as error:
        if error.status == "VM_MAX_VALUE_DEPTH_REACHED":
            raise
        call.charge(call.price("move_stdlib.bcs.to_bytes.failure"))
        raise call.abort(_FAILS) from None
    call.charge(call.price("move_stdlib.bcs.to_bytes.per_byte_serialized") * len(data))
    return (bytearray(data),)


@native("0x1::bcs::serialized_size", price="move_stdlib.bcs.serialized_size")
def serialized_size(call: NativeCall, value: Ref) -> tuple[Value]:
    """Length of the BCS of a value."""
    layout = call.layout(call.types[0])
    try:
        size = len(layout.encode(read_ref(value), legacy=True))
    except MoveError:
        call.charge(call.price("move_stdlib.bcs.serialized_size.failure"))
        raise call.abort(_FAILS) from None
    call.charge(call.price("move_stdlib.bcs.serialized_size.per_byte_serialized") * size)
    return (size,)


@native("0x1::bcs::constant_serialized_size", price="move_stdlib.bcs.constant_serialized_size")
def constant_serialized_size(call: NativeCall) -> tuple[Value]:
    """Length of the BCS of all values of a type, if it is the same."""
    nodes, size = _constant_size(call.layout(call.types[0]))
    call.charge(call.price("move_stdlib.bcs.constant_serialized_size.per_type_node") * nodes)
    return (call.option(size),)


def _constant_size(layout: Layout) -> tuple[int, int | None]:
    """Return how many layouts were looked at, up to the first without a constant size, and the size."""
    if layout.parts[0] != "struct":
        return 1, layout.constant
    nodes, total = 1, 0
    for field in layout.parts[1]:
        more, size = _constant_size(field)
        nodes += more
        if size is None:
            return nodes, None
        total += size
    return nodes, total


@native("0x1::from_bcs::from_bytes", "0x1::util::from_bytes")
def from_bytes(call: NativeCall, data: bytearray) -> tuple[Value]:
    """Value of BCS."""
    layout = call.layout(call.types[0])
    call.charge_base("aptos_framework.util.from_bytes", "per_byte", len(data))
    if SIGNER in all_parts(call.types):
        raise call.abort(_NOT_A_VALUE)
    try:
        return (layout.decode(bytes(data)),)
    except MoveError:
        raise call.abort(_NOT_A_VALUE) from None
