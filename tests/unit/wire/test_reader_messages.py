"""Readers of `wire`: the exact message for each malformed body or request; those of types and values are with `move`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from toolkit.errors import ToolkitError
from toolkit.move import (
    Bool,
    Int,
    decode_bcs,
    decode_json,
    parse_type_tag,
)
from toolkit.move._bcs import Reader
from toolkit.move._values import decode_argument, encode_argument
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


def argument(layout: Any) -> Read:
    return lambda value: decode_argument(layout, value)


def written(layout: Any) -> Read:
    return lambda value: encode_argument(layout, value)


def value(layout: Any) -> Read:
    return lambda json: decode_json(layout, json)


def bcs(layout: Any) -> Read:
    return lambda data: decode_bcs(layout, data)


def sender(text: Any) -> Any:
    return SimulationRequest(CALL, sender=text)


def price(number: Any) -> Any:
    return SimulationRequest(CALL, sender="0x1", gas_unit_price=number)


TABLE: list[tuple[Read, Any, str]] = [
    (
        parse_type_tag,
        "u65",
        "type 'u65', position 0: unknown type 'u65'; did you mean `u64` or `u16`? (expected bool, u8..u256, i8..i256, address, signer, vector<..>, String, Option<..>, Object<..> or address::module::Name)",
    ),
    (
        argument(Int(8)),
        -129,
        "parse arguments[0] failed, expect integer<i8>, caused by error: invalid number",
    ),
    (
        EntryFunction,
        "0x1::m",
        "EntryFunction.function: not a function id: '0x1::m'; expected address::module::function, such as 0x1::coin::supply",
    ),
    (
        EntryFunction,
        None,
        "EntryFunction.function: expected a function id (address::module::function) as a string, got None",
    ),
    (Script, "0x1", "Script.bytecode: not hex-encoded bytes: '0x1'; expected 0x and two hex digits per byte"),
    (sender, "alice", "SimulationRequest.sender: not an address: 'alice'; expected 0x and 1 to 64 hex digits"),
    (sender, None, "SimulationRequest.sender: expected an address as a string, got None"),
    (price, -1, "SimulationRequest.gas_unit_price: expected an integer from 0 to 2^64 - 1, got -1"),
    (
        price,
        2**64,
        "SimulationRequest.gas_unit_price: expected an integer from 0 to 2^64 - 1, got 18446744073709551616",
    ),
    (price, "1.5", "SimulationRequest.gas_unit_price: expected an integer, got '1.5'"),
    (parse_payload, b"", "payload: the answer is not JSON (Input data was truncated); it starts with b''"),
    (parse_payload, b"[]", "the payload is not a JSON object, got []"),
    (
        parse_payload,
        {"type": "entry_function_payload"},
        "the entry_function_payload does not have the documented shape: field 'function' is missing",
    ),
    (
        parse_payload,
        {"type": "script_payload", "code": {}},
        "the script_payload does not have the documented shape: field 'bytecode' is missing",
    ),
    (parse_signature, b"5", "the signature is not a JSON object, got 5"),
    (
        parse_signature,
        {"type": "ed25519_signature", "public_key": "0x11", "signature": "0x"},
        "the ed25519_signature does not have the documented shape: Ed25519Signature.public_key: expected 32 bytes of an ed25519 public key, got 1: '0x11'; Ed25519Signature.signature: expected 64 bytes of an ed25519 signature, got 0: '0x'",
    ),
    (
        parse_signature,
        {"type": "fee_payer_signature"},
        "the fee_payer_signature does not have the documented shape: field 'sender' is missing",
    ),
    (
        parse_account_signature,
        {"type": "single_key_signature", "public_key": {"value": "0x", "type": "rsa"}},
        "the single_key_signature does not have the documented shape: PublicKey.type: expected 'ed25519', 'secp256k1_ecdsa', 'secp256r1_ecdsa', 'keyless', 'federated_keyless' or 'slh_dsa__sha2_128s', got 'rsa'",
    ),
    (
        parse_account_signature,
        {"type": "multi_key_signature", "public_keys": [], "signatures": [], "threshold": 1},
        "the multi_key_signature does not have the documented shape: MultiKeySignature: expected 1 to 32 public keys, got 0",
    ),
    (GasSchedule.from_resource, {"entries": {}}, "entries: expected a list, got {}"),
    (
        GasSchedule.from_resource,
        {"entries": [{"key": "a", "val": "x"}]},
        "entries[0].val: expected a u64 as a string of digits, got 'x'",
    ),
    (
        decode_transactions,
        b"",
        "transactions[0]: the answer does not have the documented shape: Input data was truncated",
    ),
    (
        decode_transactions,
        b"<html>",
        "transactions[0]: the answer does not have the documented shape: JSON is malformed: invalid character (byte 0)",
    ),
    (
        decode_transactions,
        b"5",
        "transactions[0]: the answer does not have the documented shape: Expected `object`, got `int`",
    ),
    (
        decode_transactions,
        b'[{"type": "user_transaction"}]',
        "transactions[0]: the answer does not have the documented shape: Object missing required field `version`",
    ),
    (
        decode_transactions,
        b'{"type": "state_checkpoint_transaction", "version": 1}',
        "transactions[0]: the answer does not have the documented shape: Expected `str`, got `int` - at `$.version`",
    ),
    (
        decode_simulation,
        b"{}",
        "the answer does not have the documented shape: Object missing required field `version`",
    ),
    (rows, USER.replace(b'"5"', b'"5.0"'), "row 0: gas_used: expected a u64 as a string of digits, got '5.0'"),
    (
        rows,
        USER.replace(b'"sender":"0x1"', b'"sender":"me"'),
        "a transaction does not have the documented shape: not an address: 'me'; expected 0x and 1 to 64 hex digits",
    ),
    (
        decode_node_info,
        b'{"chain_id": 1}',
        "the GET /v1 answer does not have the documented shape: Object missing required field `epoch`",
    ),
    (
        decode_node_info,
        b"not json",
        "the GET /v1 answer does not have the documented shape: JSON is malformed: invalid character (byte 4)",
    ),
    (
        decode_account,
        b'{"sequence_number": "-1", "authentication_key": "0x"}',
        "sequence_number: expected a u64 as a string of digits, got '-1'",
    ),
    (decode_block, b"null", "the block answer does not have the documented shape: Expected `object`, got `null`"),
    (
        decode_gas_price_estimate,
        b'{"gas_estimate": -1}',
        "the gas price estimate answer does not have the documented shape: Expected `int` >= 0 - at `$.gas_estimate`",
    ),
    (RawTransaction.from_bcs, b"", "byte 0: expected 32 bytes, 0 left"),
    (SignedTransaction.from_bcs, bytes(40) + b"\x07", "byte 40: unknown transaction payload 7"),
    (
        SignedTransaction.from_bcs,
        bytes(40) + b"\x05",
        "byte 40: the payload is encrypted, which neither simulations nor this reader support",
    ),
    (
        lambda body: FUNCTION_CALL.read(Reader(body)),
        bytes(32) + b"\x01m\x010",
        "byte 0: function name '0' is not a Move identifier (letters, digits, underscores)",
    ),
    (lambda data: decode_view_answer(data, [Bool()]), b"\x02", "expected 1 return values, got 2"),
]


@pytest.mark.parametrize(("read", "text", "message"), TABLE, ids=range(len(TABLE)))
def test_each_malformed_input_gives_its_message(read: Read, text: Any, message: str) -> None:
    """Exactly: a message that changes is a change somebody meant."""
    with pytest.raises(ToolkitError) as raised:
        read(text)
    assert str(raised.value) == message
