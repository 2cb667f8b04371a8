"""Frames as CSV that is safe to open in a spreadsheet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from toolkit._present.text import csv_text

if TYPE_CHECKING:
    from collections.abc import Hashable

__all__ = ["MOST_ROWS", "to_csv"]

MOST_ROWS = 50_000
"""Rows put into one page; a browser should open it, and a run's own Parquet files hold the rest."""


def to_csv(frame: pd.DataFrame) -> str:
    """Write a frame as CSV in which no text is a formula.

    Text a spreadsheet would run gets an apostrophe in front, which makes it text there. Integers are
    written digit by digit, times in ISO 8601, missing values as nothing.

    Parameters
    ----------
    frame : DataFrame
        Flat, as observations and steps are; never changed.

    Returns
    -------
    str
    """
    columns: dict[Hashable, pd.Series] = {csv_text(str(name)): _safe(frame[name]) for name in frame.columns}
    return pd.DataFrame(columns).to_csv(index=False, lineterminator="\r\n")


def _safe(series: pd.Series) -> pd.Series:
    if pd.api.types.is_datetime64_any_dtype(series.dtype):
        return series.astype("datetime64[us, UTC]").dt.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if pd.api.types.is_numeric_dtype(series.dtype):
        return series
    return pd.Series([csv_text(one) if isinstance(one, str) else one for one in series], series.index, object)
