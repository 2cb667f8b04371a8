"""A cause of code names the functions that the call runs: the call is executed at both ends of the step."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

import toolkit
from tests.unit.fork import small_node
from tests.unit.gas.observed import cause_of
from tests.unit.vm import small_ledger as small
from toolkit import embedded
from toolkit.fork._fork import run_call
from toolkit.gas._calls import Call
from toolkit.gas._observations import Cause
from toolkit.gas._steps import Step
from toolkit.gas.causes import _finding as finding
from toolkit.gas.causes._evidence import Evidence
from toolkit.vm import CodeChanges
from toolkit.vm import _code as code
from toolkit.vm._module import write_module

GET = toolkit.ViewFunction("0xcafe::counter::get", [small_node.ALICE])
BUMP = toolkit.EntryFunction("0xcafe::counter::bump", arguments=[small_node.ALICE])
AT = 3  # the place of the call in whose transaction the code is replaced


def counter_with(**bodies):
    """Return the module `counter`, with other bodies of some functions."""
    functions = [
        code.FunctionDefinition(**{**vars(one), "code": bodies[one.name]}) if one.name in bodies else one
        for one in small.counter_functions()
    ]
    views = small.metadata(get=1, text=1, endless=1, deep=1)
    return write_module(small.COUNTER, functions=functions, structs=[small.VALUE], metadata=views, version=8)


def body(name, *before):
    """Return the body of a function after some instructions."""
    [found] = [one for one in small.counter_functions() if one.name == name]
    return (*(small.op(*one) if isinstance(one, tuple) else small.op(one) for one in before), *found.code)


@contextmanager
def upgraded(module):
    """Connect to a ledger whose module `counter` is replaced, and yield it with the version of that."""
    calls = [("start",), ("bump", small.ALICE), ("bump", small.ALICE), ("bump", small.ALICE), ("loop", small.u64(1))]
    before, now = small_node.committed(calls[: AT + 1])
    key = small_node.module_key(small.COUNTER)
    before[AT].writes.append((key, "modify", module, None))
    now[key] = (module, None)
    made = small_node.StateNode(sent=[*before, *small_node.continued(now, [*calls[AT + 1 :]] * 2, AT + 1)])
    with made.serving() as served, toolkit.connect(served.url, cache=None) as node:
        yield node, made.versions[AT]


def change_of(node, ends, gas, call=GET):
    step = Step("n", "a", "f", "view@version", *ends, *gas, True, True, None, None)
    [change] = cause_of(step, node, call).found[Cause.CODE]
    return change


def test_the_changed_function_that_the_call_runs_is_named_alone():
    """Two functions change; a view runs one of them."""
    dearer = [("LdU64", 1), "Pop"] * 500
    with upgraded(counter_with(get=body("get", *dearer), stop=body("stop", ("LdU64", 2), "Pop"))) as (node, at):
        ends = at - 1, at + 1  # the node of these tests does not serve changes as JSON, so not the very transaction
        gas = [node.fork(version).view(GET).gas_used for version in ends]
        change = change_of(node, ends, gas)
        assert gas[1] > gas[0]
        assert sorted(change.code.changed) == ["get", "stop"]
        assert change.ran == {"get"}
        assert change.ran_changes == CodeChanges((), (), ("get",))
        other = change_of(node, ends, (gas[0], gas[1] + 1))  # the node reported another gas, so this did not run there
    assert (other.ran, other.ran_changes) == (None, None)


def test_a_call_that_runs_no_changed_function_is_not_given_one():
    with upgraded(small_node.counter_with(5)) as (node, at):
        gas = node.fork(at).view(GET).gas_used
        change = change_of(node, (at - 1, at + 1), (gas, gas))
    assert change.code.changed == ("bump",)
    assert change.ran == {"get"}
    assert change.ran_changes is None


def test_of_the_steps_at_changed_code_the_largest_are_executed(monkeypatch):
    monkeypatch.setattr(finding, "MAX_EXECUTED_STEPS", 1)
    text = toolkit.ViewFunction("0xcafe::counter::text")
    dearer = [("LdU64", 1), "Pop"] * 500
    with upgraded(counter_with(get=body("get", *dearer), text=body("text", *dearer[:1000], *dearer))) as (node, at):
        ends, calls = (at - 1, at + 1), {"get": Call.of(GET), "text": Call.of(text)}
        steps = []
        for name, call in calls.items():
            gas = [node.fork(version).view(call.request).gas_used for version in ends]
            steps.append(Step("n", name, name, "view@version", *ends, *gas, True, True, None, None))
        done = []
        found = finding.causes_of(steps, node, calls, advance=done.append)
    assert 0 < steps[0].change < steps[1].change
    assert [found[one].found[Cause.CODE][0].ran for one in steps] == [None, {"text"}]
    assert done == [1, 1]


@pytest.mark.parametrize(
    ("gas", "success", "ran"),
    [
        (None, False, {"get"}),
        (None, None, None),  # the node does not say that the code ran
        (None, True, None),
        (5, False, None),
    ],
)
def test_a_call_that_begins_to_fail_is_known_to_run_if_it_fails_here_too(gas, success, ran):
    with upgraded(counter_with(get=(small.op("LdU64", 7), small.op("Abort")))) as (node, at):
        before = node.fork(at - 1).view(GET).gas_used
        code = None if success else "invalid_input"
        step = Step("n", "a", "f", "view@version", at - 1, at + 1, before, gas, True, success, None, code)
        [change] = cause_of(step, node, GET).found[Cause.CODE]
    assert change.ran == ran


def test_an_execution_ends_at_the_gas_limit_and_proves_nothing_then():
    call = Call.of(toolkit.ViewFunction("0xcafe::counter::endless"))
    with upgraded(small_node.counter_with(5)) as (node, at):
        fork, evidence = node.fork(at), Evidence(node)
        done = run_call(fork, call.request, max_gas=3)
        assert (done.status.kind, done.gas_used) == ("out_of_gas", 3)
        assert evidence.execute(call, at, max_gas=3) is None
        gas = fork.view(GET).gas_used
        for request in (GET, toolkit.SimulationRequest(BUMP, sender=small_node.ALICE, gas_unit_price=1)):
            used = gas if request is GET else fork.simulate(request).gas_used
            assert run_call(fork, request, max_gas=used).gas_used == used
            assert run_call(fork, request, max_gas=used - 1).status.kind == "out_of_gas"


@pytest.fixture(scope="module")
def ledger():
    return embedded.Ledger.with_history(cache=True)


@pytest.mark.parametrize(
    ("call", "event", "ran"),
    [
        ("0xfa17::vault::share_price", "0xfa17::vault upgraded", ((), (), ("share_price",))),
        ("0xde5c::desk::quote", "0xfeed::price_feed upgraded", ((), (), ("price",))),
    ],
)
def test_on_the_embedded_ledger_too(ledger, call, event, ran):
    """The vault's upgrade also adds `preview`, which `share_price` does not run; the desk runs code of the feed."""
    view = toolkit.ViewFunction(call, [10] if call.endswith("quote") else [])
    [at] = [mark.version for mark in ledger.milestones if event in mark.text]
    gas = [ledger.profile(view, version=version).gas_used for version in (at - 1, at)]
    with toolkit.connect(ledger) as node:
        assert change_of(node, (at - 1, at), gas, view).ran_changes == ran
    with embedded.serve(ledger) as url, toolkit.connect(url, cache=None) as node:
        change = change_of(node, (at - 1, at), gas, view)
    assert (change.code, change.ran) == (None, None)


def test_an_embedded_ledger_of_this_process_executes_as_its_forks_do(ledger):
    view = Call(view="0xfa17::vault::share_price")
    place = {"simulate": "0xb00c::order_book::place", "arguments": [True, 100, 5], "sender": "0xa11ce"}
    simulation = Call(**place, at="version")
    with toolkit.connect(ledger) as node:
        evidence = Evidence(node)
        for version in (2_400, 4_500):
            fork = node.fork(version)
            for call, done in ((view, fork.view(view.request)), (simulation, fork.simulate(simulation.request))):
                ran = evidence.execute(call, version, max_gas=1)
                assert (ran.success, ran.gas_used) == (True, done.gas_used)
                assert call.function in ran.functions
            assert ran.functions == done.profile.functions


def test_a_function_that_the_upgrade_adds_is_the_reason_why_its_call_answers(ledger):
    view = toolkit.ViewFunction("0xfa17::vault::preview", [100_000_000])
    [at] = [mark.version for mark in ledger.milestones if "0xfa17::vault upgraded" in mark.text]
    gas = ledger.profile(view, version=at).gas_used
    step = Step("n", "a", "f", "view@version", at - 1, at, None, gas, None, True, "invalid_input", None)
    with toolkit.connect(ledger) as node:
        [change] = cause_of(step, node, view).found[Cause.CODE]
    assert change.ran_changes.added == ("preview",)
    assert not change.ran_changes.changed
