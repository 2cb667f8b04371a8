"""The three operations of the embedded node: table item, view, simulate."""

from __future__ import annotations

import pytest
import requests

from toolkit import embedded
from toolkit.move import Bytes, OptionOf, String, UInt, encode_bcs
from toolkit.move._bcs import Reader
from toolkit.wire import GasBreakdown
from toolkit.wire._gas import find_fee_statement
from toolkit.wire._headers import parse_headers
from toolkit.wire._transactions import decode_simulation

APT = "0x1::aptos_coin::AptosCoin"
RECORD = "0xcafe::registry::Record"
STRING = "0x1::string::String"
BCS = {"Accept": "application/x-bcs"}


@pytest.fixture(scope="module")
def ledger():
    return embedded.Ledger.with_history(versions=1_000, cache=True)


@pytest.fixture(scope="module")
def post(ledger):
    with embedded.serve(ledger) as url, requests.Session() as session:

        def send(path, body, headers=None, **query):
            return session.post(url + path, json=body, params=query, headers=headers, timeout=10)

        yield send


@pytest.fixture
def handle(ledger):
    return ledger.view("0xcafe::registry::handle")[0][0]


def _view(function, *arguments, types=()):
    return {"function": function, "type_arguments": list(types), "arguments": list(arguments)}


def _item(key, key_type=STRING, value_type=RECORD):
    return {"key_type": key_type, "value_type": value_type, "key": key}


def _transfer(ledger, *, to="0xb0b", amount="100", sender="0xa11ce", **changes):
    sequence_number = ledger.view("0x1::account::get_sequence_number", [sender])[0][0]
    return {
        "sender": sender,
        "sequence_number": str(sequence_number),
        "max_gas_amount": "200000",
        "gas_unit_price": "100",
        "expiration_timestamp_secs": "32503680000",
        "payload": {
            "type": "entry_function_payload",
            "function": "0x1::aptos_account::transfer",
            "type_arguments": [],
            "arguments": [to, amount],
        },
        "signature": {"type": "no_account_signature"},
    } | changes


# -- table item ------------------------------------------------------------------------------------------------


def test_a_table_item_is_the_bare_value(post, handle):
    """The answer is the struct stored under the key, in wire form, without gas."""
    answer = post(f"/tables/{handle}/item", _item("alice"))
    assert answer.status_code == 200
    assert answer.json()["owner"] == "0xa11ce"
    assert isinstance(answer.json()["registered_at"], str)
    assert "x-aptos-gas-used" not in answer.headers


def test_a_table_item_in_bcs_is_the_stored_bytes(post, handle):
    """BCS answers do not even look at the value type."""
    answer = post(f"/tables/{handle}/item", _item("alice", value_type="bool"), headers=BCS)
    assert answer.headers["content-type"] == "application/x-bcs"
    reader = Reader(answer.content)
    assert reader.address().endswith("a11ce")
    assert str(reader.u64()) == post(f"/tables/{handle}/item", _item("alice")).json()["registered_at"]


def test_a_table_item_reads_at_the_version_asked(post, handle, ledger):
    """A name that changes hands has its former owner before, and nobody before it was registered."""
    sold = next(
        version
        for version in range(ledger.head, 0, -1)
        if (done := ledger.transaction(version)).request is not None
        and done.request.executable.function.wire == "0xcafe::registry::transfer"
    )
    name = Reader(ledger.transaction(sold).request.executable.arguments[0]).string()
    before, after = (
        post(f"/tables/{handle}/item", _item(name), ledger_version=version).json() for version in (sold - 1, sold)
    )
    assert before["registered_at"] == after["registered_at"]
    missing = post(f"/tables/{handle}/item", _item(name), ledger_version=1)
    assert (missing.status_code, missing.json()["error_code"]) == (404, "table_item_not_found")


def test_a_raw_item_takes_and_gives_bcs(post, handle):
    """The key is the bytes of the key; JSON answers are refused."""
    key = f"0x{encode_bcs(String(), 'alice').hex()}"
    raw = post(f"/tables/{handle}/raw_item", {"key": key}, headers=BCS)
    assert raw.content == post(f"/tables/{handle}/item", _item("alice"), headers=BCS).content
    refused = post(f"/tables/{handle}/raw_item", {"key": key})
    assert (refused.status_code, refused.json()["error_code"]) == (403, "api_disabled")


# -- view ------------------------------------------------------------------------------------------------------


def test_a_view_reads_at_the_version_asked_while_headers_tell_the_head(post, ledger):
    """The value is the past's; the ledger version of the headers is the present's."""
    answer = post("/view", _view("0xcafe::registry::size"), ledger_version=100)
    assert answer.json() == [str(ledger.view("0xcafe::registry::size", version=100)[0][0])]
    assert parse_headers(answer.headers).ledger.version == ledger.head


def test_a_view_in_bcs_gives_the_same_values(post, ledger):
    """A BCS answer is a count and the values one after another."""
    answer = post("/view", _view("0x1::coin::supply", types=[APT]), headers=BCS)
    assert answer.headers["content-type"] == "application/x-bcs"
    supply = ledger.view("0x1::coin::supply", [], [APT])[0][0]
    assert answer.content == b"\x01" + encode_bcs(OptionOf(UInt(128)), supply)


def test_a_view_request_in_bcs_is_read(ledger):
    """Module id, function, type arguments and encoded arguments, without JSON."""
    body = bytes(31) + b"\x01" + b"\x04coin" + b"\x07balance"
    body += b"\x01" + b"\x07" + bytes(31) + b"\x01" + b"\x0aaptos_coin" + b"\x09AptosCoin" + b"\x00"
    body += b"\x01" + encode_bcs(Bytes(), bytes.fromhex("a11ce".rjust(64, "0")))
    with embedded.serve(ledger) as url:
        headers = {"Content-Type": "application/x.aptos.view_function+bcs"}
        answer = requests.post(f"{url}/view", data=body, headers=headers, timeout=10)
    assert answer.json() == [str(ledger.view("0x1::coin::balance", ["0xa11ce"], [APT])[0][0])]


# -- simulate --------------------------------------------------------------------------------------------------


def test_a_simulation_shows_what_would_happen_and_changes_nothing(post, ledger):
    """One transaction without a type, its changes, events and gas; the ledger stays as it was."""
    head, digest = ledger.head, ledger.digest()
    answer = post("/transactions/simulate", _transfer(ledger))
    raw = answer.json()
    assert [len(raw), "type" in raw[0], raw[0]["version"]] == [1, False, str(head)]
    (simulated,) = decode_simulation(answer.content)
    assert (simulated.success, simulated.vm_status) == (True, "Executed successfully")
    assert parse_headers(answer.headers).gas_used == int(simulated.gas_used)
    types = [change["data"]["type"] for change in raw[0]["changes"] if change["type"] == "write_resource"]
    assert types.count("0x1::coin::CoinStore<0x1::aptos_coin::AptosCoin>") == 2
    assert raw[0]["state_change_hash"] == raw[0]["event_root_hash"] == f"0x{'0' * 64}"
    assert (ledger.head, ledger.digest()) == (head, digest)


def test_a_simulation_costs_what_the_commit_then_costs():
    """Simulated and committed, the same call charges the same parts and writes the same keys."""
    ledger = embedded.Ledger()
    with embedded.serve(ledger) as url:
        body = _transfer(ledger)
        simulated = requests.post(f"{url}/transactions/simulate", json=body, timeout=10).json()[0]
        done = ledger.commit("0x1::aptos_account::transfer", "0xb0b", 100, sender="0xa11ce")
        committed = requests.get(f"{url}/transactions/by_version/{done.version}", timeout=10).json()
    assert simulated["events"][-1] == committed["events"][-1]
    keys = [[change["state_key_hash"] for change in one["changes"]] for one in (simulated, committed)]
    assert keys[0] == keys[1]


def test_parts_of_a_simulation_reconcile(post, ledger):
    """A transfer that makes an account pays storage, and its parts add up to the total."""
    answer = post("/transactions/simulate", _transfer(ledger, to="0x123456789"))
    (simulated,) = decode_simulation(answer.content)
    gas = GasBreakdown.from_statement(find_fee_statement(simulated.events), gas_unit_price=100)
    assert gas.storage_fee_octas > 0
    assert gas.reconciles
    assert gas.total_charge_gas_units == int(simulated.gas_used)


def test_a_failing_simulation_is_200_with_the_reason(post, ledger):
    """A Move abort is named; gas, the sequence number and a fee statement are still there."""
    answer = post("/transactions/simulate", _transfer(ledger, amount=str(10**18)))
    (simulated,) = answer.json()
    assert answer.status_code == 200
    assert simulated["success"] is False
    assert simulated["vm_status"].startswith("Move abort in 0x1::coin: EINSUFFICIENT_BALANCE(0x10006): ")
    assert int(simulated["gas_used"]) > 0
    assert any(change["data"]["type"] == "0x1::account::Account" for change in simulated["changes"])
    assert simulated["events"][-1]["type"] == "0x1::transaction_fee::FeeStatement"


def test_estimates_replace_price_and_limit(post, ledger):
    """The answer repeats the replaced numbers; the prioritized price wins; the limit is what is affordable."""
    plain = post("/transactions/simulate", _transfer(ledger, gas_unit_price="7"), estimate_gas_unit_price="true")
    assert plain.json()[0]["gas_unit_price"] == "100"
    both = post(
        "/transactions/simulate",
        _transfer(ledger),
        estimate_gas_unit_price="true",
        estimate_prioritized_gas_unit_price="true",
        estimate_max_gas_amount="true",
    ).json()[0]
    assert both["gas_unit_price"] == "150"
    assert both["max_gas_amount"] == "20000000"
    poor = post("/transactions/simulate", _transfer(ledger, sender="0x404"), estimate_max_gas_amount="true").json()[0]
    assert poor["max_gas_amount"] == "28"  # the least a transaction needs, rounded up


def test_a_fee_payer_and_second_signers_are_read_from_the_signature(post, ledger):
    """With a fee payer the sender needs no coins; payer 0x0 is charged nothing."""
    none = {"type": "no_account_signature"}
    for payer, stores in (("0xb0b", 2), ("0x0", 2)):
        signature = {
            "type": "fee_payer_signature",
            "sender": none,
            "secondary_signer_addresses": [],
            "secondary_signers": [],
            "fee_payer_address": payer,
            "fee_payer_signer": none,
        }
        (simulated,) = post("/transactions/simulate", _transfer(ledger, signature=signature)).json()
        assert simulated["success"], simulated["vm_status"]
        changed = [c["address"] for c in simulated["changes"] if "CoinStore" in str(c.get("data"))]
        assert len(changed) == stores


def test_an_orderless_transaction_needs_no_sequence_number(post, ledger):
    """With a nonce the sequence number is ignored and shown as the largest u64."""
    soon = str(ledger.view("0x1::timestamp::now_seconds")[0][0] + 50)
    body = _transfer(ledger, sequence_number="0", replay_protection_nonce="12345", expiration_timestamp_secs=soon)
    (simulated,) = post("/transactions/simulate", body).json()
    assert simulated["success"], simulated["vm_status"]
    assert (simulated["sequence_number"], simulated["replay_protection_nonce"]) == (str(2**64 - 1), "12345")
