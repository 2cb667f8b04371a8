"""Wide columns in pandas: operators, sums, groups, keys."""

from __future__ import annotations

import math
import operator
import pickle
from fractions import Fraction

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit import dtypes
from toolkit.dtypes import _arrow
from toolkit.errors import InputError, SchemaError

NAMES = list(_arrow.KINDS)
BIG = 2**127


def values(name):
    """Numbers of a kind of any size."""
    kind = _arrow.KINDS[name]
    sized = st.integers(1, kind.bits).flatmap(lambda bits: st.integers(-(1 << bits), 1 << bits))
    return st.one_of(st.sampled_from([0, 1, kind.low, kind.high]), sized).filter(lambda v: kind.low <= v <= kind.high)


def pairs():
    """Two kinds and two columns of the same length, missing values among them."""
    return st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).flatmap(
        lambda names: st.tuples(
            st.just(names), st.lists(st.tuples(*(st.none() | values(name) for name in names)), min_size=1, max_size=12)
        )
    )


def plain(series):
    """A column as Python ints and None."""
    return [None if value is pd.NA else value for value in series.tolist()]


@given(pairs(), st.sampled_from(["add", "sub", "mul", "floordiv", "mod"]))
def test_arithmetic_is_exact_or_refused(case, name):
    """Results are Python's own, whatever the two widths; where they do not fit, an error and no wrapped number."""
    (first, second), rows = case
    op = getattr(operator, name)
    left = pd.Series([a for a, _ in rows], dtype=first)
    right = pd.Series([b for _, b in rows], dtype=second)
    try:
        expected = [None if a is None or b is None else op(a, b) for a, b in rows]
    except ZeroDivisionError:
        with pytest.raises(ZeroDivisionError):
            op(left, right)
        return
    wide = first if first[0] == second[0] and int(first[1:]) >= int(second[1:]) else second
    kind = _arrow.KINDS[wide if first[0] == second[0] else "i256"]
    signed = _arrow.KINDS["i256"]
    if name == "sub" and all(value is None or signed.low <= value <= signed.high for value in expected):
        kind = signed if not kind.signed else kind
    if all(value is None or kind.low <= value <= kind.high for value in expected):
        result = op(left, right)
        assert plain(result) == expected
        assert result.dtype == kind.name
    else:
        with pytest.raises(SchemaError, match=f"does not fit {kind.name}.*astype"):
            op(left, right)


@given(pairs(), st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"]))
def test_comparison_is_exact_across_widths(case, name):
    """Any two wide columns compare as the numbers they hold; missing stays missing."""
    (first, second), rows = case
    op = getattr(operator, name)
    result = op(pd.Series([a for a, _ in rows], dtype=first), pd.Series([b for _, b in rows], dtype=second))
    assert result.dtype == "bool[pyarrow]"
    assert plain(result) == [None if a is None or b is None else op(a, b) for a, b in rows]


@given(pairs())
def test_conversion_between_kinds_is_exact_or_refused(case):
    """astype keeps the number or refuses it, and never changes it."""
    (first, second), rows = case
    numbers = [a for a, _ in rows]
    kind = _arrow.KINDS[second]
    series = pd.Series(numbers, dtype=first)
    if all(value is None or kind.low <= value <= kind.high for value in numbers):
        assert plain(series.astype(second)) == numbers
    else:
        with pytest.raises(SchemaError, match=f"does not fit {second}"):
            series.astype(second)


@given(pairs())
def test_sums_extremes_and_order_are_those_of_python(case):
    """sum, min, max, sort, rank, unique and counts agree with Python ints."""
    (name, _), rows = case
    numbers = [a for a, _ in rows]
    present = [value for value in numbers if value is not None]
    series = pd.Series(numbers, dtype=name)
    assert series.sum() == dtypes.exact_sum(series) == sum(present)
    if present:
        assert (series.min(), series.max()) == (min(present), max(present))
        assert math.isclose(series.mean(), sum(present) / len(present))
    assert plain(series.sort_values().dropna()) == sorted(present)
    assert plain(series.sort_values(ascending=False).dropna()) == sorted(present, reverse=True)
    assert plain(series.unique()) == list(dict.fromkeys(numbers))
    assert series.value_counts().to_dict() == {value: present.count(value) for value in present}
    if None not in numbers or not pd.__version__.startswith("2.2"):  # which ranks missing rows, also those of Int64
        assert series.rank(method="dense").dropna().tolist() == [sorted(set(present)).index(v) + 1 for v in present]


@given(pairs(), st.data())
def test_groups_sum_exactly(case, data):
    """groupby's sum, min, max, first, last, cumsum and count are Python's own; sums get 256 bits."""
    (name, _), rows = case
    numbers = [None if a is None else a // 16 for a, _ in rows]
    keys = data.draw(st.lists(st.sampled_from("ab"), min_size=len(numbers), max_size=len(numbers)))
    frame = pd.DataFrame({"key": keys, "value": pd.Series(numbers, dtype=name)})
    found = frame.groupby("key")["value"].agg(["sum", "min", "max", "count", "first", "last"])
    assert found["sum"].dtype == f"{name[0]}256"
    for key in set(keys):
        group = [v for k, v in zip(keys, numbers, strict=True) if k == key and v is not None]
        row = found.loc[key]
        assert (row["sum"], row["count"]) == (sum(group), len(group))
        if group:
            assert (row["min"], row["max"], row["first"], row["last"]) == (min(group), max(group), group[0], group[-1])
    running = frame.groupby("key")["value"].cumsum()
    for key in set(keys):
        group = [v for k, v in zip(keys, numbers, strict=True) if k == key and v is not None]
        mine = [v for k, v in zip(keys, plain(running), strict=True) if k == key and v is not None]
        assert mine == [sum(group[: place + 1]) for place in range(len(group))]


def test_plain_integers_join_in():
    """Python ints, numpy and Arrow integers work with a wide column; a number out of range compares right."""
    series = pd.Series([1, BIG, None], dtype="u128")
    native = pd.Series([2**64 - 1, 0, 1], dtype="uint64[pyarrow]")
    assert plain(series + native) == [2**64, BIG, None]
    assert plain(series - 1) == [0, BIG - 1, None]
    assert plain(2 * series.head(1)) == [2]
    assert plain(series + pd.Series([1, 2, 3])) == [2, BIG + 2, None]
    assert plain(series > -(2**300)) == [True, True, None]
    assert plain(series == native) == [False, False, None]
    assert plain(-series.astype("i256")) == [-1, -BIG, None]
    assert plain(abs(-series.astype("i256"))) == [1, BIG, None]


@given(pairs(), st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.decimals(allow_nan=False, places=3))
def test_quotients_are_the_nearest_floats(case, number):
    """By a number or a column, from either side: the float nearest to the exact quotient, infinite for a zero."""
    (first, second), rows = case
    left, right = (pd.Series([row[side] for row in rows], dtype=name) for side, name in enumerate((first, second)))
    for found, parts in (
        (left / right, rows),
        (left / number, [(a, number) for a, _ in rows]),
        (number / left, [(number, a) for a, _ in rows]),
    ):
        assert found.dtype == "double[pyarrow]"
        for value, (above, below) in zip(found.tolist(), parts, strict=True):
            if above is None or below is None or (not above and not below):
                assert value is pd.NA
            elif not below or math.isinf(above) or math.isinf(below):
                assert value is pd.NA or value == 0 or math.isinf(value)
            else:
                try:
                    assert value == float(Fraction(above) / Fraction(below))
                except OverflowError:
                    assert math.isinf(value)


def test_what_is_not_a_number_does_not_divide():
    """Text and truth values are refused by name."""
    for other in ("2", True):
        with pytest.raises(TypeError, match=f"truediv: u128 and {type(other).__name__}"):
            pd.Series([1], dtype="u128") / other


def test_floats_are_refused_in_arithmetic():
    """A float operand is an error that names the way to floats."""
    with pytest.raises(TypeError, match=r"toolkit.scaled"):
        pd.Series([1], dtype="u128") * 1.5


@pytest.mark.parametrize("bad", [1.5, 1.0, True, "0x1", "1e3", object()])
def test_no_other_value_gets_in(bad):
    """Building and setting refuse anything that is not an integer."""
    with pytest.raises(SchemaError):
        pd.array([bad], dtype="u128")
    series = pd.Series([1], dtype="u128")
    with pytest.raises(SchemaError):
        series[0] = bad


@pytest.mark.parametrize("how", ["prod", "sem", "skew", "kurt", "cumprod"])
def test_other_statistics_are_refused(how):
    """pandas would compute them with floats: of a column, of a frame, and of groups."""
    frame = pd.DataFrame({"key": [1, 1], "v": pd.array([2**100, 1], dtype="u128")})
    for source in (frame["v"], frame[["v"]], frame.groupby("key")["v"], frame.groupby("key")):
        if hasattr(source, how):
            with pytest.raises(TypeError, match=f"{how}.* u128"):
                getattr(source, how)()


def test_powers_are_refused():
    """They hardly ever fit."""
    with pytest.raises(TypeError, match="Python ints"):
        pd.Series([2], dtype="u256") ** 3


def test_wide_columns_are_keys():
    """They merge, group, index, concat and pivot as any key does."""
    left = pd.DataFrame({"key": pd.array([BIG, 1, None], dtype="u128"), "a": [1, 2, 3]})
    right = pd.DataFrame({"key": pd.array([1, BIG, BIG], dtype="u128"), "b": [10, 20, 30]})
    assert left.merge(right, on="key")["b"].tolist() == [20, 30, 10]
    assert right.groupby("key")["b"].sum().to_dict() == {1: 10, BIG: 50}
    assert right.set_index("key").loc[BIG, "b"].tolist() == [20, 30]
    both = pd.concat([left, right])
    assert both["key"].dtype == "u128"
    assert pd.concat([left["key"], pd.Series([2**64 - 1], dtype="uint64[pyarrow]")]).dtype == "u128"
    assert pd.concat([left["key"], pd.Series([-1])]).tolist()[-1] == -1


def test_frames_with_wide_columns_describe_print_and_travel():
    """describe, text, CSV, JSON (as text: no float in any reader) and pickles work."""
    frame = pd.DataFrame({"u": pd.array([BIG, None], dtype="u128")})
    assert frame.describe().loc["max", "u"] == float(BIG)
    assert str(BIG) in frame.to_string()
    assert str(BIG) in frame.to_csv()
    assert f'"{BIG}"' in frame.to_json()
    assert frame.T.iloc[0, 0] == BIG
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(frame)), frame)  # noqa: S301  # our own bytes


def test_conversion_out_of_the_wide_dtypes():
    """Text and integers are exact; floats come where they are asked for."""
    series = pd.Series([5, None], dtype="i256")
    assert series.astype("string").tolist() == ["5", pd.NA]
    assert series.astype("int64[pyarrow]").tolist() == [5, pd.NA]
    assert series.astype("Int64").tolist() == [5, pd.NA]
    assert series.dropna().astype("int64").tolist() == [5]
    assert math.isnan(series.astype("float64")[1])
    assert series.astype("category").cat.categories.tolist() == [5]
    with pytest.raises(SchemaError, match="does not fit"):
        pd.Series([BIG], dtype="u128").astype("uint64[pyarrow]")
    with pytest.raises(ValueError, match="missing"):
        series.astype("int64")


def test_read_csv_reads_wide_columns():
    """`read_csv(dtype=...)` gives exact numbers."""
    from io import StringIO

    assert pd.read_csv(StringIO(f"u\n{BIG}\n"), dtype={"u": "u128"})["u"].tolist() == [BIG]


def test_arrow_arrays_hand_out_python_ints():
    """Scalars of the extension type are ints; other arrays are refused by name."""
    array = dtypes.wide_from_ints([-1, None], dtypes.i128())
    assert array.to_pylist() == [-1, None]
    assert array[0].as_py() == -1
    with pytest.raises(InputError, match="wide integer"):
        _arrow.wide_to_text(pa.array([1]))
    with pytest.raises(InputError, match="expected one of u128"):
        _arrow.wide_type("u512")


def test_arrow_types_survive_messages_and_pickles():
    """IPC and pickle restore the type; a stranger's claim to the name is refused."""
    table = pa.table({"u": dtypes.wide_from_ints([1], dtypes.u256())})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    assert pa.ipc.open_stream(sink.getvalue()).read_all().equals(table)
    assert pickle.loads(pickle.dumps(dtypes.u256())) == dtypes.u256()  # noqa: S301  # our own bytes
    with pytest.raises(SchemaError, match="not written by this toolkit"):
        dtypes.WideIntType.__arrow_ext_deserialize__(pa.binary(7), b"u256")
