"""JSON and CSV of values and tables: exact integers, no formulas, one form of times."""

from __future__ import annotations

import csv
import io
import json
import math
from datetime import UTC, datetime
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest

import toolkit
from toolkit._present.tables import MAX_EXACT_INTEGER, cell_text, csv_table, json_rows, json_value

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (MAX_EXACT_INTEGER, MAX_EXACT_INTEGER),
        (MAX_EXACT_INTEGER + 1, str(MAX_EXACT_INTEGER + 1)),
        (-MAX_EXACT_INTEGER - 1, str(-MAX_EXACT_INTEGER - 1)),
        (True, True),
        ((1, b"\x00\xff"), [1, "0x00ff"]),
        ({1: NOON}, {"1": "2026-05-01T12:00:00+00:00"}),
        ([NOON.date(), NOON.time(), pd.NaT], ["2026-05-01", "12:00:00", None]),
        ([math.nan, math.inf, -math.inf, 1.5], [None, None, None, 1.5]),
        ([Decimal("-1.50"), Decimal("1E+3"), Decimal("NaN"), Decimal("sNaN")], ["-1.50", "1000", None, None]),
    ],
)
def test_json_values(value, expected):
    """Integers that a float would round are text; bytes are hex; times are ISO 8601; NaN and infinity are null."""
    assert json_value(value) == expected
    json.dumps(json_value(value), allow_nan=False)


def test_a_json_column_has_one_type():
    """One integer beyond 2^53 makes its whole column text; missing values stay null."""
    table = pa.table({"wide": pa.array([1, None, 2**60], pa.uint64()), "small": [1, 2, 3]})
    assert json_rows(table) == [
        {"wide": "1", "small": 1},
        {"wide": None, "small": 2},
        {"wide": str(2**60), "small": 3},
    ]


def test_csv_guards_text_and_leaves_numbers():
    """Only text gets an apostrophe: a negative number is not a formula."""
    table = pa.table({"=n": [-5, None], "share": [-1.5, 2.0], "text": ["-5", "a\nb"], "at": [NOON, NOON]})
    rows = list(csv.reader(io.StringIO(csv_table(table), newline="")))
    assert rows[0] == ["'=n", "share", "text", "at"]
    assert rows[1] == ["-5", "-1.5", "'-5", "2026-05-01T12:00:00+00:00"]
    assert rows[2] == ["", "2.0", "a\nb", "2026-05-01T12:00:00+00:00"]


def test_exact_decimals_come_back_from_csv_as_numbers():
    """Also negative ones and 0: what `scaled` returns with exact=True."""
    coins = toolkit.scaled(pd.Series([150_000_000, -3, 0, None], dtype="i128"), 8, exact=True)
    text = csv_table(pa.table({"coins": pa.array(coins.array)}))
    assert text.split() == ["coins", "1.50000000", "-0.00000003", "0.00000000", '""']
    assert pd.read_csv(io.StringIO(text), skip_blank_lines=False)["coins"].dtype == "float64"


def test_cells_of_containers_are_json():
    """Lists and structs are shown as JSON, a missing value as a dash."""
    assert [cell_text(value) for value in ([1, "a"], {"b": None}, None, 7)] == ['[1, "a"]', '{"b": null}', "-", "7"]
