"""pandas' own suite for extension arrays; exceptions are listed with their reasons."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
import pytest

if pd.__version__ < "3":
    pytest.skip("its fixtures are those of pandas 3", allow_module_level=True)

from pandas.tests.extension import base
from pandas.tests.extension.conftest import (  # noqa: F401  # fixtures of the suite, found by name
    all_arithmetic_operators,
    all_boolean_reductions,
    all_numeric_accumulations,
    all_numeric_reductions,
    all_reductions,
    as_array,
    as_frame,
    as_series,
    box_in_series,
    comparison_op,
    fillna_method,
    groupby_apply_op,
    invalid_scalar,
    use_numpy,
    using_nan_is_na,
)

from toolkit import dtypes

# data[0] is 1, so that every operator between a column and it stays within the integers.
_DATA = [1, 2, 3, 5, 2**64, 2**70 + 1, 2**100, 7, 11, 13]


IMMUTABLE = "Arrow data is immutable: setting a value replaces the array's data, so views do not see it (as ArrowDtype)"


@pytest.fixture
def dtype():
    """One dtype for the suite; what differs between the four is tested in `test_wide_exactness`."""
    return dtypes.WideIntDtype("u128")


@pytest.fixture
def data(dtype):
    """Ten values, past 64 bits among them."""
    return pd.array(_DATA, dtype=dtype)


@pytest.fixture
def data_for_twos(dtype):
    return pd.array([2] * 10, dtype=dtype)


@pytest.fixture
def data_missing(dtype):
    return pd.array([None, 2**100], dtype=dtype)


@pytest.fixture(params=["data", "data_missing"])
def all_data(request, data, data_missing):
    return data if request.param == "data" else data_missing


@pytest.fixture
def data_repeated(data):
    return lambda count: (data for _ in range(count))


@pytest.fixture
def data_for_sorting(dtype):
    return pd.array([2**65, 2**100, 3], dtype=dtype)


@pytest.fixture
def data_missing_for_sorting(dtype):
    return pd.array([2**65, None, 3], dtype=dtype)


@pytest.fixture
def na_cmp():
    return lambda left, right: left is pd.NA and right is pd.NA


@pytest.fixture
def na_value():
    return pd.NA


@pytest.fixture
def data_for_grouping(dtype):
    b, a, c = 2**70, 5, 2**100
    return pd.array([b, b, None, None, a, a, b, c], dtype=dtype)


class TestWideInt(base.ExtensionTests):
    """All of ``pandas.tests.extension.base``; what is overridden here is what the suite asks authors to declare."""

    _combine_le_expected_dtype = "bool[pyarrow]"

    def _get_expected_exception(self, op_name, obj, other):
        if op_name in {"__pow__", "__rpow__", "__divmod__", "__rdivmod__"}:
            return TypeError
        return None

    def _cast_pointwise_result(self, op_name, obj, other, pointwise_result):
        return pointwise_result.astype("i256") if op_name in {"__sub__", "__rsub__"} else pointwise_result

    def _supports_reduction(self, ser, op_name):
        return op_name not in {"prod", "sem", "skew", "kurt"}

    def _supports_accumulation(self, ser, op_name):
        return op_name != "cumprod"

    def _get_expected_reduction_dtype(self, arr, op_name, skipna):
        if op_name == "sum":
            return f"{arr.dtype.name[0]}256"
        return arr.dtype if op_name in {"min", "max"} else "double[pyarrow]"

    def check_accumulate(self, ser, op_name, skipna):
        result = getattr(ser, op_name)(skipna=skipna)
        expected = getattr(ser.astype(object), op_name)(skipna=skipna)
        assert result.tolist() == expected.tolist()

    def test_arith_series_with_array(self, data, all_arithmetic_operators):  # noqa: F811  # a fixture
        # The suite's own other side is int64, and its reference, numpy's int64 with one number at a time, overflows.
        ser = pd.Series(data)
        self.check_opname(ser, all_arithmetic_operators, pd.Series([data[0]] * len(ser), dtype=data.dtype))

    @pytest.mark.xfail(reason=IMMUTABLE, strict=True)
    def test_view(self, data):
        super().test_view(data)

    @pytest.mark.xfail(reason=IMMUTABLE, strict=True)
    def test_setitem_preserves_views(self, data):
        super().test_setitem_preserves_views(data)

    @pytest.mark.xfail(reason=IMMUTABLE, strict=True)
    def test_transpose(self, data):
        super().test_transpose(data)


def test_the_suite_is_whole():
    """Every class of tests that pandas offers to authors of arrays is run, but the one for arrays of numpy data."""
    offered = {one for name, one in vars(base).items() if name.endswith("Tests") and isinstance(one, type)}
    assert {one for one in offered if not issubclass(TestWideInt, one)} == {base.NDArrayBacked2DTests}


def test_a_column_is_plotted(dtype):
    """`DataFrame.plot` draws a wide column."""
    axes = pd.DataFrame({"x": [1, 2], "y": pd.array([1, 2**100], dtype=dtype)}).plot(x="x", y="y")
    assert axes.lines[0].get_ydata()[-1] == 2.0**100
    plt.close(axes.figure)
