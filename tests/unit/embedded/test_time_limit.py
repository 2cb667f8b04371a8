"""Contract code that never ends and uses no gas is ended by a time limit, and leaves nothing behind."""

from __future__ import annotations

import sys
import threading
import weakref

import pytest

import toolkit
from toolkit.embedded import Ledger, Module, Resource, Table, _time_limit, entry, signer, u64, view
from toolkit.embedded._time_limit import TimeLimitReached, run_within
from toolkit.errors import InputError

SHORT_S = 0.05


class Loops(Module, address="0x100b"):
    """A counter, and functions that never return."""

    class Count(Resource):
        value: u64
        items: Table[u64, u64]

    def init_module(self, account: signer) -> None:
        self.move_to(account, Loops.Count(value=0, items=self.new_table()))

    @view
    def value(self) -> u64:
        return self.borrow(Loops.Count, "0x100b").value

    @view
    def endless(self) -> u64:
        while True:
            pass

    @entry
    def add(self, account: signer) -> None:
        with self.borrow_mut(Loops.Count, "0x100b") as count:
            count.value += 1

    @entry
    def add_and_loop(self, account: signer) -> None:
        self.add(account)
        with self.borrow_mut(Loops.Count, "0x100b") as count:
            count.items.add(1, 1)
            count.value += 1
            self.endless()


@pytest.fixture
def ledger():
    made = Ledger(execution_timeout_s=SHORT_S)
    made.publish(Loops)
    return made


def test_a_view_that_loops_fails(ledger):
    """In the process a view that never returns is an InputError with the status, the limit and how to raise it."""
    with pytest.raises(InputError, match=r"EXECUTION_LIMIT_REACHED[\s\S]* 0\.05 s: [\s\S]*Ledger\.execution_timeout_s"):
        ledger.view("0x100b::loops::endless")
    assert ledger.view("0x100b::loops::value")[0] == [0]


def test_a_transaction_that_loops_changes_nothing_and_uses_all_gas(ledger):
    """What it wrote is undone, its gas does not depend on how far it came, and the account goes on."""
    call = toolkit.EntryFunction("0x100b::loops::add_and_loop")
    done = [ledger.execute(call, sender="0xa11ce", max_gas_amount=gas) for gas in (100, 1_000_000)]
    # What comes first: the gas of its turns, or the time.
    assert [(one.success, one.vm_status.split("\n")[0], one.gas_used) for one in done] == [
        (False, "Out of gas", 100),
        (False, "EXECUTION_LIMIT_REACHED", 1_000_000),
    ]
    assert all([event.type for event in one.events] == ["0x1::transaction_fee::FeeStatement"] for one in done)
    assert ledger.view("0x100b::loops::value")[0] == [0]
    assert ledger.execute(toolkit.EntryFunction("0x100b::loops::add"), sender="0xa11ce").success
    assert ledger.view("0x100b::loops::value")[0] == [1]


def test_a_profile_shows_where_the_gas_went(ledger):
    """The charges of an interrupted call add up to its gas."""
    call = toolkit.EntryFunction("0x100b::loops::add_and_loop")
    profile = ledger.profile(toolkit.SimulationRequest(call, sender="0xa11ce", max_gas_amount=5_000))
    assert (profile.success, profile.gas_used) == (False, 5_000)
    assert sum(charge.internal_gas for charge in profile.charges) == 5_000 * profile.scaling


def test_code_that_swallows_every_exception_ends_too(ledger):
    """A bare except, which only code without a source can have, does not keep a loop alive."""
    source = """
class Swallower(Module, address="0x5a"):
    @view
    def endless(self) -> u64:
        while True:
            pass

    @view
    def swallowing(self) -> u64:
        for _ in range(2):
            try:
                self.endless()
            except:
                pass
        return self.endless()
"""
    scope = {"Module": Module, "view": view, "u64": u64, "__name__": "__main__"}
    exec(source, scope)  # noqa: S102 - what is tested
    ledger.publish(scope["Swallower"])
    with pytest.raises(InputError, match="EXECUTION_LIMIT_REACHED"):
        ledger.view("0x5a::swallower::swallowing")


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), True, "5"])
def test_a_limit_is_a_positive_number(seconds):
    """Anything but a number above 0, or None, is an error."""
    with pytest.raises(InputError, match="a number of seconds above 0, or None"):
        Ledger(execution_timeout_s=seconds)


def test_a_limit_can_be_set_and_lifted(ledger):
    """The attribute applies to the next execution."""
    ledger.execution_timeout_s = None
    assert ledger.view("0x100b::loops::value")[0] == [0]
    ledger.execution_timeout_s = SHORT_S
    with pytest.raises(InputError, match="EXECUTION_LIMIT_REACHED"):
        ledger.view("0x100b::loops::endless")


def test_threads_are_ended_one_by_one():
    """Each of several threads gets its own error, and none gets one after its execution ended."""

    def endless():
        while True:
            pass

    ends = []

    def work():
        for _ in range(3):
            try:
                run_within(SHORT_S, endless, TimeoutError)
            except TimeoutError as error:
                ends.append(error.args)
            ends.append(run_within(60, lambda: "quick", TimeoutError))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, ends)) == sorted(map(str, [(SHORT_S,), "quick"] * 12))


def test_nothing_is_lost_in_a_callback(monkeypatch):
    """Python drops an exception that arrives in the callback of a weak reference, and prints it."""
    dropped = []
    monkeypatch.setattr(sys, "unraisablehook", dropped.append)
    seen = weakref.WeakSet()

    def collecting():
        while True:
            seen.add(threading.local())  # its end calls back into the module `_weakrefset`
            for _ in range(20):
                pass

    for _ in range(30):
        with pytest.raises(TimeLimitReached):
            run_within(SHORT_S, collecting, TimeLimitReached)
    assert [each.exc_type for each in dropped] == []


def test_nothing_arrives_outside_of_an_execution():
    """Executions whose time is over as they begin end or are ended, at whatever place; afterwards nothing is watched."""
    outcomes = set()
    for _ in range(300):
        try:
            outcomes.add(run_within(0.0, lambda: sum(range(3_000)), TimeLimitReached))
        except TimeLimitReached:
            outcomes.add("ended")
    assert outcomes <= {"ended", sum(range(3_000))}
    assert not _time_limit._RUNNING


def test_the_end_of_an_execution_can_be_repeated():
    """The exception may arrive while the end waits for the watching thread; the next call ends the execution."""
    execution = _time_limit._Execution(60)
    execution.looking = True
    raise_here = _time_limit._raising(threading.get_ident(), _time_limit._Expired)
    threading.Timer(0.05, raise_here).start()
    with pytest.raises(_time_limit._Expired):
        execution.end()
    execution.looking = False
    execution.end()
