"""The seeded history: a ledger with five thousand versions of ordinary life, and a few events worth finding.

Everything random comes from a hash of the seed, so a seed gives the same ledger on every platform.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from toolkit.embedded.ledger import DEFAULT_ACCOUNTS, OCTAS_PER_APT
from toolkit.embedded.teaching import CheaperVault, Gold, OrderBook, Registry, Trial, Vault
from toolkit.errors import InputError
from toolkit.move import parse_address

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolkit.embedded.ledger import Ledger
    from toolkit.embedded.transaction import CommittedTransaction

__all__ = ["seeded_ledger"]

MIN_VERSIONS = 200
_START = datetime(2026, 1, 1, tzinfo=UTC)
_SPAN = timedelta(days=180)
_VERSIONS_PER_BLOCK = 5
_SHORTEST_BLOCK = 2
_FULL_BOOK = 400
_ALICE, _BOB = parse_address("0xa11ce"), parse_address("0xb0b")
_TRADERS = tuple(parse_address(f"0x7ade{number:x}") for number in range(12))


def seeded_ledger(kind: type[Ledger], *, seed: int, versions: int, window: int | None) -> Ledger:
    """Build the ledger that `Ledger.with_history` returns."""
    if versions < MIN_VERSIONS:
        raise InputError(f"a history needs at least {MIN_VERSIONS} versions to hold its events, got {versions}")
    ledger = kind(
        seed=seed,
        window=window,
        release="v1.38.1",
        accounts=DEFAULT_ACCOUNTS | dict.fromkeys(_TRADERS, 5_000 * OCTAS_PER_APT),
        genesis_time=_START,
        block_time=_SPAN * _VERSIONS_PER_BLOCK / versions,
        epoch_time=_SPAN / 90,
    )
    _Story(ledger, _Draws(seed), versions).tell()
    return ledger


class _Draws:
    """Random numbers by hashing a counter."""

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


@dataclass
class _Story:
    """Commits a history to a ledger, block by block."""

    ledger: Ledger
    draws: _Draws
    versions: int
    names: dict[str, str] = field(default_factory=dict)
    orders: dict[int, str] = field(default_factory=dict)
    owners: list[str] = field(default_factory=list)
    miners: list[str] = field(default_factory=list)
    named: int = 0
    placed: int = 0
    newcomers: int = 0

    def tell(self) -> None:
        """Commit everything, ending exactly at the last version."""
        self._set_up()
        events: list[tuple[float, Callable[[], None]]] = [
            (0.10, self._retract_trial),
            (0.25, lambda: self._change_schedule("v1.41.0", "a release that adds parameters and changes no cost")),
            (0.45, self._upgrade_vault),
            (0.70, lambda: self._change_schedule("v1.41.1", "every cost tenfold")),
            (0.85, self._close_day),
        ]
        for share, event in events:
            self._ordinary_life(until=int(self.versions * share))
            event()
        self._ordinary_life(until=self.versions - 1)

    def _set_up(self) -> None:
        """Publish the contracts and register the first name."""
        for contract in (Registry, Trial, OrderBook, Vault, Gold):
            with self.ledger.block(epilogue=False):
                self._mark(self.ledger.publish(contract), "code", f"{contract.definition.wire_id} published")
        with self.ledger.block():
            for owner, name in ((_ALICE, "alice"), (_BOB, "bob")):
                self._act("0xcafe::registry::register", name, sender=owner)
            self.take_name(_ALICE)
            self.deposit(_ALICE, 20 * OCTAS_PER_APT)

    def _mark(self, done: CommittedTransaction, kind: Literal["schedule", "code", "state"], text: str) -> None:
        self.ledger.mark(done.version, kind, text)

    def _change_schedule(self, release: str, text: str) -> None:
        with self.ledger.block():
            self._mark(self.ledger.set_gas_schedule(release), "schedule", f"gas schedule of {release}: {text}")

    def _retract_trial(self) -> None:
        with self.ledger.block():
            self._mark(self.ledger.retract("0xcafe::trial"), "code", "0xcafe::trial deleted")

    def _upgrade_vault(self) -> None:
        with self.ledger.block():
            done = self.ledger.publish(CheaperVault)
            self._mark(done, "code", "0xfa17::vault upgraded: share_price is cheaper, preview is new")

    def _close_day(self) -> None:
        keep = len(self.orders) // 4
        with self.ledger.block():
            done = self._act("0xb00c::order_book::close_day", keep, sender=parse_address("0xb00c"))
            self._mark(done, "state", f"0xb00c::order_book closed its day: {keep} orders stay")
        for order in list(self.orders)[: len(self.orders) - keep]:
            del self.orders[order]

    def _ordinary_life(self, *, until: int) -> None:
        """Commit blocks of everyday transactions up to version `until`, exactly."""
        # A block is a metadata transaction, some of users, and a checkpoint: it has at least two versions.
        while (left := until - self.ledger.head) >= _SHORTEST_BLOCK:
            users = 1 + self.draws.below(_VERSIONS_PER_BLOCK)
            if left < users + 2 * _SHORTEST_BLOCK:  # what would be left over is too short for a block
                users = left - _SHORTEST_BLOCK
            with self.ledger.block(epilogue=self.ledger.head > self.versions // 10):
                for _ in range(users):
                    self._everyday()

    def _everyday(self) -> None:
        """Commit one transaction of an ordinary kind."""
        act = self.draws.pick(_DECK)
        act(self, self.draws.pick((_ALICE, _BOB, *_TRADERS)))

    # -- what people do ------------------------------------------------------------------------------------

    def _act(self, function: str, *arguments: Any, sender: str) -> CommittedTransaction:
        return self.ledger.commit(function, *arguments, sender=sender)

    def take_name(self, sender: str) -> None:
        """Register a new name."""
        self.named += 1
        name = f"{self.draws.pick(_WORDS)}-{self.named}"
        if self._act("0xcafe::registry::register", name, sender=sender).success:
            self.names[name] = sender

    def take_taken_name(self, sender: str) -> None:
        """Try to register a name that is taken: it aborts."""
        self._act("0xcafe::registry::register", "alice", sender=sender)

    def hand_over_name(self, receiver: str) -> None:
        """Give a name to another account."""
        name = self._some_name()
        self._act("0xcafe::registry::transfer", name, receiver, sender=self.names[name])
        self.names[name] = receiver

    def release_name(self, sender: str) -> None:
        """Give a name back."""
        name = self._some_name()
        self._act("0xcafe::registry::release", name, sender=self.names.pop(name))
        if not self.names:
            self.take_name(sender)

    def _some_name(self) -> str:
        """Return a name that may change hands; alice's and bob's own never do."""
        return str(self.draws.pick(list(self.names)))

    def place(self, sender: str) -> None:
        """Place an order."""
        if len(self.orders) >= _FULL_BOOK:  # in histories of very many versions
            self.cancel(sender)
            return
        is_bid, price = self.draws.below(2) == 0, 900 + self.draws.below(200)
        done = self._act("0xb00c::order_book::place", is_bid, price, 1 + self.draws.below(100), sender=sender)
        if done.success:
            self.placed += 1
            self.orders[self.placed] = sender

    def cancel(self, sender: str) -> None:
        """Cancel an order."""
        if not self.orders:
            self.place(sender)
            return
        order = self.draws.pick(list(self.orders))
        self._act("0xb00c::order_book::cancel", order, sender=self.orders.pop(order))

    def pay(self, sender: str) -> None:
        """Send octas."""
        receiver = self.draws.pick((_ALICE, _BOB, *_TRADERS))
        self._act("0x1::aptos_account::transfer", receiver, 1 + self.draws.below(OCTAS_PER_APT), sender=sender)

    def pay_newcomer(self, sender: str) -> None:
        """Send octas to an address nobody used before."""
        self.newcomers += 1
        receiver = parse_address(f"0x9e3{self.newcomers:04x}")
        self._act("0x1::aptos_account::transfer", receiver, 1 + self.draws.below(OCTAS_PER_APT), sender=sender)

    def pay_too_much(self, sender: str) -> None:
        """Try to send more than anybody has: it aborts."""
        self._act("0x1::aptos_account::transfer", _BOB, 10**18, sender=sender)

    def deposit(self, sender: str, amount: int | None = None) -> None:
        """Put octas into the vault."""
        amount = amount or (1 + self.draws.below(50)) * OCTAS_PER_APT // 10
        if self._act("0xfa17::vault::deposit", amount, sender=sender).success:
            self.owners = sorted({*self.owners, sender})

    def withdraw(self, sender: str) -> None:
        """Take everything out of the vault."""
        if not self.owners:
            self.deposit(sender)
            return
        owner = self.draws.pick(self.owners)
        held = self.ledger.view("0xfa17::vault::balance_of", [owner])[0][0]
        self._act("0xfa17::vault::withdraw", held, sender=owner)
        self.owners.remove(owner)

    def mint_gold(self, receiver: str) -> None:
        """Make new gold."""
        amount = 1 + self.draws.below(5_000)
        self._act("0x901d::gold::mint", receiver, amount, sender=parse_address("0x901d"))
        self.miners = sorted({*self.miners, receiver})

    def give_gold(self, receiver: str) -> None:
        """Move gold from somebody who has some."""
        if not self.miners:
            self.mint_gold(receiver)
            return
        (metadata,), _ = self.ledger.view("0x901d::gold::metadata")
        self.ledger.commit(
            "0x1::primary_fungible_store::transfer",
            metadata,
            receiver,
            1,
            sender=self.draws.pick(self.miners),
            type_arguments=["0x1::fungible_asset::Metadata"],
        )

    def harvest(self, sender: str) -> None:
        """Book a gain of the vault."""
        del sender
        gain = 1 + self.draws.below(OCTAS_PER_APT)
        self._act("0xfa17::vault::harvest", self.draws.below(8), gain, sender=parse_address("0xfa17"))


# What happens, as often as it stands here.
_DECK: tuple[Callable[[_Story, str], None], ...] = (
    *[_Story.take_name] * 28,
    *[_Story.take_taken_name] * 5,
    *[_Story.hand_over_name] * 8,
    *[_Story.release_name] * 6,
    *[_Story.place] * 12,
    *[_Story.cancel] * 4,
    *[_Story.pay] * 16,
    *[_Story.pay_newcomer] * 2,
    *[_Story.pay_too_much] * 3,
    *[_Story.deposit] * 4,
    *[_Story.withdraw] * 2,
    *[_Story.harvest] * 3,
    *[_Story.mint_gold] * 2,
    *[_Story.give_gold] * 3,
)
_WORDS = ("ash", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine", "rowan", "willow")
