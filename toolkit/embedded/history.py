"""The seeded history: a ledger with five thousand versions of ordinary life, and a few events worth finding.

What moves the gas of a view here happens at versions that follow from the number of versions alone; what people
do between (`toolkit.embedded.everyday`) follows from the seed. The same seed gives the same ledger on every platform.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from toolkit.embedded.everyday import ALICE, BOB, TRADERS, Draws, Everyday
from toolkit.embedded.framework.coin import UnflaggedCoin
from toolkit.embedded.framework.configuration import COIN_TO_FUNGIBLE_ASSET
from toolkit.embedded.ledger import DEFAULT_ACCOUNTS, OCTAS_PER_APT
from toolkit.embedded.teaching import (
    CheaperPriceFeed,
    CheaperVault,
    Desk,
    Gold,
    OrderBook,
    PriceFeed,
    Registry,
    Trial,
    Vault,
)
from toolkit.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.embedded.ledger import Ledger
    from toolkit.embedded.milestones import MilestoneKind
    from toolkit.embedded.transaction import CommittedTransaction

__all__ = ["seeded_ledger"]

MIN_VERSIONS = 200
_START = datetime(2026, 1, 1, tzinfo=UTC)
_SPAN = timedelta(days=180)
_VERSIONS_PER_BLOCK = 5
_SHORTEST_BLOCK = 2


def seeded_ledger(kind: type[Ledger], *, seed: int, versions: int, window: int | None) -> Ledger:
    """Build the ledger that `Ledger.with_history` returns."""
    if versions < MIN_VERSIONS:
        raise InputError(f"a history needs at least {MIN_VERSIONS} versions to hold its events, got {versions}")
    ledger = kind(
        seed=seed,
        window=window,
        release="v1.38.1",
        features=(),
        accounts=DEFAULT_ACCOUNTS | dict.fromkeys(TRADERS, 5_000 * OCTAS_PER_APT),
        genesis_time=_START,
        block_time=_SPAN * _VERSIONS_PER_BLOCK / versions,
        epoch_time=_SPAN / 90,
    )
    _Story(ledger, seed, versions).tell()
    return ledger


class _Story:
    """Commits a history to a ledger, block by block."""

    def __init__(self, ledger: Ledger, seed: int, versions: int) -> None:
        self.ledger = ledger
        self.versions = versions
        self.draws = Draws(seed)
        self.life = Everyday(ledger, self.draws, versions)

    def tell(self) -> None:
        """Commit everything, ending exactly at the last version."""
        self._set_up()
        events: list[tuple[float, Callable[[], None]]] = [
            (0.10, self._retract_trial),
            (0.25, self._adopt_release),
            (0.35, self._pair_coins),
            (0.45, self._upgrade_vault),
            (0.58, self._upgrade_feed),
            (0.70, self._raise_costs),
            (0.85, self._close_day),
            (0.93, self._upgrade_framework),
        ]
        for share, event in events:
            self._ordinary_life(until=int(self.versions * share))
            with self.ledger.block():
                event()
        self._ordinary_life(until=self.versions - 1)

    def _set_up(self) -> None:
        """Publish the contracts and register the first names."""
        for contract in (Registry, Trial, OrderBook, Vault, Gold, PriceFeed, Desk):
            with self.ledger.block(epilogue=False):
                self._mark(self.ledger.publish(contract), "code", f"{contract.definition.wire_id} published")
        with self.ledger.block():
            for owner, name in ((ALICE, "alice"), (BOB, "bob")):
                done = self.ledger.commit("0xcafe::registry::register", name, sender=owner)
                self._mark(done, "state", f"0xcafe::registry: {name} registered")
            self.life.take_name(ALICE)
            self.life.deposit(ALICE, 20 * OCTAS_PER_APT)

    # -- the events, each in a block of its own, in one transaction -------------------------------------------

    def _mark(self, done: CommittedTransaction, kind: MilestoneKind, text: str) -> None:
        self.ledger.mark(done.version, kind, text)

    def _retract_trial(self) -> None:
        self._mark(self.ledger.retract("0xcafe::trial"), "code", "0xcafe::trial deleted")

    def _adopt_release(self) -> None:
        text = "gas schedule of v1.41.0: a release that adds parameters and changes no cost"
        self._mark(self.ledger.set_gas_schedule("v1.41.0"), "schedule", text)

    def _pair_coins(self) -> None:
        text = f"feature {COIN_TO_FUNGIBLE_ASSET} on: 0x1::coin counts the fungible asset paired with a coin too"
        self._mark(self.ledger.set_features(enable=[COIN_TO_FUNGIBLE_ASSET]), "config", text)

    def _upgrade_vault(self) -> None:
        text = "0xfa17::vault upgraded: share_price is cheaper, preview is new"
        self._mark(self.ledger.publish(CheaperVault), "code", text)

    def _upgrade_feed(self) -> None:
        text = "0xfeed::price_feed upgraded: price is cheaper, and so is 0xde5c::desk::quote, which calls it"
        self._mark(self.ledger.publish(CheaperPriceFeed), "code", text)

    def _raise_costs(self) -> None:
        text = "gas schedule of v1.41.1: every cost tenfold"
        self._mark(self.ledger.set_gas_schedule("v1.41.1"), "schedule", text)

    def _close_day(self) -> None:
        done, stay = self.life.close_day()
        self._mark(done, "state", f"0xb00c::order_book closed its day: {stay} orders stay")

    def _upgrade_framework(self) -> None:
        text = (
            "one governance script: 0x1::coin upgraded to ask no feature flag any more, and gas schedule of v1.45.1, "
            "which adds parameters and changes no cost"
        )
        self._mark(self.ledger.govern(UnflaggedCoin, schedule="v1.45.1"), "mixed", text)

    def _ordinary_life(self, *, until: int) -> None:
        """Commit blocks of everyday transactions up to version `until`, exactly."""
        # A block is a metadata transaction, some of users, and a checkpoint: it has at least two versions.
        while (left := until - self.ledger.head) >= _SHORTEST_BLOCK:
            users = 1 + self.draws.below(_VERSIONS_PER_BLOCK)
            if left < users + 2 * _SHORTEST_BLOCK:  # what would be left over is too short for a block
                users = left - _SHORTEST_BLOCK
            with self.ledger.block(epilogue=self.ledger.head > self.versions // 10):
                for _ in range(users):
                    self.life.act()
