"""The three operations over a node in memory: what goes on the wire, and what comes back."""

from __future__ import annotations

import pytest

from tests.unit.client.fakes import (
    TIME,
    URL,
    FakeNode,
    answer,
    function,
    info,
    ledger,
    module,
    refused,
    struct,
    user_transaction,
)
from toolkit.client._http import Answer
from toolkit.client._node import Node
from toolkit.errors import InputError, NotAtPast, NotFound, SchemaError, VersionPruned
from toolkit.wire import EntryFunction, Script, SimulationRequest, ViewFunction
from toolkit.wire._headers import ledger_headers

HANDLE = "0x" + "0" * 61 + "abc"
BOB = "0x" + "b0b".zfill(64)
TABLE = f"POST /tables/{HANDLE}/item"
M = module(
    "m",
    functions=[
        function("supply", [], ["u128"], generic_type_params=[{}]),
        function("pair", ["address", "u64"], ["u64", "0x1::m::Purse"]),
        function("pay", ["&signer", "address", "u64"], is_entry=True, is_view=False),
        function("quiet", [], []),
    ],
    structs=[struct("Purse", {"total": "u128"})],
)
M_PATH = "GET /accounts/0x1/module/m"
U128 = 2**128 - 1


def node_with(routes=None, *, head=None, modules=True, **options):
    """Return a node and its transport, which offers the module ``0x1::m`` unless told otherwise."""
    fake = FakeNode(head=head)
    if modules:
        fake.routes[M_PATH] = lambda *_: answer(M, head=fake.head)
    fake.routes |= routes or {}
    return Node(URL, transport=fake, **options), fake


class TestView:
    """node.view"""

    def test_the_body_is_the_documented_one(self):
        """Function, type arguments and arguments in their wire forms, pinned by the query."""
        node, fake = node_with({"POST /view": answer(["7", {"total": "1"}])})
        node.view("0x01::m::pair", arguments=["0x0B0B", 100], ledger_version=50)
        assert fake.sent("POST /view") == [
            ({"ledger_version": "50"}, {"function": "0x1::m::pair", "type_arguments": [], "arguments": [BOB, "100"]})
        ]

    def test_type_arguments_are_spelled_as_the_wire_does(self):
        """Addresses inside types lose their leading zeros, spaces are the node's."""
        node, fake = node_with({"POST /view": answer(["7"])})
        node.view("0x1::m::supply", type_arguments=["0x0001::coin::Coin<0x02::a::B,u8>"])
        assert fake.sent("POST /view")[0][1]["type_arguments"] == ["0x1::coin::Coin<0x2::a::B, u8>"]

    def test_values_are_typed_by_the_abi(self):
        """u64 and u128 come as exact ints, structs as dicts, with their Move types."""
        node, _ = node_with({"POST /view": answer(["18446744073709551615", {"total": str(U128)}], gas=12)})
        result = node.view("0x1::m::pair", arguments=["0x1", 1], ledger_version=50)
        assert result.values == result.value == (2**64 - 1, {"total": U128})
        assert result.types == ("u64", "0x1::m::Purse")
        assert result.typing == "abi"
        assert result.gas_used == 12
        assert result.ledger_version == 50
        assert result.ledger == ledger()

    def test_one_value_is_the_value(self):
        """A function with one return value gives it itself, and its raw text without the array."""
        node, _ = node_with({"POST /view": answer(["5"])})
        result = node.view("0x1::m::supply", type_arguments=["u8"], ledger_version=50)
        assert (result.value, result.values, result.raw) == (5, (5,), '"5"')

    def test_the_head_is_read_without_a_query(self):
        """Without a version the node reads its head, and the answer's headers say which that was."""
        moved = ledger(1_234)
        node, fake = node_with(
            {"POST /view": lambda *_: answer(["5"], head=moved), M_PATH: lambda *_: answer(M, head=moved)}
        )
        result = node.view("0x1::m::supply", type_arguments=["u8"])
        assert fake.sent("POST /view")[0][0] == {}
        assert result.ledger_version == 1_234
        assert result.ledger == moved

    def test_the_abi_is_that_of_the_version_read(self):
        """Before the upgrade the function returned u64, after it u8: each answer is read by its own ABI."""
        old = module("m", functions=[function("f", [], ["u64"])])
        new = module("m", functions=[function("f", [], ["u8"])], code="0x02")
        node, _ = node_with(
            {
                M_PATH: lambda query, _: answer(old if int(query["ledger_version"]) < 100 else new),
                "POST /view": lambda query, _: answer(["5"] if int(query["ledger_version"]) < 100 else [5]),
            }
        )
        assert node.view("0x1::m::f", ledger_version=99).types == ("u64",)
        assert node.view("0x1::m::f", ledger_version=100).types == ("u8",)

    def test_an_upgrade_between_asking_and_reading_is_seen(self):
        """The head moved past an upgrade while the call was on its way: the answer is read by the new ABI."""
        old = module("m", functions=[function("f", [], ["u64"])])
        new = module("m", functions=[function("f", [], ["u8"])], code="0x02")
        moved = ledger(1_001)
        node, _ = node_with(
            {
                M_PATH: lambda query, _: answer(old if int(query["ledger_version"]) <= 1_000 else new),
                "POST /view": answer([5], head=moved),
            }
        )
        result = node.view("0x1::m::f")
        assert (result.value, result.types, result.ledger_version) == (5, ("u8",), 1_001)

    @pytest.mark.parametrize(
        "refusal", [refused(403, "api_disabled"), refused(404, "web_framework_error"), Answer(404, {}, b"<html>")]
    )
    def test_a_node_without_modules_gives_inferred_values(self, refusal):
        """Arguments go as given and values come as JSON has them, said so; modules are not asked for again."""
        node, fake = node_with({"POST /view": answer(["7", {"a": 1}]), M_PATH: refusal})
        for _ in range(2):
            result = node.view("0x1::m::pair", arguments=["0x1", 2**40], ledger_version=50)
        assert result.values == ("7", {"a": 1})
        assert result.types == ()
        assert result.typing == "inferred"
        assert fake.sent("POST /view")[0][1]["arguments"] == ["0x1", str(2**40)]
        assert len(fake.sent(M_PATH)) == 1

    def test_a_module_that_is_not_there_does_not_end_typing(self):
        """A missing module is absence, not a node without modules: the next module is still asked for."""
        node, fake = node_with({"POST /view": answer(["7"])})
        node.view("0x1::absent::f", ledger_version=50)
        assert node.view("0x1::m::supply", type_arguments=["u8"], ledger_version=50).typing == "abi"
        assert fake.sent("GET /accounts/0x1/module/absent")

    def test_a_version_that_is_not_there_is_not_an_absent_module(self):
        """A 404 for the version is raised for every kind of read."""
        node, _ = node_with({M_PATH: refused(404, "version_not_found", head=ledger())})
        with pytest.raises(NotFound, match="head is version 1,000"):
            node.view("0x1::m::supply", type_arguments=["u8"], ledger_version=5_000)

    def test_arguments_that_do_not_fit_are_refused_before_the_call(self):
        """The ABI catches them; the view is not sent."""
        node, fake = node_with({"POST /view": answer(["7"])})
        with pytest.raises(InputError, match="expected 2 arguments"):
            node.view("0x1::m::pair", arguments=["0x1"], ledger_version=50)
        assert fake.sent("POST /view") == []

    def test_a_pruned_module_names_the_view(self):
        """The look-up of the module comes first; its refusal is that of the view."""
        gone = refused(410, "version_pruned", "gone", head=ledger(oldest=400))
        node, fake = node_with({"GET /accounts/0x1/module/m": gone})
        with pytest.raises(VersionPruned) as caught:
            node.view("0x1::m::supply", type_arguments=["u8"], ledger_version=3)
        assert str(caught.value).startswith("view 0x1::m::supply: module 0x1::m at version 3: ")
        assert (caught.value.status, caught.value.ledger.oldest_version) == (410, 400)
        assert fake.sent("POST /view") == []

    @pytest.mark.parametrize(
        ("body", "words"),
        [
            *((body, "0x1::m::supply") for body in (b"", b"{", b"\xff", b'{"a": 1}', b'"5"')),
            *(
                (body, f"expected 1 return value .*, but the response has {n}")
                for n, body in ((0, b"[]"), (2, b'["1", "2"]'))
            ),
            *(
                (b"[%b]" % value, "0x1::m::supply return value 0")
                for value in (b"5", b'"-1"', b'"%d"' % 2**128, b'"1.0"', b"1.0", b"null", b'""', b'"0x5"')
            ),
        ],
    )
    def test_an_answer_that_does_not_fit_is_a_schema_error(self, body, words):
        """No array, another number of values than the ABI says, or no u128: nothing is rounded or guessed."""
        node, _ = node_with({"POST /view": Answer(200, ledger_headers(ledger()), body)})
        with pytest.raises(SchemaError, match=words):
            node.view("0x1::m::supply", type_arguments=["u8"], ledger_version=50)

    def test_a_whole_call_takes_no_further_arguments(self):
        """A ViewFunction is complete."""
        node, _ = node_with({"POST /view": answer(["5"])})
        call = ViewFunction("0x1::m::supply", type_arguments=["u8"])
        assert node.view(call, ledger_version=50).value == 5
        with pytest.raises(InputError, match="ViewFunction"):
            node.view(call, arguments=[1])

    def test_a_result_as_a_frame(self):
        """One row, one typed column per return value."""
        node, _ = node_with({"POST /view": answer(["7", {"total": str(U128)}], gas=12)})
        frame = node.view("0x1::m::pair", arguments=["0x1", 1], ledger_version=50).to_frame(flatten=True)
        assert frame["value_0"].tolist() == [7]
        assert frame["value_1.total"].tolist() in ([U128], [str(U128)])
        assert frame["ledger_version"].tolist() == [50]
        assert frame["head_version"].tolist() == [1_000]


class TestTableItem:
    """node.table_item"""

    def test_body_and_path_are_the_documented_ones(self):
        """Key and types in their wire forms; the handle with all its digits."""
        node, fake = node_with({TABLE: answer({"total": str(U128)})})
        item = node.table_item("0xabc", key=5, key_type="u64", value_type="0x01::m::Purse", ledger_version=50)
        assert fake.sent(TABLE) == [
            ({"ledger_version": "50"}, {"key_type": "u64", "value_type": "0x1::m::Purse", "key": "5"})
        ]
        assert item.value == {"total": U128}
        assert (item.handle, item.key, item.ledger_version, item.ledger) == (HANDLE, 5, 50, ledger())

    def test_a_string_key_goes_as_text(self):
        """The most common key of a registry."""
        node, fake = node_with({TABLE: answer(True)})
        assert node.table_item(HANDLE, key="alice", key_type="0x1::string::String", value_type="bool").value is True
        assert fake.sent(TABLE) == [({}, {"key_type": "0x1::string::String", "value_type": "bool", "key": "alice"})]

    def test_the_head_is_the_version_of_the_answer(self):
        """Without a version the answer's headers say which was read."""
        node, _ = node_with({TABLE: answer("5", head=ledger(1_234)), M_PATH: answer(M)})
        item = node.table_item(HANDLE, key=5, key_type="u64", value_type="u64")
        assert (item.ledger_version, item.ledger) == (1_234, ledger(1_234))

    def test_a_missing_item_is_not_found(self):
        """404 becomes NotFound, with a hint at the key type."""
        node, _ = node_with({TABLE: refused(404, "table_item_not_found")})
        with pytest.raises(NotFound, match="key type") as caught:
            node.table_item(HANDLE, key=5, key_type="u64", value_type="u64", ledger_version=50)
        assert caught.value.error_code == "table_item_not_found"

    def test_a_key_that_does_not_fit_is_refused_before_the_call(self):
        """The key type tells what a key is."""
        node, fake = node_with({TABLE: answer("5")})
        with pytest.raises(InputError, match="table key"):
            node.table_item(HANDLE, key=256, key_type="u8", value_type="u64", ledger_version=50)
        assert fake.sent(TABLE) == []

    def test_a_value_that_does_not_fit_is_a_schema_error(self):
        """A number where a u64 string belongs is refused."""
        node, _ = node_with({TABLE: answer(5)})
        with pytest.raises(SchemaError, match="table item"):
            node.table_item(HANDLE, key=5, key_type="u8", value_type="u64", ledger_version=50)

    def test_without_modules_a_struct_stays_as_it_came(self):
        """An unknown struct is given as JSON has it, digits as text."""
        node, _ = node_with({TABLE: answer({"total": "1"}), M_PATH: refused(403, "api_disabled")})
        item = node.table_item(HANDLE, key=5, key_type="u64", value_type="0x1::m::Purse", ledger_version=50)
        assert item.value == {"total": "1"}


class TestSimulate:
    """node.simulate"""

    WHERE = "POST /transactions/simulate"
    ACCOUNT = "GET /accounts/0xa11ce"

    def routes(self, **more):
        account = {"sequence_number": "7", "authentication_key": "0x" + "0" * 64}
        return {self.ACCOUNT: answer(account), self.WHERE: answer([user_transaction()], gas=9)} | more

    def test_body_and_query_are_the_documented_ones(self):
        """Sender alone is enough: the rest is filled from the node, and the node is asked for its estimates."""
        node, fake = node_with(self.routes())
        node.simulate(EntryFunction("0x1::m::pay", arguments=["0xB0B", 100]), sender="0xa11ce")
        ((query, body),) = fake.sent(self.WHERE)
        assert query == {"estimate_max_gas_amount": "true", "estimate_gas_unit_price": "true"}
        assert list(body) == [
            "sender",
            "sequence_number",
            "max_gas_amount",
            "gas_unit_price",
            "expiration_timestamp_secs",
            "payload",
            "signature",
        ]
        assert body["sequence_number"] == "7"
        assert body["expiration_timestamp_secs"] == str(int(TIME.timestamp()) + 600)
        assert body["payload"] == {
            "type": "entry_function_payload",
            "function": "0x1::m::pay",
            "type_arguments": [],
            "arguments": [BOB, "100"],
        }
        assert body["signature"] == {"type": "no_account_signature"}
        assert int(body["sender"], 16) == 0xA11CE

    def test_an_orderless_transaction_expires_within_a_minute(self):
        """With a nonce the expiration is 50 s after the ledger's time, since nodes accept at most 60 s."""
        node, fake = node_with(self.routes())
        payload = EntryFunction("0x1::m::pay", arguments=["0xB0B", 100])
        node.simulate(payload, sender="0xa11ce", replay_protection_nonce=7)
        ((_, body),) = fake.sent(self.WHERE)
        assert body["expiration_timestamp_secs"] == str(int(TIME.timestamp()) + 50)

    def test_what_is_given_is_sent_and_not_estimated(self):
        """Own numbers go on the wire as they are, without asking account or estimates."""
        node, fake = node_with(self.routes())
        node.simulate(
            EntryFunction("0x1::m::pay", arguments=["0xb0b", 100]),
            sender="0xa11ce",
            sequence_number=3,
            max_gas_amount=50,
            gas_unit_price=150,
            expiration_timestamp_secs=99,
        )
        ((query, body),) = fake.sent(self.WHERE)
        assert query == {}
        numbers = ("sequence_number", "max_gas_amount", "gas_unit_price", "expiration_timestamp_secs")
        assert [body[name] for name in numbers] == ["3", "50", "150", "99"]
        assert fake.sent(self.ACCOUNT) == []

    def test_the_senders_max_gas_is_not_estimated_where_another_pays(self):
        """The estimate is made from the sender's balance, so with a fee payer it is left out."""
        node, fake = node_with(self.routes())
        node.simulate(EntryFunction("0x1::m::pay", arguments=["0xb0b", 100]), sender="0xa11ce", fee_payer="0xfee")
        ((query, body),) = fake.sent(self.WHERE)
        assert query == {"estimate_gas_unit_price": "true"}
        assert body["signature"]["type"] == "fee_payer_signature"

    def test_an_account_that_is_not_there_starts_at_zero(self):
        """A sender without an account has sequence number 0."""
        node, fake = node_with(self.routes(**{self.ACCOUNT: refused(404, "account_not_found")}))
        node.simulate(EntryFunction("0x1::m::pay", arguments=["0xb0b", 100]), sender="0xa11ce")
        assert fake.sent(self.WHERE)[0][1]["sequence_number"] == "0"

    def test_an_orderless_transaction_asks_for_no_sequence_number(self):
        """With a nonce the node ignores the sequence number; it is sent all the same, as 0."""
        node, fake = node_with(self.routes())
        node.simulate(
            EntryFunction("0x1::m::pay", arguments=["0xb0b", 100]), sender="0xa11ce", replay_protection_nonce=5
        )
        body = fake.sent(self.WHERE)[0][1]
        assert (body["sequence_number"], body["replay_protection_nonce"]) == ("0", "5")
        assert fake.sent(self.ACCOUNT) == []

    def test_arguments_that_do_not_fit_are_refused_before_the_call(self):
        """Signers are not among the arguments a caller writes."""
        node, fake = node_with(self.routes())
        with pytest.raises(InputError, match=r"\b2\b.*\(address, u64\).*\b1$"):
            node.simulate(EntryFunction("0x1::m::pay", arguments=[100]), sender="0xa11ce")
        assert fake.sent(self.WHERE) == []

    def test_a_script_is_sent_as_it_is(self):
        """Nodes do not serve an ABI for a script's arguments."""
        node, fake = node_with(self.routes())
        node.simulate(Script(b"\xa1\x1c", arguments=["5"]), sender="0xa11ce")
        assert fake.sent(self.WHERE)[0][1]["payload"]["code"]["bytecode"] == "0xa11c"

    def test_the_outcome_is_read(self):
        """Success, gas with its split, the version it ran on, and what the sender could afford."""
        node, _ = node_with(self.routes())
        sim = node.simulate(EntryFunction("0x1::m::pay", arguments=["0xb0b", 100]), sender="0xa11ce")
        assert (sim.success, sim.vm_status, sim.gas_used) == (True, "Executed successfully", 9)
        assert (sim.gas.total_charge_gas_units, sim.gas.gas_unit_price, sim.gas.fee_octas) == (9, 100, 900)
        assert (sim.ledger_version, sim.ledger, sim.affordable_max_gas) == (1_000, ledger(), 200)

    def test_max_gas_that_was_given_is_not_called_affordable(self):
        """Only what the node filled in tells what the sender can afford."""
        node, _ = node_with(self.routes())
        sim = node.simulate(EntryFunction("0x1::m::pay", arguments=["0xb0b", 1]), sender="0xa11ce", max_gas_amount=200)
        assert sim.affordable_max_gas is None

    def test_a_simulation_that_was_discarded_has_no_split(self):
        """Without a FeeStatement nothing is made up."""
        gone = user_transaction(gas=0, events=[], changes=[], success=False, vm_status="SEQUENCE_NUMBER_TOO_OLD")
        node, _ = node_with(self.routes(**{self.WHERE: answer([gone])}))
        sim = node.simulate(EntryFunction("0x1::m::pay", arguments=["0xb0b", 100]), sender="0xa11ce")
        assert sim.gas is None
        assert (len(sim.changes), len(sim.events), len(sim.transactions)) == (0, 0, 1)

    def test_resources_and_events_are_typed(self):
        """Writes of a resource as one typed row each, numbers exact; types are compared by value."""
        node, _ = node_with(self.routes())
        sim = node.simulate(EntryFunction("0x1::m::pay", arguments=["0xb0b", 100]), sender="0xa11ce")
        purse = sim.resources("0x0001::m::Purse")
        assert purse["total"].tolist() == [U128]
        assert str(purse["total"].dtype) == "u128"
        assert len(sim.resources("0x1::m::Other")) == 0
        fees = sim.events_of("0x1::transaction_fee::FeeStatement")
        assert fees["io_gas_units"].tolist() in ([3], ["3"])

    @pytest.mark.parametrize(
        ("tag", "meant"),
        [
            ("0x1::m::Purze", "0x1::m::Purse"),
            ("0x1::m::Purse<u8>", "0x1::m::Purse"),
            ("0x1::n::Purse", "0x1::m::Purse"),
        ],
    )
    def test_an_empty_frame_says_what_may_have_been_meant(self, tag, meant):
        """Type arguments too many, another module, a slip: the types that were written are named."""
        node, _ = node_with(self.routes())
        sim = node.simulate(EntryFunction("0x1::m::pay", arguments=["0xb0b", 100]), sender="0xa11ce")
        with pytest.warns(UserWarning, match=f"has no {tag}; did you mean .*{meant}"):
            assert len(sim.resources(tag)) == 0
        with pytest.warns(UserWarning, match="did you mean 0x1::transaction_fee::FeeStatement"):
            assert len(sim.events_of("0x1::transaction_fee::FeeStatment")) == 0

    @pytest.mark.parametrize("count", [0, 2])
    def test_an_answer_without_exactly_one_transaction_is_a_schema_error(self, count):
        """A simulation answers one transaction."""
        node, _ = node_with(self.routes(**{self.WHERE: answer([user_transaction()] * count)}))
        with pytest.raises(SchemaError, match=rf"\b{count}\b"):
            node.simulate(EntryFunction("0x1::m::pay", arguments=["0xb0b", 100]), sender="0xa11ce")

    def test_a_sender_is_needed(self):
        """Without a sender there is nothing to simulate; a whole request has its own."""
        node, _ = node_with(self.routes())
        call = EntryFunction("0x1::m::pay", arguments=["0xb0b", 100])
        with pytest.raises(InputError, match="simulate needs sender="):
            node.simulate(call)
        with pytest.raises(InputError, match="put the options into the request"):
            node.simulate(SimulationRequest(call, sender="0x1"), sender="0x2")

    def test_the_past_cannot_be_simulated(self):
        """A snapshot refuses, and names the other roads; nothing is sent."""
        node, fake = node_with(self.routes())
        with pytest.raises(NotAtPast, match=r"not at version 30.*fetch_views.*fetch_transactions"):
            node.at(30).simulate(EntryFunction("0x1::m::pay", arguments=["0xb0b", 100]), sender="0xa11ce")
        assert fake.asked == []


class TestBcs:
    """The same calls with encoding="bcs": other bytes, equal values."""

    MEDIA = "application/x-bcs"

    @staticmethod
    def binary(body, gas=None):
        return Answer(200, ledger_headers(ledger(), gas_used=gas), body)

    def test_a_view_goes_and_comes_as_bcs(self):
        """Module, function, types and arguments in their documented layout; the answer is a count and the values."""
        body = bytes([2]) + (2**64 - 1).to_bytes(8, "little") + U128.to_bytes(16, "little") + b"\x01"
        wide = module(
            "m",
            functions=[function("pair", ["address", "u64"], ["u64", "0x1::m::Purse"])],
            structs=[struct("Purse", {"total": "u128", "open": "bool"})],
        )
        node, fake = node_with({"POST /view": self.binary(body, gas=12), M_PATH: answer(wide)}, encoding="bcs")
        result = node.view("0x1::m::pair", arguments=["0xb0b", 100], ledger_version=50)
        assert result.values == (2**64 - 1, {"total": U128, "open": True})
        assert (result.gas_used, result.types, result.ledger_version) == (12, ("u64", "0x1::m::Purse"), 50)
        ((query, sent),) = fake.sent("POST /view")
        assert query == {"ledger_version": "50"}
        one, bob = (1).to_bytes(32, "big"), bytes.fromhex(BOB[2:])
        amount = (100).to_bytes(8, "little")
        assert sent == one + b"\x01m" + b"\x04pair" + b"\x00" + b"\x02" + b"\x20" + bob + b"\x08" + amount
        assert fake.accepted[-1] == self.MEDIA

    def test_raw_is_the_same_text_either_way(self):
        """What digests are made of does not depend on the encoding."""
        json_node, _ = node_with({"POST /view": answer([str(U128)])})
        bcs_node, _ = node_with({"POST /view": self.binary(b"\x01" + b"\xff" * 16)}, encoding="bcs")
        one, two = (
            node.view("0x1::m::supply", type_arguments=["u8"], ledger_version=50) for node in (json_node, bcs_node)
        )
        assert (one.value, one.raw) == (two.value, two.raw)

    def test_where_types_are_not_known_json_stands_in(self):
        """BCS cannot be read without a layout: the call goes as JSON."""
        routes = {"POST /view": answer(["7"]), M_PATH: refused(403, "api_disabled")}
        node, fake = node_with(routes, encoding="bcs")
        assert node.view("0x1::m::supply", type_arguments=["u8"], ledger_version=50).value == "7"
        assert fake.accepted[-1] == "application/json"

    @pytest.mark.parametrize("body", [b"", b"\x01", b"\x02" + b"\0" * 32, b"\x01" + b"\0" * 17])
    def test_bcs_that_does_not_fit_is_a_schema_error(self, body):
        """Too short, too long, another count: refused by the function's name."""
        node, _ = node_with({"POST /view": self.binary(body)}, encoding="bcs")
        with pytest.raises(SchemaError, match="0x1::m::supply"):
            node.view("0x1::m::supply", type_arguments=["u8"], ledger_version=50)

    def test_a_table_item_comes_as_bcs(self):
        """The request is JSON, the answer the stored bytes; a type that is not known comes as JSON."""
        node, fake = node_with({TABLE: self.binary(U128.to_bytes(16, "little"))}, encoding="bcs")
        item = node.table_item(HANDLE, key="alice", key_type="0x1::string::String", value_type="0x1::m::Purse")
        assert item.value == {"total": U128}
        assert fake.accepted[-1] == self.MEDIA
        assert fake.sent(TABLE)[0][1]["key"] == "alice"
        fake.routes[TABLE] = answer({"x": "1"})
        assert node.table_item(HANDLE, key=1, key_type="u8", value_type="0x9::q::Q").value == {"x": "1"}
        assert fake.accepted[-1] == "application/json"


class TestNode:
    """Snapshots, companion reads and settings."""

    def test_a_snapshot_pins_every_read(self):
        """View, table item and resource all go with the snapshot's version."""
        where = "GET /accounts/0x1/resource/0x1%3A%3Am%3A%3APurse"
        node, fake = node_with(
            {
                "POST /view": answer(["5"]),
                TABLE: answer("5"),
                where: answer({"type": "0x1::m::Purse", "data": {"total": "3"}}),
            }
        )
        past = node.at(30)
        assert past.view("0x1::m::supply", type_arguments=["u8"]).ledger_version == 30
        assert past.table_item(HANDLE, key=5, key_type="u64", value_type="u64").ledger_version == 30
        assert past.resource("0x1", "0x1::m::Purse") == {"total": 3}
        asked = [query for place, query, _ in fake.asked if place != "GET "]
        assert asked
        assert {query["ledger_version"] for query in asked} == {"30"}

    def test_negative_versions_count_from_the_head(self):
        """-1 is the head; numbers before the first version are refused."""
        node, _ = node_with()
        assert node.at(-1).ledger_version == 1_000
        assert node.at(-1_001).ledger_version == 0
        with pytest.raises(InputError, match="below 0"):
            node.at(-1_002)

    def test_the_ledger_is_the_head(self):
        """node.ledger() is what GET /v1 says."""
        node, _ = node_with(head=ledger(77, oldest=5))
        assert node.ledger() == ledger(77, oldest=5)

    def test_node_info_that_is_not_the_documented_one_is_a_schema_error(self):
        """The error calls a web page a page and shows the node's URL; other JSON is not called a page."""
        node, _ = node_with({"GET ": Answer(200, {}, b"<html>welcome</html>")})
        with pytest.raises(SchemaError, match=rf"got an HTML page: 'welcome'; is {URL}"):
            node.ledger()
        node, _ = node_with({"GET ": answer({"chain_id": "x"})})
        with pytest.raises(SchemaError, match="GET /v1"):
            node.ledger()

    def test_info_keeps_the_build(self):
        """The node's build belongs to what observations record."""
        node, _ = node_with({"GET ": answer(info(ledger(), git_hash="f00"))})
        assert node.info().git_hash == "f00"


def test_bcs_stands_back_where_a_parameter_is_not_known():
    """Where a parameter's type is not known the call goes as JSON."""
    m = module("m", functions=[function("f", ["0x9::q::Q"], ["u64"])])
    fake = FakeNode({"POST /view": answer(["5"]), "GET /accounts/0x1/module/m": answer(m)})
    node = Node(URL, transport=fake, encoding="bcs")
    assert node.view("0x1::m::f", arguments=[{"a": 1}], ledger_version=5).value == 5
    assert fake.accepted[-1] == "application/json"


@pytest.mark.parametrize("key_type", ["0x1::string::String", "0x9::q::Q"])
def test_text_that_is_no_utf8_is_the_callers_mistake(key_type):
    """A lone surrogate is reported as text that cannot be sent."""
    with pytest.raises(InputError):
        Node(URL, transport=FakeNode()).table_item(
            HANDLE, key="\ud800", key_type=key_type, value_type="u8", ledger_version=5
        )
