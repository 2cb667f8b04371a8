"""exact_sum and scaled."""

from __future__ import annotations

import math

import pandas as pd
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


@pytest.mark.parametrize("decimals", [-1, 1.5, True, "8"])
def test_decimals_are_a_number_of_places(decimals):
    """A wrong number of places is the caller's error."""
    with pytest.raises(InputError, match="decimals must be a non-negative int"):
        dtypes.scaled(pd.Series([1]), decimals)
