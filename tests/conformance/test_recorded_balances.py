"""Balances of every recorded transaction: what the toolkit counts from events equals what the stores say."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest

import toolkit
from tests.conformance.plain_values import records
from tests.conformance.recorded_node import RecordedNode
from tests.unit.frames.balances import balance_frame
from toolkit.wire._transactions import decode_simulation, decode_transactions

FUNGIBLE, CORE = "0x1::fungible_asset::FungibleStore", "0x1::object::ObjectCore"


def asset_of(text: str) -> str:
    """Spell an asset one way: a coin's type, or the number of a metadata address."""
    return text if "::" in text else hex(int(text, 16))


class Stores:
    """The stores that a transaction wrote, against the recorded state before it."""

    def __init__(self, history, transaction, before: int) -> None:
        self._history, self._before = history, before
        self._written = {
            (int(change["address"], 16), change["data"]["type"]): change["data"]["data"]
            for change in transaction["changes"]
            if change["type"] == "write_resource"
        }

    def _was(self, place: int, tag: str):
        found = self._history.resource(hex(place), tag, self._before)
        return None if found is None else found["data"]

    def balances(self) -> dict[tuple[int, str], list[tuple[int, int]]]:
        """Return the balances before and after of each store written, by owner and asset."""
        found: dict[tuple[int, str], list[tuple[int, int]]] = {}
        for (place, tag), data in self._written.items():
            coin = re.fullmatch(r"0x1::coin::CoinStore<(.+)>", tag)
            if tag == FUNGIBLE:
                owner = int((self._written.get((place, CORE)) or self._was(place, CORE))["owner"], 16)
                key, value, was = (owner, asset_of(data["metadata"]["inner"])), data["balance"], self._was(place, tag)
                pair = (0 if was is None else int(was["balance"]), int(value))
            elif coin:
                key, was = (place, coin[1]), self._was(place, tag)
                pair = (0 if was is None else int(was["coin"]["value"]), int(data["coin"]["value"]))
            else:
                continue
            found.setdefault(key, []).append(pair)
        return found


def balances_of(decoded) -> list[list[dict[str, Any]]]:
    """Return the balance changes of each transaction as rows."""
    found = [[] for _ in decoded]
    for row in records(balance_frame(*decoded, identity=["request"])):
        found[row["request"]].append(row)
    return found


def compared(history, transaction, rows, before: int) -> tuple[int, int]:
    """Compare the balances of one transaction; return how many moved, and how many were checked after it."""
    stores = Stores(history, transaction, before).balances()
    moved = {key: sum(after - was for was, after in pairs) for key, pairs in stores.items()}
    got: Counter[tuple[int, str]] = Counter()
    after = 0
    for row in rows:
        key = int(row["owner"], 16), asset_of(row["asset"])
        got[key] += int(row["change"])
        if row["balance_after"] is not None:
            assert int(row["balance_after"]) == stores[key][0][1], (transaction["version"], key)
            after += 1
    assert {key: change for key, change in got.items() if change} == {key: change for key, change in moved.items() if change}, transaction["version"]  # fmt: skip
    return len(moved), after


def test_balances_of_committed_transactions(recordings):
    """Deposits less withdrawals less the fee are what each written store gained, for all 759 user transactions."""
    history = recordings.longer_history
    users = [one for one in history.transactions if one["type"] == "user_transaction"]
    totals = [0, 0]
    for transaction, rows in zip(users, balances_of(decode_transactions(json.dumps(users).encode())), strict=True):
        counted = compared(history, transaction, rows, int(transaction["version"]) - 1)
        totals = [sum(pair) for pair in zip(totals, counted, strict=True)]
    assert len(users) == 759
    assert min(totals) > 759
    print(f"{len(users)} transactions, {totals[0]} balances, {totals[1]} of them with the balance after")  # counts


def test_balances_of_simulations(recordings):
    """The same for each simulation, against the state of the version it ran on."""
    answered = [one for one in recordings.simulations if one.status == 200 and not one.in_bcs]
    count, moved = len(answered), 0
    decoded = [transaction for one in answered for transaction in decode_simulation(one.answer)]
    for exchange, rows in zip(answered, balances_of(decoded), strict=True):
        (transaction,) = exchange.json
        moved += compared(recordings.history, transaction, rows, int(transaction["version"]))[0]
    assert count == 112
    print(f"{count} simulations, {moved} balances")  # counts in the output


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        (227, "fee payer"),
        (257, "orderless"),
        (293, "single key"),
        (302, "several keys"),
        (208, "aborted"),
        (202, "refund"),
    ],
)
def test_the_fee_is_of_the_account_that_paid(version, kind, recordings):
    """For each way to pay, one row has a fee: that of the FeeStatement, for the account that paid it."""
    transaction = recordings.history.transactions[version]
    (decoded,) = decode_transactions(json.dumps(transaction).encode())
    (fee,) = [e["data"] for e in transaction["events"] if e["type"] == "0x1::transaction_fee::FeeStatement"]
    price = int(transaction["gas_unit_price"])
    octas = int(fee["total_charge_gas_units"]) * price - int(fee["storage_fee_refund_octas"])
    payer = transaction["signature"].get("fee_payer_address", transaction["sender"])
    rows = [row for row in records(balance_frame(decoded)) if row["fee_octas"]]
    assert [(int(row["owner"], 16), int(row["fee_octas"])) for row in rows] == [(int(payer, 16), octas)], kind


def test_the_last_balance_of_every_owner_is_the_nodes(recordings):
    """Over the whole recorded ledger, the last balance and the sum of changes equal what each store holds at the end."""
    history = recordings.longer_history
    served = RecordedNode(recordings.of("history", "series"), history)
    with served.serving(), toolkit.connect(served.url, cache=None) as node:
        rows = records(toolkit.fetch_transactions(node, "0:-1", progress=False).balance_changes)
    sums: Counter[tuple[int, str]] = Counter()
    last = {}
    for row in rows:
        key = int(row["owner"], 16), asset_of(row["asset"])
        sums[key] += row["change"]
        last[key] = row["balance_after"]
    held = {}
    for _, place, tag in history.places("resource"):
        assert "::CoinStore<" not in tag  # this ledger was built with the asset alone
        if tag == FUNGIBLE:
            data = history.value("resource", place, tag, history.head)["data"]
            owner = int(history.value("resource", place, CORE, history.head)["data"]["owner"], 16)
            held[owner, asset_of(data["metadata"]["inner"])] = int(data["balance"])
    assert last == held
    assert sums == held
    print(f"{len(rows)} rows of {len(held)} owners and assets")  # counts in the output
