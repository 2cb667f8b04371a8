"""The gas coin and the fungible asset that is its pair: balances, payments, fees and supply across both."""

from __future__ import annotations

import pytest

from toolkit import embedded
from toolkit.embedded.framework._configuration import Features
from toolkit.errors import InputError

APT = ["0x1::aptos_coin::AptosCoin"]
STORE = "0x1::coin::CoinStore<0x1::aptos_coin::AptosCoin>"
METADATA = ["0x1::fungible_asset::Metadata"]
MIGRATE = "0x1::coin::migrate_to_fungible_store"
TRANSFER = "0x1::aptos_account::transfer"


@pytest.fixture
def ledger():
    """Return a ledger on which coins are paired with the asset, and accounts still hold coins."""
    return embedded.Ledger(features=(Features.COIN_TO_FUNGIBLE_ASSET,))


def _held(ledger, account):
    """Return what an account holds: altogether, and as the asset."""
    whole = ledger.view("0x1::coin::balance", [account], APT)[0][0]
    asset = ledger.view("0x1::primary_fungible_store::balance", [account, "0xa"], METADATA)[0][0]
    return whole, asset


def _supply(ledger):
    return ledger.view("0x1::coin::supply", [], APT)[0][0]


def _fee(done):
    charges = done.output.charges
    return charges.total_charge_gas_units * done.request.raw.gas_unit_price - charges.storage_fee_refund_octas


def test_the_pair_is_named_as_the_coin_is(ledger):
    """The object at 0xa has the coin's name, symbol and decimals, and the coin knows it."""
    names = [
        ledger.view(f"0x1::fungible_asset::{what}", ["0xa"], METADATA)[0][0] for what in ("name", "symbol", "decimals")
    ]
    assert names == ["Aptos Coin", "APT", 8]
    assert ledger.view("0x1::coin::paired_metadata", [], APT)[0] == ["0xa"]
    assert ledger.resource("0xa", "0x1::coin::PairedCoinType")["type"]["struct_name"] == b"AptosCoin"


def test_migrating_moves_everything_and_changes_no_sum(ledger):
    """The store of coins is deleted; balance and supply are what they were, less the fee."""
    before, supply = _held(ledger, "0xa11ce")[0], _supply(ledger)
    done = ledger.commit(MIGRATE, sender="0xa11ce", type_arguments=APT)
    assert done.success, done.vm_status
    assert ledger.resource("0xa11ce", STORE) is None
    left = before - _fee(done)
    assert _held(ledger, "0xa11ce") == (left, left)
    assert _supply(ledger) == supply - _fee(done)
    assert ledger.view("0x1::fungible_asset::supply", ["0xa"], METADATA)[0] == [left]


def test_a_migrated_account_pays_and_is_paid(ledger):
    """What leaves it becomes the receiver's coins; what it gets becomes the asset; the sum only loses fees."""
    ledger.commit(MIGRATE, sender="0xa11ce", type_arguments=APT)
    alice, bob, supply = _held(ledger, "0xa11ce")[0], _held(ledger, "0xb0b")[0], _supply(ledger)
    out = ledger.commit(TRANSFER, "0xb0b", 1_000, sender="0xa11ce")
    back = ledger.commit(TRANSFER, "0xa11ce", 300, sender="0xb0b")
    assert out.success, out.vm_status
    assert back.success, back.vm_status
    assert _held(ledger, "0xa11ce") == (alice - 700 - _fee(out),) * 2
    assert _held(ledger, "0xb0b") == (bob + 700 - _fee(back), 0)
    assert _supply(ledger) == supply - _fee(out) - _fee(back)
    assert ledger.resource("0xa11ce", STORE) is None


def _moves(done):
    """Return (event, amount) of the balance movements of a transaction."""
    found = []
    for event in done.output.events:
        name = event.type.split("::", 1)[1]
        if name in {"coin::CoinWithdraw", "coin::CoinDeposit", "fungible_asset::Withdraw", "fungible_asset::Deposit"}:
            found.append((name, int.from_bytes(event.data[-8:], "little")))
    return found


def test_each_movement_has_one_event_and_the_fee_none(ledger):
    """The part paid in coins is a coin event, the part paid in the asset an asset event; fees and refunds emit nothing."""
    assert _moves(ledger.commit(TRANSFER, "0xb0b", 5, sender="0xa11ce")) == [
        ("coin::CoinWithdraw", 5),
        ("coin::CoinDeposit", 5),
    ]
    ledger.commit(MIGRATE, sender="0xa11ce", type_arguments=APT)
    assert _moves(ledger.commit(TRANSFER, "0xb0b", 5, sender="0xa11ce")) == [
        ("fungible_asset::Withdraw", 5),
        ("coin::CoinDeposit", 5),
    ]
    ledger.commit("0x1::aptos_account::transfer_fungible_assets", "0xa", "0xb0b", 10**8, sender="0xa11ce")
    coins = ledger.resource("0xb0b", STORE)["coin"]["value"]
    (asset, paid), (coin, taken), received = _moves(ledger.commit(TRANSFER, "0xa11ce", coins + 7, sender="0xb0b"))
    assert {asset: paid, coin: taken} == {"fungible_asset::Withdraw": 7, "coin::CoinWithdraw": coins}
    assert received == ("fungible_asset::Deposit", coins + 7)


def test_coins_are_spent_first_then_the_asset(ledger):
    """An account that holds both pays a sum that neither covers alone."""
    ledger.commit(MIGRATE, sender="0xa11ce", type_arguments=APT)
    octas = _held(ledger, "0xb0b")[0]
    sent = ledger.commit("0x1::aptos_account::transfer_fungible_assets", "0xa", "0xb0b", 5 * 10**8, sender="0xa11ce")
    assert sent.success, sent.vm_status
    assert _held(ledger, "0xb0b") == (octas + 5 * 10**8, 5 * 10**8)
    done = ledger.commit(TRANSFER, "0xa11ce", octas + 10**8, sender="0xb0b")
    assert done.success, done.vm_status
    assert ledger.resource("0xb0b", STORE)["coin"]["value"] == 0
    left = 4 * 10**8 - _fee(done)
    assert _held(ledger, "0xb0b") == (left, left)


def test_more_than_both_hold_aborts(ledger):
    """The reasons are the coin's: not enough, or no store at all."""
    ledger.commit(MIGRATE, sender="0xa11ce", type_arguments=APT)
    whole = _held(ledger, "0xa11ce")[0]
    assert "EINSUFFICIENT_BALANCE" in ledger.commit(TRANSFER, "0xb0b", whole + 1, sender="0xa11ce").vm_status
    assert "EINSUFFICIENT_BALANCE" in ledger.commit(TRANSFER, "0xa11ce", 10**18, sender="0xb0b").vm_status
    gold = ["0x1::aptos_coin::Gold"]
    with pytest.raises(InputError, match="does not exist"):
        ledger.commit("0x1::coin::transfer", "0xb0b", 1, sender="0xa11ce", type_arguments=gold)


def test_a_fee_payer_without_coins_pays_in_the_asset(ledger):
    """The fee is taken, and what storage gives back is paid, where the payer holds octas."""
    ledger.commit(MIGRATE, sender="0xb0b", type_arguments=APT)
    before = _held(ledger, "0xb0b")
    done = ledger.commit(TRANSFER, "0x7ade", 10, sender="0xa11ce", fee_payer="0xb0b")
    assert done.success, done.vm_status
    assert _held(ledger, "0xb0b") == (before[0] - _fee(done),) * 2


def test_on_current_networks_octas_are_the_asset_and_addresses_are_accounts():
    """A receiver gets a store of the asset and nothing else; its first transaction stores and pays for its account."""
    ledger = embedded.Ledger()
    sent = ledger.commit(TRANSFER, "0x7ade", 10**8, sender="0xa11ce")
    assert _moves(sent) == [("fungible_asset::Withdraw", 10**8), ("fungible_asset::Deposit", 10**8)]
    assert _held(ledger, "0x7ade") == (10**8, 10**8)
    assert ledger.resource("0x7ade", STORE) is None
    assert ledger.resource("0x7ade", "0x1::account::Account") is None
    assert ledger.view("0x1::account::exists_at", ["0x7ade"])[0] == [True]
    first = ledger.commit(TRANSFER, "0xb0b", 1, sender="0x7ade")
    assert ledger.resource("0x7ade", "0x1::account::Account")["sequence_number"] == 1
    assert first.output.charges.storage_fee_octas == sent.output.charges.storage_fee_octas * 49_160 // 53_240
    assert ledger.commit(TRANSFER, "0xb0b", 1, sender="0x7ade").output.charges.storage_fee_octas == 0


def test_a_first_transaction_that_aborts_pays_for_the_account_only():
    """What the transaction wrote is undone, the account stays and is paid for."""
    ledger = embedded.Ledger()
    ledger.commit(TRANSFER, "0x7ade", 10**9, sender="0xa11ce")
    failed = ledger.commit(TRANSFER, "0x7777", 10**18, sender="0x7ade")
    assert not failed.success
    assert ledger.resource("0x7ade", "0x1::account::Account")["sequence_number"] == 1
    assert failed.output.charges.storage_fee_octas == 49_160 * 10  # of the default schedule
    assert _held(ledger, "0x7777") == (0, 0)


def test_without_the_feature_there_is_no_pair():
    """Coins are all that counts, and nobody can migrate; governance switches it on, and off again."""
    ledger = embedded.Ledger(features=())
    assert ledger.view("0x1::coin::paired_metadata", [], APT)[0] == [None]
    refused = ledger.commit(MIGRATE, sender="0xa11ce", type_arguments=APT)
    assert "EPAIRED_FUNGIBLE_ASSET_NOT_FOUND" in refused.vm_status
    ledger.set_features(enable=[Features.COIN_TO_FUNGIBLE_ASSET])
    assert ledger.view("0x1::coin::paired_metadata", [], APT)[0] == ["0xa"]
    ledger.set_features(disable=[Features.COIN_TO_FUNGIBLE_ASSET])
    assert ledger.view("0x1::coin::paired_metadata", [], APT)[0] == [None]


def test_only_governance_switches_features_and_only_known_ones(ledger):
    """Any other signer aborts; a number beyond the known ones is refused, however large."""
    change = "0x1::features::change_feature_flags"
    assert "EFRAMEWORK_SIGNER_NEEDED" in ledger.commit(change, [1], [], sender="0xa11ce").vm_status
    assert "ENO_SUCH_FEATURE" in ledger.commit(change, [2**64 - 1], [], sender="0x1").vm_status
    done = ledger.commit(change, [0, 9, 1023], [60], sender="0x1")
    assert done.success, done.vm_status
    flags = [ledger.view("0x1::features::is_enabled", [number])[0][0] for number in (0, 1, 9, 60, 1023, 2**64 - 1)]
    assert flags == [True, False, True, False, True, False]
    assert len(ledger.resource("0x1", "0x1::features::Features")["features"]) == 128
