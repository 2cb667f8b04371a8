"""A vault that invests in strategies, and an upgrade whose views read one stored total instead of every strategy."""

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
from toolkit.embedded.framework._coin import APTOS_COIN, Coin

__all__ = ["CheaperVault", "Vault"]

STRATEGIES = 8
PRICE_SCALE = 100_000_000


class Vault(Module, address="0xfa17", code_bytes=60_000):
    """Shares of assets that are invested in several strategies."""

    class Strategy(Struct):
        """The assets of one strategy, octas."""

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
        vault = self.borrow(Vault.Vault, account)
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
        """Redeem shares; an owner without shares is deleted."""
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
        self.use(Coin).transfer(APTOS_COIN, "0xfa17", account, amount)
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
        """Return octas per share, times 10^8, computed from every strategy."""
        vault = self.borrow(Vault.Vault, "0xfa17")
        assets = sum(vault.strategies.borrow(number).assets for number in self.each(range(STRATEGIES)))
        return assets * PRICE_SCALE // vault.shares if vault.shares else PRICE_SCALE

    @view
    def balance_of(self, account: address) -> u64:
        """Return the number of shares of an account."""
        return self.borrow(Vault.Vault, "0xfa17").owners.borrow_with_default(account, 0)

    def _shares_for(self, vault: Vault, amount: int) -> int:
        return amount * vault.shares // vault.assets if vault.shares and vault.assets else amount

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
        return vault.assets * PRICE_SCALE // vault.shares if vault.shares else PRICE_SCALE

    @view
    def preview(self, amount: u64) -> u64:
        """Return the number of shares for a deposit."""
        return self._shares_for(self.borrow(Vault.Vault, "0xfa17"), amount)
