"""Values: integers as Python's, BCS as `toolkit.move` writes it, and types that are one object."""

from __future__ import annotations

import operator
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.move import Address as AddressLayout
from toolkit.move import Bool, Int, StructOf, UInt, VectorOf, decode_bcs, encode_bcs
from toolkit.vm import _operations as ops
from toolkit.vm import _types as t
from toolkit.vm._errors import MoveError
from toolkit.vm._layouts import LayoutMaker
from toolkit.vm._values import Closure, compare, depth_of

KINDS = list(t.INTEGERS.values())
MAKER = LayoutMaker(defaultdict(lambda: 40))


def integers(kind):
    edges = [kind.minimum, kind.minimum + 1, -1, 0, 1, 2, kind.maximum - 1, kind.maximum]
    inside = [one for one in edges if kind.minimum <= one <= kind.maximum]
    return st.sampled_from(inside) | st.integers(kind.minimum, kind.maximum)


def result(step, *values):
    """Run a step on a stack; return what it leaves, or the message of its error."""
    stack = list(values)
    try:
        step(stack, [], None)
    except MoveError as error:
        return error.message if error.status == "ARITHMETIC_ERROR" else error.status
    return stack[-1]


def truncated(left, right):
    """Divide toward zero."""
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


@given(st.data(), st.sampled_from(KINDS))
def test_arithmetic_is_that_of_python_within_bounds(data, kind):
    left, right = data.draw(integers(kind)), data.draw(integers(kind))

    def bounded(value, message):
        return value if kind.minimum <= value <= kind.maximum else message

    assert result(ops.arithmetic("Add", kind), left, right) == bounded(left + right, "Addition overflow")
    assert result(ops.arithmetic("Sub", kind), left, right) == bounded(left - right, "Subtraction overflow")
    assert result(ops.arithmetic("Mul", kind), left, right) == bounded(left * right, "Multiplication overflow")
    if right == 0:
        assert result(ops.arithmetic("Div", kind), left, right) == "Division by zero"
        assert result(ops.arithmetic("Mod", kind), left, right) == "Integer remainder by zero"
    else:
        quotient = truncated(left, right)
        assert result(ops.arithmetic("Div", kind), left, right) == bounded(quotient, "Division overflow")
        overflows = (left, right) == (kind.minimum, -1)
        expected = "Integer remainder by zero" if overflows else left - right * quotient
        assert result(ops.arithmetic("Mod", kind), left, right) == expected
    for step, compute in ((ops.arithmetic("Lt", kind), operator.lt), (ops.arithmetic("Ge", kind), operator.ge)):
        assert result(step, left, right) is compute(left, right)


@given(st.data(), st.sampled_from(KINDS), st.sampled_from(KINDS))
def test_a_cast_keeps_the_value_or_fails(data, source, target):
    value = data.draw(integers(source))
    got = result(ops.cast(source, target), value)
    if target.minimum <= value <= target.maximum:
        assert got == value
    else:
        assert f"({value}) to " in got


@given(st.data(), st.sampled_from([kind for kind in KINDS if not kind.minimum]), st.integers(0, 255))
def test_shifts_drop_high_bits_and_refuse_the_width(data, kind, count):
    value = data.draw(integers(kind))
    left, right = result(ops.arithmetic("Shl", kind), value, count), result(ops.arithmetic("Shr", kind), value, count)
    if count >= kind.bits:
        assert (left, right) == ("Shift Left overflow", "Shift Right overflow")
    else:
        assert (left, right) == (value << count & kind.maximum, value >> count)


def test_negation_of_the_minimum_fails():
    assert result(ops.arithmetic("Negate", t.I8), -127) == 127
    assert result(ops.arithmetic("Negate", t.I8), -128) == "Integer negation overflow"


# Layouts of both packages that mean the same.
SCALARS = [("bool", Bool(), st.booleans())]
SCALARS += [(one.name, (Int if one.minimum else UInt)(one.bits), integers(one)) for one in KINDS]


@st.composite
def typed_values(draw, depth=3):
    """Draw a layout of the machine, the same layout of `toolkit.move`, and a value in both forms."""
    kind = draw(st.sampled_from(["scalar", "address"] + ["vector", "struct"] * (depth > 0)))
    if kind == "scalar":
        name, layout, values = draw(st.sampled_from(SCALARS))
        value = draw(values)
        return MAKER.primitives[name], layout, value, value
    if kind == "address":
        raw = draw(st.binary(min_size=32, max_size=32))
        return MAKER.primitives["address"], AddressLayout(), raw, decode_bcs(AddressLayout(), raw)
    parts = [draw(typed_values(depth=depth - 1)) for _ in range(draw(st.integers(1, 3)))]
    if kind == "struct":
        mine = MAKER.struct([part[0] for part in parts])
        names = [f"f{at}" for at in range(len(parts))]
        theirs = StructOf("0x1::m::S", tuple(zip(names, (part[1] for part in parts), strict=True)))
        return mine, theirs, [part[2] for part in parts], dict(zip(names, (part[3] for part in parts), strict=True))
    mine, theirs, value, other = parts[0]
    count = draw(st.integers(0, 3))
    if mine.parts == ("u8",):
        return MAKER.vector(mine), None, bytearray([value] * count), bytes([value] * count)
    return MAKER.vector(mine), theirs and VectorOf(theirs), [value] * count, [other] * count


@given(typed_values())
def test_bcs_is_that_of_toolkit_move(drawn):
    mine, theirs, value, other = drawn
    data = mine.encode(value)
    assert mine.decode(data) == value
    if theirs is not None and _has_no_bytes(mine):
        assert encode_bcs(theirs, other) == data
    copied = mine.copy(value)
    assert copied == value
    if isinstance(value, list) and value:
        assert copied is not value


def _has_no_bytes(layout):
    """Return whether vectors of u8 are absent: `toolkit.move` has a layout of its own for them."""
    if layout.parts[0] == "vector":
        return layout.parts[1].parts != ("u8",) and _has_no_bytes(layout.parts[1])
    return layout.parts[0] != "struct" or all(map(_has_no_bytes, layout.parts[1]))


@given(st.binary(max_size=60))
def test_no_bytes_break_a_closure(data):
    layout = MAKER.function
    try:
        value = layout.decode(data)
    except MoveError:
        return
    assert layout.encode(value) == data


def test_a_length_beyond_the_data_is_refused_before_anything_is_made():
    empty = MAKER.struct([])
    with pytest.raises(MoveError, match="FAILED_TO_DESERIALIZE_RESOURCE"):
        MAKER.vector(empty).decode(b"\xff\xff\xff\xff\x07")


def closure(*captured, mask=1):
    layouts = tuple(MAKER.function if isinstance(one, Closure) else MAKER.primitives["u64"] for one in captured)
    module = t.ModuleId(t.FRAMEWORK, "m")
    return Closure(module, "f", (t.U8,), mask, list(captured), layouts, persistent=True)


def test_a_closure_survives_bcs_and_compares_without_its_mask():
    value = closure(7)
    data = MAKER.function.encode(value)
    again = MAKER.function.decode(data)
    assert again == value
    assert MAKER.function.encode(again) == data
    assert again == closure(7, mask=2)
    assert compare(again, closure(8)) == -1
    assert again.copy().captured is not again.captured


def test_the_depth_of_closures_is_bounded():
    value = closure(1)
    for _ in range(126):
        value = closure(value)
    assert depth_of(value, measuring=False) == 128
    assert len(MAKER.function.encode(value)) > 127
    with pytest.raises(MoveError, match="VM_MAX_VALUE_DEPTH_REACHED"):
        MAKER.function.encode(closure(value))


def test_equal_types_are_one_object():
    kind = t.parse("0x1::m::S<vector<u8>, address>")
    assert kind is t.struct("0x1::m::S", t.BYTES, t.ADDRESS)
    assert (kind.nodes, kind.depth, str(kind)) == (4, 3, "0x1::m::S<vector<u8>, address>")
    assert t.substitute(t.Vector(t.Parameter(0)), (t.U8,)) is t.BYTES
    assert str(t.Function((t.U8,), (t.BOOL,), 3)) == "|u8|(bool) has copy + drop"
