"""Instructions: what each takes from the stack and leaves there, what it costs, and the step that does it.

An operation is called when a function is compiled: with the compiler, the name of the instruction and its operand. It
takes types from the compiler's stack, puts others there, and returns the step, which takes the operand stack, the
locals of the frame and the machine. A step whose cost depends on values charges itself.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from toolkit.errors import Unsupported
from toolkit.vm import _types as t
from toolkit.vm._code import LOG_NAMES
from toolkit.vm._errors import MoveError, refused
from toolkit.vm._gas import Entry
from toolkit.vm._values import read_ref, touch

if TYPE_CHECKING:
    from toolkit.vm._code import Constant, FieldUse, FunctionUse, StructUse
    from toolkit.vm._compile import Compiler
    from toolkit.vm._layouts import Layout
    from toolkit.vm._values import Value

MAX_STACK = 1024

Stack: TypeAlias = "list[Value]"
Step: TypeAlias = Callable[[Any, Any, Any], Any]

_LONG_NAMES = {"u256": "int256::U256", "i256": "int256::I256"}  # as casts print them
_NO_ELEMENT, _NOTHING_TO_POP, _OTHER_LENGTH = 1, 2, 3  # sub statuses of vector errors


class Operation(NamedTuple):
    """How an instruction is compiled.

    Attributes
    ----------
    compile : callable
    charges : bool
        Whether it adds the charges itself; else the one price of the instruction is charged.
    """

    compile: Callable[[Compiler, str, Any], Step]
    charges: bool


OPERATIONS: dict[str, Operation] = {}


def _instructions(names: str, *, charges: bool = False) -> Callable[[Any], Any]:
    """Register the operation of some instructions; a star stands for the generic form, too."""

    def register(compiles: Callable[[Compiler, str, Any], Step]) -> Callable[[Compiler, str, Any], Step]:
        for name in names.split():
            plain = name.rstrip("*")
            for one in {plain, name.replace("*", "Generic")}:
                OPERATIONS[one] = Operation(compiles, charges)
        return compiles

    return register


# Control flow: a step may return the offset at which to go on.


def _nothing(_stack: Stack, _locals: Stack, _machine: Any) -> None:
    """Do nothing."""


@_instructions("Nop")
def _nop(_c: Compiler, _name: str, _: None) -> Step:
    return _nothing


@_instructions("Branch BrTrue BrFalse", charges=True)
def _branch(c: Compiler, name: str, target: int) -> Step:
    if not c.price(name):
        raise Unsupported("a gas schedule with free branches, in which loops would not end")
    # The log names the target of a branch that is taken.
    c.entries.append(Entry(LOG_NAMES[name], f"@{target}", c.price(name)))
    c.end_piece()
    if name == "Branch":
        return lambda _stack, _locals, _machine: target
    c.pop(t.BOOL)
    if name == "BrTrue":
        return lambda stack, _locals, _machine: target if stack.pop() else None
    return lambda stack, _locals, _machine: None if stack.pop() else target


@_instructions("Ret")
def _return(c: Compiler, _name: str, _: None) -> Step:
    c.pop_all(c.code.results)
    if c.stack:
        raise c.refused("values are left on the stack at the return")
    c.end_piece()
    held = {at: kind for at, kind in enumerate(c.locals) if not t.is_scalar(kind)}
    return lambda _stack, locals_, machine: machine.leave(locals_, held)


@_instructions("Abort")
def _abort(c: Compiler, _name: str, _: None) -> Step:
    c.pop(t.U64)
    c.stack.clear()
    c.end_piece()
    offset = c.offset
    return lambda stack, _locals, machine: machine.abort(stack.pop(), offset)


# Constants and locals.


@_instructions("LdTrue LdFalse LdU8 LdU16 LdU32 LdU64 LdU128 LdU256 LdI8 LdI16 LdI32 LdI64 LdI128 LdI256")
def _load(c: Compiler, name: str, operand: int | None) -> Step:
    is_bool, value = operand is None, name == "LdTrue" if operand is None else operand
    c.stack.append(t.BOOL if is_bool else t.INTEGERS[name[2:].lower()])
    return lambda stack, _locals, _machine: stack.append(value)


@_instructions("LdConst", charges=True)
def _load_constant(c: Compiler, name: str, constant: Constant) -> Step:
    kind = c.make(constant.type)
    c.charge(name, per=".per_byte", count=len(constant.data))
    layout = _constant_layout(c, kind)
    value = layout.decode(constant.data)
    heap = layout.measure(value) - layout.stack
    if heap:
        c.entries.append(Entry("const", memory=heap))
    c.stack.append(kind)
    return lambda stack, _locals, _machine: stack.append(layout.copy(value))


def _constant_layout(c: Compiler, kind: t.Type) -> Layout:
    if isinstance(kind, t.Vector):
        return c.layouts.vector(_constant_layout(c, kind.element))
    if not isinstance(kind, t.Primitive):
        raise c.refused(f"a constant of type {kind}")
    return c.layouts.primitives[kind.name]


@_instructions("CopyLoc", charges=True)
def _copy_local(c: Compiler, name: str, index: int) -> Step:
    kind = c.locals[index]
    c.stack.append(kind)
    if t.is_scalar(kind):
        c.charge(name, per=".per_abs_val_unit", count=c.stack_size(kind))
        return lambda stack, locals_, _machine: stack.append(locals_[index])
    prices = c.measured_prices(name)
    return lambda stack, locals_, machine: stack.append(machine.copied(locals_[index], kind, prices, "COPY_LOC"))


def _unless_borrowed(c: Compiler, index: int, step: Step) -> Step:
    """Return a step that also checks that a local is not borrowed, if the code is that of a script."""
    if c.definition.module is not None or isinstance(c.locals[index], t.Reference):
        return step

    def run(stack: Stack, locals_: Stack, machine: Any) -> None:
        _check_not_borrowed(locals_, index, stack)
        step(stack, locals_, machine)

    return run


def _check_not_borrowed(locals_: Stack, index: int, stack: Stack) -> None:
    """Check that no reference of a script points into a local that it moves or overwrites.

    Raises
    ------
    Unsupported
        If one does.
    """
    held = locals_[index]
    for value in (*stack, *locals_):
        if not isinstance(value, tuple):
            continue
        container, slot, root = value
        if root is None and ((container is locals_ and slot == index) or _contains(held, container)):
            raise refused("script", f"local {index} is still borrowed")


def _contains(value: Any, container: Any) -> bool:
    if value is container and isinstance(value, list | bytearray):
        return True
    return isinstance(value, list) and any(_contains(one, container) for one in value)


@_instructions("MoveLoc")
def _move_local(c: Compiler, _name: str, index: int) -> Step:
    c.stack.append(c.locals[index])

    def run(stack: Stack, locals_: Stack, _machine: Any) -> None:
        stack.append(locals_[index])
        locals_[index] = None

    return _unless_borrowed(c, index, run)


@_instructions("StLoc")
def _store_local(c: Compiler, _name: str, index: int) -> Step:
    c.pop(c.locals[index])

    def run(stack: Stack, locals_: Stack, _machine: Any) -> None:
        locals_[index] = stack.pop()

    return _unless_borrowed(c, index, run)


@_instructions("MutBorrowLoc ImmBorrowLoc")
def _borrow_local(c: Compiler, name: str, index: int) -> Step:
    if isinstance(c.locals[index], t.Reference):
        raise c.refused("a reference to a reference")
    c.stack.append(t.Reference(c.locals[index], name.startswith("Mut")))
    return lambda stack, locals_, _machine: stack.append((locals_, index, None))


def _drop_scalar(stack: Stack, _locals: Stack, _machine: Any) -> None:
    stack.pop()


@_instructions("Pop", charges=True)
def _pop(c: Compiler, name: str, _: None) -> Step:
    kind = c.pop()
    if t.is_scalar(kind):
        c.charge(name)
        return _drop_scalar
    price, _per = c.measured_prices(name)
    return lambda stack, _locals, machine: machine.release(stack.pop(), kind, price, "POP")


# References, structs and enums.


@_instructions("FreezeRef")
def _freeze(c: Compiler, _name: str, _: None) -> Step:
    c.stack.append(t.Reference(c.pop_reference(mutable=True), False))  # noqa: FBT003
    return _nothing


def _read_scalar(stack: Stack, _locals: Stack, _machine: Any) -> None:
    container, slot, _ = stack[-1]
    stack[-1] = container[slot]


@_instructions("ReadRef", charges=True)
def _read_reference(c: Compiler, name: str, _: None) -> Step:
    kind = c.pop_reference()
    c.stack.append(kind)
    if t.is_scalar(kind):
        c.charge(name, per=".per_abs_val_unit", count=c.stack_size(kind))
        return _read_scalar
    prices = c.measured_prices(name)

    def run(stack: Stack, _locals: Stack, machine: Any) -> None:
        container, slot, _ = stack[-1]
        stack[-1] = machine.copied(container[slot], kind, prices, "READ_REF")

    return run


def _write(stack: Stack, _locals: Stack, _machine: Any) -> None:
    container, slot, root = stack.pop()
    container[slot] = stack.pop()
    if root is not None:
        root.dirty = True


@_instructions("WriteRef", charges=True)
def _write_reference(c: Compiler, name: str, _: None) -> Step:
    kind = c.pop_reference(mutable=True)
    c.pop(kind)
    if t.is_scalar(kind):
        c.charge(name)
        return _write
    price, _per = c.measured_prices(name)

    def run(stack: Stack, locals_: Stack, machine: Any) -> None:
        container, slot, _ = stack[-1]
        machine.release(container[slot], kind, price, "WRITE_REF")
        _write(stack, locals_, machine)

    return run


@_instructions("MutBorrowField* ImmBorrowField* MutBorrowVariantField* ImmBorrowVariantField*")
def _borrow_field(c: Compiler, name: str, use: FieldUse) -> Step:
    arguments, variants, offset = c.substituted(use.arguments), use.variants, use.offset
    kind = use.struct.type(arguments)
    field = t.substitute(use.struct.fields_of(variants[0] if variants else None)[offset].type, arguments)
    c.charge_types(name, kind, field)
    mutable = name.startswith("Mut")
    c.pop_reference(kind, mutable=mutable)
    c.stack.append(t.Reference(field, mutable))

    def run(stack: Stack, _locals: Stack, _machine: Any) -> None:
        container, slot, root = stack[-1]
        stack[-1] = (container[slot], offset, root)

    if not variants:
        return run
    names = use.struct.variant_names
    expected = " or ".join(names[at] for at in variants)

    def run_on_enum(stack: Stack, _locals: Stack, _machine: Any) -> None:
        container, slot, root = stack[-1]
        value = container[slot]
        if value[0] not in variants:
            message = f"expected enum variant {expected}, found `{names[value[0]]}`"
            raise MoveError("STRUCT_VARIANT_MISMATCH", message)
        stack[-1] = (value, offset + 1, root)

    return run_on_enum


def _packed(c: Compiler, name: str, use: StructUse) -> tuple[t.Struct, list[t.Type]]:
    """Return the type of what is packed or unpacked, and the types of its fields."""
    if use.variant is None and use.struct.variants is not None:
        raise c.refused(f"{use.struct.name} is an enum")
    arguments = c.substituted(use.arguments)
    fields = [t.substitute(field.type, arguments) for field in use.struct.fields_of(use.variant)]
    kind = use.struct.type(arguments)
    c.charge_types(name, *fields, kind)
    return kind, fields


@_instructions("Pack* PackVariant*", charges=True)
def _pack(c: Compiler, name: str, use: StructUse) -> Step:
    kind, fields = _packed(c, name, use)
    c.charge(name, c.stack_sizes(fields), per=".per_field", count=len(fields))
    c.pop_all(fields)
    c.stack.append(kind)
    count, head = len(fields), () if use.variant is None else (use.variant,)

    def run(stack: Stack, _locals: Stack, _machine: Any) -> None:
        start = len(stack) - count
        stack[start:] = [[*head, *stack[start:]]]

    return run


@_instructions("Unpack* UnpackVariant*", charges=True)
def _unpack(c: Compiler, name: str, use: StructUse) -> Step:
    kind, fields = _packed(c, name, use)
    variant, count, memory = use.variant, len(fields), c.stack_sizes(fields)
    if variant is not None:  # its index counts as a field
        count += 1
        memory += c.schedule.sizes["u16"]
    c.charge(name, -memory, per=".per_field", count=count)
    c.pop(kind)
    c.stack.extend(fields)
    if variant is None:
        return lambda stack, _locals, _machine: stack.extend(stack.pop())
    names = use.struct.variant_names

    def run(stack: Stack, _locals: Stack, _machine: Any) -> None:
        found, *values = stack.pop()
        if found != variant:
            # Without the quotes of borrowed fields, as on a node.
            message = f"expected enum variant {names[variant]}, found {names[found]}"
            raise MoveError("STRUCT_VARIANT_MISMATCH", message)
        stack.extend(values)

    return run


@_instructions("TestVariant*")
def _test_variant(c: Compiler, name: str, use: StructUse) -> Step:
    kind, variant = use.struct.type(c.substituted(use.arguments)), use.variant
    c.charge_types(name, kind)
    c.pop_reference(kind)
    c.stack.append(t.BOOL)

    def run(stack: Stack, _locals: Stack, _machine: Any) -> None:
        container, slot, _ = stack[-1]
        stack[-1] = container[slot][0] == variant

    return run


# Integers and booleans.


def _binary(compute: Callable[[Any, Any], Any]) -> Step:
    def run(stack: Stack, _locals: Stack, _machine: Any) -> None:
        right = stack.pop()
        stack[-1] = compute(stack[-1], right)

    return run


def _less_than(stack: Stack, _locals: Stack, _machine: Any) -> None:
    # Apart from `_binary`, which calls a function more, because loops compare all the time.
    right = stack.pop()
    stack[-1] = stack[-1] < right


_LOGIC = {"BitOr": operator.or_, "BitAnd": operator.and_, "Xor": operator.xor, "Or": operator.or_, "And": operator.and_}
_COMPARISONS = {"Gt": operator.gt, "Le": operator.le, "Ge": operator.ge}
_BOUNDED = {
    "Add": (operator.add, "Addition overflow"),
    "Sub": (operator.sub, "Subtraction overflow"),
    "Mul": (operator.mul, "Multiplication overflow"),
}


def _wrong(message: str) -> MoveError:
    return MoveError("ARITHMETIC_ERROR", message)


def arithmetic(name: str, kind: t.Primitive) -> Step:
    """Return the step of an instruction on one or two integers of a type."""
    if name == "Lt":
        return _less_than
    if compute := _COMPARISONS.get(name) or _LOGIC.get(name):
        return _binary(compute)
    return _bounded(*_BOUNDED[name], kind) if name in _BOUNDED else _RARER[name](kind)


def _bounded(compute: Callable[[Any, Any], Any], message: str, kind: t.Primitive) -> Step:
    minimum, maximum = kind.minimum, kind.maximum

    def run(stack: Stack, _locals: Stack, _machine: Any) -> None:
        right = stack.pop()
        value = compute(stack[-1], right)
        if not minimum <= value <= maximum:
            raise _wrong(message)
        stack[-1] = value

    return run


def _divide(kind: t.Primitive) -> Step:
    def divided(left: int, right: int) -> int:
        if right == 0:
            raise _wrong("Division by zero")
        value = abs(left) // abs(right)  # toward zero
        return value if (left < 0) == (right < 0) else -value

    return _bounded(divided, "Division overflow", kind)


def _remainder(kind: t.Primitive) -> Step:
    def remainder(left: int, right: int) -> int:
        if right == 0 or (right == -1 and left == kind.minimum):
            raise _wrong("Integer remainder by zero")
        value = abs(left) % abs(right)
        return -value if left < 0 else value  # the sign of the dividend

    return _binary(remainder)


def _negate(kind: t.Primitive) -> Step:
    def run(stack: Stack, _locals: Stack, _machine: Any) -> None:
        if stack[-1] == kind.minimum:
            raise _wrong("Integer negation overflow")
        stack[-1] = -stack[-1]

    return run


def _shift(compute: Callable[[Any, Any], Any], message: str) -> Callable[[t.Primitive], Step]:
    def step(kind: t.Primitive) -> Step:
        def shifted(left: int, count: int) -> int:
            if count >= kind.bits:
                raise _wrong(message)
            return int(compute(left, count)) & kind.maximum  # high bits are dropped

        return _binary(shifted)

    return step


_SHIFTS = {
    "Shl": _shift(operator.lshift, "Shift Left overflow"),
    "Shr": _shift(operator.rshift, "Shift Right overflow"),
}
_RARER = {"Div": _divide, "Mod": _remainder, "Negate": _negate} | _SHIFTS
_UNSIGNED = {"BitOr", "BitAnd", "Xor", *_SHIFTS}  # not for signed integers


@_instructions("Add Sub Mul Div Mod Negate Shl Shr BitOr BitAnd Xor Lt Gt Le Ge")
def _integer(c: Compiler, name: str, _: None) -> Step:
    if name in _SHIFTS:
        c.pop(t.U8)
    kind = c.pop_integer(unsigned=name in _UNSIGNED)
    if name == "Negate":
        if not kind.minimum:
            raise c.refused(f"expected a signed integer on the stack, got {kind}")
    elif name not in _SHIFTS:
        c.pop(kind)
    c.stack.append(t.BOOL if name == "Lt" or name in _COMPARISONS else kind)
    return arithmetic(name, kind)


@_instructions("CastU8 CastU16 CastU32 CastU64 CastU128 CastU256 CastI8 CastI16 CastI32 CastI64 CastI128 CastI256")
def _cast(c: Compiler, name: str, _: None) -> Step:
    source, target = c.pop_integer(), t.INTEGERS[name[4:].lower()]
    c.stack.append(target)
    return cast(source, target)


def cast(source: t.Primitive, target: t.Primitive) -> Step:
    """Return the step that converts an integer to another type."""
    minimum, maximum = target.minimum, target.maximum
    source_name = source.name.upper() if source.name in _LONG_NAMES else source.name
    target_name = _LONG_NAMES.get(target.name, target.name)
    if (source.name, target.name) == ("u256", "i256"):  # the one case with the long name of the source on a node
        source_name = _LONG_NAMES["u256"]

    def run(stack: Stack, _locals: Stack, _machine: Any) -> None:
        value = stack[-1]
        if not minimum <= value <= maximum:
            raise _wrong(f"Cannot cast {source_name}({value}) to {target_name}")

    return run


def _invert(stack: Stack, _locals: Stack, _machine: Any) -> None:
    stack[-1] = not stack[-1]


@_instructions("Or And Not")
def _boolean(c: Compiler, name: str, _: None) -> Step:
    c.pop_all([t.BOOL] * (1 if name == "Not" else 2))
    c.stack.append(t.BOOL)
    return _invert if name == "Not" else _binary(_LOGIC[name])


@_instructions("Eq Neq", charges=True)
def _equal(c: Compiler, name: str, _: None) -> Step:
    right, left = c.pop(), c.pop()
    kind, other, through = right, left, False
    if isinstance(right, t.Reference) and isinstance(left, t.Reference):
        kind, other, through = right.target, left.target, True
    if not t.assignable(kind, other):
        raise c.refused(f"cannot compare {left} and {right}")
    c.stack.append(t.BOOL)
    negated, log_name = name == "Neq", LOG_NAMES[name]

    def run(stack: Stack, _locals: Stack, _machine: Any) -> None:
        right, left = stack.pop(), stack[-1]
        if through:
            left, right = left[0][left[1]], right[0][right[1]]
        stack[-1] = (left == right) is not negated

    if t.is_scalar(kind):
        c.charge(name, per=".per_abs_val_unit", count=2 * c.stack_size(kind))
        return run
    prices = c.measured_prices(name)

    def measured(stack: Stack, locals_: Stack, machine: Any) -> None:
        machine.measure_equal(stack, kind, prices, log_name, through)
        run(stack, locals_, machine)

    return measured


# Vectors.


def _vector_error(sub_status: int) -> MoveError:
    return MoveError("VECTOR_OPERATION_ERROR", sub_status=sub_status)


@_instructions("VecLen")
def _vector_length(c: Compiler, _name: str, kind: t.Type) -> Step:
    c.pop_reference(t.Vector(c.make(kind)))
    c.stack.append(t.U64)

    def run(stack: Stack, _locals: Stack, _machine: Any) -> None:
        container, slot, _ = stack[-1]
        stack[-1] = len(container[slot])

    return run


def _borrow_element(stack: Stack, _locals: Stack, _machine: Any) -> None:
    index = stack.pop()
    container, slot, root = stack[-1]
    values = container[slot]
    if index >= len(values):
        raise _vector_error(_NO_ELEMENT)
    stack[-1] = (values, index, root)


@_instructions("VecImmBorrow VecMutBorrow")
def _vector_borrow(c: Compiler, name: str, kind: t.Type) -> Step:
    element, mutable = c.make(kind), name == "VecMutBorrow"
    c.pop(t.U64)
    c.pop_reference(t.Vector(element), mutable=mutable)
    c.stack.append(t.Reference(element, mutable))
    return _borrow_element


def _swap_elements(stack: Stack, _locals: Stack, _machine: Any) -> None:
    second, first, values = stack.pop(), stack.pop(), touch(stack.pop())
    if max(first, second) >= len(values):
        raise _vector_error(_NO_ELEMENT)
    values[first], values[second] = values[second], values[first]


@_instructions("VecSwap")
def _vector_swap(c: Compiler, _name: str, kind: t.Type) -> Step:
    element = c.make(kind)
    c.pop_all((t.U64, t.U64))
    c.pop_reference(t.Vector(element), mutable=True)
    return _swap_elements


def _measured(c: Compiler, name: str, amount: int, memory: Callable[[Stack], int], step: Step) -> Step:
    """Return a step before which memory is taken that depends on the stack."""
    c.end_piece()
    log_name = LOG_NAMES[name]

    def run(stack: Stack, locals_: Stack, machine: Any) -> None:
        machine.meter.charge(amount, log_name, "", memory(stack))
        step(stack, locals_, machine)

    return run


def _filled(c: Compiler, name: str, element: t.Type, step: Step, *, amount: int, count: int = 1) -> Step:
    """Return a step that puts elements from the stack into a vector; vectors of signed integers are measured."""
    packed = c.packed(element)
    if isinstance(element, t.Vector) and isinstance(element.element, t.Primitive) and element.element.minimum:
        return _measured(c, name, amount, lambda stack: sum(map(packed, stack[len(stack) - count :])), step)
    c.entries.append(Entry(LOG_NAMES[name], "", amount, memory=packed(None) * count))
    return step


def _push_element(stack: Stack, _locals: Stack, _machine: Any) -> None:
    value = stack.pop()
    touch(stack.pop()).append(value)


@_instructions("VecPushBack", charges=True)
def _vector_push(c: Compiler, name: str, kind: t.Type) -> Step:
    element = c.make(kind)
    c.pop(element)
    c.pop_reference(t.Vector(element), mutable=True)
    return _filled(c, name, element, _push_element, amount=c.base_price(name))


def _pop_element(stack: Stack, _locals: Stack, _machine: Any) -> None:
    values = touch(stack.pop())
    if not values:
        raise _vector_error(_NOTHING_TO_POP)
    stack.append(values.pop())


@_instructions("VecPopBack", charges=True)
def _vector_pop(c: Compiler, name: str, kind: t.Type) -> Step:
    element = c.make(kind)
    c.pop_reference(t.Vector(element), mutable=True)
    c.stack.append(element)
    packed = c.packed(element)
    memory = lambda stack: -sum(map(packed, read_ref(stack[-1])[-1:]))  # noqa: E731 - of the last element
    return _measured(c, name, c.base_price(name), memory, _pop_element)


@_instructions("VecPack", charges=True)
def _vector_pack(c: Compiler, name: str, operand: tuple[t.Type, int]) -> Step:
    kind, count = operand
    element = c.make(kind)
    if count > len(c.stack):
        raise c.refused("a value is missing on the stack")
    c.pop_all([element] * count)
    c.stack.append(t.Vector(element))
    make = bytearray if element is t.U8 else list

    def run(stack: Stack, _locals: Stack, _machine: Any) -> None:
        start = len(stack) - count
        stack[start:] = [make(stack[start:])]

    amount = c.base_price(name) + c.price(name, ".per_elem") * count
    return _filled(c, name, element, run, amount=amount, count=count)


@_instructions("VecUnpack", charges=True)
def _vector_unpack(c: Compiler, name: str, operand: tuple[t.Type, int]) -> Step:
    kind, count = operand
    element = c.make(kind)
    c.pop(t.Vector(element))
    if count > MAX_STACK:
        raise c.refused(f"{count} values do not fit on the stack")
    c.stack.extend([element] * count)
    packed = c.packed(element)

    def run(stack: Stack, _locals: Stack, _machine: Any) -> None:
        values = stack.pop()
        if len(values) != count:
            raise _vector_error(_OTHER_LENGTH)
        stack.extend(values)

    amount = c.base_price(name) + c.price(name, ".per_expected_elem") * count
    return _measured(c, name, amount, lambda stack: -sum(map(packed, stack[-1])), run)


# Globals: a resource is loaded before the instruction is charged.


@_instructions("Exists* MutBorrowGlobal* ImmBorrowGlobal*", charges=True)
def _look(c: Compiler, name: str, use: StructUse) -> Step:
    kind, price, log_name = _resource(c, name, use)
    mutable = name.startswith("Mut")
    c.pop(t.ADDRESS)
    exists = name.startswith("Exists")
    c.stack.append(t.BOOL if exists else t.Reference(kind, mutable))
    failure = "" if exists else "borrow global resource from"

    def run(stack: Stack, _locals: Stack, machine: Any) -> None:
        cell = machine.resource(stack[-1], kind, price, log_name, writes=mutable, failure=failure)
        stack[-1] = cell[0] is not None if exists else (cell, 0, cell)

    return run


@_instructions("MoveFrom*", charges=True)
def _move_from(c: Compiler, name: str, use: StructUse) -> Step:
    kind, price, log_name = _resource(c, name, use)
    c.pop(t.ADDRESS)
    c.stack.append(kind)

    def run(stack: Stack, _locals: Stack, machine: Any) -> None:
        cell = machine.resource(stack[-1], kind, price, log_name, writes=True, failure="move resource from")
        stack[-1], cell[0] = cell[0], None

    return run


@_instructions("MoveTo*", charges=True)
def _move_to(c: Compiler, name: str, use: StructUse) -> Step:
    kind, price, log_name = _resource(c, name, use)
    c.pop(kind)
    c.pop_reference(t.SIGNER)

    def run(stack: Stack, _locals: Stack, machine: Any) -> None:
        value, (container, slot, _) = stack.pop(), stack.pop()
        address = container[slot][1]
        cell = machine.resource(address, kind, price, log_name, writes=True, failure="move resource into")
        cell[0] = value
        cell.dirty = True

    return run


def _resource(c: Compiler, name: str, use: StructUse) -> tuple[t.Struct, int, str]:
    """Return the type of a resource, and the price and the name of the instruction, which charges itself."""
    kind = use.struct.type(c.substituted(use.arguments))
    c.charge_types(name, kind)
    c.end_piece()
    return kind, c.price(name, ".base"), LOG_NAMES[name]


# Calls.


@_instructions("Call*", charges=True)
def _call(c: Compiler, _name: str, use: FunctionUse) -> Step:
    site = c.site(use)
    c.pop_all(t.substituted(use.function.parameters, site.types))
    c.stack.extend(t.substituted(use.function.results, site.types))
    c.end_piece()
    following = c.offset + 1
    return lambda _stack, _locals, machine: machine.call(site, following)


@_instructions("PackClosure*", charges=True)
def _pack_closure(c: Compiler, name: str, operand: tuple[FunctionUse, int]) -> Step:
    use, mask = operand
    site = c.site(use)
    parameters = t.substituted(use.function.parameters, site.types)
    captured = tuple(kind for at, kind in enumerate(parameters) if mask >> at & 1)
    c.pop_all(captured)
    if any(isinstance(kind, t.Reference) for kind in captured):
        raise c.refused("a closure captures a reference")
    generic = name.endswith("Generic")
    # The price of the other instruction has a dot where an underscore was meant.
    per = c.schedule["instr.pack_closure_generic.per_arg" if generic else "instr.pack.closure.per_arg"]
    amount = c.price(name, ".base") + per * len(captured)
    c.entries.append(Entry(LOG_NAMES[name], "", amount, memory=c.stack_sizes(captured)))
    c.charge_types(name, *site.types)
    rest = tuple(kind for at, kind in enumerate(parameters) if not mask >> at & 1)
    abilities = t.ALL_ABILITIES if use.function.attributes else t.COPY | t.DROP | t.STORE
    c.stack.append(t.Function(rest, t.substituted(use.function.results, site.types), abilities))
    c.end_piece()
    return lambda stack, _locals, machine: machine.pack_closure(stack, site, mask, captured)


@_instructions("CallClosure", charges=True)
def _call_closure(c: Compiler, _name: str, kind: t.Type) -> Step:
    function = t.substitute(kind, c.types)
    if not isinstance(function, t.Function):
        raise c.refused(f"expected a function type, got {function}")
    c.pop(function)
    c.pop_all(function.parameters)
    c.stack.extend(function.results)
    c.end_piece()
    following = c.offset + 1
    return lambda stack, _locals, machine: machine.call_closure(stack, function, following)
