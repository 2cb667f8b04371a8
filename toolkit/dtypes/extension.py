"""The pandas side of wide integers: the dtype and the array. Registered with pandas when imported.

Sums, statistics and groupby are in `reductions`, operators in `arithmetic`, labels in `index`. pandas offers no way to
support these operations, which raise: ``nlargest`` and ``nsmallest`` (sort instead), ``merge_asof``, some merges on
keys of two different integer dtypes (cast one side first), ``DataFrame.eval`` of u256 with plain integers (use
operators), ``DataFrame.plot`` with missing rows (plot ``toolkit.scaled(series)``), ``interpolate``, and what pandas
computes with floats only: windows (``rolling``, ``expanding``, ``ewm``), ``corr``, ``cov``, ``cut`` and ``qcut``.
``describe`` shows numbers as the nearest floats.
"""

# ruff: noqa: FBT001, FBT002, SLF001  # pandas fixes these signatures, and its protocol for arrays is underscored

from __future__ import annotations

import math
from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pandas.api.extensions import ExtensionArray, ExtensionDtype, no_default, register_extension_dtype
from pandas.api.indexers import check_array_indexer
from pandas.api.types import is_integer, is_list_like, pandas_dtype

from toolkit.dtypes import limbs, reductions
from toolkit.dtypes.arithmetic import WideOperators, plain_number
from toolkit.dtypes.arrow import WideIntType, wide_to_text, wide_type
from toolkit.dtypes.convert import storage_from
from toolkit.dtypes.storage import KINDS, WideKind, byte_matrix, common_kind, shown, to_int, to_ints, whole
from toolkit.errors import InexactError, SchemaError

if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

__all__ = ["WideIntArray", "WideIntDtype", "WideIntIndex"]

_EXACT_FLOATS = 2.0**53


class WideIntIndex(pd.Index):
    """Index of u128, u256, i128 or i256; pandas builds it for those dtypes.

    Raises
    ------
    InexactError
        If labels are floats of 2**53 and more: they stand for several integers.
    """

    # pandas decides both of these by `type(self) is Index`; an index of another extension dtype has the same answers.

    def _get_engine_target(self) -> Any:
        """Return what labels are looked up in: Python ints."""
        return self._values.astype(object)  # type: ignore[attr-defined]

    @property
    def _can_use_libjoin(self) -> bool:
        """Whether joins may use pandas' routines for numpy data."""
        return False

    def _get_indexer_strict(self, key: Any, axis_name: str) -> Any:
        """Find a list of labels, as ``.loc`` asks for it."""
        return super()._get_indexer_strict(_exact(key), axis_name)  # type: ignore[misc]

    def _maybe_cast_listlike_indexer(self, target: Any) -> Any:
        """Take the labels that are looked for."""
        index = super()._maybe_cast_listlike_indexer(_exact(target))  # type: ignore[misc]
        if index.dtype.kind == "f":
            labels = index.to_numpy(dtype=np.float64, na_value=0)
            large = labels[np.isfinite(labels) & (np.abs(labels) >= _EXACT_FLOATS)]
            if len(large):
                raise InexactError(
                    f"labels of an index of {self.dtype} must be integers, got the float {shown(float(large[0]))}; "
                    "numpy turns lists that mix sizes of integers into floats: pass pd.array(labels, "
                    f"dtype={str(self.dtype)!r}) or an object array"
                )
        return index

    def drop(self, labels: Any, errors: Any = "raise") -> Any:
        """Return the index without some labels, as ``Index.drop`` does."""
        return super().drop(_exact(labels), errors=errors)


@register_extension_dtype
class WideIntDtype(ExtensionDtype):
    """pandas dtype of 128- and 256-bit integers; elements are Python ints, missing is ``pd.NA``.

    Parameters
    ----------
    name : {'u128', 'u256', 'i128', 'i256'}
        Which one; ``dtype="u128"`` works wherever pandas takes a dtype.

    Raises
    ------
    TypeError
        If `name` is none of the four (pandas asks for this class).
    """

    type: ClassVar[builtins.type] = int
    kind = "O"  # what they are in numpy; for "i" and "u" pandas takes paths for 64 bits and goes through floats
    na_value = pd.NA
    _metadata = ("name",)
    _is_numeric = True
    _can_fast_transpose = False

    def __init__(self, name: str) -> None:
        if name not in KINDS:
            raise TypeError(f"Cannot construct a 'WideIntDtype' from '{name}'")
        self._wide = KINDS[name]

    @property
    def name(self) -> str:  # type: ignore[override]  # the stubs know an attribute only; pandas itself has properties
        """Name of the dtype."""
        return self._wide.name

    @property
    def wide(self) -> WideKind:
        """Name, range and width of the numbers."""
        return self._wide

    @property
    def index_class(self) -> builtins.type[WideIntIndex]:
        """Class of an index of these numbers."""
        return WideIntIndex

    @property
    def itemsize(self) -> int:
        """Bytes per value."""
        return self._wide.width

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
        """Return the dtype of that name."""
        if not isinstance(string, str):
            raise TypeError(f"'construct_from_string' expects a string, got {type(string)}")
        return cls(string)

    def __repr__(self) -> str:
        return f"WideIntDtype({self.name!r})"

    def __from_arrow__(self, array: pa.Array | pa.ChunkedArray) -> WideIntArray:
        return WideIntArray(storage_from(whole(array), self._wide), self)

    def _get_common_dtype(self, dtypes: list[Any]) -> WideIntDtype | None:
        """Return the dtype that holds all integers of these dtypes, or None: pandas then uses Python objects."""
        kinds = [dtype.wide for dtype in dtypes if isinstance(dtype, WideIntDtype)]
        rest = {getattr(dtype, "kind", "") for dtype in dtypes if not isinstance(dtype, WideIntDtype)}
        if "i" in rest:
            kinds.append(KINDS["i128"])
        if not rest <= {"i", "u"} or (KINDS["u256"] in kinds and any(kind.signed for kind in kinds)):
            return None
        return WideIntDtype(reduce(common_kind, kinds).name)


class WideIntArray(WideOperators, ExtensionArray):
    """A wide integer column of a frame, backed by Arrow bytes.

    Build one with ``pd.array([1, 2**200, None], dtype="u256")``.

    Parameters
    ----------
    storage : pyarrow.FixedSizeBinaryArray, length n
        Values as `toolkit.dtypes.storage` lays them out.
    dtype : WideIntDtype
        Which of the four.
    """

    __array_priority__ = 1000
    __pandas_priority__ = 1500  # above other arrays, so that they leave an operator with this one to it
    _dtype: WideIntDtype
    storage: pa.FixedSizeBinaryArray

    def __init__(self, storage: pa.FixedSizeBinaryArray, dtype: WideIntDtype) -> None:
        self.storage = storage
        self._dtype = dtype

    # Construction

    @classmethod
    def _from_sequence(cls, scalars: Any, *, dtype: Any = None, copy: bool = False) -> WideIntArray:
        """Build from ints, digit strings, Arrow arrays or another wide array."""
        del copy  # Arrow data is immutable
        if dtype is None:
            dtype = getattr(scalars, "dtype", None)
        dtype = pandas_dtype(dtype)
        if not isinstance(dtype, WideIntDtype):
            raise TypeError(f"cannot build a wide integer array of dtype {dtype}")
        return cls(storage_from(scalars, dtype.wide), dtype)

    @classmethod
    def _from_sequence_of_strings(cls, strings: Any, *, dtype: Any, copy: bool = False) -> WideIntArray:
        """Build from text, as ``read_csv`` hands it over."""
        return cls._from_sequence(strings, dtype=dtype, copy=copy)

    @classmethod
    def _from_factorized(cls, values: Any, original: WideIntArray) -> WideIntArray:
        """Rebuild after factorization of Python ints."""
        return cls._from_sequence(values, dtype=original.dtype)

    @classmethod
    def _from_scalars(cls, scalars: Any, *, dtype: Any) -> WideIntArray:
        """Build from values known to be scalars of this dtype."""
        return cls._from_sequence(scalars, dtype=dtype)

    @classmethod
    def _concat_same_type(cls, to_concat: Sequence[WideIntArray]) -> WideIntArray:
        """Join arrays of one dtype."""
        return cls(pa.concat_arrays([array.storage for array in to_concat]), to_concat[0].dtype)

    def _cast_pointwise_result(self, values: Any) -> Any:
        """Give results of element-wise Python functions a dtype: this one, or what Arrow finds."""
        return reductions.inferred(list(values), self._dtype)

    # Facts

    @property
    def dtype(self) -> WideIntDtype:
        """The dtype."""
        return self._dtype

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return int(self.storage.nbytes)

    def __len__(self) -> int:
        return len(self.storage)

    def isna(self) -> NDArray[np.bool_]:
        """Tell which rows are missing."""
        if not self.storage.null_count:
            return np.zeros(len(self), bool)
        return cast("NDArray[np.bool_]", self.storage.is_null().to_numpy(zero_copy_only=False))

    @property
    def _hasna(self) -> bool:
        return bool(self.storage.null_count)

    def __contains__(self, item: object) -> bool:
        if item is pd.NA:
            return self._hasna
        try:
            return bool(pc.index(self.storage, self.boxed(item)).as_py() >= 0)
        except (TypeError, ValueError):
            return False

    # Elements

    def __iter__(self) -> Iterator[Any]:
        return iter(self._objects())

    def _objects(self) -> list[Any]:
        """Python ints, ``pd.NA`` where missing."""
        numbers = to_ints(self.storage, self._dtype.wide)
        return [pd.NA if number is None else number for number in numbers] if self._hasna else numbers

    def tolist(self) -> list[Any]:
        """Return Python ints, ``pd.NA`` where missing."""
        return self._objects()

    def unboxed(self, data: bytes | None) -> Any:
        """One stored value as Python sees it."""
        return pd.NA if data is None else to_int(data, self._dtype.wide)

    def boxed(self, value: Any) -> pa.Scalar:
        """One Python value as it is stored."""
        return storage_from([value], self._dtype.wide)[0]

    def __getitem__(self, item: Any) -> Any:
        item = _plain(item)
        if is_integer(item):
            if not -len(self) <= item < len(self):
                raise IndexError(f"index {item} is out of bounds for axis 0 with size {len(self)}")
            return self.unboxed(self.storage[int(item)].as_py())
        item = check_array_indexer(self, item)
        if isinstance(item, slice):
            start, stop, step = item.indices(len(self))
            if step == 1:
                part = self.like(self.storage.slice(start, max(stop - start, 0)))
                part._readonly = self._readonly
                return part
            return self.like(self.storage.take(pa.array(np.arange(start, stop, step))))
        return self.like(self.storage.take(pa.array(np.arange(len(self))[item])))

    def __setitem__(self, key: Any, value: Any) -> None:
        if self._readonly:
            raise ValueError("Cannot modify read-only array")
        key = check_array_indexer(self, _plain(key))
        count = len(self)
        rows: NDArray[np.intp] = np.arange(count)
        new = storage_from(value if is_list_like(value) else [value], self._dtype.wide)
        source = np.arange(count, count + len(new))
        rows[key] = source if is_list_like(value) else count
        self.storage = pa.concat_arrays([self.storage, new]).take(pa.array(rows))

    def take(self, indices: Any, *, allow_fill: bool = False, fill_value: Any = None) -> WideIntArray:
        """Take rows by position.

        Parameters
        ----------
        indices : sequence of int
            Positions; with `allow_fill`, -1 stands for `fill_value`.
        allow_fill : bool, default False
            Whether -1 means a missing row and not the last one.
        fill_value : int, optional
            Value of missing rows; ``pd.NA`` by default.

        Returns
        -------
        WideIntArray

        Raises
        ------
        IndexError
            If a position is out of bounds.
        ValueError
            If `allow_fill` and a position is below -1.
        """
        rows = np.asarray(indices, dtype=np.intp)
        lowest = -1 if allow_fill else -len(self)
        if allow_fill and (rows < lowest).any():
            raise ValueError("'indices' contains values less than allowed (-1)")
        if not len(self) and (rows >= 0 if allow_fill else np.ones(len(rows), bool)).any():
            raise IndexError("cannot do a non-empty take from an empty axes.")
        if ((rows >= len(self)) | (rows < lowest)).any():
            raise IndexError("out of bounds value in 'indices'.")
        if not allow_fill:
            return self.like(self.storage.take(pa.array(np.where(rows < 0, rows + len(self), rows))))
        missing = rows == -1
        taken = self.storage.take(pa.array(rows, mask=missing))
        if not pd.isna(fill_value):
            taken = pc.if_else(pa.array(missing), self.boxed(fill_value), taken)
        return self.like(taken)

    def like(self, storage: pa.FixedSizeBinaryArray) -> WideIntArray:
        """Another array of this dtype."""
        return type(self)(storage, self._dtype)

    def copy(self) -> WideIntArray:
        """Return another array on the same (immutable) bytes."""
        return self.like(self.storage)

    # Conversion

    def __arrow_array__(self, type: pa.DataType | None = None) -> pa.Array:  # noqa: A002  # Arrow's protocol
        array = pa.ExtensionArray.from_storage(self._dtype.arrow_type, self.storage)
        if type is None or type == array.type:
            return array
        if pa.types.is_string(type) or pa.types.is_large_string(type):
            return wide_to_text(array).cast(type)
        if isinstance(type, WideIntType):
            return self.astype(WideIntDtype(type.wide.name)).__arrow_array__()
        try:
            return pa.array(to_ints(self.storage, self._dtype.wide), type)
        except OverflowError as error:
            raise SchemaError(f"a number of a {self._dtype} column does not fit {type}: {error}") from error

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("a wide integer array cannot be seen by numpy without a copy")
        return self._numpy(dtype, None)

    def to_numpy(self, dtype: Any = None, copy: bool = False, na_value: Any = None) -> NDArray[Any]:
        """Return numpy data: Python ints as objects, or exactly what `dtype` asks for.

        Parameters
        ----------
        dtype : numpy dtype, optional
            ``object`` by default.
        copy : bool, default False
            Always a copy.
        na_value : object, optional
            What stands for missing rows; ``pd.NA`` by default.

        Returns
        -------
        ndarray, shape (n,)

        Raises
        ------
        InexactError
            If `dtype` is a float and `na_value` is NaN, which is how pandas asks for floats unasked by the user.
            ``to_numpy("float64")`` and ``astype("float64")`` return the nearest floats, NaN where missing.
        ValueError
            If `dtype` has no missing value and rows are missing.
        OverflowError
            If a number does not fit an integer `dtype`.
        """
        del copy
        unasked = isinstance(na_value, float) and math.isnan(na_value)
        if unasked and dtype is not None and np.dtype(dtype).kind == "f":
            raise InexactError(
                f"{self._dtype} is not turned into floats unasked (pandas asks for it in rolling, expanding, ewm, "
                "corr, cov, cut and qcut). Exact: sum, mean, median, var, std and quantile of columns and groups; for "
                "a rolling sum of n rows totals = series.cumsum(), then totals - totals.shift(n, fill_value=0); for "
                "bins edges.searchsorted(series). As floats: series.astype('float64') or toolkit.scaled(series)"
            )
        return self._numpy(dtype, None if na_value is no_default else na_value)

    def _numpy(self, dtype: Any, na_value: Any) -> NDArray[Any]:
        """Return numpy data of any dtype that the caller named, floats included."""
        target = np.dtype(object if dtype is None else dtype)
        if target.kind == "f":
            floats = self.floats().astype(target, copy=False)
            return floats if na_value is None or pd.isna(na_value) else np.where(self.isna(), na_value, floats)
        objects = np.empty(len(self), object)
        objects[:] = self._objects()
        if self._hasna:
            if na_value is not None:
                objects[self.isna()] = na_value
            elif target.kind in "iub":
                raise ValueError(f"cannot convert missing values of {self._dtype} to {target}: drop or fill them first")
        return objects.astype(target, copy=False)

    def floats(self) -> NDArray[np.float64]:
        """Nearest floats, NaN where missing."""
        floats = limbs.to_float(self.words())
        if self._hasna:
            floats[self.isna()] = np.nan
        return floats

    def words(self) -> NDArray[np.uint64]:
        """Words of `limbs`, 0 where missing."""
        return limbs.unpack(self.storage, self._dtype.wide)

    def nonzero(self) -> pa.BooleanArray:
        """Tell which numbers are not 0."""
        return pc.not_equal(self.storage, self.boxed(0))

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """Convert; other wide dtypes, text and integers exactly, floats only where asked for.

        Parameters
        ----------
        dtype : dtype
            Any pandas dtype.
        copy : bool, default True
            Nothing is ever shared that could change.

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
            return type(self)(storage_from(self, dtype.wide), dtype)
        if isinstance(dtype, (pd.StringDtype, pd.ArrowDtype)):
            arrow = dtype.pyarrow_dtype if isinstance(dtype, pd.ArrowDtype) else pa.large_string()
            floating = pa.types.is_floating(arrow)
            array = pa.array(self.floats(), arrow, from_pandas=True) if floating else self.__arrow_array__(arrow)
            return reductions.arrow_backed(array, dtype)
        if isinstance(dtype, pd.CategoricalDtype):
            return pd.Categorical(self, dtype=dtype)
        if isinstance(dtype, ExtensionDtype):
            data = self.floats() if np.dtype(getattr(dtype, "numpy_dtype", object)).kind == "f" else self.to_numpy()
            return pd.Series(data, dtype=cast("Any", dtype)).array
        return self._numpy(dtype, None)

    def _formatter(self, boxed: bool = False) -> Callable[[Any], str | None]:
        del boxed
        return str

    # Order, uniqueness, groups

    def _values_for_argsort(self) -> NDArray[Any]:
        """Bytes of fixed width, whose order is the order of the numbers."""
        width = self._dtype.wide.width
        return np.ascontiguousarray(byte_matrix(self.storage)).view(f"S{width}").reshape(len(self))

    def codes(self) -> tuple[NDArray[np.intp], WideIntArray]:
        """Dense ranks from 0 (missing: -1), and the distinct values in order."""
        present = ~self.isna()
        kept = self.like(self.storage.drop_null())
        _, first, inverse = np.unique(kept._values_for_argsort(), return_index=True, return_inverse=True)
        codes = np.full(len(self), -1, np.intp)
        codes[present] = inverse
        return codes, kept.take(first)

    def _rank(self, **options: Any) -> Any:
        codes, _ = self.codes()
        return pd.Series(codes, dtype="Int64").mask(codes < 0).array._rank(**options)

    def factorize(self, use_na_sentinel: bool = True) -> tuple[NDArray[np.intp], WideIntArray]:
        """Encode rows as numbers of distinct values, in order of appearance.

        Parameters
        ----------
        use_na_sentinel : bool, default True
            Whether missing rows get -1 and no value of their own.

        Returns
        -------
        codes : ndarray of int64
        uniques : WideIntArray
        """
        encoded = self.storage.dictionary_encode(null_encoding="mask" if use_na_sentinel else "encode")
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.intp)
        return codes, self.like(encoded.dictionary)

    def unique(self) -> WideIntArray:
        """Return distinct values in order of appearance."""
        return self.like(self.storage.unique())

    def isin(self, values: Any) -> NDArray[np.bool_]:
        """Return which rows are among `values`; numbers of any type compare exactly, missing matches missing."""
        wanted = values.tolist() if hasattr(values, "tolist") else [plain_number(value) for value in values]
        known = {value for value in wanted if not reductions.is_missing(value)}
        missing = any(map(reductions.is_missing, wanted))
        return np.fromiter((missing if value is pd.NA else value in known for value in self), bool, len(self))

    def value_counts(self, dropna: bool = True) -> pd.Series:
        """Count distinct values, in order of appearance.

        Parameters
        ----------
        dropna : bool, default True
            Whether missing rows are left out.

        Returns
        -------
        Series
            Counts (``Int64``), indexed by value.
        """
        counted = (self.storage.drop_null() if dropna else self.storage).value_counts()
        counts = pd.array(counted.field("counts").to_numpy(), dtype="Int64")
        return pd.Series(counts, index=pd.Index(self.like(counted.field("values"))), name="count")

    def _values_for_json(self) -> NDArray[Any]:
        """Text: JSON readers make floats of long numbers."""
        return np.array([None if value is pd.NA else str(value) for value in self], object)

    def _reduce(self, name: str, *, skipna: bool = True, keepdims: bool = False, **options: Any) -> Any:
        return reductions.reduce_array(self, name, skipna=skipna, keepdims=keepdims, **options)

    def _accumulate(self, name: str, *, skipna: bool = True, **options: Any) -> WideIntArray:
        del options
        return reductions.accumulate(self, name, skipna=skipna)

    def _groupby_op(self, *, how: str, **options: Any) -> Any:
        if how in {"first", "last"}:
            return super()._groupby_op(how=how, **options)
        return reductions.groupby(self, how, **options)

    def _quantile(self, qs: NDArray[np.float64], interpolation: str) -> Any:
        return reductions.quantiles(self, [self.storage], qs, interpolation)

    def _groupby_quantile(
        self, *, qs: NDArray[np.float64], interpolation: str, starts: Any, ends: Any, **options: Any
    ) -> Any:
        del options  # rows come sorted by group: starts and ends are enough
        parts = [self.storage.slice(start, end - start) for start, end in zip(starts, ends, strict=True)]
        return reductions.quantiles(self, parts, qs, interpolation)

    def interpolate(self, **options: Any) -> WideIntArray:
        """Refuse: between two integers there are fractions.

        Raises
        ------
        InexactError
            Always.
        """
        del options
        raise InexactError(
            f"{self._dtype} cannot be interpolated, fractions are not integers: series.ffill() repeats values, "
            "series.astype('float64').interpolate() gives floats"
        )

    def map(self, mapper: Any, na_action: Literal["ignore"] | None = None) -> Any:
        """Map values with a function, dict or Series; numbers of a dict stay exact, also with rows that it misses.

        Parameters
        ----------
        mapper : callable, dict or Series
            What to map with.
        na_action : {None, 'ignore'}, default None
            If 'ignore', missing rows stay missing without being looked up.

        Returns
        -------
        ExtensionArray or ndarray
            Of this dtype if the results are integers that fit, otherwise as pandas infers it.
        """
        table = mapper
        if isinstance(mapper, pd.Series) and mapper.index.is_unique:
            table = dict(zip(mapper.index.tolist(), mapper.tolist(), strict=True))
        exact = isinstance(table, dict) and not hasattr(table, "__missing__") and na_action in {None, "ignore"}
        if not exact or not all(type(value) is int for value in table.values()):
            return super().map(mapper, na_action=na_action)
        missing = pd.NA
        if na_action is None:
            missing = next((value for key, value in table.items() if reductions.is_missing(key)), pd.NA)
        return reductions.inferred([missing if key is pd.NA else table.get(key, pd.NA) for key in self], self._dtype)


def _exact(labels: Any) -> Any:
    """Return labels without a dtype as Python objects, untouched by numpy; anything else as it is."""
    if hasattr(labels, "dtype") or not is_list_like(labels):
        return labels
    return pd.Index(list(labels), dtype=object)


def _plain(item: Any) -> Any:
    """Undo the one-tuples and ellipses that pandas passes through."""
    if isinstance(item, tuple):
        kept = [part for part in item if part is not Ellipsis]
        if len(kept) > 1:
            raise IndexError("too many indices for array.")
        return kept[0] if kept else slice(None)
    return slice(None) if item is Ellipsis else item


WideIntArray._add_arithmetic_ops()
WideIntArray._add_comparison_ops()
