"""The simulation builder, by setting and reading its traits."""

from __future__ import annotations

import ast

import ipywidgets
import pytest
from ipywidgets import Widget
from traitlets import TraitError

import toolkit
from toolkit.errors import InputError
from toolkit.widgets import SimulationBuilder
from toolkit.widgets._form import SimulationForm

ALICE = "0x" + "a11ce".zfill(64)
TRANSFER = toolkit.EntryFunction("0x1::aptos_account::transfer", arguments=["0xb0b", 100])
REQUEST = toolkit.SimulationRequest(TRANSFER, sender=ALICE)


def texts(widget):
    """Return all markup a widget shows now."""
    found = [widget.value] if isinstance(widget, ipywidgets.HTML) else []
    for child in getattr(widget, "children", ()):
        found += texts(child)
    return found


def shown(widget):
    return "\n".join(text for text in texts(widget) if "<style>" not in text)


def described(widget, description):
    """Return the control or button of a description inside a widget."""
    inside = [widget]
    while getattr(inside[0], "description", None) != description:
        inside = [*inside[1:], *getattr(inside[0], "children", ())]
    return inside[0]


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
        ("sender", "alice", "not an address: 'alice'"),
        ("function", "0x1::transfer", "not a function id"),
        ("type_arguments", "0x1::a::B<u8", "position 12"),
        ("arguments", '["0xb0b", 100', "line 1, column 14: expecting ',' delimiter"),
        ("arguments", '{"to": "0xb0b"}', "got an object; expected a JSON array"),
        ("arguments", "100", "got a number"),
        ("arguments", "[1.5]", "not have floating point"),
        ("arguments", "[NaN]", "NaN is not JSON"),
        ("arguments", "[" * 100_000, "too many nested brackets"),
        ("arguments", "[" + "9" * 5000 + "]", "expected a JSON array"),
        ("sender", "", "expected the sender's address"),
    ],
)
def test_a_bad_entry_is_told_at_its_field_and_leaves_the_request(filled, name, text, said):
    """What cannot be read is named with the field, in traits and under the entry; mending it clears that."""
    good = getattr(filled, name)
    setattr(filled, name, text)
    assert filled.request == REQUEST
    assert list(filled.errors) == [name]
    assert said in filled.errors[name]
    assert filled.errors[name] in filled.error
    assert shown(filled).count('class="ltk-error"') == 1
    assert shown(filled).count("From the last valid entries") == 2
    setattr(filled, name, good)
    assert (filled.error, filled.request) == ("", REQUEST)
    assert "From the last valid" not in shown(filled)


def test_several_bad_entries_are_all_told(filled):
    """Each field has its own error."""
    filled.sender, filled.function = "alice", "transfer"
    assert set(filled.errors) == {"sender", "function"}
    assert filled.error.startswith("Sender: not an address")
    assert "; Function: not a function id" in filled.error


def test_type_arguments_stand_on_lines_or_between_commas(filled):
    """Commas inside of a type do not split it."""
    filled.type_arguments = "0x1::pair::Pair<u8, u64>, bool\n\nvector<u8>"
    assert filled.request.payload.type_arguments == ("0x1::pair::Pair<u8, u64>", "bool", "vector<u8>")


def test_estimate_options_go_into_the_request(filled):
    """An option that is touched is said; one that is not is left to the node."""
    filled.estimate_gas_unit_price = False
    filled.estimate_prioritized_gas_unit_price = True
    assert filled.request.query() == {"estimate_prioritized_gas_unit_price": "true"}
    assert filled.request.estimate_gas_unit_price is False
    assert filled.request.estimate_max_gas_amount is None


def test_the_python_sends_the_same_request(filled):
    """The snippet parses, and its request is the builder's."""
    tree = ast.parse(filled.python)
    request = next(node.value for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "request")
    assert eval(compile(ast.Expression(request), "", "eval"), {"toolkit": toolkit}) == filled.request  # noqa: S307
    assert "toolkit.connect()" in filled.python
    assert max(map(len, filled.python.splitlines())) <= 88


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
    described(filled, "Simulate").click()
    assert filled.simulation.success


def test_buttons_rest_while_the_node_is_asked(memory, filled):
    """A second press while an answer is awaited is not possible, and the builder says it is busy."""
    seen, button = [], described(filled, "Simulate")
    real = memory.send

    def send(request):
        seen.append((filled.busy, button.disabled))
        return real(request)

    memory.send = send
    filled.simulate()
    assert set(seen) == {(True, True)}
    assert not button.disabled


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
        ({"function": "0x1::aptos_account::trasnfer"}, "function", "did you mean transfer?"),
        ({"function": "0x1::aptos_account::zzz"}, "function", "entry functions are transfer, transfer_coins"),
        ({"function": "0x1::aptos_account::exists_at"}, "function", "a view function, see node.view"),
        ({"type_arguments": "u8"}, "type_arguments", "takes 0 type arguments, got 1"),
        ({"function": "0x1::aptos_account::transfer_coins"}, "type_arguments", "takes 1 type argument, got 0"),
        ({"arguments": '["0xb0b"]'}, "arguments", "expected 2 (address, u64), got 1"),
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
    """After a check a misfit is told at once, keeps the request, and asks the node nothing."""
    assert filled.check()
    assert "Matches transfer(address, u64)" in shown(filled)
    asked = len(memory.asked)
    filled.arguments = '["0xb0b", "many"]'
    assert "expected u64" in shown(filled)
    assert list(filled.errors) == ["arguments"]
    assert filled.request == REQUEST
    assert len(memory.asked) == asked


def test_the_json_preview_shows_arguments_as_they_are_sent(filled):
    """With the ABI known, a u64 is the string that the node reads."""
    assert "&quot;0xb0b&quot;,\n      100\n" in shown(filled)
    filled.check()
    assert "&quot;,\n      &quot;100&quot;\n" in shown(filled)


def test_a_function_of_a_module_that_does_not_exist_is_refused(memory, filled):
    """The node answers that there is none, so the request is not sent."""
    filled.function = "0xcafe::nothing::run"
    filled.simulate()
    assert memory.bodies == []
    assert "the module 0xcafe::nothing does not exist" in filled.error


def test_a_function_of_an_unknown_module_is_tried(memory, filled):
    """Without an ABI nothing can be checked; the node itself judges."""
    filled.function = "0xcafe::secret::run"
    filled.simulate()
    assert memory.bodies[-1]["payload"]["function"].endswith("cafe::secret::run")
    assert filled.simulation is not None


def test_what_the_node_refuses_is_told_and_old_results_go(memory, filled):
    """An error of the node stands beside the buttons, escaped, until the next entry."""
    filled.simulate()
    memory.refusal = {"message": "not <b>now</b>", "error_code": "invalid_input", "vm_error_code": None}
    filled.simulate()
    assert list(filled.errors) == ["node"]
    assert "not <b>now</b>" in filled.error
    assert filled.simulation is None
    assert "not &lt;b&gt;now&lt;/b&gt;" in shown(filled)
    filled.arguments = '["0xb0b", 101]'
    assert filled.error == ""
    assert "now" not in shown(filled)


def test_an_answer_that_cannot_be_read_is_told(memory, filled):
    """A node that breaks its own contract gives a text beside the buttons, not a traceback."""
    memory.answer["changes"][0]["address"] = "nowhere"
    filled.simulate()
    assert "not an address" in filled.errors["node"]
    assert not filled.busy


def test_results_of_an_earlier_request_say_so(filled):
    """After an edit the results stay, marked; the old request makes them fresh again."""
    filled.simulate()
    assert "The entries have changed" not in shown(filled)
    filled.arguments = '["0xb0b", 101]'
    assert "The entries have changed" in shown(filled)
    filled.request = REQUEST
    assert "The entries have changed" not in shown(filled)


def test_a_request_that_the_form_cannot_show_is_refused(builder):
    """A script has no place in this form; the text names the other way, and nothing changes."""
    builder.request = REQUEST
    with pytest.raises(InputError, match=r"must be an EntryFunction.*node\.simulate"):
        builder.request = toolkit.SimulationRequest(toolkit.wire.Script("0xa11c"), sender=ALICE)
    assert builder.request == REQUEST
    with pytest.raises(TraitError):
        builder.request = "transfer"


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


def test_labels_belong_to_their_entries(node):
    """Each entry carries its own description, which the browser ties to it as a label."""
    labels = {name: control.description for name, control in SimulationForm(node).controls.items()}
    assert labels["type_arguments"] == "Type arguments"
    assert len(set(labels.values())) == len(labels) == 7


def test_closing_leaves_nothing_behind(node):
    """close() closes every model it opened and takes its observers off."""
    before = set(Widget.get_manager_state()["state"])
    builder = SimulationBuilder(node, request=REQUEST)
    builder.simulate()
    builder.simulate()
    control = described(builder, "Sender")
    builder.close()
    assert set(Widget.get_manager_state()["state"]) == before
    builder.sender = "0x1"
    assert control.value == "0xa11ce"
    assert builder.request == REQUEST
    builder.close()
