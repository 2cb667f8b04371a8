"""Events of handles over HTTP, in the client's typed frames."""

from __future__ import annotations

import pytest

import toolkit
from tests.unit.embedded.test_event_handles import BELL, Bell
from toolkit import embedded


@pytest.fixture(scope="module")
def url():
    ledger = embedded.Ledger()
    ledger.publish(Bell)
    for times in (1, 29):
        ledger.commit(f"{BELL}::bell::ring", times, sender="0xb0b")
    with embedded.serve(ledger) as address:
        yield address


@pytest.mark.parametrize("encoding", ["json", "bcs"])
def test_frames_of_simulations_and_transactions_have_key_and_number(url, encoding):
    """The typed frames are the same from JSON and from BCS."""
    call = toolkit.EntryFunction(f"{BELL}::bell::ring", arguments=[2])
    with toolkit.connect(url, encoding=encoding) as node:
        events = node.simulate(call, sender="0xb0b").events
        committed = toolkit.fetch_transactions(node, versions="8:8", progress=False).events
    rings = events[events["type"].str.endswith("::Ring")]
    assert rings[["creation_number", "sequence_number"]].values.tolist() == [[3, 30], [3, 31]]
    assert set(rings["account_address"]) == {"0x" + "be11".rjust(64, "0")}
    assert committed[["creation_number", "sequence_number"]].values.tolist() == [[3, 0], [0, 0]]
