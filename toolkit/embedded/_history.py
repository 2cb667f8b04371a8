"""The seeded history: everyday transactions, interrupted by a few events that change the gas of views.

The versions of the events depend only on the number of versions; the transactions between them depend on the seed.
Equal arguments give equal ledgers on every platform.

Everyday transactions do not change the gas of the views that courses study, with one exception: each order makes the
order book longer. Orders are therefore spread evenly over the history and never cancelled. The gas of the order book's
views rises in steps and falls only when the book closes its day. A search by bisection finds each of these steps.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from toolkit.embedded import teaching
from toolkit.embedded._chain import Milestone, MilestoneKind
from toolkit.embedded.framework import DEFAULT_ACCOUNTS
from toolkit.embedded.framework._coin import OCTAS_PER_APT, UnflaggedCoin
from toolkit.embedded.framework._configuration import Features
from toolkit.move import parse_address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from toolkit.embedded._ledger import Ledger
    from toolkit.embedded._transaction import CommittedTransaction


CONTRACTS = (
    *(teaching.CheaperPriceFeed, teaching.CheaperVault, teaching.Desk, teaching.Gold, teaching.OrderBook),
    *(teaching.PriceFeed, teaching.Registry, teaching.Trial, teaching.Vault),
)
"""The contracts that a history publishes."""

MIN_VERSIONS = 200
"""Minimum number of versions in a history."""

START = datetime(2026, 1, 1, tzinfo=UTC)
SPAN = timedelta(days=180)
EPOCH_TIME = SPAN / 90
FIRST_RELEASE = "v1.38.1"
VERSIONS_PER_BLOCK = 5
_MIN_BLOCK_VERSIONS = 2  # block metadata and a checkpoint

ALICE, BOB = parse_address("0xa11ce"), parse_address("0xb0b")
TRADERS = tuple(parse_address(f"0x7ade{number:x}") for number in range(12))
_PEOPLE = (ALICE, BOB, *TRADERS)
_MIGRANTS = TRADERS[6:]
ACCOUNTS = DEFAULT_ACCOUNTS | dict.fromkeys(TRADERS, 5_000 * OCTAS_PER_APT)
_MAX_ORDERS = 320
_MIN_VERSIONS_PER_ORDER = 16  # leaves room for other transactions in a short history
_REMAINING_SHARE = 4  # one order of this many remains when the book closes its day
_WORDS = ("ash", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine", "rowan", "willow")


class _RandomNumbers:
    """Random numbers from hashes of a counter, the same on every platform.

    Parameters
    ----------
    seed : int
    """

    def __init__(self, seed: int) -> None:
        self._key = seed.to_bytes(16, "little", signed=True)
        self._count = 0

    def below(self, bound: int) -> int:
        """Return an integer from 0 to ``bound - 1``."""
        self._count += 1
        digest = hashlib.blake2b(self._count.to_bytes(8, "little"), key=self._key, digest_size=8).digest()
        return int.from_bytes(digest, "little") % bound

    def pick(self, choices: Sequence[Any]) -> Any:
        """Return one of the choices."""
        return choices[self.below(len(choices))]


class History:
    """Commits a history to a ledger: the events, and the everyday transactions between them.

    Parameters
    ----------
    ledger : Ledger
        A new `Ledger`.
    seed : int
        Determines the transactions between the events.
    versions : int
        Number of versions in the whole history.
    """

    def __init__(self, ledger: Ledger, seed: int, versions: int) -> None:
        self._ledger = ledger
        self._random = _RandomNumbers(seed)
        self._versions = versions
        self._names: list[tuple[str, str]] = []  # (name, owner), in arbitrary order
        self._named = self._newcomers = self._placed = self._open_orders = 0
        self._depositors: list[str] = []
        self._miners: list[str] = []

    def commit(self) -> None:
        """Commit the whole history."""
        self._publish_contracts()
        for share, kind, text, event in self._events():
            self._everyday_blocks(until=int(self._versions * share))
            with self._ledger.block():
                self._mark(event(), kind, text.format(self._open_orders))
        self._everyday_blocks(until=self._versions - 1)

    # -- events --------------------------------------------------------------------------------------------

    def _events(self) -> Iterator[tuple[float, MilestoneKind, str, Callable[[], CommittedTransaction]]]:
        """Yield the share of versions before each event, and the event's kind, text and transaction."""
        ledger, code, schedule = self._ledger, MilestoneKind.CODE, MilestoneKind.SCHEDULE
        trial = partial(ledger.commit, "0x1::code::retract_module", parse_address("0xcafe"), "trial", sender="0x1")
        yield 0.10, code, "0xcafe::trial deleted", trial
        text = "gas schedule of v1.41.0: a release that adds parameters and changes no costs"
        yield 0.25, schedule, text, lambda: ledger.set_gas_schedule("v1.41.0")
        feature = Features.COIN_TO_FUNGIBLE_ASSET
        text = f"feature {feature} on: 0x1::coin also counts the fungible asset paired with a coin"
        yield 0.35, MilestoneKind.CONFIG, text, lambda: ledger.set_features(enable=[feature])
        text = "0xfa17::vault upgraded: share_price is cheaper, preview is new"
        yield 0.45, code, text, lambda: ledger.publish(teaching.CheaperVault)
        text = "0xfeed::price_feed upgraded: price is cheaper, and so is 0xde5c::desk::quote, which calls it"
        yield 0.58, code, text, lambda: ledger.publish(teaching.CheaperPriceFeed)
        text = "gas schedule of v1.41.1: all costs rise tenfold"
        yield 0.70, schedule, text, lambda: ledger.set_gas_schedule("v1.41.1")
        yield 0.85, MilestoneKind.STATE, "0xb00c::order_book closed its day: {} orders remain", self._close_day
        text = (
            "one governance script: 0x1::coin upgraded to stop checking a feature flag, and gas schedule of v1.45.1, "
            "which adds parameters and changes no costs"
        )
        yield 0.93, MilestoneKind.MIXED, text, lambda: ledger.govern(UnflaggedCoin, schedule="v1.45.1")

    def _close_day(self) -> CommittedTransaction:
        """Drop the oldest orders of the book."""
        self._open_orders //= _REMAINING_SHARE
        return self._ledger.commit("0xb00c::order_book::close_day", self._open_orders, sender=parse_address("0xb00c"))

    def _mark(self, done: CommittedTransaction, kind: MilestoneKind, text: str) -> None:
        """Add a milestone to the ledger."""
        self._ledger.chain.milestones.append(Milestone(done.version, kind, text))

    def _publish_contracts(self) -> None:
        """Publish the contracts and register the first names."""
        first = (teaching.Registry, teaching.Trial, teaching.OrderBook, teaching.Vault, teaching.Gold)
        for contract in (*first, teaching.PriceFeed, teaching.Desk):
            with self._ledger.block(epilogue=False):
                text = f"{contract.definition.wire_id} published"
                self._mark(self._ledger.publish(contract), MilestoneKind.CODE, text)
        with self._ledger.block():
            for owner, name in ((ALICE, "alice"), (BOB, "bob")):
                done = self._ledger.commit("0xcafe::registry::register", name, sender=owner)
                self._mark(done, MilestoneKind.STATE, f"0xcafe::registry: {name} registered")
            self._register_name(ALICE)
            self._deposit(ALICE, 20 * OCTAS_PER_APT)

    def _everyday_blocks(self, *, until: int) -> None:
        """Commit blocks of everyday transactions so that the head is exactly `until`."""
        while (left := until - self._ledger.head) >= _MIN_BLOCK_VERSIONS:
            users = 1 + self._random.below(VERSIONS_PER_BLOCK)
            if left < users + 2 * _MIN_BLOCK_VERSIONS:  # the rest would be too short for another block
                users = left - _MIN_BLOCK_VERSIONS
            with self._ledger.block(epilogue=self._ledger.head > self._versions // 10):
                for _ in range(users):
                    self._act()

    def _act(self) -> None:
        """Commit one transaction: an order if one is due, otherwise a random activity."""
        who = self._random.pick(_PEOPLE)
        orders = min(_MAX_ORDERS, self._versions // _MIN_VERSIONS_PER_ORDER)
        if self._placed < orders * self._ledger.head // self._versions:
            self._place(who)
        else:
            self._random.pick(self._ACTIVITIES)(self, who)

    # -- names ---------------------------------------------------------------------------------------------

    def _register_name(self, sender: str) -> None:
        """Register a new name."""
        self._named += 1
        name = f"{self._random.pick(_WORDS)}-{self._named}"
        if self._ledger.commit("0xcafe::registry::register", name, sender=sender).success:
            self._names.append((name, sender))

    def _register_taken_name(self, sender: str) -> None:
        """Try to register a name that is taken; the transaction aborts."""
        self._ledger.commit("0xcafe::registry::register", "alice", sender=sender)

    def _transfer_name(self, receiver: str) -> None:
        """Transfer a name to another account; the names alice and bob are never transferred."""
        index = self._random.below(len(self._names))
        name, owner = self._names[index]
        self._ledger.commit("0xcafe::registry::transfer", name, receiver, sender=owner)
        self._names[index] = (name, receiver)

    def _release_name(self, sender: str) -> None:
        """Release a name."""
        index = self._random.below(len(self._names))
        (name, owner), self._names[index] = self._names[index], self._names[-1]
        self._names.pop()
        self._ledger.commit("0xcafe::registry::release", name, sender=owner)
        if not self._names:
            self._register_name(sender)

    # -- orders --------------------------------------------------------------------------------------------

    def _place(self, sender: str) -> None:
        """Place an order."""
        self._placed += 1
        self._open_orders += 1
        is_bid, price = self._random.below(2) == 0, 900 + self._random.below(200)
        self._ledger.commit("0xb00c::order_book::place", is_bid, price, 1 + self._random.below(100), sender=sender)

    def _cancel_unknown_order(self, sender: str) -> None:
        """Try to cancel an order that does not exist; the transaction aborts."""
        self._ledger.commit("0xb00c::order_book::cancel", self._placed + 1, sender=sender)

    # -- octas ---------------------------------------------------------------------------------------------

    def _pay(self, sender: str, receiver: str | None = None, octas: int | None = None) -> None:
        """Send octas."""
        receiver = receiver or self._random.pick(_PEOPLE)
        octas = octas or 1 + self._random.below(OCTAS_PER_APT)
        self._ledger.commit("0x1::aptos_account::transfer", receiver, octas, sender=sender)

    def _pay_newcomer(self, sender: str) -> None:
        """Send octas to a new address."""
        self._newcomers += 1
        self._pay(sender, parse_address(f"0x9e3{self._newcomers:04x}"))

    def _pay_too_much(self, sender: str) -> None:
        """Try to send more than any account has; the transaction aborts."""
        self._pay(sender, BOB, 10**18)

    def _migrate(self, sender: str) -> None:
        """Convert a trader's coins into the paired fungible asset; the transaction aborts before the feature is on."""
        if sender not in _MIGRANTS:
            self._pay(sender)
            return
        coin = ["0x1::aptos_coin::AptosCoin"]
        self._ledger.commit("0x1::coin::migrate_to_fungible_store", sender=sender, type_arguments=coin)

    # -- the vault, gold and its price ---------------------------------------------------------------------

    def _deposit(self, sender: str, amount: int | None = None) -> None:
        """Deposit octas in the vault."""
        amount = amount or (1 + self._random.below(50)) * OCTAS_PER_APT // 10
        if self._ledger.commit("0xfa17::vault::deposit", amount, sender=sender).success:
            self._depositors = sorted({*self._depositors, sender})

    def _withdraw(self, sender: str) -> None:
        """Withdraw all shares of one depositor."""
        if not self._depositors:
            self._deposit(sender)
            return
        owner = self._random.pick(self._depositors)
        held = self._ledger.view("0xfa17::vault::balance_of", [owner])[0][0]
        self._ledger.commit("0xfa17::vault::withdraw", held, sender=owner)
        self._depositors.remove(owner)

    def _harvest(self, _: str) -> None:
        """Record a small gain of the vault; its account must be able to pay the gain out."""
        gain = 1 + self._random.below(OCTAS_PER_APT // 100)
        self._ledger.commit("0xfa17::vault::harvest", self._random.below(8), gain, sender=parse_address("0xfa17"))

    def _mint_gold(self, receiver: str) -> None:
        """Mint gold."""
        amount = 1 + self._random.below(5_000)
        self._ledger.commit("0x901d::gold::mint", receiver, amount, sender=parse_address("0x901d"))
        self._miners = sorted({*self._miners, receiver})

    def _give_gold(self, receiver: str) -> None:
        """Transfer gold from an account that holds some."""
        if not self._miners:
            self._mint_gold(receiver)
            return
        (metadata,), _ = self._ledger.view("0x901d::gold::metadata")
        owner, kinds = self._random.pick(self._miners), ["0x1::fungible_asset::Metadata"]
        transfer = "0x1::primary_fungible_store::transfer"
        self._ledger.commit(transfer, metadata, receiver, 1, sender=owner, type_arguments=kinds)

    def _report_price(self, _: str) -> None:
        """Report a price of gold."""
        price = 900 + self._random.below(200)
        self._ledger.commit("0xfeed::price_feed::report", self._random.below(5), price, sender=parse_address("0xfeed"))

    # Each activity occurs as often as its weight.
    _ACTIVITIES: ClassVar[tuple[Callable[[History, str], None], ...]] = (
        *[_register_name] * 28,
        *[_register_taken_name] * 5,
        *[_transfer_name] * 8,
        *[_release_name] * 6,
        *[_cancel_unknown_order] * 2,
        *[_pay] * 19,
        *[_migrate] * 1,
        *[_pay_newcomer] * 2,
        *[_pay_too_much] * 3,
        *[_deposit] * 4,
        *[_withdraw] * 2,
        *[_harvest] * 3,
        *[_mint_gold] * 2,
        *[_give_gold] * 3,
        *[_report_price] * 4,
    )
