"""Commands that ask a node: what they print and write, to the digit; mistakes are one line with their exit code."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import socket
import sys
import warnings
from datetime import datetime

import pandas as pd
import pytest

import toolkit
from toolkit import embedded
from toolkit._present.text import plural
from toolkit.cli import main
from toolkit.cli._console import write_frame

APT = "0x1::aptos_coin::AptosCoin"
SUPPLY = ("view", "0x1::coin::supply", "-t", APT)
SIZE = ("view", "0xcafe::registry::size")
RECORD = ("--key-type", "0x1::string::String", "--value-type", "0xcafe::registry::Record")


@pytest.fixture
def command(url, monkeypatch):
    """Run a command in this process, against the seeded node unless it says otherwise; (code, stdout, stderr)."""
    monkeypatch.delenv("LEDGER_TOOLKIT_API_KEY", raising=False)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)  # of a test plugin; it would mean a notebook's bar

    def run(*arguments: str, node: str | None = url) -> tuple[int, str, str]:
        where = [] if node is None else ["--node", node]
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            code = main([*arguments, *where])
        return code, out.getvalue(), err.getvalue()

    return run


@pytest.fixture
def handle(node):
    return node.view("0xcafe::registry::handle").value


def json_of(done) -> dict:
    """Check that a command went well, and return what it printed as JSON."""
    code, out, err = done
    assert (code, err) == (0, "")
    content = json.loads(out)
    assert content["format"] == 1
    assert out.isascii()
    return content


def line_of(done, code: int) -> str:
    """Check that a command failed as promised, printed nothing else, and return its line."""
    got, out, err = done
    assert (got, out) == (code, ""), err
    assert len(err.strip().splitlines()) == 1
    assert err.startswith("ledger-toolkit: error: ")
    return err


class TestView:
    """view"""

    def test_versions_are_rows(self, command, node):
        """A plan gives one row per version, with exact values as text where they are large."""
        rows = json_of(command(*SUPPLY, "--versions", "0:-1/5", "--json"))["rows"]
        frame = toolkit.fetch_views(
            node, toolkit.ViewFunction("0x1::coin::supply", type_arguments=[APT]), versions="0:-1/5", progress=False
        )
        assert [row["ledger_version"] for row in rows] == frame["ledger_version"].tolist()
        assert [int(row["value"]) for row in rows] == frame["value"].tolist()
        assert all(isinstance(row["value"], str) for row in rows if int(row["value"]) > 2**53)

    def test_versions_as_text_are_a_table(self, command):
        """A heading and one line per version; columns without a value are left out."""
        code, out, _ = command(*SIZE, "--versions", "100:104")
        lines = out.splitlines()
        assert (code, len(lines)) == (0, 8)
        assert lines[0].split() == ["ledger_version", "value", "gas_used"]
        assert [line.split()[0] for line in lines[1:-2]] == ["100", "101", "102", "103", "104"]
        assert lines[-1] == "versions 100 to 104"

    def test_a_long_table_shows_both_ends(self, command):
        """Forty rows, and how many there are."""
        lines = command(*SIZE, "--versions", "100:299")[1].splitlines()
        assert len(lines) == 45
        assert lines[-3].startswith("[40 of 200 rows; without values: ")
        assert lines[-1] == "--out writes all rows and columns."

    def test_failures_are_rows(self, command):
        """A function that does not exist yet gives a row with its error code; the command succeeds."""
        rows = json_of(command("view", "0xfa17::vault::preview", "100", "--versions", "1000:4000:3000", "--json"))[
            "rows"
        ]
        assert [row["error_code"] for row in rows] == ["invalid_input", None]
        assert rows[0]["value"] is None
        assert rows[1]["value"] is not None

    def test_one_version_or_many_but_not_both(self, command):
        """The text names both options."""
        line = line_of(command(*SIZE, "--versions", "1:2", "--ledger-version", "5"), 2)
        assert "--ledger-version" in line
        assert "--versions" in line

    @pytest.mark.parametrize("plan", ["a:b", "5:1", "1:2:0", "", "0:-1/0"])
    def test_a_wrong_plan_is_one_line(self, command, plan):
        """Plans that cannot be read exit 2."""
        line_of(command(*SIZE, "--versions", plan), 2)

    def test_a_number_for_a_string_is_refused(self, command):
        """Views at one version and at many, simulations and the key of a table; the help says how to write it."""
        name = "0xcafe::registry::record_of"
        calls = [
            ("view", name, "5"),
            ("view", name, "5", "--versions", "0:-1/3"),
            ("simulate", "0xcafe::registry::register", "5", "--sender", "0xb0b"),
            ("table-item", "0x1", "5", "--key-type", "String", "--value-type", "u64"),
        ]
        for call in calls:
            line = line_of(command(*call), 2)
            assert "expected 0x1::string::String, got number 5" in line

    def test_arguments_are_json_or_plain_text(self, command):
        """`alice` and `"alice"` are the same name; a number is a number."""
        told = [
            json_of(command("view", "0xcafe::registry::record_of", name, "--json"))["values"]
            for name in ("alice", '"alice"')
        ]
        assert told[0] == told[1]
        assert json_of(command("view", "0xfa17::vault::preview", "100", "--json"))["values"]


class TestOut:
    """--out"""

    PLAN = ("--versions", "0:-1/30")

    @pytest.fixture
    def expected(self, node):
        call = toolkit.ViewFunction("0x1::coin::supply", type_arguments=[APT])
        return toolkit.fetch_views(node, call, versions="0:-1/30", progress=False)

    def test_parquet_is_the_frame_itself(self, command, expected, tmp_path):
        """Types and values come back as the fetch function gives them."""
        place = tmp_path / "deep" / "x.parquet"
        code, out, _ = command(*SUPPLY, *self.PLAN, "--out", str(place))
        assert (code, out) == (0, f"30 rows of 30 versions from 0 to 4,999, all read: {place}\n")
        pd.testing.assert_frame_equal(toolkit.read_parquet(place), expected)

    def test_csv_has_every_digit(self, command, expected, tmp_path):
        """Values as digits, nulls empty, names as columns."""
        place = tmp_path / "x.csv"
        summary = json_of(command(*SUPPLY, *self.PLAN, "--out", str(place), "--json"))
        assert (summary["rows"], summary["failed"], summary["out"]) == (30, 0, str(place))
        with place.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert [int(row["value"]) for row in rows] == expected["value"].tolist()
        assert [row["value"] for row in rows] == [str(value) for value in expected["value"].tolist()]
        assert {row["error_code"] for row in rows} == {""}
        assert list(rows[0]) == expected.columns.tolist()

    def test_json_lines_are_one_object_each(self, command, expected, tmp_path):
        """Large integers are text, so that no reader rounds them."""
        place = tmp_path / "x.jsonl"
        assert command(*SUPPLY, *self.PLAN, "--out", str(place))[0] == 0
        rows = [json.loads(line) for line in place.read_text("utf-8").splitlines()]
        assert [int(row["value"]) for row in rows] == expected["value"].tolist()
        assert all(isinstance(row["value"], str) for row in rows if int(row["value"]) > 2**53)
        assert rows[0]["error_code"] is None

    def test_json_and_workbooks_have_the_same_rows(self, command, expected, tmp_path):
        """A list of objects, and a sheet whose large integers are text and whose times are UTC."""
        openpyxl = pytest.importorskip("openpyxl", reason="needs openpyxl, of the test extra")
        for name in ("x.json", "x.xlsx"):
            assert command(*SUPPLY, *self.PLAN, "--times", "--out", str(tmp_path / name))[0] == 0
        rows = json.loads((tmp_path / "x.json").read_text("utf-8"))
        assert [int(row["value"]) for row in rows] == expected["value"].tolist()
        assert [row["ledger_version"] for row in rows if row["ledger_timestamp"] is None] == [0]  # genesis has none
        head, *cells = openpyxl.load_workbook(tmp_path / "x.xlsx")["rows"].iter_rows(values_only=True)
        assert list(head) == list(rows[0])
        for row, cell in zip(rows, cells, strict=True):
            found = dict(zip(head, cell, strict=True))
            time = row["ledger_timestamp"] and datetime.fromisoformat(row["ledger_timestamp"]).replace(tzinfo=None)
            assert found["ledger_timestamp"] == time
            assert int(found["value"]) == int(row["value"])
            assert found["gas_used"] == row["gas_used"]

    def test_workbooks_are_exact_and_run_nothing(self, tmp_path):
        """More than 15 digits are text, formulas and control characters too."""
        openpyxl = pytest.importorskip("openpyxl", reason="needs openpyxl, of the test extra")
        frame = pd.DataFrame(
            {
                "amount": pd.array([5, 2**64 - 1, None], dtype="uint64[pyarrow]"),
                "small": pd.array([5, 10**15 - 1, None], dtype="u128"),
                "text": pd.array(["=1+1", "a\x00b", "x" * 40_000], dtype="string"),
                "parts": [["a", "b"], [], None],
            }
        )
        toolkit.write_excel(frame, tmp_path / "x.xlsx")
        sheet = openpyxl.load_workbook(tmp_path / "x.xlsx")["rows"]
        _, first, second, third = sheet.iter_rows(values_only=True)
        assert first == ("5", 5, "=1+1", '["a", "b"]')
        assert second == (str(2**64 - 1), 10**15 - 1, r"a\x00b", "[]")
        assert (third[0], third[1], len(third[2]), third[3]) == (None, None, 32_767, None)
        assert sheet["C2"].data_type == "s"

    def test_one_version_goes_to_a_file_too(self, command, tmp_path):
        """Without a plan the file has the row of the head, or of the version given."""
        for options, version in (((), 4_999), (("--ledger-version", "77"), 77)):
            assert command(*SIZE, *options, "--out", str(tmp_path / "x.jsonl"))[0] == 0
            (row,) = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text("utf-8").splitlines()]
            assert row["ledger_version"] == version

    def test_failed_reads_are_counted(self, command, tmp_path):
        """The summary tells them, the file has their rows."""
        place = tmp_path / "x.csv"
        code, out, _ = command(
            "view", "0xfa17::vault::preview", "100", "--versions", "1000:4000:3000", "--out", str(place)
        )
        assert (code, out) == (0, f"2 rows of 2 versions from 1,000 to 4,000, 1 failed read: {place}\n")

    @pytest.mark.parametrize("name", ["x.ods", "x", "x.csv.gz", ".csv"])
    def test_a_wrong_suffix_is_one_line(self, capsys, tmp_path, name):
        """It names what is taken, before anything is asked: a dead node is not even noticed."""
        words = ["view", "0x1::m::count", "--versions", "0:1", "--out", str(tmp_path / name)]
        assert main([*words, "--node", "http://127.0.0.1:9"]) == 2
        assert "name must end in .parquet, .csv, .json, .jsonl or .xlsx" in capsys.readouterr().err
        assert list(tmp_path.iterdir()) == []

    def test_a_file_is_replaced_whole(self, command, tmp_path):
        """An older longer file leaves nothing behind."""
        place = tmp_path / "x.JSONL"  # as some systems write it
        place.write_text("old\n" * 1_000)
        assert command(*SIZE, "--versions", "101:102", "--out", str(place))[0] == 0
        assert len(place.read_text("utf-8").splitlines()) == 2

    def test_structs_and_wide_integers_are_exact_in_every_form(self, tmp_path):
        """256 bits, bytes and nulls."""
        frame = pd.DataFrame(
            {
                "wide": pd.array([2**256 - 1, None], dtype="u256"),
                "small": pd.array([7, None], dtype="uint64[pyarrow]"),
            }
        )
        for name in ("x.csv", "x.jsonl", "x.parquet"):
            write_frame(frame, tmp_path / name)
        with (tmp_path / "x.csv").open(encoding="utf-8", newline="") as file:
            assert list(csv.reader(file))[1:] == [[str(2**256 - 1), "7"], ["", ""]]
        lines = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text("utf-8").splitlines()]
        assert lines == [{"wide": str(2**256 - 1), "small": 7}, {"wide": None, "small": None}]
        assert toolkit.read_parquet(tmp_path / "x.parquet")["wide"].tolist()[0] == 2**256 - 1


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [(["0:-1"], True), (["0:-1/20", "--versions", "0:9"], False), (["5"], False)],
    ids=["a plan", "a plan and the option", "a number"],
)
def test_a_plan_given_as_an_argument_names_its_option(command, arguments, hint):
    """The call does not accept it; the message says where versions go."""
    line = line_of(command("view", "0xcafe::registry::size", *arguments), 2)
    assert line.strip().endswith("pass versions as --versions 0:-1") is hint


class TestTableItem:
    """table-item"""

    def test_an_item_is_printed(self, command, handle):
        """Key, value and version, as text and as JSON."""
        facts = json_of(command("table-item", handle, "alice", *RECORD, "--json"))
        assert facts["key"] == "alice"
        assert facts["value"]["owner"].endswith("a11ce")
        assert facts["ledger_version"] == 4_999
        code, out, _ = command("table-item", handle, "alice", *RECORD, "--ledger-version", "100")
        assert code == 0
        assert out.splitlines()[-1].split() == ["ledger_version", "100"]

    def test_versions_are_rows(self, command, handle):
        """Before it was written the item is a row with its code."""
        done = command("table-item", handle, "alice", *RECORD, "--versions", "10:4000:3990", "--json")
        rows = json_of(done)["rows"]
        assert [row["error_code"] for row in rows] == ["table_item_not_found", None]
        assert rows[1]["value"]["owner"].endswith("a11ce")

    def test_the_types_come_from_the_owner(self, command, handle):
        """`--owner` replaces both types; without any of them the options are named."""
        facts = json_of(command("table-item", handle, "alice", "--owner", "0xcafe", "--json"))
        assert facts == json_of(command("table-item", handle, "alice", *RECORD, "--json"))
        line = line_of(command("table-item", handle, "alice", "--key-type", "String"), 2)
        assert "requires --key-type and --value-type, or --owner" in line

    @pytest.mark.parametrize(
        ("arguments", "code", "words"),
        [
            (["{}", "nobody", *RECORD], 2, "table_item_not_found"),
            (["{}", "alice", "--key-type", "nonsense<", "--value-type", "u64"], 2, "nonsense<"),
            (["{}", "alice", "--key-type", "u64", "--value-type", "u64"], 2, "alice"),
            (["{}", "300", "--key-type", "u8", "--value-type", "u64"], 2, "300"),
            (["0xnonsense", "alice", *RECORD], 2, "handle"),
        ],
        ids=["no such item", "a type that cannot be read", "a key of another type", "a key too large", "no hex"],
    )
    def test_what_cannot_be_read_is_one_line(self, command, handle, arguments, code, words):
        """Exit code 2, whether the toolkit or the node finds the mistake."""
        assert words in line_of(command("table-item", *(word.format(handle) for word in arguments)), code)

    def test_a_file_of_items(self, command, handle, tmp_path):
        """Structs go into Parquet whole and come back."""
        place = tmp_path / "items.parquet"
        assert command("table-item", handle, "alice", *RECORD, "--versions", "-5:", "--out", str(place))[0] == 0
        frame = toolkit.read_parquet(place)
        assert [value["owner"][-5:] for value in frame["value"]] == ["a11ce"] * 5


class TestSimulate:
    """simulate"""

    TRANSFER = ("simulate", "0x1::aptos_account::transfer", "0xb0b", "100", "--sender", "0xa11ce")

    def test_text_is_the_explanation(self, command):
        """What it would do, cost, and that nothing was done."""
        code, out, err = command(*self.TRANSFER)
        assert (code, err) == (0, "")
        assert out.startswith("0x1::aptos_account::transfer from 0xa11ce would succeed.")
        assert "+100 octas (0.000001 APT)" in out
        assert "Nothing was signed, submitted or stored" in out

    def test_json_has_the_split(self, command, node):
        """The figures of the fee statement, as `simulate` gives them."""
        facts = json_of(command(*self.TRANSFER, "--json"))
        sim = node.simulate(
            toolkit.EntryFunction("0x1::aptos_account::transfer", arguments=["0xb0b", 100]), sender="0xa11ce"
        )
        assert facts["success"] is True
        assert facts["gas_used"] == facts["gas"]["total_charge_gas_units"] == sim.gas_used
        assert facts["gas"]["gas_unit_price"] == sim.gas.gas_unit_price
        assert (facts["changes"], facts["events"]) == (len(sim.changes), len(sim.events))
        assert facts["affordable_max_gas"] > facts["gas_used"]

    def test_a_failing_transaction_is_an_answer(self, command):
        """An abort exits 0: the simulation worked, and says why the transaction would not."""
        code, out, _ = command("simulate", "0xcafe::registry::register", "alice", "--sender", "0xb0b")
        assert code == 0
        assert "would fail" in out
        assert "already exists" in out

    def test_options_reach_the_node(self, command, tmp_path):
        """Price and max gas of the file are those used; another account pays."""
        file = tmp_path / "request.json"
        file.write_text('{"gas_unit_price": 150, "max_gas_amount": 5000, "fee_payer": "0xb0b"}')
        facts = json_of(command(*self.TRANSFER, "--request", str(file), "--json"))
        assert facts["gas"]["gas_unit_price"] == 150
        assert facts["affordable_max_gas"] is None
        assert "0xb0b" in command(*self.TRANSFER, "--request", str(file))[1]

    def test_signers_keys_and_estimates_reach_the_node(self, command, monkeypatch, tmp_path):
        """A file has the other fields of the request, by their names."""
        asked = []
        simulate = toolkit.Node.simulate
        monkeypatch.setattr(toolkit.Node, "simulate", lambda node, one: asked.append(one) or simulate(node, one))
        key, other = "0x" + "11" * 32, "0x" + "22" * 32
        signers = {"public_key": key, "secondary_signers": ["0xb0b"], "secondary_public_keys": [other]}
        payer = {"fee_payer": "0xb0b", "fee_payer_public_key": other, "replay_protection_nonce": 7}
        estimates = {"estimate_gas_unit_price": False, "estimate_max_gas_amount": False}
        file = tmp_path / "request.json"
        file.write_text(json.dumps(signers))
        command(*self.TRANSFER, "--request", str(file))
        file.write_text(json.dumps(payer | estimates | {"estimate_prioritized_gas_unit_price": True}))
        command(*self.TRANSFER, "--request", str(file), "--json")
        multi, paid = asked
        assert (multi.public_key.public_key, len(multi.secondary_signers)) == (key, 1)
        assert multi.secondary_public_keys[0].public_key == other
        assert paid.fee_payer_public_key.public_key == other
        assert (paid.replay_protection_nonce, paid.fee_payer[-3:]) == (7, "b0b")
        assert (paid.estimate_gas_unit_price, paid.estimate_max_gas_amount) == (False, False)
        assert paid.estimate_prioritized_gas_unit_price
        assert (multi.estimate_gas_unit_price, multi.estimate_max_gas_amount) == (None, None)

    @pytest.mark.parametrize("text", ["[]", "{", '{"payload": 1}', '{"self": 1}', '{"nonce": 7}', "\x00"])
    def test_a_file_without_a_request_is_refused(self, command, tmp_path, text):
        """The line names the fields that a file may have."""
        file = tmp_path / "request.json"
        file.write_text(text)
        line = line_of(command(*self.TRANSFER, "--request", str(file)), 2)
        assert "must be a JSON object" in line

    @pytest.mark.parametrize("rows", ["transactions", "changes", "events", "balance_changes"])
    def test_rows_go_to_a_file(self, command, tmp_path, rows):
        """The frame that is named, and the words or facts as ever."""
        place = tmp_path / "x.parquet"
        given = ("--out", str(place), *(() if rows == "transactions" else ("--frame", rows)))
        code, out, _ = command(*self.TRANSFER, *given)
        frame = toolkit.read_parquet(place)
        assert code == 0
        assert out.splitlines()[-1] == f"{plural(len(frame), 'row')} of {rows}: {place}"
        assert "would succeed" in out
        facts = json_of(command(*self.TRANSFER, *given, "--json"))
        assert facts["out"] == str(place)
        assert facts.get(rows, len(frame)) == len(frame)
        assert "owner" in frame.columns if rows == "balance_changes" else len(frame) > 0

    def test_rows_without_a_file_are_refused(self, command):
        """An option that would do nothing says what it needs."""
        assert "--frame requires --out" in line_of(command(*self.TRANSFER, "--frame", "events"), 2)

    def test_an_unknown_function_exits_2(self, command):
        """It is found by the ABI, before the node is asked; the text has what there is."""
        line = line_of(command("simulate", "0x1::nothing::here", "--sender", "0xa11ce"), 2)
        assert "the module 0x1::nothing does not exist" in line

    @pytest.mark.parametrize(
        "arguments",
        [
            ("simulate", "nonsense", "--sender", "0xa11ce"),
            ("simulate", "0x1::aptos_account::transfer", "0xb0b", "many", "--sender", "0xa11ce"),
            ("simulate", "0x1::aptos_account::transfer", "0xb0b", "--sender", "0xa11ce"),
            ("simulate", "0x1::aptos_account::transfer", "0xb0b", "1", "--sender", "alice"),
            ("simulate", "0x1::aptos_account::transfer", "0xb0b", "1"),
            ("simulate", "0x1::aptos_account::transfer", "0xb0b", "1.5", "--sender", "0xa11ce"),
        ],
        ids=["function", "amount", "too few", "sender", "no sender", "fraction"],
    )
    def test_what_does_not_fit_exits_2(self, command, arguments):
        """One line each, before the node has to judge."""
        line_of(command(*arguments), 2)


class TestProbe:
    """probe"""

    def test_facts_are_printed(self, command, url, ledger):
        """Head, oldest readable version, gas, and what is offered."""
        facts = json_of(command("probe", url, "--json", node=None))
        assert (facts["head"], facts["oldest_readable"], facts["chain_id"]) == (ledger.head, 0, 4)
        assert (facts["gas_header"], facts["gas_stable"]) == (True, True)
        assert facts["does_not_offer"] == ["raw state values"]
        assert "block by version" in facts["offers"]
        code, out, _ = command("probe", url, node=None)
        assert code == 0
        assert {line.split()[0] for line in out.splitlines()} == set(facts) - {"format"}

    def test_a_dead_node_exits_4(self, command):
        """One line that names it."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            where = f"http://127.0.0.1:{free.getsockname()[1]}"
        assert where in line_of(command("probe", where, node=None), 4)


def test_a_clipped_plan_is_a_note(command):
    """Pruned versions are left out, in one line on stderr; the rows are those held."""
    history = embedded.Ledger.with_history(seed=7, versions=400, window=100, cache=True)
    with embedded.serve(history, port=0) as where:
        code, out, err = command(*SIZE, "--versions", "0:-1/10", "--json", node=where)
    assert code == 0
    assert err.startswith("ledger-toolkit: note: ")
    assert len(err.splitlines()) == 1
    assert min(row["ledger_version"] for row in json.loads(out)["rows"]) == history.oldest_version


def test_an_embedded_node_replays_no_version(command):
    """Whatever the version is, and no other version is named."""
    code, _, told = command("replay", "embedded", "5000", node=None)
    assert (code, command("replay", "embedded", "99999", node=None)) == (2, (2, "", told))
