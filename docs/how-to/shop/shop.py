"""A shop, and the next version of it."""

from __future__ import annotations

from toolkit.embedded import (
    APTOS_COIN,
    Coin,
    Event,
    Module,
    Resource,
    Timestamp,
    address,
    entry,
    signer,
    u64,
    vector,
    view,
)

OPENS_AFTER_S = 3_600


class Shop(Module, address="0x5407"):
    """Sells one thing at one price."""

    class Till(Resource):
        price: u64
        opens_at: u64
        sales: vector[u64]

    class Sold(Event):
        to: address
        price: u64

    E_CLOSED = 1
    E_SMALL = 2
    errors = {"E_CLOSED": "The shop is closed", "E_SMALL": "The amount is below the price"}

    def init_module(self, account: signer) -> None:
        now = self.use(Timestamp).now_seconds()
        self.move_to(account, Shop.Till(price=100, opens_at=now + OPENS_AFTER_S, sales=[]))

    @entry
    def buy(self, account: signer, amount: u64) -> None:
        with self.borrow_mut(Shop.Till, "0x5407") as till:
            self.require(self.use(Timestamp).now_seconds() >= till.opens_at, self.E_CLOSED)
            self.require(amount >= till.price, self.E_SMALL)
            till.sales.append(till.price)
            self.use(Coin).transfer(APTOS_COIN, account, "0x5407", till.price)
            self.emit(Shop.Sold(to=account, price=till.price))

    @view
    def income(self) -> u64:
        return sum(self.each(self.borrow(Shop.Till, "0x5407").sales))


class NextShop(Shop, revision=2):
    """An upgrade that knows the price of all sales, so it need not add them up."""

    @view
    def income(self) -> u64:
        till = self.borrow(Shop.Till, "0x5407")
        return len(till.sales) * till.price
