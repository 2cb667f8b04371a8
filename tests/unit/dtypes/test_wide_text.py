"""Text to integers and back."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit import dtypes
from toolkit.dtypes import _arrow
from toolkit.errors import SchemaError

NAMES = list(_arrow.KINDS)


def numbers(name):
    """Numbers of a kind, edges and every width among them."""
    kind = _arrow.KINDS[name]
    edges = [0, 1, kind.low, kind.high, 10**38, 10**38 - 1, 10**75, 10**76, 10**76 - 1, -(10**76), -(10**75), -1]
    sized = st.integers(1, kind.bits).flatmap(lambda bits: st.integers(-(1 << bits), 1 << bits))
    return st.one_of(st.sampled_from(edges), sized).filter(lambda value: kind.low <= value <= kind.high)


def columns():
    """A type name and a column of that type, missing values among them."""
    return st.sampled_from(NAMES).flatmap(
        lambda name: st.tuples(st.just(name), st.lists(st.none() | numbers(name), max_size=30))
    )


@given(columns())
def test_text_to_column_to_text_is_identity(case):
    """Every number of every width comes back as it was written, as text and as a Python int."""
    name, values = case
    texts = [None if value is None else str(value) for value in values]
    column = dtypes.wide_from_text(texts, _arrow.wide_type(name))
    assert column.to_pylist() == values
    assert _arrow.wide_to_text(column).to_pylist() == texts
    assert column.equals(dtypes.wide_from_ints(values, _arrow.wide_type(name)))


@given(columns(), st.integers(0, 5), st.integers(0, 10))
def test_slices_and_chunks_are_read_where_they_start(case, start, length):
    """A slice of an Arrow array, and a chunked array, give the same as a fresh one."""
    name, values = case
    wide = _arrow.wide_type(name)
    texts = pa.array([None if value is None else str(value) for value in values], pa.string())
    part = dtypes.wide_from_text(texts.slice(start, length), wide)
    assert part.to_pylist() == values[start : start + length]
    whole = dtypes.wide_from_text(pa.chunked_array([texts, texts]), wide)
    assert whole.to_pylist() == values * 2
    assert (
        _arrow.wide_to_text(whole.slice(start, length)).to_pylist() == (texts.to_pylist() * 2)[start : start + length]
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "text",
    [
        "",
        " 1",
        "1 ",
        "+1",
        "1e3",
        "0x10",
        "007",
        "1.0",
        "1_0",
        "-0",
        "00",
        "--1",
        "-",
        "\uff11",
        "1\n",
        "nan",
        "9" * 5000,
    ],
)
def test_anything_but_canonical_digits_is_refused(name, text):
    """Text that a cast would take, or wrap, never reaches it; the message names the row and stays short."""
    with pytest.raises(SchemaError, match="row 2: ") as caught:
        dtypes.wide_from_text(["1", None, text], _arrow.wide_type(name), column="amount")
    assert "column 'amount'" in str(caught.value)
    assert len(str(caught.value)) < 400
    assert (caught.value.column, caught.value.rows) == ("amount", (2,))


@pytest.mark.parametrize("name", NAMES)
def test_one_past_each_end_is_refused(name):
    """The ends are in, one further is out: as text and as an int."""
    kind, wide = _arrow.KINDS[name], _arrow.wide_type(name)
    ends = [kind.low, kind.high]
    assert dtypes.wide_from_text([str(end) for end in ends], wide).to_pylist() == ends
    for value in (kind.low - 1, kind.high + 1):
        with pytest.raises(SchemaError, match=f"row 1: .* {name}"):
            dtypes.wide_from_text(["0", str(value)], wide)
        with pytest.raises(SchemaError, match=f"row 1: .* does not fit {name}"):
            dtypes.wide_from_ints([0, value], wide)


def test_values_that_arrow_wraps_come_out_exact():
    """2**256 - 1 is itself, not the -1 of Arrow's own cast (apache/arrow issue 49817)."""
    values = [2**256 - 1, 2**128 + 5, 10**76, 10**77 + 3]
    texts = [str(value) for value in values]
    assert dtypes.wide_from_text(texts, dtypes.u256()).to_pylist() == values


@pytest.mark.parametrize("value", [1.0, True, "1", b"1", object()])
def test_ints_are_ints(value):
    """No float, bool or text slips in where ints are asked for."""
    with pytest.raises(SchemaError, match="row 0: "):
        dtypes.wide_from_ints([value], dtypes.u128())


@pytest.mark.parametrize("texts", [[1], [1.5], pa.array([1]), pa.array([1.5])])
def test_numbers_are_no_text(texts):
    """Numbers in place of text are refused: they may have been floats."""
    with pytest.raises(SchemaError, match="text"):
        dtypes.wide_from_text(texts, dtypes.u128())


def test_empty_and_all_missing_columns_work():
    """No rows, and only missing ones, are columns too."""
    for texts in ([], [None, None], pa.nulls(2)):
        column = dtypes.wide_from_text(texts, dtypes.i256())
        assert _arrow.wide_to_text(column).to_pylist() == [None] * len(texts)
