"""Module ABIs, and layouts resolved from them."""

from __future__ import annotations

import json
import pickle

import pytest

from toolkit.errors import SchemaError
from toolkit.move import (
    AbiMap,
    Address,
    Bool,
    Bytes,
    EnumOf,
    FieldAbi,
    FunctionValue,
    ObjectOf,
    OptionOf,
    String,
    StructAbi,
    StructOf,
    UInt,
    Untyped,
    VariantAbi,
    VectorOf,
    decode_module_abi,
    parse_address,
    parse_type_tag,
    resolve_layout,
)
from toolkit.move._module_metadata import resource_groups
from toolkit.move._values import tables_in


def _struct(name, fields=(), *, generics=0, **more):
    return {
        "name": name,
        "generic_type_params": [{"constraints": []}] * generics,
        "fields": [{"name": field, "type": kind} for field, kind in fields],
        **more,
    }


def _module(name, structs, address="0xcafe", functions=()):
    return decode_module_abi(
        {"address": address, "name": name, "structs": structs, "exposed_functions": list(functions)}
    )


SHAPES = _module(
    "shapes",
    [
        _struct("Box", [("item", "T0"), ("all", "vector<T0>")], generics=1),
        _struct("Pair", [("left", "0xcafe::shapes::Box<T1>"), ("right", "T0")], generics=2),
        _struct(
            "Shape",
            is_enum=True,
            generics=1,
            variants=[{"name": "Dot"}, {"name": "Tagged", "fields": [{"name": "_0", "type": "T0"}]}],
        ),
        _struct("OldEnum", is_enum=True),
        _struct("Native", is_native=True),
        _struct("Odd", [("what", "unparsable<x>"), ("call", "|u64|bool")]),
        _struct("Lost", [("gone", "0xdead::m::S")]),
        _struct("Self", [("self", "0xcafe::shapes::Self")]),
        _struct("Even", [("odd", "vector<0xcafe::shapes::OddOne>")]),
        _struct("OddOne", [("even", "0x1::option::Option<0xcafe::shapes::Even>")]),
        _struct("Grow", [("more", "0xcafe::shapes::Grow<vector<T0>>")], generics=1),
        _struct("Wide0", [("x", "u8")]),
        *(_struct(f"Wide{n}", [(f"f{i}", f"0xcafe::shapes::Wide{n - 1}") for i in range(20)]) for n in range(1, 12)),
    ],
)
ABIS = AbiMap.of([SHAPES])


def resolve(text):
    return resolve_layout(parse_type_tag(text, abi=True), ABIS)


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("bool", Bool()),
        ("signer", Address()),
        ("vector<u8>", Bytes()),
        ("vector<vector<u8>>", VectorOf(Bytes())),
        ("0x1::string::String", String()),
        ("0x1::object::Object<0x1::m::Anything>", ObjectOf()),
        ("0x1::option::Option<vector<u16>>", OptionOf(VectorOf(UInt(16)))),
        ("&mut u64", UInt(64)),
    ],
)
def test_the_built_in_types_need_no_abi(text, layout):
    """Primitives, vectors, String, Option, Object; references are looked through."""
    assert resolve(text) == layout


def test_generics_are_substituted_across_structs():
    """Pair<T0, T1> gives T1 to Box as its T0."""
    layout = resolve("0xcafe::shapes::Pair<bool, u8>")
    assert isinstance(layout, StructOf)
    (_, box), (_, right) = layout.fields
    assert right == Bool()
    assert box.fields == (("item", UInt(8)), ("all", Bytes()))
    assert str(box.tag).endswith("::shapes::Box<u8>")


def test_an_enum_keeps_its_variants_in_order():
    """The order is that of the indices in BCS."""
    layout = resolve("0xcafe::shapes::Shape<address>")
    assert isinstance(layout, EnumOf)
    assert layout.variants == (("Dot", ()), ("Tagged", (("_0", Address()),)))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("0xdead::m::S", f"no ABI of module 0x{'dead':0>64}::m"),
        ("0xcafe::shapes::Nope", f"module 0x{'cafe':0>64}::shapes has no struct Nope"),
        ("0xcafe::shapes::Box", f"0x{'cafe':0>64}::shapes::Box takes 1 type argument, got 0"),
        ("0xcafe::shapes::OldEnum", f"the ABI of 0x{'cafe':0>64}::shapes::OldEnum does not list the enum's variants"),
        ("0xcafe::shapes::Native", f"0x{'cafe':0>64}::shapes::Native is native"),
        ("T0", "type parameter T0 is not bound to a type"),
    ],
)
def test_what_cannot_be_known_is_untyped_with_the_reason(text, reason):
    """Nothing is guessed."""
    layout = resolve(text)
    assert isinstance(layout, Untyped)
    assert layout.reason == reason


def test_only_the_unknown_part_is_untyped():
    """The struct around an unknown type, an unreadable type or a closure stays typed."""
    lost = resolve("0xcafe::shapes::Lost")
    assert isinstance(lost.fields[0][1], Untyped)
    (_, what), (_, call) = resolve("0xcafe::shapes::Odd").fields
    assert what.reason.startswith("the type of field 'what' cannot be parsed: type 'unparsable<x>'")
    assert isinstance(call, FunctionValue)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0xcafe::shapes::Self", "the type contains itself: .*::Self' -> .*::Self'"),
        ("0xcafe::shapes::Even", "the type contains itself: .*::Even' -> .*OddOne.* -> .*"),
        ("0xcafe::shapes::Grow<u8>", "nests deeper than 64 types"),
        ("0xcafe::shapes::Wide11", "has more than 20,000 parts"),
    ],
)
def test_types_that_cannot_be_are_refused(text, message):
    """Cycles, endless growth and explosive breadth in a hostile ABI end in a SchemaError, quickly."""
    with pytest.raises(SchemaError, match=message):
        resolve(text)


def test_layouts_are_keys_and_travel():
    """Equal layouts have equal hashes, also after pickling."""
    first, second = resolve("0xcafe::shapes::Pair<bool, u8>"), resolve("0xcafe::shapes::Pair<bool, u8>")
    assert first == second
    assert hash(first) == hash(second)
    assert pickle.loads(pickle.dumps(first)) == first  # noqa: S301  # our own bytes


def test_old_abis_read_with_defaults():
    """Nodes before view functions, events and enums leave those fields out; phantom marks were printed then."""
    module = decode_module_abi(
        json.dumps(
            {
                "bytecode": "0x00",
                "abi": {
                    "address": "0x0001",
                    "name": "old",
                    "friends": ["0x1::new"],
                    "exposed_functions": [
                        {
                            "name": "send",
                            "visibility": "public",
                            "is_entry": True,
                            "generic_type_params": [{"constraints": ["store"]}],
                            "params": ["&signer", "signer", "address", "&T0"],
                            "return": ["u64"],
                        }
                    ],
                    "structs": [
                        {"name": "S", "generic_type_params": [{"constraints": [], "is_phantom": True}], "new": 1}
                    ],
                },
            }
        ).encode()
    )
    function = module.function("send")
    assert module.address == "0x1"
    assert not function.is_view
    assert list(map(str, function.parameters)) == ["address", "&T0"]
    assert function.signers == 2
    assert list(map(str, function.results)) == ["u64"]
    assert module.function("nope") is None
    assert module.struct("nope") is None
    struct = module.struct("S")
    assert struct.generic_type_params[0].is_phantom
    assert not struct.is_enum
    assert struct.variants == ()


def test_structs_are_shown_by_their_members():
    """In one line, however many there are."""
    assert repr(StructAbi("Coin", fields=(FieldAbi("value", "u64"),))) == "<StructAbi Coin { value: u64 }>"
    variants = tuple(VariantAbi(name) for name in ("Full", "Empty"))
    assert repr(StructAbi("Shelf", is_enum=True, variants=variants)) == "<StructAbi Shelf { Full, Empty }>"
    assert repr(StructAbi("Shelf", is_enum=True)) == "<StructAbi Shelf { variants not listed }>"


def test_an_abi_map_answers_none_for_an_unknown_module():
    """The Protocol's promise."""
    assert ABIS.module_abi("0x1", "nope") is None
    assert ABIS.module_abi(SHAPES.address, "shapes") is SHAPES


def _blob(data):
    return bytes([len(data)]) + data


def _table(*entries):
    return b"".join(_blob(part) for entry in entries for part in entry)


def _code(*tables, magic="a11ceb0b0700000a"):
    """Return compiled code with tables of a kind, whose other contents are zeros."""
    heads, body = b"", b""
    for kind, content in tables:
        heads += bytes([kind, len(body), len(content)])
        body += content
    return f"0x{magic}{(bytes([len(tables)]) + heads + body).hex()}"


ERRORS = b"\x02" + b"".join(
    code.to_bytes(8, "little") + _blob(name) + _blob(text)
    for code, name, text in ((1, b"E_TAKEN", b"Taken"), (2**40, b"E_RAIN", "Es regnet \N{CLOUD}".encode()))
)
METADATA = _table((b"compilation_metadata", b"\x01\x03"), (b"aptos::metadata_v1", ERRORS + b"\0\0"))
NAMED = [(1, "E_TAKEN", "Taken"), (2**40, "E_RAIN", "Es regnet \N{CLOUD}")]


def _errors(code):
    abi = decode_module_abi({"bytecode": code, "abi": {"address": "0x1", "name": "m", "errors": [5]}})
    return [(one.code, one.name, one.description) for one in abi.errors]


@pytest.mark.parametrize(
    "code",
    [
        _code((7, b"\x05names"), (0x10, METADATA)),
        _code((0x10, _table((b"aptos::metadata_v0", ERRORS))), (1, bytes(9))),
        _code((0x10, METADATA), magic="a11ceb0b05000000"),
        _code((0x10, _table((b"aptos::metadata_v1", ERRORS + b"\0\0\0")))),
        _code((0x10, _table((b"aptos::metadata_v1", ERRORS + b"\x01\xff")))),
    ],
)
def test_error_constants_are_read_from_the_metadata_of_bytecode(code):
    """By value, name and comment, whatever tables and metadata surround them; errors in the ABI itself are ignored."""
    assert _errors(code) == NAMED


@pytest.mark.parametrize("rest", [b"\0", b"\0\0", b"\x01\xff"])
def test_groups_are_read_whatever_follows_the_structs(rest):
    """No function attributes, one more map than today's format has, or damage."""
    structs = b"\x01" + _blob(b"Size") + b"\x01\x03\x01" + _blob(b"0x1::m::Group")
    code = _code((0x10, _table((b"aptos::metadata_v1", ERRORS + structs + rest))))
    assert resource_groups(bytes.fromhex(code[2:])) == {"Size": "0x1::m::Group"}


@pytest.mark.parametrize(
    "code",
    [
        "0x",
        "0xa11ceb0b",
        "0xa11ceb0b07",
        "not hex",
        None,
        5,
        _code((7, METADATA)),
        _code((0x10, METADATA), magic="0000000007000000"),
        _code((0x10, _table((b"aptos::metadata_v9", ERRORS)))),
        _code((0x10, _table((b"aptos::metadata_v1", ERRORS[:20])))),
        _code((0x10, _table((b"aptos::metadata_v1", b"\xff\xff\xff\xff\x0f")))),
        _code((0x10, _table((b"aptos::metadata_v1", b"\x01" + bytes(8) + b"\x01\xff\0")))),
        _code((0x10, METADATA))[:60],
        "0xa11ceb0b07000000ffffffff0f",
    ],
)
def test_bytecode_that_cannot_be_read_has_no_error_constants(code):
    """The ABI beside it is decoded all the same."""
    assert _errors(code) == []


def test_an_abi_without_bytecode_has_no_error_constants():
    """As in changes of transactions and in overrides."""
    assert SHAPES.errors == ()


def test_tables_are_found_wherever_a_value_holds_them():
    """In fields, in other tables' wrappers, options, vectors and the chosen variant; what does not fit is left out."""
    table = "0x1::table::Table<{}, {}>"
    sized = _struct("Sized", [("inner", table.format("T0", "T1")), ("length", "u64")], generics=2)
    shape = _struct(
        "Shape",
        is_enum=True,
        variants=[{"name": "Dot"}, {"name": "Many", "fields": [{"name": "_0", "type": table.format("u8", "bool")}]}],
    )
    fields = [
        ("plain", table.format("address", "0x1::string::String")),
        ("sized", "0xcafe::m::Sized<u64, vector<u8>>"),
        ("maybe", f"0x1::option::Option<{table.format('u64', 'u64')}>"),
        ("shapes", "vector<0xcafe::m::Shape>"),
        ("bad", table.format("u8", "u8")),
        ("handle", "address"),
    ]
    abis = AbiMap(
        {
            (parse_address("0xcafe"), "m"): _module("m", [_struct("Holder", fields), sized, shape]),
            ("0x1", "table"): _module("table", [_struct("Table", [("handle", "address")], generics=2)], "0x1"),
        }
    )
    value = {
        "plain": {"handle": "0x1"},
        "sized": {"inner": {"handle": "0x2"}, "length": "0"},
        "maybe": {"vec": [{"handle": "0x3"}]},
        "shapes": [{"__variant__": "Dot"}, {"__variant__": "Many", "_0": {"handle": "0x4"}}],
        "bad": {"handle": 5},
        "handle": "0x6",
    }
    layout = resolve_layout(parse_type_tag("0xcafe::m::Holder"), abis)
    found = list(tables_in(layout, value))
    assert [(table.handle[-2:], table.key_type, table.value_type, table.field) for table in found] == [
        ("01", "address", "0x1::string::String", "plain"),
        ("02", "u64", "vector<u8>", "sized.inner"),
        ("03", "u64", "u64", "maybe"),
        ("04", "u8", "bool", "shapes[1]._0"),
    ]
    assert not list(tables_in(layout, {"plain": 1, "shapes": {}, "maybe": None}))
    assert not list(tables_in(layout, [value]))
