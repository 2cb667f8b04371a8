"""Natives of small modules: ``signer``, ``cmp``, ``mem``, ``vector``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.vm._features import MEMORY_OPERATIONS
from toolkit.vm._natives._registry import NativeCall, native
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
