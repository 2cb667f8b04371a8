"""Behaviour that is promised and does not hold yet; each test moves to its file once it does."""

from __future__ import annotations

import csv
import io
import json
import sys
from itertools import count

import pandas as pd
import pytest

from tests.unit.client.fakes import (
    URL,
    V2_EVENT,
    FakeNode,
    answer,
    function,
    ledger,
    module,
    refused,
    user_transaction,
)
from toolkit import embedded
from toolkit.cli import main
from toolkit.cli.output import write_frame
from toolkit.client.fetch import fetch_views
from toolkit.client.node import Node
from toolkit.errors import InputError, NotFound
from toolkit.frames.balances import balance_frame
from toolkit.frames.keys import table_keys
from toolkit.wire.answers import decode_simulation, decode_transactions
from toolkit.wire.payloads import EntryFunction
from toolkit.wire.requests import ViewFunction

M = module(
    "m",
    functions=[
        function("count", [], ["u64"]),
        function("pay", ["&signer"], is_entry=True, is_view=False),
    ],
)
COUNT = ViewFunction("0x1::m::count")
FRAMEWORK = {
    "GET /accounts/0x1/module/m": answer(M),
    "GET /accounts/0xa11ce": answer({"sequence_number": "7", "authentication_key": "0x" + "0" * 64}),
}
CLOCK = module("timestamp", functions=[function("now_microseconds", [], ["u64"])])


def counting(query, _):
    return answer([query["ledger_version"]], gas=1)


def simulated(node_routes=None, **transaction):
    """Return a simulation whose transaction has these fields."""
    routes = FRAMEWORK | {"POST /transactions/simulate": answer([user_transaction(**transaction)])}
    fake = FakeNode(routes | (node_routes or {}))
    return Node(URL, transport=fake).simulate(EntryFunction("0x1::m::pay"), sender="0xa11ce")


class TestOffline:
    """A sweep learns a module by its ends; offline it must do for what lies between."""

    def kept(self, place):
        with Node(URL, transport=FakeNode(FRAMEWORK | {"POST /view": counting}), cache=place) as node:
            fetch_views(node, COUNT, versions="100:109", progress=False)

    def test_one_version_of_a_kept_sweep_is_answered(self, tmp_path):
        """Every row of a sweep can be read again by itself."""
        self.kept(tmp_path / "a.sqlite3")
        with Node(URL, transport=FakeNode(), cache=tmp_path / "a.sqlite3", offline=True) as node:
            assert [node.view(COUNT, ledger_version=version).value for version in (100, 105)] == [100, 105]

    def test_a_part_of_a_kept_sweep_is_answered(self, tmp_path):
        """Fewer versions than were kept are no miss."""
        self.kept(tmp_path / "a.sqlite3")
        with Node(URL, transport=FakeNode(), cache=tmp_path / "a.sqlite3", offline=True) as node:
            frame = fetch_views(node, COUNT, versions="103:106", progress=False)
        assert frame["error_code"].isna().all()
        assert frame["value"].tolist() == [103, 104, 105, 106]


class TestProbing:
    """A probe is about the node, so it must ask the node."""

    def test_gas_is_asked_for_each_time(self, tmp_path):
        """With answers kept, three reads of one version are still three requests."""
        numbers = count(4)
        head = ledger()
        routes = {
            "GET /accounts/0x1/module/timestamp": answer(CLOCK),
            "POST /view": lambda *_: answer(["1"], head=head, gas=next(numbers)),
        }
        with Node(URL, transport=FakeNode(routes), cache=tmp_path / "a.sqlite3") as node:
            assert node.probe().gas_stable is False

    def test_a_version_that_was_pruned_meanwhile_is_not_readable(self, tmp_path):
        """A kept answer says nothing about what the node still holds."""
        oldest = 0

        def view(query, _):
            if int(query["ledger_version"]) < oldest:
                return refused(410, "version_pruned", head=ledger())
            return answer(["1"], gas=1)

        routes = {"GET /accounts/0x1/module/timestamp": answer(CLOCK), "POST /view": view}
        with Node(URL, transport=FakeNode(routes), cache=tmp_path / "a.sqlite3") as node:
            assert node.probe().oldest_readable == 0
            oldest = 500
            assert node.probe().oldest_readable == 500

    def test_all_requests_are_counted(self):
        """What the probe says it took is what was sent."""
        routes = {"GET /accounts/0x1/module/timestamp": answer(CLOCK), "POST /view": answer(["1"], gas=1)}
        fake = FakeNode(routes)
        assert Node(URL, transport=fake).probe().requests == len(fake.asked)


class TestBalances:
    """One asset has one name, and every fee counts."""

    def test_a_coin_type_has_one_spelling(self):
        """Events spell a coin as the chain does, stores in canonical form: one row, with its balance."""
        owner, kind = "0xb0b", "0xbeef::usd::USD"
        deposit = {
            "guid": V2_EVENT,
            "sequence_number": "0",
            "type": "0x1::coin::CoinDeposit",
            "data": {"account": owner, "amount": "5", "coin_type": kind},
        }
        handle = {"counter": "1", "guid": {"id": {"addr": owner, "creation_num": "4"}}}
        old = {
            "guid": {"creation_number": "4", "account_address": owner},
            "sequence_number": "0",
            "type": "0x1::coin::DepositEvent",
            "data": {"amount": "2"},
        }
        data = {"coin": {"value": "7"}, "frozen": False, "deposit_events": handle, "withdraw_events": handle}
        store = {
            "address": owner,
            "state_key_hash": "0x01",
            "type": "write_resource",
            "data": {"type": f"0x1::coin::CoinStore<{kind}>", "data": data},
        }
        document = user_transaction(events=[deposit, old], changes=[store])
        (transaction,) = decode_simulation(json.dumps([document]).encode())
        rows = balance_frame(transaction).to_dict("records")
        held = [row for row in rows if row["owner"].endswith("b0b")]
        assert [(row["deposited"], row["balance_after"]) for row in held] == [(7, 7)]

    def test_a_transaction_from_before_fee_statements_paid_too(self):
        """Committed ones of 2022 have no such event: the fee is gas used times price."""
        document = user_transaction(
            type="user_transaction",
            events=[],
            state_change_hash="0x01",
            event_root_hash="0x01",
            accumulator_root_hash="0x01",
            state_checkpoint_hash=None,
        )
        (transaction,) = decode_transactions(json.dumps([document]).encode())
        assert balance_frame(transaction)["fee_octas"].tolist() == [900]

    @pytest.mark.parametrize(
        "data",
        [{}, {"amount": "many", "store": "0x1"}, {"amount": "1", "store": {}}, [], None, {"amount": None}],
        ids=["empty", "no digits", "store", "list", "null", "no amount"],
    )
    def test_an_event_of_another_shape_does_not_end_the_display(self, data):
        """A framework of another chain may shape its events otherwise; a notebook cell must still show the result."""
        events = [
            {"guid": V2_EVENT, "sequence_number": "0", "type": "0x1::fungible_asset::Deposit", "data": data},
        ]
        assert "would succeed" in simulated(events=events)._repr_html_()

    @pytest.mark.parametrize("data", [{}, {"coin": {"value": "1"}}, {"coin": None}])
    def test_a_store_of_another_shape_does_not_end_the_display(self, data):
        """The same for stores."""
        kind = "0x1::coin::CoinStore<0x1::aptos_coin::AptosCoin>"
        changes = [
            {
                "address": "0xa11ce",
                "state_key_hash": "0x01",
                "type": "write_resource",
                "data": {"type": kind, "data": data},
            }
        ]
        assert "would succeed" in simulated(changes=changes)._repr_html_()


class TestDiff:
    """What cannot be read is not what was not there."""

    @pytest.mark.parametrize("code", ["version_not_found", "web_framework_error"])
    def test_a_state_that_cannot_be_read_raises(self, code):
        """Only a resource that is missing has no before."""
        routes = {"GET /accounts/0xa11ce/resource/0x1%3A%3Am%3A%3APurse": refused(404, code, head=ledger())}
        with pytest.raises(NotFound):
            simulated(routes).diff()


class TestExplain:
    """The why is the point."""

    def test_a_long_status_does_not_push_out_the_reason(self):
        """An abort with a long description is still decoded."""
        status = f"Move abort in 0x1::m: E_TAKEN(0x80001): {'very long words ' * 40}"
        assert "category 8 (already exists)" in simulated(success=False, vm_status=status).explain()

    def test_the_page_has_the_reason_too(self):
        """A notebook shows what `explain` says, also where names are long."""
        status = "Move abort in 0x1::m: E_TAKEN(0x80001): The name is registered already by somebody else, so take one"
        assert "already exists" in simulated(success=False, vm_status=status)._repr_html_()


class TestKeys:
    """First and last are about versions, not about the order of rows."""

    def test_changes_in_another_order_give_the_same(self):
        """A frame sorted newest first tells the same keys."""
        handle = "0x" + "0" * 61 + "abc"
        changes = pd.DataFrame(
            {
                "version": pd.array([5, 9], dtype="uint64[pyarrow]"),
                "type": ["write_table_item", "delete_table_item"],
                "handle": [handle] * 2,
                "key": pd.Series([b"\x01a"] * 2, dtype=object),
            }
        )
        found = [table_keys(frame, handle).iloc[0].tolist() for frame in (changes, changes[::-1])]
        assert found[0] == found[1] == [b"\x01a", 5, 9, 2, True]


class TestCommandLine:
    """Files that are exact, and mistakes that cost nothing."""

    def written(self, frame, place):
        write_frame(frame, place)
        with place.open(encoding="utf-8", newline="") as file:
            return list(csv.reader(file))

    def test_an_empty_text_is_an_empty_cell(self, tmp_path):
        """Nothing starts like a formula there."""
        frame = pd.DataFrame({"a": pd.Series(["", "b"], dtype="str")})
        assert self.written(frame, tmp_path / "x.csv") == [["a"], [""], ["b"]]

    def test_large_negative_integers_are_numbers(self, tmp_path):
        """Digits beyond 2^53 stay digits, without an apostrophe."""
        frame = pd.DataFrame({"a": pd.array([-(2**100), -5, 2**100], dtype="i128")})
        assert self.written(frame, tmp_path / "x.csv") == [["a"], [str(-(2**100))], ["-5"], [str(2**100)]]

    def test_a_wrong_suffix_is_told_before_anything_is_asked(self, capsys):
        """Not after a sweep of hours: a dead node is not even noticed."""
        code = main(["view", "0x1::m::count", "--versions", "0:1", "--out", "x.xlsx", "--node", "http://127.0.0.1:9"])
        assert code == 2
        assert "name ends in" in capsys.readouterr().err

    def test_a_file_where_a_folder_has_to_be_is_one_error(self, tmp_path):
        """The clean-up does not fail in its turn."""
        (tmp_path / "file").write_text("")
        with pytest.raises(InputError, match="cannot be written"):
            write_frame(pd.DataFrame({"a": [1]}), tmp_path / "file" / "x.csv")

    def test_a_terminal_of_another_encoding_is_no_traceback(self, monkeypatch):
        """What it cannot show is spelt out; the command still goes well."""
        raw = io.BytesIO()
        with embedded.serve(embedded.Ledger(), port=0) as url:
            monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii", write_through=True))
            sender = "0x" + "ab" * 32
            code = main(["simulate", "0x1::aptos_account::transfer", "0xb0b", "1", "--sender", sender, "--node", url])
        assert code == 0
        assert b"0xababab" in raw.getvalue()
