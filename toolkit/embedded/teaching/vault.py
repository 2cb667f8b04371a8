"""A vault that invests in strategies; its upgrade answers the same questions from one number it already keeps."""

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
from toolkit.embedded.framework.coin import APTOS_COIN, Coin

__all__ = ["CheaperVault", "Vault"]

STRATEGIES = 8
PRICE_SCALE = 100_000_000


class Vault(Module, address="0xfa17", code_bytes=60_000):
    """Shares of a sum that is spread over strategies."""

    class Strategy(Struct):
        """What is invested in one place, octas."""

        assets: u64

    class Vault(Resource):
        """The vault: strategies by number, shares by owner."""

        strategies: Table[u64, Vault.Strategy]
        owners: Table[address, u64]
        assets: u64
        shares: u64

    class Deposited(Event):
        """Somebody put octas in and got shares."""

        account: address
        amount: u64
        shares: u64

    class Withdrawn(Event):
        """Somebody gave shares back and got octas."""

        account: address
        amount: u64
        shares: u64

    E_TOO_SMALL = invalid_argument(1, "The amount is too small for one share")
    E_NOT_ENOUGH_SHARES = invalid_argument(2, "The account does not have so many shares")
    E_NOT_MANAGER = permission_denied(3, "Only the vault's account may do this")

    def init_module(self, account: signer) -> None:
        """Start with empty strategies."""
        self.use(Coin).register(APTOS_COIN, account)
        self.move_to(account, Vault.Vault(strategies=self.new_table(), owners=self.new_table(), assets=0, shares=0))
        vault = self.borrow(Vault.Vault, account)
        for number in range(STRATEGIES):
            vault.strategies.add(number, Vault.Strategy(assets=0))

    @entry
    def deposit(self, account: signer, amount: u64) -> None:
        """Put octas in; they go to the strategies in turn."""
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
        """Give shares back; the last one deletes the owner's entry."""
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
        """Book what a strategy earned."""
        self.require(account == self.definition.address, self.E_NOT_MANAGER)
        with self.borrow_mut(Vault.Vault, "0xfa17") as vault:
            with vault.strategies.borrow_mut(strategy % STRATEGIES) as place:
                place.assets += gain
            vault.assets += gain

    @view
    def share_price(self) -> u64:
        """Return octas per share, times 10^8, by asking every strategy."""
        vault = self.borrow(Vault.Vault, "0xfa17")
        assets = sum(vault.strategies.borrow(number).assets for number in self.each(range(STRATEGIES)))
        return assets * PRICE_SCALE // vault.shares if vault.shares else PRICE_SCALE

    @view
    def balance_of(self, account: address) -> u64:
        """Return how many shares an account has."""
        return self.borrow(Vault.Vault, "0xfa17").owners.borrow_with_default(account, 0)

    def _shares_for(self, vault: Vault, amount: int) -> int:
        return amount * vault.shares // vault.assets if vault.shares and vault.assets else amount

    def _invest(self, vault: Vault, amount: int) -> None:
        with vault.strategies.borrow_mut(vault.shares % STRATEGIES) as strategy:
            strategy.assets += amount
        vault.assets += amount

    def _divest(self, vault: Vault, amount: int) -> None:
        """Take an amount out of the strategies, first ones first."""
        vault.assets -= amount
        for number in self.each(range(STRATEGIES)):
            with vault.strategies.borrow_mut(number) as strategy:
                taken = min(amount, strategy.assets)
                strategy.assets -= taken
            amount -= taken
            if amount == 0:
                return


class CheaperVault(Vault, revision=2, code_bytes=60_000):
    """The same vault: prices come from the sum it keeps, and deposits can be previewed."""

    @view
    def share_price(self) -> u64:
        """Return octas per share, times 10^8, from the sum of all assets."""
        vault = self.borrow(Vault.Vault, "0xfa17")
        return vault.assets * PRICE_SCALE // vault.shares if vault.shares else PRICE_SCALE

    @view
    def preview(self, amount: u64) -> u64:
        """Return how many shares a deposit would give."""
        return self._shares_for(self.borrow(Vault.Vault, "0xfa17"), amount)
