"""Examples of wide integers for Dask, which infers dtypes from them. Imported once Dask's registry is imported."""

from __future__ import annotations

from dask.dataframe.extensions import make_array_nonempty

from toolkit.dtypes._extension import WideIntArray, WideIntDtype


def _two_rows(dtype: WideIntDtype) -> WideIntArray:
    return WideIntArray._from_sequence([1, None], dtype=dtype)  # noqa: SLF001 - pandas' protocol is underscored


make_array_nonempty.register(WideIntDtype, _two_rows)
