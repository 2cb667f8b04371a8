"""Contracts for courses: names, an order book, a vault with a cheaper upgrade, and gold with a price feed."""

from __future__ import annotations

from toolkit.embedded._contract import Module, entry, view
from toolkit.embedded._vm_status import already_exists, invalid_argument, not_found, permission_denied
from toolkit.embedded.framework._coin import APTOS_COIN, Coin
from toolkit.embedded.framework._configuration import Timestamp
from toolkit.embedded.framework._fungible_asset import FungibleAsset, PrimaryFungibleStore
from toolkit.embedded.types import *


class Registry(Module, address="0xcafe", code_bytes=24_000):
    """Names and their owners."""

    class Record(Struct):
        """The owner of a name, and the time of registration in seconds since 1970."""

        owner: address
        registered_at: u64

    class Registry(Resource):
        """All names."""

        records: Table[String, Registry.Record]
        size: u64

    class Registered(Event):
        """A name was registered or transferred."""

        name: String
        owner: address

    class Released(Event):
        """A name was released."""

        name: String

    E_TAKEN = already_exists(1, "The name is registered already")
    E_UNKNOWN = not_found(2, "Nobody registered this name")
    E_NOT_OWNER = permission_denied(3, "The name belongs to somebody else")

    def init_module(self, account: signer) -> None:
        """Store an empty registry."""
        self.move_to(account, Registry.Registry(records=self.new_table(), size=0))

    @entry
    def register(self, account: signer, name: String) -> None:
        """Register a name that is not taken."""
        now = self.use(Timestamp).now_seconds()
        with self.borrow_mut(Registry.Registry, "0xcafe") as registry:
            self.require(not registry.records.contains(name), self.E_TAKEN)
            registry.records.add(name, Registry.Record(owner=account, registered_at=now))
            registry.size += 1
        self.emit(Registry.Registered(name=name, owner=account))

    @entry
    def transfer(self, account: signer, name: String, to: address) -> None:
        """Transfer a name to another account."""
        with self.borrow_mut(Registry.Registry, "0xcafe") as registry:
            self.require(registry.records.contains(name), self.E_UNKNOWN)
            with registry.records.borrow_mut(name) as record:
                self.require(record.owner == account, self.E_NOT_OWNER)
                record.owner = to
        self.emit(Registry.Registered(name=name, owner=to))

    @entry
    def release(self, account: signer, name: String) -> None:
        """Release a name."""
        with self.borrow_mut(Registry.Registry, "0xcafe") as registry:
            self.require(registry.records.contains(name), self.E_UNKNOWN)
            self.require(registry.records.remove(name).owner == account, self.E_NOT_OWNER)
            registry.size -= 1
        self.emit(Registry.Released(name=name))

    @view
    def size(self) -> u64:
        """Return the number of registered names."""
        return self.borrow(Registry.Registry, "0xcafe").size

    @view
    def record_of(self, name: String) -> Record:
        """Return the record of a name."""
        records = self.borrow(Registry.Registry, "0xcafe").records
        self.require(records.contains(name), self.E_UNKNOWN)
        return records.borrow(name)

    @view
    def handle(self) -> address:
        """Return the handle of the table of records."""
        return self.borrow(Registry.Registry, "0xcafe").records.handle


class Trial(Module, address="0xcafe"):
    """A module that the seeded history deletes: its functions stop existing at one version."""

    @view
    def greeting(self) -> String:
        """Return a greeting."""
        return "hello"


class OrderBook(Module, address="0xb00c", code_bytes=40_000):
    """Buy and sell orders, oldest first; they are never matched."""

    class Order(Struct):
        """An order, with the price in octas and the quantity in units."""

        id: u64
        owner: address
        is_bid: bool
        price: u64
        quantity: u64

    class Book(Resource):
        """All open orders."""

        orders: vector[OrderBook.Order]
        next_id: u64

    class Trader(Resource):
        """Number of an account's open orders; deleted together with the last order."""

        open_orders: u64

    class OrderPlaced(Event):
        """An order was placed."""

        id: u64
        owner: address
        is_bid: bool
        price: u64
        quantity: u64

    class OrderCancelled(Event):
        """An order was cancelled."""

        id: u64

    E_NOTHING_ORDERED = invalid_argument(1, "An order needs a price and a quantity")
    E_NO_SUCH_ORDER = not_found(2, "No open order has this id")
    E_NOT_OWNER = permission_denied(3, "The order belongs to somebody else")

    def init_module(self, account: signer) -> None:
        """Store an empty book."""
        self.move_to(account, OrderBook.Book(orders=[], next_id=1))

    @entry
    def place(self, account: signer, is_bid: bool, price: u64, quantity: u64) -> None:  # noqa: FBT001 - Move has no keywords
        """Place an order."""
        self.require(price > 0 and quantity > 0, self.E_NOTHING_ORDERED)
        with self.borrow_mut(OrderBook.Book, "0xb00c") as book:
            order = OrderBook.Order(id=book.next_id, owner=account, is_bid=is_bid, price=price, quantity=quantity)
            book.orders.append(order)
            book.next_id += 1
        if not self.exists(OrderBook.Trader, account):
            self.move_to(account, OrderBook.Trader(open_orders=0))
        with self.borrow_mut(OrderBook.Trader, account) as trader:
            trader.open_orders += 1
        self.emit(OrderBook.OrderPlaced(id=order.id, owner=account, is_bid=is_bid, price=price, quantity=quantity))

    @entry
    def cancel(self, account: signer, id: u64) -> None:  # noqa: A002 - the name in the ABI
        """Cancel one of the signer's orders."""
        with self.borrow_mut(OrderBook.Book, "0xb00c") as book:
            found = [order for order in self.each(book.orders) if order.id == id]
            self.require(len(found) > 0, self.E_NO_SUCH_ORDER)
            self.require(found[0].owner == account, self.E_NOT_OWNER)
            book.orders.remove(found[0])
        with self.borrow_mut(OrderBook.Trader, account) as trader:
            trader.open_orders -= 1
        if self.borrow(OrderBook.Trader, account).open_orders == 0:
            self.move_from(OrderBook.Trader, account)
        self.emit(OrderBook.OrderCancelled(id=id))

    @entry
    def close_day(self, account: signer, keep: u64) -> None:
        """Drop the oldest orders so that `keep` orders remain; only the book's account may call this."""
        self.require(account == self.definition.address, self.E_NOT_OWNER)
        with self.borrow_mut(OrderBook.Book, "0xb00c") as book:
            count = len(book.orders) - keep if len(book.orders) > keep else 0
            dropped = book.orders[:count]
            book.orders = book.orders[count:]
        for order in self.each(dropped):
            with self.borrow_mut(OrderBook.Trader, order.owner) as trader:
                trader.open_orders -= 1
            if self.borrow(OrderBook.Trader, order.owner).open_orders == 0:
                self.move_from(OrderBook.Trader, order.owner)

    @view
    def depth(self) -> u64:
        """Return the total quantity of all orders."""
        return sum(order.quantity for order in self.each(self.borrow(OrderBook.Book, "0xb00c").orders))

    @view
    def best_bid(self) -> Option[u64]:
        """Return the highest price of a buy order, or None."""
        orders = self.borrow(OrderBook.Book, "0xb00c").orders
        return max((order.price for order in self.each(orders) if order.is_bid), default=None)

    @view
    def open_orders_of(self, account: address) -> u64:
        """Return the number of open orders of an account."""
        return self.borrow(OrderBook.Trader, account).open_orders if self.exists(OrderBook.Trader, account) else 0


STRATEGIES = 8  # enough that reading all of them shows in the gas of a view
PRICE_SCALE = 100_000_000


class Vault(Module, address="0xfa17", code_bytes=60_000):
    """Shares of assets that are invested in several strategies."""

    class Strategy(Struct):
        """The assets of one strategy, in octas."""

        assets: u64

    class Vault(Resource):
        """The vault: strategies by number, shares by owner."""

        strategies: Table[u64, Vault.Strategy]
        owners: Table[address, u64]
        assets: u64
        shares: u64

    class Deposited(Event):
        """Octas were deposited for shares."""

        account: address
        amount: u64
        shares: u64

    class Withdrawn(Event):
        """Shares were redeemed for octas."""

        account: address
        amount: u64
        shares: u64

    E_TOO_SMALL = invalid_argument(1, "The amount is too small for one share")
    E_NOT_ENOUGH_SHARES = invalid_argument(2, "The account does not have so many shares")
    E_NOT_MANAGER = permission_denied(3, "Only the vault's account may do this")

    def init_module(self, account: signer) -> None:
        """Store a vault with empty strategies."""
        self.use(Coin).register(APTOS_COIN, account)
        self.move_to(account, Vault.Vault(strategies=self.new_table(), owners=self.new_table(), assets=0, shares=0))
        with self.borrow_mut(Vault.Vault, account) as vault:
            for number in range(STRATEGIES):
                vault.strategies.add(number, Vault.Strategy(assets=0))

    @entry
    def deposit(self, account: signer, amount: u64) -> None:
        """Deposit octas in one of the strategies."""
        with self.borrow_mut(Vault.Vault, "0xfa17") as vault:
            shares = self._shares_for(vault, amount)
            self.require(shares > 0, self.E_TOO_SMALL)
            self._invest(vault, amount)
            vault.shares += shares
            vault.owners.upsert(account, vault.owners.borrow_with_default(account, 0) + shares)
        self.use(Coin).transfer(APTOS_COIN, account, "0xfa17", amount)
        self.emit(Vault.Deposited(account=account, amount=amount, shares=shares))

    @entry
    def withdraw(self, account: signer, shares: u64) -> None:
        """Redeem shares; delete the owner's entry if no shares remain."""
        with self.borrow_mut(Vault.Vault, "0xfa17") as vault:
            held = vault.owners.borrow_with_default(account, 0)
            self.require(0 < shares <= held, self.E_NOT_ENOUGH_SHARES)
            amount = vault.assets * shares // vault.shares
            self._divest(vault, amount)
            vault.shares -= shares
            if held == shares:
                vault.owners.remove(account)
            else:
                vault.owners.upsert(account, held - shares)
        self.use(Coin).transfer(APTOS_COIN, self.own_signer(), account, amount)
        self.emit(Vault.Withdrawn(account=account, amount=amount, shares=shares))

    @entry
    def harvest(self, account: signer, strategy: u64, gain: u64) -> None:
        """Record the gain of a strategy."""
        self.require(account == self.definition.address, self.E_NOT_MANAGER)
        with self.borrow_mut(Vault.Vault, "0xfa17") as vault:
            with vault.strategies.borrow_mut(strategy % STRATEGIES) as place:
                place.assets += gain
            vault.assets += gain

    @view
    def share_price(self) -> u64:
        """Return octas per share, times 10^8, computed from all strategies."""
        vault = self.borrow(Vault.Vault, "0xfa17")
        assets = sum(vault.strategies.borrow(number).assets for number in self.each(range(STRATEGIES)))
        return assets * PRICE_SCALE // vault.shares if vault.shares > 0 else PRICE_SCALE

    @view
    def balance_of(self, account: address) -> u64:
        """Return the number of shares of an account."""
        return self.borrow(Vault.Vault, "0xfa17").owners.borrow_with_default(account, 0)

    def _shares_for(self, vault: Vault, amount: int) -> int:
        return amount * vault.shares // vault.assets if vault.shares > 0 and vault.assets > 0 else amount

    def _invest(self, vault: Vault, amount: int) -> None:
        with vault.strategies.borrow_mut(vault.shares % STRATEGIES) as strategy:
            strategy.assets += amount
        vault.assets += amount

    def _divest(self, vault: Vault, amount: int) -> None:
        """Withdraw an amount from the strategies, in order."""
        vault.assets -= amount
        for number in self.each(range(STRATEGIES)):
            with vault.strategies.borrow_mut(number) as strategy:
                taken = min(amount, strategy.assets)
                strategy.assets -= taken
            amount -= taken
            if amount == 0:
                return


class CheaperVault(Vault, revision=2, code_bytes=60_000):
    """An upgrade of the vault: prices are computed from the stored total, and deposits can be previewed."""

    @view
    def share_price(self) -> u64:
        """Return octas per share, times 10^8, computed from the stored total."""
        vault = self.borrow(Vault.Vault, "0xfa17")
        return vault.assets * PRICE_SCALE // vault.shares if vault.shares > 0 else PRICE_SCALE

    @view
    def preview(self, amount: u64) -> u64:
        """Return the number of shares that a deposit would buy."""
        return self._shares_for(self.borrow(Vault.Vault, "0xfa17"), amount)


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
        with self.borrow_mut(PriceFeed.Feed, account) as feed:
            for number in range(REPORTERS):
                feed.reports.add(number, PriceFeed.Report(price=FIRST_PRICE))

    @entry
    def report(self, account: signer, reporter: u64, price: u64) -> None:
        """Store the price that one reporter reports."""
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
        """Return the price of a quantity, in octas."""
        price = self.use(PriceFeed).price()
        return quantity * price * (100 + SPREAD_PERCENT) // 100
