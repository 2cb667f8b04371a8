"""Arrow types and columns of layouts."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

from toolkit import dtypes
from toolkit.errors import SchemaError
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
    parse_type_tag,
)
from toolkit.move._arrow import arrow_type, column, field_columns

TAG = StructTag("0x1", "m", "S")
RECORD = StructOf(TAG, (("id", UInt(64)), ("big", UInt(128)), ("tags", VectorOf(String()))))
SHAPE = EnumOf(
    TAG,
    (
        ("Dot", ()),
        ("Circle", (("r", UInt(8)), ("at", Address()))),
        ("Box", (("r", UInt(64)), ("at", Address()), ("note", OptionOf(String())))),
    ),
)
UNTYPED = Untyped(TAG, "no ABI")
ENDLESS = []
ENDLESS.append(ENDLESS)


@pytest.mark.parametrize(
    ("layout", "kind"),
    [
        (Bool(), pa.bool_()),
        (UInt(8), pa.uint8()),
        (UInt(64), pa.uint64()),
        (Int(16), pa.int16()),
        (Int(64), pa.int64()),
        (UInt(128), dtypes.u128()),
        (Int(256), dtypes.i256()),
        (OptionOf(UInt(256)), dtypes.u256()),
        (Address(), pa.string()),
        (ObjectOf(), pa.string()),
        (String(), pa.string()),
        (Bytes(), pa.binary()),
        (VectorOf(UInt(256)), pa.list_(pa.string())),
        (VectorOf(VectorOf(Bool())), pa.list_(pa.list_(pa.bool_()))),
        (OptionOf(OptionOf(UInt(8))), pa.struct([("vec", pa.list_(pa.uint8()))])),
        (RECORD, pa.struct([("id", pa.uint64()), ("big", pa.string()), ("tags", pa.list_(pa.string()))])),
        (
            SHAPE,
            pa.struct(
                [
                    ("__variant__", pa.string()),
                    ("Circle.r", pa.uint8()),
                    ("at", pa.string()),
                    ("Box.r", pa.uint64()),
                    ("note", pa.string()),
                ]
            ),
        ),
        (FunctionValue(parse_type_tag("||", abi=True)), pa.string()),
        (UNTYPED, pa.string()),
    ],
)
def test_layouts_have_these_arrow_types(layout, kind):
    """The table of the design; wide integers are extension types at top level, strings below it."""
    assert arrow_type(layout) == kind
    assert column(layout, []).type == kind
    assert column(layout, [None]).to_pylist() == [None]


def test_a_wide_integer_inside_others_is_a_string():
    """Pandas would hand out raw bytes there."""
    assert arrow_type(UInt(128), nested=True) == pa.string()


def test_the_largest_numbers_stay_exact():
    """No float is on the way."""
    assert column(UInt(64), [2**64 - 1]).to_pylist() == [2**64 - 1]
    assert column(UInt(256), [2**256 - 1, None]).to_pylist() == [2**256 - 1, None]
    assert column(VectorOf(Int(256)), [[-(2**255)]]).to_pylist() == [[str(-(2**255))]]


def test_fields_on_their_own_have_their_own_types():
    """What stood as text inside a struct or an enum is a wide integer again beside it."""
    wide = EnumOf(TAG, (("None", ()), ("Some", (("debt", Int(128)),))))
    values = [{"__variant__": "Some", "debt": -(2**127)}, {"__variant__": "None"}, None]
    name, debt = field_columns(OptionOf(wide), column(OptionOf(wide), values))
    assert (name[0], name[1].to_pylist()) == ("__variant__", ["Some", "None", None])
    assert (debt[0], debt[1].type, debt[1].to_pylist()) == ("debt", dtypes.i128(), [-(2**127), None, None])
    kept = OptionOf(OptionOf(UInt(8)))
    assert [name for name, _ in field_columns(kept, column(kept, [{"vec": [7]}]))] == ["vec"]


def test_a_struct_without_fields_keeps_its_rows():
    """Move gives every struct a field, a hostile ABI need not."""
    layout = StructOf(TAG, ())
    assert column(layout, [{}, None, {}]).to_pylist() == [{}, None, {}]


def test_an_enum_column_holds_all_variants(expected_cells):
    """A field that two variants share under one type shares its column; the others carry the variant's name."""
    values = [
        {"__variant__": "Dot"},
        None,
        {"__variant__": "Circle", "r": 1, "at": "0x1"},
        {"__variant__": "Box", "r": 2**64 - 1, "at": "0x2", "note": None},
    ]
    array = column(SHAPE, values)
    assert array.flatten()[2].to_pylist() == [None, None, "0x1", "0x2"]
    assert array.to_pylist() == expected_cells(SHAPE, values)


def test_untyped_values_become_json_text():
    """The text is compact and keeps characters outside ASCII."""
    values = [{"b": [1, "\u00e9"]}, 5, None]
    array = column(UNTYPED, values)
    assert array.to_pylist() == ['{"b":[1,"\u00e9"]}', "5", None]


@pytest.mark.parametrize(
    ("layout", "values", "message", "rows"),
    [
        (UInt(8), [1, 256, 2, 300], "row 1: value: expected integer<u8> as an int in 0..255, got number 256", (1, 3)),
        (
            UInt(64),
            [1.0],
            "row 0: value: expected string<u64> as an int in 0..18446744073709551615, got number 1.0",
            (0,),
        ),
        (UInt(8), [True], "row 0: value: expected integer<u8> as an int in 0..255, got boolean true", (0,)),
        (Bool(), [1], "row 0: value: expected a boolean, got number 1", (0,)),
        (Address(), ["0x1", "zz"], "row 1: value: expected string<address>, got string 'zz'", (1,)),
        (VectorOf(Bool()), [[None]], "row 0: value[0]: expected a boolean, got null", (0,)),
        (VectorOf(String()), ["ab"], "row 0: value: expected an array, got string 'ab'", (0,)),
        (RECORD, [{"id": 1}], "row 0: value: expected 0x1::m::S with the field big, got object with 'id'", (0,)),
        (
            RECORD,
            [None, {"id": 1, "big": -1, "tags": []}],
            f"row 1: value.big: expected string<u128> as an int in 0..{2**128 - 1}, got number -1",
            (1,),
        ),
        (
            RECORD,
            [{"id": 1, "big": 1, "tags": [], "more": 1}],
            "row 0: value: expected 0x1::m::S with the fields id, big, tags, got also 'more'",
            (0,),
        ),
        (
            SHAPE,
            [{"__variant__": "No"}],
            "row 0: value: expected __variant__ to be one of Dot, Circle, Box, got string 'No'",
            (0,),
        ),
        (
            OptionOf(OptionOf(Bool())),
            [{"vec": [True, True]}],
            "row 0: value: expected an Option of an Option, as None or {\"vec\": [x]}, got object with 'vec'",
            (0,),
        ),
        (UNTYPED, [ENDLESS], "the values do not fit a column of type string", ()),
        (
            OptionOf(OptionOf(OptionOf(Bool()))),
            [{"vec": [True]}],
            'row 0: value: expected an Option of an Option, as None or {"vec": [x]}, got boolean true',
            (0,),
        ),
        (
            SHAPE,
            [{"__variant__": "Dot", "r": 1}],
            "row 0: value: expected 0x1::m::S without fields, got also 'r'",
            (0,),
        ),
        (StructOf(TAG, ()), [{}, {"r": 1}], "row 1: value: expected 0x1::m::S without fields, got also 'r'", (1,)),
        (String(), ["\ud800"], "the values do not fit a column of type string", ()),
    ],
)
def test_values_that_do_not_fit_are_named_by_row(layout, values, message, rows):
    """The first failing value is shown, the first failing rows are listed."""
    with pytest.raises(SchemaError) as caught:
        column(layout, values)
    assert str(caught.value) == message
    assert caught.value.rows == rows


def test_a_column_survives_parquet(tmp_path, expected_cells):
    """Nested and wide columns come back equal."""
    values = [{"id": 1, "big": 2**128 - 1, "tags": ["a"]}, None]
    table = pa.table({"nested": column(RECORD, values), "wide": column(Int(128), [-1, None])})
    import pyarrow.parquet as pq

    pq.write_table(table, tmp_path / "t.parquet")
    again = pq.read_table(tmp_path / "t.parquet")
    assert again["nested"].to_pylist() == expected_cells(RECORD, values)
    assert again["wide"].combine_chunks().to_pylist() == [-1, None]


def test_the_package_does_not_import_pyarrow():
    """Only `toolkit.move._arrow` pays for it."""
    code = (
        "import sys, toolkit.move, toolkit.move._values, toolkit.move._bcs;"
        "assert not {'pyarrow', 'pandas', 'numpy', 'pydantic'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
