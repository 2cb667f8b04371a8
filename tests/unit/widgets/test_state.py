"""The state of each form as a pure function: events in, state out; no widget, and nothing is asked of a node."""

from __future__ import annotations

import dataclasses

import pytest
from msgspec.structs import replace

import toolkit
from toolkit.gas._calls import Call
from toolkit.move import AbiMap, UInt, decode_module_abi, resolve_layout
from toolkit.move._values import DeclaredTable
from toolkit.widgets._functions import ResolvedFunction
from toolkit.widgets._gas_explorer import INCOMPLETE, StudyState
from toolkit.widgets._messages import Status
from toolkit.widgets._readings import ViewState, Wanted
from toolkit.widgets._simulation_builder import SimulationState, WantedSimulation
from toolkit.widgets._state import (
    FAILS,
    OUTDATED,
    UNFILLED,
    Answer,
    Answered,
    Edited,
    Entered,
    Filled,
    Learned,
    Moved,
    Noted,
    Pressed,
    Refused,
    Restored,
    Said,
    step,
)
from toolkit.widgets._table_item_builder import KnownTable, TableItemState

PAY = "0x5407::shop::pay"
ABI = decode_module_abi(
    {
        "address": "0x5407",
        "name": "shop",
        "exposed_functions": [
            {"name": "pay", "is_entry": True, "params": ["&signer", "address", "u64"]},
            {"name": "price", "is_view": True, "params": ["u64"], "return": ["u64"]},
            {"name": "count", "is_view": True, "params": [], "return": ["u64"]},
            {"name": "of", "is_view": True, "generic_type_params": [{"constraints": []}], "return": ["u64"]},
        ],
        "structs": [],
    }
)
PRICE, COUNT, OF = "0x5407::shop::price", "0x5407::shop::count", "0x5407::shop::of"
HANDLE = "0x" + "5c" * 32


class Abis:
    """ABIs of one version, as a look-up finds them."""

    version = 5
    _abis = AbiMap({("0x5407", "shop"): ABI})

    def layout(self, tag):
        return resolve_layout(tag, self._abis)

    def module_abi(self, address, name):
        return ABI


def known(name):
    """Return the event of a look-up that found a function of the shop."""
    abi = next(one for one in ABI.exposed_functions if one.name == name.rpartition("::")[2])
    function = ResolvedFunction(str(toolkit.move.FunctionId.parse(name)), abi, Abis())
    call = function.with_types(("",) * len(abi.generic_type_params))
    return Learned({"functions": {function.name: function}, "resolved": {(function.name, call.type_arguments): call}})


def typed(state, **entries):
    """Return the state after an edit in the browser."""
    return step(state, Edited(replace(state.entries, seq=state.entries.seq + 1, **entries), typed=True))


@pytest.fixture
def empty():
    """Return an empty simulation form after it was opened."""
    state = SimulationState()
    return step(state, Edited(state.entries))


@pytest.fixture
def filled(empty):
    """Return a simulation form with a complete request."""
    state = step(typed(empty, sender="0xa11ce", function=PAY), known(PAY))
    return typed(state, arguments=("0xb0b", "100"), lead="fields")


def test_an_empty_form_has_no_errors_until_a_button_is_pressed(empty):
    """Missing entries are errors after a press only, and the message counts them."""
    assert (empty.errors, empty.request, empty.code_note) == ({}, None, UNFILLED)
    pressed = step(empty, Pressed())
    assert pressed.errors.keys() == {"sender", "function"}
    assert pressed.status.kind == "error"
    assert pressed.status.text.startswith("2 ")


def test_a_state_is_never_changed(empty):
    """An event gives another state; the one before stays as it was."""
    before = dataclasses.replace(empty)
    assert typed(empty, sender="0xa11ce") != empty
    assert empty == before
    with pytest.raises(dataclasses.FrozenInstanceError):
        empty.strict = True


def test_fields_follow_from_what_was_learned(empty):
    """A function has a field per argument once its ABI is known; the first pick is incomplete, not out of date."""
    picked = typed(empty, sender="0xa11ce", function=PAY)
    assert picked.call is None
    looked = step(picked, known(PAY))
    assert looked.entries.arguments == ("", "")
    assert looked.findings.missing.keys() == {"arguments.0", "arguments.1"}
    assert looked.findings.errors == {}
    assert (looked.request, looked.code_note) == (None, UNFILLED)
    assert typed(looked, arguments=("0xb0b", "x"), lead="fields").code_note == UNFILLED


def test_fields_and_json_are_two_forms_of_the_same_arguments(filled):
    """The one that was edited last gives the other; JSON that does not fit leaves the request of before."""
    assert filled.entries.raw == '["0xb0b", 100]'
    assert filled.request.payload.arguments == ("0xb0b", 100)
    other = typed(filled, raw='["0xca7", 7]', lead="raw")
    assert other.entries.arguments == ("0xca7", "7")
    broken = typed(other, raw='["0xca7"', lead="raw")
    assert broken.request == other.request
    assert (list(broken.findings.errors), broken.code_note) == (["arguments"], OUTDATED)


def fields_of(part, path=()):
    """Return the paths of the controls in a part."""
    inside = getattr(part, "fields", ())
    paths = [one for step, field in inside for one in fields_of(field, path if step == "" else (*path, str(step)))]
    return [".".join(path), *paths]


@pytest.mark.parametrize("late", [False, True], ids=["answered", "before the answer"])
def test_another_function_has_no_entries_of_the_last_one(late):
    """Nor if the browser sends them again, because it has not received the answer to its last edit."""
    state = step(typed(ViewState(), function=PRICE), known(PRICE))
    state = typed(state, arguments=("5",), lead="fields")
    assert state.request.arguments == (5,)
    held = state.entries
    for text in ("", "0x5407::shop::coun", COUNT):
        entries = replace(held if late else state.entries, function=text, seq=state.entries.seq + 1)
        state = step(state, Edited(entries, typed=True))
    state = step(step(state, known(COUNT)), Pressed())
    assert (state.entries.arguments, state.entries.raw, state.errors) == ((), "", {})
    late_edit = replace(held, function=COUNT, at="version", version="7", seq=state.entries.seq + 1)
    state = step(state, Edited(late_edit, typed=True))
    assert (state.request, state.versions) == (toolkit.ViewFunction(COUNT), 7)


def test_the_type_of_a_generic_function_goes_with_it():
    """Also if the function has no arguments."""
    state = step(typed(ViewState(), function=OF), known(OF))
    state = typed(state, type_arguments=("u8",))
    assert state.entries.type_arguments == ("u8",)
    state = step(typed(state, function=COUNT), known(COUNT))
    assert (state.entries.type_arguments, state.errors, state.request) == ((), {}, toolkit.ViewFunction(COUNT))


@pytest.mark.parametrize("late", [False, True], ids=["answered", "before the answer"])
@pytest.mark.parametrize("price", ["5", "x"], ids=["right", "wrong"])
def test_the_entries_of_a_function_return_with_its_name(late, price):
    """After a mistyped name, and after another function with entries of its own; also entries that are wrong."""
    one, other = known(PRICE).facts, known(OF).facts
    state = step(typed(ViewState(), function=PRICE), Learned({name: {**one[name], **other[name]} for name in one}))
    state = typed(typed(state, arguments=("7",), lead="fields"), arguments=(price,), lead="fields")
    held = state.entries
    for text in (f"{PRICE}x", OF):
        entries = replace(held if late else state.entries, function=text, seq=state.entries.seq + 1)
        state = step(state, Edited(entries, typed=True))
    assert state.entries.arguments == ()
    state = typed(typed(state, type_arguments=("u8",)), function=PRICE)
    assert (state.entries.arguments, state.entries.type_arguments) == ((price,), ())
    assert ("arguments.0" in state.errors) == (price == "x")
    assert typed(state, function=OF).entries.type_arguments == ("u8",)


@pytest.mark.parametrize("raw", ['["elm"]', "[", "5"])
def test_each_error_has_a_field(raw):
    """Arguments in a link, of a function that takes none, are shown where they can be removed."""
    state = step(ViewState(), Restored({"function": COUNT, "raw": raw}))
    state = step(step(state, known(COUNT)), Pressed())
    shown = {"arguments" if path == "raw" else path for path in fields_of(state.fields)}
    assert state.errors.keys() == {"arguments"} <= shown
    assert typed(state, raw="", lead="raw").errors == {}


def test_code_of_the_present_entries_is_not_out_of_date():
    """What is known of them may change without an edit; the next edit that gives no request makes the code older."""
    state = typed(ViewState(), function=PRICE, raw='["x"]')
    assert (state.request.arguments, state.code_note) == (("x",), "")
    state = step(state, known(PRICE))
    assert state.code_note.startswith(FAILS)
    assert typed(state, raw='["y"]', lead="raw").code_note == OUTDATED
    assert typed(state, function="x::").code_note == UNFILLED  # the code is of another function
    missing = step(typed(ViewState(), function=PRICE), Learned({"looked": {"function": "there is none"}}))
    assert missing.code_note == f"{FAILS}: see Function."


def test_an_answer_is_of_what_was_asked(filled):
    """It is out of date as soon as the entries ask for something else, and again the answer when they are undone."""
    asked = filled.wanted
    assert asked == WantedSimulation(filled.request)
    answer = Answer(result="result", asked=asked, facts={"Gas used": 1})
    answered = step(step(filled, Noted({"unfinished": True})), Answered(answer))
    assert (answered.result, answered.stale, answered.serial) == ("result", "", 1)
    changed = typed(answered, arguments=("0xb0b", "101"))
    assert changed.stale.startswith("From before")
    assert typed(changed, arguments=("0xb0b", "100")).stale == ""
    assert step(answered, Noted({"unfinished": True})).stale.startswith("From an earlier")
    assert answered.recent == ((filled.entries, {"Gas used": 1}),)


def test_a_simulation_at_a_version_is_another_simulation(filled):
    """The version is a part of what is asked for."""
    at = typed(filled, at="version", version="-1")
    assert at.wanted == WantedSimulation(filled.request, -1)
    assert typed(filled, at="version", version="x").errors.keys() == {"version"}


def test_the_message_of_a_result_goes_with_it(filled):
    """Any event that changes what the result is for: a call that runs first is not an edit, and is not read again."""
    at_version = typed(filled, at="version", version="7")
    done = step(at_version, Answered(Answer(result=1, asked=at_version.wanted)))
    done = step(done, Said("good", "Success"))
    assert (done.stale, done.status) == ("", Status("good", "Success"))
    assert step(done, Learned({"assets": {}})).status == done.status
    kept = step(done, Learned({"earlier": (done.request,)}))
    assert kept.stale
    assert kept.status == Status()
    busy = step(step(done, Noted({"busy": True})), Learned({"earlier": (done.request,)}))
    assert busy.status == done.status


def test_a_call_with_an_error_is_not_studied(filled):
    """Nothing leads on from it."""
    assert filled.has_call
    assert not typed(filled, arguments=("0xb0b", "x"), lead="fields").has_call
    assert not step(filled, Learned({"looked": {"function": "there is none"}})).has_call


def test_what_the_node_refuses_goes_with_the_next_edit(filled):
    """At its field, and beside the buttons if it is of no field; a message stays while a job runs."""
    refused = step(filled, Refused("arguments.1", "too much"))
    assert refused.errors == {"arguments.1": "too much"}
    assert typed(refused, sender="0xb0b").errors == {}
    assert step(filled, Refused("node", "gone")).status.text == "gone"
    busy = step(step(filled, Noted({"busy": True})), Said("hint", "Simulating"))
    assert typed(busy, sender="0xb0b").status.text == "Simulating"
    assert typed(step(busy, Noted({"busy": False})), sender="0xb0b").status.text == ""


def test_accounts_in_errors_have_their_names(filled):
    """An address that has a name is followed by it, but not that of a module, and not if the name is there already."""
    anna = dataclasses.replace(filled, names={toolkit.move.parse_address("0xa11ce"): "anna"})
    refused = step(anna, Refused("node", "0xa11ce cannot call 0xa11ce::m::f, 0xb0b can"))
    assert refused.errors["node"] == refused.status.text == "0xa11ce (anna) cannot call 0xa11ce::m::f, 0xb0b can"
    assert anna.named("0xa11ce anna pays") == "0xa11ce anna pays"


def test_another_node_keeps_the_entries_and_has_no_result(filled):
    """Names of accounts are those of the new node."""
    answered = step(filled, Answered(Answer(result="result", asked=filled.wanted)))
    moved = step(answered, Moved(None, {toolkit.move.parse_address("0xa11ce"): "anna"}))
    assert (moved.result, moved.request) == (None, filled.request)
    assert moved.findings.notes["sender"] == "= anna"


def test_what_a_link_keeps_is_what_was_typed(empty, filled):
    """Also arguments that are not complete, whose fields are there as soon as the function is known again."""
    half = typed(filled, arguments=("0xb0b", ""), lead="fields", raw="")
    kept = {name: getattr(half.saved(), name) for name in ("sender", "function", "arguments", "lead")}
    restored = step(empty, Restored(kept))
    assert step(restored, known(PAY)).entries.arguments == ("0xb0b", "")
    with pytest.raises(toolkit.errors.InputError):
        step(empty, Restored({"sender": 5}))


def test_a_view_is_asked_for_with_its_versions():
    """The head, one version, or a plan; a wrong plan leaves the versions of before."""
    state = step(ViewState(), Filled(toolkit.ViewFunction("0x5407::shop::price", [5])))
    assert state.wanted == Wanted(state.request, None)
    state = step(state, Entered("versions", "0:100/5"))
    assert (state.wanted.versions, state.wanted.single) == ("0:100/5", False)
    wrong = typed(state, plan="100:0")
    assert wrong.errors.keys() == {"plan"}
    assert wrong.wanted.versions == "0:100/5"
    assert wrong.trait("versions") == "100:0"


def test_a_table_of_an_account_fills_the_handle_and_the_types():
    """The first one, until another is chosen; another owner takes them away."""
    tables = [
        KnownTable("0xcafe::registry::Registry", DeclaredTable(HANDLE, "address", "u64", "records")),
        KnownTable("0xcafe::registry::Registry", DeclaredTable("0x" + "5d" * 32, "u8", "bool", "prices")),
    ]
    owner = toolkit.move.parse_address("0xcafe")
    state = step(typed(TableItemState(), owner="0xcafe"), Learned({"tables": {owner: tables}}))
    assert (state.entries.handle, state.entries.key_type) == (HANDLE, "address")
    state = typed(state, table="1")
    assert (state.entries.key_type, state.key_layout) == ("u8", UInt(8))
    state = typed(state, arguments=("7",), lead="fields")
    assert (state.request.key, state.place) == (7, "0x" + "5d" * 32)
    assert typed(state, owner="0xb0b").entries.handle == ""


def test_an_edit_that_began_before_a_look_up_ended_does_not_undo_it():
    """The browser may send a draft without the table that was found meanwhile, or with one of the owner before."""
    tables = [KnownTable("0xcafe::registry::Registry", DeclaredTable(HANDLE, "address", "u64", "records"))]
    owner = toolkit.move.parse_address("0xcafe")
    begun = typed(TableItemState(), owner="0xcafe")
    state = step(begun, Learned({"tables": {owner: tables}}))
    for late in (begun.entries, state.entries):
        draft = replace(late, raw="7", seq=state.entries.seq + 1)
        assert step(state, Edited(draft, typed=True)).entries.handle == HANDLE
    left = typed(state, owner="0xb0b")
    draft = replace(state.entries, owner="0xb0b", raw="7", seq=left.entries.seq + 1)
    made = step(left, Edited(draft, typed=True)).entries
    assert (made.table, made.handle, made.key_type) == ("", "", "")


def test_the_calls_of_a_study_are_in_the_state():
    """One of them is in the fields; another is shown only if that one is complete."""
    with toolkit.connect() as node:
        opened = step(StudyState(), Moved(node, {}))
        first = typed(opened, function="0x1::chain_id::get")
        assert [call.name for call in first.calls] == ["chain_id::get"]
        added = first.with_calls((*first.calls, None), 1)
        added = step(first, Learned({"calls": added.calls, "entries": added.entries}))
        assert (added.entries.function, added.calls[1]) == ("", None)
        stays = typed(added, chosen="0")
        assert (stays.entries.chosen, stays.status.text) == ("1", INCOMPLETE)
        back = typed(typed(added, function="0xcafe::registry::size"), chosen="0")
        assert back.entries.function == "0x1::chain_id::get"
        assert [call.name for call in back.request.calls] == ["chain_id::get", "registry::size"]
        saved = {name: getattr(back.saved(), name) for name in ("calls", "chosen", "function")}
        assert step(opened, Restored(saved)).request == back.request
        study = toolkit.Study(node=node, calls=[Call(view="0x1::chain_id::get")], versions="5:9")
        assert step(back, Filled(study)).wanted == study.digest
