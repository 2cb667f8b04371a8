"""Wrong answers that students would give to the exercises judged by state, and right answers of another form.

Contracts are changes to the solution in the lesson, as pairs of a text and its replacement, or whole contracts. Each
wrong answer has words of the feedback that fits it. `tests/unit/teaching/test_mutants.py` tries all of them, and this
prints a table, of all exercises or of some:

    python notebooks/solutions/mutants.py 12.4 16.4
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import contracts

from toolkit import EntryFunction, SimulationRequest
from toolkit.teaching._answers import CELL_SOURCE, GivenAnswer, answer_of
from toolkit.teaching._check import Verdict, judge
from toolkit.teaching._exercises import exercises

if TYPE_CHECKING:
    from collections.abc import Iterator

APT = 100_000_000
Change = tuple[str, str]

CONTRACTS: dict[str, dict[str, tuple[list[Change] | str, str]]] = {
    "12.4": {
        "nothing written": (contracts.SAVINGS, "stored under the account of the signer"),
        "a deposit replaces": ([("saved.amount += amount", "saved.amount = amount")], "added to the first"),
        "a deposit is not counted": ([("saved.amount += amount", "pass")], "stored under the account of the signer"),
        "only one deposit": ([("if not self.exists(Savings.Saved, account):", "if True:")], "move_to fails"),
        "not all can be withdrawn": ([("amount <= self.saved_by", "amount < self.saved_by")], "all that he has"),
        "no comparison": (
            [("self.require(amount <= self.saved_by(account), self.E_TOO_MUCH)", "pass")],
            "abort with E_TOO_MUCH",
        ),
        "a withdrawal is not counted": ([("saved.amount -= amount", "pass")], "A withdrawal is subtracted"),
        "a withdrawal takes all": ([("saved.amount -= amount", "saved.amount = 0")], "A withdrawal is subtracted"),
        "the view aborts": ([("if not self.exists(Savings.Saved, owner):", "if False:")], "Carol has never saved"),
        "one account for all": (
            [
                (
                    "self.borrow_mut(Savings.Saved, account) as saved:\n            saved.amount +=",
                    'self.borrow_mut(Savings.Saved, "0xb0b") as saved:\n            saved.amount +=',
                )
            ],
            "Alice's deposit is hers",
        ),
    },
    "12.5": {
        "no change": (contracts.JAR, "A loop over all"),
        "the sum is not stored": ([("known.value += amount", "pass")], "Does every tip change"),
        "counts tips": ([("known.value += amount", "known.value += 1")], "Does every tip change"),
        "forgets earlier tips": (
            [("Jar.Sum(value=self.added_up())", "Jar.Sum(value=amount)")],
            "Is the tip after the upgrade counted once",
        ),
        "forgets the first tip": (
            [("Jar.Sum(value=self.added_up())", "Jar.Sum(value=self.added_up() - amount)")],
            "counted once",
        ),
        "counts the first tip twice": (
            [("Jar.Sum(value=self.added_up())", "Jar.Sum(value=self.added_up() + amount)")],
            "counted once",
        ),
        "the view needs a tip first": (
            [('if self.exists(Jar.Sum, "0x7a5"):\n            return', "if True:\n            return")],
            "Right after the upgrade",
        ),
        "zero before a tip": ([("        return self.added_up()", "        return 0")], "Right after the upgrade"),
        "still a loop": ([('return self.borrow(Jar.Sum, "0x7a5").value', "return self.added_up()")], "A loop over all"),
        "another field": (
            [
                ("    class Tips(Resource):\n", "    class Tips(Resource):\n        sum: u64\n"),
                ("Jar.Tips(amounts=[])", "Jar.Tips(sum=0, amounts=[])"),
            ],
            "keeps every struct",
        ),
    },
    "16.2": {
        "no check": ([("self.require(account == owner, self.E_NOT_OWNER)", "pass")], "Anyone can still withdraw"),
        "the check is inverted": ([("account == owner", "account != owner")], "Anyone can still withdraw"),
        "pays the owner, whoever asks": (
            [
                ("self.require(account == owner, self.E_NOT_OWNER)", "pass"),
                ("self.own_signer(), account, amount", "self.own_signer(), owner, amount"),
            ],
            "Anyone can still withdraw",
        ),
        "for Alice only": ([("account == owner,", 'account == "0xa11ce",')], "all that they have stored"),
        "nobody can withdraw": ([("account == owner,", "False,")], "withdraw her own coins"),
        "not all can be withdrawn": ([("amount <= before", "amount < before")], "all that they have stored"),
        "pays nothing out": (
            [("self.use(Coin).transfer(APTOS_COIN, self.own_signer(), account, amount)", "pass")],
            "must pay out",
        ),
        "takes nothing in": (
            [('self.use(Coin).transfer(APTOS_COIN, account, "0x5afe", amount)', "pass")],
            "hold exactly what it owes",
        ),
        "a withdrawal is not counted": (
            [("accounts.stored.upsert(owner, before - amount)", "pass")],
            "What she withdrew is subtracted",
        ),
        "a deposit replaces": (
            [("accounts.stored.upsert(account, before + amount)", "accounts.stored.upsert(account, amount)")],
            "A second deposit is added",
        ),
        "the view aborts": (
            [('"0x5afe").stored.borrow_with_default(owner, 0)', '"0x5afe").stored.borrow(owner)')],
            "Carol has stored nothing",
        ),
        "for all who have stored": (
            [("account == owner,", "self.stored_by(account) > 0,")],
            "coins of his own",
        ),
        "the parameter is gone": (
            [
                ("account: signer, owner: address, amount", "account: signer, amount"),
                ("self.require(account == owner, self.E_NOT_OWNER)", "owner = account"),
            ],
            "keep the signature",
        ),
    },
    "16.4": {
        "no change": (
            [
                ("self.require(new > 0, self.E_NO_SHARES)", "pass"),
                ("self.require(amount > 1_000, self.E_NO_SHARES)", "pass"),
                ("new = amount - 1_000", "new = amount"),
                ("state.all_shares += 1_000", "pass"),
            ],
            "attack of 16.3 still pays off",
        ),
        "no share is refused": (
            [
                ("self.require(amount > 1_000, self.E_NO_SHARES)", "pass"),
                ("new = amount - 1_000", "new = amount"),
                ("state.all_shares += 1_000", "pass"),
            ],
            "one share instead of almost two",
        ),
        "only a larger first deposit": (
            [
                ("amount > 1_000", "amount >= 1_000_000"),
                ("new = amount - 1_000", "new = amount"),
                ("state.all_shares += 1_000", "pass"),
            ],
            "one share instead of almost two",
        ),
        "rounds up": (
            [
                (
                    "new = amount * state.all_shares // state.coins",
                    "new = (amount * state.all_shares + state.coins - 1) // state.coins",
                ),
                ("self.require(amount > 1_000, self.E_NO_SHARES)", "pass"),
                ("new = amount - 1_000", "new = amount"),
                ("state.all_shares += 1_000", "pass"),
            ],
            "round down",
        ),
        "nobody can deposit": (
            [("self.require(new > 0, self.E_NO_SHARES)", "self.abort(self.E_NO_SHARES)")],
            "An honest deposit must",
        ),
        "only one deposit": (
            [("new = amount * state.all_shares // state.coins", "self.abort(self.E_NO_SHARES)")],
            "also the second",
        ),
        "pays nothing out": (
            [("self.use(Coin).transfer(APTOS_COIN, self.own_signer(), account, paid)", "pass")],
            "deposit back",
        ),
        "pays half": ([("account, paid)", "account, paid // 2)")], "deposit back"),
        "takes nothing in": (
            [
                (
                    (
                        'self.use(Coin).transfer(APTOS_COIN, account, "0x9001", amount)\n'
                        '        with self.borrow_mut(Pool.State, "0x9001") as state:\n            new'
                    ),
                    'with self.borrow_mut(Pool.State, "0x9001") as state:\n            new',
                )
            ],
            "pays off|take the coins in",
        ),
        "a deposit is not counted": (
            [("            state.coins += amount\n\n    @entry\n    def reward", "\n    @entry\n    def reward")],
            "also the second one",
        ),
        "shares stay": ([("state.shares.upsert(account, before - shares)", "pass")], "Shares that were withdrawn"),
        "a reward is lost": (
            [
                (
                    "            state.coins += amount\n\n    @entry\n    def withdraw",
                    "            state.coins += 0\n\n    @entry\n    def withdraw",
                )
            ],
            "Alice is the only one",
        ),
        "no rewards": (
            [
                (
                    "def reward(self, account: signer, amount: u64) -> None:\n",
                    "def reward(self, account: signer, amount: u64) -> None:\n        self.abort(self.E_TOO_MUCH)\n",
                )
            ],
            "Rewards must still work",
        ),
    },
    "16.5": {
        "no change": ([("min(amount // 20, books.held - books.all_owed)", "amount // 20")], "Nobody has paid"),
        "no bonus": ([("min(amount // 20, books.held - books.all_owed)", "u64(0)")], "The bonus is 5%"),
        "the whole surplus": (
            [("min(amount // 20, books.held - books.all_owed)", "books.held - books.all_owed")],
            "bonus is 5% again",
        ),
        "all or nothing": (
            [
                (
                    "min(amount // 20, books.held - books.all_owed)",
                    "amount // 20 if amount // 20 <= books.held - books.all_owed else u64(0)",
                )
            ],
            "at most what sponsors",
        ),
        "owes it to nobody": ([("before + amount + bonus", "before + amount")], "The bonus is 5%"),
        "the total lacks the bonus": (
            [("books.all_owed += amount + bonus", "books.all_owed += amount")],
            "owes the sum",
        ),
        "the total never falls": ([("books.all_owed -= amount", "pass")], "must owe nothing|bonus"),
        "a sponsor is not counted": (
            [
                (
                    (
                        'with self.borrow_mut(Bank.Books, "0xba4c") as books:\n'
                        "            books.held += amount\n\n    @entry\n"
                        "    def deposit"
                    ),
                    "pass\n\n    @entry\n    def deposit",
                )
            ],
            "The bonus is 5%",
        ),
        "not all can be withdrawn": ([("amount <= before", "amount < before")], "even the last depositor"),
        "held never falls": ([("books.held -= amount", "pass")], "What is left"),
        "the view aborts": (
            [(".owed.borrow_with_default(owner, 0)\n", ".owed.borrow(owner)\n")],
            "which is not an error",
        ),
    },
    "16.6": {
        "twice": (
            [
                ("self.require(not members.before.contains(account), self.E_MEMBER)", "pass"),
                ("members.before.add(", "members.before.upsert("),
            ],
            "join twice",
        ),
        "earns what was paid before": (
            [("members.before.add(account, members.paid)", "members.before.add(account, 0)")],
            "paid since",
        ),
        "a payment replaces": ([("members.paid += each", "members.paid = each")], "both payments|paid since"),
        "payments are not counted": ([("members.paid += each", "pass")], "both payments"),
        "visits each member": (contracts.DIVIDENDS, "cannot visit each member"),
        "others earn too": (
            [("borrow_with_default(member, members.paid)", "borrow_with_default(member, 0)")],
            "not a member",
        ),
        "the view aborts": ([("borrow_with_default(member, members.paid)", "borrow(member)")], "not a member"),
        "nobody can join": (
            [("self.require(not members.before.contains(account), self.E_MEMBER)", "self.abort(self.E_MEMBER)")],
            "join",
        ),
    },
    "17.1": {
        "nothing written": (contracts.RAFFLE, "Buying 0 tickets"),
        "none": ([("self.require(count > 0, self.E_NONE)", "pass")], "Buying 0 tickets"),
        "two at least": ([("self.require(count > 0", "self.require(count > 1")], "buy"),
        "another code": (
            [("self.require(count > 0, self.E_NONE)", "self.require(count > 0, self.E_NO_TICKET)")],
            "abort with E_NONE",
        ),
        "bought for somebody else": (
            [("tickets.owners.append(account)", 'tickets.owners.append("0xb0b")')],
            "tickets_of",
        ),
        "no ticket has a number": ([("self.require(ticket < len(owners), self.E_NO_TICKET)", "pass")], "E_NO_TICKET"),
        "one ticket too many": ([("ticket < len(owners)", "ticket <= len(owners)")], "E_NO_TICKET"),
        "numbered from 1": ([("return owners[ticket]", "return owners[ticket - 1]")], "numbered from 0"),
        "newest first": ([("return owners[ticket]", "return owners[len(owners) - 1 - ticket]")], "after Bob's first"),
        "counts all": ([(" if one == owner", "")], "Bob has bought tickets twice"),
    },
    "17.2": {
        "no change": (contracts.SOLD_RAFFLE, "stored count"),
        "only new tickets": ([("self.counted_up(account) - count", "0")], "before and after the upgrade"),
        "the first purchase counts twice": (
            [("self.counted_up(account) - count", "self.counted_up(account)")],
            "each once",
        ),
        "later purchases are lost": (
            [("counts.of.upsert(account, counts.of.borrow(account) + count)", "pass")],
            "before and after",
        ),
        "counts purchases": (
            [("counts.of.borrow(account) + count", "counts.of.borrow(account) + 1")],
            "before and after",
        ),
        "one count for all": (
            [
                ("counts.of.contains(account)", 'counts.of.contains("0x0")'),
                ("counts.of.add(account,", 'counts.of.add("0x0",'),
                (
                    "counts.of.upsert(account, counts.of.borrow(account)",
                    'counts.of.upsert("0x0", counts.of.borrow("0x0")',
                ),
                ("counts.of.contains(owner)", 'counts.of.contains("0x0")'),
                ("counts.of.borrow(owner)", 'counts.of.borrow("0x0")'),
            ],
            "what Bob has",
        ),
        "new buyers get all": (
            [("self.counted_up(account) - count)", "len(tickets.owners) - count)")],
            "before and after|new tickets only",
        ),
        "sells nothing": ([("self.require(count > 0, self.E_NONE)", "pass")], "E_NONE"),
        "looks beyond the end": ([("self.require(ticket < len(owners), self.E_NO_TICKET)", "pass")], "E_NO_TICKET"),
        "old owners have none": ([("        return self.counted_up(owner)", "        return 0")], "before the upgrade"),
        "still counts": ([("return counts.of.borrow(owner)", "return self.counted_up(owner)")], "stored count"),
    },
}
"""Changes to the solution of each exercise, with a pattern that the feedback must contain."""

_VIRTUAL = [
    (
        (
            "            if state.all_shares > 0:\n                new = amount * state.all_shares // state.coins\n"
            "            else:  # the first 1,000 shares belong to nobody\n"
            "                self.require(amount > 1_000, self.E_NO_SHARES)\n"
            "                new = amount - 1_000\n                state.all_shares += 1_000\n"
        ),
        "            new = amount * (state.all_shares + 1_000) // (state.coins + 1_000)\n",
    ),
    ("shares * state.coins // state.all_shares", "shares * (state.coins + 1_000) // (state.all_shares + 1_000)"),
]
_ROUNDING = [
    (
        (
            "            else:  # the first 1,000 shares belong to nobody\n"
            "                self.require(amount > 1_000, self.E_NO_SHARES)\n"
            "                new = amount - 1_000\n                state.all_shares += 1_000\n"
        ),
        (
            "                lost = amount * state.all_shares % state.coins\n"
            "                self.require(lost <= amount * state.all_shares // 10_000, self.E_NO_SHARES)\n"
        ),
    ),
]
FORMS: dict[str, dict[str, list[Change]]] = {
    "12.4": {
        "stores the first deposit": [
            (
                (
                    "            self.move_to(account, Savings.Saved(amount=0))\n"
                    "        with self.borrow_mut(Savings.Saved, account) as saved:\n            saved.amount += amount"
                ),
                (
                    "            self.move_to(account, Savings.Saved(amount=amount))\n        else:\n"
                    "            with self.borrow_mut(Savings.Saved, account) as saved:\n"
                    "                saved.amount += amount"
                ),
            )
        ],
        "aborts by an if": [
            (
                "self.require(amount <= self.saved_by(account), self.E_TOO_MUCH)",
                "if amount > self.saved_by(account):\n            self.abort(self.E_TOO_MUCH)",
            )
        ],
        "refuses nothing": [
            (
                "    @entry\n    def deposit",
                '    E_ZERO = invalid_argument(2, "Nothing")\n\n    @entry\n    def deposit',
            ),
            (
                "        if not self.exists(Savings.Saved, account):",
                "        self.require(amount > 0, self.E_ZERO)\n        if not self.exists(Savings.Saved, account):",
            ),
        ],
    },
    "12.5": {
        "another name": [("Sum", "Total")],
        "adds up first": [
            (
                (
                    '        with self.borrow_mut(Jar.Tips, "0x7a5") as tips:\n'
                    "            tips.amounts.append(amount)\n"
                    '        if not self.exists(Jar.Sum, "0x7a5"):\n'
                    "            self.move_to(self.own_signer(), Jar.Sum(value=self.added_up()))\n        else:\n"
                    '            with self.borrow_mut(Jar.Sum, "0x7a5") as known:\n'
                    "                known.value += amount"
                ),
                (
                    '        if not self.exists(Jar.Sum, "0x7a5"):\n'
                    "            self.move_to(self.own_signer(), Jar.Sum(value=self.added_up()))\n"
                    '        with self.borrow_mut(Jar.Sum, "0x7a5") as known:\n            known.value += amount\n'
                    '        with self.borrow_mut(Jar.Tips, "0x7a5") as tips:\n            tips.amounts.append(amount)'
                ),
            )
        ],
        "the other way round": [
            (
                (
                    '        if self.exists(Jar.Sum, "0x7a5"):\n'
                    '            return self.borrow(Jar.Sum, "0x7a5").value\n'
                    "        return self.added_up()"
                ),
                (
                    '        if not self.exists(Jar.Sum, "0x7a5"):\n            return self.added_up()\n'
                    '        return self.borrow(Jar.Sum, "0x7a5").value'
                ),
            )
        ],
    },
    "16.2": {
        "uses the signer's amount": [
            ("self.require(account == owner, self.E_NOT_OWNER)", "owner = self.owner_of(account, owner)"),
            (
                "    @view\n",
                (
                    "    def owner_of(self, account: address, owner: address) -> address:\n"
                    "        self.require(account == owner, self.E_NOT_OWNER)\n        return owner\n\n    @view\n"
                ),
            ),
        ],
        "aborts by an if": [
            (
                "self.require(account == owner, self.E_NOT_OWNER)",
                "if account != owner:\n            self.abort(self.E_NOT_OWNER)",
            )
        ],
        "with the code it had": [("self.E_NOT_OWNER)", "self.E_TOO_MUCH)")],
    },
    "16.4": {
        "10,000 shares belong to nobody": [("1_000", "10_000")],
        "virtual shares": _VIRTUAL,
        "refuses what rounding costs": _ROUNDING,
    },
    "16.5": {
        "an if": [
            (
                "            bonus = min(amount // 20, books.held - books.all_owed)\n",
                (
                    "            bonus = amount // 20\n            if bonus > books.held - books.all_owed:\n"
                    "                bonus = books.held - books.all_owed\n"
                ),
            )
        ],
        "after the deposit": [("books.held - books.all_owed)", "books.held + amount - books.all_owed - amount)")],
        "named": [
            (
                "            bonus = min(amount // 20, books.held - books.all_owed)\n",
                "            gifts = books.held - books.all_owed\n            bonus = min(gifts, amount * 5 // 100)\n",
            )
        ],
    },
    "16.6": {
        "other names": [("before", "at_joining")],
        "aborts by an if": [
            (
                "self.require(not members.before.contains(account), self.E_MEMBER)",
                "if members.before.contains(account):\n                self.abort(self.E_MEMBER)",
            )
        ],
        "an if in the view": [
            (
                "        return members.paid - members.before.borrow_with_default(member, members.paid)",
                (
                    "        if not members.before.contains(member):\n            return 0\n"
                    "        return members.paid - members.before.borrow(member)"
                ),
            )
        ],
    },
    "17.1": {
        "aborts by an if": [
            ("self.require(count > 0, self.E_NONE)", "if count == 0:\n            self.abort(self.E_NONE)")
        ],
        "compares the other way": [("ticket < len(owners)", "len(owners) > ticket"), ("count > 0", "count >= 1")],
        "event first": [
            ("        self.emit(Raffle.Bought(by=account, count=count))\n", ""),
            (
                "        self.require(count > 0, self.E_NONE)\n",
                (
                    "        self.require(count > 0, self.E_NONE)\n"
                    "        self.emit(Raffle.Bought(by=account, count=count))\n"
                ),
            ),
        ],
    },
    "17.2": {
        "another name": [("Counts", "Numbers")],
        "stored at once": [
            (
                (
                    "            if not counts.of.contains(account):\n"
                    "                counts.of.add(account, self.counted_up(account) - count)\n"
                    "            counts.of.upsert(account, counts.of.borrow(account) + count)\n"
                ),
                (
                    "            before = self.counted_up(account) - count\n"
                    "            counts.of.upsert(account, counts.of.borrow_with_default(account, before) + count)\n"
                ),
            )
        ],
        "counts only the first time": [
            (
                (
                    "                counts.of.add(account, self.counted_up(account) - count)\n"
                    "            counts.of.upsert(account, counts.of.borrow(account) + count)\n"
                ),
                (
                    "                counts.of.add(account, self.counted_up(account))\n"
                    "            else:\n"
                    "                counts.of.upsert(account, counts.of.borrow(account) + count)\n"
                ),
            )
        ],
    },
}
"""Changes after which a solution is still right."""


def _calls(*calls: tuple[Any, ...]) -> list[tuple[str, str, list[Any]]]:
    return [(sender, function, list(arguments)) for sender, function, *arguments in calls]


_TRANSFER, _REGISTER = "0xcafe::registry::transfer", "0xcafe::registry::register"
_RELEASE, _SET = "0xcafe::registry::release", "0x5afe::vault::withdraw"
_DEPOSIT, _REWARD, _LEAVE = "0x9001::pool::deposit", "0x9001::pool::reward", "0x9001::pool::withdraw"
REQUESTS: dict[str, dict[str, tuple[list[tuple[str, str, list[Any]]], str]]] = {
    "06.4": {
        "one of two": (_calls(("0xa11ce", _TRANSFER, "alice", "0xb0b")), "'bob'"),
        "the other of two": (_calls(("0xb0b", _TRANSFER, "bob", "0xa11ce")), "'alice'"),
        "by the wrong signer": (_calls(("0xb0b", _TRANSFER, "alice", "0xb0b")), "E_NOT_OWNER"),
        "signed by nobody asked": (_calls(("0xca401", _TRANSFER, "alice", "0xb0b")), "may sign"),
        "to themselves": (
            _calls(("0xa11ce", _TRANSFER, "alice", "0xa11ce"), ("0xb0b", _TRANSFER, "bob", "0xb0b")),
            "'alice'|'bob'",
        ),
        "a new name too": (
            _calls(
                ("0xa11ce", _TRANSFER, "alice", "0xb0b"),
                ("0xb0b", _TRANSFER, "bob", "0xa11ce"),
                ("0xb0b", _REGISTER, "more"),
            ),
            "no others",
        ),
        "misspelt": (_calls(("0xa11ce", "0xcafe::registry::tranfer", "alice", "0xb0b")), "tranfer"),
    },
    "08.4": {
        "one name": (_calls(("0xa11ce", _RELEASE, "alice-1")), "All three"),
        "two names": (_calls(("0xa11ce", _RELEASE, "alice-1"), ("0xa11ce", _RELEASE, "alice-2")), "All three"),
        "one twice": (_calls(("0xa11ce", _RELEASE, "alice-1"), ("0xa11ce", _RELEASE, "alice-1")), "failed"),
        "given away": (_calls(*(("0xa11ce", _TRANSFER, f"alice-{n}", "0xb0b") for n in (1, 2, 3))), "more octas"),
        "registered": (_calls(("0xa11ce", _REGISTER, "more")), "more octas"),
        "Bob's": (_calls(("0xa11ce", _RELEASE, "bob")), "E_NOT_OWNER"),
        "all four": (
            _calls(*(("0xa11ce", _RELEASE, f"alice-{n}") for n in (1, 2, 3)), ("0xb0b", _RELEASE, "bob")),
            "may sign",
        ),
    },
    "16.1": {
        "her own": (_calls(("0xbad", _SET, "0xbad", APT)), "not theft"),
        "half": (_calls(("0xbad", _SET, "0xa11ce", 25 * APT)), "nearly everything"),
        "too much": (_calls(("0xbad", _SET, "0xa11ce", 51 * APT)), "E_TOO_MUCH"),
        "twice": (_calls(*[("0xbad", _SET, "0xa11ce", 50 * APT)] * 2), "E_TOO_MUCH"),
        "signed by Alice": (_calls(("0xa11ce", _SET, "0xa11ce", 50 * APT)), "may sign"),
        "a deposit": (_calls(("0xbad", "0x5afe::vault::deposit", APT)), "nearly everything"),
        "all but one": (_calls(("0xbad", _SET, "0xa11ce", 50 * APT - 1)), "nothing left"),
    },
    "16.3": {
        "no reward": (_calls(("0xbad", _DEPOSIT, 1)), "make a share expensive"),
        "no share": (_calls(("0xbad", _REWARD, 60 * APT)), "make a share expensive"),
        "a small reward": (_calls(("0xbad", _DEPOSIT, 1), ("0xbad", _REWARD, 5 * APT)), "make a share expensive"),
        "a large deposit": (_calls(("0xbad", _DEPOSIT, APT), ("0xbad", _REWARD, 60 * APT)), "make a share expensive"),
        "the reward first": (_calls(("0xbad", _REWARD, 60 * APT), ("0xbad", _DEPOSIT, 60 * APT)), "make a share"),
        "left already": (
            _calls(("0xbad", _DEPOSIT, 1), ("0xbad", _REWARD, 60 * APT), ("0xbad", _LEAVE, 1)),
            "make a share",
        ),
        "signed by Alice": (_calls(("0xa11ce", _DEPOSIT, 1), ("0xbad", _REWARD, 60 * APT)), "may sign"),
        "two shares": (_calls(("0xbad", _DEPOSIT, 2), ("0xbad", _REWARD, 60 * APT)), "at least half|only share"),
    },
}
"""Requests of each exercise, with a pattern that the feedback must contain."""

RIGHT_REQUESTS: dict[str, list[list[tuple[str, str, list[Any]]]]] = {
    "06.4": [
        _calls(("0xa11ce", _TRANSFER, "alice", "0xb0b"), ("0xb0b", _TRANSFER, "bob", "0xa11ce")),
        _calls(("0xb0b", _TRANSFER, "bob", "0xa11ce"), ("0xa11ce", _TRANSFER, "alice", "0xb0b")),
        _calls(("0xa11ce", _TRANSFER, "alice", "0x0b0b"), ("0x0b0b", _TRANSFER, "bob", "0x0a11ce")),
    ],
    "08.4": [
        _calls(*(("0xa11ce", _RELEASE, f"alice-{number}") for number in order))
        for order in ((1, 2, 3), (3, 2, 1), (2, 3, 1))
    ],
    "16.1": [
        _calls(("0xbad", _SET, "0xa11ce", 50 * APT)),
        _calls(("0xbad", _SET, "0xa11ce", 20 * APT), ("0xbad", _SET, "0xa11ce", 30 * APT)),
        _calls(("0xbad", _SET, "0xbad", APT), ("0xbad", _SET, "0xa11ce", 50 * APT)),
    ],
    "16.3": [
        _calls(("0xbad", _DEPOSIT, 1), ("0xbad", _REWARD, 100 * APT)),
        _calls(("0xbad", _DEPOSIT, 1), ("0xbad", _REWARD, 30 * APT), ("0xbad", _REWARD, 30 * APT)),
        _calls(("0xbad", _DEPOSIT, APT), ("0xbad", _LEAVE, APT - 1), ("0xbad", _REWARD, 60 * APT)),
    ],
}

_TICKETS = "0x4aff1e::raffle::tickets_of"
RULES: dict[str, dict[str, tuple[Any, str]]] = {
    "14.4": {
        "too strict": ("1%", "must let it pass"),
        "nothing may rise": (0, "must let it pass"),
        "zero percent": ("0%", "must let it pass"),
        "too loose": (1_000, "must stop it"),
        "too loose in percent": ("2000%", "must stop it"),
        "a large share": ({"percent": 900}, "must stop it"),
        "both loose": ({"percent": 900, "gas_units": 1_000}, "must stop it"),
    },
    "17.3": {
        "who has none": ({"calls": {"C": [_TICKETS, ["0xca401"]]}, "thresholds": "5%"}, "Which call"),
        "another view": ({"calls": {"o": ["0x4aff1e::raffle::owner_of", [0]]}, "thresholds": "5%"}, "Which call"),
        "too loose": ({"calls": {"B": [_TICKETS, ["0xb0b"]]}, "thresholds": "900%"}, "Which call"),
        "misspelt": ({"calls": {"B": ["0x4aff1e::raffle::tickets", ["0xb0b"]]}, "thresholds": "5%"}, "tickets"),
        "no argument": ({"calls": {"B": [_TICKETS, []]}, "thresholds": "5%"}, "."),
        "only a limit": ("5%", "calls"),
        "no limit": ({"calls": {"B": [_TICKETS, ["0xb0b"]]}}, "thresholds"),
    },
}
"""Rules of each exercise, with a pattern that the feedback must contain."""

RIGHT_RULES: dict[str, list[Any]] = {
    "14.4": [50, "50%", {"percent": 40}],
    "17.3": [
        {"calls": {"Bob": [_TICKETS, ["0xb0b"]]}, "thresholds": {"percent": 5, "gas_units": 2}},
        {"calls": {"A": [_TICKETS, ["0xa11ce"]]}, "thresholds": "10%"},
        {"calls": {"A": [_TICKETS, ["0xa11ce"]], "B": [_TICKETS, ["0xb0b"]]}, "thresholds": "20%"},
    ],
}


def contract(source: str) -> GivenAnswer:
    """Return a contract as an answer."""
    return answer_of(type("Contract", (), {CELL_SOURCE: source}))


def requests(*calls: tuple[str, str, list[Any]]) -> GivenAnswer:
    """Return requests as an answer; a call is its sender, the function and the arguments."""
    made = [
        SimulationRequest(EntryFunction(function, arguments), sender=sender) for sender, function, arguments in calls
    ]
    return answer_of(made)


def solved(name: str) -> str:
    """Return the source of the lesson's solution of an exercise that asks for a contract."""
    (path,) = Path(__file__).parent.glob(f"{name[:2]}_*.ipynb")
    found = ""
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        text = "".join(cell["source"])
        found = text if text.startswith("%%contract") else found
        if f'check("{name}"' in text:
            return found.partition("\n")[2]
    raise KeyError(name)


def changed(name: str, changes: list[Change] | str) -> GivenAnswer:
    """Return the solution of an exercise with changes, or another contract, as an answer."""
    if isinstance(changes, str):
        return contract(changes)
    source = solved(name)
    for before, after in changes:
        if before not in source:
            raise ValueError(f"the solution of {name} does not contain {before!r}")
        source = source.replace(before, after)
    return contract(source)


def wrong() -> Iterator[tuple[str, str, GivenAnswer, str]]:
    """Yield the wrong answers: the exercise, what is wrong, the answer, and a pattern of the feedback that fits."""
    for name, contracts_of in CONTRACTS.items():
        for what, (changes, said) in contracts_of.items():
            yield name, what, changed(name, changes), said
    for name, requests_of in REQUESTS.items():
        for what, (calls, said) in requests_of.items():
            yield name, what, requests(*calls), said
    for name, rules_of in RULES.items():
        for what, (rules, said) in rules_of.items():
            yield name, what, answer_of(rules), said


def right() -> Iterator[tuple[str, str, GivenAnswer]]:
    """Yield the right answers: the exercise, the form, and the answer."""
    for name, forms in FORMS.items():
        for what, changes in forms.items():
            yield name, what, changed(name, changes)
    for name, lists in RIGHT_REQUESTS.items():
        for number, calls in enumerate(lists):
            yield name, str(number), requests(*calls)
    for name, limits in RIGHT_RULES.items():
        for number, rules in enumerate(limits):
            yield name, str(number), answer_of(rules)


def main() -> int:
    """Print a table of the exercises judged by state; return 1 if a wrong answer passes or a right one fails."""
    known, rows = exercises(), dict[str, list[int]]()
    failed = []
    for number, answers in enumerate((wrong(), ((*one, "") for one in right()))):
        for name, what, answer, said in answers:
            if sys.argv[1:] and name not in sys.argv[1:]:
                continue
            checked = judge(name, known[name], answer)
            if said:
                good = checked.verdict is Verdict.NOT_YET and re.search(said, checked.message) is not None
            else:
                good = checked.verdict is Verdict.RIGHT
            failed += [] if good else [f"{name} {what}: {checked}"]
            counts = rows.setdefault(name, [0] * 4)
            counts[2 * number] += 1
            counts[2 * number + 1] += good
    print("exercise  wrong answers  refused with fitting feedback  right forms  accepted")  # noqa: T201
    for name, counts in sorted(rows.items()):
        print("{:8}  {:13}  {:29}  {:11}  {:8}".format(name, *counts))  # noqa: T201
    print("\n".join(failed))  # noqa: T201
    return int(bool(failed))


if __name__ == "__main__":
    raise SystemExit(main())
