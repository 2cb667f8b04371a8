"""``0x1::coin``: coins of any type, kept in a store per account and type."""

from __future__ import annotations

from typing import Any, Generic

from toolkit.embedded.contract import (
    T0,
    Event,
    Module,
    Option,
    Resource,
    String,
    Struct,
    TypeArgument,
    address,
    already_exists,
    entry,
    invalid_argument,
    not_found,
    permission_denied,
    public,
    signer,
    u8,
    u64,
    u128,
    view,
)
from toolkit.embedded.framework.values import EventModule, OptionalAggregator, event_handle
from toolkit.move import StructTag

__all__ = ["Coin"]

MAX_U128 = 2**128 - 1


class Coin(Module, address="0x1", code_bytes=12_000):
    """Coins."""

    class Coin(Struct, Generic[T0], abilities="store"):
        """Some amount of one coin type; it can be neither copied nor dropped."""

        value: u64

    class DepositEvent(Struct, abilities="drop store"):
        """Coins came in (older kind of event)."""

        amount: u64

    class WithdrawEvent(Struct, abilities="drop store"):
        """Coins went out (older kind of event)."""

        amount: u64

    class CoinStore(Resource, Generic[T0]):
        """The coins of one type that an account holds."""

        coin: Coin.Coin[T0]
        frozen: bool
        deposit_events: EventModule.EventHandle[Coin.DepositEvent]
        withdraw_events: EventModule.EventHandle[Coin.WithdrawEvent]

    class CoinInfo(Resource, Generic[T0]):
        """What a coin type is called, and how much of it there is."""

        name: String
        symbol: String
        decimals: u8
        supply: Option[OptionalAggregator.OptionalAggregator]

    class CoinDeposit(Event):
        """Coins came in."""

        coin_type: String
        account: address
        amount: u64

    class CoinWithdraw(Event):
        """Coins went out."""

        coin_type: String
        account: address
        amount: u64

    ECOIN_INFO_ADDRESS_MISMATCH = invalid_argument(
        1, "Address of account which is used to initialize a coin `CoinType`"
    )
    ECOIN_INFO_ALREADY_PUBLISHED = already_exists(2, "`CoinType` is already initialized as a coin")
    ECOIN_INFO_NOT_PUBLISHED = not_found(3, "`CoinType` hasn't been initialized as a coin")
    ECOIN_STORE_NOT_PUBLISHED = not_found(5, "Account hasn't registered `CoinStore` for `CoinType`")
    EINSUFFICIENT_BALANCE = invalid_argument(6, "Not enough coins to complete transaction")
    EFROZEN = permission_denied(10, "CoinStore is frozen. Coins cannot be deposited or withdrawn")

    @view
    def name(self, coin_type: TypeArgument) -> String:
        """Return the name of a coin."""
        return self._info(coin_type).name

    @view
    def symbol(self, coin_type: TypeArgument) -> String:
        """Return the symbol of a coin."""
        return self._info(coin_type).symbol

    @view
    def decimals(self, coin_type: TypeArgument) -> u8:
        """Return how many decimals a coin has."""
        return self._info(coin_type).decimals

    @view
    def supply(self, coin_type: TypeArgument) -> Option[u128]:
        """Return how much of a coin there is, where that is counted."""
        counted = self._info(coin_type).supply
        return None if counted is None or counted.integer is None else counted.integer.value

    @view
    def balance(self, coin_type: TypeArgument, owner: address) -> u64:
        """Return how much of a coin an account holds."""
        if not self.exists(Coin.CoinStore, owner, coin_type):
            return 0
        return self.borrow(Coin.CoinStore, owner, coin_type).coin.value

    @view
    def is_balance_at_least(self, coin_type: TypeArgument, owner: address, amount: u64) -> bool:
        """Tell whether an account holds at least an amount."""
        return self.balance(coin_type, owner) >= amount

    @view
    def is_account_registered(self, coin_type: TypeArgument, account_addr: address) -> bool:
        """Tell whether an account can hold a coin."""
        return self.exists(Coin.CoinStore, account_addr, coin_type)

    @view
    def is_coin_initialized(self, coin_type: TypeArgument) -> bool:
        """Tell whether a type is a coin."""
        return self.exists(Coin.CoinInfo, self._issuer(coin_type), coin_type)

    @entry
    def transfer(self, coin_type: TypeArgument, account: signer, to: address, amount: u64) -> None:
        """Move coins from the signer to another account, which must hold this coin already."""
        self.deposit(coin_type, to, self.withdraw(coin_type, account, amount))

    @public
    def register(self, coin_type: TypeArgument, account: signer) -> None:
        """Let the signer hold a coin."""
        if self.exists(Coin.CoinStore, account, coin_type):
            return
        store: Coin.CoinStore[Any] = Coin.CoinStore(
            coin=Coin.Coin(value=0),
            frozen=False,
            deposit_events=event_handle(account, 2),
            withdraw_events=event_handle(account, 3),
        )
        self.move_to(account, store, coin_type)

    @public
    def withdraw(self, coin_type: TypeArgument, account: signer, amount: u64) -> Coin[T0]:
        """Take coins out of the signer's store."""
        self.require(self.exists(Coin.CoinStore, account, coin_type), self.ECOIN_STORE_NOT_PUBLISHED)
        with self.borrow_mut(Coin.CoinStore, account, coin_type) as store:
            self.require(not store.frozen, self.EFROZEN)
            self.require(store.coin.value >= amount, self.EINSUFFICIENT_BALANCE)
            self.charge("instr.sub")
            store.coin.value -= amount
        self.emit(Coin.CoinWithdraw(coin_type=self.type_name(coin_type), account=account, amount=amount))
        return Coin.Coin(value=amount)

    @public
    def deposit(self, coin_type: TypeArgument, account_addr: address, coin: Coin[T0]) -> None:
        """Put coins into an account's store."""
        self.require(self.exists(Coin.CoinStore, account_addr, coin_type), self.ECOIN_STORE_NOT_PUBLISHED)
        with self.borrow_mut(Coin.CoinStore, account_addr, coin_type) as store:
            self.require(not store.frozen, self.EFROZEN)
            self.charge("instr.add")
            store.coin.value += coin.value
        event = Coin.CoinDeposit(coin_type=self.type_name(coin_type), account=account_addr, amount=coin.value)
        self.emit(event)

    def initialize(self, coin_type: TypeArgument, account: signer, name: String, symbol: String, decimals: u8) -> None:
        """Make a type a coin, its supply counted."""
        self.require(account == self._issuer(coin_type), self.ECOIN_INFO_ADDRESS_MISMATCH)
        self.require(not self.exists(Coin.CoinInfo, account, coin_type), self.ECOIN_INFO_ALREADY_PUBLISHED)
        counted = OptionalAggregator.OptionalAggregator(
            aggregator=None, integer=OptionalAggregator.Integer(value=0, limit=MAX_U128)
        )
        self.move_to(account, Coin.CoinInfo(name=name, symbol=symbol, decimals=decimals, supply=counted), coin_type)

    def mint(self, coin_type: TypeArgument, amount: u64) -> Coin[T0]:
        """Make new coins."""
        self._count(coin_type, amount)
        return Coin.Coin(value=amount)

    def collect_fee(self, coin_type: TypeArgument, payer: address, amount: int) -> None:
        """Burn a fee from an account, or (a negative amount) mint it what storage refunds beyond the fee."""
        with self.borrow_mut(Coin.CoinStore, payer, coin_type) as store:
            store.coin.value -= amount
        self._count(coin_type, -amount)

    def _count(self, coin_type: TypeArgument, change: int) -> None:
        with self.borrow_mut(Coin.CoinInfo, self._issuer(coin_type), coin_type) as info:
            if info.supply is not None and info.supply.integer is not None:
                info.supply.integer.value += change

    def _info(self, coin_type: TypeArgument) -> CoinInfo[Any]:
        issuer = self._issuer(coin_type)
        self.require(self.exists(Coin.CoinInfo, issuer, coin_type), self.ECOIN_INFO_NOT_PUBLISHED)
        return self.borrow(Coin.CoinInfo, issuer, coin_type)

    def _issuer(self, coin_type: TypeArgument) -> str:
        """Return the address a coin type was defined at."""
        return coin_type.address if isinstance(coin_type, StructTag) else "0x0"
