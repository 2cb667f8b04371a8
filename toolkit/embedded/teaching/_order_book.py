"""An order book in a single vector: every view iterates over all orders, so its gas rises as the book grows."""

from __future__ import annotations

from toolkit.embedded import (
    Event,
    Module,
    Option,
    Resource,
    Struct,
    address,
    entry,
    invalid_argument,
    not_found,
    permission_denied,
    signer,
    u64,
    vector,
    view,
)

__all__ = ["OrderBook"]


class OrderBook(Module, address="0xb00c", code_bytes=40_000):
    """Buy and sell orders, oldest first; they are never matched."""

    class Order(Struct):
        """An order: price in octas, quantity in units."""

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
        """Number of open orders of an account; deleted with the last order."""

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
    E_NO_SUCH_ORDER = not_found(2, "There is no open order of that id")
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
            self.require(found, self.E_NO_SUCH_ORDER)
            self.require(found[0].owner == account, self.E_NOT_OWNER)
            book.orders.remove(found[0])
        with self.borrow_mut(OrderBook.Trader, account) as trader:
            trader.open_orders -= 1
        if self.borrow(OrderBook.Trader, account).open_orders == 0:
            self.move_from(OrderBook.Trader, account)
        self.emit(OrderBook.OrderCancelled(id=id))

    @entry
    def close_day(self, account: signer, keep: u64) -> None:
        """Drop the oldest orders, so that `keep` remain; only for the account of the book."""
        self.require(account == self.definition.address, self.E_NOT_OWNER)
        with self.borrow_mut(OrderBook.Book, "0xb00c") as book:
            dropped = book.orders[: max(0, len(book.orders) - keep)]
            book.orders = book.orders[len(dropped) :]
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
