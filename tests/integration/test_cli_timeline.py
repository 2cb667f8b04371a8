"""`ledger-toolkit timeline`: what could have moved gas, one line a change."""

from __future__ import annotations

import json

import pandas as pd
import pytest

import toolkit
from toolkit.cli import main


@pytest.fixture
def timeline(url, capsys):
    """Run the command against the seeded node; (code, stdout, stderr)."""

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["timeline", *arguments, "--node", url])
        return code, *capsys.readouterr()

    return run


def test_a_change_is_a_line_with_its_date_and_words(timeline):
    """A summary, the changes by version, and what the search does not see."""
    code, out, err = timeline("--versions", "2000:4000", "--module", "0xfa17::vault", "--module", "0xde5c::desk::quote")
    first, *changes, last = out.splitlines()
    assert (code, err) == (0, "")
    assert first.startswith("versions 2,000 to 4,000 on http://127.0.0.1:")
    assert ": 3 changes to the gas schedule, the configuration and the code of 0xfa17::vault, 0xde5c::desk (" in first
    assert changes == [
        "  at version 2,252 (2026-03-23): upgraded module 0xfa17::vault (added preview)",
        (
            "  at version 2,902 (2026-04-15): upgraded module 0xfeed::price_feed, a dependency of 0xde5c::desk "
            "(same functions, different code)"
        ),
        ("  at version 3,502 (2026-05-06): changed the gas schedule: 459 of 512 parameters changed, every one ×10"),
    ]
    assert last.startswith("note: a change reverted between two of the ")


def test_the_progress_bar_can_be_left_out(timeline, monkeypatch):
    """On a terminal the reads are counted on stderr; --quiet prints the same lines without."""
    monkeypatch.setattr(toolkit.client._progress, "_on_terminal", lambda: True)
    (code, shown, bar), (quiet, same, nothing) = (timeline("--versions", "0:2000", *more) for more in ([], ["--quiet"]))
    assert (code, quiet, nothing) == (0, 0, "")
    assert "changes: " in bar
    assert shown == same


def test_json_has_the_rows_and_what_is_not_known(timeline):
    """Counts of reads, what was not read, and every column."""
    code, out, _ = timeline("--versions", "3000:4000", "--json")
    told = json.loads(out)
    assert (code, told["first"], told["last"], told["unread"]) == (0, 3_000, 4_000, [])
    assert told["requests"] > 100
    [row] = told["rows"]
    assert (row["ledger_version"], row["kind"], row["exact"]) == (3_502, "schedule", True)
    assert row["time"].startswith("2026-05-06T")


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_rows_go_to_a_file(timeline, tmp_path, ending):
    """As the other commands write them; Parquet has the attributes too."""
    place = tmp_path / f"timeline.{ending}"
    code, out, _ = timeline("--versions", "3000:4000", "--out", str(place))
    assert code == 0
    assert out.splitlines()[-1] == f"1 row: {place}"
    if ending == "parquet":
        assert toolkit.read_parquet(place).attrs["last"] == 4_000
    else:
        read = pd.read_csv(place) if ending == "csv" else pd.read_json(place, lines=True)
        assert read["ledger_version"].tolist() == [3_502]


def test_a_name_that_is_not_of_a_module_is_bad_input(timeline):
    """With what was expected."""
    code, _, err = timeline("--module", "coin")
    assert code == 2
    assert "expected" in err


def test_a_module_that_does_not_exist_is_bad_input(timeline):
    """As in `module`, with the name that was meant."""
    code, out, err = timeline("--module", "0xfa17::valt")
    assert (code, out) == (2, "")
    assert "`vault`" in err
