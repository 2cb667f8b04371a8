"""The seeded history: a ledger with five thousand versions of ordinary life, and a few events worth finding.

What moves the gas of a view here happens at versions that follow from the number of versions alone; what people
do between (`toolkit.embedded.history`) follows from the seed. The same seed gives the same ledger on every platform.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from toolkit.embedded.framework import DEFAULT_ACCOUNTS
from toolkit.embedded.framework.coin import OCTAS_PER_APT, UnflaggedCoin
from toolkit.embedded.framework.configuration import COIN_TO_FUNGIBLE_ASSET
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
from toolkit.move import parse_address

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolkit.embedded.ledger import Ledger
    from toolkit.embedded.reader import MilestoneKind
    from toolkit.embedded.transaction import CommittedTransaction

__all__ = ["ALICE", "BOB", "TRADERS", "Draws", "Everyday", "seeded_ledger"]

ALICE, BOB = parse_address("0xa11ce"), parse_address("0xb0b")
TRADERS = tuple(parse_address(f"0x7ade{number:x}") for number in range(12))
_PEOPLE = (ALICE, BOB, *TRADERS)
_MIGRANTS = TRADERS[6:]
_MOST_ORDERS = 320
_VERSIONS_PER_ORDER = 16  # at least, so that a short history has time for other things
_STAY = 4  # one order in so many stays when the book closes its day
_WORDS = ("ash", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine", "rowan", "willow")


class Draws:
    """Random numbers by hashing a counter: the same on every platform.

    Parameters
    ----------
    seed : int
    """

    def __init__(self, seed: int) -> None:
        self._key = seed.to_bytes(16, "little", signed=True)
        self._count = 0

    def below(self, bound: int) -> int:
        """Return a number from 0 to ``bound - 1``."""
        self._count += 1
        digest = hashlib.blake2b(self._count.to_bytes(8, "little"), key=self._key, digest_size=8).digest()
        return int.from_bytes(digest, "little") % bound

    def pick(self, choices: Sequence[Any]) -> Any:
        """Return one of the choices."""
        return choices[self.below(len(choices))]


class Everyday:
    """Commits one transaction of ordinary life at a time.

    Parameters
    ----------
    ledger : Ledger
        With the teaching contracts published.
    draws : Draws
        Decide what happens.
    versions : int
        Length of the whole history.
    """

    def __init__(self, ledger: Ledger, draws: Draws, versions: int) -> None:
        self._ledger = ledger
        self._draws = draws
        self._versions = versions
        self._names: list[tuple[str, str]] = []  # name and owner, in no order that matters
        self._named = self._newcomers = self._placed = self._dropped = 0
        self._depositors: list[str] = []
        self._miners: list[str] = []

    def act(self) -> None:
        """Commit one transaction: an order where one is due, else something drawn from the deck."""
        who = self._draws.pick(_PEOPLE)
        if self._placed < self._orders_due():
            self._place(who)
        else:
            self._draws.pick(self._DECK)(self, who)

    def close_day(self) -> tuple[CommittedTransaction, int]:
        """Let the order book drop its oldest orders; return the transaction and how many orders stay."""
        stay = (self._placed - self._dropped) // _STAY
        self._dropped = self._placed - stay
        return self._do("0xb00c::order_book::close_day", stay, sender=parse_address("0xb00c")), stay

    # -- names ---------------------------------------------------------------------------------------------

    def take_name(self, sender: str) -> None:
        """Register a new name."""
        self._named += 1
        name = f"{self._draws.pick(_WORDS)}-{self._named}"
        if self._do("0xcafe::registry::register", name, sender=sender).success:
            self._names.append((name, sender))

    def _take_taken_name(self, sender: str) -> None:
        """Try to register a name that is taken: it aborts."""
        self._do("0xcafe::registry::register", "alice", sender=sender)

    def _hand_over_name(self, receiver: str) -> None:
        """Give a name to another account; alice's and bob's own never change hands."""
        index = self._draws.below(len(self._names))
        name, owner = self._names[index]
        self._do("0xcafe::registry::transfer", name, receiver, sender=owner)
        self._names[index] = (name, receiver)

    def _release_name(self, sender: str) -> None:
        """Give a name back."""
        index = self._draws.below(len(self._names))
        (name, owner), self._names[index] = self._names[index], self._names[-1]
        self._names.pop()
        self._do("0xcafe::registry::release", name, sender=owner)
        if not self._names:
            self.take_name(sender)

    # -- orders --------------------------------------------------------------------------------------------

    def _orders_due(self) -> int:
        """Return how many orders should have been placed by now."""
        most = min(_MOST_ORDERS, self._versions // _VERSIONS_PER_ORDER)
        return most * self._ledger.head // self._versions

    def _place(self, sender: str) -> None:
        """Place an order."""
        self._placed += 1
        is_bid, price = self._draws.below(2) == 0, 900 + self._draws.below(200)
        self._do("0xb00c::order_book::place", is_bid, price, 1 + self._draws.below(100), sender=sender)

    def _cancel_nothing(self, sender: str) -> None:
        """Try to cancel an order that was never placed: it aborts."""
        self._do("0xb00c::order_book::cancel", self._placed + 1, sender=sender)

    # -- octas ---------------------------------------------------------------------------------------------

    def _pay(self, sender: str) -> None:
        """Send octas."""
        receiver = self._draws.pick(_PEOPLE)
        self._do("0x1::aptos_account::transfer", receiver, 1 + self._draws.below(OCTAS_PER_APT), sender=sender)

    def _pay_newcomer(self, sender: str) -> None:
        """Send octas to an address nobody used before."""
        self._newcomers += 1
        receiver = parse_address(f"0x9e3{self._newcomers:04x}")
        self._do("0x1::aptos_account::transfer", receiver, 1 + self._draws.below(OCTAS_PER_APT), sender=sender)

    def _pay_too_much(self, sender: str) -> None:
        """Try to send more than anybody has: it aborts."""
        self._do("0x1::aptos_account::transfer", BOB, 10**18, sender=sender)

    def _migrate(self, sender: str) -> None:
        """Turn coins into the paired fungible asset: some of the traders do, once it is there; before, it aborts."""
        if sender not in _MIGRANTS:
            self._pay(sender)
            return
        self._ledger.commit(
            "0x1::coin::migrate_to_fungible_store", sender=sender, type_arguments=["0x1::aptos_coin::AptosCoin"]
        )

    # -- the vault, gold and its price -----------------------------------------------------------------------

    def deposit(self, sender: str, amount: int | None = None) -> None:
        """Put octas into the vault."""
        amount = amount or (1 + self._draws.below(50)) * OCTAS_PER_APT // 10
        if self._do("0xfa17::vault::deposit", amount, sender=sender).success:
            self._depositors = sorted({*self._depositors, sender})

    def _withdraw(self, sender: str) -> None:
        """Take everything out of the vault."""
        if not self._depositors:
            self.deposit(sender)
            return
        owner = self._draws.pick(self._depositors)
        held = self._ledger.view("0xfa17::vault::balance_of", [owner])[0][0]
        self._do("0xfa17::vault::withdraw", held, sender=owner)
        self._depositors.remove(owner)

    def _harvest(self, sender: str) -> None:
        """Book a gain of the vault: a small one, as its account has to pay it out one day."""
        del sender
        gain = 1 + self._draws.below(OCTAS_PER_APT // 100)
        self._do("0xfa17::vault::harvest", self._draws.below(8), gain, sender=parse_address("0xfa17"))

    def _mint_gold(self, receiver: str) -> None:
        """Make new gold."""
        amount = 1 + self._draws.below(5_000)
        self._do("0x901d::gold::mint", receiver, amount, sender=parse_address("0x901d"))
        self._miners = sorted({*self._miners, receiver})

    def _give_gold(self, receiver: str) -> None:
        """Move gold from somebody who has some."""
        if not self._miners:
            self._mint_gold(receiver)
            return
        (metadata,), _ = self._ledger.view("0x901d::gold::metadata")
        self._ledger.commit(
            "0x1::primary_fungible_store::transfer",
            metadata,
            receiver,
            1,
            sender=self._draws.pick(self._miners),
            type_arguments=["0x1::fungible_asset::Metadata"],
        )

    def _report_price(self, sender: str) -> None:
        """Name a price of gold."""
        del sender
        price = 900 + self._draws.below(200)
        self._do("0xfeed::price_feed::report", self._draws.below(5), price, sender=parse_address("0xfeed"))

    def _do(self, function: str, *arguments: Any, sender: str) -> CommittedTransaction:
        return self._ledger.commit(function, *arguments, sender=sender)

    # What happens, as often as it stands here.
    _DECK: ClassVar[tuple[Callable[[Everyday, str], None], ...]] = (
        *[take_name] * 28,
        *[_take_taken_name] * 5,
        *[_hand_over_name] * 8,
        *[_release_name] * 6,
        *[_cancel_nothing] * 2,
        *[_pay] * 19,
        *[_migrate] * 1,
        *[_pay_newcomer] * 2,
        *[_pay_too_much] * 3,
        *[deposit] * 4,
        *[_withdraw] * 2,
        *[_harvest] * 3,
        *[_mint_gold] * 2,
        *[_give_gold] * 3,
        *[_report_price] * 4,
    )


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
