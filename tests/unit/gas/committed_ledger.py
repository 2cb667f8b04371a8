"""An embedded ledger whose entry functions are upgraded, whose schedule changes, whose state grows and whose mix shifts."""

from __future__ import annotations

from dataclasses import dataclass

from toolkit import embedded
from toolkit.embedded import Module, Resource, Table, entry, signer, u64
from toolkit.embedded._meter import Schedule, released_schedule

__all__ = ["HOME", "Story", "short_case", "story"]

HOME = "0x5b0b"


class Shop(Module, address=HOME, name="shop", code_bytes=4_000):
    """Entry functions of every kind: light, growing with state, creating slots, aborting."""

    class Till(Resource):
        """What has been sold, and the names of buyers."""

        sold: u64
        names: Table[u64, u64]

    TURNS = 90

    def init_module(self, account: signer) -> None:
        self.move_to(account, Shop.Till(sold=0, names=self.new_table()))

    @entry
    def sell(self, account: signer, amount: u64) -> None:
        """Do a fixed amount of work; abort if the amount is 0."""
        self.charge("instr.call.base", 110)
        self.require(amount > 0, 7)
        self.charge("instr.call.base", self.TURNS)

    @entry
    def note(self, account: signer, key: u64) -> None:
        """Write a name; a new one creates a slot, and the work grows with the number of names."""
        with self.borrow_mut(Shop.Till, HOME) as till:
            till.sold += 1
            self.charge("instr.call.base", 4_000 + 20 * till.sold)
            if till.names.contains(key):
                till.names.remove(key)
            till.names.add(key, key)


class DearShop(Shop, revision=2, name="shop", code_bytes=4_000):
    """The upgrade: selling takes ninety times the turns."""

    TURNS = 8_085


@dataclass(frozen=True)
class Story:
    """A ledger and the versions at which something happened to it."""

    ledger: embedded.Ledger
    upgrade: int
    schedule: int
    mix: int


def short_case(before: int = 40, after: int = 40) -> tuple[embedded.Ledger, int]:
    """Return a ledger whose only entry function became dearer by an upgrade, and the version of the upgrade."""
    ledger = embedded.Ledger()
    ledger.publish(Shop)
    for _ in range(before):
        _commit(ledger, "sell", 1)
    upgrade = ledger.publish(DearShop).version
    for _ in range(after):
        _commit(ledger, "sell", 1)
    return ledger, upgrade


def _commit(ledger: embedded.Ledger, function: str, argument: int, sender: str = "0xb0b") -> None:
    ledger.commit(f"{HOME}::shop::{function}", argument, sender=sender)


def story() -> Story:
    """Return a ledger with an upgrade, a change of the schedule, growth with state and a shift of the mix, far apart."""
    ledger = embedded.Ledger()
    ledger.set_gas_schedule("v1.15.2")
    ledger.publish(Shop)
    known = 0
    for number in range(100):
        known = _everyday(ledger, number, known, new=2)
    upgrade = ledger.publish(DearShop).version
    for number in range(100):
        known = _everyday(ledger, number, known, new=2)
    now = released_schedule("v1.15.2")
    prices = {name: value * 10 if name.startswith("instr.") else value for name, value in now.entries.items()}
    schedule = ledger.set_gas_schedule(Schedule(now.feature_version, prices)).version
    for number in range(100):
        known = _everyday(ledger, number, known, new=2)
    mix = ledger.head + 1
    for number in range(100):
        known = _everyday(ledger, number, known, new=1)
    return Story(ledger, upgrade, schedule, mix)


def _everyday(ledger: embedded.Ledger, number: int, known: int, *, new: int) -> int:
    """Commit a sale, which fails each fifth time, and a note, of a new name each `new` times; return the names known."""
    _commit(ledger, "sell", int(number % 5 > 0))
    key = known if number % new == 0 or not known else number % known
    _commit(ledger, "note", key)
    return max(known, key + 1)
