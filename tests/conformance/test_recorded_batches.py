"""Batches against the recordings of the published composer and of a real node, which ran what it composed."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.conformance import recorded_batches as recorded
from tests.conformance import recorded_executions
from toolkit.errors import InputError
from toolkit.vm._batch import check_straight, is_straight
from toolkit.vm._module import read_script
from toolkit.wire._bcs_requests import EncodedScript, ScriptArgument

pytestmark = pytest.mark.skipif(
    not recorded.FOLDER.is_dir(), reason="the recorded batches are not beside this checkout (../shared/data/batches)"
)

# The published composer cannot parse the names of these modules. The node ran the first two of three batches.
UNPARSED = "unexpected token"


def hand_made():
    return recorded.document("batches_calls")["batches"]


def random_batches():
    return recorded.document("random_5")["batches"]


def test_the_scripts_do_what_those_of_the_published_composer_do():
    """Same parameters, locals, instructions and arguments in 80 hand-made and 120 random batches."""
    count = 0
    for batch in [*hand_made(), *random_batches()]:
        payload = (batch["composed"] or {}).get("payload")
        if payload is None:
            continue
        count += 1
        theirs, ours = recorded.recorded_script(payload), recorded.composed(batch)
        assert recorded.meaning(ours.code) == recorded.meaning(theirs.code), batch["name"]
        assert ours.arguments == tuple(one.value for one in theirs.arguments), batch["name"]
        assert read_script(ours.code).version == 6
    assert count == 200


def test_what_the_composer_refuses_is_refused():
    """19 of the 21, with the call; the other two name modules that the published composer cannot parse, and run."""
    refused, composed = {}, []
    for batch in hand_made():
        error = batch["composed"].get("composer_error")
        if error is None:
            continue
        try:
            recorded.composed(batch)
        except InputError as own:
            refused[batch["name"]] = str(own)
        else:
            composed.append(batch)
    assert len(refused) + len(composed) == 21
    assert all(UNPARSED in batch["composed"]["composer_error"] for batch in composed)
    assert all("call " in message for message in refused.values())
    for batch in composed:  # the script is what the node got without checks
        theirs = recorded.recorded_script(batch["unchecked"]["payload"])
        assert recorded.meaning(recorded.composed(batch).code) == recorded.meaning(theirs.code)


@pytest.mark.parametrize(
    ("name", "place", "status"),
    [
        ("a mutable reference as result", "call 3, ", "COPYLOC_EXISTS_BORROW_ERROR"),
        ("wrong: note left over", "call 0, ", "UNSAFE_RET_UNUSED_VALUES_WITHOUT_DROP"),
        ("wrong: moved twice", "call 2, ", "MOVELOC_UNAVAILABLE_ERROR"),
        ("wrong: copy of a note", "call 1, ", "COPYLOC_WITHOUT_COPY_ABILITY"),
        ("wrong: constraint of a type argument", "call 1, ", "CONSTRAINT_NOT_SATISFIED"),
        ("wrong: type of a result", "arguments[0]: expected u64, got toolkit.Batch.result(0, 1), which is bool", ""),
        ("wrong: value where a reference goes", "pass toolkit.Batch.result(0).borrow()", ""),
        ("wrong: immutable borrow where mutable goes", "pass toolkit.Batch.result(0).borrow_mut()", ""),
        ("wrong: signer by value", "call 0, ", ""),
        ("wrong: second signer of one", "there is no signer 1", ""),
    ],
)
def test_a_refusal_names_the_call_the_argument_and_the_status(name, place, status):
    """The status is that of a node that got the batch without checks."""
    batch = next(one for one in hand_made() if one["name"] == name)
    with pytest.raises(InputError) as caught:
        recorded.composed(batch)
    assert place in str(caught.value)
    assert status in str(caught.value)
    if status:
        assert batch["unchecked"]["outcome"]["vm_status"].startswith(status)


def test_prefixes_compose_as_recorded():
    """A prefix is refused where the published composer refuses it, mostly because a value is left over without drop."""
    composed, refused = 0, 0
    for batch in hand_made():
        for prefix in batch["prefixes"]:
            try:
                script = recorded.composed(batch, calls=prefix["calls"])
            except InputError:
                assert "composer_error" in prefix, batch["name"]
                refused += 1
                continue
            if "payload" in prefix:
                theirs = recorded.recorded_script(prefix["payload"])
                assert recorded.meaning(script.code) == recorded.meaning(theirs.code), batch["name"]
                composed += 1
            else:
                assert UNPARSED in prefix["composer_error"]
    assert (composed, refused) == (133, 55)


@pytest.mark.parametrize("file", ["closing_main", "closing_fine"])
def test_every_prefix_that_ends_with_an_abort_composes(file):
    """Every one of them ran on the node, also those that leave values over."""
    batches = {one["name"]: one for one in hand_made()}
    count = 0
    for closed in recorded.document(file)["closed"]:
        for prefix in closed["aborted_prefixes"]:
            script = recorded.composed(batches[closed["name"]], calls=prefix["calls"], abort=12345)
            theirs = recorded.recorded_script(prefix["payload"])
            assert recorded.meaning(script.code) == recorded.meaning(theirs.code), closed["name"]
            count += 1
    assert count > 200


def test_statuses_of_scripts_without_checks():
    """The straight-line check gives the status that the node gave for the same script."""
    count = 0
    for batch in hand_made():
        outcome = batch.get("unchecked", {}).get("outcome")
        if outcome is None:
            continue
        script = read_script(recorded.recorded_script(batch["unchecked"]["payload"]).code)
        assert is_straight(script.main)
        expected = outcome["vm_status"].partition("\n")[0]
        try:
            check_straight(script.main, script.struct_handles)
            found = "runs"
        except Exception as error:  # noqa: BLE001 - its status is compared
            found = getattr(error, "status", repr(error))
        runs = outcome["success"] or expected == "MISSING_DEPENDENCY"
        assert found == ("runs" if runs else expected), batch["name"]
        count += 1
    assert count == 15


def test_every_prefix_of_random_batches_composes():
    """Each of them ran on the node, closed by an abort."""
    counts = [
        len(recorded.composed(batch, calls=prefix["calls"], abort=12345).code) > 0
        for batch in random_batches()
        for prefix in batch["aborted_prefixes"]
    ]
    assert len(counts) > 400


machine = pytest.mark.skipif(
    not recorded_executions.FOLDER.is_dir(), reason="the recorded executions are not beside this checkout"
)


def runs_here(batch):
    """Return whether the framework of the recorded executions has what a batch calls."""
    called = {call["function"].split("::")[1] for call in batch["calls"]}
    lacking = any(call["function"].endswith("::or_zero") for call in batch["calls"])  # option::destroy_with_default
    lacking |= batch["name"] == "out of gas in 2"  # it runs, for a minute
    return called <= {"bank", "box", "pool"} and not lacking and batch.get("expect") != "node"


def run(batch):
    """Run the script of a batch, as composed here."""
    script = recorded.composed(batch)
    arguments = tuple(ScriptArgument("serialized", one) for one in script.arguments)
    return recorded.run(batch, EncodedScript(script.code, (), arguments))


@machine
def test_batches_run_on_the_machine_as_on_the_node():
    """Our scripts and the published composer's give the same events and writes; outcome and gas equal the node's."""
    ran = Counter()
    for batch in [*hand_made(), *random_batches()]:
        payload = (batch["composed"] or {}).get("payload")
        if payload is None or not runs_here(batch):
            continue
        done, other = run(batch), recorded.run(batch, recorded.recorded_script(payload))
        assert (done.status, done.gas_used, done.fee) == (other.status, other.gas_used, other.fee), batch["name"]
        # Events and writes have no address that depends on the script.
        assert (done.events, done.writes) == (other.events, other.writes), batch["name"]
        outcome = batch["bcs"]["outcome"] if "bcs" in batch else batch["outcome"]
        assert done.status.success == outcome["success"], (batch["name"], done.status)
        if done.status.kind == "abort":
            assert f"{done.status.location}: " in outcome["vm_status"]
            assert f"{done.status.code:#x}" in outcome["vm_status"]
        assert {"total_charge_gas_units": done.gas_used, **done.fee._asdict()} == outcome["fee"], batch["name"]
        ran[done.status.kind] += 1
    assert ran == {"success": 57, "abort": 7, "execution_failure": 9}


@machine
def test_gas_of_each_call_is_that_of_the_recorded_prefixes():
    """In thousandths of a gas unit. The types of all locals are made at the start, so a first call may differ by 3."""
    closed = {one["name"]: one["aborted_prefixes"] for one in recorded.document("closing_fine")["closed"]}
    count = 0
    for batch in hand_made():
        modules = {call["function"].rpartition("::")[0] for call in batch["calls"]}
        if batch["composed"].get("payload") is None or not runs_here(batch) or len(modules) > 1:
            continue  # a module is paid by its first user on the node, and before the calls here
        costs = run(batch).gas_of_calls()
        for prefix in closed[batch["name"]][1:]:
            so_far = sum(execution for execution, _ in costs[: prefix["calls"] + 1]) / 1_000
            assert abs(so_far - prefix["fee"][0]) < 3, batch["name"]
            count += 1
            if batch["expect"] == f"abort {prefix['calls'] - 1}":
                break  # later calls were not reached
    assert count == 77
