"""Error answers of the embedded node: status, code and text as the wire has them."""

from __future__ import annotations

import pytest
import requests

from toolkit import embedded
from toolkit.embedded.http._operations import SIGNED_TRANSACTION_BCS, VIEW_BCS
from toolkit.errors import InputError
from toolkit.move import FunctionId, parse_type_tag
from toolkit.wire import NoAccountSignature, RawTransaction, SignedTransaction
from toolkit.wire._bcs_requests import EncodedEntryFunction

APT = "0x1::aptos_coin::AptosCoin"
BALANCE = {"function": "0x1::coin::balance", "type_arguments": [APT], "arguments": ["0xa11ce"]}


@pytest.fixture(scope="module")
def url():
    with embedded.serve(embedded.Ledger.with_history(versions=400, window=200, cache=True)) as served:
        yield served


@pytest.fixture(scope="module")
def head(url):
    return int(requests.get(url, timeout=10).json()["ledger_version"])


STRUCTURAL = ("'table_item_request' invalid", "Simulated transaction invalid")
"""Starts of messages about the structure of a request, which is checked before the ledger is read."""


def _check(answer, status, code, message, vm_error_code=None):
    """Compare an answer with the documented error body; `message` is how its text starts."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert list(body) == ["message", "error_code", "vm_error_code"]
    assert (body["error_code"], body["vm_error_code"]) == (code, vm_error_code), body
    assert body["message"].startswith(message), body["message"]
    unread = code in {"web_framework_error", "api_disabled"} or message.startswith(STRUCTURAL)
    assert ("x-aptos-ledger-version" in answer.headers) is not unread


def test_types_nest_eight_deep_and_no_deeper(url):
    """Eight levels are read and do not fit what is stored, nine are refused; a struct around them counts as one."""

    def nested(levels):
        return "vector<" * levels + "u8" + ">" * levels

    view = {"function": "0xcafe::registry::handle", "type_arguments": [], "arguments": []}
    path = f"{url}/tables/{requests.post(f'{url}/view', json=view, timeout=10).json()[0]}/item"
    item = {"key_type": "0x1::string::String", "value_type": nested(8), "key": "alice"}
    in_item = f"'table_item_request' invalid: invalid Move type {nested(9)}"
    in_view = f"invalid Move type {nested(9)}"
    _check(requests.post(path, json=item, timeout=10), 500, "internal_error", "Failed to deserialize table item")
    for field in ("key_type", "value_type"):
        refused = requests.post(path, json=item | {field: nested(9)}, timeout=10)
        _check(refused, 400, "invalid_input", in_item)
    held = [requests.post(f"{url}/view", json=BALANCE | {"type_arguments": [nested(n)]}, timeout=10) for n in (7, 8, 9)]
    _check(held[0], 400, "invalid_input", "Move abort in 0x1::type_info: E_NATIVE_FUN_NOT_AVAILABLE(0x1): ", 4016)
    _check(held[1], 400, "invalid_input", "type '0x1::coin::CoinStore<vector<", 2021)
    _check(held[2], 400, "invalid_input", in_view)


@pytest.mark.parametrize("what", ["view", "simulate"])
def test_types_in_bcs_nest_in_eight_others_and_no_deeper(url, what):
    """As types in JSON. A node also counts the containers around a type, and so stops some levels earlier."""
    name, two = FunctionId.parse("0x1::coin::balance"), b"\6\6\1"  # a vector of vectors of u8
    if what == "view":
        data = bytes(31) + b"\1\4coin\7balance\1" + two + b"\0"
    else:
        call = EncodedEntryFunction(name, (parse_type_tag("vector<vector<u8>>"),), ())
        raw = RawTransaction(f"0x{0xA11CE:064x}", 0, call, 2_000, 100, 32_503_680_000, 4)
        data = SignedTransaction(raw, NoAccountSignature()).to_bcs()
    place, kind = ("/view", VIEW_BCS) if what == "view" else ("/transactions/simulate", SIGNED_TRANSACTION_BCS)
    for vectors, too_deep in ((8, False), (9, True), (5_000, True)):
        body = data.replace(two, b"\6" * vectors + b"\1")
        answer = requests.post(url + place, data=body, headers={"Content-Type": kind}, timeout=10)
        assert ("nests deeper than 8 types" in answer.text) is too_deep, answer.text[:200]
        assert answer.status_code == 400 or not too_deep


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "parse request payload error: Input data was truncated"),
        (b" ", "parse request payload error: Input data was truncated"),
        (b"{", "parse request payload error: Input data was truncated"),
        (b"not json", "parse request payload error: JSON is malformed"),
        (b'{"function": "0x1::coin::balance"', "parse request payload error: "),
        (b"\xff\xfe", "parse request payload error: "),
        (b"[" * 100_000, "parse request payload error: "),
    ],
)
def test_a_body_that_is_no_json_is_400(url, body, message):
    """The framework's error, without ledger headers."""
    headers = {"Content-Type": "application/json"}
    answer = requests.post(f"{url}/view", data=body, headers=headers, timeout=10)
    _check(answer, 400, "web_framework_error", message)


@pytest.mark.parametrize("path", ["/view", "/accounts/0x1/module/coin", "/accounts/0x1"])
def test_versions_that_cannot_be_read_are_404_410_and_400(url, head, path):
    """Above the head, below the window, and no number at all."""

    def ask(version):
        query = {"ledger_version": version}
        if path == "/view":
            return requests.post(url + path, json=BALANCE, params=query, timeout=10)
        return requests.get(url + path, params=query, timeout=10)

    above = f"Ledger version not found by Ledger version({head + 1})"
    _check(ask(head + 1), 404, "version_not_found", above)
    _check(ask(3), 410, "version_pruned", "Ledger version(3) has been pruned")
    for text in ("-1", "x", "", "1e3", "0x10", "\u0661", str(2**64), "9" * 5_000):
        _check(ask(text), 400, "web_framework_error", "failed to parse parameter `ledger_version`: ")
    oldest = int(requests.get(url, timeout=10).json()["oldest_ledger_version"])
    assert [ask(version).status_code for version in (oldest - 1, oldest, head)] == [410, 200, 200]


@pytest.mark.parametrize(
    ("path", "status", "code", "message"),
    [
        ("/accounts/0xzz", 400, "web_framework_error", "failed to parse path `address`"),
        ("/accounts/0x1/module/nothing", 404, "module_not_found", "Module not found by Address(0x1), Module name(no"),
        ("/accounts/0x1/resource/0x1::a::B", 404, "resource_not_found", "Resource not found by Address(0x1), Struct"),
        ("/accounts/0x1/resource/u8", 400, "web_framework_error", "failed to parse path `resource_type`"),
        ("/transactions/by_version/99999", 404, "transaction_not_found", "Transaction not found by Ledger version(9"),
        ("/transactions/by_version/1", 410, "version_pruned", "Ledger version(1) has been pruned"),
        ("/transactions/by_version/x", 400, "web_framework_error", "failed to parse path `txn_version`"),
        (f"/transactions/by_hash/0x{'0' * 64}", 404, "transaction_not_found", "Transaction not found by Transaction h"),
        ("/transactions/by_hash/0x1", 400, "web_framework_error", "failed to parse path `txn_hash`"),
        ("/transactions?limit=0", 400, "invalid_input", "Given limit value (0) must not be zero"),
        ("/transactions?limit=x", 400, "web_framework_error", "failed to parse parameter `limit`"),
        ("/transactions?start=99999", 400, "invalid_input", "Given start value (99999) is higher than the current"),
        ("/transactions?start=hello", 400, "web_framework_error", "failed to parse parameter `start`"),
        ("/blocks/by_version/99999", 404, "block_not_found", "Block not found by Ledger version(99999)"),
        ("/blocks/by_height/99999", 404, "block_not_found", "Block not found by Block height(99999)"),
        ("/blocks/by_height/1", 410, "block_pruned", "Block(1) has been pruned"),
        ("/nothing/here", 404, "web_framework_error", "not found"),
        ("/view", 405, "web_framework_error", "method not allowed"),
    ],
)
def test_reads_that_find_nothing_say_so(url, path, status, code, message):
    """Each companion read has its own code for what is missing or mistyped."""
    _check(requests.get(url + path, timeout=10), status, code, message)


@pytest.mark.parametrize("brand", ["", "A B", "X: y\r\nZ", "-a", "a" * 65])
def test_a_brand_that_is_no_part_of_a_header_name_is_refused(brand):
    """It would break every answer."""
    with pytest.raises(InputError, match="brand"):
        embedded.start(embedded.Ledger(), brand=brand)
