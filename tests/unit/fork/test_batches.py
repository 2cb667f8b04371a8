"""Batches on a fork of a node with bytecode: the Move machine runs the script."""

from __future__ import annotations

import pytest

import toolkit
from tests.unit.fork import small_node
from tests.unit.vm import small_ledger as small
from toolkit import Batch, EntryFunction, SimulationRequest
from toolkit.errors import InputError
from toolkit.move._bcs import uleb128
from toolkit.vm import _code as code
from toolkit.vm import _types as t
from toolkit.vm._module import write_module

CALC = t.ModuleId(small.ALICE, "calc")
BOX = code.StructDefinition(CALC, "Box", t.STORE, (), (code.Field("v", t.U64),))
USE, KIND = code.StructUse(BOX), BOX.type(())
SERIALIZED_SCRIPT_ARGUMENTS = 72


def calc():
    """Return a module with boxes that must not be lost."""

    def public(name, steps, parameters=(), results=(), **more):
        return small.function(CALC, name, steps, parameters, results, visibility=code.PUBLIC, **more)

    field = code.FieldUse(BOX, (), 0)
    functions = [
        public("wrap", [("MoveLoc", 0), ("Pack", USE), "Ret"], [t.U64], [KIND]),
        public("unwrap", [("MoveLoc", 0), ("Unpack", USE), "Ret"], [KIND], [t.U64]),
        public(
            "peek", [("MoveLoc", 0), ("ImmBorrowField", field), "ReadRef", "Ret"], [t.Reference(KIND, False)], [t.U64]
        ),
        public(
            "set",
            [("MoveLoc", 1), ("MoveLoc", 0), ("MutBorrowField", field), "WriteRef", "Ret"],
            [t.Reference(KIND, True), t.U64],
        ),
        public(
            "at_most", [("CopyLoc", 0), ("CopyLoc", 1), "Gt", ("BrTrue", 5), "Ret", ("LdU64", 9), "Abort"], [t.U64] * 2
        ),
        small.function(CALC, "hidden", ["Ret"]),
    ]
    return write_module(CALC, functions=functions, structs=[BOX], version=6)


@pytest.fixture
def fork():
    with small_node.node().serving() as served, toolkit.connect(served.url) as node:
        fork = node.fork(4)
        fork.publish([calc()], metadata=b"\x01\x04calc")
        features = small.feature_bits((*small.FLAGS, 5, SERIALIZED_SCRIPT_ARGUMENTS))
        key = small.resource_key(t.FRAMEWORK, t.struct("0x1::features::Features"))
        fork._ledger.commit({key: (uleb128(len(features)) + features, None)})
        yield fork


def call(name, *arguments):
    return EntryFunction(f"0xaa::calc::{name}", arguments)


BOXES = [
    call("wrap", 5),
    call("set", Batch.result(0).borrow_mut(), 7),
    call("peek", Batch.result(0).borrow()),
    call("at_most", Batch.result(2), 7),
    call("unwrap", Batch.result(0)),
]


def test_references_and_values_that_must_not_be_lost(fork):
    """The abilities come from the bytecode; a result is read by an abort."""
    done = fork.execute(Batch(BOXES), sender=small_node.ALICE)
    assert done.vm_status == "Executed successfully"
    read = fork.simulate(Batch(BOXES, abort=Batch.result(4)), sender=small_node.ALICE)
    assert read.transaction.abort.code == 7
    with pytest.raises(InputError, match=r"call 0, 0xaa::calc::wrap: toolkit\.Batch\.result\(0\) is left over"):
        fork.simulate(Batch(BOXES[:3]), sender=small_node.ALICE)


def test_gas_of_each_call_is_that_of_the_log(fork):
    """Internal gas, exact: it adds up to the profile, and a call costs the same in a prefix."""
    done = fork.simulate(Batch(BOXES), sender=small_node.ALICE)
    frame = done.gas_by_call()
    assert frame["function"].tolist()[1:3] == ["0xaa::calc::wrap", "0xaa::calc::set"]
    assert frame["execution_gas"].sum() + frame["io_gas"].sum() == done.profile.tree.total
    assert (frame["execution_gas"].iloc[1:-1] > 0).all()
    shorter = fork.simulate(Batch(BOXES).prefix(3, abort=1), sender=small_node.ALICE).gas_by_call()
    assert shorter["execution_gas"].iloc[2] == frame["execution_gas"].iloc[2]


def test_a_batch_that_was_discarded_has_no_gas_of_calls(fork):
    """Nothing ran: a row of zeros would say that its calls are free."""
    discarded = fork.simulate(SimulationRequest(Batch(BOXES), sender=small_node.ALICE, max_gas_amount=1))
    assert discarded.vm_status == "MAX_GAS_UNITS_BELOW_MIN_TRANSACTION_GAS_UNITS"
    with pytest.raises(InputError, match=discarded.vm_status):
        discarded.gas_by_call()


def test_the_call_that_fails(fork):
    """It is named; calls after it were not reached and cost nothing."""
    calls = [*BOXES[:3], call("at_most", Batch.result(2), 6), *BOXES[4:]]
    failed = fork.simulate(Batch(calls), sender=small_node.ALICE)
    assert failed.transaction.abort.code == 9
    assert "Call 3 fails: 0xaa::calc::at_most." in failed.explain()
    gas = failed.gas_by_call()["execution_gas"].tolist()
    assert gas[4] > 0
    assert gas[5:] == [0, 0]


def test_a_private_function_cannot_be_linked(fork):
    failed = fork.simulate(
        Batch([BOXES[0], BOXES[4].replace(arguments=[Batch.result(0)]), call("hidden")]), sender="0xaa"
    )
    assert failed.vm_status == "LOOKUP_FAILED"
    assert "Call 2 fails: 0xaa::calc::hidden." in failed.explain()
