"""Typed integers of contracts: results that fit, aborts of those that do not, and what a plain int becomes."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.embedded import i8, i64, u8, u64, u256
from toolkit.embedded._primitives import INTEGERS
from toolkit.embedded._vm_status import VmError
from toolkit.errors import ContractError

FITS = {
    "sum": (lambda: u8(250) + 5, 255),
    "reflected": (lambda: 260 - u64(5), 255),
    "difference": (lambda: u8(5) - 5, 0),
    "product": (lambda: u64(2**32) * 2**31, 2**63),
    "quotient": (lambda: u64(7) // 2, 3),
    "quotients round towards zero": (lambda: i64(-7) // 2, -3),
    "remainders have the dividend's sign": (lambda: i64(-7) % 2, -1),
    "bits": (lambda: u8(0b1100) & 0b1010 | 1 ^ u8(0), 0b1001),
    "bits that are shifted out are lost": (lambda: u8(255) << 1, 254),
    "shifted right": (lambda: u8(255) >> u8(7), 1),
    "negated": (lambda: -i8(127), -127),
    "a cast": (lambda: u8(u64(255)), 255),
    "a sum of a list": (lambda: sum([u64(1), u64(2)]), 3),
}
ABORTS = {
    "sum": lambda: u8(250) + 6,
    "reflected": lambda: 6 + u8(250),
    "an intermediate result": lambda: (u8(255) + u8(255)) // 2,
    "difference": lambda: u64(1) - 2,
    "a comparison of a difference": lambda: u64(1) - u64(2) >= 0,
    "product": lambda: u256(2**255) * 2,
    "division by zero": lambda: u64(1) // 0,
    "remainder by zero": lambda: u64(1) % u64(0),
    "the smallest number by -1": lambda: i8(-128) // -1,
    "the smallest number negated": lambda: -i8(-128),
    "an unsigned number negated": lambda: -u64(1),
    "a shift by the width": lambda: u8(1) << 8,
    "a shift right by the width": lambda: u64(1) >> 64,
    "a cast": lambda: u8(u64(256)),
    "a cast of a negative number": lambda: u64(i64(-1)),
    "a plain int that does not fit": lambda: u8(1) + 256 > 0,
}
REFUSED = {
    "two widths": lambda: u8(1) + u64(1),
    "a bool": lambda: u8(1) + True,
    "a cast of a bool": lambda: u8(True),
    "a fraction": lambda: u64(3) / 2,
    "a reflected fraction": lambda: 3 / u64(2),
}


@pytest.mark.parametrize("name", FITS)
def test_a_result_that_fits_has_the_type(name):
    compute, expected = FITS[name]
    found = compute()
    assert found == expected
    assert type(found) in INTEGERS.values()


@pytest.mark.parametrize("name", ABORTS)
def test_a_result_that_does_not_fit_aborts(name):
    with pytest.raises(VmError) as caught:
        ABORTS[name]()
    assert caught.value.status == "ARITHMETIC_ERROR"


@pytest.mark.parametrize("name", REFUSED)
def test_types_are_not_mixed(name):
    with pytest.raises(ContractError):
        REFUSED[name]()


@given(st.sampled_from(list(INTEGERS)), st.sampled_from(["+", "-", "*"]), st.integers(), st.integers())
def test_every_type_computes_like_int_or_aborts(name, operator, left, right):
    """Each result equals that of int; an operand or a result out of range is an abort, never another number."""
    cls = INTEGERS[name]
    exact = {"+": left + right, "-": left - right, "*": left * right}[operator]
    fits = all(cls.low <= one <= cls.high for one in (left, right, exact))
    compute = {"+": lambda: cls(left) + right, "-": lambda: cls(left) - right, "*": lambda: cls(left) * right}[operator]
    if fits:
        assert compute() == exact
        assert type(compute()) is cls
    else:
        with pytest.raises(VmError) as caught:
            compute()
        assert caught.value.status == "ARITHMETIC_ERROR"


def test_a_typed_integer_is_an_int_for_the_rest_of_python():
    """It is equal to the int, hashed, copied, pickled and used as an index like it."""
    assert u64(3) == 3
    assert {u64(3): "x"}[3] == "x"
    assert [1, 2, 3][u8(1)] == 2
    assert list(range(u64(3))) == [0, 1, 2]
    assert copy.deepcopy(u64(3)) == pickle.loads(pickle.dumps(u64(3))) == 3  # noqa: S301 - our own bytes
