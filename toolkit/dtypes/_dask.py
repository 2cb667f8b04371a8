"""Examples of wide integers for Dask, which infers dtypes from them. Imported once Dask's registry is imported."""

from __future__ import annotations

from typing import Any

import pandas as pd
from dask.dataframe.extensions import make_array_nonempty  # type: ignore[import-not-found, unused-ignore]

from toolkit.dtypes._extension import WideIntDtype


@make_array_nonempty.register(WideIntDtype)  # type: ignore[misc, unused-ignore]
def _two_rows(dtype: WideIntDtype) -> Any:
    return pd.array([1, None], dtype=dtype)
