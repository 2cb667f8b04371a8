"""Every row of the status tables, tried over raw HTTP; LEDGER_TOOLKIT_TRANSCRIPT=1 prints request and answer.

Rows that cannot arise here: ledger info not available (503), a failing database (500 of view and simulate) and a
missing state (400 internal_error of view), since the ledger is in memory; 404 and 507 of simulate, declared by the
document and produced by no path of the node. Faults on demand give 500, 503 and 507 to clients under test.
"""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from toolkit import embedded
from toolkit.embedded import Module, u8, u64, view
from toolkit.embedded.http._operations import SIGNED_TRANSACTION_BCS, VIEW_BCS
from toolkit.move import FunctionId, parse_address
from toolkit.move._ids import address_to_bytes
from toolkit.wire import Ed25519Signature, RawTransaction, SignedTransaction
from toolkit.wire._bcs_requests import EncodedEntryFunction, EncodedPayloadV2

APT = "0x1::aptos_coin::AptosCoin"
NAME = "0x1::string::String"
ITEM = {"key_type": NAME, "value_type": "0xcafe::registry::Record", "key": "alice"}
VIEW = {"function": "0x1::coin::balance", "type_arguments": [APT], "arguments": ["0xa11ce"]}
CALL = {
    "type": "entry_function_payload",
    "function": "0x1::aptos_account::transfer",
    "type_arguments": [],
    "arguments": ["0xb0b", "1"],
}
SIMULATION = {
    "sender": "0xa11ce",
    "sequence_number": "0",
    "max_gas_amount": "2000",
    "gas_unit_price": "100",
    "expiration_timestamp_secs": "32503680000",
    "payload": CALL,
    "signature": {"type": "no_account_signature"},
}
SCRIPT = {"type": "script_payload", "code": {"bytecode": "0x"}, "type_arguments": [], "arguments": []}
DEEP = "vector<" * 9 + "u8" + ">" * 9
BCS = {"Accept": "application/x-bcs"}
ITEM_PATH, RAW_PATH, SIMULATE = "/tables/{handle}/item", "/tables/{handle}/raw_item", "/transactions/simulate"


class Row(NamedTuple):
    """One request and what comes back; `code` None is a success."""

    path: str
    body: Any
    status: int
    code: str | None
    message: str = ""
    vm: int | None = None
    headers: Mapping[str, str | None] = MappingProxyType({})
    method: str = "POST"


class Odd(Module, address="0xbad"):
    """Functions that no compiler would let through, for the rows that only they can bring about."""

    move_compiled = True  # so that they are not checked

    @view
    def nothing(self) -> u8:
        """Return no value: a class refuses this, see below."""

    @view
    def too_large(self) -> u8:
        """Return what a u8 cannot hold."""
        return 256

    @view
    def endless(self) -> u64:
        """Never return."""
        return sum(1 for _ in self.each(iter(int, 1)))


Odd.definition.functions["nothing"] = replace(Odd.definition.functions["nothing"], returns=())


def _signed(payload):
    """Return a signed transaction in BCS, whose signature is zeros."""
    raw = RawTransaction(parse_address("0xa11ce"), 0, payload, 2000, 100, 32_503_680_000, 4)
    return SignedTransaction(raw, Ed25519Signature(bytes(32))).to_bcs()


TRANSFER = EncodedEntryFunction(
    FunctionId.parse("0x1::aptos_account::transfer"), (), (address_to_bytes("0xb0b"), (1).to_bytes(8, "little"))
)
SIGNED = {"Content-Type": SIGNED_TRANSACTION_BCS}


def _item(status, code, message="", *, path=ITEM_PATH, headers=None, **changes):
    return Row(path, ITEM | changes, status, code, message, None, headers or {})


def _view(status, code, message="", vm=None, *, path="/view", headers=None, **changes):
    return Row(path, VIEW | changes, status, code, message, vm, headers or {})


def _odd(code, message, function, *, vm=None, headers=None):
    body = {"function": f"0xbad::odd::{function}", "type_arguments": [], "arguments": []}
    return Row("/view", body, 400, code, message, vm, headers or {})


def _simulate(status, code, message="", *, path=SIMULATE, headers=None, **changes):
    return Row(path, SIMULATION | changes, status, code, message, None, headers or {})


NO_LENGTH: dict[str, str | None] = {"Content-Length": None, "Transfer-Encoding": "chunked"}
PARSING = "parse request payload error: "
FRAMEWORK = "web_framework_error"

STRUCTURAL = (
    "'table_item_request' invalid",
    "Simulated transaction invalid",
)

ROWS = [
    # 2 Table item
    _item(200, None),
    _item(200, None, headers=BCS),
    _item(400, "invalid_input", "'table_item_request' invalid", key_type="nothing"),
    _item(400, "invalid_input", "", value_type=DEEP),
    _item(400, "invalid_input", "", key=7),
    _item(400, "invalid_input", "table key: 0x1::no::No cannot be decoded", key_type="0x1::no::No", key={}),
    Row(ITEM_PATH, "{", 400, FRAMEWORK, PARSING),
    Row(ITEM_PATH, {"key": "alice"}, 400, FRAMEWORK, PARSING),
    Row("/tables/zz/item", ITEM, 400, FRAMEWORK, "failed to parse path"),
    _item(400, FRAMEWORK, "failed to parse parameter", path=f"{ITEM_PATH}?ledger_version=x"),
    _item(404, "table_item_not_found", "Table Item not found by Table handle(", key="nobody"),
    _item(404, "table_item_not_found", "Table Item not found by Table handle(", key_type="u8", key=1),
    _item(404, "version_not_found", "Ledger version not found", path=f"{ITEM_PATH}?ledger_version=999999"),
    _item(410, "version_pruned", "Ledger version(1) has been pruned", path=f"{ITEM_PATH}?ledger_version=1"),
    _item(500, "internal_error", "Failed to deserialize table item", value_type="vector<u64>"),
    Row(RAW_PATH, {"key": "0x05616c696365"}, 200, None, headers=BCS),
    Row(RAW_PATH, {"key": "0x05616c696365"}, 403, "api_disabled", "Get raw table item is not allowed."),
    Row(RAW_PATH, {"key": "0x00"}, 404, "table_item_not_found", "Table Item not found by", headers=BCS),
    # 3 View
    _view(200, None),
    _view(200, None, headers=BCS),
    _view(400, "invalid_input", "module 0x9::no", function="0x9::no::f"),
    _view(400, "invalid_input", "could not find view function by 0x1::coin::no", function="0x1::coin::no"),
    _view(400, "invalid_input", "expected 1 arguments [string<address>], but got 0", arguments=[]),
    _view(400, "invalid_input", "arguments[0]", arguments=[7]),
    _view(400, "invalid_input", "expected 1 type arguments for view function", type_arguments=[]),
    _view(400, "invalid_input", "", type_arguments=[DEEP]),
    Row("/view", b"\0", 400, "invalid_input", "Failed to deserialize", headers={"Content-Type": VIEW_BCS}),
    _view(400, "invalid_input", "function not marked as view function", 1011, function="0x1::coin::transfer",
          arguments=["0xb0b", "1"]),
    _view(400, "invalid_input", "", 2021, type_arguments=["0x1::aptos_coin::NewCoin"]),
    _view(400, "invalid_input", "Move abort in 0x", 4016, function="0xcafe::registry::record_of", type_arguments=[],
          arguments=["nobody"]),
    _odd("invalid_input", "view function must return values", "nothing", vm=1011),
    _odd("invalid_input", "VMError with status OUT_OF_GAS at location", "endless", vm=4002),
    _odd("invalid_input", "256 is not a u8", "too_large", vm=4017),
    _odd("invalid_input", "256 is not a u8", "too_large", headers=BCS, vm=4017),
    _view(400, FRAMEWORK, PARSING, function="coin"),
    Row("/view", "[]", 400, FRAMEWORK, PARSING),
    _view(404, "version_not_found", "Ledger version not found", path="/view?ledger_version=999999"),
    _view(410, "version_pruned", "Ledger version(1) has been pruned", path="/view?ledger_version=1"),
    # 4.7 Simulate
    _simulate(200, None),
    _simulate(400, "invalid_input", "module 0x9::no", payload=CALL | {"function": "0x9::no::f"}),
    _simulate(400, "invalid_input", "could not find entry function by",
              payload=CALL | {"function": "0x1::coin::no"}),
    _simulate(400, "invalid_input", "arguments[1]", payload=CALL | {"arguments": ["0x1", 1]}),
    _simulate(400, "invalid_input", "Simulated transaction invalid",
              signature={"type": "ed25519_signature", "public_key": "0x00", "signature": "0x00"}),
    _simulate(400, "invalid_input", "Script payload bytecode must not be empty", payload=SCRIPT),
    _simulate(400, "invalid_input", "invalid transaction script bytecode",
              payload=SCRIPT | {"code": {"bytecode": "0x01"}}),
    _simulate(400, "invalid_input", "Simulated transaction invalid: Module bundle payload has been removed",
              payload={"type": "module_bundle_payload"}),
    Row(SIMULATE, _signed(TRANSFER), 200, None, headers=SIGNED),
    Row(SIMULATE, _signed(EncodedPayloadV2(None)), 400, "invalid_input",
        "Empty transaction payload must be a multisig transaction", headers=SIGNED),
    _simulate(200, None, sequence_number="99"),
    Row(SIMULATE, b"\0", 400, "invalid_input", "Failed to deserialize",
        headers={"Content-Type": SIGNED_TRANSACTION_BCS}),
    _simulate(400, FRAMEWORK, PARSING, sender=7),
    _simulate(400, FRAMEWORK, PARSING, sequence_number=0),
    _simulate(400, FRAMEWORK, PARSING, payload=1234),
    _simulate(400, FRAMEWORK, PARSING, signature=None),
    _simulate(200, None, headers=BCS),
    # 1 Common: the web framework's
    *(
        row
        for path in (ITEM_PATH, RAW_PATH, "/view", SIMULATE)
        for row in (
            Row(path, "{}", 415, FRAMEWORK, "the `Content-Type` requested by the client is not supported: text/plain",
                headers={"Content-Type": "text/plain"}),
            Row(path, "", 411, FRAMEWORK, "missing `Content-Length` header", headers=NO_LENGTH),
            Row(path, "", 413, FRAMEWORK, "payload too large", headers={"Content-Length": "8388609"}),
            Row(path, None, 405, FRAMEWORK, method="PUT"),
        )
    ),
    Row("/nothing", None, 404, FRAMEWORK, method="GET"),
    Row("/blocks/by_height/x", None, 400, FRAMEWORK, "failed to parse path", method="GET"),
    Row("/transactions", SIMULATION, 403, "api_disabled", "Submit transaction is disabled"),
]  # fmt: skip


@pytest.fixture(scope="module")
def ledger():
    grown = embedded.Ledger.with_history(versions=400, window=200, cache=True)
    grown.publish(Odd)
    return grown


@pytest.fixture(scope="module")
def node(ledger):
    """Return the address of a node on which a view may use little gas."""
    with embedded.serve(ledger, limits=embedded.Limits(view_gas=1_000)) as url:
        yield urlsplit(url)


def _send(node, path, row):
    """Send one request as it stands and return status, headers and body."""
    body = row.body if isinstance(row.body, bytes) else b"" if row.body is None else row.body
    data = body.encode() if isinstance(body, str) else body if isinstance(body, bytes) else json.dumps(body).encode()
    headers: dict[str, str | None] = {"Content-Type": "application/json", "Content-Length": str(len(data))}
    connection = http.client.HTTPConnection(node.hostname, node.port, timeout=10)
    connection.putrequest(row.method, f"/v1{path}")
    for name, value in {**headers, **row.headers}.items():
        if value is not None:
            connection.putheader(name, value)
    connection.endheaders(data if "Transfer-Encoding" not in row.headers else b"0\r\n\r\n")
    answer = connection.getresponse()
    told = answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    connection.close()
    return told


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.method} {row.path} {row.status} {row.code}")
def test_each_row_of_the_status_tables(node, ledger, capsys, row):
    """Status, error code, text, VM code and headers equal the recorded ones."""
    path = row.path.replace("{handle}", ledger.view("0xcafe::registry::handle")[0][0])
    status, headers, body = _send(node, path, row)
    if os.environ.get("LEDGER_TOOLKIT_TRANSCRIPT"):
        shown = {name: value for name, value in headers.items() if name.startswith(("x-", "content-t", "allow"))}
        with capsys.disabled():
            print(
                f"\n{row.method} {row.path} {str(row.body)[:200]} {dict(row.headers) or ''}\n  -> {status} {body[:300]!r}\n     {shown}"
            )
    assert status == row.status, body
    success = row.code is None
    # Checks before the ledger is read: of the web framework and of a request's structure.
    structural = status == 400 and json.loads(body)["message"].startswith(STRUCTURAL)
    without_ledger = row.code in {FRAMEWORK, "api_disabled"} or structural
    assert ("x-aptos-ledger-version" in headers) is not without_ledger
    assert ("x-aptos-gas-used" in headers) is (success and row.path in {"/view", SIMULATE})
    if success:
        assert headers["content-type"] == row.headers.get("Accept", "application/json")
        return
    error = json.loads(body)
    assert list(error) == ["message", "error_code", "vm_error_code"]
    assert (error["error_code"], error["vm_error_code"]) == (row.code, row.vm), error
    assert error["message"].startswith(row.message), error
    assert ("allow" in headers) is (status == 405)
