"""The judge of histories that others made: each is judged, or named with what is wrong with it."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from tests.benchmarks.series import judge

CODE = {"version": 1_300, "kind": "code"}


def history(count=60):
    """Return transactions that all cost the same."""
    same = {"execution_gas_units": 100, "io_gas_units": 20, "storage_fee_octas": 0, "gas_unit_price": 100}
    return pd.DataFrame({"ledger_version": 1_000 + 10 * np.arange(count)} | same).assign(success=True)


@pytest.fixture
def judged(tmp_path, monkeypatch, capsys):
    """Judge one history at 5 %; return the exit code, what was found and what was said."""

    def run(frame, changes=(CODE,)):
        frame.to_parquet(tmp_path / "a.parquet")
        (tmp_path / "a.json").write_text(json.dumps({"changes": list(changes)}))
        monkeypatch.setattr("sys.argv", ["judge.py", str(tmp_path), "--gate", "5%"])
        code = judge.main()
        said = capsys.readouterr()
        return code, json.loads(said.out or "null"), said.err

    return run


@pytest.mark.parametrize(
    ("frame", "changes", "verdict"),
    [
        (history(), [CODE], "passed"),
        (history(0), [CODE], "not judged"),
        (history(1), [CODE], "not judged"),
        (history().assign(success=False), [CODE], "not judged"),
        (history().assign(storage_fee_refund_octas=50_000), [CODE], "passed"),
        (history(), [CODE, CODE | {"kind": "schedule"}], "passed"),
        (history(), [CODE | {"version": 10}], "not judged"),
        (history(), [CODE | {"version": 9_999}], "not judged"),
        (history(), [], None),
    ],
)
def test_an_odd_history_is_judged(judged, frame, changes, verdict):
    """Without a step; empty sides cannot be judged."""
    found = {"name": "a", "steps": [], "unexplained": 0, "verdict": verdict}
    assert judged(frame, changes) == (0, found, "")


def test_rows_may_have_any_order(judged):
    """A doubling is a step, and the gate fails."""
    frame = history()
    frame.loc[30:, "execution_gas_units"] = 200
    code, found, _ = judged(frame.sample(frac=1, random_state=1))
    step = {"version": 1_300, "part": "execution", "sure": True}
    assert (code, found["steps"], found["verdict"]) == (0, [step], "failed")


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("execution_gas_units", "100"),
        ("execution_gas_units", 2**62),
        ("execution_gas_units", 1.5),
        ("io_gas_units", np.nan),
        ("gas_unit_price", pd.array([pd.NA] * 60, "Int64")),
        ("storage_fee_octas", None),
    ],
)
def test_a_column_that_cannot_be_counted_with_is_named(judged, column, values):
    """Instead of a verdict on what it became."""
    code, found, said = judged(history().assign(**{column: values}))
    assert (code, found) == (2, None)
    assert f"a.parquet: column {column}: " in said


@pytest.mark.parametrize("change", [{"kind": "code"}, {"version": 1_300, "kind": "weather"}])
def test_a_change_that_cannot_be_read_is_named(judged, change):
    """With the history."""
    code, found, said = judged(history(), [change])
    assert (code, found) == (2, None)
    assert "a.parquet: " in said
