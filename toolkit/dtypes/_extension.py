"""The pandas extension dtype, array and index of wide integers. Importing this module registers the dtype with pandas.

Operators, sums, statistics and groupby are in `arithmetic`. What pandas computes only with floats, it computes with the
nearest floats: windows (``rolling``, ``expanding``, ``ewm``), ``corr``, ``cov``, ``cut``, ``qcut`` and ``describe``.
pandas does not let extension dtypes support the following operations, which raise errors: ``nlargest`` and
``nsmallest`` (sort instead), ``merge_asof``, some merges on keys of two integer dtypes (cast one side first),
``DataFrame.eval`` of u256 with plain integers (use operators), ``DataFrame.plot`` with missing rows (plot
``toolkit.scaled(series)``) and ``interpolate``.
"""

# ruff: noqa: FBT001, FBT002, SLF001  # pandas fixes these signatures, and its protocol for arrays is underscored

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pandas.api.extensions import ExtensionArray, ExtensionDtype, no_default, register_extension_dtype
from pandas.api.indexers import check_array_indexer
from pandas.api.types import is_integer, is_list_like, pandas_dtype

from toolkit.dtypes import _arithmetic as arithmetic
from toolkit.dtypes import _arrow as limbs
from toolkit.dtypes._arithmetic import WideOperators, exact_diff, exact_sum, plain_number, scaled  # noqa: F401 - public
from toolkit.dtypes._arrow import WideIntType, wide_from_text, wide_to_text, wide_type
from toolkit.errors import InexactError, SchemaError

if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray


class WideIntIndex(pd.Index):
    """Index of u128, u256, i128 or i256. pandas creates it for these dtypes.

    Raises
    ------
    InexactError
        If a label is a float of at least 2**53, because several integers round to such a float.
    """

    # pandas decides both by `type(self) is Index`; an index of another extension dtype has the same values.

    def _get_engine_target(self) -> Any:
        """Return the values in which labels are looked up: Python ints."""
        return self._values.astype(object)  # type: ignore[attr-defined]

    @property
    def _can_use_libjoin(self) -> bool:
        """Whether joins may use pandas' routines for numpy data."""
        return False

    def _get_indexer_strict(self, key: Any, axis_name: str) -> Any:
        """Return the positions of a list of labels, for ``.loc``."""
        return super()._get_indexer_strict(_exact(key), axis_name)  # type: ignore[misc]

    def _maybe_cast_listlike_indexer(self, target: Any) -> Any:
        """Convert labels to an index; raise InexactError for large floats."""
        index = super()._maybe_cast_listlike_indexer(_exact(target))  # type: ignore[misc]
        if index.dtype.kind == "f":
            labels = index.to_numpy(dtype=np.float64, na_value=0)
            large = labels[np.isfinite(labels) & (np.abs(labels) >= 2.0**53)]
            if len(large):
                got = limbs.shown(float(large[0]))
                raise InexactError(
                    f"index labels of dtype {self.dtype} must be integers, got the float {got}; "
                    "NumPy converts lists of small and large integers to floats: pass pd.array(labels, "
                    f"dtype={str(self.dtype)!r}) or an object array"
                )
        return index

    def drop(self, labels: Any, errors: Any = "raise") -> Any:
        """Return the index without some labels; see ``Index.drop``."""
        return super().drop(_exact(labels), errors=errors)


@register_extension_dtype
class WideIntDtype(ExtensionDtype):
    """pandas dtype of 128- and 256-bit integers. Elements are Python ints; missing values are ``pd.NA``.

    Parameters
    ----------
    name : {'u128', 'u256', 'i128', 'i256'}
        ``dtype="u128"`` works wherever pandas accepts a dtype.

    Raises
    ------
    TypeError
        If `name` is not one of these names; pandas expects this exception.

    Examples
    --------
    >>> import pandas as pd
    >>> pd.Series([2**100, None], dtype="u128").sum() == 2**100
    True
    """

    type: ClassVar[builtins.type] = int
    kind = "O"  # the kind of Python ints in numpy; with "i" or "u" pandas would convert to 64 bits and to floats
    na_value = pd.NA
    _metadata = ("name",)
    _is_numeric = True
    _can_fast_transpose = False

    def __init__(self, name: str) -> None:
        if name not in limbs.KINDS:
            raise TypeError(f"Cannot construct a 'WideIntDtype' from '{name}'")
        self._wide = limbs.KINDS[name]  # the name is in pickles

    @property
    def name(self) -> str:  # type: ignore[override]  # an attribute in the stubs; pandas has properties too
        """Name of the dtype."""
        return self.wide.name

    @property
    def wide(self) -> limbs.WideKind:
        """Name, range and width of the numbers."""
        return self._wide

    @property
    def index_class(self) -> builtins.type[WideIntIndex]:
        """The index class for this dtype."""
        return WideIntIndex

    @property
    def itemsize(self) -> int:
        """Number of bytes per value."""
        return self.wide.width

    @property
    def arrow_type(self) -> WideIntType:
        """The Arrow extension type of the same name."""
        return wide_type(self.name)

    @classmethod
    def construct_array_type(cls) -> builtins.type[WideIntArray]:
        """Return the array class."""
        return WideIntArray

    @classmethod
    def construct_from_string(cls, string: str) -> WideIntDtype:
        """Return the dtype with this name.

        Raises
        ------
        TypeError
            If the string is not the name of a wide integer type; pandas expects this exception.
        """
        if not isinstance(string, str):
            raise TypeError(f"'construct_from_string' expects a string, got {type(string)}")
        return cls(string)

    def __repr__(self) -> str:
        return f"WideIntDtype({self.name!r})"

    def __from_arrow__(self, array: pa.Array | pa.ChunkedArray) -> WideIntArray:
        return WideIntArray(_storage_from(limbs.whole(array), self.wide), self)

    def _get_common_dtype(self, dtypes: list[Any]) -> WideIntDtype | None:
        """Return the dtype that holds the integers of all dtypes, or None to let pandas use Python objects."""
        kinds = [dtype.wide for dtype in dtypes if isinstance(dtype, WideIntDtype)]
        rest = {getattr(dtype, "kind", "") for dtype in dtypes if not isinstance(dtype, WideIntDtype)}
        if "i" in rest:
            kinds.append(limbs.KINDS["i128"])
        if not rest <= {"i", "u"} or (limbs.KINDS["u256"] in kinds and any(kind.signed for kind in kinds)):
            return None
        return WideIntDtype(reduce(limbs.common_kind, kinds).name)


class WideIntArray(WideOperators, ExtensionArray):
    """A wide integer column of a frame, backed by Arrow bytes.

    Create one with ``pd.array([1, 2**200, None], dtype="u256")``.

    Parameters
    ----------
    storage : pyarrow.FixedSizeBinaryArray, length n
        Values as stored by `toolkit.dtypes._arrow`.
    dtype : WideIntDtype
        Dtype of the array.

    Examples
    --------
    >>> import pandas as pd
    >>> (pd.array([1, 2**200], dtype="u256") + 1).tolist() == [2, 2**200 + 1]
    True
    """

    __array_priority__ = 1000
    __pandas_priority__ = 1500  # higher than other arrays, which then return NotImplemented
    _dtype: WideIntDtype
    storage: pa.FixedSizeBinaryArray
    _readonly = False  # pandas 3 sets it; older releases do not know it

    def __init__(self, storage: pa.FixedSizeBinaryArray, dtype: WideIntDtype) -> None:
        self.storage = storage
        self._dtype = dtype

    # Construction

    @classmethod
    def _from_sequence(cls, scalars: Any, *, dtype: Any = None, copy: bool = False) -> WideIntArray:
        """Create an array from ints, number text, Arrow arrays or another wide array."""
        del copy  # Arrow data is immutable
        if dtype is None:
            dtype = getattr(scalars, "dtype", None)
        dtype = pandas_dtype(dtype)
        if not isinstance(dtype, WideIntDtype):
            raise TypeError(f"cannot build a wide integer array of dtype {dtype}")
        return cls(_storage_from(scalars, dtype.wide), dtype)

    @classmethod
    def _concat_same_type(cls, to_concat: Sequence[WideIntArray]) -> WideIntArray:
        """Concatenate arrays of one dtype."""
        return cls(pa.concat_arrays([array.storage for array in to_concat]), to_concat[0].dtype)

    def _cast_pointwise_result(self, values: Any) -> Any:
        """Return the results of an element-wise function as an array of this dtype, or of an inferred dtype."""
        return arithmetic.inferred(list(values), self._dtype)

    _from_sequence_of_strings = _from_sequence  # text, for ``read_csv``

    # Properties

    @property
    def dtype(self) -> WideIntDtype:
        """The dtype."""
        return self._dtype

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return int(self.storage.nbytes)

    def __len__(self) -> int:
        return len(self.storage)

    def isna(self) -> NDArray[np.bool_]:
        """Return whether each row is missing."""
        return cast("NDArray[np.bool_]", self.storage.is_null().to_numpy(zero_copy_only=False))

    @property
    def _hasna(self) -> bool:
        return bool(self.storage.null_count)

    # Elements

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        """Return a list of Python ints, with ``pd.NA`` for missing rows."""
        numbers = limbs.to_ints(self.storage, self._dtype.wide)
        if not self._hasna:
            return numbers
        return [pd.NA if number is None else number for number in numbers]

    def unboxed(self, data: bytes | None) -> Any:
        """Return one stored value as a Python int or ``pd.NA``."""
        return pd.NA if data is None else limbs.to_int(data, self._dtype.wide)

    def boxed(self, value: Any) -> pa.Scalar:
        """Return the stored form of one Python value."""
        return _storage_from([value], self._dtype.wide)[0]

    def __getitem__(self, item: Any) -> Any:
        item = _plain(item)
        if is_integer(item):
            return self.unboxed(self.storage[int(item)].as_py())
        item = check_array_indexer(self, item)
        if isinstance(item, slice) and item.step in {None, 1}:
            part = self.like(self.storage[item])
            part._readonly = self._readonly
            return part
        return self.like(self.storage.take(pa.array(np.arange(len(self))[item])))

    def __setitem__(self, key: Any, value: Any) -> None:
        if self._readonly:
            raise ValueError("Cannot modify read-only array")
        key = check_array_indexer(self, _plain(key))
        count = len(self)
        rows: NDArray[np.intp] = np.arange(count)
        new = _storage_from(value if is_list_like(value) else [value], self._dtype.wide)
        rows[key] = np.arange(count, count + len(new)) if is_list_like(value) else count
        self.storage = pa.concat_arrays([self.storage, new]).take(pa.array(rows))

    def take(self, indices: Any, *, allow_fill: bool = False, fill_value: Any = None) -> WideIntArray:
        """Take rows by position.

        Parameters
        ----------
        indices : sequence of int
            Positions; with `allow_fill`, -1 selects `fill_value`.
        allow_fill : bool, default False
            Whether -1 means a filled row rather than the last row.
        fill_value : int, optional
            ``pd.NA`` by default.

        Returns
        -------
        WideIntArray

        Raises
        ------
        IndexError
            If a position is out of bounds.
        ValueError
            If a position is below -1 with `allow_fill`.
        """
        rows = np.asarray(indices, dtype=np.intp)
        missing = (rows == -1) & allow_fill
        if not len(self) and not missing.all():
            raise IndexError("cannot do a non-empty take from an empty axes.")
        if not allow_fill:
            return self.like(self.storage.take(pa.array(np.arange(len(self))[rows])))
        if (rows < -1).any():
            raise ValueError("'indices' contains values less than allowed (-1)")
        taken = self.storage.take(pa.array(rows, mask=missing))
        if not pd.isna(fill_value):
            taken = pc.if_else(pa.array(missing), self.boxed(fill_value), taken)
        return self.like(taken)

    def like(self, storage: pa.FixedSizeBinaryArray) -> WideIntArray:
        """Return an array of this dtype."""
        return type(self)(storage, self._dtype)

    def copy(self) -> WideIntArray:
        """Return a new array that shares the immutable bytes."""
        return self.like(self.storage)

    # Conversion

    def extension_array(self) -> pa.ExtensionArray:
        """Return the numbers as an Arrow array of this dtype's extension type."""
        return pa.ExtensionArray.from_storage(self._dtype.arrow_type, self.storage)

    def __arrow_array__(self, type: pa.DataType | None = None) -> pa.Array:  # noqa: A002  # Arrow's protocol
        # Text by default: to_parquet, DuckDB and Polars would read the extension type as bytes, without a word.
        if type is None or pa.types.is_string(type) or pa.types.is_large_string(type):
            text = wide_to_text(self.extension_array())
            return text if type is None else text.cast(type)
        if isinstance(type, WideIntType):
            return self.astype(WideIntDtype(type.wide.name)).extension_array()
        try:
            return pa.array(limbs.to_ints(self.storage, self._dtype.wide), type)
        except OverflowError as error:
            raise SchemaError(f"a number in a {self._dtype} column does not fit {type}: {error}") from None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("a wide integer array cannot be converted to numpy without a copy")
        return self.to_numpy(dtype)

    def to_numpy(self, dtype: Any = None, copy: bool = False, na_value: Any = None) -> NDArray[Any]:
        """Return a numpy array of Python ints, or of `dtype`.

        Parameters
        ----------
        dtype : numpy dtype, optional
            ``object`` by default.
        copy : bool, default False
            Ignored: the result is always a copy.
        na_value : object, optional
            Value for missing rows; ``pd.NA`` by default.

        Returns
        -------
        ndarray, shape (n,)

        Raises
        ------
        ValueError
            If rows are missing and `dtype` cannot represent missing values.
        OverflowError
            If a number does not fit an integer `dtype`.
        """
        del copy
        missing = None if na_value is no_default else na_value
        target = np.dtype(object if dtype is None else dtype)
        if target.kind == "f":
            floats = self.floats().astype(target, copy=False)
            return floats if missing is None or pd.isna(missing) else np.where(self.isna(), missing, floats)
        objects = np.empty(len(self), object)
        objects[:] = self.tolist()
        if self._hasna:
            if missing is not None:
                objects[self.isna()] = missing
            elif target.kind in "iub":
                raise ValueError(f"cannot convert missing values of {self._dtype} to {target}: drop or fill them first")
        return objects.astype(target, copy=False)

    def floats(self) -> NDArray[np.float64]:
        """Return the nearest floats, with NaN for missing rows."""
        numbers = limbs.to_ints(self.storage, self._dtype.wide)
        return np.array([np.nan if number is None else float(number) for number in numbers], np.float64)

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """Convert to another dtype. Wide integers, other integers and text are exact; floats are the nearest ones.

        Parameters
        ----------
        dtype : dtype
            Any pandas dtype.
        copy : bool, default True
            Whether to return a new array even if the dtype is the same. The immutable bytes are shared either way.

        Returns
        -------
        ExtensionArray or ndarray

        Raises
        ------
        SchemaError
            If a number does not fit another wide or Arrow-backed dtype.
        """
        dtype = pandas_dtype(dtype)
        if dtype == self._dtype:
            return self.copy() if copy else self
        if isinstance(dtype, WideIntDtype):
            return type(self)(_storage_from(self, dtype.wide), dtype)
        if isinstance(dtype, (pd.StringDtype, pd.ArrowDtype)):
            arrow = dtype.pyarrow_dtype if isinstance(dtype, pd.ArrowDtype) else pa.large_string()
            floating = pa.types.is_floating(arrow)
            array = pa.array(self.floats(), arrow, from_pandas=True) if floating else self.__arrow_array__(arrow)
            return arithmetic.arrow_backed(array, dtype)
        if isinstance(dtype, pd.CategoricalDtype):
            return pd.Categorical(self, dtype=dtype)
        if isinstance(dtype, ExtensionDtype):
            data = self.floats() if np.dtype(getattr(dtype, "numpy_dtype", object)).kind == "f" else self.to_numpy()
            return pd.Series(data, dtype=cast("Any", dtype)).array
        return self.to_numpy(dtype)

    def _formatter(self, boxed: bool = False) -> Callable[[Any], str | None]:
        del boxed
        return str

    # Order, uniqueness, groups

    def _values_for_argsort(self) -> NDArray[Any]:
        """Return fixed-width bytes that sort like the numbers."""
        width = self._dtype.wide.width
        return np.ascontiguousarray(limbs.byte_matrix(self.storage)).view(f"S{width}").reshape(len(self))

    def factorize(self, use_na_sentinel: bool = True) -> tuple[NDArray[np.intp], WideIntArray]:
        """Encode rows as codes of distinct values, numbered in order of appearance.

        Parameters
        ----------
        use_na_sentinel : bool, default True
            Whether missing rows are encoded as -1 and excluded from `uniques`.

        Returns
        -------
        codes : ndarray of int64
        uniques : WideIntArray
        """
        encoded = self.storage.dictionary_encode(null_encoding="mask" if use_na_sentinel else "encode")
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.intp)
        return codes, self.like(encoded.dictionary)

    def isin(self, values: Any) -> NDArray[np.bool_]:
        """Return whether each row is in `values`. Comparisons are exact, and missing values equal each other."""
        wanted = values.tolist() if hasattr(values, "tolist") else [plain_number(value) for value in values]
        known = {value for value in wanted if not arithmetic.is_missing(value)}
        missing = any(map(arithmetic.is_missing, wanted))
        return np.fromiter((missing if value is pd.NA else value in known for value in self), bool, len(self))

    def value_counts(self, dropna: bool = True) -> pd.Series:
        """Count distinct values, in order of appearance.

        Parameters
        ----------
        dropna : bool, default True
            Whether to exclude missing rows.

        Returns
        -------
        Series
            Counts (``Int64``), indexed by value.
        """
        counted = (self.storage.drop_null() if dropna else self.storage).value_counts()
        counts = pd.array(counted.field("counts").to_numpy(), dtype="Int64")
        return pd.Series(counts, index=pd.Index(self.like(counted.field("values"))), name="count")

    def _values_for_json(self) -> NDArray[Any]:
        """Return text, because JSON readers convert long numbers to floats."""
        return np.array([None if value is pd.NA else str(value) for value in self], object)

    def _reduce(self, name: str, *, skipna: bool = True, keepdims: bool = False, **options: Any) -> Any:
        return arithmetic.reduce_array(self, name, skipna=skipna, keepdims=keepdims, **options)

    def _accumulate(self, name: str, *, skipna: bool = True, **options: Any) -> WideIntArray:
        del options
        return cast("WideIntArray", arithmetic.accumulate(self, name, skipna=skipna))

    def _groupby_op(self, *, how: str, **options: Any) -> Any:
        if how in {"first", "last"}:
            return super()._groupby_op(how=how, **options)
        return arithmetic.groupby(self, how, **options)

    def _quantile(self, qs: NDArray[np.float64], interpolation: str) -> Any:
        return arithmetic.floats(self._quantiles(qs, interpolation))

    def _groupby_quantile(
        self,
        *,
        qs: NDArray[np.float64],
        interpolation: str,
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        **_: Any,
    ) -> Any:
        groups = [self[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
        return arithmetic.floats([place for group in groups for place in group._quantiles(qs, interpolation)])

    def _quantiles(self, qs: NDArray[np.float64], interpolation: str) -> list[float | None]:
        if interpolation != "linear":
            raise TypeError(f"quantile of {self._dtype} supports only interpolation='linear', got {interpolation!r}")
        ordered = sorted(self.dropna().tolist())
        return [arithmetic.quantile(ordered, place) for place in qs.tolist()]

    def map(self, mapper: Any, na_action: Literal["ignore"] | None = None) -> Any:
        """Map values with a function, dict or Series; integers from a dict stay exact even if some rows have no match.

        Parameters
        ----------
        mapper : callable, dict or Series
            Function, or mapping from number to result.
        na_action : {None, 'ignore'}, default None
            If 'ignore', missing rows are not passed to `mapper`.

        Returns
        -------
        ExtensionArray or ndarray
            This dtype if all results are integers that fit it, otherwise the type that pandas infers.
        """
        table = mapper
        if isinstance(mapper, pd.Series) and mapper.index.is_unique:
            table = dict(zip(mapper.index.tolist(), mapper.tolist(), strict=True))
        exact = isinstance(table, dict) and not hasattr(table, "__missing__") and na_action in {None, "ignore"}
        if not exact or not all(type(value) is int for value in table.values()):
            return super().map(mapper, na_action=na_action)
        missing = pd.NA
        if na_action is None:
            missing = next((value for key, value in table.items() if arithmetic.is_missing(key)), pd.NA)
        return arithmetic.inferred([missing if key is pd.NA else table.get(key, pd.NA) for key in self], self._dtype)


def _exact(labels: Any) -> Any:
    """Return lists of labels as an object index, which numpy cannot round; return other values unchanged."""
    if hasattr(labels, "dtype") or not is_list_like(labels):
        return labels
    return pd.Index(list(labels), dtype=object)


def _plain(item: Any) -> Any:
    """Return the item without the one-tuple or the ellipses that pandas adds."""
    if isinstance(item, tuple):
        parts = [part for part in item if part is not Ellipsis]
        if len(parts) > 1:
            raise IndexError("too many indices for array.")
        return parts[0] if parts else slice(None)
    return slice(None) if item is Ellipsis else item


# conversion of values of any kind to storage --------------------------------------------------------------------------


def _storage_from(values: Any, kind: limbs.WideKind) -> pa.FixedSizeBinaryArray:
    """Return the values as storage of `kind`.

    Parameters
    ----------
    values : array-like
        Wide arrays, Arrow arrays, pandas or numpy arrays, or a sequence of ints and digit strings.
        None, NaN, NaT and ``pd.NA`` are missing.
    kind : WideKind
        Type to store.

    Returns
    -------
    pyarrow.FixedSizeBinaryArray, length n

    Raises
    ------
    SchemaError
        If a value is not an integer (floats and bools are rejected) or is out of range.
    """
    if isinstance(values, (pd.Series, pd.Index)):
        values = values.array
    if isinstance(values, WideIntArray):
        values = values.extension_array()
    if hasattr(values, "__arrow_array__"):
        values = values.__arrow_array__()
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return _from_arrow(limbs.whole(values), kind)
    return _from_objects(list(values), kind)


def _from_arrow(array: pa.Array, kind: limbs.WideKind) -> pa.FixedSizeBinaryArray:
    """Convert wide, text and integer Arrow data."""
    if isinstance(array.type, WideIntType):
        if array.type.wide == kind:
            return array.storage
        return limbs.from_ints(limbs.to_ints(array.storage, array.type.wide), kind)
    if array.type == pa.binary(kind.width):
        return array  # storage from a file that was read without the extension type
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        return wide_from_text(array, wide_type(kind.name)).storage
    if pa.types.is_integer(array.type):
        return limbs.from_ints(array.to_pylist(), kind)
    return _from_objects(array.to_pylist(), kind)


def _from_objects(values: list[Any], kind: limbs.WideKind) -> pa.FixedSizeBinaryArray:
    """Convert Python objects one by one."""
    missing = pd.isna(np.array([*values, None], dtype=object))[:-1]
    values = [None if absent else value for value, absent in zip(values, missing, strict=True)]
    if rows := [row for row, value in enumerate(values) if isinstance(value, str)]:
        try:
            read = wide_from_text([values[row] for row in rows], wide_type(kind.name)).storage
        except SchemaError as error:
            raise limbs.misfit(values[rows[error.rows[0]]], kind, row=rows[error.rows[0]]) from None
        for row, number in zip(rows, limbs.to_ints(read, kind), strict=True):
            values[row] = number
    return limbs.from_ints(values, kind)


WideIntArray._add_arithmetic_ops()
WideIntArray._add_comparison_ops()
