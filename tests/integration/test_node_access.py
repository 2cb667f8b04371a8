"""What a node's operator refuses and compressed answers."""

from __future__ import annotations

import pytest
import requests

from toolkit import embedded
from toolkit.embedded.http._operations import VIEW_BCS

APT = "0x1::aptos_coin::AptosCoin"
VIEW = {"function": "0x1::coin::balance", "type_arguments": [APT], "arguments": ["0xa11ce"]}
SIMULATION = {
    "sender": "0xa11ce",
    "sequence_number": "0",
    "max_gas_amount": "2000",
    "gas_unit_price": "100",
    "expiration_timestamp_secs": "32503680000",
    "payload": {
        "type": "entry_function_payload",
        "function": "0x1::aptos_account::transfer",
        "type_arguments": [],
        "arguments": ["0xb0b", "1"],
    },
    "signature": {"type": "no_account_signature"},
}
BCS = {"Accept": "application/x-bcs"}


@pytest.fixture(scope="module")
def ledger():
    return embedded.Ledger()


@pytest.fixture(scope="module")
def url(ledger):
    with embedded.serve(ledger) as served:
        yield served


def _refusal(answer):
    body = answer.json()
    assert "x-aptos-ledger-version" not in answer.headers
    return answer.status_code, body["error_code"], body["message"]


def test_a_view_outside_the_list_is_403_invalid_input(ledger):
    """In JSON and BCS, with the address in full and without ledger headers; what is listed answers."""
    access = embedded.Access(views=["0x1::coin::supply", "0x1::coin::balance"])
    text = f"Function {'1'.rjust(64, '0')}::coin::decimals is not allowed"
    with embedded.serve(ledger, access=access) as url:
        body = VIEW | {"function": "0x1::coin::decimals", "arguments": []}
        assert _refusal(requests.post(f"{url}/view", json=body, timeout=10)) == (403, "invalid_input", text)
        data = bytes(31) + b"\1\4coin\x08decimals\0\0"
        answer = requests.post(f"{url}/view", data=data, headers={"Content-Type": VIEW_BCS}, timeout=10)
        assert _refusal(answer) == (403, "invalid_input", text)
        assert requests.post(f"{url}/view", json=VIEW, timeout=10).status_code == 200


def test_a_blocked_sender_and_simulation_switched_off_are_403(ledger):
    """The filter answers invalid_input, the switch api_disabled."""
    with embedded.serve(ledger, access=embedded.Access(blocked_senders=["0xa11ce"])) as url:
        answer = requests.post(f"{url}/transactions/simulate", json=SIMULATION, timeout=10)
        refused = answer.json()
        assert (answer.status_code, refused["error_code"]) == (403, "invalid_input")
        assert refused["message"] == "Transaction not allowed by simulation filter"
        assert "x-aptos-ledger-version" in answer.headers
        body = SIMULATION | {"sender": "0xb0b"}
        assert requests.post(f"{url}/transactions/simulate", json=body, timeout=10).status_code == 200
    with embedded.serve(ledger, access=embedded.Access(simulation=False)) as url:
        answer = requests.post(f"{url}/transactions/simulate", json=SIMULATION, timeout=10)
        assert _refusal(answer) == (403, "api_disabled", "Simulate transaction is disabled on this endpoint")


@pytest.mark.parametrize(("form", "headers"), [("JSON", {}), ("BCS", BCS)])
def test_a_form_of_output_that_is_off_is_403(ledger, form, headers):
    """Each of the three operations says which; the other form answers."""
    access = embedded.Access(json_output=form != "JSON", bcs_output=form != "BCS")
    item = {"key_type": "u8", "value_type": "u8", "key": 1}
    with embedded.serve(ledger, access=access) as url:
        for path, body, what in (
            ("/tables/0x1/item", item, "Get table item"),
            ("/view", VIEW, "View function"),
            ("/transactions/simulate", SIMULATION, "Simulate transaction"),
        ):
            answer = requests.post(url + path, json=body, headers=headers, timeout=10)
            text = f"{what} with {form} output is disabled on this endpoint"
            assert _refusal(answer) == (403, "api_disabled", text)
        other = BCS if form == "JSON" else {}
        assert requests.post(f"{url}/view", json=VIEW, headers=other, timeout=10).status_code == 200


@pytest.mark.parametrize(
    ("accepted", "compressed"), [("gzip", True), ("gzip;q=0", False), ("identity", False), ("br, *", True)]
)
def test_long_answers_are_compressed_for_clients_that_accept_it(url, accepted, compressed):
    """The same JSON either way, and short answers as they are."""
    headers = {"Accept-Encoding": accepted}
    answer = requests.get(f"{url}/accounts/0x1/modules", headers=headers, timeout=10)
    assert answer.headers.get("content-encoding") == ("gzip" if compressed else None)
    assert answer.headers["vary"] == "accept-encoding"
    assert len(answer.json()) > 10
    assert "content-encoding" not in requests.get(f"{url}/estimate_gas_price", headers=headers, timeout=10).headers
