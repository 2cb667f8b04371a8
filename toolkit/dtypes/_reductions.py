"""Reductions of wide columns: sums, extremes, statistics and groups.

Sums, minima and maxima are exact Python ints. Means, medians, quantiles and variances are computed exactly and rounded
once, to the nearest float64: the mean of ``[1, -2**255 + 1, 2**255 - 1]`` is 1/3, but 0.0 in float arithmetic. `std`
takes a square root after that. Other statistics raise TypeError, since pandas would compute them with floats.
"""

# ruff: noqa: SLF001  # pandas' protocol for arrays is underscored

from __future__ import annotations

import math
from contextlib import suppress
from fractions import Fraction
from itertools import repeat
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.dtypes._storage import KINDS, WideKind, from_ints, to_ints
from toolkit.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    # Of `_extension`, which is above this module.
    WideIntArray: TypeAlias = Any
    WideIntDtype: TypeAlias = Any

STATISTICS = frozenset({"mean", "median", "var", "std"})  # names that `statistic` takes


def arrow_backed(array: pa.Array, dtype: Any) -> Any:
    """Return an Arrow array as an array of one of pandas' Arrow-backed dtypes."""
    return dtype.__from_arrow__(pa.chunked_array([array]))


def booleans(array: pa.Array) -> Any:
    """Return Arrow booleans as a ``bool[pyarrow]`` array."""
    return arrow_backed(array, pd.ArrowDtype(pa.bool_()))


def floats(values: Any) -> Any:
    """Return floats as a ``double[pyarrow]`` array; None and NaN are missing."""
    array = pa.array(values, pa.float64(), from_pandas=True)
    return arrow_backed(array, pd.ArrowDtype(pa.float64()))


def inferred(values: Sequence[Any], dtype: WideIntDtype) -> Any:
    """Return element-wise results as an array.

    Ints that fit become `dtype`; bools and floats become Arrow columns; all other values become objects.
    """
    clean = [None if is_missing(value) else value for value in values]
    kinds = {type(value) for value in clean if value is not None}
    if all(issubclass(kind, (int, np.integer)) and kind is not bool for kind in kinds):
        with suppress(SchemaError):
            return dtype.construct_array_type()._from_sequence(clean, dtype=dtype)
    elif kinds <= {bool, np.bool_}:
        return booleans(pa.array(clean, pa.bool_()))
    elif all(issubclass(kind, float) for kind in kinds):
        return floats(clean)
    array = np.empty(len(values), object)
    for row, value in enumerate(values):  # one by one: numpy would distribute a list over rows
        array[row] = value
    return pd.Series(array, dtype=object).infer_objects().array


def is_missing(value: object) -> bool:
    """Return whether a scalar is missing: None, ``pd.NA`` or NaN."""
    return value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))


def _sum_kind(kind: WideKind) -> WideKind:
    """Return the 256-bit kind for sums, as pandas widens small integers."""
    return KINDS[f"{kind.name[0]}256"]


def reduce_array(
    array: WideIntArray, name: str, *, skipna: bool, keepdims: bool, min_count: int = 0, **options: Any
) -> Any:
    """Reduce a column to one value, or with `keepdims` to an array of length 1.

    Raises
    ------
    TypeError
        If integers do not have this reduction.
    SchemaError
        With `keepdims` (a whole frame's sum), if a sum does not fit 256 bits.
    """
    kind, found = array.dtype.wide, None
    if name in {"any", "all"}:
        result = booleans(pc.not_equal(array.storage, array.boxed(0)))._reduce(name, skipna=skipna)
        return booleans(pa.array([None if result is pd.NA else result], pa.bool_())) if keepdims else result
    present = len(array) - array.storage.null_count
    missing = array._hasna and not skipna
    if name in STATISTICS:
        numbers = [number for number in to_ints(array.storage, kind) if number is not None]
        found = None if missing else statistic(name, numbers, ddof=options.get("ddof", 1))
        return floats([found]) if keepdims else pd.NA if found is None else found
    if name == "sum":
        kind, missing = _sum_kind(kind), missing or present < min_count
        found = sum(number or 0 for number in to_ints(array.storage, array.dtype.wide))
    elif name == "count":
        found, missing = present, False
    elif name in {"argmin", "argmax"}:
        found = getattr(array, name)()
    elif name in {"min", "max"}:
        missing, found = missing or not present, array.unboxed(pc.min_max(array.storage)[name].as_py())
    else:
        raise TypeError(f"cannot perform {name} with type {array.dtype}")
    if keepdims:
        return _wide(array, [None if missing else found], kind)
    return pd.NA if missing else found


def _wide(like: WideIntArray, values: list[int | None], kind: WideKind) -> WideIntArray:
    """Return an array of another kind."""
    return type(like)(from_ints(values, kind), type(like.dtype)(kind.name))


_STEPS: dict[str, Callable[[int, int], int]] = {
    "cumsum": lambda a, b: a + b,
    "cummin": min,
    "cummax": max,
}


def accumulate(array: WideIntArray, name: str, *, skipna: bool, ids: Iterable[int] = repeat(0)) -> WideIntArray:
    """Return the exact cumsum, cummin or cummax, within each group; rows with a negative id are in no group.

    Raises
    ------
    TypeError
        If integers do not have this accumulation.
    """
    if name not in _STEPS:
        raise TypeError(f"cannot perform {name} with type {array.dtype}")
    step, kind = _STEPS[name], array.dtype.wide
    state: dict[int, int | None] = {}
    results: list[int | None] = []
    for number, group in zip(to_ints(array.storage, kind), ids, strict=False):
        if group < 0 or (number is None and skipna):
            results.append(None)
            continue
        before = state.get(group, number)
        fresh = group not in state
        state[group] = None if number is None or before is None else number if fresh else step(before, number)
        results.append(state[group])
    return _wide(array, results, _sum_kind(kind) if name == "cumsum" else kind)


def groupby(
    array: WideIntArray, how: str, *, ids: NDArray[np.intp], ngroups: int, min_count: int, **options: Any
) -> Any:
    """Return the result of a groupby operation.

    Raises
    ------
    TypeError
        If integers do not have this operation.
    """
    options |= {"ids": ids, "ngroups": ngroups, "min_count": min_count}
    skipna = options.get("skipna", True)
    if how == "sum":
        return _wide(array, _group_sums(array, ids, ngroups, min_count, skipna=skipna), _sum_kind(array.dtype.wide))
    if how == "mean":
        counts = np.bincount(ids[(ids >= 0) & ~array.isna()], minlength=ngroups).tolist()
        sums = _group_sums(array, ids, ngroups, 1, skipna=skipna)
        return floats([None if one is None else one / count for one, count in zip(sums, counts, strict=True)])
    if how == "cumsum":
        return accumulate(array, how, skipna=skipna, ids=ids.tolist())
    if how in {"min", "max", "median", "var", "idxmin", "idxmax"}:
        raise NotImplementedError(how)  # pandas then reduces the column of each group, one after the other
    raise TypeError(f"cannot perform {how} with type {array.dtype}")


def quantiles(
    like: WideIntArray, parts: Sequence[pa.FixedSizeBinaryArray], qs: NDArray[np.float64], interpolation: str
) -> Any:
    """Return the quantiles of each part, one part after the other.

    ``lower``, ``higher`` and ``nearest`` are values of the column and have its dtype; ``linear`` and ``midpoint`` are
    the nearest floats of the exact quantile.
    """
    kind = like.dtype.wide
    found: list[Any] = []
    for part in parts:
        ordered = sorted(number for number in to_ints(part, kind) if number is not None)
        found += [quantile(ordered, place, interpolation) for place in qs.tolist()]
    if interpolation in {"lower", "higher", "nearest"}:
        return _wide(like, found, kind)
    return floats([None if one is None else float(one) for one in found])


def _group_sums(
    array: WideIntArray, ids: NDArray[np.intp], ngroups: int, min_count: int, *, skipna: bool
) -> list[int | None]:
    """Return the exact sum of each group, None if it has fewer than `min_count` numbers."""
    missing = array.isna()
    seen = np.bincount(ids[(ids >= 0) & ~missing], minlength=ngroups)
    empty = seen < min_count
    if not skipna:
        empty |= np.bincount(ids[(ids >= 0) & missing], minlength=ngroups) > 0
    sums = [0] * ngroups
    for group, number in zip(ids.tolist(), to_ints(array.storage, array.dtype.wide), strict=True):
        if group >= 0 and number is not None:
            sums[group] += number
    return [None if gone else value for value, gone in zip(sums, empty.tolist(), strict=True)]


def statistic(name: str, values: Sequence[int], *, ddof: int = 1) -> float | None:
    """Return a statistic of integers.

    Parameters
    ----------
    name : {'mean', 'median', 'var', 'std'}
        As pandas names and defines them.
    values : sequence of int
        Any length, any order, nothing missing.
    ddof : int, default 1
        Delta degrees of freedom of ``var`` and ``std``; the others ignore it.

    Returns
    -------
    float or None
        None if there are too few values.
    """
    if name == "mean":
        return sum(values) / len(values) if values else None
    if name == "median":
        middle = quantile(sorted(values), 0.5, "linear")
        return None if middle is None else float(middle)
    count, total = len(values), sum(values)
    if count <= ddof or not count:
        return None
    squares = sum(value * value for value in values)
    variance = Fraction(count * squares - total * total, count * (count - ddof))
    return float(variance) if name == "var" else math.sqrt(variance)


def quantile(ordered: Sequence[int], place: float, interpolation: str) -> Fraction | int | None:
    """Return the quantile of sorted integers.

    Parameters
    ----------
    ordered : sequence of int
        In ascending order.
    place : float
        The quantile, from 0 to 1.
    interpolation : {'linear', 'lower', 'higher', 'midpoint', 'nearest'}
        What to return between two values, as in ``Series.quantile``.

    Returns
    -------
    Fraction, int or None
        Exact; an int for ``lower``, ``higher`` and ``nearest``; None without values.
    """
    if not ordered:
        return None
    position = place * (len(ordered) - 1)  # a float, so that 0.1 of eleven values is the second, as in numpy
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1) if position > below else below
    if interpolation in {"lower", "higher", "nearest"}:
        return ordered[{"lower": below, "higher": above, "nearest": round(position)}[interpolation]]
    part = Fraction(1, 2) if interpolation == "midpoint" and above > below else Fraction(position) - below
    return ordered[below] + (ordered[above] - ordered[below]) * part
