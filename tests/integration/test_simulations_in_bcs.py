"""With ``encoding="bcs"`` simulations are sent in BCS; what comes of them is what JSON gives."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import toolkit
from toolkit import embedded
from toolkit.wire import PublicKey

TRANSFER = toolkit.EntryFunction("0x1::aptos_account::transfer", arguments=["0xb0b", 100])
REGISTER = toolkit.EntryFunction("0xcafe::registry::register", arguments=["brand-new"])
KEY = "0x" + "d7" * 32

CASES = {
    "a transfer": (TRANSFER, {}),
    "a table item": (REGISTER, {}),
    "a deleted item": (toolkit.EntryFunction("0xcafe::registry::release", arguments=["alice"]), {}),
    "an abort": (toolkit.EntryFunction("0xcafe::registry::register", arguments=["alice"]), {}),
    "out of gas": (REGISTER, {"max_gas_amount": 100, "gas_unit_price": 100}),
    "a sequence number": (TRANSFER, {"sequence_number": 2**64 - 2}),
    "a nonce": (TRANSFER, {"replay_protection_nonce": 7}),
    "a fee payer": (TRANSFER, {"fee_payer": "0xb0b"}),
    "a key": (TRANSFER, {"public_key": PublicKey(KEY)}),
}


@pytest.fixture(scope="module")
def nodes():
    """Return clients of one node, in JSON and in BCS."""
    with (
        embedded.serve(embedded.Ledger.with_history(versions=300, cache=True)) as url,
        toolkit.connect(url, cache=None) as in_json,
        toolkit.connect(url, cache=None, encoding="bcs") as in_bcs,
    ):
        yield in_json, in_bcs


def cells(frame):
    """Return the columns as Python values, JSON text parsed.

    The type of the signature and the order of changes are compared with a real node's answers: the embedded node has
    others in JSON.
    """
    columns = {name: pa.array(frame[name].array).to_pylist() for name in frame.columns if name != "signature_type"}
    for name in {"data", "payload"} & set(columns):
        columns[name] = [None if text is None else json.loads(text) for text in columns[name]]
    if "change_index" not in columns:
        return columns
    order = sorted(range(len(frame)), key=lambda row: (columns["state_key_hash"][row], columns["resource_type"][row]))
    del columns["change_index"]
    return {name: [values[row] for row in order] for name, values in columns.items()}


@pytest.mark.parametrize("case", CASES)
def test_frames_are_those_of_json(case, nodes):
    """Transactions, changes and events are equal cell by cell."""
    call, options = CASES[case]
    told, read = (node.simulate(call, sender="0xa11ce", **options) for node in nodes)
    for name in ("transactions", "events", "changes"):
        assert cells(getattr(read, name)) == cells(getattr(told, name)), name
    assert (read.gas, read.explain()) == (told.gas, told.explain())


def test_a_batch_in_bcs(nodes):
    """`fetch_simulations` sends BCS too, with the results of JSON."""
    requests = [toolkit.SimulationRequest(call, sender="0xa11ce") for call in (TRANSFER, REGISTER)]
    told, read = (toolkit.fetch_simulations(node, requests, progress=False) for node in nodes)
    assert cells(read.transactions) == cells(told.transactions)
    assert cells(read.events) == cells(told.events)


def test_what_has_no_types_goes_in_json(nodes):
    """A script has no ABI for its arguments, so it is sent in JSON."""
    with pytest.raises(toolkit.errors.InvalidRequest, match="bytecode"):
        nodes[1].simulate(toolkit.SimulationRequest(toolkit.Script(b"\x01", arguments=["5"]), sender="0xa11ce"))
