"""What instructions do: one function per group, each returns the step that runs.

A step takes the operand stack, the locals of the frame and the machine. What it costs is known when the function is
compiled, except for globals. Other instructions whose cost depends on values are methods of the machine.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from toolkit.vm._errors import MoveError

if TYPE_CHECKING:
    from toolkit.vm._code import StructDefinition
    from toolkit.vm._types import Primitive, Struct
    from toolkit.vm._values import Value

Stack: TypeAlias = "list[Value]"
Step: TypeAlias = Callable[[Any, Any, Any], Any]

_LONG_NAMES = {"u256": "int256::U256", "i256": "int256::I256"}  # as casts print them
_NO_ELEMENT, _NOTHING_TO_POP, _OTHER_LENGTH = 1, 2, 3  # sub statuses of vector errors


def nothing(stack: Stack, locals_: Stack, machine: Any) -> None:
    """Do nothing: Nop and FreezeRef."""


def pop(stack: Stack, _locals: Stack, _machine: Any) -> None:
    """Drop a scalar or a reference."""
    stack.pop()


# Branches return the index of the operation that follows.


def branch(target: int) -> Step:
    """Go on at a target."""
    return lambda _stack, _locals, _machine: target


def branch_if(target: int) -> Step:
    """Go on at a target if the value on the stack is true."""
    return lambda stack, _locals, _machine: target if stack.pop() else None


def branch_unless(target: int) -> Step:
    """Go on at a target if the value on the stack is false."""
    return lambda stack, _locals, _machine: None if stack.pop() else target


# Locals.


def move_local(index: int) -> Step:
    """Push a local and leave it empty."""

    def run(stack: Stack, locals_: Stack, _machine: Any) -> None:
        stack.append(locals_[index])
        locals_[index] = None

    return run


def store_local(index: int) -> Step:
    """Pop a value into a local."""

    def run(stack: Stack, locals_: Stack, _machine: Any) -> None:
        locals_[index] = stack.pop()

    return run


# References, structs and enums.


def read_reference(stack: Stack, _locals: Stack, _machine: Any) -> None:
    """Replace a reference by the scalar that it points to."""
    container, slot, _ = stack[-1]
    stack[-1] = container[slot]


def write_reference(stack: Stack, _locals: Stack, _machine: Any) -> None:
    """Write a value through a reference."""
    container, slot, root = stack.pop()
    container[slot] = stack.pop()
    if root is not None:
        root.dirty = True


def borrow_field(offset: int) -> Step:
    """Replace a reference to a struct by one to its field."""

    def run(stack: Stack, _locals: Stack, _machine: Any) -> None:
        container, slot, root = stack[-1]
        stack[-1] = (container[slot], offset, root)

    return run


def borrow_variant_field(struct: StructDefinition, offset: int, variants: tuple[int, ...]) -> Step:
    """Replace a reference to an enum by one to a field of some of its variants."""
    names = [one.name for one in struct.variants or ()]
    expected = " or ".join(names[at] for at in variants)

    def run(stack: Stack, _locals: Stack, _machine: Any) -> None:
        container, slot, root = stack[-1]
        value = container[slot]
        if value[0] not in variants:
            message = f"expected enum variant {expected}, found `{names[value[0]]}`"
            raise MoveError("STRUCT_VARIANT_MISMATCH", message)
        stack[-1] = (value, offset + 1, root)

    return run


def pack(count: int, variant: int | None) -> Step:
    """Replace fields by a struct, or by an enum of a variant."""

    def run(stack: Stack, _locals: Stack, _machine: Any) -> None:
        fields = stack[-count:] if count else []
        if count:
            del stack[-count:]
        if variant is not None:
            fields.insert(0, variant)
        stack.append(fields)

    return run


def unpack(stack: Stack, _locals: Stack, _machine: Any) -> None:
    """Replace a struct by its fields."""
    stack.extend(stack.pop())


def unpack_variant(struct: StructDefinition, variant: int) -> Step:
    """Replace an enum by the fields of a variant."""
    names = [one.name for one in struct.variants or ()]

    def run(stack: Stack, _locals: Stack, _machine: Any) -> None:
        value = stack.pop()
        if value[0] != variant:
            # Without the quotes of `borrow_variant_field`, as on a node.
            message = f"expected enum variant {names[variant]}, found {names[value[0]]}"
            raise MoveError("STRUCT_VARIANT_MISMATCH", message)
        stack.extend(value[1:])

    return run


def test_variant(variant: int) -> Step:
    """Replace a reference to an enum by whether it is of a variant."""

    def run(stack: Stack, _locals: Stack, _machine: Any) -> None:
        container, slot, _ = stack[-1]
        stack[-1] = container[slot][0] == variant

    return run


# Integers and booleans.


def _arithmetic(message: str) -> MoveError:
    return MoveError("ARITHMETIC_ERROR", message)


def _checked(compute: Callable[[Any, Any], Any], kind: Primitive, message: str) -> Step:
    minimum, maximum = kind.minimum, kind.maximum

    def run(stack: Stack, _locals: Stack, _machine: Any) -> None:
        right = stack.pop()
        value = compute(stack[-1], right)
        if not minimum <= value <= maximum:
            raise _arithmetic(message)
        stack[-1] = value

    return run


def add(kind: Primitive) -> Step:
    """Add."""
    return _checked(operator.add, kind, "Addition overflow")


def subtract(kind: Primitive) -> Step:
    """Subtract."""
    return _checked(operator.sub, kind, "Subtraction overflow")


def multiply(kind: Primitive) -> Step:
    """Multiply."""
    return _checked(operator.mul, kind, "Multiplication overflow")


def divide(kind: Primitive) -> Step:
    """Divide, toward zero."""
    maximum = kind.maximum

    def run(stack: Stack, _locals: Stack, _machine: Any) -> None:
        right, left = stack.pop(), stack[-1]
        if right == 0:
            raise _arithmetic("Division by zero")
        value = abs(left) // abs(right)
        if (left < 0) != (right < 0):
            value = -value
        if value > maximum:
            raise _arithmetic("Division overflow")
        stack[-1] = value

    return run


def remainder(kind: Primitive) -> Step:
    """Remainder, with the sign of the dividend."""
    minimum = kind.minimum

    def run(stack: Stack, _locals: Stack, _machine: Any) -> None:
        right, left = stack.pop(), stack[-1]
        if right == 0 or (right == -1 and left == minimum):
            raise _arithmetic("Integer remainder by zero")
        value = abs(left) % abs(right)
        stack[-1] = -value if left < 0 else value

    return run


def negate(kind: Primitive) -> Step:
    """Change the sign."""
    minimum = kind.minimum

    def run(stack: Stack, _locals: Stack, _machine: Any) -> None:
        if stack[-1] == minimum:
            raise _arithmetic("Integer negation overflow")
        stack[-1] = -stack[-1]

    return run


def shift_left(kind: Primitive) -> Step:
    """Shift left; high bits are dropped."""
    bits, mask = kind.bits, kind.maximum

    def run(stack: Stack, _locals: Stack, _machine: Any) -> None:
        count = stack.pop()
        if count >= bits:
            raise _arithmetic("Shift Left overflow")
        stack[-1] = stack[-1] << count & mask

    return run


def shift_right(kind: Primitive) -> Step:
    """Shift right."""
    bits = kind.bits

    def run(stack: Stack, _locals: Stack, _machine: Any) -> None:
        count = stack.pop()
        if count >= bits:
            raise _arithmetic("Shift Right overflow")
        stack[-1] >>= count

    return run


def cast(source: Primitive, target: Primitive) -> Step:
    """Convert an integer to another type."""
    minimum, maximum = target.minimum, target.maximum
    source_name = source.name.upper() if source.name in _LONG_NAMES else source.name
    target_name = _LONG_NAMES.get(target.name, target.name)
    if (source.name, target.name) == ("u256", "i256"):  # the one case with the long name of the source on a node
        source_name = _LONG_NAMES["u256"]

    def run(stack: Stack, _locals: Stack, _machine: Any) -> None:
        value = stack[-1]
        if not minimum <= value <= maximum:
            raise _arithmetic(f"Cannot cast {source_name}({value}) to {target_name}")

    return run


def binary(compute: Callable[[Any, Any], Any]) -> Step:
    """Replace two values by what a Python operator makes of them: bits, booleans, comparisons."""

    def run(stack: Stack, _locals: Stack, _machine: Any) -> None:
        right = stack.pop()
        stack[-1] = compute(stack[-1], right)

    return run


def less_than(stack: Stack, _locals: Stack, _machine: Any) -> None:
    """Compare two integers: apart from `binary`, which calls a function more, because loops do it all the time."""
    right = stack.pop()
    stack[-1] = stack[-1] < right


def invert(stack: Stack, _locals: Stack, _machine: Any) -> None:
    """Negate a boolean."""
    stack[-1] = not stack[-1]


def equal(*, through_reference: bool, negated: bool) -> Step:
    """Compare two values, or what two references point to."""

    def run(stack: Stack, _locals: Stack, _machine: Any) -> None:
        right, left = stack.pop(), stack[-1]
        if through_reference:
            left, right = left[0][left[1]], right[0][right[1]]
        stack[-1] = (left == right) is not negated

    return run


# Vectors.


def _vector_error(sub_status: int) -> MoveError:
    return MoveError("VECTOR_OPERATION_ERROR", sub_status=sub_status)


def vector_pack(count: int, *, of_bytes: bool) -> Step:
    """Replace values by a vector."""
    make = bytearray if of_bytes else list

    def run(stack: Stack, _locals: Stack, _machine: Any) -> None:
        values = make(stack[len(stack) - count :])
        del stack[len(stack) - count :]
        stack.append(values)

    return run


def vector_unpack(count: int) -> Step:
    """Replace a vector by its elements."""

    def run(stack: Stack, _locals: Stack, _machine: Any) -> None:
        values = stack.pop()
        if len(values) != count:
            raise _vector_error(_OTHER_LENGTH)
        stack.extend(values)

    return run


def vector_length(stack: Stack, _locals: Stack, _machine: Any) -> None:
    """Replace a reference to a vector by its length."""
    container, slot, _ = stack[-1]
    stack[-1] = len(container[slot])


def vector_borrow(stack: Stack, _locals: Stack, _machine: Any) -> None:
    """Replace a reference to a vector and an index by a reference to the element."""
    index = stack.pop()
    container, slot, root = stack[-1]
    values = container[slot]
    if index >= len(values):
        raise _vector_error(_NO_ELEMENT)
    stack[-1] = (values, index, root)


def vector_push(stack: Stack, _locals: Stack, _machine: Any) -> None:
    """Append a value."""
    value = stack.pop()
    container, slot, root = stack.pop()
    container[slot].append(value)
    if root is not None:
        root.dirty = True


def vector_pop(stack: Stack, _locals: Stack, _machine: Any) -> None:
    """Take the last element."""
    container, slot, root = stack.pop()
    values = container[slot]
    if not values:
        raise _vector_error(_NOTHING_TO_POP)
    stack.append(values.pop())
    if root is not None:
        root.dirty = True


def vector_swap(stack: Stack, _locals: Stack, _machine: Any) -> None:
    """Swap two elements."""
    second, first = stack.pop(), stack.pop()
    container, slot, root = stack.pop()
    values = container[slot]
    if max(first, second) >= len(values):
        raise _vector_error(_NO_ELEMENT)
    values[first], values[second] = values[second], values[first]
    if root is not None:
        root.dirty = True


# Globals: a resource is loaded before the instruction is charged.


def _exists(kind: Struct, price: int, name: str) -> Step:
    def run(stack: Stack, _locals: Stack, machine: Any) -> None:
        cell = machine.resource(stack[-1], kind, price, name, writes=False)
        stack[-1] = cell[0] is not None

    return run


def _borrow_global(kind: Struct, price: int, name: str) -> Step:
    mutable = name.startswith("MUT")

    def run(stack: Stack, _locals: Stack, machine: Any) -> None:
        cell = machine.resource(stack[-1], kind, price, name, writes=mutable, failure="borrow global resource from")
        stack[-1] = (cell, 0, cell)

    return run


def _move_from(kind: Struct, price: int, name: str) -> Step:
    def run(stack: Stack, _locals: Stack, machine: Any) -> None:
        cell = machine.resource(stack[-1], kind, price, name, writes=True, failure="move resource from")
        stack[-1], cell[0] = cell[0], None

    return run


def _move_to(kind: Struct, price: int, name: str) -> Step:
    def run(stack: Stack, _locals: Stack, machine: Any) -> None:
        value, (container, slot, _) = stack.pop(), stack.pop()
        cell = machine.resource(container[slot][1], kind, price, name, writes=True, failure="move resource into")
        cell[0] = value
        cell.dirty = True

    return run


GLOBALS = {
    "Exists": _exists,
    "ImmBorrowGlobal": _borrow_global,
    "MutBorrowGlobal": _borrow_global,
    "MoveFrom": _move_from,
    "MoveTo": _move_to,
}
