"""``0x1::aptos_coin``: the coin that gas is paid with; 1 APT is 10^8 octas."""

from __future__ import annotations

from toolkit.embedded.contract import Module, Struct, address, entry, permission_denied, signer, u64
from toolkit.embedded.framework.account import Account
from toolkit.embedded.framework.coin import Coin
from toolkit.move import StructTag, parse_address

__all__ = ["APTOS_COIN", "CORE_RESOURCES", "AptosCoin"]

APTOS_COIN = StructTag("0x1", "aptos_coin", "AptosCoin")

#: The account that may mint on a test network.
CORE_RESOURCES = parse_address("0xa550c18")


class AptosCoin(Module, address="0x1"):
    """The gas coin."""

    class AptosCoin(Struct, abilities="key"):
        """Stands for the coin; no value of it is ever made."""

    ENO_CAPABILITIES = permission_denied(1, "Account does not have mint capability")

    @entry
    def mint(self, account: signer, dst_addr: address, amount: u64) -> None:
        """Mint coins to an account, made on the way if it does not exist; for the core resources account only."""
        self.require(account == CORE_RESOURCES, self.ENO_CAPABILITIES)
        self.use(Account).create_account_if_does_not_exist(dst_addr)
        coins = self.use(Coin)
        coins.register(APTOS_COIN, dst_addr)
        coins.deposit(APTOS_COIN, dst_addr, coins.mint(APTOS_COIN, amount))
