"""Exercises whose answers are tried on a fresh ledger: contracts, calls and rules of a gate."""

from __future__ import annotations

import inspect
from typing import Any

import contracts

from toolkit.embedded import Ledger
from toolkit.embedded.teaching import Registry
from toolkit.teaching._contract_cell import contracts_in
from toolkit.teaching._exercises import (
    AnswerKind,
    CallStep,
    Ending,
    Exercise,
    FreshStep,
    GasStep,
    GateStep,
    MarkStep,
    PlayStep,
    PublishStep,
    Relation,
    Step,
    ValueStep,
)
from toolkit.wire import EntryFunction

ALICE, BOB, CAROL, THIEF = "0xa11ce", "0xb0b", "0xca401", "0xbad"
APT = 100_000_000
_FEES = APT // 50  # more than the fees of the calls in a story
_COIN = ("0x1::aptos_coin::AptosCoin",)
_REGISTRY = "0xcafe::registry::"
_SAVINGS, _JAR, _VAULT, _POOL = "0x5a7e::savings::", "0x7a5::jar::", "0x5afe::vault::", "0x9001::pool::"
_BANK, _DIVIDENDS, _RAFFLE = "0xba4c::bank::", "0xd171::dividends::", "0x4aff1e::raffle::"


def octas_after(steps: list[Step], owner: str) -> int:
    """Return an account's balance in octas after those steps of a story that need no answer."""
    ledger = Ledger(fund_new_senders=True)
    for step in steps:
        if isinstance(step, PublishStep):
            ledger.publish(*contracts_in(step.source, "story", ledger))
        elif isinstance(step, CallStep):
            done = ledger.execute(EntryFunction(step.function, step.arguments), sender=step.sender, check=True)
            assert done.success  # noqa: S101
    return ledger.view("0x1::coin::balance", [owner], _COIN)[0][0]


def _calls(unit: str, points: int, hints: tuple[str, str], steps: list[Step]) -> Exercise:
    return Exercise(AnswerKind.CALLS, hints, unit=unit, steps=tuple(steps), points=points)


def _contract(unit: str, points: int, hints: tuple[str, str], steps: list[Step]) -> Exercise:
    return Exercise(AnswerKind.CONTRACT, hints, unit=unit, steps=tuple(steps), points=points)


def _owns(owner: str, octas: int, says: str, relation: Relation = Relation.AT_LEAST) -> ValueStep:
    return ValueStep("0x1::coin::balance", octas, (owner,), _COIN, relation=relation, says=says)


def _holds(contract: str, octas: int, says: str) -> list[Step]:
    """Return the steps that compare a contract's balance, from which it has paid for being published again."""
    return [_owns(contract, octas - _FEES, says), _owns(contract, octas, says, Relation.AT_MOST)]


def swapped_names(draw: Any) -> Exercise:
    """06.4: the answer is a list of requests that swap the owners of two names."""
    first, second = draw("alice"), draw("bob")
    return _calls(
        "Alice and Bob",
        2,
        (
            "register is for new names; transfer gives an existing name to another address.",
            'registry.transfer.request("alice", "0xb0b", sender="0xa11ce") is one of the two requests.',
        ),
        [
            PublishStep(inspect.getsource(Registry)),
            CallStep(f"{_REGISTRY}register", (first,), ALICE),
            CallStep(f"{_REGISTRY}register", (second,), BOB),
            PlayStep((ALICE, BOB)),
            *(
                ValueStep(
                    f"{_REGISTRY}record_of", owner, (name,), item="owner", says=f"Who must sign to give {name!r} away?"
                )
                for name, owner in ((first, BOB), (second, ALICE))
            ),
            ValueStep(f"{_REGISTRY}size", 2, says="The registry must have these two names and no others."),
        ],
    )


def tidied_up(draw: Any) -> Exercise:
    """08.4: the answer is a list of requests that earn more than they cost."""
    names = [f"alice-{number}" for number in range(1, draw(3, (3, 3, 3)) + 1)]
    before: list[Step] = [
        PublishStep(inspect.getsource(Registry)),
        CallStep(f"{_REGISTRY}register", ("bob",), BOB),
        *(CallStep(f"{_REGISTRY}register", (name,), ALICE) for name in names),
    ]
    return _calls(
        "Alice",
        2,
        (
            "Which entry function deletes state, and so earns a refund?",
            'registry.release.request("alice-1", sender="0xa11ce") is one of them.',
        ),
        [
            *before,
            PlayStep((ALICE,)),
            _owns(
                ALICE,
                octas_after(before, ALICE) + 1,
                "Alice must have more octas than before: each call costs a fee, and only deleted state earns a refund.",
            ),
            ValueStep(
                f"{_REGISTRY}size", 1, says="All three of Alice's names must be gone, and Bob's name must remain."
            ),
        ],
    )


def savings(draw: Any) -> Exercise:
    """12.4: the answer is a contract that completes a skeleton."""
    first, second, out = draw(1_000, range(500, 2_000, 7)), draw(250, range(100, 400, 3)), draw(300, range(200, 450, 3))
    both = first + second
    return _contract(
        "Savings",
        3,
        (
            "Each account has its own resource: self.exists(Savings.Saved, account) returns whether it exists.",
            "Before the first deposit, self.move_to(account, Savings.Saved(amount=0)) creates it.",
        ),
        [
            PublishStep(),
            ValueStep(
                f"{_SAVINGS}saved_by", 0, (CAROL,), says="Carol has never saved, so her account has no resource."
            ),
            CallStep(f"{_SAVINGS}deposit", (first,), BOB),
            ValueStep(
                f"{_SAVINGS}saved_by",
                first,
                (BOB,),
                says="Is the deposit stored under the account of the signer?",
            ),
            CallStep(
                f"{_SAVINGS}deposit", (second,), BOB, says="move_to fails if the account already has the resource."
            ),
            ValueStep(f"{_SAVINGS}saved_by", both, (BOB,), says="A second deposit is added to the first."),
            ValueStep(
                f"{_SAVINGS}saved_by",
                0,
                (ALICE,),
                says="Alice has deposited nothing: everyone has their own amount.",
            ),
            CallStep(f"{_SAVINGS}withdraw", (out,), BOB),
            ValueStep(f"{_SAVINGS}saved_by", both - out, (BOB,), says="A withdrawal is subtracted."),
            CallStep(
                f"{_SAVINGS}withdraw",
                (both,),
                BOB,
                ending=Ending.ABORT,
                abort_code="E_TOO_MUCH",
                says="Nobody can withdraw more than they have saved.",
            ),
            CallStep(
                f"{_SAVINGS}withdraw",
                (1,),
                CAROL,
                ending=Ending.ABORT,
                abort_code="E_TOO_MUCH",
                says="Carol has saved nothing.",
            ),
            ValueStep(f"{_SAVINGS}saved_by", both - out, (BOB,), says="A call that aborts changes nothing."),
            CallStep(f"{_SAVINGS}deposit", (second,), ALICE, says="Alice saves too."),
            ValueStep(f"{_SAVINGS}saved_by", second, (ALICE,), says="Alice's deposit is hers."),
            ValueStep(f"{_SAVINGS}saved_by", both - out, (BOB,), says="Alice's deposit does not change what Bob has."),
            CallStep(f"{_SAVINGS}withdraw", (both - out,), BOB, says="Bob must be able to withdraw all that he has."),
            ValueStep(f"{_SAVINGS}saved_by", 0, (BOB,), says="Bob has withdrawn everything."),
            ValueStep(f"{_SAVINGS}saved_by", second, (ALICE,), says="Bob's withdrawals do not change what Alice has."),
        ],
    )


def cheaper_jar(draw: Any) -> Exercise:
    """12.5: the answer is an upgrade that makes a view function cheap without adding a field."""
    amounts = [draw(5, range(3, 9)) + number for number in range(80)]
    return _contract(
        "Jar",
        3,
        (
            "An upgrade may add a resource: where else could the sum be stored?",
            "The first tip after the upgrade adds up all tips; self.move_to(self.own_signer(), ...) stores the sum.",
        ),
        [
            PublishStep(contracts.JAR),
            *(CallStep(f"{_JAR}tip", (amount,), ALICE) for amount in amounts),
            PublishStep(
                says="An upgrade keeps every struct and the signature of every public, entry and view function."
            ),
            ValueStep(
                f"{_JAR}total", sum(amounts), says="Right after the upgrade, the sum must include all earlier tips."
            ),
            CallStep(f"{_JAR}tip", (7,), BOB),
            ValueStep(f"{_JAR}total", sum(amounts) + 7, says="Is the tip after the upgrade counted once?"),
            CallStep(f"{_JAR}tip", (11,), BOB),
            ValueStep(f"{_JAR}total", sum(amounts) + 18, says="Does every tip change the stored sum?"),
            GasStep(
                f"{_JAR}total", 13, says="A loop over all tips costs more with each tip: read a stored sum instead."
            ),
        ],
    )


_COUNTER = """class Counter(Module, address="0xc0de"):
    class Counts(Resource):
        all: vector[u64]

    def init_module(self, account: signer) -> None:
        self.move_to(account, Counter.Counts(all=[]))

    @entry
    def add(self, account: signer, value: u64) -> None:
        with self.borrow_mut(Counter.Counts, "0xc0de") as counts:
            counts.all.append(value)

    @view
    def last(self) -> u64:
        counts = self.borrow(Counter.Counts, "0xc0de")
        return counts.all[len(counts.all) - 1]
"""


def _reading(extra: int) -> str:
    """Return an upgrade of the counter whose view function runs extra loop iterations."""
    return _COUNTER.replace(
        "        return counts",
        f"        for turn in self.each(range({extra})):\n            turn += 1\n        return counts",
    )


def caught_by_a_gate(draw: Any) -> Exercise:
    """14.4: the answer is the limit of a gate that stops one upgrade and lets another pass."""
    values = draw(10, range(5, 20))
    calls: dict[str, tuple[str, tuple[Any, ...]]] = {"last": ("0xc0de::counter::last", ())}
    filled: list[Step] = [
        PublishStep(_COUNTER),
        *(CallStep("0xc0de::counter::add", (number,), ALICE) for number in range(values)),
        MarkStep(),
    ]
    return Exercise(
        AnswerKind.RULES,
        (
            "The good upgrade costs 1 gas unit more, the bad one many more. Which limit is between them?",
            'A limit is a number of gas units, such as 50, or percent, such as "2%".',
        ),
        unit='"2%", 50, or {"percent": 2}',
        points=2,
        steps=(
            *filled,
            PublishStep(_reading(20)),
            GateStep(calls, passes=True, says="This upgrade is harmless, and the gate must let it pass."),
            MarkStep(),
            PublishStep(_reading(1_500)),
            GateStep(calls, passes=False, says="This is the upgrade that made users complain: the gate must stop it."),
        ),
    )


_FULL_VAULT: list[Step] = [PublishStep(contracts.VAULT)]


def stolen_from_a_vault(draw: Any) -> Exercise:
    """16.1: the answer is a theft."""
    stored = draw.shown(50, range(30, 90), "{} APT".format, "{} * APT".format) * APT
    before: list[Step] = [
        *_FULL_VAULT,
        CallStep(f"{_VAULT}deposit", (stored,), ALICE),
        CallStep(f"{_VAULT}deposit", (APT,), THIEF),
    ]
    return _calls(
        "0xbad",
        2,
        (
            "Who may call withdraw, and whose coins does it pay out?",
            'stored_by("0xa11ce") returns how much there is to take; withdraw does not compare account with owner.',
        ),
        [
            *before,
            PlayStep((THIEF,)),
            _owns(
                THIEF,
                octas_after(before, THIEF) + stored - APT,
                "The thief must get nearly everything Alice has stored: withdrawing your own coins is not theft.",
            ),
            ValueStep(f"{_VAULT}stored_by", 0, (ALICE,), says="Alice must have nothing left in the vault."),
        ],
    )


def closed_vault(draw: Any) -> Exercise:
    """16.2: the answer is an upgrade that closes the hole."""
    stored = draw(50, range(30, 90)) * APT
    taken = stored // 3
    return _contract(
        "Vault",
        3,
        (
            "The signer is the only part of a call that nobody can fake.",
            "self.require(account == owner, self.E_NOT_OWNER), with a new code, is enough.",
        ),
        [
            *_FULL_VAULT,
            CallStep(f"{_VAULT}deposit", (stored,), ALICE),
            PublishStep(says="An upgrade must keep the signature of every entry function: owner stays a parameter."),
            ValueStep(f"{_VAULT}stored_by", stored, (ALICE,), says="The upgrade must not change what is stored."),
            CallStep(
                f"{_VAULT}withdraw", (ALICE, 1), THIEF, ending=Ending.ABORT, says="Anyone can still withdraw for Alice."
            ),
            CallStep(f"{_VAULT}withdraw", (ALICE, taken), ALICE, says="Alice must be able to withdraw her own coins."),
            ValueStep(f"{_VAULT}stored_by", stored - taken, (ALICE,), says="What she withdrew is subtracted."),
            _owns(
                ALICE,
                octas_after([*_FULL_VAULT, CallStep(f"{_VAULT}deposit", (stored - taken,), ALICE)], ALICE) - _FEES,
                "withdraw must pay out what it subtracts.",
            ),
            CallStep(
                f"{_VAULT}withdraw",
                (ALICE, stored),
                ALICE,
                ending=Ending.ABORT,
                says="Nobody may get more than they have stored.",
            ),
            CallStep(f"{_VAULT}deposit", (APT,), BOB, says="Others must still be able to use the vault."),
            CallStep(f"{_VAULT}deposit", (APT,), BOB, says="Others must still be able to use the vault."),
            ValueStep(f"{_VAULT}stored_by", 2 * APT, (BOB,), says="A second deposit is added to the first."),
            *_holds(
                "0x5afe",
                octas_after([*_FULL_VAULT, CallStep(f"{_VAULT}deposit", (stored - taken + 2 * APT,), ALICE)], "0x5afe"),
                "The vault must hold exactly what it owes: deposit takes coins in, withdraw pays them out.",
            ),
            CallStep(
                f"{_VAULT}withdraw",
                (ALICE, 1),
                BOB,
                ending=Ending.ABORT,
                says="Bob has stored coins of his own, and can still withdraw Alice's.",
            ),
            CallStep(f"{_VAULT}withdraw", (BOB, 2 * APT), BOB, says="Everyone can withdraw all that they have stored."),
            ValueStep(f"{_VAULT}stored_by", 0, (BOB,), says="Bob has withdrawn everything."),
            ValueStep(f"{_VAULT}stored_by", stored - taken, (ALICE,), says="Bob's calls do not change what Alice has."),
            ValueStep(f"{_VAULT}stored_by", 0, (CAROL,), says="Carol has stored nothing, which is not an error."),
        ],
    )


def inflated_pool(draw: Any) -> Exercise:
    """16.3: the answer prepares a pool so that the next deposit gets nothing."""
    deposit = draw(10, range(5, 40)) * APT
    start: list[Step] = [PublishStep(contracts.POOL), CallStep("0x1::aptos_account::transfer", (ALICE, 1), THIEF)]
    return _calls(
        "0xbad",
        3,
        (
            "new = amount * all_shares // coins is rounded down. When is it zero?",
            "With one share of 1 octa, and a reward larger than any deposit, a share costs more than Alice deposits.",
        ),
        [
            *start,
            PlayStep((THIEF,)),
            CallStep(f"{_POOL}deposit", (deposit,), ALICE),
            ValueStep(
                f"{_POOL}shares_of", 0, (ALICE,), says="Her deposit must get no share: make a share expensive first."
            ),
            CallStep(f"{_POOL}withdraw", (1,), THIEF, says="0xbad must have a share to withdraw."),
            _owns(
                THIEF,
                octas_after(start, THIEF) + deposit // 2,
                "With its share, 0xbad must get the pool and at least half of Alice's deposit. Is it the only share?",
            ),
        ],
    )


def fair_pool(draw: Any) -> Exercise:
    """16.4: the answer is an upgrade under which no inflation attack pays off."""
    deposit = draw(10, range(5, 40)) * APT
    start: list[Step] = [
        PublishStep(contracts.POOL),
        PublishStep(says="An upgrade must keep every struct and the signature of every entry function."),
        CallStep("0x1::aptos_account::transfer", (ALICE, 1), THIEF),
    ]
    funded = octas_after([start[0], start[2]], THIEF)
    # The first reward exceeds the deposit; after the second, the deposit buys almost two shares, and gets one.
    rewards = {
        100 * APT: "The attack of 16.3 still pays off: who pays for it?",
        deposit * 53 // 100: "With a smaller reward, Alice gets one share instead of almost two: the attack pays off.",
    }
    steps: list[Step] = []
    for first, spared in ((1, 0), (10_000, 0), (APT, 1)):
        for reward, says in rewards.items():
            steps += [*start, CallStep(f"{_POOL}deposit", (first,), THIEF, ending=Ending.EITHER)]
            if spared:  # the deposit was large, but one share of it is left
                steps.append(
                    CallStep(
                        f"{_POOL}withdraw", (), THIEF, ending=Ending.EITHER, amount=f"{_POOL}shares_of", spared=spared
                    )
                )
            steps += [
                CallStep(f"{_POOL}reward", (reward,), THIEF, ending=Ending.EITHER),
                CallStep(f"{_POOL}deposit", (deposit,), ALICE, ending=Ending.EITHER),
                CallStep(f"{_POOL}withdraw", (), THIEF, ending=Ending.EITHER, amount=f"{_POOL}shares_of"),
                _owns(THIEF, funded, says, Relation.AT_MOST),
                FreshStep(),
            ]
    steps += [
        *start,
        CallStep(f"{_POOL}deposit", (1,), ALICE, ending=Ending.EITHER),
        CallStep(f"{_POOL}reward", (100 * APT,), ALICE, ending=Ending.EITHER),
        CallStep(f"{_POOL}deposit", (1,), THIEF, ending=Ending.EITHER),
        CallStep(f"{_POOL}withdraw", (), THIEF, ending=Ending.EITHER, amount=f"{_POOL}shares_of"),
        _owns(THIEF, funded, "A deposit of 1 octa must not get a share worth more: round down.", Relation.AT_MOST),
        FreshStep(),
    ]
    honest = [start[0], CallStep("0x1::aptos_account::transfer", (ALICE, 1), BOB)]
    return _contract(
        "Pool",
        3,
        (
            "Rounding can cost a deposit up to the price of one share. Who decides how much one share costs?",
            "Let the first 1,000 shares belong to nobody: whoever adds a reward then gives most of it away.",
        ),
        [
            *steps,
            *start,
            CallStep(f"{_POOL}deposit", (10 * APT,), ALICE, says="An honest deposit must work."),
            CallStep(f"{_POOL}deposit", (4 * APT,), BOB, says="An honest deposit must work, also the second one."),
            ValueStep(f"{_POOL}coins", 14 * APT, says="The pool must count every deposit."),
            *_holds(
                "0x9001",
                octas_after([start[0], CallStep(f"{_POOL}deposit", (14 * APT,), ALICE)], "0x9001"),
                "deposit must take the coins in.",
            ),
            ValueStep(f"{_POOL}shares_of", 0, (CAROL,), says="Carol has no shares, which is not an error."),
            CallStep(
                f"{_POOL}withdraw",
                (1,),
                CAROL,
                ending=Ending.ABORT,
                says="Nobody may withdraw more shares than they have.",
            ),
            CallStep(f"{_POOL}withdraw", (), BOB, amount=f"{_POOL}shares_of", says="Shares must still be worth coins."),
            _owns(BOB, octas_after(honest, BOB) - _FEES, "With his shares, Bob must get his deposit back."),
            ValueStep(f"{_POOL}shares_of", 0, (BOB,), says="Shares that were withdrawn are gone."),
            CallStep(f"{_POOL}reward", (5 * APT,), CAROL, says="Rewards must still work."),
            CallStep(
                f"{_POOL}withdraw", (), ALICE, amount=f"{_POOL}shares_of", says="Shares must still be worth coins."
            ),
            _owns(
                ALICE,
                octas_after(honest, BOB) + 5 * APT - _FEES,
                "A reward belongs to those who have shares: Alice is the only one.",
            ),
        ],
    )


def solvent_bank(draw: Any) -> Exercise:
    """16.5: the answer is an upgrade that never owes more than it holds."""
    first, gift = draw(1_000, range(1_000, 9_000, 20)), draw(30, range(20, 49))
    bonus = first // 20
    owed, held = f"{_BANK}owed", f"{_BANK}held"
    return _contract(
        "Bank",
        3,
        (
            "What is left for a bonus is what the bank holds beyond what it owes.",
            "bonus = min(amount // 20, books.held - books.all_owed), before the deposit is recorded.",
        ),
        [
            PublishStep(contracts.BANK),
            PublishStep(says="An upgrade must keep every struct and the signature of every entry function."),
            CallStep(f"{_BANK}deposit", (first,), ALICE),
            ValueStep(owed, first, says="Nobody has paid for a bonus yet, so the bank owes only the deposit."),
            CallStep(f"{_BANK}sponsor", (gift,), CAROL),
            CallStep(f"{_BANK}deposit", (first,), BOB),
            ValueStep(
                f"{_BANK}owed_to",
                first + min(bonus, gift),
                (BOB,),
                says="The bonus is 5%, but at most what sponsors have paid for.",
            ),
            ValueStep(
                owed, 2 * first + min(bonus, gift), says="The bank owes the sum of what it owes to Alice and to Bob."
            ),
            ValueStep(held, 2 * first + gift, says="The bank holds two deposits and the gift."),
            ValueStep(f"{_BANK}owed_to", 0, (THIEF,), says="The bank owes nothing to others, which is not an error."),
            CallStep(
                f"{_BANK}withdraw",
                (1,),
                THIEF,
                ending=Ending.ABORT,
                says="Nobody may get more than the bank owes them.",
            ),
            CallStep(
                f"{_BANK}withdraw",
                (first + 1,),
                ALICE,
                ending=Ending.ABORT,
                says="Nobody may get more than the bank owes them.",
            ),
            CallStep(f"{_BANK}sponsor", (first,), CAROL),
            CallStep(f"{_BANK}deposit", (first,), CAROL),
            ValueStep(
                f"{_BANK}owed_to", first + bonus, (CAROL,), says="If sponsors have paid enough, the bonus is 5% again."
            ),
            *(
                CallStep(
                    f"{_BANK}withdraw",
                    (amount,),
                    owner,
                    says="Everyone must be able to withdraw, even the last depositor.",
                )
                for owner, amount in ((BOB, first + min(bonus, gift)), (CAROL, first + bonus), (ALICE, first))
            ),
            ValueStep(owed, 0, says="Once everyone has been paid, the bank must owe nothing."),
            ValueStep(
                held,
                gift + first - min(bonus, gift) - bonus,
                says="What is left is what sponsors have given beyond the bonuses.",
            ),
        ],
    )


def shared_dividends(draw: Any) -> Exercise:
    """16.6: the answer is a contract whose gas does not grow with the number of members."""
    members = [f"0xd{number:03x}" for number in range(40)]
    first, second = draw(5, range(3, 20)), draw(7, range(3, 20))
    earned = f"{_DIVIDENDS}earned_by"
    return _contract(
        "Dividends",
        3,
        (
            "Store what each member has been paid so far as a single number for all members.",
            "A member who joins later remembers that number: what they have earned is the difference.",
        ),
        [
            PublishStep(says="This is a new contract: its structs may differ from the original ones."),
            CallStep(f"{_DIVIDENDS}join", (), ALICE),
            CallStep(f"{_DIVIDENDS}pay", (first,), BOB),
            *(CallStep(f"{_DIVIDENDS}join", (), member) for member in members),
            CallStep(f"{_DIVIDENDS}join", (), ALICE, ending=Ending.ABORT, says="Nobody can join twice."),
            CallStep(f"{_DIVIDENDS}pay", (second,), BOB),
            ValueStep(
                earned, first + second, (ALICE,), says="Alice was there from the start: she has earned both payments."
            ),
            ValueStep(earned, second, (members[-1],), says="A member who joins later has earned what was paid since."),
            ValueStep(earned, 0, (CAROL,), says="Carol is not a member."),
            GasStep(
                f"{_DIVIDENDS}pay",
                60,
                (1,),
                BOB,
                says="With 41 members, pay must cost as much as with one, so it cannot visit each member.",
            ),
        ],
    )


def raffle(draw: Any) -> Exercise:
    """17.1: the answer is the contract of the capstone."""
    first, second = draw(3, range(2, 6)), draw(2, range(2, 6))
    return _contract(
        "Raffle",
        4,
        (
            "buy appends the signer once for each ticket: for _ in self.each(range(count)).",
            "tickets_of counts: sum([u64(1) for one in self.each(owners) if one == owner]).",
        ),
        [
            PublishStep(),
            CallStep(
                f"{_RAFFLE}buy",
                (0,),
                BOB,
                ending=Ending.ABORT,
                abort_code="E_NONE",
                says="Buying 0 tickets must abort with E_NONE.",
            ),
            CallStep(f"{_RAFFLE}buy", (first,), BOB),
            CallStep(f"{_RAFFLE}buy", (second,), ALICE),
            CallStep(f"{_RAFFLE}buy", (1,), BOB),
            ValueStep(f"{_RAFFLE}tickets_of", first + 1, (BOB,), says="Bob has bought tickets twice, and both count."),
            ValueStep(f"{_RAFFLE}tickets_of", second, (ALICE,), says="Alice has her own tickets."),
            ValueStep(f"{_RAFFLE}tickets_of", 0, (CAROL,), says="Carol has no tickets, which is not an error."),
            ValueStep(
                f"{_RAFFLE}owner_of",
                BOB,
                (0,),
                says="Tickets are numbered from 0, in the order in which they are sold.",
            ),
            ValueStep(f"{_RAFFLE}owner_of", ALICE, (first,), says="The tickets after Bob's first ones are Alice's."),
            ValueStep(f"{_RAFFLE}owner_of", BOB, (first + second,), says="The last ticket is Bob's."),
            ValueStep(
                f"{_RAFFLE}owner_of",
                arguments=(first + second + 1,),
                abort_code="E_NO_TICKET",
                says="The ticket after the last one has not been sold.",
            ),
            CallStep(
                f"{_RAFFLE}buy", (0,), ALICE, ending=Ending.ABORT, abort_code="E_NONE", says="Nobody can buy 0 tickets."
            ),
        ],
    )


def cheaper_raffle(draw: Any) -> Exercise:
    """17.2: the answer is an upgrade of the raffle."""
    each = draw(6, range(5, 8))
    buyers = [ALICE, BOB, CAROL] * 12
    return _contract(
        "Raffle",
        4,
        (
            "Count the tickets of each owner in a Table of a new resource, when they buy.",
            "For an owner who is not in the table yet, count once, as before, and store that with the next purchase.",
        ),
        [
            PublishStep(contracts.SOLD_RAFFLE),
            *(CallStep(f"{_RAFFLE}buy", (each,), buyer) for buyer in buyers),
            PublishStep(
                says="An upgrade keeps every struct and the signature of every public, entry and view function."
            ),
            ValueStep(f"{_RAFFLE}tickets_of", 12 * each, (BOB,), says="Tickets bought before the upgrade must count."),
            CallStep(f"{_RAFFLE}buy", (2,), ALICE),
            ValueStep(
                f"{_RAFFLE}tickets_of",
                12 * each + 2,
                (ALICE,),
                says="Tickets bought before and after the upgrade must count, each once.",
            ),
            CallStep(f"{_RAFFLE}buy", (1,), ALICE),
            ValueStep(f"{_RAFFLE}tickets_of", 12 * each + 3, (ALICE,), says="The next purchase must count too."),
            ValueStep(f"{_RAFFLE}tickets_of", 12 * each, (BOB,), says="Alice's purchases do not change what Bob has."),
            CallStep(f"{_RAFFLE}buy", (2,), THIEF),
            ValueStep(
                f"{_RAFFLE}tickets_of", 2, (THIEF,), says="Someone who buys for the first time has new tickets only."
            ),
            CallStep(
                f"{_RAFFLE}buy",
                (0,),
                BOB,
                ending=Ending.ABORT,
                abort_code="E_NONE",
                says="Buying 0 tickets must still abort with E_NONE.",
            ),
            ValueStep(
                f"{_RAFFLE}owner_of",
                ALICE,
                (36 * each + 2,),
                says="Tickets keep their numbers: this is the last one that Alice bought.",
            ),
            ValueStep(
                f"{_RAFFLE}owner_of",
                arguments=(36 * each + 5,),
                abort_code="E_NO_TICKET",
                says="The ticket after the last one has not been sold.",
            ),
            GasStep(
                f"{_RAFFLE}tickets_of",
                30,
                (ALICE,),
                says="Alice has bought since the upgrade: read her stored count instead of counting again.",
            ),
        ],
    )


def watched_raffle(draw: Any) -> Exercise:
    """17.3: the answer is the calls that a gate watches, and their limit."""
    each = draw(6, range(5, 9))
    slower = contracts.SOLD_RAFFLE.replace(
        "        return sum([u64(1) for one in self.each(owners) if one == owner])\n",
        "        found = u64(0)\n"
        "        for one in self.each(owners):\n"
        "            if one == owner:\n"
        "                for again in self.each(range(20)):\n"
        "                    again += 1\n"
        "                found += 1\n"
        "        return found\n",
    )
    harmless = contracts.SOLD_RAFFLE.replace('"Buy at least one ticket"', '"Buy one ticket at least"')
    return Exercise(
        AnswerKind.RULES,
        (
            "A gate judges only what it watches: for whom did tickets_of become more expensive?",
            'Watch tickets_of for "0xa11ce", who has tickets, and allow a rise of 10%.',
        ),
        unit='{"calls": {label: [function, arguments]}, "thresholds": limit}',
        points=3,
        steps=(
            PublishStep(contracts.SOLD_RAFFLE),
            *(CallStep(f"{_RAFFLE}buy", (each,), buyer) for buyer in [ALICE, BOB] * 3),
            MarkStep(),
            PublishStep(harmless),
            GateStep(
                {}, passes=True, says="This upgrade only rewords an error message, and the gate must let it pass."
            ),
            MarkStep(),
            PublishStep(slower),
            GateStep(
                {},
                passes=False,
                says="This upgrade is slower for everyone who has tickets. Which call shows it, with which argument?",
            ),
        ),
    )


STORIES = {
    "06.4": swapped_names,
    "08.4": tidied_up,
    "12.4": savings,
    "12.5": cheaper_jar,
    "14.4": caught_by_a_gate,
    "16.1": stolen_from_a_vault,
    "16.2": closed_vault,
    "16.3": inflated_pool,
    "16.4": fair_pool,
    "16.5": solvent_bank,
    "16.6": shared_dividends,
    "17.1": raffle,
    "17.2": cheaper_raffle,
    "17.3": watched_raffle,
}
STARTS = {
    "12.4": contracts.SAVINGS,
    "12.5": contracts.JAR,
    "16.2": contracts.VAULT,
    "16.4": contracts.POOL,
    "16.5": contracts.BANK,
    "16.6": contracts.DIVIDENDS,
    "17.1": contracts.RAFFLE,
    "17.2": contracts.SOLD_RAFFLE,
}
"""Starting code of the ``%%contract`` cells in student copies, by exercise."""
