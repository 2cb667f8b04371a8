"""The commands transactions, events, resources, balances and account: what they print and write is what the functions return."""

from __future__ import annotations

import csv
import json

import pytest

import toolkit

FEE = "0x1::transaction_fee::FeeStatement"
ACCOUNT = "0x1::account::Account"
RANGE = "100:160"


@pytest.fixture
def run(command, url):
    """Run a command against the seeded node; return what it printed, after a check of its exit code."""

    def done(*arguments: str, code: int = 0) -> str:
        told = command(*arguments, "--node", url)
        assert told.returncode == code, told.stderr
        return told.stdout if code == 0 else told.stderr

    return done


@pytest.mark.parametrize("frame", ["transactions", "changes", "events"])
def test_transactions_are_written_whole(run, node, tmp_path, frame):
    """Every row and column, in Parquet and in JSON."""
    wanted = getattr(toolkit.fetch_transactions(node, RANGE, progress=False), frame)
    place = tmp_path / "rows.parquet"
    said = run("transactions", "--versions", RANGE, "--frame", frame, "--out", str(place))
    assert said == f"{len(wanted)} rows of versions 100 to 160, all read: {place}\n"
    found = toolkit.read_parquet(place)
    assert found.columns.tolist() == wanted.columns.tolist()
    assert found["ledger_version"].tolist() == wanted["ledger_version"].tolist()
    rows = json.loads(run("transactions", "--versions", RANGE, "--frame", frame, "--json"))["rows"]
    assert [row["ledger_version"] for row in rows] == wanted["ledger_version"].tolist()


@pytest.mark.parametrize(("width", "more"), [(80, []), (140, ["sender", "type"])])
def test_the_terminal_shows_the_main_columns(run, monkeypatch, width, more):
    """A line per version, without hashes and payloads; addresses are short, and no line is wider than the terminal."""
    monkeypatch.setenv("COLUMNS", str(width))
    lines = run("transactions", "--versions", "100:104").splitlines()
    assert lines[0].split() == ["ledger_version", "success", "function", "gas_used", "timestamp", *more]
    assert [line.split()[0] for line in lines[1:6]] == ["100", "101", "102", "103", "104"]
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize("frame", ["transactions", "changes", "events", "balance_changes", "failures"])
def test_a_table_fits_in_a_terminal(run, monkeypatch, frame):
    """The version and at least two more columns in 80 characters, whatever the rows contain."""
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("transactions", "--versions", "4900:4999", "--frame", frame).splitlines()
    assert len(lines[0].split()) >= 3
    assert max(map(len, lines)) <= 80


def test_a_pipe_gets_tables_whole(run, monkeypatch):
    """If the output is not a terminal, it has every column, and names are not shortened."""
    monkeypatch.delenv("COLUMNS", raising=False)
    head = run("transactions", "--versions", "100:104").partition("\n")[0]
    assert head.split()[-2:] == ["sender", "type"]


def test_events_have_a_column_per_field(run, node, tmp_path):
    """As `fetch_events`."""
    wanted = toolkit.fetch_events(node, FEE, RANGE, progress=False)
    place = tmp_path / "fees.csv"
    run("events", FEE, "--versions", RANGE, "--out", str(place))
    rows = list(csv.DictReader(place.read_text().splitlines()))
    assert list(rows[0]) == wanted.columns.tolist()
    assert [int(row["total_charge_gas_units"]) for row in rows] == wanted["total_charge_gas_units"].tolist()
    assert "execution_gas_units" in run("events", FEE, "--versions", RANGE).splitlines()[0]


def test_a_resource_over_versions(run, node):
    """A row per version; a resource that does not exist is a row with its error code, and the exit code is 0."""
    rows = json.loads(run("resources", "0xa11ce", ACCOUNT, "--versions", "0:200:100", "--json"))["rows"]
    wanted = toolkit.fetch_resources(node, "0xa11ce", ACCOUNT, "0:200:100", progress=False)
    assert [row["sequence_number"] for row in rows] == wanted["sequence_number"].tolist()
    assert "resource_not_found" in run("resources", "0xdead", ACCOUNT)


@pytest.mark.parametrize("frame", ["balances", "modules", "resources"])
def test_what_an_account_has_is_written(run, node, tmp_path, frame):
    """The rows that --frame names; a plan of a study has a row per call."""
    place = tmp_path / "rows.csv"
    run("account", "0xcafe", "--frame", frame, "--out", str(place))
    wanted = getattr(node.account("0xcafe"), frame)
    assert len(list(csv.DictReader(place.read_text().splitlines()))) == len(wanted) > 0
    run("study", "plan", "demo", "--out", str(place))
    assert len(list(csv.DictReader(place.read_text().splitlines()))) == 10


def test_balances_of_an_owner(run, node, tmp_path):
    """The rows of that owner, numbered from 0; all owners by default."""
    wanted = toolkit.fetch_transactions(node, RANGE, progress=False).balance_changes
    owner = wanted["owner"].iloc[0]
    place = tmp_path / "balances.csv"
    said = run("balances", "--versions", RANGE, "--owner", owner, "--out", str(place))
    mine = wanted[wanted["owner"] == owner]
    assert said == f"{len(mine)} rows of versions 100 to 160, all read: {place}\n"
    rows = list(csv.DictReader(place.read_text().splitlines()))
    assert list(rows[0]) == wanted.columns.tolist()
    assert [int(row["change"]) for row in rows] == mine["change"].tolist()
    shown = json.loads(run("balances", "--versions", RANGE, "--json"))["rows"]
    assert len(shown) == len(wanted)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["events", "nonsense"], "nonsense"),
        (["resources", "here", ACCOUNT], "here"),
        (["transactions", "--versions", "x"], "x"),
        (["transactions", "--out", "rows.txt"], "must end in"),
    ],
)
def test_mistakes_are_one_line(run, arguments, text):
    """Exit code 2."""
    line = run(*arguments, code=2)
    assert text in line
    assert line.count("\n") == 1


def test_an_account_may_be_named(command):
    """The names that `account` lists are addresses wherever one is expected; other text says where the names are."""
    assert "0xa11ce" in command("account", "alice").stdout
    assert "from 0xa11ce" in command("simulate", "0xcafe::registry::register", "carol", "--sender", "alice").stdout
    given = ("--versions", "4000:4100", "--json", "--quiet")
    rows = json.loads(command("balances", "--owner", "alice", *given).stdout)["rows"]
    assert {row["owner"] for row in rows} == {toolkit.address("0xa11ce")}
    found = json.loads(command("transactions", "--address", "alice", *given).stdout)["rows"]
    assert [row["ledger_version"] for row in found] == [row["ledger_version"] for row in rows]
    for wrong, hint in (("alise", "did you mean `alice`?"), ("nobody_there", "`ledger-toolkit account` lists")):
        refused = command("account", wrong)
        assert (refused.returncode, hint in refused.stderr) == (2, True)
