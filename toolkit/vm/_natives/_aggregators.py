"""Natives of ``aggregator``, ``aggregator_factory`` and ``aggregator_v2``.

Old aggregators are table items. What is added without reading is collected, with the bounds of its history, and meets
the stored value only when it is read or at the end. New aggregators are plain structs.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from toolkit.vm._errors import MoveError
from toolkit.vm._natives._registry import NativeCall, native
from toolkit.vm._state import Change, Contribution, Overlay, WriteKind, item_key
from toolkit.vm._types import U64, U128, Primitive
from toolkit.vm._values import Ref, Value, read_ref

if TYPE_CHECKING:
    from toolkit.vm._types import Type

_OVERFLOW, _UNDERFLOW = 0x020001, 0x020002
_OTHER_TYPE, _OTHER_SNAPSHOT_TYPE = 0x30007, 0x30005
_TOO_LONG, _DEPRECATED = 0x30008, 0x30009
_MAX_STRING = 1024
_MIN_DERIVED_WIDTH = 22
_MAX_DIGITS = {U64: 20, U128: 39}


class _Old:
    """An old aggregator in a session: a known value, or what was added to an unknown one."""

    def __init__(self, limit: int, value: int | None) -> None:
        self.limit = limit
        self.value = value
        self.delta = self.highest = self.lowest = 0

    def add(self, amount: int) -> int | None:
        """Add an amount, or subtract it if negative; return the abort code if it leaves the bounds."""
        if self.value is not None:
            new = self.value + amount
            if not 0 <= new <= self.limit:
                return _OVERFLOW if amount > 0 else _UNDERFLOW
            self.value = new
            return None
        new = self.delta + amount
        if not -self.limit <= new <= self.limit:
            return _OVERFLOW if amount > 0 else _UNDERFLOW
        self.delta = new
        self.highest, self.lowest = max(self.highest, new), min(self.lowest, new)
        return None

    def resolve(self, stored: int) -> int | None:
        """Meet the stored value; return the abort code if it would have left the bounds meanwhile."""
        if stored + self.highest > self.limit:
            return _OVERFLOW
        if stored + self.lowest < 0:
            return _UNDERFLOW
        self.value = stored + self.delta
        return None


class OldAggregators(Contribution):
    """The old aggregators that a session touched, by state key; None if destroyed."""

    def __init__(self) -> None:
        self.touched: dict[bytes, _Old | None] = {}
        self.count = 0

    def changes(self, state: Overlay) -> dict[bytes, Change]:
        """Return their values."""
        changes = {}
        for key, held in self.touched.items():
            if held is None:
                changes[key] = Change(None)
                continue
            known = held.value is not None
            if not known and held.resolve(_stored(state, key)) is not None:
                raise MoveError("UNKNOWN_INVARIANT_VIOLATION_ERROR", "an aggregator leaves its bounds at the end")
            assert held.value is not None  # noqa: S101 - resolved
            changes[key] = Change(held.value.to_bytes(16, "little"), WriteKind.AGGREGATOR if known else WriteKind.DELTA)
        return changes


def _stored(state: Overlay, key: bytes) -> int:
    found = state.get(key)
    if found is None:
        raise MoveError("MISSING_DATA", "the aggregator has no stored value")
    return int.from_bytes(found[0], "little")


def _old(call: NativeCall, aggregator: Ref) -> tuple[bytes, _Old]:
    handle, key, limit = read_ref(aggregator)
    store = call.context(OldAggregators)
    place = item_key(handle, key)
    held = store.touched.get(place)
    if held is None:
        held = store.touched[place] = _Old(limit, None)
        store.count += 1
    return place, held


@native("0x1::aggregator_factory::new_aggregator", price="aptos_framework.aggregator_factory.new_aggregator")
def new_aggregator(call: NativeCall, factory: Ref, limit: int) -> tuple[Value]:
    """Old aggregator of value 0."""
    store = call.context(OldAggregators)
    handle = read_ref(factory)[0][0]
    key = hashlib.sha3_256(call.machine.session.hash + store.count.to_bytes(4, "big")).digest()
    store.count += 1
    store.touched[item_key(handle, key)] = _Old(limit, 0)
    return ([handle, key, limit],)


def _register_sum(name: str, sign: int) -> None:
    """Register what adds to an aggregator, or subtracts from it: to an old one, or it aborts; to a new one, or not."""

    @native(f"0x1::aggregator::{name}", price=f"aptos_framework.aggregator.{name}")
    def change_old(call: NativeCall, aggregator: Ref, amount: int) -> None:
        if (code := _old(call, aggregator)[1].add(sign * amount)) is not None:
            raise call.abort(code)

    @native(f"0x1::aggregator_v2::try_{name}", price=f"aptos_framework.aggregator_v2.try_{name}")
    def change_new(call: NativeCall, aggregator: Ref, amount: int) -> tuple[Value]:
        _integer(call, _OTHER_TYPE)
        container, slot, root = aggregator
        value, maximum = container[slot]
        if not 0 <= value + sign * amount <= maximum:
            return (False,)
        container[slot][0] += sign * amount
        if root is not None:
            root.delayed = True
        return (True,)


_register_sum("add", 1)
_register_sum("sub", -1)


@native("0x1::aggregator::read", price="aptos_framework.aggregator.read")
def read(call: NativeCall, aggregator: Ref) -> tuple[Value]:
    """Value."""
    key, held = _old(call, aggregator)
    if held.value is None and (code := held.resolve(_stored(call.machine.session.state, key))) is not None:
        raise call.abort(code)
    return (held.value,)


@native("0x1::aggregator::destroy", price="aptos_framework.aggregator.destroy")
def destroy(call: NativeCall, aggregator: Value) -> None:
    """Delete the value."""
    handle, key, _ = aggregator
    call.context(OldAggregators).touched[item_key(handle, key)] = None


# New aggregators.


def _integer(call: NativeCall, code: int) -> Primitive:
    kind: Type = call.types[0]
    if kind is not U64 and kind is not U128:
        raise call.abort(code)
    assert isinstance(kind, Primitive)  # noqa: S101 - one of the two
    return kind


@native("0x1::aggregator_v2::create_aggregator", price="aptos_framework.aggregator_v2.create_aggregator")
def create_aggregator(call: NativeCall, maximum: int) -> tuple[Value]:
    """Return an aggregator of value 0 with a maximum."""
    _integer(call, _OTHER_TYPE)
    return ([0, maximum],)


@native("0x1::aggregator_v2::create_unbounded_aggregator", price="aptos_framework.aggregator_v2.create_aggregator")
def create_unbounded_aggregator(call: NativeCall) -> tuple[Value]:
    """Return an aggregator of value 0 with the maximum of its type."""
    return ([0, _integer(call, _OTHER_TYPE).maximum],)


@native("0x1::aggregator_v2::is_at_least_impl", price="aptos_framework.aggregator_v2.is_at_least")
def is_at_least(call: NativeCall, aggregator: Ref, minimum: int) -> tuple[Value]:
    """Whether the value is at least a minimum."""
    _integer(call, _OTHER_TYPE)
    return (read_ref(aggregator)[0] >= minimum,)


@native("0x1::aggregator_v2::read", price="aptos_framework.aggregator_v2.read")
def read_new(call: NativeCall, aggregator: Ref) -> tuple[Value]:
    """Value."""
    _integer(call, _OTHER_TYPE)
    return (read_ref(aggregator)[0],)


@native("0x1::aggregator_v2::snapshot", price="aptos_framework.aggregator_v2.snapshot")
def snapshot(call: NativeCall, aggregator: Ref) -> tuple[Value]:
    """Snapshot of the value."""
    _integer(call, _OTHER_TYPE)
    return ([read_ref(aggregator)[0]],)


@native("0x1::aggregator_v2::create_snapshot", price="aptos_framework.aggregator_v2.create_snapshot")
def create_snapshot(call: NativeCall, value: Value) -> tuple[Value]:
    """Snapshot of a number."""
    _integer(call, _OTHER_SNAPSHOT_TYPE)
    return ([value],)


@native("0x1::aggregator_v2::read_snapshot", price="aptos_framework.aggregator_v2.read_snapshot")
def read_snapshot(call: NativeCall, held: Ref) -> tuple[Value]:
    """Value of a snapshot."""
    _integer(call, _OTHER_SNAPSHOT_TYPE)
    return (read_ref(held)[0],)


def _length_size(length: int) -> int:
    return max(1, -(-length.bit_length() // 7))


def _derived(text: bytes, width: int) -> Value:
    """Pad a string to a width, so that its length in the state does not depend on the number in it."""
    return [[bytearray(text)], bytearray(width - _length_size(len(text)) - len(text) - 1)]


@native("0x1::aggregator_v2::create_derived_string")
def create_derived_string(call: NativeCall, value: Value) -> tuple[Value]:
    """Return a derived string of a constant."""
    text = bytes(value[0])
    call.charge_base("aptos_framework.aggregator_v2.create_snapshot")
    call.charge(call.price("aptos_framework.aggregator_v2.create_snapshot.per_byte") * len(text))
    if len(text) > _MAX_STRING:
        raise call.abort(_TOO_LONG)
    width = max(_length_size(len(text)) + len(text) + 1, _MIN_DERIVED_WIDTH)
    return (_derived(text, width),)


@native("0x1::aggregator_v2::derive_string_concat")
def derive_string_concat(call: NativeCall, before: Value, held: Ref, after: Value) -> tuple[Value]:
    """Return a derived string of a number between two texts."""
    name = "aptos_framework.aggregator_v2.string_concat"
    prefix, suffix = bytes(before[0]), bytes(after[0])
    call.charge_base(name)
    kind = _integer(call, _OTHER_SNAPSHOT_TYPE)
    for part in (suffix, prefix):
        call.charge(call.price(f"{name}.per_byte") * len(part))
    if len(prefix) + len(suffix) > _MAX_STRING:
        raise call.abort(_TOO_LONG)
    longest = len(prefix) + len(suffix) + _MAX_DIGITS[kind]
    text = prefix + str(read_ref(held)[0]).encode() + suffix
    return (_derived(text, _length_size(longest) + longest + 1),)


@native("0x1::aggregator_v2::read_derived_string", price="aptos_framework.aggregator_v2.read_snapshot")
def read_derived_string(_: NativeCall, held: Ref) -> tuple[Value]:
    """Text of a derived string."""
    return ([read_ref(held)[0][0][:]],)


@native("0x1::aggregator_v2::copy_snapshot", "0x1::aggregator_v2::string_concat")
def deprecated(call: NativeCall, *_: Value) -> None:
    """Abort: these are no longer offered."""
    raise call.abort(_DEPRECATED)
