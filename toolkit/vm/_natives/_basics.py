"""Natives of small modules: ``signer``, ``cmp``, ``mem``, ``vector``, ``string``, ``type_info``, ``debug``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.vm._features import MEMORY_OPERATIONS
from toolkit.vm._natives._registry import NativeCall, native
from toolkit.vm._types import Struct, type_list
from toolkit.vm._values import Ref, Value, compare, read_ref, touch, write_ref

if TYPE_CHECKING:
    from toolkit.vm._layouts import Layout


@native("0x1::signer::borrow_address", "0x1::permissioned_signer::borrow_address")
def borrow_address(call: NativeCall, signer: Ref) -> tuple[Ref]:
    """Return a reference to the (master) address."""
    call.charge_base("move_stdlib.signer.borrow_address")
    return ((read_ref(signer), 1, None),)


@native("0x1::cmp::compare")
def compare_values(call: NativeCall, left: Ref, right: Ref) -> tuple[Value]:
    """Order as an enum: 0 less, 1 equal, 2 greater."""
    layout: Layout = call.machine.layouts[call.types[0]]
    values = read_ref(left), read_ref(right)
    for value in values:
        layout.check_depth(value)
    size = sum(layout.measure(value, compared=True) for value in values)
    call.charge_base("move_stdlib.cmp.compare", "per_abs_val_unit", size)
    return ([compare(*values) + 1],)


@native("0x1::mem::swap")
def swap(call: NativeCall, left: Ref, right: Ref) -> None:
    """Swap what two references point to."""
    if not call.feature(MEMORY_OPERATIONS):
        raise call.abort(0xD0001)
    call.charge_base("move_stdlib.mem.swap")
    held = read_ref(left)
    write_ref(left, read_ref(right))
    write_ref(right, held)


@native("0x1::vector::move_range")
def move_range(call: NativeCall, source: Ref, start: int, length: int, target: Ref, place: int) -> None:  # noqa: PLR0917
    """Move elements from one vector into another."""
    if not call.feature(MEMORY_OPERATIONS):
        raise call.abort(0xD0002)
    call.charge_base("move_stdlib.vector.move_range")
    taken, given = touch(source), touch(target)
    if start + length > len(taken) or place > len(given):
        raise call.abort(1)
    moved = (len(taken) - start) + (len(given) - place) + length
    call.charge(call.price("move_stdlib.vector.move_range.per_index_moved") * moved)
    part = taken[start : start + length]
    del taken[start : start + length]
    given[place:place] = part


_NOT_A_STRUCT = 1


@native("0x1::string::internal_check_utf8")
def check_utf8(call: NativeCall, text: Ref) -> tuple[Value]:
    """Whether bytes are UTF-8."""
    raw = read_ref(text)
    call.charge_base("move_stdlib.string.check_utf8", "per_byte", len(raw))
    try:
        raw.decode()
    except UnicodeDecodeError:
        return (False,)
    return (True,)


@native("0x1::string::internal_is_char_boundary", price="move_stdlib.string.is_char_boundary")
def is_char_boundary(_: NativeCall, text: Ref, index: int) -> tuple[Value]:
    """Whether a character starts at an index, or the text ends there."""
    raw = read_ref(text)
    return (index in {0, len(raw)} or (index < len(raw) and raw[index] & 0xC0 != 0x80),)


@native("0x1::string::internal_sub_string", price="move_stdlib.string.sub_string")
def sub_string(call: NativeCall, text: Ref, start: int, end: int) -> tuple[Value]:
    """Part of a text."""
    if end < start:
        raise call.abort(1)
    call.charge(call.price("move_stdlib.string.sub_string.per_byte") * (end - start))
    return (read_ref(text)[start:end],)


@native("0x1::string::internal_index_of")
def index_of(call: NativeCall, text: Ref, pattern: Ref) -> tuple[Value]:
    """Position of the first occurrence, or the length of the text."""
    name = "move_stdlib.string.index_of"
    raw, part = read_ref(text), read_ref(pattern)
    call.charge_base(name)
    call.charge(call.price(f"{name}.per_byte_pattern") * len(part))
    found = raw.find(part)
    index = len(raw) if found < 0 else found
    call.charge(call.price(f"{name}.per_byte_searched") * index)
    return (index,)


@native("0x1::type_info::type_of")
def type_of(call: NativeCall) -> tuple[Value]:
    """Address, module and name of a struct type."""
    name = "aptos_framework.type_info.type_of"
    kind = call.types[0]
    call.charge_base(name)
    call.machine.loader.check_tag(kind)
    call.charge(call.price(f"{name}.per_abstract_memory_unit") * len(str(kind)))
    if not isinstance(kind, Struct):
        raise call.abort(_NOT_A_STRUCT)
    struct_name = kind.name + type_list(kind.arguments)
    return ([kind.module.address, bytearray(kind.module.name.encode()), bytearray(struct_name.encode())],)


@native("0x1::type_info::type_name")
def type_name(call: NativeCall) -> tuple[Value]:
    """Return a type as text."""
    name = "aptos_framework.type_info.type_name"
    call.charge_base(name)
    call.machine.loader.check_tag(call.types[0])
    text = str(call.types[0]).encode()
    call.charge(call.price(f"{name}.per_abstract_memory_unit") * len(text))
    return ([bytearray(text)],)


@native("0x1::type_info::chain_id_internal", price="aptos_framework.type_info.chain_id")
def chain_id(call: NativeCall) -> tuple[Value]:
    """Chain id."""
    return (call.machine.environment.chain_id,)


@native("0x1::debug::native_print", "0x1::debug::print")
def print_nothing(_: NativeCall, __: Value) -> None:
    """Nothing: only test builds print."""


@native("0x1::debug::native_stack_trace")
def stack_trace(_: NativeCall) -> tuple[Value]:
    """No stack trace, likewise."""
    return ([bytearray()],)
