"""Fixed schemas: the data dictionary, what does not fit it, and empty frames."""

from __future__ import annotations

from datetime import UTC, datetime

import pandas as pd
import pyarrow as pa
import pytest

from toolkit.errors import SchemaError
from toolkit.frames import _schema as dictionary
from toolkit.frames._columns import rows_frame
from toolkit.frames._schema import CHANGES, EVENTS, OBSERVATIONS, STEPS, TRANSACTIONS, Column, Schema

SCHEMAS = [value for value in vars(dictionary).values() if isinstance(value, Schema)]
SMALL = Schema(
    "small",
    (
        Column("name", pa.string(), "a name", required=True),
        Column("count", pa.uint64(), "a count", "pieces", source="somewhere"),
        Column("flag", pa.bool_(), "a flag"),
        Column("when", pa.timestamp("us", tz="UTC"), "a time"),
    ),
)


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.name)
def test_column_names_differ(schema):
    """No frame has two columns of one name."""
    assert len(set(schema.names)) == len(schema.names)


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.name)
def test_every_column_says_what_it_means(schema):
    """Each column has a meaning; gas, fees and prices have a unit."""
    for column in schema:
        assert column.meaning
        if column.name.endswith(("_gas_units", "_octas", "gas_used", "gas_unit_price", "gas_before", "gas_after")):
            assert column.unit, column.name


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.name)
def test_an_empty_frame_keeps_the_schema(schema):
    """No rows: every column is there in order, with its type and description."""
    frame = rows_frame(schema, {})
    assert len(frame) == 0
    assert list(frame.columns) == schema.names
    assert frame.dtypes.tolist() == rows_frame(schema, {name: [] for name in schema.names}).dtypes.tolist()
    for column in schema:
        shown = "string" if column.type == pa.string() else str(column.type)
        assert shown.removeprefix("extension<toolkit.")[:4] in str(frame[column.name].dtype)


def test_columns_without_values_are_null():
    """What a builder does not give is missing, not zero."""
    frame = rows_frame(SMALL, {"name": ["a", "b"]})
    assert frame["count"].isna().all()
    assert frame["flag"].isna().all()
    assert frame["name"].tolist() == ["a", "b"]


def test_times_are_exact():
    """Times keep their microseconds and their zone, given as datetimes or as microseconds."""
    time = datetime(2026, 5, 1, 12, 0, 0, 123_457, tzinfo=UTC)
    frame = rows_frame(SMALL, {"name": ["a", "b"], "when": [time, None]})
    assert frame["when"][0] == pd.Timestamp(time)
    assert pd.isna(frame["when"][1])
    micros = rows_frame(SMALL, {"name": ["a"], "when": [1_777_636_800_123_457]})
    assert micros["when"][0] == pd.Timestamp(time)


def test_a_hostile_value_is_shortened_in_the_text():
    """A value from the chain cannot flood the text or its terminal."""
    with pytest.raises(SchemaError) as caught:
        rows_frame(SMALL, {"name": ["a"], "count": ["\x1b[2J" + "x" * 10_000]})
    assert len(str(caught.value)) < 300
    assert "\x1b" not in str(caught.value)


def test_a_required_column_takes_no_null():
    """A null where there must be a value is named by its row."""
    with pytest.raises(SchemaError, match=r"column 'name', row 1: .*null") as caught:
        rows_frame(SMALL, {"name": ["a", None, None]})
    assert caught.value.rows == (1,)


@pytest.mark.parametrize("schema", [TRANSACTIONS, CHANGES, EVENTS, OBSERVATIONS, STEPS], ids=lambda schema: schema.name)
def test_frames_carry_their_dictionary(schema):
    """Unit, source and meaning of each column ride along with the frame."""
    carried = rows_frame(schema, {}).attrs["toolkit"]
    for column in schema:
        assert carried[column.name]["meaning"] == column.meaning
        assert carried[column.name].get("unit", "") == column.unit


@pytest.mark.parametrize("value", [2.5, 2.0**53])
def test_no_float_becomes_an_integer(value):
    """A float is refused in an integer column, whole or not."""
    with pytest.raises(SchemaError, match="gas_used"):
        rows_frame(TRANSACTIONS, {"gas_used": [1, value]})


def test_a_required_column_that_is_left_out_is_said_so():
    """The error names a required column that is left out."""
    with pytest.raises(SchemaError, match="label"):
        rows_frame(OBSERVATIONS, {"ledger_version": [1]})
