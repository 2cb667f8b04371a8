"""Exact sums of integer columns of any width, and floats for plots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from toolkit.dtypes import limbs
from toolkit.dtypes.extension import WideIntArray
from toolkit.dtypes.kinds import shown
from toolkit.errors import InputError, SchemaError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["exact_sum", "scaled"]


def exact_sum(series: pd.Series) -> int:
    """Sum a column of integers exactly; pandas' own sum of ``uint64[pyarrow]`` wraps silently.

    Parameters
    ----------
    series : Series or array
        Integers of any width, or Python ints as objects; missing rows count as 0.

    Returns
    -------
    int
        Of any size; 0 for no rows.

    Raises
    ------
    SchemaError
        If the column holds anything but integers.

    Examples
    --------
    >>> import pandas as pd
    >>> exact_sum(pd.Series([2**64 - 1, 2**64 - 3], dtype="uint64[pyarrow]"))
    36893488147419103228
    """
    series = pd.Series(series)
    if series.dtype == object:
        return sum(_integers(series))
    return limbs.total(_words(series, "exact_sum"))


def scaled(series: pd.Series, decimals: int = 8) -> pd.Series:
    """Divide a column of integers by ``10**decimals``, as floats for plots: **not exact**.

    Parameters
    ----------
    series : Series, length n
        Integers of any width.
    decimals : int, default 8
        Decimal places of the unit (octas in a coin: 8).

    Returns
    -------
    Series of float64, length n
        Missing rows are NaN. About 16 digits are right; ``attrs["toolkit"]`` says that these are floats.

    Raises
    ------
    SchemaError
        If the column holds anything but integers.
    InputError
        If `decimals` is no number of places, 0 or more.
    """
    places: object = decimals
    if isinstance(places, bool) or not isinstance(places, int) or places < 0:
        raise InputError(f"decimals must be a whole number, 0 or more, got {shown(decimals)}")
    series = pd.Series(series)
    if series.dtype == object:
        values = np.array([np.nan if pd.isna(value) else float(value) for value in series], np.float64)
        _integers(series)
    else:
        values = limbs.to_float(_words(series, "scaled"))
        values[series.isna().to_numpy(dtype=bool)] = np.nan
    result = pd.Series(values / 10.0**decimals, index=series.index, name=series.name)
    result.attrs["toolkit"] = {str(series.name): {"typing": f"float64, divided by 10**{decimals}, not exact"}}
    return result


def _words(series: pd.Series, caller: str) -> NDArray[np.uint64]:
    """Return a column of integers as words, 0 where missing."""
    array: Any = series.array
    if isinstance(array, WideIntArray):
        return array.words()
    kind = series.dtype.kind
    if kind not in {"i", "u"}:
        raise SchemaError(
            f"{caller} takes a column of integers, got {series.dtype}"
            + (f" in column {shown(series.name)}" if series.name is not None else ""),
            column=None if series.name is None else str(series.name),
        )
    return limbs.words_of(series.to_numpy(dtype=np.uint64 if kind == "u" else np.int64, na_value=0))


def _integers(series: pd.Series) -> list[int]:
    """Return the Python ints of an object column, refusing anything else."""
    values = [value for value in series if not pd.isna(value)]
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise SchemaError(f"expected integers, got {shown(value)}")
    return [int(value) for value in values]
