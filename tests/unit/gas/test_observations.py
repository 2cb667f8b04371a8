"""From outcomes to observations: digests that see results and leave out what changes by itself."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from tests.unit.client.fakes import URL, FakeNode, answer, user_transaction
from toolkit.client._node import Node
from toolkit.errors import NodeUnreachable
from toolkit.frames._schema import OBSERVATIONS
from toolkit.gas._calls import Call
from toolkit.gas._observations import Source, fingerprint
from toolkit.gas._origin import Origin, stratum_columns
from toolkit.wire import EntryFunction, SimulationRequest, ViewFunction
from toolkit.wire._transactions import decode_page

NOW = datetime(2026, 5, 1, tzinfo=UTC)
ORIGIN = Origin("n", "abc", model=False, chain_id=4)
COUNT, PAY = Call.of("0x1::m::count"), Call(simulate="0x1::m::pay", arguments=[5], sender="0xa11ce")
REQUEST = SimulationRequest(EntryFunction("0x1::m::pay", arguments=[5]), sender="0xa11ce")


def simulated(**more):
    """Observe a simulation that a node answers with `more` in its transaction."""
    account_info = {"sequence_number": "7", "authentication_key": "0x" + "0" * 64}
    routes = {
        "GET /accounts/0xa11ce": answer(account_info),
        "POST /transactions/simulate": answer([user_transaction(**more)]),
    }
    return ORIGIN.simulation(PAY, Node(URL, transport=FakeNode(routes)).simulate(REQUEST), NOW)


def account(sequence_number):
    return {
        "address": "0xa11ce",
        "state_key_hash": "0x01",
        "type": "write_resource",
        "data": {"type": "0x1::account::Account", "data": {"sequence_number": str(sequence_number)}},
    }


def purse(total):
    data = {"type": "0x1::m::Purse", "data": {"total": str(total)}}
    return {"address": "0x5", "state_key_hash": "0x02", "type": "write_resource", "data": data}


def test_every_row_has_every_column():
    """Whatever the outcome, a row is a whole row of the observation frame."""
    rows = [simulated(), ORIGIN.failed(COUNT, 5, NodeUnreachable("cut"), NOW)]
    assert all(list(row) == OBSERVATIONS.names for row in rows)
    assert OBSERVATIONS.table_of_rows(rows).column_names == OBSERVATIONS.names
    assert len(OBSERVATIONS.table_of_rows([])) == 0


def test_an_aborted_simulation_is_observed_as_such():
    """It ran and failed: gas is there, success is False, no node error."""
    row = simulated(success=False, vm_status="Move abort in 0x1::m: 0x1")
    assert (row["success"], row["gas_used"], row["error_code"]) == (False, 9, None)
    assert row["vm_status"] == "Move abort in 0x1::m: 0x1"


def test_the_digest_leaves_out_the_sequence_number():
    """Two simulations one after the other write another sequence number and are the same result."""
    one = simulated(changes=[account(7), purse(5)], hash="0x1", expiration_timestamp_secs="5")
    two = simulated(changes=[account(8), purse(5)], hash="0x2", expiration_timestamp_secs="9")
    assert one["value_digest"] == two["value_digest"]


def test_the_digest_sees_another_write():
    """Another balance is another result, though the gas is the same."""
    assert simulated(changes=[purse(5)])["value_digest"] != simulated(changes=[purse(6)])["value_digest"]


def test_fingerprints_leave_out_what_changes_by_itself():
    """Expiration and sequence number are not what a call is; sender, arguments and kind are."""
    mark = fingerprint(REQUEST, Source.SIMULATE)
    assert mark == fingerprint(REQUEST.replace(sequence_number=9, expiration_timestamp_secs=5), Source.SIMULATE)
    assert mark != fingerprint(REQUEST.replace(sender="0xb0b"), Source.SIMULATE)
    assert mark != fingerprint(REQUEST.replace(gas_unit_price=5), Source.SIMULATE)
    call = ViewFunction("0x1::m::f", arguments=[1])
    assert fingerprint(call, Source.VIEW) != fingerprint(call, Source.SIMULATE)
    assert fingerprint(call, Source.VIEW) == fingerprint(ViewFunction("0x01::m::f", arguments=["1"]), Source.VIEW)
    assert len(mark) == 32


def committed(**more):
    """Return the columns that say what kind of work a committed transaction did."""
    body = json.dumps([user_transaction(10, type="user_transaction", **more)], indent=2).encode()
    return stratum_columns(decode_page(body)[0])


def deleted(kind, **more):
    return {"type": kind, "state_key_hash": "0x01", **more}


def payload(**more):
    return {"type": "entry_function_payload", "function": "0x1::m::f", "type_arguments": [], "arguments": []} | more


def test_a_committed_transaction_is_observed_with_what_makes_its_stratum():
    """Deleted slots, kind of signature, nonce, type arguments; an aborted one with its code."""
    called = payload(type_arguments=["0x1::m::A", "0x1::m::P<u8, u64>"])
    found = committed(
        changes=[
            deleted("delete_resource", address="0x5", resource="0x1::m::Purse"),
            deleted("delete_table_item", handle="0x6", key="0x00"),
            deleted("delete_module", address="0x5", module="0x5::m"),
            purse(5),
        ],
        payload=called,
        replay_protection_nonce="424242",
        signature={"type": "single_sender", "public_key": {"type": "keyless", "value": "0x"}},
        success=False,
        vm_status="Move abort in 0x1::m: E_TOO_BIG(0x7): too big",
    )
    assert found == {
        "payload_bytes": len(json.dumps(called, separators=(",", ":"))),
        "slots_deleted": 2,
        "authenticator": "single_sender:keyless",
        "orderless": True,
        "type_arguments": "0x1::m::A, 0x1::m::P<u8, u64>",
        "abort_code": 7,
    }


@pytest.mark.parametrize(
    ("signature", "kind"),
    [
        ({"type": "ed25519_signature", "public_key": "0x00"}, "ed25519_signature"),
        ({"type": "single_sender", "public_keys": [], "signatures_required": 2}, "single_sender:multi_key"),
        ({"type": "single_sender"}, "single_sender"),
        ({"type": "single_sender", "public_key": {"type": 5}}, "single_sender"),
        ({"type": "of_tomorrow", "public_key": 7}, "of_tomorrow"),
        (None, None),
    ],
)
def test_the_authenticator_is_the_kind_of_the_signature(signature, kind):
    """For a single sender, with the kind of its key, since keyless keys cost more; for an unknown kind, the type alone."""
    assert committed(signature=signature)["authenticator"] == kind


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (payload(), ""),
        (payload(type_arguments=["0x1::m::A"]), "0x1::m::A"),
        ({"type": "multisig_payload", "transaction_payload": payload(type_arguments=["u8"])}, "u8"),
        ({"type": "multisig_payload"}, None),
        (payload(type_arguments=5), None),
    ],
)
def test_type_arguments_are_those_of_the_function(given, found):
    """For a multisig payload, those of the inner function; None for a payload without a function."""
    assert committed(payload=given)["type_arguments"] == found


def test_the_size_of_a_payload_does_not_depend_on_the_spaces_of_its_text():
    """Two nodes that print the same payload with other spaces give the same size."""
    compact = json.dumps([user_transaction(10, type="user_transaction")], separators=(",", ":")).encode()
    assert stratum_columns(decode_page(compact)[0]) == committed()


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("Move abort in 0x1::coin: EINSUFFICIENT_BALANCE(0x10006): Not enough coins", 0x10006),
        ("Move abort in 0x1::m: 0x1", 1),
        ("Move abort: code 0xffffffffffffffff", 2**64 - 1),
        ("Out of gas", None),
        ("Execution failed in 0x1::m::f at code offset 3", None),
    ],
)
def test_the_abort_code_is_read_from_the_status(status, code):
    """Named or not; None if the transaction failed in another way."""
    assert committed(success=False, vm_status=status)["abort_code"] == code
    assert committed(success=True, vm_status=status)["abort_code"] is None
