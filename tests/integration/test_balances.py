"""Balances of all owners: what transactions say of them, and what the ledger says."""

from __future__ import annotations

import random
import re
from collections import Counter
from typing import Any

import pandas as pd
import pytest
import requests

import toolkit
from tests.conformance.plain_values import address
from toolkit import embedded
from toolkit.embedded.framework._coin import PAIRED_APT
from toolkit.embedded.framework._configuration import Features
from toolkit.embedded.framework._fungible_asset import METADATA, FungibleAsset, PrimaryFungibleStore
from toolkit.embedded.framework._object import ObjectModule, derived_object_address, named_object_address

APT = "0x1::aptos_coin::AptosCoin"
FUNGIBLE, CORE = "0x1::fungible_asset::FungibleStore", "0x1::object::ObjectCore"
Balances = dict[tuple[str, str], list[int]]
"""What each store of an owner and asset holds."""


def pages(url: str, last: int) -> list[dict[str, Any]]:
    """Return all transactions as a node prints them."""
    found: list[dict[str, Any]] = []
    while len(found) <= last:
        query = {"start": len(found), "limit": 100}
        found += requests.get(f"{url}/transactions", params=query, timeout=30).json()
    return found


def balances_at_each_version(transactions: list[dict[str, Any]]) -> list[Balances]:
    """Return the balances of every owner and asset after each transaction: what all stores hold, by their writes."""
    state: dict[tuple[str, str], tuple[str, Any]] = {}
    after = []
    for transaction in transactions:
        changes = [change for change in transaction["changes"] if change["type"].endswith("_resource")]
        written = {change["state_key_hash"] for change in changes}
        # A write of a group lists all of its resources, so that what it does not list is deleted.
        state = {place: held for place, held in state.items() if held[0] not in written}
        for change in changes:
            if change["type"] == "write_resource":
                state[change["address"], change["data"]["type"]] = change["state_key_hash"], change["data"]["data"]
        found: Balances = {}
        for (where, kind), (_, data) in state.items():
            if coin := re.fullmatch(r"0x1::coin::CoinStore<(.+)>", kind):
                found[address(where), coin[1]] = [int(data["coin"]["value"])]
            elif kind == FUNGIBLE:
                key = address(state[where, CORE][1]["owner"]), address(data["metadata"]["inner"])
                found.setdefault(key, []).append(int(data["balance"]))
        after.append(found)
    return after


def check(ledger: embedded.Ledger) -> Counter[str]:
    """Compare the rows of ranges with the stores, and the last row of each owner with the views; return counts."""
    with embedded.serve(ledger) as url, toolkit.connect(url, cache=None) as node:
        truth = balances_at_each_version(pages(url, ledger.head))
        counts: Counter[str] = Counter()
        for first in (0, ledger.head // 3, ledger.head - 50):
            start = truth[first - 1] if first else {}
            rows = toolkit.fetch_transactions(node, f"{first}:-1", progress=False).balance_changes
            running = Counter({key: sum(stores) for key, stores in start.items()})
            last: dict[tuple[str, str], int] = {}
            for row in rows.itertuples():
                key = row.owner, row.asset
                held = truth[row.ledger_version].get(key, [])
                running[key] += int(row.change)
                assert running[key] == sum(held), (first, row)
                if row.balance_after is pd.NA:  # the store went to another owner, or several were written
                    counts["not said"] += 1
                elif len(held) < 2:
                    last[key] = int(row.balance_after)
                    assert last[key] == sum(held), (first, row)
                counts["several stores"] += len(held) > 1
                counts["ended"] += not held
            for key in truth[-1].keys() | start.keys():
                assert running[key] == sum(truth[-1].get(key, [])), (first, key)  # nothing moved without a row
            counts[f"rows from {first}"] = len(rows)
        for (owner, asset), balance in last.items():
            both = last.get((owner, APT), 0) + last.get((owner, PAIRED_APT), 0)
            if asset == APT and (owner, PAIRED_APT) in last:
                assert node.view("0x1::coin::balance", [owner], type_arguments=[APT]).value == both, owner
            elif "::" not in asset:
                metadata = "0x1::fungible_asset::Metadata"
                held = node.view("0x1::primary_fungible_store::balance", [owner, asset], type_arguments=[metadata])
                assert held.value == balance, owner
    return counts


def test_balances_of_all_owners_of_a_history():
    """In the whole ledger and in parts of it, every change of every store has its row, also if the store is migrated."""
    counts = check(embedded.Ledger.with_history(seed=1, versions=1_000, cache=True))
    assert counts["rows from 0"] > 500
    assert not counts["not said"]
    assert counts["ended"] > 0
    print(dict(counts))  # counts in the output


class Safe(embedded.Module, address="0x5afe"):
    """Stores of APT beside the primary ones, which can be given away and emptied."""

    @embedded.entry
    def fill(self, account: embedded.signer, name: bytes, amount: embedded.u64) -> None:
        objects, assets = self.use(ObjectModule), self.use(FungibleAsset)
        store = objects.create_named_object(account, name)
        assets.create_store(store, PAIRED_APT)
        assets.withdraw(derived_object_address(account, PAIRED_APT), amount)
        assets.deposit(store, amount)

    @embedded.entry
    def empty(self, account: embedded.signer, store: embedded.address) -> None:
        assets = self.use(FungibleAsset)
        amount = assets.balance(METADATA, embedded.Object(store))
        assets.withdraw(store, amount)
        self.use(PrimaryFungibleStore).mint(PAIRED_APT, account, amount)


def test_balances_of_accounts_with_coins_and_assets():
    """Coins beside the asset, fees paid from either or both, migrations, stores that are given away."""
    ledger, chance = embedded.Ledger(features=()), random.Random(22)  # accounts begin with coins
    assert ledger.publish(Safe).success
    migrate = "0x1::coin::migrate_to_fungible_store"
    people = [hex(0x5E00 + number) for number in range(6)]
    for who in people:
        ledger.fund(who, 10**11)
    ledger.set_features(enable=[Features.COIN_TO_FUNGIBLE_ASSET])
    for who in ("0xb0b", *people[:2]):
        assert ledger.commit(migrate, sender=who, type_arguments=[APT]).success
    safes: list[tuple[str, str]] = []

    def move(sender: str, to: str, amount: int) -> None:
        kind = chance.randrange(8)
        if kind < 3:
            ledger.commit("0x1::coin::transfer", to, amount, sender=sender, type_arguments=[APT])
        elif kind == 3:
            ledger.commit("0x1::aptos_account::transfer", to, amount, sender=sender)
        elif kind == 4:
            metadata = "0x1::fungible_asset::Metadata"
            transfer = "0x1::primary_fungible_store::transfer"
            ledger.commit(transfer, PAIRED_APT, to, amount // 2, sender=sender, type_arguments=[metadata])
        elif kind == 5 and chance.randrange(3) == 0:
            ledger.commit(migrate, sender=sender, type_arguments=[APT])
        elif kind == 6:
            name = f"safe{ledger.head}".encode()
            if ledger.commit("0x5afe::safe::fill", name, amount // 3, sender=sender).success:
                safes.append((sender, named_object_address(address(sender), name)))
        elif safes:
            owner, store = safes.pop(chance.randrange(len(safes)))
            if chance.randrange(3):
                core = ["0x1::object::ObjectCore"]
                ledger.commit("0x1::object::transfer", store, to, sender=owner, type_arguments=core)
                safes.append((to, store))
            else:
                ledger.commit("0x5afe::safe::empty", store, sender=owner)

    for turn in range(300):
        sender, to = chance.sample(people, 2)
        if turn == 50:  # every account has a store of the asset from here on
            for who in people:
                ledger.commit("0x1::aptos_account::transfer_fungible_assets", PAIRED_APT, who, 10**9, sender="0xb0b")
        (held,), _ = ledger.view("0x1::coin::balance", [sender], [APT])
        move(sender, to, chance.choice((held // 3, max(0, held - 10**9), 1)))
    counts = check(ledger)
    assert counts["several stores"] > 10
    assert counts["ended"] > 5
    print(dict(counts))  # counts in the output


def test_a_simulated_migration_moves_nothing_but_the_fee():
    """The coins end, the asset begins, and their sum changes by the fee; without the state before it is not known."""
    ledger = embedded.Ledger(features=())
    ledger.set_features(enable=[Features.COIN_TO_FUNGIBLE_ASSET])
    node = toolkit.connect(ledger)
    call = toolkit.EntryFunction("0x1::coin::migrate_to_fungible_store", type_arguments=[APT])
    held = node.view("0x1::coin::balance", ["0xb0b"], type_arguments=[APT]).value
    simulation = node.simulate(call, sender="0xb0b")
    rows = {row.asset: row for row in simulation.balance_changes.itertuples()}
    assert (rows[APT].change, rows[APT].balance_after) == (-held, 0)
    assert rows[PAIRED_APT].change == rows[PAIRED_APT].balance_after == held - simulation.gas.net_octas
    assert f"−{held / 10**8:,.0f} APT" in simulation.explain()
    again = node.simulate(call, sender="0xb0b")
    node.close()
    with pytest.warns(UserWarning, match="balance_changes: some changes are null"):
        assert again.balance_changes["change"].isna().all()
    assert "unknown change of" in again.explain()
