"""What the embedded node survives: requests that would change the ledger, endless loops, broken contracts."""

from __future__ import annotations

import pytest
import requests

from toolkit import embedded
from toolkit.embedded import Module, u64, view


@pytest.fixture(scope="module")
def server():
    with embedded.start(embedded.Ledger()) as running:
        yield running


def test_nothing_over_http_changes_the_ledger(server):
    """No method on any path commits anything."""
    digest = server.node.ledger.digest()
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        for path in ("/transactions", "/transactions/batch", "/view", "/accounts/0x1", ""):
            answer = requests.request(method, server.url + path, json={}, timeout=10)
            assert answer.status_code in {400, 403, 404, 405}, (method, path)
    assert server.node.ledger.digest() == digest


def test_a_view_is_bounded_and_a_broken_contract_is_its_own_error():
    """An endless loop ends with its gas; a mistake in Python is an error of the contract, and the node serves on."""

    class Broken(Module, address="0xbad"):
        @view
        def forever(self) -> u64:
            for _ in self.each(iter(int, 1)):
                pass
            return 0

        @view
        def mistake(self) -> u64:
            return {}["nothing"]

    ledger = embedded.Ledger()
    ledger.publish(Broken)
    call = {"type_arguments": [], "arguments": []}
    with embedded.serve(ledger, limits=embedded.Limits(view_gas=10_000)) as url:
        endless = requests.post(f"{url}/view", json=call | {"function": "0xbad::broken::forever"}, timeout=60)
        mistake = requests.post(f"{url}/view", json=call | {"function": "0xbad::broken::mistake"}, timeout=10)
        assert requests.get(url, timeout=10).status_code == 200
    assert (endless.status_code, endless.json()["vm_error_code"]) == (400, 4002)
    assert (mistake.status_code, mistake.json()["error_code"]) == (400, "invalid_input")
    assert "KeyError: 'nothing' (test_node_faults.py, line" in mistake.json()["message"]
