"""What a node answers to requests that differ a little from right ones: status, error code, VM code, headers, text.

The rows follow the node's sources (handlers, the parsers of its web framework, the VM) where no recording has them.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest
import requests

from toolkit import embedded

APT = "0x1::aptos_coin::AptosCoin"
FRAMEWORK, INVALID = "web_framework_error", "invalid_input"
VIEW_BCS = {"Content-Type": "application/x.aptos.view_function+bcs"}
BCS = {"Accept": "application/x-bcs"}
SIMULATE = "/transactions/simulate"
KEY, ZEROS = "0x" + "d7" * 32, "0x" + "00" * 64
NONE = {"type": "no_account_signature"}
ED = {"type": "ed25519_signature", "public_key": KEY, "signature": ZEROS}
ITEM = {"key_type": "u64", "value_type": "u64", "key": "1"}
ONE = bytes(31) + b"\1"
SUPPLY = ONE + b"\4coin\6supply"
APT_BCS = b"\1\7" + ONE + b"\x0aaptos_coin\x09AptosCoin\0"


class Row(NamedTuple):
    """A request, and the kind and the text of its answer."""

    path: str
    body: Any
    status: int
    code: str | None
    text: str = ""
    vm: int | None = None
    ledger: bool = True
    headers: dict[str, str] = {}  # noqa: RUF012  # never changed


def get(path: str, status: int, code: str | None = None, text: str = "", *, ledger: bool = True, headers=None) -> Row:
    return Row(path, None, status, code, text, None, ledger, headers or {})


def view(function, types, arguments, *rest, **options) -> Row:
    body = {"function": f"0x1::{function}", "type_arguments": types, "arguments": arguments}
    return Row("/view", body, *rest, **options)


def call(**changes: Any) -> dict[str, Any]:
    payload = {"type": "entry_function_payload", "function": "0x1::aptos_account::transfer", "type_arguments": [], "arguments": ["0x2", "1"]}  # fmt: skip
    numbers = {"sequence_number": "0", "max_gas_amount": "1000", "gas_unit_price": "100", "expiration_timestamp_secs": "99999999999"}  # fmt: skip
    body = {"sender": "0xb0b", **numbers, "payload": payload, "signature": NONE}
    return {name: value for name, value in (body | changes).items() if value is not ...}


def pay(**changes: Any) -> dict[str, Any]:
    return call(payload=call()["payload"] | changes)


def payer(sender=NONE, addresses=(), signers=(), address="0x1", signer=NONE) -> dict[str, Any]:
    return {
        "type": "fee_payer_signature",
        "sender": sender,
        "secondary_signer_addresses": list(addresses),
        "secondary_signers": list(signers),
        "fee_payer_address": address,
        "fee_payer_signer": signer,
    }


def keys(number: int, signatures: int, required: int) -> dict[str, Any]:
    one = {"type": "ed25519", "value": KEY}
    signed = [{"index": index, "signature": {"type": "ed25519", "value": ZEROS}} for index in range(signatures)]
    return {
        "type": "multi_key_signature",
        "public_keys": [one] * number,
        "signatures": signed,
        "signatures_required": required,
    }


def single(kind: str, key: str, signature_kind: str, signature: str) -> dict[str, Any]:
    return {
        "type": "single_key_signature",
        "public_key": {"type": kind, "value": key},
        "signature": {"type": signature_kind, "value": signature},
    }


def signed(signature: Any, *rest: Any, **options: Any) -> Row:
    return Row(SIMULATE, call(signature=signature), *rest, **options)


JSON_ERROR = "parse request payload error: "
GETS = [
    get("/estimate_gas_price/", 404, FRAMEWORK, "not found", ledger=False),
    get("/accounts/0x", 400, FRAMEWORK, "failed to parse path `address`", ledger=False),
    get("/accounts/0x1?ledger_version=", 400, FRAMEWORK, "failed to parse parameter `ledger_version`", ledger=False),
    get("/accounts/0x1/resources?limit=0", 400, INVALID, "Given limit value (0) must not be zero"),
    get("/accounts/0x1/resources?limit=65536", 400, FRAMEWORK, "failed to parse parameter `limit`", ledger=False),
    get("/accounts/0x1/resources?start=0x00", 400, FRAMEWORK, "failed to parse parameter `start`", ledger=False),
    get("/accounts/0x1/resource/u8", 400, FRAMEWORK, "invalid struct tag: u8", ledger=False),
    get("/accounts/0x1/module/no-pe", 400, FRAMEWORK, "failed to parse path `module_name`", ledger=False),
    get("/accounts/0x1/balance/u8", 400, FRAMEWORK, "invalid struct tag: u8", ledger=False),
    get("/accounts/0x1/balance/0x1::no::No", 200),
    get("/accounts/zz/transactions", 400, FRAMEWORK, "failed to parse path `address`", ledger=False),
    get("/accounts/0x77/transactions", 200, text="[]"),
    get("/accounts/0x1/transactions?limit=0", 400, INVALID, "Given limit value (0) must not be zero"),
    get("/transactions/by_hash/" + "00" * 32, 404, "transaction_not_found", "Transaction not found by Transaction hash(0x" + "00" * 32),
    get("/transactions/wait_by_hash/0x" + "00" * 32, 404, "transaction_not_found", "Transaction not found by Transaction hash(0x"),
    get("/transactions/wait_by_hash/zz", 400, FRAMEWORK, "`txn_hash`", ledger=False),
    get("/blocks/by_height/1?with_transactions=1", 400, FRAMEWORK, "`with_transactions`", ledger=False),
]  # fmt: skip
BODIES = [
    Row("/view", "nope", 400, FRAMEWORK, JSON_ERROR + "JSON is malformed: invalid character (byte 4)", None, False),
    Row("/view", '{"a": 1,}', 400, FRAMEWORK, JSON_ERROR + "JSON is malformed: trailing comma in object (byte 8)", None, False),
    Row("/view", "{} x", 400, FRAMEWORK, JSON_ERROR + "Object missing required field `function`", None, False),
    Row("/view", "[1, 2", 400, FRAMEWORK, JSON_ERROR + "Expected `object`, got `array`", None, False),
    Row("/view", '{"a":', 400, FRAMEWORK, JSON_ERROR + "Input data was truncated", None, False),
    view("coin::supply", [5], [], 400, FRAMEWORK, "Expected `str`, got `int` - at `$.type_arguments[0]`", ledger=False),
    view("coin::supply", [APT], [], 200, None, headers={"Accept": "application/x-bcs;q=0.5, application/json"}),
    Row("/view/", {}, 404, FRAMEWORK, "not found", None, False),
]  # fmt: skip
VIEWS = [
    view("coin::supply", ["0x1::no::No"], [], 400, INVALID, f"Linker Error: Module {ONE.hex()}::no doesn't exist", 1081),
    view("coin::supply", ["0x1::coin::No"], [], 400, INVALID, "Struct 0x1::coin::No does not exist", 2021),
    view("coin::supply", ["0x1::no::No"], ["1"], 400, INVALID, "expected 0 arguments [], but got 1"),
    view("coin::supply", ["&mut u8"], [], 400, INVALID, "&mut u8"),
    view("coin::name", ["0x1::string::String"], [], 400, INVALID, "Failed to borrow global resource from ", 4008),
    *(view(f"coin::{name}", ["u8"], ["0x1"], 400, INVALID, "Move abort in 0x1::type_info: E_NATIVE_FUN_NOT_AVAILABLE(0x1): ", 4016) for name in ("balance", "is_account_registered")),
    view("fungible_asset::decimals", ["0x1::fungible_asset::Metadata"], ["0x77"], 400, INVALID, "Move abort in 0x1::object: EOBJECT_DOES_NOT_EXIST(0x60002): ", 4016),
    view("primary_fungible_store::balance", ["0x1::account::Account"], ["0x1", "0xa"], 400, INVALID, "Move abort in 0x1::object: ERESOURCE_DOES_NOT_EXIST(0x60007): ", 4016),
    view("features::is_enabled", [], ["+1"], 200, None),
    Row("/view", SUPPLY + APT_BCS + b"\0", 200, None, headers=VIEW_BCS),
    Row("/view", SUPPLY + b"\0\0", 400, INVALID, "expected 1 type argument", 1076, headers=VIEW_BCS),
    Row("/view", SUPPLY + APT_BCS + b"\1\1\1", 400, INVALID, "VMError with status NUMBER_OF_ARGUMENTS_MISMATCH at location UNDEFINED", 1098, headers=VIEW_BCS),
    Row("/view", ONE + b"\2no\1x\0\0", 400, INVALID, f"Linker Error: Module {ONE.hex()}::no doesn't exist", 1081, headers=VIEW_BCS),
    Row("/view", ONE + b"\4coin\2no\0\0", 400, INVALID, "coin::no does not exist", 1091, headers=VIEW_BCS),
    Row("/view", ONE + b"\4coin\x08transfer" + APT_BCS + b"\0", 400, INVALID, "function not marked as view function", 1011, headers=VIEW_BCS),
]  # fmt: skip
ITEMS = [
    Row("/tables/0x1/item", ITEM, 404, "table_item_not_found", headers={"Content-Type": "application/json; charset=utf-8"}),
    Row("/tables/0x1/item", ITEM, 404, "table_item_not_found", headers={"Content-Type": "APPLICATION/JSON"}),
    Row("/tables/0x1/item", ITEM, 415, FRAMEWORK, "is not supported: text/json", None, False, {"Content-Type": "text/json"}),
    Row("/tables/0x1/item", ITEM | {"key_type": "&u64"}, 400, INVALID, "&u64", None, False),
    Row("/tables/0x1/item", ITEM | {"key_type": "signer", "key": "0x1"}, 400, INVALID, "signer"),
    Row("/tables/0x1/item", ITEM | {"key_type": "u8", "key": 256}, 400, INVALID, "number 256"),
    Row("/tables/0x1/raw_item", {"key": "0x00"}, 403, "api_disabled", "Only BCS is supported", None, False, {"Accept": "application/x-bcs;q=0.5"}),
]  # fmt: skip
SENT = [
    Row(SIMULATE, call(sequence_number="+0"), 200, None),
    Row(SIMULATE, pay(type_arguments=["nope"]), 400, INVALID, "nope", None, False),
    Row(SIMULATE, pay(function="0x1::coin::transfer", type_arguments=["0x1::no::No"]), 200, None, "LINKER_ERROR"),
    Row(SIMULATE, pay(function="0x1::coin::transfer", type_arguments=["0x1::coin::No"]), 200, None, "TYPE_RESOLUTION_FAILURE"),
    Row("/transactions", call(), 403, "api_disabled", "Submit transaction is disabled on this endpoint", None, False),
    Row("/transactions/batch", [call()], 403, "api_disabled", "Submit transaction is disabled on this endpoint", None, False),
]  # fmt: skip
SIGNATURES = [
    signed(ED | {"public_key": "zz"}, 400, FRAMEWORK, "public_key", ledger=False),
    signed({"type": "ed25519_signature"}, 400, FRAMEWORK, "Object missing required field `public_key`", ledger=False),
    signed(payer(sender={"type": "nope"}), 400, FRAMEWORK, "Invalid value 'nope' - at `$.sender.type`", ledger=False),
    signed(payer(signers=[{"type": "nope"}]), 400, FRAMEWORK, "Invalid value 'nope' - at `$.secondary_signers[0].type`", ledger=False),
    signed(payer(addresses=["zz"]), 400, FRAMEWORK, "at `$.secondary_signer_addresses[0]`", ledger=False),
    signed(payer(addresses=["0x2"]), 200, None, "SECONDARY_KEYS_ADDRESSES_COUNT_MISMATCH"),
    signed(payer(signers=[NONE]), 200, None, "SECONDARY_KEYS_ADDRESSES_COUNT_MISMATCH"),
    signed(payer(sender=keys(2, 2, 1)), 400, INVALID, "Simulated transaction invalid: MultiKey signature does not have the number of signatures required", ledger=False),
    signed(payer(sender=keys(33, 1, 1)), 400, INVALID, "expected 1 to 32 public keys, got 33", ledger=False),
    signed(payer(sender=keys(1, 1, 256)), 400, FRAMEWORK, "Expected `int` <= 255", ledger=False),
    signed(payer(sender=single("secp256k1_ecdsa", "0x00", "secp256k1_ecdsa", ZEROS)), 400, INVALID, "expected 65 bytes of a public key of type secp256k1_ecdsa", ledger=False),
    signed(payer(sender=single("secp256r1_ecdsa", "0x00", "web_authn", "0x")), 400, INVALID, "expected 65 bytes of a public key of type secp256r1_ecdsa", ledger=False),
    signed(payer(sender=single("keyless", "0x00", "keyless", "0x")), 400, INVALID, "Simulated transaction invalid", ledger=False),
    signed(payer(sender=single("keyless", "0x" + "00" * 300, "keyless", "0x")), 400, INVALID, "Simulated transaction invalid", ledger=False),
    signed(payer(sender=single("ed25519", KEY, "keyless", "0x")), 400, INVALID, "Simulated transaction invalid", ledger=False),
    signed(payer(sender=single("nope", KEY, "ed25519", ZEROS)), 400, FRAMEWORK, "Invalid enum value 'nope'", ledger=False),
    signed({"type": "multi_agent_signature", "sender": ED | {"public_key": "0x"}, "secondary_signer_addresses": [], "secondary_signers": []}, 400, INVALID, "expected 32 bytes of an ed25519 public key", ledger=False),
    signed({"type": "multi_ed25519_signature", "public_keys": [KEY], "signatures": [ZEROS], "threshold": "1", "bitmap": "0x80000000"}, 400, FRAMEWORK, "Expected `int`, got `str` - at `$.threshold`", ledger=False),
]  # fmt: skip
ROWS = GETS + BODIES + VIEWS + ITEMS + SENT + SIGNATURES


@pytest.fixture(scope="module")
def url():
    """Return the address of a node with a new ledger of a few blocks."""
    ledger = embedded.Ledger()
    for amount in range(3):
        ledger.commit("0x1::aptos_account::transfer", "0xb0b", amount + 1, sender="0xa11ce")
    with embedded.serve(ledger) as address:
        yield address


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.path[:40]} {row.text[:40]}")
def test_a_request_that_is_a_little_different(url, row):
    """Status, error code, VM code and ledger headers equal those of a node; the text says what is wrong."""
    if row.body is None:
        answer = requests.get(url + row.path, headers=row.headers, timeout=10)
    else:
        data = row.body if isinstance(row.body, str | bytes) else json.dumps(row.body)
        headers = {"Content-Type": "application/json"} | row.headers
        answer = requests.post(url + row.path, data=data, headers=headers, timeout=10)
    refused = answer.json() if answer.status_code >= 400 else {}
    kind = answer.status_code, refused.get("error_code"), refused.get("vm_error_code")
    assert kind == (row.status, row.code, row.vm), answer.text[:500]
    assert ("x-aptos-ledger-version" in answer.headers) is row.ledger
    assert row.text in (refused.get("message") or answer.text)


def test_transactions_of_an_account_are_in_order(url):
    """A page starts at a sequence number; without `start` it is the last one."""
    sender = "0xa11ce"
    everything = requests.get(f"{url}/accounts/{sender}/transactions?start=0&limit=100", timeout=10).json()
    assert [int(one["sequence_number"]) for one in everything] == [0, 1, 2]
    last = requests.get(f"{url}/accounts/{sender}/transactions?limit=1", timeout=10).json()
    assert [one["hash"] for one in last] == [everything[-1]["hash"]]
