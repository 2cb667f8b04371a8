"""Arguments as callers write them, by an ABI and without one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.client.fakes import function, module, struct
from toolkit.client._abis import AbiStore, encode_arguments, parameter_layouts
from toolkit.errors import InputError
from toolkit.move import Address, UInt, VectorOf, decode_module_abi
from toolkit.wire._models import wire_argument

MODULE = decode_module_abi(
    module(
        "m",
        functions=[
            function("all", ["&signer", "u8", "u64", "u256", "bool", "address", "vector<u8>", "0x1::string::String"]),
            function("generic", ["signer", "vector<T0>", "0x1::option::Option<T1>"], generic_type_params=[{}, {}]),
            function("boxed", ["0x1::m::Box"]),
            function("none"),
        ],
        structs=[struct("Box", {"amount": "u64", "small": "u16"})],
    )
)
ABIS = AbiStore(lambda *_: None, overrides={("0x1", "m"): MODULE}).at(0)


def encoded(name, *arguments, type_arguments=()):
    return encode_arguments(MODULE.function(name), type_arguments, arguments, ABIS, where=f"0x1::m::{name}")


def test_arguments_take_the_forms_of_their_parameters():
    """Signers are left out; u8 is a number, u64 and u256 strings, bytes hex."""
    big = 2**256 - 1
    assert encoded("all", 5, 5, big, True, "0xB0B", b"\x01\xff", "hi") == [
        5,
        "5",
        str(big),
        True,
        "0x" + "b0b".zfill(64),
        "0x01ff",
        "hi",
    ]


def test_digits_of_the_right_size_do_as_well():
    """What a node prints can be given back: digit strings become what the parameter takes."""
    assert encoded("all", "5", "5", "7", False, "0x1", "0x", "")[:3] == [5, "5", "7"]


def test_generics_are_filled_in():
    """T0 and T1 are the call's type arguments, however deep they stand."""
    found = encoded("generic", [1, 2], None, type_arguments=["u64", "address"])
    assert found == [["1", "2"], {"vec": []}]
    assert encoded("generic", b"\x01", "0x5", type_arguments=["u8", "address"]) == ["0x01", {"vec": ["0x5"]}]
    layouts = parameter_layouts(MODULE.function("generic"), ["u64", "address"], ABIS)
    assert layouts[0] == VectorOf(UInt(64))
    assert layouts[1].element == Address()


def test_structs_are_looked_up():
    """Fields of a struct argument are encoded by their own types."""
    assert encoded("boxed", {"amount": 5, "small": 5}) == [{"amount": "5", "small": 5}]


def test_no_arguments_are_none():
    """A function without parameters takes an empty list."""
    assert encoded("none") == []


def test_a_wrong_number_of_arguments_says_what_is_expected():
    """Count and types of the parameters are in the text, signers left out."""
    with pytest.raises(InputError) as caught:
        encoded("all", 5)
    text = str(caught.value)
    assert "(u8, u64, u256, bool, address, vector<u8>, " in text
    assert text.endswith("got 1")


def test_a_wrong_number_of_type_arguments_says_so():
    """Type arguments are counted before anything is looked up."""
    with pytest.raises(InputError, match=r"0x1::m::generic\b.*\b2\b.*\b1\b"):
        encoded("generic", [], None, type_arguments=["u8"])


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (0, 256, "expected u8"),
        (0, -1, "expected u8"),
        (0, True, "expected u8"),
        (1, 2**64, "expected u64"),
        (1, 1.0, "expected u64"),
        (3, 1, "expected a boolean"),
        (4, "alice", "expected an address"),
        (6, 5, "expected 0x1::string::String"),
    ],
)
def test_an_argument_that_does_not_fit_is_named_by_its_place(place, value, words):
    """The text names function, position and expected type."""
    arguments = [5, 5, 5, True, "0x1", b"", "x"]
    arguments[place] = value
    with pytest.raises(InputError, match=rf"0x1::m::all arguments\[{place}\]") as caught:
        encoded("all", *arguments)
    assert words in str(caught.value)


@given(
    st.recursive(
        st.integers() | st.text() | st.booleans(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_without_an_abi_no_large_number_is_on_the_wire(value):
    """However deep, no JSON number leaves the range that every JSON reader keeps exactly."""

    def numbers(sent):
        if isinstance(sent, dict | list):
            return [n for item in (sent.values() if isinstance(sent, dict) else sent) for n in numbers(item)]
        return [sent] if isinstance(sent, int) and not isinstance(sent, bool) else []

    sent = wire_argument(value)
    assert json.loads(json.dumps(sent)) == sent
    assert all(-(2**31) <= number < 2**32 for number in numbers(sent))
