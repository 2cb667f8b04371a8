"""Accounts, objects and contracts of the embedded node, as notebooks and the command line show them."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

import toolkit
from toolkit import embedded

APT = "0x1::aptos_coin::AptosCoin"


def view_balance(node, address, version):
    """Return the balance that the framework's own view counts: coin and paired asset together."""
    return node.view("0x1::coin::balance", [address], type_arguments=[APT], ledger_version=version).value


@pytest.mark.parametrize("address", ["0xa11ce", "0xb0b", *(f"0x7ade{n:x}" for n in range(12)), "0xfa17"])
@pytest.mark.parametrize("version", [100, 3_000, 4_999])
def test_balances_are_those_that_the_framework_counts(node, address, version):
    """Before and after coins are paired and some traders migrate: no coin counts twice, none is missing."""
    account = node.at(version).account(address)
    held = account.balances
    assert int(held["balance"].sum()) == view_balance(node, address, version)
    assert held["amount"].sum() == Decimal(int(held["balance"].sum())).scaleb(-8)
    assert set(held["symbol"]) == {"APT"}


def test_some_traders_migrate(node):
    """So the test above sees both standards."""
    kinds = {kind for n in range(12) for kind in node.account(f"0x7ade{n:x}").balances["standard"]}
    assert kinds == {"coin", "fungible asset"}


def test_a_contract_is_listed_with_its_package_and_size(node):
    """And the fields that `node.account` had before are what they were."""
    account = node.account("0xcafe")
    assert (account.sequence_number, account.kind, account.ledger_version) == (2, "account", 4_999)
    assert account.authentication_key == toolkit.address("0xcafe")
    (row,) = account.modules.to_dict("records")
    assert (row["name"], row["package"], row["size_bytes"]) == ("registry", "registry", 24_000)
    assert (row["entry_functions"], row["view_functions"]) == (3, 3)
    assert f"{toolkit.address('0xcafe')}::registry::Registry" in set(account.resources["resource_type"])
    assert node.at(0).account("0xcafe").kind == "nothing"


def test_gold_is_found_by_its_address(node):
    """Three decimals; the metadata is an object that says what it is."""
    gold = node.view("0x901d::gold::metadata").value
    held = node.account("0xa11ce", assets=[gold]).balances.query("standard == 'fungible asset'").reset_index(drop=True)
    assert held["asset"].tolist() == [gold]
    assert held["decimals"].tolist() == [3]
    balance = node.view(
        "0x1::primary_fungible_store::balance", ["0xa11ce", gold], type_arguments=["0x1::fungible_asset::Metadata"]
    )
    assert held["balance"].tolist() == [balance.value]
    assert node.account(gold).kind == "fungible asset"
    store = node.account(held["store"][0])
    assert (store.kind, store.balances["owner"].tolist()) == ("fungible store", [toolkit.address("0xa11ce")])


def test_changes_of_balances_in_whole_coins(node):
    """The one line of the documentation: exact, by the decimals of each row's asset."""
    call = toolkit.EntryFunction("0x1::aptos_account::transfer", arguments=["0xb0b", 150_000_000])
    changes = node.simulate(call, sender="0xa11ce").balance_changes
    decimals = changes["asset"].map({asset: node.asset(asset).decimals for asset in changes["asset"].unique()})
    coins = toolkit.scaled(changes["change"], decimals, exact=True)
    bob = coins[changes["owner"] == toolkit.address("0xb0b")].tolist()
    assert bob == [Decimal("1.5")]


# the ledger --------------------------------------------------------------------------------------------------------------


def test_the_ledger_lists_its_accounts(ledger, node):
    """Each with the balance that the node answers; alice and bob by name."""
    names = {one.name: one for one in ledger.accounts if one.name}
    assert {"alice", "bob", "framework", "registry", "order_book"} <= set(names)
    assert names["alice"].address == "0xa11ce"
    for one in ledger.accounts[:12]:
        assert one.octas == view_balance(node, one.address, 4_999)
        assert one.sequence_number == node.account(one.address).sequence_number


def test_the_ledger_lists_its_contracts(ledger, node):
    """It lists what is published at the head, without the retracted trial and without the framework's modules."""
    found = {one.contract: one for one in ledger.contracts}
    assert set(found) == {
        "0x901d::gold",
        "0xb00c::order_book",
        "0xcafe::registry",
        "0xde5c::desk",
        "0xfa17::vault",
        "0xfeed::price_feed",
    }
    assert found["0xcafe::registry"].views == ("handle", "record_of", "size")
    upgrade = next(one.version for one in ledger.milestones if "vault upgraded" in one.text)
    assert found["0xfa17::vault"].version == upgrade
    for name in found:
        assert node.module(*name.split("::")) is not None


def test_listings_are_tables(ledger):
    """In a notebook and as text; a tuple all the same."""
    assert isinstance(ledger.contracts, tuple)
    lines = repr(ledger.contracts).splitlines()
    assert lines[0].split() == ["contract", "about", "views", "entries", "version"]
    assert len(lines) == 7
    assert ledger.accounts._repr_html_().count("<tr>") == len(ledger.accounts) + 1
    assert repr(embedded.Ledger(accounts={}).contracts) == "()"


def test_publishing_prints_a_line():
    """What was published, where, at which version, for how much gas."""

    class Shop(embedded.Module, address="0x5407"):
        @embedded.view
        def price(self) -> embedded.u64:
            return 3

    ledger = embedded.Ledger()
    done = ledger.publish(Shop)
    text = repr(done)
    assert (
        text
        == f"<CommittedTransaction version {done.version:,}: published 0x5407::shop, succeeded, {done.gas_used:,} gas units>"
    )
    paid = ledger.commit("0x1::aptos_account::transfer", "0xb0b", 10**18, sender="0xa11ce")
    assert "0x1::aptos_account::transfer, failed (" in repr(paid)
    assert "block_metadata_transaction" in repr(ledger.transaction(done.version - 1))


# the command -------------------------------------------------------------------------------------------------------------


def test_the_command_prints_an_account(command, url):
    """The balance in whole coins, the contract, the resources with short addresses."""
    done = command("account", "0xcafe", "--node", url)
    assert (done.returncode, done.stderr) == (0, "")
    assert "registry" in done.stdout
    assert "0xcafe::registry::Registry" in done.stdout
    found = json.loads(command("account", "0xa11ce", "--node", url, "--ledger-version", "4000", "--json").stdout)
    assert (found["kind"], found["ledger_version"], found["notes"]) == ("account", 4_000, [])
    (apt,) = found["balances"]
    assert Decimal(apt["amount"]) == Decimal(apt["balance"]).scaleb(-8)


def test_the_command_lists_what_the_embedded_node_has(command, monkeypatch, ledger):
    """Without an address; a node elsewhere cannot list its accounts, and the message says so."""
    monkeypatch.setattr("toolkit.client._http.embedded_ledger", lambda: ledger)
    done = command("account")
    assert done.returncode == 0
    assert "0xcafe::registry" in done.stdout
    assert "alice" in done.stdout
    listed = json.loads(command("account", "--json").stdout)
    assert len(listed["contracts"]) == 6
    assert {"address": "0xa11ce", "name": "alice"}.items() <= listed["accounts"][8].items()
    refused = command("account", "--node", "mainnet")
    assert refused.returncode == 2
    assert "requires an ADDRESS" in refused.stderr
