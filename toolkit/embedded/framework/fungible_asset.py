"""``0x1::fungible_asset`` and ``0x1::primary_fungible_store``: assets that are objects, and one store per owner."""

from __future__ import annotations

from toolkit.embedded import (
    T0,
    Event,
    Module,
    Object,
    Option,
    Resource,
    String,
    TypeArgument,
    address,
    entry,
    invalid_argument,
    not_found,
    signer,
    u8,
    u64,
    u128,
    view,
)
from toolkit.embedded.framework.objects import (
    OBJECT_GROUP,
    ObjectModule,
    derived_object_address,
    named_object_address,
)
from toolkit.move import StructTag

__all__ = ["METADATA", "FungibleAsset", "PrimaryFungibleStore"]

METADATA = StructTag("0x1", "fungible_asset", "Metadata")
"""Type of an asset's metadata object, the type argument of calls that take any such object."""


class FungibleAsset(Module, address="0x1"):
    """Assets: what they are called, how much there is, and stores that hold them."""

    class Metadata(Resource, group=OBJECT_GROUP):
        """What an asset is called."""

        name: String
        symbol: String
        decimals: u8
        icon_uri: String
        project_uri: String

    class Supply(Resource, group=OBJECT_GROUP):
        """How much of an asset there is, and may be at most."""

        current: u128
        maximum: Option[u128]

    class FungibleStore(Resource, group=OBJECT_GROUP):
        """Some amount of one asset."""

        metadata: Object[FungibleAsset.Metadata]
        balance: u64
        frozen: bool

    class Deposit(Event):
        """Some of an asset came in."""

        store: address
        amount: u64

    class Withdraw(Event):
        """Some of an asset went out."""

        store: address
        amount: u64

    EINSUFFICIENT_BALANCE = invalid_argument(4, "Insufficient balance to withdraw or transfer.")
    ESTORE_NOT_FOUND = not_found(23, "The fungible asset store does not exist.")

    @view
    def name(self, kind: TypeArgument, metadata: Object[T0]) -> String:
        """Return an asset's name."""
        del kind
        return self.borrow(FungibleAsset.Metadata, metadata).name

    @view
    def symbol(self, kind: TypeArgument, metadata: Object[T0]) -> String:
        """Return an asset's symbol."""
        del kind
        return self.borrow(FungibleAsset.Metadata, metadata).symbol

    @view
    def decimals(self, kind: TypeArgument, metadata: Object[T0]) -> u8:
        """Return how many decimals an asset has."""
        del kind
        return self.borrow(FungibleAsset.Metadata, metadata).decimals

    @view
    def supply(self, kind: TypeArgument, metadata: Object[T0]) -> Option[u128]:
        """Return how much of an asset there is."""
        del kind
        return self.borrow(FungibleAsset.Supply, metadata).current

    @view
    def balance(self, kind: TypeArgument, store: Object[T0]) -> u64:
        """Return how much a store holds."""
        del kind
        return self.borrow(FungibleAsset.FungibleStore, store).balance if self.store_exists(store) else 0

    @view
    def store_exists(self, store: address) -> bool:
        """Tell whether there is a store at an address."""
        return self.exists(FungibleAsset.FungibleStore, store)

    def create(self, creator: address, symbol: str, name: str, decimals: int) -> str:
        """Make an asset, an object of its creator, and return its address."""
        return self.create_at(named_object_address(creator, symbol.encode()), creator, symbol, name, decimals)

    def create_at(self, at: address, creator: address, symbol: str, name: str, decimals: int) -> str:
        """Make an asset at an address of one's choice."""
        self.use(ObjectModule).create(at, creator, transferable=True)
        metadata = FungibleAsset.Metadata(name=name, symbol=symbol, decimals=decimals, icon_uri="", project_uri="")
        self.move_to(at, metadata)
        self.move_to(at, FungibleAsset.Supply(current=0, maximum=None))
        return at

    def ensure_store(self, store: address, owner: address, metadata: address) -> None:
        """Make a store unless it exists."""
        if not self.store_exists(store):
            self.use(ObjectModule).create(store, owner, transferable=False)
            self.move_to(store, FungibleAsset.FungibleStore(metadata=Object(metadata), balance=0, frozen=False))

    def withdraw(self, store: address, amount: u64) -> None:
        """Take some of an asset out of a store."""
        self.require(self.store_exists(store), self.EINSUFFICIENT_BALANCE)
        with self.borrow_mut(FungibleAsset.FungibleStore, store) as held:
            self.require(held.balance >= amount, self.EINSUFFICIENT_BALANCE)
            held.balance -= amount
        self.emit(FungibleAsset.Withdraw(store=store, amount=amount))

    def deposit(self, store: address, amount: u64) -> None:
        """Put some of an asset into a store."""
        self.require(self.store_exists(store), self.ESTORE_NOT_FOUND)
        with self.borrow_mut(FungibleAsset.FungibleStore, store) as held:
            held.balance += amount
        self.emit(FungibleAsset.Deposit(store=store, amount=amount))

    def count(self, metadata: address, change: int) -> None:
        """Count what was minted, or (a negative change) burned."""
        with self.borrow_mut(FungibleAsset.Supply, metadata) as supply:
            supply.current += change


class PrimaryFungibleStore(Module, address="0x1"):
    """One store per owner and asset, at an address that follows from both."""

    @view
    def primary_store_address(self, kind: TypeArgument, owner: address, metadata: Object[T0]) -> address:
        """Return where an owner's store of an asset is."""
        del kind
        return derived_object_address(owner, metadata)

    @view
    def primary_store_exists(self, kind: TypeArgument, account: address, metadata: Object[T0]) -> bool:
        """Tell whether an owner has a store of an asset."""
        del kind
        return self.use(FungibleAsset).store_exists(derived_object_address(account, metadata))

    @view
    def balance(self, kind: TypeArgument, account: address, metadata: Object[T0]) -> u64:
        """Return how much of an asset an owner holds."""
        return self.use(FungibleAsset).balance(kind, Object(derived_object_address(account, metadata)))

    @entry
    def transfer(
        self, kind: TypeArgument, sender: signer, metadata: Object[T0], recipient: address, amount: u64
    ) -> None:
        """Move some of an asset, making the receiver's store on the way."""
        del kind
        assets = self.use(FungibleAsset)
        assets.withdraw(derived_object_address(sender, metadata), amount)
        self._deposit(metadata, recipient, amount)

    def mint(self, metadata: address, to: address, amount: u64) -> None:
        """Make some of an asset."""
        self.use(FungibleAsset).count(metadata, amount)
        self._deposit(metadata, to, amount)

    def burn(self, metadata: address, owner: address, amount: u64) -> None:
        """Take some of an asset from an owner's store, for good."""
        self.use(FungibleAsset).withdraw(derived_object_address(owner, metadata), amount)
        self.use(FungibleAsset).count(metadata, -amount)

    def _deposit(self, metadata: str, to: str, amount: int) -> None:
        assets = self.use(FungibleAsset)
        store = derived_object_address(to, metadata)
        assets.ensure_store(store, to, metadata)
        assets.deposit(store, amount)
