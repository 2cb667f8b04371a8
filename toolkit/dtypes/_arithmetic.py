"""Arithmetic of wide columns: exact operators, sums, minima and maxima, statistics and groups, and scaling to floats.

The result of an operator has the wider dtype of the two operands. Differences of unsigned columns are i256, because
they may be negative; those of u256 that do not fit are u256. A result out of range raises SchemaError; it never wraps.
Quotients are the nearest floats. Sums, minima and maxima are exact Python ints. Means, medians, quantiles and variances
are computed exactly and rounded once, to the nearest float64: the mean of ``[1, -2**255 + 1, 2**255 - 1]`` is 1/3, but
0.0 in float arithmetic. `std` then takes a square root. Other statistics raise TypeError, since pandas would compute
them with floats.
"""

# ruff: noqa: SLF001  # pandas' protocol for arrays is underscored

from __future__ import annotations

import math
from contextlib import suppress
from decimal import Context, Decimal
from fractions import Fraction
from itertools import cycle, repeat
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pandas.api.extensions import ExtensionScalarOpsMixin  # type: ignore[attr-defined]  # missing in the stubs
from pandas.api.types import is_list_like

from toolkit.dtypes._arrow import KINDS, WideKind, common_kind, from_ints, shown, to_ints
from toolkit.errors import InputError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    # Both are in `_extension`, which imports this module.
    WideIntArray: TypeAlias = Any
    WideIntDtype: TypeAlias = Any


_MAX_DECIMALS = 38  # digits of Arrow's decimal128; the next is decimal256's
_MAX_DIGITS = 76
_COMPARE = {"eq": pc.equal, "ne": pc.not_equal, "lt": pc.less}
_COMPARE |= {"le": pc.less_equal, "gt": pc.greater, "ge": pc.greater_equal}


def _mapped(array: WideIntArray, name: str, function: Callable[[int], int]) -> WideIntArray:
    """Return an array of the results of applying a function to each number."""
    kind = array.dtype.wide
    results = [None if number is None else function(number) for number in to_ints(array.storage, kind)]
    return _stored(array, kind, name, results)


def _kind(other: Any) -> WideKind | None:
    """Return the kind of a wide array, or None for other values."""
    return getattr(getattr(other, "dtype", None), "wide", None)


def _objects(other: Any, rows: int) -> list[Any]:
    """Return the other operand as Python values, with None for missing values."""
    if not is_list_like(other):
        other = [other] * rows
    if len(other) != rows:
        raise ValueError(f"Lengths must match: {rows} rows against {len(other)}")
    values = other.tolist() if hasattr(other, "tolist") else list(other)
    return [None if is_missing(value) else plain_number(value) for value in values]


def plain_number(value: Any) -> Any:
    """Convert a numpy scalar to a Python scalar, because numpy compares an int with a float as floats."""
    return value.item() if isinstance(value, np.generic) else value


def _calculate(left: WideIntArray, other: Any, op: Callable[..., Any]) -> Any:
    """Apply an arithmetic operator."""
    name = op.__name__.removeprefix("r")  # 1 + series calls radd
    if name in {"pow", "divmod"}:  # powers hardly ever fit
        raise TypeError(f"unsupported operand for {name}: {left.dtype}; use series.astype(object) for Python ints")
    theirs = _kind(other)
    kind = left.dtype.wide if theirs is None else common_kind(left.dtype.wide, theirs)
    pairs = zip(to_ints(left.storage, left.dtype.wide), _objects(other, len(left)), strict=True)
    if name == "truediv":
        reflected = op.__name__ == "rtruediv"
        return floats([_quotient(b, a, kind) if reflected else _quotient(a, b, kind) for a, b in pairs])
    results = [None if a is None or b is None else op(a, _integer(b, name, kind)) for a, b in pairs]
    return _stored(left, kind, name, results)


def _quotient(first: Any, second: Any, kind: WideKind) -> float | None:
    """Return the float nearest to the exact quotient of two numbers; infinity or NaN for a division by zero."""
    if first is None or second is None:
        return None
    for number in (first, second):
        if isinstance(number, bool) or not hasattr(number, "as_integer_ratio"):
            raise TypeError(f"unsupported operand for truediv: {kind.name} and {type(number).__name__}")
    try:
        (above, below), (times, over) = first.as_integer_ratio(), second.as_integer_ratio()
        return float((above * over) / (below * times))  # Python rounds the quotient of two ints once
    except (ZeroDivisionError, OverflowError, ValueError):  # zero, infinity, NaN, or more than a float can hold
        with np.errstate(all="ignore"):
            return float(np.float64(first) / np.float64(second))


def _integer(value: Any, name: str, kind: WideKind) -> int:
    """Return an operand as an int; raise TypeError for floats, bools and text."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return int(value)
    raise TypeError(
        f"unsupported operand for {name}: {kind.name} and {type(value).__name__}; the other operand must be an integer "
        "(use toolkit.scaled(series) for floats)"
    )


def _stored(like: WideIntArray, kind: WideKind, name: str, results: list[int | None]) -> WideIntArray:
    """Return an array of results, or raise an error with a hint if a number is out of range."""
    if name == "sub" and not kind.signed:
        with suppress(SchemaError):  # some differences of u256 fit u256 only
            return _wide(like, results, KINDS["i256"])
    try:
        return _wide(like, results, kind)
    except SchemaError as error:
        fits = "toolkit.exact_diff" if name == "sub" else "series.astype('i256')"
        wider = f"use {fits}, or " if kind.bits < KINDS["i256"].bits else ""
        raise SchemaError(
            f"result of {name}: {error}; {wider}convert first with series.astype(object) for Python ints of any size",
            rows=error.rows,
        ) from None


def _compare(left: WideIntArray, other: Any, op: Callable[..., Any]) -> Any:
    """Apply a comparison, exact for all widths."""
    kind, name = left.dtype.wide, op.__name__
    if isinstance(other, int) and kind.low <= other <= kind.high:
        return booleans(_COMPARE[name](left.storage, left.boxed(int(other))))
    if _kind(other) == kind:
        return booleans(_COMPARE[name](left.storage, other.storage))
    pairs = zip(to_ints(left.storage, kind), _objects(other, len(left)), strict=True)
    results = [None if a is None or b is None else bool(op(a, b)) for a, b in pairs]
    return booleans(pa.array(results, pa.bool_()))


def _created(calculate: Callable[[WideIntArray, Any, Callable[..., Any]], Any]) -> Any:
    """Return the class method that creates the operators of pandas' extension arrays."""

    def create(cls: type, op: Callable[..., Any]) -> Callable[..., Any]:
        del cls

        def method(self: WideIntArray, other: Any) -> Any:
            if isinstance(other, (pd.Series, pd.Index, pd.DataFrame)):
                return NotImplemented
            return calculate(self, plain_number(other), op)

        method.__name__ = f"__{op.__name__}__"
        return method

    return classmethod(create)


class WideOperators(ExtensionScalarOpsMixin):  # type: ignore[misc]  # pandas-stubs leave it untyped
    """Operators of `WideIntArray`, as pandas creates them for extension arrays."""

    _create_arithmetic_method = _created(_calculate)
    _create_comparison_method = _created(_compare)

    def __neg__(self: WideIntArray) -> WideIntArray:
        return 0 - self

    def __pos__(self: WideIntArray) -> WideIntArray:
        return self.copy()

    def __abs__(self: WideIntArray) -> WideIntArray:
        return _mapped(self, "abs", abs)

    def __invert__(self: WideIntArray) -> WideIntArray:
        kind = self.dtype.wide
        return _mapped(self, "invert", lambda number: kind.low + kind.high - number)


def exact_sum(series: pd.Series) -> int:
    """Return the exact sum of an integer column. The pandas sum of ``uint64[pyarrow]`` wraps silently.

    Parameters
    ----------
    series : Series or array
        Integers of any width, or Python ints as objects; missing rows count as 0.

    Returns
    -------
    int
        The sum, of any size; 0 if `series` is empty.

    Raises
    ------
    InputError
        If `series` is a DataFrame.
    SchemaError
        If the column contains values that are not integers.

    Examples
    --------
    >>> import pandas as pd
    >>> exact_sum(pd.Series([2**64 - 1, 2**64 - 3], dtype="uint64[pyarrow]"))
    36893488147419103228
    """
    series = _column(series, "exact_sum")
    if series.dtype == object:
        return sum(_integers(series))
    _check_integers(series, "exact_sum")
    array: Any = series.array
    if (kind := _kind(array)) is not None:
        return sum(number or 0 for number in to_ints(array.storage, kind))
    numbers = series.to_numpy(dtype=np.uint64 if series.dtype.kind == "u" else np.int64, na_value=0)
    # The sums of the two halves of up to 2**31 numbers fit 64 bits.
    return (int((numbers >> 32).sum()) << 32) + int((numbers & 0xFFFF_FFFF).sum())


def exact_diff(series: pd.Series, periods: int | pd.Series = 1, *, by: Any = None) -> pd.Series:
    """Return the exact difference of two columns, or of each row and an earlier one, like ``Series.diff``.

    For columns of unsigned 64-bit integers, such as balances, pandas' own ``diff()`` and ``after - before`` raise
    ``ArrowInvalid: overflow`` if a value decreases.

    Parameters
    ----------
    series : Series, length n
        Integers of any width, such as balances.
    periods : int or Series, default 1
        Distance to the row to subtract, negative for later rows; or a column of integers to subtract.
    by : Series, array or list of them, optional
        Groups, as for ``Series.groupby``. Rows are compared only within their group.

    Returns
    -------
    Series, length n
        The differences, with the index and the name of `series`. The dtype is i128 for columns of up to 64 bits, and
        i256 for wider columns. A row is missing if either operand is missing.

    Raises
    ------
    InputError
        If `series` is a DataFrame, or `by` is combined with a column to subtract.
    SchemaError
        If the column contains values that are not integers, or a value or a difference does not fit i256.

    Examples
    --------
    >>> import pandas as pd
    >>> from toolkit import exact_diff
    >>> balances = pd.DataFrame({"owner": ["a", "b", "a"], "octas": pd.array([5, 7, 3], dtype="uint64[pyarrow]")})
    >>> exact_diff(balances["octas"], by=balances["owner"]).tolist()
    [<NA>, <NA>, -2]
    >>> after, before = balances["octas"], pd.Series([6, 7, 1], dtype="uint64[pyarrow]")
    >>> exact_diff(after, before).tolist()
    [-1, 0, 2]
    """
    first = _signed(series)
    if isinstance(periods, pd.Series):
        if by is not None:
            raise InputError("exact_diff: `by` requires a number of rows as `periods`, not a column to subtract")
        return first - _signed(periods)
    return first.diff(periods) if by is None else first.groupby(by).diff(periods)


def _signed(series: pd.Series) -> pd.Series:
    """Return a column of integers as i128, which holds every difference of 64-bit integers, or as i256."""
    series = _column(series, "exact_diff")
    _check_integers(series, "exact_diff")
    narrow = series.dtype != object and _kind(series.array) is None
    return series.astype(cast("Any", "i128" if narrow else "i256"))


def scaled(series: pd.Series, decimals: int | pd.Series = 8, *, exact: bool = False) -> pd.Series:
    """Divide a column of integers by ``10**decimals``, for example to convert octas to APT.

    Parameters
    ----------
    series : Series, length n
        Integers of any width.
    decimals : int or Series of int, default 8
        Number of decimal places (8 converts octas to APT), or one number per row, such as the decimals of each row's
        asset. If it is missing for a row, so is the result.
    exact : bool, default False
        Return exact decimals. By default, the nearest floats are returned, correct to about 16 digits, which is enough
        for plots.

    Returns
    -------
    Series, length n
        Floats (``float64``, NaN for missing rows), or decimals (an ``ArrowDtype`` of ``decimal128(38, decimals)``, or
        ``decimal256(76, decimals)`` for u128 to i256 columns; if `decimals` varies by row, the largest is used).
        ``attrs["toolkit"]`` records the division.

    Raises
    ------
    SchemaError
        If the column contains values that are not integers, or a value with more digits than the decimal type.
    InputError
        If `series` is a DataFrame, or if `decimals` is not a non-negative int, exceeds 400 (38 if `exact`), or is a
        Series with another index.

    Examples
    --------
    >>> import pandas as pd
    >>> octas = pd.Series([150_000_000], dtype="u128")
    >>> scaled(octas).tolist()
    [1.5]
    >>> scaled(octas, exact=True).tolist()
    [Decimal('1.50000000')]
    >>> scaled(pd.Series([150, 7]), pd.Series([2, 0]), exact=True).tolist()
    [Decimal('1.50'), Decimal('7.00')]
    """
    series = _column(series, "scaled")
    places = _places(decimals, series)
    _check_integers(series, "scaled")
    largest = max((place for place in places if place is not None), default=0)
    # No column of integers has a quotient other than 0 beyond 400 places.
    most, of = (_MAX_DECIMALS, " for exact results") if exact else (400, "")
    if largest > most:
        raise InputError(f"decimals must be at most {most}{of}, got {shown(largest)}")
    quotients, typing = _decimals(series, places, largest) if exact else _floats(series, places)
    result = pd.Series(quotients, index=series.index, name=series.name)
    how = "decimals" if isinstance(decimals, pd.Series) else decimals
    note = "" if exact else ", not exact"
    result.attrs["toolkit"] = {str(series.name): {"typing": f"{typing}, divided by 10**{how}{note}"}}
    return result


def _places(decimals: int | pd.Series, values: pd.Series) -> list[int | None]:
    """Return the checked decimal places: one number, or one per row, which is None if missing."""
    given: Any = decimals
    if not isinstance(given, pd.Series):
        if isinstance(given, bool) or not isinstance(given, int) or given < 0:
            raise InputError(f"decimals must be a non-negative int, got {shown(decimals)}")
        return [given]
    if not given.index.equals(values.index):
        raise InputError("decimals must have the same index as the values; take both from the same frame")
    places = [None if is_missing(place) else place for place in given.tolist()]
    for place in places:  # a column with missing rows may have become one of floats
        if place is not None and (isinstance(place, bool) or place != int(place) or place < 0):
            raise InputError(f"decimals must be non-negative ints, got {shown(place)}")
    return [None if place is None else int(place) for place in places]


def _floats(series: pd.Series, places: list[int | None]) -> tuple[Any, str]:
    """Divide a column of integers by powers of ten; return the nearest floats. Python rounds each quotient once."""
    quotients = np.full(len(series), np.nan)
    for row, (value, place) in enumerate(zip(series.tolist(), cycle(places))):
        if place is not None and not is_missing(value):
            try:
                quotients[row] = int(value) / 10**place
            except OverflowError:
                text = f"row {row}: {shown(value)} is too large for a float; use exact=True"
                raise SchemaError(text, rows=[row]) from None
    return quotients, "float64"


def _decimals(series: pd.Series, places: list[int | None], largest: int) -> tuple[Any, str]:
    """Divide a column of integers by powers of ten; return decimals and their type."""
    long = series.dtype == object or _kind(series.array) is not None
    precision = _MAX_DIGITS if long else _MAX_DECIMALS
    kind = pa.decimal256(precision, largest) if long else pa.decimal128(precision, largest)
    values = [None if pd.isna(value) else Decimal(int(value)) for value in series.tolist()]
    context = Context(prec=_MAX_DIGITS + 2 * _MAX_DECIMALS)
    quotients = [
        None if value is None or place is None else value.scaleb(-place, context)
        for value, place in zip(values, cycle(places))
    ]
    try:
        return pd.arrays.ArrowExtensionArray(pa.array(quotients, kind)), str(kind)
    except pa.ArrowInvalid:
        limit = Decimal(10) ** (precision - largest)
        row = next(n for n, value in enumerate(quotients) if value is not None and abs(value) >= limit)
        raise SchemaError(
            f"row {row}: {values[row]} divided by 10**{largest} does not fit a decimal of {precision} digits; "
            "use fewer decimals, or floats (exact=False)",
            rows=[row],
        ) from None


def _column(given: Any, caller: str) -> pd.Series:
    """Return a column, or an array, as a Series; raise InputError for a frame."""
    if isinstance(given, pd.DataFrame):
        name = shown(given.columns[0]) if len(given.columns) else "..."
        raise InputError(f"{caller} takes a column of integers, got a DataFrame; pass one column, as frame[{name}]")
    return pd.Series(given)


def _check_integers(series: pd.Series, caller: str) -> None:
    """Raise SchemaError if a column does not contain integers."""
    if series.dtype == object:
        _integers(series)
    elif _kind(series.array) is None and series.dtype.kind not in {"i", "u"}:
        name = series.name
        where = "" if name is None else f" in column {shown(name)}"
        column = None if name is None else str(name)
        raise SchemaError(f"{caller} takes a column of integers, got {series.dtype}{where}", column=column)


def _integers(series: pd.Series) -> list[int]:
    """Return the Python ints of an object column; raise SchemaError for other values."""
    values = [value for value in series if not pd.isna(value)]
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise SchemaError(f"expected integers, got {shown(value)}")
    return [int(value) for value in values]


# reductions -----------------------------------------------------------------------------------------------------------


def arrow_backed(array: pa.Array, dtype: Any) -> Any:
    """Return an Arrow array as an array with one of pandas' Arrow-backed dtypes."""
    return dtype.__from_arrow__(pa.chunked_array([array]))


def booleans(array: pa.Array) -> Any:
    """Return Arrow booleans as a ``bool[pyarrow]`` array."""
    return arrow_backed(array, pd.ArrowDtype(pa.bool_()))


def floats(values: Any) -> Any:
    """Return floats as a ``double[pyarrow]`` array; None and NaN are missing."""
    return arrow_backed(pa.array(values, pa.float64(), from_pandas=True), pd.ArrowDtype(pa.float64()))


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
    """Return the 256-bit kind for sums, just as pandas widens small integers."""
    return KINDS[f"{kind.name[0]}256"]


def reduce_array(
    array: WideIntArray, name: str, *, skipna: bool, keepdims: bool, min_count: int = 0, **options: Any
) -> Any:
    """Reduce a column to one value, or with `keepdims` to an array of length 1.

    Raises
    ------
    TypeError
        If this reduction is not defined for integers.
    SchemaError
        With `keepdims` (a whole frame's sum), if a sum does not fit 256 bits.
    """
    kind, found = array.dtype.wide, None
    if name in {"any", "all"}:
        result = booleans(pc.not_equal(array.storage, array.boxed(0)))._reduce(name, skipna=skipna)
        if not keepdims:
            return result
        return booleans(pa.array([None if result is pd.NA else result], pa.bool_()))
    present = len(array) - array.storage.null_count
    missing = array._hasna and not skipna
    if name in _STATISTICS:
        numbers = [number for number in to_ints(array.storage, kind) if number is not None]
        found = None if missing else statistic(name, numbers, ddof=options.get("ddof", 1))
        if keepdims:
            return floats([found])
        return pd.NA if found is None else found
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
    """Return an array of another type."""
    return type(like)(from_ints(values, kind), type(like.dtype)(kind.name))


_STEPS: dict[str, Callable[[int, int], int]] = {"cumsum": lambda a, b: a + b, "cummin": min, "cummax": max}


def accumulate(array: WideIntArray, name: str, *, skipna: bool, ids: Iterable[int] = repeat(0)) -> WideIntArray:
    """Return the exact cumsum, cummin or cummax within each group. Rows with a negative id do not belong to a group.

    Raises
    ------
    TypeError
        If this accumulation is not defined for integers.
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
        if number is None or before is None:
            state[group] = None
        else:
            state[group] = number if fresh else step(before, number)
        results.append(state[group])
    return _wide(array, results, _sum_kind(kind) if name == "cumsum" else kind)


def groupby(
    array: WideIntArray,
    how: str,
    *,
    ids: NDArray[np.intp],
    ngroups: int,
    min_count: int,
    skipna: bool = True,
    ddof: int = 1,
    **_: Any,
) -> Any:
    """Return the result of a groupby operation.

    Raises
    ------
    TypeError
        If this operation is not defined for integers.
    """
    if how in _STEPS:
        return accumulate(array, how, skipna=skipna, ids=ids.tolist())
    if how in {"min", "max", "idxmin", "idxmax"}:
        raise NotImplementedError(how)  # pandas then reduces the column of each group, one after the other
    if how not in {"sum", *_STATISTICS}:
        raise TypeError(f"cannot perform {how} with type {array.dtype}")
    incomplete = np.zeros(ngroups, bool)
    if not skipna:
        incomplete[ids[(ids >= 0) & array.isna()]] = True
    members: list[list[int]] = [[] for _ in range(ngroups)]
    for group, number in zip(ids.tolist(), to_ints(array.storage, array.dtype.wide), strict=True):
        if group >= 0 and number is not None:
            members[group].append(number)
    groups = zip(members, incomplete.tolist(), strict=True)
    if how in _STATISTICS:
        return floats([None if gone else statistic(how, numbers, ddof=ddof) for numbers, gone in groups])
    sums = [None if gone or len(numbers) < min_count else sum(numbers) for numbers, gone in groups]
    return _wide(array, sums, _sum_kind(array.dtype.wide))


_STATISTICS = frozenset({"mean", "median", "var", "std"})


def statistic(name: str, values: Sequence[int], *, ddof: int = 1) -> float | None:
    """Return a statistic of integers.

    Parameters
    ----------
    name : {'mean', 'median', 'var', 'std'}
        Name of the statistic, as named and defined by pandas.
    values : sequence of int
        Integers in any order, without missing values.
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
        return quantile(sorted(values), 0.5)
    count, total = len(values), sum(values)
    if count <= ddof or not count:
        return None
    squares = sum(value * value for value in values)
    variance = Fraction(count * squares - total * total, count * (count - ddof))
    return float(variance) if name == "var" else math.sqrt(variance)


def quantile(ordered: Sequence[int], place: float) -> float | None:
    """Return the float nearest to a quantile of sorted integers, or None for an empty sequence."""
    if not ordered:
        return None
    position = place * (len(ordered) - 1)  # a float, so that 0.1 of eleven values is the second, as in numpy
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return float(ordered[below] + (ordered[above] - ordered[below]) * (Fraction(position) - below))
