"""Values in JSON: what a node prints, and what it takes."""

from __future__ import annotations

import numpy as np
import pytest

from toolkit.errors import InputError, SchemaError
from toolkit.move import (
    Address,
    Bool,
    Bytes,
    EnumOf,
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
    decode_json,
    encode_json,
    parse_type_tag,
)
from toolkit.move._values import decode_argument, encode_argument

LONG = f"0x{'cafe':0>64}"
RECORD = StructOf(StructTag("0x1", "m", "Record"), (("z", UInt(64)), ("a", Address())))
SHAPE = EnumOf(StructTag("0x1", "m", "Shape"), (("Red", ()), ("Circle", (("_0", UInt(8)), ("at", RECORD)))))
UNTYPED = Untyped(parse_type_tag("0x1::m::S"), "no ABI")
CLOSURE = FunctionValue(parse_type_tag("|u64|bool", abi=True))
VEC = StructOf(StructTag("0x1", "m", "Vec"), (("vec", VectorOf(UInt(64))),))


@pytest.mark.parametrize(
    ("layout", "json_value", "value"),
    [
        (Bool(), True, True),
        (UInt(32), 4294967295, 4294967295),
        (Int(16), -5, -5),
        (UInt(256), str(2**256 - 1), 2**256 - 1),
        (Int(64), "-9223372036854775808", -(2**63)),
        (Address(), "0xcafe", LONG),
        (ObjectOf(), {"inner": "0xcafe"}, LONG),
        (Bytes(), "0x", b""),
        (Bytes(), "0x00ff", b"\x00\xff"),
        (String(), "\u00e9", "\u00e9"),
        (VectorOf(VectorOf(UInt(64))), [["1"], []], [[1], []]),
        (OptionOf(String()), {"vec": []}, None),
        (OptionOf(String()), {"vec": ["x"]}, "x"),
        (OptionOf(OptionOf(Bool())), {"vec": []}, None),
        (OptionOf(OptionOf(Bool())), {"vec": [{"vec": []}]}, {"vec": [None]}),
        (OptionOf(OptionOf(Bool())), {"vec": [{"vec": [True]}]}, {"vec": [True]}),
        (RECORD, {"a": "0x1", "z": "5"}, {"z": 5, "a": "0x1"}),
        (SHAPE, {"__variant__": "Red"}, {"__variant__": "Red"}),
        (
            SHAPE,
            {"__variant__": "Circle", "_0": 3, "at": {"a": "0x1", "z": "5"}},
            {"__variant__": "Circle", "_0": 3, "at": {"z": 5, "a": "0x1"}},
        ),
        (CLOSURE, {"__fun_name__": "0x1::m::f", "__mask__": "1"}, {"__fun_name__": "0x1::m::f", "__mask__": "1"}),
        (UNTYPED, {"any": ["thing", 1]}, {"any": ["thing", 1]}),
    ],
)
def test_json_reads_and_prints_again(layout, json_value, value):
    """Each type has its JSON and its Python form, and one leads back to the other."""
    assert decode_json(layout, json_value) == value
    assert encode_json(layout, value) == json_value


def test_fields_come_in_declared_order_and_print_sorted():
    """Python dicts follow the declaration, a node sorts by name."""
    assert list(decode_json(RECORD, {"a": "0x1", "z": "5"})) == ["z", "a"]
    assert list(encode_json(RECORD, {"z": 5, "a": "0x1"})) == ["a", "z"]
    assert next(iter(decode_json(SHAPE, {"_0": 1, "at": {"a": "0x1", "z": "1"}, "__variant__": "Circle"}))) == (
        "__variant__"
    )


def test_an_object_reads_in_its_three_shapes():
    """As a struct, as a bare address, and inside a vector as a struct again."""
    assert decode_json(ObjectOf(), "0xcafe") == decode_json(ObjectOf(), {"inner": "0xCAFE"}) == LONG
    assert encode_argument(ObjectOf(), "0xcafe") == LONG
    assert encode_argument(ObjectOf(), {"inner": "0xcafe"}) == LONG
    assert encode_argument(VectorOf(ObjectOf()), ["0xcafe"]) == [{"inner": LONG}]
    assert decode_argument(ObjectOf(), "cafe") == LONG
    assert decode_argument(VectorOf(ObjectOf()), [{"inner": "0xcafe"}]) == [LONG]


def test_an_option_of_u8_reads_from_hex_too():
    """A node that sees Option as a struct prints its vector<u8> as hex; as an argument it accepts nothing else."""
    for decode in (decode_json, decode_argument):
        assert decode(OptionOf(UInt(8)), {"vec": "0x05"}) == 5
        assert decode(OptionOf(UInt(8)), {"vec": "0x"}) is None
    assert decode_json(OptionOf(UInt(8)), {"vec": [5]}) == 5
    with pytest.raises(SchemaError, match="got array of 1"):
        decode_argument(OptionOf(UInt(8)), {"vec": [5]})
    with pytest.raises(SchemaError):
        decode_json(OptionOf(UInt(16)), {"vec": "0x05"})


def test_a_null_inside_an_untyped_option_is_refused():
    """It would read as an empty Option."""
    with pytest.raises(SchemaError, match=r"value\.vec\[0\]: expected string<move_struct_tag_id>, got null"):
        decode_json(OptionOf(UNTYPED), {"vec": [None]})


def test_an_error_knows_the_path():
    """The path is in the text and in `column`."""
    with pytest.raises(SchemaError) as caught:
        decode_json(VectorOf(SHAPE), [{"__variant__": "Circle", "_0": 1, "at": {"a": "0x1", "z": 5}}], where="col")
    assert str(caught.value) == "col[0].at.z: expected string<u64>, got number 5"
    assert caught.value.column == "col[0].at.z"


@pytest.mark.parametrize(
    ("layout", "value", "json_value"),
    [
        (Bool(), False, False),
        (UInt(8), "7", 7),
        (UInt(8), np.uint8(7), 7),
        (UInt(64), 7, "7"),
        (UInt(64), "007", "7"),
        (Int(128), -7, "-7"),
        (Address(), "b0b", f"0x{'b0b':0>64}"),
        (Bytes(), b"\x01", "0x01"),
        (Bytes(), bytearray(b"\x01"), "0x01"),
        (Bytes(), "0xAB", "0xab"),
        (String(), "0x01", "0x01"),
        (VectorOf(UInt(64)), (1, "2"), ["1", "2"]),
        (OptionOf(UInt(64)), None, {"vec": []}),
        (OptionOf(UInt(64)), 5, {"vec": ["5"]}),
        (OptionOf(UInt(64)), {"vec": [5]}, {"vec": ["5"]}),
        (OptionOf(UInt(8)), 255, {"vec": "0xff"}),
        (OptionOf(UInt(8)), None, {"vec": "0x"}),
        (OptionOf(UInt(8)), {"vec": "0xff"}, {"vec": "0xff"}),
        (OptionOf(UInt(8)), {"vec": [255]}, {"vec": "0xff"}),
        (VectorOf(OptionOf(UInt(8))), [0, None], [{"vec": "0x00"}, {"vec": "0x"}]),
        (OptionOf(OptionOf(UInt(8))), {"vec": [{"vec": "0x05"}]}, {"vec": [{"vec": "0x05"}]}),
        (OptionOf(OptionOf(UInt(64))), {"vec": []}, {"vec": []}),
        (OptionOf(OptionOf(UInt(64))), None, {"vec": []}),
        (OptionOf(OptionOf(UInt(64))), {"vec": [None]}, {"vec": [{"vec": []}]}),
        (OptionOf(OptionOf(UInt(64))), {"vec": [{"vec": []}]}, {"vec": [{"vec": []}]}),
        (OptionOf(OptionOf(UInt(64))), {"vec": [{"vec": ["3"]}]}, {"vec": [{"vec": ["3"]}]}),
        (OptionOf(OptionOf(UInt(64))), 3, {"vec": [{"vec": ["3"]}]}),
        (OptionOf(VEC), {"vec": [{"vec": ["1"]}]}, {"vec": [{"vec": ["1"]}]}),
        (OptionOf(OptionOf(OptionOf(Bool()))), {"vec": [{"vec": [True]}]}, {"vec": [{"vec": [{"vec": [True]}]}]}),
        (OptionOf(ObjectOf()), "0x1", {"vec": [{"inner": "0x1"}]}),
        (RECORD, {"a": "0x1", "z": 5}, {"z": "5", "a": "0x1"}),
        (SHAPE, {"__variant__": "Red"}, {"Red": {}}),
        (SHAPE, {"Red": {}}, {"Red": {}}),
        (
            SHAPE,
            {"__variant__": "Circle", "_0": 3, "at": {"a": "0x1", "z": 5}},
            {"Circle": {"_0": 3, "at": {"z": "5", "a": "0x1"}}},
        ),
        (
            UNTYPED,
            [1, 2**32, -1, True, b"\x01", None, {"k": (2**64,)}],
            [1, "4294967296", "-1", True, "0x01", None, {"k": ["18446744073709551616"]}],
        ),
    ],
)
def test_arguments_are_written_as_a_node_takes_them(layout, value, json_value):
    """Python values, digits, hex and the JSON forms all lead to the input form."""
    assert encode_argument(layout, value) == json_value


@pytest.mark.parametrize(
    ("layout", "json_value", "value"),
    [
        (UInt(64), "+07", 7),
        (UInt(128), "0" * 200 + "7", 7),
        (Int(64), "-007", -7),
        (OptionOf(UInt(64)), {"vec": ["7"]}, 7),
        (Int(64), "-0", 0),
        (Address(), "CAFE", LONG),
        (Bytes(), "AB", b"\xab"),
        (RECORD, {"a": "0x1", "z": "5", "ignored": 1}, {"z": 5, "a": "0x1"}),
        (SHAPE, {"Red": {}}, {"__variant__": "Red"}),
        (OptionOf(OptionOf(Bool())), {"vec": [{"vec": []}]}, {"vec": [None]}),
    ],
)
def test_a_node_takes_more_than_it_prints(layout, json_value, value):
    """Signs and zeros before digits, unpadded addresses, bare hex, extra keys of a struct."""
    assert decode_argument(layout, json_value) == value


@pytest.mark.parametrize(
    ("of", "words"),
    [
        (Bool(), "boolean"),
        (UInt(32), "integer<u32>"),
        (Int(64), "string<i64>"),
        (Address(), "string<address>"),
        (Bytes(), "string<hex>"),
        (VectorOf(VectorOf(UInt(256))), "array<array<string<u256>>>"),
        (String(), "string<move_struct_tag_id>"),
        (CLOSURE, "string<move_function_id>"),
    ],
)
def test_types_have_the_nodes_words(of, words):
    """In its messages about arguments."""
    assert of.words == words


@pytest.mark.parametrize(
    ("layout", "json_value", "place"),
    [
        (Bool(), "true", ""),
        (UInt(8), "7", ""),
        (UInt(8), 256, ""),
        (UInt(16), 1.5, ""),
        (Int(8), [], ""),
        (UInt(64), 7, ""),
        (UInt(64), "-1", ""),
        (UInt(64), "-0", ""),
        (UInt(64), "", ""),
        (UInt(64), "18446744073709551616", ""),
        (UInt(128), "x", ""),
        (Int(64), "--1", ""),
        (Address(), 5, ""),
        (Address(), "invalid", ""),
        (Bytes(), [1], ""),
        (Bytes(), "0xabc", ""),
        (String(), 5, ""),
        (VectorOf(UInt(64)), "5", ""),
        (VectorOf(UInt(64)), ["5", 5], "[1]"),
        (VectorOf(ObjectOf()), ["0x1"], "[0]"),
        (OptionOf(UInt(64)), {"vec": ["1", "2"]}, ""),
        (OptionOf(UInt(64)), {}, ""),
        (RECORD, 5, ""),
        (RECORD, {"a": "0x1"}, ""),
        (SHAPE, {"Square": {}}, ""),
        (SHAPE, {"__variant__": "Red", "a": 1}, ""),
        (SHAPE, {"Red": {"x": 2}}, ""),
        (UNTYPED, 5, ""),
        (CLOSURE, "0x1::m::f", ""),
    ],
)
def test_what_a_node_refuses_as_an_argument_names_its_place(layout, json_value, place):
    """Inside a vector, the position of the element."""
    with pytest.raises(SchemaError) as refused:
        decode_argument(layout, json_value)
    assert refused.value.column == f"arguments[0]{place}"


def test_a_value_without_end_is_refused():
    """Untyped arguments are checked; a list that contains itself is not JSON."""
    endless = []
    endless.append(endless)
    with pytest.raises(InputError, match=r"arguments\[0\]: "):
        encode_argument(UNTYPED, endless)
