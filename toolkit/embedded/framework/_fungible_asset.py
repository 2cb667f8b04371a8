"""``0x1::fungible_asset`` and ``0x1::primary_fungible_store``: assets as objects, with one primary store per owner."""

from __future__ import annotations

from toolkit.embedded._contract import Module, entry, view
from toolkit.embedded._vm_status import invalid_argument, not_found
from toolkit.embedded.framework._configuration import Features
from toolkit.embedded.framework._object import OBJECT_GROUP, ObjectModule, derived_object_address, named_object_address
from toolkit.embedded.framework._values import ResourceType  # noqa: TC001 - annotations are evaluated
from toolkit.embedded.types import *
from toolkit.move import StructTag

METADATA = StructTag("0x1", "fungible_asset", "Metadata")
"""Type of an asset's metadata object: the type argument of calls that accept any such object."""


class FungibleAsset(Module, address="0x1"):
    """Fungible assets: metadata, supply and stores."""

    class Metadata(Resource, abilities="copy drop key", group=OBJECT_GROUP):
        """Name, symbol and decimals of an asset."""

        name: String
        symbol: String
        decimals: u8
        icon_uri: String
        project_uri: String

    class Supply(Resource, group=OBJECT_GROUP):
        """Current and maximum supply of an asset."""

        current: u128
        maximum: Option[u128]

    class FungibleStore(Resource, group=OBJECT_GROUP):
        """An amount of one asset."""

        metadata: Object[FungibleAsset.Metadata]
        balance: u64
        frozen: bool

    class Deposit(Event):
        """A deposit into a store."""

        store: address
        amount: u64

    class Withdraw(Deposit):
        """A withdrawal from a store."""

    EINSUFFICIENT_BALANCE = invalid_argument(4, "Insufficient balance to withdraw or transfer.")
    EMETADATA_NOT_FOUND = not_found(30, "The fungible asset metadata does not exist.")
    ESTORE_NOT_FOUND = not_found(23, "The fungible asset store does not exist.")

    @view
    def name(self, kind: ResourceType, metadata: Object[T0]) -> String:
        """Return an asset's name."""
        return self.borrow(FungibleAsset.Metadata, metadata).name

    @view
    def symbol(self, kind: ResourceType, metadata: Object[T0]) -> String:
        """Return an asset's symbol."""
        return self.borrow(FungibleAsset.Metadata, metadata).symbol

    @view
    def decimals(self, kind: ResourceType, metadata: Object[T0]) -> u8:
        """Return the number of decimals of an asset."""
        return self.borrow(FungibleAsset.Metadata, metadata).decimals

    @view
    def supply(self, kind: ResourceType, metadata: Object[T0]) -> Option[u128]:
        """Return the supply of an asset."""
        return self.borrow(FungibleAsset.Supply, metadata).current

    @view
    def balance(self, kind: ResourceType, store: Object[T0]) -> u64:
        """Return the balance of a store, or 0 if the store does not exist."""
        return self.borrow(FungibleAsset.FungibleStore, store).balance if self.store_exists(store) else 0

    @view
    def store_exists(self, store: address) -> bool:
        """Return True if there is a store at an address."""
        return self.exists(FungibleAsset.FungibleStore, store)

    def create(self, creator: address, symbol: str, name: str, decimals: int) -> str:
        """Create an asset as an object of its creator and return its address."""
        return self.create_at(named_object_address(creator, symbol.encode()), creator, symbol, name, decimals)

    def create_at(self, at: address, creator: address, symbol: str, name: str, decimals: int) -> str:
        """Create an asset at a given address and return that address."""
        self.use(ObjectModule).create(at, creator, transferable=True)
        metadata = FungibleAsset.Metadata(name=name, symbol=symbol, decimals=decimals, icon_uri="", project_uri="")
        self.move_to(at, metadata)
        self.move_to(at, FungibleAsset.Supply(current=0, maximum=None))
        self.use(PrimaryFungibleStore).enable(at)
        return at

    def create_store(self, store: address, metadata: address) -> None:
        """Create a store."""
        self.require(self.exists(FungibleAsset.Metadata, metadata), self.EMETADATA_NOT_FOUND)
        self.move_to(store, FungibleAsset.FungibleStore(metadata=Object(metadata), balance=0, frozen=False))

    def find_dispatch(self, metadata: address) -> None:
        """Charge for the search for functions that replace transfers; the embedded ledger does not have any."""
        self.use(ObjectModule).is_object(metadata)

    def withdraw(self, store: address, amount: u64, *, silent: bool = False) -> None:
        """Withdraw an amount from a store; if `silent` is true, as for fees, no event is emitted."""
        self.use(Features).is_enabled(Features.PERMISSIONED_SIGNER)
        self.require(self.store_exists(store), self.EINSUFFICIENT_BALANCE)
        with self.borrow_mut(FungibleAsset.FungibleStore, store) as held:
            self.require(held.balance >= amount, self.EINSUFFICIENT_BALANCE)
            held.balance -= amount
        if not silent:
            self.emit(FungibleAsset.Withdraw(store=store, amount=amount))

    def deposit(self, store: address, amount: u64, *, silent: bool = False) -> None:
        """Deposit an amount into a store; if `silent` is true, as for refunds, no event is emitted."""
        self.require(self.store_exists(store), self.ESTORE_NOT_FOUND)
        with self.borrow_mut(FungibleAsset.FungibleStore, store) as held:
            held.balance += amount
        if not silent:
            self.emit(FungibleAsset.Deposit(store=store, amount=amount))

    def count(self, metadata: address, change: int) -> None:
        """Add a change to the supply; the change is negative if assets are burned."""
        with self.borrow_mut(FungibleAsset.Supply, metadata) as supply:
            supply.current += change


class PrimaryFungibleStore(Module, address="0x1"):
    """One store per owner and asset, at an address derived from both.

    Examples
    --------
    >>> from toolkit.embedded import Ledger
    >>> ledger = Ledger()
    >>> kind = ["0x1::fungible_asset::Metadata"]
    >>> ledger.view("0x1::primary_fungible_store::balance", ["0xb0b", "0xa"], type_arguments=kind)[0]
    [1000000000000]
    """

    class DeriveRefPod(Resource, group=OBJECT_GROUP):
        """The right to create stores, which is stored with the asset."""

        metadata_derive_ref: ObjectModule.DeriveRef

    @view
    def primary_store_address(self, kind: ResourceType, owner: address, metadata: Object[T0]) -> address:
        """Return the address of an owner's primary store of an asset."""
        return derived_object_address(owner, metadata)

    @view
    def primary_store_exists(self, kind: ResourceType, account: address, metadata: Object[T0]) -> bool:
        """Return True if an owner has a primary store of an asset."""
        return self.use(FungibleAsset).store_exists(derived_object_address(account, metadata))

    @view
    def balance(self, kind: ResourceType, account: address, metadata: Object[T0]) -> u64:
        """Return an owner's balance of an asset."""
        if not self.primary_store_exists(kind, account, metadata):
            return 0
        store = derived_object_address(account, metadata)
        self.use(ObjectModule).is_object(store)
        self.use(FungibleAsset).find_dispatch(metadata)
        return self.use(FungibleAsset).balance(kind, Object(store))

    @entry
    def transfer(
        self, kind: ResourceType, sender: signer, metadata: Object[T0], recipient: address, amount: u64
    ) -> None:
        """Transfer an amount of an asset; create the recipient's store if it does not exist."""
        assets, objects = self.use(FungibleAsset), self.use(ObjectModule)
        source = derived_object_address(sender, metadata)
        self.require(assets.store_exists(source), assets.EINSUFFICIENT_BALANCE)
        objects.is_object(source)
        target = self.ensure_store(metadata, recipient)
        objects.is_object(target)
        assets.find_dispatch(metadata)
        assets.withdraw(source, amount)
        assets.deposit(target, amount)

    def move(self, metadata: address, sender: address, recipient: address, amount: u64) -> None:
        """Transfer an amount of an asset that has neither frozen stores nor custom functions."""
        source, target = self.ensure_store(metadata, sender), self.ensure_store(metadata, recipient)
        self.use(FungibleAsset).withdraw(source, amount)
        self.use(FungibleAsset).deposit(target, amount)

    def enable(self, metadata: address) -> None:
        """Enable primary stores for an asset."""
        pod = PrimaryFungibleStore.DeriveRefPod(metadata_derive_ref=ObjectModule.DeriveRef(self=metadata))
        self.move_to(metadata, pod)

    def ensure_store(self, metadata: address, owner: address) -> str:
        """Return the address of an owner's primary store; create the store if it does not exist."""
        store = derived_object_address(owner, metadata)
        if not self.use(FungibleAsset).store_exists(store):
            self.require(self.use(ObjectModule).is_object(metadata), FungibleAsset.EMETADATA_NOT_FOUND)
            self.borrow(PrimaryFungibleStore.DeriveRefPod, metadata)
            self.use(ObjectModule).create(store, owner, transferable=False)
            self.use(FungibleAsset).create_store(store, metadata)
        return store

    def mint(self, metadata: address, to: address, amount: u64, *, silent: bool = False) -> None:
        """Mint an amount of an asset."""
        self.use(FungibleAsset).count(metadata, amount)
        store = self.ensure_store(metadata, to)
        self.use(FungibleAsset).find_dispatch(metadata)
        self.use(FungibleAsset).deposit(store, amount, silent=silent)

    def burn(self, metadata: address, owner: address, amount: u64, *, silent: bool = False) -> None:
        """Burn an amount of an asset that an owner holds."""
        self.use(FungibleAsset).withdraw(derived_object_address(owner, metadata), amount, silent=silent)
        self.use(FungibleAsset).count(metadata, -amount)
