"""Laws over generated layouts and values: JSON, Python, BCS, arguments and Arrow agree, and nothing odd escapes."""

from __future__ import annotations

import contextlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import ToolkitError
from toolkit.move import (
    Address,
    Bool,
    Bytes,
    EnumOf,
    FunctionId,
    FunctionValue,
    Int,
    Layout,
    ObjectOf,
    OptionOf,
    Primitive,
    String,
    StructOf,
    StructTag,
    UInt,
    Untyped,
    Vector,
    VectorOf,
    decode_bcs,
    decode_json,
    decode_module_abi,
    encode_bcs,
    encode_json,
    parse_address,
    parse_type_tag,
)
from toolkit.move._arrow import arrow_type, column
from toolkit.move._bcs import Reader, Writer, read_type_tag, write_type_tag
from toolkit.move._ids import ModuleId, address_to_bytes, parse_hex, parse_table_handle, wire_address
from toolkit.move._type_tags import (
    ABILITIES,
    MAX_TYPE_DEPTH,
    PRIMITIVES,
    FunctionType,
    Reference,
    TypeParameter,
    wire_type,
)
from toolkit.move._values import decode_argument, encode_argument

BITS = st.sampled_from([8, 16, 32, 64, 128, 256])
NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True)
TAG = StructTag("0xcafe", "module", "Name")

leaves = st.one_of(
    st.just(Bool()),
    BITS.map(UInt),
    BITS.map(Int),
    st.just(Address()),
    st.just(ObjectOf()),
    st.just(Bytes()),
    st.just(String()),
)


def _fields(inner: st.SearchStrategy[Layout], smallest: int) -> st.SearchStrategy[Any]:
    return st.dictionaries(NAMES, inner, min_size=smallest, max_size=4).map(lambda d: tuple(d.items()))


def _grown(inner: st.SearchStrategy[Layout]) -> st.SearchStrategy[Layout]:
    return st.one_of(
        inner.filter(lambda layout: layout != UInt(8)).map(VectorOf),
        inner.map(OptionOf),
        _fields(inner, 1).map(lambda fields: StructOf(TAG, fields)),
        st.dictionaries(NAMES.map(str.title), _fields(inner, 0), min_size=1, max_size=3).map(
            lambda variants: EnumOf(TAG, tuple(variants.items()))
        ),
    )


layouts = st.recursive(leaves, _grown, max_leaves=8)


def node_json(layout: Layout) -> st.SearchStrategy[Any]:  # noqa: PLR0911  # one case per kind
    """Values of a layout as a node prints them."""
    match layout:
        case Bool():
            return st.booleans()
        case UInt(bits):
            numbers = st.integers(0, 2**bits - 1)
            return numbers if bits <= 32 else numbers.map(str)
        case Int(bits):
            numbers = st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
            return numbers if bits <= 32 else numbers.map(str)
        case Address():
            return st.integers(0, 2**256 - 1).map(lambda number: f"0x{number:x}")
        case ObjectOf():
            return node_json(Address()).map(lambda text: {"inner": text})
        case Bytes():
            return st.binary(max_size=6).map(lambda data: f"0x{data.hex()}")
        case String():
            return st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
        case VectorOf(element):
            return st.lists(node_json(element), max_size=3)
        case OptionOf(element):
            return st.lists(node_json(element), max_size=1).map(lambda items: {"vec": items})
        case StructOf(_, fields):
            return st.fixed_dictionaries({name: node_json(inner) for name, inner in fields})
        case EnumOf(_, variants):
            return st.one_of(
                st.fixed_dictionaries(
                    {"__variant__": st.just(name), **{field: node_json(inner) for field, inner in fields}}
                )
                for name, fields in variants
            )
    raise AssertionError(layout)


typed_json = layouts.flatmap(lambda layout: st.tuples(st.just(layout), node_json(layout)))
typed_columns = layouts.flatmap(
    lambda layout: st.tuples(st.just(layout), st.lists(st.none() | node_json(layout), max_size=5))
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
open_layouts = st.recursive(
    leaves
    | st.just(Untyped(Vector(Primitive("u8")), "a reason"))
    | st.just(FunctionValue(FunctionType((Primitive("u64"),)))),
    _grown,
    max_leaves=6,
)


@given(typed_json)
def test_json_python_bcs_python_json_is_identity(case):
    """Both roads meet: the value from JSON equals the value from its BCS, and prints as it came."""
    layout, json_value = case
    value = decode_json(layout, json_value)
    if isinstance(layout, StructOf):
        assert list(value) == [name for name, _ in layout.fields]
    data = encode_bcs(layout, value)
    again = decode_bcs(layout, data)
    assert again == value
    assert encode_json(layout, again) == json_value
    assert encode_bcs(layout, again) == data


@given(typed_json)
def test_an_argument_written_from_python_is_read_back(case):
    """What `encode_argument` writes, a node reads as the same value, whether it got the value or the node's JSON of it."""
    layout, json_value = case
    value = decode_json(layout, json_value)
    for given_as in (value, json_value):
        assert decode_argument(layout, encode_argument(layout, given_as)) == value


@given(typed_columns)
def test_a_column_holds_its_values(expected_cells, case):
    """Every cell shows its value, nulls included, and the type is the announced one."""
    layout, texts = case
    values = [None if text is None else decode_json(layout, text) for text in texts]
    array = column(layout, values)
    assert array.type == arrow_type(layout)
    assert len(array) == len(values)
    assert array.to_pylist() == expected_cells(layout, values)


@given(open_layouts, json_values)
def test_any_json_gives_a_value_or_a_toolkit_error(layout, value):
    """Any JSON with any layout gives a value or one of the toolkit's own errors."""
    for convert in (decode_json, encode_json, encode_argument, decode_argument, encode_bcs):
        with contextlib.suppress(ToolkitError):
            convert(layout, value)
    with contextlib.suppress(ToolkitError):
        column(layout, [value, None])


@given(open_layouts, st.binary(max_size=40))
def test_any_bytes_give_a_value_or_a_toolkit_error(layout, data):
    """Bytes that decode encode to themselves; the others are refused."""
    try:
        value = decode_bcs(layout, data)
    except ToolkitError:
        return
    if b"Unparsable" not in repr(value).encode():
        assert encode_bcs(layout, value) == data


@given(st.text(max_size=30) | json_values)
def test_any_text_is_parsed_or_refused(text):
    """No parser lets a foreign exception out."""
    for parse in (
        parse_address,
        wire_address,
        address_to_bytes,
        parse_table_handle,
        parse_hex,
        ModuleId.parse,
        FunctionId.parse,
        parse_type_tag,
        lambda value: parse_type_tag(value, abi=True),
        decode_module_abi,
    ):
        with contextlib.suppress(ToolkitError):
            parse(text)


_sendable = st.recursive(
    st.sampled_from(sorted(PRIMITIVES)).map(Primitive),
    lambda inner: st.one_of(
        inner.map(Vector),
        st.builds(
            StructTag,
            st.integers(0, 2**256 - 1).map(lambda number: f"0x{number:x}"),
            NAMES,
            NAMES.map(str.title),
            st.lists(inner, max_size=3).map(tuple),
        ),
        st.builds(
            FunctionType,
            st.lists(inner | inner.map(Reference), max_size=2).map(tuple),
            st.lists(inner, max_size=2).map(tuple),
            st.sets(st.sampled_from(ABILITIES)).map(
                lambda chosen: tuple(ability for ability in ABILITIES if ability in chosen)
            ),
        ),
    ),
    max_leaves=6,
)


def _depth(tag: Any) -> int:
    match tag:
        case Vector(element):
            return 1 + _depth(element)
        case Reference(target, _):
            return 1 + _depth(target)
        case StructTag(type_arguments=arguments):
            return 1 + max((_depth(inner) for inner in arguments), default=-1)
        case FunctionType(arguments, results, _):
            return 1 + max((_depth(inner) for inner in arguments + results), default=-1)
        case _:
            return 0


@given(_sendable.filter(lambda tag: _depth(tag) <= MAX_TYPE_DEPTH))
def test_type_tags_survive_text_and_bcs(tag):
    """Text and BCS of a type read back as the same type, with the same hash."""
    read = parse_type_tag(str(tag), abi=True)
    assert read == tag
    assert hash(read) == hash(tag)
    wire = parse_type_tag(wire_type(tag), abi=True)
    assert wire_type(wire) == wire_type(tag)
    writer = Writer()
    write_type_tag(writer, tag)
    reader = Reader(writer.getvalue())
    assert read_type_tag(reader) == tag
    reader.end()


@given(st.binary(max_size=60))
def test_any_bytes_are_a_type_tag_or_refused(data):
    """A type tag that reads from bytes writes the same bytes."""
    reader = Reader(data)
    try:
        tag = read_type_tag(reader)
    except ToolkitError:
        return
    writer = Writer()
    write_type_tag(writer, tag)
    assert writer.getvalue() == data[: reader.position]


def test_a_type_parameter_prints_and_parses():
    """T0 is a type only allowed in ABIs."""
    assert parse_type_tag("T3", abi=True) == TypeParameter(3)
