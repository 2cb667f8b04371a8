"""Values and references.

| Move | Python |
|---|---|
| bool, integers, address | bool, int, bytes (32) |
| vector<u8>; other vectors | bytearray; list |
| struct | list of its fields |
| enum | list of the variant's index and its fields |
| signer | an enum: [0, address], or [1, address, permission address] |
| function value | `Closure` |
| reference | `(container, slot, root)`: the value is ``container[slot]``; `root` is its `Global`, or None |

A container is changed in place, so all references into it see the change. Locals are a container, too. The borrow
rules of Move, which the verifier of a node has checked, make it safe to replace a whole value in its slot.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from toolkit.vm._bcs import tag_bytes

if TYPE_CHECKING:
    from toolkit.vm._types import ModuleId, Type

Value: TypeAlias = Any
Ref: TypeAlias = tuple[Any, Any, Any]

MAX_VALUE_DEPTH = 128


class Global(list[Any]):
    """A resource or table entry of the session: a container with one slot, which is None while it is absent.

    Attributes
    ----------
    existed : bool
        Whether the state before the session has the value.
    dirty : bool
        Whether it has been written, even with an equal value.
    delayed : bool
        Whether an aggregator in it has changed, which a node does not count as writing.
    """

    __slots__ = ("delayed", "dirty", "existed")

    def __init__(self, value: Value) -> None:
        super().__init__((value,))
        self.existed = value is not None
        self.dirty = self.delayed = False

    __hash__ = object.__hash__  # type: ignore[assignment]  # an identity, as a root


@dataclass(slots=True, eq=False)
class Closure:
    """A function value: a function with some of its arguments.

    Attributes
    ----------
    module, name : ModuleId, str
        The function.
    types : tuple of Type
        Its type arguments.
    mask : int
        Bit i is set if parameter i is captured.
    captured : list
        The captured arguments.
    layouts : tuple of Layout
        Layouts of the captured arguments.
    persistent : bool
        Whether it may be stored.
    """

    module: ModuleId | None
    name: str
    types: tuple[Type, ...]
    mask: int
    captured: list[Value]
    layouts: tuple[Any, ...]
    persistent: bool = field(kw_only=True)

    def copy(self) -> Closure:
        """Return a copy of the closure and of what it captured."""
        captured = [layout.copy(value) for layout, value in zip(self.layouts, self.captured, strict=True)]
        return replace(self, captured=captured)

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, Closure)  # noqa: S101 - of equal type
        # The mask is not compared, as on a node.
        mine, theirs = (self.module, self.name, self.types), (other.module, other.name, other.types)
        return mine == theirs and self.captured == other.captured

    __hash__ = None  # type: ignore[assignment]


def read_ref(ref: Ref) -> Value:
    """Return the value that a reference points to."""
    return ref[0][ref[1]]


def write_ref(ref: Ref, value: Value) -> None:
    """Replace the value that a reference points to."""
    container, slot, root = ref
    container[slot] = value
    if root is not None:
        root.dirty = True


def touch(ref: Ref) -> Value:
    """Return the container that a reference points to, to be changed in place; it counts as written."""
    container, slot, root = ref
    if root is not None:
        root.dirty = True
    return container[slot]


def depth_of(value: Value, *, measuring: bool) -> int:
    """Return the levels of nesting of a value, at most one more than a value may have.

    Parameters
    ----------
    value : Value
    measuring : bool
        A closure without captured values counts when a value is serialized, but not when it is measured.
    """
    level, depth = [value], 0
    while level and depth <= MAX_VALUE_DEPTH:
        depth += 1
        below: list[Value] = []
        for one in level:
            if isinstance(one, Closure):
                if one.captured or not measuring:
                    below += one.captured or []
            elif isinstance(one, list):
                below += one
        level = below
    return depth


def compare(left: Value, right: Value) -> int:
    """Order two values of one type: -1, 0 or 1. The first difference decides, then the length."""
    if isinstance(left, Closure):
        mine, theirs = _closure_key(left), _closure_key(right)
        if mine != theirs:
            return -1 if mine < theirs else 1
        left, right = left.captured, right.captured
    if isinstance(left, list):
        for one, other in zip(left, right, strict=False):
            if order := compare(one, other):
                return order
        left, right = len(left), len(right)
    return int(left > right) - int(left < right)


def _closure_key(closure: Closure) -> tuple[Any, ...]:
    assert closure.module  # noqa: S101 - scripts cannot make closures over themselves
    return *closure.module, closure.name, [tag_bytes(kind) for kind in closure.types]


def option(value: Value | None, *, is_enum: bool) -> Value:
    """Return a value as an ``Option``, which has become an enum; before, it was a struct with a vector."""
    held = [] if value is None else [value]
    return [len(held), *held] if is_enum else [held]


def signer(address: bytes, permission: bytes | None = None) -> Value:
    """Return the signer of an account, or a permissioned one."""
    return [0, address] if permission is None else [1, address, permission]
