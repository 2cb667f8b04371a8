"""The call that a transaction ran: of decrypted, multisig and stored payloads; payloads of unknown kinds stay rows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conformance.plain_values import records
from tests.unit.client.fakes import V2_EVENT, user_transaction
from toolkit.client._rebuilt import rebuild_request
from toolkit.frames._transactions import transaction_frames
from toolkit.wire._transactions import decode_page

BUY = {
    "type": "entry_function_payload",
    "function": "0xcafe::shop::buy",
    "type_arguments": ["0x1::aptos_coin::AptosCoin"],
    "arguments": ["5", ["0x1"]],
}
SAFE = {"type": "multisig_payload", "multisig_address": "0x5afe"}
HIDDEN = {
    "type": "encrypted_transaction_payload",
    "payload_hash": "0x11",
    "ciphertext": "0x00",
    "encryption_epoch": "5",
    "claimed_entry_fun": {"module": "0xbad::shop", "name": "steal"},
}
SCRIPT = {"type": "script_payload", "code": {"bytecode": "0xa1", "abi": None}, "type_arguments": ["u8"], "arguments": [True]}  # fmt: skip


def decrypted(payload: dict[str, Any]) -> dict[str, Any]:
    return HIDDEN | {"encrypted_state": "decrypted", "decrypted_payload": payload, "decryption_nonce": "7"}


def transaction(payload: Any, **more: Any) -> Any:
    document = user_transaction(payload=payload, **COMMITTED, **more)
    (found,) = decode_page(json.dumps([document]).encode())
    return found


COMMITTED = {
    "type": "user_transaction",
    "state_change_hash": "0x01",
    "event_root_hash": "0x01",
    "accumulator_root_hash": "0x01",
    "state_checkpoint_hash": None,
}
FUNCTION = f"0x{0xCAFE:064x}::shop::buy"


@pytest.mark.parametrize(
    "payload",
    [
        BUY,
        SAFE | {"transaction_payload": BUY},
        decrypted(BUY),
        decrypted(SAFE | {"transaction_payload": BUY}),
        BUY | {"type": "script_function_payload"},
    ],
    ids=["plain", "multisig", "decrypted", "decrypted multisig", "of 2022"],
)
def test_the_innermost_call_is_the_one_that_ran(payload):
    """Function, type arguments and arguments are those of the call; the payload's type and text stay the outer ones."""
    (row,) = transaction_frames([transaction(payload)])[0].to_dict("records")
    assert (row["function"], row["module"]) == (FUNCTION, FUNCTION.rpartition("::")[0])
    assert row["type_arguments"] == "0x1::aptos_coin::AptosCoin"
    assert json.loads(row["arguments"]) == ["5", ["0x1"]]
    assert (row["payload_type"], json.loads(row["payload"])) == (payload["type"], payload)


@pytest.mark.parametrize(
    ("payload", "types", "arguments"),
    [
        (SCRIPT, "u8", [True]),
        (decrypted(SCRIPT), "u8", [True]),
        (SAFE, None, None),
        (HIDDEN | {"encrypted_state": "encrypted"}, None, None),
        (HIDDEN | {"encrypted_state": "failed_decryption"}, None, None),
        ({"type": "a_future_payload", "function": {"of": "another form"}, "arguments": 5}, None, None),
    ],
    ids=["script", "decrypted script", "stored, not run", "encrypted", "not decrypted", "unknown"],
)
def test_what_calls_no_function_is_a_row_without_one(payload, types, arguments):
    """A function that a payload only claims to call did not run; a payload of another form is not an error."""
    (row,) = records(transaction_frames([transaction(payload)])[0])
    found = row["type_arguments"], None if row["arguments"] is None else json.loads(row["arguments"])
    assert found == (types, arguments)
    assert (row["function"], row["error_code"]) == (None, None)
    assert row["payload_type"] == payload["type"]


def ended(kind: str, error: dict[str, Any] | None = None, payload: str = "0x") -> dict[str, Any]:
    data = {"multisig_account": "0x5afe", "sequence_number": "1", "transaction_payload": payload}
    data |= {} if error is None else {"execution_error": error}
    return {
        "guid": V2_EVENT,
        "sequence_number": "0",
        "type": f"0x1::multisig_account::TransactionExecution{kind}",
        "data": data,
    }


ABORT = {"error_type": "MoveAbort", "error_code": "65540", "abort_location": f"{1:064x}::coin"}


@pytest.mark.parametrize("kind", ["Failed", "FailedEvent"])
@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (ABORT, "Multisig payload failed: Move abort in 0x1::coin: 0x10004", 65540),
        (ABORT | {"abort_location": "Script"}, "Multisig payload failed: Move abort: 0x10004", 65540),
        (
            {"error_type": "VMError", "error_code": "4002", "abort_location": ""},
            "Multisig payload failed: VMError OUT_OF_GAS",
            None,
        ),
        ({"error_type": 5}, "Multisig payload failed", None),
        (None, "Multisig payload failed", None),
    ],
    ids=["abort", "in a script", "another error", "another form", "no error"],
)
def test_a_payload_that_fails_is_a_failure(kind, error, status, code):
    """Events of before and after module events; the type of the event alone decides."""
    found = transaction(SAFE, events=[ended(kind, error)])
    assert (found.success, found.chain_success, found.vm_status) == (False, True, status)
    assert (None if found.abort is None else found.abort.code) == code
    (row,) = transaction_frames([found])[0].to_dict("records")
    assert (row["success"], row["chain_success"], row["vm_status"]) == (False, True, status)


@pytest.mark.parametrize("kind", ["Succeeded", "SucceededEvent"])
def test_a_payload_that_succeeds_is_a_success(kind):
    """Its stored form names the call, and one that cannot be read names none."""
    call = f"00{1:064x}046e616d650366756e0001020500"  # entry function 0x1::name::fun with one argument of two bytes
    found = transaction(SAFE, events=[ended(kind, payload=f"0x{call}")])
    assert (found.success, found.call().function, bytes(found.call().arguments)) == (
        True,
        "0x1::name::fun",
        b'["0x0500"]',
    )
    assert transaction(SAFE, events=[ended(kind, payload="0x0bad")]).call().function is None


def test_events_of_other_modules_decide_nothing():
    """A lookalike of another address is not the account's."""
    fake = ended("Failed", ABORT) | {"type": "0xbad::multisig_account::TransactionExecutionFailed"}
    assert transaction(SAFE, events=[fake]).success


def test_a_decrypted_payload_is_simulated_again():
    """The request has the call that ran, and a caveat."""
    request, caveats = rebuild_request(transaction(decrypted(BUY)))
    assert (request.payload.function, request.payload.arguments) == (FUNCTION, ("5", ["0x1"]))
    assert any("total" in caveat.parts for caveat in caveats)
