"""Transactions and views on a small ledger of our own."""

from __future__ import annotations

import pytest

from tests.unit.vm.small_ledger import ALICE, COUNTER, VALUE, call, state, u64
from toolkit import vm
from toolkit.errors import InputError
from toolkit.vm._state import resource_key

VALUE_KEY = resource_key(ALICE, VALUE.type(()))


def run(ledger, transaction, **options):
    return vm.execute(transaction, ledger.get, simulate=True, **options)


def applied(ledger, done):
    """Return the state after an execution."""
    after = dict(ledger)
    for key, write in done.writes.items():
        if write.op == "delete":
            del after[key]
        else:
            after[key] = (write.value, write.metadata)
    return after


@pytest.fixture
def started():
    ledger = state()
    return applied(ledger, run(ledger, call("start")))


def test_a_resource_is_created_with_its_deposits():
    done = run(state(), call("start"))
    assert done.status.kind == "success"
    # The key has 32 + 1 + 32 + (1 + 7) + (1 + 5) + 1 bytes, the value 8: 40 octas each, and a slot.
    assert done.writes == {VALUE_KEY: ("create", bytes(8), (40_000, 40 * 88, 77))}
    assert done.fee.storage_fee_octas == 40_000 + 40 * 88
    assert done.gas_used == done.fee.storage_fee_octas + 8


def test_a_resource_is_changed_and_read(started):
    done = run(started, call("bump", ALICE))
    assert done.writes == {VALUE_KEY: ("modify", u64(1), (40_000, 3_520, 77))}
    assert done.fee.storage_fee_octas == 0
    seen = vm.run_view("0xcafe::counter::get", [], [ALICE], applied(started, done).get)
    assert seen.values == [u64(1)]


@pytest.mark.parametrize(
    ("transaction", "expected"),
    [
        (call("stop"), ("abort", 7, "0xcafe::counter", None)),
        (call("bump", ALICE), ("execution_failure", "MISSING_DATA", "0xcafe::counter", 1)),
        (call("loop", u64(10**9)), ("out_of_gas", "OUT_OF_GAS", None, None)),
        (call("fill", max_gas=200_000), ("execution_failure", "MEMORY_LIMIT_EXCEEDED", "0xcafe::counter", 5)),
        (call("missing"), ("miscellaneous_error", "FUNCTION_RESOLUTION_FAILURE", None, None)),
        (call("loop"), ("miscellaneous_error", "NUMBER_OF_ARGUMENTS_MISMATCH", None, None)),
        (call("loop", b"\1"), ("miscellaneous_error", "FAILED_TO_DESERIALIZE_ARGUMENT", None, None)),
        (call("get", ALICE), ("miscellaneous_error", "INVALID_MAIN_FUNCTION_SIGNATURE", None, None)),
        (call("f", module="0xcafe::nothing"), ("miscellaneous_error", "LINKER_ERROR", None, None)),
        (call("stop", max_gas=4), ("discard", "MAX_GAS_UNITS_BELOW_MIN_TRANSACTION_GAS_UNITS", None, None)),
        (call("stop", price=20_000), ("discard", "GAS_UNIT_PRICE_ABOVE_MAX_BOUND", None, None)),
    ],
)
def test_a_failure_has_kind_code_and_place(transaction, expected):
    changes = {"txn.max_execution_gas": 10**9, "txn.memory_quota": 10_000}
    ledger = state(version=42, **changes) if expected[1] != "MEMORY_LIMIT_EXCEEDED" else state(version=41, **changes)
    status = run(ledger, transaction).status
    assert (status.kind, status.code, status.location, status.offset) == expected
    assert status.success is False


def test_a_failure_changes_nothing(started):
    done = run(started, call("stop"))
    assert done.writes == {}
    assert done.fee.io_gas_units == 0
    assert done.gas_used > 0


@pytest.mark.parametrize(
    ("function", "code"), [("endless", "EXECUTION_LIMIT_REACHED"), ("deep", "CALL_STACK_OVERFLOW")]
)
def test_what_does_not_end_is_ended(function, code):
    assert vm.run_view(f"0xcafe::counter::{function}", [], [], state().get).status.code == code


def test_a_view_has_values_and_gas():
    seen = vm.run_view("0xcafe::counter::text", [], [], state().get)
    assert (seen.status.kind, seen.values, seen.gas_used) == ("success", [b"\2hi"], 2)


def test_an_entry_function_is_not_a_view():
    status = vm.run_view("0xcafe::counter::stop", [], [], state().get).status
    assert (status.code, status.message) == ("INVALID_MAIN_FUNCTION_SIGNATURE", "function not marked as view function")


@pytest.mark.parametrize(
    ("ledger", "name"),
    [
        (state(version=9), "gas feature version 9"),
        (state(version=44), "gas feature version 44"),
        (state(flags=(85, 93, 101)), "feature 101 without feature 103"),
        (state(flags=(85, 93, 105)), "feature 105"),
        ({}, "0x1::features::Features"),
    ],
)
def test_what_is_not_implemented_is_named(ledger, name):
    with pytest.raises(vm.Unsupported, match=name):
        run(ledger, call("stop"))


@pytest.mark.parametrize("fails_at", [0, 5])
def test_an_error_of_read_passes_as_it_is(fails_at):
    ledger, asked = state(), []

    def read(key):
        asked.append(key)
        if len(asked) > fails_at:
            raise KeyError("the source is closed")
        return ledger.get(key)

    with pytest.raises(KeyError, match="the source is closed"):
        vm.execute(call("bump", ALICE), read, simulate=True)
    asked.clear()
    with pytest.raises(KeyError, match="the source is closed"):
        vm.run_view("0xcafe::counter::get", [], [ALICE], read)


def test_a_transaction_needs_a_valid_signature_unless_it_is_simulated():
    done = vm.execute(call("start"), state().get)
    assert (done.status.kind, done.status.code, done.gas_used) == ("discard", "INVALID_SIGNATURE", 0)


def test_the_log_is_written_on_request(started):
    done = run(started, call("bump", ALICE), log=True)
    names = [entry.name for entry in done.log]
    assert names[:2] == ["INTRINSIC", "DEP"]
    assert names[-3:] == ["IO_WRITE", "STORAGE_WRITE", "STORAGE_FEE"]
    load = next(entry for entry in done.log if entry.name == "LOAD")
    assert load == ("LOAD", "0xaa 0xcafe::counter::Value some bytes=8", None, 300 + 4096, 40, None)
    assert str(load) == "LOAD 0xaa 0xcafe::counter::Value some bytes=8 io 4396 m+40"
    without = run(started, call("bump", ALICE))
    assert without.gas_used == done.gas_used
    with pytest.raises(InputError, match="log=True"):
        _ = without.log


def test_profile_and_trace_account_for_all_gas(started):
    done = run(started, call("fill", max_gas=10), log=True)
    charged = sum((entry.execution or 0) + (entry.io or 0) for entry in done.log)
    assert done.profile.tree.total == charged == 10_000
    frame = done.profile.to_frame()
    assert list(frame.columns) == ["function", "calls", "own_gas", "total_gas", "instructions"]
    assert frame["own_gas"].sum() == charged
    length = frame.set_index("function").loc[f"{COUNTER}::length"]
    assert (length["calls"], length["instructions"]) == (1, 3)
    trace = done.trace.to_frame()
    # Notebooks show them as the toolkit's other frames.
    assert frame.attrs["toolkit"]["own_gas"] == trace.attrs["toolkit"]["gas"] == {"unit": "internal gas units"}
    assert trace["instruction"].tolist()[:4] == ["VecPack(u64, 0)", "StLoc(1)", "MutBorrowLoc(1)", "LdU64(5)"]
    assert trace["depth"].max() == 2
    assert len(trace) == frame["instructions"].sum()


def test_a_change_of_tables_is_not_a_change_of_code():
    from tests.unit.vm.small_ledger import counter_functions, metadata
    from toolkit.vm._module import write_module

    functions = list(counter_functions())
    old = vm.Module.from_bytes(write_module(COUNTER, functions=functions, structs=[VALUE]))
    other = vm.Module.from_bytes(
        write_module(COUNTER, functions=[*reversed(functions[1:])], structs=[VALUE], metadata=metadata(get=1))
    )
    assert vm.code_changes(old, other) == ((), ("start",), ())
    assert vm.code_changes(other, old).added == ("start",)
