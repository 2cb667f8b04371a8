"""Steps as they are told: those of a drift merged, so that the few that were decisions are not buried."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from toolkit.plots.series import require

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["STEP_COLUMNS", "drifting", "told"]

LARGE = 0.5
"""From this share of the smaller side on, a step is a decision of its own, not part of a drift."""

STEP_COLUMNS = ("label", "version_before", "version_after", "exact", "gas_before", "gas_after", "cause")


def drifting(steps: pd.DataFrame, *, most: int = 4) -> pd.Series:
    """Mark the steps that are part of a drift: more than `most` small ones of one call by one cause.

    A call whose gas grows with state changes at nearly every reading. A step is small where the call
    answers on both sides and gas changes by less than half of the smaller side.

    Parameters
    ----------
    steps : DataFrame
        Reads ``label``, ``cause``, ``gas_before`` and ``gas_after`` (gas units).
    most : int, default 4
        Steps of one call and cause that are still told one by one.

    Returns
    -------
    Series of bool
        Aligned with `steps`.
    """
    if steps.empty:
        return pd.Series(data=False, index=steps.index, dtype=bool)
    before = steps["gas_before"].to_numpy(dtype=np.float64, na_value=np.nan)
    after = steps["gas_after"].to_numpy(dtype=np.float64, na_value=np.nan)
    small = pd.Series(np.abs(after - before) < LARGE * np.fmin(before, after), index=steps.index)
    group = small.groupby([steps["label"], steps["cause"]], dropna=False)
    return small & (group.transform("sum") > most)


def told(steps: pd.DataFrame) -> pd.DataFrame:
    """Return the steps with each stretch of a drift merged into one row.

    A stretch ends where the call steps by another cause, so no merged row takes the blame, or the
    credit, for what something else did.

    Parameters
    ----------
    steps : DataFrame
        As `Run.steps`; never changed.

    Returns
    -------
    DataFrame
        The columns of `steps` and ``count`` (int64, steps in the row). A merged row goes from before its
        first step to after its last one, is not ``exact``, and has the explanation of its largest step
        and no transaction. Calls in their order, each by version.

    Raises
    ------
    SchemaError
        If a column read is missing.
    """
    require(steps, STEP_COLUMNS, what="summaries of changes")
    if steps.empty:
        return steps.assign(count=pd.Series(dtype="int64"))
    keys = ["label", *(name for name in ("source", "node") if name in steps.columns)]
    order = {label: place for place, label in enumerate(steps["label"].unique())}
    rows = steps.assign(_call=steps["label"].map(order).astype("int64"), _drift=drifting(steps))
    rows = rows.sort_values(["_call", *keys[1:], "version_after"], kind="stable")
    kinds = rows[[*keys, "cause", "_drift"]].astype(object)
    new = (kinds != kinds.shift()).any(axis=1).to_numpy() | ~rows["_drift"].to_numpy(dtype=np.bool_)
    starts = np.flatnonzero(new)
    ends = np.append(starts[1:], len(rows)) - 1
    rows = rows.drop(columns=["_call", "_drift"])
    return _merged(rows, starts, ends)


def _merged(rows: pd.DataFrame, starts: NDArray[np.intp], ends: NDArray[np.intp]) -> pd.DataFrame:
    """Rows `starts`, each reaching to the row `ends` of the same stretch."""
    result = rows.iloc[starts].reset_index(drop=True).assign(count=(ends - starts + 1).astype("int64"))
    for name in [name for name in rows.columns if name.endswith("_after")]:
        result[name] = rows[name].iloc[ends].array
    merged = result["count"] > 1
    before = result["gas_before"].to_numpy(dtype=np.float64, na_value=np.nan)
    result["exact"] = result["exact"].where(~merged, other=False)
    if "change" in result.columns:
        change = result["gas_after"].astype("int64[pyarrow]") - result["gas_before"].astype("int64[pyarrow]")
        result["change"] = result["change"].where(~merged, other=change)
    if "change_percent" in result.columns:
        after = result["gas_after"].to_numpy(dtype=np.float64, na_value=np.nan)
        percent = 100 * np.divide(after - before, before, out=np.full_like(before, np.nan), where=before > 0)
        result["change_percent"] = result["change_percent"].where(~merged, other=pd.Series(percent))
    if "explanation" in result.columns:
        largest = [a + _largest(rows.iloc[a : b + 1]) for a, b in zip(starts, ends, strict=True)]
        result["explanation"] = rows["explanation"].iloc[largest].array
    if "transaction_hash" in result.columns:
        result["transaction_hash"] = result["transaction_hash"].where(~merged, other=None)
    return result


def _largest(rows: pd.DataFrame) -> int:
    """Position of the step with the largest difference in gas."""
    before = rows["gas_before"].to_numpy(dtype=np.float64, na_value=0)
    after = rows["gas_after"].to_numpy(dtype=np.float64, na_value=0)
    return int(np.argmax(np.abs(after - before)))
