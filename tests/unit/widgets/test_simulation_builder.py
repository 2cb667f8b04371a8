"""The simulation builder, by setting and reading its traits."""

from __future__ import annotations

import dataclasses
import json
import re
import socket
import threading

import msgspec
import pytest
from ipywidgets import Widget
from msgspec.structs import replace
from traitlets import TraitError

import toolkit
from tests.unit.widgets.conftest import executed, page
from toolkit.client._node import Node
from toolkit.widgets import SimulationBuilder
from toolkit.widgets._functions import ListedContract, matching
from toolkit.widgets._messages import NoProgram, Status
from toolkit.widgets._simulation_builder import reason_of
from toolkit.widgets._state import FAILS, OUTDATED, Noted

ALICE = "0x" + "a11ce".zfill(64)
TRANSFER = toolkit.EntryFunction("0x1::aptos_account::transfer", arguments=["0xb0b", 100])
REQUEST = toolkit.SimulationRequest(TRANSFER, sender=ALICE)


def shown(builder):
    """Return everything the browser shows as one text."""
    found = builder._findings
    words = [*found.errors.values(), *found.notes.values(), builder._status.text]
    words += found.missing.values() if found.strict else []
    stale = ["Out of date"] if builder._stale else []
    return "\n".join(
        [*words, *stale, *(one.html for one in builder._pages), *(str(text) for _, text in builder._programs)]
    )


def press(builder, what, **more):
    """Do what a button of the browser does, and wait for the end."""
    tell(builder, what, **more)
    builder._wait()


def tell(builder, what, **more):
    """Send a message as the browser does."""
    builder._handle_msg({"content": {"data": {"method": "custom", "content": {"do": what} | more}}, "buffers": []})


def type_in(builder, **changes):
    """Edit the draft as the browser does."""
    draft = msgspec.to_builtins(builder._draft) | {"seq": builder._draft.seq + 1} | changes
    draft["lead"] = "raw" if "raw" in changes else "fields" if "arguments" in changes else draft["lead"]
    builder._handle_msg({"content": {"data": {"method": "update", "state": {"_draft": draft}}}, "buffers": []})


def test_nothing_is_asked_before_a_button_is_pressed(memory, builder):
    """Neither making the form nor filling it asks the node anything."""
    builder.sender, builder.function = "0xa11ce", "0x1::aptos_account::transfer"
    builder.arguments = "[1"
    builder.request = REQUEST
    assert memory.asked == []


def test_an_empty_form_has_no_request_and_no_error(builder):
    """A form nobody has touched does not complain."""
    assert (builder.request, builder.error, builder.errors, builder.python) == (None, "", {}, "")


def test_entries_make_the_request(filled):
    """The request is what was typed, options untouched left to the node."""
    assert filled.request == REQUEST
    assert filled.request.estimate_gas_unit_price is None


def test_setting_the_request_fills_the_entries(builder):
    """The round trip: a request set is a request read, and the entries show it."""
    coins = toolkit.EntryFunction(
        "0x1::aptos_account::transfer_coins",
        type_arguments=["0x1::aptos_coin::AptosCoin"],
        arguments=["0xb0b", 2**64 - 1, {"vec": [None, True]}, "\u00e9"],
    )
    request = toolkit.SimulationRequest(coins, sender=ALICE, estimate_max_gas_amount=False)
    builder.request = request
    assert builder.request == request
    assert builder.sender == "0xa11ce"
    assert builder.type_arguments == "0x1::aptos_coin::AptosCoin"
    assert builder.arguments == '["0xb0b", 18446744073709551615, {"vec": [null, true]}, "\u00e9"]'
    assert (builder.estimate_max_gas_amount, builder.estimate_gas_unit_price) == (False, True)
    typed = {name: getattr(builder, name) for name in ("sender", "function", "type_arguments", "arguments")}
    other = SimulationBuilder(builder.node)
    for name, text in typed.items():
        setattr(other, name, text)
    other.estimate_max_gas_amount = False
    assert other.request == request
    other.close()


def test_what_the_form_does_not_show_is_kept(builder):
    """Editing one entry of a request leaves fee payer and limits as they were."""
    request = toolkit.SimulationRequest(TRANSFER, sender=ALICE, fee_payer="0x0", max_gas_amount=5000)
    builder.request = request
    assert not builder.estimate_max_gas_amount
    builder.arguments = '["0xb0b", 200]'
    assert builder.request == request.replace(payload=TRANSFER.replace(arguments=("0xb0b", 200)))


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("sender", "alice", "'alice' is not an address"),
        ("function", "0x1::transfer", "not a function id"),
        ("type_arguments", "0x1::a::B<u8", "position 12"),
        ("arguments", '["0xb0b", 100', "not JSON (Expecting ',' delimiter"),
        ("arguments", '{"to": "0xb0b"}', "expected a JSON array"),
        ("arguments", "100", "expected a JSON array"),
        ("arguments", "[1.5]", "not have floating point"),
        ("arguments", "[NaN]", "NaN is not JSON"),
        ("arguments", "[" * 100_000, "not JSON ("),
        ("arguments", "[" + "9" * 5000 + "]", "expected a JSON array"),
        ("sender", "", "enter an address: 0x and 1 to 64 hex digits"),
    ],
)
def test_a_bad_entry_is_told_at_its_field_and_leaves_the_request(filled, name, text, said):
    """What cannot be read is named with the field, in traits and under the entry; mending it clears that."""
    good = getattr(filled, name)
    setattr(filled, name, text)
    assert filled.request == REQUEST
    [(path, words)] = filled.errors.items()
    assert path.split(".")[0] == name
    assert said in words
    assert words in filled.error
    setattr(filled, name, good)
    assert (filled.error, filled.request) == ("", REQUEST)


def test_several_bad_entries_are_all_told(filled):
    """Each field has its own error."""
    filled.sender, filled.function = "alice", "transfer"
    assert set(filled.errors) == {"sender", "function"}
    assert filled.error.startswith("sender: 'alice' is not an address")
    assert "; function: not a function id" in filled.error


def test_type_arguments_stand_on_lines_or_between_commas(filled):
    """Commas inside of a type do not split it."""
    filled.type_arguments = "0x1::pair::Pair<u8, u64>, bool\n\nvector<u8>"
    assert filled.request.payload.type_arguments == ("0x1::pair::Pair<u8, u64>", "bool", "vector<u8>")


def test_estimate_options_go_into_the_request(filled):
    """An option that the user sets is sent; the others are left to the node."""
    filled.estimate_gas_unit_price = False
    filled.estimate_prioritized_gas_unit_price = True
    assert filled.request.query() == {"estimate_prioritized_gas_unit_price": "true"}
    assert filled.request.estimate_gas_unit_price is False
    assert filled.request.estimate_max_gas_amount is None


def test_simulate_sends_once_and_keeps_the_outcome(memory, filled):
    """Simulate sends the request and shows its frames; a second look at them asks nothing more."""
    filled.simulate()
    assert memory.asked.count("/transactions/simulate") == 1
    assert memory.bodies[0]["payload"]["arguments"][1] == "100"
    asked = len(memory.asked)
    assert filled.simulation.success
    assert filled.simulation.gas_used == 41
    assert (len(filled.simulation.transactions), len(filled.simulation.changes)) == (1, 2)
    assert len(memory.asked) == asked
    assert "41 gas units" in shown(filled)
    assert (filled.error, filled.busy) == ("", False)


def test_the_simulate_button_simulates(filled):
    """The button does what the method does."""
    press(filled, "simulate")
    assert filled.simulation.success


def test_buttons_rest_while_the_node_is_asked(memory, filled):
    """A second press while an answer is awaited is not possible, and the builder says it is busy."""
    seen, real = [], memory.send

    def send(request):
        seen.append(filled.busy)
        return real(request)

    memory.send = send
    filled.simulate()
    assert set(seen) == {True}
    assert not filled.busy


def test_simulate_with_entries_missing_says_which(memory, builder):
    """Nothing is sent; the fields say what they need."""
    builder.simulate()
    assert set(builder.errors) == {"sender", "function"}
    assert memory.asked == []
    assert builder.simulation is None


def test_simulate_with_a_bad_entry_sends_nothing(memory, filled):
    """The request of before is not sent in place of what is typed now."""
    filled.arguments = "[1"
    filled.simulate()
    assert memory.asked == []
    assert "arguments" in filled.errors


@pytest.mark.parametrize(
    ("entries", "field", "said"),
    [
        ({"function": "0x1::aptos_account::trasnfer"}, "function", "did you mean `transfer`?"),
        ({"function": "0x1::aptos_account::zzz"}, "function", "the entry functions transfer, transfer_coins"),
        ({"function": "0x1::aptos_account::exists_at"}, "function", "this is a view function, not an entry function"),
        ({"type_arguments": "u8"}, "type_arguments", "takes 0 type arguments, got 1"),
        ({"function": "0x1::aptos_account::transfer_coins"}, "type_arguments.0", "enter a Move type"),
        ({"arguments": '["0xb0b"]'}, "arguments", "expected 2 arguments (address, u64), got 1"),
        ({"arguments": '["0xb0b", -1]'}, "arguments", "outside 0..18446744073709551615"),
        ({"arguments": '["bob", 1]'}, "arguments", "arguments[0]"),
    ],
)
def test_the_abi_finds_what_does_not_fit(memory, filled, entries, field, said):
    """Check and Simulate tell it at the field, and nothing is simulated."""
    for name, text in entries.items():
        setattr(filled, name, text)
    assert not filled.check()
    assert list(filled.errors) == [field]
    assert said in filled.errors[field]
    filled.simulate()
    assert list(filled.errors) == [field]
    assert "/transactions/simulate" not in memory.asked


def test_once_the_abi_is_known_entries_are_checked_as_they_are_typed(memory, filled):
    """After a check, a value that does not fit is reported at once, keeps the request, and sends nothing to the node."""
    assert filled.check()
    assert "Matches transfer(address, u64)" in shown(filled)
    asked = len(memory.asked)
    filled.arguments = '["0xb0b", "many"]'
    assert "expected u64" in shown(filled)
    assert list(filled.errors) == ["arguments"]
    assert filled.request == REQUEST
    assert len(memory.asked) == asked


@pytest.mark.parametrize("act", ["check", "simulate"])
def test_a_module_that_does_not_exist_is_said_at_the_function(memory, filled, act):
    """If the module does not exist, the form says so and sends no simulation."""
    filled.function = "0xcafe::secret::run"
    getattr(filled, act)()
    assert list(filled.errors) == ["function"]
    assert "the module 0xcafe::secret does not exist" in filled.errors["function"]
    assert filled._status == Status("error", "1 entry needs attention.")
    assert "/transactions/simulate" not in memory.asked


def test_without_abis_the_node_itself_judges(memory, filled):
    """A node that offers no modules: the check says that nothing was checked, and the call is simulated."""
    memory.modules = 403
    assert filled.check()
    assert "returned no ABI for this module" in filled._status.text
    filled.simulate()
    assert filled.simulation is not None


def test_what_the_node_refuses_is_said_and_the_old_result_stays_marked(memory, filled):
    """An error of the node stands beside the buttons, escaped, until the next entry; the result of before is marked."""
    filled.simulate()
    first = filled.simulation
    memory.refusal = {"message": "not <b>now</b>", "error_code": "invalid_input", "vm_error_code": None}
    filled.simulate()
    assert list(filled.errors) == ["node"]
    assert "not <b>now</b>" in filled.error
    assert (filled.simulation, filled._stale) == (first, "From an earlier run")
    assert "Out of date" in shown(filled)
    assert "not <b>now</b>" in filled._status.text  # the browser sets it as text, not as markup
    filled.arguments = '["0xb0b", 101]'
    assert filled.error == ""
    assert "not <b>now" not in shown(filled)


def test_an_answer_that_cannot_be_read_is_told(memory, filled):
    """A node that breaks its own contract gives a text beside the buttons, not a traceback."""
    memory.answer["changes"][0]["address"] = "nowhere"
    filled.simulate()
    assert "not an address" in filled.errors["node"]
    assert not filled.busy


def test_results_of_an_earlier_request_say_so(filled):
    """After an edit the results stay, marked; the old request makes them fresh again."""
    filled.simulate()
    assert "Out of date" not in shown(filled)
    filled.arguments = '["0xb0b", 101]'
    assert "Out of date" in shown(filled)
    filled.request = REQUEST
    assert "Out of date" not in shown(filled)


def test_only_requests_fill_the_form(builder):
    """Anything but a request is refused, and nothing changes."""
    builder.request = REQUEST
    with pytest.raises(TraitError):
        builder.request = "transfer"
    assert builder.request == REQUEST


def test_a_request_can_be_taken_away(filled):
    """None empties the form without complaint."""
    filled.request = None
    assert (filled.sender, filled.arguments, filled.error, filled.python) == ("", "", "", "")


def test_a_request_that_does_not_fit_the_known_abi_is_told_at_its_entry(filled):
    """Setting such a request is allowed; its arguments are marked."""
    filled.check()
    filled.request = REQUEST.replace(payload=TRANSFER.replace(arguments=("0xb0b",)))
    assert list(filled.errors) == ["arguments"]


def test_a_request_can_be_given_at_the_start(memory, node):
    """The constructor fills the form and asks nothing."""
    builder = SimulationBuilder(node, request=REQUEST)
    assert (builder.request, builder.function) == (REQUEST, "0x1::aptos_account::transfer")
    assert memory.asked == []
    builder.close()


def test_outcomes_cannot_be_written(filled):
    """What the builder finds out is read only."""
    for name, value in {"error": "x", "errors": {}, "python": "x", "simulation": None, "busy": True}.items():
        with pytest.raises(TraitError, match="read-only"):
            setattr(filled, name, value)


def test_the_repr_is_short(filled):
    """It names node and function, whatever the arguments weigh."""
    filled.arguments = '["0xb0b", "' + "x" * 100_000 + '"]'
    assert repr(filled) == "SimulationBuilder(Node('embedded'), 0x1::aptos_account::transfer)"


def test_closing_leaves_nothing_behind(node):
    """close() closes every model it opened and takes its observers off."""
    before = set(Widget.get_manager_state()["state"])
    builder = SimulationBuilder(node, request=REQUEST)
    builder.simulate()
    builder.simulate()
    builder.close()
    assert set(Widget.get_manager_state()["state"]) == before
    builder.sender = "0x1"
    assert builder.request == REQUEST
    builder.close()


# what the browser does -----------------------------------------------------------------------------------------------


def test_typing_a_function_gives_its_arguments_fields(memory, builder):
    """Once the function is looked up, each argument has a field of its own, and the fields make the request."""
    type_in(builder, sender="0xa11ce", function="0x1::aptos_account::transfer")
    assert memory.asked == []
    press(builder, "look")
    assert builder._draft.arguments == ("", "")
    assert builder._findings.errors == {}
    assert set(builder._findings.missing) == {"arguments.0", "arguments.1"}
    type_in(builder, arguments=["0xb0b", "1_00"])
    assert builder.request == REQUEST
    assert builder.arguments == '["0xb0b", 100]'
    type_in(builder, arguments=["0xb0b", str(2**64)])
    assert builder.request == REQUEST
    assert "0 to 18,446,744,073,709,551,615" in builder.errors["arguments.1"]


def test_fields_and_json_stay_in_step(filled):
    """Edits of the JSON update the fields; JSON that does not fit leaves them as they are and shows its error."""
    filled.check()
    assert filled._draft.arguments == ("0xb0b", "100")
    type_in(filled, raw='["0xca7", "7"]')
    assert filled._draft.arguments == ("0xca7", "7")
    assert filled.request.payload.arguments == ("0xca7", "7")
    type_in(filled, raw='["0xca7"')
    assert filled._draft.arguments == ("0xca7", "7")
    assert "expected a JSON array" in filled.errors["arguments"]
    type_in(filled, arguments=["0xca7", "8"])
    assert (filled.arguments, filled.errors) == ('["0xca7", 8]', {})


def test_another_function_starts_with_empty_arguments(filled):
    """Arguments of the function of before do not stay in the fields of the next one."""
    filled.check()
    type_in(filled, function="0x1::aptos_account::transfer_coins")
    press(filled, "look")
    assert filled._draft.type_arguments == ("",)
    type_in(filled, type_arguments=["u8"])
    press(filled, "look")
    assert (filled._draft.arguments, filled._draft.raw) == (("", ""), "")


def test_the_amount_can_be_given_instead_of_an_estimate(filled):
    """An estimate that is unticked leaves a field for the amount and one for the price."""
    type_in(
        filled,
        estimate_max_gas_amount=False,
        estimate_gas_unit_price=False,
        max_gas_amount="5_000",
        gas_unit_price="100",
    )
    assert (filled.request.max_gas_amount, filled.request.gas_unit_price) == (5000, 100)
    assert filled.request.query() == {}
    fields = json.dumps(msgspec.to_builtins(filled._spec))
    assert '"when": ["estimate_max_gas_amount", [false]]' in fields
    assert '"when": ["estimate_gas_unit_price", [false]]' in fields


def test_a_fee_payer_unticks_the_estimate_of_the_senders_gas(filled):
    """The form shows what is asked: with a fee payer the sender's balance is not what limits the gas."""
    type_in(filled, has_fee_payer=True, fee_payer="0xfee")
    assert filled.request.fee_payer.endswith("fee")
    assert not filled.estimate_max_gas_amount
    assert "estimate_max_gas_amount" not in filled.request.query()


def test_signers_and_keys_make_the_shape_of_the_signature(filled):
    """Chosen by name: a single key, a second signer with none, a fee payer with an ed25519 key."""
    blank = msgspec.to_builtins(filled._draft.sender_key)
    key = "0x" + "11" * 32
    type_in(
        filled,
        sender_key=blank | {"shape": "single_key", "key": key},
        secondary=[{"address": "0xca7", "key": blank}],
        has_fee_payer=True,
        fee_payer="0xfee",
        fee_payer_key=blank | {"shape": "ed25519", "key": key},
    )
    sent = filled.request.signature_to_send().to_wire()
    assert sent["type"] == "fee_payer_signature"
    assert sent["sender"]["type"] == "single_key_signature"
    assert [one["type"] for one in sent["secondary_signers"]] == ["no_account_signature"]
    assert sent["fee_payer_signer"]["type"] == "ed25519_signature"
    type_in(filled, sender_key=blank | {"shape": "ed25519", "key": "0x11"})
    assert "expected 32 bytes of an ed25519 public key, got 1" in filled.errors["sender_key.key"]


def test_no_field_asks_for_a_private_key(filled):
    """Nothing in the form is called private or secret, except to say that none is wanted."""
    words = json.dumps(msgspec.to_builtins(filled._spec)).lower().replace("a public key, never a private one", "")
    assert "private" not in words
    assert "secret" not in words


def test_a_failure_is_said_at_the_field_that_caused_it(memory, filled):
    """A used sequence number is reported at the sequence number, and a balance that is too low at the amount."""
    memory.answer |= {"success": False, "vm_status": "SEQUENCE_NUMBER_TOO_OLD"}
    press(filled, "simulate")
    assert "already been used" in filled.errors["replay"]
    assert filled._status.kind == "bad"
    type_in(filled, replay="number", sequence_number="0", estimate_gas_unit_price=False, gas_unit_price="1")
    for status, path in {
        "SEQUENCE_NUMBER_TOO_OLD": "sequence_number",
        "NONCE_ALREADY_USED": "replay",
        "GAS_UNIT_PRICE_BELOW_MIN_BOUND": "gas_unit_price",
        "MAX_GAS_UNITS_EXCEEDS_MAX_GAS_UNITS_BOUND": "estimate_max_gas_amount",
    }.items():
        memory.answer |= {"vm_status": status}
        press(filled, "simulate")
        assert list(filled.errors) == [path]
    memory.answer |= {"vm_status": "Move abort in 0x1::coin: EINSUFFICIENT_BALANCE(0x10006): no coins"}
    press(filled, "simulate")
    assert list(filled.errors) == ["arguments.1"]
    assert filled.errors["arguments.1"].startswith("No coins: ")
    memory.answer |= {"vm_status": "Move abort in 0x1::coin: ECOIN_STORE_NOT_PUBLISHED(0x60005): no store"}
    press(filled, "simulate")
    assert filled.errors == {"function": "No store."}
    type_in(filled, arguments=["0xb0b", "1"])
    assert filled.errors == {}


def test_the_last_simulations_are_compared_side_by_side(memory, filled):
    """A page has a column for each, with differences; the entries of one can be filled in again; five are kept."""
    filled.simulate()
    assert not [one for one in filled._pages if one.title == "Recent"]
    first = filled.request
    memory.answer["gas_used"] = "45"
    filled.arguments = '["0xb0b", 200]'
    filled.simulate()
    assert filled._pages[-1].count == 2
    recent = page(filled, "Recent")
    row = re.search(r'<td class="ltk-brief">Gas used</td>(.*?)</tr>', recent)[1]
    assert row == "<td>41</td><td><b>45</b> (+4)</td>"
    row = re.search(r'<td class="ltk-brief">Arguments</td>(.*?)</tr>', recent)[1]
    assert re.findall(r"\b(?:100|200)\b", row) == ["100", "200"]
    press(filled, "again", number=0)
    assert filled.request == first
    press(filled, "again", number=9)
    assert filled.request == first
    for amount in range(1, 7):
        for _ in range(2):  # an equal call is listed once
            filled.arguments = f'["0xb0b", {amount}]'
            filled.simulate()
    assert (filled._pages[-1].title, filled._pages[-1].count) == ("Recent", 5)
    memory.answer |= {"success": False, "vm_status": "OUT_OF_GAS", "gas_used": "9"}
    filled.arguments = '["0xb0b", 7]'
    filled.simulate()
    last = re.search(r'<td class="ltk-brief">Gas used</td>.*?(<td>[^/]*?</b>.*?</td>)</tr>', page(filled, "Recent"))[1]
    assert last.endswith("<b>9</b></td>")  # different outcomes are not subtracted


def test_a_search_finds_entry_functions_as_they_are_typed(memory, builder):
    """Contracts of the known accounts are read once; names that fit are listed with their parameters."""
    press(builder, "search", query="0x1::apt")
    assert builder._hits.hits[0] == ("0x1::aptos_account::transfer", "(address, u64)")
    assert all("exists_at" not in name for name, _ in builder._hits.hits)
    press(builder, "search", query="coins")
    assert [name for name, _ in builder._hits.hits] == ["0x1::aptos_account::transfer_coins"]
    asked = len(memory.asked)
    press(builder, "search", query="transfer coins")
    assert len(memory.asked) == asked


TRANSFERRED = {
    "type": "entry_function_payload",
    "function": "0x1::aptos_account::transfer",
    "type_arguments": [],
    "arguments": ["0xb0b", "100"],
}
CODE = {"bytecode": "0xa11ceb0b", "abi": None}
COMMITTED = {
    "entry": TRANSFERRED,
    "script": {"type": "script_payload", "code": CODE, "type_arguments": ["u64"], "arguments": ["5"]},
    "multisig_entry": {"type": "multisig_payload", "multisig_address": "0x5afe", "transaction_payload": TRANSFERRED},
    "multisig_stored": {"type": "multisig_payload", "multisig_address": "0x5afe"},
}


@pytest.mark.parametrize("given", ["4,321", "0x" + "ab" * 32])
@pytest.mark.parametrize("kind", COMMITTED)
def test_the_form_starts_from_a_committed_transaction_of_each_kind(memory, builder, kind, given):
    """By version or hash: payload, sender and limits are in the fields; what is the state's own is left to the node."""
    where = f"by_hash/{given}" if given.startswith("0x") else "by_version/4321"
    memory.committed[f"/transactions/{where}"] = memory.answer | {"payload": COMMITTED[kind], "version": "4321"}
    type_in(builder, committed=given)
    press(builder, "load")
    assert builder.errors == {}
    assert (builder._draft.payload, builder.sender) == (kind, "0xa11ce")
    assert (builder.request.max_gas_amount, builder.request.sequence_number) == (20_000_000, None)
    made = builder.request.payload
    inner = made.transaction_payload if kind.startswith("multisig") else made
    if kind.startswith("multisig"):
        assert builder._draft.multisig_address == "0x5afe"
    if kind.endswith("entry"):
        assert builder._draft.arguments == ("0xb0b", "100")
        assert inner.function.endswith("::aptos_account::transfer")
    elif kind == "script":
        assert (builder._draft.bytecode, builder._draft.raw) == ("0xa11ceb0b", '["5"]')
    else:
        assert inner is None


def test_a_committed_transaction_that_nodes_do_not_simulate_is_refused(memory, builder):
    """The sentence stands at the field, and the form stays as it is."""
    memory.committed["/transactions/by_version/0"] = memory.answer | {
        "payload": {"type": "write_set_payload"},
        "version": "0",
    }
    type_in(builder, committed="0")
    press(builder, "load")
    assert "nodes do not simulate" in builder.errors["committed"]
    assert builder.request is None


def test_functions_used_last_come_before_anything_is_typed(memory, filled):
    """Those that forms of this node have simulated, the last one first; a new form has them too, and asks nothing."""
    press(filled, "search", query="")
    places = [name for name, _ in filled._hits.hits]
    assert places == ["0x1::", "0x3::", "0x4::"]
    filled.simulate()
    filled.function = "0x1::aptos_account::transfer_coins"
    filled.type_arguments = "u64"
    filled.simulate()
    asked = len(memory.asked)
    other = SimulationBuilder(filled.node)
    press(other, "search", query="")
    names = [f"0x1::aptos_account::{name}" for name in ("transfer_coins", "transfer")]
    assert [name for name, _ in other._hits.hits] == [*names, *places]
    assert len(memory.asked) == asked
    press(other, "search", query="0x1::apt")
    assert [name for name, _ in other._hits.hits] == names
    other.close()


@pytest.mark.parametrize(
    ("query", "first", "total"),
    [
        ("0x1", ("0x1::m0::", "20 functions"), 100),
        ("0x1::m7", ("0x1::m7::f0", "()"), 20 + 10 * 20),  # m70 to m79
        ("f3 m42", ("0x1::m42::f3", "()"), 1),
        ("m42::f3", ("0x1::m42::f3", "()"), 1),
        ("0x2", None, 0),
        ("nothing", None, 0),
    ],
)
def test_functions_are_found_by_words_in_any_order(query, first, total):
    """An address alone gives its modules with counts; of many hits 50 are shown, and how many there are."""
    functions = [{"name": f"f{number}", "is_entry": True, "params": []} for number in range(20)]
    modules = [
        toolkit.move.decode_module_abi(
            {"address": "0x1", "name": f"m{number}", "exposed_functions": functions, "structs": []}
        )
        for number in range(100)
    ]
    hits, found = matching(map(ListedContract, modules), query, "entry")
    assert found == total
    assert len(hits) == min(total, 50)
    assert first is None or first in hits


def test_a_function_can_be_chosen_at_the_start(memory, node):
    """By its name, or as the function of a contract; neither asks the node, and not beside a request."""
    by_name = SimulationBuilder(node, "0x1::aptos_account::transfer")
    assert memory.asked == []
    function = node.contract("0x1::aptos_account").transfer
    asked = len(memory.asked)
    by_contract = SimulationBuilder(node, function)
    assert by_name.function == by_contract.function == "0x1::aptos_account::transfer"
    assert len(memory.asked) == asked
    with pytest.raises(toolkit.InputError, match="got both"):
        SimulationBuilder(node, function, request=REQUEST)
    by_name.close()
    by_contract.close()


def test_a_saved_notebook_shows_a_picture(filled):
    """Without a kernel the output still says what was asked and what came out."""
    filled.simulate()
    html = filled._bundle()["text/html"]
    assert "0x1::aptos_account::transfer" in html
    assert "toolkit.SimulationRequest" in html
    assert "Run the cell to use it" in html


def test_an_old_draft_of_a_browser_does_no_harm(filled):
    """A page that was opened with other fields gets words, not a traceback."""
    filled.check()
    type_in(filled, arguments=[{"json": 1}, None])
    assert set(filled.errors) == {"form"}


def test_a_click_that_overtakes_the_last_keys_brings_them_along(memory, filled):
    """Jupyter sends edits one at a time and clicks at once: what is simulated is what is on the screen."""
    filled.check()
    late = msgspec.to_builtins(filled._draft) | {"arguments": ["0xb0b", "777"], "lead": "fields"}
    late["seq"] += 3
    press(filled, "simulate", draft=late)
    assert memory.bodies[-1]["payload"]["arguments"][1] == "777"
    assert filled._status.kind == "good"
    filled._handle_msg({"content": {"data": {"method": "update", "state": {"_draft": late}}}, "buffers": []})
    assert filled._status.kind == "good"
    assert (filled.arguments, filled._stale) == ('["0xb0b", 777]', "")


def test_an_edit_elsewhere_does_not_bring_back_older_json(filled):
    """The next edit may be sent before the JSON of the last one has come back: the fields lead, not the old JSON."""
    filled.check()
    old = filled._draft.raw
    type_in(filled, arguments=["0xb0b", "5"])
    draft = msgspec.to_builtins(filled._draft) | {"sender": "0x7", "raw": old, "lead": "fields"}
    draft["seq"] += 1
    filled._handle_msg({"content": {"data": {"method": "update", "state": {"_draft": draft}}}, "buffers": []})
    assert filled.request.payload.arguments == ("0xb0b", 5)
    assert filled.arguments == '["0xb0b", 5]'


def test_another_node_leaves_the_entries_as_they_are(filled, memory):
    """A field that is half filled stays too; the result and the lists of the node before are gone."""
    filled.check()
    filled._draft = replace(filled._draft, seq=filled._draft.seq + 1, arguments=("0xb0b", "many"), lead="fields")
    errors = dict(filled.errors)
    assert "arguments.1" in errors
    with Node("http://127.0.0.1:2/v1", transport=memory, name="other") as other:
        filled.node = other
        assert filled.node is other
        assert filled._about.node == "other"
        press(filled, "look")
        assert filled._draft.arguments == ("0xb0b", "many")
        assert filled.errors == errors
        filled.arguments = '["0xb0b", 101]'
        filled.simulate()
        said = filled._status
        press(filled, "look")
        assert filled._status == said
        filled.node = other
        assert filled.simulation is not None
        with Node("http://127.0.0.1:3/v1", transport=memory, name="third") as third:
            filled.node = third
            assert filled.simulation is None
            assert "third" in filled.python or "127.0.0.1:3" in filled.python


# the background ------------------------------------------------------------------------------------------------------


@pytest.fixture
def mute():
    """Return a node that never answers, and a function that waits until it was asked once more."""
    asked = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(20)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        with toolkit.connect(url, cache=None) as node:
            yield node, lambda: asked.append(server.accept()[0])
    for connection in asked:
        connection.close()


def form_threads():
    return [thread for thread in threading.enumerate() if thread.name == "toolkit-form"]


@pytest.mark.parametrize("what", ["simulate", "look", "load", "search"])
def test_a_node_that_never_answers_does_not_hold_the_form(mute, what):
    """The message is handled at once; entries can be edited meanwhile; Cancel ends the request and its thread."""
    node, asked = mute
    builder = SimulationBuilder(node, request=REQUEST)
    type_in(builder, committed="7")
    tell(builder, what, query="0x1::coin")
    worker = builder._background._workers[what in {"look", "search"}]
    asked()
    assert builder.busy is (what != "search")
    builder.arguments = '["0xb0b", 7]'
    assert builder.request.payload.arguments == ("0xb0b", 7)
    tell(builder, "stop")
    assert not builder.busy
    worker.join(30)
    assert not worker.is_alive()
    assert (builder.errors, builder.simulation) == ({}, None)
    builder.close()
    assert form_threads() == []


def test_no_thread_outlives_close(mute):
    """close() gives up what is in progress and waits for the threads; nothing is changed afterwards."""
    node, asked = mute
    builder = SimulationBuilder(node, request=REQUEST)
    tell(builder, "simulate")
    tell(builder, "search", query="coin")
    asked()
    asked()
    assert len(form_threads()) == 2
    builder.close()
    assert form_threads() == []


def test_after_cancel_the_form_works_again(memory, filled):
    """An answer that comes after Cancel is dropped; the next simulation is shown."""
    held, real = threading.Event(), memory.send

    def send(request):
        held.wait(20)
        return real(request)

    memory.send = send
    tell(filled, "simulate")
    late = filled._background._workers[False]
    tell(filled, "simulate")  # a second press while the first is in progress changes nothing
    assert late.waiting.keys() <= {"simulate"}
    tell(filled, "stop")
    assert (filled.busy, filled._status.text) == (False, "Cancelled.")
    held.set()
    late.join(30)
    assert (filled.simulation, filled._status.text) == (None, "Cancelled.")
    press(filled, "simulate")
    assert filled.simulation.success
    assert not filled.busy
    filled.close()


def test_what_nobody_expects_is_said_and_the_form_stays_usable(memory, filled, monkeypatch):
    """A fault of a method, even of the toolkit itself, is a sentence beside the buttons, and the form is not busy."""
    monkeypatch.setattr(SimulationBuilder, "_check", lambda _: 1 / 0)
    press(filled, "simulate")
    assert filled._status == Status("error", "ZeroDivisionError: division by zero")
    assert not filled.busy


def test_results_of_the_background_ask_the_node_of_the_form(filled):
    """The connections of the background may be closed at any time: a result does not depend on them."""
    press(filled, "simulate")
    assert filled.simulation._node is filled.node


def test_two_threads_edit_one_form(filled):
    """Edits in Python while the background simulates: no error, and the last edit is the form's."""
    for amount in range(8):
        tell(filled, "simulate")
        filled.arguments = f'["0xb0b", {amount}]'
        type_in(filled, sender=f"0xa{amount}")
    press(filled, "look")
    assert filled.request.payload.arguments == ("0xb0b", 7)
    assert filled.sender == "0xa7"


def test_a_ledger_of_ones_own_has_model_gas_and_is_named_in_the_program():
    """The gas page of a simulation on it has the note on model gas; the program connects to ``ledger``, not to a port."""
    with toolkit.connect(toolkit.embedded.Ledger()) as own:
        payload = toolkit.EntryFunction("0x1::aptos_account::transfer", ["0x1", 0])
        builder = SimulationBuilder(own, request=toolkit.SimulationRequest(payload, sender="0x1"))
        builder.simulate()
        assert "node = toolkit.connect(ledger)" in builder.python
        assert "127.0.0.1" not in builder.python
        assert "not a Move VM" in page(builder, "Gas")
        builder.close()


def test_cleared_json_clears_the_arguments(filled):
    """An empty JSON text is the argument list that is meant: the fields are cleared, the old text does not come back."""
    assert filled.check()
    filled.arguments = ""
    assert (filled.arguments, filled._draft.arguments) == ("", ("", ""))
    assert "expected 2 arguments (address, u64), got 0" in filled.errors["arguments"]
    type_in(filled, raw='["0xca7", 5]')
    type_in(filled, raw="")
    assert (filled.arguments, filled._draft.raw, filled._draft.arguments) == ("", "", ("", ""))
    type_in(filled, arguments=["0xca7", "7"])
    assert (filled.errors, filled.arguments) == ({}, '["0xca7", 7]')


def test_an_error_that_no_reader_expects_is_shown_and_the_next_edit_is_read(filled):
    """A draft of the wrong shape becomes a sentence; the form is usable afterwards."""
    key = msgspec.to_builtins(filled._draft.sender_key)
    type_in(filled, sender_key=None)
    assert "the entries could not be read" in filled.errors["form"]
    assert filled._status.kind == "error"
    assert "Undo the last edit" in filled._status.text
    type_in(filled, sender_key=key, sender="0xb0b")
    assert (filled.errors, filled.request.sender) == ({}, REQUEST.replace(sender="0xb0b").sender)
    assert filled._status.text == ""


def test_code_of_an_older_request_is_marked(filled):
    """While the entries do not make a request, its code is marked in the page and `python` is empty."""
    python = filled.python
    assert "100" in python
    assert filled._findings.code_note == ""
    type_in(filled, raw='["0xb0b", "abc"')
    assert filled._findings.code_note == OUTDATED
    assert filled.python == ""
    filled._learn()  # as after the answer of the node
    assert filled._findings.code_note == OUTDATED
    type_in(filled, raw='["0xb0b", 100]')
    assert filled._findings.code_note == ""
    assert filled.python == python


def test_code_that_cannot_be_a_request_cannot_be_copied(filled):
    """For a request set in Python whose arguments do not fit or whose function does not exist, no program can be copied."""
    filled.check()
    filled.request = REQUEST.replace(payload=TRANSFER.replace(arguments=("0xb0b",)))
    assert "arguments" in filled.errors
    assert (filled._findings.code_note[: len(FAILS)], filled.python) == (FAILS, "")
    filled.request = REQUEST.replace(payload=TRANSFER.replace(function="0x1::aptos_account::nothing"))
    filled.check()
    assert "function" in filled.errors
    assert (filled._findings.code_note[: len(FAILS)], filled.python) == (FAILS, "")


def test_each_result_has_a_number(simulation, filled):
    """The page distinguishes two results whose pages are otherwise equal."""
    simulation()
    first = filled._serial
    simulation()
    assert filled._serial == first + 1
    filled._apply(Noted({"answer": dataclasses.replace(filled._now.answer)}))
    assert filled._serial == first + 1


@pytest.mark.parametrize("typed", ["9" * 5000, "hello"])
def test_a_transaction_that_cannot_be_loaded_is_said_beside_the_buttons(filled, typed):
    """The field has the error, and the status line too."""
    type_in(filled, committed=typed)
    press(filled, "load")
    assert list(filled.errors) == ["committed"]
    assert len(filled.errors["committed"]) < 300
    assert filled._status == Status("error", filled.errors["committed"])


def test_an_edit_sent_before_the_last_answer_does_not_choose_an_estimate(filled):
    """The browser may edit again before it has the draft that names a fee payer; the maximum stays the toolkit's choice.

    A fee payer turns the estimate of the maximum off. The next edit must not turn it on as if the user had.
    """
    assert filled.estimate_max_gas_amount
    old = msgspec.to_builtins(filled._draft)
    for number, more in enumerate(
        ({"has_fee_payer": True}, {"fee_payer": "0xfee"}, {"expiration_timestamp_secs": "9"})
    ):
        old |= {"seq": old["seq"] + 1} | more
        filled._handle_msg({"content": {"data": {"method": "update", "state": {"_draft": old}}}, "buffers": []})
        assert not filled.estimate_max_gas_amount, number
    assert filled.request.estimate_max_gas_amount is None
    type_in(filled, estimate_max_gas_amount=True)
    assert filled.request.estimate_max_gas_amount is True
    type_in(filled, estimate_max_gas_amount=False, max_gas_amount="70")
    assert (filled.request.estimate_max_gas_amount, filled.request.max_gas_amount) == (None, 70)
    type_in(filled, has_fee_payer=False)
    assert (filled.request.estimate_max_gas_amount, filled.request.max_gas_amount) == (None, 70)


def test_calls_run_in_order_on_one_fork_at_a_version():
    """A call that is kept runs before the next one; the program does the same; each outcome and its gas is shown."""
    with toolkit.connect() as node:
        builder = SimulationBuilder(node)
        deposit = toolkit.EntryFunction("0xfa17::vault::deposit", [1000])
        builder.request = toolkit.SimulationRequest(deposit, sender="0xa11ce")
        type_in(builder, at="version", version="3000")
        press(builder, "keep_call")
        withdraw = toolkit.EntryFunction("0xfa17::vault::withdraw", [1])
        builder.request = toolkit.SimulationRequest(withdraw, sender="0xa11ce")
        builder.simulate()
        done = builder.simulation
        assert (done.success, done.request.payload) == (True, withdraw)
        fork = node.fork(3000)
        fork.execute(toolkit.SimulationRequest(deposit, sender="0xa11ce"))
        assert done.gas_used == fork.simulate(toolkit.SimulationRequest(withdraw, sender="0xa11ce")).gas_used
        assert executed(builder)["simulation"].gas_used == done.gas_used
        programs = dict(builder._programs)  # only Python can describe a fork
        assert {type(programs[title]) for title in ("JSON", "Study", "curl")} == {NoProgram}
        assert page(builder, "Sequence").count("Success") == 2
        functions = done.profile.to_frame()["function"]
        assert "0xfa17::vault::withdraw" in set(functions)
        assert "0xfa17::vault::withdraw" in page(builder, "Gas")
        assert builder._stale == ""
        assert builder._origin.startswith("a fork of version 3,000, after 1 call, ledger time 2026-04-19")
        press(builder, "drop_call", number=0)
        assert builder._stale
        assert builder._now.wanted.earlier == ()
        builder.simulate()
        assert builder._origin.startswith("version 3,000, ledger time ")
        builder.close()


def test_a_sequence_of_which_a_call_fails_is_not_green():
    """The message and the page say which; a saved notebook has the page."""
    with toolkit.connect() as node:
        builder = SimulationBuilder(node)
        for amount, kind in ((10**18, "mixed"), (10**18, "bad")):
            builder.request = REQUEST.replace(payload=TRANSFER.replace(arguments=("0xb0b", amount)))
            type_in(builder, at="version", version="-1")
            press(builder, "keep_call")
            builder.request = REQUEST.replace(
                payload=TRANSFER.replace(arguments=("0xb0b", 5 if kind == "mixed" else amount))
            )
            builder.simulate()
            assert builder._status.kind == kind
        sequence = next(one for one in builder._pages if one.title == "Sequence")
        assert (sequence.count, sequence.failed) == (3, 3)
        assert f"transfer(0xb0b, {10**18})" in sequence.html
        assert sequence.html in builder._picture()
        detail = str(builder._now.answer.failure.words)
        assert detail in builder._pages[0].html
        assert detail in sequence.html
        assert sequence.html.count(reason_of(builder.simulation)[0]) == 3
        assert builder.simulation.vm_status not in sequence.html
        builder.close()


def test_out_of_gas_is_told_in_the_words_of_the_form():
    """The fields have labels, not the names that Python has for them."""
    with toolkit.connect() as node:
        register = toolkit.EntryFunction("0xcafe::registry::register", ["zedd"])
        found = node.simulate(REQUEST.replace(payload=register, max_gas_amount=100))
        words, status = reason_of(found)
        assert not found.success
        assert "out of gas" in words
        assert "_" not in words
        assert found.vm_status in status


REGISTER = toolkit.EntryFunction("0xcafe::registry::register", ["qq"])


@pytest.mark.parametrize(
    ("about", "path", "adds"),
    [
        ({"payload": REGISTER, "max_gas_amount": 5}, "max_gas_amount", ""),
        ({"sender": "0x12345"}, "sender", "It has 0 APT"),
        ({"fee_payer": "0x12345"}, "fee_payer", "It has 0 APT"),
        ({"fee_payer": "0x12345", "estimate_max_gas_amount": True}, "fee_payer", "It has 0 APT"),
        (
            {"max_gas_amount": 2_000_000, "gas_unit_price": 1_000_000},
            "max_gas_amount",
            "It has 9,989.92869131 APT, and the fee may be 20,000 APT",
        ),
    ],
)
def test_the_reason_is_that_of_explain(about, path, adds):
    """The form adds a balance only if it is the reason, and a number of gas units only if the user has set one."""
    with toolkit.connect() as node:
        builder = SimulationBuilder(node)
        builder.request = REQUEST.replace(**about)
        builder.simulate()
        failure = builder._now.answer.failure
        (why,) = [line for line in builder.simulation.explain().splitlines() if line.startswith("Why: ")]
        reason, _, balance = failure.words.partition(". It has ")
        assert reason.lower() == why.removeprefix("Why: ").removesuffix(".").replace("_", " ").lower()
        assert balance == adds.removeprefix("It has ")
        assert list(builder.errors) == [path]
        assert bool(failure.affordable) is ("20,000" in adds)
        builder.close()


def test_an_overflow_is_one_sentence():
    """The message of the VM and the function; the status is in small print."""
    with toolkit.connect() as node:
        found = node.simulate(REQUEST.replace(payload=toolkit.EntryFunction("0xfa17::vault::deposit", [2**64 - 1])))
        words, detail = reason_of(found)
        assert words == "Multiplication overflow in 0xfa17::vault::deposit"
        assert "at code offset" in detail


def test_the_original_is_named_until_an_edit():
    """Another press of Simulate keeps what is known of the committed transaction, and its version stays in its field."""
    with toolkit.connect() as node:
        builder = SimulationBuilder(node)
        builder.start_from(4902)
        said = builder._status.text
        assert "at version 4,902 with 4,385 gas units" in said
        builder.simulate()
        assert (builder._status.text, builder._draft.committed) == (said, "4902")
        type_in(builder, sender="0xb0b")
        builder.simulate()
        assert "4,902" not in builder._status.text
        builder.close()


def test_a_committed_transaction_has_short_addresses_in_the_program_as_in_the_fields():
    """Bytes with zeros at their beginning are left alone, as are the arguments of the request itself."""
    with toolkit.connect() as node:
        builder = SimulationBuilder(node)
        builder.start_from(4973)
        assert "'0xb0b'" in builder.python
        assert executed(builder)["request"].payload.arguments[0] == "0xb0b"
        with pytest.raises(toolkit.InputError, match="embedded node"):
            builder.start_from(4652)
        press(builder, "load")
        type_in(builder, committed="9,999,999")
        press(builder, "load")
        assert builder.errors["committed"].startswith("version 9,999,999 does not exist yet")
        builder.close()
