"""Error messages of `move`: how the message for each malformed type, id, value or byte string begins."""

from __future__ import annotations

import pytest

from toolkit.errors import InputError, SchemaError
from toolkit.move import (
    Address,
    Bool,
    Bytes,
    EnumOf,
    FunctionId,
    FunctionValue,
    Int,
    ObjectOf,
    OptionOf,
    String,
    StructOf,
    StructTag,
    UInt,
    Untyped,
    VectorOf,
    decode_bcs,
    decode_json,
    decode_module_abi,
    encode_bcs,
    parse_address,
    parse_type_tag,
)
from toolkit.move._bcs import Reader, read_type_tag
from toolkit.move._ids import ModuleId, parse_hex, parse_table_handle
from toolkit.move._values import encode_argument

T = StructTag("0x1", "coin", "Coin")
COIN = StructOf(T, (("value", UInt(64)),))
SHAPE = EnumOf(StructTag("0xcafe", "shapes", "Shape"), (("Dot", ()), ("Circle", (("r", UInt(8)),))))
PAIR = StructOf(StructTag("0x1", "pair", "Pair"), (("left", VectorOf(COIN)), ("right", OptionOf(Address()))))
UNT = Untyped(T, "no ABI of module 0x1::coin")
FUN = FunctionValue(parse_type_tag("|u64|bool", abi=True))
CAFE = f"0x{'cafe':0>64}"


def parse_abi_type(text):
    """Parse a type as ABIs have it."""
    return parse_type_tag(text, abi=True)


def read_tag(data):
    """Read a type tag from hex."""
    return read_type_tag(Reader(bytes.fromhex(data)))


WRITTEN_BY_A_CALLER = [
    (lambda: parse_address(""), "not an address: ''; expected 0x and 1 to 64 hex digits"),
    (lambda: parse_address("0xg"), "not an address: '0xg'; expected 0x and 1 to 64 hex digits"),
    (
        lambda: parse_address("0x" + "1" * 65),
        "not an address: '0x11111111111111111111111111111111111111111111111111111111111111111'; expected 0x and 1 to 64 hex digits",
    ),
    (lambda: parse_address(5), 'not an address: 5; expected a string: write "0x5" in quotes'),
    (lambda: parse_address("\u0661"), "not an address: '\\u0661'; expected 0x and 1 to 64 hex digits"),
    (lambda: parse_address(["0x1"]), "not an address: ['0x1']; expected 0x and 1 to 64 hex digits"),
    (lambda: parse_table_handle("handle"), "not a table handle: 'handle'; expected 0x and 1 to 64 hex digits"),
    (lambda: parse_hex("0x1"), "not hex-encoded bytes: '0x1'; expected 0x and two hex digits per byte"),
    (lambda: parse_hex(b"ab"), "not hex-encoded bytes: 0x6162; expected 0x and two hex digits per byte"),
    (lambda: ModuleId.parse("coin"), "not a module id: 'coin'; expected address::module, such as 0x1::coin"),
    (lambda: ModuleId.parse("0x1::coin::supply"), "not a module id: '0x1::coin::supply'; expected address::module"),
    (lambda: ModuleId.parse("0x1::9"), "module id '0x1::9': module name '9' is not a Move identifier (letters, digits"),
    (lambda: ModuleId.parse(1), "a module id must be a string (address::module, such as 0x1::coin), got number 1"),
    (lambda: FunctionId.parse("0x1::coin"), "not a function id: '0x1::coin'; expected address::module::function, such"),
    (lambda: FunctionId.parse("0x1::coin::supply<u8>"), "function id '0x1::coin::supply<u8>': pass type arguments in"),
    (lambda: FunctionId.parse("0xzz::coin::supply"), "function id '0xzz::coin::supply': not an address: '0xzz'"),
    (
        lambda: FunctionId.parse("0x1::coin::su pply"),
        "function id '0x1::coin::su pply': function name 'su pply' is not a Move",
    ),
    (lambda: parse_type_tag(""), "type '', position 0: expected a type, got the end of the text"),
    (lambda: parse_type_tag("u7"), "type 'u7', position 0: unknown type 'u7' (expected bool, u8..u256, i8..i256"),
    (lambda: parse_type_tag("U8"), "type 'U8', position 0: unknown type 'U8'; did you mean `u8`? (expected bool"),
    (lambda: parse_type_tag("u8 u8"), "type 'u8 u8', position 3: expected nothing after the type, got 'u8'"),
    (lambda: parse_type_tag("vector"), "type 'vector', position 6: expected '<' after vector, got the end of the text"),
    (lambda: parse_type_tag("vector<u8"), "type 'vector<u8', position 9: expected '>', got the end of the text"),
    (lambda: parse_type_tag("vector<u8>>"), "type 'vector<u8>>', position 10: expected nothing after the type, got"),
    (lambda: parse_type_tag("0x1::coin"), "type '0x1::coin', position 9: expected '::' and a struct name, got the end"),
    (lambda: parse_type_tag("0x1::coin::Coin<"), "type '0x1::coin::Coin<', position 16: expected a type, got the end"),
    (lambda: parse_type_tag("0xg::coin::Coin"), "type '0xg::coin::Coin', position 0: '0xg' is not an address; a"),
    (lambda: parse_type_tag("0x1::::Coin"), "type '0x1::::Coin', position 5: expected a module name, got '::'"),
    (lambda: parse_type_tag("0x1::coin::9Coin"), "type '0x1::coin::9Coin', position 11: expected a struct name, got"),
    (lambda: parse_type_tag("&u8"), "type '&u8', position 0: a reference is only allowed in ABIs"),
    (lambda: parse_type_tag("|u8|bool"), "type '|u8|bool', position 0: a function type is only allowed in ABIs"),
    (lambda: parse_type_tag("u8;"), "type 'u8;', position 2: unexpected character ';'"),
    (lambda: parse_type_tag("<u8>"), "type '<u8>', position 0: expected a type, got '<'"),
    (lambda: parse_type_tag("address::coin::Coin"), "type 'address::coin::Coin', position 0: 'address' is not an"),
    (
        lambda: parse_type_tag("vector<" * 9 + "u8" + ">" * 9),
        "type 'vector<vector<vector<vector<vector<vector<vector<vector<vector<u8>>>>>>>>>', position 63: nests deeper than 8 types",
    ),
    (lambda: parse_type_tag(None), "a type must be a string, got null"),
    (lambda: parse_type_tag(["u8"]), "a type must be a string, got array of 1"),
    (lambda: parse_type_tag("x" * 70000), "type 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx... (70000 characters)"),
    (lambda: parse_abi_type("|u8"), "type '|u8', position 3: expected ',' or '|', got the end of the text"),
    (lambda: parse_abi_type("&"), "type '&', position 1: expected a type, got the end of the text"),
    (lambda: parse_abi_type("|u8|bool has fly"), "type '|u8|bool has fly', position 13: expected an ability (copy"),
    (lambda: parse_abi_type("unparsable<x>"), "type 'unparsable<x>', position 0: unknown type 'unparsable' (expected"),
    (lambda: encode_argument(Bool(), 1), "arguments[0]: expected a boolean, got number 1"),
    (lambda: encode_argument(UInt(8), 256), "arguments[0]: expected u8, got number 256, outside 0..255"),
    (lambda: encode_argument(UInt(64), 1.0), "arguments[0]: expected u64, got number 1.0; pass a whole number or its"),
    (
        lambda: encode_argument(UInt(64), True),
        "arguments[0]: expected u64, got boolean true; pass a whole number or its",
    ),
    (
        lambda: encode_argument(UInt(64), "1.5"),
        "arguments[0]: expected u64, got string '1.5'; pass a whole number or its",
    ),
    (
        lambda: encode_argument(Address(), "bob"),
        "arguments[0]: expected an address, got string 'bob'; pass 0x and 1 to",
    ),
    (lambda: encode_argument(Bytes(), "abc"), "arguments[0]: expected vector<u8>, got string 'abc'; pass bytes, or 0x"),
    (
        lambda: encode_argument(String(), b"x"),
        "arguments[0]: expected 0x1::string::String, got bytes 0x78; pass a string",
    ),
    (lambda: encode_argument(VectorOf(UInt(64)), 5), "arguments[0]: expected vector<u64>, got number 5; pass a list"),
    (lambda: encode_argument(VectorOf(UInt(64)), [1, "x"]), "arguments[0][1]: expected u64, got string 'x'; pass a"),
    (lambda: encode_argument(OptionOf(UInt(8)), 300), "arguments[0]: expected u8, got number 300, outside 0..255"),
    (lambda: encode_argument(COIN, 5), "arguments[0]: expected 0x1::coin::Coin as an object, got number 5"),
    (
        lambda: encode_argument(COIN, {"valu": 1}),
        "arguments[0]: expected 0x1::coin::Coin with the field value, got object",
    ),
    (
        lambda: encode_argument(SHAPE, "Circle"),
        f"arguments[0]: expected a variant of {CAFE}::shapes::Shape as {{'__variant__': name, ...}}, where name is one of Dot, Circle; got string 'Circle'",
    ),
    (
        lambda: encode_argument(SHAPE, {"__variant__": "Square"}),
        f"arguments[0]: expected a variant of {CAFE}::shapes::Shape as {{'__variant__': name, ...}}, where name is one of Dot, Circle; got object with '__variant__'",
    ),
    (lambda: encode_argument(SHAPE, {"Circle": {"r": 999}}), "arguments[0].Circle.r: expected u8, got number 999"),
    (lambda: encode_argument(UNT, object), "arguments[0]: expected a JSON value, got a Python type"),
    (lambda: encode_argument(FUN, "x"), "arguments[0]: a function value cannot be an argument"),
]


COME_FROM_OUTSIDE = [
    (lambda: decode_json(Bool(), "true"), "value: expected a boolean, got string 'true'"),
    (lambda: decode_json(Bool(), 1), "value: expected a boolean, got number 1"),
    (lambda: decode_json(UInt(8), "7"), "value: expected integer<u8>, got string '7'"),
    (lambda: decode_json(UInt(8), 256), "value: expected integer<u8>, got number 256, outside 0..255"),
    (lambda: decode_json(UInt(8), True), "value: expected integer<u8>, got boolean true"),
    (lambda: decode_json(Int(8), -129), "value: expected integer<i8>, got number -129, outside -128..127"),
    (lambda: decode_json(UInt(64), 7), "value: expected string<u64>, got number 7"),
    (lambda: decode_json(UInt(64), "-1"), "value: expected string<u64>, got string '-1', outside"),
    (lambda: decode_json(UInt(64), "007"), "value: expected string<u64>, got string '007', which is not a canonical"),
    (lambda: decode_json(UInt(64), "18446744073709551616"), "value: expected string<u64>, got string"),
    (lambda: decode_json(UInt(64), "9" * 5000), "value: expected string<u64>, got string"),
    (lambda: decode_json(Int(128), "-0"), "value: expected string<i128>, got string '-0', which is not a canonical"),
    (lambda: decode_json(Address(), "alice"), "value: expected string<address>, got string 'alice'"),
    (lambda: decode_json(Address(), 1), "value: expected string<address>, got number 1"),
    (lambda: decode_json(Bytes(), "0xabc"), "value: expected string<hex>, got string '0xabc'"),
    (lambda: decode_json(Bytes(), [1, 2]), "value: expected string<hex>, got array of 2"),
    (lambda: decode_json(String(), 5), "value: expected a string, got number 5"),
    (lambda: decode_json(VectorOf(UInt(64)), "1"), "value: expected an array, got string '1'"),
    (lambda: decode_json(VectorOf(UInt(64)), ["1", 2]), "value[1]: expected string<u64>, got number 2"),
    (lambda: decode_json(OptionOf(Bool()), None), 'value: expected an Option, as {"vec": []} or {"vec": [x]}, got'),
    (lambda: decode_json(OptionOf(Bool()), {"vec": [True, False]}), 'value: expected an Option, as {"vec": []} or'),
    (lambda: decode_json(OptionOf(Bool()), {"vec": ["x"]}), "value.vec[0]: expected a boolean, got string 'x'"),
    (lambda: decode_json(ObjectOf(), {"handle": "0x1"}), 'value: expected an object address, as {"inner"'),
    (lambda: decode_json(ObjectOf(), {"inner": "x"}), "value.inner: expected string<address>, got string 'x'"),
    (lambda: decode_json(COIN, "5"), "value: expected 0x1::coin::Coin as an object, got string '5'"),
    (lambda: decode_json(COIN, {}), "value: expected 0x1::coin::Coin with the field value, got object of 0"),
    (
        lambda: decode_json(COIN, {"value": "1", "extra": 1}),
        "value: expected 0x1::coin::Coin with the fields value, got also 'extra",
    ),
    (
        lambda: decode_json(PAIR, {"left": [{"value": "1"}, {"value": 2}], "right": {"vec": []}}),
        "value.left[1].value: expected string<u64>, got number 2",
    ),
    (lambda: decode_json(PAIR, {"left": [], "right": {"vec": ["zz"]}}), "value.right.vec[0]: expected string<address>"),
    (
        lambda: decode_json(SHAPE, {"__variant__": "Square"}),
        "value: expected __variant__ to be one of Dot, Circle, got",
    ),
    (
        lambda: decode_json(SHAPE, {"Circle": {"r": 1}}),
        "value: expected __variant__ to be one of Dot, Circle, got object",
    ),
    (
        lambda: decode_json(SHAPE, {"__variant__": "Circle"}),
        f"value: expected {CAFE}::shapes::Shape with the field r, got object of 0",
    ),
    (lambda: encode_bcs(UInt(8), 256), "value: expected u8 as an int in 0..255, got number 256"),
    (lambda: encode_bcs(UInt(128), -1), "value: expected u128 as an int in 0..340282366920938463463374607431768211455"),
    (lambda: encode_bcs(Bool(), 1), "value: expected a bool, got number 1"),
    (lambda: encode_bcs(Address(), "x"), "value: expected an address, got string 'x'"),
    (lambda: encode_bcs(Bytes(), "0x01"), "value: expected bytes, got string '0x01'"),
    (lambda: encode_bcs(String(), "\ud800"), "value: a string with a lone surrogate cannot be encoded as UTF-8"),
    (
        lambda: encode_bcs(COIN, {"value": 1, "x": 2}),
        "value: expected 0x1::coin::Coin with the fields value, got also 'x'",
    ),
    (
        lambda: encode_bcs(SHAPE, {"__variant__": "No"}),
        "value: expected __variant__ to be one of Dot, Circle, got string",
    ),
    (lambda: encode_bcs(UNT, {}), "value: 0x1::coin::Coin cannot be written as BCS: no ABI of module 0x1::coin"),
    (lambda: encode_bcs(FUN, {}), "value: function values (|u64|bool) cannot be written as BCS"),
    (lambda: encode_bcs(VectorOf(Bool()), [True, None]), "value[1]: expected a bool, got null"),
    (lambda: decode_bcs(Bool(), bytes.fromhex("")), "value: byte 0: expected a byte of bool, but only 0 left"),
    (lambda: decode_bcs(Bool(), bytes.fromhex("02")), "value: byte 0: expected a bool, 0 or 1, got 2"),
    (lambda: decode_bcs(UInt(64), bytes.fromhex("00")), "value: byte 0: expected 8 bytes of u64, but only 1 left"),
    (
        lambda: decode_bcs(UInt(256), bytes.fromhex("00" * 31)),
        "value: byte 0: expected 32 bytes of u256, but only 31 left",
    ),
    (
        lambda: decode_bcs(UInt(8), bytes.fromhex("0000")),
        "value: byte 1: expected the end of the data; trailing bytes: 1",
    ),
    (
        lambda: decode_bcs(Address(), bytes.fromhex("01")),
        "value: byte 0: expected 32 bytes of an address, but only 1 left",
    ),
    (lambda: decode_bcs(Bytes(), bytes.fromhex("05" + "00")), "value: byte 0: length 5 exceeds the 1 byte left"),
    (
        lambda: decode_bcs(Bytes(), bytes.fromhex("8000")),
        "value: byte 0: the ULEB128 number is not in its shortest form",
    ),
    (
        lambda: decode_bcs(Bytes(), bytes.fromhex("ffffffff1f")),
        "value: byte 0: the ULEB128 number is larger than a u32",
    ),
    (lambda: decode_bcs(Bytes(), bytes.fromhex("80")), "value: byte 0: the data ends inside a ULEB128"),
    (lambda: decode_bcs(VectorOf(UInt(64)), bytes.fromhex("ffffffff0f")), "value: byte 0: length 4294967295 exceeds"),
    (lambda: decode_bcs(VectorOf(UInt(16)), bytes.fromhex("0201" + "0002")), "value[1]: byte 3: expected 2 bytes of"),
    (lambda: decode_bcs(OptionOf(UInt(8)), bytes.fromhex("02")), "value: byte 0: expected an Option, which starts"),
    (
        lambda: decode_bcs(OptionOf(UInt(16)), bytes.fromhex("0100")),
        "value.vec[0]: byte 1: expected 2 bytes of u16, but only 1",
    ),
    (
        lambda: decode_bcs(SHAPE, bytes.fromhex("02")),
        f"value: byte 0: expected the index of one of 2 variants of {CAFE}::shapes::Shape, got 2",
    ),
    (lambda: decode_bcs(SHAPE, bytes.fromhex("01")), "value.r: byte 1: expected 1 byte of u8, but only 0 left"),
    (lambda: decode_bcs(COIN, bytes.fromhex("0102")), "value.value: byte 0: expected 8 bytes of u64, but only 2 left"),
    (lambda: decode_bcs(UNT, bytes.fromhex("00")), "value: 0x1::coin::Coin cannot be read from BCS: no ABI of module"),
    (lambda: decode_bcs(FUN, bytes.fromhex("00")), "value: function values (|u64|bool) cannot be read from BCS"),
    (lambda: read_tag("12"), "byte 0: unknown type tag 18"),
    (lambda: read_tag("06"), "byte 1: the data ends inside a ULEB128"),
    (lambda: read_tag("0b01030000"), "byte 2: unknown parameter kind 3 in a function type"),
    (lambda: read_tag("06" * 9 + "01"), "byte 9: type nests deeper than 8 types"),
    (lambda: read_tag("07" + "00" * 32 + "0139" + "0161" + "00"), "byte 1: module name '9' is not a Move identifier"),
    (lambda: read_tag("07" + "00" * 32 + "01ff"), "byte 33: the string is not UTF-8"),
    (
        lambda: decode_module_abi(b"["),
        "module ABI: the response is not JSON (Input data was truncated); it starts with b'['",
    ),
    (lambda: decode_module_abi({"bytecode": "0x", "abi": None}), "not a module ABI: 'Expected `object`, got `null`'"),
    (lambda: decode_module_abi({"address": "zz", "name": "m"}), "not a module ABI: \"not an address: 'zz'; expected"),
    (lambda: decode_module_abi(b'{"name":"m"}'), "not a module ABI: 'Object missing required field `address`'"),
    (
        lambda: decode_module_abi(b"[" * 100000),
        "module ABI: the response is not JSON (",  # the rest differs between versions of Python
    ),
]


@pytest.mark.parametrize(("call", "message"), WRITTEN_BY_A_CALLER)
def test_what_a_caller_wrote_is_refused_with_this_message(call, message):
    """A malformed type, id or argument is an InputError that says what, where, and what was expected."""
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(("call", "message"), COME_FROM_OUTSIDE)
def test_a_value_that_does_not_fit_is_refused_with_this_message(call, message):
    """A malformed value is a SchemaError that names the path or the byte."""
    with pytest.raises(SchemaError) as caught:
        call()
    assert str(caught.value).startswith(message)
