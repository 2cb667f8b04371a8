"""Drifts are merged into stretches; other steps stay single."""

from __future__ import annotations

from itertools import pairwise

import pandas as pd
import pytest

from tests.unit.plots import synthetic_run
from toolkit.errors import InputError
from toolkit.gas._steps import is_drift, merge_drift


def test_only_many_steps_of_one_cause_are_a_drift() -> None:
    """The growing call drifts by state; its schedule steps, and all other calls' steps, do not."""
    steps = synthetic_run.steps()
    drift = steps[is_drift(steps).to_numpy()]
    assert set(drift["label"]) == {"names registered"}
    assert set(drift["cause"]) == {"state"}


def test_a_stretch_ends_where_another_cause_steps() -> None:
    """No merged row spans the schedule's steps, so none takes the blame for them."""
    rows = merge_drift(synthetic_run.steps())
    stretches = rows[rows["count"] > 1]
    assert len(stretches) == 3
    for change in (synthetic_run.TENFOLD, synthetic_run.CHEAPER):
        inside = (stretches["version_before"] < change) & (stretches["version_after"] > change)
        assert not inside.any()
    assert not stretches["exact"].any()
    assert stretches["transaction_hash"].isna().all()


def test_a_stretch_goes_from_before_its_first_step_to_after_its_last() -> None:
    """Gas and versions of a stretch belong to its two ends."""
    first = merge_drift(synthetic_run.steps()).query("count > 1").iloc[0]
    assert (first["gas_before"], first["gas_after"]) == (4, 20)
    assert (first["version_before"], first["version_after"]) == (125, 2_400)


def test_a_large_step_within_a_drift_stands_on_its_own() -> None:
    """A book that grows, is emptied once and grows again has three rows."""
    gas = [28, 29, 30, 31, 32, 33, 13, 14, 15, 16]
    rows = [
        {
            "label": "book",
            "source": "view@version",
            "version_before": 10 * n,
            "version_after": 10 * n + 1,
            "exact": True,
        }
        | {"gas_before": a, "gas_after": b, "cause": "state", "explanation": f"{a} to {b}", "transaction_hash": "0x1"}
        for n, (a, b) in enumerate(pairwise(gas))
    ]
    summary = merge_drift(synthetic_run.frame(rows, synthetic_run.STEP_TYPES))
    assert summary[["gas_before", "gas_after", "count"]].to_numpy().tolist() == [[28, 33, 5], [33, 13, 1], [13, 16, 3]]
    assert summary["exact"].tolist() == [False, True, False]
    assert summary["explanation"].tolist()[1] == "33 to 13"


def test_every_step_is_in_one_row() -> None:
    """Counts add up to the steps there are, and the frame passed in is unchanged."""
    steps = synthetic_run.steps()
    before = steps.copy()
    assert merge_drift(steps)["count"].sum() == len(steps)
    pd.testing.assert_frame_equal(steps, before)


def test_no_steps_give_no_rows() -> None:
    """An empty frame stays empty, with its columns."""
    empty = synthetic_run.steps().iloc[:0]
    assert merge_drift(empty).empty
    assert list(merge_drift(empty).columns) == [*empty.columns, "count"]


def test_a_missing_column_is_named() -> None:
    """A frame that is not of steps is refused by the column it lacks."""
    with pytest.raises(InputError, match="need the column 'cause'"):
        merge_drift(synthetic_run.steps().drop(columns="cause"))
