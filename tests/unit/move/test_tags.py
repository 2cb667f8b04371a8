"""Type tags: text in and out, equality, pickling, substitution."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from toolkit.errors import InputError
from toolkit.move import Primitive, StructTag, Vector, parse_type_tag
from toolkit.move._type_tags import FunctionType, Reference, TypeParameter, is_signer, substitute, wire_type

CAFE = f"0x{'cafe':0>64}"


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("u256", "u256"),
        ("i8", "i8"),
        (" vector < u8 > ", "vector<u8>"),
        ("0x01::coin::Coin", "0x1::coin::Coin"),
        ("1::coin::Coin", "0x1::coin::Coin"),
        ("0xCAFE::m::S<u8,vector<bool>,0x1::string::String>", f"{CAFE}::m::S<u8, vector<bool>, 0x1::string::String>"),
        ("0x1::vector::vector", "0x1::vector::vector"),
        ("0x1::u8::u8<u8>", "0x1::u8::u8<u8>"),
        ("0x1::m::_S$1", "0x1::m::_S$1"),
        ("vector<" * 8 + "u8" + ">" * 8, "vector<" * 8 + "u8" + ">" * 8),
    ],
)
def test_types_print_in_one_form(text, canonical):
    """Spaces and address spellings do not matter; arguments are separated by comma and space."""
    tag = parse_type_tag(text)
    assert str(tag) == canonical
    assert parse_type_tag(canonical) == tag


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("&signer", Reference(Primitive("signer"))),
        ("&mut T1", Reference(TypeParameter(1), mutable=True)),
        ("vector<T0>", Vector(TypeParameter(0))),
        ("|&mut T1|T2", FunctionType((Reference(TypeParameter(1), mutable=True),), (TypeParameter(2),))),
        ("|u64|", FunctionType((Primitive("u64"),))),
        ("||", FunctionType(())),
        ("|u64, bool|(u8, u8)", FunctionType((Primitive("u64"), Primitive("bool")), (Primitive("u8"),) * 2)),
        ("|u64|u8, u8", FunctionType((Primitive("u64"),), (Primitive("u8"),) * 2)),
        ("|u64| has store + copy", FunctionType((Primitive("u64"),), (), ("copy", "store"))),
        (
            "|(||), &(|u8|)|(|u8|)",
            FunctionType(
                (FunctionType(()), Reference(FunctionType((Primitive("u8"),)))), (FunctionType((Primitive("u8"),)),)
            ),
        ),
        ("vector<|u8|bool>", Vector(FunctionType((Primitive("u8"),), (Primitive("bool"),)))),
    ],
)
def test_abis_have_more_types(text, tag):
    """References, type parameters and function types read in ABIs, and print so that they read again."""
    assert parse_type_tag(text, abi=True) == tag
    assert parse_type_tag(str(tag), abi=True) == tag
    with pytest.raises(InputError):
        parse_type_tag(text)


def test_the_wire_prints_short_addresses_everywhere():
    """Nested addresses lose their zeros too."""
    tag = parse_type_tag("|vector<0xcafe::m::S>|&mut 0xcafe::m::T<0xb0b::m::U>", abi=True)
    assert wire_type(tag) == "|vector<0xcafe::m::S>|&mut 0xcafe::m::T<0xb0b::m::U>"


def test_tags_are_equal_by_value():
    """However the address is written, the tag is the same key."""
    short, long = StructTag("0x1", "m", "S", (Primitive("u8"),)), parse_type_tag(f"0x{1:064x}::m::S< u8 >")
    assert short == long
    assert hash(short) == hash(long)
    assert {short: 1}[long] == 1
    assert str(short.base) == "0x1::m::S"


def test_a_pickled_tag_is_found_in_another_process():
    """The kept hash does not travel: string hashes differ between processes."""
    tag = parse_type_tag("0x1::m::S<vector<u8>>")
    hash(tag)
    code = (
        "import sys, pickle; from toolkit.move import parse_type_tag as p; t = pickle.loads(sys.stdin.buffer.read());"
        "assert {t: 1}[p('0x1::m::S<vector<u8>>')] == 1"
    )
    subprocess.run([sys.executable, "-c", code], input=pickle.dumps(tag), check=True)


def test_generics_are_substituted_at_every_depth():
    """T0 and T1 give way to the arguments; a parameter past their end stays."""
    tag = parse_type_tag("|&T0|vector<0x1::m::S<T1, T2>>", abi=True)
    arguments = (Primitive("u8"), Vector(Primitive("bool")))
    assert str(substitute(tag, arguments)) == "|&u8|vector<0x1::m::S<vector<bool>, T2>>"


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("String", "0x1::string::String"),
        ("vector<String>", "vector<0x1::string::String>"),
        ("Option<Option<u8>>", "0x1::option::Option<0x1::option::Option<u8>>"),
        ("Object<0x1::fungible_asset::Metadata>", "0x1::object::Object<0x1::fungible_asset::Metadata>"),
        ("0x2::m::S< String >", "0x2::m::S<0x1::string::String>"),
    ],
)
def test_three_structs_have_short_forms(text, whole):
    """People may leave out address and module; what nodes print and accept has both."""
    assert str(parse_type_tag(text)) == whole
    for strict in ({"short": False}, {"abi": True}):
        with pytest.raises(InputError, match="unknown type"):
            parse_type_tag(text, **strict)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("string", "did you mean `String`"),
        ("adress", "did you mean `address`"),
        ("Option", r"expected Option<..> with one type argument, got 0"),
        ("Object<u8, u8>", r"expected Object<..> with one type argument, got 2"),
        ("String<u8>", "expected String without type arguments, got 1"),
        ("Coin", "unknown type 'Coin'"),
        ("string::String", "'string' is not an address; a struct is written address::module::Name"),
    ],
)
def test_other_names_are_refused_with_what_may_be_meant(text, message):
    """A short form has as many type arguments as its struct."""
    with pytest.raises(InputError, match=message):
        parse_type_tag(text)


def test_signers_are_known_through_references():
    """Parameters a caller does not write."""
    assert is_signer(parse_type_tag("&signer", abi=True))
    assert not is_signer(parse_type_tag("&address", abi=True))


def test_names_are_checked_on_construction():
    """A tag cannot hold anything but a type."""
    with pytest.raises(InputError, match="unknown type 'u7'"):
        Primitive("u7")
    with pytest.raises(InputError, match="struct name '9'"):
        StructTag("0x1", "m", "9")


@pytest.mark.parametrize("mark", ["(", "|", "&", "vector<", "0x1::m::S<", "(|", "|("])
def test_endless_nesting_is_refused_at_the_limit(mark):
    """However a text nests, it ends at the limit and not in the interpreter's."""
    with pytest.raises(InputError):
        parse_type_tag(mark * 5000, abi=True)
