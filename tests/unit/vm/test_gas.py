"""Gas does not depend on the way it is counted: per instruction, or per straight piece of code."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.vm.small_ledger import ALICE, COUNTER, call, function, schedule_bcs, state, u64
from toolkit import vm
from toolkit.vm import _types as t
from toolkit.vm._environment import Environment
from toolkit.vm._errors import MoveError
from toolkit.vm._gas import Meter
from toolkit.vm._loader import Loader
from toolkit.vm._module import write_module
from toolkit.vm._schedule import Schedule
from toolkit.vm._state import module_key


def outcome(ledger, transaction, **options):
    done = vm.execute(transaction, ledger.get, simulate=True, **options)
    return done.status, done.gas_used, done.fee, done.memory_left, done.writes


@pytest.mark.parametrize("max_gas", [*range(5, 40), 100, 5_000])
@pytest.mark.parametrize("transaction", ["loop", "fill", "start"])
def test_gas_is_the_same_with_and_without_a_log(transaction, max_gas):
    arguments = [u64(5)] if transaction == "loop" else []
    ledger = state(**{"txn.memory_quota": 2_000})
    data = call(transaction, *arguments, max_gas=max_gas)
    assert outcome(ledger, data, log=True) == outcome(ledger, data)


ADDERS = ["Add", "Sub", "Mul", "Div", "Mod", "BitOr", "Xor"]


@st.composite
def programs(draw):
    """Draw straight code that works on two locals; some of it fails on the way."""
    code = []
    for _ in range(draw(st.integers(1, 12))):
        value = draw(st.sampled_from([0, 1, 2, 2**63, 2**64 - 1]))
        code += [("CopyLoc", 1), ("LdU64", value), draw(st.sampled_from(ADDERS)), ("StLoc", 1)]
        if draw(st.booleans()):
            code += [("CopyLoc", 1), ("VecPack", (t.U64, 1)), ("StLoc", 2)]
        if draw(st.booleans()):
            code += ["LdTrue", ("BrTrue", len(code) + 2)]
    return [*code, "Ret"]


@given(programs(), st.integers(5, 25))
def test_gas_of_code_that_fails_anywhere_is_the_same(code, max_gas):
    signer = t.Reference(t.SIGNER, False)
    run = function(COUNTER, "run", code, [signer], locals_=[t.U64, t.Vector(t.U64)], is_entry=True)
    first = [("LdU64", 3), ("StLoc", 1)]
    shifted = [(name, operand + 2) if name == "BrTrue" else (name, operand) for name, operand in run.code]
    run = function(COUNTER, "run", first + shifted, [signer], locals_=[t.U64, t.Vector(t.U64)], is_entry=True)
    ledger = state(modules=[(COUNTER, write_module(COUNTER, functions=[run]))])
    data = call("run", max_gas=max_gas)
    assert outcome(ledger, data, log=True) == outcome(ledger, data)


@pytest.fixture
def schedule():
    return Schedule.from_bcs(schedule_bcs())


def test_a_failed_charge_takes_what_is_left(schedule):
    meter = Meter(schedule, 1, log=True)
    meter.charge(400, "A")
    with pytest.raises(MoveError, match="OUT_OF_GAS"):
        meter.charge(601, "B", "why")
    assert (meter.execution, meter.balance) == (1_000, 0)
    assert [str(entry) for entry in meter.log] == ["A 400", "B why 600 ! OUT_OF_GAS"]


def test_a_charge_over_a_limit_is_booked(schedule):
    meter = Meter(schedule, 1_000_000)
    with pytest.raises(MoveError, match="IO_LIMIT_REACHED"):
        meter.charge_io(20_000_000, "LOAD")
    assert meter.io == 20_000_000


def test_memory_is_taken_before_gas(schedule):
    meter = Meter(schedule, 1_000, log=True)
    with pytest.raises(MoveError, match="MEMORY_LIMIT_EXCEEDED"):
        meter.charge(5, "PACK", "", 2_000_000)
    assert (meter.execution, meter.memory) == (0, 0)


def test_the_storage_fee_is_rounded_up_once(schedule):
    meter = Meter(schedule, 1_000)
    meter.charge_storage(10, 3)
    assert (meter.storage, meter.fee) == (3_334, 10)


def test_equal_schedules_are_one(schedule):
    assert Schedule.from_bcs(schedule_bcs()) is schedule
    assert schedule["txn.keyless.base"] == 0


@pytest.mark.parametrize(("version", "price"), [(13, 0), (14, 4)])
def test_a_price_that_the_version_does_not_read_is_zero(version, price):
    assert Schedule.from_bcs(schedule_bcs(version)).per_node == price


def test_a_module_that_does_not_decode_names_no_abort_codes():
    """The name of an abort code is looked up there: the status of the abort stays."""
    loader = Loader(Environment((state() | {module_key(COUNTER): (b"bad", None)}).get))
    assert loader.named_abort(COUNTER, 1) is None
    with pytest.raises(MoveError, match="UNEXPECTED_DESERIALIZATION_ERROR"):
        loader.find(COUNTER)


def test_modules_are_paid_for_once():
    done = vm.execute(call("bump", ALICE), state().get, simulate=True, log=True)
    assert [entry.name for entry in done.log].count("DEP") == 1


def test_a_local_of_a_type_that_is_too_large_fails_the_call():
    """The limit holds for types of locals as for those that instructions make; the type is charged first."""
    large = t.U64
    for _ in range(25):
        large = t.Vector(large)
    run = function(COUNTER, "run", ["Ret"], [t.Reference(t.SIGNER, False)], locals_=[large], is_entry=True)
    ledger = state(modules=[(COUNTER, write_module(COUNTER, functions=[run]))])
    assert outcome(ledger, call("run")) == outcome(ledger, call("run"), log=True)
    status, *_ = outcome(ledger, call("run"))
    assert (status.kind, status.code) == ("execution_failure", "VM_MAX_TYPE_DEPTH_REACHED")
