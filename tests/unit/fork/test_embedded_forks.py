"""Forks of embedded nodes: past versions, sequences, time and funds, without touching the node."""

from __future__ import annotations

import pytest

import toolkit
from toolkit.embedded import Ledger
from toolkit.errors import InputError

PLACE = toolkit.EntryFunction("0xb00c::order_book::place", [True, 100, 5])
ALICE = "0xa11ce"


@pytest.fixture(scope="module")
def node():
    with toolkit.connect(Ledger.with_history(versions=600, cache=True)) as one:
        yield one


def test_a_call_runs_at_a_past_version_and_builds_on_earlier_ones(node):
    head = node.ledger().version
    fork = node.fork(300)
    assert isinstance(fork, toolkit.Fork)
    assert (fork.base_version, fork.ledger_version) == (300, 300)
    depth = "0xb00c::order_book::depth"
    before = fork.view(depth).value
    assert before == node.view(depth, ledger_version=300).value
    seen = []
    for _ in range(5):
        assert fork.execute(PLACE, sender=ALICE).success
        seen.append(fork.view(depth).value)
    assert len({str(one) for one in [before, *seen]}) == 6
    assert node.ledger().version == head


def test_the_gas_of_a_simulation_at_the_head_is_that_of_the_node(node):
    done = node.fork().simulate(PLACE, sender=ALICE)
    assert done.gas_used == node.simulate(PLACE, sender=ALICE).gas_used
    assert done.profile.gas_used == done.gas_used


def test_funds_time_and_schedule(node):
    fork = node.fork(300)
    balance = toolkit.ViewFunction("0x1::coin::balance", [ALICE], type_arguments=["0x1::aptos_coin::AptosCoin"])
    owned = fork.view(balance).value
    fork.fund(ALICE, 123)
    assert fork.view(balance).value == owned + 123
    before = fork.node.ledger().timestamp
    fork.advance(seconds=3600)
    assert (fork.node.ledger().timestamp - before).total_seconds() >= 3600
    cheap = fork.simulate(PLACE, sender=ALICE).gas.execution_gas_units
    prices = {name: value * 100 for name, value in fork.gas_schedule.entries.items() if name.startswith("instr.")}
    fork.gas_schedule = prices
    assert fork.simulate(PLACE, sender=ALICE).gas.execution_gas_units > cheap + 5


def test_a_replay_does_not_apply_and_says_so(node):
    with pytest.raises(InputError, match="bytecode"):
        node.fork(300).replay(301)
    with pytest.raises(InputError, match="bytecode"):
        toolkit.replay(node, "300:310")


def test_a_copy_is_apart_from_its_ledger():
    ledger = Ledger.with_history(versions=300, cache=True)
    copy = ledger.copy(150)
    assert copy.transaction(150).hash == ledger.transaction(150).hash
    assert copy.digest() != ledger.digest()
    assert ledger.copy().digest() == ledger.digest()
    with pytest.raises(InputError, match="301"):
        ledger.copy(301)


def test_a_served_ledger_has_nothing_that_a_fork_could_run():
    """Over HTTP there are only its answers: the contracts are classes in the process of the server."""
    with toolkit.embedded.serve(Ledger()) as url, toolkit.connect(url) as far:
        for run in (far.fork, lambda: toolkit.replay(far, "0:0")):
            with pytest.raises(InputError, match="no bytecode"):
                run()
