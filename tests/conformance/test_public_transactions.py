"""Transactions of public networks: what the rows and balances say is what a plain reading of their JSON says."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from typing import Any

import pandas as pd
import pytest

import toolkit
from toolkit.frames import _balances
from toolkit.frames._transactions import transaction_frames
from toolkit.wire._state_keys import resource_key_hash
from toolkit.wire._transactions import decode_page

APT, GAS_ASSET = "0x1::aptos_coin::AptosCoin", 0xA
OBJECT_GROUP = "0x1::object::ObjectGroup"
# Stores whose content is not in the transaction, and whose state before is not recorded.
NOT_RECORDED = {"secondary_store_burnt"}


@pytest.fixture(scope="module")
def transactions(shared_data) -> list[tuple[str, dict[str, Any]]]:
    """Return the transactions with the names that their collectors gave them."""
    place = shared_data / "mainnet" / "transactions.jsonl.gz"
    if not place.is_file():
        pytest.skip("the transactions of public networks are not beside this checkout (../shared/data/mainnet)")
    with gzip.open(place, "rt", encoding="utf-8") as lines:
        return [(row["name"], row["transaction"]) for row in map(json.loads, lines)]


@pytest.fixture(scope="module")
def named(transactions) -> dict[str, dict[str, Any]]:
    """Return the row of each transaction, by name and version."""
    rows = {}
    for name, transaction in transactions:
        (row,) = frames([transaction])[0].to_dict("records")
        rows.setdefault(name, row)
    return rows


def frames(found: list[dict[str, Any]]) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    return transaction_frames(decode_page(json.dumps(found).encode()))


def number(address: str) -> int:
    return int(address, 16)


def asset_key(text: str) -> str | int:
    """Return an asset in one spelling: a coin's type, or the number of a metadata address."""
    return text if "::" in text or text == "unknown" else number(text)


class Plain:
    """The balance changes of one transaction, added up from its JSON alone."""

    def __init__(self, transaction: dict[str, Any]) -> None:
        self.owners: dict[int, int] = {}
        self.assets: dict[int, int] = {}
        self.balances: dict[int, int] = {}
        self.moved: Counter[int] = Counter()  # by store
        self.last: tuple[int, int | str, int] | None = None
        self.coins: dict[tuple[int, str], str] = {}  # by account and handle
        self.written: set[tuple[int, str]] = set()
        self.sums: Counter[tuple[int, str | int]] = Counter()
        for change in transaction["changes"]:
            if change["type"] == "write_resource":
                self._write(number(change["address"]), change["data"]["type"], change["data"]["data"])
        for event in transaction.get("events", []):
            if event["type"] == "0x1::fungible_asset::FungibleStoreDeletion":
                store = number(event["data"]["store"])
                self.owners[store] = number(event["data"]["owner"])
                self.assets[store] = number(event["data"]["metadata"])
        for event in transaction.get("events", []):
            module, _, kind = event["type"].removeprefix("0x1::").partition("::")
            if module in {"coin", "fungible_asset"} and kind.removesuffix("Event").removeprefix("Coin") in SIGNS:
                self._move(event, module, SIGNS[kind.removesuffix("Event").removeprefix("Coin")])
        self._hand_over(transaction.get("events", []))
        if transaction["type"] == "user_transaction":
            self._pay(transaction)

    def _hand_over(self, events: list[dict[str, Any]]) -> None:
        """Move what a store had before to its last owner, from its first."""
        given: dict[int, int] = {}
        for event in events:
            if event["type"] in {"0x1::object::Transfer", "0x1::object::TransferEvent"}:
                given.setdefault(number(event["data"]["object"]), number(event["data"]["from"]))
        for store, giver in given.items():
            if store in self.assets and self.owners[store] != giver:
                held = self.balances[store] - self.moved[store]
                self.sums[giver, self.assets[store]] -= held
                self.sums[self.owners[store], self.assets[store]] += held

    def _write(self, place: int, tag: str, data: dict[str, Any]) -> None:
        if tag == "0x1::object::ObjectCore":
            self.owners[place] = number(data["owner"])
        elif tag == "0x1::fungible_asset::FungibleStore":
            self.assets[place] = number(data["metadata"]["inner"])
            self.balances[place] = int(data["balance"])
        elif tag.startswith("0x1::coin::CoinStore<"):
            coin = tag.removeprefix("0x1::coin::CoinStore<").removesuffix(">")
            self.written.add((place, coin))
            for handle in ("deposit_events", "withdraw_events"):
                self.coins[place, data[handle]["guid"]["id"]["creation_num"]] = coin

    def _move(self, event: dict[str, Any], module: str, sign: int) -> None:
        data, guid = event["data"], event["guid"]
        amount = sign * int(data["amount"])
        if module == "fungible_asset":
            store = number(data.get("store", guid["account_address"]))
            self.moved[store] += amount
            self.last = self.owners.get(store, store), self.assets.get(store, "unknown"), amount
            self.sums[self.last[:2]] += amount
        elif "coin_type" in data:
            self.sums[number(data["account"]), data["coin_type"]] += amount
        else:
            account = number(guid["account_address"])
            self.sums[account, self.coins.get((account, guid["creation_number"]), "unknown")] += amount

    def _pay(self, transaction: dict[str, Any]) -> None:
        fees = [e["data"] for e in transaction.get("events", []) if e["type"] == "0x1::transaction_fee::FeeStatement"]
        octas = int(transaction["gas_used"]) * int(transaction["gas_unit_price"])
        octas -= sum(int(one["storage_fee_refund_octas"]) for one in fees)
        payer = number((transaction["signature"] or {}).get("fee_payer_address", transaction["sender"]))
        if self.last == (payer, GAS_ASSET, -octas):  # early ledgers report the fee as a withdrawal, too
            return
        self.sums[payer, APT if (payer, APT) in self.written or not fees else GAS_ASSET] -= octas


SIGNS = {"Deposit": 1, "Withdraw": -1}


def test_every_transaction_is_a_row_without_a_problem(transactions):
    """All kinds decode: no row has an error, and none is left undecoded."""
    heads, _, _ = frames([transaction for _, transaction in transactions])
    assert len(heads) == len(transactions) == 79
    assert heads["error_code"].isna().all()
    assert heads["raw"].isna().all()
    submitted = heads[heads["type"] == "user_transaction"]
    assert (submitted["payload_type"] == "entry_function_payload").sum() == submitted["function"].notna().sum()
    assert submitted["arguments"].notna().all()


def test_balances_are_the_sums_of_a_plain_reading(transactions):
    """For every owner and asset: deposits minus withdrawals minus the fee, by the owner and asset of each store."""
    rows = 0
    for name, transaction in transactions:
        moved = _balances.balance_frame(*frames([transaction]), by="ledger_version")
        found = Counter()
        for row in moved.to_dict("records"):
            assert row["change"] == row["deposited"] - row["withdrawn"] - row["fee_octas"], name
            found[number(row["owner"]), asset_key(row["asset"])] += row["change"]
        expected = Plain(transaction).sums
        assert {key: one for key, one in found.items() if one} == {key: one for key, one in expected.items() if one}, (
            name
        )
        assert (moved["asset"] == "unknown").any() == (name in NOT_RECORDED), name
        rows += len(moved)
    print(f"{len(transactions)} transactions, {rows} balances")  # counts in the output


FACTS = {
    "multi_agents": {"signature_type": "multi_agent_signature", "key_type": "ed25519"},
    "user_txn_single_key_secp256k1_ecdsa": {"signature_type": "single_sender", "key_type": "secp256k1_ecdsa"},
    "user_txn_single_sender_webauth": {"signature_type": "single_sender", "key_type": "secp256r1_ecdsa"},
    "user_txn_single_sender_keyless": {"signature_type": "single_sender", "key_type": "keyless"},
    "multi_ed_txn": {"signature_type": "single_sender", "key_type": "multi_key"},
    "user_txn_multi_ed25519": {"signature_type": "multi_ed25519_signature", "key_type": "multi_ed25519"},
    "user_txn_multi_key_keyless": {"signature_type": "fee_payer_signature", "key_type": "multi_key"},
    "multisig": {"success": False, "chain_success": False, "vm_status": "Transaction Executed and Committed with Error CONSTRAINT_NOT_SATISFIED"},
    "default_block_metadata_transactions": {"round": 13_705, "epoch": 6_336},
}  # fmt: skip


@pytest.mark.parametrize("name", FACTS)
def test_facts_have_columns(named, name):
    """The kind of key behind a signature, outcomes and blocks."""
    row = named[name]
    assert {column: row[column] for column in FACTS[name]} == FACTS[name]


def test_what_blocks_and_validators_state_is_readable(transactions, named):
    """No field of these transactions is lost: each has a column or is in the JSON text of `details`."""
    there = 0
    for name, transaction in transactions:
        row = frames([transaction])[0].to_dict("records")[0]
        details = {} if pd.isna(row["details"]) else json.loads(row["details"])
        for field in ("id", "failed_proposer_indices", "previous_block_votes_bitvec", "dkg_transcript",
                      "validator_transaction_type", "quorum_certified_update"):  # fmt: skip
            if field in transaction:
                assert details[field] == transaction[field], name
                there += 1
    assert there == 5
    assert number(named["default_block_metadata_transactions"]["proposer"]) == number(
        "0x324df1e27c4129a58d73851ae0e9366064dc666a73e747051e203694a4cb257"
    )


def test_every_signer_and_payer_is_found(transactions):
    """`involving` finds a transaction by its sender, each secondary signer and the fee payer."""
    found = Counter()
    for name, transaction in transactions:
        signature = transaction.get("signature") or {}
        heads = frames([transaction])[0]
        for kind, signers in {
            "secondary": signature.get("secondary_signer_addresses", []),
            "payer": [signature["fee_payer_address"]] if "fee_payer_address" in signature else [],
        }.items():
            for signer in signers:
                assert len(toolkit.involving(heads, signer)) == 1, (name, signer)
                found[kind] += 1
    assert found == {"secondary": 2, "payer": 6}


def test_state_keys_tell_groups_from_resources(transactions):
    """The hash of a written or deleted resource's state key is that of the resource or of the group of objects."""
    kinds = Counter()
    for _, transaction in transactions:
        for change in transaction["changes"]:
            if change["type"] in {"write_resource", "delete_resource"}:
                tag = change["data"]["type"] if change["type"] == "write_resource" else change["resource"]
                address, key_hash = change["address"], change["state_key_hash"]
                if resource_key_hash(address, tag) == key_hash:
                    kinds["resource"] += 1
                elif resource_key_hash(address, OBJECT_GROUP, group=True) == key_hash:
                    kinds["member of an object"] += 1
                else:
                    assert "::v2_1_domains::" in tag, (transaction["version"], tag)  # has groups of its own
                    kinds["member of another group"] += 1
    assert kinds == {"resource": 332, "member of an object": 403, "member of another group": 11}


VE_ASSET = 0x2EBB2CCAC5E027A87FA0E2E5F656A3A4238D6A48D93EC9B610D570FC0AA0DF12


def test_a_lock_made_by_its_owner_moves_nothing(transactions):
    """Older events: 14,644,184 go into a store that is made and handed over in the same transaction."""
    lock = dict(transactions)["fa_v1_events"]
    (row,) = moved_of(lock, VE_ASSET)
    assert number(row["owner"]) == number(lock["sender"])
    assert (row["deposited"], row["withdrawn"], row["change"]) == (14_644_184, 14_644_184, 0)


def test_what_a_store_without_its_object_gives_up_is_its_owners(transactions):
    """The object core is deleted before the withdrawal; the state before names the owner, who gets it all back."""
    unlock = dict(transactions)["fa_secondary_store_exists_object_core_deleted"]
    core = json.dumps({"owner": unlock["sender"]})
    asked = []

    def read(slots):
        asked.extend(slots)
        return [core for _ in slots]

    (row,) = moved_of(unlock, VE_ASSET, read)
    assert [kind for _, _, kind in asked] == ["0x1::object::ObjectCore"]
    assert number(row["owner"]) == number(unlock["sender"])
    assert (row["deposited"], row["withdrawn"], row["change"]) == (20_303_622_000_289, 20_303_622_000_289, 0)


def moved_of(transaction, asset: int, read=None) -> list[dict[str, Any]]:
    """Return the balance changes of one asset."""
    moved = _balances.balance_frame(*frames([transaction]), by="ledger_version", read=read).to_dict("records")
    return [row for row in moved if asset_key(row["asset"]) == asset]
