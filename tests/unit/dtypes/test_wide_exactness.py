"""What pandas does with wide columns is exact, rounded once, or refused by name: no float in between."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.dtypes import _arrow, exact_diff
from toolkit.errors import InexactError, SchemaError

KINDS = _arrow.KINDS
NAMES = list(KINDS)
M = 2**64 - 1


@st.composite
def columns(draw, *, min_size=0, missing=True):
    """Return a dtype name and numbers close to the places where floats and machine words end."""
    name = draw(st.sampled_from(NAMES))
    kind = KINDS[name]
    ends = [
        0, 1, 3, 2**53, 2**63, 2**64, 2**100, kind.low, kind.high, kind.high // 2, kind.low // 2,
    ]  # fmt: skip
    near = st.builds(lambda end, step: end + step, st.sampled_from(ends), st.integers(-2, 2))
    number = near.filter(lambda value: kind.low <= value <= kind.high)
    values = st.lists(st.none() | number if missing else number, min_size=min_size, max_size=12)
    return name, draw(values)


def plain(values):
    return [None if value is pd.NA else value for value in values.tolist()]


def nearest(fraction):
    """Return the float that is nearest to an exact result, or None without a result."""
    return None if fraction is None else float(fraction)


def variance(values, ddof=1):
    if len(values) <= ddof:
        return None
    mean = Fraction(sum(values), len(values))
    return sum((value - mean) ** 2 for value in values) / (len(values) - ddof)


def median(values):
    ordered, half = sorted(values), len(values) // 2
    return None if not values else Fraction(ordered[half] + ordered[-half - 1], 2)


def moments(values, power):
    mean = Fraction(sum(values), len(values))
    return sum((value - mean) ** power for value in values)


STATISTICS = {
    "mean": lambda values: nearest(Fraction(sum(values), len(values)) if values else None),
    "median": lambda values: nearest(median(values)),
    "var": lambda values: nearest(variance(values)),
    "std": lambda values: None if variance(values) is None else math.sqrt(variance(values)),
}


@pytest.mark.fault("`isin` on i128 or i256, with a list that numpy converts to floats", "compared as integers")
@given(columns(), st.data())
def test_isin_is_exact(column, data):
    """`isin` compares integers as integers, in lists that numpy would make floats of, sets, arrays and series."""
    name, numbers = column
    series = pd.Series(numbers, dtype=name)
    wanted = data.draw(st.lists(st.sampled_from([*numbers, M, M + 1, -1, 1, 2**53 + 1]), max_size=4))
    expected = [value in wanted for value in numbers]
    assert series.isin(wanted).tolist() == expected
    assert series.isin(pd.Series(wanted, dtype=object)).tolist() == expected
    assert pd.Index(series).isin(wanted).tolist() == expected
    assert pd.DataFrame({"v": series}).isin(wanted)["v"].tolist() == expected
    present = {value for value in wanted if value is not None}
    assert series.isin(present).tolist() == [value in present for value in numbers]


@given(columns(), st.sampled_from(list(STATISTICS)))
def test_statistics_of_a_column_are_rounded_once(column, statistic):
    """mean, median and var are the nearest float of the exact result; std is one square root away."""
    name, numbers = column
    present = [value for value in numbers if value is not None]
    series = pd.Series(numbers, dtype=name)
    expected = STATISTICS[statistic](present)
    found = getattr(series, statistic)()
    assert (None if found is pd.NA else found) == expected
    assert plain(getattr(series.to_frame("v"), statistic)()) == [expected]
    unskipped = getattr(series, statistic)(skipna=False)
    assert (None if unskipped is pd.NA else unskipped) == (expected if None not in numbers else None)


@pytest.mark.fault("group means whose sums cancel out", "computed from the exact sum and rounded once")
@given(columns(), st.data())
def test_groups_are_computed_as_columns_are(column, data):
    """Every aggregation of a group equals the same one of the group alone."""
    name, numbers = column
    keys = data.draw(st.lists(st.sampled_from("ab"), min_size=len(numbers), max_size=len(numbers)))
    frame = pd.DataFrame({"key": keys, "v": pd.Series(numbers, dtype=name)})
    groups = frame.groupby("key")["v"]
    for how in ["mean", "median", "var", "std", "min", "max", "nunique", "count", "first", "last"]:
        found = getattr(groups, how)()
        for key, part in groups:
            present = part.dropna()
            if how in {"first", "last"}:
                expected = None if present.empty else present.iloc[0 if how == "first" else -1]
            else:
                expected = getattr(part, how)()
            assert plain(found[[key]]) == [None if expected is pd.NA else expected]
    assert plain(groups.transform("mean")) == [STATISTICS["mean"]([
        other for mine, other in zip(keys, numbers, strict=True) if mine == key and other is not None
    ]) for key in keys]  # fmt: skip


@given(columns(), st.data())
def test_running_extremes_of_groups_are_exact(column, data):
    """cummax and cummin keep the dtype; a missing row stays missing."""
    name, numbers = column
    keys = data.draw(st.lists(st.sampled_from("ab"), min_size=len(numbers), max_size=len(numbers)))
    groups = pd.DataFrame({"key": keys, "v": pd.Series(numbers, dtype=name)}).groupby("key")["v"]
    for how, best in (("cummax", max), ("cummin", min)):
        found, state, expected = getattr(groups, how)(), {}, []
        for key, number in zip(keys, numbers, strict=True):
            if number is not None:
                state[key] = best(state.get(key, number), number)
            expected.append(None if number is None else state[key])
        assert found.dtype == name
        assert plain(found) == expected


def test_statistics_of_groups_are_found_by_agg_and_pivot_table():
    """By name, in lists and dicts, in windows of time, and with other degrees of freedom."""
    frame = pd.DataFrame({"k": list("aabb"), "v": pd.array([2**100, 2**100 + 6, 5, None], dtype="u128")})
    expected = [math.sqrt(18), None]
    groups = frame.groupby("k")
    assert plain(groups["v"].agg(["mean", "std"])["std"]) == expected
    assert plain(groups.agg({"v": ["sum", "std"]})["v", "std"]) == expected
    assert plain(groups.agg(spread=("v", "std"))["spread"]) == expected
    assert plain(groups["v"].transform("std")) == [expected[0], expected[0], None, None]
    assert plain(groups["v"].std(ddof=0)) == [3.0, 0.0]
    assert frame.pivot_table(index="k", values="v", aggfunc="std")["v"].tolist() == [math.sqrt(18)]
    assert frame.pivot_table(index="k", values="v", aggfunc="sum")["v"].tolist() == [2**101 + 6, 5]
    hours = pd.Series(frame["v"].array, index=pd.date_range("2026", periods=4, freq="h"))
    assert plain(hours.resample("2h").std()) == expected


@given(columns(), st.data())
def test_running_sums_of_groups_are_exact_or_refused(column, data):
    """cumsum by group has 256 bits; what does not fit is an error."""
    name, numbers = column
    keys = data.draw(st.lists(st.sampled_from("ab"), min_size=len(numbers), max_size=len(numbers)))
    groups = pd.DataFrame({"key": keys, "v": pd.Series(numbers, dtype=name)}).groupby("key")["v"]
    kind = KINDS[f"{name[0]}256"]
    state, expected = {}, []
    for key, number in zip(keys, numbers, strict=True):
        state[key] = state.get(key, 0) + (number or 0)
        expected.append(None if number is None else state[key])
    if all(value is None or kind.low <= value <= kind.high for value in expected):
        assert plain(groups.cumsum()) == expected
    else:
        with pytest.raises(SchemaError, match="does not fit"):
            groups.cumsum()


@given(columns(min_size=1, missing=False), st.floats(0, 1))
def test_quantiles_are_rounded_once(column, place):
    """They are the nearest floats of the exact quantile."""
    name, numbers = column
    series, ordered = pd.Series(numbers, dtype=name), sorted(numbers)
    position = place * (len(numbers) - 1)
    low, high = ordered[math.floor(position)], ordered[math.ceil(position)]
    assert series.quantile(place) == float(low + (high - low) * (Fraction(position) - math.floor(position)))
    with pytest.raises(TypeError, match="linear"):
        series.quantile(place, interpolation="lower")


@pytest.mark.parametrize("name", NAMES)
def test_groups_of_an_empty_column_have_means(name):
    """It has the dtype of other means."""
    means = [pd.Series(rows, dtype=name).to_frame("v").groupby([0] * len(rows))["v"].mean() for rows in ([], [1])]
    assert means[0].dtype == means[1].dtype == "double[pyarrow]"


@pytest.mark.parametrize("name", NAMES)
def test_quantiles_of_groups_are_those_of_each_group(name):
    """Before pandas 3.1 an extension array cannot say what they are, and pandas raises TypeError."""
    series = pd.Series([2**100 + 2, 5, 2**100, None, 7, 2**99], dtype=name)
    groups = series.to_frame("v").groupby(list("abaabb"))["v"]
    each = [part.quantile([0.1, 0.5]).tolist() for _, part in groups]
    assert groups.apply(lambda series: series.quantile(0.5)).tolist() == [place[1] for place in each]
    if hasattr(pd.api.extensions.ExtensionArray, "_groupby_quantile"):
        assert groups.quantile([0.1, 0.5]).tolist() == [place for group in each for place in group]
    else:
        with pytest.raises(TypeError):
            groups.quantile(0.5)


@pytest.mark.fault("labels of mixed sizes in `Index.loc`", "found as integers")
@given(columns(min_size=1, missing=False), st.data())
def test_labels_are_found_exactly(column, data):
    """`.loc` with a list finds the integers of the list and no neighbours, whatever numpy makes of the list."""
    name, numbers = column
    labels = list(dict.fromkeys(numbers))
    series = pd.Series(range(len(labels)), index=pd.Index(labels, dtype=name))
    wanted = data.draw(st.lists(st.sampled_from(labels), min_size=1, max_size=4))
    assert series.loc[wanted].tolist() == [labels.index(label) for label in wanted]
    assert series.index.get_indexer(wanted).tolist() == [labels.index(label) for label in wanted]
    assert series.reindex(wanted).tolist() == [labels.index(label) for label in wanted]
    assert series.drop(wanted).index.tolist() == [label for label in labels if label not in wanted]
    absent = data.draw(st.sampled_from([M, M + 1, -1, 2**53 + 1, 7]).filter(lambda label: label not in labels))
    with pytest.raises(KeyError, match=str(absent)):
        series.loc[[absent, *wanted]]


def test_a_list_that_numpy_makes_floats_of_does_not_find_its_neighbour():
    """[2**64 - 1, -1] is an array of floats in numpy, whose first is 2**64: that row is not returned for it."""
    series = pd.Series([1, 2], index=pd.Index([2**64, -1], dtype="i128"))
    with pytest.raises(KeyError, match="18446744073709551615"):
        series.loc[[M, -1]]
    # pandas 2.2 refuses labels that are not in the index before it looks for them.
    refused = (IndexError, "only integers") if pd.__version__.startswith("2.2") else (InexactError, r"dtype='i128'")
    with pytest.raises(refused[0], match=refused[1]):
        series[[M, -1]] = 5
    with pytest.raises(InexactError, match=r"1\.8446744073709552e\+19"):
        series.index.get_indexer(np.array([M, -1]))
    assert series.index.get_indexer(np.array([-1.0])).tolist() == [1]


@pytest.mark.fault("numpy's float64 compared with a wide integer", "compared exactly")
@given(columns(min_size=1), st.sampled_from([2.0**53, 2.0**64, 2.0**100, -1.0, 0.5, math.inf]))
def test_comparison_with_floats_is_exact(column, bound):
    """A number equals a float only if it is that very number: as a scalar of Python or numpy, from both sides."""
    name, numbers = column
    series = pd.Series(numbers, dtype=name)
    expected = [None if value is None else value == bound for value in numbers]
    for other in (bound, np.float64(bound), pd.Series([bound] * len(numbers)), [np.float64(bound)] * len(numbers)):
        assert plain(series == other) == expected
    assert plain(pd.Series([bound] * len(numbers), dtype="double[pyarrow]") == series) == expected
    assert plain(np.float64(bound) == series) == expected
    assert plain(series < np.float64(bound)) == [None if value is None else value < bound for value in numbers]


@pytest.mark.fault("a narrow column compared with a wide one on its right", "compared as integers")
@pytest.mark.parametrize("dtype", ["uint64[pyarrow]", "UInt64", "uint64", "Int64", "int64[pyarrow]"])
def test_machine_integers_may_be_on_the_left(dtype):
    """Operators give one answer whichever side the wide column is on."""
    wide, narrow = pd.Series([3, 2**100], dtype="u128"), pd.Series([3, 5], dtype=dtype)
    assert plain(narrow == wide) == plain(wide == narrow) == [True, False]
    assert plain(narrow != wide) == [False, True]
    assert plain(narrow < wide) == [False, True]
    assert plain(narrow + wide) == plain(wide + narrow) == [6, 2**100 + 5]
    assert plain(narrow * wide) == [9, 5 * 2**100]


@pytest.mark.parametrize("name", NAMES)
def test_windows_and_their_like_are_those_of_the_nearest_floats(name):
    """What pandas computes in floats only, it computes of the nearest floats."""
    series = pd.Series([2**101 + 1, 2**100, 3], dtype=name)
    frame, floats = series.to_frame("v").assign(w=[1, 1, 2]), series.astype("float64")
    for calculate in (
        lambda series: series.rolling(2).sum(), lambda series: series.expanding().mean(),
        lambda series: series.rolling(2).agg(["sum", "std"])["std"], lambda series: series.ewm(1).mean(),
        lambda series: frame.assign(v=series).rolling(2).mean()["v"],
        lambda series: frame.assign(v=series).groupby("w")["v"].rolling(2).sum(),
        lambda series: frame.assign(v=series).cov()["v"], lambda series: frame.assign(v=series).corr()["w"],
        lambda series: pd.cut(series, 2), lambda series: pd.qcut(series, 2),
    ):  # fmt: skip
        pd.testing.assert_series_equal(calculate(series), calculate(floats))
    assert series.corr(frame["w"]) == floats.corr(frame["w"])
    with pytest.raises(NotImplementedError):
        series.interpolate()
    assert series.to_numpy("float64").tolist() == series.astype("float64").tolist() == [2.0**101, 2.0**100, 3.0]


@given(columns(missing=False), st.integers(1, 4))
def test_sums_of_windows_have_an_exact_way(column, rows):
    """The rolling sum by cumulative sums, the bins by searchsorted, differences after a conversion."""
    name, numbers = column
    numbers = [number // 16 for number in numbers]
    series = pd.Series(numbers, dtype=name)
    totals = series.cumsum()
    windows = [sum(numbers[max(0, end - rows) : end]) for end in range(1, len(numbers) + 1)]
    assert plain(totals - totals.shift(rows, fill_value=0)) == windows
    edges = [0, 3, 2**64]
    found = pd.array(edges, dtype=name).searchsorted(series)
    assert found.tolist() == [sum(edge < number for edge in edges) for number in numbers]
    differences = [None, *(after - before for before, after in pairwise(numbers))][: len(numbers)]
    assert plain(series.astype("i256").diff()) == differences
    assert series.astype(object).diff().tolist()[1:] == differences[1:]


def test_a_difference_that_does_not_fit_names_the_exact_way():
    """`exact_diff` for i128; where even i256 is too small, Python ints."""
    series = pd.Series([2**127 - 1, -(2**127)], dtype="i128")
    with pytest.raises(SchemaError, match=r"use toolkit\.exact_diff, .*astype\(object\)"):
        series.diff()
    assert exact_diff(series)[1] == 1 - 2**128
    series = pd.Series([2**256 - 1, 5], dtype="u256")
    with pytest.raises(SchemaError, match=r"; convert first with series\.astype\(object\)"):
        series.diff()
    assert series.astype(object).diff()[1] == 5 - (2**256 - 1)


@given(columns(missing=False), st.data())
def test_mapping_with_a_dict_is_exact(column, data):
    """Integers of a dict or Series stay what they are, also with rows that it lacks."""
    name, numbers = column
    known = data.draw(st.lists(st.sampled_from(numbers), unique=True)) if numbers else []
    table = dict.fromkeys(known, 2**53 + 1)
    series = pd.Series(numbers, dtype=name)
    expected = [table.get(number) for number in numbers]
    assert plain(series.map(table)) == expected
    assert plain(series.map(pd.Series(table, dtype=object))) == expected


def test_a_row_of_a_frame_keeps_the_largest_numbers():
    """A u256 column beside a signed one: rows, transposed frames and joined columns hold Python ints."""
    frame = pd.DataFrame({"a": pd.Series([2**256 - 1], dtype="u256"), "b": [-1]})
    assert frame.iloc[0].tolist() == [2**256 - 1, -1]
    assert frame.T[0].tolist() == [2**256 - 1, -1]
    assert pd.concat([frame["a"], frame["b"]]).tolist() == [2**256 - 1, -1]
    assert frame.melt()["value"].tolist() == [2**256 - 1, -1]
    assert pd.concat([frame["a"], pd.Series([7], dtype="uint64")]).dtype == "u256"
    assert pd.concat([pd.Series([7], dtype="i128"), pd.Series([M], dtype="uint64[pyarrow]")]).dtype == "i128"


def test_keys_of_two_widths_join_exactly():
    """A merge on u256 and i128, int64 or object keys compares numbers."""
    left = pd.DataFrame({"k": pd.Series([2**64, M, 3], dtype="u256"), "a": [0, 1, 2]})
    for dtype in ("i128", "int64", object):
        right = pd.DataFrame({"k": pd.Series([3], dtype=dtype), "b": [10]})
        assert left.merge(right, on="k")["a"].tolist() == [2]
    for dtype in ("uint64[pyarrow]", "UInt64", "uint64"):
        right = pd.DataFrame({"k": pd.Series([3], dtype=dtype), "b": [10]})
        with pytest.raises(KeyError):  # pandas does not look for a common dtype of these
            left.merge(right, on="k")
        assert left.merge(right.astype({"k": "u256"}), on="k")["a"].tolist() == [2]
        assert left.sort_values("k").merge(right, on="k")["a"].tolist() == [2]
    floats = pd.DataFrame({"k": [2.0**64], "b": [10]})
    assert left.merge(floats, on="k")["a"].tolist() == [0]


@pytest.mark.parametrize("how", ["inner", "outer", "left", "right"])
def test_sorted_indexes_of_two_widths_are_joined(how):
    """pandas takes a short cut for sorted indexes, which raised ValueError; pandas 2.2 leaves the union unsorted."""
    placed = sorted if pd.__version__.startswith("2.2") else list
    wide, narrow = pd.Index([1, M, 2**64], dtype="u128"), pd.Index([2, M], dtype="uint64")
    expected = {"inner": [M], "outer": [1, 2, M, 2**64], "left": [1, M, 2**64], "right": [2, M]}
    assert placed(wide.join(narrow, how=how)) == expected[how]
    assert wide.intersection(narrow).tolist() == [M]
    assert placed(narrow.union(wide)) == [1, 2, M, 2**64]


def test_other_numbers_compare_exactly():
    """Decimals and fractions are numbers too."""
    series = pd.Series([2**64, M], dtype="u128")
    assert plain(series == Decimal(2**64)) == [True, False]
    assert series.isin([Decimal(M), Fraction(1, 2)]).tolist() == [False, True]
    assert series.isin(np.array([2.0**64])).tolist() == [True, False]
    assert pd.Series([None, 1], dtype="u128").isin([None]).tolist() == [True, False]


def test_largest_and_smallest_are_placed():
    """idxmax and idxmin of a frame, exact where floats are equal."""
    frame = pd.DataFrame({"v": pd.Series([2**100, 2**100 + 1, 2**100 - 1], dtype="i256")})
    assert (frame.idxmax()["v"], frame.idxmin()["v"]) == (1, 2)


def test_u64_sums_by_group_have_an_exact_way():
    """pandas' own uint64 sum wraps; that of a u128 column does not."""
    frame = pd.DataFrame({"k": [0, 0], "v": pd.Series([M, 5], dtype="uint64[pyarrow]")})
    assert frame.astype({"v": "u128"}).groupby("k")["v"].sum().tolist() == [M + 5]


@pytest.mark.parametrize("target", ["float64", "Float64", "double[pyarrow]"])
@pytest.mark.parametrize("name", NAMES)
def test_floats_are_the_nearest_ones(name, target):
    """As ``float(int)``: rounded once, ties to even, for numbers of every length and around every tie."""
    numbers, kind = random.Random(2), KINDS[name]
    values = [kind.low, kind.high, 0, 1]
    for _ in range(2_000):
        tie = (2 * numbers.getrandbits(53) + 1) << numbers.randrange(kind.high.bit_length())
        values += [numbers.getrandbits(numbers.randrange(1, 257)), *(tie + step for step in (-1, 0, 1))]
    values += [-value for value in values]
    values = [value for value in values if kind.low <= value <= kind.high]
    assert pd.Series(values, dtype=name).astype(target).tolist() == list(map(float, values))
