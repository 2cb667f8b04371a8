"""A node that answers from memory and keeps count of what it was asked."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

import pytest

from toolkit.client._http import Answer
from toolkit.client._node import Node
from toolkit.widgets import SimulationBuilder


def function(name, *params, **about):
    return {
        "name": name,
        "visibility": "public",
        "is_entry": True,
        "is_view": False,
        "generic_type_params": [],
        "params": list(params),
        "return": [],
    } | about


ACCOUNT = {
    "address": "0x1",
    "name": "aptos_account",
    "friends": [],
    "exposed_functions": [
        function("transfer", "&signer", "address", "u64"),
        function("transfer_coins", "&signer", "address", "u64", generic_type_params=[{"constraints": []}]),
        function("exists_at", "address", is_entry=False, is_view=True),
    ],
    "structs": [],
}
INFO = {
    "chain_id": 4,
    "epoch": "91",
    "ledger_version": "4999",
    "oldest_ledger_version": "0",
    "ledger_timestamp": "1782808704000000",
    "node_role": "full_node",
    "oldest_block_height": "0",
    "block_height": "1003",
    "git_hash": "embedded-model-1",
}
HEADERS = {f"x-aptos-{name.replace('_', '-')}": str(value) for name, value in INFO.items()}


def answer(**changed):
    """Return a simulated transfer as a node answers it, some fields changed."""
    fee = {
        "total_charge_gas_units": "41",
        "execution_gas_units": "29",
        "io_gas_units": "13",
        "storage_fee_octas": "0",
        "storage_fee_refund_octas": "0",
    }
    guid = {"creation_number": "0", "account_address": "0x0"}
    return {
        "version": "4999",
        "hash": "0x" + "ab" * 32,
        "state_change_hash": "0x" + "00" * 32,
        "event_root_hash": "0x" + "00" * 32,
        "state_checkpoint_hash": None,
        "gas_used": "41",
        "success": True,
        "vm_status": "Executed successfully",
        "accumulator_root_hash": "0x" + "00" * 32,
        "changes": [
            {
                "address": "0xa11ce",
                "state_key_hash": "0x" + "01" * 32,
                "data": {"type": "0x1::account::Account", "data": {"sequence_number": "18446744073709551615"}},
                "type": "write_resource",
            },
            {
                "state_key_hash": "0x" + "02" * 32,
                "handle": "0x" + "5c" * 32,
                "key": "0x0102",
                "value": "0x0304",
                "data": None,
                "type": "write_table_item",
            },
        ],
        "sender": "0xa11ce",
        "sequence_number": "245",
        "max_gas_amount": "20000000",
        "gas_unit_price": "100",
        "expiration_timestamp_secs": "1782809304",
        "payload": {
            "function": "0x1::aptos_account::transfer",
            "type_arguments": [],
            "arguments": ["0xb0b", "100"],
            "type": "entry_function_payload",
        },
        "signature": {"type": "no_account_signature"},
        "replay_protection_nonce": None,
        "events": [
            {"guid": guid, "sequence_number": "0", "type": "0x1::transaction_fee::FeeStatement", "data": fee},
        ],
        "timestamp": "1782808704000000",
        "type": "user_transaction",
    } | changed


class Memory:
    """A transport that answers from memory. Set `answer` to a simulated transaction, or `refusal` to an error body."""

    def __init__(self):
        self.asked = []
        self.bodies = []
        self.answer = answer()
        self.refusal = None
        self.modules = 200
        self.committed = {}

    def send(self, request):
        path = urlsplit(request.url).path.removeprefix("/v1")
        self.asked.append(path)
        status, body = self._answered(path)
        if request.body:
            self.bodies.append(json.loads(request.body))
        return Answer(status, {"content-type": "application/json"} | HEADERS, json.dumps(body).encode())

    def _answered(self, path):
        if path == "/transactions/simulate":
            return (200, [self.answer]) if self.refusal is None else (400, self.refusal)
        if "/module" in path and self.modules != 200:
            return self.modules, {"message": "not offered", "error_code": "api_disabled", "vm_error_code": None}
        module = {"bytecode": "0x", "abi": ACCOUNT}
        listed = {"/accounts/0x1/module/aptos_account": module, "/accounts/0x1/modules": [module]}
        if path in listed or path.endswith("/modules"):
            return 200, listed.get(path, [])
        if path.rpartition("/")[0].endswith("/module"):
            return 404, {"message": "no such module", "error_code": "module_not_found", "vm_error_code": None}
        if path.startswith("/accounts/"):
            return 200, {"sequence_number": "245", "authentication_key": "0x" + "00" * 32}
        return 200, self.committed.get(path, INFO)

    def close(self):
        pass


def page(builder, title):
    """Return the HTML of the page with a title."""
    return next(one.html for one in builder._pages if one.title == title)


def executed(builder):
    """Run the Python program and return its names."""
    names = {}
    exec(builder.python, names)  # noqa: S102 - the program under test
    names["node"].close()
    return names


@pytest.fixture
def memory():
    """Return the transport under the node."""
    return Memory()


@pytest.fixture
def node(memory):
    """Return a node without a network."""
    with Node("http://127.0.0.1:1/v1", transport=memory, name="embedded") as made:
        yield made


@pytest.fixture
def builder(node):
    """Return a builder on the fake node, closed after the test."""
    made = SimulationBuilder(node)
    yield made
    made.close()


@pytest.fixture
def filled(builder):
    """Return a builder whose entries make a transfer."""
    builder.sender = "0xa11ce"
    builder.function = "0x1::aptos_account::transfer"
    builder.arguments = '["0xb0b", 100]'
    return builder


@pytest.fixture
def simulation(memory, filled):
    """Return a function that simulates with some fields of the answer changed."""

    def run(**changed):
        memory.answer = answer(**changed)
        filled.simulate()
        return filled.simulation

    return run
