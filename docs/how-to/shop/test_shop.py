"""Tests of the shop: what it does, and that an upgrade costs no more."""

import pytest
from shop import OPENS_AFTER_S, NextShop, Shop

import toolkit
from toolkit.embedded import Aborted

CUSTOMER = "0xc057"


@pytest.fixture
def shop(ledger):
    ledger.publish(Shop)
    return toolkit.connect(ledger).contract("0x5407::shop")


def test_a_customer_buys(ledger, shop):
    ledger.advance(seconds=OPENS_AFTER_S)
    done = ledger.execute(shop.buy.call(100), sender=CUSTOMER)
    assert [event.data["price"] for event in done.events if event.type.endswith("::Sold")] == [100]
    assert shop.income() == 100


def test_the_shop_is_closed_at_first(ledger, shop):
    with pytest.raises(Aborted, match=r"E_CLOSED.*The shop is closed"):
        ledger.execute(shop.buy.call(100), sender=CUSTOMER)


def test_the_price_must_be_paid(ledger, shop):
    ledger.advance(seconds=OPENS_AFTER_S)
    done = ledger.execute(shop.buy.call(99), sender=CUSTOMER, check=False)  # returns the failed transaction
    assert "E_SMALL" in done.vm_status
    assert shop.income() == 0


def test_the_upgrade_costs_no_more(ledger, shop, tmp_path):
    ledger.advance(seconds=OPENS_AFTER_S)
    for _ in range(20):
        ledger.execute(shop.buy.call(100), sender=CUSTOMER)
    before = ledger.head
    ledger.publish(NextShop)
    study = toolkit.Study(
        title="Shop",
        node=toolkit.connect(ledger),
        calls={"income": toolkit.ViewFunction("0x5407::shop::income")},
        versions=[before, ledger.head],
    )
    run = study.run(out=tmp_path / "run", progress=False)
    gate = toolkit.compare(run.at(before), run.at(ledger.head)).gate("0%")
    assert gate.passed, str(gate)
