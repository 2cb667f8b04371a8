"""Frames as CSV that is safe to open in a spreadsheet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Hashable

__all__ = ["MOST_ROWS", "to_csv"]

MOST_ROWS = 50_000
"""Rows put into one page; a browser should open it, and a run's own Parquet files hold the rest."""

FORMULA = r"^\s*[=+\-@\t\r\n＝＋－＠|%]"  # noqa: RUF001 - spreadsheets take the full-width forms for formulas too


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
    columns: dict[Hashable, pd.Series] = {name: _safe(frame[name]) for name in frame.columns}
    return pd.DataFrame(columns).to_csv(index=False, lineterminator="\r\n")


def _safe(series: pd.Series) -> pd.Series:
    if pd.api.types.is_datetime64_any_dtype(series.dtype):
        return series.astype("datetime64[us, UTC]").dt.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if not pd.api.types.is_string_dtype(series.dtype):
        return series
    text = series.astype(object)
    formula = series.str.match(FORMULA).fillna(value=False).astype(bool)
    return text.where(~formula, other="'" + text.where(formula, other=""))
