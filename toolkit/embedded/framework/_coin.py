"""``0x1::coin``, ``0x1::aptos_coin`` and ``0x1::aptos_account``: coins of any type, the gas coin and its transfers.

Coins are held in one store per account, or as the paired fungible asset.
"""

from __future__ import annotations

from typing import Any, Generic

from toolkit.embedded._contract import Module, entry, public, view
from toolkit.embedded._vm_status import already_exists, invalid_argument, invalid_state, not_found, permission_denied
from toolkit.embedded.framework._account import Account
from toolkit.embedded.framework._configuration import Features
from toolkit.embedded.framework._fungible_asset import METADATA, FungibleAsset, PrimaryFungibleStore
from toolkit.embedded.framework._object import OBJECT_GROUP, derived_object_address
from toolkit.embedded.framework._values import EventModule, OptionalAggregator, TypeInfoModule, event_handle
from toolkit.embedded.types import *
from toolkit.move import StructTag, parse_address

APTOS_COIN = StructTag("0x1", "aptos_coin", "AptosCoin")
"""Type of the gas coin."""

OCTAS_PER_APT = 100_000_000
"""Number of octas in one APT."""

CORE_RESOURCES = parse_address("0xa550c18")
"""The account that may mint the gas coin, as on test networks."""

PAIRED_APT = "0xa"
"""Address of the fungible asset that is paired with the gas coin."""

MAX_U128 = 2**128 - 1


class Coin(Module, address="0x1", code_bytes=12_000):
    """Coins of any type, stored in one `CoinStore` per account and type."""

    class Coin(Struct, Generic[T0], abilities="store"):
        """An amount of one coin type; it cannot be copied or dropped."""

        value: u64

    class DepositEvent(Struct, abilities="drop store"):
        """A deposit of coins (event with a handle)."""

        amount: u64

    class WithdrawEvent(DepositEvent):
        """A withdrawal of coins (event with a handle)."""

    class CoinStore(Resource, Generic[T0]):
        """The coins of one type that an account holds."""

        coin: Coin.Coin[T0]
        frozen: bool
        deposit_events: EventModule.EventHandle[Coin.DepositEvent]
        withdraw_events: EventModule.EventHandle[Coin.WithdrawEvent]

    class CoinInfo(Resource, Generic[T0]):
        """Name, symbol, decimals and supply of a coin type."""

        name: String
        symbol: String
        decimals: u8
        supply: Option[OptionalAggregator.OptionalAggregator]

    class CoinConversionMap(Resource):
        """The paired fungible asset by coin type."""

        coin_to_fungible_asset_map: Table[TypeInfoModule.TypeInfo, Object[FungibleAsset.Metadata]]

    class PairedCoinType(Resource, group=OBJECT_GROUP):
        """The coin type that a fungible asset is paired with."""

        type: TypeInfoModule.TypeInfo

    class CoinDeposit(Event):
        """A deposit of coins."""

        coin_type: String
        account: address
        amount: u64

    class CoinWithdraw(CoinDeposit):
        """A withdrawal of coins."""

    class CoinStoreDeletion(Event):
        """A coin store was deleted, because its coins became the paired fungible asset."""

        coin_type: String
        event_handle_creation_address: address
        deleted_deposit_event_handle_creation_number: u64
        deleted_withdraw_event_handle_creation_number: u64

    ECOIN_INFO_ADDRESS_MISMATCH = invalid_argument(
        1, "Address of account which is used to initialize a coin `CoinType`"
    )
    ECOIN_INFO_ALREADY_PUBLISHED = already_exists(2, "`CoinType` is already initialized as a coin")
    ECOIN_INFO_NOT_PUBLISHED = not_found(3, "`CoinType` hasn't been initialized as a coin")
    ECOIN_STORE_NOT_PUBLISHED = not_found(5, "Account hasn't registered `CoinStore` for `CoinType`")
    EINSUFFICIENT_BALANCE = invalid_argument(6, "Not enough coins to complete transaction")
    EFROZEN = permission_denied(10, "CoinStore is frozen. Coins cannot be deposited or withdrawn")
    EPAIRED_FUNGIBLE_ASSET_NOT_FOUND = invalid_state(17, "The coin type has no paired fungible asset")

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
        """Return the number of decimals of a coin."""
        return self._info(coin_type).decimals

    @view
    def supply(self, coin_type: TypeArgument) -> Option[u128]:
        """Return the supply of a coin including its paired fungible asset, or None if it is not tracked."""
        counted = self._info(coin_type).supply
        paired = self.paired_metadata(coin_type)
        if counted is None or counted.integer is None:
            return None
        if paired is None:
            return counted.integer.value
        return counted.integer.value + (self.use(FungibleAsset).supply(METADATA, paired) or 0)

    @view
    def paired_metadata(self, coin_type: TypeArgument) -> Option[Object[FungibleAsset.Metadata]]:
        """Return the fungible asset paired with a coin, or None if the coin is not paired or the feature is off."""
        if not self.exists(Coin.CoinConversionMap, "0x1"):
            return None
        if not self.use(Features).is_enabled(Features.COIN_TO_FUNGIBLE_ASSET):
            return None
        return self._pair(coin_type)

    @view
    def balance(self, coin_type: TypeArgument, owner: address) -> u64:
        """Return an account's balance of a coin, including the paired fungible asset."""
        held = self._coins(coin_type, owner)
        paired = self.paired_metadata(coin_type)
        if paired is None:
            return held
        return held + self.use(PrimaryFungibleStore).balance(METADATA, owner, paired)

    @view
    def is_balance_at_least(self, coin_type: TypeArgument, owner: address, amount: u64) -> bool:
        """Return True if an account holds at least an amount."""
        return self.balance(coin_type, owner) >= amount

    @view
    def is_account_registered(self, coin_type: TypeArgument, account_addr: address) -> bool:
        """Return True if an account can hold a coin, in a coin store or as the paired fungible asset."""
        if self.exists(Coin.CoinStore, account_addr, coin_type):
            return True
        return self._receives_paired(self.paired_metadata(coin_type), account_addr)

    @view
    def is_coin_initialized(self, coin_type: TypeArgument) -> bool:
        """Return True if a type is an initialized coin."""
        return self.exists(Coin.CoinInfo, self._struct(coin_type).address, coin_type)

    @entry
    def transfer(self, coin_type: TypeArgument, account: signer, to: address, amount: u64) -> None:
        """Transfer coins to an account that has registered the coin."""
        self.deposit(coin_type, to, self.withdraw(coin_type, account, amount))

    @entry
    def migrate_to_fungible_store(self, coin_type: TypeArgument, account: signer) -> None:
        """Convert the signer's coins to the paired fungible asset in the signer's primary store."""
        paired = self.paired_metadata(coin_type)
        if paired is None:
            self.abort(self.EPAIRED_FUNGIBLE_ASSET_NOT_FOUND)
        if not self.exists(Coin.CoinStore, account, coin_type):
            return
        store = self.move_from(Coin.CoinStore, account, coin_type)
        if store.coin.value:
            deposits, withdrawals = store.deposit_events.guid.id, store.withdraw_events.guid.id
            deleted = Coin.CoinStoreDeletion(
                coin_type=self.type_name(coin_type),
                event_handle_creation_address=deposits.addr,
                deleted_deposit_event_handle_creation_number=deposits.creation_num,
                deleted_withdraw_event_handle_creation_number=withdrawals.creation_num,
            )
            self.emit(deleted)
        # As on chain the coins become the asset without events of a withdrawal and a deposit.
        self._count(coin_type, -store.coin.value)
        self.use(PrimaryFungibleStore).mint(paired, account, store.coin.value, silent=True)

    @public
    def register(self, coin_type: TypeArgument, account: signer) -> None:
        """Create the signer's store for a coin."""
        if self.is_account_registered(coin_type, account):
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
        """Withdraw coins from the signer's store, and the rest from the paired fungible asset."""
        has_store, short = self.exists(Coin.CoinStore, account, coin_type), amount
        if has_store:
            with self.borrow_mut(Coin.CoinStore, account, coin_type) as store:
                self.require(not store.frozen, self.EFROZEN)
                self.charge("instr.sub")
                short = max(0, amount - store.coin.value)
                store.coin.value -= amount - short
        if short or not has_store:
            self._take_paired(coin_type, account, short, has_store=has_store)
        if amount > short:  # the paired asset has an event of its own
            taken = amount - short
            self.emit(Coin.CoinWithdraw(coin_type=self.type_name(coin_type), account=account, amount=taken))
        return Coin.Coin(value=amount)

    @public
    def deposit(self, coin_type: TypeArgument, account_addr: address, coin: Coin[T0]) -> None:
        """Deposit coins in an account's store, or as the paired fungible asset if it has no store."""
        if not self.exists(Coin.CoinStore, account_addr, coin_type):
            paired = self.paired_metadata(coin_type)
            self.require(self._receives_paired(paired, account_addr), self.ECOIN_STORE_NOT_PUBLISHED)
            self._count(coin_type, -coin.value)
            self.use(PrimaryFungibleStore).mint(str(paired), account_addr, coin.value)
            return
        with self.borrow_mut(Coin.CoinStore, account_addr, coin_type) as store:
            self.require(not store.frozen, self.EFROZEN)
            self.charge("instr.add")
            store.coin.value += coin.value
        event = Coin.CoinDeposit(coin_type=self.type_name(coin_type), account=account_addr, amount=coin.value)
        self.emit(event)

    def initialize(self, coin_type: TypeArgument, account: signer, name: String, symbol: String, decimals: u8) -> None:
        """Initialize a coin type with a tracked supply."""
        self.require(account == self._struct(coin_type).address, self.ECOIN_INFO_ADDRESS_MISMATCH)
        self.require(not self.exists(Coin.CoinInfo, account, coin_type), self.ECOIN_INFO_ALREADY_PUBLISHED)
        supply = OptionalAggregator.Integer(value=0, limit=MAX_U128)
        counted = OptionalAggregator.OptionalAggregator(aggregator=None, integer=supply)
        self.move_to(account, Coin.CoinInfo(name=name, symbol=symbol, decimals=decimals, supply=counted), coin_type)

    def mint(self, coin_type: TypeArgument, amount: u64) -> Coin[T0]:
        """Mint coins."""
        self._count(coin_type, amount)
        return Coin.Coin(value=amount)

    def collect_fee(self, coin_type: TypeArgument, payer: address, amount: int) -> None:
        """Burn an account's fee, or mint its refund if the amount is negative, without emitting an event."""
        left = amount
        if self.exists(Coin.CoinStore, payer, coin_type):
            with self.borrow_mut(Coin.CoinStore, payer, coin_type) as store:
                left = max(0, amount - store.coin.value)
                store.coin.value -= amount - left
            self._count(coin_type, left - amount)
        if left > 0:
            self.use(PrimaryFungibleStore).burn(str(self._pair(coin_type)), payer, left, silent=True)
        elif left < 0:
            self.use(PrimaryFungibleStore).mint(str(self._pair(coin_type)), payer, -left, silent=True)

    def create_pairing(self, coin_type: StructTag) -> None:
        """Create the fungible asset that is paired with the gas coin."""
        info = self._info(coin_type)
        self.use(FungibleAsset).create_at(PAIRED_APT, "0x1", info.symbol, info.name, info.decimals)
        self.move_to(PAIRED_APT, Coin.PairedCoinType(type=self._type_info(coin_type)))
        self.move_to("0x1", Coin.CoinConversionMap(coin_to_fungible_asset_map=self.new_table()))
        pairs = self.borrow(Coin.CoinConversionMap, "0x1").coin_to_fungible_asset_map
        pairs.add(self._type_info(coin_type), Object(PAIRED_APT))

    def _pair(self, coin_type: TypeArgument) -> Object[FungibleAsset.Metadata] | None:
        """Return the metadata object paired with a coin, or None; a type that is not a struct aborts."""
        pairs = self.borrow(Coin.CoinConversionMap, "0x1").coin_to_fungible_asset_map
        described = self._type_info(coin_type)
        return pairs.borrow(described) if pairs.contains(described) else None

    def _type_info(self, coin_type: TypeArgument) -> TypeInfoModule.TypeInfo:
        struct = self._struct(coin_type)
        self.charge("aptos_framework.type_info.type_of.base")
        module, name = struct.module.encode(), struct.name.encode()
        return TypeInfoModule.TypeInfo(account_address=struct.address, module_name=module, struct_name=name)

    def _coins(self, coin_type: TypeArgument, owner: str) -> int:
        """Return the number of coins in an account's store, or 0 if it has no store."""
        if not self.exists(Coin.CoinStore, owner, coin_type):
            return 0
        return self.borrow(Coin.CoinStore, owner, coin_type).coin.value

    def _receives_paired(self, paired: Object[FungibleAsset.Metadata] | None, owner: str) -> bool:
        """Return True if an account without a coin store receives a coin as its paired asset."""
        if paired is None:
            return False
        if paired == PAIRED_APT and self.use(Features).is_enabled(Features.NEW_ACCOUNTS_DEFAULT_TO_FA_APT_STORE):
            return True
        return self.use(PrimaryFungibleStore).primary_store_exists(METADATA, owner, paired)

    def _take_paired(self, coin_type: TypeArgument, account: str, amount: int, *, has_store: bool) -> None:
        """Convert an amount of the paired fungible asset back to coins."""
        paired = self.paired_metadata(coin_type)
        store = None if paired is None else derived_object_address(account, str(paired))
        if store is None or not self.use(FungibleAsset).store_exists(store):
            self.require(has_store or self._receives_paired(paired, account), self.ECOIN_STORE_NOT_PUBLISHED)
            self.abort(self.EINSUFFICIENT_BALANCE)
        self.use(PrimaryFungibleStore).burn(str(paired), account, amount)
        self._count(coin_type, amount)

    def _count(self, coin_type: TypeArgument, change: int) -> None:
        with self.borrow_mut(Coin.CoinInfo, self._struct(coin_type).address, coin_type) as info:
            if info.supply is not None and info.supply.integer is not None:
                info.supply.integer.value += change

    def _info(self, coin_type: TypeArgument) -> CoinInfo[Any]:
        return self.borrow(Coin.CoinInfo, self._struct(coin_type).address, coin_type)

    def _struct(self, coin_type: TypeArgument) -> StructTag:
        """Return a coin type, whose address is its issuer; abort if it is not a struct."""
        if not isinstance(coin_type, StructTag):
            types = self.use(TypeInfoModule)
            types.abort(types.E_NATIVE_FUN_NOT_AVAILABLE)
        return coin_type


class UnflaggedCoin(Coin, revision=2, code_bytes=12_000):
    """The coin module of a later release, in which the pairing of coins does not depend on a feature flag."""

    @view
    def paired_metadata(self, coin_type: TypeArgument) -> Option[Object[FungibleAsset.Metadata]]:
        """Return the fungible asset paired with a coin, or None."""
        return self._pair(coin_type) if self.exists(Coin.CoinConversionMap, "0x1") else None


class AptosCoin(Module, address="0x1"):
    """The gas coin."""

    class AptosCoin(Struct, abilities="key"):
        """The type argument that identifies the coin; it has no values."""

    ENO_CAPABILITIES = permission_denied(1, "Account does not have mint capability")

    @entry
    def mint(self, account: signer, dst_addr: address, amount: u64) -> None:
        """Mint coins to an account, creating it if necessary; only the core resources account may call this."""
        self.require(account == CORE_RESOURCES, self.ENO_CAPABILITIES)
        accounts, coins = self.use(Account), self.use(Coin)
        if not accounts.exists_at(dst_addr):
            accounts.create_account(dst_addr)
        coins.register(APTOS_COIN, dst_addr)
        coins.deposit(APTOS_COIN, dst_addr, coins.mint(APTOS_COIN, amount))


class AptosAccount(Module, address="0x1"):
    """Functions that create accounts and transfer assets to them."""

    EACCOUNT_NOT_FOUND = not_found(1, "Account does not exist.")
    EMISMATCHING_RECIPIENTS_AND_AMOUNTS_LENGTH = invalid_argument(
        5, "The lengths of the recipients and amounts lists don't match."
    )

    @entry
    def create_account(self, auth_key: address) -> None:
        """Create an account with a store for the gas coin."""
        self.use(Account).create_account(auth_key)
        self.use(Coin).register(APTOS_COIN, auth_key)

    @entry
    def transfer(self, source: signer, to: address, amount: u64) -> None:
        """Transfer the gas coin; create the receiver's account and store if they do not exist."""
        self._transfer_gas_coin(source, to, amount)

    @entry
    def transfer_coins(self, coin_type: TypeArgument, source: signer, to: address, amount: u64) -> None:
        """Transfer a coin; create the receiving account if it does not exist."""
        self._transfer(coin_type, source, to, amount)

    @entry
    def transfer_fungible_assets(
        self, source: signer, metadata: Object[FungibleAsset.Metadata], to: address, amount: u64
    ) -> None:
        """Transfer a fungible asset; create the receiving account if it does not exist."""
        self._ensure_account(to)
        self.use(PrimaryFungibleStore).transfer(METADATA, source, metadata, to, amount)

    @entry
    def batch_transfer(self, source: signer, recipients: vector[address], amounts: vector[u64]) -> None:
        """Transfer the gas coin to several accounts."""
        self.require(len(recipients) == len(amounts), self.EMISMATCHING_RECIPIENTS_AND_AMOUNTS_LENGTH)
        for to, amount in self.each(zip(recipients, amounts, strict=True)):
            self._transfer_gas_coin(source, to, amount)

    @view
    def can_receive_direct_coin_transfers(self, account: address) -> bool:
        """Return whether an account accepts coins that it has not registered; always True on the embedded ledger."""
        return True

    @public
    def assert_account_exists(self, addr: address) -> None:
        """Abort unless an account exists."""
        self.require(self.use(Account).exists_at(addr), self.EACCOUNT_NOT_FOUND)

    def _ensure_account(self, to: str) -> None:
        accounts = self.use(Account)
        if not accounts.exists_at(to):
            accounts.create_account_if_does_not_exist(to)

    def _transfer_gas_coin(self, source: str, to: str, amount: int) -> None:
        """Transfer the gas coin; transfer it as its fungible asset if the feature is on."""
        if self.use(Features).is_enabled(Features.OPERATIONS_DEFAULT_TO_FA_APT_STORE):
            self.use(PrimaryFungibleStore).move(PAIRED_APT, source, to, amount)
        else:
            self._transfer(APTOS_COIN, source, to, amount)

    def _transfer(self, coin_type: TypeArgument, source: signer, to: address, amount: u64) -> None:
        self._ensure_account(to)
        coins = self.use(Coin)
        coins.register(coin_type, to)
        coins.transfer(coin_type, source, to, amount)
