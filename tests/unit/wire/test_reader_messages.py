"""Readers of `wire`: the message for each malformed body or request; those of types and values are with `move`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from toolkit.errors import ToolkitError
from toolkit.move import (
    Bool,
)
from toolkit.move._bcs import Reader
from toolkit.wire import EntryFunction, GasSchedule, RawTransaction, Script, SignedTransaction, SimulationRequest
from toolkit.wire._bcs_requests import FUNCTION_CALL, decode_view_answer
from toolkit.wire._requests import parse_payload
from toolkit.wire._responses import decode_account, decode_block, decode_gas_price_estimate, decode_node_info
from toolkit.wire._rows import transaction_rows
from toolkit.wire._signatures import parse_account_signature, parse_signature
from toolkit.wire._transactions import decode_simulation, decode_transactions

Read = Callable[[Any], Any]
CALL = EntryFunction("0x1::m::f")
USER = b"""{"version":"1","hash":"0x","gas_used":"5","success":true,"vm_status":"","sender":"0x1","sequence_number":"0","max_gas_amount":"1","gas_unit_price":"1","expiration_timestamp_secs":"1","payload":{"type":"x"},"type":"user_transaction"}"""


def rows(body: bytes) -> Any:
    return transaction_rows(decode_transactions(body))


def sender(text: Any) -> Any:
    return SimulationRequest(CALL, sender=text)


def price(number: Any) -> Any:
    return SimulationRequest(CALL, sender="0x1", gas_unit_price=number)


TABLE: list[tuple[Read, Any, str]] = [
    (EntryFunction, "0x1::m", "EntryFunction.function: not a function id: '0x1::m'; expected"),
    (EntryFunction, None, "EntryFunction.function: expected a function id (address::module::function) as a string,"),
    (Script, "0x1", "Script.bytecode: not hex-encoded bytes: '0x1'; expected 0x and two hex digits per byte"),
    (sender, "alice", "SimulationRequest.sender: not an address: 'alice'; expected 0x and 1 to 64 hex digits"),
    (sender, None, "SimulationRequest.sender: expected an address as a string, got None"),
    (price, -1, "SimulationRequest.gas_unit_price: expected an integer from 0 to 2^64 - 1, got -1"),
    (price, 2**64, "SimulationRequest.gas_unit_price: expected an integer from 0 to 2^64 - 1, got"),
    (price, "1.5", "SimulationRequest.gas_unit_price: expected an integer, got '1.5'"),
    (parse_payload, b"", "payload: the response is not JSON (Input data was truncated); it starts with b''"),
    (parse_payload, b"[]", "the payload must be a JSON object, got []"),
    (parse_payload, {"type": "entry_function_payload"}, "field 'function' is missing"),
    (parse_payload, {"type": "script_payload", "code": {}}, "field 'bytecode' is missing"),
    (parse_signature, b"5", "the signature must be a JSON object, got 5"),
    (parse_signature, {"type": "ed25519_signature", "public_key": "0x11", "signature": "0x"}, "expected 32 bytes of an ed25519 public key, got 1: '0x11'"),
    (parse_signature, {"type": "fee_payer_signature"}, "field 'sender' is missing"),
    (parse_account_signature, {"type": "single_key_signature", "public_key": {"value": "0x", "type": "rsa"}}, "PublicKey.type: expected 'ed25519', "),
    (parse_account_signature, {"type": "multi_key_signature", "public_keys": [], "signatures": [], "threshold": 1}, "expected 1 to 32 public keys, got 0"),
    (GasSchedule.from_resource, {"entries": {}}, "entries: expected a list, got {}"),
    (GasSchedule.from_resource, {"entries": [{"key": "a", "val": "x"}]}, "entries[0].val: expected a u64 as a string"),
    (decode_transactions, b"", "Input data was truncated"),
    (decode_transactions, b"<html>", "JSON is malformed: invalid character (byte 0)"),
    (decode_transactions, b"5", "Expected `object`, got `int`"),
    (decode_transactions, b'[{"type": "user_transaction"}]', "Object missing required field `version`"),
    (decode_transactions, b'{"type": "state_checkpoint_transaction", "version": 1}', "Expected `str`, got `int` - at"),
    (decode_simulation, b"{}", "Object missing required field `version`"),
    (rows, USER.replace(b'"5"', b'"5.0"'), "row 0: gas_used: expected a u64 as a string of digits, got '5.0'"),
    (rows, USER.replace(b'"sender":"0x1"', b'"sender":"me"'), "not an address: 'me'; expected 0x and 1 to 64 hex"),
    (decode_node_info, b'{"chain_id": 1}', "Object missing required field `epoch`"),
    (decode_node_info, b"not json", "JSON is malformed: invalid character (byte 4)"),
    (decode_account, b'{"sequence_number": "-1", "authentication_key": "0x"}', "sequence_number: expected a u64 as a"),
    (decode_block, b"null", "Expected `object`, got `null`"),
    (decode_gas_price_estimate, b'{"gas_estimate": -1}', "Expected `int` >= 0 - at `$.gas_estimate`"),
    (RawTransaction.from_bcs, b"", "byte 0: expected 32 bytes, but only 0 left"),
    (SignedTransaction.from_bcs, bytes(40) + b"\x07", "byte 40: expected transaction payload index 0 to 5, got 7"),
    (SignedTransaction.from_bcs, bytes(40) + b"\x05", "byte 40: the payload is encrypted; encrypted payloads cannot be"),
    (lambda body: FUNCTION_CALL.read(Reader(body)), bytes(32) + b"\x01m\x010", "byte 0: function name '0' is not a"),
    (lambda data: decode_view_answer(data, [Bool()]), b"\x02", "expected 1 return value, got 2"),
]  # fmt: skip


@pytest.mark.parametrize(("read", "text", "message"), TABLE, ids=range(len(TABLE)))
def test_each_malformed_input_gives_its_message(read: Read, text: Any, message: str) -> None:
    """What was read, where, and what was expected."""
    with pytest.raises(ToolkitError) as raised:
        read(text)
    assert message in str(raised.value)
