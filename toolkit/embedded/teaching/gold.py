"""A fungible asset: gold, minted by whoever published it, moved by everybody."""

from __future__ import annotations

from toolkit.embedded.contract import (
    Module,
    Resource,
    address,
    entry,
    permission_denied,
    signer,
    u64,
    view,
)
from toolkit.embedded.framework.fungible_asset import FungibleAsset, PrimaryFungibleStore

__all__ = ["Gold"]


class Gold(Module, address="0x901d"):
    """Gold."""

    class Mine(Resource):
        """Where the asset is."""

        metadata: address

    E_NOT_MINER = permission_denied(1, "Only the mine's account may mint")

    def init_module(self, account: signer) -> None:
        """Make the asset."""
        metadata = self.use(FungibleAsset).create(account, "GOLD", "Gold", 3)
        self.move_to(account, Gold.Mine(metadata=metadata))

    @entry
    def mint(self, account: signer, to: address, amount: u64) -> None:
        """Make new gold."""
        self.require(account == self.definition.address, self.E_NOT_MINER)
        self.use(PrimaryFungibleStore).mint(self.metadata(), to, amount)

    @view
    def metadata(self) -> address:
        """Return the address of the asset's metadata object."""
        return self.borrow(Gold.Mine, "0x901d").metadata
