"""Write a seeded file of user transactions as a node prints them: five changes and four events each.

``python generate.py COUNT OUT.json`` also writes ``OUT.json.nd``, one transaction a line.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

FEE_STATEMENT = "0x1::transaction_fee::FeeStatement"
APT = "0x1::aptos_coin::AptosCoin"


class Generator:
    """Random but reproducible transactions; addresses and coins repeat as they do on a ledger."""

    def __init__(self, seed: int = 7) -> None:
        self.random = random.Random(seed)
        self.accounts = [self.hex(32) for _ in range(500)]
        self.coins = [APT, *(f"{self.hex(32)}::coin_{i}::C{i}" for i in range(30))]

    def hex(self, size: int) -> str:
        return "0x" + self.random.randbytes(size).hex()

    def digits(self, bits: int) -> str:
        return str(self.random.getrandbits(self.random.randint(1, bits)))

    def account(self) -> str:
        return self.random.choice(self.accounts)

    def handle(self) -> dict[str, Any]:
        guid = {"id": {"addr": self.account(), "creation_num": self.digits(8)}}
        return {"counter": self.digits(20), "guid": guid}

    def resource(self) -> tuple[str, dict[str, Any]]:
        coin = self.random.choice(self.coins)
        kind = self.random.randint(0, 4)
        if kind == 0:
            return f"0x1::coin::CoinStore<{coin}>", {
                "coin": {"value": self.digits(64)},
                "deposit_events": self.handle(),
                "frozen": False,
                "withdraw_events": self.handle(),
            }
        if kind == 1:
            balance = {"balance": self.digits(64), "frozen": self.random.random() < 0.1}
            return "0x1::fungible_asset::FungibleStore", balance | {"metadata": {"inner": self.account()}}
        if kind == 2:
            current = {"max_value": str(2**128 - 1), "value": self.digits(128)}
            return "0x1::fungible_asset::ConcurrentSupply", {"current": current}
        if kind == 3:
            offered = [self.account()] if self.random.random() < 0.2 else []
            return "0x1::account::Account", {
                "authentication_key": self.hex(32),
                "coin_register_events": self.handle(),
                "guid_creation_num": self.digits(6),
                "rotation_capability_offer": {"for": {"vec": []}},
                "sequence_number": self.digits(30),
                "signer_capability_offer": {"for": {"vec": offered}},
            }
        pool = f"{self.account()}::pool::Pool<{coin}, {self.random.choice(self.coins)}>"
        some = {"some": self.digits(64)} if self.random.random() < 0.5 else self.digits(128)
        return pool, {
            "fee_bps": self.random.randint(1, 100),
            "k_last": self.digits(256),
            "price_cumulative": self.digits(128),
            "reserves": [self.digits(64), self.digits(64)],
            "tags": self.hex(self.random.randint(0, 40)),
            "value": some,  # an object in one row and text in another, as generic fields are
        }

    def change(self) -> dict[str, Any]:
        share = self.random.random()
        key = {"state_key_hash": self.hex(32)}
        if share < 0.62:
            kind, data = self.resource()
            written = {"data": {"type": kind, "data": data}, "type": "write_resource"}
            return {"address": self.account()} | key | written
        if share < 0.87:
            item = {"handle": self.hex(32), "key": self.hex(33), "value": self.hex(self.random.randint(16, 80))}
            value = self.digits(128) if self.random.random() < 0.5 else {"balance": self.digits(64)}
            data = {"key": self.account(), "key_type": "address", "value": value, "value_type": "u128"}
            known = data if self.random.random() < 0.8 else None
            return key | item | {"data": known, "type": "write_table_item"}
        if share < 0.93:
            known = {"key": self.account(), "key_type": "address"} if self.random.random() < 0.5 else None
            item = {"handle": self.hex(32), "key": self.hex(33), "data": known}
            return key | item | {"type": "delete_table_item"}
        if share < 0.98:
            resource = f"0x1::coin::CoinStore<{self.random.choice(self.coins)}>"
            return {"address": self.account()} | key | {"resource": resource, "type": "delete_resource"}
        return {"address": self.account()} | key | {"data": self.module(), "type": "write_module"}

    def module(self) -> dict[str, Any]:
        function = {
            "name": "f",
            "visibility": "public",
            "is_entry": True,
            "is_view": False,
            "generic_type_params": [{"constraints": ["copy", "drop"]}],
            "params": ["&signer", "u64"],
            "return": [],
        }
        abi = {"address": self.account(), "name": "m", "friends": [], "exposed_functions": [function], "structs": []}
        return {"bytecode": self.hex(600), "abi": abi}

    def event(self) -> dict[str, Any]:
        kind, data = self.random.choice(
            [
                ("0x1::fungible_asset::Deposit", {"amount": self.digits(64), "store": self.account()}),
                ("0x1::coin::WithdrawEvent", {"amount": self.digits(64)}),
                (
                    f"{self.account()}::amm::Swap<{self.random.choice(self.coins)}>",
                    {
                        "amount_in": self.digits(128),
                        "amount_out": self.digits(128),
                        "path": [self.account() for _ in range(self.random.randint(1, 3))],
                        "is_buy": True,
                        "memo": 'swap \u00e9\u20ac "q"',
                    },
                ),
            ]
        )
        guid = {"creation_number": self.digits(8), "account_address": self.account()}
        return {"guid": guid, "sequence_number": self.digits(30), "type": kind, "data": data}

    def fee_statement(self, total: str) -> dict[str, Any]:
        data = {
            "execution_gas_units": self.digits(12),
            "io_gas_units": self.digits(12),
            "storage_fee_octas": self.digits(24),
            "storage_fee_refund_octas": "0",
            "total_charge_gas_units": total,
        }
        guid = {"creation_number": "0", "account_address": "0x0"}
        return {"guid": guid, "sequence_number": "0", "type": FEE_STATEMENT, "data": data}

    def transaction(self, index: int) -> dict[str, Any]:
        gas_used = self.digits(20)
        arguments = [{"inner": self.account()}, self.account(), self.digits(64)]
        return {
            "version": str(1_000_000_000 + index),
            "hash": self.hex(32),
            "state_change_hash": self.hex(32),
            "event_root_hash": self.hex(32),
            "state_checkpoint_hash": None,
            "gas_used": gas_used,
            "success": self.random.random() < 0.95,
            "vm_status": "Executed successfully",
            "accumulator_root_hash": self.hex(32),
            "changes": [self.change() for _ in range(5)],
            "sender": self.account(),
            "sequence_number": self.digits(64),
            "max_gas_amount": "200000",
            "gas_unit_price": "100",
            "expiration_timestamp_secs": "1760000000",
            "payload": {
                "function": "0x1::primary_fungible_store::transfer",
                "type_arguments": ["0x1::fungible_asset::Metadata"],
                "arguments": arguments,
                "type": "entry_function_payload",
            },
            "signature": {"public_key": self.hex(32), "signature": self.hex(64), "type": "ed25519_signature"},
            "replay_protection_nonce": self.digits(64) if self.random.random() < 0.1 else None,
            "events": [self.event() for _ in range(3)] + [self.fee_statement(gas_used)],
            "timestamp": str(1_760_000_000_000_000 + index),
            "type": "user_transaction",
        }


def write(count: int, out: Path, *, seed: int = 7) -> None:
    """Write `count` transactions as one array, and as one a line beside it."""
    generator = Generator(seed)
    texts = (
        json.dumps(generator.transaction(index), separators=(",", ":"), ensure_ascii=False) for index in range(count)
    )
    with out.open("w", encoding="utf-8") as array, Path(f"{out}.nd").open("w", encoding="utf-8") as lines:
        array.write("[")
        for index, text in enumerate(texts):
            array.write(("," if index else "") + text)
            lines.write(text + "\n")
        array.write("]")


if __name__ == "__main__":
    write(int(sys.argv[1]), Path(sys.argv[2]))
