"""``0x1::aptos_account``: transfers that create the receiving account if necessary."""

from __future__ import annotations

from toolkit.embedded import (
    Module,
    Object,
    TypeArgument,
    address,
    entry,
    invalid_argument,
    not_found,
    public,
    signer,
    u64,
    vector,
    view,
)
from toolkit.embedded.framework._account import Account
from toolkit.embedded.framework._coin import APTOS_COIN, Coin
from toolkit.embedded.framework._fungible_asset import METADATA, FungibleAsset, PrimaryFungibleStore

__all__ = ["AptosAccount"]


class AptosAccount(Module, address="0x1"):
    """Creation of accounts and transfers to them."""

    EACCOUNT_NOT_FOUND = not_found(1, "Account does not exist.")
    EMISMATCHING_RECIPIENTS_AND_AMOUNTS_LENGTH = invalid_argument(
        5, "The lengths of the recipients and amounts lists don't match."
    )

    @entry
    def create_account(self, auth_key: address) -> None:
        """Create an account with a store of the gas coin."""
        self.use(Account).create_account(auth_key)
        self.use(Coin).register(APTOS_COIN, auth_key)

    @entry
    def transfer(self, source: signer, to: address, amount: u64) -> None:
        """Transfer the gas coin; create the receiving account if it does not exist."""
        self._transfer(APTOS_COIN, source, to, amount)

    @entry
    def transfer_coins(self, coin_type: TypeArgument, source: signer, to: address, amount: u64) -> None:
        """Transfer a coin; create the receiving account if it does not exist."""
        self._transfer(coin_type, source, to, amount)

    @entry
    def transfer_fungible_assets(
        self, source: signer, metadata: Object[FungibleAsset.Metadata], to: address, amount: u64
    ) -> None:
        """Transfer a fungible asset; create the receiving account if it does not exist."""
        self.use(Account).create_account_if_does_not_exist(to)
        self.use(PrimaryFungibleStore).transfer(METADATA, source, metadata, to, amount)

    @entry
    def batch_transfer(self, source: signer, recipients: vector[address], amounts: vector[u64]) -> None:
        """Transfer the gas coin to several accounts."""
        self.require(len(recipients) == len(amounts), self.EMISMATCHING_RECIPIENTS_AND_AMOUNTS_LENGTH)
        for to, amount in self.each(zip(recipients, amounts, strict=True)):
            self._transfer(APTOS_COIN, source, to, amount)

    @view
    def can_receive_direct_coin_transfers(self, account: address) -> bool:
        """Return whether an account accepts coins that it has not registered; always True on the embedded ledger."""
        del account
        return True

    @public
    def assert_account_exists(self, addr: address) -> None:
        """Abort unless an account exists."""
        self.require(self.use(Account).exists_at(addr), self.EACCOUNT_NOT_FOUND)

    def _transfer(self, coin_type: TypeArgument, source: signer, to: address, amount: u64) -> None:
        self.use(Account).create_account_if_does_not_exist(to)
        coins = self.use(Coin)
        coins.register(coin_type, to)
        coins.transfer(coin_type, source, to, amount)
