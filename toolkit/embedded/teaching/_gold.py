"""Gold, a fungible asset, with a price feed and a desk that quotes from it.

An upgrade of the feed changes what the calls of the desk cost.
"""

from __future__ import annotations

from toolkit.embedded import (
    Event,
    Module,
    Resource,
    Struct,
    Table,
    address,
    entry,
    invalid_argument,
    permission_denied,
    signer,
    u64,
    view,
)
from toolkit.embedded.framework._fungible_asset import FungibleAsset, PrimaryFungibleStore

__all__ = ["CheaperPriceFeed", "Desk", "Gold", "PriceFeed"]


REPORTERS = 5
FIRST_PRICE = 1_000
SPREAD_PERCENT = 2


class Gold(Module, address="0x901d"):
    """Gold, a fungible asset; the publisher mints it."""

    class Mine(Resource):
        """The address of the asset."""

        metadata: address

    E_NOT_MINER = permission_denied(1, "Only the mine's account may mint")

    def init_module(self, account: signer) -> None:
        """Create the asset."""
        metadata = self.use(FungibleAsset).create(account, "GOLD", "Gold", 3)
        self.move_to(account, Gold.Mine(metadata=metadata))

    @entry
    def mint(self, account: signer, to: address, amount: u64) -> None:
        """Mint gold."""
        self.require(account == self.definition.address, self.E_NOT_MINER)
        self.use(PrimaryFungibleStore).mint(self.metadata(), to, amount)

    @view
    def metadata(self) -> address:
        """Return the address of the asset's metadata object."""
        return self.borrow(Gold.Mine, "0x901d").metadata


class PriceFeed(Module, address="0xfeed", code_bytes=30_000):
    """The price of gold in octas per unit, reported by several reporters."""

    class Report(Struct):
        """The latest price of one reporter."""

        price: u64

    class Feed(Resource):
        """Reports by reporter, and their median."""

        reports: Table[u64, PriceFeed.Report]
        median: u64

    class Reported(Event):
        """A price was reported."""

        reporter: u64
        price: u64

    E_NOT_OPERATOR = permission_denied(1, "Only the feed's account may report")
    E_NO_SUCH_REPORTER = invalid_argument(2, "The reporter does not exist")

    def init_module(self, account: signer) -> None:
        """Store the same first price for every reporter."""
        self.move_to(account, PriceFeed.Feed(reports=self.new_table(), median=FIRST_PRICE))
        feed = self.borrow(PriceFeed.Feed, account)
        for number in range(REPORTERS):
            feed.reports.add(number, PriceFeed.Report(price=FIRST_PRICE))

    @entry
    def report(self, account: signer, reporter: u64, price: u64) -> None:
        """Report the price of one reporter."""
        self.require(account == self.definition.address, self.E_NOT_OPERATOR)
        self.require(reporter < REPORTERS, self.E_NO_SUCH_REPORTER)
        with self.borrow_mut(PriceFeed.Feed, "0xfeed") as feed:
            feed.reports.upsert(reporter, PriceFeed.Report(price=price))
            feed.median = self._median_of(feed)
        self.emit(PriceFeed.Reported(reporter=reporter, price=price))

    @view
    def price(self) -> u64:
        """Return the median of the latest prices, computed from all reports."""
        return self._median_of(self.borrow(PriceFeed.Feed, "0xfeed"))

    def _median_of(self, feed: Feed) -> int:
        prices = [feed.reports.borrow(number).price for number in self.each(range(REPORTERS))]
        return sorted(prices)[REPORTERS // 2]


class CheaperPriceFeed(PriceFeed, revision=2, code_bytes=30_000):
    """An upgrade of the feed that returns the stored median."""

    @view
    def price(self) -> u64:
        """Return the stored median of the latest prices."""
        return self.borrow(PriceFeed.Feed, "0xfeed").median


class Desk(Module, address="0xde5c", code_bytes=20_000, uses=[PriceFeed]):
    """Quotes for gold, computed from the price of the feed."""

    @view
    def quote(self, quantity: u64) -> u64:
        """Return the price of a quantity, octas."""
        price = self.use(PriceFeed).price()
        return quantity * price * (100 + SPREAD_PERCENT) // 100
