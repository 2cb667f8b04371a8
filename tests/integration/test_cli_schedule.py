"""`ledger-toolkit schedule`: two versions' gas schedules, words first."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from toolkit.cli import main


@pytest.fixture
def schedule(url, capsys):
    """Run the command against the seeded node; (code, stdout, stderr)."""

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["schedule", *arguments, "--node", url])
        return code, *capsys.readouterr()

    return run


def tenfold(ledger) -> int:
    """Return the version of the tenfold step, as the history tells it."""
    return next(mark.version for mark in ledger.milestones if "tenfold" in mark.text)


def test_words_come_first_then_the_table_in_part(schedule, ledger):
    """What changed in one line; forty rows, and how to get all."""
    at = tenfold(ledger)
    code, out, err = schedule(str(at - 1), str(at))
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[0].startswith(f"Gas schedule from version {at - 1:,} to {at:,} on http://127.0.0.1:")
    assert lines[0].endswith(": 459 of 512 parameters changed, every one ×10.")
    assert lines[1].split() == ["name", "before", "after", "ratio"]
    assert len(lines) == 44
    assert lines[-1] == "[40 of 459 rows]"


def test_json_holds_every_parameter_exactly(schedule, ledger):
    """Both sides, the summary and all rows."""
    at = tenfold(ledger)
    code, out, _ = schedule(str(at - 1), str(at), "--json")
    told = json.loads(out)
    assert (code, told["format"]) == (0, 1)
    assert told["before"] == {"ledger_version": at - 1, "feature_version": 45, "parameters": 512}
    assert told["after"] == {"ledger_version": at, "feature_version": 45, "parameters": 512}
    assert told["summary"] == "459 of 512 parameters changed, every one ×10"
    assert len(told["rows"]) == 459
    assert all(row["after"] == 10 * row["before"] for row in told["rows"])


def test_rows_go_to_a_file(schedule, ledger, tmp_path):
    """--out writes them whole."""
    at = tenfold(ledger)
    place = tmp_path / "diff.parquet"
    code, out, _ = schedule(str(at - 1), str(at), "--out", str(place))
    assert (code, out.splitlines()[-1]) == (0, f"459 rows: {place}")
    assert pd.read_parquet(place)["ratio"].eq(10).all()


def test_equal_schedules_are_one_line(schedule):
    """If nothing differs, one line says so, without an empty table."""
    code, out, _ = schedule("100", "101")
    assert (code, out.count("\n")) == (0, 1)
    assert out.endswith(": no parameter differs.\n")


def test_a_date_names_a_version_and_the_head_is_the_default(schedule, ledger):
    """The first version at or after it; the second side is the node's head."""
    code, out, _ = schedule("2026-05-01", "--json")
    told = json.loads(out)
    assert code == 0
    assert told["after"]["ledger_version"] == ledger.head
    assert told["before"]["ledger_version"] < tenfold(ledger)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("soon",), 2, "or a date, such as 2026-05-01, got 'soon'"),
        (("1", "99999"), 2, "version_not_found"),
        (("1", "2", "--out", "x.txt"), 2, ".parquet, .csv, .json, .jsonl or .xlsx"),
        ((), 2, "before"),
    ],
)
def test_mistakes_are_one_line(schedule, arguments, code, words):
    """With the exit code of their kind."""
    done, out, err = schedule(*arguments)
    assert (done, out) == (code, "")
    assert err.count("\n") == 1
    assert words.lower() in err.lower()
