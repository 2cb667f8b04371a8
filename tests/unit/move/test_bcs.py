"""BCS of values and type tags, bounded and canonical."""

from __future__ import annotations

import pytest

from toolkit.errors import InputError, SchemaError
from toolkit.move import (
    Address,
    Bytes,
    EnumOf,
    Int,
    OptionOf,
    String,
    StructOf,
    StructTag,
    UInt,
    Vector,
    VectorOf,
    decode_bcs,
    encode_bcs,
    parse_type_tag,
)
from toolkit.move._bcs import Reader, Writer, read_type_tag, write_type_tag
from toolkit.move._values import read_value

TAG = StructTag("0x1", "m", "S")


@pytest.mark.parametrize(
    ("layout", "value", "data"),
    [
        (UInt(16), 258, "0201"),
        (Int(8), -1, "ff"),
        (Int(16), -2, "feff"),
        (Int(128), -1, "ff" * 16),
        (Int(256), -(2**255), "00" * 31 + "80"),
        (UInt(256), 2**255, "00" * 31 + "80"),
        (Address(), "0x1", "00" * 31 + "01"),
        (Bytes(), b"\x01\x02", "020102"),
        (String(), "\u00e9", "02c3a9"),
        (OptionOf(UInt(8)), None, "00"),
        (OptionOf(UInt(8)), 7, "0107"),
        (OptionOf(OptionOf(UInt(8))), {"vec": [None]}, "0100"),
        (OptionOf(OptionOf(OptionOf(UInt(8)))), {"vec": [{"vec": [7]}]}, "01010107"),
        (VectorOf(UInt(16)), [1, 2], "0201000200"),
        (StructOf(TAG, (("b", UInt(8)), ("a", UInt(16)))), {"b": 1, "a": 2}, "010200"),
        (EnumOf(TAG, (("A", ()), ("B", (("x", UInt(8)),)))), {"__variant__": "B", "x": 9}, "0109"),
    ],
)
def test_values_have_these_bytes(layout, value, data):
    """Little-endian integers, ULEB128 lengths and indices, fields in declared order."""
    assert encode_bcs(layout, value).hex() == data
    assert decode_bcs(layout, bytes.fromhex(data)) == value


def test_an_enum_of_many_variants_has_a_long_index():
    """Indices past 127 take two bytes."""
    layout = EnumOf(TAG, tuple((f"V{n}", ()) for n in range(200)))
    assert encode_bcs(layout, {"__variant__": "V199"}).hex() == "c701"
    assert decode_bcs(layout, bytes.fromhex("c701")) == {"__variant__": "V199"}


def test_a_text_that_is_not_utf8_reads_as_the_node_prints_it():
    """JSON and BCS give equal Python values."""
    assert decode_bcs(String(), b"\x02\xff\xfe") == "Unparsable utf-8 0xfffe"


def test_several_values_follow_one_another():
    """Answers of views do not have lengths between values."""
    reader = Reader(b"\x02\x05\x00\x01a")
    assert reader.uleb128() == 2
    assert read_value(reader, UInt(16)) == 5
    assert read_value(reader, String()) == "a"
    reader.end()
    with pytest.raises(SchemaError, match=r"view\[2\]: byte 5: .*\bu16\b"):
        read_value(reader, UInt(16), where="view[2]")


def test_a_hostile_length_costs_nothing():
    """A length is checked against what follows before anything is made."""
    with pytest.raises(SchemaError, match="length 2147483647 exceeds"):
        decode_bcs(VectorOf(VectorOf(UInt(64))), bytes.fromhex("ffffffff07"))


def test_the_primitives_read_what_they_write():
    """Each width, bools, bytes, texts, addresses."""
    writer = Writer()
    for bits in (8, 16, 64):
        getattr(writer, f"u{bits}")(2**bits - 1)
    writer.bool(value=True)
    writer.bool(value=False)
    writer.uleb128(2**32 - 1)
    writer.bytes(b"ab")
    writer.string("\u00e9")
    writer.address("0xcafe")
    writer.fixed(b"zz")
    reader = Reader(writer.getvalue())
    for bits in (8, 16, 64):
        assert getattr(reader, f"u{bits}")() == 2**bits - 1
    assert (reader.bool(), reader.bool(), reader.uleb128()) == (True, False, 2**32 - 1)
    assert (reader.bytes(), reader.string()) == (b"ab", "\u00e9")
    assert reader.address() == f"0x{'cafe':0>64}"
    assert reader.remaining == 2
    with pytest.raises(SchemaError, match=r"byte \d+: .*trailing bytes: 2"):
        reader.end()
    assert reader.fixed(2) == b"zz"


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda w: w.u8(256), "number 256 is out of range for u8"),
        (lambda w: w.u64(True), "expected u64 as an int, got boolean true"),
        (lambda w: w.uleb128(2**32), "number 4294967296 is out of range for u32"),
        (lambda w: w.string("\ud800"), "a string with a lone surrogate cannot be encoded as UTF-8"),
    ],
)
def test_the_writer_refuses_what_does_not_fit(write, message):
    """Nothing is cut."""
    with pytest.raises(SchemaError, match=message):
        write(Writer())


def test_type_tags_have_these_bytes():
    """The order of the tags on the network, not of the alphabet."""
    writer = Writer()
    for text in ("bool", "u8", "u64", "u128", "address", "signer", "u16", "u32", "u256"):
        write_type_tag(writer, parse_type_tag(text))
    assert writer.getvalue().hex() == "00010203040508090a"
    writer = Writer()
    write_type_tag(writer, parse_type_tag("vector<0x1::m::S<i8, i256>>"))
    assert writer.getvalue().hex() == "0607" + "00" * 31 + "01" + "016d" + "0153" + "02" + "0c11"


def test_type_tags_of_abis_cannot_be_sent():
    """A type parameter, a bare reference and a type past the limit cannot be written as bytes."""
    for text in ("T0", "vector<&u8>"):
        with pytest.raises(InputError, match="only allowed in ABIs"):
            write_type_tag(Writer(), parse_type_tag(text, abi=True))
    tag = parse_type_tag("u8")
    for _ in range(9):
        tag = Vector(tag)
    with pytest.raises(InputError, match=r"\b8\b"):
        write_type_tag(Writer(), tag)


def test_function_types_keep_references_and_abilities():
    """Parameters are references or values; abilities are bits."""
    tag = parse_type_tag("|&u8, &mut bool|u64 has copy + key", abi=True)
    writer = Writer()
    write_type_tag(writer, tag)
    assert writer.getvalue().hex() == "0b0200010100010202" + "09"
    assert read_type_tag(Reader(writer.getvalue())) == tag


def test_a_variants_failing_field_is_named():
    """Also inside Options of Options."""
    layout = VectorOf(OptionOf(OptionOf(EnumOf(TAG, (("A", (("x", UInt(64)),)),)))))
    with pytest.raises(SchemaError) as caught:
        decode_bcs(layout, bytes.fromhex("0101010001"))
    assert str(caught.value).startswith("value[0].vec[0].vec[0].x: byte 4: ")
    with pytest.raises(SchemaError, match=r"value\[0\]\.x: expected u64 as an int"):
        encode_bcs(VectorOf(layout.element.element.element), [{"__variant__": "A", "x": "1"}])
