"""Numbers near 2**64 in frames: what machine integers and floats get wrong."""

from __future__ import annotations

import pandas as pd
import pytest

from toolkit import dtypes
from toolkit.errors import InexactError

M = 2**64 - 1


@pytest.mark.fault("`isin` on i128 or i256, with a list that numpy converts to floats", "compared as integers")
@pytest.mark.parametrize(
    ("numbers", "dtype", "wanted", "expected"),
    [
        ([M, 1], "i256", [M, 1], [True, True]),
        ([M - 1, M, M + 1, -1], "i128", [-1, M], [False, True, False, True]),
        ([2**63, 2**63 + 1], "i256", [2**63, 5], [True, False]),
    ],
)
def test_isin_does_not_take_a_neighbour(numbers, dtype, wanted, expected):
    """2**64 is not found for 2**64 - 1."""
    assert pd.Series(numbers, dtype=dtype).isin(wanted).tolist() == expected


@pytest.mark.fault("group means whose sums cancel out", "computed from the exact sum and rounded once")
def test_a_group_has_the_mean_of_its_column():
    """The mean of a group is not 0 because floats lost the small number."""
    series = pd.Series([1099272, -(2**255) + 1, 2**255 - 1], dtype="i256")
    assert series.groupby([0, 0, 0]).mean().tolist() == [series.mean()] == [366424.0]


@pytest.mark.fault("a rolling sum of u256", "an error that names the exact alternative")
def test_a_rolling_sum_is_refused_or_exact():
    """pandas computes windows with floats only."""
    series = pd.Series([2**200, 1, 1], dtype="u256")
    with pytest.raises(InexactError, match=r"totals - totals\.shift\(n, fill_value=0\)"):
        series.rolling(2).sum()
    totals = series.cumsum()
    assert (totals - totals.shift(2, fill_value=0)).tolist() == [2**200, 2**200 + 1, 2]


@pytest.mark.fault("labels of mixed sizes in `Index.loc`", "found as integers")
def test_labels_of_mixed_sizes_are_found():
    """Neither a KeyError for a label that is there, nor the row of its neighbour."""
    series = pd.Series([1, 2, 3], index=pd.Index([2**64, M, 3], dtype="u128"))
    assert series.loc[[M, 3]].tolist() == [2, 3]
    assert series.loc[[3, 2**64]].tolist() == [3, 1]


@pytest.mark.fault(
    "`uint64[pyarrow]` == a wide column, with the narrow side first",
    "compared as integers, instead of False throughout",
)
def test_a_narrow_column_on_the_left_compares_numbers():
    """pandas' Arrow arrays answer False for every type that they do not know."""
    narrow = pd.Series([M, 3], dtype="uint64[pyarrow]")
    assert (narrow == pd.Series([M, 4], dtype="u128")).tolist() == [True, False]


@pytest.mark.fault("numpy's float64 compared with 2**100 + 1", "compared exactly")
def test_a_numpy_float_is_not_its_neighbour():
    """numpy rounds the integer before it compares."""
    assert (pd.Series([2**100 + 1], dtype="u128") == dtypes.scaled(pd.Series([2**100]), 0)[0]).tolist() == [False]


@pytest.mark.parametrize("how", ["inner", "outer", "left", "right"])
def test_sorted_indexes_of_two_widths_are_joined(how):
    """pandas takes a short cut for sorted indexes, which raised ValueError."""
    wide, narrow = pd.Index([1, M, 2**64], dtype="u128"), pd.Index([2, M], dtype="uint64")
    expected = {"inner": [M], "outer": [1, 2, M, 2**64], "left": [1, M, 2**64], "right": [2, M]}
    assert wide.join(narrow, how=how).tolist() == expected[how]
    assert wide.intersection(narrow).tolist() == [M]
    assert narrow.union(wide).tolist() == [1, 2, M, 2**64]
