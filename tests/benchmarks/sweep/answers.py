"""What the benchmark servers answer, and the call that every variant sends."""

from __future__ import annotations

import json

FUNCTION, COIN, OWNER = "0x1::coin::balance", "0x1::aptos_coin::AptosCoin", "0xa11ce"
VALUE = 123
HEAD = 1_000_000_000
LEDGER = {
    "X-APTOS-CHAIN-ID": "4",
    "X-APTOS-LEDGER-VERSION": str(HEAD),
    "X-APTOS-LEDGER-OLDEST-VERSION": "0",
    "X-APTOS-LEDGER-TIMESTAMPUSEC": "1790000000000000",
    "X-APTOS-EPOCH": "7",
    "X-APTOS-BLOCK-HEIGHT": "60000",
    "X-APTOS-OLDEST-BLOCK-HEIGHT": "0",
    "X-APTOS-GAS-USED": "7",
}
_NODE = {
    "chain_id": 4,
    "epoch": "7",
    "ledger_version": str(HEAD),
    "oldest_ledger_version": "0",
    "ledger_timestamp": "1790000000000000",
    "node_role": "full_node",
    "oldest_block_height": "0",
    "block_height": "60000",
    "git_hash": "0" * 40,
}
_BALANCE = {
    "name": "balance",
    "visibility": "public",
    "is_entry": False,
    "is_view": True,
    "generic_type_params": [{"constraints": []}],
    "params": ["address"],
    "return": ["u64"],
}
_MODULE = {
    "bytecode": "0xa11ceb0b",
    "abi": {"address": "0x1", "name": "coin", "friends": [], "exposed_functions": [_BALANCE], "structs": []},
}
ANSWERS = {
    "/v1": json.dumps(_NODE),
    "/v1/accounts/0x1/module/coin": json.dumps(_MODULE),
    "/v1/view": json.dumps([str(VALUE)]),
}
BODY = json.dumps({"function": FUNCTION, "type_arguments": [COIN], "arguments": [OWNER]})
