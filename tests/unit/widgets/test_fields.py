"""Fields of arguments: every type has a form, and what is typed into it becomes what the node's converter accepts."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.client._abis import AbiStore
from toolkit.move import (
    AbiMap,
    Address,
    Bool,
    Bytes,
    Int,
    ObjectOf,
    OptionOf,
    String,
    StructOf,
    UInt,
    VectorOf,
    decode_module_abi,
    parse_address,
    parse_type_tag,
    resolve_layout,
)
from toolkit.move._codecs import is_closed
from toolkit.move._type_tags import substitute
from toolkit.move._values import decode_argument, encode_argument
from toolkit.widgets import _fields
from toolkit.widgets._fields import Findings

COIN = parse_type_tag("0x1::aptos_coin::AptosCoin")
LAB = {
    "address": "0xfa17",
    "name": "lab",
    "exposed_functions": [],
    "structs": [
        {"name": "Pair", "fields": [{"name": "a", "type": "u64"}, {"name": "b", "type": "bool"}]},
        {"name": "Boxed", "fields": [{"name": "vec", "type": "vector<u256>"}]},
    ],
}
ABIS = AbiMap.of([decode_module_abi(LAB)])
TYPES = [
    "bool",
    "u8",
    "u64",
    "u256",
    "i64",
    "i256",
    "address",
    "vector<u8>",
    "0x1::string::String",
    "vector<vector<u8>>",
    "vector<vector<u64>>",
    "0x1::option::Option<u64>",
    "0x1::option::Option<0x1::option::Option<u8>>",
    "0x1::option::Option<0x1::option::Option<0x1::option::Option<bool>>>",
    "0x1::option::Option<0xfa17::lab::Boxed>",
    "0x1::option::Option<0x1::option::Option<0xfa17::lab::Boxed>>",
    "vector<0x1::option::Option<0x1::string::String>>",
    "0x1::object::Object<0x1::fungible_asset::Metadata>",
    "vector<0x1::object::Object<0x1::fungible_asset::Metadata>>",
    "0xfa17::lab::Pair",
    "vector<0xfa17::lab::Pair>",
]


def layout_of(text):
    return resolve_layout(parse_type_tag(text), ABIS)


def spelt(number):
    """Return the ways in which somebody types an integer."""
    sign, digits = ("-", -number) if number < 0 else ("", number)
    return st.sampled_from([str(number), f"{sign}{digits:_}", f"{sign}{digits:,}", f"{sign}{digits:#x}", f" {number} "])


def drafts(layout):  # noqa: PLR0911  # one case per kind of layout
    """Return a strategy of valid drafts."""
    match layout:
        case Bool():
            return st.booleans()
        case UInt() | Int():
            low, high = layout.range
            return st.one_of(st.just(high), st.just(low), st.integers(low, high)).flatmap(spelt)
        case Address() | ObjectOf():
            return st.integers(0, 2**256 - 1).flatmap(lambda n: st.sampled_from([f"{n:#x}", f"0x{n:064x}"]))
        case Bytes():
            words = st.fixed_dictionaries({"text": st.text(max_size=9), "as": st.just("text")})
            digits = st.binary(max_size=9).flatmap(lambda data: st.sampled_from(["0x" + data.hex(), data.hex()]))
            return words | st.fixed_dictionaries({"text": digits, "as": st.just("hex")})
        case String():
            return st.text(max_size=9)
        case OptionOf(element):
            return st.fixed_dictionaries({"some": st.booleans(), "value": drafts(element)})
        case VectorOf(element):
            return st.lists(drafts(element), max_size=3)
        case StructOf(_, fields):
            return st.fixed_dictionaries({name: drafts(inner) for name, inner in fields})
    return st.sampled_from(["1", '"x"', "[true, null]", '{"a": "2"}'])


def encoded(layout, draft):
    """Return what the node is sent for a draft, which must be good."""
    found = Findings()
    value = _fields.read(layout, draft, "arguments.0", found)
    assert (found.errors, found.missing) == ({}, {}), draft
    return encode_argument(layout, value)


def fits(layout, draft):
    """Check that the node's converter accepts a draft, and that a field filled with the value says the same."""
    sent = encoded(layout, draft)
    if is_closed(layout):
        decode_argument(layout, json.loads(json.dumps(sent)))
    written = json.loads(json.dumps(_fields.write(layout, sent)))
    assert encoded(layout, written) == sent


@pytest.mark.parametrize("text", TYPES)
@given(data=st.data())
def test_a_random_filling_is_accepted_and_comes_out_equal(text, data):
    """Whatever valid text is typed, the node's converter accepts the argument; written into the form it is the same."""
    layout = layout_of(text)
    fits(layout, data.draw(drafts(layout)))


@pytest.mark.parametrize("text", TYPES)
def test_a_field_and_its_draft_are_json(text):
    """The browser can draw the field and keep its draft; the blank draft has the shape that `read` expects."""
    layout = layout_of(text)
    assert json.loads(json.dumps(msgspec.to_builtins(_fields.field(layout, "Argument 1"))))["label"] == "Argument 1"
    blank = _fields.blank(layout)
    assert json.loads(json.dumps(blank)) == blank
    found = Findings()
    _fields.read(layout, blank, "arguments.0", found)
    assert found.errors == {}


@pytest.mark.parametrize(
    ("typed", "value", "note"),
    [
        ("Bob", "0xb0b", "= 0xb0b"),
        ("0xb0b", "0xb0b", "= bob"),
        ("b0b".zfill(64), "0xb0b", "= 0xb0b"),
        ("0xca7", "0xca7", None),
    ],
)
def test_the_name_of_an_account_is_an_address(typed, value, note):
    """While it is typed, and after a reload; the address is shown below the field."""
    found = Findings(names={parse_address("0xb0b"): "bob"})
    assert _fields.read(layout_of("address"), typed, "x", found) == value
    assert (found.errors, found.notes.get("x")) == ({}, note)


@pytest.mark.parametrize(
    ("text", "draft", "path", "said"),
    [
        ("u8", "256", "x", "256 is too large for u8: enter 0 to 255"),
        ("u256", str(2**256), "x", "is too large for u256: enter 0 to 2^256 - 1"),
        ("u64", "1.5", "x", "'1.5' is not a whole number: enter digits, or 0x and hex digits"),
        ("u64", "9" * 500, "x", "is too large for u64"),
        ("u64", "-1", "x", "too small for u64"),
        ("u64", "1,5", "x", "is not a whole number: write spaces and commas only between groups of three"),
        ("u64", "1 0", "x", "'1 0' is not a whole number: write spaces"),
        ("u64", "\U0001f389", "x", "'\U0001f389' is not a whole number"),
        ("address", "\U0001f389", "x", "'\U0001f389' is not an address"),
        ("address", "a\u202eb", "x", "'a\\u202eb' is not an address"),
        ("i64", "-9223372036854775809", "x", "-9,223,372,036,854,775,808 to 9,223,372,036,854,775,807"),
        ("address", "bob", "x", "'bob' is not an address"),
        ("address", "fee", "x", "'fee' is not an address"),
        ("address", "12", "x", "'12' is not an address"),
        ("vector<u8>", {"as": "hex", "text": "0xabc"}, "x.text", "two hex digits per byte, or choose text"),
        ("vector<u64>", ["1", "two"], "x.1", "'two' is not a whole number"),
        ("0xfa17::lab::Pair", {"a": "-1", "b": True}, "x.a", "0 to 18,446,744,073,709,551,615"),
        ("0x1::option::Option<u8>", {"some": True, "value": "x"}, "x.value", "'x' is not a whole number"),
        ("0xfa17::gone::S", "{", "x", "expected 0xfa17::gone::S as JSON"),
    ],
)
def test_what_does_not_fit_is_said_at_its_field(text, draft, path, said):
    """The sentence is at the part that is wrong, and is that of the node's own rules."""
    found = Findings()
    _fields.read(layout_of(text), draft, "x", found)
    assert list(found.errors) == [path]
    assert said in found.errors[path]


@pytest.mark.parametrize(("text", "path"), [("u64", "x"), ("address", "x"), ("0xfa17::lab::Pair", "x.a")])
def test_what_is_empty_is_missing_not_wrong(text, path):
    """An empty field does not show an error; its text says what it takes."""
    layout, found = layout_of(text), Findings()
    _fields.read(layout, _fields.blank(layout), "x", found)
    assert (found.errors, list(found.missing)) == ({}, [path])


def test_none_and_empty_are_different():
    """An Option of an empty String is not none."""
    layout = layout_of("0x1::option::Option<0x1::string::String>")
    assert encoded(layout, {"some": False, "value": ""}) == {"vec": []}
    assert encoded(layout, {"some": True, "value": ""}) == {"vec": [""]}


def test_values_are_shown_in_another_form():
    """Digits in groups, the number of bytes."""
    found = Findings()
    _fields.read(UInt(64), "0xffffffff", "n", found)
    _fields.read(Bytes(), {"as": "text", "text": "h\u00e9"}, "b", found)
    assert found.notes == {"n": "= 4,294,967,295", "b.text": "3 bytes"}


def test_names_of_addresses_are_shown_beside_them():
    """An address has its name beside it, if that is known, however the address is written."""
    bob = f"0x{'b0b':0>64}"
    found = Findings(names={bob: "bob", "0x1": "framework"})
    for typed in ("0xb0b", bob, "0x1", "0xca7"):
        _fields.read(Address(), typed, typed, found)
    assert found.notes == {"0xb0b": "= bob", bob: "= bob", "0x1": "= framework"}


def test_a_long_vector_is_one_json_text():
    """Past 50 items rows would be useless: the value is one text, exact to the last digit."""
    layout = layout_of("vector<u256>")
    sent = [str(2**256 - 1)] * 51
    draft = _fields.write(layout, sent)
    assert list(draft) == ["json"]
    assert encoded(layout, draft) == sent


def recorded_functions(shared_data):
    """Return every entry and view function of the recorded ABIs with the layouts of its parameters."""
    modules = []
    for path in sorted((shared_data / "node" / "abi").glob("*.json")):
        modules += [decode_module_abi(module) for module in json.loads(path.read_text("utf-8"))]
    store = AbiStore(lambda *_: None, overrides={(module.address, module.name): module for module in modules})
    abis = store.at(0)
    for module in modules:
        for function in module.exposed_functions:
            if function.is_entry or function.is_view:
                types = (COIN,) * len(function.generic_type_params)
                layouts = [abis.layout(substitute(tag, types)) for tag in function.parameters]
                yield f"{module.address}::{module.name}::{function.name}", layouts


def test_every_recorded_function_has_a_form(shared_data):
    """Each parameter of each entry and view function is a field; JSON texts stand only for types that are not known."""
    seen = 0
    for name, layouts in recorded_functions(shared_data):
        for layout in layouts:
            field = _fields.field(layout, "Argument")
            assert "JSON" not in json.dumps(msgspec.to_builtins(field)) or not is_closed(layout), name
            seen += 1
    assert seen > 400


@given(data=st.data())
def test_a_random_filling_of_every_recorded_type_is_accepted(shared_data, data):
    """For each type that a recorded function takes, what is typed is what the node's converter accepts."""
    for layout in {layout for _, layouts in recorded_functions(shared_data) for layout in layouts}:
        fits(layout, data.draw(drafts(layout)))


def test_a_misspelt_name_of_an_account_says_which_was_meant():
    """The form knows the names of accounts; none is named if none is close."""
    found = Findings(names={parse_address("0xa11ce"): "alice"})
    for typed, meant in (("alic", True), ("zzz", False)):
        _fields.read_leaf(Address(), typed, typed, found)
        assert ("`alice`" in found.errors[typed]) is meant
