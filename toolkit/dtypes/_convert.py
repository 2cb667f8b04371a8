"""Conversion of values of any kind to wide storage: integers, number text, Arrow arrays, other wide arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.dtypes import _limbs as limbs
from toolkit.dtypes._arrow import WideIntType, wide_from_text, wide_type
from toolkit.dtypes._storage import from_ints, misfit, to_int, whole
from toolkit.errors import SchemaError

if TYPE_CHECKING:
    from toolkit.dtypes._storage import WideKind

__all__ = ["storage_from"]


def storage_from(values: Any, kind: WideKind) -> pa.FixedSizeBinaryArray:
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
        If a value is not an integer (floats and bools are not), or out of range.
    """
    if isinstance(values, (pd.Series, pd.Index)):
        values = values.array
    if hasattr(values, "__arrow_array__"):
        values = values.__arrow_array__()
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return _from_arrow(whole(values), kind)
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu" and values.ndim == 1:
        return limbs.pack_checked(limbs.words_of(values), kind, None)
    return _from_objects(list(values), kind)


def _from_arrow(array: pa.Array, kind: WideKind) -> pa.FixedSizeBinaryArray:
    """Convert wide, text and integer Arrow data."""
    valid = pc.is_valid(array) if array.null_count else None
    if isinstance(array.type, WideIntType):
        if array.type.wide == kind:
            return array.storage
        return limbs.pack_checked(limbs.unpack(array.storage, array.type.wide), kind, valid)
    if array.type == pa.binary(kind.width):
        return array  # storage from a file that was read without the extension type
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        return wide_from_text(array, wide_type(kind.name)).storage
    if pa.types.is_integer(array.type):
        filled = pc.fill_null(array, 0).to_numpy(zero_copy_only=False)
        return limbs.pack_checked(limbs.words_of(filled), kind, valid)
    return _from_objects(array.to_pylist(), kind)


def _from_objects(values: list[Any], kind: WideKind) -> pa.FixedSizeBinaryArray:
    """Convert Python objects one by one."""
    missing = pd.isna(np.array([*values, None], dtype=object))[:-1]
    values = [None if absent else value for value, absent in zip(values, missing, strict=True)]
    if any(isinstance(value, str) for value in values):
        return _from_mixed(values, kind)
    return from_ints(values, kind)


def _from_mixed(values: list[Any], kind: WideKind) -> pa.FixedSizeBinaryArray:
    """Convert values some of which are number text."""
    rows = [row for row, value in enumerate(values) if isinstance(value, str)]
    try:
        read = wide_from_text([values[row] for row in rows], wide_type(kind.name)).storage
    except SchemaError as error:
        raise misfit(values[rows[error.rows[0]]], kind, row=rows[error.rows[0]]) from None
    for row, data in zip(rows, read.to_pylist(), strict=True):
        values[row] = to_int(data, kind)
    return from_ints(values, kind)
