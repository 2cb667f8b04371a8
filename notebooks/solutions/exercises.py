"""The exercises of the course: solutions, known mistakes and hints, computed on the embedded ledger.

``python notebooks/make_course.py`` stores them in ``toolkit/teaching/exercises.json``, where `toolkit.teaching.check`
finds them. Students do not receive this file.
"""

from __future__ import annotations

import re
from calendar import monthrange
from functools import cache
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any

from club_module import grown
from msgspec.structs import replace
from stories import STORIES

from toolkit import (
    EntryFunction,
    FindSteps,
    Study,
    ViewFunction,
    address,
    connect,
    fetch_simulations,
    fetch_table_items,
    fetch_transactions,
    fetch_views,
    table_keys,
    timeline,
)
from toolkit.embedded import (
    Event,
    Ledger,
    Module,
    Resource,
    entry,
    invalid_argument,
    signer,
    u64,
    vector,
    view,
)
from toolkit.embedded import (
    address as move_address,
)
from toolkit.teaching._exercises import AnswerKind, Exercise

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd

    from toolkit import Node, Simulation
    from toolkit.wire import GasBreakdown

_COMPUTED: dict[str, tuple[str, str, Callable[[Node], Exercise]]] = {}


class Draw:
    """The values that differ between classes: random values if there is a seed, otherwise those of the lessons.

    Parameters
    ----------
    name : str
        Number of the exercise.
    seed : int or None
        Seed of the class.
    """

    def __init__(self, name: str = "", seed: int | None = None) -> None:
        self._random = None if seed is None else Random(f"{seed} {name}")  # noqa: S311 - no secret
        self.words: dict[str, str] = {}

    def __call__(self, usual: Any, others: Sequence[Any] = ()) -> Any:
        """Return a value that does not appear in the text of the exercise."""
        return usual if self._random is None or not others else self._random.choice(list(others))

    def shown(self, usual: int, others: Sequence[int], *forms: Callable[[int], str]) -> int:
        """Return a value that appears in the text; `forms` format it in the ways that the text does."""
        drawn: int = self(usual, others)
        written = forms or (lambda number: f"{number:,}", lambda number: f"{number:_}")
        self.words |= {form(usual): form(drawn) for form in written} if drawn != usual else {}
        return drawn

    def text(self, text: str) -> str:
        """Return a text of the exercise with the drawn values in it."""
        if not self.words:
            return text
        usual = "|".join(re.escape(one) for one in sorted(self.words, key=len, reverse=True))
        return re.sub(rf"(?<![\w,.])(?:{usual})(?![\w]|,\d)", lambda found: self.words[found[0]], text)


_DRAW = Draw()


def exercises(seed: int | None = None) -> dict[str, tuple[Exercise, Draw]]:
    """Return every exercise by number, with the values drawn for it."""
    global _DRAW  # noqa: PLW0603 - the functions below draw from it
    found = {}
    for name, (unit, slips, compute) in _COMPUTED.items():
        _DRAW = draw = Draw(name, seed)
        one = compute(_node())
        mistakes = tuple((value, draw.text(text)) for value, text in one.mistakes if value != one.solution)
        hints = (draw.text(one.hints[0]), draw.text(one.hints[1]))
        found[name] = replace(one, unit=unit, slips=slips, mistakes=mistakes, hints=hints), draw
    for name, story in STORIES.items():
        draw = Draw(name, seed)
        found[name] = story(draw), draw
    return dict(sorted(found.items()))


@cache
def _node() -> Node:
    """Return the node of all classes, which reads and searches once what several exercises use."""
    return connect()


def _value(
    solution: int | str, *, hints: tuple[str, str], mistakes: tuple[tuple[int | str, str], ...] = ()
) -> Exercise:
    """Return an exercise whose answer is a number or text."""
    kind = AnswerKind.NUMBER if isinstance(solution, int) else AnswerKind.TEXT
    return Exercise(kind, hints, solution=solution, mistakes=mistakes)


def _numbered(name: str, unit: str, slips: str) -> Callable[[Callable[[Node], Exercise]], Callable[[Node], Exercise]]:
    """Return a decorator that registers an exercise under its number.

    `unit` describes the answer; `slips` is the feedback on wrong answers that are not among the known mistakes.
    """

    def enter(compute: Callable[[Node], Exercise]) -> Callable[[Node], Exercise]:
        _COMPUTED[name] = unit, slips, compute
        return compute

    return enter


def _gas(simulation: Simulation) -> GasBreakdown:
    """Return the gas breakdown of a simulation, which the embedded ledger always reports."""
    parts = simulation.gas
    if parts is None:
        raise ValueError("the node did not report what the gas was spent on")
    return parts


# -- 01 First look ---------------------------------------------------------------------------------------------

_SIZE = ViewFunction("0xcafe::registry::size")
_SUPPLY = ViewFunction("0x1::coin::supply", type_arguments=["0x1::aptos_coin::AptosCoin"])


@_numbered(
    "01.1",
    "names",
    "Did you call this function, and at the head?",
)
def _names_at_the_head(node: Node) -> Exercise:
    size = node.view(_SIZE)
    return _value(
        size.value,
        mistakes=((size.gas_used, "This is the gas that the call used. Which attribute has the value?"),),
        hints=('node.view("0xcafe::registry::size") asks the question.', "The attribute is .value."),
    )


@_numbered(
    "01.2",
    "octas",
    "Check the two versions, and that both values come from the same function.",
)
def _fall_of_the_supply(node: Node) -> Exercise:
    version = _DRAW.shown(1_000, range(600, 1_600, 100))
    before, now = node.at(version).view(_SUPPLY).value, node.view(_SUPPLY).value
    return _value(
        before - now,
        mistakes=(
            (now - before, "The size is right, but not the sign: a fall of 5 is the number 5, not -5."),
            (now, "This is the supply at the head. How far did it fall?"),
            (before, "This is the supply at version 1,000. How far did it fall from there?"),
            (node.at(102).view(_SUPPLY).value - now, "This is the fall since version 102, as in the figure."),
        ),
        hints=(
            "You need two values: one at version 1,000, one at the head.",
            "Subtract the later one from the earlier one.",
        ),
    )


# -- 02 Ledger versions, snapshots and pruning -----------------------------------------------------------------


_ENDS_OF_A_MONTH = "Check the two ends: in which month was the transaction at each of your two versions made?"


@_numbered(
    "02.1",
    "transactions",
    "Check that both ends are the right days, and that you counted transactions, not versions since 0.",
)
def _transactions_of_a_month(node: Node) -> Exercise:
    names = ("February", "March", "April", "May", "June")
    month = _DRAW(3, (2, 3, 4, 5))
    days = [f"2026-{month:02}-01", f"2026-{month + 1:02}-01", f"2026-{month:02}-{monthrange(2026, month)[1]}"]
    usual = ("March", "April", "2026-03-01", "2026-04-01")
    drawn = (names[month - 2], names[month - 1], *days[:2])
    _DRAW.words |= {old: new for old, new in zip(usual, drawn, strict=True) if old != new}
    first, last, day = (node.version_at(date) for date in days)
    return _value(
        last - first,
        mistakes=(
            *((last - first + off, _ENDS_OF_A_MONTH) for off in (1, -1)),
            (last, "This counts every transaction before April, including those before March."),
            (first, "This counts the transactions before March."),
            (day - first, "This ends before the last day of March."),
            (first - last, "Subtract the earlier version from the later one."),
        ),
        hints=(
            "node.version_at(date) is the first version at or after the beginning of that date.",
            "March ends where April begins: ask for both dates and subtract.",
        ),
    )


@_numbered(
    "02.2",
    "ledger version",
    "Check the range, and that you answer with the version rather than the row number.",
)
def _first_version_with_20_names(node: Node) -> Exercise:
    frame = fetch_views(node, _SIZE, "0:300", progress=False)
    names = _DRAW.shown(20, range(14, 32), "{} names".format, ">= {}".format)
    first = int(frame.loc[frame["value"] >= names, "ledger_version"].min())
    more = int(frame.loc[frame["value"] > names, "ledger_version"].min())
    return _value(
        first,
        mistakes=(
            (first - 1, "At this version there are fewer than 20 names."),
            (more, "At this version there are more than 20 names. Look for the first one with 20 or more."),
            (names, "This is the number of names. At which version are there that many?"),
        ),
        hints=(
            'fetch_views(node, names.call, "0:300") has a row for each version.',
            'Keep the rows with frame["value"] >= 20 and take the smallest ledger_version.',
        ),
    )


@_numbered(
    "02.3",
    "ledger version",
    "Count the versions that your answer would keep, both ends included.",
)
def _oldest_version_of_a_window(node: Node) -> Exercise:
    head = node.ledger().version
    kept = _DRAW.shown(1_000, (700, 900, 1_100, 1_300))
    _DRAW.words |= {"4,000": f"{head - kept + 1:,}"} if _DRAW.words else {}
    return _value(
        head - kept + 1,
        mistakes=(
            (head - kept, "Test your rule: which is the oldest version of a node that only keeps the head?"),
            (kept, "This is the number of versions. Which of them is the oldest?"),
            (head, "This is the newest version."),
            (4_003, "This is the node of the lesson, which prunes whole blocks. Here, blocks do not matter."),
        ),
        hints=(
            "Try a small case: the head is 9, and 3 versions are kept. Which ones?",
            "Both ends count: the head is one of the versions that are kept.",
        ),
    )


# -- 03 View functions and types -------------------------------------------------------------------------------


@_numbered(
    "03.1",
    "the name of a function",
    "Check the module, and that you answer with a view function rather than a struct.",
)
def _function_added_by_an_upgrade(node: Node) -> Exercise:
    before, now = (place.contract("0xfa17::vault") for place in (node.at(2_000), node))
    names = [{one.name for one in each.abi.exposed_functions if one.is_view} for each in (before, now)]
    (added,) = names[1] - names[0]
    return _value(
        f"0xfa17::vault::{added}",
        mistakes=(
            *((f"0xfa17::vault::{old}", "This function existed at version 2,000.") for old in sorted(names[0])),
            *((f"0xfa17::vault::{one}", "This is an entry function.") for one in ("deposit", "harvest", "withdraw")),
        ),
        hints=(
            'Compare node.contract("0xfa17::vault") with node.at(2_000).contract("0xfa17::vault").',
            "Only view functions count.",
        ),
    )


@_numbered(
    "03.2",
    "an address",
    "Check the name and the version that you read.",
)
def _owner_of_a_name(node: Node) -> Exercise:
    record_of = node.contract("0xcafe::registry").record_of
    asked = _DRAW.shown(500, range(300, 1_000, 50))
    first, then, last = (record_of.at(version, "oak-31")["owner"] for version in (180, asked, 4_999))
    return _value(
        then,
        mistakes=(
            (last, "This is a later owner. Who was it at version 500?"),
            (first, "This is an earlier owner. Who was it at version 500?"),
            ("0xa11ce", 'This is the owner of "alice".'),
        ),
        hints=(
            'registry.record_of.at(500, "oak-31") is the record at that version.',
            'The record has an item "owner".',
        ),
    )


@_numbered(
    "03.3",
    "rows",
    "Check the versions, and that you count rows with an error code rather than empty values.",
)
def _rows_without_a_record(node: Node) -> Exercise:
    frame = node.contract("0xcafe::registry").record_of.over("0:-1/100", "willow-14", progress=False)
    missing = int(frame["error_code"].notna().sum())
    return _value(
        missing,
        mistakes=(
            (len(frame) - missing, "These are the rows with a record. How many rows have no record?"),
            (len(frame), "This counts every row."),
        ),
        hints=(
            'registry.record_of.over("0:-1/100", "willow-14") has a row for each version.',
            "A row without a record has an error code: count where error_code is not empty, with .notna().sum().",
        ),
    )


# -- 04 Exact numbers ------------------------------------------------------------------------------------------


@_numbered(
    "04.1",
    "the number itself",
    "Are you off by one from a power of two, or is this the number of digits?",
)
def _first_number_that_is_no_float(_: Node) -> Exercise:
    number = next(2**bits + 1 for bits in range(64) if int(float(2**bits + 1)) != 2**bits + 1)
    return _value(
        number,
        mistakes=(
            (number - 1, "int(float(...)) of this number is the same number, so a float can hold it."),
            (number + 1, "A float can hold this one. There is a smaller number that it cannot hold."),
            (number - 2, "int(float(...)) of this number is the same number, so a float can hold it."),
        ),
        hints=(
            "A float has 53 binary digits, and a power of two needs only one of them.",
            "Try int(float(x)) == x for the numbers around 2**53.",
        ),
    )


@_numbered(
    "04.2",
    "octas",
    "Check that all four accounts are included, and that no float has rounded the sum.",
)
def _sum_above_64_bits(_: Node) -> Exercise:
    others = _DRAW.shown(1_000, range(1_100, 9_000, 100))
    held = [2**64 - 1, others, others, others]
    return _value(
        sum(held),
        mistakes=(
            (sum(held) % 2**64, "This sum wrapped around: it is smaller than one of its parts."),
            (int(float(sum(held))), "This number was a float at some point, and lost its last digits."),
        ),
        hints=("Compare your answer with the largest of the four numbers.", "toolkit.exact_sum adds a column exactly."),
    )


@_numbered(
    "04.3",
    "units, as a negative number",
    "Check the range of versions, and that you compare neighbouring rows.",
)
def _largest_fall_of_the_depth(node: Node) -> Exercise:
    frame = fetch_views(node, ViewFunction("0xb00c::order_book::depth"), "10:-1/100", progress=False)
    changes = [int(after) - int(before) for before, after in pairwise(frame["value"])]
    return _value(
        min(changes),
        mistakes=(
            (-min(changes), "The size is right, but not the sign: a fall is a negative change."),
            (max(changes), "This is the largest rise."),
            (min(changes) % 2**64, "This difference wrapped around. Which function subtracts exactly?"),
        ),
        hints=('depth["change"] has the change of each row.', "The largest fall is the smallest change."),
    )


# -- 05 Table items and keys -----------------------------------------------------------------------------------


@_numbered(
    "05.1",
    "seconds since 1970",
    "Check the name, and answer with the number of seconds rather than a date.",
)
def _second_of_a_registration(node: Node) -> Exercise:
    oak, alice = (node.contract("0xcafe::registry").record_of(name)["registered_at"] for name in ("oak-31", "alice"))
    return _value(
        oak,
        mistakes=((alice, 'This is when "alice" was registered.'),),
        hints=(
            'Read the item of "oak-31" as the lesson reads that of "alice".',
            'item.value is a dictionary; its key is "registered_at".',
        ),
    )


@_numbered(
    "05.2",
    "names",
    "Check the version, and the range of transactions that the keys come from.",
)
def _names_of_alice(node: Node) -> Exercise:
    asked = _DRAW.shown(499, range(349, 949, 50))
    items = _items_of_the_first_thousand(node, [asked, 999])
    early, late = (
        [record["owner"] for record in items.loc[items["ledger_version"] == version, "value"].dropna()]
        for version in (asked, 999)
    )
    alice = address("0xa11ce")
    return _value(
        early.count(alice),
        mistakes=(
            (late.count(alice), "This is how many she owned at version 999, as in the figure."),
            (len(early), "These are the names of all owners."),
            (len(set(early)), "This is the number of owners."),
            (0, "In a frame, addresses have their long form."),
        ),
        hints=(
            "Copy the cells from items to owners, with versions=[499].",
            'owners has the number of names per owner; owners[toolkit.address("0xa11ce")] is hers.',
        ),
    )


@_numbered(
    "05.3",
    "keys",
    "Check the range of transactions for the keys, and the version for the size.",
)
def _keys_that_are_missing(node: Node) -> Exercise:
    registry = node.contract("0xcafe::registry")
    ends = (lambda count: f"0:{count - 1}", lambda count: f"{count - 1:,}", lambda count: f"{count - 1:_}")
    last = _DRAW.shown(2_000, (1_500, 1_750, 2_250, 2_500, 3_000), "{:,}".format, *ends) - 1
    keys, early = (len(_keys_until(node, version)) for version in (last, 999))
    left, size = registry.size.at(last), registry.size.at(999)
    return _value(
        keys - left,
        mistakes=(
            (left, "These keys are in the table. How many are not?"),
            (keys, "These are all keys that were ever written. How many of them are gone?"),
            (early - size, "This is the number of missing keys at version 999."),
        ),
        hints=(
            'toolkit.table_keys finds the keys in toolkit.fetch_transactions(node, "0:1999").',
            "registry.size.at(1_999) is the number of names that are left.",
        ),
    )


def _keys_until(node: Node, last: int) -> pd.Series[str]:
    """Return the keys that transactions up to a version wrote to the registry's table."""
    keys = _keys(node)
    return keys.loc[keys["first_version"] <= last, "key"]


@cache
def _keys(node: Node) -> pd.DataFrame:
    """Return the keys up to the last version that an exercise asks for."""
    handle = node.contract("0xcafe::registry").handle()
    return table_keys(fetch_transactions(node, "0:2999", progress=False), handle, key_type="0x1::string::String")


def _items_of_the_first_thousand(node: Node, versions: list[int]) -> pd.DataFrame:
    """Return the registry's table items at each version, for the keys written by the first 1,000 transactions."""
    text, record = "0x1::string::String", "0xcafe::registry::Record"
    handle = node.contract("0xcafe::registry").handle()
    keys = _keys_until(node, 999)
    return fetch_table_items(node, handle, keys, versions=versions, key_type=text, value_type=record, progress=False)


# -- 06 Simulating a transaction -------------------------------------------------------------------------------


@_numbered(
    "06.1",
    "the name of an error",
    "Check that you read the error of this attempt.",
)
def _name_of_an_abort(node: Node) -> Exercise:
    status = _payment_of_too_much(node).vm_status
    name = status.split(": ", 1)[1].split("(", 1)[0]
    return _value(
        f"{status.removeprefix('Move abort in ').split(': ')[0]}::{name}",
        mistakes=(
            (status, "This is the whole status. The name of the error is one word of it, in capital letters."),
            ("E_TAKEN", "This is the error of the registry. What does the transfer abort with?"),
            (status.split("(", 1)[1].split(")", 1)[0], "This is the code of the error. Its name is before it."),
            (status.split(": ", 1)[1].split(":")[0], "This is the name with the code. Answer with the name alone."),
        ),
        hints=(
            'transfer("0xa11ce", 10_000_000_000_000, sender="0xb0b") simulates the attempt.',
            "Read .vm_status; the name is in capital letters, before the code in brackets.",
        ),
    )


@_numbered(
    "06.2",
    "octas",
    "Check the amount, the sender and the receiver of the transaction that fails.",
)
def _fee_of_a_failure(node: Node) -> Exercise:
    simulation = _payment_of_too_much(node)
    return _value(
        _gas(simulation).fee_octas,
        mistakes=(
            (simulation.gas_used, "This is in gas units. Each costs 100 octas."),
            (0, "A failed transaction did work too, and pays for it."),
            (10**13, "This is what he tries to send. What does he pay for trying?"),
            (7_500, "This is the fee of the payment at the beginning of the lesson, which succeeds."),
        ),
        hints=("Look at .gas_used of the simulation.", "The fee is gas used times the gas price."),
    )


@_numbered(
    "06.3",
    "receivers",
    "Check the end of your range: range(31, 81) has the numbers 31 to 80.",
)
def _new_receivers(node: Node) -> Exercise:
    transfer = node.contract("0x1::aptos_account").transfer
    first = _DRAW.shown(31, (17, 22, 27), lambda one: f"{one} to {one + 49}", lambda one: f"range({one}, {one + 50})")
    receivers = [f"0x9e3{number:04x}" for number in [*range(first, first + 50), *range(41, 91)]]
    requests = [transfer.request(one, 1_000, sender="0xa11ce") for one in receivers]
    storage = fetch_simulations(node, requests, progress=False).transactions["storage_fee_octas"]
    new, before = (int((part > 0).sum()) for part in (storage.iloc[:50], storage.iloc[50:]))
    return _value(
        new,
        mistakes=(
            (before, "This is the number of new receivers in the batch of the lesson."),
            (50 - new, "These are the receivers that already exist. How many are new?"),
            (50, "This counts all receivers, but some of them already exist."),
        ),
        hints=("Copy the batch of the lesson with range(31, 81).", "A payment to a new address pays for storage."),
    )


def _payment_of_too_much(node: Node) -> Simulation:
    """Return the simulation of a payment by Bob that exceeds his balance."""
    return node.simulate(EntryFunction("0x1::aptos_account::transfer", ["0xa11ce", 10**13]), sender="0xb0b")


# -- 07 State changes, events and balances ---------------------------------------------------------------------


@_numbered(
    "07.1",
    "shares",
    "Check the deposit, and that you read the shares rather than the amount.",
)
def _shares_for_a_deposit(node: Node) -> Exercise:
    deposit, amount = _deposit_of_bob(node)
    shares = int(deposit.events_of("0xfa17::vault::Deposited")["shares"].iloc[0])
    return _value(
        shares,
        mistakes=(
            (amount, "This is what he deposits, in octas. How many shares does he get for it?"),
            (node.contract("0xfa17::vault").balance_of("0xb0b"), "These are the shares that he has now."),
        ),
        hints=(
            'Simulate vault.deposit(500_000_000, sender="0xb0b").',
            'Its .events_of("0xfa17::vault::Deposited") has a column shares.',
        ),
    )


@_numbered(
    "07.2",
    "octas, negative if he has less afterwards",
    "Check the owner of the row, and that the fee is included.",
)
def _change_of_a_balance(node: Node) -> Exercise:
    deposit, amount = _deposit_of_bob(node)
    changes = deposit.balance_changes
    change = int(changes.loc[changes["owner"] == address("0xb0b"), "change"].iloc[0])
    return _value(
        change,
        mistakes=(
            (-change, "The size is right. Does he have more or less afterwards?"),
            (-amount, "This is the deposit without the fee."),
            (amount, "This is what the vault gets. What happens to Bob's balance?"),
            (change + 2 * _gas(deposit).fee_octas, "He also pays the fee, so his balance falls by more."),
        ),
        hints=("balance_changes has a row for each owner.", "The column change includes the fee."),
    )


@_numbered(
    "07.3",
    "octas",
    "Check that you add up octas rather than gas units, and where your transactions begin.",
)
def _fees_since_a_version(node: Node) -> Exercise:
    transactions = fetch_transactions(node, "-100:", progress=False)
    first = _DRAW.shown(4_950, range(4_920, 4_980, 5))
    fees = [
        (int(version), int(octas))
        for version, octas in transactions.balance_changes[["ledger_version", "fee_octas"]].itertuples(index=False)
    ]
    column = [octas for version, octas in fees if version >= first]
    used = transactions.transactions
    return _value(
        sum(column),
        mistakes=(
            (
                sum(int(gas) for gas in used.loc[used["ledger_version"] >= first, "gas_used"]),
                "This is in gas units. What did they cost?",
            ),
            (sum(octas for octas in column if octas > 0), "This leaves out the refunds, which count with their sign."),
            (sum(octas for _, octas in fees), "This is the sum for all hundred transactions."),
            (sum(octas for version, octas in fees if version > first), "Version 4,950 counts too."),
        ),
        hints=(
            'balances[balances["ledger_version"] >= 4_950] has the rows that count.',
            'Add up their column "fee_octas"; toolkit.exact_sum adds a column exactly.',
        ),
    )


def _deposit_of_bob(node: Node) -> tuple[Simulation, int]:
    """Return the simulation of Bob's deposit into the vault, and its amount in octas."""
    amount = _DRAW.shown(500_000_000, range(200_000_000, 900_000_000, 20_000_000))
    return node.simulate(EntryFunction("0xfa17::vault::deposit", [amount]), sender="0xb0b"), amount


# -- 08 What gas is made of ------------------------------------------------------------------------------------


@_numbered(
    "08.1",
    "octas",
    "Only two parts depend on the gas price. Check which, and that you do not round the parts before adding them.",
)
def _fee_at_a_higher_price(node: Node) -> Exercise:
    register = node.contract("0xcafe::registry").register.call("zoe")
    price = _DRAW.shown(200, (160, 320, 400, 800), "{} octas".format, "gas_unit_price={}".format)
    cheap, dear = (node.simulate(register, sender="0xa11ce", gas_unit_price=octas) for octas in (100, price))
    fee, storage = _gas(dear).fee_octas, _gas(dear).storage_fee_octas
    if _DRAW.words:
        _DRAW.words |= {"13,000": f"{fee - storage:,}", "443,400": f"{fee:,}", "2,217": f"{dear.gas_used:,}"}
    return _value(
        fee,
        mistakes=(
            (
                cheap.gas_used * price,
                "This charges everything at the new price. Which part is priced in octas, whatever the gas price?",
            ),
            (_gas(cheap).fee_octas, "This is the fee at a gas price of 100. Some parts of it depend on the price."),
            (dear.gas_used, "This is in gas units. A gas unit costs 200 octas."),
            (cheap.gas_used, "This is in gas units, at a gas price of 100."),
            (storage, "This is the storage fee alone."),
            (fee - storage, "This leaves out the storage fee."),
        ),
        hints=(
            "Only execution and io depend on the gas price; storage does not.",
            "Simulate with gas_unit_price=200 and read .gas.fee_octas.",
        ),
    )


@_numbered(
    "08.2",
    "octas",
    "Check that the two names differ by one character, and that you compare octas rather than gas units.",
)
def _octas_per_character(node: Node) -> Exercise:
    register = node.contract("0xcafe::registry").register
    short, long = (node.simulate(register.call(name), sender="0xa11ce") for name in ("zoe", "zoey"))
    octas = _gas(long).storage_fee_octas - _gas(short).storage_fee_octas
    return _value(
        octas,
        mistakes=(
            (long.gas_used - short.gas_used, "This is in gas units. What are they in octas, at a price of 100?"),
            (
                _gas(short).storage_fee_octas,
                "This is the storage fee of the whole record. What does one more character add?",
            ),
        ),
        hints=(
            "Simulate registering two names, one of them a character longer.",
            "Compare .gas.storage_fee_octas of the two simulations.",
        ),
    )


@_numbered(
    "08.3",
    "octas, negative if Alice gets money back",
    "Check the name, and that you subtract the refund from the fee.",
)
def _net_cost_of_a_release(node: Node) -> Exercise:
    gas = _gas(node.simulate(EntryFunction("0xcafe::registry::release", ["alice"]), sender="0xa11ce"))
    fee, net = gas.fee_octas, gas.net_octas
    return _value(
        net,
        mistakes=(
            (fee, "This is the fee before the refund."),
            (-net, "The size is right. Does she pay it or receive it?"),
            (net - fee, "This is the refund alone. She also pays a fee."),
            (fee - net, "This is the refund alone. She also pays a fee."),
        ),
        hints=(
            "What she pays in the end is the fee minus the refund.",
            "The fee is the gas units charged times 100 octas; the table has the refund in octas.",
        ),
    )


# -- 09 Gas across versions ------------------------------------------------------------------------------------


_BEST_BID = ViewFunction("0xb00c::order_book::best_bid")


@_numbered(
    "09.1",
    "ledger version",
    "Check where the search begins, and that you read version_after.",
)
def _version_of_a_fall(node: Node) -> Exercise:
    steps = _steps(node, _BEST_BID)
    fall = steps[steps["change"] < 0].iloc[0]
    rise = steps[steps["change"] > 0].iloc[0]
    return _value(
        int(fall["version_after"]),
        mistakes=(
            (
                int(fall["version_before"]),
                "This is the last version with the old gas. What is the first version with the new gas?",
            ),
            (int(rise["version_after"]), "At this version its gas rises."),
            (int(fall["gas_after"]), "This is the gas after the fall. At which version does it fall?"),
        ),
        hints=(
            'Copy the study of the lesson, with calls={"bid": node.contract("0xb00c::order_book").best_bid.call()}.',
            "One change in run.steps is negative; version_after is the first version with the new gas.",
        ),
    )


@_numbered(
    "09.2",
    "gas units",
    "Check that you read the last row, and the column gas_after.",
)
def _gas_after_the_last_step(node: Node) -> Exercise:
    last = _steps(node, _SIZE).iloc[-1]
    return _value(
        int(last["gas_after"]),
        mistakes=(
            (int(last["gas_before"]), "This is the gas before the step."),
            (int(last["change"]), "This is the change. What does it cost afterwards?"),
            (int(last["version_after"]), "This is the version of the step. What does the call cost there?"),
        ),
        hints=(
            'Copy the study of the lesson, with calls={"names": node.contract("0xcafe::registry").size.call()}.',
            "The last row of run.steps has a column gas_after.",
        ),
    )


@_numbered(
    "09.3",
    "reads",
    "Count how often the number of versions can be halved; every read halves once.",
)
def _reads_to_find_a_step(_: Node) -> Exercise:
    versions = _DRAW.shown(1_000_000, (50_000, 200_000, 5_000_000, 20_000_000))
    reads = (versions - 1).bit_length()
    if _DRAW.words:
        power = str(reads).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
        _DRAW.words |= {"2²⁰": f"2{power}", "1,048,576": f"{2**reads:,}", "20 reads": f"{reads} reads"}
    return _value(
        reads,
        mistakes=(
            (versions // 2, "After the first read in the middle, half of the versions are left. Keep halving."),
            (reads - 1, "This many reads can distinguish two to that power of versions. Is that enough?"),
            (versions, "This reads every version. What does a read in the middle say about the others?"),
        ),
        hints=(
            "Each read halves the number of versions at which the step can be.",
            "How often can you halve 1,000,000 until one version is left? Look for a power of two.",
        ),
    )


@cache
def _steps(node: Node, call: ViewFunction) -> pd.DataFrame:
    """Return the gas steps of a call from version 30 to the head."""
    study = Study(title="Exercise", node=node, calls={"call": call}, versions=FindSteps("30:-1"))
    return study.run(progress=False).steps


# -- 10 Steps and causes ---------------------------------------------------------------------------------------


@_numbered(
    "10.1",
    "a cause, one of the words in the table",
    "Answer with a word from the table at the beginning, as in run.steps.",
)
def _cause_of_a_step(node: Node) -> Exercise:
    steps = _steps(node, _BEST_BID)
    return _value(
        str(steps.loc[steps["change"] < 0, "cause"].iloc[0]),
        mistakes=(
            ("code", "No module was published at this version."),
            ("schedule", "The price list did not change at this version."),
            ("config", "No setting of the network changed at this version."),
            ("mixed", "The transaction did only one thing."),
        ),
        hints=("run.steps has a column cause.", "Take the row with a negative change."),
    )


@_numbered(
    "10.2",
    "a function: address, module and name",
    "Check that the gas falls at this step. Answer with the function that the transaction called, not the view.",
)
def _function_behind_a_step(_: Node) -> Exercise:
    module = "0xb00c::order_book::"
    return _value(
        f"{module}close_day",
        mistakes=(
            *((f"{module}{one}", "This function does not make the gas fall that far.") for one in ("cancel", "place")),
            (f"{module}best_bid", "This is the view. Which function did the transaction call?"),
        ),
        hints=(
            "run.explain() describes the transaction at each step.",
            "Look for the sentence about the version of the drop: the function is in brackets.",
        ),
    )


@_numbered(
    "10.3",
    "ledger version",
    "Check the range of the timeline, and that the change is of kind schedule.",
)
def _schedule_that_moved_nothing(node: Node) -> Exercise:
    frame = timeline(node, "30:-1", modules=["0xde5c::desk"])
    versions = [int(one) for one in frame.loc[frame["kind"] == "schedule", "ledger_version"]]
    quiet, tenfold, with_code = versions
    return _value(
        quiet,
        mistakes=(
            (tenfold, "The change at this version affected every call."),
            (with_code, "At this version the supply has a step."),
        ),
        hints=(
            'The timeline has three rows of kind "schedule".',
            "Which of their versions is not in the column version_after of run.steps?",
        ),
    )


# -- 11 Entry functions: what people paid ----------------------------------------------------------------------


@_numbered(
    "11.1",
    "registrations",
    "Check the first version, and that you count only failed registrations.",
)
def _failed_registrations(node: Node) -> Exercise:
    frame = _registrations(node)
    first = _DRAW.shown(3_400, range(3_150, 3_800, 50))
    success = frame.loc[frame["ledger_version"] >= first, "success"]
    failed = int((~success).sum())
    return _value(
        failed,
        mistakes=(
            (len(success) - failed, "These succeeded. How many did not?"),
            (len(success), "These are all registrations since then."),
            (int((~frame["success"]).sum()), "These are the failures of the whole range. Count from version 3,400 on."),
        ),
        hints=(
            'late = paid[paid["ledger_version"] >= 3_400] has the registrations that count.',
            "The column success is true or false; .value_counts() counts both.",
        ),
    )


@_numbered(
    "11.2",
    "octas",
    "Check that you add up gas times price, and only for failed registrations up to the version.",
)
def _octas_of_failures(node: Node) -> Exercise:
    frame = _registrations(node)
    last = _DRAW.shown(3_600, range(3_520, 3_900, 20))
    frame = frame[frame["ledger_version"] <= last]
    octas = [int(gas) * int(price) for gas, price in zip(frame["gas_used"], frame["gas_unit_price"], strict=True)]
    failed = [not success for success in frame["success"]]
    units = sum(int(gas) for gas, wanted in zip(frame["gas_used"], failed, strict=True) if wanted)
    return _value(
        sum(one for one, wanted in zip(octas, failed, strict=True) if wanted),
        mistakes=(
            (units, "This is in gas units. What did they cost?"),
            (sum(octas), "This is what all registrations paid. Take only those that failed."),
        ),
        hints=(
            'paid[~paid["success"]] has the failed ones; keep those with ledger_version <= 3_600.',
            "Multiply gas_used by gas_unit_price, then add up.",
        ),
    )


@_numbered(
    "11.3",
    "a part of the fee",
    "Answer with one of the three words in the question.",
)
def _part_that_rose_most(_: Node) -> Exercise:
    less = "This part rose too, but by less than another one."
    kind = _DRAW("failed", ("failed", "successful"))
    _DRAW.words |= {"*failed*": "*successful*", "failing": "succeeding"} if kind != "failed" else {}
    return _value(
        "execution" if kind == "failed" else "storage",
        mistakes=(
            ("storage", "A registration that fails stores nothing."),
            ("execution", less),
            ("io", less),
            ("input and output", "Answer with the word that the question uses for this part."),
        ),
        hints=("Read the sentence on failing registrations in run.explain().", "It has the change of each part."),
    )


@cache
def _registrations(node: Node) -> pd.DataFrame:
    """Return the committed registrations of lesson 11."""
    transactions = fetch_transactions(node, "3000:3999", progress=False).transactions
    return transactions[transactions["function"] == address("0xcafe::registry::register")]


# -- 12 Write a contract in Python -----------------------------------------------------------------------------


class Tips(Module, address="0x7195"):
    """A jar for tips, the contract written in the lesson."""

    class Jar(Resource):
        """All tips and their sum."""

        tips: vector[u64]
        total: u64

    class Tipped(Event):
        """Somebody gave a tip."""

        by: move_address
        amount: u64

    E_NOTHING = invalid_argument(1, "A tip is at least 1 octa")

    def init_module(self, account: signer) -> None:
        """Store an empty jar."""
        self.move_to(account, Tips.Jar(tips=[], total=0))

    @entry
    def tip(self, account: signer, amount: u64) -> None:
        """Record a tip."""
        self.require(amount > 0, self.E_NOTHING)
        with self.borrow_mut(Tips.Jar, "0x7195") as jar:
            jar.tips.append(amount)
            jar.total += amount
        self.emit(Tips.Tipped(by=account, amount=amount))

    @view
    def total(self) -> u64:
        """Return the sum of all tips, added up."""
        return sum(self.each(self.borrow(Tips.Jar, "0x7195").tips))


class CheaperTips(Tips, revision=2):
    """An upgrade of the jar that reads the stored sum."""

    @view
    def total(self) -> u64:
        """Return the stored sum of all tips."""
        return self.borrow(Tips.Jar, "0x7195").total


_TIP = "0x7195::tips::tip"
_TOTAL = ViewFunction("0x7195::tips::total")


@cache
def _tipped(tips: int) -> Ledger:
    """Return a ledger with lesson 12's contract and this number of tips. The ledger is cached and shared."""
    ledger = Ledger()
    ledger.publish(Tips)
    with ledger.block():
        for amount in range(1, tips + 1):
            ledger.execute(EntryFunction(_TIP, [amount]), sender="0xa11ce")
    return ledger


@_numbered(
    "12.1",
    "the number of an abort code, as in the status",
    "Check the call that you simulate: a tip of 0 octas.",
)
def _abort_of_a_tip(_: Node) -> Exercise:
    status = _tipped(0).profile(EntryFunction(_TIP, [0]), sender="0xb0b").vm_status
    name, number, text = status.split(": ", 1)[1].replace("(", "|").replace("): ", "|").split("|")
    return _value(
        number,
        mistakes=(
            (name, "This is the name. The status also has the number."),
            (text, "This is the description. The number is before it."),
            (status, "This is the whole status. Answer with the number alone."),
            (f"{name}({number})", "This is the name with the number. Answer with the number alone."),
            ("0x80001", "This is the number of another error, E_TAKEN. Simulate a tip of 0 octas."),
            ("1", "This is the number in the class. Which one is in the status?"),
        ),
        hints=(
            'tips.tip(0, sender="0xb0b").vm_status shows how the call ended.',
            "The number starts with 0x and is in brackets, after the name.",
        ),
    )


@_numbered(
    "12.2",
    "gas units",
    "Check that you compare the last two rows, and that the upgrade ran only once.",
)
def _gas_saved_by_an_upgrade(_: Node) -> Exercise:
    ledger = Ledger()
    ledger.publish(CheaperTips)
    with ledger.block():
        for amount in range(1, 101):
            ledger.execute(EntryFunction(_TIP, [amount]), sender="0xa11ce")
    before, after = (each.profile(_TOTAL).gas_used for each in (_tipped(100), ledger))
    return _value(
        before - after,
        mistakes=(
            (before, "This is what it costs before the upgrade. How much less is it afterwards?"),
            (after, "This is what it costs after the upgrade. How much more was it before?"),
            (after - before, "The size is right, but not the sign: a saving is a positive number."),
        ),
        hints=(
            'sweep["gas_used"] has the gas of each version: the upgrade is between the last two rows.',
            'Subtract the last of sweep["gas_used"].tolist() from the one before it.',
        ),
    )


@_numbered(
    "12.3",
    "octas",
    "Check that you use the storage rather than the whole fee, and count the bytes again.",
)
def _storage_of_a_tip(_: Node) -> Exercise:
    profile = _tipped(100).profile(EntryFunction(_TIP, [5]), sender="0xb0b")
    storage = sum(charge.internal_gas for charge in profile.charges if charge.category == "storage")
    amount, account = 8, 32  # bytes
    today = storage // profile.scaling * 100
    octas = today // amount * (amount + account)
    return _value(
        octas,
        mistakes=(
            (octas // 100, "This is in gas units. What are they at a price of 100 octas?"),
            (today, "This is what a tip pays now, for the amount alone."),
            (octas - today, "This pays for the address alone. The amount is stored as well."),
            (profile.gas_used * 100, "This is the whole fee of a tip. Storage is only part of it."),
        ),
        hints=(
            'tips.tip(5, sender="0xb0b").gas.storage_fee_octas is what 8 bytes, a u64, cost.',
            "What does one byte cost? The new jar stores 8 and 32 bytes for each tip.",
        ),
    )


# -- 13 Building requests with widgets -------------------------------------------------------------------------


@_numbered(
    "13.1",
    "a type",
    "Read the message again: it names the type that was expected.",
)
def _type_of_an_amount(_: Node) -> Exercise:
    return _value(
        "u64",
        mistakes=(
            ("address", "This is the type of the receiver. What is the type of the amount?"),
            ("int", "This is the type in Python. Which one is it on the ledger?"),
            ("number", "Almost. Which type of number exactly?"),
        ),
        hints=("Fill in the form with these arguments and call form.check().", "form.error is the message as text."),
    )


@_numbered(
    "13.2",
    "octas",
    "Check the sender, and do not subtract the fee.",
)
def _octas_of_a_withdrawal(node: Node) -> Exercise:
    shares = _DRAW.shown(1_000_000, range(600_000, 1_600_000, 50_000), "{:,}".format, "[{}]".format)
    withdrawal = node.simulate(EntryFunction("0xfa17::vault::withdraw", [shares]), sender="0x7ade6")
    octas = int(withdrawal.events_of("0xfa17::vault::Withdrawn")["amount"].iloc[0])
    return _value(
        octas,
        mistakes=(
            (shares, "These are the shares. How many octas are paid for them?"),
            (octas - _gas(withdrawal).fee_octas, "This subtracts the fee. How many octas does the vault pay out?"),
        ),
        hints=(
            "The simulation of the form is form.simulation.",
            'Its .events_of("0xfa17::vault::Withdrawn") has a column amount.',
        ),
    )


# -- 14 Gating an upgrade --------------------------------------------------------------------------------------


@_numbered(
    "14.1",
    "percent",
    "Check the two versions, and that you divide by the old value.",
)
def _rise_in_percent(node: Node) -> Exercise:
    before, after = _gas_of_reading(node, _SIZE)
    return _value(
        (after - before) * 100 // before,
        mistakes=(
            (after * 100 // before, "This is the new gas as a percentage of the old. By how much did it rise?"),
            (after - before, "This is the rise in gas units. What is it as a percentage of the old gas?"),
            (after // before, "It costs this many times as much. By what percentage did it rise?"),
            ((after - before) // before, "It rose by this many times the old gas. What is that in percent?"),
            (
                (after - before) * 100 // after,
                "This is a percentage of the new gas. Divide by the old gas.",
            ),
            (800, "This is the rise of the share price."),
        ),
        hints=(
            'node.contract("0xcafe::registry").size.over([3_000, 4_000]) has the gas before and after.',
            "Percentages are relative to the old value: rise / old * 100.",
        ),
    )


@_numbered(
    "14.2",
    "calls",
    'Did you use the limits of the study? later.gate("900%") replaces them.',
)
def _regressions_over_a_limit(node: Node) -> Exercise:
    calls = [
        ViewFunction("0xfa17::vault::share_price"),
        ViewFunction("0xfa17::vault::preview", [1_000]),
        ViewFunction("0xb00c::order_book::depth"),
    ]
    reads = [_gas_of_reading(node, call) for call in calls]
    limit = _DRAW.shown(900, (500, 700, 850, 950), "{} %".format, "{}%".format)
    over = sum((after - before) * 100 > limit * before for before, after in reads)
    return _value(
        over,
        mistakes=(
            (len(calls), "All of them rose, but not all by more than 900 %."),
            (0, "One of the calls also grew with its data, so it rose by more than that."),
        ),
        hints=('later.gate("900%") shows the regressions.', "len(later.gate(...).regressions) counts them."),
    )


@_numbered(
    "14.3",
    "the label of a call",
    "Answer with the label exactly as it is in the study, in quotes.",
)
def _only_call_with_a_baseline(_: Node) -> Exercise:
    functions = ("0xfa17::vault::share_price", "0xfa17::vault::preview", "0xb00c::order_book::depth")
    return _value(
        "book depth",
        mistakes=(
            ("share price", "This call failed at version 13, before its contract was published."),
            ("preview", "This call failed at both versions."),
            *(
                (name, "This is the name of a function. Which label does its call have in the study?")
                for name in functions
            ),
        ),
        hints=(
            "Copy the study with versions=[13, 2_250]; compare run.at(13) with run.at(2_250).",
            "A note in the gate's output lists the calls that it did not judge.",
        ),
    )


def _gas_of_reading(node: Node, call: ViewFunction) -> tuple[int, int]:
    """Return the gas that a view function uses at versions 3,000 and 4,000."""
    before, after = (int(gas) for gas in fetch_views(node, call, [3_000, 4_000], progress=False)["gas_used"])
    return before, after


# -- 15 The same on a public node ------------------------------------------------------------------------------


@_numbered(
    "15.1",
    "reads",
    "For each read, ask whether its answer is already in the cache.",
)
def _reads_with_a_cache(_: Node) -> Exercise:
    versions = _DRAW.shown(200, range(120, 400, 10))
    return _value(
        versions,
        mistakes=(
            (2 * versions, "This would be the number without a cache. Can the answer at a pinned version change?"),
            (0, "The first time, nothing is cached yet."),
        ),
        hints=("What does the cache contain after the first round of reads?", "What is left to ask the second time?"),
    )


@_numbered(
    "15.2",
    "minutes",
    "Check that you count the five minutes exactly once per 5,000 requests.",
)
def _minutes_at_a_limit(_: Node) -> Exercise:
    reads, allowed, minutes = _DRAW.shown(1_000_000, (300_000, 400_000, 600_000, 2_000_000)), 5_000, 5
    if _DRAW.words:
        rounds = reads // allowed
        _DRAW.words |= {"200 times": f"{rounds} times", "about 17 hours": f"about {round(rounds * minutes / 60)} hours"}
    return _value(
        reads // allowed * minutes,
        mistakes=(
            (reads // allowed, "5,000 requests are needed this many times. How long does each round take?"),
            (reads // allowed * minutes * 60, "This is in seconds."),
            (reads // allowed // minutes, "Each 5,000 requests take 5 minutes: multiply, do not divide."),
        ),
        hints=("How many times do 5,000 requests fit into 1,000,000?", "Each round takes 5 minutes."),
    )


# -- 17 Capstone -----------------------------------------------------------------------------------------------


_READERS = (
    (ViewFunction("0xfa17::vault::share_price"), "`0xfa17::vault::share_price`", "Nine"),
    (_SIZE, "`0xcafe::registry::size`", "Seven"),
    (ViewFunction("0xcafe::registry::record_of", ["alice"]), '`0xcafe::registry::record_of("alice")`', "Ten"),
)
"""View functions, with the name and the factor by which their gas rose as written in the question."""


@_numbered("17.4", "percent", "Divide the rise by the old gas, not by the new.")
def _percent_more(node: Node) -> Exercise:
    def words(call: ViewFunction, name: str, times: str) -> tuple[dict[str, str], int, int]:
        before, after = _gas_of_reading(node, call)
        more, total = (after - before) * 100 // before, after * 100 // before
        parts = {
            "name": name,
            "gas": f"{before} and {after}",
            "code": f"({after} - {before}) * 100 // {before}",
            "rise": f"From {before} to {after} is {after - before} more, which is {more} % of {before}",
            "times": times,
            "claim": f"{total:,} %",
            "right": f"{more} %",
        }
        return parts, before, after

    asked = _DRAW(_READERS[0], _READERS)
    (usual, _, _), (drawn, before, after) = words(*_READERS[0]), words(*asked)
    _DRAW.words |= {usual[part]: drawn[part] for part in usual} if asked is not _READERS[0] else {}
    return _value(
        (after - before) * 100 // before,
        mistakes=(
            (after * 100 // before, "This is what the member writes. What would be 0 % more?"),
            (100, "The member writes 100 percentage points too many. Which percentage is right?"),
            (after - before, "This is the rise in gas units. What is it in percent of the old gas?"),
            (after // before, "It costs this many times as much. What is that in percent more?"),
        ),
        hints=("How many gas units more is it?", "Divide that by the old gas, and multiply by 100."),
    )


# -- 18 Inside the machine -------------------------------------------------------------------------------------


@_numbered(
    "18.1", "instructions", "Count the rows of the trace: the last comparison counts too, and so does the return."
)
def _instructions_of_a_loop(node: Node) -> Exercise:
    years = _DRAW.shown(10, (7, 8, 9, 11, 12, 14), "{} years".format, "{} turns".format, "1_000, {}".format)
    once, none = (len(grown(node, 1_000, turns).trace.rows) for turns in (1, 0))
    each = once - none
    return _value(
        len(grown(node, 1_000, years).trace.rows),
        mistakes=(
            (years * each, "These are the turns of the loop. What runs before it ends, and after it?"),
            (len(grown(node, 1_000, 3).trace.rows), "This is the number for 3 years."),
            (17, "This is how many instructions the function consists of. Some run more than once."),
        ),
        hints=(
            "grown(1_000, 10).trace has a row for each instruction that ran.",
            "len(grown(...).trace.to_frame()) counts them.",
        ),
    )


@_numbered(
    "18.2", "internal gas", "Compare two runs that differ by one year, and use internal gas rather than gas units."
)
def _gas_of_a_year(node: Node) -> Exercise:
    two, three = (sum(row["gas"] for row in grown(node, 1_000, years).trace.rows) for years in (2, 3))
    return _value(
        three - two,
        mistakes=(
            (three, "This is the gas of all 3 years, and of the end of the function."),
            (three // 3, "Part of the gas does not depend on the years. Compare 2 years with 3."),
            (0, "In gas units, both cost the same, because gas is rounded up. How much is it in internal gas?"),
        ),
        hints=(
            'grown(1_000, 3).trace.to_frame()["gas"].sum() is the internal gas of 3 years.',
            "Subtract the gas of 2 years from it.",
        ),
    )


@_numbered("18.3", "gas units", "Run it: grown(10, 1_000) returns an object with gas_used.")
def _gas_of_a_useless_loop(node: Node) -> Exercise:
    years = _DRAW.shown(1_000, (600, 700, 800, 900), "{:,} years".format, "10, {:_}".format)
    run = grown(node, 10, years)
    internal = sum(row["gas"] for row in run.trace.rows)
    return _value(
        run.gas_used,
        mistakes=(
            (internal, "This is internal gas. How many gas units are that?"),
            (internal // 1_000_000, "A node rounds gas up to whole units."),
            (10, "This is what the function returns. What does it cost?"),
            (1, "This is the gas of a few years. Each turn of the loop costs, also if the amount stays the same."),
        ),
        hints=("grown(10, 1_000).gas_used is in gas units.", "1,000,000 internal gas are one gas unit, rounded up."),
    )
