"""A cause of code names the functions that the call runs: the call is executed at both ends of the step."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

import toolkit
from tests.unit.fork import small_node
from tests.unit.gas.observed import cause_of
from tests.unit.vm import small_ledger as small
from toolkit import embedded
from toolkit.gas._observations import Cause
from toolkit.gas._steps import Step
from toolkit.vm import CodeChanges
from toolkit.vm import _code as code
from toolkit.vm._module import write_module

GET = toolkit.ViewFunction("0xcafe::counter::get", [small_node.ALICE])
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


@pytest.fixture(scope="module")
def ledger():
    return embedded.Ledger.with_history()


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


def test_a_function_that_the_upgrade_adds_is_the_reason_why_its_call_answers(ledger):
    view = toolkit.ViewFunction("0xfa17::vault::preview", [100_000_000])
    [at] = [mark.version for mark in ledger.milestones if "0xfa17::vault upgraded" in mark.text]
    gas = ledger.profile(view, version=at).gas_used
    step = Step("n", "a", "f", "view@version", at - 1, at, None, gas, None, True, "invalid_input", None)
    with toolkit.connect(ledger) as node:
        [change] = cause_of(step, node, view).found[Cause.CODE]
    assert change.ran_changes.added == ("preview",)
    assert not change.ran_changes.changed
