"""exact_sum, exact_diff and scaled."""

from __future__ import annotations

import math
import random
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit import dtypes
from toolkit.errors import InputError, SchemaError


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([2**64 - 1, None, 2**64 - 3], "uint64[pyarrow]"),
        ([2**64 - 1, None, 2**64 - 3], "UInt64"),
        ([2**63 - 1, 2**63 - 1], "int64"),
        ([-(2**63), -(2**63), None], "int64[pyarrow]"),
        ([255, 255], "uint8[pyarrow]"),
        ([2**256 - 1, 2**256 - 1, None], "u256"),
        ([-(2**255), -(2**255), 3], "i256"),
        ([2**300, None, -1], object),
        ([], "u128"),
        ([], "uint64[pyarrow]"),
    ],
)
def test_sums_never_wrap(values, dtype):
    """The sum is Python's, past 64 and past 256 bits."""
    assert dtypes.exact_sum(pd.Series(values, dtype=dtype)) == sum(value for value in values if value is not None)


@given(st.lists(st.none() | st.integers(0, 2**64 - 1)))
def test_sums_of_u64_columns_are_exact(values):
    """Whatever a u64 column holds, nulls included."""
    assert dtypes.exact_sum(pd.Series(values, dtype="uint64[pyarrow]")) == sum(v for v in values if v is not None)


@pytest.mark.parametrize(
    "series",
    [
        pd.Series([1.5]),
        pd.Series(["1"]),
        pd.Series([True]),
        pd.Series([1, 1.5], dtype=object),
        pd.Series([True], dtype=object),
    ],
)
@pytest.mark.parametrize("function", [dtypes.exact_sum, dtypes.scaled])
def test_only_integers_are_summed(series, function):
    """Floats, bools and text are refused."""
    with pytest.raises(SchemaError, match="integers"):
        function(series)


def test_scaled_gives_floats_and_says_so():
    """Octas become coins as float64; missing is NaN; attrs say that this is not exact."""
    result = dtypes.scaled(pd.Series([150_000_000, None, 2**128 - 1], dtype="u128", name="supply", index=[3, 4, 5]))
    assert result.dtype == "float64"
    assert (result[3], result.index.tolist(), result.name) == (1.5, [3, 4, 5], "supply")
    assert math.isnan(result[4])
    assert math.isclose(result[5], (2**128 - 1) / 10**8)
    assert result.attrs["toolkit"]["supply"]["typing"] == "float64, divided by 10**8, not exact"
    assert dtypes.scaled(pd.Series([-5, 7]), decimals=0).tolist() == [-5.0, 7.0]
    assert dtypes.scaled(pd.Series([-(2**255)], dtype="i256"), 0).tolist() == [-(2.0**255)]
    assert dtypes.scaled(pd.Series([10**30, None], dtype=object), 30)[0] == 1.0


@pytest.mark.parametrize(("dtype", "limit"), [("uint64[pyarrow]", 2**64), ("u128", 2**128), ("u256", 2**256)])
@pytest.mark.parametrize("decimals", [0, 8, 30, 400])
def test_scaled_rounds_once(dtype, limit, decimals):
    """Each float is the nearest one to the quotient, for integers of any length and for decimals by row."""
    numbers = random.Random(1)
    values = [numbers.randrange(2 ** numbers.randrange(1, limit.bit_length())) for _ in range(500)]
    values += [2**53 - 1, 2**53, 2**53 + 1, limit - 1]
    series = pd.Series(values, dtype=dtype)
    assert dtypes.scaled(series, decimals).tolist() == [value / 10**decimals for value in values]
    by_row = pd.Series([place % (decimals + 1) for place in range(len(values))])
    expected = [value / 10**place for value, place in zip(values, by_row, strict=True)]
    assert dtypes.scaled(series, by_row).tolist() == expected


def test_numbers_that_no_float_can_hold_are_refused():
    """An int beyond the largest float, and decimals beyond which every quotient is 0."""
    with pytest.raises(SchemaError, match=r"row 1: .*exact=True"):
        dtypes.scaled(pd.Series([1, 10**400], dtype=object))
    with pytest.raises(InputError, match=r"^decimals .*\b400\b"):
        dtypes.scaled(pd.Series([1]), 10**9)


@pytest.mark.parametrize("decimals", [-1, 1.5, True, "8"])
def test_decimals_are_a_number_of_places(decimals):
    """A wrong number of places is the caller's error."""
    with pytest.raises(InputError, match=r"^decimals "):
        dtypes.scaled(pd.Series([1]), decimals)


def differences(values, periods):
    """Return the differences of Python ints, None where one of the two is missing."""
    earlier = [values[n - periods] if 0 <= n - periods < len(values) else None for n in range(len(values))]
    return [None if a is None or b is None else a - b for a, b in zip(values, earlier, strict=True)]


@given(
    values=st.lists(st.none() | st.integers(0, 2**64 - 1), min_size=1),
    periods=st.integers(-3, 3),
    dtype=st.sampled_from(["uint64[pyarrow]", "UInt64", "u128"]),
)
def test_differences_are_exact_whatever_the_direction(values, periods, dtype):
    """A column that falls has negative differences, never an overflow, and missing rows stay missing."""
    series = pd.Series(values, dtype=dtype, name="octas", index=range(5, 5 + len(values)))
    found = dtypes.exact_diff(series, periods)
    assert found.astype(object).where(found.notna(), None).tolist() == differences(values, periods)
    assert (str(found.dtype), found.name) == ("i256" if dtype == "u128" else "i128", "octas")
    assert found.index.equals(series.index)


def test_differences_within_groups():
    """Rows of one owner are compared with that owner's, by name of a column or by several."""
    frame = pd.DataFrame({"owner": ["a", "b", "a", "b"], "coin": ["x"] * 4, "octas": [5, 2**64 - 1, 3, 0]})
    octas = frame["octas"].astype("uint64[pyarrow]")
    for by in (frame["owner"], frame["owner"].to_numpy(), [frame["owner"], frame["coin"]]):
        assert dtypes.exact_diff(octas, by=by).tolist() == [pd.NA, pd.NA, -2, 1 - 2**64]


@pytest.mark.parametrize(
    ("values", "dtype"), [([1.5], "float64"), (["1"], object), ([True], "bool"), ([2**255, 0], "u256")]
)
def test_differences_of_other_columns_are_refused(values, dtype):
    """Floats, text, bools, and what does not fit 256 signed bits."""
    with pytest.raises(SchemaError):
        dtypes.exact_diff(pd.Series(values, dtype=dtype))


@pytest.mark.parametrize("dtype", ["uint64[pyarrow]", "Int64", "u128", "i256", object])
def test_exact_scaling_is_decimal(dtype):
    """Octas become coins without a float, and can be summed and compared."""
    values = [150_000_000, None, 1, 2**63 - 1]
    coins = dtypes.scaled(pd.Series(values, dtype=dtype), 8, exact=True)
    expected = [None if value is None else Decimal(value).scaleb(-8) for value in values]
    assert [None if value is pd.NA else value for value in coins.tolist()] == expected
    assert coins.sum() == sum(filter(None, expected))
    assert coins.attrs["toolkit"]["None"]["typing"].startswith("decimal")


def test_what_no_decimal_can_represent_is_refused():
    """The error names the row and says what to do; numbers are not rounded and digits are not lost."""
    with pytest.raises(SchemaError, match=r"row 1: 1157.* divided by 10\*\*8 .* 76 digits"):
        dtypes.scaled(pd.Series([1, 2**256 - 1], dtype="u256"), 8, exact=True)
    with pytest.raises(InputError, match=r"\b38\b.*\b39\b"):
        dtypes.scaled(pd.Series([1]), 39, exact=True)
    with pytest.raises(SchemaError, match="float64"):
        dtypes.scaled(pd.Series([1.5]), 8, exact=True)
    most = dtypes.scaled(pd.Series([2**64 - 1], dtype="uint64[pyarrow]"), 18, exact=True)
    assert most.tolist() == [Decimal(2**64 - 1).scaleb(-18)]


def test_the_difference_of_two_columns_is_exact():
    """`after - before` of u64 columns ends in an error of Arrow; `exact_diff` is the documented way."""
    after, before = (pd.Series(values, dtype="uint64[pyarrow]") for values in ([1, 2**64 - 1, None], [2, 0, 5]))
    assert dtypes.exact_diff(after, before).tolist() == [-1, 2**64 - 1, pd.NA]
    assert dtypes.exact_diff(before.astype("u256"), after).dtype == "i256"
    for calculate in (lambda: after - before, before.diff, lambda: before.groupby([1, 1, 1]).diff()):
        with pytest.raises(pa.ArrowInvalid, match="overflow"):
            calculate()
    with pytest.raises(InputError, match="`by`"):
        dtypes.exact_diff(after, before, by=[1, 1, 1])


@pytest.mark.parametrize("calculate", [dtypes.exact_sum, dtypes.exact_diff, dtypes.scaled])
def test_a_frame_is_not_a_column(calculate):
    """The message has one of its columns."""
    with pytest.raises(InputError, match=r"got a DataFrame; .*frame\['gas'\]"):
        calculate(pd.DataFrame({"gas": [1]}))
