"""What a simulation would do: before and after of the state, balances, plain words; hostile text stays text."""

from __future__ import annotations

import json

import pytest

import toolkit
from tests.unit.client.fakes import (
    FEE_STATEMENT,
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
from toolkit.client._http import Answer
from toolkit.client._node import Node
from toolkit.client._simulation import abort_parts
from toolkit.errors import Forbidden, NotFound, VersionPruned
from toolkit.frames._schema import DIFF
from toolkit.wire import EntryFunction
from toolkit.wire._aborts import ERROR_CATEGORIES, Abort

HANDLE = "0x" + "0" * 61 + "abc"
M = module("m", functions=[function("pay", ["&signer"], is_entry=True, is_view=False)])
PURSE = "GET /accounts/0xa11ce/resource/0x1%3A%3Am%3A%3APurse"
RAW = f"POST /tables/{HANDLE}/raw_item"
ROUTES = {
    "GET /accounts/0x1/module/m": answer(M),
    "GET /accounts/0xa11ce": answer({"sequence_number": "7", "authentication_key": "0x" + "0" * 64}),
}
COIN = "GET /accounts/0x1/resource/0x1%3A%3Acoin%3A%3ACoinInfo%3C0x1%3A%3Aaptos_coin%3A%3AAptosCoin%3E"


def coin_info(symbol: str, decimals: int) -> dict:
    """Return the route of the description of the gas coin."""
    about = {"name": "a coin", "symbol": symbol, "decimals": decimals}
    return {COIN: answer({"type": "0x1::coin::CoinInfo<0x1::aptos_coin::AptosCoin>", "data": about})}


COIN_INFO = coin_info("APT", 8)


def simulated(routes=None, **transaction):
    """Return a simulation whose transaction has these fields, and the fake behind it."""
    fake = FakeNode(
        ROUTES | {"POST /transactions/simulate": answer([user_transaction(**transaction)])} | (routes or {})
    )
    return Node(URL, transport=fake).simulate(EntryFunction("0x1::m::pay"), sender="0xa11ce"), fake


def resource(data, *, kind: str = "0x1::m::Purse", delete: bool = False) -> dict:
    """Return a change of a resource."""
    change = {"address": "0xa11ce", "state_key_hash": "0x01"}
    if delete:
        return change | {"type": "delete_resource", "resource": kind}
    return change | {"type": "write_resource", "data": {"type": kind, "data": data}}


def item(value: str | None) -> dict:
    """Return a change of a table item; None deletes it."""
    change = {"state_key_hash": "0x01", "handle": HANDLE, "key": "0x05616c696365", "data": None}
    if value is None:
        return change | {"type": "delete_table_item"}
    return change | {"type": "write_table_item", "value": value}


def raw(body: bytes) -> Answer:
    """Return an answer in BCS."""
    return Answer(200, dict(answer(0).headers) | {"Content-Type": "application/x-bcs"}, body)


def held(data) -> Answer:
    """Return what a resource was before."""
    return answer({"type": "0x1::m::Purse", "data": data})


@pytest.fixture(scope="module")
def node():
    """Return a client of an embedded node whose ledger does not move."""
    history = embedded.Ledger.with_history(seed=7, versions=300, cache=True)
    with embedded.serve(history, port=0) as url, toolkit.connect(url) as client:
        yield client


class TestDiff:
    """Before and after, at the simulation's own version."""

    def test_a_changed_resource_names_its_fields(self):
        """Before from the node, after from the write; equal fields are not named."""
        sim, fake = simulated(
            {PURSE: held({"total": "1", "open": True})}, changes=[resource({"total": "2", "open": True})]
        )
        (row,) = sim.diff().to_dict("records")
        assert json.loads(row["before"]) == {"total": "1", "open": True}
        assert json.loads(row["after"]) == {"total": "2", "open": True}
        assert list(row["fields_changed"]) == ["total"]
        assert fake.sent(PURSE)[0][0]["ledger_version"] == "1000"

    def test_both_sides_are_spelt_alike(self):
        """However the node spaces its JSON, equal state is equal text, digits and letters as they are."""
        data = {"total": str(2**256 - 1), "name": "Ü"}
        sim, _ = simulated({PURSE: held(data)}, changes=[resource(data)])
        (row,) = sim.diff().to_dict("records")
        assert row["before"] == row["after"] == f'{{"total":"{2**256 - 1}","name":"Ü"}}'
        assert list(row["fields_changed"]) == []

    def test_a_new_resource_has_no_before(self):
        """All its fields are changes."""
        gone = refused(404, "resource_not_found", head=ledger())
        sim, _ = simulated({PURSE: gone}, changes=[resource({"total": "2", "open": True})])
        frame = sim.diff()
        assert frame["before"].isna().tolist() == [True]
        assert list(frame["fields_changed"].iloc[0]) == ["total", "open"]

    def test_a_deleted_resource_has_no_after(self):
        """Its fields go."""
        sim, _ = simulated({PURSE: held({"total": "1"})}, changes=[resource(None, delete=True)])
        frame = sim.diff()
        assert frame["type"].tolist() == ["delete_resource"]
        assert frame["after"].isna().tolist() == [True]
        assert json.loads(frame["before"].iloc[0]) == {"total": "1"}
        assert list(frame["fields_changed"].iloc[0]) == ["total"]

    def test_fields_that_came_or_went_are_changes(self):
        """An upgrade that adds a field shows it."""
        sim, _ = simulated({PURSE: held({"a": "1", "b": "2"})}, changes=[resource({"a": "1", "c": "3"})])
        assert list(sim.diff()["fields_changed"].iloc[0]) == ["b", "c"]

    def test_integers_are_digits_throughout(self):
        """No float and no rounding on the way."""
        most = str(2**256 - 1)
        sim, _ = simulated({PURSE: held({"total": most})}, changes=[resource({"total": str(2**256 - 2)})])
        row = sim.diff().iloc[0]
        assert [json.loads(row[name]) for name in ("before", "after")] == [{"total": most}, {"total": str(2**256 - 2)}]

    @pytest.mark.parametrize(
        ("before", "after", "shown"),
        [
            (raw(b"\x01"), "0x02", ("0x01", "0x02")),
            (refused(404, "table_item_not_found", head=ledger()), "0x02", (None, "0x02")),
            (raw(b"\x01"), None, ("0x01", None)),
            (raw(b""), "0x", ("0x", "0x")),
        ],
        ids=["changed", "new", "deleted", "empty"],
    )
    def test_items_are_hex_of_their_bytes(self, before, after, shown):
        """New, changed and deleted; the key is bytes, the handle canonical."""
        sim, fake = simulated({RAW: before}, changes=[item(after)])
        row = sim.diff().iloc[0]
        told = tuple(None if row.isna()[name] else row[name] for name in ("before", "after"))
        assert told == shown
        assert (row["handle"], row["key"]) == (HANDLE, b"\x05alice")
        assert fake.sent(RAW) == [({"ledger_version": "1000"}, {"key": "0x05616c696365"})]

    def test_modules_have_no_row(self):
        """A change of code does not get a row."""
        code = {"type": "write_module", "address": "0x1", "state_key_hash": "0x01", "data": {"bytecode": "0x01"}}
        sim, _ = simulated(changes=[code])
        frame = sim.diff()
        assert len(frame) == 0
        assert list(frame.columns) == list(DIFF.names)

    @pytest.mark.parametrize(
        ("refusal", "error"),
        [
            (refused(410, "version_pruned", head=ledger(oldest=2_000)), VersionPruned),
            (refused(403, "forbidden"), Forbidden),
            (refused(404, "version_not_found", head=ledger()), NotFound),
        ],
    )
    def test_state_that_cannot_be_read_raises(self, refusal, error):
        """A node that pruned meanwhile, or does not offer the read: never a wrong before."""
        sim, _ = simulated({PURSE: refusal}, changes=[resource({"total": "2"})])
        with pytest.raises(error):
            sim.diff()


class TestExplain:
    """Plain words."""

    @pytest.mark.parametrize(("number", "words"), ERROR_CATEGORIES.items())
    def test_categories_of_abort_codes(self, number, words):
        """Bits 16 to 23 are the category, the lower 16 the reason."""
        told = abort_parts(
            Abort.find(f"Move abort in 0x1::coin: E_X({number << 16 | 7:#x}): The text of the contract.")
        )
        code = f"E_X, code {number << 16 | 7:#x}, category {number} ({words}), reason 7"
        assert told == ("The text of the contract", f"the code in 0x1::coin aborted: {code}")

    @pytest.mark.parametrize(
        ("status", "told"),
        [
            ("Move abort in 0x1::m: 0x5", "the code in 0x1::m aborted: code 0x5"),
            # 200,001 is a number of the module's own.
            ("Move abort in 0xcafe::m: 0x30d41", "the code in 0xcafe::m aborted: code 0x30d41"),
            (
                "Move abort in 0x1::table: 0x6507",
                "the code in 0x1::table aborted: code 0x6507, the table has no item with this key",
            ),
            (
                "Move abort in 0x1::table: 0x6407",
                "the code in 0x1::table aborted: code 0x6407, the table already has an item with this key",
            ),
            ("Move abort in 0x2::table: 0x6507", "the code in 0x2::table aborted: code 0x6507"),
            ("Move abort: code 0x10001", "the code aborted: code 0x10001, category 1 (invalid argument), reason 1"),
            ("Move abort in 0x1::m: 0xffffffffffffffff", "the code in 0x1::m aborted: code 0xffffffffffffffff"),
            ("Executed successfully", ""),
            ("Out of gas", ""),
            ("Execution failed in 0x1::m::f at code offset 3", ""),
            ("Move abort in", ""),
            ("", ""),
        ],
    )
    def test_other_statuses(self, status, told):
        """Codes without a category have none; other statuses are left alone."""
        assert abort_parts(Abort.find(status)) == (None, told)

    def test_a_success_says_cost_and_that_nothing_was_done(self):
        """Five facts in lines."""
        lines = simulated(COIN_INFO)[0].explain().splitlines()
        assert lines[0] == "0x1::m::pay from 0xa11ce would succeed."
        assert "9 gas units" in lines[1]
        assert "0.000009 APT" in lines[1]
        assert "State changes: 1 resource written." in lines[-2]
        assert lines[-1].endswith("Nothing was signed, submitted or stored.")

    def test_a_refund_above_the_cost_is_called_one(self):
        """More comes back than is paid."""
        fee = {
            "total_charge_gas_units": "9",
            "execution_gas_units": "5",
            "io_gas_units": "4",
            "storage_fee_octas": "0",
            "storage_fee_refund_octas": str(10**8 + 900 + 5),
        }
        event = {"guid": V2_EVENT, "sequence_number": "0", "type": FEE_STATEMENT, "data": fee}
        assert "(1.00000005 APT) net" in simulated(COIN_INFO, events=[event])[0].explain()

    @pytest.mark.parametrize(
        ("symbol", "decimals", "net"),
        [("GAS", 2, "900 octas (9 GAS) net"), ("MOVE", 8, "octas (0.000009 MOVE) net"), ("ZERO", 0, "(900 ZERO) net")],
    )
    def test_the_gas_coin_is_the_ledgers_own(self, symbol, decimals, net):
        """Symbol and decimals come from the coin's own description and are never assumed."""
        words = simulated(coin_info(symbol, decimals))[0].explain()
        assert net in words
        assert "APT" not in words

    def test_without_a_description_of_the_coin_amounts_are_octas(self):
        """Nothing is assumed about a coin that cannot be read."""
        words = simulated()[0].explain()
        assert "900 octas net" in words
        assert "APT" not in words

    @pytest.mark.parametrize(
        ("status", "advice"),
        [
            ("ACCOUNT_NOT_MULTISIG", "check the address"),
            ("NOT_MULTISIG_OWNER", "one of its owners"),
            ("MULTISIG_TRANSACTION_NOT_FOUND", "propose one first"),
            ("MULTISIG_TRANSACTION_INSUFFICIENT_APPROVALS", "approve it first"),
            ("MULTISIG_TRANSACTION_PAYLOAD_DOES_NOT_MATCH", "or leave it out"),
            ("MULTISIG_TRANSACTION_PAYLOAD_DOES_NOT_MATCH_HASH", "hash that the multisig account has stored"),
            ("GAS_PAYER_ACCOUNT_MISSING", "check fee_payer"),
            ("Transaction Executed and Committed with Error IO_LIMIT_REACHED", "does not help"),
        ],
    )
    def test_rules_of_multisig_accounts_have_a_why(self, status, advice):
        """As any other rule that a transaction breaks."""
        words = simulated(success=False, vm_status=status, gas=0, events=[], changes=[])[0].explain()
        (why,) = [line for line in words.splitlines() if line.startswith("Why: ")]
        assert advice in why

    @pytest.mark.parametrize(
        ("status", "given", "said", "never"),
        [
            ("Out of gas", {}, "balance of the sender", "raise max_gas_amount"),
            ("Out of gas", {"max_gas_amount": 5}, "raise max_gas_amount", "balance"),
            ("Out of gas", {"fee_payer": "0xfee"}, "balance of the fee payer", "raise max_gas_amount"),
            ("Out of gas", {"fee_payer": "0x0"}, "raise max_gas_amount", "balance"),
            ("INSUFFICIENT_BALANCE_FOR_TRANSACTION_FEE", {"max_gas_amount": 5}, "set a fee_payer", "another fee_payer"),
            (
                "INSUFFICIENT_BALANCE_FOR_TRANSACTION_FEE",
                {"fee_payer": "0xfee"},
                "another fee_payer",
                "set a fee_payer",
            ),
            ("MAX_GAS_UNITS_BELOW_MIN_TRANSACTION_GAS_UNITS", {}, "set a fee_payer", "another fee_payer"),
            (
                "MAX_GAS_UNITS_BELOW_MIN_TRANSACTION_GAS_UNITS",
                {"fee_payer": "0xfee"},
                "another fee_payer",
                "a fee_payer,",
            ),
            ("MAX_GAS_UNITS_BELOW_MIN_TRANSACTION_GAS_UNITS", {"max_gas_amount": 1}, "raise it", "balance"),
        ],
    )
    def test_advice_follows_from_who_pays(self, status, given, said, never):
        """A limit that follows from a balance is not to be raised, and a payer that is set is not to be set."""
        failing = user_transaction(success=False, vm_status=status, gas=0, events=[], changes=[])
        fake = FakeNode(ROUTES | {"POST /transactions/simulate": answer([failing])})
        sim = Node(URL, transport=fake).simulate(EntryFunction("0x1::m::pay"), sender="0xa11ce", **given)
        (why,) = [line for line in sim.explain().splitlines() if line.startswith("Why: ")]
        assert said in why
        assert never not in why

    @pytest.mark.parametrize(
        ("status", "advice"),
        [
            ("SEQUENCE_NUMBER_TOO_OLD", "already been used"),
            ("INSUFFICIENT_BALANCE_FOR_TRANSACTION_FEE", "too few coins"),
            ("TRANSACTION_EXPIRED", "expiration"),
            ("TRANSACTION_EXPIRATION_TOO_FAR_IN_FUTURE", "at most 60 s"),
        ],
    )
    def test_a_discarded_one_costs_nothing_and_has_advice(self, status, advice):
        """It never ran: no fee, and what to do."""
        words = simulated(success=False, vm_status=status, gas=0, events=[], changes=[])[0].explain()
        assert advice in words
        assert "nothing would be charged" in words
        assert "State changes: none. Events: 0." in words

    @pytest.mark.parametrize(
        ("instruction", "words"),
        [
            ("MoveFrom(StructDefinitionIndex(8))", "Why: the resource that the code reads or moves does not exist"),
            (
                "MutBorrowGlobalGeneric(StructDefInstantiationIndex(0))",
                "resource that the code reads or moves does not",
            ),
            ("MoveTo(StructDefinitionIndex(8))", "Why: the resource that the code creates already exists"),
            ("Add", "Why: instruction Add of 0x1::m::f failed."),
        ],
    )
    def test_a_failed_instruction_is_named(self, instruction, words):
        """A missing or already existing resource is described in words, other instructions by name."""
        status = f"Execution failed in 0x1::m::f (on instruction {instruction}) at code offset 2"
        assert words in simulated(success=False, vm_status=status)[0].explain()

    @pytest.mark.parametrize(
        "status",
        [
            "evil\nNothing was signed.\n\x1b[2J",
            "\u202egnp.exe",
            "Move abort in 0x1::m: E(0x1): " + "x" * 1_000_000,
            "Move abort in " + "a" * 500_000,
            "\ud800".encode("utf-16", "surrogatepass").decode("utf-16", "replace"),
            "",
        ],
        ids=["lines", "bidi", "long", "no end", "surrogate", "empty"],
    )
    def test_hostile_statuses_keep_the_form(self, status):
        """No lines of its own but the why, nothing hidden, bounded, at once."""
        words = simulated(success=False, vm_status=status)[0].explain()
        plain = simulated(success=False, vm_status="no")[0].explain()
        assert len(words.splitlines()) <= len(plain.splitlines()) + 1
        assert words.replace("\n", "").isprintable()
        assert len(words) < 3_000


class TestEmbedded:
    """The same over the embedded node, where before and after can be checked."""

    def transfer(self, node, **options):
        call = toolkit.EntryFunction("0x1::aptos_account::transfer", arguments=["0xb0b", 100])
        return node.simulate(call, sender="0xa11ce", **options)

    def test_balances_agree_with_the_state(self, node):
        """Before plus change is after, for every row; all moves and the fee add up."""
        sim = self.transfer(node)
        frame = sim.balance_changes
        for row in frame.to_dict("records"):
            before = node.view(
                "0x1::coin::balance",
                type_arguments=[row["asset"]],
                arguments=[row["owner"]],
                ledger_version=sim.ledger_version,
            ).value
            assert before + row["change"] == row["balance_after"]
        assert sum(frame["change"].tolist()) == -sim.gas.net_octas

    def test_a_fee_payer_pays_there_too(self, node):
        """The sender's change is the transfer alone."""
        frame = self.transfer(node, fee_payer="0xb0b").balance_changes.set_index("owner")
        changes = {owner[-5:]: int(change) for owner, change in frame["change"].items()}
        fee = {owner[-5:]: int(paid) for owner, paid in frame["fee_octas"].items()}
        assert changes["a11ce"] == -100
        assert changes["00b0b"] == 100 - fee["00b0b"]
        assert fee["a11ce"] == 0 < fee["00b0b"]

    def test_an_aborted_call_pays_and_moves_nothing(self, node):
        """Only the fee, and the abort in words."""
        sim = node.simulate(toolkit.EntryFunction("0xcafe::registry::register", arguments=["alice"]), sender="0xb0b")
        frame = sim.balance_changes
        assert (frame["deposited"].tolist(), frame["withdrawn"].tolist()) == ([0], [0])
        assert frame["change"].tolist() == [-sim.gas.net_octas]
        assert "category 8 (already exists)" in sim.explain()

    def test_before_of_a_diff_is_the_state_read_by_itself(self, node):
        """Every resource row's before is what `resource` reads; a new table item has none."""
        sim = node.simulate(toolkit.EntryFunction("0xcafe::registry::register", arguments=["zed"]), sender="0xb0b")
        frame = sim.diff()
        assert sim.success
        assert len(frame) == len(sim.changes)
        items = frame[frame["handle"].notna()]
        assert items["key"].tolist() == [b"\x03zed"]
        assert items["before"].isna().tolist() == [True]
        assert items["after"].str.startswith("0x").tolist() == [True]
        accounts = frame[frame["resource_type"] == "0x1::account::Account"]
        before, after = (json.loads(accounts[name].iloc[0])["sequence_number"] for name in ("before", "after"))
        assert int(after) == int(before) + 1
        assert list(accounts["fields_changed"].iloc[0]) == ["sequence_number"]

    def test_keys_of_a_simulation_are_found(self, node):
        """`table_keys` tells the key that the call would write."""
        sim = node.simulate(toolkit.EntryFunction("0xcafe::registry::register", arguments=["zed"]), sender="0xb0b")
        handle = node.view("0xcafe::registry::handle").value
        assert toolkit.table_keys(sim, handle, key_type="0x1::string::String")["key"].tolist() == ["zed"]

    def test_keys_of_the_history_are_those_of_the_table(self, node):
        """Keys written and not deleted last can be read at the head, and no others."""
        handle = node.view("0xcafe::registry::handle").value
        found = toolkit.table_keys(
            toolkit.fetch_transactions(node, versions="0:-1", progress=False), handle, key_type="0x1::string::String"
        )
        items = toolkit.fetch_table_items(
            node,
            handle,
            keys=found["key"].tolist(),
            key_type="0x1::string::String",
            value_type="0xcafe::registry::Record",
            progress=False,
        )
        assert items["error_code"].isna().tolist() == [not deleted for deleted in found["deleted"].tolist()]
        assert len(found) > 10


class TestOtherShapes:
    """What another chain shapes otherwise, and what cannot be read."""

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
        assert "would succeed" in simulated(events=events)[0]._repr_html_()

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
        assert "would succeed" in simulated(changes=changes)[0]._repr_html_()

    def test_a_long_status_does_not_push_out_the_reason(self):
        """An abort with a long description is still decoded, in words and in a notebook."""
        status = "Move abort in 0x1::m: E_TAKEN(0x80001): "
        told = simulated(success=False, vm_status=status + "very long words " * 40)[0].explain()
        page = simulated(success=False, vm_status=status + "The name is registered already")[0]._repr_html_()
        assert "category 8 (already exists)" in told
        assert "already exists" in page


class TestPayers:
    """The limit that is filled in follows from the balance of who pays."""

    CALL = toolkit.EntryFunction("0x1::aptos_account::transfer", ["0xb0b", 1])

    @pytest.fixture
    def ledger(self):
        made = embedded.Ledger()
        made.fund("0x9a4e1", 600_000)
        made.fund("0xfee", 10**10)
        made.fund("0xb0b", 1)
        return made

    @pytest.mark.parametrize(("payer", "limit"), [("0x9a4e1", 6_000), ("0xfee", 2_000_000), ("0x0", 2_000_000)])
    def test_a_sponsored_simulation_fits_the_payer(self, ledger, payer, limit):
        """A sender without coins succeeds; a payer with few gets a limit that it can pay."""
        ledger.fund("0x5e4d", 1)
        sim = toolkit.connect(ledger).simulate(
            self.CALL.replace(arguments=["0xb0b", 0]), sender="0x5e4d", fee_payer=payer
        )
        assert sim.success
        assert sim.transaction.max_gas_amount == limit
        assert sim.affordable_max_gas == (None if payer == "0x0" else limit)

    def test_a_batch_reads_each_payer_once(self, ledger):
        """The limits of a batch equal those of single simulations."""
        node = toolkit.connect(ledger)
        requests = [
            toolkit.SimulationRequest(self.CALL, sender="0xa11ce", fee_payer=payer, gas_unit_price=price)
            for payer in ("0x9a4e1", "0xfee")
            for price in (None, 150, 1_000)
        ]
        batch = toolkit.fetch_simulations(node, requests, progress=False)
        alone = [node.simulate(one).transaction.max_gas_amount for one in requests]
        assert batch.transactions["max_gas_amount"].tolist() == alone == [6_000, 4_000, 600, *[2_000_000] * 3]

    def test_the_payer_in_a_whole_signature_counts(self, ledger):
        """A signature that names a fee payer is not estimated by the sender's balance."""
        signature = toolkit.SimulationRequest(self.CALL, sender="0xa11ce", fee_payer="0x9a4e1").signature_to_send()
        request = toolkit.SimulationRequest(self.CALL, sender="0xa11ce", signature=signature)
        assert toolkit.connect(ledger).simulate(request).transaction.max_gas_amount == 6_000
