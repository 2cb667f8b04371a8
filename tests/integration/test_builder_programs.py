"""What the simulation builder lets people copy, run as they would run it: in a shell, in Python, from a transaction."""

from __future__ import annotations

import json
import shutil
import subprocess

import msgspec
import pytest

import toolkit
from toolkit.errors import InputError
from toolkit.widgets import SimulationBuilder
from toolkit.widgets._messages import NoProgram
from toolkit.widgets._programs import programs

CALL = toolkit.EntryFunction("0x1::aptos_account::transfer", arguments=["0xb0b", 100])
REQUESTS = {
    "as it is": {},
    "orderless": {"replay_protection_nonce": 7},
    "numbers": {"max_gas_amount": 5000, "gas_unit_price": 150},
    "fee payer": {"fee_payer": "0x0"},
    "secondary": {"secondary_signers": ["0xb0b"]},
    "ed25519": {"public_key": "0x" + "11" * 32},
}


@pytest.fixture(scope="module")
def node():
    """Return the embedded node."""
    with toolkit.connect() as made:
        yield made


@pytest.mark.parametrize("name", REQUESTS)
def test_the_curl_commands_simulate_the_same(node, name):
    """Run in a shell, they get the answer that the client gets: they read sequence number and time themselves."""
    if shutil.which("curl") is None:
        pytest.skip("no curl on PATH")
    request = toolkit.SimulationRequest(CALL, sender="0xa11ce", **REQUESTS[name])
    builder = SimulationBuilder(node, request=request)
    builder.check()
    program = dict(builder._programs)["curl"]
    builder.close()
    done = subprocess.run(["sh", "-c", program], capture_output=True, text=True, timeout=60, check=True)
    [answer] = json.loads(done.stdout)
    expected = node.simulate(request)
    assert (answer["success"], answer["vm_status"]) == (expected.success, expected.vm_status)
    assert answer["gas_used"] == str(expected.gas_used)
    assert answer["max_gas_amount"] == str(expected.transaction.max_gas_amount)


def test_a_signature_that_json_cannot_say_has_no_curl(node):
    """The commands would be refused by a node; the text says what to use instead."""
    key = toolkit.wire.PublicKey("0x" + "11" * 32)
    request = toolkit.SimulationRequest(CALL, sender="0xa11ce", public_key=key)
    assert isinstance(programs(request, node)["curl"], NoProgram)


def test_a_form_starts_from_a_committed_transaction(node):
    """Version and hash give the same form, with the arguments in their fields; what is not a call is refused in words."""
    found = toolkit.fetch_transactions(node, "4000:4100", progress=False).transactions.dropna(subset="sender").iloc[0]
    builder = SimulationBuilder(node)
    builder.start_from(int(found["ledger_version" if "ledger_version" in found else "version"]))
    by_version = builder.request
    assert by_version.sender == found["sender"]
    assert len(builder._draft.arguments) == len(by_version.payload.arguments)
    builder.start_from(found["hash"])
    assert builder.request == by_version
    with pytest.raises(InputError, match="only user transactions can be simulated"):
        builder.start_from(0)
    message = {"do": "load", "draft": msgspec.to_builtins(builder._draft) | {"seq": 10**6, "committed": "99,999,999"}}
    builder._handle_msg({"content": {"data": {"method": "custom", "content": message}}, "buffers": []})
    builder._wait()
    assert "99,999,999" in builder.errors["committed"]
    builder.close()


def test_the_form_knows_the_accounts_of_an_embedded_ledger(node):
    """Names of the ledger's accounts and of the framework stand beside their addresses."""
    builder = SimulationBuilder(node, request=toolkit.SimulationRequest(CALL, sender="0xa11ce"))
    builder.check()
    assert builder._findings.notes["sender"] == "= alice"
    assert builder._findings.notes["arguments.0"] == "= bob"
    builder.arguments = '["0x1", 100]'
    assert builder._findings.notes["arguments.0"] == "= framework"
    builder.close()
