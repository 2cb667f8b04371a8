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
from toolkit.errors import InputError

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


def test_parts_of_a_json_column_have_one_type():
    """A list, or a field of structs, is text in all rows if one integer of it is beyond 2^53; other parts stay numbers."""
    big = 2**60
    table = pa.table({"items": [[1, 2], None, [big]], "pair": [{"a": 1, "b": 2}, {"a": big, "b": None}, None]})
    assert [row["items"] for row in json_rows(table)] == [["1", "2"], None, [str(big)]]
    assert [row["pair"] for row in json_rows(table)] == [{"a": "1", "b": 2}, {"a": str(big), "b": None}, None]
    nested = pa.table({"v": [[{"k": [1]}, {"k": [big]}], [{"k": []}]]})
    assert json_rows(nested) == [{"v": [{"k": ["1"]}, {"k": [str(big)]}]}, {"v": [{"k": []}]}]
    assert json_value({"rows": [{"n": 1}, {"n": big}], "n": 3}) == {"rows": [{"n": "1"}, {"n": str(big)}], "n": 3}
    cells = [row["items"] for row in csv.DictReader(io.StringIO(csv_table(table), newline=""))]
    assert cells == ['["1", "2"]', "", f'["{big}"]']


@pytest.mark.parametrize("name", ["x.txt", "x", "x.xls", "xlsx"])
def test_a_workbook_has_the_name_that_excel_opens(tmp_path, name):
    """Nothing is written under another one."""
    with pytest.raises(InputError, match=r"\.xlsx"):
        toolkit.write_excel(pd.DataFrame({"n": [1]}), tmp_path / name)
    assert not list(tmp_path.iterdir())
    toolkit.write_excel(pd.DataFrame({"n": [1]}), tmp_path / "X.XLSX")
    assert (tmp_path / "X.XLSX").exists()


def test_a_workbook_begins_with_the_keys_of_groups(tmp_path):
    """Under their names; row numbers are not written, and long integers in lists are text in every row."""
    from openpyxl import load_workbook

    def written(frame):
        toolkit.write_excel(frame, tmp_path / "x.xlsx")
        return [[cell.value for cell in row] for row in load_workbook(tmp_path / "x.xlsx").active.rows]

    frame = pd.DataFrame({"owner": ["b", "a", "b"], "coin": "x", "octas": pd.array([1, 2**60, 3], dtype="u128")})
    assert written(frame.groupby(["owner", "coin"]).sum()) == [
        ["owner", "coin", "octas"],
        ["a", "x", str(2**60)],
        ["b", "x", "4"],
    ]
    assert written(frame[frame["owner"] == "b"][["octas"]]) == [["octas"], [1], [3]]
    assert written(frame.set_index(pd.Index([7, 8, 9], name="row"))[["coin"]])[:2] == [["row", "coin"], [7, "x"]]
    assert written(pd.DataFrame({"v": [[1], [2**60]]})) == [["v"], ['["1"]'], [f'["{2**60}"]']]


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
